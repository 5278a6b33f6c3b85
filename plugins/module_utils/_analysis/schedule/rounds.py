# SPDX-License-Identifier: GPL-3.0-or-later

"""Divide pairs of items into rounds. In a round each item has at most one partner, and over all rounds each item meets
every other item once.
"""

from __future__ import annotations

import collections
import typing

Item = typing.TypeVar("Item")


def iterate_rounds(
    items: typing.Sequence[Item], most: typing.Optional[int] = None
) -> typing.Iterator[tuple[tuple[Item, Item], ...]]:
    """Yield rounds in which each item has one partner, by the circle method, so that each pair occurs once. For N items
    there are N - 1 rounds if N is even. There are N rounds if N is odd, and in each of them one item has no partner.

    The first item remains at its position, and all other items move around it by one position in each round. Items at
    opposite positions are partners. The order within the pairs alternates, so that no item is always the first of its
    pairs.

    :param items: items without duplicates
    :param most: maximum number of rounds; None for all. Fewer rounds are selected evenly from all of them, because the
        partners of an item in consecutive rounds are neighbors, and nodes with neighboring names are often on one leaf
    """
    if len(items) < 2:
        return
    first: typing.Optional[Item] = items[0]
    circle: list[typing.Optional[Item]] = list(items[1:])
    if len(circle) % 2 == 0:
        circle.append(None)
    size = len(circle) + 1
    count = size - 1 if most is None else min(most, size - 1)
    for number in (index * (size - 1) // count for index in range(count)):
        places = [first, *circle[size - 1 - number :], *circle[: size - 1 - number]]
        pairs = []
        for place in range(size // 2):
            left, right = places[place], places[size - 1 - place]
            if left is not None and right is not None:
                pairs.append((left, right) if (number + place) % 2 == 0 else (right, left))
        yield tuple(pairs)


def order_by_rate(items: typing.Sequence[Item], rates: typing.Mapping[Item, float]) -> list[Item]:
    """Return the items in an order in which the first round of ``iterate_rounds`` pairs items of equal rate, as far as
    there are such pairs. The first round is part of any number of rounds. Items of one rate, or of unknown rates, stay
    in their order.

    :param items: items without duplicates
    :param rates: rate of each item, as far as it is known
    """
    groups: dict[typing.Optional[float], list[Item]] = {}
    for item in items:
        groups.setdefault(rates.get(item), []).append(item)
    if len(groups) < 2:
        return list(items)
    left: list[Item] = []
    right: list[Item] = []
    alone: list[Item] = []
    for group in groups.values():
        half = len(group) // 2
        left += group[:half]
        right += reversed(group[len(group) - half :])
        alone += group[half : len(group) - half]
    if len(alone) % 2:
        # with an odd number of items, the first one has no partner in the first round
        left.insert(0, alone.pop(0))
    middle = len(alone) // 2
    return [*left, *alone[:middle], *reversed(alone[middle:]), *reversed(right)]


def turn_pairs(
    rounds: typing.Iterable[typing.Sequence[tuple[Item, Item]]],
) -> typing.Iterator[tuple[tuple[Item, Item], ...]]:
    """Yield the rounds with the pairs turned so that each item is about as often the first of its pairs as the second.
    In all rounds of three or more items, each item is both at least once.

    :param rounds: pairs of items, by round. No item is in two pairs of a round
    """
    lead: collections.Counter[Item] = collections.Counter()
    for pairs in rounds:
        turned = [(one, other) if lead[one] <= lead[other] else (other, one) for one, other in pairs]
        for first, second in turned:
            lead[first] += 1
            lead[second] -= 1
        yield tuple(turned)
