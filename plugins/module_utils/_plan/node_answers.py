# SPDX-License-Identifier: GPL-3.0-or-later

"""The HCAs, subnet managers and topologies of the nodes that answered. Each plan is made from them."""

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
    """The answers of the nodes. A node that gave an error is not in them.

    :ivar hcas: by node
    :ivar subnets: what each port sees, by node
    :ivar topologies: reads the answers of fabric_info. A large one takes seconds, and only a fleet of several models
        needs it
    """

    hcas: typing.Mapping[str, NodeHcas]
    subnets: typing.Mapping[str, tuple[SeenSubnet, ...]]
    topologies: Topologies = dict

    def members(self, fabric: Fabric) -> Membership:
        """Return the members of the fabric."""
        membership = resolve(fabric, self.hcas, self.subnets)
        return (
            number_by_leaf(membership, self.topologies()) if len(group_nodes_by_layout(membership)) > 1 else membership
        )


def collect_answers(
    hcas: typing.Mapping[str, ObservedHcas],
    subnets: typing.Mapping[str, ObservedSubnets],
    topologies: Topologies = dict,
) -> NodeAnswers:
    """Return the answers of the nodes that gave one. A node without an answer is a finding of the stage that asked
    it."""
    return NodeAnswers(
        {name: seen.value for name, seen in hcas.items() if seen.value is not None and seen.error is None},
        {name: seen.value for name, seen in subnets.items() if seen.value is not None and seen.error is None},
        topologies,
    )


def list_rails(intent: Intent, answers: NodeAnswers) -> Rails:
    """Return the rail of each fabric's physical functions on each node, by their PCI addresses. A fabric that can't be
    made out has none."""
    return {
        fabric.name: {
            node: {member.hca.pci.address: member.rail for member in members if member.hca.pci}
            for node, members in answers.members(fabric).members.items()
        }
        for fabric in intent.fabrics
    }
