# SPDX-License-Identifier: GPL-3.0-or-later

"""The neighbors of a node's NICs on Ethernet networks: switch ports by LLDP, and hosts by the kernel's neighbor table.
Hardware addresses are aa:bb:cc:dd:ee:ff in lower case.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.devices import HardwareAddress, Interface
from ..boundary.form import Bound
from ..boundary.numbers import Messages, PortVlan
from ..boundary.words import SwitchName

#: of one interface: a switch without LLDP of its own may pass on that of all of its ports; hosts of one network of 16
#: bits
MOST_PORTS, MOST_ADDRESSES = 64, 65_536
#: interfaces of one node, where a real one has some ten
_MOST_INTERFACES = 1024


@dataclasses.dataclass(frozen=True)
class SwitchPort:
    """The port at the other end of a cable, as reported by LLDP (IEEE 802.1AB).

    :ivar chassis: chassis id of the switch: a hardware address or a name
    :ivar port: port id of the switch
    :ivar system: name of the switch; empty if not reported
    :ivar vlan: VLAN of untagged frames (IEEE 802.1Q, port VLAN ID); None if not reported
    """

    chassis: SwitchName
    port: SwitchName
    system: SwitchName = ""
    vlan: typing.Optional[PortVlan] = None


@dataclasses.dataclass(frozen=True)
class NetdevNeighbours:
    """The neighbors of a network interface: switch ports that LLDP shows, and hosts in the neighbor table.

    :ivar name: name of the interface
    :ivar hardware_address: hardware address of the interface itself
    :ivar switch_ports: LLDP neighbors. Several contradict each other: a bridge without LLDP is in between, or another
        device on the link sends LLDP
    :ivar hardware_addresses: hardware addresses in the kernel's neighbor table
    """

    name: Interface
    hardware_address: HardwareAddress
    switch_ports: typing.Annotated[tuple[SwitchPort, ...], Bound("ports of switches", MOST_PORTS)] = ()
    hardware_addresses: typing.Annotated[
        tuple[HardwareAddress, ...], Bound("hardware addresses of neighbours", MOST_ADDRESSES)
    ] = ()


@dataclasses.dataclass(frozen=True)
class NodeNeighbours:
    """The Ethernet neighbors of one node, as the module node_info returns them.

    :ivar netdevs: interfaces of Ethernet HCAs that have a link; none on a node with InfiniBand
    :ivar uplinks: interfaces of the default routes, and the interfaces below them
    :ivar errors: texts that name each failed read and its reason
    """

    netdevs: typing.Annotated[tuple[NetdevNeighbours, ...], Bound("network interfaces", _MOST_INTERFACES)] = ()
    uplinks: typing.Annotated[tuple[Interface, ...], Bound("network interfaces", _MOST_INTERFACES)] = ()
    errors: Messages = ()


#: LLDP neighbours of one node (module node_info)
ObservedNeighbours = Observed[NodeNeighbours]
