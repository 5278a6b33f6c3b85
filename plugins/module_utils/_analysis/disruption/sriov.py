# SPDX-License-Identifier: GPL-3.0-or-later

"""What will the fabrics' policies do to the nodes before they are applied: which drain or reboot, why, in how many
waves, and what keeps them from it. May they? Pure; what the operator does is in
_analysis/controllers/sriov_operator.py, what is read in _run/node_changes/read_disruption_plan.py.

Check ids: ``network.disruption``, ``network.drain``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import (
    Action,
    Budget,
    ClusterPod,
    DisruptionPlan,
    MachinePool,
    NodePlan,
    NodePool,
    OperatorSettings,
    PoolPlan,
)
from ..._model.kubernetes.host import HOST_KINDS, HostConfig
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, Policy, StateInterface, WantedInterface
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, ok
from ..controllers.budgets import PodsOfCluster, find_held_pods
from ..controllers.gate import GateInputs, closed, list_pauses
from ..controllers.sriov_operator import (
    Turn,
    explain_what_holds_back,
    find_machine_pool,
    find_pools,
    find_wanted,
    firmware_changes,
    leaves,
    list_changes,
    turn_of,
)
from .machine_config import Machines, merge

Names = typing.Container[str]
#: pods that are named
_NAMED = 5
#: what an action does to a node, and what rdma_cluster.disruption allows
_RANK: dict[str, int] = {"nothing": 0, "configure": 0, "none": 0, "drain": 1, "reboot": 2}
#: kinds without which it is not known what the operator will do; the others only say what is in its way
ESSENTIAL = (
    "Node",
    "SriovNetworkNodeState",
    "SriovNetworkNodePolicy",
    "SriovNetworkPoolConfig",
    "SriovOperatorConfig",
    *HOST_KINDS,
)


@dataclasses.dataclass(frozen=True)
class Live(PodsOfCluster):
    """The cluster as it is.

    :ivar host_configs: MachineConfigs and KubeletConfigs that are to be applied
    :ivar kubelet_configs: of somebody else
    :ivar unread: kinds that could not be read, and why
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


def plan(live: Live, rendered: typing.Iterable[Policy], inventory: typing.Iterable[str], prefix: str) -> DisruptionPlan:
    """Predict what the operator will do when ``rendered`` is applied.

    :param rendered: the fabrics' policies; one of the same name in the cluster is replaced
    :param inventory: names of the nodes that must take part; others that the policies take are planned as well
    :param prefix: of the device plugin's resources
    """
    policies = {policy.name: policy for policy in (*live.policies, *rendered)}
    listed = tuple(inventory)
    known = {node.name: node for node in live.nodes}
    nodes = []
    for name in dict.fromkeys((*listed, *(name for name in known if name in live.states))):
        nodes.append(_node(known.get(name), name, live, tuple(policies.values()), name in listed, prefix))
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
    """Return the plan with what the gate says of it."""
    drained = {node.node for node in planned.nodes if node.action == "drain"}
    # without a drain a node that does not reboot is not away
    here = drained if not planned.drains else set()
    turns = (
        dataclasses.replace(pool, nodes=tuple(name for name in pool.nodes if name not in here))
        for pool in planned.pools
    )
    rolls = [turn for turn in turns if turn.nodes]
    found = closed(rolls, drained, stand, machine_pools, cluster, inventory)
    return dataclasses.replace(planned, closed=found, pauses=tuple(map(str, list_pauses(rolls, stand, cluster))))


def make_untouched_plan(inventory: typing.Iterable[str]) -> DisruptionPlan:
    """Return the plan where nothing is for the SR-IOV network operator to do, which need not even be there."""
    return DisruptionPlan(tuple(NodePlan(name, "nothing") for name in inventory))


def list_disturbed(nodes: typing.Iterable[NodePlan]) -> tuple[str, ...]:
    """Return the names of the nodes that are drained or rebooted."""
    return tuple(node.node for node in nodes if node.action in ("drain", "reboot"))


def _node(
    node: typing.Optional[ClusterNode], name: str, live: Live, policies: tuple[Policy, ...], listed: bool, prefix: str
) -> NodePlan:
    state = live.states.get(name)
    if node is None or state is None or not state.sync_status:
        missing = (
            "the cluster has no such node"
            if node is None
            else "the operator's config daemon has not reported what the node has"
        )
        return NodePlan(name, "unknown", (missing,), listed=listed)
    wanted = find_wanted(policies, node, state)
    pool = next(iter(find_pools(node, live.pools)), NodePool(""))
    reboots = _find_reboots(wanted, state, pool, live.settings)
    drains = tuple(_disturbances(wanted, state))
    action: Action = (
        "reboot"
        if reboots
        else "drain"
        if drains
        else "configure"
        if _normal(wanted) != _normal(state.wanted)
        else "nothing"
    )
    planned = NodePlan(name, action, (*reboots, *drains), pool=pool.name, listed=listed)
    return _add_pods(planned, node, live, prefix) if action in ("drain", "reboot") else planned


