# SPDX-License-Identifier: GPL-3.0-or-later

"""Collectives of simulated fleets: what is slow is named, nothing else is, and the page has these figures."""

from __future__ import annotations

import pathlib
import random

import pytest

from ansible_collections.linerate.rdma.dev.blocks import read_block
from ansible_collections.linerate.rdma.tests.benchmarks import collectives
from ansible_collections.linerate.rdma.tests.benchmarks.support.collective_fleet import (
    NO_RAIL,
    CollectiveFleet,
    Fault,
    Outcome,
    climb,
    halve_nodes,
)

PAGE = pathlib.Path(__file__).parents[3] / "docs/collectives.md"
SIZES = (8,) * 6


@pytest.mark.parametrize("slow", collectives.FAULTS)
def test_drawn_faults_are_named_and_nothing_else(slow: str) -> None:
    wanted = collectives.FAULTS[slow]
    for seed in range(12):
        made = climb(collectives.draw(SIZES, wanted, seed))
        assert (made.found, made.wrong, made.undecided) == (sum(wanted), 0, 0), f"seed {seed}: {made}"


@pytest.mark.parametrize("slow", collectives.FAULTS)
def test_tests_that_are_slow_by_chance_accuse_nothing(slow: str) -> None:
    wanted = collectives.FAULTS[slow]
    for made in collectives.outcomes(SIZES, wanted, collectives.OURS, 12, 0.01):
        assert made.wrong == 0 and made.found == sum(wanted)


def test_a_seed_draws_the_same_fleet_again() -> None:
    one, other = (collectives.draw(SIZES, (5, 2, 1, 1), 3) for _number in range(2))
    assert one.slow == other.slow and len(one.slow) == 9 and climb(one) == climb(other)
    assert collectives.draw(SIZES, (5, 2, 1, 1), 4).slow != one.slow


def test_the_published_scheme_names_nodes_alone() -> None:
    sound = collectives.draw(collectives.FLEETS[232], (0, 0, 0, 0), 0)
    assert halve_nodes(sound) == Outcome(tests=27, rounds=3, found=0, wrong=0)
    faults: dict[Fault, tuple[int, int]] = {
        ("node", "node-03-05", NO_RAIL): (1, 0),
        # the first node of the leaf represents it, and is accused
        ("uplink", "leaf-03", 2): (0, 1),
    }
    for fault, (found, wrong) in faults.items():
        made = halve_nodes(CollectiveFleet(sound.leaves, sound.rails, {fault: 0.5}, random.Random(1)))
        assert (made.found, made.wrong) == (found, wrong)


def test_the_page_says_that_nothing_is_named_wrongly() -> None:
    rows = [line.split(" | ") for line in read_block(PAGE.read_text(), collectives.MODULE, PAGE).splitlines()[2:]]
    assert [(row[0], row[1]) for row in rows] == [
        (f"| {nodes:,}", f"{noise:.0%}") for nodes, noise in collectives.ROWS for _slow in collectives.FAULTS
    ]
    assert {row[6] for row in rows} == {"0"}


@pytest.mark.thorough
def test_the_page_has_the_figures_of_today() -> None:
    made = collectives.make_table()
    assert read_block(PAGE.read_text(), collectives.MODULE, PAGE) == made, (
        "run: python tests/benchmarks/collectives.py --write docs/collectives.md"
    )
