# SPDX-License-Identifier: GPL-3.0-or-later

"""Which operators an intent needs, how each of them stands, and which a run installs."""

from __future__ import annotations

import dataclasses
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.needed import check, list_missing
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import operators as told
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import describe_read_remedy
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller, PolicyState
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import DriverHost
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import (
    OPERATORS,
    TABLE,
    JobNeeds,
    OperatorsSeen,
    list_needed_operators,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OlmObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan import operators as plan
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import (
    OperatorRequests,
    collect_requests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.operators import render_configuration

NODES = ("worker-1", "worker-2")
PEERMEM = {"host": {"gpudirect": "peermem"}}
LABEL = "feature.node.kubernetes.io/network-sriov.capable"


def intent_of(*profiles: str, cluster: typing.Optional[dict[str, typing.Any]] = None) -> Intent:
    fabrics = [
        {
            "name": profile.partition("_")[0],
            "profile": profile,
            "select": {"hcas_per_node": 1},
            "network": {"name": "n", "namespace": "training"},
        }
        for profile in profiles
    ]
    return parse_intent(fabrics, None, cluster)


SRIOV = intent_of("sriov_infiniband")
ALL = intent_of("sriov_infiniband", "rdma_shared", "pod_network", cluster=PEERMEM)
JOB = JobNeeds("TrainJob", 8, "gpu")


def helm(operator: str, **changes: typing.Any) -> Controller:
    """One that a run has installed, and that serves."""
    chart = OPERATORS[operator].chart
    release, namespace = (chart.release, chart.namespace) if chart else ("", "by-hand")
    found = Controller(operator, f"{namespace}/{operator}", "v1", 1, 1, "helm" if chart else "unknown", release)
    return dataclasses.replace(found, **changes)


def seen_of(*controllers: Controller, **more: typing.Any) -> OperatorsSeen:
    return OperatorsSeen(controllers=controllers, **more)


def names(intent: Intent, **more: typing.Any) -> list[str]:
    return [row.operator.name for row in list_needed_operators(intent, **more)]


def verdicts(found: typing.Iterable[Finding]) -> dict[str, str]:
    return {finding.subject: finding.status for finding in found}


def one(found: typing.Iterable[Finding], operator: str) -> Finding:
    (finding,) = [item for item in found if item.subject == operator]
    return finding


@pytest.mark.parametrize(
    ("intent", "more", "expected"),
    [
        (intent_of("pod_network", "macvlan"), {}, []),
        (SRIOV, {}, ["node-feature-discovery", "sriov-network-operator"]),
        (intent_of("sriov_ethernet", cluster={"node_selector": {"pool": "gpu"}}), {}, ["sriov-network-operator"]),
        (intent_of("ipoib"), {}, ["node-feature-discovery", "network-operator"]),
        (intent_of("pod_network", cluster=PEERMEM), {}, ["node-feature-discovery", "gpu-operator"]),
        (ALL, {}, ["node-feature-discovery", "sriov-network-operator", "network-operator", "gpu-operator"]),
        (intent_of("pod_network"), {"job": JobNeeds("PyTorchJob")}, ["training-operator"]),
        (intent_of("pod_network"), {"job": JOB}, ["gpu-operator", "jobset", "trainer", "kueue"]),
        (
            intent_of("pod_network"),
            {"job": JOB, "olm": True},
            ["gpu-operator", "cert-manager", "jobset", "trainer", "kueue"],
        ),
    ],
)
def test_what_is_needed_in_which_order(intent: Intent, more: dict[str, typing.Any], expected: list[str]) -> None:
    assert names(intent, **more) == expected


def test_each_row_says_by_what_it_is_needed() -> None:
    rows = {row.operator.name: row.why for row in list_needed_operators(ALL, JOB)}
    assert rows["sriov-network-operator"] == ("fabric sriov (sriov_infiniband)",)
    assert rows["gpu-operator"] == ("rdma_cluster.host.gpudirect: peermem", "rdma_job (gpus_per_node: 8)")
    assert rows["kueue"] == ("rdma_job (queue: gpu)",)
    assert rows["node-feature-discovery"][0] == f"label {LABEL}"


def test_validate_shows_the_table_with_where_each_can_come_from() -> None:
    found = list(told.check(ALL))
    assert [finding.subject for finding in found] == names(ALL)
    assert {finding.status for finding in found} == {"pass"}
    nfd = found[0]
    assert (
        LABEL in nfd.measured
        and "oci://registry.k8s.io/nfd" in nfd.expected
        and "package nfd of redhat-operators" in nfd.expected
    )


def test_all_of_the_table_can_be_found_and_installed_or_says_how() -> None:
    assert len({operator.name for operator in TABLE}) == len(TABLE)
    for operator in TABLE:
        assert operator.deployments and operator.lack.endswith(".")
        assert operator.chart or operator.package or operator.by_hand
        assert operator.package or operator.by_hand


def test_all_there() -> None:
    seen = seen_of(
        *(helm(name) for name in names(ALL)), configurations=(PolicyState("ClusterPolicy", "cluster-policy", "ready"),)
    )
    found = list(check(ALL, seen, NODES))
    assert verdicts(found) == dict.fromkeys(names(ALL), "pass")
    assert "by Helm (release network-operator), 1 of 1 pods ready" in one(found, "network-operator").measured
    assert "fabric rdma (rdma_shared)" in one(found, "network-operator").expected
    assert list_missing(ALL, seen, NODES) == ()


def test_what_nobody_looked_at_or_could_not_read_is_unknown() -> None:
    assert verdicts(check(SRIOV, None, NODES)) == dict.fromkeys(names(SRIOV), "unknown")
    unread = seen_of(*(helm(name) for name in names(SRIOV)), errors=("GET /apis/apps/v1/deployments: forbidden",))
    assert verdicts(check(SRIOV, unread, NODES)) == dict.fromkeys(names(SRIOV), "unknown")
    remedies = {item.remedy for item in check(SRIOV, unread, NODES)}
    assert remedies == {describe_read_remedy("Then run stage operators again.")}
    assert plan.list_releases(SRIOV, unread, OperatorRequests()) == ()
    assert len(list_missing(SRIOV, unread, NODES)) == 2
    assert list(check(intent_of("pod_network"), None, NODES)) == []


READY = (PolicyState("ClusterPolicy", "p", "ready"),)


@pytest.mark.parametrize(
    ("operator", "changes", "more", "status", "says"),
    [
        ("network-operator", None, {}, "fail", "no Deployment runs the operator"),
        ("network-operator", {"ready": 0}, {}, "fail", "0 of 1 pods ready"),
        ("network-operator", {"wanted": 2}, {}, "warn", "1 of 2 pods ready"),
        ("network-operator", {"wanted": 0, "ready": 0}, {}, "fail", "0 of 0 pods ready"),
        ("gpu-operator", {}, {"configurations": ()}, "fail", "ClusterPolicy: none"),
        (
            "gpu-operator",
            {},
            {"configurations": (PolicyState("ClusterPolicy", "p", "notReady"),)},
            "fail",
            "p notReady",
        ),
        ("gpu-operator", {}, {"configurations": (PolicyState("ClusterPolicy", "p", ""),)}, "fail", "ClusterPolicy: p"),
        (
            "sriov-network-operator",
            {"origin": "nvidia-network-operator", "release": ""},
            {},
            "pass",
            "a part of NVIDIA's network operator",
        ),
        ("sriov-network-operator", {"origin": "unknown", "release": ""}, {}, "pass", "by hand"),
    ],
)
def test_how_one_stands(
    operator: str, changes: typing.Optional[dict[str, typing.Any]], more: dict[str, typing.Any], status: str, says: str
) -> None:
    others = [helm(name) for name in names(ALL) if name != operator]
    mine = [] if changes is None else [helm(operator, **changes)]
    found = list(check(ALL, seen_of(*others, *mine, **{"configurations": READY, **more}), NODES))
    assert (one(found, operator).status, says in one(found, operator).measured) == (status, True), one(found, operator)
    assert {name: seen for name, seen in verdicts(found).items() if name != operator and seen != "pass"} == {}


def test_a_release_that_is_half_installed_is_told_with_what_takes_it_up_again() -> None:
    others = [helm(name) for name in names(ALL) if name != "network-operator"]
    gone = one(
        check(ALL, seen_of(*others, made=("network-operator",), configurations=READY), NODES), "network-operator"
    )
    assert (
        gone.status == "fail"
        and "Its Helm release is incomplete" in gone.why
        and "helm list -n nvidia-network-operator --all" in gone.remedy
    )
    dead = one(
        check(ALL, seen_of(*others, helm("network-operator", ready=0), configurations=READY), NODES), "network-operator"
    )
    assert dead.status == "fail" and "pending-install" in dead.remedy and "set operators_install to true" in dead.remedy
    by_hand = one(
        check(ALL, seen_of(*others, helm("network-operator", ready=0, origin="unknown"), configurations=READY), NODES),
        "network-operator",
    )
    assert "helm" not in by_hand.remedy
    # and so a run does
    assert "network-operator" in made(ALL, seen_of(*others, made=("network-operator",)))


BY_HELM, BY_OLM = "helm install --create-namespace", "subscribe to package"
LEAVE = ("network-operator", "node-feature-discovery")


@pytest.mark.parametrize("olm", [False, True])
@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({}, "Set operators_install to true, or "),
        (
            {"leave": LEAVE},
            ("Set operators_install to true and remove node-feature-discovery from operators_leave, or "),
        ),
        ({"install": True, "leave": LEAVE}, "Remove node-feature-discovery from operators_leave, or "),
        (
            {"install": True},
            "Correct the other findings of stage operators and run it without --check, so that the run installs the ",
        ),
    ],
)
def test_the_remedy_of_an_absent_operator_does_not_tell_to_set_what_is_set(
    olm: bool, settings: dict[str, typing.Any], begins: str
) -> None:
    remedy = one(check(ALL, seen_of(olm=olm, **settings), NODES), "node-feature-discovery").remedy
    assert remedy.startswith(begins) and (BY_OLM if olm else BY_HELM) in remedy


