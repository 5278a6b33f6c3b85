# SPDX-License-Identifier: GPL-3.0-or-later

"""The input and the output of the linter of SR-IOV policies: the cluster before, and objections."""

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
OPERATOR = "network.lint_operator"
LIST = "supported-nic-ids"

Where = typing.Literal["webhook", "node", "nowhere"]


@dataclasses.dataclass(frozen=True)
class ClusterBefore:
    """The state of the cluster before the policy is applied.

    :ivar policies: the others that will be in force beside it, by name
    :ivar supported: NICs that the operator supports; None when that is not known
    :ivar hcas: what each node itself shows; may be empty
    :ivar rdma_mode: that the nodes will get; empty: they keep the one that they have
    :ivar nic_policies: NicClusterPolicies that are there
    """

    nodes: typing.Mapping[str, ClusterNode] = dataclasses.field(default_factory=dict)
    states: typing.Mapping[str, NodeState] = dataclasses.field(default_factory=dict)
    policies: typing.Mapping[str, Policy] = dataclasses.field(default_factory=dict)
    supported: typing.Optional[tuple[SupportedNic, ...]] = None
    hcas: typing.Mapping[str, NodeHcas] = dataclasses.field(default_factory=dict)
    rdma_mode: str = ""
    nic_policies: tuple[NicPolicy, ...] = ()

    @functools.cached_property
    def _labelled(self) -> typing.Mapping[tuple[str, str], set[str]]:
        """Return the names of the nodes with a label. A thousand nodes may have a policy each, and nobody wants a
        million comparisons."""
        found: dict[tuple[str, str], set[str]] = {}
        for node in self.nodes.values():
            for label in node.labels.items():
                found.setdefault(label, set()).add(node.name)
        return found

    def taken_by(self, policy: Policy) -> tuple[ClusterNode, ...]:
        """Return the nodes that the policy's nodeSelector takes; an empty one takes all."""
        if not policy.node_selector:
            return tuple(self.nodes.values())
        names = set.intersection(*(self._labelled.get(label, set()) for label in policy.node_selector.items()))
        return tuple(self.nodes[name] for name in sorted(names))

    @functools.cached_property
    def policies_on(self) -> typing.Mapping[str, tuple[Policy, ...]]:
        """Return the policies that take a node, by its name."""
        found: dict[str, list[Policy]] = {}
        for policy in self.policies.values():
            for node in self.taken_by(policy):
                found.setdefault(node.name, []).append(policy)
        return {name: tuple(policies) for name, policies in found.items()}


def read_cluster_before(
    seen: OperatorFacts, hcas: typing.Mapping[str, NodeHcas], cluster: ClusterIntent
) -> ClusterBefore:
    """Return the same, out of the answer of sriov_operator_info."""
    return ClusterBefore(
        {node.name: node for node in seen.nodes},
        {state.node: state for state in seen.states},
        {policy.name: policy for policy in seen.policies},
        seen.supported_nics,
        hcas,
        (cluster.node_pool and cluster.node_pool.rdma_mode) or "",
        seen.nic_policies,
    )


@dataclasses.dataclass(frozen=True)
class Objection:
    """One rule that the policy breaks.

    :ivar check: id of the finding
    :ivar where: who stops it: the webhook; the node, after the API server took it; or nobody, and somebody will be
        surprised
    :ivar measured: the webhook's own words, where it is the one
    :ivar node: empty when the policy alone is at fault
    :ivar function: netdev or PCI address of the physical function; empty when it is about the node
    """

    check: str
    where: Where
    measured: str
    expected: str
    why: str
    remedy: str
    node: str = ""
    function: str = ""
