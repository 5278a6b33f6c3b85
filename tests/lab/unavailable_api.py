# SPDX-License-Identifier: GPL-3.0-or-later

"""A way to the lab's API server by plain HTTP on which each request is answered with 503 while a file is there.

``python -m tests.lab.unavailable_api KUBECONFIG PORT FILE`` serves on 127.0.0.1 with the identity of the kubeconfig.
"""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import socket
import socketserver
import ssl
import sys
import tempfile
import threading
import typing
import urllib.parse

import yaml

STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "code": 503,
    "reason": "ServiceUnavailable",
    "message": "the server is currently unable to handle the request",
}


class Way(socketserver.ThreadingTCPServer):
    """:ivar closed: the file that closes it"""

    daemon_threads = allow_reuse_address = True

    def __init__(self, kubeconfig: pathlib.Path, port: int, closed: pathlib.Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.closed, self.address = closed, urllib.parse.urlsplit(cluster["server"])
        self.tls = ssl.create_default_context(cadata=_text(cluster, "certificate-authority", kubeconfig))
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(_text(user, "client-certificate", kubeconfig) + _text(user, "client-key", kubeconfig))
            file.flush()
            self.tls.load_cert_chain(file.name)
        super().__init__(("127.0.0.1", port), Handler)

    def connect(self) -> ssl.SSLSocket:
        host = self.address.hostname or ""
        return self.tls.wrap_socket(socket.create_connection((host, self.address.port or 443)), server_hostname=host)


class Handler(socketserver.StreamRequestHandler):
    """One request, on a connection of its own; what comes after its head is passed on as it is, so that commands in
    pods go this way as well."""

    server: Way

    def handle(self) -> None:
        head = [self.rfile.readline()]
        while head[-1] not in (b"\r\n", b""):
            head.append(self.rfile.readline())
        if not head[0]:
            return
        if self.server.closed.exists():
            body = json.dumps(STATUS).encode()
            self.wfile.write(
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection:"
                b" close\r\n"
            )
            self.wfile.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            return
        upgrades = any(line.lower().startswith(b"upgrade:") for line in head)
        kept = head[:-1] if upgrades else [line for line in head[:-1] if not line.lower().startswith(b"connection:")]
        with self.server.connect() as there:
            there.sendall(b"".join([*kept, b"" if upgrades else b"Connection: close\r\n", b"\r\n"]))
            threading.Thread(target=self._pass_on, args=(there,), daemon=True).start()
            with contextlib.suppress(OSError):
                while data := there.recv(65536):
                    self.wfile.write(data)

    def _pass_on(self, there: ssl.SSLSocket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := self.rfile.read1(65536):
                there.sendall(data)


def _text(mapping: typing.Mapping[str, str], key: str, kubeconfig: pathlib.Path) -> str:
    """What a kubeconfig holds, or what the file holds that it names."""
    if f"{key}-data" in mapping:
        return base64.b64decode(mapping[f"{key}-data"]).decode()
    return (kubeconfig.parent / mapping[key]).read_text(encoding="utf-8")


def kubeconfig_of(port: int) -> dict[str, typing.Any]:
    """That of a user who comes this way."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "lab", "user": {}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }


def main() -> None:
    kubeconfig, port, closed = sys.argv[1:]
    with Way(pathlib.Path(kubeconfig), int(port), pathlib.Path(closed)) as way:
        print("ready", flush=True)
        way.serve_forever()


if __name__ == "__main__":
    main()
