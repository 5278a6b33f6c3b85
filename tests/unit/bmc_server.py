# SPDX-License-Identifier: GPL-3.0-or-later

"""BMCs over TLS: the lab's, with the trees of fixtures/redfish, and certificates for them. As a program it is one BMC
with a latency, for the benchmark."""

from __future__ import annotations

import argparse
import datetime
import gzip
import hashlib
import json
import pathlib
import ssl
import sys
import tempfile
import typing

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lab.bmc import server
from lab.bmc.bios import Tree
from lab.bmc.server import Credentials, Fault

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "redfish"
USER, PASSWORD, TOKEN = "operator", "s3cret-of-the-bmc", "t0ken-of-the-bmc"
BASIC = Credentials(USER, PASSWORD).basic


def tree(vendor: str) -> Tree:
    """What the BMC of a vendor answers, by path."""
    found: Tree = json.loads((FIXTURES / f"{vendor}.json").read_text(encoding="utf-8"))
    return found


class Certificates:
    """An authority, and certificates of BMCs, in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority of the BMCs")])
        self.authority = folder / "ca.pem"
        self.authority.write_bytes(
            self._certificate(self._name, self._key.public_key(), True, "", 1).public_bytes(serialization.Encoding.PEM)
        )

    def of(self, host: str = "localhost", days: int = 1, signed: bool = True) -> pathlib.Path:
        """A file with certificate and key.

        :param days: until it expires; less than 0: it has
        :param signed: by the authority, or by itself
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certificate(
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)]),
            key.public_key(),
            False,
            host,
            days,
            None if signed else key,
        )
        path = self.folder / f"{host}-{days}-{signed}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        return path

    def _certificate(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        ca: bool,
        host: str,
        days: int,
        own: typing.Optional[ec.EllipticCurvePrivateKey] = None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if own else self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=abs(days) + 1))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(own or self._key, hashes.SHA256())


def fingerprint(path: pathlib.Path) -> str:
    """SHA-256 of a certificate, as ``openssl x509 -fingerprint`` prints it."""
    digest = (
        hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text().partition("-----BEGIN PRIVATE")[0]))
        .hexdigest()
        .upper()
    )
    return "sha256 Fingerprint=" + ":".join(digest[place : place + 2] for place in range(0, 64, 2))


class BmcServer(server.BmcServer):
    """The lab's, for the user and the password of the tests."""

    def __init__(self, answers: Tree, certificate: pathlib.Path, latency: float = 0.0, **other: typing.Any) -> None:
        super().__init__(answers, certificate, latency, Credentials(USER, PASSWORD, TOKEN), **other)


def packed(data: typing.Any) -> Fault:
    """A resource that is compressed, asked for or not."""
    return Fault(body=gzip.compress(json.dumps(data).encode()), headers=(("Content-Encoding", "gzip"),))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--vendor", default="dell")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        certificates = Certificates(pathlib.Path(folder))
        with BmcServer(tree(options.vendor), certificates.of(), options.latency) as bmc:
            print(json.dumps({"port": bmc.port, "ca": str(certificates.authority)}), flush=True)
            # until who started it closes our stdin, or ends
            sys.stdin.read()
            print(json.dumps({"asked": bmc.asked, "connections": bmc.connections}), flush=True)


if __name__ == "__main__":
    main()
