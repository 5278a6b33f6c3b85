# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads, before objects are applied, the state of the cluster from which their disruption is computed: the nodes that
they drain or reboot. Pods are read only if at least one node is affected.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.operator_turns import list_begun_upgrades
from ..._analysis.controllers.drains.room import GateInputs
from ..._analysis.controllers.sriov.card_firmware import CardTemplates, writes_firmware
from ..._analysis.disruption.driver_links import DriverUses
from ..._analysis.disruption.live_state import Live
from ..._analysis.disruption.lost_pods import add_driver_users, add_lost_pods
from ..._analysis.disruption.machine_config import left_paused
from ..._analysis.disruption.nic_driver import list_driver_nodes, merge_driver
from ..._analysis.disruption.operator_upgrade import plan_sriov_upgrade
from ..._analysis.disruption.sriov import add_gate, list_configured, list_disturbed, make_untouched_plan, plan
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import DisruptionPlan, FunctionHolder, NodePool, OperatorSettings
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.scope import Scope
from ..._model.operators.drivers import OperatorUpgrade
from ..._model.operators.operators import GPU_RESOURCES, SRIOV
from ..._model.operators.sriov_operator import Policy
from ..._observe.kubernetes import machines
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core as kubernetes
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import name_of, why_not_read
from ..._parse.operators import machine_config, sriov_operator
from ..cluster.function_holders import FunctionHolders
from ..cluster.removal.driver import find_device_users
from .card_templates import TEMPLATE, explain_unread, read_card_templates
from .drained_pods import keep_budgets, keep_pods, may_leave
from .gate import read_gate_inputs
from .health_checks import HealthChecks
from .machine_configs.read_ulimits import read_lost_ulimits
from .read_driver_changes import list_upgraded_drivers, read_driver_change, read_gpu_driver_change
from .read_turns import TurnReader

#: of another kind of cluster: where the API server does not know them, there are none
_OPTIONAL = ("MachineConfigPool", "NicClusterPolicy", "NicNodePolicy", "ClusterPolicy")
#: of the SR-IOV network operator: an upgrade of an operator that does not serve them brings them
_OF_SRIOV = ("SriovNetworkNodeState", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "SriovOperatorConfig")
_T = typing.TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class RenderedObjects:
    """The objects that a run applies and that may disrupt nodes. Each object replaces the object of the same name in
    the cluster.

    :ivar policies: SriovNetworkNodePolicies
    :ivar pools: SriovNetworkPoolConfigs
    :ivar host_configs: MachineConfigs and KubeletConfigs
    :ivar nic_policies: the NicClusterPolicy, of which a cluster has only one
    :ivar peermem: whether the run enables nvidia-peermem in the ClusterPolicy of the GPU operator
    :ivar upgrade: upgrade of an operator, which can restart its driver; None for no upgrade
    """

    policies: tuple[Policy, ...] = ()
    pools: tuple[NodePool, ...] = ()
    host_configs: tuple[Resource, ...] = ()
    nic_policies: tuple[Resource, ...] = ()
    peermem: bool = False
    upgrade: typing.Optional[OperatorUpgrade] = None

    @property
    def are_for_nodes(self) -> bool:
        """Return whether the SR-IOV operator or the machine config operator applies at least one of the objects to
        nodes.
        """
        return bool(self.policies or self.pools or self.host_configs)

    @property
    def sriov_upgrade(self) -> typing.Optional[OperatorUpgrade]:
        """The upgrade, if it is of the SR-IOV network operator; otherwise None."""
        return self.upgrade if self.upgrade is not None and self.upgrade.operator == SRIOV else None


