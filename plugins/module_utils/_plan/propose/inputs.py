# SPDX-License-Identifier: GPL-3.0-or-later

"""What a proposal is made of."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.kubernetes.addresses import AddressFacts
from ..._model.node.hca import Hca, ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours
from ..._model.operators.sriov_operator import OperatorFacts

#: HCAs of each node that gave an answer
Nodes = typing.Mapping[str, tuple[Hca, ...]]


@dataclasses.dataclass(frozen=True)
class ProposalInputs:
    """The facts that a proposal is made of. None: not observed, and the reason is in ``unread``.

    :ivar neighbours: who is at the other end of the cables of Ethernet NICs
    :ivar namespace: of the pods that shall use the fabrics, which the user alone knows; empty where he has not said
    :ivar unread: what could not be asked of the cluster, and why
    """

    hcas: typing.Mapping[str, ObservedHcas]
    subnets: typing.Mapping[str, ObservedSubnets]
    topologies: typing.Mapping[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    addresses: typing.Optional[AddressFacts] = None
    operators: typing.Optional[OperatorFacts] = None
    unread: tuple[str, ...] = ()
    namespace: str = ""
    neighbours: typing.Mapping[str, ObservedNeighbours] = dataclasses.field(default_factory=dict)
