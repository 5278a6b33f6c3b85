# SPDX-License-Identifier: GPL-3.0-or-later

"""What playbooks are asked for: what runs nothing is refused with what can be asked for."""

from __future__ import annotations

import pathlib
import typing

import ansible.context
import pytest
import yaml
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.lookup.invocation import LookupModule
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.plugin_utils import _first_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._invocation import (
    complete_paths,
    explain_refusal,
    list_playbooks,
)

from ..modules.test_kubeconfig import kubeconfig
from .test_command_line import play

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "tags", [[], ["all"], ["tagged"], ["fabric"], ["discover", "report"], ["report"], *[[stage] for stage in STAGES]]
)
@pytest.mark.parametrize("skip", [[], ["host"], ["never"], ["untagged"], ["molecule-notest", "notest"]])
def test_a_run_of_stages_is_fine(tags: list[str], skip: list[str]) -> None:
    assert bool(explain_refusal(tags, skip, None)) == (tags == skip != [])


@pytest.mark.parametrize(
    ("tags", "skip", "task", "said"),
    [
        (
            ["fabrik"],
            [],
            None,
            (
                "--tags contains fabrik, which is not a stage (did you mean 'fabric'?); the stages are"
                " validate, discover,"
            ),
        ),
        (["fabric", "x"], [], None, "--tags contains x, which is not a stage; "),
        (["untagged"], [], None, "--tags contains untagged"),
        (["always"], [], None, "--tags contains always"),
        ([], ["all"], None, "--tags all and --skip-tags all leave no stage to run"),
        (["fabric"], ["tagged"], None, "--tags fabric and --skip-tags tagged leave no stage to run"),
        (["fabric"], ["fabric"], None, "leave no stage to run"),
        (["fabric"], [], "Judge", "--start-at-task 'Judge' was given. "),
    ],
)
def test_what_would_end_with_0_and_prove_nothing(
    tags: list[str], skip: list[str], task: typing.Optional[str], said: str
) -> None:
    text = explain_refusal(tags, skip, task)
    assert said in text and all(stage in text for stage in STAGES)


@pytest.mark.parametrize(
    ("tags", "skip", "task", "said"),
    [
        (["fabric"], [], None, ""),
        (["all"], ["notest"], None, ""),
        (
            ["fabrik"],
            [],
            None,
            (
                "--tags contains fabrik, which is not a tag of linerate.rdma.fabric (did you mean"
                " 'fabric'?); it has only the tag fabric"
            ),
        ),
        (
            ["host"],
            [],
            None,
            ("--tags contains host, which is not a tag of linerate.rdma.fabric; it has only the tag fabric"),
        ),
        ([], ["fabric"], None, "--tags all and --skip-tags fabric leave no task to run; it has only the tag fabric"),
        ([], [], "Judge", "--start-at-task 'Judge' was given. A playbook that starts in the middle verifies nothing"),
    ],
)
def test_a_single_playbook_has_one_tag(tags: list[str], skip: list[str], task: typing.Optional[str], said: str) -> None:
    text = explain_refusal(tags, skip, task, ["fabric"])
    assert text.startswith(said) and bool(text) == bool(said)


def test_tags_are_judged_where_all_playbooks_are_those_of_the_collection() -> None:
    assert list_playbooks(["linerate.rdma.site", "linerate.rdma.judge"], ()) == ("site", "judge")
    assert list_playbooks(["/c/playbooks/fabric.yml", "/c/teardown.yml"], ("/c", "/c/playbooks")) == (
        "fabric",
        "teardown",
    )
    for others in (["mine.yml"], ["linerate.rdma.fabric", "/mine/fabric.yml"], ["linerate.rdma2.fabric"], []):
        assert list_playbooks(others, ("/c",)) == ()


@pytest.fixture
def lookup(monkeypatch: pytest.MonkeyPatch) -> LookupModule:
    found = object.__new__(LookupModule)
    options: dict[str, typing.Any] = {}
    monkeypatch.setattr(found, "set_options", lambda direct=None: options.update(direct))
    monkeypatch.setattr(found, "get_option", lambda name: options.get(name, False))
    return found


