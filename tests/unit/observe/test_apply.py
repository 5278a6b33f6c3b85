# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects in and out, against an API server that is played: dry run first, one refusal keeps nobody back, nothing else
is deleted."""

from __future__ import annotations

import ast
import copy
import functools
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import (
    Waits,
    find_leftovers,
    remove_all,
)

OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}


def thing(
    name: str,
    kind: str = "SriovNetwork",
    namespace: str = "ops",
    labels: typing.Optional[dict[str, str]] = None,
    **spec: int,
) -> dict[str, typing.Any]:
    return {
        "kind": kind,
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": dict(OURS if labels is None else labels),
        },
        "spec": spec,
    }


class Api:
    def __init__(self, *items: dict[str, typing.Any], refuse: typing.Optional[dict[str, ApiError]] = None) -> None:
        self.items = {self.key(item): copy.deepcopy(item) for item in items}
        self.refuse = refuse or {}
        self.log: list[typing.Any] = []
        self.stuck: set[str] = set()

    @staticmethod
    def key(item: dict[str, typing.Any]) -> tuple[str, ...]:
        return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        if (kind, namespace, name) not in self.items:
            raise ApiError(404, "NotFound", "not found", "GET")
        return copy.deepcopy(self.items[kind, namespace, name])

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        mine = (
            item
            for key, item in self.items.items()
            if key[0] == kind and item["metadata"]["labels"] == OURS and namespace in ("", key[1])
        )
        return Listing(tuple(mine), "1")

    def read(self, path: str) -> dict[str, typing.Any]:
        """No resource is told: its namespaces hold nothing of others. See tests/unit/hostile/test_namespaces.py."""
        return {"groups": [], "resources": []}

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[str, ...]]:
        self.log.append(("dry" if dry_run else "apply", definition["metadata"]["name"]))
        if definition["metadata"]["name"] in self.refuse:
            raise self.refuse[definition["metadata"]["name"]]
        result = copy.deepcopy(definition)
        # what a server adds by itself
        result["metadata"].update(
            {"resourceVersion": str(len(self.log)), "uid": "u", "managedFields": [{"time": len(self.log)}]}
        )
        result["spec"].setdefault("logLevel", "info")
        if not dry_run:
            self.items[self.key(definition)] = result
        return result, ("mind this",)

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        """What fails where there is one."""
        if self.key(definition) in self.items:
            raise ApiError(409, "AlreadyExists", "already exists", "POST")
        return self.apply(definition, manager, False)[0]

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        grace_seconds: None = None,
        dry_run: bool = False,
        *,
        only: dict[str, str],
    ) -> bool:
        assert only == {"uid": self.items[kind, namespace, name]["metadata"]["uid"]}
        self.log.append(("dry delete" if dry_run else "delete", name))
        if name in self.refuse:
            raise self.refuse[name]
        if not dry_run and name not in self.stuck:
            self.items.pop((kind, namespace, name))
        return True


FORBIDDEN = ApiError(403, "Forbidden", "no supported NIC is selected", "PATCH")


def actions(outcomes: tuple[Outcome, ...]) -> list[tuple[str, str]]:
    return [(outcome.applied.name, outcome.applied.action) for outcome in outcomes]


def test_dry_run_of_all_comes_before_the_first_write() -> None:
    api = Api()
    outcomes = apply_all(typing.cast(Cluster, api), [("f", thing("one")), ("f", thing("two"))], False)
    assert actions(outcomes) == [("one", "created"), ("two", "created")]
    assert api.log == [("dry", "one"), ("dry", "two"), ("apply", "one"), ("apply", "two")]
    assert outcomes[0].applied.warnings == ("mind this",)


def test_a_second_run_writes_nothing() -> None:
    api = Api()
    wanted = [("f", thing("one"))]
    apply_all(typing.cast(Cluster, api), wanted, False)
    api.log.clear()
    assert actions(apply_all(typing.cast(Cluster, api), wanted, False)) == [("one", "unchanged")]
    assert api.log == [("dry", "one")]


def test_a_change_shows_before_and_after_without_what_the_server_writes() -> None:
    api = Api()
    apply_all(typing.cast(Cluster, api), [("f", thing("one", vlan=1))], False)
    (outcome,) = apply_all(typing.cast(Cluster, api), [("f", thing("one", vlan=2))], False)
    assert outcome.applied.action == "changed"
    assert outcome.before is not None and outcome.after is not None
    assert (outcome.before["spec"]["vlan"], outcome.after["spec"]["vlan"]) == (1, 2)
    assert set(outcome.after["metadata"]) == {"name", "namespace", "labels"}


def test_check_mode_asks_and_writes_nothing() -> None:
    api = Api()
    assert actions(apply_all(typing.cast(Cluster, api), [("f", thing("one"))], True)) == [("one", "created")]
    assert api.items == {}


def test_check_mode_shows_what_the_server_cannot_judge_yet() -> None:
    """The namespace would be made by an earlier stage of the same run."""
    api = Api(refuse={"one": ApiError(404, "NotFound", 'namespaces "operator" not found', "PATCH")})
    (outcome,) = apply_all(typing.cast(Cluster, api), [("f", thing("one"))], True)
    assert (outcome.applied.action, outcome.changed) == ("unjudged", True)
    assert outcome.after is not None
    assert outcome.after["metadata"]["name"] == "one"
    assert actions(apply_all(typing.cast(Cluster, api), [("f", thing("one"))], False)) == [("one", "refused")]


def test_check_mode_refuses_what_is_in_a_namespace_that_is_refused() -> None:
    refuse = {
        "operator": ApiError(403, "Forbidden", "cannot patch namespaces", "PATCH"),
        "one": ApiError(404, "NotFound", 'namespaces "operator" not found', "PATCH"),
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "operator"}}
    inside = thing("one")
    inside["metadata"]["namespace"] = "operator"
    for check_mode in (True, False):
        cluster = typing.cast(Cluster, Api(refuse=refuse))
        outcomes = apply_all(cluster, [("", space), ("f", inside)], check_mode, pause=lambda seconds: None)
        assert actions(outcomes) == [("operator", "refused"), ("one", "refused")]
        assert not any(outcome.changed for outcome in outcomes)


def test_a_refusal_keeps_nobody_back() -> None:
    api = Api(refuse={"one": FORBIDDEN})
    first, second = apply_all(typing.cast(Cluster, api), [("compute", thing("one")), ("storage", thing("two"))], False)
    assert (first.applied.action, first.applied.refusal, first.applied.reason, first.applied.fabric) == (
        "refused",
        "no supported NIC is selected",
        "Forbidden",
        "compute",
    )
    assert not first.changed
    assert second.applied.action == "created"
    assert ("apply", "one") not in api.log


def test_an_unreachable_server_is_an_error_and_no_refusal() -> None:
    api = Api(refuse={"one": ApiError(0, "Unreachable", "no answer", "PATCH")})
    with pytest.raises(ApiError, match="no answer"):
        apply_all(typing.cast(Cluster, api), [("f", thing("one"))], False)


def test_somebody_else_s_namespace_is_left_alone() -> None:
    theirs = thing("test", "Namespace", "", {"team": "x"})
    api = Api(theirs)
    assert actions(apply_all(typing.cast(Cluster, api), [("", thing("test", "Namespace", ""))], False)) == [
        ("test", "unchanged")
    ]
    assert api.log == []


def remove(api: Api, check_mode: bool = False, limit: float = 3.0, **options: typing.Any) -> tuple[Outcome, ...]:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    removal = Removal(
        ("SriovNetwork", "Namespace"), "app.kubernetes.io/managed-by=linerate.rdma", limit=limit, **options
    )
    return remove_all(typing.cast(Cluster, api), removal, check_mode, lambda: now[0], pause)


def test_removal_in_order_and_only_of_ours() -> None:
    api = Api(thing("test", "Namespace", ""), thing("one"), thing("theirs", labels={"a": "b"}))
    assert actions(remove(api)) == [("one", "deleted"), ("test", "deleted")]
    assert [key[2] for key in api.items] == ["theirs"]


def test_a_namespace_to_keep_stays() -> None:
    api = Api(thing("ops", "Namespace", ""), thing("test", "Namespace", ""))
    assert actions(remove(api, keep=("ops",))) == [("test", "deleted")]


def test_removal_looks_in_the_namespaces_that_are_named_only() -> None:
    api = Api(thing("one", namespace="pods"), thing("other", namespace="elsewhere"), thing("two", namespace="more"))
    assert actions(remove(api, namespaces=("pods", "more"))) == [("one", "deleted"), ("two", "deleted")]
    assert [key[2] for key in api.items] == ["other"]


def test_what_does_not_go_is_named_with_its_finalizers() -> None:
    item = thing("one")
    item["metadata"]["finalizers"] = ["netattdef.finalizers.sriovnetwork.openshift.io"]
    api = Api(item)
    api.stuck.add("one")
    (outcome,) = remove(api)
    assert (outcome.applied.action, outcome.changed) == ("refused", False)
    assert "netattdef.finalizers.sriovnetwork.openshift.io" in outcome.applied.refusal


def test_an_object_that_returns_under_its_name_is_not_the_one_that_was_deleted() -> None:
    """The controller of a StatefulSet creates a pod again after each deletion, with its label."""
    api = Api(thing("one"))
    delete = api.delete

    def create_again(kind: str, namespace: str, name: str, **options: typing.Any) -> bool:
        gone = delete(kind, namespace, name, **options)
        item = thing("one")
        item["metadata"]["uid"] = "another"
        api.items[api.key(item)] = item
        return gone

    api.delete = create_again  # type: ignore[method-assign, assignment]
    assert actions(remove(api)) == [("one", "deleted")]


def test_removal_in_check_mode_deletes_nothing() -> None:
    api = Api(thing("one"))
    assert actions(remove(api, True)) == [("one", "deleted")]
    assert api.items
    assert api.log == [("dry delete", "one")]


def test_a_kind_that_the_server_does_not_know_has_no_objects() -> None:
    api = Api()

    def unknown(kind: str, namespace: str = "", selector: str = "") -> None:
        raise ApiError(404, "NotFound", "the server could not find the requested resource", "GET")

    api.list = unknown  # type: ignore[assignment, method-assign]
    assert remove(api) == ()


class Joint(Api):
    """An API server with the one object of all, and who wrote what into it."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        return Listing(tuple(item for key, item in self.items.items() if key[0] == kind), "1")

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[()]]:
        self.log.append(("dry" if dry_run else "apply", definition))
        before = self.items.get(self.key(definition), {"metadata": {"name": "nic-cluster-policy"}, "spec": {}})
        theirs = {part: value for part, value in before["spec"].items() if part not in OUR_PARTS}
        result = copy.deepcopy({**before, **definition, "spec": {**theirs, **definition.get("spec", {})}})
        result["metadata"] = {
            **before["metadata"],
            **definition["metadata"],
            "uid": "policy",
            "managedFields": managers(theirs, definition.get("spec")),
        }
        if not dry_run:
            self.items[self.key(definition)] = result
        return result, ()


