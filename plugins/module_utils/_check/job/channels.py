# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict of NCCL's log: which way does each channel of each rank go (row S3.6). Check ids: ``training.*``.

A line that lists devices proves nothing, nor does a job that ran: NCCL falls back to TCP in silence. Only channels
count, each of them. A rank or a channel that is not in the log is unknown.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.completions import FLUSHED
from ..._model.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, ok
from ..._model.nccl import NcclCommunicator, NcclLog, NcclProblem, NcclProcess, NcclRank, NcclRoute
from ..._model.text import folded
from ..._parse.job.nccl_problem import Completion, parse_completion
from ..fleet.cause import Link
from ..fleet.completions import find_completion
from ..fleet.providers import PROVIDERS

#: kind of a problem (_parse/job/nccl_problem.py): status, cause and remedy
CAUSES: dict[str, tuple[Status, str, str]] = {
    # it may be of an HCA that is not the job's: where NCCL lacks one for it, training.transport fails
    **{kind: (WARN, cause.why, cause.remedy) for kind, cause in PROVIDERS.items()},
    "imex": (
        FAIL,
        (
            "The GPUs are on one NVLink fabric of several nodes, and share no memory over it: IMEX does not work, or"
            " the pod has no channel of it."
        ),
        (
            "Give the pods a claim of a ComputeDomain (NVIDIA's DRA driver), and see that it is Ready: kubectl get"
            " computedomains -A. On nodes without it see nvidia-imex-ctl -N, and /dev/nvidia-caps-imex-channels."
            " NCCL_MNNVL_ENABLE=0 only hides it: the job then sends between nodes over the HCAs alone."
        ),
    ),
    "memlock": (
        FAIL,
        "Memory could not be pinned: memlock of the process is too low.",
        (
            "Run 'ulimit -l' in the container; raise memlock in the container runtime. IPC_LOCK alone does not help a"
            " process that is not root."
        ),
    ),
    "peer_memory": (
        FAIL,
        "The HCA could not register memory of the GPU: neither nvidia-peermem nor DMA-BUF works here.",
        (
            "Load nvidia_peermem on the node (driver.rdma.enabled of the ClusterPolicy), or install the open kernel"
            " driver, which has DMA-BUF."
        ),
    ),
    "completion": (
        FAIL,
        "A transfer over the network ended with an error.",
        "Read the status in the text, and dmesg of both nodes at that time.",
    ),
    "async_event": (
        FAIL,
        "The HCA reported an event while the job ran: a port went down, or a queue pair failed.",
        "See dmesg of the node and the link.",
    ),
    "queue_pair": (
        FAIL,
        "Queue pairs could not be connected: the ends do not reach each other.",
        (
            "Each rail must reach the same rail of the other nodes; on RoCE compare the GIDs and addresses of both"
            " ends, and NCCL_IB_GID_INDEX."
        ),
    ),
    "no_interface": (
        FAIL,
        "NCCL found no interface with an address for its own connections.",
        "Set NCCL_SOCKET_IFNAME to an interface that the pod has (ip addr in the pod).",
    ),
    "no_network": (
        FAIL,
        "NCCL could not start the network that it was told to take.",
        "Correct NCCL_NET, and make sure that the pod has the RDMA devices (ibv_devices) and its image libibverbs.",
    ),
    "connection": (
        FAIL,
        "A TCP connection between ranks failed or was closed.",
        "Another rank most likely failed first: see the first problem in the log.",
    ),
    "shared_memory": (
        FAIL,
        "Shared memory could not be made or opened.",
        "Mount a memory volume at /dev/shm of the pod, large enough for all ranks.",
    ),
    "same_gpu": (FAIL, "Two ranks use the same GPU.", "Start one rank for each GPU, and set the device by LOCAL_RANK."),
    "versions": (
        FAIL,
        "Ranks or libraries of different versions of NCCL meet.",
        "Use one image for all pods; see LD_LIBRARY_PATH.",
    ),
    "driver": (
        FAIL,
        "CUDA or the driver failed.",
        "Compare the driver on the node with what the CUDA of the image needs (nvidia-smi).",
    ),
    "peer_access": (
        WARN,
        "GPUs that NVLink connects can't reach each other directly.",
        "Check the NVLinks (nvidia-smi nvlink -s) and the fabric manager.",
    ),
    "iommu": (
        WARN,
        (
            "The kernel runs without iommu=pt, so each access of an HCA or GPU to memory is translated: RCCL can hang,"
            " and GPUDirect RDMA is slow."
        ),
        (
            "Boot the node with iommu=pt (rdma_cluster.host.kernel_arguments, or GRUB_CMDLINE_LINUX by hand), and see"
            " cat /proc/cmdline."
        ),
    ),
    "hint": (WARN, "NCCL corrected a setting.", "Correct the variable or the setting."),
    "timeout": (
        FAIL,
        "A collective did not end in time: some rank did not take part, or the network stands still.",
        "See what the slowest rank did last.",
    ),
    "": (
        WARN,
        "NCCL warns of it, and it is not known here whether it matters.",
        "Read the text; the channels show what it did to the transport.",
    ),
}

