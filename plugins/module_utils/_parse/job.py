# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Jobs of any kind, and what they meet in the cluster, from Kubernetes objects to facts.

A job is read by its pod templates, wherever they are in it: PyTorchJob, MPIJob, JobSet, Job, StatefulSet and the rest need no code of their own.
A TrainJob has none: its template is in the runtime that it refers to, and it overwrites parts of it.
[src kubeflow/trainer v1.9.4 and v2.3.0 pkg/apis; k8snetworkplumbingwg multi-network specification 1.3; multus-cni v4 pkg/k8sclient]
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import typing

from .._model.job import Attachment, Claim, Container, NetworkRequest, PodDevices, PodTemplate, Variable, Workload
from .ipam import attachment_plugins
from .kubernetes import STATUS_ANNOTATION, Resource, ResourceError, _items, _mapping, _number, _texts, _what, name_of
from .quantity import quantity

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")

#: jobs by their kind, also where a mistake hides their pods: ``container:`` in place of ``containers:``
_KINDS = ("Pod", "Job", "JobSet", "StatefulSet", "Deployment", "PyTorchJob", "MPIJob", "TrainJob")
_RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName"
_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER = "node"
#: objects that are looked at in one job; a file can be made that unfolds without end
_MOST = 20_000
_ASSIGNMENT = re.compile(r"\b(NCCL_[A-Z0-9_]+)=(\"[^\"]*\"|'[^']*'|[^\s;&|\"']*)")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_INTERFACE = re.compile(r"[^\s/:]{1,15}")


def is_job(resource: Resource) -> bool:
    """Whether pods are made of it."""
    if not isinstance(resource, dict):
        return False
    return resource.get("kind") in _KINDS or next(_templates(resource, "", 1, itertools.count()), None) is not None


def workload(resource: Resource, runtimes: typing.Iterable[Resource] = ()) -> Workload:
    """A job as its pods will be.

    :param runtimes: TrainingRuntimes and ClusterTrainingRuntimes, to one of which a TrainJob refers
    :raises ResourceError: no job, a part of it has another form, or its runtime is not there
    """
    name, namespace = name_of(resource), str(_mapping(resource, "metadata").get("namespace") or "default")
    body = _with_runtime(resource, runtimes) if resource.get("kind") == "TrainJob" else resource
    templates = tuple(_template(*found, namespace) for found in _templates(body, "", 1, itertools.count()))
    if not templates:
        raise ResourceError(f"{_what(resource)}: no pod template is in it, so it is no job")
    queue = str(_mapping(resource, "metadata", "labels").get(QUEUE_LABEL) or "")
    return Workload(str(resource.get("kind", "")), name, namespace, templates, queue, _lost(body, templates))


def _lost(body: Resource, templates: typing.Sequence[PodTemplate]) -> str:
    """Why the operator will not tell the pods of each other. [kubeflow/trainer v1.9.4 pkg/controller.v1/pytorch/envvar.go, pkg/webhooks/pytorch]"""
    kind, spec = body.get("kind"), _mapping(body, "spec")
    if kind == "PyTorchJob":
        other = [str(role) for role in _mapping(spec, "pytorchReplicaSpecs") if role not in ("Master", "Worker")]
        if other:
            return f"The training operator knows the roles Master and Worker, and refuses {', '.join(other)}"
        if len(templates) < len(_mapping(spec, "pytorchReplicaSpecs")):
            return "One of its roles has no template with containers, and the training operator refuses it"
        if not all(any(container.name == "pytorch" for container in template.containers) for template in templates):
            return "The training operator looks for a container named pytorch in each of its pods, and refuses the job without one"
        if "Master" not in _mapping(spec, "pytorchReplicaSpecs") and not spec.get("elasticPolicy"):
            return "Without a Master, and without an elasticPolicy, no pod is told where the others meet"
    if kind == "TrainJob":
        if not any(_is_trainer(item) for item in _items(_mapping(spec, "template", "spec"), "replicatedJobs", "its runtime")):
            return f"No job of its runtime carries the label {_ANCESTOR}: trainer, so the trainer starts one pod and passes over what the TrainJob says"
    if kind == "TrainJob" and not [key for key in _mapping(spec, "mlPolicy") if key != "numNodes"] and sum(item.count for item in templates) > 1:
        return "Its runtime names no framework in mlPolicy (torch, mpi ...), so the trainer sets none of the variables by which its pods meet"
    return ""