OUR_PARTS = {"rdmaSharedDevicePlugin"}


def managers(
    theirs: dict[str, typing.Any], ours: typing.Optional[dict[str, typing.Any]]
) -> list[dict[str, typing.Any]]:
    parts = [("helm", theirs), ("linerate.rdma", ours)]
    fields = [
        {"manager": name, "operation": "Apply", "fieldsV1": {"f:spec": {f"f:{part}": {} for part in spec}}}
        for name, spec in parts
        if spec
    ]
    return [*fields, {"manager": "controller", "operation": "Update", "fieldsV1": {"f:status": {}}}]


def nic_policy(
    spec: dict[str, typing.Any], **metadata: typing.Union[dict[str, str], list[dict[str, typing.Any]]]
) -> dict[str, typing.Any]:
    return {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy", **metadata},
        "spec": spec,
    }


PART = {"rdmaSharedDevicePlugin": {"config": "{}"}}
REMOVAL = Removal(("NicClusterPolicy",), "app.kubernetes.io/managed-by=linerate.rdma")


def taken_back(api: Joint, check_mode: bool = False) -> tuple[Outcome, ...]:
    return remove_all(typing.cast(Cluster, api), REMOVAL, check_mode, lambda: 0.0, lambda seconds: None)


def test_a_policy_of_others_is_joined_and_left_again() -> None:
    theirs = {"nvIpam": {"image": "x"}}
    api = Joint(nic_policy(theirs, managedFields=managers(theirs, None)))
    assert actions(apply_all(typing.cast(Cluster, api), [("", nic_policy(PART, labels=OURS))], False)) == [
        ("nic-cluster-policy", "changed")
    ]
    (item,) = api.items.values()
    # with our label on it the teardown would delete what is theirs
    assert item["spec"] == {**theirs, **PART} and "labels" not in item["metadata"]
    assert actions(apply_all(typing.cast(Cluster, api), [("", nic_policy(PART, labels=OURS))], False)) == [
        ("nic-cluster-policy", "unchanged")
    ]
    assert actions(taken_back(api, True)) == [("nic-cluster-policy", "released")] and item in api.items.values()
    assert actions(taken_back(api)) == [("nic-cluster-policy", "released")]
    assert next(iter(api.items.values()))["spec"] == theirs
    assert taken_back(api) == ()


