# SPDX-License-Identifier: GPL-3.0-or-later

"""A megabyte of a job's log, which whoever is in the job writes: it is read in a time and a memory that grow with its
length, and no faster."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import socket
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.channels import judge_log
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.sources import leave_out_large
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log_reader as nccl_log_reader
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import memory as nccl_memory
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse, parse_files, parse_text
from ansible_collections.linerate.rdma.plugins.module_utils._store import files, job_logs
from ansible_collections.linerate.rdma.tests.unit.limit import measure_seconds
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

MEGABYTE = 2**20
HEAD = "job-worker-0:100:200 [0] NCCL INFO "


def init(number: int, more: str = "", state: str = "COMPLETE", rank: int = 0, size: int = 8) -> str:
    return f"{HEAD}comm 0x{number + 1:x} rank {rank} nranks {size} cudaDev 0 busId 1000{more} - Init {state}\n"


def split(number: int) -> str:
    """A communicator that was split off the one before it."""
    return init(number, f" parent 0x{number:x} splitCount 1 color {10**9 + number} key 0" if number else "")


def channel(number: int) -> str:
    return f"{HEAD}Channel {number % 128:02d}/0 : 0[0] -> {number % 7 + 1}[1] [send] via NET/IB/0/GDRDMA\n"


TEXTS: typing.Mapping[str, typing.Callable[[int], str]] = {
    "splits of splits": split,
    "communicators that are never complete": lambda number: init(number, state="START"),
    "communicators of one size": init,
    "communicators of all sizes": lambda number: init(number, size=number + 1),
    "communicators and channels of one rank": lambda number: channel(0) if number % 2 else init(number),
    "channels of no communicator": channel,
    "one rank many times": lambda number: init(0, " commId 0xabc"),
}


def written_by(number: int, message: str) -> str:
    """A line of a process of its own."""
    return f"w:{number}:1 [0] NCCL INFO {message}\n"


#: short lines that each make something to be kept
FORGED: typing.Mapping[str, typing.Callable[[int], str]] = {
    "processes that say nothing": lambda number: written_by(number, "x"),
    "processes": lambda number: written_by(number, "Using network IB"),
    "threads": lambda number: f"w:1:{number} [0] NCCL INFO Using network IB\n",
    "what stands before a head": lambda number: f"x{number}:w:1:1 [0] NCCL INFO Using network IB\n",
    "ranks": lambda number: written_by(number, f"comm 0x1 rank {number} nranks 1000000 cudaDev 0 busId 0 - Init START"),
    "communicators": lambda number: written_by(
        1, f"comm 0x1 rank 0 nranks 8 cudaDev 0 busId 0 commId 0x{number:x} - Init COMPLETE"
    ),
    "ranks without a communicator": lambda number: written_by(number, "Channel 00 : 0[0] -> 1[0] via P2P/IPC"),
    "channels without a connection": lambda number: written_by(
        number // 2,
        (
            "comm 0x1 rank 0 nranks 8 cudaDev 0 busId 0 - Init COMPLETE"
            if number % 2
            else "128 coll channels, 0 p2p channels, x"
        ),
    ),
    "ways": lambda number: written_by(1, f"Channel 00/0 : 0[0] -> 1[0] [send] via NET/n{number}/0"),
    "devices": lambda number: written_by(
        number, f"NET/IB : Using{''.join(f' [{index}]a:1/IB' for index in range(100))}; OOB eth0:1<0>"
    ),
    "GPUDirect RDMA": lambda number: written_by(
        1, f"NET/IB : GPU Direct RDMA Disabled for HCA {number % 10000} 'm{number}'"
    ),
    "GPUDirect RDMA of networks": lambda number: written_by(
        1, f"NET/n{number} : GPU Direct RDMA Disabled for HCA 0 'm'"
    ),
    "distances": lambda number: written_by(1, f"GPU Direct RDMA Disabled for GPU 0 / HCA {number:x} (distance 4 > 3)"),
    "virtual devices": lambda number: written_by(
        1, f"NET/IB : Made virtual device [{number % 10000}] name=m{number} speed=1 ndevs=1"
    ),
    "versions": lambda number: written_by(1, f"NCCL version 2.1.{number}"),
}
#: bytes that a log may cost beside 8 for each of its characters: that of the tests, which is small
LEAST = MEGABYTE // 4


def text_of(
    kind: str, size: int, texts: typing.Optional[typing.Mapping[str, typing.Callable[[int], str]]] = None
) -> str:
    texts, made, length, number = texts or TEXTS, [], 0, 0
    while length < size:
        made.append(texts[kind](number))
        length, number = length + len(made[-1]), number + 1
    return "".join(made)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_log_is_read_in_linear_time(kind: str) -> None:
    text = text_of(kind, MEGABYTE)
    part = text[: text.index("\n", len(text) // 16) + 1]
    most, least = (measure_seconds(functools.partial(parse_text, each)) for each in (text, part))
    # 16 where it is linear, 256 where it is quadratic
    assert most < 64 * least + 0.05


@pytest.mark.parametrize("kind", TEXTS)
def test_a_log_costs_few_times_its_length(kind: str) -> None:
    lines = text_of(kind, MEGABYTE // 2).splitlines(keepends=True)
    tracemalloc.start()
    try:
        parse(lines)
        assert tracemalloc.get_traced_memory()[1] < 32 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_log_costs_eight_times_its_length_or_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_LEAST", LEAST)
    text = text_of(kind, MEGABYTE // 8, FORGED)
    lines = text.splitlines(keepends=True)
    tracemalloc.start()
    try:
        with contextlib.suppress(ParseError):
            to_data(parse(lines))
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text) + LEAST + MEGABYTE // 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["processes", "threads", "ranks without a communicator"])
def test_a_log_that_is_forged_in_many_files_costs_no_more(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process names files and hosts beside its own."""
    monkeypatch.setattr(nccl_memory, "_LEAST", LEAST)
    text = text_of(kind, MEGABYTE // 32, FORGED)
    lines = [line.replace("w:", f"w{number % 50}:", 1) for number, line in enumerate(text.splitlines(keepends=True))]
    tracemalloc.start()
    try:
        with contextlib.suppress(ParseError):
            to_data(parse_files((f"{number}.log", lines) for number in range(30)))
        assert tracemalloc.get_traced_memory()[1] < 8 * 30 * len(text) + LEAST + MEGABYTE // 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", FORGED)
def test_what_a_log_may_hold_at_most_costs_eight_times_its_length(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much noise between the lines of a forger as is needed not to be refused."""
    monkeypatch.setattr(nccl_memory, "_LEAST", 0)
    noise = "x" * 125 + "\n"
    lines, number, read = [noise], 0, 0
    reader = nccl_log_reader.NcclLogReader()
    while number < 300:
        line = FORGED[kind](number)
        number += 1
        for _more in range(100):
            # what one line of the kind costs at most: 100 devices
            if reader._budget.kept + 35000 < 8 * read:
                break
            reader.read_lines([noise])
            lines.append(noise)
            read += len(noise)
        reader.read_lines([line])
        lines.append(line)
        read += len(line)
    tracemalloc.start()
    try:
        to_data(parse(lines))
        assert tracemalloc.get_traced_memory()[1] < 8 * read + MEGABYTE // 8
    finally:
        tracemalloc.stop()


def test_a_log_of_too_many_processes_is_refused_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_LEAST", 10_000)
    with pytest.raises(ParseError) as refused:
        parse(FORGED["processes"](number) for number in range(1000))
    assert str(refused.value) == (
        "NCCL's log: '185 characters up to line 5 with 4 threads of 4 processes, and 0 ranks' is"
        " not at most what NCCL logs for this many processes. A program of the job forges lines"
        " of NCCL. Provide the log of one job as NCCL wrote it"
    )


def test_a_log_without_an_end_is_refused_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_MOST_KEPT", 100_000)
    noise = "x" * 10_000 + "\n"
    with pytest.raises(ParseError, match="forges lines"):
        parse(line for number in range(1000) for line in (noise, FORGED["processes"](number)))


@pytest.mark.parametrize(
    "job",
    [
        Job(hosts=16, gpus=8, channels=16, hcas=tuple(f"mlx5_{number}" for number in range(8))),
        Job(hosts=16, gpus=8, channels=2),
    ],
)
def test_a_log_of_a_job_is_never_refused_for_its_length(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_LEAST", 10_000)
    log = parse(job.lines())
    assert [len(item.ranks) for item in log.communicators] == [128]


@pytest.mark.parametrize("kind", ["GPUDirect RDMA of networks", "distances", "virtual devices"])
def test_what_a_process_says_of_its_devices_is_counted(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_LEAST", 10_000)
    monkeypatch.setattr(nccl_memory, "_GROWTH", 0)
    with pytest.raises(ParseError, match="forges lines"):
        parse(FORGED[kind](number) for number in range(100))


def test_the_name_of_what_was_split_off_often_is_short_and_tells_it_from_its_siblings() -> None:
    lines = [split(number) for number in range(40)]
    sibling = init(100, f" parent 0x{39:x} splitCount 1 color 7 key 0")
    log = parse([*lines, sibling])
    names = [item.name for item in log.communicators]
    assert len(set(names)) == 41 and max(map(len, names)) <= 200
    assert names[1] == "8 ranks split 1 color 1000000001"
    # all ranks agree on it, whatever process they are in
    other = parse(
        line.replace("job-worker-0", "job-worker-1").replace(" rank 0 ", " rank 1 ") for line in [*lines, sibling]
    )
    assert [item.name for item in other.communicators] == names


def honest(host: str, rank: int) -> list[str]:
    """Return the lines of one of two ranks of a job."""
    head = f"{host}:1:1 [0] NCCL INFO "
    return [
        f"{head}NCCL version 2.28.9+cuda13.0\n",
        f"{head}comm 0x1 rank {rank} nranks 2 cudaDev 0 busId 1000 commId 0xabc - Init COMPLETE\n",
        f"{head}Channel 00/0 : {rank}[0] -> {1 - rank}[0] [send] via NET/IB/0/GDRDMA\n",
    ]


def flood(host: str, number: int) -> list[str]:
    form = "{}:1:1 [0] NCCL INFO comm 0x{:x} rank 0 nranks 2 cudaDev 0 busId 1000 commId 0x{:x} - Init COMPLETE\n"
    return [form.format(host, one, one) for one in range(2, number)]


@pytest.mark.parametrize("made_up", ["c", "c{}"])
def test_a_file_that_names_too_much_is_left_out_by_its_name(made_up: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one pod are an error of this pod, whichever hosts it makes up: the fact of the job stays readable."""
    monkeypatch.setattr(nccl_memory, "_MOST_OF_SOURCE", MEGABYTE)
    forged = [line for number in range(500) for line in flood(made_up.format(number), 5)]
    files = {"a.log": honest("a", 0), "c.log": [*honest("c", 1), *forged], "b.log": honest("b", 1)}
    log = parse_files(files.items(), "files")
    assert [item.source for item in log.left_out] == ["c.log"] and "c" in log.left_out[0].hosts
    assert {process.host for process in log.processes} == {"a", "b"}
    assert {rank.host for communicator in log.communicators for rank in communicator.ranks} == {"a", "b"}
    (finding,) = [item for item in judge_log(log, None, True) if item.subject == "c.log"]
    assert (finding.check, finding.status) == ("training.log", "unknown") and "of c" in finding.measured
    judged = {(item.check, item.subject): item.status for item in judge_log(log, None, True)}
    assert judged["training.transport", "a rank 0"] == judged["training.transport", "b rank 1"] == "pass"


def test_a_host_that_names_too_much_is_left_out_where_all_ranks_are_in_one_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nccl_memory, "_MOST_OF_SOURCE", MEGABYTE)
    lines = [*honest("a", 0), *flood("c", 2000), *honest("b", 1), *honest("c", 1)]
    log = parse_files([("all.log", lines)], "hosts")
    assert [item.source for item in log.left_out] == ["c"]
    assert {process.host for process in log.processes} == {"a", "b"}


def test_variables_of_a_process_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_MOST_OF_SOURCE", MEGABYTE)
    lines = [
        f"c:{pid}:1 [0] NCCL INFO NCCL_{number} set by environment to {'x' * 499}.\n"
        for pid in range(4)
        for number in range(900)
    ]
    assert [item.source for item in parse_files([("all.log", lines)], "hosts").left_out] == ["c"]


def test_the_largest_hosts_are_left_out_until_the_others_have_room_in_a_fact() -> None:
    log = parse_files([("all.log", [*honest("a", 0), *honest("b", 1), *flood("c", 300), *flood("d", 400)])])
    whole, data = leave_out_large(log, 1 << 20)
    assert whole is log and data == to_data(log)
    left, data = leave_out_large(log, 8192)
    assert [item.source for item in left.left_out] == ["d", "c"] and data == to_data(left)
    assert {process.host for process in left.processes} == {"a", "b"}
    assert {item.subject for item in judge_log(left, None, True) if item.check == "training.log"} == {"job", "c", "d"}


def make_odd_files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """What a program of a job can put in place of its log."""
    made = {name: folder / f"{name}.log" for name in ("fifo", "link", "socket", "zeros", "folder")}
    os.mkfifo(made["fifo"])
    made["link"].symlink_to("/dev/zero")
    made["folder"].mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(made["socket"]))
    with made["zeros"].open("wb") as file:
        file.truncate(job_logs._MOST_OF_A_LOG + 1)
    return made


