# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the plan of drains and reboots: whether the intent permits it, and whether anything blocks it. Check ids:
``network.disruption``, ``network.drain``, ``network.lint_uplink``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, describe_read_remedy, describe_rerun
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import (
    DisruptionPlan,
    NodePlan,
    PoolPlan,
)
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Waiver, build_pass
from ..controllers.card_firmware import is_about_firmware
from ..controllers.drain import is_loss, takes_devices
from .driver_links import CHECK as UPLINK
from .driver_links import list_held_drivers
from .lost_pods import is_drained

#: pods that are named
_NAMED = 5
#: nodes outside of the inventory that are named
_MOST_UNLISTED = 20
#: the rank of an action, and of the value of rdma_cluster.disruption that allows it
_RANK: dict[str, int] = {"nothing": 0, "configure": 0, "none": 0, "drain": 1, "reboot": 2}
#: kinds without which it is not known which nodes the operator disturbs; the others only show what blocks it
_ESSENTIAL = (
    "Node",
    "SriovNetworkNodeState",
    "SriovNetworkNodePolicy",
    "SriovNetworkPoolConfig",
    "SriovOperatorConfig",
    "NicClusterPolicy",
    "ClusterPolicy",
    "NicConfigurationTemplate",
    *HOST_KINDS,
)


def describe_plan(planned: DisruptionPlan) -> tuple[str, ...]:
    """Return the plan as text: one line for each node that is drained or rebooted, one for each pool, and one for each
    paused health check.

    :param planned: planned drains and reboots
    """
    nodes = [
        f"{node.title} {_describe_fate(node, planned)}: {'; '.join(node.reasons)}{_format_pod_count(node)}"
        for node in planned.nodes
        if node.action in ("drain", "reboot")
    ]
    pools = (f"{_name_pool(pool)}: {_describe_turns(pool)}" for pool in planned.pools)
    return (
        *nodes,
        *pools,
        *(f"{check}: paused while the nodes of MachineConfigPools reboot" for check in planned.pauses),
    )


def _format_pod_count(node: NodePlan) -> str:
    return f" ({count_of(len(node.pods), 'pod')})" if node.pods else ""


def _describe_fate(node: NodePlan, planned: DisruptionPlan) -> str:
    if node.driver == "remove":
        return "loses its driver, without a drain"
    drains = is_drained(node, planned)
    how = "" if drains else ", without a drain"
    return f"{'reboots' if node.action == 'reboot' else 'is drained' if drains else 'is changed'}{how}"


def check_plan(
    cluster: ClusterIntent, planned: typing.Optional[DisruptionPlan], inventory: typing.Sequence[str]
) -> tuple[Finding, ...]:
    """Check for each node of the inventory, each other node that is drained or rebooted, and each pool, that the intent
    permits the planned disruption and that nothing blocks it.

    :param cluster: settings of the intent that all fabrics share
    :param planned: predicted drains and reboots; None if the stage ended before they were computed, which results in
        one unknown finding
    :param inventory: names of the nodes of the inventory
    """
    if planned is None:
        why = "The stage ended before it read the state of the nodes, from which it predicts their drains and reboots."
        return (
            Finding(
                "network.disruption",
                "cluster",
                UNKNOWN,
                "drains and reboots of the nodes not predicted",
                f"drains and reboots of the nodes predicted; {_allowed_text(cluster)}",
                why,
                describe_rerun("network"),
            ),
        )
    found = [_report_unread(kind, reason, cluster) for kind, reason in planned.unread.items() if kind in _ESSENTIAL]
    found += [
        _check_disruption(node, planned, cluster)
        for node in planned.nodes
        if node.listed or node.node in inventory or node.action in ("drain", "reboot")
    ]
    found += list_held_drivers(planned.nodes)
    found += _report_unlisted(planned, inventory, cluster)
    found += [_report_missing(name, cluster) for name in inventory if name not in {node.node for node in planned.nodes}]
    if not planned.pools:
        blocked = [_report_blocked(node) for node in planned.nodes if node.blockers]
        if blocked:
            return (*found, *blocked)
        return (
            *found,
            build_pass("network.drain", "cluster", "no node is drained or rebooted", "nothing that blocks a drain"),
        )
    found += [_report_in_the_way(kind, reason) for kind, reason in planned.unread.items() if kind not in _ESSENTIAL]
    found += [_report_blocked(node) for node in planned.nodes if node.blockers]
    found += [_report_closed(why) for why in planned.closed]
    return (*found, *(_list_turns(pool) for pool in planned.pools))


