# SPDX-License-Identifier: GPL-3.0-or-later

"""A log that NCCL wrote with NCCL_DEBUG=INFO: who took part, and by which way each channel of each rank goes.

RCCL, AMD's NCCL, writes the same forms, with a communicator behind each channel, and a version line of its own.

Format: [src NVIDIA/nccl v2.8.4 to v2.30.7, and texts of the libraries of 2.31.2 and 2.32.3: src/debug.cc,
src/init.cc, src/transport/{net,p2p,shm,coll_net}.cc, net_ib,
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
import itertools
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.job.nccl import (
    MOST_CHANNELS,
    RANKS,
    NcclChoice,
    NcclCommunicator,
    NcclDevice,
    NcclLeftOut,
    NcclLog,
    NcclProblem,
    NcclProcess,
    NcclRank,
    NcclRoute,
)
from ..._model.job.ucx import UcxEndpoint
from ..limits import MIB
from ..pods import libibverbs
from . import transports
from .nccl_problem import classify, parse_completion

_INFO, _WARN = " NCCL INFO ", " NCCL WARN "
#: of 2.32 and later; advice on the message above it comes at this level, and of 2.31 as a warning
_ATTN, _ADVICE = " NCCL ATTN ", "HINT: "
_LEVELS = (_INFO, _WARN, _ATTN)
#: host, process and thread, behind whatever stands before them; a GPU; and of a warning its place
_HEAD = re.compile(
    r"(?:.*[\s\]>:|]|)([A-Za-z0-9_-]{1,253}):([0-9]{1,10}):([0-9]{1,10}) \[-?[0-9]{1,4}\](?: (\S+:[0-9]+)(?:"
    r" \(\S*\))?)?",
    re.DOTALL,
)
#: of RCCL, AMD's NCCL, rank 0 writes it without a head: "RCCL version : 2.21.5-HEAD:9a0e6a1"
_RCCL_VERSION = re.compile(
    r"(?:.*\s|)RCCL version ?:? ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})(?:\s.{0,200})?", re.DOTALL
)
_VERSION = re.compile(r"(?:.*\s|)NCCL version ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})", re.DOTALL)
_CHANNEL = re.compile(
    r"Channel ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7})\[[0-9a-f]{1,16}\] -> ([0-9]{1,7})\[[0-9a-f]{1,16}\]"
    r" (?:\[(send|receive)\] )?via (.{1,200})"
)
#: what RCCL writes behind the way of a channel, after " comm 0x"
_RCCL_CHANNEL = re.compile(r"[0-9a-f]{1,16} nRanks [0-9]{1,7}")
_COLLNET = re.compile(
    r"Coll(?:Net)? ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7}) \[(send|receive)\] via (COLLNET/.{1,200})"
)
_NET = re.compile(
    r"(NET|COLLNET)/([^/]{1,64})/([0-9]{1,4})(?:\(([0-9]{1,7})\))?(/GDRDMA)?(?:\(PCI\))?"
    # 2.31 and later say how received data is flushed
    r"(?:/flush=\w{1,32})?(?:/Shared)?(?:/flush=\w{1,32})?"
)
_P2P = re.compile(r"P2P/(direct pointer|IPC|CUMEM|MNNVL|indirect)(?:/[0-9]+\[[0-9a-f]+\])?(?:/read)?(?:/CE)?")
_SHM = re.compile(r"SHM/(direct|CE)(?:/(?:direct|CE))?|direct shared memory")
_RING = re.compile(r"Channel [0-9]{2,4}/([0-9]{2,4}) :[ 0-9.]*")
_COMMUNICATOR = re.compile(
    r"(?:\[Rank [0-9]+\] )?(?:ncclComm\w* )?comm (0x[0-9a-f]+) rank ([0-9]{1,7}) nranks ([0-9]{1,7}) cudaDev"
    r" (-?[0-9]{1,4})(?: nvmlDev -?[0-9]+)? "
    # of one that was split off 2.31 and later say a commId before the parent
    r"busId ([0-9a-f]{1,16})(?: commId 0x[0-9a-f]+(?= parent ))?"
    r"(?: parent (0x[0-9a-f]+|\(nil\))(?: (?:split|child)Count ([0-9]+))? color (-?[0-9]+) key"
    r" -?[0-9]+)?(?: commId (0x[0-9a-f]+))?"
    r"(?: localSize [0-9]{1,18} used [0-9]{1,18} bytes(?: on core -?[0-9]{1,9})?)? ?- Init (START|COMPLETE)"
)
_NODES = re.compile(r"comm (0x[0-9a-f]+) rank [0-9]+ nRanks [0-9]+ nNodes ([0-9]{1,7}) localRanks .*")
_COUNTS = re.compile(
    r"([0-9]{1,4}) coll channels, (?:[0-9]+ collnet channels, )?(?:[0-9]+ nvls channels, )?([0-9]{1,4}) p2p"
    r" channels, .*"
)
_TREES = re.compile(r"Trees((?: \[[0-9]+\] [-0-9/]+->[-0-9]+->[-0-9/|]+)+)")
_NETWORK = re.compile(r"Using network (.{1,64})")
_USING = re.compile(r"NET/([^/ ]{1,64}) : Using(.*)")
_OOB = re.compile(r"(.*?) ?(?:\[RO\])?; OOB ([^\s:]{1,64}):(\S{1,128})<[0-9]+>")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using ?(?:\[[0-9]+\])?([^\s:]{1,64}):(\S{1,128})<[0-9]+>.*")
_DEVICE = re.compile(r"\[([0-9]{1,4})\]([^\s:\[\]={}]{1,64}):([0-9]{1,3})(?::([0-9]*))?(?::[0-9]+)?/(IB|RoCE)")
_MERGED = re.compile(r"\[([0-9]{1,4})\]=\{([^{}]{1,500})\}")
_PART = re.compile(r"\[[0-9]+\] ?([^\s:,]{1,64}):[0-9]{1,3}/(IB|RoCE)")
_NETDEV = re.compile(r"\[([0-9]{1,4})\]([^\s:\[\]]{1,64}):\S{1,100}<[0-9]{1,9}>")
_MADE = re.compile(r"NET/IB : Made virtual device \[([0-9]{1,4})\] name=(\S{1,500}) speed=.*")
_DIRECT = re.compile(
    r"NET/([^/]{1,64}) : GPU Direct RDMA (Enabled|Disabled) for HCA ([0-9]{1,4}) '([^']{1,500})'(?: \((.{1,100})\))?"
)
_DISTANCE = re.compile(
    r"GPU Direct RDMA Disabled for GPU.{1,80}?(?:HCA |NET/[0-9]{1,9}-)([0-9a-f]{1,16})\b[^(]{0,60}\([^(]{0,60}?"
    r"(distance [0-9]{1,9} > [0-9]{1,9})\)"
)
_CHOICE = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce): ([0-9]{1,15}) Bytes -> Algo ([A-Z][A-Z0-9_]{1,20}) proto"
    r" ([A-Z0-9]{1,10}) "
    r"channel\{Lo\.\.Hi\}=\{([0-9]{1,3})\.\.([0-9]{1,3})\}(?: cgaClusterSize [0-9]{1,4})?(?: comm 0x[0-9a-f]{1,16})?"
)
#: of older releases: "AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008" and "262144 Bytes -> Algo 0 proto 1
#: time 54.707825"
_NUMBERED = re.compile(
    r"(?:(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce): )?([0-9]{1,15}) Bytes -> Algo ([0-6]) proto ([0-2]) time"
    r" [0-9]{1,15}\.[0-9]{1,9}"
)
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_QUEUE_PAIR = re.compile(
    r"NET/IB ?: (?:\w{1,60}: )?(?:NCCL )?(?:Merged)?Dev [0-9]{1,5} (?:IbDev [0-9]{1,5} )?Port [0-9]{1,3} qp(?:n|_num)"
    r" [0-9]{1,9} mtu ([1-5])"
    r" (.{1,500})"
)
_GID = re.compile(r"(?:query_ece=\{[^{}]{1,200}\} )?GID ([0-9]{1,3}) \(.{1,200}")
_SET = re.compile(r"(NCCL_[A-Z0-9_]{1,100}) set(?: by environment)? to (.{1,500}?)\.?")

_SIDES: dict[typing.Optional[str], typing.Literal["send", "receive", ""]] = {
    "send": "send",
    "receive": "receive",
    None: "",
}
#: programs around NCCL whose lines are looked at as well
_AROUND = ("Watchdog caught", "Timeout at NCCL work", "remote process has exited")
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
#: files, and hosts beside its own, that a process names
_NAMED = 20
#: how a document of nccl-tests begins, and what is in its only line; it is no log
_DOCUMENT, _IN_DOCUMENT = '{"version":', '"nccl_version":'
#: bytes for each character of the log that all of these may take, and bytes for a log of any length. A process that is
#: no forgery writes some thousand characters for each of its ranks, of which 11 kB are kept: the most, whatever the
#: length of the log, is enough for 190,000 ranks
_GROWTH, _LEAST, _MOST_KEPT = 8, 128 * MIB, 2048 * MIB
#: bytes of these that one file of several may take, or one host where all ranks are in one file. 16 ranks in 30
#: communicators take 6 MB
_MOST_OF_SOURCE = 64 * MIB
#: bytes of a variable of the environment beside its value
_OF_VARIABLE = 200


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


def is_document(line: str) -> bool:
    """Return whether a file that begins with this line is a document of nccl-tests, and no log.

    :param line: the first one that is not empty
    """
    return line.startswith(_DOCUMENT) and _IN_DOCUMENT in line


def parse_files(
    files: typing.Iterable[tuple[str, typing.Iterable[str]]],
    sources: typing.Literal["files", "hosts", ""] = "",
    hosts: typing.Optional[typing.Mapping[str, str]] = None,
) -> NcclLog:
    """Parse the same of several files, each with a name. Where several are logs, each is of one pod, and the processes
    say in which files they are.

    :param files: a name, and lines as for ``parse``. The lines of a file are read before the next file is asked for
    :param sources: whose lines are left out where they name more than any pod can: those of a file, or of a host where
        all ranks are in one file. Empty: there is no such limit
    :param hosts: by the name of a file, the only host whose lines count in it
    :raises ParseError: as ``parse`` does
    """
    reader = _Reader(sources=sources)
    for name, lines in files:
        reader.begin(name, hosts[name] if hosts is not None else None)
        reader.read(lines)
    return reader.log()


def parse_text(text: str) -> NcclLog:
    """Parse the same of a text.

    :raises ParseError: as ``parse`` does
    """
    return parse(io.StringIO(text, newline="\n"))


def names_at_most(ranks: int, lines: typing.Iterable[str], host: typing.Optional[str] = None) -> bool:
    """Tell whether a log names no more processes and ranks than ``ranks``, and no more about them than a log of its
    length can be about.

    :param lines: as for ``parse``
    :param host: the only one whose lines count; None: those of each host count
    """
    reader = _Reader(ranks * _OF_WHOLE_RANK)
    reader.host = host
    try:
        reader.read(lines)
    except ParseError:
        return False
    return reader.counted() <= ranks


class _Way(typing.NamedTuple):
    """Behind the word ``via``."""

    transport: typing.Literal["NET", "P2P", "SHM", "COLLNET"]
    via: str
    device: typing.Optional[int] = None
    gpu_direct: typing.Optional[bool] = None
    proxy: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True, eq=False)
class _Kind:
    """The kind of a channel's line, compared by identity, which is quick."""

    way: _Way
    direction: typing.Literal["send", "receive", ""]
    connection: typing.Optional[int]


