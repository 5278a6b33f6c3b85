# SPDX-License-Identifier: GPL-3.0-or-later

"""Two intents of one cluster: a removal takes only what is proven to be of its intent, and nothing beyond the permitted
disruption or while a job runs."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import INTENT_LABEL, mark_intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Disruption, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.scope import Scope
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import (
    find_leftovers,
    remove_all,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import name_users
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from tests.unit.observe.test_apply import Api as Base
from tests.unit.observe.test_apply import thing
from tests.unit.run.test_roll import Operator, roller

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles/teardown/tasks"
SELECTOR = "app.kubernetes.io/managed-by=linerate.rdma"
ADDRESS = ("0000:01:00.0",)


def intent_of(fabric: str, name: str = "", selector: str = "a", **cluster: typing.Any) -> Intent:
    wanted = {
        "name": fabric,
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 1, "vendor": "15b3"},
        "virtual_functions": 4,
        "resource_name": fabric,
        "network": {"name": f"net-{fabric}", "namespace": f"jobs-{fabric}"},
        "ipam": {"type": "whereabouts", "range": "100.64.0.0/24"},
    }
    named = {"intent_name": name} if name else {}
    return parse_intent(
        [wanted],
        None,
        {**named, "node_selector": {"kind": selector}, "operator_namespace": "sriov", **cluster},
    )


def scope_of(intent: Intent) -> Scope:
    return build_scope(intent.fabrics, intent.cluster)


def objects_of(intent: Intent, marked: bool = True) -> list[dict[str, typing.Any]]:
    """What a run of the intent applies, as the API server has it."""
    made = [copy.deepcopy(item) for _fabric, item in network.render(intent.fabrics, intent.cluster, {}).objects]
    for item in made:
        item["metadata"]["uid"] = f"uid-{item['metadata']['name']}"
        fields: dict[str, typing.Any] = {"f:spec": {f"f:{key}": {} for key in item.get("spec", {})}}
        item["metadata"]["managedFields"] = [{"manager": "linerate.rdma", "operation": "Apply", "fieldsV1": fields}]
        if not marked:
            del item["metadata"]["labels"][INTENT_LABEL]
    return made


class Api(Base):
    """An API server that lists by the label of the collection alone."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> typing.Any:
        mine = (
            item for key, item in self.items.items() if key[0] == kind.partition(".")[0] and namespace in ("", key[1])
        )
        return dataclasses.replace(super().list("none"), items=tuple(mine))

    def pages(
        self,
        kind: str,
        namespace: str = "",
        *,
        only: typing.Callable[[dict[str, typing.Any]], bool] = lambda _item: True,
        partial: bool = False,
    ) -> typing.Iterator[dict[str, typing.Any]]:
        # a pod may be too large to be read
        assert partial or kind != "Pod"
        yield from filter(only, copy.deepcopy(self.list(kind, namespace).items))

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        return super().get(kind.partition(".")[0], namespace, name)

    def serves(self, group: str) -> bool:
        return True

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[str, ...]]:
        """One manager has written all, so what it does not apply any more is gone."""
        result = copy.deepcopy(definition)
        if not dry_run:
            self.items[self.key(result)] = result
        return result, ()


def removed(api: Base, scope: Scope, kinds: typing.Sequence[str] = KINDS) -> tuple[Outcome, ...]:
    removal = Removal(tuple(kinds), SELECTOR, limit=3.0, scope=scope)
    return remove_all(typing.cast(Cluster, api), removal, False, lambda: 0.0, lambda _seconds: None)


def names(api: Base) -> set[str]:
    return {f"{kind} {name}" for kind, _namespace, name in api.items}


def job(name: str, namespace: str, intent: str = "", **status: typing.Any) -> dict[str, typing.Any]:
    item = thing(name, "PyTorchJob", namespace)
    item["metadata"]["managedFields"] = [{"manager": "linerate.rdma"}]
    return {**(mark_intent(item, intent) if intent else item), "status": status}


RUNNING = {"conditions": [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]}
A, B = intent_of("compute", "a"), intent_of("storage", "b", "b")


