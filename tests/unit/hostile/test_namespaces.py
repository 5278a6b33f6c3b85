# SPDX-License-Identifier: GPL-3.0-or-later

"""A namespace that the collection made, with objects of others in it: a teardown leaves it, and lists them."""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import LABEL, OWN
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal import remove
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.foreign import objects_of_others
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.foreign import (
    ForeignObjects,
    judge_objects,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers import Observers
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers_namespace import NamespaceStays
from ansible_collections.linerate.rdma.tests.unit import fake_observers
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource

OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}
NAME = "training"
APPS, TENANTS = "/apis/apps/v1", "/apis/tenants.example.com/v2"


class Api(FakeApi):
    """A server that tells what it serves, and has one namespace of ours.

    :ivar forbidden: paths that may not be read, with the status
    :ivar steps: what happens at each pause
    """

    def __init__(self) -> None:
        super().__init__()
        self.forbidden: dict[str, int] = {}
        self.now, self.steps = 0.0, typing.cast(list[typing.Callable[[], None]], [])
        self._objects["/api/v1/namespaces"] = {
            NAME: {"metadata": {"name": NAME, "uid": "n", "labels": OURS, "resourceVersion": "1"}}
        }
        self._events["/api/v1/namespaces"] = []
        self.documents: dict[str, Resource] = {
            "/apis": {
                "groups": [
                    _group("apps", "v1"),
                    _group("tenants.example.com", "v2", "v1"),
                    # an aggregated API that is away: it only shows figures
                    _group("metrics.k8s.io", "v1beta1"),
                    _group("custom.metrics.k8s.io", "v1beta2"),
                ]
            },
            "/api/v1": {
                "resources": [
                    _resource("namespaces", "Namespace", namespaced=False),
                    _resource("bindings", "Binding", verbs=("create",)),
                    _resource("pods/log", "Pod"),
                    _resource("events", "Event"),
                    *(
                        _resource(f"{kind.lower()}s", kind)
                        for kind in ("Pod", "Secret", "ConfigMap", "ServiceAccount", "PersistentVolumeClaim")
                    ),
                ]
            },
            APPS: {"resources": [_resource("statefulsets", "StatefulSet")]},
            TENANTS: {"resources": [_resource("things", "Thing")]},
            "/apis/tenants.example.com/v1": {"resources": [_resource("things", "Thing"), _resource("olds", "Old")]},
        }
        for base in ("/api/v1", APPS, TENANTS, "/apis/tenants.example.com/v1"):
            for item in self.documents[base]["resources"]:
                self._objects.setdefault(f"{base}/namespaces/{NAME}/{item['name']}", {})
        self.add("configmaps", "kube-root-ca.crt")
        self.add("serviceaccounts", "default")
        self.add(
            "secrets",
            "default-token",
            annotations={"kubernetes.io/service-account.name": "default"},
            managedFields=[{"manager": "kube-controller-manager", "fieldsV1": {"f:type": {}}}],
        )
        self.add("events", "it-happened")
        self.add("configmaps", "nic-map", labels=OURS)

    def add(self, plural: str, name: str, base: str = "/api/v1", **metadata: typing.Any) -> None:
        self._objects[f"{base}/namespaces/{NAME}/{plural}"][name] = {
            "metadata": {"name": name, "uid": f"uid-{name}", **metadata}
        }

    def listing(self, path: str) -> typing.Optional[bytes]:
        if path in self.documents:
            return json.dumps(self.documents[path]).encode()
        listed = super().listing(path)
        # as a real API server answers for metadata alone where there is nothing
        return (
            listed
            if listed is None or f"/namespaces/{NAME}/" not in path
            else listed.replace(b'"items": []', b'"items": null')
        )

    def object(self, path: str) -> typing.Optional[Resource]:
        return None if path in self.documents else super().object(path)

    def take(self, folder: str, name: str) -> None:
        del self._objects[folder][name]

    def pause(self, seconds: float) -> None:
        self.now += seconds
        if self.steps:
            self.steps.pop(0)()


def _group(name: str, *versions: str) -> Resource:
    every = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": every, "preferredVersion": every[0]}


def _resource(name: str, kind: str, namespaced: bool = True, verbs: typing.Sequence[str] = ("get", "list")) -> Resource:
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": list(verbs)}


@pytest.fixture
def api() -> typing.Iterator[Api]:
    api = Api()
    api.start()
    yield api
    api.stop()


