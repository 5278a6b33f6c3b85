# SPDX-License-Identifier: GPL-3.0-or-later

"""What pods have of a node's functions: read in a sysfs of each network namespace, on trees in the kernel's form."""

from __future__ import annotations

import os
import pathlib
import shutil
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import namespaces, sysfs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.namespace_sysfs import ReadNamespace
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.namespaces import HeldByPods, read_held_parts
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_igb, add_infiniband_vfs, add_virtio

VF_MAC = "00:00:04:a5:fe:80:00:00:00:00:00:00:02:00:00:00:00:00:00:00"


class Node:
    """A node and its processes, each in a network namespace, and the sysfs of each namespace: a plain folder takes the
    place of what root would mount.

    :ivar errors: of the last look
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.proc, self.tree = folder / "proc", Tree(folder / "sys")
        self._namespaces = {"net:[1]": self.tree}
        self.errors: tuple[str, ...] = ()
        self.process("self", "net:[1]")
        self.process("1", "net:[1]")

    def process(self, pid: str, namespace: str) -> Tree:
        (self.proc / pid / "ns").mkdir(parents=True, exist_ok=True)
        (self.proc / pid / "ns/net").symlink_to(namespace)
        return self._namespaces.setdefault(namespace, Tree(self.proc.parent / f"sys-{namespace}"))

    def named(self, name: str, namespace: str) -> Tree:
        """A namespace to which a container engine gave a name; a link takes the place of what is mounted on a file."""
        (self.proc / "1/root/run/netns").mkdir(parents=True, exist_ok=True)
        (self.proc / "1/root/run/netns" / name).symlink_to(namespace)
        return self._namespaces.setdefault(namespace, Tree(self.proc.parent / f"sys-{namespace}"))

    def enter(self, namespaces: typing.Sequence[str], look: ReadNamespace) -> typing.Sequence[str]:
        for path in namespaces:
            look(path, str(self._namespaces[os.readlink(path)].root))
        return ()

    def held(self) -> HeldByPods:
        return read_held_parts([str(self.tree.root)], str(self.proc), self.enter)

    def move(self, address: str, kind: str, name: str, to: Tree, new: str = "") -> str:
        """An interface or an RDMA device goes from the node into a namespace; its function stays. Returns its folder
        there."""
        old = self.tree.root / f"devices/pci{address[:7]}/{address}/{kind}/{name}"
        home = f"devices/pci{address[:7]}/{address}/{kind}/{new or name}"
        shutil.copytree(old, to.root / home, symlinks=True)
        shutil.rmtree(old)
        (self.tree.root / f"class/{kind}/{name}").unlink()
        to.link(f"class/{kind}/{new or name}", home)
        return home

    def read(self, netdevs: typing.Sequence[str] = ()) -> dict[str, Hca]:
        held = self.held()
        node = sysfs.read_node([str(self.tree.root)], netdevs, held.parts)
        assert load(NodeHcas, to_data(node)) == node
        assert node.errors == ()
        self.errors = held.errors
        return {hca.pci.address: hca for hca in node.hcas if hca.pci}


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Node:
    return Node(tmp_path)


def test_a_vf_s_interface_in_a_pod(node: Node) -> None:
    add_igb(node.tree, 2)
    pod = node.process("4711", "net:[2]")
    node.tree.write("devices/pci0000:01/0000:01:10.0/net/eth3/mtu", "9000")
    node.move("0000:01:10.0", "net", "eth3", pod, "net1")
    # what else is there: the pod's own interface is of no function
    pod.netdev(None, "eth0", "0a:58:0a:f4:00:05")
    found = node.read()
    taken, free = found["0000:01:10.0"], found["0000:01:10.2"]
    assert (taken.name, taken.netdevs, free.held) == ("0000:01:10.0", (), None)
    assert taken.held and [(netdev.name, netdev.mtu, netdev.state) for netdev in taken.held.netdevs] == [
        ("net1", 9000, "down")
    ]
    assert (
        [netdev.name for netdev in taken.all_netdevs] == ["net1"]
        and taken.held.names == ()
        and taken.held.rdma_device is None
    )


def test_a_vf_in_a_namespace_in_which_nothing_runs(node: Node) -> None:
    add_igb(node.tree, 3)
    crashed, pod = node.named("cni-5b0e", "net:[3]"), node.process("4711", "net:[2]")
    node.named("cni-77aa", "net:[2]")
    node.move("0000:01:10.0", "net", "eth3", crashed, "net1")
    node.move("0000:01:10.2", "net", "eth4", pod, "net1")
    hcas = node.read()
    lost, held = hcas["0000:01:10.0"].held, hcas["0000:01:10.2"].held
    assert lost is not None and held is not None
    assert (lost.idle, [netdev.name for netdev in lost.netdevs]) == ("cni-5b0e", ["net1"])
    assert (held.idle, [netdev.name for netdev in held.netdevs]) == (None, ["net1"])


def test_a_named_namespace_is_looked_into_once_and_one_that_is_none_never(node: Node) -> None:
    seen: list[str] = []
    node.process("4711", "net:[2]")
    for name, namespace in (
        ("pod", "net:[2]"),
        ("own", "net:[1]"),
        ("lost", "net:[3]"),
        ("again", "net:[3]"),
        ("elsewhere", "/etc/passwd"),
    ):
        node.named(name, namespace)
    # left by somebody who has unmounted it
    (node.proc / "1/root/run/netns/empty").touch()

    def enter(paths: typing.Sequence[str], _look: ReadNamespace) -> typing.Sequence[str]:
        seen.extend(paths)
        return ()

    read_held_parts([str(node.tree.root)], str(node.proc), enter)
    assert [os.readlink(path) for path in seen] == ["net:[2]", "net:[3]"]


def test_a_file_on_which_a_namespace_is_mounted_is_known_by_its_number(tmp_path: pathlib.Path) -> None:
    mounted = tmp_path / "cni-1"
    mounted.touch()
    # of the same file system as the namespace of the process
    own = tmp_path / "own"
    own.touch()
    assert namespaces._read_namespace_identity(str(mounted), str(own)) == f"net:[{mounted.stat().st_ino}]"
    assert namespaces._read_namespace_identity(str(mounted), "/proc/self/ns/net") == ""
    assert namespaces._read_namespace_identity(str(tmp_path / "gone"), str(own)) == ""


def test_in_exclusive_mode_the_rdma_device_is_there_too(node: Node) -> None:
    add_infiniband_vfs(node.tree, 2)
    folder = "devices/pci0000:3c/0000:3c:00.1"
    node.tree.netdev(folder, "ibp60s0v0", VF_MAC, kind=32, mtu=4092)
    pod = node.process("4711", "net:[2]")
    node.move("0000:3c:00.1", "net", "ibp60s0v0", pod, "net1")
    node.move("0000:3c:00.1", "infiniband", "mlx5_1", pod)
    taken = node.read()["0000:3c:00.1"]
    assert (taken.rdma_device, taken.ports, taken.physical_function) == (None, (), "0000:3c:00.0")
    parts = taken.held
    assert parts and (parts.rdma_device, parts.node_guid, parts.netdevs[0].port_guid) == (
        "mlx5_1",
        "0x0200000000000000",
        "0x0200000000000000",
    )
    assert [(port.number, port.state, port.guid) for port in taken.all_ports] == [(1, "DOWN", "0x0200000000000000")]


def test_in_shared_mode_every_pod_shows_all_devices_and_none_counts_as_its_own(node: Node) -> None:
    add_infiniband_vfs(node.tree, 2)
    pod = node.process("4711", "net:[2]")
    for entry in ("class/infiniband", "devices"):
        shutil.copytree(node.tree.root / entry, pod.root / entry, symlinks=True, dirs_exist_ok=True)
    assert [hca.held for hca in node.read().values()] == [None] * 3


def test_a_plain_card_that_a_pod_has_is_found_by_the_name_that_it_had(node: Node) -> None:
    add_virtio(node.tree)
    address = "0000:00:02.0"
    before = node.read(["eth2"])[address]
    home = node.tree.root / "class/net/eth2"
    pod = node.process("4711", "net:[2]")
    target = home.resolve().relative_to(node.tree.root)
    shutil.copytree(home.resolve(), pod.root / target.parent / "net1", symlinks=True)
    pod.link("class/net/net1", str(target.parent / "net1"))
    shutil.rmtree(home.resolve())
    home.unlink()
    # the CNI plugin host-device keeps it as the alias
    pod.write(str(target.parent / "net1/ifalias"), "eth2")
    after = node.read(["eth2"])[address]
    assert (before.name, after.name, after.names, after.netdevs) == ("eth2", "eth2", ("eth2",), ())
    assert node.read(["other"]) == {}
    # without one it may be any
    (pod.root / target.parent / "net1/ifalias").write_text("\n", encoding="utf-8")
    assert node.read(["eth2"])[address].names == ()


def test_each_namespace_is_looked_into_once_and_who_is_not_to_be_seen_in_none(node: Node) -> None:
    add_igb(node.tree, 2)
    (node.proc / "13/ns").mkdir(parents=True)
    (node.proc / "14").mkdir()
    (node.proc / "cpuinfo").write_text("", encoding="utf-8")
    pod = node.process("4711", "net:[2]")
    # a second container of the pod, and one that sees the node's own mount of a sysfs
    assert node.process("4712", "net:[2]") is node.process("12", "net:[2]") is pod
    node.move("0000:01:10.0", "net", "eth3", pod, "net1")
    found = node.read()
    assert found["0000:01:00.0"].held is None
    assert len(found["0000:01:10.0"].all_netdevs) == 1 and node.errors == ()
    assert read_held_parts([str(node.tree.root)], str(node.proc / "none"), node.enter) == HeldByPods({})
