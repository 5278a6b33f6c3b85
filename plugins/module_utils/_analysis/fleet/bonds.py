# SPDX-License-Identifier: GPL-3.0-or-later

"""Bonds as NICs. A network whose pods share an interface of the node stands on a bond, and never on an interface that a
bond is made of.

The kernel lets one owner take the packets of an interface, which is the bond, and refuses the second.
[src Linux net/core/dev.c netdev_rx_handler_register: EBUSY]
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits, is_infiniband
from ..._model.node.hca import Hca, Netdev, NodeHcas


def stands_on_bonds(fabric: Fabric) -> bool:
    """Tell whether the pods of a fabric share one interface of the node, which may be a bond."""
    return find_traits(fabric).shared and not is_infiniband(fabric)


def list_usable_names(fabric: Fabric, hca: Hca) -> tuple[str, ...]:
    """Return the names by which a fabric may select an HCA: of its interfaces, and of a bond instead of those that are
    a part of it."""
    if not stands_on_bonds(fabric):
        return hca.names
    of_bonds = [netdev.bond or netdev.name for netdev in hca.netdevs]
    return tuple(dict.fromkeys((*of_bonds, *(hca.held.names if hca.held else ()))))


def join_bonds(fabric: Fabric, hcas: typing.Sequence[Hca]) -> tuple[Hca, ...]:
    """Return these HCAs with one for each bond: that with the RDMA device, else the first."""
    if not stands_on_bonds(fabric):
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
    """Return the parts of each bond of a node that the fabric stands on, by its name."""
    found: dict[str, list[tuple[Hca, Netdev]]] = {}
    for hca in node.hcas if stands_on_bonds(fabric) else ():
        for netdev in hca.netdevs:
            if netdev.bond and netdev.bond in fabric.select.netdev:
                found.setdefault(netdev.bond, []).append((hca, netdev))
    return found


def find_bond(node: NodeHcas, bond: str) -> typing.Optional[Netdev]:
    """Return the part of a bond that speaks for it, one that is up where there is one: the bond is up then, and has the
    MTU of its parts."""
    parts = [netdev for hca in node.hcas for netdev in hca.netdevs if netdev.bond == bond]
    return next((netdev for netdev in parts if netdev.state == "up"), parts[0] if parts else None)


def explain_parts(fabric: Fabric, node: NodeHcas) -> typing.Optional[tuple[str, str]]:
    """Return cause and remedy where the fabric selects an interface that a bond is made of; None where it does not."""
    if not stands_on_bonds(fabric):
        return None
    for hca in node.hcas:
        for netdev in hca.netdevs:
            if netdev.bond and netdev.name in fabric.select.netdev:
                why = (
                    f"{netdev.name} is a part of the bond {netdev.bond}, which takes all of its packets: the kernel"
                    " refuses a second owner (EBUSY)."
                )
                return why, f"Name the bond in select.netdev of the fabric '{fabric.name}': {netdev.bond}."
    return None
