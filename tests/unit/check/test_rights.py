# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the stages need, and docs/rbac.yml, which grants them: neither more nor less."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.rbac import check, needed
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.rights import Denied, Right, RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Cluster, path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.rights import attributes, observe, text_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

MANIFEST = yaml.safe_load((pathlib.Path(__file__).parents[3] / "docs/rbac.yml").read_text(encoding="utf-8"))["items"]
#: its namespace
OPERATOR = "sriov-network-operator"


def fabric(name: str, profile: str, ipam: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    return {
        "name": name,
        "profile": profile,
        "select": {"hcas_per_node": 1},
        "virtual_functions": 4,
        "resource_name": name,
        "network": {"name": name, "namespace": "training"},
        "ipam": ipam,
    }


def shares(kind: str) -> typing.Dict[str, typing.Any]:
    return {"type": "nv-ipam", "range": "10.0.0.0/16", "pool": {"name": "pool", "kind": kind, "namespace": "sriov-network-operator"}}


INTENT = parse_intent(
    [
        fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"}),
        fabric("b", "sriov_infiniband", shares("IPPool")),
        fabric("c", "sriov_infiniband", shares("CIDRPool")),
        fabric("d", "macvlan", {"type": "whereabouts", "range": "10.4.0.0/16"}),
        fabric("e", "rdma_shared", {"type": "whereabouts", "range": "10.5.0.0/16"}),
        fabric("f", "ipoib", {"type": "whereabouts", "range": "10.6.0.0/16"}),
        fabric("g", "host_device", {"type": "whereabouts", "range": "10.7.0.0/16"}),
    ],
    None,
    {
        "node_pool": {"max_unavailable": 1},
        "bios": {"iommu": True},
        "disruption": "reboot",
        "tuning": {"set": True},
        "host": {"memlock": {"by": "machine_config", "limit_gib": 64}, "kubelet": {"cpu_manager_policy": "static"}, "gpudirect": "peermem"},
    },
)


def granted(group: str) -> typing.Set[typing.Tuple[str, str, str, str, str]]:
    """(verb, API group, resource, namespace, name) of all that the manifest gives to a group; an empty namespace or name is all of them."""
    roles = {(item["kind"], item["metadata"]["name"]): item for item in MANIFEST if item["kind"].endswith("Role")}
    rights = set()
    for binding in MANIFEST:
        if binding["kind"].endswith("Binding") and group in {subject["name"] for subject in binding["subjects"]}:
            for rule in roles[(binding["roleRef"]["kind"], binding["roleRef"]["name"])]["rules"]:
                namespace = binding["metadata"].get("namespace", "")
                kinds = [(api, resource) for api in rule["apiGroups"] for resource in rule["resources"]]
                rights |= {(verb, *kind, namespace, name) for verb in rule["verbs"] for kind in kinds for name in rule.get("resourceNames", [""])}
    return rights


def as_granted(right: Right) -> typing.Tuple[str, ...]:
    spec = attributes(right)
    name = f"{spec['resource']}/{spec['subresource']}" if spec["subresource"] else spec["resource"]
    return (spec["verb"], spec["group"], name, spec["namespace"], spec["name"])


def test_the_manifest_grants_what_is_needed_and_nothing_else() -> None:
    assert granted("linerate-rdma-operators") == {as_granted(right) for right in needed(INTENT, OPERATOR, olm=True)}


def test_what_olm_needs_is_asked_for_where_it_installs() -> None:
    assert {right.kind for right in set(needed(INTENT, OPERATOR, olm=True)) - set(needed(INTENT, OPERATOR))} >= {"InstallPlan", "OperatorGroup", "Subscription"}
    assert Right("operators", "patch", "InstallPlan") not in needed(INTENT, OPERATOR)


def test_viewers_may_only_read() -> None:
    viewers = granted("linerate-rdma-viewers")
    assert {verb for verb, *_rest in viewers} == {"get", "list", "watch"}
    # what only those list who run pods and jobs
    beyond = {("list", "", kind, "training", "") for kind in ("events", "configmaps")}
    assert viewers == {right for right in granted("linerate-rdma-operators") if right[0] in ("list", "watch")} - beyond | {
        ("get", "", "namespaces", "", ""),
        ("get", "", "configmaps", "sriov-network-operator", "supported-nic-ids"),
        ("get", "security.openshift.io", "securitycontextconstraints", "", "linerate-rdma"),
    }


def test_each_kind_has_a_path() -> None:
    assert all(path_of(right.kind, right.namespace) for right in needed(INTENT, OPERATOR, olm=True))


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (Right("network", "patch", "SriovNetwork", "ops"), "patch sriovnetworks.sriovnetwork.openshift.io in ops"),
        (Right("bandwidth", "get", "Pod", "training", "exec"), "get pods/exec in training"),
        (Right("operators", "list", "Node"), "list nodes"),
        (Right("operators", "get", "ConfigMap", "ops", name="supported-nic-ids"), "get configmaps/supported-nic-ids in ops"),
    ],
)
def test_rights_read_as_rbac_names_them(right: Right, text: str) -> None:
    assert text_of(right) == text


