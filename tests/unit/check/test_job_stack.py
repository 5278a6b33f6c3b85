# SPDX-License-Identifier: GPL-3.0-or-later

"""The stack beside a job, from objects as the API server has them: each part there, absent, not ready, not read."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.stack import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller, Stack
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job import stack as parse
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.tests.unit.check.job_world import WORLD, objects


def deployment(
    namespace: str,
    name: str,
    image: str,
    labels: typing.Optional[dict[str, str]] = None,
    replicas: int = 1,
    ready: int = 1,
) -> dict[str, typing.Any]:
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "manager", "image": image}]}}},
        "status": {"availableReplicas": ready, "updatedReplicas": replicas},
    }


DEPLOYMENTS = (
    deployment("gpu-operator", "gpu-operator", "nvcr.io/nvidia/gpu-operator:v26.3.3"),
    deployment(
        "ops",
        "nvidia-network-operator-controller-manager",
        "mirror/x@sha256:0123",
        {"olm.owner": "nvidia-network-operator.v26.4.1"},
    ),
    deployment("ops", "sriov-network-operator", "ghcr.io/k8snetworkplumbingwg/sriov-network-operator:v1.6.0"),
    deployment("kubeflow", "training-operator", "ghcr.io/kubeflow/training-v1/training-operator:v1-0.9.4"),
    deployment(
        "kubeflow-system",
        "kubeflow-trainer-controller-manager",
        "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0",
    ),
    deployment("kubeflow-system", "jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0"),
    deployment(
        "kueue-system",
        "kueue-controller-manager",
        "registry.k8s.io/kueue/kueue:v0.19.2",
        {"app.kubernetes.io/version": "v0.19.2"},
    ),
)
ACTIVE = {"conditions": [{"type": "Active", "status": "True", "reason": "Ready"}]}
LOCAL = {"metadata": {"name": "gpu", "namespace": "training"}, "spec": {"clusterQueue": "h100"}, "status": ACTIVE}
QUOTAS = {"cpu": "512", "memory": "8Ti", "nvidia.com/gpu": "64", "openshift.io/mlx_compute": 64}
CLUSTER: dict[str, typing.Any] = {
    "metadata": {"name": "h100"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": list(QUOTAS),
                "flavors": [
                    {
                        "name": "h100",
                        "resources": [{"name": name, "nominalQuota": quota} for name, quota in QUOTAS.items()],
                    }
                ],
            }
        ],
    },
    "status": ACTIVE,
}
CONFIG = {"integrations": {"frameworks": ["batch/job", "kubeflow.org/pytorchjob", "trainer.kubeflow.org/trainjob"]}}
CEPH = {"metadata": {"name": "cephfs"}, "provisioner": "openshift-storage.cephfs.csi.ceph.com"}
DISK = {
    "metadata": {"name": "disk", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": "disk.csi.example.com",
}


def stack(
    deployments: tuple[dict[str, typing.Any], ...] = DEPLOYMENTS,
    state: str = "ready",
    classes: tuple[dict[str, typing.Any], ...] = (CEPH,),
    shared: tuple[str, ...] = (),
    **more: typing.Any,
) -> Stack:
    """Kueue's objects are ``local``, ``cluster`` and ``config``."""
    local, cluster, config = (
        more.pop(name, default) for name, default in (("local", LOCAL), ("cluster", CLUSTER), ("config", CONFIG))
    )
    return Stack(
        controllers=tuple(filter(None, map(parse.parse_controller, deployments))),
        policies=tuple(
            parse.parse_policy_state({"kind": kind, "metadata": {"name": "p"}, "status": {"state": state}})
            for kind in ("ClusterPolicy", "NicClusterPolicy")
        ),
        local_queues=(parse.parse_local_queue(local),) if local else (),
        cluster_queues=(parse.parse_cluster_queue(cluster),) if cluster else (),
        frameworks=parse.parse_frameworks(config) if config else None,
        storage=tuple(parse.parse_storage_class(item, shared) for item in classes),
        **{"namespaces": {"training": {"team": "a"}}, **more},
    )


def findings(seen: typing.Optional[Stack] = None, **changes: typing.Optional[str]) -> tuple[Finding, ...]:
    made = objects(**{"queue": "gpu", **changes})
    return check([item for item in made if item["kind"] != "TrainingRuntime"], made, WORLD, seen or stack())


def refused(found: tuple[Finding, ...]) -> list[Finding]:
    return [item for item in found if item.status != "pass"]


