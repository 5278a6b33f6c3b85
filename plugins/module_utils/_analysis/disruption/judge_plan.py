# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the plan of drains and reboots: whether the intent permits it, and whether anything blocks it. Check ids:
``network.disruption``, ``network.drain``, ``network.lint_uplink``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, describe_rerun
from ..._model.base.text import join_first
from ..._model.intent.intent import ClusterIntent
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import HOST_KINDS
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Waiver, build_pass
from .driver_links import CHECK as UPLINK
from .driver_links import list_held_drivers
from .judge_drains import check_turns, report_blocked, report_closed, report_unread_blocker
from .judge_nodes import check_node, describe_allowed

#: nodes outside of the inventory that are named
_MOST_UNLISTED = 20
#: kinds without which it is not known which nodes the operator disturbs; the others only show what blocks it
_ESSENTIAL = (
    "Node",
    "SriovNetworkNodeState",
    "SriovNetworkNodePolicy",
    "SriovNetworkPoolConfig",
    "SriovOperatorConfig",
    "NicClusterPolicy",
    "NicNodePolicy",
    "ClusterPolicy",
    "NicConfigurationTemplate",
    *HOST_KINDS,
)


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
                f"drains and reboots of the nodes predicted; {describe_allowed(cluster)}",
                why,
                describe_rerun("network"),
            ),
        )
    found = [_report_unread(kind, reason, cluster) for kind, reason in planned.unread.items() if kind in _ESSENTIAL]
    found += [
        check_node(node, planned, cluster)
        for node in planned.nodes
        if node.listed or node.node in inventory or node.action in ("drain", "reboot")
    ]
    found += list_held_drivers(planned.nodes)
    found += _report_unlisted(planned, inventory, cluster)
    found += [_report_missing(name, cluster) for name in inventory if name not in {node.node for node in planned.nodes}]
    if not planned.pools:
        blocked = [report_blocked(node) for node in planned.nodes if node.blockers]
        if blocked:
            return (*found, *blocked)
        return (
            *found,
            build_pass("network.drain", "cluster", "no node is drained or rebooted", "nothing that blocks a drain"),
        )
    found += [report_unread_blocker(kind, reason) for kind, reason in planned.unread.items() if kind not in _ESSENTIAL]
    found += [report_blocked(node) for node in planned.nodes if node.blockers]
    found += [report_closed(why) for why in planned.closed]
    return (*found, *(check_turns(pool) for pool in planned.pools))


def may_go_on(cluster: ClusterIntent, planned: DisruptionPlan, inventory: typing.Sequence[str]) -> bool:
    """Return whether the objects may be applied: the intent permits the plan and nothing blocks it.

    :param cluster: settings of the intent that all fabrics share
    :param planned: planned drains and reboots
    :param inventory: names of the nodes of the inventory
    """
    return all(finding.status not in (FAIL, UNKNOWN) for finding in check_plan(cluster, planned, inventory))


def _report_unread(kind: str, reason: str, cluster: ClusterIntent) -> Finding:
    why = (
        f"The objects of kind {kind} could not be read, so it is unknown which nodes would drain or reboot."
        " Nothing was applied."
    )
    remedy = (
        "If the user of the kubeconfig lacks the right to list this kind, run kubectl apply -f docs/rbac/look.yml as"
        " an admin of the cluster, in the folder of the collection linerate.rdma. If the API server does not serve this"
        " kind, follow the remedy of the finding operators.definition. If the error reports too many requests, wait"
        " until the API server is less busy. Then run stage network again."
    )
    measured, expected = f"{kind} objects not read: {reason}", f"{kind} objects read; {describe_allowed(cluster)}"
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
        f"drain and reboot determined; {describe_allowed(cluster)}",
        "The run determined which other nodes drain or reboot. This node was added to the group rdma_nodes of the"
        " inventory after that.",
        f"Run stage network again: it then also determines this for {name}.",
    )


def list_refusals(
    cluster: ClusterIntent,
    planned: DisruptionPlan,
    inventory: typing.Sequence[str],
    waivers: typing.Sequence[Waiver] = (),
    stage: str = "network",
) -> tuple[str, ...]:
    """Return the reasons for which the objects must not be applied, each with its remedy; empty if they may be applied.

    :param cluster: settings of the intent that all fabrics share
    :param planned: planned drains and reboots
    :param inventory: names of the nodes of the inventory
    :param waivers: waivers of the intent. Only the refusal that a node itself uses a NIC whose driver changes can be
        waived; waivers of other findings are ignored
    :param stage: stage that makes the change, which the remedies name
    """
    refused = _find_refusals(cluster, planned, inventory, waivers)
    texts = (f"{finding.subject}: {finding.measured}. {finding.why} {finding.remedy}" for finding in refused)
    return tuple(text.replace("stage network", f"stage {stage}") for text in texts)


def is_forbidden(
    cluster: ClusterIntent,
    planned: DisruptionPlan,
    inventory: typing.Sequence[str],
    waivers: typing.Sequence[Waiver] = (),
) -> bool:
    """Return whether a known reason forbids to apply the objects. Return False if they are only refused because a state
    is unknown, such as that of an operator which check mode does not install.

    :param cluster: settings of the intent that all fabrics share
    :param planned: planned drains and reboots
    :param inventory: names of the nodes of the inventory
    :param waivers: waivers of the intent
    """
    return any(finding.status == FAIL for finding in _find_refusals(cluster, planned, inventory, waivers))


def _find_refusals(
    cluster: ClusterIntent,
    planned: DisruptionPlan,
    inventory: typing.Sequence[str],
    waivers: typing.Sequence[Waiver],
) -> list[Finding]:
    return [
        finding
        for finding in check_plan(cluster, planned, inventory)
        if finding.status in (FAIL, UNKNOWN)
        and not (finding.check == UPLINK and any(waiver.covers(finding) for waiver in waivers))
    ]
