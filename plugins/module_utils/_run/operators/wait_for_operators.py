# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until all required operators are ready."""

from __future__ import annotations

import typing

from ..._check.operators.needed import list_missing
from ..._model.intent.intent import Intent
from ..._model.operators.operators import OperatorsSeen
from ..._observe.kubernetes.shell import Clock
from ..cluster.poll import poll

PAUSE_SECONDS = 5.0


def wait_until_all_serve(
    read: typing.Callable[[], OperatorsSeen],
    intent: Intent,
    nodes: typing.Sequence[str],
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    say: typing.Callable[[str], None],
) -> OperatorsSeen:
    """Wait until all required operators are ready, at most ``limit`` seconds. Return the last state, whether they are
    ready or not.

    :param read: function without arguments that reads the state of the operators
    :param intent: the intent, from which the required operators follow
    :param nodes: names of the nodes of the run
    :param limit: maximum duration of the wait, in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    :raises ApiError: the API server cannot be reached
    """
    return poll(
        read,
        lambda seen: list_missing(intent, seen, nodes),
        "all operators are ready",
        limit,
        PAUSE_SECONDS,
        clock,
        pause,
        say,
    )
