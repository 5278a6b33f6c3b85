# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a training job from a cluster, and the objects of the cluster that it uses."""

from __future__ import annotations

import functools
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import both_ends
from ..._model.boundary.form import shown
from ..._model.job.job import ENFORCE, JobObjects, JobSurroundings, PodDevices
from ..._model.job.stack import Controller, Stack, has_rights
from ..._model.node.hca import NodeHcas
from ..._parse.job import job_objects, pod_template, stack, train_job
from ..._parse.kubernetes.core import node as parse_node
from ..._parse.kubernetes.device_claims import CLAIM, SLICE, TEMPLATE, read_claim, read_class, read_slice
from ..._parse.kubernetes.resource import ResourceError, full_name_of, mapping_at, title_of
from .client import Cluster
from .errors import ApiError
from .kinds import Resource
from .yaml_documents import read_yaml

#: by which the operators mark the pods of a job
_LABELS = ("training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")

#: objects of a kind, beside those that the jobs name, whose names are kept for words that are alike
_OTHERS = 1000

#: objects of a kind that are not of its form and are named; the others are counted. And characters of what is said of
#: one
_NAMED, _SAID = 5, 300

#: pods of jobs, and names of their interfaces and devices, that are kept: of 4,000 pods with eight HCAs. Whoever may
#: make a pod may label it as one of a job's
_MOST_OF_PODS = 100_000


def read_job(cluster: Cluster, kind: str, namespace: str, name: str) -> tuple[Resource, ...]:
    """Return a job, and the runtime that it refers to if it is a TrainJob and the runtime exists.

    :raises ApiError: the job does not exist, or the server refuses
    :raises ResourceError: a TrainJob names no runtime
    """
    job = {"kind": kind, **cluster.get(kind, namespace, name)}
    return (job, *read_runtimes(cluster, [job]))


