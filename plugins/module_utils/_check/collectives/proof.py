# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof that a figure of nccl-tests measures the network it is attributed to. Check ids: ``collectives.*``.

A collective over TCP, over shared memory or over another fabric's HCAs also prints a well-formed table, and so does one
with wrong results. A figure counts only if its run is complete and correct, and the log of the same run shows the
transport of each channel of each rank. _check/job/channels.py judges the log, the communicators and the ranks, as in
stage training. channel_verdicts.py judges each channel.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.job.nccl import NcclCommunicator, NcclLog
from ..._model.job.nccl_tests import NcclTestRow, NcclTests
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, ok
from ..job.channels import judge_log
from ..job.nccl_run import cut_to_run, group_by_process
from ..job.ranks import spell_numbers
from .channel_verdicts import (
    EACH_CHANNEL,
    NEED_WHOLE_LOG,
    ChannelVerdict,
    RequiredProof,
    count_channels,
    judge_channels,
    judge_connections,
    list_hcas,
    report_channels,
)

#: test in which each rank sends to each other one, so that it is known how many connections there must be
EACH_TO_EACH = "alltoall"
#: others that use connections of send and receive alone, of which a log does not say how many there must be
POINT_TO_POINT = ("alltoallv", "gather", "hypercube", "scatter", "sendrecv")
#: settings of chunks, with which NCCL may write past a buffer [NVIDIA/nccl issue 2408: NCCL_CHUNK_SIZE of 1 MiB]
_CHUNKS = (
    "NCCL_CHUNK_SIZE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_P2P_PCI_CHUNKSIZE",
    "NCCL_P2P_NVL_CHUNKSIZE",
    "NCCL_BUFFSIZE",
)
#: the findings of stage training on the same log, with their check ids here
_CHECKS = {
    "training.channels": "collectives.channels",
    "training.gpu_direct": "collectives.gpu_direct",
    "training.log": "collectives.log",
    "training.problem": "collectives.problem",
    "training.ranks": "collectives.ranks",
    "training.transport": "collectives.transport",
    "training.version": "collectives.version",
}


@dataclasses.dataclass(frozen=True)
class Proof:
    """The verdicts that show whether the figures of a run count.

    :ivar channels: verdicts on all channels of each rank
    :ivar findings: findings on the run, its log, its ranks and its hosts
    """

    channels: tuple[ChannelVerdict, ...]
    findings: tuple[Finding, ...]

    @property
    def count(self) -> int:
        """Return the number of channels that were judged, or the number of ranks for an all-to-all test."""
        return count_channels(self.channels)

    @property
    def status(self) -> Status:
        """Return ``fail`` if any part failed, ``pass`` if there is a channel and all parts are proven, else
        ``unknown``.
        """
        seen = {verdict.status for verdict in self.channels} | {finding.status for finding in self.findings}
        if FAIL in seen:
            return FAIL
        return UNKNOWN if UNKNOWN in seen or not self.channels else PASS


def prove_run(log: NcclLog, run: NcclTests, wanted: RequiredProof) -> Proof:
    """Return the proof that the log gives for a run of nccl-tests, with a finding for each property that it does not
    show.

    :param run: table that nccl-tests printed
    :param wanted: properties that the log must show
    """
    own, silent = cut_to_run(log, run, group_by_process(log))
    test = run.collective or "test"
    verdicts = tuple(
        verdict
        for communicator in own.communicators
        for verdict in (judge_connections if run.collective == EACH_TO_EACH else judge_channels)(
            communicator, own, wanted
        )
    )
    findings = [_check_figures(test, run, own), _check_groups(test, run, own, wanted)]
    findings += [_report_silent(host, pid) for host, pid in silent]
    findings += _check_log(own, run, wanted)
    if run.collective in POINT_TO_POINT:
        findings.append(_check_point_to_point(test))
    elif own.communicators and not verdicts:
        findings.append(_report_alone(test))
    findings += [_check_nodes(communicator, wanted) for communicator in own.communicators]
    findings += report_channels(verdicts)
    if wanted.nodes > 1:
        if run.collective != EACH_TO_EACH:
            findings += [finding for communicator in own.communicators for finding in _report_leaving(communicator)]
        findings += _check_rails_used(own, wanted)
    return Proof(verdicts, tuple(findings))


def count_rows(run: NcclTests, proof: Proof) -> tuple[NcclTestRow, ...]:
    """Return the rows of a run that count: all rows if the run is proven, else none.

    :param run: table that nccl-tests printed
    """
    return run.rows if proof.status == PASS else ()


