# SPDX-License-Identifier: GPL-3.0-or-later

"""A check that raises over what nodes answered: find the guilty ones, and judge the others. Nothing that a node says
ends a stage for all.

A check may raise over what one node answered, whatever the others say, or where it compares one with another. So a node
is blamed only by proof: the check passes over the answers of many others, and raises once this one's answer is beside
theirs. Of nodes that are not told apart by that, nobody is blamed.
"""

from __future__ import annotations

import bisect
import dataclasses
import typing

from .._model.base.errors import wrap_unforeseen
from .._model.base.observed import is_observed
from .._model.run.findings import FAIL, UNKNOWN, Finding

#: times that nodes are looked for; behind so many the check itself is wrong, or the fleet is
_MOST = 4
#: nodes whose answers are compared with each other; where it takes more, it is not the answer of one
_TOGETHER = 3

Judge = typing.Callable[[typing.Any], typing.Sequence[Finding]]


@dataclasses.dataclass(frozen=True)
class _Verdict:
    """Without whose answers a check passes.

    :ivar guilty: for each node over whose answer it raises, what it raised
    :ivar doubted: for each set of nodes over whose answers it raises only together, what it raised
    """

    guilty: typing.Mapping[str, str]
    doubted: typing.Mapping[tuple[str, ...], str]


class _Trial:
    """Asks a check again over the answers of some of the nodes; the others give none.

    :ivar names: all nodes of which something is known
    """

    def __init__(self, judge: Judge, facts: typing.Any, error: Exception) -> None:
        """:param error: that it raises over the answers of all"""
        self._judge, self._facts = judge, facts
        self.names = sorted({name for known in _group_by_node(facts).values() for name in known})
        self._known = {frozenset(self.names): _describe_exception(error)}

    def raised(self, present: typing.Iterable[str]) -> str:
        """Return the error of the check over the answers of these nodes; empty where it passes."""
        key = frozenset(present)
        if key not in self._known:
            self._known[key] = ""
            try:
                self._judge(_exclude_nodes(self._facts, {name: "not asked" for name in self.names if name not in key}))
            except Exception as error:
                self._known[key] = _describe_exception(error)
        return self._known[key]

    def passes(self, present: typing.Iterable[str]) -> bool:
        """Return whether it passes over the answers of these nodes."""
        return not self.raised(present)


def collect_findings(stage: str, judge: Judge, facts: typing.Any) -> tuple[Finding, ...]:
    """Return the findings of a check. Where it raises, the facts of the node that it raises over become that node's
    error, and it has a finding of its own.

    Where it can't be told over which nodes it raises, a finding names the nodes among which they are, or the stage.

    :param judge: the check, over facts; pure, so that it may be asked again
    :param facts: the stage's ``Facts``, a dataclass; what is known of each node is in mappings by its name
    :raises Exception: of the check, where it raises without any node's facts as well
    """
    try:
        return tuple(judge(facts))
    except Exception as error:
        trial = _Trial(judge, facts, error)
        if not trial.passes(()):
            raise
    verdict = _find_blamed_nodes(trial)
    if verdict is None:
        raised = trial.raised(trial.names)
        why = f"not judged: the check raised an exception, and it is not known over whose answers ({raised})"
        return (
            *judge(_exclude_nodes(facts, dict.fromkeys(trial.names, why))),
            _report_undecided(stage, raised, len(trial.names)),
        )
    errors = dict(verdict.guilty)
    for together in verdict.doubted:
        # none of them is said to be at fault
        errors.update(
            dict.fromkeys(
                together,
                f"not judged: the check raised an exception over what {_join_names(together)} answered, taken together",
            )
        )
    refused = [_report_refused(stage, name, verdict.guilty[name]) for name in sorted(verdict.guilty)]
    return (
        *judge(_exclude_nodes(facts, errors)),
        *refused,
        *(_report_doubted(stage, together, raised) for together, raised in verdict.doubted.items()),
    )


def _find_blamed_nodes(trial: _Trial) -> typing.Optional[_Verdict]:
    """Return who is to blame; None where that is not known."""
    aside = _set_aside(trial)
    if aside is None:
        return None
    base = [name for name in trial.names if name not in aside]
    guilty = {name: trial.raised([*base, name]) for name in aside if not trial.passes([*base, name])}
    if guilty and not base and len(trial.names) > 1:
        # nobody's answer passes, which may as well be a mistake in the check
        return None
    # each of these passes beside the others, so that they are back unless they raise together
    back = [name for name in aside if name not in guilty]
    doubted: dict[tuple[str, ...], str] = {}
    while not trial.passes([*base, *back]):
        together = list(back)
        for name in back:
            fewer = [other for other in together if other != name]
            together = together if trial.passes([*base, *fewer]) else fewer
        doubted[tuple(together)] = trial.raised([*base, *together])
        back = [name for name in back if name not in together]
    return _Verdict(guilty, doubted)


