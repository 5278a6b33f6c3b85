# SPDX-License-Identifier: GPL-3.0-or-later

"""Which ends are left out of later rounds: those that lose one pair after the other, and never both ends of a path that
is bad."""

from __future__ import annotations

import itertools
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.left_out import LostPairs
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.rounds import iterate_rounds
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult

USUAL = 15.0


def result(client: str, server: str, lost: bool, seconds: float = 120.0, rail: int = 0) -> PairResult:
    if lost:
        return PairResult("compute", client, server, failure="hang", seconds=seconds, rail=rail)
    return PairResult("compute", client, server, average_gbps=390.0, seconds=12.0, rail=rail)


def measured(
    names: typing.Sequence[str], lost: typing.Callable[[str, str], bool], seconds: float = 120.0
) -> tuple[LostPairs, list[int]]:
    """What is left out when all meet all, and how many pairs each round lost."""
    known, numbers = LostPairs(), []
    for pairs in iterate_rounds(names):
        its = [
            result(one, other, lost(one, other), seconds)
            for one, other in pairs
            if not {(0, one), (0, other)} & known.out.keys()
        ]
        numbers.append(sum(bool(item.failure) for item in its))
        known.note(its, USUAL)
    return known, numbers


NAMES = [f"n{number:02}" for number in range(16)]


def test_an_end_that_loses_its_pairs_with_three_others_is_left_out() -> None:
    known, numbers = measured(NAMES, lambda one, other: "n07" in (one, other))
    assert list(known.out) == [(0, "n07")] and len(known.out[0, "n07"]) == 3
    # the last of the three partners has to pass with another one
    assert numbers == [1] * 4 + [0] * 11


def test_two_such_ends_are_left_out_and_nobody_else() -> None:
    known, _numbers = measured(NAMES, lambda one, other: bool({"n03", "n11"} & {one, other}))
    assert set(known.out) == {(0, "n03"), (0, "n11")}


def test_a_path_between_two_halves_that_is_bad_leaves_nobody_out() -> None:
    half = set(NAMES[:8])
    known, _numbers = measured(NAMES, lambda one, other: (one in half) != (other in half))
    assert known.out == {}


def test_a_fabric_of_which_nothing_works_leaves_nobody_out() -> None:
    assert measured(NAMES, lambda _one, _other: True)[0].out == {}


def test_what_fails_at_once_holds_nobody_up() -> None:
    assert measured(NAMES, lambda one, other: "n07" in (one, other), USUAL)[0].out == {}


def test_a_pair_that_passes_in_between_ends_the_row() -> None:
    turns = itertools.cycle((True, True, False))
    assert measured(NAMES, lambda one, other: "n07" in (one, other) and next(turns))[0].out == {}


def test_one_direction_that_is_lost_is_a_lost_pair_and_another_rail_is_another_end() -> None:
    known = LostPairs()
    for number, name in enumerate("abca"):
        others = [
            result(one, other, False, rail=rail) for rail in (0, 1) for one, other in itertools.combinations("abc", 2)
        ]
        found = known.note(
            [result("x", name, False), result(name, "x", True), result("x", name, False, rail=1), *others], USUAL
        )
        assert found == (((0, "x"),) if number == 3 else ())
    assert known.out == {(0, "x"): ("a", "b", "c")}
