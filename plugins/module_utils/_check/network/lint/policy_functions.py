# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the virtual functions, links and RDMA devices of a SriovNetworkNodePolicy."""

from __future__ import annotations

import typing

from ...._analysis.controllers.sriov_operator import MELLANOX
from ...._analysis.fleet.vendors import load_rdma
from ...._model.node.hca import NodeHcas
from ...._model.operators.sriov_operator import Policy, StateInterface
from .policy_context import FUNCTIONS, LINK, RDMA, Objection, Where

INTEL = "8086"
#: the operator raises NUM_OF_VFS of a Mellanox NIC by itself, up to this
MELLANOX_MOST_VFS = 128
#: from here on the kernel's answer about an InfiniBand PF outgrows netlink's buffer [sriov-network-operator pull
#: requests 1021, 1025]
INFINIBAND_MANY_VFS = 16
#: highest MTU of a driver in bytes [Linux 6.12 drivers/net/ethernet, max_mtu]; that of mlx5_core depends on the port,
#: so it is not here
_DRIVER_MTU = {"igb": 9216, "ixgbe": 9710, "i40e": 9702, "ice": 9702, "bnxt_en": 9500}
#: drivers whose VFs have no RDMA device, whatever module is loaded
_DRIVERS_WITHOUT_RDMA = ("igb", "ixgbe")
#: IPoIB takes 4 bytes of the largest InfiniBand MTU, 4096; with the default partition of 2048 it is 2044
_IPOIB_MTU = 2044


# What one physical function can do