def changed(
    item: dict[str, typing.Any],
    path: typing.Sequence[typing.Any],
    value: typing.Optional[typing.Union[dict[str, typing.Any], list[dict[str, str]], str]],
) -> dict[str, typing.Any]:
    fresh = copy.deepcopy(item)
    parent = fresh
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return fresh


@pytest.mark.parametrize(
    ("kind", "operators"),
    [
        ("PyTorchJob", ["gpu-operator", "sriov-network-operator", "training-operator", "kueue"]),
        ("TrainJob", ["gpu-operator", "sriov-network-operator", "trainer", "jobset", "kueue"]),
    ],
)
def test_all_is_there_with_its_version(kind: str, operators: list[str]) -> None:
    found = findings(kind=kind)
    assert refused(found) == []
    assert [item.subject for item in found if item.check == "stack.operator"] == operators
    assert {item.check for item in found} == {f"stack.{what}" for what in BESIDE["stack"]}


@pytest.mark.parametrize(
    ("number", "operator", "version"),
    [
        (0, "gpu-operator", "v26.3.3"),
        (1, "network-operator", "nvidia-network-operator.v26.4.1"),
        (2, "sriov-network-operator", "v1.6.0"),
        (3, "training-operator", "v1-0.9.4"),
        (4, "trainer", "v2.3.0"),
        (5, "jobset", "v0.12.0"),
        (6, "kueue", "v0.19.2"),
    ],
)
def test_operators_and_their_versions(number: int, operator: str, version: str) -> None:
    found = parse.parse_controller(DEPLOYMENTS[number])
    assert (
        typing.cast(Controller, found).operator,
        typing.cast(Controller, found).version,
        typing.cast(Controller, found).wanted,
        typing.cast(Controller, found).ready,
    ) == (operator, version, 1, 1)


def test_other_deployments_are_none_of_them() -> None:
    assert parse.parse_controller(deployment("a", "gpu-operator-exporter", "example.org/nvidia/exporter:1")) is None


BARE = dataclasses.replace(WORLD, nodes=tuple(dataclasses.replace(item, allocatable={}) for item in WORLD.nodes))


@pytest.mark.parametrize("number", [0, 2, 3, 6])
def test_what_is_absent_is_named_with_the_fix(number: int) -> None:
    made = objects(queue="gpu")
    seen = stack(DEPLOYMENTS[:number] + DEPLOYMENTS[number + 1 :])
    (found,) = {item.check: item for item in refused(check(made, (), BARE, seen))}.values()
    assert (found.check, found.status, found.subject) == (
        "stack.operator",
        "fail",
        typing.cast(Controller, parse.parse_controller(DEPLOYMENTS[number])).operator,
    )
    assert found.remedy


@pytest.mark.parametrize(
    ("number", "resource"), [(0, "nvidia.com/gpu"), (2, "openshift.io/mlx_compute")], ids=["GPU", "SR-IOV"]
)
def test_a_device_plugin_may_run_without_its_operator(number: int, resource: str) -> None:
    seen = dataclasses.replace(stack(DEPLOYMENTS[:number] + DEPLOYMENTS[number + 1 :]), policies=())
    if number:
        seen = dataclasses.replace(seen, policies=stack().policies)
    subject = typing.cast(Controller, parse.parse_controller(DEPLOYMENTS[number])).operator
    (found,) = (item for item in findings(seen) if item.subject == subject)
    assert (found.status, found.measured) == ("pass", f"no Deployment; the kubelets offer {resource} on 2 nodes")
    assert refused(findings(seen)) == []
    # one of the resources is not enough
    nodes = tuple(dataclasses.replace(item, allocatable={**item.allocatable, resource: 0}) for item in WORLD.nodes)
    (found,) = refused(check(objects(queue="gpu"), (), dataclasses.replace(WORLD, nodes=nodes), seen))
    assert (found.status, found.measured) == ("fail", f"no Deployment; the kubelets offer {resource} on 0 nodes")
    assert f"shows {resource} under Allocatable" in found.remedy


