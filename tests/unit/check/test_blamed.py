# SPDX-License-Identifier: GPL-3.0-or-later

"""A check that raises over the answer of one node judges the others."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.blamed import collect_findings
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.observed import Observed
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    Finding,
    build_pass,
)


@dataclasses.dataclass(frozen=True)
class Facts:
    nodes: dict[str, Observed[float]]
    limits: dict[str, int] = dataclasses.field(default_factory=dict)


def check(facts: Facts) -> list[Finding]:
    found = []
    for name, node in facts.nodes.items():
        if node.value is None:
            found.append(Finding("test.node", name, UNKNOWN, "nothing", "a figure", str(node.error), "Look."))
        else:
            found.append(build_pass("test.node", name, str(1 / node.value), "a figure"))
    return found


def fleet(number: int, *bad: int) -> Facts:
    return Facts(
        {f"node-{index:04d}": Observed(0.0 if index in bad else 1.0) for index in range(number)}, {"node-0000": 1}
    )


@pytest.mark.parametrize("bad", [(), (0,), (999,), (500,), (3, 4, 700, 999)])
def test_nodes_over_which_it_raises_have_their_error_and_the_others_their_verdict(bad: tuple[int, ...]) -> None:
    calls = []

    def counted(facts: Facts) -> list[Finding]:
        calls.append(facts)
        return check(facts)

    found = collect_findings("host", counted, fleet(1000, *bad))
    names = [f"node-{index:04d}" for index in bad]
    assert [finding.subject for finding in found if finding.status == PASS] == [
        name for name in fleet(1000).nodes if name not in names
    ]
    assert [finding.subject for finding in found if finding.status == UNKNOWN] == names
    refused = [finding for finding in found if finding.check == "host.error"]
    assert [(finding.subject, finding.status) for finding in refused] == [
        (f"stage host, {name}", FAIL) for name in names
    ]
    assert all(
        "ZeroDivisionError" in finding.measured and "test_blamed.py, line" in finding.measured for finding in refused
    )
    # for each of them as many as halve a thousand, and three; and three for all of them
    assert len(calls) <= 3 + 13 * len(bad)


def compared(guilty: typing.Collection[str], with_others: int = 1) -> typing.Callable[[Facts], list[Finding]]:
    """A check that raises where it compares one of these nodes with so many others."""

    def judge(facts: Facts) -> list[Finding]:
        known = [name for name, node in facts.nodes.items() if node.value is not None]
        if set(known) & set(guilty) and len(known) > with_others:
            raise ValueError("not to be compared")
        return check(facts)

    return judge


def errors_of(found: typing.Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.subject.partition(", ")[2], finding.status) for finding in found if finding.check == "host.error"]


@pytest.mark.parametrize("others", [1, 2])
@pytest.mark.parametrize(
    ("number", "guilty"),
    [
        (5, (0,)),
        (5, (2,)),
        (5, (4,)),
        (10, (9,)),
        (10, (3, 9)),
        (10, (8, 9)),
        (10, (0, 9)),
        (10, (0, 1)),
        (1000, (500,)),
        (1000, (999,)),
    ],
)
def test_a_node_that_can_be_compared_with_nobody_is_the_one_that_is_blamed(
    number: int, guilty: tuple[int, ...], others: int
) -> None:
    names = [f"node-{index:04d}" for index in guilty]
    calls = []

    def counted(facts: Facts) -> list[Finding]:
        calls.append(facts)
        return compared(names, others)(facts)

    found = collect_findings("host", counted, fleet(number))
    assert errors_of(found) == [(name, FAIL) for name in names]
    assert [
        finding.subject for finding in found if finding.check == "test.node" and finding.status == UNKNOWN
    ] == names, "the others have their verdict"
    assert all("not to be compared" in finding.measured for finding in found if finding.check == "host.error")
    assert len(calls) <= 110


def pair(*names: str) -> typing.Callable[[Facts], list[Finding]]:
    """A check that raises over these nodes together."""

    def judge(facts: Facts) -> list[Finding]:
        if all(facts.nodes[name].value is not None for name in names):
            raise ValueError("they don't go together")
        return check(facts)

    return judge


@pytest.mark.parametrize("number", [2, 3, 50])
def test_of_two_that_do_not_go_together_neither_is_blamed(number: int) -> None:
    first, last = "node-0000", f"node-{number - 1:04d}"
    found = collect_findings("host", pair(first, last), fleet(number))
    (doubted,) = [finding for finding in found if finding.check == "host.error"]
    assert (doubted.subject, doubted.status) == (
        f"stage host, {first} and {last}",
        UNKNOWN,
    ) and "they don't go together" in doubted.measured
    assert (
        f"on the combined data of {first} and {last}" in doubted.why
        and "the node that causes it is unknown." in doubted.why
    )
    assert doubted.remedy.startswith(
        f"Compare the files facts/*/NODE.json of {first} and {last} in the folder of the report."
    )
    unjudged = [finding for finding in found if finding.check == "test.node" and finding.status == UNKNOWN]
    assert [finding.subject for finding in unjudged] == [first, last] and all(
        "not checked: " in finding.why for finding in unjudged
    )


def test_a_guilty_node_beside_two_that_do_not_go_together_is_blamed_alone() -> None:
    def judge(facts: Facts) -> list[Finding]:
        return pair("node-0001", "node-0007")(facts) and compared(["node-0004"])(facts)

    found = collect_findings("host", judge, fleet(10))
    assert errors_of(found) == [("node-0004", FAIL), ("node-0001 and node-0007", UNKNOWN)]


@pytest.mark.parametrize("number", [2, 3, 10])
def test_a_check_that_raises_over_any_answer_blames_nobody(number: int) -> None:
    def broken(facts: Facts) -> list[Finding]:
        return (
            [build_pass("test.node", "x", str(facts.limits["missing"]), "a limit")]
            if any(node.value for node in facts.nodes.values())
            else check(facts)
        )

    found = collect_findings("host", broken, fleet(number))
    (undecided,) = [finding for finding in found if finding.check == "host.error"]
    assert (undecided.subject, undecided.status) == ("stage host", UNKNOWN) and "KeyError" in undecided.measured
    assert f"Which of the {number} nodes causes it is unknown" in undecided.why and "report" in undecided.remedy.lower()
    assert "node-" not in undecided.why + undecided.remedy


def test_more_nodes_than_are_looked_for_leave_the_stage_without_a_verdict() -> None:
    found = collect_findings("host", check, fleet(10, 1, 2, 3, 4, 5))
    assert errors_of(found) == [("", UNKNOWN)] and "ZeroDivisionError" in found[-1].measured
    assert len(found) == 11 and all(
        finding.status == UNKNOWN and "not checked: " in finding.why for finding in found[:-1]
    )


def test_a_check_that_raises_whatever_nodes_answered_is_its_own_error() -> None:
    def broken(facts: Facts) -> list[Finding]:
        return [build_pass("test.node", "x", str(facts.limits["missing"]), "a limit")]

    with pytest.raises(KeyError):
        collect_findings("host", broken, fleet(10))
