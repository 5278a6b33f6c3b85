# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the kinds of the SR-IOV network operator, and the objects of its installation, into facts."""

from __future__ import annotations

import typing

from ..._model.base.marks import INTENT_LABEL, is_ours
from ..._model.base.once import find_second, list_keys
from ..._model.boundary.devices import HARDWARE_ADDRESS, INTERFACE, PCI_ADDRESS, PCI_ID
from ..._model.boundary.form import describe_rejected
from ..._model.boundary.kubernetes import LABEL_VALUE, OBJECT_NAME, SUBDOMAIN
from ..._model.boundary.words import VERSION, WORD
from ..._model.kubernetes.disruption import LabelSelector, NodePool, OperatorSettings
from ..._model.kubernetes.owner_marks import find_owner_mark
from ..._model.operators.olm import RetainedObject
from ..._model.operators.sriov_operator import (
    NodeState,
    OperatorInstallation,
    Policy,
    StateInterface,
    StateVf,
    SupportedNic,
    VfGroup,
    WantedInterface,
)
from ..kubernetes.core import parse_workload
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    excerpt_of,
    items_of,
    labels_of,
    mapping_at,
    name_of,
    normalize_known,
    number_of,
    selector_of,
    text_at,
    text_of,
    texts_of,
    title_of,
)
from ..kubernetes.tenancy import UNPROVEN, release_of

_Item = typing.TypeVar("_Item")
#: with what the operator's annotations of nodes, node states and pools begin
STATE_ANNOTATIONS = "sriovnetwork.openshift.io/"


def node_state(resource: Resource) -> NodeState:
    """Parse a SriovNetworkNodeState. The config daemon of the node writes its status. If a value is invalid, the result
    is a state ``Failed`` with the reason as its error, so that the other nodes can still be processed.

    :raises ResourceError: the object has no valid name
    """
    name = text_of(SUBDOMAIN, name_of(resource), "SriovNetworkNodeState")
    try:
        return _parse_node_state(resource, name)
    except ResourceError as error:
        return NodeState(name, (), (), "Failed", str(error), "", "", 0)


def _parse_node_state(resource: Resource, name: str) -> NodeState:
    """Return the state of a node: what the operator wants on it, and what its config daemon reports.

    :param name: name of the node
    :raises ResourceError: a value has another form, or an interface occurs twice
    """
    what = f"SriovNetworkNodeState {name}"
    status = mapping_at(resource, "status")
    annotations = mapping_at(resource, "metadata", "annotations")
    return NodeState(
        node=name,
        wanted=_each_once(
            [
                _parse_wanted_interface(item, what)
                for item in items_of(mapping_at(resource, "spec"), "interfaces", what)
            ],
            f"{what}: spec interfaces",
        ),
        interfaces=_each_once(
            [_parse_state_interface(item, what) for item in items_of(status, "interfaces", what)],
            f"{what}: status interfaces",
        ),
        sync_status=text_at(WORD, status, "syncStatus", what),
        last_sync_error=excerpt_of(status.get("lastSyncError")),
        current_state=text_at(WORD, annotations, f"{STATE_ANNOTATIONS}current-state", what),
        desired_state=text_at(WORD, annotations, f"{STATE_ANNOTATIONS}desired-state", what),
        generation=number_of(mapping_at(resource, "metadata").get("generation", 0), what),
        wanted_rdma_mode=text_at(WORD, mapping_at(resource, "spec", "system"), "rdmaMode", what),
        rdma_mode=text_at(WORD, mapping_at(status, "system"), "rdmaMode", what),
        external_drainer=annotations.get(f"{STATE_ANNOTATIONS}use-external-drainer") == "true",
    )


def _each_once(items: typing.Sequence[_Item], what: str) -> tuple[_Item, ...]:
    """Return the items of a list as a tuple, after checking that their keys differ: the PCI addresses, or the numbers
    of virtual functions.

    :param what: name of the list in messages
    :raises ResourceError: two items have the same key
    """
    number = find_second(list_keys(type(items[0])), items) if items else None
    if number is not None:
        raise ResourceError(f"{what}: entry {number} has the PCI address of an earlier entry")
    return tuple(items)


