# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of stage network as a table: what the operator does to the nodes, in how many waves, and what is in the way."""

from __future__ import annotations

import typing

from .._model.disruption import Action, DisruptionPlan, NodePlan, PoolPlan
from .markup import Html, element, join
from .tables import row, table

#: nodes that are named in a row
_MOST_NODES = 12
_WORST_FIRST: typing.Tuple[Action, ...] = ("unknown", "reboot", "drain", "configure", "nothing")


def figure(plan: DisruptionPlan) -> Html:
    """Nodes with one fate for one reason are one row."""
    rows: typing.Dict[typing.Tuple[Action, typing.Tuple[str, ...], typing.Tuple[str, ...]], typing.List[NodePlan]] = {}
    for node in plan.nodes:
        rows.setdefault((node.action, node.reasons, node.blockers), []).append(node)
    ordered = sorted(rows.items(), key=lambda item: _WORST_FIRST.index(item[0][0]))
    return table(
        "The plan: what the operator does to the nodes",
        "read before anything was applied",
        ("Action", "Nodes", "Why", "In the way"),
        [_row(_called(key[0], plan.drains), key[1], key[2], nodes) for key, nodes in ordered],
        element("ul", *map(_pool, plan.pools), class_="marked") if plan.pools else None,
    )


def _called(action: Action, drains: bool) -> str:
    return action if drains or action != "drain" else "changed without a drain"


def _row(action: str, reasons: typing.Sequence[str], blockers: typing.Sequence[str], nodes: typing.Sequence[NodePlan]) -> Html:
    names = ", ".join(node.node for node in nodes[:_MOST_NODES]) + (f" and {len(nodes) - _MOST_NODES} more" if len(nodes) > _MOST_NODES else "")
    return row(action, join(element("b", str(len(nodes))), " ", element("bdi", names)), "; ".join(reasons), "; ".join(blockers))


def _pool(pool: PoolPlan) -> Html:
    waves = "never ends" if pool.waves is None else f"{pool.waves} wave{'' if pool.waves == 1 else 's'}"
    at_once = "all at once" if pool.at_once is None else f"{pool.at_once} at once"
    blockers = f"; in the way: {'; '.join(pool.blockers)}" if pool.blockers else ""
    return element("li", element("b", _label(pool)), f": {len(pool.nodes)} nodes, {at_once} ({pool.limit}), {waves}{blockers}")


def _label(pool: PoolPlan) -> str:
    return f"MachineConfigPool {pool.name}, rolled once" if pool.machines else pool.name or "the operator's default pool"
