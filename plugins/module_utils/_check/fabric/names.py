# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared parts of the checks of stage fabric: the facts of the nodes that answered, and the names of ports and
devices.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import typing

from ..._analysis.fleet.host_names import host_of
from ..._model.base.phrases import format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenSubnet, SeenTopology, Topology
from ..._model.node.hca import NodeHcas

TOOLS = "sminfo, saquery, ibnetdiscover, iblinkinfo and ibqueryerrors of the package infiniband-diags"

#: of a list, in the words of a finding
MOST = 8
#: what a finding appends to a description, so that one with it may be the name of another port
_LIKE_A_PORT = re.compile(r" (?:port [0-9]+|0x[0-9a-f]+)(?: - |\Z)")


@dataclasses.dataclass(frozen=True)
class FabricFacts:
    """The facts of the nodes that answered.

    :ivar nodes: HCAs of each node
    :ivar subnets: subnet manager that each port of each node sees
    :ivar topologies: topologies that each node read; most nodes read none
    """

    nodes: typing.Mapping[str, NodeHcas]
    subnets: typing.Mapping[str, tuple[SeenSubnet, ...]]
    topologies: typing.Mapping[str, tuple[SeenTopology, ...]]


class Names:
    """The names of the devices in a topology, for findings.

    The name of a device is its node description, or its GUID if it has no description.

    The GUID is appended to a description that is not unique or has the form of a port name, since the owner of a device
    chooses the description and waivers match by name.
    """

    def __init__(self, topology: typing.Optional[Topology]) -> None:
        nodes = topology.nodes if topology else ()
        devices = collections.Counter(node.called for node in nodes)
        self._nodes = {
            node.guid: (
                node.kind,
                f"{node.called} {node.guid}"
                if devices[node.called] > 1 or _LIKE_A_PORT.search(node.called)
                else node.called,
            )
            for node in nodes
        }
        self._ports = (
            {end.port_guid: end.guid for link in topology.links for end in (link.a, link.b) if end.port_guid}
            if topology
            else {}
        )
        self._lids = (
            {end.lid: end.guid for link in topology.links for end in (link.a, link.b) if end.lid} if topology else {}
        )

    def node(self, guid: str) -> str:
        """Return the name of a device, or the GUID itself if the topology does not show it.

        :param guid: GUID of a device, or of a port of an HCA
        """
        return self._nodes.get(self._ports.get(guid, guid), ("", guid))[1]

    def port(self, guid: str, number: int) -> str:
        """Return the name of a port. For port 1 of an HCA, this is the name of the HCA alone, since the description
        usually contains host and device.

        :param guid: GUID of the switch, or of the port of an HCA
        :param number: number of the port on the device
        """
        kind, name = self._nodes.get(self._ports.get(guid, guid), ("", guid))
        return name if kind == "Ca" and number == 1 else f"{name} port {number}"

    def lid(self, lid: int) -> str:
        """Return the name of the device that has a LID, such as ``sm-1 mlx5_0 (LID 7)``; without one, ``LID 7``."""
        guid = self._lids.get(lid)
        return f"{self.node(guid)} (LID {lid})" if guid else f"LID {lid}"

    def kind(self, guid: str) -> str:
        """Return the location of a device: ``on a switch``, ``on a host`` or ``on a router``; empty when the topology
        does not show it.

        :param guid: GUID of a device, or of a port of an HCA
        """
        return {"Switch": "on a switch", "Ca": "on a host", "Router": "on a router"}.get(
            self._nodes.get(self._ports.get(guid, guid), ("", ""))[0], ""
        )


def find_host(guid: str, names: Names, fabric_facts: FabricFacts) -> typing.Optional[str]:
    """Return the name of the machine that has a port: the node whose HCAs have it, or else the host in the node
    description, which rdma-ndd writes as ``HOST DEVICE``. Return None if neither is known, and for a switch.

    :param guid: GUID of a port of an HCA, or of a device
    :param names: names of the devices of the topology
    :param fabric_facts: HCAs of the nodes whose facts could be read
    """
    for name, node in fabric_facts.nodes.items():
        if any(port.guid == guid for hca in node.hcas for port in hca.ports):
            return name
    described = names.node(guid).split()
    return host_of(described[0]) if len(described) == 2 and names.kind(guid) == "on a host" else None


def join_some(items: typing.Sequence[str]) -> str:
    """Join the first ``MOST`` items as text, and add the number of the omitted items.

    :param items: names or other short texts
    """
    return join_first(items, MOST)


def words_of_ports(fabric_facts: FabricFacts) -> str:
    """Return a sentence with the first errors that ports of any node reported when they were queried for their subnet
    manager. Return an empty text without errors.

    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    """
    words = [
        f"{name} {seen.rdma_device}: {format_clause(seen.error)}"
        for name, subnets in fabric_facts.subnets.items()
        for seen in subnets
        if seen.error
    ]
    return f" The ports report: {' | '.join(words[:6])}." if words else ""
