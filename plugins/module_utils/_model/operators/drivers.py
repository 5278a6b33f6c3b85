# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver containers that NVIDIA's operators start on nodes, and the properties of the nodes that determine their
image. Created by _parse/operators/drivers.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.phrases import count_of
from ..base.text import join_first
from ..boundary.kubernetes import Label, LabelValue, ObjectName, Subdomain
from ..boundary.words import Version, Word
from ..kubernetes.disruption import DriverAction, LabelSelector

#: kinds of the policies that bring a driver: of the HCAs (DOCA-OFED), and of the GPUs. The second of each is for the
#: nodes of a selector; NVIDIA's network operator has its own from 26.4 on, and the GPU operator obeys its own where the
#: ClusterPolicy says so (useNvidiaDriverCRD)
NIC, NIC_OF_NODES = OF_NICS = "NicClusterPolicy", "NicNodePolicy"
GPU, GPU_OF_NODES = OF_GPUS = "ClusterPolicy", "NVIDIADriver"


#: begin of the measured value of a finding where a node lacks a label by which the operator chooses the image
LABEL_ABSENT = "label absent"


@dataclasses.dataclass(frozen=True)
class DriverPolicy:
    """The driver container in a NicClusterPolicy or NicNodePolicy (mellanox.com/v1alpha1), a ClusterPolicy
    (nvidia.com/v1) or an NVIDIADriver (nvidia.com/v1alpha1).

    :ivar kind: NicClusterPolicy, NicNodePolicy, ClusterPolicy or NVIDIADriver
    :ivar container: whether it deploys a driver container; otherwise the nodes have their own driver
    :ivar image: repository and name, without a tag; empty for the operator's default
    :ivar version: version of the driver, its branch if precompiled, or a digest (sha256:...); empty for the operator's
        default
    :ivar precompiled: whether only an image compiled for the node's kernel is accepted
    :ivar repositories: ConfigMap with the package repositories of the site; empty for none
    :ivar ready: whether the operator reports the driver as running
    :ivar message: message of the operator if it is not ready
    :ivar delegated: whether objects of kind NVIDIADriver deploy the driver instead
    :ivar nodes: nodes that its selector selects; None without a selector
    """

    kind: Word
    name: ObjectName
    container: bool = True
    image: str = ""
    version: str = ""
    precompiled: bool = False
    repositories: str = ""
    ready: bool = False
    message: str = ""
    delegated: bool = False
    nodes: typing.Optional[tuple[Subdomain, ...]] = None


@dataclasses.dataclass(frozen=True)
class DriverHost:
    """The properties of a node that determine its driver image.

    :ivar name: name of the node
    :ivar os: ID of os-release, from node feature discovery: ubuntu, rhel, rhcos, sles...; empty without the label
    :ivar version: VERSION_ID of os-release; empty without the label
    :ivar kernel: release of the running kernel, from a label or the kubelet
    :ivar machine: amd64 or arm64, from the kubelet
    :ivar ostree: version of RHCOS, by which OpenShift's driver toolkit is selected; empty on other systems
    :ivar gpu: whether it has an NVIDIA GPU, by its labels
    """

    name: Subdomain
    os: Word = ""
    version: Version = ""
    kernel: Version = ""
    machine: LabelValue = ""
    ostree: Version = ""
    gpu: bool = False


@dataclasses.dataclass(frozen=True)
class DriverChange:
    """A change of the driver that NVIDIA's network operator loads on nodes by its NicClusterPolicy, or the GPU operator
    by its ClusterPolicy.

    :ivar policy: name of the NicClusterPolicy or ClusterPolicy; of a NicNodePolicy, its kind and name
    :ivar action: ``load`` for a new or changed driver, ``remove``, ``reload`` for the driver of GPUs
    :ivar reason: the change, as text
    :ivar at_once: number of nodes that the operator drains at the same time; None for no limit
    :ivar affinity: terms of the policy's nodeAffinity, of which a node must meet one; empty for all nodes. Requirements
        other than In, NotIn, Exists and DoesNotExist are left out
    :ivar kept_out: names of the nodes with a taint that the pods of the driver do not tolerate
    :ivar limit: origin of ``at_once``; empty for the upgradePolicy of the policy
    :ivar nodes: names of the nodes; None if their labels determine them
    :ivar all_pods: of ``reload``, whether the operator evicts all pods; otherwise those that use GPUs
    """

    policy: str
    action: DriverAction
    reason: str
    at_once: typing.Optional[int] = 1
    affinity: tuple[LabelSelector, ...] = ()
    kept_out: tuple[Subdomain, ...] = ()
    all_pods: bool = False
    limit: str = ""
    nodes: typing.Optional[tuple[Subdomain, ...]] = None


