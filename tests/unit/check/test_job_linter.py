# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter of jobs: what we render passes, each field of it that is taken away or misspelled is refused, and each
rule by itself."""

from __future__ import annotations

import copy
import dataclasses
import json
import pathlib
import re
import typing

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.job import nccl_variables
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.choice import Choice
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint, list_jobs
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import FlavorGroup, ResourceFlavor
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    JobAttachment,
    JobSurroundings,
    PodDevices,
    VolumeClaim,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.compute_domains import ClaimingPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.device_claims import (
    DeviceClass,
    DeviceSlice,
    SliceDevice,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.job_objects import parse_attachment
from ansible_collections.linerate.rdma.tests.unit.check.job_world import WORLD, definition, node, objects

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/jobs"
SCHEMAS = {
    kind: json.loads((FIXTURES / f"{kind.lower()}.json").read_text())
    for kind in ("PyTorchJob", "TrainJob", "TrainingRuntime")
}


def check(made: list[dict[str, typing.Any]], world: typing.Optional[JobSurroundings] = WORLD) -> tuple[Finding, ...]:
    return lint([item for item in made if item["kind"] != "TrainingRuntime"], made, world)


def refused(findings: tuple[Finding, ...]) -> list[Finding]:
    """But for what the training operator adds to each PyTorchJob, which has a test of its own."""
    return [finding for finding in findings if finding.status != "pass" and finding.check != "job.added"]


def shown(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.check, finding.status) for finding in refused(findings)]


@pytest.mark.parametrize("kind", ["PyTorchJob", "TrainJob"])
@pytest.mark.parametrize(
    "changes", [{}, {"fabric": "roce"}, {"fabric": "roce", "nic_map": "map", "queue": "gpu", "topology_file": "/t.xml"}]
)
def test_what_we_render_passes(kind: str, changes: dict[str, str]) -> None:
    findings = check(objects(kind=kind, **changes))
    assert refused(findings) == []
    assert judge(findings).open
    only = {"PyTorchJob": set(), "TrainJob": {"job.added"}}
    assert {finding.check for finding in findings} == {f"job.{what}" for what in BESIDE["job"]} - only[kind]


def test_what_the_training_operator_adds_costs_workers_their_class() -> None:
    (added,) = (finding for finding in check(objects()) if finding.check == "job.added")
    assert added.status == "warn" and added.subject.endswith("Worker") and "Guaranteed" in added.why
    made = objects()
    # nobody to wait for
    del made[0]["spec"]["pytorchReplicaSpecs"]["Master"]
    assert [finding for finding in check(made) if finding.check == "job.added"] == []


def test_the_baseline_on_the_pod_network_is_refused_for_being_that() -> None:
    findings = check(objects(fabric=None, namespace="training", interfaces=None))
    assert {(finding.check, finding.status) for finding in refused(findings)} == {
        ("job.networks", "fail"),
        ("job.transport", "warn"),
    }


def test_a_job_that_wants_tcp_on_a_network_without_rdma() -> None:
    made = objects(fabric="roce", environment={"NCCL_IB_DISABLE": "1"})
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        container["securityContext"] = {}
        replica["template"]["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/networks": "rdmashared-net"}
        for amounts in container["resources"].values():
            del amounts["openshift.io/mlx_roce"]
    assert {(item.check, item.status) for item in refused(check(made))} == {("job.transport", "warn")}


# Mutations: of each field of the rendered job. The operators' own definitions are the second to refuse: the API server
# takes no unknown field.

#: what may be taken away without harm to the network, each with the reason; a test holds that nothing else is in it
HARMLESS = {
    r"metadata\.labels(\..*)?": "by them we find what we made, and Kueue its queue",
    r".*\.template\.metadata\.labels(\.(app|linerate).*)?": "the same, of the pods",
    r".*\.affinity(\..*)?": "where pods go; eight GPUs a pod leave no room for two on a node",
    r".*\.automountServiceAccountToken": "rights, not the network",
    r".*\.securityContext\.(allowPrivilegeEscalation|seccompProfile.*|capabilities\.drop.*)": "rights, not the network",
    r".*\.restartPolicy": "OnFailure is the default",
    r"spec\.nprocPerNode": "auto is the default: a process for each GPU",
    r"spec\.trainer(\..*)?": "the runtime has the number of nodes; auto is the default of processes",
    r"spec\.pytorchReplicaSpecs\.(Master|Worker)\.replicas": "1 is the default",
    r"spec\.pytorchReplicaSpecs\.Worker": "a job of one pod is a job",
    r".*\.command(\[\d+\])?": "what the image starts by itself is not known here",
    r".*\.env\[1\]": "NCCL_DEBUG_SUBSYS: the channels' lines are there without it",
    r".*\.env\[1\]\.value": "the same",
    r".*\.env\[2\]": "NCCL_SOCKET_IFNAME: NCCL then meets over eth0, and sends over RDMA all the same",
    r".*\.resources\.requests(\..*)?": "the API server takes the limits",
    r".*\.volumes\[0\]\.emptyDir\.sizeLimit": "the limit of memory bounds it",
    r".*\.volumeMounts\[[12]\]": "the program's own folders",
    r".*\.volumes\[2\]\.configMap(\..*)?": "the API server rejected a volume without its source",
    r".*\.volumes\[1\]\.persistentVolumeClaim(\..*)?": "the same",
    r"spec\.runtimeRef\.apiGroup": "trainer.kubeflow.org is the default",
    r"spec\.mlPolicy\.numNodes": "the TrainJob has it",
}


def fields(
    node: typing.Any, path: str = ""
) -> typing.Iterator[
    tuple[
        str, typing.Union[dict[str, typing.Any], list[typing.Union[dict[str, typing.Any], str]]], typing.Union[int, str]
    ]
]:
    """All paths below, with the parent and its key."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in list(pairs):
        here = f"{path}[{key}]" if isinstance(node, list) else f"{path}.{key}".lstrip(".")
        yield here, node, key
        yield from fields(child, here)


def against_schema(node: typing.Any, schema: typing.Any, path: str = "spec") -> typing.Iterator[typing.Any]:
    """Paths that a definition does not know, and values of another type."""
    if isinstance(schema, dict):
        if not isinstance(node, dict):
            yield path
            return
        for key, child in node.items():
            if key in schema or "*" in schema:
                yield from against_schema(child, schema.get(key, schema.get("*")), f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif isinstance(schema, list):
        for index, child in enumerate(node if isinstance(node, list) else [None]):
            yield from against_schema(child, schema[0], f"{path}[{index}]")
    elif schema not in ("any", "int-or-string") and not isinstance(
        node, {"string": str, "integer": int, "boolean": bool}[schema]
    ):
        yield path


def reaches(
    made: list[dict[str, typing.Any]], number: int, path: str
) -> tuple[list[dict[str, typing.Any]], typing.Any, typing.Any]:
    """A fresh copy of the objects, with parent and key of one field in it."""
    fresh = copy.deepcopy(made)
    return fresh, *next((parent, key) for here, parent, key in fields(fresh[number]) if here == path)


KINDS = ("PyTorchJob", "TrainJob")
MADE = {kind: objects(kind=kind, queue="gpu") for kind in KINDS}
PLACES = [
    (kind, number, path)
    for kind in KINDS
    for number, item in enumerate(MADE[kind])
    for path, _parent, _key in fields(item)
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_render_is_in_the_operators_definitions(kind: str) -> None:
    assert [path for item in MADE[kind] for path in against_schema(item["spec"], SCHEMAS[item["kind"]])] == []


def test_each_field_that_is_taken_away_is_refused_or_known_to_be_harmless() -> None:
    used, wrong = set(), []
    for kind, number, path in PLACES:
        made, parent, key = reaches(MADE[kind], number, path)
        del parent[key]
        if path in ("apiVersion", "kind"):
            continue  # without them it is no object
        excuse = next((pattern for pattern in HARMLESS if re.fullmatch(pattern, path)), None)
        harm = bool(refused(check(made)))
        used |= {excuse} if excuse and not harm else set()
        if not harm and not excuse:
            wrong.append((kind, path))
    assert not wrong, wrong
    assert set(HARMLESS) - used == set(), "an excuse that nothing needs"


def test_each_field_that_is_misspelled_is_refused() -> None:
    wrong = []
    for kind, number, path in PLACES:
        made, parent, key = reaches(MADE[kind], number, path)
        # the operator's definition allows any name there: labels, annotations, variables of a selector, amounts
        if isinstance(parent, list) or not path.startswith("spec."):
            continue
        parent[f"{key}x"] = parent.pop(key)
        item = made[number]
        if not list(against_schema(item["spec"], SCHEMAS[item["kind"]])) and not refused(check(made)):
            wrong.append((kind, path))
    free = r".*\.(labels|matchLabels|annotations|requests)\..*|.*\.template\.metadata\.labels"
    assert [place for place in wrong if not re.fullmatch(free, place[1])] == []


def test_names_that_are_misspelled_in_values_are_refused() -> None:
    found = {}
    (made,) = MADE["PyTorchJob"]
    template = "spec.pytorchReplicaSpecs.Worker.template"
    for path, value, id_ in (
        (f"{template}.metadata.annotations.k8s.v1.cni.cncf.io/networks", "training/sriov-ib-comptue", "job.networks"),
        (f"{template}.metadata.annotations.k8s.v1.cni.cncf.io/networks", "training//sriov", "job.read"),
        (f"{template}.spec.containers[0].name", "torch", "job.framework"),
        (f"{template}.spec.containers[0].env[0].name", "NCCL_DEBUGG", "job.nccl_variables"),
        (f"{template}.spec.containers[0].env[2].value", "=net1,net2,net3,net5", "job.interfaces"),
        (f"{template}.spec.containers[0].securityContext.capabilities.add[0]", "IPC_LOK", "job.memlock"),
        (f"{template}.spec.containers[0].volumeMounts[0].mountPath", "/dev/sham", "job.shared_memory"),
        (f"{template}.spec.containers[0].volumeMounts[1].name", "claims", "job.volumes"),
        (f"{template}.spec.containers[0].resources.limits.memory", "512GB", "job.read"),
        (f"{template}.spec.containers[0].resources.limits.cpu", "63", "job.guaranteed"),
        (f"{template}.spec.volumes[1].persistentVolumeClaim.claimName", "model", "job.claims"),
    ):
        fresh, parent, key = reaches([made], 0, path)
        parent[key] = value
        found[path, value] = id_ in {finding.check for finding in refused(check(fresh))}
    assert [place for place, seen in found.items() if not seen] == []


# Rules


def one(
    world: JobSurroundings = WORLD,
    annotations: typing.Optional[dict[str, str]] = None,
    kind: str = "PyTorchJob",
    limits: typing.Optional[dict[str, str]] = None,
    variables: typing.Optional[dict[str, str]] = None,
    **container: typing.Union[dict[str, typing.Any], list[typing.Union[dict[str, typing.Any], str]]],
) -> tuple[Finding, ...]:
    """Findings on a job whose workers differ in one thing."""
    made = objects(fabric="roce")
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        template = replica["template"]
        (item,) = template["spec"]["containers"]
        item.update(container)
        item["env"] += [{"name": name, "value": value} for name, value in (variables or {}).items()]
        for amounts in item["resources"].values():
            amounts.update(limits or {})
        if annotations is not None:
            template["metadata"]["annotations"] = annotations
    return check(made, world)


def finding(findings: tuple[Finding, ...], check_id: str) -> Finding:
    """The findings of a check that are no pass, each once."""
    found = {item.status: item for item in refused(findings) if item.check == check_id}
    assert len(found) == 1, found
    return next(iter(found.values()))


def test_the_job_of_the_source_with_its_mistake() -> None:
    job = yaml.safe_load((FIXTURES / "roce-patched.yaml").read_text())
    found = refused(lint([job]))
    assert {item.subject for item in found} == {
        f"PyTorchJob training/fine-tune spec.pytorchReplicaSpecs.{role} NCCL_IB_HBA" for role in ("Master", "Worker")
    }
    assert found[0].status == "fail"
    assert "did you mean 'NCCL_IB_HCA'?" in found[0].expected


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("NCCL_IB_HBA", "fail", "did you mean 'NCCL_IB_HCA'?"),
        ("NCCL_SOCKET_IFNAMES", "fail", "did you mean 'NCCL_SOCKET_IFNAME'?"),
        ("nccl_debug", "fail", "did you mean 'NCCL_DEBUG'?"),
        ("NCCL_TREE_THRESHOLD", "warn", "2.4.8"),
        ("NCCL_NET_GDR_MLOPART", "warn", "2.31.2"),
        ("NCCL_XYZZY", "fail", f"variables that NCCL {nccl_variables.RELEASE} reads"),
    ],
)
def test_variables_that_nobody_reads(name: str, status: str, text: str) -> None:
    found = finding(one(variables={name: "1"}), "job.nccl_variables")
    assert found.status == status
    assert text in found.expected + found.why


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_IB_TIMEOUT",
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_SHARP_DISABLE",
        "NCCL_PROFILE_EVENT_MASK",
        "NCCL_RUN_DIAGNOSTICS",
        "NCCL_HIER_CE_COLL_AG_RAIL_RING_ENABLE",
        "TORCH_NCCL_BLOCKING_WAIT",
    ],
)
def test_variables_that_somebody_reads(name: str) -> None:
    assert refused(one(variables={name: "1"})) == []


