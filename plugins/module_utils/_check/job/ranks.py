# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the communicators, channels and transports of the ranks in a log of NCCL."""

from __future__ import annotations

import typing

from ..._analysis.fleet.providers import PROVIDERS
from ..._model.base.text import folded
from ..._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.run.findings import FAIL, UNKNOWN, Finding, ok

#: ranks or channels that a text names, as spans
_SHOWN = 12
ON = "Set NCCL_DEBUG=INFO in every process, and keep NCCL_DEBUG_SUBSYS unset or with INIT and NET in it."
WHOLE = "Give the whole log, from the first line on, of every pod; one file a pod is safest."


def describe_route(route: NcclRoute) -> str:
    """Return a route as NCCL writes it, without the number of the device, such as NET/IB/GDRDMA."""
    return f"{route.transport}/{route.via}" + ("/GDRDMA" if route.gpu_direct else "")


def check_communicator(communicator: NcclCommunicator) -> list[Finding]:
    subject, size = f"communicator {communicator.name}", communicator.size
    if size is None:
        why = "These ranks have channels in the log, and the lines in which they say who they are, are missing."
        measured = f"{len(communicator.ranks)} ranks without a communicator"
        return [Finding("training.ranks", subject, UNKNOWN, measured, "ranks of a communicator", why, WHOLE)]
    expected = f"all {size} ranks, each complete"
    seen = {rank.rank for rank in communicator.ranks}
    missing = _find_gaps(sorted(seen), size)
    late = [rank.rank for rank in communicator.ranks if not rank.complete]
    if missing:
        why = (
            f"Nothing is known of rank {_spell_spans(missing)}: the log of their pods is not here, or they write none."
        )
        return [
            Finding("training.ranks", subject, UNKNOWN, f"{len(seen)} of {size} ranks", expected, why, f"{WHOLE} {ON}")
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
                f"See the last lines of them. {WHOLE}",
            )
        ]
    return [ok("training.ranks", subject, f"{size} of {size}", expected)]


def check_channels(subject: str, communicator: NcclCommunicator, rank: NcclRank) -> Finding:
    if communicator.size == 1:
        return ok("training.channels", subject, "alone in its communicator", "no channel")
    expected = "a connection on each channel of collectives"
    if rank.channels is None:
        why = "The line that says how many channels the rank has is missing, so it is not known whether all are seen."
        return Finding("training.channels", subject, UNKNOWN, _summarize_routes(rank), expected, why, WHOLE)
    if rank.unseen or not rank.channels:
        why = f"Nothing is known of channel {spell_numbers(rank.unseen)}: "
        if len(rank.unseen) < rank.channels:
            why += "the lines are lost, torn or cut off."
        else:
            why += (
                "since 2.22 NCCL connects at the first collective, so none ran here, only NVLS did, or the log ends"
                " before."
            )
        remedy = f"Run a collective in this communicator (NCCL_NVLS_ENABLE=0 for the proof). {WHOLE}"
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
        return Finding("training.channels", subject, UNKNOWN, measured, expected, why, WHOLE)
    return ok("training.channels", subject, f"{rank.channels} of {rank.channels} channels", expected)


def check_transport(
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
            WHOLE,
        )
    if any(route.via == "Socket" for route in rank.routes):
        why, remedy = _explain_fallback(process, log)
        return Finding("training.transport", subject, FAIL, _summarize_routes(rank), expected, why, remedy)
    plugins = dict.fromkeys(route.via for route in rank.routes if route.is_plugins)
    if plugins:
        why = f"Network {folded(list(plugins), 4)} is a plugin's, of which it is not known here what it sends by."
        remedy = (
            "Run the job with NCCL_NET=IB, or without the plugin (NCCL_NET_PLUGIN=none). Where the plugin is needed,"
            " show by its own log that it sends by RDMA, and waive this finding."
        )
        return Finding("training.transport", subject, UNKNOWN, _summarize_routes(rank), expected, why, remedy)
    return ok("training.transport", subject, _summarize_routes(rank), expected)


def _explain_fallback(process: NcclProcess, log: NcclLog) -> tuple[str, str]:
    """Return why NCCL fell back to TCP in a process, and the remedy."""
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
        f"Check that the pod has RDMA devices (ibv_devinfo) and that memlock is large enough (ulimit -l). {ON}",
    )


def check_gpu_direct(
    subject: str, over: typing.Sequence[NcclRoute], process: NcclProcess, wanted: bool, library: str
) -> Finding:
    """Check that the channels of a rank over the network use GPUDirect RDMA.

    :param over: connections of the rank over the network, without those over TCP, which ``check_transport`` reports
    :param wanted: whether a channel without GPUDirect RDMA is a failure
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


def _summarize_routes(rank: NcclRank) -> str:
    """Return the routes of a rank as text, with the number of connections on each."""
    lines: dict[str, int] = {}
    for route in rank.routes:
        lines[describe_route(route)] = lines.get(describe_route(route), 0) + route.lines
    return ", ".join(f"{name} {count}" for name, count in lines.items()) or "no channel in the log"


def _find_gaps(seen: typing.Sequence[int], size: int) -> list[tuple[int, int]]:
    """Return the ranges of ranks below ``size`` that are missing in ``seen``, each as its first and last rank, in
    order. Stop after one more range than a text shows, since a log may claim any size.
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


def spell_numbers(values: typing.Sequence[int]) -> str:
    """Return ranks or channels as text, such as ``1, 3-8``, with at most twelve ranges."""
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    return _spell_spans(spans)


def _spell_spans(spans: typing.Sequence[tuple[int, int]]) -> str:
    shown = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans[:_SHOWN])
    return f"{shown} and more" if len(spans) > _SHOWN else shown
