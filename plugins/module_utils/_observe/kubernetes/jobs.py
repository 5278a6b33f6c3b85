# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a training job from a cluster, and the objects of the cluster that it uses."""

from __future__ import annotations

import functools
import typing

from ..._model.job.stack import Stack
from ..._model.job.surroundings import (
    ENFORCE,
    JobObjects,
    JobSurroundings,
    PodDevices,
)
from ..._model.kubernetes.compute_domains import ClaimingPod, ComputeDomain
from ..._model.node.hca import NodeHcas
from ..._parse.job import job_objects, pod_template, stack, train_job
from ..._parse.job.node_choice import parse_flavor, parse_taints
from ..._parse.kubernetes.core import parse_controller, parse_node
from ..._parse.kubernetes.dra.compute_domains import COMPUTE_DOMAIN, parse_claiming_pod, parse_compute_domain
from ..._parse.kubernetes.dra.device_claims import CLAIM, SLICE, TEMPLATE, read_claim, read_class, read_slice
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.resource import ResourceError, full_name_of, mapping_at
from .client import Cluster
from .errors import ApiError
from .job_reader import JobReader
from .kinds import Resource
from .yaml_documents import read_yaml

#: by which the operators mark the pods of a job
_LABELS = ("training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")

#: objects of a kind, beside those that the jobs name, whose names are kept for words that are alike
_OTHERS = 1000

#: pods of jobs, and names of their interfaces and devices, that are kept: of 4,000 pods with eight HCAs. Whoever may
#: make a pod may label it as one of a job's
_MOST_OF_PODS = 100_000


def read_job(cluster: Cluster, kind: str, namespace: str, name: str) -> tuple[Resource, ...]:
    """Return a job, and the training runtime that it refers to if it is a TrainJob and the runtime exists.

    :param kind: kind of the job, such as ``PyTorchJob``
    :raises ApiError: the job does not exist, or the server refuses
    :raises ResourceError: a TrainJob names no runtime
    """
    job = {"kind": kind, **cluster.get(kind, namespace, name)}
    return (job, *read_runtimes(cluster, [job]))


def read_runtimes(cluster: Cluster, jobs: typing.Iterable[typing.Mapping[str, typing.Any]]) -> tuple[Resource, ...]:
    """Return the training runtimes that TrainJobs refer to, in the order of the jobs. Jobs of other kinds are ignored.
    A missing runtime is left out, and is reported by a later check of the job.

    :param jobs: jobs of any kind, as Kubernetes objects
    :raises ApiError: the server refuses
    :raises ResourceError: a TrainJob names no runtime
    """
    found = []
    for job in jobs:
        if job.get("kind") == "TrainJob":
            kind, namespace, name = train_job.find_runtime(job)
            try:
                found.append({"kind": kind, **cluster.get(kind, namespace, name)})
            except ApiError as error:
                if not error.absent:
                    raise
    return tuple(found)


def observe(
    cluster: Cluster,
    namespaces: typing.Iterable[str],
    running: typing.Sequence[tuple[str, str]],
    hcas: typing.Mapping[str, NodeHcas],
    wanted: JobObjects,
) -> JobSurroundings:
    """Return the objects of the cluster that jobs use: nodes, attachments, claims, pods and Pod Security levels. Errors
    are stored in ``errors`` of the result.

    :param namespaces: namespaces of the jobs
    :param running: namespace and name of each running job, whose pods are read too
    :param hcas: HCAs of each node (node_info), by node
    :param wanted: names of the objects to which the jobs refer
    :raises ApiError: the API server cannot be reached
    """
    reader, attachments = JobReader(cluster), _Named(wanted.attachments, wanted.resources)
    # what is wrong with these is an error for jobs with claims alone
    devices = JobReader(cluster)
    claims = {kind: _Named({name for of, name in wanted.claims if of == kind}) for kind in (CLAIM, TEMPLATE)}
    pods, claiming = _read_pods(reader, running)
    found = {namespace: reader.one("Namespace", "", namespace, _read_labels) for namespace in sorted(set(namespaces))}
    nodes = list(reader.all("Node", lambda item: (parse_node(item), parse_taints(item))))
    return JobSurroundings(
        nodes=tuple(node for node, _taints in nodes),
        attachments=tuple(reader.all("NetworkAttachmentDefinition", job_objects.parse_attachment, only=attachments)),
        offered=frozenset(attachments.offered),
        others={
            "NetworkAttachmentDefinition": tuple(attachments.others),
            **{kind: tuple(named.others) for kind, named in claims.items()},
        },
        claims=tuple(
            found
            for namespace in sorted(set(namespaces))
            for found in reader.all("PersistentVolumeClaim", job_objects.parse_claim, namespace)
        ),
        pods=pods,
        device_claims=_join_lists(
            [
                devices.known(kind, read_claim, namespace, named)
                for namespace in sorted(set(namespaces))
                for kind, named in claims.items()
            ]
        ),
        device_classes=devices.known("DeviceClass", read_class),
        device_slices=devices.known(SLICE, read_slice),
        compute_domains=_read_compute_domains(devices, namespaces, wanted),
        claiming_pods=claiming,
        enforced={name: labels.get(ENFORCE, "") for name, labels in found.items() if labels is not None},
        devices={
            node: tuple(hca.rdma_device for hca in answer.hcas if hca.rdma_device) for node, answer in hcas.items()
        },
        device_errors=devices.errors,
        errors=reader.errors,
        taints={name: taints for _node, (name, taints) in nodes if taints},
    )


