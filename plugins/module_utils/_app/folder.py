# SPDX-License-Identifier: GPL-3.0-or-later

"""Read from the fact folder of a run the data that the pure layers take as input: the facts of a stage, the
observations of nodes, and the intent.
"""

from __future__ import annotations

import typing

from .._check.host.rolled_nodes import list_nodes_to_reread
from .._check.platform.returned import list_missing_parts
from .._check.sources import (
    CHANGES,
    NEIGHBOURS,
    SOURCES,
    Joined,
    OfCluster,
    OfListedNodes,
    OfNodes,
    OfNodesThatHaveIt,
    OfRun,
    Source,
    list_shared_sources,
    needs_lldp,
)
from .._model.base.load import load
from .._model.base.load_error import LoadError
from .._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, SeenSubnet
from .._model.intent.intent import Intent
from .._model.kubernetes.disruption import DisruptionPlan
from .._model.kubernetes.host import HOST_KINDS, Roll
from .._model.node.hca import NodeHcas, ObservedHcas
from .._model.run.facts import FactCount, RunStart
from .._plan.node_answers import NodeAnswers, collect_answers
from .._store.facts import FactFolder
from .._store.files import FileError

Data = dict[str, typing.Any]
#: kinds of objects for which nodes are changed, drained or rebooted
DISTURBING = ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "NicClusterPolicy", *HOST_KINDS)


def read_facts(
    folder: FactFolder, stage: str, parts: typing.Optional[typing.Iterable[str]] = None
) -> tuple[Data, tuple[FactCount, ...]]:
    """Return the facts by which a stage is judged, as plain data by field, and the number of facts of each kind. A fact
    that does not exist is left out.

    :param parts: fields of the stage's facts to read; None for all fields. Reading all facts of a large cluster takes
        long
    :raises FileError: a file cannot be read
    """
    start, data, counts = folder.start(), {}, []
    for field, source in SOURCES[stage].items():
        if parts is not None and field not in parts:
            continue
        there, value = _read_source(folder, start, source)
        if there:
            data[field] = value
        if isinstance(source, OfNodesThatHaveIt) and value:
            counts.append(FactCount(source.kind, len(value), 0))
        elif isinstance(source, OfNodes) or (isinstance(source, OfListedNodes) and value):
            failed = sum(item["error"] is not None for item in value.values())
            counts.append(FactCount(source.kind, len(value) - failed, failed))
        elif isinstance(source, OfCluster) and all(item.kind != source.kind for item in counts):
            counts.append(FactCount(source.kind, int(there), int(not there)))
    return data, tuple(counts)


def list_changes(folder: FactFolder, stage: str) -> list[str]:
    """Return the changes that the stage made, or would make in check mode, as lines of text without duplicates. Return
    no changes if the plan of drains and reboots of stage network was refused outside of check mode. In check mode, that
    plan is left out if all objects that would drain or reboot nodes were refused.

    :raises FileError: a file cannot be read
    """
    start, lines = folder.start(), []
    disruption = folder.value("disruption") if stage == "network" else None
    if disruption is not None and not disruption["allowed"] and not start.check_mode:
        # the plan was refused, and all that came after it was a dry run
        return []
    untouched = stage == "network" and start.check_mode and _are_all_refused(folder.value("applied"))
    for source in CHANGES.get(stage, ()):
        if untouched and isinstance(source, OfCluster) and source.kind == "disruption":
            continue
        there, value = _read_source(folder, start, source)
        if there and isinstance(source, OfNodes):
            # a node whose answer has another form is told of by the judgement
            lines += [
                line
                for item in value.values()
                for line in item["value"] or ()
                if isinstance(item["value"], list) and isinstance(line, str)
            ]
        elif there:
            lines += value
    return list(dict.fromkeys(lines))


def _are_all_refused(applied: typing.Any) -> bool:
    """Return whether each object that would disturb nodes was refused or is unchanged, and at least one was refused. In
    this case nothing of the plan of drains and reboots is carried out.

    :param applied: fact with the objects that stage network applied; None if there is no such fact
    """
    items = applied.get("applied") if isinstance(applied, dict) else None
    actions = {
        item.get("action")
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and item.get("kind") in DISTURBING
    }
    return "refused" in actions and actions <= {"refused", "unchanged"}


