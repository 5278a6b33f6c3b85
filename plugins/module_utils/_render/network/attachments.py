# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkAttachmentDefinitions that the collection renders itself because no operator creates them: macvlan, and a
whole interface of the node.

Configuration: the CNI plugins macvlan and host-device of containernetworking-plugins 1.x. Chained plugins follow in
``plugins``.
"""

from __future__ import annotations

import json

from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import PLAIN
from ..cluster.names import Object, build_labels, get_interface, keep_filled
from .ipam import render_ipam

API = "k8s.cni.cncf.io/v1"
CNI_VERSION = "0.3.1"


def render_macvlan(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render a network of macvlan interfaces for pods, on one interface of the node."""
    return _render_definition(
        fabric, type="macvlan", master=get_interface(fabric), mode=fabric.network.mode or "bridge", mtu=fabric.mtu
    )


def render_host_device(fabric: Fabric, cluster: ClusterIntent) -> Object:
    """Render a NetworkAttachmentDefinition that moves one interface of the node into the pod."""
    return _render_definition(fabric, type="host-device", device=get_interface(fabric))


def _render_definition(fabric: Fabric, **fields: object) -> Object:
    wanted = fabric.network
    plugin = keep_filled(**fields, ipam=render_ipam(fabric.ipam) if fabric.ipam else {})
    config = {"cniVersion": CNI_VERSION, "name": wanted.name, "plugins": [plugin, *map(dict, wanted.meta_plugins)]}
    metadata = {"name": wanted.name, "namespace": wanted.namespace, "labels": build_labels(fabric.name)}
    return {"apiVersion": API, "kind": PLAIN, "metadata": metadata, "spec": {"config": json.dumps(config)}}