@pytest.mark.parametrize(("number", "status"), [(1, "pass"), (2, "warn"), (8, "warn")])
def test_one_of_several_nodes_shows_no_device_plugin_without_its_operator(number: int, status: str) -> None:
    """Its kubelet alone reports the resources."""
    (first, *_more) = WORLD.nodes
    others = (dataclasses.replace(first, name=f"other-{place}", allocatable={}) for place in range(1, number))
    seen = dataclasses.replace(stack(DEPLOYMENTS[1:]), policies=())
    world = dataclasses.replace(WORLD, nodes=(first, *others))
    (found,) = (
        item
        for item in check(objects(queue="gpu"), (), world, seen)
        if item.check == "stack.operator" and item.subject == "gpu-operator"
    )
    assert (found.status, found.measured) == (status, "no Deployment; the kubelets offer nvidia.com/gpu on 1 node")
    assert ("Only one node offers nvidia.com/gpu" in found.why) is (status == "warn")


@pytest.mark.parametrize(
    ("nodes", "errors", "unread", "status"),
    [
        (BARE.nodes, (), False, "fail"),
        (BARE.nodes, (), True, "unknown"),
        (tuple(dataclasses.replace(item, unread={"nvidia.com/gpu": "x"}) for item in BARE.nodes), (), False, "unknown"),
        ((), ("nodes is forbidden",), False, "unknown"),
        ((), (), False, "fail"),
    ],
    ids=["read", "Deployments not read", "resource not read", "nodes not read", "no nodes"],
)
def test_an_operator_is_unknown_where_it_could_not_be_read(
    nodes: typing.Any, errors: tuple[str, ...], unread: bool, status: str
) -> None:
    world = dataclasses.replace(WORLD, nodes=nodes, errors=errors)
    seen = dataclasses.replace(stack(()), unread_operators=unread)
    assert told(check([shared_job("nvidia.com/gpu")], (), world, seen)) == [("stack.operator", "gpu-operator", status)]


def test_no_resource_of_a_node_replaces_the_operator_of_a_job() -> None:
    (found,) = refused(findings(stack(DEPLOYMENTS[:3] + DEPLOYMENTS[4:])))
    assert (found.subject, found.status, found.measured) == ("training-operator", "fail", "no Deployment")


def test_an_operator_that_does_not_run() -> None:
    down = deployment("kubeflow", "training-operator", "training-operator:v1", ready=0)
    (found,) = refused(findings(stack((*DEPLOYMENTS[:3], down, *DEPLOYMENTS[4:]))))
    assert found.measured == "kubeflow/training-operator v1, 0 of 1 pods ready"


@pytest.mark.parametrize("state", ["notReady", "ignored", ""])
def test_a_policy_that_is_not_ready(state: str) -> None:
    (found,) = refused(findings(stack(state=state)))
    assert (found.check, found.subject, found.status) == ("stack.policy", "ClusterPolicy p", "fail")


def test_an_operator_without_its_policy() -> None:
    (found,) = refused(findings(dataclasses.replace(stack(), policies=())))
    assert (found.check, found.measured, found.status) == ("stack.policy", "no ClusterPolicy", "fail")
    assert found.why.startswith("NVIDIA's GPU operator does nothing without a ClusterPolicy.")
    assert "the documentation of NVIDIA's GPU operator" in found.remedy


def test_a_job_without_queue_and_claim_needs_neither() -> None:
    bare = stack(DEPLOYMENTS[:4], local=None, cluster=None, config=None, classes=())
    assert refused(findings(bare, queue=None, claim=None)) == []


def test_queues_of_others_are_not_told() -> None:
    own = [changed(LOCAL, ["metadata", "name"], f"own-{number}") for number in range(40)]
    other = changed(LOCAL, ["metadata", "namespace"], "secret-project")
    seen = dataclasses.replace(stack(), local_queues=tuple(map(parse.parse_local_queue, (*own, other))))
    (found,) = refused(findings(seen))
    assert "training/own-11 and 28 more" in found.expected and "secret-project" not in str(found)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"local": None}, "No LocalQueue of this name exists"),
        ({"local": changed(LOCAL, ["metadata", "name"], "gpus")}, "No LocalQueue of this name exists"),
        ({"local": changed(LOCAL, ["spec", "stopPolicy"], "Hold")}, "its stopPolicy is Hold"),
        ({"local": changed(LOCAL, ["status"], {})}, "Kueue has not processed it yet"),
        ({"cluster": None}, "LocalQueue training/gpu refers to a ClusterQueue that does not exist"),
        (
            {
                "cluster": changed(
                    CLUSTER,
                    ["status", "conditions"],
                    [{"type": "Active", "status": "False", "message": "flavor is missing"}],
                )
            },
            "flavor is missing",
        ),
        (
            {"cluster": changed(CLUSTER, ["spec", "namespaceSelector"], None)},
            "A ClusterQueue without a namespaceSelector admits no namespace",
        ),
        (
            {"cluster": changed(CLUSTER, ["spec", "namespaceSelector"], {"matchLabels": {"team": "b"}})},
            "does not match the namespace of the job",
        ),
        ({"config": {"integrations": {"frameworks": ["batch/job"]}}}, "does not list kubeflow.org/pytorchjob"),
    ],
)
def test_queues_that_do_not_admit(changes: dict[str, typing.Any], text: str) -> None:
    (found,) = refused(findings(stack(**changes)))
    assert (found.check, found.status) == ("stack.queue", "fail")
    assert text in found.why


