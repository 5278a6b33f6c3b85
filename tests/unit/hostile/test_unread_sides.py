# SPDX-License-Identifier: GPL-3.0-or-later

"""What one of two runs has and nobody can read is told by their comparison: silence would mean that it is equal."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import compare_folders, start_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import StepFigures
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
STEP = {"fabric": "compute", "test": "all_reduce", "kind": "all", "nodes": 4, "groups": 1}
SOUND, BEYOND = ({**STEP, "median": figure, "best": figure, "worst": figure} for figure in (94.0, 900_000.0))


@pytest.fixture(name="sides")
def _sides(tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Two equal runs."""
    for name in ("before", "after"):
        shutil.copytree(SCENARIO, tmp_path / name)
    return tmp_path / "before", tmp_path / "after"


def measured(folder: pathlib.Path, *steps: object) -> None:
    """Write the figures of collectives of a run."""
    FactFolder(str(folder), start_of(str(folder)).run).write("collectives", value={"steps": list(steps)})


def lines(sides: tuple[pathlib.Path, pathlib.Path]) -> list[str]:
    found: list[str] = compare_folders(*map(str, sides))["lines"]
    return found


def test_figures_that_one_run_has_beyond_all_bounds_are_told(sides: tuple[pathlib.Path, pathlib.Path]) -> None:
    assert set(SOUND) == set(StepFigures.__dataclass_fields__)
    measured(sides[0], SOUND)
    measured(sides[1], SOUND)
    assert lines(sides) == []
    measured(sides[1], SOUND, BEYOND)
    (line,) = lines(sides)
    assert line.startswith("collectives: figures: seen -> steps[1]") and "900000" in line
    measured(sides[0], SOUND, BEYOND)
    (line,) = lines(sides)
    assert line.endswith("(not compared)")


def test_so_are_those_that_the_other_run_did_not_measure(sides: tuple[pathlib.Path, pathlib.Path]) -> None:
    measured(sides[0], BEYOND)
    (line,) = lines(sides)
    assert line.startswith("collectives: figures: steps[0]") and line.endswith("-> not looked at")


@pytest.mark.parametrize("broken", [(0,), (1,), (0, 1)])
def test_a_record_that_cannot_be_read_is_told_once(
    sides: tuple[pathlib.Path, pathlib.Path], broken: tuple[int, ...]
) -> None:
    for number in broken:
        (sides[number] / "stages" / "discover.jsonl").write_text("{}\n")
    (line,) = lines(sides)
    assert line.startswith("stage discover: record: ") and line.count("discover.jsonl") == len(broken)
