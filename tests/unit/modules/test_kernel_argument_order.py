# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments whose meaning depends on their place on the command line: the number of huge pages is for the size
before it, and the last console is /dev/console.
"""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.argument_order import find_missing_arguments
from ansible_collections.linerate.rdma.tests.unit.modules.test_kernel_arguments import Node

GIANT = ["hugepagesz=1G", "hugepages=16"]
BOTH = ["hugepagesz=2M", "hugepages=512", *GIANT]


@pytest.fixture(name="node")
def _node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("wanted", "there", "missing"),
    [
        (GIANT, "ro hugepagesz=1G hugepages=16", ""),
        (GIANT, "ro hugepages=16 hugepagesz=1G", "hugepagesz=1G hugepages=16"),
        (GIANT, "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=16", "hugepagesz=1G hugepages=16"),
        (GIANT, "hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16", ""),
        (GIANT, "hugepagesz=1G hugepages=4 hugepagesz=1G hugepages=16", "hugepagesz=1G hugepages=16"),
        (GIANT, "default_hugepagesz=1G hugepages=16 hugepagesz=1G", ""),
        (["hugepages=8"], "hugepages=8", ""),
        (["hugepages=8"], "hugepagesz=2M hugepages=8", "hugepages=8"),
        (["default_hugepagesz=1G", "hugepages=8"], "default_hugepagesz=1G hugepagesz=1G hugepages=8", ""),
        (
            ["default_hugepagesz=1G", "hugepagesz=1G", "hugepages=8"],
            "default_hugepagesz=1G hugepages=8 hugepagesz=1G",
            "",
        ),
        (BOTH, "hugepagesz=1G hugepages=16 hugepagesz=2M hugepages=512", ""),
        (["console=tty0", "console=ttyS0"], "console=tty0 console=ttyS0", ""),
        (["console=tty0", "console=ttyS0"], "console=ttyS0 console=tty0", "console=ttyS0"),
        (["console=ttyS0"], "console=ttyS0 console=tty0", ""),
        (["iommu=pt"], "iommu=pt", ""),
        (["iommu=pt", "a"], "a", "iommu=pt"),
        ([], "hugepages=8", ""),
    ],
)
def test_place_of_an_argument_counts(wanted: list[str], there: str, missing: str) -> None:
    assert find_missing_arguments(tuple(wanted), tuple(there.split())) == tuple(missing.split())


def test_sizes_of_different_numbers_are_set_in_their_order(node: Node) -> None:
    node.grub()
    assert node.run(arguments=BOTH, intent="a")["arguments"] == BOTH
    assert node.next()[-4:] == BOTH
    node.boot()
    again = node.run(arguments=BOTH, intent="a")
    assert (again["changed"], again["missing"], again["refusal"]) == (False, [], "")


def test_change_of_the_order_alone_is_written(node: Node) -> None:
    node.grub()
    node.run(arguments=["hugepagesz=2M", "hugepages=512", "hugepagesz=1G", "hugepages=16"], intent="a")
    turned = ["hugepagesz=2M", "hugepages=16", "hugepagesz=1G", "hugepages=512"]
    assert node.run(arguments=turned, intent="a")["changed"] and node.next()[-4:] == turned


def test_argument_that_is_listed_twice_is_refused_before_a_write(node: Node) -> None:
    node.grub()
    wanted = ["hugepagesz=2M", "hugepages=8", "hugepagesz=1G", "hugepages=8"]
    result = node.run(arguments=wanted, intent="a")
    assert "hugepages=8, hugepagesz=1G would get another meaning by their place" in result["refusal"]
    assert (result["changed"], node.told(), node.ours(), node.next()) == (False, 0, False, ["quiet"])
    # once another tool has set them, they are proven by their order
    node.grub("hugepagesz=2M hugepages=8 hugepagesz=1G hugepages=8")
    node.boot()
    result = node.run(arguments=wanted, intent="a")
    assert (result["missing"], result["refusal"], result["changed"]) == ([], "", False)


@pytest.mark.parametrize("loader", ["grub", "grubby"])
def test_pages_of_an_admin_are_not_torn_apart(node: Node, loader: str) -> None:
    theirs = "hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512"
    getattr(node, loader)(theirs)
    node.boot()
    result = node.run(arguments=GIANT, intent="a")
    assert result["missing"] == GIANT and "remove them from rdma_cluster.host.kernel_arguments" in result["refusal"]
    assert (node.told(), " ".join(node.next())) == (0, theirs)


def test_grubby_which_keeps_one_value_of_a_name_is_not_asked_for_two(node: Node) -> None:
    node.grubby()
    result = node.run(arguments=BOTH, intent="a")
    assert "grubby keeps one value of each name" in result["refusal"]
    assert (node.told(), node.next()) == (0, ["quiet"])
