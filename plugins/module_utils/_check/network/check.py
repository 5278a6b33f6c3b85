# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage network: the API server accepted the Kubernetes objects of the fabrics, and the operators created
the resources that these objects request. Check ids: ``network.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.addresses import in_use as ipam
from ..._analysis.controllers.labelled_objects import fold_alike, name_kind
from ..._analysis.controllers.unread import count_unread
from ..._analysis.disruption import judge_plan, machine_config
from ..._model.base.marks import INTENT_LABEL, SELECTOR
from ..._model.base.phrases import count_of, describe_rerun, format_clause
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import attachment_kind, count_pods_on_a_node, find_traits
from ..._model.kubernetes.addresses import AddressFacts
from ..._model.kubernetes.apply import COPIED, FOREIGN, OTHER_INTENT, OTHER_POOL, TAKEN, AppliedObject, Leftovers
from ..._model.kubernetes.disruption import DisruptionPlan
from ..._model.kubernetes.host import KubeletStatus, Roll
from ..._model.kubernetes.own_kinds import NETWORKS
from ..._model.kubernetes.wait import SyncFacts, SyncNode
from ..._model.run.findings import FAIL, SKIPPED, UNKNOWN, WARN, Finding, Status, build_pass
from ..._parse.kubernetes.refusal import explain, unknown_fields
from .leftover_remedies import describe_leftover_remedy
from .wished import ENDED_EARLY, find_unapplied

_POLICY, _ATTACHMENT = "network.policy_accepted", "network.attachment_accepted"
_CHECKS = {
    "SriovNetworkNodePolicy": _POLICY,
    **dict.fromkeys(NETWORKS, _ATTACHMENT),
}


_LOOK = (
    "Read syncStatus and lastSyncError in the status of the node: kubectl get sriovnetworknodestates -A"
    " --field-selector metadata.name=NODE -o yaml. Correct the error that they show."
)