def test_the_table_of_variables_holds_together() -> None:
    assert not nccl_variables.KNOWN & set(nccl_variables.GONE)
    assert not nccl_variables.KNOWN & nccl_variables.OTHERS
    assert {
        "NCCL_IB_HCA",
        "NCCL_SOCKET_IFNAME",
        "NCCL_DEBUG",
        "NCCL_IB_GID_INDEX",
        "NCCL_TOPO_FILE",
        "NCCL_IB_DISABLE",
    } <= nccl_variables.KNOWN


def test_variables_in_commands_and_from_elsewhere() -> None:
    assert finding(one(args=["export NCCL_IB_HBA=mlx5_1; exec torchrun"]), "job.nccl_variables").status == "fail"
    assert (
        finding(one(command=["mpirun", "-x", "NCCL_IB_DISABLE=1", "all_reduce_perf"]), "job.transport").status == "fail"
    )
    assert refused(one(args=["export NCCL_IB_HCA=$found; exec torchrun"])) == []
    assert "ConfigMap nccl" in finding(one(envFrom=[{"configMapRef": {"name": "nccl"}}]), "job.nccl_variables").why


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({"NCCL_IB_DISABLE": "1"}, "fail"),
        ({"NCCL_IB_DISABLE": "0x1"}, "fail"),
        # strtoll stops at the first character that is no digit, and a leading 0 is octal
        ({"NCCL_IB_DISABLE": "01"}, "fail"),
        ({"NCCL_IB_DISABLE": " +1x"}, "fail"),
        ({"NCCL_IB_DISABLE": "-1"}, "fail"),
        ({"NCCL_IB_DISABLE": "1.0"}, "fail"),
        ({"NCCL_IB_DISABLE": "9223372036854775807"}, "fail"),
        ({"NCCL_IB_DISABLE": "9223372036854775808"}, None),
        ({"NCCL_IB_DISABLE": "0x"}, None),
        ({"NCCL_IB_DISABLE": "08"}, None),
        ({"NCCL_IB_DISABLE": "0o1"}, None),
        ({"NCCL_IB_DISABLE": "x1"}, None),
        ({"NCCL_IB_DISABLE": ""}, None),
        ({"NCCL_NET": "Socket"}, "fail"),
        ({"NCCL_IB_DISABLE": "0"}, None),
        ({"NCCL_IB_DISABLE": "false"}, None),
        ({"NCCL_NET": "IB"}, None),
        ({"NCCL_IB_GID_INDEX": "3"}, None),
        ({"NCCL_MNNVL_ENABLE": "0"}, "warn"),
        ({"NCCL_MNNVL_ENABLE": "2"}, None),
        ({"UCX_TLS": "tcp,self,sm"}, "fail"),
        ({"UCX_TLS": "cuda_copy,cuda_ipc,tcp"}, "fail"),
        ({"UCX_TLS": "^ib"}, "fail"),
        ({"UCX_TLS": "^rc,dc,ud"}, "fail"),
        ({"UCX_TLS": "^tcp"}, None),
        ({"UCX_TLS": "^ud,ud:aux"}, None),
        ({"UCX_TLS": "rc_x,sm,self"}, None),
        ({"UCX_TLS": "all"}, None),
        ({"UCX_TLS": ""}, None),
        ({"UCX_NET_DEVICES": "eth0"}, "fail"),
        ({"UCX_NET_DEVICES": "eth0,net1"}, "fail"),
        ({"UCX_NET_DEVICES": "mlx5_21:1,lo"}, None),
        ({"UCX_NET_DEVICES": "all"}, None),
        ({"UCX_NET_DEVICES": "^eth0"}, None),
    ],
)
def test_what_keeps_nccl_from_rdma(variables: dict[str, str], status: typing.Optional[str]) -> None:
    assert {state for _check, state in shown(one(variables=variables))} == ({status} if status else set())


def test_a_gid_index_is_nothing_for_infiniband() -> None:
    found = finding(check(objects(environment={"NCCL_IB_GID_INDEX": "3"})), "job.transport")
    assert (found.status, found.measured) == ("warn", "NCCL_IB_GID_INDEX=3")


@pytest.mark.parametrize(
    ("fabric", "name", "value", "status"),
    [
        ("compute", "NCCL_NET", "IB", None),
        ("compute", "NCCL_NET", "ib", None),
        ("compute", "NCCL_NET", "gIB", None),
        ("compute", "NCCL_NET", "AWS Libfabric", "warn"),
        ("compute", "NCCL_NET", "socket", "fail"),
        ("compute", "NCCL_NET_PLUGIN", "none", None),
        ("compute", "NCCL_NET_PLUGIN", "ofi", "warn"),
        ("compute", "NCCL_NET_GDR_LEVEL", "SYS", None),
        ("compute", "NCCL_NET_GDR_LEVEL", "LOC", "warn"),
        ("compute", "NCCL_NET_GDR_LEVEL", "0", "warn"),
        ("compute", "NCCL_DMABUF_ENABLE", "1", None),
        ("compute", "NCCL_DMABUF_ENABLE", "0", "warn"),
        ("compute", "NCCL_P2P_DISABLE", "0", None),
        ("compute", "NCCL_P2P_DISABLE", "1", "warn"),
        ("compute", "NCCL_PROTO", "LL,LL128,Simple", None),
        ("compute", "NCCL_PROTO", "LL", "warn"),
        ("compute", "NCCL_IB_PKEY", "0", None),
        ("compute", "NCCL_IB_PKEY", "5", "warn"),
        ("compute", "NCCL_MAX_NCHANNELS", "32", None),
        ("compute", "NCCL_MAX_NCHANNELS", "1", "warn"),
        ("compute", "NCCL_MAX_CTAS", "1", "warn"),
        ("compute", "NCCL_IB_TC", "0", None),
        ("compute", "NCCL_IB_ROCE_VERSION_NUM", "1", None),
        ("roce", "NCCL_IB_GID_INDEX", "3", None),
        ("roce", "NCCL_IB_GID_INDEX", "-1", None),
        ("roce", "NCCL_IB_GID_INDEX", "0", "warn"),
        ("roce", "NCCL_IB_ROCE_VERSION_NUM", "2", None),
        ("roce", "NCCL_IB_ROCE_VERSION_NUM", "1", "warn"),
        ("roce", "NCCL_IB_TC", "106", None),
        ("roce", "NCCL_IB_TC", "0", "warn"),
    ],
)
def test_variable_that_harms_rdma_is_a_warning(
    fabric: str, name: str, value: str, status: typing.Optional[str]
) -> None:
    found = refused(check(objects(fabric=fabric, environment={name: value})))
    assert {(item.check, item.status, item.measured) for item in found} == (
        {("job.transport", status, f"{name}={value}")} if status else set()
    )
    assert all(item.subject.endswith(name) and item.why and item.remedy for item in found)


def test_variables_of_a_job_that_is_to_use_tcp_are_not_compared_with_rdma() -> None:
    found = refused(check(objects(environment={"NCCL_IB_DISABLE": "1", "NCCL_NET_GDR_LEVEL": "LOC"})))
    assert {item.measured for item in found if item.check == "job.transport"} == {"NCCL_IB_DISABLE=1"}


def test_a_value_that_another_object_holds_is_unknown() -> None:
    source = {"valueFrom": {"configMapKeyRef": {"name": "nccl", "key": "value"}}}
    names = {"NCCL_IB_DISABLE": "job.transport", "NCCL_SOCKET_IFNAME": "job.interfaces", "NCCL_IB_HCA": "job.hcas"}
    found = refused(one(env=[{"name": name, **source} for name in names]))
    assert {(item.check, item.status) for item in found} == {
        *((id_, "unknown") for id_ in names.values()),
        ("job.evidence", "warn"),
    }


@pytest.mark.parametrize("value", ["WARN", "VERSION", ""])
def test_a_log_that_will_prove_nothing(value: str) -> None:
    assert finding(one(variables={"NCCL_DEBUG": value}), "job.evidence").status == "warn"


@pytest.mark.parametrize(
    ("annotation", "value", "good"),
    [
        ("sriov-roce", "net1", True),
        ("sriov-roce", "=net1", True),
        ("sriov-roce", "net", True),
        ("sriov-roce", "^lo,docker", True),
        ("sriov-roce", "eth0", True),
        ("sriov-roce", "=net", False),
        ("sriov-roce", "net2", False),
        ("sriov-roce", "net1,ens1f0", False),
        ("sriov-roce", "^net,eth,lo", False),
        ("sriov-roce", "=", False),
        ("sriov-roce@rail0", "=rail0", True),
        ("sriov-roce@rail0", "net1", False),
        ('[{"name": "sriov-roce", "interface": "rail0"}]', "rail0", True),
    ],
)
def test_interfaces_that_the_pods_have(annotation: str, value: str, good: bool) -> None:
    findings = one(annotations={"k8s.v1.cni.cncf.io/networks": annotation}, variables={"NCCL_SOCKET_IFNAME": value})
    assert shown(findings) == ([] if good else [("job.interfaces", "fail")] * 2)


def test_interfaces_of_pods_that_run_count_more_than_names_in_the_annotation() -> None:
    world = dataclasses.replace(
        WORLD, pods=(PodDevices("train-master-0", ("net1",), ()), PodDevices("train-worker-0", (), ()))
    )
    assert finding(one(world), "job.interfaces").measured == "=net1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("=mlx5_6,mlx5_7", None),
        ("mlx5", None),
        ("^mlx5_2", None),
        ("=mlx5_6", "leaves out mlx5_7"),
        ("mlx5_6,mlx5_7,mlx5_9", "the pod does not have mlx5_9"),
    ],
)
def test_hcas_against_what_the_pods_got(value: str, text: typing.Optional[str]) -> None:
    world = dataclasses.replace(WORLD, pods=(PodDevices("train-worker-0", ("net1",), ("mlx5_6", "mlx5_7")),))
    findings = one(world, variables={"NCCL_IB_HCA": value})
    if text is None:
        assert refused(findings) == []
    else:
        assert text in finding(findings, "job.hcas").why


