# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effects of the fabrics' policies before they are applied: the nodes that the SR-IOV operator drains or
reboots, the reasons, the number of groups that go down one after the other, and the blockers.

The rules of the operator are in _analysis/controllers/sriov_operator.py. _run/node_changes/read_disruption_plan.py
reads the cluster, and judge_plan.py judges the plan.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import (
    Action,
    Budget,
    ClusterPod,
    DisruptionPlan,
    FunctionHolder,
    MachinePool,
    NodePlan,
    NodePool,
    OperatorSettings,
    PoolPlan,
)
from ..._model.kubernetes.host import HostConfig
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, Policy, StateInterface, WantedInterface
from ..controllers.budgets import PodsOfCluster, find_held_pods
from ..controllers.card_firmware import CardTemplates, writes_firmware
from ..controllers.drain import explain_function_holders
from ..controllers.gate import list_pauses, list_roll_blockers
from ..controllers.room import GateInputs
from ..controllers.sriov_operator import (
    Turn,
    explain_what_holds_back,
    find_machine_pool,
    find_pools,
    find_wanted,
    firmware_changes,
    is_evicted,
    list_changes,
    list_drain_refusals,
    turn_of,
)
from .firmware_blockers import FirmwareWriters, add_firmware_blockers
from .function_use import (
    Evicts,
    Rename,
    add_undrained_users,
    describe_configuration,
    list_disturbed_functions,
    list_left_users,
    list_link_losses,
    list_renames,
    list_users,
)
from .link_users import LinkUsers, add_link_users, changes_functions, find_link_users, list_claims
from .machine_config import Machines, merge

Names = typing.Container[str]
#: remark for the node that runs the playbook
_OWN_NODE = (
    "ansible-playbook runs on this node: a reboot ends the run, and so does a drain if it runs in a pod. Run the"
    " playbook on another machine, or run stage network again after the node is back"
)


@dataclasses.dataclass(frozen=True)
class Live(PodsOfCluster):
    """The present state of the cluster, from which the effects of new policies are predicted.

    :ivar nodes: nodes of the cluster
    :ivar states: SriovNetworkNodeState of each node
    :ivar policies: SriovNetworkNodePolicies in the operator's namespace
    :ivar pools: SriovNetworkPoolConfigs of the cluster
    :ivar settings: SriovOperatorConfig of the operator
    :ivar machine_pools: MachineConfigPools; empty on other systems than OpenShift
    :ivar budgets: PodDisruptionBudgets of all namespaces
    :ivar pods: pods of all namespaces
    :ivar host_configs: MachineConfigs and KubeletConfigs to apply
    :ivar kubelet_configs: KubeletConfigs that the collection does not manage
    :ivar unread: reason for each kind of object that could not be read, by kind
    :ivar in_use: use of the physical functions that a node itself uses, by node and by interface or PCI address
    :ivar holders: running pods that may use virtual functions, by node; None if they were not read
    :ivar cards: templates and cards of NVIDIA's NIC configuration operator
    :ivar namespace: namespace of the SR-IOV operator
    """

    nodes: tuple[ClusterNode, ...] = ()
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    pools: tuple[NodePool, ...] = ()
    settings: OperatorSettings = dataclasses.field(default_factory=OperatorSettings)
    machine_pools: tuple[MachinePool, ...] = ()
    budgets: tuple[Budget, ...] = ()
    pods: tuple[ClusterPod, ...] = ()
    host_configs: tuple[HostConfig, ...] = ()
    kubelet_configs: tuple[HostConfig, ...] = ()
    unread: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    in_use: typing.Mapping[str, typing.Mapping[str, str]] = dataclasses.field(default_factory=dict)
    holders: typing.Optional[typing.Mapping[str, typing.Sequence[FunctionHolder]]] = None
    cards: CardTemplates = dataclasses.field(default_factory=CardTemplates)
    namespace: str = ""


