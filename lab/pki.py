# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates and kubeconfigs of the lab: one CA, one identity for each part, none of them more than it needs."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import pathlib
import typing

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 365


class Pki:
    """Certificates in a folder; what is there is kept, so that a restarted lab trusts itself.

    :param folder: .lab/pki
    :param server: address of the API server, for the kubeconfigs
    """

    def __init__(self, folder: pathlib.Path, server: str) -> None:
        self.folder = folder
        self.server = server
        folder.mkdir(parents=True, exist_ok=True)
        if not self.path("ca.crt").exists():
            key = ec.generate_private_key(ec.SECP256R1())
            name = subject_of("linerate-lab")
            builder = unsigned(name, name, key.public_key()).add_extension(
                x509.BasicConstraints(ca=True, path_length=None), critical=True
            )
            self._write("ca.key", pem(key))
            self._write("ca.crt", builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        if not self.path("sa.key").exists():
            service_accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            self._write("sa.key", pem(service_accounts))
            public = service_accounts.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            self._write("sa.pub", public)

    def path(self, name: str) -> pathlib.Path:
        return self.folder / name

    def identity(
        self, name: str, user: str, group: str = "", hosts: typing.Iterable[str] = (), days: int = DAYS
    ) -> None:
        """``<name>.crt``, ``<name>.key`` and ``<name>.kubeconfig`` of a user or a server.

        :param user: common name, the user of Kubernetes
        :param group: organisation, the group of Kubernetes
        :param hosts: names and addresses of a server
        :param days: that it is good for; -1: until yesterday
        """
        if self.path(f"{name}.kubeconfig").exists():
            return
        authority_key = typing.cast(
            ec.EllipticCurvePrivateKey, serialization.load_pem_private_key(self.path("ca.key").read_bytes(), None)
        )
        authority = x509.load_pem_x509_certificate(self.path("ca.crt").read_bytes())
        key = ec.generate_private_key(ec.SECP256R1())
        builder = unsigned(subject_of(user, group), authority.subject, key.public_key(), days).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        names = [host_name(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        self._write(f"{name}.crt", certificate)
        self._write(f"{name}.key", pem(key))
        self._write(f"{name}.kubeconfig", self._kubeconfig(certificate, pem(key)).encode())

    def _kubeconfig(self, certificate: bytes, key: bytes) -> str:
        def encoded(content: bytes) -> str:
            return base64.b64encode(content).decode()

        text: str = yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": "lab",
                        "cluster": {
                            "server": self.server,
                            "certificate-authority-data": encoded(self.path("ca.crt").read_bytes()),
                        },
                    }
                ],
                "users": [
                    {
                        "name": "user",
                        "user": {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)},
                    }
                ],
                "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "user"}}],
                "current-context": "lab",
            }
        )
        return text

    def _write(self, name: str, content: bytes) -> None:
        path = self.path(name)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as handle:
            handle.write(content)


def subject_of(user: str, group: str = "") -> x509.Name:
    """Common name and organisation: the user and the group of Kubernetes."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: typing.Union[ec.EllipticCurvePublicKey, rsa.RSAPublicKey],
    days: int = DAYS,
) -> x509.CertificateBuilder:
    """A certificate that only lacks its extensions and its signature."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # the guests' clocks may be a little behind
        .not_valid_before(now + datetime.timedelta(days=min(days, 0) - 1, hours=23))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def pem(key: typing.Union[ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey]) -> bytes:
    """A key in the form of its own kind (SEC 1, PKCS #1), without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
