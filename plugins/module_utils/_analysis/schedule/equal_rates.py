# SPDX-License-Identifier: GPL-3.0-or-later

"""Pair HCAs of equal rate in the rounds that are planned by links. A pair shows only what its slower end carries."""

from __future__ import annotations

import itertools
import typing

from .leaf_rounds import may_both
from .paths import PathTable

#: partners of an end that are looked at
_LOOKS = 64
#: two ends
Pair = tuple[int, int]
#: rate in Gb/s that an end supports, by its index in ``PathTable.ends``, as far as it is known
Rates = typing.Mapping[int, float]


def split_by_rate(items: typing.Sequence[int], rates: Rates) -> list[Pair]:
    """Return pairs of the items of the first half with the items of the second half, as far as possible of equal rate.
    Of an odd number of items, one is left out.

    :param items: HCA ports, as indices in ``PathTable.ends``
    :param rates: rates of the items; items of unknown rate count as one rate
    """
    groups: dict[typing.Optional[float], list[int]] = {}
    for item in items:
        groups.setdefault(rates.get(item), []).append(item)
    pairs: list[Pair] = []
    alone: list[int] = []
    for group in groups.values():
        half = len(group) // 2
        pairs += zip(group[:half], group[half:])
        alone += group[2 * half :]
    half = len(alone) // 2
    return [*pairs, *zip(alone[:half], alone[half:])]


def pair_slowed_ends(ways: PathTable, tests: typing.Iterable[Pair], rates: Rates) -> list[Pair]:
    """Return pairs for the ends that only met slower ones: each with an end of the same rail that has at least its
    rate, or with the fastest one, if no other of these pairs needs that end. Partners on the same leaf come first,
    because their path has no link between leaves.

    :param ways: paths between the ports
    :param tests: tests of earlier rounds
    :param rates: rates of the ends
    """
    reached: dict[int, float] = {}
    for one, other in tests:
        least = min(rates.get(one, 0.0), rates.get(other, 0.0))
        for end in (one, other):
            reached[end] = max(reached.get(end, 0.0), least)
    rails: dict[int, list[int]] = {}
    for end in rates:
        rails.setdefault(ways.ends[end].rail, []).append(end)
    rails = {rail: sorted(ends, key=lambda end: -rates[end]) for rail, ends in rails.items()}
    goals = {end: _find_goal(end, rails[ways.ends[end].rail], rates) for end in reached if end in rates}
    # from the fastest down: it has the fewest partners
    slowed = sorted((end for end in goals if reached[end] < goals[end]), key=lambda end: (-goals[end], end))
    open_ends, used, pairs = set(slowed), set[int](), list[Pair]()
    for end in slowed:
        if end in used:
            continue
        rail = sorted(
            (
                other
                for other in rails[ways.ends[end].rail]
                if other != end and other not in used and rates[other] >= goals[end]
            ),
            key=lambda other: (ways.leaf(other) != ways.leaf(end), other not in open_ends, rates[other], other),
        )
        partner = next((other for other in itertools.islice(rail, _LOOKS) if may_both(ways, end, other)), None)
        if partner is not None:
            pairs.append((end, partner))
            used.update((end, partner))
    return pairs


def _find_goal(end: int, rail: typing.Sequence[int], rates: Rates) -> float:
    """Return the rate that the pairs of an end can show at best: its own rate, or that of the fastest other end.

    :param rail: ends of the rail, from the fastest down
    """
    best = next((rates[other] for other in rail[:2] if other != end), 0.0)
    return min(rates[end], best)
