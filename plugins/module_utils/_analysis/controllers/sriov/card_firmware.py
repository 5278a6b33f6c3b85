# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the reasons why the SR-IOV network operator must not write its number of virtual functions into the firmware of
a card (NUM_OF_VFS): NVIDIA's NIC configuration operator writes another number, or another port of the card needs more.
Pure.

The plugin mellanox of the config daemon writes the number for the whole card, for a policy on any of its ports.
[sriov-network-operator pkg/vendors/mellanox/mellanox.go HandleTotalVfs, pkg/plugins/mellanox/mellanox_plugin.go
OnNodeStateChange; nic-configuration-operator pkg/configuration/configvalidation.go]
"""

from __future__ import annotations

import dataclasses
import json
import typing

from ...._model.base.phrases import count_of
from ...._model.base.text import join_first, parse_number
from ...._model.kubernetes.disruption import OperatorSettings
from ...._model.kubernetes.objects import ClusterNode
from ...._model.node.firmware import NicDevice, NicTemplate
from ...._model.operators.sriov_operator import StateInterface, WantedInterface
from .changes import MELLANOX, count_firmware_functions

#: plugin of the config daemon that writes the firmware of Mellanox NICs
PLUGIN = "mellanox"
_SETTING = "NUM_OF_VFS"
#: NICs that a message names
_NAMED = 8


@dataclasses.dataclass(frozen=True)
class CardTemplates:
    """The NicConfigurationTemplates of NVIDIA's NIC configuration operator, and the cards that it knows.

    :ivar templates: templates that the operator reads
    :ivar devices: cards of the cluster that the operator has found
    """

    templates: tuple[NicTemplate, ...] = ()
    devices: tuple[NicDevice, ...] = ()


def writes_firmware(settings: OperatorSettings) -> bool:
    """Return whether the SR-IOV operator writes the firmware of Mellanox NICs."""
    return PLUGIN not in settings.disabled_plugins


def is_about_firmware(blocker: str) -> bool:
    """Return whether a reason against a change is the number of virtual functions in the firmware. It has its own
    remedy.

    :param blocker: the reason, as text
    """
    return _SETTING in blocker


def describe_disable(namespace: str, settings: OperatorSettings) -> str:
    """Return the instruction to disable the plugin of the SR-IOV operator that writes the firmware of NICs.

    :param namespace: namespace of the SR-IOV operator
    """
    patch = json.dumps({"spec": {"disablePlugins": [*settings.disabled_plugins, PLUGIN]}}, separators=(",", ":"))
    return (
        f"Disable the plugin {PLUGIN} of the SR-IOV operator, as NVIDIA documents it: kubectl patch sriovoperatorconfig"
        f" -n {namespace or 'NAMESPACE'} default --type merge -p '{patch}'"
    )


def list_template_conflicts(
    cards: CardTemplates,
    node: ClusterNode,
    wanted: typing.Iterable[WantedInterface],
    interfaces: typing.Sequence[StateInterface],
) -> tuple[str, ...]:
    """Return the templates that require another number of virtual functions of a card of the node than the SR-IOV
    operator sets, as text. Each of the two operators then sets its own number again and reboots the node for it.

    :param wanted: desired state of the physical functions of the node
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    totals = count_firmware_functions(wanted, interfaces)
    found = []
    for template in cards.templates:
        number = _read_number(template)
        differing = [
            interface
            for interface in interfaces
            if totals.get(interface.address, number) != number and _selects(template, cards.devices, node, interface)
        ]
        if differing:
            ours = sorted({totals[interface.address] for interface in differing})
            found.append(
                f"NicConfigurationTemplate {template.namespace}/{template.name} sets {_SETTING} {number} for"
                f" {join_first([interface.address for interface in differing], _NAMED)}, and the SR-IOV operator sets"
                f" {' or '.join(map(str, ours))}. Each of the two operators would set its own number again and reboot"
                " the node for it, without end"
            )
    return tuple(found)


def list_lost_functions(
    before: typing.Iterable[WantedInterface],
    after: typing.Iterable[WantedInterface],
    interfaces: typing.Sequence[StateInterface],
) -> tuple[str, ...]:
    """Return the ports without a policy whose virtual functions a smaller number in the firmware of their card takes,
    as text. Another program created these functions. If no policy is left for a card, the operator sets 0.

    :param before: desired state of the physical functions of the node before the change
    :param after: desired state of the physical functions after the change
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    old, new = tuple(before), tuple(after)
    totals = {_card_of(address): 0 for address in count_firmware_functions(old, interfaces)}
    # the operator leaves the firmware alone if the remaining policy is externallyManaged
    for item in new:
        totals.pop(_card_of(item.address), None)
    totals.update({_card_of(address): total for address, total in count_firmware_functions(new, interfaces).items()})
    configured = {item.address for item in (*old, *new)}
    return tuple(
        f"{interface.name or 'the port'} {interface.address} has {count_of(interface.vfs_count, 'virtual function')}"
        f" without a policy of the SR-IOV operator, and the operator sets {_SETTING}"
        f" {totals[_card_of(interface.address)]} for the card. The functions above that number do not return after the"
        " next reboot of the node"
        for interface in interfaces
        if interface.vendor == MELLANOX
        and interface.address not in configured
        and interface.vfs_count > totals.get(_card_of(interface.address), interface.vfs_count)
    )


def _card_of(address: str) -> str:
    """Return the PCI address of a card without the number of the function."""
    return address[:-1]


def _read_number(template: NicTemplate) -> int:
    """Return the number of virtual functions that a template requires. The operator reads an absent number as 0."""
    return parse_number(str(template.template.get("numVfs", 0))) or 0


def _selects(
    template: NicTemplate, devices: typing.Iterable[NicDevice], node: ClusterNode, interface: StateInterface
) -> bool:
    """Return whether a template selects the card of a physical function, or may select it because the serial number of
    the card is not known. [nic-configuration-operator internal/controller/nicconfigurationtemplate_controller.go]

    :param devices: cards that the operator has found
    """
    if any(node.labels.get(key) != value for key, value in template.node_selector.items()):
        return False
    if template.type and template.type != interface.device.lower():
        return False
    card = _card_of(interface.address)
    # the operator configures a card as a whole
    if template.addresses and not any(_card_of(address) == card for address in template.addresses):
        return False
    serials = {
        device.serial
        for device in devices
        if device.node == node.name and any(_card_of(port) == card for port in device.ports)
    } - {""}
    return not template.serials or not serials or not serials.isdisjoint(template.serials)