def may_go_on(cluster: ClusterIntent, planned: DisruptionPlan, inventory: typing.Sequence[str]) -> bool:
    """Return whether the objects may be applied: the intent permits the plan and nothing blocks it.

    :param cluster: settings of the intent that all fabrics share
    :param planned: planned drains and reboots
    :param inventory: names of the nodes of the inventory
    """
    return all(finding.status not in (FAIL, UNKNOWN) for finding in check_plan(cluster, planned, inventory))


def _allowed_text(cluster: ClusterIntent) -> str:
    return {"none": "no drain and no reboot", "drain": "no reboot", "reboot": "drains and reboots allowed"}[
        cluster.disruption
    ] + f" (rdma_cluster.disruption: {cluster.disruption})"


def _report_unread(kind: str, reason: str, cluster: ClusterIntent) -> Finding:
    why = (
        f"The objects of kind {kind} could not be read, so it is unknown which nodes would drain or reboot."
        " Nothing was applied."
    )
    remedy = (
        "If the user of the kubeconfig lacks the right to list this kind, run kubectl apply -f docs/rbac/look.yml as"
        " an admin of the cluster. If the API server does not serve this kind, correct the finding"
        " operators.definition. If the error reports too many requests, wait until the API server is less busy. Then"
        " run stage network again."
    )
    measured, expected = f"{kind} objects not read: {reason}", f"{kind} objects read; {_allowed_text(cluster)}"
    return Finding("network.disruption", f"cluster {kind}", UNKNOWN, measured, expected, why, remedy)


def _report_unlisted(
    planned: DisruptionPlan, inventory: typing.Container[str], cluster: ClusterIntent
) -> list[Finding]:
    """Return a warning that names the nodes outside of the inventory that get virtual functions, because they have the
    label that the policies select. Nodes that drain or reboot have a finding of their own.
    """
    names = [
        node.node
        for node in planned.nodes
        if node.action == "configure" and not node.listed and node.node not in inventory
    ]
    if not names:
        return []
    selector = ",".join(f"{key}={value}" for key, value in cluster.node_selector.items())
    why = (
        f"These nodes have the label {selector}, which the policies select, so the operator creates virtual functions"
        f" on their NICs as well, and a link may be interrupted meanwhile: {join_first(names, _MOST_UNLISTED)}."
    )
    remedy = (
        "Add the nodes to the group rdma_nodes of the inventory, or set rdma_cluster.node_selector to a label that only"
        " the nodes of the inventory have. Then run stage network again."
    )
    measured = f"{count_of(len(names), 'node')} outside of the inventory: virtual functions are created"
    subject = "nodes outside of the inventory"
    return [Finding("network.disruption", subject, WARN, measured, "only nodes of the inventory change", why, remedy)]


def _report_missing(name: str, cluster: ClusterIntent) -> Finding:
    return Finding(
        "network.disruption",
        name,
        UNKNOWN,
        "drain and reboot not determined",
        f"drain and reboot determined; {_allowed_text(cluster)}",
        "The run determined which other nodes drain or reboot. This node was added to the group rdma_nodes of the"
        " inventory after that.",
        f"Run stage network again: it then also determines this for {name}.",
    )


