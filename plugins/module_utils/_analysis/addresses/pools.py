# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses that the IPAM plugin of a fabric allocates to pods, and the number of addresses that the pods of a node
need.
"""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric
from ..._model.intent.networks import Ipam, NvIpamPool
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._parse.kubernetes.addresses import Pool, RangeError, parse_range
from ..._parse.kubernetes.nv_ipam import Blocks, parse_blocks, parse_networks


def find_pool(ipam: Ipam) -> typing.Union[Pool, Blocks]:
    """Return the addresses that an IPAM plugin allocates to pods according to an ipam mapping. The gateway is excluded:
    whereabouts itself does not exclude it, so the renderer does.

    :raises RangeError: the range or another value of the mapping is invalid
    """
    if ipam.type == "whereabouts":
        pool = parse_range(ipam.range, ipam.range_start, ipam.range_end, ipam.exclude)
        if ipam.gateway is not None and pool.hands_out(ipam.gateway):
            return parse_range(ipam.range, ipam.range_start, ipam.range_end, (*ipam.exclude, ipam.gateway.strip()))
        return pool
    wanted = ipam.pool or NvIpamPool("")
    if wanted.kind == "IPPool":
        return parse_blocks(ipam.range, wanted.per_node_block_size, ipam.gateway, ipam.exclude)
    return parse_networks(ipam.range, wanted.per_node_network_prefix or 0, wanted.gateway_index, ipam.exclude)


def outside_of(fabric: Fabric, address: typing.Optional[str]) -> str:
    """Return the range of the fabric as text if an address is outside of it; empty if the address is inside.

    The result is also empty if the fabric has no ipam, if the address is unknown, or if the range is invalid, which
    stage validate reports.

    :param address: address of a pod on the network of the fabric; None if unknown
    """
    if fabric.ipam is None or not address:
        return ""
    try:
        inside = find_pool(fabric.ipam).spans(address)
    except RangeError:
        return ""
    ends = [end for end in (fabric.ipam.range_start, fabric.ipam.range_end) if end is not None]
    if inside:
        return ""
    return f"{fabric.ipam.range}, {' to '.join(ends)}" if ends else fabric.ipam.range


def excluded_from(fabric: Fabric, address: typing.Optional[str]) -> str:
    """Return the ipam settings that exclude an address from pods, such as ``exclude 10.0.0.0/28; gateway 10.0.0.1``.
    The text is empty if a pod may have the address, if the address is outside of the range, or if the range is invalid.

    :param address: address of a pod on the network of the fabric; None if unknown
    """
    if fabric.ipam is None or not address:
        return ""
    try:
        excluded = find_pool(fabric.ipam).excludes(address)
    except RangeError:
        return ""
    pool = fabric.ipam.pool
    words = [f"exclude {', '.join(fabric.ipam.exclude)}"] if fabric.ipam.exclude else []
    words += [f"gateway {fabric.ipam.gateway}"] if fabric.ipam.gateway is not None else []
    words += [f"gateway_index {pool.gateway_index}"] if pool is not None and pool.gateway_index is not None else []
    return "; ".join(words) if excluded else ""


def count_needed_on_a_node(fabric: Fabric) -> int:
    """Return the number of addresses that the pods of one node may use at the same time: one per VF, or one per pod."""
    return count_pods_on_a_node(fabric)


def describe_need(fabric: Fabric, nodes: int) -> str:
    """Return the number of required addresses with its calculation, as text for a finding.

    :param nodes: number of nodes
    """
    return f"{nodes * count_pods_on_a_node(fabric)} addresses: {nodes} nodes x {describe_addresses_per_node(fabric)}"


def describe_addresses_per_node(fabric: Fabric) -> str:
    """Return as text how many addresses the pods of one node need, such as ``2 HCAs x 8 VFs`` or ``63 pods``."""
    if find_traits(fabric).functions:
        return f"{fabric.select.hcas_per_node} HCAs x {fabric.virtual_functions} VFs"
    return f"{count_pods_on_a_node(fabric)} pods"
