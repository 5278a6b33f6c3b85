# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules for the node resources and volume claims that the pods of a job request: do they exist, and are there enough
for all pods.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.load_error import Hints
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.job.job import JobWorkload
from ..._model.job.surroundings import JobSurroundings
from ..._model.kubernetes.objects import ClusterNode
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .node_choice import check_choices
from .scope import LintedTemplate, collect_extended_resources, is_gpu

#: of a resource that one machine has at most: sixteen GPUs that are partitioned or shared in time; and of what a plugin
#: hands out any number of times, such as the RDMA device of a node that its pods share
_MOST_GPUS, _MOST_PIECES = 1024, 65_536
#: how many times the room of any other node a node has, that is looked at
_MUCH_MORE = 4


def check_places(scopes: typing.Sequence[LintedTemplate], surroundings: JobSurroundings) -> typing.Iterator[Finding]:
    """Check that the nodes have the resources that the pods request: that a node offers a resource of this name, that
    one node has enough for a pod, and that there is room for all pods at the same time.

    :param scopes: pod templates of one job
    :param surroundings: state of the cluster in which the job would run
    """
    groups: dict[tuple[tuple[str, int], ...], list[LintedTemplate]] = {}
    for scope in scopes:
        groups.setdefault(tuple(sorted(collect_extended_resources(scope.template).items())), []).append(scope)
    findings: list[Finding] = []
    for amounts, mine in groups.items():
        subject = ", ".join(scope.subject if index == 0 else scope.template.path for index, scope in enumerate(mine))
        findings += _group_places(
            subject, dict(amounts), sum(scope.template.count for scope in mine), surroundings, mine[0].hints
        )
    yield from findings
    if all(finding.status != FAIL for finding in findings):
        yield from _check_all_places(scopes, surroundings)
        # where pods of the job run, the cluster has placed them
        if not surroundings.pods and not surroundings.claiming_pods:
            yield from check_choices(
                scopes, surroundings, _list_schedulable_nodes(surroundings), _collect_served_resources(surroundings)
            )


def _check_all_places(
    scopes: typing.Sequence[LintedTemplate], surroundings: JobSurroundings
) -> typing.Iterator[Finding]:
    """Yield a failed finding for each resource of which the ready nodes have too few for all pods of the job together.

    Each pod template may fit alone, but all pods need the nodes at the same time. Nodes that report implausible amounts
    do not count.

    :param scopes: pod templates of one job
    :param surroundings: state of the cluster in which the job would run
    """
    wanted: typing.Counter[str] = collections.Counter()
    for scope in scopes:
        wanted.update(
            {name: count * scope.template.count for name, count in collect_extended_resources(scope.template).items()}
        )
    served, offered = (
        _collect_served_resources(surroundings),
        {name for node in surroundings.nodes for name in node.allocatable},
    )
    for name, amount in sorted(wanted.items()):
        if name in served and name not in offered:
            continue
        there = sum(
            node.allocatable.get(name, 0)
            for node in _list_schedulable_nodes(surroundings)
            if not _is_implausible(node, [name])
        )
        if there < amount:
            why = (
                "The pods of each template have room alone, but all pods of the job must run at once. Pods without"
                " room wait, and the other pods wait for them."
            )
            subject, expected = f"{scopes[0].job.subject} {name}", f"{amount} {name} for all pods together"
            yield Finding(
                "job.resources",
                subject,
                FAIL,
                f"{there} {name} on the ready nodes",
                expected,
                why,
                "Request fewer pods or devices, end other jobs that hold them, or add nodes.",
            )


def _collect_served_resources(surroundings: JobSurroundings) -> set[str]:
    """Return the extended resources that DeviceClasses provide. The scheduler creates the claims for them.

    :param surroundings: state of the cluster in which the job would run
    """
    return {item.resource for item in surroundings.device_classes or () if item.resource}