@dataclasses.dataclass(frozen=True)
class OperatorUpgrade:
    """Another release of an operator, or other values of its chart. Either can change the driver of an operator of
    NVIDIA, which it then restarts on all nodes that have it, and what the SR-IOV network operator runs on nodes. A
    first installation can change nodes as well, by objects that an earlier installation has left.

    :ivar operator: name of the operator; an operator without a driver restarts nothing
    :ivar text: the upgrade, as text, such as ``chart gpu-operator-v26.3.0 -> v26.3.3``
    :ivar driver: fields of ``spec.driver`` of the ClusterPolicy that the upgrade sets; empty if it sets none
    :ivar namespace: namespace of the SR-IOV network operator; empty for the operators of NVIDIA, whose objects have no
        namespace
    :ivar mode: configurationMode of the SriovOperatorConfig that the upgrade sets; empty if it sets none
    :ivar creates: name of the ClusterPolicy that the run creates, instead of an upgrade; empty for an upgrade
    :ivar installs: whether it is the first installation of the operator, and no upgrade
    """

    operator: str
    text: str
    driver: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    namespace: Label = ""
    mode: Word = ""
    creates: str = ""
    installs: bool = False

    @property
    def title(self) -> str:
        """The upgrade or the installation as text, such as ``the upgrade gpu.v1.0.0 -> gpu.v1.1.0``."""
        return f"the {'installation of' if self.installs else 'upgrade'} {self.text}"


@dataclasses.dataclass(frozen=True)
class UpgradeEffect:
    """The effect of the upgrade of an operator on nodes, and the reasons why it must not begin now.

    :ivar nodes: nodes that it changes; those outside of the inventory are marked
    :ivar refused: reasons against it, each with its remedy; empty if it may begin
    :ivar verb: what it does to the nodes, as text
    :ivar limit: how many of the nodes at the same time, and what else is known, as text; empty for nothing
    """

    nodes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    verb: str = "restarts the driver of"
    limit: str = ""

    @property
    def text(self) -> str:
        """The effect as text, such as ``restarts the driver of 2 nodes: a, b``."""
        names = f": {join_first(self.nodes)}" if self.nodes else ""
        limit = f" ({self.limit})" if self.limit else ""
        return f"{self.verb} {count_of(len(self.nodes), 'node')}{names}{limit}"


def driver_image(policy: DriverPolicy, host: DriverHost, precompiled: bool) -> str:
    """Return the image that the operator starts on a node, with its tag. Parts that the operator chooses are in
    capitals.

    [Mellanox/network-operator pkg/state/state_ofed.go: <version>-<os><os version>-<arch>, precompiled
    <version>-<kernel>-<os><os version>-<arch>, or by digest; NVIDIA/gpu-operator api/nvidia/v1alpha1 GetImagePath,
    GetPrecompiledImagePath: <version>-<os><os version>, precompiled <branch>-<kernel>-<os><os version>]

    :param precompiled: whether to return the image compiled for the node's kernel
    """
    name = policy.image or "IMAGE"
    if policy.version.startswith("sha256:"):
        return f"{name}@{policy.version}"
    parts: list[str] = [
        policy.version or "VERSION",
        *([host.kernel] if precompiled else []),
        f"{host.os}{host.version}",
    ]
    return f"{name}:{'-'.join([*parts, host.machine] if policy.kind in OF_NICS else parts)}"
