# SPDX-License-Identifier: GPL-3.0-or-later

"""A training job in a cluster, and what it meets there."""

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
    """Read the object, and the runtime that a TrainJob refers to, should it be there.

    :raises ApiError: it is not there, or the server refuses
    :raises ResourceError: a TrainJob that names no runtime
    """
    job = {"kind": kind, **cluster.get(kind, namespace, name)}
    return (job, *read_runtimes(cluster, [job]))


def read_runtimes(cluster: Cluster, jobs: typing.Iterable[typing.Mapping[str, typing.Any]]) -> tuple[Resource, ...]:
    """Return the runtimes that TrainJobs refer to; one that is not there is left out, and the linter says so.

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
    """Read it all. What cannot be read is in ``errors``.

    :param namespaces: of the jobs
    :param running: namespace and name of each job whose pods are looked at
    :param hcas: answer of node_info of each node
    :param wanted: what the jobs name
    :raises ApiError: the server cannot be reached
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
    """Read the devices of the pods of jobs; those behind ``_MOST_OF_PODS`` are counted in an error.

    :param running: namespace and name of each job
    :raises ApiError: the server cannot be reached
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
        reader.note(
            f"{left} of the {left + len(pods)} pods that are marked as those of the jobs: no more are looked at"
        )
    return tuple(pods)


def observe_stack(cluster: Cluster, namespaces: typing.Iterable[str]) -> Stack:
    """Return the stack beside the jobs. What cannot be read is in ``errors``; a kind that the server does not know has
    no objects.

    :param namespaces: of the jobs
    :raises ApiError: the server cannot be reached
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
    """Takes the objects that jobs name, and keeps little of the others.

    :ivar offered: resources that the jobs ask for, and that others of the attachments need
    :ivar others: names of some
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
    """Return all of these lists as one; None where one of them is not known."""
    known = [items for items in lists if items is not None]
    return tuple(item for items in known for item in items) if len(known) == len(lists) else None


def _read_labels(namespace: Resource) -> dict[str, str]:
    return {str(key): str(value) for key, value in (namespace["metadata"].get("labels") or {}).items()}


def _read_frameworks(config_map: Resource) -> tuple[str, ...]:
    """Kinds of jobs that Kueue manages, of the ConfigMap that its own manifests make."""
    return stack.parse_frameworks(
        read_yaml(str(mapping_at(config_map, "data").get("controller_manager_config.yaml", "")))
    )


class JobReader:
    """Reads and parses; what the server refuses, and what has another form, is kept in ``errors``. What is not there is
    no error.

    Whoever may make an object may make one that is not of its form. That one is an error by its name, and the others
    are read.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._errors: list[str] = []
        #: objects that are not of their form, by kind
        self._broken: dict[str, int] = {}

    @property
    def errors(self) -> tuple[str, ...]:
        """Return what could not be read. Of each kind ``_NAMED`` objects that are not of its form are named, and the
        others counted."""
        more = ((kind, number - _NAMED) for kind, number in self._broken.items() if number > _NAMED)
        return (*self._errors, *(f"{number} more of {kind} that can't be read" for kind, number in more))

    def note(self, error: str) -> None:
        """Keep an error in the words of who reads."""
        self._errors.append(error)

    def all(
        self,
        kind: str,
        parser: typing.Callable[[Resource], typing.Any],
        namespace: str = "",
        selector: str = "",
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
    ) -> typing.Iterator[typing.Any]:
        """:param only: takes an object by its metadata; the others are not held
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
        """Return all of a kind that few jobs need; None where the server does not know the kind or refuses it, which is
        no error.

        :param only: takes an object by its metadata; the others are not held
        :raises ApiError: the server cannot be reached
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
        """Each object as its parser has it, but for those that are not of their form.

        :raises ApiError: of ``found``
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
        """None where it is not there, or was not read.

        :raises ApiError: the server cannot be reached
        """
        try:
            return parser(self._cluster.get(kind, namespace, name))
        except RdmaError as error:
            self._keep(error)
        return None

    def controllers(self) -> tuple[Controller, ...]:
        """Operators of the table that Deployments run, see ``has_rights``.

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
    """Say of an object, by its kind, its namespace and its name, what is not of its form."""
    title, metadata = title_of(item), item.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    seen = error.seen[len(title) :].lstrip(": ") if error.seen.startswith(title) else error.seen
    return both_ends(f"{title}{f' in namespace {shown(namespace)}' if namespace else ''}: {seen}", _SAID)


def _collect_devices(names: typing.Container[str], pod: Resource) -> typing.Optional[PodDevices]:
    """Of a pod that runs, asks for secondary networks, and is one of these jobs' or is itself named; None of all
    others: an MPIJob's launcher, say."""
    metadata = pod.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    mine = metadata.get("name") in names or any(labels.get(label) in names for label in _LABELS)
    running = (pod.get("status") or {}).get("phase") == "Running"
    return (
        job_objects.parse_pod_devices(pod)
        if mine and running and annotations.get(pod_template.NETWORKS_ANNOTATION)
        else None
    )
