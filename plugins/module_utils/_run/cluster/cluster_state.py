# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the cluster from a watch: which kinds are watched, and how each change of an object becomes a part of
the state. Nothing is judged here, and nothing waits.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.readiness.state import ClusterState, NodeHistory, Target
from ..._observe.kubernetes.answers import Choice
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.pod_state import state_of_pod
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators import machine_config, nvidia_network_operator, sriov_operator
from ..node_changes.drained_pods import bound_budgets
from .watch import REQUIRED, KindUpdate

#: what is watched, and where in ClusterState it goes
_FIELDS = {
    "Node": "nodes",
    "SriovNetworkNodeState": "states",
    "SriovNetworkNodePolicy": "policies",
    "NetworkAttachmentDefinition": "attachments",
    # these only explain why a node waits: where they cannot be read the wait goes on
    "SriovNetworkPoolConfig": "pools",
    "MachineConfigPool": "machine_pools",
    "PodDisruptionBudget": "budgets",
    "Pod": "daemons",
}
KINDS = tuple(_FIELDS)
#: where no fabric has virtual functions
_PLAIN_KINDS = ("Node", "NetworkAttachmentDefinition")
#: of the pods, only the config daemon's
SELECTORS = {"Pod": "app=sriov-network-config-daemon"}
#: of the operator's namespace
IN_NAMESPACE = ("SriovNetworkNodeState", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "Pod")


def list_kinds(targets: typing.Iterable[Target]) -> tuple[str, ...]:
    """Return the kinds of objects that must be watched for the targets. A target is a fabric with its nodes and the
    objects of the cluster that report its state.

    :param targets: fabrics with their nodes and objects
    """
    targets = tuple(targets)
    reporting = {what.partition(" ")[0] for target in targets for what in (*target.objects, target.pool) if what}
    plain = bool(targets) and not any(target.functions for target in targets)
    return (*(_PLAIN_KINDS if plain else KINDS), *sorted(reporting))


def only_of(targets: typing.Iterable[Target]) -> typing.Mapping[str, Choice]:
    """Return a filter for each kind of objects that tenants and kubelets create too, in any number and size, by kind. A
    filter gets an object and returns whether to keep it: the NetworkAttachmentDefinitions of the targets, and pods that
    are not mirror pods.

    :param targets: fabrics with their nodes and objects
    """
    names = {target.attachment for target in targets}
    kind = "NetworkAttachmentDefinition"
    return {kind: lambda item: _compute_object_key(kind, item) in names, "Pod": is_made_pod}


_PARSERS: dict[str, typing.Callable[[Resource], typing.Any]] = {
    "Node": kubernetes.parse_node,
    "SriovNetworkNodeState": sriov_operator.node_state,
    "SriovNetworkNodePolicy": sriov_operator.parse_policy,
    "NetworkAttachmentDefinition": nvidia_network_operator.parse_attachment,
    "SriovNetworkPoolConfig": sriov_operator.node_pool,
    "MachineConfigPool": machine_config.machine_pool,
    "PodDisruptionBudget": kubernetes.parse_budget,
    "Pod": lambda item: (name_of(item), state_of_pod(item)),
}


def take(observed: ClusterState, change: KindUpdate) -> ClusterState:
    """Return the state of the cluster after a change of the objects of one kind.

    :param observed: state of the cluster before the change
    :param change: changed objects of the kind, or the error of its watch
    :raises ResourceError: an object is malformed
    """
    kind = change.kind
    if change.action == "error":
        return _mark_unreadable_kind(observed, kind, change.error)
    # a kind that is read again is neither unread nor stale
    changed: dict[str, typing.Any] = {
        name: {other: reason for other, reason in getattr(observed, name).items() if other != kind}
        for name in ("unread", "blind", "stale")
    }
    after = {} if change.action == "replace" else dict(_get_known_state(observed, kind))
    news = {}
    for item in change.items:
        key = _compute_object_key(kind, item)
        if change.action != "drop":
            news[key] = after[key] = _PARSERS.get(kind, nvidia_network_operator.parse_reported)(item)
        # the pod of a node may be gone after its successor has come
        elif kind != "Pod" or after.get(key, ("",))[0] == name_of(item):
            after.pop(key, None)
    if kind == "PodDisruptionBudget":
        # a tenant can write any number of them
        after = dict(bound_budgets(after))
    changed[_FIELDS.get(kind, "reports")] = after if kind in _FIELDS else {**observed.reports, kind: after}
    return dataclasses.replace(observed, **changed, histories=_collect_histories(observed, kind, news))


