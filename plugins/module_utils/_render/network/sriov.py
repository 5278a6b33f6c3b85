# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of a fabric for the SR-IOV network operator: policies, node pool and network.

Fields as in sriovnetwork.openshift.io/v1 of operator v1.6.0.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import DEFAULT_INTENT
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import attachment_kind, is_infiniband
from ..cluster.names import (
    MANAGED_BY,
    Members,
    Object,
    RenderError,
    build_labels,
    format_switch,
    keep_filled,
    object_name,
    plugins_text,
    policy_name,
)
from .ipam import ipam_text

API = "sriovnetwork.openshift.io/v1"
HOSTNAME = "kubernetes.io/hostname"


def render_policies(fabric: Fabric, cluster: ClusterIntent, members: Members) -> tuple[Object, ...]:
    """Render the SriovNetworkNodePolicies of a fabric: one for all nodes if the physical functions have the same PCI
    addresses on each node, otherwise one for each node. If the addresses of a node are not known, that node has no
    policy, and each other node has its own. A policy for all nodes could select HCAs of another fabric on the unknown
    node.

    :param members: PCI addresses of the fabric by node. The list of a node is empty if they are not known. If the lists
        of all nodes are empty, only the selectors of the intent are used
    :raises RenderError: no selector matches a physical function, or an InfiniBand fabric is selected by vendor and
        device only, which would also match the HCAs of other fabrics
    """
    addressed = fabric.select.pci or fabric.select.netdev or any(members.values())
    if is_infiniband(fabric) and not addressed:
        raise RenderError(
            f"rdma_fabrics '{fabric.name}': the HCAs of this fabric are unknown, and vendor and device alone would"
            " also select those of other fabrics; see the stages discover and fabric, or list the addresses in"
            " select.pci"
        )
    groups = {tuple(sorted(addresses)) for addresses in members.values() if addresses}
    if fabric.select.pci or not groups or (len(groups) == 1 and all(members.values())):
        addresses = tuple(sorted(fabric.select.pci)) or next(iter(groups), ())
        return (_render_policy(fabric, cluster, addresses, ""),)
    return tuple(
        _render_policy(fabric, cluster, tuple(sorted(addresses)), node)
        for node, addresses in sorted(members.items())
        if addresses
    )


def _render_policy(fabric: Fabric, cluster: ClusterIntent, addresses: tuple[str, ...], node: str) -> Object:
    infiniband = is_infiniband(fabric)
    selector: dict[str, typing.Any] = {}
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
            f"rdma_fabrics '{fabric.name}': no physical function is selected: no NIC of a node belongs to it, and"
            " select has no pci, netdev, vendor or device; add one of them"
        )
    spec: dict[str, typing.Any] = {
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
    return _render_object("SriovNetworkNodePolicy", policy_name(fabric.name, node), fabric, cluster, spec)


def render_node_pools(cluster: ClusterIntent) -> tuple[Object, ...]:
    """Render the SriovNetworkPoolConfig of the participating nodes. Return an empty tuple if the intent has no node
    pool. The object limits how many of these nodes the operator drains at the same time; without it, the operator could
    drain all of them.
    """
    if cluster.node_pool is None:
        return ()
    spec: dict[str, typing.Any] = {
        "nodeSelector": {"matchLabels": dict(cluster.node_selector)},
        "maxUnavailable": cluster.node_pool.max_unavailable,
    }
    if cluster.node_pool.rdma_mode is not None:
        spec["rdmaMode"] = cluster.node_pool.rdma_mode
    # by intent: one name would move the pool from the nodes of one intent to those of another
    own = cluster.intent_name if cluster.intent_name != DEFAULT_INTENT else ""
    metadata = {
        "name": object_name("linerate", own),
        "namespace": cluster.operator_namespace,
        "labels": dict(MANAGED_BY),
    }
    return ({"apiVersion": API, "kind": "SriovNetworkPoolConfig", "metadata": metadata, "spec": spec},)


def render_network(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render the object from which the SR-IOV operator makes the NetworkAttachmentDefinition of a fabric: an
    SriovIBNetwork on InfiniBand, otherwise an SriovNetwork.
    """
    wanted = fabric.network
    fields = {
        "resourceName": fabric.resource_name,
        "networkNamespace": wanted.namespace,
        "ipam": ipam_text(fabric),
        "linkState": wanted.link_state,
        "vlan": wanted.vlan,
        "vlanQoS": wanted.vlan_qos,
        "trust": format_switch(wanted.trust),
        "spoofChk": format_switch(wanted.spoof_check),
        "minTxRate": wanted.min_tx_rate,
        "maxTxRate": wanted.max_tx_rate,
        "metaPlugins": plugins_text(wanted),
    }
    return _render_object(attachment_kind(fabric), wanted.name, fabric, cluster, keep_filled(**fields))


def _render_object(kind: str, name: str, fabric: Fabric, cluster: ClusterIntent, spec: dict[str, typing.Any]) -> Object:
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": cluster.operator_namespace, "labels": build_labels(fabric.name)},
        "spec": spec,
    }
