# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the pod template of a job: its containers, variables, resources, volumes and networks."""

from __future__ import annotations

import re
import typing

from ..._model.boundary.devices import INTERFACE
from ..._model.boundary.kubernetes import SUBDOMAIN
from ..._model.job.job import (
    NetworkRequest,
    PodContainer,
    PodTemplate,
    Replaced,
    Variable,
)
from ..kubernetes.dra.device_claims import read_pod_claims, read_taken_claims
from ..kubernetes.networks.multus import MOST_INTERFACES
from ..kubernetes.quantity import parse_quantity
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    items_of,
    json_of,
    mapping_at,
    number_of,
    texts_of,
)
from .expansion import VALUE, expand_listed, expand_word, find_settings
from .node_choice import parse_node_choice
from .torchrun import parse_torchrun

NETWORKS_ANNOTATION = "k8s.v1.cni.cncf.io/networks"
#: resources that were replaced, by the identity of a container's mapping
Provenance = dict[int, Replaced]
#: entries of a list of a pod or a container, and names in a variable that lists HCAs or interfaces. Kubernetes has no
#: bound but the size of an object
MOST_ENTRIES, _MOST_NAMES = 1000, 256
_LISTS = ("NCCL_IB_HCA", "NCCL_SOCKET_IFNAME")
_LAUNCHER = re.compile(r"\b(?:mpirun|mpiexec|orterun|prterun|horovodrun)\b")
_NAME = r"((?:NCCL|UCX)_[A-Z0-9_]{1,100})"
#: variables that a launcher gives to all ranks: Open MPI by -x NAME=VALUE, or by -x NAME with its own value; MPICH by
#: -genv NAME VALUE
_EXPORTS = (
    re.compile(rf"(?:^|\s)-x\s{{1,20}}{_NAME}(?:={VALUE})?(?=[\s;&|\\]|$)"),
    re.compile(rf"(?:^|\s)-genv\s{{1,20}}{_NAME}\s{{1,20}}{VALUE}"),
)
#: variables that count in commands, too
_IN_COMMANDS = re.compile(r"(?:NCCL|UCX|GLOO)_[A-Z0-9_]+")


def parse_template(path: str, template: Resource, count: int, namespace: str, replaced: Provenance) -> PodTemplate:
    """Return the containers, volumes, networks and claims of a pod template.

    :param path: path of the template in the job
    :param template: pod template as in the object of the job
    :param count: number of pods that are created from the template
    :param namespace: namespace of the job, which is used for a network without a namespace
    :param replaced: resources of the runtime's template that a TrainJob replaced, by ``id`` of the container
    :raises ResourceError: a part of the template has an unexpected form
    """
    where = path or "the pod"
    spec, annotations = mapping_at(template, "spec"), mapping_at(template, "metadata", "annotations")
    volumes = parse_entries(spec, "volumes", where)
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
            if mapping_at(item, "emptyDir").get("medium") == "Memory" or _is_shared_memory(item)
        },
        claims=tuple(
            str(mapping_at(item, "persistentVolumeClaim").get("claimName"))
            for item in volumes
            if item.get("persistentVolumeClaim")
        ),
        host_paths=tuple(str(mapping_at(item, "hostPath").get("path")) for item in volumes if item.get("hostPath")),
        account=str(spec.get("serviceAccountName") or ""),
        device_claims=read_pod_claims(spec, where),
        nodes=parse_node_choice(spec, where),
        host_ipc=bool(spec.get("hostIPC", False)),
        host_pid=bool(spec.get("hostPID", False)),
    )


def _is_shared_memory(volume: Resource) -> bool:
    """Return whether a volume of a pod is the host path /dev/shm."""
    return str(mapping_at(volume, "hostPath").get("path")).strip("/") == "dev/shm"


