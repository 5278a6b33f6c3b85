# SPDX-License-Identifier: GPL-3.0-or-later

"""The software that a training job depends on: operators, queues of Kueue, storage. Created by _parse/job/stack.py,
judged by _check/job/stack.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ..kubernetes.disruption import LabelSelector


@dataclasses.dataclass(frozen=True)
class Controller:
    """A Deployment that runs one of the operators.

    :ivar operator: name of the operator in the table of _model/operators/operators.py
    :ivar name: namespace/name of the Deployment
    :ivar version: version from its labels, its ClusterServiceVersion, or its image's tag; empty if not known
    :ivar wanted: number of pods that should run
    :ivar ready: number of ready pods
    :ivar origin: installer of the operator: helm, olm, nvidia-network-operator (whose chart contains it), or unknown
    :ivar release: Helm release; empty for none
    """

    operator: str
    name: str
    version: str
    wanted: int
    ready: int
    origin: str = "unknown"
    release: str = ""


@dataclasses.dataclass(frozen=True)
class PolicyState:
    """The state (status.state) of an object that configures an operator, such as a ClusterPolicy or a NicClusterPolicy.

    :ivar kind: kind of the object
    :ivar name: name of the object
    :ivar state: state that the operator reports, such as ``ready``; empty if it reports no state
    """

    kind: str
    name: str
    state: str


@dataclasses.dataclass(frozen=True)
class LocalQueue:
    """A LocalQueue of Kueue.

    :ivar name: namespace/name
    :ivar cluster_queue: name of the ClusterQueue to which it sends jobs
    :ivar inactive: why it is not active; empty if it is active
    """

    name: str
    cluster_queue: str
    inactive: str = ""


@dataclasses.dataclass(frozen=True)
class ClusterQueue:
    """A ClusterQueue of Kueue.

    :ivar name: name of the ClusterQueue
    :ivar groups: flavors of each resource group, each with its quotas in the format of Kubernetes
    :ivar cohort: cohort from which it may borrow; empty for none
    :ivar namespaces: selector of the namespaces whose jobs it accepts; None accepts no namespace
    :ivar inactive: why it is not active; empty if it is active
    """

    name: str
    groups: tuple[dict[str, dict[str, str]], ...]
    cohort: str = ""
    namespaces: typing.Optional[LabelSelector] = None
    inactive: str = ""


@dataclasses.dataclass(frozen=True)
class ResourceFlavor:
    """A ResourceFlavor of Kueue. If Kueue admits a pod with this flavor, it adds the labels and tolerations of the
    flavor to the pod.

    :ivar name: name of the ResourceFlavor
    :ivar labels: labels of the nodes of the flavor (nodeLabels), which the pods get as nodeSelector
    :ivar taints: taints that the pods must tolerate to get the flavor (nodeTaints), in the format of Kubernetes
    :ivar tolerations: tolerations that the pods get, in the format of Kubernetes
    """

    name: str
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[dict[str, typing.Any], ...] = ()
    tolerations: tuple[dict[str, typing.Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class FlavorGroup:
    """The flavors of one resource group of a ClusterQueue. Kueue gives the pods of a template one of these flavors.

    :ivar resources: names of the resources that the group covers
    :ivar flavors: flavors, in the order in which Kueue tries them
    """

    resources: frozenset[str]
    flavors: tuple[ResourceFlavor, ...]


@dataclasses.dataclass(frozen=True)
class StorageClass:
    """A StorageClass, by which volumes of a job are created.

    :ivar provisioner: driver that creates its volumes
    :ivar default: whether claims without a class use it
    :ivar shared: whether the cluster has a volume of it that many nodes can write (ReadWriteMany)
    """

    name: str
    provisioner: str
    default: bool = False
    shared: bool = False


@dataclasses.dataclass(frozen=True)
class Stack:
    """The software in the cluster that a training job depends on: operators, queues of Kueue and storage.

    :ivar controllers: Deployments of the operators
    :ivar policies: state of the objects that configure the operators
    :ivar local_queues: LocalQueues of Kueue in the namespaces of the jobs
    :ivar cluster_queues: ClusterQueues of Kueue
    :ivar frameworks: kinds of jobs that Kueue manages, by its configuration; None if that was not read
    :ivar storage: StorageClasses of the cluster
    :ivar namespaces: labels of the jobs' namespaces
    :ivar errors: texts that name each failed read and its reason. The objects concerned are unknown, not absent
    :ivar excluded: prefixes of resources that Kueue does not count, by its configuration
    :ivar replaced: resources in place of which Kueue counts others, by its configuration
    :ivar flavors: ResourceFlavors of Kueue; None if they were not read
    :ivar unread_operators: whether the Deployments of the operators were not all read. An operator that was not found
        is then unknown, not absent
    """

    controllers: tuple[Controller, ...] = ()
    policies: tuple[PolicyState, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    cluster_queues: tuple[ClusterQueue, ...] = ()
    frameworks: typing.Optional[tuple[str, ...]] = None
    storage: tuple[StorageClass, ...] = ()
    namespaces: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    flavors: typing.Optional[tuple[ResourceFlavor, ...]] = None
    unread_operators: bool = False

    def group_flavors(self) -> dict[str, tuple[FlavorGroup, ...]]:
        """Return the flavor groups of each LocalQueue, by its namespace/name. A LocalQueue is left out if its
        ClusterQueue, or a flavor of this ClusterQueue, was not read.
        """
        queues = {queue.name: queue for queue in self.cluster_queues}
        flavors = {flavor.name: flavor for flavor in self.flavors or ()}
        found = {}
        for local in self.local_queues:
            queue = queues.get(local.cluster_queue)
            if queue is not None and all(name in flavors for group in queue.groups for name in group):
                found[local.name] = tuple(
                    FlavorGroup(frozenset().union(*group.values()), tuple(flavors[name] for name in group))
                    for group in queue.groups
                )
        return found


def has_rights(account: str, bindings: typing.Collection[typing.Container[str]]) -> bool:
    """Return whether an administrator gave a ServiceAccount cluster-wide rights. Without this check, a tenant could
    imitate an operator, since a tenant can create a workload of any name with any image.

    :param account: namespace/name of the ServiceAccount
    :param bindings: accounts of each ClusterRoleBinding. If it is empty, the cluster has no RBAC or the bindings were
        not read, and each account is accepted
    """
    return not bindings or any(account in accounts for accounts in bindings)
