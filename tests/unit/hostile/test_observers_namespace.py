# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant who makes the namespace of the observers first, or as soon as it is gone, or with our labels: no privileged
pod starts where a tenant has rights."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import LABEL, OWN, Wanted
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.tenancy import (
    describe_missing_part,
    list_strangers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.observers import render_objects
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import (
    observer_view,
    observers_namespace,
    observers_removal,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster import observers as run
from ansible_collections.linerate.rdma.tests.unit import fake_observers as play
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource

RUN = "20260102T030405Z-aaaaaa"
MARKS = {"app.kubernetes.io/managed-by": "linerate.rdma", LABEL: OWN}
WHOLE = next(item for item in render_objects(Wanted(play.IMAGE)) if item["kind"] == "Namespace")["metadata"]["labels"]
FOLDER = "/api/v1/namespaces"


class World(play.World):
    """:ivar takes: a tenant takes the name of a namespace the moment that it is gone"""

    takes = False

    def _happen(self, path: str, action: str, item: Resource) -> None:
        super()._happen(path, action, item)
        if self.takes and (path, action) == (FOLDER, "DELETED"):
            super()._happen(
                path,
                "ADDED",
                {"kind": "Namespace", "metadata": {"name": play.NAMESPACE, "uid": "a-tenants", "labels": MARKS}},
            )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[World]:
    monkeypatch.setattr(observers_removal, "LOOK", 0.01)
    monkeypatch.setattr(run, "SETTLE", 0.01)
    world = World(play.node("worker-1"), openshift=True)
    world.start()
    yield world
    world.stop()


def begin(world: World, check_mode: bool = False) -> dict[str, str]:
    """Uid of the namespace with the observers, and what became of each object."""
    observers = run.Observers(
        FakeApi.client(world.url), play.NAMESPACE, 5.0, lambda: 0.0, lambda _seconds: None, lambda _line: None
    )
    wanted = Wanted(play.IMAGE, run=RUN, openshift=True)
    outcomes, _facts = observers.present(wanted, RUN, ("worker-1",), check_mode)
    return {item.applied.kind: item.applied.action for item in outcomes}


def uid(world: World) -> str:
    (namespace,) = world.all("Namespace", "")
    return str(namespace["metadata"]["uid"])


@pytest.mark.parametrize("going", [False, True])
def test_who_takes_the_name_of_a_swept_namespace_gets_no_observers(world: World, going: bool) -> None:
    world.make_namespace({**MARKS, "linerate.rdma/run": "dead"})
    if going:
        world.lingers = 2
        world.remove(FOLDER, world.all("Namespace", "")[0])
    world.takes = True
    with pytest.raises(
        observers_namespace.TakenNamespace,
        match=r"is not the namespace that this run created or read: another user created it in the meantime",
    ) as raised:
        begin(world)
    assert "kubectl get rolebindings" in raised.value.remedy
    assert uid(world) == "a-tenants" and not any(
        world.all(kind) for kind in ("DaemonSet", "Role", "RoleBinding", "Pod")
    )


def test_a_namespace_that_is_another_one_before_the_daemonset_is_made_gets_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = apply_all

    def exchange(*arguments: typing.Any, **named: typing.Any) -> typing.Any:
        made = original(*arguments, **named)
        if not world.takes:
            world.takes = True
            world.lingers = 0
            world.remove(FOLDER, world.all("Namespace", "")[0])
            assert world.object(f"{FOLDER}/{play.NAMESPACE}") is None or uid(world) == "a-tenants"
        return made

    monkeypatch.setattr(run, "apply_all", exchange)
    with pytest.raises(observers_namespace.TakenNamespace):
        begin(world)
    assert uid(world) == "a-tenants" and not world.all("DaemonSet")


def test_a_token_of_an_own_account_with_rights_has_a_namespace_made_anew(world: World) -> None:
    begin(world)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": play.NAMESPACE}
    metadata = {"name": "kept", "namespace": play.NAMESPACE}
    world.put(
        "RoleBinding",
        {"kind": "RoleBinding", "metadata": metadata, "roleRef": role, "subjects": [subject]},
        play.NAMESPACE,
    )
    assert begin(world, check_mode=True)["Namespace"] == "unjudged"


@pytest.mark.parametrize("labels", [MARKS, WHOLE, {**MARKS, "linerate.rdma/run": RUN}])
def test_our_labels_alone_have_a_namespace_made_anew(world: World, labels: dict[str, str]) -> None:
    world.make_namespace(labels)
    made = begin(world)
    assert uid(world) != "before" and made["Namespace"] == "created" and len(world.all("Pod")) == 1


def test_a_namespace_in_which_a_tenant_has_rights_is_not_used(world: World) -> None:
    begin(world)
    before = uid(world)
    assert begin(world)["Namespace"] == "unchanged" and uid(world) == before
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "mallory"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "admin", "namespace": play.NAMESPACE},
        "roleRef": role,
        "subjects": [subject],
    }
    world.put("RoleBinding", binding, play.NAMESPACE)
    assert begin(world, check_mode=True)["Namespace"] == "unjudged" and uid(world) == before
    world.resources = [{"name": "rolebindings", "kind": "RoleBinding", "namespaced": True, "verbs": ["list"]}]
    group = {"name": "rbac.authorization.k8s.io", "versions": [{"groupVersion": "rbac.authorization.k8s.io/v1"}]}
    documents: dict[str, Resource] = {
        "/apis": {"groups": [{**group, "preferredVersion": group["versions"][0]}]},
        "/api/v1": {"resources": []},
        "/apis/rbac.authorization.k8s.io/v1": {"resources": world.resources},
    }
    original = FakeApi.client(world.url).read
    client = FakeApi.client(world.url)
    client.read = lambda path, *rest: documents.get(path) or original(path, *rest)  # type: ignore[method-assign]
    observers = run.Observers(client, play.NAMESPACE, 5.0, lambda: 0.0, lambda _seconds: None, lambda _line: None)
    with pytest.raises(RdmaError, match="RoleBinding admin"):
        observers.present(Wanted(play.IMAGE, run=RUN, openshift=True), RUN, ("worker-1",), False)
    assert not world.all("DaemonSet") and not world.all("Pod")


