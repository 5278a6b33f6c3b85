# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the firmware settings that a tool reports for an HCA with those that the fabric needs and the intent asks
for. Part of the check ``platform.firmware``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import format_clause
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband
from ..._model.node.firmware import (
    VENDOR,
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    is_equal,
    parse_number,
    way_of_reset,
)
from ..._model.node.hca import Hca
from ..._model.node.platform import PciEvidence
from ..._model.run.findings import FAIL, UNKNOWN, WARN
from .firmware_fleet import EITHER_LINK, PORTS, Fleet


class FirmwareObjection(typing.NamedTuple):
    """A fault in the firmware of an HCA. All faults of an HCA become one finding.

    :ivar status: status that the finding gets from this fault
    :ivar measured: observed value
    :ivar expected: expected value
    :ivar why: cause, as a sentence
    :ivar remedy: instruction to the user that resolves the cause
    """

    status: typing.Literal["fail", "unknown", "warn"]
    measured: str
    expected: str
    why: str
    remedy: str


class DesiredSetting(typing.NamedTuple):
    """A firmware setting that the fabric needs or the intent asks for, with its value.

    :ivar name: name of the setting
    :ivar value: desired value
    :ivar least: whether a larger value fulfills it too
    :ivar needed: whether the fabric has no VFs, or another link type, without it
    """

    name: str
    value: str
    least: bool = False
    needed: bool = True

    def met(self, value: typing.Optional[str]) -> typing.Optional[bool]:
        """Return whether a value fulfills the setting.

        Return None if the value is not known, or is not a number where a larger number fulfills the setting too.

        :param value: value as a tool reports it; None if not known
        """
        if value is None:
            return None
        if self.least:
            seen = parse_number(value)
            return None if seen is None else seen >= int(self.value)
        return is_equal(self.value, value) or (self.name.startswith(PORTS) and parse_number(value) == EITHER_LINK)


def list_desired_settings(fabric: Fabric, seen: HcaFirmware, intent: Intent) -> typing.Iterator[DesiredSetting]:
    """Yield the firmware settings that the fabric needs and those that the intent asks for. The number of VFs and the
    link type have the names that the firmware of this HCA uses.

    :param seen: firmware of the HCA
    """
    each = seen.setting("PF_NUM_OF_VF_VALID")
    name = "PF_NUM_OF_VF" if each is not None and parse_number(each.next) == 1 else "NUM_OF_VFS"
    yield DesiredSetting("SRIOV_EN", "True")
    yield DesiredSetting(name, str(fabric.virtual_functions), least=True)
    if (intent.cluster.firmware.num_of_vfs or 0) > fabric.virtual_functions:
        yield DesiredSetting(name, str(intent.cluster.firmware.num_of_vfs), least=True, needed=False)
    # a card with one setting has one port; with several, function 0 has the first
    port = int(seen.address[-1:] or "0") + 1 if seen.setting(f"{PORTS}2") else 1
    yield DesiredSetting(f"{PORTS}{port}", "IB" if is_infiniband(fabric) else "ETH")
    for wished, value in intent.cluster.firmware.settings().items():
        yield DesiredSetting(wished, value, needed=False)


def is_in_force(
    wish: DesiredSetting, setting: FirmwareSetting, fabric: Fabric, function: PciEvidence
) -> typing.Optional[bool]:
    """Return whether an HCA runs with a desired setting; None if not known. If the HCA offers enough VFs, the settings
    that VFs need are in force, even if a tool reports otherwise.

    :param wish: firmware setting with its desired value
    :param setting: the same firmware setting as mstflint or another tool reports it
    :param fabric: fabric of the HCA, with the number of VFs
    :param function: SR-IOV properties of the function in sysfs
    """
    needed = int(wish.value) if wish.least else fabric.virtual_functions
    if wish.needed and not wish.name.startswith(PORTS) and (function.sriov_total or 0) >= needed:
        return True
    return wish.met(setting.current)


