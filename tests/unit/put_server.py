# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that takes files by PUT, as WebDAV and S3 do, or answers what a test wants; with TLS or without."""

from __future__ import annotations

import http.server
import pathlib
import ssl
import threading
import typing


class Asked(typing.NamedTuple):
    method: str
    path: str
    authorization: typing.Optional[str]


class PutServer:
    """:ivar files: what was put, by path with its query
    :ivar asked: each request
    :ivar answers: codes of the next PUTs, one after the other; then all are taken
    :ivar body: of a refusal
    :ivar silent: whether a PUT gets no answer until the server ends
    """

    def __init__(self, certificate: typing.Optional[pathlib.Path] = None) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[Asked] = []
        self.answers: list[int] = []
        self.headers: dict[str, str] = {}
        self.body = b""
        self.silent = False
        self._end = threading.Event()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._tls = certificate is not None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # each connection shakes hands in its own thread
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return f"https://localhost:{self.port}" if self._tls else f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> PutServer:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                server.asked.append(Asked("HEAD", self.path, self.headers["Authorization"]))
                self._answer(403)

            def do_PUT(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                server.asked.append(Asked("PUT", self.path, self.headers["Authorization"]))
                if server.silent:
                    server._end.wait()
                    return
                code = server.answers.pop(0) if server.answers else 201
                if code == 201:
                    server.files[self.path] = content
                self._answer(code)

            def _answer(self, code: int) -> None:
                body = b"" if code == 201 or self.command == "HEAD" else server.body
                self.send_response(code)
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: typing.Any) -> None:
                """Nobody reads it."""

        return Handler
