# SPDX-License-Identifier: GPL-3.0-or-later

"""A BMC with its address and credentials, and the errors of requests to it."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import ipaddress
import re
import typing

from ..._model.base.errors import RdmaError, wrap_unforeseen
from ..._model.base.text import cut_text

#: why a BMC gave no answer, or took no new value
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
    "changed",
    "not_taken",
    "not_kept",
    "attribute",
    "value",
    "read_only",
    "lockdown",
    "job",
    "identity",
]


#: characters of an error, which may have texts of the BMC in it
_MOST_OF_AN_ERROR = 2000


class BmcError(RdmaError):
    """Raised if a BMC does not answer, answers invalid data, or refuses a request. The error quotes the BMC only if the
    quoted text contains no secret, because a BMC may repeat the request in its text.

    :ivar cause: category of the error, such as ``timeout`` or ``rights``
    :ivar what: description of the error without the name of the BMC
    """

    def __init__(self, cause: Cause, bmc: str, what: str, remedy: str) -> None:
        self.what = cut_text(what, _MOST_OF_AN_ERROR)
        super().__init__(f"{bmc}: {self.what}", cut_text(remedy, _MOST_OF_AN_ERROR))
        self.cause: Cause = cause


@dataclasses.dataclass(frozen=True)
class Bmc:
    """A BMC with its address and credentials.

    :ivar node: name of the node to which it belongs
    :ivar address: name or IP address
    :ivar port: TCP port of HTTPS
    :ivar user: user name; empty with a session token
    :ivar password: password of the user
    :ivar token: session token, used instead of user and password; empty if these are used
    :ivar fingerprint: SHA-256 of its certificate, as hexadecimal digits. If set, the certificate is compared with it
        instead of being verified by an authority
    :ivar system: id of the ComputerSystem that is the node. It may be empty if the BMC has only one system with a BIOS,
        or if the BMC reports to which system it belongs
    :ivar asserted: whether the inventory declares that the BMC belongs to the node, for a BMC that reports no identity
        to compare
    """

    node: str
    address: str
    port: int = 443
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    token: str = dataclasses.field(default="", repr=False)
    fingerprint: str = ""
    system: str = ""
    asserted: bool = False

    @property
    def place(self) -> str:
        """Return the normalized address, port and system id as text. If two nodes have the same text, both name the
        same system of the same BMC.
        """
        host = self.address.strip("[]").lower().rstrip(".")
        with contextlib.suppress(ValueError):
            host = str(ipaddress.ip_address(host))
        return f"{host} {self.port} {self.system}"

    def __str__(self) -> str:
        return f"the BMC of {self.node} ({self.address}:{self.port})"

    def error(self, cause: Cause, what: str, remedy: str) -> BmcError:
        """Return an error whose message begins with the name of this BMC.

        :param cause: category of the error
        :param what: description of the error without the name of the BMC
        :param remedy: instruction to the user that resolves the cause
        """
        return BmcError(cause, str(self), what, remedy)

    def unforeseen(self, error: Exception) -> BmcError:
        """Return an unexpected exception as an error of this BMC. The text of the exception is left out, because it may
        contain user name and password.
        """
        told = wrap_unforeseen(error, "it answered", quoted=False)
        return self.error(
            "not_understood",
            told.seen.partition(": ")[2],
            "Update the firmware of the BMC; if the error persists, report it as a defect of linerate.rdma",
        )

    def holds_secret(self, text: str) -> bool:
        """Return whether a text contains the user name as a word, the password, the token, or user and password in the
        encoding of HTTP basic authentication.
        """
        secrets = [self.password, self.token, *([encode_basic(self)] if self.user else [])]
        return any(secret and secret in text for secret in secrets) or bool(
            self.user and re.search(rf"(?<!\w){re.escape(self.user)}(?!\w)", text)
        )


def encode_basic(bmc: Bmc) -> str:
    """Return the user and the password of a BMC, joined by a colon and encoded in base64 for HTTP basic
    authentication.
    """
    return base64.b64encode(f"{bmc.user}:{bmc.password}".encode()).decode()


def fingerprint_of(text: str) -> str:
    """Return a SHA-256 fingerprint as 64 lower-case hexadecimal digits.

    :param text: the fingerprint, also with colons or spaces, or after ``sha256:`` or ``...=``, as openssl and browsers
        display it
    :raises RdmaError: the text is not a SHA-256 fingerprint
    """
    digits = text.strip().lower().rpartition("=")[2].removeprefix("sha256:").replace(":", "").replace(" ", "")
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise RdmaError(
            f"fingerprint: {text[:100]!r} is not a SHA-256",
            "Set 64 hexadecimal digits, as 'openssl x509 -noout -fingerprint -sha256' prints them",
        )
    return digits


def address_of(text: str) -> str:
    """Return the name or IP address of a BMC unchanged if it is valid.

    :raises RdmaError: the text is empty, or has a scheme, a user, a path or unprintable characters. The error does not
        quote it, because a URL may contain a password
    """
    if not text or not text.isascii() or not text.isprintable() or set(text) & set("/@?#\\ "):
        raise RdmaError(
            "address: it is not the name or the IP address of a BMC",
            "Set it without scheme, user and path; the port is a separate option",
        )
    return text
