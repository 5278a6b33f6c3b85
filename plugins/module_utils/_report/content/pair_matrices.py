# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrices of measured pairs: of stage bandwidth with a figure in each cell, and of stage reachability with the
result of a ping.
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.fleet.hca_locations import collect_places
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._check.bandwidth.facts import Facts
from ..._check.bandwidth.pairs import subject_of
from ..._check.reachability import check as reachability
from ..._model.infiniband.fabric import Place
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.measurement.pairs import PairResult
from ..._model.measurement.reachability import ObservedPings, Ping, PingPlan
from ..._model.run.findings import Judged
from ..._model.run.records import Record
from .exhibits import Charts, find_membership, load_intent_and_facts
from .inputs import ReportFacts
from .matrix import Cell, Matrix, group_by_number
from .verdict import label_finding

Judgements = typing.Mapping[str, typing.Sequence[Judged]]


def list_matrices(record: Record, facts: ReportFacts, known: Charts) -> tuple[Matrix, ...]:
    """Return the matrices of measured pairs of stage bandwidth or reachability. Return an empty tuple for any other
    stage, and for a stage that left no facts.

    :param record: record of the stage
    :param known: charts of the InfiniBand fabrics, by name
    :raises Undrawable: the facts do not load
    """
    if record.stage not in _MATRICES:
        return ()
    draw, parts = _MATRICES[record.stage]
    loaded = load_intent_and_facts(record, facts, parts)
    return tuple(draw(*loaded, _group_by_subject(record.judged), known)) if loaded is not None else ()


def _group_by_subject(judged: typing.Iterable[Judged]) -> Judgements:
    result: dict[str, list[Judged]] = {}
    for item in judged:
        result.setdefault(item.finding.subject, []).append(item)
    return result


def _compute_level(judged: typing.Sequence[Judged], otherwise: str) -> str:
    """Return the worst level of the findings on a pair: ``fail``, ``unknown``, ``waived`` or ``pass``.

    :param judged: findings on the pair
    :param otherwise: result if there is no finding on the pair
    """
    labels = {label_finding(item) for item in judged}
    if "fail" in labels:
        return "fail"
    if labels & {"unknown", "skipped"}:
        return "unknown"
    if "waived" in labels:
        return "waived"
    return "pass" if labels else otherwise


def _make_cell(level: str, value: typing.Optional[float], *words: str) -> Cell:
    return Cell(level, value, "\n".join(word for word in words if word), 1, int(level in ("fail", "unknown")))


def _list_bandwidth_matrices(
    intent: Intent, facts: Facts, judged: Judgements, known: Charts
) -> typing.Iterator[Matrix]:
    if facts.bandwidth is None:
        return
    for wanted in intent.fabrics:
        # None: between rails
        rails: dict[typing.Optional[int], dict[tuple[str, str], list[PairResult]]] = collections.defaultdict(dict)
        for pair in facts.bandwidth.pairs:
            if pair.fabric == wanted.name:
                rails[None if pair.between_rails else pair.rail].setdefault((pair.client, pair.server), []).append(pair)
        for rail, pairs in sorted(rails.items(), key=lambda item: (item[0] is None, item[0] or 0)):
            cells = {}
            for (client, server), measured in pairs.items():
                # a pair that is measured again has the same subject, and the findings of both
                subjects = dict.fromkeys(subject_of(wanted, pair) for pair in measured)
                found = [item for subject in subjects for item in judged.get(subject, ())]
                cells[client, server] = _make_bandwidth_cell(measured, found)
                if wanted.bandwidth.directions == "at_once":
                    cells[server, client] = cells[client, server]
            leaves = known[wanted.name].leaves(rail) if wanted.name in known and rail is not None else {}
            yield Matrix(
                _format_title(wanted, rail), "average", "Gb/s", True, _list_names(cells, facts.nodes), cells, leaves
            )


def _make_bandwidth_cell(measured: typing.Sequence[PairResult], judged: typing.Sequence[Judged]) -> Cell:
    """Return the matrix cell of a pair. A pair that is suspected to be slow is measured more than once. Its cell shows
    the lowest bandwidth and the worst level of all findings.

    :param measured: results of the pair, at least one
    :param judged: findings on the pair
    """
    words = [f"{measured[0].client} \u2192 {measured[0].server}"]
    for pair in measured:
        rails = f"rail {pair.rail} \u2192 {pair.server_end[0]}: " if pair.between_rails else ""
        if pair.average_gbps is None:
            words.append(
                f"{rails}not measured: {pair.evidence or pair.failure or pair.ping_evidence or pair.ping_failure}"
            )
        else:
            peak = f", peak {pair.peak_gbps:g}" if pair.peak_gbps is not None else ""
            words.append(
                f"{rails}average {pair.average_gbps:g}{peak} Gb/s{' when measured again' if pair.again else ''}"
            )
        if pair.wider is not None:
            figure = (
                f"average {pair.wider.average_gbps:g} Gb/s"
                if pair.wider.average_gbps is not None
                else f"not measured: {pair.wider.why}"
            )
            words.append(
                f"{rails}with {pair.wider.queue_pairs} queue pairs of {pair.wider.message_bytes} bytes: {figure}"
            )
    # where the floor comes from: link, PCIe and share are in the finding's own words
    words += dict.fromkeys(
        f"{item.finding.check}: {item.finding.expected}"
        for item in judged
        if item.finding.check in ("bandwidth.floor", "bandwidth.fleet")
    )
    return _make_cell(
        _compute_level(judged, "seen"),
        min((pair.average_gbps for pair in measured if pair.average_gbps is not None), default=None),
        *words,
    )


