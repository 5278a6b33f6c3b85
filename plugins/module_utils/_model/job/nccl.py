# SPDX-License-Identifier: GPL-3.0-or-later

"""The content of an NCCL log of a job, and the pods in which the job ran."""

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
#: networks of plugins that know only verbs, and have no way to TCP: gIB of Google's images [AI-Hypercomputer
#: gpu-recipes], RCCL-ANP for the NICs of AMD [ROCm/amd-anp src/net_ib.cc]
_VERBS_PLUGINS = frozenset({"gIB", "RCCL-ANP"})

Ranks = typing.Annotated[int, RANKS]


@dataclasses.dataclass(frozen=True)
class NcclDevice:
    """A network device that a process of the job opened. A listed device is not necessarily used. Only channels prove
    its use.

    :ivar index: index in the process's own list, which channels refer to
    :ivar name: RDMA device (mlx5_0), or netdev if the network is Socket; mlx5_0+mlx5_1 for devices that NCCL merged
    :ivar port: port number of the device; None if not logged
    :ivar link: IB, RoCE, or empty
    :ivar rail: NCCL's own rail number, 2.30 and later; None if not logged
    :ivar gpu_direct: whether NCCL can use GPUDirect RDMA with it; None if not logged (it is with
        NCCL_DEBUG_SUBSYS=INIT,NET)
    :ivar reasons: why GPUDirect RDMA is off, for the device or for a GPU near it
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
    """The choice of NCCL for a collective of one size, which rank 0 logs with NCCL_DEBUG_SUBSYS=TUNING. Older releases
    log numbers, and no channels.

    :ivar function: AllReduce, AllGather, ReduceScatter, Broadcast or Reduce; empty if not logged
    :ivar size_bytes: size of the buffer of one rank. For AllGather and ReduceScatter this is a part of the size that
        nccl-tests prints
    :ivar algorithm: RING, TREE, NVLS, NVLS_TREE, COLLNET_DIRECT, COLLNET_CHAIN or PAT, as NCCL writes it
    :ivar protocol: LL, LL128 or SIMPLE
    :ivar channels: number of channels; None if not logged
    """

    function: str
    size_bytes: int
    algorithm: str
    protocol: str
    channels: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True)
class NcclProcess:
    """A process of the job.

    :ivar host: host name up to its first dot, as NCCL logs it; in a pod that of the pod
    :ivar pid: process id
    :ivar version: version of NCCL; empty if not logged
    :ivar network: network that the process uses: IB, Socket or a plugin's name; empty if not logged
    :ivar oob_interface: interface for out-of-band connections; empty if not logged
    :ivar oob_address: address of that interface
    :ivar dma_buf: whether kernel and driver give HCAs access to GPU memory without nvidia-peermem; None if not logged
    :ivar without_ib: why it could not use InfiniBand or RoCE; empty if not logged
    :ivar devices: devices of that network
    :ivar environment: variables that NCCL reports as read
    :ivar choices: choices for each collective and size
    :ivar mtus: MTUs of its queue pairs, in bytes, logged with NCCL_DEBUG_SUBSYS=NET
    :ivar gid_indexes: GID indexes of its queue pairs on RoCE, logged with NCCL_DEBUG_SUBSYS=NET
    :ivar files: files that have its lines, 20 at most; empty if all ranks are in one file
    :ivar beside: other hosts with lines in these files, 20 at most. If several files are given, each must be of one pod
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
    """The connections of one rank that use the same transport, device and direction.

    :ivar transport: NET, P2P, SHM or COLLNET
    :ivar via: method within the transport: for NET and COLLNET the network (IB, Socket, a plugin's name); for P2P and
        SHM CUMEM, IPC, MNNVL, direct pointer, direct ...
    :ivar direction: send, receive, or empty: for P2P and SHM only the sending rank logs a line
    :ivar device: index of the network device; None for P2P and SHM
    :ivar gpu_direct: whether the HCA accesses GPU memory directly (GDRDMA); None for P2P and SHM
    :ivar connection: kind of connection: 0 for collectives, 1 for send and receive; None if not logged
    :ivar proxy: rank of the GPU through which the data goes (PXN); None without one
    :ivar channels: numbers of the channels
    :ivar lines: number of connections
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
        """Return whether the connections use the network of a plugin that may not be RDMA: plugins of UCX and libfabric
        may send over TCP. Return False for networks that use verbs, for SHARP, which uses InfiniBand, and for Socket.
        """
        over = self.transport in ("NET", "COLLNET") and self.via != "Socket"
        return over and not is_verbs(self.via) and (self.transport, self.via) != ("COLLNET", "SHARP")


def is_verbs(network: str) -> bool:
    """Return whether a network of NCCL sends with verbs only: NCCL's own IB, IBext of NVIDIA's plugin, and the networks
    of the plugins that have no way to TCP.

    :param network: name of the network, as NCCL writes it
    """
    return network.startswith("IB") or network in _VERBS_PLUGINS


@dataclasses.dataclass(frozen=True)
class NcclRank:
    """One rank of a communicator.

    :ivar rank: number in the communicator
    :ivar host: host name of its process
    :ivar pid: process id of its process
    :ivar gpu: CUDA device; None if the rank did not log its identity
    :ivar bus_id: PCI bus id of the GPU, hexadecimal
    :ivar complete: whether it logged that its initialization is complete
    :ivar channels: number of channels for collectives; None if not logged
    :ivar point_to_point_channels: number of channels for send and receive; None if not logged
    :ivar trees: number of trees that it is in; None if not logged
    :ivar rings: number of rings of the communicator, logged by rank 0; None for other ranks
    :ivar nodes: number of nodes of the communicator; None if not logged
    :ivar routes: paths of its channels
    :ivar unseen: channels of collectives for which the log has no outgoing connection of this rank
    :ivar unanswered: channels on which another rank logs a network connection with this rank, and this rank logs none
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
    """Ranks that communicate with each other.

    :ivar name: commId of the communicator; before NCCL 2.16, which logs none, its number of ranks
    :ivar size: number of its ranks; None for ranks that did not log their identity, so that their communicator is not
        known
    :ivar ranks: ranks that are in the log
    """

    name: str
    size: typing.Optional[Ranks]
    ranks: tuple[NcclRank, ...]


