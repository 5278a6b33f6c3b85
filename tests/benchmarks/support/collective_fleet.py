# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated fleet that runs collectives, and two schemes that search it for what is slow: the climb of stage
collectives, and groups of nodes that are halved as ADR-055 of NVIDIA/cluster-readiness-engine describes."""

from __future__ import annotations

import dataclasses
import math
import random
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import CollectiveTests, Test
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.halving import RailTrial
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.floor import (
    Shape,
    compute_bandwidth_floor,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.judge import (
    CollectiveFigure,
    judge_inside,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL

#: Gb/s that stage bandwidth measured of each rail, and GB/s inside of a node [NVIDIA/nccl issue 2409, NVIDIA/nccl-tests
#: issue 212]
RAIL_GBPS, INSIDE_GBS = 392.0, 480.0
#: of the bound that a sound test reaches: the published runs of docs/collectives.md that the formula explains
SOUND = (0.93, 0.99)
#: of its rate that a slow part gives
SLOW = (0.25, 0.8)
#: kind, and names of what is slow: a port and an uplink have a rail
Fault = tuple[typing.Literal["port", "node", "inside", "uplink"], str, int]
#: rail of a fault that is none of a rail
NO_RAIL = -1


@dataclasses.dataclass
class CollectiveFleet:
    """Nodes on leaves, and the figures of their collectives.

    :ivar slow: share of its rate that each slow part gives
    :ivar chance: draws the share that a sound test reaches
    :ivar noise: share of the tests that are slow without a fault
    :ivar tests: made so far
    """

    leaves: dict[str, tuple[str, ...]]
    rails: int
    slow: dict[Fault, float]
    chance: random.Random
    noise: float = 0.0
    tests: int = 0

    def __post_init__(self) -> None:
        self.leaf_of = {node: leaf for leaf, nodes in self.leaves.items() for node in nodes}

    def measure(self, nodes: typing.Sequence[str], rails: typing.Sequence[int]) -> float:
        """Run a group once; return its bus bandwidth in GB/s.

        :param rails: that it uses at once. A group of one node uses none
        """
        return self._figure(nodes, rails) * self._begin()

    def _begin(self) -> float:
        """Count a test; return the share of its figure that noise leaves."""
        self.tests += 1
        return self.chance.uniform(*SLOW) if self.chance.random() < self.noise else 1.0

    def _figure(self, nodes: typing.Sequence[str], rails: typing.Sequence[int]) -> float:
        """Return the bus bandwidth without noise: all rails wait for the slowest of them."""
        leaves = {self.leaf_of[node] for node in nodes}
        rate = min((self._rate(nodes, leaves, rail) for rail in rails), default=1.0) * len(rails) * RAIL_GBPS / 8
        inside = min(self.slow.get(("inside", node, NO_RAIL), 1.0) for node in nodes) * INSIDE_GBS
        bound = inside if len(nodes) < 2 else min(rate, inside) if len(rails) > 1 else rate
        return bound * self.chance.uniform(*SOUND)

    def _rate(self, nodes: typing.Sequence[str], leaves: set[str], rail: int) -> float:
        """Return the share of a rail's rate that the slowest of a group's parts gives."""
        ports = (
            self.slow.get(("port", node, rail), 1.0) * self.slow.get(("node", node, NO_RAIL), 1.0) for node in nodes
        )
        uplinks = (self.slow.get(("uplink", leaf, rail), 1.0) for leaf in leaves) if len(leaves) > 1 else ()
        return min(*ports, *uplinks)

    def passes(self, nodes: typing.Sequence[str], rails: typing.Sequence[int]) -> bool:
        """Run a group of several nodes over some rails at once; return whether it reaches the floor of the stage."""
        return self.measure(nodes, rails) >= _floor(len(nodes), len(rails))

    def passes_rail_by_rail(self, nodes: typing.Sequence[str]) -> bool:
        """Run each rail of a group alone, all at the same time: one test, of which the slowest rail counts."""
        noise = self._begin()
        return all(self._figure(nodes, (rail,)) * noise >= _floor(len(nodes), 1) for rail in range(self.rails))


def _floor(nodes: int, rails: int) -> float:
    floor = compute_bandwidth_floor("all_reduce", Shape(nodes, rails), [RAIL_GBPS] * rails, "ring")
    assert floor is not None
    return floor.floor_gbs


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a scheme made of a fleet.

    :ivar found: faults that it names
    :ivar wrong: names that have no fault
    :ivar undecided: groups of which it says that nothing could be told
    """

    tests: int
    rounds: int
    found: int
    wrong: int
    undecided: int = 0


