# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of the operators that the collection works with: their purpose, how they are recognized, and how they are
installed.

The order of the table is the order of installation. Versions are those for which the renderers are written. [src
node-feature-discovery v0.18.3, sriov-network-operator v1.6.0, Mellanox/network-operator v26.4.1, NVIDIA/gpu-operator
v26.3.3, kubeflow/trainer v2.3.0 and its dependency jobset v0.12.0, kueue v0.19.2; packages of OLM:
openshift/kueue-operator and openshift/jobset-operator metadata/annotations.yaml]
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.operand import require_operand
from ..intent.intent import Intent
from ..intent.profiles import find_traits, needs_nic_policy
from ..job.job import Job
from ..job.stack import Controller, PolicyState
from .drivers import DriverHost, DriverPolicy
from .sriov_operator import OlmObject

#: with what the labels of node feature discovery begin
NFD_LABELS = "feature.node.kubernetes.io/"
#: of nodes with a NIC of NVIDIA's, the only ones on which its network operator has anything
NIC_LABEL = f"{NFD_LABELS}pci-15b3.present"
#: labels of the GPU operator: of a node with a GPU, and of one that gets its driver
GPU_LABEL, GPU_DRIVER_LABEL = "nvidia.com/gpu.present", "nvidia.com/gpu.deploy.driver"
#: prefixes of the resources that pods with GPUs request
GPU_RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-")
#: label of a namespace that the collection made for an operator; its value is the operator's name. The teardown leaves
#: it alone
MADE_FOR = "linerate.rdma/operator"
SRIOV = "sriov-network-operator"
NFD, NETWORK, GPU, CERTIFICATES = "node-feature-discovery", "network-operator", "gpu-operator", "cert-manager"
#: operators whose upgrade changes nodes: they reload a driver, or restart what configures virtual functions
CHANGES_NODES = (SRIOV, NETWORK, GPU)
JOBSET, TRAINER, TRAINING, KUEUE = "jobset", "trainer", "training-operator", "kueue"
#: who installs: Helm, the cluster's OLM, or nobody
Way = typing.Literal["helm", "olm", "hand"]


@dataclasses.dataclass(frozen=True)
class OperatorChart:
    """The Helm chart of an operator.

    :ivar reference: OCI reference, folder or archive, or the chart's name in ``repository``
    :ivar version: version of the chart; empty only for a folder, whose Chart.yaml has it
    :ivar namespace: namespace of the release
    :ivar release: name of the Helm release
    :ivar repository: URL of the Helm repository; empty for an OCI reference, a folder or an archive
    """

    reference: str
    version: str
    namespace: str
    release: str
    repository: str = ""

    def __post_init__(self) -> None:
        """Check that Helm would parse no field as a command-line option.

        :raises OperandError: Helm would parse a field as an option
        """
        for name, value in dataclasses.asdict(self).items():
            require_operand(value, f"the {name} of a chart")


