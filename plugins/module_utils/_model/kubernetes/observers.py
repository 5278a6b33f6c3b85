# SPDX-License-Identifier: GPL-3.0-or-later

"""Observers: privileged pods, one per node, that read nodes without ssh access. The classes describe the desired
observers, their observed state, and the state of each node.
"""

from __future__ import annotations

import dataclasses
import typing

from ..base.load import load
from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Host, Image, Word
from .objects import ClusterNode

#: of the namespace, unless the user names another one; of the DaemonSet and its ServiceAccount; of the container
NAMESPACE, DAEMON_SET, CONTAINER = "linerate-observers", "linerate-observer", "observer"
#: where the container has the files of its node, which it can't write
HOST = "/host"
#: label of the namespace: it is the collection's own, or an admin has prepared it
LABEL, OWN, PREPARED = "linerate.rdma/observers", "own", "prepared"
#: annotation of the pods: which template they are of
TEMPLATE = "linerate.rdma/template"
#: seconds after which a container ends itself, with all that hangs in it; the kubelet starts it anew
LIFETIME_SECONDS = 14400
#: a public image with Python, for users without a registry, with the digest that NVIDIA publishes for it. Its tools and
#: the sources for them are in docs/observers.md. It is named in messages and is no default: the user chooses the image
#: that runs privileged on each node
PUBLIC_IMAGE = (
    "nvcr.io/nvidia/mellanox/nic-configuration-operator-daemon"
    "@sha256:ff80af3402473fba6251f36f924ddc50341f954980bfba919cae70925e644318"
)
#: what a container asks for, and what it gets at most
RESOURCES: dict[str, typing.Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}

#: why nothing is set on a node that is reached by one
LOOKS_ONLY = "an observer does not change its node. Connect to the node by SSH, or change the settings manually"

