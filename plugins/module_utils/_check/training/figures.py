# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge whether the bandwidths that nccl-tests prints were measured over RDMA. The log with these figures must prove
the transport, by the rules of _check/job/log/channels.py.

A test over TCP prints a well-formed table too, so a figure alone proves nothing about the network.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.job.nccl import NcclLog
from ..._model.job.nccl_tests import NcclTests, NcclTestTransport
from ..._model.run.findings import FAIL, UNKNOWN
from ..job.log.channels import judge_log
from ..job.log.nccl_run import cut_to_run, group_by_process
from ..job.log.ranks import describe_route

#: findings that are about the transport of each channel
_CHECKS = ("training.log", "training.version", "training.ranks", "training.channels", "training.transport")
#: reasons that a run names
_REASONS = 4
#: how often all ranks of a log are judged, at most: runs of the same processes are judged once, and others seldom share
#: some
_TIMES, _LEAST = 4, 64


def judge_tests(log: NcclLog, runs: typing.Sequence[NcclTests]) -> tuple[NcclTests, ...]:
    """Return the runs, each with the transport that the log proves for it. Runs of the same processes are judged once.

    :param log: NCCL log of the runs
    :param runs: tables that nccl-tests printed
    """
    judge = _Judge(log)
    return tuple(dataclasses.replace(run, transport=judge.transport(run)) for run in runs)


class _Judge:
    """A judge of the transport of the runs of nccl-tests in one log. Results are cached by the set of processes, since
    several runs may have the same processes.
    """

    def __init__(self, log: NcclLog) -> None:
        self._log, self._by_process = log, group_by_process(log)
        self._known: dict[tuple[tuple[str, int], ...], NcclTestTransport] = {}
        #: ranks that are still judged, where a group counts as one more
        self._left = _LEAST + _TIMES * sum(len(item.ranks) for item in log.communicators)

    def transport(self, run: NcclTests) -> NcclTestTransport:
        """Return the transport of the processes that a run lists.

        If the run lists no processes, return that of the whole log.

        :param run: parsed output of one run of nccl-tests
        """
        key = tuple((rank.host, rank.pid) for rank in run.ranks)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._judge_log_transport(*cut_to_run(self._log, run, self._by_process))
        return found

    def _judge_log_transport(self, own: NcclLog, silent: typing.Sequence[tuple[str, int]]) -> NcclTestTransport:
        ranks = 1 + sum(len(item.ranks) for item in own.communicators)
        if ranks > self._left:
            return NcclTestTransport(
                False,
                (),
                ("the log contains runs of too many different process groups: provide a separate log for each run",),
            )
        self._left -= ranks
        return _judge_transports(own, silent)


def _judge_transports(own: NcclLog, silent: typing.Sequence[tuple[str, int]]) -> NcclTestTransport:
    """Return the transports of the channels in a log, and the first reasons why the transports are not proven.

    They are proven if there is no reason.

    :param own: log reduced to the communicators of a run
    :param silent: processes of the run (host and number) without a communicator in the log
    """
    reasons = dict.fromkeys(
        f"{finding.subject}: {finding.measured}. {finding.why}"
        for finding in judge_log(own, None, False)
        if finding.check in _CHECKS and finding.status in (FAIL, UNKNOWN)
    )
    lost = [f"{host} process {pid}: the log contains no communicator of this process" for host, pid in silent]
    transports = sorted(
        {describe_route(route) for item in own.communicators for rank in item.ranks for route in rank.routes}
    )
    if not transports and not reasons and not lost:
        lost = ["no rank has a channel, because each rank is alone in its communicator"]
    found = (*lost, *reasons)
    return NcclTestTransport(not found, tuple(transports), found[:_REASONS])
