# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators of OLM: no Subscription, OperatorGroup, operator or configuration of another owner is changed or removed,
and no driver goes from under running pods."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.recognition import recognize_operators
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import name_users
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nfd_and_olm import olm_object
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operators import list_packages

from ..modules import test_olm as olm
from ..modules.test_olm import INTENT, OPERATOR, WRITTEN, Run, custom
from ..modules.test_olm_operands import define
from ..modules.test_olm_operands import have as have_definition
from ..olm_world import OURS, SPACE, OlmWorld, group, named, subscription, version
from .situations import (
    COPY,
    GITOPS,
    HAND,
    INSTALL,
    KEEP,
    NEEDED,
    OTHER,
    OWN,
    PODS,
    REFUSE,
    SHARED,
    TAKE,
    TEARDOWN_NONE,
    TWIN,
    UPGRADE_NONE,
    cells,
)

world, run, installed = olm.world, olm.run, olm.installed
GPU = "gpu-operator-certified"
MARK = {"argocd.argoproj.io/instance": "platform"}
BY_KUBECTL = {"managedFields": [{"manager": "kubectl-client-side-apply"}]}
#: metadata of an object of each owner
METADATA: dict[str, dict[str, typing.Any]] = {
    OWN: {"labels": OURS, **WRITTEN},
    SHARED: {"labels": OURS, **WRITTEN},
    NEEDED: {"labels": OURS, **WRITTEN},
    PODS: {"labels": OURS, **WRITTEN},
    OTHER: {"labels": OURS, **WRITTEN},
    TWIN: {"labels": OURS, **WRITTEN},
    HAND: {"labels": {}, **BY_KUBECTL},
    COPY: {"labels": OURS, **BY_KUBECTL},
    GITOPS: {"labels": {**OURS, **MARK}, **WRITTEN},
}


def add(item: dict[str, typing.Any], owner: str) -> dict[str, typing.Any]:
    """An object with the metadata of its owner."""
    return {**item, "metadata": {**item["metadata"], **METADATA[owner]}}


