# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse a job of any kind by its pod templates.

The templates are found anywhere in the job, so PyTorchJob, MPIJob, JobSet, Job, StatefulSet and other kinds need no
code of their own, except for the number of their pods: ``numOfHosts`` of a RayCluster, ``size`` of a LeaderWorkerSet. A
TrainJob has no template. train_job.py adds the template of its runtime. [src kubeflow/trainer v1.9.4 and v2.3.0
pkg/apis]
"""

from __future__ import annotations

import itertools
import typing

from ..._model.boundary.form import describe_rejected
from ..._model.boundary.kubernetes import LABEL_VALUE, SUBDOMAIN
from ..._model.job.job import (
    JobWorkload,
    PodTemplate,
)
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    items_of,
    mapping_at,
    name_of,
    number_of,
    read_namespace,
    text_at,
    text_of,
    title_of,
)
from .pod_template import parse_template
from .train_job import ANCESTOR, add_runtime, is_trainer

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

#: kinds that are jobs even where a mistake hides their pods, such as ``container:`` instead of ``containers:``
_KINDS = ("Pod", "Job", "JobSet", "StatefulSet", "Deployment", "PyTorchJob", "MPIJob", "TrainJob")
#: parts of one job that are read; a file can be made that unfolds without end. And characters of the path to one of
#: them, which each of its pod templates and containers repeats; the key of an annotation has 317
_MOST, _MOST_OF_A_PATH = 20_000, 1000
#: pod templates of one job. Each is judged against the others and against each node
_MOST_TEMPLATES = 256


def is_job(resource: Resource) -> bool:
    """Return whether an object is a job, from which pods are created. This is the case if its kind is a known kind of
    job, or if it contains a pod template.

    :raises ResourceError: the object has more parts, more levels or longer paths than a job can have
    """
    if not isinstance(resource, dict):
        return False
    return resource.get("kind") in _KINDS or next(_find_templates(resource, "", 1, itertools.count()), None) is not None


def parse_workload(resource: Resource, runtimes: typing.Iterable[Resource] = ()) -> JobWorkload:
    """Return a job with its pod templates as they will be after its operator has created the pods.

    :param resource: object of the job
    :param runtimes: TrainingRuntimes and ClusterTrainingRuntimes of the cluster, of which a TrainJob references one
    :raises ResourceError: the object is not a job, a part of it has an unexpected form, or its runtime does not exist
    """
    name, namespace, title = (
        text_of(SUBDOMAIN, name_of(resource), f"{title_of(resource)}: metadata.name"),
        read_namespace(resource),
        title_of(resource),
    )
    kind = resource.get("kind") or ""
    if not isinstance(kind, str):
        raise ResourceError(f"{title}: kind is {describe_rejected(kind)}, expected text")
    body, replaced = add_runtime(resource, runtimes) if resource.get("kind") == "TrainJob" else (resource, {})
    found_templates = list(itertools.islice(_find_templates(body, "", 1, itertools.count()), _MOST_TEMPLATES + 1))
    if len(found_templates) > _MOST_TEMPLATES:
        raise ResourceError(f"{title}: more than {_MOST_TEMPLATES} pod templates, which is the limit of a job")
    templates = tuple(parse_template(*found, namespace, replaced) for found in found_templates)
    if not templates:
        raise ResourceError(f"{title_of(resource)}: it contains no pod template, so it is not a job")
    queue = text_at(LABEL_VALUE, mapping_at(resource, "metadata", "labels"), QUEUE_LABEL, f"{title}: metadata.labels")
    return JobWorkload(
        kind,
        name,
        namespace,
        templates,
        queue,
        _find_missing_addresses(body, templates),
        _find_processes(resource, body),
    )


def _find_processes(resource: Resource, body: Resource) -> str:
    """Return the number of processes of a pod that the operator gives to torchrun, as text. Return an empty string if
    the object sets none.

    :param resource: object of the job
    :param body: the same with the template of its runtime
    """
    spec = mapping_at(resource, "spec")
    found = (
        spec.get("nprocPerNode"),
        mapping_at(spec, "trainer").get("numProcPerNode"),
        mapping_at(body, "spec", "mlPolicy", "torch").get("numProcPerNode"),
    )
    return next((str(item) for item in found if isinstance(item, (str, int))), "")


def _find_missing_addresses(body: Resource, templates: typing.Sequence[PodTemplate]) -> str:
    """Return the reason why the operator that runs a job will not give its pods the addresses of each other. Return an
    empty string if no such reason is known. [kubeflow/trainer v1.9.4 pkg/controller.v1/pytorch/envvar.go,
    pkg/webhooks/pytorch]

    :param body: object of the job
    :param templates: parsed pod templates of the job
    """
    kind, spec = body.get("kind"), mapping_at(body, "spec")
    if kind == "PyTorchJob":
        other = [str(role) for role in mapping_at(spec, "pytorchReplicaSpecs") if role not in ("Master", "Worker")]
        if other:
            return f"The training operator accepts only the roles Master and Worker, and rejects {', '.join(other)}"
        if len(templates) < len(mapping_at(spec, "pytorchReplicaSpecs")):
            return "One of its roles has no template with containers, so the training operator refuses it"
        if not all(any(container.name == "pytorch" for container in template.containers) for template in templates):
            return (
                "The training operator requires a container named pytorch in each of its pods, and refuses the job"
                " without one"
            )
        if "Master" not in mapping_at(spec, "pytorchReplicaSpecs") and not spec.get("elasticPolicy"):
            return "Without a Master and without an elasticPolicy, no pod gets the address of the rendezvous"
    if kind == "TrainJob" and not any(
        is_trainer(item) for item in items_of(mapping_at(spec, "template", "spec"), "replicatedJobs", "its runtime")
    ):
        return (
            f"No job of its runtime has the label {ANCESTOR}: trainer, so the trainer starts one pod and ignores the"
            " settings of the TrainJob"
        )
    if (
        kind == "TrainJob"
        and not [key for key in mapping_at(spec, "mlPolicy") if key != "numNodes"]
        and sum(item.count for item in templates) > 1
    ):
        return (
            "Its runtime names no framework in mlPolicy (torch, mpi ...), so the trainer sets none of the variables"
            " that the pods need for the rendezvous"
        )
    return ""


def _count_workers(group: Resource, path: str) -> int:
    """Return the number of pods of a group that are created from its ``workerTemplate``. The group of a LeaderWorkerSet
    has ``size`` pods. One of them is created from ``leaderTemplate`` if the group has such a template. Without ``size``
    the result is 1. [src kubernetes-sigs/lws api/leaderworkerset/v1]

    :param group: mapping with the templates
    :param path: path of the mapping in the object, for messages
    :raises ResourceError: ``size`` is not a valid number
    """
    if group.get("size") is None:
        return 1
    return max(number_of(group["size"], f"{path}.size") - bool(group.get("leaderTemplate")), 0)


def _limit_pods(node: Resource, number: int, key: str, path: str) -> int:
    """Return the number of pods that run at the same time. A Job runs no more pods than it has completions left.
    [k8s.io/api batch/v1 JobSpec.parallelism]

    :param node: mapping that has the number
    :param number: value of ``key``
    :param path: path of the mapping in the object, for messages
    :raises ResourceError: ``completions`` is not a valid number
    """
    if key != "parallelism" or node.get("completions") is None:
        return number
    return min(number, number_of(node["completions"], f"{path}.completions"))


def _add_claimed_volumes(parent: Resource, template: Resource, path: str) -> Resource:
    """Return a pod template with the volumes that the controller of its parent adds for ``volumeClaimTemplates``, such
    as the controller of StatefulSets. Without such claims the template is returned unchanged.

    :param parent: mapping that contains the template
    :param path: path of the mapping in the object, for messages
    """
    names = [name_of(claim) for claim in items_of(parent, "volumeClaimTemplates", path)]
    if not names:
        return template
    spec = mapping_at(template, "spec")
    volumes = [*items_of(spec, "volumes", path), *({"name": name} for name in names)]
    return {**template, "spec": {**spec, "volumes": volumes}}


def _find_templates(
    node: typing.Any, path: str, count: int, visited: typing.Iterator[int]
) -> typing.Iterator[tuple[str, Resource, int]]:
    """Yield all pod templates below a node of a job object: the path of the template, the template, and the number of
    pods that are created from it.

    :param node: a mapping, list or plain value of the object
    :param path: path of ``node`` in the object
    :param count: number of pods that the parents of ``node`` request
    :param visited: counter of the visited nodes, shared by all levels
    :raises ResourceError: the object has more parts, more levels or longer paths than a job can have
    """
    if len(path) > _MOST_OF_A_PATH:
        raise ResourceError(
            f"{path[:100]}...: a path of {len(path)} characters; the limit in a job is {_MOST_OF_A_PATH}"
        )
    if next(visited, _MOST) >= _MOST or path.count(".") > 30:
        raise ResourceError(f"more than {_MOST} parts, or nested too deeply: no job looks like that")
    if isinstance(node, dict):
        if isinstance(node.get("spec"), dict) and isinstance(node["spec"].get("containers"), list):
            yield path, node, count
            return
        for key in ("replicas", "parallelism", "numOfHosts"):
            if node.get(key) is not None:
                count *= _limit_pods(node, number_of(node[key], f"{path}.{key}"), key, path)
        for key, child in node.items():
            each = _count_workers(node, path) if key == "workerTemplate" else 1
            for found in _find_templates(child, f"{path}.{key}" if path else str(key), count * each, visited):
                yield (found[0], _add_claimed_volumes(node, found[1], path), found[2])
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _find_templates(child, f"{path}[{index}]", count, visited)