def _read_pods(
    reader: JobReader, running: typing.Sequence[tuple[str, str]]
) -> tuple[tuple[PodDevices, ...], tuple[ClaimingPod, ...]]:
    """Return the RDMA devices and interfaces of the pods of running jobs, and those pods whose claims come from
    templates. ``_MOST_OF_PODS`` limits the sum of pods, interfaces, devices and claims. Pods beyond the limit are left
    out, and their number is reported as an error.

    :param running: namespace and name of each job
    :raises ApiError: the API server cannot be reached
    """
    pods: list[PodDevices] = []
    claiming: list[ClaimingPod] = []
    held = left = kept = 0
    for namespace in sorted({namespace for namespace, _name in running}):
        names = {name for of, name in running if of == namespace}
        # a kubelet can give a mirror pod the labels of any job, and any number and size of them
        for found in reader.all("Pod", functools.partial(_collect_of_job, names), namespace, only=is_made_pod):
            if found is None:
                continue
            devices, claims = found
            held += 1 + (len(devices.interfaces) + len(devices.devices) if devices else 0)
            held += len(claims.templates) if claims else 0
            if held <= _MOST_OF_PODS:
                kept += 1
                pods += [devices] if devices else []
                claiming += [claims] if claims else []
            else:
                left += 1
    if left:
        reader.note(f"{left} of the {left + kept} pods with labels of the jobs were not read")
    return tuple(pods), tuple(claiming)


def _read_compute_domains(
    reader: JobReader, namespaces: typing.Iterable[str], wanted: JobObjects
) -> typing.Optional[tuple[ComputeDomain, ...]]:
    """Return the ComputeDomains that create a ResourceClaimTemplate to which the jobs refer. Return None if the jobs
    refer to no template, or if the API server does not serve the kind or refuses the list.

    :param reader: reader that stores the errors
    :param namespaces: names of the namespaces of the jobs
    :param wanted: names of the objects to which the jobs refer
    :raises ApiError: the API server cannot be reached
    """
    templates = {name for kind, name in wanted.claims if kind == TEMPLATE}
    if not templates:
        return None

    def parse(item: Resource) -> typing.Optional[ComputeDomain]:
        found = parse_compute_domain(item)
        return found if f"{found.name.partition('/')[0]}/{found.template}" in templates else None

    lists = [reader.known(COMPUTE_DOMAIN, parse, namespace) for namespace in sorted(set(namespaces))]
    found = _join_lists(lists)
    return None if found is None else tuple(item for item in found if item is not None)


