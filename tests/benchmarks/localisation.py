# SPDX-License-Identifier: GPL-3.0-or-later

"""How many rounds name a fleet's bad links, and who is accused: build/venv/bin/python tests/benchmarks/localisation.py [--draws 100] [--write docs]

A fat tree of 1,024 ends, 32 leaves and 32 spines, routed by destination; once as 1,024 hosts, once as 128 hosts with 8 rails that share the spines. Links
are drawn that carry a quarter to four fifths of what they should, readings scatter by 3 % and by 8 %, and flows that share a link share what it carries.
Three ways of pairing are measured on the same draws, and judged by the same evidence:

- ours: inside of each leaf, between leaves, then suspects only;
- a tournament, everybody with everybody by the circle method, as superbenchmark's pattern pair-wise;
- random matchings, a new shuffle in each round, as imbue's host validation makes 15 of.

In their favour, flows of these two never share a link here, and their evidence knows the ways. ``--write`` makes the table and the picture of docs/scale.md.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import random
import statistics
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import FabricNode, Link, LinkEnd, Topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.forwarding import UNTOLD, ForwardingTable
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.covering import Round, Test, Turn, cover
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.evidence import Evidence, Reading, weigh
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.narrowing import Narrowing
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.rounds import rounds
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.ways import End, Ways
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

GBPS = 400.0
KINDS = ("host", "cable", "spine", "leaf")
NUMBERS, NOISES = (1, 3, 10), (0.03, 0.08)
#: rounds that a peer's pairing is given, and after which of them it is judged
PEER_ROUNDS = (2, 3, 5, 10, 20, 40)
OWN_ROUNDS = 16


@dataclasses.dataclass(frozen=True)
class Size:
    hosts: int
    rails: int
    leaves: int
    spines: int

    def __str__(self) -> str:
        return f"{self.hosts:,} hosts x {self.rails} {'rail' if self.rails == 1 else 'rails'}"


SIZES = (Size(1024, 1, 32, 32), Size(128, 8, 32, 32))
SMALLEST = Size(64, 1, 8, 8)


def fat_tree(size: Size) -> Ways:
    """Its ways. A leaf has ends of one rail, and sends what goes to the end of another leaf to the spine of that end's number."""
    ends = size.hosts * size.rails
    per_leaf, per_rail = ends // size.leaves, size.leaves // size.rails
    leaf_lid, spine_lid, first = 1, 1 + size.leaves, 1 + size.leaves + size.spines

    def guid(kind: int, number: int) -> str:
        return f"0x{0xB83FD20300000000 + (kind << 24) + 16 * number:016x}"

    def at(end: int) -> int:
        host, rail = end % size.hosts, end // size.hosts
        return rail * per_rail + host // per_leaf

    nodes, links = [], []
    for leaf in range(size.leaves):
        nodes.append(FabricNode("Switch", guid(1, leaf), f"leaf{leaf:02d}", 64, leaf_lid + leaf))
    for spine in range(size.spines):
        nodes.append(FabricNode("Switch", guid(2, spine), f"spine{spine:02d}", 64, spine_lid + spine))
        for leaf in range(size.leaves):
            near, far = LinkEnd("Switch", guid(1, leaf), 1 + per_leaf + spine), LinkEnd("Switch", guid(2, spine), 1 + leaf)
            links.append(Link(near, far, 4, "NDR"))
    made = []
    tables = {node.guid: bytearray([UNTOLD]) * (first + ends) for node in nodes}
    for end in range(ends):
        host, rail, leaf, lid = end % size.hosts, end // size.hosts, at(end), first + end
        name = f"host{host:04d}"
        nodes.append(FabricNode("Ca", guid(3, end), f"{name} mlx5_{rail}", 1))
        port_guid = f"0x{int(guid(3, end), 16) + 1:016x}"
        links.append(Link(LinkEnd("Switch", guid(1, leaf), 1 + end % per_leaf), LinkEnd("Ca", guid(3, end), 1, lid, port_guid), 4, "NDR"))
        made.append(End(name, rail, port_guid, lid))
        for other in range(size.leaves):
            tables[guid(1, other)][lid] = 1 + end % per_leaf if other == leaf else 1 + per_leaf + end % size.spines
        for spine in range(size.spines):
            tables[guid(2, spine)][lid] = 1 + leaf
    return Ways(Topology(tuple(nodes), tuple(links)), [ForwardingTable(name, bytes(ports)) for name, ports in tables.items()], made)


