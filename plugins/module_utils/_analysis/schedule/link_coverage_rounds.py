# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the first rounds of the measurement of a fabric. Together they use every link on a path between its HCAs, in
both directions.

The first round pairs ends (HCAs) inside of each leaf. The last link to a host carries only the traffic to that host, so
that no test between leaves can distinguish its cable from the port of a spine. The next rounds pair each leaf with
another leaf of its pod, and each pod with another one. Where the links between leaves are unknown, a leaf without a
partner gets one of the other leaves, and on Ethernet each leaf exchanges data with each other leaf: a pair of leaves
without a path has no other sign. If rails share spines, a round pairs the rails of each host: it
needs no partner, and if a rail has only one leaf, no other test uses the uplinks of that leaf. The next rounds cover
the remaining links one by one. The last rounds pair the ends that only met slower ends with ends of their own rate.

A round consists of turns in both directions of its pairs. In a turn, an end sends or receives once, and no link is used
twice in one direction, because two tests on the same link would both be slow.
"""

from __future__ import annotations

import dataclasses
import typing

from .equal_rates import pair_slowed_ends, split_by_rate
from .leaf_rounds import MOST_FLOWS, pair_each_leaf, pair_lonely_leaves
from .paths import PathTable, Way

#: source and target
Test = tuple[int, int]
Turn = tuple[Test, ...]
#: pairings of leaves that are tried for the one that covers most
_TRIES = 8
#: ways to one link that are looked at
_LOOKS = 64
#: rounds that only cover what is left, at most
_MOST_ROUNDS = 8


@dataclasses.dataclass(frozen=True)
class Round:
    """The pairs that are measured in one round.

    :ivar why: purpose of the round, as text
    :ivar turns: turns of the round, one after the other. The tests of a turn run at the same time
    """

    why: str
    turns: tuple[Turn, ...]

    @property
    def tests(self) -> tuple[Test, ...]:
        """Return the tests of all turns of the round."""
        return tuple(test for turn in self.turns for test in turn)


@dataclasses.dataclass(frozen=True)
class Cover:
    """The rounds that together use each link of a fabric, as far as tests can.

    :ivar rounds: the rounds, in order
    :ivar covered: link directions that the rounds use, as indices in ``PathTable.directions``
    """

    rounds: tuple[Round, ...]
    covered: frozenset[int]

    @property
    def tests(self) -> int:
        """Return the number of tests of all rounds."""
        return sum(len(item.tests) for item in self.rounds)

    @property
    def turns(self) -> int:
        """Return the number of turns of all rounds."""
        return sum(len(item.turns) for item in self.rounds)


class OccupiedLinks:
    """The ends and the link directions that the tests of one turn already use, so that no further test of the turn may
    use them.
    """

    def __init__(self, ways: PathTable) -> None:
        self._ways = ways
        self._ends: set[int] = set()
        self._links: set[int] = set()
        self._crossed: set[tuple[str, bool]] = set()
        self.tests: list[Test] = []

    def free(self, end: int) -> bool:
        """Return whether no test of the turn uses an end.

        :param end: number of the end
        """
        return end not in self._ends

    def fits(self, test: Test, way: Way) -> bool:
        """Return whether a test can run in the turn: its ends, its links and its crossings of leaves are not in use.

        :param way: links of the test
        """
        free = self.free(test[0]) and self.free(test[1]) and not any(link in self._links for link in way)
        return free and not any(place in self._crossed for place in self._iterate_leaf_crossings(way))

    def add(self, test: Test, way: Way) -> None:
        """Add a test to the turn, and mark its ends and links as in use.

        :param way: links of the test
        """
        self._ends.update(test)
        # of what stands for many links nobody knows how many flows share one
        self._links.update(link for link in way if not self._ways.directions[link].between)
        self._crossed.update(self._iterate_leaf_crossings(way))
        self.tests.append(test)

    def _iterate_leaf_crossings(self, way: Way) -> typing.Iterator[tuple[str, bool]]:
        """Yield a pair for each leaf that a flow leaves or enters on its way: the GUID of the leaf, and False if the
        flow leaves it or True if it enters it. Within a turn only one flow may leave a leaf, and only one may enter it,
        because the switches may send two flows over the same link by their hash. The result is empty if the link of
        each flow is known.

        :param way: link directions on the path of the flow, as indices in ``PathTable.directions``
        """
        for link in way if self._ways.hashed else ():
            direction = self._ways.directions[link]
            if direction.between:
                yield direction.source, False
                yield direction.target, True


def cover_links(ways: PathTable, own_rates: typing.Optional[typing.Mapping[tuple[int, str], float]] = None) -> Cover:
    """Plan the first rounds of a fabric, which together use each link in both directions, as far as tests can. Return
    the rounds with the link directions that they use. An end meets another end of at least its rate, if its rail has
    one.

    :param ways: paths between the ports
    :param own_rates: rates in Gb/s that the ends support, by rail and node; None if they do not count
    """
    known = own_rates or {}
    rates = {number: known[end.rail, end.node] for number, end in enumerate(ways.ends) if (end.rail, end.node) in known}
    groups = _find_rails(ways)
    covered: set[int] = set()
    rounds: list[Round] = []

    def add(why: str, pairs: typing.Sequence[Test]) -> None:
        """Add a round with those pairs that cover further links, if there are any.

        :param why: purpose of the round, in words
        """
        turns, new = _list_turns(ways, pairs, covered)
        if turns:
            rounds.append(Round(why, turns))
            covered.update(new)

    add(
        "inside each leaf",
        [pair for group in groups for leaf in _group_by_leaf(ways, group, None) for pair in split_by_rate(leaf, rates)],
    )
    inside = [_group_by_leaf(ways, group, pod) for group in groups for pod in ways.pods]
    whole = [_group_by_leaf(ways, group, None) for group in groups]
    several = len(ways.pods) > 1
    pairs = _choose_leaf_pairs(ways, inside, covered)
    add(
        "between the leaves of a pod" if several else "between leaves",
        [*pairs, *([] if several else pair_lonely_leaves(ways, whole, pairs))],
    )
    if several:
        # one pod's ends are here what those of a leaf are above: halves of the whole list lie in different pods
        further = _choose_leaf_pairs(ways, whole, covered)
        add("between pods", [*further, *pair_lonely_leaves(ways, whole, [*pairs, *further])])
    if ways.hashed:
        steps = pair_each_leaf(ways, whole, [test for item in rounds for test in item.tests])
        exchanged: list[Turn] = []
        for step in steps:
            own, new = _list_turns(ways, step, covered)
            exchanged += own
            covered.update(new)
        if exchanged:
            rounds.append(Round("each leaf with each other leaf", tuple(exchanged)))
    if ways.across and len(groups) > 1:
        add("between the rails of each host", _in_hosts(ways, covered))
    # where switches choose, a link between two of them is on no way that is known
    real = enumerate(ways.directions[: ways.real])
    wanted = [
        number for number, it in real if not (ways.spread and it.source in ways.switches and it.target in ways.switches)
    ]
    for _number in range(_MOST_ROUNDS):
        left = [link for link in wanted if link not in covered]
        turns = tuple(turn for turn in (_plan_uncovered_links(ways, left, covered) for _direction in range(2)) if turn)
        if not turns:
            break
        rounds.append(Round("links that no earlier round used", turns))
    for _number in range(_MOST_ROUNDS):
        slowed = pair_slowed_ends(ways, [test for item in rounds for test in item.tests], rates)
        if not slowed:
            break
        add("between ends of equal rate", slowed)
    return Cover(tuple(rounds), frozenset(covered))


def has_separate_rails(ways: PathTable) -> bool:
    """Return whether the rails of the fabric are separate: there are several rails that could be measured with each
    other, but no path leads from one rail of a host to another.

    :param ways: paths between the ports
    """
    hosts = _list_hosts(ways) if ways.across else []
    return any(len(ends) > 1 for ends in hosts) and not any(
        ways.may(ends[0], other) for ends in hosts for other in ends[1:]
    )


def _list_hosts(ways: PathTable) -> list[list[int]]:
    """Return the HCA ports of each host, as indices in ``PathTable.ends``, in the order of their rails.

    :param ways: paths between the ports
    """
    hosts: dict[str, list[int]] = {}
    for number in sorted(range(len(ways.ends)), key=lambda number: ways.ends[number].rail):
        hosts.setdefault(ways.ends[number].node, []).append(number)
    return list(hosts.values())


def _in_hosts(ways: PathTable, covered: typing.AbstractSet[int]) -> list[Test]:
    """Return pairs of rails of each host, by the same pattern on all hosts. The pattern uses the most links that are
    not covered yet, and among equal patterns it has the most pairs. Pairs inside of a leaf are left out, because they
    have been measured.

    :param ways: paths between the ports
    :param covered: indices in ``PathTable.directions`` of the link directions that tests use already
    """
    hosts = _list_hosts(ways)
    best: tuple[int, int, list[Test]] = (0, 0, [])
    for shift in range(min(_TRIES, max(len(ends) // 2 for ends in hosts))):
        halves = [pair for ends in hosts for pair in _split_halves(ends, shift)]
        pairs = [
            pair
            for pair in halves
            if ways.leaf(pair[0]) != ways.leaf(pair[1]) and ways.may(*pair) and ways.may(*pair[::-1])
        ]
        used = {link for one, other in pairs for test in ((one, other), (other, one)) for link in ways.way(*test) or ()}
        best = max(best, (len(used - covered), len(pairs), pairs), key=lambda item: item[:2])
    return best[2]


def _find_rails(ways: PathTable) -> list[list[int]]:
    rails: dict[int, list[int]] = {}
    for number, end in enumerate(ways.ends):
        rails.setdefault(end.rail, []).append(number)
    return [rails[rail] for rail in sorted(rails)]


def _group_by_leaf(
    ways: PathTable, group: typing.Sequence[int], pod: typing.Optional[typing.Sequence[str]]
) -> list[list[int]]:
    """Return the HCA ports of a group by leaf, for the leaves of a pod or for all leaves. Leaves without a port of the
    group are left out.

    :param ways: paths between the ports
    :param group: HCA ports, as indices in ``PathTable.ends``
    :param pod: names of the leaves of the pod; None for all leaves
    :returns: one list of ports for each leaf, as indices in ``PathTable.ends``
    """
    members = set(group)
    found = [[end for end in ways.leaves[leaf] if end in members] for leaf in (ways.leaves if pod is None else pod)]
    return [leaf for leaf in found if leaf]


def _split_halves(items: typing.Sequence[int], shift: int = 0) -> list[Test]:
    """Return pairs of the items of the first half with the items of the second half, which is rotated by ``shift``
    positions. The last of an odd number of items is left out.

    :param items: HCA ports or leaves, as indices
    :param shift: number of positions by which the second half is rotated
    """
    half = len(items) // 2
    return [(items[place], items[half + (place + shift) % half]) for place in range(half)]


def _choose_leaf_pairs(
    ways: PathTable, parts: typing.Sequence[typing.Sequence[typing.Sequence[int]]], covered: typing.AbstractSet[int]
) -> list[Test]:
    """Return pairs of ends on different leaves. For each part, the rotation is chosen that uses the most links that are
    not covered yet.

    :param ways: paths between the ports
    :param parts: ends of each leaf, for each part of the fabric that is paired separately
    :param covered: indices in ``PathTable.directions`` of the link directions that tests use already
    """
    result: list[Test] = []
    for leaves in parts:
        if len(leaves) < 2:
            continue
        best: tuple[int, list[Test]] = (-1, [])
        for turn in range(min(_TRIES, max(1, len(leaves) // 2))):
            pairs = _pair_ends_between_leaves(leaves, turn)
            used = {
                link for one, other in pairs for test in ((one, other), (other, one)) for link in ways.way(*test) or ()
            }
            best = max(best, (len(used - covered), pairs), key=lambda item: item[0])
        result += best[1]
    return result


def _pair_ends_between_leaves(leaves: typing.Sequence[typing.Sequence[int]], turn: int) -> list[Test]:
    """Return pairs of the ends of leaf i and leaf i + L/2, where L is the number of leaves, rotated by ``turn``
    positions. If a leaf is larger than its partner, its remaining ends are paired with the remaining ends of other
    leaves.

    :param leaves: HCA ports of each leaf, as indices in ``PathTable.ends``
    :param turn: number of positions by which the second half of the leaves is rotated
    """
    half = len(leaves) // 2
    pairs: list[Test] = []
    left: list[tuple[int, int]] = []
    for place in range(half):
        other = half + (place + turn) % half
        one_ends, other_ends = leaves[place], leaves[other]
        few = min(len(one_ends), len(other_ends))
        pairs += [(one_ends[index], other_ends[(index + place) % few]) for index in range(few)]
        left += [(place, end) for end in one_ends[few:]] + [(other, end) for end in other_ends[few:]]
    if len(leaves) % 2:
        left += [(len(leaves) - 1, end) for end in leaves[-1]]
    pairs += [(one, other) for (near, one), (far, other) in _pair_remaining_ends(left) if near != far]
    return pairs


def _pair_remaining_ends(left: list[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    half = len(left) // 2
    return [(left[place], left[half + place]) for place in range(half)]


def _list_turns(
    ways: PathTable, pairs: typing.Sequence[Test], covered: typing.AbstractSet[int]
) -> tuple[tuple[Turn, ...], set[int]]:
    """Return the turns for both directions of the pairs, and the directions of links that they newly cover.

    A test that shares a link or an end with another test of the turn is left out, and later rounds cover its links. If
    the links between leaves are unknown, the test gets a further turn instead, in which it shares no known link.

    :param ways: paths between the ports
    :param pairs: numbers of the two ends of each pair
    :param covered: indices in ``PathTable.directions`` of the link directions that tests use already
    """
    new: set[int] = set()
    turns = []
    for tests in (pairs, [(target, source) for source, target in pairs]):
        left = list(tests)
        for _turn in range(MOST_FLOWS if ways.spread else 1):
            taken = OccupiedLinks(ways)
            for test in left:
                way = ways.way(*test)
                if way is not None and taken.fits(test, way):
                    taken.add(test, way)
                    new.update(way)
            turns.append(tuple(taken.tests))
            done = set(taken.tests)
            left = [test for test in left if test not in done]
            if not done or not left:
                break
    return tuple(turn for turn in turns if turn), new - covered


def _plan_uncovered_links(ways: PathTable, left: typing.Sequence[int], covered: set[int]) -> Turn:
    """Return a turn of tests over links that are not covered yet, and add all links of these tests to ``covered``.

    :param ways: paths between the ports
    :param left: directions of links that no test has used yet, as indices in ``PathTable.directions``
    :param covered: directions that earlier tests use, as indices in ``PathTable.directions``; changed by this function
    """
    taken = OccupiedLinks(ways)
    for link in left:
        if link in covered:
            continue
        best: typing.Optional[tuple[int, Test, Way]] = None
        looks = 0
        for test in ways.over(link):
            if not (taken.free(test[0]) and taken.free(test[1]) and ways.may(*test)):
                continue
            way = ways.way(*test)
            if way is None or link not in way or not taken.fits(test, way):
                continue
            gain = sum(number not in covered for number in way)
            if best is None or gain > best[0]:
                best = (gain, test, way)
            looks += 1
            if looks >= _LOOKS:
                break
        if best is not None:
            taken.add(best[1], best[2])
            covered.update(best[2])
    return tuple(taken.tests)
