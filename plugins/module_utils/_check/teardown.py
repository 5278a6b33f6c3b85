# SPDX-License-Identifier: GPL-3.0-or-later

"""The findings after a teardown: whether everything that linerate.rdma created is removed. Check ids:
``teardown.*``.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.controllers.installation import describe_helm_removal
from .._analysis.controllers.labelled_objects import describe_delete, describe_ways_out, fold_alike, name_kind
from .._analysis.disruption import machine_config
from .._analysis.fleet.unreachable_nodes import NOT_QUERIED
from .._model.base.marks import LABEL, SELECTOR
from .._model.base.phrases import describe_read_remedy, format_clause
from .._model.base.text import cut_text
from .._model.boundary.form import Bound
from .._model.boundary.numbers import MOST_MESSAGES
from .._model.intent.intent import ClusterIntent, Intent
from .._model.intent.profiles import find_traits
from .._model.kubernetes.apply import FOREIGN, KEPT, MOST_REMOVED, OTHER_INTENT, UNREAD, AppliedObject
from .._model.kubernetes.host import DROP_IN, OF_INTENT, UNNAMED, ObservedText, Roll
from .._model.kubernetes.wait import SyncFacts
from .._model.node.file_owner import build_owner
from .._model.node.kernel_arguments import DROP_IN as GRUB_DROP_IN
from .._model.node.kernel_arguments import RECORD, LeftArguments
from .._model.node.node_tuning import SYSCTL, TMPFILES, ObservedSettings
from .._model.operators.olm import BUSY, IN_USE, NEEDED, RetainedObject
from .._model.operators.operators import OPERATORS, SRIOV, OperatorsSeen
from .._model.operators.recognition import is_named
from .._model.operators.sriov_operator import OperatorFacts
from .._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from .._parse.kubernetes.refusal import explain

#: subject of the findings on nodes if the run had no node
_NO_NODES = "inventory"
_LEAVE = (
    "If that intent needs the node, leave the file: the teardown of that intent removes it. Give each intent of the"
    " cluster its own rdma_cluster.intent_name. If the file is of this intent, such as after a change of intent_name or"
    " node_selector, or if no intent of that name is left, run on the node, as root: {command}"
)
_REMOVE_DROP_IN = f"rm {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"
#: characters of a node's arguments in a finding
_MOST_SHOWN = 300


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that took part
    :ivar removed: result for each object; None when not every removal task reported its results
    :ivar sync: answer of sriov_sync after the removal; None when it did not run
    :ivar operators: result of sriov_operator_info after the removal; None if it did not run
    :ivar operator_removed: whether the SR-IOV operator was removed as well
    :ivar rolls: rolls of the MachineConfigPools after MachineConfigs and KubeletConfigs were removed; None when they
        were not read
    :ivar roll_error: reason why the pools were not ready for that
    :ivar hosts_unread: reasons why further MachineConfigs and KubeletConfigs of the collection may exist
    :ivar drop_ins: state of containerd's drop-in on each node, as the module file reports it
    :ivar kernel_arguments: arguments that the module kernel_arguments added and did not remove, on each node
    :ivar kernel_settings: settings that the module kernel_settings removed on each node, where the intent set some
    :ivar by_pods: names of the nodes that are reached by observers, which read a node but remove nothing from it
    :ivar check_mode: whether the run was in check mode, in which nothing is removed
    :ivar stays: objects that remain of the operators that OLM installed for linerate.rdma
    :ivar left: answer of operators_info after the removal, which shows the operators that a run installed by Helm; None
        when it did not run
    """

    nodes: tuple[str, ...] = ()
    removed: typing.Optional[typing.Annotated[tuple[AppliedObject, ...], Bound("objects", MOST_REMOVED)]] = None
    sync: typing.Optional[SyncFacts] = None
    operators: typing.Optional[OperatorFacts] = None
    operator_removed: bool = False
    rolls: typing.Optional[tuple[Roll, ...]] = None
    roll_error: str = ""
    hosts_unread: typing.Annotated[tuple[str, ...], Bound("messages", MOST_MESSAGES)] = ()
    drop_ins: dict[str, ObservedText] = dataclasses.field(default_factory=dict)
    kernel_arguments: dict[str, LeftArguments] = dataclasses.field(default_factory=dict)
    kernel_settings: dict[str, ObservedSettings] = dataclasses.field(default_factory=dict)
    by_pods: tuple[str, ...] = ()
    check_mode: bool = False
    stays: typing.Annotated[tuple[RetainedObject, ...], Bound("objects", MOST_REMOVED)] = ()
    left: typing.Optional[OperatorsSeen] = None


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
            for finding in (_drop_in(name, facts, intent), _check_kernel_arguments(name, facts))
        )
    findings = _check_objects(facts.removed)
    findings += [_report_stays(item) for item in facts.stays]
    findings += _check_releases(facts.left)
    # where nobody is named, nobody was looked at
    nodes = facts.nodes or (_NO_NODES,)
    for fabric in (fabric for fabric in intent.fabrics if find_traits(fabric).functions):
        findings += [_check_node(fabric.name, name, facts.sync) for name in nodes]
    findings += _check_rolls(facts)
    findings += [_drop_in(name, facts, intent) for name in nodes]
    findings += [_check_kernel_arguments(name, facts) for name in nodes]
    if intent.cluster.tuning.set:
        findings += [
            _check_settings(name, facts.kernel_settings.get(name)) for name in nodes if name not in facts.by_pods
        ]
    if facts.operator_removed:
        findings.append(_check_operator(facts.operators, facts.stays))
    return tuple(findings)


