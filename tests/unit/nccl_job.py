# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of jobs with HCAs, written with the format strings of NCCL's source, release by release; for tests and the
benchmark.

[src NVIDIA/nccl v2.8.4, v2.12.12, v2.17.1, v2.18.6, v2.22.3, v2.24.3, v2.28.9, v2.30.7: src/init.cc,
src/transport/*.cc; of 2.32.3 the texts in its library]
"""

from __future__ import annotations

import dataclasses
import typing

Version = tuple[int, int, int]
RELEASES: tuple[Version, ...] = (
    (2, 8, 4),
    (2, 12, 12),
    (2, 17, 1),
    (2, 18, 6),
    (2, 22, 3),
    (2, 24, 3),
    (2, 28, 9),
    (2, 30, 7),
    (2, 32, 3),
)


@dataclasses.dataclass(frozen=True)
class Job:
    """One ring through all GPUs of all hosts; channel ``c`` leaves a host by HCA ``c`` modulo their number.

    :ivar skip: channels of which no line is written
    :ivar each_to_each: connections of send and receive between all ranks in place of the ring: each by the HCA of its
        GPU, on one channel
    """

    release: Version = (2, 28, 9)
    hosts: int = 2
    gpus: int = 2
    hcas: tuple[str, ...] = ("mlx5_21", "mlx5_22")
    channels: int = 4
    network: str = "IB"
    gpu_direct: bool = True
    inside: str = "P2P/CUMEM"
    skip: tuple[int, ...] = ()
    more: tuple[str, ...] = ()
    each_to_each: bool = False

    @property
    def ranks(self) -> int:
        return self.hosts * self.gpus

    def process(self, rank: int) -> typing.Iterator[str]:
        """The lines of one rank's process, without their ends."""
        host, gpu = divmod(rank, self.gpus)
        head = f"job-worker-{host}:{100 + gpu}:{200 + gpu} [{gpu}] NCCL INFO "
        version = ".".join(map(str, self.release))
        if self.release >= (2, 22) or rank == 0:
            yield f"{head}NCCL version {version}+cuda12.4"
        yield f"{head}Bootstrap : Using {'' if self.release >= (2, 12) else '[0]'}eth0:10.128.{host}.17<0>"
        listed = "".join(f" [{index}]{name}:1/IB" for index, name in enumerate(self.hcas))
        ordering = "[RO]" if self.release >= (2, 11) else ""
        if self.hcas:
            yield f"{head}NET/IB : Using{listed} {ordering}; OOB eth0:10.128.{host}.17<0>"
        else:
            yield f"{head}NET/IB : No device found."
            yield f"{head}NET/Socket : Using [0]eth0:10.128.{host}.17<0>"
        yield f"{head}Using network {self.network}"
        yield from (f"{head}{line}" for line in self.more)
        if self.release >= (2, 18):
            yield f"{head}{self._who(rank)} - Init START"
        if self.release >= (2, 20):
            yield (
                f"{head}comm 0x55{rank:04x} rank {rank} nRanks {self.ranks} nNodes {self.hosts} localRanks {self.gpus}"
                f" localRank {gpu} MNNVL 0"
            )
        if rank == 0:
            order = " ".join(f"{number:4d}" for number in range(self.ranks))
            yield from (
                f"{head}Channel {channel:02d}/{self.channels:02d} : {order}"[:200] for channel in range(self.channels)
            )
        trees = " ".join(f"[{channel}] -1/-1/-1->{rank}->{rank - 1}" for channel in range(self.channels))
        yield f"{head}Trees {trees}"
        if self.release < (2, 22):
            yield from (head + line for line in self._links(rank))
        yield head + self._counts()
        yield f"{head}{self._who(rank)} - Init COMPLETE"
        if self.release >= (2, 22):
            yield from (head + line for line in self._links(rank))

    def lines(self) -> typing.Iterator[str]:
        """All processes, one after the other, each line with its end."""
        for rank in range(self.ranks):
            yield from (f"{line}\n" for line in self.process(rank))

    def text(self) -> str:
        return "".join(self.lines())

    def _who(self, rank: int) -> str:
        gpu = rank % self.gpus
        call = "ncclCommInitRank " if self.release >= (2, 21) else ""
        nvml = f"nvmlDev {gpu} " if self.release >= (2, 18) else ""
        name = " commId 0x6b99be0cc5a5bfbf" if self.release >= (2, 16) else ""
        return (
            f"{call}comm 0x55{rank:04x} rank {rank} nranks {self.ranks} cudaDev {gpu} {nvml}busId {gpu + 1}b000{name}"
        )

    def _counts(self) -> str:
        between = (
            "0 collnet channels, 0 nvls channels, "
            if self.release >= (2, 20)
            else "0 nvls channels, "
            if self.release >= (2, 17)
            else ""
        )
        return f"{self.channels} coll channels, {between}{self.channels} p2p channels, 2 p2p channels per peer"

    def _end(self, rank: int) -> str:
        gpu = rank % self.gpus
        return f"{rank}[{gpu}]" if self.release >= (2, 18) else f"{rank}[{gpu + 1}b000]"

    def _links(self, rank: int) -> typing.Iterator[str]:
        """To the next rank of the ring, and from the one before where it is on another host."""
        if self.each_to_each:
            yield from self._pairs(rank)
            return
        after, before = (rank + 1) % self.ranks, (rank - 1) % self.ranks
        for channel in range(self.channels):
            if channel in self.skip:
                continue
            net = f"Channel {channel:02d}/0" if self.release >= (2, 12) else f"Channel {channel:02d}"
            by = f"NET/{self.network}/{channel % max(1, len(self.hcas))}" + ("/GDRDMA" if self.gpu_direct else "")
            if before // self.gpus != rank // self.gpus:
                yield f"{net} : {self._end(before)} -> {self._end(rank)} [receive] via {by}{self._flush()}"
            if after // self.gpus != rank // self.gpus:
                yield f"{net} : {self._end(rank)} -> {self._end(after)} [send] via {by}"
            else:
                own = net if self.release >= (2, 14) and self.inside.startswith("P2P") else f"Channel {channel:02d}"
                yield f"{own} : {self._end(rank)} -> {self._end(after)} via {self.inside}"

    def _flush(self) -> str:
        return "/flush=Always" if self.release >= (2, 31) and self.gpu_direct else ""

    def _pairs(self, rank: int) -> typing.Iterator[str]:
        """To and from each other rank."""
        by = f"NET/{self.network}/{rank % self.gpus % max(1, len(self.hcas))}"
        by += f"{'/GDRDMA' if self.gpu_direct else ''}/Shared"
        for peer in range(self.ranks):
            if peer == rank:
                continue
            if peer // self.gpus == rank // self.gpus:
                yield f"Channel 00/1 : {self._end(rank)} -> {self._end(peer)} via {self.inside}"
            else:
                yield f"Channel 00/1 : {self._end(rank)} -> {self._end(peer)} [send] via {by}"
                yield f"Channel 00/1 : {self._end(peer)} -> {self._end(rank)} [receive] via {by}{self._flush()}"
