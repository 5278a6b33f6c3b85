# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What parts of the tests took: shown beside what they took before, kept, and written into docs/lab.md."""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import typing

import pytest

from dev import parts, test, times
from dev.idle import idle_group, within
from dev.parts import ALONE, BESIDE, END, LAB, MEANWHILE, Part
from dev.sizes import CHECK
from dev.steps import StepError
from dev.times import FILLED, NEW, Time

PAGE = "# Lab\n\n<!-- made by 'python -m dev.times' -->\n<!-- end -->\n\n## More\n"
BUILT = Time("lab build", 900.0, 1500.4, cached=False)
LINTED = Time("linters", 120.4, 200.0)


def test_a_page_takes_the_times_of_a_run_and_keeps_what_it_does_not_tell_of() -> None:
    names = ["lab build", "linters", "lab"]
    new = times.put_times(PAGE, [BUILT, LINTED], names)
    assert "| lab build | 900 | 1500 | - | - |\n| linters | 120 | 200 | - | - |\n<!-- end -->\n\n## More\n" in new
    both = times.put_times(new, [Time("lab build", 3.0, 2.0, cached=True), Time("linters", 60.0, 100.0)], names)
    assert "| lab build | 900 | 1500 | 3 | 2 |\n| linters | 120 | 200 | 60 | 100 |\n" in both
    assert times.read_page(both)[NEW] == {"lab build": (900.0, 1500.0), "linters": (120.0, 200.0)}
    assert times.read_page(both)[FILLED] == {"lab build": (3.0, 2.0), "linters": (60.0, 100.0)}
    assert "lab build" not in times.put_times(both, [LINTED], ["linters"]), "a part that is no more has no row"


def test_a_part_that_failed_has_no_time() -> None:
    failed = Time("linters", 1.0, 1.0, failed=True)
    assert "| linters | 120" in times.put_times(
        times.put_times(PAGE, [BUILT, LINTED], ["linters"]), [BUILT, failed], ["linters"]
    )
    with pytest.raises(StepError, match="no part that went well"):
        times.put_times(PAGE, [failed], ["linters"])


@pytest.mark.parametrize("page", ["# Lab\n", PAGE + PAGE])
def test_a_page_without_its_place_is_refused(page: str) -> None:
    with pytest.raises(StepError, match=f"{page.count('made by')} places"):
        times.put_times(page, [LINTED], ["linters"])


@pytest.mark.parametrize("row", ["| linters | 1 | 2 | 3 |", "| linters | 1 | 2 | 3 | four |", "linters"])
def test_a_row_that_is_none_is_named(row: str) -> None:
    with pytest.raises(StepError, match="row of times") as refused:
        times.read_page(PAGE.replace("<!-- end -->", f"| head |\n|---|\n{row}\n<!-- end -->"))
    assert row in str(refused.value)


def test_a_table_shows_what_grew_against_a_machine_in_the_same_state() -> None:
    known: times.Known = {
        NEW: {"linters": (100.0, None), "lab build": (400.0, 700.0)},
        FILLED: {"linters": (50.0, 60.0)},
    }
    head, built, linted, failed = times.show([BUILT, LINTED, Time("lab", 5.0, 1.0, failed=True)], known)
    assert head.split() == ["part", "s", "processor", "s", "builds", "before"]
    assert built.split() == ["lab", "build", "900", "1500", "made", "400", "500", "s", "more"]
    assert linted.split() == ["linters", "120", "200", "-", "100", "20", "s", "more"]
    assert failed.split() == ["lab", "5", "1", "-", "-", "FAILED"]
    _head, alone = times.show([Time("linters", 59.0, 61.0)], known)
    assert alone.split() == ["linters", "59", "61", "-", "50"], "nine seconds are the machine's mood"
    assert len(times.show([], known)) == 1


def test_builds_on_demand_do_not_make_a_machine_new() -> None:
    assert times.state_of([BUILT]) == NEW
    assert (
        times.state_of(
            [Time("lab build", 1.0, 1.0, cached=True), Time("lab build, on demand", 900.0, 900.0, cached=False)]
        )
        == FILLED
    )


def test_the_page_of_the_lab_can_be_read() -> None:
    known = times.read_page(times.PAGE.read_text(encoding="utf-8"))
    assert {part for rows in known.values() for part in rows} <= {part.name for part in parts.PARTS}


def test_the_part_that_builds_has_its_name_in_the_parts() -> None:
    assert [part.name for part in parts.PARTS if part.place == BESIDE] == [times.BUILDS]


def part_of(name: str, script: str, place: str = ALONE) -> Part:
    return Part(name, CHECK, (sys.executable, "-c", script), (name,), place)


@pytest.fixture(name="run")
def fixture_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> test.Run:
    monkeypatch.setattr("dev.steps.LOGS", tmp_path / "logs")
    return test.Run()


