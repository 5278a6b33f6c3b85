# SPDX-License-Identifier: GPL-3.0-or-later

"""iperf3: real captures of 3.12, errors beside exit code 0, figures that are none, and hostile text."""

from __future__ import annotations

import json
import pathlib
import tracemalloc
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.failure import classify
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.iperf3 import (
    Iperf3Error,
    Iperf3Report,
    find_error,
    parse,
)

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/iperf3-3.12"
CAPTURES = sorted(path.name.split(".")[0] for path in FIXTURES.glob("*.client.stdout"))


def capture(name: str) -> str:
    return (FIXTURES / f"{name}.client.stdout").read_text()


@pytest.mark.parametrize(
    ("name", "gbps", "streams"),
    # the sender of the first one counts 11.4 Gb/s: what it still had in its buffers when the test was over
    [("ok", 7.922927, 4), ("timed", 13.629612, 4), ("both", 12.121236 + 4.613046, 2)],
)
def test_captures(name: str, gbps: float, streams: int) -> None:
    report = parse(capture(name))
    assert report.average_gbps == pytest.approx(gbps, abs=1e-5)
    assert report.streams == streams
    assert find_error(capture(name)) == ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("refused", "not_listening"),
        ("badbind", "no_address"),
        ("noname", "name"),
        ("killed", "peer_gone"),
        ("unreach", "hang"),
    ],
)
def test_an_error_is_no_figure_whatever_the_exit_code(name: str, kind: str) -> None:
    text, code = capture(name), int((FIXTURES / f"{name}.client.rc").read_text())
    with pytest.raises(Iperf3Error) as problem:
        parse(text)
    assert str(problem.value) == find_error(text) != ""
    failure = classify(code or 1, code == 124, find_error(text))
    assert failure is not None and failure.kind == kind


def test_lines_around_the_json_do_no_harm() -> None:
    assert parse(f"warning: {{odd}}\n{capture('ok')}\niperf Done.\n") == parse(capture("ok"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no output"),
        ("-----\nServer listening on 5299\n", "no JSON output of iperf3; the last line was 'Server listening on 5299'"),
        ("{\n", "no JSON output of iperf3"),
        ("{\n}", "has no sum of received data"),
        ('{\n"end": {"sum_received": {}}}', "has no sum of received data"),
        ('{\n"start": {}, "end": {"sum_received": {}}}', "bits_per_second is None, which is not a valid measurement"),
        (
            '{\n"start": {}, "end": {"sum_received": {"bits_per_second": 0}}}',
            "bits_per_second is 0, which is not a valid measurement",
        ),
        ('{\n"start": {}, "end": {"sum_received": {"bits_per_second": NaN}}}', "bits_per_second is nan"),
        ('{\n"start": {}, "end": {"sum_received": {"bits_per_second": true}}}', "bits_per_second is True"),
        (
            '{\n"start": {}, "end": {"sum_received": {"bits_per_second": 1.1e13}}}',
            "bits_per_second is 11000 Gb/s in total, which is not a valid measurement",
        ),
        (
            (
                '{\n"start": {}, "end": {"sum_received": {"bits_per_second": 6e12}, "sum_received_bidir_reverse":'
                ' {"bits_per_second": 6e12}}}'
            ),
            "bits_per_second is 12000 Gb/s in total, which is not a valid measurement",
        ),
        ('{\n"start": {}, "end": {"sum_sent": {"bits_per_second": 1e9}}}', "has no sum of received data"),
        (
            '{\n"start": {}, "end": {"sum_received": {"seconds": 10.0, "bytes": 1250000000, "bits_per_second": 9e12}}}',
            "bits_per_second is 9e+12, which contradicts 1250000000 bytes in 10 s",
        ),
        (
            '{\n"start": {}, "end": {"sum_received": {"seconds": 10.0, "bytes": 0, "bits_per_second": 9e9}}}',
            "which contradicts 0 bytes in 10 s",
        ),
    ],
)
def test_what_is_no_result(text: str, message: str) -> None:
    with pytest.raises(Iperf3Error) as problem:
        parse(text)
    assert message in str(problem.value)


def test_one_stream_where_nothing_says_how_many() -> None:
    assert parse('{\n"start": {"connected": 7}, "end": {"sum_received": {"bits_per_second": 5e9}}}') == Iperf3Report(
        5.0, 1
    )


@given(st.sampled_from(CAPTURES), st.data())
def test_a_text_that_is_cut_is_never_a_figure(name: str, data: st.DataObject) -> None:
    text = capture(name).rstrip()
    with pytest.raises(Iperf3Error):
        parse(text[: data.draw(st.integers(0, len(text) - 1))])


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_gives_a_figure_or_the_reason(inner: typing.Any) -> None:
    for where in ("start", "end", "error"):
        text = json.dumps({"start": {}, "end": {"sum_received": {"bits_per_second": 1}}, where: inner}, indent=1)
        try:
            assert parse(text).average_gbps > 0
        except Iperf3Error:
            continue


def test_lines_are_not_taken_apart() -> None:
    """A pod may print millions of them."""
    noise = "\n" * 1_000_000
    tracemalloc.start()
    try:
        assert parse(noise + capture("ok")).average_gbps == pytest.approx(7.922927, abs=1e-5)
        with pytest.raises(Iperf3Error, match="the last line was 'iperf3: no'"):
            parse(f"x\n{noise}iperf3: no\n")
        with pytest.raises(Iperf3Error, match="no output"):
            parse(noise)
        # the lines alone are 8 MB
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
