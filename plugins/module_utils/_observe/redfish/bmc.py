# SPDX-License-Identifier: GPL-3.0-or-later

"""A BMC, who asks it, and why it gave no answer."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import ipaddress
import re
import typing

from ..._model.base.errors import RdmaError, wrap_unforeseen

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


class BmcError(RdmaError):
    """A BMC that gave no answer, none that is one, or a refusal. What a BMC said in its own words is in it only without
    any secret: it may repeat what it was sent.

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
    :ivar system: id of the system that is the node; empty where the BMC has one with a BIOS only, or tells which one it
        is
    :ivar asserted: the inventory says that it is the node's, for where nothing can be compared
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
        """Return its address, in one form: the same for two nodes is one system of one BMC."""
        host = self.address.strip("[]").lower().rstrip(".")
        with contextlib.suppress(ValueError):
            host = str(ipaddress.ip_address(host))
        return f"{host} {self.port} {self.system}"

    def __str__(self) -> str:
        return f"the BMC of {self.node} ({self.address}:{self.port})"

    def error(self, cause: Cause, what: str, remedy: str) -> BmcError:
        """Return an error of this BMC."""
        return BmcError(cause, str(self), what, remedy)

    def unforeseen(self, error: Exception) -> BmcError:
        """Convert an exception that nobody raised on purpose, as the error of this BMC. Its text is not shown: it may
        hold who asks, and by what secret."""
        told = wrap_unforeseen(error, "it answered", quoted=False)
        return self.error(
            "not_understood",
            told.seen.partition(": ")[2],
            "Update the firmware of the BMC; if that does not help, report this",
        )

    def holds_secret(self, text: str) -> bool:
        """Return whether a text repeats the user's name or password."""
        secrets = [self.password, self.token, *([basic(self)] if self.user else [])]
        return any(secret and secret in text for secret in secrets) or bool(
            self.user and re.search(rf"(?<!\w){re.escape(self.user)}(?!\w)", text)
        )


def basic(bmc: Bmc) -> str:
    """User and password as HTTP's basic authentication sends them."""
    return base64.b64encode(f"{bmc.user}:{bmc.password}".encode()).decode()


def fingerprint_of(text: str) -> str:
    """Return a SHA-256 fingerprint as 64 digits in lower case; with colons or without, as openssl and browsers show it.

    :raises RdmaError: it is none
    """
    digits = text.strip().lower().rpartition("=")[2].removeprefix("sha256:").replace(":", "").replace(" ", "")
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise RdmaError(
            f"fingerprint: {text[:100]!r} is no SHA-256",
            "Give 64 hexadecimal digits, as 'openssl x509 -noout -fingerprint -sha256' shows them",
        )
    return digits


def address_of(text: str) -> str:
    """Return a name or an IP address of a BMC.

    :raises RdmaError: it is something else, which is not repeated: a URL may hold a password
    """
    if not text or not text.isascii() or not text.isprintable() or set(text) & set("/@?#\\ "):
        raise RdmaError(
            "address: not the name or the IP address of a BMC",
            "Give it without scheme, user and path; the port is an option of its own",
        )
    return text
