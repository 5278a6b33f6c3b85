# SPDX-License-Identifier: GPL-3.0-or-later

"""Latency of small messages: an all_reduce of 8 bytes on each proven pair of nodes, rail by rail. Check id:
``collectives.latency``.

nccl-tests prints the mean of all iterations and, with option -I, the 99th percentile. It prints no median. Pairs are
compared with each other, and with a limit if the intent sets one.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._analysis.measurement.small_messages import describe_limit, find_no_measurement, find_tail
from ..._model.base.phrases import count_of
from ..._model.job.nccl_tests import NcclTestRow
from ..._model.measurement.collectives import SMALL_BYTES, LatencyFigures, TestName
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

#: pairs, from which on a median says something
_SEVERAL = 3
#: from here on without a limit of the intent it is worth a word
_LONG_US = 200
_LOSS = (
    "Run rdma statistic show on both nodes twice (on InfiniBand perfquery -x), and replace the cable of a port"
    " whose error counters increase."
)
_REMEDY = (
    "follow the remedies of the findings of stage tuning on idle states and governor of the CPUs of both nodes."
    " If there are none, stop other traffic between the nodes, and compare the number of switches between them"
    " with that of a faster pair. Then run stage collectives again."
)
#: the same, as the beginning of a remedy
_FOLLOW = f"{_REMEDY[:1].upper()}{_REMEDY[1:]}"


@dataclasses.dataclass(frozen=True)
class Latency:
    """The latency of a pair of nodes for small messages, on its slowest rail.

    :ivar mean_us: mean of all iterations, in microseconds
    :ivar p99_us: 99th percentile in microseconds; None if the version of nccl-tests prints none
    """

    mean_us: float
    p99_us: typing.Optional[float] = None

    @property
    def words(self) -> str:
        """Return the mean as text, with the 99th percentile if it is known, such as ``12.3 us, p99 20.1 us``."""
        return f"{self.mean_us:.1f} us" + (f", p99 {self.p99_us:.1f} us" if self.p99_us is not None else "")


@dataclasses.dataclass(frozen=True)
class GroupLatency:
    """The latency of a pair of nodes whose transport is proven.

    :ivar collective: collective of the small messages
    :ivar nodes: names of the two nodes
    :ivar latency: mean and 99th percentile of the times
    """

    collective: TestName
    nodes: tuple[str, ...]
    latency: Latency


def summarize_latencies(fabric: str, found: typing.Iterable[GroupLatency]) -> tuple[LatencyFigures, ...]:
    """Return the number of pairs, and the minimum, median and maximum of their latencies, for each collective.
    Latencies that are not valid are left out.

    :param fabric: name of the fabric
    :param found: latencies of the proven pairs
    """
    by_test: dict[TestName, list[Latency]] = {}
    for item in found:
        if not find_no_measurement(item.latency.mean_us, item.latency.p99_us, False):
            by_test.setdefault(item.collective, []).append(item.latency)
    return tuple(
        LatencyFigures(
            fabric,
            test,
            len(pairs),
            min(pair.mean_us for pair in pairs),
            statistics.median(pair.mean_us for pair in pairs),
            max(pair.mean_us for pair in pairs),
            max((pair.p99_us for pair in pairs if pair.p99_us is not None), default=None),
        )
        for test, pairs in by_test.items()
    )


def pick_latency(rows: typing.Sequence[NcclTestRow]) -> typing.Optional[Latency]:
    """Return the latency of a message of ``SMALL_BYTES``: the slower of the out-of-place and in-place times. Return
    None if the table has no line for this size.

    :param rows: lines of the table that nccl-tests printed, one for each message size
    """
    figures = [figure for row in rows if row.size_bytes == SMALL_BYTES for figure in row.figures]
    if not figures:
        return None
    slowest = max(figures, key=lambda figure: figure.time_us)
    return Latency(slowest.time_us, max((figure.p99_us for figure in figures if figure.p99_us), default=None))


def judge_latency(
    found: typing.Mapping[str, typing.Optional[Latency]], most_us: typing.Optional[float], ratio: float
) -> typing.Iterator[Finding]:
    """Compare the mean latency of small messages of each pair with the limit of the intent, and with the median of all
    pairs. Yield one finding for each pair.

    :param found: latency of each pair, by the subject of its finding; None for a pair whose times are not proven
    :param most_us: limit of the intent for the mean, in microseconds; None without a limit
    :param ratio: multiple of the median of all pairs that the mean of a pair may reach
    """
    means = [item.mean_us for item in found.values() if item is not None]
    usual = statistics.median(means) if len(means) >= _SEVERAL else None
    expected = [f"at most {most_us:g} us, set in the intent"] if most_us is not None else []
    expected += [f"at most {ratio:g} x {usual:.1f} us, the median of {len(means)} pairs"] if usual is not None else []
    how = "; ".join(expected) or f"no limit: too few for a comparison ({count_of(len(means), 'pair')})"
    for subject, item in found.items():
        if item is None:
            why = (
                "The test with small messages gave no latency, or NCCL's log does not prove over which transport it"
                " ran."
            )
            remedy = (
                "If the finding collectives.bandwidth of this pair passes, nccl-tests in the image is too old: it needs"
                " option -I (2.19.6 has it), so set rdma_cluster.collectives.image to a newer image. Otherwise follow"
                " the remedy of that finding. Then run stage collectives again."
            )
            yield Finding("collectives.latency", subject, UNKNOWN, "no result", how, why, remedy)
        elif find_no_measurement(item.mean_us, item.p99_us, False):
            why = f"{find_no_measurement(item.mean_us, item.p99_us, False)}. The value is not a valid measurement."
            remedy = (
                "Use a different version of nccl-tests in rdma_cluster.collectives.image, then run stage collectives"
                " again."
            )
            yield Finding("collectives.latency", subject, UNKNOWN, item.words, how, why, remedy)
        elif most_us is not None and item.mean_us > most_us:
            why = "Idle states or a low frequency of the CPUs, a longer path, or other traffic delay small messages."
            yield Finding("collectives.latency", subject, FAIL, item.words, how, why, _FOLLOW)
        elif usual is not None and item.mean_us > ratio * usual:
            why = (
                "Idle states of the CPUs, a longer path, or other traffic delay the small messages of this pair. A job"
                " waits for its slowest pair."
            )
            yield Finding("collectives.latency", subject, WARN, item.words, how, why, _FOLLOW)
        elif find_tail(item.mean_us, item.p99_us):
            why = find_tail(item.mean_us, item.p99_us)
            tail = describe_limit(item.mean_us, item.p99_us, "mean")
            yield Finding(
                "collectives.latency",
                subject,
                WARN,
                item.words,
                tail,
                why,
                f"{_LOSS} If no counter increases, {_REMEDY}",
            )
        elif most_us is None and item.mean_us > _LONG_US:
            why = (
                "The intent sets no limit for the latency, so the pair is compared only with other pairs. All of"
                " them may be slow."
            )
            remedy = (
                "Set rdma_cluster.collectives.most_latency_us to the latency that you accept. To lower the latency,"
                f" {_REMEDY}"
            )
            yield Finding("collectives.latency", subject, WARN, item.words, f"at most {_LONG_US} us", why, remedy)
        else:
            yield build_pass("collectives.latency", subject, item.words, how)
