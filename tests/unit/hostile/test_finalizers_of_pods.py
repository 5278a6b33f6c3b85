# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet that writes a finalizer on a pod of its node: the removal takes it off, or names it with the command that
does."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import of_observers
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Kind
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.finalizers import (
    end_mirror_pods,
    is_bare,
    remove_finalizers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers import Observers
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import MeasuringNamespace
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods

COMMAND = """kubectl patch pod p -n linerate-measure --type merge -p '{"metadata":{"finalizers":null}}'"""


class Api:
    """A pod that no deletion ends, and that may not be patched."""

    def __init__(self, finalizers: typing.Any) -> None:
        metadata = {"name": "p", "namespace": "linerate-measure", "uid": "u1", "finalizers": finalizers}
        self.pod: dict[str, typing.Any] = {
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": "bad"},
            "status": {},
        }
        self.now = 0.0

    def list(self, kind: str, *_arguments: typing.Any, **_options: typing.Any) -> Listing:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return Listing(
            (self.pod if kind == "Pod" else {"kind": "Node", "metadata": {"name": "bad"}, "status": ready},), "1"
        )

    def metadata(self, kind: str, *_arguments: typing.Any) -> typing.Iterator[typing.Any]:
        return iter(self.list(kind).items)

    def delete(self, *_arguments: typing.Any, **_options: typing.Any) -> bool:
        self.pod["metadata"]["deletionTimestamp"] = "2026-11-27T16:00:00Z"
        return True

    def remove_field(self, *_arguments: typing.Any) -> dict[str, typing.Any]:
        raise ApiError(403, "Forbidden", "no", "PATCH")

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("finalizers", "words"),
    [
        (["evil.example/stay"], "its finalizers evil.example/stay prevent the deletion until they are removed: "),
        (
            ["a/1", "a/2", "a/3", "a/4", "a/5"],
            "its finalizers a/1, a/2, a/3 and 2 more prevent the deletion until they are removed: ",
        ),
        ([], ""),
        (None, ""),
        ("no list", ""),
    ],
)
def test_a_finalizer_is_named_with_the_command_that_takes_it_off(finalizers: typing.Any, words: str) -> None:
    api = Api(finalizers)
    (told,) = remove_pods(typing.cast("typing.Any", api), 60, lambda: api.now, api.sleep)
    assert told.startswith("linerate-measure/p (deleted after 60 s without confirmation by its node bad")
    assert (words + COMMAND in told) if words else "finalizers" not in told


DELETED = "2026-11-27T16:00:00Z"
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "name": "linerate-observer",
    "uid": "11111111-1111-1111-1111-111111111111",
    "controller": True,
}


def pod(name: str, **metadata: typing.Any) -> dict[str, typing.Any]:
    """One that is being deleted, and that a finalizer keeps."""
    known = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "deletionTimestamp": DELETED,
        "finalizers": ["evil.example/stay"],
    }
    return {"kind": "Pod", "metadata": {**known, **metadata}, "spec": {"nodeName": "bad"}, "status": {}}


class HeldPods:
    """A namespace that goes when no pod in it has a finalizer any more."""

    def __init__(self, label: str, *pods: dict[str, typing.Any], refuses: int = 0) -> None:
        self.pods, self.refuses, self.now = list(pods), refuses, 0.0
        self.taken: list[tuple[str, str, str, str]] = []
        labels = {label: "own", "app.kubernetes.io/managed-by": "linerate.rdma"}
        self.namespace: dict[str, typing.Any] = {
            "metadata": {"name": "ns", "uid": "ns", "labels": labels, "deletionTimestamp": DELETED}
        }

    def get(self, kind: str, _namespace: str, _name: str) -> dict[str, typing.Any]:
        if kind != "Namespace" or not any(item["metadata"].get("finalizers") for item in self.pods):
            raise ApiError(404, "NotFound", "not found", "GET")
        return self.namespace

    def list(self, kind: str, *_arguments: typing.Any, **_options: typing.Any) -> Listing:
        return Listing(tuple(self.pods) if kind == "Pod" else (), "1")

    def metadata(self, kind: str, *_arguments: typing.Any, **_options: typing.Any) -> typing.Iterator[typing.Any]:
        return iter(self.list(kind).items)

    def delete(self, *_arguments: typing.Any, **_options: typing.Any) -> bool:
        return True

    def create(
        self, definition: dict[str, typing.Any], manager: str = "", **_options: typing.Any
    ) -> dict[str, typing.Any]:
        return definition

    def remove_field(self, kind: str, namespace: str, name: str, uid: str, field: str) -> dict[str, typing.Any]:
        if self.refuses:
            raise ApiError(self.refuses, "Forbidden", "no", "PATCH")
        self.taken.append((kind, namespace, name, field))
        (seen,) = [item["metadata"] for item in self.pods if item["metadata"]["uid"] == uid]
        return {"was": seen.pop("finalizers")}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_measurement_takes_them_off_the_pods_of_an_earlier_one() -> None:
    api = HeldPods("linerate.rdma/measure", pod("p"))
    assert MeasuringNamespace(typing.cast("typing.Any", api), "run-1", 600.0, api.clock, api.sleep).take()
    assert api.taken == [("Pod", "linerate-measure", "p", "/metadata/finalizers")] and api.now < 60


