# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the growth of the error counters of links from run to run, with a small chart for each link. It does not
evaluate them: stage fabric evaluates the errors that occur during the stage.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._check.fabric.counter_classes import PHYSICAL
from ..._check.fabric.names import Names
from ..._model.infiniband.fabric import SeenTopology
from ..._model.run.link_errors import EarlierErrors, End, ErrorReading, collect_readings, compute_growth
from ..markup.markup import Html, join_content, render_element
from ..markup.tables import render_row, render_table

#: links that have a row of their own: those that counted the most
_MOST_LINKS = 12
_WIDTH, _HEIGHT, _EDGE, _MOST_BAR = 132.0, 26.0, 3.0, 14.0

#: errors between a run and the one before it; None where nobody knows
Steps = tuple[typing.Optional[int], ...]


@dataclasses.dataclass(frozen=True)
class LinkErrors:
    """A link whose error counters are not zero.

    :ivar name: names of both ends
    :ivar steps: number of new errors from each run to the next, the step to this run last; None for a step in which it
        is not known
    """

    name: str
    steps: Steps

    @property
    def total(self) -> int:
        return sum(step or 0 for step in self.steps)


@dataclasses.dataclass(frozen=True)
class ErrorHistory:
    """The errors of all links of this run.

    :ivar links: links with errors, ordered by the errors since the previous run, the most first
    :ivar quiet: number of links without errors
    :ivar runs: number of kept runs that were read
    :ivar unread: kept runs that cannot be read, each with the reason
    """

    links: tuple[LinkErrors, ...] = ()
    quiet: int = 0
    runs: int = 0
    unread: tuple[str, ...] = ()


def collect_history(run: str, seen: typing.Sequence[SeenTopology], earlier: EarlierErrors) -> ErrorHistory:
    """Return the errors of each link of this run over the kept runs. The errors of a link are the sum of the counters
    of physical errors at both ends. The result has no links if no earlier run or not this run has read counters.

    :param run: ID of this run
    :param seen: topologies of this run, from all ports that reported one
    :param earlier: error counters that the kept runs have read
    """
    readings = (*earlier.readings, collect_readings(run, seen))
    if len(readings) < 2 or not readings[-1].ends:
        return ErrorHistory(unread=earlier.unread)
    links, quiet = [], 0
    for (first, second), names in _place_ends(seen).items():
        steps = tuple(
            _sum_link_errors(*pair)
            for pair in zip(_compute_error_steps(first, readings), _compute_error_steps(second, readings))
        )
        if any(steps):
            links.append(LinkErrors(f"{names.port(*first)} - {names.port(*second)}", steps))
        else:
            quiet += 1
    links.sort(key=lambda link: (-(link.steps[-1] or 0), -link.total, link.name))
    return ErrorHistory(tuple(links), quiet, len(earlier.readings), earlier.unread)


def _place_ends(seen: typing.Sequence[SeenTopology]) -> dict[tuple[End, End], Names]:
    """Return the names in the topology that reported a link, by the two ends of the link. An end is a GUID and a port
    number, and the end at a host comes first. If several ports report the same link, the topology of the first one is
    used.

    :param seen: topologies of this run, from all ports that reported one
    """
    found: dict[tuple[End, End], Names] = {}
    for topology in (one.topology for one in seen if one.topology is not None):
        names = Names(topology)
        for link in topology.links:
            # a host before its switch
            first, second = sorted((link.a, link.b), key=lambda end: (end.kind == "Switch", end.place))
            found.setdefault((first.place, second.place), names)
    return found


def _compute_error_steps(end: End, readings: typing.Sequence[ErrorReading]) -> Steps:
    """Return the number of new errors at one end of a link in each run after the first. It is the growth since the last
    run that read the counters of this end. An entry is None if the run did not read them, or if no earlier run did,
    such as for a replaced HCA.

    :param end: GUID and port number of the end
    :param readings: counters of the kept runs and of this run, the oldest first
    """
    steps: list[typing.Optional[int]] = []
    before: typing.Optional[typing.Mapping[str, int]] = readings[0].ends.get(end)
    for reading in readings[1:]:
        now = reading.ends.get(end)
        steps.append(None if now is None or before is None else compute_growth(before, now, PHYSICAL.maximum))
        before = before if now is None else now
    return tuple(steps)


def _sum_link_errors(first: typing.Optional[int], second: typing.Optional[int]) -> typing.Optional[int]:
    """Return the number of new errors of a link: the sum of the numbers of both ends. If the counters of one end were
    not read, return the number of the other end, or None if that is 0 or unknown, too.

    :param first: number of new errors at the first end; None if its counters were not read
    :param second: number of new errors at the second end; None if its counters were not read
    """
    known = (first or 0) + (second or 0)
    return None if not known and None in (first, second) else known


def render_figure(found: ErrorHistory) -> Html:
    """Render the table of links with errors and their charts. The table is collapsed if no link has new errors since
    the previous run.
    """
    runs = f"{found.runs} kept run{'' if found.runs == 1 else 's'}"
    quiet = (
        f"{found.quiet} other links counted no errors" if found.links else f"none of {found.quiet} links counted errors"
    )
    note = f"over {runs} and this run; {quiet}. Physical errors of each link, counted by both of its link ports"
    unread = (
        render_element("p", f"Kept runs that could not be read: {'; '.join(found.unread)}", class_="more")
        if found.unread
        else None
    )
    more = len(found.links) - _MOST_LINKS
    rest = (
        render_element("p", f"and {more} more links; facts/topologies of the runs contain all of them", class_="more")
        if more > 0
        else None
    )
    heads = ("Link", "From run to run", "Total", "Since the previous run")
    shown = render_table(
        "Errors of links from run to run", note, heads, [*map(_render_row, found.links[:_MOST_LINKS])], rest, unread
    )
    if any(link.steps[-1] for link in found.links):
        return shown
    words = "none since the previous run" if found.links else "none"
    return render_element(
        "details",
        render_element("summary", f"Errors of links from run to run, {found.runs} runs before this run: {words}"),
        shown,
        class_="wide",
    )


def _render_row(link: LinkErrors) -> Html:
    last = link.steps[-1]
    said = render_element("span", f"? {last}", class_="said unknown") if last else "unknown" if last is None else "0"
    return render_row(join_content(link.name), render_picture(link), str(link.total), said)


def render_picture(link: LinkErrors) -> Html:
    """Draw a bar for the new errors of a link in each run as an SVG. The largest number fills the height. If the number
    of a run is not known, its bar is flat and has another color.
    """
    most = max(link.total and max(step or 0 for step in link.steps), 1)
    step = (_WIDTH - 2 * _EDGE) / len(link.steps)
    wide = min(step * 0.7, _MOST_BAR)
    bars = []
    for place, value in enumerate(link.steps):
        left = _EDGE + place * step + (step - wide) / 2
        # nothing counted is a line, and one error of a million can be seen
        high = 1.0 if not value else max(3.0, value / most * (_HEIGHT - 2 * _EDGE))
        at = {"x": f"{left:.1f}", "y": f"{_HEIGHT - _EDGE - high:.1f}", "width": f"{wide:.1f}", "height": f"{high:.1f}"}
        bars.append(render_element("rect", **at, class_="gap" if value is None else "some" if value else None))
    words = f"{', '.join('unknown' if value is None else str(value) for value in link.steps)} errors"
    return render_element(
        "svg",
        *bars,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        width=f"{_WIDTH:g}",
        height=f"{_HEIGHT:g}",
        class_="trend",
        role="img",
        aria_label=words,
    )
