# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the nodes that run a collective together, from one node up to all, and count these tests. Each step uses only
nodes that passed the steps before it.

Each step adds parts of the fabric to those that passed before. One node tests the inside of the node, without a
network. Two nodes of a leaf, rail by rail at the same time (NCCL_TESTS_SPLIT), add an HCA of each node on each rail,
and one switch. A leaf adds all of its ports at once. One node of each leaf adds the links between switches. The last
step uses all nodes. halving.py finds the slow members of a slow group.
"""

from __future__ import annotations

import dataclasses
import typing

from .halving import Halving, Named, RailTrial, count_most_tests

#: times that a group runs again, which is slow with all rails and of which nothing was named. Of 1,024 nodes there are
#: 1,600 groups: two slow tests of one of them are chance
AGAIN = 2

Kind = typing.Literal["one node", "two nodes", "a leaf", "across leaves", "all"]
Leaves = typing.Mapping[str, typing.Sequence[str]]


class UnknownLeaf(str):
    """The name of a placeholder leaf, for nodes whose leaf is unknown."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class CollectiveGroup:
    """The nodes that run one test of a collective together, over all rails.

    :ivar kind: step of the sequence to which the group belongs
    :ivar nodes: names of the nodes
    """

    kind: Kind
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CollectiveStep:
    """The groups of one step, in rounds whose groups are tested at the same time. No node is in two groups of the same
    round.

    :ivar kind: name of the step
    :ivar rounds: rounds of groups
    """

    kind: Kind
    rounds: tuple[tuple[CollectiveGroup, ...], ...]


@dataclasses.dataclass(frozen=True)
class Announcement:
    """The number of tests, computed before any of them runs.

    :ivar tests: number of tests of each step, if all of them pass
    :ivar rounds: number of rounds in which these tests run
    :ivar for_a_fault: maximum number of additional tests for one slow port
    """

    tests: dict[Kind, int]
    rounds: int
    for_a_fault: int


#: changes of a repeat that asks for the latency, and of one that goes on for long
SMALL, SOAK = "small_messages", "soak"