def list_refusals(
    cluster: ClusterIntent,
    planned: DisruptionPlan,
    inventory: typing.Sequence[str],
    waivers: typing.Sequence[Waiver] = (),
) -> tuple[str, ...]:
    """Return the reasons for which the objects must not be applied, each with its remedy; empty if they may be applied.

    :param cluster: settings of the intent that all fabrics share
    :param planned: planned drains and reboots
    :param inventory: names of the nodes of the inventory
    :param waivers: waivers of the intent. Only the refusal that a node itself uses a NIC whose driver changes can be
        waived; waivers of other findings are ignored
    """
    refused = (
        finding
        for finding in check_plan(cluster, planned, inventory)
        if finding.status in (FAIL, UNKNOWN)
        and not (finding.check == UPLINK and any(waiver.covers(finding) for waiver in waivers))
    )
    return tuple(f"{finding.subject}: {finding.measured}. {finding.why} {finding.remedy}" for finding in refused)


def _find_needed_level(planned: DisruptionPlan) -> str:
    """Return the lowest value of rdma_cluster.disruption that allows the complete plan.

    :param planned: planned drains and reboots
    """
    actions = {node.action for node in planned.nodes}
    return next((action for action in ("reboot", "drain") if action in actions), "none")


def _check_disruption(node: NodePlan, planned: DisruptionPlan, cluster: ClusterIntent) -> Finding:
    subject, expected = node.title, _allowed_text(cluster)
    if node.action == "unknown":
        why = (
            "Without this information, it is unknown whether the change drains or reboots the node. Nothing was"
            " applied."
            if node.reasons
            else "The state of the node that the operator reports was not read, so it is unknown whether the change"
            " drains or reboots the node. Nothing was applied."
        )
        return Finding(
            "network.disruption",
            subject,
            UNKNOWN,
            f"drain and reboot not determined{': ' if node.reasons else ''}{'; '.join(node.reasons)}",
            f"drain and reboot determined; {expected}",
            why,
            _describe_unknown_remedy(node),
        )
    created = "; ".join(node.reasons) or "virtual functions are created where none exist"
    measured = {"nothing": "nothing changes", "configure": f"{created}, without a drain or reboot"}.get(
        node.action if node.driver != "remove" else ""
    )
    action = _describe_action(node, planned)
    measured = measured or (f"{action}: {'; '.join(node.reasons)}" if node.reasons else action)
    if _RANK[node.action] > _RANK[cluster.disruption]:
        why = f"The change of the node needs a {node.action}. The intent does not allow that, so nothing was applied."
        if node.undrained:
            why = (
                "The change takes the link of a NIC that the node uses, or virtual functions that pods use, without a"
                " drain. That counts as a drain. The intent does not allow that, so nothing was applied."
            )
        # the level of the whole plan, since a lower one would be refused for the other nodes
        level = _find_needed_level(planned)
        remedy = (
            f"When the nodes may go down, set rdma_cluster.disruption to {level}. Otherwise undo the changes under"
            " 'measured'. Then run stage network again."
        )
        return Finding("network.disruption", subject, FAIL, measured, expected, why, remedy)
    if node.driver == "remove":
        why = (
            "The change takes the NIC driver (ofedDriver) out of the NicClusterPolicy. NVIDIA's network operator then"
            " removes the driver from all of its nodes at the same time, and drains none of them. Running pods lose"
            " their RDMA devices."
        )
        if node.doubts:
            why += f" Other possible uses: {join_first(node.doubts, _NAMED)}."
        remedy = (
            "If the run had --check, nothing was applied: stop the jobs on the node, then run stage network without"
            " --check. Otherwise the change was applied: restart the jobs on the node, then run stage network again."
        )
        return Finding(
            "network.disruption", subject, WARN, measured, f"{expected}; no running pod loses a device", why, remedy
        )
    if node.undrained or node.loses_link:
        why = (
            f"The operator makes this change {'after' if is_drained(node, planned) else 'without'} a drain. A NIC that"
            " carries the default route, an address of the node or a bond may have no link during the change, so the"
            " node may be unreachable until it ends."
            if node.loses_link
            else "The operator makes this change without a drain, while the NIC or its virtual functions are in use."
        )
        if node.pods and not is_drained(node, planned):
            why += f" Pods that use them: {join_first(node.pods, _NAMED)}."
        if node.lost:
            why += f" The drain deletes pods that no controller recreates: {join_first(node.lost, _NAMED)}."
        if node.doubts:
            why += f" Other possible uses: {join_first(node.doubts, _NAMED)}."
        remedy = (
            "If the run had --check, nothing was applied: stop the jobs on the node and get access to its console, then"
            " run stage network without --check. Otherwise the change was applied: if the node does not return, restore"
            " its network from the console, then run stage network again."
        )
        expected = f"{expected}; no NIC in use changes"
        return Finding("network.disruption", subject, WARN, measured, expected, why, remedy)
    if node.pods and not is_drained(node, planned):
        why = (
            "disableDrain is true, so the operator does not evict pods. These pods lose their virtual functions while"
            f" they run: {join_first(node.pods, _NAMED)}."
        )
        return Finding(
            "network.disruption",
            subject,
            WARN,
            measured,
            f"{expected}; no running pod loses its virtual functions",
            why,
            "If the run had --check, nothing was applied: stop these pods, or set disableDrain of the"
            " SriovOperatorConfig to false, then run stage network without --check. Otherwise the change was applied:"
            " restart these pods, then run stage network again.",
        )
    if node.lost:
        why = f"The drain deletes pods that no controller recreates: {join_first(node.lost, _NAMED)}."
        return Finding(
            "network.disruption",
            subject,
            WARN,
            f"{measured}; {count_of(len(node.lost), 'pod')} without a controller",
            f"{expected}; each deleted pod has a controller",
            why,
            "If the run had --check, nothing was applied: save the definitions (kubectl get pod -o yaml) and the"
            " data of these pods, then run stage network without --check. After the drain, create the pods again.",
        )
    if node.doubts:
        return _report_doubts(node, measured, expected)
    return build_pass("network.disruption", subject, measured, expected)


