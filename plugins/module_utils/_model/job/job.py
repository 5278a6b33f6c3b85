# SPDX-License-Identifier: GPL-3.0-or-later

"""Training jobs: what the user wants of one (``rdma_job``), and what is in one that somebody wrote, whatever its
kind."""

from __future__ import annotations

import dataclasses
import typing

from ..kubernetes.device_claims import DeviceClaim, DeviceClass, DeviceSlice, PodClaim, TakenClaim, Use
from ..kubernetes.objects import ClusterNode


@dataclasses.dataclass(frozen=True)
class Mount:
    """Something of the job's namespace that its pods see as a folder.

    :ivar name: of the PersistentVolumeClaim or ConfigMap
    :ivar path: where it is mounted
    """

    name: str
    path: str


@dataclasses.dataclass(frozen=True)
class Job:
    """The training job that is rendered.

    :ivar kind: PyTorchJob (training operator v1), or TrainJob (Kubeflow Trainer v2) with a TrainingRuntime of its own
    :ivar name: of the job; the operators make host names of it
    :ivar nodes: how many nodes; one pod each
    :ivar gpus_per_node: GPUs and processes of a pod
    :ivar image: has the training program, torchrun and sh
    :ivar command: what each pod starts: torchrun finds the other pods by the operator's PET_ variables
    :ivar cpu: request and limit, as Kubernetes writes it
    :ivar memory: request and limit, as Kubernetes writes it
    :ivar fabric: name of the fabric; None takes the pod network, which is the baseline of a comparison and nothing to
        train on
    :ivar namespace: of the job; None takes that of the fabric's network
    :ivar interfaces: attachments of a pod to the fabric; None takes one for each HCA of a node
    :ivar shared_memory: size of /dev/shm, as Kubernetes writes it
    :ivar claim: a PersistentVolumeClaim that all pods mount, so it needs ReadWriteMany
    :ivar config: a ConfigMap that all pods mount, with the configuration of the training
    :ivar nic_map: a ConfigMap out of which pods take their addresses; see docs/job.md
    :ivar queue: LocalQueue of Kueue
    :ivar topology_file: NCCL_TOPO_FILE, a path in the image
    :ivar environment: further variables of the container
    :ivar gpu_resource: extended resource of the GPUs
    :ivar tolerations: of the pods, as Kubernetes reads them
    :ivar service_account: whose rights admit IPC_LOCK, where the namespace's default account has none (OpenShift)
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

    :ivar value: None where another object holds it (valueFrom)
    :ivar place: where in the object it is set
    """

    name: str
    value: typing.Optional[str]
    place: str


@dataclasses.dataclass(frozen=True)
class Replaced:
    """Resources of a container that another object replaced as a whole.

    :ivar limits: that it had
    :ivar by: key of the object that replaced them, as a reader would write it: TrainJob train
        spec.trainer.resourcesPerNode
    :ivar of: the object that had them: ClusterTrainingRuntime torch-rdma
    """

    limits: dict[str, str]
    by: str
    of: str


@dataclasses.dataclass(frozen=True)
class PodContainer:
    """A container of a pod template.

    :ivar environment: of env, and NAME=value of NCCL's variables in command and args
    :ivar sources: ConfigMaps and Secrets that it takes its whole environment from (envFrom)
    :ivar requests: as the API server defaults them: what has no request takes the limit
    :ivar mounts: path: name of the volume
    :ivar user: runAsUser of the container, else of the pod; None where neither says
    :ivar replaced: its resources before another object replaced them; None where none did
    :ivar device_claims: claims of its pod that it takes (resources.claims)
    :ivar claimed: what the devices of these are
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


@dataclasses.dataclass(frozen=True)
class NetworkRequest:
    """One element of the annotation k8s.v1.cni.cncf.io/networks.

    :ivar interface: that the pod gets; net1, net2 ... by their order where the annotation names none [multus]
    :ivar default_route: it asks for the pod's default route
    """

    namespace: str
    name: str
    interface: str
    default_route: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True)
class PodTemplate:
    """The template of the pods of a job.

    :ivar path: in the object, as a reader would write it: ``spec.pytorchReplicaSpecs.Worker``
    :ivar count: pods that are made of it
    :ivar init_containers: containers that run before the others (initContainers)
    :ivar volumes: names of all
    :ivar memory_volumes: volumes in memory, each with its size limit, empty where it has none
    :ivar claims: PersistentVolumeClaims that it mounts
    :ivar host_paths: files and folders of the node that it mounts
    :ivar account: service account; empty for the namespace's own
    :ivar device_claims: its claims of devices (resourceClaims)
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


@dataclasses.dataclass(frozen=True)
class JobWorkload:
    """A job as somebody wrote it, or as it is in the cluster.

    :ivar queue: LocalQueue of Kueue that it asks for; empty where it asks for none
    :ivar lost: why its pods will not find each other; empty where nothing is known against it
    """

    kind: str
    name: str
    namespace: str
    templates: tuple[PodTemplate, ...]
    queue: str = ""
    lost: str = ""

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


# What a job meets in the cluster

#: label of a namespace: the level of Pod Security that its pods must keep
ENFORCE = "pod-security.kubernetes.io/enforce"


@dataclasses.dataclass(frozen=True)
class JobObjects:
    """Objects that jobs name. Those of tenants are any number, and no others are kept.

    :ivar attachments: namespace/name of NetworkAttachmentDefinitions
    :ivar claims: kind and namespace/name of ResourceClaims and ResourceClaimTemplates
    :ivar resources: extended resources that their containers ask for
    """

    attachments: frozenset[str] = frozenset()
    claims: frozenset[tuple[str, str]] = frozenset()
    resources: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class JobAttachment:
    """A NetworkAttachmentDefinition.

    :ivar name: namespace/name
    :ivar kinds: types of its CNI plugins, in their order
    :ivar resource: extended resource that a pod must ask for; empty where it needs none
    :ivar default_route: its addresses bring a default route
    :ivar problem: why its configuration is not known; empty where it is
    """

    name: str
    kinds: tuple[str, ...] = ()
    resource: str = ""
    default_route: bool = False
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class VolumeClaim:
    """A PersistentVolumeClaim: namespace/name, accessModes, status.phase."""

    name: str
    modes: tuple[str, ...]
    phase: str


@dataclasses.dataclass(frozen=True)
class PodDevices:
    """The devices of a running pod, as multus reports them.

    :ivar interfaces: of its secondary networks
    :ivar devices: RDMA devices of those (device-info); empty where it says nothing of them
    """

    name: str
    interfaces: tuple[str, ...]
    devices: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class JobSurroundings:
    """The state of the cluster and its nodes around a job.

    :ivar attachments: that the jobs name
    :ivar offered: resources that the jobs ask for, and that attachments need which they do not name
    :ivar others: by kind namespace/name of some of the objects that they do not name, for words that are alike
    :ivar pods: of the job, where it runs
    :ivar devices: names of the HCAs of each node (node_info), where they were asked for
    :ivar enforced: level of Pod Security that each namespace of a job enforces; empty where its label says none
    :ivar device_claims: ResourceClaims and ResourceClaimTemplates that the jobs name; None where the cluster does not
        know the kinds or refuses them
    :ivar device_classes: of the cluster; None as above
    :ivar device_slices: ResourceSlices of the cluster; None as above
    :ivar device_errors: objects of these kinds that are not of their form, and are left out
    :ivar errors: what could not be read; what is not in the rest is not known then
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
    errors: tuple[str, ...] = ()