def observe_stack(cluster: Cluster, namespaces: typing.Iterable[str]) -> Stack:
    """Return the software in the cluster that jobs need: operators, queues and storage. Errors are stored in ``errors``
    of the result. A kind that the API server does not know counts as a kind without objects.

    :param namespaces: namespaces of the jobs
    :raises ApiError: the API server cannot be reached
    """
    reader = JobReader(cluster)
    controllers = reader.controllers()
    unread_operators = bool(reader.errors)
    shared = {name for name in reader.all("PersistentVolume", stack.shared_class) if name}
    found = {namespace: reader.one("Namespace", "", namespace, _read_labels) for namespace in sorted(set(namespaces))}
    home = next((item.name.partition("/")[0] for item in controllers if item.operator == "kueue"), None)
    kueue = reader.one("ConfigMap", home, "kueue-manager-config", _read_kueue) if home else None
    return Stack(
        controllers=controllers,
        policies=tuple(
            state
            for kind in ("ClusterPolicy", "NicClusterPolicy", "NicNodePolicy")
            for state in reader.all(kind, stack.parse_policy_state)
        ),
        local_queues=tuple(reader.all("LocalQueue", stack.parse_local_queue)),
        cluster_queues=tuple(reader.all("ClusterQueue", stack.parse_cluster_queue)),
        frameworks=kueue[0] if kueue else None,
        excluded=kueue[1] if kueue else (),
        replaced=kueue[2] if kueue else (),
        flavors=reader.known("ResourceFlavor", parse_flavor),
        unread_operators=unread_operators,
        storage=tuple(reader.all("StorageClass", lambda item: stack.parse_storage_class(item, shared))),
        namespaces={namespace: labels for namespace, labels in found.items() if labels is not None},
        errors=reader.errors,
    )


class _Named:
    """A filter that returns whether jobs refer to an object. Of a rejected object it records only the name and the
    resource. A malformed object is accepted, so that its parser reports the error.

    :ivar offered: resources that jobs request and that a rejected NetworkAttachmentDefinition provides
    :ivar others: names (namespace/name) of rejected objects, at most ``_OTHERS``
    """

    def __init__(self, names: typing.AbstractSet[str], resources: typing.AbstractSet[str] = frozenset()) -> None:
        self._names, self._resources = names, resources
        self.offered: set[str] = set()
        self.others: list[str] = []

    def __call__(self, item: Resource) -> bool:
        try:
            name, resource = full_name_of(item), job_objects.resource_of(item)
        except ResourceError:
            # who parses it says what is wrong with it
            return True
        if name in self._names:
            return True
        if resource in self._resources:
            self.offered.add(resource)
        if len(self.others) < _OTHERS:
            self.others.append(name)
        return False


def _join_lists(
    lists: typing.Sequence[typing.Optional[tuple[typing.Any, ...]]],
) -> typing.Optional[tuple[typing.Any, ...]]:
    """Return one tuple with the items of all tuples, in order. Return None if one of the tuples is None."""
    known = [items for items in lists if items is not None]
    return tuple(item for items in known for item in items) if len(known) == len(lists) else None


def _read_labels(namespace: Resource) -> dict[str, str]:
    return {str(key): str(value) for key, value in (namespace["metadata"].get("labels") or {}).items()}


def _read_kueue(config_map: Resource) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return three values from a ConfigMap with the configuration of Kueue: the kinds of jobs that Kueue manages, the
    prefixes of resources that it does not count, and the resources that it replaces.
    """
    data = read_yaml(str(mapping_at(config_map, "data").get("controller_manager_config.yaml", "")))
    return (stack.parse_frameworks(data), *stack.parse_uncounted(data))


def _collect_of_job(
    names: typing.Container[str], pod: Resource
) -> typing.Optional[tuple[typing.Optional[PodDevices], typing.Optional[ClaimingPod]]]:
    """Return two values for a pod: its RDMA devices and interfaces on secondary networks (None without a secondary
    network), and its claims from templates (None without such claims). Return None for the pod if both are None, if it
    does not run, or if it is not of a named job.

    A pod is of a job if the label of an operator or its controller, as for a StatefulSet, names the job, or if it has
    the name of the job itself.

    :param names: names of jobs in the namespace of the pod
    """
    metadata = pod.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    of_job = (metadata.get("name"), parse_controller(pod)[1], *(labels.get(label) for label in _LABELS))
    mine = any(name in names for name in of_job if name)
    if not mine or (pod.get("status") or {}).get("phase") != "Running":
        return None
    devices = job_objects.parse_pod_devices(pod) if annotations.get(pod_template.NETWORKS_ANNOTATION) else None
    claims = parse_claiming_pod(pod)
    return (devices, claims) if devices or claims else None
