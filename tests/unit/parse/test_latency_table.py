# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of ib_write_lat, in the forms that perftest prints: with and without what it says of clocks in between."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.perftest import (
    LatencyRow,
    PerftestError,
    parse_latency,
)

HEAD = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] \n"
)
CLOCKS = "Conflicting CPU frequency values detected: 3295.212000 != 5023.444000. CPU Frequency is not max.\n"
ROW = " 2       1000          1.24           5.19         1.27     \t       1.27        \t0.00   \t\t1.37    \t\t5.19\n"
RULE = f"{'-' * 87}\n"
OTHER = (
    " 4       1000          1.83           7.17         1.86     \t       1.90        \t0.33   \t\t2.19    \t\t7.17\n"
)


@pytest.mark.parametrize("text", (HEAD + ROW + RULE, HEAD + CLOCKS + CLOCKS + ROW + RULE, RULE + HEAD + ROW))
def test_a_row_with_its_median_and_its_p99(text: str) -> None:
    assert parse_latency(text) == LatencyRow(2, 1000, 1.27, 1.37)


@pytest.mark.parametrize(
    "text",
    (
        "",
        ROW,
        HEAD + RULE,
        HEAD + ROW + OTHER + RULE,
        HEAD + RULE + ROW,
        HEAD + ROW.replace("1.37", "inf"),
        HEAD + ROW.replace("1.27 ", "0.00 "),
        HEAD + ROW.replace("1.37", "1.17"),
        HEAD + ROW.replace("1000 ", "0 "),
        HEAD + ROW.replace("1.37", "9999999999"),
        HEAD + ROW[:60] + "\n",
        " Couldn't connect to 10.0.0.2:18515\nUnable to open file descriptor for socket connection\n",
    ),
)
def test_what_is_no_measurement(text: str) -> None:
    with pytest.raises(PerftestError):
        parse_latency(text)


@hypothesis.given(some.text(max_size=200))
@hypothesis.settings(max_examples=60, deadline=None)
def test_no_figure_is_made_up(text: str) -> None:
    try:
        row = parse_latency(HEAD + text)
    except PerftestError:
        return
    assert str(row.iterations) in text