#: kinds of failed completions; earlier versions had one of its own for status 12
_COMPLETIONS = ("completion", "retry")
#: statuses of packets that were lost
_LOSSES = (12, 20)
_FIRST = "Find the rank that failed first in the log."
#: ranks or channels that a text names, as spans
_SHOWN = 12
#: of one host, or of one file of several: processes, and ranks in all their communicators. 16 GPUs that are in 255
#: communicators each have as many
MOST_RANKS = 4096
#: findings of one status that are given one by one, on ranks and on hosts each
MOST_FINDINGS = 20_000
_ON = "Set NCCL_DEBUG=INFO in every process, and keep NCCL_DEBUG_SUBSYS unset or with INIT and NET in it."
_WHOLE = "Give the whole log, from the first line on, of every pod; one file a pod is safest."


def whole_job(log: NcclLog) -> typing.Optional[NcclCommunicator]:
    """Return the largest communicator: that of all ranks."""
    return max((item for item in log.communicators if item.size), key=lambda item: item.size or 0, default=None)


def spans_nodes(communicator: NcclCommunicator) -> bool:
    """Return whether its ranks are on several nodes."""
    return len({rank.host for rank in communicator.ranks}) > 1 or any(
        (rank.nodes or 1) > 1 for rank in communicator.ranks
    )


def leave_out_forged(log: NcclLog) -> tuple[NcclLog, tuple[Finding, ...]]:
    """Return the log without the hosts and files that name more ranks than any can have, and a finding on each of
    these.

    Whoever is in a job writes its log: one pod that makes up communicators would choose how many findings there are.
    """
    sources = {(process.host, process.pid): process.files or (process.host,) for process in log.processes}
    ranks = [(rank.host, rank.pid) for communicator in log.communicators for rank in communicator.ranks]
    counts: dict[str, int] = {}
    for host, pid in (*sources, *ranks):
        for source in sources.get((host, pid), (host,)):
            counts[source] = counts.get(source, 0) + 1
    forged = {source: count for source, count in counts.items() if count > MOST_RANKS}
    if not forged:
        return log, ()

    def is_kept(process: tuple[str, int]) -> bool:
        return forged.keys().isdisjoint(sources.get(process, process[:1]))

    communicators = [
        dataclasses.replace(
            communicator, ranks=tuple(rank for rank in communicator.ranks if is_kept((rank.host, rank.pid)))
        )
        for communicator in log.communicators
    ]
    processes = tuple(process for process in log.processes if is_kept((process.host, process.pid)))
    left = dataclasses.replace(
        log, processes=processes, communicators=tuple(item for item in communicators if item.ranks)
    )
    return left, tuple(_forged(source, count) for source, count in forged.items())


def _forged(source: str, count: int) -> Finding:
    why = (
        "No pod has so many ranks in so few lines: a program in it makes up lines of NCCL, or the log is one of many"
        " runs. Nothing of it counts."
    )
    remedy = "See what the pod of this host or file runs, and give the log of one run of the job."
    return Finding(
        "training.ranks", source, UNKNOWN, f"{count} processes and ranks", f"{MOST_RANKS} at most", why, remedy
    )