def gpu_pod(name: str = "train", phase: str = "Running", resource: str = "nvidia.com/gpu") -> dict[str, typing.Any]:
    containers = [{"name": "c", "resources": {"limits": {resource: "8"}}}]
    metadata = {"name": name, "namespace": "jobs", "uid": name}
    spec = {"nodeName": "w1", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def have_other_intent(world: OlmWorld, intent: str) -> None:
    labels = {**OURS, "linerate.rdma/intent": intent, "linerate.rdma/fabric": "other"}
    metadata = {"name": "x", "uid": "x", "labels": labels, **WRITTEN}
    world.serve("SriovNetworkNodePolicy", [{"kind": "SriovNetworkNodePolicy", "metadata": metadata, "spec": {}}])


def have_gpu_operator(world: OlmWorld, owner: str = OWN) -> None:
    made = subscription(GPU, spec={"name": GPU}, currentCSV=f"{GPU}.v1", installedCSV=f"{GPU}.v1")
    world.have(version(f"{GPU}.v1"), add(made, owner), add(group("linerate-rdma"), owner))


@pytest.mark.parametrize(("owner", "action", "result"), cells("Subscription"))
def test_subscription(run: Run, world: OlmWorld, owner: str, action: str, result: str) -> None:
    """With it, its ClusterServiceVersion."""
    if action == INSTALL:
        world.have(add(subscription(spec={"installPlanApproval": "Automatic"}), owner))
        before = world.at("Subscription", "nfd")
        run(operators=[OPERATOR], wait_seconds=0)
        assert (world.at("Subscription", "nfd")["spec"] == before["spec"]) is (result == KEEP)
        return
    if action == UPGRADE_NONE:
        world.have(add(subscription(currentCSV="nfd.v0.9.0", installedCSV="nfd.v0.9.0"), owner), version("nfd.v0.9.0"))
        done = run(operators=[{**OPERATOR, "version": "1.0.0", "upgrade": False}], wait_seconds=0)
        (state,) = done["olm"]["operators"]
        assert result == REFUSE and state["phase"] == "failed" and "disruption" in state["remedy"]
        assert not done["changes"]
        return
    package = GPU if owner == PODS or action == TEARDOWN_NONE else "nfd"
    if package == GPU:
        have_gpu_operator(world, owner)
    else:
        made = add(subscription(currentCSV="nfd.v1.0.0", installedCSV="nfd.v1.0.0"), owner)
        world.have(version("nfd.v1.0.0"), made)
    if owner == PODS:
        world.serve("Pod", [gpu_pod()])
    if owner == NEEDED:
        world.have(version("sriov-network-operator.v1.0.0"))
    if owner in (OTHER, TWIN, SHARED):
        have_other_intent(world, "default" if owner == TWIN else "b")
    cluster = {
        **typing.cast(dict[str, typing.Any], INTENT["cluster"]),
        "disruption": "none" if action == TEARDOWN_NONE else "drain",
    }
    gone = run(state="absent", fabrics=INTENT["fabrics"], cluster=cluster)
    there = {*world.names("Subscription"), *world.names("ClusterServiceVersion")}
    assert (
        {package, f"{package}.v1" if package == GPU else "nfd.v1.0.0"} <= there
        if result == KEEP
        else package not in there
    )
    if result == KEEP and owner not in (HAND, COPY):
        assert any(package in item["subject"] and item["why"] for item in gone["stays"])


@pytest.mark.parametrize(("owner", "action", "result"), cells("OperatorGroup"))
def test_operator_group(run: Run, installed: OlmWorld, owner: str, action: str, result: str) -> None:
    installed.lose(group("linerate-rdma"))
    if action == INSTALL:
        installed.lose(subscription())
        installed.lose(version("nfd.v1.0.0"))
        installed.have(add(group("theirs", ["elsewhere"]), owner))
        (state,) = run(operators=[OPERATOR], wait_seconds=0)["olm"]["operators"]
        assert installed.at("OperatorGroup", "theirs")["spec"] == {"targetNamespaces": ["elsewhere"]}
        assert result == REFUSE and state["phase"] == "failed" and "theirs" in state["detail"] and state["remedy"]
        return
    installed.have(add(group("theirs"), owner))
    if owner == NEEDED:
        installed.have(named("Subscription", "other", spec={"name": "other"}))
    run(state="absent")
    assert ("theirs" in installed.names("OperatorGroup")) is (result == KEEP)


@pytest.mark.parametrize(
    ("kind", "owner", "action", "result"),
    [
        (kind, *cell)
        for kind, row in (
            ("NodeFeatureDiscovery", cells("NodeFeatureDiscovery")),
            ("CustomResourceDefinition", cells("CustomResourceDefinition")),
            ("ClusterServiceVersion", cells("ClusterServiceVersion")),
            ("Operator", cells("Operator")),
        )
        for cell in row
    ],
)
def test_configuration(run: Run, installed: OlmWorld, kind: str, owner: str, action: str, result: str) -> None:
    """A custom resource of an operator; with it, its operator, its definition and the record of OLM."""
    record = {"kind": "Operator", "metadata": {"name": f"nfd.{SPACE}", "uid": "o"}}
    installed.serve("Operator", [])
    installed.put("Operator", {"apiVersion": "operators.coreos.com/v1", **record})
    item = METADATA[owner]
    custom(installed, "nfd-instance", item["labels"], {"managedFields": item["managedFields"]})
    gone = run(state="absent", _ansible_check_mode=False)
    there = "nfd-instance" in installed._objects[olm.HERE]
    assert there is (result == KEEP) is ("nfd" in installed.names("Subscription"))
    assert kind == "NodeFeatureDiscovery" or bool(installed.names(kind)) is (result == KEEP)
    assert ("nodes.nfd.io" in installed.names("CustomResourceDefinition")) is (result == KEEP)
    assert not there or "nfd-instance" in gone["stays"][0]["why"]


@pytest.mark.parametrize(("_owner", "_action", "result"), cells("InstallPlan"))
def test_install_plan(run: Run, world: OlmWorld, _owner: str, _action: str, result: str) -> None:
    """A plan that also upgrades the operator of another owner in the namespace."""

    def resolve(_item: dict[str, typing.Any]) -> None:
        world.plans({"nfd": "nfd.v1.0.0"}, "theirs.v2.0.0")

    world.subscribed = resolve
    (state,) = run(operators=[OPERATOR], wait_seconds=3)["olm"]["operators"]
    assert result == REFUSE and "theirs.v2.0.0" in state["detail"] and "patch installplan" in state["remedy"]
    plans = world._objects[next(path for path in world._objects if path.endswith("/ops/installplans"))].values()
    assert plans and not any(item["spec"]["approved"] for item in plans)


@pytest.mark.parametrize("kind", ["SriovOperatorConfig"])
@pytest.mark.parametrize(
    ("owner", "keeps"),
    [(OWN, False), (HAND, True), (GITOPS, True), (COPY, True)],
    ids=["own", "hand", "gitops", "copy"],
)
def test_a_configuration_that_an_admin_made_keeps_its_operator(kind: str, owner: str, keeps: bool) -> None:
    item = {"kind": kind, "metadata": {"name": "default", "namespace": SPACE, **METADATA[owner]}}
    # what the operator made by itself, and what a chart made
    by_operator = {"kind": kind, "metadata": {"name": "default", "managedFields": [{"manager": "manager"}]}}
    helm = {"meta.helm.sh/release-name": "sriov"}
    of_chart = {"kind": kind, "metadata": {"name": "default", "annotations": helm, **BY_KUBECTL}}
    expected = [f"{kind} {SPACE}/default"] if keeps and owner != COPY else []
    assert name_users(kind, [item, by_operator, of_chart]) == expected


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        (gpu_pod(), True),
        (gpu_pod(resource="nvidia.com/mig-1g.5gb"), True),
        (gpu_pod(phase="Succeeded"), False),
        (gpu_pod(resource="example.com/rdma"), False),
    ],
    ids=["gpu", "mig", "ended", "none"],
)
@pytest.mark.parametrize("check_mode", [True, False])
def test_the_gpu_operator_stays_while_pods_use_gpus(
    run: Run, world: OlmWorld, pod: dict[str, typing.Any], counts: bool, check_mode: bool
) -> None:
    have_gpu_operator(world)
    world.serve("Pod", [pod])
    gone = run(state="absent", _ansible_check_mode=check_mode)
    assert (GPU in world.names("Subscription")) is (counts or check_mode) and bool(gone["changes"]) is not counts
    if counts:
        assert "Pod jobs/train" in gone["stays"][0]["why"] and "teardown_operator" in gone["stays"][0]["remedy"]


