# SPDX-License-Identifier: GPL-3.0-or-later

"""node_info's reader on trees in the kernel's form: what is there, what is not, and what refuses to be read."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import struct
import tempfile
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    UPPERS,
    NodeHcas,
    PcieLink,
    Sriov,
    VfAdministration,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import platform, sysfs, sysfs_reader
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import (
    SIX_HCAS,
    Tree,
    add_igb,
    add_infiniband_vfs,
    add_planes,
    add_six_hcas,
    add_virtio,
    guid,
    plain_guid,
    space,
)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> Tree:
    return Tree(tmp_path / "sys")


def read(tree: Tree) -> NodeHcas:
    node = sysfs.read_node([str(tree.root)])
    # what travels to the controller must come back as it was
    assert load(NodeHcas, to_data(node)) == node
    return node


def test_a_device_for_management_is_no_hca(tree: Tree) -> None:
    add_planes(tree, 0, "0000:0b:00.0")
    add_planes(tree, 1, "0000:0c:00.0")
    node = read(tree)
    assert node.errors == ()
    assert [(hca.rdma_device, len(hca.ports)) for hca in node.hcas] == [("mlx5_0", 1), ("mlx5_1", 1)]


def test_two_devices_of_a_function_are_hcas_unless_verbs_tell_them_apart(tree: Tree) -> None:
    add_planes(tree, 0, "0000:0b:00.0", verbs=False)
    assert [hca.rdma_device for hca in read(tree).hcas] == ["mlx5_0", "smi1"]
    tree.verbs("devices/pci0000:0b/0000:0b:00.0", 0, "mlx5_0")
    tree.verbs("devices/pci0000:0b/0000:0b:00.0", 1, "smi1")
    assert [hca.rdma_device for hca in read(tree).hcas] == ["mlx5_0", "smi1"]


def test_the_node_of_row_s1_6(tree: Tree) -> None:
    add_six_hcas(tree)
    node = read(tree)
    assert node.errors == ()
    assert [(hca.name, hca.netdevs[0].name, hca.pci and hca.pci.address) for hca in node.hcas] == [
        item[:3] for item in SIX_HCAS
    ]
    first = node.hcas[0]
    assert first.pci is not None
    assert (first.pci.vendor, first.pci.device, first.pci.device_class, first.pci.driver, first.pci.numa_node) == (
        "15b3",
        "1021",
        "0207",
        "mlx5_core",
        0,
    )
    assert first.pci is not None
    assert first.pci.link == PcieLink(32.0, 16, 32.0, 16)
    assert (first.node_guid, first.node_description) == (plain_guid(1, 0), "worker-1 mlx5_0")
    assert (first.firmware, first.board, first.hca_type) == ("28.41.1000", "MT_0000000838", "MT4129")
    port = first.ports[0]
    assert (port.number, port.state, port.physical_state, port.link_layer) == (1, "ACTIVE", "LinkUp", "InfiniBand")
    assert (port.rate_gbps, port.width, port.speed, port.lid, port.sm_lid) == (400.0, 4, "NDR", 16, 1)
    assert port.guid == plain_guid(1, 0, 1) == first.netdevs[0].port_guid
    assert port.pkeys == ("0xffff",)
    assert first.netdevs[0].mtu == port.mtu == 4092
    assert (first.netdevs[0].queue_pair, first.netdevs[0].subnet_prefix, first.netdevs[0].port) == (
        0x1049,
        "0xfe80000000000000",
        1,
    )
    assert first.sriov == Sriov(16, 0) and not first.is_virtual and first.unread == ()


def test_a_plain_network_card_is_shown_when_its_interface_is_named(tree: Tree) -> None:
    add_igb(tree, 0)
    add_virtio(tree)
    assert [hca.name for hca in read(tree).hcas] == ["eth1"]
    node = sysfs.read_node([str(tree.root)], ["eth2", "eth9"])
    assert [(hca.name, hca.rdma_device, hca.pci and hca.pci.address, hca.netdevs[0].name) for hca in node.hcas] == [
        ("eth2", None, "0000:00:02.0", "eth2"),
        ("eth1", None, "0000:01:00.0", "eth1"),
    ]
    assert node.errors == ()


def test_representors_do_not_stand_for_their_physical_function(tree: Tree) -> None:
    """A ConnectX in switchdev mode: its own interface is down, those that stand for its VFs are up."""
    folder = tree.function(
        "0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000", sriov_totalvfs="16", sriov_numvfs="4"
    )
    tree.netdev(folder, "ens1f0np0", "b8:3f:d2:00:00:01", state="down", phys_port_name="p0")
    for name in ("pf0vf0", "pf1vf31", "c1pf0vf3", "pf0sf88", "c1pf0sf2", "pf0hpf", "pf0", "c1pf0", "7"):
        tree.netdev(folder, f"rep-{name}", "b8:3f:d2:00:00:02", phys_port_name=name)
    # a port that was split, one of a DSA switch, and a driver that has none
    for name in ("p1s2", "wan"):
        tree.netdev(folder, f"own-{name}", "b8:3f:d2:00:00:03", phys_port_name=name)
    tree.netdev(folder, "own-nameless", "b8:3f:d2:00:00:04")
    (hca,) = read(tree).hcas
    assert {(netdev.name, netdev.state) for netdev in hca.netdevs} == {
        ("ens1f0np0", "down"),
        ("own-p1s2", "up"),
        ("own-wan", "up"),
        ("own-nameless", "up"),
    }


def test_a_file_that_a_driver_does_not_support_is_absent_and_not_unread(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """phys_port_name is there for each interface; that of a legacy driver answers EOPNOTSUPP."""
    add_igb(tree, 0)
    tree.write("class/net/eth1/phys_port_name", "x")
    opened = open

    def refuse(path: typing.Any, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
        if str(path).endswith("phys_port_name"):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return opened(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", refuse)
    node = read(tree)
    assert (
        [netdev.name for netdev in node.hcas[0].netdevs] == ["eth1"] and node.errors == () and node.hcas[0].unread == ()
    )


def test_device_names_are_in_natural_order(tree: Tree) -> None:
    for index, name in enumerate(("mlx5_10", "mlx5_9", "mlx5_1")):
        folder = tree.function(f"0000:0{index + 1}:00.0", vendor="0x15b3", device="0x1021")
        tree.rdma(folder, name, guid(1, index))
    assert [hca.name for hca in read(tree).hcas] == ["mlx5_1", "mlx5_9", "mlx5_10"]


def test_an_igb_with_virtual_functions_and_no_rdma_device(tree: Tree) -> None:
    add_igb(tree)
    node = read(tree)
    assert node.errors == ()
    assert [hca.name for hca in node.hcas] == ["eth1", "eth3", "eth4", "eth5"], "the plain network card is left out"
    physical, *virtual = node.hcas
    assert physical.pci is not None
    assert (physical.pci.device, physical.pci.driver, physical.pci.numa_node, physical.sriov) == (
        "10c9",
        "igb",
        None,
        Sriov(7, 3),
    )
    assert physical.pci is not None
    assert physical.pci.link == PcieLink(2.5, 1, 2.5, 1)
    assert [(hca.physical_function, hca.vf_index, hca.pci and hca.pci.device, hca.is_virtual) for hca in virtual] == [
        ("0000:01:00.0", index, "10ca", True) for index in range(3)
    ]
    assert virtual[0].pci is not None
    assert virtual[0].pci.link == PcieLink(), "a VF's link is Unknown with width 0, and that is no speed"
    assert virtual[0].netdevs[0].state == "down" and virtual[0].netdevs[0].port_guid is None


def test_a_function_without_driver(tree: Tree) -> None:
    tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", driver=None)
    (hca,) = read(tree).hcas
    assert hca.pci is not None
    assert (hca.name, hca.rdma_device, hca.pci.driver, hca.ports, hca.sriov) == ("0000:3c:00.0", None, None, (), None)


def test_an_hca_in_ethernet_mode(tree: Tree) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    tree.rdma(folder, "mlx5_0", guid(1, 0))
    tree.port("mlx5_0", link_layer="Ethernet", lid="0x0", sm_lid="0x0", gid="fe80:0000:0000:0000:5054:00ff:fe77:0001")
    tree.netdev(folder, "ens1np0", "b8:3f:d2:e0:00:00")
    (hca,) = read(tree).hcas
    assert (hca.ports[0].lid, hca.ports[0].sm_lid, hca.ports[0].guid) == (
        None,
        None,
        None,
    ), "a GID of Ethernet is no port GUID"


def test_a_bond_over_two_functions(tree: Tree) -> None:
    first = tree.function(
        "0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000", sriov_totalvfs="8", sriov_numvfs="0"
    )
    second = tree.function(
        "0000:3c:00.1", vendor="0x15b3", device="0x1021", pci_class="0x020000", sriov_totalvfs="8", sriov_numvfs="0"
    )
    other = tree.function(
        "0000:4d:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000", sriov_totalvfs="8", sriov_numvfs="0"
    )
    tree.rdma(first, "mlx5_bond_0", guid(1, 0))
    tree.port("mlx5_bond_0", link_layer="Ethernet")
    for name in ("bond0", "br0"):
        tree.netdev(None, name, "b8:3f:d2:e0:00:00")
    tree.write("devices/virtual/net/bond0/bonding/mode", "802.3ad 4")
    tree.write("class/net/bonding_masters", "bond0")
    tree.netdev(first, "ens1f0", "b8:3f:d2:e0:00:00", master="bond0")
    tree.netdev(second, "ens1f1", "b8:3f:d2:e0:00:00", master="bond0")
    tree.netdev(other, "ens2f0", "b8:3f:d2:e0:00:02", master="br0")
    node = read(tree)
    assert node.errors == (), "bonding_masters is a plain file among the interfaces"
    assert [(hca.name, [(netdev.name, netdev.bond) for netdev in hca.netdevs]) for hca in node.hcas] == [
        ("mlx5_bond_0", [("ens1f0", "bond0")]), ("ens1f1", [("ens1f1", "bond0")]), ("ens2f0", [("ens2f0", None)])
    ]  # fmt: skip
    carriers = [node.carrier(hca) for hca in node.hcas]
    assert [carrier and carrier.name for carrier in carriers] == [None, "mlx5_bond_0", None]
    assert [netdev.bridge for hca in node.hcas for netdev in hca.netdevs] == [None, None, "br0"]


@pytest.mark.parametrize(
    ("masters", "bridge"),
    [
        ({"ens1f0": "ovs-system"}, "ovs-system"),
        ({"ens1f0.100": "br0"}, "br0"),
        ({"ens1f0.100": "bond0"}, None),
        ({"ens1f0.100": ""}, None),
    ],
    ids=["Open vSwitch", "a VLAN in a bridge", "a VLAN in a bond", "a VLAN"],
)
def test_the_bridge_of_a_function_is_also_that_of_a_vlan_on_it(
    tree: Tree, masters: dict[str, str], bridge: typing.Optional[str]
) -> None:
    first = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    tree.write("devices/virtual/net/bond0/bonding/mode", "802.3ad 4")
    for name in ("bond0", "br0", "ovs-system"):
        tree.netdev(None, name, "b8:3f:d2:e0:00:00")
    tree.netdev(first, "ens1f0", "b8:3f:d2:e0:00:00", master=masters.get("ens1f0", ""))
    if "ens1f0.100" in masters:
        tree.netdev(None, "ens1f0.100", "b8:3f:d2:e0:00:00", master=masters["ens1f0.100"])
        tree.link(f"{first}/net/ens1f0/upper_ens1f0.100", "devices/virtual/net/ens1f0.100")
    (hca,) = read(tree).hcas
    assert [(netdev.bond, netdev.bridge) for netdev in hca.netdevs] == [(None, bridge)]


def test_the_interfaces_above_a_function_are_read_at_any_distance(tree: Tree) -> None:
    first = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    for name in ("bond0", "vlan100", "storage", "br0"):
        tree.netdev(None, name, "b8:3f:d2:e0:00:00")
    tree.netdev(first, "ens1f0", "b8:3f:d2:e0:00:00")
    for lower, upper in (
        (f"{first}/net/ens1f0", "bond0"),
        (f"{first}/net/ens1f0", "vlan100"),
        ("devices/virtual/net/bond0", "storage"),
        ("devices/virtual/net/storage", "br0"),
        # no kernel makes a circle, but another tree may have one
        ("devices/virtual/net/br0", "bond0"),
    ):
        tree.link(f"{lower}/upper_{upper}", f"devices/virtual/net/{upper}")
    (hca,) = read(tree).hcas
    assert [netdev.uppers for netdev in hca.netdevs] == [("bond0", "br0", "storage", "vlan100")]


def test_more_interfaces_above_a_function_than_a_fact_holds_are_an_error(tree: Tree) -> None:
    first = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    tree.netdev(first, "ens1f0", "b8:3f:d2:e0:00:00")
    names = [f"ens1f0.{number}" for number in range(1, UPPERS.most + 1)]
    for name in names:
        tree.link(f"{first}/net/ens1f0/upper_{name}", f"devices/virtual/net/{name}")
    found = read(tree)
    assert [netdev.uppers for netdev in found.hcas[0].netdevs] == [tuple(sorted(names))] and not found.errors
    tree.link(f"{first}/net/ens1f0/upper_storage", "devices/virtual/net/storage")
    found = read(tree)
    assert [len(netdev.uppers) for netdev in found.hcas[0].netdevs] == [UPPERS.most]
    (error,) = found.errors
    assert error.endswith(
        f"net/ens1f0: it has more than {UPPERS.most} interfaces above it: only {UPPERS.most} were read"
    )


def test_virtual_functions_beside_their_physical_one(tree: Tree) -> None:
    add_infiniband_vfs(tree)
    physical, *virtual = read(tree).hcas
    assert (physical.is_virtual, physical.administration, physical.sriov) == (False, None, Sriov(16, 2))
    assert [(vf.name, vf.physical_function, vf.vf_index) for vf in virtual] == [
        ("mlx5_1", "0000:3c:00.0", 0),
        ("mlx5_2", "0000:3c:00.0", 1),
    ]
    assert virtual[1].administration == VfAdministration("0x0200000000000001", "0x0200000000000001", "Down")
    assert virtual[1].node_guid == "0x0200000000000001" and virtual[1].ports[0].state == "DOWN"


def test_a_driver_that_shows_no_administration_of_vfs(tree: Tree) -> None:
    add_infiniband_vfs(tree, administered=False)
    assert [hca.administration for hca in read(tree).hcas] == [None, None, None]


def test_a_link_policy_that_is_not_known_is_unread(tree: Tree) -> None:
    add_infiniband_vfs(tree)
    tree.write("bus/pci/devices/0000:3c:00.0/sriov/0/policy", "Invalid policy")
    vf = read(tree).hcas[1]
    assert vf.administration == VfAdministration("0x0200000000000000", "0x0200000000000000", None)
    assert vf.unread == ("physfn/sriov/0/policy",)


@pytest.mark.parametrize(
    ("state", "physical", "sm_lid", "seen"),
    [
        ("1: DOWN", "2: Polling", "0x0", ("DOWN", "Polling", None)),
        ("1: DOWN", "3: Disabled", "0x0", ("DOWN", "Disabled", None)),
        ("2: INIT", "5: LinkUp", "0x0", ("INIT", "LinkUp", None)),
        ("4: ACTIVE", "5: LinkUp", "0x1", ("ACTIVE", "LinkUp", 1)),
    ],
)
def test_states_of_a_port(tree: Tree, state: str, physical: str, sm_lid: str, seen: tuple[typing.Any, ...]) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    tree.rdma(folder, "mlx5_0", guid(1, 0))
    tree.port("mlx5_0", state=state, phys_state=physical, sm_lid=sm_lid)
    (port,) = read(tree).hcas[0].ports
    assert (port.state, port.physical_state, port.sm_lid) == seen


def test_two_ports_of_one_device_have_their_own_interfaces(tree: Tree) -> None:
    """As a ConnectX-3 with both ports on one function; ib0.8001 is a child of ib0."""
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1003", driver="mlx4_core")
    tree.rdma(folder, "mlx4_0", guid(1, 0))
    for number, name, mtu in ((1, "ib0", 4092), (1, "ib0.8001", 2044), (2, "renamed-by-it", 2044)):
        tree.netdev(
            folder,
            name,
            f"00:00:00:4{number}:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:e0:00:0{number}",
            kind=32,
            mtu=mtu,
            dev_port=number - 1,
        )
    for number in (1, 2):
        tree.port("mlx4_0", number)
    (hca,) = read(tree).hcas
    assert [(netdev.name, netdev.port) for netdev in hca.netdevs] == [("ib0", 1), ("ib0.8001", 1), ("renamed-by-it", 2)]
    assert [port.mtu for port in hca.ports] == [4092, 2044]


def test_a_function_with_two_rdma_devices_is_two_hcas_and_one_function(tree: Tree) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    for index in range(2):
        tree.rdma(folder, f"mlx5_{index}", guid(1, index))
    node = read(tree)
    assert [hca.name for hca in node.hcas] == ["mlx5_0", "mlx5_1"] and [hca.name for hca in node.functions] == [
        "mlx5_0"
    ]
    seen = platform.read_platform([str(tree.root)], node, str(tree.root / "cmdline"))
    assert [function.address for function in seen.functions] == ["0000:3c:00.0"]


def test_two_hcas_with_one_description(tree: Tree) -> None:
    for index, address in enumerate(("0000:3c:00.0", "0000:4d:00.0")):
        folder = tree.function(address, vendor="0x15b3", device="0x1021")
        tree.rdma(folder, f"mlx5_{index}", guid(1, index), node_desc="MT4129 ConnectX7   Mellanox Technologies")
    assert {hca.node_description for hca in read(tree).hcas} == {"MT4129 ConnectX7   Mellanox Technologies"}


def test_devices_of_software_have_no_function(tree: Tree) -> None:
    tree.netdev(None, "eth1", "52:54:00:77:00:01")
    tree.rdma(None, "rxe0", "5054:00ff:fe77:0001", parent="eth1", fw_ver="")
    tree.port("rxe0", link_layer="Ethernet", rate="2.5 Gb/sec (1X SDR)")
    tree.rdma(None, "siw0", "5054:00ff:fe77:0002")
    node = read(tree)
    assert node.errors == ()
    assert [(hca.name, hca.pci, [netdev.name for netdev in hca.netdevs]) for hca in node.hcas] == [
        ("rxe0", None, ["eth1"]),
        ("siw0", None, []),
    ]
    assert node.hcas[0].firmware is None


def test_sriov_files_absent_is_not_zero(tree: Tree) -> None:
    tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    tree.function("0000:4d:00.0", vendor="0x15b3", device="0x1021", sriov_totalvfs="0", sriov_numvfs="0")
    assert [hca.sriov for hca in read(tree).hcas] == [None, Sriov(0, 0)]


AER = (0x0001, bytes(0x28))


@pytest.mark.parametrize(
    ("config", "absence"),
    [
        (bytes(64), None),  # not root
        (bytes(256), "hidden"),
        (bytes(256) + b"\xff" * 3840, "hidden"),
        (bytes(4096), "off"),
        (space([AER]), "off"),
        (space([AER, (0x0010, struct.pack("<IIHH", 0, 0, 0, 0))]), "off"),
        (space([AER, (0x0010, struct.pack("<IIHH", 0, 0, 16, 16))]), "unused"),
        (space([AER])[:0x100] + struct.pack("<I", 0x10001 | 0x100 << 20) + bytes(3836), None),  # leads in a circle
        (space([(0x0010, b"")])[:0x104], None),
    ],
)
def test_why_there_are_no_sriov_files(tree: Tree, config: bytes, absence: typing.Optional[str]) -> None:
    tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    tree.write("bus/pci/devices/0000:3c:00.0/config", config)
    (hca,) = read(tree).hcas
    assert (hca.sriov, hca.sriov_absence) == (None, absence)


def pci_express(supported: int, current: int, place: int = 0x60) -> bytes:
    """A configuration space of 256 bytes as of a ConnectX-7: power management, then PCI Express with these codes of the
    payload."""
    raw = bytearray(256)
    raw[0:8] = b"\xb3\x15\x21\x10\x46\x05\x10\x00"
    raw[0x34], raw[0x40:0x42], raw[place] = 0x40, bytes((0x01, place)), 0x10
    raw[place + 4 : place + 10] = struct.pack("<IH", 0x1000_8FE0 | supported, 0x591F & ~0xE0 | current << 5)
    return bytes(raw)


@pytest.mark.parametrize(
    ("own", "above", "seen"),
    [
        (pci_express(2, 1), pci_express(1, 1), (256, 256)),
        (pci_express(5, 0), pci_express(2, 0), (128, 512)),
        (pci_express(2, 2), b"", (512, None)),
        (pci_express(2, 1)[:64], pci_express(1, 1), (None, None)),  # not root
        (bytes(256), pci_express(1, 1), (None, None)),
        (pci_express(7, 1), pci_express(1, 1), (None, None)),
        (pci_express(2, 1, 0x40), pci_express(1, 1), (256, 256)),
        (b"\xff" * 256, b"\xff" * 256, (None, None)),  # it does not answer
    ],
)
def test_what_card_and_slot_can_do(
    tree: Tree, own: bytes, above: bytes, seen: tuple[typing.Optional[int], typing.Optional[int]]
) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", current_link_width="8")
    port = f"{folder}/.."
    tree.write(f"{folder}/config", own)
    tree.write(f"{port}/config", above)
    tree.write(f"{port}/max_link_speed", "16.0 GT/s PCIe")
    tree.write(f"{port}/max_link_width", "8")
    node = read(tree)
    assert node.hcas[0].pci is not None
    assert node.hcas[0].pci.link == PcieLink(32.0, 8, 32.0, 16, 16.0, 8, *seen)
    assert node.errors == ()


@pytest.mark.parametrize(
    ("speed", "gbps"), [("200000", 200.0), ("-1", None), ("0", None), ("4294967295x", None), (b"\xff", None)]
)
def test_the_speed_of_an_ethernet_link(
    tree: Tree, speed: typing.Union[str, bytes], gbps: typing.Optional[float]
) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    tree.netdev(folder, "eth0", "02:00:00:00:00:01")
    tree.write("class/net/eth0/speed", speed)
    node = read(tree)
    # only the kernel's own tree knows more
    assert [(netdev.speed_gbps, netdev.supported_gbps, netdev.partner_gbps) for netdev in node.hcas[0].netdevs] == [
        (gbps, None, None)
    ]
    assert node.errors == ()


def test_a_link_that_is_down_has_no_speed_and_that_is_no_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021", pci_class="0x020000")
    tree.netdev(folder, "eth0", "02:00:00:00:00:01", state="down")
    tree.write("class/net/eth0/speed", "1000")
    monkeypatch.setattr(sysfs_reader, "open", Refusing("class/net/eth0/speed", errno.EINVAL), raising=False)
    node = read(tree)
    assert (node.hcas[0].netdevs[0].speed_gbps, node.errors, node.hcas[0].unread) == (None, (), ())


def test_two_roots_are_one_list(tree: Tree, tmp_path: pathlib.Path) -> None:
    add_igb(tree, virtual_functions=0)
    other = Tree(tmp_path / "more")
    add_six_hcas(other)
    node = sysfs.read_node([str(tree.root), str(other.root)])
    assert [hca.name for hca in node.hcas] == ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "eth1"]
    twice = sysfs.read_node([str(other.root), str(other.root)])
    assert len(twice.hcas) == 6 and len(twice.errors) == 6 and "twice" in twice.errors[0]


def test_a_root_that_is_no_sysfs_is_said(tmp_path: pathlib.Path) -> None:
    node = sysfs.read_node([str(tmp_path / "nowhere")])
    assert node.hcas == () and "nowhere: not a sysfs: " in node.errors[0]


@pytest.mark.parametrize(
    ("raw", "shown", "errors"),
    [
        (b'worker-1 "mlx5"; $(reboot) {{ 7*7 }}\n', 'worker-1 "mlx5"; $(reboot) {{ 7*7 }}', 0),
        (b"two\nlines\n", "two\nlines", 0),
        (b"caf\xe9 \xff\n", "caf\\xe9 \\xff", 1),
        (b"\n", "", 0),
    ],
)
def test_node_descriptions_are_kept_as_they_are(tree: Tree, raw: bytes, shown: str, errors: int) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    tree.rdma(folder, "mlx5_0", guid(1, 0), node_desc=raw)
    tree.port("mlx5_0")
    node = read(tree)
    assert node.hcas[0].node_description == shown
    assert len(node.errors) == errors and node.hcas[0].ports[0].state == "ACTIVE"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("ports/1/state", "garbage"),
        ("ports/1/rate", "fast"),
        ("node_guid", "0"),
        ("ports/1/lid", ""),
        ("ports/1/gids/0", b"\xff\xff"),
    ],
)
def test_a_file_that_is_not_understood_is_unread_and_not_absent(tree: Tree, file: str, content: bytes) -> None:
    folder = tree.function("0000:3c:00.0", vendor="0x15b3", device="0x1021")
    tree.rdma(folder, "mlx5_0", guid(1, 0))
    tree.port("mlx5_0")
    tree.write(f"class/infiniband/mlx5_0/{file}", content)
    node = read(tree)
    assert node.hcas[0].unread == (file,)
    assert len(node.errors) == 1 and file in node.errors[0]


class Refusing:
    """``open`` that refuses some files, as the kernel does for a function that is being taken down."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number

    def __call__(self, path: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        if str(path).endswith(self.name):
            raise OSError(self.number, os.strerror(self.number), path)
        return open(path, *arguments, **more)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENODEV, errno.EACCES, errno.EIO])