def test_a_name_for_a_function_that_is_given_out_at_the_start() -> None:
    found = finding(one(variables={"NCCL_IB_HCA": "=mlx5_6"}), "job.hcas")
    assert found.status == "fail"
    assert "known only when the pod starts" in found.why
    assert refused(one(variables={"NCCL_IB_HCA": "mlx5"})) == []


SHARED: dict[str, typing.Any] = {
    "annotations": {"k8s.v1.cni.cncf.io/networks": "rdmashared-net"},
    "limits": {"openshift.io/mlx_roce": "0", "rdma/shared": "1"},
}


def shared_world(**more: typing.Any) -> JobSurroundings:
    return dataclasses.replace(
        WORLD, nodes=(node("worker-1", **{"rdma/shared": 63}), node("worker-2", **{"rdma/shared": 63})), **more
    )


@pytest.mark.parametrize(
    ("value", "status"), [("=mlx5_1", None), ("mlx5_1", "warn"), ("mlx5_1:1", "warn"), ("", "fail"), ("=", "fail")]
)
def test_prefixes_and_empty_lists_of_hcas(value: str, status: typing.Optional[str]) -> None:
    findings = one(shared_world(), variables={"NCCL_IB_HCA": value}, **SHARED)
    assert {state for id_, state in shown(findings) if id_ == "job.hcas"} == ({status} if status else set())


def test_hcas_that_a_node_does_not_have() -> None:
    world = shared_world(devices={"worker-1": ("mlx5_0", "mlx5_1"), "worker-2": ("mlx5_0", "mlx5_bond_0")})
    found = finding(one(world, variables={"NCCL_IB_HCA": "=mlx5_1"}, **SHARED), "job.hcas")
    assert (found.status, found.subject.endswith("on worker-2")) == ("fail", True)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("^mlx5", ["worker-1", "worker-2"]),
        ("^=mlx5_0,mlx5_1", ["worker-1"]),
        ("^mlx5_0,mlx5_1", ["worker-1"]),
        ("^mlx5_0", []),
        ("^=mlx5", []),
        ("^mlx4", []),
    ],
)
def test_lists_that_exclude_each_hca_of_a_node(value: str, wrong: list[str]) -> None:
    """NCCL would send over TCP, and no pod that runs shows it yet."""
    world = shared_world(
        devices={"worker-1": ("mlx5_0", "mlx5_1"), "worker-2": ("mlx5_0", "mlx5_bond_0"), "worker-3": ()}
    )
    found = [
        item for item in refused(one(world, variables={"NCCL_IB_HCA": value}, **SHARED)) if item.check == "job.hcas"
    ]
    assert {item.status for item in found} == ({"fail"} if wrong else set())
    assert sorted({item.subject.rpartition(" ")[2] for item in found}) == wrong


@pytest.mark.parametrize(
    ("value", "status"), [("^mlx5", "fail"), ("^mlx5_", "fail"), ("^mlx5_0,mlx5_1", None), ("^=mlx5", None)]
)
def test_functions_of_pods_have_other_names_than_those_of_the_node(value: str, status: typing.Optional[str]) -> None:
    world = dataclasses.replace(WORLD, devices={"worker-1": ("mlx5_0", "mlx5_1")})
    found = shown(one(world, variables={"NCCL_IB_HCA": value}))
    assert {state for id_, state in found if id_ == "job.hcas"} == ({status} if status else set())


@pytest.mark.parametrize(
    ("annotations", "status", "text"),
    [
        ({}, "fail", "no annotation"),
        ({"k8s.v1.cni.cncf.io/networks": "sriov-rocce"}, "fail", "did you mean 'training/sriov-roce'?"),
        ({"k8s.v1.cni.cncf.io/networks": "other/sriov-roce"}, "fail", "NetworkAttachmentDefinition does not exist"),
    ],
)
def test_networks_that_are_not_there(annotations: dict[str, str], status: str, text: str) -> None:
    found = finding(one(annotations=annotations), "job.networks")
    assert found.status == status
    assert text in found.measured + found.expected


def test_an_attachment_that_nobody_can_read_is_unknown() -> None:
    broken = parse_attachment({**definition("sriov-roce", "sriov", "openshift.io/mlx_roce"), "spec": {}})
    findings = one(dataclasses.replace(WORLD, attachments=(broken,)))
    found = finding(findings, "job.networks")
    assert found.status == "unknown" and "spec.config is empty" in found.why
    assert "/etc/cni/multus/net.d" in found.remedy and "waive this finding" in found.remedy, "it is a legal set-up"


@pytest.mark.parametrize("place", ["annotation", "attachment"])
def test_a_default_route_that_is_stolen(place: str) -> None:
    if place == "annotation":
        findings = one(
            annotations={"k8s.v1.cni.cncf.io/networks": '[{"name": "sriov-roce", "default-route": ["100.101.0.1"]}]'}
        )
    else:
        stolen = parse_attachment(
            definition("sriov-roce", "sriov", "openshift.io/mlx_roce", routes=[{"dst": "0.0.0.0/0"}])
        )
        findings = one(dataclasses.replace(WORLD, attachments=(stolen,)))
    assert shown(findings) == [("job.routes", "fail")] * 2
    assert {item.why.partition(" ")[2].startswith(place) for item in refused(findings)} == {True}


def test_resources_that_no_node_has() -> None:
    world = dataclasses.replace(
        WORLD,
        nodes=(dataclasses.replace(node("worker-1"), allocatable={"nvidia.com/gpu": 8, "openshift.io/mlx_rose": 8}),),
    )
    found = finding(one(world), "job.resources")
    assert found.measured == "0 nodes offer openshift.io/mlx_roce"
    assert "did you mean 'openshift.io/mlx_rose'?" in found.expected


@pytest.mark.parametrize(
    "nodes",
    [
        (node("worker-1"),),
        (node("worker-1"), dataclasses.replace(node("worker-2"), unschedulable=True)),
        (node("worker-1"), dataclasses.replace(node("worker-2"), ready=False)),
        (
            node("worker-1"),
            dataclasses.replace(node("worker-2"), allocatable={"nvidia.com/gpu": 8, "openshift.io/mlx_roce": 0}),
        ),
    ],
)
def test_pods_that_would_wait_for_each_other(nodes: tuple[ClusterNode, ...]) -> None:
    found = finding(one(dataclasses.replace(WORLD, nodes=nodes)), "job.resources")
    assert found.measured.startswith("room for 1 pod")
    assert found.expected == "room for 2 pods"


GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
OWN_TAINT = {"key": "team", "value": "vision", "effect": "NoExecute"}
ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}


def on_nodes(
    taints: typing.Sequence[dict[str, str]] = (),
    labels: typing.Optional[dict[str, str]] = None,
    queue: str = "",
    **spec: typing.Any,
) -> list[tuple[str, str, str]]:
    """What is said of the room of a job whose pods choose their nodes."""
    made = objects(queue=queue)
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"].update(spec)
    nodes = tuple(dataclasses.replace(item, labels=labels or {}) for item in WORLD.nodes)
    world = dataclasses.replace(WORLD, nodes=nodes, taints={"worker-2": tuple(taints)})
    found = [item for item in check(made, world) if item.check == "job.resources" and item.status != "pass"]
    return [(item.status, item.why.partition(": ")[2], item.remedy) for item in found]


@pytest.mark.parametrize(
    ("taints", "queue", "status", "remedy"),
    [
        ([OWN_TAINT], "", "fail", "Add tolerations for these taints to the pod template."),
        ([GPU_TAINT], "", "unknown", "ExtendedResourceToleration"),
        ([OWN_TAINT], "gpu", "warn", "If the ResourceFlavor of the queue adds them"),
    ],
)
def test_a_taint_without_a_toleration_keeps_pods_out(
    taints: list[dict[str, str]], queue: str, status: str, remedy: str
) -> None:
    (found,) = on_nodes(taints, queue=queue)
    key, value, effect = (taints[0][name] for name in ("key", "value", "effect"))
    assert found[:2] == (status, f"no toleration for the taint {key}={value}:{effect} (1 node).")
    assert remedy in found[2]
    tolerations = [{"key": key, "operator": "Exists"}]
    assert on_nodes(taints, queue=queue, tolerations=tolerations) == []
    assert on_nodes(taints, queue=queue, tolerations=[{"key": key, "value": "other", "effect": effect}])


@pytest.mark.parametrize(
    ("spec", "labels", "status"),
    [
        ({"nodeSelector": {"gpu": "h200"}}, {"gpu": "h200"}, None),
        ({"nodeSelector": {"gpu": "h200"}}, {"gpu": "b300"}, "fail"),
        ({"nodeSelector": {"gpu": "h200"}}, {}, "fail"),
        ([[ZONE]], {"zone": "b"}, None),
        ([[ZONE]], {"zone": "c"}, "fail"),
        ([[ZONE], [{"key": "spare", "operator": "Exists"}]], {"spare": ""}, None),
        ([[ZONE, {"key": "spare", "operator": "DoesNotExist"}]], {"zone": "a", "spare": ""}, "fail"),
        ([[{"key": "zone", "operator": "NotIn", "values": ["a"]}]], {}, None),
        ([[{"key": "rack", "operator": "Gt", "values": ["3"]}]], {"rack": "4"}, None),
        ([[{"key": "rack", "operator": "Lt", "values": ["3"]}]], {"rack": "4"}, "fail"),
        ([[]], {"zone": "a"}, "fail"),
    ],
)
def test_labels_that_no_node_has_keep_pods_out(
    spec: typing.Any, labels: dict[str, str], status: typing.Optional[str]
) -> None:
    if isinstance(spec, list):
        terms = [{"matchExpressions": term} for term in spec]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec = {"affinity": {"nodeAffinity": required}}
    assert [item[0] for item in on_nodes(labels=labels, **spec)] == ([status] if status else [])


