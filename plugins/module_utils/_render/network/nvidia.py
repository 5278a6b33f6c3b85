# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects for NVIDIA's network operator: the single NicClusterPolicy, and the networks from which it makes
NetworkAttachmentDefinitions.

Fields as in mellanox.com/v1alpha1 of network-operator v26.4.1; configurations as in k8s-rdma-shared-dev-plugin v1.5.3
(pkg/types) and sriov-network-device-plugin v3.9 (pkg/types). ``metaPlugins`` of MacvlanNetwork and HostDeviceNetwork
came after v26.4.1.
"""

from __future__ import annotations

import json
import typing

from ..._model.intent.intent import ClusterIntent, Fabric, NetworkOperator
from ..._model.intent.profiles import (
    HOST_DEVICE,
    IPOIB,
    MACVLAN,
    NIC_POLICY,
    PROFILES,
    attachment_kind,
    count_pods_on_a_node,
    needs_nic_policy,
)
from ..cluster.names import MANAGED_BY, Object, build_labels, get_interface, keep_filled, plugins_text
from .ipam import ipam_text

API = "mellanox.com/v1alpha1"


def render_nic_policy(
    fabrics: typing.Sequence[Fabric],
    cluster: ClusterIntent,
    kept: typing.Optional[typing.Mapping[str, typing.Sequence[Object]]] = None,
) -> tuple[Object, ...]:
    """Render the NicClusterPolicy with the components that all fabrics together need. Return an empty tuple if no
    fabric needs the policy.

    The collection owns only these fields. Server-side apply merges them into an existing policy. The policy sets no
    node selector, because a selector would remove the policy from the nodes of other users.

    :param kept: entries of device plugins, by the name of the fabric, that replace the rendered entries of these
        fabrics. If no other fabric needs the policy, it is not rendered
    """
    kept = kept or {}
    if not any(needs_nic_policy(fabric) for fabric in fabrics if fabric.name not in kept):
        return ()
    operator = cluster.network_operator
    shared = [
        entry
        for fabric in fabrics
        if fabric.profile == "rdma_shared"
        for entry in (kept[fabric.name] if fabric.name in kept else [_render_shared_devices(fabric)])
    ]
    functions = [
        entry
        for fabric in fabrics
        if attachment_kind(fabric) == HOST_DEVICE
        for entry in (kept[fabric.name] if fabric.name in kept else [_render_host_devices(fabric)])
    ]
    ipoib = any(attachment_kind(fabric) == IPOIB for fabric in fabrics)
    spec = keep_filled(
        ofedDriver=_render_ofed_driver(cluster) if operator.ofed_driver else None,
        rdmaSharedDevicePlugin=_render_device_plugin(operator, "k8s-rdma-shared-dev-plugin", configList=shared)
        if shared
        else None,
        sriovDevicePlugin=(
            _render_device_plugin(operator, "sriov-network-device-plugin", resourceList=functions)
            if functions
            else None
        ),
        secondaryNetwork={"ipoib": _render_image(operator, "ipoib-cni")} if ipoib else None,
        nvIpam=_render_image(operator, "nvidia-k8s-ipam") if operator.nv_ipam else None,
        nicFeatureDiscovery=_render_image(operator, "nic-feature-discovery")
        if operator.nic_feature_discovery
        else None,
    )
    return (
        {
            "apiVersion": API,
            "kind": "NicClusterPolicy",
            "metadata": {"name": NIC_POLICY, "labels": dict(MANAGED_BY)},
            "spec": spec,
        },
    )


def _render_image(operator: NetworkOperator, name: str) -> Object:
    return {"image": name, "repository": operator.repository, "version": f"network-operator-{operator.version}"}


def _render_ofed_driver(cluster: ClusterIntent) -> Object:
    """Render the driver of NVIDIA's HCAs in the NicClusterPolicy. A new driver removes the RDMA devices from all pods
    of the node, so the operator drains the node first. It drains as many nodes at a time as for virtual functions, with
    the options of the intent for drains.

    Without ``safeLoad``, the operator would load the first driver on all nodes at the same time, without a drain. It
    needs ``autoUpgrade``. [network-operator docs/automatic-ofed-upgrade.md]
    """
    operator, at_once = cluster.network_operator, cluster.node_pool.max_unavailable if cluster.node_pool else 1
    drain = {
        "enable": True,
        "timeoutSeconds": 300,
        "force": cluster.drain.force,
        "deleteEmptyDir": cluster.drain.delete_empty_dir_data,
    }
    upgrade = {"autoUpgrade": True, "maxParallelUpgrades": at_once, "safeLoad": True, "drain": drain}
    return {
        "image": "doca-driver",
        "repository": operator.repository,
        "version": operator.ofed_driver,
        "upgradePolicy": upgrade,
    }


def _render_device_plugin(operator: NetworkOperator, name: str, **config: typing.Any) -> Object:
    return {**_render_image(operator, name), "config": json.dumps(config)}


def _render_shared_devices(fabric: Fabric) -> Object:
    """Render the entry of a fabric in the configuration of the shared device plugin. An empty selector is left out,
    because the plugin would read it as a selector that matches no device.
    """
    select = fabric.select
    selectors = _render_selectors(
        ifNames=select.netdev, vendors=_wrap_in_tuple(select.vendor), deviceIDs=_wrap_in_tuple(select.device)
    )
    return {"resourceName": fabric.resource_name, "rdmaHcaMax": count_pods_on_a_node(fabric), "selectors": selectors}


def _render_host_devices(fabric: Fabric) -> Object:
    """Render the entry of a fabric in the configuration of the SR-IOV device plugin, which can assign not only virtual
    functions but also whole physical functions to pods.
    """
    select = fabric.select
    selectors = _render_selectors(
        pfNames=select.netdev,
        vendors=_wrap_in_tuple(select.vendor),
        devices=_wrap_in_tuple(select.device),
        pciAddresses=select.pci,
    )
    # the plugin's isRdma: false would mean functions that have none
    rdma: Object = {"isRdma": True} if fabric.rdma else {}
    return {
        "resourcePrefix": PROFILES[fabric.profile].prefix,
        "resourceName": fabric.resource_name,
        "selectors": {**selectors, **rdma},
    }


def _wrap_in_tuple(value: typing.Optional[str]) -> tuple[str, ...]:
    return (value,) if value else ()


def _render_selectors(**names: typing.Sequence[str]) -> Object:
    return {key: list(values) for key, values in names.items() if values}


def render_network(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render the object from which NVIDIA's operator makes the network of a fabric: a MacvlanNetwork, IPoIBNetwork or
    HostDeviceNetwork. It is cluster-scoped, and only names the namespace of the pods.
    """
    kind, wanted = attachment_kind(fabric), fabric.network
    fields: Object = {"resourceName": fabric.resource_name}
    if kind == MACVLAN:
        fields = {"master": get_interface(fabric), "mode": wanted.mode or "bridge", "mtu": fabric.mtu}
    elif kind == IPOIB:
        fields = {"master": get_interface(fabric)}
    spec = keep_filled(
        networkNamespace=wanted.namespace, **fields, ipam=ipam_text(fabric), metaPlugins=plugins_text(wanted)
    )
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": wanted.name, "labels": build_labels(fabric.name)},
        "spec": spec,
    }
