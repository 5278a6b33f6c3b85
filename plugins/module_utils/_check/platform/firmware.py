# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of an HCA: what runs, what waits for a reset, and whether it is that of the others. Check id:
``platform.firmware``.

sysfs and PCI configuration space show what runs, which proves SRIOV_EN and NUM_OF_VFS. What is stored for the next
reset shows where mstconfig, devlink or NVIDIA's NIC configuration operator says so; where nobody does, what runs
decides alone.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._analysis.fleet import vendors
from ..._analysis.fleet.hcas_of_fabric import Membership
from ..._analysis.fleet.host_names import host_of
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.node.firmware import (
    VENDOR,
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    NicDevices,
    ObservedFirmware,
    number,
    same,
    way_of_reset,
)
from ..._model.node.hca import Hca
from ..._model.node.platform import PciEvidence
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, ok

#: PCI vendor and device, and board (PSID)
_Model = tuple[str, str, str]
Versions = typing.Mapping[_Model, typing.Mapping[str, int]]
#: by fabric, model and name of the setting how many HCAs have which value
_Values = typing.Mapping[tuple[str, _Model, str], typing.Mapping[str, int]]
#: by node and PCI address
_Seen = typing.Mapping[tuple[str, str], HcaFirmware]
_PORTS, _EITHER_LINK = "LINK_TYPE_P", 3


class _Objection(typing.NamedTuple):
    """A part of the finding."""

    status: typing.Literal["fail", "unknown", "warn"]
    measured: str
    expected: str
    why: str
    remedy: str


_GRAVEST: tuple[Status, ...] = (FAIL, UNKNOWN, WARN)


class DesiredSetting(typing.NamedTuple):
    """A setting that is wanted.

    :ivar least: more will do
    :ivar needed: without it the fabric has no VFs, or another link
    """

    name: str
    value: str
    least: bool = False
    needed: bool = True

    def met(self, value: typing.Optional[str]) -> typing.Optional[bool]:
        """None where nobody knows the value."""
        if value is None:
            return None
        if self.least:
            seen = number(value)
            return None if seen is None else seen >= int(self.value)
        return same(self.value, value) or (self.name.startswith(_PORTS) and number(value) == _EITHER_LINK)


@dataclasses.dataclass(frozen=True)
class DifferingValue:
    """A value of an HCA that differs from most of its model.

    :ivar what: firmware, or the name of a setting
    :ivar count: HCAs that have what is usual, ``of`` those that were compared
    """

    what: str
    value: str
    usual: str
    count: int
    of: int


@dataclasses.dataclass(frozen=True)
class HcaModel:
    """HCAs of one model.

    :ivar hcas: node and name of each
    :ivar odd: of those that have something otherwise
    """

    model: str
    hcas: tuple[tuple[str, str], ...]
    odd: typing.Mapping[tuple[str, str], tuple[DifferingValue, ...]]


@dataclasses.dataclass(frozen=True)
class Fleet:
    """The firmware of all nodes.

    :ivar versions: see :func:`count_versions`
    :ivar values: see :func:`count_values`
    :ivar usual: the version that most HCAs of a model run, of several the newest
    :ivar seen: what was read of the firmware of an HCA, by node and PCI address
    :ivar nics: what NVIDIA's operator says of HCAs, by node and by the short name of its host, with the PCI address
    """

    intent: Intent
    versions: Versions
    values: _Values
    usual: typing.Mapping[_Model, str]
    firmware: typing.Mapping[str, ObservedFirmware]
    seen: _Seen
    nics: typing.Mapping[tuple[str, str], NicDevice]

    def of(self, node: str, address: str) -> typing.Optional[HcaFirmware]:
        return self.seen.get((node, address))

    def nic(self, node: str, address: str) -> typing.Optional[NicDevice]:
        """Return the report of NVIDIA's operator on an HCA. The cluster may know the node by another name of the same
        host."""
        return self.nics.get((node, address)) or self.nics.get((_host(node), address))


