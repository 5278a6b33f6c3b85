# SPDX-License-Identifier: GPL-3.0-or-later

"""An InfiniBand fabric as its ports report it: subnet managers, topology, link errors, and the positions of HCAs. Times
are in seconds. GUIDs are 0x and 16 hex digits in lower case.

All objects are treated as immutable. Only LinkEnd, Link and FabricNode are not frozen: a large fabric has 400,000 of
them, and a frozen instance takes three times as long to create.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import RdmaDevice
from ..boundary.fabric import (
    FABRIC_NODES,
    FABRIC_PORTS,
    LINKS,
    AnyLid,
    Guid,
    Lid,
    LinkLanes,
    Lmc,
    PortNumber,
    SmActivity,
    SmPriority,
    SwitchPort,
)
from ..boundary.form import Bound
from ..boundary.numbers import Count, Seconds
from ..boundary.words import Word
from .error_counters import SeenErrors
from .forwarding import SeenForwarding

#: each host may run one by mistake
MANAGERS = Bound("ports of subnet managers", 1 << 16)
#: each virtual function may have an RDMA device
NODE_PORTS = Bound("ports of a node", 1 << 14)
#: a node is asked for that of each fabric that it is on
TOPOLOGIES = Bound("topologies of a node", 256)
#: Gb/s of one lane, as the kernel tells it
LANE_GBPS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}


@dataclasses.dataclass(frozen=True)
class SubnetManager:
    """A subnet manager, as its SMInfo describes it.

    :ivar lid: LID of the port on which it runs
    :ivar guid: GUID of that port
    :ivar state: MASTER, STANDBY, DISCOVER or NOTACT
    :ivar priority: priority from 0 to 15; the manager with the highest one becomes master
    :ivar activity: activity counter (ActCount), which increases while the manager works
    """

    lid: Lid
    guid: Guid
    state: Word
    priority: SmPriority
    activity: SmActivity


@dataclasses.dataclass(frozen=True)
class LostManager:
    """The last known state of a subnet manager that does not answer, from the port that queried it.

    :ivar lid: LID of the manager that the querying port still has
    :ivar description: node description of the device with that LID; None if no device answers
    :ivar is_manager: whether the port with that LID still has the IsSM bit; None if no device answers
    """

    lid: Lid
    description: typing.Optional[str] = None
    is_manager: typing.Optional[bool] = None


#: why no tool can open a port for management datagrams, from the lowest layer up: ib_umad is not loaded; it does not
#: know the port; the port has no /dev/infiniband/umad*; who asks may not open that
Barrier = typing.Literal["module", "port", "device", "right"]


@dataclasses.dataclass(frozen=True)
class SeenSubnet:
    """The subnet manager that one port sees, or the reason why it sees none.

    :ivar rdma_device: RDMA device that has the port
    :ivar port: number of the port on the device
    :ivar master: the answer to sminfo: the subnet manager that gave this port its LID, whatever its state
    :ivar error: reason why the query got no answer: the tool's own text, or the state of the port. A subnet without a
        manager is reported here too
    :ivar silent: whether the query was sent and got no answer. False with an error means that the query could not be
        sent
    :ivar lost: last known port of the manager of a silent subnet; None if the port has no LID of a manager
    :ivar barrier: cause that prevents a management datagram from being sent: ``module`` (ib_umad is not loaded),
        ``port`` (ib_umad does not know the port), ``device`` (no /dev/infiniband/umad*) or ``right`` (no permission to
        open it); None if nothing prevents it
    :ivar linked: whether the port had a link. Without one no query was sent
    """

    ONCE = ("rdma_device", "port")
    EITHER = (("master",), ("error", "silent", "barrier", "linked"))

    rdma_device: RdmaDevice
    port: PortNumber
    master: typing.Optional[SubnetManager] = None
    error: typing.Optional[str] = None
    silent: bool = False
    lost: typing.Optional[LostManager] = None
    barrier: typing.Optional[Barrier] = None
    linked: bool = True

    @property
    def cut_off(self) -> bool:
        """Return whether the subnet manager gave no answer, and its last known port gave none either: the manager's
        host is down, or the path to it is broken.
        """
        return self.lost is not None and self.lost.description is None


@dataclasses.dataclass(frozen=True)
class ManagerPort:
    """A port with the IsSM bit in the records of the subnet administration, with the answer of the subnet manager on
    it.

    :ivar lid: LID of the port
    :ivar manager: answer of the manager; None without an answer
    :ivar error: reason why the subnet manager gave no answer; None with an answer
    """

    EITHER = (("manager",), ("error",))

    lid: Lid
    manager: typing.Optional[SubnetManager] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenManagers:
    """All subnet managers of a fabric, as seen from one port.

    :ivar ports: ports with the IsSM bit, each with the answer of its manager
    :ivar error: why no managers or no activity counts were read; the other fields contain the data read before the
        error
    :ivar master: GUID of the manager that this port sees
    :ivar activity_first: activity count of the master in its SMInfo record; None if it was not read
    :ivar activity_later: activity count of the master at a second read, ``activity_seconds`` later. Both reads ask the
        subnet administration, because each answer to sminfo itself raises the count
    :ivar others_refreshed: whether the record of another manager changed between the two reads. The master reads these
        records when it sweeps, so a change proves a sweep. The master's own count does not prove it, since it also
        rises with each poll of a standby. None if there is no other manager
    """

    EITHER = (("activity_later",), ("error",))

    ports: typing.Annotated[tuple[ManagerPort, ...], MANAGERS] = ()
    error: typing.Optional[str] = None
    master: typing.Optional[Guid] = None
    activity_first: typing.Optional[SmActivity] = None
    activity_later: typing.Optional[SmActivity] = None
    activity_seconds: typing.Optional[Seconds] = None
    others_refreshed: typing.Optional[bool] = None


@dataclasses.dataclass(unsafe_hash=True)
class LinkEnd:
    """One end of a link: a port of a switch, HCA or router. The ``FabricNode`` with the same GUID has the description.

    :ivar kind: Switch, Ca (an HCA) or Router
    :ivar guid: node GUID of the device
    :ivar port: port number
    :ivar lid: LID of the port; None if the tool does not print it
    :ivar port_guid: GUID of the port of an HCA or router; None for a switch
    """

    kind: Word
    guid: Guid
    port: SwitchPort
    lid: typing.Optional[AnyLid] = None
    port_guid: typing.Optional[Guid] = None

    @property
    def place(self) -> tuple[str, int]:
        """Return the port as ibqueryerrors and iblinkinfo identify it: port number, with the GUID of the switch or of
        the CA port.
        """
        return self.port_guid or self.guid, self.port


@dataclasses.dataclass(unsafe_hash=True)
class Link:
    """A link between two ports, as ibnetdiscover or iblinkinfo prints it.

    :ivar a: one end
    :ivar b: end at the other side of the cable
    :ivar width: number of lanes; None where the tool prints question marks
    :ivar speed: name of the speed, such as NDR; None where the tool prints question marks
    """

    a: LinkEnd
    b: LinkEnd
    width: typing.Optional[LinkLanes]
    speed: typing.Optional[Word]


@dataclasses.dataclass(unsafe_hash=True)
class FabricNode:
    """A switch, CA or router of the topology.

    :ivar kind: Switch, Ca (an HCA) or Router
    :ivar description: node description, which the owner of the device chooses
    :ivar ports: number of its ports
    :ivar lid: LID of a switch; None for other devices
    :ivar aggregation: whether it is a SHARP aggregation node: a CA inside a switch, not an HCA of a server
    """

    kind: Word
    guid: Guid
    description: str
    ports: SwitchPort
    lid: typing.Optional[AnyLid] = None
    aggregation: bool = False

    @property
    def called(self) -> str:
        """Return the name of the node for messages: its description (64 bytes in the IBA), or its GUID if the
        description is empty.
        """
        return self.description.strip()[:64] or self.guid


@dataclasses.dataclass(frozen=True)
class Topology:
    """The topology that ibnetdiscover shows from one port. Each link is listed once.

    :ivar nodes: switches, channel adapters (CAs) and routers
    :ivar links: cables, each with its two ends
    :ivar lmc: largest LID mask count of all CA ports; a port has 2**lmc consecutive LIDs. None if not read
    """

    nodes: typing.Annotated[tuple[FabricNode, ...], FABRIC_NODES]
    links: typing.Annotated[tuple[Link, ...], LINKS]
    lmc: typing.Optional[Lmc] = None


@dataclasses.dataclass(frozen=True)
class SlowPort:
    """A port whose link is slower than both ports of the link support.

    :ivar guid: GUID of the switch, or of the port of a CA
    :ivar could_be: supported width or speed, as the tool prints it: ``12X``, ``106.25 Gbps``
    """

    guid: Guid
    port: SwitchPort
    could_be: str


@dataclasses.dataclass(frozen=True)
class SeenCapabilities:
    """The links that are slower than both of their ports support, or ``error``, the reason why no links were compared.

    :ivar slow: ports at the ends of links that are slower than both ports support
    :ivar links: number of compared links, times two because each link is compared at both of its ends
    :ivar unread: lines of the tool that could not be parsed, each about one port
    :ivar error: reason why no links were compared; None if they were
    """

    slow: typing.Annotated[tuple[SlowPort, ...], FABRIC_PORTS] = ()
    links: Count = 0
    unread: typing.Annotated[tuple[str, ...], FABRIC_PORTS] = ()
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenTopology:
    """The topology, subnet managers, link capabilities, error counters and forwarding tables of a fabric, as read
    through one port.

    :ivar rdma_device: RDMA device of the port
    :ivar port: port number
    :ivar topology: nodes and links of the fabric; None if there is an error; then links and counters were not read
        either
    :ivar error: reason why there is no topology; None if there is one
    :ivar managers: subnet managers of the fabric; None if they were not queried; the same applies to the fields below
    :ivar capabilities: highest speed and width of each end of the links
    :ivar errors: error counters of all ports
    :ivar forwarding: forwarding tables of the switches
    """

    ONCE = ("rdma_device", "port")
    EITHER = (("topology",), ("error",))

    rdma_device: RdmaDevice
    port: PortNumber
    topology: typing.Optional[Topology] = None
    error: typing.Optional[str] = None
    managers: typing.Optional[SeenManagers] = None
    capabilities: typing.Optional[SeenCapabilities] = None
    errors: typing.Optional[SeenErrors] = None
    forwarding: typing.Optional[SeenForwarding] = None


@dataclasses.dataclass(frozen=True)
class Place:
    """The position of an HCA's port in the fabric.

    :ivar node: name of the node
    :ivar hca: name of the HCA for messages: the name of its RDMA device, if it has one
    :ivar rail: number of the rail: 0 for the first HCA of each node on the fabric, the same on every node
    :ivar leaf: description of the switch at the other end of the cable, or its GUID if it has no description; None if
        no topology shows it
    :ivar leaf_port: port number on that switch; None if ``leaf`` is None
    """

    node: str
    hca: str
    rail: int
    leaf: typing.Optional[str] = None
    leaf_port: typing.Optional[int] = None


#: subnet managers that the ports of one node see (module subnet_manager_info)
ObservedSubnets = Observed[typing.Annotated[tuple[SeenSubnet, ...], NODE_PORTS]]

#: fabrics as one node sees them (module fabric_info)
ObservedTopologies = Observed[typing.Annotated[tuple[SeenTopology, ...], TOPOLOGIES]]
