# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules for bonds (link aggregation), for networks whose pods share an interface of the node. Such a network uses the
bond itself, and never one of its member interfaces.

The kernel lets only one owner receive the packets of an interface. For an interface in a bond, that owner is the bond,
and a second one is refused. [src Linux net/core/dev.c netdev_rx_handler_register: EBUSY]
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import Hca, Netdev, NodeHcas


def may_use_bonds(fabric: Fabric) -> bool:
    """Return whether the network of a fabric can use a bond: its pods share an interface of the node, and it is not
    InfiniBand.
    """
    return find_traits(fabric).shared and not is_infiniband(fabric)


def list_usable_names(fabric: Fabric, hca: Hca) -> tuple[str, ...]:
    """Return the names by which a fabric may select an HCA: the names of its interfaces. If the network of the fabric
    can use a bond, the name of the bond replaces those of its member interfaces.
    """
    if not may_use_bonds(fabric):
        return hca.names
    of_bonds = [netdev.bond or netdev.name for netdev in hca.netdevs]
    return tuple(dict.fromkeys((*of_bonds, *(hca.held.names if hca.held else ()))))


def join_bonds(fabric: Fabric, hcas: typing.Sequence[Hca]) -> tuple[Hca, ...]:
    """Return the HCAs of a node with only one HCA for each bond that the fabric selects: one with an RDMA device if the
    bond has any, else the first.

    :param hcas: HCAs of the node
    """
    if not may_use_bonds(fabric):
        return tuple(hcas)
    chosen: dict[str, Hca] = {}
    for hca in hcas:
        key = next(
            (f"bond {netdev.bond}" for netdev in hca.netdevs if netdev.bond in fabric.select.netdev), f"HCA {hca.name}"
        )
        if key not in chosen or (hca.rdma_device and not chosen[key].rdma_device):
            chosen[key] = hca
    return tuple(chosen.values())


def list_parts(fabric: Fabric, node: NodeHcas) -> dict[str, list[tuple[Hca, Netdev]]]:
    """Return the member interfaces of each bond of a node that the fabric selects, by the name of the bond. Each
    interface is returned with its HCA.
    """
    found: dict[str, list[tuple[Hca, Netdev]]] = {}
    for hca in node.hcas if may_use_bonds(fabric) else ():
        for netdev in hca.netdevs:
            if netdev.bond and netdev.bond in fabric.select.netdev:
                found.setdefault(netdev.bond, []).append((hca, netdev))
    return found


def count_links(fabric: Fabric, node: NodeHcas, hca: Hca) -> int:
    """Return the number of links of the bond that an HCA represents, or 1 if the fabric does not select its bond. The
    RDMA device of a bond spreads its queue pairs over the links of the bond.

    :param node: HCAs of the node
    """
    parts = list_parts(fabric, node)
    return max((len(parts.get(netdev.bond or "", ())) for netdev in hca.netdevs), default=0) or 1


def list_other_parts(fabric: Fabric, node: NodeHcas, hca: Hca) -> list[Hca]:
    """Return the other functions of the bond that an HCA represents, each once. The list is empty if the fabric does
    not select its bond.

    :param node: HCAs of the node
    """
    own, parts = {netdev.bond for netdev in hca.netdevs}, list_parts(fabric, node)
    others = [part for bond, of_bond in parts.items() if bond in own for part, _netdev in of_bond]
    return list({part.name: part for part in others if part.name != hca.name}.values())


def find_bond(node: NodeHcas, bond: str) -> typing.Optional[Netdev]:
    """Return the member interface that represents a bond: one that is up, else the first. Return None if the node has
    no such bond. The state and the MTU of this interface are used as those of the bond.

    :param bond: name of the bond
    """
    parts = [netdev for hca in node.hcas for netdev in hca.netdevs if netdev.bond == bond]
    return next((netdev for netdev in parts if netdev.state == "up"), parts[0] if parts else None)


def explain_parts(fabric: Fabric, node: NodeHcas) -> typing.Optional[tuple[str, str]]:
    """Return the cause and the remedy if the fabric selects a member interface of a bond instead of the bond. Return
    None if it does not.
    """
    if not may_use_bonds(fabric):
        return None
    for hca in node.hcas:
        for netdev in hca.netdevs:
            if netdev.bond and netdev.name in fabric.select.netdev:
                why = (
                    f"{netdev.name} is part of the bond {netdev.bond}, which receives all of its packets. The kernel"
                    " rejects a second owner of the interface (EBUSY)."
                )
                return why, f"Set select.netdev of the fabric '{fabric.name}' to the bond: {netdev.bond}."
    return None
