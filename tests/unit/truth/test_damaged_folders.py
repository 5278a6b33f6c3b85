# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders of sick runs that are damaged, swapped, aged or cut, as disks and people do: judged again, no such folder is
better than the whole one."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import random
import shutil
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import start_of
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import records_dir
from ansible_collections.linerate.rdma.plugins.module_utils._app.publish import report_of
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent
from ansible_collections.linerate.rdma.plugins.module_utils._check.rejudge import judge_again
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import OPEN
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.verdict import GREEN
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_records
from ansible_collections.linerate.rdma.tests.unit.truth.breaks import Break, cases
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import Fleet, healthy
from ansible_collections.linerate.rdma.tests.unit.truth.folder import SMALL, write
from ansible_collections.linerate.rdma.tests.unit.truth.judge import CLOSED, verdict

#: sick runs, and damages of each: in each run of the tests, and before a release
RUNS, DAMAGES, MANY_RUNS, MANY_DAMAGES = 4, 6, 40, 40


class Judged(typing.NamedTuple):
    """What a folder comes to. stages: whose gate is open."""

    verdict: str
    stages: frozenset[str]


def judge_folder(path: pathlib.Path) -> Judged:
    """Judge a run again, as playbook judge does, without the pages of a report."""
    start = start_of(str(path))
    folder = FactFolder(str(path), start.run)
    records, unreadable = read_records(records_dir(str(path)))

    def refused(_stage: str) -> typing.Sequence[str]:
        found, folder.refused = folder.refused, []
        return found

    of_run = {stage: record for stage, record in records.items() if record.run == start.run}
    wishes = RawIntent(start.fabrics, start.waivers, start.cluster)
    judged = judge_again(start, of_run, wishes, lambda stage: read_facts(folder, stage), True, refused)
    report = report_of(folder, {**records, **judged}, unreadable, {})
    return Judged(report.verdict, frozenset(stage.name for stage in report.stages if stage.state == OPEN))


def sick_fleets(count: int) -> typing.Iterator[tuple[str, Fleet]]:
    """Fleets with one fact that closes a gate, and which."""
    fleet = healthy(SMALL)
    found: list[Break] = list(cases(fleet, "one"))
    for broken in random.Random(f"folders {count}").sample(found, len(found)):
        if count and verdict(fleet, broken) == CLOSED:
            count -= 1
            yield broken.words, dataclasses.replace(fleet, facts=broken.facts)


def damage(path: pathlib.Path, chance: random.Random) -> str:
    """Damage one file of a run.

    :returns: what was done, in words
    """
    files = sorted(item for item in path.rglob("*") if item.is_file())
    file = chance.choice(files)
    name = file.relative_to(path).as_posix()
    others = [item for item in files if item != file and item.parent == file.parent]
    way = chance.choice(
        (
            "removed",
            "cut",
            "of another run",
            "older",
            "without an entry",
            "without values",
            *(("swapped", "copied") if others else ()),
        )
    )
    if way == "removed":
        file.unlink()
    elif way == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif way in ("swapped", "copied"):
        other = chance.choice(others)
        own = file.read_bytes()
        file.write_bytes(other.read_bytes())
        if way == "swapped":
            other.write_bytes(own)
        way = f"{way} with {other.name}"
    else:
        lines = (
            [_changed(json.loads(line), way, chance) for line in file.read_text(encoding="utf-8").splitlines()]
            if file.suffix == ".jsonl"
            else []
        )
        text = (
            "\n".join(map(json.dumps, lines))
            if lines
            else json.dumps(_changed(json.loads(file.read_text(encoding="utf-8")), way, chance))
        )
        file.write_text(f"{text}\n", encoding="utf-8")
    return f"{name} {way}"


def _changed(data: typing.Any, way: str, chance: random.Random) -> typing.Any:
    """The data of a file, or of one of its lines."""
    if not isinstance(data, dict):
        return data
    if way == "of another run":
        return {**data, "run": "20250102T030405Z-000000"} if "run" in data else data
    if way == "older":
        return {
            key: "2025-01-02T03:04:05+00:00" if isinstance(item, str) and item.startswith("2026-") else item
            for key, item in data.items()
        }
    # what a run began with has its nodes, and a fact its value
    if data.get("nodes") and way == "without an entry":
        gone = chance.choice(data["nodes"])
        return {**data, "nodes": [node for node in data["nodes"] if node != gone]}
    value = data.get("value")
    if way == "without values" or not isinstance(value, (dict, list)) or not value:
        return (
            {**data, "value": type(value)() if isinstance(value, (dict, list)) else None} if "value" in data else data
        )
    if isinstance(value, list):
        gone = chance.randrange(len(value))
        return {**data, "value": value[:gone] + value[gone + 1 :]}
    left_out = chance.choice(sorted(value))
    return {**data, "value": {key: item for key, item in value.items() if key != left_out}}


def better(runs: int, damages: int, place: pathlib.Path) -> typing.Iterator[str]:
    """What gets better by a damage."""
    for number, (words, fleet) in enumerate(sick_fleets(runs)):
        whole = place / f"run-{number}"
        write(fleet, whole)
        before = judge_folder(whole)
        assert before.verdict != GREEN, words
        for turn in range(damages):
            chance, hurt = random.Random(f"{words} {turn}"), place / "hurt"
            shutil.rmtree(hurt, ignore_errors=True)
            shutil.copytree(whole, hurt)
            done = damage(hurt, chance)
            try:
                now = judge_folder(hurt)
            except RdmaError:
                # it is no run any more, and the reader is told so
                continue
            if now.verdict == GREEN or not now.stages <= before.stages:
                yield f"{words}; {done}: {now.verdict}, open by it: {sorted(now.stages - before.stages)}"


def test_a_folder_that_is_damaged_is_no_better(tmp_path: pathlib.Path) -> None:
    assert list(better(RUNS, DAMAGES, tmp_path)) == []


@pytest.mark.thorough
def test_no_folder_of_many_that_are_damaged_is_better(tmp_path: pathlib.Path) -> None:
    assert list(better(MANY_RUNS, MANY_DAMAGES, tmp_path)) == []
