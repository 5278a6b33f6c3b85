# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Kubernetes resources, as the API server sends them, to facts.

A resource of another shape is an error, never an empty fact: what the API server did not say must not look like good news.
"""

from __future__ import annotations

import json
import typing

from .._model.cluster import ClusterNode, NodeState, OperatorInstallation, Policy, StateInterface, StateVf, SupportedNic, VfGroup, WantedInterface, Workload
from .._model.disruption import Budget, ClusterPod, LabelSelector, MachinePool, NodePool, OperatorSettings
from .._model.errors import RdmaError
from .._model.host_needs import HostConfig
from .._model.nccl import PodFunction, TrainingPod

Resource = typing.Mapping[str, typing.Any]

_STATE = "sriovnetwork.openshift.io/"
#: of a MachineConfigPool that the collection has paused
PAUSED_ANNOTATION = "linerate.rdma/paused"
STATUS_ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
#: settings of the kubelet in words
_SETTINGS = {
    "topologyManagerPolicy": "topology manager",
    "topologyManagerScope": "topology manager's scope",
    "cpuManagerPolicy": "CPU manager",
    "reservedSystemCPUs": "system CPUs",
}
#: characters of a host name; the kubelet cuts a longer pod name
_HOST_NAME = 63


class ResourceError(RdmaError):
    """A resource without what its kind must have. The message says which resource, and what was expected where."""


def _what(resource: typing.Any) -> str:
    if not isinstance(resource, dict):
        return f"a {type(resource).__name__}"
    metadata = resource.get("metadata")
    name = metadata.get("name", "without a name") if isinstance(metadata, dict) else "without metadata"
    return f"{resource.get('kind', 'resource')} {name}"


def _mapping(resource: typing.Any, *path: str) -> typing.Dict[str, typing.Any]:
    """The mapping at ``path``; an absent one is empty, another type is an error."""
    value = resource
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            raise ResourceError(f"{_what(resource)}: {'.'.join(path[:depth]) or 'the resource'} is no mapping")
        value = value.get(key) or {}
    if not isinstance(value, dict):
        raise ResourceError(f"{_what(resource)}: {'.'.join(path)} is no mapping")
    return value


def _items(parent: Resource, key: str, what: str) -> typing.List[typing.Dict[str, typing.Any]]:
    value = parent.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ResourceError(f"{what}: {key} is no list of mappings")
    return value


def _texts(parent: Resource, key: str, what: str) -> typing.Tuple[str, ...]:
    value = parent.get(key) or []
    if not isinstance(value, list):
        raise ResourceError(f"{what}: {key} is no list")
    return tuple(str(item) for item in value)


def name_of(resource: Resource) -> str:
    """metadata.name.

    :raises ResourceError: when there is none
    """
    name = _mapping(resource, "metadata").get("name")
    if not isinstance(name, str) or not name:
        raise ResourceError(f"{_what(resource)}: metadata.name is missing")
    return name


def _number(value: typing.Any, what: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ResourceError(f"{what}: '{str(value)[:100]}' is no whole number") from None


def node(resource: Resource) -> ClusterNode:
    """A v1 Node.

    :raises ResourceError: no Node
    """
    name = name_of(resource)
    status = _mapping(resource, "status")
    ready = next((item for item in _items(status, "conditions", f"Node {name}") if item.get("type") == "Ready"), {})
    return ClusterNode(
        name=name,
        labels=_labels(resource),
        ready=ready.get("status") == "True",
        unschedulable=bool(_mapping(resource, "spec").get("unschedulable", False)),
        # extended resources are whole numbers and have a domain; cpu, memory and hugepages have not
        allocatable={
            str(key): _number(value, f"Node {name}: status.allocatable[{key}]") for key, value in _mapping(status, "allocatable").items() if "/" in str(key)
        },
        boot_id=str(_mapping(status, "nodeInfo").get("bootID") or ""),
        not_ready="" if ready.get("status") == "True" else str(ready.get("message") or ready.get("reason") or ""),
    )


def node_state(resource: Resource) -> NodeState:
    """A SriovNetworkNodeState.

    :raises ResourceError: none, or a number is none
    """
    name = name_of(resource)
    what = f"SriovNetworkNodeState {name}"
    status = _mapping(resource, "status")
    annotations = _mapping(resource, "metadata", "annotations")
    return NodeState(
        node=name,
        wanted=tuple(_wanted(item, what) for item in _items(_mapping(resource, "spec"), "interfaces", what)),
        interfaces=tuple(_interface(item, what) for item in _items(status, "interfaces", what)),
        sync_status=str(status.get("syncStatus") or ""),
        last_sync_error=str(status.get("lastSyncError") or ""),
        current_state=str(annotations.get(f"{_STATE}current-state", "")),
        desired_state=str(annotations.get(f"{_STATE}desired-state", "")),
        generation=_number(_mapping(resource, "metadata").get("generation", 0), what),
        wanted_rdma_mode=str(_mapping(resource, "spec", "system").get("rdmaMode") or ""),
        rdma_mode=str(_mapping(status, "system").get("rdmaMode") or ""),
    )


def _wanted(item: Resource, what: str) -> WantedInterface:
    return WantedInterface(
        address=str(item.get("pciAddress", "")).lower(),
        vfs_count=_number(item.get("numVfs", 0), f"{what}: spec numVfs"),
        name=str(item.get("name", "")),
        groups=tuple(_group(group, what) for group in _items(item, "vfGroups", what)),
        mtu=_number(item.get("mtu") or 0, f"{what}: spec mtu"),
        link_type=str(item.get("linkType") or ""),
        eswitch_mode=str(item.get("eSwitchMode") or ""),
        external=bool(item.get("externallyManaged", False)),
    )


def _group(group: Resource, what: str) -> VfGroup:
    first, last = vf_range(str(group.get("vfRange", "")), what)
    return VfGroup(
        policy=str(group.get("policyName", "")),
        resource=str(group.get("resourceName", "")),
        device_type=str(group.get("deviceType") or ""),
        mtu=_number(group.get("mtu") or 0, f"{what}: mtu of a vfGroup"),
        rdma=bool(group.get("isRdma", False)),
        first=first,
        last=last,
    )


def vf_range(text: str, what: str) -> typing.Tuple[int, int]:
    """Indices of virtual functions, as ``0-3``.

    :raises ResourceError: another form
    """
    first, dash, last = text.partition("-")
    if not dash:
        raise ResourceError(f"{what}: '{text}' is no range of virtual functions such as 0-3")
    return _number(first, f"{what}: vfRange"), _number(last, f"{what}: vfRange")


def _interface(item: Resource, what: str) -> StateInterface:
    return StateInterface(
        name=str(item.get("name", "")),
        address=str(item.get("pciAddress", "")).lower(),
        vendor=str(item.get("vendor", "")).lower(),
        device=str(item.get("deviceID", "")).lower(),
        driver=item.get("driver"),
        link_type=item.get("linkType"),
        mtu=item.get("mtu"),
        total_vfs=_number(item.get("totalvfs", 0), f"{what}: totalvfs"),
        vfs_count=_number(item.get("numVfs", 0), f"{what}: numVfs"),
        vfs=tuple(
            StateVf(
                index=_number(vf.get("vfID"), f"{what}: vfID"),
                address=str(vf.get("pciAddress", "")).lower(),
                driver=vf.get("driver"),
                name=vf.get("name"),
                guid=vf.get("guid"),
                mtu=vf.get("mtu"),
            )
            for vf in _items(item, "Vfs", what)
        ),
        eswitch_mode=item.get("eSwitchMode"),
        admin_state=item.get("linkAdminState"),
    )


def policy(resource: Resource) -> Policy:
    """A SriovNetworkNodePolicy.

    :raises ResourceError: none
    """
    name = name_of(resource)
    what = f"SriovNetworkNodePolicy {name}"
    spec, selector = _mapping(resource, "spec"), _mapping(resource, "spec", "nicSelector")
    return Policy(
        name=name,
        resource_name=str(spec.get("resourceName", "")),
        vfs_count=_number(spec.get("numVfs", 0), f"{what}: numVfs"),
        node_selector={str(key): str(value) for key, value in _mapping(resource, "spec", "nodeSelector").items()},
        vendor=str(selector.get("vendor") or "").lower(),
        device=str(selector.get("deviceID") or "").lower(),
        root_devices=tuple(address.lower() for address in _texts(selector, "rootDevices", what)),
        pf_names=_texts(selector, "pfNames", what),
        # where nothing is said, the webhook writes 99 [sriov-network-operator pkg/webhook/mutate.go]
        priority=_number(spec.get("priority", 99), f"{what}: priority"),
        device_type=str(spec.get("deviceType") or ""),
        mtu=_number(spec.get("mtu") or 0, f"{what}: mtu"),
        rdma=bool(spec.get("isRdma", False)),
        link_type=str(spec.get("linkType") or ""),
        eswitch_mode=str(spec.get("eSwitchMode") or ""),
        external=bool(spec.get("externallyManaged", False)),
        net_filter=str(selector.get("netFilter") or ""),
        vdpa_type=str(spec.get("vdpaType") or ""),
        exclude_topology=bool(spec.get("excludeTopology", False)),
    )


def _selector(parent: Resource, key: str, what: str) -> typing.Optional[LabelSelector]:
    """A LabelSelector; None where there is none."""
    if parent.get(key) is None:
        return None
    mapping = _mapping(parent, key)
    return LabelSelector(
        labels={str(name): str(value) for name, value in _mapping(mapping, "matchLabels").items()},
        expressions=tuple(
            (str(item.get("key")), str(item.get("operator")), _texts(item, "values", what)) for item in _items(mapping, "matchExpressions", what)
        ),
    )


def node_pool(resource: Resource) -> NodePool:
    """A SriovNetworkPoolConfig.

    :raises ResourceError: none
    """
    name, spec = name_of(resource), _mapping(resource, "spec")
    limit = spec.get("maxUnavailable")
    return NodePool(
        name=name,
        # without a selector it has all nodes [sriov-network-operator controllers/drain_controller_helper.go findNodePoolConfig]
        selector=_selector(spec, "nodeSelector", f"SriovNetworkPoolConfig {name}") or LabelSelector(),
        max_unavailable=None if limit is None else str(limit),
        rdma_mode=str(spec.get("rdmaMode") or ""),
        offload=bool(_mapping(spec, "ovsHardwareOffloadConfig").get("name")),
    )


def machine_pool(resource: Resource) -> MachinePool:
    """A MachineConfigPool (machineconfiguration.openshift.io/v1). Conditions by their type: their order means nothing.

    :raises ResourceError: none, or a count is no number
    """
    name = name_of(resource)
    what = f"MachineConfigPool {name}"
    spec, status = _mapping(resource, "spec"), _mapping(resource, "status")
    conditions = {str(item.get("type")): item for item in _items(status, "conditions", what)}
    told = [str(item.get("message") or "") for kind, item in sorted(conditions.items()) if kind.endswith("Degraded") and item.get("status") == "True"]
    return MachinePool(
        name=name,
        selector=_selector(spec, "nodeSelector", what),
        labels=_labels(resource),
        config_selector=_selector(spec, "machineConfigSelector", what),
        max_unavailable=None if spec.get("maxUnavailable") is None else str(spec["maxUnavailable"]),
        paused=bool(spec.get("paused", False)),
        # [sriov-network-operator pkg/platforms/openshift/openshift.go OpenshiftBeforeDrainNode]
        paused_by_operator=_mapping(resource, "metadata", "annotations").get(f"{_STATE}state") == "Paused",
        paused_by_us=PAUSED_ANNOTATION in _mapping(resource, "metadata", "annotations"),
        wanted_config=str(_mapping(spec, "configuration").get("name") or ""),
        sources=tuple(str(item.get("name")) for item in _items(_mapping(spec, "configuration"), "source", what)),
        current_config=str(_mapping(status, "configuration").get("name") or ""),
        machines=_number(status.get("machineCount", 0), f"{what}: machineCount"),
        updated=_number(status.get("updatedMachineCount", 0), f"{what}: updatedMachineCount"),
        degraded=_number(status.get("degradedMachineCount", 0), f"{what}: degradedMachineCount"),
        conditions={kind: str(item.get("status")) for kind, item in conditions.items()},
        message="; ".join(dict.fromkeys(filter(None, told))),
    )


def host_config(resource: Resource, live: typing.Optional[Resource] = None) -> HostConfig:
    """A MachineConfig or a KubeletConfig: its files, kernel arguments and settings in words.

    :param live: what the cluster has in its place
    :raises ResourceError: none
    """
    name, spec, seen = name_of(resource), _mapping(resource, "spec"), live or {}
    kind = str(resource.get("kind"))
    what = f"{kind} {name}"
    files = [f"file {item.get('path')}" for item in _items(_mapping(spec, "config", "storage"), "files", what)]
    arguments = _texts(spec, "kernelArguments", what)
    settings = [f"{_SETTINGS.get(key, key)} {value}" for key, value in _mapping(spec, "kubeletConfig").items()]
    words = [*files, *([f"kernel arguments {' '.join(arguments)}"] if arguments else []), *settings]
    had = _mapping(seen, "spec")
    return HostConfig(
        kind=kind,
        name=name,
        what=", ".join(words),
        labels=_labels(resource),
        selector=_selector(spec, "machineConfigPoolSelector", what),
        # the operator names the MachineConfigs that it made, so that they go with it [pkg/controller/kubelet-config addFinalizerToKubeletConfig]
        generated=_texts(_mapping(seen, "metadata"), "finalizers", what),
        refusal=_refusal(seen, what),
        there=live is not None and all(had.get(key) == value for key, value in spec.items()),
    )


def _refusal(resource: Resource, what: str) -> typing.Optional[str]:
    """What the operator says of a KubeletConfig as it is now: its last condition, which is of type Success or Failure (that one with status False).

    [machine-config-operator pkg/controller/kubelet-config syncStatusOnly]
    """
    status = _mapping(resource, "status")
    conditions = _items(status, "conditions", what)
    if not conditions or status.get("observedGeneration") != _mapping(resource, "metadata").get("generation"):
        return None
    last = conditions[-1]
    return "" if last.get("type") == "Success" else str(last.get("message") or "it gives no reason")


def _labels(resource: Resource) -> typing.Dict[str, str]:
    return {str(key): str(value) for key, value in _mapping(resource, "metadata", "labels").items()}


def operator_settings(resource: Resource) -> OperatorSettings:
    """A SriovOperatorConfig.

    :raises ResourceError: none
    """
    name, spec = name_of(resource), _mapping(resource, "spec")
    return OperatorSettings(
        disable_drain=bool(spec.get("disableDrain", False)),
        mode=str(spec.get("configurationMode") or "daemon"),
        disabled_plugins=_texts(spec, "disablePlugins", f"SriovOperatorConfig {name}"),
    )


def budget(resource: Resource) -> Budget:
    """A policy/v1 PodDisruptionBudget. One whose state is not known yet allows nothing, as the API server takes it.

    :raises ResourceError: none
    """
    name = name_of(resource)
    what = f"PodDisruptionBudget {name}"
    return Budget(
        name=name,
        namespace=str(_mapping(resource, "metadata").get("namespace", "")),
        allowed=_number(_mapping(resource, "status").get("disruptionsAllowed", 0), f"{what}: disruptionsAllowed"),
        selector=_selector(_mapping(resource, "spec"), "selector", what),
    )


def pod(resource: Resource) -> ClusterPod:
    """A v1 Pod, as far as a drain cares.

    :raises ResourceError: none
    """
    name, metadata, spec = name_of(resource), _mapping(resource, "metadata"), _mapping(resource, "spec")
    what = f"Pod {name}"
    owners = [owner for owner in _items(metadata, "ownerReferences", what) if owner.get("controller")]
    containers = _items(spec, "containers", what)
    return ClusterPod(
        name=name,
        namespace=str(metadata.get("namespace", "")),
        node=str(spec.get("nodeName") or ""),
        labels={str(key): str(value) for key, value in _mapping(metadata, "labels").items()},
        requests=tuple(sorted({str(key) for container in containers for key in _mapping(container, "resources", "requests")})),
        owner=str(owners[0].get("kind", "")) if owners else "",
        mirror="kubernetes.io/config.mirror" in _mapping(metadata, "annotations"),
        ended=_mapping(resource, "status").get("phase") in ("Succeeded", "Failed"),
    )


def supported_nics(resource: Resource) -> typing.Tuple[SupportedNic, ...]:
    """The operator's ConfigMap supported-nic-ids, whose values are ``vendor device virtual-device``. [sriov-network-operator api/v1/helper.go]

    :raises ResourceError: a value of another form
    """
    found = []
    for name, value in sorted(_mapping(resource, "data").items()):
        ids = str(value).lower().split()
        if len(ids) != 3:
            raise ResourceError(f"{_what(resource)}: data[{name}] is '{value}'; expected three PCI ids: vendor, physical and virtual function")
        found.append(SupportedNic(*ids))
    return tuple(found)


def workload(resource: Resource) -> Workload:
    """A Deployment or a DaemonSet; ready counts only pods of the current generation.

    :raises ResourceError: neither
    """
    name = name_of(resource)
    kind = resource.get("kind")
    status = _mapping(resource, "status")
    containers = _items(_mapping(resource, "spec", "template", "spec"), "containers", _what(resource))
    seen = _number(status.get("observedGeneration", 0), f"{_what(resource)}: observedGeneration")
    current = seen >= _number(_mapping(resource, "metadata").get("generation", 0), f"{_what(resource)}: generation")
    if kind == "DaemonSet":
        wanted, counts = status.get("desiredNumberScheduled", 0), (status.get("numberReady", 0), status.get("updatedNumberScheduled", 0))
    else:
        wanted, counts = _mapping(resource, "spec").get("replicas", 1), (status.get("availableReplicas", 0), status.get("updatedReplicas", 0))
    ready = min(_number(count, f"{_what(resource)}: ready pods") for count in counts)
    return Workload(
        name=name,
        namespace=str(_mapping(resource, "metadata").get("namespace", "")),
        wanted=_number(wanted, f"{_what(resource)}: wanted pods"),
        ready=ready if current else 0,
        images=tuple(str(container.get("image", "")) for container in containers),
    )


def installation(resource: Resource) -> OperatorInstallation:
    """The operator's Deployment.

    :raises ResourceError: none
    """
    labels = _mapping(resource, "metadata", "labels")
    containers = _items(_mapping(resource, "spec", "template", "spec"), "containers", _what(resource))
    environment = {str(entry.get("name")): str(entry.get("value", "")) for container in containers for entry in _items(container, "env", _what(resource))}
    work = workload(resource)
    image = next(iter(work.images), "")
    tag = image.rsplit(":", 1)[1] if ":" in image.rsplit("/", 1)[-1] and "@" not in image else ""
    return OperatorInstallation(
        deployment=work,
        version=str(labels.get("app.kubernetes.io/version") or environment.get("RELEASE_VERSION") or tag),
        origin=_origin(labels, work.namespace),
        resource_prefix=environment.get("RESOURCE_PREFIX", ""),
    )


def _origin(labels: typing.Mapping[str, typing.Any], namespace: str) -> str:
    if "olm.owner" in labels:
        return "olm"
    if "network-operator" in str(labels.get("helm.sh/chart", "")) and not str(labels["helm.sh/chart"]).startswith("sriov-network-operator"):
        return "nvidia-network-operator"
    if namespace == "nvidia-network-operator":
        return "nvidia-network-operator"
    return "helm" if labels.get("app.kubernetes.io/managed-by") == "Helm" else "unknown"


def network_status(pod: Resource) -> typing.List[typing.Dict[str, typing.Any]]:
    """The networks of a pod, as multus writes them.

    Format: annotation k8s.v1.cni.cncf.io/network-status, a JSON list (Network Plumbing Working Group's specification 1.3).

    :raises ResourceError: no annotation, or broken JSON
    """
    what = f"pod {name_of(pod)}"
    text = _mapping(pod, "metadata", "annotations").get(STATUS_ANNOTATION)
    if not text:
        raise ResourceError(f"{what} has no annotation {STATUS_ANNOTATION}: multus did not attach it")
    try:
        entries = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is no JSON: {error}") from None
    if not isinstance(entries, list):
        raise ResourceError(f"{what}: the annotation {STATUS_ANNOTATION} is no list")
    return [entry for entry in entries if isinstance(entry, dict)]


def network_interface(pod: Resource, network: str) -> typing.Tuple[str, str, typing.Optional[str]]:
    """Interface, IP address and PCI address (None where multus does not say) of a pod on ``network`` (namespace/name).

    :raises ResourceError: no annotation, broken JSON, the network is not in it, or it has no address
    """
    what = f"pod {name_of(pod)}"
    entries = network_status(pod)
    entry = next((entry for entry in entries if entry.get("name") == network), None)
    if entry is None:
        seen = ", ".join(str(entry.get("name")) for entry in entries)
        raise ResourceError(f"{what} is not attached to {network}; it is attached to: {seen or 'nothing'}")
    addresses = entry.get("ips")
    if not isinstance(addresses, list) or not addresses or not entry.get("interface"):
        raise ResourceError(f"{what} has no IP address or no interface on {network}")
    address = _mapping(entry, "device-info", "pci").get("pci-address")
    return str(entry["interface"]), str(addresses[0]), str(address).lower() if address else None


def own_interface(pod: Resource) -> typing.Tuple[str, str, None]:
    """The same of a pod's own network: the entry that multus calls the default, else the name that every runtime gives it.

    :raises ResourceError: the pod has no address yet
    """
    address = _mapping(pod, "status").get("podIP")
    if not address:
        raise ResourceError(f"pod {name_of(pod)} has no status.podIP")
    try:
        entries = json.loads(_mapping(pod, "metadata", "annotations").get(STATUS_ANNOTATION) or "[]")
    except (TypeError, ValueError, RecursionError):
        # where multus says nothing that can be read, the name is the runtime's own
        entries = []
    named = [entry.get("interface") for entry in entries if isinstance(entry, dict) and entry.get("default")] if isinstance(entries, list) else []
    return str(next(filter(None, named), "eth0")), str(address), None


def training_pod(pod: Resource) -> TrainingPod:
    """A pod of a job, with what it got on its secondary networks.

    Its host name is what NCCL calls it by: the field hostname, which Job, JobSet and the training operators set, else the pod's name, up to the
    first dot; on the host's network the node's.

    :raises ResourceError: it has no name
    """
    spec = _mapping(pod, "spec")
    node = str(spec.get("nodeName") or "")
    host = node if spec.get("hostNetwork") is True else str(spec.get("hostname") or name_of(pod))[:_HOST_NAME]
    try:
        functions = tuple(_function(entry) for entry in network_status(pod) if entry.get("default") is not True)
    except ResourceError as problem:
        return TrainingPod(name_of(pod), host.partition(".")[0], node, None, str(problem))
    return TrainingPod(name_of(pod), host.partition(".")[0], node, functions)


def _function(entry: Resource) -> PodFunction:
    pci = _mapping(entry, "device-info", "pci")
    address, device = pci.get("pci-address"), pci.get("rdma-device")
    return PodFunction(
        str(entry.get("name") or ""), str(entry.get("interface") or ""), str(address).lower() if address else None, str(device) if device else None
    )


def status_message(channel: str) -> str:
    """The words of a v1 Status, which is what the error channel of exec holds; the text itself where it has none."""
    try:
        status = json.loads(channel)
    except (ValueError, RecursionError):
        status = None
    return str((status.get("message") if isinstance(status, dict) else None) or channel).strip()
