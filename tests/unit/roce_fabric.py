# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes of an Ethernet fabric, and what they hear of its leaves: frames of LLDP, made of a captured one with other
names in it."""

from __future__ import annotations

import pathlib
import struct
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PcieLink,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import (
    NetdevNeighbours,
    NodeNeighbours,
    ObservedNeighbours,
    SwitchPort,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.lldp import parse_switch_port

FRAME = bytes.fromhex((pathlib.Path(__file__).parent / "fixtures" / "lldp" / "summit300-48.hex").read_text())
_CHASSIS, _PORT, _SYSTEM = 1, 2, 5


def heard(chassis: str, port: str, system: str) -> SwitchPort:
    """What the parser makes of the captured frame, had a switch of this chassis and name sent it from this port."""
    values = {
        _CHASSIS: b"\x04" + bytes.fromhex(chassis.replace(":", "")),
        _PORT: b"\x05" + port.encode(),
        _SYSTEM: system.encode(),
    }
    frame, position = FRAME[:14], 14
    while position + 2 <= len(FRAME):
        (head,) = struct.unpack_from("!H", FRAME, position)
        kind, length = head >> 9, head & 0x1FF
        value = values.get(kind, FRAME[position + 2 : position + 2 + length])
        frame += struct.pack("!H", kind << 9 | len(value)) + value
        position += 2 + length
    return parse_switch_port(frame)


def leaf_port(leaf: int, host: int) -> SwitchPort:
    """Of the leaf by its number, for the host by its number on it."""
    return heard(f"9c:05:91:00:00:{leaf:02x}", f"Ethernet1/{host + 1}", f"leaf-{leaf}")


def node(
    address: str = "02:00:00:00:00:01",
    gbps: float = 400.0,
    driver: str = "mlx5_core",
    bond: typing.Optional[str] = None,
) -> ObservedHcas:
    """With one NIC with RDMA, ``mlx5_0`` of ``ens1``."""
    netdev = Netdev("ens1", address, 4200, "up", bond=bond, speed_gbps=gbps, supported_gbps=gbps)
    function = PciFunction("0000:3c:00.0", "15b3", "1021", "0200", driver, 0, PcieLink(32.0, 16, 32.0, 16))
    return ObservedHcas(
        NodeHcas(
            (Hca("mlx5_0", "mlx5_0", (netdev,), function, ports=(Port(1, "ACTIVE", "LinkUp", "Ethernet", gbps),)),)
        )
    )


def neighbours(*ports: SwitchPort, errors: tuple[str, ...] = ()) -> ObservedNeighbours:
    """That a node saw through ``ens1``."""
    return ObservedNeighbours(NodeNeighbours((NetdevNeighbours("ens1", "02:00:00:00:00:01", ports),), (), errors))


class Fabric(typing.NamedTuple):
    """:ivar hcas: of each node, as the next one"""

    hcas: dict[str, ObservedHcas]
    neighbours: dict[str, ObservedNeighbours]


def fabric(leaves: int, hosts: int) -> Fabric:
    """As many hosts on each leaf, node-1 the first one of leaf-0."""
    places = {f"node-{leaf * hosts + host + 1}": (leaf, host) for leaf in range(leaves) for host in range(hosts)}
    return Fabric(
        {name: node() for name in places}, {name: neighbours(leaf_port(*place)) for name, place in places.items()}
    )
