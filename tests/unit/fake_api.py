# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that lists and watches over HTTP, and can go away, come back and forget: what a real one does to a long wait."""

from __future__ import annotations

import collections
import http.server
import json
import socket
import threading
import typing
import urllib.parse

from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster, path_of

Resource = typing.Dict[str, typing.Any]


class FakeApi:
    """:ivar requests: how often each path was asked for, as ``list PATH`` or ``watch PATH``"""

    def __init__(self) -> None:
        self.requests: typing.Counter[str] = collections.Counter()
        self._objects: typing.Dict[str, typing.Dict[str, Resource]] = {}
        #: events of each path, with their versions
        self._events: typing.Dict[str, typing.List[typing.Tuple[int, bytes]]] = {}
        self._version = 1
        self._oldest = 0
        self._news = threading.Condition()
        self._port = 0
        self._server: typing.Optional[_Server] = None

    def serve(self, kind: str, objects: typing.Iterable[Resource], namespace: str = "") -> None:
        """Make a kind known, with its first objects."""
        path = path_of(kind, namespace)
        self._objects[path] = {item["metadata"]["name"]: item for item in objects}
        self._events[path] = []

    def put(self, kind: str, item: Resource, namespace: str = "") -> None:
        self._happen(path_of(kind, namespace), "MODIFIED", item)

    def drop(self, kind: str, item: Resource, namespace: str = "") -> None:
        self._happen(path_of(kind, namespace), "DELETED", item)

    def forget(self) -> None:
        """A watch from an earlier version than now is refused with 410."""
        with self._news:
            self._version += 1
            self._oldest = self._version

    def start(self) -> None:
        """On the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), self)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """All connections break, and new ones are refused."""
        if self._server:
            server, self._server = self._server, None
            server.shutdown()
            server.cut()
            with self._news:
                self._news.notify_all()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @staticmethod
    def client(url: str) -> Cluster:
        """A real client of the server at ``url``."""
        return Cluster(DynamicClient(ApiClient(Configuration(host=url)), discoverer=lambda *_arguments: None))

    def _happen(self, path: str, action: str, item: Resource) -> None:
        with self._news:
            self._version += 1
            new = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self._version)}}
            if action == "DELETED":
                self._objects[path].pop(item["metadata"]["name"], None)
            else:
                self._objects[path][item["metadata"]["name"]] = new
            self._events[path].append((self._version, json.dumps({"type": action, "object": new}).encode() + b"\n"))
            self._news.notify_all()

    def listing(self, path: str) -> typing.Optional[bytes]:
        with self._news:
            self.requests[f"list {path}"] += 1
            if path not in self._objects:
                return None
            return json.dumps({"metadata": {"resourceVersion": str(self._version)}, "items": list(self._objects[path].values())}).encode()

    def events(self, path: str, version: int, server: _Server) -> typing.Iterator[bytes]:
        """Since ``version``, until ``server`` is stopped."""
        with self._news:
            self.requests[f"watch {path}"] += 1
            if version < self._oldest:
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": f"too old resource version: {version} ({self._version})"}
                yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
                return
            position = sum(number <= version for number, _event in self._events[path])
        while True:
            with self._news:
                while len(self._events[path]) == position and self._server is server:
                    self._news.wait()
                if self._server is not server:
                    return
                fresh = self._events[path][position:]
            position += len(fresh)
            yield b"".join(event for _number, event in fresh)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: typing.Tuple[str, int], api: FakeApi) -> None:
        self.api = api
        self._connections: typing.Set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: typing.Any, client_address: typing.Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def handle_error(self, request: typing.Any, client_address: typing.Any) -> None:
        """A connection that breaks is what the tests are about."""

    def cut(self) -> None:
        self.server_close()
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                # it has ended by itself
                continue


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if query.get("watch") == "true":
            self._watch(url.path, int(query["resourceVersion"]))
            return
        body = self.server.api.listing(url.path)
        self.send_response(404 if body is None else 200)
        body = body or json.dumps({"kind": "Status", "code": 404, "reason": "NotFound", "message": "the server could not find the requested resource"}).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, path: str, version: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in self.server.api.events(path, version, self.server):
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: typing.Any) -> None:
        """Says nothing."""
