# SPDX-License-Identifier: GPL-3.0-or-later

"""From what nodes showed to who pings whom and from where one looks at the fabrics."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.coverage import compute_coverage
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.vantage import choose_vantage_points
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    ObservedTopologies,
    SeenSubnet,
    SeenTopology,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import SeenForwarding
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    PingPlan,
    PingSchedule,
    PingTask,
    PortName,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas, ObservedHcas, Port
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_answers import (
    NodeAnswers,
    collect_answers,
    list_rails,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.pings import make_ping_schedule
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from tests.unit.fat_tree import guid, parts

HCAS = {name: ObservedHcas(world.node(number)) for name, number in world.NODES.items()}
SUBNETS = {name: ObservedSubnets(world.subnets()) for name in world.NODES}
ERROR = "unreachable: No route to host"
ANSWERS = collect_answers(
    {**HCAS, "worker-3": ObservedHcas(error=ERROR)}, {**SUBNETS, "worker-3": ObservedSubnets(error=ERROR)}
)


def planned(intent: Intent, answers: NodeAnswers = ANSWERS) -> PingSchedule:
    return make_ping_schedule(intent, answers, 31, 8, 10, 5)


def test_node_without_an_answer_takes_part_in_no_plan() -> None:
    assert set(ANSWERS.hcas) == set(ANSWERS.subnets) == set(world.NODES)
    both = collect_answers(
        {"a": ObservedHcas(world.node(1), "half of it")}, {"a": ObservedSubnets(world.subnets(), "half of it")}
    )
    assert both == NodeAnswers({}, {}), "a node that gives an error beside a value takes part in no plan"


def test_one_port_looks_at_each_fabric() -> None:
    assert choose_vantage_points(ANSWERS.subnets) == {
        "worker-1": (PortName("mlx5_0", 1), PortName("mlx5_2", 1)),
        "worker-2": (),
    }


def test_the_plan_is_what_ibping_takes() -> None:
    plan = planned(world.intent()).nodes
    assert plan["worker-1"].servers == tuple(PortName(f"mlx5_{index}", 1) for index in (0, 1, 4, 5))
    assert plan["worker-1"].clients == tuple(PingTask(f"mlx5_{index}", 1, (32 + index,)) for index in (0, 1, 4, 5))
    assert set(plan) == set(world.NODES)


def test_a_fabric_that_is_not_known_is_not_in_the_plan() -> None:
    assert planned(world.intent(world.fabric(hcas_per_node=5))).nodes == {name: PingPlan() for name in world.NODES}


def test_ethernet_is_not_pinged() -> None:
    plan = planned(world.intent(world.storage()))
    assert (plan.nodes, plan.pairs) == ({name: PingPlan() for name in world.NODES}, 0)


def test_rails_of_the_functions() -> None:
    found = list_rails(world.intent(), ANSWERS)
    assert set(found) == {"compute", "storage"} and set(found["compute"]) == set(world.NODES)
    assert sorted(found["compute"]["worker-1"].values()) == [0, 1, 2, 3]
    assert found["storage"] == {name: {"0000:01:00.0": 0} for name in world.NODES}


@pytest.mark.parametrize("answers", [ANSWERS, NodeAnswers({}, {})])
def test_rails_of_a_fabric_that_is_not_known(answers: NodeAnswers) -> None:
    assert list_rails(world.intent(world.fabric(hcas_per_node=5)), answers) == {"compute": {}}


def test_a_large_fleet_pings_over_each_link_of_the_fabric() -> None:
    """With three partners a port, chance would leave links out."""
    topology, tables, ends = parts([6] * 8, 6)
    seen = SeenTopology("mlx5_0", 1, topology, forwarding=SeenForwarding(tuple(tables)))
    port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR")
    hcas = {
        end.node: NodeHcas((Hca("mlx5_0", "mlx5_0", ports=(dataclasses.replace(port, lid=end.lid, guid=end.guid),)),))
        for end in ends
    }
    subnets = {end.node: (SeenSubnet("mlx5_0", 1, SubnetManager(1, guid(9, 1), "MASTER", 15, 100)),) for end in ends}
    wanted = dataclasses.replace(world.fabric(hcas_per_node=1), routing="static")
    asked = []

    def topologies() -> typing.Mapping[str, ObservedTopologies]:
        asked.append(1)
        return {ends[0].node: ObservedTopologies((seen,))}

    plan = make_ping_schedule(world.intent(wanted), NodeAnswers(hcas, subnets, topologies), 3, 8, 10, 5).nodes
    ways, number = PathTable(topology, tables, ends), {end.lid: place for place, end in enumerate(ends)}
    pinged = [(number[end.lid], number[lid]) for end in ends for task in plan[end.node].clients for lid in task.lids]
    assert len(pinged) == len(set(pinged)) and {(other, one) for one, other in pinged} == set(pinged)
    used = compute_coverage(ways, pinged)
    assert (used.missing, len(used.covered)) == ((), used.usable)
    assert len(pinged) <= 8 * len(ends) and asked == [1]
    # everybody meets everybody: nobody reads a topology for that
    all_of_them = make_ping_schedule(world.intent(wanted), NodeAnswers(hcas, subnets, topologies), None, 8, 10, 5)
    assert all_of_them.pairs == len(ends) * (len(ends) - 1) and asked == [1]
