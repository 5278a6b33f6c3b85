# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of the emulated HCAs: what mstconfig sets waits, and is what the module is told at the next boot."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.node import mstconfig
from lab.build import disk, images
from lab.fabric import emulated

DEVICE = "0000:3c:00.0"


class Node:
    """A worker's files in a folder, and the programs of the worker that are shown them."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.function = root / "sys/bus/pci/devices" / DEVICE
        for folder in (self.function, root / "opt/lab", root / "sys/module/mlx5_core/parameters"):
            folder.mkdir(parents=True)
        (self.function / "vendor").write_text("0x15b3\n")
        (root / "opt/lab/node.env").write_text(f'FIRMWARE_VFS="{emulated.TOTAL_VFS}"\n')
        (root / "opt/lab/emulated").write_text("3c mlx5_0 ibp60s0 worker-1 mlx5_0\n4d mlx5_1 ibp77s0 worker-1 mlx5_1\n")
        (root / "sys/module/mlx5_core/parameters/total_vfs").write_text(f"{emulated.MOST_VFS}\n")

    def _run(self, path: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
        text = path.read_text().replace("root=\n", f"root={self.root}\n")
        for folder in ("/var/lib/lab", "/run/lab", "/opt/lab", "/sys/module"):
            text = text.replace(f"={folder}", f"={self.root}{folder}").replace(f" {folder}", f" {self.root}{folder}")
        script = self.root / path.name
        script.write_text(text)
        return subprocess.run(["/bin/bash", script, *words], capture_output=True, text=True, check=False)

    def boot(self) -> str:
        """What the module is told; the kernel then shows it."""
        done = self._run(disk.GUEST / "root/usr/local/sbin/lab-firmware", "parameters")
        assert done.returncode == 0, done.stderr
        told = dict(word.split("=") for word in done.stdout.split())
        total, sriov = int(told["vfs"].split(",")[0]), told["sriov"].split(",")[0] == "1"
        shown = self.function / "sriov_totalvfs"
        shown.unlink(missing_ok=True)
        if total and sriov:
            shown.write_text(f"{total}\n")
        link = self.function / "infiniband/mlx5_0/ports/1/link_layer"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.write_text("Ethernet\n" if told["ethernet"].startswith("1") else "InfiniBand\n")
        return done.stdout.strip()

    def firmware(self, *words: str) -> None:
        done = self._run(disk.GUEST / "root/usr/local/sbin/lab-firmware", *words)
        assert done.returncode == 0, done.stderr

    def set(self, *settings: str) -> subprocess.CompletedProcess[str]:
        return self._run(images.MSTCONFIG, "-d", DEVICE, "-y", "set", *settings)

    def query(self) -> dict[str, tuple[str, str]]:
        """Of each setting what it is, and what it is after the next boot."""
        done = self._run(images.MSTCONFIG, "-d", DEVICE, "-e", "query")
        assert done.returncode == 0, done.stderr
        return {item.name: (item.current or "", item.next or "") for item in mstconfig.parse(done.stdout).settings}


@pytest.fixture(name="node")
def node_fixture(tmp_path: pathlib.Path) -> Node:
    return Node(tmp_path)


def test_an_hca_has_what_it_was_delivered_with(node: Node) -> None:
    assert node.boot() == "vfs=2,2 sriov=1,1 ethernet=0,0"
    asked = node.query()
    assert (asked["NUM_OF_VFS"], asked["SRIOV_EN"]) == (("2", "2"), ("True(1)", "True(1)"))
    assert asked["LINK_TYPE_P1"] == ("IB(1)", "IB(1)")


def test_what_is_set_waits_for_a_boot_and_then_runs(node: Node) -> None:
    node.boot()
    assert node.set("NUM_OF_VFS=8", "LINK_TYPE_P1=ETH", "ATS_ENABLED=True").returncode == 0
    asked = node.query()
    assert asked["NUM_OF_VFS"] == ("2", "8") and asked["LINK_TYPE_P1"] == ("IB(1)", "ETH(2)")
    assert asked["ATS_ENABLED"] == ("False(0)", "True(1)")
    assert node.boot() == "vfs=8,2 sriov=1,1 ethernet=1,0"
    asked = node.query()
    assert asked["NUM_OF_VFS"] == ("8", "8") and asked["LINK_TYPE_P1"] == ("ETH(2)", "ETH(2)")
    assert asked["ATS_ENABLED"] == ("True(1)", "True(1)")


def test_sriov_that_is_off_hides_the_vfs_and_not_their_number(node: Node) -> None:
    node.boot()
    node.set("SRIOV_EN=False")
    assert node.query()["SRIOV_EN"] == ("True(1)", "False(0)")
    assert node.boot() == "vfs=2,2 sriov=0,1 ethernet=0,0"
    asked = node.query()
    assert (asked["NUM_OF_VFS"], asked["SRIOV_EN"]) == (("2", "2"), ("False(0)", "False(0)"))


@pytest.mark.parametrize("value", [str(emulated.MOST_VFS + 1), "many", "-1"])
def test_a_number_that_the_firmware_cannot_have_is_refused(node: Node, value: str) -> None:
    node.boot()
    refused = node.set(f"NUM_OF_VFS={value}")
    assert refused.returncode == 3 and "out of range" in refused.stderr
    assert node.query()["NUM_OF_VFS"] == ("2", "2")


def test_a_fault_gives_back_what_was_stored(node: Node) -> None:
    node.set("NUM_OF_VFS=4")
    node.boot()
    for _again in range(2):
        node.firmware("keep", DEVICE)
        node.firmware("set", DEVICE, "NUM_OF_VFS=1", "SRIOV_EN=False(0)")
    assert node.boot() == "vfs=1,2 sriov=0,1 ethernet=0,0"
    for _again in range(2):
        node.firmware("restore", DEVICE)
    assert node.boot() == "vfs=4,2 sriov=1,1 ethernet=0,0"