#: another name of the package, prefix of its ClusterServiceVersions in the table, and a definition, of operators
RENAMED = {
    "gpu-operator": ("accelerators", "gpu-operator-certified.", "clusterpolicies.nvidia.com"),
    "node-feature-discovery": ("labels", "nfd.", "nodefeaturediscoveries.nfd.kubernetes.io"),
    "cert-manager": ("certificates", "cert-manager-operator.", "certificates.cert-manager.io"),
}
BY_SETTING, BY_VERSION, BY_DEFINITION, BY_LABEL = "setting", "version", "definition", "label of a definition"


def have_renamed(world: OlmWorld, operator: str, by: str) -> str:
    """Have an operator of another package that is recognized in one way only; return the name of the package."""
    package, prefix, definition = RENAMED[operator]
    owned = {"customresourcedefinitions": {"owned": [{"name": definition}]}} if by == BY_DEFINITION else {}
    name = f"{prefix}v1" if by == BY_VERSION else f"{package}.v1"
    if by == BY_LABEL:
        # an interrupted removal has deleted the ClusterServiceVersion
        plural, _dot, group_ = definition.partition(".")
        labels = {f"operators.coreos.com/{package}.{SPACE}": ""}
        have_definition(world, define(group_, plural, "Thing", labels=labels))
        world.have(add(subscription(package), OWN))
    else:
        world.have(version(name, spec=owned), add(subscription(package, currentCSV=name, installedCSV=name), OWN))
    world.have(add(group("linerate-rdma"), OWN))
    return package


def settings(operator: str, by: str) -> dict[str, typing.Any]:
    return {"packages": {operator: {"package": RENAMED[operator][0]}}} if by == BY_SETTING else {}


@pytest.mark.parametrize("by", [BY_SETTING, BY_VERSION, BY_DEFINITION, BY_LABEL])
@pytest.mark.parametrize(
    ("owner", "action", "result"),
    [cell for cell in cells("Subscription of another package") if cell[1] != INSTALL],
)
def test_subscription_of_another_package(
    run: Run, world: OlmWorld, owner: str, action: str, result: str, by: str
) -> None:
    operator = "node-feature-discovery" if owner == NEEDED else "gpu-operator"
    package = have_renamed(world, operator, by)
    if owner == NEEDED:
        policy = {"kind": "ClusterPolicy", "metadata": {"name": "gpu", "uid": "g", "labels": {}}, "spec": {}}
        world.serve("ClusterPolicy", [policy])
    if owner == PODS:
        world.serve("Pod", [gpu_pod()])
    cluster = {
        **typing.cast(dict[str, typing.Any], INTENT["cluster"]),
        "disruption": "none" if action == TEARDOWN_NONE else "drain",
    }
    gone = run(state="absent", fabrics=INTENT["fabrics"], cluster=cluster, **settings(operator, by))
    assert (package in world.names("Subscription")) is (result == KEEP)
    assert bool(gone["changes"]) is (result == TAKE)
    if result == KEEP:
        stay = gone["stays"][0]
        assert stay["subject"] == f"operator {operator} (package {package})" and stay["remedy"]


