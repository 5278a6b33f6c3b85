# SPDX-License-Identifier: GPL-3.0-or-later

"""Map each key of the collection's BIOS settings, such as sriov, to the BIOS attributes of a vendor that it covers.
Display names are used first, because vendors agree on them. A table of attribute names is the fallback.
"""

from __future__ import annotations

import dataclasses
import re

from ..._model.node.bios import Key


@dataclasses.dataclass(frozen=True)
class KeyRow:
    """The names by which the BIOS attributes of a setting of the collection, such as sriov, are found.

    :ivar display: regular expressions, one of which a display name must contain
    :ivar names: attribute names. A sequence of characters that are neither letters nor digits matches any such sequence
        of at most four characters, because boards write ``SR-IOVSupport``, ``SR_IOVSupport_0047`` and
        ``IntelVTforDirectedI/O(VT-d)#1E12``. A name that ends in an underscore may be followed by four hexadecimal
        digits, which differ between boards. ``#`` matches a number
    :ivar without: regular expression for display names that match ``display`` but belong to other settings; empty if
        there are none
    """

    display: tuple[str, ...]
    names: tuple[str, ...]
    without: str = ""


TABLE: dict[Key, KeyRow] = {
    "sriov": KeyRow(
        ("SR-?IOV",),
        (
            "SriovGlobalEnable",
            "Sriov",
            "DevicesandIOPorts_SRIOV",
            "SR_IOVSupport_",
            "SRIOVSupport_",
            "SriovSupport",
            "SRIOVEnable",
        ),
        # of single cards
        r"\bSlot|\bNIC\b",
    ),
    "iommu": KeyRow(
        # Dell's "Virtualization Technology" is the processor's and that of I/O: its help says that the DMAR table comes
        # with it
        ("VT for Directed I/?O", r"\bVT-d\b", "^IOMMU", "AMD.{0,64}I/O Virtual", "^Virtualization Technology$"),
        (
            "ProcVirtualization",
            "IommuSupport",
            "IntelProcVtd",
            "ProcAmdIoVt",
            "DevicesandIOPorts_IntelVTforDirectedIOVTd",
            "DevicesandIOPorts_IOMMU",
            "IntelVTforDirectedI_O_VT_d__",
            "IOMMU_",
            "VTdSupport",
        ),
        "DMA Protection|Pre-?boot",
    ),
    "acs": KeyRow(
        (r"\bACS", "Access Control Serv"),
        ("AccessControlService", "Processors_PCIeACSCTL", "PCIeACSCTL_", "Socket#Pcie#AdvertiseACS"),
    ),
    "ari": KeyRow(("^ARI ",), ("ARISupport_", "ARIEnable")),
    "above_4g": KeyRow(("Above 4G", "Memory Mapped I/?O above 4"), ("MmioAbove4Gb", "Above4GDecoding_")),
    "numa_per_socket": KeyRow(
        ("NUMA nodes per socket", "Sub.?NUMA", r"\bSNC\b"),
        (
            "SubNumaCluster",
            "NumaNodesPerSocket",
            "NumaMemoryDomainsPerSocket",
            "Processors_SNC",
            "NUMANodesPerSocket_",
            "SNC_",
        ),
        "changed|Distance",
    ),
    "smt": KeyRow(
        ("Hyper.?Thread", "Logical Processor$", r"\bSMT\b"),
        (
            "LogicalProc",
            "ProcSMT",
            "ProcHyperthreading",
            "Processors_HyperThreading",
            "Processors_SMTMode",
            "Hyper_Threading_ALL__",
            "SMTControl_",
            # by its display name, and in truth, Enabled is on
            "ProcessorHyperThreadingDisable",
        ),
        "Idling",
    ),
    "c_states": KeyRow(
        ("Package C.?State$", "^C.?States$", "Global C-state", "C6 Report", r"\bC1E\b"),
        (
            "ProcCStates",
            "ProcC1E",
            "DfCState",
            "MinProcIdlePower",
            "DataFabricCStateEnable",
            "Processors_CStates",
            "Processors_C1EnhancedMode",
            "Processors_GlobalC_stateControl",
            "Processors_DFC_States",
            "PackageCState_",
            "CPUC6Report_",
            "EnhancedHaltState_C1E__",
            "GlobalC_stateControl_",
            "DFCstates_",
            "PackageCState",
        ),
        "Latency|Criteria",
    ),
    "relaxed_ordering": KeyRow(
        ("Relaxed Order",),
        ("RelaxedOrdering_", "PcieRelaxedOrdering", "PcieRootPortRO", "CbRelaxedOrdering"),
        "Remote P2P",
    ),
    "max_read_request": KeyRow(("Max(imum)? Read Req",), ("PCIeMaxReadRequestSize_", "PcieMaxReadRequestSize")),
    "profile": KeyRow(
        ("(System|Workload|Application) Profile", "Operating Mode"),
        ("SysProfile", "WorkloadProfile", "OperatingModes_ChooseOperatingMode", "ApplicationProfile"),
        # "Memory Operating Mode" is mirroring and the like
        "Memory|Helper",
    ),
}


#: signs that are no letters and no digits
_SIGNS = "[^A-Za-z0-9]{0,4}"


def _build_key_pattern(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9#]+", lambda _found: _SIGNS, name.rstrip("_")).replace("#", "[0-9]+")
    return f"{text}{_SIGNS}(?:[0-9A-Fa-f]{{4}})?" if name.endswith("_") else text


_DISPLAY = {key: re.compile("|".join(row.display), re.IGNORECASE) for key, row in TABLE.items()}
_WITHOUT = {key: re.compile(row.without, re.IGNORECASE) for key, row in TABLE.items() if row.without}
_NAMES = {key: re.compile("|".join(map(_build_key_pattern, row.names))) for key, row in TABLE.items()}


def is_display(key: Key, name: str, display: str) -> bool:
    """Return whether a BIOS attribute belongs to a setting of the collection, by its display name. The result is False
    for an attribute whose name ends in ``Changed``, because the BIOS uses such attributes for its own notes.

    :param key: key of the setting, such as sriov
    :param name: name of the attribute
    :param display: display name of the attribute
    """
    without = _WITHOUT.get(key)
    return (
        bool(_DISPLAY[key].search(display))
        and not (without and without.search(display))
        and not name.endswith("Changed")
    )


def is_name(key: Key, name: str) -> bool:
    """Return whether a BIOS attribute belongs to a setting of the collection, by its name and the table of attribute
    names. It is used for attributes without a display name that decides.

    :param key: key of the setting, such as sriov
    :param name: name of the attribute
    """
    return _NAMES[key].fullmatch(name) is not None
