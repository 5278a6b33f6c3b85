# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The decisions of the wait, on the states that real nodes of operator v1.6.0 went through (fixtures), and on states derived from them."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.operator_rules import nearest_match
from ansible_collections.linerate.rdma.plugins.module_utils._check.readiness import (
    GRACE,
    Patience,
    Target,
    World,
    judge,
    judge_node,
    judge_release,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.cluster import VfGroup
from ansible_collections.linerate.rdma.plugins.module_utils._parse import kubernetes

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
TARGET = Target("storage", ("pol1",), "openshift.io/igbvf", "default/op-net", ("kl-a",), 1)


def items(name):
    return yaml.safe_load((FIXTURES / name).read_text())["items"]


NODE = kubernetes.node(yaml.safe_load((FIXTURES / "node-worker-sriov.yaml").read_text()))
STATE = kubernetes.node_state(items("sriovnetworknodestates-igb-succeeded.yaml")[0])
POLICY = kubernetes.policy(next(item for item in items("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy"))
ATTACHMENTS = frozenset(f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items("networkattachmentdefinitions.yaml"))
READY = World({"kl-a": NODE}, {"kl-a": STATE}, {"pol1": POLICY}, ATTACHMENTS)


def state(**changes):
    return dataclasses.replace(READY, states={"kl-a": dataclasses.replace(STATE, **changes)})


def node(**changes):
    return dataclasses.replace(READY, nodes={"kl-a": dataclasses.replace(NODE, **changes)})


def look(world, target=TARGET):
    return judge_node(target, "kl-a", world)


def test_the_real_state_is_ready():
    found = look(READY).node
    assert (found.phase, found.matched, found.allocatable) == ("ready", ("0000:01:00.0",), 4)


BARE = dataclasses.replace(STATE.interfaces[0], vfs_count=0, vfs=())


@pytest.mark.parametrize(
    ("world", "detail", "suspect"),
    [
        # the lie: Succeeded of before the policy was seen
        (state(wanted=(), interfaces=(BARE,)), "has not put policy pol1 into the node's wanted state", ""),
        (state(wanted=(dataclasses.replace(STATE.wanted[0], vfs_count=2),)), "has not put policy pol1", ""),
        (state(wanted=(dataclasses.replace(STATE.wanted[0], groups=(VfGroup("other", last=3),)),)), "has not put policy pol1", ""),
        # the second lie: wanted is new, the status is not
        (state(interfaces=(BARE,)), "older than the policy", ""),
        (state(interfaces=(dataclasses.replace(STATE.interfaces[0], vfs=STATE.interfaces[0].vfs[:3]),)), "older than the policy", ""),
        (state(interfaces=()), "has not reported the node's interfaces", ""),
        (state(sync_status="InProgress"), "works (syncStatus InProgress)", ""),
        (state(sync_status=""), "works (syncStatus not set)", ""),
        (state(sync_status="Failed", last_sync_error="cannot write numvfs: EBUSY"), "cannot write numvfs: EBUSY", "sync_failed"),
        (
            state(sync_status="InProgress", desired_state="Drain_Required", current_state="Draining"),
            "drained first (wanted Drain_Required, now Draining)",
            "drain_blocked",
        ),
        # Succeeded comes 7 to 9 seconds before the kubelet offers the functions
        (node(allocatable={}), "offers no openshift.io/igbvf of 4", "not_offered"),
        (node(allocatable={"openshift.io/igbvf": 0}), "offers 0 openshift.io/igbvf of 4", "not_offered"),
        (node(ready=False), "NotReady", "node_lost"),
        (dataclasses.replace(READY, attachments=frozenset()), "NetworkAttachmentDefinition default/op-net", "no_attachment"),
        (dataclasses.replace(READY, states={}), "no SriovNetworkNodeState", ""),
        (dataclasses.replace(READY, unread={"Node": "connection refused"}), "Node not read yet: connection refused", ""),
    ],
)
def test_waiting(world, detail, suspect):
    found = look(world)
    assert found.node.phase == "waiting"
    assert detail in found.node.detail
    assert found.suspect == suspect


@pytest.mark.parametrize(
    ("world", "detail"),
    [
        (dataclasses.replace(READY, nodes={}), "the cluster has no node kl-a"),
        (dataclasses.replace(READY, policies={}), "there is no policy pol1"),
        (node(labels={}), "does not carry the policy's label kl/sriov=yes"),
    ],
)
def test_failed_at_once(world, detail):
    found = look(world).node
    assert found.phase == "failed"
    assert detail in found.detail
    assert found.remedy


def test_no_interface_is_selected_names_the_nearest():
    world = dataclasses.replace(READY, policies={"pol1": dataclasses.replace(POLICY, device="1021", pf_names=())})
    found = look(world)
    assert found.suspect == "wrong_selection"
    assert (
        "no interface of the node is selected by policy pol1: nearest is eth2 at 0000:01:00.0 (8086:10c9): deviceID is 10c9, the policy asks for 1021"
        in found.node.detail
    )


def test_too_few_and_too_many_interfaces():
    few = look(READY, dataclasses.replace(TARGET, hcas_per_node=2))
    assert "selects 1 physical functions (0000:01:00.0), the intent says 2" in few.node.detail
    second = dataclasses.replace(STATE.interfaces[0], address="0000:02:00.0")
    many = look(state(interfaces=(STATE.interfaces[0], second)))
    assert "selects 2 physical functions" in many.node.detail


def test_nearest_match_prefers_the_one_that_differs_least():
    far = dataclasses.replace(STATE.interfaces[0], address="0000:00:00.0", vendor="15b3", device="1021", name="ib0")
    near = nearest_match(dataclasses.replace(POLICY, pf_names=("eth9",)), dataclasses.replace(STATE, interfaces=(far, STATE.interfaces[0])))
    assert near.startswith("nearest is eth2")
    assert "pfNames is eth2, the policy asks for eth9" in near


def test_a_blocked_drain_names_the_budget():
    world = dataclasses.replace(state(sync_status="InProgress", desired_state="Drain_Required"), budgets=("shop/db",))
    assert "no eviction is allowed by: shop/db" in look(world).node.detail


def test_every_node_of_every_fabric_is_judged():
    targets = (TARGET, Target("compute", ("p2",), "openshift.io/mlx", "test/ib", ("kl-a", "kl-b"), 4))
    assert [(item.node.fabric, item.node.node) for item in judge(targets, READY)] == [("storage", "kl-a"), ("compute", "kl-a"), ("compute", "kl-b")]


@pytest.mark.parametrize("suspect", sorted(GRACE))
def test_patience_ends_after_the_grace_and_not_before(suspect):
    grace = GRACE[suspect][0]
    patience = Patience()
    judgement = dataclasses.replace(look(node(allocatable={})), suspect=suspect)
    assert patience.apply((judgement,), 100.0)[0].phase == "waiting"
    assert patience.wake(100.0) == grace
    assert patience.apply((judgement,), 100.0 + grace - 0.1)[0].phase == "waiting"
    (ended,) = patience.apply((judgement,), 100.0 + grace)
    assert ended.phase == "failed"
    assert ended.remedy


def test_patience_starts_again_when_the_state_passes():
    patience = Patience({"not_offered": 10.0})
    suspect = look(node(allocatable={}))
    patience.apply((suspect,), 0.0)
    patience.apply((look(READY),), 5.0)
    assert patience.wake(5.0) is None
    assert patience.apply((suspect,), 12.0)[0].phase == "waiting"
    assert patience.apply((suspect,), 22.0)[0].phase == "failed"


def test_another_suspect_starts_its_own_grace():
    patience = Patience({"not_offered": 10.0, "sync_failed": 10.0})
    patience.apply((look(node(allocatable={})),), 0.0)
    assert patience.apply((look(state(sync_status="Failed")),), 12.0)[0].phase == "waiting"


@pytest.mark.parametrize(
    ("world", "detail"),
    [
        (READY, "policy pol1 is still there"),
        (dataclasses.replace(READY, policies={}), "still wants virtual functions on 0000:01:00.0"),
        (dataclasses.replace(state(wanted=()), policies={}), "still there: 0000:01:00.0 has 4"),
        (dataclasses.replace(state(wanted=(), interfaces=(BARE,)), policies={}), "still offers 4 openshift.io/igbvf"),
    ],
)
def test_release_waits_for_each_layer(world, detail):
    (found,) = judge_release((TARGET,), world)
    assert found.node.phase == "waiting"
    assert detail in found.node.detail


def test_released():
    world = dataclasses.replace(
        state(wanted=(), interfaces=(BARE,)), policies={}, nodes={"kl-a": dataclasses.replace(NODE, allocatable={"openshift.io/igbvf": 0})}
    )
    assert judge_release((TARGET,), world)[0].node.phase == "ready"


def test_release_leaves_what_another_policy_wants():
    other = dataclasses.replace(STATE.wanted[0], groups=(VfGroup("theirs", last=3),))
    world = dataclasses.replace(state(wanted=(other,)), policies={}, nodes={"kl-a": dataclasses.replace(NODE, allocatable={})})
    assert judge_release((TARGET,), world)[0].node.phase == "ready"
