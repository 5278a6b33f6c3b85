# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the virtual functions, links and RDMA devices of a SriovNetworkNodePolicy."""

from __future__ import annotations

import typing

from ...._analysis.controllers.sriov.changes import MELLANOX
from ...._analysis.fleet.vendors import load_rdma
from ...._model.base.phrases import count_of
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
            "at least 1 virtual function",
            "A policy with 0 virtual functions has no effect.",
            "Raise virtual_functions of the fabric, then run stage network again.",
        )
    most = MELLANOX_MOST_VFS if interface.vendor == MELLANOX else total
    if wanted > most:
        text = f"numVfs({wanted}) in CR {policy.name} exceed the maximum allowed value({most}) interface({name})"
        if interface.vendor in (INTEL, MELLANOX):
            where: Where = "webhook"
        else:
            where, text = "node", f"cannot config SRIOV device: NumVfs ({wanted}) is larger than TotalVfs ({total})"
        why = (
            "The physical function has no SR-IOV, because SR-IOV is off in the BIOS or in the firmware."
            if total == 0
            else "The physical function does not support this number of virtual functions."
        )
        yield Objection(
            FUNCTIONS,
            where,
            text,
            f"at most {count_of(most, 'virtual function')}",
            why,
            "Lower virtual_functions of the fabric, or raise the number of virtual functions in the firmware (see the"
            " findings of stage platform). Then run stage network again.",
        )
    elif wanted >= INFINIBAND_MANY_VFS and interface.link_type == "IB":
        why = (
            "With this number of virtual functions, the response of the kernel about an InfiniBand physical function"
            " exceeds the netlink buffer. The operator then cannot set GUIDs: 'message too long'."
        )
        remedy = (
            f"Set virtual_functions to less than {INFINIBAND_MANY_VFS} on each HCA, or make sure that the release of"
            " the operator supports this number. Then run stage network again."
        )
        yield Objection(
            FUNCTIONS,
            "nowhere",
            f"{count_of(wanted, 'virtual function')} on InfiniBand",
            f"less than {INFINIBAND_MANY_VFS} virtual functions",
            why,
            remedy,
        )
    if policy.external and wanted > interface.vfs_count:
        text = (
            f"numVfs({wanted}) in CR {policy.name} is higher than the virtual functions allocated for the PF externally"
            f" value({interface.vfs_count})"
        )
        why = "An externally managed policy does not create virtual functions. It only assigns existing ones to pods."
        yield Objection(
            FUNCTIONS,
            "webhook",
            text,
            f"at most {count_of(interface.vfs_count, 'virtual function')}",
            why,
            "Create the virtual functions first, or let the operator create them. Then run stage network again.",
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
                f"linkType: {seen}",
                "The operator does not change the settings of an externally managed physical function.",
                "Use a profile for the link layer of the port, then run stage network again.",
            )
        else:
            why = (
                "The operator would write a different LINK_TYPE into the firmware and reboot the node. With the current"
                " cable, the port would then have no link."
                if interface.vendor == MELLANOX
                else (
                    "The device plugin offers only functions of the link layer in the policy, so it would offer none."
                )
            )
            remedy = (
                "Use a profile for the link layer of the port (SriovIBNetwork on InfiniBand, SriovNetwork on Ethernet),"
                " or select other ports. Then run stage network again."
            )
            yield Objection(
                LINK,
                "node",
                f"port with link layer {seen}, profile for link layer {wanted}",
                f"port with link layer {wanted}",
                why,
                remedy,
            )
    if policy.vdpa_type and interface.vendor != MELLANOX:
        text = f"vendor({interface.vendor}) in CR {policy.name} not supported for vdpa interface({interface.name})"
        yield Objection(
            LINK,
            "webhook",
            text,
            f"a NIC of vendor {MELLANOX} (NVIDIA)",
            "Only Mellanox NICs support vDPA.",
            "Remove vdpaType from the policy, then run stage network again.",
        )
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
            f"at most {interface.mtu or 0} bytes",
            "The operator does not change the settings of an externally managed physical function.",
            "Lower mtu of the fabric, then run stage network again.",
        )
        return
    most = _DRIVER_MTU.get(interface.driver or "")
    if most is not None and policy.mtu > most:
        why = (
            f"The driver {interface.driver} supports an MTU of at most {most} bytes, so the config daemon fails on the"
            " node."
        )
        yield Objection(
            LINK,
            "node",
            f"MTU {policy.mtu} bytes",
            f"MTU of at most {most} bytes",
            why,
            "Lower mtu of the fabric, then run stage network again.",
        )
    if interface.link_type == "IB" and policy.mtu > _IPOIB_MTU:
        why = (
            "On InfiniBand, the partition of the subnet manager sets the MTU, not the policy. For an MTU above 2044"
            " bytes, the partition must have mtu=5."
        )
        yield Objection(
            LINK,
            "nowhere",
            f"MTU {policy.mtu} bytes",
            f"MTU of at most {_IPOIB_MTU} bytes",
            why,
            "Remove mtu from the fabric, or set mtu=5 in the partition of the subnet manager first. Then run stage"
            " network again.",
        )


def check_rdma(
    policy: Policy, interface: StateInterface, node: typing.Optional[NodeHcas]
) -> typing.Iterator[Objection]:
    if not policy.rdma or policy.device_type == "vfio-pci":
        return
    if interface.driver in _DRIVERS_WITHOUT_RDMA:
        why = (
            f"The driver {interface.driver} does not support RDMA. The device plugin is configured to offer only RDMA"
            " devices, so it would offer none."
        )
        yield Objection(
            RDMA,
            "node",
            f"driver {interface.driver}",
            "a driver with RDMA support",
            why,
            "Set rdma: false on the fabric, or select other NICs. Then run stage network again.",
        )
        return
    hcas = (
        [hca for hca in node.hcas if hca.pci is not None and hca.pci.address == interface.address]
        if node is not None
        else []
    )
    if hcas and not any(hca.rdma_device for hca in hcas):
        why = (
            "The physical function has no RDMA device now. Unless the RDMA module of the driver is loaded, its virtual"
            " functions have no RDMA device, and the device plugin does not offer them."
        )
        remedy = f"{load_rdma(hcas)} Or set rdma: false on the fabric. Then run stage network again."
        yield Objection(RDMA, "nowhere", "no RDMA device", "an RDMA device", why, remedy)