def list_unread_kinds(folder: FactFolder, stage: str, intent: typing.Callable[[], Intent]) -> list[str]:
    """Return the kinds of node facts that a stage needs and that this run has not yet read on every node. If the stage
    needs LLDP neighbors, also store a fact with the nodes that must listen for them.

    :param intent: function without arguments that returns the intent; called only for stages that need it
    :raises FileError: the folder cannot be written
    """
    nodes = folder.start().nodes
    kinds = [source.kind for source in list_shared_sources(stage) if not _all_seen(folder, source, nodes)]
    if needs_lldp(stage, intent, len(nodes)) and not all(folder.has(NEIGHBOURS.kind, node) for node in nodes):
        folder.write(NEIGHBOURS.listed_by, value=list(nodes))
        kinds.append(NEIGHBOURS.kind)
    return kinds


def list_rolled_nodes_to_read(folder: FactFolder, stage: str, intent: typing.Callable[[], Intent]) -> list[str]:
    """Return the nodes whose platform and tuning a stage must read again because a MachineConfigPool rolled them in
    this run. Store them as a fact too. Only stage host has such nodes.

    :param intent: function without arguments that returns the intent; called only for stages that need it
    :raises FileError: the folder cannot be read or written
    """
    source = SOURCES[stage].get("tunings_after_roll")
    if not isinstance(source, OfListedNodes):
        return []
    start = folder.start()
    _there, plan = _read_source(folder, start, SOURCES[stage]["plan"])
    _there, rolls = _read_source(folder, start, SOURCES[stage]["rolls"])
    try:
        done = load(tuple[Roll, ...], rolls or [], "rolls")
        planned = load(DisruptionPlan, plan, "plan") if plan is not None else None
    except LoadError:
        # the judgement of the stage names the damaged fact
        return []
    nodes = list(list_nodes_to_reread(intent(), start.nodes, planned, done))
    if nodes:
        folder.write(source.listed_by, value=nodes)
    return nodes


def find_missing_since(
    folder: FactFolder, node: str, moment: str, hcas: typing.Any
) -> typing.Optional[tuple[str, ...]]:
    """Return the HCAs and links that a node had at an earlier moment of the run and lacks now, each as text. Return
    None if the HCAs of either moment are unknown.

    :param moment: suffix of the earlier fact, which is stored as ``hcas_<moment>``
    :param hcas: current value of the fact ``hcas``; None if it is unknown
    :raises FileError: the earlier fact cannot be read
    :raises LoadError: one of the facts does not have the form that this version expects
    """
    before = folder.read(f"hcas_{moment}", node)
    if before is None or before.error is not None or hcas is None:
        return None
    return list_missing_parts(load(NodeHcas, before.value, before.kind), load(NodeHcas, hcas, "hcas"))


def read_answers(folder: FactFolder) -> NodeAnswers:
    """Return the HCAs and the subnet managers of the nodes, as far as the run has these facts.

    :param folder: fact folder of the run
    :raises FileError: this run has read the HCAs of no node, so a plan would be empty
    :raises LoadError: a fact does not have the form that this version expects
    """
    nodes = folder.start().nodes
    if nodes and not any(folder.has("hcas", node) for node in nodes):
        seen = "this run has not read the HCAs of any node, so no plan can be made"
        raise FileError(seen, "Add the nodes to --limit, or rerun without --limit")
    hcas = load(dict[str, ObservedHcas], folder.of_nodes("hcas", nodes), "hcas")
    return collect_answers(
        hcas,
        _collect_subnets(folder),
        lambda: load(dict[str, ObservedTopologies], folder.of_nodes("topologies", nodes), "topologies"),
    )


def read_subnets(folder: FactFolder) -> typing.Mapping[str, tuple[SeenSubnet, ...]]:
    """Return the subnet managers that the ports of each node see, by node. Unlike :func:`read_answers`, this does not
    read the HCAs, because their facts are about a hundred times as large.

    :raises LoadError: a fact does not have the form that this version expects
    """
    return collect_answers({}, _collect_subnets(folder)).subnets


def _collect_subnets(folder: FactFolder) -> dict[str, ObservedSubnets]:
    seen: dict[str, ObservedSubnets] = load(
        dict[str, ObservedSubnets], folder.of_nodes("subnets", folder.start().nodes), "subnets"
    )
    return seen


