# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks whether the operators have created what the objects of a fabric request. Check ids: ``network.ready``,
``network.allocatable``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of, describe_rerun, format_clause
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._model.kubernetes.wait import SyncFacts, SyncNode
from ..._model.run.findings import FAIL, UNKNOWN, Finding, Status, build_pass
from .applied_objects import find_check
from .facts import Facts

_LOOK = (
    "Run kubectl get sriovnetworknodestates -A --field-selector metadata.name=NODE -o yaml, and correct the error"
    " in syncStatus and lastSyncError of its status."
)


def check_allocatable(fabric: Fabric, name: str, facts: Facts) -> Finding:
    subject = f"{fabric.name} {name}"
    wanted = fabric.virtual_functions * fabric.select.hcas_per_node
    expected = f"{wanted} {fabric.resource_name} allocatable"
    refused = [
        item
        for item in facts.applied
        if item.fabric == fabric.name and item.kind == "SriovNetworkNodePolicy" and item.action == "refused"
    ]
    seen = _find_sync_node(fabric, name, facts.sync)
    if seen is None or (refused and seen.phase != "ready"):
        why, remedy = _explain_missing_wait(fabric, name, facts)
        if refused:
            why, remedy = (
                f"The policy {refused[0].name} was refused, so the operator creates no virtual functions for it.",
                "Follow the remedy of the finding network.policy_accepted of this policy, then run stage network"
                " again.",
            )
        return Finding("network.allocatable", subject, UNKNOWN, "allocatable resources not read", expected, why, remedy)
    measured = (
        f"{seen.allocatable if seen.allocatable is not None else 'no'} {fabric.resource_name} allocatable after"
        f" {facts.sync.waited_seconds if facts.sync else 0:.0f} s"
    )
    if seen.phase == "ready" and seen.allocatable == wanted:
        return build_pass("network.allocatable", subject, measured, expected)
    if seen.phase != "ready" and seen.allocatable == wanted:
        measured, expected = f"{measured}, not ready", f"{expected}, node ready for the fabric"
    if facts.unwritten:
        why, remedy = _explain_unwritten(facts, seen)
        return Finding("network.allocatable", subject, UNKNOWN, measured, expected, why, remedy)
    if seen.phase == "ready":
        why = (
            "The policy in the cluster is in force, but it requests another number of virtual functions than the"
            " intent: a tool changed the policy after the run applied it."
        )
        return Finding(
            "network.allocatable",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Run kubectl get sriovnetworknodepolicy -A -o yaml --show-managed-fields to find the tool that changes"
            " the policy, and stop it. Then run stage network again.",
        )
    if seen.phase == "failed":
        return Finding(
            "network.allocatable",
            subject,
            FAIL,
            measured,
            expected,
            f"The node cannot become ready for the fabric: {format_clause(seen.detail)}."
            if seen.allocatable != wanted
            else "The node offers this number, but the run stopped to wait for it, because the SR-IOV operator does not"
            f" complete the node. Last state: {format_clause(seen.detail)}.",
            _add_rerun(seen.remedy or _LOOK.replace("NODE", name)),
        )
    why = f"The wait ended before the node was ready for the fabric. Last state: {format_clause(seen.detail)}."
    remedy = (
        f"{seen.remedy or _LOOK.replace('NODE', name)} If the node only needs more time, raise"
        " rdma_cluster.wait_seconds. Then run stage network again."
    )
    return Finding("network.allocatable", subject, FAIL, measured, expected, why, remedy)


def check_ready(fabric: Fabric, name: str, facts: Facts) -> Finding:
    """Check that a node is ready for pods on a fabric without virtual functions: its attachment, its resource and its
    IP pool exist, as the wait of the stage observed.

    :param name: name of the node
    """
    subject, expected = f"{fabric.name} {name}", "node ready for pods of the fabric"
    seen = _find_sync_node(fabric, name, facts.sync)
    refused = next(
        (
            item
            for item in facts.applied
            if item.action == "refused" and item.fabric in (fabric.name, "") and item.kind != "Namespace"
        ),
        None,
    )
    if seen is None:
        why, remedy = _explain_missing_wait(fabric, name, facts)
        return Finding("network.ready", subject, UNKNOWN, "state of the node not read", expected, why, remedy)
    measured = f"{seen.phase} after {facts.sync.waited_seconds if facts.sync else 0:.0f} s"
    pieces = _find_other_pieces(fabric, seen)
    if seen.phase == "ready" and refused is not None:
        measured = f"{measured}, with the objects of an earlier run"
        expected = f"{expected}, with the objects of the current intent"
    if seen.phase == "ready" and refused is None and not facts.unwritten and pieces:
        why = (
            f"The device plugin on the node offers another number of the resource {fabric.resource_name} than the"
            " intent requires (pods_per_node, hcas_per_node). The device plugin runs with a different"
            " configuration, or another tool changes its configuration."
        )
        remedy = (
            "Find the pod of the device plugin on the node: kubectl -n nvidia-network-operator get pods -o wide"
            f" --field-selector spec.nodeName={name}. Delete this pod: kubectl -n nvidia-network-operator delete pod"
            " POD. Then run stage network again."
        )
        wanted = f"{count_pods_on_a_node(fabric)} {fabric.resource_name} allocatable"
        status: Status = FAIL if seen.allocatable is not None else UNKNOWN
        return Finding("network.ready", subject, status, pieces, wanted, why, remedy)
    if seen.phase == "ready" and refused is None:
        return build_pass("network.ready", subject, f"{measured}: {seen.detail}", expected)
    if facts.unwritten:
        why, remedy = _explain_unwritten(facts, seen)
        return Finding("network.ready", subject, UNKNOWN, measured, expected, why, remedy)
    if seen.phase == "ready" and refused is not None:
        why = (
            f"The objects in the cluster are from an earlier run, because {refused.kind} {refused.name} was refused in"
            " this run."
        )
        return Finding(
            "network.ready",
            subject,
            FAIL,
            measured,
            expected,
            why,
            f"Follow the remedy of the finding {find_check(refused.kind)} of this object, then run stage network"
            " again.",
        )
    why = (
        f"The node cannot become ready for the fabric: {format_clause(seen.detail)}."
        if seen.phase == "failed"
        else f"The wait ended before the node was ready for the fabric. Last state: {format_clause(seen.detail)}."
    )
    remedy = _add_rerun(
        seen.remedy
        or "Correct the cause under 'why'. If the node only needs more time, raise rdma_cluster.wait_seconds."
    )
    return Finding("network.ready", subject, FAIL, measured, expected, why, remedy)


