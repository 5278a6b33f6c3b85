# SPDX-License-Identifier: GPL-3.0-or-later

"""The groups of comparable nodes and HCAs, and their members that differ from the rest of the group. The checks of
stages tuning and platform decide which members differ.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._check.platform import check as platform
from ..._check.tuning import check as tuning
from ..._model.base.errors import RdmaError
from ..._model.base.load import load
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.run.records import Record
from .inputs import ReportFacts


@dataclasses.dataclass(frozen=True)
class GroupDifference:
    """A property in which some members of a group differ from most other members.

    :ivar members: names of the nodes or HCAs that differ
    :ivar row: ID of the property: for nodes a setting of stage tuning, for HCAs the firmware or one of its settings
    :ivar what: description of the property
    :ivar value: value of the members that differ
    :ivar others: usual value and the number of members that have it, as text
    """

    members: tuple[str, ...]
    row: str
    what: str
    value: str
    others: str


@dataclasses.dataclass(frozen=True)
class ComparedGroup:
    """A group of comparable nodes or HCAs, and the differences between its members.

    :ivar name: description of the group, such as the models of its CPUs, GPUs and HCAs
    :ivar what: ``nodes`` or ``HCAs``
    :ivar members: names of the nodes, or ``node HCA`` of the HCAs
    :ivar odd: properties in which single members differ from most of the group
    """

    name: str
    what: str
    members: tuple[str, ...]
    odd: tuple[GroupDifference, ...] = ()


@dataclasses.dataclass(frozen=True)
class Alike:
    """The groups of comparable nodes and HCAs of a run.

    :ivar groups: groups of comparable nodes, then groups of HCAs of one model
    :ivar tuning: facts by which the nodes were grouped; empty facts if there are none
    :ivar notes: reasons why groups, or nodes in them, are missing
    """

    groups: tuple[ComparedGroup, ...] = ()
    tuning: tuning.Facts = dataclasses.field(default_factory=tuning.Facts)
    notes: tuple[str, ...] = ()


def group_alike(records: typing.Mapping[str, Record], facts: ReportFacts) -> Alike:
    """Return the groups of comparable nodes and HCAs. Facts that are missing or cannot be read become a note in the
    result.

    :param records: records of this run, by stage
    :param facts: facts of this run
    """
    notes: list[str] = []
    tunings: tuning.Facts = _load_facts("tuning", ("nodes", "tunings"), records, facts, notes) or tuning.Facts()
    firmware: typing.Optional[platform.Facts] = _load_facts(
        "platform", ("nodes", "subnets", "firmware", "nics"), records, facts, notes
    )
    of_nodes = tuple(_compare_nodes(tunings))
    known = {member for group in of_nodes for member in group.members}
    missing = [name for name in tunings.tunings if name not in known]
    if missing:
        notes.append(f"These nodes are in no group because their tuning is unknown: {join_first(missing)}.")
    of_hcas: tuple[ComparedGroup, ...] = ()
    if firmware is not None:
        try:
            of_hcas = tuple(_compare_hcas(load(Intent, records["platform"].intent, "intent"), firmware))
        except RdmaError as error:
            notes.append(
                "The intent of stage platform could not be read, so the groups of comparable HCAs are unknown:"
                f" {error}."
            )
    return Alike((*of_nodes, *of_hcas), tunings, tuple(notes))


def _load_facts(
    stage: str, parts: typing.Sequence[str], records: typing.Mapping[str, Record], facts: ReportFacts, notes: list[str]
) -> typing.Any:
    """Return the typed facts of a stage. If there are none, or they cannot be read, add a note with the reason and
    return None.

    :param parts: fields of the facts to load
    :param notes: list to which the note is added
    """
    record = records.get(stage)
    if record is None or not record.facts:
        notes.append(f"Stage {stage} wrote no facts in this run, so the groups that the stage compares are unknown.")
        return None
    try:
        return facts.of(stage, parts)
    except RdmaError as error:
        notes.append(
            f"The facts of stage {stage} could not be read, so the groups that the stage compares are unknown: {error}."
        )
        return None


def _compare_nodes(facts: tuning.Facts) -> typing.Iterator[ComparedGroup]:
    for group in tuning.make_groups(facts):
        odd = (
            GroupDifference(
                one.nodes,
                one.row.name,
                one.row.what,
                one.value,
                "no value is usual" if one.usual is None else f"{one.usual} on {one.most} of {one.known}",
            )
            for one in group.odd
        )
        yield ComparedGroup(group.kind, "nodes", group.nodes, tuple(odd))


def _compare_hcas(intent: Intent, facts: platform.Facts) -> typing.Iterator[ComparedGroup]:
    for group in platform.make_groups(intent, facts):
        found: dict[typing.Any, list[str]] = {}
        for (node, hca), odd in group.odd.items():
            for one in odd:
                found.setdefault(one, []).append(f"{node} {hca}")
        odds = (
            GroupDifference(tuple(members), one.what, one.what, one.value, f"{one.usual} on {one.count} of {one.of}")
            for one, members in found.items()
        )
        yield ComparedGroup(
            f"HCAs {group.model}", "HCAs", tuple(f"{node} {hca}" for node, hca in group.hcas), tuple(odds)
        )
