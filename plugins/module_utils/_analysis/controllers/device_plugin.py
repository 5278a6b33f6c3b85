# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a node has virtual functions that its device plugin does not offer as a resource. Stage network, which
waits for the resource, and stage virtual_functions both use this explanation.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.objects import ClusterNode

_LOG = "See the log of the pod sriov-device-plugin on the node"


def why_not_offered(
    node: ClusterNode, resource: str, wanted: int, handed_to: typing.Collection[str] = ()
) -> tuple[str, str]:
    """Return the cause and the remedy for a node that has all virtual functions, but offers another number of them as a
    resource. The cause begins with the name of the layer.

    :param resource: name of the resource, with its prefix
    :param wanted: number of virtual functions that the node has
    :param handed_to: resources, without prefix, to which the operator assigns these functions; empty if unknown
    """
    prefix, _slash, own = resource.rpartition("/")
    offered = node.allocatable.get(resource)
    if handed_to and own not in handed_to:
        why = (
            f"Operator: it assigns these functions to the resource {', '.join(sorted(handed_to))}, so a different"
            " policy applies to them."
        )
        return why, "Compare priority and nicSelector of the policies."
    if resource in node.unread:
        why = (
            f"API: the node reports '{node.unread[resource]}' as the number of {resource}, which is not a whole number."
        )
        return why, (
            f"Read status.allocatable of the node (kubectl get node {node.name} -o yaml), and report this text to the"
            " developers of this collection."
        )
    if offered is None:
        alike = sorted(name.rpartition("/")[0] for name in node.allocatable if name.rpartition("/")[2] == own)
        if alike:
            return (
                f"Intent: the cluster offers {alike[0]}/{own}, but the intent expects the prefix {prefix}.",
                f"Set resource_prefix of rdma_cluster to {alike[0]}.",
            )
        why = "Device plugin: it does not offer this resource."
        remedy = (
            "Check that the device plugin runs on the node (label sriovnetwork.openshift.io/device-plugin) and that its"
            " ConfigMap device-plugin-config contains the resource."
        )
        return why, f"{remedy} {_LOG}."
    if offered > wanted:
        return (
            "Device plugin: its resource includes functions that do not belong to this fabric.",
            "Compare the nicSelector of all policies that have this resource name.",
        )
    return (
        (
            f"Device plugin: the node has all {wanted} functions, and the device plugin offers {offered}. It does not"
            " detect the other functions, or it reports them as unhealthy."
        ),
        f"{_LOG}.",
    )
