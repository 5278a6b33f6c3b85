# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that finds no nodes ends with what came first: the cause of all the rest."""

from __future__ import annotations

import pathlib
import types
import typing

import pytest
from ansible import constants
from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin

from ansible_collections.linerate.rdma.plugins.action import propose
from ansible_collections.linerate.rdma.plugins.inventory import nodes
from ansible_collections.linerate.rdma.plugins.module_utils._app import propose as of_proposal
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils import _first_cause

from .test_command_line import play

REFUSED = (
    "x.linerate.rdma.yml: kubeconfig k in /h (from KUBECONFIG): the API server did not"
    " respond: connection refused by https://127.0.0.1:1. Check it"
)


@pytest.fixture(autouse=True)
def causes(monkeypatch: pytest.MonkeyPatch) -> list[_first_cause.FirstCause]:
    found: list[_first_cause.FirstCause] = []
    monkeypatch.setattr(_first_cause, "_causes", found)
    return found


def proposed(
    folder: FactFolder, nodes: typing.Sequence[str], sources: typing.Sequence[str] = (), **options: typing.Any
) -> str:
    """How the proposal fails.

    :param sources: inventories that Ansible was given
    """
    folder.begin(RunStart(folder.run, "2026-01-02T03:04:05+00:00", nodes=tuple(nodes)))
    action = object.__new__(propose.ActionModule)
    action._task = typing.cast(typing.Any, types.SimpleNamespace(check_mode=False))
    given = {
        "facts_dir": folder.report_dir,
        "run": folder.run,
        "path": "/p",
        "namespace": "",
        "fabrics": None,
        "cluster": None,
        "cause": "",
        "unclean": False,
        "image": "",
        **options,
    }
    with pytest.raises(RdmaError) as error:
        action.work(given, {"groups": {"rdma_nodes": list(nodes)}, "ansible_inventory_sources": list(sources)})
    return str(error.value)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> FactFolder:
    return FactFolder(str(tmp_path), "run-1")


def test_without_nodes_it_is_what_the_inventory_says(folder: FactFolder) -> None:
    folder.write("addresses", error="failed: a later one")
    _first_cause.note_cause(_first_cause.FirstCause(REFUSED))
    _first_cause.note_cause(_first_cause.FirstCause("another inventory"))
    assert (
        proposed(folder, [])
        == f"no intent can be proposed: {REFUSED}. Correct the listed problems, then run linerate.rdma.propose again"
    )


def test_an_inventory_file_that_does_not_exist_is_named(folder: FactFolder, tmp_path: pathlib.Path) -> None:
    there, gone = tmp_path / "hosts.yml", tmp_path / "nothere.yml"
    there.write_text("all: {}\n", encoding="utf-8")
    said = proposed(folder, [], [str(there), str(gone), "worker-1,worker-2"])
    assert said.startswith(f"no intent can be proposed: the inventory file {gone} does not exist. Give the file")
    assert "does not exist" not in proposed(FactFolder(folder.report_dir, "run-2"), [], [str(there), "worker-1,"])
    two = _first_cause.find_cause([str(gone), str(tmp_path / "other.yml")]).text
    assert two.startswith(f"the inventory files {gone} and {tmp_path / 'other.yml'} do not exist")
    # the user gave no file
    assert {_first_cause.find_cause(sources) for sources in (None, ["/etc/ansible/hosts"])} == {
        _first_cause.FirstCause()
    }
    # what an inventory plugin said is nearer to the cause
    _first_cause.note_cause(_first_cause.FirstCause(REFUSED))
    assert _first_cause.find_cause([str(gone)]).text == REFUSED


def test_without_a_cause_the_empty_group_comes_with_what_the_cluster_said(folder: FactFolder) -> None:
    folder.write("addresses", error="failed: connection refused by https://127.0.0.1:1")
    empty = "no intent can be proposed: the group rdma_nodes is empty. Read the nodes from the cluster: "
    said = proposed(FactFolder(folder.report_dir, "run-2"), [])
    assert said.startswith(empty) and said.endswith(
        "Read the nodes from the cluster: run echo 'plugin: linerate.rdma.nodes' >"
        " linerate.rdma.yml, then run the same command with -i linerate.rdma.yml"
    )
    said = proposed(folder, [])
    assert said.startswith(
        "no intent can be proposed: the group rdma_nodes is empty; addresses in use could not be read: "
    )
    assert "connection refused by https://127.0.0.1:1" in said


def test_with_nodes_it_is_why_they_were_not_seen(folder: FactFolder) -> None:
    _first_cause.note_cause(_first_cause.FirstCause("another inventory"))
    said = proposed(folder, ["worker-1"], cause="rdma_observers_image is not set, and the cluster is no OpenShift.")
    assert said == (
        "no intent can be proposed: rdma_observers_image is not set, and the cluster is no"
        " OpenShift. Correct the listed problems, then run linerate.rdma.propose again"
    )