def test_a_selector_that_needs_labels_that_are_not_known() -> None:
    cluster = changed(CLUSTER, ["spec", "namespaceSelector"], {"matchLabels": {"team": "a"}})
    assert refused(findings(stack(cluster=cluster))) == []
    (found,) = refused(findings(stack(cluster=cluster, namespaces={})))
    assert found.status == "unknown"


def quota(name: str, value: str) -> dict[str, typing.Any]:
    return changed(
        CLUSTER,
        ["spec", "resourceGroups", 0, "flavors", 0, "resources", list(QUOTAS).index(name), "nominalQuota"],
        value,
    )


@pytest.mark.parametrize(("value", "good"), [("16", True), ("15", False), ("16000m", True)])
def test_quotas_for_all_pods_at_once(value: str, good: bool) -> None:
    found = refused(findings(stack(cluster=quota("nvidia.com/gpu", value))))
    assert [item.measured for item in found] == ([] if good else ["a quota of at most 15"])


def test_what_others_of_the_cohort_may_lend() -> None:
    for key in ("cohort", "cohortName"):
        cluster = changed(quota("memory", "512Gi"), ["spec", key], "all")
        (found,) = refused(findings(stack(cluster=cluster)))
        assert (found.status, found.subject.endswith("memory")) == ("warn", True)


def test_a_resource_that_the_queue_does_not_cover() -> None:
    cluster = copy.deepcopy(CLUSTER)
    del cluster["spec"]["resourceGroups"][0]["flavors"][0]["resources"][3]
    (found,) = refused(findings(stack(cluster=cluster)))
    assert (found.status, found.measured, found.subject.endswith("openshift.io/mlx_compute")) == (
        "fail",
        "no quota for openshift.io/mlx_compute",
        True,
    )


@pytest.mark.parametrize(
    ("resources", "good"),
    [
        ({"excludeResourcePrefixes": ["openshift.io/"]}, True),
        ({"excludeResourcePrefixes": ["rdma/", ""]}, False),
        ({"transformations": [{"input": "openshift.io/mlx_compute", "strategy": "Replace", "outputs": {}}]}, True),
        ({"transformations": [{"input": "openshift.io/mlx_compute", "outputs": {"example.com/nic": "1"}}]}, False),
    ],
)
def test_a_resource_that_kueue_does_not_count_needs_no_quota(resources: dict[str, typing.Any], good: bool) -> None:
    cluster = copy.deepcopy(CLUSTER)
    del cluster["spec"]["resourceGroups"][0]["flavors"][0]["resources"][3]
    excluded, replaced = parse.parse_uncounted({"resources": resources})
    found = refused(findings(stack(cluster=cluster, excluded=excluded, replaced=replaced)))
    assert [item.measured for item in found] == ([] if good else ["no quota for openshift.io/mlx_compute"])


@pytest.mark.parametrize(
    ("classes", "shared", "status"),
    [
        ((CEPH,), (), None),
        ((DISK,), ("disk",), None),
        ((DISK,), (), "unknown"),
        ((), (), "fail"),
        ((DISK, CEPH), (), None),
    ],
)
def test_storage_that_many_nodes_can_write(
    classes: tuple[dict[str, typing.Any], ...], shared: tuple[str, ...], status: typing.Optional[str]
) -> None:
    assert [item.status for item in refused(findings(stack(classes=classes, shared=shared)))] == (
        [status] if status else []
    )


@pytest.mark.parametrize(("modes", "name"), [(["ReadWriteMany"], "nfs"), (["ReadWriteOnce"], ""), ([], "")])
def test_classes_of_volumes(modes: list[str], name: str) -> None:
    assert (
        parse.shared_class({"metadata": {"name": "pv"}, "spec": {"accessModes": modes, "storageClassName": "nfs"}})
        == name
    )