@dataclasses.dataclass
class _Rank:
    """A rank of a communicator, or of one that has not said yet who it is (``size`` is None).

    :ivar links: outgoing connections of collectives: channel and peer, as one number
    :ivar sent: those of them that go over the network
    :ivar received: incoming ones over the network
    :ivar unanswered: channels of which only the other end is in the log
    :ivar routes: for each way a mask of the channels, and how many connections
    """

    process: _Process
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
    routes: dict[_Kind, list[int]] = dataclasses.field(default_factory=dict)

    def took(self, incoming: bool) -> set[int]:
        return self.received if incoming else self.links

    def add(self, kind: _Kind, channel: int) -> None:
        route = self.routes.get(kind)
        if route is None:
            route = self.routes[kind] = [0, 0]
        route[0] |= 1 << channel
        route[1] += 1

    def take(self, other: _Rank) -> None:
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
                way.transport, way.via, direction, way.device, way.gpu_direct, connection, way.proxy, _bits(mask), lines
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
class _File:
    """A file of several.

    :ivar hosts: of which it has lines
    :ivar document: it begins as a document of nccl-tests, which has no lines of hosts; None before its first line
    """

    name: str
    hosts: dict[str, None] = dataclasses.field(default_factory=dict)
    document: typing.Optional[bool] = None


