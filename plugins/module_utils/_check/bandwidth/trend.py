# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the bandwidth of pairs with earlier runs. A link that degrades shows from run to run, long before its
bandwidth falls below the floor.
"""

from __future__ import annotations

import typing

from ..._analysis.bandwidth.medians import compute_medians
from ..._model.base.phrases import count_of, format_clause
from ..._model.measurement.bandwidth import Earlier
from ..._model.measurement.pairs import PairResult
from ..._model.run.findings import WARN, Finding, build_pass

#: share of its own median that a pair may lose. Fewer than the 7 and 8 per cent that the floors allow, or the floors
#: would always come first; more than the one per cent that clocks explain
MOST_DROP = 0.03


def check_trend(fabric: str, pairs: typing.Iterable[tuple[str, PairResult]], earlier: Earlier) -> list[Finding]:
    """Return a finding for each pair that is slower than its median in earlier runs, and one for all other pairs
    together. The list is empty if too few runs are kept.

    :param pairs: pairs of the fabric with their subjects, whose figures are valid measurements of RDMA
    :param earlier: measurements of kept runs
    """
    known, findings, held = compute_medians(earlier.pairs), [], 0
    for subject, pair in pairs:
        if pair.average_gbps is None or pair.key not in known:
            continue
        median, runs = known[pair.key]
        held += 1
        if pair.average_gbps < (1 - MOST_DROP) * median:
            measured = f"{pair.average_gbps:.2f} Gb/s, {100 * (1 - pair.average_gbps / median):.1f} % below the median"
            expected = (
                f">= {(1 - MOST_DROP) * median:.2f} Gb/s ({1 - MOST_DROP:g} of the median of {runs} earlier runs,"
                f" {median:.2f} Gb/s)"
            )
            why = "The pair is slower than in earlier runs: a link of this pair is degrading, or a setting has changed."
            remedy = (
                "Run ansible-playbook linerate.rdma.difference to see what changed since the earlier runs, and"
                " undo a change that explains the loss. If there is none, follow the remedies of the findings"
                " fabric.errors on the links of both nodes, and reseat their cables. Then run stage bandwidth"
                " again."
            )
            findings.append(Finding("bandwidth.trend", subject, WARN, measured, expected, why, remedy))
    if held > len(findings):
        expected = f">= {1 - MOST_DROP:g} of their medians"
        findings.append(
            build_pass(
                "bandwidth.trend",
                fabric,
                f"{held - len(findings)} of {held} measurements as in the earlier runs",
                expected,
            )
        )
    return findings


def check_unread(earlier: Earlier) -> list[Finding]:
    """Return a warning that lists the kept runs that cannot be read and are therefore ignored. The list is empty if all
    of them can be read.

    :param earlier: measurements of kept runs
    """
    if not earlier.unread:
        return []
    why = (
        "The measurements of these runs are ignored because they could not be read:"
        f" {format_clause('; '.join(earlier.unread))}."
    )
    remedy = (
        "Move these runs out of the folder runs/ of the report, or restore their missing files. The next run"
        " compares with the others."
    )
    return [
        Finding(
            "bandwidth.trend",
            "earlier runs",
            WARN,
            f"{count_of(len(earlier.unread), 'earlier run')} not readable",
            "all earlier runs readable",
            why,
            remedy,
        )
    ]
