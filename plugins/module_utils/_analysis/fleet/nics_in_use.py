# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the physical functions that the node itself uses: those of its default routes, those with an address of the
Node, those of its bonds and bridges, and those with other networks. While the SR-IOV operator changes such a function,
the node may not be reachable over it. Pure.
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.kubernetes.addresses import AddressFacts
from ..._model.node.hca import NodeHcas
from ..._model.node.platform import NodePlatform, ObservedPlatform

#: use of a function over which a default route leads, also through a bond, a bridge or a VLAN
UPLINK = "the default route of the node"
#: begin of the use of a function with an address that the Node object lists, by which the API server reaches the node
_ADDRESS = "the address of the node "
#: begin of the use of a function with another network
_NETWORK = "the network "
#: begin of the use of a function that is a port of a bridge, over which pods and virtual machines may have a network
_BRIDGE = "the bridge "
#: begin of the use of a function that is a port of a bond
_BOND = "the bond "
#: use of a function of a node whose routes to networks were not read
_UNREAD = "networks that were not read"
#: driver that the driver container of NVIDIA's network operator unloads
_REPLACED = "mlx5_core"
#: networks that no NIC is needed for: every interface may have them
_LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def is_needed(use: str) -> bool:
    """Return whether the node is unreachable without the NIC: it has the default route or an address of the Node.

    :param use: use of a physical function, as text
    """
    return use == UPLINK or use.startswith(_ADDRESS)


def is_network(use: str) -> bool:
    """Return whether the NIC only has another network of the node, such as one for storage, is a port of a bridge, or
    has networks that were not read.

    :param use: use of a physical function, as text
    """
    return use.startswith((_NETWORK, _BRIDGE, _UNREAD))


def is_unread(use: str) -> bool:
    """Return whether the networks of the NIC were not read, so that it may have an address of the node.

    :param use: use of a physical function, as text
    """
    return use == _UNREAD


def bridge_of(use: str) -> str:
    """Return the name of the bridge of which a NIC is a port. Return an empty text if it has another use.

    :param use: use of a physical function, as text
    """
    return use[len(_BRIDGE) :] if use.startswith(_BRIDGE) else ""


def find_upper(use: str) -> str:
    """Return the name of the bridge or bond of which a NIC is a port. Return an empty text if it has another use.

    :param use: use of a physical function, as text
    """
    return bridge_of(use) or (use[len(_BOND) :] if use.startswith(_BOND) else "")


def describe_use(use: str) -> str:
    """Return the use of a NIC as predicate of a sentence about the NIC.

    :param use: use of a physical function, as text
    """
    return f"is a port of {use}" if bridge_of(use) else f"{'may carry' if is_unread(use) else 'carries'} {use}"


def list_node_addresses(addresses: AddressFacts) -> dict[str, tuple[str, ...]]:
    """Return the InternalIPs and ExternalIPs of each Node, by name of the node.

    :param addresses: addresses that are in use in the cluster
    """
    found: dict[str, tuple[str, ...]] = {}
    for used in addresses.taken:
        if used.kind == "node":
            found[used.node] = (*found.get(used.node, ()), used.network.partition("/")[0])
    return found


