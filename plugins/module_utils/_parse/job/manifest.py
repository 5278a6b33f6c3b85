# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of any kind, and what they meet in the cluster, from Kubernetes objects to facts.

A job is read by its pod templates, wherever they are in it: PyTorchJob, MPIJob, JobSet, Job, StatefulSet and the rest
need no code of their own. A TrainJob has none: its template is in the runtime that it refers to, and it overwrites
parts of it. [src kubeflow/trainer v1.9.4 and v2.3.0 pkg/apis; k8snetworkplumbingwg multi-network specification 1.3;
multus-cni v4 pkg/k8sclient]
"""

from __future__ import annotations

import copy
import itertools
import re
import typing

from ..._model.base.text import both_ends
from ..._model.boundary.devices import INTERFACE, RDMA_DEVICE
from ..._model.boundary.form import shown
from ..._model.boundary.kubernetes import LABEL, LABEL_VALUE, SUBDOMAIN
from ..._model.job.job import (
    JobAttachment,
    JobWorkload,
    NetworkRequest,
    PodContainer,
    PodDevices,
    PodTemplate,
    Replaced,
    Variable,
    VolumeClaim,
)
from ..kubernetes.device_claims import read_pod_claims, read_taken_claims
from ..kubernetes.ipam import attachment_plugins
from ..kubernetes.multus import MOST_INTERFACES, STATUS_ANNOTATION
from ..kubernetes.quantity import quantity
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    full_name_of,
    items_of,
    json_of,
    mapping_at,
    name_of,
    number_of,
    text_at,
    text_of,
    texts_of,
    title_of,
)

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")

#: jobs by their kind, also where a mistake hides their pods: ``container:`` in place of ``containers:``
_KINDS = ("Pod", "Job", "JobSet", "StatefulSet", "Deployment", "PyTorchJob", "MPIJob", "TrainJob")
#: CNI plugins of an attachment, and characters of the type of one or of the name of a resource: any tenant writes
#: attachments, and all of them are read
_MOST_PLUGINS, _MOST_NAME = 32, 317
_RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName"
_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_TRAINER = "node"
#: by the identity of a container's mapping
_Provenance = dict[int, Replaced]
#: entries of a list of a pod or a container, and names in a variable that lists HCAs or interfaces. Kubernetes has no
#: bound but the size of an object
_MOST_ENTRIES, _MOST_NAMES = 1000, 256
_LISTS = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME")
#: objects that are looked at in one job; a file can be made that unfolds without end. And characters of the path to one
#: of them, which each of its pod templates and containers repeats; the key of an annotation has 317
_MOST, _MOST_OF_A_PATH = 20_000, 1000
_ASSIGNMENT = re.compile(r"\b(NCCL_[A-Z0-9_]+)=(\"[^\"]*\"|'[^']*'|[^\s;&|\"']*)")


def is_job(resource: Resource) -> bool:
    """Return whether pods are made of it."""
    if not isinstance(resource, dict):
        return False
    return resource.get("kind") in _KINDS or next(_templates(resource, "", 1, itertools.count()), None) is not None


def parse_workload(resource: Resource, runtimes: typing.Iterable[Resource] = ()) -> JobWorkload:
    """Parse a job as its pods will be.

    :param runtimes: TrainingRuntimes and ClusterTrainingRuntimes, to one of which a TrainJob refers
    :raises ResourceError: no job, a part of it has another form, or its runtime is not there
    """
    name, namespace, title = (
        text_of(SUBDOMAIN, name_of(resource), f"{title_of(resource)}: metadata.name"),
        _namespace(resource),
        title_of(resource),
    )
    kind = resource.get("kind") or ""
    if not isinstance(kind, str):
        raise ResourceError(f"{title}: kind is {shown(kind)}, expected text")
    body, replaced = _add_runtime(resource, runtimes) if resource.get("kind") == "TrainJob" else (resource, {})
    templates = tuple(_template(*found, namespace, replaced) for found in _templates(body, "", 1, itertools.count()))
    if not templates:
        raise ResourceError(f"{title_of(resource)}: no pod template is in it, so it is no job")
    queue = text_at(LABEL_VALUE, mapping_at(resource, "metadata", "labels"), QUEUE_LABEL, f"{title}: metadata.labels")
    return JobWorkload(kind, name, namespace, templates, queue, _lost(body, templates))


def namespace_of(resource: Resource) -> str:
    """Namespace of a job; empty where it is none, and the job can't be read."""
    try:
        return _namespace(resource)
    except ResourceError:
        return ""


