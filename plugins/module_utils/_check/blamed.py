# SPDX-License-Identifier: GPL-3.0-or-later

"""Handle a check that raises an exception because of the answers of nodes: find the responsible nodes, and judge the
other nodes. An answer of one node must not end a stage for all nodes.

A check may raise because of the answer of one node, or because it compares several answers. A node is blamed only with
proof: the check passes over the answers of many other nodes, and raises when the answer of this node is added. If this
does not single out a node, no node is blamed.
"""

from __future__ import annotations

import bisect
import dataclasses
import typing

from .._model.base.errors import describe_unforeseen
from .._model.base.escape import escape_lines
from .._model.base.observed import is_observed
from .._model.run.findings import FAIL, UNKNOWN, Finding

#: times that nodes are looked for; behind so many the check itself is wrong, or the fleet is
_MOST = 4
#: nodes whose answers are compared with each other; where it takes more, it is not the answer of one
_TOGETHER = 3
_EXPECTED = "no exception of the check"

Judge = typing.Callable[[typing.Any], typing.Sequence[Finding]]


@dataclasses.dataclass(frozen=True)
class _Verdict:
    """The nodes whose answers make a check raise an exception.

    :ivar guilty: error that the check raises as soon as the answer of this single node is included, by node
    :ivar doubted: error that the check raises only over the answers of several nodes together, by these nodes
    """

    guilty: typing.Mapping[str, str]
    doubted: typing.Mapping[tuple[str, ...], str]


class _Trial:
    """A check that is repeated over the answers of some of the nodes; the other nodes count as not asked. Results are
    cached.

    :ivar names: all nodes with facts
    """

    def __init__(self, judge: Judge, facts: typing.Any, error: Exception) -> None:
        """Store the check, the facts of all nodes, and the exception that the check raises over them.

        :param judge: check that is repeated with the facts of fewer nodes
        :param facts: facts of all nodes
        :param error: exception that the check raises over the answers of all nodes
        """
        self._judge, self._facts = judge, facts
        self.names = sorted({name for known in _group_by_node(facts).values() for name in known})
        self._known = {frozenset(self.names): _describe_exception(error)}

    def raised(self, present: typing.Iterable[str]) -> str:
        """Return the error that the check raises over the answers of these nodes; empty if it raises none.

        :param present: names of the nodes whose answers are included
        """
        key = frozenset(present)
        if key not in self._known:
            self._known[key] = ""
            try:
                self._judge(_exclude_nodes(self._facts, {name: "not asked" for name in self.names if name not in key}))
            except Exception as error:
                self._known[key] = _describe_exception(error)
        return self._known[key]

    def passes(self, present: typing.Iterable[str]) -> bool:
        """Return whether the check raises no exception over the answers of these nodes.

        :param present: names of the nodes whose answers are included
        """
        return not self.raised(present)


def collect_findings(stage: str, judge: Judge, facts: typing.Any) -> tuple[Finding, ...]:
    """Return the findings of a check. If the check raises because of the answer of a node, the answer is replaced with
    an error, and the node gets a finding of its own.

    If the responsible node cannot be determined, a finding names the nodes in question, or the stage.

    :param stage: name of the stage
    :param judge: the check, a pure function of the facts that may be called repeatedly
    :param facts: the stage's ``Facts``, a dataclass whose mappings hold the facts of each node by its name
    :raises Exception: the exception of the check, if it raises without the facts of any node as well
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
        why = f"not checked: the check raised an exception, and the node whose data caused it is unknown ({raised})"
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
                f"not checked: the check raised an exception on the combined data of {_join_names(together)}",
            )
        )
    refused = [_report_refused(stage, name, verdict.guilty[name]) for name in sorted(verdict.guilty)]
    return (
        *judge(_exclude_nodes(facts, errors)),
        *refused,
        *(_report_doubted(stage, together, raised) for together, raised in verdict.doubted.items()),
    )


def _find_blamed_nodes(trial: _Trial) -> typing.Optional[_Verdict]:
    """Return the nodes whose answers make the check raise, or None if they cannot be determined.

    :param trial: the check and the answers of the nodes
    """
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
    """Return the names of a small set of nodes without whose facts the check raises no exception.

    The set contains the responsible nodes, and few other nodes. Return None if no small set is found.

    :param trial: check and facts of the nodes
    """
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
    """Return a minimal set of these nodes whose answers together make the check raise. Return an empty list if such a
    set has more than ``_TOGETHER`` nodes.

    :param trial: check and facts of the nodes
    :param names: names of the nodes among which the set is sought
    """
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
    """Return those fields of the facts that hold an observation of each node: by the name of the field, the
    observations by node. Empty fields are left out.

    :param facts: the stage's ``Facts``, a dataclass
    """
    fields = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, dict) and value and all(is_observed(type(item)) for item in value.values())
    }


def _exclude_nodes(facts: typing.Any, errors: typing.Mapping[str, str]) -> typing.Any:
    """Return the facts with the answers of these nodes replaced by an error.

    :param errors: error by name of the node
    """
    changed = {
        field: {name: type(value)(None, errors[name]) if name in errors else value for name, value in known.items()}
        for field, known in _group_by_node(facts).items()
    }
    return dataclasses.replace(facts, **changed)


def _describe_exception(error: Exception) -> str:
    return escape_lines(f"exception {describe_unforeseen(error)}")


def _join_names(names: typing.Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _report_refused(stage: str, node: str, raised: str) -> Finding:
    why = (
        f"The check raised an exception on the data of {node}. It checked the other nodes, and treated {node} as a node"
        " without data."
    )
    remedy = (
        f"Read the files facts/*/{node}.json in the folder of the report. If a value contradicts the node, run"
        f" stage {stage} again. If their values are correct, report this as a defect of linerate.rdma."
    )
    return Finding(f"{stage}.error", f"stage {stage}, {node}", FAIL, raised, _EXPECTED, why, remedy)


def _report_doubted(stage: str, nodes: typing.Sequence[str], raised: str) -> Finding:
    """Return the finding of status ``unknown`` on several nodes whose facts make the check raise an exception only
    together, so that none of them alone can be named as the cause.

    :param stage: name of the stage
    :param nodes: names of the nodes
    :param raised: description of the exception
    """
    every = _join_names(nodes)
    why = (
        f"The check raised an exception on the combined data of {every}. Without one of these nodes it raises no"
        " exception, so the node that causes it "
    )
    why += "is unknown. The check covered the other nodes, and treated these nodes as nodes without data."
    remedy = (
        f"Compare the files facts/*/NODE.json of {every} in the folder of the report. If their values are correct,"
        " report this as a defect of linerate.rdma."
    )
    return Finding(f"{stage}.error", f"stage {stage}, {every}", UNKNOWN, raised, _EXPECTED, why, remedy)


def _report_undecided(stage: str, raised: str, number: int) -> Finding:
    why = (
        f"The check raised an exception on the data of the nodes. Which of the {number} nodes causes it is unknown, so"
        " the check covered none of them. "
    )
    why += "The cause may be a defect in the check."
    remedy = (
        f"Run stage {stage} again with --limit for a part of the nodes, to find the node whose data cause the"
        " exception. Report the exception as a defect of linerate.rdma, with the text under 'measured' and the files"
        " facts/*/NODE.json of this node in the folder of the report."
    )
    return Finding(f"{stage}.error", f"stage {stage}", UNKNOWN, raised, _EXPECTED, why, remedy)