def test_objects_of_the_other_intent_stay_and_are_named() -> None:
    theirs = [*objects_of(B), job("b-job", "jobs-storage", "b", **RUNNING)]
    api = Api(*objects_of(A), job("a-job", "jobs-compute", "a"), *theirs)
    outcomes = removed(api, scope_of(A))
    assert names(api) == names(Api(*theirs))
    kept = [item.applied for item in outcomes if item.applied.action == "kept"]
    assert {f"{item.kind} {item.name}" for item in kept} == names(api)
    findings = check(A, Facts(("a0",), removed=tuple(kept)))
    said = {
        item.subject: item for item in findings if item.check == "teardown.stays" and item.measured == "not deleted"
    }
    assert len(said) == len(kept) and {item.status for item in said.values()} == {"warn"}
    assert "belongs to the intent 'b'" in said["PyTorchJob jobs-storage/b-job"].why


def test_the_default_name_proves_nothing() -> None:
    """Two intents without a name: fabric, name and nodes decide."""
    mine, theirs = intent_of("compute"), intent_of("storage", "", "b")
    api = Api(*objects_of(mine), *objects_of(theirs), job("b-job", "jobs-storage", "default"))
    removed(api, scope_of(mine), KINDS[:-1])
    assert names(api) == {
        "Namespace jobs-compute",
        *names(Api(*objects_of(theirs), job("b-job", "jobs-storage", "default"))),
    }


@pytest.mark.parametrize("name", ["", "a"])
def test_objects_of_an_earlier_version_go_where_name_fabric_and_nodes_are_those_of_the_intent(name: str) -> None:
    mine = intent_of("compute", name)
    old = objects_of(mine, marked=False)
    others = objects_of(intent_of("storage"), marked=False)
    api = Api(*old, *others, job("old-job", "jobs-compute"))
    removed(api, scope_of(mine), KINDS[:-1])
    assert names(api) == {"Namespace jobs-compute", "PyTorchJob old-job", *names(Api(*others))}


def test_a_policy_of_the_same_name_that_selects_other_nodes_stays() -> None:
    other = intent_of("compute", "", "b")
    api = Api(*objects_of(other))
    (outcome,) = (
        item for item in removed(api, scope_of(intent_of("compute")), KINDS[:-1]) if "Policy" in item.applied.kind
    )
    assert outcome.applied.action == "kept" and "kind=b, and this intent those with kind=a" in outcome.applied.refusal
    assert "SriovNetworkNodePolicy linerate-compute" in names(api)


def test_an_intent_with_a_name_takes_what_it_asked_for_earlier() -> None:
    earlier = intent_of("retired", "a", "c")
    api = Api(*objects_of(earlier))
    removed(api, scope_of(A))
    assert names(api) == set()


def test_a_namespace_that_a_network_of_the_other_intent_uses_stays() -> None:
    (space,) = (item for item in objects_of(A) if item["kind"] == "Namespace")
    net = next(item for item in objects_of(B) if item["kind"] == "SriovNetwork")
    net["spec"]["networkNamespace"] = space["metadata"]["name"]
    (outcome,) = removed(Api(space, net), scope_of(A), ("Namespace",))
    assert outcome.applied.action == "kept" and "SriovNetwork net-storage uses it" in outcome.applied.refusal


def test_an_operator_that_the_other_intent_uses_has_users() -> None:
    items = [item for item in (*objects_of(A), *objects_of(B)) if item["kind"] == "SriovNetwork"]
    assert name_users("SriovNetwork", items, scope_of(A)) == ["SriovNetwork sriov/net-storage"]


def live(intent: str) -> list[dict[str, typing.Any]]:
    configs = [copy.deepcopy(item) for item in render_host_configs(HostNeeds(kernel_arguments=("iommu=pt",)), intent)]
    for item in configs:
        item["metadata"]["uid"] = f"uid-{item['metadata']['name']}"
    return configs


@pytest.mark.parametrize(("theirs", "taken"), [("b", 0), ("a", 1)])
def test_machine_configs_of_the_other_intent_reboot_nobody(theirs: str, taken: int) -> None:
    operator = Operator()
    prepared = roller(operator, (A if theirs == "a" else B).cluster).prepare(live(theirs), check_mode=False)
    roller(operator).release(prepared.paused, 600)
    operator.away.clear()
    there = [{**copy.deepcopy(item), "kind": "MachineConfig"} for item in operator.configs.values()]
    gone = roller(operator).remove([], False, there, scope_of(A))
    roller(operator).release(gone.paused, 600)
    assert (len(gone.outcomes), sorted(set(operator.away))) == (taken, [0, 1, 2] if taken else [])
    assert [item.subject for item in gone.stays] == (
        [] if taken else ["MachineConfig 99-worker-linerate-kernel-arguments"]
    )