def test_a_policy_that_is_all_ours_is_deleted() -> None:
    api = Joint()
    assert actions(apply_all(typing.cast(Cluster, api), [("", nic_policy(PART, labels=OURS))], False)) == [
        ("nic-cluster-policy", "created")
    ]
    assert actions(taken_back(api)) == [("nic-cluster-policy", "deleted")]
    assert api.items == {}


def test_a_policy_of_ours_that_others_joined_stays_theirs() -> None:
    theirs = {"nvIpam": {"image": "x"}}
    api = Joint(nic_policy({**theirs, **PART}, labels=OURS, managedFields=managers(theirs, PART)))
    assert actions(taken_back(api)) == [("nic-cluster-policy", "released")]
    assert next(iter(api.items.values()))["spec"] == theirs


def test_an_object_in_a_namespace_that_is_made_with_it_is_judged_once_it_is_there() -> None:
    class Strict(Api):
        """A dry run makes no namespace, so what is in it is not found."""

        def apply(
            self, definition: dict[str, typing.Any], manager: str, dry_run: bool
        ) -> tuple[dict[str, typing.Any], tuple[str, ...]]:
            namespace = definition["metadata"].get("namespace")
            if namespace and ("Namespace", "", namespace) not in self.items:
                self.log.append(("dry" if dry_run else "apply", definition["metadata"]["name"]))
                raise ApiError(404, "NotFound", f'namespaces "{namespace}" not found', "PATCH")
            return super().apply(definition, manager, dry_run)

    space = thing("new", kind="Namespace")
    del space["metadata"]["namespace"]
    wanted = [("", space), ("f", thing("one", namespace="new")), ("f", thing("two", namespace="other"))]
    assert actions(apply_all(typing.cast(Cluster, Strict()), wanted, True)) == [
        ("new", "created"),
        ("one", "unjudged"),
        ("two", "unjudged"),
    ]
    api = Strict()
    assert actions(apply_all(typing.cast(Cluster, api), wanted, False)) == [
        ("new", "created"),
        ("one", "created"),
        ("two", "refused"),
    ]
    assert api.log == [
        ("dry", "new"),
        ("dry", "one"),
        ("dry", "two"),
        ("apply", "new"),
        ("dry", "one"),
        ("apply", "one"),
    ]
    api.log.clear()
    assert actions(apply_all(typing.cast(Cluster, api), wanted[:2], False)) == [
        ("new", "unchanged"),
        ("one", "unchanged"),
    ]