def collect_fleet(
    intent: Intent,
    memberships: typing.Iterable[Membership],
    firmware: typing.Mapping[str, ObservedFirmware],
    nics: NicDevices,
) -> Fleet:
    """Return the values with which single HCAs are compared."""
    known = tuple(memberships)
    named = {
        (name, address): nic for nic in nics.devices for address in nic.ports for name in (nic.node, _host(nic.node))
    }
    found, seen = count_versions(known), _index_by_address(firmware)
    usual = {
        model: max(counts.items(), key=lambda item: (item[1], _find_parts(item[0])))[0]
        for model, counts in found.items()
    }
    return Fleet(intent, found, count_values(known, seen), usual, firmware, seen, named)


def count_versions(memberships: typing.Iterable[Membership]) -> Versions:
    """Count the HCAs of each model by firmware, each HCA of the fabrics counted once. Whose model or firmware does not
    show is in none."""
    hcas = {
        (node, member.hca.name): member.hca
        for membership in memberships
        for node, members in membership.members.items()
        for member in members
    }
    found: dict[_Model, typing.Counter[str]] = {}
    for hca in hcas.values():
        model = _model(hca)
        if model is not None and hca.firmware:
            found.setdefault(model, collections.Counter())[hca.firmware] += 1
    return found


def count_values(memberships: typing.Iterable[Membership], by_address: _Seen) -> _Values:
    """Count the HCAs of each model on a fabric by the value in force. Links are compared with their fabric instead."""
    found: dict[tuple[str, _Model, str], typing.Counter[str]] = {}
    for membership in memberships:
        for node, members in membership.members.items():
            for hca in (member.hca for member in members):
                model, seen = _model(hca), by_address.get((node, hca.pci.address if hca.pci else ""))
                for setting in seen.settings if model is not None and seen is not None else ():
                    if model is not None and _compared(setting):
                        found.setdefault((membership.fabric, model, setting.name), collections.Counter())[
                            _in_force(setting)
                        ] += 1
    return found


def report_unread(nics: NicDevices) -> typing.Iterator[Finding]:
    """Report that NVIDIA's operator, or what it has of a node, could not be read; the HCAs are judged all the same."""
    for node, causes in sorted(unread_of(nics).items()):
        told = "; ".join(causes[:3])
        why = f"So whether NVIDIA's NIC configuration operator decides on its firmware is not known: {told}."
        remedy = f"See who wrote it: kubectl get nicdevices -A -o yaml. Restart the operator's daemon on {node}."
        yield Finding("platform.firmware", f"{node} NicDevice", WARN, "unread", "objects of its form", why, remedy)
    if nics.errors:
        why = (
            "So whether NVIDIA's NIC configuration operator decides on the firmware is not known:"
            f" {'; '.join(nics.errors[:3])}."
        )
        remedy = (
            "Give the user the rights of docs/rbac/look.yml (list nicdevices). Without a cluster set"
            " platform_nic_devices: false."
        )
        yield Finding(
            "platform.firmware", "NicDevice", WARN, "unread", "objects of NVIDIA's operator, or none", why, remedy
        )


def unread_of(nics: NicDevices) -> dict[str, list[str]]:
    """Return why NicDevices of a node could not be read, by its name."""
    found: dict[str, list[str]] = {}
    for item in nics.unread:
        found.setdefault(item.node, []).append(item.why)
    return found


def check(node: str, fabric: Fabric, hca: Hca, function: PciEvidence, fleet: Fleet) -> typing.Iterator[Finding]:
    """One finding at most: what sriov_totalvfs alone says is told by platform.sriov."""
    subject, wanted, total = f"{node} {hca.name}", fabric.virtual_functions, function.sriov_total or 0
    seen, nic = fleet.of(node, function.address), fleet.nic(node, function.address)
    stored = (
        "nothing waits for a reset" if seen and seen.settings else "what is stored for the next reset does not show"
    )
    expected = f"running: {wanted} VFs or more, the version of its model; {stored}"
    offers = [*_offers(hca, function, wanted, expected)]
    objections = [
        *offers,
        *(_settings(fabric, function, seen, nic, fleet) if seen else ()),
        *_unread_wishes(fabric, hca, function, seen, fleet),
    ]
    if not offers:
        objections += [*_unread(hca, expected), *_parse_version(hca, fleet)]
    objections += [*(_odd(fabric, hca, seen, fleet) if seen else ()), *_waits(hca, function, seen, nic)]
    if objections:
        yield _check_joined(subject, objections)
    elif total >= wanted:
        yield ok("platform.firmware", subject, f"{total} VFs offered, {_told(hca, seen, nic, fleet)}", expected)


