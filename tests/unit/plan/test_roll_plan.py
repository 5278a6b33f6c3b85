# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to each node: by what differs, what was noted at it, who is away, and what a drain would take."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    OperatorTurns,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    DrainOptions,
    DrainPool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    Budget,
    ClusterPod,
    LabelSelector,
    MachinePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    Mark,
    Needs,
    NodeDifference,
    NodeDifferences,
    NodeStep,
    RollPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.node_steps import choose_action
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_roll import plan_roll
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.roll_cluster import RollCluster
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.turns import choose_turn

REBOOT = ClusterIntent(disruption="reboot")
IOMMU = NodeDifference("BIOS", "iommu", "ProcVtd Disabled", "on", how="set by its BMC")
OTHER = NodeDifference("firmware", "total_vfs", "8", "16")
AT_ONCE = NodeDifference("firmware", "label", "x", "y", "nothing")
BEGUN = Mark((IOMMU.identity,), "boot", True)


def node(name: str = "worker-1", **other: typing.Any) -> ClusterNode:
    return ClusterNode(**{"name": name, "ready": True, "boot_id": "boot", **other})


def planned(
    differences: typing.Sequence[NodeDifference] = (IOMMU,),
    intent: ClusterIntent = REBOOT,
    error: str = "",
    shown: typing.Optional[ClusterNode] = None,
    mark: typing.Any = (),
    **cluster: typing.Any,
) -> RollPlan:
    marks = {} if mark == () else {"worker-1": mark}
    seen = NodeDifferences(tuple(differences), (), error)
    return plan_roll(
        {"worker-1": seen}, RollCluster(**{"nodes": (shown or node(),), "marks": marks, **cluster}), intent
    )


def step(*arguments: typing.Any, **more: typing.Any) -> NodeStep:
    (only,) = planned(*arguments, **more).steps
    return only


@pytest.mark.parametrize(
    ("needs", "action"),
    [
        ([], "nothing"),
        (["nothing"], "set"),
        (["nothing", "reboot"], "reboot"),
        (["reboot", "power_cycle", "nothing"], "power_cycle"),
    ],
)
def test_all_differences_are_one_action(needs: list[Needs], action: str) -> None:
    assert choose_action([dataclasses.replace(IOMMU, needs=one) for one in needs]) == action


@pytest.mark.parametrize(
    ("mark", "shown", "differences", "phase", "due", "untaken"),
    [
        # never begun; begun and not reset; reset and still the same boot; reset and not back; reset, back, and as
        # wanted
        ((), node(), [IOMMU], "begin", True, 0),
        (BEGUN, node(unschedulable=True), [IOMMU], "begin", True, 0),
        (dataclasses.replace(BEGUN, reset=True), node(unschedulable=True), [IOMMU], "wait", True, 0),
        (dataclasses.replace(BEGUN, reset=True), node(ready=False, boot_id="new"), [IOMMU], "wait", True, 0),
        (dataclasses.replace(BEGUN, reset=True), node(boot_id="new"), [], "finish", True, 0),
        # somebody else has reset it
        (BEGUN, node(boot_id="new", unschedulable=True), [], "finish", True, 0),
        (BEGUN, node(boot_id="new", unschedulable=True), [IOMMU], "begin", True, 0),
        # it did not take: cordoned by a run that was killed before it looked, and uncordoned by one that looked
        (dataclasses.replace(BEGUN, reset=True), node(boot_id="new", unschedulable=True), [IOMMU], "finish", True, 1),
        (dataclasses.replace(BEGUN, reset=True, cordoned=False), node(boot_id="new"), [IOMMU], "begin", False, 1),
        # another difference is another reset, but not while the first one is there
        (dataclasses.replace(BEGUN, reset=True, cordoned=False), node(boot_id="new"), [OTHER], "begin", True, 0),
        (
            dataclasses.replace(BEGUN, reset=True, cordoned=False),
            node(boot_id="new"),
            [IOMMU, OTHER],
            "begin",
            False,
            1,
        ),
        ((), node(), [], "begin", False, 0),
    ],
)
def test_where_a_node_is_taken_up(
    mark: typing.Any, shown: ClusterNode, differences: typing.Any, phase: str, due: bool, untaken: int
) -> None:
    found = step(differences, mark=mark, shown=shown)
    assert (found.phase, found.is_due, len(found.untaken)) == (phase, due, untaken)
    assert found.goes == (due and phase != "finish")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"error": "the BMC of worker-1: nothing answers"}, "nothing answers"),
        ({"nodes": ()}, "the cluster has no node with this name. Use the name that the node has in the cluster"),
        ({"shown": node(ready=False, not_ready="disk pressure")}, "disk pressure"),
        (
            {"shown": node(boot_id="")},
            (
                "the kubelet of the node does not report a boot ID, so a reset could not be"
                " verified. Restart the kubelet."
            ),
        ),
        ({"mark": None}, "kubectl annotate node worker-1"),
        ({"pods": (ClusterPod("pet", "jobs", "worker-1"),)}, "jobs/pet"),
        (
            {
                "pods": (ClusterPod("web", "jobs", "worker-1", owner="ReplicaSet"),),
                "budgets": (Budget("web", "jobs", 0, LabelSelector()),),
            },
            "PodDisruptionBudget jobs/web",
        ),
        (
            {"machine_pools": (MachinePool("worker", LabelSelector(), wanted_config="b", current_config="a"),)},
            "MachineConfigPool worker",
        ),
    ],
)
def test_what_leaves_a_node_out(arguments: typing.Any, words: str) -> None:
    found = step(**arguments)
    assert not found.is_due and words in " ".join(found.blockers) and found.wave == 0


