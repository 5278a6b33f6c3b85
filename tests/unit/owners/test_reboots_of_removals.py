# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs that a tool of GitOps owns, that an intent of the same name made, or whose removal would end pods."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import DrainOptions, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_reboot import (
    PoolReboot,
)
from tests.unit.owners.test_shared_configs import NAME, of_host, prepare
from tests.unit.run.test_intents import SELECTOR, A, Api, intent_of, live, objects_of
from tests.unit.run.test_removal_gate import foreign, gate, with_pools
from tests.unit.run.test_roll import Operator, roller

Item = dict[str, typing.Any]
MARK = {"argocd.argoproj.io/tracking-id": "gpu-net:machineconfiguration.openshift.io/MachineConfig:/x"}


def test_a_machine_config_of_a_gitops_tool_stays_and_no_node_reboots() -> None:
    operator, intent = Operator(), of_host("a", "all", "iommu=pt")
    prepare(operator, intent)
    operator.configs[NAME]["metadata"].setdefault("annotations", {}).update(MARK)
    operator.away.clear()
    run, there = roller(operator, intent.cluster), {**copy.deepcopy(operator.configs[NAME]), "kind": "MachineConfig"}
    gone = run.remove([], False, [there], build_scope((), intent.cluster))
    run.release(gone.paused, 600, ["n0"])
    (kept,) = gone.stays
    assert "Argo CD" in kept.why and NAME in operator.configs and not operator.away


def test_a_machine_config_of_a_gitops_tool_does_not_count_as_a_reboot() -> None:
    (config,) = (copy.deepcopy(item) for item in live("a") if item["kind"] == "MachineConfig")
    with pytest.raises(RdmaError, match="may reboot"):
        gate(Api(*objects_of(A), config), A, "drain")
    config["metadata"].setdefault("annotations", {}).update(MARK)
    gate(Api(*objects_of(A), config), A, "drain")


def pod(owner: str, phase: str = "Running", node: str = "n1") -> Item:
    made = foreign({"kind": "Pod", "metadata": {"name": "train", "namespace": "team-x", "labels": {}}}, nodeName=node)
    owners = [{"kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    return {**made, "metadata": {**made["metadata"], "ownerReferences": owners}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("item", "ends"),
    [
        (pod(""), True),
        (pod("Job"), True),
        (pod("PyTorchJob", "Pending"), True),
        (pod("Job", "Succeeded"), False),
        (pod("ReplicaSet"), False),
        (pod("Job", node="elsewhere"), False),
    ],
)
def test_a_removal_that_reboots_a_node_waits_for_the_pods_that_nobody_starts_again(item: Item, ends: bool) -> None:
    if not ends:
        refuse(item)
        return
    with pytest.raises(RdmaError, match="no controller starts them again: Pod team-x/train on n1"):
        refuse(item)


def refuse(*items: Item, force: bool = False) -> None:
    """Raise an error if a teardown of a MachineConfig of three nodes is refused."""
    operator, intent = Operator(), of_host("a", "all", "iommu=pt")
    prepare(operator, intent)
    config = {**copy.deepcopy(operator.configs[NAME]), "kind": "MachineConfig"}
    config["metadata"]["managedFields"] = [{"manager": "linerate.rdma"}]
    cluster = with_pools(operator, config, *items)
    removal = Removal(KINDS, SELECTOR, scope=build_scope(intent.fabrics, intent.cluster))
    refuse_removal(
        typing.cast(Cluster, cluster),
        removal,
        "reboot",
        dataclasses.replace(intent.cluster, drain=DrainOptions(force=force)),
    )


@pytest.mark.parametrize(("owner", "permitted"), [("", True), ("PyTorchJob", False)])
def test_the_intent_permits_to_end_pods_without_a_controller_and_never_a_job(owner: str, permitted: bool) -> None:
    if permitted:
        refuse(pod(owner), force=True)
        return
    with pytest.raises(RdmaError, match="no controller starts them again: Pod team-x/train on n1"):
        refuse(pod(owner), force=True)


BUDGET: Item = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "quorum", "namespace": "team-x", "labels": {}},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}


def test_a_removal_that_reboots_a_node_names_the_budgets_for_which_the_operator_would_wait_without_end() -> None:
    with pytest.raises(RdmaError) as told:
        refuse(pod("ReplicaSet"), BUDGET)
    assert "n1: pod team-x/train cannot be evicted because PodDisruptionBudget team-x/quorum" in str(told.value)
    assert "No object of the cluster was removed" in str(told.value)
    refuse(pod("ReplicaSet", node="elsewhere"), BUDGET)


class Twins(Operator):
    """n0 is a node of one inventory, n1 and n2 of another one with the same intent_name. The policy of the first is in
    the cluster."""

    def _node(self, place: int, config: str) -> Item:
        made: Item = super()._node(place, config)
        made["metadata"]["labels"]["kind"] = "ab"[place > 0]
        return made

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        if kind in ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "NicConfigurationTemplate", "Tuned"):
            return Listing(tuple(item for item in objects_of(twin("a", "iommu=pt")) if item["kind"] == kind), "1")
        return super().list(kind, namespace, selector, fields)


def twin(kind: str, *arguments: str) -> Intent:
    return intent_of("compute", "prod", kind, host={"kernel_arguments": arguments}, disruption="reboot")


def test_stage_platform_does_not_replace_the_machine_config_of_an_intent_of_the_same_name() -> None:
    operator, mine = Twins(), twin("b", "pci=realloc")
    prepare(operator, twin("a", "iommu=pt"))
    operator.away.clear()
    wanted = [copy.deepcopy(item) for item in render_host_configs(mine.cluster.host, mine.cluster.intent_name)]
    ride = PoolReboot(
        typing.cast(typing.Any, None),
        typing.cast(Cluster, operator),
        wanted,
        ("n1", "n2"),
        operator.clock,
        operator.sleep,
        operator.log.append,
        lambda: False,
        mine.cluster,
    )
    refusal = ride._find_dry_run_refusal()
    assert refusal is not None and NAME in str(refusal) and "n0" in str(refusal)
    assert operator.configs[NAME]["spec"]["kernelArguments"] == ["iommu=pt"] and not operator.away