def _templates(node: typing.Any, path: str, count: int, visited: typing.Iterator[int]) -> typing.Iterator[typing.Tuple[str, Resource, int]]:
    """All pod templates below, each with its path and the number of pods that are made of it."""
    if next(visited, _MOST) >= _MOST or path.count(".") > 30:
        raise ResourceError(f"more than {_MOST} parts, or too deep: no job looks like that")
    if isinstance(node, dict):
        if isinstance(node.get("spec"), dict) and isinstance(node["spec"].get("containers"), list):
            yield path, node, count
            return
        for key in ("replicas", "parallelism"):
            if node.get(key) is not None:
                count *= _number(node[key], f"{path}.{key}")
        for key, child in node.items():
            yield from _templates(child, f"{path}.{key}" if path else str(key), count, visited)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _templates(child, f"{path}[{index}]", count, visited)


def _template(path: str, template: Resource, count: int, namespace: str) -> PodTemplate:
    where = path or "the pod"
    spec, annotations = _mapping(template, "spec"), _mapping(template, "metadata", "annotations")
    volumes = _items(spec, "volumes", where)
    return PodTemplate(
        path=path[: -len(".template")] if path.endswith(".template") else path,
        count=count,
        containers=tuple(_container(item, spec, f"{path}.spec.containers[{index}]") for index, item in enumerate(_items(spec, "containers", where))),
        init_containers=tuple(
            _container(item, spec, f"{path}.spec.initContainers[{index}]") for index, item in enumerate(_items(spec, "initContainers", where))
        ),
        networks=networks(annotations.get(NETWORKS_ANNOTATION), namespace, where),
        host_network=bool(spec.get("hostNetwork", False)),
        volumes=tuple(str(item.get("name")) for item in volumes),
        memory_volumes={
            str(item.get("name")): str(_mapping(item, "emptyDir").get("sizeLimit") or "")
            for item in volumes
            if _mapping(item, "emptyDir").get("medium") == "Memory"
        },
        claims=tuple(str(_mapping(item, "persistentVolumeClaim").get("claimName")) for item in volumes if item.get("persistentVolumeClaim")),
    )


def _container(item: Resource, spec: Resource, path: str) -> Container:
    path = path.lstrip(".")
    for key in ("name", "image"):
        if not item.get(key):
            raise ResourceError(f"{path}: {key} is missing")
    variables = [_variable(entry, path) for entry in _items(item, "env", path)]
    words = " ".join((*_texts(item, "command", path), *_texts(item, "args", path)))
    variables += [Variable(name, _literal(value), f"{path}.command") for name, value in _ASSIGNMENT.findall(words)]
    context, of_pod = _mapping(item, "securityContext"), _mapping(spec, "securityContext")
    limits = _amounts(item, "limits", path)
    user = context.get("runAsUser", of_pod.get("runAsUser"))
    return Container(
        name=str(item.get("name", "")),
        path=path,
        environment=tuple(variables),
        sources=tuple(
            f"{kind} {_mapping(entry, key).get('name')}"
            for entry in _items(item, "envFrom", path)
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))
            if entry.get(key)
        ),
        requests={**limits, **_amounts(item, "requests", path)},
        limits=limits,
        capabilities=tuple(name.upper() for name in _texts(_mapping(context, "capabilities"), "add", path)),
        privileged=bool(context.get("privileged", False)),
        user=None if user is None else _number(user, f"{path}: runAsUser"),
        non_root=bool(context.get("runAsNonRoot", of_pod.get("runAsNonRoot", False))),
        mounts={_path(mount, path): str(mount.get("name", "")) for mount in _items(item, "volumeMounts", path)},
    )


def _path(mount: Resource, path: str) -> str:
    if not mount.get("mountPath"):
        raise ResourceError(f"{path}.volumeMounts: one has no mountPath")
    return str(mount["mountPath"]).rstrip("/")


def _variable(entry: Resource, path: str) -> Variable:
    if not entry.get("name"):
        raise ResourceError(f"{path}.env: a variable has no name")
    value = None if entry.get("valueFrom") else str(entry.get("value") if entry.get("value") is not None else "")
    return Variable(str(entry["name"]), value, f"{path}.env")


