# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the HCAs whose partners were all slower than they are. The floor of a pair comes from its slower end, so such
pairs do not show that the faster HCA and its host carry more. Check id: ``bandwidth.measured``.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.bandwidth.floors import PairLimits
from ..._model.intent.profiles import carries_rdma
from ..._model.measurement.pairs import End, PairResult
from ..._model.run.findings import UNKNOWN, WARN, Finding
from .pairs import on_rail


def check_own_rates(ground: PairLimits, pairs: typing.Iterable[PairResult], by_cover: bool) -> list[Finding]:
    """Return a finding for each HCA that was only measured with slower HCAs. It is unknown if its rail has another HCA
    of its rate, and a warning if there is none, or if the rounds were planned by the links that they use. The list is
    empty for a fabric whose floors do not come from its links. HCAs without a valid figure, or of an unknown rate, are
    left out.

    :param ground: limits of the pairs of the fabric
    :param pairs: measured pairs of the fabric
    :param by_cover: whether the rounds were planned to use each link
    """
    fabric = ground.fabric
    if fabric.line_rate.floor_gbps is not None or not carries_rdma(fabric):
        return []
    own, fraction = ground.own_rates(), fabric.line_rate.fraction
    reached: dict[End, float] = collections.defaultdict(float)
    for pair in pairs:
        if pair.client_end != pair.server_end and pair.average_gbps and not pair.failure and not ground.doubt(pair):
            least = ground.kind(pair)[1]
            for end in (pair.client_end, pair.server_end):
                reached[end] = max(reached[end], least or 0.0)
    of_rail: dict[int, list[float]] = collections.defaultdict(list)
    for (rail, _node), rate in own.items():
        of_rail[rail].append(rate)
    # the fastest HCA of a rail may be the judged one itself
    second = {rail: sorted(rates)[-2] if len(rates) > 1 else 0.0 for rail, rates in of_rail.items()}
    findings = []
    for end, least in sorted(reached.items()):
        wanted = own.get(end, 0.0)
        if least and least < fraction * wanted:
            has_equal = second[end[0]] >= fraction * wanted
            findings.append(_build_finding(ground, end, (least, wanted), has_equal, by_cover))
    return findings


def _build_finding(
    ground: PairLimits, end: End, rates: tuple[float, float], has_equal: bool, by_cover: bool
) -> Finding:
    """Return the finding about an HCA that was only measured with slower ones.

    :param end: rail and node of the HCA
    :param rates: highest rate in Gb/s of the slower ends of its pairs, and its own rate
    :param has_equal: whether its rail has another HCA of its rate
    """
    (least, wanted), fabric = rates, ground.fabric
    why = (
        f"Each HCA with which this one was measured is slower than its own {wanted:g} Gb/s. The floor of a pair comes"
        " from its slower end, so it is unknown whether this HCA, its host and its cable carry more."
    )
    remedy = (
        "To measure nodes of different rates apart, declare a fabric for each rate. Then run stage bandwidth again."
        if by_cover
        else "Set bandwidth.rounds of the fabric to all, or to more rounds, or declare a fabric for each rate. Then run"
        " stage bandwidth again."
    )
    if not has_equal:
        why += " Its rail has no other HCA of this rate."
        remedy = (
            "Add a second node with an HCA of this rate to the run, then run stage bandwidth again. If there is none,"
            " waive this finding."
        )
    return Finding(
        "bandwidth.measured",
        f"{fabric.name} {end[1]}{on_rail(fabric, end[0])} rate",
        UNKNOWN if has_equal and not by_cover else WARN,
        f"only measured up to {least:g} of {wanted:g} Gb/s",
        f"a pair with an HCA of at least {fabric.line_rate.fraction * wanted:g} Gb/s",
        why,
        remedy,
    )