def test_the_remedy_of_a_half_installed_operator_does_not_tell_to_set_what_is_set() -> None:
    for more in ({"made": ("network-operator",)}, {"controllers": (helm("network-operator", ready=0),)}):
        for install in (False, True):
            seen = OperatorsSeen(install=install, **typing.cast(typing.Any, more))
            remedy = one(check(ALL, seen, NODES), "network-operator").remedy
            assert ("operators_install" in remedy) != install and "stage operators resumes its installation" in remedy


@pytest.mark.parametrize("operator", names(ALL))
def test_two_of_one_kind_are_refused_by_name_and_nothing_is_installed(operator: str) -> None:
    """Each of them, whatever else is missing."""
    seen = seen_of(helm(operator), helm(operator, name="other/one", origin="olm"), configurations=READY)
    finding = one(check(ALL, seen, NODES), operator)
    assert finding.status == "fail" and "other/one" in finding.measured and helm(operator).name in finding.measured
    assert plan.list_releases(ALL, seen, OperatorRequests()) == () and plan.list_namespaces(()) == ()
    assert plan.list_packages(ALL, dataclasses.replace(seen, olm=True), OperatorRequests()) == ()


def test_labels_that_are_there_need_no_discovery() -> None:
    sriov = helm("sriov-network-operator")
    assert verdicts(check(SRIOV, seen_of(sriov, labelled=NODES), NODES))["node-feature-discovery"] == "pass"
    for labelled, nodes in (((), NODES), (("worker-1",), NODES), (NODES, ())):
        assert verdicts(check(SRIOV, seen_of(sriov, labelled=labelled), nodes))["node-feature-discovery"] == "fail"


