# SPDX-License-Identifier: GPL-3.0-or-later

"""The processes, threads and ranks of a job, which are filled from the lines of NCCL's log one after the other."""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ...._model.job.nccl import NcclChoice, NcclDevice, NcclProcess, NcclRank, NcclRoute, is_verbs
from .channel import ConnectionKind

#: files, and hosts beside its own, that a process names
MOST_FILES = 20


@dataclasses.dataclass
class LogRank:
    """A rank of a communicator, as far as it is known from the lines so far.

    :ivar process: process of the rank
    :ivar rank: number of the rank
    :ivar pointer: address of the communicator in the process, by which lines identify it; empty if not known yet
    :ivar size: number of ranks of the communicator; None if the communicator is not known yet
    :ivar name: name of the communicator; empty if not known yet
    :ivar gpu: index of the GPU in the process; None if not known yet
    :ivar bus_id: PCI address of the GPU, as NCCL writes it
    :ivar started: whether the line about the start of the initialization was read
    :ivar complete: whether the line about the end of the initialization was read
    :ivar counts: numbers of channels for collectives, and for sending between two ranks; None if not known
    :ivar trees: number of channels in the log line about trees; None before that line
    :ivar rings: number of channels for which the log shows a ring; None before such a line
    :ivar nodes: number of nodes of the communicator; None if not known
    :ivar links: outgoing connections of collectives, each as one number: the channel in the bits from 32 on, the peer
        in the lower bits
    :ivar sent: outgoing connections over the network, in the form of ``links``
    :ivar received: incoming connections over the network, in the form of ``links``
    :ivar unanswered: channels about which only the peer wrote a line
    :ivar routes: two numbers for each kind of connection: a mask of the channels, and the number of connections
    """

    process: LogProcess
    rank: int
    pointer: str = ""
    size: typing.Optional[int] = None
    name: str = ""
    gpu: typing.Optional[int] = None
    bus_id: str = ""
    started: bool = False
    complete: bool = False
    counts: typing.Optional[tuple[int, int]] = None
    trees: typing.Optional[int] = None
    rings: typing.Optional[int] = None
    nodes: typing.Optional[int] = None
    links: set[int] = dataclasses.field(default_factory=set)
    sent: set[int] = dataclasses.field(default_factory=set)
    received: set[int] = dataclasses.field(default_factory=set)
    unanswered: set[int] = dataclasses.field(default_factory=set)
    routes: dict[ConnectionKind, list[int]] = dataclasses.field(default_factory=dict)

    @staticmethod
    def mark_unanswered(ranks: typing.Mapping[int, LogRank]) -> None:
        """Record in each rank of a communicator the channels about which only the rank at the other end wrote a line.
        Normally both ends of a connection over the network write one.

        :param ranks: ranks of the communicator, by rank number
        """
        for number, rank in ranks.items():
            for mine, theirs in ((rank.sent, "received"), (rank.received, "sent")):
                for link in mine:
                    other = ranks.get(link & 0xFFFFFFFF)
                    if other is not None and (link >> 32 << 32 | number) not in getattr(other, theirs):
                        other.unanswered.add(link >> 32)

    def select_links(self, incoming: bool) -> set[int]:
        """Return the set of connections to which a new connection belongs: ``received`` if it is incoming, otherwise
        ``links``.
        """
        return self.received if incoming else self.links

    def add_connection(self, kind: ConnectionKind, channel: int) -> None:
        """Add a connection over a channel to the routes of the rank.

        :param kind: transport, direction and index of the connection
        :param channel: number of the channel
        """
        route = self.routes.get(kind)
        if route is None:
            route = self.routes[kind] = [0, 0]
        route[0] |= 1 << channel
        route[1] += 1

    def merge_channels(self, other: LogRank) -> None:
        """Add the channels of another object for the same rank. That object was filled from lines that were read before
        the communicator of the rank was known.

        :param other: rank without a communicator
        """
        self.links |= other.links
        self.sent |= other.sent
        self.received |= other.received
        for kind, (mask, lines) in other.routes.items():
            route = self.routes.setdefault(kind, [0, 0])
            route[0] |= mask
            route[1] += lines

    def build_rank(self) -> NcclRank:
        """Return the rank as it is stored in the fact, with its routes sorted, the channels without an outgoing
        connection, and the channels about which only the peer wrote a line.
        """
        sent = 0
        for link in self.links:
            sent |= 1 << (link >> 32)
        channels, others = self.counts or (None, None)
        unseen = [channel for channel in range(channels or 0) if self.size != 1 and not sent >> channel & 1]
        together: dict[tuple[typing.Any, ...], list[int]] = {}
        for kind, (mask, lines) in self.routes.items():
            route = together.setdefault((kind.transport, kind.direction, kind.connection), [0, 0])
            route[0] |= mask
            route[1] += lines
        routes = tuple(
            NcclRoute(
                found.transport,
                found.via,
                direction,
                found.device,
                found.gpu_direct,
                connection,
                found.proxy,
                _list_bits(mask),
                lines,
            )
            for (found, direction, connection), (mask, lines) in sorted(together.items(), key=repr)
        )
        return NcclRank(
            self.rank,
            self.process.host,
            self.process.pid,
            self.gpu,
            self.bus_id,
            self.complete,
            channels,
            others,
            self.trees,
            self.rings,
            self.nodes,
            routes,
            tuple(unseen),
            tuple(sorted(self.unanswered)),
        )