def _check_figures(test: str, run: NcclTests, log: NcclLog) -> Finding:
    """Return the finding on whether the run is complete and has no wrong values.

    :param test: subject of the finding
    """
    expected = "a whole run, and no wrong value"
    wrong = sum(figure.wrong or 0 for row in run.rows for figure in row.figures) or run.out_of_bounds or 0
    if wrong:
        said = sorted({name for process in log.processes for name in process.environment if name in _CHUNKS})
        why = (
            "The collective gave wrong values, so that its figure means nothing: a GPU, an HCA, a library or a setting"
            " damages data."
        )
        remedy = (
            "See dmesg of the nodes for Xid and ECC errors, and the counters of the links. Run again with no setting of"
            " NCCL, and with another version."
        )
        if said:
            why = (
                f"The collective gave wrong values, so that its figure means nothing. {', '.join(said)} is set, with"
                " which NCCL may write past its buffers."
            )
            remedy = f"Take {', '.join(said)} out of the job, and run again."
        return Finding("collectives.figures", test, FAIL, f"{wrong} wrong values", expected, why, remedy)
    if run.errors:
        why = "The test ended with an error, so that its figures are not those of the collective."
        return Finding(
            "collectives.figures",
            test,
            FAIL,
            run.errors[0],
            expected,
            why,
            "See the first error in the log, and the findings on it.",
        )
    if run.cpu_time:
        why = (
            "Its times are those that the CPU took to start the collective (option -C), and say nothing of the"
            " bandwidth."
        )
        return Finding("collectives.figures", test, UNKNOWN, "times of the CPU", expected, why, "Run it without -C.")
    if run.lacks:
        why = f"These are not the figures of a whole run: {run.lacks[0]}."
        return Finding(
            "collectives.figures",
            test,
            UNKNOWN,
            f"{len(run.rows)} rows",
            expected,
            why,
            "Give all that the test printed, to its last line.",
        )
    if not all(any(figure.wrong is not None for figure in row.figures) for row in run.rows):
        why = (
            "Nobody looked whether the values are right: -c 0, or a version before 2.13, which says no number of wrong"
            " ones."
        )
        return Finding(
            "collectives.figures", test, UNKNOWN, "not checked", expected, why, "Run a version of today with -c 1."
        )
    return ok("collectives.figures", test, f"{len(run.rows)} rows, 0 wrong", expected)


def _check_groups(test: str, run: NcclTests, log: NcclLog, wanted: RequiredProof) -> Finding:
    """Return the finding on whether the figure is that of the slowest group, and whether the log contains all groups.
    nccl-tests truncates a long list of ranks, so ranks of a group may be missing from it.

    :param test: subject of the finding
    :param wanted: properties that the log must show
    """
    listed, logged = len({rank.group for rank in run.ranks}), len(log.communicators)
    expected = f"{wanted.groups} groups, and the figure of the slowest" if wanted.groups > 1 else "one group"
    if listed > 1 and not wanted.slowest_group:
        why = (
            "The ranks are in several groups, and without -a 3 the figure is that of the first rank's group, or a mean"
            " that hides a slow one."
        )
        return Finding(
            "collectives.groups",
            test,
            UNKNOWN,
            f"{listed} groups",
            expected,
            why,
            "Run it with -a 3: the time of the slowest rank of all groups.",
        )
    if logged and logged != wanted.groups:
        why = (
            "NCCL's log has another number of communicators: the log of some ranks is missing, or the groups are not"
            " those that were asked for."
        )
        remedy = f"Compare NCCL_TESTS_SPLIT with the GPUs of a node. {NEED_WHOLE_LOG}"
        return Finding("collectives.groups", test, UNKNOWN, f"{logged} groups in the log", expected, why, remedy)
    return ok("collectives.groups", test, f"{logged or listed or 1} groups", expected)


def _report_silent(host: str, pid: int) -> Finding:
    why = (
        "The test lists this process, and NCCL's log has no communicator of it: it wrote no log, failed before it had"
        " one, or the run left its log out and says why."
    )
    return Finding(
        "collectives.ranks", f"{host} process {pid}", UNKNOWN, "not in the log", "a communicator", why, NEED_WHOLE_LOG
    )


def _check_log(log: NcclLog, run: NcclTests, wanted: RequiredProof) -> list[Finding]:
    """Return the failed and unknown findings that the check of stage training has on the same log, with check ids of
    stage collectives.

    :param wanted: properties that the log must show
    """
    # each group has its own number of ranks, which the log may name
    found = [item for item in judge_log(log, wanted.ranks, wanted.gpu_direct) if item.status in (FAIL, UNKNOWN)]
    if run.collective in (EACH_TO_EACH, *POINT_TO_POINT):
        found = [
            item
            for item in found
            if item.status == FAIL or item.check not in ("training.channels", "training.transport")
        ]
    return [dataclasses.replace(item, check=_CHECKS[item.check]) for item in found]


