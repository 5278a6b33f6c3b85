# SPDX-License-Identifier: GPL-3.0-or-later

"""TLS to BMCs: whom to believe."""

from __future__ import annotations

import hashlib
import os
import ssl

from ..._model.base.errors import RdmaError
from .bmc import Bmc
from .channel import TlsChannel


class Trust:
    """Whom to believe that it is a BMC. Made once, since reading the system's authorities takes a while; its contexts
    serve all threads.

    :param validate: whether the certificate is checked; a fingerprint is always
    :param ca_path: file with authorities, or folder of such; the system's without it
    :raises RdmaError: no authorities in ``ca_path``
    """

    def __init__(self, validate: bool = True, ca_path: str = "") -> None:
        self._pinned = _build_unverified_context()
        self._checked = _build_verified_context(ca_path) if validate else self._pinned

    def context(self, bmc: Bmc) -> ssl.SSLContext:
        return self._pinned if bmc.fingerprint else self._checked


def digest(secure: TlsChannel) -> str:
    """SHA-256 of the certificate that the other end has shown; empty where there is none."""
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
            f"ca_path: {ca_path} holds no authorities ({error.strerror or type(error).__name__})",
            "Name a file in PEM, or a folder of such",
        ) from None
    return context


def _build_unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