# what a run installs


def made(intent: Intent, seen: OperatorsSeen, **wishes: typing.Any) -> dict[str, plan.Release]:
    return {
        release.operator: release
        for release in plan.list_releases(intent, seen, load(OperatorRequests, wishes, "wishes"))
    }


def test_missing_ones_are_installed_in_order_with_values_of_the_intent() -> None:
    found = made(ALL, seen_of())
    assert list(found) == ["node-feature-discovery", "sriov-network-operator", "network-operator", "gpu-operator"]
    assert found["gpu-operator"].values == {"nfd": {"enabled": False}, "driver": {"rdma": {"enabled": True}}}
    assert found["network-operator"].values == {"nfd": {"enabled": False}, "sriovNetworkOperator": {"enabled": False}}
    assert (
        found["node-feature-discovery"].values["worker"]["config"]["sources"]["pci"]["deviceClassWhitelist"][0] == "02"
    )
    assert found["network-operator"].repository == "https://helm.ngc.nvidia.com/nvidia"
    # Trainer's chart would bring a second JobSet
    assert made(intent_of("pod_network"), seen_of(job=JOB))["trainer"].values == {"jobset": {"install": False}}


def test_what_somebody_else_installed_is_used_and_never_touched() -> None:
    others = seen_of(*(helm(name) for name in names(ALL)))
    assert list(made(ALL, others)) == []
    for name in ("gpu-operator", "sriov-network-operator"):
        assert list(made(ALL, dataclasses.replace(others, made=(name,)))) == [name]
    foreign = seen_of(*(helm(name, release="x") for name in names(ALL)), made=tuple(names(ALL)))
    assert made(ALL, foreign) == {}
    elsewhere = seen_of(*(helm(name, name="elsewhere/x") for name in names(ALL)), made=tuple(names(ALL)))
    assert made(ALL, elsewhere) == {}
    by_olm = seen_of(helm("sriov-network-operator", origin="olm", release=""), labelled=NODES)
    assert made(SRIOV, by_olm) == {}


