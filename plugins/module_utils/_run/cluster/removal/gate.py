# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse the removal of objects, before anything is removed, if the intent does not permit what it does to nodes, or if
a job that uses the intent has not ended.
"""

from __future__ import annotations

import itertools
import typing

from ...._analysis.controllers.drains.drain import OF_DAEMON_SETS
from ...._model.base.errors import RdmaError
from ...._model.base.text import join_first
from ...._model.intent.intent import ClusterIntent, Disruption
from ...._model.kubernetes.owner_marks import explain_owner
from ...._model.kubernetes.scope import Scope
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource, group_of
from ...._observe.kubernetes.machines import find_labelled
from ...._observe.kubernetes.removal.removable_objects import Removal
from ...._parse.kubernetes.foreign import is_copied
from ...._parse.kubernetes.resource import mapping_at, name_of
from ...node_changes.drain_blockers import read_drain_blockers
from ...node_changes.machine_configs.paused_pools import (
    PoolView,
    explain_unrecorded,
    find_paused_pools,
    find_rebooting_nodes,
)
from .driver import explain_driver_links, find_driver_nodes, find_driver_users, list_driver_upgrades
from .jobs import find_unended, list_own
from .known_uses import KnownUses
from .reboots import find_ended_by_reboot
from .roll import list_of_operator, list_removal_blockers

#: kinds whose removal may drain or reboot nodes
_OF_NODES = ("SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "NicClusterPolicy")
_DISRUPTIONS: tuple[Disruption, ...] = typing.get_args(Disruption)
#: objects that a message names
_NAMED = 10


def refuse_removal(
    cluster: Cluster,
    removal: Removal,
    permitted: Disruption,
    intent: typing.Optional[ClusterIntent] = None,
    uses: typing.Optional[KnownUses] = None,
) -> None:
    """Raise an error if a removal would drain or reboot nodes beyond the permitted disruption, take nodes down that
    must not go down now, take the driver of NICs that running pods use, or end a job.

    MachineConfigs and KubeletConfigs of the intent count too, because a teardown removes them as well.
    MachineConfigPools of the intent that an interrupted run left paused count because a teardown unpauses them.

    :param removal: the objects to remove
    :param permitted: worst permitted effect on a node: none, drain or reboot
    :param intent: settings of the intent that all fabrics share; None: one node at a time may go down
    :param uses: uses of NICs by the nodes themselves; None if they are not known
    :raises RdmaError: the removal is refused; the message names the objects
    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    found: dict[Disruption, list[str]] = {"drain": [], "reboot": []}
    for kind in _OF_NODES:
        own = list_own(cluster, kind, removal)
        for item in own if kind == "NicClusterPolicy" else list_of_operator(cluster, own, intent):
            effect = _find_effect(kind, item)
            if effect != "none":
                found[effect].append(_describe(kind, item))
    labelled, view = find_labelled(cluster), PoolView(cluster)
    paused = _find_own_paused_pools(cluster, view, _scope_of(removal))
    if labelled.unread and _exceeds("reboot", permitted):
        raise RdmaError(
            f"rdma_cluster.disruption is '{permitted}', and MachineConfigs, whose removal reboots nodes, could not be"
            f" read: {join_first(labelled.unread, _NAMED)}. No object of the cluster was removed",
            "Correct the error in this message, then run the teardown again",
        )
    configs = [
        item for item in labelled.objects if not is_copied(item) and not _explain_other(view, item, removal.scope)
    ]
    found["reboot"] += [_describe(str(item["kind"]), item) for item in configs]
    beyond = [effect for effect in _DISRUPTIONS if _exceeds(effect, permitted) and found.get(effect)]
    said = [f"removing {join_first(found[effect], _NAMED)} may {effect} nodes" for effect in beyond]
    members = find_rebooting_nodes(view, configs) if "reboot" in beyond else ()
    said += [f"the nodes of their MachineConfigPools are {join_first(members, _NAMED)}"] if members else []
    if paused and _exceeds("reboot", permitted):
        said += [
            f"unpausing MachineConfigPool {pool}, which an interrupted run left paused, reboots the nodes"
            f" {join_first(nodes, _NAMED)}"
            for pool, nodes in paused.items()
        ]
        beyond.append("reboot")
    if said:
        raise RdmaError(
            f"rdma_cluster.disruption is '{permitted}', and {'; '.join(said)}. No object of the cluster was removed",
            f"If you permit this, set rdma_cluster.disruption: {beyond[-1]}, then run the teardown again",
        )
    unended = find_unended(cluster, removal)
    if unended:
        raise RdmaError(
            f"Jobs that use networks or resources of this intent have not ended: {join_first(unended, _NAMED)}. No"
            " object of the cluster was removed",
            "Wait until they end, or delete them: kubectl delete KIND NAME -n NAMESPACE. Then run the teardown again",
        )
    selector = dict(_scope_of(removal).selector)
    known = intent or ClusterIntent(node_selector=selector, disruption=permitted)
    rebooting = {*find_rebooting_nodes(view, configs), *(node for nodes in paused.values() for node in nodes)}
    _refuse_reboots(cluster, rebooting, _scope_of(removal), known)
    _refuse_nodes(cluster, removal, known, uses or KnownUses())