def refusal(
    lookup: LookupModule, capsys: pytest.CaptureFixture[str], variables: typing.Any = None, **options: typing.Any
) -> str:
    """What the lookup says as it ends ansible-playbook; empty where it goes on."""
    Display()._errors.clear()
    try:
        assert lookup.run(["localhost"], variables, **options) == ["localhost"]
    except SystemExit as end:
        assert end.code == 5
        return " ".join(capsys.readouterr().err.split())
    return ""


@pytest.mark.parametrize("option", ["listtags", "listtasks", "listhosts", "syntax"])
def test_what_only_lists_is_never_refused(
    option: str, lookup: LookupModule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--list-tags sets the tag 'never' itself."""
    given = {"tags": ("all", "never"), "skip_tags": (), "start_at_task": None, "args": ("linerate.rdma.site",)}
    monkeypatch.setattr(ansible.context, "CLIARGS", given)
    assert "linerate.rdma: nothing was run - --tags contains never" in refusal(lookup, capsys, site=True)
    monkeypatch.setattr(ansible.context, "CLIARGS", {**given, option: True})
    assert refusal(lookup, capsys, site=True) == ""
    monkeypatch.setattr(ansible.context, "CLIARGS", {**given, "tags": ("all",), "step": True})
    assert refusal(lookup, capsys, site=True) == ""


@pytest.mark.parametrize(
    ("given", "site", "refused"),
    [
        ("linerate.rdma.fabric", False, True),
        (str(ROOT / "playbooks" / "fabric.yml"), False, True),
        ("linerate.rdma.site", False, False),
        ("linerate.rdma.site", True, True),
        ("mine.yml", False, False),
        ("mine.yml", True, True),
    ],
)
def test_misspelt_tags_are_refused_by_site_and_by_each_playbook_of_the_collection(
    given: str,
    site: bool,
    refused: bool,
    lookup: LookupModule,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ansible.context, "CLIARGS", {"tags": ("fabrik",), "args": (given,)})
    assert ("(did you mean 'fabric'?)" in refusal(lookup, capsys, site=site)) == refused


@pytest.mark.parametrize(
    ("subset", "refused"),
    [
        (None, False),
        ("", False),
        ("localhost,worker-1", False),
        ("worker-1:localhost", False),
        ("127.0.0.1,worker-1", False),
        ("localhost:&localhost", False),
        ("all", True),
        ("worker-1:local*", True),
        ("rdma_nodes", True),
        ("rdma_nodes,!localhost", True),
        ("localhost,rdma_nodes,!localhost", True),
        ("worker-1:&localhost", True),
        ("localhost,worker-1,&rdma_nodes", True),
    ],
)
@pytest.mark.parametrize("cause", ["", "kubeconfig mine.conf: the file does not exist"])
def test_a_limit_without_localhost_is_refused(
    cause: str,
    subset: typing.Optional[str],
    refused: bool,
    lookup: LookupModule,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ansible itself would warn, run nothing and end with 0."""
    monkeypatch.setattr(ansible.context, "CLIARGS", {"tags": ("all",), "subset": subset, "args": ("mine.yml",)})
    monkeypatch.setattr(_first_cause, "_causes", [_first_cause.FirstCause(cause)] if cause else [])
    said = refusal(lookup, capsys)
    assert ("ame localhost as well: --limit 'localhost," in said) == refused
    assert (f"the inventory contains no nodes: {cause}" in said) == (refused and bool(cause))
    assert refusal(lookup, capsys, {"ansible_play_hosts_all": ["worker-1", "localhost"]}) == "", "of the inventory"


def test_a_refused_limit_names_a_second_inventory_that_does_not_exist(
    lookup: LookupModule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(ansible.context, "CLIARGS", {"subset": "worker-1"})
    monkeypatch.setattr(_first_cause, "_causes", [])
    gone = tmp_path / "nothere.yml"
    variables = {"groups": {"rdma_nodes": ["worker-1"]}, "ansible_inventory_sources": [str(tmp_path), str(gone)]}
    said = refusal(lookup, capsys, variables)
    assert f"a source of the inventory could not be read: the inventory file {gone} does not exist" in said
    assert "contains no nodes" not in said and "--limit 'localhost,worker-1'" in said


def test_a_limit_may_be_a_file(
    lookup: LookupModule, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    again = tmp_path / "site.retry"
    monkeypatch.setattr(ansible.context, "CLIARGS", {"subset": f"@{again}"})
    again.write_text("worker-1\nworker-2\n", encoding="utf-8")
    assert "--limit 'localhost,worker-1,worker-2'" in refusal(lookup, capsys)
    again.write_text("localhost\nworker-2\n", encoding="utf-8")
    assert refusal(lookup, capsys) == ""


def first_play(path: pathlib.Path) -> dict[str, typing.Any]:
    """The play with which a playbook begins, in whatever file."""
    first = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    imported = first.get("ansible.builtin.import_playbook")
    return first_play(path.parent / imported) if imported else first


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((ROOT / "playbooks").glob("*.yml")) if path.stem != "stage_judge"],
    ids=lambda path: path.stem,
)
def test_each_playbook_begins_with_a_look_at_its_invocation(path: pathlib.Path) -> None:
    """The hosts of a play are computed whatever the tags are, and before anything runs."""
    site = ", site=true" if path.stem in ("site", "invocation") else ""
    assert first_play(path)["hosts"] == "{{ lookup('linerate.rdma.invocation', 'localhost'" + site + ") }}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"KUBECONFIG": ""}, {}),
        ({"KUBECONFIG": "/etc/gpu:~/.kube/config", "HOME": "x"}, {}),
        ({"KUBECONFIG": "gpu"}, {"KUBECONFIG": "/srv/site/gpu"}),
        ({"KUBECONFIG": "./gpu::/etc/other:../b"}, {"KUBECONFIG": "/srv/site/gpu::/etc/other:/srv/b"}),
        (
            {"K8S_AUTH_KUBECONFIG": "a", "K8S_AUTH_CERT_FILE": "b", "K8S_AUTH_HOST": "c"},
            {"K8S_AUTH_KUBECONFIG": "/srv/site/a", "K8S_AUTH_CERT_FILE": "/srv/site/b"},
        ),
    ],
)
def test_relative_paths_of_credentials_are_completed(given: dict[str, str], expected: dict[str, str]) -> None:
    assert complete_paths(given, "/srv/site") == expected


