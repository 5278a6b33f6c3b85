# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the plan of stage network as a table: the actions of the SR-IOV operator on the nodes, the number of waves,
and the blockers.
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import Action, DisruptionPlan, NodePlan, PoolPlan
from ..markup.markup import Html, join_content, render_element
from ..markup.tables import render_row, render_table

#: nodes that are named in a row
_MOST_NODES = 12
_WORST_FIRST: tuple[Action, ...] = ("unknown", "reboot", "drain", "configure", "nothing")


def group_fates(plan: DisruptionPlan) -> list[list[NodePlan]]:
    """Return the nodes of a plan in groups with the same action, reasons and blockers, the worst action first."""
    alike: dict[tuple[Action, tuple[str, ...], tuple[str, ...]], list[NodePlan]] = {}
    for node in plan.nodes:
        alike.setdefault((node.action, node.reasons, node.blockers), []).append(node)
    return sorted(alike.values(), key=lambda nodes: _WORST_FIRST.index(nodes[0].action))


def describe_action(node: NodePlan, drains: bool) -> str:
    """Return the planned action on a node as text, such as ``reboot`` or ``changed without a drain``.

    :param drains: whether the SR-IOV operator drains the nodes before it changes them
    """
    if node.driver == "remove":
        return "driver removed without a drain"
    return node.action if drains or node.driver or node.action != "drain" else "changed without a drain"


def describe_turns(pool: PoolPlan) -> str:
    """Return a text about the order in which the nodes of a pool are changed: the number of nodes, how many are changed
    at the same time, the number of waves, and the blockers.
    """
    waves = "never completes" if pool.waves is None else f"{pool.waves} wave{'' if pool.waves == 1 else 's'}"
    at_once = "all at once" if pool.at_once is None else f"{pool.at_once} at once"
    blockers = f"; blockers: {'; '.join(pool.blockers)}" if pool.blockers else ""
    return f"{len(pool.nodes)} node{'' if len(pool.nodes) == 1 else 's'}, {at_once} ({pool.limit}), {waves}{blockers}"


def label_pool(pool: PoolPlan) -> str:
    if pool.driver == "reload":
        return f"driver of ClusterPolicy {pool.name}"
    if pool.driver:
        return f"driver of {pool.nic_policy}"
    return (
        f"MachineConfigPool {pool.name}, rolled once" if pool.machines else pool.name or "the operator's default pool"
    )


def render_figure(plan: DisruptionPlan) -> Html:
    """Render the table of drains and reboots. Nodes that share action, reasons and blockers are listed together."""
    return render_table(
        "Plan: actions of the operator on the nodes",
        "computed before any object was applied",
        ("Action", "Nodes", "Why", "Blockers"),
        [_render_row(describe_action(nodes[0], plan.drains), nodes) for nodes in group_fates(plan)],
        render_element("ul", *map(_render_pool, plan.pools), class_="marked") if plan.pools else None,
    )


def _render_row(action: str, nodes: typing.Sequence[NodePlan]) -> Html:
    names = join_first([node.title for node in nodes], _MOST_NODES)
    return render_row(
        action,
        join_content(render_element("b", str(len(nodes))), " ", render_element("bdi", names)),
        "; ".join(nodes[0].reasons),
        "; ".join(nodes[0].blockers),
    )


def _render_pool(pool: PoolPlan) -> Html:
    return render_element("li", render_element("b", label_pool(pool)), f": {describe_turns(pool)}")
