# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""A fabric's objects for the SR-IOV network operator: policy, network, namespace of the pods (rows S1.5, S1.7, S1.9).

Fields as in sriovnetwork.openshift.io/v1 of operator v1.6.0.
"""

from __future__ import annotations

import dataclasses
import json
import typing

from .._model.intent import Cluster, Fabric
from .ipam import ipam, pools
from .names import MANAGED_BY, RenderError, labels, object_name, policy_name

Object = typing.Dict[str, typing.Any]
#: PCI addresses of a fabric's physical functions on each node
Members = typing.Mapping[str, typing.Sequence[str]]

API = "sriovnetwork.openshift.io/v1"
HOSTNAME = "kubernetes.io/hostname"


def namespace(name: str) -> Object:
    """The namespace of the pods. They need IPC_LOCK, which the pod security level "baseline" refuses."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**MANAGED_BY, "pod-security.kubernetes.io/enforce": "privileged"}},
    }


def policies(fabric: Fabric, cluster: Cluster, members: Members) -> typing.Tuple[Object, ...]:
    """The fabric's policies: one for all nodes where the physical functions have the same addresses everywhere, else one a node.

    :param members: may be empty; then the intent's own selectors must do
    :raises RenderError: nothing selects a physical function, or on InfiniBand only vendor and device would: those take the HCAs of other fabrics, too
    """
    addressed = fabric.select.pci or fabric.select.netdev or any(members.values())
    if fabric.profile == "sriov_infiniband" and not addressed:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': it is not known which HCAs are on this fabric, and vendor and device alone would take those of other fabrics, too;"
            " see the stages discover and fabric, or list the addresses in select.pci"
        )
    groups = {tuple(sorted(addresses)) for addresses in members.values() if addresses}
    if fabric.select.pci or len(groups) <= 1:
        addresses = tuple(sorted(fabric.select.pci)) or next(iter(groups), ())
        return (_policy(fabric, cluster, addresses, ""),)
    return tuple(_policy(fabric, cluster, tuple(sorted(addresses)), node) for node, addresses in sorted(members.items()) if addresses)


def _policy(fabric: Fabric, cluster: Cluster, addresses: typing.Tuple[str, ...], node: str) -> Object:
    infiniband = fabric.profile == "sriov_infiniband"
    selector: typing.Dict[str, typing.Any] = {}
    if fabric.select.vendor:
        selector["vendor"] = fabric.select.vendor
    if fabric.select.device:
        selector["deviceID"] = fabric.select.device
    if addresses:
        selector["rootDevices"] = list(addresses)
    if fabric.select.netdev:
        selector["pfNames"] = list(fabric.select.netdev)
    if not selector:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': nothing selects its physical functions: no NIC of a node belongs to it, and select names no"
            " pci, netdev, vendor or device; add one of them"
        )
    spec: typing.Dict[str, typing.Any] = {
        "resourceName": fabric.resource_name,
        "nodeSelector": {**cluster.node_selector, **({HOSTNAME: node} if node else {})},
        "numVfs": fabric.virtual_functions,
        "nicSelector": selector,
        "deviceType": "netdevice",
        "isRdma": infiniband or fabric.rdma,
        "linkType": "IB" if infiniband else "ETH",
    }
    if fabric.mtu is not None:
        spec["mtu"] = fabric.mtu
    return _object("SriovNetworkNodePolicy", policy_name(fabric.name, node), fabric, cluster, spec)


def node_pools(cluster: Cluster) -> typing.Tuple[Object, ...]:
    """The SriovNetworkPoolConfig of the nodes that take part, where the intent asks for one. Without maxUnavailable all of them would drain at once."""
    if cluster.node_pool is None:
        return ()
    spec: typing.Dict[str, typing.Any] = {"nodeSelector": {"matchLabels": dict(cluster.node_selector)}, "maxUnavailable": cluster.node_pool.max_unavailable}
    if cluster.node_pool.rdma_mode is not None:
        spec["rdmaMode"] = cluster.node_pool.rdma_mode
    metadata = {"name": object_name("linerate"), "namespace": cluster.operator_namespace, "labels": dict(MANAGED_BY)}
    return ({"apiVersion": API, "kind": "SriovNetworkPoolConfig", "metadata": metadata, "spec": spec},)


def network(fabric: Fabric, cluster: Cluster) -> Object:
    """The SriovIBNetwork or SriovNetwork, from which the operator makes the NetworkAttachmentDefinition."""
    spec: typing.Dict[str, typing.Any] = {
        "resourceName": fabric.resource_name,
        "networkNamespace": fabric.network.namespace,
        "ipam": json.dumps(ipam(fabric.ipam)),
    }
    if fabric.network.link_state is not None:
        spec["linkState"] = fabric.network.link_state
    if fabric.network.meta_plugins:
        # the operator puts this text behind the first plugin of a list, so it is a row of objects and no list
        spec["metaPlugins"] = ",".join(json.dumps(plugin, sort_keys=True) for plugin in fabric.network.meta_plugins)
    kind = "SriovIBNetwork" if fabric.profile == "sriov_infiniband" else "SriovNetwork"
    return _object(kind, fabric.network.name, fabric, cluster, spec)


def _object(kind: str, name: str, fabric: Fabric, cluster: Cluster, spec: typing.Dict[str, typing.Any]) -> Object:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": cluster.operator_namespace, "labels": labels(fabric.name)},
        "spec": spec,
    }


@dataclasses.dataclass(frozen=True)
class Rendered:
    """:ivar objects: each with its fabric's name (empty for what fabrics share), in the order in which they can be applied
    :ivar unmade: fabrics that could not be written, each with the reason
    """

    objects: typing.Tuple[typing.Tuple[str, Object], ...]
    unmade: typing.Dict[str, str]


def render(fabrics: typing.Iterable[Fabric], cluster: Cluster, members: typing.Mapping[str, Members]) -> Rendered:
    """All objects of all fabrics. One fabric that cannot be written does not keep the others back.

    :param members: of each fabric by its name
    """
    fabrics = tuple(fabrics)
    names = dict.fromkeys(fabric.network.namespace for fabric in fabrics)
    objects: typing.List[typing.Tuple[str, Object]] = [("", namespace(name)) for name in names]
    objects += [("", pool) for pool in node_pools(cluster)] if fabrics else []
    unmade: typing.Dict[str, str] = {}
    for fabric in fabrics:
        try:
            objects.extend((fabric.name, policy) for policy in policies(fabric, cluster, members.get(fabric.name, {})))
        except RenderError as error:
            unmade[fabric.name] = str(error)
    objects.extend((fabric.name, pool) for fabric in fabrics for pool in pools(fabric, cluster))
    objects.extend((fabric.name, network(fabric, cluster)) for fabric in fabrics)
    return Rendered(tuple(objects), unmade)