@dataclasses.dataclass
class _Process:
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
    ranks: list[_Rank] = dataclasses.field(default_factory=list)
    by_rank: dict[int, list[_Rank]] = dataclasses.field(default_factory=dict)
    in_making: dict[tuple[str, int], _Rank] = dataclasses.field(default_factory=dict)
    on_gpu: dict[tuple[typing.Optional[int], str], _Rank] = dataclasses.field(default_factory=dict)
    of_size: dict[tuple[typing.Optional[int], typing.Optional[int]], int] = dataclasses.field(default_factory=dict)
    strays: dict[int, _Rank] = dataclasses.field(default_factory=dict)
    files: typing.Optional[list[_File]] = None

    def add(self, rank: _Rank) -> None:
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
            tuple(128 << number for number in _bits(self.mtus)),
            _bits(self.gid_indexes),
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
class _Thread:
    """A thread of a process, and the communicator that it is making.

    :ivar waiting: what it said of a communicator before that has a rank: counts, trees, rings
    """

    process: _Process
    current: typing.Optional[_Rank] = None
    waiting: dict[str, typing.Any] = dataclasses.field(default_factory=dict)

    def say(self, name: str, value: typing.Any) -> None:
        if self.current is not None:
            setattr(self.current, name, value)
        else:
            self.waiting[name] = value


