# SPDX-License-Identifier: GPL-3.0-or-later

"""Each key of the intent is judged: where the facts contradict it, a check fails on it, or the table says why none
does."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import RowReading
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.row import TuningRow
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import WARN, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

from . import page
from .breaks import kind_of
from .fleet import PAIR, ROCE, Fleet, cluster_of, fabrics_of, healthy
from .judge import findings
from .wishes import NEVER_CONTRADICTED, WISHES, Wish


def keys_of(of: typing.Any, path: str) -> typing.Iterator[str]:
    """Each key below a class of the intent, as a path."""
    for name, hint in typing.get_type_hints(of).items():
        inner = next((item for item in _within(hint) if dataclasses.is_dataclass(item)), None)
        yield from keys_of(inner, f"{path}.{name}") if inner is not None else (f"{path}.{name}",)


def _within(hint: typing.Any) -> typing.Iterator[typing.Any]:
    yield hint
    for item in typing.get_args(hint):
        yield from _within(item)


ALL = (*keys_of(Fabric, "fabric"), *keys_of(ClusterIntent, "cluster"))


def test_each_word_has_a_row_and_each_row_a_word() -> None:
    judged, reasons = {wish.key for wish in WISHES}, set(NEVER_CONTRADICTED)
    without = [key for key in ALL if key not in judged and not any(key.startswith(reason) for reason in reasons)]
    assert not without, (
        f"which check fails on it, or why does none? Write it into tests/unit/truth/wishes.py: {without}"
    )
    assert judged <= set(ALL) and all(
        any(key.startswith(reason) for key in ALL if key not in judged) for reason in reasons
    )
    assert len(judged) == len(WISHES)


def asked(wish: Wish) -> Fleet:
    """The healthy fleet of a shape, of which something else is asked."""
    fleet = healthy(wish.on)
    fabrics, cluster = fabrics_of(wish.on), copy.deepcopy(cluster_of(wish.on))
    for key, value in {wish.key: wish.value, **wish.beside}.items():
        of, *path, last = key.split(".")
        place = copy.deepcopy(fabrics[0]) if of == "fabric" else cluster
        if of == "fabric":
            fabrics[0] = place
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    facts = dict(fleet.facts)
    for source in [source for source in facts if wish.unmade and kind_of(source) == "applied"]:
        facts[source] = tuple(item for item in facts[source] if item.kind != wish.unmade)
    return dataclasses.replace(fleet, intent=parse_intent(fabrics, [], cluster), facts=facts)


def test_a_word_that_the_facts_contradict_closes_a_gate() -> None:
    wrong = []
    for wish in WISHES:
        fleet, stage = asked(wish), wish.check.partition(".")[0]
        gate = judge(findings(fleet, stage))
        closed = {item.check for item in gate.closing()}
        if wish.warns:
            warned = {item.finding.check for item in gate.judged if item.finding.status == WARN}
            wrong += (
                []
                if wish.check in warned - closed
                else [f"{wish.key}: {wish.check} does not warn: {sorted(closed)}, {sorted(warned)}"]
            )
        elif wish.check not in closed:
            others = {item.check for other in TABLE for item in judge(findings(fleet, other)).closing()}
            wrong.append(f"{wish.key}: {wish.check} does not close; what does is {sorted(others)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("key", "wished", "row", "read"),
    [
        ("topology_manager_policy", "single-numa-node", "topology_manager", "best-effort"),
        ("topology_manager_scope", "pod", "topology_scope", "container"),
        ("cpu_manager_policy", "static", "cpu_manager", "none"),
        ("reserved_system_cpus", "0-7", "reserved_cpus", "none"),
    ],
)
def test_a_kubelet_that_a_settled_cluster_runs_otherwise_closes_a_gate(
    key: str, wished: str, row: str, read: str
) -> None:
    """All objects are in place and nothing is rolled, so that what a node shows is what it runs with."""
    fleet, cluster = healthy(ROCE), copy.deepcopy(cluster_of(ROCE))
    cluster["host"]["kubelet"] = {key: wished}
    intent = parse_intent(fabrics_of(ROCE), [], cluster)

    def closed(value: str) -> set[str]:
        facts = dict(fleet.facts)
        for source, fact in fleet.facts.items():
            if kind_of(source) == "rolls":
                facts[source] = tuple(dataclasses.replace(roll, rolls=0) for roll in fact)
            elif kind_of(source) == "tuning":
                facts[source] = {
                    name: dataclasses.replace(
                        seen,
                        value=dataclasses.replace(seen.value, rows={**seen.value.rows, row: (RowReading(value),)}),
                    )
                    for name, seen in fact.items()
                }
        assert facts != fleet.facts
        sick = dataclasses.replace(fleet, intent=intent, facts=facts)
        return {
            item.check for stage in ("tuning", "network", "host") for item in judge(findings(sick, stage)).closing()
        }

    assert closed(read) == {"host.kubelet"} and closed(wished) == set()


@pytest.mark.parametrize("row", page.list_compared(), ids=lambda row: row.name)
def test_what_nodes_are_only_compared_by_can_be_required(row: TuningRow) -> None:
    fleet = healthy(PAIR)
    cluster = {**cluster_of(PAIR), "tuning": {**cluster_of(PAIR).get("tuning", {}), "expected": {row.name: "other"}}}
    asks = dataclasses.replace(fleet, intent=parse_intent(fabrics_of(PAIR), [], cluster))
    assert judge(findings(fleet, "tuning"), ()).open
    closing = judge(findings(asks, "tuning"), ()).closing()
    assert {item.check for item in closing} == {f"tuning.{row.check}"}, row.name
