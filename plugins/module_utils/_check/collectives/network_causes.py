# SPDX-License-Identifier: GPL-3.0-or-later

"""Find possible causes of a slow collective in the network: GIDs, MTU, traffic class, queue pairs, adaptive routing,
and settings of NCCL. This is part of the check ``collectives.cause``.
"""

from __future__ import annotations

import typing

from ..._model.base.text import parse_number
from ..._model.job.nccl import NcclProcess
from ..._model.run.findings import Finding
from ..job.ranks import spell_numbers
from .surroundings import WEAK, Surroundings, fold_names, make_cause

#: variables that replace NCCL's own choice of the sizes of buffers and chunks
SIZES = (
    "NCCL_BUFFSIZE",
    "NCCL_CHUNK_SIZE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE",
)
CHOICES = (
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_DISABLE",
    "NCCL_CROSS_NIC",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
)
#: rate in Gb/s from which on one queue pair does not fill a link on each host [NVIDIA/nccl issue 2409: 284 of 400 Gb/s
#: with messages of 1 MiB]
_FAST = 200.0


def check_gids(subject: str, processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
    """Report that the queue pairs of a run use different GID indexes."""
    indexes = sorted({index for process in processes for index in process.gid_indexes})
    if len(indexes) > 1:
        why = (
            "Queue pairs use GIDs of several indexes: other versions of RoCE, or other subnets, which other switches"
            " and queues carry."
        )
        remedy = (
            "Choose by address: NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE, rather than NCCL_IB_GID_INDEX; compare"
            " show_gids of both pods."
        )
        yield make_cause(subject, f"GID index {spell_numbers(indexes)}", "one GID index", why, remedy)


def check_mtus(processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
    small = {process.host: min(process.mtus) for process in processes if process.mtus and min(process.mtus) < 4096}
    if small:
        why = (
            "Queue pairs send packets of less than 4096 bytes, and their headers and the work for each take more of the"
            " link."
        )
        remedy = (
            "RoCE: MTU of 4200 at least on interface, VF and switch (9000 is usual). InfiniBand: the MTU of the"
            " partition and of the links."
        )
        yield make_cause(fold_names(small), f"{min(small.values())} bytes", "4096 bytes", why, remedy)


def check_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Report RoCE traffic in a queue that the fabric does not reserve for it."""
    wrong = _find_wrong_traffic_classes(processes, seen)
    if wrong and seen.roce is not None:
        wanted = seen.roce.traffic_class
        why = "RDMA packets go into a queue without PFC and ECN, which other traffic fills and which loses packets."
        expected = f"NCCL_IB_TC={wanted} (DSCP {seen.roce.dscp})"
        yield make_cause(
            fold_names(wrong),
            fold_names(wrong.values()),
            expected,
            why,
            f"Set NCCL_IB_TC={wanted} in the job, or the traffic class of the device.",
        )


def has_wrong_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Return whether a process sends RoCE traffic in a queue that the fabric does not reserve for it."""
    return bool(_find_wrong_traffic_classes(processes, seen))


def _find_wrong_traffic_classes(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
    if seen.roce is None:
        return {}
    wrong = {}
    for process in processes:
        said = process.environment.get("NCCL_IB_TC")
        tuning = seen.tunings.get(process.host)
        by_node = {reading.value for reading in tuning.rows.get("roce_traffic_class", ())} if tuning else set()
        if said is not None and parse_number(said) is not None and (parse_number(said) or 0) >> 2 != seen.roce.dscp:
            wrong[process.host] = f"NCCL_IB_TC={said}"
        elif said is None and by_node and str(seen.roce.traffic_class) not in by_node:
            wrong[process.host] = "NCCL_IB_TC not set, and none on the node"
    return wrong


def check_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Report connections with a single queue pair over fast RoCE. One queue pair is one flow, which uses one link
    between switches, and on some hosts does not fill a fast link.
    """
    few = _find_few_queue_pairs(processes, seen)
    if few:
        why = (
            "A connection has one queue pair: one flow, which goes over one of the links between switches, and does not"
            " fill a fast link on each host."
        )
        remedy = "Set NCCL_IB_QPS_PER_CONNECTION=4 or 8; with adaptive routing in the switches compare with 1."
        yield make_cause(fold_names(few), f"{fold_names(few.values())} queue pair", "several on fast RoCE", why, remedy)


def has_few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Return whether a process has one queue pair for each connection over fast RoCE."""
    return bool(_find_few_queue_pairs(processes, seen))


def _find_few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
    fast = any((hca.rate_gbps or 0) > WEAK * _FAST for hcas in seen.hcas.values() for hca in hcas.values())
    if seen.roce is None or not fast:
        return {}
    said = {
        process.host: process.environment.get("NCCL_IB_QPS_PER_CONNECTION", "1, NCCL's own") for process in processes
    }
    return {host: value for host, value in said.items() if (parse_number(value.partition(",")[0]) or 0) < 2}


def check_adaptive_routing(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    off = {process.host for process in processes if process.environment.get("NCCL_IB_ADAPTIVE_ROUTING") == "0"}
    if seen.several_leaves and (seen.adaptive_routing is False or off):
        measured = "NCCL_IB_ADAPTIVE_ROUTING=0" if off else "off in the switches"
        why = "Each flow keeps one of the links between switches, so that two flows share a link while others are idle."
        remedy = (
            "InfiniBand: adaptive routing of the subnet manager, and a service level for it (NCCL_IB_SL). Spectrum-X:"
            " NCCL_IB_ADAPTIVE_ROUTING=1."
        )
        yield make_cause(
            fold_names(sorted(off)) or "links between switches",
            measured,
            "adaptive routing between leaves",
            why,
            remedy,
        )


def check_settings(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Report environment variables that replace NCCL's own choice."""
    for names, why in ((SIZES, "sizes of buffers and chunks"), (CHOICES, "way and algorithm")):
        said = {
            f"{name}={process.environment[name]}": None
            for process in processes
            for name in names
            if name in process.environment and name not in seen.set_by_run
        }
        if said:
            text = (
                f"NCCL's own choice of {why} is set aside; settings outlive the version and the machine that they were"
                " found on."
            )
            yield make_cause(
                "job", fold_names(said), "not set", text, "Run it once without these, and keep those that help."
            )