def test_no_intent_is_proposed_without_the_nodes_of_a_second_inventory(
    folder: FactFolder, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proposal of the nodes of the first one would be complete in itself."""
    made = types.SimpleNamespace(left_out=(), fabrics=types.SimpleNamespace(items=("compute",)))
    monkeypatch.setattr(of_proposal, "propose", lambda seen: made)
    there, gone = tmp_path / "hosts.yml", tmp_path / "nothere.yml"
    there.write_text("all: {}\n", encoding="utf-8")
    said = proposed(folder, ["worker-1"], [str(there), str(gone)])
    assert said == (
        "no intent is proposed, because it would leave out the nodes of a source of the inventory: the inventory file"
        f" {gone} does not exist. Give the file that contains the group rdma_nodes (-i FILE). Correct this error, then"
        " run linerate.rdma.propose again"
    )


@pytest.mark.parametrize("same", [True, False])
def test_many_nodes_without_an_answer_are_one_line_of_the_first_three_reasons(same: bool, folder: FactFolder) -> None:
    nodes = [f"worker-{number}" for number in range(5)]
    for node in nodes:
        said = "python3.12: command not found" if same else f"{node}: command not found"
        folder.write("hcas", node, error=f"failed: MODULE FAILURE\n{said}\n\n" + "x" * 8000)
    said = proposed(folder, nodes)
    names = f"5 nodes ({', '.join(nodes)})" if same else "node worker-0"
    first = f"no intent can be proposed: left out: {names}: no data could be read: failed: MODULE FAILURE"
    assert said.startswith(f"{first} {'python3.12' if same else 'worker-0'}: command not found")
    assert "\n" not in said and len(said) < 2000 and said.count("left out: ") == (1 if same else 3)
    assert ("and 2 more. Correct the listed problems, then run linerate.rdma.propose again" in said) != same


@pytest.mark.parametrize(
    ("error", "library", "cause"),
    [
        (
            AnsibleParserError("x: no node of the cluster has the labels 'a=b'"),
            True,
            ("x: no node of the cluster has the labels 'a=b'", "", ""),
        ),
        (RdmaError("context is 'a'", "Remove it"), True, ("x: context is 'a'. Remove it", "", "")),
        (ApiError(0, "Unreachable", "no answer", "kubeconfig k in /h"), True, None),
        (RdmaError("whatever is missing", "Install it"), False, ("x: whatever is missing. Install it", "library", "")),
    ],
)
def test_the_inventory_keeps_why_it_gives_no_nodes(
    error: Exception,
    library: bool,
    cause: typing.Optional[tuple[str, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    causes: list[_first_cause.FirstCause],
) -> None:
    """By its kind, and not by its words."""
    monkeypatch.setattr(BaseInventoryPlugin, "parse", lambda *arguments: None)
    monkeypatch.setattr(nodes, "HAS_KUBERNETES", library)
    plugin = object.__new__(nodes.InventoryModule)
    monkeypatch.setattr(plugin, "_read_config_data", lambda path: {})
    monkeypatch.setattr(plugin, "get_options", dict)

    def refuse() -> None:
        plugin._where = "kubeconfig k in /h"
        raise error

    monkeypatch.setattr(plugin, "_read", refuse)
    expected = cause or (f"x: {error}", "api_server", "kubeconfig k in /h")
    groups: list[str] = []
    warnings: list[str] = []
    plugin.inventory = types.SimpleNamespace(add_group=groups.append)
    plugin.display = types.SimpleNamespace(warning=warnings.append)
    plugin.parse(None, None, "x")
    assert causes == [expected] and warnings == [expected[0]] and groups == ["rdma_nodes"]
    # whoever wants that an inventory can be read has an error
    for name in ("INVENTORY_UNPARSED_IS_FAILED", "INVENTORY_ANY_UNPARSED_IS_FAILED"):
        with monkeypatch.context() as set_in_configuration:
            set_in_configuration.setattr(constants.config, "get_config_value", name.__eq__)
            with pytest.raises(AnsibleParserError) as refused:
                plugin.parse(None, None, "x")
        assert expected[0] in str(refused.value)
    assert len(warnings) == 1


@pytest.mark.processes
def test_an_inventory_that_is_refused_is_one_warning_and_not_one_of_each_plugin_of_ansible(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "linerate.rdma.yml").write_text(
        "plugin: linerate.rdma.nodes\nkubeconfig: none.conf\n", encoding="utf-8"
    )
    code, said = play(tmp_path, "-i", "linerate.rdma.yml", "linerate.rdma.site")
    first, second = said.split("[WARNING]: ")[1:]
    assert "kubeconfig none.conf in " in first and "provided hosts list is empty" in second, said
    last = said.rpartition("linerate.rdma: NOT GREEN - ")[2]
    assert code == 2 and last.startswith(
        "stage validate: 2 fail, 1 skipped (validate.nodes: The inventory plugin could not read the nodes: "
    ), said
    assert "kubeconfig none.conf in " in last


@pytest.mark.processes
def test_the_last_line_of_a_run_names_an_inventory_file_that_does_not_exist(tmp_path: pathlib.Path) -> None:
    code, output = play(tmp_path, "linerate.rdma.validate", "-i", "nothere.yml")
    assert code != 0, output
    verdict = output.rpartition("NOT GREEN - stage validate: ")[2]
    assert f"could not read the nodes: the inventory file {tmp_path}/nothere.yml does not exist" in verdict


@pytest.mark.processes
def test_a_run_without_one_of_its_inventory_files_is_not_green(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hosts.yml").write_text("rdma_nodes:\n  hosts:\n    worker-1:\n", encoding="utf-8")
    code, output = play(tmp_path, "linerate.rdma.validate", "-i", "hosts.yml", "-i", "nothere.yml")
    assert code != 0, output
    assert f"because this source could not be read: the inventory file {tmp_path}/nothere.yml does not exist" in output