@dataclasses.dataclass
class LogFile:
    """A file of a log that consists of several files.

    :ivar name: name of the file
    :ivar hosts: names of the hosts that have lines in the file; the values are None
    :ivar document: whether the file is a JSON document of nccl-tests, which has no lines of hosts; None before its
        first line is read
    """

    name: str
    hosts: dict[str, None] = dataclasses.field(default_factory=dict)
    document: typing.Optional[bool] = None


@dataclasses.dataclass
class LogProcess:
    """A process of the job, as far as it is known from the lines so far.

    :ivar host: name of the host
    :ivar pid: process id
    :ivar version: version of NCCL; empty if not known yet
    :ivar network: name of the network that NCCL uses, such as IB; empty if not known yet
    :ivar oob: interface and address of the connections for setup; two empty texts if not known
    :ivar bootstrap: interface and address of the bootstrap network; two empty texts if not known
    :ivar dma_buf: whether GPUDirect RDMA uses DMA-BUF; None if not known
    :ivar without_ib: reason why NCCL does not use InfiniBand; empty if it does, or if not known
    :ivar devices: network devices by the name of the network and by index
    :ivar direct: whether GPUDirect RDMA is enabled, and the reason if it is not, by network and index of the device
    :ivar distances: descriptions of distances to GPUs that are too long for GPUDirect RDMA, by index of the device; the
        inner values are None
    :ivar environment: environment variables that NCCL has logged, by name
    :ivar choices: algorithm choices, with None as values; None until the process writes a choice, which most processes
        never do
    :ivar mtus: mask of the MTU numbers of the verbs API, from 1 for 256 bytes to 5 for 4096 bytes
    :ivar gid_indexes: mask of the GID indexes
    :ivar ranks: ranks in the order in which their communicators were named
    :ivar by_rank: the same ranks, by number of the rank
    :ivar in_making: ranks whose initialization has begun, by pointer and number
    :ivar on_gpu: the last of these ranks for each GPU and pointer
    :ivar of_size: number of these ranks for each GPU and size of the communicator
    :ivar strays: ranks whose channels belong to a communicator that is not known yet, by number of the rank
    :ivar files: files that have lines of the process; None if the log is not read from files
    """

    host: str
    pid: int
    version: str = ""
    network: str = ""
    oob: tuple[str, str] = ("", "")
    bootstrap: tuple[str, str] = ("", "")
    dma_buf: typing.Optional[bool] = None
    without_ib: str = ""
    devices: dict[str, dict[int, NcclDevice]] = dataclasses.field(default_factory=dict)
    direct: dict[tuple[str, int], tuple[bool, str]] = dataclasses.field(default_factory=dict)
    distances: dict[int, dict[str, None]] = dataclasses.field(default_factory=dict)
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    choices: typing.Optional[dict[NcclChoice, None]] = None
    mtus: int = 0
    gid_indexes: int = 0
    ranks: list[LogRank] = dataclasses.field(default_factory=list)
    by_rank: dict[int, list[LogRank]] = dataclasses.field(default_factory=dict)
    in_making: dict[tuple[str, int], LogRank] = dataclasses.field(default_factory=dict)
    on_gpu: dict[tuple[typing.Optional[int], str], LogRank] = dataclasses.field(default_factory=dict)
    of_size: dict[tuple[typing.Optional[int], typing.Optional[int]], int] = dataclasses.field(default_factory=dict)
    strays: dict[int, LogRank] = dataclasses.field(default_factory=dict)
    files: typing.Optional[list[LogFile]] = None

    def add_rank(self, rank: LogRank) -> None:
        """Add a rank whose communicator is known, to ``ranks`` and to the dictionaries by which ranks are found."""
        self.ranks.append(rank)
        self.by_rank.setdefault(rank.rank, []).append(rank)
        self.on_gpu[rank.gpu, rank.pointer] = rank
        self.of_size[rank.gpu, rank.size] = self.of_size.get((rank.gpu, rank.size), 0) + 1

    def build_process(self, version: str, several: bool) -> NcclProcess:
        """Return the process in the form in which it is stored as a fact.

        :param version: version of NCCL that is used if the process has not written its own; empty if unknown
        :param several: whether more than one file is a log; the result then lists the files
        """
        files = (self.files or [])[:MOST_FILES] if several else []
        others = itertools.chain.from_iterable(itertools.islice(file.hosts, MOST_FILES + 1) for file in files)
        beside = dict.fromkeys(host for host in others if host != self.host)
        interface, address = self.oob if self.oob[0] else self.bootstrap
        # a plugin that replaces IB writes as IB does, or with its own name
        own = self.network in self.devices and not self.network.startswith("IB")
        network = "IB" if is_verbs(self.network) and not own else self.network
        found = self.devices.get(network) or {}
        return NcclProcess(
            self.host,
            self.pid,
            self.version or version,
            self.network,
            interface,
            address,
            self.dma_buf,
            self.without_ib,
            tuple(self._build_device(network, found[index]) for index in sorted(found)),
            self.environment,
            tuple(self.choices or ()),
            tuple(128 << number for number in _list_bits(self.mtus)),
            _list_bits(self.gid_indexes),
            tuple(file.name for file in files),
            tuple(itertools.islice(beside, MOST_FILES)),
        )

    def _build_device(self, network: str, device: NcclDevice) -> NcclDevice:
        """Return a device with whether GPUDirect RDMA works on it, and with the reasons why it does not.

        :param network: name of the network plugin that uses the device
        """
        works, why = self.direct.get((network, device.index), self.direct.get((self.network, device.index), (None, "")))
        if works is False and not why:
            why = (
                "NCCL found neither nvidia-peermem nor DMA-BUF"
                if not self.dma_buf
                else "the device does not support DMA-BUF, and nvidia-peermem is not loaded"
            )
        far = [f"too far from a GPU: {distance}" for distance in self.distances.get(device.index, ())]
        return dataclasses.replace(device, gpu_direct=works, reasons=tuple([why] * bool(why) + far))


@dataclasses.dataclass
class LogThread:
    """A thread of a process, and the rank that it initializes.

    :ivar process: process of the thread
    :ivar current: the rank that the thread initializes; None before the first line about the rank, and after its
        initialization
    :ivar waiting: values of that rank that were read before the rank was known, by field: counts, trees, rings
    """

    process: LogProcess
    current: typing.Optional[LogRank] = None
    waiting: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    def set_value(self, name: str, value: typing.Any) -> None:
        """Set a field of the rank that the thread initializes. If this rank is not known yet, keep the value until it
        is.

        :param name: name of the field of LogRank
        """
        if self.current is not None:
            setattr(self.current, name, value)
        else:
            self.waiting[name] = value


def _list_bits(mask: int) -> tuple[int, ...]:
    """Return the positions of the bits that are set in a mask, in ascending order. The lowest bit has position 0.

    :param mask: integer that is not negative
    """
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)
