# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the OpenShift kinds that change a machine into facts: MachineConfig, KubeletConfig, MachineConfigPool."""

from __future__ import annotations

import datetime
import typing

from ..._model.base.marks import MANAGER
from ..._model.boundary.kubernetes import SUBDOMAIN
from ..._model.kubernetes.disruption import MachinePool
from ..._model.kubernetes.host import CRIO_FILE, HostConfig
from ..kubernetes.resource import (
    Resource,
    excerpt_of,
    find_manager,
    items_of,
    labels_of,
    mapping_at,
    moment_of,
    name_of,
    number_of,
    selector_of,
    text_at,
    text_of,
    texts_of,
)
from .sriov_operator import STATE_ANNOTATIONS

#: of a MachineConfigPool that the collection has paused
PAUSED_ANNOTATION = "linerate.rdma/paused"
#: before the names of annotations that its daemon keeps on a node
DAEMON = "machineconfiguration.openshift.io/"
#: by which the clocks of the API server and of the operator may differ
_CLOCKS = datetime.timedelta(seconds=2)
_REPLACES = ", which replaces the other default_ulimits of CRI-O as a whole"
#: settings of the kubelet in words
_SETTINGS = {
    "topologyManagerPolicy": "topology manager",
    "topologyManagerScope": "topology manager's scope",
    "cpuManagerPolicy": "CPU manager",
    "reservedSystemCPUs": "system CPUs",
}


def machine_pool(resource: Resource) -> MachinePool:
    """Parse a MachineConfigPool (machineconfiguration.openshift.io/v1). A missing count is 0, and a missing
    ``maxUnavailable`` is None. Conditions are returned by type, because their order has no meaning.

    :raises ResourceError: the object is not a valid MachineConfigPool, or a count is not a number
    """
    name = name_of(resource)
    what = f"MachineConfigPool {name}"
    spec, status = mapping_at(resource, "spec"), mapping_at(resource, "status")
    conditions = {str(item.get("type")): item for item in items_of(status, "conditions", what)}
    told = [
        excerpt_of(item.get("message"))
        for kind, item in sorted(conditions.items())
        if kind.endswith("Degraded") and item.get("status") == "True"
    ]
    return MachinePool(
        name=name,
        selector=selector_of(spec, "nodeSelector", what),
        labels=labels_of(resource),
        config_selector=selector_of(spec, "machineConfigSelector", what),
        max_unavailable=None if spec.get("maxUnavailable") is None else str(spec["maxUnavailable"]),
        paused=bool(spec.get("paused", False)),
        # [sriov-network-operator pkg/platforms/openshift/openshift.go OpenshiftBeforeDrainNode]
        paused_by_operator=mapping_at(resource, "metadata", "annotations").get(f"{STATE_ANNOTATIONS}state") == "Paused",
        paused_by_us=_is_paused_by_us(resource),
        wanted_config=text_at(SUBDOMAIN, mapping_at(spec, "configuration"), "name", what),
        sources=tuple(
            text_of(SUBDOMAIN, item.get("name"), what)
            for item in items_of(mapping_at(spec, "configuration"), "source", what)
        ),
        current_config=text_at(SUBDOMAIN, mapping_at(status, "configuration"), "name", what),
        machines=number_of(status.get("machineCount", 0), f"{what}: machineCount"),
        updated=number_of(status.get("updatedMachineCount", 0), f"{what}: updatedMachineCount"),
        degraded=number_of(status.get("degradedMachineCount", 0), f"{what}: degradedMachineCount"),
        conditions={kind: str(item.get("status")) for kind, item in conditions.items()},
        message=excerpt_of("; ".join(dict.fromkeys(filter(None, told)))),
    )