@dataclasses.dataclass(frozen=True)
class Fault:
    """One bad thing: a switch, or directions of one link. share: of its rate that it carries."""

    directions: typing.FrozenSet[int]
    share: float
    switch: str = ""


def draw(ways: Ways, kind: str, number: int, chance: random.Random) -> typing.List[Fault]:
    """So many faults of a kind, all different."""
    switches = sorted(ways.leaves if kind == "leaf" else ways.switches - ways.leaves.keys())
    of_hosts = {ways.up(end) // 2 for end in range(len(ways.ends))}
    cables = sorted(of_hosts if kind == "host" else set(range(ways.real // 2)) - of_hosts)
    whole: typing.Sequence[typing.Union[str, int]] = switches if kind in ("leaf", "spine") else cables
    faults = []
    for what in chance.sample(whole, number):
        share = chance.uniform(0.25, 0.8)
        if isinstance(what, str):
            its = {number for number in range(ways.real) if what in (ways.directions[number].source, ways.directions[number].target)}
            faults.append(Fault(frozenset(its), share, what))
        else:
            faults.append(Fault(frozenset(chance.choice(((2 * what,), (2 * what + 1,), (2 * what, 2 * what + 1)))), share))
    return faults


class Rig:
    """A fleet with faults, which is measured. shared: flows over one link share it."""

    def __init__(self, ways: Ways, faults: typing.Sequence[Fault], noise: float, chance: random.Random, shared: bool) -> None:
        self._ways, self._noise, self._chance, self._shared = ways, noise, chance, shared
        self._share: typing.Dict[int, float] = {}
        for fault in faults:
            for number in fault.directions:
                self._share[number] = min(fault.share, self._share.get(number, 1.0))
        self.readings: typing.List[Reading] = []

    def measure_all(self, turns: typing.Iterable[Turn]) -> None:
        for turn in turns:
            self.measure(turn)

    def measure(self, turn: Turn) -> None:
        flows: typing.Dict[int, int] = {}
        for test in turn:
            for number in self._ways.way(*test) or ():
                flows[number] = flows.get(number, 0) + 1
        for test in turn:
            way = self._ways.way(*test) or ()
            carried = min(self._share.get(number, 1.0) / (flows[number] if self._shared else 1) for number in way)
            self.readings.append(Reading(test, GBPS * carried * max(0.0, self._chance.gauss(1.0, self._noise))))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of one draw.

    :ivar rounds: until it ended by itself, or was ended
    :ivar needed: after which all faults were named and nobody else; 0 when that was never so
    :ivar together: faults of which only a set was told that could not be told apart, or a part
    :ivar wrong: switches, directions of links and sets that were accused and have no fault
    """

    rounds: int
    needed: int
    tests: int
    named: int
    together: int
    missed: int
    wrong: int
    seconds: float = 0.0


def judge(ways: Ways, faults: typing.Sequence[Fault], evidence: Evidence, made_rounds: int, tests: int) -> Outcome:
    """What was told against what is so."""
    bad = {number for fault in faults for number in fault.directions}
    switches = {fault.switch for fault in faults if fault.switch}
    named = set(evidence.slow)
    of_named = {number for number in range(ways.real) if {ways.directions[number].source, ways.directions[number].target} & set(evidence.switches)}
    vague = {number for numbers in evidence.sets for number in numbers}
    told = [(fault.switch in evidence.switches) if fault.switch else fault.directions <= named | of_named for fault in faults]
    together = sum(not right and bool(fault.directions & (named | vague | of_named)) for fault, right in zip(faults, told))
    wrong = len(named - bad) + len(set(evidence.switches) - switches) + sum(not numbers & bad for numbers in evidence.sets)
    needed = made_rounds if all(told) and not wrong and not evidence.sets else 0
    return Outcome(made_rounds, needed, tests, sum(told), together, len(faults) - sum(told) - together, wrong)


def ours(ways: Ways, first: typing.Sequence[Round], faults: typing.Sequence[Fault], noise: float, chance: random.Random) -> Outcome:
    """All rounds, until no test can tell more."""
    rig = Rig(ways, faults, noise, chance, True)
    start = time.process_time()
    for item in first:
        rig.measure_all(item.turns)
    narrowing, made, needed = Narrowing(ways), len(first), 0
    while True:
        evidence = weigh(ways, rig.readings)
        outcome = judge(ways, faults, evidence, made, len(rig.readings))
        # an answer that is taken back was none
        needed = (needed or outcome.needed) if outcome.needed else 0
        more = narrowing.next(evidence) if made < OWN_ROUNDS else None
        if more is None:
            return dataclasses.replace(outcome, needed=needed, seconds=time.process_time() - start)
        made += 1
        rig.measure_all(more.turns)


def peer(ways: Ways, faults: typing.Sequence[Fault], noise: float, chance: random.Random, pairs: typing.Iterator[typing.Sequence[Test]]) -> Outcome:
    """The first of PEER_ROUNDS after which all is named, or what there is after the last one."""
    rig = Rig(ways, faults, noise, chance, False)
    outcome: typing.Optional[Outcome] = None
    for count, turn in enumerate(pairs, 1):
        rig.measure_all((tuple(turn), tuple((target, source) for source, target in turn)))
        if count in PEER_ROUNDS:
            outcome = judge(ways, faults, weigh(ways, rig.readings), count, len(rig.readings))
            if outcome.needed or count == PEER_ROUNDS[-1]:
                break
    assert outcome is not None
    return outcome


def _rails(ways: Ways) -> typing.List[typing.List[int]]:
    return [[number for number, end in enumerate(ways.ends) if end.rail == rail] for rail in sorted({end.rail for end in ways.ends})]


def tournament(ways: Ways, _chance: random.Random) -> typing.Iterator[typing.Sequence[Test]]:
    for together in zip(*(rounds(rail) for rail in _rails(ways))):
        yield [pair for pairs in together for pair in pairs]


def matchings(ways: Ways, chance: random.Random) -> typing.Iterator[typing.Sequence[Test]]:
    while True:
        turn: typing.List[Test] = []
        for rail in _rails(ways):
            order = chance.sample(rail, len(rail))
            turn += list(zip(order[::2], order[1::2]))
        yield turn


OURS, TOURNAMENT, MATCHINGS = "leaf first, then suspects", "tournament", "random matchings"
PEERS = {TOURNAMENT: tournament, MATCHINGS: matchings}


@dataclasses.dataclass(frozen=True)
class Cell:
    """All draws of one way of pairing, kind, number and noise."""

    size: Size
    noise: float
    kind: str
    number: int
    way: str
    outcomes: typing.Tuple[Outcome, ...]

    def total(self, what: str) -> int:
        return sum(getattr(outcome, what) for outcome in self.outcomes)

    @property
    def resolved(self) -> typing.List[int]:
        """Rounds after which the whole truth was told, of the draws where it was."""
        return sorted(outcome.needed for outcome in self.outcomes if outcome.needed)

    @property
    def needed(self) -> str:
        """Median of the rounds, where most draws were resolved, and how many were."""
        found, all_draws = self.resolved, len(self.outcomes)
        middle = str(found[(all_draws - 1) // 2]) if len(found) > (all_draws - 1) // 2 else f"not in {self.most}"
        return middle if len(found) == all_draws else f"{middle} ({len(found)} of {all_draws})"

    @property
    def most(self) -> int:
        return OWN_ROUNDS if self.way == OURS else PEER_ROUNDS[-1]

    @property
    def tests_an_end(self) -> float:
        return statistics.median(outcome.tests for outcome in self.outcomes) / (self.size.hosts * self.size.rails)


def cells(size: Size, draws: int, peer_draws: int, noises: typing.Sequence[float], numbers: typing.Sequence[int]) -> typing.Iterator[Cell]:
    """Each way of pairing on the same draws; the peers, which take longer, on the first ones."""
    ways = fat_tree(size)
    first = cover(ways).rounds
    for noise, kind, number in itertools.product(noises, KINDS, numbers):
        made: typing.Dict[str, typing.List[Outcome]] = {OURS: [], TOURNAMENT: [], MATCHINGS: []}
        for index in range(draws):
            chance = random.Random(f"{size} {noise} {kind} {number} {index}")
            faults = draw(ways, kind, number, chance)
            made[OURS].append(ours(ways, first, faults, noise, chance))
            for name, pairs in PEERS.items() if index < peer_draws else ():
                made[name].append(peer(ways, faults, noise, chance, pairs(ways, chance)))
        for name, outcomes in made.items():
            if outcomes:
                yield Cell(size, noise, kind, number, name, tuple(outcomes))


WORDS = {"host": "cable of a host", "cable": "leaf to spine", "spine": "whole spine", "leaf": "whole leaf"}


def table(made: typing.Sequence[Cell]) -> str:
    """Markdown, a row for each size, noise, kind and number."""
    by_row: typing.Dict[typing.Tuple[str, str, str, int], typing.Dict[str, Cell]] = {}
    for cell in made:
        by_row.setdefault((str(cell.size), f"{cell.noise:.0%}".replace("%", " %"), WORDS[cell.kind], cell.number), {})[cell.way] = cell
    head = ["fleet", "noise", "slow", "number", "rounds", "worst", "tests an end", "named", "together", "missed", "wrong"]
    head += [f"{name}: {what}" for name in PEERS for what in ("rounds", "named", "wrong")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for key, its in by_row.items():
        cell = its[OURS]
        faults = cell.number * len(cell.outcomes)
        row = [*map(str, key), cell.needed, str(max(outcome.rounds for outcome in cell.outcomes)), f"{cell.tests_an_end:.2f}"]
        row += [f"{cell.total('named')} of {faults}", *(str(cell.total(what)) for what in ("together", "missed", "wrong"))]
        for name in PEERS:
            other = its.get(name)
            row += [other.needed, f"{other.total('named')} of {other.number * len(other.outcomes)}", str(other.total("wrong"))] if other else ["-"] * 3
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


COLOURS = {OURS: "#0a7d4f", TOURNAMENT: "#b5541c", MATCHINGS: "#5a54a4"}


def picture(made: typing.Sequence[Cell], noise: float) -> str:
    """SVG: of the first fleet, how many draws each way of pairing resolved, and after how many rounds."""
    shown = [cell for cell in made if cell.size == made[0].size and cell.noise == noise]
    rows = list(dict.fromkeys((cell.kind, cell.number) for cell in shown))
    left, width, row, top = 190, 430, 58, 64
    height = top + row * len(rows) + 12
    words = f"{made[0].size}, readings that scatter by {noise:.0%}: share of the draws in which every slow link was named and nothing else"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img" font-family="sans-serif" font-size="13">',
        f"<title>{words}</title>",
        f'<rect width="900" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" fill="#222222">{words}</text>',
    ]
    for place, name in enumerate(COLOURS):
        lines.append(f'<rect x="{10 + 230 * place}" y="34" width="12" height="12" fill="{COLOURS[name]}"/>')
        lines.append(f'<text x="{28 + 230 * place}" y="45" fill="#222222">{name}</text>')
    for place, (kind, number) in enumerate(rows):
        y = top + row * place
        lines.append(f'<text x="10" y="{y + 26}" fill="#222222">{number} x {WORDS[kind]}</text>')
        for index, cell in enumerate(
            sorted((cell for cell in shown if (cell.kind, cell.number) == (kind, number)), key=lambda cell: list(COLOURS).index(cell.way))
        ):
            share = len(cell.resolved) / len(cell.outcomes)
            bar = y + 5 + 15 * index
            lines.append(f'<rect x="{left}" y="{bar}" width="{max(1.0, width * share):.1f}" height="12" fill="{COLOURS[cell.way]}"/>')
            told = f"{share:.0%}".replace("%", " %") + (
                f", {cell.resolved[(len(cell.resolved) - 1) // 2]} rounds" if cell.resolved else f" in {cell.most} rounds"
            )
            accused = f", {cell.total('wrong')} innocent accused" if cell.total("wrong") else ""
            lines.append(f'<text x="{left + width * share + 8:.1f}" y="{bar + 11}" fill="#222222" font-size="11">{told}{accused}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


BEGIN, END = "<!-- made by tests/benchmarks/localisation.py -->\n", "<!-- end of what is made -->\n"


def write(folder: pathlib.Path, made: typing.Sequence[Cell]) -> None:
    """The table into scale.md, between its marks, and the picture beside it."""
    page = folder / "scale.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no line '{BEGIN.strip()}' with '{END.strip()}' below it: add both where the table shall be")
    draws, few = ({len(cell.outcomes) for cell in made if (cell.way == OURS) == own} for own in (True, False))
    words = f"{max(draws)} draws a row; {max(few, default=0)} of these for the tournament and the random matchings."
    page.write_text(f"{before}{begin}\n{words}\n\n{table(made)}\n{end}{after}", encoding="utf-8")
    (folder / "localisation.svg").write_text(picture(made, made[0].noise), encoding="utf-8")


def results(made: typing.Sequence[Cell]) -> typing.Iterator[Result]:
    """Tests for each end, to those of all pairs, and who was accused beside."""
    for size in dict.fromkeys(cell.size for cell in made):
        everybody = float(size.hosts - 1)
        for noise, kind, number in dict.fromkeys((cell.noise, cell.kind, cell.number) for cell in made if cell.size == size):
            work = f"{size}, {number} x {WORDS[kind]}, noise {noise:.0%}"
            yield Result("all pairs", work, everybody, "tests an end", 1.0, "all pairs", f"{size.hosts - 1} rounds")
            for cell in made:
                if (cell.size, cell.noise, cell.kind, cell.number) == (size, noise, kind, number):
                    faults = number * len(cell.outcomes)
                    note = f"rounds {cell.needed}; named {cell.total('named')} of {faults}, together {cell.total('together')}, missed {cell.total('missed')}"
                    note += f", wrong {cell.total('wrong')}; {cell.total('seconds') / len(cell.outcomes):.2g} processor s" if cell.way == OURS else ""
                    yield Result(cell.way, work, cell.tests_an_end, "tests an end", cell.tests_an_end / everybody, "all pairs", note)


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--draws", type=int, default=100, help="of each kind, number and noise")
    made.add_argument("--peer-draws", type=int, default=5, help="of these, measured by the peers' pairings too: seconds each")
    made.add_argument("--write", type=pathlib.Path, metavar="FOLDER", help="write the table and the picture into scale.md of this folder")
    options = made.parse_args(arguments)
    if options.smallest:
        found = list(cells(SMALLEST, 3, 1, NOISES[:1], NUMBERS[:2]))
    else:
        found = [cell for size in SIZES for cell in cells(size, options.draws, options.peer_draws, NOISES, NUMBERS)]
    if options.write:
        write(options.write, found)
    return show(results(found), options.json)


if __name__ == "__main__":
    main()
