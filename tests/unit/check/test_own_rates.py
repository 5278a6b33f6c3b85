# SPDX-License-Identifier: GPL-3.0-or-later

"""HCAs that met slower ones only: on fleets of several rates, whose pairs all reach what their slower end allows."""

from __future__ import annotations

import dataclasses
import itertools
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import iterate_steps
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

from ..truth.breaks import kind_of
from ..truth.fleet import Fleet, Shape, cluster_of, fabrics_of, healthy
from ..truth.judge import findings

FOUR = Shape("4 nodes of 2 RoCE NICs", 4, 2, infiniband=False)
SLOW, FULL = 200.0, 400.0
Pairs = typing.Collection[frozenset[str]]


def at(hca: Hca, rate: float) -> Hca:
    netdevs = tuple(
        dataclasses.replace(item, speed_gbps=rate, supported_gbps=rate, partner_gbps=rate) for item in hca.netdevs
    )
    return dataclasses.replace(
        hca, netdevs=netdevs, ports=tuple(dataclasses.replace(port, rate_gbps=rate) for port in hca.ports)
    )


def mixed(slow: str, met: Pairs, line_rate: typing.Optional[dict[str, typing.Any]] = None, **bandwidth: str) -> Fleet:
    """A fleet of which some nodes have slower links, and whose hosts all carry 195 Gb/s alone."""
    fleet, names = healthy(FOUR), {f"node-{number}" for number in slow.split()}
    facts = dict(fleet.facts)
    for source in facts:
        if kind_of(source) in ("hcas", "hcas_after_network", "hcas_in_use"):
            facts[source] = {
                name: dataclasses.replace(
                    seen,
                    value=dataclasses.replace(
                        seen.value,
                        hcas=tuple(at(hca, SLOW if name in names else FULL) for hca in seen.value.hcas),
                    ),
                )
                for name, seen in facts[source].items()
            }
    source = SOURCES["bandwidth"]["bandwidth"]
    measured = facts[source]
    facts[source] = dataclasses.replace(
        measured,
        pods=tuple(dataclasses.replace(pod, rate_gbps=SLOW if pod.node in names else FULL) for pod in measured.pods),
        pairs=tuple(
            dataclasses.replace(pair, average_gbps=2 * 195.0, peak_gbps=394.0)
            for pair in measured.pairs
            if frozenset((pair.client, pair.server)) in met
        ),
    )
    fabrics = fabrics_of(FOUR)
    fabrics[0]["bandwidth"] = {"directions": "at_once", "sweep": True, "rounds": 1, **bandwidth}
    fabrics[0]["line_rate"] = line_rate or {}
    return Fleet(FOUR, parse_intent(fabrics, [], cluster_of(FOUR)), facts)


def pairs(*texts: str) -> Pairs:
    return {frozenset(f"node-{number}" for number in text.split()) for text in texts}


ALL = {frozenset(pair) for pair in itertools.combinations(FOUR.names, 2)}


def said(fleet: Fleet) -> list[Finding]:
    return [item for item in findings(fleet, "bandwidth") if item.status != PASS and item.subject.endswith(" rate")]


@pytest.mark.parametrize(
    ("slow", "met", "status", "nodes"),
    [
        # each fast node met a slow one alone, though another fast one is there
        ("2 4", pairs("1 4", "2 3"), "unknown", {"node-1", "node-3"}),
        # the only fast node
        ("2 3 4", ALL, "warn", {"node-1"}),
        ("", pairs("1 4", "2 3"), "", set()),
        ("1 2 3 4", ALL, "", set()),
    ],
)
def test_an_hca_that_met_slower_ones_alone_is_not_called_measured(
    slow: str, met: Pairs, status: str, nodes: set[str]
) -> None:
    found = said(mixed(slow, met))
    assert {(item.check, item.status) for item in found} == ({("bandwidth.measured", status)} if status else set())
    assert {item.subject.split()[1] for item in found} == nodes and len(found) == 2 * len(nodes)
    assert all(item.measured == "only measured up to 200 of 400 Gb/s" for item in found)


def test_an_hca_that_met_one_of_its_rate_is_judged_by_that_pair() -> None:
    assert said(mixed("2 4", ALL)) == []
    failed = {item.check for item in findings(mixed("2 4", ALL), "bandwidth") if item.status == "fail"}
    assert "bandwidth.floor" in failed


def test_a_floor_of_the_intent_does_not_depend_on_links() -> None:
    floor = {"floor_gbps": 190.0, "reason": "agreed with the owner of the site"}
    assert said(mixed("2 3 4", ALL, floor)) == []


@pytest.mark.parametrize("slow", ["", "a b", "a c", "b c", "c d", "a", "c", "a b c", "a b c d"])
@pytest.mark.parametrize("nodes", ["a b c d", "a b c d e", "a b c d e f"])
@pytest.mark.parametrize("most", [1, 2, None])
def test_the_first_round_pairs_nodes_of_one_rate(slow: str, nodes: str, most: typing.Optional[int]) -> None:
    names = nodes.split()
    rates = {(0, name): SLOW if name in slow.split() else FULL for name in names}
    steps = list(iterate_steps({0: names}, Bandwidth(), most, rates))
    made = [frozenset((task.client, task.server)) for step in steps for task in step]
    assert len(set(made)) == len(made), "each pair once"
    assert most is not None or len(made) == len(names) * (len(names) - 1) // 2
    unequal = sum(rates[0, task.client] != rates[0, task.server] for task in steps[0])
    groups = [[name for name in names if rates[0, name] == rate] for rate in (SLOW, FULL)]
    assert unequal == (1 if all(len(group) % 2 for group in groups) else 0)
    assert len(steps[0]) == len(names) // 2


def test_rates_of_another_rail_and_one_rate_change_no_order() -> None:
    names = ["a", "b", "c", "d", "e"]
    plain = list(iterate_steps({0: names}, Bandwidth()))
    assert list(iterate_steps({0: names}, Bandwidth(), None, {(0, name): FULL for name in names})) == plain
    assert list(iterate_steps({0: names}, Bandwidth(), None, {(1, "a"): SLOW, (1, "b"): FULL})) == plain
