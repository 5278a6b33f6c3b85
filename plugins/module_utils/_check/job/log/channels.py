# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge NCCL's log: the transport of each channel of each rank. Check ids: ``training.*``.

A line that lists devices is no proof of RDMA, and neither is a job that ran to its end: NCCL falls back to TCP without
an error. Only the transports of the channels are evidence, and every channel is checked. A rank or channel that is
missing in the log is reported as unknown.
"""

from __future__ import annotations

import typing

from ...._model.base.phrases import count_of
from ...._model.base.text import join_first
from ...._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank
from ...._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, build_pass
from .problems import check_problem
from .ranks import ON, WHOLE, check_channels, check_communicator, check_gpu_direct, check_transport
from .sources import leave_out_forged, report_left_out

#: findings of one status that are given one by one, on ranks and on hosts each
MOST_FINDINGS = 20_000


def find_whole_job(log: NcclLog) -> typing.Optional[NcclCommunicator]:
    """Return the largest communicator of a log, which is taken as that of all ranks of the job.

    Return None if no communicator has a size.
    """
    return max((item for item in log.communicators if item.size), key=lambda item: item.size or 0, default=None)


def spans_nodes(communicator: NcclCommunicator) -> bool:
    """Return whether the ranks of a communicator are on several nodes."""
    return len({rank.host for rank in communicator.ranks}) > 1 or any(
        (rank.nodes or 1) > 1 for rank in communicator.ranks
    )


def limit_findings(found: typing.Iterable[Finding]) -> list[Finding]:
    """Return the first ``MOST_FINDINGS`` findings of each status. The further findings of a check with the same status
    become one finding, which states their number.

    :param found: findings on communicators and ranks
    """
    kept: list[Finding] = []
    seen: dict[Status, int] = {}
    more: dict[tuple[str, Status], int] = {}
    for item in found:
        seen[item.status] = seen.get(item.status, 0) + 1
        if seen[item.status] <= MOST_FINDINGS:
            kept.append(item)
        else:
            more[item.check, item.status] = more.get((item.check, item.status), 0) + 1
    why = f"Only the first {MOST_FINDINGS} findings of a status are listed. The others are counted."
    remedy = (
        "Follow the remedies of the listed findings first. If the log has lines of several jobs, set"
        " training_logs to the log of one job only."
    )
    expected = f"at most {MOST_FINDINGS} findings of a status"
    for (check, status), count in more.items():
        measured = f"{count_of(count, 'more finding')} of this check"
        kept.append(
            build_pass(check, "further findings", measured, expected)
            if status == PASS
            else Finding(check, "further findings", status, measured, expected, why, remedy)
        )
    return kept


def judge_log(
    log: NcclLog,
    ranks: typing.Optional[int],
    gpu_direct: bool,
    nvlink: typing.AbstractSet[str] = frozenset(),
) -> list[Finding]:
    """Return the findings on a log of NCCL: on the log as a whole, on each communicator, each rank and each problem.

    Findings on communicators and ranks are limited as in ``limit_findings``. A log without lines of NCCL gets one
    finding, and one for each file that was left out.

    :param ranks: number of ranks that the job must have; None accepts the number in the log
    :param gpu_direct: whether each channel over the network must use GPUDirect RDMA
    :param nvlink: hosts on nodes that are known to have NVLink between all GPUs
    """
    if not log.nccl_lines:
        return [_check_log(log), *map(report_left_out, log.left_out)]
    log, forged = leave_out_forged(log)
    left_out = map(report_left_out, log.left_out)
    first = (_check_log(log), _check_version(log), _check_job(log, ranks), *left_out, *forged)
    return [
        *first,
        *limit_findings(_check_ranks(log, gpu_direct, nvlink)),
        *(check_problem(problem, log) for problem in log.problems),
        *_report_untold(log),
    ]


def judge_problems(log: NcclLog) -> list[Finding]:
    """Return a finding for each warning and error in a log, with its cause and remedy. The log need not contain lines
    of NCCL: other libraries and PyTorch write such messages too.
    """
    left_out = map(report_left_out, log.left_out)
    return [*left_out, *(check_problem(problem, log) for problem in log.problems), *_report_untold(log)]


def _check_ranks(log: NcclLog, gpu_direct: bool, nvlink: typing.AbstractSet[str]) -> typing.Iterator[Finding]:
    """Check that each communicator is complete in the log, and that each of its ranks has logged its channels, their
    transport and, if required, GPUDirect RDMA.

    :param gpu_direct: whether each channel over the network must use GPUDirect RDMA
    :param nvlink: hosts on nodes that are known to have NVLink between all GPUs
    """
    job = find_whole_job(log)
    processes = {(process.host, process.pid): process for process in log.processes}
    for communicator in log.communicators:
        yield from check_communicator(communicator)
        for rank in communicator.ranks:
            subject = name_subject(rank, None if communicator is job else communicator)
            process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
            if (rank.host, rank.pid) not in processes:
                why = (
                    "The log has channels of this rank, but not the first lines of its process, such as 'Bootstrap:"
                    " Using' and 'NET/IB: Using'."
                )
                measured = "network devices of the process not in the log"
                wanted = "the lines of the process that list its network devices"
                yield Finding("training.ranks", subject, UNKNOWN, measured, wanted, why, WHOLE)
            judged = [
                check_channels(subject, communicator, rank),
                check_transport(subject, communicator, rank, process, log, rank.host in nvlink),
            ]
            over = [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]
            if over:
                judged.append(check_gpu_direct(subject, over, process, gpu_direct, log.library))
            doubt = doubt_files("training.ranks", subject, process)
            yield from judged if doubt is None else [doubt, *(finding for finding in judged if finding.status == FAIL)]


def doubt_files(check: str, subject: str, process: NcclProcess) -> typing.Optional[Finding]:
    """Return a finding if lines that name a process may have been written by another pod: several files have lines of
    the process, or its file has lines of several hosts. Return None otherwise.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param process: process of NCCL with the files that contain its lines
    """
    expected = "lines of the process in one file, without lines of other hosts"
    if len(process.files) > 1:
        why = (
            "Several files have lines of this process, but a process writes to only one file. Any pod can write lines"
            " in the name of another pod, so it is not known which lines are genuine."
        )
        remedy = (
            "Set training_logs to one complete file for each pod, each file once. If the lines are of the"
            " launcher's output (mpirun), set it to this one file only."
        )
        return Finding(check, subject, UNKNOWN, f"lines in {join_first(process.files)}", expected, why, remedy)
    if process.beside:
        why = (
            "The file has lines of several hosts, and any pod can write lines in the name of another pod. When several"
            " files are given, each file must come from one pod."
        )
        remedy = (
            "Set training_logs to one file for each pod. If the file is the output of all ranks (mpirun), set it"
            " to this file only. If a program in this pod writes such lines, run the job without it."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            f"lines in {join_first(process.files) or 'one file'}, with lines of hosts {join_first(process.beside)}",
            expected,
            why,
            remedy,
        )
    return None


def name_subject(rank: NcclRank, communicator: typing.Optional[NcclCommunicator]) -> str:
    """Return the subject of a finding on a rank, such as ``worker-1 rank 3``.

    :param rank: rank with its host
    :param communicator: communicator to name in the subject; None for the communicator of the whole job
    """
    return f"{rank.host or 'unknown host'} rank {rank.rank}" + (
        f" of communicator {communicator.name}" if communicator else ""
    )


def name_hcas(device: str) -> list[str]:
    """Return the HCAs that a device name of NCCL stands for. A merged device consists of several HCAs.

    The suffix ``_dma`` is removed. With it, NCCL marks the second PCI function of an HCA towards the GPU (Direct NIC).

    :param device: device name in NCCL's log, such as ``mlx5_0+mlx5_1``
    """
    return [part[: -len("_dma")] if part.endswith("_dma") else part for part in device.split("+")]


def _check_log(log: NcclLog) -> Finding:
    expected = "NCCL lines of level INFO"
    if not log.nccl_lines:
        why = "NCCL writes no log unless NCCL_DEBUG is set." if log.lines else "The log is empty."
        return Finding(
            "training.log", "job", UNKNOWN, f"{count_of(log.lines, 'line')}, none of NCCL", expected, why, ON
        )
    torn = (f", {log.torn} torn" if log.torn else "") + (", the last cut off" if log.cut else "")
    return build_pass("training.log", "job", f"{count_of(log.nccl_lines, 'line')} of {log.library}{torn}", expected)


def _check_version(log: NcclLog) -> Finding:
    if len(log.versions) == 1:
        return build_pass("training.version", "job", log.versions[0], f"one version of {log.library}")
    if not log.versions:
        return Finding(
            "training.version",
            "job",
            UNKNOWN,
            "version not in the log",
            "one version of NCCL",
            "The log lacks the line with which NCCL reports its version when it starts.",
            WHOLE,
        )
    why = (
        "All ranks of a job must use the same build of NCCL: different builds can be incompatible. A log with lines of"
        " several jobs shows several versions, and so does a process that loads two libraries of NCCL (vLLM, DeepEP)."
    )
    return Finding(
        "training.version",
        "job",
        FAIL,
        f"{len(log.versions)} versions: {join_first(log.versions, 6)}",
        "one version of NCCL",
        why,
        "Use the same image for all pods, named by its digest, and run the job again. Set training_logs to the"
        " log of this job only. If each process loads two libraries on purpose, waive this finding.",
    )


def _check_job(log: NcclLog, wanted: typing.Optional[int]) -> Finding:
    """Check that the largest communicator has the required number of ranks. Return a finding of status unknown if the
    log contains no communicator.

    :param wanted: required number of ranks; None accepts any
    """
    job, expected = find_whole_job(log), count_of(wanted, "rank") if wanted is not None else "at least 1 communicator"
    if job is None:
        why = (
            "The log has no line 'rank ... nranks ... Init START', which NCCL writes when it begins to create a"
            " communicator."
        )
        return Finding("training.ranks", "job", UNKNOWN, "0 communicators", expected, why, WHOLE)
    if wanted is not None and job.size != wanted:
        why = "Another number of processes joined the job than the intent requires: nodes times processes on each node."
        return Finding(
            "training.ranks",
            "job",
            FAIL,
            count_of(job.size or 0, "rank"),
            expected,
            why,
            "Read WORLD_SIZE in the pods (kubectl exec POD -- printenv WORLD_SIZE). If it is not the expected number,"
            " correct the job and run it again. If the expected number is wrong, correct rdma_cluster.training.ranks.",
        )
    return build_pass("training.ranks", "job", f"{job.size} ranks", expected)


def _report_untold(log: NcclLog) -> typing.Iterator[Finding]:
    if log.untold:
        measured, why = (
            f"{count_of(log.untold, 'further warning')}, not listed",
            "The log has more different warnings than are listed, so these warnings were only counted.",
        )
        remedy = (
            "Follow the remedies of the listed findings training.problem first, then read the other warnings:"
            " grep WARN in the log. If another program of the job writes the lines, send its output to another"
            " file. Then run the job again."
        )
        yield Finding("training.problem", "job", UNKNOWN, measured, "0 warnings in the log", why, remedy)