class _TooMuch(Exception):
    """One source names more than any pod can."""


class _OtherHost(Exception):
    """A line is of another host than its file."""


class _Reader:
    """:param least: bytes that a log of any length may take
    :param sources: as of ``parse_files``
    :ivar host: the only one whose lines count in this file; None: those of each host count
    """

    def __init__(self, least: typing.Optional[int] = None, sources: typing.Literal["files", "hosts", ""] = "") -> None:
        self._least = _LEAST if least is None else least
        self._sources = sources
        self.host: typing.Optional[str] = None
        #: bytes that are kept of each source
        self._kept_of: dict[str, int] = {}
        self._left_out: dict[str, NcclLeftOut] = {}
        self._processes: dict[tuple[str, int], _Process] = {}
        self._threads: dict[str, _Thread] = {}
        self._kinds: dict[tuple[typing.Optional[str], ...], typing.Optional[_Kind]] = {}
        self._problems: dict[tuple[str, str], NcclProblem] = {}
        self._versions: dict[str, None] = {}
        self._endpoints: dict[transports.EndpointLine, int] = {}
        self._more_endpoints = 0
        self._lines = self._nccl_lines = self._torn = self._untold = self._known = 0
        self._read = self._kept = 0
        self._cut = False
        self._file: typing.Optional[_File] = None
        self._logs = 0
        self._handlers: dict[str, typing.Callable[[_Thread, str], None]] = {
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

    def begin(self, name: str, host: typing.Optional[str] = None) -> None:
        """Begin a file of several.

        :param host: the only one whose lines count in it; None: those of each host count
        """
        self._end()
        self._file, self.host = _File(name), host
        # a thread writes into one file
        self._threads.clear()

    def _end(self) -> None:
        self._logs += self._file is not None and (bool(self._file.hosts) or not self._file.document)

    def read(self, lines: typing.Iterable[str]) -> None:
        file = self._file
        for line in lines:
            if file is not None and file.document is None and not line.isspace():
                file.document = is_document(line)
            self._lines += 1
            self._read += len(line)
            if line[-1:] != "\n":
                # whatever it says, it may have wanted to say more
                self._cut = True
                continue
            before, info, message = line.partition(_INFO)
            if info:
                self._nccl_lines += 1
                if " NCCL " in message and any(level in message for level in _LEVELS):
                    self._torn += 1
                    continue
                write, parts = self._info, (before, message.rstrip())
            elif _WARN in line or _ATTN in line:
                self._nccl_lines += 1
                before, _warn, message = line.rstrip().partition(_WARN if _WARN in line else _ATTN)
                write, parts = self._warn, (before, message)
            elif "CCL version " in line:
                self._bare_version(line.rstrip())
                continue
            elif any(word in line for word in _AROUND) or (
                "libibverbs: " in line and libibverbs.parse(line).kind is not None
            ):
                self._problem("", "", line.strip())
                continue
            else:
                found = transports.parse(line)
                if found is not None:
                    self._add_problem(found.kind, "", "", line.strip())
                else:
                    self._endpoint(transports.parse_endpoint(line))
                continue
            try:
                write(*parts)
            except _OtherHost:
                # no file tells of another host than its own
                self._nccl_lines -= 1
            except _TooMuch as error:
                self._leave_out(str(error))
                if self._sources == "files":
                    return

    def log(self) -> NcclLog:
        self._end()
        version = next(iter(self._versions)) if len(self._versions) == 1 else ""
        processes = [
            process
            for process in self._processes.values()
            if process.ranks or process.strays or process.devices or process.network
        ]
        communicators: dict[str, dict[int, _Rank]] = {}
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
            _match(ranks)
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
            tuple(self._left_out.values()),
            tuple(UcxEndpoint(*line, count) for line, count in self._endpoints.items()),
            self._more_endpoints,
        )

    def _endpoint(self, line: typing.Optional[transports.EndpointLine]) -> None:
        """Keep what a line tells of an endpoint of UCX. No file tells of another host than its own."""
        if line is None or self.host not in (None, line.host):
            return
        if line in self._endpoints or len(self._endpoints) < _MOST:
            self._endpoints[line] = self._endpoints.get(line, 0) + 1
        else:
            self._more_endpoints += 1

    def counted(self) -> int:
        """Return the number of processes or of ranks so far, whichever is greater."""
        return max(len(self._processes), self._ranks())

    def _ranks(self) -> int:
        return sum(len(process.ranks) + len(process.strays) for process in self._processes.values())

    # lines

    def _leave_out(self, source: str) -> None:
        """Forget all that lines of a source say, and what others say of the same processes."""

        def is_of(process: _Process) -> bool:
            if self._sources == "hosts":
                return process.host == source
            return any(file.name == source for file in process.files or ())

        gone = [key for key, process in self._processes.items() if is_of(process)]
        named = () if self._sources == "hosts" else dict.fromkeys(host for host, _process in gone)
        hosts = tuple(itertools.islice(named, _NAMED))
        why = f"it names more than {_MOST_OF_SOURCE // MIB} MiB of processes, ranks and their connections"
        self._left_out[source] = NcclLeftOut(source, hosts, why)
        for key in gone:
            del self._processes[key]
        self._threads = {token: item for token, item in self._threads.items() if not is_of(item.process)}
        self._kept -= self._kept_of.pop(source, 0)

    def _keep(self, cost: int, host: str) -> None:
        """Count something that is kept.

        :param cost: bytes of memory
        :param host: whose it is
        :raises _TooMuch: its source has more than any pod can
        :raises ParseError: the log is too short for all of it, or no job has so much
        """
        if self._sources:
            source = self._file.name if self._sources == "files" and self._file is not None else host
            kept = self._kept_of[source] = self._kept_of.get(source, 0) + cost
            if kept > _MOST_OF_SOURCE:
                self._kept += cost
                raise _TooMuch(source)
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
            counts = _COUNTS.fullmatch(message)
            if counts and max(int(counts[1]), int(counts[2])) <= MOST_CHANNELS:
                self._keep(_OF_CHANNEL * int(counts[1]), thread.process.host)
                thread.say("counts", (int(counts[1]), int(counts[2])))
            elif not counts:
                self._choice(thread, message)

    def _thread(self, before: str) -> typing.Optional[_Thread]:
        """Return the thread that wrote the line; None when the text before the message is not a head of NCCL's.

        :raises _OtherHost: the file is of another host
        """
        token = before.rpartition(" [")[0].rpartition(" ")[2]
        thread = self._threads.get(token)
        if thread is None:
            head = self._head(before)
            if head is None:
                return None
            key = head[1], int(head[2])
            if self._sources == "hosts" and head[1] in self._left_out:
                return None
            process = self._processes.get(key)
            if process is None:
                self._keep(_OF_PROCESS, key[0])
                process = self._processes[key] = _Process(*key)
            self._keep(_OF_THREAD, key[0])
            thread = self._threads[token] = _Thread(process)
            if self._file is not None:
                self._place(process, self._file)
        return thread

    def _head(self, before: str) -> typing.Optional[re.Match[str]]:
        """Read the head of a line; None when there is none of NCCL's.

        :raises _OtherHost: the file is of another host
        """
        head = _HEAD.fullmatch(before)
        if head is not None and self.host is not None and head[1] != self.host:
            raise _OtherHost
        return head

    def _place(self, process: _Process, file: _File) -> None:
        """Note that a file has lines of a process."""
        places = process.files = process.files or []
        if not places or places[-1] is not file:
            places.append(file)
            file.hosts[process.host] = None
            self._keep(_OF_PLACE, process.host)

    def _channel(self, thread: _Thread, message: str) -> None:
        found = _CHANNEL.fullmatch(message)
        if found is None:
            ring = _RING.fullmatch(message)
            if ring:
                thread.say("rings", int(ring[1]))
            return
        number, index, source, target, direction, tail = found.groups()
        tail, communicator, rest = tail.partition(" comm 0x")
        if communicator and not _RCCL_CHANNEL.fullmatch(rest):
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

    def _collnet(self, thread: _Thread, message: str) -> None:
        found = _COLLNET.fullmatch(message)
        kind = self._kind(found[2], found[4], found[5]) if found else None
        if found and kind and int(found[1]) < MOST_CHANNELS:
            self._add(self._rank(thread, int(found[3]), int(found[3]), None, False), kind, int(found[1]))

    def _add(self, rank: _Rank, kind: _Kind, channel: int) -> None:
        if kind not in rank.routes:
            self._keep(_OF_ROUTE, rank.process.host)
        rank.add(kind, channel)

    def _kind(self, index: typing.Optional[str], direction: typing.Optional[str], tail: str) -> typing.Optional[_Kind]:
        """None when it is none that NCCL writes: only of the network a line says which side writes it; of the others it
        is the sender."""
        key = index, direction, tail
        if key not in self._kinds:
            if len(self._kinds) >= _MOST:
                self._kinds.clear()
            way = _way(tail)
            fits = way is not None and (direction is None) == (way.transport in ("P2P", "SHM"))
            self._kinds[key] = (
                _Kind(way, _SIDES[direction], None if index is None else int(index)) if way and fits else None
            )
        return self._kinds[key]

    def _rank(self, thread: _Thread, own: int, peer: int, link: typing.Optional[int], incoming: bool) -> _Rank:
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
            self._keep(_OF_RANK, process.host)
            stray = process.strays[own] = _Rank(process, own)
        return stray

    def _communicator(self, thread: _Thread, message: str) -> None:
        found = _COMMUNICATOR.fullmatch(message)
        if found is None:
            nodes = _NODES.fullmatch(message)
            if nodes and thread.current is not None and thread.current.pointer == nodes[1]:
                thread.current.nodes = int(nodes[2])
            return
        pointer, number, size, gpu, bus_id, parent, count, color, identity, state = found.groups()
        process, own = thread.process, int(number)
        if not RANKS.fits(int(size)):
            return
        rank = process.in_making.pop((pointer, own), None)
        if rank is None:
            self._keep(_OF_RANK, process.host)
            rank = _Rank(process, own, pointer, int(size), gpu=int(gpu), bus_id=bus_id, started=state == "START")
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
        rank: _Rank, parent: typing.Optional[str], count: typing.Optional[str], color: typing.Optional[str]
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

    def _trees(self, thread: _Thread, message: str) -> None:
        found = _TREES.fullmatch(message)
        if found:
            thread.say("trees", found[1].count("["))

    def _network(self, thread: _Thread, message: str) -> None:
        found = _NETWORK.fullmatch(message)
        if found:
            thread.process.network = found[1]

    def _bootstrap(self, thread: _Thread, message: str) -> None:
        found = _BOOTSTRAP.fullmatch(message)
        if found:
            thread.process.bootstrap = found[1], found[2]

    def _dma_buf(self, thread: _Thread, message: str) -> None:
        if message.startswith("DMA-BUF is available on GPU device "):
            thread.process.dma_buf = True

    def _verbs(self, thread: _Thread, message: str) -> None:
        if message.startswith("Failed to open libibverbs.so"):
            thread.process.without_ib = "libibverbs is not in the image"

    def _distance(self, thread: _Thread, message: str) -> None:
        found = _DISTANCE.fullmatch(message)
        if found:
            # from 2.21 on the number of a system stands in the upper bits, and all of it is hexadecimal, which up to 9
            # is the same
            index = int(found[1], 16) & (1 << 56) - 1
            seen = thread.process.distances.setdefault(index, {})
            if found[2] not in seen:
                self._keep(2 * _OF_DEVICE, thread.process.host)
                seen[found[2]] = None

    def _version(self, thread: _Thread, message: str) -> None:
        version = _version_of(message)
        if version:
            thread.process.version = version
            if len(self._versions) < _MOST:
                self._versions[version] = None

    def _bare_version(self, line: str) -> None:
        """Rank 0 writes it without a head, too."""
        version = _version_of(line)
        if version and len(self._versions) < _MOST:
            self._versions[version] = None

    def _choice(self, thread: _Thread, message: str) -> None:
        found, numbered = _CHOICE.fullmatch(message), _NUMBERED.fullmatch(message)
        if found and int(found[5]) <= int(found[6]) < MOST_CHANNELS:
            choice = NcclChoice(found[1], int(found[2]), found[3], found[4], int(found[6]) - int(found[5]) + 1)
        elif numbered:
            choice = NcclChoice(
                numbered[1] or "", int(numbered[2]), _ALGORITHMS[int(numbered[3])], _PROTOCOLS[int(numbered[4])]
            )
        else:
            return
        choices = thread.process.choices = thread.process.choices or {}
        if choice not in choices and len(choices) < _MOST:
            self._keep(_OF_CHOICE, thread.process.host)
            choices[choice] = None

    def _environment(self, process: _Process, message: str) -> None:
        found = _SET.fullmatch(message)
        if found and len(process.environment) < _MOST:
            if found[1] not in process.environment:
                self._keep(_OF_VARIABLE + len(found[2]), process.host)
            process.environment[found[1]] = found[2]

    def _net(self, process: _Process, message: str) -> None:
        using, direct = _USING.fullmatch(message), _DIRECT.fullmatch(message)
        if using:
            oob = _OOB.fullmatch(using[2])
            if oob:
                process.oob = oob[2], oob[3]
            for device in _devices(oob[1] if oob else using[2]):
                self._keep(_OF_DEVICE, process.host)
                process.devices.setdefault(using[1], {})[device.index] = device
        elif direct:
            network, state, index, name, why = direct.groups()
            if (network, int(index)) not in process.direct:
                self._keep(3 * _OF_DEVICE, process.host)
            process.direct[network, int(index)] = state == "Enabled", why or ""
            process.devices.setdefault(network, {}).setdefault(int(index), NcclDevice(int(index), name))
        elif message == "NET/IB : No device found.":
            process.without_ib = "no RDMA device found"
        else:
            made, pair = _MADE.fullmatch(message), _QUEUE_PAIR.fullmatch(message)
            if made:
                devices = process.devices.setdefault("IB", {})
                if int(made[1]) not in devices:
                    self._keep(_OF_DEVICE, process.host)
                devices[int(made[1])] = NcclDevice(int(made[1]), made[2])
            elif pair:
                process.mtus |= 1 << int(pair[1])
                gid = _GID.fullmatch(pair[2])
                process.gid_indexes |= 1 << int(gid[1]) if gid else 0

    def _warn(self, before: str, message: str) -> None:
        head = self._head(before)
        if head is None or any(level in message for level in _LEVELS):
            self._torn += 1
            return
        if message.startswith(_ADVICE):
            return
        process = self._processes.get((head[1], int(head[2])))
        if self._file is not None and head[1] not in self._file.hosts:
            # who may write it is doubted as for any other line
            self._file.hosts[head[1]] = None
            self._keep(_OF_PLACE, head[1])
        self._problem(head[1], head[4] or "", message, (process.oob[1], process.bootstrap[1]) if process else ())

    def _problem(self, host: str, place: str, text: str, own: typing.Sequence[str] = ()) -> None:
        """:param own: addresses of the process"""
        self._add_problem(classify(text), host, place, text, own)

    def _add_problem(self, kind: str, host: str, place: str, text: str, own: typing.Sequence[str] = ()) -> None:
        short = text[:500]
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


