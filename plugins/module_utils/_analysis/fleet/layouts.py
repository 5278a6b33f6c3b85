# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers of one model, told by where their HCAs sit. The order of the slots tells rails within a model only: another
one is wired in another order."""

from __future__ import annotations

import collections
import typing

from ..._model.node.hca import Hca

#: HCAs of each node
Seats = typing.Mapping[str, typing.Sequence[Hca]]


def group_families(seats: typing.Mapping[str, typing.AbstractSet[str]]) -> dict[str, tuple[str, ...]]:
    """Return the nodes of one layout, the first of them as its name. One that lacks an HCA belongs to the most frequent
    layout that has all of its others.

    A layout that more nodes have lacks nothing: who has one more is the odd one.

    :param seats: the PCI addresses of each node
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


def number_rails(members: Seats, possible: Seats, count: int) -> dict[tuple[str, str], int]:
    """Return the rail of each member, by node and name of the HCA.

    Nodes of one layout have their HCAs at the same PCI addresses: then a missing one leaves a gap, and does not shift
    the others. Across layouts the names of the RDMA devices count where all nodes draw from the same ones, as udev's
    rules give them; else the order of the addresses.

    :param members: the HCAs on the fabric
    :param possible: these, and those that may be on it: their ports are down, or were not asked
    :param count: HCAs that a node should have on the fabric
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
    group: typing.Sequence[str], members: Seats, possible: Seats, count: int, devices: typing.Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """:param devices: names to order the addresses by; empty for their own order"""
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
    key: typing.Callable[[Hca], str], group: typing.Sequence[str], seats: Seats, count: int
) -> set[str]:
    """Return the few names that all nodes draw from, each at most once a node; none where they are more than the HCAs
    of a node."""
    names = [[key(hca) for hca in seats[node]] for node in group]
    together = {name for node in names for name in node}
    tells = "" not in together and len(together) <= count and all(len(set(node)) == len(node) for node in names)
    return together if tells else set()


def _collect_devices(group: typing.Sequence[str], seats: Seats) -> dict[str, str]:
    """Return the RDMA device at each address; nothing where nodes differ, as a missing HCA shifts the kernel's
    numbers."""
    found = {(address_of(hca), _get_rdma_device(hca)) for node in group for hca in seats[node]}
    return dict(found) if len({address for address, _name in found}) == len(found) else {}


def address_of(hca: Hca) -> str:
    """Return its PCI address; empty without one."""
    return hca.pci.address if hca.pci else ""


def _get_rdma_device(hca: Hca) -> str:
    return hca.rdma_device or ""
