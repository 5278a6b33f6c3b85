# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the firmware of an HCA: the running version and settings, those that a reset would activate, and whether they
are those of its model. Check id: ``platform.firmware``.

sysfs and the PCI configuration space show the running state, which proves SRIOV_EN and NUM_OF_VFS. mstconfig, devlink
or NVIDIA's NIC configuration operator report the values stored for the next reset. Without such a report, only the
running state is judged.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet import vendors
from ..._model.base.phrases import count_of, describe_read_remedy, format_clause
from ..._model.intent.intent import Fabric
from ..._model.node.firmware import (
    HcaFirmware,
    NicDevice,
    NicDevices,
    parse_number,
    way_of_reset,
)
from ..._model.node.hca import Hca
from ..._model.node.platform import PciEvidence
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, Status, build_pass
from .firmware_fleet import Fleet, find_odd_settings, find_odd_version, find_usual, split_version
from .firmware_settings import FirmwareObjection, check_settings, check_unread_settings

_AGAIN, _AGAIN_AFTER = "Then run stage platform again.", ", then run stage platform again."
#: what the files of the driver contain, by name
_FILES = {"fw_ver": "firmware version (fw_ver)", "board_id": "PSID (board_id)"}
_GRAVEST: tuple[Status, ...] = (FAIL, UNKNOWN, WARN)


def report_unread(nics: NicDevices) -> typing.Iterator[Finding]:
    """Warn about each node for which the NicDevices of NVIDIA's NIC configuration operator could not be read. Its HCAs
    are judged without them.

    :param nics: reports of NVIDIA's NIC configuration operator
    """
    for node, causes in sorted(unread_of(nics).items()):
        told = "; ".join(causes[:3])
        why = (
            f"The NicDevice objects of the node could not be read: {format_clause(told)}. So it is unknown whether"
            " NVIDIA's NIC configuration operator manages its firmware."
        )
        remedy = (
            "Run kubectl get nicdevices -A -o yaml --show-managed-fields. If another program than the operator"
            f" wrote the objects of {node}, stop that program. Then delete the pod of the operator's daemon on"
            f" {node}, so that it starts again and writes them, and run stage platform again."
        )
        yield Finding(
            "platform.firmware",
            f"{node} NicDevice",
            WARN,
            "NicDevice objects not read",
            "NicDevice objects read",
            why,
            remedy,
        )
    if nics.errors:
        why = (
            f"The NicDevice objects could not be read: {format_clause('; '.join(nics.errors[:3]))}. So it is unknown"
            " whether NVIDIA's NIC configuration operator manages the firmware."
        )
        remedy = (
            "Without a cluster, set platform_nic_devices: false."
            f" {describe_read_remedy('Then run stage platform again.')}"
        )
        yield Finding(
            "platform.firmware",
            "NicDevice",
            WARN,
            "NicDevice objects not listed",
            "NicDevice objects listed, or none exist",
            why,
            remedy,
        )


def unread_of(nics: NicDevices) -> dict[str, list[str]]:
    """Return the reasons for which NicDevice objects could not be read, by node name.

    :param nics: reports of NVIDIA's NIC configuration operator
    """
    found: dict[str, list[str]] = {}
    for item in nics.unread:
        found.setdefault(item.node, []).append(item.why)
    return found


def check(node: str, fabric: Fabric, hca: Hca, function: PciEvidence, fleet: Fleet) -> typing.Iterator[Finding]:
    """Check the firmware of an HCA: it offers enough VFs, its version is the usual version of its model, its settings
    are as desired, and nothing is stored that needs a reset. Yield at most one finding with all faults. If the only
    fault is the number of VFs in sriov_totalvfs, yield nothing, since ``platform.sriov`` reports it.

    :param node: name of the node
    :param function: SR-IOV properties of the HCA in sysfs
    :param fleet: firmware of all HCAs, with which this HCA is compared
    """
    subject, wanted, total = f"{node} {hca.name}", fabric.virtual_functions, function.sriov_total or 0
    seen, nic = fleet.firmware_of(node, function.address), fleet.nic_of(node, function.address)
    stored = (
        "no setting is waiting for a reset"
        if seen and seen.settings
        else "any stored settings, because they are not reported"
    )
    expected = f"at least {count_of(wanted, 'VF')} offered, the usual firmware version of its model; {stored}"
    offers = [*_check_offered(hca, function, wanted)]
    objections = [
        *offers,
        *(check_settings(fabric, function, seen, nic, fleet) if seen else ()),
        *check_unread_settings(fabric, hca, function, seen, fleet),
    ]
    if not offers:
        objections += [*_check_unread(hca), *_check_version(hca, fleet)]
    told = tuple(f"{objection.measured.partition(' ')[0]} " for objection in objections)
    differing = [*_check_differences(fabric, hca, seen, fleet, told)] if seen else []
    objections += [*differing, *_check_pending(hca, function, seen, nic)]
    if objections:
        reset = way_of_reset(hca.pci.device if hca.pci else "", function.address)
        yield _join_objections(subject, objections, reset)
    elif total >= wanted:
        described = _describe_firmware(hca, seen, nic, fleet)
        yield build_pass("platform.firmware", subject, f"{total} VFs offered, {described}", expected)


