# SPDX-License-Identifier: GPL-3.0-or-later

"""The module node_tuning before a played OpenShift: check, diff, run, run again, change, and who is left to the
role."""

from __future__ import annotations

import importlib
import json
import pathlib
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import NAMESPACE, TUNED
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

from ..plan.test_tuning_settings import FABRIC
from ..run.test_set_tuning import NODES, World

MODULE = "ansible_collections.linerate.rdma.plugins.modules.node_tuning"
Result = dict[str, typing.Any]
Run = typing.Callable[..., Result]


@pytest.fixture
def world() -> typing.Iterator[World]:
    made = World()
    made.serve("Lease", [], "default")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    module = importlib.import_module(MODULE)
    monkeypatch.setattr(module, "connect", lambda options: world.client(world.url))
    monkeypatch.setattr(module.time, "sleep", world.pause)

    def call(tuning: typing.Optional[Result] = None, **more: typing.Any) -> Result:
        given = {"fabrics": [FABRIC], "cluster": {"tuning": {"set": True, **(tuning or {})}}, **more}
        given.setdefault("nodes", list(NODES))
        with patch_module_args(given), pytest.raises(SystemExit) as ended:
            module.main()
        result: Result = json.loads(capsys.readouterr().out)
        assert not ended.value.code, result
        return result

    return call


def test_check_run_again_change_and_take_back(run: Run, world: World) -> None:
    dry = run(_ansible_check_mode=True, _ansible_diff=True)
    assert dry["changed"] and dry["changes"] == ["created Tuned linerate-rdma"] and world.tuned() is None
    (shown,) = dry["diff"]
    assert shown["before"] == "" and "kernel.numa_balancing=0" in shown["after"]

    done = run()
    assert (
        done["changed"]
        and done["look"] == list(NODES)
        and {item["state"] for item in done["set"]["nodes"].values()} == {"set"}
    )

    again = run(_ansible_diff=True)
    assert not again["changed"] and again["changes"] == [] and again["look"] == [] and again["diff"] == []

    other = run({"expected": {"thp": "madvise"}}, _ansible_diff=True)
    assert other["changes"] == ["changed Tuned linerate-rdma"]
    (shown,) = other["diff"]
    assert "transparent_hugepages=madvise" in shown["after"] and "transparent_hugepages" not in shown["before"]

    removal = Removal(("Tuned",), "app.kubernetes.io/managed-by=linerate.rdma")
    world.serve("Tuned", [world.tuned() or {}])
    (outcome,) = remove_all(world.client(world.url), removal, True, lambda: world.now, world.pause)
    assert (outcome.applied.action, outcome.applied.namespace, outcome.applied.name) == ("deleted", NAMESPACE, TUNED)


def test_what_is_not_asked_for_is_not_set(run: Run, world: World) -> None:
    result = run({"set": False})
    assert not result["changed"] and result["set"]["way"] == "nothing" and not world.requests


def test_a_refusal_is_an_answer(run: Run, world: World) -> None:
    world.put(
        "PerformanceProfile",
        {"metadata": {"name": "gpu"}, "spec": {"nodeSelector": {"node-role.kubernetes.io/worker": ""}}},
    )
    result = run()
    assert not result["changed"] and "PerformanceProfile gpu" in result["set"]["refusal"]


def test_a_server_that_does_not_answer_is_a_refusal(run: Run, world: World) -> None:
    world.stop()
    result = run()
    assert "the API server did not respond:" in result["set"]["refusal"] and result["set"]["remedy"]


def test_the_role_gets_the_nodes_that_are_reached_by_ssh(run: Run, world: World, tmp_path: pathlib.Path) -> None:
    world.known = False
    folder = FactFolder(str(tmp_path), "run-1")
    folder.begin(RunStart("run-1", "2026-11-24T12:00:00+00:00", False, NODES, (), by_pods=("worker-2",)))
    result = run(nodes=None, facts_dir=str(tmp_path), run="run-1")
    assert result["plain"] == ["worker-1"] and not result["changed"]
    assert folder.value("kernel_settings_nodes") == ["worker-1"]
    assert folder.value("node_tuning")["set"]["way"] == "kernel_settings"


def test_what_no_role_can_set_is_no_work_for_it(run: Run, world: World) -> None:
    world.known = False
    assert run({"profile": "none", "expected": {"ib_umad": "loaded"}})["plain"] == []