def limit_findings(found: typing.Iterable[Finding]) -> list[Finding]:
    """Return the first ``MOST_FINDINGS`` findings of each status. All others of a check are one finding of their
    status, which has their number."""
    kept: list[Finding] = []
    seen: dict[Status, int] = {}
    more: dict[tuple[str, Status], int] = {}
    for item in found:
        seen[item.status] = seen.get(item.status, 0) + 1
        if seen[item.status] <= MOST_FINDINGS:
            kept.append(item)
        else:
            more[item.check, item.status] = more.get((item.check, item.status), 0) + 1
    why = f"The log has more than {MOST_FINDINGS} findings of this status. These are counted only."
    remedy = "See the findings before them first. Give the log of one job: a pod may make up ranks and communicators."
    expected = f"{MOST_FINDINGS} findings of a status at most"
    for (check, status), count in more.items():
        measured = f"{count} more"
        kept.append(
            ok(check, "further findings", measured, expected)
            if status == PASS
            else Finding(check, "further findings", status, measured, expected, why, remedy)
        )
    return kept


def judge_log(log: NcclLog, ranks: typing.Optional[int], gpu_direct: bool) -> list[Finding]:
    """Return findings on the log, on each communicator, on each rank of it and on each problem, as far as
    ``limit_findings`` keeps them.

    :param ranks: that the job must have; None takes what the log says
    :param gpu_direct: each channel over the network must be GPUDirect RDMA
    """
    if not log.nccl_lines:
        return [_log(log)]
    log, forged = leave_out_forged(log)
    first = (_log(log), _version(log), _job(log, ranks), *forged)
    return [
        *first,
        *limit_findings(_ranks(log, gpu_direct)),
        *(check_problem(problem, log) for problem in log.problems),
        *_untold(log),
    ]


def _ranks(log: NcclLog, gpu_direct: bool) -> typing.Iterator[Finding]:
    """Judge each communicator and each rank of it."""
    job = whole_job(log)
    processes = {(process.host, process.pid): process for process in log.processes}
    for communicator in log.communicators:
        yield from _communicator(communicator)
        for rank in communicator.ranks:
            subject = subject_of(rank, None if communicator is job else communicator)
            process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
            if (rank.host, rank.pid) not in processes:
                why = "Nothing of its process is in the log, so it is not known which devices it opened."
                yield Finding("training.ranks", subject, UNKNOWN, "no process", "the lines of its process", why, _WHOLE)
            judged = [_channels(subject, communicator, rank), _transport(subject, communicator, rank, process, log)]
            over = [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]
            if over:
                judged.append(_gpu_direct(subject, over, process, gpu_direct, log.library))
            doubt = doubt_files("training.ranks", subject, process)
            yield from judged if doubt is None else [doubt, *(finding for finding in judged if finding.status == FAIL)]


def doubt_files(check: str, subject: str, process: NcclProcess) -> typing.Optional[Finding]:
    """Return why it is not known that a process wrote its lines; None where it is, and where all ranks are in one file.

    :param check: id of the finding
    """
    expected = "lines in one file, which has no lines of other hosts"
    if len(process.files) > 1:
        why = (
            "Several files have lines of this process, and it wrote into one of them: any pod can write lines in the"
            " name of another one."
        )
        remedy = (
            "Give each file once and whole, one a pod; see what the pods of the other files run. Or give the output of"
            " all ranks, as one file."
        )
        return Finding(check, subject, UNKNOWN, f"in {folded(process.files)}", expected, why, remedy)
    if process.beside:
        why = (
            "The file has lines of several hosts, and any pod can write lines in the name of another one. Of several"
            " files, each must be of one pod."
        )
        remedy = (
            "Give one file a pod, and see what the pod of this file runs. Where it has the output of all ranks"
            " (mpirun), give this file alone."
        )
        return Finding(
            check,
            subject,
            UNKNOWN,
            f"in {folded(process.files)}, with lines of {folded(process.beside)}",
            expected,
            why,
            remedy,
        )
    return None


