# SPDX-License-Identifier: GPL-3.0-or-later

"""A teardown with the kubeconfig of another cluster, on which the same intent has objects of the same names."""

from __future__ import annotations

import importlib
import pathlib
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import start_run
from ansible_collections.linerate.rdma.plugins.module_utils._app.same_cluster import OtherClusterError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles/teardown/tasks"
ACCESS = "/root/kubeconfig, context lab, API server https://{}:6443"
BEGIN = importlib.import_module("ansible_collections.linerate.rdma.plugins.action.run_begin")


def ran(folder: pathlib.Path, uid: str, server: str = "a") -> None:
    """A run of the stages in a report folder."""
    options: dict[str, typing.Any] = {"report_dir": str(folder), "fabrics": [], "waivers": None, "cluster": {}}
    facts = start_run(options, RunStart("", "", False, ("n0",), access=ACCESS.format(server)), "2.19")
    if uid:
        facts.write("access", value={"rights": {}, "cluster_uid": uid})


def begin(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, uid: str, server: str = "a", check_mode: bool = False
) -> typing.Any:
    monkeypatch.setattr(BEGIN, "access_of", lambda *_arguments: ACCESS.format(server))
    monkeypatch.setattr(BEGIN, "read_cluster_uid_of", lambda *_arguments: uid)
    plugin = object.__new__(BEGIN.ActionModule)
    plugin._task = types.SimpleNamespace(check_mode=check_mode)
    plugin._templar = types.SimpleNamespace(template=lambda value: value)
    plugin._loader = None
    given = {"report_dir": str(folder / "teardown"), "runs_dir": str(folder)}
    defaults = {key: spec.get("default") for key, spec in BEGIN.ActionModule.SPEC.items()}
    return plugin.work({**defaults, **given}, {"groups": {"rdma_nodes": ["n0"]}})


@pytest.mark.parametrize("check_mode", [True, False])
def test_another_cluster_is_refused_before_the_teardown_begins(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, check_mode: bool
) -> None:
    ran(tmp_path, "uid-a")
    with pytest.raises(
        OtherClusterError, match=r"uid uid-a, and now it has the uid uid-b.*Nothing was removed"
    ) as told:
        begin(tmp_path, monkeypatch, "uid-b", check_mode=check_mode)
    assert "rdma_kubeconfig" in told.value.remedy and "rdma_report_dir" in told.value.remedy
    assert not (tmp_path / "teardown/run.json").exists()


@pytest.mark.parametrize(
    ("then", "now", "server", "refused"),
    [
        ("uid-a", "uid-a", "a", False),
        # the same cluster by another address
        ("uid-a", "uid-a", "b", False),
        ("", "uid-a", "a", False),
        ("", "uid-a", "b", True),
        ("uid-a", "", "b", True),
        ("uid-a", "", "a", False),
    ],
)
def test_the_address_decides_where_a_uid_is_not_known(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, then: str, now: str, server: str, refused: bool
) -> None:
    ran(tmp_path, then)
    if not refused:
        assert begin(tmp_path, monkeypatch, now, server)["run"]
        return
    with pytest.raises(
        OtherClusterError, match=r"it used API server https://a:6443, and this teardown uses .*//b:6443"
    ):
        begin(tmp_path, monkeypatch, now, server)


def test_a_folder_without_a_run_proves_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert begin(tmp_path, monkeypatch, "uid-b")["run"]
    (tmp_path / "run.json").write_text("{", encoding="utf-8")
    assert begin(tmp_path, monkeypatch, "uid-b")["run"]


def test_the_role_names_the_folder_of_the_runs() -> None:
    first = yaml.safe_load((ROLE / "begin.yml").read_text(encoding="utf-8"))[0]["linerate.rdma.run_begin"]
    assert "rdma_report_dir" in first["runs_dir"]