def _explain_unwritten(facts: Facts, seen: SyncNode) -> tuple[str, str]:
    """Return the cause and the remedy for a node of a run that applied no objects.

    :param seen: last state of the node
    """
    cause, remedy = (
        ("it ran with --check", "Run stage network without --check.")
        if facts.check_mode
        else (
            "its plan was refused",
            "Follow the remedies of the findings network.disruption and network.drain, then run stage network again.",
        )
    )
    return f"This run applied no objects, because {cause}. Current state: {format_clause(seen.detail)}.", remedy


def _add_rerun(remedy: str) -> str:
    """Return a remedy with the instruction to run stage network again at its end, unless it names a stage to run
    already.
    """
    return remedy if "run stage" in remedy else f"{remedy.rstrip('.')}. Then run stage network again."


def _find_other_pieces(fabric: Fabric, seen: SyncNode) -> str:
    """Return the amount of its extended resource that a node offers, as measured value of a finding, if it differs from
    the amount that the intent requires. The text is empty if the amounts are equal, and if the fabric has no extended
    resource.

    A node whose pods get whole interfaces may offer more than the pods of the fabric need; the text is empty then as
    well.

    :param seen: state of the node in the wait for the network
    """
    wanted, offered = count_pods_on_a_node(fabric), seen.allocatable
    if not fabric.resource_name or offered == wanted:
        return ""
    if offered is not None and offered > wanted and not find_traits(fabric).shared:
        return ""
    return f"{offered if offered is not None else 'no'} {fabric.resource_name} allocatable"


def _explain_missing_wait(fabric: Fabric, name: str, facts: Facts) -> tuple[str, str]:
    """Return the reason why the stage did not wait until the network of the fabric is ready on a node, and the remedy.

    :param name: name of the node
    """
    refused = next((item for item in facts.applied if item.fabric == fabric.name and item.action == "refused"), None)
    if refused is not None:
        return (
            f"{refused.kind} {refused.name} was refused, so the network of the fabric cannot become ready.",
            f"Follow the remedy of the finding {find_check(refused.kind)} of this object, then run stage network"
            " again.",
        )
    if fabric.name in facts.linted.held:
        return "The fabric has findings network.lint_*, so no object of the fabric was applied.", (
            "Correct the causes in the findings network.lint_* of the fabric, then run stage network again."
        )
    if fabric.name in facts.unmade:
        return (
            f"No object was made for the fabric: {format_clause(facts.unmade[fabric.name])}.",
            "Correct the cause under 'why', then run stage network again.",
        )
    if not facts.nodes:
        return (
            "The group rdma_nodes of the inventory is empty, so the stage did not wait for any node.",
            "Put the nodes into the group rdma_nodes of the inventory, then run stage network again.",
        )
    if facts.sync is None:
        return (
            "The run ended before it waited until the operators configured the nodes.",
            describe_rerun("network"),
        )
    waited = sorted({node.node for node in facts.sync.nodes if node.fabric == fabric.name})
    if not waited:
        return (
            f"The run did not wait for fabric {fabric.name}: the fabric was added to the intent after the run started.",
            "Run stage network again with the current intent.",
        )
    return (
        f"The run waited for {count_of(len(waited), 'other node')} of the fabric, but not for {name}: the node was"
        f" added"
        " to the group rdma_nodes of the inventory after the run started.",
        f"Run stage network again: it then also waits for {name}.",
    )


def _find_sync_node(fabric: Fabric, name: str, sync: typing.Optional[SyncFacts]) -> typing.Optional[SyncNode]:
    return (
        next((node for node in sync.nodes if (node.fabric, node.node) == (fabric.name, name)), None) if sync else None
    )