def test_labels_that_somebody_writes_are_not_written_twice() -> None:
    assert list(made(SRIOV, seen_of(labelled=NODES))) == ["sriov-network-operator"]


def test_labels_of_a_single_node_keep_node_feature_discovery_from_no_node() -> None:
    """A kubelet may write each label of node.kubernetes.io and its subdomains on its own Node."""
    hosts = tuple(DriverHost(name) for name in NODES)
    for labelled, installed in (((), True), (NODES[:1], True), (NODES, False)):
        seen = seen_of(labelled=labelled, hosts=hosts)
        assert ("node-feature-discovery" in made(SRIOV, seen)) is installed
        by_olm = plan.list_packages(SRIOV, dataclasses.replace(seen, olm=True), OperatorRequests())
        assert ("nfd" in [item["package"] for item in by_olm]) is installed
    alone = dataclasses.replace(seen, labelled=NODES[:1], hosts=hosts[:1])
    assert "node-feature-discovery" not in made(SRIOV, alone)


def test_a_mirror_own_values_and_what_is_left_alone() -> None:
    charts = {
        "node-feature-discovery": {"chart": "oci://mirror.example/nfd", "version": "0.18.3"},
        "network-operator": {"repository": "https://mirror.example/charts"},
        "gpu-operator": {"values": {"driver": {"enabled": False}}},
        "sriov-network-operator": {"chart": "/charts/sriov", "version": None, "namespace": "sriov"},
    }
    found = made(ALL, seen_of(), charts=charts)
    nfd, sriov = found["node-feature-discovery"], found["sriov-network-operator"]
    assert (nfd.chart, nfd.repository, nfd.namespace) == ("oci://mirror.example/nfd", "", "node-feature-discovery")
    assert (found["network-operator"].chart, found["network-operator"].repository) == (
        "network-operator",
        "https://mirror.example/charts",
    )
    assert found["gpu-operator"].values == {"driver": {"enabled": False}}
    # of a folder its Chart.yaml says the version
    assert (sriov.chart, sriov.version, sriov.namespace) == ("/charts/sriov", "", "sriov")
    assert "gpu-operator" not in made(ALL, seen_of(), leave=["gpu-operator"])
    assert load(OperatorRequests, {"leave": ["gpuoperator"]}, "wishes").unknown() == ("gpuoperator",)


def test_only_the_namespace_of_the_sriov_operator_goes_with_the_teardown() -> None:
    labels = {
        item["metadata"]["name"]: item["metadata"]["labels"]
        for item in plan.list_namespaces(made(ALL, seen_of()).values())
    }
    assert [name for name, its in labels.items() if its.get("app.kubernetes.io/managed-by") == "linerate.rdma"] == [
        "sriov-network-operator"
    ]
    assert labels["gpu-operator"]["linerate.rdma/operator"] == "gpu-operator"
    assert {its["pod-security.kubernetes.io/enforce"] for its in labels.values()} == {"privileged"}