def check_functions(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    wanted, total = policy.vfs_count, interface.total_vfs
    name = interface.name
    if wanted == 0:
        text = f"numVfs(0) in CR {policy.name} is not allowed"
        yield Objection(
            FUNCTIONS,
            "webhook",
            text,
            "1 at least",
            "A policy without virtual functions asks for nothing.",
            "Raise virtual_functions.",
        )
    most = MELLANOX_MOST_VFS if interface.vendor == MELLANOX else total
    if wanted > most:
        text = f"numVfs({wanted}) in CR {policy.name} exceed the maximum allowed value({most}) interface({name})"
        if interface.vendor in (INTEL, MELLANOX):
            where: Where = "webhook"
        else:
            where, text = "node", f"cannot config SRIOV device: NumVfs ({wanted}) is larger than TotalVfs ({total})"
        why = (
            "The physical function has no SR-IOV: it is off in BIOS or firmware."
            if total == 0
            else "The physical function can't make so many."
        )
        yield Objection(
            FUNCTIONS,
            where,
            text,
            f"{most} at most",
            why,
            "Lower virtual_functions, or raise what the firmware allows; see the stage platform.",
        )
    elif wanted >= INFINIBAND_MANY_VFS and interface.link_type == "IB":
        why = (
            "With so many virtual functions the kernel's answer about an InfiniBand PF outgrows netlink's buffer, and"
            " GUIDs can't be set: 'message too long'."
        )
        remedy = (
            f"Stay below {INFINIBAND_MANY_VFS} on each HCA, or make sure that the operator's release copes with it."
        )
        yield Objection(FUNCTIONS, "nowhere", f"{wanted} on InfiniBand", f"below {INFINIBAND_MANY_VFS}", why, remedy)
    if policy.external and wanted > interface.vfs_count:
        text = (
            f"numVfs({wanted}) in CR {policy.name} is higher than the virtual functions allocated for the PF externally"
            f" value({interface.vfs_count})"
        )
        why = "An externally managed policy makes no virtual functions; it only hands them out."
        yield Objection(
            FUNCTIONS,
            "webhook",
            text,
            f"{interface.vfs_count} at most",
            why,
            "Make them first, or let the operator make them.",
        )


def check_link(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    seen, wanted = (interface.link_type or "").upper(), policy.link_type.upper()
    if wanted and seen and wanted != seen:
        if policy.external:
            text = (
                f"LinkType({policy.link_type}) in CR {policy.name} is not equal to the LinkType for the PF externally"
                f" value({seen})"
            )
            yield Objection(
                LINK,
                "webhook",
                text,
                seen,
                "The operator changes nothing on such a function.",
                "Use the profile of its link layer.",
            )
        else:
            why = (
                "The operator would write another LINK_TYPE into the firmware and reboot the node; with the cable as it"
                " is, the port then has no link."
                if interface.vendor == MELLANOX
                else (
                    "The device plugin offers only functions of the link layer that the policy names, so it would offer"
                    " none."
                )
            )
            remedy = (
                "Use the profile of the port's link layer (SriovIBNetwork on InfiniBand, SriovNetwork on Ethernet), or"
                " select other ports."
            )
            yield Objection(
                LINK, "node", f"a port of {seen}, the profile is for {wanted}", f"a port of {wanted}", why, remedy
            )
    if policy.vdpa_type and interface.vendor != MELLANOX:
        text = f"vendor({interface.vendor}) in CR {policy.name} not supported for vdpa interface({interface.name})"
        yield Objection(LINK, "webhook", text, MELLANOX, "Only Mellanox NICs do vDPA.", "Remove vdpaType.")
    yield from _check_mtu(policy, interface)


def _check_mtu(policy: Policy, interface: StateInterface) -> typing.Iterator[Objection]:
    if not policy.mtu:
        return
    if policy.external and policy.mtu > (interface.mtu or 0):
        text = (
            f"MTU({policy.mtu}) in CR {policy.name} is higher than the MTU for the PF externally"
            f" value({interface.mtu or 0})"
        )
        yield Objection(
            LINK,
            "webhook",
            text,
            f"{interface.mtu or 0} bytes at most",
            "The operator changes nothing on such a function.",
            "Lower mtu.",
        )
        return
    most = _DRIVER_MTU.get(interface.driver or "")
    if most is not None and policy.mtu > most:
        why = f"The driver {interface.driver} takes at most {most} bytes, so the config daemon fails on the node."
        yield Objection(LINK, "node", f"mtu {policy.mtu}", f"{most} bytes at most", why, "Lower mtu of the fabric.")
    if interface.link_type == "IB" and policy.mtu > _IPOIB_MTU:
        why = (
            "On InfiniBand the subnet manager's partition sets the MTU, not the policy; above 2044 its partition must"
            " say mtu=5."
        )
        yield Objection(
            LINK,
            "nowhere",
            f"mtu {policy.mtu}",
            f"{_IPOIB_MTU} bytes at most",
            why,
            "Leave mtu out, or set the SM's partition first.",
        )


def check_rdma(
    policy: Policy, interface: StateInterface, node: typing.Optional[NodeHcas]
) -> typing.Iterator[Objection]:
    if not policy.rdma or policy.device_type == "vfio-pci":
        return
    if interface.driver in _DRIVERS_WITHOUT_RDMA:
        why = (
            f"The driver {interface.driver} has no RDMA, so the device plugin, which is asked for RDMA devices only,"
            " would offer none."
        )
        yield Objection(
            RDMA,
            "node",
            f"driver {interface.driver}",
            "a driver with RDMA",
            why,
            "Set rdma: false on the fabric, or select other NICs.",
        )
        return
    hcas = (
        [hca for hca in node.hcas if hca.pci is not None and hca.pci.address == interface.address]
        if node is not None
        else []
    )
    if hcas and not any(hca.rdma_device for hca in hcas):
        why = (
            "The physical function has no RDMA device now. Unless the driver's RDMA module is loaded, its virtual"
            " functions have none and are not offered."
        )
        remedy = f"{load_rdma(hcas)} Or set rdma: false on the fabric."
        yield Objection(RDMA, "nowhere", "no RDMA device", "an RDMA device", why, remedy)