def _literal(text: str) -> typing.Optional[str]:
    """The value of an assignment in a command; None where only the shell knows it."""
    return None if "$" in text or "`" in text else text.strip("\"'")


def _amounts(item: Resource, key: str, path: str) -> typing.Dict[str, str]:
    found = {str(name): str(value) for name, value in _mapping(item, "resources", key).items()}
    for name, value in found.items():
        quantity(value, f"{path}.resources.{key}[{name}]")
    return found


def networks(text: typing.Any, namespace: str, what: str) -> typing.Tuple[NetworkRequest, ...]:
    """The annotation of the multi-network specification: a JSON list, or ``namespace/name@interface`` with commas between.

    :raises ResourceError: another form; multus refuses such a pod
    """
    if text is None or not str(text).strip():
        return ()
    where, text = f"{what}: annotation {NETWORKS_ANNOTATION}", str(text).strip()
    if text.startswith("["):
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ResourceError(f"{where} is no JSON: {error}") from None
        if not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise ResourceError(f"{where} is no list of mappings with a name")
    else:
        entries = [_short(part.strip(), where) for part in text.split(",")]
    return tuple(
        NetworkRequest(
            namespace=str(entry.get("namespace") or namespace),
            name=str(entry["name"]),
            interface=str(entry.get("interface") or f"net{number}"),
            default_route=bool(entry.get("default-route")),
        )
        for number, entry in enumerate(entries, 1)
    )


def _short(part: str, where: str) -> Resource:
    rest, at, interface = part.partition("@")
    namespace, slash, name = rest.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not _NAME.fullmatch(namespace)) or (at and not _INTERFACE.fullmatch(interface)):
        raise ResourceError(f"{where}: '{part[:100]}' is not of the form namespace/name@interface")
    return {"namespace": namespace, "name": name, "interface": interface}


# TrainJob


def runtime_of(job: Resource) -> typing.Tuple[str, str, str]:
    """Kind, namespace (empty for a cluster's) and name of the runtime that a TrainJob refers to.

    :raises ResourceError: it names none
    """
    reference = _mapping(job, "spec", "runtimeRef")
    kind, name = str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference.get("name") or "")
    if kind not in RUNTIMES or not name:
        raise ResourceError(f"{_what(job)}: spec.runtimeRef is {kind} '{name}'; expected the name of a {' or '.join(RUNTIMES)}")
    return kind, str(_mapping(job, "metadata").get("namespace") or "default") if kind == "TrainingRuntime" else "", name


def _with_runtime(job: Resource, runtimes: typing.Iterable[Resource]) -> Resource:
    """The runtime's template with what the TrainJob and its patches change. [src kubeflow/trainer v2.3.0 pkg/runtime/framework/plugins/jobset/builder.go]"""
    kind, namespace, name = runtime_of(job)
    of_kind = [item for item in runtimes if item.get("kind") == kind and name_of(item) == name]
    found = [item for item in of_kind if not namespace or str(_mapping(item, "metadata").get("namespace") or "default") == namespace]
    if not found:
        raise ResourceError(f"{_what(job)}: its {kind} {name}, in which its pod template is, was not found")
    spec, trainer = copy.deepcopy(_mapping(found[0], "spec")), _mapping(job, "spec", "trainer")
    jobs = _items(_mapping(spec, "template", "spec"), "replicatedJobs", name)
    for item in jobs:
        if not item.get("name"):
            raise ResourceError(f"{kind} {name}: a job in spec.template.spec.replicatedJobs has no name")
        pod = _mapping(item, "template", "spec", "template")
        if _is_trainer(item):
            item["replicas"] = 1
            # EnforceMLPolicy: the number of nodes becomes the number of pods of this job
            nodes = trainer.get("numNodes") or _mapping(spec, "mlPolicy").get("numNodes")
            if nodes is not None and pod:
                item["template"]["spec"]["parallelism"] = nodes
            for container in _items(_mapping(pod, "spec"), "containers", name):
                if container.get("name") == _TRAINER:
                    _overwrite(container, trainer, name)
        for patch in _patches(job, str(item.get("name", ""))):
            _patch(pod, patch, name)
    return {"kind": "TrainJob", "spec": spec}


def _is_trainer(item: Resource) -> bool:
    return _mapping(item, "template", "metadata", "labels").get(_ANCESTOR) == "trainer"


