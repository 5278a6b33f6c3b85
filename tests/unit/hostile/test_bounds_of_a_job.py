# SPDX-License-Identifier: GPL-3.0-or-later

"""A manifest or a NIC map that somebody else wrote: what is long in it is refused by name, and no finding repeats all
of it for each node."""

from __future__ import annotations

import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import NicMapInputs
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import lint as lint_map
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import MOST_HINTS
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    JobAttachment,
    JobSurroundings,
    PodDevices,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.manifest import parse_workload
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nic_map import parse_nic_map
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

Data = dict[str, typing.Any]
#: seconds of processor time; without bounds it is minutes
LIMIT = 30


def pod(container: Data, volumes: typing.Sequence[Data] = ()) -> Data:
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}, **container}
    return {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"volumes": list(volumes), "containers": [container]}}


def of(check: str, findings: typing.Iterable[Finding]) -> list[Finding]:
    return [item for item in findings if item.check == check]


def env(name: str, value: str) -> Data:
    return {"env": [{"name": name, "value": value}]}


@pytest.mark.parametrize(
    ("job", "seen"),
    [
        (
            pod({}, [{"name": f"v{number}"} for number in range(1001)]),
            "the pod: volumes has 1001 entries; the limit is 1000",
        ),
        (
            pod({"env": [{"name": f"V{number}", "value": "1"} for number in range(1001)]}),
            "spec.containers[0]: env has 1001 entries; the limit is 1000",
        ),
        (
            pod({"volumeMounts": [{"name": "v", "mountPath": f"/{number}"} for number in range(1001)]}),
            "spec.containers[0]: volumeMounts has 1001 entries; the limit is 1000",
        ),
        (pod(env("NCCL_IB_HCA", "q," * 256)), "spec.containers[0].env: NCCL_IB_HCA lists 257 names; the limit is 256"),
        (
            pod({"command": ["NCCL_SOCKET_IFNAME=" + "q," * 256]}),
            "spec.containers[0].command: NCCL_SOCKET_IFNAME lists 257 names; the limit is 256",
        ),
    ],
    ids=["volumes", "env", "volumeMounts", "hcas", "interfaces"],
)
def test_a_list_that_is_longer_than_any_is_refused_by_name(job: Data, seen: str) -> None:
    (finding,) = lint([job])
    assert (finding.check, finding.subject, finding.status) == ("job.read", "Pod a", "unknown")
    assert finding.why == f"The job could not be read: {seen}." and finding.remedy == (
        "Correct the object. Run kubectl apply --dry-run=server -f FILE for the error of the API server. Then run"
        " job_lint again."
    )


def test_a_path_to_many_templates_is_not_repeated_for_each_of_them() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    job = {"kind": "Job", "metadata": {"name": "a"}, "spec": {"k" * 100_000: [template] * 5000}}
    tracemalloc.start()
    with bounded(LIMIT):
        (finding,) = lint([job])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert finding.check == "job.read" and len(finding.why) < 300
    assert finding.why.endswith("kkk...: a path of 100005 characters; the limit in a job is 1000.")
    # without the limit 1 GB
    assert peak < 10_000_000


def test_a_key_as_long_as_one_of_an_annotation_is_no_obstacle() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    annotations = {f"{'d' * 253}/{'n' * 63}": {"a": "b"}}
    job = {"kind": "Job", "metadata": {"name": "a", "annotations": annotations}, "spec": {"template": template}}
    assert [item.path for item in parse_workload(job).templates] == ["spec"]


def test_the_nearest_volume_is_looked_for_for_the_first_few_mounts() -> None:
    mounts = [{"name": f"bacdfegh-{number}", "mountPath": f"/{number}"} for number in range(1000)]
    jobs = [pod({"volumeMounts": mounts}, [{"name": f"abcdefgh-{number}"} for number in range(300)])] * 5
    with bounded(LIMIT):
        found = [item for item in of("job.volumes", lint(jobs)) if item.status == "fail"]
    assert ["did you mean 'abcdefgh-" in item.expected for item in found] == [True] * MOST_HINTS + [False] * (
        5000 - MOST_HINTS
    )
    assert (
        found[-1].measured == "volume 'bacdfegh-999' does not exist"
        and found[-1].remedy == "Add the volume to the pod template, or correct its name. Then run job_lint again."
    )


def test_no_node_repeats_a_list_of_hcas() -> None:
    devices = {f"node-{number}": tuple(f"mlx5_{port}" for port in range(8)) for number in range(1000)}
    world = JobSurroundings(nodes=(), attachments=(), claims=(), pods=(), enforced={}, devices=devices, errors=())
    value = ",".join(f"q{number:03}{'x' * 4000}" for number in range(256))
    found = [
        item for item in of("job.hcas", lint([pod(env("NCCL_IB_HCA", value))], (), world)) if " on " in item.subject
    ]
    assert len(found) == 21 and max(len(item.why) + len(item.measured) for item in found) < 1800
    assert found[-1].subject.endswith("NCCL_IB_HCA on 980 more nodes") and "and 968 more." in found[-1].why
    short = of("job.hcas", lint([pod(env("NCCL_IB_HCA", ",".join(f"q{number}" for number in range(20))))], (), world))[
        0
    ]
    assert short.why.startswith(
        "The node has no HCA of this name: q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11 and 8 more. NCCL ignores"
        " such a name"
    )


