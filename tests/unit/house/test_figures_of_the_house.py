# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``python -m dev.house`` counts."""

from __future__ import annotations

import ast
import pathlib

from dev import house

ONE = '''
class Port:
    """A port."""

    @property
    def speed(self):
        return [lane for lane in [line for line in ()]]

def read_port(text):
    """Read it."""
    return 1 if text else 0

def way():
    """What leads there."""

def is_up():
    return True
'''


def test_names_docstrings_and_density_are_counted(tmp_path: pathlib.Path) -> None:
    plugins = tmp_path / "plugins"
    (plugins / "modules").mkdir(parents=True)
    (plugins / "one.py").write_text(ONE, encoding="utf-8")
    (plugins / "modules" / "other.py").write_text("class Port:\n    pass\n" * 201, encoding="utf-8")
    found = house.measure(plugins)
    assert (found.functions, found.verbs, found.one_word) == (2, 1, 1)
    assert (found.docstrings, found.openings) == (3, 1)
    assert (found.classes, found.twice) == (1, ("Port",))
    assert (found.comprehensions, found.nested, found.conditionals) == (2, 1, 1)
    assert found.long_files == ("plugins/modules/other.py (402)",)
    assert found.large_folders == ()


def test_a_folder_with_many_files_is_counted(tmp_path: pathlib.Path) -> None:
    for number in range(house.MOST_FILES + 1):
        (tmp_path / f"part_{number}.py").touch()
    assert house.measure(tmp_path).large_folders == (f"{tmp_path.name} ({house.MOST_FILES + 1})",)


def test_a_public_function_of_one_word_is_named_by_a_verb() -> None:
    """Its module names the object: ``lease.parse``. A noun or a participle alone says neither what it does nor to what.
    ``main`` and ``work`` are the two functions of each module."""
    named = {
        f"{path.relative_to(house.FOLDER)}: {node.name}"
        for path in house.FOLDER.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and "_" not in node.name
        if node.name not in house.VERBS | {"main", "work"}
    }
    assert named == set()
