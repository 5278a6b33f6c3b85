# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts on the transport of each channel of a run of nccl-tests, from NCCL's log. Check id: ``collectives.way``."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, ok
from ..job.channels import name_hcas
from ..job.ranks import describe_route, spell_numbers

NEED_WHOLE_LOG = "Give the whole log of every rank, from its first line on, with NCCL_DEBUG=INFO."
EACH_CHANNEL = "each channel by NVLink or PCIe inside of a node, and by RDMA between nodes"


@dataclasses.dataclass(frozen=True)
class RequiredProof:
    """The properties that the log of a run must show.

    :ivar nodes: number of nodes that take part in each communicator
    :ivar hcas: by host as NCCL writes it, the RDMA devices on the fabric with their rails; None for a rail that is not
        known
    :ivar rails: rails that the run must use on each host
    :ivar ranks: number of ranks of each communicator; None to use the number in the log
    :ivar gpu_direct: whether each channel over the network must use GPUDirect RDMA
    :ivar shared_memory: whether GPUs of a node may exchange data through the host's memory, because they cannot use
        NVLink or PCIe between them
    :ivar multi_node_nvlink: whether channels between nodes may use NVLink (MNNVL); the figure then does not measure the
        network
    :ivar groups: number of communicators that the run must have; several with NCCL_TESTS_SPLIT
    :ivar slowest_group: whether the test was started with -a 3, so that its figure is that of the slowest group
    """

    nodes: int
    hcas: typing.Mapping[str, typing.Mapping[str, typing.Optional[int]]]
    rails: tuple[int, ...]
    ranks: typing.Optional[int] = None
    gpu_direct: bool = True
    shared_memory: bool = False
    multi_node_nvlink: bool = False
    groups: int = 1
    slowest_group: bool = False


@dataclasses.dataclass(frozen=True)
class ChannelVerdict:
    """The channels of one rank that have the same verdict with the same cause.

    :ivar communicator: name of the communicator
    :ivar channels: numbers of the channels; empty for a rank whose number of channels is not known
    :ivar ways: transports of the channels as NCCL writes them, without the number of the device
    :ivar why: cause of the verdict; empty for channels that pass
    """

    communicator: str
    host: str
    rank: int
    channels: tuple[int, ...]
    status: Status
    ways: tuple[str, ...]
    why: str = ""
    remedy: str = ""


def count_channels(verdicts: typing.Iterable[ChannelVerdict]) -> int:
    return sum(len(verdict.channels) or 1 for verdict in verdicts)


def judge_channels(
    communicator: NcclCommunicator, log: NcclLog, wanted: RequiredProof
) -> typing.Iterator[ChannelVerdict]:
    processes = {(process.host, process.pid): process for process in log.processes}
    for rank in communicator.ranks if communicator.size != 1 else ():
        process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
        by_channel: dict[int, list[NcclRoute]] = {}
        for route in rank.routes:
            for channel in route.channels:
                by_channel.setdefault(channel, []).append(route)
        if rank.channels is None:
            why = "the log does not say how many channels the rank has"
            yield ChannelVerdict(communicator.name, rank.host, rank.rank, (), UNKNOWN, (), why, NEED_WHOLE_LOG)
        alike: dict[tuple[_Verdict, tuple[str, ...]], list[int]] = {}
        for channel in sorted({*by_channel, *range(rank.channels or 0)}):
            routes = by_channel.get(channel, [])
            ways = tuple(dict.fromkeys(map(describe_route, routes)))
            alike.setdefault((_judge_channel(channel, routes, rank, process, wanted), ways), []).append(channel)
        for ((status, why, remedy), ways), channels in alike.items():
            yield ChannelVerdict(communicator.name, rank.host, rank.rank, tuple(channels), status, ways, why, remedy)


def judge_connections(
    communicator: NcclCommunicator, log: NcclLog, wanted: RequiredProof
) -> typing.Iterator[ChannelVerdict]:
    """Yield a verdict on the connections of each rank in an all-to-all test. A rank must have at least one connection
    with each other rank, and connections with ranks of other nodes must use the network.

    The log of such a test does not name the peer of a connection, so connections are counted.

    :param wanted: properties that the log must show
    """
    processes = {(process.host, process.pid): process for process in log.processes}
    on_host = collections.Counter(rank.host for rank in communicator.ranks)
    for rank in communicator.ranks if communicator.size != 1 else ():
        process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
        routes = [route for route in rank.routes if route.connection]
        verdicts = [_judge_route(route, rank, process, wanted) for route in routes]
        status, why, remedy = _find_verdict(verdicts, FAIL) or _find_verdict(verdicts, UNKNOWN) or _PROVEN
        away = (communicator.size or len(communicator.ranks)) - on_host[rank.host]
        if status == PASS:
            for words, found, least in (
                ("to ranks of other nodes", _count_connections(routes, "send", over=True), away),
                ("from ranks of other nodes", _count_connections(routes, "receive", over=True), away),
                ("to ranks of its node", _count_connections(routes, "", over=False), on_host[rank.host] - 1),
            ):
                if found < least:
                    status, remedy = UNKNOWN, NEED_WHOLE_LOG
                    why = f"{found} connections {words} are in the log, and there are {least} of these ranks"
                    break
        ways = tuple(dict.fromkeys(map(describe_route, routes)))
        yield ChannelVerdict(communicator.name, rank.host, rank.rank, (), status, ways, why, remedy)


def _count_connections(routes: typing.Sequence[NcclRoute], direction: str, over: bool) -> int:
    """Return the number of connections of a rank in a direction.

    :param direction: ``send`` or ``receive``; empty for both
    :param over: True for connections over the network, False for those inside a node
    """
    return sum(route.lines for route in routes if route.direction == direction and (route.transport == "NET") is over)