def test_a_label_alone_rolls_no_pool() -> None:
    """Objects of an earlier version get the label of the intent."""
    operator = Operator()
    old = live("a")
    for item in old:
        del item["metadata"]["labels"][INTENT_LABEL]
    prepared = roller(operator).prepare(old, check_mode=False)
    roller(operator).release(prepared.paused, 600)
    operator.away.clear()
    again = roller(operator).prepare(live("a"), check_mode=False)
    assert (again.paused, again.error) == ((), "")
    (config,) = operator.configs.values()
    assert config["metadata"]["labels"][INTENT_LABEL] == "a" and operator.away == []


@pytest.mark.parametrize(
    ("permitted", "host", "said"),
    [
        ("none", False, "removing SriovNetworkNodePolicy sriov/linerate-compute may drain nodes"),
        ("drain", True, "removing MachineConfig 99-worker-linerate-kernel-arguments may reboot nodes"),
        ("drain", False, ""),
        ("reboot", True, ""),
    ],
)
def test_a_removal_beyond_the_permitted_disruption_is_refused_by_name(
    permitted: Disruption, host: bool, said: str
) -> None:
    api = Api(*objects_of(A), *(live("a") if host else ()), *objects_of(B))
    removal = Removal(KINDS, SELECTOR, scope=scope_of(A))
    if not said:
        refuse_removal(typing.cast(Cluster, api), removal, permitted)
        return
    with pytest.raises(RdmaError, match=said) as caught:
        refuse_removal(typing.cast(Cluster, api), removal, permitted)
    assert "storage" not in str(caught.value) and f"disruption: {'reboot' if host else 'drain'}" in caught.value.remedy


def test_a_running_job_of_the_intent_is_named_and_ends_the_removal() -> None:
    ended = {"conditions": [*RUNNING["conditions"], {"type": "Succeeded", "status": "True"}]}
    others = (job("b-job", "jobs-storage", "b", **RUNNING), job("old", "jobs-compute", "a", **ended))
    removal = Removal(KINDS, SELECTOR, scope=scope_of(A))
    refuse_removal(typing.cast(Cluster, Api(*others)), removal, "reboot")
    train = {**job("train", "jobs-compute", "a", jobsStatus=[{"name": "node", "active": 2}]), "kind": "TrainJob"}
    api = Api(*others, job("run", "jobs-compute", "a", **RUNNING), train)
    with pytest.raises(RdmaError, match="ended: PyTorchJob jobs-compute/run, TrainJob jobs-compute/train"):
        refuse_removal(typing.cast(Cluster, api), removal, "reboot")


def test_the_role_asks_before_it_holds_or_removes_anything() -> None:
    tasks = yaml.safe_load((ROLE / "begin.yml").read_text(encoding="utf-8"))
    asked = tasks[1]["linerate.rdma.custom_resources"]
    assert "linerate.rdma.run_begin" in tasks[0] and "linerate.rdma.cluster_lease" in tasks[2]
    assert asked["within_disruption"] is True and tasks[1]["check_mode"] is True
    removals = [
        task["linerate.rdma.custom_resources"]
        for task in yaml.safe_load((ROLE / "cluster.yml").read_text(encoding="utf-8"))
        if "linerate.rdma.custom_resources" in task
    ]
    of_intent = [task for task in removals if task["kinds"] != ["SecurityContextConstraints"]]
    assert len(of_intent) == 3 and all("rdma_cluster" in task["cluster"] and "fabrics" in task for task in of_intent)


def applied(api: Base, intent: Intent) -> dict[str, typing.Any]:
    wanted = network.render(intent.fabrics, intent.cluster, {}).objects
    outcomes = apply_all(typing.cast(Cluster, api), wanted, False, lambda: 0.0, lambda _seconds: None)
    return {item.applied.kind: item.applied for item in outcomes}