def plan(live: Live, rendered: typing.Iterable[Policy], inventory: typing.Iterable[str], prefix: str) -> DisruptionPlan:
    """Return the drains and reboots that the operator will perform after the policies of the fabrics are applied.

    :param live: present state of the cluster
    :param rendered: policies of the fabrics, which replace policies of the same name in the cluster
    :param inventory: names of the nodes of the run. Every other node with a SriovNetworkNodeState is planned as well
    :param prefix: prefix of the device plugin's resources
    """
    policies = {policy.name: policy for policy in (*live.policies, *rendered)}
    listed = tuple(inventory)
    known = {node.name: node for node in live.nodes}
    writers = FirmwareWriters(live.namespace, live.settings, live.cards)
    nodes = []
    for name in dict.fromkeys((*listed, *(name for name in known if name in live.states))):
        node, every = known.get(name), tuple(policies.values())
        planned_node = _plan_node(node, name, live, every, name in listed, prefix)
        wanted = functools.partial(find_wanted, every)
        nodes.append(add_firmware_blockers(planned_node, node, live.states.get(name), wanted, writers))
    planned = DisruptionPlan(
        tuple(nodes), _list_pools(nodes, known, live), not live.settings.disable_drain, dict(live.unread)
    )
    return merge(
        planned,
        Machines(live.host_configs, live.kubelet_configs, live.machine_pools, live.nodes, live.pods, live.budgets),
    )


def add_gate(
    planned: DisruptionPlan,
    stand: GateInputs,
    machine_pools: typing.Iterable[MachinePool],
    cluster: ClusterIntent,
    inventory: Names,
) -> DisruptionPlan:
    """Return the plan with the reasons why its nodes must not go down now, and with the health checks to pause.

    :param planned: predicted drains and reboots
    :param stand: state of the cluster on which the gate depends
    :param machine_pools: MachineConfigPools of the cluster
    :param cluster: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    """
    # a node that loses its link is as unreachable as one that reboots
    drained = {node.node for node in planned.nodes if node.action == "drain" and not node.loses_link}
    # without a drain, a node that does not reboot remains available
    drains = {pool: planned.drains or pool.machines or pool.undrained for pool in planned.pools}
    drains.update({pool: pool.driver != "remove" for pool in planned.pools if pool.driver})
    turns = (
        dataclasses.replace(pool, nodes=tuple(name for name in pool.nodes if drains[pool] or name not in drained))
        for pool in planned.pools
    )
    rolls = [turn for turn in turns if turn.nodes]
    found = list_roll_blockers(rolls, drained, stand, machine_pools, cluster, inventory)
    nodes = tuple(
        dataclasses.replace(node, reasons=(*node.reasons, _OWN_NODE))
        if node.node == stand.own_node and node.action in ("drain", "reboot")
        else node
        for node in planned.nodes
    )
    pauses = tuple(map(str, list_pauses(rolls, stand, cluster)))
    return dataclasses.replace(planned, nodes=nodes, closed=found, pauses=pauses)


def make_untouched_plan(
    inventory: typing.Iterable[str], unread: typing.Optional[typing.Mapping[str, str]] = None
) -> DisruptionPlan:
    """Return a plan in which no node changes, for fabrics that do not use the SR-IOV network operator. The operator
    need not be installed.

    :param inventory: names of the nodes of the inventory
    :param unread: reason for each kind of object that could not be read, by kind
    """
    return DisruptionPlan(tuple(NodePlan(name, "nothing") for name in inventory), unread=dict(unread or {}))


def list_configured(nodes: typing.Iterable[NodePlan]) -> tuple[str, ...]:
    """Return the names of the nodes that change without a drain or reboot. Nodes whose change is unknown are not among
    them.
    """
    return tuple(node.node for node in nodes if node.action == "configure")


def list_disturbed(nodes: typing.Iterable[NodePlan]) -> tuple[str, ...]:
    """Return the names of the nodes that the plan drains or reboots."""
    return tuple(node.node for node in nodes if node.action in ("drain", "reboot"))


