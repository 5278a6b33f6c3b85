# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute the changes that the desired state of a function requires, in the function and in the firmware of its card.
Pure. The rules are those of the SR-IOV network operator's source, release 1.6.0. Each function cites its rule.
"""

from __future__ import annotations

import itertools
import typing

from ...._model.operators.sriov_operator import StateInterface, WantedInterface

#: drivers for user space; any other one is a netdevice [pkg/vars/vars.go DpdkDrivers]
_DPDK = ("igb_uio", "vfio-pci", "uio_pci_generic")
_NO_GUID = "0000:0000:0000:0000"
MELLANOX = "15b3"


def list_changes(wanted: WantedInterface, interface: StateInterface) -> tuple[str, ...]:
    """Return the differences between a function and its desired state, as text; empty if there are no differences. Only
    the first difference of its virtual functions is listed. [api/v1/helper.go NeedToUpdateSriov]

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    found = list_function_changes(wanted, interface)
    if interface.admin_state == "down":
        found.append("link down -> up")
    # one virtual function speaks for the others
    return (*found, *itertools.islice(_vf_changes(wanted, interface), 1))


def list_function_changes(wanted: WantedInterface, interface: StateInterface) -> list[str]:
    """Return the changes of a physical function itself, as text. Its link may be interrupted during these changes:
    _analysis/disruption/link_users.py describes what each of them does.

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    found = []
    # a larger MTU than the wanted one stays
    if wanted.mtu > (interface.mtu or 0):
        found.append(f"MTU {interface.mtu or 0} -> {wanted.mtu}")
    if (wanted.eswitch_mode or "legacy") != (interface.eswitch_mode or "legacy"):
        found.append(f"eSwitch mode {interface.eswitch_mode or 'legacy'} -> {wanted.eswitch_mode or 'legacy'}")
    if wanted.vfs_count != interface.vfs_count:
        found.append(f"virtual functions {interface.vfs_count} -> {wanted.vfs_count}")
    return found


def _vf_changes(wanted: WantedInterface, interface: StateInterface) -> typing.Iterator[str]:
    """Yield the differences between the virtual functions of a physical function and their desired state, as text.

    :param wanted: desired state of the physical function
    :param interface: physical function as the config daemon reports it
    """
    infiniband = (interface.link_type or "").upper() == "IB"
    for vf in interface.vfs:
        group = next((group for group in wanted.groups if group.first <= vf.index <= group.last), None)
        if group is None:
            continue
        kept = group.device_type not in ("", "netdevice")
        if not vf.driver or (kept and vf.driver != group.device_type) or (not kept and vf.driver in _DPDK):
            yield f"driver of virtual function {vf.index} {vf.driver or 'none'} -> {group.device_type or 'netdevice'}"
        elif not kept and vf.mtu and group.mtu and vf.mtu != group.mtu:
            yield f"MTU of virtual function {vf.index} {vf.mtu} -> {group.mtu}"
        elif not kept and (infiniband or group.rdma) and vf.guid == _NO_GUID:
            yield f"virtual function {vf.index} has no GUID"


def count_firmware_functions(
    wanted: typing.Iterable[WantedInterface], interfaces: typing.Iterable[StateInterface]
) -> dict[str, int]:
    """Return the number of virtual functions that the operator writes into the firmware of Mellanox NICs (NUM_OF_VFS),
    by the PCI address of each physical function that it configures. It leaves the firmware of NICs alone whose policy
    is externallyManaged. [pkg/vendors/mellanox/mellanox.go HandleTotalVfs]

    :param wanted: desired state of the physical functions of a node
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    wishes, totals = {item.address: item for item in wanted}, {}
    for interface in interfaces:
        wish = wishes.get(interface.address)
        if interface.vendor != MELLANOX or wish is None or wish.external:
            continue
        other = wishes.get(interface.address[:-1] + ("1" if interface.address.endswith("0") else "0"))
        totals[interface.address] = max(wish.vfs_count, other.vfs_count if other else 0)
    return totals


def firmware_changes(
    wanted: typing.Iterable[WantedInterface], interfaces: typing.Iterable[StateInterface]
) -> typing.Iterator[str]:
    """Yield the changes that the operator writes into the firmware of Mellanox NICs, which need a reboot.
    [pkg/vendors/mellanox/mellanox.go HandleTotalVfs, HandleLinkType]

    The two ports of a NIC share NUM_OF_VFS, so the larger of their desired values counts. sriov_totalvfs shows the
    present value of the firmware.

    :param wanted: desired state of the physical functions of a node
    :param interfaces: physical functions of the node, as its config daemon reports them
    """
    wishes, seen = {item.address: item for item in wanted}, tuple(interfaces)
    totals = count_firmware_functions(wishes.values(), seen)
    for interface in (interface for interface in seen if interface.address in totals):
        wish, total = wishes[interface.address], totals[interface.address]
        if interface.total_vfs != total:
            yield f"{interface.address} firmware NUM_OF_VFS {interface.total_vfs} -> {total}"
        if wish.link_type and interface.link_type and wish.link_type.upper() != interface.link_type.upper():
            yield f"{interface.address} firmware LINK_TYPE {interface.link_type} -> {wish.link_type.upper()}"
