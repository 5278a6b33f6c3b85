# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the cluster from which a roll is planned, and why a roll leaves a node alone. Pure."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.budgets import PodsOfCluster
from ..._analysis.controllers.drains.room import RIGHTS, GateInputs
from ..._analysis.controllers.machine_configs.rules import find_rollout_blocker
from ..._model.base.phrases import describe_unread_remedy
from ..._model.kubernetes.disruption import Budget, ClusterPod
from ..._model.kubernetes.host import HOST_KINDS, HostConfig
from ..._model.kubernetes.node_roll import Mark
from ..._model.kubernetes.objects import ClusterNode

#: why a node is not taken down that another client has cordoned, such as an admin, kured or Cluster API
CORDONED = "the node is cordoned, but not by this roll, so the roll neither resets nor uncordons it"
UNCORDON = "When the work on the node is done, uncordon it, then rerun: kubectl uncordon {node}"


@dataclasses.dataclass(frozen=True)
class RollCluster(GateInputs, PodsOfCluster):
    """The state of the cluster from which a roll is planned.

    :ivar marks: record of an earlier roll, by node. None if the record cannot be read; nodes without a record are
        absent
    :ivar pods: pods that drains would evict
    :ivar budgets: PodDisruptionBudgets of these pods
    :ivar configs: MachineConfigs and KubeletConfigs to apply
    :ivar kubelets: existing objects that can conflict with ``configs``: KubeletConfigs that the collection does not
        manage, and the present MachineConfig of each pool that would lose limits of CRI-O
    :ivar machines: names of the nodes on which OpenShift's machine config operator runs a daemon
    :ivar paused_by_others: names of the MachineConfigPools that interrupted runs of other intents left paused
    """

    marks: typing.Mapping[str, typing.Optional[Mark]] = dataclasses.field(default_factory=dict)
    pods: tuple[ClusterPod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    configs: tuple[HostConfig, ...] = ()
    kubelets: tuple[HostConfig, ...] = ()
    machines: frozenset[str] = frozenset()
    paused_by_others: frozenset[str] = frozenset()

    @property
    def has_machine_configs(self) -> bool:
        """Return whether the machine config operator manages nodes of the cluster, also while it changes all of
        them.
        """
        return bool(self.machines) or super().has_machine_configs

    @property
    def cordoned(self) -> frozenset[str]:
        """The names of the nodes that a roll has cordoned, according to their marks."""
        return frozenset(name for name, mark in self.marks.items() if mark is not None and mark.cordoned)

    def explain_cordon(self, node: ClusterNode) -> str:
        """Return why a roll must not take a node down because another client has cordoned it, with a remedy. Return an
        empty text if it may, or if an operator takes the node down, which cordons it too.
        """
        if not node.unschedulable or node.name in self.cordoned or node.name in self.taken:
            return ""
        return f"{CORDONED}. {UNCORDON.format(node=node.name)}."

    def in_the_way(self, node: ClusterNode, inventory: typing.Container[str]) -> str:
        """Return the reason why a node must not be reset by its BMC, with a remedy: the machine config operator reboots
        the node, or it is not known whether it does. Return an empty text if its BMC may reset it.

        :param inventory: names of the nodes of the inventory
        """
        kinds = [kind for kind in ("MachineConfigPool", *HOST_KINDS) if kind in self.unread]
        if kinds and node.name in self.machines:
            told = "; ".join(f"{kind}: {self.unread[kind]}" for kind in kinds)
            return (
                f"it is unknown whether the machine config operator reboots the node ({told})."
                f" {describe_unread_remedy([self.unread[kind] for kind in kinds], RIGHTS)}."
            )
        why, remedy = find_rollout_blocker(node, self.machine_pools, self.nodes, inventory)
        return f"{why}. {remedy}." if why else ""