# OLM


def olm_object(kind: str, operator: str, phase: str, version: str = "1") -> OlmObject:
    package = OPERATORS[operator].package
    assert package is not None
    named = package.name if kind == "Subscription" else ""
    return OlmObject(kind, f"{package.csv}v1", package.namespace, phase, "", version, named)


def installed_by_olm(operator: str, ours: bool = True) -> tuple[OlmObject, ...]:
    """The ClusterServiceVersion of an operator, and the Subscription that installed it."""
    version = olm_object("ClusterServiceVersion", operator, "Succeeded")
    subscription = olm_object("Subscription", operator, "AtLatestKnown", version.name)
    return version, dataclasses.replace(subscription, ours=ours)


def test_packages_where_the_cluster_has_olm() -> None:
    seen = seen_of(olm=True, job=JOB)
    assert made(ALL, seen) == {}
    rows = {row["package"]: row for row in plan.list_packages(ALL, seen, OperatorRequests())}
    assert list(rows) == [
        "nfd",
        "sriov-network-operator",
        "nvidia-network-operator",
        "gpu-operator-certified",
        "openshift-cert-manager-operator",
        "job-set",
        "kueue-operator",
    ]
    assert rows["nfd"] == {
        "package": "nfd",
        "namespace": "openshift-nfd",
        "channel": None,
        "version": None,
        "source": "redhat-operators",
        "source_namespace": "openshift-marketplace",
        "target_namespaces": ["openshift-nfd"],
        "upgrade": True,
    }
    assert rows["kueue-operator"]["target_namespaces"] == []
    assert rows["gpu-operator-certified"]["source"] == "certified-operators"
    # of no catalog
    assert "Set the component trainer" in one(check(ALL, seen, NODES), "trainer").remedy
    wishes = load(OperatorRequests, {"packages": {"nfd": {}}}, "wishes")
    assert wishes.unknown() == ("nfd",)


def test_what_olm_has_done_is_looked_at_and_what_it_has_not_is_taken_up() -> None:
    done = {"sriov-network-operator": (olm_object("ClusterServiceVersion", "sriov-network-operator", "Succeeded"),)}
    seen = seen_of(helm("sriov-network-operator", origin="olm", release=""), olm=True, packages=done, labelled=NODES)
    # a newer version of it may be there
    assert [item["package"] for item in plan.list_packages(SRIOV, seen, OperatorRequests())] == [
        "sriov-network-operator"
    ]
    pinned = load(
        OperatorRequests,
        {"packages": {"sriov-network-operator": {"channel": "stable", "source": "mirror"}}},
        "wishes",
    )
    (row,) = plan.list_packages(SRIOV, seen, pinned)
    assert (row["channel"], row["source"]) == ("stable", "mirror")
    begun = dataclasses.replace(
        seen,
        controllers=(),
        packages={"sriov-network-operator": (olm_object("Subscription", "sriov-network-operator", "", ""),)},
    )
    assert [item["package"] for item in plan.list_packages(SRIOV, begun, OperatorRequests())] == [
        "sriov-network-operator"
    ]
    finding = one(check(SRIOV, begun, NODES), "sriov-network-operator")
    assert finding.status == "fail" and "approve the InstallPlan" in finding.remedy
    # Helm's, by somebody else: OLM would install a second one
    assert (
        plan.list_packages(SRIOV, seen_of(helm("sriov-network-operator"), olm=True, labelled=NODES), OperatorRequests())
        == ()
    )


