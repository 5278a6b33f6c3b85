# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that the SR-IOV operator must not drain: it ends the pause of a MachineConfigPool and the cordon of a node,
whoever set them, and where NVIDIA's maintenance operator drains for it, no SriovNetworkPoolConfig limits it."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    find_turns,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.machine_configs.rules import (
    find_rollout_blocker,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.drains import (
    explain_what_holds_back,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import check_plan, may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    LabelSelector,
    MachinePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import NodeState
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.run import test_driver_plan as driver
from ansible_collections.linerate.rdma.tests.unit.run import test_removal_nodes as removal
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE, OBJECTS
from ansible_collections.linerate.rdma.tests.unit.run.test_undrained_changes import (
    NO_CLAIMS,
    OPERATOR,
    STATE,
    WithFields,
)

INTENT = ClusterIntent(disruption="drain", node_pool=DrainPool(max_unavailable=2))
DRAIN = ("network.drain", "kl-a")
PREFIX = "machineconfiguration.openshift.io/"
EXTERNAL = "sriovnetwork.openshift.io/use-external-drainer"
STEP = "sriovnetwork.openshift.io/current-state"


def make_pool(paused: bool, annotations: typing.Optional[dict[str, str]] = None) -> dict[str, typing.Any]:
    return {
        "kind": "MachineConfigPool",
        "metadata": {"name": "worker", "annotations": annotations or {}},
        "spec": {"nodeSelector": {}, "paused": paused, "configuration": {"name": "r-1"}},
        "status": {"configuration": {"name": "r-1"}, "machineCount": 1, "updatedMachineCount": 1},
    }


def make_node(cordoned: bool = False, annotations: typing.Optional[dict[str, str]] = None) -> dict[str, typing.Any]:
    made: dict[str, typing.Any] = copy.deepcopy(OBJECTS["Node"][0])
    notes = {"currentConfig": "r-1", "desiredConfig": "r-1", "state": "Done", **(annotations or {})}
    made["metadata"].setdefault("annotations", {}).update({PREFIX + key: value for key, value in notes.items()})
    made["spec"] = {"unschedulable": cordoned}
    return made


def plan(
    node: dict[str, typing.Any], step: str = "", pool: typing.Any = None, external: bool = False
) -> DisruptionPlan:
    state = copy.deepcopy(STATE)
    annotations = state["metadata"].setdefault("annotations", {})
    annotations.update({STEP: step} if step else {}, **({EXTERNAL: "true"} if external else {}))
    objects = {
        "Node": (node,),
        "SriovNetworkNodeState": (state,),
        "SriovOperatorConfig": (OPERATOR,),
        "Pod": (),
        "ResourceClaim": NO_CLAIMS,
        "ResourceClaimTemplate": NO_CLAIMS,
        "MachineConfigPool": (pool,) if pool else (),
    }
    cluster = typing.cast(typing.Any, WithFields(**objects))
    return read_plan(cluster, "ops", RenderedObjects((MORE,)), ("kl-a",), INTENT, {})


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (make_pool(False), ""),
        (make_pool(True), "MachineConfigPool worker is paused by a user or another program"),
        (make_pool(True, {"sriovnetwork.openshift.io/state": "Paused"}), ""),
    ],
    ids=["runs", "paused by a user", "paused by the operator"],
)
def test_a_pool_that_a_user_has_paused_keeps_its_nodes(pool: dict[str, typing.Any], words: str) -> None:
    planned = plan(make_node(), pool=pool)
    assert may_go_on(INTENT, planned, ("kl-a",)) is (not words)
    assert words in " ".join(planned.nodes[0].blockers) and bool(planned.nodes[0].blockers) is bool(words)


@pytest.mark.parametrize(
    ("cordoned", "step", "held"), [(False, "", False), (True, "", True), (True, "Draining", False)]
)
def test_a_node_that_a_user_has_cordoned_is_kept(cordoned: bool, step: str, held: bool) -> None:
    planned = plan(make_node(cordoned), step)
    assert may_go_on(INTENT, planned, ("kl-a",)) is not held
    assert ("kubectl uncordon kl-a" in " ".join(planned.nodes[0].blockers)) is held


def test_a_node_that_another_operator_drains_is_kept() -> None:
    planned = plan(make_node(), external=True)
    assert not may_go_on(INTENT, planned, ("kl-a",))
    assert "useDrainControllerRequestor=false" in " ".join(planned.nodes[0].blockers)


@pytest.mark.parametrize(("external", "at_once"), [(False, 1), (True, None)])
def test_turns_of_another_drainer_have_no_limit(external: bool, at_once: typing.Optional[int]) -> None:
    state = NodeState("w1", desired_state="Drain_Required", external_drainer=external)
    (turn,) = find_turns([ClusterNode("w1", ready=True)], [state])
    assert turn.at_once == at_once


