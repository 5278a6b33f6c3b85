# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses of the pods: the ``ipam`` mapping of an attachment, and the pools of nv-ipam.

Fields: whereabouts 0.9 pkg/types; nvidia-k8s-ipam pkg/cni/types and api/v1alpha1 (nv-ipam.nvidia.com/v1alpha1).
"""

from __future__ import annotations

import ipaddress
import json

from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.networks import Ipam
from ..cluster.names import Object, build_labels, keep_filled

API = "nv-ipam.nvidia.com/v1alpha1"


def render_ipam(wanted: Ipam) -> Object:
    """Render the ``ipam`` mapping of a CNI configuration. The gateway is excluded from the addresses, because
    whereabouts would assign it to a pod.
    """
    if wanted.pool is not None:
        return {"type": wanted.type, "poolName": wanted.pool.name, "poolType": wanted.pool.kind.lower()}
    exclude = list(wanted.exclude)
    if wanted.gateway and not any(entry.split("/")[0] == wanted.gateway for entry in exclude):
        exclude.append(f"{wanted.gateway}/{128 if ':' in wanted.gateway else 32}")
    fields = {
        "type": wanted.type,
        "range": wanted.range,
        "range_start": wanted.range_start,
        "range_end": wanted.range_end,
        "gateway": wanted.gateway,
        "exclude": exclude or None,
        "routes": [keep_filled(dst=route.dst, gw=route.gw or wanted.gateway) for route in wanted.routes] or None,
    }
    return keep_filled(**fields)


def ipam_text(fabric: Fabric) -> str:
    """Return the ``ipam`` mapping of a fabric as JSON text, the format of the operators. Return an empty text if the
    intent has no ``ipam`` for the fabric.
    """
    return json.dumps(render_ipam(fabric.ipam)) if fabric.ipam else ""


def render_pools(fabric: Fabric, cluster: ClusterIntent) -> tuple[Object, ...]:
    """Render the pool of nv-ipam that the intent asks to create; empty for all other fabrics.

    The pool selects only the participating nodes: without a selector nv-ipam gives every node of the cluster a share,
    the control plane included.
    """
    wanted, pool = fabric.ipam, fabric.ipam.pool if fabric.ipam else None
    if wanted is None or pool is None or not pool.create:
        return ()
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(cluster.node_selector.items())]
    common: Object = {
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": terms}]},
        "exclusions": [_render_exclusion(text) for text in wanted.exclude] or None,
        "routes": [{"dst": route.dst} for route in wanted.routes] or None,
    }
    if pool.kind == "IPPool":
        spec = keep_filled(
            subnet=wanted.range, perNodeBlockSize=pool.per_node_block_size, gateway=wanted.gateway, **common
        )
    else:
        spec = keep_filled(
            cidr=wanted.range,
            perNodeNetworkPrefix=pool.per_node_network_prefix,
            gatewayIndex=pool.gateway_index,
            **common,
        )
    metadata = {"name": pool.name, "namespace": pool.namespace, "labels": build_labels(fabric.name)}
    return ({"apiVersion": API, "kind": pool.kind, "metadata": metadata, "spec": spec},)


def _render_exclusion(text: str) -> dict[str, str]:
    network = ipaddress.ip_network(text, strict=False)
    return {"startIP": str(network[0]), "endIP": str(network[-1])}
