# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a collective is slow although its links are not: by NCCL's log and by what is known of the nodes. Check id:
``collectives.cause``.

Each cause is one finding with what was seen of it and its remedy. A cause is no proof that it is the one: those are
told first that NCCL's log shows itself. Where nothing speaks for any cause, that is a finding as well.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._model.base.text import folded, parse_number
from ..._model.job.nccl import NcclChoice, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.node.tuning import NodeTuning, Roce
from ..._model.node.tuning_rows.row import fits
from ..._model.node.tuning_rows.table import BY_NAME
from ..._model.run.findings import UNKNOWN, WARN, Finding
from ..job.channels import name_hcas
from ..job.ranks import spell_numbers

#: of the usual rate of a rail, below which one is weak
WEAK = 0.9
#: rows of stage tuning that a collective over GPUDirect RDMA feels, those first that a whole node feels most
_ROWS = (
    "gpu_slowed",
    "acs",
    "p2pdma",
    "gpu_nic_path",
    "gpu_link_width",
    "gpu_mig",
    "max_read_request",
    "relaxed_ordering",
    "governor",
    "idle_latency",
)
#: variables that make buffers, chunks or the number of channels other than NCCL's own choice
SIZES = (
    "NCCL_BUFFSIZE",
    "NCCL_CHUNK_SIZE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_NVLSTREE_MAX_CHUNKSIZE",
)
LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS", "NCCL_NCHANNELS_PER_NET_PEER")
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
_NAMED = 4


@dataclasses.dataclass(frozen=True)
class UsedHca:
    """An HCA that the run may use.

    :ivar rail: None where it is not known
    :ivar numa_node: None where it is not known
    :ivar rate_gbps: that stage bandwidth measured, in Gb/s; None where it did not
    """

    rail: typing.Optional[int] = None
    numa_node: typing.Optional[int] = None
    rate_gbps: typing.Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The facts beside the log.

    :ivar hcas: by host as NCCL writes it, and RDMA device
    :ivar tunings: of the nodes, by host
    :ivar roce: how the fabric treats RoCE; None on InfiniBand
    :ivar several_leaves: the run goes over links between switches
    :ivar adaptive_routing: the switches spread packets of one flow over their links; None where that is not known
    :ivar from_gpu_memory: the rates of the rails were measured from the GPUs' memory; None where they were not measured
    :ivar rails_gbs: bus bandwidth of each rail alone, where it was run rail by rail, in GB/s
    :ivar set_by_run: variables that the run sets itself
    """

    hcas: typing.Mapping[str, typing.Mapping[str, UsedHca]] = dataclasses.field(default_factory=dict)
    tunings: typing.Mapping[str, NodeTuning] = dataclasses.field(default_factory=dict)
    roce: typing.Optional[Roce] = None
    several_leaves: bool = False
    adaptive_routing: typing.Optional[bool] = None
    from_gpu_memory: typing.Optional[bool] = None
    rails_gbs: typing.Mapping[int, float] = dataclasses.field(default_factory=dict)
    set_by_run: frozenset[str] = frozenset()


def find_causes(
    subject: str, log: NcclLog, choice: typing.Optional[NcclChoice], seen: Surroundings
) -> tuple[Finding, ...]:
    """Return what may make a run slow; one finding that is unknown where nothing does.

    :param log: with the communicators of the run alone
    :param choice: what NCCL chose for the size of the figure
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
        *_report_weak_rails(seen),
        *_report_rails_alone(subject, seen),
        *_list_hosts(ranks, seen),
        *_check_gids(subject, own),
        *_check_mtus(own),
        *_check_traffic_class(own, seen),
        *_check_queue_pairs(own, seen),
        *_check_adaptive_routing(own, seen),
        *_check_settings(own, seen),
        *_check_gpu_memory(subject, seen),
    ]
    return tuple(found) or (_nothing(subject),)