class Api:
    def __init__(self, answer: typing.Callable[..., typing.Any]) -> None:
        self.answer = answer

    def create(self, definition: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
        answer: typing.Dict[str, typing.Any] = self.answer(definition["spec"]["resourceAttributes"])
        return answer


def test_what_the_server_denies_is_named() -> None:
    facts = observe(typing.cast(Cluster, Api(lambda spec: {"status": {"allowed": spec["verb"] != "patch"}})), needed(INTENT, OPERATOR))
    assert {denied.need for denied in facts.denied} == {"host", "jobs", "network", "namespaces", "settle", "tuning"}
    assert Denied("network", "patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator") in facts.denied
    assert load(RightsFacts, to_data(facts), "rights") == facts
    found = {finding.subject: finding for finding in check(facts)}
    assert {subject: finding.status for subject, finding in found.items()} == {
        "stage network": "fail",
        "stage host": "fail",
        "namespaces of the pods": "warn",
        "training jobs": "warn",
        "bringing nodes to what is wanted": "warn",
        "stage tuning": "fail",
    }
    assert "patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator" in found["stage network"].measured


@pytest.mark.parametrize("answer", [{}, {"status": {}}, {"status": {"allowed": "yes"}}])
def test_an_answer_that_says_neither_is_no_right(answer: typing.Dict[str, typing.Any]) -> None:
    with pytest.raises(ApiError):
        observe(typing.cast(Cluster, Api(lambda spec: answer)), needed(INTENT, OPERATOR)[:1])


def test_all_rights_pass_and_none_asked_is_unknown() -> None:
    (finding,) = check(RightsFacts(40))
    assert finding.status == "pass"
    assert [item.status for item in (*check(None), *check(RightsFacts(0)))] == ["unknown", "unknown"]


def test_taking_back_is_only_warned_of() -> None:
    (finding,) = check(dataclasses.replace(RightsFacts(40), denied=(Denied("teardown", "delete namespaces"),)))
    assert (finding.subject, finding.status) == ("teardown", "warn")


def test_only_what_the_intent_needs_is_asked_for() -> None:
    """A right that no stage uses would stop a user who does well without it."""
    plain = parse_intent([fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"})])
    kinds = {right.kind for right in needed(plain, OPERATOR) if right.verb in ("create", "patch", "delete")}
    assert kinds.isdisjoint({"SriovNetworkPoolConfig", "MachineConfig", "KubeletConfig", "MachineConfigPool", "NicClusterPolicy", "ClusterPolicy"})
    assert {"SriovNetworkNodePolicy", "SriovNetwork", "Pod"} <= kinds
    stages = {right.need for right in needed(plain, OPERATOR)}
    assert "host" not in stages and ("list", "KubeletConfig") not in {(right.verb, right.kind) for right in needed(plain, OPERATOR)}
    by_containerd = parse_intent(
        [{**fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"}), "rdma": False}, fabric("b", "sriov_infiniband", shares("IPPool"))],
        None,
        {"host": {"memlock": {"by": "containerd", "limit_gib": 64}}},
    )
    by_containerd = dataclasses.replace(
        by_containerd,
        fabrics=tuple(dataclasses.replace(item, network=dataclasses.replace(item.network, namespace=f"pods-of-{item.name}")) for item in by_containerd.fabrics),
    )
    assert "MachineConfig" not in {right.kind for right in needed(by_containerd, OPERATOR)}
    assert {right.namespace for right in needed(by_containerd, OPERATOR) if right.need == "host"} == {"pods-of-b"}


def test_what_is_denied_is_told_of_the_stage_that_needs_it() -> None:
    found = check(RightsFacts(40, (Denied("network", "patch a"), Denied("bandwidth", "create b"), Denied("network", "patch c"))))
    assert [(item.subject, item.status, item.measured) for item in found] == [
        ("stage network", "fail", "may not: patch a; patch c"),
        ("stage bandwidth", "fail", "may not: create b"),
    ]
