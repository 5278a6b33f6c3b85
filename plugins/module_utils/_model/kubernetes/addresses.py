# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that are already in use in the cluster. Created by _parse/kubernetes/networks/ipam.py, read by
_analysis/addresses/in_use.py.

Networks and addresses are text, as the API server reports them.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing

from ..boundary.addresses import Address, Network
from ..boundary.kubernetes import Label, ObjectName, Subdomain
from ..boundary.words import Word

_AnyNetwork = typing.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
#: prefix lengths, by version of IP, of the surroundings of a network, in which other nodes have their podCIDRs
_AROUND = {4: 16, 6: 48}


@dataclasses.dataclass(frozen=True)
class UsedNetwork:
    """A network that is in use.

    :ivar kind: use of the network: pods, services, the address of a node, an attachment, an interface of a host
        (``host``), or an interface of a host of which no address in the range of a fabric is known (``near_host``)
    :ivar network: in CIDR form; a single address with /32 or /128
    :ivar owner: object that uses it, for messages: ``node worker-1``, ``ServiceCIDR kubernetes``; for an attachment its
        namespace/name
    :ivar ipam: for an attachment, its IPAM plugin
    :ivar node: node that reports the network: in its Node, in the status of its pods, or as its interface; empty if no
        single node reports it
    """

    kind: typing.Literal["pods", "services", "node", "attachment", "host", "near_host"]
    network: Network
    owner: str
    ipam: str = ""
    node: Subdomain = ""


@dataclasses.dataclass(frozen=True)
class AddressLease:
    """An address that whereabouts reserves for a pod (IPPool, whereabouts.cni.cncf.io/v1alpha1).

    :ivar address: the reserved address
    :ivar pod: namespace/name
    """

    address: Address
    pod: str


@dataclasses.dataclass(frozen=True)
class SharedPool:
    """A pool of nv-ipam (nv-ipam.nvidia.com/v1alpha1), of which each node gets a share.

    :ivar kind: IPPool or CIDRPool
    :ivar network: network of the pool in CIDR form
    :ivar share: perNodeBlockSize of an IPPool, perNodeNetworkPrefix of a CIDRPool
    :ivar nodes: nodes that have a share
    :ivar pods: pods with an address of the network, at most 20, as namespace/name
    """

    kind: Word
    namespace: Label
    name: ObjectName
    network: Network
    share: int
    nodes: tuple[Subdomain, ...] = ()
    pods: tuple[str, ...] = ()


#: kind of the pools of whereabouts, which have the leases of addresses
LEASES = "IPPool.whereabouts.cni.cncf.io"


@dataclasses.dataclass(frozen=True)
class UnreadPool:
    """A pool of nv-ipam or of whereabouts whose object is invalid.

    :ivar kind: ``IPPool`` or ``CIDRPool`` for nv-ipam, ``IPPool.whereabouts.cni.cncf.io`` for whereabouts
    :ivar why: the invalid text and its required format
    """

    kind: Word
    namespace: Label
    name: ObjectName
    why: str


@dataclasses.dataclass(frozen=True)
class UnreadNode:
    """A node whose addresses are invalid or could not be read.

    :ivar node: name of the node
    :ivar why: the invalid text and its required format, or why the object was not read
    """

    node: Subdomain
    why: str


@dataclasses.dataclass(frozen=True)
class AddressFacts:
    """The addresses that are in use in the cluster (address_info).

    :ivar taken: networks in use. Pod networks are those of nodes and cluster, and the addresses of pods in the
        requested networks, one for each node
    :ivar pods: number of pod addresses that were compared
    :ivar leaks: whereabouts reservations that no pod holds: the pod does not exist, has ended, or has other addresses
    :ivar pools: pools of nv-ipam
    :ivar unclear: attachments whose addresses are not known, each with the reason
    :ivar errors: reads that the API server refused
    :ivar unread: nodes whose addresses are invalid or could not be read
    :ivar unread_pools: pools of nv-ipam and of whereabouts whose objects are invalid
    """

    taken: tuple[UsedNetwork, ...] = ()
    pods: int = 0
    leaks: tuple[AddressLease, ...] = ()
    pools: tuple[SharedPool, ...] = ()
    unclear: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    unread: tuple[UnreadNode, ...] = ()
    unread_pools: tuple[UnreadPool, ...] = ()


def widen_network(network: _AnyNetwork) -> _AnyNetwork:
    """Return the /16 (IPv4) or /48 (IPv6) network around a network, in which other nodes have their podCIDRs. A larger
    network is returned unchanged.
    """
    prefix = _AROUND[network.version]
    return network.supernet(new_prefix=prefix) if network.prefixlen > prefix else network