def check_settings(
    fabric: Fabric, function: PciEvidence, seen: HcaFirmware, nic: typing.Optional[NicDevice], fleet: Fleet
) -> typing.Iterator[FirmwareObjection]:
    """Yield a fault for each firmware setting of an HCA that is not as desired now or after the next reset, for
    settings of the intent whose value in force is not known, for settings that wait for a reset, and for errors of the
    tool. Settings that the tool does not report are skipped.

    If the HCA offers enough VFs, the settings that VFs need are in force, even if a tool reports otherwise. Only the
    tool knows the settings after the next reset.

    :param function: SR-IOV properties of the HCA in sysfs
    :param seen: firmware that mstflint or another tool reports
    :param nic: NicDevice of NVIDIA's operator; None if there is none
    :param fleet: firmware of all HCAs
    """
    wished = tuple(list_desired_settings(fabric, seen, fleet.intent))
    for wish in wished:
        setting = seen.setting(wish.name)
        later = wish.met(setting.next) if setting is not None else None
        if setting is None:
            continue
        now = is_in_force(wish, setting, fabric, function)
        wanted = f"{wish.name} {'of ' if wish.least else ''}{wish.value}{' or more' if wish.least else ''}"
        if later is None:
            if now is False and wish.needed:
                why = (
                    f"{wish.name} is {setting.current} now. Its value after the next reset was not reported, so"
                    " it is unknown whether a reset corrects it."
                )
                remedy = (
                    f"Run mstconfig -d {seen.address} -e query {wish.name} as root on the node to see the stored value,"
                    " then run stage platform again."
                )
                yield FirmwareObjection(
                    UNKNOWN, f"{wish.name} {setting.current}, after a reset unknown", wanted, why, remedy
                )
        elif later and now is False:
            why = (
                f"{wish.name} is {setting.current} until the HCA is reset (reset pending). The firmware has stored"
                f" {setting.next}, which takes effect at the reset."
            )
            yield FirmwareObjection(
                FAIL, _describe_values(setting), wanted, why, way_of_reset(seen.device, seen.address)
            )
        elif later and now is None and not _is_shown_elsewhere(wish, function):
            yield _report_value_in_force(wish, setting, wanted, seen)
        elif not later and now:
            why = (
                f"{wish.name} changes to {setting.next} at the next reset (reset pending), because the firmware has"
                " stored this value. The HCA meets the requirement now, but not after the reset."
            )
            yield FirmwareObjection(WARN, _describe_values(setting), wanted, why, _describe_remedy(seen, nic, wish))
        elif not later:
            why = (
                f"In the firmware, {wish.name} is {setting.next}, but the fabric '{fabric.name}' requires {wish.value}."
            )
            if not wish.needed:
                why = (
                    f"In the firmware, {wish.name} is {setting.next}, but the intent requires {wish.value}"
                    " (rdma_cluster.firmware)."
                )
            yield FirmwareObjection(
                FAIL,
                _describe_values(setting),
                wanted,
                why,
                f"{_describe_remedy(seen, nic, wish)} {way_of_reset(seen.device, seen.address)}",
            )
    judged = {wish.name for wish in wished}
    others = [setting for setting in seen.settings if setting.pending and setting.name not in judged]
    if others:
        measured = ", ".join(map(_describe_values, others[:8])) + (
            f" and {len(others) - 8} more (mstconfig -d {seen.address} -e query lists all)" if len(others) > 8 else ""
        )
        why = (
            "The firmware has stored new values of these settings. They take effect at the next reset (reset pending),"
            " even if that reset has a different cause."
        )
        remedy = f"{way_of_reset(seen.device, seen.address)} Or set these settings back to their active values."
        yield FirmwareObjection(WARN, measured, "no setting is waiting for a reset", why, remedy)
    if seen.errors:
        why = (
            "The list of settings that wait for a reset was not read completely:"
            f" {format_clause('; '.join(seen.errors[:3]))}."
        )
        yield FirmwareObjection(
            WARN,
            "firmware settings not read",
            "all firmware settings read",
            why,
            f"Run mstconfig -d {seen.address} -e query as root on the node: it must list the settings. If mstconfig"
            " does not exist, install mstflint; if it cannot open the device, load the driver of the HCA. Then run"
            " stage platform again.",
        )


def _is_shown_elsewhere(wish: DesiredSetting, function: PciEvidence) -> bool:
    """Return whether sysfs shows that a setting is in force, even if no tool reports its value in force. sysfs shows
    the settings that the fabric needs: the VFs that the function offers, and the link type of the port. Of the settings
    of the intent, sysfs shows only the number of VFs.

    :param wish: firmware setting with its desired value
    :param function: SR-IOV properties of the function in sysfs
    """
    return wish.needed or (wish.least and (function.sriov_total or 0) >= int(wish.value))


