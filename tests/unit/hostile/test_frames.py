# SPDX-License-Identifier: GPL-3.0-or-later

"""A flood of frames without content keeps no exec from the clock, and hides nothing that comes behind it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec import channels as channels_module
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.channels import Channels, Socket
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.shell import Shell

NUMBER = 20_000
TEXT = b"\x82\x03\x01hi"


@pytest.fixture
def pair() -> typing.Iterator[tuple[Channels, socket.socket, socket.socket]]:
    """Channels, their end of the connection, and that of the server."""
    mine, server = socket.socketpair()
    opened = Socket(skip_utf8_validation=True)
    opened.sock, opened.connected = mine, True
    with mine, server:
        yield Channels(opened), mine, server


@pytest.mark.parametrize(
    ("first", "frame", "last"),
    [
        (b"", b"\x82\x00", b""),
        (b"", b"\x89\x00", b""),
        (b"", b"\x8a\x00", b""),
        # a message in many parts
        (b"\x02\x01\x01", b"\x00\x00", b"\x80\x00"),
    ],
)
def test_a_turn_ends_in_a_flood_of_empty_frames(
    pair: tuple[Channels, socket.socket, socket.socket], first: bytes, frame: bytes, last: bytes
) -> None:
    channels, mine, server = pair
    server.sendall(first + frame * NUMBER + last + TEXT)
    channels.update(0.0)
    assert mine.recv(1, socket.MSG_PEEK)
    turns, came = 1, b""
    while channels.open and not came and turns < NUMBER:
        channels.update(0.0)
        turns, came = turns + 1, channels.take(1)
    assert (came, channels.lost) == (b"hi", "")


@pytest.mark.parametrize("frame", [b"\x82\x00", b"\x89\x00", b"\x82\x01\x01"])
def test_frames_of_nothing_have_an_end(
    pair: tuple[Channels, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, frame: bytes
) -> None:
    """They kept a processor busy for all the time of a command, and the other nodes waiting."""
    monkeypatch.setattr(channels_module, "MOST_FRAMES", NUMBER)
    channels, _mine, server = pair
    sent = 0
    server.setblocking(False)
    while channels.open and sent < 10 * NUMBER:
        with contextlib.suppress(BlockingIOError):
            server.sendall(frame * 500)
        sent += 500
        channels.update(0.0)
    assert not channels.open and "more than any command prints" in channels.lost
    assert sent < 3 * NUMBER


LARGE = 1 << 20
#: the head of a frame of 1 MiB
HEAD = b"\x82\x7f" + LARGE.to_bytes(8, "big")


@pytest.mark.parametrize("sent", [HEAD + b"\x01" * LARGE, b"\x82\x01\x01" * LARGE])
def test_a_frame_that_comes_byte_by_byte_has_an_end(
    pair: tuple[Channels, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Each byte took as long as all before it together."""
    monkeypatch.setattr(channels_module, "MOST_FRAMES", 1000)
    monkeypatch.setattr(channels_module, "FRAMES_A_SECOND", 0)
    channels, _mine, server = pair
    bytes_sent = 0
    while channels.open and bytes_sent < 10_000:
        server.sendall(sent[bytes_sent : bytes_sent + 1])
        bytes_sent += 1
        channels.update(0.0)
    assert not channels.open and "more than any command prints" in channels.lost
    assert 1000 <= bytes_sent < 3100


def test_pieces_of_a_frame_are_kept_as_one(pair: tuple[Channels, socket.socket, socket.socket]) -> None:
    channels, _mine, server = pair
    for byte in HEAD + b"\x01" * 3000:
        server.sendall(bytes((byte,)))
        channels.update(0.0)
    held = channels._socket
    assert channels.open and not held.frame_buffer.recv_buffer
    assert len(held._came) == 3000


def test_a_turn_ends_within_a_frame_that_comes_byte_by_byte(
    pair: tuple[Channels, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    channels, _mine, _server = pair
    sent = iter(HEAD + b"\x01" * LARGE)
    monkeypatch.setattr(channels_module, "BURST_SECONDS", 0.01)
    monkeypatch.setattr(channels_module, "MOST_FRAMES", 2 * LARGE)
    channels._socket.frame_buffer.recv = lambda _size: bytes((next(sent),))
    channels._receive()
    assert channels.open and sum(1 for _left in sent) > LARGE // 8


def test_pieces_as_a_network_makes_them_are_not_counted(
    pair: tuple[Channels, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels_module, "MOST_FRAMES", 10)
    monkeypatch.setattr(channels_module, "FRAMES_A_SECOND", 0)
    channels, _mine, server = pair
    frame = b"\x82\x7e\xff\xff\x01" + b"x" * 65534
    for begin in range(0, len(frame), 1400):
        server.sendall(frame[begin : begin + 1400])
        channels.update(0.0)
    assert channels.take(1) == b"x" * 65534 and channels._socket._heard < 4


def test_a_program_may_print_for_hours_line_by_line(
    pair: tuple[Channels, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels_module, "MOST_FRAMES", 100)
    channels, _mine, server = pair
    channels._socket._since -= 3600.0
    for _turn in range(50):
        server.sendall(TEXT * 1000)
        channels.update(0.0)
        channels.take(1)
    assert channels.open and not channels.lost


def test_a_stream_that_was_not_asked_for_is_not_kept(pair: tuple[Channels, socket.socket, socket.socket]) -> None:
    """A shell asks for one stream. What a kubelet sends on the other one stayed in memory as long as it ran."""
    channels, _mine, server = pair
    shell = Shell(channels, time.monotonic)
    part = b"\x82\x7e\xff\xff\x02" + b"x" * 65534
    thread = threading.Thread(target=flood, args=(server, part), daemon=True)
    thread.start()
    result = shell.wait(60.0)
    server.close()
    thread.join(10)
    assert result.error == f"more than {4 << 20} bytes arrived on an unexpected stream, so the connection was closed"
    assert sum(map(len, channels._came.values())) < 2 << 20


def flood(server: socket.socket, part: bytes) -> None:
    with contextlib.suppress(OSError):
        for _part in range(4096):
            server.sendall(part)


def test_answers_to_pings_that_nobody_reads_take_no_memory(pair: tuple[Channels, socket.socket, socket.socket]) -> None:
    channels, mine, server = pair
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    sent = 0
    for _turn in range(20):
        server.sendall((b"\x89\x7d" + b"x" * 125) * 500)
        sent += 127 * 500
        while has_more(mine):
            channels.update(0.0)
    assert sent > 1_000_000 and len(channels._socket.waiting) < 128 * 1024


def has_more(sock: socket.socket) -> bool:
    """Whether there is something to receive."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False
