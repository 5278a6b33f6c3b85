# SPDX-License-Identifier: GPL-3.0-or-later

"""Find logs of collectives that are not evaluated: those that are larger than the nodes of a run can write, and those
that cause an unforeseen error. Check id: ``collectives.log``.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import wrap_unforeseen
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.measurement.collectives import RanTest
from ..._model.run.findings import UNKNOWN, Finding
from .course import Course
from .wanted import MOST_GPUS

#: of the log of one run: 8,192 ranks with 64 channels each, by five routes, have 3.3 million
MOST_PARTS_OF_LOG = 4_000_000
#: ranks of a host for each of its GPUs, which has one, or one in each of a few communicators
MOST_RANKS_OF_GPU = 4
#: channels of a rank, which a log writes in four digits
MOST_CHANNELS = 9_999
#: nodes of a test that its subject names
_NAMED = 4


def explain_excess(ran: RanTest, gpus: int) -> typing.Optional[tuple[str, str]]:
    """Return the quantity that exceeds a limit in the log of a run, and the limit, both as text.

    Return None if the log is plausible for the nodes of the run. The limits protect the check from a small fact that
    describes a log of any size.

    :param ran: run of a test with its log
    :param gpus: number of GPUs of a node
    """
    if ran.log is None:
        return None
    places, of_host, ranks = len(set(ran.nodes)), MOST_RANKS_OF_GPU * min(gpus, MOST_GPUS), ran.log.count_ranks()
    if len(ranks) > places:
        return (
            f"ranks of {count_of(len(ranks), 'host')}",
            f"at most {count_of(places, 'host')}" if places else "no ranks, because the test lists no node",
        )
    for host, count in ranks.items():
        if count > of_host:
            return f"{count_of(count, 'rank')} of {host}", f"at most {count_of(of_host, 'rank')} per host"
    if ran.log.most_channels > MOST_CHANNELS:
        return f"a rank with {count_of(ran.log.most_channels, 'channel')}", f"at most {MOST_CHANNELS} channels"
    if ran.log.size > MOST_PARTS_OF_LOG:
        return count_of(ran.log.size, "log entry", "log entries"), f"at most {MOST_PARTS_OF_LOG} log entries"
    return None


def report_excess(ran: RanTest, excess: tuple[str, str], image: str) -> Finding:
    """Return the finding on a run whose log is too large for its nodes.

    :param ran: run of a test with its log
    :param excess: quantity that exceeds a limit, and the limit, both as text
    :param image: image of the pods
    """
    measured, expected = excess
    subject = f"{ran.test}, {ran.kind}: {join_first(ran.nodes, _NAMED) or 'no node'}"
    why = (
        "A test on these nodes cannot produce such a log, so another program wrote it. The log was not evaluated."
        if ran.nodes
        else "The results list no node for this test, so no pod of this run wrote this log. The log was not evaluated."
    )
    remedy = (
        f"Run stage collectives again. If the finding remains, a program in the image {image} writes into the log of"
        " NCCL: set rdma_cluster.collectives.image to an image without it, then run stage collectives again."
        if ran.nodes
        else "Run stage collectives again. If the finding remains, another program changes"
        " facts/collectives/cluster.json in the folder of the report: find it (fuser -v facts/collectives/cluster.json)"
        " and stop it, then run stage collectives again."
    )
    return Finding("collectives.log", subject, UNKNOWN, measured, expected, why, remedy)


def report_too_many(parts: int, most: int) -> Finding:
    """Return the finding on logs that are too large altogether, so that none was evaluated.

    :param parts: entries of the logs of all runs
    :param most: largest number of entries that is evaluated
    """
    why = (
        "No test of the stage produces so many log entries, so another program changed facts/collectives/cluster.json"
        " in the folder of the report. None of the logs was evaluated."
    )
    return Finding(
        "collectives.log",
        "all collectives",
        UNKNOWN,
        count_of(parts, "log entry", "log entries"),
        f"at most {most} log entries",
        why,
        "Run stage collectives again. If the finding remains, find the program that changes this file (fuser -v"
        " facts/collectives/cluster.json), and stop it. Then run stage collectives again.",
    )


def report_unforeseen(course: Course, error: Exception) -> Finding:
    why = f"The output of the tests could not be evaluated: {wrap_unforeseen(error, course.name)}."
    return Finding(
        "collectives.log",
        course.name,
        UNKNOWN,
        "output of the tests not evaluated",
        "output of the tests evaluated",
        why,
        (
            "Run stage collectives again. If the finding remains, report the error under 'why' as a defect of"
            " linerate.rdma."
        ),
    )
