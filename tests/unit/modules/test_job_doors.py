# SPDX-License-Identifier: GPL-3.0-or-later

"""Doors to jobs: job_lint against an API server and without one, nic_map_lint, and the filters that write jobs and
maps."""

from __future__ import annotations

import builtins
import importlib
import json
import pathlib
import typing

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.filter.jobs import FilterModule
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import JobObjects
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import jobs as observe_jobs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import read_documents
from ansible_collections.linerate.rdma.tests.unit.check.job_world import COMPUTE, JOB, ROCE, definition, objects
from ansible_collections.linerate.rdma.tests.unit.check.test_job_stack import CEPH, CLUSTER, DEPLOYMENTS, LOCAL

FILTERS = FilterModule().filters()
MODULES = "ansible_collections.linerate.rdma.plugins.modules"
SOURCE = pathlib.Path(__file__).parent.parent / "fixtures/jobs/roce-patched.yaml"


#: row S1.10: the source's own mistake
TYPO = "kind: Pod\nmetadata: {name: p}\nspec: {container: [{name: c, image: i}]}\n"


class Api:
    """Kinds with their objects; what is not there is answered as a server does it."""

    def __init__(self, **kinds: typing.Union[builtins.list[dict[str, typing.Any]], ApiError]) -> None:
        self.kinds = kinds

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        *,
        only: typing.Callable[[typing.Any], bool] = lambda _item: True,
    ) -> typing.Iterator[typing.Any]:
        found = self.kinds.get(
            kind, ApiError(404, "NotFound", "the server could not find the requested resource", kind)
        )
        if isinstance(found, Exception):
            raise found
        mine = (item for item in found if not namespace or item["metadata"].get("namespace") == namespace)
        yield from ({"kind": kind, **item} for item in mine if only({"kind": kind, **item}))

    def list(
        self, kind: str, namespace: str = "", selector: str = "", *, only: typing.Callable[[typing.Any], bool]
    ) -> Listing:
        return Listing(tuple(item for item in self.pages(kind, namespace, selector) if only(item)), "1")

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        for item in self.pages(kind, namespace):
            if item["metadata"]["name"] == name:
                found: dict[str, typing.Any] = item
                return found
        raise ApiError(404, "NotFound", f"{kind} {name} not found", kind)


def node(name: str) -> dict[str, typing.Any]:
    allocatable = {"cpu": "128", "nvidia.com/gpu": "8", "openshift.io/mlx_compute": "32"}
    return {
        "metadata": {"name": name},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def running(name: str, device: str, phase: str = "Running") -> dict[str, typing.Any]:
    status = [{"name": "ovn", "default": True, "interface": "eth0"}]
    status += [
        {
            "name": "training/sriov-ib-compute",
            "interface": f"net{n}",
            "device-info": {"type": "pci", "pci": {"rdma-device": f"{device}{n}"}},
        }
        for n in (1, 2, 3, 4)
    ]
    annotations = {
        "k8s.v1.cni.cncf.io/network-status": json.dumps(status),
        "k8s.v1.cni.cncf.io/networks": "training/sriov-ib-compute",
    }
    labels = {"training.kubeflow.org/job-name": "train"}
    return {
        "metadata": {"name": name, "namespace": "training", "labels": labels, "annotations": annotations},
        "spec": {},
        "status": {"phase": phase},
    }


def launcher() -> dict[str, typing.Any]:
    """A pod of the job that is on the pod network only."""
    return {
        "metadata": {
            "name": "train-launcher",
            "namespace": "training",
            "labels": {"training.kubeflow.org/job-name": "train"},
        },
        "status": {"phase": "Running"},
    }


def kinds(**more: typing.Union[list[dict[str, typing.Any]], ApiError]) -> dict[str, typing.Any]:
    config = {"metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"}}
    config["data"] = {"controller_manager_config.yaml": "integrations: {frameworks: [kubeflow.org/pytorchjob]}"}
    claim = {
        "metadata": {"name": "models", "namespace": "training"},
        "spec": {"accessModes": ["ReadWriteMany"]},
        "status": {"phase": "Bound"},
    }
    runtime, train = objects(kind="TrainJob")
    return {
        "Node": [node("worker-1"), node("worker-2")],
        "NetworkAttachmentDefinition": [definition("sriov-ib-compute", "ib-sriov", "openshift.io/mlx_compute")],
        "PersistentVolumeClaim": [claim],
        "Pod": [running("train-master-0", "mlx5_1"), running("train-old", "mlx5_9", "Succeeded"), launcher()],
        "PyTorchJob": objects(queue="gpu"),
        "TrainJob": [train],
        "TrainingRuntime": [runtime],
        "Deployment": list(DEPLOYMENTS),
        "ClusterPolicy": [{"metadata": {"name": "cluster-policy"}, "status": {"state": "ready"}}],
        "LocalQueue": [LOCAL],
        "ClusterQueue": [CLUSTER],
        "StorageClass": [CEPH],
        "Namespace": [{"metadata": {"name": "training", "labels": {}}}],
        "ConfigMap": [
            config,
            {
                "metadata": {"name": "map", "namespace": "training"},
                "data": {"nic-map": "worker-1:ens13:net1:10.249.65.2\n"},
            },
        ],
        **more,
    }


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> typing.Callable[..., typing.Any]:
    def call(name: str, arguments: dict[str, typing.Any], api: typing.Optional[Api] = None) -> dict[str, typing.Any]:
        module = importlib.import_module(f"{MODULES}.{name}")
        if api is not None:
            monkeypatch.setattr(module, "connect", lambda _module: api)
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            module.main()
        result: dict[str, typing.Any] = json.loads(capsys.readouterr().out)
        assert "exception" not in result
        assert (ended.value.code == 1) == result.get("failed", False)
        return result

    return call


