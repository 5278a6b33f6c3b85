# SPDX-License-Identifier: GPL-3.0-or-later

"""Check whether a SriovNetworkNodePolicy changes a physical function that carries the default route or an address of
its node, or has the operator reset it because the policy no longer selects it. _analysis/disruption/link_users.py
describes the effect on the link.
"""

from __future__ import annotations

import typing

from ...._analysis.controllers.sriov.function_reset import find_function_change
from ...._analysis.controllers.sriov.policies import find_wanted_by, policy_selects
from ...._analysis.fleet.nics_in_use import is_needed, is_unread
from ...._model.operators.sriov_operator import NodeState, Policy, StateInterface
from .policy_context import UPLINK, ClusterBefore, Objection

_EXPECTED = "physical functions without the default route and the addresses of their node"
_WHY = (
    "The link of the physical function is interrupted when the operator changes its MTU or eSwitch mode. If the"
    " operator fails to create virtual functions, it resets the physical function. The node may then reach neither the"
    " API server nor its storage. Where no virtual functions exist yet, the operator does this on all nodes at the same"
    " time, without a drain."
)
_WHY_RESET = (
    "The policy configured this physical function, and no longer selects it. The operator therefore removes its virtual"
    " functions, and resets its eSwitch mode and its MTU. The link of the physical function is interrupted meanwhile,"
    " and the node may reach neither the API server nor its storage."
)
_REMEDY_RESET = (
    "Keep the NIC in select of the fabric, or move the default route or the address of the node to another NIC. If the"
    " loss of the link is acceptable, add a waiver for {check} with this subject to rdma_waivers, and get access to the"
    " console of the node. Then run stage network again."
)
_REMEDY = (
    "Exclude the NIC from the fabric with select.pci or select.netdev, and correct hcas_per_node, or move the"
    " default route or the address of the node to another NIC. If the loss of the link is acceptable, add a waiver"
    " for {check} with this subject to rdma_waivers, and apply the policy to one node first, with access to its"
    " console: give the label in rdma_cluster.node_selector only to this node. If ip addr and ip"
    " route on the node do not show this use of the NIC, remove this label from the node and remove the node"
    " from the group rdma_nodes: the fabric is then set up without this node. Then run stage network again."
)


def check_uplinks(
    policy: Policy, node: str, interfaces: typing.Sequence[StateInterface], cluster_before: ClusterBefore
) -> typing.Iterator[Objection]:
    """Yield an objection for each physical function that the policy changes, or no longer selects, and that carries the
    default route or an address of the node. If the default route of the node is unknown, yield one objection that says
    so. Yield nothing for an externally managed policy, or if no use of interfaces was read.

    :param node: name of the node
    :param interfaces: physical functions of the node that the policy selects
    :param cluster_before: state of the cluster before the policies are applied
    """
    if cluster_before.in_use is None or policy.external:
        return
    used = cluster_before.in_use.get(node)
    state = cluster_before.states.get(node) or NodeState(node)
    for interface in (*interfaces, *_list_left(policy, state, cluster_before)):
        wish = find_wanted_by(policy, interface) if interface in interfaces else None
        changes = find_function_change(wish, interface, state).texts
        if not changes:
            continue
        if used is None:
            yield Objection(
                UPLINK,
                "nowhere",
                f"unknown whether {node} uses a selected interface itself, because its default route was not read",
                _EXPECTED,
                "If one of the selected physical functions carries the default route, the node loses its network while"
                " the operator changes the physical function.",
                f"Run ip route show default on {node}. If the fabric selects the interface after 'dev', exclude it in"
                " select of the fabric. Then run stages platform and network again: stage platform reads the route.",
                node=node,
            )
            return
        uses = [used.get(key, "") for key in (interface.address, interface.name)]
        use = next(filter(is_needed, uses), "")
        if any(map(is_unread, uses)):
            yield Objection(
                UPLINK,
                "nowhere",
                f"unknown whether {node} has an address on the function, because its routes were not read;"
                f" {'; '.join(changes)}",
                _EXPECTED,
                "If the physical function has an address of the node, the node loses its network while the operator"
                " changes the physical function.",
                f"Run ip -br addr on {node}, and kubectl get node {node} -o wide. If the fabric selects the interface"
                " with the address of the Node, exclude it in select of the fabric. Then run stages platform and"
                " network again: stage platform reads the routes.",
                node=node,
                function=interface.name or interface.address,
            )
        if use:
            yield Objection(
                UPLINK,
                "effect",
                f"the physical function carries {use}; {'; '.join(changes)}",
                _EXPECTED,
                _WHY if interface in interfaces else _WHY_RESET,
                (_REMEDY if interface in interfaces else _REMEDY_RESET).format(check=UPLINK),
                node=node,
                function=interface.name or interface.address,
            )


def _list_left(policy: Policy, state: NodeState, cluster_before: ClusterBefore) -> typing.Iterator[StateInterface]:
    """Yield the physical functions that the policy configured before, and that no policy will select.

    :param state: SriovNetworkNodeState of the node
    :param cluster_before: state of the cluster, with the other policies
    """
    before = {item.address for item in state.wanted if policy.name in item.policies}
    others = [other for other in cluster_before.policies_on.get(state.node, ()) if other.name != policy.name]
    for interface in state.interfaces:
        if interface.address in before and not any(policy_selects(one, interface) for one in (policy, *others)):
            yield interface
