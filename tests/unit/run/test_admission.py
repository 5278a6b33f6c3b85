# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that measure are admitted by an account of ours in the namespace of the measurement, which is there while they
are made. Elsewhere nothing is bound."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.admission import render_objects
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import MANAGED_BY
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.admission import (
    iterate_admitted,
    remove_leftovers,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi
from ansible_collections.linerate.rdma.tests.unit.run.test_pairs import FABRIC

#: without the namespace
MANIFEST = yaml.safe_load(
    (pathlib.Path(__file__).parents[3] / "docs/rbac/measuring-openshift.yml").read_text(encoding="utf-8")
)["items"][1:]
#: kinds in the order in which they are made, each with its namespace
MADE = (
    ("SecurityContextConstraints", ""),
    ("ServiceAccount", NAMESPACE),
    ("Role", NAMESPACE),
    ("RoleBinding", NAMESPACE),
)
#: the same where earlier releases made them: in a namespace of jobs
FORMER = (("ServiceAccount", "test"), ("Role", "test"), ("RoleBinding", "test"))


def fabrics(**pods: typing.Any) -> tuple[Fabric, ...]:
    intent = parse_intent([{**FABRIC, "pods": {**FABRIC.get("pods", {}), **pods}}])
    return intent.fabrics


class OpenShift(FakeApi):
    """:ivar refused: kind that nobody may make"""

    def __init__(self, openshift: bool = True) -> None:
        super().__init__()
        self.refused = ""
        self._group = openshift
        for kind, namespace in (*MADE, *FORMER):
            self.serve(kind, [], namespace)

    def object(self, path: str) -> typing.Optional[dict[str, typing.Any]]:
        if path == "/apis/security.openshift.io":
            return {"kind": "APIGroup"} if self._group else None
        return super().object(path)

    def write(
        self, method: str, path: str, body: dict[str, typing.Any], dry_run: bool = False
    ) -> tuple[int, dict[str, typing.Any]]:
        if method == "PATCH" and body["kind"] == self.refused:
            return 403, {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": f"may not make a {self.refused}",
            }
        return super().write(method, path, body, dry_run)

    @property
    def kinds(self) -> list[str]:
        return self._there(MADE)

    @property
    def former(self) -> list[str]:
        return self._there(FORMER)

    def _there(self, made: typing.Iterable[tuple[str, str]]) -> list[str]:
        return [kind for kind, namespace in made if self.object(path_of(kind, namespace, "linerate-rdma")) is not None]


@pytest.fixture
def openshift() -> typing.Iterator[OpenShift]:
    api = OpenShift()
    api.start()
    yield api
    api.stop()


def cluster(api: FakeApi) -> Cluster:
    return FakeApi.client(api.url)


def test_the_account_is_there_while_pods_are_made_and_gone_afterwards(openshift: OpenShift) -> None:
    with iterate_admitted(cluster(openshift), fabrics(), "run-1") as found:
        assert [fabric.pods.service_account for fabric in found] == ["linerate-rdma"]
        assert (openshift.kinds, openshift.former) == ([kind for kind, _namespace in MADE], [])
        constraints = openshift.object("/apis/security.openshift.io/v1/securitycontextconstraints/linerate-rdma") or {}
        assert constraints["metadata"]["labels"] == {**MANAGED_BY, "linerate.rdma/run": "run-1"}
        assert (constraints["allowedCapabilities"], constraints["volumes"]) == (["IPC_LOCK"], ["emptyDir"])
    assert openshift.kinds == []


def test_an_interrupt_takes_it_back_too(openshift: OpenShift) -> None:
    with pytest.raises(KeyboardInterrupt), iterate_admitted(cluster(openshift), fabrics(), "run-1"):
        raise KeyboardInterrupt
    assert openshift.kinds == []


@pytest.mark.parametrize("host_paths", [True, False])
def test_what_a_killed_run_has_left_in_a_namespace_of_jobs_is_removed_before_anything_is_bound(
    openshift: OpenShift, host_paths: bool
) -> None:
    for definition in render_objects(["test"], host_paths, run="run-0"):
        assert cluster(openshift).apply(definition, "linerate.rdma", dry_run=False)
    with iterate_admitted(cluster(openshift), fabrics(), "run-1", former=["test"]):
        constraints = openshift.object("/apis/security.openshift.io/v1/securitycontextconstraints/linerate-rdma") or {}
        assert (len(openshift.kinds), openshift.former, constraints["volumes"]) == (len(MADE), [], ["emptyDir"])
    assert openshift.kinds == []


def test_constraints_that_an_admin_has_made_are_used_and_never_taken_for_ours(openshift: OpenShift) -> None:
    assert cluster(openshift).apply(MANIFEST[0], "admin", dry_run=False)
    with iterate_admitted(cluster(openshift), fabrics(), "run-1"):
        assert openshift.kinds == [kind for kind, _namespace in MADE]
    left = openshift.object("/apis/security.openshift.io/v1/securitycontextconstraints/linerate-rdma") or {}
    assert openshift.kinds == ["SecurityContextConstraints"] and "labels" not in left["metadata"]


def test_a_teardown_takes_back_what_a_killed_run_has_left(openshift: OpenShift) -> None:
    # killed before it had made all of it
    for definition in render_objects([NAMESPACE], run="run-0")[:3]:
        assert cluster(openshift).apply(definition, "linerate.rdma", dry_run=False)
    shown = remove_leftovers(cluster(openshift), ["test", "elsewhere"], check_mode=True)
    assert len(openshift.kinds) == 3
    done = remove_leftovers(cluster(openshift), ["test", "elsewhere"], check_mode=False)
    kinds = ["Role", "ServiceAccount", "SecurityContextConstraints"]
    assert [[(item.applied.kind, item.applied.action) for item in found] for found in (shown, done)] == [
        [(kind, "deleted") for kind in kinds]
    ] * 2
    assert openshift.kinds == []
    assert remove_leftovers(cluster(openshift), ["test"], check_mode=False) == ()


def test_a_teardown_takes_back_an_account_whose_constraints_are_gone(openshift: OpenShift) -> None:
    account = render_objects(["test"], run="run-0")[1]
    assert cluster(openshift).apply(account, "linerate.rdma", dry_run=False)
    (done,) = remove_leftovers(cluster(openshift), ["test"], check_mode=False)
    assert (done.applied.kind, done.applied.action, openshift.former) == ("ServiceAccount", "deleted", [])


def test_a_teardown_leaves_what_an_admin_has_prepared(openshift: OpenShift) -> None:
    for definition in MANIFEST[:1]:
        assert cluster(openshift).apply(definition, "admin", dry_run=False)
    assert remove_leftovers(cluster(openshift), ["test"], check_mode=False) == ()
    assert openshift.kinds == ["SecurityContextConstraints"]


def test_a_teardown_that_may_not_look_says_so(openshift: OpenShift, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: typing.Any) -> typing.NoReturn:
        raise ApiError(403, "Forbidden", "may not get it", "GET")

    there = cluster(openshift)
    monkeypatch.setattr(there, "get", refuse)
    with pytest.raises(ApiError, match="may not get it"):
        remove_leftovers(there, ["test"], check_mode=False)


def test_what_an_admin_has_prepared_is_used_and_stays(openshift: OpenShift) -> None:
    prepared = [
        {**item, "metadata": {**item["metadata"], "namespace": NAMESPACE}} if "namespace" in item["metadata"] else item
        for item in MANIFEST
    ]
    for definition in prepared:
        assert cluster(openshift).apply(definition, "admin", dry_run=False)
    openshift.refused = "SecurityContextConstraints"
    with iterate_admitted(cluster(openshift), fabrics(), "run-1") as found:
        assert [fabric.pods.service_account for fabric in found] == ["linerate-rdma"]
    assert len(openshift.kinds) == len(MADE)


def test_in_a_namespace_that_was_prepared_nothing_is_bound(openshift: OpenShift) -> None:
    """A tenant may have made it, with that label, and would have the constraints."""
    why = "was prepared by an admin, but without the ServiceAccount linerate-rdma"
    with (
        pytest.raises(RdmaError, match=why) as caught,
        iterate_admitted(cluster(openshift), fabrics(), "run-1", own=False),
    ):
        pytest.fail("pods would be made")
    assert openshift.kinds == [] and "docs/rbac/measuring-openshift.yml" in (caught.value.remedy or "")
    for definition in MANIFEST:
        assert cluster(openshift).apply(definition, "admin", dry_run=False)
    with iterate_admitted(cluster(openshift), fabrics(), "run-1", own=False) as found:
        assert [fabric.pods.service_account for fabric in found] == ["linerate-rdma"]
    assert len(openshift.kinds) == len(MADE)


def test_an_account_that_the_intent_names_is_not_replaced(openshift: OpenShift) -> None:
    with iterate_admitted(cluster(openshift), fabrics(service_account="mine"), "run-1") as found:
        assert [fabric.pods.service_account for fabric in found] == ["mine"]
        assert openshift.kinds == []


@pytest.mark.parametrize("kind", [kind for kind, _namespace in MADE])
def test_who_may_not_make_it_is_told_what_to_ask_for_and_nothing_stays(openshift: OpenShift, kind: str) -> None:
    openshift.refused = kind
    with pytest.raises(ApiError) as caught, iterate_admitted(cluster(openshift), fabrics(), "run-1"):
        pytest.fail("pods would be made that nobody admits")
    assert f"may not make a {kind}" in str(caught.value)
    assert (
        caught.value.remedy
        and "docs/rbac/measuring-openshift.yml" in caught.value.remedy
        and "linerate.rdma/measure=prepared" in caught.value.remedy
    )
    assert openshift.kinds == []


@pytest.fixture
def plain() -> typing.Iterator[OpenShift]:
    api = OpenShift(openshift=False)
    api.start()
    yield api
    api.stop()


def test_elsewhere_the_account_alone_is_made_and_gone_afterwards(plain: OpenShift) -> None:
    with iterate_admitted(cluster(plain), fabrics(), "run-1") as found:
        assert [fabric.pods.service_account for fabric in found] == ["linerate-rdma"]
        assert plain.kinds == ["ServiceAccount"]
    assert plain.kinds == []


def test_in_a_namespace_that_an_admin_has_prepared_elsewhere_nothing_is_made(plain: OpenShift) -> None:
    wanted = fabrics()
    with iterate_admitted(cluster(plain), wanted, "run-1", own=False) as found:
        assert found == wanted
    assert not [request for request in plain.requests if not request.startswith("list")]


def test_the_manifest_for_admins_is_what_a_run_makes() -> None:
    made = [
        {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}
        for item in render_objects([NAMESPACE])
    ]
    assert made == MANIFEST


def test_pods_that_mount_the_host_s_devices_may(openshift: OpenShift) -> None:
    with iterate_admitted(cluster(openshift), fabrics(mount_infiniband=True), "run-1"):
        constraints = openshift.object("/apis/security.openshift.io/v1/securitycontextconstraints/linerate-rdma") or {}
    assert (constraints["allowHostDirVolumePlugin"], constraints["volumes"]) == (True, ["emptyDir", "hostPath"])