def _report_value_in_force(
    wish: DesiredSetting, setting: FirmwareSetting, wanted: str, seen: HcaFirmware
) -> FirmwareObjection:
    """Return the fault of a setting of the intent that the firmware has stored, and whose value in force is not
    reported.

    :param wish: firmware setting with its desired value
    :param setting: the same firmware setting as the tool reports it
    :param wanted: desired value, as text for a finding
    :param seen: firmware that mstflint or another tool reports
    """
    why = (
        f"The firmware has stored {setting.next} for {wish.name}, which takes effect at a reset. {seen.settings_from}"
        " does not report the value in force, so it is unknown whether the HCA was reset after the change."
    )
    remedy = (
        f"{way_of_reset(seen.device, seen.address)} Then run mstconfig -d {seen.address} -e query {wish.name} as root"
        f" on the node, and run stage platform again. If the column Current still has no value, the firmware does not"
        " report the value in force: waive this finding after the reset."
    )
    measured = f"{wish.name} {setting.next} stored, value in force not reported"
    return FirmwareObjection(UNKNOWN, measured, f"{wanted} in force", why, remedy)


def check_unread_settings(
    fabric: Fabric, hca: Hca, function: PciEvidence, seen: typing.Optional[HcaFirmware], fleet: Fleet
) -> typing.Iterator[FirmwareObjection]:
    """Report firmware settings that the intent asks for and that no tool has read.

    HCAs of other vendors than NVIDIA are skipped. The settings that the fabric needs are not reported, since the number
    of VFs and the link prove them.

    :param function: SR-IOV properties of the function in sysfs
    :param seen: firmware as a tool reports it; None if no tool reported it
    :param fleet: firmware of all HCAs
    """
    if hca.pci is None or hca.pci.vendor != VENDOR:
        return
    known = seen or HcaFirmware(function.address)
    unread = []
    for wish in list_desired_settings(fabric, known, fleet.intent):
        setting = known.setting(wish.name)
        offered = wish.least and (function.sriov_total or 0) >= int(wish.value)
        if not wish.needed and not offered and (setting is None or wish.met(setting.next) is None):
            unread.append(wish)
    if unread:
        names = ", ".join(wish.name for wish in unread)
        reasons = [*known.errors, *known.not_asked] or [
            f"{known.settings_from} does not report the setting" if known.settings else "no firmware tool was queried"
        ]
        why = (
            "The intent requires these settings (rdma_cluster.firmware), but their values in the firmware are unknown:"
            f" {'; '.join(reasons[:3])}."
        )
        remedy = (
            f"Run mstconfig -d {function.address} -e query {' '.join(wish.name for wish in unread)} as root on the"
            " node. The firmware shows advanced settings only if "
        )
        remedy += (
            "ADVANCED_PCI_SETTINGS is enabled. Remove settings from the intent that the firmware does not have, then"
            " run stage platform again."
        )
        yield FirmwareObjection(
            UNKNOWN,
            f"{names} not read",
            ", ".join(f"{wish.name} {wish.value}" for wish in unread),
            why,
            remedy,
        )


def _describe_remedy(seen: HcaFirmware, nic: typing.Optional[NicDevice], wish: DesiredSetting) -> str:
    """Return how to change a setting. The instruction depends on the owner of the settings of this HCA: the host,
    NVIDIA's operator, or the Arm cores of a BlueField.

    :param seen: firmware that mstflint or another tool reports
    :param nic: NicDevice of NVIDIA's operator; None if there is none
    :param wish: firmware setting with its desired value
    """
    if nic is not None and nic.configured:
        return (
            f"Set {wish.name}={wish.value} in the NicConfigurationTemplate of NicDevice {nic.name}, which controls this"
            " setting."
        )
    if seen.dpu or (nic is not None and nic.dpu):
        return f"The NIC is a BlueField in DPU mode: set {wish.name}={wish.value} on its Arm cores, never on the host."
    if nic is not None:
        return (
            f"Set {wish.name}={wish.value} in a NicConfigurationTemplate, because NVIDIA's operator manages {nic.name}"
            " (stage platform with -e platform_settle=true creates the template)."
        )
    return (
        f"Run mstconfig -d {seen.address} -y set {wish.name}={wish.value} as root on the node, or run stage"
        " platform with -e platform_settle=true."
    )


def _describe_values(setting: FirmwareSetting) -> str:
    if setting.current is None or not setting.pending:
        return f"{setting.name} {setting.next}"
    return f"{setting.name} {setting.current}, after a reset {setting.next}"
