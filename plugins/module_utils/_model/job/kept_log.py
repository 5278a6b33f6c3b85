# SPDX-License-Identifier: GPL-3.0-or-later

"""The NCCL log of an nccl-tests run in the compact form of facts. Properties that many processes and ranks share are
stored once.

A run of 1,024 nodes has 15 logs with 8,192 ranks each, in which the ranks have only a few different sets of routes.
Stored rank by rank, these logs would exceed the size limit of a fact.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.numbers import Count
from .nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute, Ranks

T = typing.TypeVar("T")

#: characters by which Python shows all that the log of a pod tells: for the pod, and for each of its GPUs. A rank of
#: NCCL's takes about 4,000
MOST_OF_POD, MOST_OF_GPU = 1 << 15, 1 << 14
#: warnings and versions of a log that are kept one by one
MOST_PROBLEMS, MOST_VERSIONS = 100, 20


@dataclasses.dataclass(frozen=True)
class KeptProcess:
    """A process of the log, with the properties that differ between processes.

    :ivar host: host name, as NCCL logs it
    :ivar pid: process id
    :ivar oob_address: address of the interface for out-of-band connections
    :ivar kind: index in ``KeptLog.shared.processes`` of the properties that it shares with other processes
    """

    host: str
    pid: int
    oob_address: str
    kind: Count


@dataclasses.dataclass(frozen=True)
class KeptRank:
    """A rank of a communicator, with the properties that differ between ranks.

    :ivar rank: number in the communicator
    :ivar process: index of its process in ``KeptLog.processes``
    :ivar gpu: CUDA device; None if the rank did not log its identity
    :ivar bus_id: PCI bus id of the GPU, hexadecimal
    :ivar kind: index in ``KeptLog.rank_kinds`` of the properties that it shares with other ranks
    """

    rank: int
    process: Count
    gpu: typing.Optional[int]
    bus_id: str
    kind: Count


@dataclasses.dataclass(frozen=True)
class KeptCommunicator:
    """The compact form of an :class:`NcclCommunicator`: ranks that communicate with each other.

    :ivar name: name of the communicator
    :ivar size: number of its ranks; None if unknown
    :ivar ranks: ranks that are in the log
    """

    name: str
    size: typing.Optional[Ranks]
    ranks: tuple[KeptRank, ...]


@dataclasses.dataclass(frozen=True)
class KeptLog:
    """An NCCL log in compact form. Each distinct set of properties (kind) of processes and ranks is stored once.

    :ivar shared: the log without its communicators; its processes are the kinds of processes, without host, process id
        and address
    :ivar rank_kinds: kinds of ranks, without rank number, process and GPU; a proxy is stored relative to the rank
    :ivar processes: processes of the log
    :ivar communicators: communicators of the log
    """

    shared: NcclLog = dataclasses.field(default_factory=NcclLog)
    rank_kinds: tuple[NcclRank, ...] = ()
    processes: tuple[KeptProcess, ...] = ()
    communicators: tuple[KeptCommunicator, ...] = ()

    @property
    def size(self) -> int:
        """Return the number of items in the restored log: processes, ranks, and the devices, variables, routes and
        channels in them. A check refuses a log with too many.
        """
        of_processes = [
            1 + len(item.devices) + len(item.environment) + len(item.choices) for item in self.shared.processes
        ]
        of_ranks = [
            1 + (item.channels or 0) + sum(1 + len(route.channels) for route in item.routes) for item in self.rank_kinds
        ]
        kinds = [_find_item(of_processes, item.kind) or 0 for item in self.processes]
        ranks = [rank for communicator in self.communicators for rank in communicator.ranks]
        return sum(kinds) + sum(
            (_find_item(of_ranks, rank.kind) or 0) + (_find_item(kinds, rank.process) or 0) for rank in ranks
        )

    @property
    def most_channels(self) -> int:
        """Return the largest number of channels that a rank has. It bounds the work of a check, which iterates over the
        channels of each rank.
        """
        return max((item.channels or 0 for item in self.rank_kinds), default=0)

    def count_ranks(self) -> dict[str, int]:
        """Return the number of ranks of each host, in all communicators."""
        found: dict[str, int] = {}
        for rank in (rank for communicator in self.communicators for rank in communicator.ranks):
            process = _find_item(self.processes, rank.process)
            if process is not None:
                found[process.host] = found.get(process.host, 0) + 1
        return found

    def restore(self) -> NcclLog:
        """Return the whole log. Entries with an invalid index are left out, so that they count as unknown."""
        processes: list[NcclProcess] = []
        for item in self.processes:
            alike = _find_item(self.shared.processes, item.kind)
            if alike is not None:
                processes.append(dataclasses.replace(alike, host=item.host, pid=item.pid, oob_address=item.oob_address))
        communicators = tuple(
            NcclCommunicator(
                item.name, item.size, tuple(rank for rank in map(self._restore_rank, item.ranks) if rank is not None)
            )
            for item in self.communicators
        )
        return dataclasses.replace(self.shared, processes=tuple(processes), communicators=communicators)

    def _restore_rank(self, item: KeptRank) -> typing.Optional[NcclRank]:
        process, alike = _find_item(self.processes, item.process), _find_item(self.rank_kinds, item.kind)
        if process is None or alike is None:
            return None
        routes = _move_proxies(alike.routes, item.rank)
        return dataclasses.replace(
            alike, rank=item.rank, host=process.host, pid=process.pid, gpu=item.gpu, bus_id=item.bus_id, routes=routes
        )


def _find_item(items: typing.Sequence[T], number: int) -> typing.Optional[T]:
    return items[number] if 0 <= number < len(items) else None


def _move_proxies(routes: tuple[NcclRoute, ...], ranks: int) -> tuple[NcclRoute, ...]:
    if all(route.proxy is None for route in routes):
        return routes
    return tuple(
        route if route.proxy is None else dataclasses.replace(route, proxy=route.proxy + ranks) for route in routes
    )


class _Kinds(typing.Generic[T]):
    """A list of distinct items, in which equal items have the same index.

    :ivar found: the items in the order of their indexes
    """

    def __init__(self) -> None:
        self.found: list[T] = []
        self._numbers: dict[str, int] = {}

    def number(self, item: T) -> int:
        """Return the index of an item. An item that is not in the list yet is appended to it."""
        number = self._numbers.setdefault(repr(item), len(self.found))
        if number == len(self.found):
            self.found.append(item)
        return number


def keep_log(log: NcclLog, gpus: int) -> KeptLog:
    """Return the log of several pods in compact form. If a pod has more log data than a pod with that many GPUs can
    have, its processes and ranks are left out, so that nothing is proven about that pod.

    :param log: log of pods with distinct host names, each with lines of its own host only
    :param gpus: number of GPUs of a pod, with one process each
    """
    processes = [
        dataclasses.replace(item, files=()) if len(item.files) == 1 and not item.beside else item
        for item in log.processes
    ]
    told: dict[str, int] = {}
    parts: tuple[typing.Union[NcclProcess, NcclRank], ...] = (
        *processes,
        *(rank for communicator in log.communicators for rank in communicator.ranks),
    )
    for part in parts:
        told[part.host] = told.get(part.host, 0) + len(repr(part))
    honest = {host for host, size in told.items() if size <= MOST_OF_POD + gpus * MOST_OF_GPU}
    process_kinds: _Kinds[NcclProcess] = _Kinds()
    rank_kinds: _Kinds[NcclRank] = _Kinds()
    kept: list[KeptProcess] = []
    numbers: dict[tuple[str, int], int] = {}
    for item in processes:
        if item.host in honest:
            numbers[item.host, item.pid] = len(kept)
            kind = process_kinds.number(dataclasses.replace(item, host="", pid=0, oob_address=""))
            kept.append(KeptProcess(item.host, item.pid, item.oob_address, kind))
    communicators = []
    for communicator in log.communicators:
        ranks = []
        for rank in communicator.ranks:
            number = numbers.get((rank.host, rank.pid))
            if number is not None:
                routes = _move_proxies(rank.routes, -rank.rank)
                kind = rank_kinds.number(
                    dataclasses.replace(rank, rank=0, host="", pid=0, gpu=None, bus_id="", routes=routes)
                )
                ranks.append(KeptRank(rank.rank, number, rank.gpu, rank.bus_id, kind))
        if ranks:
            communicators.append(KeptCommunicator(communicator.name, communicator.size, tuple(ranks)))
    shared = dataclasses.replace(_cut(log), processes=tuple(process_kinds.found), communicators=())
    return KeptLog(shared, tuple(rank_kinds.found), tuple(kept), tuple(communicators))


def _cut(log: NcclLog) -> NcclLog:
    """Return the log with at most ``MOST_PROBLEMS`` warnings and ``MOST_VERSIONS`` versions of NCCL, and without UCX
    endpoints. Warnings of known kinds are kept first, and ``untold`` counts the removed ones.
    """
    more = max(0, len(log.problems) - MOST_PROBLEMS)
    problems = sorted(log.problems, key=lambda item: not item.kind)[:MOST_PROBLEMS] if more else log.problems
    return dataclasses.replace(
        log,
        versions=log.versions[:MOST_VERSIONS],
        problems=tuple(problems),
        untold=log.untold + more,
        # no test is judged by them, and a pod may write any number
        endpoints=(),
        more_endpoints=0,
    )
