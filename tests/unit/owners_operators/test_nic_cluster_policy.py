# SPDX-License-Identifier: GPL-3.0-or-later

"""The NicClusterPolicy, of which a cluster has one: no component of another owner goes."""

from __future__ import annotations

import copy
import json
import shlex
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import INTENT_LABEL, find_users
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.nic_policy import list_components
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal

from ..observe.test_apply import Api as Base
from ..run.test_intents import SELECTOR, Api, applied, objects_of, removed, scope_of
from .situations import (
    EARLIER,
    HAND,
    INSTALL,
    KEEP,
    NEEDED,
    OTHER,
    OWN,
    REFUSE,
    SHARED,
    TAKE,
    TEARDOWN_NONE,
    TWIN,
    cells,
)

KEY = ("NicClusterPolicy", "", "nic-cluster-policy")
DRIVER = "doca3.2.0-25.10-1.2.8.0-2"
#: components that an intent sets, each with the part of the intent
COMPONENTS: dict[str, dict[str, typing.Any]] = {
    "ofedDriver": {"ofed_driver": DRIVER},
    "nvIpam": {"nv_ipam": True},
    "nicFeatureDiscovery": {"nic_feature_discovery": True},
    "secondaryNetwork": {},
}
ALL = {key: value for part in COMPONENTS.values() for key, value in part.items()}


def intent(fabric: str, name: str, profile: str = "ipoib", **operator: typing.Any) -> Intent:
    wanted = {
        "name": fabric,
        "profile": profile,
        "select": {"hcas_per_node": 1, "netdev": ["ib0"]},
        **({"resource_name": fabric} if profile != "ipoib" else {}),
        "network": {"namespace": "jobs", "name": f"net-{fabric}"},
        "ipam": {"type": "whereabouts", "range": "10.9.0.0/16"},
    }
    return parse_intent([wanted], None, {**({"intent_name": name} if name else {}), "network_operator": operator})


def policy_of(api: Base) -> dict[str, typing.Any]:
    return copy.deepcopy(api.items[KEY])


def world(owner: str) -> tuple[Api, Intent]:
    """The cluster as its owners left it, and the intent of the run."""
    mine = intent("fa", "" if owner == TWIN else "a", **ALL)
    if owner in (OWN, NEEDED):
        api = Api(*objects_of(mine))
        if owner == NEEDED:
            # nobody else's intent, and no label: a network of an admin, which the components serve
            network = next(item for item in objects_of(intent("fb", "")) if item["kind"] == "IPoIBNetwork")
            network["metadata"]["labels"] = {}
            api.items[api.key(network)] = network
        return api, mine
    if owner == EARLIER:
        return Api(*objects_of(mine, marked=False)), mine
    if owner == SHARED:
        return Api(*objects_of(mine), *(item for item in objects_of(intent("fb", "b")) if item["kind"] != KEY[0])), mine
    if owner == HAND:
        policy = next(item for item in objects_of(mine) if item["kind"] == KEY[0])
        policy["metadata"]["labels"] = {}
        policy["metadata"]["managedFields"][0]["manager"] = "kubectl-client-side-apply"
        return Api(policy), mine
    name = "b" if owner == OTHER else ""
    return Api(*objects_of(intent("fb", name, **ALL))), intent("team_a", mine.cluster.intent_name, "rdma_shared")


def result_of(api: Api, mine: Intent, action: str) -> str:
    before = policy_of(api)
    if action == INSTALL:
        done = applied(api, mine)[KEY[0]]
        assert (done.action == "refused") <= (policy_of(api) == before)
        return REFUSE if done.action == "refused" else KEEP if policy_of(api)["spec"] == before["spec"] else TAKE
    permitted: typing.Any = "none" if action == TEARDOWN_NONE else "drain"
    removal = Removal(KINDS, SELECTOR, scope=scope_of(mine))
    try:
        refuse_removal(typing.cast(Cluster, api), removal, permitted)
    except RdmaError as refused:
        assert f"{KEY[0]} {KEY[2]}" in refused.seen and "disruption: drain" in refused.remedy
        return REFUSE
    said = [item.applied for item in removed(api, scope_of(mine)) if item.applied.kind == KEY[0]]
    if KEY in api.items and api.items[KEY]["spec"] == before["spec"]:
        # a policy that no run wrote is none of the objects of a teardown
        assert not said or ([item.action for item in said] == ["kept"] and said[0].refusal)
        return KEEP
    return TAKE