def subject_of(rank: NcclRank, communicator: typing.Optional[NcclCommunicator]) -> str:
    """Return a rank in the field's words; ``communicator`` unless it is that of the whole job."""
    return f"{rank.host} rank {rank.rank}" + (f" of communicator {communicator.name}" if communicator else "")


def name_hcas(device: str) -> list[str]:
    """Name the HCAs of a device of NCCL's: of a merged one each, and without NCCL's own mark of an HCA's second PCI
    function towards the GPU (Direct NIC)."""
    return [part[: -len("_dma")] if part.endswith("_dma") else part for part in device.split("+")]


def way(route: NcclRoute) -> str:
    """As NCCL writes it, without the number of the device: NET/IB/GDRDMA."""
    return f"{route.transport}/{route.via}" + ("/GDRDMA" if route.gpu_direct else "")


def _log(log: NcclLog) -> Finding:
    expected = "lines of NCCL at level INFO"
    if not log.nccl_lines:
        why = "NCCL is silent unless it is told otherwise." if log.lines else "The log is empty."
        return Finding("training.log", "job", UNKNOWN, f"{log.lines} lines, none of NCCL", expected, why, _ON)
    torn = (f", {log.torn} torn" if log.torn else "") + (", the last cut off" if log.cut else "")
    return ok("training.log", "job", f"{log.nccl_lines} lines of {log.library}{torn}", expected)


def _version(log: NcclLog) -> Finding:
    if len(log.versions) == 1:
        return ok("training.version", "job", log.versions[0], f"one version of {log.library}")
    if not log.versions:
        return Finding(
            "training.version",
            "job",
            UNKNOWN,
            "not in the log",
            "one version of NCCL",
            "NCCL says its version when it starts.",
            _WHOLE,
        )
    why = (
        "The ranks run different builds of NCCL, which need not understand each other; or the logs of several jobs are"
        " mixed."
    )
    return Finding(
        "training.version",
        "job",
        FAIL,
        ", ".join(log.versions[:6]),
        "one version of NCCL",
        why,
        "Use one image for all pods; give one job's log.",
    )


def _job(log: NcclLog, wanted: typing.Optional[int]) -> Finding:
    """Return the number of ranks, said by the ranks, against what was asked for."""
    job, expected = whole_job(log), f"{wanted} ranks" if wanted is not None else "a communicator"
    if job is None:
        why = "No rank said who it is: NCCL never began to make a communicator, or the beginning of the log is missing."
        return Finding("training.ranks", "job", UNKNOWN, "no communicator", expected, why, _WHOLE)
    if wanted is not None and job.size != wanted:
        why = "The job is of another size: other numbers of nodes or of processes a node, or pods that did not join."
        return Finding(
            "training.ranks", "job", FAIL, f"{job.size} ranks", expected, why, "Compare WORLD_SIZE in all pods."
        )
    return ok("training.ranks", "job", f"{job.size} ranks", expected)


def _communicator(communicator: NcclCommunicator) -> list[Finding]:
    subject, size = f"communicator {communicator.name}", communicator.size
    if size is None:
        why = "These ranks have channels in the log, and the lines in which they say who they are, are missing."
        measured = f"{len(communicator.ranks)} ranks without a communicator"
        return [Finding("training.ranks", subject, UNKNOWN, measured, "ranks of a communicator", why, _WHOLE)]
    expected = f"all {size} ranks, each complete"
    seen = {rank.rank for rank in communicator.ranks}
    missing = _gaps(sorted(seen), size)
    late = [rank.rank for rank in communicator.ranks if not rank.complete]
    if missing:
        why = f"Nothing is known of rank {_spans(missing)}: the log of their pods is not here, or they write none."
        return [
            Finding(
                "training.ranks", subject, UNKNOWN, f"{len(seen)} of {size} ranks", expected, why, f"{_WHOLE} {_ON}"
            )
        ]
    if late:
        why = (
            f"Rank {spell_numbers(late)} did not say that the initialisation is complete: it failed, it still hangs, or"
            " the line is lost."
        )
        return [
            Finding(
                "training.ranks",
                subject,
                UNKNOWN,
                f"{size - len(late)} of {size} complete",
                expected,
                why,
                f"See the last lines of them. {_WHOLE}",
            )
        ]
    return [ok("training.ranks", subject, f"{size} of {size}", expected)]


