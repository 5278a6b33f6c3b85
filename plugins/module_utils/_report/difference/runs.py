# SPDX-License-Identifier: GPL-3.0-or-later

"""The differences between two runs, or between two evaluations of one run: gates and findings, the facts of each node,
and the figures of collectives. The gate of a stage is open if later stages may run.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import typing

from ..._check.collectives.floor import spell_gbs
from ..._check.collectives.trend import MOST_DROP, name_latency, name_step
from ..._model.base.load import to_data
from ..._model.base.text import cut_text
from ..._model.measurement.collectives import LatencyFigures, StepFigures
from ..._model.run.fact_kinds import FACT_KINDS
from ..._model.run.facts import CLUSTER
from ..._model.run.findings import STAGES, Judged
from ..._model.run.records import Record
from ..content.verdict import label_finding
from ..markup.text import one_line
from .snapshot import CableEnd, Data, SeenCables, Snapshot

#: times that a latency may be as long as in the other run: the default of latency_ratio
_MOST_TIMES = 1.5
NOT_THERE, COLLECTIVES = "absent", "figures of collectives"

#: kinds of facts of nodes that are compared, and their words. HCAs after the network was made show its VFs
COMPARED = {kind.name: kind.difference_prefix for kind in FACT_KINDS if kind.difference_prefix is not None}
#: differ between any two runs and mean nothing: counts that rise by themselves, numbers that a device or a boot draws
#: anew, what pods have just now, and whom a kernel has heard of lately
IGNORED = ("activity", "queue_pair", "changes", "held", "boot", "hardware_addresses")
# a list of such things is compared thing by thing: the first of these keys that all have names one
_NAMES = (("rdma_device", "port"), ("name",), ("address",), ("number",), ("key",))
# word for one thing of a list
_WORDS = {"hcas": "", "ports": "port", "netdevs": "netdev", "functions": "function"}
#: lines on a terminal; the file has all
MOST_LINES = 200
#: differences of one node, and characters of the name of a thing and of what is said of it: a node writes all of them
MOST_OF_NODE, _MOST_WHAT, _MOST_TEXT = 512, 400, 2000


@dataclasses.dataclass(frozen=True)
class RunDifference:
    """One difference between two runs.

    :ivar node: name of a node, ``cluster``, ``fabric``, ``collectives``, or ``stage <name>`` for the gate and findings
        of a stage
    :ivar what: property that differs, in the terms of facts and findings: ``mlx5_0 firmware``, ``fabric.one_master on
        compute``
    :ivar before: value in the first run, as text
    :ivar after: value in the second run, as text
    """

    node: str
    what: str
    before: str
    after: str


def find_differences(before: Snapshot, after: Snapshot) -> list[RunDifference]:
    """Return the changes from one run to the other: the intent, versions, nodes and their facts, cables, figures of
    collectives, gates and findings. Times and run IDs are not compared. Of one node, at most ``MOST_OF_NODE``
    differences are returned.

    :param before: results of the earlier run
    :param after: results of the later run
    """
    found: list[RunDifference] = []
    first, second = to_data(before.start), to_data(after.start)
    for name in ("fabrics", "waivers", "cluster", "versions", "check_mode"):
        found += _compare_data(
            CLUSTER, [name if name in ("versions", "check_mode") else f"rdma_{name}"], first[name], second[name]
        )
    sides = frozenset(before.start.nodes), frozenset(after.start.nodes)
    for node in dict.fromkeys((*before.start.nodes, *after.start.nodes)):
        if all(node in side for side in sides):
            of_node = list(itertools.islice(_compare_node(node, before.facts, after.facts), MOST_OF_NODE + 1))
            found += of_node[:MOST_OF_NODE]
            if len(of_node) > MOST_OF_NODE:
                found.append(
                    RunDifference(
                        node, "differences", f"{MOST_OF_NODE} differences are listed", "more differences exist"
                    )
                )
        else:
            found += _compare_texts(node, "node", *("takes part" if node in side else NOT_THERE for side in sides))
    found += _compare_cables(before, after)
    unread = {**before.unread, **after.unread}
    if COLLECTIVES not in unread:
        found += _compare_collectives(before.collectives, after.collectives)
        found += _compare_latencies(before.latencies, after.latencies)
    records = (
        {stage: record for stage, record in side.records.items() if stage not in unread} for side in (before, after)
    )
    return found + _list_unread(before, after) + find_record_differences(*records)


def _list_unread(before: Snapshot, after: Snapshot) -> list[RunDifference]:
    """Return the records and figures that could not be read in at least one of the runs, as differences. Their contents
    are not compared.
    """
    found: list[RunDifference] = []
    for name in (COLLECTIVES, *STAGES):
        words = []
        for side in (before, after):
            there = side.collectives is not None if name == COLLECTIVES else name in side.records
            words.append(side.unread.get(name) or ("seen" if there else "not looked at"))
        if name in before.unread or name in after.unread:
            place = ("collectives", "figures") if name == COLLECTIVES else (f"stage {name}", "record")
            found += _compare_words(*place, *words)
    return found


def find_record_differences(
    before: typing.Mapping[str, Record], after: typing.Mapping[str, Record]
) -> list[RunDifference]:
    """Return the changes of gates, and the findings that appeared, disappeared or changed their status. Findings are
    matched by check and subject, and their measured values are not compared.

    :param before: records of the earlier run, by stage
    :param after: records of the later run, by stage
    """
    found: list[RunDifference] = []
    for stage in STAGES:
        one, other = before.get(stage), after.get(stage)
        name = f"stage {stage}"
        found += _compare_texts(name, "gate", one.gate if one else "no record", other.gate if other else "no record")
        first, second = _group_by_subject(one), _group_by_subject(other)
        for key in {**first, **second}:
            found += _compare_texts(name, key, first.get(key, NOT_THERE), second.get(key, NOT_THERE))
    return found


def describe_differences(found: typing.Sequence[RunDifference]) -> list[str]:
    """Return the differences as lines for a terminal, each of the form ``node: property: before -> after``. After
    ``MOST_LINES`` lines, one line states the number of the remaining differences.

    :param found: differences between two runs
    """
    lines = [one_line(f"{item.node}: {item.what}: {item.before} -> {item.after}") for item in found[:MOST_LINES]]
    if len(found) > MOST_LINES:
        lines.append(f"and {len(found) - MOST_LINES} more differences")
    return lines


def _compare_node(
    node: str,
    before: typing.Mapping[str, typing.Mapping[str, Data]],
    after: typing.Mapping[str, typing.Mapping[str, Data]],
) -> typing.Iterator[RunDifference]:
    for kind, word in COMPARED.items():
        one, other = before.get(kind, {}).get(node), after.get(kind, {}).get(node)
        if (
            kind == "hcas"
            and before.get("hcas_after_network", {}).get(node)
            and after.get("hcas_after_network", {}).get(node)
        ):
            # the later look shows the same HCAs
            continue
        if one is None or other is None:
            yield from _compare_texts(
                node, kind, *("not looked at" if item is None else "looked at" for item in (one, other))
            )
        elif one["error"] or other["error"]:
            yield from _compare_words(node, kind, *(item["error"] or "seen" for item in (one, other)))
        else:
            yield from _compare_data(node, [word], one["value"], other["value"])


def _compare_data(node: str, path: list[str], before: typing.Any, after: typing.Any) -> typing.Iterator[RunDifference]:
    """Yield the differences between two values of plain data. Dictionaries are compared by key, without the keys in
    IGNORED, and lists of named items by name. All other values are compared as a whole.

    :param node: name of the node, for the result
    :param path: keys and names that lead to the value
    :param before: value in the earlier run; None if it is missing
    :param after: value in the later run; None if it is missing
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            if key not in IGNORED:
                yield from _compare_data(node, [*path, _WORDS.get(key, key)], before.get(key), after.get(key))
        return
    first, second = _group_by_name(before), _group_by_name(after)
    if first is not None and second is not None and (first or second):
        for name in dict.fromkeys((*first, *second)):
            if name in first and name in second:
                yield from _compare_data(node, [*path, name], first[name], second[name])
            else:
                yield from _compare_texts(
                    node,
                    _format_path([*path, name]),
                    *("present" if name in side else NOT_THERE for side in (first, second)),
                )
        return
    if before != after:
        yield from _compare_texts(node, _format_path(path), _format_data(before), _format_data(after))


