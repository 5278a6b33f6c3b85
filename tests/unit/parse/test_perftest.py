# SPDX-License-Identifier: GPL-3.0-or-later

"""perftest: real captures of 4.5 and 25.01, both row shapes, noise, figures that are none, and hostile text."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods import perftest
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.perftest import (
    GBPS_PER_MIBPS,
    PerftestError,
    parse,
)

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"

# row S1.12: a real run over 400 Gb/s, with the CPU's noise where it fell, between the rows
NDR400 = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_16
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 Mtu             : 4096[B]
 Link type       : IB
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0x51 QPN 0x0048 PSN 0x8dffa0 RKey 0x0013f1 VAddr 0x007f1a24b30000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 3135.245000 != 4000.000000. CPU Frequency is not max.
 65536      5000             370.06             369.91             0.705554
Conflicting CPU frequency values detected: 3135.245000 != 4000.000000. CPU Frequency is not max.
 8388608    5000             373.98             373.64             0.005568
---------------------------------------------------------------------------------------
"""


def capture(name: str) -> str:
    return (FIXTURES / f"{name}.stdout").read_text()


@pytest.mark.parametrize(
    ("name", "rows", "size", "average", "peak"),
    [
        ("perftest-4.5/ib_write_bw-s64k-n100.client", 1, 65536, 0.066867, 0.084020),
        ("perftest-4.5/ib_write_bw-D5.client", 1, 65536, 0.055524, None),
        ("perftest-4.5/ib_write_bw-a-n20.client", 23, 8388608, 0.056965, 0.056965),
        ("perftest-4.5/ib_write_bw-R.client", 1, 65536, 0.038012, 0.039582),
        ("perftest-4.5/ib_write_bw-bidir.client", 1, 65536, 0.081059, None),
        ("perftest-4.5/ib_write_bw-mtu4096.client", 1, 65536, 0.12, 0.15),
        ("perftest-25.01/ib_write_bw-n100.client", 1, 65536, 0.14, 0.14),
        ("perftest-25.01/ib_write_bw-D5.client", 1, 65536, 0.13, None),
        ("perftest-25.01/ib_write_bw-a-n20.client", 23, 8388608, 0.12, 0.12),
    ],
)
def test_captures(name: str, rows: int, size: int, average: float, peak: typing.Optional[float]) -> None:
    report = parse(capture(name))
    assert len(report.rows) == rows
    assert (report.largest.message_bytes, report.largest.average_gbps, report.largest.peak_gbps) == (
        size,
        average,
        peak,
    )
    assert report.parameters["Device"] == "rxe0"
    assert report.parameters["Link type"] == "Ethernet"


@pytest.mark.parametrize(
    ("name", "packet_bytes", "gid_index"),
    [
        ("perftest-4.5/ib_write_bw-mtu4096.client", 4096, 1),
        ("perftest-4.5/ib_write_bw-R.client", 1024, None),
        ("perftest-25.01/ib_write_bw-n100.client", 4096, 1),
    ],
)
def test_a_report_says_by_which_packets_it_was_measured(
    name: str, packet_bytes: int, gid_index: typing.Optional[int]
) -> None:
    report = parse(capture(name))
    assert (report.packet_bytes, report.gid_index) == (packet_bytes, gid_index)
    assert report.contradict("rxe0", 1) == ""
    assert report.contradict("rxe1", 1) == (
        "perftest reports Device rxe0, Number of qps 1; requested were Device rxe1, Number of qps 1"
    )
    assert "requested were Device rxe0, Number of qps 8" in report.contradict("rxe0", 8)


def test_text_and_json_of_one_run_agree() -> None:
    results = json.loads((FIXTURES / "perftest-25.01/ib_write_bw-n100.json").read_text())["results"]
    row = parse(capture("perftest-25.01/ib_write_bw-n100.client")).largest
    assert (row.message_bytes, row.iterations, row.average_gbps) == (
        results["MsgSize"],
        results["n_iterations"],
        results["BW_average"],
    )


def test_header_with_two_fields_a_line() -> None:
    parameters = parse(capture("perftest-25.01/ib_write_bw-n100.client")).parameters
    assert (parameters["PCIe relax order"], parameters["Lock-free"], parameters["Data ex. method"]) == (
        "ON",
        "OFF",
        "Ethernet",
    )


def test_row_s1_12_with_noise_between_the_rows() -> None:
    largest = parse(NDR400).largest
    assert (
        largest.message_bytes,
        largest.iterations,
        largest.peak_gbps,
        largest.average_gbps,
        largest.message_rate,
    ) == (
        8388608,
        5000,
        373.98,
        373.64,
        0.005568,
    )