def _join_objections(subject: str, objections: typing.Sequence[FirmwareObjection], reset: str) -> Finding:
    """Join all faults of an HCA's firmware into one finding, with the most severe first. The finding has the status of
    that fault.

    :param subject: subject of the finding
    :param objections: faults of the firmware
    :param reset: instruction to reset the HCA, which the remedy contains only once
    """
    ordered = sorted(objections, key=lambda objection: _GRAVEST.index(objection.status))
    measured, expected = (
        "; ".join(dict.fromkeys(parts))
        for parts in ([item.measured for item in ordered], [item.expected for item in ordered])
    )
    why, remedy = (
        " ".join(dict.fromkeys(parts))
        for parts in (
            [item.why for item in ordered],
            [item.remedy.replace(f" {_AGAIN}", "").replace(_AGAIN_AFTER, ".") for item in ordered],
        )
    )
    repeated = remedy.count(reset) - 1
    remedy = remedy.replace(f"{reset} ", "", repeated) if repeated > 0 else remedy
    remedy = f"{remedy} {_AGAIN}"
    return Finding("platform.firmware", subject, ordered[0].status, measured, expected, why, remedy)


def _check_offered(hca: Hca, function: PciEvidence, wanted: int) -> typing.Iterator[FirmwareObjection]:
    offered, total = function.capability, function.sriov_total or 0
    if offered and total >= wanted and (offered.total < wanted or offered.initial != offered.total):
        why = (
            f"The kernel read TotalVFs {total} at boot, so the firmware settings changed after the boot."
            if offered.total != total
            else "The SR-IOV capability of the function reports two numbers that contradict each other."
        )
        why += f" The kernel creates no VF while InitialVFs differs from the TotalVFs of its boot ({total})."
        expected = f"TotalVFs at least {wanted}, InitialVFs equal to TotalVFs"
        remedy = (
            "Drain and power-cycle the node, so that the firmware and the kernel start anew. If the numbers stay,"
            f" {_describe_set_again(hca, function, max(wanted, total))}"
        )
        measured = f"TotalVFs {offered.total}, InitialVFs {offered.initial}"
        yield FirmwareObjection(FAIL, measured, expected, why, remedy)


def _describe_set_again(hca: Hca, function: PciEvidence, count: int) -> str:
    """Return the instruction to write the number of VFs to the firmware of an HCA again, for use in a sentence.

    :param function: SR-IOV properties of the HCA in sysfs
    :param count: number of VFs
    """
    if vendors.find_vendor(hca) is not vendors.NVIDIA:
        return f"install the firmware of the HCA again ({vendors.describe_burning(hca)})."
    return (
        "set the number of VFs in the firmware of the HCA again, as root on the node: mstconfig -d"
        f" {function.address} set SRIOV_EN=1 NUM_OF_VFS={count}. Then drain and power-cycle the node."
    )


def _check_unread(hca: Hca) -> typing.Iterator[FirmwareObjection]:
    names = sorted({"fw_ver", "board_id"} & set(hca.unread))
    if names:
        expected = f"{' and '.join(map(_FILES.__getitem__, names))} read"
        why = (
            "Reading the files of the driver failed, so it is unknown whether this HCA runs the same firmware as other"
            " HCAs of its model."
        )
        remedy = (
            f"Run cat /sys/class/infiniband/{hca.rdma_device}/{names[0]} as root on the node. If it prints an"
            " error, drain the node and reload the driver of the HCA. Then run stage platform again."
        )
        yield FirmwareObjection(WARN, f"{' and '.join(map(_FILES.__getitem__, names))} not read", expected, why, remedy)


def _check_version(hca: Hca, fleet: Fleet) -> typing.Iterator[FirmwareObjection]:
    odd = find_odd_version(hca, fleet)
    if odd is not None:
        why = (
            f"{odd.count} of {odd.of} HCAs of its model ({hca.board or 'no PSID'}) run {odd.usual}. HCAs with different"
            " firmware versions can behave differently."
        )
        remedy = (
            f"Install {odd.usual} on this HCA ({vendors.describe_burning(hca)})"
            + (f", or install {odd.value} on the other HCAs" if odd.value else "")
            + ". Then run stage platform again."
        )
        measured = f"firmware {odd.value or 'without a version'}"
        yield FirmwareObjection(WARN, measured, f"firmware {odd.usual}", why, remedy)


