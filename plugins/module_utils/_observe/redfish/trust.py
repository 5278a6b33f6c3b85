# SPDX-License-Identifier: GPL-3.0-or-later

"""The verification of the TLS certificates of BMCs."""

from __future__ import annotations

import hashlib
import os
import ssl

from ..._model.base.errors import RdmaError
from .bmc import Bmc
from .channel import TlsChannel


class Trust:
    """The TLS contexts that verify the certificates of BMCs. They are created once and shared by all threads, because
    reading the certificate authorities of the system takes time.

    :param validate: whether certificates are verified by an authority. The fingerprint of a BMC that has one is always
        compared
    :param ca_path: file or folder with certificate authorities; empty for those of the system
    :raises RdmaError: ``ca_path`` contains no certificate authorities
    """

    def __init__(self, validate: bool = True, ca_path: str = "") -> None:
        self._pinned = _build_unverified_context()
        self._checked = _build_verified_context(ca_path) if validate else self._pinned

    def context(self, bmc: Bmc) -> ssl.SSLContext:
        return self._pinned if bmc.fingerprint else self._checked


def read_digest(secure: TlsChannel) -> str:
    """Return the SHA-256 of the certificate of the BMC as hexadecimal digits. Return an empty text if it sent no
    certificate.

    :param secure: connection to the BMC after the handshake
    """
    certificate = secure.certificate()
    return hashlib.sha256(certificate).hexdigest() if certificate else ""


def _build_verified_context(ca_path: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if os.path.isdir(ca_path) else ca_path or None,
            capath=ca_path if os.path.isdir(ca_path) else None,
        )
    except OSError as error:
        # also when there is no PEM in it
        raise RdmaError(
            f"ca_path: {ca_path} contains no certificate authorities ({error.strerror or type(error).__name__})",
            "Set ca_path to a PEM file, or a folder of PEM files",
        ) from None
    return context


def _build_unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
