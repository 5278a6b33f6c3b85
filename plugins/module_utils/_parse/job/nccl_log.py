# SPDX-License-Identifier: GPL-3.0-or-later

"""A log that NCCL wrote with NCCL_DEBUG=INFO: who took part, and by which way each channel of each rank goes.

RCCL, AMD's NCCL, writes the same forms, with a communicator behind each channel, and a version line of its own.

Format: [src NVIDIA/nccl v2.8.4 to v2.30.7: src/debug.cc, src/init.cc, src/transport/{net,p2p,shm,coll_net}.cc, net_ib,
src/graph/{paths,rings}.cc]. Several processes write into one stream, each with its own buffer, so that lines get mixed
and torn. What does not fit a form from its first to its last sign is therefore not there, and a channel whose line is
lost is unseen. A line may have what somebody else put in front of it: kubectl logs, torchrun (``[default0]:``), mpirun
(``[1,0]<stdout>:``), a time.

One pass, line by line; what is kept grows with ranks and channels and not with lines. Whoever is in the job writes the
log, so what is kept has a limit that grows with its length: a log that names more processes and ranks than NCCL could
write about in so few lines is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import typing

from ..._model.errors import ParseError
from ..._model.nccl import (
    MOST_CHANNELS,
    RANKS,
    NcclChoice,
    NcclCommunicator,
    NcclDevice,
    NcclLog,
    NcclProblem,
)
from ..limits import MIB
from ..pods import libibverbs
from .nccl_log_patterns import (
    ALGORITHMS,
    AROUND,
    BOOTSTRAP,
    CHANNEL,
    CHOICE,
    COLLNET,
    COMMUNICATOR,
    COUNTS,
    DEVICE,
    DIRECT,
    DISTANCE,
    DOCUMENT,
    GID,
    HEAD,
    IN_DOCUMENT,
    INFO,
    MADE,
    MERGED,
    NET,
    NETDEV,
    NETWORK,
    NODES,
    NUMBERED,
    OOB,
    P2P,
    PART,
    PROTOCOLS,
    QUEUE_PAIR,
    RCCL_CHANNEL,
    RCCL_VERSION,
    RING,
    SET,
    SHM,
    SIDES,
    TREES,
    USING,
    VERSION,
    WARN,
)
from .nccl_log_state import ChannelKind, FileState, ProcessState, RankState, RouteOfRank, ThreadState
from .nccl_problem import classify, parse_completion

#: different warnings of no known kind, which more are only counted; problems of known kinds, of which more are told
#: apart by their kind alone; and different ways that a line may end
_MOST = 1000
#: hosts that a problem names
_HOSTS = 20
#: the last communicators of a process in which one of its ranks is, of which one may have written a channel
_RECENT = 256
#: signs of the name of a communicator: that of one that was split off has the name of the other in it
_LONGEST_NAME = 200
#: bytes of memory of CPython for each thing that is kept of a log, with its share of the result and of the data that a
#: module makes of that
_OF_THREAD, _OF_PROCESS, _OF_RANK, _OF_ROUTE, _OF_DEVICE, _OF_CHOICE, _OF_CHANNEL = 300, 2100, 2900, 1000, 300, 1000, 16
#: the same for each file in which a process is, and for a rank with its process, its routes and devices
_OF_PLACE, _OF_WHOLE_RANK = 900, 16 * 1024
#: bytes for each character of the log that all of these may take, and bytes for a log of any length. A process that is
#: no forgery writes some thousand characters for each of its ranks, of which 11 kB are kept: the most, whatever the
#: length of the log, is enough for 190,000 ranks
_GROWTH, _LEAST, _MOST_KEPT = 8, 128 * MIB, 2048 * MIB


def parse(lines: typing.Iterable[str]) -> NcclLog:
    """Everything that the log shows; without a line of NCCL's all of it is empty.

    :param lines: with their ends, as a file gives them. An end that is missing tells that the last line was cut off,
        and it is left out
    :raises ParseError: the log names more threads, processes, ranks, ways and devices than a log of its length can be
        about
    """
    reader = _Reader()
    reader.read(lines)
    return reader.log()


def parse_files(files: typing.Iterable[tuple[str, typing.Iterable[str]]]) -> NcclLog:
    """Parse the same of several files, each with a name. Where several are logs, each is of one pod, and the processes
    say in which files they are.

    :param files: a name, and lines as for ``parse``. The lines of a file are read before the next file is asked for
    :raises ParseError: as ``parse`` does
    """
    reader = _Reader()
    for name, lines in files:
        reader.begin(name)
        reader.read(lines)
    return reader.log()


def parse_text(text: str) -> NcclLog:
    """Parse the same of a text.

    :raises ParseError: as ``parse`` does
    """
    return parse(io.StringIO(text, newline="\n"))


def names_at_most(ranks: int, lines: typing.Iterable[str]) -> bool:
    """Tell whether a log names no more processes and ranks than ``ranks``, and no more about them than a log of its
    length can be about.

    :param lines: as for ``parse``
    """
    reader = _Reader(ranks * _OF_WHOLE_RANK)
    try:
        reader.read(lines)
    except ParseError:
        return False
    return reader.counted() <= ranks


class _Reader:
    """:param least: bytes that a log of any length may take"""

    def __init__(self, least: typing.Optional[int] = None) -> None:
        self._least = _LEAST if least is None else least
        self._processes: dict[tuple[str, int], ProcessState] = {}
        self._threads: dict[str, ThreadState] = {}
        self._kinds: dict[tuple[typing.Optional[str], ...], typing.Optional[ChannelKind]] = {}
        self._problems: dict[tuple[str, str], NcclProblem] = {}
        self._versions: dict[str, None] = {}
        self._lines = self._nccl_lines = self._torn = self._untold = self._known = 0
        self._read = self._kept = 0
        self._cut = False
        self._file: typing.Optional[FileState] = None
        self._logs = 0
        self._handlers: dict[str, typing.Callable[[ThreadState, str], None]] = {
            "Channel": self._channel,
            "Coll": self._collnet,
            "CollNet": self._collnet,
            "comm": self._communicator,
            "[Rank": self._communicator,
            "Trees": self._trees,
            "Using": self._network,
            "Bootstrap": self._bootstrap,
            "Bootstrap:": self._bootstrap,
            "DMA-BUF": self._dma_buf,
            "GPU": self._distance,
            "NCCL": self._version,
            "RCCL": self._version,
            "Failed": self._verbs,
            **dict.fromkeys(("AllReduce:", "AllGather:", "ReduceScatter:", "Broadcast:", "Reduce:"), self._choice),
        }

    def begin(self, name: str) -> None:
        """Begin a file of several."""
        self._end()
        self._file = FileState(name)
        # a thread writes into one file
        self._threads.clear()

    def _end(self) -> None:
        self._logs += self._file is not None and (bool(self._file.hosts) or not self._file.document)

    def read(self, lines: typing.Iterable[str]) -> None:
        file = self._file
        for line in lines:
            if file is not None and file.document is None and not line.isspace():
                file.document = line.startswith(DOCUMENT) and IN_DOCUMENT in line
            self._lines += 1
            self._read += len(line)
            if line[-1:] != "\n":
                # whatever it says, it may have wanted to say more
                self._cut = True
                continue
            before, info, message = line.partition(INFO)
            if info:
                self._nccl_lines += 1
                if " NCCL " in message and (INFO in message or WARN in message):
                    self._torn += 1
                else:
                    self._info(before, message.rstrip())
            elif WARN in line:
                self._nccl_lines += 1
                self._warn(*line.rstrip().split(WARN, 1))
            elif "CCL version " in line:
                self._bare_version(line.rstrip())
            elif any(word in line for word in AROUND) or (
                "libibverbs: " in line and libibverbs.parse(line).kind is not None
            ):
                self._problem("", "", line.strip())

    def log(self) -> NcclLog:
        self._end()
        version = next(iter(self._versions)) if len(self._versions) == 1 else ""
        processes = [
            process
            for process in self._processes.values()
            if process.ranks or process.strays or process.devices or process.network
        ]
        communicators: dict[str, dict[int, RankState]] = {}
        times: dict[tuple[str, int], int] = {}
        for process in processes:
            for rank in process.ranks:
                # the same rank by another process: the job was started again
                started = times[rank.name, rank.rank] = times.get((rank.name, rank.rank), 0) + 1
                name = (
                    rank.name
                    if started == 1
                    else f"{rank.name} again"
                    if started == 2
                    else f"{rank.name} again ({started - 1})"
                )
                communicators.setdefault(name, {})[rank.rank] = rank
        for ranks in communicators.values():
            _match_ends(ranks)
        named = [
            NcclCommunicator(
                name, next(iter(ranks.values())).size, tuple(ranks[rank].freeze() for rank in sorted(ranks))
            )
            for name, ranks in communicators.items()
        ]
        strays = tuple(rank.freeze() for process in processes for _rank, rank in sorted(process.strays.items()))
        return NcclLog(
            tuple(self._versions),
            tuple(process.freeze(version, self._logs > 1) for process in processes),
            (*named, *([NcclCommunicator("not known", None, strays)] if strays else [])),
            tuple(self._problems.values()),
            self._lines,
            self._nccl_lines,
            self._torn,
            self._cut,
            self._untold,
        )

    def counted(self) -> int:
        """Return the number of processes or of ranks so far, whichever is greater."""
        return max(len(self._processes), self._ranks())

    def _ranks(self) -> int:
        return sum(len(process.ranks) + len(process.strays) for process in self._processes.values())

    # lines

    def _keep(self, cost: int) -> None:
        """Count something that is kept.

        :param cost: bytes of memory
        :raises ParseError: the log is too short for all of it, or no job has so much
        """
        self._kept += cost
        if self._kept > min(self._least + _GROWTH * self._read, _MOST_KEPT):
            named = f"{len(self._threads)} threads of {len(self._processes)} processes, and {self._ranks()} ranks"
            expected = (
                "what NCCL writes about so many: some program of the job forges lines. Give the log of one job, as NCCL"
                " wrote it"
            )
            raise ParseError("NCCL's log", f"{self._read} characters up to line {self._lines} with {named}", expected)

    def _info(self, before: str, message: str) -> None:
        thread = self._thread(before)
        if thread is None:
            self._torn += 1
            return
        word = message.partition(" ")[0]
        handler = self._handlers.get(word)
        if handler:
            handler(thread, message)
        elif word.startswith("NET/"):
            self._net(thread.process, message)
        elif word.startswith("ncclComm"):
            self._communicator(thread, message)
        elif word.startswith("NCCL_"):
            self._environment(thread.process, message)
        elif word.isdigit():
            counts = COUNTS.fullmatch(message)
            if counts and max(int(counts[1]), int(counts[2])) <= MOST_CHANNELS:
                self._keep(_OF_CHANNEL * int(counts[1]))
                thread.say("counts", (int(counts[1]), int(counts[2])))
            elif not counts:
                self._choice(thread, message)

    def _thread(self, before: str) -> typing.Optional[ThreadState]:
        """Return the thread that wrote the line; None when the text before the message is not a head of NCCL's."""
        token = before.rpartition(" [")[0].rpartition(" ")[2]
        thread = self._threads.get(token)
        if thread is None:
            head = HEAD.fullmatch(before)
            if head is None:
                return None
            key = head[1], int(head[2])
            process = self._processes.get(key)
            if process is None:
                self._keep(_OF_PROCESS)
                process = self._processes[key] = ProcessState(*key)
            self._keep(_OF_THREAD)
            thread = self._threads[token] = ThreadState(process)
            if self._file is not None:
                self._place(process, self._file)
        return thread

    def _place(self, process: ProcessState, file: FileState) -> None:
        """Note that a file has lines of a process."""
        places = process.files = process.files or []
        if not places or places[-1] is not file:
            self._keep(_OF_PLACE)
            places.append(file)
            file.hosts[process.host] = None

    def _channel(self, thread: ThreadState, message: str) -> None:
        found = CHANNEL.fullmatch(message)
        if found is None:
            ring = RING.fullmatch(message)
            if ring:
                thread.say("rings", int(ring[1]))
            return
        number, index, source, target, direction, tail = found.groups()
        tail, communicator, rest = tail.partition(" comm 0x")
        if communicator and not RCCL_CHANNEL.fullmatch(rest):
            return
        kind = self._kind(index, direction, tail)
        if kind is None or int(number) >= MOST_CHANNELS:
            return
        own, peer, channel = int(source), int(target), int(number)
        incoming = direction == "receive"
        if incoming:
            own, peer = peer, own
        # of send and receive alone there may be as many as pairs of ranks
        link = None if kind.connection else channel << 32 | peer
        rank = self._rank(thread, own, peer, link, incoming)
        if link is not None:
            rank.took(incoming).add(link)
            if direction == "send":
                rank.sent.add(link)
        self._add(rank, kind, channel)

    def _collnet(self, thread: ThreadState, message: str) -> None:
        found = COLLNET.fullmatch(message)
        kind = self._kind(found[2], found[4], found[5]) if found else None
        if found and kind and int(found[1]) < MOST_CHANNELS:
            self._add(self._rank(thread, int(found[3]), int(found[3]), None, False), kind, int(found[1]))

    def _add(self, rank: RankState, kind: ChannelKind, channel: int) -> None:
        if kind not in rank.routes:
            self._keep(_OF_ROUTE)
        rank.add(kind, channel)

    def _kind(
        self, index: typing.Optional[str], direction: typing.Optional[str], tail: str
    ) -> typing.Optional[ChannelKind]:
        """None when it is none that NCCL writes: only of the network a line says which side writes it; of the others it
        is the sender."""
        key = index, direction, tail
        if key not in self._kinds:
            if len(self._kinds) >= _MOST:
                self._kinds.clear()
            way = _parse_route(tail)
            fits = way is not None and (direction is None) == (way.transport in ("P2P", "SHM"))
            self._kinds[key] = (
                ChannelKind(way, SIDES[direction], None if index is None else int(index)) if way and fits else None
            )
        return self._kinds[key]

    def _rank(self, thread: ThreadState, own: int, peer: int, link: typing.Optional[int], incoming: bool) -> RankState:
        """Find the communicator that a channel belongs to, since lines don't name it. It is one in which this process
        has this rank; of several the one that is being made, else the last that does not have this link yet, for each
        has a link but once."""
        process, current = thread.process, thread.current
        if current is not None and current.rank == own:
            return current
        if len(process.ranks) == 1:
            only = process.ranks[0]
            if only.rank == own and peer < (only.size or 0) and (only.started or link not in only.took(incoming)):
                return only
        fitting = [
            rank for rank in process.by_rank.get(own, ())[-_RECENT:] if rank.size is not None and peer < rank.size
        ]
        free = next((rank for rank in reversed(fitting) if link is None or link not in rank.took(incoming)), None)
        if free is not None:
            return free
        if fitting and fitting[-1].started:
            return fitting[-1]
        stray = process.strays.get(own)
        if stray is None:
            self._keep(_OF_RANK)
            stray = process.strays[own] = RankState(process, own)
        return stray

    def _communicator(self, thread: ThreadState, message: str) -> None:
        found = COMMUNICATOR.fullmatch(message)
        if found is None:
            nodes = NODES.fullmatch(message)
            if nodes and thread.current is not None and thread.current.pointer == nodes[1]:
                thread.current.nodes = int(nodes[2])
            return
        pointer, number, size, gpu, bus_id, parent, count, color, identity, state = found.groups()
        process, own = thread.process, int(number)
        if not RANKS.fits(int(size)):
            return
        rank = process.in_making.pop((pointer, own), None)
        if rank is None:
            self._keep(_OF_RANK)
            rank = RankState(process, own, pointer, int(size), gpu=int(gpu), bus_id=bus_id, started=state == "START")
            rank.name = identity or self._split(rank, parent, count, color)
            # before 2.18 a rank says who it is when all its channels are made
            before = process.strays.pop(own, None) if state == "COMPLETE" else None
            if before is not None:
                rank.take(before)
            for name, value in thread.waiting.items():
                setattr(rank, name, value)
            process.add(rank)
        rank.complete = state == "COMPLETE"
        if not rank.complete:
            process.in_making[pointer, own] = rank
        thread.current, thread.waiting = (None if rank.complete else rank), {}

    @staticmethod
    def _split(
        rank: RankState, parent: typing.Optional[str], count: typing.Optional[str], color: typing.Optional[str]
    ) -> str:
        """Return a name for a communicator without a commId that all its ranks agree on."""
        above = rank.process.on_gpu.get((rank.gpu, parent or ""))
        if above is not None:
            name = f"{above.name} split {count or ''} color {color}".replace("  ", " ")
            return (
                name
                if len(name) <= _LONGEST_NAME
                else f"{name[:100]}... {hashlib.sha256(name.encode()).hexdigest()[:16]}"
            )
        alike = rank.process.of_size.get((rank.gpu, rank.size), 0)
        return f"{rank.size} ranks" + (f" number {alike + 1}" if alike else "")

    def _trees(self, thread: ThreadState, message: str) -> None:
        found = TREES.fullmatch(message)
        if found:
            thread.say("trees", found[1].count("["))

    def _network(self, thread: ThreadState, message: str) -> None:
        found = NETWORK.fullmatch(message)
        if found:
            thread.process.network = found[1]

    def _bootstrap(self, thread: ThreadState, message: str) -> None:
        found = BOOTSTRAP.fullmatch(message)
        if found:
            thread.process.bootstrap = found[1], found[2]

    def _dma_buf(self, thread: ThreadState, message: str) -> None:
        if message.startswith("DMA-BUF is available on GPU device "):
            thread.process.dma_buf = True

    def _verbs(self, thread: ThreadState, message: str) -> None:
        if message.startswith("Failed to open libibverbs.so"):
            thread.process.without_ib = "libibverbs is not in the image"

    def _distance(self, thread: ThreadState, message: str) -> None:
        found = DISTANCE.fullmatch(message)
        if found:
            # from 2.21 on the number of a system stands in the upper bits, and all of it is hexadecimal, which up to 9
            # is the same
            index = int(found[1], 16) & (1 << 56) - 1
            seen = thread.process.distances.setdefault(index, {})
            if found[2] not in seen:
                self._keep(2 * _OF_DEVICE)
                seen[found[2]] = None

    def _version(self, thread: ThreadState, message: str) -> None:
        version = _parse_version(message)
        if version:
            thread.process.version = version
            if len(self._versions) < _MOST:
                self._versions[version] = None

    def _bare_version(self, line: str) -> None:
        """Rank 0 writes it without a head, too."""
        version = _parse_version(line)
        if version and len(self._versions) < _MOST:
            self._versions[version] = None

    def _choice(self, thread: ThreadState, message: str) -> None:
        found, numbered = CHOICE.fullmatch(message), NUMBERED.fullmatch(message)
        if found and int(found[5]) <= int(found[6]) < MOST_CHANNELS:
            choice = NcclChoice(found[1], int(found[2]), found[3], found[4], int(found[6]) - int(found[5]) + 1)
        elif numbered:
            choice = NcclChoice(
                numbered[1] or "", int(numbered[2]), ALGORITHMS[int(numbered[3])], PROTOCOLS[int(numbered[4])]
            )
        else:
            return
        choices = thread.process.choices = thread.process.choices or {}
        if choice not in choices and len(choices) < _MOST:
            self._keep(_OF_CHOICE)
            choices[choice] = None

    def _environment(self, process: ProcessState, message: str) -> None:
        found = SET.fullmatch(message)
        if found and len(process.environment) < _MOST:
            process.environment[found[1]] = found[2]

    def _net(self, process: ProcessState, message: str) -> None:
        using, direct = USING.fullmatch(message), DIRECT.fullmatch(message)
        if using:
            oob = OOB.fullmatch(using[2])
            if oob:
                process.oob = oob[2], oob[3]
            for device in _parse_devices(oob[1] if oob else using[2]):
                self._keep(_OF_DEVICE)
                process.devices.setdefault(using[1], {})[device.index] = device
        elif direct:
            network, state, index, name, why = direct.groups()
            if (network, int(index)) not in process.direct:
                self._keep(3 * _OF_DEVICE)
            process.direct[network, int(index)] = state == "Enabled", why or ""
            process.devices.setdefault(network, {}).setdefault(int(index), NcclDevice(int(index), name))
        elif message == "NET/IB : No device found.":
            process.without_ib = "no RDMA device found"
        else:
            made, pair = MADE.fullmatch(message), QUEUE_PAIR.fullmatch(message)
            if made:
                devices = process.devices.setdefault("IB", {})
                if int(made[1]) not in devices:
                    self._keep(_OF_DEVICE)
                devices[int(made[1])] = NcclDevice(int(made[1]), made[2])
            elif pair:
                process.mtus |= 1 << int(pair[1])
                gid = GID.fullmatch(pair[2])
                process.gid_indexes |= 1 << int(gid[1]) if gid else 0

    def _warn(self, before: str, message: str) -> None:
        head = HEAD.fullmatch(before)
        if head is None or INFO in message or WARN in message:
            self._torn += 1
            return
        process = self._processes.get((head[1], int(head[2])))
        self._problem(head[1], head[4] or "", message, (process.oob[1], process.bootstrap[1]) if process else ())

    def _problem(self, host: str, place: str, text: str, own: typing.Sequence[str] = ()) -> None:
        """:param own: addresses of the process"""
        kind, short = classify(text), text[:500]
        key = kind, kind or re.sub(r"[0-9]+|0x[0-9a-f]+", "#", short)
        failed = parse_completion(text) if kind == "completion" else None
        if failed is not None:
            # those of one status are alike, apart from the ones that have another cause
            key = kind, f"{failed.status} {bool(failed.peer) and failed.peer in own} {failed.crosses_subnets}"
        if kind and self._known >= _MOST and key not in self._problems:
            # whatever else the log has, none of a known kind is lost
            key = kind, ""
        seen = self._problems.get(key)
        if seen is not None:
            hosts = seen.hosts if host in seen.hosts or not host or len(seen.hosts) >= _HOSTS else (*seen.hosts, host)
            self._problems[key] = dataclasses.replace(seen, count=seen.count + 1, hosts=hosts)
        elif kind or len(self._problems) - self._known < _MOST:
            self._known += bool(kind)
            self._problems[key] = NcclProblem(kind, short, place, (host,) if host else (), 1, self._lines)
        else:
            self._untold += 1