def removed(api: Api, check_mode: bool = False) -> Outcome:
    cluster = FakeApi.client(api.url)
    original = cluster._call

    def call(method: str, path: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        if method == "get" and path in api.forbidden:
            raise ApiError(api.forbidden[path], "Forbidden", f"cannot list {path.rpartition('/')[2]}", f"GET {path}")
        return original(method, path, *arguments, **more)

    cluster._call = call  # type: ignore[method-assign]
    removal = Removal(("Namespace",), "app.kubernetes.io/managed-by=linerate.rdma", limit=10)
    (outcome,) = remove_all(cluster, removal, check_mode, lambda: api.now, api.pause)
    return outcome


def there(api: Api) -> bool:
    return api.object(f"/api/v1/namespaces/{NAME}") is not None


def test_a_namespace_with_nothing_but_ours_goes_by_its_uid(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    original, preconditions = api.write, []

    def write(method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        preconditions.append(body.get("preconditions"))
        return original(method, path, body, dry_run)

    monkeypatch.setattr(api, "write", write)
    assert removed(api).applied.action == "deleted" and not there(api) and preconditions == [{"uid": "n"}]


@pytest.mark.parametrize(
    ("plural", "name", "base", "words"),
    [
        ("persistentvolumeclaims", "data", "/api/v1", "PersistentVolumeClaim data"),
        ("statefulsets", "db", APPS, "StatefulSet db"),
        ("things", "it", TENANTS, "Thing it"),
        # that the preferred version of its group does not serve
        ("olds", "it", "/apis/tenants.example.com/v1", "Old it"),
        ("secrets", "password", "/api/v1", "Secret password"),
        ("configmaps", "theirs", "/api/v1", "ConfigMap theirs"),
        ("serviceaccounts", "theirs", "/api/v1", "ServiceAccount theirs"),
    ],
)
def test_a_namespace_with_an_object_of_others_stays(api: Api, plural: str, name: str, base: str, words: str) -> None:
    api.add(plural, name, base)
    outcome = removed(api)
    assert (
        there(api) and outcome.applied.action == "refused" and not outcome.changed and words in outcome.applied.refusal
    )
    assert api.now == 0, "nobody waits for what does not go"
    finding = next(
        item for item in check(Intent(()), Facts(removed=(outcome.applied,))) if item.check == "teardown.object"
    )
    assert finding.status == "fail" and words in finding.why and f"kubectl label namespace {NAME}" in finding.remedy


def test_a_copy_that_a_user_made_with_its_label_keeps_the_namespace(api: Api) -> None:
    api.add("configmaps", "copied", labels=OURS, managedFields=[{"manager": "kubectl-client-side-apply"}])
    assert "ConfigMap copied" in removed(api).applied.refusal and there(api)


def test_the_finding_names_some_and_counts_all(api: Api) -> None:
    for number in range(9):
        api.add("persistentvolumeclaims", f"data-{number}")
    refusal = removed(api).applied.refusal
    assert "(9): PersistentVolumeClaim data-0, " in refusal and "and 4 more" in refusal


@pytest.mark.parametrize("path", [f"/api/v1/namespaces/{NAME}/persistentvolumeclaims", APPS, "/apis"])
def test_what_may_not_be_listed_keeps_the_namespace_as_unknown(api: Api, path: str) -> None:
    api.forbidden[path] = 403
    outcome = removed(api)
    assert there(api) and outcome.applied.action == "refused" and "cannot list" in outcome.applied.refusal
    finding = next(
        item for item in check(Intent(()), Facts(removed=(outcome.applied,))) if item.check == "teardown.object"
    )
    assert finding.status == "unknown" and "right to list" in finding.remedy


def test_what_is_being_deleted_is_waited_for(api: Api) -> None:
    api.add("pods", "operator-1", deletionTimestamp="2026-01-01T00:00:00Z")
    api.add("configmaps", "device-plugin-config", ownerReferences=[{"uid": "gone"}])
    folder = f"/api/v1/namespaces/{NAME}"
    api.steps = [api._objects[f"{folder}/pods"].clear, lambda: api.add("configmaps", "other", labels=OURS)]
    api.steps.append(lambda: api.take(f"{folder}/configmaps", "device-plugin-config"))
    assert removed(api).applied.action == "deleted" and api.now > 0


def test_what_never_goes_keeps_the_namespace_after_the_limit(api: Api) -> None:
    api.add("pods", "stuck", deletionTimestamp="2026-01-01T00:00:00Z")
    outcome = removed(api)
    assert there(api) and "Pod stuck" in outcome.applied.refusal and api.now >= 10


def test_a_kubelet_s_mirror_pods_keep_no_namespace(api: Api) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "n", "controller": True}
    api.add("pods", "planted-worker-1", annotations={"kubernetes.io/config.mirror": "5"}, ownerReferences=[node])
    assert removed(api).applied.action == "deleted" and not there(api) and api.now == 0
    # of another kind the annotation says nothing
    assert judge_objects(
        [("Secret", {"metadata": {"name": "a", "annotations": {"kubernetes.io/config.mirror": "5"}}})]
    ).foreign == ("Secret a",)


def test_many_planted_namespaces_hold_up_a_teardown_no_longer_than_one(api: Api) -> None:
    for number in range(20):
        name = f"planted-{number}"
        api._objects["/api/v1/namespaces"][name] = {
            "metadata": {"name": name, "uid": name, "labels": OURS, "resourceVersion": "1"}
        }
        for path in [path for path in api._objects if f"/namespaces/{NAME}/" in path]:
            api._objects[path.replace(f"/namespaces/{NAME}/", f"/namespaces/{name}/")] = {}
        held = {
            "name": "held",
            "uid": f"held-{number}",
            "deletionTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["tenant/never"],
        }
        api._objects[f"/api/v1/namespaces/{name}/configmaps"]["held"] = {"metadata": held}
    removal = Removal(("Namespace",), "app.kubernetes.io/managed-by=linerate.rdma", limit=10)
    outcomes = {
        item.applied.name: item.applied.action
        for item in remove_all(FakeApi.client(api.url), removal, False, lambda: api.now, api.pause)
    }
    assert outcomes.pop(NAME) == "deleted" and set(outcomes.values()) == {"refused"} and len(outcomes) == 20
    assert api.now <= 2 * removal.limit


def test_namespaces_that_take_too_long_to_look_through_stay_and_are_told(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look asks for all that the API server has: 1,000 planted namespaces would take most of an hour."""
    for number in range(20):
        name = f"a-planted-{number}"
        api._objects["/api/v1/namespaces"][name] = {
            "metadata": {"name": name, "uid": name, "labels": OURS, "resourceVersion": "1"}
        }
        for path in [path for path in api._objects if f"/namespaces/{NAME}/" in path]:
            api._objects[path.replace(f"/namespaces/{NAME}/", f"/namespaces/{name}/")] = {}
    looked: list[str] = []

    def slow(cluster: Cluster, namespace: str, *_given: typing.Any) -> None:
        looked.append(namespace)
        api.now += 200

    monkeypatch.setattr(remove, "objects_of_others", slow)
    removal = Removal(("Namespace",), "app.kubernetes.io/managed-by=linerate.rdma", limit=10)
    outcomes = {
        item.applied.name: item.applied
        for item in remove_all(FakeApi.client(api.url), removal, False, lambda: api.now, api.pause)
    }
    assert looked[0] == NAME and len(looked) == 4 and outcomes[NAME].action == "deleted"
    left = [item for name, item in outcomes.items() if name not in looked]
    assert (
        len(left) == 17
        and {(item.action, item.reason) for item in left} == {("refused", "Unread")}
        and "took too long" in left[0].refusal
    )


def test_objects_of_a_tenant_with_our_label_hold_up_a_teardown_for_two_waits_and_a_minute_for_each_kind() -> None:
    """A minute, since the pods that end have to be gone before what they use goes."""
    kinds = ("PyTorchJob", "TrainJob", "TrainingRuntime", "Pod", "NetworkAttachmentDefinition", "ConfigMap")
    now = [0.0]

    class Planted:
        def list(self, kind: str, *arguments: str, **options: typing.Any) -> typing.Any:
            metadata = {
                "name": "x",
                "namespace": "tenant",
                "uid": f"u-{kind}",
                "labels": OURS,
                "finalizers": ["tenant/never"],
            }
            return type("Listing", (), {"items": ({"apiVersion": "v1", "kind": kind, "metadata": metadata},)})()

        def delete(self, *arguments: typing.Any, **options: typing.Any) -> bool:
            return True

    removal = Removal(kinds, "app.kubernetes.io/managed-by=linerate.rdma", limit=300)
    outcomes = remove_all(
        typing.cast(Cluster, Planted()),
        removal,
        False,
        lambda: now[0],
        lambda seconds: now.__setitem__(0, now[0] + seconds),
    )
    assert now[0] <= 2.1 * removal.limit + 60 * len(kinds) and [item.applied.reason for item in outcomes] == [
        "Remains"
    ] * len(kinds)


def test_what_openshift_ai_and_pipelines_make_in_each_namespace_is_nobody_s_data() -> None:
    made = {
        "ConfigMap": ("odh-trusted-ca-bundle", "config-trusted-cabundle", "config-service-cabundle"),
        "ServiceAccount": ("pipeline",),
        "RoleBinding": ("pipeline", "openshift-pipelines-edit", "pipelines-scc-rolebinding"),
    }
    objects: list[tuple[str, Resource]] = []
    objects += [
        (kind, {"metadata": {"name": name, "uid": f"{kind} {name}"}}) for kind, names in made.items() for name in names
    ]
    labelled: Resource = {"name": "ca", "uid": "ca", "labels": {"config.openshift.io/inject-trusted-cabundle": "true"}}
    account = {
        "annotations": {"kubernetes.io/service-account.name": "pipeline"},
        "managedFields": [{"manager": "openshift-controller-manager", "fieldsV1": {"f:type": {}}}],
    }
    objects += [
        ("ConfigMap", {"metadata": labelled}),
        ("Secret", {"metadata": {"name": "pipeline-dockercfg-x", "uid": "s", **account}}),
    ]
    assert judge_objects(objects) == ForeignObjects()
    assert judge_objects([("Secret", {"metadata": labelled})]).foreign == ("Secret ca",)


def test_what_has_an_owner_in_the_namespace_is_its_owner_s(api: Api) -> None:
    api.add("statefulsets", "db", APPS)
    api.add("pods", "db-0", ownerReferences=[{"uid": "uid-db"}])
    assert removed(api).applied.refusal.endswith("(1): StatefulSet db")


def test_an_owner_of_ours_takes_its_own_along(api: Api) -> None:
    api.add("statefulsets", "ours", APPS, labels=OURS)
    api.add("pods", "ours-0", ownerReferences=[{"uid": "uid-ours"}])
    assert removed(api).applied.action == "deleted"


def test_check_mode_deletes_nothing(api: Api) -> None:
    assert removed(api, check_mode=True).applied.action == "deleted" and there(api)


def test_only_metadata_is_asked_for(api: Api) -> None:
    """What Secrets hold does not come here."""
    cluster, asked = FakeApi.client(api.url), {}
    original = cluster._call

    def call(method: str, path: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        asked[path] = more.get("header_params", {}).get("Accept", "")
        return original(method, path, *arguments, **more)

    cluster._call = call  # type: ignore[method-assign]
    assert objects_of_others(cluster, NAME, 0, lambda: api.now, api.pause) is None
    assert asked[f"/api/v1/namespaces/{NAME}/secrets"].startswith("application/json;as=PartialObjectMetadataList")
    assert not any("metrics.k8s.io" in path for path in asked)


@pytest.mark.parametrize(
    ("name", "labels", "stays"), [("theirs", {}, True), ("kube-root-ca.crt", {}, False), ("ours", OURS, False)]
)
def test_the_observers_namespace_stays_with_what_others_have_in_it_and_the_observers_go(
    name: str, labels: dict[str, str], stays: bool
) -> None:
    world = fake_observers.World(fake_observers.node("worker-1"))
    world.resources = [_resource("configmaps", "ConfigMap")]
    world.make_namespace({**OURS, LABEL: OWN})
    for kind in ("DaemonSet", "Pod", "ServiceAccount"):
        world.serve(kind, [], fake_observers.NAMESPACE)
    metadata = {"name": "linerate-observer", "namespace": fake_observers.NAMESPACE, "labels": OURS, "uid": "a"}
    world.put("ServiceAccount", {"kind": "ServiceAccount", "metadata": metadata}, fake_observers.NAMESPACE)
    world.serve("ConfigMap", [{"metadata": {"name": name, "labels": labels}}], fake_observers.NAMESPACE)
    world.start()
    try:
        observers = Observers(
            FakeApi.client(world.url),
            fake_observers.NAMESPACE,
            5.0,
            lambda: 0.0,
            lambda _seconds: None,
            lambda _line: None,
        )
        if stays:
            with pytest.raises(NamespaceStays, match="ConfigMap theirs") as raised:
                observers.absent(False)
            assert "kubectl delete namespace" in raised.value.remedy
            assert world.all("Namespace", "") and not world.all("ServiceAccount"), "what is ours is gone"
        else:
            observers.absent(False)
            assert not world.all("Namespace", "")
    finally:
        world.stop()
