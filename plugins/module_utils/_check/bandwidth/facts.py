# SPDX-License-Identifier: GPL-3.0-or-later

"""The input of stage bandwidth, and values of a fabric that are derived from it: limits of the pairs, rates of the
links, locations of HCAs, and the HCAs that belong to the fabric.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.bandwidth.floors import PairLimits, in_pods, select_read_hcas
from ..._analysis.fleet.hca_locations import (
    collect_places,
    number_by_leaf,
)
from ..._analysis.fleet.hcas_of_fabric import Membership, resolve_members
from ..._analysis.fleet.line_rates import LineRates, find_line_rates
from ..._model.infiniband.fabric import ObservedSubnets, ObservedTopologies, Place, SeenSubnet
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import BandwidthFacts, Earlier, RdmaPod
from ..._model.measurement.pairs import End
from ..._model.node.hca import ObservedHcas
from ..._model.node.neighbours import ObservedNeighbours


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the nodes that must take part
    :ivar bandwidth: answer of rdma_bandwidth; None if it did not run
    :ivar hcas: answer of node_info of each node. With ``subnets`` and ``topologies`` it gives the rates of links and
        the locations of suspects
    :ivar subnets: subnet managers that the ports of a node see, or the error, by node
    :ivar topologies: topologies that fabric_info read, or the error, by node
    :ivar earlier: measurements of kept runs
    :ivar functions: HCAs of each node after virtual functions were created; only the rate limits of the virtual
        functions are read from it
    :ivar neighbours: LLDP neighbors of each node, for the paths of an Ethernet fabric
    """

    nodes: tuple[str, ...] = ()
    bandwidth: typing.Optional[BandwidthFacts] = None
    hcas: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    subnets: dict[str, ObservedSubnets] = dataclasses.field(default_factory=dict)
    topologies: dict[str, ObservedTopologies] = dataclasses.field(default_factory=dict)
    earlier: Earlier = dataclasses.field(default_factory=Earlier)
    functions: dict[str, ObservedHcas] = dataclasses.field(default_factory=dict)
    neighbours: dict[str, ObservedNeighbours] = dataclasses.field(default_factory=dict)


#: no fact about the links, where the nodes were not read
NOTHING = Facts()


def find_limits(fabric: Fabric, facts: Facts, pods: typing.Iterable[RdmaPod]) -> PairLimits:
    """Return the limits by which the pairs of a fabric are judged.

    The mapping of the nodes' HCAs in the result stays empty.

    :param pods: pods of any fabric; those of other fabrics are ignored
    """
    mine = {(pod.rail, pod.node): pod for pod in pods if pod.fabric == fabric.name}
    return PairLimits(fabric, mine, find_rates(fabric, facts, mine.values())[0])


def _collect_subnets(facts: Facts) -> dict[str, tuple[SeenSubnet, ...]]:
    return {name: observed.value for name, observed in facts.subnets.items() if observed.value is not None}


def find_rates(fabric: Fabric, facts: Facts, pods: typing.Iterable[RdmaPod]) -> tuple[LineRates, str]:
    """Return the rates that the links of the fabric's HCAs can carry, and the reason if the HCAs of the fabric are
    unknown. The reason is empty otherwise.

    :param pods: pods of the fabric
    """
    return find_line_rates(
        fabric, select_read_hcas(facts.hcas), _collect_subnets(facts), facts.topologies, in_pods(pods)
    )


def find_membership(fabric: Fabric, facts: Facts) -> Membership:
    """Return the HCAs that belong to the fabric, with their rails numbered by leaf."""
    return number_by_leaf(
        resolve_members(fabric, select_read_hcas(facts.hcas), _collect_subnets(facts)), facts.topologies
    )


def locate_ends(fabric: Fabric, facts: Facts) -> dict[End, Place]:
    """Return the location (node, HCA, rail, leaf) of each known HCA port of the fabric, by rail and node."""
    return {
        (place.rail, place.node): place
        for place in collect_places(find_membership(fabric, facts), facts.topologies).values()
    }
