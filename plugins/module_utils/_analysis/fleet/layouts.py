# SPDX-License-Identifier: GPL-3.0-or-later

"""Group servers with their HCAs in the same PCIe slots, which are servers of one model. The order of the slots
determines the rails only within a model, since another model is wired in another order.
"""

from __future__ import annotations

import collections
import typing

from ..._model.node.hca import Hca

#: HCAs of each node
HcasByNode = typing.Mapping[str, typing.Sequence[Hca]]


def group_families(seats: typing.Mapping[str, typing.AbstractSet[str]]) -> dict[str, tuple[str, ...]]:
    """Return groups of nodes with the same layout of HCAs, by the first node of each group. A node that lacks an HCA
    belongs to the most frequent layout that contains all of its HCAs.

    A layout that is more frequent than every larger layout that contains it is complete by itself. The nodes with an
    additional HCA are then the exception.

    :param seats: PCI addresses of the HCAs of each node
    """
    count = collections.Counter(frozenset(addresses) for addresses in seats.values())
    largest = sorted(count, key=lambda item: (-len(item), -count[item], sorted(item)))
    kept: list[frozenset[str]] = []
    owner: dict[frozenset[str], frozenset[str]] = {}
    for layout in largest:
        wider = [other for other in kept if layout <= other and count[other] >= count[layout]]
        owner[layout] = max(wider, key=lambda item: (count[item], sorted(item))) if wider else layout
        kept += [] if wider else [layout]
    nodes: dict[frozenset[str], list[str]] = {}
    for name, addresses in seats.items():
        nodes.setdefault(owner[frozenset(addresses)], []).append(name)
    return {names[0]: tuple(names) for names in nodes.values()}


def number_rails(members: HcasByNode, possible: HcasByNode, count: int) -> dict[tuple[str, str], int]:
    """Return the rail of each member, by node and name of the HCA.

    Nodes of one layout have their HCAs at the same PCI addresses. A missing HCA then leaves a gap and does not shift
    the rails of the HCAs after it. Across layouts the names of the RDMA devices determine the order if all nodes use
    the same small set of names, as udev rules provide it. Otherwise the PCI addresses do.

    :param members: HCAs on the fabric, by node
    :param possible: members and further HCAs that may be on the fabric because their ports are down or were not read,
        by node
    :param count: number of HCAs that a node should have on the fabric
    """
    every = tuple(members)
    if _find_shared_hca_names(address_of, every, members, count):
        return _of_group(every, members, possible, count, {})
    named = bool(_find_shared_hca_names(_get_rdma_device, every, members, count))
    result = {}
    for group in group_families({name: {address_of(hca) for hca in possible[name]} for name in members}).values():
        result.update(_of_group(group, members, possible, count, _collect_devices(group, possible) if named else {}))
    return result


def _of_group(
    group: typing.Sequence[str],
    members: HcasByNode,
    possible: HcasByNode,
    count: int,
    devices: typing.Mapping[str, str],
) -> dict[tuple[str, str], int]:
    """Return the rail of each member of a group of nodes with the same layout, by node and name of the HCA.

    :param group: names of the nodes
    :param members: HCAs on the fabric, by node
    :param possible: HCAs that are or may be on the fabric, by node
    :param count: number of HCAs that a node should have on the fabric
    :param devices: device names by PCI address, which determine the order of the addresses; empty to sort by address
    """
    # names that may belong to it count where they are not too many: one that is down on all nodes leaves its gap, too
    drawn = _find_shared_hca_names(address_of, group, possible, count) or _find_shared_hca_names(
        address_of, group, members, count
    )
    order = sorted(drawn, key=lambda address: (len(devices.get(address, "")), devices.get(address, ""), address))
    result = {}
    for node in group:
        seats = sorted(members[node], key=lambda hca: (address_of(hca), _get_rdma_device(hca)))
        result.update(
            {(node, hca.name): order.index(address_of(hca)) if order else place for place, hca in enumerate(seats)}
        )
    return result


def _find_shared_hca_names(
    key: typing.Callable[[Hca], str], group: typing.Sequence[str], seats: HcasByNode, count: int
) -> set[str]:
    """Return the names of all HCAs of a group of nodes, if they form a small common set. Return an empty set if there
    are more than ``count`` names, if a name occurs twice on a node, or if an HCA has no name.

    :param key: function that returns the name of an HCA: its PCI address or its RDMA device
    :param group: names of the nodes
    :param seats: HCAs by node
    :param count: largest number of different names
    """
    names = [[key(hca) for hca in seats[node]] for node in group]
    together = {name for node in names for name in node}
    tells = "" not in together and len(together) <= count and all(len(set(node)) == len(node) for node in names)
    return together if tells else set()


def _collect_devices(group: typing.Sequence[str], seats: HcasByNode) -> dict[str, str]:
    """Return the RDMA device at each PCI address. The result is empty if two nodes have different devices at an
    address, because a missing HCA shifts the numbers that the kernel assigns.

    :param group: names of the nodes
    :param seats: HCAs by node
    """
    found = {(address_of(hca), _get_rdma_device(hca)) for node in group for hca in seats[node]}
    return dict(found) if len({address for address, _name in found}) == len(found) else {}


def address_of(hca: Hca) -> str:
    """Return the PCI address of an HCA; empty if it has none."""
    return hca.pci.address if hca.pci else ""


def _get_rdma_device(hca: Hca) -> str:
    return hca.rdma_device or ""