def test_pods_that_stay_or_may_go() -> None:
    pods = (
        ClusterPod("daemon", "jobs", "worker-1", owner="DaemonSet"),
        ClusterPod("static", "jobs", "worker-1", mirror=True),
        ClusterPod("elsewhere", "jobs", "worker-2"),
        ClusterPod("web", "jobs", "worker-1", owner="ReplicaSet"),
        ClusterPod("pet", "jobs", "worker-1"),
    )
    found = step(pods=pods, intent=dataclasses.replace(REBOOT, drain=DrainOptions(force=True)))
    assert found.is_due and found.pods == ("jobs/web", "jobs/pet") and found.lost == ("jobs/pet",)


def test_a_node_that_was_begun_waits_for_a_budget_that_its_own_drain_may_hold() -> None:
    pods, budgets = (
        (ClusterPod("web", "jobs", "worker-1", owner="ReplicaSet"),),
        (Budget("web", "jobs", 0, LabelSelector()),),
    )
    assert step(pods=pods, budgets=budgets, mark=BEGUN).is_due and not step(pods=pods, budgets=budgets).is_due


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_only_what_needs_a_reset_is_refused(disruption: typing.Any) -> None:
    intent = ClusterIntent(disruption=disruption)
    refused = planned(intent=intent)
    assert (
        "worker-1" in refused.refusal and "rdma_cluster.disruption to reboot" in refused.refusal and not refused.waves
    )
    assert planned([AT_ONCE], intent=intent).refusal == "" and planned([], intent=intent).refusal == ""
    assert describe_plan(refused)[0] == refused.refusal


def test_unread_pods_refuse_a_drain() -> None:
    assert "pods is forbidden" in planned(unread={"Pod": "pods is forbidden"}).refusal
    assert planned([], unread={"Pod": "pods is forbidden"}).refusal == ""
    assert planned(unread={"MachineConfigPool": "forbidden"}).refusal == "", "of another kind of cluster"


@hypothesis.given(
    some.lists(
        some.tuples(
            some.booleans(),
            some.booleans(),
            some.booleans(),
            some.sampled_from([(), BEGUN, dataclasses.replace(BEGUN, reset=True)]),
        ),
        max_size=8,
    ),
    some.integers(1, 4),
)
def test_never_more_nodes_away_than_allowed(rows: typing.Any, most: int) -> None:
    nodes, seen, marks = [], {}, {}
    for number, (differs, is_ready, cordoned, mark) in enumerate(rows):
        name = f"worker-{number}"
        nodes.append(node(name, ready=is_ready, unschedulable=cordoned))
        seen[name] = NodeDifferences((IOMMU,) if differs else ())
        marks.update({name: mark} if mark else {})
    found = plan_roll(
        seen,
        RollCluster(nodes=tuple(nodes), marks=marks),
        ClusterIntent(disruption="reboot", node_pool=DrainPool(most)),
    )
    assert [one.node for one in found.steps] == list(seen)
    going = {one.node for one in found.steps if one.goes}
    assert {one.node for wave in found.waves for one in wave} == (set() if found.refusal else going)
    away = sum(one.name not in going and (not one.ready or one.unschedulable) for one in nodes)
    assert all(len(wave) + away <= most for wave in found.waves)
    phases = [{one.phase for one in wave} for wave in found.waves]
    assert not any("begin" in first and "wait" in second for first, second in zip(phases, phases[1:])), (
        "who is away already comes first"
    )


@pytest.mark.parametrize(
    ("turn", "finished", "waits"),
    [
        # the SR-IOV operator may still reboot a node that this roll has reset
        (OperatorTurns("sriov", {"worker-1": "the daemon has not started"}), ("worker-1",), True),
        (OperatorTurns("sriov", {"worker-1": "the daemon has not started"}), (), False),
        (OperatorTurns("machine_config", {"worker-1": "the pool rolls"}, 1, "worker"), ("worker-1",), False),
        (OperatorTurns("sriov", {}), ("worker-1",), False),
    ],
)
def test_the_roll_of_a_pool_waits_for_the_operator_of_a_node_that_was_reset(
    turn: OperatorTurns, finished: tuple[str, ...], waits: bool
) -> None:
    ride = NodeStep("worker-2", "reboot", (IOMMU,), pool="worker")
    cluster = RollCluster(nodes=(node(), node("worker-2")), turns=(turn,))
    going, why = choose_turn((ride,), cluster, RollPlan((ride,)), REBOOT, ("worker-1", "worker-2"), finished)
    assert (going == ()) is waits
    assert ("worker-1: the daemon has not started. Wait until the operator is done" in why) is waits


