# SPDX-License-Identifier: GPL-3.0-or-later

"""What the SR-IOV network operator makes of policies, functions and pools: each rule at its edge, as the operator's
source has it."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.budgets import (
    BudgetIndex,
    find_held_pods,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.machine_configs.rules import (
    find_outdated_nodes_outside_run,
    is_current,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.changes import (
    firmware_changes,
    list_changes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.device_plugin import (
    why_not_offered,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.drains import turn_of
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.policies import (
    find_wanted,
    find_wanted_by,
    nearest_match,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    Budget,
    ClusterPod,
    LabelSelector,
    MachinePool,
    NodePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    Policy,
    StateInterface,
    StateVf,
    VfGroup,
    WantedInterface,
)

NODE = ClusterNode("a", {"role": "gpu"})
PORT = StateInterface("ens1", "0000:3b:00.0", "15b3", "1021", "mlx5_core", "ETH", 1500, 8)
STATE = NodeState("a", interfaces=(PORT,))
POLICY = Policy("mine", "one", 4, {"role": "gpu"}, "15b3", "1021")


def asked(*policies: Policy) -> tuple[WantedInterface, ...]:
    return find_wanted(policies, NODE, STATE)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"name": "default"}, id="a name of old releases"),
        pytest.param({"node_selector": {"role": "cpu"}}, id="another node"),
        pytest.param({"vendor": "", "device": ""}, id="it selects nothing"),
        pytest.param({"vfs_count": 0}, id="it asks for none"),
    ],
)
def test_a_policy_that_the_operator_passes_over_asks_for_nothing(changed: dict[str, typing.Any]) -> None:
    assert asked(dataclasses.replace(POLICY, **changed)) == ()
    assert [item.vfs_count for item in asked(POLICY)] == [4]


@pytest.mark.parametrize(
    "selector", [{"vendor": "15b3"}, {"device": "1021"}, {"root_devices": ("0000:3b:00.0",)}, {"pf_names": ("ens1",)}]
)
def test_one_field_of_the_selector_is_enough(selector: dict[str, typing.Any]) -> None:
    assert [
        item.address for item in asked(dataclasses.replace(POLICY, **{"vendor": "", "device": "", **selector}))
    ] == ["0000:3b:00.0"]


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("ens1#2-3", 2, 3),
        ("ens1", 0, 3),
        ("ens2#2-3", 0, 3),
        ("ens1#2-x", 0, 3),
        ("ens1#x-3", 0, 3),
        ("ens1#2", 0, 3),
        ("ens1#\u00b2-3", 0, 3),
    ],
)
def test_a_range_of_functions_is_two_numbers_behind_the_name_of_the_function(name: str, first: int, last: int) -> None:
    (group,) = find_wanted_by(dataclasses.replace(POLICY, pf_names=(name,)), PORT).groups
    assert (group.first, group.last) == (first, last)


def test_functions_that_somebody_else_makes_stay_his() -> None:
    assert find_wanted_by(dataclasses.replace(POLICY, external=True), PORT).external


LOW = dataclasses.replace(POLICY, name="a-first", resource_name="other", vfs_count=6, mtu=9000, pf_names=("ens1#4-5",))
HIGH = dataclasses.replace(POLICY, name="b-second", vfs_count=4, mtu=1500, pf_names=("ens1#0-3",))


@pytest.mark.parametrize(
    ("first", "second", "groups", "vfs", "mtu"),
    [
        pytest.param(LOW, HIGH, ["mine", "a-first"], 6, 9000, id="beside each other"),
        pytest.param(
            LOW,
            dataclasses.replace(HIGH, priority=10),
            ["mine", "a-first"],
            6,
            9000,
            id="beside each other, of unlike priority",
        ),
        pytest.param(
            LOW,
            dataclasses.replace(HIGH, pf_names=("ens1#0-4",)),
            ["mine"],
            6,
            9000,
            id="the last of one is the first of the other",
        ),
        pytest.param(
            LOW,
            dataclasses.replace(HIGH, pf_names=("ens1#0-4",), priority=10),
            ["mine"],
            4,
            1500,
            id="the same, and the lower number wins",
        ),
        pytest.param(
            dataclasses.replace(LOW, pf_names=("ens1#0-1",)),
            dataclasses.replace(HIGH, pf_names=("ens1#1-3",), priority=10),
            ["mine"],
            4,
            1500,
            id="from below",
        ),
        pytest.param(
            dataclasses.replace(LOW, resource_name="one"),
            dataclasses.replace(HIGH, priority=10),
            ["mine"],
            4,
            1500,
            id="one resource",
        ),
    ],
)
def test_two_policies_share_a_function_where_neither_range_nor_resource_is_the_same(
    first: Policy, second: Policy, groups: typing.Sequence[str], vfs: int, mtu: int
) -> None:
    (found,) = asked(first, dataclasses.replace(second, name="mine"))
    assert ([group.policy for group in found.groups], found.vfs_count, found.mtu) == (groups, vfs, mtu)


GROUP = VfGroup("mine", "one", last=1)
WANTED = WantedInterface(PORT.address, 2, "ens1", (GROUP,))
VFS = (
    StateVf(0, "0000:3b:00.1", "mlx5_core", mtu=1500, guid="0200:0000:0000:0001"),
    StateVf(1, "0000:3b:00.2", "mlx5_core", mtu=1500, guid="0200:0000:0000:0002"),
)
MADE = dataclasses.replace(PORT, vfs_count=2, vfs=VFS)
NO_GUID = "0000:0000:0000:0000"


def vf(number: int, **changed: typing.Any) -> StateInterface:
    """The function with one of its virtual functions changed."""
    return dataclasses.replace(
        MADE, vfs=tuple(dataclasses.replace(item, **changed) if item.index == number else item for item in VFS)
    )


@pytest.mark.parametrize(
    ("wanted", "seen", "words"),
    [
        pytest.param(WANTED, MADE, [], id="made"),
        pytest.param(dataclasses.replace(WANTED, mtu=1500), MADE, [], id="just the MTU"),
        pytest.param(dataclasses.replace(WANTED, mtu=1501), MADE, ["MTU 1500 -> 1501"], id="a larger MTU"),
        pytest.param(
            dataclasses.replace(WANTED, mtu=9000), dataclasses.replace(MADE, mtu=None), ["MTU 0 -> 9000"], id="no MTU"
        ),
        pytest.param(
            dataclasses.replace(WANTED, mtu=1), dataclasses.replace(MADE, mtu=None), ["MTU 0 -> 1"], id="the least MTU"
        ),
        pytest.param(
            WANTED,
            dataclasses.replace(MADE, eswitch_mode="switchdev"),
            ["eSwitch mode switchdev -> legacy"],
            id="switchdev",
        ),
        pytest.param(WANTED, dataclasses.replace(MADE, eswitch_mode="legacy"), [], id="legacy by name"),
        pytest.param(WANTED, dataclasses.replace(MADE, admin_state="down"), ["link down -> up"], id="down"),
        pytest.param(WANTED, dataclasses.replace(MADE, admin_state="up"), [], id="up"),
        pytest.param(
            WANTED, vf(0, driver=None), ["driver of virtual function 0 none -> netdevice"], id="first without driver"
        ),
        pytest.param(
            WANTED, vf(1, driver=None), ["driver of virtual function 1 none -> netdevice"], id="last without driver"
        ),
        pytest.param(
            WANTED, vf(0, driver="vfio-pci"), ["driver of virtual function 0 vfio-pci -> netdevice"], id="given away"
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, device_type="vfio-pci"),)),
            dataclasses.replace(MADE, vfs=tuple(dataclasses.replace(item, driver="vfio-pci") for item in VFS)),
            [],
            id="given away on purpose",
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, mtu=9000),)),
            MADE,
            ["MTU of virtual function 0 1500 -> 9000"],
            id="MTU of a VF",
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, mtu=1500),)), MADE, [], id="the same MTU"
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, mtu=9000, device_type="vfio-pci"),)),
            dataclasses.replace(
                MADE,
                vfs=tuple(dataclasses.replace(item, driver="vfio-pci", guid=NO_GUID) for item in VFS),
                link_type="IB",
            ),
            [],
            id="one that is given away has neither",
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, rdma=True),)),
            vf(0, guid=NO_GUID),
            ["virtual function 0 has no GUID"],
            id="RoCE",
        ),
        pytest.param(
            WANTED,
            dataclasses.replace(vf(1, guid=NO_GUID), link_type="IB"),
            ["virtual function 1 has no GUID"],
            id="InfiniBand",
        ),
        pytest.param(
            WANTED,
            dataclasses.replace(vf(1, guid=NO_GUID), link_type="ib"),
            ["virtual function 1 has no GUID"],
            id="InfiniBand in small letters",
        ),
        pytest.param(WANTED, dataclasses.replace(MADE, link_type="IB"), [], id="InfiniBand with GUIDs"),
        pytest.param(WANTED, vf(0, guid=NO_GUID), [], id="Ethernet without RDMA needs none"),
        pytest.param(WANTED, dataclasses.replace(vf(0, guid=NO_GUID), link_type=None), [], id="of unknown link type"),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, first=1),)),
            vf(1, driver=None),
            ["driver of virtual function 1 none -> netdevice"],
            id="behind one that is nobody's",
        ),
        pytest.param(
            dataclasses.replace(WANTED, groups=(dataclasses.replace(GROUP, first=1),)),
            vf(0, driver=None),
            [],
            id="one that is nobody's",
        ),
        pytest.param(
            WANTED,
            dataclasses.replace(MADE, vfs=tuple(dataclasses.replace(item, driver=None) for item in VFS)),
            ["driver of virtual function 0 none -> netdevice"],
            id="one speaks for the others",
        ),
    ],
)
def test_what_has_to_be_changed_on_a_function(
    wanted: WantedInterface, seen: StateInterface, words: typing.Sequence[str]
) -> None:
    assert list(list_changes(wanted, seen)) == list(words)


CARD = dataclasses.replace(PORT, total_vfs=4)
WISH = WantedInterface(CARD.address, 4)
SECOND, SECOND_WISH = (
    dataclasses.replace(CARD, address="0000:3b:00.1"),
    dataclasses.replace(WISH, address="0000:3b:00.1"),
)


@pytest.mark.parametrize(
    ("wishes", "cards", "addresses"),
    [
        pytest.param((WISH,), (CARD,), [], id="it fits"),
        pytest.param(
            (dataclasses.replace(WISH, vfs_count=0),), (dataclasses.replace(CARD, total_vfs=0),), [], id="none"
        ),
        pytest.param((dataclasses.replace(WISH, vfs_count=5),), (CARD,), ["0000:3b:00.0"], id="more"),
        pytest.param(
            (dataclasses.replace(WISH, vfs_count=5, external=True),), (CARD,), [], id="somebody else makes them"
        ),
        pytest.param(
            (dataclasses.replace(WISH, vfs_count=5),),
            (dataclasses.replace(CARD, vendor="8086"),),
            [],
            id="another vendor",
        ),
        pytest.param(
            (dataclasses.replace(SECOND_WISH, vfs_count=5),),
            (CARD, SECOND),
            ["0000:3b:00.1"],
            id="behind one that nobody wants",
        ),
        pytest.param(
            (WISH, dataclasses.replace(SECOND_WISH, vfs_count=2)),
            (CARD, SECOND),
            [],
            id="both ports have the larger number",
        ),
        pytest.param((dataclasses.replace(WISH, vfs_count=2), SECOND_WISH), (CARD, SECOND), [], id="whichever it is"),
        pytest.param((dataclasses.replace(WISH, link_type="eth"),), (CARD,), [], id="link types in small letters"),
        pytest.param((dataclasses.replace(WISH, link_type="IB"),), (CARD,), ["0000:3b:00.0"], id="another link type"),
    ],
)
def test_firmware_is_changed_where_number_or_link_type_differ(
    wishes: typing.Sequence[WantedInterface], cards: typing.Sequence[StateInterface], addresses: typing.Sequence[str]
) -> None:
    assert [text.partition(" ")[0] for text in firmware_changes(wishes, cards)] == list(addresses)


@pytest.mark.parametrize(
    ("text", "at_once", "blocked"),
    [
        (None, None, False),
        ("2", 2, False),
        ("0", 0, True),
        ("100%", 4, False),
        ("50%", 2, False),
        ("25%", 1, False),
        ("24%", 0, True),
        ("1%", 0, True),
        ("0%", 0, True),
        ("101%", 0, True),
        ("many", 0, True),
        ("\u00b2", 0, True),
        ("9" * 5000, 0, True),
    ],
)
def test_how_many_nodes_of_a_pool_go_at_once(
    text: typing.Optional[str], at_once: typing.Optional[int], blocked: bool
) -> None:
    nodes = [ClusterNode(name, {"role": "gpu"}) for name in "abcd"] + [ClusterNode("e", {})]
    turn = turn_of(nodes[0], (NodePool("p", LabelSelector({"role": "gpu"}), text),), nodes)
    assert (turn.pool, turn.size, turn.at_once, bool(turn.blocked)) == ("p", 4, at_once, blocked)
    assert "maxUnavailable of SriovNetworkPoolConfig p is" in turn.limit


def test_one_percent_of_a_hundred_nodes_is_one() -> None:
    nodes = [ClusterNode(str(number), {"role": "gpu"}) for number in range(100)]
    assert turn_of(nodes[0], (NodePool("p", LabelSelector({"role": "gpu"}), "1%"),), nodes).at_once == 1


def test_nodes_of_no_pool_go_one_by_one_and_of_two_pools_never() -> None:
    nodes = [ClusterNode("a", {"role": "gpu"}), ClusterNode("b", {}), ClusterNode("c", {})]
    pool = NodePool("p", LabelSelector({"role": "gpu"}))
    alone = turn_of(nodes[1], (pool,), nodes)
    assert (alone.pool, alone.size, alone.at_once, alone.blocked) == ("", 2, 1, "")
    both = turn_of(nodes[0], (pool, dataclasses.replace(pool, name="q")), nodes)
    assert (both.size, both.at_once, bool(both.blocked)) == (0, 0, True)


@pytest.mark.parametrize(
    ("pod", "full", "held"),
    [
        pytest.param({"requests": ("openshift.io/vf",)}, False, True, id="with a function"),
        pytest.param({}, False, False, id="without one it stays"),
        pytest.param({}, True, True, id="without one it goes before a reboot"),
        pytest.param({"requests": ("openshift.io/vf",), "ended": True}, True, False, id="ended"),
        pytest.param({"requests": ("openshift.io/vf",), "owner": "DaemonSet"}, True, False, id="of a DaemonSet"),
        pytest.param({"requests": ("openshift.io/vf",), "mirror": True}, True, False, id="of the kubelet"),
    ],
)
def test_a_budget_holds_a_pod_that_has_to_go(pod: dict[str, typing.Any], full: bool, held: bool) -> None:
    one = ClusterPod("p", "ns", "a", {"app": "job"}, **{"owner": "Job", **pod})
    assert (
        bool(
            find_held_pods(
                (one,), full, "openshift.io", BudgetIndex((Budget("b", "ns", 0, LabelSelector({"app": "job"})),))
            )
        )
        == held
    )


def test_nobody_is_nearest_where_there_is_no_function() -> None:
    assert nearest_match(POLICY, NodeState("a")) == ""
    assert nearest_match(POLICY, STATE).startswith("the closest match is ens1")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"current_config": "a"}, False),
        ({"updated": 1}, False),
        ({"conditions": {"Updating": "True"}}, False),
        ({"conditions": {"Updating": "False"}}, True),
        ({"current_config": "a", "updated": 1, "conditions": {"Updating": "False"}}, False),
    ],
)
def test_a_pool_is_current_when_configuration_count_and_condition_say_so(
    changed: dict[str, typing.Any], expected: bool
) -> None:
    pool = dataclasses.replace(
        MachinePool("worker", wanted_config="b", current_config="b", machines=2, updated=2), **changed
    )
    assert is_current(pool) is expected


def test_a_prefix_is_all_before_the_last_slash_and_another_resource_is_no_evidence() -> None:
    node = ClusterNode("a", {}, allocatable={"nvidia.com/other": 4, "openshift.io/one": 0})
    assert "with another prefix" not in why_not_offered(node, "openshift.io/one", 4)[0]


def test_only_nodes_of_the_pool_itself_are_behind() -> None:
    """Neither those of another pool nor those of none."""
    gpu, cpu = (MachinePool(name, LabelSelector({"role": name}), wanted_config="b") for name in ("gpu", "cpu"))
    nodes = [
        ClusterNode("ours", {"role": "gpu"}, machine_config="b"),
        ClusterNode("theirs", {"role": "gpu"}, machine_config="a"),
        ClusterNode("elsewhere", {"role": "cpu"}, machine_config="a"),
        ClusterNode("nowhere", {}, machine_config="a"),
    ]
    behind = find_outdated_nodes_outside_run(gpu, (gpu, cpu), nodes, ("ours",))
    assert behind is not None and [node.name for node in behind] == ["theirs"]
    assert find_outdated_nodes_outside_run(cpu, (gpu, cpu), nodes, ("ours",)) is None
    assert find_outdated_nodes_outside_run(gpu, (gpu, cpu), nodes, ("ours", "theirs")) is None
