# SPDX-License-Identifier: GPL-3.0-or-later

"""A value beside a reason why there is none is refused where facts are loaded, whatever their kind."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_exactly import load_all, load_exactly
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.error_counters import SeenErrors
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ManagerPort,
    ObservedSubnets,
    SeenSubnet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import TrainingPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas

MASTER = {"lid": 1, "guid": "0x0001000000000001", "state": "MASTER", "priority": 1, "activity": 1}
PORT = {"rdma_device": "mlx5_0", "port": 1}
REPORT: dict[str, typing.Any] = {"ports": [], "checked": 2}


@pytest.mark.parametrize(
    ("cls", "data", "field"),
    [
        (SeenSubnet, {**PORT, "master": MASTER, "error": "timeout"}, "error"),
        (SeenSubnet, {**PORT, "master": MASTER, "silent": True}, "silent"),
        (SeenSubnet, {**PORT, "master": MASTER, "linked": False}, "linked"),
        (ManagerPort, {"lid": 1, "manager": MASTER, "error": "timeout"}, "error"),
        (SeenErrors, {"first": REPORT, "later": REPORT, "error": "timeout"}, "error"),
        (TrainingPod, {"name": "a", "host": "a", "node": "n", "functions": [], "error": "no annotation"}, "error"),
    ],
)
def test_value_beside_a_reason_is_refused_by_each_way_to_load(
    cls: typing.Any, data: dict[str, typing.Any], field: str
) -> None:
    for way in (load, load_exactly):
        with pytest.raises(LoadError, match=f"fact.{field}: .*but not both"):
            way(cls, data, "fact")
    _value, problems = load_all(cls, data, "fact")
    assert [problem.path for problem in problems] == [f"fact.{field}"]
    without = {name: value for name, value in data.items() if name != field}
    assert load(cls, without) == load_exactly(cls, without)


def test_one_reading_beside_the_reason_why_the_other_is_missing_is_taken() -> None:
    assert load(SeenErrors, {"first": REPORT, "error": "timeout"}).error == "timeout"


def test_answer_beside_an_error_is_the_error_of_the_node() -> None:
    for cls, value in ((ObservedHcas, {"hcas": []}), (ObservedSubnets, [])):
        found = load(cls, {"value": value, "error": "unreachable"})
        assert found.value is None
        assert "its output is not valid: error: 'unreachable' (string) beside value" in found.error


def test_contradiction_in_one_port_is_the_error_of_its_node() -> None:
    found = load(ObservedSubnets, {"value": [{**PORT, "master": MASTER, "error": "timeout"}], "error": None})
    assert found.value is None and "value[0].error" in found.error
