# SPDX-License-Identifier: GPL-3.0-or-later

"""A remedy that ends programs of a node says so first: drain the node, or end its jobs."""

from __future__ import annotations

import ast
import pathlib
import re
import typing

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins" / "module_utils"
#: ends the programs of a node that use the HCAs or GPUs, or takes their CPUs
HARMFUL = re.compile(
    r"reload the driver|modprobe -r (?:mlx5|ib_|irdma|bnxt)|systemctl restart nvidia-fabricmanager|nvidia-smi -r\b"
    r"|[Rr]eset th(?:e|is) GPU|mstfwreset -d|state file of the CPU manager|delete (?:the|its) driver pod"
)
#: what is done before
FIRST = re.compile(r"[Dd]rain (?:the|that) (?:nodes?|host)|end the jobs")


def list_texts(tree: ast.AST) -> typing.Iterator[str]:
    """Whole texts, with their parts in braces left out."""
    parts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def is_harmful(text: str) -> bool:
    found = HARMFUL.search(text)
    first = FIRST.search(text)
    return found is not None and (first is None or first.start() > found.start())


@pytest.mark.parametrize("folder", ["_check", "_model", "_analysis"])
def test_a_remedy_that_ends_programs_drains_the_node_first(folder: str) -> None:
    seen = 0
    wrong = []
    for path in sorted((UTILS / folder).rglob("*.py")):
        for text in list_texts(ast.parse(path.read_text(encoding="utf-8"))):
            seen += HARMFUL.search(text) is not None
            wrong += [f"{path.relative_to(ROOT)}: {text}"] if is_harmful(text) else []
    assert wrong == []
    assert seen or folder == "_analysis"


def test_the_words_are_found() -> None:
    assert is_harmful("If it prints an error, reload the driver of the HCA.")
    assert is_harmful("Reset this GPU, then drain the node.")
    assert not is_harmful("Drain the node and reset the GPU.")
    assert not is_harmful("Run ibstat.")
