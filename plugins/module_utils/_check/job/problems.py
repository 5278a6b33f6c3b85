# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain the problems in the log of a job: failed completions, and their causes."""

from __future__ import annotations

from ..._analysis.fleet.cause import Link
from ..._analysis.fleet.completions import find_completion
from ..._analysis.fleet.providers import PROVIDERS
from ..._model.job.nccl import NcclLog, NcclProblem, NcclProcess
from ..._model.measurement.completions import FLUSHED
from ..._model.run.findings import FAIL, WARN, Finding, Status
from ..._parse.job.nccl_problem import Completion, parse_completion

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


def check_problem(problem: NcclProblem, log: NcclLog) -> Finding:
    """Return the finding on a problem of the log."""
    # a log that another version has read may name a kind that this one does not know
    status, why, remedy = CAUSES.get(problem.kind, CAUSES[""])
    failed = parse_completion(problem.text) if problem.kind in _COMPLETIONS else None
    if failed is not None:
        status, why, remedy = _check_failed_completion(failed, problem, log)
    where = f"{', '.join(problem.hosts[:3]) or 'job'} line {problem.line}"
    measured = problem.text + (f" ({problem.count} times)" if problem.count > 1 else "")
    return Finding("training.problem", where, status, measured, "no warning", why, remedy)


def _check_failed_completion(failed: Completion, problem: NcclProblem, log: NcclLog) -> tuple[Status, str, str]:
    """Return status, cause and remedy of a failed completion."""
    known = find_completion(failed.status)
    if known is None:
        return CAUSES["completion"]
    if failed.status == FLUSHED and _has_cause(log):
        return WARN, *known.on("")
    if failed.status not in _LOSSES:
        return FAIL, *known.on(_find_link(failed, problem, log))
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
    why, remedy = known.on(_find_link(failed, problem, log))
    return (
        FAIL,
        f"{why}{f' From {failed.local_gid} to {failed.remote_gid}.' if failed.remote_gid else ''}",
        f"{_FIRST} {remedy}",
    )


def _has_cause(log: NcclLog) -> bool:
    """Return whether the log has a failed completion that is no consequence."""
    seen = (parse_completion(problem.text) for problem in log.problems if problem.kind in _COMPLETIONS)
    return any(failed is not None and failed.status != FLUSHED for failed in seen)


def _find_processes(problem: NcclProblem, log: NcclLog) -> list[NcclProcess]:
    return [process for process in log.processes if process.host in problem.hosts[:1]]


def _is_in_one_pod(failed: Completion, problem: NcclProblem, log: NcclLog) -> bool:
    return bool(failed.peer) and any(process.oob_address == failed.peer for process in _find_processes(problem, log))


def _find_link(failed: Completion, problem: NcclProblem, log: NcclLog) -> Link:
    """Return the link layer of the HCA of a failed completion; empty where the log does not say, or the host has both.
    NCCL writes GIDs of Ethernet alone."""
    if failed.local_gid:
        return "Ethernet"
    devices = [device for process in _find_processes(problem, log) for device in process.devices]
    links = {device.link for device in devices if failed.device in device.name.split("+")} or {
        device.link for device in devices
    }
    return "InfiniBand" if links == {"IB"} else "Ethernet" if links == {"RoCE"} else ""
