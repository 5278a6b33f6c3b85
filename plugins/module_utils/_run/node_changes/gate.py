# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts that decide whether nodes may be taken down, and pauses the health checks that would remediate these
nodes meanwhile. The decision itself is in _analysis/controllers/drains/gate.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import typing

from ..._analysis.controllers.drains.control_plane import list_control_plane
from ..._analysis.controllers.drains.gate import list_pauses, list_roll_blockers
from ..._analysis.controllers.drains.operator_turns import OperatorTurns
from ..._analysis.controllers.drains.room import GateInputs
from ..._analysis.controllers.machine_configs.pools import find_machine_pool
from ..._analysis.disruption.machine_config import roll_of
from ..._model.base.errors import RdmaError
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import MachinePool, PoolPlan
from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.scope import Scope
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import group_of
from ..._observe.kubernetes.machines import read_machine_pools
from ..._observe.process.process import read_boot_id
from ..._parse.kubernetes import core, etcd
from ..._parse.kubernetes.cluster_version import parse_progress
from ..cluster.removal.reboots import find_ended_by_reboot
from .drain import NodeFailed
from .drain_blockers import read_drain_blockers
from .health_checks import HealthChecks
from .read_turns import TurnReader

#: reasons, pods and nodes that a message names
_NAMED = 5

Say = typing.Callable[[str], None]


def read_gate_inputs(
    cluster: Cluster,
    nodes: tuple[ClusterNode, ...],
    members: bool = True,
    checks: typing.Optional[HealthChecks] = None,
    turns: typing.Optional[TurnReader] = None,
) -> GateInputs:
    """Return the facts that decide whether nodes may be taken down: the members of etcd, the health checks, an upgrade
    of OpenShift in progress, and the nodes that other operators take down. A list that the API server refuses is
    recorded in the result with its error.

    :param nodes: nodes of the cluster
    :param members: whether to read the members of etcd on the nodes of the control plane
    :param checks: reader of the health checks; None: they are not read
    :param turns: reader of the nodes that other operators take down; None: they are not read
    :raises ApiError: the API server cannot be reached
    :raises ResourceError: an object is malformed
    """
    unread: dict[str, str] = {}
    pods: list[typing.Any] = []
    # asked of each: on another node no pod counts, and its kubelet may show any number of them, of any size
    seats = list_control_plane(nodes) if members else ()
    for place, seat in itertools.product(etcd.PODS, seats):
        try:
            pods += cluster.list("Pod", *place, fields=f"spec.nodeName={seat.name}").items
        except ApiError as error:
            if not error.absent:
                unread["etcd"] = error.no_answer
    found, blind = checks.read(nodes) if checks is not None else ((), {})
    upgrade = ""
    try:
        if cluster.serves(group_of("ClusterVersion")):
            upgrade = "; ".join(filter(None, map(parse_progress, cluster.list("ClusterVersion").items)))
    except ApiError as error:
        if error.status == 0:
            raise
        if not error.absent:
            unread["ClusterVersion"] = error.no_answer
    taken, hidden = turns.read(nodes) if turns is not None else (typing.cast(tuple[OperatorTurns, ...], ()), {})
    return GateInputs(
        nodes,
        {**unread, **blind, **hidden},
        tuple(map(etcd.parse_member, pods)),
        found,
        upgrade,
        taken,
        read_boot_id(),
        machines_elsewhere=checks.find_elsewhere(nodes) if checks is not None else frozenset(),
    )


def add_machine_pools(cluster: Cluster, stand: GateInputs) -> GateInputs:
    """Return the facts that decide whether nodes may be taken down, with the MachineConfigPools of the cluster, or with
    the reason why they could not be read. A cluster without the machine config operator has none.

    :raises ApiError: the API server cannot be reached
    """
    try:
        # an API server may refuse to list a kind that it does not serve
        pools = read_machine_pools(cluster) if cluster.serves(group_of("MachineConfigPool")) else ()
        return dataclasses.replace(stand, machine_pools=pools)
    except ApiError as error:
        if error.status == 0:
            raise
        why = {} if error.absent else {"MachineConfigPool": error.no_answer}
        return dataclasses.replace(stand, unread={**stand.unread, **why})


