# SPDX-License-Identifier: GPL-3.0-or-later

"""A teardown takes no virtual functions from running pods that the SR-IOV operator does not evict."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.tests.unit.run import test_undrained_changes as network
from ansible_collections.linerate.rdma.tests.unit.run.test_intents import objects_of
from ansible_collections.linerate.rdma.tests.unit.run.test_plan_read import MORE
from ansible_collections.linerate.rdma.tests.unit.run.test_removal_nodes import (
    POLICY,
    VF,
    Item,
    anywhere,
    gate,
    node,
    owned,
    settings,
    sriov,
)

NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
PF, FUNCTION = "0000:01:00.0", "0000:01:00.2"
A0 = node("a0", kind="a")
UNDRAINED = settings(disableDrain=True)
CLAIM: Item = {"resourceClaims": [{"name": "vf", "resourceClaimName": "vf"}]}


def of(owner: str, resource: str = "", address: str = FUNCTION, **spec: typing.Any) -> Item:
    """A running pod with a virtual function."""
    made = owned(resource, **spec)
    made["metadata"]["ownerReferences"][0]["kind"] = owner
    device = {"type": "pci", "version": "1.1.0", "pci": {"pci-address": address}}
    status = json.dumps([{"name": "x/y", "interface": "net1", "device-info": device}])
    made["metadata"]["annotations"] = {NETWORK_STATUS: status} if address else {}
    return made


def state(namespace: str = "sriov", vfs: bool = True, wanted: bool = True) -> Item:
    """The state of a0, whose physical function has two virtual functions of the intent."""
    group = {"policyName": "p", "resourceName": "compute", "vfRange": "0-1"}
    nic = {"pciAddress": PF, "name": "ens1", "numVfs": 2}
    reported = {**nic, "vendor": "15b3", "deviceID": "1021", "totalvfs": 8}
    if vfs:
        reported["Vfs"] = [
            {"vfID": number, "pciAddress": f"0000:01:00.{number + 1}", "driver": "mlx5_core"} for number in range(2)
        ]
    return {
        "kind": "SriovNetworkNodeState",
        "metadata": {"name": "a0", "namespace": namespace, "labels": {}},
        "spec": {"interfaces": [{**nic, "vfGroups": [group]}] if wanted else []},
        "status": {"interfaces": [reported], "syncStatus": "Succeeded"},
    }


def other_policy(namespace: str = "sriov", **selector: typing.Any) -> Item:
    """A policy that asks for the same functions and is not of the intent."""
    (made,) = (copy.deepcopy(item) for item in objects_of(sriov()) if item["kind"] == POLICY)
    made["metadata"] = {"name": "theirs", "namespace": namespace, "labels": {}, "uid": "theirs"}
    made["spec"].update(nicSelector=selector or {"rootDevices": [PF]}, numVfs=2, nodeSelector={"kind": "a"})
    return made


LEFT = {
    "a DaemonSet": (of("DaemonSet", VF), []),
    "a DaemonSet without multus": (of("DaemonSet", VF, ""), []),
    "a StatefulSet with a ResourceClaim": (of("StatefulSet", "", "", **CLAIM), []),
    "a job with functions by another device plugin": (of("Job", "nvidia.com/hostdev"), []),
    "a StatefulSet, disableDrain": (of("StatefulSet", VF), [UNDRAINED]),
    "a ReplicaSet, disableDrain": (of("ReplicaSet", VF), [UNDRAINED]),
}


@pytest.mark.parametrize("more", [(), (state(),)], ids=["unknown functions", "functions of the state"])
@pytest.mark.parametrize(("user", "settled"), LEFT.values(), ids=LEFT)
def test_a_teardown_takes_no_functions_from_pods_that_no_drain_evicts(
    user: Item, settled: list[Item], more: tuple[Item, ...]
) -> None:
    with pytest.raises(RdmaError, match=r"a0: these running pods would lose their network devices") as told:
        gate(sriov(disruption="drain"), A0, user, *settled, *more)
    assert "team-x/train" in str(told.value) and "run the teardown again" in told.value.remedy
    why = "disableDrain is true" if settled else "evicts only pods that request a resource of openshift.io"
    assert why in str(told.value)


PASSED = {
    "evicted": (of("StatefulSet", VF), [state()]),
    "a function of another NIC": (of("DaemonSet", "nvidia.com/hostdev", "0000:81:00.2"), [state()]),
    "a function that the operator did not create": (of("DaemonSet", "nvidia.com/hostdev"), [state(wanted=False)]),
    "no functions": (of("DaemonSet", "nvidia.com/hostdev"), [state(vfs=False)]),
    "no device": (of("DaemonSet", "", ""), [state()]),
    "another node": (
        {**of("DaemonSet", VF), "spec": {**of("DaemonSet", VF)["spec"], "nodeName": "b0"}},
        [node("b0", kind="b")],
    ),
    "ended": ({**of("DaemonSet", VF), "status": {"phase": "Failed"}}, [state()]),
    "another policy keeps the functions": (of("DaemonSet", "nvidia.com/hostdev"), [state(), other_policy()]),
}


@pytest.mark.parametrize(("user", "more"), PASSED.values(), ids=PASSED)
def test_other_pods_end_no_teardown(user: Item, more: list[Item]) -> None:
    gate(sriov(disruption="drain"), A0, user, *more)


def test_a_reboot_starts_pods_of_daemon_sets_again() -> None:
    systemd = settings(configurationMode="systemd")
    gate(sriov(), A0, of("DaemonSet", VF), state(), systemd)
    gate(sriov(), A0, of("StatefulSet", "", "", **CLAIM), state(), systemd)


@pytest.mark.parametrize("named", [True, False])
def test_states_and_policies_of_a_tenant_hide_no_pod(named: bool) -> None:
    intent = sriov() if named else anywhere()
    tenants = [state("team-x", vfs=False), other_policy("team-x")]
    with pytest.raises(RdmaError, match="would lose their network devices"):
        gate(intent, A0, of("DaemonSet", VF), *([state()] if named else []), *tenants)


@pytest.mark.parametrize(
    "user",
    [network.pod("DaemonSet", **{"openshift.io/igbvf": "1"}), network.claiming(), network.pod(**{"rdma/other": "1"})],
)
def test_stage_network_refuses_the_same_pods(user: Item) -> None:
    planned = network.read(MORE, Pod=(user,))
    assert "lose their network devices" in network.judge(planned, "network.drain").measured
    undrained = network.read(MORE, Pod=(user,), SriovOperatorConfig=(network.UNDRAINED,))
    assert undrained.nodes[0].pods == ("default/op-a",)
    assert dataclasses.replace(undrained.nodes[0], pods=()).blockers == ()
