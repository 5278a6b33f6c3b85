# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan before the act, on a node state that operator v1.6.0 wrote (fixtures) and on states derived from it."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.label_selectors import labels_match
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.machine_configs.pools import (
    find_machine_pool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.machine_configs.rules import (
    find_at_once,
    find_rendered_configs,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.policies import find_wanted
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption import judge_kubelet, judge_rolls
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import (
    check_plan,
    list_refusals,
    may_go_on,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.live_state import Live
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.sriov import make_untouched_plan, plan
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Disruption
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    Budget,
    ClusterPod,
    DisruptionPlan,
    LabelExpression,
    LabelSelector,
    MachinePool,
    NodePlan,
    NodePool,
    OperatorSettings,
    PoolPlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import (
    HostConfig,
    KubeletStatus,
    Roll,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    Policy,
    StateInterface,
    VfGroup,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core as kubernetes
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import sriov_operator

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"


def items(name: str) -> list[dict[str, typing.Any]]:
    answer: list[dict[str, typing.Any]] = yaml.safe_load((FIXTURES / name).read_text())["items"]
    return answer


NODE = kubernetes.parse_node(yaml.safe_load((FIXTURES / "node-worker-sriov.yaml").read_text()))
STATE = sriov_operator.node_state(items("sriovnetworknodestates-igb-succeeded.yaml")[0])
POLICY = sriov_operator.parse_policy(
    next(item for item in items("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy")
)
(PF,) = STATE.interfaces
BARE = dataclasses.replace(STATE, wanted=(), interfaces=(dataclasses.replace(PF, vfs_count=0, vfs=()),))
MORE = dataclasses.replace(POLICY, vfs_count=5)
LIVE = Live((NODE,), {"kl-a": STATE}, (POLICY,))
POD = ClusterPod("job-0", "train", "kl-a", {"app": "job"}, ("cpu", "openshift.io/igbvf"), "Job")
OTHER = ClusterPod("web-1", "shop", "kl-a", {"app": "web"}, ("cpu",), "ReplicaSet")
HELD = Budget("job", "train", 0, LabelSelector({"app": "job"}))
CARD = StateInterface("ib0", "0000:3b:00.0", "15b3", "1021", "mlx5_core", "IB", 4092, total_vfs=0)


def live(state: NodeState = STATE, **changes: typing.Any) -> Live:
    return dataclasses.replace(LIVE, states={"kl-a": state}, **changes)


def planned(world: Live = LIVE, *policies: Policy, nodes: tuple[str, ...] = ("kl-a",)) -> DisruptionPlan:
    return plan(world, policies, nodes, "openshift.io")


def node(world: Live = LIVE, *policies: Policy) -> NodePlan:
    return planned(world, *policies).nodes[0]


def fleet(count: int, **changes: typing.Any) -> Live:
    nodes = tuple(
        dataclasses.replace(NODE, name=f"n{number}", labels={**NODE.labels, "row": str(number % 2)})
        for number in range(count)
    )
    return Live(nodes, {item.name: dataclasses.replace(STATE, node=item.name) for item in nodes}, (POLICY,), **changes)


def judged(world: Live, policy: Policy, disruption: Disruption = "drain") -> dict[tuple[str, str], Finding]:
    result = planned(world, policy)
    return {
        (item.check, item.subject): item for item in check_plan(ClusterIntent(disruption=disruption), result, ("kl-a",))
    }


def test_the_real_policy_makes_what_the_operator_really_wanted() -> None:
    assert find_wanted((POLICY,), NODE, STATE) == STATE.wanted


def test_what_is_there_is_left_alone() -> None:
    assert (node(LIVE, POLICY).action, planned(LIVE, POLICY).pools, describe_plan(planned(LIVE, POLICY))) == (
        "nothing",
        (),
        (),
    )


def test_functions_where_there_are_none_disturb_nobody() -> None:
    assert node(live(BARE), MORE).action == "configure"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"vfs_count": 5}, "eth2 0000:01:00.0 virtual functions 4 -> 5"),
        ({"vfs_count": 3}, "virtual functions 4 -> 3"),
        ({"mtu": 9000}, "MTU 1500 -> 9000"),
        ({"device_type": "vfio-pci"}, "driver of virtual function 0 igbvf -> vfio-pci"),
        ({"eswitch_mode": "switchdev"}, "eSwitch mode legacy -> switchdev"),
        ({"device": "1021", "pf_names": ()}, "no policy selects it any longer, virtual functions 4 -> 0"),
    ],
)
def test_a_change_of_what_is_there_drains_and_says_why(changes: dict[str, typing.Any], reason: str) -> None:
    found = node(LIVE, dataclasses.replace(POLICY, **changes))
    assert found.action == "drain"
    assert any(reason in text for text in found.reasons), found.reasons


def test_functions_that_somebody_else_made_are_left() -> None:
    assert node(live(dataclasses.replace(STATE, wanted=()), policies=())).action == "nothing"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "firmware NUM_OF_VFS 0 -> 8"),
        ({"total_vfs": 16}, "NUM_OF_VFS 16 -> 8"),
        ({"total_vfs": 8, "link_type": "ETH"}, "LINK_TYPE ETH -> IB"),
    ],
)
def test_firmware_of_a_mellanox_nic_reboots(changes: dict[str, typing.Any], reason: str) -> None:
    state = dataclasses.replace(STATE, wanted=(), interfaces=(dataclasses.replace(CARD, **changes),))
    policy = dataclasses.replace(POLICY, vendor="15b3", device="", pf_names=(), vfs_count=8, link_type="IB")
    found = node(live(state, policies=()), policy)
    assert found.action == "reboot"
    assert reason in found.reasons[0]
    assert (
        node(live(state, policies=(), settings=OperatorSettings(disabled_plugins=("mellanox",))), policy).action
        == "configure"
    )


def test_firmware_that_fits_does_not_reboot() -> None:
    ports = (dataclasses.replace(CARD, total_vfs=8), dataclasses.replace(CARD, address="0000:3b:00.1", total_vfs=8))
    eight = dataclasses.replace(
        POLICY, name="a", vendor="15b3", device="", pf_names=(), root_devices=("0000:3b:00.0",), vfs_count=8
    )
    four = dataclasses.replace(eight, name="b", root_devices=("0000:3b:00.1",), vfs_count=4)
    # both ports of a NIC share the firmware's number
    assert (
        node(live(dataclasses.replace(STATE, wanted=(), interfaces=ports), policies=()), eight, four).action
        == "configure"
    )


