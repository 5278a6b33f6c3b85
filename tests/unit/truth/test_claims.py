# SPDX-License-Identifier: GPL-3.0-or-later

"""An HCA is on one fabric, however two fabrics name it: the nodes show what the intent alone does not."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

from .fleet import ROCE, cluster_of, fabrics_of, healthy
from .judge import findings

ADDRESS, NETDEV = "0000:10:00.0", "ens0np0"
MACVLAN = {"virtual_functions": None, "resource_name": None, "roce": None}


def claims(first: typing.Mapping[str, typing.Any], second: typing.Mapping[str, typing.Any]) -> tuple[list[str], bool]:
    """Subjects of fabric.hcas that fail for two fabrics of these selectors, and whether stage validate found them."""
    both = []
    for name, number, changes in (("one", 64, first), ("two", 72, second)):
        fabric = copy.deepcopy(fabrics_of(ROCE)[0])
        fabric.update(name=name, resource_name=name)
        fabric["network"]["name"] = f"net-{name}"
        fabric["ipam"] = {"type": "whereabouts", "range": f"100.{number}.0.0/16"}
        fabric.update({key: value for key, value in changes.items() if key != "select"})
        fabric["select"] = {"hcas_per_node": 1, **changes["select"]}
        both.append({key: value for key, value in fabric.items() if value is not None})
    cluster = {key: value for key, value in cluster_of(ROCE).items() if key != "training"}
    fleet = dataclasses.replace(healthy(ROCE), intent=parse_intent(both, [], cluster))
    told = [item for item in findings(fleet, "fabric") if item.check == "fabric.hcas" and item.status == FAIL]
    named = any(item.check == "validate.claims" and item.status == FAIL for item in findings(fleet, "validate"))
    return [item.subject for item in told if item.measured.endswith("on both fabrics")], named


EACH = [f"one and two {name}" for name in ROCE.names]


@pytest.mark.parametrize(
    ("first", "second", "subjects"),
    [
        ({"select": {"pci": [ADDRESS]}}, {"select": {"netdev": [NETDEV]}}, EACH),
        ({"select": {"vendor": "15b3", "hcas_per_node": 2}}, {"select": {"pci": [ADDRESS]}}, EACH),
        ({"select": {"pci": [ADDRESS]}}, {"select": {"pci": ["0000:11:00.0"]}}, []),
        ({"select": {"pci": [ADDRESS]}}, {"select": {"netdev": ["ens1np0"]}}, []),
    ],
)
def test_an_hca_that_two_fabrics_name_in_different_ways(
    first: dict[str, typing.Any], second: dict[str, typing.Any], subjects: list[str]
) -> None:
    assert claims(first, second) == (subjects, False)


def test_fabrics_that_may_share_an_hca() -> None:
    shared = {"profile": "macvlan", "select": {"netdev": [NETDEV]}, **MACVLAN}
    assert claims({"select": {"pci": [ADDRESS]}}, shared)[0] == []
    alone = {**shared, "network": {"name": "net-two", "namespace": "training", "mode": "passthru"}}
    assert claims({"select": {"pci": [ADDRESS]}}, alone)[0] == EACH
