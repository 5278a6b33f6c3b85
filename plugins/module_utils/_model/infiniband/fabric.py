# SPDX-License-Identifier: GPL-3.0-or-later

"""An InfiniBand fabric as its ports see it: subnet managers, topology, errors of links, and where an HCA is in it.

Units: times in seconds. GUIDs are 0x and 16 hex digits in lower case.

Nobody changes what is here. LinkEnd, Link and FabricNode alone are not frozen: a large fabric has 400,000 of them, and
a frozen one takes three times as long to make.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import RdmaDevice
from ..boundary.fabric import (
    COUNTERS,
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
from ..boundary.numbers import Count, Counter, Seconds
from ..boundary.words import Word
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
    """One subnet manager as an SMInfo answer shows it. state: MASTER, STANDBY, DISCOVER or NOTACT."""

    lid: Lid
    guid: Guid
    state: Word
    priority: SmPriority
    activity: SmActivity


@dataclasses.dataclass(frozen=True)
class LostManager:
    """The rest of a subnet manager that does not answer: the port that was its.

    :ivar lid: the LID that the asking port still has for its manager
    :ivar description: node description at that LID; None when nothing answers there
    :ivar is_manager: whether that port still says that a manager runs on it (IsSM bit); None when nothing answers there
    """

    lid: Lid
    description: typing.Optional[str] = None
    is_manager: typing.Optional[bool] = None


#: why no tool can open a port for management datagrams, from the lowest layer up: ib_umad is not loaded; it does not
#: know the port; the port has no /dev/infiniband/umad*; who asks may not open that
Barrier = typing.Literal["module", "port", "device", "right"]


@dataclasses.dataclass(frozen=True)
class SeenSubnet:
    """The subnet of one port.

    :ivar master: what sminfo answered: the subnet manager that gave this port its LID, whatever its state
    :ivar error: why there is no answer: the tool's own text, or the state of the port. A subnet without a manager is
        such a fact
    :ivar silent: the question went out and nobody answered; False with an error means that it could not be asked
    :ivar lost: of a silent subnet, where its manager was; None when the port has no LID of one
    :ivar linked: False: the port had no link, so nobody asked
    :ivar barrier: of a port that could not be asked, why; None when nothing stands in the way
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
        """Nobody answers, not even the port where the manager was: that one is gone, or the way to it."""
        return self.lost is not None and self.lost.description is None


