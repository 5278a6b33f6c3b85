# SPDX-License-Identifier: GPL-3.0-or-later

"""The drop-in on a node, whose files are in a folder of the observer: absent is only what was looked at."""

from __future__ import annotations

import os
import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import DROP_IN
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import drop_in
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import node_reader as look


@pytest.fixture
def host(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "host" / "etc").mkdir(parents=True)
    return tmp_path / "host"


def place(host: pathlib.Path) -> pathlib.Path:
    path = host / DROP_IN.strip("/")
    path.parent.mkdir(parents=True)
    return path


def test_absent_whatever_folder_is_not_there(host: pathlib.Path) -> None:
    assert drop_in.state(str(host)) == "absent"
    path = place(host)
    assert drop_in.state(str(host)) == "absent"
    path.parent.rmdir()
    path.parent.write_text("no folder")
    assert drop_in.state(str(host)) == "absent"


def test_what_is_there(host: pathlib.Path) -> None:
    path = place(host)
    path.write_text("[Service]\n")
    assert drop_in.state(str(host)) == "file"
    assert look.answer({"kinds": ["drop_in"], "host": str(host)}) == {"drop_in": {"value": {"state": "file"}}}
    path.write_text("# intent: compute\n[Service]\n")
    assert drop_in.state(str(host)) == "of intent compute"
    path.unlink()
    path.symlink_to("/dev/null")
    assert drop_in.state(str(host)) == "link"
    path.unlink()
    path.mkdir()
    assert drop_in.state(str(host)) == "directory"


@pytest.mark.parametrize(
    "target", ["/etc/static/systemd", "static/systemd", "../etc/./static//systemd", "../../../etc/static/systemd"]
)
def test_links_lead_where_they_lead_on_the_node(host: pathlib.Path, target: str) -> None:
    """An absolute one is not followed into the observer's own files, where nothing is."""
    (host / "etc" / "systemd").symlink_to(target)
    real = host / "etc/static/systemd" / DROP_IN.split("systemd/", 1)[1]
    real.parent.mkdir(parents=True)
    assert drop_in.state(str(host)) == "absent"
    real.write_text("")
    assert drop_in.state(str(host)) == "file"


def test_links_that_lead_round_and_files_that_are_elsewhere_are_told(host: pathlib.Path) -> None:
    (host / "etc" / "systemd").symlink_to("/etc/systemd")
    with pytest.raises(RdmaError, match="too many symbolic links"):
        drop_in.state(str(host))
    with pytest.raises(RdmaError, match=r"the files of the node are not in .*/nowhere"):
        drop_in.state(str(host / "nowhere"))


def test_what_can_not_be_looked_at_is_not_absent(host: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(RdmaError, match=r"could not be read in .*: Permission denied"):
        drop_in.state(str(host))
