# SPDX-License-Identifier: GPL-3.0-or-later

"""An answer with a million mistakes costs no more than one with a single mistake: the first is named, and no other is
looked at."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import load_all
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import MOST_SELECTED
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import Record
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import MOST_FABRICS, IntentError, parse_intent
from ansible_collections.linerate.rdma.tests.unit.limit import bounded, measure_seconds

MANY = 100_000
UNKNOWN: dict[str, int] = {f"kerne{number}": 1 for number in range(MANY)}


@pytest.mark.parametrize(
    ("cls", "value", "named"),
    [
        (ObservedPlatform, UNKNOWN, "value.kerne0: unknown key"),
        (ObservedHcas, {"hcas": [1] * MANY}, "value.hcas: a list of 100000; expected at most 4096"),
        (ObservedHcas, {"hcas": [1] * 4096}, "value.hcas[0]"),
        (ObservedHcas, {"hcas": [UNKNOWN]}, "value.hcas[0].kerne0"),
    ],
)
def test_the_first_mistake_is_the_error_of_the_node(cls: typing.Any, value: typing.Any, named: str) -> None:
    with bounded(1):
        seen = load(cls, {"value": value, "error": None}, "")
    assert seen.value is None and seen.error.startswith("its output is not valid: ") and named in seen.error


def test_so_is_what_is_of_no_node() -> None:
    with bounded(1), pytest.raises(LoadError, match="kerne0: unknown key"):
        load(Record, UNKNOWN)


def test_all_mistakes_of_an_intent_are_told_and_the_time_does_not_grow_with_their_square() -> None:
    few = [{f"zz{number}": 1} for number in range(2_000)]
    assert len(load_all(tuple[Record, ...], few)[1]) >= len(few)

    def seconds(number: int) -> float:
        return measure_seconds(lambda: load_all(tuple[Record, ...], [{f"zz{place}": 1} for place in range(number)]))

    assert seconds(8_000) < 8 * max(seconds(2_000), 0.01)


FABRIC = {
    "name": "a",
    "profile": "sriov_infiniband",
    "select": {"hcas_per_node": 1},
    "network": {"name": "a", "namespace": "a"},
}


def test_of_many_unknown_keys_the_first_are_told_with_the_nearest_and_the_others_counted() -> None:
    with bounded(2), pytest.raises(IntentError) as raised:
        parse_intent([FABRIC], None, {"disrupton": "none", **UNKNOWN, "x" * 1_000_000: 1})
    problems = list(map(str, raised.value.problems))
    assert len(problems) == 21 and len(str(raised.value)) < 20_000
    assert problems[0].startswith("rdma_cluster.disrupton: unknown key; expected one of: ") and problems[0].endswith(
        "(did you mean 'disruption'?)"
    )
    assert problems[-1].startswith(
        f"rdma_cluster: {MANY + 2} unknown keys, of which only the first 20 are listed; expected only these"
        " keys: node_selector, "
    )
    with pytest.raises(IntentError) as raised:
        parse_intent([FABRIC], None, {f"x{number}": 1 for number in range(20)})
    assert len(raised.value.problems) == 20


@pytest.mark.parametrize(
    ("key", "words"),
    [("pci", "PCI addresses"), ("netdev", "network interfaces"), ("subnet_manager", "subnet managers")],
)
def test_an_intent_that_selects_by_an_endless_list_is_refused_at_once(key: str, words: str) -> None:
    def asked(number: int) -> typing.Any:
        return [{**FABRIC, "select": {"hcas_per_node": 1, key: [f"0000:00:00.{place}" for place in range(number)]}}]

    with bounded(1), pytest.raises(IntentError) as raised:
        parse_intent(asked(MANY))
    (problem,) = raised.value.problems
    assert str(problem) == f"rdma_fabrics[0].select.{key}: a list of {MANY}; expected at most {MOST_SELECTED} {words}"
    assert len(getattr(parse_intent(asked(MOST_SELECTED)).fabrics[0].select, key)) == MOST_SELECTED


def test_an_intent_of_thousands_of_fabrics_is_refused_at_once() -> None:
    with bounded(1), pytest.raises(IntentError, match=f"10000 fabrics; expected at most {MOST_FABRICS}"):
        parse_intent([{**FABRIC, "name": f"fabric-{number}"} for number in range(10_000)])


def test_what_is_neither_a_value_nor_an_error_is_refused() -> None:
    with pytest.raises(LoadError, match="other: unknown key"):
        load(dict[str, ObservedHcas], {"worker-1": {"value": None, "error": "e", "other": 1}})
    with pytest.raises(LoadError, match="worker-1: a list"):
        load(dict[str, ObservedHcas], {"worker-1": []})
