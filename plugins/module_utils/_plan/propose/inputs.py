# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts from which an intent is proposed."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies
from ..._model.kubernetes.addresses import AddressFacts
from ..._model.kubernetes.controller import NodeRoom
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.node.hca import Hca, ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours
from ..._model.node.platform import ObservedPlatform
from ..._model.operators.sriov_operator import OperatorFacts

#: HCAs of each node that gave an answer
Nodes = typing.Mapping[str, tuple[Hca, ...]]


@dataclasses.dataclass(frozen=True)
class NamedImage:
    """The image of the observers, as the user named it for the run.

    :ivar name: name of the image, with a tag or with a digest
    :ivar in_inventory: whether the inventory names it, instead of the command
    """

    name: str
    in_inventory: bool = False


@dataclasses.dataclass(frozen=True)
class ProposalInputs:
    """The facts of nodes and cluster from which an intent is proposed. A cluster fact that could not be read is None,
    and ``unread`` has the reason.

    :ivar hcas: HCAs by node
    :ivar subnets: subnet managers that the ports see, by node
    :ivar topologies: topologies of the fabrics, by the node that read them
    :ivar addresses: networks and addresses that the cluster uses
    :ivar operators: SR-IOV operators and their objects
    :ivar unread: cluster data that could not be read, each with the reason
    :ivar namespace: namespace of the pods that will use the fabrics, which only the user knows; empty if not set
    :ivar neighbours: LLDP data and neighbor tables of Ethernet NICs, by node
    :ivar image: image of the observers; None if the user named none
    :ivar observers: observers of the run; None for none
    :ivar room: CPU and memory of the nodes; None if they could not be read
    :ivar platforms: platform of each node, with the networks of its own interfaces
    """

    hcas: typing.Mapping[str, ObservedHcas]
    subnets: typing.Mapping[str, ObservedSubnets]
    topologies: typing.Mapping[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    addresses: typing.Optional[AddressFacts] = None
    operators: typing.Optional[OperatorFacts] = None
    unread: tuple[str, ...] = ()
    namespace: str = ""
    neighbours: typing.Mapping[str, ObservedNeighbours] = dataclasses.field(default_factory=dict)
    image: typing.Optional[NamedImage] = None
    observers: typing.Optional[ObserversFacts] = None
    room: typing.Optional[tuple[NodeRoom, ...]] = None
    platforms: typing.Mapping[str, ObservedPlatform] = dataclasses.field(default_factory=dict)