@pytest.mark.parametrize(
    ("value", "at_once", "limit"),
    [
        (None, 1, "maxParallelUpgrades is 1"),
        (1, 1, "maxParallelUpgrades is 1"),
        (4, 4, "maxParallelOperations of the MaintenanceOperatorConfig is 4"),
        ("0", None, "maxParallelOperations of the MaintenanceOperatorConfig is 0, so there is no limit"),
    ],
)
def test_the_limit_of_the_maintenance_operator_applies_to_drivers(
    value: typing.Any, at_once: typing.Optional[int], limit: str
) -> None:
    config = {"metadata": {"name": "default", "namespace": "n"}, "spec": {"maxParallelOperations": value}}
    cluster = driver.Cluster(MaintenanceOperatorConfig=() if value is None else (config,))
    (turns,) = driver.read(driver.intent_of(node_pool={"max_unavailable": 1}), cluster).pools
    assert (turns.at_once, turns.limit) == (at_once, limit)


@pytest.mark.parametrize("paused", [False, True])
def test_a_teardown_respects_the_pause_of_a_user(paused: bool) -> None:
    pool = make_pool(paused)
    pool["spec"]["nodeSelector"] = {"matchLabels": {"kind": "a"}}
    node = removal.node("a0", kind="a")
    if not paused:
        removal.gate(removal.sriov(), node, pool)
        return
    with pytest.raises(RdmaError, match="MachineConfigPool worker is paused by a user"):
        removal.gate(removal.sriov(), node, pool)


def test_a_node_and_a_pool_that_change_their_image_are_not_done() -> None:
    image = {"currentImage": "registry.example/os@sha256:1", "desiredImage": "registry.example/os@sha256:2"}
    assert core.parse_node(make_node()).machine_config == "r-1"
    changing = core.parse_node(make_node(annotations=image))
    done = core.parse_node(make_node(annotations={**image, "currentImage": image["desiredImage"]}))
    assert (changing.machine_config, done.machine_config) == ("", "r-1")
    pool = MachinePool("worker", LabelSelector(), wanted_config="r-1", current_config="r-1", machines=3, updated=1)
    rolls = dataclasses.replace(pool, conditions={"Updating": "True"})
    assert find_rollout_blocker(done, [pool], [done], ("kl-a",)) == ("", "")
    assert "it may reboot the node" in find_rollout_blocker(done, [rolls], [done], ("kl-a",))[0]


def judge(planned: DisruptionPlan) -> Finding:
    """Return the finding on what blocks the drain of the node."""
    (found,) = (one for one in check_plan(INTENT, planned, ("kl-a",)) if (one.check, one.subject) == DRAIN)
    return found


UNPAUSE = """oc patch machineconfigpool worker --type merge -p '{"spec":{"paused":false}}'"""


@pytest.mark.parametrize(
    ("cordoned", "more", "command", "cause"),
    [
        (True, {}, "uncordon it: kubectl uncordon kl-a", "the cordon or the pause"),
        (False, {"pool": make_pool(True)}, UNPAUSE, "the cordon or the pause"),
        (False, {"external": True}, "useDrainControllerRequestor=false", "without a limit"),
    ],
    ids=["cordon", "pause", "another drainer"],
)
def test_a_drain_that_must_not_be_has_the_remedy_of_its_cause(
    cordoned: bool, more: dict[str, typing.Any], command: str, cause: str
) -> None:
    found = judge(plan(make_node(cordoned), **more))
    assert command in found.remedy and command not in found.measured and cause in found.why
    assert "PodDisruptionBudget" not in found.remedy and "wait forever" not in found.why
    assert found.remedy.endswith("Then run stage network again.")


def test_each_cause_of_a_blocked_drain_has_its_own_remedy() -> None:
    held = "pod prod/db cannot be evicted because PodDisruptionBudget prod/db currently allows no eviction"
    twice = "pod prod/a cannot be evicted because more than one PodDisruptionBudget (prod/x) selects it, and so on"
    rolls = MachinePool(
        "infra", LabelSelector(), wanted_config="r-2", current_config="r-1", machines=3, updated=1, paused=True
    )
    broken = dataclasses.replace(
        rolls, paused=False, name="gpu", conditions={"Degraded": "True"}, message="and is paused"
    )
    (node,) = plan(make_node(True)).nodes
    blockers = (held, twice, explain_what_holds_back(rolls), explain_what_holds_back(broken), *node.blockers)
    found = judge(DisruptionPlan((dataclasses.replace(node, blockers=blockers),)))
    for command in (
        "kubectl get poddisruptionbudget -A",
        "kubectl edit poddisruptionbudget",
        UNPAUSE.replace("worker", "infra"),
        "oc describe machineconfigpool gpu",
        "kubectl uncordon kl-a",
    ):
        assert found.remedy.count(command) == 1, command
    assert "oc patch machineconfigpool gpu" not in found.remedy
    assert "wait forever" in found.why and "the cordon or the pause" in found.why
