# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""A training job in a cluster, and what it meets there."""

from __future__ import annotations

import typing

from .._model.errors import RdmaError
from .._model.facts import NodeHcas
from .._model.job import World
from .._model.stack import Controller, Stack
from .._parse import job as parse
from .._parse import stack
from .._parse.kubernetes import node as parse_node
from .kubernetes import ApiError, Cluster, Resource, read_yaml

#: by which the operators mark the pods of a job
_LABELS = ("training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")


def read_job(cluster: Cluster, kind: str, namespace: str, name: str) -> typing.Tuple[Resource, ...]:
    """The object, and the runtime that a TrainJob refers to, should it be there.

    :raises ApiError: it is not there, or the server refuses
    :raises ResourceError: a TrainJob that names no runtime
    """
    job = {"kind": kind, **cluster.get(kind, namespace, name)}
    return (job, *runtimes(cluster, [job]))


def runtimes(cluster: Cluster, jobs: typing.Iterable[Resource]) -> typing.Tuple[Resource, ...]:
    """The runtimes that TrainJobs refer to; one that is not there is left out, and the linter says so.

    :raises ApiError: the server refuses
    """
    found = []
    for job in jobs:
        if job.get("kind") == "TrainJob":
            kind, namespace, name = parse.runtime_of(job)
            try:
                found.append({"kind": kind, **cluster.get(kind, namespace, name)})
            except ApiError as error:
                if not error.absent:
                    raise
    return tuple(found)


def observe(cluster: Cluster, namespaces: typing.Iterable[str], running: typing.Sequence[typing.Tuple[str, str]], hcas: typing.Mapping[str, NodeHcas]) -> World:
    """Read it all. What cannot be read is in ``errors``.

    :param namespaces: of the jobs
    :param running: namespace and name of each job whose pods are looked at
    :param hcas: answer of hca_info of each node
    :raises ApiError: the server cannot be reached
    """
    errors: typing.List[str] = []

    def parsed(kind: str, parser: typing.Callable[[Resource], typing.Any], namespace: str = "") -> typing.Iterator[typing.Any]:
        try:
            for item in cluster.pages(kind, namespace):
                yield parser(item)
        except ApiError as error:
            if error.status == 0:
                raise
            errors.append(error.seen)
        except RdmaError as error:
            errors.append(error.seen)

    def devices(pod: Resource) -> typing.Any:
        return parse.pod_devices(pod) if _of(pod, names) else None

    pods: typing.List[typing.Any] = []
    for namespace in sorted({namespace for namespace, _name in running}):
        names = {name for of, name in running if of == namespace}
        pods += [found for found in parsed("Pod", devices, namespace) if found is not None]
    return World(
        nodes=tuple(parsed("Node", parse_node)),
        attachments=tuple(parsed("NetworkAttachmentDefinition", parse.attachment)),
        claims=tuple(found for namespace in sorted(set(namespaces)) for found in parsed("PersistentVolumeClaim", parse.claim, namespace)),
        pods=tuple(pods),
        devices={node: tuple(hca.rdma_device for hca in answer.hcas if hca.rdma_device) for node, answer in hcas.items()},
        errors=tuple(errors),
    )


def observe_stack(cluster: Cluster, namespaces: typing.Iterable[str]) -> Stack:
    """The stack beside the jobs. What cannot be read is in ``errors``; a kind that the server does not know has no objects.

    :param namespaces: of the jobs
    :raises ApiError: the server cannot be reached
    """
    errors: typing.List[str] = []

    def parsed(kind: str, parser: typing.Callable[[Resource], typing.Any]) -> typing.Iterator[typing.Any]:
        try:
            for item in cluster.pages(kind):
                # a list leaves out the kind of its items
                yield parser({"kind": kind.partition(".")[0], **item})
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                errors.append(error.seen)
        except RdmaError as error:
            errors.append(error.seen)

    controllers = tuple(found for found in parsed("Deployment", stack.controller) if found is not None)
    shared = {name for name in parsed("PersistentVolume", stack.shared_class) if name}
    labels = {}
    for namespace in sorted(set(namespaces)):
        try:
            labels[namespace] = {str(key): str(value) for key, value in (cluster.get("Namespace", "", namespace)["metadata"].get("labels") or {}).items()}
        except ApiError as error:
            if not error.absent:
                errors.append(error.seen)
    return Stack(
        controllers=controllers,
        policies=tuple(found for kind in ("ClusterPolicy", "NicClusterPolicy") for found in parsed(kind, stack.policy_state)),
        local_queues=tuple(parsed("LocalQueue", stack.local_queue)),
        cluster_queues=tuple(parsed("ClusterQueue", stack.cluster_queue)),
        frameworks=_frameworks(cluster, controllers, errors),
        storage=tuple(parsed("StorageClass", lambda item: stack.storage_class(item, shared))),
        namespaces=labels,
        errors=tuple(errors),
    )


def _frameworks(cluster: Cluster, controllers: typing.Iterable[Controller], errors: typing.List[str]) -> typing.Optional[typing.Tuple[str, ...]]:
    """Kinds of jobs that Kueue manages; None without Kueue, or where its configuration is not where its own manifests put it."""
    namespace = next((item.name.partition("/")[0] for item in controllers if item.operator == "kueue"), None)
    if namespace is None:
        return None
    try:
        data = cluster.get("ConfigMap", namespace, "kueue-manager-config").get("data") or {}
        return stack.frameworks(read_yaml(str(data.get("controller_manager_config.yaml", ""))))
    except ApiError as error:
        if not error.absent:
            errors.append(error.seen)
    except RdmaError as error:
        errors.append(error.seen)
    return None


def _of(pod: Resource, names: typing.Container[str]) -> bool:
    """Whether a pod that runs is one of these jobs', or is itself named."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    mine = metadata.get("name") in names or any(labels.get(label) in names for label in _LABELS)
    return mine and (pod.get("status") or {}).get("phase") == "Running"
