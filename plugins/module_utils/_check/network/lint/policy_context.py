# SPDX-License-Identifier: GPL-3.0-or-later

"""The input and the output of the linter of SR-IOV policies. The input is the state of the cluster before the policies
are applied; the output is a list of objections, which are violated rules.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.objects import ClusterNode
from ...._model.node.hca import NodeHcas
from ...._model.operators.nvidia import NicPolicy
from ...._model.operators.sriov_operator import NodeState, OperatorFacts, Policy, SupportedNic

#: ids of the findings
POLICY, SELECT, FUNCTIONS = "network.lint_policy", "network.lint_select", "network.lint_functions"
OVERLAP, LINK, RDMA = "network.lint_overlap", "network.lint_link", "network.lint_rdma"
OPERATOR, UPLINK = "network.lint_operator", "network.lint_uplink"
LIST = "supported-nic-ids"

Where = typing.Literal["webhook", "node", "effect", "nowhere"]


@dataclasses.dataclass(frozen=True)
class ClusterBefore:
    """The state of the cluster before the policies or networks of the fabrics are applied.

    :ivar nodes: nodes of the cluster, by name
    :ivar states: SriovNetworkNodeState of each node
    :ivar policies: other policies that will be in force at the same time, by name
    :ivar supported: NICs that the operator supports; None if not known
    :ivar hcas: HCAs that each node itself reports (node_info); may be empty
    :ivar rdma_mode: RDMA mode that the nodes will get; empty if they keep the present one
    :ivar nic_policies: NicClusterPolicies of the cluster
    :ivar in_use: use of the physical functions that a node itself uses, by node (find_nics_in_use); a node whose
        default routes are unknown is left out. None if the platform of no node was read
    """

    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: typing.Mapping[str, Policy] = dataclasses.field(default_factory=dict)
    supported: typing.Optional[tuple[SupportedNic, ...]] = None
    hcas: typing.Mapping[str, NodeHcas] = dataclasses.field(default_factory=dict)
    rdma_mode: str = ""
    nic_policies: tuple[NicPolicy, ...] = ()
    in_use: typing.Optional[typing.Mapping[str, typing.Mapping[str, str]]] = None

    @functools.cached_property
    def _labelled(self) -> typing.Mapping[tuple[str, str], set[str]]:
        """Return an index from each label to the names of the nodes that have it. It avoids a million comparisons when
        a thousand nodes have a policy each.
        """
        found: dict[tuple[str, str], set[str]] = {}
        for node in self.nodes.values():
            for label in node.labels.items():
                found.setdefault(label, set()).add(node.name)
        return found

    def nodes_selected_by(self, policy: Policy) -> tuple[ClusterNode, ...]:
        """Return the nodes that the nodeSelector of the policy selects. An empty selector selects all nodes."""
        if not policy.node_selector:
            return tuple(self.nodes.values())
        names = set.intersection(*(self._labelled.get(label, set()) for label in policy.node_selector.items()))
        return tuple(self.nodes[name] for name in sorted(names))

    @functools.cached_property
    def policies_on(self) -> typing.Mapping[str, tuple[Policy, ...]]:
        """Return an index from the name of each node to the policies that select the node.

        A node that no policy selects is left out.
        """
        found: dict[str, list[Policy]] = {}
        for policy in self.policies.values():
            for node in self.nodes_selected_by(policy):
                found.setdefault(node.name, []).append(policy)
        return {name: tuple(policies) for name, policies in found.items()}


def read_cluster_before(
    seen: OperatorFacts,
    hcas: typing.Mapping[str, NodeHcas],
    cluster: ClusterIntent,
    in_use: typing.Optional[typing.Mapping[str, typing.Mapping[str, str]]] = None,
) -> ClusterBefore:
    """Build the state of the cluster from the answer of sriov_operator_info, the HCAs of the nodes and the intent.

    :param seen: result of the module sriov_operator_info: the operator and its objects
    :param hcas: HCAs that each node itself reports, by node; may be empty
    :param cluster: settings of the intent that all fabrics share
    :param in_use: use of the physical functions that a node itself uses, by node; None if it was not read
    """
    return ClusterBefore(
        {node.name: node for node in seen.nodes},
        {state.node: state for state in seen.states},
        {policy.name: policy for policy in seen.policies},
        seen.supported_nics,
        hcas,
        (cluster.node_pool and cluster.node_pool.rdma_mode) or "",
        seen.nic_policies,
        in_use,
    )


@dataclasses.dataclass(frozen=True)
class Objection:
    """A rule that a policy violates.

    :ivar check: id of the finding
    :ivar where: component that detects it: ``webhook``; ``node``, after the API server accepted the policy; or
        ``nowhere``, so that it has an effect that the user does not expect. ``effect`` is as ``nowhere``, but the
        effect is so severe that the policy must not be applied
    :ivar measured: observed value; the message of the webhook if the webhook detects it
    :ivar expected: expected value
    :ivar why: consequence of the violation
    :ivar remedy: instruction to the user that resolves the cause
    :ivar node: name of the node on which the policy violates the rule; empty if the policy by itself violates it
    :ivar function: netdev or PCI address of the physical function; empty if the objection is about the node
    """

    check: str
    where: Where
    measured: str
    expected: str
    why: str
    remedy: str
    node: str = ""
    function: str = ""
