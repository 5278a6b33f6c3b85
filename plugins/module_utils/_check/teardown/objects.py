# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of the objects of the cluster that a teardown removes or leaves. Check ids: ``teardown.*``."""

from __future__ import annotations

import typing

from ..._analysis.controllers.labelled_objects import describe_delete, describe_ways_out, fold_alike, name_kind
from ..._model.base.marks import LABEL, SELECTOR
from ..._model.base.phrases import count_of, format_clause
from ..._model.kubernetes.apply import FOREIGN, KEPT, OTHER_INTENT, UNREAD, AppliedObject
from ..._model.operators.olm import RetainedObject
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..._parse.kubernetes.refusal import explain

#: subject of a finding on a definition, and the end of the names of those of the SR-IOV operator
_DEFINITION, _OF_SRIOV = "CustomResourceDefinition ", ".sriovnetwork.openshift.io"


def check_objects(removed: typing.Optional[typing.Sequence[AppliedObject]]) -> list[Finding]:
    if removed is None:
        why = "At least one task that deletes objects did not report its result, so the remaining objects are unknown."
        remedy = "Run the teardown again."
        return [
            Finding(
                "teardown.object",
                "objects",
                UNKNOWN,
                "results of the deletions not read",
                "no object left",
                why,
                remedy,
            )
        ]
    return fold_alike((item, _check_object(item)) for item in removed) or [
        build_pass("teardown.object", "objects", "no object existed", "no object left")
    ]


def _check_object(item: AppliedObject) -> Finding:
    subject = f"{item.kind} {item.namespace + '/' if item.namespace else ''}{item.name}"
    if item.action in ("deleted", "absent", "released"):
        said = "fields of linerate.rdma removed, other fields kept" if item.action == "released" else item.action
        return build_pass("teardown.object", subject, said, "gone")
    if item.reason == OTHER_INTENT:
        return _check_other_intent(subject, item)
    if item.action == KEPT:
        return _check_copy(subject, item)
    if item.reason in (FOREIGN, UNREAD):
        return _check_namespace(subject, item)
    cause = explain(item.refusal)
    if cause is not None:
        return Finding(
            "teardown.object", subject, FAIL, f"not deleted: {item.refusal}", "gone", cause.why, cause.remedy
        )
    why = f"The API server did not delete the object: {format_clause(item.refusal, 'it returned no error text')}."
    delete = describe_delete(item.kind, item.name, item.namespace)
    return Finding(
        "teardown.object",
        subject,
        FAIL,
        f"not deleted{f' ({item.action})' if item.action else ''}",
        "gone",
        why,
        (
            f"Run {delete} with the kubeconfig of the run. If it fails, its error names the missing right or the"
            " webhook that rejects it: correct this. If it does not end, find the controller of the finalizer"
            " (kubectl get with -o yaml shows metadata.finalizers), and start it; if this controller no longer"
            " exists, remove the finalizer. Then run the teardown again."
        ),
    )


def _check_copy(subject: str, item: AppliedObject) -> Finding:
    """Return a warning on an object that a user copied with the label of linerate.rdma. It does not close the gate,
    because a tenant can make any number of such objects.

    :param subject: subject of the finding
    :param item: object with the label that no run wrote
    """
    why = (
        f"The object was not deleted: it has the label {SELECTOR}, but no run wrote it. A user copied it with"
        " its labels."
    )
    remedy = describe_ways_out(item)
    if item.name.startswith("("):
        remedy = (
            f"List them: kubectl get {name_kind(item.kind)} -A -l {SELECTOR}. Remove the label from those that are"
            " needed, and delete the others."
        )
    return Finding("teardown.stays", subject, WARN, "not deleted", "deleted, or left intentionally", why, remedy)


