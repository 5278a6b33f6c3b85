# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of NICs that carry the network of their nodes: stage network loads and removes it only with a waiver."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import (
    check_plan,
    list_refusals,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.sriov import add_gate
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.nics_in_use import select_driven
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.analysis.test_nics_in_use import hca
from ansible_collections.linerate.rdma.tests.unit.hostile.test_gate import INTENT, MASTERS, WHOLE, WORKERS, changed
from ansible_collections.linerate.rdma.tests.unit.run.test_driver_plan import Cluster, intent_of, policy_of

UPLINK, ADDRESS, BOND = "the default route of the node", "the address of the node 10.0.0.5", "the bond bond0"
STORAGE = "the network 10.9.0.0/24"
Uses = typing.Optional[dict[str, dict[str, str]]]
#: the inventory is known, a node of others is not
IDLE: Uses = {"a0": {}, "a1": {}}


class Fields(Cluster):
    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        return super().list(kind, namespace, selector)


def read(uses: Uses, removed: bool = False, same: bool = False, disruption: str = "drain") -> DisruptionPlan:
    after = intent_of(disruption, None if removed else "doca3")
    there = copy.deepcopy(policy_of(intent_of()))
    there["metadata"]["labels"] = MANAGED_BY
    cluster = typing.cast(Api, Fields(NicClusterPolicy=(there,) if removed or same else ()))
    rendered = RenderedObjects(nic_policies=(policy_of(after),))
    return read_plan(cluster, "", rendered, ("a0", "a1"), after.cluster, None, uses)


def refused(planned: DisruptionPlan, *waivers: Waiver) -> tuple[str, ...]:
    return list_refusals(intent_of().cluster, planned, ("a0", "a1"), waivers)


@pytest.mark.parametrize("removed", [False, True], ids=["load", "remove"])
@pytest.mark.parametrize("use", [UPLINK, ADDRESS, BOND])
def test_a_driver_of_nics_that_the_node_needs_is_refused_without_a_waiver(use: str, removed: bool) -> None:
    planned = read({"a0": {"ens1": use}, "a1": {}}, removed)
    (why,) = refused(planned)
    assert why.startswith(f"ofed_driver a0: ens1 carries {use}. NVIDIA's network operator unloads mlx5_core")
    assert "add a waiver for network.lint_uplink" in why and "run stage network again" in why
    assert ("on all nodes at the same time, and without a drain" in why) == removed
    assert {node.node for node in planned.nodes if node.loses_link} == {"a0"}
    assert refused(planned, Waiver("network.lint_uplink", "console", "ofed_driver a0")) == ()
    assert refused(planned, Waiver("network.lint_uplink", "console", "ofed_driver a1")) == (why,)


def test_a_waiver_covers_no_other_refusal_of_the_plan() -> None:
    planned = read({"a0": {"ens1": UPLINK}, "a1": {}}, disruption="none")
    told = list_refusals(intent_of("none").cluster, planned, ("a0", "a1"), (Waiver("network.*", "all"),))
    assert [text.partition(":")[0] for text in told] == ["a0", "a1", "other-team (not in the inventory)"]


@pytest.mark.parametrize("removed", [False, True], ids=["load", "remove"])
def test_other_and_unknown_networks_are_a_warning(removed: bool) -> None:
    planned = read({"a0": {"ens1": STORAGE}, "a1": {}}, removed)
    assert refused(planned) == () and not any(node.loses_link for node in planned.nodes)
    found = {one.subject: one for one in check_plan(intent_of().cluster, planned, ("a0", "a1"))}
    assert found["a0"].status == "warn" and f"ens1 carries {STORAGE}" in found["a0"].why
    assert found["a1"].status == ("warn" if removed else "pass")
    assert "the default route of the node is unknown" in found["other-team (not in the inventory)"].why


def test_nics_without_a_network_and_a_run_that_changes_nothing_are_let_through() -> None:
    assert refused(read(IDLE)) == () == refused(read(IDLE, removed=True))
    planned = read({"a0": {"ens1": UPLINK}, "a1": {"ens1": UPLINK}}, same=True)
    assert refused(planned) == () and not planned.pools


def test_members_of_etcd_are_asked_before_the_link_of_a_control_plane_node_goes() -> None:
    planned = read({"a0": {"ens1": UPLINK}, "a1": {}}, removed=True)
    (node,) = (one for one in planned.nodes if one.node == "a0")
    (pool,) = planned.pools
    control = dataclasses.replace(
        planned,
        nodes=tuple(dataclasses.replace(node, node=name) for name in ("c0", "c1")),
        pools=(dataclasses.replace(pool, nodes=("c0", "c1")),),
    )
    stand = dataclasses.replace(WHOLE, nodes=changed(MASTERS, "c2", ready=False) + WORKERS)
    closed = add_gate(control, stand, (), INTENT, [one.name for one in WORKERS]).closed
    assert "these control-plane nodes are NotReady or cordoned too: c2" in " ".join(closed)


def test_only_nics_of_this_driver_count() -> None:
    other = hca("0000:02:00.0", "eno1")
    assert other.pci is not None
    igb = dataclasses.replace(other, pci=dataclasses.replace(other.pci, driver="igb"))
    uses = {"ens1": UPLINK, "eno1": UPLINK, "br0": UPLINK, "0000:01:00.0": UPLINK}
    assert select_driven(NodeHcas((hca("0000:01:00.0", "ens1"), igb)), uses) == {"ens1": UPLINK}
    assert select_driven(None, uses) == {}
