# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse ComputeDomains of NVIDIA's driver for Dynamic Resource Allocation, and the claims of running pods.

[kubernetes-sigs/dra-driver-nvidia-gpu: api/nvidia.com/resource/v1beta1/computedomain.go]
"""

from __future__ import annotations

import typing

from ...._model.boundary.kubernetes import LABEL, SUBDOMAIN
from ...._model.boundary.words import WORD
from ...._model.kubernetes.compute_domains import READY, ClaimingPod, ComputeDomain, ComputeDomainNode
from ..resource import (
    Resource,
    ResourceError,
    items_of,
    mapping_at,
    name_of,
    normalize_known,
    number_of,
    text_at,
    text_of,
    title_of,
)
from .device_claims import read_pod_claims

COMPUTE_DOMAIN = "ComputeDomain"
#: nodes of a domain: an NVLink domain joins some 600 GPUs at most, and a ComputeDomain may have several cliques
_MOST_NODES = 4096


def parse_compute_domain(resource: Resource) -> ComputeDomain:
    """Parse a ComputeDomain with its status. Nodes that the status does not list are not in the result. An unset number
    of nodes is 0.

    :raises ResourceError: the object has an unexpected form, or more than 4096 nodes
    """
    what, spec = title_of(resource), mapping_at(resource, "spec")
    namespace = text_at(LABEL, mapping_at(resource, "metadata"), "namespace", f"{what}: metadata") or "default"
    name = text_of(SUBDOMAIN, name_of(resource), f"{what}: metadata.name")
    template = mapping_at(spec, "channel", "resourceClaimTemplate").get("name")
    status = mapping_at(resource, "status")
    nodes = items_of(status, "nodes", f"{what}: status")
    if len(nodes) > _MOST_NODES:
        raise ResourceError(f"{what}: status.nodes has {len(nodes)} entries; the limit is {_MOST_NODES}")
    return ComputeDomain(
        f"{namespace}/{name}",
        text_of(SUBDOMAIN, template, f"{what}: channel.resourceClaimTemplate.name"),
        number_of(spec["numNodes"], f"{what}: numNodes") if spec.get("numNodes") is not None else 0,
        normalize_known(WORD, status.get("status")),
        tuple(
            ComputeDomainNode(
                text_of(SUBDOMAIN, item.get("name"), f"{what}: status.nodes: name"),
                normalize_known(WORD, item.get("cliqueID")),
                item.get("status") == READY,
            )
            for item in nodes
        ),
    )


def parse_claiming_pod(pod: Resource) -> typing.Optional[ClaimingPod]:
    """Return the name and the node of a pod, and the templates from which its device claims are created. Return None
    for a pod that has no node, or no claim from a template.

    :raises ResourceError: the claims have an unexpected form
    """
    what = f"pod {name_of(pod)}"
    spec = mapping_at(pod, "spec")
    node = text_at(SUBDOMAIN, spec, "nodeName", what)
    templates = tuple(claim.of for claim in read_pod_claims(spec, what) if claim.template)
    name = text_of(SUBDOMAIN, name_of(pod), what)
    return ClaimingPod(name, node, templates) if node and templates else None