def test_another_rdma_mode_reboots() -> None:
    world = live(pools=(NodePool("p", rdma_mode="exclusive"),))
    assert node(world, POLICY).reasons == ("RDMA mode not set -> exclusive (a kernel argument)",)


def test_systemd_mode_reboots_for_everything() -> None:
    assert node(live(BARE, settings=OperatorSettings(mode="systemd")), POLICY).action == "reboot"


@pytest.mark.parametrize(
    "world",
    [
        live(dataclasses.replace(STATE, sync_status="")),
        dataclasses.replace(LIVE, states={}),
        dataclasses.replace(LIVE, nodes=()),
    ],
)
def test_a_node_of_which_nothing_is_known_is_unknown_and_stops(world: Live) -> None:
    assert node(world, POLICY).action == "unknown"
    assert judged(world, POLICY)[("network.disruption", "kl-a")].status == "unknown"
    assert not may_go_on(ClusterIntent(), planned(world, POLICY), ("kl-a",))


@pytest.mark.parametrize(
    ("maximum", "at_once", "waves"), [("1", 1, 4), ("3", 3, 2), ("50%", 2, 2), ("100%", 4, 1), (None, None, 1)]
)
def test_waves_of_a_pool(maximum: typing.Optional[str], at_once: typing.Optional[int], waves: int) -> None:
    (pool,) = planned(fleet(4, pools=(NodePool("p", max_unavailable=maximum),)), MORE, nodes=()).pools
    assert (pool.name, pool.at_once, pool.waves, len(pool.nodes)) == ("p", at_once, waves, 4)


def test_nodes_without_a_pool_go_one_by_one() -> None:
    (pool,) = planned(fleet(3), MORE, nodes=()).pools
    assert (pool.at_once, pool.waves) == (1, 3)
    assert describe_plan(planned(fleet(3), MORE, nodes=()))[-1].startswith(
        "default pool: 3 nodes, 1 at a time, in 3 waves"
    )


def test_a_percentage_counts_all_nodes_of_its_pool() -> None:
    half = NodePool("p", LabelSelector(expressions=(LabelExpression("row", "In", ("1",)),)), "25%")
    found = planned(fleet(8, pools=(half,)), MORE, nodes=())
    assert [(pool.name, pool.at_once, pool.waves) for pool in found.pools] == [("", 1, 4), ("p", 1, 4)]


@pytest.mark.parametrize(
    ("pools", "cause"),
    [
        (
            (NodePool("p", max_unavailable="25%"),),
            "is 25%, which allows 0 of 1 node: the operator rounds percentages down",
        ),
        ((NodePool("p", max_unavailable="0"),), "which allows 0 of 1 node"),
        ((NodePool("p", max_unavailable="all"),), "the operator accepts only a number or 1% to 100%"),
        ((NodePool("p"), NodePool("q")), "more than one SriovNetworkPoolConfig (p, q)"),
    ],
)
def test_a_turn_that_never_comes_stops(pools: tuple[NodePool, ...], cause: str) -> None:
    found = judged(live(pools=pools), MORE)[("network.drain", "pool p")]
    assert found.status == "fail"
    assert cause in found.measured


def test_a_pool_for_hardware_offload_is_none() -> None:
    assert planned(live(pools=(NodePool("p", max_unavailable="0", offload=True),)), MORE).pools[0].name == ""


def test_only_pods_with_a_virtual_function_go_in_a_drain_and_all_before_a_reboot() -> None:
    world = live(
        pods=(
            POD,
            OTHER,
            dataclasses.replace(OTHER, name="agent", owner="DaemonSet"),
            dataclasses.replace(OTHER, name="etcd", mirror=True),
        )
    )
    assert node(world, MORE).pods == ("train/job-0",)
    systemd = dataclasses.replace(world, settings=OperatorSettings(mode="systemd"))
    assert node(systemd, MORE).pods == ("train/job-0", "shop/web-1")


def test_a_budget_that_allows_nothing_stops_and_names_the_pod() -> None:
    found = judged(live(pods=(POD, OTHER), budgets=(HELD,)), MORE)[("network.drain", "kl-a")]
    assert found.status == "fail"
    assert (
        "pod train/job-0 cannot be evicted because PodDisruptionBudget train/job currently allows no eviction"
    ) in found.measured


def test_budgets_and_pods_of_a_tenant_are_named_in_a_short_text() -> None:
    pods = tuple(dataclasses.replace(POD, name=f"job-{number}") for number in range(50))
    budgets = tuple(dataclasses.replace(HELD, name=f"{number:03}" + "b" * 240) for number in range(1000))
    found = judged(live(pods=(*pods, OTHER), budgets=budgets), MORE)[("network.drain", "kl-a")]
    assert (
        "pod train/job-0 cannot be evicted because PodDisruptionBudgets train/000bbb" in found.measured
        and "and 996 more currently allow no eviction" in found.measured
    )
    assert "46 more pods are blocked by PodDisruptionBudgets that currently allow no eviction" in found.measured
    assert len(found.measured) < 6000


@pytest.mark.parametrize(
    "budget",
    [
        dataclasses.replace(HELD, allowed=1),
        dataclasses.replace(HELD, namespace="shop"),
        dataclasses.replace(HELD, selector=None),
        dataclasses.replace(HELD, selector=LabelSelector({"app": "web"})),
    ],
)
def test_a_budget_that_is_not_in_the_way(budget: Budget) -> None:
    assert may_go_on(ClusterIntent(), planned(live(pods=(POD, OTHER), budgets=(budget,)), MORE), ("kl-a",))


def test_a_pod_that_nothing_makes_again_is_a_warning() -> None:
    found = judged(live(pods=(dataclasses.replace(POD, owner=""),)), MORE)[("network.disruption", "kl-a")]
    assert (found.status, found.why) == ("warn", "The drain deletes pods that no controller recreates: train/job-0.")


