# SPDX-License-Identifier: GPL-3.0-or-later

"""A physical function that no policy selects any longer: the SR-IOV operator resets its MTU and its eSwitch mode."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import may_go_on
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.tests.unit.run.test_link_users import NAMES, attached, judge, network, world
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE
from ansible_collections.linerate.rdma.tests.unit.run.test_removal_nodes import gate, sriov
from ansible_collections.linerate.rdma.tests.unit.run.test_removed_functions import A0, FUNCTION, NETWORK_STATUS, of
from ansible_collections.linerate.rdma.tests.unit.run.test_removed_functions import PF as OF_A0
from ansible_collections.linerate.rdma.tests.unit.run.test_removed_functions import state as state_of_a0
from ansible_collections.linerate.rdma.tests.unit.run.test_undrained_changes import PF, STATE, Data

ELSEWHERE = dataclasses.replace(MORE, name="elsewhere", node_selector={"no": "node"})
ON_PF: dict[str, typing.Any] = {"NetworkAttachmentDefinition": (network(type="macvlan", master=PF["name"]),)}


def made(mtu: int, mode: str, link: str = "ETH", **wanted: typing.Any) -> Data:
    """The state of a node whose physical function a policy has configured."""
    state = copy.deepcopy(STATE)
    state["status"]["interfaces"][0].update(mtu=mtu, eSwitchMode=mode, linkType=link)
    for item in state["spec"]["interfaces"]:
        item.update(mtu=mtu, eSwitchMode=mode, **wanted)
    return state


def read(state: Data, used: str = "", pods: typing.Sequence[Data] = ()) -> DisruptionPlan:
    use = {name: {PF["pciAddress"]: used} for name in NAMES} if used else {}
    return world(ELSEWHERE, pods, use, state, (), SriovNetworkNodePolicy=(), **ON_PF)


@pytest.mark.parametrize("used", ["the default route of the node", "the address of the node 10.0.0.5", "the bond b0"])
def test_a_reset_function_that_the_node_uses_loses_its_link(used: str) -> None:
    planned = read(made(1500, "legacy"), used)
    assert {(node.action, node.loses_link, node.undrained) for node in planned.nodes} == {("drain", True, False)}
    found = judge(planned, "drain")
    assert found.status == "warn" and f"carries {used} and may have no link during the change" in found.measured
    assert "after a drain" in found.why and "access to its console" in found.remedy


@pytest.mark.parametrize(
    ("mtu", "mode", "link", "why"),
    [
        (9000, "legacy", "ETH", "MTU 9000 -> that of before the policy, or 1500"),
        (1500, "switchdev", "ETH", "eSwitch mode switchdev -> that of before the policy, or legacy"),
    ],
)
def test_a_reset_function_of_a_storage_network_is_interrupted(mtu: int, mode: str, link: str, why: str) -> None:
    planned = read(made(mtu, mode, link), "the network 10.0.0.0/24")
    (reason,) = {node.reasons[-1] for node in planned.nodes}
    assert "carries the network 10.0.0.0/24 and is interrupted" in reason and why in reason


@pytest.mark.parametrize(("mtu", "link"), [(1500, "ETH"), (2048, "IB"), (4092, "IB")])
def test_a_reset_that_keeps_the_link_of_a_network_is_a_warning(mtu: int, link: str) -> None:
    planned = read(made(mtu, "legacy", link), "the network 10.0.0.0/24")
    assert {len(node.reasons) for node in planned.nodes} == {1}
    found = judge(planned, "drain")
    assert found.status == "warn" and "carries the network 10.0.0.0/24" in found.why
    assert ("MTU 4092" in found.why) == (mtu == 4092)


def test_pods_on_a_reset_function_are_named_or_refused() -> None:
    planned = read(made(9000, "legacy"), "", attached())
    found = judge(planned, "drain")
    assert found.status == "warn" and "pod default/train-kl-c uses a NIC that is interrupted" in found.why
    assert may_go_on(ClusterIntent(), planned, NAMES)
    remade = read(made(9000, "switchdev"), "", attached())
    assert "would lose their network devices" in judge(remade, "drain", "network.drain").measured
    assert not may_go_on(ClusterIntent(), remade, NAMES)


def test_a_function_that_the_operator_does_not_reset_changes_nothing() -> None:
    foreign = made(9000, "switchdev")
    foreign["spec"] = {}
    external = made(9000, "switchdev", externallyManaged=True)
    bare = made(9000, "switchdev")
    bare["status"]["interfaces"][0]["numVfs"] = 0
    for state in (foreign, external, bare):
        planned = read(state, "the default route of the node", attached())
        assert not any(node.loses_link or node.doubts or node.blockers for node in planned.nodes)


def torn(mode: str = "switchdev", **wanted: typing.Any) -> Data:
    state = state_of_a0()
    state["status"]["interfaces"][0].update(mtu=9000, eSwitchMode=mode)
    state["spec"]["interfaces"][0].update(mtu=9000, eSwitchMode=mode, **wanted)
    return state


def on_function(address: str) -> Data:
    pod = of("DaemonSet", "rdma/shared_a", address)
    (entry,) = json.loads(pod["metadata"]["annotations"][NETWORK_STATUS])
    pod["metadata"]["annotations"][NETWORK_STATUS] = json.dumps([{**entry, "name": "y"}])
    return pod


def test_a_teardown_remakes_no_function_from_under_running_pods() -> None:
    with pytest.raises(RdmaError, match="a0: these running pods would lose their network devices") as told:
        gate(sriov(disruption="drain"), A0, on_function(OF_A0), torn())
    assert "another eSwitch mode makes its devices again: team-x/train" in str(told.value)
    assert "run the teardown again" in told.value.remedy


def test_other_functions_and_modes_end_no_teardown() -> None:
    for user, state in (
        (on_function(OF_A0), torn("legacy")),
        (on_function(OF_A0), torn(externallyManaged=True)),
        (on_function("0000:81:00.0"), torn()),
    ):
        gate(sriov(disruption="drain"), A0, user, state)
    with pytest.raises(RdmaError):
        gate(sriov(disruption="drain"), A0, on_function(FUNCTION), torn())
