# SPDX-License-Identifier: GPL-3.0-or-later

"""What a log of NCCL shows of a job, and the pods that it ran in."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.devices import Interface, PciAddress, RdmaDevice
from ..boundary.form import Range
from ..boundary.kubernetes import LabelValue, Namespaced, Subdomain
from ..boundary.words import Host
from .ucx import UcxEndpoint

#: of a communicator; the largest jobs have some hundred thousand GPUs
RANKS = Range("a number of ranks", 1, 1_000_000)
#: channels of a rank; NCCL's MAXCHANNELS is 64 [src/include/device.h, 2.19 and later], 32 before
MOST_CHANNELS = 128

Ranks = typing.Annotated[int, RANKS]


@dataclasses.dataclass(frozen=True)
class NcclDevice:
    """A network device that a process of the job opened. That it is listed proves nothing: only channels say what is
    used.

    :ivar index: in the process's own list; what channels name
    :ivar name: RDMA device (mlx5_0), or netdev where the network is Socket; of several that NCCL merged into one:
        mlx5_0+mlx5_1
    :ivar port: None where the line does not say
    :ivar link: IB, RoCE, or empty
    :ivar rail: NCCL's own number of the rail, 2.30 and later; None where it says none
    :ivar gpu_direct: whether NCCL can use GPUDirect RDMA with it at all; None where the log does not say (it does with
        NCCL_DEBUG_SUBSYS=INIT,NET)
    :ivar reasons: why GPUDirect RDMA is off, for the device or for a GPU beside it
    """

    index: int
    name: str
    port: typing.Optional[int] = None
    link: str = ""
    rail: typing.Optional[int] = None
    gpu_direct: typing.Optional[bool] = None
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class NcclChoice:
    """The choice of NCCL for a collective of one size, which rank 0 writes with NCCL_DEBUG_SUBSYS=TUNING. Older
    releases write numbers, and no channels.

    :ivar function: AllReduce, AllGather, ReduceScatter, Broadcast or Reduce; empty where the version does not say
    :ivar size_bytes: of the buffer of one rank: of AllGather and ReduceScatter a part of what nccl-tests counts
    :ivar algorithm: RING, TREE, NVLS, NVLS_TREE, COLLNET_DIRECT, COLLNET_CHAIN or PAT, as NCCL writes it
    :ivar protocol: LL, LL128 or SIMPLE
    :ivar channels: over which it runs; None where the version does not say
    """

    function: str
    size_bytes: int
    algorithm: str
    protocol: str
    channels: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class NcclProcess:
    """A process of the job.

    :ivar host: as NCCL writes it: the host name up to its first dot; in a pod the pod's
    :ivar version: empty where the log does not say
    :ivar network: that it chose: IB, Socket or a plugin's name; empty where the log does not say
    :ivar oob_interface: of the connections before and beside the data; empty where the log does not say
    :ivar oob_address: of that interface
    :ivar dma_buf: the kernel and the driver give GPU memory to HCAs without nvidia-peermem; None where the log does not
        say
    :ivar without_ib: why it could not take InfiniBand or RoCE; empty where the log does not say
    :ivar devices: of the network that it chose
    :ivar environment: variables that NCCL says it read
    :ivar choices: what it chose for each collective and size
    :ivar mtus: of its queue pairs, in bytes, as NCCL writes them with NCCL_DEBUG_SUBSYS=NET
    :ivar gid_indexes: of its queue pairs on RoCE, likewise
    :ivar files: that have lines of it, 20 at most; empty where all ranks are in one file
    :ivar beside: other hosts of which these files have lines, 20 at most: where several files are given, each is of one
        pod
    """

    host: str
    pid: int
    version: str = ""
    network: str = ""
    oob_interface: str = ""
    oob_address: str = ""
    dma_buf: typing.Optional[bool] = None
    without_ib: str = ""
    devices: tuple[NcclDevice, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    choices: tuple[NcclChoice, ...] = ()
    mtus: tuple[int, ...] = ()
    gid_indexes: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class NcclRoute:
    """Connections of one rank that go the same way.

    :ivar transport: NET, P2P, SHM or COLLNET
    :ivar via: of NET and COLLNET the network (IB, Socket, a plugin's name); of P2P and SHM how (CUMEM, IPC, MNNVL,
        direct pointer, direct ...)
    :ivar direction: send, receive, or empty: of P2P and SHM only the sending rank writes a line
    :ivar device: index of the network device; None of P2P and SHM
    :ivar gpu_direct: the HCA reads and writes the GPU's memory itself (GDRDMA); None of P2P and SHM
    :ivar connection: 0 of collectives, 1 of send and receive; None where the version does not say
    :ivar proxy: rank of the GPU through which it goes (PXN); None without one
    :ivar channels: numbers of the channels
    :ivar lines: connections
    """

    transport: typing.Literal["NET", "P2P", "SHM", "COLLNET"]
    via: str
    direction: typing.Literal["send", "receive", ""]
    device: typing.Optional[int]
    gpu_direct: typing.Optional[bool]
    connection: typing.Optional[int]
    proxy: typing.Optional[int]
    channels: tuple[int, ...]
    lines: int

    @property
    def is_plugins(self) -> bool:
        """Return whether it goes over the network of a plugin of which it is not known what it sends by: UCX and
        libfabric may take TCP. IB, and IBext of NVIDIA's plugin, are verbs; SHARP is InfiniBand."""
        over = self.transport in ("NET", "COLLNET") and self.via != "Socket"
        return over and not self.via.startswith("IB") and (self.transport, self.via) != ("COLLNET", "SHARP")