def test_parts_run_in_their_places_and_each_has_its_own_times(run: test.Run, capfd: pytest.CaptureFixture[str]) -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\n"
    # of a child of the part as well
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])"
    built = part_of("lab build", "print('- build disk')", BESIDE)
    assert (
        run.run(
            [built, part_of("end", "", END), part_of("lab", "", LAB), part_of("busy", busy), part_of("nested", nested)]
        )
        is None
    )
    by_name = {time.part: time for time in run.times}
    assert [time.part for time in run.times] == ["busy", "nested", "lab build", "lab", "end"]
    assert by_name["busy"].processor >= 0.3 and by_name["nested"].processor >= 0.3 and by_name["lab"].processor < 0.3
    assert by_name["busy"].wall >= 0.3 and not any(time.failed for time in run.times)
    assert (by_name["lab build"].cached, by_name["busy"].cached) == (False, None)
    assert "== lab build, beside what is above: ok" in capfd.readouterr().out


@pytest.mark.parametrize("grouped", [True, False])
def test_what_takes_no_processor_from_guests_runs_beside_the_lab_and_else_before_it(
    run: test.Run, monkeypatch: pytest.MonkeyPatch, grouped: bool
) -> None:
    asked: list[typing.Sequence[str]] = []

    def within(group: pathlib.Path, command: typing.Sequence[str]) -> tuple[str, ...]:
        asked.append((str(group), *command))
        return tuple(command)

    monkeypatch.setattr(test, "idle_group", lambda: contextlib.nullcontext(pathlib.Path("/group") if grouped else None))
    monkeypatch.setattr(test, "within", within)
    chosen = [
        part_of("long", "import time\ntime.sleep(0.5)", MEANWHILE),
        part_of("alone", ""),
        part_of("on", "", LAB),
        part_of("down", "", END),
    ]
    assert run.run(chosen) is None
    assert [time.part for time in run.times] == (
        ["alone", "on", "down", "long"] if grouped else ["long", "alone", "on", "down"]
    )
    assert [words[:4] for words in asked] == ([("/group", "nice", "-n", "19")] if grouped else [])


def test_what_fails_beside_the_lab_fails_the_run_and_the_lab_is_taken_down(
    run: test.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test, "idle_group", lambda: contextlib.nullcontext(pathlib.Path("/group")))
    monkeypatch.setattr(test, "within", lambda _group, command: tuple(command))
    log = run.run(
        [part_of("wrong", "raise SystemExit(3)", MEANWHILE), part_of("on", "", LAB), part_of("down", "", END)]
    )
    assert (
        log is not None
        and log.name == "test-wrong.log"
        and [time.part for time in run.times] == ["on", "down", "wrong"]
    )


def test_a_group_is_made_only_where_there_are_groups(tmp_path: pathlib.Path) -> None:
    with idle_group([tmp_path, tmp_path / "nowhere"]) as group:
        assert group is None
    assert list(tmp_path.iterdir()) == []


def test_all_that_a_part_starts_is_in_its_group(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cgroup.procs").write_text("", encoding="ascii")
    done = subprocess.run(
        within(tmp_path, (sys.executable, "-c", "import os; print(os.getpid())")),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert (tmp_path / "cgroup.procs").read_text(encoding="ascii") == done.stdout


def test_what_fails_ends_what_runs_beside_it_and_has_its_time(run: test.Run) -> None:
    endless = part_of("lab build", "import time\ntime.sleep(600)", BESIDE)
    log = run.run(
        [
            endless,
            part_of("fine", "print(1)"),
            part_of("wrong", "print('E  wrong')\nraise SystemExit(3)"),
            part_of("never", ""),
            part_of("up", "", LAB),
        ]
    )
    assert log is not None and log.read_text() == "E  wrong\n"
    assert [(time.part, time.failed) for time in run.times] == [("fine", False), ("wrong", True), ("lab build", True)]
    assert run.times[-1].cached is None, "it did not get to its end"


def test_the_lab_is_taken_down_also_when_something_on_it_failed(run: test.Run) -> None:
    log = run.run([part_of("up", "raise SystemExit(1)", LAB), part_of("tests", "", LAB), part_of("down", "", END)])
    assert log is not None and log.name == "test-up.log"
    assert [time.part for time in run.times] == ["up", "down"]


def test_a_run_is_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "build" / "times.json"
    times.keep("test", [BUILT, LINTED], 1021.04, path)
    kept: dict[str, typing.Any] = json.loads(path.read_text(encoding="utf-8"))
    assert (kept["size"], kept["state"], kept["seconds"]) == ("test", NEW, 1021.0)
    assert [Time(**part) for part in kept["parts"]] == [BUILT, LINTED]


def test_an_unknown_size_is_refused() -> None:
    root = pathlib.Path(test.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "dev.test", "quick"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "there is no size 'quick'" in done.stderr and "check, test, test-all" in done.stderr
