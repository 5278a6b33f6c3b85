# SPDX-License-Identifier: GPL-3.0-or-later

"""Fat trees that are made up, with the forwarding tables that min hop would compute."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.link_directions import End
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.paths import PathTable
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import UNTOLD, ForwardingTable


def guid(kind: int, number: int) -> str:
    """Kinds: 1 is a leaf, 2 a spine, 3 a host, 4 a core."""
    return f"0x{kind:08x}{number:08x}"


Parts = tuple[Topology, list[ForwardingTable], list[End]]


def fat_tree(
    leaves: int, spines: int, hosts: int, spread: str = "", lost: typing.Optional[tuple[int, int]] = None
) -> PathTable:
    """Two levels, and as many hosts on each leaf."""
    return tree([hosts] * leaves, spines, spread=spread, lost=lost)


def tree(
    hosts: typing.Sequence[int],
    spines: int,
    pods: int = 1,
    cores: int = 0,
    rails: int = 1,
    spread: str = "",
    lost: typing.Optional[tuple[int, int]] = None,
    across: bool = False,
) -> PathTable:
    """The ways of ``parts``."""
    return PathTable(*parts(hosts, spines, pods, cores, rails, lost), spread, across=across)


def rail_tree(
    hosts: int, rails: int, spines: int, units: int = 1, apart: bool = False, spread: str = "", across: bool = True
) -> PathTable:
    """The ways of ``rail_parts``."""
    return PathTable(*rail_parts(hosts, rails, spines, units, apart), spread, across=across)


def rail_parts(hosts: int, rails: int, spines: int, units: int = 1, apart: bool = False) -> Parts:
    """Optimised for rails: each host has an HCA on the leaf of each rail of its unit, and all leaves share the spines.

    :param hosts: of each unit
    :param apart: nothing is routed from one rail to another
    """
    topology, tables, ends = parts([hosts] * (rails * units), spines, rails=rails)
    # the leaves of a unit follow each other, and the ends of a leaf
    ends = [
        End(f"host-{number // (hosts * rails) * hosts + number % hosts + 1}", it.rail, it.guid, it.lid)
        for number, it in enumerate(ends)
    ]
    if apart:
        rail_of = {end.lid: end.rail for end in ends}
        for number in range(rails * units):
            ports = bytearray(tables[number].ports)
            ports[1:] = [port if rail_of[lid] == number % rails else UNTOLD for lid, port in enumerate(ports) if lid]
            tables[number] = ForwardingTable(tables[number].guid, bytes(ports))
    return topology, tables, ends


def parts(
    hosts: typing.Sequence[int],
    spines: int,
    pods: int = 1,
    cores: int = 0,
    rails: int = 1,
    lost: typing.Optional[tuple[int, int]] = None,
) -> Parts:
    """Each leaf has a link to each spine of its pod, each spine one to each core. What goes up does so by the number
    that the target has on its leaf.

    :param hosts: of each leaf
    :param spines: of each pod, which has as many leaves as any other
    :param rails: leaves take turns with them
    :param lost: leaf and LID of which its table says nothing
    """
    leaves, in_pod = len(hosts), len(hosts) // pods
    places = [(leaf, host) for leaf, count in enumerate(hosts) for host in range(count)]
    switches = (
        [(1, leaf) for leaf in range(leaves)]
        + [(2, spine) for spine in range(pods * spines)]
        + [(4, core) for core in range(cores)]
    )
    nodes = [
        FabricNode("Switch", guid(*it), f"{ {1: 'leaf', 2: 'spine', 4: 'core'}[it[0]] }-{it[1]}", 64) for it in switches
    ]
    links, ends = [], []
    for leaf in range(leaves):
        for spine in range(spines):
            above = leaf // in_pod * spines + spine
            links.append(
                Link(
                    LinkEnd("Switch", guid(1, leaf), hosts[leaf] + 1 + spine),
                    LinkEnd("Switch", guid(2, above), leaf % in_pod + 1),
                    4,
                    "NDR",
                )
            )
    for spine in range(pods * spines):
        for core in range(cores):
            links.append(
                Link(
                    LinkEnd("Switch", guid(2, spine), in_pod + 1 + core),
                    LinkEnd("Switch", guid(4, core), spine + 1),
                    4,
                    "NDR",
                )
            )
    tables = {guid(*it): bytearray([UNTOLD] * (len(places) + 1)) for it in switches}
    for number, (leaf, host) in enumerate(places, 1):
        nodes.append(FabricNode("Ca", guid(3, number), f"node-{number}", 1))
        links.append(
            Link(
                LinkEnd("Switch", guid(1, leaf), host + 1),
                LinkEnd("Ca", guid(3, number), 1, number, guid(3, number)),
                4,
                "NDR",
            )
        )
        ends.append(End(f"node-{number}", leaf % rails, guid(3, number), number))
        for other in range(leaves):
            tables[guid(1, other)][number] = host + 1 if other == leaf else hosts[other] + 1 + host % spines
        for spine in range(pods * spines):
            here = spine // spines == leaf // in_pod
            tables[guid(2, spine)][number] = leaf % in_pod + 1 if here else in_pod + 1 + (host // spines + leaf) % cores
        for core in range(cores):
            tables[guid(4, core)][number] = leaf // in_pod * spines + host % spines + 1
    if lost is not None:
        tables[guid(1, lost[0])][lost[1]] = UNTOLD
    return (
        Topology(tuple(nodes), tuple(links)),
        [ForwardingTable(name, bytes(ports)) for name, ports in tables.items()],
        ends,
    )
