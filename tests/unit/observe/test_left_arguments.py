# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments of the collection for the next boot, in the node's files as its observer has them."""

from __future__ import annotations

import os
import pathlib

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import DROP_IN, RECORD
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import node_reader as look
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.left_arguments import read_left_arguments
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.kernel_arguments import grub_drop_in


@pytest.fixture
def host(tmp_path: pathlib.Path) -> pathlib.Path:
    for path in (DROP_IN, RECORD):
        (tmp_path / "host" / path).parent.mkdir(parents=True)
    return tmp_path / "host"


def test_both_tools_have_left_theirs(host: pathlib.Path) -> None:
    assert read_left_arguments(str(host)) == ()
    (host / DROP_IN).write_text(grub_drop_in(("iommu=pt", "quiet")))
    (host / RECORD).write_text("iommu=pt\nintel_iommu=on\n")
    assert read_left_arguments(str(host)) == ("iommu=pt", "quiet", "intel_iommu=on")
    seen = look.answer({"kinds": ["kernel_arguments_left"], "host": str(host)})
    assert seen == {"kernel_arguments_left": {"value": {"arguments": ["iommu=pt", "quiet", "intel_iommu=on"]}}}


def test_links_of_folders_lead_where_they_lead_on_the_node(host: pathlib.Path) -> None:
    """An absolute one is not followed into the observer's own files."""
    (host / "data").mkdir()
    (host / "data" / "kernel-arguments").write_text("iommu=pt\n")
    (host / "etc" / "linerate-rdma").rmdir()
    (host / "etc" / "linerate-rdma").symlink_to("/data")
    assert read_left_arguments(str(host)) == ("iommu=pt",)


def test_what_can_not_be_read_is_not_nothing(host: pathlib.Path) -> None:
    (host / RECORD).symlink_to("/dev/null")
    with pytest.raises(RdmaError, match="it is a link; expected a regular file"):
        read_left_arguments(str(host))
    (host / RECORD).unlink()
    os.mkfifo(host / RECORD)
    with pytest.raises(RdmaError, match="it is a FIFO; expected a regular file"):
        read_left_arguments(str(host))
    (host / RECORD).unlink()
    (host / RECORD).write_text("x" * 100_000)
    with pytest.raises(RdmaError, match="it has 100000 bytes; the limit is 65536"):
        read_left_arguments(str(host))
    (host / RECORD).unlink()
    (host / DROP_IN).write_text("GRUB_CMDLINE_LINUX=quiet\n")
    with pytest.raises(RdmaError, match="is not the content that this collection writes"):
        read_left_arguments(str(host))
    answer = look.answer({"kinds": ["kernel_arguments_left"], "host": str(host / "nowhere")})
    assert answer["kernel_arguments_left"]["error"].startswith(f"the files of the node are not in {host}/nowhere")
