# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers of nodes that come from other machines than the cluster knows by their names."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.machines import (
    Answers,
    check,
    collect_answers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding

CLUSTER = (ClusterNode("worker-1", boot_id="aa-1"), ClusterNode("worker-2", boot_id="bb-2"))


def look(cluster: typing.Sequence[ClusterNode] = CLUSTER, **boots: typing.Optional[str]) -> list[Finding]:
    asked = {f"worker-{name[1:]}": boot for name, boot in boots.items()}
    return list(check("operators.machine", asked, (Answers("hcas", asked),), cluster))


def test_boot_that_the_kubelet_tells_passes_in_any_case_of_letters() -> None:
    assert [item.status for item in look(n1="AA-1", n2="bb-2")] == ["pass", "pass"]


def test_swapped_addresses_are_a_failure_that_names_both_nodes() -> None:
    first, second = look(n1="bb-2", n2="aa-1")
    assert (first.subject, first.status, second.status) == ("worker-1", "fail", "fail")
    assert "the machine that the cluster knows as worker-2" in first.why
    assert "ansible_host of worker-1 and worker-2" in first.remedy


def test_machine_outside_of_the_cluster_is_unknown() -> None:
    (found,) = look(n1="cc-3")
    assert found.status == "unknown" and "No kubelet reports this boot ID" in found.why


def test_boot_that_nobody_read_is_unknown_on_either_side() -> None:
    (found,) = look(n1=None)
    assert found.status == "unknown" and "boot_id of worker-1 was not read" in found.why
    (found,) = look((ClusterNode("worker-1"),), n1=None)
    assert found.status == "unknown" and found.measured.endswith("no boot ID from the kubelet")


def test_node_that_the_cluster_does_not_know_has_a_finding_elsewhere() -> None:
    assert look((), n1="aa-1") == []


def test_one_kind_of_another_machine_is_named() -> None:
    asked = (Answers("hcas", {"worker-1": "aa-1"}), Answers("platform", {"worker-1": "bb-2"}))
    (found,) = check("operators.machine", ["worker-1"], asked, CLUSTER)
    assert found.status == "fail" and "boot ID bb-2 in facts/platform/worker-1.json" in found.measured
    assert found.why.startswith("The data of worker-1 was read on the machine that the cluster knows as worker-2")


def test_node_without_an_answer_has_a_finding_elsewhere() -> None:
    assert collect_answers("hcas", {"worker-1": ObservedHcas(error="unreachable")}) is None
    seen = collect_answers("hcas", {"worker-1": ObservedHcas(NodeHcas((), boot="aa-1"))})
    assert seen == Answers("hcas", {"worker-1": "aa-1"})
