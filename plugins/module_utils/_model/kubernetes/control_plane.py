# SPDX-License-Identifier: GPL-3.0-or-later

"""Components that keep the API server available while nodes are reset, and health checks that would remediate a node
that is down. Created by _parse/kubernetes.
"""

from __future__ import annotations

import dataclasses
import typing

from .disruption import LabelSelector

#: namespaces of the static pods of OpenShift's control plane
_GUARDED = frozenset(
    ("openshift-etcd", "openshift-kube-apiserver", "openshift-kube-controller-manager", "openshift-kube-scheduler")
)
#: stands for the kind of the controller of a guard pod
GUARD = "GuardController"


@dataclasses.dataclass(frozen=True)
class EtcdMember:
    """A static pod of etcd, which is a member of the etcd cluster of the control plane.

    :ivar node: node on which it runs
    :ivar ready: whether the condition Ready of the pod is true
    """

    node: str
    ready: bool


@dataclasses.dataclass(frozen=True)
class Machine:
    """A Machine of OpenShift or of Cluster API.

    :ivar labels: labels, by which a MachineHealthCheck selects it
    :ivar node: name of its node; empty if it has none yet
    """

    namespace: str
    name: str
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    node: str = ""


@dataclasses.dataclass(frozen=True)
class HealthCheck:
    """A MachineHealthCheck or a NodeHealthCheck. It remediates nodes that are not Ready for a while: it reboots, powers
    off or reprovisions them.

    :ivar kind: kind with its API group, such as ``MachineHealthCheck.machine.openshift.io``
    :ivar namespace: namespace of the MachineHealthCheck; empty for a NodeHealthCheck
    :ivar name: name of the object
    :ivar selector: selector of Machines or nodes; None selects all
    :ivar nodes: names of the nodes that it watches; None if unknown, so that it may watch any node
    :ivar paused: whether it is paused, by any component
    :ivar ours: whether the collection paused it, in this run or in an interrupted one
    :ivar intent: name of the intent whose run paused it; empty if the collection did not pause it, or an earlier
        release did
    """

    kind: str
    namespace: str
    name: str
    selector: typing.Optional[LabelSelector] = None
    nodes: typing.Optional[tuple[str, ...]] = None
    paused: bool = False
    ours: bool = False
    intent: str = ""

    def __str__(self) -> str:
        return f"{self.kind.partition('.')[0]} {self.namespace + '/' if self.namespace else ''}{self.name}"

    def watches(self, node: str) -> bool:
        """Return whether the health check watches a node. Return True also if it is unknown which nodes the health
        check watches.

        :param node: name of the node
        """
        return self.nodes is None or node in self.nodes


def is_guard_pod(namespace: str, name: str, node: str) -> bool:
    """Return whether a pod is a guard pod of OpenShift. Each operator of the control plane runs a guard pod on each
    control-plane node, so that a drain waits for its static pod. The metadata of a guard pod names no controller, but
    the operator creates the pod again. Only components of OpenShift create pods in these namespaces. [src
    openshift/library-go pkg/operator/staticpod/controller/guard getGuardPodName]

    :param namespace: namespace of the pod
    :param name: name of the pod
    :param node: name of its node; empty if the pod is not scheduled, which is never a guard pod
    """
    return namespace in _GUARDED and bool(node) and name.endswith(f"-guard-{node}")
