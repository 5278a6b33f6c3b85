# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that pods get by claims (Dynamic Resource Allocation), as far as a job tells them: what is asked for, and of
which class.

[k8s.io/api v0.37 resource/v1]
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..boundary.kubernetes import DevicePool, Label, LabelKey, Namespaced, RequestName, Subdomain

#: what a device is for a job: of its network; a GPU; a channel of NVLink between nodes; something else; or nobody knows
Use = typing.Literal["network", "gpu", "channel", "other", "unknown"]

#: what the devices of a driver are [kubernetes-sigs/dranet v1.4.0; k8snetworkplumbingwg/dra-driver-sriov;
#: kubernetes-sigs/dra-driver-nvidia-gpu; resource drivers of AMD and Intel; kubernetes-sigs/dra-example-driver]
DRIVERS: typing.Mapping[str, Use] = {
    "dra.net": "network",
    "sriovnetwork.k8snetworkplumbingwg.io": "network",
    "gpu.nvidia.com": "gpu",
    "gpu.amd.com": "gpu",
    "gpu.intel.com": "gpu",
    "compute-domain.nvidia.com": "channel",
    "tpu.google.com": "other",
}
#: what the devices of a class are where no cluster shows its selectors: names of classes in the drivers' own manifests,
#: beside those of the drivers themselves
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

#: devices of one driver in one machine: sixteen GPUs with all their partitions are some 400, all functions of sixteen
#: NICs some 2000
MOST_OF_NODE = 2048


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
class TakenClaim:
    """A claim of its pod that a container takes (resources.claims).

    :ivar name: of the claim in the pod
    :ivar request: of which alone the container gets the devices; empty: of all
    """

    name: Label
    request: RequestName = ""


