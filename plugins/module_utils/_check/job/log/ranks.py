# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the communicators, channels and transports of the ranks in a log of NCCL."""

from __future__ import annotations

import typing

from ...._analysis.fleet.providers import PROVIDERS
from ...._model.base.phrases import count_of
from ...._model.base.text import join_first
from ...._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute
from ...._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..scope import read_integer

#: ranks or channels that a text names, as spans
_SHOWN = 12
_DETOUR = (
    "These channels do not use GPUDirect RDMA, so their data passes through the memory of the host, which is slower."
)
_NO_REASON = "The log does not show the reason."
#: of NCCL, for GPUs that are nearer to their CPU than to the HCAs [NVIDIA/nccl issue 1579; NCCL user guide]
_ON_GRACE = (
    "On GH200 and GB200, set NCCL_NET_GDR_C2C=1, or NCCL_NET_GDR_LEVEL=SYS if the version of NCCL does not have it."
)
_P2P_DISABLE = "NCCL_P2P_DISABLE"
#: variables by which NCCL does not connect GPUs of a pod directly
_AGAINST_P2P = (_P2P_DISABLE, "NCCL_P2P_LEVEL")
_NODE_OF_RANK = "the node on which the pod of this rank ran (kubectl get pods -A -o wide)"
ON = (
    "Set NCCL_DEBUG=INFO in every process of the job, leave NCCL_DEBUG_SUBSYS unset or include INIT and NET in it, and"
    " run the job again."
)
WITHOUT_NVLS = (
    "Run the job with the environment variable NCCL_NVLS_ENABLE=0 in its pods, until it has completed a collective."
)
WHOLE = "Set training_logs to the complete log of each pod, from its first line on, one file for each pod."


def describe_route(route: NcclRoute) -> str:
    """Return a route as NCCL writes it, without the number of the device, such as NET/IB/GDRDMA."""
    return f"{route.transport}/{route.via}" + ("/GDRDMA" if route.gpu_direct else "")


def check_communicator(communicator: NcclCommunicator) -> list[Finding]:
    subject, size = f"communicator {communicator.name}", communicator.size
    if size is None:
        why = (
            "The log has channels of these ranks, but not the line 'rank ... nranks ... Init START' that each rank"
            " writes first."
        )
        measured = f"channels of {count_of(len(communicator.ranks), 'rank')}, number of all ranks not in the log"
        expected = "the number of all ranks of the communicator (nranks)"
        return [Finding("training.ranks", subject, UNKNOWN, measured, expected, why, WHOLE)]
    expected = f"all {size} ranks, each with a complete initialization"
    seen = {rank.rank for rank in communicator.ranks}
    missing = _find_gaps(sorted(seen), size)
    late = [rank.rank for rank in communicator.ranks if not rank.complete]
    if missing:
        why = (
            f"The log has no lines of {_name_ranks(missing)}. The lines of a rank are in the log of its pod, and"
            f" only if"
            " NCCL_DEBUG is set in its process."
        )
        return [
            Finding(
                "training.ranks",
                subject,
                UNKNOWN,
                f"{len(seen)} of {size} ranks in the log",
                expected,
                why,
                f"{WHOLE} {ON}",
            )
        ]
    if late:
        why = (
            f"The log has no line 'Init COMPLETE' of {_name_ranks(_find_spans(late))}, which a rank writes at the"
            f" end of"
            " its initialization."
        )
        return [
            Finding(
                "training.ranks",
                subject,
                UNKNOWN,
                f"{size - len(late)} of {size} ranks with a complete initialization",
                expected,
                why,
                "Follow the remedies of the findings training.problem of these ranks, if there are any."
                " Otherwise read the last lines of these ranks in the log: if the process still runs, its"
                " initialization hangs, so run stage reachability and correct its findings. If the log is cut"
                f" off, give the complete log. {WHOLE}",
            )
        ]
    return [build_pass("training.ranks", subject, f"{size} of {size} ranks with a complete initialization", expected)]


