# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever takes nodes down: an operator's turns pass the gate that resets by BMCs pass."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.gate import list_roll_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    Operator,
    OperatorTurns,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.room import GateInputs
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import list_refusals
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.sriov import add_gate
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.control_plane import (
    EtcdMember,
    HealthCheck,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    MachinePool,
    NodePlan,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import (
    add_machine_pools,
    read_gate_inputs,
)

CONTROL = "node-role.kubernetes.io/control-plane"
INTENT = ClusterIntent(disruption="reboot")
MASTERS = tuple(ClusterNode(f"c{number}", {CONTROL: ""}, ready=True, boot_id="b") for number in range(3))
WORKERS = tuple(ClusterNode(f"w{number}", dict(INTENT.node_selector), ready=True, boot_id="b") for number in range(3))
ETCD = tuple(EtcdMember(node.name, True) for node in MASTERS)
WHOLE = GateInputs(MASTERS + WORKERS, etcd=ETCD)
MASTER = PoolPlan("master", ("c0", "c1", "c2"), 1, 3, "maxUnavailable is not set, which is 1", machines=True)
WORKER = PoolPlan("worker", ("w0", "w1", "w2"), 1, 3, "maxUnavailable is not set, which is 1", machines=True)
SRIOV = PoolPlan("", ("w0", "w1"), 1, 2, "the operator's default")
CHECK = HealthCheck("NodeHealthCheck", "", "all")


def ask(
    *rolls: PoolPlan,
    stand: GateInputs = WHOLE,
    intent: ClusterIntent = INTENT,
    drained: typing.Container[str] = (),
    most: str = "1",
) -> str:
    pools = [MachinePool(roll.name, max_unavailable=most) for roll in rolls if roll.machines]
    return " ".join(list_roll_blockers(rolls, drained, stand, pools, intent, [node.name for node in WORKERS]))


def changed(nodes: typing.Sequence[ClusterNode], name: str, **change: typing.Any) -> tuple[ClusterNode, ...]:
    return tuple(dataclasses.replace(node, **change) if node.name == name else node for node in nodes)


@pytest.mark.parametrize("state", [{"ready": False}, {"unschedulable": True}], ids=["not ready", "cordoned"])
def test_a_node_of_the_plan_that_is_down_already_holds_the_others(state: dict[str, typing.Any]) -> None:
    one = dataclasses.replace(WHOLE, nodes=MASTERS + changed(WORKERS, "w0", **state))
    assert "w0: NotReady or cordoned, so no other node may go down" in ask(SRIOV, stand=one)
    two = dataclasses.replace(INTENT, node_pool=DrainPool(max_unavailable=2))
    assert ask(SRIOV, stand=one, intent=two) == "", "the limit has room for it and for the next one"
    alone = PoolPlan("", ("w0",), 1, 1, "the operator's default")
    assert ask(alone, stand=one) == "", "no further node goes down"
    all_down = tuple(dataclasses.replace(node, **state) for node in WORKERS)
    assert ask(SRIOV, stand=dataclasses.replace(WHOLE, nodes=MASTERS + all_down[:2] + WORKERS[2:])) == ""
    assert ask(WORKER, stand=one) == "", "the machine config operator counts the nodes that are down"
    turn = OperatorTurns("sriov", {"w0": "Draining"}, at_once=1, begun=frozenset({"w0"}))
    resumed = dataclasses.replace(one, turns=(turn,))
    assert ask(SRIOV, stand=resumed) == "", "a resumed run meets the drain of the operator"


def test_what_the_cluster_bears_passes() -> None:
    assert ask(MASTER) == ask(WORKER) == ask(SRIOV) == ask() == ""


@pytest.mark.parametrize("change", [{"ready": False}, {"unschedulable": True}])
def test_no_control_plane_node_goes_while_another_is_away(change: dict[str, typing.Any]) -> None:
    stand = dataclasses.replace(WHOLE, nodes=changed(MASTERS, "c2", **change) + WORKERS)
    roll = dataclasses.replace(MASTER, nodes=("c0", "c1"))
    assert (
        "c0: the node is a control-plane node, and these control-plane nodes are NotReady or cordoned too: c2"
        in ask(roll, stand=stand)
    )
    assert ask(WORKER, stand=stand) == "", "a worker is no control-plane node"


def test_no_control_plane_node_goes_without_all_of_etcd() -> None:
    assert "etcd has no Ready member on c1" in ask(MASTER, stand=dataclasses.replace(WHOLE, etcd=(ETCD[0], ETCD[2])))
    assert "could not be read (Forbidden)" in ask(
        MASTER, stand=dataclasses.replace(WHOLE, etcd=(), unread={"etcd": "Forbidden"})
    )


@pytest.mark.parametrize("most", ["2", "50%"])
@pytest.mark.parametrize("name", ["master", "control-plane"])
def test_a_pool_of_the_control_plane_never_lets_two_go(name: str, most: str) -> None:
    """By its name as well, where its nodes have no label of the control plane."""
    roll = PoolPlan(name, ("w0", "w1"), 2, 1, f"maxUnavailable is {most}", machines=True)
    assert f"MachineConfigPool {name} reboots {most} control-plane nodes at the same time" in ask(roll, most=most)


def test_two_pools_with_control_plane_nodes_do_not_roll_at_once() -> None:
    one, other = (
        dataclasses.replace(MASTER, nodes=("c0", "c1")),
        dataclasses.replace(MASTER, name="infra", nodes=("c2",)),
    )
    assert "MachineConfigPool master and MachineConfigPool infra contain control-plane nodes" in ask(one, other)


def test_the_sriov_operator_lets_one_control_plane_node_go() -> None:
    turn = dataclasses.replace(SRIOV, nodes=("c0", "c1"), at_once=None)
    assert (
        "the default pool of the SR-IOV operator allows more than one control-plane node to go down at the same time"
        in ask(turn)
    )
    assert "control-plane" not in ask(turn, drained=("c0", "c1")), "a drain leaves etcd where it is"


@pytest.mark.parametrize("at_once", [2, None])
def test_one_control_plane_node_alone_is_never_several(at_once: typing.Optional[int]) -> None:
    """On OpenShift with a single node, disableDrain must be true, so the operator has no limit."""
    alone = GateInputs(MASTERS[:1], etcd=ETCD[:1])
    turn = dataclasses.replace(SRIOV, nodes=("c0",), at_once=at_once)
    assert ask(turn, stand=alone) == ask(turn) == ""


def test_a_kubelet_makes_no_control_plane_of_its_pool() -> None:
    fake = changed(WORKERS, "w1", labels={**INTENT.node_selector, "node.kubernetes.io/microk8s-controlplane": ""})
    stand = dataclasses.replace(
        WHOLE, nodes=MASTERS + fake, etcd=(*ETCD, EtcdMember("w0", False), EtcdMember("w1", False))
    )
    two = dataclasses.replace(INTENT, node_pool=DrainPool(2))
    assert (
        ask(dataclasses.replace(WORKER, at_once=2), stand=stand, intent=two, most="2") == ask(MASTER, stand=stand) == ""
    )


def test_the_budget_is_that_of_resets() -> None:
    stand = dataclasses.replace(WHOLE, nodes=MASTERS + changed(WORKERS, "w2", ready=False))
    assert "w2: NotReady or cordoned, so no other node may go down (1 node at a time" in ask(SRIOV, stand=stand)
    two = dataclasses.replace(INTENT, node_pool=DrainPool(2))
    assert ask(SRIOV, stand=stand, intent=two) == ""
    three = dataclasses.replace(WORKER, at_once=3)
    assert "allows 3 nodes to go down at the same time" in ask(three, intent=two, most="3")
    every = dataclasses.replace(SRIOV, nodes=("w0", "w1", "w2"), at_once=None)
    assert "allows all of its nodes to go down at the same time" in ask(every, intent=two)
    assert "or rdma_cluster.node_pool.max_unavailable to 3." in ask(every, intent=two)


@pytest.mark.parametrize("roll", [SRIOV, WORKER, dataclasses.replace(SRIOV, driver="load")])
@pytest.mark.parametrize(("at_once", "said"), [(1, ""), (2, "2 nodes"), (None, "all of its nodes")])
def test_one_node_at_a_time_is_the_default_for_each_pool_too(
    roll: PoolPlan, at_once: typing.Optional[int], said: str
) -> None:
    told = ask(dataclasses.replace(roll, at_once=at_once), intent=dataclasses.replace(INTENT, node_pool=None))
    assert bool(told) is bool(said) and said in told
    if said:
        assert "1 node at a time, because rdma_cluster.node_pool is not set" in told


@pytest.mark.parametrize("roll", [SRIOV, WORKER, dataclasses.replace(SRIOV, driver="reload")])
@pytest.mark.parametrize("at_once", [2, 8, None])
def test_an_operator_takes_no_more_nodes_down_than_it_changes(roll: PoolPlan, at_once: typing.Optional[int]) -> None:
    one = dataclasses.replace(roll, nodes=("w0",), at_once=at_once)
    assert ask(one, intent=dataclasses.replace(INTENT, node_pool=None)) == ""
    two = dataclasses.replace(one, nodes=("w0", "w1"))
    assert ask(two, intent=dataclasses.replace(INTENT, node_pool=DrainPool(2))) == ""
    assert ask(two, intent=dataclasses.replace(INTENT, node_pool=DrainPool(1))) != ""


def test_a_health_check_keeps_what_reboots_and_is_paused_for_machine_config_pools_alone() -> None:
    stand, may = (
        dataclasses.replace(WHOLE, health_checks=(CHECK,)),
        dataclasses.replace(INTENT, pause_health_checks=True),
    )
    assert (
        "w0: NodeHealthCheck all would remediate the node" in ask(WORKER, stand=stand)
        and ask(WORKER, stand=stand, intent=may) == ""
    )
    kept = ask(SRIOV, stand=stand, intent=may)
    assert (
        "NodeHealthCheck all would remediate the node" in kept
        and "rdma_cluster.pause_health_checks" not in kept
        and "Pause the health check manually" in kept
    )
    assert ask(SRIOV, stand=stand, drained=("w0", "w1")) == "", "a drained node stays Ready"
    assert "whether a health check would remediate the node while it is down" in ask(
        WORKER, stand=dataclasses.replace(WHOLE, unread={"NodeHealthCheck": "Forbidden"})
    )


def test_the_plan_of_stage_network_is_refused_with_the_cause_before_anything_is_applied() -> None:
    names = ("w0", "w1")
    planned = DisruptionPlan(tuple(NodePlan(name, "reboot", ("virtual functions 4 -> 8",)) for name in names), (SRIOV,))
    assert list_refusals(INTENT, add_gate(planned, WHOLE, (), INTENT, names), names) == ()
    stand = dataclasses.replace(WHOLE, health_checks=(CHECK,))
    first, *_rest = list_refusals(INTENT, add_gate(planned, stand, (), INTENT, names), names)
    assert "w0: NodeHealthCheck all would remediate the node" in first
    rolled = dataclasses.replace(planned, pools=(dataclasses.replace(WORKER, nodes=names),))
    may = dataclasses.replace(INTENT, pause_health_checks=True)
    found = add_gate(rolled, stand, (MachinePool("worker"),), may, names)
    assert list_refusals(
        may, found, names
    ) == () and "NodeHealthCheck all: paused while the nodes of MachineConfigPools reboot" in describe_plan(found)


def test_a_change_without_a_drain_takes_no_node_away() -> None:
    """disableDrain: the virtual functions go, and the node stays."""
    planned = DisruptionPlan(
        tuple(NodePlan(name, "drain") for name in ("w0", "w1")),
        (dataclasses.replace(SRIOV, at_once=None),),
        drains=False,
    )
    stand = dataclasses.replace(WHOLE, nodes=MASTERS + changed(WORKERS, "w2", ready=False))
    assert add_gate(planned, stand, (), INTENT, ("w0", "w1")).closed == ()


class Etcd:
    """A cluster that has a member of etcd on each of ``MASTERS``, of kubeadm. It gives no list of the pods of all
    nodes: a kubelet may have any number of mirror pods in it, of any size. It is no OpenShift."""

    def serves(self, group: str) -> bool:
        return False

    def list(self, kind: str, namespace: str, selector: str, fields: str = "") -> Listing:
        name, _equals, node = fields.partition("=")
        assert (kind, name) == ("Pod", "spec.nodeName") and node in {each.name for each in MASTERS}
        ready = {"type": "Ready", "status": "True"}
        pod = {"metadata": {"name": node}, "spec": {"nodeName": node}, "status": {"conditions": [ready]}}
        return Listing((pod,) if (namespace, selector) == ("kube-system", "component=etcd") else (), "1")


def test_pods_of_etcd_are_asked_of_control_plane_nodes_alone() -> None:
    assert read_gate_inputs(typing.cast(Cluster, Etcd()), MASTERS + WORKERS).etcd == ETCD
    assert read_gate_inputs(typing.cast(Cluster, Etcd()), WORKERS).etcd == ()


@pytest.mark.parametrize("operator", ["nic_configuration", "gpu_driver", "nic_driver"])
@pytest.mark.parametrize("roll", [SRIOV, WORKER], ids=["the SR-IOV operator", "the machine config operator"])
def test_an_operator_that_has_the_nodes_of_the_plan_closes_the_gate(operator: Operator, roll: PoolPlan) -> None:
    turn = OperatorTurns(operator, dict.fromkeys(roll.nodes, "why"), 1)
    assert "These nodes count as unavailable" in ask(roll, stand=dataclasses.replace(WHOLE, turns=(turn,)))


def test_the_sriov_operator_and_the_machine_config_operator_wait_for_each_other() -> None:
    turn = OperatorTurns("sriov", dict.fromkeys(WORKER.nodes, "why"), 1)
    assert ask(WORKER, stand=dataclasses.replace(WHOLE, turns=(turn,))) == ""


def test_two_operators_do_not_reboot_the_control_plane_beside_each_other() -> None:
    masters = ("c0", "c1", "c2")
    turn = OperatorTurns("nic_configuration", dict.fromkeys(masters, "why"), 1, reboots=frozenset(masters))
    roll = PoolPlan("", masters, 1, 3, "the operator's default")
    refused = ask(roll, stand=dataclasses.replace(WHOLE, turns=(turn,)))
    assert "would reboot control-plane nodes while NVIDIA's NIC configuration operator reboots" in refused


@pytest.mark.parametrize(
    ("name", "copied", "kept"),
    [("c0", False, ""), ("w0", False, "w0"), ("w0", True, ""), ("c0", True, "")],
    ids=["elsewhere", "of the plan", "of the plan, and copied", "elsewhere, and copied"],
)
def test_a_boot_id_that_two_nodes_report_names_no_node_that_runs_the_playbook(
    name: str, copied: bool, kept: str
) -> None:
    """A compromised kubelet copies that of the node on which ansible-playbook runs."""
    nodes = changed(MASTERS + WORKERS, name, boot_id="own")
    nodes = changed(nodes, "w1", boot_id="own") if copied else nodes
    stand = dataclasses.replace(WHOLE, nodes=nodes, own_boot="own")
    told = ask(SRIOV, stand=stand)
    assert (f"{kept}: ansible-playbook runs on this node" in told) if kept else told == ""
    planned = DisruptionPlan(tuple(NodePlan(each, "reboot", ("RDMA mode",), pool="") for each in SRIOV.nodes), (SRIOV,))
    marked = add_gate(planned, stand, (), INTENT, ("w0", "w1"))
    assert [node.node for node in marked.nodes if len(node.reasons) > 1] == ([kept] if kept else [])


@pytest.mark.parametrize("roll", [SRIOV, WORKER], ids=["the SR-IOV operator", "the machine config operator"])
def test_machine_config_pools_that_cannot_be_read_close_the_gate_of_a_cluster_that_has_them(roll: PoolPlan) -> None:
    stand = dataclasses.replace(WHOLE, unread={"MachineConfigPool": "pools are forbidden"})
    assert ask(roll, stand=stand) == "", "of another kind of cluster"
    managed = dataclasses.replace(stand, nodes=changed(stand.nodes, "c0", machine_config="rendered-master-1"))
    told = ask(roll, stand=managed)
    assert "whether the machine config operator drains nodes (MachineConfigPool: pools are forbidden)" in told


class Pools:
    """A cluster whose MachineConfigPools are read, refused, or not served."""

    def __init__(self, answer: typing.Union[ApiError, tuple[dict[str, typing.Any], ...]]) -> None:
        self.answer = answer

    def list(self, kind: str) -> Listing:
        assert kind == "MachineConfigPool"
        if isinstance(self.answer, ApiError):
            raise self.answer
        return Listing(self.answer, "1")

    def serves(self, group: str) -> bool:
        return not (isinstance(self.answer, ApiError) and self.answer.absent)


@pytest.mark.parametrize(
    ("answer", "pools", "unread"),
    [
        (({"kind": "MachineConfigPool", "metadata": {"name": "worker"}, "spec": {}},), ["worker"], {}),
        (ApiError(403, "Forbidden", "forbidden", "GET"), [], {"MachineConfigPool": "forbidden", "etcd": "x"}),
        (ApiError(404, "NotFound", "absent", "GET"), [], {}),
    ],
    ids=["read", "refused", "not served"],
)
def test_the_gate_of_the_firmware_by_the_operator_knows_the_machine_config_pools(
    answer: typing.Any, pools: list[str], unread: dict[str, str]
) -> None:
    stand = dataclasses.replace(WHOLE, unread={"etcd": "x"} if "etcd" in unread else {})
    found = add_machine_pools(typing.cast(Cluster, Pools(answer)), stand)
    assert [pool.name for pool in found.machine_pools] == pools and found.unread == unread
    with pytest.raises(ApiError):
        add_machine_pools(typing.cast(Cluster, Pools(ApiError(0, "Unreachable", "refused", "GET"))), WHOLE)