@pytest.mark.parametrize("kind", ["PyTorchJob", "TrainJob"])
def test_a_job_in_the_cluster_passes(run: typing.Callable[..., typing.Any], kind: str) -> None:
    result = run("job_lint", {"kind": kind, "name": "train", "namespace": "training"}, Api(**kinds()))
    assert result["gate"] == "open", result["lines"]
    assert result["changed"] is False


def test_a_job_whose_pods_do_not_tolerate_the_taint_of_the_nodes_is_refused(
    run: typing.Callable[..., typing.Any],
) -> None:
    taints = [{"key": "team", "effect": "NoSchedule"}, {"key": "slow", "effect": "PreferNoSchedule"}]
    nodes = [{**node(name), "spec": {"taints": taints}} for name in ("worker-1", "worker-2")]
    result = run("job_lint", {"objects": objects(kind="TrainJob")}, Api(**kinds(Node=nodes)))
    assert "no toleration for the taint team:NoSchedule (2 nodes)" in result["msg"]
    tolerant = objects(kind="TrainJob", tolerations=[{"key": "team", "operator": "Exists"}])
    assert run("job_lint", {"objects": tolerant}, Api(**kinds(Node=nodes)))["gate"] == "open"


def test_the_flavor_of_the_queue_opens_the_tainted_nodes(run: typing.Callable[..., typing.Any]) -> None:
    nodes = [
        {**node(name), "spec": {"taints": [{"key": "team", "effect": "NoSchedule"}]}}
        for name in ("worker-1", "worker-2")
    ]
    flavor = {"metadata": {"name": "h100"}, "spec": {"tolerations": [{"key": "team", "operator": "Exists"}]}}
    plain = {"metadata": {"name": "h100"}}
    job = {"objects": objects(kind="PyTorchJob", queue="gpu")}
    assert run("job_lint", job, Api(**kinds(Node=nodes, ResourceFlavor=[flavor])))["gate"] == "open"
    refused = run("job_lint", job, Api(**kinds(Node=nodes, ResourceFlavor=[plain])))
    assert "no toleration for the taint team:NoSchedule (2 nodes)" in refused["msg"]
    # not read: it may add one
    unread = ApiError(403, "Forbidden", "no right", "x")
    result = run("job_lint", job, Api(**kinds(Node=nodes, ResourceFlavor=unread)))
    assert result["gate"] == "open" and "If the ResourceFlavor of the queue adds" in str(result)