def binding(role: str, *subjects: Resource) -> Resource:
    return {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": list(subjects)}


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (binding("admin", {"kind": "User", "name": "mallory"}), ("RoleBinding b: User mallory",)),
        (
            binding("system:deployer", {"kind": "Group", "name": "system:authenticated"}),
            ("RoleBinding b: Group system:authenticated",),
        ),
        (
            binding("edit", {"kind": "ServiceAccount", "name": "a", "namespace": "theirs"}),
            ("RoleBinding b: ServiceAccount a",),
        ),
        (binding("view", {"kind": "User", "name": "reader"}), ()),
        (
            binding("edit", {"kind": "ServiceAccount", "name": "a", "namespace": "ops"}),
            ("RoleBinding b: ServiceAccount a",),
        ),
        (
            binding("edit", {"kind": "Group", "name": "system:serviceaccounts:ops"}),
            ("RoleBinding b: Group system:serviceaccounts:ops",),
        ),
        (binding("system:image-puller", {"kind": "Group", "name": "system:serviceaccounts:ops"}), ()),
        (
            binding("system:image-puller", {"kind": "Group", "name": "system:serviceaccounts:theirs"}),
            ("RoleBinding b: Group system:serviceaccounts:theirs",),
        ),
        (binding("edit"), ()),
    ],
)
def test_who_has_rights_is_told_by_subjects_and_never_by_names(one: Resource, found: tuple[str, ...]) -> None:
    assert list_strangers([one], "ops") == found


def test_own_accounts_are_none_where_no_tenant_can_hold_a_token_of_them() -> None:
    own, other = ({"kind": "ServiceAccount", "name": "a", "namespace": space} for space in ("ops", "theirs"))
    group = {"kind": "Group", "name": "system:serviceaccounts:ops"}
    assert list_strangers([binding("edit", own, group)], "ops", trusts_own=True) == ()
    assert list_strangers([binding("edit", own, other)], "ops", trusts_own=True) == ("RoleBinding b: ServiceAccount a",)


def test_who_only_reads_is_known_by_the_roles_that_are_named() -> None:
    one = binding("reads", {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"})
    assert list_strangers([one], "ops", {("ClusterRole", "reads")}) == () and list_strangers(
        [one], "ops", {("Role", "reads")}
    )


def test_what_would_give_more_is_named() -> None:
    role = {"kind": "Role", "metadata": {"name": "r", "labels": {"x": "1", "run": "a"}}, "rules": [{"verbs": ["use"]}]}
    assert (
        describe_missing_part(role, role, "run") == ""
        and describe_missing_part({**role, "metadata": {"name": "r"}}, role, "run") == ""
    )
    assert (
        describe_missing_part({**role, "rules": []}, role, "run") == "Role r has different rules"
        and describe_missing_part(None, role, "run") == "Role r does not exist"
    )


def test_a_pod_with_the_labels_of_the_observers_is_not_connected_to(world: World) -> None:
    begin(world)
    pods, cluster = f"/api/v1/namespaces/{play.NAMESPACE}/pods", FakeApi.client(world.url)
    (observer,) = world.all("Pod")
    node = {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "n", "controller": True}
    for name, owners in (("aaa", []), ("aab", [node])):
        world.have(
            pods,
            {**observer, "metadata": {**observer["metadata"], "name": name, "uid": name, "ownerReferences": owners}},
        )
    assert observer_view.container_on(cluster, play.NAMESPACE, "worker-1").pod == "linerate-observer-worker-1"
    world.stand["worker-1"] = None
    world.remove(pods, observer)
    with pytest.raises(RdmaError, match="no_pod"):
        observer_view.container_on(cluster, play.NAMESPACE, "worker-1")


def test_mirror_pods_hold_up_no_end_in_a_prepared_namespace(world: World) -> None:
    world.make_namespace({LABEL: "prepared"})
    begin(world)
    (observer,) = world.all("Pod")
    node = {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "n", "controller": True}
    theirs = {**observer, "metadata": {**observer["metadata"], "name": "aab", "uid": "aab", "ownerReferences": [node]}}
    observers = run.Observers(
        FakeApi.client(world.url), play.NAMESPACE, 0.0, lambda: 0.0, lambda _seconds: None, lambda _line: None
    )
    original = world._happen

    def keep(path: str, action: str, item: Resource) -> None:
        original(path, action, item)
        if path.endswith("/daemonsets") and action == "DELETED":
            world.have(f"/api/v1/namespaces/{play.NAMESPACE}/pods", theirs)

    world._happen = keep  # type: ignore[method-assign]
    assert {item.applied.kind for item in observers.absent(False)} == {"DaemonSet", "ServiceAccount"}
    assert [item["metadata"]["name"] for item in world.all("Pod")] == ["aab"]