def test_an_operator_of_olm_without_its_configuration_does_not_serve_and_gets_one() -> None:
    done = {name: installed_by_olm(name) for name in ("node-feature-discovery", "sriov-network-operator")}
    seen = seen_of(helm("sriov-network-operator", origin="olm", release=""), olm=True, packages=done)
    found = verdicts(check(SRIOV, seen, NODES))
    assert found == {"node-feature-discovery": "fail", "sriov-network-operator": "fail"}
    lacking = plan.list_unconfigured_operators(SRIOV, seen, OperatorRequests())
    assert [(operator.name, version.namespace) for operator, version in lacking] == [
        ("node-feature-discovery", "openshift-nfd"),
        ("sriov-network-operator", "openshift-sriov-network-operator"),
    ]
    made_of = [render_configuration(operator, item.namespace, SRIOV, None, ()) for operator, item in lacking]
    assert [item["metadata"]["name"] for item in made_of if item] == ["nfd-instance", "default"]
    assert yaml.safe_load((made_of[0] or {})["spec"]["workerConfig"]["configData"])["sources"]["pci"][
        "deviceLabelFields"
    ] == ["vendor"]
    there = dataclasses.replace(
        seen,
        configurations=(
            PolicyState("SriovOperatorConfig", "default", ""),
            PolicyState("NodeFeatureDiscovery", "nfd", ""),
        ),
    )
    assert plan.list_unconfigured_operators(SRIOV, there, OperatorRequests()) == ()


def test_a_cluster_policy_is_made_of_the_example_of_its_operator_alone() -> None:
    gpu = OPERATORS["gpu-operator"]
    assert render_configuration(gpu, "nvidia-gpu-operator", ALL, None, ()) is None
    example = {
        "kind": "ClusterPolicy",
        "spec": {"driver": {"enabled": True, "rdma": {"useHostMofed": False}}, "dcgm": {"enabled": True}},
    }
    made_of = render_configuration(gpu, "nvidia-gpu-operator", ALL, None, (example,)) or {}
    assert made_of["spec"] == {
        "driver": {"enabled": True, "rdma": {"useHostMofed": False, "enabled": True}},
        "dcgm": {"enabled": True},
    }
    assert "namespace" not in made_of["metadata"]
    assert (render_configuration(gpu, "n", SRIOV, None, (example,)) or {})["spec"] == example["spec"]
    kueue = render_configuration(OPERATORS["kueue"], "openshift-kueue-operator", ALL, JOB, ()) or {}
    assert kueue["spec"]["config"]["integrations"]["frameworks"] == ["BatchJob", "TrainJob"]


def test_the_table_for_who_calls_the_module() -> None:
    rows = plan.list_rows(SRIOV, seen_of(helm("sriov-network-operator")), NODES)
    assert [(row["operator"], row["serves"]) for row in rows] == [
        ("node-feature-discovery", False),
        ("sriov-network-operator", True),
    ]
    assert "helm install" in rows[0]["remedy"] and rows[1]["remedy"] == ""


def test_facts_come_back_as_they_were() -> None:
    seen = seen_of(
        helm("kueue"), job=JOB, packages={"kueue": (olm_object("Subscription", "kueue", ""),)}, configurations=READY
    )
    assert load(OperatorsSeen, to_data(seen), "facts") == seen


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("v26.4.1", "pass"),
        ("26.4.1", "pass"),
        ("v25.1.0", "warn"),
        ("26.4.10", "warn"),
        ("latest", "pass"),
        ("", "pass"),
    ],
)
def test_the_network_operator_is_of_the_release_whose_images_its_policy_names(version: str, status: str) -> None:
    shared = intent_of("rdma_shared", cluster={"network_operator": {"version": "v26.4.1"}})
    states = (PolicyState("NicClusterPolicy", "nic-cluster-policy", "ready"),)
    seen = seen_of(helm("node-feature-discovery"), helm("network-operator", version=version), configurations=states)
    told = one(check(shared, seen, NODES), "network-operator")
    assert told.status == status and (status == "pass") == ("of release" not in told.expected), told
    # no fabric has parts in its policy
    assert verdicts(check(SRIOV, seen, NODES)).get("network-operator") in (None, "pass")


FOREIGN = {"origin": "helm", "release": "sriov", "name": "sriov/sriov-network-operator"}


