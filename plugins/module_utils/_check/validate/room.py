# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that each node has enough free CPU and memory for the measuring pods, before a run changes anything. Check id:
``validate.room``.

The scheduler leaves a pod without room pending. Without this check only stage bandwidth reports it, after all stages
before it.
"""

from __future__ import annotations

import typing

from ..._analysis.measurement import pod_room
from ..._analysis.measurement.pod_room import Kind, Request
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.kubernetes.controller import ControllerFacts, NodeRoom
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .refusal import refuse_value

_CHECK = "validate.room"
_KINDS: tuple[tuple[Kind, str], ...] = (("cpu", "CPU"), ("memory", "memory"))
_EXPECTED = "free CPU and memory for the measuring pods on each node"
_LATER = "Stage bandwidth reports a measuring pod that finds no room, after all stages before it."


def check(
    intent: Intent,
    seen: typing.Optional[ControllerFacts],
    nodes: typing.Sequence[str],
    by_pods: typing.Collection[str],
) -> typing.Iterator[Finding]:
    """Yield a finding for each node that has too little free CPU or memory for the measuring pods, and one pass for all
    other nodes. It is a failure if the pods that stay on the node leave too little room, and a warning if only pods do
    that may end. Yield nothing if the API server was not queried.

    :param seen: answer of controller_info; None if it did not run
    :param nodes: names of the nodes of the run
    :param by_pods: names of the nodes that get an observer
    """
    requests, errors = pod_room.list_requests(intent)
    for text in errors:
        path = text.partition(": ")[0]
        why = "The API server would reject the pods with this request."
        remedy = f"Set {path} to a Kubernetes quantity, for example 2 or 500m for CPU, 1Gi or 512Mi for memory."
        yield refuse_value("room", path, text.partition(": ")[2], "a Kubernetes quantity", why, remedy)
    if seen is None or not seen.server or not nodes or not requests:
        return
    if seen.room is None:
        if seen.room_error:
            why = f"The nodes or their pods could not be read: {format_clause(seen.room_error)}. {_LATER}"
            remedy = "Run kubectl get nodes and kubectl get pods -A, and correct the error that they show."
            yield Finding(_CHECK, "nodes", WARN, "free CPU and memory not read", _EXPECTED, why, remedy)
        return
    rooms = {room.node: room for room in seen.room if room.node in nodes}
    found = [
        finding
        for kind, noun in _KINDS
        for finding in _check_kind(rooms, requests, kind, noun, frozenset(by_pods), "bandwidth" in seen.stages)
    ]
    yield from found
    unknown = [name for name in nodes if name not in rooms or None in (rooms[name].cpu, rooms[name].memory)]
    if unknown:
        why = f"The API server has no Node of this name, or its status has no valid allocatable CPU or memory. {_LATER}"
        remedy = f"Compare the names with kubectl get nodes, and the values with kubectl describe node {unknown[0]}."
        yield Finding(_CHECK, join_first(unknown, 4), WARN, "free CPU and memory not read", _EXPECTED, why, remedy)
    bad = {finding.subject for finding in found}
    good = [name for name in rooms if name not in bad and name not in unknown]
    if good:
        yield build_pass(_CHECK, count_of(len(good), "node"), "room for the measuring pods", _EXPECTED)


def _check_kind(
    rooms: typing.Mapping[str, NodeRoom],
    requests: typing.Sequence[Request],
    kind: Kind,
    noun: str,
    by_pods: typing.Container[str],
    needed: bool,
) -> typing.Iterator[Finding]:
    """Yield a finding for each node without room for the largest of the requests.

    :param rooms: room of each node
    :param noun: name of the resource in texts
    :param needed: whether this run creates the pods; otherwise a failure is only a warning
    """
    largest = max(requests, key=lambda item: item.pods * pod_room.amount_of(item.each, kind))
    each = pod_room.amount_of(largest.each, kind)
    need = largest.pods * each
    key = f"{largest.path}.{kind}"
    free = {name: pod_room.free_of(room, kind, name in by_pods) for name, room in rooms.items()}
    kept = {name: pod_room.free_of(room, kind, name in by_pods, moving=False) for name, room in rooms.items()}
    fits = pod_room.fit_request(
        min((value for value in free.values() if value is not None), default=0), largest.pods, kind
    )
    expected = (
        f"at least {pod_room.format_amount(need, kind)} {noun} free: {count_of(largest.pods, 'pod')} of stage"
        f" {largest.stage} with {pod_room.format_amount(each, kind)} each ({key})"
    )
    for name, room in rooms.items():
        now, always = free[name], kept[name]
        if now is None or always is None or now >= need:
            continue
        offered = (room.cpu if kind == "cpu" else room.memory) or 0
        measured = (
            f"{pod_room.format_amount(max(0, now), kind)} {noun} free: Allocatable"
            f" {pod_room.format_amount(offered, kind)}, less {pod_room.format_amount(offered - now, kind)} that pods"
            " request"
        )
        fails = always < need and needed
        why = (
            f"The scheduler would leave the measuring pods of this node pending, so stage {largest.stage} would have no"
            " figure of it."
            if always < need
            else f"Other pods request the rest now. If they still run at stage {largest.stage}, the scheduler leaves"
            " the measuring pods of this node pending."
        )
        remedy = (
            f'Set {key}: "{fits}" in the intent, which fits all nodes of the run, or end pods on the node.'
            if fits
            else "End pods on the node: kubectl describe node lists them with their requests. No usable value of"
            f" {key} fits."
        )
        yield Finding(_CHECK, name, FAIL if fails else WARN, measured, expected, why, remedy)