def _check_joined(subject: str, objections: typing.Sequence[_Objection]) -> Finding:
    """One finding of all objections, what fails first."""
    ordered = sorted(objections, key=lambda objection: _GRAVEST.index(objection.status))
    measured, expected = (
        "; ".join(dict.fromkeys(parts))
        for parts in ([item.measured for item in ordered], [item.expected for item in ordered])
    )
    why, remedy = (
        " ".join(dict.fromkeys(parts)) for parts in ([item.why for item in ordered], [item.remedy for item in ordered])
    )
    return Finding("platform.firmware", subject, ordered[0].status, measured, expected, why, remedy)


def _offers(hca: Hca, function: PciEvidence, wanted: int, expected: str) -> typing.Iterator[_Objection]:
    offered, total = function.capability, function.sriov_total or 0
    if offered and total >= wanted and (offered.total < wanted or offered.initial != offered.total):
        why = (
            f"Firmware: the kernel saw {total} VFs when it booted, and now the function offers {offered.total}"
            f" (InitialVFs {offered.initial}), so none is made."
        )
        remedy = vendors.enable_functions(hca)
        yield _Objection(FAIL, f"TotalVFs {offered.total}, InitialVFs {offered.initial}", expected, why, remedy)


def _unread(hca: Hca, expected: str) -> typing.Iterator[_Objection]:
    names = sorted({"fw_ver", "board_id"} & set(hca.unread))
    if names:
        why = "So whether it runs the same firmware as the others of its model is not known."
        remedy = f"Read /sys/class/infiniband/{hca.rdma_device}/{names[0]} on the node by hand."
        yield _Objection(WARN, f"{', '.join(names)} unread", expected, why, remedy)


def _parse_version(hca: Hca, fleet: Fleet) -> typing.Iterator[_Objection]:
    odd = _odd_version(hca, fleet)
    if odd is not None:
        why = (
            f"{odd.count} of {odd.of} HCAs of its model ({hca.board or 'no PSID'}) run {odd.usual}. One with another"
            " behaves otherwise."
        )
        remedy = f"Bring it to {odd.usual} ({vendors.burn(hca)}), or the others to {odd.value}."
        yield _Objection(WARN, f"firmware {odd.value}", f"firmware {odd.usual}", why, remedy)


def wishes(fabric: Fabric, seen: HcaFirmware, intent: Intent) -> typing.Iterator[DesiredSetting]:
    """Return the settings that the fabric needs and the intent asks for, by their names in this firmware."""
    each = seen.setting("PF_NUM_OF_VF_VALID")
    name = "PF_NUM_OF_VF" if each is not None and number(each.next) == 1 else "NUM_OF_VFS"
    yield DesiredSetting("SRIOV_EN", "True")
    yield DesiredSetting(name, str(fabric.virtual_functions), least=True)
    if (intent.cluster.firmware.num_of_vfs or 0) > fabric.virtual_functions:
        yield DesiredSetting(name, str(intent.cluster.firmware.num_of_vfs), least=True, needed=False)
    # a card with one setting has one port; with several, function 0 has the first
    port = int(seen.address[-1:] or "0") + 1 if seen.setting(f"{_PORTS}2") else 1
    yield DesiredSetting(f"{_PORTS}{port}", "IB" if is_infiniband(fabric) else "ETH")
    for wished, value in intent.cluster.firmware.settings().items():
        yield DesiredSetting(wished, value, needed=False)


def in_force(
    wish: DesiredSetting, setting: FirmwareSetting, fabric: Fabric, function: PciEvidence
) -> typing.Optional[bool]:
    """Return whether a desired setting is in force: VFs that are offered prove their settings, whatever a tool says.
    None where it is not known."""
    needed = int(wish.value) if wish.least else fabric.virtual_functions
    if wish.needed and not wish.name.startswith(_PORTS) and (function.sriov_total or 0) >= needed:
        return True
    return wish.met(setting.current)