def _check_cause(subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return Finding("collectives.cause", subject, WARN, measured, expected, why, remedy)


Ranks = typing.Sequence[tuple[NcclRank, NcclProcess]]


def _over(rank: NcclRank) -> list[NcclRoute]:
    return [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]


def _list_hcas(route: NcclRoute, process: NcclProcess) -> list[str]:
    return [name for device in process.devices if device.index == route.device for name in name_hcas(device.name)]


def _named(names: typing.Iterable[str]) -> str:
    """Return the first ones of many, for the reader."""
    return folded(list(dict.fromkeys(names)), _NAMED)


def _report_without_gpu_direct(ranks: Ranks) -> typing.Iterator[Finding]:
    """GPUDirect RDMA is off, or off for some."""
    without = [(rank, process, route) for rank, process in ranks for route in _over(rank) if not route.gpu_direct]
    if not without:
        return
    reasons = dict.fromkeys(
        f"{device.name}: {'; '.join(device.reasons)}"
        for _rank, process, route in without
        for device in process.devices
        if device.index == route.device and device.reasons
    )
    why = "Data between these GPUs and the network goes through the host's memory" + (
        f". {_named(reasons)}." if reasons else "; the log does not say why."
    )
    remedy = (
        "Too far: use the HCA beside the GPU, or set NCCL_NET_GDR_LEVEL. No module: load nvidia-peermem, or use the"
        " open driver with DMA-BUF."
    )
    measured = (
        f"{len({(rank.host, rank.rank) for rank, _process, _route in without})} of {len(ranks)} ranks without GDRDMA"
    )
    yield _check_cause(
        _named(rank.host for rank, _process, _route in without),
        measured,
        "GDRDMA on each channel over the network",
        why,
        remedy,
    )


def _check_channels(
    subject: str, ranks: Ranks, choice: typing.Optional[NcclChoice], processes: typing.Sequence[NcclProcess]
) -> typing.Iterator[Finding]:
    """Channels that the collective does not use, and limits of their number."""
    limits = {
        name: process.environment[name] for process in processes for name in LIMITS if name in process.environment
    }
    there = min((rank.channels for rank, _process in ranks if rank.channels), default=0)
    set_by = f" {', '.join(f'{name}={value}' for name, value in limits.items())} is set." if limits else ""
    remedy = (
        f"Take {', '.join(limits)} out of the job."
        if limits
        else "Run it with larger messages; NCCL_MIN_NCHANNELS raises the number."
    )
    if choice is not None and choice.channels is not None and choice.channels < there:
        measured, expected = f"{choice.channels} of {there} channels", "all channels for a large message"
        yield _check_cause(
            subject, measured, expected, f"NCCL runs this size over a part of its channels.{set_by}", remedy
        )
    elif limits:
        yield _check_cause(
            subject,
            f"{there} channels",
            "NCCL's own number of channels",
            f"The number of channels is limited.{set_by}",
            remedy,
        )


def _report_uneven(ranks: Ranks) -> typing.Iterator[Finding]:
    """Report an HCA that carries more channels than another one of the same host."""
    loads: dict[str, dict[str, set[tuple[int, int]]]] = {}
    for rank, process in ranks:
        for route in _over(rank):
            if route.direction == "send":
                for name in _list_hcas(route, process):
                    loads.setdefault(rank.host, {}).setdefault(name, set()).update(
                        (rank.rank, channel) for channel in route.channels
                    )
    for host, by_hca in loads.items():
        most, least = (choose(by_hca, key=lambda name: len(by_hca[name])) for choose in (max, min))
        if len(by_hca[most]) > len(by_hca[least]):
            measured = f"{most} {len(by_hca[most])} channels, {least} {len(by_hca[least])}"
            why = f"{most} carries more than the others of its host, and all wait for it."
            remedy = (
                "Compare NCCL_IB_HCA with the HCAs of the pod. The number of channels should be a multiple of the"
                " rails: NCCL_MIN_NCHANNELS."
            )
            yield _check_cause(host, measured, "as many channels on each HCA", why, remedy)


def _report_far_hcas(ranks: Ranks, seen: Surroundings) -> typing.Iterator[Finding]:
    """Report a GPU that uses an HCA of another NUMA node."""
    found: dict[str, dict[str, None]] = {}
    for rank, process in ranks:
        tuning = seen.tunings.get(rank.host)
        near = _numa_of(rank.bus_id, tuning) if tuning else None
        for route in _over(rank):
            for name in _list_hcas(route, process) if route.proxy is None and near is not None else ():
                hca = seen.hcas.get(rank.host, {}).get(name)
                if hca is not None and hca.numa_node is not None and str(hca.numa_node) != near:
                    found.setdefault(rank.host, {})[
                        f"rank {rank.rank} (NUMA node {near}) uses {name} (NUMA node {hca.numa_node})"
                    ] = None
    for host, lines in found.items():
        why = "Data crosses the link between the sockets, which all of these share, and GPUDirect RDMA is slow over it."
        remedy = (
            "Give the pod the HCA beside each GPU (topology manager, or a claim by pcieRoot), and leave NCCL_IB_HCA and"
            " CUDA_VISIBLE_DEVICES to it."
        )
        yield _check_cause(host, _named(lines), "an HCA of the GPU's own NUMA node", why, remedy)


def _numa_of(bus_id: str, tuning: NodeTuning) -> typing.Optional[str]:
    """Return the NUMA node of a GPU. NCCL writes its PCI address as one hexadecimal number: 1b000 is 0000:1b:00.0."""
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
    """Channels that go through another GPU's HCA (PXN), where the collective does not need that."""
    # an alltoall goes so by design: by the GPU on the rail of its target
    through = [
        (rank, route)
        for rank, _process in ranks
        for route in _over(rank)
        if route.proxy is not None and not route.connection
    ]
    if through:
        measured = (
            f"{len({(rank.host, rank.rank) for rank, _route in through})} of {len(ranks)} ranks by the GPU of another"
        )
        why = (
            "NCCL found a better way to the network by another GPU (PXN) than by the HCA beside its own: that is far,"
            " off, or not in the pod."
        )
        remedy = (
            "See nvidia-smi topo -m in the pod: each GPU needs an HCA at PIX or PXB. NCCL_PXN_DISABLE=1 only hides it."
        )
        yield _check_cause(
            _named(rank.host for rank, _route in through), measured, "each GPU by the HCA beside it", why, remedy
        )


def _report_weak_rails(seen: Surroundings) -> typing.Iterator[Finding]:
    """One rail of a host that carries less than the others."""
    rates = [hca.rate_gbps for hcas in seen.hcas.values() for hca in hcas.values() if hca.rate_gbps is not None]
    usual = statistics.median(rates) if rates else 0.0
    weak = [
        (host, name, hca)
        for host, hcas in seen.hcas.items()
        for name, hca in hcas.items()
        if hca.rate_gbps is not None and hca.rate_gbps < WEAK * usual
    ]
    for host, name, hca in weak:
        rail = "" if hca.rail is None else f" (rail {hca.rail})"
        why = "Each rail carries the same part of a collective, so that all wait for the slowest."
        remedy = "See what stages fabric and bandwidth say of this HCA and its link: width, speed, errors, PCIe."
        yield _check_cause(
            f"{host} {name}{rail}", f"{hca.rate_gbps:g} Gb/s", f"{usual:g} Gb/s, as the others", why, remedy
        )


def _report_rails_alone(subject: str, seen: Surroundings) -> typing.Iterator[Finding]:
    """One rail that is slower than the others when each runs alone."""
    usual = statistics.median(seen.rails_gbs.values()) if seen.rails_gbs else 0.0
    weak = [rail for rail, rate in seen.rails_gbs.items() if rate < WEAK * usual]
    if weak:
        measured = ", ".join(f"rail {rail} {seen.rails_gbs[rail]:g} GB/s" for rail in weak[:_NAMED])
        why = f"Rail {spell_numbers(sorted(weak))} alone is slower than the others, and all wait for the slowest."
        yield _check_cause(
            subject,
            measured,
            f"{usual:g} GB/s, as the others",
            why,
            "Halve the nodes of this rail, and see its leaf and its links.",
        )


def _list_hosts(ranks: Ranks, seen: Surroundings) -> typing.Iterator[Finding]:
    """Find settings of a host that make its GPUs or HCAs slow."""
    hosts = dict.fromkeys(rank.host for rank, _process in ranks)
    for name in _ROWS:
        row, off = BY_NAME[name], {}
        for host in hosts:
            readings = seen.tunings[host].rows.get(name, ()) if host in seen.tunings else ()
            wrong = [reading for reading in readings if row.training and not fits(row.training, reading.value)]
            if wrong:
                off[host] = f"{wrong[0].value}{f' ({_named(wrong[0].where)})' if wrong[0].where else ''}"
        if off:
            why = f"{len(off)} of {len(hosts)} hosts. {row.harm}"
            yield _check_cause(
                _named(off), f"{row.what}: {_named(off.values())}", row.training.replace("|", " or "), why, row.remedy
            )


def _check_gids(subject: str, processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
    """Queue pairs on several GID indexes."""
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
        yield _check_cause(subject, f"GID index {spell_numbers(indexes)}", "one GID index", why, remedy)


def _check_mtus(processes: typing.Sequence[NcclProcess]) -> typing.Iterator[Finding]:
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
        yield _check_cause(_named(small), f"{min(small.values())} bytes", "4096 bytes", why, remedy)


def _check_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """RoCE in a queue that the fabric does not keep for it."""
    wrong = _wrong_traffic_classes(processes, seen)
    if wrong and seen.roce is not None:
        wanted = seen.roce.traffic_class
        why = "RDMA packets go into a queue without PFC and ECN, which other traffic fills and which loses packets."
        expected = f"NCCL_IB_TC={wanted} (DSCP {seen.roce.dscp})"
        yield _check_cause(
            _named(wrong),
            _named(wrong.values()),
            expected,
            why,
            f"Set NCCL_IB_TC={wanted} in the job, or the traffic class of the device.",
        )


def has_wrong_traffic_class(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Tell whether the RoCE of a process is in a queue that the fabric does not keep for it."""
    return bool(_wrong_traffic_classes(processes, seen))


def _wrong_traffic_classes(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
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


def _check_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """One flow for a link whose switches choose links by flow, or that one queue pair does not fill."""
    few = _few_queue_pairs(processes, seen)
    if few:
        why = (
            "A connection has one queue pair: one flow, which goes over one of the links between switches, and does not"
            " fill a fast link on each host."
        )
        remedy = "Set NCCL_IB_QPS_PER_CONNECTION=4 or 8; with adaptive routing in the switches compare with 1."
        yield _check_cause(_named(few), f"{_named(few.values())} queue pair", "several on fast RoCE", why, remedy)


def has_few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> bool:
    """Tell whether a process has one queue pair for each connection over fast RoCE."""
    return bool(_few_queue_pairs(processes, seen))


def _few_queue_pairs(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> dict[str, str]:
    fast = any((hca.rate_gbps or 0) > WEAK * _FAST for hcas in seen.hcas.values() for hca in hcas.values())
    if seen.roce is None or not fast:
        return {}
    said = {
        process.host: process.environment.get("NCCL_IB_QPS_PER_CONNECTION", "1, NCCL's own") for process in processes
    }
    return {host: value for host, value in said.items() if (parse_number(value.partition(",")[0]) or 0) < 2}


def _check_adaptive_routing(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    off = {process.host for process in processes if process.environment.get("NCCL_IB_ADAPTIVE_ROUTING") == "0"}
    if seen.several_leaves and (seen.adaptive_routing is False or off):
        measured = "NCCL_IB_ADAPTIVE_ROUTING=0" if off else "off in the switches"
        why = "Each flow keeps one of the links between switches, so that two flows share a link while others are idle."
        remedy = (
            "InfiniBand: adaptive routing of the subnet manager, and a service level for it (NCCL_IB_SL). Spectrum-X:"
            " NCCL_IB_ADAPTIVE_ROUTING=1."
        )
        yield _check_cause(
            _named(sorted(off)) or "links between switches", measured, "adaptive routing between leaves", why, remedy
        )


def _check_settings(processes: typing.Sequence[NcclProcess], seen: Surroundings) -> typing.Iterator[Finding]:
    """Find variables that replace NCCL's own choice."""
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
            yield _check_cause(
                "job", _named(said), "not set", text, "Run it once without these, and keep those that help."
            )


def _check_gpu_memory(subject: str, seen: Surroundings) -> typing.Iterator[Finding]:
    if seen.from_gpu_memory is False:
        why = (
            "The rates of the rails were measured from the hosts' memory. The way between GPU and HCA, which a"
            " collective uses, was not measured: ACS, the IOMMU, a PCIe switch or relaxed ordering may take more than"
            " half of it."
        )
        remedy = (
            "Measure the rails from the GPUs' memory (rdma_fabrics bandwidth.layers), and see stages tuning and host"
            " for ACS, iommu and peer memory."
        )
        yield _check_cause(subject, "from the hosts' memory", "rates from the GPUs' memory", why, remedy)


def _nothing(subject: str) -> Finding:
    why = (
        "Neither the log nor what is known of the nodes shows a cause: GPUDirect RDMA, channels, HCAs, NUMA nodes, PXN,"
        " rails, GPUs, GID, MTU, traffic class, queue pairs, adaptive routing and settings are as they should be, or"
        " not known."
    )
    remedy = (
        "Run sendrecv_perf over one rail, from the GPU beside it: as slow as that is the way from GPU to HCA; else"
        " compare the rails one by one."
    )
    return Finding("collectives.cause", subject, UNKNOWN, "none found", "a cause", why, remedy)