def check_channels(subject: str, communicator: NcclCommunicator, rank: NcclRank) -> Finding:
    if communicator.size == 1:
        return build_pass("training.channels", subject, "the only rank of its communicator", "no channel")
    if rank.channels is None:
        why = (
            "The log lacks the line 'coll channels' of this rank, so it is not known how many connections the rank"
            " must have."
        )
        measured = f"number of channels not in the log; connections: {_summarize_routes(rank)}"
        expected = "the number of channels, and a connection on each of them"
        return Finding("training.channels", subject, UNKNOWN, measured, expected, why, WHOLE)
    expected = f"{rank.channels} of {count_of(rank.channels, 'channel')} with a connection"
    if rank.unseen or not rank.channels:
        measured = f"{rank.channels - len(rank.unseen)} of {count_of(rank.channels, 'channel')} with a connection"
        if len(rank.unseen) < rank.channels:
            why = (
                f"The log has no outgoing connection of this rank on {_name_channels(rank.unseen)}: the lines"
                " were lost, torn or cut off."
            )
            return Finding("training.channels", subject, UNKNOWN, measured, expected, why, WHOLE)
        why = (
            "The log has no outgoing connection of this rank. NCCL 2.22 and later connect at the first collective of a"
            " communicator, and NVLink SHARP (NVLS) needs no connection. This communicator ran no collective, ran"
            " only collectives over NVLS, or the log ends before the first collective."
        )
        remedy = f"{WITHOUT_NVLS} {WHOLE}"
        expected = expected if rank.channels else "at least 1 channel with a connection"
        return Finding("training.channels", subject, UNKNOWN, measured, expected, why, remedy)
    if rank.unanswered:
        why = (
            f"Other ranks report a connection with this rank on {_name_channels(rank.unanswered)}, but the"
            " lines of this rank were lost, torn or cut off."
        )
        measured = f"{len(rank.unanswered)} of {count_of(rank.channels, 'channel')} seen from one end only"
        both = f"{count_of(rank.channels, 'channel')} seen from both ends"
        return Finding("training.channels", subject, UNKNOWN, measured, both, why, WHOLE)
    return build_pass("training.channels", subject, expected, expected)


def check_transport(
    subject: str,
    communicator: NcclCommunicator,
    rank: NcclRank,
    process: NcclProcess,
    log: NcclLog,
    nvlink: bool = False,
) -> Finding:
    """Return the finding on the transports of a rank: no connection over TCP, none over the network of a plugin, and
    none through host memory between two GPUs of a pod.

    :param process: process of the rank
    :param log: log with the problems that explain why NCCL does not use RDMA
    :param nvlink: whether the node of the rank is known to have NVLink between all its GPUs, so that a connection
        through host memory is a failure; otherwise it is a warning
    """
    expected = "no connection over TCP (NET/Socket) or through host memory (SHM)"
    if communicator.size == 1:
        return build_pass("training.transport", subject, "the only rank of its communicator", expected)
    if not rank.routes:
        return Finding(
            "training.transport",
            subject,
            UNKNOWN,
            "no channel in the log",
            f"lines of the channels of this rank, {expected}",
            "The log has no line of a channel of this rank, and only these lines show its transport.",
            WHOLE,
        )
    if any(route.via == "Socket" for route in rank.routes):
        why, remedy = _explain_fallback(process, log)
        measured = f"connections: {_summarize_routes(rank)}"
        return Finding("training.transport", subject, FAIL, measured, expected, why, remedy)
    in_memory = any(route.transport == "SHM" for route in rank.routes)
    plugins = dict.fromkeys(route.via for route in rank.routes if route.is_plugins)
    if plugins and not (in_memory and nvlink):
        why = (
            f"NCCL sends over the network plugin {join_first(list(plugins), 4) or 'without a name'}. Its log lines"
            " do not show whether it uses RDMA or TCP."
        )
        remedy = (
            "Run the job again with NCCL_NET=IB, or without the plugin (NCCL_NET_PLUGIN=none). If the job needs the"
            " plugin, verify in the plugin's own log that it sends over RDMA, and waive this finding."
        )
        measured = f"connections: {_summarize_routes(rank)}"
        return Finding("training.transport", subject, UNKNOWN, measured, expected, why, remedy)
    if in_memory:
        why, remedy = _explain_host_memory(process, nvlink)
        measured = f"connections: {_summarize_routes(rank)}"
        return Finding("training.transport", subject, FAIL if nvlink else WARN, measured, expected, why, remedy)
    return build_pass("training.transport", subject, _summarize_routes(rank), expected)


