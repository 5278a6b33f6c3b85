# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the links of a fabric: cables that are pulled or swapped, links with fewer lanes, and leaves without
uplinks.
"""

from __future__ import annotations

import functools
import re
import typing

from dev.steps import StepError

from ..fault import Target
from ..processes import wait_until
from .fault import await_state, clear_counters, find_fabric, find_hca, is_active, is_listed, read_port
from .plane import FabricPlane
from .port import PortState
from .topology import Link, Node, Topology

#: until a port that was told its width is told again, in seconds
TOLD_LIMIT = 3.0

# LinkWidthEnabled: one lane, and one or four
ONE_LANE, ALL_LANES = "1", "3"
_NEIGHBOUR = re.compile(r"^Guid:\.+0x([0-9a-f]+)$", re.MULTILINE)


def cut_link(plane: FabricPlane, target: Target) -> str:
    """Take down the link of an HCA, and wait until the subnet manager has lost the HCA."""
    item, node = find_hca(plane, target)
    if read_port(plane, item, node).state != 1:
        plane.console(item, f'Unlink "{node.id}"[1]')
    await_state(f"the port of {node.description} is down", lambda: read_port(plane, item, node).state == 1)
    await_state(
        f"the subnet manager has seen it: {node.description} is no longer in its list",
        lambda: not is_listed(plane, item, node),
    )
    return f"{node.description}: the link is down"


def restore_link(plane: FabricPlane, target: Target) -> str:
    """Bring the link of an HCA up again, and wait until it is active."""
    item, node = find_hca(plane, target)
    if read_port(plane, item, node).state == 1:
        plane.console(item, f'ReLink "{node.id}"[1]')
    await_state(f"the port of {node.description} is active", lambda: read_port(plane, item, node).active)
    await_state(f"{node.description} is in the subnet manager's list", lambda: is_listed(plane, item, node))
    clear_counters(plane, item)
    return f"{node.description}: the link is active, LID {read_port(plane, item, node).lid}"


def _cable(item: Topology, node: Node) -> Link:
    """The cable of an HCA as the description has it."""
    return next(link for link in item.links if link.peer == node)


def _pull(plane: FabricPlane, item: Topology, node: Node) -> None:
    plane.console(item, f'Unlink "{node.id}"[1]')


def _plug(plane: FabricPlane, item: Topology, node: Node, place: Link) -> None:
    """Put an HCA's cable into the port of a leaf that another link of the description has, or its own."""
    plane.console(item, f'Link "{node.id}"[1] "{place.switch.id}"[{place.port}]')


def _wait_linked(plane: FabricPlane, item: Topology, nodes: typing.Sequence[Node]) -> None:
    for node in nodes:
        await_state(f"the port of {node.description} is active", functools.partial(is_active, plane, item, node))
        await_state(
            f"{node.description} is in the subnet manager's list", functools.partial(is_listed, plane, item, node)
        )


def _is_at(plane: FabricPlane, item: Topology, node: Node, leaf: Node) -> bool:
    """Is that switch at the other end of the HCA's cable? Asked from there: one hop out of port 1."""
    found = _NEIGHBOUR.search(plane.run(item, node, "smpquery", "--Direct", "nodeinfo", "0,1").stdout)
    return found is not None and int(found[1], 16) == leaf.guid


def _neighbours(plane: FabricPlane, target: Target) -> tuple[Topology, Node, Node]:
    """The HCA, and the next of its host on the same fabric."""
    item, node = find_hca(plane, target)
    names = [hca.name for hca in plane.fabrics.hcas_on(item.fabric.name)]
    if len(names) < 2:
        raise StepError(
            f"{target.device} is the only HCA on {item.fabric.name}", "use an HCA of a fabric with two rails or more"
        )
    return item, node, item.hca(target.worker, names[(names.index(target.device) + 1) % len(names)])


def swap_cables(plane: FabricPlane, target: Target) -> str:
    """Put an HCA and the next one of its host at each other's leaf."""
    item, one, other = _neighbours(plane, target)
    first, second = _cable(item, one), _cable(item, other)
    _cross(plane, item, {one: second, other: first})
    return (
        f"{one.description} is at {second.switch.description} port {second.port}, {other.description} at"
        f" {first.switch.description} port {first.port}"
    )


