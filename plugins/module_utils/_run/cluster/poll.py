# SPDX-License-Identifier: GPL-3.0-or-later

"""A wait that reads the cluster repeatedly. It is used for states that depend on too many kinds of objects to watch all
of them.
"""

from __future__ import annotations

import typing

from ..._observe.kubernetes.shell import Clock

#: between two looks at a node that lacks something that it had
LOOK_AGAIN_SECONDS = 10.0

T = typing.TypeVar("T")


def poll(
    read: typing.Callable[[], T],
    lacking: typing.Callable[[T], tuple[str, ...]],
    well: str,
    limit: float,
    every: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    say: typing.Callable[[str], None],
) -> T:
    """Read the cluster repeatedly until ``lacking`` returns an empty tuple or the limit is reached. Return the last
    state.

    :param read: function that reads the cluster and returns its state
    :param lacking: function that gets a state and returns the conditions that the state does not fulfill yet, as lines
        of text. Each new line is reported
    :param well: message that is reported when all conditions are fulfilled
    :param limit: maximum duration of the wait, in seconds
    :param every: seconds between two reads
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :param say: function that shows a line of progress to the user
    """
    start, told = clock(), typing.cast(tuple[str, ...], ())
    while True:
        seen = read()
        missing = lacking(seen)
        if missing != told:
            # of a thousand nodes, one that changes again and again makes its own line
            for line in missing or (well,):
                if line not in told:
                    say(f"{clock() - start:.0f} s  {line}")
            told = missing
        if not missing or clock() - start >= limit:
            return seen
        pause(every)
