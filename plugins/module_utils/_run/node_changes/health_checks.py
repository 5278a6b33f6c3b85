# SPDX-License-Identifier: GPL-3.0-or-later

"""Pauses health checks (such as MachineHealthChecks) that would remediate a node while a roll has taken it down, by the
documented means of each kind, and resumes them when the node is Ready again.

The pause is marked as one of the collection, with the intent of the run. If a run is killed, the next run or the
teardown of its intent ends its pause. A pause by another user remains.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.drains.health_checks import (
    BY_GROUP,
    CAPI_MACHINE,
    find_machines_elsewhere,
    of_machines,
    of_nodes,
)
from ..._analysis.controllers.machine_configs.pools import find_machine_pool, pool_may_roll
from ..._model.base.marks import DEFAULT_INTENT, MANAGER
from ..._model.kubernetes.control_plane import HealthCheck, Machine
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.objects import ClusterNode
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import KINDS, Kind, Resource, group_of, version_of
from ..._observe.kubernetes.machines import read_machine_pools
from ..._parse.kubernetes import core
from ..._parse.kubernetes import health_check as parse
from ..._parse.kubernetes.resource import mapping_at, texts_of
from ..._parse.kubernetes.roll_mark import is_in_roll

#: writes that somebody else may come before, one after the other
_TRIES = 5
#: API group of MachineConfigPools
_POOLS = "machineconfiguration.openshift.io"


class HealthChecks:
    """A client that reads, pauses and resumes the health checks of one cluster."""

    def __init__(self, cluster: Cluster, say: typing.Callable[[str], None]) -> None:
        self._cluster, self._say = cluster, say

    def read(self, nodes: typing.Sequence[ClusterNode]) -> tuple[tuple[HealthCheck, ...], dict[str, str]]:
        """Read all health checks, each with the nodes that it watches. Return them, and the reason for each kind that
        could not be read, by kind.

        A kind that the API server does not serve has no objects. Whether it is served is determined first, because a
        user without rights would otherwise get Forbidden.

        :param nodes: nodes of the cluster
        :raises ResourceError: an object is malformed
        """
        found: list[HealthCheck] = []
        unread: dict[str, str] = {}
        for group, (kind, selected) in BY_GROUP.items():
            try:
                items = self._cluster.list(self._find_served(kind)).items if self._cluster.serves(group) else ()
            except ApiError as error:
                if not error.absent:
                    unread[kind] = error.no_answer
                continue
            if kind == "NodeHealthCheck":
                found += [of_nodes(parse.node_health_check(item), nodes) for item in items]
            elif items:
                machines = self._list_machines(selected)
                found += [of_machines(parse.machine_health_check(item, kind), machines) for item in items]
        return tuple(found), unread

    def find_elsewhere(self, nodes: typing.Sequence[ClusterNode]) -> frozenset[str]:
        """Return the names of the nodes whose Machines of Cluster API are in another cluster, or cannot be read.

        :raises ApiError: the API server cannot be reached
        """
        if not any(node.machine for node in nodes):
            return frozenset()
        try:
            served = self._cluster.serves(group_of(CAPI_MACHINE))
        except ApiError as error:
            if error.status == 0:
                raise
            return find_machines_elsewhere(nodes, None)
        return find_machines_elsewhere(nodes, self._list_machines(CAPI_MACHINE) if served else ())

    def _list_machines(self, kind: str) -> typing.Optional[tuple[Machine, ...]]:
        try:
            return tuple(map(parse.parse_machine, self._cluster.list(self._find_served(kind)).items))
        except ApiError:
            # then each MachineHealthCheck may be about each node
            return None

    def _find_served(self, kind: str) -> Kind:
        """Return a kind, for a request to the API server, in a version that the API server serves. Cluster API serves
        only v1beta2 from release 1.16 on, and only v1beta1 up to release 1.10. The fields that the collection reads and
        writes are the same in both. Kinds of other groups have one version. [kubernetes-sigs/cluster-api issue 11920,
        api/core/v1beta2]

        :param kind: name of the kind; the API server serves its group
        :raises ApiError: the versions of the group cannot be read
        :raises ResourceError: the answer of the API server is malformed
        """
        group = group_of(kind)
        if group != group_of(CAPI_MACHINE):
            return kind
        versions = parse.list_versions(self._cluster.read(f"/apis/{group}"))
        if not versions or version_of(kind) in [f"{group}/{version}" for version in versions]:
            return kind
        _base, plural, namespaced = KINDS[kind]
        return f"/apis/{group}/{versions[0]}", plural, namespaced

    def pause(self, checks: typing.Iterable[HealthCheck], intent: str) -> list[HealthCheck]:
        """Pause those health checks that are not paused yet, and return them.

        :param checks: health checks, of any state
        :param intent: name of the intent of the run, which marks the pause; empty for the default name
        :raises ApiError: a change is refused
        """
        mine = [check for check in checks if not check.paused]
        for check in mine:
            self._write_pause_state(check, intent or DEFAULT_INTENT)
            self._say(f"{check}: paused until its nodes are back")
        return mine

    def release_all(self, rolling: typing.Container[str] = ()) -> list[HealthCheck]:
        """Resume the health checks that a run of the collection has paused, and return the resumed ones. A check stays
        paused while it watches a node that a roll has not released, or that a roll has taken down and that is not Ready
        again.

        :param rolling: names of MachineConfigPools that this run has let roll. A check stays paused as well while it
            watches a node that one of them still has to reboot
        :raises ApiError: the API server cannot be reached, or refuses a change
        """
        checks, resources = self.list_paused()
        return self.release(checks, self._list_nodes_away(resources, rolling)) if checks else []

    def _list_nodes_away(self, resources: typing.Iterable[Resource], rolling: typing.Container[str]) -> list[str]:
        """Return the names of the nodes that are not back from a roll: nodes that a roll of the collection has not
        released, nodes that are NotReady while their MachineConfigPool rolls, and nodes that a rolling pool still has
        to reboot. A node of the first kind counts even if it is Ready, because it stays Ready for some time after its
        reset begins.

        A roll of the collection is recognized by a label that no kubelet may write. A roll of a MachineConfigPool is
        recognized by the status of the pool, because the kubelet can write the annotations of its Node.

        :param resources: Nodes of the cluster, as the API server sends them
        :param rolling: names of the MachineConfigPools whose Ready nodes count too, until the pool is done with them
        :raises ApiError: the pools cannot be read
        """
        nodes = [(item, core.parse_node(item)) for item in resources]
        away = [node.name for item, node in nodes if is_in_roll(item)]
        rest = [node for _item, node in nodes if node.name not in away and (rolling or not node.ready)]
        if not rest or not self._cluster.serves(_POOLS):
            return away
        pools = read_machine_pools(self._cluster)
        return away + [node.name for node in rest if _is_pool_rolling(node, pools, rolling)]

    def list_paused(self) -> tuple[list[HealthCheck], tuple[Resource, ...]]:
        """Return the health checks that the collection has paused, and the current Nodes as the API server sends them.
        Kinds of health checks that cannot be read are left out.

        :raises ApiError: the API server cannot be reached
        """
        resources = self._cluster.list("Node").items
        checks, _unread = self.read(tuple(map(core.parse_node, resources)))
        return [check for check in checks if check.ours], resources

    def release(self, checks: typing.Iterable[HealthCheck], away: typing.Iterable[str]) -> list[HealthCheck]:
        """Resume those of the health checks that the collection has paused, and return the resumed ones.

        :param checks: health checks, of any state
        :param away: names of nodes that are not back yet. A check that watches one of them stays paused, because it
            would remediate the node at once
        :raises ApiError: a change is refused
        """
        names, done = tuple(away), typing.cast(list[HealthCheck], [])
        for check in (check for check in checks if check.ours):
            gone = [name for name in names if check.watches(name)]
            if gone:
                self._say(
                    f"{check}: stays paused because nodes are not back: {', '.join(gone[:3])}; the run that brings"
                    " them back resumes the health check"
                )
                continue
            self._write_pause_state(check, "")
            self._say(f"{check}: resumed")
            done.append(check)
        return done

    def _write_pause_state(self, check: HealthCheck, intent: str) -> None:
        for left in reversed(range(_TRIES)):
            try:
                kind, change = self._find_served(check.kind), self._build_pause_patch(check, intent)
                self._cluster.patch(kind, check.namespace, check.name, change)
                return
            except ApiError as error:
                if error.absent and not intent:
                    # it is gone, and its pause with it
                    return
                if error.reason != "Conflict" or not left:
                    raise

    def _build_pause_patch(self, check: HealthCheck, intent: str) -> dict[str, typing.Any]:
        """Return the merge patch that pauses or resumes a health check. The patch for a NodeHealthCheck replaces a
        whole list of pause requests, so it contains the resourceVersion that was read, and fails if the list has
        changed since.

        :param check: health check as it was read
        :param intent: name of the intent that pauses the health check; empty to resume it
        :raises ApiError: the NodeHealthCheck cannot be read
        """
        if check.kind != "NodeHealthCheck":
            return {"metadata": {"annotations": {parse.PAUSED: f"{MANAGER}/{intent}" if intent else None}}}
        live = self._cluster.get(check.kind, "", check.name)
        others = [
            text
            for text in texts_of(mapping_at(live, "spec"), "pauseRequests", str(check))
            if not text.startswith(parse.PAUSE_REQUEST)
        ]
        wanted = [*others, f"{parse.PAUSE_REQUEST}{parse.BY_INTENT}{intent}"] if intent else others
        return {
            "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
            "spec": {"pauseRequests": wanted or None},
        }


def _is_pool_rolling(node: ClusterNode, pools: typing.Iterable[MachinePool], rolling: typing.Container[str]) -> bool:
    """Return whether the MachineConfigPool of a node rolls to another configuration, and may have taken the node down
    or still has to. Return False for a node without a pool.

    :param pools: MachineConfigPools of the cluster
    :param rolling: names of the pools whose Ready nodes count too
    """
    pool = find_machine_pool(node, pools)
    if pool is None or (node.ready and pool.name not in rolling):
        return False
    return pool.wanted_config != pool.current_config and pool_may_roll(pool, node)