def _group_by_name(data: typing.Any) -> typing.Optional[dict[str, typing.Any]]:
    """Return the items of a list by their names. Return None if the data is not a list of mappings with names, or if
    two items have the same name. The result is empty for an empty list.
    """
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return None
    for keys in _NAMES:
        if data and all(item.get(key) is not None for item in data for key in keys):
            named = {" port ".join(str(item[key]) for key in keys): item for item in data}
            return named if len(named) == len(data) else None
    return None if data else {}


def _compare_cables(before: Snapshot, after: Snapshot) -> list[RunDifference]:
    """Return the differences between the links of two runs. A link is identified by the GUIDs and ports of its ends,
    since several switches may have the same description. If one of the runs has no topology, links are not compared,
    and the result shows which run has none.
    """
    first, second = SeenCables.collect(before), SeenCables.collect(after)
    if not (first.seen and second.seen):
        return _compare_words("fabric", "topology", first.state, second.state)
    found = [*_compare_words("fabric", "topology", first.state, second.state)] if first.unread or second.unread else []
    named = {**second.names, **first.names}
    count = collections.Counter(named.values())
    for guid in sorted(first.names.keys() & second.names.keys()):
        found += _compare_texts("fabric", f"name of {guid}", first.names[guid], second.names[guid])

    def called(end: CableEnd) -> str:
        name = named.get(end[0]) or end[0]
        return f"{name}{f' ({end[0]})' if count[name] > 1 else ''} port {end[1]}"

    words = {ends: " - ".join(sorted(map(called, ends))) for ends in {*first.links, *second.links}}
    for ends in sorted(words, key=lambda ends: (words[ends], ends)):
        found += _compare_texts(
            "fabric", f"link {words[ends]}", first.links.get(ends, NOT_THERE), second.links.get(ends, NOT_THERE)
        )
    return found


