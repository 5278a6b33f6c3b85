# SPDX-License-Identifier: GPL-3.0-or-later

"""The example of CONTRIBUTING.md: its check and its test run, its changes fit the files, and what it names exists."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import re
import sys
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from dev.explained.explanation import Explanation
from tests.unit.truth.breaks import cases, kind_of, types_of_facts
from tests.unit.truth.fleet import FEW, PAIR, ROCE, healthy
from tests.unit.truth.judge import Outcome, compared, outcomes
from tests.unit.truth.table import ROWS, Row

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = "ansible_collections.linerate.rdma."
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(typing.NamedTuple):
    """A code block of the page.

    :ivar path: the last file that the text above it names
    """

    language: str
    path: str
    text: str


def blocks() -> list[Block]:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(page):
        paths = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|yml))`", BLOCK.sub("", page[: match.start()]))
        found.append(Block(match[1], paths[-1] if paths else "", match[2]))
    return found


def of(language: str) -> list[Block]:
    return [block for block in blocks() if block.language == language]


def load_as(name: str, text: str, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Execute a text as the module of this name."""
    file = folder / f"{name.rpartition('.')[2]}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def parts_of(change: Block) -> tuple[str, str]:
    """The lines that a change keeps or takes away, and those that are there after it."""
    lines = change.text.splitlines(keepends=True)
    before, after = ("".join(line[1:] for line in lines if line[0] in (" ", sign)) for sign in "-+")
    return before, after


def changed(path: str) -> str:
    """Text of a file after all changes of the example."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for change in of("diff"):
        if change.path == path:
            text = text.replace(*parts_of(change))
    return text


def name_of(block: Block) -> str:
    return OURS + block.path.removesuffix(".py").replace("/", ".")


def test_the_check_and_its_test_of_the_example_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check, test = of("python")
    assert check.path.startswith("plugins/module_utils/_check/") and test.path.startswith("tests/unit/")
    assert not (ROOT / check.path).exists() and not (ROOT / test.path).exists(), "the example is to be a new check"
    load_as(name_of(check), check.text, tmp_path, monkeypatch)
    tests = load_as(name_of(test), test.text, tmp_path, monkeypatch)
    functions = [item for name, item in vars(tests).items() if name.startswith("test_") and inspect.isfunction(item)]
    assert len(functions) == 4
    for function in functions:
        function()


@pytest.mark.parametrize("number", range(6))
def test_each_change_of_the_example_fits_its_file(number: int) -> None:
    changes = of("diff")
    assert len(changes) == 6
    block = changes[number]
    text = (ROOT / block.path).read_text(encoding="utf-8")
    lines = block.text.splitlines()
    kept, _after = parts_of(block)
    assert kept and text.count(kept) == 1, block
    assert all(line[:1] in ("+", "-", " ") for line in lines), block
    new = {line[1:] for line in lines if line.startswith("+")} - {"", "    ),"}
    assert new and new.isdisjoint(text.splitlines()), block


def truth_of_the_example(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> dict[typing.Any, Outcome]:
    """What a run notices of each broken PSID once the check of the example is a part of stage discover."""
    check, _test = of("python")
    load_as(name_of(check), check.text, folder, monkeypatch)
    place = f"{OURS}plugins.module_utils._check.discover.check_of_the_example"
    stage = load_as(place, changed("plugins/module_utils/_check/discover/check.py"), folder, monkeypatch)
    monkeypatch.setitem(TABLE, "discover", (TABLE["discover"][0], stage.check))
    hints = {source: hint for source, hint in types_of_facts().items() if kind_of(source) == "hcas"}
    seen: dict[typing.Any, Outcome] = {}
    for shape in (PAIR, FEW, ROCE):
        broken = (item for item in cases(healthy(shape), "one", hints) if item.case.fact == "node.hcas(PF).board")
        seen.update(outcomes(healthy(shape), broken))
    return seen


def test_the_row_of_the_example_says_what_a_run_notices(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = truth_of_the_example(tmp_path, monkeypatch)
    assert {case.how for case in seen} >= {"broken", "unread"}
    path = "tests/unit/truth/table.py"
    after = load_as("tests.unit.truth.table_of_the_example", changed(path), tmp_path, monkeypatch)

    def wrong(rows: typing.Iterable[Row]) -> list[str]:
        of_psids = [row for row in rows if "hcas" in row.kinds and "node.hcas(PF).board" in row.facts]
        assert of_psids
        return [text for text in compared(seen, of_psids) if "hcas node.hcas(PF).board" in text]

    assert wrong(after.ROWS) == []
    assert wrong(ROWS) != [], "the example needs no row of its own"


def test_the_explanation_of_the_example_has_all_that_a_page_needs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = (item for item in of("diff") if "Explanation(" in item.text and item.path.startswith("dev/explained/"))
    added = "\n".join(line[1:] for line in block.text.splitlines() if line.startswith("+"))
    text = f"from {Explanation.__module__} import Explanation\n\nEXPLAINED = {{{added}}}\n"
    found: dict[str, Explanation] = load_as("explained_of_the_example", text, tmp_path, monkeypatch).EXPLAINED
    assert [name for name, item in found.items() if item.means and item.causes and item.remedy] == ["discover.board"]


def test_the_fragments_of_the_page_are_what_antsibull_takes() -> None:
    settings = yaml.safe_load((ROOT / "changelogs" / "config.yaml").read_text(encoding="utf-8"))
    sections = {name for name, _title in settings["sections"]}
    fragments = [yaml.safe_load(block.text) for block in of("yaml")]
    assert fragments and all(set(item) <= sections for item in fragments)


def test_each_file_and_module_that_the_page_names_exists() -> None:
    page = BLOCK.sub("", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    example = {block.path for block in blocks() if block.language in ("python", "yaml")}
    paths = set(re.findall(r"`((?:plugins|tests|roles|docs|dev|lab|changelogs)/[\w./-]+)`", page)) - example
    assert len(paths) > 10
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    whole = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"python3? -m ((?:dev|tests)(?:\.\w+)+)", whole))
    assert len(modules) > 5
    places = [ROOT.joinpath(*module.split(".")) for module in sorted(modules)]
    assert [str(place) for place in places if not place.with_suffix(".py").exists() and not place.is_dir()] == []
