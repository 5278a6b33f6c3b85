# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the addresses that a cluster already uses."""

from __future__ import annotations

import collections
import dataclasses
import ipaddress
import typing

from ..._model.kubernetes.addresses import (
    LEASES,
    AddressFacts,
    AddressLease,
    SharedPool,
    UnreadNode,
    UnreadPool,
    UsedNetwork,
)
from ..._parse.kubernetes.networks import ipam as parse
from ..._parse.kubernetes.networks.addresses import Network
from ..._parse.kubernetes.networks.multus import held_addresses
from ..._parse.kubernetes.resource import ResourceError, full_name_of
from .client import Cluster
from .errors import ApiError
from .kinds import Resource

_IpAddress = typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
#: nodes with a pod in a network that are named as evidence that it is in use. More say nothing new
_SHOWN = 20
#: attachments of a namespace, and networks of these, together
_MOST_ATTACHED = 512


class _Reader:
    """A reader of Kubernetes objects, page by page, that collects errors. A kind that the API server does not know
    counts as a kind without objects.

    :ivar errors: errors of objects and kinds that could not be read
    :ivar unread: nodes whose objects could not be read
    :ivar unread_pools: pools of nv-ipam and of whereabouts whose objects are invalid
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.errors: list[str] = []
        self.unread: list[UnreadNode] = []
        self.unread_pools: list[UnreadPool] = []

    def objects(self, kind: str, namespace: str = "") -> typing.Iterator[Resource]:
        """Yield the objects of a kind. A refusal of the server is added to ``errors``.

        :param namespace: namespace of the objects; empty for all namespaces
        :raises ApiError: the server cannot be reached
        """
        try:
            yield from self._cluster.pages(kind, namespace)
        except ApiError as error:
            if error.status == 0:
                raise
            if not error.absent:
                self.errors.append(error.seen)

    def parsed(
        self, kind: str, parser: typing.Callable[[Resource], typing.Any], namespace: str = ""
    ) -> typing.Iterator[typing.Any]:
        for item in self.objects(kind, namespace):
            try:
                yield parser(item)
            except ResourceError as error:
                self.errors.append(error.seen)

    def leases(self) -> set[AddressLease]:
        return {lease for found in self._pools(LEASES, LEASES, parse.parse_leases) for lease in found}

    def shared_pools(self) -> typing.Iterator[SharedPool]:
        """Yield the pools of nv-ipam (IPPool and CIDRPool). An invalid pool is added to ``unread_pools`` instead."""
        for kind in ("IPPool", "CIDRPool"):
            yield from self._pools(f"{kind}.nv-ipam.nvidia.com", kind, parse.shared_pool)

    def _pools(
        self, kind: str, name: str, parser: typing.Callable[[Resource], typing.Any]
    ) -> typing.Iterator[typing.Any]:
        """Yield the parsed pools of a kind. An invalid pool, which a tenant may have created, is added to
        ``unread_pools`` instead.

        :param kind: kind of the pools, as the API server knows it
        :param name: name of the kind in ``unread_pools``
        :param parser: function that parses a pool
        """
        for item in self.objects(kind):
            try:
                yield parser(item)
            except ResourceError as error:
                namespace, _slash, of_pool = full_name_of(item).rpartition("/")
                self.unread_pools.append(UnreadPool(name, namespace, of_pool, error.seen))

    def pods(self) -> typing.Iterator[tuple[str, str, tuple[str, ...], typing.Optional[frozenset[str]]]]:
        """Yield for each pod its name (namespace/name), its node, its addresses on the cluster network, and its
        addresses on all networks (None if not known). If the kubelet wrote an invalid pod status, the node is added to
        ``unread``, and the pod is yielded without addresses.
        """
        for item in self.objects("Pod"):
            try:
                yield (*parse.pod_networks(item), held_addresses(item))
            except ResourceError as error:
                found = parse.unread_pod(item, error.seen)
                if found is None:
                    self.errors.append(error.seen)
                    continue
                self.unread.append(found)
                yield full_name_of(item), found.node, (), None


def observe(cluster: Cluster, networks: typing.Sequence[Network]) -> AddressFacts:
    """Return all networks and IP addresses that the cluster uses. Errors are stored in ``errors`` of the result. A kind
    that the API server does not know counts as a kind without objects.

    :param networks: networks of the fabrics. Only pods with an address in one of them are returned, at most 20 nodes
        for each network
    :raises ApiError: the API server cannot be reached
    """
    reader = _Reader(cluster)
    pools = tuple(reader.shared_pools())
    taken, unclear = _read_used_networks(reader, pools)
    # the pods in between: a lease that is there before and after, and that no pod holds, is nobody's
    leases = _Leases(reader.leases())
    users_of_pools = [_PodsOfPool(pool) for pool in pools]
    pods, shown = 0, [_PodsOfNetwork(network) for network in networks]
    for name, node, addresses, held in reader.pods():
        leases.remove_held(name, held)
        numbers = [ipaddress.ip_address(text) for text in held or ()]
        for users in users_of_pools:
            users.add(name, numbers)
        pods += len(addresses)
        for text in addresses:
            for found in shown:
                found.add(UsedNetwork("pods", text, f"pod {name}", node=node))
    orphans = leases.unheld & reader.leases()
    errors = tuple(reader.errors)
    # where something could not be read, a pod that is not known is not a pod that is not there
    leaks = () if errors else tuple(sorted(orphans, key=lambda lease: (lease.pod, lease.address)))
    inside = dict.fromkeys(item for found in shown for item in found.inside.values())
    return AddressFacts(
        (*taken, *inside),
        pods,
        leaks,
        tuple(users.pool for users in users_of_pools),
        tuple(unclear),
        errors,
        tuple(reader.unread),
        tuple(dict.fromkeys(reader.unread_pools)),
    )


class _PodsOfPool:
    """The pods with an address of a pool of nv-ipam. Most pods have no address outside of the cluster network.

    :ivar pool: the pool, with the pods that were passed to ``add`` so far
    """

    def __init__(self, pool: SharedPool) -> None:
        self.pool, self._network = pool, ipaddress.ip_network(pool.network, strict=False)

    def add(self, name: str, addresses: typing.Iterable[_IpAddress]) -> None:
        """Add a pod if it has an address of the pool. Stop at the limit of pods.

        :param name: namespace/name
        :param addresses: addresses of the pod on all networks
        """
        if len(self.pool.pods) < _SHOWN and any(address in self._network for address in addresses):
            self.pool = dataclasses.replace(self.pool, pods=(*self.pool.pods, name))


class _Leases:
    """The address leases of whereabouts that no pod holds.

    A pod of a StatefulSet has the name of its predecessor, so a lease of an existing pod name may still be that of the
    predecessor. It is the predecessor's if the pod holds another lease of its name and does not hold this one. The
    reconciler of whereabouts decides by the same annotation [k8snetworkplumbingwg/whereabouts pkg/reconciler/iploop.go
    isPodAlive].

    :ivar unheld: leases that none of the pods passed to ``remove_held`` so far holds
    """

    def __init__(self, leases: typing.Iterable[AddressLease]) -> None:
        self.unheld = set(leases)
        self._by_pod: dict[str, list[AddressLease]] = {}
        for lease in self.unheld:
            self._by_pod.setdefault(lease.pod, []).append(lease)

    def remove_held(self, pod: str, held: typing.Optional[frozenset[str]]) -> None:
        """Remove from ``unheld`` the leases of a pod that it holds, or may hold.

        :param pod: namespace/name of the pod
        :param held: addresses that the pod holds: empty if it has ended; None if they are not known. If they are not
            known, or if no lease with the name of the pod is among them, all leases with its name are removed
        """
        leases = self._by_pod.get(pod, [])
        known = held is not None and (not held or any(lease.address in held for lease in leases))
        self.unheld.difference_update(lease for lease in leases if not known or lease.address in (held or ()))


class _PodsOfNetwork:
    """The first pod of each node whose address is in a network, for at most 20 nodes.

    :ivar inside: address and name of this pod, by node
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.inside: dict[str, UsedNetwork] = {}

    def add(self, item: UsedNetwork) -> None:
        address = ipaddress.ip_network(item.network)[0]
        if address in self._network and len(self.inside) < _SHOWN:
            self.inside.setdefault(item.node, item)


