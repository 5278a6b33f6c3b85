# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigPools of a run whose folder another run has replaced meanwhile: they are unpaused all the same, and the
task fails."""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import types
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import start_run
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.tests.unit.run.test_roll import CONFIGS, Operator

MODULE = importlib.import_module("ansible_collections.linerate.rdma.plugins.modules.machine_config_roll")
Run = typing.Callable[..., tuple[int, dict[str, typing.Any]]]


@pytest.fixture(name="operator")
def _operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    operator = Operator()
    held = types.SimpleNamespace(cluster=operator)
    monkeypatch.setattr(MODULE, "connect", lambda _module: operator)
    monkeypatch.setattr(MODULE, "hold_lease", lambda *_arguments: contextlib.nullcontext(held))
    monkeypatch.setattr(MODULE, "PatientCluster", lambda cluster, *_more: cluster)
    monkeypatch.setattr(MODULE, "PoolGate", lambda *_arguments: None)
    monkeypatch.setattr(MODULE.time, "monotonic", operator.clock)
    monkeypatch.setattr(MODULE.time, "sleep", operator.sleep)
    return operator


@pytest.fixture(name="run")
def _run(operator: Operator, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(**arguments: typing.Any) -> tuple[int, dict[str, typing.Any]]:
        with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
            MODULE.main()
        return int(ended.value.code or 0), json.loads(capsys.readouterr().out)

    return run


def begin(folder: pathlib.Path, *nodes: str) -> typing.Any:
    options: dict[str, typing.Any] = {"report_dir": str(folder), "fabrics": [], "waivers": None, "cluster": {}}
    return start_run(options, RunStart("", "", False, nodes), "2.19")


@pytest.mark.parametrize("left", ["another run", "no run.json", "no facts"])
def test_pools_are_unpaused_without_the_folder_of_their_run(
    tmp_path: pathlib.Path, operator: Operator, run: Run, left: str
) -> None:
    facts = begin(tmp_path, "n0", "n1", "n2")
    facts.write("network_objects", value={"hosts": [{"fabric": "", "object": one} for one in CONFIGS], "objects": []})
    given = {"facts_dir": str(tmp_path), "run": facts.run, "objects_from": "network_objects", "cluster": {}}
    code, said = run(**given, state="prepared")
    assert (code, said["paused"], operator.paused) == (0, ["worker"], True)
    if left == "another run":
        begin(tmp_path, "n0")
    elif left == "no run.json":
        (tmp_path / "run.json").unlink()
    else:
        (tmp_path / "facts" / "network_objects" / "cluster.json").unlink()
    code, said = run(**given, state="released", pools=["worker"])
    assert not operator.paused and code == 1 and "Unpaused MachineConfigPools: worker" in said["msg"], said
    assert "Unpaused MachineConfigPools: worker" in str(facts.read("rolls").error)


def test_no_other_state_goes_on_without_it(tmp_path: pathlib.Path, operator: Operator, run: Run) -> None:
    facts = begin(tmp_path, "n0")
    (tmp_path / "run.json").unlink()
    objects = [{"fabric": "", "object": one} for one in CONFIGS]
    code, said = run(facts_dir=str(tmp_path), run=facts.run, objects=objects, cluster={}, state="prepared")
    assert code == 1 and "run.json" in said["msg"] and operator.log == []
