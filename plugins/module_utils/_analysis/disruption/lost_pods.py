# SPDX-License-Identifier: GPL-3.0-or-later

"""Add to the plan of stage network the pods that the operators would delete for good, or take the network devices from.
The operators do not ask before. The rule is that of the drains of stage platform: the intent permits it, or the node
blocks the plan. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import DrainOptions
from ..._model.kubernetes.disruption import DisruptionPlan, NodePlan
from ..controllers.drains.budgets import PodsOfCluster
from ..controllers.drains.drain import explain_driver_users, list_drain_blockers


def add_lost_pods(planned: DisruptionPlan, pods: PodsOfCluster, allowed: DrainOptions) -> DisruptionPlan:
    """Return the plan with further reasons against the drains: for each drained node, the pods that its drain deletes
    for good. A pod is no reason if the options permit its deletion.

    :param planned: predicted drains and reboots
    :param pods: pods of the cluster
    :param allowed: options of drains in the intent
    """

    def find(node: NodePlan) -> tuple[str, ...]:
        if not is_drained(node, planned):
            return ()
        named = frozenset(node.pods)
        going = (pod for pod in pods.list_pods(node.node) if f"{pod.namespace}/{pod.name}" in named)
        return list_drain_blockers(going, allowed, "")

    return _add_blockers(planned, find)


def add_driver_users(
    planned: DisruptionPlan, names: typing.Container[str], users: typing.Mapping[str, typing.Sequence[str]]
) -> DisruptionPlan:
    """Return the plan with further reasons against the removal of the driver of NICs: for each node that loses the
    driver, the running pods that use it.

    :param planned: predicted drains and reboots
    :param names: names of the nodes that lose the driver
    :param users: pods that use the driver, by node; the empty name is for pods that may be on any node
    """

    def find(node: NodePlan) -> tuple[str, ...]:
        if node.node not in names:
            return ()
        return tuple(filter(None, [explain_driver_users((*users.get(node.node, ()), *users.get("", ())))]))

    return _add_blockers(planned, find)


def is_drained(node: NodePlan, planned: DisruptionPlan) -> bool:
    """Return whether an operator evicts pods from a node.

    :param planned: the plan with the node
    """
    if node.undrained or node.driver == "remove" or node.action not in ("drain", "reboot"):
        return False
    return planned.drains or bool(node.rolled_by) or node.driver in ("load", "reload")


def _add_blockers(planned: DisruptionPlan, find: typing.Callable[[NodePlan], typing.Iterable[str]]) -> DisruptionPlan:
    nodes = (
        dataclasses.replace(node, blockers=tuple(dict.fromkeys((*node.blockers, *find(node)))))
        for node in planned.nodes
    )
    return dataclasses.replace(planned, nodes=tuple(nodes))
