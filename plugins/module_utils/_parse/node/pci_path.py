# SPDX-License-Identifier: GPL-3.0-or-later

"""Paths of PCI functions below /sys/devices: what lies between two of them.
``/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0``: root, bridges, function.

The words for a distance are those of ``nvidia-smi topo -m``.
"""

from __future__ import annotations

import typing

from .sysfs import is_pci_address

#: nearest first
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")


class Path(typing.NamedTuple):
    """A function in the tree.

    :ivar root: name of its host bridge, pci0000:17; empty where the path has none
    :ivar functions: PCI addresses from the root port down to the function itself
    """

    root: str
    functions: tuple[str, ...]


def path(text: str) -> Path:
    """Of a real path."""
    parts = text.split("/")
    root = next((part for part in parts if part.startswith("pci")), "")
    return Path(root, tuple(part for part in parts if is_pci_address(part)))


def distance(one: Path, other: Path, same_node: bool) -> str:
    """Return the distance of two functions.

    PIX: below one switch, or one bridge; PXB: several bridges, but not the host's; PHB: that one; NODE: another one of
    the NUMA node; SYS: another node.
    """
    shared = _count_shared_bridges(one, other)
    if shared:
        deepest = max(len(one.functions), len(other.functions)) - shared
        # of a switch one port downward for each of them lies in between
        return "PIX" if deepest <= 2 else "PXB"
    if one.root and one.root == other.root:
        return "PHB"
    return "NODE" if same_node else "SYS"


def between(one: Path, other: Path) -> tuple[str, ...]:
    """Bridges below what two functions share, at which packets turn from the one to the other; none where they share no
    bridge."""
    shared = _count_shared_bridges(one, other)
    return (*one.functions[shared:-1], *other.functions[shared:-1]) if shared else ()


def _count_shared_bridges(one: Path, other: Path) -> int:
    """Bridges that are above both."""
    count = 0
    for mine, its in zip(one.functions[:-1], other.functions[:-1]):
        if mine != its or one.root != other.root:
            break
        count += 1
    return count