@dataclasses.dataclass(frozen=True)
class DeviceWay:
    """One way to meet a request.

    :ivar count: devices that it needs at least; 1 where it takes all that a node has
    :ivar selectors: in CEL, beside those of its class
    :ivar tolerates: it takes some devices with a taint
    """

    device_class: Subdomain
    count: int = 1
    selectors: tuple[str, ...] = ()
    tolerates: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceRequest:
    """A request of a claim.

    :ivar ways: that meet it; the first that can counts
    """

    name: Label
    ways: tuple[DeviceWay, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(way.device_class for way in self.ways)

    def is_named(self, name: str) -> bool:
        """Tell whether a container that takes a request by this name gets devices of it. One of its ways may be named
        behind a slash."""
        return not name or name.partition("/")[0] == self.name


@dataclasses.dataclass(frozen=True)
class DeviceMatch:
    """A constraint of a claim: all its devices have one value of an attribute.

    :ivar attribute: with its domain
    :ivar requests: whose devices are meant; none: all
    """

    attribute: LabelKey
    requests: tuple[RequestName, ...] = ()


@dataclasses.dataclass(frozen=True)
class DeviceClaim:
    """A ResourceClaim, or what a ResourceClaimTemplate or a ComputeDomain makes.

    :ivar name: namespace/name
    :ivar matches: constraints
    :ivar nodes: that must take part, of a ComputeDomain; 0 where any number may
    """

    name: Namespaced
    template: bool
    requests: tuple[DeviceRequest, ...] = ()
    matches: tuple[DeviceMatch, ...] = ()
    nodes: int = 0


@dataclasses.dataclass(frozen=True)
class DeviceClass:
    """A DeviceClass.

    :ivar drivers: that its selectors ask for
    :ivar resource: extended resource that it serves to pods without a claim; empty where it serves none
    :ivar selectors: in CEL
    """

    name: Subdomain
    drivers: tuple[Subdomain, ...] = ()
    resource: LabelKey = ""
    selectors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class SliceDevice:
    """A device of a slice.

    :ivar attributes: by domain and name; None: a value that is not compared here, such as a version or a list. None in
        place of all: they are not known
    :ivar tainted: it is for pods alone that tolerate its taint
    """

    attributes: typing.Optional[dict[str, typing.Union[str, int, bool, None]]] = None
    tainted: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceSlice:
    """A ResourceSlice: a part of the devices that a driver offers.

    :ivar generation: of its pool; slices of earlier ones are on their way out
    :ivar node: that has them; empty where it is not said by a name
    :ivar devices: how many
    :ivar members: the devices; none where nothing but their number is known
    """

    driver: Subdomain
    pool: DevicePool
    generation: int
    node: Subdomain
    devices: int
    members: tuple[SliceDevice, ...] = ()


@dataclasses.dataclass(frozen=True)
class DeviceClaims:
    """The claims and classes of devices: of the job's own file, and of the cluster.

    :ivar unread: no cluster was asked for all of them, or it did not let us read them
    :ivar slices: of the cluster
    :ivar errors: objects of the cluster that are not of their form, and are left out
    """

    claims: tuple[DeviceClaim, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    unread: bool = True
    slices: tuple[DeviceSlice, ...] = ()
    errors: tuple[str, ...] = ()

    def find(self, namespace: str, claim: PodClaim) -> typing.Optional[DeviceClaim]:
        """Return the claim of a pod; None where it is not known."""
        return self._by_name.get((f"{namespace}/{claim.of}", claim.template))

    @functools.cached_property
    def _by_name(self) -> dict[tuple[str, bool], DeviceClaim]:
        """Claims by name; of two of one name the first."""
        return {(item.name, item.template): item for item in reversed(self.claims)}

    def driver_of(self, name: str) -> str:
        """Return the driver of whose devices a class is; empty where its selectors don't name exactly one."""
        drivers = self._drivers_of(name)
        return drivers[0] if len(drivers) == 1 else ""

    def count_devices(self, driver: str) -> int:
        """Return how many devices of a driver one node has at most, with those of which it is not said by a name who
        has them."""
        return self.count_shared(driver) + max(
            (count for count in self.devices_of(driver).values() if count <= MOST_OF_NODE), default=0
        )

    def count_shared(self, driver: str) -> int:
        """Return how many devices of a driver are of no node by name."""
        return self._counted.get(driver, {}).get("", 0)

    def devices_of(self, driver: str) -> dict[str, int]:
        """Return how many devices of a driver each node says that it has. More than ``MOST_OF_NODE`` no machine has."""
        return {node: count for node, count in self._counted.get(driver, {}).items() if node}

    @functools.cached_property
    def members(self) -> dict[tuple[str, str], list[SliceDevice]]:
        """Return the devices by driver and node; the node is empty where it is not said by a name."""
        found: dict[tuple[str, str], list[SliceDevice]] = {}
        for item in self._newest:
            devices = item.members or (SliceDevice(),) * min(item.devices, MOST_OF_NODE + 1)
            found.setdefault((item.driver, item.node), []).extend(devices)
        return found

    @functools.cached_property
    def _newest(self) -> tuple[DeviceSlice, ...]:
        """Slices of the newest generation of each pool.

        A node may write slices of its own name alone, and none of them is about the pool of another one, whatever it
        calls its pool.
        """
        newest: dict[tuple[str, str, str], int] = {}
        for item in self.slices:
            key = item.driver, item.pool, item.node
            newest[key] = max(newest.get(key, 0), item.generation)
        return tuple(item for item in self.slices if item.generation == newest[item.driver, item.pool, item.node])

    @functools.cached_property
    def _counted(self) -> dict[str, dict[str, int]]:
        """Devices by driver and node."""
        counted: dict[str, dict[str, int]] = {}
        for item in self._newest:
            by_node = counted.setdefault(item.driver, {})
            by_node[item.node] = by_node.get(item.node, 0) + item.devices
        return counted

    def use_of(self, name: str) -> Use:
        """Return what the devices of a class are: by the driver that it selects, else by its name."""
        uses = {DRIVERS[driver] for driver in self._drivers_of(name) if driver in DRIVERS}
        return uses.pop() if len(uses) == 1 else CLASSES.get(name, "unknown")

    def _drivers_of(self, name: str) -> tuple[str, ...]:
        """Return the drivers that the selectors of a class name; none where the class is not known."""
        return next((item.drivers for item in self.classes if item.name == name), ())
