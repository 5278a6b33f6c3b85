# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many collectives name what is slow in a fleet, and what is accused: build/venv/bin/python
tests/benchmarks/collectives.py [--draws 20] [--write docs/collectives.md]

Faults are drawn by a seed: a port, a node on each of its rails, the inside of a node, an uplink of a leaf, and several
at once. Each gives a quarter to four fifths of its rate; sound tests reach 0.93 to 0.99 of their bound. The same fleets
are searched by the scheme that NVIDIA/cluster-readiness-engine publishes. ``--write`` makes the table of the page.
"""

from __future__ import annotations

import dataclasses
import pathlib
import random
import statistics
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.dev.blocks import put_block
from ansible_collections.linerate.rdma.tests.benchmarks.support.collective_fleet import (
    NO_RAIL,
    SLOW,
    CollectiveFleet,
    Fault,
    Outcome,
    climb,
    halve_nodes,
)
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

MODULE = "tests.benchmarks.collectives"
RAILS, DRAWS = 8, 20
#: nodes of each leaf. 232 nodes in 13 domains is the size of which the peer publishes its figures
FLEETS: dict[int, tuple[int, ...]] = {232: (18,) * 11 + (17,) * 2, 1024: (32,) * 32}
SMALLEST = 24
#: faults of each kind: ports, nodes, insides, uplinks
FAULTS: dict[str, tuple[int, int, int, int]] = {
    "none": (0, 0, 0, 0),
    "one rail of a node": (1, 0, 0, 0),
    "a node, on each rail": (0, 1, 0, 0),
    "the inside of a node": (0, 0, 1, 0),
    "an uplink of a leaf": (0, 0, 0, 1),
    "5 ports, 2 nodes, 1 inside, 1 uplink": (5, 2, 1, 1),
}
#: name of each scheme
OURS, PEER = "stage `collectives`", "nodes halved, as ADR-055"
SCHEMES: dict[str, typing.Callable[[CollectiveFleet], Outcome]] = {OURS: climb, PEER: halve_nodes}
#: rows of the table: nodes, and the share of the tests that are slow without a fault
ROWS = ((232, 0.0), (1024, 0.0), (1024, 0.01))
#: tests and rounds that the peer publishes of 232 nodes [ADR-055 of NVIDIA/cluster-readiness-engine]
PUBLISHED = {
    "none": "28, 3",
    "one rail of a node": "22, 7",
    "a node, on each rail": "22, 7",
    "an uplink of a leaf": "23, 7",
    "5 ports, 2 nodes, 1 inside, 1 uplink": "55, 7 (5 nodes)",
}


def draw(
    sizes: typing.Sequence[int], wanted: tuple[int, int, int, int], seed: int, rails: int = RAILS
) -> CollectiveFleet:
    """Return a fleet with faults that a seed draws, no two of them on one node.

    :param sizes: nodes of each leaf
    :param wanted: faults of each kind
    """
    chance = random.Random(seed)
    leaves = {
        f"leaf-{leaf:02d}": tuple(f"node-{leaf:02d}-{node:02d}" for node in range(size))
        for leaf, size in enumerate(sizes)
    }
    ports, nodes, insides, uplinks = wanted
    names = chance.sample([node for members in leaves.values() for node in members], ports + nodes + insides)
    faults: list[Fault] = [("port", name, chance.randrange(rails)) for name in names[:ports]]
    faults += [("node", name, NO_RAIL) for name in names[ports : ports + nodes]]
    faults += [("inside", name, NO_RAIL) for name in names[ports + nodes :]]
    faults += [("uplink", leaf, chance.randrange(rails)) for leaf in chance.sample(list(leaves), uplinks)]
    return CollectiveFleet(leaves, rails, {fault: chance.uniform(*SLOW) for fault in faults}, chance)


def outcomes(
    sizes: typing.Sequence[int], wanted: tuple[int, int, int, int], scheme: str, draws: int, noise: float = 0.0
) -> list[Outcome]:
    """Return what a scheme makes of the fleets of the first seeds."""
    fleets = [dataclasses.replace(draw(sizes, wanted, seed), noise=noise) for seed in range(draws)]
    return [SCHEMES[scheme](fleet) for fleet in fleets]


def make_table(draws: int = DRAWS, rows: typing.Sequence[tuple[int, float]] = ROWS) -> str:
    """Return the table of the page."""
    heads = ("tests", "rounds", "named", "wrongly", "undecided", "ADR-055: tests", "rounds", "named", "wrongly")
    lines = [f"| nodes | slow by chance | slow | {' | '.join(heads)} | published |", "|---" * (4 + len(heads)) + "|"]
    for nodes, noise in rows:
        for slow, wanted in FAULTS.items():
            ours, peer = (outcomes(FLEETS[nodes], wanted, scheme, draws, noise) for scheme in (OURS, PEER))
            undecided = sum(item.undecided for item in ours)
            published = PUBLISHED.get(slow, "") if (nodes, noise) == ROWS[0] else ""
            cells = (*_cells(ours, wanted), f"{undecided}", *_cells(peer, wanted), published)
            lines.append(f"| {nodes:,} | {noise:.0%} | {slow} | {' | '.join(cells)} |")
    return "\n".join((*lines, ""))


def _cells(made: typing.Sequence[Outcome], wanted: tuple[int, int, int, int]) -> tuple[str, str, str, str]:
    tests, rounds = (_spread([getattr(item, name) for item in made]) for name in ("tests", "rounds"))
    found = f"{sum(item.found for item in made)} of {len(made) * sum(wanted)}" if any(wanted) else ""
    return tests, rounds, found, str(sum(item.wrong for item in made))


def _spread(values: typing.Sequence[int]) -> str:
    return f"{min(values):,}" if min(values) == max(values) else f"{min(values):,} to {max(values):,}"


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--draws", type=int, default=DRAWS)
    made.add_argument("--write", type=pathlib.Path, help="the page whose table is made")
    options = made.parse_args(arguments)
    if options.write:
        page = options.write.resolve()
        page.write_text(put_block(page.read_text(encoding="utf-8"), MODULE, page, make_table(options.draws)), "utf-8")
        return ()
    fleets, draws = ({SMALLEST: (8, 8, 8)}, 2) if options.smallest else (FLEETS, options.draws)
    return show((item for nodes, sizes in fleets.items() for item in _results(nodes, sizes, draws)), options.json)


def _results(nodes: int, sizes: typing.Sequence[int], draws: int) -> typing.Iterator[Result]:
    for slow, wanted in FAULTS.items():
        size = f"{nodes} nodes x {RAILS} rails, slow: {slow}"
        found = {scheme: outcomes(sizes, wanted, scheme, draws) for scheme in SCHEMES}
        for unit in ("tests", "rounds"):
            means = {scheme: statistics.mean(getattr(item, unit) for item in made) for scheme, made in found.items()}
            for scheme, made in found.items():
                named = sum(item.found for item in made)
                wrong = sum(item.wrong for item in made)
                note = f"{named} of {draws * sum(wanted)} named, {wrong} wrongly"
                yield Result(scheme, size, means[scheme], unit, means[scheme] / means[PEER], PEER, note)


if __name__ == "__main__":
    main()
