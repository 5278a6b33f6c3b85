# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the MachineConfigPools that interrupted runs left paused, and which of them belong to an intent. If such a pool
is unpaused, its nodes reboot. Find the nodes that reboot if MachineConfigs are removed, and MachineConfigs that other
intents may need.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ...._analysis.controllers.machine_configs.pools import find_machine_pool
from ...._analysis.controllers.machine_configs.rules import find_rendered_configs, is_current
from ...._model.base.marks import DEFAULT_INTENT, find_users
from ...._model.base.text import join_first
from ...._model.kubernetes.disruption import MachinePool
from ...._model.kubernetes.objects import ClusterNode
from ...._model.kubernetes.scope import Scope
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource, group_of
from ...._parse.kubernetes.core import parse_node
from ...._parse.kubernetes.resource import labels_of, mapping_at
from ...._parse.operators.machine_config import PAUSED_ANNOTATION, host_config, machine_pool

#: value of the annotation that earlier releases wrote
_UNNAMED = "true"
#: nodes that a message names
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class PausedPools:
    """The MachineConfigPools that interrupted runs left paused.

    :ivar own: names of the nodes that reboot if a pool of the intent is unpaused, by name of the pool; empty if its
        nodes already have its configuration
    :ivar others: reason why a pool does not belong to the intent, by name of the pool
    """

    own: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    others: dict[str, str] = dataclasses.field(default_factory=dict)


class PoolView:
    """The MachineConfigPools and Nodes of a cluster at one time. Each kind is listed once, at its first use. So a user
    without the right to list a kind is refused only if the kind is needed.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @functools.cached_property
    def served(self) -> bool:
        """Return whether the API server serves the kind MachineConfigPool.

        A list of the kind would not show this: without the right to list it, the answer of the API server is the same
        whether it serves the kind or not.

        :raises ApiError: the API server refuses, or cannot be reached
        """
        return self._cluster.serves(group_of("MachineConfigPool"))

    @functools.cached_property
    def items(self) -> tuple[Resource, ...]:
        """Return the MachineConfigPools as the API server sends them.

        :raises ApiError: the API server refuses, or cannot be reached
        """
        return tuple(self._cluster.list("MachineConfigPool").items)

    @functools.cached_property
    def pools(self) -> tuple[MachinePool, ...]:
        """Return the MachineConfigPools, parsed, in the order of ``items``.

        :raises ApiError: the API server refuses, or cannot be reached
        :raises ResourceError: a pool is malformed
        """
        return tuple(map(machine_pool, self.items))

    @functools.cached_property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """Return the Nodes, parsed.

        :raises ApiError: the API server refuses, or cannot be reached
        :raises ResourceError: a Node is malformed
        """
        return tuple(map(parse_node, self._cluster.list("Node").items))


def find_paused_pools(view: PoolView, scope: Scope) -> PausedPools:
    """Return the MachineConfigPools that interrupted runs left paused. The annotation of a pool names the intent of the
    run. If it names no intent, or the default one, the pool belongs to each intent that selects a node of the pool.

    :param view: reader of the MachineConfigPools
    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object is malformed
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
    """Return the names of the nodes whose MachineConfigPool uses at least one of the objects, so that a change of the
    objects reboots them.

    :param view: reader of the MachineConfigPools
    :param objects: MachineConfigs and KubeletConfigs as they are in the cluster
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    return tuple(node.name for node in _list_rebooting(view, objects))


def explain_unrecorded(view: PoolView, live: Resource, scope: Scope) -> str:
    """Return why another intent may need a MachineConfig or KubeletConfig although no intent has recorded that it needs
    the object. Return an empty text if an intent has recorded it, or if this intent selects all nodes whose
    MachineConfigPools use the object.

    Such objects come from earlier releases, which did not record the intents.

    :param view: reader of the MachineConfigPools
    :param live: the object as it is in the cluster
    :param scope: objects of the intent
    :raises ApiError: the API server refuses, or cannot be reached
    :raises ResourceError: an object is malformed
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
    """Return a function that gets an existing MachineConfig or KubeletConfig and returns why another intent may need
    it, as ``explain_unrecorded`` does; an empty text if no intent may.

    :param scope: objects of the intent; None: the function always returns an empty text
    """
    view = PoolView(cluster)
    return lambda live: explain_unrecorded(view, live, scope) if scope is not None else ""


def _list_rebooting(view: PoolView, objects: typing.Sequence[Resource]) -> tuple[ClusterNode, ...]:
    """Return the nodes whose MachineConfigPool uses at least one of the objects.

    :param view: reader of the MachineConfigPools
    :param objects: MachineConfigs and KubeletConfigs as they are in the cluster
    """
    if not objects:
        return ()
    configs = [host_config(item, item) for item in objects]
    pools = view.pools
    rolling = [pool for pool in pools if any(find_rendered_configs(pool, config, pools) for config in configs)]
    return tuple(node for node in view.nodes if find_machine_pool(node, pools) in rolling) if rolling else ()


def explain_other_pause(intent: str, members: tuple[ClusterNode, ...], scope: Scope) -> str:
    """Return why a MachineConfigPool or a health check that a run paused does not belong to the intent. Return an empty
    text if it does.

    :param intent: name of the intent that the pause is marked with; empty or ``true`` if an earlier release paused it
    :param members: nodes of the pool, or nodes that the health check watches
    :param scope: objects of the intent
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
