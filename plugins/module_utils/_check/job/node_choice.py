# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the nodes that the pods of a job may use, by their nodeSelector, node affinity and tolerations and by the
ResourceFlavors of their queue, have room for them. Check id: ``job.resources``.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut_text, join_first
from ..._model.job.job import NodeChoice
from ..._model.job.surroundings import JobSurroundings
from ..._model.kubernetes.objects import ClusterNode
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status
from ..._parse.kubernetes.core import tolerates_taint
from .choice import report_uncompared
from .flavors import FlavoredChoice, list_flavored_choices
from .requirements import is_met
from .scope import LintedTemplate, collect_extended_resources

#: characters of a label or taint in a text
_SHOWN = 200


@dataclasses.dataclass(frozen=True)
class Barrier:
    """The reason why the pods of a template do not run on a node.

    :ivar text: reason, as text for a finding
    :ivar taint: key of the taint that the pods do not tolerate; empty if the labels of the node do not fit
    """

    text: str
    taint: str = ""


def check_choices(
    scopes: typing.Sequence[LintedTemplate],
    surroundings: JobSurroundings,
    fit: typing.Sequence[ClusterNode],
    served: typing.Container[str],
) -> typing.Iterator[Finding]:
    """Yield a finding for the templates whose pods have room on the ready nodes, but not on those nodes that their
    nodeSelector, node affinity and tolerations permit. Yield a failed finding if no ResourceFlavor of the queue fits
    the pods. If the budget of comparisons is spent, yield a finding that says so, and stop.

    :param scopes: pod templates of one job
    :param surroundings: state of the cluster in which the job would run
    :param fit: nodes that are ready and not cordoned
    :param served: extended resources that DeviceClasses provide, which a node need not offer
    """
    offered = {name for node in fit for name in node.allocatable}
    for choice, mine in _group_by_choice(scopes):
        subject = ", ".join(scope.subject if index == 0 else scope.template.path for index, scope in enumerate(mine))
        flavored = _apply_flavors(choice, mine, surroundings)
        if not flavored:
            yield _report_flavors(subject, mine[0], surroundings)
            continue
        if not mine[0].budget.spend(sum(item.choice.size for item in flavored) * len(fit)):
            yield report_uncompared("job.resources", subject, "nodes of the pods", "nodes for all pods", "the nodes")
            return
        requests = [
            (
                {name: count for name, count in collect_extended_resources(scope.template).items() if count},
                scope.template.count,
            )
            for scope in mine
        ]
        requests = [
            ({name: count for name, count in amounts.items() if name in offered or name not in served}, pods)
            for amounts, pods in requests
        ]
        needed = {name for amounts, _pods in requests for name in amounts}
        findings: list[typing.Optional[Finding]] = []
        for item in flavored:
            barriers = {node.name: _find_barrier(item.choice, node, surroundings) for node in fit}
            free = [node for node in fit if barriers[node.name] is None]
            shut = [
                barrier
                for node in fit
                if (barrier := barriers[node.name]) is not None and all(node.allocatable.get(name) for name in needed)
            ]
            refused = bool(shut) and not _have_room(requests, free)
            findings.append(_report_choice(subject, mine[0], needed, shut, len(free), item.names) if refused else None)
        refusals = [item for item in findings if item is not None]
        if refusals:
            yield refusals[0] if len(refusals) == len(flavored) else _soften(refusals[0])


def _soften(refusal: Finding) -> Finding:
    """Return the finding on a ResourceFlavor without room as a warning, because another flavor of the queue has room.

    :param refusal: failed finding of the flavor
    """
    why = f"{refusal.why} Another flavor of the queue has room; Kueue takes the first one whose quota suffices."
    return dataclasses.replace(refusal, status=WARN, why=why)


def _apply_flavors(
    choice: NodeChoice, scopes: typing.Sequence[LintedTemplate], surroundings: JobSurroundings
) -> list[FlavoredChoice]:
    """Return the nodes on which pods may run, with each combination of flavors that Kueue may give them.

    If the job has no queue, or its flavors are unknown or have too many combinations, return the nodes by the pod
    template alone. The list is empty if no flavor of the queue fits the pods.

    :param choice: nodes on which the pods may run, by their templates
    :param scopes: pod templates with this choice
    """
    groups = surroundings.flavors.get(_name_queue(scopes[0]))
    if groups is None:
        return [FlavoredChoice(choice)]
    containers = [container for scope in scopes for container in scope.template.containers]
    resources = {name for item in containers for name in (*item.requests, *item.limits)}
    found = list_flavored_choices(choice, resources, groups)
    return [FlavoredChoice(choice)] if found is None else found


def _name_queue(scope: LintedTemplate) -> str:
    """Return the LocalQueue of a job as ``namespace/name``."""
    return f"{scope.job.namespace}/{scope.job.queue}"


