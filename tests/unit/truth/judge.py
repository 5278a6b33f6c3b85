# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run says of a fleet of which one fact is broken."""

from __future__ import annotations

import functools
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import WARN, Finding, judge

from .breaks import Break, Case, hint_of, types_of_facts
from .fleet import Fleet
from .table import Row

#: from a closed gate to nothing at all
CLOSED, WARNED, SILENT = ORDER = ("closed", "warned", "silent")
#: fields that say why there is no value
_REASONS = ("error", "silent", "barrier", "linked")


@functools.cache
def stages_of(source: typing.Any) -> tuple[str, ...]:
    """The stages that are judged by a fact."""
    return tuple(stage for stage in TABLE if source in SOURCES[stage].values())


def findings(fleet: Fleet, stage: str, facts: typing.Any = None) -> tuple[Finding, ...]:
    found: tuple[Finding, ...] = TABLE[stage][1](fleet.intent, fleet.of(stage, facts))
    return found


def verdict(fleet: Fleet, broken: Break) -> str:
    """Whether a stage closes its gate; if none does, whether one warns."""
    said = worst(fleet, (findings(fleet, stage, broken.facts) for stage in stages_of(broken.source)))
    field = broken.case.fact.rpartition(".")[2].partition("[")[0]
    if said == CLOSED or field not in _REASONS or broken.source not in {*broken.facts} & {*types_of_facts()}:
        return said
    # a value beside a reason why there is none is refused where it is read, before any check
    try:
        read = load(hint_of(broken.source), to_data(broken.facts[broken.source]), "facts")
    except LoadError:
        return CLOSED
    facts = {**broken.facts, broken.source: read}
    return worst(fleet, (findings(fleet, stage, facts) for stage in stages_of(broken.source)))


def worst(fleet: Fleet, of_stages: typing.Iterable[tuple[Finding, ...]]) -> str:
    """The same of the findings of several stages; those behind a closed gate are not asked for."""
    result = SILENT
    for found in of_stages:
        gate = judge(found, fleet.intent.waivers)
        if not gate.open:
            return CLOSED
        if any(item.finding.status == WARN for item in gate.judged):
            result = WARNED
    return result


class Outcome(typing.NamedTuple):
    """What came of a case. words: the break of which least is said."""

    verdict: str
    words: str


def outcomes(
    fleet: Fleet, breaks: typing.Iterable[Break], said: typing.Callable[[Fleet, Break], str] = verdict
) -> dict[Case, Outcome]:
    """Of each case what the run says at least: of a hundred places one that is not noticed is enough.

    :param said: of a fleet with one fact broken
    """
    found: dict[Case, Outcome] = {}
    for broken in breaks:
        before = found.get(broken.case)
        if before is None or before.verdict != SILENT:
            now = Outcome(said(fleet, broken), broken.words)
            if before is None or ORDER.index(now.verdict) > ORDER.index(before.verdict):
                found[broken.case] = now
    return found


def compared(seen: typing.Mapping[Case, Outcome], rows: typing.Sequence[Row]) -> list[str]:
    """What the rows say else than what was seen."""
    wrong: list[str] = []
    unused = {(row, kind, fact) for row in rows for kind in row.kinds for fact in row.facts}
    for case, outcome in seen.items():
        named = [(row, kind, fact) for row in rows if case.kind in row.kinds for kind, fact in row.named(case)]
        unused.difference_update(named)
        wrong += problems(case, outcome, [row for row, _kind, _fact in named])
    return wrong + [f"no such fact: {kind} {fact} ({row.why})" for row, kind, fact in unused]


def problems(case: Case, outcome: Outcome, rows: typing.Sequence[Row]) -> typing.Iterator[str]:
    where = f"{case.kind} {case.fact}, {case.how}, {'RoCE' if case.roce else 'InfiniBand'}"
    if outcome.verdict == CLOSED:
        yield from (f"noticed, so that the row is not needed: {where} ({row.why})" for row in rows)
    elif not rows:
        yield f"not noticed ({outcome.verdict}), and not in the table: {where}: {outcome.words}"
    elif len(rows) > 1:
        yield f"in {len(rows)} rows: {where}"
    elif outcome.verdict != (WARNED if rows[0].warns else SILENT):
        yield f"{outcome.verdict}, which the row does not say: {where} ({rows[0].why})"
