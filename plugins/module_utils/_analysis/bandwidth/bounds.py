# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth: find known limits of a pair other than its links: a rate limit of a virtual function, and CPUs on
another NUMA node than the HCA.

Such a limit explains a bandwidth that is too low, of a pair or of one of its layers. It never turns a failure into a
pass. A rate limit that the intent sets is already part of the floor (floors.py).
"""

from __future__ import annotations

import typing

from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.pairs import End, PairResult
from ..._model.node.hca import NodeHcas


class BandwidthBound(typing.NamedTuple):
    """A known limit of the bandwidth of a pair, with the remedy that removes it.

    :ivar text: the limit, as a clause for the middle of a sentence
    :ivar remedy: instruction that removes the limit
    """

    text: str
    remedy: str

    @property
    def why(self) -> str:
        """Return the limit as a complete sentence."""
        return f"{self.text[0].upper()}{self.text[1:]}."


def find_bounds(
    pair: PairResult,
    pods: typing.Mapping[End, RdmaPod],
    nodes: typing.Mapping[str, NodeHcas],
    floor: typing.Optional[float],
    both: bool,
) -> list[BandwidthBound]:
    """Return the known causes that limit the bandwidth of a pair, each with its remedy: a rate limit of a virtual
    function, and CPUs of a pod on another NUMA node than its HCA.

    :param pair: measured pair that is too slow
    :param pods: pods by rail and node, including those of the pair
    :param nodes: HCAs of the nodes, as read in the network namespace of the node
    :param floor: bandwidth in Gb/s that the pair must reach. A rate limit at or above it is ignored. None if unknown:
        every rate limit counts
    :param both: whether client and server both send; otherwise only the rate limit of the client counts
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
            found.append(bound_by_rate_limit(pod.node, pod.pci or "", limit, node))
        if pod.far_cpus:
            found.append(bound_by_far_cpus(f"the pod on {pod.node}", pod.binding, pod.node))
    return found


def bound_by_rate_limit(name: str, function: str, limit: int, node: typing.Optional[NodeHcas]) -> BandwidthBound:
    """Return the limit of a pair's bandwidth that the rate limit of a virtual function sets, with the remedy.

    :param name: name of the node
    :param function: PCI address of the virtual function
    :param limit: limit in Mb/s, as the kernel reports it [ip-link(8): max_tx_rate]
    :param node: HCAs of the node, for the names in the text; None if unknown
    """
    own = node.at(function) if node is not None else None
    of = node.at(own.physical_function) if node is not None and own is not None else None
    netdev = of.netdevs[0].name if of is not None and of.netdevs else "PF"
    number = own.vf_index if own is not None and own.vf_index is not None else "NUMBER"
    text = (
        f"the physical function limits {function} of {name}, VF {number} of {netdev}, to {limit / 1000:g} Gb/s"
        f" (max_tx_rate {limit})"
    )
    remedy = (
        f"Run on {name}, as root: ip link set {netdev} vf {number} max_tx_rate 0. If the limit returns, remove it"
        " from the program that sets it. If the limit is intended, set network.max_tx_rate of the fabric to"
        f" {limit}, which lowers the minimum."
    )
    return BandwidthBound(text, remedy)


def bound_by_far_cpus(what: str, binding: str, name: str) -> BandwidthBound:
    """Return the limit of a pair's bandwidth by CPUs on another NUMA node than the HCA, with the remedy.

    :param what: subject of the text: the pod or the process that ran there
    :param binding: the CPUs to which it is bound, or the reason why it is not bound, as text
    :param name: name of the node
    """
    text = f"{what} ran {binding}, but its HCA is on another NUMA node, so all of its data crosses between NUMA nodes"
    remedy = (
        "Run the pod on CPUs of the NUMA node of its HCA: set topologyManagerPolicy single-numa-node and"
        f" cpuManagerPolicy static in the kubelet configuration of {name}, and a whole number of CPUs in pods.cpu of"
        " the fabric."
    )
    return BandwidthBound(text, remedy)