def _namespace(resource: Resource) -> str:
    """:raises ResourceError: it is no name of a namespace"""
    return text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{title_of(resource)}: metadata") or "default"


def _lost(body: Resource, templates: typing.Sequence[PodTemplate]) -> str:
    """Return why the operator will not give the pods each other's addresses. [kubeflow/trainer v1.9.4
    pkg/controller.v1/pytorch/envvar.go, pkg/webhooks/pytorch]"""
    kind, spec = body.get("kind"), mapping_at(body, "spec")
    if kind == "PyTorchJob":
        other = [str(role) for role in mapping_at(spec, "pytorchReplicaSpecs") if role not in ("Master", "Worker")]
        if other:
            return f"The training operator knows the roles Master and Worker, and refuses {', '.join(other)}"
        if len(templates) < len(mapping_at(spec, "pytorchReplicaSpecs")):
            return "One of its roles has no template with containers, and the training operator refuses it"
        if not all(any(container.name == "pytorch" for container in template.containers) for template in templates):
            return (
                "The training operator looks for a container named pytorch in each of its pods, and refuses the job"
                " without one"
            )
        if "Master" not in mapping_at(spec, "pytorchReplicaSpecs") and not spec.get("elasticPolicy"):
            return "Without a Master, and without an elasticPolicy, no pod is told where the others meet"
    if kind == "TrainJob" and not any(
        _is_trainer(item) for item in items_of(mapping_at(spec, "template", "spec"), "replicatedJobs", "its runtime")
    ):
        return (
            f"No job of its runtime carries the label {_ANCESTOR}: trainer, so the trainer starts one pod and"
            " passes over what the TrainJob says"
        )
    if (
        kind == "TrainJob"
        and not [key for key in mapping_at(spec, "mlPolicy") if key != "numNodes"]
        and sum(item.count for item in templates) > 1
    ):
        return (
            "Its runtime names no framework in mlPolicy (torch, mpi ...), so the trainer sets none of the variables by"
            " which its pods meet"
        )
    return ""


def _templates(
    node: typing.Any, path: str, count: int, visited: typing.Iterator[int]
) -> typing.Iterator[tuple[str, Resource, int]]:
    """Yield all pod templates below, each with its path and the number of pods that are made of it.

    :raises ResourceError: it has more parts, levels or longer keys than any job
    """
    if len(path) > _MOST_OF_A_PATH:
        raise ResourceError(
            f"{path[:100]}...: a path of {len(path)} characters; {_MOST_OF_A_PATH} are the most in a job"
        )
    if next(visited, _MOST) >= _MOST or path.count(".") > 30:
        raise ResourceError(f"more than {_MOST} parts, or too deep: no job looks like that")
    if isinstance(node, dict):
        if isinstance(node.get("spec"), dict) and isinstance(node["spec"].get("containers"), list):
            yield path, node, count
            return
        for key in ("replicas", "parallelism"):
            if node.get(key) is not None:
                count *= number_of(node[key], f"{path}.{key}")
        for key, child in node.items():
            yield from _templates(child, f"{path}.{key}" if path else str(key), count, visited)
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _templates(child, f"{path}[{index}]", count, visited)


