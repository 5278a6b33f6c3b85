# SPDX-License-Identifier: GPL-3.0-or-later

"""Find ports whose node reports a LID that belongs to another port, or possibly belongs to one. Packets to a LID reach
only one port, so an answer from it proves nothing about another port.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ...._model.base.text import join_first
from ...._model.infiniband.fabric import SeenTopology
from ...._model.node.hca import Hca, Port
from ..hca_locations import Topologies, find_topology_with_source
from ..hcas_of_fabric import Membership, Nodes, Subnets, find_masters

#: node, RDMA device, number of the port
Key = tuple[str, str, int]

#: ports in the words of a claim
_MOST = 8


@dataclasses.dataclass(frozen=True)
class LidClaim:
    """A LID that nodes report for ports that do not have it, or for which its owner is unknown.

    :ivar lid: LID that the nodes report
    :ivar ports: ports that are not proven to have the LID
    :ivar words: sentences with the ports that report the LID, and the data of the topology
    """

    lid: int
    ports: tuple[Key, ...]
    words: str


@dataclasses.dataclass(frozen=True)
class _ClaimedPort:
    """A port with the LID that its node reports.

    :ivar key: node, RDMA device and port number
    :ivar lid: LID that the node reports
    :ivar guid: GUID of the port; None if the node does not report it
    :ivar master: GUID of the master subnet manager that the port sees
    """

    key: Key
    lid: int
    guid: typing.Optional[str]
    master: str

    def __str__(self) -> str:
        return "{} {} port {}".format(*self.key)


def find_false_claims(
    membership: Membership, nodes: Nodes, subnets: Subnets, topologies: Topologies
) -> tuple[LidClaim, ...]:
    """Return the LIDs that several ports of one subnet report, and those that the topology shows at another port,
    ordered by LID.

    Virtual functions share the LID of their physical function and are left out. The LID that the topology shows at the
    GUID of a port is proven. Without the topology, none of several ports with the same LID is proven to have it.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param nodes: HCAs of each node that could be read
    :param subnets: subnets that the ports of each node see
    :param topologies: topologies that fabric_info read, or the error, by node
    """
    shown = _TopologyLids(membership, subnets, topologies)
    by_lid: dict[tuple[int, str], list[_ClaimedPort]] = collections.defaultdict(list)
    for port in _claimed_ports(membership, nodes, subnets):
        by_lid[port.lid, port.master].append(port)
    claims = []
    for (lid, _master), ports in sorted(by_lid.items()):
        proven = [port for port in ports if shown.at(port) == lid]
        wrong = [port for port in ports if shown.elsewhere(port)]
        if len(ports) > 1:
            wrong = [port for port in ports if port not in proven] if len(proven) == 1 else ports
        if wrong:
            claims.append(
                LidClaim(
                    lid,
                    tuple(port.key for port in wrong),
                    f"{_describe_lid_claim(ports, lid)}{shown.words(lid, wrong)}",
                )
            )
    return tuple(claims)


def _describe_lid_claim(ports: typing.Sequence[_ClaimedPort], lid: int) -> str:
    names = join_first([str(port) for port in ports], _MOST, " and " if len(ports) == 2 else ", ")
    return f"{'The node reports' if len(ports) == 1 else 'The nodes report'} LID {lid} for {names}."


def _claimed_ports(membership: Membership, nodes: Nodes, subnets: Subnets) -> typing.Iterator[_ClaimedPort]:
    """Yield the physical ports that see a subnet manager of the fabric and report a LID, whether they are members of
    the fabric or not.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param nodes: HCAs of each node that could be read
    :param subnets: subnets that the ports of each node see
    """
    for name, node in nodes.items():
        masters = find_masters(subnets.get(name, ()))
        for hca, port in _list_ports(node.hcas):
            master = masters.get((hca.rdma_device or "", port.number))
            if port.lid is not None and master in membership.subnet_managers:
                yield _ClaimedPort((name, hca.rdma_device or "", port.number), port.lid, port.guid, master or "")


def _list_ports(hcas: typing.Iterable[Hca]) -> typing.Iterator[tuple[Hca, Port]]:
    return ((hca, port) for hca in hcas if not hca.is_virtual for port in hca.ports)


class _TopologyLids:
    """The LIDs that the topology of a fabric shows for its ports, by GUID. It is empty if no topology was read."""

    def __init__(self, membership: Membership, subnets: Subnets, topologies: Topologies) -> None:
        name, seen, _why = find_topology_with_source(membership, topologies)
        self._master = next(
            (
                one.master.guid
                for one in subnets.get(name, ())
                if one.master and _is_from(one.rdma_device, one.port, seen)
            ),
            None,
        )
        self._lids: dict[str, int] = {}
        self._owners: dict[int, str] = {}
        self._called = {node.guid: node.called for node in seen.topology.nodes} if seen and seen.topology else {}
        for link in seen.topology.links if seen and seen.topology else ():
            for end in (link.a, link.b):
                if end.lid:
                    self._owners[end.lid] = end.port_guid or end.guid
                    self._called.setdefault(end.port_guid or end.guid, self._called.get(end.guid, ""))
                    if end.port_guid:
                        self._lids[end.port_guid] = end.lid

    def at(self, port: _ClaimedPort) -> typing.Optional[int]:
        """Return the LID that the topology shows at the GUID of a port. Return None if the topology does not show the
        port, or if its GUID is unknown.
        """
        return self._lids.get(port.guid or "")

    def elsewhere(self, port: _ClaimedPort) -> bool:
        """Return whether the topology contradicts the LID that a node reports for a port. It does so if it shows
        another LID at the port, or if it does not show the port but shows the LID at another port of the same subnet
        manager.
        """
        own = self.at(port)
        return (
            own != port.lid
            if own is not None
            else port.guid is not None and port.lid in self._owners and port.master == self._master
        )

    def words(self, lid: int, wrong: typing.Sequence[_ClaimedPort]) -> str:
        """Return a sentence with the port at which the topology shows the LID, and with the LIDs that it shows at the
        ports ``wrong``; empty if it shows neither.

        :param lid: LID that the nodes report
        :param wrong: ports that are not proven to have the LID
        """
        owner = self._owners.get(lid)
        others = [f"LID {self.at(port)} at {port}" for port in wrong if self.at(port) not in (None, lid)]
        at = [f"this LID at {self._called.get(owner) or 'a port'} (GUID {owner})"] if owner else []
        return f" The topology shows {join_first([*at, *others], _MOST)}." if at or others else ""


def _is_from(device: str, number: int, seen: typing.Optional[SeenTopology]) -> bool:
    return seen is not None and (seen.rdma_device, seen.port) == (device, number)
