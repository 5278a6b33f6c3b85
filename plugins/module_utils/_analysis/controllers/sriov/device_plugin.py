# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a node has virtual functions that its device plugin does not offer as a resource. Stage network, which
waits for the resource, and stage virtual_functions both use this explanation.
"""

from __future__ import annotations

import typing

from ...._model.base.marks import INTENT_LABEL
from ...._model.kubernetes.objects import ClusterNode

_POLICIES = "kubectl get sriovnetworknodepolicies -A -o yaml"
_ASK_OWNER = f"Ask the owner of the other policy to change it: the label {INTENT_LABEL} names its intent."
_AGAIN = "Then run stages network and virtual_functions again."


def why_not_offered(
    node: ClusterNode, resource: str, wanted: int, handed_to: typing.Collection[str] = ()
) -> tuple[str, str]:
    """Return the cause and the remedy for a node that has all virtual functions, but offers fewer or more of them as a
    resource. The cause begins with the component that is responsible, such as the operator or the device plugin.

    :param resource: name of the resource, with its prefix
    :param wanted: number of virtual functions that the node has
    :param handed_to: resources, without prefix, to which the operator assigns these functions; empty if unknown
    """
    prefix, _slash, own = resource.rpartition("/")
    offered = node.allocatable.get(resource)
    if handed_to and own not in handed_to:
        why = (
            f"The operator assigns these functions to the resource {', '.join(sorted(handed_to))}, because another"
            " SriovNetworkNodePolicy selects them."
        )
        return why, (f"Compare priority and nicSelector of the policies ({_POLICIES}). {_ASK_OWNER} {_AGAIN}")
    if resource in node.unread:
        why = f"The node reports '{node.unread[resource]}' as the number of {resource}, which is not a whole number."
        return why, (
            f"Run kubectl get node {node.name} -o yaml, and read status.allocatable. If it shows the same text,"
            f" correct the device plugin that reports it. {_AGAIN}"
        )
    if offered is None:
        alike = sorted(name.rpartition("/")[0] for name in node.allocatable if name.rpartition("/")[2] == own)
        if alike:
            return (
                f"The cluster offers {alike[0]}/{own}, but the intent expects the prefix {prefix}.",
                f"Set rdma_cluster.resource_prefix to {alike[0]}. {_AGAIN}",
            )
        why = "The device plugin does not run on the node, or its configuration does not contain this resource."
        remedy = (
            "Run kubectl get pods -A -o wide -l app=sriov-device-plugin --field-selector"
            f" spec.nodeName={node.name}. If it lists no running pod, run stage operators and correct its"
            f" findings. If the pod runs, correct the error about {resource} in its log (kubectl logs). Without"
            " such an error, stage network writes the policy again from which the ConfigMap device-plugin-config"
            " gets the resource."
        )
        return why, f"{remedy} {_AGAIN}"
    if offered > wanted:
        return (
            "The device plugin includes functions in this resource that do not belong to this fabric.",
            f"Compare nicSelector of all policies with this resource name: {_POLICIES}. {_ASK_OWNER} {_AGAIN}",
        )
    return (
        f"The node has all {wanted} functions. The device plugin does not detect some of them, or reports them as"
        " unhealthy.",
        (
            f"Read the log of the device plugin on {node.name} (kubectl get pods -A -l app=sriov-device-plugin"
            f" --field-selector spec.nodeName={node.name} lists its pod for kubectl logs), and correct the error in"
            f" it. {_AGAIN}"
        ),
    )
