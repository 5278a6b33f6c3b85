# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant who makes the namespace of an operator first, with a forged Helm release, a pod or a RoleBinding in it: a
run installs nothing there."""

from __future__ import annotations

import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.needed import check, list_missing
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import (
    SRIOV,
    OperatorsSeen,
    UntrustedNamespace,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import operator_namespaces
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operator_namespaces import (
    examine,
    find_absent,
    prove_release,
    refuse_package,
    refuse_release,
    try_to_refuse,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.tenancy import (
    can_act_for_creator,
    only_reads,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.olm import parse_subscription
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import kept_release
from ansible_collections.linerate.rdma.plugins.modules import operators_info
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import run_module

SPACE = RELEASE = "sriov-network-operator"
NOTES = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": SPACE}
RECORD = {
    "metadata": {
        "name": f"sh.helm.release.v1.{RELEASE}.v1",
        "labels": {"owner": "helm", "name": RELEASE, "status": "deployed"},
    }
}
MADE, EARLIER, LATER = "2026-11-26T10:00:00Z", "2026-11-26T09:59:59Z", "2026-11-26T10:00:07Z"


def proof(**other: str) -> Resource:
    """A ClusterRoleBinding of the release, or of another."""
    return {
        "metadata": {"name": "sriov-network-operator", "annotations": {**NOTES, **other}, "creationTimestamp": LATER}
    }


PROOF = proof()
MALLORY = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}
#: kinds in a namespace that the fake server tells
KINDS = {
    "/api/v1": ("Pod", "Secret", "ConfigMap", "ServiceAccount", "ResourceQuota"),
    "/apis/apps/v1": ("Deployment",),
    "/apis/rbac.authorization.k8s.io/v1": ("RoleBinding", "Role"),
}


def plural_of(kind: str) -> str:
    return f"{kind.lower()}s"


def binding(role: str, *subjects: Resource, kind: str = "ClusterRole", name: str = "b") -> Resource:
    return {
        "metadata": {"name": name, "namespace": SPACE},
        "roleRef": {"kind": kind, "name": role},
        "subjects": list(subjects),
    }


def named(name: str, **more: typing.Any) -> Resource:
    return {"metadata": {"name": name, "namespace": SPACE, "uid": name, **more}}


class World:
    """A server whose discovery tells KINDS, with a namespace of the operator, or none."""

    def __init__(self, there: bool = True) -> None:
        self.there, self.going = there, False
        self.held: dict[str, list[Resource]] = {kind: [] for kinds in KINDS.values() for kind in kinds}
        self.held["ServiceAccount"] = [named("default")]
        self.held["ConfigMap"] = [named("kube-root-ca.crt")]
        self.of_cluster: dict[str, list[Resource]] = {
            "ClusterRoleBinding": [],
            "ClusterRole": [],
            "CatalogSource": [],
            "Subscription": [],
        }
        self.refuses = ""

    def cluster(self) -> Cluster:
        world = self

        class Answers(Cluster):
            def __init__(self) -> None:
                pass

            def get(self, kind: str, namespace: str, name: str) -> Resource:
                metadata = {
                    "name": SPACE,
                    "creationTimestamp": MADE,
                    **({"deletionTimestamp": "t"} if world.going else {}),
                }
                every = (
                    [{"metadata": metadata}]
                    if kind == "Namespace" and world.there
                    else world.held.get(kind, world.of_cluster.get(kind, []))
                )
                for item in every:
                    if item["metadata"]["name"] == name:
                        return {"kind": kind, **item}
                raise ApiError(404, "NotFound", "not found", name)

            def pages(
                self, kind: str, namespace: str = "", selector: str = "", *_given: typing.Any, **_options: typing.Any
            ) -> typing.Iterator[Resource]:
                if kind == world.refuses:
                    raise ApiError(403, "Forbidden", f"cannot list {kind}", kind)
                yield from world.held.get(kind, world.of_cluster.get(kind, []))

            def read(self, path: str) -> Resource:
                if path == "/apis":
                    versions = [base[len("/apis/") :] for base in KINDS if base != "/api/v1"]
                    return {
                        "groups": [
                            {"name": version.partition("/")[0], "versions": [{"groupVersion": version}]}
                            for version in versions
                        ]
                    }
                if path in KINDS:
                    kinds = [(kind, plural_of(kind)) for kind in KINDS[path]]
                    return {
                        "resources": [
                            {"name": plural, "kind": kind, "namespaced": True, "verbs": ["list"]}
                            for kind, plural in kinds
                        ]
                    }
                raise ApiError(404, "NotFound", "not found", path)

            def metadata(
                self, kind: typing.Any, namespace: str, selector: str = "", fields: str = ""
            ) -> typing.Iterator[Resource]:
                plural = kind[1]
                if plural == world.refuses:
                    raise ApiError(403, "Forbidden", f"cannot list {plural}", plural)
                yield from (item for held, items in world.held.items() if plural_of(held) == plural for item in items)

        return Answers()


def why(world: World) -> str:
    return refuse_release(world.cluster(), SPACE, RELEASE)


def test_a_namespace_that_is_not_there_or_holds_what_each_one_has_is_used() -> None:
    assert why(World(there=False)) == why(World()) == ""
    world = World()
    world.held["ResourceQuota"], world.held["Secret"] = [named("q")], [named("pull", annotations={})]
    world.held["ConfigMap"].append(named("settings"))
    world.held["RoleBinding"] = [
        binding("view", MALLORY),
        binding("system:image-builder", {"kind": "ServiceAccount", "name": "builder", "namespace": SPACE}),
    ]
    assert why(world) == ""


def test_a_token_of_an_own_account_outlives_the_rights_of_who_asked_for_it() -> None:
    """No object shows the token: that its ServiceAccount has rights in a namespace that a tenant may have made is
    enough."""
    world = World()
    world.held["RoleBinding"] = [binding("admin", {"kind": "ServiceAccount", "name": "default", "namespace": SPACE})]
    seen = (
        "other accounts have rights in it and can use the rights of the operator: RoleBinding b: ServiceAccount default"
    )
    assert why(world) == refuse_package(world.cluster(), SPACE, ("nfd",), False) == seen
    # what an admin installed has ServiceAccounts with rights
    world.of_cluster["ClusterRoleBinding"] = [PROOF]
    assert why(world) == refuse_package(world.cluster(), SPACE, ("nfd",), True) == ""


def test_a_namespace_that_is_being_deleted_is_not_used() -> None:
    world = World()
    world.going = True
    assert why(world) == refuse_package(world.cluster(), SPACE, ("nfd",), False) == "it is being deleted"


def test_a_forged_release_is_never_taken_up() -> None:
    world = World()
    world.held["Secret"] = [RECORD]
    assert "the creator of the namespace may have forged the release" in why(world)
    # it does not hide behind what each namespace has by itself
    world.held["Secret"] = [
        {"metadata": {**RECORD["metadata"], "annotations": {"kubernetes.io/service-account.name": "default"}}}
    ]
    assert "forged" in why(world)
    world.held["Secret"] = []
    world.held["ConfigMap"] = [{"metadata": {**RECORD["metadata"], "name": "kube-root-ca.crt"}}]
    assert "forged" in why(world)
    # what a tenant writes into their namespace proves nothing
    world.held["Deployment"] = [named(RELEASE, annotations=NOTES, labels={"app.kubernetes.io/managed-by": "Helm"})]
    assert "forged" in why(world)
    # of another namespace
    world.of_cluster["ClusterRoleBinding"] = [proof(**{"meta.helm.sh/release-namespace": "elsewhere"})]
    assert "forged" in why(world)
    world.of_cluster["ClusterRoleBinding"] = [PROOF]
    assert why(world) == ""


@pytest.mark.parametrize("since", [EARLIER, "", "soon"])
def test_a_binding_that_stayed_from_an_earlier_namespace_proves_no_release(since: str) -> None:
    world = World()
    world.held["Secret"] = [RECORD]
    world.of_cluster["ClusterRoleBinding"] = [{"metadata": {**PROOF["metadata"], "creationTimestamp": since}}]
    assert (
        why(world)
        == f"it has the Helm release {RELEASE}, and it has no ClusterRoleBinding that is younger than the namespace: "
        "the creator of the namespace may have forged the release, or the first installation of the release was"
        " interrupted"
    )
    assert not prove_release(world.cluster(), SPACE, RELEASE)
    world.of_cluster["ClusterRoleBinding"].append(PROOF)
    assert why(world) == "" and prove_release(world.cluster(), SPACE, RELEASE)


def test_a_release_of_another_operator_proves_the_namespace_and_not_a_record() -> None:
    world = World()
    world.of_cluster["ClusterRoleBinding"] = [proof(**{"meta.helm.sh/release-name": "nfd"})]
    world.held["Pod"] = [named("nfd-master")]
    assert why(world) == ""
    world.held["Secret"] = [RECORD]
    assert "forged" in why(world)


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("Pod", named("waits")),
        ("Deployment", named("d", labels={"app.kubernetes.io/managed-by": "linerate.rdma"})),
        ("ServiceAccount", named("sriov-network-operator", annotations=NOTES)),
        ("Secret", named("t", annotations={"kubernetes.io/service-account.name": "sriov-network-operator"})),
        ("ConfigMap", named("supported-nic-ids", annotations=NOTES)),
        ("Pod", named("owned", ownerReferences=[{"uid": "default", "kind": "ServiceAccount", "name": "default"}])),
    ],
)
def test_what_acts_in_it_keeps_the_operator_out(kind: str, item: Resource) -> None:
    world = World()
    world.held[kind] = [*world.held[kind], item]
    assert why(world) == f"it existed before the operator, and has: {kind} {item['metadata']['name']}"


def test_of_role_bindings_as_large_as_etcd_takes_them_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    read: list[typing.Any] = []
    subjects = [{"kind": "User", "name": f"{'u' * 1000}-{number}"} for number in range(3)]

    def pages(_self: Cluster, kind: str, _namespace: str = "", _selector: str = "") -> typing.Iterator[Resource]:
        for number in range(200 if kind == "RoleBinding" else 0):
            yield {
                **binding("admin" if number % 2 else "r" * 100_000, *subjects, name=f"b{number}"),
                "annotations": "x" * 100_000,
            }

    cluster = world.cluster()
    monkeypatch.setattr(type(cluster), "pages", pages)
    monkeypatch.setattr(operator_namespaces, "read_existing", lambda _cluster, wanted: read.append(wanted))
    tracemalloc.start()
    try:
        told = operator_namespaces._describe_foreign_subjects(cluster, SPACE, False)
        assert tracemalloc.get_traced_memory()[1] < 2 * MIB
    finally:
        tracemalloc.stop()
    assert told.startswith(
        "other accounts have rights in it and can use the rights of the operator: RoleBinding b0: User uuu"
    ) and told.endswith(" and 595 more")
    assert len(told) < 2000 and [item["metadata"]["name"] for item in read] == ["admin"], "a role is read once"


def test_who_has_rights_in_it_keeps_the_operator_out_even_of_a_proven_release() -> None:
    world = World()
    world.of_cluster["ClusterRoleBinding"] = [PROOF]
    world.held["RoleBinding"] = [binding("admin", MALLORY)]
    assert why(world) == (
        "other accounts have rights in it and can use the rights of the operator: RoleBinding b: User mallory"
    )
    assert refuse_package(world.cluster(), SPACE, ("nfd",), True) == why(world)


@pytest.mark.parametrize(
    ("rules", "reads"),
    [
        (
            [{"verbs": ["get", "list", "watch"], "resources": ["services", "endpoints", "pods"], "apiGroups": [""]}],
            True,
        ),
        ([{"verbs": ["get"], "resources": ["pods/log", "pods/status"]}], True),
        ([], True),
        ([{"verbs": ["get"], "resources": ["pods/exec"]}], False),
        ([{"verbs": ["get"], "resources": ["secrets"]}], False),
        ([{"verbs": ["get"], "resources": ["*"]}], False),
        ([{"verbs": ["*"], "resources": ["pods"]}], False),
        ([{"verbs": ["get"], "resources": ["pods"]}, {"verbs": ["create"], "resources": ["pods"]}], False),
    ],
)
def test_whoever_only_reads_keeps_nobody_out(rules: list[Resource], reads: bool) -> None:
    role = {"kind": "Role", "metadata": {"name": "prometheus-k8s"}, "rules": rules}
    assert only_reads(role) is reads
    world = World()
    world.held["Role"] = [role]
    world.held["RoleBinding"] = [
        binding(
            "prometheus-k8s", {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}, kind="Role"
        )
    ]
    assert (why(world) == "") is reads
    # a role that is not there may be made later
    world.held["Role"] = []
    assert "ServiceAccount prometheus" in why(world)


def test_what_can_t_be_listed_is_no_proof() -> None:
    world = World()
    world.refuses = "pods"
    assert why(world) == "could not be listed in it: pods (cannot list pods)"
    world.refuses = "RoleBinding"
    with pytest.raises(ApiError):
        why(world)


def test_olm_installs_into_no_namespace_in_which_a_tenant_acts() -> None:
    world = World()
    assert refuse_package(world.cluster(), SPACE, ("nfd",), False) == ""
    world.of_cluster["CatalogSource"] = [named("theirs")]
    assert (
        refuse_package(world.cluster(), SPACE, ("nfd",), False)
        == "it existed before the operator, and has: CatalogSource theirs"
    )
    # a Subscription that an interrupted run of ours left
    ours = {"name": "nfd", "channel": "stable", "source": "redhat-operators", "installPlanApproval": "Manual"}
    world.of_cluster["CatalogSource"], world.of_cluster["Subscription"] = [], [{**named("nfd"), "spec": ours}]
    assert refuse_package(world.cluster(), SPACE, ("nfd",), False) == ""
    # OLM installs whatever package any of them names, as soon as there is an OperatorGroup; and its configuration runs
    # in the operator's pods
    for spec in ({**ours, "name": "theirs"}, {**ours, "config": {"env": []}}, {}):
        world.of_cluster["Subscription"] = [{**named("nfd"), "spec": spec}]
        assert (
            refuse_package(world.cluster(), SPACE, ("nfd",), False)
            == "it existed before the operator, and has: Subscription nfd"
        )
    # the operator's own, once it is installed
    assert refuse_package(world.cluster(), SPACE, ("nfd",), True) == ""


FABRICS = [
    {
        "name": "a",
        "profile": "sriov_infiniband",
        "select": {"hcas_per_node": 1},
        "network": {"name": "n", "namespace": "t"},
    }
]
SRIOV_INTENT = parse_intent(FABRICS, None, None)


def test_the_finding_names_the_namespace_the_cause_and_the_way_out() -> None:
    seen = OperatorsSeen(untrusted={SRIOV: UntrustedNamespace(SPACE, "it has x")})
    (found,) = [item for item in check(SRIOV_INTENT, seen, ()) if item.subject == SRIOV]
    assert (
        found.status == "fail"
        and f"in namespace {SPACE}, because it does not trust the namespace: it has x" in found.why
    )
    assert "kubectl get rolebindings" in found.remedy and "operators_trusted_namespaces" in found.remedy
    # no wait brings it
    assert not [line for line in list_missing(SRIOV_INTENT, seen, ()) if line.startswith(SRIOV)]
    there = OperatorsSeen(
        controllers=(Controller(SRIOV, f"{SPACE}/{SRIOV}", "v1", 1, 1, "helm", RELEASE),), untrusted=seen.untrusted
    )
    (found,) = [item for item in check(SRIOV_INTENT, there, ()) if item.subject == SRIOV]
    assert found.status == "warn" and "it has x" in found.why


def test_a_namespace_that_a_tenant_makes_meanwhile_gets_no_labels_and_no_objects() -> None:
    api = FakeApi()
    api.serve("Namespace", [])
    api.serve("ConfigMap", [], SPACE)
    api.start()
    try:
        cluster = FakeApi.client(api.url)
        original = cluster.create
        made: Resource = {
            "kind": "Namespace",
            "metadata": {"name": SPACE, "labels": {"app.kubernetes.io/managed-by": "linerate.rdma"}},
        }

        def late(*given: typing.Any) -> typing.Any:
            api.put("Namespace", made)
            return original(*given)

        cluster.create = late  # type: ignore[method-assign,assignment]
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": SPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        }
        inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": SPACE}}
        outcomes = apply_all(cluster, [("", namespace), ("", inside)], False)
        assert [item.applied.action for item in outcomes] == ["refused", "refused"] and outcomes[
            0
        ].applied.reason == "AlreadyExists"
        assert "Namespace" in outcomes[1].applied.refusal
        found = api.object(f"/api/v1/namespaces/{SPACE}")
        assert found is not None and found["metadata"]["labels"] == made["metadata"]["labels"]
        assert api.object(f"/api/v1/namespaces/{SPACE}/configmaps/c") is None
    finally:
        api.stop()


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_namespace_that_was_absent_and_is_there_gets_no_level_though_it_has_our_label(check_mode: bool) -> None:
    api = FakeApi()
    theirs: Resource = {
        "kind": "Namespace",
        "metadata": {"name": SPACE, "labels": {"app.kubernetes.io/managed-by": "linerate.rdma"}},
    }
    api.serve("Namespace", [theirs])
    api.serve("ConfigMap", [], SPACE)
    api.start()
    try:
        labels = {"app.kubernetes.io/managed-by": "linerate.rdma", "pod-security.kubernetes.io/enforce": "privileged"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE, "labels": labels}}
        inside = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": SPACE}}
        outcomes = apply_all(FakeApi.client(api.url), [("", namespace), ("", inside)], check_mode, absent=[SPACE])
        # check mode says of no object that it would change it either
        assert [(item.applied.action, item.changed) for item in outcomes] == [("refused", False)] * 2
        assert "another client has created it since then" in outcomes[0].applied.refusal
        found = api.object(f"/api/v1/namespaces/{SPACE}")
        assert found is not None and found["metadata"]["labels"] == theirs["metadata"]["labels"]
        assert api.object(f"/api/v1/namespaces/{SPACE}/configmaps/c") is None
    finally:
        api.stop()


def test_a_namespace_that_is_gone_after_it_was_made_is_not_used() -> None:
    world = World(there=False)
    places = {SRIOV: (SPACE, RELEASE)}
    assert find_absent(world.cluster(), [SPACE]) == (SPACE,)
    assert examine(world.cluster(), places, (), False) == {}
    assert examine(world.cluster(), places, (), True) == {SRIOV: UntrustedNamespace(SPACE, "it does not exist anymore")}
    assert find_absent(World().cluster(), [SPACE]) == () and examine(World().cluster(), places, (), True) == {}


def test_what_can_t_be_read_in_one_namespace_keeps_no_other_operator_out() -> None:
    world = World()
    world.held["RoleBinding"] = [{"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": 5}]
    found = examine(world.cluster(), {SRIOV: (SPACE, RELEASE)}, (), False)
    assert "its owner could not be read: " in found[SRIOV].why
    assert "its owner could not be read: " in try_to_refuse(refuse_package, world.cluster(), SPACE, ("nfd",), False)


def test_a_subscription_of_no_package_is_nobody_s() -> None:
    """Any tenant can make it, in a namespace of their own."""
    seen = parse_subscription({"metadata": {"name": "x", "namespace": "theirs"}, "spec": {"name": ""}})
    assert (seen.package, seen.ours) == ("", False)


def test_a_teardown_leaves_a_release_that_nothing_in_the_cluster_proves() -> None:
    deployment = {"metadata": {"name": RELEASE, "annotations": NOTES}}
    assert kept_release(SPACE, RELEASE, True, [deployment], True) is None
    stay = kept_release(SPACE, RELEASE, True, [deployment], False)
    assert stay is not None and "it has no ClusterRoleBinding that is younger than the namespace" in stay.why


def test_the_module_leaves_it_out_unless_an_admin_says_that_it_is_theirs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    world.held["Secret"] = [RECORD]
    cluster = world.cluster()
    monkeypatch.setattr(operators_info, "connect", lambda _module: cluster)
    monkeypatch.setattr(operators_info, "observe", lambda *_arguments: OperatorsSeen())

    def look(**options: typing.Any) -> dict[str, typing.Any]:
        code, answer = run_module("operators_info", {"fabrics": FABRICS, "by": "helm", **options}, capsys)
        assert code == 0, answer
        return answer

    def made(answer: dict[str, typing.Any]) -> list[str]:
        return [item["operator"] for item in answer["releases"]]

    kept = look(install=True)
    assert SRIOV not in made(kept) and "node-feature-discovery" in made(kept)
    assert SPACE not in [item["object"]["metadata"]["name"] for item in kept["namespaces"]]
    assert kept["untrusted"] == [SRIOV] and kept["absent"] == ["node-feature-discovery"]
    assert kept["operators"]["untrusted"] == {
        SRIOV: {"namespace": SPACE, "why": kept["operators"]["untrusted"][SRIOV]["why"]}
    }
    assert SRIOV in made(look(install=True, trusted_namespaces=[SPACE])) and SRIOV in made(look())
    world.refuses = "RoleBinding"
    assert "could not be read: " in look(install=True)["operators"]["untrusted"][SRIOV]["why"]


def test_acts_knows_what_each_namespace_has() -> None:
    assert not can_act_for_creator("ServiceAccount", named("default")) and not can_act_for_creator(
        "ConfigMap", named("kube-root-ca.crt")
    )
    assert can_act_for_creator("ServiceAccount", named("other"))
    # any kubelet may put a mirror pod into any namespace, with any labels; none has an account
    helm = {"app.kubernetes.io/managed-by": "Helm"}
    assert not can_act_for_creator(
        "Pod", named("planted", annotations={"kubernetes.io/config.mirror": "5"}, labels=helm)
    ) and can_act_for_creator("Pod", named("theirs"))
    assert not can_act_for_creator("PolicyReport", named("of-a-controller")) and can_act_for_creator(
        "Report", named("other")
    )