def _parse_containers(spec: Resource, key: str, path: str, replaced: Provenance) -> tuple[PodContainer, ...]:
    found = items_of(spec, key, path or "the pod")
    return tuple(
        _parse_container(item, spec, f"{path}.spec.{key}[{index}]", replaced) for index, item in enumerate(found)
    )


def _parse_container(item: Resource, spec: Resource, path: str, replaced: Provenance) -> PodContainer:
    """Return a container of a pod template, with the variables and words of its commands that matter to NCCL.

    :param spec: specification of the pod, whose security context applies too
    :param path: path of the container in the object, for messages
    :param replaced: origin of containers that a runtime or a patch replaced, by the id of the object
    :raises ResourceError: a value is missing or has another form
    """
    path = path.lstrip(".")
    for key in ("name", "image"):
        if not item.get(key):
            raise ResourceError(f"{path}: {key} is missing")
    variables = _parse_variables(item, path)
    words = " ".join((*texts_of(item, "command", path), *texts_of(item, "args", path)))
    known = {variable.name: variable.value for variable in variables}
    settings = find_settings(words, known)
    variables += [Variable(name, value, f"{path}.command") for name, value in settings if _IN_COMMANDS.fullmatch(name)]
    for variable in variables:
        number = (variable.value or "").count(",") + 1 if variable.name in _LISTS else 0
        if number > _MOST_NAMES:
            raise ResourceError(f"{variable.place}: {variable.name} lists {number} names; the limit is {_MOST_NAMES}")
    exported = _list_exported(words, variables, path) if _LAUNCHER.search(words) else ()
    context, of_pod = mapping_at(item, "securityContext"), mapping_at(spec, "securityContext")
    limits = parse_amounts(item, "limits", path)
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
        requests={**limits, **parse_amounts(item, "requests", path)},
        limits=limits,
        capabilities=tuple(name.upper() for name in texts_of(mapping_at(context, "capabilities"), "add", path)),
        privileged=bool(context.get("privileged", False)),
        user=None if user is None else number_of(user, f"{path}: runAsUser"),
        non_root=bool(context.get("runAsNonRoot", of_pod.get("runAsNonRoot", False))),
        mounts={
            _read_mount_path(mount, path): str(mount.get("name", ""))
            for mount in parse_entries(item, "volumeMounts", path)
        },
        replaced=replaced.get(id(item)),
        device_claims=read_taken_claims(item, path),
        host_ports=tuple(
            number_of(entry["hostPort"], f"{path}: hostPort")
            for entry in parse_entries(item, "ports", path)
            if entry.get("hostPort")
        ),
        exported=exported,
        torchruns=parse_torchrun(words, {**known, **dict(settings)}, f"{path}.command"),
    )


def _list_exported(words: str, own: typing.Sequence[Variable], path: str) -> tuple[Variable, ...]:
    """Return the variables that a launcher of MPI gives to the processes that it starts in other pods. A variable that
    is exported without a value has the value of the container. If the container does not have it, it is left out.

    :param words: command and arguments of the container
    :param own: variables of the container
    :param path: path of the container in the job, for messages
    """
    mine = {variable.name: variable.value for variable in own if variable.place.endswith(".env")}
    found: dict[str, Variable] = {}
    for pattern in _EXPORTS:
        for match in pattern.finditer(words):
            name, text = match.groups()
            if text is not None or name in mine:
                value = mine.get(name) if text is None else expand_word(text, mine)
                found[name] = Variable(name, value, f"{path}.command")
    return tuple(found.values())


def parse_entries(parent: Resource, key: str, what: str) -> list[dict[str, typing.Any]]:
    """Return the list of mappings under a key of an object. Return an empty list if the key is missing.

    :param what: name of ``parent`` in messages
    :raises ResourceError: the value is not a list of mappings, or has more than ``MOST_ENTRIES`` items
    """
    found = items_of(mapping_at(parent), key, what)
    if len(found) > MOST_ENTRIES:
        raise ResourceError(f"{what}: {key} has {len(found)} entries; the limit is {MOST_ENTRIES}")
    return found


