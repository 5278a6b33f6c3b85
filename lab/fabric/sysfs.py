# SPDX-License-Identifier: GPL-3.0-or-later

"""sysfs of a worker's simulated HCAs: the files and links that mlx5 makes for a ConnectX-7, as the kernel lays them out.

The tree is made from the description; what moves (state, LIDs, counters) is what the simulated port says of itself. The
workers see it read-only, at a place of its own: a user's ``rdma_sysfs`` names it beside /sys.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing

from .model import Fabrics, SimulatedHca
from .port import COUNTERS, PortState
from .topology import Node, Topology

FIRMWARE = "28.41.1000"
HCA_TYPE = "MT4129"
BOARD = "MT_0000000838"
# of each NUMA node, as on a host with two sockets of 56 cores
CPUS_PER_NUMA_NODE = 56
PKEYS = 128
GIDS = 8

_STATES = {0: "NOP", 1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE", 5: "ACTIVE_DEFER"}
_PHYS_STATES = {
    1: "Sleep",
    2: "Polling",
    3: "Disabled",
    4: "PortConfigurationTraining",
    5: "LinkUp",
    6: "LinkErrorRecovery",
    7: "Phy Test",
}
# those that PortCounters has no field for
_OTHER_COUNTERS = ("multicast_rcv_packets", "multicast_xmit_packets", "unicast_rcv_packets", "unicast_xmit_packets")
_HW_COUNTERS = (
    "duplicate_request implied_nak_seq_err local_ack_timeout_err out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error "
    "req_remote_access_errors req_remote_invalid_request resp_cqe_error resp_cqe_flush_error resp_local_length_error resp_remote_access_errors "
    "rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rx_atomic_requests "
    "rx_dct_connect rx_icrc_encapsulated rx_read_requests rx_write_requests"
).split()
# what can be wrong with a simulated HCA, beside its port
MISSING, WITHOUT_SRIOV = "missing", "without-sriov"
_BROADCAST = "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"


@dataclasses.dataclass(frozen=True)
class Tree:
    """Contents of files and targets of links, by path below the root of the tree."""

    files: typing.Mapping[str, str]
    links: typing.Mapping[str, str]


def tree(
    fabrics: Fabrics,
    topologies: typing.Mapping[str, Topology],
    worker: str,
    states: typing.Mapping[Node, PortState],
    flaws: typing.Optional[typing.Mapping[str, str]] = None,
) -> Tree:
    """The whole tree of one worker. Pure.

    :param states: of each of its HCAs
    :param flaws: MISSING or WITHOUT_SRIOV, by the name of the HCA
    """
    flaws = flaws or {}
    files: typing.Dict[str, str] = {"class/infiniband_mad/abi_version": "5\n"}
    links: typing.Dict[str, str] = {}
    for number, hca in enumerate(fabrics.hcas):
        node = topologies[hca.fabric].hca(worker, hca.name)
        if flaws.get(hca.name) != MISSING:
            _function(files, links, hca, node, number, states[node])
        if flaws.get(hca.name) == WITHOUT_SRIOV:
            files = {name: content for name, content in files.items() if f"/{hca.pci}/sriov_" not in name}
    return Tree(files, links)


def _function(files: typing.Dict[str, str], links: typing.Dict[str, str], hca: SimulatedHca, node: Node, number: int, state: PortState) -> None:
    bus = hca.pci.split(":")[1]
    # its root port is on the bus before
    bridge = f"{int(bus, 16) - 1:02x}"
    device = f"devices/pci0000:{bridge}/0000:{bridge}:01.0/{hca.pci}"
    infiniband, net = f"{device}/infiniband/{hca.name}", f"{device}/net/{hca.netdev}"
    classes = {
        f"class/infiniband/{hca.name}": infiniband,
        f"class/net/{hca.netdev}": net,
        f"class/infiniband_mad/umad{number}": f"{device}/infiniband_mad/umad{number}",
        f"class/infiniband_mad/issm{number}": f"{device}/infiniband_mad/issm{number}",
        f"class/infiniband_verbs/uverbs{number}": f"{device}/infiniband_verbs/uverbs{number}",
    }
    for link, target in classes.items():
        links[link] = _relative(link, target)
        # as for every class device: its function, and its class
        links[f"{target}/device"] = _relative(f"{target}/device", device)
        links[f"{target}/subsystem"] = _relative(f"{target}/subsystem", str(pathlib.PurePosixPath(link).parent))
    for link, target in {
        f"bus/pci/devices/{hca.pci}": device,
        f"bus/pci/drivers/mlx5_core/{hca.pci}": device,
        f"{device}/driver": "bus/pci/drivers/mlx5_core",
        f"{device}/subsystem": "bus/pci",
    }.items():
        links[link] = _relative(link, target)

    for kind in ("umad", "issm"):
        _put(files, f"{device}/infiniband_mad/{kind}{number}", {"ibdev": hca.name, "port": "1"})
    _put(files, f"{device}/infiniband_verbs/uverbs{number}", {"ibdev": hca.name, "abi_version": "1"})
    _put(files, device, _pci(hca))
    _put(files, infiniband, _node(hca, node))
    _put(files, f"{infiniband}/ports/1", _port(node, state))
    _put(files, net, _netdev(hca, node, state, number))


def _put(files: typing.Dict[str, str], folder: str, values: typing.Mapping[str, str]) -> None:
    files.update({f"{folder}/{name}": f"{value}\n" for name, value in values.items()})


def _relative(link: str, target: str) -> str:
    """As the kernel writes it: a folder above the link is named too, ``../../../0000:3c:00.0``."""
    parent, name = os.path.split(target)
    return os.path.join(os.path.relpath(parent, os.path.dirname(link)), name)


def _pci(hca: SimulatedHca) -> typing.Dict[str, str]:
    first = hca.numa_node * CPUS_PER_NUMA_NODE
    return {
        "vendor": "0x15b3",
        "device": "0x1021",
        "subsystem_vendor": "0x15b3",
        "subsystem_device": "0x0041",
        "class": "0x020700",
        "revision": "0x00",
        "numa_node": str(hca.numa_node),
        "local_cpulist": f"{first}-{first + CPUS_PER_NUMA_NODE - 1}",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_width": "16",
        "sriov_totalvfs": "16",
        "sriov_numvfs": "0",
        "sriov_offset": "1",
        "sriov_stride": "1",
        "sriov_vf_device": "101e",
        "sriov_vf_total_msix": "0",
        "sriov_drivers_autoprobe": "1",
    }


def _node(hca: SimulatedHca, node: Node) -> typing.Dict[str, str]:
    return {
        "node_type": "1: CA",
        "node_guid": _guid(node.guid),
        "sys_image_guid": _guid(node.guid),
        "node_desc": node.description,
        "fw_ver": FIRMWARE,
        "hca_type": HCA_TYPE,
        "board_id": BOARD,
        "hw_rev": "0",
    }


def _port(node: Node, state: PortState) -> typing.Dict[str, str]:
    counters = {name: state.counters.get(name, 0) for name in COUNTERS}
    others = dict.fromkeys(_OTHER_COUNTERS, 0)
    others["unicast_rcv_packets"] = counters["port_rcv_packets"]
    others["unicast_xmit_packets"] = counters["port_xmit_packets"]
    return {
        "state": f"{state.state}: {_STATES.get(state.state, '<unknown>')}",
        "phys_state": f"{state.phys_state}: {_PHYS_STATES.get(state.phys_state, '<unknown>')}",
        "rate": state.rate,
        "lid": f"{state.lid:#x}",
        "sm_lid": f"{state.sm_lid:#x}",
        "sm_sl": str(state.sm_sl),
        "lid_mask_count": str(state.lmc),
        "cap_mask": f"{state.capabilities:#010x}",
        "link_layer": "InfiniBand",
        "gids/0": f"fe80:0000:0000:0000:{_guid(node.port_guid)}",
        **{f"gids/{index}": ":".join(["0000"] * 8) for index in range(1, GIDS)},
        "gid_attrs/types/0": "IB/RoCE v1",
        "pkeys/0": "0xffff",
        **{f"pkeys/{index}": "0x0000" for index in range(1, PKEYS)},
        **{f"counters/{name}": str(value) for name, value in {**counters, **others}.items()},
        **{f"hw_counters/{name}": "0" for name in _HW_COUNTERS},
        # in ms: how old a counter may be
        "hw_counters/lifespan": "10",
    }


def _netdev(hca: SimulatedHca, node: Node, state: PortState, number: int) -> typing.Dict[str, str]:
    # flags and queue pair, subnet prefix, port GUID
    address = bytes((0, 0, 0, 0x58 + number)) + bytes.fromhex("fe80000000000000") + node.port_guid.to_bytes(8, "big")
    return {
        "type": "32",
        "addr_len": "20",
        "address": ":".join(f"{byte:02x}" for byte in address),
        "broadcast": _BROADCAST,
        "mtu": "4092",
        "mode": "datagram",
        "pkey": "0xffff",
        "umcast": "0",
        "dev_id": "0x0",
        "dev_port": "0",
        "operstate": "up" if state.active else "down",
        "carrier": "1" if state.active else "0",
        "tx_queue_len": "256",
    }


def _guid(guid: int) -> str:
    text = f"{guid:016x}"
    return ":".join(text[place : place + 4] for place in range(0, 16, 4))


def write(root: pathlib.Path, wanted: Tree) -> int:
    """Bring the folder to the tree; each file and link is replaced in one step, and only where it differs.

    :returns: how many files and links were written or removed
    """
    written = _remove(root, {*wanted.files, *wanted.links})
    for name, content in wanted.files.items():
        path = root / name
        if _content(path) != content:
            written += 1
            with _replacing(path) as partial:
                partial.write_text(content)
    for name, target in wanted.links.items():
        path = root / name
        if not (path.is_symlink() and os.readlink(path) == target):
            written += 1
            with _replacing(path) as partial:
                partial.symlink_to(target)
    return written


def _remove(root: pathlib.Path, wanted: typing.AbstractSet[str]) -> int:
    """Files and links that are not wanted, and the folders that are empty without them."""
    removed = 0
    # what is in a folder comes before it
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif str(path.relative_to(root)) not in wanted:
            path.unlink()
            removed += 1
    return removed


def _content(path: pathlib.Path) -> typing.Optional[str]:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


class _replacing:
    """A name beside the path; what is there at the end takes the path's place."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.partial = path.with_name(f".{path.name}.new")

    def __enter__(self) -> pathlib.Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.partial.unlink(missing_ok=True)
        return self.partial

    def __exit__(self, failed: typing.Optional[typing.Type[BaseException]], *_: object) -> None:
        if failed is None:
            self.partial.replace(self.path)
