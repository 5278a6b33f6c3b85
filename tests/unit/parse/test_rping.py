# SPDX-License-Identifier: GPL-3.0-or-later

"""rping: real captures, and that only an unbroken row of pings counts."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.rping import detect_shortfall, join_tail, parse

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize("version", ["perftest-4.5", "perftest-25.01"])
def test_client(version: str) -> None:
    text = (FIXTURES / version / "rping.client.stdout").read_text()
    assert parse(text).count == text.count("ping data:") > 0


def test_the_server_s_lines_are_not_the_client_s() -> None:
    text = (FIXTURES / "perftest-4.5/rping.server.stdout").read_text()
    assert "server ping data" in text
    assert parse(text).count == 0


@pytest.mark.parametrize("name", ["rping-noserver", "rping-wrongip", "rping-fw-udp4791-drop.client"])
def test_failures(name: str) -> None:
    assert parse((FIXTURES / f"perftest-4.5/fail/{name}.stdout").read_text()).count == 0


def test_gap_and_repetition_end_the_count() -> None:
    line = "ping data: rdma-ping-{}: ABC\n"
    assert parse("".join(line.format(number) for number in (0, 1, 3, 4))).count == 2
    assert parse("".join(line.format(number) for number in (0, 0, 0))).count == 1
    assert parse("".join(line.format(number) for number in (1, 2))).count == 0


@given(st.text())
def test_any_text(text: str) -> None:
    assert 0 <= parse(text).count <= len(text.splitlines())


@pytest.mark.parametrize("version", ["perftest-4.5", "perftest-25.01"])
def test_all_round_trips_are_no_failure_though_the_server_disconnects_at_the_end(version: str) -> None:
    text = "".join((FIXTURES / version / f"rping.client.{stream}").read_text() for stream in ("stdout", "stderr"))
    assert "DISCONNECT EVENT" in text
    assert detect_shortfall(text, parse(text).count) is None


def test_a_server_that_left_before_the_first_round_trip() -> None:
    found = detect_shortfall("client DISCONNECT EVENT...\nwait for RDMA_WRITE_ADV state 10\n", 5)
    assert found is not None
    assert found.kind == "disconnected"
    assert (
        found.evidence
        == "0 of 5 round trips, exit code 0: client DISCONNECT EVENT... | wait for RDMA_WRITE_ADV state 10"
    )


def test_round_trips_that_are_missing_without_a_word() -> None:
    found = detect_shortfall("", 5)
    assert found is not None
    assert (found.kind, found.evidence) == ("no_measurement", "0 of 5 round trips, exit code 0: nothing was printed")


@given(st.text(), st.integers(1, 9))
def test_a_short_row_is_always_a_failure(text: str, wanted: int) -> None:
    assert (detect_shortfall(text, wanted) is None) == (parse(text).count >= wanted)
    assert len(join_tail(text)) <= 200
