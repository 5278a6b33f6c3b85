# SPDX-License-Identifier: GPL-3.0-or-later

"""--limit and the drivers of operators: stage operators installs none and stage host restarts none if the limit
excludes a node of the run, because the operators drain all nodes.
"""

from __future__ import annotations

import pathlib
import types
import typing

import pytest
from ansible import context
from ansible.parsing.dataloader import DataLoader
from ansible.utils.context_objects import CLIArgs

from ansible_collections.linerate.rdma.plugins.action import cluster_policy, operators_info
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OlmObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operators import (
    may_restart_drivers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.modules import cluster_policy as policy_module
from ansible_collections.linerate.rdma.tests.unit.plan.test_helm_release import FABRIC
from ansible_collections.linerate.rdma.tests.unit.run.test_gpu_driver_plan import applied, call

__all__ = ["applied"]
NAMES = ["worker-1", "worker-2"]
REFUSED = "--limit excludes 1 of the nodes that {} would change: worker-2. Nothing was changed"
Act = typing.Callable[..., tuple[dict[str, typing.Any], list[dict[str, typing.Any]]]]


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Act:
    """Run an action plugin in a run of two nodes. Return its result, and the options that its module got."""
    FactFolder(str(tmp_path), "run-1").begin(RunStart("run-1", "2026-01-02T03:04:05+00:00", False, tuple(NAMES)))

    def run(
        plugin: typing.Any, limit: str, answer: dict[str, typing.Any], check_mode: bool = False, **options: typing.Any
    ) -> tuple[dict[str, typing.Any], list[dict[str, typing.Any]]]:
        monkeypatch.setattr(context, "CLIARGS", CLIArgs({"subset": limit}))
        given: list[dict[str, typing.Any]] = []

        def execute(
            module_name: str, module_args: dict[str, typing.Any], task_vars: typing.Any
        ) -> dict[str, typing.Any]:
            given.append(module_args)
            return dict(answer)

        task = types.SimpleNamespace(
            args={"facts_dir": str(tmp_path), "run": "run-1", **options},
            check_mode=check_mode,
            async_val=0,
            action="a",
            diff=False,
        )
        connection = types.SimpleNamespace(transport="", _shell=types.SimpleNamespace(tmpdir="x"))
        action = plugin.ActionModule(task, connection, None, DataLoader(), None, None)
        monkeypatch.setattr(action, "_execute_module", execute)
        return action.run(None, {"groups": {"all": ["localhost", *NAMES], "rdma_nodes": NAMES}}), given

    return run


@pytest.mark.parametrize(
    ("limit", "drains", "check_mode", "refused"),
    [
        ("localhost,worker-1", True, False, True),
        ("localhost,worker-1", False, False, False),
        ("localhost,worker-1", True, True, False),
        ("localhost,rdma_nodes", True, False, False),
        ("", True, False, False),
    ],
)
def test_operators_of_drivers_are_not_installed_if_a_limit_excludes_a_node(
    act: Act, limit: str, drains: bool, check_mode: bool, refused: bool
) -> None:
    result, _given = act(operators_info, limit, {"drains": drains}, check_mode, check_limit=True)
    assert bool(result.get("failed")) is refused and (REFUSED.format("stage operators") in str(result)) is refused
    # a task that only looks is never refused
    assert "failed" not in act(operators_info, limit, {"drains": drains}, check_mode)[0]


@pytest.mark.parametrize(("limit", "refused"), [("localhost,worker-1", True), ("all", False), ("", False)])
def test_module_of_stage_host_gets_the_refusal(act: Act, limit: str, refused: bool) -> None:
    _result, (given,) = act(cluster_policy, limit, {})
    assert (REFUSED.format("stage host") in given.get("refusal", "")) is refused
    assert "refusal" not in act(cluster_policy, limit, {}, True)[1][0]


def test_policy_stays_with_a_refusal(applied: typing.Callable[..., list[bool]]) -> None:
    done = applied()
    held = call(policy_module, refusal="--limit excludes worker-2")
    assert (held["changed"], held["policies"]["error"], done) == (False, "--limit excludes worker-2", [True])


def test_stage_operators_asks_before_it_makes_a_namespace() -> None:
    tasks = pathlib.Path(__file__).resolve().parents[3] / "roles" / "operators" / "tasks"
    assert "check_limit: true" in (tasks / "look.yml").read_text(encoding="utf-8")
    install = (tasks / "install.yml").read_text(encoding="utf-8")
    assert install.index("file: look.yml") < install.index("linerate.rdma.custom_resources")


@pytest.mark.parametrize(
    ("olm", "version", "there", "drains"),
    [
        (False, None, False, True),
        (True, None, False, True),
        (True, None, True, False),
        (True, "4.16.0", True, True),
    ],
)
def test_operators_that_restart_drivers(olm: bool, version: typing.Optional[str], there: bool, drains: bool) -> None:
    intent = parse_intent([FABRIC], None, {})
    name = "sriov-network-operator"
    subscription = OlmObject("Subscription", name, "ops", package=name)
    seen = OperatorsSeen(olm=olm, packages={name: (subscription,)} if there else {})
    wishes = collect_requests({}, {name: {"version": version}} if version else {}, [])
    assert may_restart_drivers(intent, seen, wishes) is drains
    assert not may_restart_drivers(intent, seen, collect_requests({}, {}, [name]))
