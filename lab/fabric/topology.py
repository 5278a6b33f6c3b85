# SPDX-License-Identifier: GPL-3.0-or-later

"""Description to topology, and topology to the files of ibsim and opensm. Pure: nothing is read or written here.

A fabric is a two-level fat tree: HCA k of each host on leaf k (its rail), each leaf linked to each spine. GUIDs and
LIDs are made of the place in the description, so they stay the same from start to start and when extra hosts are added.
"""

from __future__ import annotations

import dataclasses
import typing

from dev.steps import StepError

from .model import REMEDY, SWITCH_PORTS, Fabric, Fabrics

VENDOR = 0x2C9
HCA_DEVICE = 0x1021  # ConnectX-7, MT4129
SWITCH_DEVICE = 0xD2F2  # Quantum-2
# with the aggregation node's
SWITCH_ALL_PORTS = 65
SUBNET_MANAGERS = ("sm-1", "sm-2")

_GUID_BASE = 0xB83FD203_00000000
_LEAF, _SPINE, _SERVER, _HOST = 1, 2, 3, 4


@dataclasses.dataclass(frozen=True)
class Node:
    """A switch, or one HCA with one port.

    :param description: NodeDescription, for an HCA ``<host> <device>`` as rdma-ndd writes it
    :param lid: that the subnet manager is told to give
    """

    kind: str
    guid: int
    description: str
    lid: int

    @property
    def id(self) -> str:
        """How ibsim and its clients call it."""
        return f"{'S' if self.kind == 'switch' else 'H'}-{self.guid:016x}"

    @property
    def port_guid(self) -> int:
        """Of a switch's port 0, or of an HCA's only port; ibsim counts the ports of an HCA up from the node's GUID."""
        return self.guid if self.kind == "switch" else self.guid + 1


@dataclasses.dataclass(frozen=True)
class Link:
    """Between a port of a switch and a port of a switch or HCA."""

    switch: Node
    port: int
    peer: Node
    peer_port: int


@dataclasses.dataclass(frozen=True)
class Topology:
    fabric: Fabric
    switches: tuple[Node, ...]
    managers: tuple[Node, ...]
    hosts: typing.Mapping[tuple[str, str], Node]
    links: tuple[Link, ...]

    @property
    def hcas(self) -> tuple[Node, ...]:
        """All HCAs: of the subnet managers' servers, of the workers, of the extra hosts."""
        return (*self.managers, *self.hosts.values())

    def hca(self, host: str, device: str) -> Node:
        """:raises StepError: the host has no such HCA on this fabric"""
        try:
            return self.hosts[host, device]
        except KeyError as error:
            raise StepError(
                f"{host} has no HCA {device} on {self.fabric.name}", "'make lab-status' lists the hosts and their HCAs"
            ) from error


def extra_host(number: int) -> str:
    """Name of the extra host, counted from 1."""
    return f"host-{number:04d}"


