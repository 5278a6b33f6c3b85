# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of all HCAs, by model: the usual version, the usual settings, and the HCAs that differ from them."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.host_names import host_of
from ..._model.intent.intent import Intent
from ..._model.node.firmware import (
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    NicDevices,
    ObservedFirmware,
    is_equal,
)
from ..._model.node.hca import Hca

#: PCI vendor and device, and board (PSID)
_Model = tuple[str, str, str]
Versions = typing.Mapping[_Model, typing.Mapping[str, int]]
#: by fabric, model and name of the setting the number of HCAs with each value
_Values = typing.Mapping[tuple[str, _Model, str], typing.Mapping[str, int]]
#: by node and PCI address
_Seen = typing.Mapping[tuple[str, str], HcaFirmware]
PORTS, EITHER_LINK = "LINK_TYPE_P", 3


@dataclasses.dataclass(frozen=True)
class DifferingValue:
    """A firmware version or setting of an HCA that differs from most HCAs of its model.

    :ivar what: ``firmware``, or the name of a setting
    :ivar value: value of the HCA
    :ivar usual: value that most HCAs of the model have
    :ivar count: number of HCAs with the usual value
    :ivar of: number of HCAs that were compared
    """

    what: str
    value: str
    usual: str
    count: int
    of: int


@dataclasses.dataclass(frozen=True)
class HcaModel:
    """The HCAs of one model, and the firmware values in which some of them differ.

    :ivar model: name of the model
    :ivar hcas: node and name of each HCA
    :ivar odd: values that differ, by node and name of the HCA; HCAs without any are left out
    """

    model: str
    hcas: tuple[tuple[str, str], ...]
    odd: typing.Mapping[tuple[str, str], tuple[DifferingValue, ...]]


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The firmware versions and settings of the HCAs of all nodes, with which each HCA is compared.

    :ivar intent: intent of the run, with the desired firmware settings
    :ivar versions: number of HCAs by model and then by firmware version
    :ivar values: number of HCAs by fabric, model and setting, and then by the value in force
    :ivar usual: the version that most HCAs of a model run, by model; the newest one if several are equally frequent
    :ivar firmware: firmware that the HCAs of each node report, or the error, by node
    :ivar seen: firmware of each HCA as mstflint or another tool reports it, by node and PCI address
    :ivar nics: NicDevices of NVIDIA's operator, by node name or short host name, and PCI address
    """

    intent: Intent
    versions: Versions
    values: _Values
    usual: typing.Mapping[_Model, str]
    firmware: typing.Mapping[str, ObservedFirmware]
    seen: _Seen
    nics: typing.Mapping[tuple[str, str], NicDevice]

    def firmware_of(self, node: str, address: str) -> typing.Optional[HcaFirmware]:
        """Return the report about the firmware of an HCA; None if there is none.

        :param node: name of the node
        :param address: PCI address of the HCA
        """
        return self.seen.get((node, address))

    def nic_of(self, node: str, address: str) -> typing.Optional[NicDevice]:
        """Return the report of NVIDIA's operator on an HCA; None if there is none. If the name of the node has no
        report, its short host name is tried, since the cluster may use another name of the same host.

        :param node: name of the node
        :param address: PCI address of the HCA
        """
        return self.nics.get((node, address)) or self.nics.get((_host(node), address))


def collect_fleet(
    intent: Intent,
    memberships: typing.Iterable[Membership],
    firmware: typing.Mapping[str, ObservedFirmware],
    nics: NicDevices,
) -> Fleet:
    """Return the firmware versions and settings of all HCAs, with which each HCA is compared.

    :param memberships: HCAs that belong to each fabric
    :param firmware: firmware that the HCAs of each node report, or the error, by node
    :param nics: NicDevices of NVIDIA's operator
    """
    known = tuple(memberships)
    named = {
        (name, address): nic for nic in nics.devices for address in nic.ports for name in (nic.node, _host(nic.node))
    }
    found, seen = count_versions(known), _index_by_address(firmware)
    usual = {
        model: max(counts.items(), key=lambda item: (item[1], split_version(item[0])))[0]
        for model, counts in found.items()
    }
    return Fleet(intent, found, count_values(known, seen), usual, firmware, seen, named)


def count_versions(memberships: typing.Iterable[Membership]) -> Versions:
    """Return the number of HCAs by model and then by firmware version. Each HCA of the fabrics counts once.

    HCAs without a known model or firmware are left out.

    :param memberships: HCAs of each fabric
    """
    hcas = {
        (node, member.hca.name): member.hca
        for membership in memberships
        for node, members in membership.members.items()
        for member in members
    }
    found: dict[_Model, typing.Counter[str]] = {}
    for hca in hcas.values():
        model = _identify_model(hca)
        if model is not None and hca.firmware:
            found.setdefault(model, collections.Counter())[hca.firmware] += 1
    return found


def count_values(memberships: typing.Iterable[Membership], by_address: _Seen) -> _Values:
    """Return the number of HCAs by fabric, model and setting, and then by the value in force.

    The link type is left out, since it is compared with the fabric.

    :param memberships: HCAs of each fabric
    :param by_address: firmware of each HCA, by node and PCI address
    """
    found: dict[tuple[str, _Model, str], typing.Counter[str]] = {}
    for membership in memberships:
        for node, members in membership.members.items():
            for hca in (member.hca for member in members):
                model, seen = _identify_model(hca), by_address.get((node, hca.pci.address if hca.pci else ""))
                for setting in seen.settings if model is not None and seen is not None else ():
                    if model is not None and _is_compared(setting):
                        found.setdefault((membership.fabric, model, setting.name), collections.Counter())[
                            _value_in_force(setting)
                        ] += 1
    return found


def find_odd_version(hca: Hca, fleet: Fleet) -> typing.Optional[DifferingValue]:
    if {"fw_ver", "board_id"} & set(hca.unread):
        return None
    counts, usual = find_usual(hca, fleet)
    if hca.firmware is None or usual is None or hca.firmware == usual:
        return None
    return DifferingValue("firmware", hca.firmware, usual, counts[usual], sum(counts.values()))


def find_odd_settings(fabric: str, hca: Hca, seen: HcaFirmware, fleet: Fleet) -> list[DifferingValue]:
    model, odd = _identify_model(hca), []
    for setting in seen.settings if model is not None else ():
        counts = (
            fleet.values.get((fabric, model, setting.name), {}) if model is not None and _is_compared(setting) else {}
        )
        usual = max(counts, key=lambda value: (counts[value], value)) if counts else ""
        if counts and not is_equal(_value_in_force(setting), usual):
            odd.append(
                DifferingValue(setting.name, _value_in_force(setting), usual, counts[usual], sum(counts.values()))
            )
    return odd


def group_by_model(memberships: typing.Iterable[Membership], fleet: Fleet) -> tuple[HcaModel, ...]:
    """Return the HCAs of the fabrics in groups of one model, each with the firmware values in which HCAs differ from
    most of their model.

    :param memberships: HCAs that belong to each fabric
    :param fleet: firmware of all HCAs
    """
    hcas: dict[_Model, dict[tuple[str, str], dict[DifferingValue, None]]] = {}
    for membership in memberships:
        for node, members in membership.members.items():
            for hca in (member.hca for member in members):
                model, seen = _identify_model(hca), fleet.firmware_of(node, hca.pci.address if hca.pci else "")
                if model is not None:
                    version = find_odd_version(hca, fleet)
                    odd = [
                        *([version] if version else []),
                        *(find_odd_settings(membership.fabric, hca, seen, fleet) if seen else ()),
                    ]
                    hcas.setdefault(model, {}).setdefault((node, hca.name), {}).update(dict.fromkeys(odd))
    return tuple(
        HcaModel(
            f"{vendor}:{device}, PSID {board or 'unknown'}",
            tuple(found),
            {hca: tuple(odd) for hca, odd in found.items() if odd},
        )
        for (vendor, device, board), found in hcas.items()
    )


def find_usual(hca: Hca, fleet: Fleet) -> tuple[typing.Mapping[str, int], typing.Optional[str]]:
    """Return two values: the number of HCAs of the same model by firmware version, and the version that most of them
    run. If the model or the version of the HCA is unknown, return an empty mapping and the HCA's own version, which may
    be None.

    :param hca: HCA that is compared
    :param fleet: firmware of all HCAs
    """
    model = _identify_model(hca)
    counts = fleet.versions.get(model, {}) if model is not None and hca.firmware else {}
    return counts, fleet.usual[model] if model is not None and counts else hca.firmware


def _index_by_address(firmware: typing.Mapping[str, ObservedFirmware]) -> _Seen:
    """Return the report about each HCA, by its node and PCI address. Where a node reports an address twice, the first
    report counts.

    :param firmware: answers of the nodes about the firmware of their HCAs
    """
    known = {
        node: observed.value.hcas
        for node, observed in firmware.items()
        if observed.value is not None and observed.error is None
    }
    return {(node, item.address): item for node, found in known.items() for item in reversed(found)}


def _host(node: str) -> str:
    """Return the short host name of a node. Return the name unchanged if it is an IP address."""
    short = host_of(node)
    return node if short.isdigit() or ":" in node else short


def _is_compared(setting: FirmwareSetting) -> bool:
    return not setting.name.startswith(PORTS) and bool(_value_in_force(setting))


def _value_in_force(setting: FirmwareSetting) -> str:
    """Return the value of a firmware setting that is in force. If the firmware does not report it, return the stored
    value; if that is missing too, an empty text.

    :param setting: firmware setting as mstflint or another tool reports it
    """
    return setting.current or setting.next or ""


def _identify_model(hca: Hca) -> typing.Optional[_Model]:
    return (hca.pci.vendor, hca.pci.device, hca.board or "") if hca.pci else None


def split_version(version: str) -> tuple[tuple[int, str], ...]:
    """Return the parts of a firmware version by which versions are sorted: a part that is a number as ``(number, "")``,
    any other part as ``(-1, text)``.

    :param version: the version, such as ``28.39.1002``
    """
    return tuple(
        (int(part), "") if part.isascii() and part.isdigit() and len(part) < 10 else (-1, part)
        for part in version.split(".")
    )
