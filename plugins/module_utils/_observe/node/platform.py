# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the state of IOMMU and SR-IOV on a node from sysfs and procfs. This shows the effect of firmware and kernel, not
the settings of the BIOS.
"""

from __future__ import annotations

import dataclasses
import os
import re
import typing

from ..._model.boundary.kubernetes import UID
from ..._model.node.hca import Hca, NodeHcas
from ..._model.node.identity import Identity, make_identity
from ..._model.node.platform import GpuDriver, NodePlatform, PciEvidence
from ..._parse.node import pci_config
from ..._parse.node import sysfs as parse
from ..._parse.node.kernel_arguments import parse_command_line
from ..infiniband.uplinks import read_addresses, read_networks, read_uplinks
from . import sysfs_reader

_ARGUMENTS = ("intel_iommu", "amd_iommu", "iommu", "iommu.passthrough", "iommu.strict", "pci", "ib_core.netns_mode")
_IOMMU_TABLES = ("DMAR", "IORT", "IVRS")


def read_platform(
    roots: typing.Sequence[str],
    hcas: NodeHcas,
    kernel_arguments: str = "/proc/cmdline",
    gpu_driver: str = "/proc/driver/nvidia/version",
    wanted: typing.Iterable[str] = (),
) -> NodePlatform:
    """Return the state of IOMMU, SR-IOV, kernel and GPU driver of one node. The values of IOMMU and ACPI come from the
    sysfs root that has them, PCI functions from all roots.

    :param roots: sysfs roots, usually only /sys
    :param hcas: HCAs that were read from the same roots
    :param kernel_arguments: file with the command line of the kernel
    :param gpu_driver: file with the version of the NVIDIA driver
    :param wanted: kernel arguments to report in addition to those of IOMMU and PCI
    """
    system = os.uname()
    readers = [sysfs_reader.SysfsReader(root) for root in roots]
    proc = sysfs_reader.SysfsReader(os.path.dirname(kernel_arguments))
    driver = sysfs_reader.SysfsReader(os.path.dirname(gpu_driver))
    gpu = _read_gpu(readers, driver.value(os.path.basename(gpu_driver), str))
    devices = _list_folder_entries(readers, "class/iommu")
    groups = _list_folder_entries(readers, "kernel/iommu_groups")
    tables = _list_folder_entries(readers, "firmware/acpi/tables")
    functions = tuple(_read_function(hca, readers) for hca in hcas.functions)
    routes = sysfs_reader.SysfsReader(os.path.join(os.path.dirname(kernel_arguments), "net"))
    uplinks, networks = read_uplinks(routes, readers), read_networks(routes, readers)
    addresses = read_addresses(routes, networks)
    errors = (*hcas.errors, *(error for reader in (*readers, proc, driver, routes) for error in reader.errors))
    return NodePlatform(
        kernel=system.release,
        machine=system.machine,
        kernel_arguments=proc.value(
            os.path.basename(kernel_arguments), lambda text: _arguments_of_interest(text, wanted)
        ),
        iommu_devices=devices,
        iommu_groups=None if groups is None else len(groups),
        acpi_tables=(
            None
            if tables is None
            else tuple(name for name in tables if re.match(r"\A[A-Z]{4}[0-9]*\Z", name) and name[:4] in _IOMMU_TABLES)
        ),
        functions=functions,
        # the configuration space is read for the HCAs as well
        errors=tuple(dict.fromkeys(errors)),
        gpu=gpu,
        boot=read_boot(proc.folder),
        signed_modules=_signed_modules(roots),
        identity=_read_identity(roots),
        uplinks=uplinks,
        locked_down=_locked_down(roots),
        networks=networks,
        addresses=addresses,
    )


def read_boot(proc: str = "/proc") -> typing.Optional[str]:
    """Return the ID of this boot, which the kernel generates at each boot. Return None if it cannot be read or is
    malformed.

    :param proc: folder in which procfs is mounted
    """
    return sysfs_reader.SysfsReader(proc).value("sys/kernel/random/boot_id", lambda text: UID.of(text, "the boot ID"))


def _read_identity(roots: typing.Sequence[str]) -> Identity:
    """Return the identity of the node from DMI: its UUID and serial numbers. Without root they are empty, and the check
    that compares them reports this.

    [src Linux drivers/firmware/dmi-id.c: product_uuid, product_serial and board_serial have mode 0400; a UUID of zeros
    or of F alone has no file]

    :param roots: sysfs roots, usually only /sys
    """
    readers = [sysfs_reader.SysfsReader(os.path.join(root, "class/dmi/id")) for root in roots]
    uuid, *serials = (
        next(filter(None, (reader.value(name, str) for reader in readers)), "")
        for name in ("product_uuid", "product_serial", "board_serial")
    )
    return make_identity(uuid, serials)


def _signed_modules(roots: typing.Sequence[str]) -> typing.Optional[bool]:
    """Return whether the kernel refuses modules without a known signature. Return None if sysfs does not show it, or
    only to root. Read errors are not recorded, because an unreadable file is not a fault of the node.

    [src Linux kernel/module/signing.c module_sig_check: sig_enforce, and LOCKDOWN_MODULE_SIGNATURE]

    :param roots: sysfs roots, usually only /sys
    """
    return _combine_answers(
        [
            *(
                sysfs_reader.SysfsReader(root).value("module/module/parameters/sig_enforce", parse.parse_switch)
                for root in roots
            ),
            _locked_down(roots),
        ]
    )


def _locked_down(roots: typing.Sequence[str]) -> typing.Optional[bool]:
    return _combine_answers(
        sysfs_reader.SysfsReader(root).value("kernel/security/lockdown", parse.locked_down) for root in roots
    )


def _combine_answers(said: typing.Iterable[typing.Optional[bool]]) -> typing.Optional[bool]:
    known = [value for value in said if value is not None]
    return any(known) if known else None


def _read_gpu(
    readers: typing.Sequence[sysfs_reader.SysfsReader], said: typing.Optional[str]
) -> typing.Optional[GpuDriver]:
    """Return the version and the features of the NVIDIA GPU driver. Return None if the driver is not loaded.

    :param readers: readers of the sysfs roots
    :param said: contents of the driver's version file; None if it is absent, and then it is unknown whether the kernel
        modules are open. Open kernel modules report ``NVIDIA UNIX Open Kernel Module``, the closed ones ``NVIDIA UNIX
        x86_64 Kernel Module``
    """
    if not any(reader.names("module/nvidia") for reader in readers):
        return None

    def first(name: str) -> typing.Optional[str]:
        return next(filter(None, (reader.value(name, str) for reader in readers)), None)

    return GpuDriver(
        version=first("module/nvidia/version"),
        open=None if said is None else "Open Kernel Module" in said.partition("\n")[0],
        peermem=any(reader.names("module/nvidia_peermem") for reader in readers),
        peer_clients=tuple(name for reader in readers for name in reader.names("kernel/mm/memory_peers")),
        ofed=first("module/mlx5_core/version"),
    )


def _arguments_of_interest(text: str, wanted: typing.Iterable[str]) -> tuple[str, ...]:
    """Return those arguments of the kernel's command line that concern IOMMU or PCI, or that are requested, in their
    order. Of a requested argument with ``=``, other values of its key are returned too. All remaining arguments stay on
    the node, because a command line may contain secrets. Arguments after ``--``, which belong to init, are left out.

    :param text: command line of the kernel
    :param wanted: requested arguments, such as ``iommu=pt``
    """
    arguments = parse_command_line(text)
    of_kernel = arguments[: arguments.index("--")] if "--" in arguments else arguments
    asked = tuple(wanted)
    keys = {*_ARGUMENTS, *(argument.partition("=")[0] for argument in asked if "=" in argument)}
    return tuple(argument for argument in of_kernel if argument in asked or argument.partition("=")[0] in keys)


def _list_folder_entries(
    readers: typing.Sequence[sysfs_reader.SysfsReader], name: str
) -> typing.Optional[tuple[str, ...]]:
    """Return the entries of a folder in all sysfs roots. A root without the folder has no entries. Return None if the
    folder cannot be read in one of the roots.

    :param readers: readers of the sysfs roots
    :param name: path of the folder, relative to a root
    """
    entries: list[str] = []
    for reader in readers:
        entries.extend(reader.names(name))
    return None if any(name in reader.unread for reader in readers) else tuple(entries)


def _read_function(hca: Hca, readers: typing.Sequence[sysfs_reader.SysfsReader]) -> PciEvidence:
    address = hca.pci.address if hca.pci else ""
    folder = f"bus/pci/devices/{address}"
    groups = [group for group in (reader.link(f"{folder}/iommu_group") for reader in readers) if group]
    evidence = PciEvidence(
        address=address,
        driver=hca.pci.driver if hca.pci else None,
        sriov_total=hca.sriov.total if hca.sriov else None,
        sriov_current=hca.sriov.current if hca.sriov else None,
        iommu_group=int(groups[0]) if groups and re.match(r"\A[0-9]{1,9}\Z", groups[0]) else None,
        physical_function=hca.physical_function,
        unread=hca.unread,
    )
    if hca.is_virtual:
        return evidence
    # in the folder of the port above it lies that of the function
    own, above = (
        next(filter(None, (reader.raw(f"{folder}/{name}") for reader in readers)), b"")
        for name in ("config", "../config")
    )
    return dataclasses.replace(
        evidence,
        capability=pci_config.parse_sriov(own),
        memory=next(
            filter(None, (reader.value(f"{folder}/resource", parse.parse_vf_memory) for reader in readers)), None
        ),
        last_bus=pci_config.parse_last_bus(above),
        acs=pci_config.parse_acs(above),
    )