def test_observers_take_them_off_the_pods_of_their_daemon_set_alone() -> None:
    api = HeldPods("linerate.rdma/observers", pod("o", ownerReferences=[OWNER]))
    observers = Observers(
        typing.cast("typing.Any", api), "linerate-observers", 600.0, api.clock, api.sleep, lambda _line: None
    )
    observers.absent(False)
    assert api.taken == [("Pod", "linerate-observers", "o", "/metadata/finalizers")] and api.now < 60
    foreign = HeldPods("linerate.rdma/observers", pod("o", ownerReferences=[{**OWNER, "name": "other"}]))
    with pytest.raises(RdmaError, match="still exists 600 s after its deletion"):
        Observers(
            typing.cast("typing.Any", foreign),
            "linerate-observers",
            600.0,
            foreign.clock,
            foreign.sleep,
            lambda _line: None,
        ).absent(False)
    assert foreign.taken == []


@pytest.mark.parametrize(
    ("item", "taken"),
    [
        (pod("p"), True),
        (pod("p", deletionTimestamp=None), False),
        (pod("p", finalizers=[]), False),
        (pod("p", ownerReferences=[OWNER]), False),
        (pod("p", annotations={"kubernetes.io/config.mirror": "x"}), False),
    ],
)
def test_they_are_taken_off_a_pod_of_ours_that_is_being_deleted(item: dict[str, typing.Any], taken: bool) -> None:
    api = HeldPods("linerate.rdma/measure", item)
    assert remove_finalizers(typing.cast("typing.Any", api), "linerate-measure", "a=b", is_bare) == (
        ("uid-p",) if taken else ()
    )
    assert bool(api.taken) == taken


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        (0, "; its finalizers, which linerate.rdma does not set on pods, were removed)"),
        (403, COMMAND),
        (422, COMMAND),
    ],
)
def test_a_removal_that_may_not_take_them_off_names_the_command(refuses: int, words: str) -> None:
    api = HeldPods("linerate.rdma/measure", pod("p", namespace="linerate-measure", uid="u1"), refuses=refuses)
    (told,) = remove_pods(typing.cast("typing.Any", api), 60, api.clock, api.sleep)
    assert told.startswith("linerate-measure/p (deleted after 60 s") and words in told