@pytest.mark.parametrize("kind", ["fifo", "link", "socket", "zeros", "folder"])
def test_what_is_no_log_is_left_out_by_its_name(kind: str, tmp_path: pathlib.Path) -> None:
    odd = str(make_odd_files(tmp_path)[kind])
    logs = [tmp_path / f"{host}.log" for host in "ab"]
    for rank, log in enumerate(logs):
        log.write_text("".join(honest(log.stem, rank)), encoding="utf-8")
    paths = [str(logs[0]), odd, str(logs[1])]
    assert job_logs.has_several_logs(paths) and job_logs.has_several_logs(paths[:2])
    read = parse_files(job_logs.read_files(paths), "files")
    assert [item.source for item in read.left_out] == [f"{kind}.log"]
    assert {process.host for process in read.processes} == {"a", "b"}
    (finding,) = [item for item in judge_log(read, None, True) if item.subject == f"{kind}.log"]
    assert (finding.check, finding.status) == ("training.log", "unknown")
    # and where it is the only one
    alone = judge_log(parse_files(job_logs.read_files([odd]), "hosts"), None, True)
    assert ("training.log", f"{kind}.log", "unknown") in {(item.check, item.subject, item.status) for item in alone}


def test_a_log_that_grows_while_it_is_read_has_an_end(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.log"
    log.write_text("".join(honest("a", 0)), encoding="utf-8")
    read = files.open_file

    def grown(*arguments: typing.Any, **options: typing.Any) -> typing.Any:
        stream = read(*arguments, **options)
        with log.open("ab") as more:
            more.write(b"x" * 8192)
        return stream

    monkeypatch.setattr(job_logs, "open_file", grown)
    monkeypatch.setattr(job_logs, "_MOST_OF_A_LOG", 4096)
    (gone,) = parse_files(job_logs.read_files([str(log)]), "files").left_out
    assert gone.source == "a.log" and "4096" in gone.why


def test_the_beginning_of_a_file_is_looked_for_in_a_part_of_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_logs, "_MOST_OF_A_BEGINNING", job_logs._PIECE)
    log, read = tmp_path / "a.log", []
    log.write_bytes(b"\n" * 3 * job_logs._PIECE)
    bounded = job_logs._read_bounded_lines

    def counted(*arguments: typing.Any) -> typing.Iterator[str]:
        for line in bounded(*arguments):
            read.append(line)
            yield line

    monkeypatch.setattr(job_logs, "_read_bounded_lines", counted)
    assert not job_logs.has_several_logs([str(log)])
    assert len(read) == job_logs._PIECE


