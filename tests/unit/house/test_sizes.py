# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What 'make check', 'make test' and 'make test-all' hold: each test, linter and release once, at the smallest size
that has it, as CONTRIBUTING.md says."""

from __future__ import annotations

import ast
import collections
import dataclasses
import itertools
import pathlib
import re
import sys
import typing

import pytest
import yaml

from dev import lint, parts, sanity
from dev.cores import NEWEST
from dev.sizes import ALL, CHECK, SIZES, TEST, up_to
from dev.steps import StepError

ROOT = pathlib.Path(__file__).resolve().parents[3]
ON_LAB = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests/lab").glob("test_*.py"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
#: of a machine: the oldest, that of the controller, and others
CONTROLLER = f"3.{sys.version_info.minor}"
OTHERS = [version for version in ("3.10", "3.12", "3.13") if version != CONTROLLER]
PYTHONS = ["3.9", *OTHERS, CONTROLLER]


def in_lab(part: parts.Part) -> set[str]:
    """The files of tests on the lab that a part gives to pytest."""
    words = list(part.command)
    left_out = {word for option, word in itertools.pairwise(words) if option == "--ignore"}
    named = {word for word in words if word in ON_LAB} - left_out
    return named | (set(ON_LAB) - left_out if "tests/lab" in words else set())


def marker(part: parts.Part) -> str:
    """The tests that a part chooses by their marker; empty: all."""
    return next(
        (
            word
            for option, word in itertools.pairwise(part.command)
            if option == "-m" and word in ("thorough", "not thorough")
        ),
        "",
    )


def is_thorough(path: str) -> bool:
    """Whether a whole file is marked."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return any(
        isinstance(node, ast.Assign) and ast.unparse(node) == "pytestmark = pytest.mark.thorough" for node in tree.body
    )


def test_the_table_is_what_runs() -> None:
    page = parts.PAGE.read_text(encoding="utf-8")
    assert parts.put_table(page) == page, "run: python -m dev.parts"
    with pytest.raises(StepError, match="0 places"):
        parts.put_table("# Contributing\n")


def test_a_size_has_all_of_the_smaller_ones_in_the_same_order() -> None:
    assert [up_to(size) for size in SIZES] == [(CHECK,), (CHECK, TEST), (CHECK, TEST, ALL)]
    assert parts.parts_of(ALL) == parts.PARTS
    for size in SIZES:
        assert list(parts.parts_of(size)) == [part for part in parts.PARTS if part in parts.parts_of(size)]
        assert re.search(rf"^{size}: setup .*\n\t@\$\(VENV\)/python -m dev\.test {size}$", MAKEFILE, re.MULTILINE), (
            "make runs it"
        )
    assert {part.place for part in parts.parts_of(CHECK)} == {parts.ALONE}, "a check has no lab"


def test_nothing_is_in_two_parts() -> None:
    names = [part.name for part in parts.PARTS]
    # what makes the lab ready for others may be asked for again
    commands = [part.command for part in parts.PARTS if not {"dev.site", "up", "down"} & set(part.command)]
    for many in (names, commands):
        assert [each for each, count in collections.Counter(many).items() if count > 1] == []
    held = [what for part in parts.PARTS for what in part.holds]
    assert [what for what, count in collections.Counter(held).items() if count > 1] == [] and all(held)


@pytest.mark.parametrize("path", ON_LAB)
def test_each_test_on_the_lab_is_in_one_part(path: str) -> None:
    chosen = collections.Counter(marker(part) for part in parts.PARTS if path in in_lab(part))
    if is_thorough(path):
        assert sum(chosen[mark] for mark in ("", "thorough")) == 1, "its tests run once"
    else:
        # the marker parts them: what the one leaves out is in the other
        assert chosen == {"not thorough": 1, "thorough": 1}
    sizes = {part.size for part in parts.PARTS if path in in_lab(part) and marker(part) != "not thorough"}
    assert sizes == {ALL}


def test_what_is_run_apart_is_so_for_make_as_well() -> None:
    (apart,) = re.findall(r"\$\(foreach name,([a-z_ ]+),--ignore", MAKEFILE)
    assert tuple(apart.split()) == parts.APART
    assert {f"tests/lab/test_{name}.py" for name in parts.APART} <= set(ON_LAB)


@pytest.mark.parametrize(
    "folder",
    sorted(
        {path.parent.relative_to(ROOT) for path in (ROOT / "tests").glob("*/test_*.py")} | {pathlib.Path("tests/unit")}
    ),
)
def test_each_folder_of_tests_is_in_a_part(folder: pathlib.Path) -> None:
    assert any(str(folder) in " ".join(part.holds) for part in parts.PARTS)


def test_each_scenario_of_molecule_is_in_one_part() -> None:
    scenarios = sorted(path.parent.name for path in (ROOT / "extensions/molecule").glob("*/molecule.yml"))
    tested = [
        word
        for part in parts.PARTS
        for option, word in itertools.pairwise(part.command)
        if option == "--scenario-name" and "test" in part.command
    ]
    assert sorted(tested) == scenarios


def test_each_linter_is_in_one_part() -> None:
    names = [name for name, _size, _lint in lint.LINTERS]
    held = [what for part in parts.PARTS for what in part.holds if what in names]
    assert sorted(held) == sorted(names)
    for part in parts.PARTS:
        sizes = {size for name, size, _lint in lint.LINTERS if name in part.holds}
        assert sizes in (set(), {part.size}) and (not sizes or part.command[-2:] == ("dev.lint", part.size)), (
            "it runs where the table has it"
        )