@pytest.mark.parametrize("by", [BY_SETTING, BY_VERSION, BY_DEFINITION])
@pytest.mark.parametrize(
    ("operator", "package", "prefix", "definition"),
    [
        ("kueue", "queues", "kueue-operator.", "kueues.kueue.openshift.io"),
        ("jobset", "sets", "jobset-operator.", "jobsetoperators.operator.openshift.io"),
    ],
)
def test_certificates_stay_while_an_operator_of_another_package_needs_them(
    run: Run, world: OlmWorld, operator: str, package: str, prefix: str, definition: str, by: str
) -> None:
    certificates = have_renamed(world, "cert-manager", by)
    owned = {"customresourcedefinitions": {"owned": [{"name": definition}]}} if by == BY_DEFINITION else {}
    world.have(version(f"{prefix}v1" if by == BY_VERSION else f"{package}.v1", spec=owned))
    asked = settings("cert-manager", by)
    if asked:
        asked["packages"][operator] = {"package": package}
    gone = run(state="absent", **INTENT, **asked)
    assert certificates in world.names("Subscription") and "ClusterServiceVersion" in gone["stays"][0]["why"]


def test_operator_that_another_package_installed_is_used_as_it_is() -> None:
    """A second operator would work on the same objects."""
    ((_owner, _action, result),) = (cell for cell in cells("Subscription of another package") if cell[1] == INSTALL)
    assert result == KEEP
    intent = parse_intent(INTENT["fabrics"], None, {"host": {"gpudirect": "peermem"}})
    name, spec = "gpu-operator-certified-rhmp.v1", {"name": "gpu-operator-certified-rhmp"}
    owned = {"owned": [{"name": "clusterpolicies.nvidia.com"}]}
    made = version(name, spec={"customresourcedefinitions": owned})
    bought = subscription(spec["name"], spec=spec, currentCSV=name, installedCSV=name)

    runs = Controller("gpu-operator", f"{SPACE}/gpu-operator", "", 1, 1, "olm", "")

    def planned(wishes: dict[str, typing.Any], *controllers: Controller) -> list[str]:
        requests = collect_requests({}, wishes, [])
        found = [olm_object(item, "gpu-operator", requests.name_packages()) for item in (made, bought)]
        objects = tuple(item for item in found if item is not None)
        seen = OperatorsSeen(olm=True, controllers=controllers, packages={"gpu-operator": objects} if objects else {})
        return [row["package"] for row in list_packages(intent, seen, requests) if "gpu" in row["package"]]

    assert planned({}, runs) == []
    assert planned({"gpu-operator": {"package": spec["name"]}}, runs) == [spec["name"]]
    # a tenant can create the objects of OLM, but no operator with rights in the cluster
    assert planned({}) == ["gpu-operator-certified"]


@pytest.mark.parametrize(
    ("package", "node", "kept"),
    [
        ("sriov-network-operator", "w0", True),
        ("sriov-network-operator", "gone", False),
        ("nfd", "w0", False),
    ],
)
def test_the_operator_of_sriov_stays_while_it_drains_nodes(
    run: Run, world: OlmWorld, package: str, node: str, kept: bool
) -> None:
    made = subscription(package, spec={"name": package}, currentCSV=f"{package}.v1", installedCSV=f"{package}.v1")
    world.have(version(f"{package}.v1"), add(made, OWN), add(group("linerate-rdma"), OWN))
    notes = {"sriovnetwork.openshift.io/desired-state": "Drain_Required"}
    states = [
        {
            "kind": "SriovNetworkNodeState",
            "metadata": {"name": node, "namespace": SPACE, "uid": "s", "annotations": notes},
            "spec": {},
            "status": {"syncStatus": "Succeeded"},
        }
    ]
    world.serve("SriovNetworkNodeState", states, SPACE)
    world.serve("Node", [{"kind": "Node", "metadata": {"name": "w0", "uid": "n"}}])
    gone = run(state="absent", **INTENT)
    assert (package in world.names("Subscription")) is kept
    assert (f"{package}.v1" in world.names("ClusterServiceVersion")) is kept
    assert [SPACE] * kept == gone["namespaces"]
    assert any("still drains or configures nodes: w0" in item["why"] for item in gone["stays"]) is kept


def test_the_teardown_knows_the_packages_of_the_settings() -> None:
    path = pathlib.Path(__file__).resolve().parents[3] / "roles/teardown/tasks/olm.yml"
    (task,) = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert task["linerate.rdma.olm"]["packages"] == "{{ operators_packages | default({}, true) }}"


@pytest.mark.parametrize(
    ("package", "operators"),
    [
        ("gpu-operator-certified-rhmp", {"gpu-operator"}),
        ("node-feature-discovery-operator", {"node-feature-discovery"}),
        ("cert-manager", {"cert-manager"}),
        ("kueue-operator-mirrored", {"kueue"}),
        ("sriov-network-operator", {"sriov-network-operator"}),
        ("nvidia-network-operator-rhmp", {"network-operator"}),
        ("nfds", set()),
        ("gpu", set()),
        ("", set()),
    ],
)
def test_a_name_with_more_words_is_that_of_the_operator(package: str, operators: set[str]) -> None:
    assert recognize_operators(package) == operators
    assert recognize_operators("", [f"{package}.v1"]) == operators
