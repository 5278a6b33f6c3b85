# SPDX-License-Identifier: GPL-3.0-or-later

"""Connected components of NICs and switch networks, computed from the LLDP data and neighbor tables of nodes. A switch
network is a VLAN of a switch. A report of a single node never merges two components that several other nodes are on.
"""

from __future__ import annotations

import typing

Nic = tuple[str, str]  # node and name of the HCA
Switch = tuple[str, str, typing.Optional[int]]  # "switch", chassis and VLAN
Place = typing.Union[Nic, Switch]
# as many nodes make a network that no other node alone joins to another such one
_SEVERAL = 2


class _Claims:
    """The reports of nodes that two components are one network.

    :ivar claimants: nodes that report it
    :ivar common: nodes on which each of the reports depends, as the reporting node or as the owner of the reported
        hardware address
    """

    __slots__ = ("claimants", "common")

    def __init__(self, claimants: set[str], common: frozenset[str]) -> None:
        self.claimants = claimants
        self.common = common

    def add(self, other: _Claims) -> None:
        self.claimants |= other.claimants
        self.common &= other.common


class Joins:
    """A union-find structure of NICs and switch networks. Each connected component is one network.

    :param heard: switch networks from which each NIC receives LLDP frames
    :param seen: NICs of other nodes whose hardware addresses each NIC has as neighbors
    """

    def __init__(
        self, heard: typing.Mapping[Nic, typing.Collection[Switch]], seen: typing.Mapping[Nic, typing.Collection[Nic]]
    ) -> None:
        self._heard = heard
        self._seen = seen
        self._parents: dict[Place, Place] = {}
        self._nodes: dict[Place, set[str]] = {}
        self._with_switch: set[Place] = set()
        self._claims: dict[Place, dict[Place, _Claims]] = {}
        self._rejected: dict[Nic, list[Place]] = {}
        self._nics = [*dict.fromkeys([*heard, *seen, *(other for others in seen.values() for other in others)])]
        for nic in self._nics:
            self._register_place(nic).add(nic[0])
        for switches in heard.values():
            for switch in switches:
                self._register_place(switch)
                self._with_switch.add(switch)
        # a NIC that hears one network is on it, whatever else it claims
        self._placed = {nic for nic, switches in heard.items() if len(switches) == 1}
        for nic in self._placed:
            self._merge_components(nic, next(iter(heard[nic])))
        for nic in self._nics:
            self._record_nic_claims(nic)
        self._join_by_several([(one, other) for one, others in self._claims.items() for other in others])
        self._join_by_one()

    def rejected(self) -> dict[Nic, list[Place]]:
        """Return the NICs that are rejected because the report of each one alone would merge networks that several
        other nodes are on. The value of a NIC is a list with one NIC or switch network from each of the networks that
        it would merge.
        """
        return self._rejected

    def components(self) -> list[list[Place]]:
        """Return the layer 2 networks that the reports show, each as the list of its NICs and switch networks. Networks
        with a single NIC or switch network, and rejected NICs, are left out."""
        found: dict[Place, list[Place]] = {}
        for place in self._parents:
            if place not in self._rejected:
                found.setdefault(self.find(place), []).append(place)
        return [places for places in found.values() if len(places) > 1]

    def find(self, place: Place) -> Place:
        """Return the NIC or switch network that represents the component of a place (a NIC or switch network). All
        places of a component have the same representative.

        :param place: NIC or switch network of the component
        :raises KeyError: the place is in no report
        """
        parents = self._parents
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    def _register_place(self, place: Place) -> set[str]:
        self._parents.setdefault(place, place)
        return self._nodes.setdefault(place, set())

    def _merge_components(self, one: Place, other: Place) -> list[tuple[Place, Place]]:
        """Merge the components of two NICs or switch networks. Return the pairs of components whose reports were
        combined by the merge; empty if both already belong to the same component.

        :param one: NIC or switch network that represents the first component
        :param other: NIC or switch network that represents the second component
        """
        kept, gone = self.find(one), self.find(other)
        if kept == gone:
            return []
        if self._compute_component_size(kept) < self._compute_component_size(gone):
            kept, gone = gone, kept
        self._parents[gone] = kept
        self._nodes[kept] |= self._nodes.pop(gone)
        if gone in self._with_switch:
            self._with_switch.add(kept)
        moved = self._claims.pop(gone, {})
        moved.pop(kept, None)
        mine = self._claims.setdefault(kept, {}) if moved else self._claims.get(kept, {})
        mine.pop(gone, None)
        for place, claims in moved.items():
            there = mine.setdefault(place, claims)
            if there is not claims:
                there.add(claims)
            del self._claims[place][gone]
            self._claims[place][kept] = there
        return [(kept, place) for place in moved]

    def _compute_component_size(self, root: Place) -> int:
        return len(self._nodes[root]) + len(self._claims.get(root, ()))

    def _record_nic_claims(self, nic: Nic) -> None:
        """Record the components to which a NIC reports a connection, by LLDP frames or neighbors."""
        home = self.find(nic)
        owners: dict[Place, typing.Optional[set[str]]] = {}
        for switch in self._heard.get(nic, ()):
            owners[self.find(switch)] = None
        for other in self._seen.get(nic, ()):
            root = self.find(other)
            if root != home:
                known = owners.setdefault(root, set())
                if known is not None:
                    known.add(other[0])
        owners.pop(home, None)
        by = {
            root: frozenset([nic[0], *(names if names and len(names) == 1 else ())]) for root, names in owners.items()
        }
        for root, common in by.items():
            self._record_claim(home, root, nic[0], common)
        if nic in self._placed:
            return
        # it is on no network yet, and claims nevertheless that those are one: each is joined to the one that most nodes
        # are on
        networks = sorted(
            (root for root in by if root in self._with_switch),
            key=lambda root: (-len(self._nodes[root]), *map(str, root)),
        )
        for root in networks[1:]:
            self._record_claim(networks[0], root, nic[0], by[networks[0]] | by[root])

    def _record_claim(self, one: Place, other: Place, claimant: str, common: frozenset[str]) -> None:
        claims = _Claims({claimant}, common)
        there = self._claims.setdefault(one, {}).setdefault(other, claims)
        if there is not claims:
            there.add(claims)
        self._claims.setdefault(other, {})[one] = there

    def _join_by_several(self, waiting: list[tuple[Place, Place]]) -> None:
        """Merge the pairs of components that several nodes report to be one network. A merge combines the reports about
        other pairs, which are then examined too.

        :param waiting: pairs to examine; the list is emptied
        """
        while waiting:
            one, other = waiting.pop()
            claims = self._claims.get(one, {}).get(other)
            if claims is not None and self._is_solid(one, other, claims):
                waiting += self._merge_components(one, other)

    def _is_solid(self, one: Place, other: Place, claims: _Claims) -> bool:
        """Return whether at least two nodes report that two components are one network. If one of them has a switch
        network, no single node may be part of each report, either as the reporter or as the owner of the hardware
        address.

        :param one: NIC or switch network that represents the first component
        :param other: NIC or switch network that represents the second component
        :param claims: reports that the two components are one network
        """
        if len(claims.claimants) < _SEVERAL:
            return False
        return not claims.common or not (one in self._with_switch or other in self._with_switch)

    def _join_by_one(self) -> None:
        """Merge components on the report of a single NIC. NICs whose component has no other node are examined first,
        then NICs that report fewer components. A NIC that would merge networks of several other nodes is rejected.
        """
        of_nic = {nic: self._examine_isolation(nic) for nic in self._nics}
        for nic in sorted(
            (nic for nic, (_lone, places) in of_nic.items() if places),
            key=lambda nic: (not of_nic[nic][0], len(of_nic[nic][1]), nic),
        ):
            home = self.find(nic)
            roots = {self.find(place) for place in of_nic[nic][1]} | {home}
            several = [root for root in roots if len(self._nodes[root]) - (nic[0] in self._nodes[root]) >= _SEVERAL]
            if len(several) < _SEVERAL:
                for root in roots:
                    self._join_by_several(self._merge_components(home, root))
            elif nic not in self._placed:
                self._rejected[nic] = several
        for nic, places in [*self._rejected.items()]:
            if len({self.find(place) for place in places}) == 1:
                self._merge_components(nic, places[0])
                del self._rejected[nic]

    def _examine_isolation(self, nic: Nic) -> tuple[bool, list[Place]]:
        """Return two values: whether the component of a NIC contains no other node; and the other components that the
        NIC reports as its own network. If the component contains no other node, the second value also includes the
        components from which several nodes report the NIC.
        """
        home = self.find(nic)
        found = {self.find(switch) for switch in self._heard.get(nic, ())} | {
            self.find(other) for other in self._seen.get(nic, ())
        }
        lone = self._nodes[home] == {nic[0]}
        if lone:
            found |= {
                root
                for root, claims in self._claims.get(home, {}).items()
                if len(claims.claimants - {nic[0]}) >= _SEVERAL
            }
        found.discard(home)
        return lone, [*found]