def _explain_host_memory(process: NcclProcess, nvlink: bool) -> tuple[str, str]:
    """Return the reason why two GPUs of a pod exchange data through host memory, and the remedy.

    :param process: process of the rank
    :param nvlink: whether the node is known to have NVLink between all its GPUs
    """
    passes = "The data between GPUs of this pod passes through host memory (SHM) instead of NVLink or PCIe"
    said = process.environment
    disabled = [name for name in _AGAINST_P2P if name in said and (name != _P2P_DISABLE or read_integer(said[name]))]
    if disabled:
        names = " and ".join(disabled)
        values = ", ".join(f"{name}={said[name]}" for name in disabled)
        return (
            f"{passes}, because {values} is set.",
            f"Remove {names} from the job and from its image, and run the job again.",
        )
    if nvlink:
        return (
            f"{passes}, but nvidia-smi reports that all GPUs of the node are registered with the NVLink fabric.",
            "Follow the findings of stage tuning on the GPUs and on ACS of the node. If there are none, run nvidia-smi"
            " topo -m and nvidia-smi nvlink -s in the pod, and repair the NVLinks that are missing or inactive. Then"
            " run the job again.",
        )
    return (
        f"{passes}, at a fraction of the rate. NCCL does so if the GPUs have no path between them that it may use, such"
        " as with MIG, or between two CPU sockets.",
        "Run nvidia-smi topo -m in the pod (on AMD GPUs, rocm-smi --showtopo). If it shows NVLink (NV) or XGMI between"
        " the GPUs, follow the findings of stage tuning on the GPUs and on ACS of the node, and run the job again. If"
        " it shows SYS or NODE, the GPUs have no better path: waive this finding.",
    )


def _explain_fallback(process: NcclProcess, log: NcclLog) -> tuple[str, str]:
    """Return two texts: the reason why NCCL fell back to TCP in a process, and the remedy."""
    said = process.environment
    if read_integer(said.get("NCCL_IB_DISABLE", "0")):
        return (
            "NCCL does not use RDMA, because NCCL_IB_DISABLE is set.",
            "Remove NCCL_IB_DISABLE from the job and from its image, and run the job again.",
        )
    # NCCL compares it without regard to case [src NVIDIA/nccl src/plugin/net.cc ncclNetInit, strcasecmp]
    if said.get("NCCL_NET", "").lower() == "socket":
        return (
            f"NCCL uses TCP, because NCCL_NET={said['NCCL_NET']} is set.",
            "Remove NCCL_NET from the job and from its image, and run the job again.",
        )
    provider = next((PROVIDERS[problem.kind] for problem in log.problems if problem.kind in PROVIDERS), None)
    if process.without_ib and provider is not None:
        return f"{provider.why} NCCL fell back to TCP without an error.", f"{provider.remedy} Then run the job again."
    if process.without_ib == "no RDMA device found":
        named = f" (NCCL_IB_HCA={said['NCCL_IB_HCA']})" if "NCCL_IB_HCA" in said else ""
        why = f"NCCL found no RDMA device in the pod that it may use{named}, and fell back to TCP without an error."
        return (
            why,
            (
                "Run ibv_devinfo in the pod. If it lists no device, request the RDMA resource of the network in"
                " the pod template. If no port is PORT_ACTIVE, follow the findings of stage virtual_functions."
                " If NCCL_IB_HCA names another device, remove it. Then run the job again."
            ),
        )
    if process.without_ib:
        return (
            f"NCCL could not use RDMA and fell back to TCP without an error: {process.without_ib}.",
            "Install libibverbs and the provider (rdma-core) in the image, and run the job again.",
        )
    return (
        "NCCL fell back to TCP without an error, and the log does not show the reason.",
        (
            "Run ibv_devinfo in the pod: if it lists no device, request the RDMA resource of the network in the"
            " pod template. Run ulimit -l in the pod: if it is less than some GiB, set"
            f" rdma_cluster.host.memlock. If both are right, {ON[:1].lower()}{ON[1:]}"
        ),
    )


