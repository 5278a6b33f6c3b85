# SPDX-License-Identifier: GPL-3.0-or-later

"""The transport of the figures of nccl-tests: the log that has the figures must show it, by the verdict of channels.py.

A test over TCP prints a well-formed table as well, so a figure alone proves nothing of the network.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.findings import FAIL, UNKNOWN
from ..._model.nccl import NcclCommunicator, NcclLog
from ..._model.nccl_tests import NcclTests, NcclTestTransport
from .channels import judge_log, way

#: findings that are about the transport of each channel
_CHECKS = ("training.log", "training.version", "training.ranks", "training.channels", "training.transport")
#: reasons that a run names
_REASONS = 4


def judge_tests(log: NcclLog, runs: typing.Sequence[NcclTests]) -> typing.Tuple[NcclTests, ...]:
    """Return the runs, each with what the log proves of its transport."""
    by_process: typing.Dict[typing.Tuple[str, int], typing.List[NcclCommunicator]] = {}
    for communicator in log.communicators:
        for process in {(rank.host, rank.pid) for rank in communicator.ranks}:
            by_process.setdefault(process, []).append(communicator)
    return tuple(dataclasses.replace(run, transport=_transport(log, run, by_process)) for run in runs)


def _transport(log: NcclLog, run: NcclTests, by_process: typing.Mapping[typing.Tuple[str, int], typing.Sequence[NcclCommunicator]]) -> NcclTestTransport:
    # NCCL writes a host's name up to its first dot
    processes = dict.fromkeys((rank.host.partition(".")[0], rank.pid) for rank in run.ranks)
    # a run that lists no ranks may be about any of the log
    found_in = [item for process in processes for item in by_process.get(process, ())] if processes else log.communicators
    communicators = {item.name: item for item in found_in}
    own = dataclasses.replace(log, communicators=tuple(communicators.values()))
    reasons = dict.fromkeys(
        f"{finding.subject}: {finding.measured}. {finding.why}"
        for finding in judge_log(own, None, False)
        if finding.check in _CHECKS and finding.status in (FAIL, UNKNOWN)
    )
    lost = [f"{host} process {pid}: no communicator of it is in the log" for host, pid in processes if (host, pid) not in by_process]
    transports = sorted({way(route) for item in own.communicators for rank in item.ranks for route in rank.routes})
    if not transports and not reasons and not lost:
        lost = ["no rank has a channel: each is alone in its communicator"]
    found = (*lost, *reasons)
    return NcclTestTransport(not found, tuple(transports), found[:_REASONS])