@pytest.mark.parametrize("key", ["podTemplateOverrides", "podSpecOverrides", "runtimePatches"])
def test_a_train_job_chooses_the_nodes_beside_its_runtime(key: str) -> None:
    made = objects(kind="TrainJob")
    (train,) = (item for item in made if item["kind"] == "TrainJob")
    world = dataclasses.replace(WORLD, taints={"worker-2": (OWN_TAINT,)})
    assert shown(check(made, world)) == [("job.resources", "fail")]
    for spec, good in (
        ({"tolerations": [{"key": "team", "operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "team", "operator": "Exists"}], "nodeSelector": {"gpu": "b300"}}, False),
        ({"tolerations": [{"key": "else", "operator": "Exists"}]}, False),
    ):
        target = [{"name": "node"}]
        train["spec"][key] = {
            "podTemplateOverrides": [{"targetJobs": target, "spec": spec}],
            "podSpecOverrides": [{"targetJobs": target, **spec}],
            "runtimePatches": [
                {
                    "trainingRuntimeSpec": {
                        "template": {
                            "spec": {
                                "replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]
                            }
                        }
                    }
                }
            ],
        }[key]
        assert shown(check(made, world)) == ([] if good else [("job.resources", "fail")])


TEAM, OPEN = {"key": "team", "operator": "Exists"}, {"key": "open", "operator": "Exists"}
H200 = ResourceFlavor("h200", {"gpu": "h200"}, (), (TEAM,))
B300 = ResourceFlavor("b300", {"gpu": "b300"}, (), (TEAM,))


@pytest.mark.parametrize(
    ("flavors", "spec", "expected"),
    [
        ([ResourceFlavor("any", tolerations=(TEAM,))], {}, []),
        ([H200], {}, []),
        ([H200], {"nodeSelector": {"gpu": "h200"}}, []),
        ([ResourceFlavor("any")], {}, [("fail", "no toleration for the taint team=vision:NoExecute")]),
        ([], {}, [("fail", "no flavor of the queue fits")]),
        ([B300], {}, [("fail", "nodeSelector requires the label gpu=b300")]),
        ([H200, B300], {}, [("warn", "Another flavor of the queue has room")]),
        ([H200, B300], {"nodeSelector": {"gpu": "h200"}}, []),
        ([B300], {"nodeSelector": {"gpu": "h200"}}, [("fail", "no flavor of the queue fits the pods: b300")]),
        ([dataclasses.replace(H200, taints=(OWN_TAINT,))], {}, []),
        ([dataclasses.replace(H200, taints=(GPU_TAINT,))], {}, [("fail", "no flavor of the queue fits")]),
        ([dataclasses.replace(H200, taints=(GPU_TAINT,))], {"tolerations": [{"operator": "Exists"}]}, []),
        ([H200, B300], {"affinity": [ZONE]}, [("warn", "Another flavor of the queue has room")]),
        ([H200, B300], {"affinity": [{"key": "gpu", "operator": "NotIn", "values": ["b300"]}, ZONE]}, []),
    ],
)
def test_the_flavors_of_the_queue_add_labels_and_tolerations(
    flavors: list[ResourceFlavor], spec: dict[str, typing.Any], expected: list[tuple[str, str]]
) -> None:
    if "affinity" in spec:
        required = {"nodeSelectorTerms": [{"matchExpressions": spec["affinity"]}]}
        spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    made = objects(queue="gpu")
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"].update(spec)
    nodes = tuple(dataclasses.replace(item, labels={"gpu": "h200", "zone": "a"}) for item in WORLD.nodes)
    groups = (
        FlavorGroup(frozenset({"cpu", "nvidia.com/gpu"}), tuple(flavors)),
        # it covers nothing that the pods request, so they get no flavor of it
        FlavorGroup(frozenset({"example.com/thing"}), (ResourceFlavor("other", {"gpu": "none"}),)),
    )
    world = dataclasses.replace(WORLD, nodes=nodes, taints={"worker-2": (OWN_TAINT,)}, flavors={"training/gpu": groups})
    found = [item for item in check(made, world) if item.check == "job.resources" and item.status != "pass"]
    assert [item.status for item in found] == [status for status, _text in expected]
    for item, (_status, text) in zip(found, expected):
        assert text in f"{item.measured} {item.why}"
        assert "kubectl get resourceflavors" in item.remedy


def test_too_many_combinations_of_flavors_are_not_known() -> None:
    groups = tuple(
        FlavorGroup(frozenset({"cpu"}), tuple(ResourceFlavor(f"{number}-{index}") for index in range(5)))
        for number in range(3)
    )
    world = dataclasses.replace(WORLD, taints={"worker-2": (OWN_TAINT,)}, flavors={"training/gpu": groups})
    found = finding(check(objects(queue="gpu"), world), "job.resources")
    assert (found.status, "If the ResourceFlavor of the queue adds them" in found.remedy) == ("warn", True)


def test_where_pods_of_the_job_run_the_cluster_has_placed_them() -> None:
    made = objects()
    world = dataclasses.replace(WORLD, taints={"worker-2": (OWN_TAINT,)})
    running = dataclasses.replace(world, claiming_pods=(ClaimingPod("train-master-0", "worker-1", ("c",)),))
    assert shown(check(made, world)) == [("job.resources", "fail")]
    assert shown(check(made, running)) == []


@pytest.mark.parametrize(
    ("nodes", "wrong"),
    [
        (2, []),
        (
            3,
            [
                (
                    "PyTorchJob training/train nvidia.com/gpu",
                    "16 nvidia.com/gpu on the ready nodes",
                    "24 nvidia.com/gpu for all pods together",
                )
            ],
        ),
    ],
)
def test_pods_of_different_amounts_need_the_same_nodes(nodes: int, wrong: list[tuple[str, str, str]]) -> None:
    """The Master asks for less than the Workers, so each kind fits by itself."""
    made = objects(nodes=nodes)
    for amounts in made[0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0][
        "resources"
    ].values():
        amounts["openshift.io/mlx_compute"] = "3"
    found = [item for item in refused(check(made)) if item.check == "job.resources"]
    assert [(item.subject, item.measured, item.expected) for item in found] == wrong


def test_beside_a_kind_that_does_not_fit_by_itself_nothing_is_told_of_all() -> None:
    made = objects(nodes=3)
    for amounts in made[0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0][
        "resources"
    ].values():
        amounts["openshift.io/mlx_compute"] = "3"
    findings = check(made, dataclasses.replace(WORLD, nodes=WORLD.nodes[:1]))
    assert [(item.measured, item.expected) for item in refused(findings) if item.check == "job.resources"] == [
        ("room for 1 pod on 1 ready node", "room for 2 pods")
    ]


@pytest.mark.parametrize(
    ("limits", "status", "text"),
    [
        ({"openshift.io/mlx_roce": "2"}, "fail", "no attachment brings into them"),
        ({"openshift.io/mlx_roce": "0"}, "fail", "The pod needs one device of this resource for each attachment"),
    ],
)
def test_as_many_devices_as_attachments(limits: dict[str, str], status: str, text: str) -> None:
    found = finding(one(limits=limits), "job.devices")
    assert (found.status, text in found.why) == (status, True)


def test_a_device_that_only_the_injector_adds() -> None:
    made = objects(fabric="roce")
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        for amounts in replica["template"]["spec"]["containers"][0]["resources"].values():
            del amounts["openshift.io/mlx_roce"]
    assert {(item.check, item.status, item.measured, item.expected) for item in refused(check(made))} == {
        ("job.devices", "warn", "0 devices requested", "1 device requested, one for each attachment")
    }


def test_an_attachment_without_an_rdma_resource() -> None:
    made = one(
        annotations={"k8s.v1.cni.cncf.io/networks": "rdmashared-net"},
        resources={"limits": {"cpu": "1", "memory": "512Gi", "nvidia.com/gpu": "8"}},
    )
    assert "so the pods have no /dev/infiniband" in finding(made, "job.devices").why


@pytest.mark.parametrize(
    ("on_node", "privileged", "status"),
    [(True, False, "fail"), (True, True, None), (False, True, "unknown"), (False, False, "fail")],
)
def test_pods_without_an_rdma_resource(on_node: bool, privileged: bool, status: typing.Optional[str]) -> None:
    """hostNetwork gives a pod the interfaces of its node, but not its /dev/infiniband."""
    made = objects(fabric="roce")
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        template = replica["template"]
        template["spec"]["hostNetwork"] = on_node
        template["metadata"]["annotations"] = {} if on_node else {"k8s.v1.cni.cncf.io/networks": "rdmashared-net"}
        (item,) = template["spec"]["containers"]
        item["securityContext"] = {"privileged": privileged, "capabilities": {"add": ["IPC_LOCK"]}}
        for amounts in item["resources"].values():
            del amounts["openshift.io/mlx_roce"]
    assert {item.status for item in refused(check(made)) if item.check == "job.devices"} == (
        {status} if status else set()
    )


@pytest.mark.parametrize(
    "gpu",
    [
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb.shared",
        "amd.com/gpu",
        "amd.com/cpx_nps4",
        "habana.ai/gaudi",
        "gpu.intel.com/xe",
    ],
)
def test_a_gpu_by_another_name_is_no_network_device(gpu: str) -> None:
    made = one(
        dataclasses.replace(WORLD, nodes=tuple(node(name, **{gpu: 8}) for name in ("worker-1", "worker-2"))),
        annotations={"k8s.v1.cni.cncf.io/networks": "rdmashared-net"},
        resources={"limits": {"cpu": "1", "memory": "512Gi", gpu: "8"}},
    )
    assert "so the pods have no /dev/infiniband" in finding(made, "job.devices").why


@pytest.mark.parametrize(
    ("context", "status"),
    [
        ({}, "unknown"),
        ({"capabilities": {"add": ["NET_RAW"]}}, "unknown"),
        ({"capabilities": {"add": ["IPC_LOCK"]}, "runAsUser": 1000}, "warn"),
        ({"capabilities": {"add": ["IPC_LOCK"]}, "runAsNonRoot": True}, "warn"),
        ({"capabilities": {"add": ["ipc_lock"]}, "runAsUser": 0}, None),
        ({"privileged": True}, None),
    ],
)
def test_memory_that_can_be_pinned(context: dict[str, typing.Any], status: typing.Optional[str]) -> None:
    assert {state for id_, state in shown(one(securityContext=context)) if id_ == "job.memlock"} == (
        {status} if status else set()
    )
    if status == "warn":
        found = finding(one(securityContext=context), "job.memlock")
        assert found.measured == "IPC_LOCK without root in container pytorch; memlock limit not read"
        assert "rdma_cluster.host.memlock.limit_gib" in found.remedy and "runAsUser: 0" in found.remedy


def test_shared_memory_larger_than_memory() -> None:
    assert finding(one(limits={"memory": "8Gi"}), "job.shared_memory").status == "warn"


@pytest.mark.parametrize(
    ("resources", "good"),
    [
        ({"limits": {"cpu": "2", "memory": "512Gi"}}, True),
        ({"limits": {"cpu": "2", "memory": "512Gi"}, "requests": {"cpu": "2000m"}}, True),
        ({"limits": {"cpu": "2", "memory": "512Gi"}, "requests": {"cpu": "1"}}, False),
        ({"limits": {"memory": "512Gi"}, "requests": {"cpu": "2"}}, False),
        ({"requests": {"cpu": "2", "memory": "1Gi"}}, False),
    ],
)
def test_requests_that_equal_limits(resources: dict[str, typing.Any], good: bool) -> None:
    devices = {"nvidia.com/gpu": "8", "openshift.io/mlx_roce": "1"}
    findings = one(resources={**resources, "limits": {**resources.get("limits", {}), **devices}})
    assert shown(findings) == ([] if good else [("job.guaranteed", "fail")] * 2)


@pytest.mark.parametrize(("name", "status"), [("models", None), ("scratch", "fail"), ("nothing", "fail")])
def test_claims_that_all_pods_can_mount(name: str, status: typing.Optional[str]) -> None:
    found = shown(check(objects(claim={"name": name, "path": "/models"})))
    assert found == ([("job.claims", status)] if status else [])


def test_a_claim_that_is_not_bound_yet() -> None:
    models, *_rest = WORLD.claims
    world = dataclasses.replace(WORLD, claims=(dataclasses.replace(models, phase="Pending"),))
    assert finding(check(objects(), world), "job.claims").status == "warn"
    lost = dataclasses.replace(WORLD, claims=(dataclasses.replace(models, phase="Lost"),))
    assert finding(check(objects(), lost), "job.claims").status == "fail"


def test_pods_on_the_network_of_their_nodes() -> None:
    made = objects(fabric="roce")
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["hostNetwork"] = True
    assert {(item.check, item.status) for item in refused(check(made))} == {
        ("job.networks", "warn"),
        ("job.interfaces", "warn"),
    }


def test_what_could_not_be_read_is_unknown() -> None:
    world = dataclasses.replace(WORLD, errors=("forbidden: nodes",))
    assert shown(check(objects(), world)) == [("job.read", "unknown")]


def test_without_a_cluster_its_rules_are_left_out() -> None:
    checks = {item.check for item in check(objects(), None)}
    assert not checks & {"job.resources", "job.claims", "job.routes", "job.networks"}
    assert refused(check(objects(), None)) == []


def test_nothing_to_look_at_is_no_pass() -> None:
    assert shown(lint([])) == [("job.read", "unknown")]
    assert not judge(lint([])).open


@pytest.mark.parametrize(
    "change", [{"spec": {}}, {"spec": []}, {"metadata": {}}, {"spec": {"template": {"spec": {"containers": ["x"]}}}}]
)
def test_what_is_no_job_is_unknown(change: dict[str, typing.Any]) -> None:
    assert shown(lint([{"kind": "Job", "metadata": {"name": "j"}, **change}])) == [("job.read", "unknown")]


def test_a_train_job_without_its_runtime_is_unknown() -> None:
    _runtime, job = MADE["TrainJob"]
    found = finding(lint([job], (), WORLD), "job.read")
    assert (found.status, "TrainingRuntime train, which contains its pod template, does not exist" in found.why) == (
        "unknown",
        True,
    )


def test_a_job_that_asks_for_nothing_is_no_job_of_ours() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert shown(lint([pod])) == [("job.networks", "fail")]


# several jobs, containers and pods


def pod(
    name: str = "p", containers: typing.Sequence[dict[str, typing.Any]] = (), **spec: typing.Any
) -> dict[str, typing.Any]:
    metadata = {"name": name, "namespace": "training", "annotations": spec.pop("annotations", {})}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": list(containers), **spec}}


def container(name: str = "c", **more: typing.Any) -> dict[str, typing.Any]:
    """One GPU, and all that a pod on a shared network needs."""
    amounts = {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1", "rdma/shared": "1"}
    return {
        "name": name,
        "image": "i",
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
        "resources": {"limits": amounts},
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        **more,
    }


SHM: dict[str, typing.Any] = {"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}
ON_SHARED = {**SHM, "annotations": SHARED["annotations"]}


def test_a_job_that_can_t_be_read_does_not_hide_the_next() -> None:
    found = lint(
        [{"kind": "Job", "metadata": {"name": "j"}}, pod(containers=[container()], **ON_SHARED)], (), shared_world()
    )
    assert [(item.subject, item.status) for item in found if item.check == "job.read"] == [
        ("Job j", "unknown"),
        ("Pod training/p", "pass"),
    ]
    assert shown(found) == [("job.read", "unknown")]


REPLACED = [*yaml.safe_load_all((FIXTURES.parent / "public/trainjob-resources.txt").read_text())]
BY = "TrainJob train spec.trainer.resourcesPerNode"


def devices_of(amounts: dict[str, str], world: typing.Optional[JobSurroundings] = None) -> Finding:
    """The finding on the devices of the TrainJob of a public report, whose ``resourcesPerNode`` replace those of its
    runtime."""
    runtime, train = copy.deepcopy(REPLACED)
    for key in ("requests", "limits"):
        train["spec"]["trainer"]["resourcesPerNode"][key].update(amounts)
    (found,) = [finding for finding in lint([train], [runtime], world) if finding.check == "job.devices"]
    return found


def test_a_resource_that_a_train_job_replaces_is_named_with_what_replaced_it() -> None:
    found = devices_of({})
    assert found.status == "fail"
    assert (
        found.why
        == f"ClusterTrainingRuntime torch-rdma requests rdma/hca_shared_devices_a: 1, but {BY} replaces all of its"
        " resources. The pods do not get these devices, so NCCL sends over TCP."
    )
    assert found.remedy == f"Add rdma/hca_shared_devices_a: 1 to requests and limits in {BY}. Then run job_lint again."


def test_an_attachment_s_resource_that_a_train_job_replaces_is_named_as_well() -> None:
    world = dataclasses.replace(
        shared_world(), attachments=(JobAttachment("training/rdma-net", ("macvlan",), "rdma/hca_shared_devices_a"),)
    )
    found = devices_of({}, world)
    assert found.subject.endswith(" rdma/hca_shared_devices_a")
    assert f"{BY} replaces all of its resources" in found.why and f"to requests and limits in {BY}." in found.remedy


def test_a_train_job_that_keeps_the_resource_passes() -> None:
    assert devices_of({"rdma/hca_shared_devices_a": "1"}).status == "pass"


def test_a_runtime_without_the_resource_is_told_to_ask_for_it() -> None:
    runtime, train = copy.deepcopy(REPLACED)
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["containers"][0].pop("resources")
    (found,) = [finding for finding in lint([train], [runtime]) if finding.check == "job.devices"]
    assert found.status == "fail" and found.remedy.startswith(
        "Request the resource of the network in requests and limits"
    )


def test_which_objects_are_jobs() -> None:
    runtime, train = MADE["TrainJob"]
    broken = {"kind": "Job", "metadata": {"name": "j"}, "spec": []}
    assert list_jobs([runtime, train, {"kind": "ConfigMap", "metadata": {"name": "c"}}]) == (train,)
    assert list_jobs([runtime]) == (runtime,)
    assert broken in list_jobs([broken])


def test_pod_without_ipc_lock_depends_on_the_limit_of_the_nodes() -> None:
    """With rdma_cluster.host.memlock, a pod needs no IPC_LOCK. job_lint does not read this limit."""
    made = finding(one(securityContext={}), "job.memlock")
    assert made.status == "unknown" and "memlock limit not read" in made.measured
    assert "Add IPC_LOCK" in made.remedy and "rdma_cluster.host.memlock" in made.remedy
    assert not judge([made]).open


def test_only_containers_that_compute_need_what_rdma_needs() -> None:
    side = {"name": "side", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    assert shown(lint([pod(containers=[side, container(), side], **ON_SHARED)], (), shared_world())) == []
    # without GPUs those count for which somebody set NCCL's variables
    plain = container(resources={"limits": {"cpu": "1", "memory": "1Gi", "rdma/shared": "1"}})
    assert shown(lint([pod(containers=[side, plain], **ON_SHARED)], (), shared_world())) == []
    bare = {**plain, "env": []}
    assert {item.check for item in refused(lint([pod(containers=[side, bare], **ON_SHARED)], (), shared_world()))} == {
        "job.evidence",
        "job.memlock",
        "job.shared_memory",
    }


@pytest.mark.parametrize(("values", "status"), [(("1", "0"), None), (("0", "1"), "fail")])
def test_the_last_setting_of_a_variable_counts(values: tuple[str, str], status: typing.Optional[str]) -> None:
    environment = [
        {"name": "NCCL_DEBUG", "value": "INFO"},
        *({"name": "NCCL_IB_DISABLE", "value": value} for value in values),
    ]
    found = shown(lint([pod(containers=[container(env=environment)], **ON_SHARED)], (), shared_world()))
    assert {state for id_, state in found if id_ == "job.transport"} == ({status} if status else set())


def test_one_pod_needs_no_network_and_two_do() -> None:
    amounts = {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}
    alone = pod(containers=[container(resources={"limits": amounts})], **SHM)
    assert shown(lint([alone], (), WORLD)) == []
    template = {"spec": {**alone["spec"], "restartPolicy": "Never"}}
    both = {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "training"},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    assert ("job.networks", "fail") in shown(lint([both], (), WORLD))


def test_a_list_that_excludes_a_device_of_the_pod() -> None:
    world = dataclasses.replace(WORLD, pods=(PodDevices("train-worker-0", ("net1",), ("mlx5_6", "mlx5_7")),))
    assert "leaves out mlx5_6" in finding(one(world, variables={"NCCL_IB_HCA": "^mlx5_6"}), "job.hcas").why


def test_each_pod_that_runs_is_compared() -> None:
    pods = (
        PodDevices("a", ("net1",), ("mlx5_6",)),
        PodDevices("b", ("net1",), ("mlx5_7",)),
        PodDevices("c", ("net1",), ()),
    )
    found = one(dataclasses.replace(WORLD, pods=pods), variables={"NCCL_IB_HCA": "=mlx5_6"})
    assert {item.subject.rpartition(" ")[2]: item.status for item in found if item.check == "job.hcas"} == {
        "a": "pass",
        "b": "fail",
    }


@pytest.mark.parametrize(
    ("context", "status"), [({"capabilities": {"add": ["ALL"]}}, None), ({"privileged": True, "runAsUser": 1000}, None)]
)
def test_all_capabilities_hold_the_one_that_pins_memory(
    context: dict[str, typing.Any], status: typing.Optional[str]
) -> None:
    assert {state for id_, state in shown(one(securityContext=context)) if id_ == "job.memlock"} == (
        {status} if status else set()
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"volumeMounts": [{"name": "nothing", "mountPath": "/x"}]}, ("job.volumes", "fail")),
        (
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}},
            ("job.guaranteed", "fail"),
        ),
    ],
)
def test_init_containers_are_looked_at_as_well(change: dict[str, typing.Any], expected: tuple[str, str]) -> None:
    first = {"name": "init", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    assert shown(lint([pod(containers=[container()], initContainers=[first], **ON_SHARED)], (), shared_world())) == []
    found = refused(
        lint([pod(containers=[container()], initContainers=[{**first, **change}], **ON_SHARED)], (), shared_world())
    )
    assert [(item.check, item.status) for item in found] == [expected] and " init" in found[0].subject


@pytest.mark.parametrize(
    ("modes", "pods", "status"),
    [
        (("ReadOnlyMany",), 2, None),
        (("ReadWriteOnce", "ReadWriteMany"), 2, None),
        (("ReadWriteOncePod",), 2, "fail"),
        ((), 2, "fail"),
        (("ReadWriteOnce",), 1, None),
    ],
)
def test_modes_of_claims(modes: tuple[str, ...], pods: int, status: typing.Optional[str]) -> None:
    made = objects()
    if pods == 1:
        del made[0]["spec"]["pytorchReplicaSpecs"]["Worker"]
    found = shown(check(made, dataclasses.replace(WORLD, claims=(VolumeClaim("training/models", modes, "Bound"),))))
    assert [state for id_, state in found if id_ == "job.claims"] == ([status] if status else [])


def test_each_claim_is_looked_at() -> None:
    volumes = [
        *SHM["volumes"],
        *({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("absent", "models")),
    ]
    found = lint(
        [pod(containers=[container()], volumes=volumes, annotations=SHARED["annotations"])], (), shared_world()
    )
    assert [(item.subject, item.status) for item in found if item.check == "job.claims"] == [
        ("Pod training/p claim absent", "fail"),
        ("Pod training/p claim models", "pass"),
    ]


def bare(name: str = "side", **more: typing.Any) -> dict[str, typing.Any]:
    """No GPU and no device."""
    return {"name": name, "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, **more}


def of(check_id: str, found: typing.Iterable[Finding]) -> list[tuple[str, str]]:
    return [(item.subject, item.status) for item in found if item.check == check_id]


def lint_pod(*containers: dict[str, typing.Any], **spec: typing.Any) -> tuple[Finding, ...]:
    return lint([pod(containers=containers, **{**ON_SHARED, **spec})], (), shared_world())


def test_the_subject_of_a_pod_is_its_name() -> None:
    assert of("job.memlock", lint_pod(container())) == [("Pod training/p", "pass")]


def test_a_container_with_gpus_computes_whatever_another_sets() -> None:
    other = bare(env=[{"name": "NCCL_DEBUG", "value": "INFO"}])
    (found,) = (item for item in lint_pod(container("c", securityContext={}), other) if item.check == "job.memlock")
    assert (found.status, found.measured) == ("unknown", "container c has no IPC_LOCK, memlock limit not read")
    # nor does it lend that one its own settings
    (found,) = (item for item in lint_pod(container("c", env=[]), other) if item.check == "job.evidence")
    assert (found.status, found.measured) == ("warn", "NCCL_DEBUG not set")


GPU_ONLY = {"limits": {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}}


def test_one_container_with_gpus_makes_a_job_of_a_pod() -> None:
    found = lint_pod(container(resources=GPU_ONLY), bare(), annotations={})
    assert of("job.networks", found) == [("Pod training/p", "pass")]


def test_no_gpus_are_none() -> None:
    none = {"limits": {**GPU_ONLY["limits"], "nvidia.com/gpu": "0"}}
    assert of("job.networks", lint_pod(container(resources=none), annotations={})) == [("Pod training/p", "fail")]


def test_an_object_whose_pods_cannot_be_counted_is_looked_at() -> None:
    """Whatever its kind: it is read once more, and what is wrong is told."""
    broken = {
        "kind": "Trial",
        "metadata": {"name": "t"},
        "spec": {"replicas": "many", "template": {"spec": {"containers": [bare()]}}},
    }
    assert list_jobs([broken]) == (broken,)
    assert of("job.read", lint([broken])) == [("Trial t", "unknown")]


def test_pods_that_are_not_told_of_each_other_fail() -> None:
    made = objects()
    del made[0]["spec"]["pytorchReplicaSpecs"]["Master"]
    assert of("job.framework", check(made)) == [("PyTorchJob training/train", "fail")]


def test_variables_from_elsewhere_are_a_warning() -> None:
    assert finding(one(envFrom=[{"configMapRef": {"name": "nccl"}}]), "job.nccl_variables").status == "warn"


@pytest.mark.parametrize(("resources", "status"), [(container()["resources"], "fail"), (GPU_ONLY, "warn")])
def test_a_network_plugin_over_tcp_is_worse_beside_a_device(resources: dict[str, typing.Any], status: str) -> None:
    environment = [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "NCCL_NET", "value": "Socket"}]
    assert of("job.transport", lint_pod(container(env=environment, resources=resources))) == [
        ("Pod training/p NCCL_NET", status)
    ]


def test_pods_of_a_job_are_those_that_have_gpus() -> None:
    """A launcher beside one worker is not a second pod, and a container without GPUs beside the one that has them takes
    none away."""
    worker = {"spec": {"containers": [container(resources=GPU_ONLY), bare()], **SHM}}
    roles = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [bare()]}}},
        "Worker": {"replicas": 1, "template": worker},
    }
    made: dict[str, typing.Any] = {
        "kind": "MPIJob",
        "metadata": {"name": "m", "namespace": "training"},
        "spec": {"mpiReplicaSpecs": roles},
    }
    subject = "MPIJob training/m spec.mpiReplicaSpecs.Worker"
    assert of("job.networks", lint([made], (), WORLD)) == [(subject, "pass")]
    made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    assert of("job.networks", lint([made], (), WORLD)) == [(subject, "fail")]


