# SPDX-License-Identifier: GPL-3.0-or-later

"""A node with six HCAs whose mstconfig is the stand-in of mstconfig.py."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.tests.unit import mstconfig
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import SIX_HCAS, Tree, add_six_hcas

ADDRESSES = tuple(address for _device, _netdev, address, _fabric in SIX_HCAS)
#: default, current, next, read-only
SETTINGS: dict[str, list[typing.Any]] = {
    "SRIOV_EN": ["False(0)", "True(1)", "True(1)", False],
    "NUM_OF_VFS": ["0", "16", "16", False],
    "NUM_OF_PF": ["1", "1", "1", True],
    "PF_NUM_OF_VF_VALID": ["False(0)", "False(0)", "False(0)", False],
    "LINK_TYPE_P1": ["IB(1)", "IB(1)", "IB(1)", False],
    "ADVANCED_PCI_SETTINGS": ["False(0)", "True(1)", "True(1)", False],
    "PCI_WR_ORDERING": ["per_mkey(0)", "per_mkey(0)", "per_mkey(0)", False],
    "ATS_ENABLED": ["False(0)", "False(0)", "False(0)", False],
}


class FirmwareNode:
    """A node whose tools are those that a test puts there, beside the shell's own."""

    def __init__(self, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, hcas: bool = True) -> None:
        self.folder, self.tools, self.tree = folder, folder / "bin", Tree(folder / "sys")
        self.state = folder / "settings.json"
        self.tools.mkdir()
        if hcas:
            add_six_hcas(self.tree)
            for device, _netdev, _address, _fabric in SIX_HCAS:
                self.tree.write(f"class/infiniband/{device}/fw_ver", "28.42.1000")
                self.tree.write(f"class/infiniband/{device}/board_id", "MT_0000000838")
        for name in ("cat", "tail"):
            (self.tools / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setattr(command, "search_path", lambda: str(self.tools))
        monkeypatch.setenv("STAND_IN_STATE", str(self.state))
        self._monkeypatch = monkeypatch
        self._write({address: json.loads(json.dumps(SETTINGS)) for address in ADDRESSES})

    def tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def add_mstconfig(self, version: str = "4.21.0") -> None:
        self.tool(
            "mstconfig",
            f'STAND_IN_VERSION={version} exec {sys.executable} -I -S {os.path.abspath(mstconfig.__file__)} "$@"',
        )

    def settings(self, address: str = ADDRESSES[0]) -> dict[str, list[typing.Any]]:
        """What the stand-in keeps of an HCA."""
        found: dict[str, list[typing.Any]] = json.loads(self.state.read_text(encoding="utf-8"))[address]
        return found

    def set(self, address: str, **settings: list[typing.Any]) -> None:
        self._write({**self._all(), address: {**self.settings(address), **settings}})

    def breaks(self, address: str) -> None:
        """The HCA can't be opened any more."""
        self._write({**self._all(), address: "broken"})

    def _all(self) -> dict[str, typing.Any]:
        state: dict[str, typing.Any] = json.loads(self.state.read_text(encoding="utf-8"))
        return state

    def _write(self, state: dict[str, typing.Any]) -> None:
        self.state.write_text(json.dumps(state), encoding="utf-8")
