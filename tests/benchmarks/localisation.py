# SPDX-License-Identifier: GPL-3.0-or-later

"""How many rounds name a fleet's bad links, and who is accused: build/venv/bin/python tests/benchmarks/localisation.py
[--draws 100] [--write docs]

Fat trees that are routed by destination: 1,024 ends on 32 leaves and 32 spines, once as 1,024 hosts, once as 128 hosts
with 8 rails that share the spines. Their tables are computed by a real opensm in the lab's simulator, by its fat tree
and by its min hop. And smaller ones, with tables that are made up, that are uneven, that have three levels, or two
hosts a leaf. Links are drawn, of those that the tables use, which carry a quarter to four fifths of what they should.
Readings scatter by 0, 3 and 8 %, and flows that share a link share what it carries. Other ways of pairing are measured
on the same draws, and judged by the same evidence:

- ours: inside of each leaf, between leaves, then suspects only;
- a tournament, everybody with everybody by the circle method, as superbenchmark's pattern pair-wise;
- one round for each distance, as superbenchmark's pattern topo-aware;
- random matchings, a new shuffle in each round, as imbue's host validation makes 15 of;
- all ordered pairs, one after the other, as l8k does.

In their favour, flows of these never share a link here, and their evidence knows the ways. ``--write`` makes the table
and the picture of docs/scale.md. With ``--keep`` each draw is written as it is made, and a later run goes on from
there.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import itertools
import json
import pathlib
import random
import statistics
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_coverage_rounds import (
    Round,
    Test,
    Turn,
    cover_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.localization import (
    Evidence,
    locate_slow_links,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rate_shares import Reading
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rounds import iterate_rounds
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.suspect_rounds import SuspectRoundPlanner
from ansible_collections.linerate.rdma.tests.benchmarks.support import simulated_fabric
from ansible_collections.linerate.rdma.tests.benchmarks.support.marked import replace
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.unit.fat_tree import tree

GBPS = 400.0
KINDS = ("host", "cable", "spine", "leaf")
NUMBERS, NOISES = (1, 3, 10), (0.0, 0.03, 0.08)
#: noise of which peers are measured too, and which the picture shows
PEER_NOISE = 0.03
#: rounds that a peer's pairing is given, and after which of them it is judged
PEER_ROUNDS = (2, 3, 5, 10, 20)
#: of the rate, what a way should carry
FLOOR = 0.9


@dataclasses.dataclass(frozen=True)
class Size:
    """A fleet.

    :ivar hosts: on each leaf
    :ivar spines: of each pod
    :ivar engine: of opensm, which computes the tables; empty where they are made up
    """

    name: str
    hosts: tuple[int, ...]
    spines: int
    rails: int = 1
    pods: int = 1
    cores: int = 0
    engine: str = ""

    @property
    def ends(self) -> int:
        return sum(self.hosts)

    def ways(self) -> PathTable:
        """:raises NotStarted: there is no opensm to be had"""
        if self.engine:
            return simulated_fabric.read(
                simulated_fabric.Shape(len(self.hosts), self.spines, self.hosts[0], self.rails), self.engine
            ).ways()
        return tree(self.hosts, self.spines, self.pods, self.cores, self.rails, across=True)

    def __str__(self) -> str:
        return self.name


ONE_RAIL, EIGHT_RAILS = "1,024 hosts x 1 rail", "128 hosts x 8 rails"
LARGE = tuple(
    Size(f"{name}, {engine}", (32,) * 32, 32, rails, engine=engine)
    for name, rails in ((ONE_RAIL, 1), (EIGHT_RAILS, 8))
    for engine in simulated_fabric.ENGINES
)
MADE_UP = (
    Size(f"{ONE_RAIL}, tables made up", (32,) * 32, 32),
    Size(f"{EIGHT_RAILS}, tables made up", (32,) * 32, 32, rails=8),
)
SMALL = (
    Size("uneven: 3 to 16 hosts on each of 17 leaves", tuple(3 + 5 * leaf % 14 for leaf in range(17)), 8),
    Size("three levels: 256 hosts in 4 pods", (16,) * 16, 8, pods=4, cores=8),
    Size("2 hosts on each of 20 leaves", (2,) * 20, 10),
)
SMALLEST = Size("64 hosts x 1 rail", (8,) * 8, 8)


@dataclasses.dataclass(frozen=True)
class Fault:
    """One bad thing: a switch, or directions of one link. share: of its rate that it carries."""

    directions: frozenset[int]
    share: float
    switch: str = ""


def draw(ways: PathTable, used: typing.AbstractSet[int], kind: str, number: int, chance: random.Random) -> list[Fault]:
    """So many faults of a kind, all different, among the links that ways use; as many as there are, where these are
    fewer."""
    ends = {end for link in used for end in (ways.directions[link].source, ways.directions[link].target)}
    switches = sorted(ends & (set(ways.leaves) if kind == "leaf" else ways.switches - ways.leaves.keys()))
    of_hosts = {ways.up(end) // 2 for end in range(len(ways.ends))}
    cables = sorted(of_hosts if kind == "host" else {link // 2 for link in used if link ^ 1 in used} - of_hosts)
    whole: typing.Sequence[typing.Union[str, int]] = switches if kind in ("leaf", "spine") else cables
    faults = []
    for what in chance.sample(whole, min(number, len(whole) // 2)):
        share = chance.uniform(0.25, 0.8)
        if isinstance(what, str):
            its = {
                number
                for number in range(ways.real)
                if what in (ways.directions[number].source, ways.directions[number].target)
            }
            faults.append(Fault(frozenset(its), share, what))
        else:
            faults.append(
                Fault(frozenset(chance.choice(((2 * what,), (2 * what + 1,), (2 * what, 2 * what + 1)))), share)
            )
    return faults


class Rig:
    """A fleet with faults, which is measured. shared: flows over one link share it."""

    def __init__(
        self, ways: PathTable, faults: typing.Sequence[Fault], noise: float, chance: random.Random, shared: bool
    ) -> None:
        self._ways, self._noise, self._chance, self._shared = ways, noise, chance, shared
        self._share: dict[int, float] = {}
        for fault in faults:
            for number in fault.directions:
                self._share[number] = min(fault.share, self._share.get(number, 1.0))
        self.readings: list[Reading] = []

    def measure_all(self, turns: typing.Iterable[Turn]) -> None:
        for turn in turns:
            self.measure(turn)

    def measure(self, turn: Turn) -> None:
        flows: dict[int, int] = {}
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


def judge(ways: PathTable, faults: typing.Sequence[Fault], evidence: Evidence, made_rounds: int, tests: int) -> Outcome:
    """What was told against what is so."""
    bad = {number for fault in faults for number in fault.directions}
    switches = {fault.switch for fault in faults if fault.switch}
    named = set(evidence.slow)
    of_named = {
        number
        for number in range(ways.real)
        if {ways.directions[number].source, ways.directions[number].target} & set(evidence.switches)
    }
    vague = {number for numbers in evidence.sets for number in numbers}
    told = [
        (fault.switch in evidence.switches) if fault.switch else fault.directions <= named | of_named
        for fault in faults
    ]
    together = sum(
        not right and bool(fault.directions & (named | vague | of_named)) for fault, right in zip(faults, told)
    )
    wrong = (
        len(named - bad) + len(set(evidence.switches) - switches) + sum(not numbers & bad for numbers in evidence.sets)
    )
    needed = made_rounds if all(told) and not wrong and not evidence.sets else 0
    return Outcome(made_rounds, needed, tests, sum(told), together, len(faults) - sum(told) - together, wrong)


def ours(
    ways: PathTable, first: typing.Sequence[Round], faults: typing.Sequence[Fault], noise: float, chance: random.Random
) -> Outcome:
    """All rounds, until no test can tell more."""
    rig = Rig(ways, faults, noise, chance, True)
    start = time.process_time()
    for item in first:
        rig.measure_all(item.turns)
    narrowing, made, needed = SuspectRoundPlanner(ways), len(first), 0
    while True:
        evidence = locate_slow_links(ways, rig.readings, FLOOR)
        outcome = judge(ways, faults, evidence, made, len(rig.readings))
        # an answer that is taken back was none
        needed = (needed or outcome.needed) if outcome.needed else 0
        more = narrowing.next(evidence)
        if more is None:
            return dataclasses.replace(outcome, needed=needed, seconds=time.process_time() - start)
        made += 1
        rig.measure_all(more.turns)


def peer(
    ways: PathTable,
    faults: typing.Sequence[Fault],
    noise: float,
    chance: random.Random,
    pairs: typing.Iterator[typing.Sequence[Test]],
    judged: typing.Optional[typing.Sequence[int]],
) -> Outcome:
    """The first of some rounds after which all is named, or what there is after the last one.

    :param judged: numbers of these rounds; None: after all, each of whose tests is a round of its own
    """
    rig = Rig(ways, faults, noise, chance, False)
    count = 0
    for count, turn in enumerate(pairs, 1):
        rig.measure_all((tuple(turn), tuple((target, source) for source, target in turn)))
        if judged and count in judged:
            outcome = judge(ways, faults, locate_slow_links(ways, rig.readings, FLOOR), count, len(rig.readings))
            if outcome.needed or count == judged[-1]:
                return outcome
    made = count if judged else len(rig.readings)
    return judge(ways, faults, locate_slow_links(ways, rig.readings, FLOOR), made, len(rig.readings))


def _rails(ways: PathTable) -> list[list[int]]:
    return [
        [number for number, end in enumerate(ways.ends) if end.rail == rail]
        for rail in sorted({end.rail for end in ways.ends})
    ]


def tournament(ways: PathTable, _chance: random.Random) -> typing.Iterator[typing.Sequence[Test]]:
    for together in zip(*(iterate_rounds(rail) for rail in _rails(ways))):
        yield [pair for pairs in together for pair in pairs]


def matchings(ways: PathTable, chance: random.Random) -> typing.Iterator[typing.Sequence[Test]]:
    while True:
        turn: list[Test] = []
        for rail in _rails(ways):
            order = chance.sample(rail, len(rail))
            turn += list(zip(order[::2], order[1::2]))
        yield turn


def distances(ways: PathTable, _chance: random.Random) -> typing.Iterator[typing.Sequence[Test]]:
    """For each length of ways, a pair for each end as far as ends are left: the first ones that are so far apart."""
    lengths = sorted({len(ways.way(0, target) or ()) for target in range(1, len(ways.ends))} - {0})
    for length in lengths:
        turn: list[Test] = []
        for rail in _rails(ways):
            left = list(rail)
            while left:
                source = left.pop(0)
                target = next((other for other in left if len(ways.way(source, other) or ()) == length), None)
                if target is not None:
                    left.remove(target)
                    turn.append((source, target))
        yield turn


OURS, TOURNAMENT, DISTANCES, MATCHINGS = "leaf first, then suspects", "tournament", "by distance", "random matchings"
ALL_PAIRS = "all ordered pairs, one by one"
PEERS = {TOURNAMENT: tournament, DISTANCES: distances, MATCHINGS: matchings, ALL_PAIRS: tournament}


@dataclasses.dataclass(frozen=True)
class Cell:
    """All draws of one way of pairing, kind, number and noise."""

    size: Size
    noise: float
    kind: str
    number: int
    way: str
    outcomes: tuple[Outcome, ...]

    def total(self, what: str) -> int:
        return sum(getattr(outcome, what) for outcome in self.outcomes)

    @property
    def resolved(self) -> list[int]:
        """Rounds after which the whole truth was told, of the draws where it was."""
        return sorted(outcome.needed for outcome in self.outcomes if outcome.needed)

    @property
    def needed(self) -> str:
        """Median of the rounds, where most draws were resolved, and how many were."""
        found, all_draws = self.resolved, len(self.outcomes)
        middle = (
            str(found[(all_draws - 1) // 2])
            if len(found) > (all_draws - 1) // 2
            else f"not by {max(outcome.rounds for outcome in self.outcomes)}"
        )
        return middle if len(found) == all_draws else f"{middle} ({len(found)} of {all_draws})"

    @property
    def tests_an_end(self) -> float:
        return statistics.median(outcome.tests for outcome in self.outcomes) / self.size.ends

    @property
    def faults(self) -> int:
        return self.total("named") + self.total("together") + self.total("missed")


@dataclasses.dataclass(frozen=True)
class Job:
    """Draws of one fleet and noise: ours on all of them, each peer's pairing on the first ones."""

    size: Size
    noise: float
    draws: int
    peers: typing.Mapping[str, int] = dataclasses.field(default_factory=dict)