class Server(Cluster):
    """An API server that holds one pod, and applies JSON patches as RFC 6902 has it. The pod changes between a list and
    the patch after it."""

    def __init__(self, *changes: tuple[str, typing.Any]) -> None:
        self.held: dict[str, typing.Any] = pod("p", finalizers=["a/1", "a/2"])["metadata"]
        self.changes = changes

    def metadata(self, kind: Kind, *_arguments: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
        return iter([{"kind": kind, "metadata": dict(self.held)}])

    def _json(self, method: str, path: str, *_words: typing.Any, **options: typing.Any) -> dict[str, typing.Any]:
        assert (method, path) == ("patch", "/api/v1/namespaces/linerate-measure/pods/p") and options[
            "content_type"
        ] == "application/json-patch+json"
        self.held.update(self.changes)
        for change in options["body"]:
            key = change["path"].rpartition("/")[2]
            if change["op"] == "test" and self.held.get(key) != change["value"]:
                raise ApiError(
                    422,
                    "Invalid",
                    "the server rejected our request due to an error in our request: test failed",
                    "PATCH",
                )
            if change["op"] == "remove":
                del self.held[key]
        return self.held


@pytest.mark.parametrize(
    "change",
    [
        ("resourceVersion", "8"),
        ("annotations", {"evil.example/x": "1"}),
        ("finalizers", ["a/2", "a/1"]),
        ("finalizers", ["a/2"]),
    ],
)
def test_a_kubelet_that_writes_its_pod_meanwhile_keeps_no_finalizer(change: tuple[str, typing.Any]) -> None:
    """It writes status, annotations and the order of the finalizers as often as it likes."""
    api = Server(change)
    assert remove_finalizers(api, "linerate-measure", "a=b", is_bare) == ("uid-p",) and "finalizers" not in api.held


def test_another_pod_of_this_name_keeps_its_finalizers() -> None:
    api = Server(("uid", "another"))
    assert remove_finalizers(api, "linerate-measure", "a=b", is_bare) == () and api.held["finalizers"] == ["a/1", "a/2"]


def test_the_right_for_it_is_in_the_files() -> None:
    assert ("patch", "Pod", "") in {
        (right.verb, right.kind, right.subresource) for right in of_observers("linerate-observers")
    }


class Stuck:
    """A namespace that is being deleted, with a mirror pod that its kubelet does not end, and a pod that runs."""

    def __init__(self) -> None:
        gone = "2026-11-28T11:00:00Z"
        ours = {"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/measure": "own"}
        names = {"name": "linerate-measure", "uid": "n", "deletionTimestamp": gone, "labels": ours}
        self.namespace = {"metadata": names, "status": {"phase": "Terminating"}}
        mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
        self.pods: dict[str, dict[str, typing.Any]] = {
            "mirror": {"metadata": {"name": "mirror", "uid": "m", "deletionTimestamp": gone, **mirror}},
            "other": {"metadata": {"name": "other", "uid": "o", "deletionTimestamp": gone}},
            "runs": {"metadata": {"name": "runs", "uid": "r", **mirror}},
        }
        self.deleted: list[tuple[str, typing.Any]] = []
        self.now = 0.0

    def get(self, _kind: Kind, _namespace: str, _name: str) -> dict[str, typing.Any]:
        if "mirror" not in self.pods:
            raise ApiError(404, "NotFound", "not found", "GET")
        return self.namespace

    def list(self, *_arguments: typing.Any, **_options: typing.Any) -> Listing:
        return Listing(tuple(self.pods.values()), "1")

    def metadata(self, *_arguments: typing.Any, **_options: typing.Any) -> typing.Iterator[dict[str, typing.Any]]:
        return iter(list(self.pods.values()))

    def delete(self, kind: str, _namespace: str, name: str, **options: typing.Any) -> bool:
        assert kind == "Pod"
        self.deleted.append((name, options))
        del self.pods[name]
        return True

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_a_mirror_pod_that_its_kubelet_does_not_end_holds_up_no_measurement() -> None:
    api = Stuck()
    place = MeasuringNamespace(typing.cast(Cluster, api), "run-2", 900.0, lambda: api.now, api.pause)
    place._await_gone("n")
    assert api.deleted == [("mirror", {"grace_seconds": 0, "only": {"uid": "m"}})]
    assert api.now < 60, "and not after 900 s"


def test_what_is_refused_stays_and_others_go() -> None:
    api = Stuck()
    api.pods["second"] = {"metadata": {**api.pods["mirror"]["metadata"], "name": "second", "uid": "s"}}
    refused = api.delete

    def delete(kind: str, namespace: str, name: str, **options: typing.Any) -> bool:
        if name == "mirror":
            raise ApiError(403, "Forbidden", "no", "DELETE")
        return refused(kind, namespace, name, **options)

    api.delete = delete  # type: ignore[method-assign,assignment]
    assert end_mirror_pods(typing.cast(Cluster, api), "linerate-measure") == ("second",)