def _check_objects(removed: typing.Optional[typing.Sequence[AppliedObject]]) -> list[Finding]:
    if removed is None:
        why = "At least one task that deletes objects did not report its result, so the remaining objects are unknown."
        remedy = "Run the teardown again."
        return [Finding("teardown.object", "objects", UNKNOWN, "result not read", "no object left", why, remedy)]
    return fold_alike((item, _check_object(item)) for item in removed) or [
        build_pass("teardown.object", "objects", "no object existed", "no object left")
    ]


def _check_rolls(facts: Facts) -> typing.Iterator[Finding]:
    """Check that all MachineConfigs and KubeletConfigs were found, and that the MachineConfigPools have finished the
    configuration without them.
    """
    if facts.hosts_unread:
        why = (
            "The API server did not return all MachineConfigs and KubeletConfigs, so some of linerate.rdma may still"
            f" exist. Its error: {format_clause('; '.join(facts.hosts_unread[:3]))}."
        )
        remedy = (
            "Look for them as an admin of the cluster: kubectl get machineconfigs,kubeletconfigs -l"
            f" {SELECTOR}. If there are some, run the teardown again as a user who may list and delete them."
            f" If there are none: {describe_read_remedy('Then run the teardown again.')}"
        )
        subject = "MachineConfigs and KubeletConfigs"
        yield Finding("teardown.object", subject, UNKNOWN, "not read", "no object left", why, remedy)
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
    yield from machine_config.check_plan(facts.rolls or (), facts.roll_error, "teardown.roll")


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
            " webhook that rejects it: correct this. If it waits, remove the finalizer of the object whose controller"
            " no longer exists. Then run the teardown again."
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
    return Finding("teardown.stays", subject, WARN, "there", "gone, or left intentionally", why, remedy)


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
    return Finding("teardown.stays", subject, WARN, "there", "gone, or left intentionally", why, remedy)


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


def _report_stays(item: RetainedObject) -> Finding:
    """Return a warning on an object that the teardown leaves on purpose, with the command by which the user can delete
    it.

    :param item: object that remains
    """
    by_hand = (
        "Set teardown_operator: true and run the teardown again to remove the operator. Delete a CRD manually only if"
        " none of its objects is needed: kubectl delete crd NAME"
    )
    return Finding(
        "teardown.stays",
        item.subject,
        WARN,
        "not deleted",
        "gone",
        f"The teardown leaves the object: {format_clause(item.why)}.",
        item.remedy or by_hand,
    )


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
    subject, expected = f"{fabric} {name}", "no virtual function of the fabric"
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
            else "The API server returned no state of the virtual functions of this node (SriovNetworkNodeState).",
            "Run the teardown again."
            if sync is None
            else "Put the nodes into the group rdma_nodes of the inventory, then run the teardown again."
            if name == _NO_NODES
            else f"Run kubectl get node {name}. If it does not exist, remove {name} from the group rdma_nodes. If it"
            f" exists, run grep . /sys/class/infiniband/*/device/sriov_numvfs on {name}, and write 0 as root to each"
            " file that has another number. Then run the teardown again. If the finding remains although all files"
            " contain 0, no VF is left: waive it.",
        )
    if seen.phase == "ready":
        return build_pass("teardown.virtual_functions", subject, seen.detail, expected)
    return Finding(
        "teardown.virtual_functions",
        subject,
        FAIL,
        f"{format_clause(seen.detail, 'state not reported')} ({seen.phase})",
        expected,
        "The config daemon of the SR-IOV operator has not removed the virtual functions: its last change failed."
        if seen.phase == "failed"
        else "The config daemon of the SR-IOV operator has not removed the virtual functions: it waits for a drain or a"
        " reboot of the node.",
        seen.remedy
        or f"Read the log of the config daemon on {name} (kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon"
        " --prefix). If it shows an error, correct it. If it waits for the drain, end the pods that kubectl get pods -A"
        f" --field-selector spec.nodeName={name} lists as Terminating. Then run the teardown again.",
    )


