# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes of which the same is said, whatever they are called: a forged run may have thousands of names."""

from __future__ import annotations

import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._report.content.sheet_parts import Sheet
from ansible_collections.linerate.rdma.plugins.module_utils._report.formats import node_page


def test_names_are_taken_out_as_a_whole_and_without_an_expression_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_arguments: typing.Any) -> typing.NoReturn:
        raise AssertionError("an expression for a node")

    monkeypatch.setattr(re, "compile", compiled)
    found = node_page._group_equal_sheets(
        Sheet(node, wrong=(f"{node}0 and {node} (x.{node}) lack", f"<{node}>")) for node in ("node-1", "node-2")
    )
    assert [[text.replace("node-2", "node-1") for text in said[0]] for said in found] == [
        ["node-10 and this node (x.node-1) lack", "<this node>"]
    ] * 2