def _read_mount_path(mount: Resource, path: str) -> str:
    if not mount.get("mountPath"):
        raise ResourceError(f"{path}.volumeMounts: an entry has no mountPath")
    return str(mount["mountPath"]).rstrip("/")


def _parse_variables(item: Resource, path: str) -> list[Variable]:
    """Return the variables in env of a container. Kubernetes replaces ``$(NAME)`` by the value of a variable that is
    listed before. [k8s.io/api core/v1 EnvVar]

    :param item: container
    :param path: path of the container in the job, for messages
    :raises ResourceError: a variable has no name
    """
    found: list[Variable] = []
    known: dict[str, typing.Optional[str]] = {}
    for entry in parse_entries(item, "env", path):
        if not entry.get("name"):
            raise ResourceError(f"{path}.env: a variable has no name")
        name, text = str(entry["name"]), str(entry.get("value") if entry.get("value") is not None else "")
        value = None if entry.get("valueFrom") else expand_listed(text, known)
        known[name] = value
        found.append(Variable(name, value, f"{path}.env"))
    return found


def parse_amounts(item: Resource, key: str, path: str) -> dict[str, str]:
    """Return the amounts of resources that a container requests, or to which it is limited, as texts by resource name.
    The result is empty if the container sets none.

    :param item: container
    :param key: ``requests`` or ``limits``
    :param path: path of the container in the job, for messages
    :raises ResourceError: an amount is not a valid quantity
    """
    found = {str(name): str(value) for name, value in mapping_at(item, "resources", key).items()}
    for name, value in found.items():
        parse_quantity(value, f"{path}.resources.{key}[{name}]")
    return found


def parse_networks(text: typing.Any, namespace: str, what: str) -> tuple[NetworkRequest, ...]:
    """Parse the annotation with the networks of a pod, by the multi-network specification: a JSON list, or
    ``namespace/name@interface`` items separated by commas.

    :param text: value of the annotation; None or empty for no networks
    :param namespace: namespace of each network whose item does not name a namespace
    :param what: name of the pod template in messages
    :raises ResourceError: the annotation has an unexpected form, which multus rejects, or more networks than a pod can
        have
    """
    if text is None or not str(text).strip():
        return ()
    where, text = f"{what}: annotation {NETWORKS_ANNOTATION}", str(text).strip()
    if text.startswith("["):
        entries = json_of(text, where)
        if not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise ResourceError(f"{where} is not a list of mappings with a name")
    else:
        # the text after the limit is not parsed
        entries = [
            _parse_short_form(part.strip(), where) for part in text.split(",", MOST_INTERFACES)[:MOST_INTERFACES]
        ]
        entries += [{}] * (text.count(",") + 1 - len(entries))
    if len(entries) > MOST_INTERFACES:
        raise ResourceError(f"{where} has {len(entries)} networks; the limit is {MOST_INTERFACES}")
    return tuple(
        NetworkRequest(
            namespace=str(entry.get("namespace") or namespace),
            name=str(entry["name"]),
            interface=str(entry.get("interface") or f"net{number}"),
            default_route=bool(entry.get("default-route")),
        )
        for number, entry in enumerate(entries, 1)
    )


def _parse_short_form(part: str, where: str) -> Resource:
    """Return a network in the short form ``namespace/name@interface`` as a mapping. Namespace and interface are empty
    if the text has none.

    :param where: name of the annotation, for messages
    :raises ResourceError: the text has another form
    """
    rest, at, interface = part.partition("@")
    namespace, slash, name = rest.rpartition("/")
    if not SUBDOMAIN.fits(name) or (slash and not SUBDOMAIN.fits(namespace)) or (at and not INTERFACE.fits(interface)):
        raise ResourceError(f"{where}: '{part[:100]}' does not have the form namespace/name@interface")
    return {"namespace": namespace, "name": name, "interface": interface}
