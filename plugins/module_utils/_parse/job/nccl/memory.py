# SPDX-License-Identifier: GPL-3.0-or-later

"""The limit on the memory that the parsed contents of NCCL's log may use.

Each program of a job can write into the log. The limit therefore grows with the length of the log. A log is rejected if
it names more processes and ranks than NCCL could describe in so few lines.
"""

from __future__ import annotations

import typing

from ...limits import MIB

#: bytes of memory of CPython for each thing that is kept of a log, with its share of the result and of the data that a
#: module makes of that
OF_THREAD, OF_PROCESS, OF_RANK, OF_ROUTE, OF_DEVICE, OF_CHOICE, OF_CHANNEL = 300, 2100, 2900, 1000, 300, 1000, 16
#: the same for each file in which a process is, and for a rank with its process, its routes and devices
OF_PLACE, OF_WHOLE_RANK = 900, 16 * 1024
#: an outgoing or incoming link of a rank, in up to two sets
OF_LINK = 110
#: bytes of a variable of the environment beside its value
OF_VARIABLE = 200
#: bytes for each character of the log that all of these may take, and bytes for a log of any length. A process that is
#: not forged writes some thousand characters for each of its ranks, of which 11 kB are kept, and 22 kB of 200 links:
#: the most, whatever the length of the log, is enough for 65,000 ranks
_GROWTH, _LEAST, _MOST_KEPT = 8, 128 * MIB, 2048 * MIB
#: bytes of these that one file of several may take, or one host where all ranks are in one file. 16 ranks in 30
#: communicators take 6 MB
_MOST_OF_SOURCE = 64 * MIB


class LogTooLarge(Exception):
    """The error for a log that names more processes, ranks and connections than a log of its length can name."""


class SourceTooLarge(Exception):
    """The error for a file or a host that names more processes, ranks and connections than a pod can have. The message
    is the name of that file or host.
    """


class MemoryBudget:
    """The memory that the parsed contents of a log use, in total and for each source, which is a file or host.

    :ivar characters: number of characters of the log that were read so far. The limit of memory grows with this number
    :ivar kept: bytes of memory in use
    """

    def __init__(self, least: typing.Optional[int] = None) -> None:
        """Create a budget of which nothing is used yet.

        :param least: bytes of memory that the contents of a log of any length may use; None for the default
        """
        self.characters = 0
        self.kept = 0
        self._least = _LEAST if least is None else least
        self._kept_of: dict[str, int] = {}

    def keep(self, cost: int, source: typing.Optional[str]) -> None:
        """Add the memory of an item that is kept to the amount in use.

        :param cost: bytes of memory
        :param source: name of the file or host whose lines name the item; None if there is no limit for each source
        :raises SourceTooLarge: the source names more processes, ranks and connections than one pod can have
        :raises LogTooLarge: the log names more than a log of its length, or any job, can name
        """
        if source is not None:
            kept = self._kept_of[source] = self._kept_of.get(source, 0) + cost
            if kept > _MOST_OF_SOURCE:
                self.kept += cost
                raise SourceTooLarge(source)
        self.kept += cost
        if self.kept > min(self._least + _GROWTH * self.characters, _MOST_KEPT):
            raise LogTooLarge

    def release(self, source: str) -> str:
        """Subtract the memory of a file or host that is left out, and return the reason why it is left out, for a
        message: its contents exceed the limit of memory.

        :param source: name of the file or host
        """
        self.kept -= self._kept_of.pop(source, 0)
        return f"its processes, ranks and connections require more than {_MOST_OF_SOURCE // MIB} MiB of memory"
