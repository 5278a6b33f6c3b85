# SPDX-License-Identifier: GPL-3.0-or-later

"""node_info's look at what is set for VFs, by a program ``ip`` that answers with what was captured."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import sysfs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.ip_link import add_vf_settings
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_igb, add_infiniband_vfs

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "iproute2"


@pytest.fixture
def programs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder that is all the PATH there is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(command, "_FOLDERS", ())
    monkeypatch.setenv("PATH", str(folder))
    return folder


def answers(programs: pathlib.Path, script: str) -> None:
    (programs / "ip").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "ip").chmod(0o755)


def shows(programs: pathlib.Path, name: str) -> None:
    answers(
        programs,
        f'[ "$*" = "-json link show" ] || exit 1\nwhile read -r line; do echo "$line"; done <{FIXTURES / name}.stdout',
    )


def igb(tmp_path: pathlib.Path, virtual_functions: int = 4) -> NodeHcas:
    tree = Tree(tmp_path / "sys")
    add_igb(tree, virtual_functions)
    return sysfs.read_node([str(tree.root)])


def test_each_vf_has_what_its_own_physical_function_has_set(tmp_path: pathlib.Path, programs: pathlib.Path) -> None:
    shows(programs, "6.15-igb-vf-in-pod")
    node = add_vf_settings(igb(tmp_path))
    assert node.errors == ()
    assert [
        hca.administration and (hca.vf_index, hca.administration.vlan, hca.administration.trust) for hca in node.hcas
    ] == [
        None,
        (0, 100, True),
        (1, 0, False),
        (2, 0, False),
        (3, 0, False),
    ]


def test_what_sysfs_shows_stays(tmp_path: pathlib.Path, programs: pathlib.Path) -> None:
    shows(programs, "by-hand-infiniband")
    tree = Tree(tmp_path / "sys")
    add_infiniband_vfs(tree)
    tree.netdev("devices/pci0000:3c/0000:3c:00.0", "ibp60s0", "b8:3f:d2:e0:00:01")
    node = add_vf_settings(sysfs.read_node([str(tree.root)]))
    vfs = [hca.administration for hca in node.hcas if hca.is_virtual and hca.administration]
    assert [(vf.node_guid, vf.link_policy, vf.trust) for vf in vfs] == [
        ("0x0200000000000000", "Down", False),
        ("0x0200000000000001", "Down", False),
    ]


def test_without_vfs_nothing_is_run(tmp_path: pathlib.Path, programs: pathlib.Path) -> None:
    node = igb(tmp_path, 0)
    assert add_vf_settings(node) is node


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("", "settings of VFs: ip -json link show: '' is not JSON"),
        (
            "echo Cannot send dump request >&2; exit 2",
            "settings of VFs: ip -json link show ended with exit code 2: Cannot send dump request",
        ),
        (None, "settings of VFs: ip is not installed. Install the package iproute2"),
    ],
)
def test_why_nothing_was_learned_is_said_and_the_rest_is_kept(
    tmp_path: pathlib.Path, programs: pathlib.Path, script: str, said: str
) -> None:
    if script is not None:
        answers(programs, script)
    before = igb(tmp_path)
    after = add_vf_settings(before)
    assert after.hcas == before.hcas
    assert len(after.errors) == 1 and after.errors[0].startswith(said)