def _match_ends(ranks: typing.Mapping[int, RankState]) -> None:
    """Both ends of a connection over the network write a line: of which there is but one, the other end's channel is
    not known."""
    for number, rank in ranks.items():
        for mine, theirs in ((rank.sent, "received"), (rank.received, "sent")):
            for link in mine:
                other = ranks.get(link & 0xFFFFFFFF)
                if other is not None and (link >> 32 << 32 | number) not in getattr(other, theirs):
                    other.unanswered.add(link >> 32)


def _parse_version(text: str) -> str:
    """Return the version that a line is about, with the name RCCL where it is RCCL's; empty of any other line."""
    found = VERSION.fullmatch(text)
    if found:
        return found[1]
    found = RCCL_VERSION.fullmatch(text)
    return f"RCCL {found[1]}" if found else ""


def _parse_route(tail: str) -> typing.Optional[RouteOfRank]:
    net = NET.fullmatch(tail)
    if net:
        transport: typing.Literal["NET", "COLLNET"] = "NET" if net[1] == "NET" else "COLLNET"
        return RouteOfRank(transport, net[2], int(net[3]), net[5] is not None, int(net[4]) if net[4] else None)
    p2p = P2P.fullmatch(tail)
    if p2p:
        return RouteOfRank("P2P", p2p[1])
    shm = SHM.fullmatch(tail)
    return RouteOfRank("SHM", shm[1] or "direct") if shm else None


def _parse_devices(text: str) -> typing.Iterator[NcclDevice]:
    """Behind the word Using: ``[0]mlx5_0:1/IB``, of NCCL 2.21 to 2.23 also merged ones, of Socket
    ``[0]eth0:10.0.0.1<0>``."""
    for found in DEVICE.finditer(text):
        rail = int(found[4]) if found[4] else None
        yield NcclDevice(int(found[1]), found[2], int(found[3]), found[5], rail)
    for found in MERGED.finditer(text):
        parts = PART.findall(found[2])
        yield NcclDevice(int(found[1]), "+".join(name for name, _link in parts), None, parts[0][1] if parts else "")
    for found in NETDEV.finditer(text):
        yield NcclDevice(int(found[1]), found[2])
