# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: findings on ends (HCAs) that were left out of the later rounds, because their pairs failed one after
another and delayed the measurement of all other pairs.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import LEFT_OUT
from ..._model.measurement.pairs import End, PairResult
from ..._model.run.findings import FAIL, Finding
from .causes import add_stage, explain_cause, name_ends, spell_kinds
from .pairs import on_rail


def check_left_out(fabric: Fabric, pairs: typing.Sequence[PairResult]) -> list[Finding]:
    """Return a failed finding for each HCA port that was left out of later rounds because its pairs failed, with these
    failures and the remedy.

    :param pairs: measurements of the fabric
    """
    out: dict[End, int] = collections.Counter()
    for pair in pairs:
        if pair.failure in LEFT_OUT:
            out[pair.client_end if pair.failure == LEFT_OUT[0] else pair.server_end] += 1
    failed: dict[End, list[PairResult]] = {end: [] for end in out}
    for pair in pairs:
        if pair.failure and pair.failure not in LEFT_OUT:
            for end in pair.pair & out.keys():
                failed[end].append(pair)
    return [_report_left_out(fabric, end, number, failed[end]) for end, number in sorted(out.items())]


def _report_left_out(fabric: Fabric, end: End, number: int, failed: typing.Sequence[PairResult]) -> Finding:
    """Return the failed finding on an HCA port that was left out of later rounds, because its measurements failed.

    :param end: rail and node of the port
    :param number: number of measurements of this port that were not made
    :param failed: measurements of this port that failed
    """
    kinds = collections.Counter(pair.ping_failure or pair.failure for pair in failed)
    others = sorted({node for pair in failed for _rail, node in pair.pair - {end}})
    with_what = f" with {join_first(others, 4)}: {spell_kinds(kinds)}" if failed else ""
    measured = f"{count_of(number, 'measurement')} not made, after failed measurements{with_what}"
    why = (
        "The measurements of this node on this rail failed one after another, and its partners passed with other"
        " nodes afterwards. So this node is at fault, and the stage left it out of the later rounds."
    )
    # the most frequent one is first
    remedies = [name_ends(explain_cause(kind, fabric)[1], [end[1]], []) for kind, _number in kinds.most_common(1)]
    look = (
        f"Run kubectl describe node {end[1]}, and correct a condition or an event that reports a problem of the"
        " node or its kubelet."
    )
    remedy = add_stage(" ".join([look, *remedies]))
    return Finding(
        "bandwidth.suspect",
        f"{fabric.name} {end[1]}{on_rail(fabric, end[0])}, left out",
        FAIL,
        measured,
        "0 measurements not made",
        why,
        remedy,
    )
