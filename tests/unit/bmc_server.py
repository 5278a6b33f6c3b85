# SPDX-License-Identifier: GPL-3.0-or-later

"""BMCs over TLS: each port answers with one tree of resources, as a vendor's BMC does, and as BMCs go wrong.

The trees are in fixtures/redfish. As a program it is one BMC with a latency, for the benchmark.
"""

from __future__ import annotations

import argparse
import base64
import copy
import dataclasses
import datetime
import gzip
import hashlib
import http.server
import json
import pathlib
import socket
import ssl
import sys
import tempfile
import threading
import time
import typing

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "redfish"
USER, PASSWORD, TOKEN = "operator", "s3cret-of-the-bmc", "t0ken-of-the-bmc"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
Tree = typing.Dict[str, typing.Any]


def tree(vendor: str) -> Tree:
    """What the BMC of a vendor answers, by path."""
    found: Tree = json.loads((FIXTURES / f"{vendor}.json").read_text(encoding="utf-8"))
    return found


@dataclasses.dataclass(frozen=True)
class Fault:
    """What a path is answered with in place of its resource.

    :ivar times: answers that are wrong; None for all of them
    :ivar status: HTTP status
    :ivar body: of the answer; None for a message of Redfish
    :ivar headers: beside those that each answer has
    :ivar drop: the connection is closed in place of an answer
    :ivar cut: bytes of the body after which it is closed
    :ivar drip: the answer never ends: a blank every 20 ms
    :ivar gate: the answer waits for it
    :ivar reached: set when it waits
    """

    times: typing.Optional[int] = None
    status: int = 200
    body: typing.Optional[bytes] = None
    headers: typing.Tuple[typing.Tuple[str, str], ...] = ()
    drop: bool = False
    cut: typing.Optional[int] = None
    drip: bool = False
    gate: typing.Optional[threading.Event] = None
    reached: typing.Optional[threading.Event] = None


class Certificates:
    """An authority, and certificates of BMCs, in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority of the BMCs")])
        self.authority = folder / "ca.pem"
        self.authority.write_bytes(self._certificate(self._name, self._key.public_key(), True, "", 1).public_bytes(serialization.Encoding.PEM))

    def of(self, host: str = "localhost", days: int = 1, signed: bool = True) -> pathlib.Path:
        """A file with certificate and key.

        :param days: until it expires; less than 0: it has
        :param signed: by the authority, or by itself
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certificate(
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)]), key.public_key(), False, host, days, None if signed else key
        )
        path = self.folder / f"{host}-{days}-{signed}.pem"
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
        return path

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, ca: bool, host: str, days: int, own: typing.Optional[ec.EllipticCurvePrivateKey] = None
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
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(path.read_text().partition("-----BEGIN PRIVATE")[0])).hexdigest().upper()
    return "sha256 Fingerprint=" + ":".join(digest[place : place + 2] for place in range(0, 64, 2))


class BmcServer:
    """One BMC on a port of this machine.

    :param answers: its resources; a copy is served
    :param certificate: file with certificate and key
    :ivar faults: by path, with its query
    :ivar asked: paths in the order in which they came
    """

    def __init__(self, answers: Tree, certificate: pathlib.Path, latency: float = 0.0) -> None:
        self.answers = copy.deepcopy(answers)
        self.faults: typing.Dict[str, Fault] = {}
        self.latency = latency
        self.asked: typing.List[str] = []
        self.expands = False
        self.connections = 0
        self._lock = threading.Lock()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.context = context
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> BmcServer:
        self._thread.start()
        return self

    def __exit__(self, *_what: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self, path: str) -> typing.Optional[Fault]:
        """What is wrong with this answer; counts it."""
        with self._lock:
            self.asked.append(path)
            found = self.faults.get(path)
            if found and found.times is not None:
                if found.times <= 0:
                    return None
                self.faults[path] = dataclasses.replace(found, times=found.times - 1)
            return found

    def resource(self, path: str) -> typing.Any:
        """A resource, by a path with or without a slash at its end; None where there is none."""
        bare, _mark, query = path.partition("?")
        found = self.answers.get(bare.rstrip("/"))
        if found is not None and query.startswith("$expand") and self.expands:
            return {**found, "Members": [self.answers[member["@odata.id"]] for member in found["Members"]]}
        return found


class _Server(http.server.ThreadingHTTPServer):
    context: ssl.SSLContext
    daemon_threads = True
    request_queue_size = 1024

    def finish_request(self, request: typing.Any, client_address: typing.Any) -> None:
        """The handshake is in the thread of its connection, as a client may be slow with it."""
        try:
            with self.context.wrap_socket(request, server_side=True) as secure:
                super().finish_request(secure, client_address)
        except (OSError, ValueError):
            # the client does not trust this certificate, or went away
            pass


def _handler(bmc: BmcServer) -> typing.Type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            bmc.connections += 1
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def do_GET(self) -> None:
            fault = bmc.fault(self.path)
            time.sleep(bmc.latency)
            if fault and fault.reached:
                fault.reached.set()
            if fault and fault.gate:
                fault.gate.wait(30)
            if fault and fault.drop:
                self.close_connection = True
            elif fault and fault.drip:
                self._drip()
            elif self.headers.get("X-Auth-Token") != TOKEN and self.headers.get("Authorization") != BASIC:
                self._say(401, _message("Base.1.12.AccessDenied"))
            elif fault and not fault.gate:
                body = _message("Base.1.12.Fault") if fault.body is None else fault.body
                self._say(fault.status, body, fault.headers, fault.cut)
            else:
                found = bmc.resource(self.path)
                self._say(404, _message("Base.1.12.ResourceMissingAtURI")) if found is None else self._say(200, json.dumps(found).encode())

        def _say(self, status: int, body: bytes, headers: typing.Tuple[typing.Tuple[str, str], ...] = (), cut: typing.Optional[int] = None) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:cut])
            self.close_connection = self.close_connection or cut is not None

        def _drip(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.02)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *arguments: typing.Any) -> None:
            """Tests ask ``asked``."""

    return Handler


def _message(identity: str) -> bytes:
    """An error of Redfish, whose text repeats what it was sent, as a careless BMC may."""
    told = {"MessageId": identity, "Message": f"denied: {BASIC} {PASSWORD} {TOKEN}"}
    return json.dumps({"error": {"code": identity, "message": told["Message"], "@Message.ExtendedInfo": [told]}}).encode()


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
