# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the jobs and pods that the removal of an intent's objects would end, whoever made them."""

from __future__ import annotations

import dataclasses
import itertools
import re
import typing

from ...._model.base.marks import INTENT_LABEL, RUN_LABEL, is_ours
from ...._model.kubernetes.measuring import NAMESPACE as MEASURING
from ...._model.kubernetes.own_kinds import NETWORKS, RUNNING_JOBS
from ...._model.kubernetes.scope import Scope
from ...._model.kubernetes.scope_fields import find_selector
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._observe.kubernetes.removal.copies import split_copies, split_other_intents
from ...._observe.kubernetes.removal.removable_objects import Removal, list_objects
from ...._observe.operators.users import split_needed
from ...._parse.job.pod_template import NETWORKS_ANNOTATION
from ...._parse.job.train_job import find_runtime
from ...._parse.kubernetes.foreign import is_mirror_pod
from ...._parse.kubernetes.resource import (
    ResourceError,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    read_namespace,
    why_not_read,
)
from ..claimed_devices import ClaimedDevices
from .pods import MOST_PODS, SERVICES

#: conditions of a job that has ended
_ENDED = ("Succeeded", "Complete", "Failed")
#: name of an object, with its namespace or without, in the annotation of a pod
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*(?:/[a-z0-9][a-z0-9.-]*)?")


class _Used(typing.NamedTuple):
    """The networks and resources of an intent, and the nodes that offer its resources. A ResourceClaim for network
    devices counts as a resource of the intent, because a claim does not name the intent.

    :ivar networks: names of the networks, without namespace
    :ivar resources: names of the resources, without prefix
    :ivar claims: reader of the ResourceClaims
    :ivar selectors: labels of the nodes that offer the resources. A node with all labels of one of these mappings
        counts
    """

    networks: frozenset[str]
    resources: frozenset[str]
    claims: ClaimedDevices
    selectors: tuple[typing.Mapping[str, str], ...] = ()


def list_own(cluster: Cluster, kind: str, removal: Removal) -> tuple[Resource, ...]:
    """Return the objects of a kind that a removal takes: those of the intent, without copies by users, and without
    those that other users and intents need.

    :param removal: the selection of the objects; its kinds are ignored
    :raises ApiError: the API server refuses the list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    narrowed = dataclasses.replace(removal, kinds=(kind,))
    own, _copies = split_copies(kind, list_objects(cluster, kind, narrowed))
    mine, _others = split_other_intents(kind, own, removal.scope)
    return split_needed(cluster, kind, mine, removal.scope)[0]


def find_unended(cluster: Cluster, removal: Removal) -> list[str]:
    """Return the jobs that have not ended and that the removal would end, as ``kind namespace/name``: those of the
    intent, and those of all other users in its namespaces that use its networks or resources. A job of the collection
    without the name of an intent, which an earlier release submitted, counts in these namespaces too.

    Pods that belong to none of these jobs count in all namespaces if they hold resources of the intent on one of its
    nodes. Pods of services do not count. At most ``MOST_PODS`` pods are returned.

    :param removal: the selection of the objects; without a scope, only the jobs with the label of the collection count
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    scope = removal.scope if removal.scope is not None else Scope()
    used = _find_used(cluster, removal, scope)
    found: dict[tuple[str, str, str], Resource] = {}
    for kind in RUNNING_JOBS:
        for job in list_own(cluster, kind, removal):
            found[(kind, read_namespace(job), name_of(job))] = job
    for namespace in sorted(scope.namespaces):
        runtimes = _list_all(cluster, "TrainingRuntime", namespace)
        for kind in RUNNING_JOBS:
            for job in _list_all(cluster, kind, namespace):
                if _is_of_earlier_release(job) or _uses_job(kind, job, runtimes, used):
                    found[(kind, namespace, name_of(job))] = job
    unended = [key for key, job in found.items() if not _has_ended(job)]
    unended += itertools.islice(_find_pods(cluster, scope, used, unended.copy()), MOST_PODS)
    return [f"{kind} {namespace}/{name}" for kind, namespace, name in unended]


def _find_used(cluster: Cluster, removal: Removal, scope: Scope) -> _Used:
    """Return the networks and resources that the intent offers to jobs. The policies in the cluster count too, because
    a removal also takes policies that the intent does not require any more.

    :param removal: the selection of the objects
    :param scope: objects of the intent
    """
    networks = frozenset(name for kind, name, _fabric in scope.names if kind in NETWORKS)
    specs = [mapping_at(item, "spec") for item in list_own(cluster, "SriovNetworkNodePolicy", removal)]
    resources = {str(spec["resourceName"]) for spec in specs if spec.get("resourceName")}
    selectors = [find_selector("SriovNetworkNodePolicy", {"spec": spec}) or {} for spec in specs]
    return _Used(networks, scope.resources | resources, ClaimedDevices(cluster), (scope.selector, *selectors))