def _report_doubts(node: NodePlan, measured: str, expected: str) -> Finding:
    evicts = "" if node.driver else ", and evicts no pod for that"
    why = f"The operator changes NICs that may be in use{evicts}: {join_first(node.doubts, _NAMED)}."
    remedy = (
        "If the run had --check, nothing was applied: stop the pods under 'why' that must not be interrupted, then"
        " run stage network without --check. Otherwise the change was applied: run kubectl get pods for these pods,"
        " and restart those that do not run."
    )
    return Finding(
        "network.disruption", node.title, WARN, measured, f"{expected}; no NIC that may be in use changes", why, remedy
    )


def _describe_unknown_remedy(node: NodePlan) -> str:
    """Return the remedy for a node whose state is unknown, which depends on the reason."""
    reasons = "; ".join(node.reasons)
    if "has no node with this name" in reasons:
        return (
            f"Run kubectl get nodes. If it lists the machine under another name, change {node.node} in the inventory to"
            " that name. If it does not list the machine, join the machine to the cluster, or remove it from the group"
            " rdma_nodes. Then run stage network again."
        )
    if "no MachineConfigPool selects both" in reasons:
        return "Correct the key of rdma_cluster.host that 'measured' names in the intent, then run stage network again."
    return (
        f"Follow the remedies of the findings operators.daemon and operators.node of {node.title}, then run stage"
        " network again."
    )


def _describe_action(node: NodePlan, planned: DisruptionPlan) -> str:
    if node.driver == "remove":
        return "the change removes the NIC driver (ofedDriver) from the node without a drain"
    if node.undrained:
        return "change of NICs in use without a drain"
    drains = is_drained(node, planned)
    pods = f", {count_of(len(node.pods), 'pod is', 'pods are')} evicted" if node.pods and drains else ""
    if drains:
        return f"{'drain and reboot' if node.action == 'reboot' else 'drain'}{pods}"
    return (
        "reboot without a drain (disableDrain)"
        if node.action == "reboot"
        else "virtual functions are removed without a drain (disableDrain)"
    )


def _report_in_the_way(kind: str, reason: str) -> Finding:
    why = (
        f"The objects of kind {kind} could not be read, so it is unknown whether they block a drain. Nothing was"
        " applied."
    )
    return Finding(
        "network.drain",
        f"cluster {kind}",
        UNKNOWN,
        f"{kind} objects not read: {reason}",
        f"{kind} objects read, and nothing that blocks a drain",
        why,
        describe_read_remedy("Then run stage network again."),
    )


