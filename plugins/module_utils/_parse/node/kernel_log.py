# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse records of /dev/kmsg that report hardware faults of HCAs, GPUs or PCI Express. Form:
Documentation/ABI/testing/dev-kmsg. The comment at each pattern shows what the driver prints.

Complete lines never leave the node, because a kernel log may contain private data. Only the kind of the fault and the
PCI address are kept.
"""

from __future__ import annotations

import re
import typing

_ADDRESS = r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)"
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
    # aer_mask: 0x00000000 [pci/pcie/aer.c pci_print_aer]
    (re.compile(_ADDRESS + r": (?:AER: )?aer_status: 0x()"), "PCIe error reported by the firmware of the machine"),
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

Fault = tuple[str, str]


def parse_faults(records: typing.Iterable[str]) -> set[Fault]:
    """Return the kind, such as ``Xid 79``, and the PCI address of each hardware fault in the kernel log. A repeated
    fault is returned once. Records about anything else are ignored.

    :param records: records of /dev/kmsg, each with its prefix up to the semicolon
    """
    found: set[Fault] = set()
    for record in records:
        line = record.partition(";")[2].partition("\n")[0]
        for pattern, kind in _KINDS:
            match = pattern.search(line)
            if match:
                found.add((kind.format(match.group(2)), match.group(1)))
    return found
