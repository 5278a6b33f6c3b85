# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks a node for its time by the shortest way, where the first answer was long on its way.

A look at a node takes its time to get there and to start, up to a minute on a busy node or controller, and how far two
clocks are apart is known no better.
"""

from __future__ import annotations

import time
import typing

from ..._parse.node.date import parse_date

#: an answer that takes longer tells little about the clock of who gave it
SLOW_SECONDS = 5.0
#: of a busy machine one is soon among the fast ones
ATTEMPTS = 5


class Moment(typing.NamedTuple):
    """The time of a node, and between which moments of the controller's clock it was read. Seconds since 1970-01-01
    UTC."""

    seconds: float
    asked: float
    answered: float


def ask_closer(asked: float, answered: float, date: typing.Callable[[], str]) -> typing.Optional[Moment]:
    """Return the moment with the shortest way of at most five; None where the first answer was fast enough, or none was
    faster.

    :param asked: for the first answer, by the controller's clock
    :param date: asks the node for ``date +%s.%N``, and returns what it says
    """
    best, shortest = None, answered - asked
    for _attempt in range(ATTEMPTS):
        if shortest <= SLOW_SECONDS:
            break
        begin = time.time()
        seconds = parse_date(date())
        end = time.time()
        if seconds is None:
            # it will not say more the next time
            break
        if 0 <= end - begin < shortest:
            best, shortest = Moment(seconds, begin, end), end - begin
    return best
