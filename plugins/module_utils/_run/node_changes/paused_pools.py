# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the MachineConfigPools that interrupted runs left paused, and which of them belong to an intent. If such a pool
is unpaused, its nodes reboot. Find the nodes that reboot if MachineConfigs are removed, and MachineConfigs that other
intents may need.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._analysis.controllers.machine_config_operator import find_rendered_configs, is_current
from ..._analysis.controllers.sriov_operator import find_machine_pool
from ..._model.base.marks import DEFAULT_INTENT, find_users
from ..._model.base.text import join_first
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.scope import Scope
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource, group_of
from ..._parse.kubernetes.core import parse_node
from ..._parse.kubernetes.resource import labels_of, mapping_at
from ..._parse.operators.machine_config import PAUSED_ANNOTATION, host_config, machine_pool

#: value of the annotation that earlier releases wrote
_UNNAMED = "true"
#: nodes that a message names
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class PausedPools:
    """The MachineConfigPools that interrupted runs left paused.

    :ivar own: names of those of the intent, each with the nodes that reboot if it is unpaused; empty if it has no other
        configuration than its nodes
    :ivar others: names of all other ones, each with the reason
    """

    own: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    others: dict[str, str] = dataclasses.field(default_factory=dict)


class PoolView:
    """The MachineConfigPools and Nodes of a cluster at one time. Each kind is listed once, when it is first needed, so
    that a user without the right to list it is refused only if it is needed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @functools.cached_property
    def served(self) -> bool:
        """Return whether the API server has the kind MachineConfigPool. Without the right to list a kind, the API
        server answers the same whether it has the kind or not, so a failed list does not tell.
        """
        return self._cluster.serves(group_of("MachineConfigPool"))

    @functools.cached_property
    def items(self) -> tuple[Resource, ...]:
        """The MachineConfigPools as they are in the cluster.

        :raises ApiError: the API server refuses, or cannot be reached
        """
        return tuple(self._cluster.list("MachineConfigPool").items)

    @functools.cached_property
    def pools(self) -> tuple[MachinePool, ...]:
        """The MachineConfigPools, parsed, in the order of ``items``.

        :raises ApiError: the API server refuses, or cannot be reached
        :raises ResourceError: a pool has an unexpected form
        """
        return tuple(map(machine_pool, self.items))

    @functools.cached_property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """The Nodes, parsed.

        :raises ApiError: the API server refuses, or cannot be reached
        :raises ResourceError: a Node has an unexpected form
        """
        return tuple(map(parse_node, self._cluster.list("Node").items))


def find_paused_pools(view: PoolView, scope: Scope) -> PausedPools:
    """Return the MachineConfigPools that interrupted runs left paused. The annotation of a pool names the intent of the
    run. If it names none, or the default, the pool belongs to each intent that selects a node of it.

    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    found = PausedPools()
    for item, pool in ((item, pool) for item, pool in zip(view.items, view.pools) if pool.paused_by_us):
        members = tuple(node for node in view.nodes if find_machine_pool(node, view.pools) == pool)
        intent = str(mapping_at(item, "metadata", "annotations").get(PAUSED_ANNOTATION))
        why = explain_other_pause(intent, members, scope)
        if why:
            found.others[pool.name] = why
        else:
            found.own[pool.name] = () if is_current(pool) else tuple(node.name for node in members)
    return found


def find_rebooting_nodes(view: PoolView, objects: typing.Sequence[Resource]) -> tuple[str, ...]:
    """Return the names of the nodes whose MachineConfigPools take at least one of the objects.

    :param objects: MachineConfigs and KubeletConfigs as they are in the cluster
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    return tuple(node.name for node in _list_rebooting(view, objects))


def explain_unrecorded(view: PoolView, live: Resource, scope: Scope) -> str:
    """Return why another intent may need a MachineConfig or KubeletConfig although no intent has recorded that it needs
    it, which earlier releases did not do. Return an empty text if an intent has recorded it, or if the intent selects
    all nodes whose MachineConfigPools take the object.

    :param live: the object as it is in the cluster
    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    if find_users(labels_of(live)) and (not scope.doubt or scope.is_proven(live)):
        return ""
    others = [node.name for node in _list_rebooting(view, [live]) if not scope.selector.items() <= node.labels.items()]
    if not others:
        return ""
    unrecorded = "an earlier release wrote it and did not record which intents need it"
    why = f"it has {scope.doubt}" if scope.doubt else unrecorded
    return f"{why}, and its MachineConfigPool has nodes that this intent does not select: {join_first(others, _NAMED)}"


def explain_by(cluster: Cluster, scope: typing.Optional[Scope]) -> typing.Callable[[Resource], str]:
    """Return the function that explains why another intent may need an existing MachineConfig or KubeletConfig.

    :param scope: objects of the intent; None: no other intent is known
    """
    view = PoolView(cluster)
    return lambda live: explain_unrecorded(view, live, scope) if scope is not None else ""


def _list_rebooting(view: PoolView, objects: typing.Sequence[Resource]) -> tuple[ClusterNode, ...]:
    """Return the nodes whose MachineConfigPools take at least one of the objects."""
    if not objects:
        return ()
    configs = [host_config(item, item) for item in objects]
    pools = view.pools
    rolling = [pool for pool in pools if any(find_rendered_configs(pool, config, pools) for config in configs)]
    return tuple(node for node in view.nodes if find_machine_pool(node, pools) in rolling) if rolling else ()


def explain_other_pause(intent: str, members: tuple[ClusterNode, ...], scope: Scope) -> str:
    """Return why a pool or a health check that a run paused does not belong to the intent; empty if it does.

    :param intent: name of the intent that the pause has; empty or ``true`` if it is of an earlier release
    :param members: nodes of the pool, or those that the health check watches
    """
    intent = intent or _UNNAMED
    unproven = (_UNNAMED, DEFAULT_INTENT)
    if intent == scope.intent and intent not in unproven and not scope.doubt:
        return ""
    if intent not in (_UNNAMED, scope.intent):
        return f"a run of the intent '{intent}' paused it, and this intent is '{scope.intent}'"
    if any(node.name in scope.nodes or scope.selector.items() <= node.labels.items() for node in members):
        return ""
    return "an interrupted run paused it, and this intent selects no node of it"
