# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant on a node: what it lays on ``/sys`` of its container is never opened, and what it names in its network
namespace is held to its form and counted."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import namespaces
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.namespace_sysfs import read_namespaces
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.namespaces import HeldByPods, read_held_parts
from ansible_collections.linerate.rdma.tests.unit.observe.test_namespaces import Node
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_igb, guid

ADDRESS = "0000:01:10.0"
HOME = f"devices/pci0000:01/{ADDRESS}"
_UNSHARE = ("unshare", "--net", "--mount", "sh", "-ec")
SECRET = "root:$6$salt$hash:20228:0:99999:7:::"


class Container:
    """A process with network and mount namespaces of its own, and a procfs that shows it and this process alone."""

    def __init__(self, folder: pathlib.Path, *steps: str) -> None:
        script = "\n".join(["mount --make-rprivate /", *steps, "echo up", "exec sleep 600"])
        self._process = subprocess.Popen([*_UNSHARE, script], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout and self._process.stdout.readline() == "up\n"
        self.proc, pid = folder / "proc", str(self._process.pid)
        self.proc.mkdir()
        for name in ("self", pid):
            (self.proc / name).symlink_to(f"/proc/{name}")
        self.namespace = f"/proc/{pid}/ns/net"

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def contain(tmp_path: pathlib.Path) -> typing.Iterator[typing.Callable[..., Container]]:
    every: list[Container] = []

    def start(*steps: str) -> Container:
        every.append(Container(tmp_path, *steps))
        return every[-1]

    yield start
    for container in every:
        container.end()


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Node:
    node = Node(tmp_path)
    add_igb(node.tree, 2)
    return node


def test_a_folder_on_sys_of_a_container_is_not_opened(
    contain: typing.Callable[..., Container], tmp_path: pathlib.Path
) -> None:
    forged = Tree(tmp_path / "forged")
    forged.netdev(HOME, "net1", "02:00:00:00:00:01")
    forged.rdma(HOME, "mlx5_9", guid(1, 0))
    (tmp_path / "shadow").write_text(SECRET, encoding="utf-8")
    (forged.root / HOME / "net/net1/ifalias").symlink_to(tmp_path / "shadow")
    # who reads this one waits until somebody writes, or takes away what is in it
    pipe = forged.root / HOME / "net/net1/phys_port_name"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0) as ends:
        ends.write(b"p0\n")
        container = contain(f"mount --bind {forged.root} /sys")
        assert os.listdir(f"{container.namespace[:-7]}/root/sys/class/infiniband") == ["mlx5_9"]
        assert read_held_parts(["/sys"], str(container.proc)) == HeldByPods({})
        assert ends.read(8) == b"p0\n"


def test_the_kernel_s_own_sysfs_of_a_namespace_is_looked_into_and_nobody_else_sees_it(
    contain: typing.Callable[..., Container],
) -> None:
    container = contain("ip link add away type bridge", "mount -t tmpfs none /sys")
    before = (
        pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
        os.listdir("/sys/class/net"),
        os.readlink("/proc/self/ns/net"),
    )
    seen: list[tuple[str, list[str], str]] = []

    def look(namespace: str, root: str) -> None:
        seen.append((namespace, sorted(os.listdir(f"{root}/class/net")), os.readlink(f"{root}/class/net/away")))

    assert read_namespaces([container.namespace, "/proc/self/ns/gone"], look) == []
    assert seen == [(container.namespace, ["away", "lo"], "../../devices/virtual/net/away")]
    assert before == (
        pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
        os.listdir("/sys/class/net"),
        os.readlink("/proc/self/ns/net"),
    )


def test_a_namespace_that_can_not_be_entered_is_said_and_keeps_no_other_from_being_seen(
    contain: typing.Callable[..., Container],
) -> None:
    container, seen = contain(), []
    errors = read_namespaces(
        ["/proc/self/ns/uts", container.namespace],
        lambda namespace, root: seen.append((namespace, os.listdir(f"{root}/class/net"))),
    )
    assert seen == [(container.namespace, ["lo"])]
    assert (
        len(errors) == 1
        and errors[0].startswith("/proc/self/ns/uts: its sysfs could not be mounted")
        and "setns: Invalid argument" in errors[0]
    )


def test_without_root_it_is_unknown_what_is_in_namespaces() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.setuid(65534)
        os.write(writing, json.dumps(read_namespaces(["/proc/self/ns/net"], print)).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as answer:
        (error,) = json.load(answer)
    os.waitpid(pid, 0)
    assert (
        error.startswith("1 network namespaces, such as /proc/self/ns/net, could not be read: ")
        and "unshare: Operation not permitted" in error
        and "sudo" in error
    )


@pytest.mark.parametrize("alias", [SECRET, "uplink to leaf 3", "{{x}}", "a" * 16, ""])
def test_an_alias_that_names_no_interface_is_no_name(node: Node, alias: str) -> None:
    pod = node.process("4711", "net:[2]")
    pod.write(f"{node.move(ADDRESS, 'net', 'eth3', pod, 'net1')}/ifalias", alias)
    taken = node.read()[ADDRESS]
    assert taken.held and taken.held.names == () and len(taken.held.netdevs) == 1


@pytest.mark.parametrize("name", ["{{x}}", "$(id)", "-o"])
def test_an_interface_that_a_tenant_names_costs_the_node_no_fact(node: Node, name: str) -> None:
    """The kernel takes such names; the loader refused all HCAs of the node for one of them."""
    node.move(ADDRESS, "net", "eth3", node.process("4711", "net:[2]"), name)
    assert node.read()[ADDRESS].held is None
    assert (
        len(node.errors) == 1
        and ADDRESS in node.errors[0]
        and "the name of a network interface" in node.errors[0]
        and node.errors[0].endswith(": skipped")
    )


def test_a_bond_that_a_tenant_names_costs_its_interface_the_bond_alone(node: Node) -> None:
    pod = node.process("4711", "net:[2]")
    home = node.move(ADDRESS, "net", "eth3", pod, "net1")
    pod.write("devices/virtual/net/{{x}}/bonding/mode", "802.3ad 4")
    pod.link(f"{home}/master", "devices/virtual/net/{{x}}")
    taken = node.read()[ADDRESS]
    assert taken.held and [(netdev.name, netdev.bond) for netdev in taken.held.netdevs] == [("net1", None)]
    assert len(node.errors) == 1 and "the bond of net1" in node.errors[0]


def test_of_many_interfaces_of_one_function_only_so_many_are_read(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_MOST_ENTRIES", 90)
    pod = node.process("4711", "net:[2]")
    node.move(ADDRESS, "net", "eth3", pod, "e0")
    for number in range(1, 100):
        pod.netdev(HOME, f"e{number}", f"02:00:00:00:00:{number:02x}")
    held = node.held()
    assert [netdev.name for netdev in held.parts[ADDRESS].netdevs] == [f"e{number}" for number in range(64)]
    assert "100 entries" in held.errors[0] and "more than 64 interfaces" in held.errors[1]
    assert len(held.errors) == 17 and held.errors[-1] == "network namespaces: 11 more were skipped or not read"


def test_namespaces_without_end_are_not_all_looked_into(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_MOST_NAMESPACES", 2)
    for number in range(4):
        node.process(str(100 + number), f"net:[{number + 2}]")
    node.move(ADDRESS, "net", "eth3", node.process("99", "net:[9]"), "net1")
    held = node.held()
    assert (
        list(held.parts) == [ADDRESS] and len(held.errors) == 1 and "there are 5 network namespaces" in held.errors[0]
    )