def _is_paused_by_us(resource: Resource) -> bool:
    """Return whether the collection paused a MachineConfigPool. The annotation alone does not prove this, because it
    stays if a user unpauses the pool and pauses it again. The field manager of the pause must therefore be the
    collection, or unknown.
    """
    return (
        bool(mapping_at(resource, "spec").get("paused", False))
        and PAUSED_ANNOTATION in mapping_at(resource, "metadata", "annotations")
        and find_manager(resource, "paused") in ("", MANAGER)
    )


def host_config(resource: Resource, live: typing.Optional[Resource] = None) -> HostConfig:
    """Parse a MachineConfig or a KubeletConfig, and compare it with the object in the cluster. The result contains a
    text that lists its files, kernel arguments and settings, and whether the object in the cluster has all of its
    settings.

    :param live: object of the same name in the cluster; None if it does not exist
    :raises ResourceError: an object has an unexpected form
    """
    name, spec, seen = name_of(resource), mapping_at(resource, "spec"), live or {}
    kind = str(resource.get("kind"))
    what = f"{kind} {name}"
    paths = [str(item.get("path")) for item in items_of(mapping_at(spec, "config", "storage"), "files", what)]
    files = [f"file {path}{_REPLACES if path == CRIO_FILE else ''}" for path in paths]
    arguments = texts_of(spec, "kernelArguments", what)
    settings = [f"{_SETTINGS.get(key, key)} {value}" for key, value in mapping_at(spec, "kubeletConfig").items()]
    words = [*files, *([f"kernel arguments {' '.join(arguments)}"] if arguments else []), *settings]
    had = mapping_at(seen, "spec")
    return HostConfig(
        kind=kind,
        name=name,
        what=", ".join(words),
        labels=labels_of(resource),
        selector=selector_of(spec, "machineConfigPoolSelector", what),
        # the operator names the MachineConfigs that it made, so that they go with it [pkg/controller/kubelet-config
        # addFinalizerToKubeletConfig]
        generated=texts_of(mapping_at(seen, "metadata"), "finalizers", what),
        refusal=_find_refusal(seen, what),
        there=live is not None and all(had.get(key) == value for key, value in spec.items()),
    )


def _find_refusal(resource: Resource, what: str) -> typing.Optional[str]:
    """Return the reason why the operator rejected the present generation of a KubeletConfig, from its last condition.
    Return an empty string if the operator accepted it, and None if the operator has not judged it yet. The type of the
    condition is Success, or Failure with status False.

    [machine-config-operator pkg/controller/kubelet-config syncStatusOnly]

    :param resource: KubeletConfig as the API server returned it
    :param what: kind and name of the object, for messages
    """
    conditions = items_of(mapping_at(resource, "status"), "conditions", what)
    if not conditions or not _of_this_generation(resource, conditions[-1], what):
        return None
    last = conditions[-1]
    return "" if last.get("type") == "Success" else excerpt_of(last.get("message")) or "no reason is reported"


def _of_this_generation(resource: Resource, condition: Resource, what: str) -> bool:
    """Return whether the operator wrote a condition for the present generation of a KubeletConfig.

    The operator does not set observedGeneration, so the time of the condition is compared with the time of the last
    change of the spec. A repeated condition has a new time, and the API server records when each manager last changed
    the spec. [machine-config-operator pkg/controller/kubelet-config syncStatusOnly, cleanUpStatusConditions]

    :param condition: the condition, from the status of ``resource``
    :param what: name of ``resource`` in messages
    """
    metadata = mapping_at(resource, "metadata")
    seen = mapping_at(resource, "status").get("observedGeneration")
    if seen:
        return bool(seen == metadata.get("generation"))
    entries = items_of(metadata, "managedFields", what)
    changed = [
        moment_of(entry.get("time"))
        for entry in entries
        if not entry.get("subresource") and "f:spec" in mapping_at(entry, "fieldsV1")
    ]
    times = [moment for moment in changed if moment is not None]
    said = moment_of(condition.get("lastTransitionTime"))
    if metadata.get("generation") == 1 or not times:
        return metadata.get("generation") == 1
    return said is not None and said >= max(times) - _CLOCKS
