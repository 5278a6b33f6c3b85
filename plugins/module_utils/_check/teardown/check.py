# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings after a teardown: whether everything that linerate.rdma created is removed. Check ids:
``teardown.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.installation import describe_helm_removal
from ..._analysis.disruption import judge_rolls
from ..._model.base.marks import SELECTOR
from ..._model.base.phrases import describe_read_remedy, format_clause
from ..._model.intent.intent import Intent
from ..._model.intent.profiles import find_traits
from ..._model.kubernetes.wait import SyncFacts
from ..._model.operators.olm import BUSY, IN_USE, NEEDED, RetainedObject
from ..._model.operators.operators import OPERATORS, SRIOV, OperatorsSeen
from ..._model.operators.recognition import is_named
from ..._model.operators.sriov_operator import OperatorFacts
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from .facts import Facts
from .hosts import check_drop_in, check_kernel_arguments, check_settings
from .objects import check_objects, report_definitions, report_stays

#: subject of the findings on nodes if the run had no node
_NO_NODES = "inventory"
#: remedy if the inventory names no node
_ADD_NODES = "Add the nodes to the group rdma_nodes of the inventory, then run the teardown again."


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Check that the teardown has removed each object of the collection, the settings of each fabric on each node, the
    changes of each host, and the SR-IOV operator if this was requested. Return findings on each object, each fabric on
    each node, each node and the operator.

    In check mode return findings only for nodes that are reached by observers. A teardown does not change these nodes,
    so the findings show the result in advance.
    """
    if facts.check_mode:
        return tuple(
            finding
            for name in facts.by_pods
            for finding in (check_drop_in(name, facts, intent), check_kernel_arguments(name, facts))
        )
    findings = check_objects(facts.removed)
    findings += [report_stays(item) for item in facts.stays]
    findings += _check_releases(facts.left)
    # where nobody is named, nobody was looked at
    nodes = facts.nodes or (_NO_NODES,)
    for fabric in (fabric for fabric in intent.fabrics if find_traits(fabric).functions):
        findings += [_check_node(fabric.name, name, facts.sync) for name in nodes]
    findings += _check_rolls(facts)
    findings += [check_drop_in(name, facts, intent) for name in nodes]
    findings += [check_kernel_arguments(name, facts) for name in nodes]
    if intent.cluster.tuning.set:
        findings += [
            check_settings(name, facts.kernel_settings.get(name)) for name in nodes if name not in facts.by_pods
        ]
    if facts.operator_removed:
        findings.append(_check_operator(facts.operators, facts.stays))
        if facts.operators is not None and not facts.operators.installations and not facts.operators.errors:
            findings += report_definitions(facts.operators.crds, facts.stays)
    return tuple(
        dataclasses.replace(item, remedy=_ADD_NODES) if item.subject == _NO_NODES and item.status != PASS else item
        for item in findings
    )


def _check_rolls(facts: Facts) -> typing.Iterator[Finding]:
    """Check that all MachineConfigs and KubeletConfigs were found, and that the MachineConfigPools have finished the
    configuration without them.
    """
    if facts.hosts_unread:
        why = (
            "The API server did not return all MachineConfigs and KubeletConfigs, so some of linerate.rdma may still"
            f" exist. Its error: {format_clause('; '.join(facts.hosts_unread[:3]))}."
        )
        again = describe_read_remedy("Then run the teardown again.")
        remedy = (
            "Look for them as an admin of the cluster: kubectl get machineconfigs,kubeletconfigs -l"
            f" {SELECTOR}. If there are some, run the teardown again as a user who may list and delete them."
            f" If there are none, {again[:1].lower()}{again[1:]}"
        )
        subject = "MachineConfigs and KubeletConfigs"
        yield Finding("teardown.object", subject, UNKNOWN, "objects not read", "0 objects left", why, remedy)
    if facts.rolls is None:
        why = (
            "The run ended before it checked whether MachineConfigs or a KubeletConfig of linerate.rdma exist, and"
            " whether the nodes returned after their removal."
        )
        measured = "update of the machines after the removal not checked"
        expected = (
            "all machines updated to a configuration without the MachineConfigs and KubeletConfig of linerate.rdma"
        )
        yield Finding(
            "teardown.roll", "MachineConfigPools", UNKNOWN, measured, expected, why, "Run the teardown again."
        )
    yield from judge_rolls.check_rolls(facts.rolls or (), facts.roll_error, "teardown.roll")


def _check_releases(left: typing.Optional[OperatorsSeen]) -> list[Finding]:
    """Return warnings on operators that a run installed by Helm, other than the SR-IOV operator. Other users may depend
    on them by now, so a teardown does not remove them.

    :param left: operators that the cluster has after the teardown; None if the run did not query them
    """
    expected = "no operator of linerate.rdma left"
    if left is None:
        why = "The run ended before it queried the API server for the remaining operators."
        remedy = "Run the teardown again."
        return [Finding("teardown.stays", "operators", UNKNOWN, "operators not read", expected, why, remedy)]
    if left.errors:
        why = f"The remaining operators are unknown: {format_clause('; '.join(left.errors[:3]))}."
        remedy = describe_read_remedy("Then run the teardown again.")
        return [Finding("teardown.stays", "operators", UNKNOWN, "operators not read", expected, why, remedy)]
    findings = []
    # what was installed last needs what was installed first
    for name in (name for name in reversed(tuple(OPERATORS)) if name in left.made and name != SRIOV):
        operator = OPERATORS[name]
        if any(item.operator == name and item.origin == "gitops" for item in left.controllers):
            # it is that of the admins of a repository now
            continue
        found = next((item for item in left.controllers if item.operator == name and item.origin == "helm"), None)
        namespace = found.name.partition("/")[0] if found else operator.chart.namespace if operator.chart else name
        release = found.release if found else ""
        subject = f"Helm release {namespace}/{release}" if release else f"namespace of operator {name}"
        why = (
            ("A run of linerate.rdma installed the operator. The teardown leaves it, because other users may use it.")
            if release
            else "The operator in this namespace is gone, but the namespace still exists."
        )
        remedy = f"If it is no longer needed: {describe_helm_removal(operator, release, namespace)}."
        findings.append(Finding("teardown.stays", subject, WARN, "not removed", "gone", why, remedy))
    return findings


def _check_node(fabric: str, name: str, sync: typing.Optional[SyncFacts]) -> Finding:
    subject, expected = f"{fabric} {name}", "0 virtual functions of the fabric, removal completed"
    seen = next((node for node in sync.nodes if (node.fabric, node.node) == (fabric, name)), None) if sync else None
    if seen is None:
        return Finding(
            "teardown.virtual_functions",
            subject,
            UNKNOWN,
            "not checked",
            expected,
            "The run ended before it read the state of the virtual functions from the API server."
            if sync is None
            else "The group rdma_nodes of the inventory is empty, so no node was checked."
            if name == _NO_NODES
            else f"The API server returned no state of the virtual functions of {name} (SriovNetworkNodeState).",
            "Run the teardown again."
            if sync is None
            else _ADD_NODES
            if name == _NO_NODES
            else f"Run kubectl get node {name}. If it does not exist, remove {name} from the group rdma_nodes. If it"
            f" exists, drain it, run grep . /sys/class/infiniband/*/device/sriov_numvfs on {name}, and write 0"
            " as root to each file that has another number. Then run the teardown again. If the finding remains"
            " although all files contain 0, no VF is left: waive it.",
        )
    if seen.phase == "ready":
        return build_pass("teardown.virtual_functions", subject, seen.detail, expected)
    return Finding(
        "teardown.virtual_functions",
        subject,
        FAIL,
        f"{format_clause(seen.detail, 'state not reported')};"
        f" {'removal failed' if seen.phase == 'failed' else 'removal not completed'}",
        expected,
        "The config daemon of the SR-IOV operator reports that its last change of the node failed."
        if seen.phase == "failed"
        else "The waiting time of the run ended before the SR-IOV operator had completed the removal. Its config daemon"
        " may still wait for a drain or a reboot of the node.",
        seen.remedy
        or f"Find the pod of the config daemon on {name} (kubectl get pods -A -o wide -l"
        f" app=sriov-network-config-daemon --field-selector spec.nodeName={name}), and read its log (kubectl"
        " logs). If it shows an error, correct it. If it waits for the drain, end the pods that kubectl get pods"
        f" -A --field-selector spec.nodeName={name} lists as Terminating. If it waits for a reboot, drain the"
        " node and reboot it. Then run the teardown again.",
    )


def _check_operator(operators: typing.Optional[OperatorFacts], stays: typing.Iterable[RetainedObject]) -> Finding:
    if operators is None or operators.errors:
        why = (
            "The run ended before it queried the API server for the operator."
            if operators is None
            else f"The API server did not return some objects: {format_clause('; '.join(operators.errors[:3]))}."
        )
        remedy = (
            "Run the teardown again."
            if operators is None
            else "Run kubectl get deployments -A. If it is forbidden, an admin of the cluster must give the user of"
            " the kubeconfig the rights: kubectl apply -f docs/rbac/look.yml. If it fails otherwise, correct"
            " the kubeconfig or the API server. Then run the teardown again."
        )
        return Finding(
            "teardown.operator", "SR-IOV network operator", UNKNOWN, "operator not read", "operator gone", why, remedy
        )
    left = [f"{item.deployment.namespace}/{item.deployment.name}" for item in operators.installations]
    if not left:
        return build_pass("teardown.operator", "SR-IOV network operator", "gone", "gone")
    stays = tuple(stays)
    busy = next((item for item in stays if item.why.startswith(BUSY)), None)
    if busy is not None:
        return Finding(
            "teardown.operator",
            "SR-IOV network operator",
            FAIL,
            f"Deployments of the operator: {', '.join(left)}",
            "gone",
            f"The operator was not removed, because its nodes would stay drained and cordoned without it:"
            f" {format_clause(busy.why)}.",
            busy.remedy,
        )
    kept = [
        item
        for item in stays
        if item.why.startswith((IN_USE, NEEDED))
        and (item.subject.startswith("Helm release ") or is_named(item.subject, SRIOV))
    ]
    if kept:
        return Finding(
            "teardown.operator",
            "SR-IOV network operator",
            WARN,
            ", ".join(left),
            "gone, or left intentionally",
            f"The operator was not removed: {format_clause(kept[0].why)}.",
            kept[0].remedy,
        )
    why = (
        "Helm removes only the release that it installed, and another tool installed these Deployments of the operator."
    )
    return Finding(
        "teardown.operator",
        "SR-IOV network operator",
        FAIL,
        f"Deployments of the operator: {', '.join(left)}",
        "gone",
        why,
        "Remove the operator with the tool that installed it, then run the teardown again.",
    )