def check_gpu_direct(
    subject: str, over: typing.Sequence[NcclRoute], process: NcclProcess, wanted: bool, library: str
) -> Finding:
    """Return the finding on whether all connections of a rank over the network use GPUDirect RDMA.

    :param subject: subject of the finding
    :param over: connections of the rank over the network by RDMA. Connections over TCP have a finding of their own
    :param process: process of the rank
    :param wanted: whether a channel without GPUDirect RDMA is a failure; otherwise the finding passes
    :param library: NCCL or RCCL
    """
    without = sorted({channel for route in over if not route.gpu_direct for channel in route.channels})
    expected = "GPUDirect RDMA (GDRDMA) on each channel over the network" if wanted else "not required"
    if not without:
        return build_pass(
            "training.gpu_direct",
            subject,
            f"GDRDMA on all {sum(route.lines for route in over)} connections over the network",
            expected,
        )
    measured = f"no GPUDirect RDMA (GDRDMA) on {_name_channels(without)}"
    if not wanted:
        return build_pass("training.gpu_direct", subject, measured, expected)
    used = {route.device for route in over if not route.gpu_direct}
    reasons = [
        f"{device.name}: {'; '.join(device.reasons)}"
        for device in process.devices
        if device.index in used and device.reasons
    ]
    if library == "RCCL":
        why = f"{_DETOUR} RCCL gives this reason: {', '.join(reasons)}." if reasons else f"{_DETOUR} {_NO_REASON}"
        remedy = (
            "Set NCCL_DMABUF_ENABLE=1 if the kernel has DMA-BUF (zgrep -E 'DMABUF_MOVE_NOTIFY|PCI_P2PDMA'"
            " /proc/config.gz), or load amdgpu from ROCm's own package, which supports peer memory. Boot the node with"
            " iommu=pt, and disable ACS on the bridges between GPU and HCA. Then run the job again."
        )
    elif reasons:
        why = f"{_DETOUR} NCCL gives this reason: {', '.join(reasons)}."
        remedy = (
            "If the reason is a missing module, set rdma_cluster.host.gpudirect: auto, run stage host, and"
            f" follow the remedy of its finding host.gpudirect for {_NODE_OF_RANK}. If the reason is the"
            " distance, give the pod the"
            f" HCA beside the GPU (nvidia-smi topo -m), or set NCCL_NET_GDR_LEVEL=SYS in the job. {_ON_GRACE}"
            " Then run the job again."
        )
    else:
        why = f"{_DETOUR} {_NO_REASON}"
        remedy = (
            "Set rdma_cluster.host.gpudirect: auto, run stage host, and follow the remedy of its finding"
            f" host.gpudirect for {_NODE_OF_RANK}. {_ON_GRACE} If host.gpudirect passes, set NCCL_DEBUG_SUBSYS=INIT,NET"
            " in the job, so that NCCL logs the reason. Then run the job again."
        )
    return Finding("training.gpu_direct", subject, FAIL, measured, expected, why, remedy)


def _summarize_routes(rank: NcclRank) -> str:
    """Return the routes of a rank as text, with the number of connections on each."""
    lines: dict[str, int] = {}
    for route in rank.routes:
        lines[describe_route(route)] = lines.get(describe_route(route), 0) + route.lines
    return ", ".join(f"{name} {count}" for name, count in lines.items()) or "no channel in the log"


def _find_gaps(seen: typing.Sequence[int], size: int) -> list[tuple[int, int]]:
    """Return the ranges of ranks below ``size`` that are missing in ``seen``, each as its first and last rank, in
    order. Stop after one more range than a text shows, since a log may claim any size.

    :param seen: ranks that the log contains
    :param size: number of ranks of the communicator
    """
    found: list[tuple[int, int]] = []
    following = 0
    for rank in (*seen, size):
        if following < min(rank, size):
            found.append((following, min(rank, size) - 1))
        if len(found) > _SHOWN:
            break
        following = rank + 1
    return found


def _name_channels(values: typing.Sequence[int]) -> str:
    return f"channel{'s' if len(values) > 1 else ''} {spell_numbers(values)}"


def spell_numbers(values: typing.Sequence[int]) -> str:
    """Return ranks or channels as text, such as ``1, 3-8``, with at most twelve ranges.

    :param values: numbers of ranks or channels, in ascending order
    """
    return _spell_spans(_find_spans(values))


def _find_spans(values: typing.Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive numbers, each as its first and last number.

    The numbers must be in ascending order.
    """
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    return spans


def _name_ranks(spans: typing.Sequence[tuple[int, int]]) -> str:
    """Return ranks as text, such as ``rank 1`` or ``ranks 1, 3-8``.

    :param spans: first and last number of each group of consecutive ranks
    """
    single = len(spans) == 1 and spans[0][0] == spans[0][1]
    return f"{'rank' if single else 'ranks'} {_spell_spans(spans)}"


def _spell_spans(spans: typing.Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans[:_SHOWN])
    return f"{shown} and more" if len(spans) > _SHOWN else shown
