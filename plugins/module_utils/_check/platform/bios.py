# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the BIOS leaves room for VFs, by their effects on the node. Check id: ``platform.bios``.

The kernel creates no VF if the BARs of all VFs have no memory, or if the bus number of the VF is not below the port
above the function (drivers/pci/iov.c, sriov_enable: "not enough MMIO resources for SR-IOV", "bus out of range"). Both
are assigned at boot, mostly by the BIOS. So the settings of the BIOS need not be read: they are right if VFs exist, or
can be created. The IOMMU and the firmware have checks of their own.

The effects on the node have precedence. If they can't be read, the report of the BMC decides, provided that the
inventory names a BMC. If they show a failure, the BMC names the setting.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.intent.intent import Fabric
from ..._model.node.bios import Key
from ..._model.node.hca import Hca
from ..._model.node.platform import PciEvidence
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .bmc import BmcReport, decide, explain
from .sriov_texts import describe_no_sriov

EXPECTED = "VFs that exist, or memory and bus numbers for them"
_ADDRESS = re.compile(r"\A[0-9a-f]+:([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])\Z")
_REALLOC_OFF = "realloc=off"
#: names of BIOS settings that VFs need, by key
_SWITCHES: dict[Key, str] = {"sriov": "SR-IOV", "above_4g": "Above 4G decoding", "ari": "ARI"}


def is_hidden(hca: Hca) -> bool:
    """Return whether the SR-IOV capability of an HCA is invisible because only the first 256 bytes of its configuration
    space can be read. If so, the cause is the BIOS, and only the check ``platform.bios`` reports it.
    """
    return hca.sriov is None and hca.sriov_absence == "hidden"


def check(
    subject: str,
    fabric: Fabric,
    hca: Hca,
    function: PciEvidence,
    kernel_arguments: typing.Sequence[str],
    said: typing.Optional[BmcReport] = None,
) -> typing.Iterator[Finding]:
    """Yield at most one finding on a physical function. If the function offers no VFs, or their number is not known,
    there is no finding; platform.sriov reports it.

    :param subject: subject of the finding
    :param function: SR-IOV properties of the function in sysfs
    :param kernel_arguments: arguments of the running kernel about PCI and the IOMMU
    :param said: report of the BMC of the node; None if the inventory names no BMC
    """
    if is_hidden(hca):
        finding = Finding(
            "platform.bios",
            subject,
            FAIL,
            "configuration space of 256 bytes, without the SR-IOV capability",
            "configuration space of 4096 bytes, with the SR-IOV capability",
            *describe_no_sriov(hca, fabric),
        )
        yield explain(finding, said)
        return
    if not function.sriov_total:
        return
    made, offered = function.sriov_current or 0, function.capability
    if offered and function.sriov_current is not None and offered.current != made:
        yield Finding(
            "platform.bios",
            subject,
            UNKNOWN,
            f"{made} VFs in the kernel, {offered.current} VFs in the configuration space of the function",
            "the same number of VFs in both",
            "A program reset the function while the kernel kept its number of VFs, or VFs were created or"
            " removed while the node was read.",
            f"Run lspci -vvv -s {function.address} as root on the node, and compare 'Number of VFs' with cat"
            f" /sys/bus/pci/devices/{function.address}/sriov_numvfs. If they differ, drain and reboot the"
            " node. Then run stage platform again.",
        )
        return
    missing = _without_memory(function)
    if missing and not made:
        yield explain(_report_no_memory(subject, function, missing, kernel_arguments, said), said)
        return
    wanted = min(fabric.virtual_functions, function.sriov_total)
    buses = _compute_vf_buses(function, wanted) if made < wanted else None
    if buses and function.last_bus is not None and buses[1] > function.last_bus:
        why = (
            f"The BIOS gave the port above the function the buses up to {function.last_bus:#04x}, but VF {wanted}"
            f" needs bus {buses[1]:#04x}. The kernel cannot create this VF."
        )
        off = _list_switches_to_enable(said, "ari", "sriov")
        remedy = (
            f"Drain the node, enable {' and '.join(off)} in its BIOS, so that VFs need no bus of their own, or get a"
            " bus, and reboot it. Then run stage platform again."
            if off
            else "Drain the node, and update its BIOS, or power it off and move the card to another slot. Then"
            " run stage platform again."
        )
        measured = f"bus {buses[1]:#04x} needed, buses up to {function.last_bus:#04x} available"
        expected = f"a bus number for each of {count_of(wanted, 'VF')}"
        yield explain(Finding("platform.bios", subject, FAIL, measured, expected, why, remedy), said)
        return
    if not made and _has_bar_mismatch(function):
        question = "No VF exists, and the function and the kernel report different VF BARs with memory (MMIO)"
        yield _make_unproven_finding(subject, function, "0 VFs, room for VFs not verified", question)
        return
    question = "" if made else _describe_missing_proof(function, buses)
    yield (
        decide(_make_unproven_finding(subject, function, "0 VFs, room for VFs not verified", question), said)
        if question
        else build_pass("platform.bios", subject, _describe_evidence(function), EXPECTED)
    )


def _without_memory(function: PciEvidence) -> tuple[int, ...]:
    """Return the numbers of the VF BARs that have no memory address: those that the kernel marks as unassigned, and
    those of the capability that the kernel no longer lists because they did not fit. The result is empty if the memory
    is not known.

    :param function: SR-IOV properties of the function in sysfs
    """
    if function.memory is None:
        return ()
    bars = function.capability.bars if function.capability else ()
    return tuple(sorted({*function.memory.unplaced, *bars} - set(function.memory.placed)))


