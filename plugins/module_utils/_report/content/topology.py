# SPDX-License-Identifier: GPL-3.0-or-later

"""The drawing of a fabric as data: a row of nodes at the bottom, their leaves above them, then the other switches.
Items with findings are marked, and the items of large rows are combined into groups.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import re
import typing

from ..._model.infiniband.fabric import FabricNode
from ..._model.run.findings import Judged
from .exhibits import FabricChart
from .matrix import group_by_number
from .mentions import Mentions
from .verdict import label_finding

#: of a row that are drawn one by one; in a longer one only what is marked is, and the rest as groups
MOST_IN_ROW = 16
#: of a long row that are marked and drawn one by one
MOST_MARKED = 10
#: groups of a long row; with more of them the row has one
MOST_GROUPS = 6

#: of a fabric that is drawn: switches, of which a fat tree of three tiers has 5,120 where each has 64 ports; rows
MOST_SWITCHES, MOST_ROWS = 8192, 12
#: findings that are told of one thing; letters of each; names in a finding that is about the links between them
_MOST_SAID, _MOST_LETTERS, _MOST_TOGETHER = 8, 300, 8

#: checks whose subject is a thing that can be pointed at; the others are about pairs, which accuse all that lies
#: between
_POINTING = re.compile(r"discover\.|fabric\.|reachability\.suspect|bandwidth\.suspect")
# what a suspect between switches is called (_analysis/fleet/suspects.py): the links upwards are meant, and the switch
# itself is not
_UPWARDS = ("uplinks of ", "uplinks ", "links between ", "leaves ")


@dataclasses.dataclass(frozen=True)
class TierItem:
    """An item of one tier of the drawing: a node, a switch, or a group of them.

    :ivar key: identifier of the item, to which the edges refer
    :ivar name: displayed name
    :ivar marks: findings about the item, each as text; for a group one text with their number
    :ivar size: number of nodes or switches that the item represents
    :ivar rails: rails of a node: the number of each rail, and whether a finding names the HCA of this rail
    """

    key: str
    name: str
    marks: tuple[str, ...] = ()
    size: int = 1
    rails: tuple[tuple[int, bool], ...] = ()


@dataclasses.dataclass(frozen=True)
class Edge:
    """All links between two items of the drawing.

    :ivar below: key of the lower item
    :ivar above: key of the upper item
    :ivar rail: rail of the links of a node; None between switches
    :ivar links: number of links
    :ivar bad: whether a finding names at least one of the links
    """

    below: str
    above: str
    rail: typing.Optional[int]
    links: int
    bad: bool


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A drawing of a fabric in tiers.

    :ivar name: name of the fabric
    :ivar rows: items of each tier, from the top (switches that are farthest from the nodes) to the bottom (nodes)
    :ivar edges: links between the items
    :ivar words: numbers of nodes, switches and links, as text
    :ivar why_not: reason why there is no drawing; empty if there is a drawing
    """

    name: str
    rows: tuple[tuple[TierItem, ...], ...]
    edges: tuple[Edge, ...]
    words: str
    why_not: str = ""


def make_drawing(chart: FabricChart, judged: typing.Iterable[Judged]) -> Drawing:
    """Return the drawing of a fabric, in which the subjects of findings are marked. If the fabric is too large to be
    drawn, the drawing has no tiers, and its field ``why_not`` contains the reason.

    :param chart: members and topology of the fabric
    :param judged: findings of all stages
    """
    switches = sum(node.kind == "Switch" for node in chart.topology.nodes)
    if switches > MOST_SWITCHES:
        return _build_empty_drawing(chart, switches, f"it has more than {MOST_SWITCHES} switches")
    graph = _Graph(chart)
    tiers = graph.rows()
    if len(tiers) > MOST_ROWS:
        return _build_empty_drawing(chart, switches, f"its nodes and switches form more than {MOST_ROWS} tiers")
    said = _Said(judged, {*graph.names.values(), *map(" ".join, chart.places)})
    bad_hcas = {end for end in chart.places if said.about(" ".join(end))}
    rows, owner = [], {}
    for _tier, unsorted in sorted(tiers.items(), reverse=True):
        items, members = _build_tier_row(
            graph, sorted(unsorted, key=lambda key: group_by_number(graph.names[key])), said, bad_hcas
        )
        rows.append(items)
        owner.update(members)
    edges: dict[tuple[str, str, typing.Optional[int]], list[bool]] = collections.defaultdict(list)
    for link in graph.links:
        edges[owner[link.below], owner[link.above], link.rail].append(_is_bad(graph, link, said, bad_hcas))
    above = ", ".join(
        f"{len(row)} {'leaves' if tier == 1 else 'switches above'}" for tier, row in sorted(tiers.items()) if tier
    )
    words = f"{len(tiers.get(0, ()))} nodes, {above or 'no switch'}, {len(graph.links)} links"
    made = (Edge(below, above, rail, len(found), any(found)) for (below, above, rail), found in edges.items())
    return Drawing(chart.name, tuple(rows), tuple(made), words)