class PoolGate:
    """A check whether MachineConfigPools may roll now, which also pauses the health checks of their nodes meanwhile.

    :param cluster: client of the API server
    :param intent: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the run
    :param say: function that shows a line of progress to the user
    :param scope: objects of the intent, for pools that roll because of a removal. Running pods of jobs of other users
        then count too. None: the pools roll because of a change
    """

    def __init__(
        self,
        cluster: Cluster,
        intent: ClusterIntent,
        inventory: typing.Iterable[str],
        say: Say,
        scope: typing.Optional[Scope] = None,
    ) -> None:
        self._scope = scope
        self._cluster, self._intent, self._inventory, self._say = cluster, intent, tuple(inventory), say
        self._checks, self._turns = HealthChecks(cluster, say), TurnReader(cluster, intent.operator_namespace)

    def ask(self, pools: typing.Sequence[MachinePool], rolling: typing.Container[str], rendered: bool = False) -> None:
        """Verify that MachineConfigPools may roll now: the state of the cluster permits it, and their drains and
        reboots end no pod that the intent protects. Call this immediately before they do.

        :param pools: MachineConfigPools of the cluster
        :param rolling: names of the pools that are about to roll
        :param rendered: whether the pools have their new configuration, so that only the pods of those nodes count that
            do not have it; otherwise the pods of all nodes of the pools count
        :raises NodeFailed: the pools must not roll now; the message has the reasons
        :raises ApiError: the API server cannot be reached
        :raises ResourceError: an object is malformed
        """
        nodes, rolls = self._plan_pool_rolls(pools, rolling)
        stand = (
            read_gate_inputs(self._cluster, nodes, checks=self._checks, turns=self._turns) if rolls else GateInputs()
        )
        why = list_roll_blockers(rolls, (), stand, pools, self._intent, self._inventory)
        if not why and rolls:
            why = tuple(self._list_pod_blockers(nodes, pools, rolling, rendered))
        if why:
            names = ", ".join(roll.name for roll in rolls)
            raise NodeFailed(
                f"MachineConfigPool {names} must not roll now: {' '.join(why[:5]).rstrip('.')}",
                "Correct this, then rerun",
            )

    def _list_pod_blockers(
        self,
        nodes: typing.Iterable[ClusterNode],
        pools: typing.Sequence[MachinePool],
        rolling: typing.Container[str],
        rendered: bool,
    ) -> typing.Iterator[str]:
        """Yield the pods that the roll would end although the intent protects them, and the PodDisruptionBudgets that
        would hold it, each with the remedy. The machine config operator does not ask for any of them.

        :raises ApiError: the API server cannot be reached
        :raises ResourceError: an object is malformed
        """
        placed = ((node, find_machine_pool(node, pools)) for node in nodes)
        going = sorted(
            node.name
            for node, pool in placed
            if pool is not None
            and pool.name in rolling
            and not (rendered and node.machine_config and node.machine_config == pool.wanted_config)
        )
        try:
            yield from itertools.islice(
                read_drain_blockers(self._cluster, dict.fromkeys(going, True), self._intent), _NAMED
            )
            if self._scope is not None and going:
                ended = find_ended_by_reboot(self._cluster, going, self._scope, self._intent.drain)
                if ended:
                    yield (
                        f"these pods would end, and no controller starts them again:"
                        f" {join_first([str(pod) for pod in ended], _NAMED)}. Wait until they end, or delete them:"
                        " kubectl delete pod NAME -n NAMESPACE."
                    )
        except ApiError as error:
            if error.status == 0:
                raise
            yield f"the pods of {join_first(going, _NAMED)} could not be read: {error.text}."

    @contextlib.contextmanager
    def pause_pool_health_checks(
        self, pools: typing.Sequence[MachinePool], rolling: typing.Container[str]
    ) -> typing.Iterator[None]:
        """Return a context manager in which the health checks of the nodes of rolling pools are paused. At its end, and
        after an error, they are resumed, except those of a node that is not Ready again, or that its pool still has to
        reboot. These stay paused, and the next run resumes them.

        :param pools: MachineConfigPools of the cluster
        :param rolling: names of the pools that roll
        :raises ApiError: a health check cannot be paused or resumed
        :raises LeaseLost: another run changes the cluster. It resumes the health checks
        """
        nodes, rolls = self._plan_pool_rolls(pools, rolling)
        stand = read_gate_inputs(self._cluster, nodes, False, self._checks) if rolls else GateInputs()
        try:
            self._checks.pause(list_pauses(rolls, stand, self._intent), self._intent.intent_name)
            yield
        except LeaseLost:
            raise
        except Exception:
            self._resume_after_error(rolling)
            raise
        self._checks.release_all(rolling)

    def _resume_after_error(self, rolling: typing.Container[str]) -> None:
        """Resume the health checks after an error. An error of this is shown to the user, and does not replace the
        first one.

        :param rolling: names of the pools that roll
        :raises LeaseLost: another run changes the cluster
        """
        try:
            self._checks.release_all(rolling)
        except LeaseLost:
            raise
        except RdmaError as error:
            self._say(
                "it is unknown whether every health check that this run paused was resumed, and the next run resumes"
                f" them: {error.seen}"
            )

    def _list_nodes(self) -> tuple[ClusterNode, ...]:
        return tuple(map(core.parse_node, self._cluster.list("Node").items))

    def _plan_pool_rolls(
        self, pools: typing.Sequence[MachinePool], rolling: typing.Container[str]
    ) -> tuple[tuple[ClusterNode, ...], tuple[PoolPlan, ...]]:
        nodes = self._list_nodes()
        found = (
            (pool, tuple(node.name for node in nodes if find_machine_pool(node, pools) == pool))
            for pool in pools
            if pool.name in rolling
        )
        return nodes, tuple(roll_of(pool, members) for pool, members in found if members)