class Cached(Api):
    """A webhook that looks for the runtime of a job in its own copy of the cluster, which is ``late`` looks behind."""

    def __init__(self, late: int) -> None:
        super().__init__()
        self.late = late

    def apply(
        self, definition: dict[str, typing.Any], manager: str, dry_run: bool
    ) -> tuple[dict[str, typing.Any], tuple[str, ...]]:
        if definition["kind"] == "TrainJob":
            self.late -= ("TrainingRuntime", "ops", "train") in self.items
            if self.late >= 0:
                self.log.append(("dry" if dry_run else "apply", "refused"))
                text = (
                    'admission webhook "v" denied the request: TrainingRuntime.trainer.kubeflow.org "train" not found'
                )
                raise ApiError(403, "Forbidden", text, "PATCH")
        return super().apply(definition, manager, dry_run)


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


JOB = [("f", thing("train", kind="TrainingRuntime")), ("f", thing("train", kind="TrainJob"))]


def test_a_webhook_that_sees_late_what_was_just_made_is_waited_for() -> None:
    api, clock = Cached(late=3), Time()
    assert [
        outcome.applied.action for outcome in apply_all(typing.cast(Cluster, api), JOB, False, clock, clock.pause)
    ] == ["created", "created"]
    assert clock.now == 3.0


