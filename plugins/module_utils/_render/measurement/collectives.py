# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a run of nccl-tests over a fabric: the command of its ranks, and the pods in which they run.

Each node has one pod for all runs, since otherwise hundreds of runs would each wait until their pods are scheduled and
started. nccl-tests needs MPI for ranks in several pods, and a cluster under acceptance has neither Kubeflow nor the MPI
operator yet.

mpirun runs in the pod of the first node, and has to start its daemon in each other pod. In place of ssh it calls a
program (mpirun_agent.py) that writes a request to a file in its pod. The controller reads the requests over its
connection to the pod, and runs the daemon in the requested pod. The pods therefore need no sshd, no keys, no DNS names
and no rights in the API server. [src open-mpi v4.1 orte/mca/plm/rsh/plm_rsh_module.c; NVIDIA/nccl-tests v2.19.6
src/common.cu]
"""

from __future__ import annotations

import hashlib
import typing

from ..._model.base.operand import require_operand
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import attachment_name, find_traits, is_infiniband, resource_of
from ..._model.measurement.collectives import SMALL_BYTES, CollectiveRun, Collectives
from ..._model.node.tuning import Roce
from ..cluster.names import Object, RenderError, build_labels, object_name
from ..job import job_start
from .mpirun_agent import Command, agent_path, escape_script

CONTAINER = "collectives"
#: iterations of large messages, and of small ones with the time of each: of fewer than 100 p99 is that of the slowest
_LARGE, _SMALL = ("-n", "20", "-w", "5"), ("-n", "1000", "-w", "50", "-I", "1")
#: folder of NCCL's logs in each pod: one file for each process, since lines of several in one stream tear each other
LOG_FOLDER = "/tmp/nccl"
#: bytes of the logs of a pod that are read at once, and pieces of these at most. The eight ranks of a node write some
#: 100,000 bytes
LOG_PIECE, MOST_PIECES = 2 << 20, 4
#: characters of a host name
_MOST_HOST = 63
#: seconds that a pod lives at most, beside a soak
_LIFETIME_SECONDS = 14400


def _refuse_invalid_run(run: CollectiveRun, wanted: Collectives) -> None:
    for wrong, what in (
        (not run.nodes or len(set(run.nodes)) != len(run.nodes), "it has no nodes, or contains a node twice"),
        (
            run.gpu is not None and not 0 <= run.gpu < wanted.gpus_per_node,
            f"GPU {run.gpu} is not one of the {wanted.gpus_per_node} GPUs of a node",
        ),
        (
            run.by_rail and (run.gpu is not None or len(run.nodes) < 2),
            "a run rail by rail requires all GPUs of at least two nodes",
        ),
        (run.gpu is not None and len(run.nodes) < 2, "one GPU of one node has no peer to send to"),
    ):
        if wrong:
            raise RenderError(f"collective {run.name}: {what}")


def render_environment(run: CollectiveRun, wanted: Collectives, roce: typing.Optional[Roce] = None) -> dict[str, str]:
    """Return the environment variables of the ranks.

    With the ring algorithm every channel of every rank is connected, so that the log shows each one, and the expected
    bandwidth is that of the rails for any number of nodes. NVLS connects no ring and is off.

    :param run: nodes and settings of one test
    :param wanted: settings of all tests, from the intent
    :param roce: RoCE settings of the fabric, from the intent; None without them
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
        if roce is not None:
            # NCCL's own is 0: the queue of best effort, which jobs with the class of the fabric do not use
            found["NCCL_IB_TC"] = str(roce.traffic_class)
    if run.by_rail:
        found["NCCL_TESTS_SPLIT"] = f"MOD {wanted.gpus_per_node}"
    if run.gpu is not None:
        found["CUDA_VISIBLE_DEVICES"] = str(run.gpu)
        if wanted.gpu_resource.startswith("amd.com/"):
            # HIP takes either; an image that sets its own would win
            found["HIP_VISIBLE_DEVICES"] = str(run.gpu)
    found.update({name: value for name, value in run.variables if value is not None})
    return found


