# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the nodes that the pods of a job may use, by their nodeSelector, node affinity and tolerations, have room
for them. Check id: ``job.resources``.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import cut_text, join_first
from ..._model.job.job import JobSurroundings, NodeChoice, NodeRequirement
from ..._model.kubernetes.objects import ClusterNode
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status
from ..._parse.kubernetes.core import tolerates_taint
from .choice import report_uncompared
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
    world: JobSurroundings,
    fit: typing.Sequence[ClusterNode],
    served: typing.Container[str],
) -> typing.Iterator[Finding]:
    """Yield a finding for the templates whose pods have room on the ready nodes, but not on those nodes that their
    nodeSelector, node affinity and tolerations permit.

    :param scopes: pod templates of one job
    :param world: state of the cluster in which the job would run
    :param fit: nodes that are ready and not cordoned
    :param served: extended resources that DeviceClasses provide, which a node need not offer
    """
    offered = {name for node in fit for name in node.allocatable}
    for choice, mine in _group_by_choice(scopes):
        subject = ", ".join(scope.subject if index == 0 else scope.template.path for index, scope in enumerate(mine))
        if not mine[0].budget.spend(choice.size * len(fit)):
            yield report_uncompared("job.resources", subject, "nodes of the pods", "nodes for all pods", "the nodes")
            return
        barriers = {node.name: _find_barrier(choice, node, world) for node in fit}
        free = [node for node in fit if barriers[node.name] is None]
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
        shut = [
            item
            for node in fit
            if (item := barriers[node.name]) is not None and all(node.allocatable.get(name) for name in needed)
        ]
        if shut and not _have_room(requests, free):
            yield _report_choice(subject, mine[0], needed, shut, len(free))


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
    """Return the pod templates with the same choice of nodes together, because their pods share these nodes."""
    groups: list[tuple[NodeChoice, list[LintedTemplate]]] = []
    for scope in scopes:
        mine = next((found for choice, found in groups if choice == scope.template.nodes), None)
        if mine is None:
            groups.append((scope.template.nodes, [scope]))
        else:
            mine.append(scope)
    return groups


def _report_choice(
    subject: str, scope: LintedTemplate, needed: typing.AbstractSet[str], shut: typing.Sequence[Barrier], free: int
) -> Finding:
    """Return the finding on pods that have no room on the nodes that they may use. It fails, except where another
    component may add the toleration: the admission plugin ExtendedResourceToleration for a taint that is named like a
    requested resource (unknown), and Kueue from a ResourceFlavor (a warning).

    :param scope: first of the templates
    :param needed: extended resources that the pods request
    :param shut: reasons why the pods cannot use the other nodes
    :param free: number of ready nodes that the pods may use
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
    if "" not in taints and scope.job.queue:
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


def _find_barrier(choice: NodeChoice, node: ClusterNode, world: JobSurroundings) -> typing.Optional[Barrier]:
    """Return the reason why pods cannot run on a node, or None if they can.

    :param choice: nodes on which the pods may run
    :param world: state of the cluster, with the taints of its nodes
    """
    for key, value in choice.labels.items():
        if node.labels.get(key) != value:
            return Barrier(f"nodeSelector requires the label {_show(key, value)}")
    if choice.terms and not any(term and all(_is_met(item, node) for item in term) for term in choice.terms):
        return Barrier("the required node affinity does not match its labels")
    for taint in world.taints.get(node.name, ()):
        if not any(tolerates_taint(item, taint) for item in choice.tolerations):
            key = str(taint.get("key") or "")
            text = f"no toleration for the taint {_show(key, str(taint.get('value') or ''))}:{taint.get('effect')}"
            return Barrier(text, key)
    return None


def _show(key: str, value: str) -> str:
    return cut_text(f"{key}={value}" if value else key, _SHOWN)


def _is_met(requirement: NodeRequirement, node: ClusterNode) -> bool:
    """Return whether a node meets a requirement. An operator that this collection does not know counts as met."""
    value = node.name if requirement.of_name else node.labels.get(requirement.key)
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        bound, number = _parse_integer(values[0] if values else ""), _parse_integer(value or "")
        return bound is not None and number is not None and (number > bound if operator == "Gt" else number < bound)
    return True


def _parse_integer(text: str) -> typing.Optional[int]:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
