# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster objects that a training job meets: its namespace, networks, volumes, claims and nodes."""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..kubernetes.compute_domains import ClaimingPod, ComputeDomain
from ..kubernetes.device_claims import DeviceClaim, DeviceClass, DeviceSlice
from ..kubernetes.objects import ClusterNode
from .stack import FlavorGroup

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
        """Return the names of the extended resources that belong to attachments, whether or not the jobs reference
        these attachments.
        """
        return self.offered | {item.resource for item in self.attachments}

    @functools.cached_property
    def interface_sets(self) -> tuple[tuple[str, ...], ...]:
        """Return the lists of interfaces of the pods, each different list once."""
        return tuple(dict.fromkeys(pod.interfaces for pod in self.pods))

    @functools.cached_property
    def pods_by_devices(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the sorted names of the pods by the names of their RDMA devices. Pods without RDMA devices are left
        out.
        """
        return _group_names((pod.devices, pod.name) for pod in self.pods if pod.devices)

    @functools.cached_property
    def nodes_by_devices(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the sorted names of the nodes by the names of their HCAs."""
        return _group_names((names, node) for node, names in self.devices.items())


def _group_names(pairs: typing.Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for devices, name in pairs:
        found.setdefault(devices, []).append(name)
    return {devices: tuple(sorted(names)) for devices, names in found.items()}
