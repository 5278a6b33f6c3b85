# SPDX-License-Identifier: GPL-3.0-or-later

"""Possible causes of a collective that is slow although its links are not, found in NCCL's log and in facts about the
nodes. Check id: ``collectives.cause``.

Each cause is one finding with its measured value and its remedy. A listed cause is a candidate, not proven. Causes that
NCCL's log shows come first. If no cause is found, one finding reports that.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.job.nccl import NcclChoice, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.node.tuning import NodeTuning
from ..._model.node.tuning_rows.row import rule_accepts
from ..._model.node.tuning_rows.table import BY_NAME
from ..._model.run.findings import UNKNOWN, Finding
from ..job.log.channels import name_hcas
from .network_causes import (
    check_adaptive_routing,
    check_gids,
    check_mtus,
    check_queue_pairs,
    check_settings,
    check_traffic_class,
)
from .rail_causes import report_rails_alone, report_weak_rails
from .surroundings import Surroundings, fold_names, make_cause

#: rows of stage tuning that affect a collective over GPUDirect RDMA, those with the largest effect first
_ROWS = (
    "gpu_slowed",
    "acs",
    "p2pdma",
    "gpu_nic_path",
    "gpu_link_width",
    "gpu_link_speed",
    "gpu_mig",
    "max_read_request",
    "relaxed_ordering",
    "governor",
    "idle_latency",
)
LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS", "NCCL_NCHANNELS_PER_NET_PEER")


def find_causes(
    subject: str, log: NcclLog, choice: typing.Optional[NcclChoice], seen: Surroundings
) -> tuple[Finding, ...]:
    """Return the findings on the possible causes of a slow run. If no cause is found, return one finding of status
    unknown.

    :param subject: subject of findings on the whole run
    :param log: log that contains only the communicators of the run
    :param choice: algorithm, protocol and number of channels that NCCL chose for the message size of the figure; None
        if unknown
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    processes = {(process.host, process.pid): process for process in log.processes}
    ranks = [
        (rank, processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid)))
        for item in log.communicators
        for rank in item.ranks
    ]
    own = [process for key, process in processes.items() if key in {(rank.host, rank.pid) for rank, _process in ranks}]
    found = [
        *_report_without_gpu_direct(ranks),
        *_check_channels(subject, ranks, choice, own),
        *_report_uneven(ranks),
        *_report_far_hcas(ranks, seen),
        *_check_through_others(ranks),
        *report_weak_rails(seen),
        *report_rails_alone(subject, seen),
        *_check_hosts(ranks, seen),
        *check_gids(subject, own),
        *check_mtus(own),
        *check_traffic_class(own, seen),
        *check_queue_pairs(own, seen),
        *check_adaptive_routing(own, seen),
        *check_settings(own, seen),
        *_check_gpu_memory(subject, seen),
    ]
    return tuple(found) or (_report_no_cause(subject),)


Ranks = typing.Sequence[tuple[NcclRank, NcclProcess]]


def _list_network_routes(rank: NcclRank) -> list[NcclRoute]:
    return [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]


def _list_hcas(route: NcclRoute, process: NcclProcess) -> list[str]:
    return [name for device in process.devices if device.index == route.device for name in name_hcas(device.name)]


def _report_without_gpu_direct(ranks: Ranks) -> typing.Iterator[Finding]:
    """Warn about ranks that send over the network without GPUDirect RDMA, with the reason that NCCL logs.

    :param ranks: each rank of the run with its process
    """
    without = [
        (rank, process, route)
        for rank, process in ranks
        for route in _list_network_routes(rank)
        if not route.gpu_direct
    ]
    if not without:
        return
    reasons = dict.fromkeys(
        f"{device.name}: {'; '.join(device.reasons)}"
        for _rank, process, route in without
        for device in process.devices
        if device.index == route.device and device.reasons
    )
    why = (
        "The data between these GPUs and the network passes through host memory, which is slower than GPUDirect RDMA"
    ) + (f". Reasons in NCCL's log: {fold_names(reasons)}." if reasons else ". NCCL's log does not report the reason.")
    remedy = (
        "Run stage host with rdma_cluster.host.gpudirect: auto, and follow the remedy of its finding"
        " host.gpudirect: it shows whether nvidia-peermem or DMA-BUF is missing on a node. If both are there, an"
        " HCA is too far from its GPU: give the pods the HCA beside each GPU (nvidia-smi topo -m), or set"
        " NCCL_NET_GDR_LEVEL=SYS in jobs. Then run stage collectives again."
    )
    measured = (
        f"{len({(rank.host, rank.rank) for rank, _process, _route in without})} of {len(ranks)} ranks without GPUDirect"
        " RDMA"
    )
    yield make_cause(
        fold_names(rank.host for rank, _process, _route in without),
        measured,
        "GPUDirect RDMA (GDRDMA) on each channel over the network",
        why,
        remedy,
    )


