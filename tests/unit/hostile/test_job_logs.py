# SPDX-License-Identifier: GPL-3.0-or-later

"""A megabyte of a job's log, which whoever is in the job writes: it is read in a time and a memory that grow with its length, and no faster."""

from __future__ import annotations

import time
import tracemalloc
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl_log import parse, parse_text

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


def text_of(kind: str, size: int) -> str:
    made, length, number = [], 0, 0
    while length < size:
        made.append(TEXTS[kind](number))
        length, number = length + len(made[-1]), number + 1
    return "".join(made)


def seconds(text: str) -> float:
    begin = time.process_time()
    parse_text(text)
    return time.process_time() - begin


@pytest.mark.parametrize("kind", TEXTS)
def test_a_log_is_read_in_linear_time(kind: str) -> None:
    text = text_of(kind, MEGABYTE)
    quarter = text[: text.index("\n", len(text) // 4) + 1]
    whole, part = (min(seconds(each) for _again in range(2)) for each in (text, quarter))
    assert whole < 2
    # 4 where it is linear, 16 where it is quadratic
    assert whole < 8 * part + 0.05


@pytest.mark.parametrize("kind", TEXTS)
def test_a_log_costs_few_times_its_length(kind: str) -> None:
    lines = text_of(kind, MEGABYTE // 2).splitlines(keepends=True)
    tracemalloc.start()
    try:
        parse(lines)
        assert tracemalloc.get_traced_memory()[1] < 32 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_the_name_of_what_was_split_off_often_is_short_and_tells_it_from_its_siblings() -> None:
    lines = [split(number) for number in range(40)]
    sibling = init(100, f" parent 0x{39:x} splitCount 1 color 7 key 0")
    log = parse([*lines, sibling])
    names = [item.name for item in log.communicators]
    assert len(set(names)) == 41 and max(map(len, names)) <= 200
    assert names[1] == "8 ranks split 1 color 1000000001"
    # all ranks agree on it, whatever process they are in
    other = parse(line.replace("job-worker-0", "job-worker-1").replace(" rank 0 ", " rank 1 ") for line in [*lines, sibling])
    assert [item.name for item in other.communicators] == names
