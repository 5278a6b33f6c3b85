# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse records of /dev/kmsg that report faults of HCAs, GPUs or PCI Express. Form:
Documentation/ABI/testing/dev-kmsg. The comment at each pattern shows what the driver prints.

A record has one of three causes. A fault of a device or its driver remains until the device is reset or replaced. A
program that ends with an error on a GPU also makes the driver log an Xid, while the GPU works. A link repairs a
corrected error itself.

Complete lines never leave the node, because a kernel log may contain private data. Only the kind of the fault and the
PCI address are kept.
"""

from __future__ import annotations

import re
import typing

Cause = typing.Literal["device", "program", "corrected"]

#: Xids for which NVIDIA's Xid catalog names the program as the cause: its immediate action is to restart the program,
#: and its next step is to check the program (11, 13, 25, 31, 69), or its description says that the program was the
#: cause or was ended (43, 45, 137). Others with this immediate action, such as 94, come from the hardware as well
_OF_PROGRAMS = frozenset({11, 13, 25, 31, 43, 45, 69, 137})
#: errors of the link between a Grace CPU and its GPU that the link corrected [NVIDIA's Xid catalog]
_CORRECTED_XIDS = frozenset({121})
_BY_FIRMWARE = "PCIe error reported by the firmware of the machine"
_ADDRESS = r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)"
#: pcieport 0000:17:01.0: AER: aer_uncor_severity: 0x004e2030, only for an error that was not corrected
#: [pci/pcie/aer.c pci_print_aer]
_SEVERITY = re.compile(_ADDRESS + r": (?:AER: )?aer_uncor_severity: 0x")
#: NVRM: Xid (PCI:0000:18:00): 79, pid=...; mlx5_core 0000:3c:00.0: poll_health:...: device's health compromised -
#: reached miss count; pcieport 0000:17:01.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), ...
#: [kernel-open/nvidia, mlx5/core/health.c, pci/pcie/aer.c]
_KINDS: tuple[tuple[typing.Pattern[str], str], ...] = (
    (re.compile(r"NVRM: Xid \(PCI:" + _ADDRESS + r"\): ([0-9]{1,4})\b"), "Xid {}"),
    (
        re.compile(
            r"mlx5_core " + _ADDRESS + r": .{0,400}(?:health compromised|Fatal error|firmware internal error)()"
        ),
        "mlx5 health",
    ),
    (re.compile(_ADDRESS + r": PCIe Bus Error: severity=(Correct(?:ed|able)|Uncorrect(?:ed|able))"), "PCIe error {}"),
    # where the firmware of the machine handles PCIe errors first: pcieport 0000:17:01.0: AER: aer_status: 0x00004000,
    # aer_mask: 0x00000000 [pci/pcie/aer.c pci_print_aer]. The records do not contain the word for the severity
    (re.compile(_ADDRESS + r": (?:AER: )?aer_status: 0x()"), _BY_FIRMWARE),
    # Port module event[error]: module 0, Cable error, High Temperature; temp_warn:171:(pid 0): High temperature on
    # sensors with bit set 0 1. A slot with too little power is left out: some machines report it at each boot, without
    # an effect [mlx5/core/events.c]
    (re.compile(r"mlx5_core " + _ADDRESS + r": .{0,400}Port module event\[error\]()"), "mlx5 port module error"),
    (re.compile(r"mlx5_core " + _ADDRESS + r": .{0,400}High temperature on sensors()"), "mlx5 high temperature"),
    # bnxt_en 0000:c1:00.0 ens1f0np0: Detected firmware fatal condition, initiating reset [bnxt.c bnxt_fw_exception]
    (re.compile(r"bnxt_en " + _ADDRESS + r"[ :].{0,100}Detected firmware fatal condition()"), "bnxt firmware fatal"),
    # amdgpu 0000:c3:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block [amdgpu_ras.c]
    (
        re.compile(r"amdgpu " + _ADDRESS + r": .{0,100}\b0*[1-9][0-9]{0,19} uncorrectable hardware errors() detected"),
        "amdgpu uncorrectable error",
    ),
)


class Fault(typing.NamedTuple):
    """A kind of fault that the kernel has logged for a PCI function.

    :ivar cause: ``device`` for a fault of the device or its driver, ``program`` for an error of a program on a GPU,
        ``corrected`` for an error that the link repaired
    :ivar kind: kind of the fault, such as ``Xid 79``
    :ivar address: PCI address of the function, such as ``0000:18:00.0``; that of an Xid has no function number
    """

    cause: Cause
    kind: str
    address: str


def parse_faults(records: typing.Iterable[str]) -> set[Fault]:
    """Return the faults in the kernel log. A repeated fault is returned once. Records about anything else are ignored.

    :param records: records of /dev/kmsg, each with its prefix up to the semicolon
    """
    found: set[Fault] = set()
    not_corrected: set[str] = set()
    for record in records:
        line = record.partition(";")[2].partition("\n")[0]
        severe = _SEVERITY.search(line)
        if severe:
            not_corrected.add(severe.group(1))
        for pattern, kind in _KINDS:
            match = pattern.search(line)
            if match:
                found.add(Fault(_find_cause(kind, match.group(2)), kind.format(match.group(2)), match.group(1)))
    return {
        fault._replace(cause="device") if fault.kind == _BY_FIRMWARE and fault.address in not_corrected else fault
        for fault in found
    }


def _find_cause(kind: str, detail: str) -> Cause:
    """Return the cause of a fault. An error reported by the firmware of the machine is corrected, unless a record with
    its severity follows.

    :param kind: text of the kind in ``_KINDS``
    :param detail: number of the Xid, or severity of the PCIe error; empty for other kinds
    """
    if kind.startswith("Xid"):
        number = int(detail)
        return "program" if number in _OF_PROGRAMS else "corrected" if number in _CORRECTED_XIDS else "device"
    return "corrected" if kind == _BY_FIRMWARE or detail.startswith("Correct") else "device"
