# SPDX-License-Identifier: GPL-3.0-or-later

"""One node that holds each of its pairs up costs the others the time of a few of them, and is named."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.left_out import PARTNERS
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import (
    compute_most_seconds_of_a_pair,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import Plan
from tests.unit.run.test_pairs import FABRIC, Api, Clock

NODES = tuple(f"n{number:02}" for number in range(16))


class SlowEnds(Api):
    """The measurements of one node end with an error right before their limit."""

    def __init__(self, clock: Clock, hostile: str) -> None:
        super().__init__(NODES, answers={("ib_write_bw", "client"): self.measured})
        self.clock, self.hostile, self.held = clock, hostile, 0

    def measured(self, node: str, command: tuple[str, ...]) -> typing.Optional[CommandResult]:
        address = command[-1]
        server = self.pods[self.made[int(address.rpartition(".")[2]) - 1]]["node"]
        if self.hostile not in (node, server):
            return None
        self.held += 1
        self.clock.now += 115
        return CommandResult("ib_write_bw", 1, "Couldn't read remote address\n")


def test_a_node_that_holds_its_pairs_up_is_left_out_of_later_rounds_and_named() -> None:
    clock = Clock()
    lines: list[str] = []
    api, intent = SlowEnds(clock, "n05"), parse_intent([FABRIC])
    (fabric,) = intent.fabrics
    # one pair after the other, since all share the clock
    plan = Plan(intent.fabrics, intent.cluster, NODES, {}, parallel=1, pod_seconds=60.0)
    facts = BandwidthRun(typing.cast(Cluster, api), plan, clock, lambda seconds: None, lines.append).run()
    (planned,) = facts.plans
    assert api.held == 2 * (PARTNERS + 1), (
        "each pair in both directions, until the last of the partners has passed with another one"
    )
    assert clock.now < 2 * (PARTNERS + 1) * compute_most_seconds_of_a_pair(fabric) < planned.most_seconds / 3
    its = [pair for pair in facts.pairs if "n05" in (pair.client, pair.server)]
    assert len(facts.pairs) == 16 * 15 and len(its) == 2 * 15
    assert [pair.failure for pair in its[:8]] == ["peer_gone"] * 8
    assert {pair.failure: pair.client == "n05" for pair in its[8:]} == {
        "client_left_out": True,
        "server_left_out": False,
    }
    assert all(pair.evidence.startswith("n05 rail 0 is excluded because its pairs with n") for pair in its[8:])
    assert sum("n05 rail 0 is excluded" in line for line in lines) == 1
    findings = check(intent, Facts(nodes=NODES, bandwidth=facts))
    about = [item for item in findings if item.check == "bandwidth.measured" and "n05" in item.subject]
    assert [item.status for item in about].count("unknown") == 22 and [item.status for item in about].count("fail") == 8
    untold = next(item for item in about if item.status == "unknown")
    assert "left this end out" in untold.why and "bandwidth.suspect" in untold.remedy
    (named,) = [
        item for item in findings if item.check == "bandwidth.suspect" and item.subject == "storage n05, left out"
    ]
    assert (
        named.status == "fail"
        and named.measured.startswith("22 measurements not made, after failed measurements with ")
        and named.measured.endswith(": peer gone (8 times)")
    )
    assert "So this node is at fault" in named.why and "describe node n05" in named.remedy and "dmesg" in named.remedy
    others = [item for item in findings if item.check == "bandwidth.measured" and "n05" not in item.subject]
    assert {item.status for item in others} == {"pass"}, others[0]
