# SPDX-License-Identifier: GPL-3.0-or-later

"""A container registry over TLS, in a thread: manifests, tags, and the ways in which real ones ask for a user, refuse,
fail and dawdle."""

from __future__ import annotations

import base64
import dataclasses
import http.server
import json
import pathlib
import ssl
import threading
import typing
import urllib.parse

USER, PASSWORD, TOKEN = "puller", "s3cret-of-the-registry", "t0ken-for-one-repository"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
Way = typing.Literal["open", "basic", "bearer"]


@dataclasses.dataclass
class Registry:
    """What it does, and what it was asked.

    :ivar images: tags and digests, by repository
    :ivar way: how it is entered
    :ivar status: of each answer on an image, by the end of its path
    :ivar realm: of the token server; empty: its own
    :ivar held: repositories whose answer waits until the server stops
    :ivar more: headers of each answer
    """

    images: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    way: Way = "open"
    status: dict[str, int] = dataclasses.field(default_factory=dict)
    realm: str = ""
    held: tuple[str, ...] = ()
    location: str = ""
    more: tuple[tuple[str, str], ...] = ()
    asked: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    address: str = ""
    stopped: threading.Event = dataclasses.field(default_factory=threading.Event)


class _Handler(http.server.BaseHTTPRequestHandler):
    registry: Registry

    def log_message(self, format: str, *args: typing.Any) -> None:
        """Nothing: what was asked is kept."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        registry, authorization = self.registry, self.headers.get("Authorization") or ""
        registry.asked.append((self.command, self.path, authorization))
        place = urllib.parse.urlsplit(self.path)
        if place.path == "/token":
            self._token(authorization)
            return
        repository, _slash, what = place.path[len("/v2/") :].rpartition(
            "/manifests/" if "/manifests/" in place.path else "/tags/"
        )
        if repository in registry.held:
            registry.stopped.wait(30)
        for end, status in registry.status.items():
            if place.path.endswith(end):
                self._send(status, {"Location": registry.location} if registry.location else {})
                return
        expected = {"open": "", "basic": f"Basic {BASIC}", "bearer": f"Bearer {TOKEN}"}[registry.way]
        if expected and authorization != expected:
            realm = registry.realm or f"https://{registry.address}/token"
            header = (
                'Basic realm="site"'
                if registry.way == "basic"
                else f'Bearer realm="{realm}",service="site",scope="repository:{repository}:pull"'
            )
            self._send(401, {"WWW-Authenticate": header})
        elif "/tags/" in place.path:
            self._send(
                200,
                {},
                (
                    json.dumps({"name": repository, "tags": registry.images[repository]})
                    if repository in registry.images
                    else "{}"
                ),
            )
        else:
            takes = "application/vnd.oci.image.index.v1+json" in (self.headers.get("Accept") or "")
            self._send(200 if takes and what in registry.images.get(repository, ()) else 404)

    def _token(self, authorization: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        refreshed = "refresh_token=identity" in self.rfile.read(length).decode() if length else False
        good = authorization == f"Basic {BASIC}" or refreshed
        self._send(200 if good else 401, {}, json.dumps({"token": TOKEN}))

    def _send(self, status: int, headers: typing.Optional[dict[str, str]] = None, text: str = "") -> None:
        self.send_response(status)
        for name, value in (*(headers or {}).items(), *self.registry.more):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())


class RegistryServer:
    """One registry on a port of this machine."""

    def __init__(self, registry: Registry, certificate: pathlib.Path) -> None:
        handler = type("Handler", (_Handler,), {"registry": registry})
        self._server = http.server.ThreadingHTTPServer(("localhost", 0), handler)
        self._server.daemon_threads = True
        trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trust.load_cert_chain(certificate)
        self._server.socket = trust.wrap_socket(self._server.socket, server_side=True)
        self.registry = registry
        registry.address = f"localhost:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let go of whom it holds, and end."""
        self.registry.stopped.set()
        self._server.shutdown()
        self._server.server_close()
