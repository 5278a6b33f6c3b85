# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until all operators that are needed serve."""

from __future__ import annotations

import typing

from ..._check.operators.needed import missing
from ..._model.intent.intent import Intent
from ..._model.operators.operators import OperatorsSeen
from ..._observe.kubernetes.shell import Clock
from ..cluster.poll import poll

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
    """Wait until nothing keeps an operator from serving, or the time is over, and return the last state.

    :param look: reads the cluster
    :param limit: in seconds
    :param pause: sleeps; given in, so that a test needs no time
    :raises ApiError: the server cannot be reached
    """
    return poll(
        look, lambda seen: missing(intent, seen, nodes), "all operators serve", limit, PAUSE_SECONDS, clock, pause, say
    )