def _report_flavors(subject: str, scope: LintedTemplate, surroundings: JobSurroundings) -> Finding:
    """Return the failed finding on pods that no ResourceFlavor of their queue fits.

    :param subject: pod templates of the job, as beginning of the subject
    :param scope: first of the templates, whose job names the queue
    :param surroundings: state of the cluster, with the flavors of the queue
    """
    names = [flavor.name for group in surroundings.flavors[_name_queue(scope)] for flavor in group.flavors]
    why = (
        "Kueue admits the job only with a ResourceFlavor whose nodeTaints the pods tolerate, and whose nodeLabels"
        " their nodeSelector and node affinity match. No flavor of the queue is one, so the job would stay suspended."
    )
    return Finding(
        "job.resources",
        f"{subject} nodes for the pods",
        FAIL,
        f"no flavor of the queue fits the pods: {join_first(names) or 'the queue has no flavor'}",
        "a ResourceFlavor of the queue that fits the pods",
        why,
        "Compare nodeSelector, affinity and tolerations of the pod template with kubectl get resourceflavors -o yaml,"
        " and correct the template or the flavor.",
    )


def _have_room(
    requests: typing.Sequence[tuple[typing.Mapping[str, int], int]], nodes: typing.Sequence[ClusterNode]
) -> bool:
    """Return whether nodes have room for the pods of each template alone, and enough resources for all of them.

    :param requests: extended resources that each pod of a template requests, and the number of its pods
    """
    total: typing.Counter[str] = collections.Counter()
    for amounts, pods in requests:
        total.update({name: count * pods for name, count in amounts.items()})
        rooms = (
            min((node.allocatable.get(name, 0) // count for name, count in amounts.items()), default=pods)
            for node in nodes
        )
        if sum(rooms) < pods:
            return False
    return all(sum(node.allocatable.get(name, 0) for node in nodes) >= amount for name, amount in total.items())


def _group_by_choice(scopes: typing.Sequence[LintedTemplate]) -> list[tuple[NodeChoice, list[LintedTemplate]]]:
    """Return the pod templates in groups with the same choice of nodes: each choice with its templates.

    The pods of a group share these nodes.
    """
    groups: list[tuple[NodeChoice, list[LintedTemplate]]] = []
    for scope in scopes:
        mine = next((found for choice, found in groups if choice == scope.template.nodes), None)
        if mine is None:
            groups.append((scope.template.nodes, [scope]))
        else:
            mine.append(scope)
    return groups


def _report_choice(
    subject: str,
    scope: LintedTemplate,
    needed: typing.AbstractSet[str],
    shut: typing.Sequence[Barrier],
    free: int,
    flavors: typing.Optional[typing.Sequence[str]],
) -> Finding:
    """Return the finding on pods that have no room on the nodes that they may use. It fails, except where another
    component may add the toleration: the admission plugin ExtendedResourceToleration for a taint that is named like a
    requested resource (unknown), and Kueue from a ResourceFlavor that was not read (a warning).

    :param scope: first of the templates
    :param needed: extended resources that the pods request
    :param shut: reasons why the pods cannot use the other nodes
    :param free: number of ready nodes that the pods may use
    :param flavors: names of the ResourceFlavors whose labels and tolerations are counted; None if they are not known
    """
    texts = collections.Counter(item.text for item in shut)
    measured = f"the pods may use {count_of(free, 'ready node')}, and {len(shut)} more have the resources"
    reasons = join_first([f"{text} ({count_of(count, 'node')})" for text, count in texts.most_common()], 4, "; ")
    why = f"The scheduler does not place the pods on nodes with room, so they would stay Pending: {reasons}."
    taints = {item.taint for item in shut}
    remedy = (
        "Add tolerations for these taints to the pod template."
        if "" not in taints
        else "Correct nodeSelector and affinity of the pod template: kubectl get nodes --show-labels lists the labels."
        if taints == {""}
        else "Correct nodeSelector, affinity and tolerations of the pod template."
    )
    status: Status = FAIL
    if flavors:
        remedy += (
            f" Kueue adds nodeLabels and tolerations of its ResourceFlavors ({join_first(flavors)}) to the pods;"
            " kubectl get resourceflavors -o yaml shows them."
        )
    if "" not in taints and scope.job.queue and flavors is None:
        status = WARN
        remedy += (
            " If the ResourceFlavor of the queue adds them (kubectl get resourceflavors -o yaml), waive this finding."
        )
    elif taints <= needed:
        status = UNKNOWN
        remedy += " If the API server runs with the admission plugin ExtendedResourceToleration, waive this finding."
    return Finding(
        "job.resources",
        f"{subject} nodes for the pods",
        status,
        measured,
        "room for all pods on nodes that they may use",
        why,
        remedy,
    )


def _find_barrier(choice: NodeChoice, node: ClusterNode, surroundings: JobSurroundings) -> typing.Optional[Barrier]:
    """Return the reason why pods cannot run on a node, or None if they can.

    :param choice: nodes on which the pods may run
    :param surroundings: state of the cluster, with the taints of its nodes
    """
    for key, value in choice.labels.items():
        if node.labels.get(key) != value:
            return Barrier(f"nodeSelector requires the label {_show(key, value)}")
    if choice.terms and not any(
        term and all(is_met(item, node.labels, node.name) for item in term) for term in choice.terms
    ):
        return Barrier("the required node affinity does not match its labels")
    for taint in surroundings.taints.get(node.name, ()):
        if not any(tolerates_taint(item, taint) for item in choice.tolerations):
            key = str(taint.get("key") or "")
            text = f"no toleration for the taint {_show(key, str(taint.get('value') or ''))}:{taint.get('effect')}"
            return Barrier(text, key)
    return None


def _show(key: str, value: str) -> str:
    return cut_text(f"{key}={value}" if value else key, _SHOWN)
