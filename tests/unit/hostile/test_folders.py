# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder of a run from a stranger: what is no regular file, says two things, or can't be is refused by name; nothing
is read or written through a link."""

from __future__ import annotations

import ast
import datetime
import json
import os
import pathlib
import shutil
import tempfile
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._app import again
from ansible_collections.linerate.rdma.plugins.module_utils._app.again import (
    compare_folders,
    rejudge_run,
    sign_sheet,
    start_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import _read_source
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES, OfListedNodes
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import Fact, RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store import files
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.history import keep_run, list_kept
from ansible_collections.linerate.rdma.plugins.module_utils._store.records import read_head, read_records, write_record
from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start
from ansible_collections.linerate.rdma.tests.unit.examples import examples

UTILS = pathlib.Path(__file__).resolve().parents[3] / "plugins" / "module_utils"
SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "judge" / "run"
RUN = "20260102T030405Z-a1b2c3"
TIME = "2026-01-02T03:04:05+00:00"
#: a file of each kind, and what of it the strict reader looks at
FILES = (
    "run.json",
    "facts/bandwidth/cluster.json",
    "facts/hcas/node-1.json",
    "facts/firmware/node-1.json",
    "stages/bandwidth.jsonl",
)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """The folder of a green run."""
    shutil.copytree(SCENARIO, tmp_path / "run")
    return tmp_path / "run"


def link(path: pathlib.Path) -> None:
    away = path.parent.parent / f"away-{path.name}"
    path.rename(away)
    path.symlink_to(away)


def fifo(path: pathlib.Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: pathlib.Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def dangling(path: pathlib.Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere")


def in_its_place(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


def large(path: pathlib.Path) -> None:
    os.truncate(path, files.MOST_BYTES * 5)


def linked_folder(path: pathlib.Path) -> None:
    """Each folder between the run and the file; of run.json there is none, so it is the file."""
    if path.name == "run.json":
        link(path)
    else:
        link(path.parent)


def changed(**changes: typing.Any) -> typing.Callable[[pathlib.Path], None]:
    """The first mapping of the file with other values; None takes a key away."""

    def change(path: pathlib.Path) -> None:
        first, *rest = (
            path.read_text(encoding="utf-8").splitlines()
            if path.suffix == ".jsonl"
            else [path.read_text(encoding="utf-8")]
        )
        data = {**json.loads(first), **changes}
        path.write_text(
            "\n".join([json.dumps({key: value for key, value in data.items() if value is not None}), *rest]) + "\n",
            encoding="utf-8",
        )

    return change


def said(text: str) -> typing.Callable[[pathlib.Path], None]:
    """The same with one more key at the end of the first mapping, as text."""

    def change(path: pathlib.Path) -> None:
        first, *rest = (
            path.read_text(encoding="utf-8").splitlines()
            if path.suffix == ".jsonl"
            else [path.read_text(encoding="utf-8").strip()]
        )
        path.write_text("\n".join([f"{first[:-1].rstrip()},{text}}}", *rest]) + "\n", encoding="utf-8")

    return change


def times(moment: str) -> typing.Callable[[pathlib.Path], None]:
    def change(path: pathlib.Path) -> None:
        name = {"run.json": "started", "bandwidth.jsonl": "finished"}.get(path.name, "time")
        changed(**{name: moment})(path)

    return change


DAMAGE: typing.Mapping[str, typing.Callable[[pathlib.Path], None]] = {
    "a link": link,
    "a link in its place": linked_folder,
    "a FIFO": fifo,
    "a device": device,
    "a link to nothing": dangling,
    "a folder": in_its_place,
    "too large": large,
    "a key twice": said(f'"run":"{RUN}"'),
    "NaN": said('"more":NaN'),
    "Infinity": said('"more":-Infinity'),
    "too deep": said('"more":' + "[" * 900 + "]" * 900),
    "schema 0": changed(schema=0),
    "schema -5": changed(schema=-5),
    "no schema": changed(schema=None),
    "schema true": changed(schema=True),
    "schema 1.0": changed(schema=1.0),
    "1999": times("1999-12-31T23:59:59+00:00"),
    "2099": times("2099-01-01T00:00:00+00:00"),
    "no zone": times("2026-01-02T03:04:05"),
    "no time": times("yesterday"),
}


def read(folder: pathlib.Path, name: str) -> str:
    """Why a file is refused; empty where it is taken."""
    facts = FactFolder(str(folder), RUN)
    try:
        if name == "run.json":
            facts.start()
        elif name.startswith("facts/"):
            _facts, kind, node = name.split("/")
            facts.read(kind, node[: -len(".json")])
        else:
            found, unread = read_records(str(folder / "stages"))
            return "" if "bandwidth" in found else unread["bandwidth"]
    except FileError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_refused_is_named(tmp_path: pathlib.Path, name: str) -> None:
    for damage, do in DAMAGE.items():
        folder = tmp_path / damage
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(SCENARIO / name, folder / name)
        assert read(folder, name) == ""
        do(folder / name)
        place = name.rpartition("/")[0] if damage == "a link in its place" else name
        assert place in read(folder, name), damage


@pytest.mark.parametrize("name", FILES)
def test_the_verdict_is_never_better_for_a_file_that_is_refused(
    folder: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    (fifo if name.endswith("cluster.json") else link)(folder / name)
    try:
        answer = rejudge_run(str(folder), str(tmp_path / "judged"), {}, "2.19.0")
    except FileError as error:
        assert name == "run.json" and name in str(error)
        return
    assert not answer["green"] and answer["verdict"] != "GREEN"
    assert name in (tmp_path / "judged" / "report.json").read_text(encoding="utf-8"), "the report names it"


@pytest.mark.parametrize("value", [[5], 5, {"a": 1}, [{"topology": 5}], [{"topology": {"nodes": [], "links": [{}]}}]])
def test_topologies_of_another_form_are_an_error_of_their_node(tmp_path: pathlib.Path, value: typing.Any) -> None:
    for name in ("a", "b"):
        run = FactFolder(str(tmp_path / name), RUN)
        run.begin(RunStart(RUN, TIME, nodes=("node-1",)))
        run.write("topologies", "node-1", value if name == "b" else [])
    answer = compare_folders(str(tmp_path / "a"), str(tmp_path / "b"))
    assert answer["count"] == 1 and "-> unknown: node-1: its output is not valid: value" in answer["lines"][0]


@pytest.mark.parametrize("value", [5, True, "node-1"])
def test_listed_nodes_of_another_form_are_named(tmp_path: pathlib.Path, value: typing.Any) -> None:
    source = next(item for part in SOURCES.values() for item in part.values() if isinstance(item, OfListedNodes))
    run = FactFolder(str(tmp_path), RUN)
    run.begin(RunStart(RUN, TIME, nodes=("node-1",)))
    run.write(source.listed_by, value=value)
    with pytest.raises(FileError, match="the value is neither a list nor a mapping of nodes"):
        _read_source(run, run.start(), source)


def test_a_run_names_no_endless_list_of_versions(folder: pathlib.Path) -> None:
    path = folder / "run.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps({**data, "versions": {f"part {number}": "1" for number in range(101)}}), encoding="utf-8"
    )
    with pytest.raises(FileError, match="names 101 versions; the limit is 100"):
        read_start(str(folder))


def test_the_recorded_folder_is_taken_as_it_is(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert rejudge_run(str(folder), str(tmp_path / "judged"), {}, "2.19.0")["verdict"] == "GREEN"


def test_other_readers_of_a_folder_refuse_the_same(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The questions, the difference, the head of a stage, and runs that are kept."""
    fifo(folder / "facts" / "hcas" / "node-1.json")
    device(folder / "stages" / "fabric.jsonl")
    facts = FactFolder(str(folder), RUN)
    assert "a FIFO" in facts.all_of("node-1")[1]["hcas"]
    assert read_head(str(folder / "stages"), "fabric") is None
    assert "a link" in read_records(str(folder / "stages"))[1]["fabric"]
    shutil.copytree(SCENARIO, tmp_path / "before")
    answer = compare_folders(str(tmp_path / "before"), str(folder))
    assert answer["count"] > 0, "what can't be read differs"
    link(folder / "facts")
    with pytest.raises(FileError, match=r"/facts is a link"):
        facts.all_of("node-1")