def _disturbances(wanted: typing.Iterable[WantedInterface], state: NodeState) -> typing.Iterator[str]:
    """Return the changes that take existing virtual functions away. [pkg/plugins/generic/generic_plugin.go
    needToUpdateVFs]"""
    wishes = {item.address: item for item in wanted}
    ours = {item.address for item in state.wanted}
    for interface in state.interfaces:
        if not interface.vfs_count:
            continue
        if interface.address in wishes:
            why = "; ".join(list_changes(wishes[interface.address], interface))
            if why:
                yield f"{_label(interface)} {why}"
        elif interface.address in ours:
            yield f"{_label(interface)} no policy takes it any more: virtual functions {interface.vfs_count} -> 0"


def _find_reboots(
    wanted: tuple[WantedInterface, ...], state: NodeState, pool: NodePool, settings: OperatorSettings
) -> tuple[str, ...]:
    """Return why the node reboots. [pkg/plugins/generic needRebootNode, pkg/plugins/mellanox OnNodeStateChange,
    pkg/daemon/daemon.go Reconcile]"""
    found: list[str] = []
    news = _normal(wanted) != _normal(state.wanted)
    if pool.rdma_mode != state.wanted_rdma_mode:
        found.append(
            f"RDMA mode {state.wanted_rdma_mode or 'not set'} -> {pool.rdma_mode or 'not set'} (a kernel argument)"
        )
    # an operator that is at rest on exactly this has found the firmware right
    if "mellanox" not in settings.disabled_plugins and (news or state.sync_status != "Succeeded"):
        found += firmware_changes(wanted, state.interfaces)
    if settings.mode == "systemd" and news:
        found.append("configurationMode is systemd: every change is made at boot (on OpenShift by a MachineConfig)")
    return tuple(found)


def _normal(wanted: typing.Iterable[WantedInterface]) -> frozenset[typing.Any]:
    """For comparison: without order, and without the name, which changes with eSwitch mode."""
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


def _label(interface: StateInterface) -> str:
    return f"{interface.name} {interface.address}".strip()


def _add_pods(planned: NodePlan, node: ClusterNode, live: Live, prefix: str) -> NodePlan:
    here = live.list_pods(node.name)
    if live.settings.disable_drain:
        # nobody asks the pods: those with a virtual function lose it
        return dataclasses.replace(
            planned, pods=tuple(_name(pod) for pod in here if leaves(pod, False, prefix) and not pod.ended)
        )
    full = planned.action == "reboot"
    going = [pod for pod in here if leaves(pod, full, prefix)]
    machines = find_machine_pool(node, live.machine_pools)
    held = explain_what_holds_back(machines) if machines else ""
    return dataclasses.replace(
        planned,
        pods=tuple(map(_name, going)),
        lost=tuple(_name(pod) for pod in going if not pod.owner and not pod.ended),
        blockers=find_held_pods(going, full, prefix, live.budget_index) + ((held,) if held else ()),
    )


