# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of NVIDIA's NIC configuration operator into facts.

NicDevice of configuration.net.nvidia.com/v1alpha1: ``status`` describes the card, ``spec`` has the templates that apply
to it, and the conditions have the progress [nic-configuration-operator api/v1alpha1/nicdevice_types.go,
pkg/consts/consts.go].
"""

from __future__ import annotations

import typing

from ..._model.boundary.devices import PCI_ADDRESS
from ..._model.boundary.kubernetes import LABEL, SUBDOMAIN
from ..._model.boundary.words import VERSION, WORD
from ..._model.node.firmware import NicDevice, NicState, NicTemplate
from ..kubernetes.foreign import is_copied
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    excerpt_of,
    items_of,
    mapping_at,
    name_of,
    normalize_known,
    read_namespace,
    text_at,
    text_of,
)

#: reasons of conditions for which nothing waits
_THROUGH = ("UpdateSuccessful", "DeviceConfigSpecEmpty", "DeviceFirmwareSpecEmpty", "DeviceFirmwareConfigMatch")
#: conditions for which the operator reboots the node
_TURNS = ("ConfigUpdateInProgress", "FirmwareUpdateInProgress")
_CONDITIONS = ("ConfigUpdateInProgress", "FirmwareUpdateInProgress", "FirmwareConfigMatch")


def nic_device(resource: Resource) -> NicDevice:
    """Parse a NicDevice, which represents a NIC of a node. PSIDs are returned in upper case, although the operator
    writes them in lower case.

    :raises ResourceError: the object is not a valid NicDevice, or its status has no node or no port yet
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    what = f"NicDevice {name}"
    ports = tuple(text_of(PCI_ADDRESS, port.get("pci"), f"{what}: port") for port in items_of(status, "ports", name))
    if not status.get("node") or not ports:
        raise ResourceError(f"NicDevice {name}: its status has no node or no port")
    waiting = [
        item
        for item in items_of(status, "conditions", name)
        if item.get("type") in _CONDITIONS and item.get("reason") not in _THROUGH
    ]
    return NicDevice(
        name=name,
        node=text_at(SUBDOMAIN, status, "node", what),
        ports=ports,
        psid=text_at(WORD, status, "psid", what).upper(),
        firmware=text_at(VERSION, status, "firmwareVersion", what),
        dpu=status.get("dpu") is True,
        configured=bool(mapping_at(spec, "configuration").get("template")),
        updated=bool(spec.get("firmware")),
        waits=(text_at(WORD, waiting[0], "reason", what) or "no reason") if waiting else "",
        message=str(waiting[0].get("message") or "")[:300] if waiting else "",
        namespace=text_at(LABEL, mapping_at(resource, "metadata"), "namespace", what),
        type=text_at(WORD, status, "type", what).lower(),
        serial=text_at(WORD, status, "serialNumber", what),
    )


def parse_turn(resource: Resource) -> tuple[str, str]:
    """Return the node of a NicDevice, and the reason why the operator reboots that node or will reboot it next, as a
    text with the condition. The text is empty if the operator will not reboot the node. The operator sets a condition
    to False when a change has ended or failed. [nic-configuration-operator internal/controller/nicdevice_controller.go]

    A template that the operator has not processed yet is a reason, too. An update of the configuration that waits for
    an update of the firmware is none, because the update of the firmware has its own condition and may have failed.

    :raises ResourceError: the object is not a valid NicDevice
    """
    name, status = name_of(resource), mapping_at(resource, "status")
    node = text_at(SUBDOMAIN, status, "node", f"NicDevice {name}")
    conditions = {str(item.get("type")): item for item in items_of(status, "conditions", name)}
    for kind in _TURNS:
        reason = normalize_known(WORD, conditions.get(kind, {}).get("reason"))
        if conditions.get(kind, {}).get("status") == "True" and reason != "PendingFirmwareUpdate":
            return node, f"NicDevice {name}: {kind} {reason or 'without a reason'}"
    config = conditions.get(_TURNS[0], {})
    seen, now = config.get("observedGeneration"), mapping_at(resource, "metadata").get("generation")
    wanted = bool(mapping_at(resource, "spec", "configuration").get("template"))
    if wanted and None not in (seen, now) and seen != now and config.get("reason") in _THROUGH:
        return node, f"NicDevice {name}: the operator has not processed its template yet"
    return node, ""