def read_runtimes(cluster: Cluster, jobs: typing.Iterable[typing.Mapping[str, typing.Any]]) -> tuple[Resource, ...]:
    """Return the runtimes that TrainJobs refer to. A missing runtime is left out, and the linter reports it.

    :raises ApiError: the server refuses
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
    """Read the objects of the cluster that jobs use. Errors are stored in ``errors`` of the result.

    :param namespaces: namespaces of the jobs
    :param running: namespace and name of each running job, whose pods are read too
    :param hcas: result of node_info for each node
    :param wanted: names of the objects to which the jobs refer
    :raises ApiError: the API server cannot be reached
    """
    reader, attachments = JobReader(cluster), _Named(wanted.attachments, wanted.resources)
    # what is wrong with these is an error for jobs with claims alone
    devices = JobReader(cluster)
    claims = {kind: _Named({name for of, name in wanted.claims if of == kind}) for kind in (CLAIM, TEMPLATE)}
    pods = _read_pods(reader, running)
    found = {namespace: reader.one("Namespace", "", namespace, _read_labels) for namespace in sorted(set(namespaces))}
    return JobSurroundings(
        nodes=tuple(reader.all("Node", parse_node)),
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
        enforced={name: labels.get(ENFORCE, "") for name, labels in found.items() if labels is not None},
        devices={
            node: tuple(hca.rdma_device for hca in answer.hcas if hca.rdma_device) for node, answer in hcas.items()
        },
        device_errors=devices.errors,
        errors=reader.errors,
    )


def _read_pods(reader: JobReader, running: typing.Sequence[tuple[str, str]]) -> tuple[PodDevices, ...]:
    """Return the RDMA devices and interfaces of the pods of running jobs. ``_MOST_OF_PODS`` limits the sum of pods,
    interfaces and devices. The number of pods beyond the limit is reported as an error.

    :param running: namespace and name of each job
    :raises ApiError: the API server cannot be reached
    """
    pods: list[PodDevices] = []
    held = left = 0
    for namespace in sorted({namespace for namespace, _name in running}):
        names = {name for of, name in running if of == namespace}
        for found in reader.all("Pod", functools.partial(_collect_devices, names), namespace):
            if found is None:
                continue
            held += 1 + len(found.interfaces) + len(found.devices)
            if held <= _MOST_OF_PODS:
                pods.append(found)
            else:
                left += 1
    if left:
        reader.note(f"{left} of the {left + len(pods)} pods with labels of the jobs were not read")
    return tuple(pods)


def observe_stack(cluster: Cluster, namespaces: typing.Iterable[str]) -> Stack:
    """Read the software that jobs need in the cluster: operators, queues and storage. Errors are stored in ``errors``
    of the result. A kind that the API server does not know counts as one without objects.

    :param namespaces: namespaces of the jobs
    :raises ApiError: the API server cannot be reached
    """
    reader = JobReader(cluster)
    controllers = reader.controllers()
    shared = {name for name in reader.all("PersistentVolume", stack.shared_class) if name}
    found = {namespace: reader.one("Namespace", "", namespace, _read_labels) for namespace in sorted(set(namespaces))}
    home = next((item.name.partition("/")[0] for item in controllers if item.operator == "kueue"), None)
    return Stack(
        controllers=controllers,
        policies=tuple(
            state
            for kind in ("ClusterPolicy", "NicClusterPolicy", "NicNodePolicy")
            for state in reader.all(kind, stack.parse_policy_state)
        ),
        local_queues=tuple(reader.all("LocalQueue", stack.parse_local_queue)),
        cluster_queues=tuple(reader.all("ClusterQueue", stack.parse_cluster_queue)),
        frameworks=reader.one("ConfigMap", home, "kueue-manager-config", _read_frameworks) if home else None,
        storage=tuple(reader.all("StorageClass", lambda item: stack.parse_storage_class(item, shared))),
        namespaces={namespace: labels for namespace, labels in found.items() if labels is not None},
        errors=reader.errors,
    )


class _Named:
    """A filter that accepts only the objects to which jobs refer. Of a rejected object it records no more than the name
    and the resource.

    :ivar offered: resources that jobs request and that a rejected NetworkAttachmentDefinition provides
    :ivar others: names of rejected objects, at most ``_OTHERS``
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
    """Return the concatenation of the lists. Return None if one of them is None."""
    known = [items for items in lists if items is not None]
    return tuple(item for items in known for item in items) if len(known) == len(lists) else None


def _read_labels(namespace: Resource) -> dict[str, str]:
    return {str(key): str(value) for key, value in (namespace["metadata"].get("labels") or {}).items()}


def _read_frameworks(config_map: Resource) -> tuple[str, ...]:
    """Return the kinds of jobs that Kueue manages, from a ConfigMap with the configuration of Kueue."""
    return stack.parse_frameworks(
        read_yaml(str(mapping_at(config_map, "data").get("controller_manager_config.yaml", "")))
    )