def test_the_folder_itself_may_be_a_link_of_the_user(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "latest").symlink_to(folder)
    assert rejudge_run(str(tmp_path / "latest"), str(tmp_path / "judged"), {}, "2.19.0")["verdict"] == "GREEN"


@pytest.mark.parametrize("run", ["../../etc/cron.d/x", "a/b", "", ".", "-x", "a" * 101, "a\n", "\u202e"])
def test_the_name_of_a_run_is_no_path(tmp_path: pathlib.Path, run: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(to_data(RunStart(run, TIME))), encoding="utf-8")
    with pytest.raises(FileError, match=r"run\.json: run is"):
        read_start(str(tmp_path))


def test_a_clock_may_be_a_little_ahead(tmp_path: pathlib.Path) -> None:
    soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)).isoformat()
    (tmp_path / "run.json").write_text(json.dumps(to_data(RunStart(RUN, soon))), encoding="utf-8")
    assert start_of(str(tmp_path)).run == RUN


@pytest.mark.parametrize("value", ["-1.0", "1e999"])
def test_a_figure_that_no_link_has_is_refused(folder: pathlib.Path, tmp_path: pathlib.Path, value: str) -> None:
    path = folder / "facts" / "bandwidth" / "cluster.json"
    text = path.read_text(encoding="utf-8")
    start = text.index('"average_gbps":') + len('"average_gbps":')
    path.write_text(text[:start] + value + text[text.index(",", start) :], encoding="utf-8")
    answer = rejudge_run(str(folder), str(tmp_path / "judged"), {}, "2.19.0")
    report = (tmp_path / "judged" / "report.json").read_text(encoding="utf-8")
    assert not answer["green"] and ("average_gbps" in report or "bandwidth/cluster.json" in report)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_no_number_is_none(value: float) -> None:
    with pytest.raises(LoadError, match="expected a number"):
        load(dict[str, float], {"seconds": value}, "fact")