def _channels(subject: str, communicator: NcclCommunicator, rank: NcclRank) -> Finding:
    if communicator.size == 1:
        return ok("training.channels", subject, "alone in its communicator", "no channel")
    expected = "a connection on each channel of collectives"
    if rank.channels is None:
        why = "The line that says how many channels the rank has is missing, so it is not known whether all are seen."
        return Finding("training.channels", subject, UNKNOWN, _summary(rank), expected, why, _WHOLE)
    if rank.unseen or not rank.channels:
        why = f"Nothing is known of channel {spell_numbers(rank.unseen)}: "
        if len(rank.unseen) < rank.channels:
            why += "the lines are lost, torn or cut off."
        else:
            why += (
                "since 2.22 NCCL connects at the first collective, so none ran here, only NVLS did, or the log ends"
                " before."
            )
        remedy = f"Run a collective in this communicator (NCCL_NVLS_ENABLE=0 for the proof). {_WHOLE}"
        return Finding(
            "training.channels",
            subject,
            UNKNOWN,
            f"{rank.channels - len(rank.unseen)} of {rank.channels} channels",
            expected,
            why,
            remedy,
        )
    if rank.unanswered:
        why = (
            f"Other ranks say that channel {spell_numbers(rank.unanswered)} connects them with this one, and its own"
            " lines are lost, torn or cut off."
        )
        measured = f"{len(rank.unanswered)} of {rank.channels} channels seen from one end only"
        return Finding("training.channels", subject, UNKNOWN, measured, expected, why, _WHOLE)
    return ok("training.channels", subject, f"{rank.channels} of {rank.channels} channels", expected)


def _transport(
    subject: str, communicator: NcclCommunicator, rank: NcclRank, process: NcclProcess, log: NcclLog
) -> Finding:
    expected = "no NET/Socket"
    if communicator.size == 1:
        return ok("training.transport", subject, "alone in its communicator", expected)
    if not rank.routes:
        return Finding(
            "training.transport",
            subject,
            UNKNOWN,
            "no channel in the log",
            expected,
            "Only channels show the transport.",
            _WHOLE,
        )
    if any(route.via == "Socket" for route in rank.routes):
        why, remedy = _fallback(process, log)
        return Finding("training.transport", subject, FAIL, _summary(rank), expected, why, remedy)
    return ok("training.transport", subject, _summary(rank), expected)


def _fallback(process: NcclProcess, log: NcclLog) -> tuple[str, str]:
    """Return why NCCL took TCP."""
    said = process.environment
    if said.get("NCCL_IB_DISABLE", "0") != "0":
        return (
            "NCCL was told not to use RDMA: NCCL_IB_DISABLE is set.",
            "Take NCCL_IB_DISABLE out of the job and of the image.",
        )
    if said.get("NCCL_NET") == "Socket":
        return "NCCL was told to use TCP: NCCL_NET=Socket.", "Take NCCL_NET out of the job and of the image."
    provider = next((PROVIDERS[problem.kind] for problem in log.problems if problem.kind in PROVIDERS), None)
    if process.without_ib and provider is not None:
        return f"{provider.why} NCCL fell back to TCP in silence.", provider.remedy
    if process.without_ib == "no RDMA device found":
        named = f" (NCCL_IB_HCA={said['NCCL_IB_HCA']})" if "NCCL_IB_HCA" in said else ""
        why = f"NCCL found no RDMA device that it may use in the pod{named}, and fell back to TCP in silence."
        return (
            why,
            "Run ibv_devinfo in the pod: it must show a device with an active port, and NCCL_IB_HCA must name it.",
        )
    if process.without_ib:
        return (
            f"NCCL could not use RDMA and fell back to TCP in silence: {process.without_ib}.",
            "Put libibverbs and the provider (rdma-core) into the image.",
        )
    return (
        "NCCL fell back to TCP in silence; the log does not say why.",
        f"Check that the pod has RDMA devices (ibv_devinfo) and that memlock is large enough (ulimit -l). {_ON}",
    )