@pytest.mark.parametrize(("mine", "marked"), [("a", True), ("", True), ("", False), ("a", False)])
def test_a_run_takes_no_object_of_its_name_from_another_intent(mine: str, marked: bool) -> None:
    """Both have the fabric compute, for other nodes."""
    other = intent_of("compute", "b" if mine and marked else "", "b", node_pool={"max_unavailable": 1})
    api = Api(*objects_of(other, marked))
    before = copy.deepcopy(api.items)
    done = applied(api, intent_of("compute", mine, "a"))
    policy = done["SriovNetworkNodePolicy"]
    assert (policy.action, policy.reason) == ("refused", "OtherIntent")
    if mine and marked:
        assert "Ask its owner" in policy.refusal and "kubectl" not in policy.refusal
        assert "If both are the same intent, set rdma_cluster.intent_name: b" in policy.refusal
    else:
        assert f"linerate.rdma/intent={mine or 'NAME'}" in policy.refusal
    assert "nodeSelector.kind: b -> a" in policy.refusal
    key = ("SriovNetworkNodePolicy", "sriov", "linerate-compute")
    assert api.items[key] == before[key]


@pytest.mark.parametrize("name", ["", "a"])
def test_objects_of_an_earlier_version_get_the_name(name: str) -> None:
    mine = intent_of("compute", name)
    api = Api(*objects_of(mine, marked=False))
    assert {item.action for item in applied(api, mine).values()} == {"changed"}
    assert {item["metadata"]["labels"][INTENT_LABEL] for item in api.items.values()} == {name or "default"}


def test_a_namespace_stays_that_of_the_intent_that_made_it() -> None:
    (space,) = (item for item in objects_of(intent_of("compute", "b")) if item["kind"] == "Namespace")
    api = Api(space)
    assert applied(api, A)["Namespace"].action == "unchanged"
    assert api.items["Namespace", "", "jobs-compute"]["metadata"]["labels"][INTENT_LABEL] == "b"


def test_each_intent_has_its_own_pool_of_nodes() -> None:
    first = intent_of("compute", "a", node_pool={"max_unavailable": 1})
    second = intent_of("storage", "b", "b", node_pool={"max_unavailable": 1})
    api = Api(*objects_of(first))
    applied(api, second)
    pools = {name: item["spec"]["nodeSelector"] for (kind, _space, name), item in api.items.items() if "Pool" in kind}
    assert pools == {
        "linerate-a": {"matchLabels": {"kind": "a"}},
        "linerate-b": {"matchLabels": {"kind": "b"}},
    }
    # without a name the pool keeps the one that earlier versions gave it, and is not moved
    unnamed = [intent_of(fabric, "", fabric, node_pool={"max_unavailable": 1}) for fabric in ("compute", "storage")]
    api = Api(*objects_of(unnamed[0]))
    refused = applied(api, unnamed[1])["SriovNetworkPoolConfig"]
    assert (refused.name, refused.action, refused.reason) == ("linerate", "refused", "OtherIntent")


def shared(fabric: str, name: str, **operator: typing.Any) -> Intent:
    wanted = {
        "name": fabric,
        "profile": "rdma_shared",
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "resource_name": fabric,
        "network": {"namespace": "jobs", "name": f"net-{fabric}"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/16"},
    }
    named = {"intent_name": name} if name else {}
    return parse_intent([wanted], None, {**named, "network_operator": operator})


@pytest.mark.parametrize("name", ["", "a"])
def test_the_nic_cluster_policy_of_another_intent_loses_no_entry(name: str) -> None:
    theirs = shared("team_b", "b" if name else "", ofed_driver="doca3.2.0-25.10-1.2.8.0-2")
    api = Api(*objects_of(theirs))
    before = copy.deepcopy(api.items["NicClusterPolicy", "", "nic-cluster-policy"])
    refused = applied(api, shared("team_a", name))["NicClusterPolicy"]
    assert (refused.action, refused.reason) == ("refused", "OtherIntent")
    assert "list all fabrics that need it in one intent" in refused.refusal
    assert ("the intent 'b'" if name else "the resources team_b") in refused.refusal
    assert api.items["NicClusterPolicy", "", "nic-cluster-policy"] == before
    assert applied(api, theirs)["NicClusterPolicy"].action == "unchanged"


def test_the_objects_of_another_intent_are_no_leftovers() -> None:
    wanted = [item for _fabric, item in network.render(A.fabrics, A.cluster, {}).objects]
    api = Api(*objects_of(A), *objects_of(B), *objects_of(intent_of("retired", "a")))
    found = find_leftovers(typing.cast(Cluster, api), ["SriovNetwork"], SELECTOR, wanted)
    assert [item.name for item in found.objects] == ["net-retired"]
