# SPDX-License-Identifier: GPL-3.0-or-later

"""Convert failures of sockets, TLS, HTTP and BMCs to errors with a cause and a remedy."""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
import zlib

from .bmc import Bmc, BmcError

#: seconds until a BMC that answers nothing at all is given up
CONNECT = 10.0
#: of a GET that failed on the way, or that a busy BMC put off; each within the time of the BMC
ATTEMPTS = 3
BUSY = (429, 502, 503, 504)
#: OpenSSL's X509_V_ERR: before, after its time; another name or address; signed by itself or by nobody that is known
_NOT_YET, _EXPIRED, _NAMES, _AUTHORITIES = 9, 10, (62, 64), (2, 18, 19, 20, 21)


def explain_untrusted(bmc: Bmc, error: ssl.SSLCertVerificationError) -> BmcError:
    """Return the error for a certificate of a BMC that is not trusted. Its cause and remedy depend on the reason:
    expired, not valid yet, another name, an unknown authority, or any other reason.

    :param error: exception of the TLS handshake
    """
    shown = "openssl x509 -noout -subject -dates -ext subjectAltName -fingerprint -sha256"
    look = f"openssl s_client -connect {bmc.address}:{bmc.port} </dev/null | {shown}"
    if error.verify_code == _EXPIRED:
        return bmc.error(
            "tls_expired", "its certificate has expired", f"Install a new one, or pin this one; print it: {look}"
        )
    if error.verify_code == _NOT_YET:
        return bmc.error(
            "tls_expired",
            "its certificate is not valid yet",
            f"Set the clocks of the controller and the BMC; print the certificate: {look}",
        )
    if error.verify_code in _NAMES:
        return bmc.error(
            "tls_name",
            "its certificate is for another name or address",
            f"Set the name in the certificate as address, or pin the certificate; print it: {look}",
        )
    if error.verify_code not in _AUTHORITIES:
        return bmc.error(
            "tls",
            f"its certificate was rejected ({error.verify_message})",
            f"Install a new one, or pin this one; print it: {look}",
        )
    seen = f"its certificate was issued by an unknown authority ({error.verify_message})"
    return bmc.error(
        "tls_authority", seen, f"Set ca_path to the file of the authority, or pin the certificate; print it: {look}"
    )


def explain_timeout(bmc: Bmc, what: str, seconds: float) -> BmcError:
    """Return the error for a request that was not answered before the time limit of its BMC was over.

    :param what: request for the message, such as ``GET /redfish/v1``
    :param seconds: time limit of the BMC in seconds
    """
    return bmc.error("timeout", f"{what}: limit of {seconds:g} s reached", "Set a longer limit, or restart the BMC")


def out_of_hold(bmc: Bmc, what: str) -> BmcError:
    """Return the error for a write that was aborted, because no answer arrived before another run could have taken the
    Lease. It is unknown whether the BMC has accepted the write.

    :param what: request for the message, such as ``PATCH /redfish/v1/Systems/1/Bios/Settings``
    """
    seen = (
        f"{what}: the BMC did not respond while the Lease of the run was valid, so the run gave up; whether the BMC"
        " accepted the request is unknown"
    )
    return bmc.error("timeout", seen, "Check the log of the BMC, then rerun")