def _name(pod: ClusterPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _list_pools(
    nodes: typing.Sequence[NodePlan], known: typing.Mapping[str, ClusterNode], live: Live
) -> tuple[PoolPlan, ...]:
    names = list_disturbed(nodes)
    if not names:
        return ()
    if live.settings.disable_drain:
        limit = "disableDrain is true: no node is cordoned or drained, and none waits for another"
        return (PoolPlan("", names, None, 1, limit),)
    groups: dict[str, list[str]] = {}
    turns: dict[str, Turn] = {}
    blocked: dict[str, dict[str, None]] = {}
    for name in names:
        turn = turn_of(known[name], live.pools, known.values())
        groups.setdefault(turn.pool, []).append(name)
        turns.setdefault(turn.pool, turn)
        blocked.setdefault(turn.pool, {}).update({turn.blocked: None} if turn.blocked else {})
    return tuple(_pool(turns[pool], tuple(members), tuple(blocked[pool])) for pool, members in groups.items())


def _pool(turn: Turn, nodes: tuple[str, ...], blockers: tuple[str, ...]) -> PoolPlan:
    waves = None if blockers else 1 if turn.at_once is None else -(-len(nodes) // turn.at_once)
    return PoolPlan(turn.pool, nodes, turn.at_once, waves, turn.limit, blockers)


# The judgement


def lines(planned: DisruptionPlan) -> tuple[str, ...]:
    """Return the plan in words: one line for each node that is drained or rebooted, one for each pool."""
    nodes = [
        f"{node.node} {_fate(node, planned)}:"
        f" {'; '.join(node.reasons)}{f' ({len(node.pods)} pods)' if node.pods else ''}"
        for node in planned.nodes
        if node.action in ("drain", "reboot")
    ]
    pools = (f"{_pool_label(pool)}: {_course(pool)}" for pool in planned.pools)
    return (
        *nodes,
        *pools,
        *(f"{check}: paused while the nodes of MachineConfigPools reboot" for check in planned.pauses),
    )


def _fate(node: NodePlan, planned: DisruptionPlan) -> str:
    drains = planned.drains or node.rolled_by
    how = "" if drains else ", without a drain"
    return f"{'reboots' if node.action == 'reboot' else 'is drained' if drains else 'is changed'}{how}"


def check_plan(
    cluster: ClusterIntent, planned: typing.Optional[DisruptionPlan], inventory: typing.Sequence[str]
) -> tuple[Finding, ...]:
    """May it be done, and can it? For each node of the inventory, each other one that is disturbed, and each pool."""
    if planned is None:
        why = "The stage ended before it had looked at the nodes."
        return (
            Finding(
                "network.disruption",
                "cluster",
                UNKNOWN,
                "no plan",
                _allowed_text(cluster),
                why,
                "See the stage's other findings.",
            ),
        )
    found = [_report_unread(kind, reason, cluster) for kind, reason in planned.unread.items() if kind in ESSENTIAL]
    found += [
        _check_disruption(node, planned, cluster)
        for node in planned.nodes
        if node.listed or node.node in inventory or node.action in ("drain", "reboot")
    ]
    found += [_report_missing(name, cluster) for name in inventory if name not in {node.node for node in planned.nodes}]
    if not planned.pools:
        return (*found, ok("network.drain", "cluster", "no node is drained or rebooted", "nothing in the way"))
    found += [_report_in_the_way(kind, reason) for kind, reason in planned.unread.items() if kind not in ESSENTIAL]
    found += [_report_blocked(node) for node in planned.nodes if node.blockers]
    found += [_report_closed(why) for why in planned.closed]
    return (*found, *(_list_turns(pool) for pool in planned.pools))


def may_go_on(cluster: ClusterIntent, planned: DisruptionPlan, inventory: typing.Sequence[str]) -> bool:
    """Return whether the objects may be applied: nothing of the plan is refused or unknown."""
    return all(finding.status not in (FAIL, UNKNOWN) for finding in check_plan(cluster, planned, inventory))


def _allowed_text(cluster: ClusterIntent) -> str:
    return {"none": "neither drain nor reboot", "drain": "no reboot", "reboot": "drains and reboots are allowed"}[
        cluster.disruption
    ] + f" (rdma_cluster.disruption: {cluster.disruption})"


def _report_unread(kind: str, reason: str, cluster: ClusterIntent) -> Finding:
    why = f"Without {kind} it is not known which nodes drain or reboot, so nothing was applied."
    remedy = (
        "Give the user of the kubeconfig the right to list it (docs/rbac/look.yml). If the operator is not installed,"
        " see the stage operators."
    )
    return Finding("network.disruption", f"cluster {kind}", UNKNOWN, reason, _allowed_text(cluster), why, remedy)


def _report_missing(name: str, cluster: ClusterIntent) -> Finding:
    return Finding(
        "network.disruption",
        name,
        UNKNOWN,
        "not planned",
        _allowed_text(cluster),
        "The plan does not have the node.",
        "Run the stage again.",
    )


def refusal(cluster: ClusterIntent, planned: DisruptionPlan, inventory: typing.Sequence[str]) -> tuple[str, ...]:
    """Return why the objects may not be applied, and what to do, in words; empty when they may."""
    refused = (finding for finding in check_plan(cluster, planned, inventory) if finding.status in (FAIL, UNKNOWN))
    return tuple(f"{finding.subject}: {finding.measured}. {finding.why} {finding.remedy}" for finding in refused)


def _needed(planned: DisruptionPlan) -> str:
    """Return the value of rdma_cluster.disruption that allows all of the plan."""
    actions = {node.action for node in planned.nodes}
    return next((action for action in ("reboot", "drain") if action in actions), "none")


def _check_disruption(node: NodePlan, planned: DisruptionPlan, cluster: ClusterIntent) -> Finding:
    subject, expected = (node.node if node.listed else f"{node.node} (not in the inventory)"), _allowed_text(cluster)
    if node.action == "unknown":
        why = (
            "What the node has is not known, so it is not known either what a policy would do to it. Nothing was"
            " applied."
        )
        return Finding(
            "network.disruption",
            subject,
            UNKNOWN,
            "; ".join(node.reasons),
            expected,
            why,
            "See the stage operators, then run the stage again.",
        )
    measured = {
        "nothing": "nothing changes",
        "configure": "virtual functions are made where there are none: neither drain nor reboot",
    }.get(node.action)
    measured = measured or f"{_action(node, planned)}: {'; '.join(node.reasons)}"
    if _RANK[node.action] > _RANK[cluster.disruption]:
        why = (
            f"The node's wanted state changes in a way that needs a {node.action} of it. The intent does not allow"
            " that, so nothing was applied."
        )
        # of the whole plan: what one node needs less than the others would only be refused again for them
        remedy = (
            f"When the nodes may go down, set rdma_cluster.disruption to {_needed(planned)}; else undo what is named"
            " beside 'measured'."
        )
        return Finding("network.disruption", subject, FAIL, measured, expected, why, remedy)
    if node.pods and not planned.drains and not node.rolled_by:
        why = (
            f"disableDrain is true, so nobody asks the pods that hold virtual functions: {folded(node.pods, _NAMED)}"
            " lose them while they run."
        )
        return Finding(
            "network.disruption",
            subject,
            WARN,
            measured,
            expected,
            why,
            "End these pods first, or set disableDrain to false.",
        )
    if node.lost:
        why = f"The drain deletes pods that no controller makes again: {folded(node.lost, _NAMED)}."
        return Finding("network.disruption", subject, WARN, measured, expected, why, "Save them first, if they matter.")
    return ok("network.disruption", subject, measured, expected)


def _action(node: NodePlan, planned: DisruptionPlan) -> str:
    drains = planned.drains or bool(node.rolled_by)
    pods = f", {len(node.pods)} pods go" if node.pods and drains else ""
    if drains:
        return f"{'drain and reboot' if node.action == 'reboot' else 'drain'}{pods}"
    return (
        "reboot without a drain (disableDrain)"
        if node.action == "reboot"
        else "virtual functions are taken away without a drain (disableDrain)"
    )


def _report_in_the_way(kind: str, reason: str) -> Finding:
    why = f"Without {kind} it is not known what keeps the nodes from being drained, so nothing was applied."
    return Finding(
        "network.drain",
        f"cluster {kind}",
        UNKNOWN,
        reason,
        "nothing in the way",
        why,
        "Give the user of the kubeconfig the right to list it.",
    )


def _report_blocked(node: NodePlan) -> Finding:
    why = "The operator would cordon the node and wait for ever, so nothing was applied."
    remedy = (
        "Let the PodDisruptionBudget allow an eviction (one replica more), end the pods, or bring the MachineConfigPool"
        " to its end."
    )
    return Finding("network.drain", node.node, FAIL, "; ".join(node.blockers), "nothing in the way", why, remedy)


def _report_closed(why: str) -> Finding:
    """Report why the cluster does not bear it; the same gate as for resets by BMCs."""
    text = (
        "A node that goes down now may take the control plane with it, be reprovisioned, or be one too many. Nothing"
        " was applied."
    )
    return Finding(
        "network.drain",
        "cluster",
        FAIL,
        why,
        "the cluster bears that nodes go down",
        text,
        "Do what is said beside 'measured'; then run the stage again.",
    )


def _list_turns(pool: PoolPlan) -> Finding:
    if pool.blockers:
        why = "The nodes would wait for their turn for ever, so nothing was applied."
        remedy = "Give maxUnavailable of the SriovNetworkPoolConfig a number of 1 at least, and each node one pool."
        remedy = (
            "Bring the MachineConfigPool in order first, let who paused it go on, or keep one KubeletConfig for it."
            if pool.machines
            else remedy
        )
        return Finding(
            "network.drain", _pool_label(pool), FAIL, "; ".join(pool.blockers), "each node gets its turn", why, remedy
        )
    return ok("network.drain", _pool_label(pool), _course(pool), "each node gets its turn")


def _pool_label(pool: PoolPlan) -> str:
    if pool.machines:
        return f"MachineConfigPool {pool.name}"
    return f"pool {pool.name}" if pool.name else "default pool"


def _course(pool: PoolPlan) -> str:
    if pool.waves is None:
        return "; ".join(pool.blockers)
    at_once = "all at once" if pool.at_once is None else f"{pool.at_once} at a time"
    once = ", rolled once" if pool.machines else ""
    return (
        f"{len(pool.nodes)} nodes, {at_once}, in {pool.waves} {'wave' if pool.waves == 1 else 'waves'}{once};"
        f" {pool.limit}"
    )