def test_without_drains_nobody_waits_and_the_pods_are_named() -> None:
    world = live(
        settings=OperatorSettings(disable_drain=True),
        pods=(POD, OTHER),
        budgets=(HELD,),
        pools=(NodePool("p", max_unavailable="25%"),),
    )
    found = judged(world, MORE)
    assert (found[("network.disruption", "kl-a")].status, found[("network.drain", "default pool")].status) == (
        "warn",
        "pass",
    )
    assert (
        "These pods lose their virtual functions while they run: train/job-0"
        in found[("network.disruption", "kl-a")].why
    )
    assert describe_plan(planned(world, MORE)) == (
        "kl-a is changed, without a drain: eth2 0000:01:00.0 virtual functions 4 -> 5 (1 pod)",
        (
            "default pool: 1 node, all at once, in 1 wave; disableDrain is true: the operator"
            " cordons and drains no node, and nodes do not wait for each other"
        ),
    )


@pytest.mark.parametrize(
    ("disruption", "world", "policy", "status"),
    [
        ("none", LIVE, POLICY, "pass"),
        ("none", live(BARE), POLICY, "pass"),
        ("none", LIVE, MORE, "fail"),
        ("drain", LIVE, MORE, "pass"),
        ("drain", live(settings=OperatorSettings(mode="systemd")), MORE, "fail"),
        ("reboot", live(settings=OperatorSettings(mode="systemd")), MORE, "pass"),
    ],
)
def test_nothing_happens_that_the_intent_does_not_allow(
    disruption: Disruption, world: Live, policy: Policy, status: str
) -> None:
    found = judged(world, policy, disruption)[("network.disruption", "kl-a")]
    assert found.status == status
    assert f"rdma_cluster.disruption: {disruption}" in found.expected
    assert may_go_on(ClusterIntent(disruption=disruption), planned(world, policy), ("kl-a",)) == (status == "pass")


def test_the_refusal_names_the_key_and_the_value_that_allows_all_of_the_plan() -> None:
    nodes = (
        NodePlan("a", "drain", ("more functions",)),
        NodePlan("b", "reboot", ("firmware",)),
        NodePlan("c", "nothing"),
    )
    whole = DisruptionPlan(nodes)
    cases: typing.Sequence[tuple[Disruption, list[str]]] = (("none", ["a", "b"]), ("drain", ["b"]), ("reboot", []))
    for disruption, subjects in cases:
        cluster = ClusterIntent(disruption=disruption)
        said = list_refusals(cluster, whole, ("a", "b", "c"))
        assert [line.partition(":")[0] for line in said] == subjects
        assert all("set rdma_cluster.disruption to reboot" in line for line in said)
        assert may_go_on(cluster, whole, ("a", "b", "c")) == (said == ())
    (line,) = list_refusals(ClusterIntent(disruption="none"), DisruptionPlan(nodes[:1]), ("a",))
    assert "set rdma_cluster.disruption to drain" in line
    # what is not known is refused as well, and no value of the key allows it
    (line,) = list_refusals(
        ClusterIntent(disruption="reboot"),
        DisruptionPlan((NodePlan("a", "unknown", ("the cluster has no node with this name",)),)),
        ("a",),
    )
    assert "set rdma_cluster.disruption" not in line and "the cluster has no node with this name" in line


def test_what_users_read_first_names_the_key() -> None:
    """The first policy on ConnectX mostly changes the firmware; with the default such a plan is refused."""
    root = pathlib.Path(__file__).parents[3]
    example = yaml.safe_load((root / "inventory/example/group_vars/all.yml").read_text(encoding="utf-8"))
    assert example["rdma_cluster"]["disruption"] == "reboot" != ClusterIntent().disruption
    for path in ("README.md", "docs/guides/first_run.md", "roles/network/README.md", "docs/intent.md"):
        assert "disruption: reboot" in (root / path).read_text(encoding="utf-8"), path


def test_a_node_outside_of_the_inventory_counts() -> None:
    result = planned(LIVE, MORE, nodes=())
    (found,) = [
        item for item in check_plan(ClusterIntent(disruption="none"), result, ()) if item.check == "network.disruption"
    ]
    assert (found.subject, found.status) == ("kl-a (not in the inventory)", "fail")


ROLLING = MachinePool(
    "worker",
    LabelSelector({"kl/sriov": "yes"}),
    wanted_config="rendered-2",
    current_config="rendered-1",
    machines=3,
    updated=1,
)


@pytest.mark.parametrize(
    ("pool", "cause"),
    [
        (
            dataclasses.replace(ROLLING, paused=True),
            "MachineConfigPool worker has 1 of 3 machines on rendered-2 and is paused",
        ),
        (
            # the operator would unpause it
            dataclasses.replace(ROLLING, paused=True, current_config="rendered-2"),
            "MachineConfigPool worker is paused by a user or another program",
        ),
        (
            dataclasses.replace(ROLLING, conditions={"Degraded": "True"}, degraded=1, message="disk full"),
            "is degraded (1 machine): disk full",
        ),
    ],
)
def test_a_machine_config_pool_that_gets_no_further_stops(pool: MachinePool, cause: str) -> None:
    assert cause in judged(live(machine_pools=(pool,)), MORE)[("network.drain", "kl-a")].measured


@pytest.mark.parametrize(
    "pool",
    [
        ROLLING,
        dataclasses.replace(ROLLING, current_config="rendered-2"),
        dataclasses.replace(ROLLING, paused=True, paused_by_operator=True),
        dataclasses.replace(ROLLING, selector=LabelSelector({"role": "master"}), paused=True),
    ],
)
def test_a_machine_config_pool_that_is_not_in_the_way(pool: MachinePool) -> None:
    assert may_go_on(ClusterIntent(), planned(live(machine_pools=(pool,)), MORE), ("kl-a",))


def test_a_pool_of_the_user_s_own_wins_over_worker() -> None:
    own = dataclasses.replace(ROLLING, name="gpu")
    assert find_machine_pool(NODE, (ROLLING, own)) == own
    assert find_machine_pool(NODE, ()) is None


@pytest.mark.parametrize(
    "kind", ["Node", "SriovNetworkNodeState", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "SriovOperatorConfig"]
)
def test_what_cannot_be_read_is_unknown_and_stops(kind: str) -> None:
    found = judged(live(unread={kind: "forbidden"}), POLICY)[("network.disruption", f"cluster {kind}")]
    assert (found.status, found.measured) == ("unknown", f"{kind} objects not read: forbidden")