def test_a_webhook_that_never_sees_it_refuses() -> None:
    api, clock = Cached(late=99), Time()
    assert [
        outcome.applied.action for outcome in apply_all(typing.cast(Cluster, api), JOB, False, clock, clock.pause)
    ] == ["created", "refused"]
    assert clock.now == 10.0
    # what is not made by this run is not waited for
    assert [
        outcome.applied.action
        for outcome in apply_all(typing.cast(Cluster, Cached(late=0)), JOB[1:], False, clock, clock.pause)
    ] == ["refused"]
    assert clock.now == 10.0


def test_in_check_mode_nobody_can_judge_what_needs_an_object_that_is_not_made() -> None:
    assert [outcome.applied.action for outcome in apply_all(typing.cast(Cluster, Cached(late=0)), JOB, True)] == [
        "created",
        "unjudged",
    ]


SELECTOR = "app.kubernetes.io/managed-by=linerate.rdma"


def test_leftovers_are_ours_and_not_wanted() -> None:
    made = thing("made-by-the-operator")
    made["metadata"]["ownerReferences"] = [{"kind": "SriovNetwork", "name": "old"}]
    api = Api(thing("wanted"), thing("old", namespace="other"), thing("foreign", labels={}), made)
    found = find_leftovers(typing.cast(Cluster, api), ["SriovNetwork"], SELECTOR, [thing("wanted"), thing("old")])
    assert [(item.kind, item.namespace, item.name, item.fabric) for item in found.objects] == [
        ("SriovNetwork", "other", "old", "")
    ]
    assert (found.errors, api.log) == ((), [])


class Closed(Api):
    """Lists nothing of one kind, and says why."""

    def __init__(self, *items: dict[str, typing.Any], error: ApiError) -> None:
        super().__init__(*items)
        self.error = error

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        if kind == "MacvlanNetwork":
            raise self.error
        return super().list(kind, namespace, selector)


