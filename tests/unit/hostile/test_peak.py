# SPDX-License-Identifier: GPL-3.0-or-later

"""No plan passes the gate if the operators could have more nodes down at the same time than the intent permits, by a
model of the operators that tries all of their choices."""

from __future__ import annotations

import dataclasses
import itertools
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.gate import list_roll_blockers
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.operator_turns import (
    CardTurns,
    Operator,
    OperatorTurns,
    find_queue,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.room import GateInputs
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.control_plane import EtcdMember
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    LabelSelector,
    MachinePool,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode

NAMES = ("a1", "a2", "b1", "b2")
#: what an operator has to do: nodes, limit, those that it has begun
Work = tuple[set[str], typing.Optional[int], set[str]]


def permit(most: int) -> ClusterIntent:
    return ClusterIntent(disruption="reboot", node_pool=DrainPool(max_unavailable=most))


def make_pool(name: str, rolling: bool = False, limit: typing.Optional[str] = "1") -> MachinePool:
    wanted = f"{name}2" if rolling else f"{name}1"
    selector = LabelSelector({"pool": name})
    return MachinePool(name, selector, wanted_config=wanted, current_config=f"{name}1", max_unavailable=limit)


def make_node(name: str, ready: bool = True, cordoned: bool = False, config: str = "") -> ClusterNode:
    return ClusterNode(name, {"pool": name[0]}, ready, cordoned, boot_id=name, machine_config=config or f"{name[0]}1")


def count_worst(
    nodes: typing.Sequence[ClusterNode], work: typing.Mapping[tuple[str, str], Work], openshift: bool
) -> int:
    """Return the most nodes that are down at the same time, over all choices that the operators have."""
    down = {node.name for node in nodes if not node.ready or node.unschedulable}
    options: list[list[tuple[str, str, set[str]]]] = []
    for (operator, pool), (names, at_once, begun) in work.items():
        free, rest = len(names) if at_once is None else at_once, sorted(names - begun)
        if operator == "machine_config":
            members = {node.name for node in nodes if node.labels["pool"] == pool}
            free, rest = free - len(members & (down | begun)), sorted(names - down - begun)
        else:
            free -= len(begun)
        choices = itertools.combinations(rest, min(max(0, free), len(rest)))
        options.append([(operator, pool, begun | set(chosen)) for chosen in choices])
    worst = 0
    for chosen in itertools.product(*options):
        total = down.union(*(names for operator, _pool, names in chosen if operator not in ("sriov", "machine_config")))
        places = []
        for pool in ("a", "b"):
            functions: set[str] = set().union(*(names for operator, _pool, names in chosen if operator == "sriov"))
            functions = {name for name in functions if name[0] == pool}
            rebooted = [names for operator, own, names in chosen if (operator, own) == ("machine_config", pool)]
            # they wait for each other within a pool
            places.append([functions, *rebooted] if openshift else [functions])
        for sets in itertools.product(*places):
            worst = max(worst, len(total.union(*sets)))
    return worst


def draw_names(draw: typing.Any, least: int = 1) -> tuple[str, ...]:
    return tuple(sorted(draw(st.sets(st.sampled_from(NAMES), min_size=least))))


@st.composite
def draw_cluster(
    draw: typing.Any,
) -> tuple[tuple[ClusterNode, ...], tuple[MachinePool, ...], tuple[OperatorTurns, ...], list[PoolPlan], int]:
    flags, limits = st.booleans(), st.sampled_from((1, 1, 2))
    rare = st.integers(0, 7).map(lambda number: number == 0)
    pools: tuple[MachinePool, ...] = ()
    if draw(flags):
        pools = tuple(make_pool(name, draw(flags), draw(st.sampled_from((None, "1", "2")))) for name in "ab")
    nodes = tuple(make_node(name, not draw(rare), draw(rare), f"{name[0]}{draw(limits)}") for name in NAMES)
    cordoned = {node.name for node in nodes if node.unschedulable}
    turns = []
    operators: tuple[Operator, ...] = ("sriov", "nic_configuration", "nic_driver")
    for operator in operators:
        if draw(flags):
            some = draw_names(draw)
            at_once = None if operator == "nic_driver" else draw(limits)
            begun = frozenset(sorted(cordoned & {*some})[: at_once or len(some)])
            turns.append(OperatorTurns(operator, dict.fromkeys(some, "x"), at_once, "", frozenset(some), begun))
    limit = {turn.operator: turn.at_once for turn in turns}
    plans: list[PoolPlan] = [
        PoolPlan("", draw_names(draw), limit.get("sriov", draw(limits)), 1, "x"),
        CardTurns("", draw_names(draw), limit.get("nic_configuration", draw(limits)), None, "x"),
        PoolPlan("ncp", draw_names(draw), draw(limits), 1, "x", driver="load"),
    ]
    if pools:
        plans.append(PoolPlan("a", ("a1", "a2"), int(pools[0].max_unavailable or 1), 1, "x", machines=True))
    chosen = draw(st.lists(st.sampled_from(range(len(plans))), min_size=1, max_size=2, unique=True))
    return nodes, pools, tuple(turns), [plans[number] for number in chosen], draw(st.integers(1, 3))


@settings(max_examples=400, deadline=None)
@given(draw_cluster())
def test_no_plan_passes_that_may_exceed_the_limit(
    cluster: tuple[tuple[ClusterNode, ...], tuple[MachinePool, ...], tuple[OperatorTurns, ...], list[PoolPlan], int],
) -> None:
    nodes, pools, turns, rolls, most = cluster
    stand = GateInputs(nodes, turns=turns)
    refused = list_roll_blockers(rolls, NAMES, stand, pools, permit(most), NAMES)
    work: dict[typing.Any, Work] = {
        turn.queue: ({*turn.nodes}, turn.at_once, {*turn.begun})
        for turn in dataclasses.replace(stand, machine_pools=pools).all_turns
    }
    before = count_worst(nodes, work, bool(pools))
    for roll in rolls:
        names, _at_once, begun = work.get(find_queue(roll), (set(), None, set()))
        work[find_queue(roll)] = (names | {*roll.nodes}, roll.at_once, begun)
    worst = count_worst(nodes, work, bool(pools))
    assert refused or worst <= most or worst == before
    # what is harmless is not refused: the nodes are up, no other operator works, and each plan keeps to the limit
    if not turns and not stand.unread and all(node.ready and not node.unschedulable for node in nodes):
        quiet = all(node.machine_config == f"{node.name[0]}1" for node in nodes)
        rolling = any(pool.wanted_config != pool.current_config for pool in pools)
        assert not refused or worst > most or not quiet or rolling


SRIOV = PoolPlan("linerate", ("a1", "a2", "b1"), 2, 2, "maxUnavailable is 2")
PLANS = {
    "sriov": SRIOV,
    "driver": dataclasses.replace(SRIOV, driver="load"),
    "cards": CardTurns("", SRIOV.nodes, 2, None, "maxParallelOperations is 2"),
}


@pytest.mark.parametrize("down", ["b2", "b1"], ids=["outside of the plan", "of the plan"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_an_operator_takes_its_whole_limit_beside_a_node_that_is_down(plan: PoolPlan, down: str) -> None:
    def ask(*away: str) -> tuple[str, ...]:
        nodes = tuple(make_node(name, ready=name not in away) for name in NAMES)
        return list_roll_blockers([plan], NAMES, GateInputs(nodes), (), permit(2), NAMES)

    assert ask() == ()
    (refused,) = ask(down)
    assert f"{down}: NotReady or cordoned." in refused and "may take down 2 beside them, so together 3 nodes" in refused


ROLLING = (make_pool("a", rolling=True, limit="2"), make_pool("b"))


@pytest.mark.parametrize(
    ("rolls", "most", "passes"),
    [
        # they wait for each other within one pool only
        ([dataclasses.replace(SRIOV, nodes=("a1", "a2"), at_once=1)], 2, True),
        ([dataclasses.replace(SRIOV, nodes=("a1", "b1"), at_once=1)], 2, False),
        # and no driver waits for either
        ([PLANS["driver"], dataclasses.replace(SRIOV, nodes=("a1",))], 2, False),
    ],
)
def test_operators_wait_for_each_other_within_a_pool(rolls: list[PoolPlan], most: int, passes: bool) -> None:
    stand = GateInputs(tuple(map(make_node, NAMES)))
    refused = " ".join(list_roll_blockers(rolls, NAMES, stand, ROLLING, permit(most), NAMES))
    assert (refused == "") is passes and ("the machine config operator may reboot" in refused) is not passes


@pytest.mark.parametrize("plan", [SRIOV, PLANS["cards"]], ids=["sriov", "cards"])
def test_nodes_that_wait_already_count_for_the_limit_of_the_operator(plan: PoolPlan) -> None:
    queue = find_queue(plan)
    assert queue is not None
    waits = OperatorTurns(queue[0], {"a1": "x"}, 2, queue[1])
    one = dataclasses.replace(plan, nodes=("a2",))
    stand = GateInputs(tuple(map(make_node, NAMES)))
    assert list_roll_blockers([one], NAMES, stand, (), permit(1), NAMES) == ()
    (refused,) = list_roll_blockers([one], NAMES, dataclasses.replace(stand, turns=(waits,)), (), permit(1), NAMES)
    assert "allows 2 nodes to go down at the same time" in refused and "the intent permits 1" in refused


CONTROL = tuple(
    dataclasses.replace(make_node(name), labels={"node-role.kubernetes.io/control-plane": "", "pool": "m"})
    for name in ("c0", "c1", "c2")
)
MASTERS = make_pool("m")


@pytest.mark.parametrize(
    ("pool", "rolls", "words"),
    [
        # c0 waits for the same turns, or for those of another SriovNetworkPoolConfig
        ("linerate", [SRIOV], "more than one control-plane node"),
        ("other", [SRIOV], "reboots the control-plane node c0"),
        (
            "other",
            [SRIOV, PoolPlan("m", ("c0", "c1", "c2"), 1, 3, "x", machines=True)],
            "reboots the control-plane node c0",
        ),
    ],
)
def test_control_plane_nodes_that_wait_already_count(pool: str, rolls: list[PoolPlan], words: str) -> None:
    turn = OperatorTurns("sriov", {"c0": "Reboot_Required"}, 2, pool, frozenset({"c0"}))
    members = tuple(EtcdMember(node.name, True) for node in CONTROL)
    stand = GateInputs(CONTROL, etcd=members, turns=(turn,))
    plans = [dataclasses.replace(roll, nodes=("c1",)) if roll is SRIOV else roll for roll in rolls]
    refused = list_roll_blockers(plans, (), stand, (MASTERS,), permit(2), ("c0", "c1", "c2"))
    assert any(words in text for text in refused), refused
