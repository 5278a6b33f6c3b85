# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer of a played API server, as the client streams it."""

from __future__ import annotations

import typing

#: bytes of a piece where the client leaves it to the server
_PIECE = 1000


class StreamedAnswer:
    """An answer with status 200, which comes in pieces."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, amt: typing.Optional[int], decode_content: bool = True) -> typing.Iterator[bytes]:
        """Yield the body, ``amt`` bytes at a time."""
        step = amt or _PIECE
        return (self.body[begin : begin + step] for begin in range(0, len(self.body), step))

    def close(self) -> None:
        """Nothing is open."""
