# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the drain, the reboot or the change of one node: whether the intent permits it, and what it interrupts.
Check id: ``network.disruption``.
"""

from __future__ import annotations

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import DisruptionPlan, NodePlan
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .lost_pods import is_drained

#: pods that are named
_NAMED = 5
#: the rank of an action, and of the value of rdma_cluster.disruption that allows it
_RANK: dict[str, int] = {"nothing": 0, "configure": 0, "none": 0, "drain": 1, "reboot": 2}


def describe_allowed(cluster: ClusterIntent) -> str:
    """Return as text which disruption the intent allows, with the setting."""
    return {"none": "no drain and no reboot", "drain": "no reboot", "reboot": "drains and reboots allowed"}[
        cluster.disruption
    ] + f" (rdma_cluster.disruption: {cluster.disruption})"


def _find_needed_level(planned: DisruptionPlan) -> str:
    """Return the lowest value of rdma_cluster.disruption that allows the complete plan.

    :param planned: planned drains and reboots
    """
    actions = {node.action for node in planned.nodes}
    return next((action for action in ("reboot", "drain") if action in actions), "none")


def check_node(node: NodePlan, planned: DisruptionPlan, cluster: ClusterIntent) -> Finding:
    """Return the finding on whether the intent permits the disruption of a node, and on what its change interrupts.

    :param node: plan of the node
    :param planned: the complete plan, which contains the node
    :param cluster: settings of the intent that all fabrics share
    """
    subject, expected = node.title, describe_allowed(cluster)
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