def render_ranks_command(run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent) -> Command:
    """Return the command of each rank: the test, with the HCAs of its pod.

    The options have these reasons: ``-a 3`` makes the test report the time of the slowest rank, because a slow group of
    NCCL_TESTS_SPLIT would otherwise not be visible; ``-c 1`` makes it count wrong values.

    :param run: nodes and settings of one test
    :param wanted: settings of all tests, from the intent
    """
    taken_out = [word for name, value in run.variables if value is None for word in ("-u", name)]
    test = (
        *(("env", *taken_out) if taken_out else ()),
        *(
            require_operand(f"{wanted.program_folder.rstrip('/')}/{run.test}_perf", "program of the test"),
            "-b",
            str(SMALL_BYTES if run.small else wanted.least_bytes if run.iterations is None else wanted.most_bytes),
            "-e",
            str(SMALL_BYTES if run.small else wanted.most_bytes),
            "-f",
            "2",
        ),
        *("-g", "1", "-a", "3", "-c", "1", *_count_iterations(run), "-T", str(wanted.seconds)),
    )
    if len(run.nodes) < 2:
        return test
    _sh, _option, script, name, *words = job_start.render_start_command(
        resource_of(fabric, cluster) or attachment_name(fabric), not is_infiniband(fabric), test
    )
    return ("sh", "-c", 'script=$(printf %b "$1"); shift; eval "$script"', name, escape_script(script), *words)


def _count_iterations(run: CollectiveRun) -> tuple[str, ...]:
    if run.iterations is not None:
        return "-n", str(run.iterations), "-w", "5"
    return _SMALL if run.small else _LARGE


def read_logs(run: CollectiveRun, piece: int) -> Command:
    """Return the command that prints one piece of the NCCL logs of a run in a pod. A piece has 2 MiB, except the last
    one. Beyond the end of the logs the command prints nothing.

    :param piece: number of the piece, starting at 0
    """
    script = 'cat "$1".* 2> /dev/null | tail -c +"$2" | head -c "$3"'
    return (
        "sh",
        "-c",
        script,
        "logs",
        f"{LOG_FOLDER}/{object_name(run.name)}",
        str(piece * LOG_PIECE + 1),
        str(LOG_PIECE),
    )


def remove_logs(run: CollectiveRun) -> Command:
    """Return the command that removes the logs of NCCL of a run in a pod, so that the logs of all runs together do not
    fill the volume.
    """
    return "sh", "-c", 'rm -f "$1".*', "logs", f"{LOG_FOLDER}/{object_name(run.name)}"


def render_mpirun(
    run: CollectiveRun, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, hosts: typing.Sequence[str]
) -> Command:
    """Return the command that starts all ranks. The ranks of a node are consecutive, so that rank modulo GPUs is the
    number of the GPU.

    :param run: nodes and settings of one test
    :param wanted: settings of all tests, from the intent
    :param hosts: host names of the pods, in the order of the nodes
    :raises RenderError: the run is invalid
    """
    _refuse_invalid_run(run, wanted)
    each = wanted.gpus_per_node if run.gpu is None else 1
    named = ",".join(f"{require_operand(host, 'host of a rank')}:{each}" for host in hosts)
    # the first pod asks for all others itself: the daemons have nobody to ask. Alone it asks for none, and Open MPI 5
    # warns of a program that is not there
    asks = (
        ("--mca", "plm_rsh_agent", agent_path(run), "--mca", "plm_rsh_no_tree_spawn", "1") if len(run.nodes) > 1 else ()
    )
    places = ("--host", named, *asks)
    variables = [
        word
        for name, value in render_environment(run, wanted, fabric.roce).items()
        for word in ("-x", f"{name}={value}")
    ]
    return (
        *(
            "timeout",
            "-k",
            "10",
            str(wanted.seconds),
            "mpirun",
            "--allow-run-as-root",
            "-np",
            str(each * len(run.nodes)),
            *places,
        ),
        *("--map-by", f"ppr:{each}:node", "--bind-to", "none"),
        # MPI only counts the ranks here: over TCP, and on the pods' own interface
        *(
            "--mca",
            "pml",
            "ob1",
            "--mca",
            "btl",
            "tcp,self",
            "--mca",
            "btl_tcp_if_include",
            "eth0",
            "--mca",
            "oob_tcp_if_include",
            "eth0",
        ),
        *(*variables, *render_ranks_command(run, wanted, fabric, cluster)),
    )


