# SPDX-License-Identifier: GPL-3.0-or-later

"""An upgrade of the SR-IOV network operator restarts its daemons on the nodes without a drain. With configurationMode
systemd it can reboot each of them: the run then asks for these nodes, as stage network does.
"""

from __future__ import annotations

import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import OperatorUpgrade
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect
from ansible_collections.linerate.rdma.plugins.modules import helm_release_plan
from ansible_collections.linerate.rdma.tests.unit.run.test_driver_plan import MISSING, Cluster, Data, node, pod
from ansible_collections.linerate.rdma.tests.unit.run.test_operator_upgrades import RELEASE, WANTED, bare_pod

INVENTORY = ("a0", "a1", "plain")
OTHER = "other-team (not in the inventory)"
NODES = tuple(node(name, {"pool": "x"}) for name in (*INVENTORY, "other-team"))
UPGRADE = OperatorUpgrade("sriov-network-operator", "chart 1.5.0 -> 1.6.0", namespace="sriov")
DRAIN, REBOOT = ClusterIntent(disruption="drain"), ClusterIntent(disruption="reboot")
SERIAL: Data = {"metadata": {"name": "one"}, "spec": {"maxUnavailable": 1, "nodeSelector": {"matchLabels": {}}}}


def state(name: str) -> Data:
    return {"metadata": {"name": name, "namespace": "sriov"}, "spec": {}, "status": {"syncStatus": "Succeeded"}}


def operator(mode: str = "daemon", **spec: typing.Any) -> Data:
    return {"metadata": {"name": "default"}, "spec": {"configurationMode": mode, **spec}}


def world(mode: str = "daemon", **changes: typing.Any) -> Cluster:
    objects: Data = {
        "Node": NODES,
        "SriovNetworkNodeState": tuple(map(state, ("a0", "a1", "other-team"))),
        "SriovNetworkNodePolicy": (),
        "SriovNetworkPoolConfig": (),
        "SriovOperatorConfig": (operator(mode),),
    }
    return Cluster(**{**objects, **changes})


def refusals(cluster: Cluster, intent: ClusterIntent = REBOOT, upgrade: OperatorUpgrade = UPGRADE) -> tuple[str, ...]:
    return read_upgrade_effect(typing.cast(Api, cluster), upgrade, INVENTORY, intent).refused


def test_daemons_restart_without_a_drain_on_the_nodes_of_the_operator() -> None:
    cluster = world(Pod=(bare_pod("a0"),))
    effect = read_upgrade_effect(typing.cast(Api, cluster), UPGRADE, INVENTORY, DRAIN)
    assert (effect.nodes, effect.refused) == (("a0", "a1", OTHER), ())
    assert effect.text.startswith(
        f"restarts the config daemon and the device plugin of 3 nodes: a0, a1, {OTHER} (a thi"
    )
    assert "without a drain" in effect.text and "Pod" not in cluster.asked


@pytest.mark.parametrize(
    "upgrade", [UPGRADE, OperatorUpgrade(UPGRADE.operator, "v", namespace="sriov", mode="systemd")]
)
def test_mode_systemd_is_a_reboot_of_each_node_of_the_operator(upgrade: OperatorUpgrade) -> None:
    cluster = world("daemon" if upgrade.mode else "systemd")
    effect = read_upgrade_effect(typing.cast(Api, cluster), upgrade, INVENTORY, REBOOT)
    assert (effect.nodes, effect.refused, effect.verb) == (("a0", "a1", OTHER), (), "can drain and reboot")
    assert "1 node at a time" in effect.text
    refused = refusals(cluster, DRAIN, upgrade)
    assert [text.partition(":")[0] for text in refused] == ["a0", "a1", OTHER]
    assert all("set rdma_cluster.disruption to reboot" in text and "run stage operators" in text for text in refused)


