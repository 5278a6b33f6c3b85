# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that the cluster uses already. Filled by _parse/kubernetes/ipam.py, read by _analysis/addresses/in_use.py.

Networks and addresses are text, as the API server shows them.
"""

from __future__ import annotations

import dataclasses
import typing

from ..boundary.addresses import Address, Network
from ..boundary.kubernetes import Label, ObjectName, Subdomain
from ..boundary.words import Word


@dataclasses.dataclass(frozen=True)
class UsedNetwork:
    """A network that somebody uses.

    :ivar network: in CIDR form; a single address with /32 or /128
    :ivar owner: whose it is, for a reader: ``node worker-1``, ``ServiceCIDR kubernetes``; of an attachment its
        namespace/name
    :ivar ipam: of an attachment: who gives its addresses out
    """

    kind: typing.Literal["pods", "services", "node", "attachment"]
    network: Network
    owner: str
    ipam: str = ""


@dataclasses.dataclass(frozen=True)
class AddressLease:
    """An address that whereabouts keeps for a pod (IPPool, whereabouts.cni.cncf.io/v1alpha1).

    :ivar pod: namespace/name
    """

    address: Address
    pod: str


@dataclasses.dataclass(frozen=True)
class SharedPool:
    """A pool of nv-ipam (nv-ipam.nvidia.com/v1alpha1).

    :ivar share: perNodeBlockSize of an IPPool, perNodeNetworkPrefix of a CIDRPool
    :ivar nodes: that have a share
    """

    kind: Word
    namespace: Label
    name: ObjectName
    network: Network
    share: int
    nodes: tuple[Subdomain, ...] = ()


@dataclasses.dataclass(frozen=True)
class UnreadNode:
    """A node whose addresses can't be told.

    :ivar why: which of them, and what they are not
    """

    node: Subdomain
    why: str


@dataclasses.dataclass(frozen=True)
class AddressFacts:
    """Answer of address_info.

    :ivar taken: of pods only the networks of nodes and cluster, and the pods inside of what was asked about
    :ivar pods: addresses of pods that were compared
    :ivar leaks: of whereabouts, for pods that are not there
    :ivar pools: of nv-ipam
    :ivar unclear: attachments whose addresses can't be told, each with the reason
    :ivar errors: what the API server did not let us read
    :ivar unread: nodes that show something else than addresses of nodes
    """

    taken: tuple[UsedNetwork, ...] = ()
    pods: int = 0
    leaks: tuple[AddressLease, ...] = ()
    pools: tuple[SharedPool, ...] = ()
    unclear: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    unread: tuple[UnreadNode, ...] = ()
