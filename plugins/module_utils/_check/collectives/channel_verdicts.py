# SPDX-License-Identifier: GPL-3.0-or-later

"""Verdicts on the transport of each channel of a run of nccl-tests, from NCCL's log. Check id: ``collectives.way``."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, build_pass
from ..job.log.channels import name_hcas
from ..job.log.ranks import describe_route, spell_numbers

NEED_WHOLE_LOG = (
    "If the image in rdma_cluster.collectives.image sets NCCL_DEBUG or NCCL_DEBUG_FILE (as ENV, or in"
    " /etc/nccl.conf), remove these settings, because the check needs the complete log of each rank. Then run stage"
    " collectives again, which reads these logs anew."
)
EACH_CHANNEL = "each channel over NVLink or PCIe inside a node, and over RDMA between nodes"


@dataclasses.dataclass(frozen=True)
class RequiredProof:
    """The properties that the log of a run must show.

    :ivar nodes: number of nodes that take part in each communicator
    :ivar hcas: rail of each RDMA device on the fabric, by host as NCCL writes it and by device; None if the rail is not
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
    :ivar host: host name of the rank's process
    :ivar rank: number of the rank in the communicator
    :ivar channels: numbers of the channels; empty for a rank whose number of channels is not known
    :ivar status: verdict: pass, fail or unknown
    :ivar ways: transports of the channels as NCCL writes them, without the number of the device
    :ivar why: cause of the verdict; empty for channels that pass
    :ivar remedy: next step of the user; empty for channels that pass
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
            why = "The log does not report the number of channels of this rank"
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
    """Yield a verdict on the connections of each rank in an all-to-all test.

    A rank must have at least one connection with each other rank, and connections with ranks of other nodes must use
    the network.

    The log of such a test does not name the peer of a connection, so only the number of connections is checked. A
    communicator of one rank gets no verdict.

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
                ("to ranks on other nodes", _count_connections(routes, "send", over=True), away),
                ("from ranks on other nodes", _count_connections(routes, "receive", over=True), away),
                ("to ranks on the same node", _count_connections(routes, "", over=False), on_host[rank.host] - 1),
            ):
                if found < least:
                    status, remedy = UNKNOWN, NEED_WHOLE_LOG
                    why = f"The log contains {count_of(found, 'connection')} {words}, but there are {least} such ranks"
                    break
        ways = tuple(dict.fromkeys(map(describe_route, routes)))
        yield ChannelVerdict(communicator.name, rank.host, rank.rank, (), status, ways, why, remedy)


def _count_connections(routes: typing.Sequence[NcclRoute], direction: str, over: bool) -> int:
    """Return the number of connections of a rank in a direction.

    :param routes: connections of the rank
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
    """Return the verdict (status, cause, remedy) on a channel of a rank from its connections (routes).

    A failure takes precedence over an unknown value.

    :param channel: number of the channel
    :param routes: connections of the rank on this channel
    :param process: process of the rank
    :param wanted: properties that the log must show
    """
    verdicts = [_judge_route(route, rank, process, wanted) for route in routes]
    failed = _find_verdict(verdicts, FAIL)
    if failed:
        return failed
    if channel in rank.unseen or not routes:
        return (
            UNKNOWN,
            "NCCL's log contains no outgoing connection of these channels, so their transport is not known",
            NEED_WHOLE_LOG,
        )
    if channel in rank.unanswered:
        return (
            UNKNOWN,
            "The log contains these channels only in the lines of other ranks, not in those of this rank",
            NEED_WHOLE_LOG,
        )
    return _find_verdict(verdicts, UNKNOWN) or _PROVEN


def _find_verdict(verdicts: typing.Sequence[_Verdict], status: Status) -> typing.Optional[_Verdict]:
    """Return the first verdict (status, cause, remedy) with the given status, or None if no verdict has it."""
    return next((verdict for verdict in verdicts if verdict[0] == status), None)