def _plan_node(
    node: typing.Optional[ClusterNode], name: str, live: Live, policies: tuple[Policy, ...], listed: bool, prefix: str
) -> NodePlan:
    state = live.states.get(name)
    if node is None or state is None or not state.sync_status:
        missing = (
            "the cluster has no node with this name"
            if node is None
            else "the config daemon of the operator has not reported the state of the node"
        )
        return NodePlan(name, "unknown", (missing,), listed=listed)
    wanted = find_wanted(policies, node, state)
    pool = next(iter(find_pools(node, live.pools)), NodePool(""))
    reboots = _find_reboots(wanted, state, pool, live.settings)
    drains = tuple(_list_disturbances(wanted, state))
    renames = list_renames(wanted, state)
    in_use, holders = live.in_use.get(name, {}), None if live.holders is None else live.holders.get(name, ())
    losses, links = list_link_losses(wanted, state, in_use), find_link_users(wanted, state, in_use, holders)
    users = _find_rename_users(renames, live, name, prefix)
    held = bool(renames) and (users is None or bool(users))
    action: Action = (
        "reboot"
        if reboots
        else "drain"
        if drains or held or losses or links.reasons
        else "configure"
        if _normalize_interfaces(wanted) != _normalize_interfaces(state.wanted)
        else "nothing"
    )
    doubts = () if action in ("nothing", "reboot") else _list_doubts(wanted, state, links, live, name)
    if action == "configure":
        reasons = describe_configuration(wanted, state, renames)
        return NodePlan(name, action, reasons, pool=pool.name, listed=listed, doubts=doubts)
    reasons = (*reboots, *drains, *losses, *links.reasons, *(rename.text for rename in renames if held))
    undrained = action == "drain" and not drains
    planned = NodePlan(
        name,
        action,
        reasons,
        pool=pool.name,
        listed=listed,
        undrained=undrained,
        loses_link=bool(losses),
        doubts=doubts,
    )
    if undrained:
        return add_link_users(add_undrained_users(planned, renames if held else (), users), links)
    lost = list_disturbed_functions(wanted, state)
    if action == "reboot":
        return _add_pods(planned, node, live, prefix, lost)
    return add_link_users(_add_pods(planned, node, live, prefix, lost), links) if action == "drain" else planned


def _list_doubts(
    wanted: typing.Sequence[WantedInterface], state: NodeState, links: LinkUsers, live: Live, node: str
) -> tuple[str, ...]:
    """Return the uses that the change of a node may disturb, without proof, as text: those of physical functions,
    virtual functions that annotations of pods name, and the fact that the pods could not be read.

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param links: uses of physical functions that change
    :param node: name of the node
    """
    claims = list_claims((live.holders or {}).get(node, ()), list_disturbed_functions(wanted, state))
    unread = "Pod" in live.unread and changes_functions(wanted, state)
    return (*links.doubts, *claims, *((f"the pods could not be read: {live.unread['Pod']}",) if unread else ()))


def _find_rename_users(
    renames: typing.Sequence[Rename], live: Live, node: str, prefix: str
) -> typing.Optional[tuple[FunctionHolder, ...]]:
    """Return the pods that use virtual functions which get another resource name. Return None if they are unknown.

    :param renames: existing virtual functions that get another resource name
    :param node: name of the node
    :param prefix: prefix of the resources of virtual functions
    """
    if live.holders is None:
        return None
    addresses = frozenset(address for rename in renames for address in rename.addresses)
    resources = {f"{prefix}/{rename.resource}" for rename in renames}
    return list_users(live.holders.get(node, ()), addresses, resources)


def _list_disturbances(wanted: typing.Iterable[WantedInterface], state: NodeState) -> typing.Iterator[str]:
    """Yield the changes that remove or reset existing virtual functions. [pkg/plugins/generic/generic_plugin.go
    needToUpdateVFs]

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    """
    wishes = {item.address: item for item in wanted}
    ours = {item.address for item in state.wanted}
    for interface in state.interfaces:
        if not interface.vfs_count:
            continue
        if interface.address in wishes:
            why = "; ".join(list_changes(wishes[interface.address], interface))
            if why:
                yield f"{_name_interface(interface)} {why}"
        elif interface.address in ours:
            name = _name_interface(interface)
            yield f"{name}: no policy selects it any longer, virtual functions {interface.vfs_count} -> 0"


def _find_reboots(
    wanted: tuple[WantedInterface, ...], state: NodeState, pool: NodePool, settings: OperatorSettings
) -> tuple[str, ...]:
    """Return the reasons why the operator reboots the node; empty if it does not. [pkg/plugins/generic needRebootNode,
    pkg/plugins/mellanox OnNodeStateChange, pkg/daemon/daemon.go Reconcile]

    :param wanted: desired state of the interfaces
    :param state: SriovNetworkNodeState of the node
    :param pool: SriovNetworkPoolConfig of the node
    :param settings: SriovOperatorConfig of the operator
    """
    found: list[str] = []
    news = _normalize_interfaces(wanted) != _normalize_interfaces(state.wanted)
    if pool.rdma_mode != state.wanted_rdma_mode:
        found.append(
            f"RDMA mode {state.wanted_rdma_mode or 'not set'} -> {pool.rdma_mode or 'not set'} (a kernel argument)"
        )
    # where the operator has succeeded with the same wanted state, the firmware is right
    if writes_firmware(settings) and (news or state.sync_status != "Succeeded"):
        found += firmware_changes(wanted, state.interfaces)
    if settings.mode == "systemd" and news:
        found.append(
            "configurationMode is systemd: the operator applies every change at boot (on OpenShift by a MachineConfig)"
        )
    return tuple(found)


