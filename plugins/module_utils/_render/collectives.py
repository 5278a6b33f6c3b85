# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of nccl-tests over a fabric: what its ranks are started with, and the objects that they run in.

One interface for two launchers. Both run the same words (``ranks_command``) with the same environment; they differ in who starts the ranks on the nodes:

- pods: a pod for each node, which stays for all runs. A fabric that is being accepted has no Kubeflow yet, and hundreds of groups would each wait for pods to
  be scheduled and started. Who runs them owns them, as stage bandwidth owns its pods.
- MPIJob (kubeflow.org/v2beta1): for clusters where GPUs are given out by a queue alone. Its pods come and go with each run, and its image needs sshd.

A TrainJob would be a third: it starts the same mpirun by a runtime of its own, needs one more operator, and adds nothing to the proof.
[src kubeflow/mpi-operator v0.6 pkg/apis/kubeflow/v2beta1; NVIDIA/nccl-tests v2.19.6 src/common.cu]
"""

from __future__ import annotations

import typing

from .._model.collectives import CollectiveRun, Collectives
from .._model.intent import ClusterIntent, Fabric
from .._model.mirror import on_mirror
from .._model.operand import operand
from .._model.profiles import attachment_name, is_infiniband, resource_of, traits
from . import job_start
from .names import MANAGED_BY, Object, RenderError, labels, object_name

Command = typing.Tuple[str, ...]

CONTAINER = "collectives"
RUN_NAME_LABEL = "linerate.rdma/collective"
#: folder of NCCL's logs in each pod: one file for each process, since lines of several in one stream tear each other
LOG_FOLDER = "/tmp/nccl"
#: what mpirun starts in the place of ssh, with a host and the words to run there: pods have no sshd and no keys, and whoever holds a shell in each of them
#: puts it there and hands the words over. An MPIJob brings its own
AGENT = f"{LOG_FOLDER}/agent"
#: smallest message of a run, in bytes
_LEAST_BYTES = 1 << 30
_MPI = "kubeflow.org/v2beta1"


class Launch(typing.NamedTuple):
    """How a run is started.

    :ivar objects: to apply
    :ivar command: to run in the pod of the first node once all of them are ready; None where an object's own controller starts it
    """

    objects: typing.Tuple[Object, ...]
    command: typing.Optional[Command]


def render_run(run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, owner: str = "") -> Launch:
    """Return how a run is started.

    :param owner: run of the collection that owns the pods
    :raises RenderError: a run that can't be meant
    """
    _refuse(run, wanted)
    if wanted.launcher == "pods":
        pods = tuple(render_pod(node, wanted, fabric, cluster, owner) for node in run.nodes)
        return Launch(pods, mpirun(run, wanted, fabric, cluster, tuple(pod_name(fabric, node) for node in run.nodes)))
    return Launch((_mpi_job(run, wanted, fabric, cluster),), None)


def _refuse(run: CollectiveRun, wanted: Collectives) -> None:
    for wrong, what in (
        (not run.nodes or len(set(run.nodes)) != len(run.nodes), "its nodes are none, or one of them is there twice"),
        (run.gpu is not None and not 0 <= run.gpu < wanted.gpus_per_node, f"GPU {run.gpu} is none of the {wanted.gpus_per_node} of a node"),
        (run.by_rail and (run.gpu is not None or len(run.nodes) < 2), "rail by rail takes all GPUs of two nodes at least"),
        (run.gpu is not None and len(run.nodes) < 2, "one GPU of one node sends nothing"),
    ):
        if wrong:
            raise RenderError(f"collective {run.name}: {what}")


def environment(run: CollectiveRun, wanted: Collectives) -> typing.Dict[str, str]:
    """Return the variables of the ranks.

    A ring connects each channel of each rank, so that the log shows them, and its bound is that of the rails for any number of nodes. NVLS connects no ring.
    """
    found = {
        "NCCL_DEBUG": "INFO",
        # ENV shows what is set, NET why GPUDirect RDMA is off, TUNING the algorithm
        "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,TUNING",
        "NCCL_DEBUG_FILE": f"{LOG_FOLDER}/{object_name(run.name)}.%h.%p",
        "NCCL_ALGO": "Ring",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_SOCKET_IFNAME": "=eth0",
    }
    if len(run.nodes) > 1:
        # or NVLink between nodes hides the network
        found["NCCL_MNNVL_ENABLE"] = "0"
    if run.by_rail:
        found["NCCL_TESTS_SPLIT"] = f"MOD {wanted.gpus_per_node}"
    if run.gpu is not None:
        found["CUDA_VISIBLE_DEVICES"] = str(run.gpu)
    return found


def ranks_command(run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent) -> Command:
    """Return what each rank runs: the test, with the HCAs that its pod got.

    With -a 3 the time is that of the slowest rank: without it a slow group of NCCL_TESTS_SPLIT does not show. -c 1 counts wrong values.
    """
    test = (
        *(
            operand(f"{wanted.program_folder.rstrip('/')}/{run.test}_perf", "program of the test"),
            "-b",
            str(_LEAST_BYTES),
            "-e",
            str(wanted.most_bytes),
            "-f",
            "2",
        ),
        *("-g", "1", "-a", "3", "-c", "1", "-n", "20", "-w", "5", "-T", str(wanted.seconds)),
    )
    if len(run.nodes) < 2:
        return test
    return job_start.start(resource_of(fabric, cluster) or attachment_name(fabric), not is_infiniband(fabric), test)


def mpirun(run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, hosts: typing.Sequence[str] = ()) -> Command:
    """Return the words that start all ranks: those of a node follow each other, so that rank modulo GPUs is the number of the GPU.

    :param hosts: of the nodes, in their order; none where a file of hosts is there (MPIJob)
    """
    each = wanted.gpus_per_node if run.gpu is None else 1
    places: Command = ()
    if hosts:
        named = ",".join(f"{operand(host, 'host of a rank')}:{each}" for host in hosts)
        places = ("--host", named, "--mca", "plm_rsh_agent", AGENT)
    variables = [word for name, value in environment(run, wanted).items() for word in ("-x", f"{name}={value}")]
    return (
        *("mpirun", "--allow-run-as-root", "-np", str(each * len(run.nodes)), *places, "--map-by", f"ppr:{each}:node", "--bind-to", "none"),
        # MPI only counts the ranks here: over TCP, and on the pods' own interface
        *("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"),
        *(*variables, *ranks_command(run, wanted, fabric, cluster)),
    )


def pod_name(fabric: Fabric, node: str) -> str:
    """Name the pod of a node."""
    return object_name("linerate", "collectives", fabric.name, node)


def render_pod(node: str, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, owner: str = "") -> Object:
    """Return the pod of a node, which waits for what is run in it."""
    template = _template(wanted, fabric, cluster, ["sleep", "infinity"], owner)
    place = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    template["spec"].update(
        {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [place]}}},
            "activeDeadlineSeconds": 14400,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
        }
    )
    metadata = {"name": pod_name(fabric, node), "namespace": _namespace(wanted, fabric), **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _mpi_job(run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent) -> Object:
    name = object_name("linerate", run.name)
    workers = _template(wanted, fabric, cluster, ["/usr/sbin/sshd", "-De"])
    workers["metadata"]["labels"][RUN_NAME_LABEL] = name
    term = {"labelSelector": {"matchLabels": {RUN_NAME_LABEL: name}}, "topologyKey": "kubernetes.io/hostname"}
    nodes = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(run.nodes)}]}
    workers["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [nodes]}},
    }
    launcher = {
        "metadata": {"labels": {**MANAGED_BY, RUN_NAME_LABEL: name}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [
                {
                    "name": "launcher",
                    "image": on_mirror(wanted.image, cluster.mirror),
                    "command": list(mpirun(run, wanted, fabric, cluster)),
                    "resources": {kind: {"cpu": "1", "memory": "1Gi"} for kind in ("requests", "limits")},
                }
            ],
        },
    }
    return {
        "apiVersion": _MPI,
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": _namespace(wanted, fabric), "labels": {**labels(fabric.name), RUN_NAME_LABEL: name}},
        "spec": {
            "slotsPerWorker": wanted.gpus_per_node if run.gpu is None else 1,
            # ranks would wait for workers that are not there
            "launcherCreationPolicy": "WaitForWorkersReady",
            # a run that failed is a result; and NCCL's logs are in the workers, until somebody has read them
            "runPolicy": {"cleanPodPolicy": "None", "backoffLimit": 0, "activeDeadlineSeconds": wanted.seconds + 600},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
                "Worker": {"replicas": len(run.nodes), "restartPolicy": "Never", "template": workers},
            },
        },
    }


def _namespace(wanted: Collectives, fabric: Fabric) -> str:
    return wanted.namespace or fabric.network.namespace


def _template(wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, command: typing.List[str], owner: str = "") -> Object:
    """A pod with all GPUs of a node and an interface on each rail. Requests equal limits (QoS class Guaranteed); nothing is privileged."""
    count, device = fabric.select.hcas_per_node, resource_of(fabric, cluster)
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory, wanted.gpu_resource: str(wanted.gpus_per_node)}
    if device:
        # a plugin that shares devices puts all of them into the pod at once
        amounts[device] = "1" if traits(fabric).shared else str(count)
    container: Object = {
        "name": CONTAINER,
        "image": on_mirror(wanted.image, cluster.mirror),
        "command": command,
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}, {"name": "logs", "mountPath": LOG_FOLDER}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    volumes: typing.List[Object] = [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        {"name": "logs", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    if fabric.pods.mount_infiniband:
        container["volumeMounts"].append({"name": "infiniband", "mountPath": "/dev/infiniband"})
        volumes.append({"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}})
    spec: Object = {"automountServiceAccountToken": False, "containers": [container], "volumes": volumes, **_admission(fabric)}
    attachment = attachment_name(fabric)
    return {
        "metadata": {
            "labels": labels(fabric.name, owner),
            "annotations": {"k8s.v1.cni.cncf.io/networks": ",".join([attachment] * count)} if attachment else {},
        },
        "spec": spec,
    }


def _admission(fabric: Fabric) -> Object:
    """What the intent says of pods on this fabric."""
    wanted = fabric.pods
    found = {
        "runtimeClassName": wanted.runtime_class,
        "tolerations": [dict(item) for item in wanted.tolerations],
        "serviceAccountName": wanted.service_account,
        "imagePullSecrets": [{"name": name} for name in wanted.image_pull_secrets],
    }
    return {key: value for key, value in found.items() if value}
