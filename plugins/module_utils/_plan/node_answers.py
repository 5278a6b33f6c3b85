# SPDX-License-Identifier: GPL-3.0-or-later

"""The HCAs, subnet managers and topologies of the nodes that answered, from which every plan is computed."""

from __future__ import annotations

import dataclasses
import typing

from .._analysis.fleet.hca_locations import group_nodes_by_layout, number_by_leaf
from .._analysis.fleet.hcas_of_fabric import Membership, resolve
from .._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, SeenSubnet
from .._model.intent.intent import Fabric, Intent
from .._model.node.hca import NodeHcas, ObservedHcas

#: fabric: node: PCI address of a physical function: its rail
Rails = dict[str, dict[str, dict[str, int]]]


Topologies = typing.Callable[[], typing.Mapping[str, ObservedTopologies]]


@dataclasses.dataclass(frozen=True)
class NodeAnswers:
    """The answers of the nodes, without the nodes that returned an error.

    :ivar hcas: HCAs by node
    :ivar subnets: subnets that the ports are in, by node
    :ivar topologies: function that reads the answers of fabric_info. It takes seconds for a large fabric, and is called
        only if nodes differ in the layout of their HCAs
    """

    hcas: typing.Mapping[str, NodeHcas]
    subnets: typing.Mapping[str, tuple[SeenSubnet, ...]]
    topologies: Topologies = dict

    def members(self, fabric: Fabric) -> Membership:
        """Return the members of a fabric. If nodes differ in the layout of their HCAs, the topology is read and rails
        are numbered by leaf.
        """
        membership = resolve(fabric, self.hcas, self.subnets)
        return (
            number_by_leaf(membership, self.topologies()) if len(group_nodes_by_layout(membership)) > 1 else membership
        )


def collect_answers(
    hcas: typing.Mapping[str, ObservedHcas],
    subnets: typing.Mapping[str, ObservedSubnets],
    topologies: Topologies = dict,
) -> NodeAnswers:
    """Return the answers of the nodes that answered. The stage that queried a node reports a missing answer as a
    finding.
    """
    return NodeAnswers(
        {name: seen.value for name, seen in hcas.items() if seen.value is not None and seen.error is None},
        {name: seen.value for name, seen in subnets.items() if seen.value is not None and seen.error is None},
        topologies,
    )


def list_rails(intent: Intent, answers: NodeAnswers) -> Rails:
    """Return the rail of each physical function, by fabric, node and PCI address. A fabric whose members cannot be
    identified has no rails.
    """
    return {
        fabric.name: {
            node: {member.hca.pci.address: member.rail for member in members if member.hca.pci}
            for node, members in answers.members(fabric).members.items()
        }
        for fabric in intent.fabrics
    }
