# SPDX-License-Identifier: GPL-3.0-or-later

"""A wait that asks again and again, for what is spread over too many kinds to watch."""

from __future__ import annotations

import typing

from ..._observe.kubernetes.shell import Clock

#: between two looks at a node that lacks something that it had
LOOK_AGAIN_SECONDS = 10.0

T = typing.TypeVar("T")


def poll(
    look: typing.Callable[[], T],
    lacking: typing.Callable[[T], tuple[str, ...]],
    well: str,
    limit: float,
    every: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
    say: typing.Callable[[str], None],
) -> T:
    """Poll until nothing is missing or the time is over, and return the last state.

    :param look: reads the cluster
    :param lacking: what of it is not as it has to be, in words; each change of it is said
    :param well: said once nothing lacks
    :param limit: of the wait, in seconds; ``every``: so many seconds lie between two looks
    :param pause: sleeps; given in, so that a test needs no time
    """
    start, told = clock(), typing.cast(tuple[str, ...], ())
    while True:
        seen = look()
        missing = lacking(seen)
        if missing != told:
            for line in missing or (well,):
                say(f"{clock() - start:.0f} s  {line}")
            told = missing
        if not missing or clock() - start >= limit:
            return seen
        pause(every)
