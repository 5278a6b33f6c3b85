# SPDX-License-Identifier: GPL-3.0-or-later

"""What a BMC sends beside its answer, in records of TLS or around the body, has a limit of bytes and of time. OpenSSL
and http.client read over it for as long as it comes."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import ssl
import threading
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish import session
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.channel import TlsChannel, TooMuch
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.session import Session
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20


class Swallowed:
    """TLS whose records hold no data: it takes all that there is, and asks for more."""

    def __init__(self, incoming: ssl.MemoryBIO) -> None:
        self.incoming = incoming

    def read(self, _length: int, _place: typing.Any) -> int:
        self.incoming.read()
        raise ssl.SSLWantReadError

    def wrap_bio(self, *_arguments: typing.Any, **_options: typing.Any) -> Swallowed:
        return self


def swallowing(plain: socket.socket, seconds: float, most: int) -> TlsChannel:
    """A channel to which no data ever comes."""

    class Context:
        def wrap_bio(self, incoming: ssl.MemoryBIO, *_more: typing.Any, **_options: typing.Any) -> Swallowed:
            return Swallowed(incoming)

    return TlsChannel(plain, typing.cast(typing.Any, Context()), "bmc", time.monotonic() + seconds, most)


@contextlib.contextmanager
def flooded(pause: float = 0.0) -> typing.Iterator[socket.socket]:
    """A socket whose other end sends for ever."""
    near, far = socket.socketpair()

    def send() -> None:
        with contextlib.suppress(OSError):
            while True:
                far.sendall(b"\x17" * 65536)
                time.sleep(pause)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield near
    finally:
        near.close()
        thread.join(10)
        far.close()


def test_records_without_data_end_at_a_number_of_bytes() -> None:
    with flooded() as plain, pytest.raises(TooMuch):
        swallowing(plain, 60.0, 4 * MIB).read_into(bytearray(10))


def test_records_without_data_end_in_time_however_fast_they_come() -> None:
    start = time.monotonic()
    with flooded(0.01) as plain, pytest.raises(TimeoutError):
        swallowing(plain, 0.5, 1 << 40).read_into(bytearray(10))
    assert time.monotonic() - start < 30


class Server:
    """TLS that answers each request with a beginning, and then with the same bytes for ever."""

    def __init__(self, folder: pathlib.Path, begin: bytes, again: bytes) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(Certificates(folder).of())
        self._socket = socket.create_server(("localhost", 0))
        self.port = self._socket.getsockname()[1]
        self._begin, self._again = begin, again * (65536 // len(again))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _address = self._socket.accept()
                with contextlib.suppress(OSError), self._context.wrap_socket(plain, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(self._begin)
                    while True:
                        secure.sendall(self._again)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


def ask_refused(server: Server) -> BmcError:
    """Ask a server for an answer that is refused. It needs a second or two."""
    try:
        asked = Session(Bmc("worker-1", "localhost", server.port, "user", "password"), Trust(False), 120.0)
        with asked, pytest.raises(BmcError) as refused:
            asked.body("/redfish/v1")
    finally:
        server.close()
    return refused.value


_SKIPPED = ": its trailer and the extensions of its chunks have more than 65536 bytes"


@pytest.mark.parametrize(
    ("begin", "again", "what"),
    [
        (HEAD + b"2\r\n{}\r\n0\r\n", b"a: b\r\n", _SKIPPED),
        (HEAD, b"1;" + b"a" * 60_000 + b"\r\n \r\n", _SKIPPED),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", b" ", " has more than"),
    ],
    ids=["trailer", "extensions of chunks", "body"],
)
def test_an_answer_without_end_is_an_error_of_its_bmc(
    tmp_path: pathlib.Path, begin: bytes, again: bytes, what: str
) -> None:
    refused = ask_refused(Server(tmp_path, begin, again))
    assert refused.cause == "too_large" and f"GET /redfish/v1{what}" in refused.what


def test_a_head_with_lines_in_a_line_is_an_error_of_its_bmc(tmp_path: pathlib.Path) -> None:
    refused = ask_refused(Server(tmp_path, b"HTTP/1.1 503 Busy\r\n", b"X: " + b"\ra:" * 21_000 + b"\r\n"))
    assert refused.cause == "too_large"
    assert refused.what == "GET /redfish/v1: a line of its header contains a CR that is not at its end"


def test_each_answer_over_one_connection_has_the_limit_of_its_own() -> None:
    near, far = socket.socketpair()
    channel = swallowing(near, 5.0, 100)
    far.sendall(b"x" * 90)
    for _answer in range(2):
        channel.end = time.monotonic() + 0.2
        with pytest.raises(TimeoutError):
            channel.read_into(bytearray(10))
        channel.expect_answer()
        far.sendall(b"x" * 90)
    channel.end = time.monotonic() + 0.2
    far.sendall(b"x" * 90)
    with pytest.raises(TooMuch):
        channel.read_into(bytearray(10))
    channel.close()
    far.close()


def test_the_limit_is_above_that_of_a_body() -> None:
    assert session._MOST_RAW > 2 * session.LARGEST
