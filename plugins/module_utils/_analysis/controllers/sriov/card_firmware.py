# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the reasons why the SR-IOV network operator must not write its number of virtual functions into the firmware of
a card (NUM_OF_VFS): NVIDIA's NIC configuration operator writes another number, or another port of the card needs more.
Pure.

The plugin mellanox of the config daemon writes the number for the whole card, for a policy on any of its ports. It
writes 0 for a card that it has configured and that no policy selects any longer. [sriov-network-operator
pkg/vendors/mellanox/mellanox.go HandleTotalVfs, pkg/plugins/mellanox/mellanox_plugin.go OnNodeStateChange]

A template sets the number by numVfs. An entry of rawNvConfig of the same name replaces it, and resetToDefault replaces
all settings by the defaults of the firmware. [nic-configuration-operator pkg/configuration/configvalidation.go
ConstructNvParamMapFromTemplate, mergeOverrideLayers; pkg/configuration/manager.go ValidateDeviceNvSpec]
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
_SETTING, _ENABLED = "NUM_OF_VFS", "SRIOV_EN"
#: values of SRIOV_EN that switch virtual functions off, in lower case
_OFF = ("0", "false", "false(0)")
#: digits of a number in rawNvConfig that are read
_MOST_DIGITS = 9
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
    before: typing.Iterable[WantedInterface] = (),
) -> tuple[str, ...]:
    """Return the templates that require another number of virtual functions of a card of the node than the SR-IOV
    operator sets, as text. Each of the two operators then sets its own number again and reboots the node for it. If no
    policy selects the card any longer, the SR-IOV operator sets 0 once.

    :param wanted: desired state of the physical functions of the node
    :param interfaces: physical functions of the node, as its config daemon reports them
    :param before: desired state of the physical functions before the change
    """
    new = tuple(wanted)
    totals = count_firmware_functions(new, interfaces)
    left = _find_left_cards(before, new, interfaces)
    found = []
    for template in cards.templates:
        number, does = _read_number(template)
        mine = [interface for interface in interfaces if _selects(template, cards.devices, node, interface)]
        which = f"NicConfigurationTemplate {template.namespace}/{template.name} {does} for"
        differing = [one.address for one in mine if one.address in totals and totals[one.address] != number]
        if differing:
            ours = sorted({totals[address] for address in differing})
            found.append(
                f"{which} {join_first(differing, _NAMED)}, and the SR-IOV operator sets {' or '.join(map(str, ours))}."
                " Each of the two operators would set its own number again and reboot the node for it, without end"
            )
        lost = [one.address for one in mine if _card_of(one.address) in left and number != 0]
        if lost:
            found.append(
                f"{which} {join_first(lost, _NAMED)}, and the SR-IOV operator sets {_SETTING} 0 as soon as none of its"
                " policies selects the card. NVIDIA's NIC configuration operator would then set its own number again"
                " and reboot the node for it"
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
    totals = dict.fromkeys(_find_left_cards(old, new, interfaces), 0)
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


def _find_left_cards(
    before: typing.Iterable[WantedInterface],
    after: typing.Iterable[WantedInterface],
    interfaces: typing.Sequence[StateInterface],
) -> set[str]:
    """Return the cards, as PCI addresses without the function, in whose firmware the operator sets 0, because it wrote
    the firmware before and no policy selects the card after the change. It leaves the firmware alone if a remaining
    policy is externallyManaged.

    :param before: desired state of the physical functions of the node before the change
    :param after: desired state of the physical functions after the change
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    return {_card_of(address) for address in count_firmware_functions(before, interfaces)} - {
        _card_of(item.address) for item in after
    }


def _read_number(template: NicTemplate) -> tuple[typing.Optional[int], str]:
    """Return two values: the number of virtual functions that a template requires, and as text what it does. The number
    is None if it is the default of the firmware, or is not valid. The operator reads an absent number as 0.
    """
    if template.resets:
        return None, f"resets the firmware, {_SETTING} included, to the defaults (resetToDefault: true)"
    number = parse_number(str(template.template.get("numVfs", 0))) or 0
    raw = _read_raw_settings(template)
    off = raw[_ENABLED].lower() in _OFF if _ENABLED in raw else number == 0
    if _SETTING in raw and not off:
        return _parse_raw_number(raw[_SETTING]), f"sets {_SETTING} {raw[_SETTING][:_MOST_DIGITS]} in rawNvConfig"
    if _ENABLED in raw and off:
        return 0, f"sets {_ENABLED} {raw[_ENABLED]} in rawNvConfig, which is {_SETTING} 0,"
    return number, f"sets {_SETTING} {number}"


def _read_raw_settings(template: NicTemplate) -> dict[str, str]:
    """Return the settings of the firmware in rawNvConfig of a template, by name. The last entry of a name counts."""
    entries = template.template.get("rawNvConfig")
    return {
        str(entry.get("name") or "").strip().upper(): str(entry.get("value") or "").strip()
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    }


def _parse_raw_number(text: str) -> typing.Optional[int]:
    """Return a number of rawNvConfig, which may be hexadecimal. Return None if it is not valid."""
    if len(text) > _MOST_DIGITS or not text.isascii():
        return None
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        return None


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
