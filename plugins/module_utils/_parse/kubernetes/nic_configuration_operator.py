# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of NVIDIA's NIC configuration operator, as the API server sends them, to facts.

NicDevice of configuration.net.nvidia.com/v1alpha1: ``status`` says what a card is, ``spec`` which templates decide on it, conditions how far they are
[nic-configuration-operator api/v1alpha1/nicdevice_types.go, pkg/consts/consts.go].
"""

from __future__ import annotations

from ..._model.firmware import NicDevice
from .resource import Resource, ResourceError, items_of, mapping_at, name_of

#: reasons of conditions for which nothing waits
_THROUGH = ("UpdateSuccessful", "DeviceConfigSpecEmpty", "DeviceFirmwareSpecEmpty", "DeviceFirmwareConfigMatch")
_CONDITIONS = ("ConfigUpdateInProgress", "FirmwareUpdateInProgress", "FirmwareConfigMatch")


def nic_device(resource: Resource) -> NicDevice:
    """A card of a node. The operator writes PSIDs in lower case.

    :raises ResourceError: no such object, or one of which the operator has not said yet where it is
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    ports = tuple(str(port.get("pci", "")).lower() for port in items_of(status, "ports", name))
    if not status.get("node") or not ports:
        raise ResourceError(f"NicDevice {name}: its status names no node or no port")
    waiting = [item for item in items_of(status, "conditions", name) if item.get("type") in _CONDITIONS and item.get("reason") not in _THROUGH]
    return NicDevice(
        name=name,
        node=str(status["node"]),
        ports=ports,
        psid=str(status.get("psid") or "").upper(),
        firmware=str(status.get("firmwareVersion") or ""),
        dpu=status.get("dpu") is True,
        configured=bool(mapping_at(spec, "configuration").get("template")),
        updated=bool(spec.get("firmware")),
        waits=str(waiting[0].get("reason") or "no reason") if waiting else "",
        message=str(waiting[0].get("message") or "")[:300] if waiting else "",
    )