@pytest.mark.parametrize("unit", ["MB", "MiB"])
def test_both_megabyte_columns_are_mebibytes(unit: str) -> None:
    text = (
        f" #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]\n 65536      5000   "
        "  11800.00  11718.75  0.19\n"
    )
    assert parse(text).largest.average_gbps == pytest.approx(11718.75 * GBPS_PER_MIBPS)
    assert parse(text).largest.average_gbps == pytest.approx(98.304)


@pytest.mark.parametrize(
    "value", ["0.000000", "0.00", "inf", "-inf", "nan", "-nan", "-1.0", "abc", "10000.01", "50000", "1e300"]
)
def test_no_measurement(value: str) -> None:
    # an unstable clock makes perftest print these with exit code 0
    text = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      100      0.10  "
        f"  {value}   0.000066\n"
    )
    with pytest.raises(PerftestError, match=r"is not a valid measurement|no number in the row"):
        parse(text)


def test_a_figure_of_no_message_is_none() -> None:
    with pytest.raises(PerftestError, match="an average over no messages"):
        parse(
            " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      0      0.10 "
            "   0.09   0.000066\n"
        )


@pytest.mark.parametrize("release", ["4.5", "25.01"])
def test_messages_of_a_measurement_by_time_take_that_time(release: str) -> None:
    # five seconds, of which the first and the last do not count
    report = parse(capture(f"perftest-{release}/ib_write_bw-D5.client"))
    assert report.contradict_duration(5) == ""
    assert "take 3" in report.contradict_duration(10) and "measured for 6 s or more" in report.contradict_duration(10)


@pytest.mark.parametrize(
    ("seconds", "messages", "average", "wrong"),
    [
        # six of ten seconds count: 390 Gb/s are 278,950 messages of 1 MiB
        (10, 278_950, "390.00", False),
        # the clock of the CPU may differ a little, and late signals make it longer
        (10, 268_000, "390.00", False),
        (10, 400_000, "390.00", False),
        # a clock that is a fifth too slow: 312 Gb/s look like 390
        (10, 223_160, "390.00", True),
        # a script in place of the tool measured five messages
        (10, 5, "390.00", True),
        # perftest rounds: 0.125 Gb/s are printed as 0.13
        (10, 90, "0.13", False),
        (10, 84, "0.13", True),
        # of four seconds, two count; of less, all
        (4, 92_984, "390.00", False),
        (3, 139_475, "390.00", False),
        (3, 92_984, "390.00", True),
    ],
)
def test_messages_that_take_less_time_than_was_measured(seconds: int, messages: int, average: str, wrong: bool) -> None:
    text = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        f" 1048576     {messages}      0.00      {average}      0.05\n"
    )
    assert bool(parse(text).contradict_duration(seconds)) == wrong


@pytest.mark.parametrize(
    ("messages", "average", "wrong"),
    [
        # six seconds at 390 Gb/s in each direction
        (278_950, "780.00", False),
        # a slow clock: 312 Gb/s in each direction look like 390, of which the link leaves this one at least 380
        (223_160, "780.00", True),
        # five messages are none of six seconds, whatever the opposite direction had
        (5, "780.00", True),
        # the opposite direction alone may have all of it
        (5, "390.00", False),
    ],
)
def test_of_both_directions_at_once_this_one_has_what_the_link_leaves(messages: int, average: str, wrong: bool) -> None:
    text = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        f" 1048576     {messages}      0.00      {average}      0.05\n"
    )
    assert bool(parse(text).contradict_duration(10, 400.0)) == wrong


def test_the_messages_of_both_directions_in_a_capture_take_their_time() -> None:
    report = parse(capture("perftest-4.5/ib_write_bw-bidir.client"))
    # three seconds, of which each direction has half of the average
    assert report.contradict_duration(5, report.largest.average_gbps / 2) == ""
    assert "take 3" in report.contradict_duration(10, report.largest.average_gbps / 2)


@pytest.mark.parametrize("release", ["4.5", "25.01"])
def test_each_size_of_a_sweep_has_the_messages_that_were_asked_for(release: str) -> None:
    report = parse(capture(f"perftest-{release}/ib_write_bw-a-n20.client"))
    assert report.contradict_messages(20) == ""
    assert report.contradict_messages(21) == "20 messages of 2 bytes were measured; 21 were requested"


@pytest.mark.parametrize("peak", ["50000", "1e300", "inf"])
def test_a_peak_that_no_link_has_is_not_known(peak: str) -> None:
    text = (
        f" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      100      {peak}"
        "    373.64   0.000066\n"
    )
    assert (parse(text).largest.average_gbps, parse(text).largest.peak_gbps) == (373.64, None)