@pytest.mark.processes
def test_modules_read_a_relative_kubeconfig_from_the_folder_of_the_user(tmp_path: pathlib.Path) -> None:
    """Ansible runs modules on localhost in the folder of the playbook."""
    kubeconfig(tmp_path / "gpu.conf", "http://127.0.0.1:9")
    _code, output = play(tmp_path, "linerate.rdma.validate", "-i", "worker-1,", KUBECONFIG="gpu.conf")
    assert "the API server did not respond: connection refused by http://127.0.0.1:9" in output, output
    assert "the file does not exist" not in output


@pytest.mark.processes
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("linerate.rdma.validate", "--limit", "all"), "--limit 'all' excludes localhost"),
        (("linerate.rdma.validate", "--limit", "rdma_nodes"), "--limit 'rdma_nodes' excludes localhost"),
        (("linerate.rdma.validate", "-i", "linerate.rdma.yml", "--limit", "all"), "the inventory contains no nodes: /"),
        (
            ("linerate.rdma.validate", "-i", "nothere.yml", "--limit", "all"),
            "the inventory contains no nodes: the inventory file /",
        ),
        (("linerate.rdma.judge", "-i", "worker-1,", "--limit", "worker-1"), "--limit 'worker-1' excludes localhost"),
        (
            ("linerate.rdma.fabric", "--tags", "fabrik"),
            "--tags contains fabrik, which is not a tag of linerate.rdma.fabric",
        ),
        (
            ("linerate.rdma.site", "--tags", "fabrik"),
            "--tags contains fabrik, which is not a stage (did you mean 'fabric'?)",
        ),
    ],
)
def test_the_last_line_says_why_nothing_was_run(options: tuple[str, ...], said: str, tmp_path: pathlib.Path) -> None:
    """Under a real ansible-playbook, which itself would end with 0."""
    (tmp_path / "linerate.rdma.yml").write_text(
        "plugin: linerate.rdma.nodes\nkubeconfig: none.conf\n", encoding="utf-8"
    )
    code, output = play(tmp_path, *options)
    assert code == 5 and "PLAY [" not in output, output
    last = output.rpartition("linerate.rdma: nothing was run - ")[2]
    assert last.startswith(said) and "Origin" not in last, output