def test_the_resources_that_kueue_excludes_need_no_quota(run: typing.Callable[..., typing.Any]) -> None:
    cluster = json.loads(json.dumps(CLUSTER))
    del cluster["spec"]["resourceGroups"][0]["flavors"][0]["resources"][3]
    text = "integrations: {frameworks: [kubeflow.org/pytorchjob]}\nresources: {excludeResourcePrefixes: [openshift.io]}"
    config = {
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": text},
    }
    job = {"kind": "PyTorchJob", "name": "train", "namespace": "training"}
    refused = run("job_lint", job, Api(**kinds(ClusterQueue=[cluster])))
    assert "no quota for openshift.io/mlx_compute" in refused["msg"]
    assert run("job_lint", job, Api(**kinds(ClusterQueue=[cluster], ConfigMap=[config])))["gate"] == "open"


def test_what_the_pods_of_a_running_job_got_counts(run: typing.Callable[..., typing.Any]) -> None:
    wrong = objects(queue="gpu", environment={"NCCL_IB_HCA": "=mlx5_91"})
    result = run(
        "job_lint", {"kind": "PyTorchJob", "name": "train", "namespace": "training"}, Api(**kinds(PyTorchJob=wrong))
    )
    assert "pod train-master-0" in result["msg"]
    assert "pod train-old" not in result["msg"]
    assert "the value leaves out mlx5_11, mlx5_12, mlx5_13, mlx5_14; the pod does not have mlx5_91." in result["msg"]


def test_the_pods_of_a_running_stateful_set_count(run: typing.Callable[..., typing.Any]) -> None:
    """The StatefulSet controller sets no label with the name of the StatefulSet."""
    (made, *_others) = objects(environment={"NCCL_IB_HCA": "=mlx5_91"})
    template = made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    stateful = {
        "kind": "StatefulSet",
        "metadata": {"name": "serve", "namespace": "training"},
        "spec": {"replicas": 2, "template": template},
    }
    mine, others = running("serve-0", "mlx5_1"), running("other-0", "mlx5_1")
    for pod, owner in ((mine, "serve"), (others, "other")):
        pod["metadata"]["labels"] = {"app": "any"}
        pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": owner, "controller": True}]
    result = run(
        "job_lint",
        {"kind": "StatefulSet", "name": "serve", "namespace": "training"},
        Api(**kinds(StatefulSet=[stateful], Pod=[mine, others])),
    )
    assert "pod serve-0" in result["msg"] and "pod other-0" not in result["msg"]
    assert "the pod does not have mlx5_91" in result["msg"]


def test_rendered_objects_before_they_are_submitted(run: typing.Callable[..., typing.Any]) -> None:
    result = run("job_lint", {"objects": objects(kind="TrainJob")}, Api(**kinds()))
    assert result["gate"] == "open", result["lines"]


def test_a_train_job_whose_runtime_is_in_the_cluster(run: typing.Callable[..., typing.Any]) -> None:
    assert run("job_lint", {"objects": objects(kind="TrainJob")[1:]}, Api(**kinds()))["gate"] == "open"
    gone = run("job_lint", {"objects": objects(kind="TrainJob")[1:]}, Api(**kinds(TrainingRuntime=[])))
    assert "its TrainingRuntime train, which contains its pod template, does not exist" in gone["msg"]


def test_kinds_that_may_not_be_read_close_the_gate(run: typing.Callable[..., typing.Any]) -> None:
    forbidden = ApiError(403, "Forbidden", "nodes is forbidden", "GET /api/v1/nodes")
    result = run("job_lint", {"objects": objects()}, Api(**kinds(Node=forbidden, Deployment=forbidden)))
    assert {("job.read", "unknown"), ("stack.read", "unknown")} <= {
        (item["finding"]["check"], item["finding"]["status"]) for item in result["findings"]
    }


def test_claims_of_devices_that_may_not_be_read_concern_jobs_with_claims_alone(
    run: typing.Callable[..., typing.Any],
) -> None:
    forbidden = ApiError(403, "Forbidden", "resourceclaims is forbidden", "GET /apis/resource.k8s.io/v1/resourceclaims")
    result = run(
        "job_lint",
        {"objects": objects(kind="TrainJob")},
        Api(**kinds(ResourceClaim=forbidden, DeviceClass=forbidden, ResourceSlice=forbidden)),
    )
    assert result["gate"] == "open", result["lines"]


