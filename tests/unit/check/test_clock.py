# SPDX-License-Identifier: GPL-3.0-or-later

"""discover.clock: which clock is off, for sure, and by how much."""

from __future__ import annotations

import ctypes
import time
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.discover.clock import MOST_APART, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.clock import NodeClock, ObservedClock
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.clock import read_clock

ASKED, TOOK = 1767323045.0, 1.5
HOURS = 3600.0


def seen(ahead: float = 0.0, took: float = TOOK, synchronised: typing.Optional[bool] = True) -> ObservedClock:
    """A node whose clock is so many seconds ahead of the controller's, asked in the middle of the time that it took."""
    return ObservedClock(NodeClock(ASKED + took / 2 + ahead, synchronised, 0.01, ASKED, ASKED + took))


def judged(*clocks: ObservedClock) -> dict[str, tuple[str, str]]:
    findings = check({f"worker-{number}": clock for number, clock in enumerate(clocks, 1)})
    assert {finding.check for finding in findings} == {"discover.clock"}
    return {finding.subject: (finding.status, finding.measured) for finding in findings}


def test_each_node_is_judged_by_what_is_sure() -> None:
    for clock, status, says in (
        (seen(), "pass", "within 0.8 s of the controller, synchronized"),
        (seen(1.0), "pass", "0.2 s to 1.8 s ahead of the controller, synchronized"),
        (seen(-5.0), "warn", "4.2 s to 5.8 s behind the controller"),
        (seen(3 * HOURS), "fail", "3.0 h ahead of the controller"),
        (seen(-3 * HOURS), "fail", "3.0 h behind the controller"),
        (seen(took=70.0), "unknown", "somewhere within 35.0 s of the controller"),
        (seen(3 * HOURS, took=70.0), "fail", "3.0 h ahead of the controller"),
        (seen(synchronised=False), "warn", "within 0.8 s of the controller, not synchronized"),
        (seen(synchronised=None), "warn", "within 0.8 s of the controller, synchronization not reported"),
        (ObservedClock(error="unreachable: no route"), "unknown", "clock not read"),
        (ObservedClock(), "unknown", "clock not read"),
        (ObservedClock(NodeClock(ASKED)), "unknown", "offset unknown"),
        # set back by an hour between asking and answer
        (ObservedClock(NodeClock(ASKED, True, 0.01, ASKED, ASKED - HOURS)), "unknown", "offset unknown"),
    ):
        assert judged(clock) == {"worker-1": (status, says)}


def test_one_node_that_is_off_is_accused_and_nobody_else() -> None:
    findings = judged(seen(0.1), seen(3 * HOURS), seen(-0.2))
    assert {name: status for name, (status, _measured) in findings.items()} == {
        "worker-1": "pass",
        "worker-2": "fail",
        "worker-3": "pass",
    }


def test_nodes_that_agree_accuse_the_controller() -> None:
    findings = judged(seen(3 * HOURS), seen(3 * HOURS + 0.4), ObservedClock(error="unreachable"))
    assert findings["controller"] == ("fail", "3.0 h behind 2 nodes, which agree with each other")
    assert [findings[f"worker-{number}"][0] for number in (1, 2, 3)] == ["pass", "pass", "unknown"]


def test_nodes_that_are_off_by_different_times_are_accused_themselves() -> None:
    for clocks in ((seen(3 * HOURS), seen(-3 * HOURS)), (seen(3 * HOURS), seen(4 * HOURS))):
        findings = judged(*clocks)
        assert "controller" not in findings and {status for status, _measured in findings.values()} == {"fail"}


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 60)), min_size=1, max_size=5))
def test_nothing_far_off_ever_passes(given_clocks: list[tuple[float, float]]) -> None:
    """Each node has a finding; with one off by more than the limit from another, or from the controller, not all
    pass."""
    findings = judged(*(seen(ahead, took) for ahead, took in given_clocks))
    assert len(findings) in (len(given_clocks), len(given_clocks) + 1)
    if any(abs(ahead) >= MOST_APART + took for ahead, took in given_clocks):
        assert any(status in ("fail", "unknown") for status, _measured in findings.values())


def test_this_machine_s_clock_is_read() -> None:
    before = time.time()
    clock = read_clock()
    assert before <= clock.seconds <= time.time() and clock.asked is None
    # a sandbox may refuse adjtimex; where it answers, both are known
    assert (clock.synchronised is None) == (clock.error_seconds is None)


def test_state_of_the_kernel_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, answer, synchronised in ((0x2001, 0, True), (0x40, 5, False), (0, -1, None)):

        class Library:
            """adjtimex as the kernel answers it: 0 TIME_OK, 5 TIME_ERROR, -1 refused."""

            def __init__(self, _name: None) -> None:
                pass

            def adjtimex(self, reference: typing.Any, status: int = status, answer: int = answer) -> int:
                assert reference._obj.modes == 0, "asking must not set"
                reference._obj.status, reference._obj.maxerror = status, 18_000
                return answer

        monkeypatch.setattr(ctypes, "CDLL", Library)
        clock = read_clock()
        assert clock.synchronised is synchronised and clock.error_seconds == (None if synchronised is None else 0.018)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert read_clock().synchronised is None


def exact(low: float, high: float) -> ObservedClock:
    """A node that is ahead of the controller by so many seconds at least and at most, without a rounding error."""
    return ObservedClock(NodeClock(ASKED + high, True, 0.01, ASKED, ASKED + high - low))


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (30.0, 30.0, "fail"),
        (-30.0, -30.0, "fail"),
        (29.5, 29.5, "warn"),
        (0.0, 30.0, "unknown"),
        (0.0, 29.5, "pass"),
        (29.5, 30.0, "unknown"),
        (2.0, 2.0, "warn"),
        (-2.0, -2.0, "warn"),
        (1.5, 2.0, "pass"),
    ],
)
def test_limits_are_met_at_exactly_so_many_seconds(low: float, high: float, status: str) -> None:
    assert judged(exact(low, high))["worker-1"][0] == status


def test_the_controller_is_accused_from_exactly_the_limit_on() -> None:
    for ahead, accused in (
        (30.0, {"controller": "fail", "worker-1": "pass", "worker-2": "pass"}),
        (29.5, {"worker-1": "warn", "worker-2": "warn"}),
    ):
        findings = judged(exact(ahead, ahead), exact(ahead, ahead))
        assert {name: status for name, (status, _measured) in findings.items()} == accused


def test_a_node_that_was_not_compared_has_no_say_on_the_others() -> None:
    for clock in (NodeClock(ASKED, True, 0.01, None, ASKED), NodeClock(ASKED, True, 0.01, ASKED, None)):
        findings = judged(ObservedClock(clock), seen(3 * HOURS), seen(3 * HOURS))
        assert {name: status for name, (status, _measured) in findings.items()} == {
            "controller": "fail",
            "worker-1": "unknown",
            "worker-2": "pass",
            "worker-3": "pass",
        }


def test_an_answer_beside_an_error_tells_no_time() -> None:
    clock = seen().value
    assert judged(ObservedClock(clock, "the module was killed"), ObservedClock(clock)) == {
        "worker-1": ("unknown", "clock not read"),
        "worker-2": ("pass", "within 0.8 s of the controller, synchronized"),
    }
