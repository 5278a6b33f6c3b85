# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects that the SR-IOV network operator depends on: the workers of node feature discovery, and the objects
of OLM that install the operator.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import is_ours
from ..._model.base.text import kind_of
from ..._model.boundary.form import describe_rejected
from ..._model.boundary.kubernetes import LABEL, OBJECT_NAME
from ..._model.boundary.words import VERSION, WORD
from ..._model.kubernetes.owner_marks import find_owner_mark
from ..._model.operators.feature_discovery import WorkerConfig
from ..._model.operators.operators import SRIOV
from ..._model.operators.recognition import recognize_operators
from ..._model.operators.sriov_operator import OlmObject
from ..kubernetes.foreign import is_copied
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    normalize_known,
    text_at,
    text_of,
    texts_of,
    title_of,
)


def is_worker(daemon: Resource) -> bool:
    """Return whether a DaemonSet runs the worker of node feature discovery. The commands of its containers decide,
    because they are the same for each kind of installation.

    :raises ResourceError: the object is not a valid DaemonSet
    """
    containers = items_of(mapping_at(daemon, "spec", "template", "spec"), "containers", "DaemonSet")
    words = [
        word
        for container in containers
        for key in ("command", "args")
        for word in texts_of(container, key, "DaemonSet")
    ]
    return any(word.rsplit("/", 1)[-1] == "nfd-worker" for word in words)


def config_maps(daemon: Resource) -> tuple[str, ...]:
    """Return the names of the ConfigMaps that a DaemonSet mounts as volumes.

    :raises ResourceError: the object is not a valid DaemonSet
    """
    volumes = items_of(mapping_at(daemon, "spec", "template", "spec"), "volumes", "DaemonSet")
    names = [mapping_at(volume, "configMap").get("name") for volume in volumes]
    return tuple(str(name) for name in names if name)


def worker_text(config_map: Resource) -> str:
    """Return the YAML configuration of the node feature discovery worker in a ConfigMap. Return an empty string if the
    ConfigMap does not contain it. The key is nfd-worker.conf in the chart and nfd-worker-conf in OpenShift.
    """
    return next(
        (
            str(text)
            for name, text in sorted(mapping_at(config_map, "data").items())
            if str(name).startswith("nfd-worker")
        ),
        "",
    )


def worker_config(data: typing.Any) -> WorkerConfig:
    """Parse the configuration of the worker of node feature discovery. Missing settings have their defaults.

    :param data: the configuration, loaded from YAML; None for an empty one
    :raises ResourceError: the configuration has an unexpected form
    """
    default = WorkerConfig()
    pci = _read_section(_read_section(data, "sources"), "pci")
    return WorkerConfig(
        classes=tuple(item.lower() for item in _read_text_list(pci, "deviceClassWhitelist", default.classes)),
        fields=_read_text_list(pci, "deviceLabelFields", default.fields),
        sources=_read_text_list(_read_section(data, "core"), "labelSources", default.sources),
    )


def _read_section(data: typing.Any, key: str) -> dict[str, typing.Any]:
    """Return a section of the configuration of nfd-worker; empty if it is missing.

    :raises ResourceError: the configuration or the section is no mapping
    """
    if data is not None and not isinstance(data, dict):
        raise ResourceError(f"configuration of nfd-worker: {kind_of(data)}; expected a mapping with {key}")
    value = (data or {}).get(key)
    if value is not None and not isinstance(value, dict):
        raise ResourceError(f"configuration of nfd-worker: {key} is not a mapping")
    return value or {}


def _read_text_list(data: typing.Mapping[str, typing.Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of texts from the configuration of nfd-worker.

    :param default: result if the key is missing
    :raises ResourceError: the value is no list of texts
    """
    value = data.get(key)
    if value is None:
        return default
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ResourceError(f"configuration of nfd-worker: {key} is not a list of texts: {describe_rejected(value)}")
    return tuple(value)


def olm_object(
    resource: Resource, operator: str = SRIOV, packages: typing.Optional[typing.Mapping[str, str]] = None
) -> typing.Optional[OlmObject]:
    """Parse a ClusterServiceVersion or Subscription (operators.coreos.com/v1alpha1) of an operator. Return None if the
    object belongs to another operator.

    :param operator: name of the operator
    :param packages: name of the package of each operator in the settings, by operator; None for the default names
    :raises ResourceError: the object has no valid name, or an unexpected form
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    name = text_of(OBJECT_NAME, name, title_of(resource))
    found = OlmObject(
        normalize_known(WORD, resource.get("kind")),
        name,
        text_at(LABEL, mapping_at(resource, "metadata"), "namespace", name),
    )
    if found.kind == "Subscription":
        versions = [str(status[key]) for key in ("installedCSV", "currentCSV") if status.get(key)]
        if operator not in recognize_operators(str(spec.get("name") or ""), versions, (), packages):
            return None
        told = [
            f"{item.get('type')}: {item.get('message') or item.get('reason') or 'no reason given'}"
            for item in _list_true_conditions(items_of(status, "conditions", name))
        ]
        return OlmObject(
            found.kind,
            name,
            found.namespace,
            normalize_known(WORD, status.get("state")),
            "; ".join(told),
            normalize_known(VERSION, status.get("installedCSV")),
            normalize_known(VERSION, spec.get("name")),
            is_ours(labels_of(resource)) and not is_copied(resource) and not find_owner_mark(resource),
        )
    owned = items_of(mapping_at(spec, "customresourcedefinitions"), "owned", name)
    if operator not in recognize_operators("", [name], [str(item.get("name")) for item in owned], packages):
        return None
    message = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    return OlmObject(
        found.kind,
        name,
        found.namespace,
        normalize_known(WORD, status.get("phase")),
        message,
        normalize_known(VERSION, spec.get("version")),
    )


def _list_true_conditions(conditions: typing.Iterable[Resource]) -> typing.Iterator[Resource]:
    """Yield the conditions of a Subscription whose status is True. Every type of condition that OLM sets on a
    Subscription reports a problem.
    """
    return (item for item in conditions if item.get("status") == "True")