def restore_cables(plane: FabricPlane, target: Target) -> str:
    """Put an HCA and the next one of its host at their own leaves."""
    item, one, other = _neighbours(plane, target)
    _cross(plane, item, {one: _cable(item, one), other: _cable(item, other)})
    clear_counters(plane, item)
    return f"{one.description} and {other.description} are at their own leaves"


def _cross(plane: FabricPlane, item: Topology, places: typing.Mapping[Node, Link]) -> None:
    if not all(_is_at(plane, item, node, place.switch) for node, place in places.items()):
        for node in places:
            _pull(plane, item, node)
        for node, place in places.items():
            _plug(plane, item, node, place)
    for node, place in places.items():
        await_state(
            f"{node.description} is at {place.switch.description}",
            functools.partial(_is_at, plane, item, node, place.switch),
        )
    _wait_linked(plane, item, list(places))


def _set_width(plane: FabricPlane, target: Target, enabled: str, width: str) -> tuple[Node, PortState]:
    """Allow both ends of the HCA's cable so many lanes; of ibsim's ports the one that was told last decides for
    both."""
    item, node = find_hca(plane, target)
    place = _cable(item, node)

    def right() -> bool:
        return f"({width}X " in read_port(plane, item, node).rate

    def set_both_ends() -> bool:
        for lid, number in ((place.switch.lid, place.port), (node.lid, 1)):
            plane.run(item, item.managers[-1], "ibportstate", str(lid), str(number), "width", enabled)
        return wait_until(right, TOLD_LIMIT)

    # twice, and each time until it stays: a subnet manager in the middle of a sweep writes back what it has read before
    for _round in range(2):
        await_state(f"the link of {node.description} has {width} lanes", lambda: right() or set_both_ends())
        _wait_linked(plane, item, [node])
    return node, read_port(plane, item, node)


def narrow_link(plane: FabricPlane, target: Target) -> str:
    """Leave one lane to the link of an HCA."""
    node, state = _set_width(plane, target, ONE_LANE, "1")
    return f"{node.description}: three of four lanes are dead, {state.rate}"


def widen_link(plane: FabricPlane, target: Target) -> str:
    """Give all lanes to the link of an HCA."""
    node, state = _set_width(plane, target, ALL_LANES, "4")
    clear_counters(plane, find_hca(plane, target)[0])
    return f"{node.description}: {state.rate}"


def _leaf(plane: FabricPlane, target: Target) -> tuple[Topology, Node, list[Link], list[Node]]:
    """A leaf, its uplinks, and the HCAs at it."""
    item = find_fabric(plane, target)
    if not 1 <= target.leaf <= item.fabric.leaves:
        raise StepError(f"{item.fabric.name} has no leaf {target.leaf}", f"use 1 to {item.fabric.leaves}")
    leaf = item.switches[target.leaf - 1]
    links = [link for link in item.links if link.switch == leaf]
    hcas = [link.peer for link in links if link.peer.kind == "hca"]
    if set(hcas) & set(item.managers):
        raise StepError(
            f"a subnet manager's server is at leaf {target.leaf}: the rest would be cut off from it",
            "use a leaf between the first and the last",
        )
    return item, leaf, [link for link in links if link.peer.kind == "switch"], hcas


def cut_leaf(plane: FabricPlane, target: Target) -> str:
    """Take down all uplinks of a leaf, and wait until the subnet manager has lost its HCAs."""
    item, leaf, uplinks, hcas = _leaf(plane, target)
    for link in uplinks:
        plane.console(item, f'Unlink "{leaf.id}"[{link.port}]')
    for node in hcas:
        await_state(f"the subnet manager has lost {node.description}", functools.partial(_lost, plane, item, node))
    return (
        f"{leaf.description}: all {len(uplinks)} uplinks are down; cut off are"
        f" {', '.join(node.description for node in hcas)}"
    )


def restore_leaf(plane: FabricPlane, target: Target) -> str:
    """Bring all uplinks of a leaf up again, and wait until its HCAs are active."""
    item, leaf, uplinks, hcas = _leaf(plane, target)
    for link in uplinks:
        plane.console(item, f'ReLink "{leaf.id}"[{link.port}]')
    _wait_linked(plane, item, hcas)
    clear_counters(plane, item)
    return f"{leaf.description}: all {len(uplinks)} uplinks are active"


def _lost(plane: FabricPlane, item: Topology, node: Node) -> bool:
    return not is_listed(plane, item, node)
