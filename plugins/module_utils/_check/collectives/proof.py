# SPDX-License-Identifier: GPL-3.0-or-later

"""The proof that a figure of nccl-tests measures the network it is attributed to. Check ids: ``collectives.*``.

A collective over TCP, over shared memory or over another fabric's HCAs also prints a well-formed table, and so does one
with wrong results. A figure counts only if its run is complete and correct, and the log of the same run shows the
transport of each channel of each rank. _check/job/log/channels.py judges the log, the communicators and the ranks, as
in stage training. channel_verdicts.py judges each channel, and network_use.py the nodes and rails that the run used.
"""

from __future__ import annotations

import dataclasses

from ..._model.base.phrases import count_of, format_clause
from ..._model.job.nccl import NcclLog
from ..._model.job.nccl_tests import NcclTestRow, NcclTests
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, build_pass
from ..job.log.channels import judge_log
from ..job.log.nccl_run import cut_to_run, group_by_process
from ..job.log.ranks import WHOLE, WITHOUT_NVLS
from .channel_verdicts import (
    EACH_CHANNEL,
    NEED_WHOLE_LOG,
    ChannelVerdict,
    RequiredProof,
    count_channels,
    judge_channels,
    judge_connections,
    report_channels,
)
from .network_use import check_nodes, check_rails_used, report_leaving

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
        """Return the number of channels that were judged. For an all-to-all test, return the number of ranks."""
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
    """Return the proof that the log gives for a run of nccl-tests: a verdict on each channel, and findings on the
    properties that the log must show.

    :param log: NCCL log of the run
    :param run: parsed table that nccl-tests printed
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
    findings += [check_nodes(communicator, wanted) for communicator in own.communicators]
    findings += report_channels(verdicts)
    if wanted.nodes > 1:
        if run.collective != EACH_TO_EACH:
            findings += [finding for communicator in own.communicators for finding in report_leaving(communicator)]
        findings += check_rails_used(own, wanted)
    return Proof(verdicts, tuple(findings))


def count_rows(run: NcclTests, proof: Proof) -> tuple[NcclTestRow, ...]:
    """Return the lines of the table of a run that may be judged: all lines if the log proves the run, else none.

    :param run: parsed table that nccl-tests printed
    :param proof: proof that the log gives for the run
    """
    return run.rows if proof.status == PASS else ()


def _check_figures(test: str, run: NcclTests, log: NcclLog) -> Finding:
    """Return the finding on whether the run is complete and has no wrong values.

    :param test: subject of the finding
    :param run: parsed output of one run of nccl-tests
    :param log: log of the run, whose environment variables may explain wrong values
    """
    expected = "a complete run without wrong values"
    wrong = sum(figure.wrong or 0 for row in run.rows for figure in row.figures) or run.out_of_bounds or 0
    if wrong:
        said = sorted({name for process in log.processes for name in process.environment if name in _CHUNKS})
        why = (
            "The collective returned wrong values, so its bandwidth does not count. A GPU, an HCA, a library or a"
            " setting corrupts data."
        )
        remedy = (
            "Run dmesg on the nodes of the test: drain a node with Xid or ECC errors, and replace its GPU. Run"
            " ibqueryerrors (on Ethernet ethtool -S), and replace a cable whose error counters increase. If"
            " neither shows an error, use an image without NCCL settings and with another version of NCCL. Then"
            " run stage collectives again."
        )
        if said:
            why = (
                f"The collective returned wrong values, so its bandwidth does not count. {', '.join(said)} is set, and"
                " NCCL may then write beyond the end of its buffers."
            )
            remedy = f"Remove {', '.join(said)} from the image, then run stage collectives again."
        return Finding("collectives.figures", test, FAIL, count_of(wrong, "wrong value"), expected, why, remedy)
    if run.errors:
        why = "The results of a test that ended with an error are not valid."
        return Finding(
            "collectives.figures",
            test,
            FAIL,
            run.errors[0],
            expected,
            why,
            (
                "Correct the error under 'measured', the first one in the output of the test. If it does not"
                " show the cause, follow the remedy of the finding collectives.problem of this test. Then run"
                " stage collectives again."
            ),
        )
    if run.cpu_time:
        why = "The test measured the time that the CPU takes to start the collective (option -C), not the bandwidth."
        return Finding(
            "collectives.figures",
            test,
            UNKNOWN,
            "times of the CPU instead of bandwidths",
            expected,
            why,
            (
                "Use the unchanged programs of nccl-tests in rdma_cluster.collectives.image: the stage does not set"
                " option -C, so a script in the image does. Then run stage collectives again."
            ),
        )
    if run.lacks:
        why = f"The output of the test is not complete: {format_clause(run.lacks[0])}."
        return Finding(
            "collectives.figures",
            test,
            UNKNOWN,
            f"incomplete run with {count_of(len(run.rows), 'row')}",
            expected,
            why,
            (
                "Run stage collectives again. If the finding remains, follow the remedy of the finding"
                " collectives.started of this test, which shows why it ended early."
            ),
        )
    if not all(any(figure.wrong is not None for figure in row.figures) for row in run.rows):
        why = (
            "The test did not verify the values. It ran with -c 0, or with a version before 2.13, which does not report"
            " the number of wrong values."
        )
        return Finding(
            "collectives.figures",
            test,
            UNKNOWN,
            "values not verified",
            expected,
            why,
            (
                "Set rdma_cluster.collectives.image to an image with the unchanged programs of nccl-tests 2.13 or"
                " newer, then run stage collectives again."
            ),
        )
    return build_pass("collectives.figures", test, f"{count_of(len(run.rows), 'row')}, 0 wrong values", expected)


def _check_groups(test: str, run: NcclTests, log: NcclLog, wanted: RequiredProof) -> Finding:
    """Return the finding on whether the figure is that of the slowest group, and whether the log contains all groups.
    nccl-tests truncates a long list of ranks, so ranks of a group may be missing from it.

    :param test: subject of the finding
    :param run: parsed output of one run of nccl-tests
    :param wanted: properties that the log must show
    """
    listed, logged = len({rank.group for rank in run.ranks}), len(log.communicators)
    expected = (
        f"{count_of(wanted.groups, 'group')} in the log, and the bandwidth of the slowest of them"
        if wanted.groups > 1
        else "1 group"
    )
    if listed > 1 and not wanted.slowest_group:
        why = (
            "The ranks are in several groups. Without option -a 3, the bandwidth is that of the group of the first"
            " rank, or a mean that hides a slow group."
        )
        return Finding(
            "collectives.groups",
            test,
            UNKNOWN,
            f"{listed} groups",
            expected,
            why,
            "Use the unchanged programs of nccl-tests in rdma_cluster.collectives.image: the stage sets option"
            " -a 3, which reports the slowest rank of all groups. Then run stage collectives again.",
        )
    if logged and logged != wanted.groups:
        why = (
            "NCCL's log has another number of communicators than the test has groups. The log of some ranks is missing,"
            " or nccl-tests formed other groups than the stage requested."
        )
        remedy = (
            "If the image sets NCCL_TESTS_SPLIT, remove it from the image: the stage sets this variable itself."
            f" {NEED_WHOLE_LOG}"
        )
        return Finding(
            "collectives.groups", test, UNKNOWN, f"{count_of(logged, 'group')} in the log", expected, why, remedy
        )
    return build_pass("collectives.groups", test, count_of(logged or listed or 1, "group"), expected)


def _report_silent(host: str, pid: int) -> Finding:
    why = (
        "The test lists this process, but NCCL's log contains no communicator of it. The process wrote no log, the"
        " process failed before it had a communicator, or the run omitted the log and reports the reason."
    )
    return Finding(
        "collectives.ranks",
        f"{host} process {pid}",
        UNKNOWN,
        "lines of the process not in the log",
        "lines of the process in the log, with a communicator",
        why,
        NEED_WHOLE_LOG,
    )


def _check_log(log: NcclLog, run: NcclTests, wanted: RequiredProof) -> list[Finding]:
    """Judge NCCL's log of a run as stage training judges the log of a job (ranks, channels, transport). Return the
    failed and unknown findings, with check ids of stage collectives.

    :param run: parsed output of one run of nccl-tests
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
    # the stage reads the logs itself, so its user has none to give
    return [dataclasses.replace(item, check=_CHECKS[item.check], remedy=_adapt_remedy(item.remedy)) for item in found]