@dataclasses.dataclass(frozen=True)
class ManagerPort:
    """A port with the IsSM bit, by the subnet administration, and what the manager there answered itself; or why it did
    not."""

    EITHER = (("manager",), ("error",))

    lid: Lid
    manager: typing.Optional[SubnetManager] = None
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenManagers:
    """All subnet managers of a fabric, as seen from one port.

    :ivar error: why there are none, or why the count was not read; then what is here is what was read before
    :ivar master: GUID of the manager that this port sees
    :ivar activity_first: activity count of the master in its SMInfo record; None when it was not read
    :ivar activity_later: the same at a second read, ``activity_seconds`` later. Both come from the subnet
        administration, because each answer to sminfo itself raises the count
    :ivar others_refreshed: whether a record of another manager changed between the two looks: the master reads them
        when it sweeps, so this proves a sweep, while its own count also rises with each answer to a standby that polls
        it. None when there is no other manager
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
    """One end of a link. kind: Switch, Ca or Router; its description is that of the FabricNode with this guid."""

    kind: Word
    guid: Guid
    port: SwitchPort
    lid: typing.Optional[AnyLid] = None
    port_guid: typing.Optional[Guid] = None

    @property
    def place(self) -> tuple[str, int]:
        """As ibqueryerrors and iblinkinfo name it: GUID of the switch, or of the port of a CA, and number of the
        port."""
        return self.port_guid or self.guid, self.port


@dataclasses.dataclass(unsafe_hash=True)
class Link:
    """A link between two ports; width in lanes, speed by its name; None where the tool prints question marks."""

    a: LinkEnd
    b: LinkEnd
    width: typing.Optional[LinkLanes]
    speed: typing.Optional[Word]


@dataclasses.dataclass(unsafe_hash=True)
class FabricNode:
    """A switch, a CA or a router of the topology.

    :ivar aggregation: a SHARP aggregation node: a CA inside a switch, and no HCA of a server
    """

    kind: Word
    guid: Guid
    description: str
    ports: SwitchPort
    lid: typing.Optional[AnyLid] = None
    aggregation: bool = False

    @property
    def called(self) -> str:
        """Return its name: its description, of which the IBA has 64 bytes; without one its GUID."""
        return self.description.strip()[:64] or self.guid


@dataclasses.dataclass(frozen=True)
class Topology:
    """The topology that ibnetdiscover shows from one port. Each link is there once.

    :ivar lmc: largest LID mask count of a port of a CA: it has 2 to the power of that LIDs, one after the other; None:
        not read
    """

    nodes: typing.Annotated[tuple[FabricNode, ...], FABRIC_NODES]
    links: typing.Annotated[tuple[Link, ...], LINKS]
    lmc: typing.Optional[Lmc] = None


@dataclasses.dataclass(frozen=True)
class SlowPort:
    """A port whose link runs below what both of its ends support.

    :ivar guid: of the switch, or of the port of a CA
    :ivar could_be: in the tool's words: ``12X``, ``106.25 Gbps``
    """

    guid: Guid
    port: SwitchPort
    could_be: str


@dataclasses.dataclass(frozen=True)
class SeenCapabilities:
    """The links below their capability. error: why none were looked at.

    :ivar links: how many links were compared, each counted at both of its ends
    :ivar unread: lines of the tool that could not be read, each about one port
    """

    slow: typing.Annotated[tuple[SlowPort, ...], FABRIC_PORTS] = ()
    links: Count = 0
    unread: typing.Annotated[tuple[str, ...], FABRIC_PORTS] = ()
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PortErrors:
    """Error counters of a port that are not 0, by their names in PortCounters (SymbolErrorCounter). guid: of the
    switch, or of the port of a CA.

    :ivar wide: they have 64 bits; the old ones have 16, 8 or 4, and stay at their maximum
    """

    guid: Guid
    port: SwitchPort
    counters: typing.Annotated[dict[Word, Counter], COUNTERS]
    wide: bool = False


@dataclasses.dataclass(frozen=True)
class UnreadPort:
    """A port that did not answer a query for its counters. port: 255 for all of the node's."""

    lid: AnyLid
    port: SwitchPort


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """One reading of the error counters of a whole fabric.

    :ivar ports: those with an error counted
    :ivar checked: number of ports that were read
    :ivar failures: queries without an answer
    :ivar unread: the ports of these queries, as far as the tool named them
    """

    ports: typing.Annotated[tuple[PortErrors, ...], FABRIC_PORTS]
    checked: Count
    failures: Count = 0
    unread: typing.Annotated[tuple[UnreadPort, ...], FABRIC_PORTS] = ()


@dataclasses.dataclass(frozen=True)
class SeenErrors:
    """Two readings, ``seconds`` apart. error: why one of them is missing."""

    EITHER = (("first", "later"), ("error",))

    first: typing.Optional[ErrorReport] = None
    later: typing.Optional[ErrorReport] = None
    seconds: Seconds = 0.0
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class SeenTopology:
    """The fabric as one port shows it.

    :ivar topology: None: see ``error``; then links and counters were not read either
    :ivar managers: None when the port was not asked for them; so for the others
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
    """The place of an HCA's port.

    :ivar hca: its name as a reader calls it: the RDMA device where there is one
    :ivar rail: 0 for the first HCA of each node on the fabric, the same on every node
    :ivar leaf: description of the switch at the other end of its cable, the GUID of a nameless one; None when no
        topology shows it
    :ivar leaf_port: number of that switch's port; None as above
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