def _drop_in(name: str, facts: Facts, intent: Intent) -> Finding:
    seen, expected = (
        facts.drop_ins.get(name, ObservedText(error=NOT_QUERIED)),
        "no drop-in of linerate.rdma for the containerd unit",
    )
    if seen.value == "absent" and seen.error is None:
        return build_pass("teardown.drop_in", name, "none", expected)
    writer = _find_foreign_drop_in(seen.value, intent.cluster) if seen.error is None else ""
    if writer:
        return _check_foreign_drop_in(name, writer, expected)
    by_hand = f"On the node, as root: rm {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"
    if seen.value is not None and seen.error is None and name in facts.by_pods:
        why = (
            f"{DROP_IN} exists: it was created when the run reached the node by ssh. The run now reaches the node by a"
            " pod that inspects it, which changes nothing on the node."
        )
        return Finding(
            "teardown.drop_in",
            name,
            FAIL,
            seen.value,
            expected,
            why,
            f"{by_hand}; or set up the inventory to reach the node by ssh again, then run the teardown again.",
        )
    if seen.value is not None and seen.error is None:
        why = f"{DROP_IN} still exists: the teardown could not remove it, or another program created it again."
        return Finding("teardown.drop_in", name, FAIL, f"drop-in exists ({seen.value})", expected, why, f"{by_hand}.")
    why = f"It is unknown whether {DROP_IN} exists: {format_clause(seen.error)}."
    if name in facts.by_pods:
        remedy = (
            f"Check the pod that inspects the node (kubectl get pods -A -o wide --field-selector spec.nodeName={name}),"
            f" then run the teardown again. Or check on the node: ls {DROP_IN}"
        )
        return Finding("teardown.drop_in", name, UNKNOWN, "drop-in not read", expected, why, remedy)
    why = f"It is unknown whether {DROP_IN} is gone and containerd runs without it: {format_clause(seen.error)}."
    # what it found it removes last, so that it is found again
    by_hand = f"rm -f {DROP_IN} && systemctl daemon-reload && systemctl restart containerd"
    remedy = (
        f"Run ansible {name} --become -m ansible.builtin.ping: it must succeed. Then run the teardown again: it"
        f" restarts containerd before it removes the file. Or run on the node, as root: {by_hand}"
    )
    return Finding("teardown.drop_in", name, UNKNOWN, "drop-in not read", expected, why, remedy)


def _check_kernel_arguments(name: str, facts: Facts) -> Finding:
    seen, by_pod = facts.kernel_arguments.get(name), name in facts.by_pods
    check_id, expected = "teardown.kernel_arguments", "no kernel argument of linerate.rdma for the next boot"
    by_hand = (
        f"on the node, as root: rm /{GRUB_DROP_IN} && update-grub (Debian, Ubuntu); or "
        f'grubby --update-kernel=ALL --remove-args="$(xargs < /{RECORD})" && rm /{RECORD} (RHEL and derivatives)'
    )
    if seen is None or seen.value is None or seen.error is not None:
        error = NOT_QUERIED if seen is None else format_clause(seen.error, "no data was returned")
        why = (
            f"It is unknown whether kernel arguments of linerate.rdma are still set for the next boot:"
            f" {format_clause(error)}."
        )
        if by_pod:
            remedy = (
                "Check the pod that inspects the node (kubectl get pods -A -o wide --field-selector"
                f" spec.nodeName={name}), then run the teardown again. Or check on the node: ls /{GRUB_DROP_IN}"
                f" /{RECORD}"
            )
            return Finding(check_id, name, UNKNOWN, "not read", expected, why, remedy)
        return Finding(
            check_id,
            name,
            UNKNOWN,
            "not read",
            expected,
            why,
            f"Run ansible {name} --become -m ansible.builtin.ping: it must succeed. Then run the teardown again; or"
            f" {by_hand}.",
        )
    if seen.value:
        left = cut_text(" ".join(seen.value), _MOST_SHOWN)
        if by_pod:
            how = (
                "when the run reached the node by ssh. The run now reaches the node by a pod that inspects it, which"
                " changes nothing on the node"
            )
            why = f"The module kernel_arguments added {left} {how}."
            return Finding(
                check_id,
                name,
                FAIL,
                left,
                expected,
                why,
                (
                    f"{by_hand[0].upper()}{by_hand[1:]}; or set up the inventory to reach the node by ssh again, then"
                    " run the teardown again."
                ),
            )
        why = "The module kernel_arguments added these arguments, and the teardown could not remove them."
        return Finding(
            check_id, name, FAIL, left, expected, why, f"Run the teardown again; if the arguments remain, {by_hand}."
        )
    return build_pass(check_id, name, "none", expected)


