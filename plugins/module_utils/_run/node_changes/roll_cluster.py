# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the state of the cluster for a roll of nodes, again before each step."""

from __future__ import annotations

import functools
import typing

from ..._model.base.errors import ParseError
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import Budget, ClusterPod
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.node_roll import Mark
from ..._model.kubernetes.objects import ClusterNode
from ..._observe.kubernetes import machines
from ..._observe.kubernetes.client import Cluster as Api
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core
from ..._parse.kubernetes.resource import mapping_at, name_of
from ..._parse.kubernetes.roll_mark import parse_mark
from ..._parse.operators import machine_config
from ..._plan.rolls.roll_cluster import RollCluster
from .drained_pods import find_nodes, keep_budgets, keep_pods, may_leave
from .gate import read_gate_inputs
from .health_checks import HealthChecks
from .machine_configs.read_ulimits import read_lost_ulimits
from .read_turns import TurnReader

_T = typing.TypeVar("_T")


class RollClusterReader:
    """A reader of the cluster state on which the steps of a roll depend.

    :param cluster: client of the API server
    :param checks: client of the health checks
    :param hosts: desired MachineConfigs and KubeletConfigs, as they are rendered
    """

    def __init__(self, cluster: Api, checks: HealthChecks, hosts: typing.Sequence[Resource]) -> None:
        self._cluster, self._checks, self._hosts = cluster, checks, tuple(hosts)
        self._turns = TurnReader(cluster)

    def begin(self, intent: ClusterIntent) -> None:
        """Prepare the reader for a roll. The namespace of the SR-IOV operator is determined once for each roll.

        :param intent: settings of the intent that all fabrics share
        """
        self._turns = TurnReader(self._cluster, intent.operator_namespace)

    def read(self, pods: bool = True, members: bool = False) -> RollCluster:
        """Return the state of the cluster that decides which nodes may be taken down. A kind that cannot be read is
        recorded in ``unread`` of the result. An upgrade of OpenShift is always read, because it may begin during a
        roll.

        :param pods: whether to read also the pods, the PodDisruptionBudgets, the MachineConfigs, the health checks and
            the members of etcd
        :param members: whether to read also the members of etcd, if ``pods`` is False
        :raises ApiError: the nodes cannot be listed
        :raises ResourceError: an object is malformed
        """
        resources = self._cluster.list("Node").items
        marks: dict[str, typing.Optional[Mark]] = {}
        for resource in resources:
            try:
                noted = parse_mark(resource)
            except ParseError:
                marks[name_of(resource)] = None
                continue
            if noted is not None:
                marks[name_of(resource)] = noted
        unread: dict[str, str] = {}
        names = {
            name_of(resource)
            for resource in resources
            if f"{machine_config.DAEMON}currentConfig" in mapping_at(resource, "metadata", "annotations")
        }

        def items(kind: str, *place: str) -> tuple[Resource, ...]:
            try:
                return self._cluster.list(kind, *place).items
            except ApiError as error:
                if not error.absent:
                    unread[kind] = error.no_answer
                return ()

        def kept(kind: str, keep: typing.Callable[[], tuple[_T, ...]]) -> tuple[_T, ...]:
            """Return the objects of a kind that tenants create, reduced to the required fields. Return an empty tuple
            if they cannot be read.

            :param keep: function without arguments that reads and reduces the objects
            """
            try:
                return keep()
            except ApiError as error:
                unread[kind] = error.no_answer
                return ()

        def host_config(wanted: Resource) -> HostConfig:
            """Return the comparison of a desired MachineConfig or KubeletConfig with the object in the cluster. If that
            object cannot be read, it is treated as absent, and the reason is recorded. The recorded reason keeps the
            BMCs from resetting nodes of MachineConfigPools.

            :param wanted: the rendered object
            """
            try:
                return machines.read_host_config(self._cluster, wanted)
            except ApiError as error:
                unread[str(wanted["kind"])] = error.no_answer
                return machine_config.host_config(wanted)

        nodes = tuple(map(core.parse_node, resources))
        stand = read_gate_inputs(self._cluster, nodes, pods or members, self._checks if pods else None, self._turns)
        pools = tuple(map(machine_config.machine_pool, items("MachineConfigPool")))
        configs = tuple(map(host_config, self._hosts)) if pools and pods else ()
        kubelet = any(config.kind == "KubeletConfig" and not config.there for config in configs)
        budgets = (
            kept("PodDisruptionBudget", lambda: keep_budgets(self._cluster.pages("PodDisruptionBudget")))
            if pods
            else ()
        )
        return RollCluster(
            nodes=nodes,
            marks=marks,
            pods=kept("Pod", lambda: self._keep_pods(budgets, [node.name for node in nodes])) if pods else (),
            budgets=budgets,
            machine_pools=pools,
            unread={**stand.unread, **unread},
            configs=configs,
            kubelets=(
                *(machines.select_others(items("KubeletConfig"), self._hosts) if kubelet else ()),
                *read_lost_ulimits(self._cluster, configs, pools, self._hosts),
            ),
            machines=frozenset(names),
            etcd=stand.etcd,
            health_checks=stand.health_checks,
            machines_elsewhere=stand.machines_elsewhere,
            upgrade=stand.upgrade,
            own_boot=stand.own_boot,
            turns=stand.turns,
        )

    def begin_reset(self, node: ClusterNode, ordered: bool = False) -> str:
        """Record the state of the operators on a node. Call this immediately before the node is reset, so that ``read``
        afterwards shows whether the operators are done with the node. Return the reason why the node must not be reset,
        because this state cannot be read. Return an empty text if it may be reset.

        :param node: node that is about to be reset
        :param ordered: whether the reset was ordered already
        :raises ApiError: the API server cannot be reached
        """
        return self._turns.begin_reset(node, ordered)

    def _keep_pods(self, budgets: typing.Sequence[Budget], nodes: typing.Sequence[str]) -> tuple[ClusterPod, ...]:
        """Return the pods that a drain of these nodes would evict. A pod that is too large to be read, which a tenant
        can create, is returned with its node, so that it blocks only the roll of that node.

        :param budgets: PodDisruptionBudgets of the cluster
        :param nodes: names of the nodes
        :raises ApiError: the pods cannot be listed, or there are too many
        """
        pods = self._cluster.pages("Pod", only=may_leave, partial=True)
        return keep_pods(pods, budgets, find_nodes=functools.partial(find_nodes, self._cluster, nodes))