@dataclasses.dataclass(frozen=True)
class NcclRank:
    """One rank of a communicator.

    :ivar rank: number in the communicator
    :ivar gpu: CUDA device; None where the rank never said who it is
    :ivar bus_id: of the GPU, hexadecimal
    :ivar complete: it said that its initialisation is complete
    :ivar channels: of collectives; None where the log does not say
    :ivar point_to_point_channels: of send and receive; None where the log does not say
    :ivar trees: trees that it is in; None where the log does not say
    :ivar rings: of the communicator, which rank 0 writes; None elsewhere
    :ivar nodes: of the communicator; None where the version does not say
    :ivar routes: the ways that its channels go
    :ivar unseen: channels of collectives on which no outgoing connection of this rank is in the log
    :ivar unanswered: channels on which another rank says that the network connects it with this one, and this one says
        nothing of it
    """

    rank: int
    host: str
    pid: int
    gpu: typing.Optional[int] = None
    bus_id: str = ""
    complete: bool = False
    channels: typing.Optional[int] = None
    point_to_point_channels: typing.Optional[int] = None
    trees: typing.Optional[int] = None
    rings: typing.Optional[int] = None
    nodes: typing.Optional[int] = None
    routes: tuple[NcclRoute, ...] = ()
    unseen: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class NcclCommunicator:
    """Ranks that talk with each other.

    :ivar name: its commId; before 2.16, which has none, how many ranks it has
    :ivar size: ranks that it has; None of ranks that never said who they are, so that their communicator is not known
    :ivar ranks: those that are in the log
    """

    name: str
    size: typing.Optional[Ranks]
    ranks: tuple[NcclRank, ...]


@dataclasses.dataclass(frozen=True)
class NcclProblem:
    """A warning or an error, with all that are alike.

    :ivar kind: a known one (see _parse/job/nccl_problem.py), or empty
    :ivar text: the first of them
    :ivar place: file and line of NCCL's source; empty of other programs
    :ivar hosts: at most 20
    :ivar count: how many are alike
    :ivar line: number of the first one's line
    """

    kind: str
    text: str
    place: str
    hosts: tuple[str, ...]
    count: int
    line: int


@dataclasses.dataclass(frozen=True)
class NcclLeftOut:
    """A source of lines of which nothing counts: a file, or a host where all ranks are in one file.

    :ivar source: name of the file or the host
    :ivar hosts: of which the file has lines, 20 at most
    :ivar why: the reason
    """

    source: str
    hosts: tuple[str, ...] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True)
class NcclLog:
    """A whole log.

    :ivar versions: of NCCL, as it writes them (2.28.9+cuda13.0), or of RCCL with its name (RCCL 2.21.5-HEAD:9a0e6a1)
    :ivar lines: of the log
    :ivar nccl_lines: lines that NCCL wrote
    :ivar torn: lines in which two messages are mixed, so that both are lost
    :ivar cut: the last line has no end
    :ivar untold: warnings of no known kind that are not among the problems, since there are too many
    :ivar left_out: files or hosts whose lines are too many to be kept; the others are judged
    :ivar endpoints: of UCX
    :ivar more_endpoints: lines of endpoints that are not among these, since there are too many kinds, or they are not
        whole
    """

    versions: tuple[str, ...] = ()
    processes: tuple[NcclProcess, ...] = ()
    communicators: tuple[NcclCommunicator, ...] = ()
    problems: tuple[NcclProblem, ...] = ()
    lines: int = 0
    nccl_lines: int = 0
    torn: int = 0
    cut: bool = False
    untold: int = 0
    left_out: tuple[NcclLeftOut, ...] = ()
    endpoints: tuple[UcxEndpoint, ...] = ()
    more_endpoints: int = 0

    @property
    def library(self) -> str:
        """RCCL where AMD's library wrote it, whose older versions say ``2.18.6+hip6.0``; else NCCL."""
        return "RCCL" if any(version.startswith("RCCL ") or "+hip" in version for version in self.versions) else "NCCL"


@dataclasses.dataclass(frozen=True)
class PodFunction:
    """A virtual function, or another device of the network, that a pod got.

    :ivar network: attachment, namespace/name
    :ivar interface: in the pod
    :ivar pci: PCI address; None where multus does not say
    :ivar rdma_device: None where multus does not say
    """

    network: Namespaced
    interface: Interface
    pci: typing.Optional[PciAddress] = None
    rdma_device: typing.Optional[RdmaDevice] = None


@dataclasses.dataclass(frozen=True)
class TrainingPod:
    """A pod of the job.

    :ivar host: host name, as NCCL writes it
    :ivar functions: what it got; None when its annotation could not be read, then ``error`` says why
    :ivar job: that the pod is of: the name by which its operator marks it, or the uid of its controller; empty without
        one, and where the user named labels
    """

    ONCE = ("name",)
    EITHER = (("functions",), ("error",))

    name: Subdomain
    host: Host
    node: Subdomain
    functions: typing.Optional[tuple[PodFunction, ...]] = None
    error: str = ""
    job: LabelValue = ""