def _build_empty_drawing(chart: FabricChart, switches: int, why: str) -> Drawing:
    words = f"{len(chart.membership.members)} nodes, {switches} switches, {len(chart.topology.links)} links"
    return Drawing(chart.name, (), (), words, f"Not drawn: {why}. The whole topology is in facts/topologies.")


class _Said:
    """An index of the findings by the names of nodes, switches and HCAs that they contain. Each finding is searched
    once for all names.

    :param judged: findings of all stages
    :param names: names of nodes, switches and HCAs
    :ivar upwards: names of the switches about which a finding concerns all links to the next higher tier
    :ivar together: pairs of names that occur in the same finding
    """

    def __init__(self, judged: typing.Iterable[Judged], names: typing.Iterable[str]) -> None:
        self._texts: dict[str, list[str]] = collections.defaultdict(list)
        self._counts: typing.Counter[str] = collections.Counter()
        self.upwards: set[str] = set()
        self.together: set[tuple[str, str]] = set()
        mentions = Mentions(names)
        for finding in (
            item.finding
            for item in judged
            if label_finding(item) in ("fail", "unknown", "warn") and _POINTING.match(item.finding.check)
        ):
            found = mentions.of(finding.subject)
            self._counts.update(found)
            for name in found:
                if len(self._texts[name]) < _MOST_SAID:
                    self._texts[name].append(_shorten_text(f"{finding.check}: {finding.measured}; {finding.subject}"))
            if any(word in finding.subject for word in _UPWARDS):
                self.upwards |= found
            if len(found) <= _MOST_TOGETHER:
                self.together.update(itertools.product(found, found))

    def about(self, name: str) -> int:
        """Return the number of findings that contain a name."""
        return self._counts[name]

    def marks(self, name: str) -> tuple[str, ...]:
        """Return the first ``_MOST_SAID`` findings that contain a name, each as text, and a text with the number of the
        remaining ones if there are more. The result is empty if no finding contains the name.
        """
        more = self._counts[name] - _MOST_SAID
        return (*self._texts.get(name, ()), *([f"{more} more findings in the list of findings"] if more > 0 else []))


def _shorten_text(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}\u2026"


class _Link(typing.NamedTuple):
    """A link between two tiers of the drawing.

    :ivar below: key of the lower end, a node or a switch
    :ivar above: key of the upper end, a switch
    :ivar rail: rail of the link of a node; None between switches
    :ivar hca: HCA of the link of a node; empty between switches
    """

    below: str
    above: str
    rail: typing.Optional[int] = None
    hca: str = ""


class _Graph:
    """The nodes and switches of a fabric in tiers: 0 for nodes, 1 for leaves, 2 and more for the other switches. The
    key of a node is its name, and the key of a switch its GUID.

    :ivar names: names of nodes and switches by key
    :ivar rails: name of the HCA of each rail, by node
    :ivar links: links between two tiers, or between switches of the same tier
    :ivar tiers: tier of each node and switch, by key
    :ivar serves: numbers of the rails whose HCAs are connected to a switch, by key
    """

    def __init__(self, chart: FabricChart) -> None:
        switches = {node.guid: node for node in chart.topology.nodes if node.kind == "Switch"}
        self.names = {guid: _get_node_name(node) for guid, node in switches.items()}
        self.names.update({name: name for name in chart.membership.members})
        self.rails: dict[str, dict[int, str]] = {name: {} for name in chart.membership.members}
        ports = {}
        for name, members in chart.membership.members.items():
            for member in members:
                self.rails[name][member.rail] = member.hca.name
                if member.port is not None and member.port.guid is not None:
                    ports[member.port.guid] = (name, member)
        self.links: list[_Link] = []
        self.tiers: dict[str, int] = dict.fromkeys(chart.membership.members, 0)
        between: list[tuple[str, str]] = []
        for cable in chart.topology.links:
            if cable.a.guid in switches and cable.b.guid in switches:
                between.append((cable.a.guid, cable.b.guid))
            for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
                if near.port_guid in ports and far.guid in switches:
                    name, member = ports[near.port_guid]
                    self.links.append(_Link(name, far.guid, member.rail, member.hca.name))
                    self.tiers[far.guid] = 1
        self._assign_switch_tiers(between, switches)
        for one, other in between:
            below, above = sorted((one, other), key=lambda guid: (self.tiers[guid], guid))
            self.links.append(_Link(below, above))
        #: rails that a leaf serves
        self.serves: dict[str, set[int]] = collections.defaultdict(set)
        for link in self.links:
            if link.rail is not None:
                self.serves[link.above].add(link.rail)

    def _assign_switch_tiers(self, between: typing.Sequence[tuple[str, str]], switches: typing.Iterable[str]) -> None:
        """Set the tier of each switch above the leaves: one more than the tier of its neighbor that is nearest to the
        nodes. A switch without a path to any node gets tier 2.

        :param between: pairs of switches that a link connects
        :param switches: keys of all switches
        """
        neighbours: dict[str, set[str]] = collections.defaultdict(set)
        for one, other in between:
            neighbours[one].add(other)
            neighbours[other].add(one)
        edge = collections.deque(key for key, tier in self.tiers.items() if tier == 1)
        while edge:
            key = edge.popleft()
            for other in neighbours[key]:
                if other not in self.tiers:
                    self.tiers[other] = self.tiers[key] + 1
                    edge.append(other)
        # an island: no link of it leads to a node
        for guid in switches:
            self.tiers.setdefault(guid, 2)

    def rows(self) -> dict[int, list[str]]:
        result: dict[int, list[str]] = collections.defaultdict(list)
        for key, tier in self.tiers.items():
            result[tier].append(key)
        return result