@pytest.mark.parametrize("part", ["judged", "judged/stages", "judged/report.html", "judged/stages/fabric.jsonl"])
def test_judge_writes_nothing_through_a_link(folder: pathlib.Path, tmp_path: pathlib.Path, part: str) -> None:
    """A link ``judged`` in a stranger's folder made ``judge`` overwrite the report and the records of another run with
    GREEN."""
    victim = tmp_path / "victim"
    shutil.copytree(SCENARIO, victim)
    (victim / "report.html").write_text("NOT GREEN", encoding="utf-8")
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    (folder / part).parent.mkdir(parents=True, exist_ok=True)
    goal = {"judged": victim, "judged/stages": victim / "stages", "judged/report.html": victim / "report.html"}.get(
        part, victim / "stages" / "fabric.jsonl"
    )
    (folder / part).symlink_to(goal)
    try:
        rejudge_run(str(folder), "", {}, "2.19.0")
    except FileError as error:
        assert f"{part} is a link" in str(error) and part in ("judged", "judged/stages")
    else:
        assert part not in ("judged", "judged/stages") and not (folder / part).is_symlink(), (
            "the link is replaced, and its goal stays"
        )
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before


def test_what_was_there_of_a_judgement_does_not_outlive_one_that_ends_early(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = (
        "report.html",
        "report.json",
        "report.prom",
        "report.xml",
        "report.md",
        "difference.html",
        "difference.json",
    )
    names = (*pages, "stages/fabric.jsonl", "stages/bandwidth.jsonl")
    (folder / "judged" / "stages").mkdir(parents=True)
    for name in names:
        (folder / "judged" / name).write_text("forged()", encoding="utf-8")

    def ends(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(again, "judge_again", ends)
        with pytest.raises(KeyboardInterrupt):
            rejudge_run(str(folder), "", {}, "2.19.0")
    assert not [name for name in names if (folder / "judged" / name).exists()]
    assert rejudge_run(str(folder), "", {}, "2.19.0")["verdict"] == "GREEN"


def test_a_page_of_another_run_stays_in_a_folder_of_the_users_own(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "difference.html").write_text("mine", encoding="utf-8")
    rejudge_run(str(folder), str(tmp_path / "own"), {}, "2.19.0")
    assert (tmp_path / "own" / "difference.html").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("part", ["facts", "facts/hcas", "stages", "runs"])
def test_no_writer_follows_a_link_below_the_folder(folder: pathlib.Path, tmp_path: pathlib.Path, part: str) -> None:
    away = tmp_path / "away"
    shutil.rmtree(folder / part, ignore_errors=True)
    (away / RUN).mkdir(parents=True)
    (away / "hcas").mkdir()
    (away / "hcas" / "mine.json").write_text("{}", encoding="utf-8")
    (away / "mine.json").write_text("{}", encoding="utf-8")
    (folder / part).symlink_to(away)
    before = sorted(away.rglob("*"))
    facts = FactFolder(str(folder), RUN)
    record = read_records(str(SCENARIO / "stages"))[0]["fabric"]
    actions: typing.Mapping[str, typing.Callable[[], object]] = {
        "facts": lambda: facts.write("hcas", "node-1", 1),
        "facts/hcas": lambda: facts.write("hcas", "node-1", 1),
        "stages": lambda: write_record(str(folder / "stages"), record),
        "runs": lambda: keep_run(str(folder), RUN, 1),
    }
    with pytest.raises(FileError, match=f"{part} is a link"):
        actions[part]()
    if part.startswith("facts"):
        with pytest.raises(FileError, match=f"{part} is a link"):
            facts.resume(facts.start(), ())
    if part == "runs":
        with pytest.raises(FileError, match="runs is a link"):
            list_kept(str(folder))
    assert sorted(away.rglob("*")) == before


def test_the_sheet_and_the_difference_replace_a_link_and_leave_its_goal(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    goal = tmp_path / "goal"
    goal.write_text("mine", encoding="utf-8")
    shutil.copytree(SCENARIO, tmp_path / "before")
    for name in ("difference.json", "difference.html", "sheet.html"):
        (folder / name).symlink_to(goal)
    compare_folders(str(tmp_path / "before"), str(folder))
    sign_sheet(
        str(folder), str(folder / "sheet.html"), "a.tar.gz", "0" * 64, {"customer": "", "cluster": "", "contractor": ""}
    )
    assert goal.read_text(encoding="utf-8") == "mine" and not any(
        (folder / name).is_symlink() for name in ("difference.json", "sheet.html")
    )


def test_a_file_has_the_mode_that_the_umask_leaves(tmp_path: pathlib.Path) -> None:
    old = os.umask(0o077)
    try:
        FactFolder(str(tmp_path / "report"), RUN).begin(RunStart(RUN, TIME))
    finally:
        os.umask(old)
    assert (tmp_path / "report" / "run.json").stat().st_mode & 0o777 == 0o600
    FactFolder(str(tmp_path / "report"), RUN).write("hcas", "node-1", 1)
    assert (tmp_path / "report" / "facts" / "hcas" / "node-1.json").stat().st_mode & 0o777 == 0o666 & ~old


def test_a_secret_in_the_first_of_two_keys_is_refused_with_the_file(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    path = pathlib.Path(folder.write("hcas", "node-1", {"token": "x"}))
    path.write_text(
        path.read_text(encoding="utf-8").replace('"token":', '"token":"hunter2","token":'), encoding="utf-8"
    )
    with pytest.raises(FileError, match="'token' is not a key that occurs once"):
        folder.read("hcas", "node-1")


@hypothesis.given(some.binary(max_size=200), some.sampled_from(FILES))
@hypothesis.settings(max_examples=examples(40))
def test_any_bytes_are_an_error_that_names_the_file(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        path = pathlib.Path(made) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            if name.startswith("stages"):
                found, unread = read_records(str(path.parent))
                assert not found and (not unread or name in unread["bandwidth"])
            else:
                _top, *kind = name.split("/")
                read = (
                    (lambda: FactFolder(made, RUN).read(kind[0], kind[1][: -len(".json")]))
                    if kind
                    else (lambda: read_start(made))
                )
                assert read() is None
        except RdmaError as error:
            assert name in str(error)


def test_whatever_a_tool_prints_can_be_read_back(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), RUN)
    folder.write("hcas", "node-1", {"said": "\ud800 \\ud800 \U0001f600"})
    found = folder.read("hcas", "node-1")
    assert found is not None and found.value == {"said": "\\ud800 \\ud800 \U0001f600"}


def test_only_the_strict_reader_opens_files_of_a_folder() -> None:
    """So that no reader is added that follows links or takes NaN."""
    places = [UTILS / "_store" / f"{name}.py" for name in ("facts", "records", "history", "earlier", "earlier_errors")]
    places += [path for path in (UTILS / "_app").glob("*.py") if path.name != "__init__.py"]
    for place in places:
        called = [
            node.func for node in ast.walk(ast.parse(place.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        ]
        names = {
            node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            for node in called
        }
        assert not names & {"open", "loads", "read_text", "read_bytes", "write_bytes"}, place.name


def test_a_fact_is_what_a_run_writes(tmp_path: pathlib.Path) -> None:
    """The strict reader takes all that the writer makes."""
    assert Fact(RUN, TIME, "node-1", "hcas", 1).schema == 1
    folder = FactFolder(str(tmp_path), RUN)
    folder.begin(RunStart(RUN, TIME, nodes=("node-1",)))
    folder.write("hcas", "node-1", {"a": [1, 2.5, None, True, "x"]})
    assert folder.of_nodes("hcas", ["node-1"])["node-1"] == {"value": {"a": [1, 2.5, None, True, "x"]}, "error": None}
