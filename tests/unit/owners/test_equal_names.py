# SPDX-License-Identifier: GPL-3.0-or-later

"""Two inventories with the same ``intent_name``, such as after a copy of group_vars: the name proves nothing as soon as
an object with it selects nodes of the other one."""

from __future__ import annotations

import copy
import shlex
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import build_user_label
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.scope import Scope
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.whose_scope import learn_scope
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network
from tests.unit.run.test_intents import Api, intent_of, names, objects_of, removed, scope_of

Item = dict[str, typing.Any]
Applied = dict[str, typing.Any]
POOL = {"node_pool": {"max_unavailable": 1}}


def node(kind: str) -> Item:
    return {"kind": "Node", "metadata": {"name": f"{kind}0", "labels": {"kind": kind}}, "spec": {}}


def learnt(api: Api, intent: Intent) -> Scope:
    return learn_scope(typing.cast(Cluster, api), scope_of(intent))


def apply(api: Api, intent: Intent, check_mode: bool = False) -> Applied:
    wanted = network.render(intent.fabrics, intent.cluster, {}).objects
    outcomes = apply_all(
        typing.cast(Cluster, api), wanted, check_mode, lambda: 0.0, lambda _seconds: None, scope=learnt(api, intent)
    )
    return {item.applied.kind: item.applied for item in outcomes}


def intents(name: str = "prod") -> tuple[Intent, Intent]:
    return intent_of("compute", name, "a", **POOL), intent_of("compute", name, "b", **POOL)


@pytest.mark.parametrize("check_mode", [True, False])
def test_objects_of_an_inventory_of_the_same_name_are_refused(check_mode: bool) -> None:
    one, two = intents()
    api = Api(*objects_of(one), node("a"), node("b"))
    before = copy.deepcopy(api.items)
    done = apply(api, two, check_mode)
    assert {kind: done[kind].action for kind in ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig")} == {
        "SriovNetworkNodePolicy": "refused",
        "SriovNetworkPoolConfig": "refused",
    }
    said = done["SriovNetworkNodePolicy"].refusal
    assert "selects nodes that this intent does not select: a0" in said
    assert "Give each intent of the cluster its own rdma_cluster.intent_name" in said
    assert {key: item for key, item in api.items.items() if key in before} == before


def find_kept(api: Api, intent: Intent) -> dict[str, str]:
    """Remove the objects of an intent. Return the refusals of those that stay, by kind."""
    return {
        outcome.applied.kind: outcome.applied.refusal
        for outcome in removed(api, learnt(api, intent), KINDS[:-1])
        if outcome.applied.action == "kept"
    }


def test_a_teardown_leaves_the_objects_of_the_other_inventory() -> None:
    one, two = intents()
    other = intent_of("storage", "prod", "b")
    api = Api(*objects_of(one), *objects_of(other), node("a"), node("b"))
    kept = find_kept(api, one)
    theirs = {item for item in names(Api(*objects_of(other))) if not item.startswith("Namespace")}
    assert theirs <= names(api) and "SriovNetworkNodePolicy linerate-compute" not in names(api)
    assert set(kept) == {"SriovNetworkNodePolicy", "SriovNetwork"}
    assert "a name that another intent may have" in kept["SriovNetwork"]
    # of one fabric both have one policy: that of the other nodes stays, with its network
    api = Api(*objects_of(two), node("a"), node("b"))
    removed(api, learnt(api, one), KINDS[:-1])
    assert names(api) == names(Api(*objects_of(two), node("a"), node("b")))


def rack(name: str, number: str) -> Item:
    labels = {"kind": "a", "rack": number}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}


NARROW: dict[str, typing.Any] = {"node_selector": {"kind": "a", "rack": "1"}}