def _is_bad(graph: _Graph, link: _Link, said: _Said, bad_hcas: typing.Container[tuple[str, str]]) -> bool:
    """Return whether a finding concerns a link. For the link of a node, a finding must name the HCA at its lower end.
    For a link between switches, a finding must name both ends, or concern all links of the lower switch to the next
    higher tier.

    :param graph: nodes and switches in tiers
    :param said: index of the findings by name
    :param bad_hcas: pairs of node and HCA that findings name
    """
    if link.rail is not None:
        return (link.below, link.hca) in bad_hcas
    one, other = graph.names[link.below], graph.names[link.above]
    return one in said.upwards or (one, other) in said.together


def _get_node_name(node: FabricNode) -> str:
    return node.called


def _build_tier_row(
    graph: _Graph, keys: typing.Sequence[str], said: _Said, bad_hcas: typing.Container[tuple[str, str]]
) -> tuple[tuple[TierItem, ...], dict[str, str]]:
    """Return two results: the items of one tier of the drawing, and by key of each node or switch the key of the item
    that represents it. In a large tier, only nodes and switches with findings have items of their own, and the others
    are combined into groups.

    :param graph: nodes and switches of the fabric in tiers
    :param keys: keys of the nodes or switches of the tier
    :param said: index of the findings by name
    :param bad_hcas: pairs of node and HCA that findings name
    """
    single = list(keys)
    if len(keys) > MOST_IN_ROW:
        single = [key for key in keys if said.about(graph.names[key])][:MOST_MARKED]
    alone = set(single)
    items = {
        key: TierItem(key, graph.names[key], said.marks(graph.names[key]), 1, _find_rails(graph, key, bad_hcas))
        for key in single
    }
    owner = {key: key for key in single}
    rest: dict[typing.Hashable, list[str]] = collections.defaultdict(list)
    for key in keys:
        if key not in alone:
            rest[_compute_group_key(graph, key)].append(key)
    groups = list(rest.values()) if len(rest) <= MOST_GROUPS else [[key for key in keys if key not in alone]]
    for group in groups:
        named = f"group {group[0]}"
        what = "nodes" if group[0] in graph.rails else "switches"
        count = sum(said.about(graph.names[key]) for key in group)
        marks = (f"{count} findings in the list of findings",) if count else ()
        items[named] = TierItem(named, f"{len(group)} {what}", marks, len(group), _find_rails(graph, group[0], ()))
        owner.update(dict.fromkeys(group, named))
    # groups stand where their first member would
    first = {owner[key]: place for place, key in reversed(list(enumerate(keys)))}
    return tuple(sorted(items.values(), key=lambda item: first[item.key])), owner


def _compute_group_key(graph: _Graph, key: str) -> typing.Hashable:
    """Return the key by which nodes and switches are drawn as one group: for a node its rails, for a switch the rails
    whose HCAs are connected to it.

    :param key: name of the node, or GUID of the switch
    """
    if key in graph.rails:
        return tuple(sorted(graph.rails[key]))
    return tuple(sorted(graph.serves[key]))


def _find_rails(graph: _Graph, key: str, bad_hcas: typing.Container[tuple[str, str]]) -> tuple[tuple[int, bool], ...]:
    return tuple((rail, (key, hca) in bad_hcas) for rail, hca in sorted(graph.rails.get(key, {}).items()))
