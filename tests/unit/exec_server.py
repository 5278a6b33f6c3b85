# SPDX-License-Identifier: GPL-3.0-or-later

"""An API server whose pods are processes of this machine: exec as a kubelet serves it, in versions 5 and 4 of its
protocol, and as it goes wrong.

The frames are its own, so that a mistake of the library that the client uses is seen. A frame that comes for stdin is
written before the next one is received, as Kubernetes does it: a client that does not read while it writes waits for
ever as soon as the process does not read either.
"""

from __future__ import annotations

import argparse
import base64
import collections
import contextlib
import dataclasses
import hashlib
import http.server
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import typing
import urllib.parse

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
PIECE = 32 * 1024
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
#: the channel that closes others, in version 5, with that of stdin
STDIN_ENDS = b"\xff\0"
#: what clients ask for before anything else
DISCOVERY: dict[str, dict[str, typing.Any]] = {
    "/version": {"kind": "Version", "major": "1", "minor": "34", "gitVersion": "v1.34.4"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "groups": []},
}
#: what kubectl asks for besides
RESOURCES: dict[str, typing.Any] = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get"]}],
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong with a pod.

    :ivar times: attempts that fail; None for all of them
    :ivar refuse: HTTP status in place of the channels
    :ivar words: message of the Status: of a refusal, or of a failure that is told on the error channel, before the
        command has begun
    :ivar cut: bytes of stdout after which the server says success and ends the stream in order
    :ivar drop: bytes of stdout after which the connection breaks
    :ivar starve: bytes of stdin that reach the command; then its stdin ends
    :ivar silent: the channels open, and nothing comes
    """

    times: typing.Optional[int] = None
    refuse: int = 0
    words: str = ""
    cut: typing.Optional[int] = None
    drop: typing.Optional[int] = None
    starve: typing.Optional[int] = None
    silent: bool = False


class ExecServer:
    """:ivar faults: by pod
    :ivar asked: execs of each pod
    :ivar seen: the headers of each exec
    :ivar queries: of each exec
    :ivar chosen: protocols, one for each exec that was opened
    :ivar pinged: set by a ping
    :ivar most: execs at once
    """

    def __init__(
        self,
        protocols: typing.Sequence[str] = (V5, V4),
        latency: float = 0.0,
        tls: typing.Optional[ssl.SSLContext] = None,
        environment: typing.Optional[typing.Mapping[str, str]] = None,
    ) -> None:
        """:param latency: seconds before the process of an exec starts
        :param environment: of the processes; that of this one when it is left out
        """
        self.faults: dict[str, Fault] = {}
        self.asked: typing.Counter[str] = collections.Counter()
        self.seen: list[typing.Mapping[str, str]] = []
        self.queries: list[dict[str, list[str]]] = []
        self.chosen: list[str] = []
        self.pinged = threading.Event()
        self.most = self.now = 0
        self.protocols, self.latency, self.tls, self.environment = tuple(protocols), latency, tls, environment
        self.lock = threading.Condition()
        self._server = _Listener(("127.0.0.1", 0), self)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> ExecServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, number: int, seconds: float = 30) -> bool:
        """Until so many execs are open; whether that was so in time."""
        with self.lock:
            return self.lock.wait_for(lambda: self.now == number, seconds)

    def fault(self, pod: str) -> Fault:
        """Of the next exec of the pod."""
        with self.lock:
            self.asked[pod] += 1
            found = self.faults.get(pod, Fault())
            return Fault() if found.times is not None and self.asked[pod] > found.times else found

    def serve(self, handler: http.server.BaseHTTPRequestHandler, pod: str, query: str) -> None:
        """Answer an exec, of whatever server it has come to.

        :param query: of its URL
        """
        self.seen.append(dict(handler.headers.items()))
        asked, fault = urllib.parse.parse_qs(query), self.fault(pod)
        self.queries.append(asked)
        if fault.refuse:
            _say(handler, fault.refuse, _status("Failure", fault.words, "", fault.refuse))
            return
        offered = [name.strip() for name in handler.headers["Sec-WebSocket-Protocol"].split(",")]
        chosen = next(name for name in self.protocols if name in offered)
        self.chosen.append(chosen)
        key = handler.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        handler.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Protocol", chosen)):
            handler.send_header(name, value)
        handler.send_header(
            "Sec-WebSocket-Accept",
            base64.b64encode(hashlib.sha1(key.encode(), usedforsecurity=False).digest()).decode(),
        )
        handler.end_headers()
        handler.close_connection = True
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.lock.notify_all()
        try:
            _Exec(self, handler.request, typing.cast(typing.BinaryIO, handler.rfile), chosen, fault).run(asked)
        finally:
            with self.lock:
                self.now -= 1
                self.lock.notify_all()


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], api: ExecServer) -> None:
        self.api = api
        super().__init__(address, _Handler)

    def handle_error(self, request: typing.Any, client_address: typing.Any) -> None:
        """A connection that breaks is what the tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        # in the thread of the connection: a client that is slow with TLS holds up no other
        if self.server.api.tls:
            self.request = self.server.api.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def do_GET(self) -> None:
        api, url = self.server.api, urllib.parse.urlsplit(self.path)
        parts = url.path.split("/")
        if parts[-1] != "exec":
            _say(
                self,
                200,
                _pod(parts[-1]) if parts[-2] == "pods" else {**DISCOVERY, "/api/v1": RESOURCES}.get(url.path, {}),
            )
            return
        api.serve(self, parts[-2], url.query)

    def log_message(self, format: str, *args: typing.Any) -> None:
        """Says nothing."""


def _say(handler: http.server.BaseHTTPRequestHandler, status: int, body: typing.Mapping[str, typing.Any]) -> None:
    data = json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