def test_a_file_without_a_cluster(run: typing.Callable[..., typing.Any], tmp_path: pathlib.Path) -> None:
    result = run("job_lint", {"path": str(SOURCE), "offline": True})
    assert result["gate"] == "closed"
    assert result["msg"].startswith("job: 25 pass, 2 fail, 1 warn - not passed"), result["msg"]
    assert "did you mean 'NCCL_IB_HCA'?" in result["msg"]
    right = tmp_path / "job.yaml"
    right.write_text(SOURCE.read_text().replace("NCCL_IB_HBA, value: mlx5_1", "NCCL_IB_HCA, value: =mlx5_1"))
    assert run("job_lint", {"path": str(right), "offline": True})["gate"] == "open"


def test_a_waiver_opens_the_gate(run: typing.Callable[..., typing.Any]) -> None:
    waivers = [{"check": "job.nccl_variables", "reason": "the image patches its NCCL"}]
    assert run("job_lint", {"path": str(SOURCE), "offline": True, "waivers": waivers})["gate"] == "open"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not valid YAML"),
        ("- 1", "not a Kubernetes object"),
        ("", "no job"),
        ("kind: ConfigMap", "no job"),
        ("kind: Job", "metadata.name is missing"),
        (TYPO, "Pod p: it contains no pod template, so it is not a job"),
    ],
)
def test_files_that_hold_no_job(
    run: typing.Callable[..., typing.Any], tmp_path: pathlib.Path, text: str, said: str
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert said in run("job_lint", {"path": str(path), "offline": True})["msg"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "/nowhere/job.yaml", "offline": True}, "No such file"),
        ({"kind": "Job", "name": "x", "offline": True}, "cannot be read offline"),
        ({"kind": "Job", "name": "x"}, "Job x not found"),
        ({"path": "x", "name": "x", "kind": "Job"}, "mutually exclusive"),
        ({}, "one of the following is required"),
        ({"path": str(SOURCE), "offline": True, "waivers": [{"check": "job.read"}]}, "rdma_waivers[0].reason: missing"),
    ],
)
def test_arguments_that_mean_nothing(
    run: typing.Callable[..., typing.Any], arguments: dict[str, typing.Any], said: str
) -> None:
    assert said in run("job_lint", arguments, Api(**kinds(Job=[])))["msg"]


def test_documents_and_lists() -> None:
    text = "---\nkind: A\n---\n---\nkind: BList\nitems: [{kind: B}, {kind: C}]\n"
    assert [item["kind"] for item in read_documents(text)] == ["A", "B", "C"]


def test_a_cluster_without_kueue_and_nvidia() -> None:
    found = observe_jobs.observe_stack(typing.cast(Cluster, Api(Deployment=[])), ["training"])
    assert (found.errors, found.frameworks, found.controllers, found.namespaces) == ((), None, (), {})


def test_a_server_that_does_not_answer_is_an_error() -> None:
    gone = ApiError(0, "Unreachable", "no answer", "GET")
    with pytest.raises(ApiError):
        observe_jobs.observe_stack(typing.cast(Cluster, Api(Deployment=gone)), [])
    with pytest.raises(ApiError):
        observe_jobs.observe(typing.cast(Cluster, Api(Node=gone)), [], [], {}, JobObjects())


def hcas(*names: str) -> dict[str, typing.Any]:
    functions = [
        Hca(name, netdevs=(Netdev(name, "aa"),), pci=PciFunction(f"0000:0{n}:00.0", "15b3", "1021", "0200"))
        for n, name in enumerate(names, 1)
    ]
    data: dict[str, typing.Any] = to_data(ObservedHcas(NodeHcas(tuple(functions))))
    return data


FABRIC = {**ROCE, "ipam": {"type": "whereabouts", "range": "10.249.65.0/24", "exclude": ["10.249.65.0/28"]}}


