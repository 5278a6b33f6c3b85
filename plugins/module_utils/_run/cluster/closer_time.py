# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the clock of a node again if the first reading took long.

Reading the facts of a node can take up to a minute on a busy node or controller. The offset between two clocks is known
only as precisely as this delay.
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
    """A reading of a node's clock. All times are in seconds since 1970-01-01 UTC.

    :ivar seconds: time of the node
    :ivar asked: time of the controller before the reading
    :ivar answered: time of the controller after the reading
    """

    seconds: float
    asked: float
    answered: float


def ask_closer(asked: float, answered: float, date: typing.Callable[[], str]) -> typing.Optional[Moment]:
    """Read the clock of a node again, up to ``ATTEMPTS`` times, and return the reading with the shortest round trip.
    Return None if the first reading took at most ``SLOW_SECONDS``, or if no later one was faster.

    :param asked: time of the controller before the first reading, in seconds since 1970-01-01 UTC
    :param answered: time of the controller after the first reading, in seconds since 1970-01-01 UTC
    :param date: function that runs ``date +%s.%N`` on the node, and returns its output; output without a time ends the
        attempts
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
