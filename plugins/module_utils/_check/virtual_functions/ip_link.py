# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of ip link that change VFs at their physical function."""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.node.hca import Hca

#: numbers of VFs that a command lists
_MOST = 16


def name_interface(physical: Hca) -> str:
    """Return the network interface of a physical function; ``PF`` if it has none on the node."""
    return physical.netdevs[0].name if physical.netdevs else "PF"


def format_mtu_command(vfs: typing.Iterable[Hca], mtu: int) -> str:
    """Return the command that sets the MTU of the interfaces of VFs on the node.

    For several interfaces, the command contains ``INTERFACE``, and their names follow.

    :param vfs: VFs that are changed
    :param mtu: MTU in bytes
    """
    names = [netdev.name for vf in vfs for netdev in vf.netdevs]
    if len(names) == 1:
        return f"ip link set dev {names[0]} mtu {mtu}"
    each = f", for each INTERFACE of {join_first(names, _MOST)}" if names else ""
    return f"ip link set dev INTERFACE mtu {mtu}{each}"


def format_each(vfs: typing.Iterable[Hca], command: str) -> str:
    """Return a command with the PCI address of a VF in place of ``ADDRESS``. For several VFs, the command keeps
    ``ADDRESS``, and the addresses follow.

    :param vfs: VFs that are changed
    :param command: command that contains ``ADDRESS``
    """
    addresses = [vf.pci.address for vf in vfs if vf.pci]
    if len(addresses) == 1:
        return command.replace("ADDRESS", addresses[0])
    return f"{command}, for each ADDRESS of {join_first(addresses, _MOST)}" if addresses else command


def format_command(physical: Hca, vfs: typing.Sequence[Hca], setting: str) -> str:
    """Return the command that changes a setting of VFs at their physical function. It contains the interface and the
    number of the VF. For several VFs, it contains ``NUMBER``, and the numbers follow.

    :param physical: physical function of the VFs
    :param vfs: VFs that are changed, at least one
    :param setting: setting with its value, as ip link takes it: ``state auto``
    """
    interface = name_interface(physical)
    numbers = [vf.vf_index for vf in vfs if vf.vf_index is not None]
    if len(vfs) == len(numbers) == 1:
        return f"ip link set {interface} vf {numbers[0]} {setting}"
    command = f"ip link set {interface} vf NUMBER {setting}"
    if len(numbers) == len(vfs):
        return f"{command}, for each NUMBER of {join_first(sorted(map(str, numbers), key=int), _MOST)}"
    return f"{command}, with NUMBER from ip -d link show {interface}"
