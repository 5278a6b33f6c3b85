# SPDX-License-Identifier: GPL-3.0-or-later

"""Select the part of NCCL's log that belongs to a run of nccl-tests: the communicators of the processes that the test
lists.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.job.nccl import NcclCommunicator, NcclLog
from ...._model.job.nccl_tests import NcclTests

ByProcess = typing.Mapping[tuple[str, int], typing.Sequence[NcclCommunicator]]


def group_by_process(log: NcclLog) -> ByProcess:
    """Return the communicators in which each process has a rank, by the host and the number of the process."""
    found: dict[tuple[str, int], list[NcclCommunicator]] = {}
    for communicator in log.communicators:
        for process in {(rank.host, rank.pid) for rank in communicator.ranks}:
            found.setdefault(process, []).append(communicator)
    return found


def cut_to_run(log: NcclLog, run: NcclTests, by_process: ByProcess) -> tuple[NcclLog, tuple[tuple[str, int], ...]]:
    """Return the log reduced to the communicators of one run, and those processes of the run (host and number) that
    have no communicator in the log.

    A test truncates a long list of ranks, so a communicator belongs to the run if any of its processes is listed. A run
    that lists no ranks gets all communicators.

    :param run: parsed output of one run of nccl-tests
    :param by_process: communicators of each process in the log
    """
    # NCCL writes a host's name up to its first dot
    processes = dict.fromkeys((rank.host.partition(".")[0], rank.pid) for rank in run.ranks)
    found = [item for process in processes for item in by_process.get(process, ())] if processes else log.communicators
    communicators = {item.name: item for item in found}
    return dataclasses.replace(log, communicators=tuple(communicators.values())), tuple(
        process for process in processes if process not in by_process
    )
