# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies by vendor of the NIC: its drivers, its firmware tool and its packages. The one table of them; a finding on a
NIC takes its remedy from here."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.node.hca import Hca


@dataclasses.dataclass(frozen=True)
class Vendor:
    """The NICs of a vendor. ADDRESS in a text is the PCI address of a physical function.

    :ivar pci: vendor id
    :ivar drivers: kernel modules of the network functions, the current one first
    :ivar rdma: kernel module that makes RDMA devices of them
    :ivar package: that has both, where the kernel's own are not used
    :ivar enable_rdma: what else an RDMA device may need
    :ivar enable_functions: how a NIC comes to offer virtual functions
    :ivar more_functions: how it comes to offer more
    :ivar burn: how another firmware is written
    :ivar link: command that shows link and cable
    :ivar priorities: command that shows how the port treats priorities
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


VENDORS: tuple[Vendor, ...] = (
    Vendor(
        "NVIDIA",
        "15b3",
        ("mlx5_core", "mlx4_core"),
        "mlx5_ib",
        "DOCA-OFED",
        "On Ethernet see that RoCE is on: devlink dev param show pci/ADDRESS name enable_roce.",
        "Switch SR-IOV on in its firmware: mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=NUMBER, then power-cycle.",
        "Raise their number in its firmware: mstconfig -d ADDRESS set NUM_OF_VFS=NUMBER, then power-cycle.",
        "mstflint -d ADDRESS -i FILE burn, then mstfwreset or a power cycle",
        "mlxlink -d ADDRESS -c -m",
        "mlnx_qos -i INTERFACE",
    ),
    Vendor(
        "Broadcom",
        "14e4",
        ("bnxt_en",),
        "bnxt_re",
        "Broadcom's package bnxt_en with bnxt_re",
        "See that the firmware supports RDMA: niccli -dev ID nvm -getoption support_rdma.",
        "Switch SR-IOV on in its firmware: niccli -dev ID nvm -setoption enable_sriov -value 1, and"
        " number_of_vfs_per_pf likewise, then power-cycle.",
        "Raise their number in its firmware: niccli -dev ID nvm -setoption number_of_vfs_per_pf -scope PORT -value"
        " NUMBER, then power-cycle.",
        "niccli -dev ID install FILE, then a power cycle",
        "ethtool -m INTERFACE",
        "dcb pfc show dev INTERFACE",
    ),
    Vendor(
        "Intel",
        "8086",
        ("ice", "i40e", "iavf", "idpf"),
        "irdma",
        "Intel's packages ice and irdma",
        "See that the driver offers RDMA: devlink dev param show pci/ADDRESS name enable_rdma, and enable_roce for"
        " RoCE.",
        "Switch SR-IOV on in the BIOS; the NIC has no switch of its own.",
        "Ask for fewer: their number is fixed for the model.",
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
        "See that the card's profile has RDMA: nicctl show card profile.",
        "Give the card a profile with virtual functions: nicctl update card profile --profile pf1_vf1, then reboot.",
        "Give the card a profile with more virtual functions: nicctl update card profile --profile NAME, then reboot.",
        "nicctl update firmware, then a power cycle",
        "nicctl show port",
        "nicctl show qos",
    ),
)
NVIDIA = VENDORS[0]
_BY_ID = {vendor.pci: vendor for vendor in VENDORS}
_BY_DRIVER = {driver: vendor for vendor in VENDORS for driver in vendor.drivers}


def find_vendor(hca: Hca) -> typing.Optional[Vendor]:
    """Return the vendor of a function; None of one that is not in the table."""
    return find_vendor_with(hca.pci.vendor, hca.pci.driver) if hca.pci else None


def find_vendor_with(pci: str, driver: typing.Optional[str] = None) -> typing.Optional[Vendor]:
    """Return the vendor with a PCI vendor id, or whose driver this is; None of one that is not in the table."""
    return _BY_ID.get(pci) or _BY_DRIVER.get(driver or "")


def load_driver(hcas: typing.Iterable[Hca]) -> str:
    """Return how the network driver of these functions is loaded."""
    seen = list(hcas)
    vendors = _list_vendors(seen)
    names = "; ".join(f"for {vendor.name} {' or '.join(vendor.drivers)}" for vendor in vendors)
    found = f"Load the driver that {_look_up(seen)} names with modprobe{f' ({names})' if names else ''}."
    return f"{found} {_describe_missing_module(vendors)} dmesg shows why a driver does not take a function."


def load_rdma(hcas: typing.Iterable[Hca]) -> str:
    """Return how the RDMA driver of these functions is loaded."""
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
            f"Load the RDMA driver of this NIC, if its network driver ({_look_up(seen)}) has one, and see dmesg for"
            " this function."
        )
    modules = " and ".join(f"modprobe {vendor.rdma}" for vendor in vendors)
    more = " ".join(
        _add_address(vendor.enable_rdma, _list_addresses([hca for hca in seen if find_vendor(hca) is vendor]))
        for vendor in vendors
    )
    return f"Load the RDMA driver: {modules}. {_describe_missing_module(vendors)} {more} See dmesg for this function."


def enable_functions(hca: Hca) -> str:
    """Return how a NIC comes to offer virtual functions."""
    vendor = find_vendor(hca)
    text = (
        vendor.enable_functions
        if vendor
        else "Switch SR-IOV on in its firmware by the tool of its vendor, then power-cycle."
    )
    return _add_address(text, _list_addresses([hca]))


def more_functions(hca: Hca) -> str:
    """Return how a NIC comes to offer more virtual functions."""
    vendor = find_vendor(hca)
    text = (
        vendor.more_functions
        if vendor
        else "Raise their number in its firmware by the tool of its vendor, then power-cycle."
    )
    return _add_address(text, _list_addresses([hca]))


def burn(hca: Hca) -> str:
    """Return how another firmware is written, as a part of a sentence."""
    vendor = find_vendor(hca)
    return _add_address(vendor.burn if vendor else "the tool of its vendor", _list_addresses([hca]))


def link_command(hca: typing.Optional[Hca], address: str) -> str:
    """Return the command that shows link and cable of a NIC.

    :param address: of the function
    """
    vendor = find_vendor(hca) if hca is not None else None
    return (vendor.link if vendor else "ethtool -m INTERFACE").replace("ADDRESS", address)


def priorities_command(hca: typing.Optional[Hca]) -> str:
    """Return the command that shows how the port of a NIC treats priorities."""
    vendor = find_vendor(hca) if hca is not None else None
    return vendor.priorities if vendor else "dcb pfc show dev INTERFACE"


def _list_vendors(hcas: typing.Iterable[Hca]) -> tuple[Vendor, ...]:
    """Return the vendors of these functions, in the order of the table; none where one of them is not in it."""
    seen = [find_vendor(hca) for hca in hcas]
    return tuple(vendor for vendor in VENDORS if vendor in seen) if None not in seen else ()


def _list_addresses(hcas: typing.Iterable[Hca]) -> tuple[str, ...]:
    """Return the addresses of the physical functions."""
    return tuple(dict.fromkeys(hca.physical_function or hca.pci.address for hca in hcas if hca.pci))


def _add_address(text: str, addresses: typing.Sequence[str]) -> str:
    return text.replace("ADDRESS", addresses[0]) if len(addresses) == 1 else text


def _look_up(hcas: typing.Sequence[Hca]) -> str:
    addresses = [hca.pci.address for hca in hcas if hca.pci]
    return f"lspci -k -s {addresses[0]}" if len(addresses) == 1 else "lspci -k"


def _describe_missing_module(vendors: typing.Sequence[Vendor]) -> str:
    """Return where a module is that modprobe does not find: distributions have drivers of their kernel in a package of
    their own."""
    packages = " or ".join(vendor.package for vendor in vendors)
    return (
        "If modprobe does not find it, install it: on Ubuntu apt install linux-modules-extra-$(uname -r), on RHEL dnf"
        f" install kernel-modules-$(uname -r){f', or {packages}' if packages else ''}."
    )
