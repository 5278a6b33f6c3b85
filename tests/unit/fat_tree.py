# SPDX-License-Identifier: GPL-3.0-or-later

"""A fat tree of two levels that is made up, with the forwarding tables that min hop would compute."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import FabricNode, Link, LinkEnd, Topology
from ansible_collections.linerate.rdma.plugins.module_utils._model.forwarding import UNTOLD, ForwardingTable
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.ways import End, Ways


def guid(kind: int, number: int) -> str:
    return f"0x{kind:08x}{number:08x}"


def lid(leaf: int, host: int, hosts: int) -> int:
    return 1 + leaf * hosts + host


Parts = typing.Tuple[Topology, typing.List[ForwardingTable], typing.List[End]]


def fat_tree(leaves: int, spines: int, hosts: int, spread: str = "", lost: typing.Optional[typing.Tuple[int, int]] = None) -> Ways:
    """The ways in such a tree."""
    return Ways(*parts(leaves, spines, hosts, lost), spread)


def parts(leaves: int, spines: int, hosts: int, lost: typing.Optional[typing.Tuple[int, int]] = None) -> Parts:
    """Two levels: each leaf has a link to each spine. Leaves send up by the LID of the target, as min hop spreads them.

    :param lost: leaf and LID of which its table says nothing
    """
    most = leaves * hosts + 1
    nodes = [FabricNode("Switch", guid(1, leaf), f"leaf-{leaf}", 64) for leaf in range(leaves)]
    nodes += [FabricNode("Switch", guid(2, spine), f"spine-{spine}", 64) for spine in range(spines)]
    links, ends, tables = [], [], []
    for leaf in range(leaves):
        ports = bytearray([UNTOLD] * most)
        for spine in range(spines):
            links.append(Link(LinkEnd("Switch", guid(1, leaf), hosts + 1 + spine), LinkEnd("Switch", guid(2, spine), leaf + 1), 4, "NDR"))
        for host in range(hosts):
            number = lid(leaf, host, hosts)
            nodes.append(FabricNode("Ca", guid(3, number), f"node-{number}", 1))
            links.append(Link(LinkEnd("Switch", guid(1, leaf), host + 1), LinkEnd("Ca", guid(3, number), 1, number, guid(3, number)), 4, "NDR"))
            ends.append(End(f"node-{number}", 0, guid(3, number), number))
        for target in range(1, most):
            at, host = divmod(target - 1, hosts)
            ports[target] = host + 1 if at == leaf else hosts + 1 + host % spines
        if lost is not None and lost[0] == leaf:
            ports[lost[1]] = UNTOLD
        tables.append(ForwardingTable(guid(1, leaf), bytes(ports)))
    down = bytes([UNTOLD, *(1 + (target - 1) // hosts for target in range(1, most))])
    tables += [ForwardingTable(guid(2, spine), down) for spine in range(spines)]
    return Topology(tuple(nodes), tuple(links)), tables, ends
