# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster shows of Kubernetes' own kinds and of multus: nodes, workloads, attachments, commands in pods.
Filled by _parse/kubernetes."""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.kubernetes import Label, ObjectName, Subdomain, Uid
from ..boundary.words import Image


@dataclasses.dataclass(frozen=True)
class ClusterNode:
    """A Kubernetes node.

    :ivar ready: of its condition Ready; False also for Unknown
    :ivar allocatable: of the extended resources (those with a domain in the name), in pieces
    :ivar unread: extended resources whose number can't be read, as the node writes it
    :ivar machine_config: that OpenShift's daemon has brought it to, with no other one to come; empty while it changes,
        and where nobody says it
    :ivar not_ready: why it is not ready, as the condition Ready says it
    :ivar boot_id: another one after each boot; empty when the kubelet has not said it
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


@dataclasses.dataclass(frozen=True)
class Workload:
    """A Deployment or DaemonSet.

    :ivar wanted: pods that should run
    :ivar ready: pods that are ready
    :ivar nodes: of the pods that are ready, for a DaemonSet
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

    :ivar plugin: the first CNI plugin of its configuration
    :ivar fault: why multus could not read it; empty when it can
    """

    name: str
    plugin: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    fault: str = ""


@dataclasses.dataclass(frozen=True)
class CommandResult:
    """A command that ran in a pod.

    :ivar output: of both streams
    :ivar exit_code: of the command; None when the connection ended before it was known
    :ivar timed_out: the limit inside (timeout's 124 or 137) or the one outside was reached
    :ivar error: why there is no exit code
    """

    command: str
    exit_code: typing.Optional[int]
    output: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Container:
    """The container in which a command runs.

    :ivar name: of the container; empty for the only one of its pod
    """

    namespace: Label
    pod: Subdomain
    name: Label = ""

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod}" + (f", container {self.name}" if self.name else "")


@dataclasses.dataclass(frozen=True)
class Answer:
    """A command that ran in a pod to its end, all of whose input and output arrived.

    :ivar rc: its exit code; 128 and the number of a signal that ended it
    """

    rc: int
    stdout: bytes
    stderr: bytes
