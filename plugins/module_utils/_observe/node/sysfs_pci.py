# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a PCI function of a node from sysfs: its ids, its PCIe link, its SR-IOV, and what its physical function sets for
it.
"""

from __future__ import annotations

import os
import re
import typing

from ..._model.node.hca import PcieLink, PciFunction, Sriov, SriovAbsence, VfAdministration
from ..._parse.node import pci_config
from ..._parse.node import sysfs as parse
from .sysfs_reader import SysfsReader


def read_pci(reader: SysfsReader, address: str, physical: bool) -> typing.Optional[PciFunction]:
    vendor = reader.value("vendor", parse.parse_hexadecimal)
    device = reader.value("device", parse.parse_hexadecimal)
    device_class = reader.value("class", parse.parse_hexadecimal)
    if vendor is None or device is None or device_class is None:
        return None
    return PciFunction(
        address=address,
        vendor=f"{vendor:04x}",
        device=f"{device:04x}",
        device_class=f"{device_class >> 8:04x}",
        driver=reader.link("driver"),
        numa_node=reader.value("numa_node", parse.parse_numa_node),
        # a VF has no link and no packet size of its own
        link=_read_link(reader) if physical else PcieLink(),
    )


def _read_link(reader: SysfsReader) -> PcieLink:
    """Return the PCIe link between a function and the port above it, with its current and its maximum speed and width.
    A value that sysfs does not show is None. The folder of the function lies in the folder of that port.

    :param reader: reader of the folder of the function
    """
    spaces = [reader.raw(name, pci_config.CONVENTIONAL) for name in ("config", "../config")]
    own, above = (pci_config.parse_payload(space) if space is not None else None for space in spaces)
    return PcieLink(
        current_speed=reader.value("current_link_speed", parse.parse_pcie_speed),
        current_width=reader.value("current_link_width", parse.parse_pcie_width),
        max_speed=reader.value("max_link_speed", parse.parse_pcie_speed),
        max_width=reader.value("max_link_width", parse.parse_pcie_width),
        slot_speed=reader.value("../max_link_speed", parse.parse_pcie_speed),
        slot_width=reader.value("../max_link_width", parse.parse_pcie_width),
        payload=own.current if own else None,
        payload_could=min(own.supported, above.supported) if own and above else None,
    )


def read_sriov(reader: SysfsReader) -> typing.Optional[Sriov]:
    total = reader.value("sriov_totalvfs", parse.parse_number)
    current = reader.value("sriov_numvfs", parse.parse_number)
    if total is None and current is None and not {"sriov_totalvfs", "sriov_numvfs"} & set(reader.unread):
        return None
    return Sriov(total, current)


def read_sriov_absence(reader: SysfsReader) -> typing.Optional[SriovAbsence]:
    space = reader.raw("config")
    return None if space is None else pci_config.parse_sriov_absence(space)


def read_vf_index(reader: SysfsReader, address: typing.Optional[str], physical_function: str) -> typing.Optional[int]:
    physical = SysfsReader(os.path.join(os.path.dirname(reader.folder), physical_function))
    for name in physical.names(""):
        match = re.match(r"\Avirtfn([0-9]+)\Z", name)
        if match and physical.link(name) == address:
            return int(match.group(1))
    reader.errors.extend(physical.errors)
    return None


def read_administration(reader: SysfsReader, physical_function: str, index: int) -> typing.Optional[VfAdministration]:
    """Return the settings of a VF that are made on its physical function: the GUIDs and the link policy. Their files
    exist only with NVIDIA's own driver packages, not with the in-tree driver. Return None if there are no settings.

    :param reader: reader of the folder of the VF; unread files and errors are added to it
    :param physical_function: PCI address of the physical function
    :param index: number of the VF
    """
    folder = SysfsReader(os.path.join(os.path.dirname(reader.folder), physical_function, "sriov", str(index)))
    administration = VfAdministration(
        node_guid=folder.value("node", parse.guid_of_bytes),
        port_guid=folder.value("port", parse.guid_of_bytes),
        link_policy=folder.value("policy", parse.link_policy),
    )
    reader.unread.extend(f"physfn/sriov/{index}/{item}" for item in folder.unread)
    reader.errors.extend(folder.errors)
    return administration if folder.unread or administration != VfAdministration() else None
