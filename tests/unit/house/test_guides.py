# SPDX-License-Identifier: GPL-3.0-or-later

"""What the documents tell to type exists: playbooks, variables, stages, files, and keys of the intent."""

from __future__ import annotations

import json
import pathlib
import re
import runpy
import shlex
import types
import typing

import jsonschema
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.check import VARIABLES
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import LABEL, MANAGER, RUN_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import host, measuring, observers
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import TUNED
from ansible_collections.linerate.rdma.plugins.module_utils._model.run import lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import health_check, roll_mark
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import machine_config
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import FABRIC_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators import olm
from dev import docs

ROOT = pathlib.Path(__file__).resolve().parents[3]
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
DOCUMENTS = [
    ROOT / "README.md",
    *GUIDES,
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "roles").glob("*/README.md")),
]
#: options of ansible-playbook that documents show, and whether a value follows
OPTIONS = {
    "-i": True,
    "-e": True,
    "--tags": True,
    "--check": False,
    "--diff": False,
    "-v": False,
    "-vv": False,
    "--limit": True,
}
#: of an inventory: who and where a host is
CONNECTION = re.compile(r"ansible_[a-z_]+|all|plugin|selector|ssh|kubeconfig|keyed_groups")


def blocks(path: pathlib.Path, language: str) -> list[str]:
    """Blocks of code, without the indentation of a list that they are in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def commands(path: pathlib.Path) -> list[list[str]]:
    """Words of each command, without what is behind ' #'."""
    return [
        shlex.split(line.split("  #")[0].split(" # ")[0].removeprefix("$ "))
        for block in blocks(path, "console")
        for line in block.splitlines()
        if line.strip()
    ]


@pytest.fixture(scope="module")
def options() -> set[str]:
    """Variables that the collection reads: of the intent, and of its roles."""
    specs = [
        yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")
    ]
    return {*VARIABLES, *(option for spec in specs for entry in spec.values() for option in entry.get("options") or ())}


def given(text: str) -> typing.Iterable[str]:
    """Names of variables that -e sets; none of a file."""
    if text.startswith("@"):
        return ()
    return json.loads(text) if text.startswith("{") else [text.partition("=")[0]]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_playbooks_and_variables_that_are_called_exist(path: pathlib.Path, options: set[str]) -> None:
    for words in commands(path):
        if pathlib.Path(words[0]).name != "ansible-playbook":
            continue
        name = words[1]
        if name.startswith("linerate.rdma."):
            assert (ROOT / "playbooks" / f"{name.rpartition('.')[2]}.yml").is_file(), words
        else:
            assert (ROOT / name).is_file(), words
        rest = iter(words[2:])
        for word in rest:
            assert word in OPTIONS, words
            value = next(rest) if OPTIONS[word] else ""
            if word == "-e":
                assert set(given(value)) <= options, words
            if word == "--tags":
                assert set(value.split(",")) <= {*STAGES, "report"}, words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_that_are_applied_exist(path: pathlib.Path) -> None:
    for words in commands(path):
        if words[0] in ("kubectl", "oc") and "apply" in words:
            files = [file for option, file in zip(words, words[1:]) if option == "-f"]
            assert files and all((ROOT / file).is_file() for file in files), words


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if "guides" in path.parts or (path.name == "README.md" and path.parent == ROOT)],
    ids=lambda path: path.name,
)
def test_variables_of_the_guides_are_right_ones(path: pathlib.Path, options: set[str]) -> None:
    schema = json.loads((ROOT / "docs/intent.schema.json").read_text(encoding="utf-8"))
    for block in blocks(path, "yaml"):
        variables = yaml.safe_load(block)
        assert isinstance(variables, dict)
        assert [name for name in variables if name not in options and not CONNECTION.fullmatch(name)] == [], block
        jsonschema.validate({name: value for name, value in variables.items() if name.startswith("rdma_")}, schema)


def test_each_guide_says_what_was_tried() -> None:
    guides = [path for path in GUIDES if path.name != "README.md"]
    assert guides
    assert [
        path.name
        for path in guides
        if not re.search(r"^## What was tried\n\n\S", path.read_text(encoding="utf-8"), re.MULTILINE)
    ] == []
    assert [
        path.name
        for path in guides
        if f"({path.name})" not in (ROOT / "docs/guides/README.md").read_text(encoding="utf-8")
    ] == []


def test_each_document_is_in_the_table_of_contents() -> None:
    index = (ROOT / "dev/docsite/index.md").read_text(encoding="utf-8")
    listed = [
        line.partition("<")[2].rstrip(">") or line
        for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    pages = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for pattern in ("*.md", "docs/*.md", "docs/guides/*.md")
        for path in ROOT.glob(pattern)
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == {*pages, "docs/findings/README", "docs/rbac/README", "collection/index", "roles/index"}


def test_landing_page_says_what_it_is_shows_it_and_leads_to_each_task() -> None:
    """A bare list of pages says nothing to who comes for the first time."""
    index = (ROOT / "dev/docsite/index.md").read_text(encoding="utf-8")
    before = index.partition("```{toctree}")[0]
    assert all(":hidden:" in block for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL))
    assert "brings RDMA networks" in before.partition("\n\n")[2].partition("\n\n")[0]
    (block,) = re.findall(r"```console\n(.*?)```", before, re.DOTALL)
    assert [line for line in block.splitlines() if not line.startswith("#")] == [
        line.partition("  #")[0].strip()
        for line in blocks(ROOT / "README.md", "console")[0].splitlines()
        if "make demo" not in line
    ]
    made = ("README.md", "collection/index.rst", "roles/index.md")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", before) if target not in made]
    assert len(targets) > 20 and [target for target in targets if not (ROOT / target).is_file()] == []


def test_each_finding_is_beside_those_of_its_stage() -> None:
    made = docs.by_stage((ROOT / "docs/findings/README.md").read_text(encoding="utf-8"))
    listed = {
        name: re.findall(r"^[a-z_]+(?:\.[a-z_]+)?$", text.rpartition("```{toctree}")[2], re.MULTILINE)
        for name, text in made.items()
    }
    stages = listed.pop("README.md")
    assert sorted(f"{stage}.md" for stage in stages) == sorted(listed) and {"validate", "fabric", "job"} <= set(stages)
    found = [f"{name}.md" for names in listed.values() for name in names]
    assert len(found) == len(set(found))
    assert set(found) == {path.name for path in (ROOT / "docs/findings").glob("*.*.md")}
    assert made["fabric.md"].startswith("# Stage fabric\n") and "(fabric.uplinks.md)" in made["fabric.md"]


def test_addresses_of_files_and_pictures_are_links_inside_of_the_site(tmp_path: pathlib.Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/a.md", "docs/a.png"):
        (tmp_path / name).touch()
    ours = "linerate/linerate.rdma"
    given = f"[a](https://github.com/{ours}/blob/main/docs/a.md#b) ![c](https://raw.githubusercontent.com/{ours}/main/docs/a.png)"
    assert docs.link_inside(given, "README.md", tmp_path) == "[a](docs/a.md#b) ![c](docs/a.png)"
    assert docs.link_inside(given, "docs/guides/x.md", tmp_path) == "[a](../a.md#b) ![c](../a.png)"
    folder = f"[a](https://github.com/{ours}/blob/main/inventory) [b](https://github.com/{ours}/tree/main/docs/a.md)"
    assert docs.link_inside(folder, "README.md", tmp_path) == folder


def test_page_of_changes_has_what_the_code_writes_and_takes_back() -> None:
    text = (ROOT / "docs/changes.md").read_text(encoding="utf-8")
    tasks = yaml.safe_load((ROOT / "roles/teardown/tasks/cluster.yml").read_text(encoding="utf-8"))
    kinds = {
        kind.partition(".")[0]
        for task in tasks
        for kind in task.get("linerate.rdma.custom_resources", {}).get("kinds", ())
    }
    jobs = {"PyTorchJob", "TrainJob", "TrainingRuntime", "Pod", "ConfigMap", "Namespace"}
    marks = (
        f"{LABEL}={MANAGER}",
        RUN_LABEL,
        FABRIC_LABEL,
        roll_mark.ANNOTATION,
        roll_mark.PROOF,
        machine_config.PAUSED_ANNOTATION,
        health_check.PAUSED,
        olm.AGAIN,
        observers.LABEL,
        observers.NAMESPACE,
        measuring.LABEL,
        measuring.NAMESPACE,
        measuring.POLICY,
        lease.NAME,
        TUNED,
        host.DROP_IN,
    )
    places = (*(kinds - jobs), *marks, "MachineConfig", "KubeletConfig", "/etc/sysctl.d/90-linerate-rdma.conf")
    more = ("/etc/tmpfiles.d/linerate-rdma.conf", "/etc/default/grub.d/99-linerate.cfg", "spec.driver.rdma.enabled")
    assert [place for place in (*places, *more) if place not in text] == []
    assert [stage for stage in STAGES if f"`{stage}`" not in text] == []
    assert all(
        "docs/changes.md" in (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "dev/docsite/index.md")
    )


def test_pages_of_plugins_have_no_table_of_contents_that_the_theme_shows_as_an_error(tmp_path: pathlib.Path) -> None:
    """[furo.css]: ``.contents`` is red, with the words ERROR before it. Each page of antsibull-docs has one."""
    conf = runpy.run_path(str(ROOT / "dev/docsite/conf.py"))
    page = ["Title\n+++++\n\n.. contents::\n   :local:\n   :depth: 1\n\n.. Deprecated\n\nThe contents:: of a file\n"]
    conf["leave_out_contents"](None, "collection/fact_module", page)
    assert page == ["Title\n+++++\n\n\n.. Deprecated\n\nThe contents:: of a file\n"]
    calls: list[typing.Any] = []
    conf["setup"](types.SimpleNamespace(connect=lambda *arguments: calls.append(arguments)))
    assert calls == [("source-read", conf["leave_out_contents"])]
    (tmp_path / "a.html").write_text('<nav class="contents local" id="contents"></nav>', encoding="utf-8")
    (tmp_path / "b.html").write_text(
        '<div class="table-of-contents"><a class="x" href="#contents">the class="contents</a></div>', encoding="utf-8"
    )
    assert docs.red_boxes(tmp_path) == ["a.html: a table of contents"]


def test_a_dead_link_of_the_site_is_found(tmp_path: pathlib.Path) -> None:
    (tmp_path / "b.html").write_text(
        '<h2 id="here">B</h2><a href="https://elsewhere.example/x">x</a>', encoding="utf-8"
    )
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#gone">2</a><img src="no.png"><a href="#top">3</a><a id="top"></a>',
        encoding="utf-8",
    )
    assert docs.dead_links(tmp_path) == [
        "a.html: b.html#gone: there is no such place in the page",
        "a.html: no.png: there is no such file",
    ]
