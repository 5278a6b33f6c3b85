# SPDX-License-Identifier: GPL-3.0-or-later

"""The present state of the cluster, from which the effects of new policies are predicted."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import Budget, ClusterPod, FunctionHolder, MachinePool, NodePool, OperatorSettings
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, Policy
from ..controllers.drains.budgets import PodsOfCluster
from ..controllers.sriov.card_firmware import CardTemplates


@dataclasses.dataclass(frozen=True)
class Live(PodsOfCluster):
    """The present state of the cluster, from which the effects of new policies are predicted.

    :ivar nodes: nodes of the cluster
    :ivar states: SriovNetworkNodeState of each node
    :ivar policies: SriovNetworkNodePolicies in the operator's namespace
    :ivar pools: SriovNetworkPoolConfigs of the cluster
    :ivar settings: SriovOperatorConfig of the operator
    :ivar machine_pools: MachineConfigPools; empty on other systems than OpenShift
    :ivar budgets: PodDisruptionBudgets of all namespaces
    :ivar pods: pods of all namespaces
    :ivar host_configs: MachineConfigs and KubeletConfigs to apply
    :ivar kubelet_configs: KubeletConfigs that the collection does not manage
    :ivar unread: reason for each kind of object that could not be read, by kind
    :ivar in_use: use of the physical functions that a node itself uses, by node and by interface or PCI address
    :ivar uppers: names of the interfaces above the physical functions, by node and by PCI address
    :ivar holders: running pods that may use virtual functions, by node; None if they were not read
    :ivar cards: templates and cards of NVIDIA's NIC configuration operator
    :ivar namespace: namespace of the SR-IOV operator
    """

    nodes: tuple[ClusterNode, ...] = ()
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    pools: tuple[NodePool, ...] = ()
    settings: OperatorSettings = dataclasses.field(default_factory=OperatorSettings)
    machine_pools: tuple[MachinePool, ...] = ()
    budgets: tuple[Budget, ...] = ()
    pods: tuple[ClusterPod, ...] = ()
    host_configs: tuple[HostConfig, ...] = ()
    kubelet_configs: tuple[HostConfig, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    in_use: typing.Mapping[str, typing.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    uppers: typing.Mapping[str, typing.Mapping[str, typing.Sequence[str]]] = dataclasses.field(default_factory=dict)
    holders: typing.Optional[typing.Mapping[str, typing.Sequence[FunctionHolder]]] = None
    cards: CardTemplates = dataclasses.field(default_factory=CardTemplates)
    namespace: str = ""