@dataclasses.dataclass(frozen=True)
class LintFacts:
    """The result of the linter, which judges the objects of the fabrics before they are applied.

    :ivar findings: findings of the linter
    :ivar held: fabrics whose objects were not applied, each with the reason
    :ivar errors: data that the linter could not read, each with the reason
    """

    findings: tuple[Finding, ...] = ()
    held: dict[str, str] = dataclasses.field(default_factory=dict)
    errors: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Facts:
    """The facts by which stage network is judged, besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar applied: outcome of each object
    :ivar sync: answer of sriov_sync: progress of each node of each fabric; None if it did not run
    :ivar unmade: fabrics whose objects could not be generated, each with the reason
    :ivar check_mode: whether ansible-playbook ran with --check
    :ivar plan: answer of sriov_plan: drains and reboots; None if it did not run
    :ivar ipam: answer of address_info: addresses in use; None if it did not run
    :ivar lint: result of the linter before the objects were applied; None if it did not run
    :ivar rolls: result of the roll of each MachineConfigPool to its new configuration
    :ivar kubelet: state of the KubeletConfigs after these rolls; None if it was not read
    :ivar roll_error: why the pools did not finish the new configuration; empty if they did
    :ivar leftovers: objects of the collection that the intent does not contain; None if they were not searched for
    :ivar allowed: whether the plan permitted writing; if not, all later steps were a dry run
    """

    nodes: tuple[str, ...] = ()
    applied: tuple[AppliedObject, ...] = ()
    sync: typing.Optional[SyncFacts] = None
    unmade: dict[str, str] = dataclasses.field(default_factory=dict)
    check_mode: bool = False
    plan: typing.Optional[DisruptionPlan] = None
    ipam: typing.Optional[AddressFacts] = None
    lint: typing.Optional[LintFacts] = None
    rolls: tuple[Roll, ...] = ()
    kubelet: typing.Optional[KubeletStatus] = None
    roll_error: str = ""
    leftovers: typing.Optional[Leftovers] = None
    allowed: bool = True

    @property
    def unwritten(self) -> bool:
        """Return whether the run wrote nothing to the cluster, in check mode or because the plan did not permit it."""
        return self.check_mode or not self.allowed

    @property
    def linted(self) -> LintFacts:
        """Return the result of the linter; an empty result if it did not run."""
        return self.lint or LintFacts()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of stage network: on addresses, the linter, the disruption of the nodes, the applied objects,
    the MachineConfigPools, each fabric on each node, and leftovers.
    """
    findings = [*ipam.check(intent, facts.nodes, facts.ipam), *_check_lint_read(facts.lint), *facts.linted.findings]
    findings += judge_plan.check_plan(intent.cluster, facts.plan, facts.nodes)
    fabrics = {fabric.name for fabric in intent.fabrics}
    # what was refused counts, even where the intent has no such fabric any more
    findings += [_check_shared(item) for item in facts.applied if item.fabric not in fabrics]
    findings += find_unapplied(intent, facts.applied, {*facts.linted.held, *facts.unmade})
    findings += machine_config.check_plan(facts.rolls, facts.roll_error)
    findings += (
        machine_config.report_not_rolled(facts.plan, facts.rolls)
        if not facts.unwritten and not facts.roll_error
        else ()
    )
    findings += (
        machine_config.check_kubelet(facts.kubelet, facts.unwritten) if intent.cluster.host.kubelet is not None else ()
    )
    for fabric in intent.fabrics:
        findings += _check_objects(fabric, facts)
        nodes = facts.nodes or ("inventory",)
        findings += [
            _check_allocatable(fabric, name, facts)
            if find_traits(fabric).functions
            else _check_ready(fabric, name, facts)
            for name in nodes
        ]
    return (*findings, *_report_leftovers(intent, facts))


def _check_lint_read(lint: typing.Optional[LintFacts]) -> list[Finding]:
    if lint is None:
        why = "The run ended before it checked the objects against the nodes."
        return [
            Finding(
                "network.lint_read",
                "cluster",
                UNKNOWN,
                "objects not checked",
                "objects checked against the nodes before they are applied",
                why,
                describe_rerun("network"),
            )
        ]
    if not lint.errors:
        return []
    why = (
        f"The API server did not return all kinds: {format_clause('; '.join(lint.errors[:5]))}. The objects were"
        " applied without a check against these kinds."
    )
    remedy = (
        "If the user of the kubeconfig has no right to read these kinds (kubectl auth can-i list KIND prints no), set"
        " the groups in docs/rbac/look.yml to groups of this user, and run kubectl apply -f docs/rbac/look.yml as an"
        " admin of the cluster. Otherwise correct the error in the message. Then run stage network again."
    )
    return [
        Finding(
            "network.lint_read",
            "cluster",
            UNKNOWN,
            count_unread(lint.errors, "kind"),
            "all kinds read that the check of the objects needs",
            why,
            remedy,
        )
    ]


def _check_shared(item: AppliedObject) -> Finding:
    check_id = "network.namespace_accepted" if item.kind == "Namespace" else "network.object_accepted"
    return _judge_applied_object(item, check_id, f"{item.kind} {item.name}")


def _check_objects(fabric: Fabric, facts: Facts) -> list[Finding]:
    mine = [item for item in facts.applied if item.fabric == fabric.name]
    expected = [(_POLICY, "SriovNetworkNodePolicy", "")] if find_traits(fabric).functions else []
    expected += [(_ATTACHMENT, attachment_kind(fabric), fabric.network.name)] if attachment_kind(fabric) else []
    if fabric.name in facts.linted.held:
        why = f"No object of the fabric was applied: {facts.linted.held[fabric.name]}."
        remedy = (
            "Correct the causes in the findings network.lint_*, or cover the findings with a waiver, so that the API"
            " server decides about the objects. Then run stage network again."
        )
        return [
            Finding(
                check_id,
                fabric.name,
                SKIPPED,
                "not applied because of findings network.lint_*",
                "accepted by the API server",
                why,
                remedy,
            )
            for check_id, _kind, _name in expected
        ]
    findings = [
        _judge_applied_object(
            item, _CHECKS.get(item.kind, "network.object_accepted"), f"{fabric.name} {item.kind} {item.name}"
        )
        for item in mine
    ]
    for check_id, what, name in expected:
        if not any(item.kind == what and name in ("", item.name) for item in mine):
            unmade = facts.unmade.get(fabric.name)
            why = unmade or (
                f"The fabric requires a {what}. The run sent other objects, but not this object: the fabric was changed"
                " in the intent after the run started."
                if facts.applied
                else f"The fabric requires a {what}. The run ended before it sent any object to the API server."
            )
            findings.append(
                Finding(
                    check_id,
                    fabric.name,
                    FAIL,
                    f"no {what} {name}".rstrip(),
                    f"{what} accepted by the API server",
                    why,
                    "Correct this cause, then run stage network again."
                    if unmade
                    else "Run stage network again with the current intent."
                    if facts.applied
                    else ENDED_EARLY,
                )
            )
    return findings


def _report_leftovers(intent: Intent, facts: Facts) -> typing.Iterator[Finding]:
    """Warn about objects that an earlier run applied for another intent.

    Yield one pass if there are none, and a finding of status ``unknown`` if the objects could not be listed.

    Objects of a fabric that was held back or could not be generated are not leftovers, since a later run may still need
    them.
    """
    check_id, expected = "network.leftover", f"only objects of the current intent have the label {SELECTOR}"
    seen = facts.leftovers
    if seen is None or seen.errors:
        measured, why = (
            "objects not listed",
            "The run ended before it listed the objects that an earlier run created in the cluster.",
        )
        if seen is not None:
            measured, why = (
                count_unread(seen.errors, "kind"),
                "Objects of an earlier intent may be left, because the API server did not list all kinds of objects."
                f" The errors are: {format_clause('; '.join(seen.errors[:5]))}.",
            )
        remedy = (
            "If the errors contain forbidden, give, as an admin of the cluster, the user of the kubeconfig the rights"
            " in docs/rbac/look.yml: kubectl apply -f docs/rbac/look.yml. Otherwise correct the errors. Then run stage"
            " network again."
        )
        if seen is None:
            remedy = "Run stage network again."
        yield Finding(check_id, "cluster", UNKNOWN, measured, expected, why, remedy)
        return
    fabrics = {fabric.name for fabric in intent.fabrics}
    left = [item for item in seen.objects if item.fabric not in {*facts.linted.held, *facts.unmade}]
    found: list[tuple[AppliedObject, Finding]] = []
    for item in left:
        why = "An earlier run created the object for a different intent."
        if item.fabric:
            now = (
                "for which the current intent requires a different object"
                if item.fabric in fabrics
                else "which the current intent does not contain"
            )
            why = f"An earlier run created the object for fabric {item.fabric}, {now}."
        if item.refusal:
            why = f"An earlier run created the object: {format_clause(item.refusal)}."
        if item.kind == "SriovNetworkNodePolicy":
            why += " The policy still reserves its virtual functions."
        if item.reason == COPIED:
            why = "No run wrote the object: a user copied it with its labels. A teardown does not delete it."
        remedy = describe_leftover_remedy(item)
        subject, measured = f"{item.kind} {item.name}", f"has the label {SELECTOR}, is not in the intent"
        found.append((item, Finding(check_id, subject, WARN, measured, expected, why, remedy)))
    yield from fold_alike(found)
    if seen.more:
        why = (
            f"The other findings network.leftover name the first objects. {count_of(seen.more, 'more object')} with"
            f" this"
            " label may be left from an earlier intent, or a user set the label."
        )
        kinds = ",".join(sorted({name_kind(item.kind) for item in seen.objects})) or "network-attachment-definitions"
        remedy = (
            f"List them: kubectl get {kinds} -A -l {SELECTOR} -L {INTENT_LABEL}. The last column names the intent of an"
            " object: leave those of another intent to their owner. Delete only those of this intent that it does not"
            " contain; the deletion of policies and machine configurations drains or reboots nodes."
            " If a user created an object, ask the user to remove the label. Then run stage network again."
        )
        measured = f"{count_of(seen.more, 'more object')} with this label, not checked"
        yield Finding(check_id, "more objects", WARN, measured, expected, why, remedy)
    elif not left:
        yield build_pass(check_id, "cluster", "no other object has this label", expected)


def _judge_applied_object(item: AppliedObject, check_id: str, subject: str) -> Finding:
    expected = "accepted by the API server and its webhooks"
    dropped = unknown_fields(item.warnings) if item.action in TAKEN else ()
    if dropped:
        cause = explain("; ".join(item.warnings))
        why, remedy = cause if cause is not None else ("", "")
        return Finding(
            check_id, subject, FAIL, f"{item.action} without the fields {', '.join(dropped)}", expected, why, remedy
        )
    if item.action in TAKEN:
        return build_pass(
            check_id,
            subject,
            item.action + (f"; warnings: {'; '.join(item.warnings)}" if item.warnings else ""),
            expected,
        )
    if item.action == "unjudged":
        why = (
            "In check mode, the API server could not check the object, because an object on which it depends, such as"
            f" {f'its namespace {item.namespace}' if item.namespace else 'the definition of its kind'}, does not exist"
            " yet."
        )
        return Finding(
            check_id,
            subject,
            UNKNOWN,
            f"would be created{f': {item.refusal}' if item.refusal else ''}",
            expected,
            why,
            "If stage operators has findings that are not passed, follow their remedies first. Then run stage network"
            " without --check: it creates the objects in the order of their dependencies.",
        )
    state = item.action if item.action in ("", "refused") else f"{item.action}, not applied"
    measured = f"{state or 'not sent'}{f': {item.refusal}' if item.refusal else ''}"
    return Finding(check_id, subject, FAIL, measured, expected, _explain_refusal(item), _describe_refusal_remedy(item))


#: what the webhook of operator v1.6.0 says, what it means, what helps [pkg/webhook/validate.go]
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        "no supported NIC is selected",
        (
            "No node reports a physical function that the policy's nicSelector selects. The operator does not report"
            " such an HCA or does not support it."
        ),
        "Compare select of the fabric with status.interfaces in kubectl get sriovnetworknodestates -A -o yaml, and"
        " correct it. Then run stage network again.",
    ),
    (
        "no matched node is selected",
        "No node carries the labels in rdma_cluster.node_selector.",
        "Correct the findings operators.label, which contain the cause. Then run stage network again.",
    ),
    (
        "exceed the maximum allowed value",
        "The card has fewer virtual functions than virtual_functions of the fabric requests.",
        "Lower virtual_functions of the fabric, or raise the number of virtual functions in the firmware of the card"
        " (see the findings of stage platform). Then run stage network again.",
    ),
    (
        "contains invalid characters",
        "This operator accepts only letters, digits and underscores in resource_name.",
        "Correct resource_name of the fabric, then run stage network again.",
    ),
    (
        "is overlapped with existing policy",
        "Another policy already has these virtual functions.",
        "Exclude the virtual functions of the other policy from select of the fabric, or ask its owner to delete it:"
        f" kubectl get sriovnetworknodepolicies -A -L {INTENT_LABEL} shows the intent of each policy. Then run stage"
        " network again.",
    ),
    (
        "is not supported",
        "The operator's list of supported NICs does not contain this vendor and device.",
        "If the NIC is known to work, add it to supportedExtraNICs in the values of the operator's Helm chart. Then"
        " run stage network again.",
    ),
)


def _explain_refusal(item: AppliedObject) -> str:
    for text, why, _remedy_text in _REFUSALS:
        if text in item.refusal:
            return why
    cause = explain(item.refusal)
    if cause is not None:
        return cause.why
    if item.reason == "NotFound" and _lacks_namespace(item):
        return f"The namespace {item.namespace} does not exist, so the API server cannot create the object in it."
    if item.reason == "NotFound":
        return f"The API server does not serve the kind {item.kind}: the operator that defines it is not installed."
    if item.reason == "Conflict":
        return "Another tool owns a field of the object with a different value."
    if item.reason == OTHER_INTENT:
        return "Another intent of this cluster may need the object, so it was not changed."
    if item.reason == OTHER_POOL:
        return (
            "The SR-IOV operator drains as many nodes at the same time as the SriovNetworkPoolConfig in the cluster"
            " permits. The plan of the drains counts on the limits in rdma_cluster.node_pool."
        )
    if item.reason == FOREIGN:
        return (
            "An admin, a user or another tool created an object of this name. linerate.rdma does not change an object"
            f" without the label {SELECTOR}."
        )
    if item.reason == "Forbidden" and "admission webhook" not in item.refusal:
        return "The user of the kubeconfig does not have the right to write this object."
    if item.action != "refused" and not item.refusal:
        return (
            "The intent requires the object, but the last run deleted it: it was a removal (playbook teardown)."
            if item.action == "deleted"
            else "The intent requires the object, but the last run did not apply it: it was a removal (playbook"
            " teardown), which found no such object."
            if item.action == "absent"
            else "The intent requires the object, but it was missing after the run: the run or another program removed"
            " it."
            if item.action
            else "The run ended before it sent the object to the API server."
        )
    if not item.refusal:
        return "The API server or a webhook rejected the object and reported no message."
    return "The API server or a webhook rejected the object. The message of the API server is under 'measured'."


def _lacks_namespace(item: AppliedObject) -> bool:
    """Return whether the API server refused an object because its namespace does not exist."""
    return bool(item.namespace) and f'namespaces "{item.namespace}" not found' in item.refusal


def _describe_refusal_remedy(item: AppliedObject) -> str:
    for text, _why, remedy in _REFUSALS:
        if text in item.refusal:
            return remedy
    cause = explain(item.refusal)
    if cause is not None:
        return cause.remedy
    if item.reason == "NotFound" and _lacks_namespace(item):
        return (
            f"Create the namespace: kubectl create namespace {item.namespace}. If it is the namespace of an operator,"
            " install the operator instead (see the finding operators.needed). Then run stage network again."
        )
    if item.reason == "Forbidden" and "admission webhook" not in item.refusal:
        return (
            "Run stage operators: its finding operators.rights contains the command that grants the right. Then run"
            " stage network again."
        )
    if item.reason == "NotFound":
        return (
            "Install the operator (see the findings operators.definition and operators.needed), then run stage network"
            " again."
        )
    if item.reason == "Conflict":
        return (
            "Let only one tool manage the object: delete the object, or remove it from the configuration of the other"
            " tool. Then run stage network again."
        )
    if item.reason == OTHER_INTENT:
        return (
            "Follow the message of the refusal. Give each intent of the cluster its own rdma_cluster.intent_name and"
            " its own names of fabrics and networks, and leave an object of another intent to its owner. Then run stage"
            " network again."
        )
    if item.reason == OTHER_POOL:
        return (
            "Correct the cause that the message under 'measured' names, so that the SriovNetworkPoolConfig gets the"
            " limits in rdma_cluster.node_pool. Or remove rdma_cluster.node_pool: the plan then counts on the"
            " SriovNetworkPoolConfig in the cluster. Then run stage network again."
        )
    if item.reason == FOREIGN:
        return (
            f"Use a different name in the intent, delete the object, or give it the label {SELECTOR}. Then run stage"
            " network again."
        )
    if not item.refusal:
        return (
            "Run stage network again. If the finding remains, read the log of the API server and of its webhooks."
            if item.action == "refused"
            else "Run stage network again. If the object is missing again, search the audit log of the API server for"
            " the program that deletes it."
            if item.action
            else describe_rerun("network")
        )
    return "Correct the cause that the message under 'measured' reports, then run stage network again."


def _check_allocatable(fabric: Fabric, name: str, facts: Facts) -> Finding:
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
                "Correct the finding network.policy_accepted of this policy, then run stage network again.",
            )
        return Finding("network.allocatable", subject, UNKNOWN, "not read", expected, why, remedy)
    measured = (
        f"{seen.allocatable if seen.allocatable is not None else 'none'} allocatable after"
        f" {facts.sync.waited_seconds if facts.sync else 0:.0f} s"
    )
    if seen.phase == "ready" and seen.allocatable == wanted:
        return build_pass("network.allocatable", subject, measured, expected)
    if seen.phase != "ready" and seen.allocatable == wanted:
        measured, expected = f"{measured}, not ready", f"{expected}, node ready for the fabric"
    if facts.unwritten:
        why = f"This run applied no objects. Current state: {format_clause(seen.detail)}."
        remedy = (
            "Run stage network without --check. If the run was refused, correct the findings network.disruption and"
            " network.drain first."
        )
        return Finding("network.allocatable", subject, UNKNOWN, measured, expected, why, remedy)
    if seen.phase == "ready":
        why = (
            "The policy in the cluster is in force, but it requests a different number of virtual functions than the"
            " intent."
        )
        return Finding(
            "network.allocatable",
            subject,
            FAIL,
            measured,
            expected,
            why,
            "Run stage network again. If the finding reappears, find the tool that changes the policy: kubectl get"
            " sriovnetworknodepolicy -A -o yaml --show-managed-fields.",
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


def _check_ready(fabric: Fabric, name: str, facts: Facts) -> Finding:
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
        return Finding("network.ready", subject, UNKNOWN, "not read", expected, why, remedy)
    measured = f"{seen.phase} after {facts.sync.waited_seconds if facts.sync else 0:.0f} s"
    pieces = _find_other_pieces(fabric, seen)
    if seen.phase == "ready" and refused is not None:
        measured = f"{measured}, with the objects of an earlier run"
        expected = f"{expected}, with the objects of the current intent"
    if seen.phase == "ready" and refused is None and not facts.unwritten and pieces:
        why = (
            f"The device plugin on the node offers a different number of {fabric.resource_name} than the intent"
            " requires (pods_per_node, hcas_per_node). The device plugin runs with a different configuration, or"
            " another tool changes its configuration."
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
        why = f"This run applied no objects. Current state: {format_clause(seen.detail)}."
        return Finding("network.ready", subject, UNKNOWN, measured, expected, why, "Run stage network without --check.")
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
            f"Correct the finding {_CHECKS.get(refused.kind, 'network.object_accepted')} of this object, then run stage"
            " network again.",
        )
    why = (
        f"The node cannot become ready for the fabric: {format_clause(seen.detail)}."
        if seen.phase == "failed"
        else f"The wait ended before the node was ready for the fabric. Last state: {format_clause(seen.detail)}."
    )
    remedy = _add_rerun(
        seen.remedy or "Correct this cause. If the node only needs more time, raise rdma_cluster.wait_seconds."
    )
    return Finding("network.ready", subject, FAIL, measured, expected, why, remedy)


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
    return f"{offered if offered is not None else 'none'} allocatable"


def _explain_missing_wait(fabric: Fabric, name: str, facts: Facts) -> tuple[str, str]:
    """Return the reason why the stage did not wait until the network of the fabric is ready on a node, and the remedy.

    :param name: name of the node
    """
    refused = next((item for item in facts.applied if item.fabric == fabric.name and item.action == "refused"), None)
    if refused is not None:
        return (
            f"{refused.kind} {refused.name} was refused, so the network of the fabric cannot become ready.",
            f"Correct the finding {_CHECKS.get(refused.kind, 'network.object_accepted')} of this object, then run stage"
            " network again.",
        )
    if fabric.name in facts.linted.held:
        return "The fabric has findings network.lint_*, so no object of the fabric was applied.", (
            "Correct the causes in the findings network.lint_* of the fabric, then run stage network again."
        )
    if fabric.name in facts.unmade:
        return facts.unmade[fabric.name], "Correct the cause under 'why', then run stage network again."
    if not facts.nodes:
        return (
            "The group rdma_nodes of the inventory names no node, so the stage did not wait for any node.",
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