#: status, cause and remedy
_Verdict = tuple[Status, str, str]
_PROVEN: _Verdict = (PASS, "", "")


def _judge_channel(
    channel: int, routes: typing.Sequence[NcclRoute], rank: NcclRank, process: NcclProcess, wanted: RequiredProof
) -> _Verdict:
    """Return the verdict on a channel of a rank from its connections (routes). A failure takes precedence over an
    unknown value.

    :param wanted: properties that the log must show
    """
    verdicts = [_judge_route(route, rank, process, wanted) for route in routes]
    failed = _find_verdict(verdicts, FAIL)
    if failed:
        return failed
    if channel in rank.unseen or not routes:
        return UNKNOWN, "no outgoing connection of it is in the log", NEED_WHOLE_LOG
    if channel in rank.unanswered:
        return UNKNOWN, "only the other end of it is in the log", NEED_WHOLE_LOG
    return _find_verdict(verdicts, UNKNOWN) or _PROVEN


def _find_verdict(verdicts: typing.Sequence[_Verdict], status: Status) -> typing.Optional[_Verdict]:
    """Return the first verdict with a status; None where there is none."""
    return next((verdict for verdict in verdicts if verdict[0] == status), None)


def _judge_route(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    if route.transport == "SHM" and not wanted.shared_memory:
        why = "it goes through the host's memory (SHM), neither by NVLink nor over the network"
        return (
            FAIL,
            why,
            (
                "Take NCCL_P2P_DISABLE and NCCL_P2P_LEVEL out of the job; see nvidia-smi topo -m, and switch ACS off"
                " between GPUs."
            ),
        )
    if route.via == "MNNVL" and not wanted.multi_node_nvlink:
        why = "it goes over NVLink between nodes (MNNVL), and not over the network"
        return FAIL, why, "Set NCCL_MNNVL_ENABLE=0 for a run that is about the network."
    if route.transport in ("P2P", "SHM"):
        return _PROVEN
    if route.via == "Socket":
        return FAIL, "it goes over TCP (NET/Socket)", "See collectives.transport of this rank, which names why."
    if wanted.nodes == 1:
        return (
            FAIL,
            "it leaves the GPUs of its node by the network",
            "Take NCCL_P2P_DISABLE out of the job; see nvidia-smi topo -m.",
        )
    if route.is_plugins or route.transport == "COLLNET":
        why = f"network {route.via} is a plugin's, of which it is not known here what it sends by"
        return UNKNOWN, why, "Run it with NCCL_NET=IB, or without the plugin (NCCL_NET_PLUGIN=none)."
    if wanted.gpu_direct and not route.gpu_direct:
        return (
            FAIL,
            "it goes through the host's memory, without GPUDirect RDMA",
            "See collectives.gpu_direct of this rank, which names why.",
        )
    return _judge_hca(route, rank, process, wanted)


def _judge_hca(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    """Return the verdict on the HCA of a connection: it must be on the fabric. A channel through the GPU of another
    rank (PXN) uses an HCA of the same node. All processes of a node number the HCAs in the same way.

    :param wanted: properties that the log must show
    """
    allowed = wanted.hcas.get(rank.host)
    if allowed is None:
        return (
            UNKNOWN,
            f"it is not known which HCAs of {rank.host} are on the fabric",
            "Run it in pods whose annotations can be read.",
        )
    names = list_hcas(route, process)
    if not names:
        why = (
            "the log does not say which HCA network device"
            f" {'without a number' if route.device is None else route.device} is"
        )
        return UNKNOWN, why, "Run with NCCL_DEBUG_SUBSYS=INIT,NET, which names them."
    foreign = [name for name in names if name not in allowed]
    if foreign:
        return (
            FAIL,
            f"it uses {', '.join(foreign)}, which is not on the fabric",
            "Name the devices in NCCL_IB_HCA, exactly: with '=' in front.",
        )
    return _PROVEN


def list_hcas(route: NcclRoute, process: NcclProcess) -> list[str]:
    """Return the names of the HCAs that a connection uses; an empty list if the log does not name them.

    :param process: process of the rank, whose log numbers the network devices
    """
    for device in process.devices:
        if device.index == route.device:
            return name_hcas(device.name)
    return []


def report_channels(verdicts: typing.Sequence[ChannelVerdict]) -> typing.Iterator[Finding]:
    """Yield one finding for all channels of a rank that have the same cause. Yield one passed finding if all channels
    are proven.
    """
    together: dict[tuple[str, str, int, Status, str, str], list[ChannelVerdict]] = {}
    proven = 0
    for verdict in verdicts:
        proven += count_channels((verdict,)) if verdict.status == PASS else 0
        if verdict.status != PASS:
            key = verdict.communicator, verdict.host, verdict.rank, verdict.status, verdict.why, verdict.remedy
            together.setdefault(key, []).append(verdict)
    for (communicator, host, rank, status, why, remedy), found in together.items():
        numbers = spell_numbers(sorted(channel for item in found for channel in item.channels))
        measured = (f"channel {numbers}: " if numbers else "") + (
            ", ".join(dict.fromkeys(name for item in found for name in item.ways)) or "not in the log"
        )
        subject = f"{host} rank {rank} of communicator {communicator}"
        yield Finding(
            "collectives.way",
            subject,
            status,
            measured,
            EACH_CHANNEL,
            f"{'Of these channels ' if numbers else ''}{why}.",
            remedy,
        )
    if proven and not together:
        yield ok(
            "collectives.way",
            "run",
            f"{proven} channels of {len({(item.communicator, item.rank) for item in verdicts})} ranks",
            EACH_CHANNEL,
        )