def read_value(folder: FactFolder, kind: str, key: str) -> typing.Any:
    """Return the value of one key in a fact about the cluster, which must exist.

    :param kind: kind of the fact
    :param key: key in the value of the fact
    :raises FileError: the fact or the key does not exist in this run
    """
    value = _read_mapping(folder, kind)
    if key not in value:
        raise FileError(f"this run has no fact {kind}", "Run the task that writes this fact before this task")
    return value[key]


def _all_seen(folder: FactFolder, source: OfNodes, nodes: typing.Iterable[str]) -> bool:
    if source.listed_by:
        return folder.has(source.listed_by)
    return all(folder.has(source.kind, node) for node in nodes)


def _read_source(folder: FactFolder, start: RunStart, source: Source) -> tuple[bool, typing.Any]:
    """Return whether the data of a source exist, and these data.

    :param start: start record of the run
    :param source: description of one or more facts of a kind, or of a field of the run's start record
    :raises FileError: a fact cannot be read
    """
    if isinstance(source, OfRun):
        return True, getattr(start, source.field)
    if isinstance(source, OfNodes):
        return True, _read_of_nodes(folder, start.nodes, source)
    if isinstance(source, OfListedNodes):
        chosen = _list_names(folder, source.listed_by) or ()
        return True, folder.of_nodes(source.kind, [node for node in start.nodes if node in chosen])
    if isinstance(source, OfNodesThatHaveIt):
        excess = folder.find_excess(source.kind, start.nodes)
        for why in () if source.no_hcas else excess.values():
            raise FileError(why, "Check the origin of the folder")
        folder.refused += excess.values()
        answers = {node: folder.read(source.kind, node) for node in start.nodes if node not in excess}
        found = {node: fact.value for node, fact in answers.items() if fact is not None and fact.value is not None}
        return True, {**found, **{node: {"hcas": []} for node in excess}}
    if isinstance(source, Joined):
        values = [_read_mapping(folder, kind) for kind in source.kinds]
        there = not source.whole or all(source.key in value for value in values)
        return there, [item for value in values for item in value.get(source.key, ())]
    value = _read_mapping(folder, source.kind)
    return source.key in value, value.get(source.key)


def _read_mapping(folder: FactFolder, kind: str) -> Data:
    """Return the value of a fact about the cluster, or an empty mapping if the fact does not exist. The type is checked
    because users edit and assemble these files by hand.

    :raises FileError: the value is not a mapping
    """
    value = folder.value(kind)
    if value is not None and not isinstance(value, dict):
        raise FileError(
            f"{folder.path(kind)}: the value is not a mapping", "Remove the file, then rerun the stage that writes it"
        )
    return value or {}


def _list_names(folder: FactFolder, kind: str) -> typing.Any:
    """Return the value of a fact about the cluster that names nodes: a list of names, or a mapping with the names as
    keys. Return None if the fact does not exist.

    :raises FileError: the value is neither a list nor a mapping
    """
    value = folder.value(kind)
    if value is not None and not isinstance(value, (list, dict)):
        raise FileError(
            f"{folder.path(kind)}: the value is neither a list nor a mapping of nodes",
            "Remove the file, then rerun the stage that writes it",
        )
    return value


def _read_of_nodes(folder: FactFolder, nodes: typing.Iterable[str], source: OfNodes) -> dict[str, Data]:
    chosen = _list_names(folder, source.listed_by) if source.listed_by else None
    asked = [node for node in nodes if chosen is None or node in chosen]
    answers = folder.of_nodes(source.kind, asked)
    if source.key:
        answers = {node: _extract_node_part(item, source) for node, item in answers.items()}
    return {node: answers.get(node, {"value": [], "error": None}) for node in nodes}


def _extract_node_part(item: Data, source: OfNodes) -> Data:
    """Return the value of one key in a node's fact, as a dictionary with ``value`` and ``error`` like the fact itself.
    If the fact does not have this key, ``error`` says so. The error of the fact is passed on.

    :param item: the fact, as a dictionary with ``value`` and ``error``
    :param source: kind of the fact and name of the key
    """
    if item["error"] is not None:
        return item
    if not isinstance(item["value"], dict) or source.key not in item["value"]:
        return {"value": None, "error": f"the fact {source.kind} has no '{source.key}'"}
    return {"value": item["value"][source.key], "error": None}
