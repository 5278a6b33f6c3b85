# SPDX-License-Identifier: GPL-3.0-or-later

"""Add to the plan of a node the reasons why the SR-IOV network operator must not write its number of virtual functions
into the firmware of a card of the node. Pure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.kubernetes.disruption import NodePlan, OperatorSettings
from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState, WantedInterface
from ..controllers.sriov.card_firmware import (
    CardTemplates,
    describe_disable,
    list_lost_functions,
    list_template_conflicts,
    writes_firmware,
)


@dataclasses.dataclass(frozen=True)
class FirmwareWriters:
    """The components that write the firmware of the cards.

    :ivar namespace: namespace of the SR-IOV operator
    :ivar settings: settings of the SR-IOV operator
    :ivar cards: templates and cards of NVIDIA's NIC configuration operator
    """

    namespace: str
    settings: OperatorSettings
    cards: CardTemplates


def add_firmware_blockers(
    planned: NodePlan,
    node: typing.Optional[ClusterNode],
    state: typing.Optional[NodeState],
    wanted: typing.Callable[[ClusterNode, NodeState], typing.Sequence[WantedInterface]],
    writers: FirmwareWriters,
) -> NodePlan:
    """Return the plan of a node with the cards whose number of virtual functions another component sets too, or of
    which another port needs more. A node outside of the inventory that does not change is left as it is.

    :param state: SriovNetworkNodeState of the node
    :param wanted: function that computes the desired state of the physical functions of the node
    """
    unchanged = planned.action == "nothing" and not planned.listed
    if node is None or state is None or planned.action == "unknown" or unchanged:
        return planned
    if not writes_firmware(writers.settings):
        return planned
    wishes = wanted(node, state)
    disable = describe_disable(writers.namespace, writers.settings)
    found = [
        *(
            f"{why}. {disable}."
            for why in list_template_conflicts(writers.cards, node, wishes, state.interfaces, state.wanted)
        ),
        *(
            f"{why}. Set virtual_functions of the fabric to the number of that port, or remove its functions, or:"
            f" {disable}."
            for why in list_lost_functions(state.wanted, wishes, state.interfaces)
        ),
    ]
    return dataclasses.replace(planned, blockers=(*planned.blockers, *found)) if found else planned
