# SPDX-License-Identifier: GPL-3.0-or-later

"""Find possible causes of a slow collective in the network: GIDs, MTU, traffic class, queue pairs, adaptive routing,
and settings of NCCL. This is part of the check ``collectives.cause``.
"""

from __future__ import annotations

import typing

from ..._model.base.text import parse_number
from ..._model.job.nccl import NcclProcess
from ..._model.run.findings import Finding
from ..job.log.ranks import spell_numbers
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
#: without the file of NVIDIA's driver packages, a node has no traffic class of its own, and NCCL's is 0
_UNSEEN = "the log shows no NCCL_IB_TC, and no fact shows a traffic class of the node"
#: rate in Gb/s from which on one queue pair does not fill a link on each host [NVIDIA/nccl issue 2409: 284 of 400 Gb/s
#: with messages of 1 MiB]
_FAST = 200.0


def check_gids(subject: str, processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
    """Warn if queue pairs of a run use different GID indexes, and so different addresses or RoCE versions.

    :param subject: subject of the finding
    :param processes: processes of the run
    """
    indexes = sorted({index for process in processes for index in process.gid_indexes})
    if len(indexes) > 1:
        why = (
            "The queue pairs use GIDs of several indexes. These GIDs belong to different versions of RoCE or to"
            " different subnets, so different switches and queues carry the traffic."
        )
        remedy = (
            "Remove NCCL_IB_GID_INDEX from the image, so that NCCL selects the GID by its address. If the"
            " indexes still differ, give each pod one address of the same family on each interface (ipam of the"
            " fabric). Then run stage collectives again."
        )
        yield make_cause(subject, f"GID indexes {spell_numbers(indexes)}", "one GID index", why, remedy)


def check_mtus(processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
    small = {process.host: min(process.mtus) for process in processes if process.mtus and min(process.mtus) < 4096}
    if small:
        why = (
            "The queue pairs send packets of less than 4096 bytes. The headers and the processing of each packet then"
            " take more of the link."
        )
        remedy = (
            "On RoCE, set an MTU of at least 4200 on the switch ports (9000 is usual) and mtu of the fabric in"
            " the intent, then run stage network. On InfiniBand, set mtu=5 (4096 bytes) for the partition in"
            " partitions.conf of the subnet manager. Then run stage collectives again."
        )
        yield make_cause(fold_names(small), f"MTU of {min(small.values())} bytes", "MTU of 4096 bytes", why, remedy)


def check_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about hosts whose RoCE traffic class (NCCL_IB_TC) differs from that of the intent, or is not shown, so that
    their packets may use a queue without PFC and ECN.

    :param processes: processes of the run
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    wrong = _find_wrong_traffic_classes(processes, seen)
    if wrong and seen.roce is not None:
        wanted = seen.roce.traffic_class
        why = (
            "RDMA packets use a queue without PFC and ECN. Other traffic fills this queue, and the queue loses packets."
        )
        expected = f"NCCL_IB_TC={wanted} (DSCP {seen.roce.dscp})"
        yield make_cause(
            fold_names(wrong),
            fold_names(wrong.values()),
            expected,
            why,
            (
                f"Set NCCL_IB_TC={wanted} in the image and in jobs, or follow the finding of stage tuning on"
                " roce_traffic_class. Then run stage collectives again."
            ),
        )


def has_wrong_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Return whether the log or the facts show that RoCE traffic is in another traffic class than the intent sets;
    False if the intent sets no RoCE settings.

    :param processes: processes of the run
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    return any(text != _UNSEEN for text in _find_wrong_traffic_classes(processes, seen).values())


def _find_wrong_traffic_classes(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
    """Return the hosts whose traffic class is not that of the intent, or not shown, each with the reason.

    Only a process that connects an HCA logs the variable, so one process speaks for its host.
    """
    if seen.roce is None:
        return {}
    said: dict[str, list[str]] = {}
    for process in processes:
        value = process.environment.get("NCCL_IB_TC")
        said.setdefault(process.host, []).extend(() if value is None else (value,))
    wrong = {}
    for host, values in said.items():
        tuning = seen.tunings.get(host)
        by_node = {reading.value for reading in tuning.rows.get("roce_traffic_class", ())} if tuning else set()
        numbers = {value: parse_number(value) for value in values}
        others = [value for value, number in numbers.items() if number is not None and number >> 2 != seen.roce.dscp]
        if others:
            wrong[host] = f"NCCL_IB_TC={others[0]}"
        elif not values and by_node and str(seen.roce.traffic_class) not in by_node:
            wrong[host] = "NCCL_IB_TC not set, and the node does not set the required traffic class"
        elif not values and not by_node:
            wrong[host] = _UNSEEN
    return wrong


def check_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about connections with a single queue pair over fast RoCE. One queue pair is one flow, which uses one link
    between switches, and on some hosts does not fill a fast link.

    :param processes: processes of the run
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    few = _find_few_queue_pairs(processes, seen)
    if few:
        why = (
            "Each connection has one queue pair, which is one flow. The flow uses only one of the links between"
            " switches, and on some hosts it does not fill a fast link."
        )
        remedy = (
            "Set NCCL_IB_QPS_PER_CONNECTION=4 in the image and in jobs, then run stage collectives again. If it"
            " is not faster with adaptive routing in the switches, remove the variable."
        )
        yield make_cause(
            fold_names(few),
            f"queue pairs per connection: {fold_names(few.values())}",
            "queue pairs per connection: at least 2, because the links are fast RoCE",
            why,
            remedy,
        )


def has_few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Return whether a process has a single queue pair for each connection over fast RoCE; False without RoCE.

    :param processes: processes of the run
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    return bool(_find_few_queue_pairs(processes, seen))


def _find_few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
    fast = any((hca.rate_gbps or 0) > WEAK * _FAST for hcas in seen.hcas.values() for hca in hcas.values())
    if seen.roce is None or not fast:
        return {}
    said = {
        process.host: process.environment.get("NCCL_IB_QPS_PER_CONNECTION", "1, the default of NCCL")
        for process in processes
    }
    return {host: value for host, value in said.items() if (parse_number(value.partition(",")[0]) or 0) < 2}


def check_adaptive_routing(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    off = {process.host for process in processes if process.environment.get("NCCL_IB_ADAPTIVE_ROUTING") == "0"}
    if seen.several_leaves and (seen.adaptive_routing is False or off):
        measured = "NCCL_IB_ADAPTIVE_ROUTING=0" if off else "adaptive routing between leaves: off in the switches"
        why = (
            "Without adaptive routing, each flow stays on one of the links between switches. Two flows can share one"
            " link while other links are idle."
        )
        remedy = (
            "On InfiniBand, enable adaptive routing in the subnet manager, and set a service level for it (NCCL_IB_SL)."
            " On Spectrum-X, set NCCL_IB_ADAPTIVE_ROUTING=1. Then run stage collectives again."
        )
        yield make_cause(
            fold_names(sorted(off)) or "links between switches",
            measured,
            "adaptive routing between leaves: on",
            why,
            remedy,
        )


def check_settings(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about environment variables that force NCCL to use a certain algorithm, protocol or other setting, so that
    NCCL does not choose it by its own tuning.

    :param processes: processes of the run
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    for names, why in ((SIZES, "sizes of buffers and chunks"), (CHOICES, "path and algorithm")):
        said = {
            f"{name}={process.environment[name]}": None
            for process in processes
            for name in names
            if name in process.environment and name not in seen.set_by_run
        }
        if said:
            text = (
                f"Environment variables override NCCL's own choice of {why}. Such settings often remain after the"
                " version or the machine for which they were chosen has changed."
            )
            yield make_cause(
                "job",
                fold_names(said),
                "variables not set, so that NCCL chooses itself",
                text,
                (
                    "Remove these settings from the image, then run stage collectives again. If the bandwidth is"
                    " lower without one of them, keep that setting."
                ),
            )