@dataclasses.dataclass(frozen=True)
class OperatorPackage:
    """A package of OLM, as OpenShift's guides install it. The catalog selects its channel.

    :ivar name: name of the package
    :ivar csv: prefix of the names of its ClusterServiceVersions
    :ivar source: name of the CatalogSource
    :ivar own_namespace: whether it watches only its own namespace, which its OperatorGroup then names; otherwise it
        watches all
    """

    name: str
    namespace: str
    csv: str
    source: str = "redhat-operators"
    own_namespace: bool = True


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator that the collection works with: how to recognize it in a cluster and how to install it.

    :ivar name: name of the operator in this collection
    :ivar images: names of the images that the operator runs
    :ivar deployments: names of its Deployment, for images that are mirrored under other names. OpenShift has an
        unrelated Deployment network-operator
    :ivar lack: function that is missing without the operator, as text
    :ivar chart: Helm chart of the operator; None if there is none
    :ivar package: OLM package of the operator; None if there is none
    :ivar by_hand: instruction for a manual installation, if the cluster's installer (Helm or OLM) does not offer it
    :ivar configuration: kind of the object that the operator needs to work; empty if there is none, or another stage
        creates it
    :ivar configured: whether that object must be created always, or only if OLM installed the operator, since a chart
        includes it
    """

    name: str
    images: tuple[str, ...]
    deployments: tuple[str, ...]
    lack: str
    chart: typing.Optional[OperatorChart] = None
    package: typing.Optional[OperatorPackage] = None
    by_hand: str = ""
    configuration: str = ""
    configured: typing.Literal["always", "olm"] = "olm"


_NGC = "https://helm.ngc.nvidia.com/nvidia"
TABLE: tuple[Operator, ...] = (
    Operator(
        NFD,
        (),
        ("nfd-master",),
        "Without this operator, the nodes do not get the labels that select them.",
        OperatorChart("oci://registry.k8s.io/nfd/charts/node-feature-discovery", "0.18.3", NFD, "nfd"),
        OperatorPackage("nfd", "openshift-nfd", "nfd."),
        configuration="NodeFeatureDiscovery",
    ),
    Operator(
        SRIOV,
        (SRIOV,),
        (SRIOV,),
        "Without this operator, the nodes get no virtual functions for the attachments.",
        OperatorChart("oci://ghcr.io/k8snetworkplumbingwg/sriov-network-operator-chart", "1.6.0", SRIOV, SRIOV),
        OperatorPackage(SRIOV, "openshift-sriov-network-operator", f"{SRIOV}."),
        # the chart makes it, and operators.config looks at it whoever installed the operator
        configuration="SriovOperatorConfig",
    ),
    Operator(
        NETWORK,
        (NETWORK,),
        ("nvidia-network-operator-controller-manager",),
        "Without this operator, the pods cannot share the RDMA devices of a node.",
        # its NicClusterPolicy is made by stage network
        OperatorChart(NETWORK, "26.4.1", "nvidia-network-operator", NETWORK, _NGC),
        OperatorPackage(
            "nvidia-network-operator", "nvidia-network-operator", "nvidia-network-operator.", "certified-operators"
        ),
    ),
    Operator(
        GPU,
        (GPU,),
        (GPU,),
        "Without this operator, the nodes get no GPU driver, no GPUDirect and no device plugin for GPUs.",
        OperatorChart(GPU, "v26.3.3", GPU, GPU, _NGC),
        OperatorPackage(
            "gpu-operator-certified", "nvidia-gpu-operator", "gpu-operator-certified.", "certified-operators"
        ),
        configuration="ClusterPolicy",
        configured="always",
    ),
    Operator(
        CERTIFICATES,
        ("cert-manager-controller",),
        (CERTIFICATES,),
        "The operators of Kueue and JobSet on OpenShift require its certificates.",
        package=OperatorPackage("openshift-cert-manager-operator", "cert-manager-operator", "cert-manager-operator."),
    ),
    Operator(
        JOBSET,
        ("jobset",),
        ("jobset-controller-manager",),
        "Without this operator, the JobSet of a TrainJob gets no pods.",
        OperatorChart("oci://registry.k8s.io/jobset/charts/jobset", "0.12.0", "jobset-system", JOBSET),
        OperatorPackage("job-set", "openshift-jobset-operator", "jobset-operator."),
        configuration="JobSetOperator",
    ),
    Operator(
        TRAINER,
        ("trainer-controller-manager",),
        ("kubeflow-trainer-controller-manager",),
        "Without this operator, a TrainJob gets no JobSet and no pods.",
        OperatorChart("oci://ghcr.io/kubeflow/charts/kubeflow-trainer", "2.3.0", "kubeflow-system", "kubeflow-trainer"),
        by_hand="Set the component trainer of OpenShift AI's DataScienceCluster to Managed, or use a PyTorchJob.",
    ),
    Operator(
        TRAINING,
        (TRAINING,),
        (TRAINING, "kubeflow-training-operator"),
        "Without this operator, a PyTorchJob or an MPIJob gets no pods.",
        by_hand=(
            "Run kubectl apply --server-side -k"
            " 'github.com/kubeflow/trainer.git/manifests/overlays/standalone?ref=v1.9.4', or use a TrainJob."
        ),
    ),
    Operator(
        KUEUE,
        (KUEUE,),
        ("kueue-controller-manager",),
        "Without this operator, no controller admits the job, so the job stays suspended.",
        OperatorChart("oci://registry.k8s.io/kueue/charts/kueue", "0.19.2", "kueue-system", KUEUE),
        OperatorPackage("kueue-operator", "openshift-kueue-operator", "kueue-operator.", own_namespace=False),
        configuration="Kueue",
    ),
)
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in TABLE}
#: operators that jobs of a kind need
OF_JOB: dict[str, tuple[str, ...]] = {"PyTorchJob": (TRAINING,), "TrainJob": (TRAINER, JOBSET), "JobSet": (JOBSET,)}


@dataclasses.dataclass(frozen=True)
class JobNeeds:
    """The properties of a job (``rdma_job``) that determine which operators it needs.

    :ivar kind: kind of the job, such as TrainJob
    :ivar gpus: number of GPUs of a pod
    :ivar queue: LocalQueue of Kueue; empty for none
    """

    kind: str
    gpus: int = 0
    queue: str = ""


@dataclasses.dataclass(frozen=True)
class Needed:
    """An operator that a run needs.

    :ivar operator: operator that the run needs
    :ivar why: reasons why it is needed, one text each
    """

    operator: Operator
    why: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class UntrustedNamespace:
    """A namespace in which a run installs nothing, because a tenant may have created it or has rights in it.

    :ivar why: the users that have rights in it, or its content
    """

    namespace: str
    why: str


@dataclasses.dataclass(frozen=True)
class LeftConfiguration:
    """The configuration object of an operator that a run does not create.

    :ivar why: reason, as a sentence
    :ivar command: command that creates the object, with its fields
    """

    why: str
    command: str


@dataclasses.dataclass(frozen=True)
class OperatorsSeen:
    """The operators in the cluster and their configuration, as the module operators_info found them.

    :ivar olm: whether operators are installed by the cluster's OLM instead of Helm
    :ivar job: needs of the requested training job; None if no job is requested
    :ivar controllers: Deployments that run one of the operators
    :ivar configurations: objects that configure these operators, with their state
    :ivar packages: ClusterServiceVersions and Subscriptions of their packages, by operator
    :ivar labelled: nodes that have every needed label of node feature discovery
    :ivar made: operators whose namespace has the collection's mark, since a run installed them
    :ivar drivers: policies that deploy a driver container, or may
    :ivar hosts: managed nodes, with the properties that determine their driver image
    :ivar errors: texts that name each failed read and its reason. The objects concerned are unknown, not absent
    :ivar untrusted: operators that a run neither installs nor upgrades because of their namespace, by name
    :ivar install: whether the run installs missing operators (operators_install)
    :ivar leave: names of operators that the run does not install (operators_leave)
    :ivar versions: version that the run would install, by operator; operators whose chart is a folder are left out
    :ivar left: operators that OLM has installed, and whose configuration object the run does not create
    """

    olm: bool = False
    job: typing.Optional[JobNeeds] = None
    controllers: tuple[Controller, ...] = ()
    configurations: tuple[PolicyState, ...] = ()
    packages: dict[str, tuple[OlmObject, ...]] = dataclasses.field(default_factory=dict)
    labelled: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    drivers: tuple[DriverPolicy, ...] = ()
    hosts: tuple[DriverHost, ...] = ()
    errors: tuple[str, ...] = ()
    untrusted: dict[str, UntrustedNamespace] = dataclasses.field(default_factory=dict)
    install: bool = False
    leave: tuple[str, ...] = ()
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    left: dict[str, LeftConfiguration] = dataclasses.field(default_factory=dict)

    @property
    def has_labels(self) -> bool:
        """Return whether node feature discovery labels the nodes: at least two managed nodes have its labels, or all
        managed nodes have them. The labels of a single node among several prove nothing, because a kubelet can write
        these labels of its own Node.
        """
        return len(self.labelled) > 1 or (bool(self.labelled) and len(self.labelled) == len(self.hosts))

    def held_by_olm(self, operator: Operator) -> tuple[OlmObject, ...]:
        """Return the ClusterServiceVersions and Subscriptions of an operator. Outside of the operator's usual namespace
        only a ClusterServiceVersion counts, since an editor can create a Subscription there that installs nothing.
        """
        usual = operator.package.namespace if operator.package else ""
        return tuple(
            item
            for item in self.packages.get(operator.name, ())
            if item.kind == "ClusterServiceVersion" or item.namespace == usual
        )


def job_needs(job: Job) -> JobNeeds:
    return JobNeeds(job.kind, job.gpus_per_node, job.queue or "")


def collect_needed_labels(intent: Intent) -> dict[str, str]:
    """Return the node feature discovery labels that a node must have: those of the node selector, and those by which
    NVIDIA's operators select nodes.
    """
    labels = {}
    if any(find_traits(fabric).functions for fabric in intent.fabrics):
        labels = {key: value for key, value in intent.cluster.node_selector.items() if key.startswith(NFD_LABELS)}
    if any(map(needs_nic_policy, intent.fabrics)):
        labels[NIC_LABEL] = "true"
    if intent.cluster.host.gpudirect == "peermem":
        labels[f"{NFD_LABELS}pci-10de.present"] = "true"
    return labels


def list_needed_operators(
    intent: Intent, job: typing.Optional[JobNeeds] = None, olm: bool = False
) -> tuple[Needed, ...]:
    """Return the operators that this intent and this job need, in the order of installation.

    :param job: needs of the requested training job; None if no job is requested
    :param olm: whether operators are installed by the cluster's OLM instead of Helm
    """
    why: dict[str, list[str]] = {}

    def need(name: str, reason: str) -> None:
        why.setdefault(name, []).append(reason)

    for fabric in intent.fabrics:
        reason = f"fabric {fabric.name} ({fabric.profile})"
        if find_traits(fabric).functions:
            need(SRIOV, reason)
        if needs_nic_policy(fabric):
            need(NETWORK, reason)
    if intent.cluster.host.gpudirect == "peermem":
        need(GPU, "rdma_cluster.host.gpudirect: peermem")
    if job is not None:
        for name in OF_JOB.get(job.kind, ()):
            need(name, f"rdma_job ({job.kind})")
        if job.gpus:
            need(GPU, f"rdma_job (gpus_per_node: {job.gpus})")
        if job.queue:
            need(KUEUE, f"rdma_job (queue: {job.queue})")
    for label in collect_needed_labels(intent):
        need(NFD, f"label {label}")
    if olm and any(name in why for name in (JOBSET, KUEUE)):
        need(CERTIFICATES, " and ".join(name for name in (JOBSET, KUEUE) if name in why))
    return tuple(Needed(operator, tuple(why[operator.name])) for operator in TABLE if operator.name in why)
