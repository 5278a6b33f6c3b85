# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of the wait for the networks of the fabrics: the fabrics, the objects of the API server, and the judgment of
each node.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import Budget, ClusterPod, MachinePool, NodePool
from ..._model.kubernetes.objects import Attachment, ClusterNode
from ..._model.kubernetes.wait import SyncNode
from ..._model.operators.nvidia import Reported
from ..._model.operators.sriov_operator import NodeState, Policy
from ..._parse.kubernetes.pod_state import PodState


@dataclasses.dataclass(frozen=True)
class Target:
    """One fabric whose network a run waits for, with the conditions that each node must meet.

    :ivar fabric: name of the fabric
    :ivar policies: names of its SriovNetworkNodePolicies
    :ivar resource: extended resource that pods request, with its prefix; empty for none
    :ivar attachment: namespace/name of its NetworkAttachmentDefinition
    :ivar nodes: names of the nodes that must become ready
    :ivar hcas_per_node: number of physical functions that each node must have
    :ivar predicates: conditions that must hold, in order: ``virtual_functions`` alone (sriov.py), or keys of PREDICATES
        (plain_network.py)
    :ivar objects: kind and name of each object that an operator must report as ready
    :ivar plugin: entries that the first CNI plugin of the attachment must contain
    :ivar pool: kind and namespace/name of the nv-ipam pool in which each node must have a share; empty for none
    :ivar offers: amount of the resource that each node must offer, for a network without virtual functions
    :ivar exact: whether a node must not offer more than that. A larger amount shows that the device plugin runs with
        the settings of another intent
    """

    fabric: str
    policies: tuple[str, ...]
    resource: str
    attachment: str
    nodes: tuple[str, ...]
    hcas_per_node: int
    predicates: tuple[str, ...] = ("virtual_functions",)
    objects: tuple[str, ...] = ()
    plugin: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    pool: str = ""
    offers: int = 1
    exact: bool = False

    @property
    def functions(self) -> bool:
        """Return whether the network of this fabric uses virtual functions."""
        return self.predicates == ("virtual_functions",)


@dataclasses.dataclass(frozen=True)
class NodeHistory:
    """The states of a node since the operator last changed its desired state.

    :ivar generation: generation of the SriovNetworkNodeState
    :ivar boot_id: id of the present boot
    :ivar ready: whether the node is Ready now
    :ivar boots: number of boots
    :ivar losses: number of changes from Ready to NotReady without a boot
    """

    generation: int = 0
    boot_id: str = ""
    ready: bool = False
    boots: int = 0
    losses: int = 0


@dataclasses.dataclass(frozen=True)
class ClusterState:
    """The objects of the API server, by name.

    :ivar nodes: nodes of the cluster
    :ivar states: SriovNetworkNodeStates, by node
    :ivar policies: SriovNetworkNodePolicies by name
    :ivar attachments: NetworkAttachmentDefinitions by namespace/name
    :ivar reports: objects that report their own progress, by kind, and then by name or namespace/name
    :ivar unread: reason why a kind was not listed yet, by kind; no node is judged until all kinds were listed
    :ivar blind: kinds that cannot be read and that only provide explanations, each with the reason
    :ivar stale: kinds with old data, since the API server does not answer at present
    :ivar pools: SriovNetworkPoolConfigs by name
    :ivar machine_pools: MachineConfigPools by name
    :ivar budgets: PodDisruptionBudgets by namespace/name
    :ivar daemons: name and state of the config daemon's pod on each node; None before they were read
    :ivar histories: recent states of each node
    :ivar pods: pods of nodes whose drain takes long, by node
    :ivar logs: last error in the log of config daemons that take long, by node
    :ivar parts: names and states of the pods of NVIDIA's network operator, for nodes that wait for it
    """

    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: typing.Mapping[str, Policy] = dataclasses.field(default_factory=dict)
    attachments: typing.Mapping[str, Attachment] = dataclasses.field(default_factory=dict)
    reports: typing.Mapping[str, typing.Mapping[str, Reported]] = dataclasses.field(default_factory=dict)
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    blind: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    stale: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    pools: typing.Mapping[str, NodePool] = dataclasses.field(default_factory=dict)
    machine_pools: typing.Mapping[str, MachinePool] = dataclasses.field(default_factory=dict)
    budgets: typing.Mapping[str, Budget] = dataclasses.field(default_factory=dict)
    daemons: typing.Optional[typing.Mapping[str, tuple[str, PodState]]] = None
    histories: typing.Mapping[str, NodeHistory] = dataclasses.field(default_factory=dict)
    pods: typing.Mapping[str, tuple[ClusterPod, ...]] = dataclasses.field(default_factory=dict)
    logs: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    parts: typing.Mapping[str, tuple[tuple[str, PodState], ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """The judgment of a node: its phase and details, and the suspect state that may end the wait early.

    :ivar node: phase and details
    :ivar suspect: keyword of a state that counts as a failure if it lasts longer than its grace period (grace.py);
        empty if only the time limit of the wait ends it
    """

    node: SyncNode
    suspect: str = ""
