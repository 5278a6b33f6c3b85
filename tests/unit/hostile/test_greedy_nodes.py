# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet that claims the addresses of all nodes: it takes theirs from none of them, and nobody's tasks run on
another node."""

from __future__ import annotations

import pathlib
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.discover.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.inventory import (
    InventoryNode,
    refuse_shared_addresses,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import MOST_FUNCTIONS
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.inventory import parse_inventory
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.hostile.test_node_words import node
from ansible_collections.linerate.rdma.tests.unit.limit import bounded, measure_seconds
from ansible_collections.linerate.rdma.tests.unit.plan.test_tuning_settings import FABRIC

FLEET = {f"worker-{number}": f"10.0.{number // 250}.{number % 250 + 1}" for number in range(2000)}


def reached(*others: dict[str, typing.Any]) -> dict[str, InventoryNode]:
    found = parse_inventory([*(node(name, address) for name, address in FLEET.items()), *others])
    return {one.name: one for one in refuse_shared_addresses(found, found.nodes).nodes}


def test_a_node_that_claims_all_addresses_has_the_others_reached() -> None:
    with bounded(2):
        found = reached(node("evil", "10.9.9.9", *FLEET.values()))
    assert {name: one.address for name, one in found.items()} == {**FLEET, "evil": "10.9.9.9"}


def test_it_is_reached_at_none_of_theirs() -> None:
    found = reached(node("evil", *FLEET.values()))
    assert found["evil"].address == "" and "worker-0" in found["evil"].error
    # each of two that are to be reached at one address may be the right one
    assert [name for name, one in found.items() if not one.address] == ["worker-0", "evil"]


def test_all_that_are_to_be_reached_at_one_address_are_refused() -> None:
    found = reached(*(node(f"twin-{number}", "10.9.9.9") for number in range(10)))
    assert [name for name, one in found.items() if not one.address] == [f"twin-{number}" for number in range(10)]


def test_a_few_that_lie_together_are_not_reached_at_the_second_address_of_another() -> None:
    found = reached(node("good", "10.9.9.1", "10.9.9.2"), node("first", "10.9.9.1"), node("second", "10.9.9.2"))
    assert [found[name].address for name in ("first", "second", "good")] == ["", "", ""]


def many(number: int) -> dict[str, typing.Any]:
    return {
        "hcas": [{"name": f"a{place}", "ports": [{"number": 1, "link_layer": "InfiniBand"}]} for place in range(number)]
    }


def test_a_node_with_more_functions_than_any_machine_is_an_error_of_its_own(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "20260102T030405Z-aaaaaa")
    folder.write("hcas", "evil", many(MOST_FUNCTIONS + 1))
    folder.write("hcas", "worker-1", many(MOST_FUNCTIONS))
    facts = folder.of_nodes("hcas", ["evil", "worker-1"])
    assert "more than 4096 functions" in str(facts["evil"]["error"]) and facts["worker-1"]["error"] is None


def test_the_checks_of_a_node_with_many_functions_take_no_square_of_their_number() -> None:
    intent = parse_intent([FABRIC])

    def seconds(number: int) -> float:
        facts = load(Facts, {"nodes": {"evil": {"value": many(number), "error": None}}}, "facts")
        return measure_seconds(lambda: check(intent, facts))

    # 8 where it is linear, 64 where it is quadratic
    assert seconds(MOST_FUNCTIONS) < 16 * seconds(MOST_FUNCTIONS // 8)
