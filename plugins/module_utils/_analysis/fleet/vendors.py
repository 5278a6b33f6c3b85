# SPDX-License-Identifier: GPL-3.0-or-later

"""The drivers, firmware tools and packages of each NIC vendor. Findings on a NIC take their remedies from this
table.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.node.firmware import way_of_reset
from ..._model.node.hca import Hca


@dataclasses.dataclass(frozen=True)
class Vendor:
    """The properties of the NICs of a vendor, and the instructions for them. ADDRESS in a text represents the PCI
    address of a physical function.

    :ivar name: name of the vendor
    :ivar pci: PCI vendor ID
    :ivar drivers: kernel modules of the network functions, the current one first
    :ivar rdma: kernel module that creates their RDMA devices
    :ivar package: package with both modules, if those of the kernel are not used
    :ivar enable_rdma: further requirements of an RDMA device
    :ivar enable_functions: instruction to enable virtual functions
    :ivar more_functions: instruction to raise the number of virtual functions
    :ivar burn: instruction to write other firmware
    :ivar link: command that shows link and cable
    :ivar priorities: command that shows the handling of priorities by the port
    :ivar has_roce_v1: whether GID index 0 on Ethernet is RoCE v1. Other drivers have RoCE v2 there [src linux
        ib_cache_gid_set_default_gid, and core_cap_flags of get_port_immutable in drivers/infiniband/hw]
    """

    name: str
    pci: str
    drivers: tuple[str, ...]
    rdma: str
    package: str
    enable_rdma: str
    enable_functions: str
    more_functions: str
    burn: str
    link: str
    priorities: str
    has_roce_v1: bool = False


VENDORS: tuple[Vendor, ...] = (
    Vendor(
        "NVIDIA",
        "15b3",
        ("mlx5_core", "mlx4_core"),
        "mlx5_ib",
        "DOCA-OFED",
        (
            "On Ethernet, run devlink dev param show pci/ADDRESS name enable_roce. If it shows false, run devlink dev"
            " param set pci/ADDRESS name enable_roce value true cmode driverinit, then devlink dev reload pci/ADDRESS."
        ),
        (
            "Enable SR-IOV in the firmware of the NIC: mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=NUMBER, then"
            " drain and power-cycle the node."
        ),
        (
            "Raise the number of virtual functions in the firmware of the NIC: mstconfig -d ADDRESS set"
            " NUM_OF_VFS=NUMBER, then drain and power-cycle the node."
        ),
        "mstflint -d ADDRESS -i FILE burn, then mstfwreset or a power cycle",
        "mlxlink -d ADDRESS -c -m",
        "mlnx_qos -i INTERFACE",
        has_roce_v1=True,
    ),
    Vendor(
        "Broadcom",
        "14e4",
        ("bnxt_en",),
        "bnxt_re",
        "Broadcom's package bnxt_en with bnxt_re",
        "Check that the firmware supports RDMA: niccli -dev ID nvm -getoption support_rdma.",
        (
            "Enable SR-IOV in the firmware of the NIC: niccli -dev ID nvm -setoption enable_sriov -value 1, and"
            " number_of_vfs_per_pf in the same way, then drain and power-cycle the node."
        ),
        (
            "Raise the number of virtual functions in the firmware of the NIC: niccli -dev ID nvm -setoption"
            " number_of_vfs_per_pf -scope PORT -value NUMBER, then drain and power-cycle the node."
        ),
        "niccli -dev ID install FILE, then a power cycle",
        "ethtool -m INTERFACE",
        "dcb pfc show dev INTERFACE",
        has_roce_v1=True,
    ),
    Vendor(
        "Intel",
        "8086",
        ("ice", "i40e", "iavf", "idpf"),
        "irdma",
        "Intel's packages ice and irdma",
        (
            "Check that the driver offers RDMA: devlink dev param show pci/ADDRESS name enable_rdma, and enable_roce"
            " for RoCE."
        ),
        "Enable SR-IOV in the BIOS; the NIC has no setting of its own.",
        "Request fewer virtual functions: the number is fixed for the model.",
        "Intel's NVM Update Package (nvmupdate64e), then a power cycle",
        "ethtool -m INTERFACE",
        "dcb pfc show dev INTERFACE",
    ),
    Vendor(
        "AMD",
        "1dd8",
        ("ionic",),
        "ionic_rdma",
        "AMD's AI NIC software",
        "Check that the profile of the card includes RDMA: nicctl show card profile.",
        (
            "Give the card a profile with virtual functions: nicctl update card profile --profile pf1_vf1, then"
            " drain and reboot the node."
        ),
        (
            "Give the card a profile with more virtual functions: nicctl update card profile --profile NAME, then"
            " drain and reboot the node."
        ),
        "nicctl update firmware, then a power cycle",
        "nicctl show port",
        "nicctl show qos",
    ),
)
NVIDIA = VENDORS[0]
#: PCI class of a function that is set to InfiniBand
_INFINIBAND = "0207"
_BY_ID = {vendor.pci: vendor for vendor in VENDORS}
_BY_DRIVER = {driver: vendor for vendor in VENDORS for driver in vendor.drivers}


def find_vendor(hca: Hca) -> typing.Optional[Vendor]:
    """Return the entry of the vendor of a NIC, or None if the vendor is not in the table."""
    return find_vendor_with(hca.pci.vendor, hca.pci.driver) if hca.pci else None


def find_vendor_with(pci: str, driver: typing.Optional[str] = None) -> typing.Optional[Vendor]:
    """Return the entry with a PCI vendor ID, else the entry with a driver, or None if neither is in the table.

    :param pci: PCI vendor ID, four hex digits
    :param driver: name of the kernel driver; None if unknown
    """
    return _BY_ID.get(pci) or _BY_DRIVER.get(driver or "")


def load_driver(hcas: typing.Iterable[Hca]) -> str:
    """Return an instruction to the user that loads the network driver of NICs.

    :param hcas: physical or virtual functions of the NICs
    """
    seen = list(hcas)
    vendors = _list_vendors(seen)
    names = ", ".join(f"{' or '.join(vendor.drivers)} for {vendor.name}" for vendor in vendors)
    found = (
        f"Run modprobe on the node with the module that {_look_up(seen)} shows as 'Kernel modules'"
        f"{f' ({names})' if names else ''}."
    )
    return f"{found} {_describe_missing_module(vendors)} dmesg shows why a driver does not bind to a function."


def load_rdma(hcas: typing.Iterable[Hca]) -> str:
    """Return an instruction to the user that loads the RDMA driver of NICs.

    :param hcas: physical or virtual functions of the NICs
    """
    seen = list(hcas)
    vendors = _list_vendors(seen)
    strange = [
        hca
        for hca in seen
        for vendor in [find_vendor(hca)]
        if hca.pci and vendor and hca.pci.driver not in (None, *vendor.drivers)
    ]
    if not vendors or strange:
        return (
            f"Load the RDMA driver of this NIC, if its network driver ({_look_up(seen)}) has one. If there is still no"
            " RDMA device, correct the error in dmesg of this function."
        )
    modules = " and ".join(f"modprobe {vendor.rdma}" for vendor in vendors)
    more = " ".join(
        _add_address(vendor.enable_rdma, _list_addresses([hca for hca in seen if find_vendor(hca) is vendor]))
        for vendor in vendors
        if vendor is not NVIDIA or not all(hca.pci and hca.pci.device_class == _INFINIBAND for hca in seen)
    )
    return (
        f"Load the RDMA driver on the node: {modules}. {_describe_missing_module(vendors)}"
        f" {f'{more} ' if more else ''}If there is still no RDMA device, correct the error in dmesg of"
        f" {'this function' if len(seen) == 1 else 'the function'}."
    )


def enable_functions(hca: Hca) -> str:
    """Return the instruction to enable virtual functions on a NIC, as remedy of a finding."""
    vendor = find_vendor(hca)
    text = (
        vendor.enable_functions
        if vendor
        else "Enable SR-IOV in the firmware of the NIC with the tool of its vendor, then drain and power-cycle"
        " the node."
    )
    return _add_address(text, _list_addresses([hca]))


def more_functions(hca: Hca) -> str:
    """Return the instruction to raise the number of virtual functions that a NIC offers, as remedy of a finding."""
    vendor = find_vendor(hca)
    text = (
        vendor.more_functions
        if vendor
        else (
            "Raise the number of virtual functions in the firmware of the NIC with the tool of its vendor, then"
            " drain and power-cycle the node."
        )
    )
    return _add_address(text, _list_addresses([hca]))


def describe_burning(hca: Hca) -> str:
    """Return the instruction to write other firmware to a NIC, without a capital letter and a period, for use in a
    sentence.
    """
    vendor = find_vendor(hca)
    return _add_address(vendor.burn if vendor else "the tool of its vendor", _list_addresses([hca]))


def activate_firmware(hca: Hca, address: str) -> str:
    """Return the instruction that makes a NIC run the firmware in its flash, as remedy of a finding. Only NVIDIA has a
    command for it.

    :param address: PCI address of the function
    """
    vendor = find_vendor(hca)
    if vendor is NVIDIA:
        return way_of_reset(hca.pci.device if hca.pci else "", address)
    return f"Drain the node and power-cycle it. Then run devlink dev info pci/{address} on the node."


def link_command(hca: typing.Optional[Hca], address: str) -> str:
    """Return the command that shows the link and the cable of a NIC.

    :param hca: NIC of which the link is shown; None if unknown, which results in the generic command
    :param address: PCI address of the function
    """
    vendor = find_vendor(hca) if hca is not None else None
    return (vendor.link if vendor else "ethtool -m INTERFACE").replace("ADDRESS", address)


def priorities_command(hca: typing.Optional[Hca]) -> str:
    """Return the command that shows the priority and flow control settings of the port of a NIC. It is the command of
    the NIC's vendor, or a general one for an unknown vendor.

    :param hca: the NIC; None if it is not known
    """
    vendor = find_vendor(hca) if hca is not None else None
    return vendor.priorities if vendor else "dcb pfc show dev INTERFACE"


def _list_vendors(hcas: typing.Iterable[Hca]) -> tuple[Vendor, ...]:
    """Return the vendors of these functions, in the order of the table. The result is empty if the vendor of any of
    them is not in the table.
    """
    seen = [find_vendor(hca) for hca in hcas]
    return tuple(vendor for vendor in VENDORS if vendor in seen) if None not in seen else ()


def _list_addresses(hcas: typing.Iterable[Hca]) -> tuple[str, ...]:
    """Return the PCI addresses of the physical functions to which these functions belong."""
    return tuple(dict.fromkeys(hca.physical_function or hca.pci.address for hca in hcas if hca.pci))


def _add_address(text: str, addresses: typing.Sequence[str]) -> str:
    return text.replace("ADDRESS", addresses[0]) if len(addresses) == 1 else text


def _look_up(hcas: typing.Sequence[Hca]) -> str:
    addresses = [hca.pci.address for hca in hcas if hca.pci]
    return f"lspci -k -s {addresses[0]}" if len(addresses) == 1 else "lspci -k"


def _describe_missing_module(vendors: typing.Sequence[Vendor]) -> str:
    """Return the instruction to install a module that modprobe does not find. Distributions ship some drivers of their
    kernel in a separate package.

    :param vendors: vendors whose kernel modules are needed
    """
    packages = " or ".join(vendor.package for vendor in vendors)
    return (
        "If modprobe does not find the module, install it: on Ubuntu apt install linux-modules-extra-$(uname -r), on"
        f" RHEL dnf install kernel-modules-$(uname -r){f', or {packages}' if packages else ''}."
    )
