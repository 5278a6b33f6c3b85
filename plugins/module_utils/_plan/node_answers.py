# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts that the nodes reported about their HCAs, subnet managers and topologies. All plans are computed from
them.
"""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.fleet.hca_locations import group_nodes_by_layout, number_by_leaf
from .._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from .._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, SeenSubnet
from .._model.intent.intent import Fabric, Intent
from .._model.node.hca import NodeHcas, ObservedHcas

#: fabric: node: PCI address of a physical function: its rail
Rails = dict[str, dict[str, dict[str, int]]]


Topologies = typing.Callable[[], typing.Mapping[str, ObservedTopologies]]


@dataclasses.dataclass(frozen=True)
class NodeAnswers:
    """The facts of the nodes that reported them. A node whose facts could not be read is left out.

    :ivar hcas: HCAs by node
    :ivar subnets: subnets of the ports, by node
    :ivar topologies: function that reads the results of fabric_info. It takes seconds for a large fabric, and is called
        only if nodes differ in the layout of their HCAs
    """

    hcas: typing.Mapping[str, NodeHcas]
    subnets: typing.Mapping[str, tuple[SeenSubnet, ...]]
    topologies: Topologies = dict

    def without(self, nodes: typing.Sequence[str]) -> NodeAnswers:
        """Return the facts without those of some nodes.

        :param nodes: names of these nodes
        """
        if not nodes:
            return self
        hcas = {name: item for name, item in self.hcas.items() if name not in nodes}
        subnets = {name: item for name, item in self.subnets.items() if name not in nodes}
        return dataclasses.replace(self, hcas=hcas, subnets=subnets)

    def members(self, fabric: Fabric) -> Membership:
        """Return the members of a fabric: its HCAs on each node, with their rails. If nodes differ in the layout of
        their HCAs, the topology is read, and the rails are numbered by the leaf to which the HCAs are connected.
        """
        membership = resolve_members(fabric, self.hcas, self.subnets)
        return (
            number_by_leaf(membership, self.topologies()) if len(group_nodes_by_layout(membership)) > 1 else membership
        )


def collect_answers(
    hcas: typing.Mapping[str, ObservedHcas],
    subnets: typing.Mapping[str, ObservedSubnets],
    topologies: Topologies = dict,
) -> NodeAnswers:
    """Return the facts of the nodes that reported them. A node with an error is left out, because the stage that
    queried it reports the error as a finding.

    :param hcas: HCAs that node_info read, or the error, by node
    :param subnets: subnet managers that the ports of a node see, or the error, by node
    :param topologies: function that reads the topologies when they are needed
    """
    return NodeAnswers(
        {name: seen.value for name, seen in hcas.items() if seen.value is not None and seen.error is None},
        {name: seen.value for name, seen in subnets.items() if seen.value is not None and seen.error is None},
        topologies,
    )


def list_rails(intent: Intent, answers: NodeAnswers) -> Rails:
    """Return the rail of each physical function, by fabric, node and PCI address. A fabric whose HCAs cannot be
    identified has no rails.
    """
    return {
        fabric.name: {
            node: {member.hca.pci.address: member.rail for member in members if member.hca.pci}
            for node, members in answers.members(fabric).members.items()
        }
        for fabric in intent.fabrics
    }
