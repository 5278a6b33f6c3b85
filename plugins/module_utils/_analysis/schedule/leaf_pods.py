# SPDX-License-Identifier: GPL-3.0-or-later

"""Group the leaves of a fat tree into pods."""

from __future__ import annotations

import typing


def group_leaves(above: typing.Mapping[str, typing.AbstractSet[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the pods, each as the GUIDs of its leaves. Leaves that share a switch one level above, directly or through
    other leaves, form one pod.

    :param above: GUIDs of the switches next to each leaf, by the GUID of the leaf
    """
    result: list[tuple[str, ...]] = []
    below: dict[str, list[str]] = {}
    for leaf, switches in above.items():
        for switch in switches:
            below.setdefault(switch, []).append(leaf)
    seen: set[str] = set()
    for first in above:
        if first in seen:
            continue
        pod, todo = [], [first]
        seen.add(first)
        while todo:
            leaf = todo.pop()
            pod.append(leaf)
            near = {other for switch in above[leaf] for other in below[switch]} | (above[leaf] & above.keys())
            todo += sorted(near - seen)
            seen |= near
        here = set(pod)
        result.append(tuple(leaf for leaf in above if leaf in here))
    return tuple(result)