Phase = typing.Literal["ready", "waiting", "failed"]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The configuration of the observers to create.

    :ivar image: image with its digest, so that all nodes run the same one
    :ivar namespace: namespace of the pods
    :ivar run: id of the run that owns the observers; empty for none, so that they stay until they are removed
        explicitly
    :ivar nodes: names of nodes; empty for all nodes that ``node_selector`` selects
    :ivar node_selector: required labels of a node
    :ivar pull_secrets: names of Secrets of the namespace
    :ivar pull_policy: pull policy of Kubernetes
    :ivar priority_class: priority class of the pods; empty for the default of the cluster
    :ivar lifetime: seconds after which a container exits
    :ivar resources: resources of the container, in the format of Kubernetes
    :ivar openshift: whether pods are admitted by SecurityContextConstraints
    :ivar recursive: whether the API server supports recursive read-only mounts
    """

    image: str
    namespace: str = NAMESPACE
    run: str = ""
    nodes: tuple[str, ...] = ()
    node_selector: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()
    pull_policy: str = "IfNotPresent"
    priority_class: str = ""
    lifetime: int = LIFETIME_SECONDS
    resources: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=RESOURCES.copy)
    openshift: bool = False
    recursive: bool = False


@dataclasses.dataclass(frozen=True)
class ObserverPod:
    """A pod of the DaemonSet of the observers, with its state.

    :ivar node: name of the target node, which is known before the pod is scheduled
    :ivar phase: state of the pod, as _parse/kubernetes/pod_state.py derives it
    :ivar detail: description of that state
    :ivar suspect: keyword of a state that may not resolve itself; empty for none
    :ivar container: name of its container
    :ivar image_id: id of the running image, from the container runtime; empty before it runs
    :ivar template: hash of the pod template that it was created from
    :ivar restarts: number of restarts of its container
    :ivar controller: uid of its controller; empty for none
    :ivar deleting: whether it is being deleted, and its controller will create another one
    """

    name: Subdomain
    uid: Uid
    node: Subdomain
    phase: Phase
    detail: str
    suspect: str = ""
    container: Label = CONTAINER
    image_id: str = ""
    template: str = ""
    restarts: int = 0
    controller: Uid = ""
    deleting: bool = False


@dataclasses.dataclass(frozen=True)
class ObserverSet:
    """The DaemonSet that creates an observer pod on each node.

    :ivar name: name of the DaemonSet
    :ivar uid: uid of the DaemonSet
    :ivar seen: whether the DaemonSet controller has observed the current generation
    :ivar template: hash of the pod template
    :ivar node_selector: required labels of a node
    :ivar nodes: node names in the affinity; empty for all nodes
    :ivar run: id of the run that owns the DaemonSet; empty for none
    :ivar image: image of its container; empty if its name is not valid
    """

    name: Subdomain
    uid: Uid
    seen: bool
    template: str = ""
    node_selector: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    run: str = ""
    image: Image = ""

    def is_controller_of(self, pod: ObserverPod) -> bool:
        """Return whether a pod belongs to this DaemonSet, by its controller's uid. Labels are not sufficient, since any
        creator of a pod can choose them.
        """
        return bool(self.uid) and pod.controller == self.uid


@dataclasses.dataclass(frozen=True)
class ClusterEvent:
    """An Event (core/v1) about an object of the cluster.

    :ivar kind: kind of the object that the event is about
    :ivar name: name of that object
    :ivar uid: uid of that object
    :ivar reason: reason of the event, such as FailedCreate
    :ivar message: text of the event
    :ivar warning: whether its type is Warning
    :ivar time: time of its last occurrence, as the API server writes it; empty if missing
    """

    kind: Word
    name: ObjectName
    uid: Uid
    reason: str
    message: str
    warning: bool = True
    time: str = ""


@dataclasses.dataclass(frozen=True)
class ObserversSeen:
    """The state of the observers, as the API server reports it.

    :ivar namespace: namespace of the observers
    :ivar daemon: DaemonSet of the observers; None if it does not exist
    :ivar pods: pods of the DaemonSet
    :ivar nodes: nodes of the cluster, by name
    :ivar events: events about the DaemonSet and its pods
    :ivar unread: kinds that could not be read, with the reason
    """

    namespace: str
    daemon: typing.Optional[ObserverSet] = None
    pods: tuple[ObserverPod, ...] = ()
    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    events: tuple[ClusterEvent, ...] = ()
    unread: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Observer:
    """The state of the observer on one node: its pod, its phase, and the cause if it is not ready.

    :ivar node: name of the node
    :ivar phase: state of the observer; ``failed`` if further waiting does not help
    :ivar reason: keyword, see _analysis/controllers/observers.py; empty if it is ready
    :ivar detail: message of the component that refused or failed
    :ivar remedy: an instruction with its command; empty if it is ready
    :ivar pod: name of its pod; empty without one
    :ivar uid: uid of its pod
    :ivar container: name of its container
    :ivar image_id: id of the running image; empty before it runs
    :ivar restarts: number of restarts of its container
    """

    node: Host
    phase: Phase
    reason: str = ""
    detail: str = ""
    remedy: str = ""
    pod: Subdomain = ""
    uid: Uid = ""
    container: Label = ""
    image_id: str = ""
    restarts: int = 0


@dataclasses.dataclass(frozen=True)
class ObserversFacts:
    """The state of the observers after the module observers has created them and waited for them.

    :ivar namespace: namespace of the observers
    :ivar image: image of the observers
    :ivar nodes: state of each requested node
    :ivar timed_out: whether the time limit was reached while some observers could still become ready
    :ivar waited_seconds: duration of the wait
    """

    namespace: Label
    image: str
    nodes: tuple[Observer, ...] = ()
    timed_out: bool = False
    waited_seconds: float = 0.0


def load_observers(answer: typing.Mapping[str, typing.Any]) -> ObserversFacts:
    """Return the observers of a run from the answer of the module observers, which the run has stored as a fact.

    :param answer: whole answer of the module, which also contains what it changed
    :raises LoadError: a value is malformed
    """
    known = {field.name for field in dataclasses.fields(ObserversFacts)}
    found: ObserversFacts = load(
        ObserversFacts, {name: value for name, value in answer.items() if name in known}, "observers"
    )
    return found