BUDGET = {
    "metadata": {"name": "all", "namespace": "shop"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}
WIDE = {**SERIAL, "spec": {"maxUnavailable": 3, "nodeSelector": {"matchLabels": {}}}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"Pod": (bare_pod("other-team"),)}, "no controller recreates these pods: shop/train"),
        ({"Pod": (pod("web", "a0"),), "PodDisruptionBudget": (BUDGET,)}, "shop/all"),
        ({"SriovNetworkPoolConfig": (WIDE,)}, "1 node at a time"),
        ({"SriovOperatorConfig": (operator("systemd", disableDrain=True),)}, "disableDrain"),
        ({"SriovNetworkNodeState": ApiError(403, "Forbidden", "cannot list", "GET")}, "SriovNetworkNodeState"),
    ],
    ids=["pod that nothing recreates", "budget", "more nodes than the intent permits", "no drain", "unread"],
)
def test_reboots_that_the_gate_refuses(changes: Data, why: str) -> None:
    assert any(why in text for text in refusals(world("systemd", **changes)))


def test_limit_of_the_intent_permits_a_wider_pool() -> None:
    wide = world("systemd", SriovNetworkPoolConfig=(WIDE,))
    assert refusals(wide, ClusterIntent(disruption="reboot", node_pool=DrainPool(max_unavailable=3))) == ()


def test_machine_config_of_the_operator_rolls_the_pools_that_have_it() -> None:
    def pool(name: str, *sources: str) -> Data:
        spec = {
            "nodeSelector": {"matchLabels": {"pool": "x"}},
            "maxUnavailable": 3,
            "configuration": {"source": [{"name": source} for source in sources]},
        }
        return {"metadata": {"name": name}, "spec": spec, "status": {}}

    rolled = refusals(world("systemd", MachineConfigPool=(pool("worker", "sriov-config-service"),)))
    assert any("MachineConfigPool worker" in text and "3" in text for text in rolled)
    assert refusals(world("systemd", MachineConfigPool=(pool("worker", "00-worker"),))) == ()
    assert refusals(world("daemon", MachineConfigPool=(pool("worker", "sriov-config-service"),))) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"SriovOperatorConfig": ()},
        dict.fromkeys(
            ("SriovNetworkNodeState", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "SriovOperatorConfig"),
            MISSING,
        ),
    ],
    ids=["not configured", "no definitions"],
)
def test_operator_that_runs_nothing_on_nodes_refuses_nothing(changes: Data) -> None:
    assert refusals(world(**changes), DRAIN) == ()


def test_upgrade_by_helm_asks_for_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(cluster: Cluster, **changes: typing.Any) -> Data:
        monkeypatch.setattr(helm_release_plan, "connect", lambda module: cluster)
        there = {**RELEASE, "chart": "sriov-network-operator-chart-1.5.0", "values": {}}
        wanted = {"operator": UPGRADE.operator, "namespace": "sriov", "version": "1.6.0", "values": {}, "status": there}
        params = {**WANTED, "cluster": {"disruption": "drain"}, **wanted, **changes}
        return helm_release_plan.work(typing.cast(typing.Any, types.SimpleNamespace(params=params)))

    assert f"restarts the config daemon and the device plugin of 3 nodes: a0, a1, {OTHER}" in call(world())["summary"]
    with pytest.raises(RdmaError, match=rf"can drain and reboot 3 nodes: a0, a1, {OTHER[:10]}.*must not begin now"):
        call(world("systemd"))
    values = {"sriovOperatorConfig": {"deploy": True, "configurationMode": "systemd"}}
    with pytest.raises(RdmaError, match="can drain and reboot"):
        call(world(), values=values)
    # a first installation asks for what an earlier one has left
    assert call(world(), status={})["needed"]
    default = {"metadata": {"name": "default", "namespace": "sriov"}}
    ours = {"metadata": {"name": "a", "namespace": "sriov", "annotations": {"meta.helm.sh/release-name": "x"}}}
    assert call(world(SriovNetworkNodePolicy=(default, ours)), status={})["needed"]
    assert call(world(SriovNetworkNodePolicy=MISSING), status={})["needed"], "its definitions come with it"
    left = {"metadata": {"name": "old", "namespace": "sriov"}}
    with pytest.raises(RdmaError, match=r"1 SriovNetworkNodePolicy object of an earlier installation: old") as refused:
        call(world(SriovNetworkNodePolicy=(default, left)), status={})
    assert "kubectl delete sriovnetworknodepolicy -n sriov NAME" in str(refused.value)
    assert "Nothing was installed" in str(refused.value) and "operators_leave" in refused.value.remedy
    with pytest.raises(RdmaError, match="SriovNetworkNodePolicy objects not read"):
        call(world(SriovNetworkNodePolicy=ApiError(403, "Forbidden", "cannot list", "GET")), status={})