def _settings(
    fabric: Fabric, function: PciEvidence, seen: HcaFirmware, nic: typing.Optional[NicDevice], fleet: Fleet
) -> typing.Iterator[_Objection]:
    """Compare the settings with the desired ones. That VFs are offered proves their settings whatever a tool says; what
    the next reset brings only the tool knows."""
    wished = tuple(wishes(fabric, seen, fleet.intent))
    for wish in wished:
        setting = seen.setting(wish.name)
        later = wish.met(setting.next) if setting is not None else None
        if setting is None:
            continue
        now = in_force(wish, setting, fabric, function)
        wanted = f"{wish.name} {'of ' if wish.least else ''}{wish.value}{' or more' if wish.least else ''}"
        if later is None:
            if now is False and wish.needed:
                why = f"{wish.name} is {setting.current}, and what the next reset brings does not show."
                remedy = f"Run mstconfig -d {seen.address} -e query {wish.name} on the node, as root."
                yield _Objection(UNKNOWN, f"{wish.name} {setting.current}", wanted, why, remedy)
        elif later and now is False:
            why = f"{wish.name} is {setting.current} until the HCA is reset: reset pending."
            yield _Objection(FAIL, _values_of(setting), wanted, why, way_of_reset(seen.device, seen.address))
        elif not later and now:
            why = (
                f"{wish.name} becomes {setting.next} with the next reset, and what is needed is gone then: reset"
                " pending."
            )
            yield _Objection(WARN, _values_of(setting), wanted, why, _set(seen, nic, wish))
        elif not later:
            why = f"Firmware: {wish.name} is {setting.next}, and the fabric '{fabric.name}' needs {wish.value}."
            if not wish.needed:
                why = (
                    f"Firmware: {wish.name} is {setting.next}, and the intent asks for {wish.value}"
                    " (rdma_cluster.firmware)."
                )
            yield _Objection(
                FAIL,
                _values_of(setting),
                wanted,
                why,
                f"{_set(seen, nic, wish)} {way_of_reset(seen.device, seen.address)}",
            )
    judged = {wish.name for wish in wished}
    others = [setting for setting in seen.settings if setting.pending and setting.name not in judged]
    if others:
        measured = ", ".join(map(_values_of, others[:8])) + (f" and {len(others) - 8} more" if len(others) > 8 else "")
        why = "These settings change with the next reset, whenever and why ever it comes: reset pending."
        remedy = f"{way_of_reset(seen.device, seen.address)} Or set them back to what is in force."
        yield _Objection(WARN, measured, "nothing waits for a reset", why, remedy)
    if seen.errors:
        why = f"So what waits for a reset is not known, or not all of it: {'; '.join(seen.errors[:3])}."
        yield _Objection(
            WARN,
            "settings unread",
            "settings of the firmware",
            why,
            f"Run mstconfig -d {seen.address} -e query on the node, as root.",
        )


def _unread_wishes(
    fabric: Fabric, hca: Hca, function: PciEvidence, seen: typing.Optional[HcaFirmware], fleet: Fleet
) -> typing.Iterator[_Objection]:
    """Return the desired settings that no tool has read. What the fabric needs shows in the VFs and the link."""
    if hca.pci is None or hca.pci.vendor != VENDOR:
        return
    known = seen or HcaFirmware(function.address)
    unread = []
    for wish in wishes(fabric, known, fleet.intent):
        setting = known.setting(wish.name)
        offered = wish.least and (function.sriov_total or 0) >= int(wish.value)
        if not wish.needed and not offered and (setting is None or wish.met(setting.next) is None):
            unread.append(wish)
    if unread:
        names = ", ".join(wish.name for wish in unread)
        reasons = [*known.errors, *known.not_asked] or [
            f"{known.settings_from} does not show it" if known.settings else "no tool was asked"
        ]
        why = (
            "The intent asks for it (rdma_cluster.firmware), and what the firmware has is not known:"
            f" {'; '.join(reasons[:3])}."
        )
        remedy = (
            f"Run mstconfig -d {function.address} -e query {' '.join(wish.name for wish in unread)} on the node, as"
            " root. Advanced settings show where "
        )
        remedy += "ADVANCED_PCI_SETTINGS is on. Leave out of the intent what the firmware does not have."
        yield _Objection(
            UNKNOWN, f"{names} unread", ", ".join(f"{wish.name} {wish.value}" for wish in unread), why, remedy
        )


