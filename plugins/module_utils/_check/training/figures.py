# SPDX-License-Identifier: GPL-3.0-or-later

"""The transport of the figures of nccl-tests: the log that has the figures must show it, by the verdict of _check/job/channels.py.

A test over TCP prints a well-formed table as well, so a figure alone proves nothing of the network.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.findings import FAIL, UNKNOWN
from ..._model.nccl import NcclLog
from ..._model.nccl_tests import NcclTests, NcclTestTransport
from ..job.channels import judge_log, way
from ..job.nccl_run import ByProcess, cut_to_run, group_by_process

#: findings that are about the transport of each channel
_CHECKS = ("training.log", "training.version", "training.ranks", "training.channels", "training.transport")
#: reasons that a run names
_REASONS = 4


def judge_tests(log: NcclLog, runs: typing.Sequence[NcclTests]) -> typing.Tuple[NcclTests, ...]:
    """Return the runs, each with what the log proves of its transport."""
    by_process = group_by_process(log)
    return tuple(dataclasses.replace(run, transport=_transport(log, run, by_process)) for run in runs)


def _transport(log: NcclLog, run: NcclTests, by_process: ByProcess) -> NcclTestTransport:
    own, silent = cut_to_run(log, run, by_process)
    reasons = dict.fromkeys(
        f"{finding.subject}: {finding.measured}. {finding.why}"
        for finding in judge_log(own, None, False)
        if finding.check in _CHECKS and finding.status in (FAIL, UNKNOWN)
    )
    lost = [f"{host} process {pid}: no communicator of it is in the log" for host, pid in silent]
    transports = sorted({way(route) for item in own.communicators for rank in item.ranks for route in rank.routes})
    if not transports and not reasons and not lost:
        lost = ["no rank has a channel: each is alone in its communicator"]
    found = (*lost, *reasons)
    return NcclTestTransport(not found, tuple(transports), found[:_REASONS])
