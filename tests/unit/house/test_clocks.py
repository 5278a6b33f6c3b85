# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests measure the time of the processor in one place, where no collection of garbage falls into it."""

from __future__ import annotations

import ast
import pathlib

UNIT = pathlib.Path(__file__).parents[1]


def test_the_time_of_the_processor_is_measured_in_one_place() -> None:
    found = {
        path.relative_to(UNIT).as_posix()
        for path in UNIT.rglob("*.py")
        if "process_time" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "process_time"
    }
    assert found == {"limit.py"}, "use bounded or measure_seconds of tests/unit/limit.py"