def _template(path: str, template: Resource, count: int, namespace: str, replaced: _Provenance) -> PodTemplate:
    where = path or "the pod"
    spec, annotations = mapping_at(template, "spec"), mapping_at(template, "metadata", "annotations")
    volumes = _parse_entries(spec, "volumes", where)
    return PodTemplate(
        path=path[: -len(".template")] if path.endswith(".template") else path,
        count=count,
        containers=_parse_containers(spec, "containers", path, replaced),
        init_containers=_parse_containers(spec, "initContainers", path, replaced),
        networks=parse_networks(annotations.get(NETWORKS_ANNOTATION), namespace, where),
        host_network=bool(spec.get("hostNetwork", False)),
        volumes=tuple(str(item.get("name")) for item in volumes),
        memory_volumes={
            str(item.get("name")): str(mapping_at(item, "emptyDir").get("sizeLimit") or "")
            for item in volumes
            if mapping_at(item, "emptyDir").get("medium") == "Memory"
        },
        claims=tuple(
            str(mapping_at(item, "persistentVolumeClaim").get("claimName"))
            for item in volumes
            if item.get("persistentVolumeClaim")
        ),
        host_paths=tuple(str(mapping_at(item, "hostPath").get("path")) for item in volumes if item.get("hostPath")),
        account=str(spec.get("serviceAccountName") or ""),
        device_claims=read_pod_claims(spec, where),
    )


def _parse_containers(spec: Resource, key: str, path: str, replaced: _Provenance) -> tuple[PodContainer, ...]:
    found = items_of(spec, key, path or "the pod")
    return tuple(
        _parse_container(item, spec, f"{path}.spec.{key}[{index}]", replaced) for index, item in enumerate(found)
    )


def _parse_container(item: Resource, spec: Resource, path: str, replaced: _Provenance) -> PodContainer:
    path = path.lstrip(".")
    for key in ("name", "image"):
        if not item.get(key):
            raise ResourceError(f"{path}: {key} is missing")
    variables = [_parse_variable(entry, path) for entry in _parse_entries(item, "env", path)]
    words = " ".join((*texts_of(item, "command", path), *texts_of(item, "args", path)))
    variables += [Variable(name, _literal(value), f"{path}.command") for name, value in _ASSIGNMENT.findall(words)]
    for variable in variables:
        number = (variable.value or "").count(",") + 1 if variable.name in _LISTS else 0
        if number > _MOST_NAMES:
            raise ResourceError(f"{variable.place}: {variable.name} lists {number} names; {_MOST_NAMES} are the most")
    context, of_pod = mapping_at(item, "securityContext"), mapping_at(spec, "securityContext")
    limits = _parse_amounts(item, "limits", path)
    user = context.get("runAsUser", of_pod.get("runAsUser"))
    return PodContainer(
        name=str(item.get("name", "")),
        path=path,
        environment=tuple(variables),
        sources=tuple(
            f"{kind} {mapping_at(entry, key).get('name')}"
            for entry in items_of(item, "envFrom", path)
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))
            if entry.get(key)
        ),
        requests={**limits, **_parse_amounts(item, "requests", path)},
        limits=limits,
        capabilities=tuple(name.upper() for name in texts_of(mapping_at(context, "capabilities"), "add", path)),
        privileged=bool(context.get("privileged", False)),
        user=None if user is None else number_of(user, f"{path}: runAsUser"),
        non_root=bool(context.get("runAsNonRoot", of_pod.get("runAsNonRoot", False))),
        mounts={_path(mount, path): str(mount.get("name", "")) for mount in _parse_entries(item, "volumeMounts", path)},
        replaced=replaced.get(id(item)),
        device_claims=read_taken_claims(item, path),
    )


def _parse_entries(parent: Resource, key: str, what: str) -> list[dict[str, typing.Any]]:
    """:raises ResourceError: no list of mappings, or one that is longer than any that somebody needs"""
    found = items_of(parent, key, what)
    if len(found) > _MOST_ENTRIES:
        raise ResourceError(f"{what}: {key} has {len(found)} entries; {_MOST_ENTRIES} are the most")
    return found


