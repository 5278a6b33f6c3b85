# SPDX-License-Identifier: GPL-3.0-or-later

"""Listening on Ethernet NICs: real packet sockets and the kernel's own tables, on a pair of interfaces in a network
namespace."""

from __future__ import annotations

import json
import os
import pathlib
import socket
import subprocess
import sys
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import (
    MOST_ADDRESSES,
    MOST_PORTS,
    NodeNeighbours,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import InterfaceNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband.uplinks import (
    read_addresses,
    read_networks,
    read_uplinks,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import neighbours as observed
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import sysfs_reader
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.neighbours import read_neighbours

FRAME = pathlib.Path(__file__).parents[1] / "fixtures" / "lldp" / "summit300-48.hex"
OWN, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
#: a switch speaks through the other end while the node listens; the node's own LLDP, and a frame that is none, count
#: for nothing
SCRIPT = """
import json, pathlib, socket, sys, threading
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.tests.unit.observe.test_neighbours import node
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.neighbours import read_neighbours

frame, over = bytes.fromhex(pathlib.Path(sys.argv[1]).read_text()), threading.Event()

def listens():
    # sk RefCnt Type Proto Iface ...: a packet socket for LLDP that is bound
    sockets = [line.split() for line in pathlib.Path("/proc/self/net/packet").read_text().splitlines()[1:]]
    return any(each[3].lower() == "88cc" and each[4] != "0" for each in sockets)

def speak():
    while not listens() and not over.wait(0.01):
        pass
    own, other = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for _end in range(2))
    own.bind(("nic", 0))
    other.bind(("switch", 0))
    own.send(frame.replace(b"Summit", b"Myself"))
    other.send(frame[:60])
    while not over.wait(0.05):
        other.send(frame)

thread = threading.Thread(target=speak)
thread.start()
try:
    print(json.dumps(to_data(read_neighbours(["/sys"], node("nic", "absent"), 4.0))))
finally:
    over.set()
    thread.join()
"""
LINKS = [
    f"ip link add nic address {OWN} type veth peer name switch address {OTHER}",
    "ip address add 192.0.2.1/24 dev nic",
    "ip link set nic up",
    "ip link set switch up",
    f"ip neigh add 192.0.2.2 lladdr {OTHER} dev nic nud stale",
    "ip link add uplink type bridge",
    "ip address add 198.51.100.1/24 dev uplink",
    "ip link set nic master uplink",
    "ip link set uplink up",
    "ip route add default via 198.51.100.2 dev uplink",
]


def node(*names: str, link_layer: str = "Ethernet", state: str = "ACTIVE") -> NodeHcas:
    return NodeHcas(
        tuple(
            Hca(f"mlx5_{name}", f"mlx5_{name}", (Netdev(name, OWN),), ports=(Port(1, state, "LinkUp", link_layer),))
            for name in names
        )
    )


def test_switches_neighbours_and_uplinks_are_seen(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ask.py").write_text(SCRIPT)
    # sysfs shows the network namespace in which it was mounted
    steps = ["mount -t sysfs sysfs /sys", *LINKS, f"exec {sys.executable} {tmp_path}/ask.py {FRAME}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-ec", "\n".join(steps)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, typing.Any] = json.loads(done.stdout)
    port = {"chassis": "00:01:30:f9:ad:a0", "port": "1/1", "system": "Summit300-48", "vlan": 488}
    assert seen["netdevs"][0] == {
        "name": "nic",
        "hardware_address": OWN,
        "switch_ports": [port],
        "hardware_addresses": [OTHER],
    }
    assert seen["netdevs"][1] == {
        "name": "absent",
        "hardware_address": OWN,
        "switch_ports": [],
        "hardware_addresses": [],
    }
    assert seen["uplinks"] == ["nic", "uplink"]
    assert [error.partition(":")[0] for error in seen["errors"]] == [
        "LLDP on absent",
        "LLDP on nic",
    ] and "no interface with this name" in seen["errors"][0]


class Wire:
    """The socket of an interface that receives some frames, and then no more."""

    def __init__(self, *frames: bytes) -> None:
        self.frames = list(frames)
        self._near, self._far = socket.socketpair()
        self._far.send(b"readable while frames are left")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_error: typing.Any) -> None:
        self._near.close()
        self._far.close()

    def fileno(self) -> int:
        return self._near.fileno()

    def recvfrom(self, size: int) -> tuple[bytes, tuple[typing.Any, ...]]:
        frame = self.frames.pop(0)
        if not self.frames:
            self._near.recv(size)
        return frame, ("nic", 0x88CC, 0)


def listen(
    monkeypatch: pytest.MonkeyPatch, folder: pathlib.Path, wires: dict[str, Wire], addresses: dict[str, tuple[str, ...]]
) -> NodeNeighbours:
    """Listen on wires. The time is over as soon as each frame was read."""
    clock = types.SimpleNamespace(monotonic=lambda: 0.0 if any(wire.frames for wire in wires.values()) else 1e9)
    monkeypatch.setattr(observed, "time", clock)
    monkeypatch.setattr(observed, "_open_lldp_socket", wires.__getitem__)
    monkeypatch.setattr(observed, "_read_neighbours", lambda: addresses)
    return read_neighbours([str(folder)], node(*wires), 60.0, str(folder))


def make_frame(number: int) -> bytes:
    """Return the LLDP frame of a port of a switch."""
    return bytes.fromhex(FRAME.read_text()).replace(b"\x051/1", b"\x05%03d" % number)


def test_neighbours_without_end_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Who sends frames to a NIC chooses how many ports they are of, and how each of them is wrong."""
    junk = [bytes(12) + b"\x88\xcc" + bytes([number]) for number in range(199)]
    wires = {"many": Wire(*map(make_frame, range(200))), "wrong": Wire(*junk, make_frame(0))}
    addresses = tuple(
        f"02:00:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
        for number in range(MOST_ADDRESSES + 1)
    )
    seen = listen(monkeypatch, tmp_path, wires, {"many": addresses, "wrong": (OTHER,)})
    assert [port.port for port in seen.netdevs[0].switch_ports] == [f"{number:03d}" for number in range(MOST_PORTS)]
    assert [len(item.switch_ports) for item in seen.netdevs] == [MOST_PORTS, 1]
    assert [len(item.hardware_addresses) for item in seen.netdevs] == [MOST_ADDRESSES, 1]
    of_many, of_wrong, rest = (
        [error for error in seen.errors if begin in error]
        for begin in ("LLDP on many: ", "LLDP on wrong: ", "neighbors: ")
    )
    assert of_many == [
        f"LLDP on many: more than {MOST_PORTS} switch ports send LLDP there; the first {MOST_PORTS} are used"
    ]
    assert len(of_wrong) == 8 and len(set(of_wrong)) == 8
    assert rest == [
        f"neighbors: many has {MOST_ADDRESSES + 1} hardware addresses, of which the first {MOST_ADDRESSES} are used"
    ]


def test_first_frame_of_a_port_does_not_silence_a_later_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """Any device on the link of a NIC can send the first frame. The frame of the switch comes within 30 s."""
    wires = {"nic": Wire(make_frame(7), make_frame(7), make_frame(1)), "other": Wire(make_frame(2))}
    seen = listen(monkeypatch, tmp_path, wires, {})
    assert [[port.port for port in item.switch_ports] for item in seen.netdevs] == [["007", "001"], ["002"]]
    assert not seen.errors


def test_flood_of_frames_leaves_the_switch_of_a_port_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """A device that sends more frames than are read must not be trusted because the others were not read."""
    large = make_frame(1) + bytes(65_000)
    wires = {
        "many": Wire(b"junk", *[make_frame(1)] * observed.MOST_FRAMES),
        "large": Wire(*[large] * (observed.MOST_BYTES // len(large) + 1)),
        "fine": Wire(*[make_frame(1)] * 100),
    }
    seen = listen(monkeypatch, tmp_path, wires, {})
    assert {item.name: len(item.switch_ports) for item in seen.netdevs} == {"many": 0, "large": 0, "fine": 1}
    assert sorted(seen.errors) == [
        f"LLDP on {name}: more than 4096 frames or 6 MiB arrived, so no frame is trusted" for name in ("large", "many")
    ]


def test_nobody_is_listened_for_without_an_ethernet_link() -> None:
    for nodes in (node("nic", state="DOWN"), node("nic", link_layer="InfiniBand"), NodeHcas(())):
        assert read_neighbours(["/sys"], nodes).netdevs == ()


def test_ethernet_beside_infiniband_is_listened_for_where_it_is_asked_for() -> None:
    both = NodeHcas((*node("ib0", link_layer="InfiniBand").hcas, *node("nic").hcas))
    assert read_neighbours(["/sys"], both, 0.0).netdevs == ()
    assert [netdev.name for netdev in read_neighbours(["/sys"], both, 0.0, beside_infiniband=True).netdevs] == ["nic"]


def test_ports_of_open_vswitch_are_below_its_bridges(tmp_path: pathlib.Path) -> None:
    """OpenShift's br-ex shows no ports of its own."""
    for path in ("br-ex/statistics", "ovs-system/lower_nic", "nic/device", "other/device"):
        (tmp_path / "class/net" / path).mkdir(parents=True)
    (tmp_path / "route").write_text(
        "Iface\tDestination\tx\nbr-ex\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    )
    seen = read_neighbours([str(tmp_path)], node("nic"), 0.0, str(tmp_path))
    assert seen.uplinks == ("br-ex", "nic", "ovs-system")


def test_default_routes_that_can_not_be_read_are_not_none(tmp_path: pathlib.Path) -> None:
    for path in ("eth0/device", "ens1/device"):
        (tmp_path / "class/net" / path).mkdir(parents=True)
    readers = [sysfs_reader.SysfsReader(str(tmp_path))]
    nothing = "0" * 32
    assert read_uplinks(sysfs_reader.SysfsReader(str(tmp_path)), readers) is None
    (tmp_path / "route").write_text(
        "Iface\tDestination\tx\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    )
    assert read_uplinks(sysfs_reader.SysfsReader(str(tmp_path)), readers) == ("eth0",), "a kernel without IPv6"
    (tmp_path / "ipv6_route").write_text(
        f"{nothing} 00 {nothing} 00 {nothing} 00000400 00000001 00000000 00450003     ens1\n"
    )
    assert read_uplinks(sysfs_reader.SysfsReader(str(tmp_path)), readers) == ("ens1", "eth0")
    (tmp_path / "ipv6_route").write_text("torn")
    torn = sysfs_reader.SysfsReader(str(tmp_path))
    assert read_uplinks(torn, readers) is None and "ipv6_route" in torn.errors[0]


def test_networks_of_nics_are_seen_below_bonds_and_without_those_of_pods(tmp_path: pathlib.Path) -> None:
    for path in ("eth0/device", "ens1/device", "bond0/lower_ens1", "cali1/statistics"):
        (tmp_path / "class/net" / path).mkdir(parents=True)
    readers = [sysfs_reader.SysfsReader(str(tmp_path))]
    assert read_networks(sysfs_reader.SysfsReader(str(tmp_path)), readers) is None
    routes = (
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000",
        "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF",
        "bond0\t0000090A\t00000000\t0001\t0\t0\t0\t0000FFFF",
        "eth0\t0000A8C0\t010200C0\t0003\t0\t0\t0\t0000FFFF",
        "cali1\t0507F40A\t00000000\t0005\t0\t0\t0\tFFFFFFFF",
    )
    rows = "".join(f"{row}\t0\t0\t0\n" for row in routes)
    (tmp_path / "route").write_text(f"Iface\tDestination\tx\n{rows}")
    zero, network, local = "0" * 32, f"20010db8{'0' * 24}", f"fe80{'0' * 28}"
    (tmp_path / "ipv6_route").write_text(
        f"{network} 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     ens1\n"
        f"{local} 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     ens1\n"
        f"{zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n"
    )
    seen = read_networks(sysfs_reader.SysfsReader(str(tmp_path)), readers)
    assert [(item.interface, item.network) for item in seen or ()] == [
        ("eth0", "192.0.2.0/24"),
        ("ens1", "10.9.0.0/16"),
        ("ens1", "2001:db8::/64"),
    ]
    (tmp_path / "ipv6_route").write_text("torn")
    assert read_networks(sysfs_reader.SysfsReader(str(tmp_path)), readers) is None


TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.0
           /24 link UNICAST
        |-- 192.0.2.2
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
  +-- 127.0.0.0/8 2 0 2
     |-- 127.0.0.0
        /8 host LOCAL
     |-- 127.0.0.1
        /32 host LOCAL
  |-- 10.96.0.10
     /32 host LOCAL
  |-- 10.9.0.7
     /32 universe UNICAST
"""


def test_addresses_of_a_node_are_those_in_the_networks_of_its_nics(tmp_path: pathlib.Path) -> None:
    """A service address of kube-proxy in mode ipvs is an address of the host as well."""
    networks = tuple(InterfaceNetwork("eth0", name) for name in ("192.0.2.0/24", "2001:db8::/64", "10.9.0.0/16"))
    assert read_addresses(sysfs_reader.SysfsReader(str(tmp_path)), networks) is None
    (tmp_path / "fib_trie").write_text(TRIE)
    assert read_addresses(sysfs_reader.SysfsReader(str(tmp_path)), networks) == ("192.0.2.2",), "a kernel without IPv6"
    (tmp_path / "if_inet6").write_text(
        f"{'0' * 31}1 01 80 10 80       lo\nfe80{'0' * 27}1 04 40 20 80     eth0\n"
        f"20010db8{'0' * 23}2 04 40 00 82     eth0\nfd00{'0' * 27}2 05 40 00 82     eth1\n"
    )
    reader = sysfs_reader.SysfsReader(str(tmp_path))
    assert read_addresses(reader, networks) == ("192.0.2.2", "2001:db8::2")
    assert read_addresses(reader, None) is None
    for name, text in (("if_inet6", "torn"), ("fib_trie", "/32 host LOCAL")):
        (tmp_path / name).write_text(text)
        torn = sysfs_reader.SysfsReader(str(tmp_path))
        assert read_addresses(torn, networks) is None and name in " ".join(torn.errors)
