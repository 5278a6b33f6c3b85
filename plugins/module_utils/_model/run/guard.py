# SPDX-License-Identifier: GPL-3.0-or-later

"""The right to write somewhere that no API server watches: a BMC, a node. Nothing that writes there can be made without
it."""

from __future__ import annotations

import typing

from ..base.errors import RdmaError

#: seconds below which nothing is begun
LEAST = 2.0
#: seconds that what a module writes on a node takes at most, from the start of that module; and that it may take until
#: that module starts there
LONGEST, START = 600.0, 120.0


class Guard:
    """Asked immediately before each write, for as long as that write may take.

    :param ask: says for how many seconds the right lasts; raises what forbids the write
    """

    def __init__(self, ask: typing.Callable[[], float]) -> None:
        self._ask = ask

    def seconds(self) -> float:
        """For how long the right to write lasts, from now on. A write that takes longer is given up.

        :raises RdmaError: nothing may be written, or nobody knows whether it may
        """
        seconds = self._ask()
        if seconds < LEAST:
            raise RdmaError(
                f"the hold of the run on the cluster can be relied on for {max(0.0, seconds):.0f} s only, so nothing"
                " was written",
                "Run again",
            )
        return seconds

    def check(self) -> None:
        """:raises RdmaError: nothing may be written, or nobody knows whether it may"""
        self.seconds()

    @classmethod
    def unfenced(cls, seconds: float) -> Guard:
        """For who changes no cluster, so that no Lease is there to be asked: the module ``bios`` alone, see its
        documentation."""
        return cls(lambda: max(seconds, LEAST))