def test_a_map_is_rendered_and_judged(run: typing.Callable[..., typing.Any]) -> None:
    made = FILTERS["render_nic_map"]([FABRIC], "map", "roce", {"worker-1": hcas("ens13"), "worker-2": hcas("ens13")})
    assert made["object"]["data"]["nic-map"] == "worker-1:ens13:net1:10.249.65.1\nworker-2:ens13:net1:10.249.65.2\n"
    arguments = {"hcas": {"worker-1": hcas("ens13"), "worker-2": hcas("ens13")}, "fabrics": [FABRIC], "fabric": "roce"}
    assert run("nic_map_lint", {"text": made["object"]["data"]["nic-map"], **arguments})["gate"] == "open"
    live = run("nic_map_lint", {"name": "map", "namespace": "training", **arguments}, Api(**kinds()))
    assert "[fail] nic_map.complete on map worker-2 ens13" in live["msg"]
    kept = FILTERS["render_nic_map"](
        [FABRIC],
        "map",
        "roce",
        {"worker-0": hcas("ens13"), "worker-2": hcas("ens13")},
        None,
        made["object"]["data"]["nic-map"],
    )
    assert kept["object"]["data"]["nic-map"] == "worker-0:ens13:net1:10.249.65.3\nworker-2:ens13:net1:10.249.65.2\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fabric": "rocce"}, "'rocce' is not one of roce"),
        ({"fabrics": [{}]}, "rdma_fabrics[0].name: missing"),
        ({"hcas": {"worker-1": {"value": None, "error": "unreachable"}}}, "unreachable"),
        ({"hcas": {"worker-1": []}}, "hcas.worker-1"),
        ({"text": ""}, "no line"),
    ],
)
def test_maps_that_can_t_be_judged(
    run: typing.Callable[..., typing.Any], change: dict[str, typing.Any], said: str
) -> None:
    arguments = {
        "text": "worker-1:ens13:net1:10.249.65.2",
        "hcas": {"worker-1": hcas("ens13")},
        "fabrics": [FABRIC],
        "fabric": "roce",
        **change,
    }
    assert said in run("nic_map_lint", arguments)["msg"]


def test_the_filter_that_writes_jobs() -> None:
    made = FILTERS["render_job"]({**JOB, "kind": "TrainJob"}, [COMPUTE, ROCE], {})
    assert [(item["fabric"], item["object"]["kind"]) for item in made] == [
        ("compute", "TrainingRuntime"),
        ("compute", "TrainJob"),
    ]
    assert yaml.safe_load(yaml.safe_dump(made)) == made


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({**JOB, "gpu_per_node": 8}, r"render_job: rdma_job\.gpu_per_node: unknown key.*did you mean 'gpus_per_node'"),
        ({**JOB, "fabric": "computer"}, "no fabric has the name 'computer'"),
        (None, "rdma_job: nothing; expected a mapping"),
    ],
)
def test_a_wrong_wish_is_refused_with_its_path(wanted: typing.Optional[dict[str, typing.Any]], said: str) -> None:
    with pytest.raises(AnsibleFilterError, match=said):
        FILTERS["render_job"](wanted, [COMPUTE], {})


def test_a_map_without_addresses_or_fabric_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match=r"Set them in ipam\.exclude, such as a network of at least"):
        FILTERS["render_nic_map"](
            [{**FABRIC, "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}}],
            "map",
            "roce",
            {"worker-1": hcas("ens13")},
        )
    with pytest.raises(AnsibleFilterError, match="a NIC map of roce would be incomplete: worker-2: unreachable"):
        FILTERS["render_nic_map"](
            [FABRIC], "map", "roce", {"worker-1": hcas("ens13"), "worker-2": {"value": None, "error": "unreachable"}}
        )
    with pytest.raises(AnsibleFilterError, match="no fabric has the name 'x'"):
        FILTERS["render_nic_map"]([FABRIC], "map", "x", {})


def test_the_findings_of_a_job_that_failed_print(run: typing.Callable[..., typing.Any], tmp_path: pathlib.Path) -> None:
    """ansible-core shows the whole result: a value of the job moves no cursor, and turns no line around."""
    words = "\x9b2J\x9b32mlinerate.rdma: GREEN\u202e\x7f"
    variable = {"name": "NCCL_SOCKET_IFNAME", "value": words}
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}, "env": [variable]}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"containers": [container]}}
    (tmp_path / "job.yml").write_text(yaml.safe_dump(pod), encoding="utf-8")
    answer = run("job_lint", {"path": str(tmp_path / "job.yml"), "offline": True})
    assert answer["failed"] is True
    told = json.dumps([answer["findings"], answer["lines"], answer["msg"]], ensure_ascii=False)
    assert told.isprintable() and json.dumps(r"\x9b2J\x9b32mlinerate.rdma: GREEN\u202e\x7f").strip('"') in told