def _check_channels(
    subject: str, ranks: Ranks, choice: typing.Optional[NcclChoice], processes: typing.Sequence[NcclProcess]
) -> typing.Iterator[Finding]:
    """Warn if a run does not use all of its channels, or if environment variables limit the number of channels.

    :param subject: subject of findings that concern the run as a whole
    :param ranks: each rank of the run with its process
    :param choice: algorithm, protocol and number of channels that NCCL chose for the message size of the figure; None
        if unknown
    :param processes: processes of the run
    """
    limits = {
        name: process.environment[name] for process in processes for name in LIMITS if name in process.environment
    }
    there = min((rank.channels for rank, _process in ranks if rank.channels), default=0)
    set_by = (
        f" The environment sets {', '.join(f'{name}={value}' for name, value in limits.items())}." if limits else ""
    )
    remedy = (
        f"Remove {', '.join(limits)} from the image and from the jobs, then run stage collectives again."
        if limits
        else (
            "Raise rdma_cluster.collectives.most_bytes, so that NCCL uses all channels. If that does not"
            f" suffice, set NCCL_MIN_NCHANNELS={there} in the image and in jobs. Then run stage collectives"
            " again."
        )
    )
    if choice is not None and choice.channels is not None and choice.channels < there:
        measured, expected = f"{choice.channels} of {there} channels", "all channels for a large message"
        yield make_cause(
            subject,
            measured,
            expected,
            f"NCCL uses only some of its channels for messages of this size, which can limit the bandwidth.{set_by}",
            remedy,
        )
    elif limits:
        yield make_cause(
            subject,
            count_of(there, "channel"),
            "the number of channels that NCCL chooses",
            f"Environment variables limit the number of channels, which can limit the bandwidth.{set_by}",
            remedy,
        )


def _report_uneven(ranks: Ranks) -> typing.Iterator[Finding]:
    """Warn about an HCA that carries more channels than another HCA of the same host, so that the run waits for it.

    :param ranks: each rank of the run with its process
    """
    loads: dict[str, dict[str, set[tuple[int, int]]]] = {}
    for rank, process in ranks:
        for route in _list_network_routes(rank):
            if route.direction == "send":
                for name in _list_hcas(route, process):
                    loads.setdefault(rank.host, {}).setdefault(name, set()).update(
                        (rank.rank, channel) for channel in route.channels
                    )
    for host, by_hca in loads.items():
        most, least = (choose(by_hca, key=lambda name: len(by_hca[name])) for choose in (max, min))
        if len(by_hca[most]) > len(by_hca[least]):
            measured = (
                f"{most}: {count_of(len(by_hca[most]), 'channel')}, {least}: {count_of(len(by_hca[least]), 'channel')}"
            )
            why = f"{most} carries more channels than another HCA of this host, and the whole collective waits for it."
            remedy = (
                "If the image sets NCCL_IB_HCA, remove it, so that NCCL uses all HCAs of the pod. Otherwise set"
                " NCCL_MIN_NCHANNELS in the image and in jobs to a multiple of the number of HCAs per node. Then"
                " run stage collectives again."
            )
            yield make_cause(host, measured, "the same number of channels on each HCA", why, remedy)


def _report_far_hcas(ranks: Ranks, seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about GPUs that send through an HCA of another NUMA node than their own.

    :param ranks: each rank of the run with its process
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    found: dict[str, dict[str, None]] = {}
    for rank, process in ranks:
        tuning = seen.tunings.get(rank.host)
        near = _find_numa_node(rank.bus_id, tuning) if tuning else None
        for route in _list_network_routes(rank):
            for name in _list_hcas(route, process) if route.proxy is None and near is not None else ():
                hca = seen.hcas.get(rank.host, {}).get(name)
                if hca is not None and hca.numa_node is not None and str(hca.numa_node) != near:
                    found.setdefault(rank.host, {})[
                        f"rank {rank.rank} (NUMA node {near}) uses {name} (NUMA node {hca.numa_node})"
                    ] = None
    for host, lines in found.items():
        why = (
            "The data between these GPUs and HCAs passes over the link between the CPU sockets. All of these"
            " ranks share this link, and GPUDirect RDMA over it is slow."
        )
        remedy = (
            "Remove NCCL_IB_HCA and CUDA_VISIBLE_DEVICES from the image, if it sets them. Otherwise give the"
            " pods the HCA beside each GPU: set topologyManagerPolicy: single-numa-node in the kubelet"
            " configuration (rdma_cluster.host.kubelet). Then run stage collectives again."
        )
        yield make_cause(host, fold_names(lines), "an HCA on the NUMA node of the GPU", why, remedy)


def _find_numa_node(bus_id: str, tuning: NodeTuning) -> typing.Optional[str]:
    """Return the NUMA node of a GPU, or None if unknown.

    :param bus_id: PCI address as NCCL writes it, one hexadecimal number: 1b000 is 0000:1b:00.0
    :param tuning: settings of the node
    """
    try:
        number = int(bus_id, 16)
    except ValueError:
        return None
    address = f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}"
    for reading in tuning.rows.get("gpu_numa", ()):
        if address in reading.where:
            return reading.value
    return None


