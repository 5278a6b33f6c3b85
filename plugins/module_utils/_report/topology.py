# SPDX-License-Identifier: GPL-3.0-or-later

"""A fabric as a drawing would show it: nodes below, their leaves above, then the switches above these; what findings accuse is marked, the rest is folded
where there is much of it."""

from __future__ import annotations

import collections
import dataclasses
import re
import typing

from .._model.fabric import FabricNode
from .._model.findings import Judged
from .exhibits import Chart
from .matrix import by_number
from .verdict import label

#: of a row that are drawn one by one; in a longer one only what is marked is, and the rest as groups
MOST_IN_ROW = 16
#: of a long row that are marked and drawn one by one
MOST_MARKED = 10
#: groups of a long row; with more of them the row has one
MOST_GROUPS = 6

#: checks whose subject is a thing that can be pointed at; the others are about pairs, which accuse all that lies between
_POINTING = re.compile(r"discover\.|fabric\.|reachability\.suspect|bandwidth\.suspect")
# what a suspect between switches is called (_check/fleet/suspects.py): the links upwards are meant, and the switch itself is not
_UPWARDS = ("uplinks of ", "uplinks ", "links between ", "leaves ")


@dataclasses.dataclass(frozen=True)
class Item:
    """Something in a row: a node, a switch, or a group of them that nothing is said about.

    :ivar key: what it is in ``Drawing.edges``
    :ivar marks: what findings say about it
    :ivar size: how many it stands for
    :ivar rails: of a node: its rails, each with whether a finding accuses the HCA there
    """

    key: str
    name: str
    marks: typing.Tuple[str, ...] = ()
    size: int = 1
    rails: typing.Tuple[typing.Tuple[int, bool], ...] = ()


@dataclasses.dataclass(frozen=True)
class Edge:
    """All links between two items.

    :ivar rail: of a node's links; None between switches
    """

    below: str
    above: str
    rail: typing.Optional[int]
    links: int
    bad: bool


@dataclasses.dataclass(frozen=True)
class Drawing:
    """Rows from the top (the switches furthest from the nodes) to the bottom (the nodes).

    :ivar words: how much there is of everything
    """

    name: str
    rows: typing.Tuple[typing.Tuple[Item, ...], ...]
    edges: typing.Tuple[Edge, ...]
    words: str


def drawing(chart: Chart, judged: typing.Iterable[Judged]) -> Drawing:
    """The drawing of a fabric, with what the findings accuse.

    :param judged: of all stages
    """
    said = [
        (item.finding.subject, f"{item.finding.check}: {item.finding.measured}; {item.finding.subject}")
        for item in judged
        if label(item) in ("fail", "unknown", "warn") and _POINTING.match(item.finding.check)
    ]
    graph = _Graph(chart)
    marks = {key: tuple(text for subject, text in said if mentions(subject, name)) for key, name in graph.names.items()}
    above = [subject for subject, _text in said if any(word in subject for word in _UPWARDS)]
    upwards = {key for key, name in graph.names.items() if any(mentions(subject, name) for subject in above)}
    bad_hcas = {end for end in chart.places if any(mentions(subject, " ".join(end)) for subject, _text in said)}
    rows, owner = [], {}
    for tier in sorted(set(graph.tiers.values()), reverse=True):
        keys = sorted((key for key, place in graph.tiers.items() if place == tier), key=lambda key: by_number(graph.names[key]))
        items, members = _row(graph, keys, marks, bad_hcas)
        rows.append(items)
        owner.update(members)
    edges: typing.Dict[typing.Tuple[str, str, typing.Optional[int]], typing.List[bool]] = collections.defaultdict(list)
    for link in graph.links:
        edges[owner[link.below], owner[link.above], link.rail].append(_is_bad(graph, link, said, bad_hcas, upwards))
    switches = ", ".join(f"{len(row)} {'leaves' if tier == 1 else 'switches above'}" for tier, row in sorted(graph.rows().items()) if tier)
    words = f"{len(graph.rows().get(0, ()))} nodes, {switches or 'no switch'}, {len(graph.links)} links"
    made = (Edge(below, above, rail, len(found), any(found)) for (below, above, rail), found in edges.items())
    return Drawing(chart.name, tuple(rows), tuple(made), words)


def mentions(subject: str, name: str) -> bool:
    """Whether a subject has the name as a whole: worker-1 is not in 'worker-10 mlx5_0'."""
    if not name or name not in subject:
        return False
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", subject) is not None


class _Link(typing.NamedTuple):
    """rail and hca: of a node's link; None and empty between switches."""

    below: str
    above: str
    rail: typing.Optional[int] = None
    hca: str = ""


