# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a run in check mode as text, for a human who says yes or no to it: which nodes would be disturbed first,
then what would be made."""

from __future__ import annotations

import typing

from .._model.disruption import DisruptionPlan, NodePlan
from .._model.text import folded
from .exhibits import Undrawable, plan
from .plans import describe_action, describe_turns, group_fates, label
from .text import one_line
from .verdict import Report

#: AWX shows it in one field
_MOST = 8000
_MOST_CHANGES = 100


def plan_text(report: Report) -> str:
    """Return the planned changes, a line each; of a size that does not grow with the fleet. Empty for a run outside of
    check mode.

    :param report: with the facts of its run
    """
    if not report.check_mode:
        return ""
    lines = [one_line(report.summary), "", *map(one_line, (*_nodes(report), *_changes(report)))]
    text = "\n".join(lines)
    return text if len(text) <= _MOST else f"{text[:_MOST]}\n... and more, see the report"


def _nodes(report: Report) -> typing.Iterator[str]:
    record = report.records.get("network")
    try:
        planned = plan(record, report.seen) if record is not None else None
    except Undrawable as error:
        yield f"What would happen to the nodes can't be shown: {error}"
        return
    if planned is None:
        yield "What would happen to the nodes is not known: stage network did not come to its plan."
        return
    yield from (_fate(planned, nodes) for nodes in group_fates(planned))
    yield from (f"{label(pool)}: {describe_turns(pool)}" for pool in planned.pools)


def _fate(planned: DisruptionPlan, nodes: typing.Sequence[NodePlan]) -> str:
    first = nodes[0]
    why = f": {'; '.join(first.reasons)}" if first.reasons else ""
    blocked = f"; IN THE WAY: {'; '.join(first.blockers)}" if first.blockers else ""
    return (
        f"{describe_action(first.action, planned.drains)}: {len(nodes)} node{'' if len(nodes) == 1 else 's'}"
        f" ({folded([node.node for node in nodes])}){why}{blocked}"
    )


def _changes(report: Report) -> typing.Iterator[str]:
    yield f"Changes: {len(report.changes) or 'none'}"
    yield from (f"- {change}" for change in report.changes[:_MOST_CHANGES])
    if len(report.changes) > _MOST_CHANGES:
        yield f"- and {len(report.changes) - _MOST_CHANGES} more, see the report"