class _Reader:
    """A reader of Kubernetes objects that goes on if a kind cannot be read, and records the reason.

    :param optional: kinds that the API server may not serve
    :ivar unread: reason for each kind that could not be read, by kind
    """

    def __init__(self, cluster: Cluster, optional: typing.Container[str]) -> None:
        self._cluster, self._optional = cluster, optional
        self._nodes: typing.Optional[tuple[Resource, ...]] = None
        self.unread: dict[str, str] = {}

    def items(self, kind: str, namespace: str = "") -> tuple[Resource, ...]:
        try:
            return self._cluster.list(kind, namespace).items
        except ApiError as error:
            self._record_unread_kind(kind, error)
            return ()

    def read_nodes(self) -> tuple[Resource, ...]:
        """Return the nodes of the cluster as the API server sends them. Only the first call reads them. Return an empty
        tuple if they cannot be read.
        """
        if self._nodes is None:
            self._nodes = self.items("Node")
        return self._nodes

    def read_holders(
        self, nodes: typing.Iterable[str], prefix: str
    ) -> typing.Mapping[str, typing.Sequence[FunctionHolder]]:
        """Return the running pods of some nodes that may use virtual or physical functions, by node. If the pods cannot
        be read, the reason is recorded, and the result is empty or incomplete.

        :param nodes: names of the nodes
        :param prefix: prefix of the names of resources that are virtual functions
        """
        holders = FunctionHolders(self._cluster, frozenset(nodes), prefix)
        self.kept(
            "Pod",
            lambda: tuple(holders.collect(self._cluster.pages("Pod", only=is_made_pod), lambda _pod: False)),
        )
        return holders.found

    def read_card_templates(self) -> CardTemplates:
        """Return the templates of NVIDIA's NIC configuration operator and its cards. Return none if they cannot be
        read.

        :raises ApiError: the API server cannot be reached
        """
        try:
            return read_card_templates(self._cluster)
        except RdmaError as error:
            if isinstance(error, ApiError) and error.status == 0:
                raise
            self.unread[TEMPLATE] = explain_unread(error)
            return CardTemplates()

    def is_whole(self, kind: str, item: Resource) -> bool:
        """Return whether an object has more than its metadata. If it was too large to be read, record the reason, and
        return False.

        :param kind: kind of the object
        :param item: object as the API client returned it
        """
        reason = why_not_read(item)
        if reason:
            self.unread[kind] = f"{kind} {name_of(item)} is {reason}"
        return not reason

    def kept(self, kind: str, keep: typing.Callable[[], tuple[_T, ...]]) -> tuple[_T, ...]:
        """Return the objects of a kind as ``keep`` returns them. Return an empty tuple if they cannot be read.

        :param kind: kind of the objects, under which the reason is recorded
        :param keep: function without arguments that reads the objects and keeps only the required fields
        """
        try:
            return keep()
        except ApiError as error:
            self._record_unread_kind(kind, error)
            return ()

    def _record_unread_kind(self, kind: str, error: ApiError) -> None:
        """Record the reason why the objects of a kind could not be read. A kind of another type of cluster that the API
        server does not serve is no error.

        :param kind: kind of the objects
        :param error: error of the API server
        :raises ApiError: the error is that the API server cannot be reached
        """
        if error.status == 0:
            raise error
        if not (error.absent and kind in self._optional):
            self.unread[kind] = "the API server does not serve the kind" if error.absent else error.no_answer

    def host_config(self, wanted: Resource) -> HostConfig:
        """Return the comparison of a desired MachineConfig or KubeletConfig with the object in the cluster. If that
        object cannot be read, it is treated as absent, and the reason is recorded. The recorded reason keeps all nodes
        from being taken down.

        :param wanted: the rendered object
        :raises ApiError: the API server cannot be reached
        """
        try:
            return machines.read_host_config(self._cluster, wanted)
        except ApiError as error:
            if error.status == 0:
                raise
            self.unread[wanted["kind"]] = error.no_answer
            return machine_config.host_config(wanted)


