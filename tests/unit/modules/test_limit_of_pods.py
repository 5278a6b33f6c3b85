# SPDX-License-Identifier: GPL-3.0-or-later

"""--limit and the stages that start pods or write a Tuned: an excluded node gets no pod and no change, and the findings
say that the limit excluded it.
"""

from __future__ import annotations

import importlib
import json
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.pods import check_pod
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives import pods as of_collectives
from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions.settings import (
    _explain_missing_pod,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import BY_LIMIT, EXCLUDED
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import CollectivePod
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_answers import NodeAnswers

from ..plan.test_tuning_settings import FABRIC
from .test_cluster_doors import ARGUMENTS
from .test_limit_of_drivers import NAMES, REFUSED, Act, act
from .test_node_tuning import Run, run, world

__all__ = ["act", "run", "world"]
ACTION = "ansible_collections.linerate.rdma.plugins.action"
MODULES = "ansible_collections.linerate.rdma.plugins.modules"
STARTING = ("rdma_bandwidth", "rdma_collectives", "vf_pods", "memlock_proof", "observers")


@pytest.mark.parametrize("name", STARTING)
def test_module_that_starts_pods_gets_the_excluded_nodes(act: Act, name: str) -> None:
    action = importlib.import_module(f"{ACTION}.{name}")
    _result, (given,) = act(action, "localhost,worker-1", {})
    assert given["excluded"] == ["worker-2"]
    # nodes of the task are limited too
    assert act(action, "localhost", {}, nodes=["worker-1"])[1][0]["excluded"] == ["worker-1"]
    for limit in ("", "all", "localhost,rdma_nodes"):
        assert "excluded" not in act(action, limit, {})[1][0]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a module without an API server, and return its result."""

    def call(name: str, **options: typing.Any) -> dict[str, typing.Any]:
        module = importlib.import_module(f"{MODULES}.{name}")
        monkeypatch.setattr(module, "connect", lambda given: pytest.fail("the module asks the API server"))
        given = {**ARGUMENTS[name], "nodes": NAMES, **options}
        with patch_module_args(given), pytest.raises(SystemExit) as ended:
            module.main()
        result: dict[str, typing.Any] = json.loads(capsys.readouterr().out)
        assert not ended.value.code, result
        return result

    return call


def list_causes(result: dict[str, typing.Any]) -> dict[str, str]:
    pods = result.get("pods") or (result.get("bandwidth") or result["collectives"])["pods"]
    return {pod["node"]: pod["cause"] for pod in pods}


@pytest.mark.parametrize("name", ["rdma_bandwidth", "rdma_collectives", "vf_pods"])
def test_excluded_node_has_no_pod_and_an_error_that_says_so(start: Run, name: str) -> None:
    dry = start(name, excluded=["worker-2"], _ansible_check_mode=True)
    assert list_causes(dry) == {"worker-1": "", "worker-2": BY_LIMIT}
    assert list_causes(start(name, excluded=NAMES)) == dict.fromkeys(NAMES, BY_LIMIT)


def test_no_excluded_node_proves_its_locked_memory(start: Run) -> None:
    assert start("memlock_proof", excluded=NAMES)["proofs"] == []


def test_pod_of_an_excluded_node_is_unknown_and_its_remedy_names_the_limit() -> None:
    (fabric,) = parse_intent([FABRIC], None, {}).fabrics
    pod = RdmaPod(fabric.name, "worker-2", "", "linerate-measure", error=EXCLUDED, cause=BY_LIMIT)
    of_group = CollectivePod("worker-2", error=EXCLUDED, cause=BY_LIMIT)
    for finding, stage in (
        (check_pod(fabric, (0, "worker-2"), pod), "bandwidth"),
        (of_collectives.check_pod(fabric, "worker-2", of_group), "collectives"),
    ):
        assert finding.status == "unknown" and "--limit of ansible-playbook excludes the node" in finding.why
        assert finding.remedy == f"Run stage {stage} again, with worker-2 in --limit or without --limit."
    why, remedy = _explain_missing_pod("worker-2", [pod], ObservedHcas())
    assert "because --limit excluded the node" in why and "with worker-2 in --limit" in remedy


def test_tuned_is_not_written_if_a_limit_excludes_a_node(act: Act, run: Run, world: typing.Any) -> None:
    action = importlib.import_module(f"{ACTION}.node_tuning")
    _result, (given,) = act(action, "localhost,worker-1", {})
    assert given["refusal"]["seen"] == REFUSED.format("stage tuning") and given["refusal"]["remedy"]
    assert "refusal" not in act(action, "localhost,worker-1", {}, True)[1][0]
    assert "refusal" not in act(action, "", {})[1][0]

    held = run(refusal=given["refusal"])
    assert (held["changed"], held["set"]["refusal"], world.tuned()) == (False, given["refusal"]["seen"], None)
    assert held["set"]["remedy"] == given["refusal"]["remedy"]
    # a Tuned that is right is not written, so a limit does not matter
    assert run()["changed"]
    again = run(refusal=given["refusal"])
    assert not again["set"]["refusal"] and {item["state"] for item in again["set"]["nodes"].values()} == {"set"}


def test_excluded_nodes_take_no_part_in_a_plan() -> None:
    answers = NodeAnswers(typing.cast(typing.Any, {"a": 1, "b": 2}), {"b": ()})
    left = answers.without(["b"])
    assert (list(left.hcas), list(left.subnets)) == (["a"], []) and answers.without([]) is answers