def _check_differences(
    fabric: Fabric, hca: Hca, seen: HcaFirmware, fleet: Fleet, told: tuple[str, ...]
) -> typing.Iterator[FirmwareObjection]:
    """Report firmware settings in which an HCA differs from most HCAs of its model on the fabric.

    :param seen: firmware of the HCA
    :param fleet: firmware of all HCAs
    :param told: names of the settings that another fault of the HCA reports, each with a blank after it
    """
    odd = [one for one in find_odd_settings(fabric.name, hca, seen, fleet) if f"{one.what} " not in told]
    if odd:
        measured = ", ".join(f"{one.what} {one.value}" for one in odd)
        why = "; ".join(f"{one.what} is {one.usual} on {one.count} of {one.of} HCAs of its model" for one in odd)
        usually = " ".join(
            f"{one.what}={parse_number(one.usual) if parse_number(one.usual) is not None else one.usual}" for one in odd
        )
        expected = ", ".join(f"{one.what} {one.usual}" for one in odd)
        remedy = (
            f"Run mstconfig -d {seen.address} -y set {usually} as root on the node, to set the values of the other"
            f" HCAs. {way_of_reset(hca.pci.device if hca.pci else '', seen.address)} Or set the values of this HCA on"
            " the other HCAs. Then run stage platform again."
        )
        yield FirmwareObjection(
            WARN,
            measured,
            expected,
            f"{why} ({hca.board or 'no PSID'}) on fabric '{fabric.name}'. HCAs with different settings can behave"
            " differently.",
            remedy,
        )


def _check_pending(
    hca: Hca, function: PciEvidence, seen: typing.Optional[HcaFirmware], nic: typing.Optional[NicDevice]
) -> typing.Iterator[FirmwareObjection]:
    """Report a firmware version that is stored and does not run yet, a change by NVIDIA's operator that is not in force
    yet, and a driver that reports another running version than the tool.

    :param function: SR-IOV properties of the function in sysfs
    :param seen: firmware that mstflint or another tool reports; None if no tool did
    :param nic: NicDevice of NVIDIA's operator; None if there is none
    """
    told = seen.running if seen else None
    # of the other vendors sysfs shows the version of another part, such as that of the RDMA interface for irdma [src
    # linux drivers/infiniband/hw/irdma/verbs.c irdma_get_dev_fw_str]
    by_driver = hca.firmware if vendors.find_vendor(hca) is vendors.NVIDIA else None
    running = (told.value if told else None) or by_driver
    stored, source = (
        (nic.firmware, "NicDevice")
        if nic and nic.firmware
        else (seen.stored.value, seen.stored.source)
        if seen and seen.stored
        else ("", "")
    )
    if running and stored and split_version(running) != split_version(stored):
        why = f"Version {stored} is stored in the flash ({source}), but version {running} is running (reset pending)."
        yield FirmwareObjection(
            WARN,
            f"firmware {running} running, {stored} stored",
            f"firmware {stored} running",
            why,
            vendors.activate_firmware(hca, function.address),
        )
    if told and told.value and by_driver and split_version(told.value) != split_version(by_driver):
        yield FirmwareObjection(
            WARN,
            f"firmware {told.value} reported by {told.source}, {by_driver} by the driver",
            "the same version from both sources",
            f"The tool {told.source} and the driver report different versions, so the running version is unknown.",
            f"Compare mstflint -d {function.address} query full with /sys/class/infiniband/{hca.name}/fw_ver on the"
            " node. If they differ, drain and power-cycle the node.",
        )
    if nic and nic.waits:
        why = (
            "NVIDIA's NIC configuration operator has not finished the configuration of this NIC:"
            f" {nic.waits}{f' ({nic.message})' if nic.message else ''}."
        )
        remedy = (
            f"Run kubectl describe nicdevices -A, and read the conditions of {nic.name}. Correct the error that they"
            " show, or wait until the operator has finished, then run stage platform again."
        )
        yield FirmwareObjection(
            WARN,
            f"NicDevice {nic.name}: {nic.waits}",
            f"NicDevice {nic.name}: configuration finished",
            why,
            remedy,
        )


def _describe_firmware(
    hca: Hca, seen: typing.Optional[HcaFirmware], nic: typing.Optional[NicDevice], fleet: Fleet
) -> str:
    """Return a text for an HCA without faults: its firmware version, how many HCAs of its model have it, and the
    sources of its settings.

    :param seen: firmware as a tool reports it; None if no tool reported it
    :param nic: NicDevice of NVIDIA's operator; None if there is none
    :param fleet: firmware of all HCAs
    """
    counts, usual = find_usual(hca, fleet)
    alike = f", same as {counts[usual or '']} of {sum(counts.values())} of its model" if counts else ""
    parts = [f"firmware {hca.firmware} ({hca.board or 'no PSID'}){alike}" if hca.firmware else "version not reported"]
    if seen and seen.settings:
        parts.append(f"settings from {seen.settings_from}")
    if nic:
        parts.append(f"NicDevice {nic.name}")
    if (seen and seen.dpu) or (nic and nic.dpu):
        parts.append("a BlueField in DPU mode, whose Arm cores control its settings")
    return ", ".join(parts)