@pytest.mark.parametrize("kind", ["Pod", "PodDisruptionBudget", "MachineConfigPool"])
def test_what_is_in_the_way_matters_only_when_a_node_is_drained(kind: str) -> None:
    world = live(unread={kind: "forbidden"})
    assert judged(world, MORE)[("network.drain", f"cluster {kind}")].status == "unknown"
    assert may_go_on(ClusterIntent(), planned(world, POLICY), ("kl-a",))


def test_no_plan_is_unknown() -> None:
    assert [item.status for item in check_plan(ClusterIntent(), None, ("kl-a",))] == ["unknown"]
    assert [item.status for item in check_plan(ClusterIntent(), DisruptionPlan(), ("kl-a",))] == ["unknown", "pass"]


def test_the_plan_survives_the_way_through_ansible() -> None:
    result = planned(live(pods=(POD,), budgets=(HELD,)), MORE)
    assert load(DisruptionPlan, to_data(result), "plan") == result


def test_the_policy_with_the_lower_number_wins() -> None:
    first, second = (
        dataclasses.replace(POLICY, name="a", priority=10, vfs_count=2),
        dataclasses.replace(POLICY, name="b", priority=90, vfs_count=6),
    )
    assert [(item.vfs_count, item.policies) for item in find_wanted((first, second), NODE, STATE)] == [(2, ("a",))]


def test_policies_share_a_function_by_ranges() -> None:
    first = dataclasses.replace(POLICY, name="a", resource_name="x", pf_names=("eth2#0-1",), vfs_count=4)
    second = dataclasses.replace(POLICY, name="b", resource_name="y", pf_names=("eth2#2-3",), vfs_count=4)
    (wanted,) = find_wanted((first, second), NODE, STATE)
    assert wanted.groups == (
        VfGroup("b", "y", "netdevice", first=2, last=3),
        VfGroup("a", "x", "netdevice", first=0, last=1),
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (("a", "In", ("1", "2")), True),
        (("a", "NotIn", ("1",)), False),
        (("b", "NotIn", ("1",)), True),
        (("a", "Exists", ()), True),
        (("b", "DoesNotExist", ()), True),
        (("a", "Near", ("1",)), False),
    ],
)
def test_label_selectors(expression: tuple[str, str, tuple[str, ...]], expected: bool) -> None:
    assert labels_match(LabelSelector(expressions=(LabelExpression(*expression),)), {"a": "1"}) is expected


# MachineConfigs

CONFIG = HostConfig(
    "MachineConfig",
    "99-worker-linerate-memlock",
    "file /etc/crio/crio.conf.d/99-linerate-memlock.conf",
    {"machineconfiguration.openshift.io/role": "worker"},
)
KUBELET = HostConfig(
    "KubeletConfig", "linerate-worker", "topology manager single-numa-node", selector=LabelSelector({"pool": "a"})
)
WORKERS = MachinePool("worker", LabelSelector(), machines=4, config_selector=LabelSelector(dict(CONFIG.labels)))


def rolling(count: int = 4, **changes: typing.Any) -> Live:
    pool = dataclasses.replace(WORKERS, **changes)
    return fleet(count, machine_pools=(pool,), host_configs=(CONFIG,))


def of_fleet(
    world: Live, *policies: Policy, disruption: Disruption = "reboot"
) -> tuple[DisruptionPlan, dict[tuple[str, str], Finding]]:
    names = tuple(item.name for item in world.nodes)
    result = plan(world, policies, names, "openshift.io")
    return result, {
        (item.check, item.subject): item for item in check_plan(ClusterIntent(disruption=disruption), result, names)
    }


def test_machine_configs_reboot_all_nodes_of_their_pool_in_one_roll() -> None:
    world = dataclasses.replace(
        rolling(max_unavailable="50%"),
        host_configs=(CONFIG, dataclasses.replace(CONFIG, name="99-worker-linerate-kernel-arguments")),
    )
    result, found = of_fleet(world)
    assert [item.action for item in result.nodes] == ["reboot"] * 4
    assert all(len(item.reasons) == 2 and item.rolled_by == "worker" for item in result.nodes)
    assert [(pool.name, pool.at_once, pool.waves, pool.machines) for pool in result.pools] == [("worker", 2, 2, True)]
    assert (
        found["network.drain", "MachineConfigPool worker"].measured
        == "4 nodes, 2 at a time, in 2 waves, rolled once; maxUnavailable is 50%"
    )
    assert describe_plan(result)[0].startswith("n0 reboots: MachineConfig 99-worker-linerate-memlock (file /etc/crio")
    assert describe_plan(result)[-1].startswith("MachineConfigPool worker: 4 nodes")


def test_a_reboot_that_is_not_allowed_is_refused() -> None:
    _result, found = of_fleet(rolling(), disruption="drain")
    assert found["network.disruption", "n0"].status == "fail"


def test_what_is_there_already_rolls_nothing() -> None:
    result, _found = of_fleet(dataclasses.replace(rolling(), host_configs=(dataclasses.replace(CONFIG, there=True),)))
    assert ({item.action for item in result.nodes}, result.pools) == ({"nothing"}, ())


def test_the_operator_s_own_drain_comes_after_the_roll() -> None:
    result, _found = of_fleet(rolling(), MORE)
    assert "then, by the SR-IOV operator: eth2 0000:01:00.0 virtual functions 4 -> 5" in result.nodes[0].reasons
    assert [pool.machines for pool in result.pools] == [True, False]


def test_nodes_of_the_pool_that_are_not_in_the_inventory_reboot_as_well() -> None:
    result = plan(rolling(), (), ("n0",), "openshift.io")
    others = [item for item in result.nodes if not item.listed]
    assert [item.action for item in others] == ["reboot"] * 3
    said = check_plan(ClusterIntent(disruption="reboot"), result, ("n0",))
    assert any(item.subject == "n3 (not in the inventory)" and item.check == "network.disruption" for item in said)


