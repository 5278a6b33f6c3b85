# SPDX-License-Identifier: GPL-3.0-or-later

"""A check that raises over the answer of one node judges the others."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.blamed import findings_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import FAIL, PASS, UNKNOWN, Finding, ok


@dataclasses.dataclass(frozen=True)
class Observed:
    value: typing.Optional[float]
    error: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Facts:
    nodes: typing.Dict[str, Observed]
    limits: typing.Dict[str, int] = dataclasses.field(default_factory=dict)


def check(facts: Facts) -> typing.List[Finding]:
    found = []
    for name, node in facts.nodes.items():
        if node.value is None:
            found.append(Finding("test.node", name, UNKNOWN, "nothing", "a figure", str(node.error), "Look."))
        else:
            found.append(ok("test.node", name, str(1 / node.value), "a figure"))
    return found


def fleet(number: int, *bad: int) -> Facts:
    return Facts({f"node-{index:04d}": Observed(0.0 if index in bad else 1.0) for index in range(number)}, {"node-0000": 1})


@pytest.mark.parametrize("bad", [(), (0,), (999,), (500,), (3, 4, 700, 999)])
def test_nodes_over_which_it_raises_have_their_error_and_the_others_their_verdict(bad: typing.Tuple[int, ...]) -> None:
    calls = []

    def counted(facts: Facts) -> typing.List[Finding]:
        calls.append(facts)
        return check(facts)

    found = findings_of("host", counted, fleet(1000, *bad))
    names = [f"node-{index:04d}" for index in bad]
    assert [finding.subject for finding in found if finding.status == PASS] == [name for name in fleet(1000).nodes if name not in names]
    assert [finding.subject for finding in found if finding.status == UNKNOWN] == names
    refused = [finding for finding in found if finding.check == "host.error"]
    assert [(finding.subject, finding.status) for finding in refused] == [(f"stage host, {name}", FAIL) for name in names]
    assert all("ZeroDivisionError" in finding.measured and "test_blamed.py, line" in finding.measured for finding in refused)
    # for each of them as many as halve a thousand, and two
    assert len(calls) <= 1 + 12 * len(bad)


def test_more_nodes_than_are_looked_for_are_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        findings_of("host", check, fleet(10, 1, 2, 3, 4, 5))


def test_a_check_that_raises_whatever_nodes_answered_is_its_own_error() -> None:
    def broken(facts: Facts) -> typing.List[Finding]:
        return [ok("test.node", "x", str(facts.limits["missing"]), "a limit")]

    with pytest.raises(KeyError):
        findings_of("host", broken, fleet(10))
