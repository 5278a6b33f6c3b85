# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until all operators that are needed serve. A poll: it is short, and what it looks at is spread over many kinds."""

from __future__ import annotations

import typing

from .._check.operators.needed import missing
from .._model.intent import Intent
from .._model.operators import OperatorsSeen
from .._observe.kubernetes import Clock

PAUSE_SECONDS = 5.0


def wait_until_all_serve(
    look: typing.Callable[[], OperatorsSeen],
    intent: Intent,
    nodes: typing.Sequence[str],
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    say: typing.Callable[[str], None],
) -> OperatorsSeen:
    """What was seen once nothing keeps an operator from serving, or at the end of the time.

    :param look: reads the cluster
    :param limit: in seconds
    :param pause: sleeps; given in, so that a test needs no time
    :raises ApiError: the server cannot be reached
    """
    start, told = clock(), typing.cast(typing.Tuple[str, ...], ())
    while True:
        seen = look()
        lacking = missing(intent, seen, nodes)
        if lacking != told:
            for line in lacking or ("all operators serve",):
                say(f"{clock() - start:.0f} s  {line}")
            told = lacking
        if not lacking or clock() - start >= limit:
            return seen
        pause(PAUSE_SECONDS)