def with_hcas(value: str) -> dict[str, typing.Any]:
    return container(env=[{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "NCCL_IB_HCA", "value": value}])


def test_hcas_are_looked_at_without_a_cluster_and_on_a_network_that_is_not_there() -> None:
    made = pod(containers=[with_hcas("mlx5_1")], **ON_SHARED)
    assert of("job.hcas", lint([made])) == [("Pod training/p NCCL_IB_HCA", "warn")]
    assert of("job.hcas", lint_pod(with_hcas("mlx5_1"), annotations={"k8s.v1.cni.cncf.io/networks": "absent"})) == [
        ("Pod training/p NCCL_IB_HCA", "warn")
    ]


@pytest.mark.parametrize(
    ("value", "status"),
    [("=mlx5_1", "pass"), ("=mlx5_0,mlx5_1", "pass"), ("mlx4,mlx5_1", "warn"), ("mlx5_1,mlx5_bond_", "warn")],
)
def test_names_of_hcas_that_each_node_has(value: str, status: str) -> None:
    devices = dict.fromkeys(("worker-1", "worker-2"), ("mlx4_0", "mlx5_0", "mlx5_1", "mlx5_bond_0"))
    found = lint([pod(containers=[with_hcas(value)], **ON_SHARED)], (), shared_world(devices=devices))
    assert of("job.hcas", found) == [("Pod training/p NCCL_IB_HCA", status)]


