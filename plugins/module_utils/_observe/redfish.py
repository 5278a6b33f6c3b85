# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin access to a BMC: GET of a resource over TLS, within the time that the BMC has in all. What it answers is parsed in _parse/redfish.

The standard library alone, and no proxy: BMCs are on a network of their own. ``ansible.module_utils.urls`` has a limit for each read instead of one for all,
no pin, no limit of size, a new connection for each request, and sends the password wherever it is redirected to.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import errno
import hashlib
import hmac
import http.client
import json
import os
import socket
import ssl
import time
import typing
import zlib
from urllib.parse import urlsplit

from .._model.errors import RdmaError
from .._parse.redfish.resource import is_path
from .._parse.redfish.resources import message_id

#: bytes of an answer; the largest registries have 1.2 MB
LARGEST = 4 * 2**20
#: seconds until a BMC that answers nothing at all is given up
CONNECT = 10.0
#: of a GET that failed on the way, or that a busy BMC put off; each within the time of the BMC
ATTEMPTS = 3
_REDIRECTS = 3
_BUSY = (429, 502, 503, 504)
_CHUNK = 65536
#: OpenSSL's X509_V_ERR: before, after its time; another name or address; signed by itself or by nobody that is known
_NOT_YET, _EXPIRED, _NAMES, _AUTHORITIES = 9, 10, (62, 64), (2, 18, 19, 20, 21)

#: why a BMC gave no answer
Cause = typing.Literal[
    "address",
    "controller",
    "no_route",
    "refused",
    "timeout",
    "closed",
    "tls",
    "tls_expired",
    "tls_authority",
    "tls_name",
    "tls_pin",
    "password",
    "rights",
    "not_found",
    "busy",
    "status",
    "not_json",
    "too_large",
    "not_understood",
]


class BmcError(RdmaError):
    """A BMC that gave no answer, or none that is one. Never holds what the BMC said in its own words: it may repeat what it was sent.

    :ivar cause: see Cause
    :ivar what: what was seen, without the name of the BMC
    """

    def __init__(self, cause: Cause, bmc: str, what: str, remedy: str) -> None:
        super().__init__(f"{bmc}: {what}", remedy)
        self.cause: Cause = cause
        self.what = what


@dataclasses.dataclass(frozen=True)
class Bmc:
    """A BMC, and who asks it.

    :ivar node: name of the node that it is of
    :ivar address: name or IP address
    :ivar token: of a session, in place of user and password
    :ivar fingerprint: SHA-256 of its certificate, in place of an authority
    :ivar system: id of the system that is the node; empty where the BMC has one with a BIOS only
    """

    node: str
    address: str
    port: int = 443
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)
    fingerprint: str = ""
    system: str = ""

    def __str__(self) -> str:
        return f"the BMC of {self.node} ({self.address}:{self.port})"


class _Socket(ssl.SSLSocket):
    """TLS with one end for all that is read: a BMC that sends a byte a second does not get a new limit with each."""

    end: typing.Optional[float] = None

    def recv_into(self, *arguments: typing.Any, **options: typing.Any) -> int:
        if self.end is not None:
            self.settimeout(_left(self.end))
        return super().recv_into(*arguments, **options)


class Trust:
    """Whom to believe that it is a BMC. Made once, since reading the system's authorities takes a while; its contexts serve all threads.

    :param validate: whether the certificate is checked; a fingerprint is always
    :param ca_path: file with authorities, or folder of such; the system's without it
    :raises RdmaError: no authorities in ``ca_path``
    """

    def __init__(self, validate: bool = True, ca_path: str = "") -> None:
        self._pinned = _unchecked()
        self._checked = _checked(ca_path) if validate else self._pinned

    def context(self, bmc: Bmc) -> ssl.SSLContext:
        return self._pinned if bmc.fingerprint else self._checked