def test_a_log_with_a_hole_is_left_out(tmp_path: pathlib.Path) -> None:
    log, honest_log = tmp_path / "hole.log", tmp_path / "a.log"
    with log.open("wb") as file:
        file.truncate(1 << 20)
    honest_log.write_text("".join(honest("a", 0)), encoding="utf-8")
    read = parse_files(job_logs.read_files([str(log), str(honest_log)]), "files")
    assert [item.source for item in read.left_out] == ["hole.log"] and "NUL" in read.left_out[0].why
    (found,) = [item for item in judge_log(read, None, True) if item.subject == "hole.log"]
    assert (found.measured, found.why) == (
        "not read",
        f"{log} has 65536 NUL characters in a row, so the rest of it was not read. The other files were judged.",
    )
    assert found.remedy == "Let the job write its log to a new file, and set training_logs to this file."
    assert {process.host for process in read.processes} == {"a"}


@pytest.mark.parametrize(("bound", "most"), [("_MOST_LINES", 4000), ("_MOST_OF_ALL", 4000)])
def test_all_logs_together_have_a_bound(
    bound: str, most: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_logs, bound, most)
    logs = [tmp_path / f"{name}.log" for name in "abc"]
    for log in logs:
        log.write_bytes(b"\n" * 1500)
    read = parse_files(job_logs.read_files(list(map(str, logs))), "files")
    assert [item.source for item in read.left_out] == ["c.log"] and str(most) in read.left_out[0].why