class _Exec:
    """One exec."""

    def __init__(
        self, api: ExecServer, connection: socket.socket, incoming: typing.BinaryIO, protocol: str, fault: Fault
    ) -> None:
        self._api, self._connection, self._incoming, self._protocol, self._fault = (
            api,
            connection,
            incoming,
            protocol,
            fault,
        )
        self._lock = threading.Lock()
        self._cut = False

    def run(self, query: typing.Mapping[str, typing.Sequence[str]]) -> None:
        if self._fault.words:
            self._end(_status("Failure", self._fault.words, "InternalError", 500))
            return
        if self._fault.silent:
            self._drain()
            return
        time.sleep(self._api.latency)
        pipe, own_stderr = subprocess.PIPE, query["stderr"] == ["true"]
        errors = pipe if own_stderr else subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                query["command"],
                stdin=pipe,
                stdout=pipe,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
                env=self._api.environment,
            )
        except OSError as error:
            self._end(_status("Failure", f"OCI runtime exec failed: {error}", "InternalError", 500))
            return
        with process:
            # a kubelet opens each channel by an empty message
            for channel in (1, 2, 3):
                self._send(BINARY, bytes([channel]))
            threads = [threading.Thread(target=self._write, args=(process.stdout, 1), daemon=True)]
            if own_stderr:
                threads.append(threading.Thread(target=self._write, args=(process.stderr, 2), daemon=True))
            threads.append(threading.Thread(target=self._finish, args=(process, list(threads)), daemon=True))
            for thread in threads:
                thread.start()
            try:
                self._read(process)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                for thread in threads:
                    thread.join()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """What comes from the client, until it leaves."""
        left = self._fault.starve
        assert process.stdin is not None
        for data in self._messages():
            if data == STDIN_ENDS and self._protocol == V5:
                process.stdin.close()
            if data[:1] != b"\0" or process.stdin.closed:
                continue
            taken = data[1:] if left is None else data[1 : 1 + left]
            with contextlib.suppress(BrokenPipeError):
                _write_all(process.stdin, taken)
            if left is not None:
                left -= len(taken)
                if left == 0:
                    process.stdin.close()

    def _write(self, stream: typing.BinaryIO, channel: int) -> None:
        """What the process prints, in messages."""
        limit = None if channel != 1 else self._fault.drop if self._fault.cut is None else self._fault.cut
        sent = 0
        with contextlib.suppress(OSError):
            while not self._cut and (data := stream.read(PIECE)):
                if limit is not None and sent + len(data) >= limit:
                    self._cut = True
                    self._send(BINARY, bytes([channel]) + data[: limit - sent])
                    if self._fault.cut is not None:
                        self._end(_status("Success"))
                    else:
                        self._connection.shutdown(socket.SHUT_RDWR)
                    return
                self._send(BINARY, bytes([channel]) + data)
                sent += len(data)

    def _finish(self, process: subprocess.Popen[bytes], writers: typing.Sequence[threading.Thread]) -> None:
        """Say how it ended, behind all that it printed."""
        for thread in writers:
            thread.join()
        code = process.wait()
        if not self._cut:
            with contextlib.suppress(OSError):
                self._end(_ended(code))

    def _end(self, status: typing.Mapping[str, typing.Any]) -> None:
        self._send(BINARY, b"\3" + json.dumps(status).encode())
        if self._protocol == V5:
            self._send(BINARY, bytes([255, 1]))
        self._send(CLOSE, struct.pack("!H", 1000))

    def _drain(self) -> None:
        for _data in self._messages():
            pass

    def _messages(self) -> typing.Iterator[bytes]:
        """Data of the client, until it closes or is gone; pings are answered."""
        while True:
            try:
                opcode, data = self._receive()
            except (OSError, EOFError):
                return
            if opcode == PING:
                self._api.pinged.set()
                self._send(PONG, data)
            elif opcode == CLOSE:
                return
            elif opcode == BINARY:
                yield data

    def _receive(self) -> tuple[int, bytes]:
        """A frame. [RFC 6455, 5.2]"""
        first, size = self._take(2)
        assert first & 0x80 and size & 0x80, "in one piece, and masked"
        size &= 0x7F
        if size > 125:
            size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
        mask, data = self._take(4), self._take(size)
        key = (mask * (size // 4 + 1))[:size]
        return first & 0x0F, (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")

    def _take(self, size: int) -> bytes:
        data = self._incoming.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _send(self, opcode: int, data: bytes) -> None:
        size = len(data)
        length = (
            bytes([size])
            if size < 126
            else b"\x7e" + struct.pack("!H", size)
            if size < 65536
            else b"\x7f" + struct.pack("!Q", size)
        )
        with self._lock:
            self._connection.sendall(bytes([0x80 | opcode]) + length + data)


def _write_all(stream: typing.IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _pod(name: str) -> dict[str, typing.Any]:
    """As kubectl looks at it before it runs something there."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "observer"}]},
        "status": {"phase": "Running"},
    }


def _status(status: str, message: str = "", reason: str = "", code: int = 0) -> dict[str, typing.Any]:
    return {
        "kind": "Status",
        "status": status,
        **{key: value for key, value in (("message", message), ("reason", reason), ("code", code)) if value},
    }


def _ended(code: int) -> dict[str, typing.Any]:
    if code == 0:
        return _status("Success")
    failed = _status("Failure", f"command terminated with non-zero exit code: {code}", "NonZeroExitCode")
    return {**failed, "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}


if __name__ == "__main__":
    made = argparse.ArgumentParser(description="Serve until it is ended, and print the URL first.")
    made.add_argument("--latency", type=float, default=0.0)
    with ExecServer(latency=made.parse_args().latency) as here:
        print(here.url, flush=True)
        threading.Event().wait()
