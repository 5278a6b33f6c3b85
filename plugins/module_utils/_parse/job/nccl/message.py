# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the messages of level INFO in NCCL's log. Each message describes the process or the rank that wrote it."""

from __future__ import annotations

import hashlib
import re
import typing

from ...._model.job.nccl import MOST_CHANNELS, RANKS, NcclChoice, NcclDevice
from .channel import ChannelLine, ChannelReader
from .memory import OF_CHANNEL, OF_CHOICE, OF_DEVICE, OF_LINK, OF_RANK, OF_ROUTE, OF_VARIABLE
from .process import LogProcess, LogRank, LogThread

#: rank 0 of RCCL, AMD's NCCL, writes it without a head: "RCCL version : 2.21.5-HEAD:9a0e6a1"
_RCCL_VERSION = re.compile(
    r"(?:.*\s|)RCCL version ?:? ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})(?:\s.{0,200})?", re.DOTALL
)
_VERSION = re.compile(r"(?:.*\s|)NCCL version ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})", re.DOTALL)
_RING = re.compile(r"Channel [0-9]{2,4}/([0-9]{2,4}) :[ 0-9.]*")
_COMMUNICATOR = re.compile(
    r"(?:\[Rank [0-9]+\] )?(?:ncclComm\w* )?comm (0x[0-9a-f]+) rank ([0-9]{1,7}) nranks ([0-9]{1,7}) cudaDev"
    r" (-?[0-9]{1,4})(?: nvmlDev -?[0-9]+)? "
    # of one that was split off 2.31 and later say a commId before the parent
    r"busId ([0-9a-f]{1,16})(?: commId 0x[0-9a-f]+(?= parent ))?"
    r"(?: parent (0x[0-9a-f]+|\(nil\))(?: (?:split|child)Count ([0-9]{1,10}))? color (-?[0-9]{1,10}) key"
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
_DEVICE = re.compile(r"\[([0-9]{1,4})\]([^\s:\[\]={}]{1,64}):([0-9]{1,3})(?::([0-9]{0,4}))?(?::[0-9]+)?/(IB|RoCE)")
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

#: versions that are listed, and choices and variables of a process
_MOST = 1000
#: the last communicators of a rank that are searched for the one of a channel
_RECENT = 256
#: characters of the name of a communicator: the name of one that was split off contains that of its parent
_LONGEST_NAME = 200


class MessageReader:
    """A parser that reads NCCL's messages one after the other, and stores their contents in the processes and ranks
    that wrote them.

    :ivar versions: different versions of NCCL, in the order of the log; the values are None
    """

    def __init__(self, keep: typing.Callable[[int, str], None]) -> None:
        """Create a reader for the messages of one log.

        :param keep: function that gets a number of bytes of memory and the name of the host that uses them, and raises
            an error if the limit is exceeded
        """
        self.versions: dict[str, None] = {}
        self._keep = keep
        self._channels = ChannelReader()
        self._handlers: dict[str, typing.Callable[[LogThread, str], None]] = {
            "Channel": self._read_channel,
            "Coll": self._read_collnet,
            "CollNet": self._read_collnet,
            "comm": self._read_communicator,
            "[Rank": self._read_communicator,
            "Trees": self._read_trees,
            "Using": self._read_network,
            "Bootstrap": self._read_bootstrap,
            "Bootstrap:": self._read_bootstrap,
            "DMA-BUF": self._read_dma_buf,
            "GPU": self._read_distance,
            "NCCL": self._read_version,
            "RCCL": self._read_version,
            "Failed": self._read_libibverbs,
            **dict.fromkeys(("AllReduce:", "AllGather:", "ReduceScatter:", "Broadcast:", "Reduce:"), self._read_choice),
        }

    def read_message(self, thread: LogThread, message: str) -> None:
        """Read a message that a thread wrote, and store its contents in the process and the rank of the thread. A
        message of an unknown form is ignored.
        """
        word = message.partition(" ")[0]
        handler = self._handlers.get(word)
        if handler:
            handler(thread, message)
        elif word.startswith("NET/"):
            self._read_net(thread.process, message)
        elif word.startswith("ncclComm"):
            self._read_communicator(thread, message)
        elif word.startswith("NCCL_"):
            self._read_variable(thread.process, message)
        elif word.isdigit():
            self._read_counts(thread, message)

    def add_version(self, version: str) -> None:
        """Keep a version of NCCL for the result. A version beyond the limit of _MOST is ignored."""
        if len(self.versions) < _MOST:
            self.versions[version] = None

    def read_bare_version(self, line: str) -> None:
        """Read the version of NCCL in a line without a head, which rank 0 writes. Any other line is ignored."""
        version = _parse_version(line)
        if version:
            self.add_version(version)

    def _read_counts(self, thread: LogThread, message: str) -> None:
        """Read a message that begins with a number. It contains the numbers of channels of a rank or, with old releases
        of NCCL, the algorithm that NCCL chose for a collective.
        """
        counts = _COUNTS.fullmatch(message)
        if counts and max(int(counts[1]), int(counts[2])) <= MOST_CHANNELS:
            self._keep(OF_CHANNEL * int(counts[1]), thread.process.host)
            thread.set_value("counts", (int(counts[1]), int(counts[2])))
        elif not counts:
            self._read_choice(thread, message)

    def _read_channel(self, thread: LogThread, message: str) -> None:
        """Read a line about a channel or a ring: keep the link, and count the connection."""
        line = self._channels.parse_channel(message)
        if line is None:
            ring = _RING.fullmatch(message)
            if ring:
                thread.set_value("rings", int(ring[1]))
            return
        # send and receive alone can have as many connections as pairs of ranks, so these have no links
        link = None if line.kind.connection else line.channel << 32 | line.peer
        rank = self._find_rank(thread, line.rank, line.peer, link, line.incoming)
        if link is not None:
            links = rank.select_links(line.incoming)
            if link not in links:
                self._keep(OF_LINK, rank.process.host)
                links.add(link)
            if line.kind.direction == "send":
                rank.sent.add(link)
        self._add_connection(rank, line)

    def _read_collnet(self, thread: LogThread, message: str) -> None:
        line = self._channels.parse_collnet(message)
        if line is not None:
            self._add_connection(self._find_rank(thread, line.rank, line.peer, None, False), line)

    def _add_connection(self, rank: LogRank, line: ChannelLine) -> None:
        if line.kind not in rank.routes:
            self._keep(OF_ROUTE, rank.process.host)
        rank.add_connection(line.kind, line.channel)

    def _find_rank(self, thread: LogThread, own: int, peer: int, link: typing.Optional[int], incoming: bool) -> LogRank:
        """Return the rank that wrote the line of a channel. The line does not name the communicator, and one process
        may have several ranks with the same number.

        If there are several, the result is the rank that is being initialized, or else the last rank that does not have
        this channel to this peer yet, because a communicator has each such pair once. If no known rank fits, the result
        is a rank without a communicator.

        :param thread: thread that wrote the line
        :param own: number of the rank in its communicator
        :param peer: number of the rank at the other end of the channel
        :param link: channel and peer, encoded as one number; None for a connection outside of the collectives' channels
        :param incoming: whether the rank receives over the channel
        """
        process, current = thread.process, thread.current
        if current is not None and current.rank == own:
            return current
        if len(process.ranks) == 1:
            only = process.ranks[0]
            if (
                only.rank == own
                and peer < (only.size or 0)
                and (only.started or link not in only.select_links(incoming))
            ):
                return only
        fitting = [
            rank for rank in process.by_rank.get(own, ())[-_RECENT:] if rank.size is not None and peer < rank.size
        ]
        free = next(
            (rank for rank in reversed(fitting) if link is None or link not in rank.select_links(incoming)), None
        )
        if free is not None:
            return free
        if fitting and fitting[-1].started:
            return fitting[-1]
        stray = process.strays.get(own)
        if stray is None:
            self._keep(OF_RANK, process.host)
            stray = process.strays[own] = LogRank(process, own)
        return stray

    def _read_communicator(self, thread: LogThread, message: str) -> None:
        """Read a line about a communicator: begin a rank, or complete it. Read a line about its number of nodes too."""
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
            self._keep(OF_RANK, process.host)
            rank = LogRank(process, own, pointer, int(size), gpu=int(gpu), bus_id=bus_id, started=state == "START")
            rank.name = identity or self._name_communicator(rank, parent, count, color)
            # before 2.18 a rank writes this line when all its channels are made
            before = process.strays.pop(own, None) if state == "COMPLETE" else None
            if before is not None:
                rank.merge_channels(before)
            for name, value in thread.waiting.items():
                setattr(rank, name, value)
            process.add_rank(rank)
        rank.complete = state == "COMPLETE"
        if not rank.complete:
            process.in_making[pointer, own] = rank
        thread.current, thread.waiting = (None if rank.complete else rank), {}

    @staticmethod
    def _name_communicator(
        rank: LogRank, parent: typing.Optional[str], count: typing.Optional[str], color: typing.Optional[str]
    ) -> str:
        """Return a name for the communicator of a rank if NCCL has not written a commId for it, such as ``8 ranks`` or
        ``8 ranks split 1 color 0``. All ranks of the communicator get the same name.

        :param parent: address of the communicator from which it was split; None if it was not split
        :param count: number of the split; None if the line has none
        :param color: color of the split; None if it was not split
        """
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

    def _read_trees(self, thread: LogThread, message: str) -> None:
        found = _TREES.fullmatch(message)
        if found:
            thread.set_value("trees", found[1].count("["))

    def _read_network(self, thread: LogThread, message: str) -> None:
        found = _NETWORK.fullmatch(message)
        if found:
            thread.process.network = found[1]

    def _read_bootstrap(self, thread: LogThread, message: str) -> None:
        found = _BOOTSTRAP.fullmatch(message)
        if found:
            thread.process.bootstrap = found[1], found[2]

    def _read_dma_buf(self, thread: LogThread, message: str) -> None:
        if message.startswith("DMA-BUF is available on GPU device "):
            thread.process.dma_buf = True

    def _read_libibverbs(self, thread: LogThread, message: str) -> None:
        if message.startswith("Failed to open libibverbs.so"):
            thread.process.without_ib = "libibverbs is not in the image"

    def _read_distance(self, thread: LogThread, message: str) -> None:
        """Read a line about a device that is too far from a GPU, and keep the distance."""
        found = _DISTANCE.fullmatch(message)
        if found:
            # from 2.21 on the upper bits have the number of a system, and the number is hexadecimal; up to 9 that is
            # the same
            index = int(found[1], 16) & (1 << 56) - 1
            seen = thread.process.distances.setdefault(index, {})
            if found[2] not in seen:
                self._keep(2 * OF_DEVICE, thread.process.host)
                seen[found[2]] = None

    def _read_version(self, thread: LogThread, message: str) -> None:
        version = _parse_version(message)
        if version:
            thread.process.version = version
            self.add_version(version)

    def _read_choice(self, thread: LogThread, message: str) -> None:
        """Read a line about the algorithm and the protocol of a collective, of any version of NCCL."""
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
            self._keep(OF_CHOICE, thread.process.host)
            choices[choice] = None

    def _read_variable(self, process: LogProcess, message: str) -> None:
        """Read a line about a variable of the environment. Of several values, the last one counts."""
        found = _SET.fullmatch(message)
        if found and len(process.environment) < _MOST:
            before = process.environment.get(found[1])
            if before is None:
                self._keep(OF_VARIABLE + len(found[2]), process.host)
            elif len(found[2]) > len(before):
                self._keep(len(found[2]) - len(before), process.host)
            process.environment[found[1]] = found[2]

    def _read_net(self, process: LogProcess, message: str) -> None:
        """Read a message about the network: its devices, GPUDirect RDMA, merged devices or queue pairs. Any other
        message is ignored.
        """
        using, direct = _USING.fullmatch(message), _DIRECT.fullmatch(message)
        if using:
            oob = _OOB.fullmatch(using[2])
            if oob:
                process.oob = oob[2], oob[3]
            for device in _parse_devices(oob[1] if oob else using[2]):
                self._keep(OF_DEVICE, process.host)
                process.devices.setdefault(using[1], {})[device.index] = device
        elif direct:
            network, state, index, name, why = direct.groups()
            if (network, int(index)) not in process.direct:
                self._keep(3 * OF_DEVICE, process.host)
            process.direct[network, int(index)] = state == "Enabled", why or ""
            process.devices.setdefault(network, {}).setdefault(int(index), NcclDevice(int(index), name))
        elif message == "NET/IB : No device found.":
            process.without_ib = "no RDMA device found"
        else:
            made, pair = _MADE.fullmatch(message), _QUEUE_PAIR.fullmatch(message)
            if made:
                devices = process.devices.setdefault("IB", {})
                if int(made[1]) not in devices:
                    self._keep(OF_DEVICE, process.host)
                devices[int(made[1])] = NcclDevice(int(made[1]), made[2])
            elif pair:
                process.mtus |= 1 << int(pair[1])
                gid = _GID.fullmatch(pair[2])
                process.gid_indexes |= 1 << int(gid[1]) if gid else 0


def _parse_version(text: str) -> str:
    """Return the version of NCCL that a line contains, such as ``2.28.9+cuda12.9``, or the version of RCCL with the
    prefix ``RCCL``. Return an empty string if the line contains no version.
    """
    found = _VERSION.fullmatch(text)
    if found:
        return found[1]
    found = _RCCL_VERSION.fullmatch(text)
    return f"RCCL {found[1]}" if found else ""


def _parse_devices(text: str) -> typing.Iterator[NcclDevice]:
    """Yield the devices in the text after the word Using: ``[0]mlx5_0:1/IB``, with NCCL 2.21 to 2.23 also merged
    devices, and with the network Socket ``[0]eth0:10.0.0.1<0>``. Other text is ignored.
    """
    for found in _DEVICE.finditer(text):
        rail = int(found[4]) if found[4] else None
        yield NcclDevice(int(found[1]), found[2], int(found[3]), found[5], rail)
    for found in _MERGED.finditer(text):
        parts = _PART.findall(found[2])
        yield NcclDevice(int(found[1]), "+".join(name for name, _link in parts), None, parts[0][1] if parts else "")
    for found in _NETDEV.finditer(text):
        yield NcclDevice(int(found[1]), found[2])
