# SPDX-License-Identifier: GPL-3.0-or-later

"""The proposal of ``pods`` of a fabric: requests of the measuring pods that fit the smallest node."""

from __future__ import annotations

import typing

from ..._analysis.measurement.pod_room import Kind, amount_of, fit_request, format_amount, free_of, parse_request
from ..._model.intent.intent import Pods
from ..._model.intent.proposal import Entry, Section, Value
from ..._model.kubernetes.controller import NodeRoom
from .groups import HcaGroup

_KINDS: tuple[tuple[Kind, str], ...] = (("cpu", "CPU"), ("memory", "memory"))


def propose_pods_section(
    group: HcaGroup, rooms: typing.Optional[typing.Iterable[NodeRoom]]
) -> typing.Optional[Section]:
    """Return the section with those requests whose default does not fit the smallest node of the fabric. Return None if
    the defaults fit, if no usable request fits, or if the room of no node is known.

    Pods count that stay on a node, as those of DaemonSets do: jobs end before a run measures.

    :param group: HCAs of the fabric
    :param rooms: CPU and memory of the nodes of the cluster; None if they could not be read
    """
    usual = Pods()
    each = parse_request(usual.cpu, usual.memory, "pods")
    entries: list[tuple[str, Entry]] = []
    for kind, noun in _KINDS:
        known = [
            (free, room)
            for room in rooms or ()
            if room.node in group.members and (free := free_of(room, kind, True, moving=False)) is not None
        ]
        if not known:
            continue
        free, smallest = min(known, key=lambda item: (item[0], item[1].node))
        if free >= group.per_node * amount_of(each, kind):
            continue
        fits = fit_request(free, group.per_node, kind)
        if fits:
            why = (
                f"{smallest.node} has {format_amount(max(0, free), kind)} {noun} for {group.per_node} pods at the same"
                f" time; the default {format_amount(amount_of(each, kind), kind)} for each does not fit"
            )
            entries.append((kind, Value(fits, why)))
    return Section(tuple(entries), "requests of the measuring pods that fit each node") if entries else None