def _adapt_remedy(remedy: str) -> str:
    """Return the remedy of a finding on the log of a job for the log of a test: the stage starts the processes and
    reads the logs itself, so its user runs no job and gives no log.

    :param remedy: remedy of a finding of stage training
    """
    remedy = remedy.replace(f"{WITHOUT_NVLS} ", "").replace(WHOLE, NEED_WHOLE_LOG)
    for words in (", and run the job again", " Then run the job again."):
        remedy = remedy.replace(words, "")
    for check, own in (*_CHECKS.items(), ("training.hcas", "collectives.rails")):
        remedy = remedy.replace(check, own)
    for words in ("the job and from its image", "the job and its image"):
        remedy = remedy.replace(words, "the image in rdma_cluster.collectives.image")
    remedy = remedy.replace("Run the job again", "Run stage collectives again").replace(
        " from the job", " from the image"
    )
    if "un stage collectives again" in remedy:
        return remedy
    return f"{remedy} Then run stage collectives again."


def _check_point_to_point(test: str) -> Finding:
    why = (
        "The test uses send and receive connections, which NCCL creates at their first use. The log does not report the"
        " number of these connections, so it is unknown whether the log contains all of them."
    )
    remedy = (
        "Add all_reduce to rdma_cluster.collectives.tests, whose log proves the transport, then run stage"
        " collectives again. Or waive this finding: the bandwidth of this test then stays unverified."
    )
    return Finding(
        "collectives.channels",
        test,
        UNKNOWN,
        "number of connections not in the log",
        "each connection in the log",
        why,
        remedy,
    )


def _report_alone(test: str) -> Finding:
    why = "Each rank is alone in its communicator, so the test sent no data."
    return Finding(
        "collectives.channels",
        test,
        UNKNOWN,
        "no channel",
        EACH_CHANNEL,
        why,
        (
            "Set rdma_cluster.collectives.gpus_per_node to the number of GPUs of a node, and remove NCCL_TESTS_SPLIT"
            " from the image, if it sets it. Then run stage collectives again."
        ),
    )