@pytest.mark.parametrize(("status", "unread"), [(404, 0), (403, 1)])
def test_leftovers_of_a_kind_that_is_not_served_or_not_shown(status: int, unread: int) -> None:
    api = Closed(thing("old"), error=ApiError(status, "NotFound" if status == 404 else "Forbidden", "no", "GET"))
    found = find_leftovers(typing.cast(Cluster, api), ["MacvlanNetwork", "SriovNetwork"], SELECTOR, [])
    assert ([item.name for item in found.objects], len(found.errors)) == (["old"], unread)


def test_leftovers_without_an_api_server_are_an_error() -> None:
    with pytest.raises(ApiError):
        find_leftovers(
            typing.cast(Cluster, Closed(error=ApiError(0, "", "connection refused", "GET"))),
            ["MacvlanNetwork"],
            SELECTOR,
            [],
        )


def test_objects_that_go_right_before_the_limit_cost_no_more_together_than_those_that_stay() -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    waits = Waits(300.0, lambda: now[0], pause)
    for _number in range(100):
        begin = now[0]
        waits.await_gone(functools.partial(lambda begun: now[0] < begun + 299, begin))
    assert now[0] <= 2 * 300 + 1


def test_each_wait_has_its_least_time_whatever_the_others_took() -> None:
    """Two planted objects that never go must not take the time in which pods end, before what they use is deleted."""
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    waits = Waits(300.0, lambda: now[0], pause, 60.0)
    assert waits.await_gone(lambda: "planted") and waits.await_gone(lambda: "planted")
    begin = now[0]
    assert not waits.await_gone(lambda: now[0] < begin + 30)
    begin = now[0]
    assert waits.await_gone(lambda: "planted") and 60 <= now[0] - begin <= 61


class LargeApi(Api):
    """The objects of a kind are too large to be read."""

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        raise ApiError(200, "TooLarge", "all objects have more than 8000000 values", "GET")

    def metadata(self, kind: str, namespace: str, selector: str = "") -> typing.Iterator[dict[str, typing.Any]]:
        assert selector == "the-label"
        for item in super().list(kind, namespace, selector).items:
            large = {
                "annotations": {"large": "x" * 1000},
                "managedFields": [{"fieldsV1": {"f:metadata": "x" * 1000}}],
                "finalizers": ["a/b"] * 9,
            }
            yield {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {**item["metadata"], **large},
            }


def test_objects_that_are_too_large_to_be_read_are_removed_by_their_metadata() -> None:
    server = LargeApi(thing("a"), thing("b"), thing("c", labels={}))
    server.stuck.add("b")
    removal = Removal(("SriovNetwork",), "the-label", limit=0.0)
    outcomes = remove_all(typing.cast(Cluster, server), removal, False, lambda: 0.0, lambda _seconds: None)
    assert actions(outcomes) == [("a", "deleted"), ("b", "refused")]
    assert [name for _kind, _namespace, name in server.items] == ["b", "c"]
    assert outcomes[0].before == {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetwork",
        "metadata": {"name": "a", "namespace": "ops", "labels": OURS},
    }
    assert len(repr(outcomes[1])) < 2000


def written(item: dict[str, typing.Any], *managers: str, **metadata: typing.Any) -> dict[str, typing.Any]:
    """The object, with the records of who wrote it."""
    records = [{"manager": name, "operation": "Update", "fieldsV1": {"f:spec": {}}} for name in managers]
    return {**item, "metadata": {**item["metadata"], "managedFields": records, **metadata}}


COPY = written(thing("team-b", namespace="team-b"), "kubectl-client-side-apply")


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_a_user_copied_with_its_label_stays_and_is_named(check_mode: bool) -> None:
    """'kubectl get ... -o yaml', another name, 'kubectl apply': the label comes along, and no run wrote it."""
    ours = written(thing("ours"), "kubectl-edit", "linerate.rdma")
    owned = written(thing("owned"), "operator", ownerReferences=[{"uid": "o"}])
    api = Api(COPY, ours, owned, thing("of-a-server-that-tells-nobody"), written(thing("old"), "ancient-changes"))
    outcomes = remove_all(
        typing.cast(Cluster, api), Removal(("SriovNetwork",), SELECTOR), check_mode, lambda: 0.0, lambda _s: None
    )
    assert actions(outcomes)[0] == ("team-b", "kept") and not outcomes[0].changed
    assert {action for _name, action in actions(outcomes)[1:]} == {"deleted"} and len(outcomes) == 5
    assert check_mode or [name for _kind, _space, name in api.items] == ["team-b"]