@pytest.mark.parametrize("nodes", [(rack("a0", "1"), rack("a1", "2")), (rack("a1", "2"),)], ids=["there", "not yet"])
def test_a_teardown_leaves_the_objects_of_an_inventory_with_one_label_more(nodes: tuple[Item, ...]) -> None:
    one, other = intent_of("compute", "prod"), intent_of("storage", "prod", **NARROW)
    api = Api(*objects_of(one), *objects_of(other), *nodes)
    kept = find_kept(api, one)
    theirs = {item for item in names(Api(*objects_of(other))) if not item.startswith("Namespace")}
    assert theirs <= names(api) and "SriovNetworkNodePolicy linerate-compute" not in names(api)
    assert set(kept) == {"SriovNetworkNodePolicy", "SriovNetwork"}
    assert "is of another fabric and selects the nodes with kind=a, rack=1" in kept["SriovNetwork"]


def test_an_intent_that_widens_its_selector_or_drops_a_fabric_keeps_its_objects() -> None:
    nodes = (rack("a0", "1"), rack("a1", "2"))
    narrow, wide = intent_of("compute", "prod", **NARROW), intent_of("compute", "prod")
    api = Api(*objects_of(narrow), *nodes)
    assert learnt(api, wide).doubt == "" and apply(api, wide)["SriovNetworkNodePolicy"].action == "changed"
    assert {item.action for item in apply(api, wide).values()} <= {"unchanged", "changed"}
    dropped = Api(*objects_of(wide), *objects_of(intent_of("storage", "prod")), *nodes)
    assert learnt(dropped, wide).doubt == ""
    removed(dropped, learnt(dropped, wide), KINDS[:-1])
    assert not {item for item in names(dropped) if "storage" in item and not item.startswith("Namespace")}


def test_an_intent_without_the_other_nodes_in_the_cluster_takes_what_it_asked_for_earlier() -> None:
    one, two = intents()
    api = Api(*objects_of(one), node("b"))
    assert learnt(api, two).doubt == ""
    assert apply(api, two)["SriovNetworkNodePolicy"].action == "changed"


def test_the_command_of_the_refusal_lets_an_intent_with_a_new_selector_go_on() -> None:
    one, two = intents()
    api = Api(*objects_of(one), node("a"), node("b"))
    for _round in range(2):
        for kind, done in apply(api, two).items():
            if done.action != "refused" or "label it: kubectl " not in done.refusal:
                continue
            words = shlex.split(done.refusal.partition("label it: kubectl ")[2])
            key, _equals, value = words[-1].partition("=")
            api.items[kind, done.namespace, done.name]["metadata"]["labels"][key] = value
    assert learnt(api, two).doubt == ""
    assert {item.action for item in apply(api, two).values()} <= {"changed", "unchanged"}
    assert api.items["SriovNetworkNodePolicy", "sriov", "linerate-compute"]["spec"]["nodeSelector"]["kind"] == "b"


def test_a_teardown_with_the_default_name_leaves_the_network_of_a_fabric_with_the_policy_of_others() -> None:
    one, two = intents("")
    api = Api(*objects_of(two), node("a"), node("b"))
    removed(api, learnt(api, one), KINDS[:-1])
    assert names(api) == names(Api(*objects_of(two), node("a"), node("b")))


def of_tenant(intent: Intent, kind: str = "SriovNetworkNodePolicy", namespace: str = "team-x") -> Item:
    """An object that selects all nodes, with the labels and the field manager of the collection."""
    if kind in ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig"):
        made = copy.deepcopy(next(item for item in objects_of(intent) if item["kind"] == kind))
        made["spec"]["nodeSelector"] = {}
    else:
        labels = next(item for item in objects_of(intent) if item["kind"] == "SriovNetworkNodePolicy")["metadata"]
        made = {"kind": kind, "metadata": copy.deepcopy(labels), "spec": {"nodeSelector": {}}}
    made["metadata"] |= {"name": "x", "namespace": namespace, "uid": "x"}
    return made


NIC_DEVICE = {
    "kind": "NicDevice",
    "metadata": {"name": "n", "namespace": "nvidia-network-operator"},
    "spec": {},
    "status": {"node": "a0"},
}
KINDS_OF_NODES = ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "NicConfigurationTemplate")