class Kept:
    """The outcomes of all draws so far, in a file where one is named: what was measured once is not measured again.

    :raises OSError: it can't be written
    """

    def __init__(self, path: typing.Optional[pathlib.Path]) -> None:
        self._path = path
        self._outcomes: dict[tuple[str, float, str, int, str, int], Outcome] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                *key, outcome = json.loads(line)
                self._outcomes[typing.cast("tuple[str, float, str, int, str, int]", tuple(key))] = Outcome(**outcome)

    def has(self, size: Size, noise: float, kind: str, number: int, way: str, index: int) -> bool:
        return (size.name, noise, kind, number, way, index) in self._outcomes

    def add(self, size: Size, noise: float, kind: str, number: int, way: str, index: int, outcome: Outcome) -> None:
        key = (size.name, noise, kind, number, way, index)
        self._outcomes[key] = outcome
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps([*key, dataclasses.asdict(outcome)]) + "\n")

    def cells(self, sizes: typing.Sequence[Size]) -> list[Cell]:
        """In the order of sizes, noises, kinds, numbers and ways of pairing."""
        found: dict[tuple[str, float, str, int, str], list[Outcome]] = {}
        for key in sorted(self._outcomes, key=lambda key: key[-1]):
            found.setdefault(key[:-1], []).append(self._outcomes[key])
        every = itertools.product(sizes, NOISES, KINDS, NUMBERS, (OURS, *PEERS))
        rows = [
            (size, noise, kind, number, way, found.get((size.name, noise, kind, number, way), []))
            for size, noise, kind, number, way in every
        ]
        return [Cell(*row[:-1], tuple(row[-1])) for row in rows if row[-1]]