@pytest.mark.parametrize(
    ("state", "mark", "turn", "goes"),
    [
        ({}, None, False, ["worker-1"]),
        # cordoned by an admin, kured or Cluster API; by an earlier run; by the operator that takes it down
        ({"unschedulable": True}, None, False, []),
        ({"unschedulable": True}, dataclasses.replace(BEGUN, cordoned=False), False, []),
        ({"unschedulable": True}, dataclasses.replace(BEGUN, cordoned=True), False, ["worker-1"]),
        ({"unschedulable": True}, None, True, []),
        ({"ready": False}, None, False, []),
    ],
)
def test_a_node_that_is_cordoned_before_its_turn_counts_unless_the_roll_cordoned_it(
    state: dict[str, typing.Any], mark: typing.Optional[Mark], turn: bool, goes: list[str]
) -> None:
    names = ("worker-1", "worker-2")
    steps = tuple(NodeStep(name, "reboot", (IOMMU,)) for name in names)
    cluster = RollCluster(
        nodes=(node(), node("worker-2", **state)),
        marks={"worker-2": mark} if mark else {},
        turns=(OperatorTurns("sriov", {"worker-2": "drains"}),) if turn else (),
    )
    going, why = choose_turn(steps[:1], cluster, RollPlan(steps), REBOOT, names)
    assert [one.node for one in going] == goes and bool(why) is (not goes)
    # its own turn
    going, why = choose_turn(steps[1:], cluster, RollPlan(steps), REBOOT, names)
    foreign = bool(state.get("unschedulable")) and not (mark and mark.cordoned)
    down = not state.get("ready", True)
    assert bool(why) is (foreign or down) and [one.node for one in going] == ([] if why else ["worker-2"])
    assert ("kubectl uncordon worker-2" in why) is (foreign and not turn)
    assert ("kubectl describe node worker-2" in why) is down


@pytest.mark.parametrize(
    ("wave", "dead", "goes"),
    [
        ("02", "", "02"),
        ("02", "2", "0"),
        # no node of the wave is down
        ("0", "12", ""),
        ("02", "12", ""),
        ("02", "02", ""),
    ],
)
def test_a_node_of_the_wave_that_is_not_ready_counts_and_is_not_reset(wave: str, dead: str, goes: str) -> None:
    names = ("0", "1", "2")
    cluster = RollCluster(nodes=tuple(node(name, ready=name not in dead) for name in names))
    steps = tuple(NodeStep(name, "reboot", (IOMMU,), wave=1) for name in wave)
    intent = dataclasses.replace(REBOOT, node_pool=DrainPool(max_unavailable=2))
    going, why = choose_turn(steps, cluster, RollPlan(steps, most=2), intent, names)
    assert "".join(one.node for one in going) == goes and bool(why) is (goes != wave)


def test_a_node_that_its_own_reset_took_down_is_waited_for() -> None:
    steps = (NodeStep("worker-1", "reboot", (IOMMU,), phase="wait", wave=1),)
    cluster = RollCluster(nodes=(node(ready=False),))
    assert choose_turn(steps, cluster, RollPlan(steps), REBOOT, ("worker-1",)) == (steps, "")


@pytest.mark.parametrize("inventory", [("worker-1",), ("worker-1", "worker-2")])
def test_the_roll_of_a_pool_waits_for_a_node_that_another_client_cordoned(inventory: tuple[str, ...]) -> None:
    """The machine config operator would uncordon it after its reboot."""
    ride = NodeStep("worker-2", "reboot", (IOMMU,), pool="worker")
    cluster = RollCluster(nodes=(node(), node("worker-2", unschedulable=True)))
    going, why = choose_turn((ride,), cluster, RollPlan((ride,)), REBOOT, inventory)
    assert going == () and "kubectl uncordon worker-2" in why


@pytest.mark.parametrize(
    ("cluster", "held"),
    [
        ({}, False),
        ({"machines": frozenset({"control-1"})}, True),
        ({"nodes": (node(), node("control-1", machine_config="rendered-master-1"))}, True),
    ],
    ids=["another kind of cluster", "while it changes all nodes", "OpenShift"],
)
def test_no_bmc_resets_a_node_beside_machine_config_pools_that_cannot_be_read(
    cluster: dict[str, typing.Any], held: bool
) -> None:
    """The pool of another node may be rolling."""
    found = step(unread={"MachineConfigPool": "pools are forbidden"}, **cluster)
    assert any("whether the machine config operator drains nodes" in why for why in found.blockers) is held
    assert found.goes is not held
