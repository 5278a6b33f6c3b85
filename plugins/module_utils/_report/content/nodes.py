# SPDX-License-Identifier: GPL-3.0-or-later

"""The section of the nodes in a report: a sheet for each node, and the groups of comparable nodes and HCAs with the
members that differ from the rest of their group.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._analysis.fleet.hcas_of_fabric import find_candidates, hca_matches
from ..._check.discover import check as discover
from ..._model.base.errors import RdmaError
from ..._model.base.load import load
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import is_interface_moved
from ..._model.node.hca import Hca, NodeHcas, ObservedHcas
from ..._model.node.tuning import ObservedTuning
from ..._model.run.findings import PASS, Judged
from ..._model.run.records import Record
from .alike import ComparedGroup, group_alike
from .exhibits import Charts, Undrawable, list_memberships
from .inputs import ReportFacts
from .sheet import make_sheet
from .sheet_parts import Sheet
from .sheet_parts import SheetInputs as Shown

_WORDS = re.compile(r"[\s,]+")
Records = typing.Mapping[str, Record]
#: of a node: by HCA its rail on each fabric
Rails = typing.Mapping[str, typing.Mapping[str, int]]


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The sheets and groups of all nodes of a run.

    :ivar sheets: sheet of each node
    :ivar groups: groups of comparable nodes and HCAs
    :ivar notes: data that the sheets and groups lack, each with the reason
    """

    sheets: tuple[Sheet, ...]
    groups: tuple[ComparedGroup, ...]
    notes: tuple[str, ...] = ()


def build_nodes(records: Records, facts: ReportFacts, known: Charts) -> typing.Optional[Nodes]:
    """Return the sheets and groups of the nodes. Return None if stage discover left no facts, because no node is known
    in this case.

    :param records: records of this run, by stage
    :param facts: facts of this run
    :param known: charts of the InfiniBand fabrics, by name
    :raises Undrawable: the facts of stage discover do not load
    """
    record = records.get("discover")
    if record is None or not record.facts or record.intent is None:
        return None
    try:
        intent = load(Intent, record.intent, "intent")
        seen: discover.Facts = facts.of("discover", ("nodes",))
    except RdmaError as error:
        raise Undrawable(f"The facts of stage discover could not be shown: {error}.") from error
    found = group_alike(records, facts)
    notes, tunings = list(found.notes), found.tuning.tunings
    kinds = {member: group.name for group in found.groups if group.what == "nodes" for member in group.members}
    rails: typing.Mapping[str, Rails] = {}
    try:
        rails = _find_rails(records, facts, known)
    except Undrawable as error:
        notes.append(f"The rails are unknown: {error}")
    judged = _group_by_node(records, seen.nodes)
    odd = _odd_of(seen.nodes, found.groups)
    missed = ObservedTuning(error="stage tuning wrote no facts")
    sheets = []
    for name, hcas in seen.nodes.items():
        of_node = rails.get(name, {})
        wanted, moved = _collect_intended_hcas(intent, hcas, of_node)
        words = {
            hca: ", ".join(f"{fabric} rail {rail}" for fabric, rail in found.items()) for hca, found in of_node.items()
        }
        about = (words, wanted, moved, judged.get(name, ()), kinds.get(name, ""), tuple(odd.get(name, ())))
        sheets.append(make_sheet(Shown(name, hcas, tunings.get(name, missed), *about)))
    return Nodes(tuple(sheets), found.groups, tuple(notes))


def _odd_of(names: typing.Container[str], groups: typing.Iterable[ComparedGroup]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group in groups:
        for odd in group.odd:
            for member in odd.members:
                name, _blank, hca = (member, "", "") if group.what == "nodes" else member.rpartition(" ")
                if name in names:
                    found.setdefault(name, []).append(
                        f"{f'{hca} ' if hca else ''}{odd.what}: {odd.value}; comparable members: {odd.others}"
                    )
    return found


def _find_rails(records: Records, facts: ReportFacts, known: Charts) -> typing.Mapping[str, Rails]:
    """Return the number of the rail of each HCA, by node, name of the HCA, and fabric.

    :param records: records of this run, by stage
    :param known: charts of the InfiniBand fabrics, by name
    :raises Undrawable: the facts of stage fabric do not load
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for membership in list_memberships(records.get("fabric"), facts, known):
        for node, members in membership.members.items():
            for member in members:
                found.setdefault(node, {}).setdefault(member.hca.name, {})[membership.fabric] = member.rail
    return found


def _collect_intended_hcas(intent: Intent, hcas: ObservedHcas, rails: Rails) -> tuple[set[str], set[str]]:
    """Return two sets of names of HCAs: those that the intent uses, and those of them whose interfaces are moved into
    pods. If a fabric has fewer members on the node than the intent requires, all HCAs that could be a member are
    included.

    :param hcas: HCAs of the node, as far as they were observed
    :param rails: rails of the node's HCAs, by name of the HCA and fabric
    """
    value = hcas.value or NodeHcas(())
    wanted, moved = set(), set()
    for fabric in intent.fabrics:
        # one without a port shows no link layer, and may be meant all the same
        mute = (
            hca
            for hca in value.hcas
            if not hca.all_ports and (hca.rdma_device or _is_infiniband(hca)) and hca_matches(fabric.select, hca)
        )
        names = {name for name, found in rails.items() if fabric.name in found}
        if len(names) < fabric.select.hcas_per_node:
            names |= {hca.name for hca in (*find_candidates(fabric, value), *mute) if hca.name not in rails}
        wanted |= names
        moved |= names if is_interface_moved(fabric) else set()
    return wanted, moved


def _is_infiniband(hca: Hca) -> bool:
    return hca.pci is not None and hca.pci.device_class == "0207"


def _group_by_node(records: Records, names: typing.Container[str]) -> dict[str, list[Judged]]:
    """Return the findings that did not pass, by the nodes that their subjects name. Findings on a pair of nodes are
    left out, because they concern everything between the two nodes and neither node in particular.

    :param names: names of the nodes
    """
    found: dict[str, list[Judged]] = {}
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
