# SPDX-License-Identifier: GPL-3.0-or-later

"""The permission to write to a BMC or a node. The API server does not take part in such a write, so the code that
writes checks the permission itself.
"""

from __future__ import annotations

import typing

from ..base.errors import RdmaError

#: seconds below which nothing is begun
LEAST = 2.0
#: seconds that what a module writes on a node takes at most, from the start of that module; and that it may take until
#: that module starts there
LONGEST, START = 600.0, 120.0


class Guard:
    """A permission check that is called immediately before each write.

    :param ask: function that returns the remaining seconds of the permission, or raises the error that forbids the
        write
    """

    def __init__(self, ask: typing.Callable[[], float]) -> None:
        self._ask = ask

    def seconds(self) -> float:
        """Return the remaining seconds of the permission. The caller aborts a write that takes longer.

        :raises RdmaError: writing is not permitted, or the permission is not known
        """
        seconds = self._ask()
        if seconds < LEAST:
            raise RdmaError(
                f"the Lease of this run is certain to last for only {max(0.0, seconds):.0f} s, so this collection did"
                " not change the cluster",
                "Run again",
            )
        return seconds

    def check(self) -> None:
        """Verify that writing to the cluster is permitted at this moment, such as by the Lease of the run.

        :raises RdmaError: writing is not permitted, or the permission is not known
        """
        self.seconds()

    @classmethod
    def unfenced(cls, seconds: float) -> Guard:
        """Return a guard that permits writing without the Lease of the run. Only the module ``bios`` uses it, which
        needs no cluster and resets no node.

        :param seconds: time that a write may take
        """
        return cls(lambda: max(seconds, LEAST))
