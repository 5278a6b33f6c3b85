# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports whose node reports a LID that belongs to another port, or may do so. A LID leads to one port: an answer from it
proves nothing of another port."""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.base.text import folded
from ..._model.infiniband.fabric import SeenTopology
from ..._model.node.hca import Hca, Port
from .hca_locations import Topologies, find_topology_with_source
from .hcas_of_fabric import Membership, Nodes, Subnets, find_masters

#: node, RDMA device, number of the port
Key = tuple[str, str, int]

#: ports in the words of a claim
_MOST = 8


@dataclasses.dataclass(frozen=True)
class LidClaim:
    """A LID that ports tell and that is not theirs, or of which it is not known whose it is.

    :ivar ports: those of which it is not proven that they have it
    :ivar words: who tells it, and what the topology shows: sentences
    """

    lid: int
    ports: tuple[Key, ...]
    words: str


@dataclasses.dataclass(frozen=True)
class _ClaimedPort:
    """A port as its node reports it.

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
    """Return the LIDs that several ports of one subnet tell, and those that the topology shows at another port, in the
    order of the LIDs.

    Virtual functions have the LID of their physical one. What the topology shows at the GUID of a port is proven;
    without it, of two ports neither is.
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
    names = folded([str(port) for port in ports], _MOST, " and " if len(ports) == 2 else ", ")
    return (
        f"By {'its node' if len(ports) == 1 else 'their nodes'}, {names} {'has' if len(ports) == 1 else 'have'} LID"
        f" {lid}."
    )


def _claimed_ports(membership: Membership, nodes: Nodes, subnets: Subnets) -> typing.Iterator[_ClaimedPort]:
    """Yield the ports of physical functions that see a manager of the fabric and tell a LID, members or not."""
    for name, node in nodes.items():
        masters = find_masters(subnets.get(name, ()))
        for hca, port in _list_ports(node.hcas):
            master = masters.get((hca.rdma_device or "", port.number))
            if port.lid is not None and master in membership.subnet_managers:
                yield _ClaimedPort((name, hca.rdma_device or "", port.number), port.lid, port.guid, master or "")


def _list_ports(hcas: typing.Iterable[Hca]) -> typing.Iterator[tuple[Hca, Port]]:
    return ((hca, port) for hca in hcas if not hca.is_virtual for port in hca.ports)


class _TopologyLids:
    """LIDs of ports by the topology of the fabric; none where no topology was read."""

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
        """Return the LID that the topology shows at the GUID of a port."""
        return self._lids.get(port.guid or "")

    def elsewhere(self, port: _ClaimedPort) -> bool:
        """Return whether the topology shows another LID at the port, or, if it does not show the port, the LID at
        another port of the same manager."""
        own = self.at(port)
        return (
            own != port.lid
            if own is not None
            else port.guid is not None and port.lid in self._owners and port.master == self._master
        )

    def words(self, lid: int, wrong: typing.Sequence[_ClaimedPort]) -> str:
        """Return a sentence: the port at which the topology shows the LID, and the LIDs that it shows at these
        ports."""
        owner = self._owners.get(lid)
        others = [f"LID {self.at(port)} at {port}" for port in wrong if self.at(port) not in (None, lid)]
        at = [f"it at {self._called.get(owner) or 'a port'} (GUID {owner})"] if owner else []
        return f" The topology shows {folded([*at, *others], _MOST)}." if at or others else ""


def _is_from(device: str, number: int, seen: typing.Optional[SeenTopology]) -> bool:
    return seen is not None and (seen.rdma_device, seen.port) == (device, number)
