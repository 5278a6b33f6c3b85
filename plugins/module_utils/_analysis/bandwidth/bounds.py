# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, what is known to hold a pair back beside its links: a rate limit of a virtual function, and CPUs far
from the HCA.

A bound explains a figure that is too low, of a pair or of one of its layers. It never makes one good: a limit that the
intent has is in the floor already (floors.py).
"""

from __future__ import annotations

import typing

from ..._model.measurement.bandwidth import End, PairResult, RdmaPod
from ..._model.node.hca import NodeHcas


class BandwidthBound(typing.NamedTuple):
    """text: what holds back, for the middle of a sentence."""

    text: str
    remedy: str

    @property
    def why(self) -> str:
        """As a sentence of its own."""
        return f"{self.text[0].upper()}{self.text[1:]}."


def find_bounds(
    pair: PairResult,
    pods: typing.Mapping[End, RdmaPod],
    nodes: typing.Mapping[str, NodeHcas],
    floor: typing.Optional[float],
    both: bool,
) -> list[BandwidthBound]:
    """Return the known limits of a pair that is too slow.

    :param pods: of its two ends at least
    :param nodes: HCAs of the nodes, as the nodes' own network namespace shows them
    :param floor: in Gb/s, what the pair must reach; a limit from there on holds nobody back
    :param both: each end sends
    """
    found = []
    for end in (pair.client_end, pair.server_end):
        pod = pods.get(end)
        if pod is None:
            continue
        node = nodes.get(end[1]) if end == pair.client_end or both else None
        function = node.at(pod.pci) if node is not None else None
        limit = (
            function.administration.max_tx_rate
            if function is not None and function.administration is not None
            else None
        )
        if node is not None and function is not None and limit and (floor is None or limit / 1000 < floor):
            found.append(limited(pod.node, pod.pci or "", limit, node))
        if pod.far_cpus:
            found.append(far(f"the pod on {pod.node}", pod.binding, pod.node))
    return found


def limited(name: str, function: str, limit: int, node: typing.Optional[NodeHcas]) -> BandwidthBound:
    """Return a rate limit of a virtual function.

    :param name: of the node
    :param function: its PCI address
    :param limit: in Mb/s, as the kernel has it [ip-link(8): max_tx_rate]
    :param node: HCAs of the node, by which function and limit are called; None where they are not known
    """
    own = node.at(function) if node is not None else None
    of = node.at(own.physical_function) if node is not None and own is not None else None
    netdev = of.netdevs[0].name if of is not None and of.netdevs else "PF"
    number = own.vf_index if own is not None and own.vf_index is not None else "NUMBER"
    text = (
        f"the physical function lets {function} of {name}, VF {number} of {netdev}, send {limit / 1000:g} Gb/s at most"
        f" (max_tx_rate {limit})"
    )
    remedy = (
        f"Take the limit off, on {name}: ip link set {netdev} vf {number} max_tx_rate 0; and look who sets it. If it is"
        f" meant so, write it into network.max_tx_rate of the fabric ({limit}): the floor then follows it."
    )
    return BandwidthBound(text, remedy)


def far(what: str, binding: str, name: str) -> BandwidthBound:
    """CPUs of another NUMA node than the HCA's.

    :param what: ran there
    :param binding: to which CPUs, or why it is bound to none
    :param name: of the node
    """
    text = f"{what} ran {binding}, so all its data crosses from one NUMA node to another"
    remedy = (
        "Bring the pod's CPUs to its HCA: topologyManagerPolicy single-numa-node and cpuManagerPolicy static in the"
        f" kubelet of {name}, and whole CPUs in pods.cpu of the fabric."
    )
    return BandwidthBound(text, remedy)