class Session:
    """One BMC, asked over one connection as long as it keeps it open. No session is made on the BMC: nothing is left there, and GET is all that is sent.

    :param seconds: that all answers of this BMC together may take
    """

    def __init__(self, bmc: Bmc, trust: Trust, seconds: float, sleep: typing.Callable[[float], None] = time.sleep) -> None:
        self.bmc = bmc
        self.end = time.monotonic() + seconds
        self._seconds = seconds
        self._trust = trust
        self._sleep = sleep
        self._connection: typing.Optional[http.client.HTTPSConnection] = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_what: object) -> None:
        self._close()

    def get(self, path: str) -> typing.Dict[str, typing.Any]:
        """A resource.

        :param path: on this BMC, perhaps with a query
        :raises BmcError: no answer, or none that is a resource
        """
        for _redirect in range(_REDIRECTS + 1):
            status, headers, body = self._answer(path)
            if status not in (301, 302, 307, 308):
                return self._resource(path, status, body)
            path = self._elsewhere(path, headers.get("Location", ""))
        raise self.error("status", f"GET {path} is redirected again and again", "Update the firmware of the BMC")

    def _elsewhere(self, path: str, location: str) -> str:
        """Where a redirection leads; never to somebody else, who would get the password."""
        try:
            parts = urlsplit(location)
            port = parts.port or 443
        except ValueError:
            parts, port = urlsplit(""), 0
        own = not parts.netloc or (parts.scheme == "https" and parts.hostname == self.bmc.address.strip("[]").lower() and port == self.bmc.port)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if not own or not is_path(target):
            raise self.error("status", f"GET {path} is redirected away from the BMC", "Give the address that the BMC redirects to, if it is the BMC's")
        return target

    def _answer(self, path: str) -> typing.Tuple[int, http.client.HTTPMessage, bytes]:
        """What one GET is answered with. Asks again when the connection broke, or the BMC is busy."""
        for attempt in range(1, ATTEMPTS + 1):
            # a connection that was kept open may have been closed meanwhile: at first a new one is tried at once
            wait = attempt - 1.0
            try:
                status, headers, body = self._exchange(path)
            except BmcError as error:
                if error.cause != "closed" or attempt == ATTEMPTS:
                    raise
            else:
                if status not in _BUSY or attempt == ATTEMPTS:
                    return status, headers, body
                told = headers.get("Retry-After", "")
                wait = float(told) if told.isascii() and told.isdigit() and len(told) < 4 else float(attempt)
            if time.monotonic() + wait >= self.end:
                raise self.error("busy", f"GET {path} was put off until its {self._seconds:g} s were over", "Give it more seconds, or ask again later")
            self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, path: str) -> typing.Tuple[int, http.client.HTTPMessage, bytes]:
        with self._failures(f"GET {path}"):
            connection = self._connection or self._connect()
            connection.request("GET", path, headers=self._headers())
            response = connection.getresponse()
            body = self._read(path, response)
        if response.will_close:
            self._close()
        return response.status, response.headers, body

    def _read(self, path: str, response: http.client.HTTPResponse) -> bytes:
        parts: typing.List[bytes] = []
        size = 0
        inflate = zlib.decompressobj(wbits=31) if response.headers.get("Content-Encoding", "").lower() == "gzip" else None
        while True:
            part = response.read1(_CHUNK)
            if not part:
                if response.length:
                    raise http.client.IncompleteRead(b"", response.length)
                # or the connection takes no other request
                response.close()
                return b"".join(parts)
            # some registries are stored compressed, and sent so whatever was asked for
            part = inflate.decompress(part, LARGEST + 1) if inflate else part
            size += len(part)
            if size > LARGEST:
                self._close()
                limit = f"GET {path} was answered with more than {LARGEST // 2**20} MiB"
                raise self.error("too_large", limit, "See what answers at this address: no resource of a BMC is that large")
            parts.append(part)

    def _resource(self, path: str, status: int, body: bytes) -> typing.Dict[str, typing.Any]:
        try:
            data = json.loads(body)
            # half a character can't be written anywhere
            json.dumps(data, ensure_ascii=False).encode() if b"\\ud" in body.lower() else b""
        except (ValueError, RecursionError):
            data = None
        if status != 200:
            raise self._refused(path, status, message_id(data))
        if not isinstance(data, dict):
            remedy = "See what answers at this address, and restart the BMC if it is one"
            raise self.error("not_json", f"GET {path} was answered with {len(body)} bytes that are no JSON object", remedy)
        return data

    def _refused(self, path: str, status: int, reason: str) -> BmcError:
        seen = f"GET {path} was answered with {status}{f' ({reason})' if reason else ''}"
        if status == 401:
            wrong = "it does not know the token" if self.bmc.token else "user or password is wrong"
            return self.error("password", f"{seen}: {wrong}", "Correct that before the next run; a BMC locks a user out after a few attempts")
        if status == 403:
            remedy = "Give the user a role with the privilege Login, as ReadOnly has, and a new password where the BMC demands one"
            return self.error("rights", f"{seen}: the user may not read it", remedy)
        if status in (404, 410):
            return self.error("not_found", f"{seen}: it has no such resource", "Update its firmware; a BMC without Redfish can't be asked")
        if status in _BUSY:
            return self.error("busy", f"{seen}, {ATTEMPTS} times", "Ask again in a few minutes; restart the BMC if it stays so")
        return self.error("status", seen, "See the log of the BMC, and restart it if it stays so")

    def _headers(self) -> typing.Dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "OData-Version": "4.0"}
        if self.bmc.token:
            return {**headers, "X-Auth-Token": self.bmc.token}
        basic = base64.b64encode(f"{self.bmc.user}:{self.bmc.password}".encode()).decode()
        return {**headers, "Authorization": f"Basic {basic}"}

    def _connect(self) -> http.client.HTTPSConnection:
        host, context = self.bmc.address.strip("[]"), self._trust.context(self.bmc)
        plain = socket.create_connection((host, self.bmc.port), min(CONNECT, _left(self.end)))
        try:
            plain.settimeout(_left(self.end))
            secure = context.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
        # the context makes no others
        typing.cast(_Socket, secure).end = self.end
        # before anything is sent to it
        shown = _digest(secure) if self.bmc.fingerprint else ""
        if not hmac.compare_digest(shown, self.bmc.fingerprint):
            secure.close()
            seen = f"its certificate is another one than the pinned: its SHA-256 is {shown or 'not to be had'}"
            raise self.error("tls_pin", seen, "Find out who answers there; pin the new certificate if the BMC got one")
        connection = http.client.HTTPSConnection(host, self.bmc.port, context=context)
        connection.auto_open = 0
        connection.sock = secure
        self._connection = connection
        return connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def error(self, cause: Cause, what: str, remedy: str) -> BmcError:
        """An error of this BMC."""
        return BmcError(cause, str(self.bmc), what, remedy)

    @contextlib.contextmanager
    def _failures(self, what: str) -> typing.Iterator[None]:
        """What the socket, TLS and HTTP raise, as errors with a cause. After each the connection is of no more use."""
        try:
            yield
        except BmcError:
            self._close()
            raise
        except ssl.SSLCertVerificationError as error:
            self._close()
            # without what it was raised in: that holds the headers
            raise self._untrusted(error) from None
        except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
            self._close()
            raise self._lost(what, error) from None

    def _untrusted(self, error: ssl.SSLCertVerificationError) -> BmcError:
        shown = "openssl x509 -noout -subject -dates -ext subjectAltName -fingerprint -sha256"
        look = f"openssl s_client -connect {self.bmc.address}:{self.bmc.port} </dev/null | {shown}"
        if error.verify_code == _EXPIRED:
            return self.error("tls_expired", "its certificate has expired", f"Give it a new one, or pin this one; look at it: {look}")
        if error.verify_code == _NOT_YET:
            return self.error("tls_expired", "its certificate is not valid yet", f"Set the clocks of the controller and the BMC; look at it: {look}")
        if error.verify_code in _NAMES:
            return self.error("tls_name", "its certificate is for another name or address", f"Use the name in it as address, or pin it; look at it: {look}")
        if error.verify_code not in _AUTHORITIES:
            return self.error("tls", f"its certificate is refused ({error.verify_message})", f"Give it a new one, or pin this one; look at it: {look}")
        seen = f"its certificate is from an unknown authority ({error.verify_message})"
        return self.error("tls_authority", seen, f"Name the authority's file in ca_path, or pin the certificate; look at it: {look}")

    def _lost(self, what: str, error: Exception) -> BmcError:
        if isinstance(error, (TimeoutError, socket.timeout)):
            if time.monotonic() >= self.end:
                remedy = "Give it more seconds, or restart the BMC"
                return self.error("timeout", f"{what}: its {self._seconds:g} s were over", remedy)
            return self.error("timeout", f"nothing answers within {CONNECT:g} s", "See its power, its cable and the firewalls on the way")
        if isinstance(error, socket.gaierror):
            return self.error("address", "the controller does not find its name", "Correct the address, or the name service of the controller")
        if isinstance(error, ConnectionRefusedError):
            return self.error("refused", "the connection was refused", "Switch on HTTPS on the BMC, or correct the port")
        if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
            return self.error("tls", f"TLS failed ({error.reason or 'no reason'})", "See that the port is that of HTTPS, and that the BMC knows TLS 1.2")
        if isinstance(error, (ssl.SSLError, ConnectionError, http.client.HTTPException, zlib.error)):
            return self.error("closed", f"{what}: the connection broke ({type(error).__name__})", "Ask again; restart the BMC if it stays so")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            seen = f"the controller can't open another connection ({error.strerror})"
            return self.error("controller", seen, "Ask fewer BMCs at the same time by parallel, or raise 'ulimit -n'")
        if isinstance(error, OSError):
            seen = f"no route to it ({error.strerror or type(error).__name__})"
            return self.error("no_route", seen, "Correct the address, or the routes from the controller to the network of the BMCs")
        return self.error("address", f"address, user or password hold what can't be sent ({type(error).__name__})", "Correct them")