def _gpu_direct(
    subject: str, over: typing.Sequence[NcclRoute], process: NcclProcess, wanted: bool, library: str
) -> Finding:
    """:param over: the ways of a rank that lead over the network; TCP, which has no GPUDirect RDMA, fails as a
    transport
    :param library: NCCL or RCCL
    """
    without = sorted({channel for route in over if not route.gpu_direct for channel in route.channels})
    expected = "GDRDMA on each channel over the network" if wanted else "not asked for"
    if not without:
        return ok(
            "training.gpu_direct",
            subject,
            f"GDRDMA on all {sum(route.lines for route in over)} connections over the network",
            expected,
        )
    measured = f"none on channel {spell_numbers(without)}"
    if not wanted:
        return ok("training.gpu_direct", subject, measured, expected)
    used = {route.device for route in over if not route.gpu_direct}
    reasons = [
        f"{device.name}: {'; '.join(device.reasons)}"
        for device in process.devices
        if device.index in used and device.reasons
    ]
    if library == "RCCL":
        why = "Data goes through the host's memory" + (
            f". {', '.join(reasons)}." if reasons else "; the log does not say why."
        )
        remedy = (
            "Set NCCL_DMABUF_ENABLE=1 where the kernel has DMA-BUF (zgrep -E 'DMABUF_MOVE_NOTIFY|PCI_P2PDMA'"
            " /proc/config.gz), or load amdgpu of ROCm's own package, which has peer memory. Boot with iommu=pt, and"
            " switch ACS off on the bridges between GPU and HCA."
        )
    elif reasons:
        why = f"Data goes through the host's memory. {', '.join(reasons)}."
        remedy = (
            "No module: load nvidia-peermem, or use the open driver with DMA-BUF. Too far: use the HCA beside the GPU,"
            " or set NCCL_NET_GDR_LEVEL."
        )
    else:
        why = "Data goes through the host's memory; the log does not say why."
        remedy = (
            "Run with NCCL_DEBUG_SUBSYS=INIT,NET, which says for each HCA and GPU why. lsmod | grep nvidia_peermem"
            " shows one way."
        )
    return Finding("training.gpu_direct", subject, FAIL, measured, expected, why, remedy)


def _untold(log: NcclLog) -> typing.Iterator[Finding]:
    if log.untold:
        measured, why = (
            f"{log.untold} more warnings of no known kind",
            "The log has too many different ones, so it is not known what these say.",
        )
        remedy = (
            "Read the log (grep WARN), and end what writes them: a program of the job, or a setting that NCCL warns of"
            " each time."
        )
        yield Finding("training.problem", "job", UNKNOWN, measured, "no warning", why, remedy)


def check_problem(problem: NcclProblem, log: NcclLog) -> Finding:
    """Return the finding on a problem of the log."""
    # a log that another version has read may name a kind that this one does not know
    status, why, remedy = CAUSES.get(problem.kind, CAUSES[""])
    failed = parse_completion(problem.text) if problem.kind in _COMPLETIONS else None
    if failed is not None:
        status, why, remedy = _failed_completion(failed, problem, log)
    where = f"{', '.join(problem.hosts[:3]) or 'job'} line {problem.line}"
    measured = problem.text + (f" ({problem.count} times)" if problem.count > 1 else "")
    return Finding("training.problem", where, status, measured, "no warning", why, remedy)


