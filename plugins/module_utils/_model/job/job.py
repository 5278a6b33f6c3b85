# SPDX-License-Identifier: GPL-3.0-or-later

"""Training jobs: the job that the collection renders (``rdma_job``), and an existing job of any kind as read from a
file or the cluster.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..kubernetes.device_claims import PodClaim, TakenClaim, Use


@dataclasses.dataclass(frozen=True)
class Mount:
    """A volume of the job's namespace that its pods mount.

    :ivar name: name of the PersistentVolumeClaim or ConfigMap
    :ivar path: mount path
    """

    name: str
    path: str


@dataclasses.dataclass(frozen=True)
class Job:
    """The training job to render.

    :ivar kind: PyTorchJob (training operator v1), or TrainJob (Kubeflow Trainer v2) with its own TrainingRuntime
    :ivar name: name of the job; the operators derive host names from it
    :ivar nodes: number of nodes, with one pod each
    :ivar gpus_per_node: number of GPUs and processes of a pod
    :ivar image: image that contains the training program, torchrun and sh
    :ivar command: command of each pod: torchrun finds the other pods by the operator's PET_ variables
    :ivar cpu: request and limit, as Kubernetes writes it
    :ivar memory: request and limit, as Kubernetes writes it
    :ivar fabric: name of the fabric; None for the pod network, which is the baseline of a comparison and not suitable
        for training
    :ivar namespace: namespace of the job; None for that of the fabric's network
    :ivar interfaces: number of attachments of a pod to the fabric; None for one per HCA of a node
    :ivar shared_memory: size of /dev/shm, as Kubernetes writes it
    :ivar claim: a PersistentVolumeClaim that all pods mount, so it needs ReadWriteMany
    :ivar config: a ConfigMap with the configuration of the training, which all pods mount
    :ivar nic_map: a ConfigMap from which pods read their addresses; see docs/job.md
    :ivar queue: LocalQueue of Kueue
    :ivar topology_file: NCCL_TOPO_FILE, a path in the image
    :ivar environment: further variables of the container
    :ivar gpu_resource: extended resource of the GPUs
    :ivar tolerations: tolerations of the pods, in the format of Kubernetes
    :ivar service_account: account that is allowed to use IPC_LOCK, if the namespace's default account is not
        (OpenShift)
    :ivar image_pull_secrets: names of secrets in the job's namespace
    """

    name: str
    nodes: int
    gpus_per_node: int
    image: str
    command: tuple[str, ...]
    cpu: str
    memory: str
    kind: typing.Literal["PyTorchJob", "TrainJob"] = "PyTorchJob"
    fabric: typing.Optional[str] = None
    namespace: typing.Optional[str] = None
    interfaces: typing.Optional[int] = None
    shared_memory: str = "20Gi"
    claim: typing.Optional[Mount] = None
    config: typing.Optional[Mount] = None
    nic_map: typing.Optional[str] = None
    queue: typing.Optional[str] = None
    topology_file: typing.Optional[str] = None
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    gpu_resource: str = "nvidia.com/gpu"
    tolerations: tuple[dict[str, typing.Any], ...] = ()
    service_account: typing.Optional[str] = None
    image_pull_secrets: tuple[str, ...] = ()


# What is in a job


@dataclasses.dataclass(frozen=True)
class Variable:
    """An environment variable of a container.

    :ivar name: name of the variable
    :ivar value: value of the variable; None if another object contains it (valueFrom), or only a shell can compute it
    :ivar place: path in the object where it is set
    """

    name: str
    value: typing.Optional[str]
    place: str


@dataclasses.dataclass(frozen=True)
class Replaced:
    """The resources that a container requested before another object replaced them as a whole.

    :ivar limits: limits before the replacement
    :ivar by: key of the object that replaced them, in the notation of the user: TrainJob train
        spec.trainer.resourcesPerNode
    :ivar of: object that contained them: ClusterTrainingRuntime torch-rdma
    """

    limits: dict[str, str]
    by: str
    of: str


@dataclasses.dataclass(frozen=True)
class TorchRun:
    """A call of torchrun in the command of a container. A value that only a shell can compute keeps its text, with
    ``$``.

    :ivar place: path of the command in the object
    :ivar standalone: whether it has the option --standalone
    :ivar nodes: value of --nnodes: a number, or a range such as 1:4; None if the option is not given
    :ivar processes: value of --nproc-per-node: a number, gpu or auto; None if the option is not given
    :ivar rendezvous: value of --rdzv-endpoint, or of --master-addr; None if neither is given
    """

    place: str
    standalone: bool = False
    nodes: typing.Optional[str] = None
    processes: typing.Optional[str] = None
    rendezvous: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class PodContainer:
    """A container of a pod template.

    :ivar name: name of the container
    :ivar path: path of the container in the object, in the notation of the user
    :ivar environment: variables of env, and NAME=value settings of NCCL, UCX and Gloo in command and args
    :ivar sources: ConfigMaps and Secrets that provide its whole environment (envFrom)
    :ivar requests: requests with the defaults of the API server: a missing request is equal to the limit
    :ivar limits: limits by resource
    :ivar capabilities: capabilities that it adds
    :ivar privileged: whether the container is privileged (securityContext)
    :ivar user: runAsUser of the container, else of the pod; None if neither is set
    :ivar non_root: runAsNonRoot of the container, else of the pod
    :ivar mounts: name of the volume by mount path
    :ivar replaced: resources before another object replaced them; None if they were not replaced
    :ivar device_claims: claims of its pod that it uses (resources.claims)
    :ivar claimed: purposes of the devices of these claims, such as ``network``
    :ivar host_ports: ports of the node that it takes (hostPort)
    :ivar exported: variables that its command, mpirun, gives to the processes that it starts in other pods
    :ivar torchruns: calls of torchrun in its command
    """

    name: str
    path: str
    environment: tuple[Variable, ...] = ()
    sources: tuple[str, ...] = ()
    requests: dict[str, str] = dataclasses.field(default_factory=dict)
    limits: dict[str, str] = dataclasses.field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    privileged: bool = False
    user: typing.Optional[int] = None
    non_root: bool = False
    mounts: dict[str, str] = dataclasses.field(default_factory=dict)
    replaced: typing.Optional[Replaced] = None
    device_claims: tuple[TakenClaim, ...] = ()
    claimed: tuple[Use, ...] = ()
    host_ports: tuple[int, ...] = ()
    exported: tuple[Variable, ...] = ()
    torchruns: tuple[TorchRun, ...] = ()


@dataclasses.dataclass(frozen=True)
class NetworkRequest:
    """One element of the annotation k8s.v1.cni.cncf.io/networks.

    :ivar namespace: namespace of the NetworkAttachmentDefinition
    :ivar name: name of the NetworkAttachmentDefinition
    :ivar interface: name of the pod's interface; net1, net2 ... by position if the annotation has no name [multus]
    :ivar default_route: whether it requests the pod's default route
    """

    namespace: str
    name: str
    interface: str
    default_route: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True)
class NodeRequirement:
    """A requirement of node affinity.

    :ivar key: name of the label of the node
    :ivar operator: In, NotIn, Exists, DoesNotExist, Gt or Lt, as written in the object
    :ivar values: values with which the operator compares that of the label; empty for Exists and DoesNotExist
    :ivar of_name: whether the requirement is about the name of the node (matchFields), not about a label
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    of_name: bool = False