def _check_point_to_point(test: str) -> Finding:
    why = (
        "It sends over connections of send and receive, which NCCL makes at their first use. The log does not say how"
        " many there must be, so that it can't be told whether all of them are in it."
    )
    remedy = (
        "Prove the transport by an all_reduce in the same pods; take this figure beside it, as one that nothing proves."
    )
    return Finding("collectives.channels", test, UNKNOWN, "point to point", "each channel in the log", why, remedy)


def _report_alone(test: str) -> Finding:
    why = "Each rank is alone in its communicator, so that nothing was sent."
    return Finding(
        "collectives.channels",
        test,
        UNKNOWN,
        "no channel",
        EACH_CHANNEL,
        why,
        "See NCCL_TESTS_SPLIT: MOD takes the GPUs of a node, DIV likewise.",
    )


def _check_nodes(communicator: NcclCommunicator, wanted: RequiredProof) -> Finding:
    subject, nodes, expected = f"communicator {communicator.name}", count_nodes(communicator), f"{wanted.nodes} nodes"
    if nodes == wanted.nodes:
        return ok("collectives.nodes", subject, f"{nodes} nodes", expected)
    why = (
        "The group is another one than was asked for, so that its figure can't be held against what that should reach."
    )
    return Finding(
        "collectives.nodes",
        subject,
        FAIL,
        f"{nodes} nodes",
        expected,
        why,
        "Compare the hosts of the launcher, and NCCL_HOSTID, in all pods.",
    )


def count_nodes(communicator: NcclCommunicator) -> int:
    """Return the number of nodes that the ranks of a communicator report, or the number of their hosts where that is
    greater.
    """
    return max([rank.nodes or 0 for rank in communicator.ranks] + [len({rank.host for rank in communicator.ranks})])


def _report_leaving(communicator: NcclCommunicator) -> typing.Iterator[Finding]:
    """Report the channels that, according to the log, do not leave every node over the network."""
    nodes, hosts = count_nodes(communicator), {rank.host for rank in communicator.ranks}
    if nodes < 2:
        return
    leaves: dict[int, list[str]] = {}
    for rank in communicator.ranks:
        over = {
            channel
            for route in rank.routes
            if route.transport in ("NET", "COLLNET") and route.direction == "send"
            for channel in route.channels
        }
        for channel in over:
            leaves.setdefault(channel, []).append(rank.host)
    channels = range(max((rank.channels or 0 for rank in communicator.ranks), default=0))
    within = [
        channel for channel in channels if len(leaves.get(channel, ())) < nodes or not hosts <= set(leaves[channel])
    ]
    if within:
        why = f"Channel {spell_numbers(within)} does not leave each node over the network, by what is in the log."
        measured = f"{len(within)} of {len(channels)} channels"
        yield Finding(
            "collectives.network",
            f"communicator {communicator.name}",
            UNKNOWN,
            measured,
            "each channel leaves each node",
            why,
            NEED_WHOLE_LOG,
        )


def _check_rails_used(log: NcclLog, wanted: RequiredProof) -> typing.Iterator[Finding]:
    """Yield a finding on each host: whether it uses all rails of the run.

    :param wanted: properties that the log must show
    """
    processes = {(process.host, process.pid): process for process in log.processes}
    used: dict[str, dict[str, None]] = {}
    for communicator in log.communicators:
        for rank in communicator.ranks:
            process = processes.get((rank.host, rank.pid))
            over = [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]
            used.setdefault(rank.host, {}).update(
                dict.fromkeys(name for route in over if process for name in list_hcas(route, process))
            )
    expected = f"rail {spell_numbers(wanted.rails)} of each host"
    for host, names in used.items():
        rails = wanted.hcas.get(host, {})
        seen = {rails[name] for name in names if rails.get(name) is not None}
        idle = [rail for rail in wanted.rails if rail not in seen]
        measured = f"rail {spell_numbers(sorted(rail for rail in seen if rail is not None)) or 'none'}"
        unknown = [name for name in names if name in rails and rails[name] is None]
        if not idle:
            yield ok("collectives.rails", host, measured, expected)
        elif unknown or not names or host not in wanted.hcas:
            why = (
                f"It is not known of which rail {', '.join(unknown or names)} is."
                if names
                else "No channel of this host is on an HCA that the log names."
            )
            yield Finding(
                "collectives.rails",
                host,
                UNKNOWN,
                measured,
                expected,
                why,
                "See the stage fabric for the rails, and collectives.way of this host.",
            )
        else:
            why = (
                f"Nothing goes over rail {spell_numbers(idle)}: NCCL_IB_HCA leaves it out, its port is down, or no GPU"
                " of the run is near it."
            )
            yield Finding(
                "collectives.rails",
                host,
                FAIL,
                measured,
                expected,
                why,
                "Compare NCCL_IB_HCA with ibv_devinfo in the pod; use as many GPUs as rails.",
            )
