# SPDX-License-Identifier: GPL-3.0-or-later

"""Find logs of collectives that are not evaluated: those that are larger than the nodes of a run can write, and those
that cause an unforeseen error. Check id: ``collectives.log``.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import wrap_unforeseen
from ..._model.base.phrases import count_of
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


def report_unforeseen(course: Course, error: Exception) -> Finding:
    why = f"The output of the tests could not be evaluated: {wrap_unforeseen(error, course.name)}."
    return Finding(
        "collectives.log",
        course.name,
        UNKNOWN,
        "not evaluated",
        "tests that can be evaluated",
        why,
        (
            "Check the pods of the largest group of this collective, then run stage collectives again. If the error"
            " persists, report it as a defect of linerate.rdma."
        ),
    )