def read_plan(
    cluster: Cluster,
    namespace: str,
    rendered: RenderedObjects,
    inventory: typing.Sequence[str],
    intent: ClusterIntent,
    in_use: typing.Optional[typing.Mapping[str, typing.Mapping[str, str]]] = None,
    driven: DriverUses = None,
    uppers: typing.Optional[typing.Mapping[str, typing.Mapping[str, typing.Sequence[str]]]] = None,
) -> DisruptionPlan:
    """Read the state of the cluster, and return the plan of the disruption: which nodes the objects would drain or
    reboot. Nothing is changed. Kinds that cannot be read are recorded in the plan.

    :param namespace: namespace of the SR-IOV network operator
    :param rendered: objects to apply
    :param inventory: names of the nodes of the run
    :param intent: settings of the intent that all fabrics share
    :param in_use: use of physical functions by the nodes themselves as text, by node, and for each node by interface or
        PCI address; None if it is not known
    :param driven: use of the NICs whose driver NVIDIA's network operator replaces, by node and network interface; None
        if it is not known
    :param uppers: names of the interfaces above the physical functions, by node and by PCI address; None if they are
        not known
    :raises ApiError: the API server cannot be reached
    :raises ResourceError: an object is malformed
    """
    reader = _Reader(cluster, (*_OPTIONAL, *_OF_SRIOV) if rendered.sriov_upgrade is not None else _OPTIONAL)
    if rendered.are_for_nodes or rendered.sriov_upgrade is not None:
        # first, because unread kinds are reported in the order of the reads
        reader.read_nodes()
    driver = read_driver_change(reader, rendered.nic_policies)
    gpu = read_gpu_driver_change(reader) if rendered.peermem else None
    upgraded = list_upgraded_drivers(reader, rendered.upgrade) if rendered.upgrade is not None else ()
    changes = tuple(change for change in (driver, gpu, *upgraded) if change is not None)
    if not rendered.are_for_nodes and rendered.sriov_upgrade is None and not changes:
        return make_untouched_plan(inventory, reader.unread)
    live = dataclasses.replace(_read_live(reader, namespace, rendered), in_use=in_use or {}, uppers=uppers or {})
    prefix = intent.resource_prefix

    def predict(seen_cluster: Live) -> DisruptionPlan:
        if rendered.sriov_upgrade is not None:
            planned = plan_sriov_upgrade(seen_cluster, rendered.sriov_upgrade, inventory, prefix)
        elif rendered.are_for_nodes:
            planned = plan(seen_cluster, rendered.policies, inventory, prefix)
        else:
            planned = make_untouched_plan(inventory, seen_cluster.unread)
        for change in changes:
            planned = merge_driver(
                planned, change, list_driver_nodes(change, seen_cluster.nodes, inventory), seen_cluster, driven
            )
        return add_lost_pods(planned, seen_cluster, intent.drain)

    planned = predict(live)
    if not list_disturbed(planned.nodes) and not live.host_configs:
        return predict(_add_holders(live, reader, planned, prefix)) if list_configured(planned.nodes) else planned
    machine_pools = tuple(map(machine_config.machine_pool, reader.items("MachineConfigPool")))
    new = any(not config.there for config in live.host_configs)
    if not list_disturbed(planned.nodes) and not new and not any(map(left_paused, machine_pools)):
        return planned
    if new and not machine_pools:
        reader.unread.setdefault(
            "MachineConfig",
            "no MachineConfigPool that would apply it could be read; without OpenShift, rdma_cluster.host is for"
            " containerd",
        )
    kubelet = any(config.kind == "KubeletConfig" and not config.there for config in live.host_configs)
    budgets = reader.kept("PodDisruptionBudget", lambda: keep_budgets(cluster.pages("PodDisruptionBudget")))
    named = frozenset((*list_disturbed(planned.nodes), *list_configured(planned.nodes)))
    holders = FunctionHolders(cluster, named, prefix)
    pods = reader.kept(
        "Pod",
        lambda: keep_pods(
            holders.collect(cluster.pages("Pod", only=is_made_pod), may_leave), budgets, (prefix, *GPU_RESOURCES)
        ),
    )
    whole = dataclasses.replace(
        live,
        machine_pools=machine_pools,
        kubelet_configs=(
            *(machines.select_others(reader.items("KubeletConfig"), rendered.host_configs) if kubelet else ()),
            *read_lost_ulimits(cluster, live.host_configs, machine_pools, rendered.host_configs),
        ),
        budgets=budgets,
        pods=pods,
        holders=None if "Pod" in reader.unread else holders.found,
    )
    planned = predict(whole)
    gone = [change for change in changes if change.action == "remove"]
    upgrades: tuple[str, ...] = ()
    if gone:
        names = {name for change in gone for name in list_driver_nodes(change, whole.nodes, inventory)}
        upgrades = list_begun_upgrades(whole.nodes, names)
        users: dict[str, list[str]] = {}
        for pod in reader.kept("Pod", lambda: tuple(find_device_users(cluster, names, Scope()))):
            users.setdefault(pod.node, []).append(pod.name)
        planned = add_driver_users(dataclasses.replace(planned, unread=dict(reader.unread)), names, users)
    stand = (
        read_gate_inputs(
            cluster,
            whole.nodes,
            checks=HealthChecks(cluster, lambda _line: None),
            turns=TurnReader(cluster, namespace),
        )
        if planned.pools
        else GateInputs()
    )
    gated = add_gate(planned, stand, machine_pools, intent, inventory)
    return dataclasses.replace(gated, closed=(*gated.closed, *upgrades))