def test_a_device_whose_attachment_is_not_named() -> None:
    """The job is on another network and keeps the device."""
    found = [
        item
        for item in one(annotations=SHARED["annotations"], limits={"rdma/shared": "1"})
        if item.check == "job.devices"
    ]
    assert {(item.subject.rpartition(" ")[2], item.status, item.measured, item.expected) for item in found} == {
        (
            "openshift.io/mlx_roce",
            "fail",
            "1 device requested",
            "0 devices requested, one for each attachment",
        )
    }


def test_an_attachment_without_a_device_and_a_lock_is_refused_for_both() -> None:
    found = lint_pod(container(resources=GPU_ONLY, securityContext={}))
    assert of("job.devices", found) == [("Pod training/p", "fail")]
    assert of("job.memlock", found) == [("Pod training/p", "unknown")]
    # and so is a device without an attachment
    found = lint_pod(container(securityContext={}), annotations={})
    assert of("job.memlock", found) == [("Pod training/p", "unknown")]


@pytest.mark.parametrize(("size", "status"), [("8Gi", "pass"), ("8193Mi", "warn"), ("", "pass")])
def test_shared_memory_as_large_as_memory(size: str, status: str) -> None:
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", **({"sizeLimit": size} if size else {})}}
    assert of("job.shared_memory", lint_pod(container(), volumes=[volume])) == [("Pod training/p", status)]


def test_the_shared_memory_of_the_node_is_in_memory() -> None:
    assert of("job.shared_memory", lint_pod(container(volumeMounts=[]), hostIPC=True)) == [("Pod training/p", "pass")]
    for path, status in (("/dev/shm", "pass"), ("/dev/shm/", "pass"), ("/tmp", "fail")):
        volume = {"name": "shm", "hostPath": {"path": path}}
        assert of("job.shared_memory", lint_pod(container(), volumes=[volume])) == [("Pod training/p", status)]