def test_a_node_that_no_pool_brings_the_machine_config_to_is_not_passed_over() -> None:
    result, found = of_fleet(rolling(selector=LabelSelector({"row": "0"})))
    assert {item.node: item.action for item in result.nodes} == {
        "n0": "reboot",
        "n1": "unknown",
        "n2": "reboot",
        "n3": "unknown",
    }
    assert "machine_role" in found["network.disruption", "n1"].measured
    assert not may_go_on(ClusterIntent(disruption="reboot"), result, ())


def test_pods_and_budgets_hold_a_roll_and_every_pod_goes() -> None:
    world = dataclasses.replace(
        rolling(), pods=(dataclasses.replace(POD, node="n0"), dataclasses.replace(OTHER, node="n0")), budgets=(HELD,)
    )
    result, found = of_fleet(world)
    assert result.nodes[0].pods == ("train/job-0", "shop/web-1")
    assert "cannot be evicted because PodDisruptionBudget train/job" in found["network.drain", "n0"].measured


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"paused": True}, "is paused by another program or user"),
        ({"conditions": {"Degraded": "True"}, "message": "node n1 is out of sync"}, "node n1 is out of sync"),
        ({"max_unavailable": "many"}, "neither a number nor a percentage"),
    ],
)
def test_a_pool_that_cannot_roll_closes_the_gate(changes: dict[str, typing.Any], said: str) -> None:
    result, found = of_fleet(rolling(**changes))
    drain = found["network.drain", "MachineConfigPool worker"]
    assert drain.status == "fail" and said in drain.measured
    assert not may_go_on(ClusterIntent(disruption="reboot"), result, ())


def test_a_pool_that_a_stopped_run_of_ours_has_paused_can_roll() -> None:
    _result, found = of_fleet(rolling(paused=True, paused_by_us=True))
    assert found["network.drain", "MachineConfigPool worker"].status == "pass"


def test_a_pool_that_was_left_paused_before_its_roll_is_planned_to_roll() -> None:
    left = rolling(paused=True, paused_by_us=True, wanted_config="rendered-2", current_config="rendered-1")
    world = dataclasses.replace(left, host_configs=(dataclasses.replace(CONFIG, there=True),))
    result, _found = of_fleet(world)
    assert {item.action for item in result.nodes} == {
        "reboot"
    } and "a run of linerate.rdma paused MachineConfigPool worker" in result.nodes[0].reasons[0]


def test_a_kubelet_config_that_no_pool_of_the_node_takes_is_unknown_beside_a_machine_config_that_is_taken() -> None:
    result, found = of_fleet(dataclasses.replace(rolling(), host_configs=(CONFIG, KUBELET)))
    assert {item.action for item in result.nodes} == {"unknown"}
    assert (
        "selects both the node and KubeletConfig linerate-worker; see rdma_cluster.host.kubelet.pool_labels"
        in found["network.disruption", "n0"].measured
    )
    assert CONFIG.name not in found["network.disruption", "n0"].measured
    others = plan(dataclasses.replace(rolling(), host_configs=(CONFIG, KUBELET)), (), ("n0",), "openshift.io").nodes
    assert [item.action for item in others] == ["unknown", "reboot", "reboot", "reboot"]


ROLES = LabelExpression("machineconfiguration.openshift.io/role", "In", ("worker", "gpu"))
OWN = MachinePool("gpu", LabelSelector({"row": "1"}), config_selector=LabelSelector(expressions=(ROLES,)))
BASE = dataclasses.replace(WORKERS, labels={"pool": "a"})


@pytest.mark.parametrize(
    ("pools", "names"),
    [
        # a pool of the user's own takes what the operator makes for worker as well
        ((BASE, OWN), {"worker": ("99-worker-generated-kubelet",), "gpu": ("99-worker-generated-kubelet",)}),
        (
            (WORKERS, dataclasses.replace(OWN, labels={"pool": "a"})),
            {"worker": (), "gpu": ("99-gpu-generated-kubelet",)},
        ),
        ((WORKERS, OWN), {"worker": (), "gpu": ()}),
    ],
)
def test_pools_take_what_the_operator_makes_of_a_kubelet_config(
    pools: tuple[MachinePool, MachinePool], names: dict[str, tuple[str, ...]]
) -> None:
    assert {pool.name: find_rendered_configs(pool, KUBELET, pools) for pool in pools} == names


def test_the_operator_names_what_it_made_and_no_selector_takes_nothing() -> None:
    assert find_rendered_configs(
        BASE,
        dataclasses.replace(KUBELET, generated=("99-gpu-generated-kubelet", "99-worker-generated-kubelet-1")),
        (BASE,),
    ) == ("99-worker-generated-kubelet-1",)
    assert [
        find_rendered_configs(BASE, dataclasses.replace(KUBELET, selector=selector), (BASE,))
        for selector in (None, LabelSelector())
    ] == [(), ()]


def test_a_kubelet_config_for_worker_meets_that_of_a_pool_of_the_user_s_own() -> None:
    other = dataclasses.replace(KUBELET, name="performance-gpu", selector=LabelSelector({"pool": "b"}))
    pools = (BASE, dataclasses.replace(OWN, labels={"pool": "b"}))
    world = fleet(2, machine_pools=pools, host_configs=(KUBELET,), kubelet_configs=(other,))
    result, found = of_fleet(world)
    assert found["network.drain", "MachineConfigPool worker"].status == "pass"
    drain = found["network.drain", "MachineConfigPool gpu"]
    assert (
        drain.status == "fail"
        and "also selects KubeletConfig performance-gpu" in drain.measured
        and "one KubeletConfig" in drain.remedy
    )
    assert not may_go_on(ClusterIntent(disruption="reboot"), result, ())
    # a MachineConfig meets nobody
    _result, found = of_fleet(dataclasses.replace(world, host_configs=(CONFIG,)))
    assert found["network.drain", "MachineConfigPool gpu"].status == "pass"


@pytest.mark.parametrize(
    ("text", "size", "at_once"),
    [(None, 9, 1), ("3", 9, 3), ("25%", 3, 1), ("50%", 5, 2), ("0", 9, 1), ("x", 9, None), ("\u0663", 9, None)],
)
def test_max_unavailable_as_the_machine_config_operator_reads_it(
    text: typing.Optional[str], size: int, at_once: typing.Optional[int]
) -> None:
    assert find_at_once(text, size) == at_once


# Whom the plan touches, and whom it leaves alone


