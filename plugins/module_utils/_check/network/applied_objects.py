# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the objects that the API server has accepted, refused or kept, and of those that the intent does not
contain. Check ids: ``network.*``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.labelled_objects import fold_alike, name_kind
from ..._analysis.controllers.unread import count_unread
from ..._model.base.marks import INTENT_LABEL, SELECTOR
from ..._model.base.phrases import count_of, describe_rerun, format_clause
from ..._model.intent.intent import Intent
from ..._model.kubernetes.apply import COPIED, FOREIGN, FOREIGN_STEPS, OTHER_INTENT, OTHER_POOL, TAKEN, AppliedObject
from ..._model.kubernetes.own_kinds import NETWORKS
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..._parse.kubernetes.refusal import explain, unknown_fields
from .facts import Facts
from .leftover_remedies import describe_leftover_remedy

#: check ids of two kinds of objects; all others have one check
POLICY, ATTACHMENT = "network.policy_accepted", "network.attachment_accepted"
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
        "Follow the remedies of the findings operators.label. Then run stage network again.",
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
        f"Run kubectl get sriovnetworknodepolicies -A -L {INTENT_LABEL}, which shows the intent of each policy."
        " Exclude the virtual functions of the other policy from select of the fabric, or ask the owner of the"
        " other policy to delete it. Then run stage network again.",
    ),
    (
        "is not supported",
        "The operator's list of supported NICs does not contain this vendor and device.",
        "If the NIC is known to work, add it to supportedExtraNICs in the values of the operator's Helm chart. Then"
        " run stage network again.",
    ),
)


def find_check(kind: str) -> str:
    """Return the id of the check whether the API server accepted an object of a kind."""
    if kind == "SriovNetworkNodePolicy":
        return POLICY
    return ATTACHMENT if kind in NETWORKS else "network.object_accepted"


def report_leftovers(intent: Intent, facts: Facts) -> typing.Iterator[Finding]:
    """Warn about objects that an earlier run applied for another intent.

    Yield one pass if there are none, and a finding of status ``unknown`` if the objects could not be listed.

    Objects of a fabric that was held back or could not be generated are not leftovers, since a later run may still need
    them.
    """
    check_id, expected = "network.leftover", f"label {SELECTOR} only on objects of the current intent"
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
        subject, measured = f"{item.kind} {item.name}", f"label {SELECTOR} on an object that is not in the intent"
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


def judge_applied_object(item: AppliedObject, check_id: str, subject: str) -> Finding:
    expected = "accepted by the API server and its webhooks"
    dropped = unknown_fields(item.warnings) if item.action in TAKEN else ()
    if dropped:
        cause = explain("; ".join(item.warnings))
        why, remedy = (cause.why, _add_rerun(cause.remedy)) if cause is not None else ("", "")
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
    refusal = item.refusal.partition(FOREIGN_STEPS)[0] if item.reason == FOREIGN else item.refusal
    measured = f"{state or 'not sent'}{f': {refusal}' if refusal else ''}"
    return Finding(check_id, subject, FAIL, measured, expected, _explain_refusal(item), _describe_refusal_remedy(item))


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


def _add_rerun(remedy: str) -> str:
    return remedy if "run stage" in remedy else f"{remedy.rstrip('. ')}. Then run stage network again."


def _lacks_namespace(item: AppliedObject) -> bool:
    """Return whether the API server refused an object because its namespace does not exist."""
    return bool(item.namespace) and f'namespaces "{item.namespace}" not found' in item.refusal


def _describe_refusal_remedy(item: AppliedObject) -> str:
    for text, _why, remedy in _REFUSALS:
        if text in item.refusal:
            return remedy
    cause = explain(item.refusal)
    if cause is not None:
        return _add_rerun(cause.remedy)
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
            f"Run kubectl get {name_kind(item.kind)} {item.name}{f' -n {item.namespace}' if item.namespace else ''}"
            " -o yaml --show-managed-fields to find the other tool, and remove the object from the configuration of"
            " that tool. Then run stage network again."
        )
    if item.reason == OTHER_INTENT:
        return (
            "Follow the steps in the message under 'measured'. Give each intent of the cluster its own"
            " rdma_cluster.intent_name and its own names of fabrics and networks,"
            " and leave an object of another intent to its owner. Then run stage"
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
            "Set a different name in the intent, or delete the object. If linerate.rdma shall change this object, and"
            f" delete it in a teardown, give it the label instead: kubectl label {name_kind(item.kind)}"
            f" {item.name}{f' -n {item.namespace}' if item.namespace else ''} {SELECTOR} --overwrite. Then run stage"
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