def test_logs_that_take_too_long_are_left_out_with_the_cause(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("time.thread_time", lambda: 900.0 * next(clock))
    logs = [tmp_path / f"{name}.log" for name in "abc"]
    for rank, log in enumerate(logs):
        log.write_text("".join(honest(log.stem, rank)), encoding="utf-8")
    read = parse_files(job_logs.read_files(list(map(str, logs))), "files")
    assert [(item.source, "1800 s of CPU time" in item.why) for item in read.left_out] == [("c.log", True)]
    found = [item for item in judge_log(read, None, True) if item.subject == "c.log"]
    assert [(item.check, item.status, "1800 s" in item.why) for item in found] == [("training.log", "unknown", True)]
    assert found[0].why.startswith("All logs together take more than") and "fewer or shorter logs" in found[0].remedy


@pytest.mark.parametrize("way", ["0[0] -> {}[0] [send]", "{}[0] -> 0[0] [receive]"])
def test_links_of_a_rank_count(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_MOST_OF_SOURCE", MEGABYTE)
    lines = [f"c:1:1 [0] NCCL INFO Channel 00/0 : {way.format(peer)} via NET/IB/0\n" for peer in range(1, 12_000)]
    log = parse_files([("all.log", [*honest("a", 0), *lines, *honest("b", 1)])], "hosts")
    assert [item.source for item in log.left_out] == ["c"]
    assert {process.host for process in log.processes} == {"a", "b"}


def test_a_variable_that_grows_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_memory, "_MOST_OF_SOURCE", MEGABYTE)
    lines = [
        f"c:{pid}:1 [0] NCCL INFO NCCL_{number} set by environment to {'x' * length}.\n"
        for length in (1, 499)
        for pid in range(4)
        for number in range(900)
    ]
    assert [item.source for item in parse_files([("all.log", lines)], "hosts").left_out] == ["c"]