def told(
    world: Live,
    *policies: Policy,
    nodes: tuple[str, ...] = ("kl-a",),
    disruption: Disruption = "reboot",
    prefix: str = "openshift.io",
) -> list[tuple[str, ...]]:
    """Check, subject and status of each finding on the plan."""
    result = plan(world, policies, nodes, prefix)
    return [
        (item.check, item.subject, item.status)
        for item in check_plan(ClusterIntent(disruption=disruption), result, nodes)
    ]


NOTHING_GOES = ("network.drain", "cluster", "pass")


def test_a_cluster_that_shows_nothing_is_unknown_by_the_names_of_the_inventory() -> None:
    assert told(Live(), POLICY) == [("network.disruption", "kl-a", "unknown"), NOTHING_GOES]
    mute = dataclasses.replace(STATE, sync_status="")
    assert told(live(mute), POLICY) == [("network.disruption", "kl-a", "unknown"), NOTHING_GOES]
    # a node that is in neither the plan nor what was seen
    assert [(item.subject, item.status) for item in check_plan(ClusterIntent(), DisruptionPlan(), ("kl-a",))] == [
        ("kl-a", "unknown"),
        ("cluster", "pass"),
    ]


def test_where_the_operator_has_nothing_to_do_each_node_is_told_so() -> None:
    assert [
        (item.subject, item.status)
        for item in check_plan(ClusterIntent(disruption="none"), make_untouched_plan(("a", "b")), ("a", "b"))
    ] == [
        ("a", "pass"),
        ("b", "pass"),
        ("cluster", "pass"),
    ]


def test_nodes_of_nobody_are_left_out() -> None:
    """Others of the cluster: one that nothing happens to, one that has not reported, one without the operator."""
    world = fleet(4)
    states = {**world.states, "n2": dataclasses.replace(world.states["n2"], sync_status="")}
    del states["n3"]
    world = dataclasses.replace(world, states=states)
    assert [item.node for item in plan(world, (POLICY,), ("n0",), "openshift.io").nodes] == ["n0", "n1", "n2"]
    assert told(world, POLICY, nodes=("n0",)) == [("network.disruption", "n0", "pass"), NOTHING_GOES]


def test_a_node_that_stays_up_keeps_its_pods_whatever_holds_them() -> None:
    world = fleet(2, pods=(dataclasses.replace(POD, node="n1"),), budgets=(HELD,))
    only_first = dataclasses.replace(MORE, node_selector={**POLICY.node_selector, "row": "0"})
    found = told(
        dataclasses.replace(world, policies=()),
        only_first,
        dataclasses.replace(POLICY, name="second", node_selector={"row": "1"}),
        nodes=("n0", "n1"),
    )
    assert [(check, status) for check, subject, status in found if subject == "n1"] == [("network.disruption", "pass")]


def test_pods_of_other_nodes_go_with_theirs() -> None:
    world = live(pods=(dataclasses.replace(POD, node="kl-b"), dataclasses.replace(POD, name="job-1")))
    assert node(world, MORE).pods == ("train/job-1",)
    away = live(
        pods=(dataclasses.replace(POD, node="kl-b"),), budgets=(HELD,), settings=OperatorSettings(mode="systemd")
    )
    assert told(away, MORE) == [("network.disruption", "kl-a", "pass"), ("network.drain", "default pool", "pass")]


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, "pass"), ({"owner": ""}, "warn"), ({"owner": "", "ended": True}, "pass"), ({"ended": True}, "pass")],
)
@pytest.mark.parametrize("by_pool", [False, True])
def test_only_a_pod_that_runs_and_that_nobody_makes_again_is_lost(
    changes: dict[str, typing.Any], status: str, by_pool: bool
) -> None:
    pod = dataclasses.replace(POD, node="n0", **changes)
    world = rolling(1, machines=1) if by_pool else fleet(1)
    assert told(dataclasses.replace(world, pods=(pod,)), MORE, nodes=("n0",))[0] == ("network.disruption", "n0", status)


def test_a_roll_takes_pods_that_a_drain_would_have_left() -> None:
    plain = dataclasses.replace(POD, node="n0", requests=(), owner="")
    assert told(dataclasses.replace(rolling(1, machines=1), pods=(plain,)), POLICY, nodes=("n0",))[0] == (
        "network.disruption",
        "n0",
        "warn",
    )


@pytest.mark.parametrize("by_pool", [False, True])
def test_before_a_reboot_a_pod_that_requests_nothing_goes_as_well_and_may_be_held(by_pool: bool) -> None:
    plain = dataclasses.replace(POD, node="n0", requests=())
    there = dataclasses.replace(plain, name="job-1", node="n1")
    world = rolling(1, machines=1) if by_pool else fleet(1, settings=OperatorSettings(mode="systemd"))
    world = dataclasses.replace(world, pods=(plain, there), budgets=(HELD,))
    assert plan(world, (MORE,), ("n0",), "openshift.io").nodes[0].pods == ("train/job-0",)
    assert ("network.drain", "n0", "fail") in told(world, MORE, nodes=("n0",))


def test_without_drains_a_budget_is_in_nobody_s_way() -> None:
    world = live(settings=OperatorSettings(disable_drain=True), pods=(POD,), budgets=(HELD,))
    assert told(world, MORE) == [("network.disruption", "kl-a", "warn"), ("network.drain", "default pool", "pass")]
    assert told(world, POLICY) == [("network.disruption", "kl-a", "pass"), NOTHING_GOES]


def test_a_function_without_virtual_ones_does_not_hide_the_next() -> None:
    first = dataclasses.replace(PF, name="eth1", address="0000:00:01.0", vfs_count=0, vfs=())
    assert node(live(dataclasses.replace(STATE, interfaces=(first, PF))), MORE).action == "drain"


def test_firmware_is_right_where_the_operator_is_at_rest_on_exactly_this() -> None:
    """A card whose number of functions does not fit: the operator that has succeeded has looked at it."""
    policy = dataclasses.replace(POLICY, vendor="15b3", device="", pf_names=(), vfs_count=8, link_type="IB")
    card = dataclasses.replace(CARD, total_vfs=16, vfs_count=8, vfs=(), mtu=4092)
    bare = dataclasses.replace(STATE, wanted=(), interfaces=(card,))
    rest = dataclasses.replace(bare, wanted=find_wanted((policy,), NODE, bare))
    at_work = dataclasses.replace(rest, sync_status="InProgress")
    assert "reboot" not in node(live(rest, policies=()), policy).action
    assert node(live(at_work, policies=()), policy).action == "reboot"