def test_the_nearest_node_is_looked_for_for_the_first_few_lines() -> None:
    ground = NicMapInputs({f"gpu-worker-node-rack{number:03}": ("ens13",) for number in range(300)})
    text = "\n".join(
        f"gpu-worker-nodes-rack{number % 300:03}-{number}:ens13:net1:10.{number >> 8}.{number & 255}.1"
        for number in range(10_000)
    )
    with bounded(LIMIT):
        found = [item for item in lint_map("map", parse_nic_map(text), ground) if item.check == "nic_map.netdevs"]
    assert ["did you mean 'gpu-worker-node-rack" in item.expected for item in found] == [True] * MOST_HINTS + [
        False
    ] * (10_000 - MOST_HINTS)
    assert (
        found[-1].measured == "node does not exist"
        and found[-1].remedy
        == "Correct the name of the node in the map, or remove the line. Then run nic_map_lint again."
    )


def test_interfaces_that_a_map_makes_up_are_not_repeated_for_each_node() -> None:
    text = "\n".join(
        f"n{number}:e0:i{number:x}:10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(10_000)
    )
    with bounded(LIMIT):
        (finding,) = of("nic_map.peers", lint_map("map", parse_nic_map(text), NicMapInputs({})))
    assert (finding.status, finding.measured) == ("fail", "10000 pod interfaces")
    assert finding.why.startswith("No pod has more than 256 interfaces")


def test_a_node_that_lacks_many_interfaces_names_a_few_of_them() -> None:
    lines = [f"n0:e{number}:net{number:03}:10.0.0.{number}" for number in range(200)]
    (finding,) = of(
        "nic_map.peers", lint_map("map", parse_nic_map("\n".join([*lines, "n1:e0:net000:10.1.0.1"])), NicMapInputs({}))
    )
    assert finding.subject == "map n1" and finding.measured.endswith("net012 and 187 more")


def test_the_cause_of_an_unread_node_is_cut_in_each_line() -> None:
    ground = NicMapInputs({}, {"n0": "x" * 8192})
    text = "\n".join(f"n0:e{number}:net{number}:10.0.0.{number}" for number in range(200))
    found = [item for item in lint_map("map", parse_nic_map(text), ground) if item.check == "nic_map.netdevs"]
    assert len(found) == 200 and max(len(item.why) for item in found) < 400