def _parse_wanted_interface(item: Resource, what: str) -> WantedInterface:
    """Return the desired state of one physical function.

    :param what: name of the object, for messages
    :raises ResourceError: a value has another form
    """
    return WantedInterface(
        address=text_at(PCI_ADDRESS, item, "pciAddress", what),
        vfs_count=number_of(item.get("numVfs", 0), f"{what}: spec numVfs"),
        name=text_at(INTERFACE, item, "name", what),
        groups=tuple(_parse_vf_group(group, what) for group in items_of(item, "vfGroups", what)),
        mtu=number_of(item.get("mtu") or 0, f"{what}: spec mtu"),
        link_type=text_at(WORD, item, "linkType", what),
        eswitch_mode=text_at(WORD, item, "eSwitchMode", what),
        external=bool(item.get("externallyManaged", False)),
    )


def _parse_vf_group(group: Resource, what: str) -> VfGroup:
    """Return the virtual functions of a physical function that one policy configures.

    :param what: name of the object, for messages
    :raises ResourceError: a value has another form
    """
    first, last = vf_range(str(group.get("vfRange", "")), what)
    return VfGroup(
        policy=text_at(OBJECT_NAME, group, "policyName", what),
        resource=text_at(WORD, group, "resourceName", what),
        device_type=text_at(WORD, group, "deviceType", what),
        mtu=number_of(group.get("mtu") or 0, f"{what}: mtu of a vfGroup"),
        rdma=bool(group.get("isRdma", False)),
        first=first,
        last=last,
    )


def vf_range(text: str, what: str) -> tuple[int, int]:
    """Return the first and the last index of a range of virtual functions: ``(0, 3)`` for ``0-3``.

    :param what: name of the object in messages
    :raises ResourceError: the text has an unexpected form
    """
    first, dash, last = text.partition("-")
    if not dash:
        raise ResourceError(f"{what}: '{text}' is not a range of virtual functions such as 0-3")
    return number_of(first, f"{what}: vfRange"), number_of(last, f"{what}: vfRange")


def _parse_state_interface(item: Resource, what: str) -> StateInterface:
    """Return one physical function as the config daemon reports it. A value that it does not report is None.

    :param what: name of the object, for messages
    :raises ResourceError: a value has another form, or a virtual function occurs twice
    """
    return StateInterface(
        name=text_at(INTERFACE, item, "name", what),
        address=text_at(PCI_ADDRESS, item, "pciAddress", what),
        vendor=text_at(PCI_ID, item, "vendor", what),
        device=text_at(PCI_ID, item, "deviceID", what),
        driver=text_at(WORD, item, "driver", what) or None,
        link_type=text_at(WORD, item, "linkType", what) or None,
        mtu=_number_at(item, "mtu", what),
        total_vfs=number_of(item.get("totalvfs", 0), f"{what}: totalvfs"),
        vfs_count=number_of(item.get("numVfs", 0), f"{what}: numVfs"),
        vfs=_each_once([_parse_state_vf(vf, what) for vf in items_of(item, "Vfs", what)], f"{what}: Vfs"),
        eswitch_mode=text_at(WORD, item, "eSwitchMode", what) or None,
        admin_state=text_at(WORD, item, "linkAdminState", what) or None,
    )


def _parse_state_vf(vf: Resource, what: str) -> StateVf:
    """Return one virtual function as the config daemon reports it. A value that it does not report is None.

    :param what: name of the object, for messages
    :raises ResourceError: a value has another form
    """
    return StateVf(
        index=number_of(vf.get("vfID"), f"{what}: vfID"),
        address=text_at(PCI_ADDRESS, vf, "pciAddress", what),
        driver=text_at(WORD, vf, "driver", what) or None,
        name=text_at(INTERFACE, vf, "name", what) or None,
        guid=text_at(HARDWARE_ADDRESS, vf, "guid", what) or None,
        mtu=_number_at(vf, "mtu", what),
    )


def _number_at(parent: Resource, key: str, what: str) -> typing.Optional[int]:
    return None if parent.get(key) is None else number_of(parent[key], f"{what}: {key}")


