# SPDX-License-Identifier: GPL-3.0-or-later

"""A flood of frames without content keeps no exec from the clock, and hides nothing that comes behind it."""

from __future__ import annotations

import socket
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.channels import Channels, _Socket

NUMBER = 20_000
TEXT = b"\x82\x03\x01hi"


@pytest.fixture
def pair() -> typing.Iterator[tuple[Channels, socket.socket, socket.socket]]:
    """Channels, their end of the connection, and that of the server."""
    mine, server = socket.socketpair()
    opened = _Socket(skip_utf8_validation=True)
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