def _check_other_intent(subject: str, item: AppliedObject) -> Finding:
    """Return a warning on an object that may belong to another intent of the cluster.

    Such an object does not close the gate, because that intent needs it.

    :param subject: subject of the finding
    :param item: result of the deletion
    """
    delete = describe_delete(item.kind, item.name, item.namespace)
    remedy = (
        "If another intent needs it, leave it: the teardown of that intent removes it. Give each intent of the cluster"
        f" its own rdma_cluster.intent_name. If no intent needs it, delete it: {delete}"
    )
    if item.name.startswith("("):
        kind = name_kind(item.kind)
        remedy = (
            f"List them with their intents: kubectl get {kind} -A -l {SELECTOR} --show-labels. Leave those that another"
            " intent needs: the teardown of that intent removes them. Delete those that no intent needs: kubectl delete"
            f" {kind} NAME -n NAMESPACE"
        )
    why = f"The object was not deleted: {format_clause(item.refusal)}."
    return Finding("teardown.stays", subject, WARN, "not deleted", "deleted, or left intentionally", why, remedy)


def _check_namespace(subject: str, item: AppliedObject) -> Finding:
    """Return the finding on a namespace of linerate.rdma that was not deleted.

    It fails if the namespace contains objects not managed by linerate.rdma. The status is ``unknown`` if its content
    could not be read.

    :param subject: subject of the finding
    :param item: result of the deletion
    """
    keep = f"To keep the namespace: kubectl label namespace {item.name} {LABEL}-"
    if item.reason == UNREAD:
        why = (
            f"The content of the namespace was not read: {format_clause(item.refusal)}. It may contain objects of other"
            " users, so the namespace was not deleted."
        )
        remedy = (
            "If the error contains 'forbidden', grant the user of the kubeconfig the right to list all resources in"
            " this namespace. Otherwise correct the API server that the error names (kubectl get apiservices). Then"
            f" run the teardown again. {keep}"
        )
        return Finding("teardown.object", subject, UNKNOWN, "not deleted, content not read", "gone", why, remedy)
    why = (
        f"The namespace was not deleted, because {format_clause(item.refusal)}. Deleting the namespace would delete"
        " them as well."
    )
    remedy = f"Move or delete these objects, then run the teardown again. {keep}"
    return Finding("teardown.object", subject, FAIL, "not deleted", "gone", why, remedy)


def report_stays(item: RetainedObject) -> Finding:
    """Return a warning on an object that the teardown leaves on purpose, with the command by which the user can delete
    it.

    :param item: object that remains
    """
    by_hand = "Set teardown_operator: true and run the teardown again to remove the operator."
    if item.subject.startswith(_DEFINITION):
        by_hand = _describe_definition_removal((item.subject[len(_DEFINITION) :],))
    return Finding(
        "teardown.stays",
        item.subject,
        WARN,
        "not deleted",
        "gone",
        f"The teardown leaves the object: {format_clause(item.why)}.",
        item.remedy or by_hand,
    )


def report_definitions(names: typing.Iterable[str], stays: typing.Iterable[RetainedObject]) -> list[Finding]:
    """Return a warning on the custom resource definitions that remain of the SR-IOV operator after its removal: Helm
    never deletes those of a chart. The list is empty if none remains that no other finding names.

    :param names: names of the established custom resource definitions of the cluster
    :param stays: objects that remain, which have findings of their own
    """
    known = {item.subject for item in stays}
    left = sorted(name for name in names if name.endswith(_OF_SRIOV) and f"{_DEFINITION}{name}" not in known)
    if not left:
        return []
    return [
        Finding(
            "teardown.stays",
            "custom resource definitions of the SR-IOV network operator",
            WARN,
            f"{count_of(len(left), 'definition')}: {', '.join(left)}",
            "no definition left",
            "The operator is removed. Helm does not delete the definitions of a chart, because that deletes all their"
            " objects.",
            _describe_definition_removal(left),
        )
    ]


def _describe_definition_removal(names: typing.Sequence[str]) -> str:
    """Return the remedy for custom resource definitions that remain.

    :param names: names of the definitions
    """
    return (
        "Delete them only if none of their objects is needed, because the command deletes these as well: kubectl delete"
        f" crd {' '.join(names)}"
    )
