# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs between two judgements: of one run by two intents, or of two runs."""

from __future__ import annotations

import dataclasses
import typing

from .._model.findings import STAGES, Judged
from .._model.records import Record
from .text import one_line
from .verdict import label

NOT_THERE = "not there"
#: lines on a terminal; the file has all
MOST_LINES = 200


@dataclasses.dataclass(frozen=True)
class Difference:
    """One thing that is not as it was.

    :ivar node: name of a node, ``cluster``, or ``stage <name>`` for what a stage found
    :ivar what: in the words of facts and findings: ``mlx5_0 firmware``, ``fabric.one_master on compute``
    """

    node: str
    what: str
    before: str
    after: str


def record_differences(before: typing.Mapping[str, Record], after: typing.Mapping[str, Record]) -> typing.List[Difference]:
    """Gates and findings that appeared, vanished, or changed their status. What was measured may differ: a finding is known by check and subject."""
    found: typing.List[Difference] = []
    for stage in STAGES:
        one, other = before.get(stage), after.get(stage)
        name = f"stage {stage}"
        found += _changed(name, "gate", one.gate if one else "no record", other.gate if other else "no record")
        first, second = _by_subject(one), _by_subject(other)
        for key in {**first, **second}:
            found += _changed(name, key, first.get(key, NOT_THERE), second.get(key, NOT_THERE))
    return found


def show(differences: typing.Sequence[Difference]) -> typing.List[str]:
    """As lines for a terminal."""
    lines = [one_line(f"{item.node}: {item.what}: {item.before} -> {item.after}") for item in differences[:MOST_LINES]]
    if len(differences) > MOST_LINES:
        lines.append(f"and {len(differences) - MOST_LINES} more")
    return lines


def _by_subject(record: typing.Optional[Record]) -> typing.Dict[str, str]:
    found: typing.Dict[str, typing.List[str]] = {}
    for item in record.judged if record else ():
        found.setdefault(f"{item.finding.check} on {item.finding.subject}", []).append(_status(item))
    # a check may say two things of one subject
    return {key: ", ".join(sorted(states)) for key, states in found.items()}


def _status(item: Judged) -> str:
    return f"{item.finding.status}, waived" if label(item) == "waived" else item.finding.status


def _changed(node: str, what: str, before: str, after: str) -> typing.List[Difference]:
    return [] if before == after else [Difference(node, what, before, after)]
