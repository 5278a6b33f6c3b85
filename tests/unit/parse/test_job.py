# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of every kind by their pod templates, the annotation of the multi-network specification, quantities, and input
that is made to harm."""

from __future__ import annotations

import decimal
import json
import typing

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import PodDevices
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.job_objects import (
    parse_attachment,
    parse_pod_devices,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.manifest import is_job, parse_workload
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.pod_template import parse_networks
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.train_job import find_runtime
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.quantity import parse_quantity
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.tests.unit.check.job_world import definition, objects

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def job(kind: str, spec: dict[str, typing.Any]) -> dict[str, typing.Any]:
    return {"kind": kind, "metadata": {"name": "j", "namespace": "n"}, "spec": spec}


@pytest.mark.parametrize(
    ("resource", "templates"),
    [
        ({**job("Pod", POD["spec"])}, [("", 1)]),
        (job("Job", {"parallelism": 4, "template": POD}), [("spec", 4)]),
        (job("StatefulSet", {"replicas": 3, "template": POD}), [("spec", 3)]),
        (job("CronJob", {"jobTemplate": {"spec": {"template": POD}}}), [("spec.jobTemplate.spec", 1)]),
        (
            job(
                "MPIJob",
                {
                    "mpiReplicaSpecs": {
                        "Launcher": {"replicas": 1, "template": POD},
                        "Worker": {"replicas": 8, "template": POD},
                    }
                },
            ),
            [("spec.mpiReplicaSpecs.Launcher", 1), ("spec.mpiReplicaSpecs.Worker", 8)],
        ),
        (
            job(
                "JobSet",
                {
                    "replicatedJobs": [
                        {"name": "a", "replicas": 2, "template": {"spec": {"parallelism": 4, "template": POD}}}
                    ]
                },
            ),
            [("spec.replicatedJobs[0].template.spec", 8)],
        ),
    ],
)
def test_pod_templates_of_every_kind(resource: dict[str, typing.Any], templates: list[tuple[str, int]]) -> None:
    assert is_job(resource)
    assert [(item.path, item.count) for item in parse_workload(resource).templates] == templates


def test_what_makes_no_pods_is_no_job() -> None:
    assert not is_job(job("ConfigMap", {}))
    assert not is_job({"kind": "RoleBinding"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, []),
        (" ", []),
        ("net", [("n/net", "net1")]),
        ("ns/net@roce0, other", [("ns/net", "roce0"), ("n/other", "net2")]),
        (
            '[{"name": "net", "namespace": "ns", "interface": "roce0"}, {"name": "other"}]',
            [("ns/net", "roce0"), ("n/other", "net2")],
        ),
        ("[]", []),
    ],
)
def test_annotations(text: typing.Optional[str], found: list[tuple[str, str]]) -> None:
    assert [(request.full_name, request.interface) for request in parse_networks(text, "n", "p")] == found


@pytest.mark.parametrize(
    "text",
    ["a/b/c", "net@", "NET", "a,,b", "[", "[1]", '[{"namespace": "n"}]', '{"name": "n"}', "net@name-that-is-too-long"],
)
def test_annotations_that_multus_refuses(text: str) -> None:
    with pytest.raises(ResourceError, match=r"k8s\.v1\.cni\.cncf\.io/networks"):
        parse_networks(text, "n", "p")


def test_what_a_train_job_changes_in_its_runtime() -> None:
    runtime, train = objects(kind="TrainJob")
    amounts = {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "1"}
    train["spec"]["trainer"] = {
        "numNodes": 16,
        "image": "other",
        "command": ["torchrun", "x.py"],
        "env": [{"name": "NCCL_DEBUG", "value": "WARN"}, {"name": "NEW", "value": "1"}],
        "resourcesPerNode": {"limits": amounts},
    }
    (template,) = parse_workload(train, [runtime]).templates
    (container,) = template.containers
    values = {variable.name: variable.value for variable in container.environment}
    assert (template.count, container.limits, container.requests) == (16, amounts, amounts)
    assert (values["NCCL_DEBUG"], values["NEW"], values["NCCL_SOCKET_IFNAME"]) == ("WARN", "1", "=net1,net2,net3,net4")


@pytest.mark.parametrize("form", ["runtimePatches", "podTemplateOverrides"])
def test_patches_of_a_train_job(form: str) -> None:
    runtime, train = objects(kind="TrainJob")
    pod = {
        "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "training/rdmashared-net"}},
        "spec": {
            "volumes": [
                {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                {"name": "more", "emptyDir": {}},
            ],
            "containers": [
                {
                    "name": "node",
                    "volumeMounts": [{"name": "more", "mountPath": "/more"}],
                    "securityContext": {"runAsUser": 1000},
                }
            ],
        },
    }
    patch = {
        "manager": "m",
        "trainingRuntimeSpec": {
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": pod}}}]}}
        },
    }
    train["spec"][form] = [patch] if form == "runtimePatches" else [{"targetJobs": [{"name": "node"}], **pod}]
    (template,) = parse_workload(train, [runtime]).templates
    assert [request.full_name for request in template.networks] == ["training/rdmashared-net"]
    assert template.memory_volumes == {"shared-memory": "1Gi"}
    assert (template.containers[0].user, template.containers[0].mounts["/more"], "more" in template.volumes) == (
        1000,
        "more",
        True,
    )
    # the runtime itself stays as it was
    assert "more" not in json.dumps(runtime)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({"name": "torch"}, ("ClusterTrainingRuntime", "", "torch")),
        ({"kind": "TrainingRuntime", "name": "torch"}, ("TrainingRuntime", "n", "torch")),
    ],
)
def test_runtimes_that_a_job_refers_to(reference: dict[str, str], found: tuple[str, ...]) -> None:
    assert find_runtime(job("TrainJob", {"runtimeRef": reference})) == found


@pytest.mark.parametrize("reference", [{}, {"kind": "Runtime", "name": "torch"}, []])
def test_a_train_job_that_refers_to_nothing(reference: typing.Union[dict[str, str], list[typing.Any]]) -> None:
    with pytest.raises(ResourceError):
        find_runtime(job("TrainJob", {"runtimeRef": reference}))


def test_interfaces_and_devices_of_a_pod() -> None:
    status = [
        {"name": "cbr0", "interface": "eth0", "default": True},
        {"name": "n/a", "interface": "net1", "device-info": {"pci": {"rdma-device": "mlx5_6,mlx5_7"}}},
        {"name": "n/b", "interface": "net2"},
    ]
    pod = {"metadata": {"name": "p", "annotations": {"k8s.v1.cni.cncf.io/network-status": json.dumps(status)}}}
    assert parse_pod_devices(pod) == PodDevices("p", ("net1", "net2"), ("mlx5_6", "mlx5_7"))
    assert parse_pod_devices({"metadata": {"name": "p"}}) == PodDevices("p", (), ())
    for broken in ("{", "{}", "[1]"):
        with pytest.raises(ResourceError):
            parse_pod_devices({"metadata": {"name": "p", "annotations": {"k8s.v1.cni.cncf.io/network-status": broken}}})


def test_attachments() -> None:
    found = parse_attachment(definition("net", "sriov", "openshift.io/x", routes=[{"dst": "::/0"}]))
    assert (found.name, found.kinds, found.resource, found.default_route) == (
        "training/net",
        ("sriov",),
        "openshift.io/x",
        True,
    )
    assert not parse_attachment(definition("net", "macvlan", routes=[{"dst": "10.0.0.0/8"}])).default_route
    assert "is not JSON:" in parse_attachment({**definition("net", "macvlan"), "spec": {"config": "{"}}).problem


@pytest.mark.parametrize(
    "definition_of",
    [
        lambda: definition("net", "x" * 300_000),
        lambda: definition("net", "sriov", "r" * 250_000),
        lambda: {
            **definition("net", "macvlan"),
            "spec": {"config": json.dumps({"plugins": [{"type": "macvlan"}] * 16_000})},
        },
        lambda: {**definition("net", "macvlan"), "spec": {"config": "{" * 300_000}},
    ],
)
def test_little_is_kept_of_an_attachment_whatever_a_tenant_writes(
    definition_of: typing.Callable[[], typing.Any],
) -> None:
    found = parse_attachment(definition_of())
    assert found.problem and len(repr(found)) < 2000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        (2, 2),
        ("500m", "0.5"),
        ("0.5", "0.5"),
        ("1Ki", 1024),
        ("1k", 1000),
        ("1e3", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("5u", "0.000005"),
        (".5", "0.5"),
    ],
)
def test_quantities(text: typing.Union[int, str], value: typing.Union[int, str]) -> None:
    assert parse_quantity(text, "x") == decimal.Decimal(value)


@pytest.mark.parametrize(
    "text", ["", "two", "1GB", "1 Gi", True, None, [], "1e999", "0x10", "1.2.3", "Gi", "--1", "9" * 31]
)
def test_what_is_no_quantity(text: typing.Optional[typing.Union[list[typing.Any], bool, str]]) -> None:
    with pytest.raises(ResourceError, match="is not a quantity"):
        parse_quantity(text, "x")


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        assert parse_quantity(text, "x").is_finite()
    except ResourceError:
        return


def test_a_file_that_unfolds_without_end_is_refused() -> None:
    """Aliases make 10^9 parts out of a few lines; a structure that contains itself has no end at all."""
    bomb = yaml.safe_load(
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi"))
    )
    knot = yaml.safe_load("&a {spec: {again: *a}}")
    for resource in (job("JobSet", bomb), {**knot, **job("JobSet", knot)}):
        with pytest.raises(ResourceError, match="no job looks like that"):
            parse_workload(resource)


def test_a_job_with_too_many_pod_templates_is_refused_by_name() -> None:
    """Each template is judged against the others: thousands of them take minutes."""
    template = {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}
    job = {"kind": "JobSet", "metadata": {"name": "many"}, "spec": {"replicatedJobs": [template] * 256}}
    assert len(parse_workload(job).templates) == 256
    job["spec"] = {"replicatedJobs": [template] * 257}
    with pytest.raises(ResourceError, match="many: more than 256 pod templates"):
        parse_workload(job)
