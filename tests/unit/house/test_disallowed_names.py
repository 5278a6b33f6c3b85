# SPDX-License-Identifier: GPL-3.0-or-later

"""What pylint of ansible-test refuses in plugins, and no other linter of 'make check'."""

from __future__ import annotations

import ast
import pathlib
import typing

import pytest

PLUGINS = pathlib.Path(__file__).resolve().parents[3] / "plugins"


def list_refused(text: str) -> list[str]:
    """The lines with the name ``_`` (disallowed-name), and with a ``next`` in a generator that may end it without a
    word (stop-iteration-return)."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, ast.Store):
            found.append(f"{node.lineno}: _")
        if isinstance(node, ast.FunctionDef):
            inner = list(_walk_own(node))
            if any(isinstance(item, (ast.Yield, ast.YieldFrom)) for item in inner):
                found += [f"{item.lineno}: next" for item in inner if _is_bare_next(item)]
    return found


def _walk_own(function: ast.FunctionDef) -> typing.Iterator[typing.Any]:
    """All of a function but the functions in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)


def _is_bare_next(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and (node.func.id, len(node.args)) == ("next", 1)
        and not isinstance(node.args[0], ast.Attribute)
    )


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a = [x for x, _ in pairs]", ["1: _"]),
        ("for _ in range(3): pass", ["1: _"]),
        ("def f():\n    yield next(iter(a))", ["2: next"]),
        ("def f():\n    yield next(iter(a), None)", []),
        ("def f():\n    return next(iter(a))", []),
        ("a = [x for x, _other in pairs]", []),
    ],
)
def test_refused_names_and_calls_are_found(text: str, refused: list[str]) -> None:
    assert list_refused(text) == refused


def test_plugins_have_nothing_that_pylint_of_ansible_test_refuses() -> None:
    found = {
        path.relative_to(PLUGINS).as_posix(): refused
        for path in sorted(PLUGINS.rglob("*.py"))
        if (refused := list_refused(path.read_text(encoding="utf-8")))
    }
    assert found == {}
