# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that another operator takes down, also between two of its turns."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    Operator,
    OperatorTurns,
    find_turns,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.room import (
    GateInputs,
    find_room,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    LabelSelector,
    MachinePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import NodeState

OFED, GPU = "nvidia.com/ofed-driver-upgrade-state", "nvidia.com/gpu-driver-upgrade-state"


def taken_nodes(nodes: tuple[ClusterNode, ...], states: tuple[NodeState, ...]) -> dict[str, str]:
    return GateInputs(nodes, turns=find_turns(nodes, states)).taken


@pytest.mark.parametrize(
    ("desired", "current", "taken"),
    [
        ("", "", False),
        ("Idle", "Idle", False),
        ("Drain_Required", "Idle", True),
        ("Reboot_Required", "Draining", True),
        ("Idle", "DrainComplete", True),
    ],
)
def test_a_node_that_waits_for_its_turn_or_has_it_is_taken(desired: str, current: str, taken: bool) -> None:
    state = NodeState("w1", desired_state=desired, current_state=current)
    assert ("w1" in taken_nodes((ClusterNode("w1", {}, True),), (state,))) is taken


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        ({OFED: "upgrade-done", GPU: "upgrade-failed"}, False),
        ({OFED: "upgrade-required"}, True),
        ({OFED: "upgrade-required", "nvidia.com/ofed-driver-upgrade.skip": "true"}, False),
        ({OFED: "drain-required", "nvidia.com/ofed-driver-upgrade.skip": "true"}, True),
        ({GPU: "validation-required"}, True),
        ({GPU: ""}, False),
    ],
)
def test_a_node_whose_driver_nvidias_operators_upgrade_is_taken(labels: dict[str, str], taken: bool) -> None:
    assert ("w1" in taken_nodes((ClusterNode("w1", labels, True),), ())) is taken


def test_a_taken_node_counts_as_unavailable() -> None:
    nodes = tuple(ClusterNode(name, {}, True) for name in ("w1", "w2"))
    states = (NodeState("w2", desired_state="Drain_Required", current_state="Idle"),)
    stand = GateInputs(nodes, turns=find_turns(nodes, states))
    room = find_room(stand, ClusterIntent(), ("w1", "w2"), ("w1",))
    assert room.away == ("w2",) and "desired-state Drain_Required" in room.refusal
    assert not find_room(stand, ClusterIntent(), ("w1", "w2"), ("w1", "w2")).refusal


@pytest.mark.parametrize(
    ("ready", "state_of_w1", "cordoned", "left"),
    [
        # w1 went down while it waits: the operator does not count it and takes w2 down beside it
        (False, "Idle", False, 0),
        # the operator drains w1, so w2 waits
        (True, "Draining", True, 1),
        (False, "Rebooting", True, 1),
        (True, "Idle", False, 1),
    ],
)
def test_a_node_that_goes_down_while_it_waits_is_none_of_its_operators_turns(
    ready: bool, state_of_w1: str, cordoned: bool, left: int
) -> None:
    first = ClusterNode("w1", {}, ready, unschedulable=cordoned)
    nodes = (first, *(ClusterNode(name, {}, True) for name in ("w2", "w3")))
    states = tuple(
        NodeState(name, desired_state="Drain_Required", current_state=current)
        for name, current in (("w1", state_of_w1), ("w2", "Idle"))
    )
    intent = ClusterIntent(disruption="reboot", node_pool=DrainPool(max_unavailable=2))
    stand = GateInputs(nodes, turns=find_turns(nodes, states))
    assert find_room(stand, intent, ("w1", "w2", "w3"), ("w3",)).left == left


def test_operators_that_take_the_same_nodes_take_one_each() -> None:
    nodes = tuple(ClusterNode(name, {}, True) for name in ("w1", "w2", "w3"))
    intent = ClusterIntent(disruption="reboot", node_pool=DrainPool(max_unavailable=2))

    def left(*operators: Operator) -> int:
        turns = tuple(OperatorTurns(operator, {"w1": "x", "w2": "x"}, at_once=1) for operator in operators)
        return find_room(GateInputs(nodes, turns=turns), intent, ("w1", "w2", "w3"), ("w3",)).left

    assert (left("sriov"), left("sriov", "nic_configuration"), left("sriov", "nic_configuration", "gpu_driver")) == (
        1,
        0,
        0,
    )


POOL = MachinePool(
    "gpu-b", LabelSelector({"pool": "b"}), wanted_config="b2", current_config="b1", machines=2, max_unavailable="1"
)
IMAGE = dataclasses.replace(POOL, current_config="b2", updated=1, conditions={"Updating": "True"})


@pytest.mark.parametrize(
    ("pool", "configs", "taken"),
    [
        (POOL, ("b1", "b1"), {"b-1", "b-2"}),
        (POOL, ("b2", "b1"), {"b-2"}),
        (POOL, ("b2", ""), {"b-2"}),
        (POOL, ("b2", "b2"), set()),
        # it changes the image of its nodes, whose MachineConfig stays
        (IMAGE, ("b2", "b2"), {"b-1", "b-2"}),
        (dataclasses.replace(IMAGE, updated=2), ("b2", "b2"), set()),
        (dataclasses.replace(IMAGE, paused=True), ("b2", "b2"), set()),
        (dataclasses.replace(POOL, paused=True), ("b1", "b1"), set()),
    ],
)
def test_nodes_of_a_pool_that_the_machine_config_operator_rolls_are_taken(
    pool: MachinePool, configs: tuple[str, str], taken: set[str]
) -> None:
    members = (ClusterNode(f"b-{number}", {"pool": "b"}, True, machine_config=configs[number - 1]) for number in (1, 2))
    stand = GateInputs((ClusterNode("a-1", {"pool": "a"}, True), *members), machine_pools=(pool,))
    assert stand.taken.keys() == taken
    room = find_room(stand, ClusterIntent(), ("a-1", "b-1", "b-2"), ("a-1",))
    assert ("MachineConfigPool gpu-b" in room.refusal) is bool(taken) and room.number == bool(taken)
