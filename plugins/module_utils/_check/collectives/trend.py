# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the bandwidth of each step of stage collectives with that of earlier runs. Check id:
``collectives.trend``.
"""

from __future__ import annotations

import statistics
import typing

from ..._analysis.bandwidth.medians import compute_medians
from ..._model.base.phrases import count_of, format_clause
from ..._model.boundary.fabric import BUS_GBS
from ..._model.measurement.collectives import EarlierCollectives, LatencyFigures, StepFigures, StepKey
from ..._model.run.findings import WARN, Finding, build_pass
from .floor import spell_gbs
from .group_verdict import GroupFigure

#: share of its own median that a step may lose: as much as a node may be slower than its like (judge.py), and less than
#: the shares of the bound leave
MOST_DROP = 0.07


def summarize_group_figures(fabric: str, figures: typing.Iterable[GroupFigure]) -> tuple[StepFigures, ...]:
    """Return the number, minimum, median and maximum of the bus bandwidths of the proven groups of each step. Groups
    with different numbers of nodes count as separate steps.

    :param fabric: name of the fabric
    :param figures: bus bandwidth of each proven group
    """
    found: dict[StepKey, list[GroupFigure]] = {}
    for item in figures:
        # a group that printed that nothing was moved, or more than any does, has nothing that a later run can be held
        # against
        if item.bus_gbs and BUS_GBS.fits(item.bus_gbs):
            found.setdefault((item.collective, item.kind, len(item.nodes)), []).append(item)
    return tuple(_summarize_step(fabric, groups) for groups in found.values())


def _summarize_step(fabric: str, groups: typing.Sequence[GroupFigure]) -> StepFigures:
    values, first = [item.bus_gbs for item in groups], groups[0]
    median = statistics.median(values)
    return StepFigures(
        fabric, first.collective, first.kind, len(first.nodes), len(values), min(values), median, max(values)
    )


def name_step(key: StepKey) -> str:
    """Return the subject of the findings on a step of a collective.

    :param key: collective, kind and number of nodes
    """
    test, kind, nodes = key
    return f"{test}, {kind}" if kind in ("one node", "two nodes") else f"{test}, {kind}: {count_of(nodes, 'node')}"


def name_latency(test: str) -> str:
    """Return the subject of the findings on the latency of small messages of a collective.

    :param test: name of the collective
    """
    return f"{test}, small messages of pairs"


def check_trend(
    now: typing.Iterable[StepFigures],
    earlier: EarlierCollectives,
    latencies: typing.Iterable[LatencyFigures] = (),
    ratio: float = 1.5,
) -> list[Finding]:
    """Return a finding for each step that is slower than its median in earlier runs, and one for all other steps
    together. Return a finding on the latency of small messages of each collective. Steps and collectives of which too
    few runs are kept have no finding. A warning lists the kept runs that cannot be read.

    :param now: summary of each step of this run
    :param earlier: figures of kept runs
    :param latencies: summary of the latencies of this run
    :param ratio: multiple of its median in earlier runs above which a latency is a warning
    """
    known, slower, held = compute_medians(earlier.steps), [], 0
    for step in now:
        if step.key not in known:
            continue
        median, runs = known[step.key]
        held += 1
        if step.median < (1 - MOST_DROP) * median:
            measured = f"{spell_gbs(step.median)}, {1 - step.median / median:.1%} below the median"
            expected = (
                f"at least {spell_gbs((1 - MOST_DROP) * median)} ({1 - MOST_DROP:g} x the median of {runs} earlier"
                " runs)"
            )
            why = (
                "The tests of this size are slower than in earlier runs: a link, a GPU, the load or the release of"
                " NCCL has changed."
            )
            remedy = (
                "Run ansible-playbook linerate.rdma.difference to list the changes since the earlier runs."
                " Follow the remedies of the findings bandwidth.trend. If the image contains another release of"
                " NCCL, set rdma_cluster.collectives.image to the earlier image. Then run stage collectives"
                " again."
            )
            slower.append(Finding("collectives.trend", name_step(step.key), WARN, measured, expected, why, remedy))
    if held > len(slower):
        measured = f"{held - len(slower)} of {held} steps as fast as in the earlier runs"
        slower.append(build_pass("collectives.trend", "steps", measured, f"at least {1 - MOST_DROP:g} x their medians"))
    slower += _check_latencies(latencies, earlier, ratio)
    if earlier.unread:
        why = (
            f"The results of these runs could not be read and are not used: {format_clause('; '.join(earlier.unread))}."
        )
        remedy = (
            "Move these runs out of the folder runs/ of the report, or restore their missing files. The next run"
            " compares with the others."
        )
        measured = f"{count_of(len(earlier.unread), 'earlier run')} unreadable"
        slower.append(
            Finding("collectives.trend", "earlier runs", WARN, measured, "0 earlier runs unreadable", why, remedy)
        )
    return slower


def _check_latencies(
    latencies: typing.Iterable[LatencyFigures], earlier: EarlierCollectives, ratio: float
) -> typing.Iterator[Finding]:
    """Compare the median latency of each collective with the median of earlier runs. Yield one finding for each
    collective that enough kept runs have measured.

    :param latencies: median latency of each collective in this run
    :param earlier: figures of kept runs
    :param ratio: multiple of the median of earlier runs above which a latency is a warning
    """
    known = compute_medians(earlier.latencies)
    for item in latencies:
        if item.test not in known:
            continue
        median, runs = known[item.test]
        measured = f"median {item.median:.1f} us of {item.pairs} pairs"
        expected = f"at most {ratio:g} x {median:.1f} us, the median of {runs} earlier runs"
        if item.median <= ratio * median:
            yield build_pass("collectives.trend", name_latency(item.test), measured, expected)
            continue
        why = (
            "Small messages take longer than in earlier runs: a setting of the CPUs, the path or the release of NCCL"
            " has changed for most pairs of nodes."
        )
        remedy = (
            "Run ansible-playbook linerate.rdma.difference to list the changes since the earlier runs. Follow"
            " the remedies of the findings of stage tuning on idle states and governor of the CPUs. If the image"
            " contains another release of NCCL, set rdma_cluster.collectives.image to the earlier image. Then"
            " run stage collectives again."
        )
        yield Finding("collectives.trend", name_latency(item.test), WARN, measured, expected, why, remedy)
