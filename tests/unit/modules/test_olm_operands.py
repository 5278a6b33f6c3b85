# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators of OLM whose users have objects of kinds that the ClusterServiceVersion does not own."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.recognition import recognize_operators
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.needed import list_operands
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.remove_olm import Remover

from ..fake_api import Resource
from ..olm_world import OURS, SPACE, OlmWorld, group, subscription, version

OPERATOR = {"apiVersion": "operator.openshift.io/v1", "kind": "JobSetOperator", "name": "cluster", "uid": "c"}


def define(
    group_: str,
    plural: str,
    kind: str,
    owner: typing.Optional[Resource] = None,
    labels: typing.Optional[Resource] = None,
) -> Resource:
    names, served = {"plural": plural, "kind": kind}, [{"name": "v1", "served": True, "storage": True}]
    metadata: Resource = {"name": f"{plural}.{group_}", "uid": plural, "labels": labels or {}}
    metadata["ownerReferences"] = [owner] if owner else []
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {"group": group_, "scope": "Cluster", "names": names, "versions": served},
    }


CONFIGURATION = define("operator.openshift.io", "jobsetoperators", "JobSetOperator")


@pytest.fixture(name="world")
def fixture_world() -> typing.Iterator[OlmWorld]:
    world = OlmWorld()
    world.start()
    world.put("CustomResourceDefinition", CONFIGURATION)
    owned = {"customresourcedefinitions": {"owned": [{"name": CONFIGURATION["metadata"]["name"]}]}}
    world.have(group("linerate-rdma", labels=OURS), version("jobset-operator.v1", spec=owned))
    world.have(
        subscription(
            "job-set",
            labels=OURS,
            spec={"name": "job-set"},
            currentCSV="jobset-operator.v1",
            installedCSV="jobset-operator.v1",
        )
    )
    yield world
    world.stop()


def have(world: OlmWorld, definition: Resource, *items: Resource) -> None:
    group_, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
    world.put("CustomResourceDefinition", definition)
    path = f"/apis/{group_}/v1/{plural}"
    world._objects[path], world._events[path] = {}, []
    for item in items:
        world._happen(path, "ADDED", {"apiVersion": f"{group_}/v1", **item})


def remove(world: OlmWorld) -> typing.Any:
    return Remover(world.client(world.url), False, 0.0, lambda: 0.0, lambda _seconds: None).run()


@pytest.mark.parametrize(
    "definition",
    [
        define("jobset.x-k8s.io", "jobsets", "JobSet"),
        # a group that no table names
        define("sets.example", "jobsets", "JobSet", OPERATOR),
    ],
    ids=["group", "owner"],
)
def test_operator_stays_while_tenants_have_objects_of_its_software(world: OlmWorld, definition: Resource) -> None:
    have(world, CONFIGURATION)
    have(world, definition, {"kind": "JobSet", "metadata": {"name": "theirs", "namespace": "team", "uid": "t"}})
    removed = remove(world)
    assert not removed.outcomes and removed.namespaces == (SPACE,)
    assert removed.stays[0].subject == "operator job-set" and "JobSet team/theirs" in removed.stays[0].why
    assert world.names("Subscription") == {"job-set"}


def test_operator_goes_if_its_software_has_no_objects(world: OlmWorld) -> None:
    have(world, CONFIGURATION)
    have(world, define("jobset.x-k8s.io", "jobsets", "JobSet", OPERATOR))
    other = define("example.com", "widgets", "Widget")
    have(world, other, {"kind": "Widget", "metadata": {"name": "x", "uid": "x"}})
    remove(world)
    assert not world.names("Subscription")


@pytest.mark.parametrize(
    ("package", "group_"),
    [
        ("kueue-operator", "kueue.x-k8s.io"),
        ("job-set", "trainer.kubeflow.org"),
        ("openshift-cert-manager-operator", "cert-manager.io"),
        ("nvidia-network-operator", "nv-ipam.nvidia.com"),
    ],
)
def test_groups_of_the_software_are_known_without_an_owner(world: OlmWorld, package: str, group_: str) -> None:
    have(world, define(group_, "things", "Thing"))
    found = list_operands(world.client(world.url), recognize_operators(package), [CONFIGURATION])
    assert [item["metadata"]["name"] for item in found] == [f"things.{group_}"]
