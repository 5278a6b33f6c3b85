# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab's cutting proxy makes of a stream of exec."""

from __future__ import annotations

import io

import pytest

from lab.cutting_proxy import BINARY, CLOSE, NORMAL, STATUS, SUCCESS, cut, frame, frames


def stream(*payloads: bytes) -> io.BytesIO:
    return io.BytesIO(b"".join(frame(BINARY, payload) for payload in payloads))


@pytest.mark.parametrize("length", [0, 125, 126, 65_535])
def test_frames_are_read_as_they_are_written(length: int) -> None:
    whole = frame(BINARY, b"x" * length)
    assert list(frames(io.BytesIO(whole + whole))) == [(whole, BINARY, b"x" * length)] * 2


def test_of_the_output_so_much_passes_and_then_all_went_well() -> None:
    sent = stream(b"\x01" + b"a" * 60, b"\x02errors", b"\x01" + b"b" * 60, b"\x01more", b"\x03{}")
    said = [(opcode, payload) for _whole, opcode, payload in frames(io.BytesIO(b"".join(cut(sent, 100))))]
    assert said[:3] == [(BINARY, b"\x01" + b"a" * 60), (BINARY, b"\x02errors"), (BINARY, b"\x01" + b"b" * 40)]
    assert said[3:] == [(BINARY, bytes((STATUS,)) + SUCCESS), (CLOSE, NORMAL)]


def test_a_shorter_stream_passes_as_it_is() -> None:
    sent = stream(b"\x01short", b"\x03{}")
    assert b"".join(cut(sent, 100)) == sent.getvalue()