@pytest.mark.parametrize("kind", KINDS_OF_NODES)
def test_an_object_that_a_tenant_labels_in_its_own_namespace_keeps_no_network(kind: str) -> None:
    one, _two = intents()
    api = Api(*objects_of(one), node("a"), node("b"), NIC_DEVICE, of_tenant(one, kind))
    scope = learnt(api, one)
    assert (scope.doubt, dict(scope.strange), set(scope.known)) == ("", {}, {"compute"})
    kinds = ("SriovNetwork", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig")
    assert not [done for done in removed(api, scope, kinds) if done.applied.action == "kept"]


def test_template_beside_a_card_of_a_tenant_makes_no_doubt() -> None:
    """A tenant may create a NicDevice in its namespace, but not write its status."""
    one, _two = intents()
    theirs = {"kind": "NicDevice", "metadata": {"name": "n", "namespace": "team-x"}, "spec": {}}
    items = (*objects_of(one), node("a"), node("b"), NIC_DEVICE, theirs)
    assert learnt(Api(*items, of_tenant(one, "NicConfigurationTemplate")), one).doubt == ""


@pytest.mark.parametrize("kind", KINDS_OF_NODES)
def test_an_object_in_the_namespace_of_its_operator_counts(kind: str) -> None:
    one, _two = intents()
    place = "nvidia-network-operator" if kind == "NicConfigurationTemplate" else "sriov"
    api = Api(*objects_of(one), node("a"), node("b"), NIC_DEVICE, of_tenant(one, kind, place))
    assert f"{kind} {place}/x with it selects nodes that this intent does not select: b0" in learnt(api, one).doubt


@pytest.mark.parametrize(("config", "doubt"), [(["sriov"], False), ([], True), (["sriov", "team-x"], True)])
def test_without_a_namespace_in_the_intent_that_of_the_operator_counts(config: list[str], doubt: bool) -> None:
    """If nothing in the cluster shows it, each object counts: the name must not prove more than it does."""
    one = intent_of("compute", "prod", "a", **POOL, operator_namespace=None)
    found = [{"kind": "SriovOperatorConfig", "metadata": {"name": "default", "namespace": name}} for name in config]
    api = Api(*objects_of(one), node("a"), node("b"), of_tenant(one), *found)
    assert bool(learnt(api, one).doubt) is doubt


def shared_of(selector: str, name: str = "prod", addresses: str = "100.64.0.0/24") -> Intent:
    """An intent without an object that selects nodes."""
    wanted: Item = {
        "name": "compute",
        "profile": "rdma_shared",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "resource_name": "compute",
        "network": {"namespace": "jobs", "name": "net-compute"},
        "ipam": {"type": "whereabouts", "range": addresses},
    }
    return parse_intent([wanted], None, {"intent_name": name, "node_selector": {"kind": selector}})


def test_networks_of_an_inventory_of_the_same_name_stay_without_any_object_that_selects_nodes() -> None:
    one, two = shared_of("a"), shared_of("b", addresses="100.65.0.0/24")
    api = Api(*objects_of(one), node("a"), node("b"))
    before = copy.deepcopy(api.items)
    done = apply(api, two)["MacvlanNetwork"]
    assert (done.action, done.reason) == ("refused", "OtherIntent")
    assert "it was made for the nodes with kind=a" in done.refusal
    assert "Give each intent of the cluster its own rdma_cluster.intent_name" in done.refusal
    kept = {
        outcome.applied.kind: outcome.applied.refusal
        for outcome in removed(api, learnt(api, two), KINDS[:-1])
        if outcome.applied.action == "kept"
    }
    assert "made for the nodes with kind=a" in kept["MacvlanNetwork"]
    key = ("MacvlanNetwork", "", "net-compute")
    assert api.items[key] == before[key]
    # its own intent removes it, and so does one that has the nodes alone
    assert learnt(api, one).other_nodes == frozenset()
    removed(api, learnt(api, one), KINDS[:-1])
    assert key not in api.items
    api = Api(*objects_of(one), node("b"))
    assert apply(api, two)["MacvlanNetwork"].action == "changed"


def test_the_command_confirms_a_network_after_a_change_of_the_selector() -> None:
    one, two = shared_of("a"), shared_of("b", addresses="100.65.0.0/24")
    api = Api(*objects_of(one), node("a"), node("b"))
    words = shlex.split(apply(api, two)["MacvlanNetwork"].refusal.partition("label it: kubectl ")[2])
    key, _equals, value = words[-1].partition("=")
    api.items["MacvlanNetwork", "", "net-compute"]["metadata"]["labels"][key] = value
    assert apply(api, two)["MacvlanNetwork"].action == "changed"


def test_a_forged_record_makes_no_other_object_doubtful() -> None:
    one = shared_of("a")
    forged = next(copy.deepcopy(item) for item in objects_of(shared_of("b")) if item["kind"] == "MacvlanNetwork")
    forged["metadata"]["name"] = "net-of-a-tenant"
    api = Api(*objects_of(one), forged, node("a"), node("b"))
    scope = learnt(api, one)
    assert scope.doubt == "" and scope.other_nodes
    removed(api, scope, KINDS[:-1])
    assert {key[2] for key in api.items if key[0] == "MacvlanNetwork"} == {"net-of-a-tenant"}


def driver_of(version: str, selector: str, fabric: str = "compute") -> Intent:
    """An intent without a name, of which the NicClusterPolicy has a driver and no resource."""
    wanted: Item = {
        "name": fabric,
        "profile": "ipoib",
        "select": {"hcas_per_node": 1, "netdev": ["ib0"]},
        "network": {"namespace": "jobs", "name": f"net-{fabric}"},
        "ipam": {"type": "whereabouts", "range": "10.9.0.0/16"},
    }
    operator = {"ofed_driver": version}
    return parse_intent([wanted], None, {"node_selector": {"kind": selector}, "network_operator": operator})


OLD_DRIVER, NEW_DRIVER = "doca3.1.0-25.07-0.9.7.0-0", "doca3.2.0-25.10-1.2.8.0-2"
POLICY = ("NicClusterPolicy", "", "nic-cluster-policy")


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_second_default_intent_replaces_no_driver_of_the_first(check_mode: bool) -> None:
    one, two = driver_of(OLD_DRIVER, "a"), driver_of(NEW_DRIVER, "b", "storage")
    api = Api(*objects_of(one), node("a"), node("b"))
    before = copy.deepcopy(api.items[POLICY])
    done = apply(api, two, check_mode)["NicClusterPolicy"]
    assert (done.action, done.reason) == ("refused", "OtherIntent")
    (mine,), (theirs,) = (build_user_label("", {"kind": kind}) for kind in "ba")
    assert all(text in done.refusal for text in (OLD_DRIVER, NEW_DRIVER, mine, theirs))
    assert f"kubectl label nicclusterpolicies.mellanox.com nic-cluster-policy {theirs}-. Then run" in done.refusal
    assert api.items[POLICY] == before
    # the command of the refusal, where the first one is this intent with an earlier selector
    del api.items[POLICY]["metadata"]["labels"][theirs]
    assert apply(api, two)["NicClusterPolicy"].action == "changed"


def test_default_intents_with_the_same_driver_share_it_and_one_alone_replaces_its_own() -> None:
    one = driver_of(OLD_DRIVER, "a")
    api = Api(*objects_of(one), node("a"), node("b"))
    assert apply(api, driver_of(NEW_DRIVER, "a"))["NicClusterPolicy"].action == "changed"
    assert apply(api, driver_of(NEW_DRIVER, "b", "storage"))["NicClusterPolicy"].action == "changed"
    labels = api.items[POLICY]["metadata"]["labels"]
    assert {key for kind in "ab" for key in build_user_label("", {"kind": kind})} <= labels.keys()
    assert apply(api, driver_of(OLD_DRIVER, "a"))["NicClusterPolicy"].action == "refused"


def test_the_policy_of_an_earlier_release_gets_the_record() -> None:
    one = driver_of(OLD_DRIVER, "a")
    api = Api(*objects_of(one), node("a"))
    (label,) = build_user_label("", {"kind": "a"})
    del api.items[POLICY]["metadata"]["labels"][label]
    assert apply(api, driver_of(NEW_DRIVER, "a"))["NicClusterPolicy"].action == "changed"
    assert label in api.items[POLICY]["metadata"]["labels"]