def _format_title(wanted: Fabric, rail: typing.Optional[int]) -> str:
    if rail is None:
        return f"{wanted.name}, between rails"
    return f"{wanted.name}, rail {rail}" if wanted.select.hcas_per_node > 1 else wanted.name


def _list_reachability_matrices(
    intent: Intent, facts: reachability.Facts, judged: Judgements, known: Charts
) -> typing.Iterator[Matrix]:
    for wanted in intent.fabrics:
        if not is_infiniband(wanted):
            continue
        membership = find_membership(wanted, facts)
        where = collect_places(membership, {})
        rails: dict[int, dict[tuple[str, str], Cell]] = collections.defaultdict(dict)
        for client, server, ping in _list_pings(membership, facts, where):
            ends = f"{client.node} {client.hca} -> {server.node} {server.hca}"
            found = judged.get(f"{wanted.name} rail {client.rail} {ends}", ())
            rails[client.rail][client.node, server.node] = _make_reachability_cell(ends, ping, found)
        for rail, cells in sorted(rails.items()):
            leaves = known[wanted.name].leaves(rail) if wanted.name in known else {}
            yield Matrix(
                _format_title(wanted, rail), "loss", "%", False, _list_names(cells, tuple(facts.nodes)), cells, leaves
            )


def _list_pings(
    membership: Membership, facts: reachability.Facts, where: typing.Mapping[tuple[str, str], Place]
) -> typing.Iterator[tuple[Place, Place, typing.Optional[Ping]]]:
    """Yield the planned pings between the ports of a fabric as three values: the position of the client in the
    topology, that of the server, and the result. The result is None if the node of the client reported none.

    :param where: positions in the topology, by node and HCA
    """
    servers = {
        (member.rail, member.port.lid): where[name, member.hca.name]
        for name, members in membership.members.items()
        for member in members
        if member.port is not None and member.port.lid is not None
    }
    for name, members in membership.members.items():
        answers = {
            (ping.rdma_device, ping.port, ping.destination_lid): ping
            for ping in facts.pings.get(name, ObservedPings()).value or ()
        }
        for member in members:
            for task in facts.plan.get(name, PingPlan()).clients:
                if member.port is None or (task.device, task.port) != (member.hca.rdma_device, member.port.number):
                    continue
                for lid in task.lids:
                    if (member.rail, lid) in servers:
                        yield (
                            where[name, member.hca.name],
                            servers[member.rail, lid],
                            answers.get((task.device, task.port, lid)),
                        )


def _make_reachability_cell(ends: str, ping: typing.Optional[Ping], judged: typing.Sequence[Judged]) -> Cell:
    if ping is None or ping.error is not None or not ping.sent:
        return _make_cell(
            _compute_level(judged, "unknown"),
            None,
            ends,
            f"not measured: {ping.error if ping and ping.error else 'no result'}",
        )
    loss = 100.0 * ping.lost / ping.sent
    return _make_cell(
        _compute_level(judged, "fail" if loss else "pass"),
        loss,
        ends,
        f"{ping.sent - ping.lost} of {ping.sent} messages answered, {loss:.3g} % loss",
    )


def _list_names(cells: typing.Iterable[tuple[str, str]], nodes: typing.Sequence[str]) -> tuple[str, ...]:
    """Return the names of all nodes of a matrix, including nodes that did not answer. They are sorted so that worker-2
    precedes worker-10.

    :param cells: pairs of client and server
    :param nodes: nodes that take part
    """
    return tuple(sorted({*nodes, *(name for ends in cells for name in ends)}, key=group_by_number))


#: stage: (what draws its matrices, the parts of its facts that this takes)
_MATRICES: dict[str, tuple[typing.Callable[..., typing.Iterator[Matrix]], tuple[str, ...]]] = {
    "reachability": (_list_reachability_matrices, ("nodes", "subnets", "plan", "pings")),
    "bandwidth": (_list_bandwidth_matrices, ("nodes", "bandwidth")),
}