def test_copies_of_a_tenant_are_counted() -> None:
    copies = [written(thing(f"copy-{number}"), "kubectl") for number in range(100)]
    api = Api(*copies)
    outcomes = remove_all(
        typing.cast(Cluster, api), Removal(("SriovNetwork",), SELECTOR), False, lambda: 0.0, lambda _s: None
    )
    assert actions(outcomes)[63:] == [("copy-63", "kept"), ("(36 more)", "kept")] and len(api.items) == 100


def test_a_namespace_that_was_copied_is_not_searched_for_objects_of_others() -> None:
    space = written(thing("copied", "Namespace", ""), "kubectl")
    api = Api(space)
    removal = Removal(("Namespace",), SELECTOR)
    outcomes = remove_all(typing.cast(Cluster, api), removal, False, lambda: 0.0, lambda _s: None)
    assert actions(outcomes) == [("copied", "kept")] and len(api.items) == 1


class LargeCopies(LargeApi):
    """The records of who wrote them are what makes them large."""

    def metadata(self, kind: str, namespace: str, selector: str = "") -> typing.Iterator[dict[str, typing.Any]]:
        for item in super().metadata(kind, namespace, selector):
            name = item["metadata"]["name"]
            yield written(item, *["x" * 1000] * 100, *(["linerate.rdma"] if name == "ours" else []))


def test_copies_that_are_too_large_to_be_read_stay_and_what_is_kept_of_them_is_small() -> None:
    server = LargeCopies(thing("ours"), thing("copy"))
    removal = Removal(("SriovNetwork",), "the-label", limit=0.0)
    outcomes = remove_all(typing.cast(Cluster, server), removal, False, lambda: 0.0, lambda _seconds: None)
    assert sorted(actions(outcomes)) == [("copy", "kept"), ("ours", "deleted")] and len(repr(outcomes)) < 2000


def test_an_object_that_is_handed_over_by_its_label_is_written_once() -> None:
    """So that a teardown knows it: its content may be the same already."""
    api = Api()
    apply_all(typing.cast(Cluster, api), [("f", thing("one"))], False)
    there = api.items["SriovNetwork", "ops", "one"]
    there["metadata"]["managedFields"] = [{"manager": "kubectl-label"}]
    assert actions(apply_all(typing.cast(Cluster, api), [("f", thing("one"))], False)) == [("one", "changed")]
    assert actions(apply_all(typing.cast(Cluster, api), [("f", thing("one"))], False)) == [("one", "unchanged")]


def test_a_copy_is_no_leftover_of_an_earlier_run() -> None:
    found = find_leftovers(typing.cast(Cluster, Api(COPY, thing("old"))), ["SriovNetwork"], SELECTOR, [])
    assert [(item.name, item.reason) for item in found.objects] == [("team-b", "Copied"), ("old", "")]


def test_each_object_is_created_under_the_field_manager_by_which_a_teardown_knows_it() -> None:
    layers = pathlib.Path(__file__).parents[3] / "plugins" / "module_utils"
    texts = {path: path.read_text(encoding="utf-8") for path in layers.rglob("*.py")}
    created = [
        (path.name, len(call.args))
        for path, text in texts.items()
        if ".create(" in text
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "create"
    ]
    # the API server keeps no review of rights
    assert len(created) > 5 and [name for name, given in created if given < 2] == ["rights.py"]
