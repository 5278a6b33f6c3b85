# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes that a MachineConfigPool has given a new configuration in this run."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Intent
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import Roll


def list_rolled_nodes(
    nodes: typing.Iterable[str], plan: typing.Optional[DisruptionPlan], rolls: typing.Collection[Roll]
) -> tuple[str, ...]:
    """Return the nodes that a MachineConfigPool has given its new configuration in this run. A node whose pool the plan
    of the run does not name is not one of them.

    :param nodes: names of the nodes
    :param plan: plan of stage network, which contains the MachineConfigPool that rolls each node; None if there is none
    :param rolls: rolls of the MachineConfigPools for which stage network waited
    """
    done = {
        roll.pool for roll in rolls if not roll.error and roll.rolls and (roll.updated >= roll.machines or roll.others)
    }
    rolled = {item.node for item in plan.nodes if item.rolled_by in done} if plan is not None else set()
    return tuple(node for node in nodes if node in rolled)


def list_nodes_to_reread(
    intent: Intent, nodes: typing.Iterable[str], plan: typing.Optional[DisruptionPlan], rolls: typing.Collection[Roll]
) -> tuple[str, ...]:
    """Return the nodes whose kernel and kubelet must be read again before stage host judges them: all nodes that this
    run rolled, if the intent asks for settings of them. Return no nodes if it does not.

    :param nodes: names of the nodes
    :param plan: plan of stage network; None if there is none
    :param rolls: rolls of the MachineConfigPools for which stage network waited
    """
    needs = intent.cluster.host
    asks = needs.kubelet is not None or needs.kernel_arguments or needs.gpudirect != "none"
    return list_rolled_nodes(nodes, plan, rolls) if asks else ()
