# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that pods get by claims (Dynamic Resource Allocation): the requests of a job, device classes, and the devices
in the cluster.

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
    """An entry of ``resourceClaims`` in a pod template: a claim that the containers of the pod may use.

    :ivar name: name by which its containers refer to it
    :ivar of: name of the ResourceClaim or ResourceClaimTemplate
    :ivar template: whether it names a template, from which each pod gets a separate claim
    """

    name: Label
    of: Subdomain
    template: bool

    @property
    def kind(self) -> str:
        return "ResourceClaimTemplate" if self.template else "ResourceClaim"


@dataclasses.dataclass(frozen=True)
class TakenClaim:
    """An entry of ``resources.claims`` of a container: a claim of its pod that the container uses.

    :ivar name: name of the claim in the pod
    :ivar request: request whose devices the container gets; empty for all requests
    """

    name: Label
    request: RequestName = ""


@dataclasses.dataclass(frozen=True)
class DeviceAlternative:
    """One alternative of a device request: a number of devices of a class.

    :ivar device_class: name of the DeviceClass
    :ivar count: minimum number of devices; 1 if it requests all devices of a node
    :ivar selectors: CEL selectors, in addition to those of its class
    :ivar tolerates: whether it accepts devices with some taint
    """

    device_class: Subdomain
    count: int = 1
    selectors: tuple[str, ...] = ()
    tolerates: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceRequest:
    """A request for devices in a claim, with one or several alternatives.

    :ivar name: name of the request in its claim
    :ivar ways: alternatives in order of preference; the first that can be satisfied is used
    """

    name: Label
    ways: tuple[DeviceAlternative, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(way.device_class for way in self.ways)

    def is_named(self, name: str) -> bool:
        """Return whether a container that names a request in ``resources.claims`` gets devices of this request. The
        name may include an alternative after a slash. An empty name means every request.

        :param name: entry ``request`` of ``resources.claims`` in the container
        """
        return not name or name.partition("/")[0] == self.name


@dataclasses.dataclass(frozen=True)
class DeviceMatch:
    """A constraint of a claim: the devices of its requests must have the same value of an attribute.

    :ivar attribute: attribute with its domain
    :ivar requests: requests to whose devices it applies; empty for all
    """

    attribute: LabelKey
    requests: tuple[RequestName, ...] = ()


@dataclasses.dataclass(frozen=True)
class DeviceClaim:
    """A ResourceClaim, or the claim that a ResourceClaimTemplate or a ComputeDomain creates.

    :ivar name: namespace/name
    :ivar template: whether the claim comes from a ResourceClaimTemplate, so that each pod gets a claim of its own
    :ivar requests: requests for devices that the claim contains
    :ivar matches: constraints between the devices of the requests
    :ivar nodes: required number of nodes of a ComputeDomain; 0 for any number
    """

    name: Namespaced
    template: bool
    requests: tuple[DeviceRequest, ...] = ()
    matches: tuple[DeviceMatch, ...] = ()
    nodes: int = 0


@dataclasses.dataclass(frozen=True)
class DeviceClass:
    """A DeviceClass: a kind of devices that requests name.

    :ivar drivers: drivers that its selectors name
    :ivar resource: extended resource by which pods get its devices without a claim; empty for none
    :ivar selectors: CEL selectors
    """

    name: Subdomain
    drivers: tuple[Subdomain, ...] = ()
    resource: LabelKey = ""
    selectors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class SliceDevice:
    """A device of a ResourceSlice.

    :ivar attributes: values by domain and name; a value is None if it is not compared, such as a version or a list.
        None instead of a mapping: not known
    :ivar tainted: whether only pods that tolerate its taint can use it
    """

    attributes: typing.Optional[dict[str, typing.Union[str, int, bool, None]]] = None
    tainted: bool = False


@dataclasses.dataclass(frozen=True)
class DeviceSlice:
    """A ResourceSlice: a part of the devices that a driver offers.

    :ivar driver: driver of the devices
    :ivar pool: name of the pool, to which several slices may belong
    :ivar generation: generation of its pool; slices of earlier generations are obsolete
    :ivar node: node that has the devices; empty if the slice does not name a node
    :ivar devices: number of devices
    :ivar members: the devices; empty if only their number is known
    """

    driver: Subdomain
    pool: DevicePool
    generation: int
    node: Subdomain
    devices: int
    members: tuple[SliceDevice, ...] = ()


@dataclasses.dataclass(frozen=True)
class DeviceClaims:
    """The device claims and DeviceClasses from the job's own file and from the cluster, and the ResourceSlices of the
    cluster.

    :ivar claims: ResourceClaims and ResourceClaimTemplates
    :ivar classes: DeviceClasses by which requests select devices
    :ivar unread: whether some kinds of these objects were not queried, or could not be read
    :ivar slices: slices of the cluster
    :ivar errors: invalid objects of the cluster, which are left out
    """

    claims: tuple[DeviceClaim, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    unread: bool = True
    slices: tuple[DeviceSlice, ...] = ()
    errors: tuple[str, ...] = ()

    def find(self, namespace: str, claim: PodClaim) -> typing.Optional[DeviceClaim]:
        """Return the ResourceClaim or ResourceClaimTemplate that an entry of a pod names, or None if it is not known.

        :param namespace: namespace of the pod
        :param claim: entry of ``resourceClaims`` of the pod
        """
        return self._by_name.get((f"{namespace}/{claim.of}", claim.template))

    @functools.cached_property
    def _by_name(self) -> dict[tuple[str, bool], DeviceClaim]:
        """Return an index of the claims by name and kind. If two claims have the same name and kind, it has the
        first.
        """
        return {(item.name, item.template): item for item in reversed(self.claims)}

    def driver_of(self, name: str) -> str:
        """Return the driver of a class's devices. Return an empty text if its selectors do not name exactly one driver.

        :param name: name of the DeviceClass
        """
        drivers = self._drivers_of(name)
        return drivers[0] if len(drivers) == 1 else ""

    def count_devices(self, driver: str) -> int:
        """Return the largest number of a driver's devices that one node can use, including devices without a node name.
        A node that reports more than ``MOST_OF_NODE`` is ignored.
        """
        return self.count_shared(driver) + max(
            (count for count in self.devices_of(driver).values() if count <= MOST_OF_NODE), default=0
        )

    def count_shared(self, driver: str) -> int:
        """Return the number of a driver's devices that are not assigned to a node by name."""
        return self._counted.get(driver, {}).get("", 0)

    def devices_of(self, driver: str) -> dict[str, int]:
        """Return the number of a driver's devices by node, as reported. A number above ``MOST_OF_NODE`` is not
        plausible.
        """
        return {node: count for node, count in self._counted.get(driver, {}).items() if node}

    @functools.cached_property
    def members(self) -> dict[tuple[str, str], list[SliceDevice]]:
        """Return the devices by driver and node. The node is empty for slices without a node name. Devices of which
        only the number is known have no attributes.
        """
        found: dict[tuple[str, str], list[SliceDevice]] = {}
        for item in self._newest:
            devices = item.members or (SliceDevice(),) * min(item.devices, MOST_OF_NODE + 1)
            found.setdefault((item.driver, item.node), []).extend(devices)
        return found

    @functools.cached_property
    def _newest(self) -> tuple[DeviceSlice, ...]:
        """Return the slices of the newest generation of each pool.

        Pools are separated by node: a node can write slices for its own name only, so it cannot replace the pool of
        another node by using its pool name.
        """
        newest: dict[tuple[str, str, str], int] = {}
        for item in self.slices:
            key = item.driver, item.pool, item.node
            newest[key] = max(newest.get(key, 0), item.generation)
        return tuple(item for item in self.slices if item.generation == newest[item.driver, item.pool, item.node])

    @functools.cached_property
    def _counted(self) -> dict[str, dict[str, int]]:
        """Return the number of devices by driver and node."""
        counted: dict[str, dict[str, int]] = {}
        for item in self._newest:
            by_node = counted.setdefault(item.driver, {})
            by_node[item.node] = by_node.get(item.node, 0) + item.devices
        return counted

    def use_of(self, name: str) -> Use:
        """Return the use of the devices of a DeviceClass: network, gpu, channel (NVLink between nodes), other or
        unknown. It is derived from the driver that the class selects, else from the name of the class.

        :param name: name of the DeviceClass
        """
        uses = {DRIVERS[driver] for driver in self._drivers_of(name) if driver in DRIVERS}
        return uses.pop() if len(uses) == 1 else CLASSES.get(name, "unknown")

    def _drivers_of(self, name: str) -> tuple[str, ...]:
        """Return the drivers that the selectors of a class name. Return an empty tuple if the class is not known."""
        return next((item.drivers for item in self.classes if item.name == name), ())