def _read_used_networks(reader: _Reader, pools: typing.Sequence[SharedPool]) -> tuple[list[UsedNetwork], list[str]]:
    """Return the networks of nodes, services and NetworkAttachmentDefinitions, and a message for each
    NetworkAttachmentDefinition whose networks are unknown.

    :param reader: reader of the cluster, which collects all other errors
    :param pools: pools of nv-ipam, which NetworkAttachmentDefinitions reference by name
    """
    taken: list[UsedNetwork] = []
    for networks_of_node, unread_node in reader.parsed(
        "Node", lambda node: (parse.node_networks(node), parse.unread_node(node))
    ):
        taken += networks_of_node
        reader.unread += [unread_node] if unread_node is not None else []
    for kind, parser, namespace in (
        ("ServiceCIDR", parse.service_networks, ""),
        ("Network.config.openshift.io", parse.openshift_networks, ""),
        # that of the API server shows in which network services are, where the server knows no ServiceCIDR
        ("Service", parse.service_addresses, "default"),
    ):
        for found in reader.parsed(kind, parser, namespace):
            taken += found
    attached, unclear = _read_attachments(reader.objects("NetworkAttachmentDefinition"), pools)
    return taken + attached, unclear


def _read_attachments(
    items: typing.Iterable[Resource], pools: typing.Sequence[SharedPool]
) -> tuple[list[UsedNetwork], list[str]]:
    """Return the networks of NetworkAttachmentDefinitions, and a message for each one whose networks are unknown.

    A tenant can create any number of them. If a namespace has more than ``_MOST_ATTACHED``, one message covers all
    further ones.

    :param items: NetworkAttachmentDefinitions of the cluster
    :param pools: pools of nv-ipam, which NetworkAttachmentDefinitions reference by name
    """
    taken: list[UsedNetwork] = []
    unclear: dict[str, None] = {}
    counts: typing.Counter[str] = collections.Counter()
    for item in items:
        namespace = full_name_of(item).partition("/")[0]
        if counts[namespace] >= _MOST_ATTACHED:
            unclear[
                f"namespace {namespace} has more than {_MOST_ATTACHED} networks in its NetworkAttachmentDefinitions"
            ] = None
            continue
        counts[namespace] += 1
        try:
            found = parse.attachment_networks(item, pools)
        except ResourceError as error:
            unclear[str(error)] = None
            continue
        taken += found
        counts[namespace] += len(found)
    return taken, list(unclear)