def _refuse_reboots(cluster: Cluster, nodes: typing.Collection[str], scope: Scope, intent: ClusterIntent) -> None:
    """Raise an error if the machine config operator, which reboots nodes for the removal, would end pods on these nodes
    for good, or would wait for a PodDisruptionBudget.

    :param nodes: names of the nodes that reboot; empty for none
    :param scope: objects of the intent, whose own pods do not count
    :param intent: settings of the intent that all fabrics share
    :raises RdmaError: the removal is refused
    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    ended = find_ended_by_reboot(cluster, nodes, scope, intent.drain) if nodes else []
    named = f"The removal reboots {join_first(sorted(nodes), _NAMED)}, whose MachineConfigPools change."
    if ended:
        raise RdmaError(
            f"{named} These pods there would end, and no controller starts them again:"
            f" {join_first([str(pod) for pod in ended], _NAMED)}. No object of the cluster was removed",
            "Wait until these pods end, or delete them: kubectl delete pod NAME -n NAMESPACE. Then run the teardown"
            " again",
        )
    held = list(itertools.islice(read_drain_blockers(cluster, dict.fromkeys(sorted(nodes), True), intent), _NAMED))
    if held:
        raise RdmaError(
            f"{named} Pods there prevent the drain: {' '.join(held).rstrip('.')}. No object of the cluster was removed",
            "Correct this, then run the teardown again",
        )


def _refuse_nodes(cluster: Cluster, removal: Removal, intent: ClusterIntent, uses: KnownUses) -> None:
    """Raise an error if pods or nodes use the driver of NICs that the removal takes, if nodes that go down for the
    removal must not go down now, or if nodes would lose NICs that they use themselves or virtual functions that running
    pods use.

    :param removal: the objects to remove
    :param intent: settings of the intent that all fabrics share
    :param uses: uses of NICs by the nodes themselves
    :raises RdmaError: the removal is refused
    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    policies, pools, nic_policies = (list_own(cluster, kind, removal) for kind in _OF_NODES)
    users = find_driver_users(cluster, nic_policies, _scope_of(removal))
    if users:
        raise RdmaError(
            f"Removing {join_first([_describe('NicClusterPolicy', item) for item in nic_policies], _NAMED)} removes the"
            " driver of the NICs from all nodes with the driver at the same time and without a drain. Running pods"
            f" there would lose their network devices: {join_first([str(pod) for pod in users], _NAMED)}. No object of"
            " the cluster was removed",
            f"Wait until these pods end, or evict them: kubectl drain NODE --ignore-daemonsets. {OF_DAEMON_SETS} Then"
            " run the teardown again, and let pods return afterwards: kubectl uncordon NODE",
        )
    driven = find_driver_nodes(cluster, nic_policies, _scope_of(removal))
    upgrades = list_driver_upgrades(cluster, driven)
    if upgrades:
        raise RdmaError(
            "The driver of nodes must not be removed during its upgrade:"
            f" {' '.join(upgrades[:5]).rstrip('.')}. No object of the cluster was removed",
            "Correct this, then run the teardown again",
        )
    links = list(explain_driver_links(driven, uses))
    if links:
        raise RdmaError(
            "NVIDIA's network operator would remove the driver of NICs that nodes use themselves, from all nodes at the"
            f" same time: {' '.join(links[:5]).rstrip('.')}. No object of the cluster was removed",
            "Correct this, then run the teardown again",
        )
    blockers = list_removal_blockers(cluster, policies, pools, intent, uses)
    if blockers:
        raise RdmaError(
            "The SR-IOV network operator would change nodes that must not be changed now:"
            f" {' '.join(blockers[:5]).rstrip('.')}. No object of the cluster was removed",
            "Correct this, then run the teardown again",
        )


def _explain_other(view: PoolView, item: Resource, scope: typing.Optional[Scope]) -> str:
    """Return why a removal leaves a MachineConfig or KubeletConfig: it is not of the intent, or a GitOps tool owns it
    and would create it again. Return an empty text if the removal takes it.

    :param view: reader of the MachineConfigPools
    :param scope: objects of the intent; None: the selector of the removal alone decides, so that only a GitOps tool is
        a reason
    """
    owner = explain_owner(item)
    if scope is None or owner:
        return owner
    return scope.explain_foreign(str(item["kind"]), item) or explain_unrecorded(view, item, scope)


def _scope_of(removal: Removal) -> Scope:
    return removal.scope if removal.scope is not None else Scope()


def _find_own_paused_pools(cluster: Cluster, view: PoolView, scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return the nodes of each paused MachineConfigPool of the intent that reboot as soon as the teardown unpauses it,
    by name of the pool. Pools without such nodes are left out.

    :param view: reader of the MachineConfigPools
    :param scope: objects of the intent
    :raises ApiError: the API server refuses a list, or cannot be reached
    """
    if not cluster.serves(group_of("MachineConfigPool")):
        return {}
    return {pool: nodes for pool, nodes in find_paused_pools(view, scope).own.items() if nodes}


def _find_effect(kind: str, item: Resource) -> Disruption:
    """Return the worst effect of the removal of an object on nodes. Of an object in a list that is too large, only the
    metadata is known, and then the worst effect of its kind is returned.

    :param kind: SriovNetworkNodePolicy, SriovNetworkPoolConfig or NicClusterPolicy
    """
    spec, known = mapping_at(item, "spec"), "spec" in item
    if kind == "SriovNetworkNodePolicy":
        return "drain"
    if kind == "SriovNetworkPoolConfig":
        return "reboot" if spec.get("rdmaMode") or not known else "none"
    return "drain" if spec.get("ofedDriver") or not known else "none"


def _exceeds(effect: Disruption, permitted: Disruption) -> bool:
    return _DISRUPTIONS.index(effect) > _DISRUPTIONS.index(permitted)


def _describe(kind: str, item: Resource) -> str:
    namespace = str(mapping_at(item, "metadata").get("namespace") or "")
    return f"{kind} {namespace + '/' if namespace else ''}{name_of(item)}"