def explain_lost(bmc: Bmc, what: str, error: Exception) -> BmcError:
    """Return the error for a request whose connection to the BMC could not be opened, or broke. The exception
    determines its cause and remedy.

    :param what: request for the message, such as ``GET /redfish/v1``
    :param error: exception of the socket, of TLS or of HTTP
    """
    if isinstance(error, (TimeoutError, socket.timeout)):
        return bmc.error("timeout", f"no response within {CONNECT:g} s", "Check its power, its cable and the firewalls")
    if isinstance(error, socket.gaierror):
        return bmc.error(
            "address",
            "the controller cannot resolve its name",
            "Correct the address, or the name resolution of the controller",
        )
    if isinstance(error, ConnectionRefusedError):
        return bmc.error("refused", "the connection was refused", "Enable HTTPS on the BMC, or correct the port")
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return bmc.error(
            "tls",
            f"TLS failed ({error.reason or 'no reason'})",
            "Check that the port is the HTTPS port, and that the BMC supports TLS 1.2",
        )
    if isinstance(error, (ssl.SSLError, ConnectionError, http.client.HTTPException, zlib.error)):
        return bmc.error(
            "closed",
            f"{what}: the connection broke ({type(error).__name__})",
            "Rerun; restart the BMC if the error persists",
        )
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        seen = f"the controller cannot open another connection ({error.strerror})"
        return bmc.error("controller", seen, "Query fewer BMCs at the same time with parallel, or raise 'ulimit -n'")
    if isinstance(error, OSError):
        seen = f"no route to it ({error.strerror or type(error).__name__})"
        return bmc.error(
            "no_route", seen, "Correct the address, or the routes from the controller to the network of the BMCs"
        )
    return bmc.error(
        "address",
        f"address, user or password cannot be sent ({type(error).__name__})",
        "Correct the address, the user and the password",
    )


def explain_refused(bmc: Bmc, what: str, status: int, reason: str) -> BmcError:
    """Return the error for a read whose HTTP status is not a success. The status determines its cause and remedy.

    :param what: request for the message, such as ``GET /redfish/v1``
    :param status: HTTP status of the answer
    :param reason: id of the message that the BMC sent; empty if it sent none
    """
    seen = f"the BMC responded to {what} with {status}{f' ({reason})' if reason else ''}"
    if status == 401:
        wrong = "the BMC does not accept the token" if bmc.token else "user or password is wrong"
        return bmc.error(
            "password",
            f"{seen}: {wrong}",
            "Correct the credentials before the next run; a BMC locks a user out after a few attempts",
        )
    if status == 403:
        remedy = (
            "Give the user a role with the privilege Login, such as ReadOnly, and set a new password if the BMC"
            " requires one"
        )
        return bmc.error("rights", f"{seen}: the user has no right to read this resource", remedy)
    if status in (404, 410):
        return bmc.error(
            "not_found", f"{seen}: the BMC has no such resource", "Update its firmware; this BMC lacks Redfish"
        )
    if status in BUSY:
        times = "" if what.startswith("POST") else f", {ATTEMPTS} times"
        return bmc.error("busy", f"{seen}{times}", "Rerun in a few minutes; restart the BMC if the error persists")
    return bmc.error("status", seen, "Check the log of the BMC, and restart it if the error persists")


def not_written(bmc: Bmc, what: str, status: int, reason: str, words: str) -> BmcError:
    """Return the error for a write that the BMC refused. The HTTP status determines its cause and remedy.

    :param what: request for the message, such as ``PATCH /redfish/v1/Systems/1/Bios/Settings``
    :param status: HTTP status of the answer
    :param reason: id of the message of the BMC; empty if it sent none
    :param words: text of the message of the BMC, which is left out of the error if it contains a secret; empty if it
        sent none
    """
    told = f"; the BMC reports: {words}" if words and not bmc.holds_secret(words) else ""
    seen = f"the BMC responded to {what} with {status}{f' ({reason})' if reason else ''}"
    if status == 403:
        return bmc.error(
            "rights",
            f"{seen}{told}",
            "Give the user a role with the privilege ConfigureComponents, or follow the message of the BMC",
        )
    if status == 412:
        return bmc.error(
            "changed",
            f"{seen}: another client changes its settings at the same time{told}",
            "Find and stop the other client, then rerun",
        )
    if status in (401, 404, 410, *BUSY):
        return explain_refused(bmc, what, status, reason)
    return bmc.error("not_taken", f"{seen}{told}", "Check the message and log of the BMC; nothing was set")