def _path(mount: Resource, path: str) -> str:
    if not mount.get("mountPath"):
        raise ResourceError(f"{path}.volumeMounts: one has no mountPath")
    return str(mount["mountPath"]).rstrip("/")


def _parse_variable(entry: Resource, path: str) -> Variable:
    if not entry.get("name"):
        raise ResourceError(f"{path}.env: a variable has no name")
    value = None if entry.get("valueFrom") else str(entry.get("value") if entry.get("value") is not None else "")
    return Variable(str(entry["name"]), value, f"{path}.env")


def _literal(text: str) -> typing.Optional[str]:
    """Return the value of an assignment in a command; None where only the shell knows it."""
    return None if "$" in text or "`" in text else text.strip("\"'")


def _parse_amounts(item: Resource, key: str, path: str) -> dict[str, str]:
    found = {str(name): str(value) for name, value in mapping_at(item, "resources", key).items()}
    for name, value in found.items():
        quantity(value, f"{path}.resources.{key}[{name}]")
    return found


def parse_networks(text: typing.Any, namespace: str, what: str) -> tuple[NetworkRequest, ...]:
    """Return the annotation of the multi-network specification: a JSON list, or ``namespace/name@interface`` with
    commas between.

    :raises ResourceError: another form, which multus refuses, or more networks than any pod has
    """
    if text is None or not str(text).strip():
        return ()
    where, text = f"{what}: annotation {NETWORKS_ANNOTATION}", str(text).strip()
    if text.startswith("["):
        entries = json_of(text, where)
        if not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise ResourceError(f"{where} is no list of mappings with a name")
    else:
        # one more than there may be: what is behind it is not looked at
        entries = [_short(part.strip(), where) for part in text.split(",", MOST_INTERFACES)[:MOST_INTERFACES]]
        entries += [{}] * (text.count(",") + 1 - len(entries))
    if len(entries) > MOST_INTERFACES:
        raise ResourceError(f"{where} has {len(entries)} networks; {MOST_INTERFACES} are the most")
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
    if not SUBDOMAIN.fits(name) or (slash and not SUBDOMAIN.fits(namespace)) or (at and not INTERFACE.fits(interface)):
        raise ResourceError(f"{where}: '{part[:100]}' is not of the form namespace/name@interface")
    return {"namespace": namespace, "name": name, "interface": interface}


# TrainJob


def find_runtime(job: Resource) -> tuple[str, str, str]:
    """Kind, namespace (empty for a cluster's) and name of the runtime that a TrainJob refers to.

    :raises ResourceError: it names none
    """
    reference = mapping_at(job, "spec", "runtimeRef")
    kind, name = str(reference.get("kind") or "ClusterTrainingRuntime"), str(reference.get("name") or "")
    if kind not in RUNTIMES or not name:
        raise ResourceError(
            f"{title_of(job)}: spec.runtimeRef is {kind} '{name}'; expected the name of a {' or '.join(RUNTIMES)}"
        )
    return kind, _namespace(job) if kind == "TrainingRuntime" else "", name