@pytest.mark.parametrize(("owner", "action", "result"), cells(KEY[0]))
def test_cell(owner: str, action: str, result: str) -> None:
    api, mine = world(owner)
    if owner in (OWN, EARLIER) and action == INSTALL:
        # a change of its own content
        mine = intent("fa", "a", **{**ALL, "ofed_driver": f"{DRIVER}9"})
    assert result_of(api, mine, action) == result


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("name", ["", "b"])
def test_no_run_drops_a_component_of_another_intent(component: str, name: str) -> None:
    theirs = intent("fb", name, **COMPONENTS[component])
    api = Api(*objects_of(theirs))
    before = policy_of(api)
    refused = applied(api, intent("team_a", name and "a", "rdma_shared"))[KEY[0]]
    assert refused.reason == "OtherIntent" and policy_of(api) == before
    assert (component if not name else "the intent 'b'") in refused.refusal
    if name:
        assert "set rdma_cluster.intent_name: b" in refused.refusal and "kubectl" not in refused.refusal
        return
    command = refused.refusal.partition("remove them: ")[2].partition(". If it is")[0]
    patch = json.loads(shlex.split(command)[-1])
    assert {"op": "remove", "path": f"/spec/{component}"} in patch and KEY[2] in command
    assert f"label nicclusterpolicy {KEY[2]} {INTENT_LABEL}=" in refused.refusal


@pytest.mark.parametrize("component", [name for name in COMPONENTS if name != "secondaryNetwork"])
def test_no_teardown_takes_a_component_that_its_intent_does_not_ask_for(component: str) -> None:
    api = Api(*(item for item in objects_of(intent("fb", "", **COMPONENTS[component])) if item["kind"] == KEY[0]))
    (kept,) = (item.applied for item in removed(api, scope_of(intent("fa", ""))) if item.applied.kind == KEY[0])
    assert kept.action == "kept" and component in kept.refusal and KEY in api.items


def test_the_gate_counts_no_driver_that_stays() -> None:
    api, mine = world(SHARED)
    refuse_removal(typing.cast(Cluster, api), Removal(KINDS, SELECTOR, scope=scope_of(mine)), "none")


def test_a_field_that_another_manager_has_too_is_not_dropped() -> None:
    """Server-side apply removes a field only if its last manager leaves it out."""
    ours = {"manager": "linerate.rdma", "fieldsV1": {"f:spec": {"f:nvIpam": {".": {}, "f:image": {}}, "f:x": {}}}}
    theirs = {"manager": "argocd-controller", "fieldsV1": {"f:spec": {"f:nvIpam": {"f:image": {}}}}}
    policy = {"metadata": {"managedFields": [ours, theirs]}, "spec": {"nvIpam": {}, "x": {}, "y": {}}}
    assert list_components(policy) == ("x",)
    assert list_components({**policy, "metadata": {"managedFields": [ours]}}) == ("nvIpam", "x")


@pytest.mark.parametrize(("record", "named"), [("b", True), ("default", False)])
def test_no_command_takes_the_policy_from_an_intent_that_it_names(record: str, named: bool) -> None:
    """The policy has the label of this intent, and the record of an intent that needs another driver."""
    api = Api(*objects_of(intent("fa", "", **{**ALL, "ofed_driver": f"{DRIVER}8"})))
    api.items[KEY]["metadata"]["labels"][f"linerate.rdma/intent-{record}-0123456789"] = record
    before = policy_of(api)
    refused = applied(api, intent("fa", "", **{**ALL, "ofed_driver": f"{DRIVER}9"}))[KEY[0]]
    assert (refused.action, policy_of(api)) == ("refused", before)
    said = refused.refusal
    assert ("Ask its owner before you change it." in said) is named
    assert ("set rdma_cluster.intent_name: b" in said) is named
    assert ("kubectl" not in said) is named


@pytest.mark.parametrize(("record", "named"), [("b", True), ("default", False)])
def test_no_command_takes_the_components_of_an_intent_that_the_policy_names(record: str, named: bool) -> None:
    """The policy has no label of an intent."""
    api = Api(*objects_of(intent("fb", "", **ALL)))
    labels = api.items[KEY]["metadata"]["labels"]
    for key in (*find_users(labels), INTENT_LABEL):
        labels.pop(key, None)
    labels[f"linerate.rdma/intent-{record}-0123456789"] = record
    refused = applied(api, intent("team_a", "a", "rdma_shared"))[KEY[0]]
    assert refused.action == "refused" and ("set rdma_cluster.intent_name: b" in refused.refusal) is named
    assert ("kubectl" not in refused.refusal) is named