def parse_policy(resource: Resource) -> Policy:
    """Return the selectors and the VF settings of a SriovNetworkNodePolicy. A missing selector is empty, and a missing
    setting has the default of the operator.

    :raises ResourceError: the object is not a valid SriovNetworkNodePolicy
    """
    name = name_of(resource)
    what = f"SriovNetworkNodePolicy {name}"
    spec, selector = mapping_at(resource, "spec"), mapping_at(resource, "spec", "nicSelector")
    labels = labels_of(resource)
    return Policy(
        name=name,
        resource_name=str(spec.get("resourceName", "")),
        vfs_count=number_of(spec.get("numVfs", 0), f"{what}: numVfs"),
        node_selector={str(key): str(value) for key, value in mapping_at(resource, "spec", "nodeSelector").items()},
        vendor=str(selector.get("vendor") or "").lower(),
        device=str(selector.get("deviceID") or "").lower(),
        root_devices=tuple(address.lower() for address in texts_of(selector, "rootDevices", what)),
        pf_names=texts_of(selector, "pfNames", what),
        # where nothing is said, the webhook writes 99 [sriov-network-operator pkg/webhook/mutate.go]
        priority=number_of(spec.get("priority", 99), f"{what}: priority"),
        device_type=str(spec.get("deviceType") or ""),
        mtu=number_of(spec.get("mtu") or 0, f"{what}: mtu"),
        rdma=bool(spec.get("isRdma", False)),
        link_type=str(spec.get("linkType") or ""),
        eswitch_mode=str(spec.get("eSwitchMode") or ""),
        external=bool(spec.get("externallyManaged", False)),
        net_filter=str(selector.get("netFilter") or ""),
        vdpa_type=str(spec.get("vdpaType") or ""),
        exclude_topology=bool(spec.get("excludeTopology", False)),
        intent=normalize_known(LABEL_VALUE, labels.get(INTENT_LABEL)) if is_ours(labels) else "",
    )


def node_pool(resource: Resource) -> NodePool:
    """Return the node selector, the drain limit and the modes of a SriovNetworkPoolConfig. Without a selector it
    selects all nodes, and the limit is None if it is not set.

    :raises ResourceError: the object is not a valid SriovNetworkPoolConfig
    """
    name, spec = name_of(resource), mapping_at(resource, "spec")
    limit = spec.get("maxUnavailable")
    return NodePool(
        name=name,
        # without a selector it has all nodes [sriov-network-operator controllers/drain_controller_helper.go
        # findNodePoolConfig]
        selector=selector_of(spec, "nodeSelector", f"SriovNetworkPoolConfig {name}") or LabelSelector(),
        max_unavailable=None if limit is None else str(limit),
        rdma_mode=text_at(WORD, spec, "rdmaMode", f"SriovNetworkPoolConfig {name}"),
        offload=bool(mapping_at(spec, "ovsHardwareOffloadConfig").get("name")),
    )


def operator_settings(resource: Resource) -> OperatorSettings:
    """Return from a SriovOperatorConfig whether drains are disabled, the configuration mode (by default ``daemon``),
    and the disabled plugins.

    :raises ResourceError: the object is not a valid SriovOperatorConfig
    """
    name, spec = name_of(resource), mapping_at(resource, "spec")
    return OperatorSettings(
        disable_drain=bool(spec.get("disableDrain", False)),
        mode=str(spec.get("configurationMode") or "daemon"),
        disabled_plugins=texts_of(spec, "disablePlugins", f"SriovOperatorConfig {name}"),
    )


def supported_nics(resource: Resource) -> tuple[SupportedNic, ...]:
    """Return the PCI IDs of the supported NICs from the operator's ConfigMap supported-nic-ids, sorted by key. Each
    value is ``vendor device virtual-device``. [sriov-network-operator api/v1/helper.go]

    :raises ResourceError: a value has an unexpected form
    """
    found = []
    for name, value in sorted(mapping_at(resource, "data").items()):
        ids = str(value).lower().split() if len(str(value)) < 100 else []
        if len(ids) != 3 or not all(map(PCI_ID.fits, ids)):
            raise ResourceError(
                f"{title_of(resource)}: data[{describe_rejected(name)}] is '{describe_rejected(value)}'; expected"
                f" three PCI ids: vendor,"
                " physical and virtual function"
            )
        found.append(SupportedNic(*ids))
    return tuple(found)


