# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes and remedies of errors of the SR-IOV network operator's config daemon: ``lastSyncError`` of
SriovNetworkNodeState, and its log.

Messages: [sriov-network-operator v1.6.0 pkg/host/internal/sriov/sriov.go, pkg/plugins/mellanox, pkg/vendors/mellanox],
followed by Go's texts of errno [Go syscall/zerrors_linux]. The order matters: the first match wins.
"""

from __future__ import annotations

import re
import typing

_DMESG = "Correct the error that the kernel log of the node (dmesg) shows for this function"
_FIRMWARE = "mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=NUMBER"
#: what the operator makes of a kernel that is locked down: cause and remedy
LOCKED_DOWN: tuple[str, str] = (
    (
        "The kernel of the node is locked down, for example by secure boot. The plugin mellanox of the operator then"
        " rejects every policy for an NVIDIA NIC, because it cannot write the firmware."
    ),
    (
        f"Set the firmware once with secure boot disabled ({_FIRMWARE}). Then add mellanox to disablePlugins of the"
        f' SriovOperatorConfig: kubectl patch sriovoperatorconfig default -n NAMESPACE --type merge -p \'{{"spec":'
        f' {{"disablePlugins": ["mellanox"]}}}}\'.'
    ),
)
_TEXTS: tuple[tuple[str, str, str], ...] = (
    (r"detected when in lockdown mode", *LOCKED_DOWN),
    (
        r"eSwitch mode to \[\w*\] on device .{0,40}: (?:invalid argument|operation not (?:supported|permitted))",
        (
            "The driver rejected the eSwitch mode: the firmware does not support it, or virtual functions existed when"
            " the mode was changed."
        ),
        (
            f"{_DMESG}, and keep eSwitchMode at legacy unless switchdev is required. Otherwise update the firmware of"
            " the NIC. Current mode: devlink dev eswitch show pci/ADDRESS."
        ),
    ),
    (
        r"can't get devlink device|eSwitch mode to .{0,80}: no such device",
        "The driver of the function does not support devlink, which the eSwitch mode requires.",
        "Install a newer driver of the NIC on the node, or remove eSwitchMode from the policy.",
    ),
    (
        r"NumVfs \(\d+\) is larger than TotalVfs \(0\)",
        "The function supports no virtual functions: SR-IOV is disabled in the BIOS or in the firmware of the NIC.",
        (
            "Follow the remedies of the findings platform.bios and platform.sriov, which enable SR-IOV in both."
            " Drain the node before it reboots."
        ),
    ),
    (
        r"is larger than TotalVfs|sriov_numvfs: numerical result out of range",
        "The policy requests more virtual functions than the function supports.",
        "Lower virtual_functions, or raise the number in the firmware of the NIC (see the findings of stage platform).",
    ),
    (
        r"sriov_numvfs: no space left on device",
        (
            "The function has no interrupt vectors (MSI-X) left for its virtual functions. With many CPUs, the physical"
            " function uses all vectors for its own queues."
        ),
        (
            f"{_DMESG} ('MSI-X interrupts available for SR-IOV'). Limit the vectors of the physical function: devlink"
            " dev param set pci/ADDRESS name msix_vec_per_pf_max value 64 cmode driverinit, then devlink dev reload"
            " pci/ADDRESS (newer drivers: see devlink dev param show pci/ADDRESS). Otherwise lower virtual_functions."
        ),
    ),
    (
        r"sriov_numvfs: cannot allocate memory",
        "The kernel has no address space left for the BARs of the virtual functions, or no bus numbers.",
        (
            f"{_DMESG} ('not enough MMIO resources for SR-IOV'). Drain the node, enable MMIO above 4G in its BIOS or"
            " add the kernel argument pci=realloc, and reboot it."
        ),
    ),
    (
        r"sriov_numvfs: device or resource busy",
        (
            "A different number of virtual functions already exists, and one of them is in use, or another program"
            " created them."
        ),
        (
            "End the pods and virtual machines that use the virtual functions, then remove them: echo 0 >"
            " /sys/bus/pci/devices/ADDRESS/sriov_numvfs."
        ),
    ),
    (
        r"sriov_numvfs: (?:no such file or directory|function not implemented)",
        "The function has no driver that can create virtual functions.",
        "Load its driver on the node (lspci -k -s ADDRESS), and check that the function is not bound to vfio-pci.",
    ),
    (
        (
            r"sriov_numvfs: (?:input/output error|connection timed out|invalid argument|operation not"
            r" permitted|operation not supported)"
        ),
        "The driver rejected the creation of the virtual functions.",
        f"{_DMESG}: it contains the reason of the driver. Then update the firmware of the NIC.",
    ),
    (
        r"policy is (?:configured as )?[Ee]xternally ?[Mm]anaged",
        (
            "The policy is externallyManaged, and the configuration of the function does not match the policy. The"
            " operator changes nothing in this case."
        ),
        (
            "Configure the number of virtual functions, the MTU and the eSwitch mode on the node first, or remove"
            " externallyManaged from the policy."
        ),
    ),
    (
        r"does not support link type change|Unknown link type|Not supported link type",
        "The link type of the port differs from the policy, and the operator cannot change it.",
        (
            "Set the link type manually (mstconfig -d ADDRESS set LINK_TYPE_P1=1 for InfiniBand, 2 for Ethernet),"
            " then drain and reboot the node. Or use the profile for the current link type."
        ),
    ),
    (
        r"in the mstconfig output|Failed to open the device|exit status .{0,40}mst",
        "The operator could not read the firmware of the NIC with mstconfig.",
        (
            "Run mstconfig -d ADDRESS query on the node as root. Update the operator: its mstflint may be too old for"
            " this NIC."
        ),
    ),
    (
        r"(?:no guid pool|no guid allocation found|guid (?:list|range|rangeStart))",
        "The GUID file on the node does not match the virtual functions.",
        (
            "Correct /etc/sriov-operator/infiniband/guids on the node, or remove it, so that the operator generates the"
            " GUIDs."
        ),
    ),
    (
        r"reload udev rules",
        "The config daemon could not reload the udev rules of the node.",
        "Run udevadm control --reload-rules on the node, and check that systemd-udevd runs.",
    ),
)
_PATTERNS = tuple((re.compile(pattern), why, remedy) for pattern, why, remedy in _TEXTS)
#: of a PCI function, which stands for ADDRESS in a remedy
_ADDRESS = re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
#: characters of an error that are looked at
_LONGEST = 2000


def explain(error: str) -> typing.Optional[tuple[str, str]]:
    """Return the cause and the remedy of an error of the config daemon, or None if its message is unknown.

    :param error: error text in the SriovNetworkNodeState or in the log of the config daemon
    """
    text = error[:_LONGEST]
    known = next(((why, remedy) for pattern, why, remedy in _PATTERNS if pattern.search(text)), None)
    addresses = set(_ADDRESS.findall(text))
    if known is None or len(addresses) != 1:
        return known
    why, remedy = known
    return why, remedy.replace("ADDRESS", addresses.pop())


def add_cause(error: str) -> tuple[str, str]:
    """Return two texts: the error with its cause appended, and the remedy. If the message is unknown, the error is
    returned unchanged and the remedy is empty. An empty error becomes ``no reason reported``.

    :param error: error as the config daemon reports it; empty if it reports no reason
    """
    known = explain(error)
    if known is None:
        return error or "no reason reported", ""
    why, remedy = known
    return f"{error}. {why}".rstrip("."), remedy
