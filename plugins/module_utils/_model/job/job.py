# SPDX-License-Identifier: GPL-3.0-or-later

"""Training jobs: the job that the collection renders (``rdma_job``), an existing job of any kind as read from a file or
the cluster, and the cluster objects that jobs need.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..kubernetes.compute_domains import ClaimingPod, ComputeDomain
from ..kubernetes.device_claims import DeviceClaim, DeviceClass, DeviceSlice, PodClaim, TakenClaim, Use
from ..kubernetes.objects import ClusterNode
from .stack import FlavorGroup


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
    :ivar value: value of the variable; None if another object contains it (valueFrom)
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
class PodContainer:
    """A container of a pod template.

    :ivar name: name of the container
    :ivar path: path of the container in the object, in the notation of the user
    :ivar environment: variables of env, and NAME=value settings of NCCL in command and args
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
    :ivar of_name: whether it is about the name of the node (matchFields), not about a label
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
    """

    kind: str
    name: str
    namespace: str
    templates: tuple[PodTemplate, ...]
    queue: str = ""
    lost: str = ""

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


# What a job meets in the cluster

#: label of a namespace: the level of Pod Security that its pods must keep
ENFORCE = "pod-security.kubernetes.io/enforce"


@dataclasses.dataclass(frozen=True)
class JobObjects:
    """The names of objects that jobs reference. Other objects of these kinds are dropped, since tenants may have any
    number of them.

    :ivar attachments: namespace/name of NetworkAttachmentDefinitions
    :ivar claims: kind and namespace/name of ResourceClaims and ResourceClaimTemplates
    :ivar resources: extended resources that their containers request
    """

    attachments: frozenset[str] = frozenset()
    claims: frozenset[tuple[str, str]] = frozenset()
    resources: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class JobAttachment:
    """A NetworkAttachmentDefinition.

    :ivar name: namespace/name
    :ivar kinds: types of its CNI plugins, in order
    :ivar resource: extended resource that a pod must request; empty for none
    :ivar default_route: whether its addresses include a default route
    :ivar problem: why its configuration is not known; empty if it is known
    """

    name: str
    kinds: tuple[str, ...] = ()
    resource: str = ""
    default_route: bool = False
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class VolumeClaim:
    """A PersistentVolumeClaim.

    :ivar name: namespace/name
    :ivar modes: access modes (spec.accessModes)
    :ivar phase: status.phase, such as Bound
    """

    name: str
    modes: tuple[str, ...]
    phase: str


@dataclasses.dataclass(frozen=True)
class PodDevices:
    """The devices of a running pod, as multus reports them.

    :ivar name: name of the pod
    :ivar interfaces: interfaces of its secondary networks
    :ivar devices: RDMA devices of the interfaces (device-info); empty if not reported
    """

    name: str
    interfaces: tuple[str, ...]
    devices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class JobSurroundings:
    """The state of the cluster and its nodes with which a job is compared.

    :ivar nodes: nodes of the cluster
    :ivar attachments: attachments that the jobs reference
    :ivar offered: extended resources that the jobs request, and that belong to attachments which the jobs do not
        reference
    :ivar others: namespace/name of objects of the same kind as missing ones, by kind, for hints about similar names
    :ivar claims: PersistentVolumeClaims in the namespaces of the jobs
    :ivar pods: pods of the job, if it runs
    :ivar devices: names of the HCAs of each node (node_info), if they were read
    :ivar enforced: Pod Security level that each namespace of a job enforces; empty if its label is not set
    :ivar device_claims: ResourceClaims and ResourceClaimTemplates that the jobs reference; None if the cluster does not
        serve or does not allow reading these kinds
    :ivar device_classes: DeviceClasses of the cluster; None if the cluster does not serve or does not allow reading
        them
    :ivar device_slices: ResourceSlices of the cluster; None if the cluster does not serve or does not allow reading
        them
    :ivar device_errors: texts on invalid claims, DeviceClasses and ResourceSlices, which are left out
    :ivar compute_domains: ComputeDomains whose ResourceClaimTemplate the jobs reference; None if the jobs reference
        none, or if the cluster does not serve or does not allow reading them
    :ivar claiming_pods: pods of the job with claims from templates, if it runs
    :ivar errors: texts that name each failed read and its reason. The objects concerned are unknown, not absent
    :ivar taints: taints of each node that keep pods away, in the format of Kubernetes
    :ivar flavors: flavors of the queues of Kueue, by namespace/name of the LocalQueue; queues whose flavors are unknown
        are left out
    """

    nodes: tuple[ClusterNode, ...] = ()
    attachments: tuple[JobAttachment, ...] = ()
    offered: frozenset[str] = frozenset()
    others: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    claims: tuple[VolumeClaim, ...] = ()
    pods: tuple[PodDevices, ...] = ()
    devices: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    enforced: dict[str, str] = dataclasses.field(default_factory=dict)
    device_claims: typing.Optional[tuple[DeviceClaim, ...]] = None
    device_classes: typing.Optional[tuple[DeviceClass, ...]] = None
    device_slices: typing.Optional[tuple[DeviceSlice, ...]] = None
    device_errors: tuple[str, ...] = ()
    compute_domains: typing.Optional[tuple[ComputeDomain, ...]] = None
    claiming_pods: tuple[ClaimingPod, ...] = ()
    errors: tuple[str, ...] = ()
    taints: dict[str, tuple[dict[str, typing.Any], ...]] = dataclasses.field(default_factory=dict)
    flavors: dict[str, tuple[FlavorGroup, ...]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def attachments_by_name(self) -> dict[str, JobAttachment]:
        """Return the attachments that the jobs reference, by namespace/name."""
        return {item.name: item for item in self.attachments}

    @functools.cached_property
    def attachment_names(self) -> frozenset[str]:
        """Return the names of all attachments that were read, for hints about similar names."""
        return frozenset((*self.attachments_by_name, *self.others.get("NetworkAttachmentDefinition", ())))

    @functools.cached_property
    def attachment_resources(self) -> frozenset[str]:
        """Return the extended resources that belong to attachments."""
        return self.offered | {item.resource for item in self.attachments}

    @functools.cached_property
    def interface_sets(self) -> tuple[tuple[str, ...], ...]:
        """Return the different lists of interfaces that the pods have."""
        return tuple(dict.fromkeys(pod.interfaces for pod in self.pods))

    @functools.cached_property
    def pods_by_devices(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the sorted names of the pods that have the same RDMA devices, by these; pods without are left out."""
        return _group_names((pod.devices, pod.name) for pod in self.pods if pod.devices)

    @functools.cached_property
    def nodes_by_devices(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the sorted names of the nodes that have the same HCAs, by these."""
        return _group_names((names, node) for node, names in self.devices.items())


def _group_names(pairs: typing.Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for devices, name in pairs:
        found.setdefault(devices, []).append(name)
    return {devices: tuple(sorted(names)) for devices, names in found.items()}
