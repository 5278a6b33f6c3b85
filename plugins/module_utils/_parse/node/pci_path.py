# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of PCI functions below /sys/devices, and the distance between two functions.
``/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0``: root, bridges, function.

The names of the distances are those of ``nvidia-smi topo -m``.
"""

from __future__ import annotations

import typing

from .sysfs import is_pci_address

#: nearest first
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")


class Path(typing.NamedTuple):
    """The path of a function in the PCI tree.

    :ivar root: name of the host bridge of the function, such as pci0000:17; empty if the path names none
    :ivar functions: PCI addresses from the root port down to the function itself
    """

    root: str
    functions: tuple[str, ...]


def parse_path(text: str) -> Path:
    """Parse the resolved path of a PCI function below /sys/devices, such as
    ``/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0``. Parts of another form are ignored.
    """
    parts = text.split("/")
    root = next((part for part in parts if part.startswith("pci")), "")
    return Path(root, tuple(part for part in parts if is_pci_address(part)))


def measure_distance(one: Path, other: Path, same_node: bool) -> str:
    """Return the distance between two functions by the names of ``nvidia-smi topo -m``.

    PIX: below the same bridge or switch. PXB: across several bridges below the same root port. PHB: across the host
    bridge. NODE: across host bridges of the same NUMA node. SYS: across NUMA nodes.

    :param same_node: whether both functions are on the same NUMA node
    """
    shared = _count_shared_bridges(one, other)
    if shared:
        deepest = max(len(one.functions), len(other.functions)) - shared
        # of a switch one port downward for each of them lies in between
        return "PIX" if deepest <= 2 else "PXB"
    if one.root and one.root == other.root:
        return "PHB"
    return "NODE" if same_node else "SYS"


def list_bridges_between(one: Path, other: Path) -> tuple[str, ...]:
    """Return the PCI addresses of the bridges that packets between two functions pass below their lowest common bridge:
    first those above ``one`` and then those above ``other``, each list from the top down. Return an empty tuple if the
    functions have no common bridge.
    """
    shared = _count_shared_bridges(one, other)
    return (*one.functions[shared:-1], *other.functions[shared:-1]) if shared else ()


def _count_shared_bridges(one: Path, other: Path) -> int:
    """Return the number of bridges that are above both functions. Bridges below different host bridges are never
    shared.
    """
    count = 0
    for mine, its in zip(one.functions[:-1], other.functions[:-1]):
        if mine != its or one.root != other.root:
            break
        count += 1
    return count
