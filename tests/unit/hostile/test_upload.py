# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that takes the archive so slowly, or refuses it in so many words, that it never ends: the whole exchange has
a time."""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import socket
import threading
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import (
    Address,
    ArchiveError,
    ArchiveLogin,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import place_of
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils import _archive, _archive_request

Talk = typing.Callable[[socket.socket, threading.Event], None]
#: seconds after which a server of these tests ends by itself, long after it should have been given up
LONG = 16.0
PATIENCE = 1.0
RUN = "20260102T030405Z-aaaaaa"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@contextlib.contextmanager
def serving(talk: Talk, path: str = "last?x=1") -> typing.Iterator[Address]:
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                talk(connection, end)

        def serve() -> None:
            listener.settimeout(0.05)
            while not end.is_set():
                with contextlib.suppress(socket.timeout):
                    connection, _peer = listener.accept()
                    connection.settimeout(LONG)
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            found = place_of(f"http://127.0.0.1:{listener.getsockname()[1]}/{path}")
            assert isinstance(found, Address)
            yield found
        finally:
            end.set()
            thread.join(10)


def drip(connection: socket.socket, end: threading.Event, text: bytes) -> None:
    """A byte each moment, for as long as nobody hangs up."""
    until = time.monotonic() + LONG
    while time.monotonic() < until and not end.wait(0.02):
        connection.sendall(text)


def refused(talk: Talk) -> tuple[ArchiveError, float]:
    with serving(talk) as place:
        began = time.monotonic()
        with pytest.raises(ArchiveError) as told:
            _archive_request.send_request(place, "PUT", place.base, ArchiveLogin(), "", PATIENCE, b"x")
        return told.value, time.monotonic() - began


def test_a_refusal_that_drips_is_told_with_what_came_of_it() -> None:
    def talk(connection: socket.socket, end: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 507 Full\r\nContent-Length: 60000\r\n\r\n<Code>NoRoom</Code>")
        drip(connection, end, b".")

    error, seconds = refused(talk)
    assert "HTTP 507" in error.seen and "NoRoom" in error.seen and seconds < LONG / 2


def test_headers_that_drip_are_given_up() -> None:
    def talk(connection: socket.socket, end: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        drip(connection, end, b".")

    error, seconds = refused(talk)
    assert not error.again and error.remedy and seconds < LONG / 2


def test_a_server_that_says_continue_without_end_is_given_up() -> None:
    error, seconds = refused(go_on)
    assert not error.again and "more than 8 interim responses" in str(error) and error.remedy and seconds < LONG / 2


def take(connection: socket.socket) -> bytes:
    """Read a request whole: what is left unread resets the connection. Returns its head."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(65536)
    head, _blank, body = said.partition(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < size:
        body += connection.recv(65536)
    return head


def go_on(connection: socket.socket, end: threading.Event) -> None:
    take(connection)
    drip(connection, end, b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_a_header(connection: socket.socket, end: threading.Event) -> None:
    take(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    drip(connection, end, b".")


def drip_the_checksum(connection: socket.socket, end: threading.Event) -> None:
    """The archive is taken."""
    if b".sha256 HTTP" in take(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
        drip(connection, end, b".")
    connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def say_nothing(connection: socket.socket, end: threading.Event) -> None:
    take(connection)
    end.wait(LONG)


def be_busy(connection: socket.socket, _end: threading.Event) -> None:
    take(connection)
    connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def take_all(connection: socket.socket, _end: threading.Event) -> None:
    take(connection)
    connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def send_to(tmp_path: pathlib.Path, talk: Talk, in_all: float) -> tuple[ArchiveError, int, float]:
    """Why a server does not get the archive, how often it was asked, and how long that took."""
    FactFolder(str(tmp_path), RUN).begin(RunStart(RUN, "2026-01-02T03:04:05+00:00"))
    asked: list[None] = []

    def count(connection: socket.socket, end: threading.Event) -> None:
        asked.append(None)
        talk(connection, end)

    with serving(count, "in/") as place:
        began = time.monotonic()
        with pytest.raises(ArchiveError) as told:
            _archive.send(
                str(tmp_path), RUN, place, ArchiveLogin(), "", 1, PATIENCE, _archive.Attempts(3, 0.01, in_all)
            )
        return told.value, len(asked), time.monotonic() - began


@pytest.mark.parametrize(("talk", "requests"), [(drip_a_header, 1), (go_on, 1), (drip_the_checksum, 2)])
def test_a_server_that_is_too_slow_is_not_asked_again(tmp_path: pathlib.Path, talk: Talk, requests: int) -> None:
    error, asked, seconds = send_to(tmp_path, talk, 3 * PATIENCE)
    assert not error.again and error.remedy and asked == requests and seconds < LONG / 2


def test_all_attempts_together_have_one_time(tmp_path: pathlib.Path) -> None:
    error, asked, seconds = send_to(tmp_path, say_nothing, 2.5 * PATIENCE)
    assert error.remedy and asked <= 2 and seconds < LONG / 2


def test_a_server_that_stays_busy_is_asked_as_often_as_is_said(tmp_path: pathlib.Path) -> None:
    error, asked, _seconds = send_to(tmp_path, be_busy, 60.0)
    assert error.again and asked == 4 and "HTTP 503" in error.seen


def test_a_server_that_is_busy_once_gets_the_archive(tmp_path: pathlib.Path) -> None:
    FactFolder(str(tmp_path), RUN).begin(RunStart(RUN, "2026-01-02T03:04:05+00:00"))
    answers = iter([be_busy, take_all, take_all])

    def talk(connection: socket.socket, end: threading.Event) -> None:
        next(answers)(connection, end)

    with serving(talk, "in/") as place:
        sent = _archive.send(
            str(tmp_path), RUN, place, ArchiveLogin(), "", 1, PATIENCE, _archive.Attempts(3, 0.01, 20.0)
        )
    assert sent.sum_place and next(answers, None) is None


def test_an_upload_goes_in_pieces_and_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call that sends all of it would have the time of one silence for the whole."""
    content, now, pieces = bytes(1 << 20), [0.0], typing.cast(list[int], [])
    place = place_of("http://127.0.0.1:1/last?x=1")
    assert isinstance(place, Address)

    def take(
        _address: str, data: typing.Any, headers: typing.Mapping[str, str], **_options: typing.Any
    ) -> typing.ContextManager[None]:
        assert headers["Content-Length"] == str(len(content))
        while True:
            part = data.read(8192)
            if not part:
                return contextlib.nullcontext()
            pieces.append(len(part))
            now[0] += step

    monkeypatch.setattr(_archive_request, "open_url", take)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    step = 0.1
    _archive_request._exchange(
        place, "PUT", place.base, ArchiveLogin(), "", 1.0, _archive_request._Body(content, 13.0, 13.0), False
    )
    assert sum(pieces) == len(content) and now[0] > 1.0
    step = 1.0
    with pytest.raises(ArchiveError, match="did not accept the archive within") as told:
        _archive_request._exchange(
            place,
            "PUT",
            place.base,
            ArchiveLogin(),
            "",
            1.0,
            _archive_request._Body(content, now[0] + 13.0, 13.0),
            False,
        )
    assert not told.value.again and "KiB/s" in told.value.remedy


#: heads that no server sends, and the word by which they are refused
HEADS: typing.Mapping[str, tuple[bytes, bytes, str]] = {
    "lines that end with a CR": (b"HTTP/1.1 200 OK\r\na: " + b"b\r" * 1000 + b"\r\n", b"", "CR"),
    "many bytes": (b"HTTP/1.1 200 OK\r\n", b"a: " + b"b" * 8000 + b"\r\n", "bytes"),
    "interim responses before the final response": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "interim"),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_without_an_end_is_refused(kind: str) -> None:
    first, more, word = HEADS[kind]

    def talk(connection: socket.socket, end: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(first)
        drip(connection, end, more * 10)

    told, _seconds = refused(talk)
    assert "sent no valid HTTP response" in str(told) and word in str(told) and not told.again
    assert http.client.HTTPConnection.response_class is http.client.HTTPResponse
