# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects that an admin or a tenant made under the name of a rendered one: a run neither changes them nor puts its
label on them, so that no teardown deletes them."""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.applied_objects import judge_applied_object
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import FOREIGN
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import KINDS as REMOVED
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import KINDS, Resource, kind_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import remove_all

OURS = {"app.kubernetes.io/managed-by": "linerate.rdma"}
#: of the host, of the operators and of observers, beside those that a teardown removes by their label
BESIDE = (
    "MachineConfig",
    "KubeletConfig",
    "ConfigMap",
    "ServiceAccount",
    "DaemonSet",
    "Role",
    "RoleBinding",
    "Subscription",
)
#: whose owner has rules of its own: tests/unit/observe/test_apply.py, test_operator_namespaces.py
OF_THEIR_OWN = ("Namespace", "NicClusterPolicy", "Pod")


class Server:
    """Server-side apply: labels and fields of spec are merged, an equal value is no conflict, another one is."""

    def __init__(self, *items: Resource) -> None:
        self.items = {self.key(item): copy.deepcopy(item) for item in items}
        self.writes: list[str] = []

    @staticmethod
    def key(item: Resource) -> tuple[str, str, str]:
        return kind_of(item), item["metadata"].get("namespace", ""), item["metadata"]["name"]

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        if (kind, namespace, name) not in self.items:
            raise ApiError(404, "NotFound", "not found", "GET")
        return copy.deepcopy(self.items[kind, namespace, name])

    def apply(self, definition: Resource, manager: str, dry_run: bool) -> tuple[Resource, tuple[str, ...]]:
        new = copy.deepcopy(self.items.get(self.key(definition)) or {**definition, "spec": {}})
        for name, value in definition["spec"].items():
            if new["spec"].setdefault(name, value) != value:
                raise ApiError(409, "Conflict", f'conflict with "kubectl": .spec.{name}', "PATCH")
        labels = {**(new["metadata"].get("labels") or {}), **(definition["metadata"].get("labels") or {})}
        new["metadata"].update({"labels": labels} if labels else {})
        if not dry_run:
            self.writes.append("apply")
            self.items[self.key(definition)] = new
        return copy.deepcopy(new), ()

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        uid = {"uid": "one"}
        found = (
            {**item, "metadata": {**item["metadata"], **uid}} for key, item in self.items.items() if key[0] == kind
        )
        return Listing(
            tuple(item for item in found if (item["metadata"].get("labels") or {}).items() >= OURS.items()), "1"
        )

    def delete(self, kind: str, namespace: str, name: str, **_options: typing.Any) -> bool:
        self.writes.append("delete")
        return self.items.pop((kind, namespace, name), None) is not None


def made(kind: str, labels: typing.Optional[dict[str, str]], **spec: typing.Any) -> Resource:
    bare, _dot, group = kind.partition(".")
    metadata: dict[str, typing.Any] = {"name": "net", "namespace": "jobs"}
    if labels is not None:
        metadata["labels"] = dict(labels)
    return {"kind": bare, "apiVersion": f"{group}/v1" if group else "v1", "metadata": metadata, "spec": spec}


def applied(server: Server, *wanted: Resource, check_mode: bool = False) -> Outcome:
    (outcome,) = apply_all(typing.cast(Cluster, server), [("compute", item) for item in wanted], check_mode)
    return outcome


def taken_down(server: Server, kind: str) -> tuple[Outcome, ...]:
    removal = Removal((kind,), "app.kubernetes.io/managed-by=linerate.rdma")
    return remove_all(typing.cast(Cluster, server), removal, False, lambda: 0.0, lambda seconds: None)


RENDERED = [kind for kind in dict.fromkeys((*REMOVED, *BESIDE)) if kind not in OF_THEIR_OWN and kind in KINDS]


@pytest.mark.parametrize("kind", RENDERED)
@pytest.mark.parametrize("labels", [None, {"team": "storage"}, {"app.kubernetes.io/managed-by": "Helm"}])
def test_an_equal_object_without_our_label_is_used_and_outlives_the_teardown(
    kind: str, labels: typing.Optional[dict[str, str]]
) -> None:
    theirs = made(kind, labels, config="macvlan", more="theirs")
    server = Server(theirs)
    for _run in range(2):
        outcome = applied(server, made(kind, {**OURS, "linerate.rdma/fabric": "compute"}, config="macvlan"))
        assert (outcome.applied.action, outcome.changed) == ("unchanged", False)
        assert "no teardown deletes it" in outcome.applied.warnings[0]
    assert taken_down(server, kind) == () and server.writes == []
    assert list(server.items.values()) == [theirs]


@pytest.mark.parametrize("kind", RENDERED)
@pytest.mark.parametrize("spec", [{"config": "ipvlan"}, {}, {"more": "theirs"}])
def test_an_object_that_differs_and_has_not_our_label_is_refused_by_name(kind: str, spec: dict[str, str]) -> None:
    theirs = made(kind, {"team": "storage"}, **spec)
    for check_mode in (True, False):
        server = Server(theirs)
        outcome = applied(server, made(kind, OURS, config="macvlan"), check_mode=check_mode)
        assert (outcome.applied.action, outcome.applied.reason, outcome.applied.name) == ("refused", FOREIGN, "net")
        assert f"kubectl -n jobs label {kind.lower()} net app.kubernetes.io/managed-by=linerate.rdma" in (
            outcome.applied.refusal
        )
        assert taken_down(server, kind) == () and list(server.items.values()) == [theirs]


def test_an_object_that_was_handed_over_is_changed_and_deleted() -> None:
    server = Server(made("SriovNetwork", {"team": "storage", **OURS}))
    assert applied(server, made("SriovNetwork", OURS, vlan=1)).applied.action == "changed"
    assert [item.applied.action for item in taken_down(server, "SriovNetwork")] == ["deleted"]


def test_a_label_that_the_object_needs_for_its_work_makes_it_differ() -> None:
    role = {"machineconfiguration.openshift.io/role": "worker"}
    server = Server(made("MachineConfig", {}, config="x"))
    assert applied(server, made("MachineConfig", {**OURS, **role}, config="x")).applied.action == "refused"


def test_the_finding_names_the_next_step() -> None:
    server = Server(made("SriovNetwork", {}, vlan=2))
    finding = judge_applied_object(
        applied(server, made("SriovNetwork", OURS, vlan=1)).applied, "network.objects", "SriovNetwork net"
    )
    assert finding.status == "fail" and "kubectl -n" not in finding.measured
    assert "created an object of this name" in finding.why and "Set a different name in the intent" in finding.remedy
    assert (
        "kubectl label sriovnetwork net -n jobs app.kubernetes.io/managed-by=linerate.rdma --overwrite"
        in finding.remedy
    )
