# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether the operators that training jobs need exist and are ready. Check ids: ``stack.operator``,
``stack.policy``.
"""

from __future__ import annotations

import typing

from ..._analysis.controllers.installation import describe_installation_step
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.job.job import JobWorkload
from ..._model.job.stack import Stack
from ..._model.job.surroundings import JobSurroundings
from ..._model.operators.operators import GPU, GPU_RESOURCES, KUEUE, NETWORK, OF_JOB, OPERATORS, SRIOV
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass

#: kinds of the policies of an operator, the one that it needs first
_POLICIES = {"gpu-operator": ("ClusterPolicy",), "network-operator": ("NicClusterPolicy", "NicNodePolicy")}
#: names of operators in texts, if the name in the table is not the usual one
_NAMES = {GPU: "NVIDIA's GPU operator", NETWORK: "NVIDIA's network operator"}


def _name(operator: str) -> str:
    """Return the name of an operator as the beginning of a sentence."""
    return _NAMES.get(operator, f"The operator {operator}")


def check_operators(
    jobs: typing.Iterable[JobWorkload], surroundings: JobSurroundings, stack: Stack
) -> typing.Iterator[Finding]:
    """Yield the findings on each operator that at least one of the jobs needs, once for each operator.

    :param surroundings: state of the cluster in which the jobs would run
    :param stack: operators of the cluster
    """
    needed: dict[str, set[str]] = {}
    for job in jobs:
        for operator, resources in _list_needed_operators(job, surroundings):
            needed.setdefault(operator, set()).update(resources)
    for operator, names in needed.items():
        yield from _check_operator(operator, sorted(names), surroundings, stack)


def _list_needed_operators(
    job: JobWorkload, surroundings: JobSurroundings
) -> typing.Iterator[tuple[str, typing.AbstractSet[str]]]:
    """Yield the operators that a job needs, each with the resources of nodes for which the job needs it.

    The set is empty for an operator that creates the pods of the job or admits the job.

    :param surroundings: state of the cluster, with the attachments of the pods
    """
    amounts = {name for template in job.templates for container in template.containers for name in container.limits}
    requested = {request.full_name for template in job.templates for request in template.networks}
    sriov = [
        item for item in surroundings.attachments if item.name in requested and {"sriov", "ib-sriov"} & {*item.kinds}
    ]
    gpus = {name for name in amounts if name.startswith(GPU_RESOURCES)}
    shared = {name for name in amounts if name.startswith("rdma/")}
    if gpus:
        yield GPU, gpus
    if shared:
        yield NETWORK, shared
    if sriov:
        # an attachment may name no resource
        yield SRIOV, {item.resource for item in sriov if item.resource}
    for operator in (*OF_JOB.get(job.kind, ()), *((KUEUE,) if job.queue else ())):
        yield operator, frozenset()


def _check_absent_operator(
    operator: str, resources: typing.Sequence[str], surroundings: JobSurroundings, stack: Stack
) -> Finding:
    """Return the finding on an operator that has no Deployment.

    It passes if at least two nodes (or the only node) offer the resources of the operator, as with a device plugin that
    runs without its operator. The jobs then need neither the operator nor its policies.

    :param resources: resources of nodes that the jobs need the operator for; empty if nothing else can replace it
    """
    check_id, expected = "stack.operator", "a Deployment with all pods ready"
    why, remedy = OPERATORS[operator].lack, describe_installation_step(OPERATORS[operator])
    if not resources:
        offers, measured = {}, "no Deployment"
    else:
        offers = {name: sum(node.allocatable.get(name, 0) > 0 for node in surroundings.nodes) for name in resources}
        shown = ", ".join(f"{name} on {count_of(number, 'node')}" for name, number in offers.items())
        measured = f"no Deployment; the kubelets offer {shown}"
        expected += ", or nodes that offer the resources of the jobs without it"
        if min(offers.values()) >= min(2, max(1, len(surroundings.nodes))):
            return build_pass(check_id, operator, measured, expected)
        if all(offers.values()):
            few = join_first([name for name, number in offers.items() if number == 1])
            why = f"Only one node offers {few}, so its kubelet alone shows a device plugin without the operator. {why}"
            remedy = (
                f"Check the device plugin on the other nodes: kubectl describe nodes must show {few} under"
                f" Allocatable. If the operator does not exist, {remedy[:1].lower()}{remedy[1:]}"
            )
            return Finding(check_id, operator, WARN, measured, expected, why, remedy)
    unread = [node.name for node in surroundings.nodes if not {*resources}.isdisjoint(node.unread)]
    if stack.unread_operators or unread or (resources and not surroundings.nodes and surroundings.errors):
        what = (
            "Not all Deployments of the cluster were read"
            if stack.unread_operators
            else f"Not all resources of the nodes were read ({join_first(unread) or 'all nodes'})"
        )
        why = f"{what}, so the operator, or a device plugin that runs without it, may exist. {why}"
        remedy = (
            "Follow the remedies of the findings stack.read and job.read. If the operator does not exist,"
            f" {remedy[:1].lower()}{remedy[1:]}"
        )
        return Finding(check_id, operator, UNKNOWN, measured, expected, why, remedy)
    absent = [name for name, number in offers.items() if not number]
    if absent:
        remedy += (
            " If its device plugin runs without the operator, correct the device plugin until kubectl describe node"
            f" shows {join_first(absent)} under Allocatable."
        )
    return Finding(check_id, operator, FAIL, measured, expected, why, remedy)


def _check_operator(
    operator: str, resources: typing.Sequence[str], surroundings: JobSurroundings, stack: Stack
) -> typing.Iterator[Finding]:
    check_id, expected = "stack.operator", "a Deployment with all pods ready"
    why = OPERATORS[operator].lack
    found = [item for item in stack.controllers if item.operator == operator]
    if not found:
        yield _check_absent_operator(operator, resources, surroundings, stack)
        return
    for item in found:
        measured = f"{item.name} {item.version or 'of unknown version'}, {item.ready} of {item.wanted} pods ready"
        if item.ready < 1 or item.ready < item.wanted:
            namespace, _slash, name = item.name.partition("/")
            yield Finding(
                check_id,
                operator,
                FAIL,
                measured,
                expected,
                f"{_name(operator)} has too few ready pods. {why}",
                f"Run kubectl -n {namespace} describe deployment {name}, and correct the cause that it shows.",
            )
        else:
            yield build_pass(check_id, operator, measured, expected)
    kinds = _POLICIES.get(operator, ())
    policies = [item for item in stack.policies if item.kind in kinds]
    if kinds and not policies:
        yield Finding(
            "stack.policy",
            kinds[0],
            FAIL,
            f"no {kinds[0]}",
            f"a {kinds[0]} in state ready",
            f"{_name(operator)} does nothing without a {kinds[0]}. {why}",
            f"Create a {kinds[0]}: kubectl apply -f FILE, with the example in the documentation of"
            f" {_NAMES.get(operator, 'the operator')} as FILE.",
        )
    for policy in policies:
        kind = policy.kind
        if policy.state == "ready":
            yield build_pass("stack.policy", f"{kind} {policy.name}", policy.state, "state ready")
        else:
            text = f"{_name(operator)} has not finished the configuration of the cluster, or cannot finish it."
            yield Finding(
                "stack.policy",
                f"{kind} {policy.name}",
                FAIL,
                policy.state or "no state",
                "state ready",
                text,
                f"Run kubectl describe {kind} {policy.name}, and correct the cause that it shows.",
            )
