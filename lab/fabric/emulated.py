# SPDX-License-Identifier: GPL-3.0-or-later

"""What the emulated HCAs of a worker (lab/hca) are told: their places and GUIDs when the kernel makes them, then what
ibsim says of their ports."""

from __future__ import annotations

import typing

from .model import Fabrics, SimulatedHca
from .port import PortState
from .topology import Node, Topology

FIRMWARE = "28.41.1000"
HCA_TYPE = "MT4129"
#: that each HCA has by its firmware as delivered: as many as the lab's intent asks for, since the operator sets another
#: number there and reboots the node
TOTAL_VFS = 2
#: that the firmware of an HCA can be set to
MOST_VFS = 16
# what can be wrong with an HCA, beside its port and its firmware
MISSING, WITHOUT_ROOM = "missing", "without-room"
#: numbers of the kernel's enum ib_port_speed and ib_port_width
_SPEEDS = {"SDR": 1, "DDR": 2, "QDR": 4, "FDR": 16, "EDR": 32, "HDR": 64, "NDR": 128}
_WIDTHS = {"1X": 1, "4X": 2, "8X": 4, "12X": 8, "2X": 16}


def parameters(fabrics: Fabrics, topologies: typing.Mapping[str, Topology], worker: str, number: int) -> str:
    """Parameters of the module, see docs/hca.md.

    :param number: of the worker, for what the lab does not say
    """
    nodes = [topologies[hca.fabric].hca(worker, hca.name) for hca in fabrics.hcas]
    names = [fabric.name for fabric in fabrics.fabrics]
    lists = {
        "hcas": [_bus(hca) for hca in fabrics.hcas],
        "nodes": [str(hca.numa_node) for hca in fabrics.hcas],
        "fabrics": [str(names.index(hca.fabric)) for hca in fabrics.hcas],
        "guids": [f"{node.guid:x}" for node in nodes],
        "port_guids": [f"{node.port_guid:x}" for node in nodes],
    }
    return " ".join(
        [*(f"{name}={','.join(values)}" for name, values in lists.items()), f"host={number}", f"total_vfs={MOST_VFS}"]
    )


def table(fabrics: Fabrics, worker: str) -> str:
    """A line for each HCA: bus, RDMA device, netdev and node description."""
    return "".join(f"{_bus(hca)} {hca.name} {hca.netdev} {worker} {hca.name}\n" for hca in fabrics.hcas)


def ports(
    fabrics: Fabrics,
    topologies: typing.Mapping[str, Topology],
    worker: str,
    states: typing.Mapping[Node, PortState],
    flaws: typing.Mapping[str, str],
) -> str:
    """A line for each HCA: its bus, whether it is there, and what the module is told of it.

    :param states: of the worker's HCAs
    :param flaws: MISSING or WITHOUT_ROOM, by the name of the HCA
    """
    lines = []
    for hca in fabrics.hcas:
        state, flaw = states[topologies[hca.fabric].hca(worker, hca.name)], flaws.get(hca.name)
        there = MISSING if flaw == MISSING else "there"
        lines.append(f"{_bus(hca)} {there} room={int(flaw != WITHOUT_ROOM)} {_words(state)}\n")
    return "".join(lines)


def _words(state: PortState) -> str:
    values = {
        "state": state.state,
        "phys_state": state.phys_state,
        "lid": state.lid,
        "sm_lid": state.sm_lid,
        "sm_sl": state.sm_sl,
        "lmc": state.lmc,
        "capabilities": state.capabilities,
        "speed": _SPEEDS[state.speed],
        "width": _WIDTHS[state.width],
        **state.counters,
    }
    return " ".join(f"{name}={value}" for name, value in values.items())


def _bus(hca: SimulatedHca) -> str:
    return hca.pci.split(":")[1]
