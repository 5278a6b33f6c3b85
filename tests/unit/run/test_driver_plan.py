# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of NVIDIA's network operator in the plan of stage network: it is loaded and removed on all nodes with
NVIDIA's NICs, in the inventory or not.
"""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import (
    check_plan,
    list_refusals,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.nvidia import render_nic_policy
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.plans import render_figure
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged

Data = dict[str, typing.Any]
FABRIC: Data = {
    "name": "shared",
    "profile": "rdma_shared",
    "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
    "resource_name": "rdma_shared",
    "network": {"namespace": "t", "name": "n"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
}
NIC = {"feature.node.kubernetes.io/pci-15b3.present": "true"}
#: kinds of operators that the cluster does not have
OPTIONAL = ("NicDevice", "SriovNetworkNodeState")
MISSING = ApiError(404, "NotFound", "the server could not find the requested resource", "GET")


def node(name: str, labels: typing.Optional[dict[str, str]] = None, taints: typing.Sequence[Data] = ()) -> Data:
    return {
        "metadata": {"name": name, "labels": NIC if labels is None else labels},
        "spec": {"taints": list(taints)},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name: str, place: str, **spec: typing.Any) -> Data:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"app": name},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": place, "containers": [{"name": "c"}], **spec},
        "status": {"phase": "Running"},
    }


NODES = (node("a0"), node("a1"), node("other-team"), node("plain", {"feature.node.kubernetes.io/cpu": "x"}))


class Cluster(Paged):
    def __init__(self, **changes: typing.Any) -> None:
        self.objects: dict[str, typing.Any] = {
            "Node": NODES,
            "NicClusterPolicy": (),
            "NicNodePolicy": MISSING,
            "MachineConfigPool": MISSING,
            "PodDisruptionBudget": (),
            "MaintenanceOperatorConfig": (),
            "Pod": (),
            **changes,
        }
        self.asked: list[str] = []

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        self.asked.append(kind)
        answer = self.objects.get(kind, MISSING) if kind in OPTIONAL else self.objects[kind]
        if isinstance(answer, Exception):
            raise answer
        return Listing(answer, "1")

    def serves(self, group: str) -> bool:
        return False


def intent_of(disruption: str = "drain", driver: typing.Optional[str] = "doca3", **cluster: typing.Any) -> typing.Any:
    wanted = {"ofed_driver": driver} if driver else {}
    return parse_intent([FABRIC], None, {"disruption": disruption, "network_operator": wanted, **cluster})


def policy_of(intent: typing.Any) -> Data:
    (policy,) = render_nic_policy(intent.fabrics, intent.cluster)
    return dict(policy)


def read(intent: typing.Any, cluster: Cluster) -> DisruptionPlan:
    rendered = RenderedObjects(nic_policies=(policy_of(intent),))
    return read_plan(typing.cast(Api, cluster), "", rendered, ("a0", "a1"), intent.cluster)


def refusals(intent: typing.Any, planned: DisruptionPlan) -> tuple[str, ...]:
    return list_refusals(intent.cluster, planned, ("a0", "a1"))


def test_new_driver_is_a_drain_of_all_nodes_with_the_nics() -> None:
    intent = intent_of()
    planned = read(intent, Cluster(Pod=(pod("web", "other-team"),)))
    assert [(item.node, item.action, item.listed, item.pods) for item in planned.nodes] == [
        ("a0", "drain", True, ()),
        ("a1", "drain", True, ()),
        ("other-team", "drain", False, ("shop/web",)),
    ]
    (turns,) = planned.pools
    assert (turns.nodes, turns.at_once, turns.waves) == (("a0", "a1", "other-team"), 1, 3)
    lines = describe_plan(planned)
    assert lines[2].startswith("other-team (not in the inventory) is drained: driver of NVIDIA's network operator")
    assert "version doca3 is new" in lines[2]
    assert lines[3].startswith("driver of NicClusterPolicy nic-cluster-policy: 3 nodes, 1 at a time, in 3 waves")
    assert refusals(intent, planned) == ()
    assert "other-team (not in the inventory)" in str(render_figure(planned))


def test_new_driver_is_refused_without_permission_for_drains() -> None:
    intent = intent_of("none")
    refused = refusals(intent, read(intent, Cluster()))
    assert [text.partition(":")[0] for text in refused] == ["a0", "a1", "other-team (not in the inventory)"]
    assert all("set rdma_cluster.disruption to drain" in text for text in refused)


def test_driver_that_is_there_changes_nothing_and_nodes_are_not_read() -> None:
    intent = intent_of("none")
    cluster = Cluster(NicClusterPolicy=(policy_of(intent),))
    planned = read(intent, cluster)
    assert [item.action for item in planned.nodes] == ["nothing", "nothing"]
    assert (planned.pools, refusals(intent, planned), cluster.asked) == ((), (), ["NicClusterPolicy"])


def test_settings_of_the_drain_alone_reload_no_driver() -> None:
    intent = intent_of("none")
    there = copy.deepcopy(policy_of(intent))
    there["spec"]["ofedDriver"]["upgradePolicy"] = {"autoUpgrade": True, "maxParallelUpgrades": 4}
    assert read(intent, Cluster(NicClusterPolicy=(there,))).pools == ()
    there["spec"]["ofedDriver"]["upgradePolicy"] = {"autoUpgrade": False}
    assert "autoUpgrade false -> true" in refusals(intent, read(intent, Cluster(NicClusterPolicy=(there,))))[0]


def test_changed_driver_is_a_drain() -> None:
    before = policy_of(intent_of(driver="doca2"))
    (line, *_rest) = refusals(intent_of("none"), read(intent_of("none"), Cluster(NicClusterPolicy=(before,))))
    assert "version doca2 -> doca3" in line


def fields(manager: str, *keys: str) -> Data:
    return {"manager": manager, "fieldsV1": {"f:spec": {"f:ofedDriver": {f"f:{key}": {} for key in keys}}}}


@pytest.mark.parametrize(
    ("managers", "labels", "removed"),
    [
        ((fields("linerate.rdma", "image", "version"),), {}, True),
        ((), MANAGED_BY, True),
        ((fields("helm", "image", "version"),), MANAGED_BY, False),
        ((fields("linerate.rdma", "image"), fields("helm", "image", "version")), {}, False),
    ],
)
def test_removed_driver_of_the_collection_goes_from_all_nodes_at_once(
    managers: tuple[Data, ...], labels: dict[str, str], removed: bool
) -> None:
    there = {**policy_of(intent_of()), "metadata": {"name": "nic-cluster-policy", "labels": labels}}
    there["metadata"]["managedFields"] = list(managers)
    cluster = Cluster(NicClusterPolicy=(there,))
    for level in ("none", "drain"):
        intent = intent_of(level, None)
        planned = read(intent, cluster)
        assert [(pool.nodes, pool.at_once) for pool in planned.pools] == (
            [(("a0", "a1", "other-team"), None)] if removed else []
        )
        assert bool(refusals(intent, planned)) == (removed and level == "none")
        found = {item.subject: item.status for item in check_plan(intent.cluster, planned, ("a0", "a1"))}
        assert found.get("a0") == (("fail" if level == "none" else "warn") if removed else "pass")


VF = {"containers": [{"name": "c", "resources": {"limits": {"example.com/vf": "1"}}}]}


@pytest.mark.parametrize(
    ("item", "refused"),
    [
        (pod("train", "a0", **VF), ["a0"]),
        # a node of others loses the driver too
        (pod("train", "other-team", **VF), ["other-team"]),
        (pod("train", "other-team", hostNetwork=True), []),
        (pod("train", "plain", **VF), []),
        ({**pod("train", "a0", **VF), "status": {"phase": "Succeeded"}}, []),
    ],
)
def test_driver_is_not_removed_from_under_running_pods(item: Data, refused: list[str]) -> None:
    """A teardown refuses the same."""
    there = {**policy_of(intent_of()), "metadata": {"name": "nic-cluster-policy", "labels": MANAGED_BY}}
    intent = intent_of("reboot", None)
    planned = read(intent, Cluster(NicClusterPolicy=(there,), Pod=(item,)))
    told = refusals(intent, planned)
    assert [text.partition(":")[0] for text in told] == refused
    for text in told:
        assert "shop/train" in text and "kubectl drain" in text and "Then run stage network again" in text
        assert "A DaemonSet creates its pods again: change its nodeSelector" in text


UPGRADE = "nvidia.com/ofed-driver-upgrade-state"


@pytest.mark.parametrize(
    ("place", "state", "refused"),
    [
        ("a0", "drain-required", True),
        ("other-team", "pod-restart-required", True),
        # not cordoned yet, or no longer
        ("a0", "upgrade-required", False),
        ("a0", "upgrade-done", False),
        ("a0", "upgrade-failed", False),
        ("plain", "drain-required", False),
    ],
)
def test_driver_is_not_removed_during_its_upgrade(place: str, state: str, refused: bool) -> None:
    """The operator would remove its label, and leave the node cordoned."""
    there = {**policy_of(intent_of()), "metadata": {"name": "nic-cluster-policy", "labels": MANAGED_BY}}
    nodes = tuple(
        {**item, "metadata": {**item["metadata"], "labels": {**item["metadata"]["labels"], UPGRADE: state}}}
        if item["metadata"]["name"] == place
        else item
        for item in NODES
    )
    intent = intent_of("reboot", None, node_pool={"max_unavailable": 4})
    told = " ".join(refusals(intent, read(intent, Cluster(NicClusterPolicy=(there,), Node=nodes))))
    assert (f"{place}: NVIDIA's network operator upgrades its driver" in told) is refused
    assert (f"kubectl get node {place} -L {UPGRADE}" in told) is refused


def test_driver_is_not_removed_while_the_pods_are_not_known() -> None:
    there = {**policy_of(intent_of()), "metadata": {"name": "nic-cluster-policy", "labels": MANAGED_BY}}
    intent, forbidden = intent_of("reboot", None), ApiError(403, "Forbidden", "cannot list pods", "GET")
    (why,) = refusals(intent, read(intent, Cluster(NicClusterPolicy=(there,), Pod=forbidden)))
    assert why.startswith("cluster Pod: Pod objects not read: cannot list pods")


def test_pods_that_the_drain_cannot_evict_block_it_unless_the_intent_permits_it() -> None:
    local = pod("cache", "a0", volumes=[{"name": "v", "emptyDir": {}}])
    (why,) = refusals(intent_of(), read(intent_of(), Cluster(Pod=(local,))))
    assert "rdma_cluster.drain.delete_empty_dir_data: true" in why and "platform" not in why
    permitted = intent_of(drain={"delete_empty_dir_data": True})
    assert refusals(permitted, read(permitted, Cluster(Pod=(local,)))) == ()
    drain = policy_of(permitted)["spec"]["ofedDriver"]["upgradePolicy"]["drain"]
    assert (drain["deleteEmptyDir"], drain["force"]) == (True, False)


def test_label_of_node_feature_discovery_on_another_node_takes_no_node_out_of_the_plan() -> None:
    """A kubelet may write each label of node.kubernetes.io and its subdomains on its own Node."""
    intent = intent_of("none")
    for liar in ("web", "a1"):
        nodes = [
            node(name, {"feature.node.kubernetes.io/x": "y"} if name == liar else {}) for name in ("a0", "a1", "web")
        ]
        planned = read(intent, Cluster(Node=tuple(nodes)))
        assert [item.node for item in planned.nodes if item.action == "drain"] == ["a0", "a1"][: 1 + (liar == "web")]
        assert refusals(intent, planned)


def test_node_that_is_away_closes_the_gate() -> None:
    away = node("a1")
    away["status"]["conditions"][0]["status"] = "False"
    intent = intent_of()
    planned = read(intent, Cluster(Node=(node("a0"), away)))
    assert [text for text in refusals(intent, planned) if "a1: NotReady or cordoned" in text], "also of the plan"
    away["metadata"]["labels"] = {"feature.node.kubernetes.io/cpu": "x"}
    planned = read(intent, Cluster(Node=(node("a0"), away)))
    assert [text for text in refusals(intent, planned) if "a1: NotReady or cordoned" in text]


def test_taints_and_affinity_of_the_policy_exclude_nodes() -> None:
    control = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    nodes = (
        node("a0"),
        node("master", taints=[control]),
        node("gpu", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"}]),
        node("soft", taints=[{"key": "x", "effect": "PreferNoSchedule"}]),
    )
    names = [item.node for item in read(intent_of(), Cluster(Node=nodes)).nodes if item.action == "drain"]
    assert names == ["a0", "gpu", "soft"]
    there: dict[str, typing.Any] = {
        "metadata": {"name": "nic-cluster-policy"},
        "spec": {"tolerations": [{"operator": "Exists"}]},
    }
    terms = [{"matchExpressions": [{"key": "role", "operator": "In", "values": ["rdma"]}]}]
    cluster = Cluster(Node=nodes, NicClusterPolicy=(there,))
    assert "master" in read(intent_of(), cluster).pools[0].nodes
    there["spec"]["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    cluster.objects["Node"] = (*nodes, node("chosen", {**NIC, "role": "rdma"}))
    assert read(intent_of(), cluster).pools[0].nodes == ("chosen",)


def test_nodes_of_the_inventory_count_before_node_feature_discovery_labels_them() -> None:
    planned = read(intent_of(), Cluster(Node=(node("a0", {}), node("a1", {}), node("z", {}))))
    assert planned.pools[0].nodes == ("a0", "a1")


def test_policy_that_cannot_be_read_is_unknown_and_an_absent_kind_is_not() -> None:
    forbidden = ApiError(403, "Forbidden", "cannot list", "GET")
    assert "NicClusterPolicy" in refusals(intent_of(), read(intent_of(), Cluster(NicClusterPolicy=forbidden)))[0]
    intent = intent_of(driver=None)
    assert refusals(intent, read(intent, Cluster(NicClusterPolicy=MISSING))) == ()