def climb(fleet: CollectiveFleet) -> Outcome:
    """Run the steps of stage collectives, with its own floors, until there are no more tests."""
    made, rounds = CollectiveTests(fleet.leaves, range(fleet.rails), fleet.rails), 0
    alone: dict[str, CollectiveFigure] = {}
    while tests := made.next():
        rounds += 1
        alone.update(
            {
                test.nodes[0]: CollectiveFigure(1 << 33, fleet.measure(test.nodes, ()))
                for test in tests
                if len(test.nodes) == 1
            }
        )
        inside = {item.subject for item in judge_inside(alone) if item.status == FAIL}
        made.take({test: _passes(fleet, test, inside) for test in tests})
    named: set[Fault] = {
        ("inside", node, NO_RAIL) for group in made.together if group.kind == "one node" for node in group.nodes
    }
    wrong = sum(group.kind != "one node" for group in made.together)
    undecided = 0
    for item in made.named.values():
        named |= {("node", node, NO_RAIL) for node in item.nodes}
        named |= {("port", node, rail) for node, rail in item.ports}
        named |= {("uplink", leaf, rail) for leaf, rail in item.uplinks}
        wrong += len(item.leaves) + len(item.rails)
        undecided += len(item.undecided)
    found = named & fleet.slow.keys()
    return Outcome(fleet.tests, rounds, len(found), wrong + len(named - found), undecided)


def _passes(fleet: CollectiveFleet, test: Test, slow_inside: set[str]) -> bool:
    if len(test.nodes) == 1:
        return test.nodes[0] not in slow_inside
    if isinstance(test, RailTrial):
        return fleet.passes(test.nodes, (test.rail,))
    if test.kind == "two nodes":
        return fleet.passes_rail_by_rail(test.nodes)
    return fleet.passes(test.nodes, range(fleet.rails))


def halve_nodes(fleet: CollectiveFleet) -> Outcome:
    """Search as ``testScale: diagnose`` does: each domain twice, with and without NVLink between nodes, one node of
    each, slow groups halved down to two nodes, and each of these once more with a sound one.

    In its favour: its threshold is the floor of this fleet, and its domains are the leaves.
    """
    rails = range(fleet.rails)
    turns = [{leaf: fleet.passes(nodes, rails) for leaf, nodes in fleet.leaves.items()} for _way in range(2)]
    sound_leaves = [leaf for leaf in fleet.leaves if all(turn[leaf] for turn in turns)]
    healthy = [node for leaf in sound_leaves for node in fleet.leaves[leaf]]
    failed = [nodes for leaf, nodes in fleet.leaves.items() if leaf not in sound_leaves]
    rounds, ends = 2, tuple(fleet.leaves[leaf][0] for leaf in sound_leaves)
    if len(ends) > 1:
        rounds += 1
        if not fleet.passes(ends, rails):
            failed.append(ends)
            healthy = [node for node in healthy if node not in ends]
    suspects: list[str] = []
    while failed:
        small = [nodes for nodes in failed if len(nodes) <= 2]
        suspects += [node for nodes in small for node in nodes]
        halves = [half for nodes in failed if len(nodes) > 2 for half in _halve(nodes)]
        rounds += bool(halves)
        results = {half: fleet.passes(_pad(half, healthy), rails) for half in halves}
        failed = [half for half, passes in results.items() if not passes]
        healthy += [node for half, passes in results.items() if passes for node in half]
    beside = {node: healthy[place % len(healthy)] for place, node in enumerate(suspects) if healthy}
    confirmed = {node for node, other in beside.items() if not fleet.passes((node, other), rails)}
    found = {fault for fault in fleet.slow if fault[1] in confirmed}
    sound = confirmed - {name for _kind, name, _rail in fleet.slow}
    return Outcome(fleet.tests, rounds + bool(beside), len(found), len(sound))


def _halve(nodes: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    middle = math.ceil(len(nodes) / 2)
    return nodes[:middle], nodes[middle:]


def _pad(nodes: tuple[str, ...], healthy: typing.Sequence[str]) -> tuple[str, ...]:
    """Return a small group with a sound node beside it."""
    return (*nodes, healthy[0]) if len(nodes) <= 2 and healthy else nodes
