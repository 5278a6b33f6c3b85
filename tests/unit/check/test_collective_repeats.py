# SPDX-License-Identifier: GPL-3.0-or-later

"""Repeats of a slow group: each change needs evidence in the log or the facts, and is judged by how far it moves the
figure."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.collectives import CollectiveGroup
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.repeats import (
    MOST_CHANGES,
    UNCHANGED,
    Change,
    Repeats,
    SlowGroup,
    find_changes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.surroundings import Surroundings
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclChoice
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import Roce
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, UNKNOWN, WARN
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import log as nccl_log
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

from .test_collective_causes import GIB, JOB, ROCE, SEEN, says

SMALL, LARGE = CollectiveGroup("two nodes", ("a", "b")), CollectiveGroup("all", ("a", "b", "c"))
FAR = dataclasses.replace(says("GPU Direct RDMA Disabled for GPU 8b000 / HCA 0 (distance 7 > 5)"), gpu_direct=False)
SPREAD = dataclasses.replace(SEEN, roce=Roce(), several_leaves=True, adaptive_routing=True)
PAIRS = "NCCL_IB_QPS_PER_CONNECTION set by environment to 4."
HOST_MEMORY = dataclasses.replace(SEEN, from_gpu_memory=False)

CASES: dict[str, tuple[Job, Surroundings, typing.Optional[NcclChoice], tuple[str, ...]]] = {
    "nothing speaks for a change": (JOB, SEEN, None, ()),
    "settings of the image": (
        says("NCCL_BUFFSIZE set by environment to 65536.", "NCCL_PXN_DISABLE set by environment to 1."),
        SEEN,
        None,
        ("without NCCL_BUFFSIZE, without NCCL_PXN_DISABLE",),
    ),
    "what the run sets": (
        says("NCCL_ALGO set by environment to Ring."),
        dataclasses.replace(SEEN, set_by_run=frozenset({"NCCL_ALGO"})),
        None,
        (),
    ),
    "GPUDirect off by distance": (FAR, SEEN, None, ("NCCL_NET_GDR_LEVEL=SYS",)),
    "rails measured from the host": (JOB, HOST_MEMORY, None, ("NCCL_NET_GDR_LEVEL=LOC",)),
    "one queue pair on RoCE": (JOB, ROCE, None, ("NCCL_IB_QPS_PER_CONNECTION=4",)),
    "traffic class": (says("NCCL_IB_TC set by environment to 0.", PAIRS), ROCE, None, ("NCCL_IB_TC=106",)),
    "adaptive routing": (says(PAIRS), SPREAD, None, ("NCCL_IB_ADAPTIVE_ROUTING=1",)),
    "a part of the channels": (
        JOB,
        SEEN,
        NcclChoice("AllReduce", 8 * GIB, "RING", "SIMPLE", 4),
        ("NCCL_MIN_NCHANNELS=16",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_needs_evidence(name: str) -> None:
    job, seen, choice, words = CASES[name]
    found = find_changes(nccl_log.parse(job.lines()), choice, seen)
    assert tuple(change.words for change in found) == words
    assert all(change.why and change.remedy for change in found)


def test_pxn_is_turned_off_where_a_channel_uses_it() -> None:
    log = nccl_log.parse_text(JOB.text().replace("via NET/IB/3/GDRDMA", "via NET/IB/3(4)/GDRDMA"))
    assert [change.words for change in find_changes(log, None, SEEN)] == ["NCCL_PXN_DISABLE=1"]


def test_no_more_changes_are_made_than_announced() -> None:
    job = says("NCCL_BUFFSIZE set by environment to 65536.", "NCCL_IB_TC set by environment to 0.")
    log = nccl_log.parse_text(job.text().replace("via NET/IB/3/GDRDMA", "via NET/IB/3(4)/GDRDMA"))
    seen = dataclasses.replace(SPREAD, from_gpu_memory=False)
    found = find_changes(log, NcclChoice("AllReduce", 8 * GIB, "RING", "SIMPLE", 4), seen)
    assert len(found) == MOST_CHANGES and len({change.name for change in found}) == MOST_CHANGES


def test_a_log_shows_a_change_or_not() -> None:
    change = Change("x", (("NCCL_PXN_DISABLE", "1"), ("NCCL_BUFFSIZE", None)))
    shown, unset = "NCCL_PXN_DISABLE set by environment to 1.", "NCCL_BUFFSIZE set by environment to 65536."
    for lines, found in (((shown,), True), ((), False), ((shown, unset), False)):
        assert change.is_in(nccl_log.parse(says(*lines).lines())) is found
    assert UNCHANGED.is_in(nccl_log.parse(JOB.lines()))


QUEUE_PAIRS = Change("queue_pairs", (("NCCL_IB_QPS_PER_CONNECTION", "4"),), "One pair is too few.", "Set it.")


def repeats(*changes: Change) -> Repeats:
    found = Repeats()
    found.note(LARGE, SlowGroup(300.0, (QUEUE_PAIRS,)))
    found.note(SMALL, SlowGroup(200.0, changes))
    return found


def test_the_smallest_slow_group_is_repeated_first_without_a_change() -> None:
    made = repeats(QUEUE_PAIRS, Change("pxn_off", (("NCCL_PXN_DISABLE", "1"),), "PXN.", "Off."))
    told = []
    for figure in (204.0, 320.0, 205.0):
        following = made.next()
        assert following is not None and following[0].group == SMALL
        finding = made.take("pair", figure)
        told.append((following[1].name, finding.status, finding.measured))
    assert told == [
        ("unchanged", PASS, "204.0 GB/s, +2%"),
        ("queue_pairs", WARN, "320.0 GB/s, +57%"),
        ("pxn_off", PASS, "205.0 GB/s, +0%"),
    ]
    assert made.next() is None
    assert made.told == {
        SMALL: ("With NCCL_IB_QPS_PER_CONNECTION=4, the group reaches 320.0 GB/s, +57%. One pair is too few.")
    }


def test_a_figure_that_moves_by_itself_ends_the_repeats() -> None:
    made = repeats(QUEUE_PAIRS)
    assert made.next() is not None
    assert made.take("pair", 150.0).status == UNKNOWN and made.next() is None and made.told == {}


def test_a_repeat_without_a_proven_figure_is_unknown_and_the_others_go_on() -> None:
    made = repeats(QUEUE_PAIRS)
    for lacks in ("the test did not run", ""):
        assert made.next() is not None
        finding = made.take("pair", None, lacks)
        assert finding.status == UNKNOWN and finding.why.endswith(".") and finding.remedy
    assert made.next() is None


def test_a_group_that_is_fast_in_the_end_is_not_repeated() -> None:
    made = Repeats()
    made.note(SMALL, SlowGroup(200.0, (QUEUE_PAIRS,)))
    made.note(SMALL, None)
    made.note(LARGE, SlowGroup(200.0, ()))
    assert made.next() is None
