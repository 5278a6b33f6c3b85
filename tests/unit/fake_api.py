# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server that lists and watches over HTTP, takes objects with optimistic locking, and can go away, come back and
forget."""

from __future__ import annotations

import collections
import http.server
import json
import pathlib
import socket
import threading
import typing
import urllib.parse

import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of

Resource = dict[str, typing.Any]


def on_this_machine(node: Resource) -> Resource:
    """The Node whose kubelet runs on this machine, by the boot that it tells: what a play writes there by a local
    connection is written on this node."""
    status = node.get("status") or {}
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {**node, "status": {**status, "nodeInfo": {"bootID": boot}}}


class FakeApi:
    """:ivar requests: how often each path was asked for, as ``list PATH``, ``watch PATH``, ``post PATH``...
    :ivar date: what its clock says, in seconds since 1970; None for the right time, an empty text for no header Date
    """

    def __init__(self) -> None:
        self.requests: typing.Counter[str] = collections.Counter()
        #: of the last write
        self.manager = ""
        self.date: typing.Union[float, str, None] = None
        #: what answers an exec: the request's handler, the pod, and the query of its URL
        self.on_exec: typing.Optional[typing.Callable[[http.server.BaseHTTPRequestHandler, str, str], None]] = None
        self._objects: dict[str, dict[str, Resource]] = {}
        #: events of each path, with their versions
        self._events: dict[str, list[tuple[int, bytes]]] = {}
        self._version = 1
        self._oldest = 0
        self._news = threading.Condition(threading.RLock())
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

    @staticmethod
    def write_kubeconfig(url: str, folder: pathlib.Path, token: str) -> None:
        """A file ``kubeconfig`` in the folder, which leads to the server at ``url``."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": url}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "users": [{"name": "fake", "user": {"token": token}}],
            "current-context": "fake",
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(config), encoding="utf-8")

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

    def object(self, path: str) -> typing.Optional[Resource]:
        """What a path names, if it is there."""
        folder, _slash, name = path.rpartition("/")
        with self._news:
            return self._objects.get(folder, {}).get(name)

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        """POST, PUT, DELETE and server-side apply as the real one does them: a resourceVersion or uid that is not that
        of the object is a conflict.

        A PATCH is an apply of the only manager that the object has: what it leaves out is gone.
        """
        folder, _slash, name = (path, "/", body["metadata"]["name"]) if method == "POST" else path.rpartition("/")
        with self._news:
            self.requests[f"{method.lower()} {path}"] += 1
            found = self._objects.get(folder, {}).get(name)
            if folder not in self._objects or (found is None and method not in ("POST", "PATCH")):
                return 404, _status(404, "NotFound", f"{name} not found")
            if found is not None and method == "POST":
                return 409, _status(409, "AlreadyExists", f"{name} already exists")
            wanted = (body.get("preconditions") if method == "DELETE" else body["metadata"]) or {}
            if any(
                found and wanted.get(key) not in (None, found["metadata"][key]) for key in ("uid", "resourceVersion")
            ):
                return 409, _status(409, "Conflict", f"{name}: the object has been modified")
            if method == "DELETE":
                if not dry_run:
                    self.remove(folder, found or {})
                return 200, _status(200, "", "deleted")
            uid = found["metadata"]["uid"] if found else f"uid-{self._version}"
            new = {**body, "metadata": {**body["metadata"], "uid": uid}}
            if found and method == "PATCH":
                kept = {
                    key: found["metadata"][key] for key in ("resourceVersion", "generation") if key in found["metadata"]
                }
                new = {
                    **new,
                    **{key: found[key] for key in ("status",) if key in found},
                    "metadata": {**kept, **new["metadata"]},
                }
            if dry_run or (method == "PATCH" and new == found):
                return 200, new
            self._happen(folder, "ADDED" if found is None else "MODIFIED", new)
            return 200 if found else 201, self._objects[folder][name]

    def remove(self, path: str, item: Resource) -> None:
        """What a DELETE does; a subclass may have objects linger."""
        self._happen(path, "DELETED", item)

    def listing(self, path: str) -> typing.Optional[bytes]:
        with self._news:
            self.requests[f"list {path}"] += 1
            if path not in self._objects:
                return None
            return json.dumps(
                {"metadata": {"resourceVersion": str(self._version)}, "items": list(self._objects[path].values())}
            ).encode()

    def events(self, path: str, version: int, server: _Server) -> typing.Iterator[bytes]:
        """Since ``version``, until ``server`` is stopped."""
        with self._news:
            self.requests[f"watch {path}"] += 1
            if version < self._oldest:
                status = {
                    "kind": "Status",
                    "code": 410,
                    "reason": "Expired",
                    "message": f"too old resource version: {version} ({self._version})",
                }
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