def _match(ranks: typing.Mapping[int, _Rank]) -> None:
    """Both ends of a connection over the network write a line: of which there is but one, the other end's channel is
    not known."""
    for number, rank in ranks.items():
        for mine, theirs in ((rank.sent, "received"), (rank.received, "sent")):
            for link in mine:
                other = ranks.get(link & 0xFFFFFFFF)
                if other is not None and (link >> 32 << 32 | number) not in getattr(other, theirs):
                    other.unanswered.add(link >> 32)


def _version_of(text: str) -> str:
    """Return the version that a line is about, with the name RCCL where it is RCCL's; empty of any other line."""
    found = _VERSION.fullmatch(text)
    if found:
        return found[1]
    found = _RCCL_VERSION.fullmatch(text)
    return f"RCCL {found[1]}" if found else ""


def _way(tail: str) -> typing.Optional[_Way]:
    net = _NET.fullmatch(tail)
    if net:
        transport: typing.Literal["NET", "COLLNET"] = "NET" if net[1] == "NET" else "COLLNET"
        return _Way(transport, net[2], int(net[3]), net[5] is not None, int(net[4]) if net[4] else None)
    p2p = _P2P.fullmatch(tail)
    if p2p:
        return _Way("P2P", p2p[1])
    shm = _SHM.fullmatch(tail)
    return _Way("SHM", shm[1] or "direct") if shm else None


def _devices(text: str) -> typing.Iterator[NcclDevice]:
    """Behind the word Using: ``[0]mlx5_0:1/IB``, of NCCL 2.21 to 2.23 also merged ones, of Socket
    ``[0]eth0:10.0.0.1<0>``."""
    for found in _DEVICE.finditer(text):
        rail = int(found[4]) if found[4] else None
        yield NcclDevice(int(found[1]), found[2], int(found[3]), found[5], rail)
    for found in _MERGED.finditer(text):
        parts = _PART.findall(found[2])
        yield NcclDevice(int(found[1]), "+".join(name for name, _link in parts), None, parts[0][1] if parts else "")
    for found in _NETDEV.finditer(text):
        yield NcclDevice(int(found[1]), found[2])


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(place for place in range(mask.bit_length()) if mask >> place & 1)