def test_each_release_is_in_one_part_and_no_test_of_it_runs_twice() -> None:
    releases = {NEWEST, *(path.stem.partition("-")[2] for path in (ROOT / "dev").glob("sanity-*.txt"))}
    assert {invocation.release for invocation in sanity.INVOCATIONS} == releases
    for part in parts.PARTS:
        names = [invocation.name for invocation in sanity.INVOCATIONS if invocation.name in part.holds]
        assert not names or part.command[-2:] == ("dev.sanity", part.size)
        assert all(invocation.size == part.size for invocation in sanity.INVOCATIONS if invocation.name in names)
    assert all(sum(invocation.name in part.holds for part in parts.PARTS) == 1 for invocation in sanity.INVOCATIONS)
    runs = [run for invocation in sanity.INVOCATIONS for run in runs_of(invocation)]
    assert [run for run, count in collections.Counter(runs).items() if count > 1] == []
    for test in sanity.ON_PYTHONS:
        assert {python for release, of, python, _path in runs if (release, of) == (NEWEST, test)} == set(PYTHONS), (
            "all of them, in the largest size at the latest"
        )


#: a file of each kind: of a plugin, a role, and of what the tarball leaves out
SOME_FILES = (
    "plugins/modules/fabric.py",
    "roles/tuning/README.md",
    "dev/sanity.py",
    "lab/build.py",
    "tests/config.yml",
)


def test_the_newest_release_reads_each_file_and_what_ships_in_make_test() -> None:
    whole = [each for each in sanity.INVOCATIONS if each.release == NEWEST and not each.tests]
    read = {path: [each.size for each in whole if each.has_file(path)] for path in SOME_FILES}
    assert list(read.values()) == [[TEST], [TEST], [ALL], [ALL], [ALL]]
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["build_ignore"]
    assert {folder.rstrip("/") for folder in sanity.UNSHIPPED_FOLDERS} <= set(ignored)
    limits = {each.size: each.limits for each in whole}
    assert limits[ALL] == sanity.UNSHIPPED_FOLDERS
    assert limits[TEST] == tuple(word for folder in sanity.UNSHIPPED_FOLDERS for word in ("--exclude", folder))


def runs_of(invocation: sanity.Invocation) -> typing.Iterator[tuple[str, str, str, str]]:
    """Release, test, Python and a file of what ansible-test runs by a command line."""
    command = sanity.command_of(invocation, PYTHONS)
    pythons = [word for option, word in itertools.pairwise(command) if option == "--target-python"]
    tests = [word for option, word in itertools.pairwise(command) if option == "--test"]
    if not tests:
        skipped = [word for option, word in itertools.pairwise(command) if option == "--skip-test"]
        tests = [test for test in (*sanity.ON_PYTHONS, "all others") if test not in skipped]
    assert pythons and command[0] == "sanity"
    for test in tests:
        for python in pythons if test in sanity.ON_PYTHONS else ["the controller's"]:
            for path in filter(invocation.has_file, SOME_FILES):
                yield invocation.release, test, python, path


def test_what_runs_at_a_time_has_places_of_its_own() -> None:
    """ansible-test is not made for two in one folder, nor for two in one home."""
    of_place: dict[str, set[str]] = {}
    for invocation in sanity.INVOCATIONS:
        of_place.setdefault(invocation.place, set()).add(invocation.release)
    assert all(len(releases) == 1 for releases in of_place.values())
    for size in SIZES:
        places = [invocation.place for invocation in sanity.INVOCATIONS if invocation.size == size]
        assert len(set(places)) == len(places), "and so none waits for another one"


def test_an_invocation_for_pythons_that_are_not_here_has_no_command() -> None:
    (found,) = (each for each in sanity.INVOCATIONS if sanity.BETWEEN in each.pythons)
    between = dataclasses.replace(found, pythons=(sanity.BETWEEN,))
    assert sanity.command_of(between, ["3.9", CONTROLLER]) == []
    pythons = [python for _release, _test, python, path in runs_of(between) if path == SOME_FILES[0]]
    assert pythons == OTHERS * len(sanity.ON_PYTHONS)


def test_what_starts_processes_says_so() -> None:
    """So that 'make check' is minutes."""
    for path in sorted((ROOT / "tests/unit").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(r'(/ |with_name\()"ansible-playbook"\)', text):
            assert "pytest.mark.processes" in text, f"{path}: mark the file or the tests that start ansible-playbook"


def test_each_target_that_runs_tests_is_in_a_size_or_says_why_not() -> None:
    """By its command, or by the files that it gives to pytest."""
    others = {*SIZES, "lint", "unit", "faults"}
    left_out = {name.partition(" ")[2] for name in parts.LEFT_OUT if name.startswith("make ")}
    for name, recipe in re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE):
        files = re.findall(r"pytest (tests/lab/test_\w+\.py)", recipe)
        modules = set(
            re.findall(r"python3? -m (dev\.(?:audit|ee|runner|browser|docs))\b", recipe.replace("$(PYTHON)", "python"))
        )
        if name in others or (not files and not modules):
            continue
        here = all(any(file in in_lab(part) for part in parts.PARTS) for file in files) and all(
            any(module in part.command for part in parts.PARTS) for module in modules
        )
        assert here != (name in left_out), name