class Paged:
    """The pages of a played cluster that lists: all objects are one of them."""

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        *,
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
        partial: bool = False,
    ) -> typing.Iterator[Resource]:
        listed = typing.cast(Cluster, self).list(
            kind, namespace, *([selector] if selector or fields else []), *([fields] if fields else [])
        )
        return filter(only, iter(listed.items)) if only is not None else iter(listed.items)


class LeaseHolder:
    """What a played cluster needs beside its own objects, so that a module can hold the Lease. Whoever writes is asked
    whether it may.

    :ivar lease: the Lease; None when nobody has it
    :ivar holders: who held it, one after the other
    """

    def __init__(self) -> None:
        self.lease: typing.Optional[Resource] = None
        self.holders: list[str] = []
        self.guard: typing.Callable[[], None] = lambda: None

    def guarded(self, guard: typing.Callable[[], None]) -> LeaseHolder:
        self.guard = guard
        return self

    def dated(self, kind: str, namespace: str, name: str) -> tuple[typing.Optional[Resource], str]:
        assert (kind, namespace, name) == ("Lease", "default", "linerate-rdma")
        return self.lease, ""

    def replace(self, definition: Resource) -> Resource:
        self.lease = {**definition, "metadata": {**definition["metadata"], "uid": "1", "resourceVersion": "1"}}
        self.holders.append(definition["spec"]["holderIdentity"])
        return self.lease

    def create(self, definition: Resource, manager: str = "") -> Resource:
        return self.replace(definition)

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        only: typing.Optional[Resource] = None,
    ) -> bool:
        assert (kind, only) == ("Lease", {"uid": "1", "resourceVersion": "1"})
        self.lease = None
        return True


def _choose(listing: bytes, query: typing.Mapping[str, str], partial: bool) -> bytes:
    """The part of a list that a request asks for: by the node of pods, by pages of less than 500, as metadata."""
    limit = int(query.get("limit", "500"))
    if not partial and limit >= 500 and "fieldSelector" not in query:
        return listing
    data = json.loads(listing)
    if not isinstance(data.get("items"), list):
        return listing
    node = dict(item.split("=", 1) for item in query.get("fieldSelector", "").split(",") if item).get("spec.nodeName")
    items = [item for item in data["items"] if node is None or item.get("spec", {}).get("nodeName", "") == node]
    first = int(query.get("continue", "0"))
    chosen, rest = items[first : first + limit], str(first + limit) if len(items) > first + limit else ""
    if partial:
        chosen = [{"kind": "PartialObjectMetadata", "metadata": item["metadata"]} for item in chosen]
    return json.dumps({**data, "metadata": {**data.get("metadata", {}), "continue": rest}, "items": chosen}).encode()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], api: FakeApi) -> None:
        self.api = api
        self._connections: set[socket.socket] = set()
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


def _status(code: int, reason: str, message: str) -> Resource:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body of an answer are two writes, and the second one would wait for the first one's acknowledgement
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        on_exec = self.server.api.on_exec
        if on_exec is not None and url.path.endswith("/exec"):
            on_exec(self, url.path.split("/")[-2], url.query)
            return
        if query.get("watch") == "true":
            self._watch(url.path, int(query["resourceVersion"]))
            return
        found = self.server.api.object(url.path)
        body = json.dumps(found).encode() if found is not None else self.server.api.listing(url.path)
        if found is None and body is not None:
            body = _choose(body, query, "PartialObjectMetadata" in self.headers.get("Accept", ""))
        missing = json.dumps(_status(404, "NotFound", "the server could not find the requested resource")).encode()
        self._answer(404 if body is None else 200, body or missing)

    def do_POST(self) -> None:
        url, length = urllib.parse.urlsplit(self.path), int(self.headers.get("Content-Length") or 0)
        dry_run = dict(urllib.parse.parse_qsl(url.query)).get("dryRun") == "All"
        body = json.loads(self.rfile.read(length) or b"{}")
        if self.command == "DELETE" and body:
            # the options are those of the body then, and those of the URL count for nothing
            dry_run = body.get("dryRun") == ["All"]
        self.server.api.manager = dict(urllib.parse.parse_qsl(url.query)).get("fieldManager", "")
        # tests put functions of their own in its place that know no dry run
        code, answer = self.server.api.write(self.command, url.path, body, **({"dry_run": True} if dry_run else {}))
        self._answer(code, json.dumps(answer).encode())

    do_PUT = do_DELETE = do_PATCH = do_POST

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def date_time_string(self, timestamp: typing.Optional[float] = None) -> str:
        date = self.server.api.date
        return date if isinstance(date, str) else super().date_time_string(date)

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
