# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the reader of a log: files, processes, threads and ranks."""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ..._model.nccl import (
    NcclChoice,
    NcclDevice,
    NcclProcess,
    NcclRank,
    NcclRoute,
)

#: files, and hosts beside its own, that a process names
_NAMED = 20


class RouteOfRank(typing.NamedTuple):
    """Behind the word ``via``."""

    transport: typing.Literal["NET", "P2P", "SHM", "COLLNET"]
    via: str
    device: typing.Optional[int] = None
    gpu_direct: typing.Optional[bool] = None
    proxy: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True, eq=False)
class ChannelKind:
    """The kind of a channel's line, compared by identity, which is quick."""

    way: RouteOfRank
    direction: typing.Literal["send", "receive", ""]
    connection: typing.Optional[int]


@dataclasses.dataclass
class RankState:
    """A rank of a communicator, or of one that has not said yet who it is (``size`` is None).

    :ivar links: outgoing connections of collectives: channel and peer, as one number
    :ivar sent: those of them that go over the network
    :ivar received: incoming ones over the network
    :ivar unanswered: channels of which only the other end is in the log
    :ivar routes: for each way a mask of the channels, and how many connections
    """

    process: ProcessState
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
    routes: dict[ChannelKind, list[int]] = dataclasses.field(default_factory=dict)

    def took(self, incoming: bool) -> set[int]:
        return self.received if incoming else self.links

    def add(self, kind: ChannelKind, channel: int) -> None:
        route = self.routes.get(kind)
        if route is None:
            route = self.routes[kind] = [0, 0]
        route[0] |= 1 << channel
        route[1] += 1

    def take(self, other: RankState) -> None:
        """All that was seen before this rank said who it is."""
        self.links |= other.links
        self.sent |= other.sent
        self.received |= other.received
        for kind, (mask, lines) in other.routes.items():
            route = self.routes.setdefault(kind, [0, 0])
            route[0] |= mask
            route[1] += lines

    def freeze(self) -> NcclRank:
        sent = 0
        for link in self.links:
            sent |= 1 << (link >> 32)
        channels, others = self.counts or (None, None)
        unseen = [channel for channel in range(channels or 0) if self.size != 1 and not sent >> channel & 1]
        together: dict[tuple[typing.Any, ...], list[int]] = {}
        for kind, (mask, lines) in self.routes.items():
            route = together.setdefault((kind.way, kind.direction, kind.connection), [0, 0])
            route[0] |= mask
            route[1] += lines
        routes = tuple(
            NcclRoute(
                way.transport,
                way.via,
                direction,
                way.device,
                way.gpu_direct,
                connection,
                way.proxy,
                _list_bits(mask),
                lines,
            )
            for (way, direction, connection), (mask, lines) in sorted(together.items(), key=repr)
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
class FileState:
    """A file of several.

    :ivar hosts: of which it has lines
    :ivar document: it begins as a document of nccl-tests, which has no lines of hosts; None before its first line
    """

    name: str
    hosts: dict[str, None] = dataclasses.field(default_factory=dict)
    document: typing.Optional[bool] = None


@dataclasses.dataclass
class ProcessState:
    """:ivar choices: None as long as there is none: most processes write none
    :ivar mtus: a mask of their numbers by verbs, of which 1 is 256 bytes and 5 is 4096
    :ivar gid_indexes: a mask
    :ivar ranks: in the order in which they said who they are, and for the rest of what a line may ask, of each the last
    :ivar strays: by rank, what no communicator that is known so far can have written
    :ivar files: that have lines of it; None where all are in one
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
    ranks: list[RankState] = dataclasses.field(default_factory=list)
    by_rank: dict[int, list[RankState]] = dataclasses.field(default_factory=dict)
    in_making: dict[tuple[str, int], RankState] = dataclasses.field(default_factory=dict)
    on_gpu: dict[tuple[typing.Optional[int], str], RankState] = dataclasses.field(default_factory=dict)
    of_size: dict[tuple[typing.Optional[int], typing.Optional[int]], int] = dataclasses.field(default_factory=dict)
    strays: dict[int, RankState] = dataclasses.field(default_factory=dict)
    files: typing.Optional[list[FileState]] = None

    def add(self, rank: RankState) -> None:
        self.ranks.append(rank)
        self.by_rank.setdefault(rank.rank, []).append(rank)
        self.on_gpu[rank.gpu, rank.pointer] = rank
        self.of_size[rank.gpu, rank.size] = self.of_size.get((rank.gpu, rank.size), 0) + 1

    def freeze(self, version: str, several: bool) -> NcclProcess:
        """:param several: more than one file is a log"""
        files = (self.files or [])[:_NAMED] if several else []
        others = itertools.chain.from_iterable(itertools.islice(file.hosts, _NAMED + 1) for file in files)
        beside = dict.fromkeys(host for host in others if host != self.host)
        interface, address = self.oob if self.oob[0] else self.bootstrap
        # a plugin that stands for IB writes as IB does
        network = "IB" if self.network.startswith("IB") else self.network
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
            tuple(self._device(network, found[index]) for index in sorted(found)),
            self.environment,
            tuple(self.choices or ()),
            tuple(128 << number for number in _list_bits(self.mtus)),
            _list_bits(self.gid_indexes),
            tuple(file.name for file in files),
            tuple(itertools.islice(beside, _NAMED)),
        )

    def _device(self, network: str, device: NcclDevice) -> NcclDevice:
        works, why = self.direct.get((network, device.index), self.direct.get((self.network, device.index), (None, "")))
        if works is False and not why:
            why = (
                "NCCL found neither nvidia-peermem nor DMA-BUF"
                if not self.dma_buf
                else "the device takes no DMA-BUF, and nvidia-peermem is not loaded"
            )
        far = [f"too far from a GPU: {distance}" for distance in self.distances.get(device.index, ())]
        return dataclasses.replace(device, gpu_direct=works, reasons=tuple([why] * bool(why) + far))


@dataclasses.dataclass
class ThreadState:
    """A thread of a process, and the communicator that it is making.

    :ivar waiting: what it said of a communicator before that has a rank: counts, trees, rings
    """

    process: ProcessState
    current: typing.Optional[RankState] = None
    waiting: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    def say(self, name: str, value: typing.Any) -> None:
        if self.current is not None:
            setattr(self.current, name, value)
        else:
            self.waiting[name] = value


def _list_bits(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)