def parse_installation(resource: Resource) -> OperatorInstallation:
    """Return the Deployment, the version, the installer and the prefix of resource names of the SR-IOV operator, from
    its Deployment. An unknown version or prefix is empty.

    :raises ResourceError: the object is not a valid Deployment
    """
    labels = mapping_at(resource, "metadata", "labels")
    containers = items_of(mapping_at(resource, "spec", "template", "spec"), "containers", title_of(resource))
    environment = {
        str(entry.get("name")): str(entry.get("value", ""))
        for container in containers
        for entry in items_of(container, "env", title_of(resource))
    }
    work = parse_workload(resource)
    image = next(iter(work.images), "")
    tag = image.rsplit(":", 1)[1] if ":" in image.rsplit("/", 1)[-1] and "@" not in image else ""
    return OperatorInstallation(
        deployment=work,
        version=normalize_known(
            VERSION, labels.get("app.kubernetes.io/version") or environment.get("RELEASE_VERSION") or tag
        ),
        origin=origin_of(labels, work.namespace),
        resource_prefix=normalize_known(SUBDOMAIN, environment.get("RESOURCE_PREFIX")),
    )


def kept_release(
    namespace: str, release: str, ours: bool, operators: typing.Iterable[Resource], proven: bool
) -> typing.Optional[RetainedObject]:
    """Return the Helm release of the operator, with the reason why a removal must keep it. Return None if it is proven
    that linerate.rdma installed the release.

    Any user may have installed a release of this name, and Helm stores no mark of linerate.rdma. The proof is therefore
    that linerate.rdma created the operator's namespace, and that the release installed the operator in this namespace.

    :param namespace: namespace of the operator
    :param release: name of the Helm release
    :param ours: whether the namespace has the label of linerate.rdma, which the creator of a namespace can set
    :param operators: Deployments in the namespace that run the operator
    :param proven: whether a ClusterRoleBinding, which no tenant can create, belongs to the release
    """
    operators = tuple(operators)
    for owner in filter(None, map(find_owner_mark, operators)):
        return RetainedObject(
            f"Helm release {namespace}/{release}",
            f"the operator belongs to {owner}, which would install it again",
            "If no other workload needs it, remove it from the repository of that tool",
        )
    made = any(release_of(item) == (release, namespace) for item in operators)
    if ours and made and proven:
        return None
    missing = UNPROVEN if made else "it installed no SR-IOV network operator that still exists"
    why = missing if ours else f"namespace {namespace} existed before this collection, or belongs to another owner"
    remedy = f"If it is yours and no other workload needs it: helm uninstall --wait -n {namespace} {release}"
    return RetainedObject(
        f"Helm release {namespace}/{release}",
        f"whether a run of this collection installed the release could not be verified: {why}",
        remedy,
    )


def runs_operator(containers: typing.Iterable[Resource]) -> bool:
    """Return whether the containers of a Deployment run the SR-IOV network operator. The commands and the environment
    decide, for each kind of installation. Names do not decide, because Helm's fullnameOverride changes them.

    :raises ResourceError: a container has an unexpected form
    """
    return any(
        "sriov-network-operator" in texts_of(container, "command", "a container")
        or any(
            entry.get("name") == "SRIOV_NETWORK_CONFIG_DAEMON_IMAGE"
            for entry in items_of(container, "env", "a container")
        )
        for container in containers
    )


def origin_of(labels: typing.Mapping[str, typing.Any], namespace: str) -> str:
    """Return the installer of a Deployment: ``olm``, ``nvidia-network-operator``, ``helm`` or ``unknown``.

    :param labels: labels of the Deployment
    :param namespace: namespace of the Deployment
    """
    if "olm.owner" in labels:
        return "olm"
    if "network-operator" in str(labels.get("helm.sh/chart", "")) and not str(labels["helm.sh/chart"]).startswith(
        "sriov-network-operator"
    ):
        return "nvidia-network-operator"
    if namespace == "nvidia-network-operator":
        return "nvidia-network-operator"
    return "helm" if labels.get("app.kubernetes.io/managed-by") == "Helm" else "unknown"
