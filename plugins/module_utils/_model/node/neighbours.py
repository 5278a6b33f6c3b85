# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node shows of the networks that its Ethernet NICs are cabled to. Hardware addresses are aa:bb:cc:dd:ee:ff in
lower case."""

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
    """The port at the other end of a cable, as it tells by LLDP (IEEE 802.1AB).

    :ivar chassis: of the switch: a hardware address, or the name that it has instead
    :ivar port: of the switch
    :ivar system: name of the switch; empty where it does not tell it
    :ivar vlan: of frames without a tag (IEEE 802.1Q, port VLAN ID); None where it does not tell it
    """

    chassis: SwitchName
    port: SwitchName
    system: SwitchName = ""
    vlan: typing.Optional[PortVlan] = None


@dataclasses.dataclass(frozen=True)
class NetdevNeighbours:
    """The neighbours of a network interface.

    :ivar switch_ports: who was heard by LLDP; several where a bridge without LLDP is between
    :ivar hardware_addresses: of neighbours that the kernel knows
    """

    name: Interface
    hardware_address: HardwareAddress
    switch_ports: typing.Annotated[tuple[SwitchPort, ...], Bound("ports of switches", MOST_PORTS)] = ()
    hardware_addresses: typing.Annotated[
        tuple[HardwareAddress, ...], Bound("hardware addresses of neighbours", MOST_ADDRESSES)
    ] = ()


@dataclasses.dataclass(frozen=True)
class NodeNeighbours:
    """Answer of node_info for one node.

    :ivar netdevs: those of HCAs on Ethernet that have a link; none where the node has InfiniBand
    :ivar uplinks: interfaces of the default routes, with what they are made of
    :ivar errors: what could not be read, and why
    """

    netdevs: typing.Annotated[tuple[NetdevNeighbours, ...], Bound("network interfaces", _MOST_INTERFACES)] = ()
    uplinks: typing.Annotated[tuple[Interface, ...], Bound("network interfaces", _MOST_INTERFACES)] = ()
    errors: Messages = ()


#: LLDP neighbours of one node (module node_info)
ObservedNeighbours = Observed[NodeNeighbours]
