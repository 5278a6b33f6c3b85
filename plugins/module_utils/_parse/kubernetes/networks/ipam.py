# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the networks and addresses that are in use: by attachments, by pools of whereabouts and nv-ipam, and by the
cluster itself.

Sources: k8snetworkplumbingwg multi-network specification 1.3 (NetworkAttachmentDefinition: a CNI configuration as
text); containernetworking/plugins ipam/{host-local,static}; whereabouts 0.9 pkg/types and pkg/storage/kubernetes (an
allocation's key is its distance from the network address); nvidia-k8s-ipam api/v1alpha1; OpenShift
config.openshift.io/v1 Network; networking.k8s.io/v1 ServiceCIDR.
"""

from __future__ import annotations

import ipaddress
import typing

from ...._model.base.text import join_first
from ...._model.boundary.addresses import HOST_ADDRESS, NETWORK_OF
from ...._model.boundary.kubernetes import LABEL, SUBDOMAIN
from ...._model.boundary.words import WORD
from ...._model.kubernetes.addresses import AddressLease, SharedPool, UnreadNode, UsedNetwork
from ..resource import (
    Resource,
    ResourceError,
    full_name_of,
    items_of,
    json_of,
    list_known,
    mapping_at,
    name_of,
    normalize_known,
    number_of,
    text_at,
    text_of,
    title_of,
    why_not_read,
)

#: networks of an attachment; real ones have two, one of each version of IP
MOST_NETWORKS = 64


def _parse_network(value: typing.Any, what: str) -> str:
    """Return the network of an address with a prefix, or of a network, in CIDR form.

    :param value: text in CIDR form, such as ``10.0.0.5/24``
    :param what: name of the value in messages
    :raises ResourceError: the value is neither a network nor an address
    """
    return text_of(NETWORK_OF, value, what)


def _parse_networks(values: typing.Any, what: str) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ResourceError(f"{what} is not a list")
    return tuple(_parse_network(value, what) for value in values)


def node_networks(node: Resource) -> tuple[UsedNetwork, ...]:
    """Return the addresses of a v1 Node, and the networks from which it gives addresses to pods. The kubelet can write
    any text as an address. An invalid address is left out here, and :func:`unread_node` reports it. The result is empty
    for a Node whose object could not be read.

    :raises ResourceError: the object is not a valid Node, or its podCIDRs are invalid
    """
    name = name_of(node)
    if why_not_read(node):
        return ()
    addresses = list_known(HOST_ADDRESS, _list_node_addresses(node))
    pods = mapping_at(node, "spec").get("podCIDRs") or []
    return (
        *(UsedNetwork("node", _parse_network(address, name), f"node {name}", node=name) for address in addresses),
        *(
            UsedNetwork("pods", network, f"pods of node {name}", node=name)
            for network in _parse_networks(pods, f"Node {name}: spec.podCIDRs")
        ),
    )


def unread_node(node: Resource) -> typing.Optional[UnreadNode]:
    """Return the name of a v1 Node whose addresses are not all known, with the reason: either the object could not be
    read, or an address is invalid. Return None if all addresses are known.

    :raises ResourceError: the object is not a valid Node
    """
    if why_not_read(node):
        return UnreadNode(name_of(node), f"its object is {why_not_read(node)}")
    for address in _list_node_addresses(node):
        try:
            text_of(HOST_ADDRESS, address, "status.addresses")
        except ResourceError as error:
            return UnreadNode(name_of(node), error.seen)
    return None


def unread_pod(pod: Resource, why: str) -> typing.Optional[UnreadNode]:
    """Return the node of a v1 Pod whose addresses are invalid, with the reason. Return None if the Pod is not assigned
    to a node.

    :param why: reason why the addresses of the Pod are invalid
    :raises ResourceError: the object is not a valid Pod
    """
    node = normalize_known(SUBDOMAIN, mapping_at(pod, "spec").get("nodeName"))
    return UnreadNode(node, why) if node else None


def _list_node_addresses(node: Resource) -> list[typing.Any]:
    shown = items_of(mapping_at(node, "status"), "addresses", f"Node {name_of(node)}")
    return [item.get("address") for item in shown if item.get("type") in ("InternalIP", "ExternalIP")]


def service_networks(resource: Resource) -> tuple[UsedNetwork, ...]:
    """Return the networks of a ServiceCIDR, from which Services get their addresses.

    :raises ResourceError: the object is not a valid ServiceCIDR
    """
    name = name_of(resource)
    return tuple(
        UsedNetwork("services", network, f"ServiceCIDR {name}")
        for network in _parse_networks(mapping_at(resource, "spec").get("cidrs") or [], f"ServiceCIDR {name}")
    )


def service_addresses(resource: Resource) -> tuple[UsedNetwork, ...]:
    """Return the addresses of a v1 Service. The result is empty for a headless Service.

    :raises ResourceError: the object is not a valid Service, or an address is invalid
    """
    name = f"Service {full_name_of(resource)}"
    addresses = mapping_at(resource, "spec").get("clusterIPs") or []
    # this is how Kubernetes writes that it has none
    return tuple(
        UsedNetwork("services", network, name)
        for network in _parse_networks([] if addresses == ["None"] else addresses, name)
    )


def openshift_networks(resource: Resource) -> tuple[UsedNetwork, ...]:
    """Return the pod and service networks in the Network (config.openshift.io/v1) of OpenShift, from its status or, if
    it has no status, from its spec.

    :raises ResourceError: the object is not a valid Network
    """
    what = f"Network {name_of(resource)}"
    status = mapping_at(resource, "status") or mapping_at(resource, "spec")
    pods = [item.get("cidr") for item in items_of(status, "clusterNetwork", what)]
    return (
        *(UsedNetwork("pods", network, f"{what}: clusterNetwork") for network in _parse_networks(pods, what)),
        *(
            UsedNetwork("services", network, f"{what}: serviceNetwork")
            for network in _parse_networks(status.get("serviceNetwork") or [], what)
        ),
    )


def pod_networks(pod: Resource) -> tuple[str, str, tuple[str, ...]]:
    """Return ``namespace/name`` of a v1 Pod, the name of its node, and its addresses on the cluster network. The name
    of the node is empty if the Pod is not assigned to one. A Pod on the host network has no addresses here.

    :raises ResourceError: the object is not a valid Pod
    """
    name, spec = full_name_of(pod), mapping_at(pod, "spec")
    node = normalize_known(SUBDOMAIN, spec.get("nodeName"))
    if spec.get("hostNetwork"):
        return name, node, ()
    addresses = [item.get("ip") for item in items_of(mapping_at(pod, "status"), "podIPs", f"Pod {name}")]
    return name, node, _parse_networks([address for address in addresses if address], f"Pod {name}: status.podIPs")


def attachment_plugins(resource: Resource, name: str) -> list[dict[str, typing.Any]]:
    """Return the CNI plugins of a NetworkAttachmentDefinition, in their order.

    :param name: namespace/name, for messages
    :raises ResourceError: the configuration is not in the object, or is not a valid JSON mapping
    """
    text = mapping_at(resource, "spec").get("config")
    if not text:
        raise ResourceError(f"{name}: its spec.config is empty, so its configuration is in a file on the nodes")
    config = json_of(text, f"{name}: its configuration")
    if not isinstance(config, dict):
        raise ResourceError(f"{name}: its configuration is not a mapping")
    return items_of(config, "plugins", name) or [config]


def attachment_networks(resource: Resource, pools: typing.Iterable[SharedPool]) -> tuple[UsedNetwork, ...]:
    """Return the networks from which a NetworkAttachmentDefinition assigns addresses. The result is empty if it assigns
    no addresses.

    :param pools: pools of nv-ipam, which an attachment references by name
    :raises ResourceError: the configuration is not in the object or is not valid, has too many networks, or uses an
        IPAM plugin whose ranges are stored elsewhere
    """
    name = full_name_of(resource)
    plugins = attachment_plugins(resource, name)
    pools = tuple(pools)
    taken: list[UsedNetwork] = []
    for ipam in filter(None, (mapping_at(plugin, "ipam") for plugin in plugins)):
        kind = str(ipam.get("type", ""))
        for network in _list_ipam_ranges(ipam, kind, name, pools):
            if len(taken) == MOST_NETWORKS:
                raise ResourceError(f"{name}: it assigns addresses from more than {MOST_NETWORKS} networks")
            taken.append(UsedNetwork("attachment", network, name, kind))
    return tuple(taken)


def _list_ipam_ranges(
    ipam: typing.Mapping[str, typing.Any], kind: str, what: str, pools: typing.Iterable[SharedPool]
) -> typing.Iterator[str]:
    """Yield the networks from which an IPAM plugin takes addresses.

    :param ipam: the ``ipam`` section of the network
    :param kind: type of the plugin
    :param what: name of the network, for messages
    :param pools: pools of nv-ipam in the cluster
    :raises ResourceError: a value has another form, the pool does not exist, or the plugin stores its addresses
        elsewhere
    """
    if kind == "whereabouts":
        values = [ipam.get("range"), *(item.get("range") for item in items_of(ipam, "ipRanges", what))]
        # a-b/len: the network is that of b
        yield from (_parse_network(str(value).rpartition("-")[2], what) for value in values if value)
    elif kind == "host-local":
        rows = ipam.get("ranges") or []
        if not isinstance(rows, list) or not all(
            isinstance(row, list) and all(isinstance(item, dict) for item in row) for row in rows
        ):
            raise ResourceError(f"{what}: ranges is not a list of lists of mappings")
        yield from (
            _parse_network(item.get("subnet"), what)
            for item in [ipam, *(item for row in rows for item in row)]
            if item.get("subnet")
        )
    elif kind == "static" and ipam.get("addresses"):
        yield from (_parse_network(item.get("address"), what) for item in items_of(ipam, "addresses", what))
    elif kind == "static":
        raise ResourceError(f"{what}: the pods set their addresses themselves")
    elif kind == "nv-ipam":
        names, of_kind = str(ipam.get("poolName", "")).split(","), str(ipam.get("poolType") or "ippool").lower()
        found = [pool.network for pool in pools if pool.name in names and pool.kind.lower() == of_kind]
        if not found:
            raise ResourceError(f"{what}: {of_kind} {join_first(names, 4)} does not exist")
        yield from found
    else:
        raise ResourceError(f"{what}: its addresses come from '{kind}', which stores them elsewhere")


def parse_leases(pool: Resource) -> tuple[AddressLease, ...]:
    """Return the addresses that an IPPool of whereabouts has assigned, each with its pod (``namespace/name``).

    :raises ResourceError: the object is not a valid IPPool
    """
    what = f"IPPool {name_of(pool)} of whereabouts"
    network = ipaddress.ip_network(_parse_network(mapping_at(pool, "spec").get("range"), f"spec.range of {what}"))
    found = []
    for distance, entry in mapping_at(pool, "spec", "allocations").items():
        number = number_of(distance, f"{what}: allocations")
        if not isinstance(entry, dict) or not 0 <= number < network.num_addresses:
            raise ResourceError(f"{what}: allocation {distance} is not an address of {network}")
        found.append(AddressLease(str(network[number]), str(entry.get("podref", ""))))
    return tuple(found)


def shared_pool(resource: Resource) -> SharedPool:
    """Return the network of an IPPool or a CIDRPool of nv-ipam, the share of a node in it, and the nodes that have a
    share.

    :raises ResourceError: the object has an unexpected form
    """
    name, kind = name_of(resource), text_at(WORD, resource, "kind", title_of(resource)).partition(".")[0]
    what = f"{kind} {name} of nv-ipam"
    spec = mapping_at(resource, "spec")
    key, share = ("subnet", "perNodeBlockSize") if kind == "IPPool" else ("cidr", "perNodeNetworkPrefix")
    return SharedPool(
        kind=kind,
        namespace=text_at(LABEL, mapping_at(resource, "metadata"), "namespace", what),
        name=name,
        network=_parse_network(spec.get(key), f"spec.{key} of {what}"),
        share=number_of(spec.get(share), f"{what}: share of a node"),
        nodes=list_known(
            SUBDOMAIN,
            (item.get("nodeName") for item in items_of(mapping_at(resource, "status"), "allocations", what)),
        ),
    )
