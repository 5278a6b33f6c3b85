# SPDX-License-Identifier: GPL-3.0-or-later

"""A waiver of one fault covers no other one: what it is about does not keep the rest from being judged."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver, judge

from .fleet import PAIR, healthy
from .judge import findings

NODE, DEAD = "node-2", "0000:13:00.0"


def without(node: NodeHcas) -> NodeHcas:
    """A node whose last HCA is dead."""
    left = (hca for hca in node.hcas if DEAD not in (hca.pci.address if hca.pci else "", hca.physical_function))
    return dataclasses.replace(node, hcas=tuple(left))


def changed(node: NodeHcas, change: typing.Callable[[Hca], typing.Optional[Hca]]) -> NodeHcas:
    """Its VFs, changed or left out."""
    hcas = (change(hca) if hca.is_virtual else hca for hca in node.hcas)
    return dataclasses.replace(node, hcas=tuple(hca for hca in hcas if hca is not None))


def vfio(hca: Hca) -> Hca:
    assert hca.pci is not None
    return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, driver="vfio-pci"))


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda hca: hca, ""),
        (vfio, "driver"),
        (lambda hca: dataclasses.replace(hca, rdma_device=None), "rdma_device"),
        (lambda hca: dataclasses.replace(hca, node_guid="0x0000000000000000"), "guids"),
        (lambda _hca: None, "count"),
    ],
    ids=["the dead HCA alone", "driver", "no RDMA device", "no GUID", "no VF"],
)
def test_a_dead_hca_that_is_waived_hides_no_fault_of_the_others(
    change: typing.Callable[[Hca], typing.Optional[Hca]], check: str
) -> None:
    fleet, source = healthy(PAIR), SOURCES["virtual_functions"]["nodes"]
    seen = fleet.facts[source]
    node = dataclasses.replace(seen[NODE], value=changed(without(seen[NODE].value), change))
    reason = "HCA 3 is dead, and is replaced next week"
    waivers = [Waiver(f"virtual_functions.{name}", reason, f"compute {NODE}") for name in ("members", "allocatable")]
    gate = judge(findings(fleet, "virtual_functions", {**fleet.facts, source: {**seen, NODE: node}}), waivers)
    closing = {item.check for item in gate.closing()}
    assert gate.open == (not check) and (f"virtual_functions.{check}" in closing if check else closing == set())


@pytest.mark.parametrize(
    ("changes", "check"), [({}, ""), ({"resource_prefix": "nvidia.com"}, "resource_prefix"), ({"ready": 0}, "ready")]
)
def test_a_second_operator_that_is_waived_hides_no_fault_of_the_first(
    changes: dict[str, typing.Any], check: str
) -> None:
    fleet, source = healthy(PAIR), SOURCES["operators"]["operators"]
    seen = fleet.facts[source]
    (one,) = seen.installations
    idle = dataclasses.replace(
        one,
        deployment=dataclasses.replace(one.deployment, namespace="nvidia-network-operator", wanted=0, ready=0),
        resource_prefix="nvidia.com",
    )
    first = dataclasses.replace(
        one,
        deployment=dataclasses.replace(one.deployment, ready=changes.get("ready", one.deployment.ready)),
        resource_prefix=changes.get("resource_prefix", one.resource_prefix),
    )
    facts = {**fleet.facts, source: dataclasses.replace(seen, installations=(idle, first))}
    waiver = Waiver("operators.single", "the second one is scaled to zero", "SR-IOV network operator")
    gate = judge(findings(fleet, "operators", facts), [waiver])
    assert {item.check for item in gate.closing()} == ({f"operators.{check}"} if check else set())
    none = dataclasses.replace(seen, installations=(idle, idle))
    assert not judge(findings(fleet, "operators", {**fleet.facts, source: none}), [waiver]).open
