# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of fact kinds against what reads, judges and compares them."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import NEIGHBOURS, SHARED
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import find_form
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.fact_kinds import (
    FACT_KINDS,
    FILES,
    HOST,
    IB_PORTS,
    LLDP,
    WHOLE_FABRIC,
    choose_kinds_for_observers,
    list_kinds_for_observers,
    list_kinds_from,
    list_sources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import node_reader
from ansible_collections.linerate.rdma.plugins.module_utils._report.difference.runs import COMPARED

READ = list_kinds_from(HOST, IB_PORTS, LLDP, FILES)


def test_each_kind_is_named_once() -> None:
    names = [kind.name for kind in FACT_KINDS]
    assert len(names) == len(set(names))


def test_a_reader_of_a_node_reads_each_kind_that_the_registry_has_of_nodes() -> None:
    assert set(node_reader.NodeReader().readers) == set(READ)


def test_each_fact_that_several_stages_share_has_a_place() -> None:
    assert {*(source.kind for source in SHARED), NEIGHBOURS.kind} == set(
        list_kinds_from(HOST, IB_PORTS, WHOLE_FABRIC, LLDP)
    )


def test_the_form_of_each_compared_kind_is_that_of_a_stage() -> None:
    without = {kind for kind in COMPARED if find_form(kind) is None}
    assert without == {"containerd"}, "of it the stage host takes a part"
    assert find_form("hcas") == ObservedHcas and find_form("no such kind") is None
    assert load(find_form("hcas"), {"value": {"hcas": [], "errors": []}}).value == NodeHcas(())
    refused = load(find_form("hcas"), {"value": {"hcas": "x"}})
    assert refused.value is None and refused.error is not None and refused.error.startswith("its output is not valid:")


@pytest.mark.parametrize(
    ("kinds", "places"),
    [
        ((), []),
        (("clock",), ["node"]),
        (("neighbours", "topologies", "hcas"), ["node", "topology", "switches"]),
        (("subnets", "bios", "containerd"), ["fabric"]),
    ],
)
def test_places_of_kinds(kinds: tuple[str, ...], places: list[str]) -> None:
    assert list_sources(kinds) == places


@pytest.mark.parametrize(
    ("kinds", "asked"),
    [
        ((), []),
        (("topologies",), []),
        (("clock", "bios"), ["clock"]),
        (("hcas",), ["hcas", "platform", "firmware", "clock", "tuning", "subnets"]),
        (("neighbours", "hcas"), ["hcas", "platform", "firmware", "clock", "tuning", "subnets", "neighbours"]),
        (("neighbours",), ["neighbours"]),
    ],
)
def test_the_first_command_of_an_observer_brings_all_kinds_of_a_node(kinds: tuple[str, ...], asked: list[str]) -> None:
    assert list_kinds_for_observers(kinds) == asked


def test_observers_read_all_kinds_of_a_node_by_default() -> None:
    assert choose_kinds_for_observers(None) == ("hcas", "platform", "firmware", "clock", "tuning", "subnets")
    assert choose_kinds_for_observers(["neighbours", "drop_in"]) == ("neighbours", "drop_in")
    assert choose_kinds_for_observers([]) == ()


def test_a_kind_that_no_observer_reads_is_refused_by_name() -> None:
    with pytest.raises(RdmaError, match=r"kind 'hca' \(did you mean 'hcas'\?\)") as refused:
        choose_kinds_for_observers(["platform", "hca"])
    assert "drop_in" in refused.value.remedy
    with pytest.raises(RdmaError, match="kind 'topologies'"):
        choose_kinds_for_observers(["topologies"])