def _overwrite(container: typing.Dict[str, typing.Any], trainer: Resource, what: str) -> None:
    container.update({key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)})
    if trainer.get("resourcesPerNode"):
        container["resources"] = trainer["resourcesPerNode"]
    _join(container, trainer, "env", what)


def _patches(job: Resource, name: str) -> typing.Iterator[Resource]:
    """Patches of the pod template of one of the runtime's jobs; runtimePatches since v2.2, podTemplateOverrides before."""
    what = _what(job)
    for patch in _items(_mapping(job, "spec"), "runtimePatches", what):
        for item in _items(_mapping(patch, "trainingRuntimeSpec", "template", "spec"), "replicatedJobs", what):
            if item.get("name") == name:
                yield _mapping(item, "template", "spec", "template")
    for override in _items(_mapping(job, "spec"), "podTemplateOverrides", what):
        if any(target.get("name") == name for target in _items(override, "targetJobs", what)):
            yield override


def _patch(pod: typing.Dict[str, typing.Any], patch: Resource, what: str) -> None:
    annotations = {**_mapping(pod, "metadata", "annotations"), **_mapping(patch, "metadata", "annotations")}
    pod["metadata"] = {**_mapping(pod, "metadata"), "annotations": annotations}
    spec, changed = _mapping(pod, "spec"), _mapping(patch, "spec")
    _join(spec, changed, "volumes", what)
    if changed.get("securityContext"):
        spec["securityContext"] = changed["securityContext"]
    for container in _items(spec, "containers", what):
        for wanted in _items(changed, "containers", what):
            if wanted.get("name") == container.get("name"):
                _join(container, wanted, "env", what)
                _join(container, wanted, "volumeMounts", what, "mountPath")
                if wanted.get("securityContext"):
                    container["securityContext"] = wanted["securityContext"]


def _join(target: typing.Dict[str, typing.Any], change: Resource, key: str, what: str, by: str = "name") -> None:
    """Merge two lists of mappings, as the API server does it: by the value of one key."""
    new = _items(change, key, what)
    if new:
        names = {item.get(by) for item in new}
        target[key] = [*(item for item in _items(target, key, what) if item.get(by) not in names), *new]


# What a job meets


def attachment(resource: Resource) -> Attachment:
    """A NetworkAttachmentDefinition; one whose configuration is elsewhere, or broken, says so in ``problem``.

    :raises ResourceError: it has no name
    """
    name = f"{_mapping(resource, 'metadata').get('namespace', '')}/{name_of(resource)}"
    wanted = str(_mapping(resource, "metadata", "annotations").get(_RESOURCE_ANNOTATION) or "")
    try:
        plugins = attachment_plugins(resource, name)
        routes = [route for plugin in plugins for route in _items(_mapping(plugin, "ipam"), "routes", name)]
    except ResourceError as error:
        return Attachment(name, resource=wanted, problem=error.seen)
    return Attachment(
        name=name,
        kinds=tuple(str(plugin.get("type", "")) for plugin in plugins),
        resource=wanted,
        default_route=any(str(route.get("dst")) in ("0.0.0.0/0", "::/0") for route in routes),
    )


def claim(resource: Resource) -> Claim:
    """A PersistentVolumeClaim.

    :raises ResourceError: none
    """
    name = f"{_mapping(resource, 'metadata').get('namespace', '')}/{name_of(resource)}"
    return Claim(name, _texts(_mapping(resource, "spec"), "accessModes", name), str(_mapping(resource, "status").get("phase") or ""))


def pod_devices(pod: Resource) -> PodDevices:
    """What multus wrote about a pod; a pod without the annotation has no secondary network.

    :raises ResourceError: the annotation has another form
    """
    what = f"pod {name_of(pod)}"
    try:
        entries = json.loads(_mapping(pod, "metadata", "annotations").get(STATUS_ANNOTATION) or "[]")
    except (TypeError, ValueError, RecursionError) as error:
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is no JSON: {error}") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is no list of mappings")
    mine = [entry for entry in entries if not entry.get("default")]
    devices = [str(_mapping(entry, "device-info", "pci").get("rdma-device") or "") for entry in mine]
    return PodDevices(name_of(pod), tuple(str(entry.get("interface") or "") for entry in mine), tuple(filter(None, ",".join(devices).split(","))))
