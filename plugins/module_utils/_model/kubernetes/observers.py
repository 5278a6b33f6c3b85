# SPDX-License-Identifier: GPL-3.0-or-later

"""Observers: privileged pods, one a node, through which nodes are seen that nobody can log in to. What is asked for,
what there is, how each node stands."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Host, Word
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
#: what a container asks for, and what it gets at most
RESOURCES: dict[str, typing.Any] = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}

#: why nothing is set on a node that is reached by one
LOOKS_ONLY = "an observer changes nothing on its node. Reach it by ssh, or set them by hand"

Phase = typing.Literal["ready", "waiting", "failed"]


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The observers that are asked for.

    :ivar image: with its digest, so that all nodes run the same one
    :ivar run: that owns them; empty: nobody's, so that they stay until somebody removes them
    :ivar nodes: names; empty: all that ``node_selector`` takes
    :ivar node_selector: labels that a node must have
    :ivar pull_secrets: names of Secrets of the namespace
    :ivar priority_class: empty: that of the cluster
    :ivar lifetime: seconds after which a container ends itself
    :ivar resources: of the container, as Kubernetes writes them
    :ivar openshift: whether pods are admitted by SecurityContextConstraints
    :ivar recursive: whether the API server knows mounts that are read-only with all that is mounted below them
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
    """A pod of the DaemonSet.

    :ivar node: that it is for, also before it is scheduled
    :ivar phase: as in _parse/kubernetes/pod_state.py; ``suspect`` and ``detail`` likewise
    :ivar controller: uid of what controls it; empty: nothing does
    :ivar deleting: it is on its way out, and its controller will make another one
    :ivar image_id: of the image that runs, as the runtime names it; empty before it does
    :ivar template: of which template it is
    :ivar restarts: of its container
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
    """The DaemonSet of the observers.

    :ivar seen: whether its controller has seen what it asks for now
    :ivar template: of its pods
    :ivar node_selector: labels that a node must have
    :ivar nodes: names that its affinity takes; empty: all
    :ivar run: that owns it; empty: nobody's
    """

    name: Subdomain
    uid: Uid
    seen: bool
    template: str = ""
    node_selector: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    run: str = ""

    def controls(self, pod: ObserverPod) -> bool:
        """Return whether a pod is one of this DaemonSet's, by its uid: whoever makes a pod chooses its labels."""
        return bool(self.uid) and pod.controller == self.uid


@dataclasses.dataclass(frozen=True)
class ClusterEvent:
    """A core/v1 Event.

    :ivar kind: and ``name`` and ``uid``: of the object that it is about
    :ivar warning: whether its type is Warning
    :ivar time: when it was last seen, as the API server writes it; empty when it does not say
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
    """What the API server shows of the observers.

    :ivar daemon: None when it is not there
    :ivar nodes: of the cluster, by name
    :ivar unread: what could not be read, and why
    """

    namespace: str
    daemon: typing.Optional[ObserverSet] = None
    pods: tuple[ObserverPod, ...] = ()
    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    events: tuple[ClusterEvent, ...] = ()
    unread: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Observer:
    """How a node stands: it has an observer, or why it has none.

    :ivar phase: ``failed``: waiting does not help any more
    :ivar reason: in a word, see _analysis/controllers/observers.py; empty when it is ready
    :ivar detail: in the words of who refused it
    :ivar remedy: an instruction with its command; empty when it is ready
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
    """Answer of the module observers.

    :ivar nodes: each that was asked for
    :ivar timed_out: the limit was reached while some could still become ready
    :ivar waited_seconds: how long it took
    """

    namespace: Label
    image: str
    nodes: tuple[Observer, ...] = ()
    timed_out: bool = False
    waited_seconds: float = 0.0
