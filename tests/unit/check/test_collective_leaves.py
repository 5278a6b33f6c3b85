# SPDX-License-Identifier: GPL-3.0-or-later

"""The leaves by which collectives are grouped on Ethernet: by LLDP, by the intent, or not known."""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import UnknownLeaf
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, check, collect_leaves
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    CollectiveHca,
    CollectivePod,
    CollectivesFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.collectives_world import COLLECTIVES, FABRIC
from ansible_collections.linerate.rdma.tests.unit.roce_fabric import fabric, neighbours

ROCE = {**FABRIC, "select": {"hcas_per_node": 1}}
HEARD = fabric(2, 3)
NODES = tuple(HEARD.hcas)
LEAVES = {"leaf-0": NODES[:3], "leaf-1": NODES[3:]}


def leaves(seen: Facts, **wishes: typing.Any) -> dict[str, tuple[str, ...]]:
    intent = parse_intent([ROCE], None, {"collectives": {**COLLECTIVES, **wishes}})
    assert intent.cluster.collectives is not None
    return collect_leaves(intent.cluster.collectives, intent.fabrics[0], seen, NODES)


def steps(seen: Facts, **wishes: typing.Any) -> list[Finding]:
    """Return what is not a pass of the steps of all collectives."""
    intent = parse_intent([ROCE], None, {"collectives": {**COLLECTIVES, **wishes}})
    pods = tuple(CollectivePod(node, f"pod-{node}", f"pod-{node}", (CollectiveHca("mlx5_0", 0),)) for node in NODES)
    found = check(intent, dataclasses.replace(seen, nodes=NODES, collectives=CollectivesFacts("compute", pods)))
    return [item for item in found if item.check == "collectives.steps" and item.subject.startswith("compute ")]


SEEN = Facts(hcas=HEARD.hcas, neighbours=HEARD.neighbours)


def test_the_leaves_of_ethernet_are_those_that_its_ports_heard() -> None:
    assert leaves(SEEN) == LEAVES and not any(isinstance(leaf, UnknownLeaf) for leaf in leaves(SEEN))
    assert steps(SEEN) == []


def test_a_node_that_heard_nothing_is_alone_and_named() -> None:
    deaf = dataclasses.replace(SEEN, neighbours={**HEARD.neighbours, NODES[4]: neighbours()})
    found = leaves(deaf)
    assert [type(leaf) for leaf in found] == [str, str, UnknownLeaf] and list(found.values())[2] == (NODES[4],)
    (finding,) = steps(deaf)
    assert (finding.subject, finding.status) == (f"compute {NODES[4]}", "unknown")
    assert "LLDP" in finding.why and "lldp" in finding.remedy


def test_a_fabric_whose_switches_say_nothing_is_one_group_and_told() -> None:
    silent = dataclasses.replace(SEEN, neighbours=dict.fromkeys(NODES, neighbours()))
    (finding,) = steps(silent)
    assert (finding.subject, finding.status) == ("compute leaves", "warn")
    assert "rdma_cluster.collectives.leaves" in finding.remedy and list(leaves(silent).values()) == [NODES]
    assert steps(Facts(hcas=HEARD.hcas)) == [], "nobody listened: the run has no such steps"


def test_the_intent_names_the_leaves_before_lldp_does() -> None:
    wish = {"su-1": [NODES[0], NODES[3]], "su-2": [NODES[1], NODES[4], "node-that-has-no-pod"], "su-3": ["no-pod"]}
    found = leaves(SEEN, leaves=wish)
    assert {leaf: nodes for leaf, nodes in found.items() if not isinstance(leaf, UnknownLeaf)} == {
        "su-1": (NODES[0], NODES[3]),
        "su-2": (NODES[1], NODES[4]),
    }
    missing = steps(SEEN, leaves=wish)
    assert [item.subject for item in missing] == [f"compute {NODES[2]}", f"compute {NODES[5]}"]
    assert all("rdma_cluster.collectives.leaves" in item.remedy for item in missing)