def _check_through_others(ranks: Ranks) -> typing.Iterator[Finding]:
    """Warn about channels that reach the network through another GPU and its HCA (PXN), except in all-to-all tests,
    which use PXN by design.

    :param ranks: each rank of the run with its process
    """
    # an alltoall uses the GPU on the rail of its target by design
    through = [
        (rank, route)
        for rank, _process in ranks
        for route in _list_network_routes(rank)
        if route.proxy is not None and not route.connection
    ]
    if through:
        measured = (
            f"{len({(rank.host, rank.rank) for rank, _route in through})} of {len(ranks)} ranks use the network through"
            " another GPU"
        )
        why = (
            "NCCL found a better path to the network through another GPU (PXN) than through the HCA beside the GPU of"
            " the rank. That HCA is far from the GPU, down, or not in the pod."
        )
        remedy = (
            "Run nvidia-smi topo -m on the node: it shows PIX or PXB for the HCA beside a GPU. Follow the"
            " finding discover.port, if the port of this HCA is down. Otherwise give the pods the HCA beside"
            " each GPU (topologyManagerPolicy of the kubelet). Do not set NCCL_PXN_DISABLE=1, which only hides"
            " the problem. Then run stage collectives again."
        )
        yield make_cause(
            fold_names(rank.host for rank, _route in through), measured, "each GPU uses the HCA beside it", why, remedy
        )


def _check_hosts(ranks: Ranks, seen: Surroundings) -> typing.Iterator[Finding]:
    """Compare the tuning of the hosts of a run, such as PCI ACS and CPU governor, with the profile for training, and
    warn about each setting that slows down GPUs or HCAs.

    :param ranks: each rank of the run with its process
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    hosts = dict.fromkeys(rank.host for rank, _process in ranks)
    for name in _ROWS:
        row, off = BY_NAME[name], {}
        for host in hosts:
            readings = seen.tunings[host].rows.get(name, ()) if host in seen.tunings else ()
            wrong = [reading for reading in readings if row.training and not rule_accepts(row.training, reading.value)]
            if wrong:
                off[host] = f"{wrong[0].value}{f' ({fold_names(wrong[0].where)})' if wrong[0].where else ''}"
        if off:
            why = f"This applies to {len(off)} of {len(hosts)} hosts. {row.harm}"
            yield make_cause(
                fold_names(off),
                f"{row.what}: {fold_names(off.values())}",
                f"{row.what}: {row.training.replace('|', ' or ')}{row.explain_rule(row.training)}",
                why,
                f"{row.remedy} Then run stages tuning and collectives again.",
            )


def _check_gpu_memory(subject: str, seen: Surroundings) -> typing.Iterator[Finding]:
    if seen.from_gpu_memory is False:
        why = (
            "Stage bandwidth measured the rates of the rails from host memory. It did not measure the path between GPU"
            " and HCA, which a collective uses. ACS, the IOMMU, a PCIe switch or relaxed ordering may reduce the rate"
            " of this path by more than half."
        )
        remedy = (
            "Follow the findings of stages tuning and host on ACS, the IOMMU and peer memory. To measure the"
            " path between GPU and HCA as well, set bandwidth.layers: all of the fabric. Then run stages"
            " bandwidth and collectives again."
        )
        yield make_cause(
            subject,
            "rates of the rails measured from host memory",
            "rates of the rails measured from GPU memory",
            why,
            remedy,
        )


def _report_no_cause(subject: str) -> Finding:
    why = (
        "NCCL's log and the data of the nodes show no cause. The check compared GPUDirect RDMA, channels, HCAs, NUMA"
        " nodes, PXN, rails, GPUs, GID, MTU, traffic class, queue pairs, adaptive routing and settings: each value that"
        " was read is correct."
    )
    remedy = (
        "Add sendrecv to rdma_cluster.collectives.tests, and run stage collectives again: its program sendrecv_perf"
        " sends over one rail only. If it is slow too, the path from GPU to HCA is slow: disable ACS and set iommu=pt"
        " on the nodes. If it is fast, set rdma_cluster.collectives.image to an image with another release of NCCL."
        " Then run stage collectives again."
    )
    return Finding(
        "collectives.cause",
        subject,
        UNKNOWN,
        "0 causes found in NCCL's log and in the data of the nodes",
        "at least 1 cause of the low bandwidth",
        why,
        remedy,
    )
