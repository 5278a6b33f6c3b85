# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of a run: a sheet of each, and who is unlike the others of its group. Who is odd say the checks of stages tuning and platform, and nobody else."""

from __future__ import annotations

import dataclasses
import re
import typing

from .._check.discover import check as discover
from .._check.fleet.hcas_of_fabric import candidates, selects
from .._check.platform import check as platform
from .._check.tuning import check as tuning
from .._model.errors import RdmaError
from .._model.findings import PASS, Judged
from .._model.hca import Hca, NodeHcas, ObservedHcas
from .._model.intent import Intent
from .._model.load import load
from .._model.profiles import moves
from .._model.records import Record
from .._model.tuning import ObservedTuning
from .exhibits import Charts, Seen, Undrawable, memberships
from .sheet import Seen as Shown
from .sheet import Sheet, sheet

_WORDS = re.compile(r"[\s,]+")
Records = typing.Mapping[str, Record]
#: of a node: by HCA its rail on each fabric
Rails = typing.Mapping[str, typing.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Odd:
    """What one or more members of a group have otherwise.

    :ivar value: that they show
    :ivar others: what is usual, and of how many
    """

    members: typing.Tuple[str, ...]
    what: str
    value: str
    others: str


@dataclasses.dataclass(frozen=True)
class Group:
    """Nodes, or HCAs, that are held against each other.

    :ivar what: nodes or HCAs
    """

    name: str
    what: str
    members: typing.Tuple[str, ...]
    odd: typing.Tuple[Odd, ...] = ()


@dataclasses.dataclass(frozen=True)
class Nodes:
    """:ivar groups: nodes of one kind, then HCAs of one model
    :ivar notes: why groups are missing, or nodes in them
    """

    sheets: typing.Tuple[Sheet, ...]
    groups: typing.Tuple[Group, ...]
    notes: typing.Tuple[str, ...] = ()


def nodes(records: Records, facts: Seen, known: Charts) -> typing.Optional[Nodes]:
    """None where stage discover left no facts: then no node is known.

    :param records: of this run, by stage
    :raises Undrawable: the facts of stage discover do not load
    """
    record = records.get("discover")
    if record is None or not record.facts or record.intent is None:
        return None
    try:
        intent = load(Intent, record.intent, "intent")
        seen: discover.Facts = facts.of("discover", ("nodes",))
    except RdmaError as error:
        raise Undrawable(f"The facts of stage discover can't be drawn: {error}.") from error
    notes: typing.List[str] = []
    tunings: tuning.Facts = _facts("tuning", ("nodes", "tunings"), records, facts, notes) or tuning.Facts()
    firmware: typing.Optional[platform.Facts] = _facts("platform", ("nodes", "subnets", "firmware", "nics"), records, facts, notes)
    of_nodes = tuple(_of_nodes(tunings))
    of_hcas = tuple(_of_hcas(intent, firmware)) if firmware is not None else ()
    kinds = {member: group.name for group in of_nodes for member in group.members}
    missing = [name for name in seen.nodes if name not in kinds]
    if missing and of_nodes:
        notes.append(f"In no group, since nothing is known of how they are tuned: {folded(missing)}.")
    rails: typing.Mapping[str, Rails] = {}
    try:
        rails = _rails(records, facts, known)
    except Undrawable as error:
        notes.append(f"No rail is known: {error}")
    judged = _by_node(records, seen.nodes)
    odd = _odd_of(seen.nodes, (*of_nodes, *of_hcas))
    missed = ObservedTuning(error="stage tuning has left no facts")
    sheets = []
    for name, hcas in seen.nodes.items():
        of_node = rails.get(name, {})
        wanted, moved = _wanted(intent, hcas, of_node)
        words = {hca: ", ".join(f"{fabric} rail {rail}" for fabric, rail in found.items()) for hca, found in of_node.items()}
        about = (words, wanted, moved, judged.get(name, ()), kinds.get(name, ""), tuple(odd.get(name, ())))
        sheets.append(sheet(Shown(name, hcas, tunings.tunings.get(name, missed), *about)))
    return Nodes(tuple(sheets), (*of_nodes, *of_hcas), tuple(notes))


def folded(names: typing.Sequence[str], most: int = 12) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _facts(stage: str, parts: typing.Sequence[str], records: Records, facts: Seen, notes: typing.List[str]) -> typing.Any:
    """None, and a note, where there are none: without them nobody is like another."""
    record = records.get(stage)
    if record is None or not record.facts:
        notes.append(f"Stage {stage} has left no facts in this run, so what it holds against each other is unknown.")
        return None
    try:
        return facts.of(stage, parts)
    except RdmaError as error:
        notes.append(f"The facts of stage {stage} can't be read, so what it holds against each other is unknown: {error}.")
        return None


def _of_nodes(facts: tuning.Facts) -> typing.Iterator[Group]:
    for group in tuning.groups(facts):
        odd = (
            Odd(
                one.nodes,
                one.row.what,
                one.value,
                "neither is usual" if one.usual is None else f"{one.usual} on {one.most} of {one.known}",
            )
            for one in group.odd
        )
        yield Group(group.kind, "nodes", group.nodes, tuple(odd))


def _of_hcas(intent: Intent, facts: platform.Facts) -> typing.Iterator[Group]:
    for group in platform.groups(intent, facts):
        found: typing.Dict[typing.Any, typing.List[str]] = {}
        for (node, hca), odd in group.odd.items():
            for one in odd:
                found.setdefault(one, []).append(f"{node} {hca}")
        odds = (Odd(tuple(members), one.what, one.value, f"{one.usual} on {one.count} of {one.of}") for one, members in found.items())
        yield Group(f"HCAs {group.model}", "HCAs", tuple(f"{node} {hca}" for node, hca in group.hcas), tuple(odds))


def _odd_of(names: typing.Container[str], groups: typing.Iterable[Group]) -> typing.Dict[str, typing.List[str]]:
    found: typing.Dict[str, typing.List[str]] = {}
    for group in groups:
        for odd in group.odd:
            for member in odd.members:
                name, _blank, hca = (member, "", "") if group.what == "nodes" else member.rpartition(" ")
                if name in names:
                    found.setdefault(name, []).append(f"{f'{hca} ' if hca else ''}{odd.what}: {odd.value}; of its like: {odd.others}")
    return found


def _rails(records: Records, facts: Seen, known: Charts) -> typing.Mapping[str, Rails]:
    """By node."""
    found: typing.Dict[str, typing.Dict[str, typing.Dict[str, int]]] = {}
    for membership in memberships(records.get("fabric"), facts, known):
        for node, members in membership.members.items():
            for member in members:
                found.setdefault(node, {}).setdefault(member.hca.name, {})[membership.fabric] = member.rail
    return found


def _wanted(intent: Intent, hcas: ObservedHcas, rails: Rails) -> typing.Tuple[typing.Set[str], typing.Set[str]]:
    """Names of the HCAs that the intent means, and of those whose interfaces go into pods. Where members of a fabric are missing, any that could be one."""
    value = hcas.value or NodeHcas(())
    wanted, moved = set(), set()
    for fabric in intent.fabrics:
        # one without a port shows no link layer, and may be meant all the same
        mute = (hca for hca in value.hcas if not hca.all_ports and (hca.rdma_device or _is_infiniband(hca)) and selects(fabric.select, hca))
        names = {name for name, found in rails.items() if fabric.name in found}
        if len(names) < fabric.select.hcas_per_node:
            names |= {hca.name for hca in (*candidates(fabric, value), *mute) if hca.name not in rails}
        wanted |= names
        moved |= names if moves(fabric) else set()
    return wanted, moved


def _is_infiniband(hca: Hca) -> bool:
    return hca.pci is not None and hca.pci.device_class == "0207"


def _by_node(records: Records, names: typing.Container[str]) -> typing.Dict[str, typing.List[Judged]]:
    """What is no pass, by the nodes that its subject names. A pair accuses all that lies between its ends, so it is about neither."""
    found: typing.Dict[str, typing.List[Judged]] = {}
    for record in records.values():
        for item in record.judged:
            subject = item.finding.subject
            if item.finding.status == PASS or "->" in subject:
                continue
            words = (subject, *_WORDS.split(subject))
            for word in dict.fromkeys(words):
                if word in names:
                    found.setdefault(word, []).append(item)
    return found
