# SPDX-License-Identifier: GPL-3.0-or-later

"""The trends of bandwidth over the kept runs, with a small chart for each rail and pair, and for each step of a
collective. The chart shows the figures with which the check of the stage compares.
"""

from __future__ import annotations

import dataclasses
import statistics
import typing

from ..._analysis.bandwidth.medians import compute_medians
from ..._check.bandwidth.trend import MOST_DROP
from ..._check.collectives import trend as of_collectives
from ..._model.measurement.bandwidth import BandwidthFacts, Earlier, EarlierPair
from ..._model.measurement.collectives import EarlierCollectives, LatencyFigures, StepFigures
from ..._model.measurement.pairs import PairKey
from ..markup.markup import Html, join_content, render_element
from ..markup.tables import render_row, render_table
from .matrix import format_number

#: pairs that have a row of their own: those that lost the most
_MOST_PAIRS = 12
_WIDTH, _HEIGHT, _EDGE = 132.0, 26.0, 3.0
#: of the median, the least that a picture spans on either side: noise must not look like a cliff
_SPAN = 0.05


@dataclasses.dataclass(frozen=True)
class Trend:
    """The figures of one rail, pair or collective step over several runs.

    :ivar name: rail, pair, or step of a collective
    :ivar figures: figures from the oldest run to this one
    :ivar before: median of the kept runs, without this one; None if there are too few of them
    :ivar unit: unit of the figures
    :ivar most_drop: largest accepted drop of the figure as a share of the median; for a time, the largest accepted rise
    :ivar is_time: whether the figures are times, so that a higher figure is worse
    """

    name: str
    figures: tuple[float, ...]
    before: typing.Optional[float]
    unit: str = "Gb/s"
    most_drop: float = MOST_DROP
    is_time: bool = False

    @property
    def change(self) -> typing.Optional[float]:
        """Return the change of the last figure from the median of the earlier runs, as a share of that median: -0.1 for
        a loss of 10 %. Return None if there is no median, or it is 0.
        """
        return self.figures[-1] / self.before - 1 if self.before else None

    @property
    def is_worse(self) -> bool:
        return self.change is not None and (-self.change if self.is_time else self.change) < -self.most_drop


def list_trends(measured: typing.Optional[BandwidthFacts], earlier: Earlier) -> tuple[Trend, ...]:
    """Return the trend of the median of each rail, then the trends of the pairs with the largest losses. Return an
    empty tuple if no pair was measured both in this run and in a kept run.

    :param measured: results of this run, without pairs whose figure is invalid; None if the stage left no facts
    :param earlier: figures of the kept runs
    """
    now = {pair.key: pair.average_gbps for pair in (measured.pairs if measured else ()) if pair.is_comparable}
    known, pairs = compute_medians(earlier.pairs), []
    rails: dict[tuple[str, bool, int], list[EarlierPair]] = {}
    for item in earlier.pairs:
        average = now.get(item.key)
        if average is not None:
            figures = (*item.figures, average)
            client = f"{item.client} rail {item.rail}" if item.between_rails else item.client
            name = f"{item.fabric} {client} -> {item.server} rail {item.server_end[0]}"
            pairs.append(Trend(name, figures, known[item.key][0] if item.key in known else None))
            rails.setdefault((item.fabric, item.between_rails, 0 if item.between_rails else item.rail), []).append(item)
    middles = [
        _compute_median_trend(f"{name}, {'between rails' if between else f'rail {rail}'}: median", of_rail, now)
        for (name, between, rail), of_rail in sorted(rails.items())
    ]
    lost = sorted((pair for pair in pairs if pair.change is not None), key=lambda pair: pair.change or 0.0)
    return (*middles, *(lost[:_MOST_PAIRS] if lost else pairs[:_MOST_PAIRS]))


def _compute_median_trend(
    name: str, pairs: typing.Sequence[EarlierPair], now: typing.Mapping[PairKey, typing.Optional[float]]
) -> Trend:
    """Return the median of several pairs in each run as a trend. Only pairs that were measured in the same runs are
    combined, because otherwise the trend would show which pairs were measured instead of their bandwidth. If there are
    several such groups of pairs, the group with the most runs is used, and among these the one with the most pairs.

    :param name: name of the trend
    :param pairs: pairs that were measured in this run as well, at least one
    :param now: average bandwidth of each pair in this run in Gb/s; None for a pair without a result
    """
    groups: dict[tuple[int, tuple[int, ...]], list[EarlierPair]] = {}
    for pair in pairs:
        groups.setdefault((len(pair.figures), pair.places), []).append(pair)
    whole = max(groups.items(), key=lambda item: (item[0][0], len(item[1])))[1]
    latest = [average for pair in whole if (average := now[pair.key]) is not None]
    before = tuple(statistics.median(of_run) for of_run in zip(*(pair.figures for pair in whole)))
    return Trend(name, (*before, statistics.median(latest)), statistics.median(before))