def test_no_eswitch_mode_is_the_legacy_one_and_switchdev_is_another() -> None:
    systemd = OperatorSettings(mode="systemd")
    written = dataclasses.replace(STATE, wanted=(dataclasses.replace(STATE.wanted[0], eswitch_mode="legacy"),))
    assert node(live(written, settings=systemd), POLICY).action == "nothing"
    switchdev = dataclasses.replace(STATE, wanted=(dataclasses.replace(STATE.wanted[0], eswitch_mode="switchdev"),))
    assert node(live(switchdev, settings=systemd), POLICY).action == "reboot"


def test_what_could_not_be_read_has_one_finding() -> None:
    found = told(live(unread={"Node": "forbidden", "Pod": "forbidden"}), MORE)
    assert [item for item in found if item[1].startswith("cluster ")] == [
        ("network.disruption", "cluster Node", "unknown"),
        ("network.drain", "cluster Pod", "unknown"),
    ]


def test_nodes_of_a_pool_that_the_operator_does_not_know_reboot_as_well() -> None:
    found = told(
        dataclasses.replace(rolling(2, machines=2), states={"n0": dataclasses.replace(STATE, node="n0")}),
        nodes=("n0",),
        disruption="drain",
    )
    assert found == [
        ("network.disruption", "n0", "fail"),
        ("network.disruption", "n1 (not in the inventory)", "fail"),
        ("network.drain", "MachineConfigPool worker", "pass"),
    ]


def test_a_node_of_which_nothing_is_known_stays_unknown_when_its_pool_rolls() -> None:
    world = rolling(1, machines=1)
    mute = dataclasses.replace(world, states={"n0": dataclasses.replace(STATE, node="n0", sync_status="")})
    assert told(mute, nodes=("n0",))[0] == ("network.disruption", "n0", "unknown")


@pytest.mark.parametrize(
    ("configs", "changes"),
    [
        pytest.param(
            (),
            {"paused": True, "paused_by_us": True, "wanted_config": "b", "current_config": "a"},
            id="nothing is asked of the hosts",
        ),
        pytest.param(
            (dataclasses.replace(CONFIG, there=True),),
            {"wanted_config": "b", "current_config": "a"},
            id="somebody else's roll",
        ),
        pytest.param(
            (dataclasses.replace(CONFIG, there=True),),
            {"paused_by_us": True, "wanted_config": "a", "current_config": "a"},
            id="it has rolled",
        ),
    ],
)
def test_a_pool_that_this_run_does_not_roll_is_not_in_the_plan(
    configs: tuple[HostConfig, ...], changes: dict[str, typing.Any]
) -> None:
    world = dataclasses.replace(rolling(1, machines=1, **changes), host_configs=configs)
    assert told(world, nodes=("n0",), disruption="none") == [("network.disruption", "n0", "pass"), NOTHING_GOES]


def test_without_machine_config_pools_nobody_rolls() -> None:
    world = fleet(1, host_configs=(CONFIG,))
    assert told(world, nodes=("n0",)) == [("network.disruption", "n0", "pass"), NOTHING_GOES]


# What became of the roll

SUBJECT = "MachineConfigPool worker"


@pytest.mark.parametrize(
    ("roll", "status"),
    [
        (Roll("worker", 1, "b", 3, 3), "pass"),
        (Roll("worker", 0, "b", 3, 3), "pass"),
        (Roll("worker", 1, "b", 3, 2), "fail"),
        (Roll("worker", 1, "b", 2, 3), "fail"),
        (Roll("worker", 2, "b", 3, 3), "fail"),
        (Roll("worker", 1, "b", 3, 3, error="timed out"), "fail"),
        (Roll("worker", 1, "b", 3, 2, others=("n9",)), "warn"),
        (Roll("worker", 1, "b", 3, 1, others=("n9",)), "fail"),
        (Roll("worker", 2, "b", 3, 2, others=("n9",)), "fail"),
    ],
)
def test_a_roll_is_told_of_its_pool(roll: Roll, status: str) -> None:
    assert [(item.check, item.subject, item.status) for item in judge_rolls.check_rolls((roll,), "")] == [
        ("network.roll", SUBJECT, status)
    ]


def test_a_configuration_that_never_got_ready_fails_beside_what_its_pools_did() -> None:
    found = judge_rolls.check_rolls((Roll("worker", 1, "b", 3, 3),), "nothing was rendered")
    assert [(item.check, item.subject, item.status) for item in found] == [
        ("network.roll", "MachineConfigPools", "fail"),
        ("network.roll", SUBJECT, "pass"),
    ]


def test_only_a_machine_config_pool_that_nobody_saw_is_missed() -> None:
    pools = (
        PoolPlan("worker", ("a",), 1, 1, "", machines=True),
        PoolPlan("gpu", ("b",), 1, 1, "", machines=True),
        PoolPlan("", ("c",), 1, 1, ""),
    )
    nodes = (NodePlan("a", "reboot", rolled_by="worker"), NodePlan("b", "reboot", rolled_by="gpu"))
    missed = judge_rolls.report_not_rolled(DisruptionPlan(nodes, pools), (Roll("gpu", 1, "b", 1, 1),))
    assert [(item.check, item.subject, item.status) for item in missed] == [("network.roll", SUBJECT, "unknown")]
    assert list(judge_rolls.report_not_rolled(None, ())) == []


def test_a_pool_that_lost_a_node_names_its_nodes_and_labels() -> None:
    planned = DisruptionPlan(
        (NodePlan("a", "reboot", rolled_by="worker"),), (PoolPlan("worker", ("a",), 1, 1, "", machines=True),)
    )
    (found,) = judge_rolls.report_not_rolled(planned, (Roll("worker", 0, "b", 0, 1),))
    assert found.measured == "0 machines in the pool" and "had 1 node before the update (a), and has 0 now" in found.why
    assert "oc get machineconfigpool worker -o jsonpath='{.spec.nodeSelector}'" in found.remedy