def _add_runtime(job: Resource, runtimes: typing.Iterable[Resource]) -> tuple[Resource, _Provenance]:
    """Return the runtime's template with what the TrainJob and its patches change, and which resources they replaced.

    [src kubeflow/trainer v2.3.0 pkg/runtime/framework/plugins/jobset/builder.go]
    """
    kind, namespace, name = find_runtime(job)
    of_kind = [item for item in runtimes if item.get("kind") == kind and name_of(item) == name]
    found = [item for item in of_kind if not namespace or namespace_of(item) == namespace]
    if not found:
        raise ResourceError(f"{title_of(job)}: its {kind} {name}, in which its pod template is, was not found")
    spec, trainer = copy.deepcopy(mapping_at(found[0], "spec")), mapping_at(job, "spec", "trainer")
    jobs = _parse_entries(mapping_at(spec, "template", "spec"), "replicatedJobs", f"{kind} {name}")
    replaced: _Provenance = {}
    patches = _list_patches(job)
    for item in jobs:
        if not item.get("name"):
            raise ResourceError(f"{kind} {name}: a job in spec.template.spec.replicatedJobs has no name")
        pod = mapping_at(item, "template", "spec", "template")
        if _is_trainer(item):
            item["replicas"] = 1
            # EnforceMLPolicy: the number of nodes becomes the number of pods of this job
            nodes = trainer.get("numNodes") or mapping_at(spec, "mlPolicy").get("numNodes")
            if nodes is not None and pod:
                item["template"]["spec"]["parallelism"] = nodes
            for container in items_of(mapping_at(pod, "spec"), "containers", name):
                if container.get("name") == _TRAINER:
                    if trainer.get("resourcesPerNode"):
                        before = {
                            **_parse_amounts(container, "requests", name),
                            **_parse_amounts(container, "limits", name),
                        }
                        replaced[id(container)] = Replaced(
                            before, f"{title_of(job)} spec.trainer.resourcesPerNode", f"{kind} {name}"
                        )
                    _overwrite(container, trainer, name)
        # of two jobs of one name, which the API server refuses, the first is patched
        for patch in patches.pop(str(item["name"]), ()):
            _patch(pod, patch, name)
    return {"kind": "TrainJob", "spec": spec}, replaced


def _is_trainer(item: Resource) -> bool:
    return mapping_at(item, "template", "metadata", "labels").get(_ANCESTOR) == "trainer"


def _overwrite(container: dict[str, typing.Any], trainer: Resource, what: str) -> None:
    container.update({key: trainer[key] for key in ("image", "command", "args") if trainer.get(key)})
    if trainer.get("resourcesPerNode"):
        container["resources"] = trainer["resourcesPerNode"]
    _join(container, trainer, "env", what)


def _list_patches(job: Resource) -> dict[str, list[Resource]]:
    """Patches of the pod templates of the runtime's jobs, by the names of these; runtimePatches since v2.2,
    podTemplateOverrides before.

    :raises ResourceError: they are more than anybody needs
    """
    what = title_of(job)
    found = [
        (item.get("name"), mapping_at(item, "template", "spec", "template"))
        for patch in _parse_entries(mapping_at(job, "spec"), "runtimePatches", what)
        for item in _parse_entries(mapping_at(patch, "trainingRuntimeSpec", "template", "spec"), "replicatedJobs", what)
    ]
    for override in _parse_entries(mapping_at(job, "spec"), "podTemplateOverrides", what):
        found += [
            (name, override)
            for name in {str(target.get("name")) for target in _parse_entries(override, "targetJobs", what)}
        ]
    if len(found) > _MOST_ENTRIES:
        raise ResourceError(f"{what}: it patches {len(found)} pod templates; {_MOST_ENTRIES} are the most")
    by_name: dict[str, list[Resource]] = {}
    for name, patch in found:
        by_name.setdefault(str(name), []).append(patch)
    return by_name


def _patch(pod: dict[str, typing.Any], patch: Resource, what: str) -> None:
    annotations = {**mapping_at(pod, "metadata", "annotations"), **mapping_at(patch, "metadata", "annotations")}
    pod["metadata"] = {**mapping_at(pod, "metadata"), "annotations": annotations}
    spec, changed = mapping_at(pod, "spec"), mapping_at(patch, "spec")
    _join(spec, changed, "volumes", what)
    if changed.get("securityContext"):
        spec["securityContext"] = changed["securityContext"]
    by_name: dict[str, dict[str, typing.Any]] = {}
    for wanted in _parse_entries(changed, "containers", what):
        name = str(wanted.get("name"))
        if name in by_name:
            raise ResourceError(f"{what}: a patch names the container {shown(name)} twice")
        by_name[name] = wanted
    for container in _parse_entries(spec, "containers", what):
        wanted = by_name.get(str(container.get("name")), {})
        _join(container, wanted, "env", what)
        _join(container, wanted, "volumeMounts", what, "mountPath")
        if wanted.get("securityContext"):
            container["securityContext"] = wanted["securityContext"]