def _set(seen: HcaFirmware, nic: typing.Optional[NicDevice], wish: DesiredSetting) -> str:
    """Describe how to make a setting, by the component that makes it there."""
    if nic is not None and nic.configured:
        return (
            f"Set {wish.name}={wish.value} in the NicConfigurationTemplate of NicDevice {nic.name}, which decides"
            " on it."
        )
    if seen.dpu or (nic is not None and nic.dpu):
        return f"It is a BlueField in DPU mode: set {wish.name}={wish.value} from its Arm cores, never from the host."
    if nic is not None:
        return (
            f"Set {wish.name}={wish.value} by a NicConfigurationTemplate: {nic.name} is NVIDIA's operator's own"
            " (platform_settle: true makes one)."
        )
    return f"Set it: mstconfig -d {seen.address} -y set {wish.name}={wish.value} (or platform_settle: true)."


def _odd(fabric: Fabric, hca: Hca, seen: HcaFirmware, fleet: Fleet) -> typing.Iterator[_Objection]:
    """Settings that most HCAs of its model on the fabric have otherwise."""
    odd = _find_odd_settings(fabric.name, hca, seen, fleet)
    if odd:
        measured = ", ".join(f"{one.what} {one.value}" for one in odd)
        why = "; ".join(f"{one.what} is {one.usual} on {one.count} of {one.of} HCAs of its model" for one in odd)
        usually = " ".join(
            f"{one.what}={number(one.usual) if number(one.usual) is not None else one.usual}" for one in odd
        )
        expected = ", ".join(f"{one.what} {one.usual}" for one in odd)
        remedy = f"Set it like the others ({seen.address}: {usually}), or the others like it."
        yield _Objection(
            WARN, measured, expected, f"{why} ({hca.board or 'no PSID'}) on fabric '{fabric.name}'.", remedy
        )


def _odd_version(hca: Hca, fleet: Fleet) -> typing.Optional[DifferingValue]:
    if {"fw_ver", "board_id"} & set(hca.unread):
        return None
    counts, usual = _find_usual(hca, fleet)
    if hca.firmware is None or usual is None or hca.firmware == usual:
        return None
    return DifferingValue("firmware", hca.firmware, usual, counts[usual], sum(counts.values()))


def _find_odd_settings(fabric: str, hca: Hca, seen: HcaFirmware, fleet: Fleet) -> list[DifferingValue]:
    model, odd = _model(hca), []
    for setting in seen.settings if model is not None else ():
        counts = fleet.values.get((fabric, model, setting.name), {}) if model is not None and _compared(setting) else {}
        usual = max(counts, key=lambda value: (counts[value], value)) if counts else ""
        if counts and not same(_in_force(setting), usual):
            odd.append(DifferingValue(setting.name, _in_force(setting), usual, counts[usual], sum(counts.values())))
    return odd