def _add_holders(live: Live, reader: _Reader, planned: DisruptionPlan, prefix: str) -> Live:
    """Return the state of the cluster, completed with the pods that use functions of those nodes that change without a
    drain.

    :param live: state of the cluster
    :param reader: reader of the cluster, which records kinds that cannot be read
    :param planned: plan in which no node drains or reboots
    :param prefix: prefix of the names of resources that are virtual functions
    """
    holders = reader.read_holders(list_configured(planned.nodes), prefix)
    return dataclasses.replace(live, holders=None if "Pod" in reader.unread else holders)


def _read_live(reader: _Reader, namespace: str, rendered: RenderedObjects) -> Live:
    """Return the state of the cluster from which the drains are predicted, without pods.

    :param reader: reader of the cluster, which records kinds that cannot be read
    :param namespace: namespace of the SR-IOV network operator
    :param rendered: objects to apply
    """
    known = tuple(map(kubernetes.parse_node, reader.read_nodes()))
    if not rendered.are_for_nodes and rendered.sriov_upgrade is None:
        return Live(known, unread=reader.unread)
    live = Live(
        nodes=known,
        states={
            name_of(item): sriov_operator.node_state(item) for item in reader.items("SriovNetworkNodeState", namespace)
        },
        policies=tuple(map(sriov_operator.parse_policy, reader.items("SriovNetworkNodePolicy", namespace))),
        pools=tuple(
            {
                pool.name: pool
                for pool in (
                    *map(sriov_operator.node_pool, reader.items("SriovNetworkPoolConfig", namespace)),
                    *rendered.pools,
                )
            }.values()
        ),
        settings=_read_operator_settings(reader, namespace, rendered.sriov_upgrade is None),
        host_configs=tuple(map(reader.host_config, rendered.host_configs)),
        unread=reader.unread,
        namespace=namespace,
    )
    if rendered.policies and writes_firmware(live.settings):
        return dataclasses.replace(live, cards=reader.read_card_templates())
    return live


def _read_operator_settings(reader: _Reader, namespace: str, is_needed: bool) -> OperatorSettings:
    """Return the settings of the SR-IOV operator; the defaults if they cannot be read.

    :param is_needed: whether a missing object is recorded. Without it the operator runs nothing on nodes, and an
        upgrade changes none
    """
    configs = [item for item in reader.items("SriovOperatorConfig", namespace) if name_of(item) == "default"]
    if not configs:
        if is_needed:
            reader.unread.setdefault(
                "SriovOperatorConfig", f"namespace {namespace} has no SriovOperatorConfig named default"
            )
        return OperatorSettings()
    return sriov_operator.operator_settings(configs[0])
