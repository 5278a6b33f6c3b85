# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that pods get by claims (Dynamic Resource Allocation), as far as a job tells them: what is asked for, and of which class.

[k8s.io/api v0.37 resource/v1]
"""

from __future__ import annotations

import dataclasses
import typing

from .boundary.kubernetes import Label, LabelKey, Namespaced, Subdomain

#: what a device is for a job: of its network; a GPU; a channel of NVLink between nodes; something else; or nobody knows
Use = typing.Literal["network", "gpu", "channel", "other", "unknown"]

#: what the devices of a driver are [kubernetes-sigs/dranet v1.4.0; k8snetworkplumbingwg/dra-driver-sriov; kubernetes-sigs/dra-driver-nvidia-gpu; resource
#: drivers of AMD and Intel; kubernetes-sigs/dra-example-driver]
DRIVERS: typing.Mapping[str, Use] = {
    "dra.net": "network",
    "sriovnetwork.k8snetworkplumbingwg.io": "network",
    "gpu.nvidia.com": "gpu",
    "gpu.amd.com": "gpu",
    "gpu.intel.com": "gpu",
    "compute-domain.nvidia.com": "channel",
    "tpu.google.com": "other",
}
#: what the devices of a class are where no cluster shows its selectors: names of classes in the drivers' own manifests, beside those of the drivers themselves
CLASSES: typing.Mapping[str, Use] = {
    **DRIVERS,
    "dranet": "network",
    "dranet.net": "network",
    "mrdma.google.com": "network",
    "netdev.google.com": "network",
    "mig.nvidia.com": "gpu",
    "vfio.gpu.nvidia.com": "gpu",
    "compute-domain-default-channel.nvidia.com": "channel",
    "compute-domain-daemon.nvidia.com": "channel",
}


@dataclasses.dataclass(frozen=True)
class PodClaim:
    """A claim of a pod (resourceClaims of its template).

    :ivar name: by which its containers take it
    :ivar of: name of the ResourceClaim or ResourceClaimTemplate
    :ivar template: it is of a template, of which each pod gets a claim of its own
    """

    name: Label
    of: Subdomain
    template: bool

    @property
    def kind(self) -> str:
        return "ResourceClaimTemplate" if self.template else "ResourceClaim"


@dataclasses.dataclass(frozen=True)
class DeviceClaim:
    """A ResourceClaim, or what a ResourceClaimTemplate makes.

    :ivar name: namespace/name
    :ivar classes: of each request the classes that meet it, the first that can counts
    """

    name: Namespaced
    template: bool
    classes: typing.Tuple[typing.Tuple[Subdomain, ...], ...]


@dataclasses.dataclass(frozen=True)
class DeviceClass:
    """A DeviceClass.

    :ivar drivers: that its selectors ask for
    :ivar resource: extended resource that it serves to pods without a claim; empty where it serves none
    """

    name: Subdomain
    drivers: typing.Tuple[Subdomain, ...] = ()
    resource: LabelKey = ""


@dataclasses.dataclass(frozen=True)
class DeviceClaims:
    """What is known of claims and classes: of the job's own file, and of the cluster.

    :ivar unread: no cluster was asked for all of them, or it did not let us read them
    """

    claims: typing.Tuple[DeviceClaim, ...] = ()
    classes: typing.Tuple[DeviceClass, ...] = ()
    unread: bool = True

    def find(self, namespace: str, claim: PodClaim) -> typing.Optional[DeviceClaim]:
        """Return the claim of a pod; None where it is not known."""
        name = f"{namespace}/{claim.of}"
        return next((item for item in self.claims if (item.name, item.template) == (name, claim.template)), None)

    def use_of(self, name: str) -> Use:
        """Return what the devices of a class are: by the driver that it selects, else by its name."""
        found = next((item for item in self.classes if item.name == name), None)
        uses = {DRIVERS[driver] for driver in found.drivers if driver in DRIVERS} if found is not None else set()
        return uses.pop() if len(uses) == 1 else CLASSES.get(name, "unknown")
