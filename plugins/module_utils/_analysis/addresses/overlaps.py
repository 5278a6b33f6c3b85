# SPDX-License-Identifier: GPL-3.0-or-later

"""Overlaps of the ranges and routes of the fabrics with networks in use, and the nodes whose word they rest on.

The kubelet of a node writes the addresses of its Node and of its pods, and can write any address. It can also write
podCIDRs that the control plane left empty. So such a network counts as used only if another node has an address of the
same kind in the range too: a Node address for a Node address, a pod for a pod. Addresses near the range prove nothing,
because the nodes may have the same /16 as the fabric. podCIDRs also count as used if another node has podCIDRs near the
range, because the control plane gives each node its part of one network. The networks of services, and those that
OpenShift's Network names, are not for kubelets to write.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.intent.intent import Intent
from ..._model.intent.networks import Ipam, NvIpamPool
from ..._model.kubernetes.addresses import LEASES, AddressFacts, SharedPool, UnreadPool, UsedNetwork, widen_network
from ..._model.run.findings import UNKNOWN, WARN, Finding
from ..._parse.kubernetes.networks.addresses import Network, RangeError, parse_network

_SHOWN = 5
_WHAT = {
    "pods": "the pod network",
    "services": "the service network",
    "node": "address",
    "attachment": "the network of another attachment",
    "host": "used by the host itself",
    "near_host": "a network of the host itself",
}


#: kinds of networks to which a route may be intended
_MEANT = ("attachment", "host", "near_host")


class Overlap(typing.NamedTuple):
    """An overlap of a range or route of a fabric with a network in use.

    :ivar place: range or route, for messages
    :ivar item: network in use
    """

    place: str
    item: UsedNetwork

    def __str__(self) -> str:
        what = _WHAT[self.item.kind]
        use = f"{what} of {self.item.owner}" if self.item.kind == "node" else f"{self.item.owner}, {what}"
        return f"{self.place} overlaps with {self.item.network} ({use})"


class Overlaps(typing.NamedTuple):
    """The overlaps of a fabric.

    :ivar real: overlaps with networks that are in use, attachments last
    :ivar claimed: overlaps with networks that a single node reports
    """

    real: tuple[Overlap, ...]
    claimed: tuple[Overlap, ...]


def find_overlaps(ipam: Ipam, network: Network, known: typing.Sequence[tuple[Network, UsedNetwork]]) -> Overlaps:
    """Return the overlaps of the range of a fabric and of the destinations of its routes. Overlaps of a route with
    attachments and with networks of hosts are left out, because such a route may be intended.

    :param network: range of the fabric
    :param known: networks in use, without those of the intent, each with its item
    """
    nodes = {item.node for _network, item in known if item.node}
    real: list[Overlap] = []
    claimed: list[Overlap] = []
    for place, target, attachments in (
        (f"ipam range {network}", network, True),
        *((f"the route to {route}", route, False) for route in _list_routes(ipam)),
    ):
        witnesses = _find_witnesses(target, known)
        for other, item in known:
            if not is_overlapping(target, other) or (item.kind in _MEANT and not attachments):
                continue
            # on a cluster of one node it harms no other node to believe it
            believed = not item.node or len(nodes) == 1 or bool(witnesses[item.kind, _is_address(other)] - {item.node})
            (real if believed else claimed).append(Overlap(place, item))
    real.sort(key=lambda found: found.item.kind == "attachment")
    return Overlaps(tuple(real), tuple(claimed))


def _find_witnesses(
    target: Network, known: typing.Iterable[tuple[Network, UsedNetwork]]
) -> dict[tuple[str, bool], set[str]]:
    """Return the names of the nodes whose reports confirm that a network is in use. The key is a pair: the kind of the
    network, and whether the network is a single address.

    :param target: range or route of a fabric
    :param known: networks in use, each with its item
    """
    around = widen_network(target)
    found: dict[tuple[str, bool], set[str]] = collections.defaultdict(set)
    for network, item in known:
        if not item.node:
            continue
        if is_overlapping(target, network):
            found[item.kind, True].add(item.node)
            found[item.kind, False].add(item.node)
        elif item.kind == "pods" and not _is_address(network) and is_overlapping(around, network):
            found[item.kind, False].add(item.node)
    return found


def check_claims(found: typing.Iterable[tuple[str, Overlaps]]) -> list[Finding]:
    """Return a finding for each node that alone reports addresses in the range or a route of a fabric.

    :param found: names of the fabrics with their overlaps
    """
    claims: dict[str, list[str]] = collections.defaultdict(list)
    for fabric, overlaps in found:
        for overlap in overlaps.claimed:
            claims[overlap.item.node].append(f"{overlap} in fabric {fabric}")
    why = (
        "No other node has an address of this kind in the range. A kubelet can report any address, so the report of a"
        " single node keeps no fabric from being applied. If the address is in use, a pod of the fabric may get the"
        " same address, or may not reach the node or its pods."
    )
    return [
        Finding(
            "network.address_overlap",
            f"node {node}",
            UNKNOWN,
            join_first(texts, _SHOWN, "; "),
            "no overlap of the addresses of the node and its pods with the fabrics",
            why,
            f"Compare status.addresses and spec.podCIDRs of the node (kubectl get node {node} -o yaml) and the"
            f" addresses of its pods (kubectl get pods -A -o wide --field-selector spec.nodeName={node}) with the"
            " interfaces of the node. If the address is in use, set ipam of the fabric to another network. If not,"
            " repair the node, or remove it from the cluster. Then run stage network again.",
        )
        for node, texts in sorted(claims.items())
    ]


def check_unread_pools(intent: Intent, seen: AddressFacts) -> typing.Iterator[Finding]:
    """Yield a warning about invalid nv-ipam pools that no fabric of the intent names, and one about invalid pools of
    whereabouts. A tenant may have created them, so they keep no fabric from being applied.

    :param seen: addresses that are in use in the cluster
    """
    leases = [item for item in seen.unread_pools if item.kind == LEASES]
    if leases:
        texts = [f"{item.why} ({item.namespace}/{item.name})" for item in leases]
        yield Finding(
            "network.addresses",
            "leases",
            WARN,
            f"{count_of(len(leases), 'IPPool')} of whereabouts not read",
            "all IPPools of whereabouts read",
            f"{format_clause(join_first(texts, _SHOWN, '; '))}. Without these pools, it is unknown which addresses"
            " whereabouts still holds for deleted pods.",
            "Run kubectl get ippools.whereabouts.cni.cncf.io -n NAMESPACE NAME -o yaml for each of these pools, and"
            " correct the value, or delete the pool if no pod uses it. Then run stage network again.",
        )
    others = [item for item in seen.unread_pools if item.kind != LEASES and not is_own_pool(intent, item)]
    if others:
        texts = [f"{item.why} ({item.namespace}/{item.name})" for item in others]
        yield Finding(
            "network.address_overlap",
            "pools",
            WARN,
            f"{count_of(len(others), 'pool')} of nv-ipam not compared",
            "all pools of nv-ipam compared",
            f"{format_clause(join_first(texts, _SHOWN, '; '))}. Therefore the networks of these pools are unknown, and"
            " may overlap with those of the fabrics.",
            "Run kubectl get ippools.nv-ipam.nvidia.com,cidrpools.nv-ipam.nvidia.com -A -o yaml, and correct the values"
            " in these pools, or delete the pools if no pod uses them. Then run stage network again.",
        )


def is_pool(item: typing.Union[SharedPool, UnreadPool], pool: NvIpamPool) -> bool:
    """Return whether a pool of the cluster is the pool that the intent names."""
    return (item.kind, item.namespace, item.name) == (pool.kind, pool.namespace, pool.name)


def is_own_pool(intent: Intent, item: typing.Union[SharedPool, UnreadPool]) -> bool:
    """Return whether a fabric of the intent names a pool of the cluster."""
    return any(is_pool(item, fabric.pool) for fabric in intent.fabrics if fabric.pool)


def _list_routes(ipam: Ipam) -> list[Network]:
    """Return the destination networks of the routes. A default route is left out: it overlaps with every network, and
    validate.routes warns about it. Invalid routes are left out too.
    """
    found = []
    for route in ipam.routes:
        try:
            found.append(parse_network(route.dst))
        except RangeError:
            continue  # refused by stage validate
    return [network for network in found if network.prefixlen]


def _is_address(network: Network) -> bool:
    return network.prefixlen == network.max_prefixlen


def is_overlapping(network: Network, other: Network) -> bool:
    """Return whether two networks are of the same IP version and have addresses in common."""
    return other.version == network.version and network.overlaps(other)
