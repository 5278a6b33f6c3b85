# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps a cluster's API server alive while nodes are reset, and what would remediate a node that is away. Filled
by _parse/kubernetes."""

from __future__ import annotations

import dataclasses
import typing

from .disruption import LabelSelector


@dataclasses.dataclass(frozen=True)
class EtcdMember:
    """A static pod of etcd.

    :ivar node: that it runs on
    :ivar ready: by its condition Ready
    """

    node: str
    ready: bool


@dataclasses.dataclass(frozen=True)
class Machine:
    """A Machine of OpenShift or of Cluster API.

    :ivar node: name of its node; empty while it has none
    """

    namespace: str
    name: str
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    node: str = ""


@dataclasses.dataclass(frozen=True)
class HealthCheck:
    """A MachineHealthCheck or a NodeHealthCheck, which remediates nodes that are not Ready for a while: it reboots,
    powers off or reprovisions them.

    :ivar kind: as the API server's access names it, such as ``MachineHealthCheck.machine.openshift.io``
    :ivar namespace: empty for a NodeHealthCheck
    :ivar selector: of Machines, or of nodes; None takes all
    :ivar nodes: names of the nodes that it watches; None where that can't be told: it may be each
    :ivar paused: by whomever
    :ivar ours: the collection has paused it, in this run or in one that was stopped
    """

    kind: str
    namespace: str
    name: str
    selector: typing.Optional[LabelSelector] = None
    nodes: typing.Optional[tuple[str, ...]] = None
    paused: bool = False
    ours: bool = False

    def __str__(self) -> str:
        return f"{self.kind.partition('.')[0]} {self.namespace + '/' if self.namespace else ''}{self.name}"

    def watches(self, node: str) -> bool:
        """Return whether it watches a node, or may."""
        return self.nodes is None or node in self.nodes
