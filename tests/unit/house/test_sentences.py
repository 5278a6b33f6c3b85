# SPDX-License-Identifier: GPL-3.0-or-later

"""What users read: a remedy is an instruction, never a question. Held by reading every text in the code that judges."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
UTILS = ROOT / "plugins" / "module_utils"
#: where findings, causes and remedies are written
JUDGING = ("_analysis", "_check", "_run", "_plan", "_observe", "_store")
QUESTION = re.compile(r"(?:^|[.;:] )(?:Is|Are|Has|Have|Does|Do|Did|Was|Were|Can|Should)\b[^.]*\?|[a-z)]\?(?: |$)")


def questions(text: str) -> list[str]:
    """Texts of a file's code that ask the reader; documentation and patterns are not for users."""
    tree = ast.parse(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    patterns = {
        id(word)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")
        for word in ast.walk(node)
    }
    constants = (
        node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documentation | patterns
    )
    return [node.value for node in constants if isinstance(node.value, str) and QUESTION.search(node.value)]


def test_nobody_is_asked_what_he_came_to_hear() -> None:
    files = [path for folder in JUDGING for path in sorted((UTILS / folder).rglob("*.py"))]
    assert len(files) > 50
    assert {
        str(path.relative_to(UTILS)): found for path in files if (found := questions(path.read_text(encoding="utf-8")))
    } == {}


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ('x = "Is the driver loaded?"', True),
        ('x = "See the log; does the daemon run?"', True),
        ('x = f"Has {name} a GUID, and the node memory?"', True),
        ('x = "Load the driver: modprobe mlx5_ib."', False),
        ('"""Does it?"""', False),
        ('x = re.compile("(?:a )?b")', False),
    ],
)
def test_the_test_sees_a_question(line: str, asks: bool) -> None:
    assert bool(questions(line)) is asks