def _judge_route(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    if route.transport == "SHM" and not wanted.shared_memory:
        why = "The data passes through host memory (SHM) instead of NVLink, PCIe or the network"
        return (
            FAIL,
            why,
            (
                "Remove NCCL_P2P_DISABLE and NCCL_P2P_LEVEL from the image, if it sets them. Otherwise follow"
                " the findings of stage tuning on ACS and GPUs of the node (nvidia-smi topo -m shows the links"
                " between its GPUs). Then run stage collectives again."
            ),
        )
    if route.via == "MNNVL" and not wanted.multi_node_nvlink:
        why = "The data passes over NVLink between nodes (MNNVL), not over the network"
        return FAIL, why, "Set NCCL_MNNVL_ENABLE=0 for a test of the network, then run stage collectives again."
    if route.transport in ("P2P", "SHM"):
        return _PROVEN
    if route.via == "Socket":
        return (
            FAIL,
            "The data passes over TCP (NET/Socket)",
            "Follow the remedy of the finding collectives.transport of this rank, then run stage collectives again.",
        )
    if wanted.nodes == 1:
        return (
            FAIL,
            "The data between the GPUs of one node passes over the network",
            (
                "Remove NCCL_P2P_DISABLE from the image, if it sets it. Otherwise run nvidia-smi topo -m and"
                " nvidia-smi nvlink -s on the node, and repair a link between its GPUs that is missing or down."
                " Then run stage collectives again."
            ),
        )
    if route.is_plugins or route.transport == "COLLNET":
        why = (
            f"Network {route.via} belongs to a plugin of NCCL, and the log does not show which transport the plugin"
            " uses"
        )
        return (
            UNKNOWN,
            why,
            (
                "Set NCCL_NET=IB in the image, or disable the plugin with NCCL_NET_PLUGIN=none. Then run stage"
                " collectives again."
            ),
        )
    if wanted.gpu_direct and not route.gpu_direct:
        return (
            FAIL,
            "The data passes through host memory, without GPUDirect RDMA",
            "Follow the remedy of the finding collectives.gpu_direct of this rank, then run stage collectives again.",
        )
    return _judge_hca(route, rank, process, wanted)


def _judge_hca(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    """Return the verdict (status, cause, remedy) on the HCA of a connection, which must be on the fabric.

    A channel through the GPU of another rank (PXN) is judged by the log of this rank as well, because all processes of
    a node number the HCAs alike.

    :param route: connection as the log shows it
    :param process: process of the rank, whose log numbers the network devices
    :param wanted: properties that the log must show
    """
    allowed = wanted.hcas.get(rank.host)
    if allowed is None:
        return (
            UNKNOWN,
            f"The HCAs of host {rank.host} on the fabric are unknown, because no pod of this test has this host name"
            f" (host names of the pods: {join_first(sorted(wanted.hcas), 4) or 'none'})",
            (
                "Run stage collectives again: it gives each pod a host name from the name of its node. If the finding"
                " remains, set rdma_cluster.collectives.image to an image that does not change the host name, then run"
                " stage collectives again."
            ),
        )
    names = list_hcas(route, process)
    if not names:
        why = (
            "The log does not report the HCA of network device"
            f" {'without a number' if route.device is None else route.device}"
        )
        return (
            UNKNOWN,
            why,
            (
                "Remove NCCL_DEBUG_SUBSYS from the image, because NCCL reports the HCAs only with the subsystems"
                " INIT and NET. Then run stage collectives again."
            ),
        )
    foreign = [name for name in names if name not in allowed]
    if foreign:
        return (
            FAIL,
            f"The rank uses {', '.join(foreign)}, which is not on the fabric",
            (
                "If the image sets NCCL_IB_HCA, remove it. If it does not, set NCCL_IB_HCA in the image to the"
                " names of the HCAs on the fabric, with '=' in front:"
                f" NCCL_IB_HCA='={','.join(sorted(allowed))}'. Then run stage collectives again."
            ),
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
    """Yield one finding for all channels of a rank that are not proven and have the same cause.

    If all channels are proven, yield one passed finding.

    :param verdicts: verdicts on the channels of all ranks
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
            ", ".join(dict.fromkeys(name for item in found for name in item.ways)) or "no connection in the log"
        )
        measured += ", not verified" if status == UNKNOWN and any(item.ways for item in found) else ""
        subject = f"{host} rank {rank} of communicator {communicator}"
        yield Finding(
            "collectives.way",
            subject,
            status,
            measured,
            EACH_CHANNEL,
            f"{format_clause(why, 'No reason was reported')}.",
            remedy,
        )
    if proven and not together:
        yield build_pass(
            "collectives.way",
            "run",
            f"{count_of(proven, 'channel')} of {len({(item.communicator, item.rank) for item in verdicts})} ranks",
            EACH_CHANNEL,
        )