def _group_places(
    subject: str, amounts: typing.Mapping[str, int], pods: int, surroundings: JobSurroundings, hints: Hints
) -> typing.Iterator[Finding]:
    check, known = "job.resources", {name for node in surroundings.nodes for name in (*node.allocatable, *node.unread)}
    served = _collect_served_resources(surroundings)
    amounts = {name: count for name, count in amounts.items() if name in known or name not in served}
    absent = sorted(set(amounts) - known)
    for name in absent:
        why = "No node offers this resource, so the pods would stay Pending."
        remedy = (
            "Correct the name of the resource in the job: kubectl get nodes -o"
            " custom-columns=NAME:.metadata.name,ALLOCATABLE:.status.allocatable lists what the nodes offer. If"
            " the name is right, its device plugin does not run: follow the finding network.allocatable."
        )
        yield Finding(
            check,
            f"{subject} {name}",
            FAIL,
            f"0 nodes offer {name}",
            f"a resource that a node offers{hints.nearest(name, known)}",
            why,
            remedy,
        )
    if absent:
        return
    fit = _list_schedulable_nodes(surroundings)
    lies = [node.name for node in fit if _is_implausible(node, amounts)]
    fit = [node for node in fit if not _is_implausible(node, amounts)]
    rooms = {
        node.name: min(
            (node.allocatable.get(name, 0) // count for name, count in amounts.items() if count), default=pods
        )
        for node in fit
    }
    places = sum(rooms.values())
    shown, measured = (
        ", ".join(f"{name}: {count}" for name, count in amounts.items()),
        f"room for {count_of(places, 'pod')} on {count_of(len(fit), 'ready node')}",
    )
    if places < pods:
        why = (
            f"Each pod needs {shown}, and all pods must run at once. Pods without room wait, and the other pods wait"
            " for them."
        )
        yield Finding(
            check,
            subject,
            FAIL,
            measured,
            f"room for {count_of(pods, 'pod')}",
            why,
            "Request fewer pods or devices, end other jobs that hold them, or add nodes.",
        )
    else:
        offering = {
            node.name: rooms[node.name]
            for node in fit
            if all(node.allocatable.get(name, 0) for name, count in amounts.items() if count)
        }
        yield _check_one_node(subject, offering, places, pods) or build_pass(
            check, subject, measured, f"room for {count_of(pods, 'pod')}"
        )
    if lies:
        why = (
            f"A machine has at most {_MOST_GPUS} GPUs and at most {_MOST_PIECES} of another resource. Each kubelet"
            " reports its own resources, and this check does not count these nodes."
        )
        remedy = (
            f"Run kubectl describe node {lies[0]}, and compare Allocatable with the machine. Restart the device"
            " plugin whose number is wrong (delete its pod), and do the same for the other nodes."
        )
        yield Finding(
            check, f"{subject} nodes", WARN, join_first(lies), "nodes with amounts that a machine can have", why, remedy
        )


def _list_schedulable_nodes(surroundings: JobSurroundings) -> list[ClusterNode]:
    return [node for node in surroundings.nodes if node.ready and not node.unschedulable]


def _is_implausible(node: ClusterNode, names: typing.Iterable[str]) -> bool:
    """Return whether a node reports more of one of these resources than any machine can have.

    :param names: names of extended resources
    """
    return any(node.allocatable.get(name, 0) > (_MOST_GPUS if is_gpu(name) else _MOST_PIECES) for name in names)


def _check_one_node(subject: str, rooms: typing.Mapping[str, int], places: int, pods: int) -> typing.Optional[Finding]:
    """Warn if one node reports much more room for pods than any other, and the pods do not fit without that node.
    Return None otherwise. Each node reports its own amounts, so they may be wrong.

    :param subject: subject of the finding
    :param rooms: number of pods that fit on a node, by node, for the nodes that have all of the resources
    :param places: number of pods that fit on all nodes
    :param pods: number of pods of the job
    """
    names = sorted(rooms, key=lambda name: -rooms[name])
    if len(names) < 2 or rooms[names[0]] <= _MUCH_MORE * rooms[names[1]] or places - rooms[names[0]] >= pods:
        return None
    rest = places - rooms[names[0]]
    why = (
        "Every other node reports less than a quarter of this room. Without this node, there is room for"
        f" {count_of(rest, 'pod')}."
        " Each kubelet reports its own resources, so they can be wrong."
    )
    remedy = f"Verify that the machine has these resources: kubectl describe node {names[0]}."
    return Finding(
        "job.resources",
        subject,
        WARN,
        f"room for {count_of(rooms[names[0]], 'pod')} on {names[0]} alone",
        f"room for {count_of(pods, 'pod')}",
        why,
        remedy,
    )


def check_claims(
    job: JobWorkload, scopes: typing.Sequence[LintedTemplate], surroundings: JobSurroundings
) -> typing.Iterator[Finding]:
    """Check that the PersistentVolumeClaims of a job exist, are Bound, and have an access mode by which all pods can
    mount them.

    :param scopes: pod templates of the job
    :param surroundings: state of the cluster in which the job would run
    """
    known = {item.name: item for item in surroundings.claims}
    pods = sum(scope.template.count for scope in scopes)
    for name in sorted({name for scope in scopes for name in scope.template.claims}):
        subject, expected = f"{job.subject} claim {name}", "Bound, ReadWriteMany" if pods > 1 else "Bound"
        found = known.get(f"{job.namespace}/{name}")
        if found is None:
            why = (
                "No PersistentVolumeClaim of this name exists in the namespace of the job, so the pods would stay"
                " Pending."
            )
            yield Finding(
                "job.claims",
                subject,
                FAIL,
                "PersistentVolumeClaim does not exist",
                expected,
                why,
                "Create the PersistentVolumeClaim, or correct its name in the job.",
            )
            continue
        measured = ", ".join((found.phase or "no phase", *found.modes))
        if pods > 1 and not {"ReadWriteMany", "ReadOnlyMany"} & set(found.modes):
            why = "Only one node can mount the volume, but the job has several pods."
            yield Finding(
                "job.claims",
                subject,
                FAIL,
                measured,
                expected,
                why,
                "Use a claim with ReadWriteMany, from a storage class that supports it.",
            )
        elif found.phase == "Lost":
            why = (
                "The volume of the claim no longer exists. Kubernetes does not bind another volume to the claim, so"
                " the pods would stay Pending."
            )
            yield Finding(
                "job.claims",
                subject,
                FAIL,
                measured,
                expected,
                why,
                f"Run kubectl -n {job.namespace} describe pvc {name}, and restore the volume.",
            )
        elif found.phase != "Bound":
            why = (
                "No volume is bound to the claim yet. Some storage classes bind a volume only when a pod uses the"
                " claim (WaitForFirstConsumer)."
            )
            yield Finding(
                "job.claims",
                subject,
                WARN,
                measured,
                expected,
                why,
                f"Run kubectl -n {job.namespace} describe pvc {name} to find the cause.",
            )
        else:
            yield build_pass("job.claims", subject, measured, expected)