def merge_kind_updates(news: typing.Iterable[KindUpdate]) -> typing.Iterator[KindUpdate]:
    """Yield the changes in their order. Consecutive updates of one kind are merged into one change, because applying
    each change copies the state of the kind. Two updates of the same object stay separate, because the number of
    changes of each node matters.

    :param news: changes in the order in which they arrived
    """
    waiting: dict[str, Resource] = {}
    kind = ""
    for change in news:
        keys = [_compute_object_key(change.kind, item) for item in change.items] if change.action == "put" else []
        if kind and (change.action != "put" or change.kind != kind or not waiting.keys().isdisjoint(keys)):
            yield KindUpdate(kind, "put", tuple(waiting.values()))
            kind, waiting = "", {}
        if change.action == "put":
            kind = change.kind
            waiting.update(zip(keys, change.items))
        else:
            yield change
    if kind:
        yield KindUpdate(kind, "put", tuple(waiting.values()))


def _get_known_state(observed: ClusterState, kind: str) -> typing.Mapping[str, typing.Any]:
    """Return the parsed objects of a kind that the state contains, by name; empty if it contains none.

    :param observed: state of the cluster
    :param kind: kind of the objects
    """
    known = getattr(observed, _FIELDS[kind]) if kind in _FIELDS else observed.reports.get(kind)
    return known or {}


def _mark_unreadable_kind(observed: ClusterState, kind: str, error: str) -> ClusterState:
    """Return the state of the cluster with an error of one kind. If objects of the kind were read before, they stay
    valid but are marked as stale, because the watch retries by itself.

    If no object was read, an error of a required kind makes the kind unread, and an error of any other kind is only
    recorded.

    :param observed: state of the cluster before the error
    :param kind: kind that could not be read
    :param error: reason as text
    """
    if kind in observed.unread and kind in REQUIRED:
        return dataclasses.replace(observed, unread={**observed.unread, kind: error})
    if kind not in REQUIRED and not _get_known_state(observed, kind):
        unread = {other: reason for other, reason in observed.unread.items() if other != kind}
        return dataclasses.replace(observed, unread=unread, blind={**observed.blind, kind: error})
    return dataclasses.replace(observed, stale={**observed.stale, kind: error})


def _compute_object_key(kind: str, item: Resource) -> str:
    if kind == "Pod":
        return kubernetes.parse_pod(item).node
    name = name_of(item)
    if kind in ("NetworkAttachmentDefinition", "PodDisruptionBudget") or kind.endswith(".nv-ipam.nvidia.com"):
        return f"{item['metadata'].get('namespace')}/{name}"
    return name


def _collect_histories(
    observed: ClusterState, kind: str, news: typing.Mapping[str, typing.Any]
) -> typing.Mapping[str, NodeHistory]:
    """Return the histories of the nodes, by name, updated with changes of one kind. A history counts how often a node
    has booted and how often it became NotReady since the generation of its SriovNetworkNodeState changed.

    :param observed: state of the cluster before the changes
    :param kind: kind of the changed objects. Only Node and SriovNetworkNodeState change a history
    :param news: changed objects of the kind, parsed, by name
    """
    if kind not in ("Node", "SriovNetworkNodeState"):
        return observed.histories
    histories = dict(observed.histories)
    for name, item in news.items():
        old = histories.get(name, NodeHistory())
        if kind == "SriovNetworkNodeState":
            histories[name] = (
                old
                if old.generation == item.generation
                else dataclasses.replace(old, generation=item.generation, boots=0, losses=0)
            )
        else:
            booted = bool(old.boot_id and item.boot_id and old.boot_id != item.boot_id)
            lost = old.ready and not item.ready and not booted
            boots, losses = old.boots + booted, old.losses + lost
            histories[name] = NodeHistory(old.generation, item.boot_id or old.boot_id, item.ready, boots, losses)
    return histories