def _failed_completion(failed: Completion, problem: NcclProblem, log: NcclLog) -> tuple[Status, str, str]:
    """Return status, cause and remedy of a failed completion."""
    known = find_completion(failed.status)
    if known is None:
        return CAUSES["completion"]
    if failed.status == FLUSHED and _has_cause(log):
        return WARN, *known.on("")
    if failed.status not in _LOSSES:
        return FAIL, *known.on(_link_of(failed, problem, log))
    ends = (
        f" ({failed.local_gid} to {failed.remote_gid}{f', {failed.device}' if failed.device else ''})"
        if failed.remote_gid
        else ""
    )
    if _is_in_one_pod(failed, problem, log):
        why = (
            f"Both ends are in one pod, and packets between two of its HCAs do not arrive{ends}: the node has no route"
            f" between them (status {failed.status})."
        )
        remedy = (
            "Let ranks of one pod use NVLink or shared memory: take NCCL_P2P_DISABLE and NCCL_SHM_DISABLE out of the"
            " job, and mount memory at /dev/shm. Otherwise give each interface of the pod a routing table of its own"
            " (CNI plugin sbr), and see ip route get ADDRESS from ADDRESS in the pod."
        )
        return FAIL, why, remedy
    if failed.crosses_subnets:
        why = (
            f"Packets were lost (status {failed.status}), and the two GIDs are of two subnets{ends}: without a route"
            " nothing arrives."
        )
        remedy = (
            "See in the pod whether there is a route: ip route get ADDRESS from ADDRESS. Where rails are subnets of"
            " their own without routes between them, let NCCL stay on its rail (NCCL_CROSS_NIC=0), and give all pods"
            " their rails in one order. The GID index must choose GIDs of one kind at both ends."
        )
        return FAIL, why, remedy
    why, remedy = known.on(_link_of(failed, problem, log))
    return (
        FAIL,
        f"{why}{f' From {failed.local_gid} to {failed.remote_gid}.' if failed.remote_gid else ''}",
        f"{_FIRST} {remedy}",
    )


def _has_cause(log: NcclLog) -> bool:
    """Return whether the log has a failed completion that is no consequence."""
    seen = (parse_completion(problem.text) for problem in log.problems if problem.kind in _COMPLETIONS)
    return any(failed is not None and failed.status != FLUSHED for failed in seen)


def _processes_of(problem: NcclProblem, log: NcclLog) -> list[NcclProcess]:
    return [process for process in log.processes if process.host in problem.hosts[:1]]


def _is_in_one_pod(failed: Completion, problem: NcclProblem, log: NcclLog) -> bool:
    return bool(failed.peer) and any(process.oob_address == failed.peer for process in _processes_of(problem, log))


def _link_of(failed: Completion, problem: NcclProblem, log: NcclLog) -> Link:
    """Return the link layer of the HCA of a failed completion; empty where the log does not say, or the host has both.
    NCCL writes GIDs of Ethernet alone."""
    if failed.local_gid:
        return "Ethernet"
    devices = [device for process in _processes_of(problem, log) for device in process.devices]
    links = {device.link for device in devices if failed.device in device.name.split("+")} or {
        device.link for device in devices
    }
    return "InfiniBand" if links == {"IB"} else "Ethernet" if links == {"RoCE"} else ""


def _summary(rank: NcclRank) -> str:
    """Return the ways of a rank, with how many connections go each."""
    lines: dict[str, int] = {}
    for route in rank.routes:
        lines[way(route)] = lines.get(way(route), 0) + route.lines
    return ", ".join(f"{name} {count}" for name, count in lines.items()) or "no channel in the log"


def _gaps(seen: typing.Sequence[int], size: int) -> list[tuple[int, int]]:
    """First and last of the ranks below ``size`` that are not there, in order, and no more of them than are shown: a
    log may say any size."""
    found: list[tuple[int, int]] = []
    following = 0
    for rank in (*seen, size):
        if following < min(rank, size):
            found.append((following, min(rank, size) - 1))
        if len(found) > _SHOWN:
            break
        following = rank + 1
    return found


def spell_numbers(values: typing.Sequence[int]) -> str:
    """Ranks or channels: 1, 3-8, and after twelve of them no more."""
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    return _spans(spans)


def _spans(spans: typing.Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans[:_SHOWN])
    return f"{shown} and more" if len(spans) > _SHOWN else shown
