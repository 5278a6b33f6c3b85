# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes whose own network is on NVIDIA's NICs, before the driver of these NICs is loaded or removed. Pure.

The driver container of NVIDIA's network operator unloads mlx5_core, and all interfaces of its NICs vanish. Afterwards
it restores only the basic IP settings of physical functions, no VLAN, bond or bridge. When the container ends, its
release and RESTORE_DRIVER_ON_POD_TERMINATION decide whether it unloads its driver again.
[Mellanox/network-operator-docs docs/release-notes.rst, docs/advanced/doca-drivers.rst]
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import DriverAction, NodePlan
from ..._model.run.findings import FAIL, Finding
from ..fleet.nics_in_use import describe_use, is_network

#: use of the NICs with this driver by each node itself, by node and by network interface; a node whose default routes
#: are unknown is left out. None if nothing is known of the nodes
DriverUses = typing.Optional[typing.Mapping[str, typing.Mapping[str, str]]]
CHECK = "network.lint_uplink"
#: interfaces that are named
_NAMED = 10
_UNKNOWN = "the default route of the node is unknown, and may lead over a NIC whose driver changes"
_EXPECTED = "no default route, address or bond of the node on a NIC whose driver changes"


def list_driver_uses(node: str, uses: DriverUses) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples of texts: the uses of NICs that the node needs to stay reachable, which only a waiver permits
    to lose; and its other or unknown uses. Both are empty if ``uses`` is None.

    :param node: name of the node
    :param uses: for each node, what it uses a NIC with this driver for, by interface or PCI address. A node whose uses
        are unknown is absent. None if the driver of no NIC changes
    """
    if uses is None:
        return (), ()
    if node not in uses:
        return (), (_UNKNOWN,)
    texts = {f"{name} {describe_use(use)}": is_network(use) for name, use in sorted(uses[node].items())}
    return tuple(text for text in texts if not texts[text]), tuple(text for text in texts if texts[text])


def add_driver_uses(planned: NodePlan, action: DriverAction, uses: DriverUses) -> NodePlan:
    """Return the plan of a node whose driver is loaded or removed, with the uses of its NICs by the node itself added.
    For any other action the plan is returned unchanged.

    :param action: change that the operator makes to the driver, such as ``load`` or ``remove``
    :param uses: for each node, what it uses a NIC with this driver for, by interface or PCI address; None if the driver
        of no NIC changes
    """
    if action not in ("load", "remove"):
        return planned
    held, doubts = list_driver_uses(planned.node, uses)
    return dataclasses.replace(
        planned,
        uplinks=held,
        loses_link=planned.loses_link or bool(held),
        doubts=tuple(dict.fromkeys((*planned.doubts, *doubts))),
    )


def list_held_drivers(nodes: typing.Iterable[NodePlan]) -> list[Finding]:
    """Return a failed finding for each node whose own network is on a NIC whose driver changes. A waiver may cover it.

    :param nodes: plans of the nodes
    """
    return [_report_held(node) for node in nodes if node.uplinks]


def _report_held(node: NodePlan) -> Finding:
    why = (
        "NVIDIA's network operator unloads mlx5_core on this node, and all interfaces of its NICs vanish. It does not"
        " restore VLANs, bonds and bridges. The node may then reach neither the API server nor the registry, until its"
        " network configuration makes the interfaces again."
    )
    if node.driver == "remove":
        why += " If the driver is removed, this happens on all nodes at the same time, and without a drain."
    remedy = (
        "Move the default route, the address or the bond of the node to a NIC with another driver, or restore the value"
        " of rdma_cluster.network_operator.ofed_driver. If the loss of the link is acceptable, add a waiver for"
        f" {CHECK} with this subject to rdma_waivers, and get access to the console of the node. Then run stage"
        " network again."
    )
    measured = join_first(node.uplinks, _NAMED)
    return Finding(CHECK, f"ofed_driver {node.node}", FAIL, measured, _EXPECTED, why, remedy)
