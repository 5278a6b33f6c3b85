# SPDX-License-Identifier: GPL-3.0-or-later

"""Determine which nodes the collection's Tuned selects, and which profiles of other Tuneds it would replace there.

A node has one TuneD profile. TuneD rolls back the settings of a profile when the operator selects another one. Among
all Tuneds that select a node, the lowest priority number wins. [cluster-node-tuning-operator
pkg/operator/profilecalculator.go, README.md]
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.host import ROLE_LABEL
from ..._model.kubernetes.objects import ClusterNode
from ..._model.node.node_tuning import NAMESPACE, TUNED, NodeProfile, Recommendation
from .label_selectors import labels_match
from .machine_configs.pools import find_machine_pool

#: Tuneds of the operator itself: its default, and the one in which it collects the profiles of all Tuneds
#: [cluster-node-tuning-operator pkg/apis/tuned/v1/tuned_types.go]
_OF_OPERATOR = ("default", "rendered")
#: profiles that Tuned ``default`` recommends; the profile of the collection includes them
_DEFAULTS = ("openshift", "openshift-node", "openshift-control-plane")


def find_selected_nodes(
    nodes: typing.Iterable[ClusterNode],
    selector: typing.Mapping[str, str],
    role: str,
    pools: typing.Sequence[MachinePool],
) -> tuple[ClusterNode, ...]:
    """Return all nodes that the collection's Tuned selects, whether they belong to the inventory or not.

    :param nodes: nodes of the cluster
    :param selector: labels of the participating nodes; empty: the nodes of the MachineConfigPool of ``role``
    :param pools: MachineConfigPools of the cluster
    """
    if selector:
        return tuple(node for node in nodes if selector.items() <= node.labels.items())
    return tuple(node for node in nodes if _has_configs(node, {ROLE_LABEL: role}, pools))


def explain_replaced(
    nodes: typing.Iterable[ClusterNode],
    profiles: typing.Mapping[str, NodeProfile],
    recommendations: typing.Sequence[Recommendation],
    pools: typing.Sequence[MachinePool],
    priority: int,
    run_nodes: typing.Collection[str],
) -> tuple[str, str]:
    """Return why the collection must not create its Tuned, and the remedy: another Tuned tunes a node, and the
    collection's Tuned would take the node from it. Both texts are empty if there is no such node.

    A Tuned with a lower priority number than the collection's keeps its nodes, so it is no reason.

    :param nodes: nodes that the collection's Tuned selects
    :param profiles: Profile of each node
    :param recommendations: entries of all Tuneds
    :param pools: MachineConfigPools of the cluster
    :param priority: priority number of the collection's Tuned
    :param run_nodes: names of the nodes of the run
    """
    others = [item for item in recommendations if item.tuned not in (*_OF_OPERATOR, TUNED)]
    taken: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        profile = profiles.get(node.name)
        found = _find_replaced(node, profile.wanted if profile is not None else "", others, pools, priority)
        if found is not None:
            taken.setdefault(found, []).append(node.name)
    for (owner, profile_name), names in taken.items():
        outside = [name for name in names if name not in run_nodes]
        why = (
            f"{owner} tunes {join_first(names, 4)} with profile {profile_name}; a node can have only one profile, so"
            f" Tuned {TUNED} (priority {priority}) would replace it and TuneD would roll back its settings"
        )
        remedy = (
            "Write the settings that the filter linerate.rdma.tuning_settings returns into that profile, and set"
            " rdma_cluster.tuning.set: false."
        )
        if outside:
            why += f"; not in the inventory: {join_first(outside, 4)}"
            remedy += " Or set labels in rdma_cluster.node_selector that only the nodes of the inventory have."
        return why, f"{remedy} Then run stage tuning again. To see the profiles: oc -n {NAMESPACE} get tuned,profile."
    return "", ""


def name_recommending(
    node: ClusterNode, profile: str, entries: typing.Iterable[Recommendation], pools: typing.Sequence[MachinePool]
) -> str:
    """Return the Tuned by which a node has a profile, with its priority. Two Tuneds may recommend profiles of one name:
    the entry that selects the node decides, and the lowest priority number wins. If no entry is known to select the
    node, return all Tuneds that recommend the profile; empty if no Tuned does.

    :param profile: profile that the operator selected for the node
    :param entries: entries of all Tuneds
    :param pools: MachineConfigPools of the cluster
    """
    mine = sorted((item for item in entries if item.profile == profile), key=lambda item: (item.priority, item.tuned))
    matching = [item for item in mine if _is_recommended(node, item, pools)]
    best = [item for item in matching if item.priority == matching[0].priority]
    return " or ".join(dict.fromkeys(f"Tuned {item.tuned}, priority {item.priority}" for item in best or mine))


def _find_replaced(
    node: ClusterNode,
    wanted: str,
    others: typing.Sequence[Recommendation],
    pools: typing.Sequence[MachinePool],
    priority: int,
) -> typing.Optional[tuple[str, str]]:
    """Return what the collection's Tuned replaces on a node, as two texts: another Tuned with its priority, and the
    name of its profile. Return None if the collection's Tuned replaces no other.

    The profile that the operator selected for the node decides. If that is the profile of the collection, or it is
    unknown, the entries of the other Tuneds decide: the one that would win without the collection's Tuned.

    :param wanted: profile that the operator selected for the node; empty if it is not known
    :param others: entries of the Tuneds of other owners
    :param pools: MachineConfigPools of the cluster
    :param priority: priority number of the collection's Tuned
    """
    if wanted in ("", TUNED):
        matching = [item for item in others if item.priority >= priority and _is_recommended(node, item, pools)]
        best = min(matching, key=lambda item: (item.priority, item.tuned), default=None)
        return None if best is None else (f"Tuned {best.tuned} (priority {best.priority})", best.profile)
    mine = [item for item in others if item.profile == wanted]
    if not mine:
        return None if wanted in _DEFAULTS else ("another Tuned", wanted)
    # a profile can be recommended several times: the entry that selects the node tells its priority
    matching = [item for item in mine if _is_recommended(node, item, pools)]
    best = min(matching or mine, key=lambda item: item.priority)
    return None if best.priority < priority else (f"Tuned {best.tuned} (priority {best.priority})", wanted)


def _is_recommended(node: ClusterNode, item: Recommendation, pools: typing.Sequence[MachinePool]) -> bool:
    """Return whether an entry of a Tuned selects a node by the labels of the node, or by its MachineConfigPool.
    Conditions on labels of pods are not examined.
    """
    return any(
        all(label in node.labels and value in (None, node.labels[label]) for label, value in match.items())
        for match in item.matches
    ) or bool(item.pool_labels and _has_configs(node, item.pool_labels, pools))


def _has_configs(node: ClusterNode, labels: typing.Mapping[str, str], pools: typing.Sequence[MachinePool]) -> bool:
    """Return whether the MachineConfigPool of a node selects MachineConfigs with these labels."""
    pool = find_machine_pool(node, pools)
    return pool is not None and labels_match(pool.config_selector, labels)