def group_of(size: int, leader: bool, annotations: dict[str, str], replicas: int = 1) -> tuple[Finding, ...]:
    """Findings on a LeaderWorkerSet."""
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container()], **SHM}}
    of_group: dict[str, typing.Any] = {"size": size, "workerTemplate": template}
    if leader:
        of_group["leaderTemplate"] = copy.deepcopy(template)
    spec = {"replicas": replicas, "leaderWorkerTemplate": of_group}
    metadata = {"name": "serve", "namespace": "training"}
    return lint([{"kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec}], (), shared_world())


@pytest.mark.parametrize(
    ("size", "leader", "pods", "networks"),
    [(4, False, "4 pods", "fail"), (4, True, "4 pods", "fail"), (1, False, "1 pod", None), (2, True, "2 pods", "fail")],
)
def test_the_pods_of_a_group_count(size: int, leader: bool, pods: str, networks: typing.Optional[str]) -> None:
    without = [container(resources={"limits": {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1"}})]
    template = {"metadata": {"annotations": {}}, "spec": {"containers": without, **SHM}}
    of_group = {"size": size, "workerTemplate": template, **({"leaderTemplate": template} if leader else {})}
    job = {
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "serve", "namespace": "training"},
        "spec": {"leaderWorkerTemplate": of_group},
    }
    found = lint([job], (), shared_world())
    assert [item.measured for item in found if item.check == "job.read"] == [pods]
    assert {item.status for item in refused(found) if item.check == "job.networks"} == (
        {networks} if networks else set()
    )


def mpi(command: typing.Union[str, list[str]], *env: tuple[str, str]) -> list[tuple[str, str]]:
    """What is refused of an MPIJob with two workers, by the command of its launcher."""
    launcher = bare(
        "launcher",
        command=["sh", "-c", command] if isinstance(command, str) else command,
        env=[{"name": name, "value": value} for name, value in env],
    )
    worker = {"metadata": {"annotations": SHARED["annotations"]}, "spec": {"containers": [container(env=[])], **SHM}}
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
        "Worker": {"replicas": 2, "template": worker},
    }
    metadata = {"name": "nccl", "namespace": "training"}
    found = lint([{"kind": "MPIJob", "metadata": metadata, "spec": {"mpiReplicaSpecs": replicas}}], (), shared_world())
    judged = ("job.transport", "job.evidence", "job.hcas", "job.interfaces")
    return [(item.check, item.status) for item in refused(found) if item.check in judged]


@pytest.mark.parametrize(
    ("command", "env", "found"),
    [
        ("mpirun -np 16 -x NCCL_DEBUG=INFO ./all_reduce_perf", (), []),
        (["mpirun", "-np", "16", "-x", "NCCL_DEBUG=INFO", "./all_reduce_perf"], (), []),
        ("mpirun -np 16 ./all_reduce_perf", (), [("job.evidence", "warn")]),
        ("mpirun -x NCCL_DEBUG -x NCCL_IB_DISABLE=1 ./a", [("NCCL_DEBUG", "INFO")], [("job.transport", "fail")]),
        (["mpirun", "-x", "NCCL_DEBUG=INFO", "-x", "NCCL_NET=Socket", "./a"], (), [("job.transport", "fail")]),
        ("mpirun -x NCCL_DEBUG=INFO -x UCX_TLS=tcp ./a", (), [("job.transport", "fail")]),
        ("mpiexec -genv NCCL_DEBUG INFO -genv NCCL_IB_DISABLE 1 ./a", (), [("job.transport", "fail")]),
        ("mpirun -x NCCL_DEBUG=INFO -x NCCL_SOCKET_IFNAME=net7 ./a", (), [("job.interfaces", "fail")]),
        ("mpirun -x NCCL_DEBUG=INFO -x NCCL_IB_HCA=mlx5_1 ./a", (), [("job.hcas", "warn")]),
        # variables of the launcher alone
        ("mpirun -x NCCL_DEBUG=INFO ./a", [("NCCL_IB_DISABLE", "1")], []),
        ("NCCL_IB_DISABLE=1 wait-for-workers; mpirun -x NCCL_DEBUG=INFO ./a", (), []),
        ("tool -x NCCL_IB_DISABLE=1", (), [("job.evidence", "warn")]),
    ],
)
def test_what_mpirun_gives_to_the_ranks_counts(
    command: typing.Union[str, list[str]], env: typing.Sequence[tuple[str, str]], found: list[tuple[str, str]]
) -> None:
    assert mpi(command, *env) == found


def test_the_volumes_of_a_stateful_set_s_claims_are_volumes_of_its_pods() -> None:
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "data", "mountPath": "/data"}]
    template = {"metadata": {}, "spec": {"containers": [container(volumeMounts=mounts)], **SHM}}
    job = {
        "kind": "StatefulSet",
        "metadata": {"name": "serve", "namespace": "training"},
        "spec": {"replicas": 1, "template": template, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
    }
    assert {item.status for item in lint([job], (), shared_world()) if item.check == "job.volumes"} == {"pass"}
    job["spec"] = {**typing.cast(dict[str, typing.Any], job["spec"]), "volumeClaimTemplates": []}
    (found,) = (item for item in lint([job], (), shared_world()) if item.check == "job.volumes")
    assert (found.status, found.measured) == ("fail", "volume 'data' does not exist")


def test_all_groups_need_their_room() -> None:
    annotations = SHARED["annotations"]
    assert of("job.resources", group_of(8, True, annotations, replicas=2))[0][1] == "pass"
    (found,) = (item for item in refused(group_of(9, True, annotations, replicas=2)) if item.check == "job.resources")
    assert found.expected == "room for 18 pods"


def test_the_hosts_of_a_group_of_ray_count() -> None:
    template = {"metadata": {"annotations": {}}, "spec": {"containers": [container()], **SHM}}
    spec = {"workerGroupSpecs": [{"replicas": 2, "numOfHosts": 4, "template": template}]}
    job = {"kind": "RayCluster", "metadata": {"name": "ray", "namespace": "training"}, "spec": spec}
    assert [item.measured for item in lint([job], (), shared_world()) if item.check == "job.read"] == ["8 pods"]


def test_the_size_of_the_container_s_own_files_is_none_of_its_qos_class() -> None:
    amounts = {"cpu": "1", "memory": "8Gi", "nvidia.com/gpu": "1", "rdma/shared": "1", "ephemeral-storage": "9Gi"}
    less = {"limits": amounts, "requests": {**amounts, "ephemeral-storage": "1Gi"}}
    assert of("job.guaranteed", lint_pod(container(resources=less))) == [("Pod training/p", "pass")]
    less["requests"]["memory"] = "4Gi"
    (found,) = (item for item in lint_pod(container(resources=less)) if item.check == "job.guaranteed")
    assert (found.status, found.measured) == ("fail", "memory 4Gi / 8Gi (requests / limits)")


@pytest.mark.parametrize(
    ("spec", "more", "need", "constraint"),
    [
        ({"hostIPC": True}, {}, "hostIPC", "allowHostIPC"),
        ({"hostPID": True}, {}, "hostPID", "allowHostPID"),
        ({}, {"ports": [{"containerPort": 1}, {"hostPort": 29500}]}, "hostPort 29500", "allowHostPorts"),
    ],
)
def test_what_belongs_to_the_node_is_beyond_baseline(
    spec: dict[str, bool], more: dict[str, typing.Any], need: str, constraint: str
) -> None:
    made = pod(containers=[container(**{"securityContext": {"runAsUser": 0}, **more})], **{**ON_SHARED, **spec})
    found = {
        level: next(
            item for item in lint([made], (), shared_world(enforced={"training": level})) if item.check == check
        )
        for check in ("job.admission",)
        for level in ("baseline", "privileged")
    }
    assert found["baseline"].status == "fail" and need in found["baseline"].why
    assert found["privileged"].status == "pass" and constraint in found["privileged"].expected
    plain = pod(containers=[container(securityContext={"runAsUser": 0})], **ON_SHARED)
    assert of("job.admission", lint([plain], (), shared_world(enforced={"training": "baseline"}))) == [
        ("Pod training/p", "pass")
    ]


def test_a_container_without_shared_memory_fails() -> None:
    assert of("job.shared_memory", lint_pod(container(volumeMounts=[]))) == [("Pod training/p", "fail")]


ROLES = "PyTorchJob training/train spec.pytorchReplicaSpecs.Master, spec.pytorchReplicaSpecs.Worker"


def test_pods_of_the_same_amounts_are_told_of_together() -> None:
    assert of("job.resources", one()) == [(ROLES, "pass")]
    assert of("job.resources", one(dataclasses.replace(WORLD, nodes=(node("worker-1"),)))) == [(ROLES, "fail")]
    # a node that does not name the resource has none of it
    lacking = dataclasses.replace(node("worker-2"), allocatable={"nvidia.com/gpu": 8})
    assert of("job.resources", one(dataclasses.replace(WORLD, nodes=(node("worker-1"), lacking)))) == [(ROLES, "fail")]
    nowhere = tuple(dataclasses.replace(item, allocatable={"nvidia.com/gpu": 8}) for item in WORLD.nodes)
    assert of("job.resources", one(dataclasses.replace(WORLD, nodes=nowhere))) == [
        (f"{ROLES} openshift.io/mlx_roce", "fail")
    ]


@pytest.mark.parametrize(
    "more",
    [
        dataclasses.replace(node("worker-3"), ready=False),
        dataclasses.replace(node("worker-3"), unschedulable=True),
        dataclasses.replace(node("worker-3"), allocatable={}),
    ],
    ids=["not ready", "unschedulable", "no GPU"],
)
def test_room_for_all_is_on_nodes_that_can_take_pods(more: ClusterNode) -> None:
    """Two Workers take the GPUs of both nodes, and the Master asks for one more."""
    made = objects(nodes=3)
    for amounts in made[0]["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0][
        "resources"
    ].values():
        amounts["nvidia.com/gpu"] = "1"
    found = [
        item
        for item in check(made, dataclasses.replace(WORLD, nodes=(*WORLD.nodes, more)))
        if item.check == "job.resources" and item.status != "pass"
    ]
    assert [(item.subject, item.status, item.measured) for item in found] == [
        ("PyTorchJob training/train nvidia.com/gpu", "fail", "16 nvidia.com/gpu on the ready nodes")
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"), [(1, "Bound"), (2, "Bound, ReadWriteMany"), (3, "Bound, ReadWriteMany")]
)
def test_what_is_expected_of_a_claim(nodes: int, expected: str) -> None:
    """Many nodes need to write it only where there are many pods."""
    found = [item for item in check(objects(nodes=nodes)) if item.check == "job.claims"]
    assert [(item.status, item.expected, item.measured) for item in found] == [
        ("pass", expected, "Bound, ReadWriteMany")
    ]


@pytest.mark.parametrize(
    ("value", "left", "extra"),
    [("=mlx5_6", True, False), ("=mlx5_6,mlx5_7,mlx5_9", False, True), ("=mlx5_6,mlx5_9", True, True)],
)
def test_a_list_of_hcas_is_blamed_for_what_it_does(value: str, left: bool, extra: bool) -> None:
    world = dataclasses.replace(WORLD, pods=(PodDevices("train-worker-0", ("net1",), ("mlx5_6", "mlx5_7")),))
    why = finding(one(world, variables={"NCCL_IB_HCA": value}), "job.hcas").why
    assert ("the value leaves out" in why, "the pod does not have" in why) == (left, extra)


@pytest.mark.parametrize(
    ("value", "off"),
    [
        ("0x7fffffffffffffff", True),
        ("0x8000000000000000", False),
        ("0777777777777777777777", True),
        ("01000000000000000000000", False),
        ("-9223372036854775808", True),
        ("-9223372036854775809", False),
    ],
)
def test_numbers_that_a_64_bit_integer_holds(value: str, off: bool) -> None:
    """What is out of range leaves the default, which is RDMA."""
    environment = [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "NCCL_IB_DISABLE", "value": value}]
    subject, status = ("Pod training/p NCCL_IB_DISABLE", "fail") if off else ("Pod training/p", "pass")
    assert of("job.transport", lint_pod(container(env=environment))) == [(subject, status)]


NAMES = st.sampled_from(["mlx5_1", "mlx5_10", "net1", "eth0", "", "=", "^"])


@given(st.text(max_size=30) | st.lists(NAMES, max_size=4).map(",".join), st.lists(NAMES, max_size=4))
def test_a_choice_takes_or_leaves_each_name(value: str, names: list[str]) -> None:
    """Whatever the value: no name is both taken and of no use."""
    choice = Choice.parse(value)
    for pattern in choice.unmatched(names):
        assert not any(Choice((pattern,), False, choice.exact).takes(name) for name in names)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "spec",
                    "template",
                    "containers",
                    "name",
                    "image",
                    "env",
                    "metadata",
                    "resources",
                    "limits",
                    "replicas",
                    "annotations",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(VALUES, st.data())
def test_hostile_objects_become_findings(value: typing.Any, data: st.DataObject) -> None:
    """Any field of a job replaced by anything: findings, never a traceback, and never none."""
    kind = data.draw(st.sampled_from(KINDS))
    number, path = data.draw(st.sampled_from([(number, path) for of_kind, number, path in PLACES if of_kind == kind]))
    made, parent, key = reaches(MADE[kind], number, path)
    parent[key] = value
    assert lint([made[-1]], made, WORLD)


# claims of devices

PUBLIC = FIXTURES.parent / "public"


def claimed(**changes: typing.Any) -> list[dict[str, typing.Any]]:
    """A JobSet whose GPUs and NICs come by claims, as somebody published it, and the template of each."""
    made: list[dict[str, typing.Any]] = json.loads((PUBLIC / "dra-jobset.json").read_text(encoding="utf-8"))
    nics, job = made
    gpus = copy.deepcopy(nics)
    gpus["metadata"]["name"] = "all-gpu"
    gpus["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpu.nvidia.com"
    nics["spec"]["spec"]["devices"]["requests"][0]["exactly"].update(changes)
    return [job, nics, gpus]


def in_pod(made: typing.Sequence[dict[str, typing.Any]]) -> dict[str, typing.Any]:
    answer: dict[str, typing.Any] = made[0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return answer


def of_claims(
    made: typing.Sequence[dict[str, typing.Any]], world: typing.Optional[JobSurroundings] = None
) -> dict[str, tuple[str, str, str, str]]:
    """Status, measured, why and remedy by check; the worst of several."""
    answer: dict[str, tuple[str, str, str, str]] = {}
    for finding in lint(list_jobs(made), made, world):
        if finding.check not in answer or finding.status != "pass":
            answer[finding.check] = (finding.status, finding.measured, finding.why, finding.remedy)
    return answer


def test_gpus_and_nics_by_claims_are_devices_and_a_network() -> None:
    found = of_claims(claimed())
    assert found["job.networks"][:2] == ("pass", "network devices from claims: gpu, rdma")
    assert found["job.device_claims"][:2] == ("pass", "rdma: network, gpu: gpu")
    assert found["job.memlock"][:2] == ("pass", "IPC_LOCK") and found["job.devices"][0] == "pass"
    # pods of RDMA need it, however they get the device
    made = claimed()
    del in_pod(made)["containers"][0]["securityContext"]
    assert of_claims(made)["job.memlock"][0] == "unknown"
    made = claimed()
    in_pod(made)["containers"][0]["env"].append({"name": "NCCL_IB_DISABLE", "value": "1"})
    assert of_claims(made)["job.transport"][0] == "fail"


def test_devices_of_which_nobody_knows_what_they_are_leave_the_network_open() -> None:
    found = of_claims(claimed(deviceClassName="fast.example"))
    assert (
        found["job.networks"][0] == "unknown"
        and "job_lint does not know whether one of their claims provides a network device" in found["job.networks"][2]
    )
    assert "kubectl get deviceclasses" in found["job.networks"][3] and found["job.memlock"][1] == "IPC_LOCK"
    classes = (DeviceClass("fast.example", ("dra.net",)), DeviceClass("gpu.nvidia.com", ("gpu.nvidia.com",)))
    world = dataclasses.replace(WORLD, device_claims=(), device_classes=classes, device_slices=SLICES)
    assert of_claims(claimed(deviceClassName="fast.example"), world)["job.networks"][0] == "pass"
    made = claimed(deviceClassName="fast.example")
    del in_pod(made)["containers"][0]["securityContext"]
    status, measured, why, remedy = of_claims(made)["job.memlock"]
    assert (
        status == "unknown"
        and measured.endswith("has no IPC_LOCK")
        and "job_lint does not know whether one of the claims does" in why
        and "Add IPC_LOCK" in remedy
    )
    # GPUs alone are no network
    made = claimed(deviceClassName="gpu.nvidia.com")
    assert of_claims(made)["job.networks"][:2] == ("fail", "no annotation k8s.v1.cni.cncf.io/networks")


@pytest.mark.parametrize(
    ("request_name", "status"), [("", "pass"), ("nic", "pass"), ("nic/first", "pass"), ("gpu", "fail")]
)
def test_a_container_gets_of_a_claim_the_devices_of_the_request_that_it_names(request_name: str, status: str) -> None:
    made = claimed()
    requests = made[1]["spec"]["spec"]["devices"]["requests"]
    requests.append({**copy.deepcopy(made[2]["spec"]["spec"]["devices"]["requests"][0]), "name": "gpu"})
    taken = in_pod(made)["containers"][0]["resources"]["claims"][0]
    taken.update({"request": request_name} if request_name else {})
    found = of_claims(made)
    assert found["job.networks"][0] == status, found["job.networks"]
    assert found["job.device_claims"][:2] == ("pass", "rdma: network and gpu, gpu: gpu")


CLASSES = (DeviceClass("mrdma.google.com", ("dra.net",)), DeviceClass("gpu.nvidia.com", ("gpu.nvidia.com",)))
SLICES = (
    DeviceSlice("dra.net", "worker-1", 1, "worker-1", 2),
    DeviceSlice("gpu.nvidia.com", "worker-1", 1, "worker-1", 8),
)
THERE = dataclasses.replace(WORLD, device_claims=(), device_classes=CLASSES, device_slices=SLICES)


@pytest.mark.parametrize(
    ("values", "status", "measured"),
    [
        ((True, True), "pass", "rdma: network, gpu: gpu"),
        ((False, False), "fail", "4 devices without RDMA"),
        ((True, False), "warn", "2 of 4 devices without RDMA"),
        # what is not reported is unknown, as before DRANET has looked at a device
        ((False, None), "unknown", "RDMA not reported for 2 of 4 devices"),
        ((None, None), "unknown", "RDMA not reported for 4 of 4 devices"),
        ((True, None), "warn", "0 of 4 devices without RDMA, not reported for 2"),
        ((True, False, None), "warn", "2 of 6 devices without RDMA, not reported for 2"),
    ],
)
def test_network_devices_of_a_claim_have_rdma(
    values: tuple[typing.Optional[bool], ...], status: str, measured: str
) -> None:
    devices = tuple(SliceDevice({} if value is None else {"dra.net/rdma": value}) for value in values)
    world = dataclasses.replace(
        THERE,
        device_slices=tuple(
            DeviceSlice("dra.net", node, 1, node, len(devices), devices) for node in ("worker-1", "worker-2")
        )
        + tuple(DeviceSlice("gpu.nvidia.com", node, 1, node, 8) for node in ("worker-1", "worker-2")),
    )
    found = of_claims(claimed(), world)["job.device_claims"]
    assert found[0] == status and found[1] == measured
    assert status == "pass" or "rdma == true" in found[3]


@pytest.mark.parametrize(
    ("attachment", "status"),
    [
        (JobAttachment("training/tcp", ("macvlan",)), "fail"),
        (JobAttachment("training/tcp", ("sriov",), "nvidia.com/rdma"), "pass"),
        (JobAttachment("training/tcp", problem="spec.config is not valid JSON"), "pass"),
    ],
)
def test_claims_without_rdma_are_reported_unless_a_network_can_bring_devices(
    attachment: JobAttachment, status: str
) -> None:
    devices = (SliceDevice({"dra.net/rdma": False}),) * 2
    world = dataclasses.replace(
        THERE,
        attachments=(*THERE.attachments, attachment),
        device_slices=tuple(DeviceSlice("dra.net", node, 1, node, 2, devices) for node in ("worker-1", "worker-2"))
        + tuple(DeviceSlice("gpu.nvidia.com", node, 1, node, 8) for node in ("worker-1", "worker-2")),
    )
    made = claimed()
    template = made[0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"k8s.v1.cni.cncf.io/networks": "training/tcp"}
    assert of_claims(made, world)["job.device_claims"][0] == status


def without(made: list[dict[str, typing.Any]]) -> None:
    del made[1]


def shared(made: list[dict[str, typing.Any]]) -> None:
    in_pod(made)["resourceClaims"][0] = {"name": "rdma", "resourceClaimName": "one"}
    made[1] = {
        "kind": "ResourceClaim",
        "metadata": {"name": "one", "namespace": "training"},
        "spec": made[1]["spec"]["spec"],
    }


def misspelt(made: list[dict[str, typing.Any]]) -> None:
    in_pod(made)["containers"][0]["resources"]["claims"][0]["name"] = "rmda"


def of_another_request(made: list[dict[str, typing.Any]]) -> None:
    in_pod(made)["containers"][0]["resources"]["claims"][0]["request"] = "nics"


def of_three(made: list[dict[str, typing.Any]]) -> None:
    made[1]["spec"]["spec"]["devices"]["requests"][0]["exactly"] = {"deviceClassName": "mrdma.google.com", "count": 3}


def of_one_name(made: list[dict[str, typing.Any]]) -> None:
    expression = 'device.attributes["dra.net"].ifName == "eth9"'
    made[1]["spec"]["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": "mrdma.google.com",
        "selectors": [{"cel": {"expression": expression}}],
    }


def of_two_claims(made: list[dict[str, typing.Any]]) -> None:
    """Two NICs of each node, by one claim and again by another one."""
    way = {"deviceClassName": "mrdma.google.com", "count": 2}
    made[1]["spec"]["spec"]["devices"]["requests"][0]["exactly"] = way
    in_pod(made)["resourceClaims"].append({"name": "more", "resourceClaimTemplateName": "all-rdma"})
    in_pod(made)["containers"][0]["resources"]["claims"].append({"name": "more"})


#: two NICs on a node, by their names
NAMED = dataclasses.replace(
    THERE,
    device_slices=(
        DeviceSlice(
            "dra.net",
            "worker-1",
            1,
            "worker-1",
            2,
            (SliceDevice({"dra.net/ifName": "eth1"}), SliceDevice({"dra.net/ifName": "eth2"})),
        ),
        SLICES[1],
    ),
)


def untaken(made: list[dict[str, typing.Any]]) -> None:
    del in_pod(made)["containers"][0]["resources"]["claims"][0]


@pytest.mark.parametrize(
    ("change", "world", "status", "measured", "why", "remedy"),
    [
        (
            without,
            None,
            "unknown",
            "claim not read",
            "ResourceClaimTemplate all-rdma is in another file",
            "Put the object into the same file",
        ),
        (
            without,
            THERE,
            "fail",
            "ResourceClaimTemplate all-rdma does not exist",
            "the pods would stay Pending",
            (
                "Create ResourceClaimTemplate all-rdma, or correct its name in spec.resourceClaims of the pod. For a"
                " channel of NVLink, create a ComputeDomain, which creates the ResourceClaimTemplate."
            ),
        ),
        (
            without,
            dataclasses.replace(THERE, device_claims=None),
            "unknown",
            "claim not read",
            "does not allow the user to read",
            "give the user of the kubeconfig the rights",
        ),
        (
            lambda made: None,
            dataclasses.replace(THERE, device_classes=None),
            "unknown",
            "claim not read",
            "does not serve resource.k8s.io/v1",
            "api-resources",
        ),
        (
            lambda made: None,
            dataclasses.replace(THERE, device_classes=CLASSES[1:]),
            "fail",
            "DeviceClass mrdma.google.com does not exist",
            "No DeviceClass of this name exists",
            "driver",
        ),
        (
            lambda made: None,
            dataclasses.replace(THERE, device_classes=()),
            "fail",
            "DeviceClass mrdma.google.com does not exist",
            "No DeviceClass of this name exists",
            "driver",
        ),
        (
            shared,
            THERE,
            "warn",
            "2 pods with the ResourceClaim one",
            "These pods share the devices of one claim",
            "Use a ResourceClaimTemplate",
        ),
        (
            misspelt,
            THERE,
            "fail",
            "not among resourceClaims",
            "the API server refuses each pod",
            "Add the claim to spec.resourceClaims",
        ),
        (
            of_three,
            THERE,
            "fail",
            "3 devices of dra.net requested, at most 2 on a node",
            "no node has as many devices as request nic needs",
            "request fewer devices",
        ),
        (
            lambda made: None,
            dataclasses.replace(THERE, device_slices=SLICES[1:]),
            "fail",
            "1 device of dra.net requested, at most 0 on a node",
            "no node has as many devices as request nic needs",
            "the driver's pod runs",
        ),
        (
            lambda made: None,
            dataclasses.replace(THERE, device_slices=None),
            "unknown",
            "claim not read",
            "does not allow the user to read",
            "give the user of the kubeconfig the rights",
        ),
        (
            of_another_request,
            THERE,
            "fail",
            "request nics does not exist",
            "the container gets none of the devices of the claim",
            "or remove it",
        ),
        (
            of_another_request,
            None,
            "fail",
            "request nics does not exist",
            "the container gets none of the devices of the claim",
            "or remove it",
        ),
        (
            of_one_name,
            NAMED,
            "fail",
            "at most 0 of 1 requested devices on a node",
            'device.attributes["dra.net"].ifName == "eth9"',
            "Compare the selectors with the attributes",
        ),
        (
            of_two_claims,
            NAMED,
            "fail",
            "at most 2 of 4 devices on a node",
            "Requests rdma/nic, more/nic of one pod need the same devices",
            "at most as many devices in each pod as a node has",
        ),
        # nothing but the number of its devices is known
        (
            of_one_name,
            THERE,
            "unknown",
            "selector not evaluated",
            "job_lint cannot evaluate a selector",
            "kubectl get resourceslices",
        ),
        (
            untaken,
            THERE,
            "warn",
            "used by no container",
            "Other pods cannot use these devices",
            "Name the claim in resources.claims",
        ),
    ],
)
def test_a_claim_that_cannot_be_met_is_named(
    change: typing.Any, world: typing.Any, status: str, measured: str, why: str, remedy: str
) -> None:
    made = claimed()
    change(made)
    named = [item for item in lint(list_jobs(made), made, world) if item.check == "job.device_claims"]
    found, *_others = [item for item in named if (item.status, item.measured) == (status, measured)]
    assert (
        why in found.why
        and remedy in found.remedy
        and found.subject.startswith("JobSet training/nccl spec.replicatedJobs[0]")
    )


@pytest.mark.parametrize(
    ("nodes", "numbers", "status", "words"),
    [(0, 2, "pass", ""), (2, 2, "pass", ""), (2, 1, "fail", "waits for 2 nodes (numNodes)"), (0, 0, "fail", "no node")],
)
def test_channel_of_a_compute_domain_beside_the_job(nodes: int, numbers: int, status: str, words: str) -> None:
    """Its template is made by the driver, and is in no file."""
    made = claimed()
    pod = in_pod(made)
    pod["resourceClaims"].append({"name": "channel", "resourceClaimTemplateName": "nvl-channel"})
    pod["containers"][0]["resources"]["claims"].append({"name": "channel"})
    made.append(
        {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomain",
            "metadata": {"name": "nvl", "namespace": "training"},
            "spec": {"numNodes": nodes, "channel": {"resourceClaimTemplate": {"name": "nvl-channel"}}},
        }
    )
    driver, name = "compute-domain.nvidia.com", "compute-domain-default-channel.nvidia.com"
    channel = SliceDevice({f"{driver}/type": "channel", f"{driver}/id": 0})
    selector = f"device.driver == '{driver}' && device.attributes['{driver}'].type == 'channel'"
    world = dataclasses.replace(
        THERE,
        device_classes=(*CLASSES, DeviceClass(name, (driver,), "", (selector,))),
        device_slices=(
            DeviceSlice("dra.net", "worker-1", 1, "worker-1", 2, (SliceDevice({"dra.net/rdma": True}),) * 2),
            SLICES[1],
            *(DeviceSlice(driver, f"w{number}", 1, f"w{number}", 1, (channel,)) for number in range(numbers)),
        ),
    )
    found = [item for item in lint(list_jobs(made), made, world) if item.check == "job.device_claims"]
    assert {item.status for item in found} == {status} and any(words in item.why for item in found)


def test_a_resource_that_a_class_serves_is_absent_on_no_node() -> None:
    made = objects()
    text = json.dumps(made).replace("openshift.io/mlx_compute", "example.com/nic")
    world = dataclasses.replace(WORLD, device_classes=(DeviceClass("nics", ("dra.net",), "example.com/nic"),))
    found = {item.subject: item for item in check(json.loads(text), world) if item.check == "job.resources"}
    assert {item.status for item in found.values()} == {"pass"}, found
    assert "fail" in {item.status for item in check(json.loads(text)) if item.check == "job.resources"}


def test_interfaces_that_a_claim_may_bring_are_a_question_and_no_fault() -> None:
    made = claimed()
    in_pod(made)["containers"][0]["env"].append({"name": "NCCL_SOCKET_IFNAME", "value": "rdma0"})
    found = of_claims(made)["job.interfaces"]
    assert found[0] == "warn" and "A device claim can provide it" in found[2] and "ip link" in found[3]


def test_an_object_beside_the_job_that_cannot_be_read_is_named() -> None:
    made = claimed(deviceClassName="A B")
    (found,) = [item for item in lint(list_jobs(made), made) if item.check == "job.read" and item.status != "pass"]
    assert (found.status, found.subject) == ("unknown", "claims") and "ResourceClaimTemplate all-rdma" in found.why
