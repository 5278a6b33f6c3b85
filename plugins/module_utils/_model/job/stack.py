# SPDX-License-Identifier: GPL-3.0-or-later

"""The stack beside a training job: operators, queues of Kueue, storage. Filled by _parse/job/stack.py, judged by
_check/job/stack.py."""

from __future__ import annotations

import dataclasses
import typing

from ..kubernetes.disruption import LabelSelector


@dataclasses.dataclass(frozen=True)
class Controller:
    """A Deployment that runs one of the operators.

    :ivar operator: its name in the table of _model/operators/operators.py
    :ivar version: of its labels, its ClusterServiceVersion, or its image's tag; empty where none says it
    :ivar origin: who installed it: helm, olm, nvidia-network-operator (as a part of it), or unknown: by hand
    :ivar release: of Helm; empty where it is of none
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
    """The state of an object that configures an operator, such as a ClusterPolicy or a NicClusterPolicy:
    status.state."""

    kind: str
    name: str
    state: str


@dataclasses.dataclass(frozen=True)
class LocalQueue:
    """A LocalQueue of Kueue.

    :ivar name: namespace/name
    :ivar inactive: why it is not active; empty where it is
    """

    name: str
    cluster_queue: str
    inactive: str = ""


@dataclasses.dataclass(frozen=True)
class ClusterQueue:
    """A ClusterQueue of Kueue.

    :ivar groups: of each resource group its flavors, each with its quotas as Kubernetes writes them
    :ivar cohort: from which it may borrow; empty where it is alone
    :ivar namespaces: whose jobs it takes; None takes those of none
    """

    name: str
    groups: tuple[dict[str, dict[str, str]], ...]
    cohort: str = ""
    namespaces: typing.Optional[LabelSelector] = None
    inactive: str = ""


@dataclasses.dataclass(frozen=True)
class StorageClass:
    """A StorageClass.

    :ivar shared: a volume of it is in the cluster that many nodes can write (ReadWriteMany)
    """

    name: str
    provisioner: str
    default: bool = False
    shared: bool = False


@dataclasses.dataclass(frozen=True)
class Stack:
    """All of it.

    :ivar frameworks: kinds of jobs that Kueue manages, of its configuration; None where that was not read
    :ivar namespaces: labels of the jobs' namespaces
    :ivar errors: what could not be read; what is not in the rest is not known then
    """

    controllers: tuple[Controller, ...] = ()
    policies: tuple[PolicyState, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    cluster_queues: tuple[ClusterQueue, ...] = ()
    frameworks: typing.Optional[tuple[str, ...]] = None
    storage: tuple[StorageClass, ...] = ()
    namespaces: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()


def has_rights(account: str, bindings: typing.Collection[typing.Container[str]]) -> bool:
    """Return whether an admin gave a ServiceAccount rights in the whole cluster. A tenant can make a workload of any
    name and any image, without them.

    :param bindings: accounts of each ClusterRoleBinding. Where there is none, the cluster has no RBAC, or it was not
        read: then each account counts
    """
    return not bindings or any(account in accounts for accounts in bindings)
