# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage bandwidth, what is known to hold a pair back beside its links: a rate limit of a virtual function, and CPUs far from the HCA.

A bound explains a figure that is too low. It never makes one good: a limit that the intent has is in the floor already (floors.py).
"""

from __future__ import annotations

import typing

from ..._model.bandwidth import End, PairResult, RdmaPod
from ..._model.hca import Hca, NodeHcas


class Bound(typing.NamedTuple):
    why: str
    remedy: str


def bounds(
    pair: PairResult, pods: typing.Mapping[End, RdmaPod], nodes: typing.Mapping[str, NodeHcas], floor: typing.Optional[float], both: bool
) -> typing.List[Bound]:
    """What is known to hold back a pair that is too slow.

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
        limit = function.administration.max_tx_rate if function is not None and function.administration is not None else None
        if node is not None and function is not None and limit and (floor is None or limit / 1000 < floor):
            found.append(_limited(pod, function, limit, node))
        if pod.far_cpus:
            found.append(_far(pod))
    return found


def _limited(pod: RdmaPod, function: Hca, limit: int, node: NodeHcas) -> Bound:
    """:param limit: in Mb/s, as the kernel has it [ip-link(8): max_tx_rate]"""
    of = node.at(function.physical_function)
    netdev = of.netdevs[0].name if of is not None and of.netdevs else "PF"
    why = f"Its physical function lets {pod.pci} of {pod.node}, VF {function.vf_index} of {netdev}, send {limit / 1000:g} Gb/s at most (max_tx_rate {limit})."
    remedy = (
        f"Take the limit off, on {pod.node}: ip link set {netdev} vf {function.vf_index} max_tx_rate 0; and look who sets it. If it is meant so, write it into "
        f"network.max_tx_rate of the fabric ({limit}): the floor then follows it."
    )
    return Bound(why, remedy)


def _far(pod: RdmaPod) -> Bound:
    why = f"The pod on {pod.node} ran {pod.binding}, so all its data crosses from one NUMA node to another."
    remedy = (
        f"Bring the pod's CPUs to its HCA: topologyManagerPolicy single-numa-node and cpuManagerPolicy static in the kubelet of {pod.node}, and whole CPUs in "
        "pods.cpu of the fabric."
    )
    return Bound(why, remedy)