@dataclasses.dataclass(frozen=True)
class NodeChoice:
    """The nodes on which the pods of a template may run.

    :ivar labels: labels that a node must have (nodeSelector)
    :ivar terms: required node affinity: a node must meet all requirements of one term; empty for none
    :ivar tolerations: tolerations of the pods, in the format of Kubernetes
    """

    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    terms: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[dict[str, typing.Any], ...] = ()

    @property
    def size(self) -> int:
        """Return the number of comparisons with one node, at least 1."""
        return 1 + len(self.labels) + sum(map(len, self.terms)) + len(self.tolerations)


@dataclasses.dataclass(frozen=True)
class PodTemplate:
    """The template of the pods of a job.

    :ivar path: path in the object, in the notation of the user: ``spec.pytorchReplicaSpecs.Worker``
    :ivar count: number of pods created from it
    :ivar containers: main containers
    :ivar init_containers: containers that run before the main ones (initContainers)
    :ivar networks: networks that its annotation requests
    :ivar host_network: whether the pods use the network of their node
    :ivar host_ipc: whether the pods use the shared memory of their node (hostIPC)
    :ivar host_pid: whether the pods see the processes of their node (hostPID)
    :ivar volumes: names of all volumes
    :ivar memory_volumes: size limit of each volume in memory, by name; empty if it has none. The node's /dev/shm counts
    :ivar claims: PersistentVolumeClaims that it mounts
    :ivar host_paths: files and folders of the node that it mounts
    :ivar account: service account; empty for the namespace's default account
    :ivar device_claims: device claims of the pods (resourceClaims)
    :ivar nodes: nodes on which the pods may run
    """

    path: str
    count: int
    containers: tuple[PodContainer, ...]
    init_containers: tuple[PodContainer, ...] = ()
    networks: tuple[NetworkRequest, ...] = ()
    host_network: bool = False
    volumes: tuple[str, ...] = ()
    memory_volumes: dict[str, str] = dataclasses.field(default_factory=dict)
    claims: tuple[str, ...] = ()
    host_paths: tuple[str, ...] = ()
    account: str = ""
    device_claims: tuple[PodClaim, ...] = ()
    nodes: NodeChoice = dataclasses.field(default_factory=NodeChoice)
    host_ipc: bool = False
    host_pid: bool = False


@dataclasses.dataclass(frozen=True)
class JobWorkload:
    """An existing job, from a file or from the cluster, with the templates of its pods.

    :ivar kind: kind of the object, such as PyTorchJob
    :ivar templates: templates of its pods
    :ivar queue: LocalQueue of Kueue that it requests; empty for none
    :ivar lost: why its pods do not start or do not find each other; empty if no reason is known
    :ivar processes: processes of a pod that its operator gives to torchrun: a number, gpu or auto; empty for no value
    """

    kind: str
    name: str
    namespace: str
    templates: tuple[PodTemplate, ...]
    queue: str = ""
    lost: str = ""
    processes: str = ""

    @functools.cached_property
    def exported(self) -> dict[str, tuple[tuple[str, Variable], ...]]:
        """Return the variables that launchers of MPI give to all ranks, by name, each with the path of the pod template
        of the launcher.
        """
        found: dict[str, tuple[tuple[str, Variable], ...]] = {}
        for template in self.templates:
            for container in template.containers:
                for item in container.exported:
                    found[item.name] = (*found.get(item.name, ()), (template.path, item))
        return found

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