def measure(job: Job, ways: PathTable, kept: Kept, numbers: typing.Sequence[int]) -> None:
    """Each way of pairing on the same draws."""
    first = cover_links(ways)
    for kind, number in itertools.product(KINDS, numbers):
        for index in range(job.draws):
            for way in (OURS, *(name for name, few in job.peers.items() if index < few)):
                if kept.has(job.size, job.noise, kind, number, way, index):
                    continue
                chance = random.Random(f"{job.size} {job.noise} {kind} {number} {index}")
                faults = draw(ways, first.covered, kind, number, chance)
                if way == OURS:
                    outcome = ours(ways, first.rounds, faults, job.noise, chance)
                else:
                    judged = None if way == ALL_PAIRS else PEER_ROUNDS
                    outcome = peer(ways, faults, job.noise, chance, PEERS[way](ways, chance), judged)
                kept.add(job.size, job.noise, kind, number, way, index, outcome)


WORDS = {"host": "cable of a host", "cable": "leaf to spine", "spine": "whole spine", "leaf": "whole leaf"}


def table(made: typing.Sequence[Cell]) -> str:
    """Markdown, a row for each size, noise, kind and number."""
    head = [
        "fleet",
        "noise",
        "slow",
        "number",
        "draws",
        "rounds",
        "worst",
        "tests an end",
        "named",
        "together",
        "missed",
        "wrong",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cell in made:
        if cell.way == OURS:
            row = [
                str(cell.size),
                _percent(cell.noise),
                WORDS[cell.kind],
                str(cell.number),
                str(len(cell.outcomes)),
                cell.needed,
            ]
            row += [
                str(max(outcome.rounds for outcome in cell.outcomes)),
                f"{cell.tests_an_end:.2f}",
                f"{cell.total('named')} of {cell.faults}",
            ]
            row += [str(cell.total(what)) for what in ("together", "missed", "wrong")]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def table_of_peers(made: typing.Sequence[Cell]) -> str:
    """Markdown: each way of pairing on the draws that all of them have measured."""
    head = [
        "fleet",
        "slow",
        "number",
        "pairing",
        "draws",
        "rounds",
        "tests an end",
        "named",
        "together",
        "missed",
        "wrong",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    by_row: dict[tuple[Size, str, int], dict[str, Cell]] = {}
    for cell in made:
        if cell.noise == PEER_NOISE:
            by_row.setdefault((cell.size, cell.kind, cell.number), {})[cell.way] = cell
    for (size, kind, number), its in by_row.items():
        few = max((len(cell.outcomes) for name, cell in its.items() if name != OURS), default=0)
        for name, cell in its.items() if few else ():
            shown = dataclasses.replace(cell, outcomes=cell.outcomes[:few])
            row = [
                str(size),
                WORDS[kind],
                str(number),
                name,
                str(len(shown.outcomes)),
                shown.needed,
                f"{shown.tests_an_end:,.2f}",
            ]
            row += [
                f"{shown.total('named')} of {shown.faults}",
                *(str(shown.total(what)) for what in ("together", "missed", "wrong")),
            ]
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


# all pairs, one by one, are beyond what a picture of rounds shows
COLOURS = {OURS: "#0a7d4f", TOURNAMENT: "#b5541c", DISTANCES: "#8a6d1b", MATCHINGS: "#5a54a4"}


def picture(made: typing.Sequence[Cell], noise: float) -> str:
    """SVG: of the first fleet, how many draws each way of pairing resolved, and after how many rounds."""
    shown = [cell for cell in made if cell.size == made[0].size and cell.noise == noise and cell.way in COLOURS]
    rows = list(dict.fromkeys((cell.kind, cell.number) for cell in shown))
    left, width, row, top = 190, 430, 74, 64
    height = top + row * len(rows) + 12
    words = (
        f"{made[0].size}, readings that scatter by {noise:.0%}: share of the draws in which every slow link was named"
        " and nothing else"
    )
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img" font-family="sans-serif"'
            ' font-size="13">'
        ),
        f"<title>{words}</title>",
        f'<rect width="900" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" fill="#222222">{words}</text>',
    ]
    for place, name in enumerate(COLOURS):
        lines.append(f'<rect x="{10 + 200 * place}" y="34" width="12" height="12" fill="{COLOURS[name]}"/>')
        lines.append(f'<text x="{28 + 200 * place}" y="45" fill="#222222">{name}</text>')
    for place, (kind, number) in enumerate(rows):
        y = top + row * place
        lines.append(f'<text x="10" y="{y + 34}" fill="#222222">{number} x {WORDS[kind]}</text>')
        for index, cell in enumerate(
            sorted(
                (cell for cell in shown if (cell.kind, cell.number) == (kind, number)),
                key=lambda cell: list(COLOURS).index(cell.way),
            )
        ):
            share = len(cell.resolved) / len(cell.outcomes)
            upper = y + 5 + 15 * index
            lines.append(
                f'<rect x="{left}" y="{upper}" width="{max(1.0, width * share):.1f}" height="12"'
                f' fill="{COLOURS[cell.way]}"/>'
            )
            told = f"{share:.0%}".replace("%", " %") + (
                f", {cell.resolved[(len(cell.resolved) - 1) // 2]} rounds"
                if cell.resolved
                else f" in {max(outcome.rounds for outcome in cell.outcomes)} rounds"
            )
            accused = f", {cell.total('wrong')} innocent accused" if cell.total("wrong") else ""
            lines.append(
                f'<text x="{left + width * share + 8:.1f}" y="{upper + 11}" fill="#222222"'
                f' font-size="11">{told}{accused}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


def write(folder: pathlib.Path, made: typing.Sequence[Cell]) -> None:
    """The table into scale.md, between its marks, and the picture beside it."""
    words = (
        f"The other ways of pairing on the first of the same draws, noise {_percent(PEER_NOISE)}, {PEER_ROUNDS[-1]}"
        " rounds at most."
    )
    ours_alone = [cell for cell in made if cell.way == OURS]
    draws, wrong = (
        sum(len(cell.outcomes) for cell in ours_alone),
        sum(outcome.wrong > 0 for cell in ours_alone for outcome in cell.outcomes),
    )
    rate = f"In {wrong:,} of these {draws:,} draws anything was accused that has no fault."
    peers = any(cell.way != OURS for cell in made)
    more = f"{words}\n\n{table_of_peers(made)}\n" if peers else ""
    replace(folder / "scale.md", "localisation", f"\n{table(made)}\n{rate}\n\n{more}")
    if peers:
        (folder / "localisation.svg").write_text(picture(made, PEER_NOISE), encoding="utf-8")


def results(made: typing.Sequence[Cell]) -> typing.Iterator[Result]:
    """Tests for each end, to those of all pairs, and who was accused beside."""
    for size in dict.fromkeys(cell.size for cell in made):
        everybody = float(size.ends - 1)
        for noise, kind, number in dict.fromkeys(
            (cell.noise, cell.kind, cell.number) for cell in made if cell.size == size
        ):
            work = f"{size}, {number} x {WORDS[kind]}, noise {noise:.0%}"
            yield Result("all pairs", work, everybody, "tests an end", 1.0, "all pairs", f"{size.ends - 1} rounds")
            for cell in made:
                if (cell.size, cell.noise, cell.kind, cell.number) == (size, noise, kind, number):
                    note = (
                        f"rounds {cell.needed}; named {cell.total('named')} of {cell.faults}, together"
                        f" {cell.total('together')}, missed {cell.total('missed')}"
                    )
                    note += (
                        f", wrong {cell.total('wrong')}; {cell.total('seconds') / len(cell.outcomes):.2g} processor s"
                        if cell.way == OURS
                        else ""
                    )
                    yield Result(
                        cell.way,
                        work,
                        cell.tests_an_end,
                        "tests an end",
                        cell.tests_an_end / everybody,
                        "all pairs",
                        note,
                    )


def jobs(options: argparse.Namespace) -> list[Job]:
    """What matters most comes first: a run that is ended early has it."""
    if options.smallest:
        return [Job(SMALLEST, PEER_NOISE, 3, dict.fromkeys(PEERS, 1))]
    large = MADE_UP if options.made_up else LARGE
    pairings = {TOURNAMENT: options.peer_draws, DISTANCES: options.peer_draws, MATCHINGS: options.peer_draws}
    found = [Job(large[0], PEER_NOISE, options.large_draws)]
    for noise in (PEER_NOISE, *(noise for noise in reversed(NOISES) if noise != PEER_NOISE)):
        found += [Job(size, noise, options.large_draws) for size in large]
        found += [Job(size, noise, options.draws) for size in SMALL]
        if noise == PEER_NOISE:
            found += [
                Job(large[0], noise, options.large_draws, pairings),
                Job(large[-1], noise, options.large_draws, {ALL_PAIRS: options.all_pairs_draws}),
            ]
    return found


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--draws", type=int, default=100, help="of each kind, number and noise on the small fleets")
    made.add_argument(
        "--large-draws", type=int, default=100, help="the same on those with 1,024 ends: a tenth of a second each"
    )
    made.add_argument(
        "--peer-draws",
        type=int,
        default=100,
        help="of these, on the first fleet, measured by the peers' pairings too: a second each",
    )
    made.add_argument(
        "--all-pairs-draws",
        type=int,
        default=1,
        help="of these, on the last large fleet, by all ordered pairs: half a minute each",
    )
    made.add_argument(
        "--made-up", action="store_true", help="do without the lab's simulator and opensm: tables that are made up"
    )
    made.add_argument(
        "--keep", type=pathlib.Path, metavar="FILE", help="write each draw there; what it holds is not measured again"
    )
    made.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        help="begin no other fleet after so long; 0 measures nothing, and shows what was kept",
    )
    made.add_argument(
        "--write",
        type=pathlib.Path,
        metavar="FOLDER",
        help="write the tables and the picture into scale.md of this folder",
    )
    options = made.parse_args(arguments)
    kept, start = Kept(options.keep), time.monotonic()
    todo, ways = jobs(options), {}
    # the ways of large fleets are many objects that stay
    gc.disable()
    for job in todo:
        if time.monotonic() - start > options.seconds:
            break
        if job.size not in ways:
            try:
                ways[job.size] = job.size.ways()
            except simulated_fabric.NotStarted as error:
                raise SystemExit(f"{job.size}: {error}\n--made-up does without a simulator and opensm") from error
        measure(job, ways[job.size], kept, NUMBERS[:2] if options.smallest else NUMBERS)
        gc.collect()
    found = kept.cells(list(dict.fromkeys(job.size for job in todo)))
    if options.write:
        write(options.write, found)
    return show(results(found), options.json)


if __name__ == "__main__":
    main()