@dataclasses.dataclass(frozen=True)
class Repeat:
    """A repetition of a group's test with one change. A slow group is repeated to find the cause, and a fast pair of
    nodes with other message sizes.

    :ivar group: nodes and kind of the test that is repeated
    :ivar change: name of the setting that differs from the first test
    """

    group: CollectiveGroup
    change: str

    @property
    def kind(self) -> Kind:
        """Return the kind of the repeated test."""
        return self.group.kind

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes of the repeated test."""
        return self.group.nodes


Test = typing.Union[CollectiveGroup, RailTrial, Repeat]


def group_by_leaves(places: typing.Mapping[str, typing.Mapping[int, str]]) -> dict[str, tuple[str, ...]]:
    """Return the names of the nodes by the leaves to which they are connected. The key is the name of the leaf, or the
    names of several leaves in the order of the rails, joined with `` + ``. In a rail-optimized fabric the nodes of one
    scalable unit share a leaf for each rail, and thus have the same key.

    :param places: leaf by rail, of each node
    :raises ValueError: the leaf of a node is unknown on one of its rails
    """
    found: dict[str, list[str]] = {}
    for node, leaves in places.items():
        if not leaves or not all(leaves.values()):
            raise ValueError(f"the leaf of {node} is unknown on at least one of its rails")
        found.setdefault(" + ".join(dict.fromkeys(leaves[rail] for rail in sorted(leaves))), []).append(node)
    return {leaf: tuple(nodes) for leaf, nodes in found.items()}


def plan_steps(leaves: Leaves, gpus: int = 2) -> tuple[CollectiveStep, ...]:
    """Return the steps, from one node up to all. A step that would repeat another one is left out.

    :param leaves: nodes by leaf; each node has one leaf. Nodes of an :class:`UnknownLeaf` take no part in the steps by
        leaves
    :param gpus: number of GPUs of a node. A single GPU sends no data, so that the step of one node is left out if there
        are several nodes
    :raises ValueError: a node has two leaves
    """
    nodes = tuple(node for members in leaves.values() for node in members)
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node must belong to exactly one leaf")
    known = [tuple(members) for leaf, members in leaves.items() if not isinstance(leaf, UnknownLeaf)]
    several = [members for members in known if len(members) > 1]
    rows = [
        tuple(members[place] for members in known if place < len(members))
        for place in range(max(map(len, known), default=0))
    ]
    across = [row for row in rows if len(row) > 1]
    steps = [
        _build_step("one node", [[(node,) for node in nodes if gpus > 1 or len(nodes) < 2]]),
        _build_step("two nodes", _list_pairs(leaves)),
        _build_step("a leaf", [[members for members in several if len(members) > 2 and len(members) < len(nodes)]]),
        _build_step("across leaves", [[row for row in across if len(row) < len(nodes)]]),
        _build_step("all", [[nodes] if len(nodes) > 2 else []]),
    ]
    return tuple(step for step in steps if step.rounds)


def join_unknown(leaves: Leaves) -> dict[str, tuple[str, ...]]:
    """Return the leaves, with the nodes whose leaf is unknown added to the largest one. On a leaf of its own, a slow
    port of such a node could not be distinguished from the uplink.

    :param leaves: nodes by leaf
    """
    known = {leaf: tuple(nodes) for leaf, nodes in leaves.items() if not isinstance(leaf, UnknownLeaf)}
    if not known:
        return {leaf: tuple(nodes) for leaf, nodes in leaves.items()}
    largest = max(known, key=lambda leaf: len(known[leaf]))
    known[largest] += tuple(node for leaf, nodes in leaves.items() if isinstance(leaf, UnknownLeaf) for node in nodes)
    return known


def without_overlap(groups: typing.Iterable[CollectiveGroup]) -> list[list[CollectiveGroup]]:
    """Distribute the groups over rounds, and return the rounds. No node is in two groups of the same round.

    :param groups: groups of one step
    """
    rounds: list[list[CollectiveGroup]] = []
    for group in groups:
        busy = ({node for other in turn for node in other.nodes} for turn in rounds)
        free = next((place for place, nodes in enumerate(busy) if nodes.isdisjoint(group.nodes)), len(rounds))
        if free == len(rounds):
            rounds.append([])
        rounds[free].append(group)
    return rounds


def _build_step(kind: Kind, turns: typing.Iterable[typing.Iterable[tuple[str, ...]]]) -> CollectiveStep:
    rounds = (tuple(CollectiveGroup(kind, nodes) for nodes in turn) for turn in turns)
    return CollectiveStep(kind, tuple(turn for turn in rounds if turn))


def _list_pairs(leaves: Leaves) -> list[list[tuple[str, ...]]]:
    """Return rounds of pairs that contain each node at least once. First come neighbors on a leaf, then pairs of a node
    without a partner and the first node of its leaf.

    A node that is alone on its leaf is paired with another such node. The last of an odd number of them is paired with
    a node of another leaf.

    :param leaves: nodes by leaf
    """
    turns: list[list[tuple[str, ...]]] = [[], [], []]
    alone = [members[0] for members in leaves.values() if len(members) == 1]
    for members in (*(nodes for nodes in leaves.values() if len(nodes) > 1), alone):
        turns[0] += [(members[place], members[place + 1]) for place in range(0, len(members) - 1, 2)]
        if len(members) % 2 and len(members) > 1:
            turns[1].append((members[-1], members[0]))
    others = [members[0] for members in leaves.values() if len(members) > 1]
    if len(alone) == 1 and others:
        # a turn of its own, as that other one may be in both turns before
        turns[2].append((alone[0], others[0]))
    return turns


def count_planned_tests(leaves: Leaves, rails: int, gpus: int = 2) -> Announcement:
    """Count the tests of a collective before any of them runs.

    :param leaves: nodes by leaf
    :param rails: number of rails
    :param gpus: number of GPUs of a node
    """
    steps = plan_steps(leaves, gpus)
    nodes = sum(map(len, leaves.values()))
    tests = {step.kind: sum(map(len, step.rounds)) for step in steps}
    return Announcement(tests, sum(len(step.rounds) for step in steps), count_most_tests(nodes, len(leaves), rails, 1))


class CollectiveTests:
    """The sequence of the tests of a collective, from one node up to all. ``next`` returns the tests of each round, and
    ``take`` evaluates their results. If a step is slow, its slow groups are halved to find their slow members.

    At the end of a step its slow groups run again, without the members that were found to be slow. If a group is still
    slow after all repetitions, it is slow only with all rails at the same time.
    """

    def __init__(self, leaves: Leaves, rails: typing.Sequence[int], gpus: int = 2) -> None:
        """Plan the steps of the tests for these nodes.

        :param leaves: names of the nodes by leaf
        :param rails: numbers of the rails that each node has
        :param gpus: number of GPUs of each node
        :raises ValueError: a node has two leaves, or there is no rail
        """
        if not rails:
            raise ValueError("a collective over the network needs at least one rail")
        self._leaves, self._rails = {leaf: tuple(nodes) for leaf, nodes in leaves.items()}, tuple(rails)
        #: for the halving
        self._joined = join_unknown(leaves)
        self._gpus = gpus
        self._kinds = [step.kind for step in plan_steps(leaves, gpus)]
        #: by step what is slow in it, rail by rail
        self.named: dict[Kind, Named] = {}
        #: groups that are slow although each rail alone is fast; of one node its inside
        self.together: list[CollectiveGroup] = []
        #: nodes that take part no more, with the step that did not prove them
        self.left_out: dict[str, Kind] = {}
        #: steps of which a group was fast, for those that are not left out
        self.proven: list[Kind] = []
        self._step: typing.Optional[CollectiveStep] = None
        self._turns: list[tuple[CollectiveGroup, ...]] = []
        self._slow: list[tuple[CollectiveGroup, ...]] = []
        self._fast: dict[str, None] = {}
        #: times that the slow groups of this step ran again
        self._again = 0
        self._halving: typing.Optional[Halving] = None

    @property
    def unproven(self) -> tuple[Kind, ...]:
        """Return the names of the steps in which no group passed. Call this only after all tests."""
        return tuple(kind for kind in self._kinds if kind not in self.proven)

    def next(self) -> tuple[Test, ...]:
        """Return the tests of the next round, which run at the same time. The result is empty if all tests are done."""
        while True:
            if self._halving is not None:
                trials = self._halving.next()
                if trials:
                    return trials
                self._end_halving(self._halving.named())
            elif self._turns:
                return self._turns[0]
            elif self._slow:
                self._look_closer()
            elif not self._begin_step():
                return ()

    def take(self, results: typing.Mapping[Test, typing.Optional[bool]]) -> None:
        """Evaluate the results of the tests that ``next`` returned last, and plan the following tests.

        :param results: True if a test was valid and fast enough, False if it was not fast enough; None, or missing, if
            it gave no valid figure
        """
        if self._halving is not None:
            self._halving.take({test: result for test, result in results.items() if isinstance(test, RailTrial)})
            return
        turn = self._turns.pop(0)
        self._fast.update(dict.fromkeys(node for group in turn if results.get(group) for node in group.nodes))
        slow = tuple(group for group in turn if not results.get(group))
        if self._again == AGAIN:
            self.together += slow
            self._leave_out(node for group in slow for node in group.nodes)
        elif slow:
            self._slow.append(slow)

    def _begin_step(self) -> bool:
        """Begin the next step with the nodes that passed the steps before it, and return whether there is one. A rail
        that is slow between all nodes ends the tests, because each group uses it.
        """
        if self._step is not None and self._fast:
            self.proven.append(self._step.kind)
        left = {
            leaf: tuple(node for node in nodes if node not in self.left_out) for leaf, nodes in self._leaves.items()
        }
        before = self._kinds.index(self._step.kind) + 1 if self._step is not None else 0
        stands = any(named.rails for named in self.named.values())
        coming = [
            step
            for step in plan_steps({leaf: nodes for leaf, nodes in left.items() if nodes}, self._gpus)
            if step.kind in self._kinds[before:] and not stands
        ]
        self._step = coming[0] if coming else None
        self._turns = list(coming[0].rounds) if coming else []
        self._fast, self._again = {}, 0
        return bool(coming)

    def _look_closer(self) -> None:
        """Begin the halving of the slow groups of a step, which searches their slow parts. If the groups have one node
        each or were tested again already, halving is not possible, so the groups are tested again instead.
        """
        if self._again or self._step is None or self._step.kind == "one node":
            self._schedule_confirmation()
            return
        suspects = dict.fromkeys(node for turn in self._slow for group in turn for node in group.nodes)
        self._halving = Halving(
            self._joined, self._rails, tuple(suspects), dict.fromkeys(self._rails, tuple(self._fast))
        )

    def _end_halving(self, named: Named) -> None:
        """End the search of a step: keep what it has named, leave these nodes out of the following steps, and schedule
        the run that confirms the result.

        :param named: nodes, ports, leaves and uplinks that the search has named
        """
        self._halving = None
        if named != Named() and self._step is not None:
            self.named[self._step.kind] = named
            hurt = {leaf for leaf, _rail in (*named.leaves, *named.uplinks)}
            self._leave_out(
                [
                    *named.nodes,
                    *(node for node, _rail in named.ports),
                    *(node for leaf in hurt for node in self._joined[leaf]),
                ]
            )
            self._leave_out(node for _rail, nodes in named.undecided for node in nodes)
        self._schedule_confirmation()

    def _schedule_confirmation(self) -> None:
        """Schedule the slow groups of the step again, without the nodes that were found to be slow."""
        self._again += 1
        turns = []
        for turn in self._slow:
            groups = (
                CollectiveGroup(group.kind, tuple(node for node in group.nodes if node not in self.left_out))
                for group in turn
            )
            turns.append(tuple(group for group in groups if len(group.nodes) > (group.kind != "one node")))
        self._slow = []
        # each group uses each rail
        self._turns = [] if any(named.rails for named in self.named.values()) else [turn for turn in turns if turn]

    def _leave_out(self, nodes: typing.Iterable[str]) -> None:
        if self._step is not None:
            self.left_out.update({node: self._step.kind for node in nodes if node not in self.left_out})
