# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the state of the cluster for a roll of nodes, again before each step."""

from __future__ import annotations

import functools
import typing

from ..._analysis.controllers.operator_turns import find_taken_nodes
from ..._model.base.errors import ParseError
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import Budget, ClusterPod
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.mappings import find_mapping
from ..._model.kubernetes.node_roll import Mark
from ..._observe.kubernetes import machines
from ..._observe.kubernetes.client import Cluster as Api
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.operators.sriov_operator import find_namespace
from ..._observe.process.process import read_boot_id
from ..._parse.kubernetes import core
from ..._parse.kubernetes.resource import ResourceError, mapping_at, name_of, read_namespace
from ..._parse.kubernetes.roll_mark import parse_mark
from ..._parse.operators import machine_config, sriov_operator
from ..._parse.operators.nic_configuration_operator import parse_turn
from ..._plan.node_roll import RollCluster
from .drained_pods import find_nodes, keep_budgets, keep_pods, may_leave
from .gate import read_gate_inputs
from .health_checks import HealthChecks
from .read_ulimits import read_lost_ulimits

_T = typing.TypeVar("_T")
#: object by which the SR-IOV operator drains a node
_STATE = "SriovNetworkNodeState"


class RollClusterReader:
    """A reader of the cluster state that decides the steps of a roll.

    :param hosts: desired MachineConfigs and KubeletConfigs
    """

    def __init__(self, cluster: Api, checks: HealthChecks, hosts: typing.Sequence[Resource]) -> None:
        self._cluster, self._checks, self._hosts = cluster, checks, tuple(hosts)
        self._named: typing.Optional[str] = None
        #: namespace of the SR-IOV operator; empty if nothing shows it, None if it was not determined yet
        self._place: typing.Optional[str] = None

    def begin(self, intent: ClusterIntent) -> None:
        """Prepare the reader for a roll. The namespace of the SR-IOV operator is determined once for each roll.

        :param intent: settings of the cluster
        """
        self._named, self._place = intent.operator_namespace, None

    def read(self, pods: bool = True, members: bool = False) -> RollCluster:
        """Return the state of the cluster that decides which nodes may be taken down. An upgrade of OpenShift is
        always read, because it may begin during a roll.

        :param pods: whether to read also the pods, the PodDisruptionBudgets, the MachineConfigs, the health checks and
            the members of etcd
        :param members: whether to read also the members of etcd, if ``pods`` is False
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
                    unread[kind] = error.text
                return ()

        def kept(kind: str, keep: typing.Callable[[], tuple[_T, ...]]) -> tuple[_T, ...]:
            """Return the objects of a kind that tenants create, reduced to the required fields; empty if they cannot be
            read.

            :param keep: function that reads and reduces the objects
            """
            try:
                return keep()
            except ApiError as error:
                if not (error.absent and kind == "NicDevice"):
                    unread[kind] = error.text
                return ()

        def host_config(wanted: Resource) -> HostConfig:
            """Return a desired MachineConfig or KubeletConfig with its current state. If that cannot be read, record
            the reason, because of which no BMC resets a node of a MachineConfigPool.
            """
            try:
                return machines.read_host_config(self._cluster, wanted)
            except ApiError as error:
                unread[str(wanted["kind"])] = error.text
                return machine_config.host_config(wanted)

        nodes = tuple(map(core.parse_node, resources))
        stand = read_gate_inputs(self._cluster, nodes, pods or members, self._checks if pods else None)
        pools = tuple(map(machine_config.machine_pool, items("MachineConfigPool")))
        configs = tuple(map(host_config, self._hosts)) if pools and pods else ()
        kubelet = any(config.kind == "KubeletConfig" and not config.there for config in configs)
        states = self._select_states(items(_STATE))
        cards = kept("NicDevice", self._list_turns)
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
            upgrade=stand.upgrade,
            own_boot=read_boot_id(),
            taken=find_taken_nodes(nodes, map(sriov_operator.node_state, states), cards),
        )

    def _select_states(self, states: tuple[Resource, ...]) -> tuple[Resource, ...]:
        """Return the SriovNetworkNodeStates in the namespace of the SR-IOV operator. A tenant may have created others,
        with the name of any node. If nothing shows the namespace, all with a status count: only a daemon of the
        operator writes it.

        :raises ApiError: the API server cannot be reached
        """
        if self._place is None and states:
            self._place = find_namespace(self._cluster, self._named)
        if not self._place:
            return tuple(state for state in states if find_mapping(state, "status").get("syncStatus"))
        return tuple(state for state in states if self._place == read_namespace(state))

    def _list_turns(self) -> tuple[tuple[str, str], ...]:
        """Return the nodes that NVIDIA's NIC configuration operator reboots, or will in its next turn, each with the
        reason. A NicDevice of a tenant has no status, and an invalid one is left out: only a daemon of the operator
        writes it.

        :raises ApiError: the NicDevices cannot be read
        """
        found: dict[str, str] = {}
        for item in self._cluster.pages("NicDevice"):
            try:
                node, why = parse_turn(item)
            except ResourceError:
                continue
            if node and why:
                found[node] = why
        return tuple(found.items())

    def _keep_pods(self, budgets: typing.Sequence[Budget], nodes: typing.Sequence[str]) -> tuple[ClusterPod, ...]:
        """Return the pods that a drain of these nodes would evict. A pod of a tenant that is too large to be read
        blocks only the roll of its own node."""
        pods = self._cluster.pages("Pod", only=may_leave, partial=True)
        return keep_pods(pods, budgets, find_nodes=functools.partial(find_nodes, self._cluster, nodes))
