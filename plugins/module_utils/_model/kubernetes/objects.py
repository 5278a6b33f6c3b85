# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of Kubernetes' own kinds and of multus: nodes, workloads, attachments, commands in pods. Created by
_parse/kubernetes.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Image


@dataclasses.dataclass(frozen=True)
class ClusterNode:
    """A Kubernetes node.

    :ivar ready: status of its condition Ready; False also for Unknown
    :ivar unschedulable: whether it is cordoned
    :ivar allocatable: number of each extended resource (resources with a domain in the name)
    :ivar unread: extended resources whose number is not valid, as the node reports it
    :ivar machine_config: MachineConfig that OpenShift's daemon has applied; empty while it changes, and if not reported
    :ivar not_ready: why it is not ready, from the condition Ready
    :ivar boot_id: id that changes with each boot; empty if the kubelet has not reported it
    :ivar machine: name of its Machine of Cluster API, by an annotation of the node; empty if it has none
    """

    ONCE = ("name",)

    name: Subdomain
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    ready: bool = False
    unschedulable: bool = False
    allocatable: dict[str, int] = dataclasses.field(default_factory=dict)
    boot_id: Uid = ""
    not_ready: str = ""
    unread: dict[str, str] = dataclasses.field(default_factory=dict)
    machine_config: Subdomain = ""
    machine: Subdomain = ""


@dataclasses.dataclass(frozen=True)
class Workload:
    """A Deployment or DaemonSet.

    :ivar wanted: number of pods that should run
    :ivar ready: number of pods that are ready
    :ivar images: images of its containers
    :ivar nodes: nodes of the ready pods of a DaemonSet; empty for a Deployment
    """

    name: ObjectName
    namespace: Label
    wanted: int
    ready: int
    images: tuple[Image, ...] = ()
    nodes: tuple[Subdomain, ...] = ()


@dataclasses.dataclass(frozen=True)
class Attachment:
    """A NetworkAttachmentDefinition (k8s.cni.cncf.io/v1).

    :ivar name: namespace/name
    :ivar plugin: first CNI plugin in the configuration of the attachment
    :ivar fault: why multus cannot read it; empty if it can
    """

    name: str
    plugin: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    fault: str = ""


@dataclasses.dataclass(frozen=True)
class CommandResult:
    """The result of a command in a pod, which may have been interrupted.

    :ivar command: command line
    :ivar exit_code: exit code of the command; None if the connection ended first
    :ivar output: standard output and standard error, mixed
    :ivar timed_out: whether the limit in the pod (timeout's 124 or 137) or the one of the caller was reached
    :ivar seconds: duration of the command in seconds
    :ivar error: reason why there is no exit code; empty if there is one
    """

    command: str
    exit_code: typing.Optional[int]
    output: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Container:
    """The identity of the container in which a command runs: namespace, pod and name.

    :ivar namespace: namespace of the pod
    :ivar pod: name of the pod
    :ivar name: name of the container; empty for the only one of its pod
    """

    namespace: Label
    pod: Subdomain
    name: Label = ""

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod}" + (f", container {self.name}" if self.name else "")


@dataclasses.dataclass(frozen=True)
class Answer:
    """The result of a command that ran in a pod to its end, with its two outputs kept separate.

    :ivar rc: exit code; 128 plus the number of the signal if a signal ended it
    :ivar stdout: standard output of the command
    :ivar stderr: standard error of the command
    """

    rc: int
    stdout: bytes
    stderr: bytes
