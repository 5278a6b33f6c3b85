# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that start while MachineConfigPools wait for their turn: right before a pool rolls, the run asks whether its
reboots would end a pod for good, because the machine config operator does not.
"""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.scope import Scope
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drain import NodeFailed
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import PoolGate
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    PoolRoller,
)
from ansible_collections.linerate.rdma.tests.unit.modules.test_released_pools import MODULE, _operator
from ansible_collections.linerate.rdma.tests.unit.run.test_roll import CONFIGS, Operator, roller

__all__ = ["_operator"]
NODES = ("n0", "n1", "n2")
INTENT = ClusterIntent(disruption="reboot")
Data = dict[str, typing.Any]


def pod(node: str = "n1", owner: str = "", **spec: typing.Any) -> Data:
    owners = [{"kind": owner, "name": "train", "uid": "j", "controller": True}] if owner else []
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u", "labels": {"a": "b"}, "ownerReferences": owners},
        "spec": {"nodeName": node, "containers": [{"name": "c"}], **spec},
        "status": {"phase": "Running"},
    }


BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "all", "namespace": "ml"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}
DATA: Data = {"volumes": [{"name": "checkpoint", "emptyDir": {}}]}


def remover(operator: Operator) -> PoolRoller:
    """A teardown of this intent."""
    gate = PoolGate(typing.cast(typing.Any, operator), INTENT, NODES, operator.log.append, Scope())
    return PoolRoller(typing.cast(typing.Any, operator), operator.clock, operator.sleep, operator.log.append, gate)


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ((pod(),), "n1: no controller recreates these pods: ml/train"),
        ((pod(owner="ReplicaSet", **DATA),), "ml/train"),
        ((pod(owner="ReplicaSet"), BUDGET), "ml/train"),
    ],
    ids=["without a controller", "with data", "held by a budget"],
)
def test_pool_stays_paused_for_a_pod_that_started_while_it_rendered(pods: tuple[Data, ...], why: str) -> None:
    operator = Operator()
    prepared = roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    operator.drained = pods
    (roll,) = roller(operator, INTENT).release(prepared.paused, 600, NODES)
    assert why in roll.error and "The pool stays paused" in roll.error
    assert (operator.paused, operator.away) == (True, [])
    operator.drained = ()
    (roll,) = roller(operator, INTENT).release((), 600, NODES)
    assert (roll.error, operator.paused, operator.away) == ("", False, [0, 1, 2])


@pytest.mark.parametrize("pods", [(pod(owner="ReplicaSet"),), (pod(owner="Job"),)], ids=["service", "job of a change"])
def test_pod_that_a_controller_starts_again_keeps_no_pool(pods: tuple[Data, ...]) -> None:
    operator = Operator()
    prepared = roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    operator.drained = pods
    assert [roll.error for roll in roller(operator, INTENT).release(prepared.paused, 600, NODES)] == [""]


def test_pod_on_a_node_that_has_the_configuration_keeps_no_pool() -> None:
    operator = Operator()
    prepared = roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    operator.nodes[1] = operator.wanted
    operator.drained = (pod("n1"),)
    assert [roll.error for roll in roller(operator, INTENT).release(prepared.paused, 600, NODES)] == [""]
    assert operator.away == [0, 2]


def test_intent_that_permits_the_loss_keeps_no_pool() -> None:
    operator, intent = Operator(), ClusterIntent(disruption="reboot", drain=DrainOptions(True, True))
    prepared = roller(operator, intent).prepare(CONFIGS, check_mode=False)
    operator.drained = (pod(**DATA),)
    assert [roll.error for roll in roller(operator, intent).release(prepared.paused, 600, NODES)] == [""]


def test_nothing_is_paused_or_applied_for_a_pod_that_is_there_before() -> None:
    operator = Operator()
    operator.drained = (pod(),)
    with pytest.raises(NodeFailed, match="ml/train"):
        roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    assert (operator.paused, operator.configs) == (False, {})


def test_pods_that_cannot_be_read_keep_the_pool() -> None:
    operator = Operator()
    prepared = roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    real = operator.list

    def refuse(kind: str, *of: str, **more: str) -> Listing:
        if kind == "Pod":
            raise ApiError(403, "Forbidden", "cannot list pods", "GET")
        return real(kind, *of, **more)

    operator.list = refuse  # type: ignore[method-assign]
    (roll,) = roller(operator, INTENT).release(prepared.paused, 600, NODES)
    assert "the pods of n0, n1, n2 could not be read" in roll.error and operator.paused


def installed() -> Operator:
    operator = Operator()
    prepared = roller(operator, INTENT).prepare(CONFIGS, check_mode=False)
    roller(operator, INTENT).release(prepared.paused, 600, NODES)
    operator.away.clear()
    return operator


def test_removal_deletes_nothing_while_a_job_runs_on_its_nodes() -> None:
    operator = installed()
    there = dict(operator.configs)
    operator.drained = (pod(owner="Job"),)
    with pytest.raises(NodeFailed, match="no controller starts them again: Pod ml/train on n1") as refused:
        remover(operator).remove(CONFIGS, False)
    assert "kubectl delete pod NAME -n NAMESPACE" in str(refused.value)
    assert (operator.paused, operator.configs) == (False, there)


def test_pool_of_a_removal_stays_paused_for_a_job_that_started_since() -> None:
    operator = installed()
    prepared = remover(operator).remove(CONFIGS, False)
    operator.drained = (pod(owner="Job"),)
    (roll,) = remover(operator).release(prepared.paused, 600, NODES)
    assert "Pod ml/train on n1" in roll.error and (operator.paused, operator.away) == (True, [])
    operator.drained = (pod("elsewhere", owner="Job"),)
    assert [roll.error for roll in remover(operator).release((), 600, NODES)] == [""]


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ({"state": "released", "own_pools": True}, True),
        ({"state": "removed"}, True),
        ({"state": "released"}, False),
        ({"state": "prepared"}, False),
    ],
    ids=["teardown lets go", "teardown deletes", "stage lets go", "stage applies"],
)
def test_module_counts_jobs_for_a_removal_only(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, options: Data, counts: bool
) -> None:
    given: list[typing.Any] = []
    monkeypatch.setattr(MODULE, "PoolGate", lambda *arguments: given.append(arguments[4]))
    objects = [{"object": one} for one in CONFIGS]
    with patch_module_args({"objects": objects, "cluster": {}, **options}), pytest.raises(SystemExit):
        MODULE.main()
    assert [scope is not None for scope in given] == [counts]


def test_refusal_leaves_the_pools_paused_with_its_reason(
    operator: Operator, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    given: Data = {"cluster": {}, "state": "released", "pools": ["worker"], "refusal": "n1 must not go down"}
    roller(operator).prepare(CONFIGS, check_mode=False)
    with patch_module_args(given), pytest.raises(SystemExit):
        MODULE.main()
    said = json.loads(capsys.readouterr().out)
    assert (said["changed"], [roll["error"] for roll in said["rolls"]]) == (
        False,
        ["n1 must not go down. The pool stays paused"],
    )
    assert operator.paused and operator.away == []