def test_a_pool_that_only_its_nodes_or_only_itself_name_is_a_contradiction() -> None:
    rolled, pool = NodePlan("a", "reboot", rolled_by="worker"), PoolPlan("worker", ("a",), 1, 1, "", machines=True)
    plans = (
        # its name and its kind are others now
        DisruptionPlan((rolled,), (PoolPlan("other", ("a",), 1, 1, ""),)),
        DisruptionPlan((dataclasses.replace(rolled, rolled_by=""),), (pool,)),
        DisruptionPlan((rolled,), (dataclasses.replace(pool, nodes=()),)),
    )
    for planned in plans:
        (found,) = judge_rolls.report_not_rolled(planned, (Roll("worker", 1, "b", 1, 1),))
        assert (found.status, found.subject) == ("unknown", SUBJECT) and "contradicts itself" in found.why
        listed = "a" in {name for one in planned.pools if one.name == "worker" for name in one.nodes}
        where = "nodes a under the pool, but not the pool" if listed else "the pool under nodes a, but not these nodes"
        assert f"It lists {where} under" in found.why and found.measured == "nodes of the pool contradictory: a"
    missed = list(judge_rolls.report_not_rolled(plans[0], ()))
    assert "the run ended before it waited for the update" in missed[0].why
    # of a node about which nothing is known another finding says so
    unknown = dataclasses.replace(rolled, action="unknown", rolled_by="")
    rolls = (Roll("worker", 1, "b", 1, 1),)
    assert list(judge_rolls.report_not_rolled(DisruptionPlan((unknown,), (pool,)), rolls)) == []


IN_FORCE = dataclasses.replace(KUBELET, refusal="", there=True)
TAKEN = MachinePool(
    "worker",
    LabelSelector(),
    wanted_config="b",
    current_config="b",
    machines=2,
    updated=2,
    labels={"pool": "a"},
    config_selector=LabelSelector({"machineconfiguration.openshift.io/role": "worker"}),
    sources=("99-worker-generated-kubelet",),
)
#: of which nothing is asked
MASTER = dataclasses.replace(
    TAKEN,
    name="master",
    updated=0,
    labels={},
    sources=(),
    config_selector=LabelSelector({"machineconfiguration.openshift.io/role": "master"}),
)


@pytest.mark.parametrize(
    ("config", "changes", "status"),
    [
        pytest.param({}, {}, "pass", id="in force"),
        pytest.param({"there": False}, {}, "unknown", id="not there"),
        pytest.param({"refusal": None}, {}, "unknown", id="no word of the operator"),
        pytest.param({"refusal": "no such feature"}, {}, "fail", id="refused"),
        pytest.param({}, {"pools": ()}, "fail", id="no pool"),
        pytest.param(
            {}, {"others": (dataclasses.replace(IN_FORCE, name="theirs"),)}, "fail", id="another one on the same pool"
        ),
        pytest.param({}, {"pools": (dataclasses.replace(TAKEN, updated=1),)}, "unknown", id="under way"),
        pytest.param(
            {}, {"pools": (dataclasses.replace(TAKEN, updated=1),), "reached": ("worker",)}, "pass", id="ours have it"
        ),
        pytest.param({}, {"pools": (dataclasses.replace(TAKEN, sources=()),)}, "unknown", id="not rendered yet"),
        pytest.param({}, {"pools": (TAKEN, MASTER)}, "pass", id="a pool that does not take it is behind"),
    ],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_kubelet_config_is_told_of_by_its_name(
    config: dict[str, typing.Any],
    changes: dict[str, tuple[typing.Union[HostConfig, MachinePool, str], ...]],
    status: str,
    check_mode: bool,
) -> None:
    said: dict[str, typing.Any] = {"wanted": (dataclasses.replace(IN_FORCE, **config),), "pools": (TAKEN,), **changes}
    stand = KubeletStatus(**said)
    found = list(judge_kubelet.check_kubelet(stand, check_mode))
    assert [(item.check, item.subject, item.status) for item in found] == [
        ("network.kubelet", "KubeletConfig linerate-worker", status)
    ]


def test_each_kubelet_config_is_looked_at_though_something_was_not_read() -> None:
    stand = KubeletStatus((IN_FORCE,), (), (TAKEN,), error="forbidden")
    assert [(item.subject, item.status) for item in judge_kubelet.check_kubelet(stand, False)] == [
        ("KubeletConfig", "unknown"),
        ("KubeletConfig linerate-worker", "pass"),
    ]


def test_nodes_outside_of_the_inventory_that_get_virtual_functions_are_named() -> None:
    world = planned(live(BARE, policies=()), POLICY, nodes=("a0",))
    (found,) = (
        item for item in check_plan(ClusterIntent(disruption="none"), world, ("a0",)) if "outside" in item.subject
    )
    assert found.status == "warn" and "kl-a" in found.why and "rdma_nodes" in found.remedy
    assert not [
        item
        for item in check_plan(ClusterIntent(), planned(live(BARE, policies=()), POLICY), ("kl-a",))
        if "outside" in item.subject and "kl-a" in item.why
    ]


def test_pool_that_would_lose_limits_of_crio_has_their_remedy() -> None:
    lost = "MachineConfig 99-memlock would remove limits of CRI-O that MachineConfigPool gpu has now: nofile=1:1"
    pool = PoolPlan("gpu", ("a",), 1, None, "maxUnavailable is 1", (lost,), machines=True)
    planned = DisruptionPlan((NodePlan("a", "reboot"),), (pool,))
    (finding,) = [item for item in check_plan(ClusterIntent(), planned, ["a"]) if "MachineConfigPool" in item.subject]
    assert "add the limits of CRI-O under 'measured' to rdma_cluster.host.memlock.ulimits" in finding.remedy


def test_removed_driver_without_a_reason_is_a_complete_measured_value() -> None:
    planned = DisruptionPlan((NodePlan("a", "drain", driver="remove"),))
    (finding,) = [
        item
        for item in check_plan(ClusterIntent(disruption="reboot"), planned, ("a",))
        if item.check == "network.disruption"
    ]
    assert finding.measured == "the change removes the NIC driver (ofedDriver) from the node without a drain"
    assert "no running pod loses a device" in finding.expected
