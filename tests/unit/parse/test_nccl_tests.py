# SPDX-License-Identifier: GPL-3.0-or-later

"""What nccl-tests printed, of captures (../fixtures/nccl-tests) and of the forms of older versions."""

from __future__ import annotations

import json
import pathlib
import tracemalloc
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl_tests import (
    NcclTestFigure,
    NcclTestRank,
    NcclTestRow,
    NcclTests,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.tests import (
    NcclTestsReader,
    parse,
    parse_text,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.tests_json import parse_json
from ansible_collections.linerate.rdma.tests.unit.limit import bounded, measure_seconds

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "nccl-tests"
MEGABYTE = 2**20
#: capture: collective, rows, average in GB/s, of runs that are whole
WHOLE: typing.Mapping[str, tuple[str, int, float]] = {
    "all_gather": ("all_gather", 3, 166.054),
    "all_reduce": ("all_reduce", 10, 91.3583),
    "all_reduce-average": ("all_reduce", 3, 162.078),
    "all_reduce-info": ("all_reduce", 3, 188.459),
    "all_reduce-iters": ("all_reduce", 3, 158.301),
    "all_reduce-json": ("all_reduce", 3, 166.916),
    "all_reduce-memory": ("all_reduce", 1, 345.211),
    "all_reduce-nocheck": ("all_reduce", 3, 161.164),
    "all_reduce-shm": ("all_reduce", 3, 23.5151),
    "all_reduce-socket": ("all_reduce", 3, 2.70209),
    "all_reduce-threads": ("all_reduce", 3, 167.979),
    "alltoall": ("alltoall", 3, 191.1),
    "mpi": ("all_reduce", 3, 195.187),
    "mpi-hosts": ("all_reduce", 3, 2.67309),
    "mpi-json": ("alltoall", 2, 1.98719),
    "mpi-split": ("all_reduce", 3, 0.0),
    "mpi-split-div": ("all_reduce", 3, 168.376),
    "mpi-tagged": ("all_gather", 2, 2.31458),
    "reduce_scatter": ("reduce_scatter", 3, 162.411),
    "sendrecv": ("sendrecv", 3, 212.908),
}


def text_of(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


def run_of(text: str) -> NcclTests:
    (run,) = parse_text(text)
    return run


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_run(name: str) -> None:
    run = run_of(text_of(f"{name}.txt"))
    assert (run.collective, len(run.rows), run.average_bus_gbs) == WHOLE[name]
    assert run.announced == len(run.rows) and run.out_of_bounds == 0 and run.concluded
    assert run.lacks == () and run.errors == () and run.torn == 0 and run.unfinished == ()
    assert (run.version, run.library, len(run.ranks)) == ("2.19.6", "2.28.9", 2)


@pytest.mark.parametrize(
    ("release", "name", "average"),
    [
        ("2.27.7", "all_reduce-info", 209.66),
        ("2.27.7", "all_reduce-shm", 23.1247),
        ("2.27.7", "all_reduce-socket", 3.06194),
        ("2.27.7", "mpi-hosts", 2.71954),
        ("2.31.2", "all_reduce-socket", 2.67884),
        ("2.31.2", "alltoall", 194.362),
        ("2.31.2", "mpi-hosts", 2.63533),
        ("2.32.3", "all_reduce-info", 198.516),
        ("2.32.3", "all_reduce-shm", 24.2564),
        ("2.32.3", "all_reduce-socket", 2.68971),
        ("2.32.3", "mpi-hosts", 2.50302),
    ],
)
def test_a_whole_run_with_another_release_of_nccl(release: str, name: str, average: float) -> None:
    text = text_of(f"{release}/{name}.txt")
    run = run_of(text)
    assert (run.library, len(run.rows), run.average_bus_gbs, len(run.ranks)) == (release, 3, average, 2)
    assert run.concluded and run.lacks == () and run.torn == 0 and run.unfinished == ()
    log = nccl_log.parse_text(text)
    assert {process.version.partition("+")[0] for process in log.processes} == {release}
    assert {process.network for process in log.processes} == {"Socket"}
    # in 2.31 and later as well: the tuner's choice for each collective, and the channels of each rank
    assert (name == "alltoall") or any(process.choices for process in log.processes)
    (communicator,) = log.communicators
    assert [rank.complete for rank in communicator.ranks] == [True, True]


def test_every_capture_is_tested() -> None:
    assert {path.stem for path in FIXTURES.glob("*.txt")} == {*WHOLE, "all_reduce-ib", "all_reduce-three", "mpi-dies"}


def test_each_word_of_a_row() -> None:
    run = run_of(text_of("all_reduce-nocheck.txt"))
    out, into = NcclTestFigure(22.6, 46.39, 46.39), NcclTestFigure(21.04, 49.84, 49.84)
    assert run.rows[0] == NcclTestRow(1048576, 262144, "float", "sum", None, out, into)
    assert run.ranks[1] == NcclTestRank(1, 0, 1592, "vm", 1, "0000:00:07", "NVIDIA H200")


def test_a_row_in_pieces_between_lines_of_nccl() -> None:
    run = run_of(text_of("mpi-tagged.txt"))
    out, into = NcclTestFigure(296.14, 3.54, 1.77, 0), NcclTestFigure(294.2, 3.56, 1.78, 0)
    assert run.rows[0] == NcclTestRow(1048576, 131072, "float", "", None, out, into)
    assert run_of(text_of("all_reduce-info.txt")).rows[2].in_place == NcclTestFigure(898.14, 298.88, 298.88, 0)


@pytest.mark.parametrize("host", ["vm", "10-0-0-7", "7"])
def test_the_name_of_a_host_begins_with_a_digit(host: str) -> None:
    text = text_of("all_reduce-info.txt").replace("on         vm", f"on {host}").replace("vm:", f"{host}:")
    assert run_of(text).rows == run_of(text_of("all_reduce-info.txt")).rows


def test_a_host_that_no_rank_named_and_that_begins_with_a_digit_leaves_no_row() -> None:
    run = run_of(text_of("all_reduce-info.txt").replace("vm:", "7:"))
    assert run.rows == () and "the output contains no complete row" in run.lacks


def test_a_launcher_that_pads_its_prefix() -> None:
    lines = [f"pod-a   | {line}" for line in text_of("all_reduce-info.txt").splitlines(keepends=True)]
    place = next(number for number, line in enumerate(lines) if "AllReduce" in line and "float" not in line)
    assert run_of("".join([*lines[:place], *[lines[place]] * 20_000, *lines[place:]])).lacks == ()


def test_lines_of_nccl_with_a_time() -> None:
    text = text_of("all_reduce-info.txt").replace(
        "vm:1462:1462 [0] NCCL INFO AllR", "[2026-11-27 10:57:06] vm:1462:1462 [0] NCCL INFO AllR"
    )
    assert run_of(text).rows == run_of(text_of("all_reduce-info.txt")).rows


def test_groups() -> None:
    assert [rank.group for rank in run_of(text_of("mpi-split.txt")).ranks] == [0, 1]
    assert [rank.group for rank in run_of(text_of("mpi-split-div.txt")).ranks] == [0, 0]


def test_a_network_that_does_not_start() -> None:
    run = run_of(text_of("all_reduce-ib.txt"))
    assert run.errors == (
        "vm: Test NCCL failure common.cu:222 'invalid usage (run with NCCL_DEBUG=WARN for details) / '",
        ".. vm pid 1725: Test failure common.cu:1620",
        ".. vm pid 1725: Test failure common.cu:1454",
    )
    assert run.lacks[0] == f"the test failed: {run.errors[0]}" and "the end of the output is missing" in run.lacks


def test_too_few_gpus() -> None:
    run = run_of(text_of("all_reduce-three.txt"))
    assert (
        run.errors[0] == "Invalid number of GPUs: 3 requested but only 2 were found."
        and run.rows == ()
        and run.ranks == ()
    )


def test_a_rank_that_dies() -> None:
    run = run_of(text_of("mpi-dies.txt"))
    assert run.rows == () and run.unfinished == (67108864,) and run.average_bus_gbs is None and not run.concluded
    assert run.lacks[0] == "the row of 67108864 bytes is incomplete"


def test_json_says_the_same_as_the_table() -> None:
    document, table = parse_json(text_of("all_reduce.json")), run_of(text_of("all_reduce-json.txt"))
    assert document.lacks == () and (document.collective, document.library, document.out_of_bounds) == (
        "all_reduce",
        "2.28.9",
        0,
    )
    assert document.average_bus_gbs == pytest.approx(table.average_bus_gbs, abs=0.001)
    assert [row.size_bytes for row in document.rows] == [row.size_bytes for row in table.rows]
    for exact, printed in zip(document.rows, table.rows):
        for one, other in zip(exact.figures, printed.figures):
            assert one.time_us == pytest.approx(other.time_us, abs=0.01) and one.bus_gbs == pytest.approx(
                other.bus_gbs, abs=0.01
            )
            assert one.wrong == other.wrong


def test_json_without_a_check_in_place() -> None:
    row = parse_json(text_of("mpi-alltoall.json")).rows[0]
    assert (
        row.out_of_place is not None
        and row.out_of_place.wrong == 0
        and row.in_place is not None
        and row.in_place.wrong is None
    )
    assert row.operation == "" and row.root is None


def test_a_document_among_the_lines_is_a_run() -> None:
    runs = parse_text(text_of("all_reduce-json.txt") + text_of("all_reduce.json").rstrip() + "\n")
    assert [run.average_bus_gbs for run in runs] == [166.916, 166.91621]


def test_the_environment_is_not_read() -> None:
    data = json.loads(text_of("all_reduce.json"))
    assert parse_json(json.dumps({**data, "env": ["TOKEN=secret"]})) == parse_json(text_of("all_reduce.json"))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"results": [], "config": []}', "[" * 100_000])
def test_what_is_no_document(text: str) -> None:
    with pytest.raises(ParseError, match="nccl-tests"):
        parse_json(text)


def test_a_document_that_is_cut_off() -> None:
    text = text_of("all_reduce.json").rstrip()
    for end in range(0, len(text) - 1, 97):
        with pytest.raises(ParseError):
            parse_json(text[:end])


def test_a_document_of_wrong_types() -> None:
    data = json.loads(text_of("all_reduce.json"))
    hostile = {
        **data,
        "args": [7],
        "nccl_version": "x",
        "results": [*data["results"], 7, {}],
        "errors": [7, "it failed"],
        "out_of_bounds": [],
        "end_time": None,
    }
    run = parse_json(json.dumps(hostile))
    assert (
        len(run.rows) == 3
        and run.torn == 2
        and run.errors == ("it failed",)
        and run.out_of_bounds is None
        and not run.concluded
    )


# older versions. Sources: the names of columns and forms of rows in NVIDIA/nccl-tests issues 37 (2.0, all_gather), 82
# (broadcast), 118 (error), 128 (2.13, #wrong); coreweave/nccl-tests pull request 43

PARAMETERS = (
    "# nThread 1 nGpus 1 minBytes 8388608 maxBytes 16777216 step: 2(factor) warmup iters: 5 iters: 20 validation: 1"
    " \n#\n# Using devices\n"
)
HALF = "     time   algbw   busbw  error"
SUMMARY = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 10 \n#\n"


def old(keys: str, *rows: str) -> str:
    rank = "#   Rank  0 Pid  14926 on node-1 device  0 [0x07] Tesla V100\n"
    return f"{PARAMETERS}{rank}#       size         count    type{keys}{HALF}{HALF}\n{''.join(rows)}{SUMMARY}"


def test_all_gather_of_2_0() -> None:
    # its algorithm bandwidth is less by 7/8
    rows = [
        f"  {size}     262144   float    {size / 10000 * 7 / 8:.1f}   10.00   10.00  0e+00   "
        f" {size / 10000 * 7 / 8:.1f}   10.00   10.00    N/A\n"
        for size in (8388608, 16777216)
    ]
    run = run_of(old("", *rows))
    assert [(row.size_bytes, row.operation, row.root) for row in run.rows] == [
        (8388608, "", None),
        (16777216, "", None),
    ]
    assert (
        run.rows[0].figures[0].wrong is None
        and run.rows[0].figures[0].largest_error == 0.0
        and run.rows[0].figures[1].largest_error is None
    )
    assert (
        run.lacks == ()
        and run.concluded
        and run.collective == ""
        and run.ranks == (NcclTestRank(0, 0, 14926, "node-1", 0, "0x07", "Tesla V100"),)
    )


def test_broadcast_before_2_13() -> None:
    row = "     8388608     2097152   float       3    838.9   10.00   10.00  0e+00    838.9   10.00   10.00  5e-07\n"
    run = run_of(old("    root", row, row.replace("8388608", "16777216").replace("838.9", "1677.7")))
    assert (
        [row.root for row in run.rows] == [3, 3] and run.rows[1].figures[1].largest_error == 5e-07 and run.lacks == ()
    )


def test_alltoall_before_2_13_has_an_empty_column() -> None:
    row = "     8388608     2097152   float            838.9   10.00   10.00  0e+00    838.9   10.00   10.00    N/A\n"
    run = run_of(old("   redop", row, row.replace("8388608", "16777216").replace("838.9", "1677.7")))
    assert [row.operation for row in run.rows] == ["", ""] and run.lacks == ()


def test_all_reduce_of_2_13() -> None:
    row = (
        "     8388608     2097152     float     sum      -1    838.9   10.00   10.00      7    838.9   10.00   10.00   "
        " N/A\n"
    )
    text = old("   redop    root", row, row.replace("8388608", "16777216").replace("838.9", "1677.7")).replace(
        "busbw  error", "busbw #wrong"
    )
    run = run_of(text.replace("values : 0 OK", "values : 2 FAILED"))
    assert [figure.wrong for figure in run.rows[0].figures] == [7, None] and run.out_of_bounds == 2 and run.lacks == ()


def test_the_time_that_most_iterations_keep_is_read_where_it_is_printed() -> None:
    row = run_of(text_of("all_reduce-iters.txt")).rows[0]
    assert [(figure.time_us, figure.p99_us) for figure in row.figures] == [(19.48, 32.16), (19.85, 33.34)]
    assert {figure.p99_us for row in run_of(text_of("all_reduce.txt")).rows for figure in row.figures} == {None}


# what is torn, cut off or hostile


@pytest.mark.parametrize("name", ["all_reduce", "all_reduce-info", "mpi-tagged", "all_reduce-iters"])
def test_a_run_that_is_cut_off_is_never_whole(name: str) -> None:
    lines = text_of(f"{name}.txt").splitlines(keepends=True)
    whole = run_of("".join(lines))
    end = next(number for number, line in enumerate(lines) if "Collective test concluded" in line)
    for cut in range(max(0, end - 60), end + 1, 1 if end < 30 else 7):
        for run in parse([*lines[:cut], lines[cut][:-1]]):
            assert run.lacks and run.rows == whole.rows[: len(run.rows)]


def test_a_row_with_another_figure_is_torn() -> None:
    text = text_of("all_reduce.txt")
    row = next(line for line in text.splitlines() if " 1073741824 " in line and "#" not in line)
    time_us = row.split()[5]
    run = run_of(text.replace(row, row.replace(time_us, f"{float(time_us) * 2:.1f}", 1)))
    assert run.torn == 1 and len(run.rows) == 9
    assert "1 row or summary is incomplete, or contradicts itself" in run.lacks


def test_a_row_with_more_wrong_values_than_a_message_has_is_torn() -> None:
    text = text_of("all_reduce.txt")
    row = next(line for line in text.splitlines() if " 1073741824 " in line and "#" not in line)
    head, _wrong = row.rstrip().rsplit(maxsplit=1)
    assert run_of(text.replace(row, f"{head}      7")).rows[-1].figures[-1].wrong == 7
    run = run_of(text.replace(row, f"{head}  1e+99"))
    assert len(run.rows) == 9 and run.lacks


def test_a_row_that_is_lost_is_missed() -> None:
    text = text_of("all_reduce.txt")
    row = next(line for line in text.splitlines() if " 134217728 " in line and "#" not in line)
    lack, *_more = run_of(text.replace(f"{row}\n", "")).lacks
    assert lack == "the output contains 9 rows, but the test announced 10 for each type, operation and root"


def test_a_summary_of_another_run_is_refused() -> None:
    run = run_of(text_of("all_reduce.txt").replace("91.3583", "171.3"))
    assert run.lacks == ("the mean of the rows is not the 171.3 GB/s of the summary",)


def test_several_runs() -> None:
    runs = parse_text(text_of("all_reduce.txt") + text_of("alltoall.txt") + text_of("all_reduce-info.txt"))
    assert [(run.collective, run.lacks) for run in runs] == [("all_reduce", ()), ("alltoall", ()), ("all_reduce", ())]


def test_other_text_has_no_run() -> None:
    assert parse_text("") == () and parse_text("hello\n  1  2 float\n") == ()


def test_lines_reach_the_other_reader_as_they_are() -> None:
    text, reader = text_of("mpi-hosts.txt"), NcclTestsReader()
    assert nccl_log.parse(reader.watch(text.splitlines(keepends=True))) == nccl_log.parse_text(text)
    assert reader.runs() == parse_text(text)


#: lines that each make something to be kept, or look like it
FORGED: typing.Mapping[str, str] = {
    "runs": "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) x\n",
    "ranks": "#  Rank  0 Group  0 Pid      1 on         vm device  0 [0x00] x\n",
    "rows": (
        "     1048576        262144     float     sum      -1    19.48   53.83   53.83       0    19.85   52.81   52.81"
        "       0\n"
    ),
    "begun rows": "     1048576        262144     float     sum      -1\n",
    "begun rows before NCCL": "     1048576        262144     float     sum      -1vm:1:1 [0] NCCL INFO x\n",
    "errors": " .. vm pid 1: Test failure common.cu:1\n",
    "numbers": "1 " * 900 + "\n",
    "spaces": " " * 1900 + "\n",
    "colons": ":" * 1900 + " NCCL INFO  \n",
    "one long line": "x" * MEGABYTE,
    "a list": '{"version":1,"nccl_version":1,"results":[' + "[" * 100_000 + "\n",
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_long_log_costs_little(kind: str) -> None:
    """A quarter of a megabyte here, and what is longer takes as much longer."""
    head = "".join(text_of("all_reduce.txt").splitlines(keepends=True)[:14])
    text = head + FORGED[kind] * (MEGABYTE // 4 // len(FORGED[kind]) + 1)
    lines = text.splitlines(keepends=True)
    with bounded(1):
        parse(lines)
    tracemalloc.start()
    try:
        parse(lines[: len(lines) // 4 + 14])
        assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_many_hosts_make_rows_between_lines_of_nccl_no_dearer() -> None:
    """9,900 hosts and 10,000 rows took 3 s, 50 times as long as with one host: each row was compared with each host."""
    head = text_of("all_reduce.txt").splitlines(keepends=True)[:14]
    rows = [FORGED["begun rows before NCCL"]] * 10_000

    def seconds(hosts: int) -> float:
        ranks = [
            f"#  Rank {number} Group  0 Pid  1 on  host-{number % hosts} device  0 [0x00] x\n" for number in range(9900)
        ]
        return measure_seconds(lambda: parse([*head[:-2], *ranks, *head[-2:], *rows]))

    assert seconds(9900) < 5 * seconds(1)


def test_a_run_of_which_not_all_is_read_is_not_whole() -> None:
    row = (
        "     1048576        262144     float     sum      -1    19.48   53.83   53.83       0    19.85   52.81   52.81"
        "       0\n"
    )
    head = "".join(text_of("all_reduce-info.txt").splitlines(keepends=True)[:10])
    title = next(line for line in text_of("all_reduce-info.txt").splitlines(keepends=True) if "algbw" in line)
    run = run_of(head + title + row * 2001)
    assert len(run.rows) == 2000 and run.lacks[0] == "the log of the run is longer than this collection reads"
    assert "the log of the run is longer than this collection reads" in run_of(head + title * 20_000 + row).lacks
    assert len(parse_text((head + title) * 70)) == 64


ROWS = some.lists(some.tuples(some.integers(1000, 10**12), some.integers(1, 400)), min_size=1, max_size=5)


@hypothesis.given(
    ROWS, some.integers(0, 9), some.booleans(), some.sampled_from(["", "[1,0]<stdout>:", "[default0]:", "[pod/a/b] "])
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_each_row_comes_back_in_pieces_or_not(sizes: list[tuple[int, int]], wrong: int, pieces: bool, tag: str) -> None:
    follows = "vm:1462:1462 [0] NCCL INFO x\nvm:1462:1462 [0] NCCL INFO y\n" if pieces else ""
    lines, expected = "", []
    for size, gbs in sizes:
        time_us = round(size / gbs / 1000, 2)
        figure = f"  {time_us:7.2f}  {gbs:6.2f}  {gbs:6.2f}  {wrong:6d}"
        between = follows + tag if pieces else ""
        lines += (
            f"{tag}{size:12d}  {size // 4:12d}  {'float':>8}  {'sum':>6}  {-1:6d}{between}{figure}{between}{figure}\n"
        )
        expected.append((size, size // 4, time_us, gbs, wrong))
    head = "".join(text_of("all_reduce-info.txt").splitlines(keepends=True)[:10])
    title = next(line for line in text_of("all_reduce-info.txt").splitlines(keepends=True) if "algbw" in line)
    run = run_of("".join(tag + line for line in (head + title).splitlines(keepends=True)) + lines)
    found = [
        (row.size_bytes, row.count, figure.time_us, figure.bus_gbs, figure.wrong)
        for row in run.rows
        for figure in row.figures[1:]
    ]
    # of a size that takes no time its figures say nothing
    assert found == expected or run.torn
    assert run.torn == 0 or any(size / gbs < 200_000 for size, gbs in sizes)


SHORT = text_of("all_reduce-memory.txt")


def test_the_size_to_which_the_memory_of_the_gpus_limits_messages_is_kept() -> None:
    assert run_of(SHORT).reduced_bytes == 48_247_057_066 and run_of(text_of("all_reduce.txt")).reduced_bytes is None


@hypothesis.given(some.text(max_size=100))
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_text_behind_a_table(text: str) -> None:
    assert parse_text(f"{SHORT}{text}\n")[0].rows[:1] == run_of(SHORT).rows