def fingerprint_of(text: str) -> str:
    """A SHA-256 fingerprint as 64 digits in lower case; with colons or without, as openssl and browsers show it.

    :raises RdmaError: it is none
    """
    digits = text.strip().lower().rpartition("=")[2].removeprefix("sha256:").replace(":", "").replace(" ", "")
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise RdmaError(f"fingerprint: {text[:100]!r} is no SHA-256", "Give 64 hexadecimal digits, as 'openssl x509 -noout -fingerprint -sha256' shows them")
    return digits


def address_of(text: str) -> str:
    """A name or an IP address of a BMC.

    :raises RdmaError: it is something else, which is not repeated: a URL may hold a password
    """
    if not text or not text.isascii() or not text.isprintable() or set(text) & set("/@?#\\ "):
        raise RdmaError("address: not the name or the IP address of a BMC", "Give it without scheme, user and path; the port is an option of its own")
    return text


def _left(end: float) -> float:
    """Seconds until then.

    :raises TimeoutError: none
    """
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _digest(secure: ssl.SSLSocket) -> str:
    certificate = secure.getpeercert(binary_form=True)
    return hashlib.sha256(certificate).hexdigest() if certificate else ""


def _checked(ca_path: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if os.path.isdir(ca_path) else ca_path or None, capath=ca_path if os.path.isdir(ca_path) else None)
    except OSError as error:
        # also when there is no PEM in it
        raise RdmaError(
            f"ca_path: {ca_path} holds no authorities ({error.strerror or type(error).__name__})", "Name a file in PEM, or a folder of such"
        ) from None
    context.sslsocket_class = _Socket
    return context


def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.sslsocket_class = _Socket
    return context
