# SPDX-License-Identifier: GPL-3.0-or-later

"""The decisions of the wait, on the states that real nodes of operator v1.6.0 went through (fixtures), and on states
derived from them."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.device_plugin import (
    why_not_offered,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.sriov.policies import nearest_match
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.grace import GRACE, SuspectTimer
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov import (
    BOOTS,
    LOSSES,
    judge,
    judge_node,
    judge_release,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov_state import describe_unwritten
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import (
    ClusterState,
    Judgement,
    NodeHistory,
    Target,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    Budget,
    ClusterPod,
    LabelSelector,
    MachinePool,
    NodePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    VfGroup,
    WantedInterface,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core as kubernetes
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import PodState
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nvidia_network_operator import (
    parse_attachment,
)

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
TARGET = Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", ("kl-a",), 1)


def items(name: str) -> list[dict[str, typing.Any]]:
    answer: list[dict[str, typing.Any]] = yaml.safe_load((FIXTURES / name).read_text())["items"]
    return answer


NODE = kubernetes.parse_node(yaml.safe_load((FIXTURES / "node-worker-sriov.yaml").read_text()))
STATE = sriov_operator.node_state(items("sriovnetworknodestates-igb-succeeded.yaml")[0])
POLICY = sriov_operator.parse_policy(
    next(item for item in items("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy")
)
ATTACHMENTS = {
    f"{item['metadata']['namespace']}/{item['metadata']['name']}": parse_attachment(item)
    for item in items("networkattachmentdefinitions.yaml")
}
READY = ClusterState({"kl-a": NODE}, {"kl-a": STATE}, {"pol1": POLICY}, ATTACHMENTS)


def state(**changes: typing.Any) -> ClusterState:
    return dataclasses.replace(READY, states={"kl-a": dataclasses.replace(STATE, **changes)})


def node(**changes: typing.Any) -> ClusterState:
    return dataclasses.replace(READY, nodes={"kl-a": dataclasses.replace(NODE, **changes)})


def look(world: ClusterState, target: Target = TARGET) -> Judgement:
    """Where kl-a stands; whatever is said is said of it and of its fabric."""
    found = judge_node(target, "kl-a", world)
    assert (found.node.fabric, found.node.node) == (target.fabric, "kl-a")
    return found


def look_at_release(world: ClusterState) -> Judgement:
    (found,) = judge_release((TARGET,), world)
    assert (found.node.fabric, found.node.node) == ("storage", "kl-a")
    return found


def test_the_real_state_is_ready() -> None:
    found = look(READY).node
    assert (found.phase, found.matched, found.allocatable) == ("ready", ("0000:01:00.0",), 4)


@pytest.mark.parametrize(
    ("allocatable", "said"),
    [
        ({}, "The device plugin does not run on the node, or its configuration does not contain this resource."),
        (
            {"nvidia.com/igbvf": 4},
            "The cluster offers nvidia.com/igbvf, but the intent expects the prefix openshift.io.",
        ),
        (
            {"openshift.io/igbvf": 3},
            (
                "The node has all 4 functions. The device plugin does not detect some of them, or reports them as"
                " unhealthy."
            ),
        ),
        (
            {"openshift.io/igbvf": 5},
            "The device plugin includes functions in this resource that do not belong to this fabric.",
        ),
    ],
)
def test_why_virtual_functions_are_not_offered_is_what_stage_virtual_functions_says(
    allocatable: dict[str, int], said: str
) -> None:
    world = node(allocatable=allocatable)
    cause, remedy = why_not_offered(world.nodes["kl-a"], "openshift.io/igbvf", 4)
    found = look(world)
    assert (cause, found.suspect) == (said, "not_offered")
    assert found.node.detail.endswith(cause) and found.node.remedy == remedy != ""
    # a node that is lost offers nothing, whatever its device plugin does
    lost = look(node(allocatable=allocatable, ready=False))
    assert (lost.suspect, lost.node.remedy) == ("node_lost", "") and cause not in lost.node.detail


(PF,), (WANTED,) = STATE.interfaces, STATE.wanted
BARE = dataclasses.replace(PF, vfs_count=0, vfs=())


def wanted(*items: WantedInterface) -> ClusterState:
    """Somebody has asked for these; the status has not moved."""
    return state(wanted=items, interfaces=(BARE,))


def grouped(**changes: typing.Any) -> ClusterState:
    return wanted(dataclasses.replace(WANTED, groups=(dataclasses.replace(WANTED.groups[0], **changes),)))


@pytest.mark.parametrize(
    ("world", "detail", "suspect"),
    [
        # the lie: Succeeded of before the policy was seen
        (
            wanted(),
            "policy pol1 into the desired state of the node yet: it does not contain 0000:01:00.0",
            "not_seen",
        ),
        (wanted(dataclasses.replace(WANTED, vfs_count=2)), "numVfs is 2, and the policy requires 4", "not_seen"),
        (wanted(dataclasses.replace(WANTED, vfs_count=6)), "numVfs is 6, and the policy requires 4", "not_seen"),
        (wanted(dataclasses.replace(WANTED, mtu=9000)), "mtu is 9000, and the policy requires 0", "not_seen"),
        (wanted(dataclasses.replace(WANTED, link_type="IB")), "linkType is IB, and the policy requires ", "not_seen"),
        (
            wanted(dataclasses.replace(WANTED, groups=(VfGroup("other", last=3),))),
            "0000:01:00.0 is configured by other instead",
            "not_seen",
        ),
        (grouped(rdma=True), "isRdma is True, and the policy requires False", "not_seen"),
        (grouped(device_type="vfio-pci"), "deviceType is vfio-pci, and the policy requires netdevice", "not_seen"),
        (grouped(resource="x"), "resourceName is x, and the policy requires igbvf", "not_seen"),
        (grouped(mtu=9000), "mtu of the virtual functions is 9000, and the policy requires 0", "not_seen"),
        (grouped(last=1), "vfRange is 0-1, and the policy requires 0-3", "not_seen"),
        (
            dataclasses.replace(READY, pools={"p": NodePool("p", rdma_mode="exclusive")}),
            "RDMA mode is not set, and SriovNetworkPoolConfig p requires exclusive",
            "not_seen",
        ),
        # the second lie: wanted is new, the status is not
        (
            dataclasses.replace(state(wanted_rdma_mode="exclusive"), pools={"p": NodePool("p", rdma_mode="exclusive")}),
            "older than the policy: RDMA mode shared -> exclusive",
            "sync_stuck",
        ),
        (state(interfaces=(BARE,)), "older than the policy: 0000:01:00.0 virtual functions 0 -> 4", "sync_stuck"),
        (
            state(interfaces=(dataclasses.replace(PF, vfs=PF.vfs[:3]),)),
            "older than the policy: 0000:01:00.0 3 of 4",
            "sync_stuck",
        ),
        (
            state(
                interfaces=(dataclasses.replace(PF, vfs=(dataclasses.replace(PF.vfs[0], driver=None), *PF.vfs[1:])),)
            ),
            "driver of virtual",
            "sync_stuck",
        ),
        (state(interfaces=()), "has not reported the interfaces of the node yet", "sync_stuck"),
        (state(sync_status="InProgress"), "is working (syncStatus InProgress)", "sync_stuck"),
        (state(sync_status=""), "is working (syncStatus not set)", "sync_stuck"),
        (
            state(sync_status="Failed", last_sync_error="cannot write numvfs: EBUSY"),
            "cannot write numvfs: EBUSY",
            "sync_failed",
        ),
        (
            state(sync_status="InProgress", desired_state="Drain_Required", current_state="Draining"),
            "drained first (desired state Drain_Required, current state Draining)",
            "drain_blocked",
        ),
        # Succeeded comes 7 to 9 seconds before the kubelet offers the functions
        (node(allocatable={}), "the node does not offer openshift.io/igbvf (expected: 4)", "not_offered"),
        (node(allocatable={"openshift.io/igbvf": 0}), "offers 0 openshift.io/igbvf instead of 4", "not_offered"),
        (
            node(ready=False, not_ready="Kubelet stopped posting node status."),
            "NotReady: Kubelet stopped posting node status.",
            "node_lost",
        ),
        (dataclasses.replace(READY, attachments={}), "NetworkAttachmentDefinition default/op-net", "no_attachment"),
        (dataclasses.replace(READY, states={}), "has not created a SriovNetworkNodeState", "not_seen"),
        (
            dataclasses.replace(READY, unread={"Node": "connection refused"}),
            "Node not read yet: connection refused",
            "",
        ),
    ],
)
def test_waiting(world: ClusterState, detail: str, suspect: str) -> None:
    found = look(world)
    assert found.node.phase == "waiting"
    assert detail in found.node.detail
    assert found.suspect == suspect


@pytest.mark.parametrize(
    ("world", "detail"),
    [
        (dataclasses.replace(READY, nodes={}), "the cluster has no node kl-a"),
        (dataclasses.replace(READY, policies={}), "policy pol1 does not exist"),
        (node(labels={}), "does not have the label kl/sriov=yes of the policy"),
    ],
)
def test_failed_at_once(world: ClusterState, detail: str) -> None:
    found = look(world).node
    assert found.phase == "failed"
    assert detail in found.detail
    assert found.remedy


def test_no_interface_is_selected_names_the_nearest() -> None:
    world = dataclasses.replace(READY, policies={"pol1": dataclasses.replace(POLICY, device="1021", pf_names=())})
    found = look(world)
    assert found.suspect == "wrong_selection"
    assert (
        "policy pol1 selects no interface of the node: the closest match is eth2 at 0000:01:00.0"
        " (8086:10c9): deviceID is 10c9, and the policy requires 1021"
    ) in found.node.detail


def test_too_few_and_too_many_interfaces() -> None:
    few = look(READY, dataclasses.replace(TARGET, hcas_per_node=2))
    assert "selects 1 physical function (0000:01:00.0), but the intent requires 2" in few.node.detail
    second = dataclasses.replace(STATE.interfaces[0], address="0000:02:00.0")
    many = look(state(interfaces=(STATE.interfaces[0], second)))
    assert "selects 2 physical functions" in many.node.detail


def test_nearest_match_prefers_the_one_that_differs_least() -> None:
    far = dataclasses.replace(STATE.interfaces[0], address="0000:00:00.0", vendor="15b3", device="1021", name="ib0")
    near = nearest_match(
        dataclasses.replace(POLICY, pf_names=("eth9",)),
        dataclasses.replace(STATE, interfaces=(far, STATE.interfaces[0])),
    )
    assert near.startswith("the closest match is eth2")
    assert "pfNames is eth2, and the policy requires eth9" in near


POD = ClusterPod("db-0", "shop", "kl-a", {"app": "db"}, ("openshift.io/igbvf",), "StatefulSet")
BUDGET = Budget("db", "shop", 0, LabelSelector({"app": "db"}))
ROLLING = MachinePool(
    "worker", LabelSelector(), paused=True, wanted_config="b", current_config="a", machines=3, updated=1
)


def drained(
    current: str = "Draining", desired: str = "Drain_Required", **changes: dict[str, typing.Any]
) -> ClusterState:
    return dataclasses.replace(state(sync_status="InProgress", desired_state=desired, current_state=current), **changes)


@pytest.mark.parametrize(
    ("world", "detail", "suspect"),
    [
        (
            drained(),
            "the node is drained first (desired state Drain_Required, current state Draining)",
            "drain_blocked",
        ),
        (drained(desired="Reboot_Required"), "the node is drained and rebooted first", "drain_blocked"),
        (
            drained(pods={"kl-a": (POD,)}, budgets={"shop/db": BUDGET}),
            ("pod shop/db-0 cannot be evicted because PodDisruptionBudget shop/db currently allows no eviction"),
            "drain_held",
        ),
        (
            drained(pods={"kl-a": (POD,)}, budgets={"shop/db": dataclasses.replace(BUDGET, allowed=1)}),
            "current state Draining)",
            "drain_blocked",
        ),
        (
            drained(blind={"PodDisruptionBudget": "forbidden"}),
            "PodDisruptionBudgets could not be read: forbidden",
            "drain_blocked",
        ),
        (
            drained("Idle"),
            (
                "the node waits for its turn: the default of the operator for nodes without a"
                " SriovNetworkPoolConfig is 1 node at a time"
            ),
            "",
        ),
        (
            drained("Idle", pools={"p": NodePool("p", max_unavailable="25%")}),
            "which allows 0 of 1 node: the operator rounds percentages down",
            "no_turn",
        ),
        (
            drained(machine_pools={"worker": ROLLING}),
            "MachineConfigPool worker has 1 of 3 machines on b and is paused",
            "pool_held",
        ),
        (
            drained(machine_pools={"worker": dataclasses.replace(ROLLING, paused=False)}),
            "MachineConfigPool worker has 1 of 3 machines on b",
            "",
        ),
        (drained("DrainComplete"), "current state DrainComplete", ""),
    ],
)
def test_a_drain_says_what_it_waits_for(world: ClusterState, detail: str, suspect: str) -> None:
    found = look(world)
    assert detail in found.node.detail
    assert (found.node.phase, found.suspect) == ("waiting", suspect)


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"paused": False}, "waiting"),
        ({"paused": False, "current_config": "b", "conditions": {"Updating": "True"}}, "waiting"),
        ({"paused": False, "current_config": "b", "conditions": {"Updated": "True"}}, "ready"),
        # somebody keeps it on purpose, or it gets no further: the node stays up
        ({"paused": True}, "ready"),
        ({"paused": False, "conditions": {"Degraded": "True"}}, "ready"),
    ],
)
def test_a_node_that_its_machine_config_pool_may_still_reboot_is_not_ready(
    changes: dict[str, typing.Any], phase: str
) -> None:
    found = look(dataclasses.replace(READY, machine_pools={"worker": dataclasses.replace(ROLLING, **changes)})).node
    assert found.phase == phase
    assert ("may reboot once more: MachineConfigPool worker has 1 of 3 machines on b" in found.detail) == (
        phase == "waiting"
    )


def test_a_pool_that_waits_for_a_foreign_node_does_not_hold_a_node_that_is_through() -> None:
    # the pool says Updating as long as any of its nodes is NotReady or cordoned [machine-config-operator
    # calculateStatus]
    same: dict[str, typing.Any] = {}
    for changes in (same, {"current_config": "b"}):
        pool = dataclasses.replace(ROLLING, paused=False, conditions={"Updating": "True"}, **changes)
        for config, phase in (("b", "ready"), ("a", "waiting"), ("", "waiting")):
            own = dataclasses.replace(NODE, machine_config=config)
            assert (
                look(dataclasses.replace(READY, nodes={"kl-a": own}, machine_pools={"worker": pool})).node.phase
                == phase
            )


def test_a_node_that_reboots_is_given_the_time() -> None:
    away = dataclasses.replace(NODE, ready=False)
    assert look(drained("DrainComplete", "Reboot_Required", nodes={"kl-a": away})).suspect == "rebooting"
    assert look(drained("DrainComplete", nodes={"kl-a": away})).suspect == "node_lost"
    assert look(drained("Draining", nodes={"kl-a": away})).suspect == "node_lost"


@pytest.mark.parametrize(
    ("changes", "detail", "suspect"),
    [
        ({"daemons": {}}, "the pod of the config daemon is not ready: it does not exist on the node", "daemon_down"),
        (
            {"daemons": {"kl-a": ("d", PodState("waiting", "CrashLoopBackOff: x", "container"))}},
            "CrashLoopBackOff",
            "daemon_down",
        ),
        ({"daemons": {"kl-a": ("d", PodState("ready", "Ready"))}}, "is working (syncStatus InProgress)", "sync_stuck"),
        (
            {"logs": {"kl-a": "cannot allocate memory"}},
            "the log of the config daemon contains: cannot allocate memory",
            "sync_failing",
        ),
    ],
)
def test_a_sync_that_takes_long_says_what_the_daemon_does(
    changes: dict[str, typing.Any], detail: str, suspect: str
) -> None:
    found = look(dataclasses.replace(state(sync_status="InProgress"), **changes))
    assert detail in found.node.detail
    assert found.suspect == suspect


NO_VECTORS = (
    "cannot configure sriov interfaces: write /sys/bus/pci/devices/0000:17:00.0/sriov_numvfs: no space left on device"
)


@pytest.mark.parametrize(
    ("error", "log", "detail"),
    [
        (NO_VECTORS, "", f"the config daemon failed: {NO_VECTORS}. The function has no interrupt vectors (MSI-X) left"),
        # release 1.6.0 reports no cause
        (
            "cannot configure sriov interfaces",
            NO_VECTORS,
            (
                "cannot configure sriov interfaces; the log of the config daemon contains:"
                f" {NO_VECTORS}. The function has no"
            ),
        ),
        (
            "",
            NO_VECTORS,
            f"no reason reported; the log of the config daemon contains: {NO_VECTORS}. The function has no",
        ),
    ],
)
def test_a_failed_sync_has_the_remedy_of_its_error(error: str, log: str, detail: str) -> None:
    world = dataclasses.replace(state(sync_status="Failed", last_sync_error=error), logs={"kl-a": log})
    found = look(world)
    assert (found.suspect, detail in found.node.detail) == ("sync_failed", True)
    assert "msix_vec_per_pf_max" in found.node.remedy
    (named,) = SuspectTimer().apply([found], 0.0)
    assert named.remedy == found.node.remedy


def test_an_unknown_error_of_a_failed_sync_keeps_the_general_remedy() -> None:
    found = look(
        dataclasses.replace(
            state(sync_status="Failed", last_sync_error="something new"), logs={"kl-a": "something else"}
        )
    )
    assert found.node.detail == "the config daemon failed: something new"
    (named,) = SuspectTimer().apply([found], 0.0)
    assert named.remedy == GRACE["sync_failed"][1]


def test_the_log_of_a_sync_that_takes_long_has_its_remedy() -> None:
    found = look(
        dataclasses.replace(
            state(sync_status="InProgress"), logs={"kl-a": "mellanox device detected when in lockdown mode"}
        )
    )
    assert found.suspect == "sync_failing" and "locked down, for example by secure boot" in found.node.detail
    assert "disablePlugins" in found.node.remedy


def test_a_reboot_loop_is_counted_and_ends() -> None:
    working = state(sync_status="InProgress")
    once = dataclasses.replace(working, histories={"kl-a": NodeHistory(2, "b", True, boots=1)})
    twice = dataclasses.replace(working, histories={"kl-a": NodeHistory(2, "c", True, boots=2)})
    assert look(once).node.phase == "waiting"
    found = look(twice).node
    assert found.phase == "failed"
    assert found.detail.startswith(
        "the node booted 2 times since the operator last changed the desired state of the node"
        " (generation 2) and made no progress: the config"
    )
    # the MachineConfigPool reboots it as well
    assert (
        look(
            dataclasses.replace(twice, machine_pools={"worker": dataclasses.replace(ROLLING, paused=False)})
        ).node.phase
        == "waiting"
    )


def test_a_node_that_comes_and_goes_ends() -> None:
    found = look(
        dataclasses.replace(state(sync_status="InProgress"), histories={"kl-a": NodeHistory(2, "a", True, losses=3)})
    ).node
    assert found.phase == "failed"
    assert "changed from Ready to NotReady 3 times" in found.detail


def test_what_a_node_went_through_does_not_matter_once_it_is_ready() -> None:
    assert (
        look(dataclasses.replace(READY, histories={"kl-a": NodeHistory(2, "a", True, boots=9, losses=9)})).node.phase
        == "ready"
    )


def test_two_policies_on_one_function_are_both_seen() -> None:
    mine = dataclasses.replace(POLICY, pf_names=("eth2#0-1",))
    groups = (dataclasses.replace(WANTED.groups[0], last=1), VfGroup("other", "x", first=2, last=5))
    both = dataclasses.replace(WANTED, vfs_count=6, mtu=9000, groups=groups)
    assert describe_unwritten(mine, dataclasses.replace(STATE, wanted=(both,)), ("0000:01:00.0",)) == ""


def test_every_node_of_every_fabric_is_judged() -> None:
    targets = (TARGET, Target("compute", ("p2",), "openshift.io/mlx", "test/ib", ("kl-a", "kl-b"), 4))
    assert [(item.node.fabric, item.node.node) for item in judge(targets, READY)] == [
        ("storage", "kl-a"),
        ("compute", "kl-a"),
        ("compute", "kl-b"),
    ]


@pytest.mark.parametrize(
    "suspect", sorted(name for name, (seconds, _remedy) in GRACE.items() if math.isfinite(seconds))
)
def test_patience_ends_after_the_grace_and_not_before(suspect: str) -> None:
    grace = GRACE[suspect][0]
    patience = SuspectTimer()
    judgement = dataclasses.replace(look(node(allocatable={})), suspect=suspect)
    (first,) = patience.apply((judgement,), 100.0)
    # a wait that ends before the patience does knows the next step as well
    assert (first.phase, first.remedy) == ("waiting", judgement.node.remedy or GRACE[suspect][1])
    assert patience.wake(100.0) == grace
    assert patience.apply((judgement,), 100.0 + grace - 0.1)[0].phase == "waiting"
    (ended,) = patience.apply((judgement,), 100.0 + grace)
    assert ended.phase == "failed"
    assert ended.remedy


def test_a_driver_that_is_built_on_the_node_takes_its_time() -> None:
    patience = SuspectTimer()
    judgement = dataclasses.replace(look(node(allocatable={})), suspect="part")
    patience.apply((judgement,), 0.0)
    (later,) = patience.apply((judgement,), 86400.0)
    assert later.phase == "waiting" and later.remedy


def test_patience_starts_again_when_the_state_passes() -> None:
    patience = SuspectTimer({"not_offered": 10.0})
    suspect = look(node(allocatable={}))
    patience.apply((suspect,), 0.0)
    patience.apply((look(READY),), 5.0)
    assert patience.wake(5.0) is None
    assert patience.apply((suspect,), 12.0)[0].phase == "waiting"
    assert patience.apply((suspect,), 22.0)[0].phase == "failed"


def test_another_suspect_starts_its_own_grace() -> None:
    patience = SuspectTimer({"not_offered": 10.0, "sync_failed": 10.0})
    patience.apply((look(node(allocatable={})),), 0.0)
    assert patience.apply((look(state(sync_status="Failed")),), 12.0)[0].phase == "waiting"


@pytest.mark.parametrize(
    ("world", "detail"),
    [
        (READY, "policy pol1 still exists"),
        (dataclasses.replace(READY, policies={}), "still contains virtual functions on 0000:01:00.0"),
        (dataclasses.replace(state(wanted=()), policies={}), "virtual functions still exist: 0000:01:00.0 has 4"),
        (dataclasses.replace(state(wanted=(), interfaces=(BARE,)), policies={}), "still offers 4 openshift.io/igbvf"),
    ],
)
def test_release_waits_for_each_layer(world: ClusterState, detail: str) -> None:
    found = look_at_release(world)
    assert found.node.phase == "waiting"
    assert detail in found.node.detail


def test_release_says_what_a_drain_waits_for() -> None:
    world = dataclasses.replace(drained(pods={"kl-a": (POD,)}, budgets={"shop/db": BUDGET}), policies={})
    world = dataclasses.replace(world, states={"kl-a": dataclasses.replace(world.states["kl-a"], wanted=())})
    found = look_at_release(world)
    assert found.suspect == "drain_held"
    assert "pod shop/db-0 cannot be evicted because PodDisruptionBudget shop/db" in found.node.detail


def test_released() -> None:
    world = dataclasses.replace(
        state(wanted=(), interfaces=(BARE,)),
        policies={},
        nodes={"kl-a": dataclasses.replace(NODE, allocatable={"openshift.io/igbvf": 0})},
    )
    assert look_at_release(world).node.phase == "ready"


def test_a_number_of_ours_that_can_not_be_read_is_neither_offered_nor_gone() -> None:
    odd = dataclasses.replace(NODE, allocatable={}, unread={"openshift.io/igbvf": "four"})
    found = look(dataclasses.replace(READY, nodes={"kl-a": odd})).node
    assert found.phase == "waiting" and "reports 'four' as the number of openshift.io/igbvf" in found.detail
    left = look_at_release(ClusterState({"kl-a": odd}))
    assert (left.node.phase, left.node.detail) == ("waiting", "the node still offers four openshift.io/igbvf")


def test_release_leaves_what_another_policy_wants() -> None:
    other = dataclasses.replace(STATE.wanted[0], groups=(VfGroup("theirs", last=3),))
    world = dataclasses.replace(
        state(wanted=(other,)), policies={}, nodes={"kl-a": dataclasses.replace(NODE, allocatable={})}
    )
    assert look_at_release(world).node.phase == "ready"


@pytest.mark.parametrize(
    ("world", "matched"),
    [
        pytest.param(READY, True, id="all is there"),
        pytest.param(dataclasses.replace(READY, states={}), False, id="no state"),
        pytest.param(state(interfaces=()), False, id="no interface reported"),
        pytest.param(wanted(), True, id="not seen by the operator"),
        pytest.param(state(sync_status="InProgress"), True, id="at work"),
        pytest.param(state(interfaces=(BARE,)), True, id="not made"),
        pytest.param(node(allocatable={"openshift.io/igbvf": 3}), True, id="not offered"),
    ],
)
def test_what_is_missing_on_a_lost_node_is_the_node(world: ClusterState, matched: bool) -> None:
    """Whatever it lacks, the time that is given to it is that of a lost node, and what it has is told all the same."""
    offered = world.nodes["kl-a"].allocatable.get("openshift.io/igbvf")
    lost = look(
        dataclasses.replace(
            world,
            nodes={"kl-a": dataclasses.replace(world.nodes["kl-a"], ready=False, not_ready="its kubelet is silent")},
        )
    )
    assert (lost.node.phase, lost.suspect) == ("waiting", "node_lost")
    assert "the node is NotReady: its kubelet is silent" in lost.node.detail
    assert lost.node.matched == (("0000:01:00.0",) if matched else ())
    assert lost.node.allocatable == (
        offered if "all objects exist" in lost.node.detail or "offers" in lost.node.detail else None
    )
    assert "NotReady" not in look(world).node.detail


@pytest.mark.parametrize(
    ("world", "offered"),
    [
        (state(sync_status="Failed"), None),
        (drained(), None),
        (node(allocatable={"openshift.io/igbvf": 3}), 3),
        (dataclasses.replace(READY, attachments={}), 4),
        (dataclasses.replace(READY, machine_pools={"worker": dataclasses.replace(ROLLING, paused=False)}), 4),
    ],
)
def test_a_wait_tells_which_functions_are_meant_and_what_the_node_offers(
    world: ClusterState, offered: typing.Optional[int]
) -> None:
    found = look(world).node
    assert (found.phase, found.matched, found.allocatable) == ("waiting", ("0000:01:00.0",), offered)


def test_link_types_are_the_same_in_capitals_or_not() -> None:
    policy = dataclasses.replace(POLICY, link_type="eth")
    as_written = dataclasses.replace(STATE, wanted=(dataclasses.replace(WANTED, link_type="ETH"),))
    assert describe_unwritten(policy, as_written, ("0000:01:00.0",)) == ""


def test_nodes_of_two_pools_have_a_turn_each() -> None:
    """The node of one pool may never go down, and is no reason to call that of another pool stuck."""
    worlds = drained("Idle")
    nodes = {
        name: dataclasses.replace(NODE, name=name, labels={**NODE.labels, "pool": name}) for name in ("kl-a", "kl-b")
    }
    states = dict.fromkeys(nodes, worlds.states["kl-a"])
    pools = {
        name: NodePool(name, selector=LabelSelector({"pool": name}), max_unavailable=most)
        for name, most in (("kl-a", "25%"), ("kl-b", "1"))
    }
    target = dataclasses.replace(TARGET, nodes=("kl-a", "kl-b"))
    found = judge((target,), dataclasses.replace(worlds, nodes=nodes, states=states, pools=pools))
    assert [(item.node.node, item.suspect) for item in found] == [("kl-a", "no_turn"), ("kl-b", "")]


def test_a_reboot_waits_for_pods_without_virtual_functions_as_well() -> None:
    plain = dataclasses.replace(POD, requests=())
    for desired, suspect in (("Reboot_Required", "drain_held"), ("Drain_Required", "drain_blocked")):
        assert (
            look(drained("Draining", desired, pods={"kl-a": (plain,)}, budgets={"shop/db": BUDGET})).suspect == suspect
        )


def test_a_release_that_was_not_read_is_no_release() -> None:
    gone = dataclasses.replace(
        state(wanted=(), interfaces=(BARE,)), policies={}, nodes={"kl-a": dataclasses.replace(NODE, allocatable={})}
    )
    assert look_at_release(gone).node.phase == "ready"
    unread = look_at_release(dataclasses.replace(gone, unread={"Node": "connection refused"})).node
    assert (unread.phase, unread.detail) == ("waiting", "Node not read yet: connection refused")


def test_a_release_that_the_daemon_fails_is_suspect_and_one_of_a_node_that_is_gone_is_over() -> None:
    failed = dataclasses.replace(state(wanted=(), sync_status="Failed", last_sync_error="EBUSY"), policies={})
    found = look_at_release(failed)
    assert (found.node.phase, found.suspect, found.node.detail) == (
        "waiting",
        "sync_failed",
        "the config daemon failed: EBUSY",
    )
    assert look_at_release(ClusterState()).node.phase == "ready"


def test_a_release_waits_for_the_turn_of_the_node() -> None:
    idle = drained("Idle", policies={}, pools={"p": NodePool("p", max_unavailable="25%")})
    found = look_at_release(
        dataclasses.replace(idle, states={"kl-a": dataclasses.replace(idle.states["kl-a"], wanted=())})
    )
    assert (found.node.phase, found.suspect) == ("waiting", "no_turn")


def test_patience_is_not_asked_for_by_a_node_that_was_never_suspect() -> None:
    patience = SuspectTimer()
    (ready,) = patience.apply((look(READY),), 0.0)
    assert (ready.phase, patience.wake(0.0)) == ("ready", None)
    patience.apply((look(node(allocatable={})),), 0.0)
    assert patience.wake(10_000.0) == 0.0


def test_a_node_that_was_just_met_has_gone_through_nothing() -> None:
    """The first boot and the first losses that are seen are not the last ones that it may have."""
    met, working = NodeHistory(), state(sync_status="InProgress")
    assert not met.ready
    for seen in (
        dataclasses.replace(met, boots=met.boots + BOOTS - 1),
        dataclasses.replace(met, losses=met.losses + LOSSES - 1),
    ):
        assert look(dataclasses.replace(working, histories={"kl-a": seen})).node.phase == "waiting"
