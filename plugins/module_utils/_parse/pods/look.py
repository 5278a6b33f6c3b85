# SPDX-License-Identifier: GPL-3.0-or-later

"""What the archive of _observe/node/look.py prints in an observer: a value or an error for each kind that was asked
for."""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..limits import MIB, decode_json

SOURCE = "the look at the node"
#: bytes of an answer. A node with 8 HCAs of 16 VFs shows 160 kB in all kinds, one with 128 VFs each 1 MB, and firmware
#: settings and interrupts of all of them add less than that
MOST_BYTES = 4 * MIB


class ObserverReply(typing.NamedTuple):
    """:ivar value: of the fact, as data; None beside an error"""

    value: typing.Any
    error: typing.Optional[str]


def parse_replies(text: typing.Union[str, bytes], kinds: typing.Iterable[str]) -> dict[str, ObserverReply]:
    """Parse the reply of an observer, by kind.

    :raises ParseError: no such answer
    """
    data = decode_json(text, SOURCE, most_bytes=MOST_BYTES)
    return {kind: _parse_observer_reply(data.get(kind) if isinstance(data, dict) else None, kind) for kind in kinds}


def _parse_observer_reply(item: typing.Any, kind: str) -> ObserverReply:
    if isinstance(item, dict):
        value, error = item.get("value"), item.get("error")
        if value is not None and error is None:
            return ObserverReply(value, None)
        if value is None and isinstance(error, str) and error:
            return ObserverReply(None, error)
    raise ParseError(SOURCE, "nothing" if item is None else str(item)[:300], f"a value or an error of {kind}")