def test_a_file_that_refuses_to_be_read(tree: Tree, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    add_igb(tree)
    monkeypatch.setattr(sysfs_reader, "open", Refusing("0000:01:00.0/sriov_totalvfs", number), raising=False)
    node = read(tree)
    assert node.hcas[0].sriov == Sriov(None, 3), "unread is None, and the function is still one with SR-IOV"
    assert node.hcas[0].unread == ("sriov_totalvfs",)
    assert os.strerror(number) in node.errors[0]


def test_a_function_that_vanishes_while_it_is_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    add_igb(tree)
    address = "0000:01:10.2"

    def vanish(path: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        if str(path).endswith(f"{address}/numa_node"):
            shutil.rmtree(tree.root / "devices/pci0000:01" / address)
        return open(path, *arguments, **more)

    monkeypatch.setattr(sysfs_reader, "open", vanish, raising=False)
    node = read(tree)
    assert [hca.name for hca in node.hcas] == ["eth1", "eth3", "eth5"]
    assert any("it disappeared while it was read" in error and address in error for error in node.errors)


def test_an_interface_that_is_renamed_while_it_is_read(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not stay in the list with nothing known of it."""
    add_igb(tree, virtual_functions=1)
    home = tree.root / "devices/pci0000:01/0000:01:10.0/net"

    def rename(path: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        if str(path).endswith("class/net/eth3/mtu"):
            (tree.root / "class/net/eth3").unlink()
            (home / "eth3").rename(home / "enp1s0v0")
        return open(path, *arguments, **more)

    monkeypatch.setattr(sysfs_reader, "open", rename, raising=False)
    node = read(tree)
    assert [(hca.name, hca.netdevs) for hca in node.hcas[1:]] == [("0000:01:10.0", ())]
    assert any("class/net/eth3: it disappeared while it was read" in error for error in node.errors)


def test_a_dangling_function(tree: Tree) -> None:
    """The link under bus/pci is still there, the function behind it is not."""
    add_igb(tree, virtual_functions=1)
    shutil.rmtree(tree.root / "devices/pci0000:01/0000:01:10.0")
    node = read(tree)
    assert [hca.name for hca in node.hcas] == ["eth1"]
    assert any("it disappeared while it was read" in error for error in node.errors)


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_whatever_the_files_hold_the_node_is_read(data: st.DataObject) -> None:
    """Each value is one that its file holds, or unread and said."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(pathlib.Path(folder) / "sys")
        add_infiniband_vfs(tree, count=1)
        add_igb(tree, virtual_functions=1)
        files = sorted(path for path in (tree.root / "devices").rglob("*") if path.is_file() and not path.is_symlink())
        for path in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=6)):
            path.write_bytes(
                data.draw(
                    st.binary(max_size=40)
                    | st.sampled_from([b"", b"N/A (no PMA)\n", b"0x\n", b"-1\n", b"9" * 30, b"\xff\xfe"])
                )
            )
        node = read(tree)
        # a function whose class is not understood may be a plain card: it is left out, and said
        assert len(node.hcas) + len(node.errors) > 0
        assert node.errors or not any(hca.unread for hca in node.hcas)
