# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks of the hosts' own interfaces in the range of a fabric. whereabouts and nv-ipam store the addresses of pods
alone, so they give a pod the address that a host has on the same network.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing

from ..._model.base.phrases import count_of, describe_rerun
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.addresses import UsedNetwork
from ..._model.node.hca import NodeHcas
from ..._model.node.platform import InterfaceNetwork, NodePlatform, ObservedPlatform
from ..._model.run.findings import UNKNOWN, Finding
from ..._parse.kubernetes.networks.addresses import Network, Pool, is_address
from ..._parse.kubernetes.networks.nv_ipam import Blocks
from ..fleet.bonds import may_use_bonds
from ..fleet.hcas_of_fabric import find_candidates
from .invalid_networks import is_network
from .overlaps import is_overlapping

_SHOWN = 5
#: every interface may have them, and no pod gets an address of them
_LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))

HOST_WHY = (
    "A host has addresses in the range. The IPAM plugin stores the addresses of pods alone: a pod may get the address"
    " of a host, and then one of them loses its packets. A pod also sends traffic for the network of such an interface"
    " into the fabric, where it does not reach other hosts of that network."
)
HOST_REMEDY = (
    "If the hosts have their addresses on the interface of the fabric itself, exclude these addresses: ipam.exclude, or"
    " range_start and range_end. Otherwise set ipam of the fabric to a network that no host uses (ip address on the"
    " node). Then run stage network again."
)
NEAR_WHY = (
    "The range is in a network of hosts. Other machines on that network may have addresses in the range: a pod may get"
    " the address of such a machine, or may not reach it."
)
NEAR_REMEDY = (
    "Compare the range with the addresses on the network of the hosts (ip address on the node). If they overlap, set"
    " ipam.exclude, or set ipam to a network of its own. If they do not overlap, waive this finding. Then run stage"
    " network again."
)

Known = tuple[Network, UsedNetwork]


@dataclasses.dataclass(frozen=True)
class Hosts:
    """The facts of the nodes about the networks of their interfaces.

    :ivar platforms: observed platform of each node
    :ivar hcas: HCAs of each node that reported them
    """

    platforms: typing.Mapping[str, ObservedPlatform]
    hcas: typing.Mapping[str, NodeHcas] = dataclasses.field(default_factory=dict)


def list_host_networks(fabric: Fabric, pool: typing.Union[Pool, Blocks], hosts: typing.Optional[Hosts]) -> list[Known]:
    """Return what the hosts use of the range of a fabric. On an interface of the fabric itself, these are the addresses
    of the host that a pod may get. On another interface, it is the network of the interface, because pods send traffic
    for it into the fabric. Both have the kind ``host``. Networks of which no address is known have the kind
    ``near_host``.

    :param pool: addresses that the fabric gives to pods
    :param hosts: facts of the nodes; None if they are not compared
    """
    found: list[Known] = []
    for node, platform in _list_read(hosts):
        near = [(network, item) for network, item in _list_networks(platform) if is_overlapping(network, pool.network)]
        if not near or hosts is None:
            continue
        own = _list_own_interfaces(fabric, hosts.hcas.get(node))
        known = [ipaddress.ip_address(text) for text in platform.addresses or () if is_address(text)]
        for network, item in near:
            addresses = [address for address in known if address in network]
            inside = [str(address) for address in addresses if address in pool.network]
            owner, is_own = f"{item.interface} of {node}", item.interface in own
            if is_own and addresses:
                given = [text for text in inside if pool.spans(text) and not pool.excludes(text)]
                found += [_make("host", ipaddress.ip_network(text), owner, node) for text in given]
            elif not is_own and (inside or _is_within(network, pool.network)):
                found.append(_make("host", network, owner, node))
            else:
                found.append(_make("near_host", network, owner, ""))
    return found


def check_read(fabrics: typing.Sequence[Fabric], hosts: typing.Optional[Hosts]) -> list[Finding]:
    """Return a finding of status ``unknown`` if the networks of hosts were not read. The result is empty without a
    fabric whose pods get addresses.

    :param fabrics: fabrics with an ipam mapping
    :param hosts: facts of the nodes; None if they are not compared
    """
    read = {
        node
        for node, platform in _list_read(hosts)
        if platform.networks is not None and all(is_network(item.network) for item in platform.networks)
    }
    unread = sorted(set(hosts.platforms) - read) if hosts is not None and fabrics else []
    if not unread:
        return []
    why = (
        f"The networks of the interfaces of these nodes are unknown: {join_first(unread, _SHOWN)}. If one of them is in"
        " the range of a fabric, a pod may get the address of a host."
    )
    return [
        Finding(
            "network.address_overlap",
            "hosts",
            UNKNOWN,
            f"networks of {count_of(len(unread), 'node')} not read",
            "the networks of all hosts compared with ipam of the fabrics",
            why,
            f"Make /proc/net/route and /proc/net/ipv6_route readable on {join_first(unread, _SHOWN)}."
            f" {describe_rerun('network')}",
        )
    ]


def _list_read(hosts: typing.Optional[Hosts]) -> list[tuple[str, NodePlatform]]:
    return [
        (node, seen.value)
        for node, seen in (hosts.platforms.items() if hosts is not None else ())
        if seen.value is not None and seen.error is None
    ]


def _list_networks(platform: NodePlatform) -> typing.Iterator[tuple[Network, InterfaceNetwork]]:
    for item in platform.networks or ():
        if is_network(item.network):
            network = ipaddress.ip_network(item.network)
            if not any(is_overlapping(network, other) for other in _LINK_LOCAL):
                yield network, item


def _list_own_interfaces(fabric: Fabric, node: typing.Optional[NodeHcas]) -> set[str]:
    """Return the interfaces of a node over which the fabric may run: those of its HCAs, of their VFs, and of its bonds.

    :param node: HCAs of the node; None if they were not read
    """
    own = set(fabric.select.netdev)
    if node is None:
        return own
    chosen = find_candidates(fabric, node)
    names = {hca.name for hca in chosen}
    functions = {hca.pci.address for hca in chosen if hca.pci is not None}
    bonds = own if may_use_bonds(fabric) else set()
    for hca in node.hcas:
        whole = hca.name in names or hca.physical_function in functions
        own |= {netdev.name for netdev in hca.all_netdevs if whole or netdev.bond in bonds}
    return own


def _make(kind: typing.Literal["host", "near_host"], network: Network, owner: str, node: str) -> Known:
    return network, UsedNetwork(kind, str(network), owner, node=node)


def _is_within(network: Network, other: Network) -> bool:
    return network.prefixlen >= other.prefixlen and network.network_address in other