def test_what_could_not_be_read_is_unknown() -> None:
    (found,) = refused(findings(stack(errors=("deployments is forbidden",))))
    assert (found.check, found.status) == ("stack.read", "unknown")


def test_a_job_that_can_t_be_read_is_the_linter_s() -> None:
    assert check([{"kind": "Job", "metadata": {"name": "j"}}], (), WORLD, stack()) == ()


# parts of which there are several


def shared_job(name: str, amount: str = "1") -> dict[str, typing.Any]:
    container = {"name": "c", "image": "i", "resources": {"limits": {name: amount}}}
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "training"}, "spec": {"containers": [container]}}


def told(found: typing.Iterable[Finding]) -> list[tuple[str, str, str]]:
    return [(item.check, item.subject, item.status) for item in found if item.check != "stack.read"]


@pytest.mark.parametrize(
    ("resource", "operator", "policy"),
    [
        ("nvidia.com/gpu", "gpu-operator", "ClusterPolicy"),
        ("nvidia.com/mig-1g.5gb", "gpu-operator", "ClusterPolicy"),
        ("rdma/shared", "network-operator", "NicClusterPolicy"),
    ],
)
def test_what_a_resource_needs(resource: str, operator: str, policy: str) -> None:
    job = [shared_job(resource)]
    assert told(check(job, (), WORLD, stack())) == [
        ("stack.operator", operator, "pass"),
        ("stack.policy", f"{policy} p", "pass"),
    ]
    assert told(check(job, (), WORLD, stack(state="notReady")))[1:] == [("stack.policy", f"{policy} p", "fail")]
    assert told(check(job, (), BARE, stack(()))) == [("stack.operator", operator, "fail")]


def test_a_resource_of_no_operator_needs_none() -> None:
    assert told(check([shared_job("example.com/thing")], (), WORLD, stack(()))) == []


@pytest.mark.parametrize(
    ("wanted", "ready", "status"), [(1, 1, "pass"), (2, 1, "fail"), (2, 2, "pass"), (0, 0, "fail")]
)
def test_each_pod_of_an_operator_must_be_ready(wanted: int, ready: int, status: str) -> None:
    seen = dataclasses.replace(
        stack(), controllers=(Controller("gpu-operator", "gpu-operator/gpu-operator", "v1", wanted, ready),)
    )
    assert told(check([shared_job("nvidia.com/gpu")], (), WORLD, seen))[0] == ("stack.operator", "gpu-operator", status)


def test_a_policy_of_some_nodes_counts_as_well() -> None:
    states = (("NicClusterPolicy", "nic-cluster-policy", "ready"), ("NicNodePolicy", "pool-a", "notReady"))
    policies = tuple(
        parse.parse_policy_state({"kind": kind, "metadata": {"name": name}, "status": {"state": state}})
        for kind, name, state in states
    )
    found = told(check([shared_job("rdma/shared")], (), WORLD, dataclasses.replace(stack(), policies=policies)))
    assert found[1:] == [
        ("stack.policy", "NicClusterPolicy nic-cluster-policy", "pass"),
        ("stack.policy", "NicNodePolicy pool-a", "fail"),
    ]


def test_each_deployment_and_each_policy_counts() -> None:
    both = tuple(
        Controller("gpu-operator", f"{name}/gpu-operator", "v1", 1, ready) for name, ready in (("a", 0), ("b", 1))
    )
    policies = tuple(
        parse.parse_policy_state({"kind": "ClusterPolicy", "metadata": {"name": name}, "status": {"state": state}})
        for name, state in (("a", "ignored"), ("b", "ready"))
    )
    found = check(
        [shared_job("nvidia.com/gpu")], (), WORLD, dataclasses.replace(stack(), controllers=both, policies=policies)
    )
    assert told(found) == [
        ("stack.operator", "gpu-operator", "fail"),
        ("stack.operator", "gpu-operator", "pass"),
        ("stack.policy", "ClusterPolicy a", "fail"),
        ("stack.policy", "ClusterPolicy b", "pass"),
    ]


def test_a_job_that_can_t_be_read_does_not_hide_the_next() -> None:
    broken = {"kind": "Job", "metadata": {"name": "j"}}
    assert told(check([broken, shared_job("nvidia.com/gpu")], (), BARE, stack(()))) == [
        ("stack.operator", "gpu-operator", "fail")
    ]


