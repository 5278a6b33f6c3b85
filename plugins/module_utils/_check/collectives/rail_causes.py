# SPDX-License-Identifier: GPL-3.0-or-later

"""Slow rails as possible causes of a slow collective: HCAs below the rate of the others, and rails that are slow when
they are tested alone. Check id: ``collectives.cause``.
"""

from __future__ import annotations

import statistics
import typing

from ..._model.run.findings import Finding
from ..job.log.ranks import spell_numbers
from .surroundings import NAMED, WEAK, Surroundings, make_cause


def report_weak_rails(seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about HCAs whose measured rate is below ``WEAK`` times the median rate of all HCAs.

    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    rates = [hca.rate_gbps for hcas in seen.hcas.values() for hca in hcas.values() if hca.rate_gbps is not None]
    usual = statistics.median(rates) if rates else 0.0
    weak = [
        (host, name, hca)
        for host, hcas in seen.hcas.items()
        for name, hca in hcas.items()
        if hca.rate_gbps is not None and hca.rate_gbps < WEAK * usual
    ]
    for host, name, hca in weak:
        rail = "" if hca.rail is None else f" (rail {hca.rail})"
        why = "Each rail carries the same share of the data of a collective, so all rails wait for the slowest rail."
        remedy = (
            "Follow the remedies of the findings of stages fabric and bandwidth on this HCA and its link"
            " (bandwidth.link, bandwidth.suspect). Then run stages bandwidth and collectives again."
        )
        yield make_cause(
            f"{host} {name}{rail}", f"{hca.rate_gbps:g} Gb/s", f"{usual:g} Gb/s, the median of all HCAs", why, remedy
        )


def report_rails_alone(subject: str, seen: Surroundings) -> typing.Iterator[Finding]:
    """Warn about rails that are slow when tested alone: their bus bandwidth is below ``WEAK`` times the median of all
    rails.

    :param subject: subject of the finding
    :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
    """
    usual = statistics.median(seen.rails_gbs.values()) if seen.rails_gbs else 0.0
    weak = [rail for rail, rate in seen.rails_gbs.items() if rate < WEAK * usual]
    if weak:
        measured = ", ".join(f"rail {rail} {seen.rails_gbs[rail]:g} GB/s" for rail in weak[:NAMED])
        why = (
            f"Rail {spell_numbers(sorted(weak))} is slower than the other rails when it is tested alone. All rails wait"
            " for the slowest rail."
        )
        yield make_cause(
            subject,
            measured,
            f"{usual:g} GB/s, the median of all rails",
            why,
            (
                "Follow the remedies of the findings of stage bandwidth on this rail. If there are none, check"
                " the leaf of the rail: read the error counters of its ports (ibqueryerrors, or the counters of"
                " the Ethernet switch), and repair the port whose counters increase. Then run stage collectives"
                " again."
            ),
        )
