# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses that the IPAM plugin of a fabric allocates to pods, and the number of addresses that the pods of a node
need.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.intent.intent import Fabric
from ..._model.intent.networks import Ipam, NvIpamPool
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._model.run.findings import FAIL, Finding
from ..._parse.kubernetes.networks.addresses import Pool, RangeError, parse_range
from ..._parse.kubernetes.networks.nv_ipam import Blocks, parse_blocks, parse_networks


class _KnownPool(typing.NamedTuple):
    """The pool of a fabric, and an address that is compared with it."""

    ipam: Ipam
    pool: typing.Union[Pool, Blocks]
    address: str


def find_pool(ipam: Ipam) -> typing.Union[Pool, Blocks]:
    """Return the addresses that an IPAM plugin allocates to pods according to an ipam mapping. The gateway is not among
    them. For whereabouts it is treated as an exclusion, because the renderer adds it to the exclusions.

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
    known = _find_known_pool(fabric, address)
    if known is None or known.pool.spans(known.address):
        return ""
    ends = [end for end in (known.ipam.range_start, known.ipam.range_end) if end is not None]
    return f"{known.ipam.range}, {' to '.join(ends)}" if ends else known.ipam.range


def excluded_from(fabric: Fabric, address: typing.Optional[str]) -> str:
    """Return the ipam settings that exclude an address from pods, such as ``exclude 10.0.0.0/28; gateway 10.0.0.1``.
    The text is empty if a pod may have the address, if the address is outside of the range, or if the range is invalid.

    :param address: address of a pod on the network of the fabric; None if unknown
    """
    known = _find_known_pool(fabric, address)
    if known is None or not known.pool.excludes(known.address):
        return ""
    ipam, pool = known.ipam, known.ipam.pool
    words = [f"exclude {', '.join(ipam.exclude)}"] if ipam.exclude else []
    words += [f"gateway {ipam.gateway}"] if ipam.gateway is not None else []
    words += [f"gateway_index {pool.gateway_index}"] if pool is not None and pool.gateway_index is not None else []
    return "; ".join(words)


def _find_known_pool(fabric: Fabric, address: typing.Optional[str]) -> typing.Optional[_KnownPool]:
    """Return the address together with the pool of the fabric to which it is compared. Return None if the fabric has no
    ipam, if the address is unknown, or if the range is invalid, which stage validate reports.

    :param address: address of a pod on the network of the fabric; None if unknown
    """
    if fabric.ipam is None or not address:
        return None
    try:
        return _KnownPool(fabric.ipam, find_pool(fabric.ipam), address)
    except RangeError:
        return None


def count_needed_on_a_node(fabric: Fabric) -> int:
    """Return the number of addresses that the pods of one node may use at the same time: one per VF, or one per pod."""
    return count_pods_on_a_node(fabric)


def describe_need(fabric: Fabric, nodes: int) -> str:
    """Return the number of required addresses with its calculation, as text for a finding.

    :param nodes: number of nodes
    """
    needed = count_of(nodes * count_pods_on_a_node(fabric), "address", "addresses")
    return f"{needed}: {count_of(nodes, 'node')} x {describe_addresses_per_node(fabric)}"


def describe_addresses_per_node(fabric: Fabric) -> str:
    """Return as text how many addresses the pods of one node need, such as ``2 HCAs x 8 VFs`` or ``63 pods``."""
    if find_traits(fabric).functions:
        return f"{fabric.select.hcas_per_node} HCAs x {fabric.virtual_functions} VFs"
    return count_of(count_pods_on_a_node(fabric), "pod")


def build_invalid_range(fabric: Fabric, error: RangeError) -> Finding:
    """Return the failed finding of a fabric whose address range is not valid.

    :param fabric: fabric of the intent
    :param error: error of the range
    """
    rerun = "" if "run stage" in error.remedy else " Then run stage network again."
    remedy = f"{error.remedy.rstrip('. ')}.{rerun}"
    return Finding(
        "network.addresses",
        fabric.name,
        FAIL,
        f"{error.field} '{error.seen}'",
        error.expected,
        error.why,
        remedy,
    )