def _report_no_memory(
    subject: str,
    function: PciEvidence,
    missing: typing.Sequence[int],
    kernel_arguments: typing.Sequence[str],
    said: typing.Optional[BmcReport],
) -> Finding:
    which = f"VF BAR {', '.join(map(str, missing))} without memory"
    why = (
        f"The memory (MMIO) of {function.sriov_total} VFs did not fit into the memory windows that the BIOS gave the"
        " PCI bridges above the function, so the kernel creates no VF."
    )
    off = _list_switches_to_enable(said, "sriov", "above_4g")
    switch = f"enable {' and '.join(off)}, and " if off else ""
    remedy = (
        f"Drain the node. In its BIOS, {switch}increase the memory for PCI (MMIO size, PCI resource"
        " padding). Then reboot the node."
    )
    blocked = next(
        (argument for argument in kernel_arguments if argument.startswith("pci=") and _REALLOC_OFF in argument), None
    )
    more = (
        f"Remove {blocked} from the kernel arguments, because it prevents the kernel from making room."
        if blocked
        else "If the memory still does not fit, boot the node with the kernel argument pci=realloc."
    )
    expected = (
        f"memory for {'this BAR' if len(missing) == 1 else 'these BARs'} of {count_of(function.sriov_total or 0, 'VF')}"
    )
    return Finding(
        "platform.bios", subject, FAIL, which, expected, why, f"{remedy} {more} Then run stage platform again."
    )


def _list_switches_to_enable(said: typing.Optional[BmcReport], *keys: Key) -> list[str]:
    """Return the names of those of these BIOS settings that the BMC does not report as on.

    Without a report, return all names.

    :param said: report of the BMC of the node; None if the inventory names no BMC
    :param keys: keys of the settings
    """
    states = said.states if said is not None else {}
    return [_SWITCHES[key] for key in keys if key not in states or states[key].state != "ok"]


def _compute_vf_buses(function: PciEvidence, count: int) -> typing.Optional[tuple[int, int]]:
    """Return two bus numbers: that of the physical function, and that of its VF number ``count``, computed as in the
    kernel (pci_iov_virtfn_bus). Return None if the PCI address or the SR-IOV capability is not known.

    :param function: SR-IOV properties of the function in sysfs
    :param count: number of the VF, from 1
    """
    match = _ADDRESS.match(function.address)
    if match is None or function.capability is None:
        return None
    bus, device, number = (int(part, 16) for part in match.groups())
    return bus, bus + (
        (device << 3 | number) + function.capability.offset + function.capability.stride * (count - 1) >> 8
    )


def _has_bar_mismatch(function: PciEvidence) -> bool:
    """Return whether the kernel has memory for VF BARs that the function does not list, or for no VF BAR.

    The result is False if the SR-IOV capability or the memory is not known.

    :param function: SR-IOV properties of the function in sysfs
    """
    if function.capability is None or function.memory is None:
        return False
    return not function.memory.placed or bool({*function.memory.placed} - {*function.capability.bars})


def _describe_missing_proof(function: PciEvidence, buses: typing.Optional[tuple[int, int]]) -> str:
    """Return why it can't be proven that a function without VFs has room for them; empty if it can be proven.

    :param function: SR-IOV properties of the function in sysfs
    :param buses: bus numbers of the function and of its last VF; None if not known
    """
    if function.capability is None:
        return (
            "No VF exists, and the SR-IOV capability in the configuration space could not be read: only root can read"
            " more than the first 64 bytes"
        )
    if function.memory is None:
        return "No VF exists, and the kernel of the node does not report whether memory (MMIO) is assigned to VFs"
    if buses is None:
        return "No VF exists, and the bus numbers of VFs could not be computed"
    if function.last_bus is None and buses[0] != buses[1]:
        return (
            f"No VF exists, VFs would need bus {buses[1]:#04x}, and no port above the function reports whether that bus"
            " is free"
        )
    return ""


def _make_unproven_finding(
    subject: str, function: PciEvidence, measured: str, question: str, remedy: str = ""
) -> Finding:
    by_hand = (
        f"Run lspci -vvv -s {function.address} as root on the node: each Region below Single Root I/O Virtualization"
        " must have an address. If all have one, waive this finding with that output as the reason. If a Region has"
        " none, drain the node, enable Above 4G decoding in its BIOS and reboot it. Then run stage platform again."
    )
    if function.capability is None:
        by_hand = (
            "Let Ansible read the node as root (ansible_become: true). If it reads the node as root already, follow"
            f" these steps. {by_hand}"
        )
    return Finding(
        "platform.bios", subject, UNKNOWN, measured, EXPECTED, f"{format_clause(question)}.", remedy or by_hand
    )


def _describe_evidence(function: PciEvidence) -> str:
    """Return as text the evidence that there is room for VFs: existing VFs, or memory and bus numbers for them. ARI,
    and ACS at the port above the function, are added.

    :param function: SR-IOV properties of the function in sysfs
    """
    parts = [
        (
            f"{function.sriov_current} VFs exist"
            if function.sriov_current
            else f"memory and bus numbers for {function.sriov_total} VFs"
        )
    ]
    if function.capability:
        parts.append(f"ARI {'on' if function.capability.ari else 'off'}")
    if function.acs:
        parts.append(f"ACS {f'{function.acs.control:#06x}' if function.acs.control else 'off'} at the port above")
    return ", ".join(parts)