def _report_blocked(node: NodePlan) -> Finding:
    firmware = [blocker for blocker in node.blockers if is_about_firmware(blocker)]
    lost = [blocker for blocker in node.blockers if is_loss(blocker) and blocker not in firmware]
    held = [blocker for blocker in node.blockers if blocker not in (*firmware, *lost)]
    why = (
        "The operator would cordon the node and wait forever, so nothing was applied."
        if held
        else "The pods would lose their network devices or share them, so nothing was applied."
        if any(map(takes_devices, lost))
        else "The firmware of a card has one number of virtual functions (NUM_OF_VFS) for all of its ports, and the"
        " SR-IOV operator would set another one than is needed, so nothing was applied."
        if firmware and not lost
        else "The operator would end these pods for good, or delete their data, so nothing was applied."
    )
    steps = []
    if any("MachineConfigPool" not in blocker for blocker in held):
        steps.append("let the PodDisruptionBudget allow an eviction (one more replica), or delete the pods")
    if any("MachineConfigPool" in blocker for blocker in held):
        steps.append("complete the update of the MachineConfigPool (unpause it, repair its degraded machines)")
    if firmware:
        steps.append("follow the instructions under 'measured' for the firmware of the cards")
    if lost:
        steps.append("follow the instructions under 'measured' for the pods that would be lost")
    text = "; ".join(steps)
    remedy = f"{text[:1].upper()}{text[1:]}. Then run stage network again."
    measured = "; ".join(blocker.rstrip(".") for blocker in node.blockers)
    return Finding("network.drain", node.node, FAIL, measured, "nothing that blocks a drain", why, remedy)


def _report_closed(why: str) -> Finding:
    """Return the failed finding that no node of the cluster may go down now.

    :param why: reason of the gate, as text
    """
    text = (
        "A node that goes down now could take down the control plane, be reprovisioned, or exceed the permitted number"
        " of unavailable nodes. The policies, pool configs and drivers were not applied."
    )
    return Finding(
        "network.drain",
        "cluster",
        FAIL,
        why,
        "the cluster tolerates that nodes go down",
        text,
        "Follow the instructions under 'measured', then run stage network again.",
    )


def _list_turns(pool: PoolPlan) -> Finding:
    if pool.blockers:
        why = "The nodes would wait forever for their turn, so nothing was applied."
        remedy = (
            "Set maxUnavailable of the SriovNetworkPoolConfig to at least 1, and assign each node to only one"
            " pool. Then run stage network again."
        )
        remedy = (
            "Repair or unpause the MachineConfigPool, keep only one KubeletConfig for it, or add the limits of CRI-O"
            " under 'measured' to rdma_cluster.host.memlock.ulimits. Then run stage network again."
            if pool.machines
            else remedy
        )
        return Finding(
            "network.drain", _name_pool(pool), FAIL, "; ".join(pool.blockers), "each node gets its turn", why, remedy
        )
    return build_pass("network.drain", _name_pool(pool), _describe_turns(pool), "each node gets its turn")


def _name_pool(pool: PoolPlan) -> str:
    if pool.machines:
        return f"MachineConfigPool {pool.name}"
    if pool.undrained:
        return "NICs in use"
    if pool.driver == "reload":
        return f"driver of ClusterPolicy {pool.name}"
    if pool.driver:
        return f"driver of NicClusterPolicy {pool.name}"
    return f"pool {pool.name}" if pool.name else "default pool"


def _describe_turns(pool: PoolPlan) -> str:
    if pool.waves is None:
        return "; ".join(pool.blockers)
    at_once = "all at once" if pool.at_once is None else f"{pool.at_once} at a time"
    once = ", rolled once" if pool.machines else ""
    return f"{count_of(len(pool.nodes), 'node')}, {at_once}, in {count_of(pool.waves, 'wave')}{once}; {pool.limit}"
