# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver containers that NVIDIA's operators start on nodes, and what of a node decides which image that is. Filled by
_parse/operators/drivers.py."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import LabelValue, ObjectName, Subdomain
from ..boundary.words import Version, Word

#: kinds of the policies that bring a driver: of the HCAs (DOCA-OFED), and of the GPUs. The second of each is for the
#: nodes of a selector; NVIDIA's network operator has its own from 26.4 on, and the GPU operator obeys its own where the
#: ClusterPolicy says so (useNvidiaDriverCRD)
NIC, NIC_OF_NODES = OF_NICS = "NicClusterPolicy", "NicNodePolicy"
GPU, GPU_OF_NODES = OF_GPUS = "ClusterPolicy", "NVIDIADriver"


@dataclasses.dataclass(frozen=True)
class DriverPolicy:
    """The driver container that a NicClusterPolicy or NicNodePolicy (mellanox.com/v1alpha1), a ClusterPolicy
    (nvidia.com/v1) or an NVIDIADriver (nvidia.com/v1alpha1) says of its driver container.

    :ivar kind: one of these
    :ivar container: it brings a driver container; without one the nodes have a driver of their own
    :ivar image: repository and name, without a tag; empty where the operator has a default
    :ivar version: of the driver, its branch where it is precompiled, or a digest (sha256:...); empty where the operator
        has a default
    :ivar precompiled: only an image that was compiled for the node's kernel is taken
    :ivar repositories: ConfigMap with the package repositories of the site; empty where there is none
    :ivar ready: the operator says that this driver runs
    :ivar message: what the operator says of it where it is not ready
    :ivar delegated: objects of kind NVIDIADriver bring the driver in its place
    :ivar nodes: that its selector takes; None where it has no selector
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
    """A node, by what the operators choose the image for it.

    :ivar os: ID of os-release, as node feature discovery has it: ubuntu, rhel, rhcos, sles...; empty where no label
        says it, like the next two
    :ivar version: VERSION_ID of os-release
    :ivar kernel: release of the kernel that runs
    :ivar machine: amd64 or arm64, as the kubelet says it
    :ivar ostree: version of RHCOS, by which OpenShift's driver toolkit is chosen; empty elsewhere
    :ivar gpu: it has a GPU of NVIDIA, by its labels
    """

    name: Subdomain
    os: Word = ""
    version: Version = ""
    kernel: Version = ""
    machine: LabelValue = ""
    ostree: Version = ""
    gpu: bool = False


def driver_image(policy: DriverPolicy, host: DriverHost, precompiled: bool) -> str:
    """Return the image that the operator starts on a node, with its tag.

    [Mellanox/network-operator pkg/state/state_ofed.go: <version>-<os><os version>-<arch>, precompiled
    <version>-<kernel>-<os><os version>-<arch>, or by digest; NVIDIA/gpu-operator api/nvidia/v1alpha1 GetImagePath,
    GetPrecompiledImagePath: <version>-<os><os version>, precompiled <branch>-<kernel>-<os><os version>]

    What is left to the operator is in capitals.

    :param precompiled: the one that was compiled for the node's kernel
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
