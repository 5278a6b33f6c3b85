# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of disjoint pairs: in a round everybody has one partner at most, over all rounds everybody meets everybody
once."""

from __future__ import annotations

import typing

Item = typing.TypeVar("Item")


def rounds(
    items: typing.Sequence[Item], most: typing.Optional[int] = None
) -> typing.Iterator[tuple[tuple[Item, Item], ...]]:
    """Yield the rounds of the circle method: N - 1 for an even number of items, N for an odd one, where one item rests
    in each round.

    The first item stays, the others move by one place a round around it; partners face each other. Who starts a pair
    alternates, so that nobody is always the first of its pairs.

    :param items: all different
    :param most: at most so many rounds; None means all. The rounds taken lie evenly among all of them: in rounds that
        follow each other the partners of an item are neighbours, and nodes that are neighbours by name hang on one leaf
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