def _compare_collectives(
    before: typing.Optional[tuple[StepFigures, ...]], after: typing.Optional[tuple[StepFigures, ...]]
) -> list[RunDifference]:
    """Return the steps whose bandwidth changed by more than the normal variation between runs, and the steps that only
    one run has proven. Return an empty list if one of the runs did not measure collectives, because its gates show
    this.

    :param before: figures of the earlier run, by step; None if it measured no collectives
    :param after: figures of the later run; None if it measured no collectives
    """
    if before is None or after is None:
        return []
    first, second = ({(item.fabric, *item.key): item for item in side} for side in (before, after))
    found = []
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if one is not None and other is not None and abs(other.median - one.median) <= MOST_DROP * one.median:
            continue
        words = ["not verified" if item is None else spell_gbs(item.median) for item in (one, other)]
        found += _compare_texts("collectives", f"{key[0]} {name_step(key[1:])}", *words)
    return found


def _compare_latencies(
    before: typing.Sequence[LatencyFigures], after: typing.Sequence[LatencyFigures]
) -> list[RunDifference]:
    """Return the collectives whose median latency changed by more than the factor ``_MOST_TIMES``, and those that only
    one run has proven. By default, the latency of a pair may differ from the median by the same factor. Return an empty
    list if one of the runs did not measure latencies.

    :param before: latencies of the earlier run
    :param after: latencies of the later run
    """
    if not before or not after:
        return []
    first, second = ({(item.fabric, item.test): item.median for item in side} for side in (before, after))
    found = []
    for key in dict.fromkeys((*first, *second)):
        medians = [side.get(key) for side in (first, second)]
        known = [median for median in medians if median is not None]
        if len(known) == len(medians) and max(known) <= _MOST_TIMES * min(known):
            continue
        words = ["not verified" if median is None else f"median {median:.1f} us" for median in medians]
        found += _compare_texts("collectives", f"{key[0]} {name_latency(key[1])}", *words)
    return found


def _compare_words(node: str, what: str, before: str, after: str) -> list[RunDifference]:
    """Return the difference between the states of a fact in two runs, such as ``seen`` or an error. The list is empty
    if both states are ``seen``. The same error in both runs is a difference, too, and is marked as not compared,
    because the data may differ.

    :param node: name of the node, or of another subject
    :param what: name of the fact
    :param before: state in the earlier run: ``seen``, ``not looked at``, or the error that prevented reading
    :param after: state in the later run
    """
    if before == after and before not in ("seen", "not looked at"):
        return [
            RunDifference(node, what, cut_text(before, _MOST_TEXT), f"{cut_text(after, _MOST_TEXT)} (not compared)")
        ]
    return _compare_texts(node, what, before, after)


def _format_path(path: typing.Iterable[str]) -> str:
    return " ".join(word for word in path if word)


def _format_data(data: typing.Any) -> str:
    if data is None or data == [] or data == {}:
        return "none"
    if isinstance(data, list):
        return ", ".join(sorted(map(_format_data, data)))
    return json.dumps(data, sort_keys=True) if isinstance(data, (dict, bool)) else str(data)


def _group_by_subject(record: typing.Optional[Record]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for item in record.judged if record else ():
        found.setdefault(f"{item.finding.check} on {item.finding.subject}", []).append(_describe_status(item))
    # a check may say two things of one subject
    return {key: ", ".join(sorted(states)) for key, states in found.items()}


def _describe_status(item: Judged) -> str:
    return f"{item.finding.status}, waived" if label_finding(item) == "waived" else item.finding.status


def _compare_texts(node: str, what: str, before: str, after: str) -> list[RunDifference]:
    return (
        []
        if before == after
        else [
            RunDifference(node, cut_text(what, _MOST_WHAT), cut_text(before, _MOST_TEXT), cut_text(after, _MOST_TEXT))
        ]
    )
