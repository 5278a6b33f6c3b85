# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the plan of a run in check mode as text for the person who approves the run: first the disruption of nodes,
then the objects that would be created.
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import DisruptionPlan, NodePlan
from ..content.exhibits import Undrawable, read_plan
from ..content.plans import describe_action, describe_turns, group_fates, label_pool
from ..content.verdict import Report
from ..markup.text import one_line

#: AWX shows it in one field
_MOST = 8000
_MOST_CHANGES = 100
#: characters of a line. Nodes and tenants write reasons, which may not push out the nodes that are disturbed
_MOST_LINE = 200
#: fates whose reasons are told
_MOST_REASONS = 10


def plan_text(report: Report) -> str:
    """Return the planned changes of a run in check mode, one line each, for its approval. The number of lines and
    characters is limited and does not depend on the number of nodes. Return an empty text if the run is not in check
    mode.
    """
    if not report.check_mode:
        return ""
    lines = [
        one_line(report.summary),
        "",
        *(_shorten_line(one_line(line)) for line in (*_list_node_plan_lines(report), *_list_change_lines(report))),
    ]
    text = "\n".join(lines)
    return text if len(text) <= _MOST else f"{text[:_MOST]}\n... and more, see the report"


def _list_node_plan_lines(report: Report) -> typing.Iterator[str]:
    record = report.records.get("network")
    try:
        planned = read_plan(record, report.seen) if record is not None else None
    except Undrawable as error:
        yield f"The planned actions on the nodes could not be shown: {error}"
        return
    if planned is None:
        yield "The planned actions on the nodes are unknown: stage network did not complete its plan."
        return
    fates = group_fates(planned)
    by_action: dict[str, list[NodePlan]] = {}
    for nodes in fates:
        by_action.setdefault(describe_action(nodes[0], planned.drains), []).extend(nodes)
    yield from (_describe_node_group(action, nodes) for action, nodes in by_action.items())
    yield from (f"{label_pool(pool)}: {describe_turns(pool)}" for pool in planned.pools)
    told = [nodes for nodes in fates if nodes[0].reasons or nodes[0].blockers]
    yield from (_explain_node_action(planned, nodes) for nodes in told[:_MOST_REASONS])
    if len(told) > _MOST_REASONS:
        yield f"Why: {len(told) - _MOST_REASONS} more reasons, see the report"


def _shorten_line(line: str) -> str:
    return line if len(line) <= _MOST_LINE else f"{line[: _MOST_LINE - 3]}..."


def _describe_node_group(action: str, nodes: typing.Sequence[NodePlan]) -> str:
    """Return one line with the action, the number and the names of nodes that have the same action, without the
    reasons. Only the first names are listed.
    """
    held = sum(bool(node.blockers) for node in nodes)
    blocked = f", {held} BLOCKED" if held else ""
    others = sum(not node.listed for node in nodes)
    foreign = f", {others} not in the inventory" if others else ""
    names = join_first([node.title for node in sorted(nodes, key=lambda node: node.listed)])
    return f"{action}: {len(nodes)} node{'' if len(nodes) == 1 else 's'}{foreign}{blocked} ({names})"


def _explain_node_action(planned: DisruptionPlan, nodes: typing.Sequence[NodePlan]) -> str:
    """Return one line with the reasons and blockers of nodes that share them.

    :param planned: plan that contains the nodes
    :param nodes: nodes with the same action, reasons and blockers
    """
    first = nodes[0]
    blocked = f"BLOCKED BY: {'; '.join(first.blockers)}" if first.blockers else ""
    why = "; ".join(filter(None, (*first.reasons, blocked)))
    return f"Why {describe_action(first, planned.drains)} ({join_first([node.node for node in nodes], 3)}): {why}"


def _list_change_lines(report: Report) -> typing.Iterator[str]:
    yield f"Changes: {len(report.changes) or 'none'}"
    yield from (f"- {change}" for change in report.changes[:_MOST_CHANGES])
    if len(report.changes) > _MOST_CHANGES:
        yield f"- and {len(report.changes) - _MOST_CHANGES} more, see the report"