@pytest.mark.parametrize(
    ("found", "wanted", "more", "status"),
    [
        ({**FOREIGN, "version": "v1.2.0"}, "1.6.0", {}, "warn"),
        ({**FOREIGN, "version": "1.7.1"}, "v1.6.0", {}, "warn"),
        ({**FOREIGN, "version": "v1.6.0"}, "1.6.0", {}, "pass"),
        ({**FOREIGN, "version": "v1.6.0-2-gabcdef0"}, "1.6.0", {}, "pass"),
        ({**FOREIGN, "version": "latest"}, "1.6.0", {}, "pass"),
        ({**FOREIGN, "version": "v1.2.0"}, "", {}, "pass"),
        # a run upgrades what a run installed
        ({"version": "v1.2.0"}, "1.6.0", {"made": ("sriov-network-operator",)}, "pass"),
        ({"version": "v1.2.0", "origin": "unknown"}, "1.6.0", {}, "warn"),
        ({"version": "sriov-network-operator.v1.2.0", "origin": "olm"}, "1.6.0", {"olm": True}, "warn"),
        ({"version": "sriov-network-operator.v4.18.0-202501010101", "origin": "olm"}, "4.19.0", {"olm": True}, "warn"),
        # OpenShift numbers it by its own releases
        ({"version": "sriov-network-operator.v4.18.0-202501010101", "origin": "olm"}, "1.6.0", {"olm": True}, "pass"),
    ],
)
def test_an_operator_of_others_of_another_version_is_warned_of_with_both_versions(
    found: dict[str, typing.Any], wanted: str, more: dict[str, typing.Any], status: str
) -> None:
    config = (PolicyState("SriovOperatorConfig", "default", ""),)
    versions = {"sriov-network-operator": wanted} if wanted else {}
    seen = seen_of(helm("sriov-network-operator", **found), versions=versions, configurations=config, **more)
    told = one(check(SRIOV, seen, NODES), "sriov-network-operator")
    assert told.status == status, told
    if status == "warn":
        numbers = found["version"].rpartition("v")[2]
        assert numbers.partition("-")[0] in told.why and wanted.lstrip("v") in told.why
        assert f"Upgrade the operator to {wanted.lstrip('v')}" in told.remedy and f"ersion: {numbers}" in told.remedy
        assert "run stage operators again" in told.remedy
    # it works, so no stage waits for it
    assert not any("sriov" in line for line in list_missing(SRIOV, seen, NODES))


def test_versions_that_a_run_would_install_are_those_of_the_user_before_those_of_the_table() -> None:
    wishes = collect_requests(
        {"sriov-network-operator": {"version": "1.5.0"}, "kueue": {"chart": "/srv/charts/kueue"}},
        {"sriov-network-operator": {"version": "4.19.0"}},
        [],
    )
    by_helm, by_olm = (plan.list_versions(wishes, olm) for olm in (False, True))
    assert (by_helm["sriov-network-operator"], by_olm["sriov-network-operator"]) == ("1.5.0", "4.19.0")
    assert "kueue" not in by_helm and by_helm["node-feature-discovery"] == by_olm["node-feature-discovery"] == "0.18.3"


@pytest.mark.parametrize(
    ("name", "package", "configured"),
    [
        ("nfd.v1", "", True),
        ("nfd-operator.v1", "", False),
        ("nfd-operator.v1", "nfd-operator", True),
    ],
)
def test_only_an_operator_of_the_requested_package_gets_a_configuration(
    name: str, package: str, configured: bool
) -> None:
    made_by = OlmObject("ClusterServiceVersion", name, "openshift-nfd", "Succeeded")
    seen = seen_of(olm=True, packages={"node-feature-discovery": (made_by,)})
    wishes = collect_requests({}, {"node-feature-discovery": {"package": package}} if package else {}, [])
    found = [operator.name for operator, _namespace in plan.list_unconfigured_operators(SRIOV, seen, wishes)]
    assert ("node-feature-discovery" in found) is configured


def test_a_configuration_of_another_api_group_is_not_made() -> None:
    """The community has NodeFeatureDiscovery in another group than OpenShift."""
    operator = OPERATORS["node-feature-discovery"]
    for group, renders in (("nfd.openshift.io", True), ("nfd.kubernetes.io", False)):
        example = {"apiVersion": f"{group}/v1", "kind": "NodeFeatureDiscovery", "spec": {}}
        assert (render_configuration(operator, "ops", SRIOV, None, (example,)) is not None) is renders