def train_job(spec: Data, jobs: typing.Sequence[str] = ("node",)) -> tuple[Data, Data]:
    """A TrainJob, and the runtime that it refers to."""

    def template() -> Data:
        return {"spec": {"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}}}

    inner = {"replicatedJobs": [{"name": name, "template": template()} for name in jobs]}
    runtime = {
        "kind": "TrainingRuntime",
        "metadata": {"name": "r", "namespace": "t"},
        "spec": {"template": {"spec": inner}},
    }
    reference = {"kind": "TrainingRuntime", "name": "r"}
    return {
        "kind": "TrainJob",
        "metadata": {"name": "j", "namespace": "t"},
        "spec": {"runtimeRef": reference, **spec},
    }, runtime


def runtime_patch(*names: str) -> Data:
    return {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": name} for name in names]}}}}


@pytest.mark.parametrize(
    ("spec", "jobs", "seen"),
    [
        ({"runtimePatches": [{}] * 1001}, ("node",), "TrainJob j: runtimePatches has 1001 entries; the limit is 1000"),
        (
            {"runtimePatches": [runtime_patch(*["a"] * 1001)]},
            ("node",),
            "TrainJob j: replicatedJobs has 1001 entries; the limit is 1000",
        ),
        (
            {"podTemplateOverrides": [{}] * 1001},
            ("node",),
            "TrainJob j: podTemplateOverrides has 1001 entries; the limit is 1000",
        ),
        (
            {
                "podTemplateOverrides": [
                    {"targetJobs": [{"name": "node"}], "spec": {"containers": [{"name": "node"}, {"name": "node"}]}}
                ]
            },
            ("node",),
            "r: a patch names the container node twice",
        ),
        (
            {"podTemplateOverrides": [{"targetJobs": [{}] * 1001}]},
            ("node",),
            "TrainJob j: targetJobs has 1001 entries; the limit is 1000",
        ),
        (
            {"runtimePatches": [runtime_patch("a", "b", "c")] * 400},
            ("node",),
            "TrainJob j: 1200 pod templates are patched; the limit is 1000",
        ),
        ({}, ("node",) * 1001, "TrainingRuntime r: replicatedJobs has 1001 entries; the limit is 1000"),
    ],
)
def test_a_train_job_with_more_patches_than_any_is_refused_by_name(
    spec: Data, jobs: typing.Sequence[str], seen: str
) -> None:
    job, runtime = train_job(spec, jobs)
    with pytest.raises(ResourceError) as error:
        parse_workload(job, [runtime])
    assert str(error.value) == seen


def test_each_job_of_a_runtime_gets_its_patches_in_their_order() -> None:
    def env(name: str, value: str, *jobs: str) -> Data:
        containers = {"containers": [{"name": "node", "env": [{"name": name, "value": value}]}]}
        return {"targetJobs": [{"name": job} for job in jobs], "spec": containers}

    job, runtime = train_job(
        {"podTemplateOverrides": [env("A", "1", "one", "two"), env("A", "2", "two"), env("B", "3", "three")]},
        ("one", "two"),
    )
    found = [
        {variable.name: variable.value for variable in template.containers[0].environment}
        for template in parse_workload(job, [runtime]).templates
    ]
    assert found == [{"A": "1"}, {"A": "2"}]


def world_of(**parts: typing.Any) -> JobSurroundings:
    return JobSurroundings(**parts)


def networked(index: int, networks: typing.Sequence[str], *environment: Data) -> Data:
    job = pod({"env": list(environment)})
    job["metadata"] = {
        "name": f"p{index}",
        "namespace": "t",
        "annotations": {"k8s.v1.cni.cncf.io/networks": ",".join(networks)},
    }
    return job


def test_attachments_of_many_jobs_are_looked_up_once() -> None:
    """Each job names its own attachments, and all of them are in what was read."""
    jobs = [networked(number, [f"t/net-{number}-{one}" for one in range(20)]) for number in range(3000)]
    attachments = tuple(
        JobAttachment(f"t/net-{number}-{one}", ("macvlan",)) for number in range(3000) for one in range(20)
    )
    with bounded(LIMIT):
        found = lint(jobs, (), world_of(attachments=attachments, offered=frozenset(map(str, range(60_000)))))
    assert sum(item.status == "pass" for item in of("job.networks", found)) == 60_000


HCA = {"name": "NCCL_IB_HCA", "value": "=mlx5_0"}


def test_findings_on_hcas_do_not_grow_with_templates_times_nodes() -> None:
    """The first nodes are named, and the status of the rest is kept."""
    devices = {f"node-{number:04}": (f"mlx5_{number % 2}",) for number in range(4000)}
    jobs = [networked(number, ["t/net"], HCA) for number in range(500)]
    with bounded(LIMIT):
        found = of("job.hcas", lint(jobs, (), world_of(devices=devices)))
    assert len(found) == 500 * 21 and {item.status for item in found} == {"fail"}
    assert found[0].subject.endswith("on node-0001") and found[20].subject.endswith("on 1980 more nodes")
    assert "node-0041, node-0043" in found[20].why and "and 1968 more" in found[20].why
    # one node has its own finding, as each of a few has
    (alone,) = of("job.hcas", lint(jobs[:1], (), world_of(devices={"a": ("mlx5_1",), "b": ("mlx5_0",)})))
    assert alone.subject.endswith("NCCL_IB_HCA on a") and "same check" not in alone.why


def test_pods_of_each_status_are_named_or_counted() -> None:
    pods = [PodDevices(f"p{number:03}", ("net1",), (f"mlx5_{number % 2}",)) for number in range(100)]
    found = of("job.hcas", lint([networked(0, ["t/net"], HCA)], (), world_of(pods=tuple(pods))))
    assert [item.status for item in found] == ["pass"] * 21 + ["fail"] * 21
    assert found[20].subject.endswith("of pod 30 more pods") and found[41].subject.endswith("of pod 30 more pods")


@pytest.mark.parametrize("variable", ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"])
def test_pods_of_any_number_cost_no_more_than_a_budget_and_are_not_called_good(variable: str) -> None:
    """A tenant makes pods with the label of a job, each with devices and interfaces of other names."""
    pods = tuple(PodDevices(f"p{number}", (f"n{number}",), (f"d{number}",)) for number in range(30_000))
    value = {"name": variable, "value": ",".join(f"d{number}" for number in range(256))}
    check = {"NCCL_IB_HCA": "job.hcas", "NCCL_SOCKET_IFNAME": "job.interfaces"}[variable]
    with bounded(LIMIT):
        found = of(check, lint([networked(number, ["t/net"], value) for number in range(300)], (), world_of(pods=pods)))
    late = [item for item in found if item.status == "unknown"]
    assert len(late) > 290 and all("not compare" in item.why and "job_lint" in item.remedy for item in late)
    assert len(found) < 300 * 22