def _find_pods(
    cluster: Cluster, scope: Scope, used: _Used, jobs: typing.Sequence[tuple[str, str, str]]
) -> typing.Iterator[tuple[str, str, str]]:
    """Yield the pods that hold resources of the intent, as kind, namespace and name. A pod outside of the namespaces of
    the intent counts unless its node is known and offers no resource of the intent. A pod that is too large to be read
    counts. Without resources of the intent, no pod counts.

    :param scope: objects of the intent
    :param used: networks and resources of the intent
    :param jobs: kind, namespace and name of each job that has not ended. The pods of these jobs are left out
    """
    if not used.resources:
        return
    others = {
        name_of(node)
        for node in cluster.pages("Node", partial=True)
        if not any(selector.items() <= labels_of(node).items() for selector in used.selectors)
    }
    names: dict[str, set[str]] = {}
    for _kind, namespace, name in jobs:
        names.setdefault(namespace, set()).add(name)
    for pod in cluster.pages("Pod", partial=True):
        namespace = read_namespace(pod)
        if is_mirror_pod("Pod", pod) or not names.get(namespace, set()).isdisjoint(labels_of(pod).values()):
            continue
        inside = namespace in scope.namespaces
        # those of a run go with it; a template of a job may be in an object of any kind, which is not counted above
        if RUN_LABEL in labels_of(pod) if inside else namespace == MEASURING or _find_node(pod) in others:
            continue
        if why_not_read(pod) or _holds_resources(pod, used):
            yield "Pod", namespace, name_of(pod)


def _list_all(cluster: Cluster, kind: str, namespace: str) -> tuple[Resource, ...]:
    return list_objects(cluster, kind, Removal((kind,), "", namespaces=(namespace,)))


def _is_of_earlier_release(job: Resource) -> bool:
    return is_ours(labels_of(job)) and INTENT_LABEL not in labels_of(job)


def _has_ended(job: Resource) -> bool:
    """Return whether a job has ended. A job that is suspended or restarts has not, and neither has a job without a
    status.
    """
    conditions = items_of(mapping_at(job, "status"), "conditions", str(job.get("kind")))
    return any(str(item.get("type")) in _ENDED and str(item.get("status")) == "True" for item in conditions)


def _uses_job(kind: str, job: Resource, runtimes: typing.Sequence[Resource], used: _Used) -> bool:
    """Return whether pods of a job use networks or resources of the intent. Return True if the job or the runtime of a
    TrainJob cannot be read, because the templates of the pods are then unknown.

    :param kind: kind of the job
    :param runtimes: TrainingRuntimes of the namespace of the job
    :param used: networks and resources of the intent
    """
    namespace = read_namespace(job)
    # of a list that is too large only the metadata is known
    if "spec" not in job or _uses(job["spec"], namespace, used):
        return True
    if kind != "TrainJob":
        return False
    try:
        of_kind, _namespace, name = find_runtime(job)
    except ResourceError:
        return True
    named = [item for item in runtimes if of_kind == "TrainingRuntime" and name_of(item) == name]
    return not named or any("spec" not in item or _uses(item["spec"], namespace, used) for item in named)


def _uses(value: typing.Any, namespace: str, used: _Used) -> bool:
    """Return whether a value of an object contains, at any depth, a pod template that uses networks or resources of the
    intent.

    :param value: decoded JSON, such as the spec of a job
    :param namespace: namespace of the object
    :param used: networks and resources of the intent
    """
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += value.values()
            if used.resources and "resourceClaims" in value and used.claims.may_be_network(value, namespace):
                return True
            asked = set(_NAME.findall(str(value.get(NETWORKS_ANNOTATION) or "")))
            if any({name, f"{namespace}/{name}"} & asked for name in used.networks):
                return True
            for amounts in (value.get("limits"), value.get("requests")):
                if isinstance(amounts, dict) and any(str(key).rpartition("/")[2] in used.resources for key in amounts):
                    return True
    return False


def _find_node(pod: Resource) -> str:
    """Return the name of the node of a pod. Return an empty text if the pod has no node, or if only its metadata was
    read.
    """
    return "" if why_not_read(pod) else str(mapping_at(pod, "spec").get("nodeName") or "")


def _holds_resources(pod: Resource, used: _Used) -> bool:
    """Return whether a pod has not ended, holds resources of the intent on a node, and does not belong to a service,
    whose controller would replace the pod.

    :param used: networks and resources of the intent
    """
    spec, owners = mapping_at(pod, "spec"), items_of(mapping_at(pod, "metadata"), "ownerReferences", "Pod")
    if not spec.get("nodeName") or any(one.get("kind") in SERVICES for one in owners):
        return False
    if mapping_at(pod, "status").get("phase") in ("Succeeded", "Failed"):
        return False
    return _uses(spec, read_namespace(pod), used._replace(networks=frozenset()))