def find_nics_in_use(
    hcas: typing.Optional[NodeHcas],
    platform: typing.Optional[ObservedPlatform],
    addresses: typing.Iterable[str] = (),
) -> typing.Optional[dict[str, str]]:
    """Return what the node itself uses its physical functions for, as text, such as the default route. The keys are the
    names of the network interfaces and the PCI addresses of these functions. A function also counts if one of its
    virtual functions is in use. If a function has several uses, the one that matters most is returned. Return None if
    the default routes of the node are unknown.

    :param hcas: HCAs of the node; None if they were not read
    :param platform: observed platform of the node; None if it was not observed
    :param addresses: InternalIPs and ExternalIPs of the Node
    """
    value = platform.value if platform is not None else None
    uplinks = value.uplinks if value is not None else None
    if value is None or uplinks is None:
        return None
    uses = {**_find_networks(value, tuple(addresses)), **dict.fromkeys(uplinks, UPLINK)}
    found: dict[str, str] = {}
    for hca in hcas.hcas if hcas is not None else ():
        for netdev in hca.all_netdevs:
            use = uses.get(netdev.name, "")
            if netdev.bond and not is_needed(use):
                use = f"{_BOND}{netdev.bond}"
            elif netdev.bridge and not is_needed(use):
                use = f"{_BRIDGE}{netdev.bridge}"
            elif value.networks is None:
                use = use or _UNREAD
            address = hca.physical_function or (hca.pci.address if hca.pci is not None else "")
            if use and _rank(use) > _rank(found.get(address, "")):
                found.update({netdev.name: use, **({address: use} if address else {})})
    return {**found, **{name: use for name, use in uses.items() if is_needed(use)}}


def find_upper_interfaces(hcas: typing.Optional[NodeHcas]) -> dict[str, tuple[str, ...]]:
    """Return the names of the interfaces above each physical function of a node, such as its VLANs and its bond, by PCI
    address. Interfaces above a virtual function count for its physical function. Functions without any are left out.

    :param hcas: HCAs of the node; None if they were not read
    """
    found: dict[str, tuple[str, ...]] = {}
    for hca in hcas.hcas if hcas is not None else ():
        address = hca.physical_function or (hca.pci.address if hca.pci is not None else "")
        names = (name for netdev in hca.all_netdevs for name in netdev.uppers)
        uppers = tuple(dict.fromkeys((*found.get(address, ()), *names)))
        if address and uppers:
            found[address] = uppers
    return found


def select_driven(hcas: typing.Optional[NodeHcas], uses: typing.Mapping[str, str]) -> dict[str, str]:
    """Return the uses of the NICs with the driver mlx5_core, which NVIDIA's network operator replaces, by network
    interface.

    :param hcas: HCAs of the node; None if they were not read
    :param uses: what the node itself uses its physical functions for, by interface or PCI address
    """
    return {
        netdev.name: uses[netdev.name]
        for hca in (hcas.hcas if hcas is not None else ())
        if hca.pci is not None and hca.pci.driver == _REPLACED
        for netdev in hca.all_netdevs
        if netdev.name in uses
    }


def _find_networks(platform: NodePlatform, addresses: typing.Sequence[str]) -> dict[str, str]:
    """Return the use of each interface on which the node has a network, as text: an address of the Node if it is in the
    network of the interface, otherwise the network. Link-local networks are left out.

    :param platform: observed platform of the node, with its networks and default routes
    :param addresses: InternalIPs and ExternalIPs of the Node
    """
    owners: dict[str, str] = {}
    uplinks = platform.uplinks or ()
    # the node reports them, and an empty text passes each form
    networks = [item for item in platform.networks or () if item.network]
    for address in addresses:
        at, fitting = ipaddress.ip_address(address), []
        for item in networks:
            network = ipaddress.ip_network(item.network)
            if network.version == at.version and at in network:
                fitting.append((network.prefixlen, item.interface))
        if any(name in uplinks for _length, name in fitting):
            continue  # the address is on the NIC of the default route
        longest = max((length for length, _name in fitting), default=0)
        owners.update({name: f"{_ADDRESS}{address}" for length, name in fitting if length == longest})
    found: dict[str, str] = {}
    for item in networks:
        if not any(_is_within(item.network, network) for network in _LINK_LOCAL):
            found.setdefault(item.interface, f"{_NETWORK}{item.network}")
    return {**found, **owners}


def _is_within(network: str, other: typing.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]) -> bool:
    parsed = ipaddress.ip_network(network)
    return parsed.version == other.version and parsed.network_address in other


def _rank(use: str) -> int:
    return 0 if not use else 1 if is_network(use) else 2 if not is_needed(use) else 3 if use != UPLINK else 4