class JobReader:
    """Reads and parses objects of the cluster, and collects errors. It is not an error if an object does not exist, or
    if the API server does not know a kind.

    Any client that can create an object can create a malformed one. Such an object is reported as an error with its
    name, and the remaining objects are read.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._errors: list[str] = []
        #: objects that are not of their form, by kind
        self._broken: dict[str, int] = {}

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors so far. Up to ``_NAMED`` malformed objects of each kind are named, and the rest are counted."""
        more = ((kind, number - _NAMED) for kind, number in self._broken.items() if number > _NAMED)
        return (*self._errors, *(f"{number} more of {kind} that could not be read" for kind, number in more))

    def note(self, error: str) -> None:
        """Add an error message to ``errors``."""
        self._errors.append(error)

    def all(
        self,
        kind: str,
        parser: typing.Callable[[Resource], typing.Any],
        namespace: str = "",
        selector: str = "",
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
    ) -> typing.Iterator[typing.Any]:
        """Yield all objects of a kind, parsed. A refusal of the server is stored as an error.

        :param only: function that accepts an object by its metadata. Rejected objects are not kept
        :raises ApiError: the server cannot be reached
        """
        try:
            found = (
                self._cluster.pages(kind, namespace, selector)
                if only is None
                else self._cluster.list(kind, namespace, selector, only=only).items
            )
            yield from self._parsed(kind, parser, found)
        except RdmaError as error:
            self._keep(error)

    def known(
        self,
        kind: str,
        parser: typing.Callable[[Resource], typing.Any],
        namespace: str = "",
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
    ) -> typing.Optional[tuple[typing.Any, ...]]:
        """Return all objects of a kind, parsed. Return None if the API server does not know the kind or refuses the
        list. This is not stored as an error, because only a few jobs need objects of such a kind.

        :param only: function that accepts an object by its metadata. Rejected objects are not kept
        :raises ApiError: the API server cannot be reached
        """
        try:
            found = (
                self._cluster.pages(kind, namespace)
                if only is None
                else self._cluster.list(kind, namespace, only=only).items
            )
            return tuple(self._parsed(kind, parser, found))
        except RdmaError as error:
            if isinstance(error, ApiError) and error.status == 0:
                raise
        return None

    def _parsed(
        self, kind: str, parser: typing.Callable[[Resource], typing.Any], found: typing.Iterable[Resource]
    ) -> typing.Iterator[typing.Any]:
        """Yield each object parsed. Malformed objects are left out and stored as errors.

        :raises ApiError: error of the iterator ``found``
        """
        # a list leaves out the kind of its items
        for item in ({"kind": kind, **item} for item in found):
            try:
                parsed = parser(item)
            except RdmaError as error:
                self._broken[kind] = self._broken.get(kind, 0) + 1
                if self._broken[kind] <= _NAMED:
                    self._errors.append(_describe_malformed_object(item, error))
                continue
            yield parsed

    def one(self, kind: str, namespace: str, name: str, parser: typing.Callable[[Resource], typing.Any]) -> typing.Any:
        """Return one object, parsed. Return None if it does not exist or could not be read.

        :raises ApiError: the server cannot be reached
        """
        try:
            return parser(self._cluster.get(kind, namespace, name))
        except RdmaError as error:
            self._keep(error)
        return None

    def controllers(self) -> tuple[Controller, ...]:
        """Return the operators of the operator table that run as Deployments and whose ServiceAccount has cluster-wide
        rights, see ``has_rights``.

        :raises ApiError: the server cannot be reached
        """
        found = [
            (operator, account)
            for operator, account in self.all(
                "Deployment", lambda item: (stack.parse_controller(item), stack.account_of(item))
            )
            if operator
        ]
        try:
            bindings = list(
                self._parsed("ClusterRoleBinding", stack.list_accounts, self._cluster.pages("ClusterRoleBinding"))
            )
        except RdmaError as error:
            self._keep(error)
            bindings = []
        return tuple(operator for operator, account in found if has_rights(account, bindings))

    def _keep(self, error: RdmaError) -> None:
        if isinstance(error, ApiError) and error.status == 0:
            raise error
        if not (isinstance(error, ApiError) and error.absent):
            self._errors.append(both_ends(error.seen))


def _describe_malformed_object(item: Resource, error: RdmaError) -> str:
    """Return a message with kind, namespace and name of a malformed object, and the error in it."""
    title, metadata = title_of(item), item.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    seen = error.seen[len(title) :].lstrip(": ") if error.seen.startswith(title) else error.seen
    return both_ends(f"{title}{f' in namespace {shown(namespace)}' if namespace else ''}: {seen}", _SAID)


def _collect_devices(names: typing.Container[str], pod: Resource) -> typing.Optional[PodDevices]:
    """Return the RDMA devices and interfaces of a pod on secondary networks. Return None for a pod that does not run,
    requests no secondary network, or neither belongs to a named job nor has one of the names itself.

    :param names: names of jobs in the namespace of the pod
    """
    metadata = pod.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    mine = metadata.get("name") in names or any(labels.get(label) in names for label in _LABELS)
    running = (pod.get("status") or {}).get("phase") == "Running"
    return (
        job_objects.parse_pod_devices(pod)
        if mine and running and annotations.get(pod_template.NETWORKS_ANNOTATION)
        else None
    )
