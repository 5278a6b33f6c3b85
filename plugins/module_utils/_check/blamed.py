# SPDX-License-Identifier: GPL-3.0-or-later

"""A check that raises over what one node answered: find that node, and judge the others. Nothing that a node says ends a stage for all."""

from __future__ import annotations

import bisect
import dataclasses
import typing

from .._model.errors import unforeseen
from .._model.findings import FAIL, Finding
from .._model.load import is_observed

#: nodes that are looked for; behind so many the check itself is wrong, or the fleet is
_MOST = 4

Judge = typing.Callable[[typing.Any], typing.Sequence[Finding]]


def findings_of(stage: str, judge: Judge, facts: typing.Any) -> typing.Tuple[Finding, ...]:
    """The findings of a check. Where it raises, the facts of the node that it raises over become that node's error, and it has a finding of its own.

    :param judge: the check, over facts; pure, so that it may be asked again
    :param facts: the stage's ``Facts``, a dataclass; what is known of each node is in mappings by its name
    :raises Exception: of the check, where it raises without any node's facts as well, or over more than ``_MOST`` nodes
    """
    names = sorted({name for known in _by_node(facts).values() for name in known})
    blamed: typing.Dict[str, str] = {}
    while True:
        try:
            found = judge(_without(facts, blamed))
        except Exception as error:
            left = [name for name in names if name not in blamed]
            raised = str(unforeseen(error, "what it answered"))
            if len(blamed) == _MOST or not left or not _passes(judge, facts, {**blamed, **dict.fromkeys(left, raised)}):
                raise
            # the shortest beginning of the names without which it passes ends with a node that it raises over
            end = bisect.bisect_left(range(1, len(left)), True, key=lambda count: _passes(judge, facts, {**blamed, **dict.fromkeys(left[:count], raised)}))
            blamed[left[end]] = raised
            continue
        return (*found, *(_refused(stage, name, raised) for name, raised in sorted(blamed.items())))


def _by_node(facts: typing.Any) -> typing.Dict[str, typing.Mapping[str, typing.Any]]:
    """Return the fields of the facts that hold an observation of each node, by the name of the field."""
    fields = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    return {name: value for name, value in fields.items() if isinstance(value, dict) and value and all(is_observed(type(item)) for item in value.values())}


def _without(facts: typing.Any, blamed: typing.Mapping[str, str]) -> typing.Any:
    """The facts, with an error in the place of all that these nodes answered."""
    if not blamed:
        return facts
    changed = {
        field: {name: type(value)(None, blamed[name]) if name in blamed else value for name, value in known.items()} for field, known in _by_node(facts).items()
    }
    return dataclasses.replace(facts, **changed)


def _passes(judge: Judge, facts: typing.Any, blamed: typing.Mapping[str, str]) -> bool:
    try:
        judge(_without(facts, blamed))
    except Exception:
        return False
    return True


def _refused(stage: str, node: str, raised: str) -> Finding:
    why = f"The check raised an exception over what {node} answered. It judged the other nodes, and this one as a node that gives no answer."
    remedy = f"Look at the facts of {node} in the folder of the report. If they are in order, report this as a defect of linerate.rdma."
    return Finding(f"{stage}.error", f"stage {stage}, {node}", FAIL, raised, "an answer that can be judged", why, remedy)
