# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of the HCAs before and after a soak, a long run of a group. Check id: ``collectives.soak``."""

from __future__ import annotations

import typing

from ..._analysis.measurement.hca_errors import EXPECTED, Measurement, judge_errors
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.measurement.hca_counters import HcaErrors
from ..._model.run.findings import UNKNOWN, WARN, Finding

#: HCAs in one text, at most
_MOST = 8
#: end of the subject of physical functions that were not read
PHYSICAL = ": physical functions"
_SOAK = Measurement(
    "collectives.soak",
    "collectives",
    "the soak",
    "The whole collective waits for each packet that is sent again.",
)


def judge_soak_errors(
    subject: str,
    expected: typing.Iterable[tuple[str, str]],
    found: typing.Iterable[HcaErrors],
    physical: typing.Iterable[tuple[str, str]] = (),
) -> typing.Iterator[Finding]:
    """Yield a finding for each HCA whose error counters rose during the soak or are unknown, and one passed finding for
    all remaining HCAs. Yield one warning for all physical functions that could not be read.

    :param subject: subject of the soak
    :param expected: node and RDMA device of each HCA that took part
    :param found: counter changes, one item for each HCA that was read
    :param physical: node and RDMA device of the physical functions of those HCAs that are virtual functions
    """
    items = tuple(found)
    known = {(item.node, item.device) for item in items}
    physical = tuple(dict.fromkeys(physical))
    unseen = [at for at in physical if at not in known]
    if unseen:
        yield _report_unseen(subject, unseen)
    yield from judge_errors(_SOAK, subject, (*expected, *(at for at in physical if at in known)), items)


def _report_unseen(subject: str, unseen: typing.Sequence[tuple[str, str]]) -> Finding:
    """Return the warning on physical functions whose counters could not be read.

    :param subject: subject of the finding
    :param unseen: node and RDMA device of each physical function
    """
    why = (
        "The pods have virtual functions, which count no errors of the cable. Their physical functions are not visible"
        " in the pods, and these nodes have no pod that inspects them, so errors of the cable during the soak are"
        " unknown."
    )
    remedy = (
        "Set rdma_observers (docs/observers.md), so that a pod on each node reads these counters, and run stage"
        " collectives again. Or read the counters by hand before and after the soak: perfquery -x (InfiniBand)"
        " or ethtool -S INTERFACE (Ethernet) on these nodes."
    )
    measured = join_first([f"{node} {device}" for node, device in unseen], _MOST)
    return Finding(
        "collectives.soak",
        f"{subject}{PHYSICAL}",
        WARN,
        f"error counters not read: {measured}",
        EXPECTED,
        why,
        remedy,
    )


#: end of the subject of a soak that was too short, and the part of the time that it may be
DURATION, _SHORTEST = ": duration", 0.9


def judge_duration(subject: str, seconds: float, minutes: int) -> typing.Iterator[Finding]:
    """Yield a finding of status ``unknown`` if a soak ended before the time that the intent requires. A fault that
    appears late, such as a card that gets hot, was not observed then.

    :param subject: subject of the soak
    :param seconds: duration of the soak
    :param minutes: required duration (``soak_minutes``)
    """
    if seconds >= _SHORTEST * 60 * minutes:
        return
    why = (
        "The soak was shorter than the intent requires, so a fault that appears late was not seen. The stage"
        " computes the iterations from the bandwidth of the test before it, so a faster soak is shorter."
    )
    remedy = (
        "Run stage collectives again. If the soak is still too short, increase rdma_cluster.collectives.soak_minutes."
    )
    expected = (
        f"at least {_SHORTEST * 60 * minutes:.0f} s ({_SHORTEST:.0%} of {count_of(minutes, 'minute')}, set by"
        " soak_minutes)"
    )
    yield Finding("collectives.soak", f"{subject}{DURATION}", UNKNOWN, f"{seconds:.0f} s", expected, why, remedy)


def report_none(name: str) -> Finding:
    """Return the finding of status unknown that no soak ran, because no group of nodes was proven and fast.

    :param name: name of the collective
    """
    why = "No soak ran: it needs a test of several nodes that is verified and fast enough, and there is none."
    remedy = (
        f"Follow the remedies of the findings collectives.steps and collectives.bandwidth of {name}, then run stage"
        " collectives again."
    )
    return Finding(
        "collectives.soak",
        f"{name}, soak",
        UNKNOWN,
        "0 soaks run",
        "1 soak run, as soak_minutes of the intent requires",
        why,
        remedy,
    )
