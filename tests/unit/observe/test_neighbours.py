# SPDX-License-Identifier: GPL-3.0-or-later

"""Listening on Ethernet NICs: real packet sockets and the kernel's own tables, on a pair of interfaces in a network namespace."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import Hca, Netdev, NodeHcas, Port
from ansible_collections.linerate.rdma.plugins.module_utils._observe import sysfs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.neighbours import read_neighbours
from ansible_collections.linerate.rdma.plugins.module_utils._observe.uplinks import read_uplinks

FRAME = pathlib.Path(__file__).parents[1] / "fixtures" / "lldp" / "summit300-48.hex"
OWN, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
#: a switch speaks through the other end until it is heard; the node's own LLDP, and a frame that is none, count for nothing
SCRIPT = """
import json, pathlib, socket, sys, threading
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.tests.unit.observe.test_neighbours import node
from ansible_collections.linerate.rdma.plugins.module_utils._observe.neighbours import read_neighbours

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
    print(json.dumps(to_data(read_neighbours(["/sys"], node("nic", "absent"), 20.0))))
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
    return NodeHcas(tuple(Hca(f"mlx5_{name}", f"mlx5_{name}", (Netdev(name, OWN),), ports=(Port(1, state, "LinkUp", link_layer),)) for name in names))


def test_switches_neighbours_and_uplinks_are_seen(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ask.py").write_text(SCRIPT)
    # sysfs shows the network namespace in which it was mounted
    steps = ["mount -t sysfs sysfs /sys", *LINKS, f"exec {sys.executable} {tmp_path}/ask.py {FRAME}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-ec", "\n".join(steps)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    seen: typing.Dict[str, typing.Any] = json.loads(done.stdout)
    port = {"chassis": "00:01:30:f9:ad:a0", "port": "1/1", "system": "Summit300-48", "vlan": 488}
    assert seen["netdevs"][0] == {"name": "nic", "hardware_address": OWN, "switch_ports": [port], "hardware_addresses": [OTHER]}
    assert seen["netdevs"][1] == {"name": "absent", "hardware_address": OWN, "switch_ports": [], "hardware_addresses": []}
    assert seen["uplinks"] == ["nic", "uplink"]
    assert [error.partition(":")[0] for error in seen["errors"]] == ["LLDP on absent", "LLDP on nic"] and "no interface with this name" in seen["errors"][0]


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
    (tmp_path / "route").write_text("Iface\tDestination\tx\nbr-ex\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n")
    seen = read_neighbours([str(tmp_path)], node("nic"), 0.0, str(tmp_path))
    assert seen.uplinks == ("br-ex", "nic", "ovs-system")


def test_default_routes_that_can_not_be_read_are_not_none(tmp_path: pathlib.Path) -> None:
    for path in ("eth0/device", "ens1/device"):
        (tmp_path / "class/net" / path).mkdir(parents=True)
    readers = [sysfs.Reader(str(tmp_path))]
    nothing = "0" * 32
    assert read_uplinks(sysfs.Reader(str(tmp_path)), readers) is None
    (tmp_path / "route").write_text("Iface\tDestination\tx\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n")
    assert read_uplinks(sysfs.Reader(str(tmp_path)), readers) == ("eth0",), "a kernel without IPv6"
    (tmp_path / "ipv6_route").write_text(f"{nothing} 00 {nothing} 00 {nothing} 00000400 00000001 00000000 00450003     ens1\n")
    assert read_uplinks(sysfs.Reader(str(tmp_path)), readers) == ("ens1", "eth0")
    (tmp_path / "ipv6_route").write_text("torn")
    torn = sysfs.Reader(str(tmp_path))
    assert read_uplinks(torn, readers) is None and "ipv6_route" in torn.errors[0]