def test_both_queues_may_be_inactive() -> None:
    hold = changed(LOCAL, ["spec", "stopPolicy"], "Hold")
    found = refused(findings(stack(local=hold, cluster=changed(CLUSTER, ["status"], {}))))
    assert [(item.check, item.status, item.measured) for item in found] == [
        ("stack.queue", "fail", "LocalQueue training/gpu is not active"),
        ("stack.queue", "fail", "ClusterQueue h100 is not active"),
    ]


def test_a_queue_for_all_namespaces_needs_no_labels_of_them() -> None:
    assert refused(findings(stack(namespaces={}))) == []


@pytest.mark.parametrize(("quotas", "good"), [(("15", "16"), True), (("16", "15"), True), (("15", "15"), False)])
def test_one_flavor_with_room_is_enough(quotas: tuple[str, str], good: bool) -> None:
    cluster = copy.deepcopy(CLUSTER)
    group = cluster["spec"]["resourceGroups"][0]
    (flavor,) = group["flavors"]
    group["flavors"] = [
        {**changed(flavor, ["resources", 2, "nominalQuota"], value), "name": f"f{number}"}
        for number, value in enumerate(quotas)
    ]
    assert [item.measured for item in refused(findings(stack(cluster=cluster)))] == (
        [] if good else ["a quota of at most 15"]
    )


@pytest.mark.parametrize(
    ("changes", "statuses"),
    [
        ({}, ["pass"]),
        ({"local": changed(LOCAL, ["spec", "stopPolicy"], "Hold")}, ["fail"]),
        ({"cluster": changed(CLUSTER, ["spec", "namespaceSelector"], None)}, ["fail"]),
        (
            {
                "cluster": changed(CLUSTER, ["spec", "namespaceSelector"], {"matchLabels": {"team": "a"}}),
                "namespaces": {},
            },
            ["unknown"],
        ),
        ({"cluster": quota("nvidia.com/gpu", "15")}, ["fail"]),
        ({"config": {"integrations": {"frameworks": ["batch/job"]}}}, ["fail"]),
    ],
    ids=["right", "held", "no namespace", "labels not known", "no room", "not managed"],
)
def test_a_queue_that_is_refused_does_not_pass_as_well(changes: dict[str, typing.Any], statuses: list[str]) -> None:
    assert [item.status for item in findings(stack(**changes)) if item.check == "stack.queue"] == statuses


def test_the_cluster_queue_that_the_local_one_names() -> None:
    seen = stack()
    (queue,) = seen.cluster_queues
    other = dataclasses.replace(queue, name="a100", inactive="it is stopped")
    for queues in ((other, queue), (queue, other)):
        assert refused(findings(dataclasses.replace(seen, cluster_queues=queues))) == []


@pytest.mark.parametrize(("gpus", "good"), [("24", True), ("23", False)])
def test_quotas_count_each_pod_of_a_template(gpus: str, good: bool) -> None:
    made = objects(queue="gpu", nodes=3)
    found = refused(check(made, (), WORLD, stack(cluster=quota("nvidia.com/gpu", gpus))))
    assert [(item.status, item.expected) for item in found] == (
        [] if good else [("fail", "a quota of at least 24, for all pods")]
    )


def test_an_operator_is_needed_beside_other_resources() -> None:
    job = shared_job("rdma/shared")
    job["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
    assert told(check([job], (), WORLD, stack(()))) == [("stack.operator", "network-operator", "fail")]


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "name",
                    "spec",
                    "status",
                    "conditions",
                    "resourceGroups",
                    "flavors",
                    "resources",
                    "template",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(
    VALUES,
    st.sampled_from(
        [
            "parse_controller",
            "parse_policy_state",
            "parse_local_queue",
            "parse_cluster_queue",
            "parse_frameworks",
            "parse_uncounted",
            "shared_class",
        ]
    ),
)
def test_hostile_objects_are_refused_or_read(
    value: typing.Optional[
        typing.Union[
            dict[str, typing.Any],
            list[typing.Optional[typing.Union[dict[str, typing.Any], list[typing.Any], str]]],
            str,
        ]
    ],
    parser: str,
) -> None:
    item = (
        value
        if isinstance(value, dict) or parser in ("parse_frameworks", "parse_uncounted")
        else {"metadata": {"name": "x"}, "spec": value}
    )
    try:
        getattr(parse, parser)(item)
    except ResourceError:
        return
