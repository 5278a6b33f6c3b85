# SPDX-License-Identifier: GPL-3.0-or-later

"""A server that takes the archive so slowly, or refuses it in so many words, that it never ends: the whole exchange has a time."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.archive import Address, ArchiveError, Login
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import place_of
from ansible_collections.linerate.rdma.plugins.plugin_utils import _archive

Talk = typing.Callable[[socket.socket, threading.Event], None]
#: seconds after which a server of these tests ends by itself, long after it should have been given up
LONG = 8.0
PATIENCE = 0.5


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


@contextlib.contextmanager
def serving(talk: Talk) -> typing.Iterator[Address]:
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _peer = listener.accept()
            with connection, contextlib.suppress(OSError):
                talk(connection, end)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            found = place_of(f"http://127.0.0.1:{listener.getsockname()[1]}/last?x=1")
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


def refused(talk: Talk) -> typing.Tuple[ArchiveError, float]:
    with serving(talk) as place:
        began = time.monotonic()
        with pytest.raises(ArchiveError) as told:
            _archive._request(place, "PUT", place.base, Login(), "", PATIENCE, b"x")
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
    assert error.again and error.remedy and seconds < LONG / 2


def test_an_upload_goes_in_pieces_and_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call that sends all of it would have the time of one silence for the whole."""
    content, now, pieces = bytes(1 << 20), [0.0], typing.cast(typing.List[int], [])
    place = place_of("http://127.0.0.1:1/last?x=1")
    assert isinstance(place, Address)

    def take(_address: str, data: typing.Any, headers: typing.Mapping[str, str], **_options: typing.Any) -> typing.ContextManager[None]:
        assert headers["Content-Length"] == str(len(content))
        while True:
            part = data.read(8192)
            if not part:
                return contextlib.nullcontext()
            pieces.append(len(part))
            now[0] += step

    monkeypatch.setattr(_archive, "open_url", take)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    step = 0.1
    _archive._exchange(place, "PUT", place.base, Login(), "", 1.0, _archive._Body(content, 13.0), False)
    assert sum(pieces) == len(content) and now[0] > 1.0
    step = 1.0
    with pytest.raises(ArchiveError, match="has not taken it within") as told:
        _archive._exchange(place, "PUT", place.base, Login(), "", 1.0, _archive._Body(content, now[0] + 13.0), False)
    assert told.value.again and "KiB/s" in told.value.remedy