@pytest.mark.parametrize(
    "between",
    [
        "",
        (
            "---------------------------------------------\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec]"
            " MsgRate[Mpps]\n"
        ),
    ],
)
def test_two_rows_of_one_size_are_no_measurement(between: str) -> None:
    """The better one is as little the answer of one run as the worse one."""
    row = " 1048576      5000             {0}             {0}             0.04\n"
    text = (
        " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
        + row.format("390.00")
        + between
        + row.format("11.00")
    )
    with pytest.raises(
        PerftestError, match=r"rows of 1048576 bytes report 390\.00 Gb/s, 11\.00 Gb/s; expected one row"
    ):
        parse(text)


def test_a_table_of_more_sizes_than_there_are_is_no_sweep() -> None:
    head = " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n"
    rows = [f" {size} 5000 390.00 390.00 0.04\n" for size in range(1, 66)]
    assert len(parse(head + "".join(rows[:64])).rows) == 64
    with pytest.raises(PerftestError, match="a table of 65 rows; expected at most 64 message sizes"):
        parse(head + "".join(rows))


def test_unknown_unit_is_refused() -> None:
    with pytest.raises(PerftestError, match="unknown unit 'TB/sec'"):
        parse(" #bytes #iterations BW peak[TB/sec] BW average[TB/sec] MsgRate[Mpps]\n 65536 100 1 1 1\n")


@pytest.mark.parametrize(
    "name", ["wb-R-rc3-midrun-drop.client", "wb-R-rc3-serverkilled.client", "wb-noserver", "wb-baddev"]
)
def test_failed_runs_have_no_row(name: str) -> None:
    with pytest.raises(PerftestError):
        parse(capture(f"perftest-4.5/fail/{name}"))


def test_truncated_text_never_invents_a_row() -> None:
    text = capture("perftest-4.5/ib_write_bw-a-n20.client")
    whole = {(row.message_bytes, row.average_gbps) for row in parse(text).rows}
    for length in range(0, 2400, 37):
        try:
            rows = parse(text[:length]).rows
        except PerftestError:
            continue
        # the last row may be cut within its last column, but bytes and average stand before it
        assert {(row.message_bytes, row.average_gbps) for row in rows} <= whole, f"cut behind {length} characters"


def test_numbers_outside_the_table_are_no_rows() -> None:
    with pytest.raises(PerftestError):
        parse(" 65536      5000             370.06             369.91             0.705554\n")


@given(st.text())
def test_any_text(text: str) -> None:
    try:
        assert all(row.average_gbps > 0 for row in parse(text).rows)
    except PerftestError as error:
        assert str(error)


@given(st.lists(st.sampled_from([*NDR400.splitlines(), "", "nan", "\t\t"]), max_size=40), st.integers(0, 80))
def test_shuffled_lines(lines: list[str], cut: int) -> None:
    known = {369.91, 373.64}
    try:
        assert {row.average_gbps for row in parse("\n".join(line[cut % 3 :] for line in lines)).rows} <= known
    except PerftestError as error:
        assert str(error)


class Counted:
    """A pattern that counts the characters it is tried on."""

    def __init__(self, pattern: typing.Any) -> None:
        self.pattern, self.characters = pattern, 0

    def findall(self, text: str) -> typing.Any:
        self.characters += len(text)
        return self.pattern.findall(text)

    def match(self, text: str) -> typing.Any:
        self.characters += len(text)
        return self.pattern.match(text)


@pytest.mark.parametrize(
    "line", ["E " + "a" * 100_000 + ": b\n", "E aaaa: b\n", "E " + "a" * 400 + ": b\n", "1 " * 50_000 + "\n"]
)
def test_what_no_tool_prints_is_not_looked_at(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Each letter of it begins a name that may have 80."""
    fields = Counted(perftest._FIELD)
    monkeypatch.setattr(perftest, "_FIELD", fields)
    rows = Counted(perftest._ROW)
    monkeypatch.setattr(perftest, "_ROW", rows)
    noise = line * (1_000_000 // len(line))
    assert parse(NDR400).parameters["Device"] == "mlx5_16"
    # before the table, and in it
    begin, head, table = NDR400.partition(" #bytes")
    report = parse(begin + noise + head + table.replace("\n 8388608", "\n" + ("1 " * 50_000 + "\n") * 10 + " 8388608"))
    assert (report.parameters["Device"], [row.average_gbps for row in report.rows]) == ("mlx5_16", [369.91, 373.64])
    assert fields.characters < 450_000 and rows.characters < 10_000