def _normalize_interfaces(wanted: typing.Iterable[WantedInterface]) -> frozenset[typing.Any]:
    """Return the desired state of the interfaces as a set for comparison. The names of the interfaces are left out,
    since they change with the eSwitch mode.

    :param wanted: desired state of the interfaces
    """
    return frozenset(
        (
            item.address,
            item.vfs_count,
            item.mtu,
            item.link_type.upper(),
            item.eswitch_mode or "legacy",
            item.external,
            frozenset(item.groups),
        )
        for item in wanted
    )


def _name_interface(interface: StateInterface) -> str:
    return f"{interface.name} {interface.address}".strip()


def _add_pods(
    planned: NodePlan, node: ClusterNode, live: Live, prefix: str, functions: typing.Container[str]
) -> NodePlan:
    """Return the plan of a node with the pods that it evicts, and with those that lose virtual functions although the
    operator does not evict them.

    :param functions: PCI addresses of the virtual functions that the operator removes or resets
    """
    here = live.list_pods(node.name)
    full = planned.action == "reboot"
    evicts: Evicts = "all" if full and not live.settings.disable_drain else "functions"
    left = list_left_users((live.holders or {}).get(node.name, ()), functions, evicts, full)
    if live.settings.disable_drain:
        # without a drain no pod is evicted, and those with a virtual function lose it
        going = [_name_pod(pod) for pod in here if is_evicted(pod, False, prefix) and not pod.ended]
        return dataclasses.replace(planned, pods=(*going, *left))
    gone = [pod for pod in here if is_evicted(pod, full, prefix)]
    machines = find_machine_pool(node, live.machine_pools)
    held = explain_what_holds_back(machines) if machines else ""
    return dataclasses.replace(
        planned,
        pods=tuple(map(_name_pod, gone)),
        lost=tuple(_name_pod(pod) for pod in gone if not pod.owner and not pod.ended),
        blockers=(
            *find_held_pods(gone, full, prefix, live.budget_index),
            *filter(None, (explain_function_holders(left, prefix), held)),
            *(() if held else list_drain_refusals(node, machines, live.states.get(node.name))),
        ),
    )


def _name_pod(pod: ClusterPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _list_pools(
    nodes: typing.Sequence[NodePlan], known: typing.Mapping[str, ClusterNode], live: Live
) -> tuple[PoolPlan, ...]:
    alone = tuple(node.node for node in nodes if node.undrained and node.loses_link)
    undrained = {node.node for node in nodes if node.undrained}
    names = tuple(name for name in list_disturbed(nodes) if name not in undrained)
    limit = "the operator creates the first virtual functions of a NIC without a drain, on all nodes at the same time"
    at_once = (PoolPlan("", alone, len(alone), 1, limit, undrained=True),) if alone else ()
    if not names:
        return at_once
    if live.settings.disable_drain:
        limit = "disableDrain is true: the operator cordons and drains no node, and nodes do not wait for each other"
        return (*at_once, PoolPlan("", names, None, 1, limit))
    groups: dict[str, list[str]] = {}
    turns: dict[str, Turn] = {}
    blocked: dict[str, dict[str, None]] = {}
    for name in names:
        turn = turn_of(known[name], live.pools, known.values())
        groups.setdefault(turn.pool, []).append(name)
        turns.setdefault(turn.pool, turn)
        blocked.setdefault(turn.pool, {}).update({turn.blocked: None} if turn.blocked else {})
    turned = (_plan_pool(turns[pool], tuple(members), tuple(blocked[pool])) for pool, members in groups.items())
    return (*at_once, *turned)


def _plan_pool(turn: Turn, nodes: tuple[str, ...], blockers: tuple[str, ...]) -> PoolPlan:
    waves = None if blockers else 1 if turn.at_once is None else -(-len(nodes) // turn.at_once)
    return PoolPlan(turn.pool, nodes, turn.at_once, waves, turn.limit, blockers)
