# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the stages need, and the files of docs/rbac, which grant them: neither more nor less."""

from __future__ import annotations

import dataclasses
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.rbac import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.powers import check as named_files
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import powers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import (
    ANYTHING,
    Denied,
    Right,
    RightsFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import (
    list_needed_rights,
    needed_powers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.rights import (
    build_attributes,
    observe,
    text_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from dev import rbac

ROOT = pathlib.Path(__file__).parents[3]
#: its namespace
OPERATOR = rbac.OPERATOR
INTENT = rbac.everything()


def fabric(name: str, profile: str, ipam: dict[str, typing.Any]) -> dict[str, typing.Any]:
    return {
        "name": name,
        "profile": profile,
        "select": {"hcas_per_node": 1},
        "virtual_functions": 4,
        "resource_name": name,
        "network": {"name": name, "namespace": "training"},
        "ipam": ipam,
    }


def shares(kind: str) -> dict[str, typing.Any]:
    return {
        "type": "nv-ipam",
        "range": "10.0.0.0/16",
        "pool": {"name": "pool", "kind": kind, "namespace": "sriov-network-operator"},
    }


def granted(power: str, group: str = rbac.OPERATORS) -> set[tuple[str, ...]]:
    """(verb, API group, resource, namespace, name) of all that a file gives to a group; an empty namespace or name is
    all of them."""
    items = yaml.safe_load((ROOT / f"docs/rbac/{power}.yml").read_text(encoding="utf-8"))["items"]
    roles = {
        (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", "")): item
        for item in items
        if item["kind"].endswith("Role")
    }
    rights: set[tuple[str, ...]] = set()
    for binding in items:
        if binding["kind"].endswith("Binding") and group in {subject["name"] for subject in binding["subjects"]}:
            namespace = binding["metadata"].get("namespace", "")
            for rule in roles[(binding["roleRef"]["kind"], binding["roleRef"]["name"], namespace)]["rules"]:
                kinds = [(api, resource) for api in rule["apiGroups"] for resource in rule["resources"]]
                rights |= {
                    (verb, *kind, namespace, name)
                    for verb in rule["verbs"]
                    for kind in kinds
                    for name in rule.get("resourceNames", [""])
                }
    return rights


def as_granted(right: Right) -> tuple[str, ...]:
    spec = build_attributes(right)
    name = f"{spec['resource']}/{spec['subresource']}" if spec["subresource"] else spec["resource"]
    return (spec["verb"], spec["group"], name, spec["namespace"], spec["name"])


def test_the_files_are_made_of_the_rights() -> None:
    made = rbac.files()
    assert {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/rbac").iterdir()} == made


@pytest.mark.parametrize("power", sorted({right.power for right in rbac.rights()} - {powers.OLM_REMOVAL}))
def test_a_file_grants_what_its_power_needs_and_nothing_else(power: str) -> None:
    assert granted(power) == {as_granted(right) for right in rbac.rights() if right.power == power}


def test_each_right_is_of_a_power_that_has_a_file() -> None:
    assert {right.power for right in rbac.rights()} == set(powers.NAMES) - {powers.HELM, powers.ADMISSION}


@pytest.mark.parametrize("power", powers.POWERS, ids=powers.NAMES)
def test_a_file_says_what_it_equals_and_why(power: powers.Power) -> None:
    head = (ROOT / power.path).read_text(encoding="utf-8").partition("apiVersion")[0]
    told = " ".join(line.lstrip("# ") for line in head.splitlines())
    assert (
        f"Equals: {power.equals or 'neither cluster-admin nor root on the nodes'}." in told
        and power.why.replace("`", "'") in told
    )


def test_what_writes_with_no_name_in_all_namespaces_is_few() -> None:
    """Each of these is told in docs/rbac/README.md, and in its own file."""
    writes = [
        right
        for right in rbac.rights()
        if right.verb not in ("get", "list", "watch") and right.power not in (powers.OLM, powers.OLM_REMOVAL)
    ]
    assert {(right.power, as_granted(right)[2]) for right in writes if not (right.namespace or right.name)} == {
        (powers.NVIDIA, "macvlannetworks"),
        (powers.NVIDIA, "ipoibnetworks"),
        (powers.NVIDIA, "hostdevicenetworks"),
        (powers.MACHINES, "machineconfigpools"),
        (powers.MACHINES, "machinehealthchecks"),
        (powers.MACHINES, "nodehealthchecks"),
        (powers.ROLL, "nodes"),
        (powers.ROLL, "pods/eviction"),
        (powers.ROLL, "machinehealthchecks"),
        (powers.ROLL, "nodehealthchecks"),
        (powers.FIRMWARE, "nicconfigurationtemplates"),
    }


def test_only_who_installs_operators_is_cluster_admin() -> None:
    admins = set()
    for name in powers.NAMES:
        items = yaml.safe_load((ROOT / f"docs/rbac/{name}.yml").read_text(encoding="utf-8"))["items"]
        admins |= {name for item in items if item.get("roleRef", {}).get("name") == "cluster-admin"}
    assert admins == {powers.HELM, powers.OLM_REMOVAL}


def test_the_powers_of_an_intent_are_those_that_it_uses() -> None:
    plain = parse_intent([fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"})])
    assert [power.name for power in needed_powers(plain)] == [
        powers.LOOK,
        powers.CHANGE,
        powers.SRIOV,
        powers.MEASURING,
    ]
    tuned = parse_intent(
        [fabric("a", "macvlan", {"type": "whereabouts", "range": "10.1.0.0/16"})], None, {"tuning": {"set": True}}
    )
    assert {power.name for power in needed_powers(tuned)} - {power.name for power in needed_powers(plain)} == {
        powers.ATTACHMENTS,
        powers.TUNING,
    }


def test_validate_names_the_files_of_an_intent() -> None:
    plain = parse_intent([fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"})])
    found = {item.subject: item for item in named_files(plain)}
    assert {item.status for item in found.values()} == {"pass"}
    wanted = [name for name, item in found.items() if item.measured == "required by the current intent"]
    assert wanted == [f"docs/rbac/{name}.yml" for name in (powers.LOOK, powers.CHANGE, powers.SRIOV, powers.MEASURING)]
    assert "equals root on the nodes" in found["docs/rbac/network-sriov.yml"].expected
    assert "docs/rbac/machine-configs.yml" not in found


def test_what_is_denied_names_the_file_to_apply() -> None:
    (finding,) = check(
        RightsFacts(40, (Denied("network", "patch a", powers.SRIOV), Denied("network", "patch b", powers.POOLS)))
    )
    assert "kubectl apply -f docs/rbac/network-sriov.yml -f docs/rbac/network-pools.yml. The files" in finding.remedy
    assert f"the group {powers.GROUP}" in finding.remedy


def test_what_olm_needs_is_asked_for_where_it_installs() -> None:
    assert {
        right.kind
        for right in set(list_needed_rights(INTENT, OPERATOR, olm=True)) - set(list_needed_rights(INTENT, OPERATOR))
    } >= {
        "InstallPlan",
        "OperatorGroup",
        "Subscription",
    }
    assert Right("operators", "patch", "InstallPlan") not in list_needed_rights(INTENT, OPERATOR)


def test_viewers_may_only_read() -> None:
    assert {verb for verb, *_rest in granted(powers.LOOK, rbac.VIEWERS)} == {"get", "list", "watch"}
    assert granted(powers.LOOK, rbac.VIEWERS) == granted(powers.LOOK)
    assert not any(
        granted(name, rbac.VIEWERS)
        for name in powers.NAMES
        if name not in (powers.LOOK, powers.HELM, powers.OLM_REMOVAL)
    )


def test_each_kind_has_a_path() -> None:
    assert all(
        path_of(right.kind, right.namespace)
        for right in list_needed_rights(INTENT, OPERATOR, olm=True)
        if right.kind != ANYTHING
    )


@pytest.mark.parametrize(
    ("right", "text"),
    [
        (Right("network", "patch", "SriovNetwork", "ops"), "patch sriovnetworks.sriovnetwork.openshift.io in ops"),
        (Right("bandwidth", "get", "Pod", "training", "exec"), "get pods/exec in training"),
        (Right("operators", "list", "Node"), "list nodes"),
        (
            Right("operators", "get", "ConfigMap", "ops", name="supported-nic-ids"),
            "get configmaps/supported-nic-ids in ops",
        ),
    ],
)
def test_rights_read_as_rbac_names_them(right: Right, text: str) -> None:
    assert text_of(right) == text


class Api:
    def __init__(self, answer: typing.Callable[..., typing.Any]) -> None:
        self.answer = answer

    def create(self, definition: dict[str, typing.Any]) -> dict[str, typing.Any]:
        answer: dict[str, typing.Any] = self.answer(definition["spec"]["resourceAttributes"])
        return answer


def test_what_the_server_denies_is_named() -> None:
    facts = observe(
        typing.cast(Cluster, Api(lambda spec: {"status": {"allowed": spec["verb"] != "patch"}})),
        list_needed_rights(INTENT, OPERATOR),
    )
    assert {denied.need for denied in facts.denied} == {
        "host",
        "bandwidth",
        "jobs",
        "network",
        "namespaces",
        "settle",
        "tuning",
    }
    assert (
        Denied("network", "patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator", powers.SRIOV)
        in facts.denied
    )
    assert load(RightsFacts, to_data(facts), "rights") == facts
    found = {finding.subject: finding for finding in check(facts)}
    assert {subject: finding.status for subject, finding in found.items()} == {
        "stage network": "fail",
        "stage host": "fail",
        "stage bandwidth": "fail",
        "namespaces of the jobs": "warn",
        "training jobs": "warn",
        "changes of the nodes": "warn",
        "stage tuning": "fail",
    }
    assert "patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator" in found["stage network"].measured


@pytest.mark.parametrize("power", sorted({right.power for right in list_needed_rights(INTENT, OPERATOR, olm=True)}))
def test_without_a_single_right_of_a_file_nothing_begins_and_the_file_is_named(power: str) -> None:
    """The user has all files, but for one right of one of them. What another file grants as well is not missed."""
    rights = list_needed_rights(INTENT, OPERATOR, olm=True)
    mine = [as_granted(right) for right in rights if right.power == power]
    shared = {as_granted(right) for right in rights if right.power != power}
    assert set(mine) - shared, "a file that nobody would miss"
    for dropped in mine:
        may = {as_granted(right) for right in rights} - {dropped}

        def answer(spec: typing.Any, may: set[tuple[str, ...]] = may) -> typing.Any:
            resource = f"{spec['resource']}/{spec['subresource']}" if spec["subresource"] else spec["resource"]
            return {
                "status": {"allowed": (spec["verb"], spec["group"], resource, spec["namespace"], spec["name"]) in may}
            }

        found = check(observe(typing.cast(Cluster, Api(answer)), rights))
        assert any(item.status in ("fail", "warn") and f"docs/rbac/{power}.yml" in item.remedy for item in found), (
            dropped
        )


@pytest.mark.parametrize("answer", [{}, {"status": {}}, {"status": {"allowed": "yes"}}])
def test_an_answer_that_says_neither_is_no_right(answer: dict[str, typing.Any]) -> None:
    with pytest.raises(ApiError):
        observe(typing.cast(Cluster, Api(lambda spec: answer)), list_needed_rights(INTENT, OPERATOR)[:1])


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
    kinds = {right.kind for right in list_needed_rights(plain, OPERATOR) if right.verb in ("create", "patch", "delete")}
    assert kinds.isdisjoint(
        {
            "SriovNetworkPoolConfig",
            "MachineConfig",
            "KubeletConfig",
            "MachineConfigPool",
            "NicClusterPolicy",
            "ClusterPolicy",
        }
    )
    assert {"SriovNetworkNodePolicy", "SriovNetwork", "Pod"} <= kinds
    stages = {right.need for right in list_needed_rights(plain, OPERATOR)}
    # without the right to look for one of an earlier intent, a user is only warned
    assert "host" not in stages and {
        right.need
        for right in list_needed_rights(plain, OPERATOR)
        if (right.verb, right.kind) == ("list", "KubeletConfig")
    } == {"teardown"}
    by_containerd = parse_intent(
        [
            {**fabric("a", "sriov_ethernet", {"type": "whereabouts", "range": "10.1.0.0/16"}), "rdma": False},
            fabric("b", "sriov_infiniband", shares("IPPool")),
        ],
        None,
        {"host": {"memlock": {"by": "containerd", "limit_gib": 64}}},
    )
    assert "MachineConfig" not in {right.kind for right in list_needed_rights(by_containerd, OPERATOR)}
    assert {right.namespace for right in list_needed_rights(by_containerd, OPERATOR) if right.need == "host"} == {
        "linerate-measure"
    }
    without = dataclasses.replace(by_containerd, fabrics=by_containerd.fabrics[:1])
    assert not [right for right in list_needed_rights(without, OPERATOR) if right.need == "host"]


def test_what_is_denied_is_told_of_the_stage_that_needs_it() -> None:
    found = check(
        RightsFacts(40, (Denied("network", "patch a"), Denied("bandwidth", "create b"), Denied("network", "patch c")))
    )
    assert [(item.subject, item.status, item.measured) for item in found] == [
        ("stage network", "fail", "missing rights: patch a; patch c"),
        ("stage bandwidth", "fail", "missing rights: create b"),
    ]


def test_each_file_names_the_namespaces_that_it_needs_and_does_not_make() -> None:
    needed = {name: rbac.namespaces_before(power) for name, power in zip(powers.NAMES, powers.POWERS)}
    assert (
        needed["look"] == [rbac.OPERATOR]
        and needed["jobs"] == needed["measuring"] == [rbac.JOBS]
        and needed["observers"] == needed["change"] == []
    )
    for name, missing in needed.items():
        head = (ROOT / f"docs/rbac/{name}.yml").read_text(encoding="utf-8").partition("\napiVersion")[0]
        assert [line for line in head.splitlines() if "Make first" in line] == (
            [f"# Make first what is not there: {'; '.join(f'kubectl create namespace {one}' for one in missing)}."]
            if missing
            else []
        )