def _set_aside(trial: _Trial) -> typing.Optional[list[str]]:
    """Return the nodes without whose answers it passes, few of them innocent; None where so few are not found."""
    aside: list[str] = []
    for _turn in range(_MOST):
        left = [name for name in trial.names if name not in aside]
        together = _find_least(trial, left)
        if not together:
            return None
        # all that it needs to raise are among these, so that a node without which alone it passes is the only one
        alone = [name for name in together if trial.passes([other for other in left if other != name])]
        aside += alone if len(alone) == 1 else together
        if trial.passes([name for name in trial.names if name not in aside]):
            return aside
    return None


def _find_least(trial: _Trial, names: typing.Sequence[str]) -> list[str]:
    """Return a set of these nodes over whose answers it raises, and over those of fewer of them it does not; empty
    where it takes more than ``_TOGETHER``."""
    kept: list[str] = []
    rest = list(names)
    while len(kept) < _TOGETHER:
        # the shortest beginning without which it passes ends with a node that it takes
        end = _end_of_shortest(trial, kept, rest)
        kept, rest = [*kept, rest[end]], rest[end + 1 :]
        if not trial.passes(kept):
            return kept
    return []


def _end_of_shortest(trial: _Trial, kept: typing.Sequence[str], rest: typing.Sequence[str]) -> int:
    return bisect.bisect_left(range(1, len(rest)), True, key=lambda count: trial.passes([*kept, *rest[count:]]))


def _group_by_node(facts: typing.Any) -> dict[str, typing.Mapping[str, typing.Any]]:
    """Return the fields of the facts that hold an observation of each node, by the name of the field."""
    fields = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, dict) and value and all(is_observed(type(item)) for item in value.values())
    }


def _exclude_nodes(facts: typing.Any, errors: typing.Mapping[str, str]) -> typing.Any:
    """Return the facts, with an error in the place of all that these nodes answered."""
    changed = {
        field: {name: type(value)(None, errors[name]) if name in errors else value for name, value in known.items()}
        for field, known in _group_by_node(facts).items()
    }
    return dataclasses.replace(facts, **changed)


def _describe_exception(error: Exception) -> str:
    return str(wrap_unforeseen(error, "what it answered"))


def _join_names(names: typing.Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _report_refused(stage: str, node: str, raised: str) -> Finding:
    why = (
        f"The check raised an exception over what {node} answered. It judged the other nodes, and this one as a node"
        " that gives no answer."
    )
    remedy = (
        f"Look at the facts of {node} in the folder of the report. If they are in order, report this as a defect of"
        " linerate.rdma."
    )
    return Finding(
        f"{stage}.error", f"stage {stage}, {node}", FAIL, raised, "an answer that can be judged", why, remedy
    )


def _report_doubted(stage: str, nodes: typing.Sequence[str], raised: str) -> Finding:
    """Nobody of these is blamed: one of them gave an answer that does not go with those of the others, and it is not
    known which."""
    every = _join_names(nodes)
    why = (
        f"The check raised an exception over what {every} answered, taken together, and over none of them without the"
        " others. Which of them is at fault "
    )
    why += "is not known. It judged the other nodes, and these as nodes that give no answer."
    remedy = (
        f"Compare the facts of {every} in the folder of the report. If they are in order, report this as a defect of"
        " linerate.rdma."
    )
    return Finding(
        f"{stage}.error", f"stage {stage}, {every}", UNKNOWN, raised, "answers that can be judged", why, remedy
    )


def _report_undecided(stage: str, raised: str, number: int) -> Finding:
    why = (
        f"The check raised an exception over what nodes answered. Over which of {number} is not known, so that it"
        " judged none of them. "
    )
    why += "It may be a mistake in the check."
    remedy = (
        "Report this as a defect of linerate.rdma, with the text beside 'measured'. To have a part of the nodes judged,"
        " run the stage with --limit."
    )
    return Finding(f"{stage}.error", f"stage {stage}", UNKNOWN, raised, "answers that can be judged", why, remedy)