def _join(target: dict[str, typing.Any], change: Resource, key: str, what: str, by: str = "name") -> None:
    """Merge two lists of mappings, as the API server does it: by the value of one key."""
    new = items_of(change, key, what)
    if new:
        names = {item.get(by) for item in new}
        target[key] = [*(item for item in items_of(target, key, what) if item.get(by) not in names), *new]


# What a job meets


def parse_attachment(resource: Resource) -> JobAttachment:
    """Parse a NetworkAttachmentDefinition; one whose configuration is elsewhere, or broken, says so in ``problem``.

    :raises ResourceError: it has no name
    """
    name = full_name_of(resource)
    wanted = resource_of(resource)
    if len(wanted) > _MOST_NAME:
        return JobAttachment(
            name,
            problem=(
                f"the annotation {_RESOURCE_ANNOTATION} has {len(wanted)} characters; a name has {_MOST_NAME} at most"
            ),
        )
    try:
        plugins = attachment_plugins(resource, name)
        if len(plugins) > _MOST_PLUGINS or any(len(str(plugin.get("type", ""))) > _MOST_NAME for plugin in plugins):
            raise ResourceError(
                f"{name}: {len(plugins)} CNI plugins; expected {_MOST_PLUGINS} at most, each of a type of {_MOST_NAME}"
                " characters at most"
            )
        routes = [route for plugin in plugins for route in items_of(mapping_at(plugin, "ipam"), "routes", name)]
    except ResourceError as error:
        return JobAttachment(name, resource=wanted, problem=both_ends(error.seen))
    return JobAttachment(
        name=name,
        kinds=tuple(str(plugin.get("type", "")) for plugin in plugins),
        resource=wanted,
        default_route=any(str(route.get("dst")) in ("0.0.0.0/0", "::/0") for route in routes),
    )


def resource_of(resource: Resource) -> str:
    """Return the extended resource that a NetworkAttachmentDefinition needs; empty where it needs none."""
    return str(mapping_at(resource, "metadata", "annotations").get(_RESOURCE_ANNOTATION) or "")


def parse_claim(resource: Resource) -> VolumeClaim:
    """Parse a PersistentVolumeClaim.

    :raises ResourceError: none
    """
    name = full_name_of(resource)
    return VolumeClaim(
        name,
        texts_of(mapping_at(resource, "spec"), "accessModes", name),
        str(mapping_at(resource, "status").get("phase") or ""),
    )


def parse_pod_devices(pod: Resource) -> PodDevices:
    """Parse the annotation of multus on a pod; a pod without the annotation has no secondary network.

    :raises ResourceError: the annotation has another form, more networks than any pod has, or a name in it is none
    """
    what = f"pod {name_of(pod)}"
    entries = json_of(
        mapping_at(pod, "metadata", "annotations").get(STATUS_ANNOTATION) or "[]",
        f"{what}: the annotation {STATUS_ANNOTATION}",
    )
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is no list of mappings")
    mine = [entry for entry in entries if not entry.get("default")]
    texts = [str(mapping_at(entry, "device-info", "pci").get("rdma-device") or "") for entry in mine]
    number = max(len(mine), sum(text.count(",") + 1 for text in texts))
    if number > MOST_INTERFACES:
        raise ResourceError(
            f"{what}: the annotation {STATUS_ANNOTATION} has {number} networks or devices; {MOST_INTERFACES} are the"
            " most"
        )
    where = f"{what}: the annotation {STATUS_ANNOTATION}"
    return PodDevices(
        name_of(pod),
        tuple(text_at(INTERFACE, entry, "interface", where) for entry in mine),
        tuple(
            text_of(RDMA_DEVICE, name, f"{where}: rdma-device") for text in texts for name in text.split(",") if name
        ),
    )