@dataclasses.dataclass(frozen=True)
class NcclProblem:
    """A warning or an error in the log. Messages with equal text are one problem.

    :ivar kind: identifier of a known kind of problem (_parse/job/nccl/problem.py); empty for an unknown kind
    :ivar text: text of the first such message
    :ivar place: file and line of NCCL's source; empty for other programs
    :ivar hosts: hosts that logged the message, at most 20
    :ivar count: number of equal messages
    :ivar line: line number of the first such message in the log
    """

    kind: str
    text: str
    place: str
    hosts: tuple[str, ...]
    count: int
    line: int


#: first words of why a source was left out that is not a file with a log
NOT_READ = "it is not read: "
#: words of the reason for which a log was not read: the limits of all logs, and a hole in a sparse file
TOGETHER, HOLE = "all logs together", "NUL characters in a row"


@dataclasses.dataclass(frozen=True)
class NcclLeftOut:
    """A source whose lines are ignored: a file, or a host if all ranks are in one file.

    :ivar source: name of the file or the host
    :ivar hosts: hosts with lines in the file, 20 at most
    :ivar why: the reason
    """

    source: str
    hosts: tuple[str, ...] = ()
    why: str = ""


@dataclasses.dataclass(frozen=True)
class NcclLog:
    """The parsed log of NCCL or RCCL of a whole job.

    :ivar versions: versions of NCCL as it prints them (2.28.9+cuda13.0), or of RCCL with its name (RCCL
        2.21.5-HEAD:9a0e6a1)
    :ivar processes: processes of the job
    :ivar communicators: communicators with their ranks
    :ivar problems: warnings and errors, one item for all messages with equal text
    :ivar lines: number of lines of the log
    :ivar nccl_lines: number of lines that NCCL wrote
    :ivar torn: number of lines in which two messages are mixed, so that both are lost
    :ivar cut: whether the last line has no line end, so that the log may be incomplete
    :ivar untold: number of warnings of unknown kind that are not among ``problems``, because there are too many
    :ivar left_out: files or hosts that are ignored because they have too many lines; the remaining ones are judged
    :ivar endpoints: connections of UCX
    :ivar more_endpoints: number of UCX endpoint lines that are not among ``endpoints``, because there are too many
        different ones or the line is incomplete
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
        """Return ``RCCL`` if AMD's library wrote the log, else ``NCCL``. Older versions of RCCL print
        ``2.18.6+hip6.0``.
        """
        return "RCCL" if any(version.startswith("RCCL ") or "+hip" in version for version in self.versions) else "NCCL"


@dataclasses.dataclass(frozen=True)
class PodFunction:
    """A virtual function, or another network device, of a pod.

    :ivar network: attachment, namespace/name
    :ivar interface: interface in the pod
    :ivar pci: PCI address; None if multus does not report it
    :ivar rdma_device: name of the RDMA device; None if multus does not report it
    """

    network: Namespaced
    interface: Interface
    pci: typing.Optional[PciAddress] = None
    rdma_device: typing.Optional[RdmaDevice] = None


@dataclasses.dataclass(frozen=True)
class TrainingPod:
    """A pod of the job.

    :ivar name: name of the pod
    :ivar host: host name, as NCCL writes it
    :ivar node: node on which it runs
    :ivar functions: network devices of the pod; None if its annotation could not be read, with the reason in ``error``
    :ivar job: job to which the pod belongs: the name in its operator's label, or the uid of its controller; empty
        without one, and if the user selected pods by labels
    """

    ONCE = ("name",)
    EITHER = (("functions",), ("error",))

    name: Subdomain
    host: Host
    node: Subdomain
    functions: typing.Optional[tuple[PodFunction, ...]] = None
    error: str = ""
    job: LabelValue = ""