def is_reported(resource: Resource) -> bool:
    """Return whether a NicDevice has a status. The status is a subresource that only the daemon of the operator writes.
    A user that may create NicDevices in a namespace cannot set it.

    :raises ResourceError: the object is not a valid NicDevice
    """
    return bool(mapping_at(resource, "status"))


def node_of(resource: Resource) -> str:
    """Return the node of a NicDevice from its owner instead of its status, which may be invalid. The daemon of the
    operator makes the Node the owner of the NicDevice [nic-configuration-operator
    internal/controller/devicediscovery_controller.go]. Return an empty string if no Node owns it.

    :raises ResourceError: the object is not a valid NicDevice
    """
    owners = items_of(mapping_at(resource, "metadata"), "ownerReferences", name_of(resource))
    return next((normalize_known(SUBDOMAIN, owner.get("name")) for owner in owners if owner.get("kind") == "Node"), "")


def nic_state(resource: Resource) -> NicState:
    """Parse how far the operator has applied the desired settings of a NicDevice. A missing value is empty. The field
    ``seen`` is true if the operator's condition belongs to the present generation of the object.

    :raises ResourceError: the object is not a valid NicDevice
    """
    name, configuration = name_of(resource), mapping_at(resource, "spec", "configuration")
    conditions = {str(item.get("type")): item for item in items_of(mapping_at(resource, "status"), "conditions", name)}
    config, firmware = conditions.get("ConfigUpdateInProgress", {}), conditions.get("FirmwareUpdateInProgress", {})
    template = configuration.get("template")
    return NicState(
        name=name,
        template=dict(template) if isinstance(template, typing.Mapping) else {},
        seen=config.get("observedGeneration") is not None
        and config.get("observedGeneration") == mapping_at(resource, "metadata").get("generation"),
        reason=excerpt_of(config.get("reason")),
        message=str(config.get("message") or "")[:300],
        firmware=excerpt_of(firmware.get("reason")),
    )


def nic_template(resource: Resource, label: str, manager: str) -> NicTemplate:
    """Parse a NicConfigurationTemplate, and determine whether linerate.rdma created it. A user's copy of such a
    template has its label, but was not created by linerate.rdma.

    :param label: name of the label that marks the creator
    :param manager: value of that label on objects that linerate.rdma created
    :raises ResourceError: the object is not a valid NicConfigurationTemplate
    """
    name = name_of(resource)
    cards = mapping_at(resource, "status").get("nicDevices")
    if cards is not None and not isinstance(cards, list):
        raise ResourceError(f"NicConfigurationTemplate {name}: status.nicDevices is not a list")
    selector = mapping_at(resource, "spec", "nicSelector")
    lists = {key: selector.get(key) for key in ("serialNumbers", "pciAddresses")}
    for key, found in lists.items():
        if found is not None and not isinstance(found, list):
            raise ResourceError(f"NicConfigurationTemplate {name}: spec.nicSelector.{key} is not a list")
    return NicTemplate(
        name,
        mapping_at(resource, "metadata", "labels").get(label) == manager and not is_copied(resource),
        tuple(map(str, cards or ())),
        tuple(map(str, lists["serialNumbers"] or ())),
        mapping_at(resource, "spec", "template"),
        read_namespace(resource),
        str(selector.get("nicType") or "").lower(),
        tuple(str(item).lower() for item in lists["pciAddresses"] or ()),
        {str(key): str(value) for key, value in mapping_at(resource, "spec", "nodeSelector").items()},
        mapping_at(resource, "spec").get("resetToDefault") is True,
    )