def build(fabrics: Fabrics, name: str) -> Topology:
    """Topology of the fabric ``name``.

    :raises StepError: a switch would need more ports than it has
    """
    fabric = fabrics.fabric(name)
    number = fabrics.fabrics.index(fabric) + 1
    rails = fabrics.hcas_on(name)
    lids = iter(range(1, 0xC000))

    def node(kind: str, group: int, index: int, description: str) -> Node:
        return Node(kind, _GUID_BASE | number << 24 | group << 20 | index << 4, description, next(lids))

    def switch(group: int, index: int, label: str) -> Node:
        return node("switch", group, index, f"MF0;{name}-{label}-{index + 1}:MQM9700/U1")

    leaves = [switch(_LEAF, index, "leaf") for index in range(fabric.leaves)]
    spines = [switch(_SPINE, index, "spine") for index in range(fabric.spines)]
    managers = tuple(node("hca", _SERVER, index, f"{host} mlx5_0") for index, host in enumerate(SUBNET_MANAGERS))
    names = [*fabrics.workers, *(extra_host(extra + 1) for extra in range(fabric.extra_hosts))]
    hosts = {
        (host, hca.name): node("hca", _HOST, place << 4 | rail, f"{host} {hca.name}")
        for place, host in enumerate(names)
        for rail, hca in enumerate(rails)
    }

    used = {leaf.guid: 0 for leaf in leaves}
    links: list[Link] = []

    def plug(leaf: Node, peer: Node, peer_port: int) -> None:
        used[leaf.guid] += 1
        if used[leaf.guid] > SWITCH_PORTS:
            raise StepError(
                f"fabrics: leaf {leaf.description} would need more than {SWITCH_PORTS} ports",
                f"{REMEDY}: more leaves (a multiple of {len(rails)}), or fewer extra hosts than {fabric.extra_hosts}",
            )
        links.append(Link(leaf, used[leaf.guid], peer, peer_port))

    for place, leaf in enumerate(leaves):
        for spine in spines:
            plug(leaf, spine, place + 1)
    for manager, leaf in zip(managers, (leaves[0], leaves[-1])):
        plug(leaf, manager, 1)
    # units of as many leaves as there are rails; hosts go to them in turn
    units = max(1, len(leaves) // len(rails))
    for place, host in enumerate(names):
        for rail, hca in enumerate(rails):
            leaf = leaves[(place % units * len(rails) + rail) % len(leaves)]
            plug(leaf, hosts[host, hca.name], 1)
    return Topology(fabric, (*leaves, *spines), managers, hosts, tuple(links))


def netfile(topology: Topology) -> str:
    """The fabric in the format of ibnetdiscover's output, which ibsim reads; without LIDs, for those the subnet manager
    gives."""
    width = f"4x{topology.fabric.speed}"
    ends: dict[int, dict[int, tuple[Node, int]]] = {}
    for link in topology.links:
        ends.setdefault(link.switch.guid, {})[link.port] = (link.peer, link.peer_port)
        ends.setdefault(link.peer.guid, {})[link.peer_port] = (link.switch, link.port)

    def port(near: Node, number: int) -> str:
        far, far_port = ends[near.guid][number]
        own = f"({near.port_guid:x})" if near.kind == "hca" else ""
        other = f"({far.port_guid:x})" if far.kind == "hca" else ""
        comment = f'lid 0 lmc 0 "{far.description}" lid 0' if near.kind == "hca" else f'"{far.description}" lid 0'
        return f'[{number}]{own}\t"{far.id}"[{far_port}]{other}\t\t# {comment} {width}'

    blocks = []
    for switch in topology.switches:
        blocks.append(
            f"vendid={VENDOR:#x}\ndevid={SWITCH_DEVICE:#x}\nsysimgguid={switch.guid:#x}\nswitchguid={switch.guid:#x}({switch.guid:x})\n"
            f'Switch\t{SWITCH_ALL_PORTS} "{switch.id}"\t\t# "{switch.description}" enhanced port 0 lid 0 lmc 0\n'
        )
        blocks[-1] += "".join(port(switch, number) + "\n" for number in sorted(ends[switch.guid]))
    for hca in topology.hcas:
        blocks.append(
            f"vendid={VENDOR:#x}\ndevid={HCA_DEVICE:#x}\nsysimgguid={hca.guid:#x}\ncaguid={hca.guid:#x}\n"
            f'Ca\t1 "{hca.id}"\t\t# "{hca.description}"\n{port(hca, 1)}\n'
        )
    return "\n".join(blocks)


def lid_file(topology: Topology) -> str:
    """opensm's guid2lid: ``<port GUID> <first LID> <last LID>``, one line a port, each followed by an empty one."""
    return "".join(
        f"{node.port_guid:#018x} {node.lid:#06x} {node.lid:#06x}\n\n" for node in (*topology.switches, *topology.hcas)
    )
