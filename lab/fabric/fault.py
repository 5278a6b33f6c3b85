# SPDX-License-Identifier: GPL-3.0-or-later

"""A fault of a fabric, and what the faults of all kinds share: the objects that they strike, and waits until they can
be seen.
"""

from __future__ import annotations

import dataclasses
import typing

from dev.steps import StepError

from ..fault import Target
from ..processes import wait_until
from .plane import FabricPlane
from .port import PortState
from .topology import Node, Topology

SEEN_LIMIT = 30.0


@dataclasses.dataclass(frozen=True)
class FabricFault:
    """A fault of a fabric, whose directions know of nothing but the fabrics.

    :param what: one line for the user
    :param uses: fields of the target that matter
    :param on: injects it and returns what is now so
    :param off: takes it back and returns what is now so
    """

    name: str
    what: str
    uses: tuple[str, ...]
    on: typing.Callable[[FabricPlane, Target], str]
    off: typing.Callable[[FabricPlane, Target], str]


def await_state(what: str, condition: typing.Callable[[], bool]) -> None:
    """Wait until a condition is true.

    :param what: the condition in words, for the error
    :raises StepError: it is not true after ``SEEN_LIMIT`` seconds
    """
    if not wait_until(condition, SEEN_LIMIT):
        raise StepError(
            f"after {SEEN_LIMIT:.0f} s it is still not so that {what}",
            "read the logs in .lab/log; 'make lab-down' and start the lab again",
        )


def find_hca(plane: FabricPlane, target: Target) -> tuple[Topology, Node]:
    """Return the HCA that a fault strikes, and its fabric."""
    item = plane.topologies[plane.fabrics.hca(target.device).fabric]
    return item, item.hca(target.worker, target.device)


def find_fabric(plane: FabricPlane, target: Target) -> Topology:
    """Return the fabric that a fault strikes."""
    return plane.topologies[plane.fabrics.fabric(target.fabric).name]


def read_port(plane: FabricPlane, item: Topology, node: Node) -> PortState:
    """Return the state of the port of an HCA."""
    return plane.port_states(item, [node])[node]


def is_active(plane: FabricPlane, item: Topology, node: Node) -> bool:
    """Return whether the port of an HCA is active."""
    return read_port(plane, item, node).active


def clear_counters(plane: FabricPlane, item: Topology) -> None:
    """Clear the error counters that a fault has increased."""

    def clean() -> bool:
        plane.clear_errors(item)
        return plane.run(item, item.managers[-1], "ibqueryerrors").returncode == 0

    await_state(f"{item.fabric.name} has no errors counted", clean)


def is_listed(plane: FabricPlane, item: Topology, node: Node) -> bool:
    """Does subnet administration know the port? (NodeRecord of its LID)"""
    return node.description in plane.run(item, item.managers[-1], "saquery", "NR", str(node.lid)).stdout