def name_pod(fabric: Fabric, node: str) -> str:
    """Return the name of the pod for collectives on a node."""
    return object_name("linerate", "collectives", fabric.name, node)


def host_name(node: str) -> str:
    """Return the host name of the pod of a node. NCCL and mpirun cut host names at the first dot, and Kubernetes limits
    them to 63 characters. A name that changes thereby gets a hash of the node name, so that host names stay unique.
    """
    name = object_name(node).replace(".", "-")
    if len(name) <= _MOST_HOST and name == node:
        return name
    return f"{name[: _MOST_HOST - 9].strip('-')}-{hashlib.sha256(node.encode()).hexdigest()[:8]}"


def compute_lifetime_seconds(wanted: Collectives) -> int:
    """Return the maximum lifetime of a pod in seconds, including the soak if the intent has one.

    :param wanted: settings of the collectives, from the intent
    """
    return _LIFETIME_SECONDS + (compute_soak_seconds(wanted) if wanted.soak_minutes else 0)


def compute_soak_seconds(wanted: Collectives) -> int:
    """Return the time limit in seconds of a soak, which is a run of hours that reveals link errors: one and a half
    times its planned duration, plus the time limit of one run for its start.

    :param wanted: settings of the collectives in the intent
    """
    return 90 * wanted.soak_minutes + wanted.seconds


def render_pod(node: str, wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, owner: str = "") -> Object:
    """Render the pod of a node. Its container sleeps, and the tests are started in it over the API server.

    :param wanted: settings of the collectives, from the intent
    :param owner: id of the run that owns the pod
    """
    template = _render_template(wanted, fabric, cluster, owner)
    place = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    template["spec"].update(
        {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [place]}}
            },
            "activeDeadlineSeconds": compute_lifetime_seconds(wanted),
            "restartPolicy": "Never",
            "hostname": host_name(node),
            "terminationGracePeriodSeconds": 1,
        }
    )
    metadata = {"name": name_pod(fabric, node), "namespace": fabric.network.namespace, **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _render_template(wanted: Collectives, fabric: Fabric, cluster: ClusterIntent, owner: str) -> Object:
    """Render a pod with all GPUs of a node and one interface on each rail. Requests equal limits (QoS class
    Guaranteed). The pod is not privileged.

    :param wanted: settings of the collectives, from the intent
    :param owner: id of the run that owns the pod
    """
    count, device = fabric.select.hcas_per_node, resource_of(fabric, cluster)
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory, wanted.gpu_resource: str(wanted.gpus_per_node)}
    if device:
        # a plugin that shares devices puts all of them into the pod at once
        amounts[device] = "1" if find_traits(fabric).shared else str(count)
    container: Object = {
        "name": CONTAINER,
        "image": wanted.image,
        "imagePullPolicy": fabric.pods.image_pull_policy,
        "command": ["sleep", "infinity"],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}, {"name": "logs", "mountPath": LOG_FOLDER}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    volumes: list[Object] = [
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        {"name": "logs", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    if fabric.pods.mount_infiniband:
        container["volumeMounts"].append({"name": "infiniband", "mountPath": "/dev/infiniband"})
        volumes.append({"name": "infiniband", "hostPath": {"path": "/dev/infiniband", "type": "Directory"}})
    spec: Object = {
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": volumes,
        **_render_admission(fabric),
    }
    attachment = attachment_name(fabric)
    return {
        "metadata": {
            "labels": build_labels(fabric.name, owner),
            "annotations": {"k8s.v1.cni.cncf.io/networks": ",".join([attachment] * count)} if attachment else {},
        },
        "spec": spec,
    }


def _render_admission(fabric: Fabric) -> Object:
    """Return those fields of the pod spec that the intent sets for all pods on this fabric: runtime class, priority
    class, tolerations, service account and pull secrets.
    """
    wanted = fabric.pods
    found = {
        "runtimeClassName": wanted.runtime_class,
        "priorityClassName": wanted.priority_class,
        "tolerations": [dict(item) for item in wanted.tolerations],
        "serviceAccountName": wanted.service_account,
        "imagePullSecrets": [{"name": name} for name in wanted.image_pull_secrets],
    }
    return {key: value for key, value in found.items() if value}
