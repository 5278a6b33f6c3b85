# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of an observer, a pod that reads facts on its node: a value or an error for each requested kind of
fact.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..limits import MIB, decode_json

SOURCE = "the look at the node"
#: bytes of an answer. A node with 8 HCAs of 16 VFs shows 160 kB in all kinds, one with 128 VFs each 1 MB, and firmware
#: settings and interrupts of all of them add less than that
MOST_BYTES = 4 * MIB


class ObserverReply(typing.NamedTuple):
    """The reply of an observer for one kind of fact. It has either a value or an error.

    :ivar value: data of the fact; None if there is an error
    :ivar error: error message; None if there is a value
    """

    value: typing.Any
    error: typing.Optional[str]


def parse_replies(text: typing.Union[str, bytes], kinds: typing.Iterable[str]) -> dict[str, ObserverReply]:
    """Return the replies of an observer, by kind of fact.

    :param text: output of the program in the observer
    :param kinds: kinds of facts that were requested
    :raises ParseError: the text is not the output of an observer, or the reply for a kind is missing
    """
    data = decode_json(text, SOURCE, most_bytes=MOST_BYTES)
    return {kind: _parse_observer_reply(data.get(kind) if isinstance(data, dict) else None, kind) for kind in kinds}


def _parse_observer_reply(item: typing.Any, kind: str) -> ObserverReply:
    """Return the value or the error of one kind of fact.

    :param item: entry of the kind in the output of the observer; None if it is missing
    :raises ParseError: the entry has neither a value nor an error, or both
    """
    if isinstance(item, dict):
        value, error = item.get("value"), item.get("error")
        if value is not None and error is None:
            return ObserverReply(value, None)
        if value is None and isinstance(error, str) and error:
            return ObserverReply(None, error)
    raise ParseError(SOURCE, "nothing" if item is None else str(item)[:300], f"a value or an error of {kind}")
