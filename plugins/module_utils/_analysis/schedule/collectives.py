# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes run a collective together, from one node up to all, each step only with nodes that the steps before have
proven; and how many tests that is.

Each step adds one thing. One node: its inside, no network. Two nodes of a leaf, rail by rail at the same time
(NCCL_TESTS_SPLIT): an HCA of each on each rail, and one switch. A leaf: all its ports at once. One node of each leaf:
the links between switches. All. Who is slow in a group that is, halving.py finds.
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
    """A name in the place of a leaf, of nodes whose leaf is not known."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class CollectiveGroup:
    """Nodes that run one test together, over all rails."""

    kind: Kind
    nodes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class CollectiveStep:
    """Rounds of groups; no node is in two groups of a round."""

    kind: Kind
    rounds: tuple[tuple[CollectiveGroup, ...], ...]


@dataclasses.dataclass(frozen=True)
class Announcement:
    """The number of tests, announced before any of them has run.

    :ivar tests: of each step, where all is proven
    :ivar rounds: in which these run
    :ivar for_a_fault: tests more that a slow port takes at most
    """

    tests: dict[Kind, int]
    rounds: int
    for_a_fault: int


#: changes of a repeat that asks for the latency, and of one that goes on for long
SMALL, SOAK = "small_messages", "soak"


@dataclasses.dataclass(frozen=True)
class Repeat:
    """A group once more, with one thing changed: of a slow one to find the cause, of a fast pair its messages.

    :ivar change: its name
    """

    group: CollectiveGroup
    change: str

    @property
    def kind(self) -> Kind:
        """Return the kind of the group."""
        return self.group.kind

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the nodes of the group."""
        return self.group.nodes


Test = typing.Union[CollectiveGroup, RailTrial, Repeat]


def group_by_leaves(places: typing.Mapping[str, typing.Mapping[int, str]]) -> dict[str, tuple[str, ...]]:
    """Group nodes by the leaves that they are on: in a fabric optimised for rails those of one scalable unit share a
    leaf for each rail.

    :param places: leaf by rail, of each node
    :raises ValueError: a node without a leaf
    """
    found: dict[str, list[str]] = {}
    for node, leaves in places.items():
        if not leaves or not all(leaves.values()):
            raise ValueError(f"the leaf of {node} is not known on each of its rails")
        found.setdefault(" + ".join(dict.fromkeys(leaves[rail] for rail in sorted(leaves))), []).append(node)
    return {leaf: tuple(nodes) for leaf, nodes in found.items()}


def plan_steps(leaves: Leaves, gpus: int = 2) -> tuple[CollectiveStep, ...]:
    """Return the steps, from the inside to the outside. One that would be the same as another is left out.

    :param leaves: nodes by leaf, each of one leaf. Those of an :class:`UnknownLeaf` take no part in the steps by leaves
    :param gpus: of a node. One alone sends nothing, so that of several nodes there is no step of one
    :raises ValueError: a node of two leaves
    """
    nodes = tuple(node for members in leaves.values() for node in members)
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node is of one leaf alone")
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
    """Return the leaves with the nodes whose leaf is not known at the largest one: alone at a leaf, a slow port could
    not be told from its uplink."""
    known = {leaf: tuple(nodes) for leaf, nodes in leaves.items() if not isinstance(leaf, UnknownLeaf)}
    if not known:
        return {leaf: tuple(nodes) for leaf, nodes in leaves.items()}
    largest = max(known, key=lambda leaf: len(known[leaf]))
    known[largest] += tuple(node for leaf, nodes in leaves.items() if isinstance(leaf, UnknownLeaf) for node in nodes)
    return known


def without_overlap(groups: typing.Iterable[CollectiveGroup]) -> list[list[CollectiveGroup]]:
    """Return groups in rounds, in each of which no node is in two groups."""
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
    """Turns of pairs in which each node is once at least: neighbours of a leaf, then the one that is left over with the
    first of its leaf.

    A node that is alone at its leaf has no partner there, and goes with another one that is alone; the last of these
    with any other.
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


def announce(leaves: Leaves, rails: int, gpus: int = 2) -> Announcement:
    """Count the tests before any of them has run.

    :param gpus: of a node
    """
    steps = plan_steps(leaves, gpus)
    nodes = sum(map(len, leaves.values()))
    tests = {step.kind: sum(map(len, step.rounds)) for step in steps}
    return Announcement(tests, sum(len(step.rounds) for step in steps), count_most_tests(nodes, len(leaves), rails, 1))


class Climb:
    """Gives the tests of a round and takes their results: step by step, and within a step that is slow the halving of
    who is slow in it.

    A step ends with its slow groups again, without those that were named: what is slow then, twice, is slow only with
    all rails at the same time.
    """

    def __init__(self, leaves: Leaves, rails: typing.Sequence[int], gpus: int = 2) -> None:
        """:param leaves: nodes by leaf
        :param rails: of each node
        :param gpus: of each node
        :raises ValueError: a node of two leaves, or no rail
        """
        if not rails:
            raise ValueError("a collective over the network needs a rail")
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
        """Name the steps of which nothing is proven, of a climb that has ended."""
        return tuple(kind for kind in self._kinds if kind not in self.proven)

    def next(self) -> tuple[Test, ...]:
        """Return the tests of the next round, which run at the same time; none when all is done."""
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
        """Take what a round told.

        :param results: whether a test is proven and as fast as it must be; None, or left out, where it is not proven or
            gave no figure
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
        """Begin the next step with those that the steps before have proven. A rail that is slow everywhere ends the
        climb: each group uses it."""
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
        """Halve the slow groups of a step; the inside of a node has no halves."""
        if self._again or self._step is None or self._step.kind == "one node":
            self._confirm()
            return
        suspects = dict.fromkeys(node for turn in self._slow for group in turn for node in group.nodes)
        self._halving = Halving(
            self._joined, self._rails, tuple(suspects), dict.fromkeys(self._rails, tuple(self._fast))
        )

    def _end_halving(self, named: Named) -> None:
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
        self._confirm()

    def _confirm(self) -> None:
        """Run the slow groups again, without those that are left out."""
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