def make_groups(memberships: typing.Iterable[Membership], fleet: Fleet) -> tuple[HcaModel, ...]:
    """HCAs of one model on the fabrics, and what is odd on which of them."""
    hcas: dict[_Model, dict[tuple[str, str], dict[DifferingValue, None]]] = {}
    for membership in memberships:
        for node, members in membership.members.items():
            for hca in (member.hca for member in members):
                model, seen = _model(hca), fleet.of(node, hca.pci.address if hca.pci else "")
                if model is not None:
                    version = _odd_version(hca, fleet)
                    odd = [
                        *([version] if version else []),
                        *(_find_odd_settings(membership.fabric, hca, seen, fleet) if seen else ()),
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


def _waits(
    hca: Hca, function: PciEvidence, seen: typing.Optional[HcaFirmware], nic: typing.Optional[NicDevice]
) -> typing.Iterator[_Objection]:
    """Yield a version, or a change of NVIDIA's operator, that is not in force yet."""
    device = hca.pci.device if hca.pci else ""
    told = seen.running if seen else None
    running = (told.value if told else None) or hca.firmware
    stored, source = (
        (nic.firmware, "NicDevice")
        if nic and nic.firmware
        else (seen.stored.value, seen.stored.source)
        if seen and seen.stored
        else ("", "")
    )
    if running and stored and _find_parts(running) != _find_parts(stored):
        why = f"{stored} is on its flash ({source}) and {running} runs: reset pending."
        yield _Objection(
            WARN,
            f"firmware {running} runs, {stored} is stored",
            "the stored version runs",
            why,
            way_of_reset(device, function.address),
        )
    if told and told.value and hca.firmware and _find_parts(told.value) != _find_parts(hca.firmware):
        yield _Objection(
            WARN,
            f"firmware {told.value} runs by {told.source}, {hca.firmware} by the driver",
            "one version",
            f"{told.source} and the driver do not tell one version, so which of them runs is not known.",
            f"Compare mstflint -d {function.address} query full with /sys/class/infiniband/{hca.name}/fw_ver.",
        )
    if nic and nic.waits:
        why = (
            "NVIDIA's NIC configuration operator is not through with it:"
            f" {nic.waits}{f' ({nic.message})' if nic.message else ''}."
        )
        remedy = f"kubectl describe nicdevice -A says more of {nic.name}; let the operator finish, then run again."
        yield _Objection(
            WARN, f"NicDevice {nic.name}: {nic.waits}", "what the operator was asked for is in force", why, remedy
        )


def _told(hca: Hca, seen: typing.Optional[HcaFirmware], nic: typing.Optional[NicDevice], fleet: Fleet) -> str:
    """Version and who said what, of an HCA with which nothing is wrong."""
    counts, usual = _find_usual(hca, fleet)
    alike = f", as {counts[usual or '']} of {sum(counts.values())} of its model" if counts else ""
    parts = [f"firmware {hca.firmware} ({hca.board or 'no PSID'}){alike}" if hca.firmware else "no version shown"]
    if seen and seen.settings:
        parts.append(f"settings by {seen.settings_from}")
    if nic:
        parts.append(f"NicDevice {nic.name}")
    if (seen and seen.dpu) or (nic and nic.dpu):
        parts.append("a BlueField in DPU mode, whose settings are its Arm cores' own")
    return ", ".join(parts)


def _find_usual(hca: Hca, fleet: Fleet) -> tuple[typing.Mapping[str, int], typing.Optional[str]]:
    """Return how many HCAs of its model run each version, and the usual version."""
    model = _model(hca)
    counts = fleet.versions.get(model, {}) if model is not None and hca.firmware else {}
    return counts, fleet.usual[model] if model is not None and counts else hca.firmware


def _index_by_address(firmware: typing.Mapping[str, ObservedFirmware]) -> _Seen:
    """Return what was read of each HCA, by its node and PCI address. Where a node reports an address twice, the first
    report counts."""
    known = {
        node: observed.value.hcas
        for node, observed in firmware.items()
        if observed.value is not None and observed.error is None
    }
    return {(node, item.address): item for node, found in known.items() for item in reversed(found)}


def _host(node: str) -> str:
    """Short name of the host; of a node that is called by its address all of that."""
    short = host_of(node)
    return node if short.isdigit() or ":" in node else short


def _compared(setting: FirmwareSetting) -> bool:
    return not setting.name.startswith(_PORTS) and bool(_in_force(setting))


def _in_force(setting: FirmwareSetting) -> str:
    """Of firmware that does not say what is in force, what is set."""
    return setting.current or setting.next or ""


def _values_of(setting: FirmwareSetting) -> str:
    if setting.current is None or not setting.pending:
        return f"{setting.name} {setting.next}"
    return f"{setting.name} {setting.current}, after a reset {setting.next}"


def _model(hca: Hca) -> typing.Optional[_Model]:
    return (hca.pci.vendor, hca.pci.device, hca.board or "") if hca.pci else None


def _find_parts(version: str) -> tuple[tuple[int, str], ...]:
    """Sort key: of as many HCAs the newer firmware is the usual one."""
    return tuple(
        (int(part), "") if part.isascii() and part.isdigit() and len(part) < 10 else (-1, part)
        for part in version.split(".")
    )