def list_steps(now: typing.Iterable[StepFigures], earlier: EarlierCollectives) -> tuple[Trend, ...]:
    """Return the trends of the collective steps that are proven in this run and in at least one kept run, those with
    the largest losses first.

    :param now: proven figures of this run
    :param earlier: figures of the kept runs
    """
    known = compute_medians(earlier.steps)
    before = {item.key: item.figures for item in earlier.steps}
    found = [
        Trend(
            of_collectives.name_step(step.key),
            (*before[step.key], step.median),
            known[step.key][0] if step.key in known else None,
            "GB/s",
            of_collectives.MOST_DROP,
        )
        for step in now
        if step.key in before
    ]
    return tuple(sorted(found, key=lambda trend: trend.change or 0.0))


def list_latencies(
    now: typing.Iterable[LatencyFigures], earlier: EarlierCollectives, ratio: float
) -> tuple[Trend, ...]:
    """Return the trends of the latencies that are proven in this run and in at least one kept run, in the order of
    ``now``.

    :param now: proven latencies of this run
    :param earlier: figures of the kept runs
    :param ratio: factor of its median in earlier runs from which on a latency counts as worse
    """
    known = compute_medians(earlier.latencies)
    before = {item.test: item.figures for item in earlier.latencies}
    return tuple(
        Trend(
            of_collectives.name_latency(item.test),
            (*before[item.test], item.median),
            known[item.test][0] if item.test in known else None,
            "us",
            ratio - 1,
            True,
        )
        for item in now
        if item.test in before
    )


def render_figure(found: typing.Sequence[Trend], runs: int, what: str = "Bandwidth") -> Html:
    """Render the table of trends with their charts. The table is collapsed if no figure has become worse.

    :param found: trends with the same unit, at least one
    :param runs: number of kept runs
    :param what: subject of the trends, for the heading
    """
    note = (
        f"over {runs} kept run{'' if runs == 1 else 's'} with the same fabrics and this run; the largest losses"
        " come first"
    )
    unit, name = found[0].unit, f"{what} from run to run"
    shown = render_table(
        name,
        note,
        ("What", "Oldest to newest", f"Previous median, {unit}", f"Now, {unit}", "Change"),
        [*map(_render_row, found)],
    )
    if any(trend.is_worse for trend in found):
        return shown
    return render_element(
        "details", render_element("summary", f"{name}, {runs} runs before this run"), shown, class_="wide"
    )


def _render_row(trend: Trend) -> Html:
    change = None if trend.change is None else f"{100 * trend.change:+.1f} %"
    said = (
        render_element(
            "span", f"? {change}" if trend.is_worse else change, class_="said unknown" if trend.is_worse else None
        )
        if change
        else None
    )
    return render_row(
        join_content(trend.name),
        render_picture(trend),
        None if trend.before is None else format_number(trend.before),
        format_number(trend.figures[-1]),
        said,
    )


def render_picture(trend: Trend) -> Html:
    """Draw a line through the figures of a trend as an SVG, with a dot on the figure of this run."""
    middle = statistics.median(trend.figures)
    low, high = min(*trend.figures, middle * (1 - _SPAN)), max(*trend.figures, middle * (1 + _SPAN))
    step = (_WIDTH - 2 * _EDGE) / max(1, len(trend.figures) - 1)
    points = [
        (_EDGE + place * step, _HEIGHT - _EDGE - (value - low) / ((high - low) or 1.0) * (_HEIGHT - 2 * _EDGE))
        for place, value in enumerate(trend.figures)
    ]
    line = render_element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    dot = render_element("circle", cx=f"{points[-1][0]:.1f}", cy=f"{points[-1][1]:.1f}", r="2.5")
    words = f"{', '.join(map(format_number, trend.figures))} {trend.unit}"
    return render_element(
        "svg",
        line,
        dot,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        class_="trend bad" if trend.is_worse else "trend",
        role="img",
        aria_label=words,
    )