class _Graph:
    """Nodes and switches of a fabric by key, in tiers: 0 nodes, 1 leaves, 2 what is above a leaf."""

    def __init__(self, chart: Chart) -> None:
        switches = {node.guid: node for node in chart.topology.nodes if node.kind == "Switch"}
        self.names = {guid: _called(node) for guid, node in switches.items()}
        self.names.update({name: name for name in chart.membership.members})
        self.rails: typing.Dict[str, typing.Dict[int, str]] = {name: {} for name in chart.membership.members}
        ports = {}
        for name, members in chart.membership.members.items():
            for member in members:
                self.rails[name][member.rail] = member.hca.name
                if member.port is not None and member.port.guid is not None:
                    ports[member.port.guid] = (name, member)
        self.links: typing.List[_Link] = []
        self.tiers: typing.Dict[str, int] = dict.fromkeys(chart.membership.members, 0)
        between: typing.List[typing.Tuple[str, str]] = []
        for cable in chart.topology.links:
            if cable.a.guid in switches and cable.b.guid in switches:
                between.append((cable.a.guid, cable.b.guid))
            for near, far in ((cable.a, cable.b), (cable.b, cable.a)):
                if near.port_guid in ports and far.guid in switches:
                    name, member = ports[near.port_guid]
                    self.links.append(_Link(name, far.guid, member.rail, member.hca.name))
                    self.tiers[far.guid] = 1
        self._climb(between, switches)
        for one, other in between:
            below, above = sorted((one, other), key=lambda guid: (self.tiers[guid], guid))
            self.links.append(_Link(below, above))
        #: rails that a leaf serves
        self.serves: typing.Dict[str, typing.Set[int]] = collections.defaultdict(set)
        for link in self.links:
            if link.rail is not None:
                self.serves[link.above].add(link.rail)

    def _climb(self, between: typing.Sequence[typing.Tuple[str, str]], switches: typing.Iterable[str]) -> None:
        """A switch is one tier above the nearest one to the nodes."""
        neighbours: typing.Dict[str, typing.Set[str]] = collections.defaultdict(set)
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

    def rows(self) -> typing.Dict[int, typing.List[str]]:
        result: typing.Dict[int, typing.List[str]] = collections.defaultdict(list)
        for key, tier in self.tiers.items():
            result[tier].append(key)
        return result


Said = typing.Sequence[typing.Tuple[str, str]]


def _is_bad(graph: _Graph, link: _Link, said: Said, bad_hcas: typing.Container[typing.Tuple[str, str]], upwards: typing.Container[str]) -> bool:
    """Whether a finding accuses the HCA at its lower end, all links upwards of a switch, or just this one by both ends."""
    if link.rail is not None:
        return (link.below, link.hca) in bad_hcas
    one, other = graph.names[link.below], graph.names[link.above]
    return link.below in upwards or any(mentions(subject, one) and mentions(subject, other) for subject, _text in said)


def _called(node: FabricNode) -> str:
    return node.description.strip() or node.guid


Marks = typing.Mapping[str, typing.Tuple[str, ...]]


def _row(
    graph: _Graph, keys: typing.Sequence[str], marks: Marks, bad_hcas: typing.Container[typing.Tuple[str, str]]
) -> typing.Tuple[typing.Tuple[Item, ...], typing.Dict[str, str]]:
    """The items of a tier, and in which item each of its nodes or switches is."""
    single = list(keys)
    if len(keys) > MOST_IN_ROW:
        single = [key for key in keys if marks[key]][:MOST_MARKED]
    alone = set(single)
    items = {key: Item(key, graph.names[key], marks[key], 1, _rails(graph, key, bad_hcas)) for key in single}
    owner = {key: key for key in single}
    rest: typing.Dict[typing.Hashable, typing.List[str]] = collections.defaultdict(list)
    for key in keys:
        if key not in alone:
            rest[_neighbourhood(graph, key)].append(key)
    groups = list(rest.values()) if len(rest) <= MOST_GROUPS else [[key for key in keys if key not in alone]]
    for group in groups:
        named = f"group {group[0]}"
        what = "nodes" if group[0] in graph.rails else "switches"
        marked = tuple(text for key in group for text in marks[key])
        items[named] = Item(named, f"{len(group)} {what}", marked[:1] and (f"{len(marked)} findings, see the list",), len(group), _rails(graph, group[0], ()))
        owner.update(dict.fromkeys(group, named))
    # groups stand where their first member would
    first = {owner[key]: place for place, key in reversed(list(enumerate(keys)))}
    return tuple(sorted(items.values(), key=lambda item: first[item.key])), owner


def _neighbourhood(graph: _Graph, key: str) -> typing.Hashable:
    """What members of a group share: of nodes the rails they have, of switches the rail that they serve."""
    if key in graph.rails:
        return tuple(sorted(graph.rails[key]))
    return tuple(sorted(graph.serves[key]))


def _rails(graph: _Graph, key: str, bad_hcas: typing.Container[typing.Tuple[str, str]]) -> typing.Tuple[typing.Tuple[int, bool], ...]:
    return tuple((rail, (key, hca) in bad_hcas) for rail, hca in sorted(graph.rails.get(key, {}).items()))