def _check_settings(name: str, seen: typing.Optional[ObservedSettings]) -> Finding:
    expected = "none of the files that the module kernel_settings writes"
    if seen is not None and seen.value is not None and "changes" in seen.value and seen.error is None:
        stays = seen.value.get("stays")
        if isinstance(stays, list) and stays:
            return _check_foreign_settings(name, [str(item) for item in stays], expected)
        return build_pass("teardown.settings", name, "removed" if seen.value["changes"] else "none", expected)
    if seen is None:
        why = "The module kernel_settings did not run on the node, so the settings of linerate.rdma may still be there."
        remedy = (
            "Look for a failed task on this node in the output of the playbook, and correct its cause. Then run the"
            " teardown again, with this node in --limit or without --limit."
        )
    else:
        why = (
            f"The module kernel_settings failed on the node: {format_clause(seen.error, 'it returned no data')}. The"
            " settings of linerate.rdma may still be there."
        )
        remedy = (
            f"Run ansible {name} --become -m ansible.builtin.ping, and correct its error if it fails. If it succeeds,"
            " run the teardown with -v, and correct the error of kernel_settings that it shows. Then run the teardown"
            " again."
        )
    return Finding("teardown.settings", name, UNKNOWN, "removal of the settings not confirmed", expected, why, remedy)


def _find_foreign_drop_in(state: typing.Optional[str], cluster: ClusterIntent) -> str:
    """Return the intent that wrote the drop-in of containerd, as the finding names it.

    The text is empty if the drop-in may be of this intent, and if there is no state.

    :param state: state of the drop-in that the node reports; None if it reports none
    :param cluster: settings of the intent
    """
    if state == UNNAMED:
        return "an earlier release, which recorded no intent"
    owner = (state or "")[len(OF_INTENT) :] if (state or "").startswith(OF_INTENT) else ""
    own = build_owner(cluster.intent_name, cluster.node_selector)
    return f"the intent '{owner}'" if owner and owner != own else ""


def _check_foreign_drop_in(name: str, writer: str, expected: str) -> Finding:
    """Return a warning on a drop-in of containerd that the teardown left.

    :param name: name of the node
    :param writer: intent that wrote it, as _find_foreign_drop_in returns it
    :param expected: expected value, as text for the finding
    """
    return Finding(
        "teardown.drop_in",
        name,
        WARN,
        f"a file of {writer}",
        expected,
        f"{DROP_IN} was written by {writer}, and this intent does not need it. The teardown left it.",
        _LEAVE.format(command=_REMOVE_DROP_IN),
    )


def _check_foreign_settings(name: str, stays: typing.Sequence[str], expected: str) -> Finding:
    """Return a warning on files of the module kernel_settings that the teardown left.

    :param name: name of the node
    :param stays: files with the name of their intent, as the module reports them
    :param expected: expected value, as text for the finding
    """
    files = " ".join(f"/{path}" for path in (SYSCTL, TMPFILES) if any(item.startswith(f"/{path} ") for item in stays))
    return Finding(
        "teardown.settings",
        name,
        WARN,
        ", ".join(stays),
        expected,
        f"The node has settings of another intent: {', '.join(stays)}. The teardown left them.",
        _LEAVE.format(command=f"rm -f {files}"),
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
            else "Run kubectl get deployments -A. If it is forbidden, grant the user of the kubeconfig the rights of"
            " docs/rbac. If it fails otherwise, correct the kubeconfig or the API server. Then run the teardown again."
        )
        return Finding("teardown.operator", "SR-IOV network operator", UNKNOWN, "not read", "gone", why, remedy)
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
