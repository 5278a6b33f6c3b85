# SPDX-License-Identifier: GPL-3.0-or-later

"""Comparison of the NUMA nodes of HCAs at the same PCI address on all nodes. Check id: ``discover.numa``.

The BIOS reports the NUMA node of a card, and no other source on the node can confirm it. The kubelet, NCCL and perftest
choose CPUs by this value.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.text import join_first
from ..._model.node.hca import Hca, NodeHcas
from ..._model.run.findings import WARN, Finding

_CHECK = "discover.numa"
#: nodes that are named
_NAMED = 4
#: PCI address, vendor and device
_Place = tuple[str, str, str]
_HARM = (
    "If the NUMA node is wrong, pods and ranks get CPUs of the other socket, and each transfer crosses from one socket"
    " to the other."
)
_REMEDY = (
    "Compare the slot of the card (dmidecode -t slot), the BIOS version (dmidecode -t bios), and NPS (AMD) or SNC"
    " (Intel) in the BIOS of these nodes. Make them equal, then run stage discover again."
)


def check(nodes: typing.Mapping[str, NodeHcas]) -> typing.Iterator[Finding]:
    """Yield a warning for each HCA whose NUMA node differs from that of most HCAs of the same model at the same PCI
    address. If several NUMA nodes are the most frequent, yield one warning for the address. HCAs without a NUMA node
    are ignored.

    :param nodes: HCAs of each node, by node
    """
    places: dict[_Place, dict[str, Hca]] = {}
    for name, node in nodes.items():
        for hca in node.hcas:
            if hca.pci is not None and not hca.is_virtual and hca.pci.numa_node is not None:
                places.setdefault((hca.pci.address, hca.pci.vendor, hca.pci.device), {})[name] = hca
    for (address, _vendor, _device), hcas in sorted(places.items()):
        counts = collections.Counter(_get_numa_node(hca) for hca in hcas.values())
        if len(counts) < 2:
            continue
        (usual, most), (_second, next_most) = counts.most_common(2)
        if most == next_most:
            shown = ", ".join(
                f"{number} on"
                f" {join_first([name for name, hca in hcas.items() if _get_numa_node(hca) == number], _NAMED)}"
                for number in sorted(counts)
            )
            why = f"The BIOS of each node reports the NUMA node of a card, and no value is the most frequent. {_HARM}"
            yield Finding(
                _CHECK, address, WARN, f"NUMA node {shown}", "the same NUMA node on comparable nodes", why, _REMEDY
            )
            continue
        for name, hca in hcas.items():
            if _get_numa_node(hca) != usual:
                why = (
                    f"For the HCA at {address}, the BIOS reports NUMA node {usual} on {most} of {len(hcas)} nodes."
                    f" {_HARM}"
                )
                yield Finding(
                    _CHECK,
                    f"{name} {hca.name}",
                    WARN,
                    f"NUMA node {_get_numa_node(hca)}",
                    f"NUMA node {usual}, as on comparable nodes",
                    why,
                    _REMEDY,
                )


def _get_numa_node(hca: Hca) -> int:
    return -1 if hca.pci is None or hca.pci.numa_node is None else hca.pci.numa_node
