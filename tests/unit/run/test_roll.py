# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs in one roll, against a small machine config operator: it renders a while after a change, and rolls one node at each look."""

from __future__ import annotations

import copy
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check import roll
from ansible_collections.linerate.rdma.plugins.module_utils._model.host_needs import HostNeeds, Memlock, Roll
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Listing
from ansible_collections.linerate.rdma.plugins.module_utils._render.host import machine_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.roll import RENDER, Roller

CONFIGS = machine_configs(HostNeeds(Memlock("machine_config", limit_gib=8), ("iommu=pt",)))
NAMES = [config["metadata"]["name"] for config in CONFIGS]


class Operator:
    """The API server and the machine config operator behind it; each sleep of the roller is a step of theirs."""

    def __init__(self, nodes: int = 3, renders: bool = True, breaks_at: int = -1, refuses: bool = False, restless: bool = False) -> None:
        self.configs: typing.Dict[str, typing.Any] = {}
        self.nodes, self.renders, self.breaks_at, self.refuses, self.restless = ["rendered-0"] * nodes, renders, breaks_at, refuses, restless
        self.wanted, self.sources, self.paused, self.annotations, self.number = "rendered-0", (), False, {}, 0
        self.now, self.away, self.log = 0.0, [], []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.renders and set(self.sources) != set(self.configs):
            self._render()
        behind = [place for place, config in enumerate(self.nodes) if config != self.wanted]
        if behind and not self.paused and behind[0] != self.breaks_at:
            self.nodes[behind[0]] = self.wanted
            self.away.append(behind[0])
            if self.restless and len(behind) == 2:
                self.restless = False
                self._render()

    def _render(self) -> None:
        self.number += 1
        self.wanted, self.sources = f"rendered-{self.number}", tuple(self.configs)

    def list(self, kind: str) -> Listing:
        assert kind == "MachineConfigPool"
        done = sum(config == self.wanted for config in self.nodes)
        broken = self.breaks_at >= 0 and not self.paused and done == self.breaks_at and self.wanted != "rendered-0"
        pool = {
            "kind": kind,
            "metadata": {"name": "worker", "annotations": dict(self.annotations)},
            "spec": {
                "paused": self.paused,
                "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}},
                "configuration": {"name": self.wanted, "source": [{"name": name} for name in self.sources]},
            },
            "status": {
                "configuration": {"name": self.wanted if done == len(self.nodes) else "rendered-0"},
                "machineCount": len(self.nodes),
                "updatedMachineCount": done,
                "conditions": [{"type": "Degraded", "status": str(broken), "message": "node 1 is out of sync"}],
            },
        }
        return Listing((pool,), "1")

    def get(self, kind: str, namespace: str, name: str) -> typing.Any:
        if name not in self.configs:
            raise ApiError(404, "NotFound", "not found", "GET")
        return copy.deepcopy(self.configs[name])

    def apply(self, definition: typing.Any, manager: str, dry_run: bool) -> typing.Tuple[typing.Any, typing.Tuple[str, ...]]:
        if self.refuses:
            raise ApiError(403, "Forbidden", "may not patch machineconfigs", "PATCH")
        if not dry_run:
            assert self.paused, "a MachineConfig was applied while its pool could roll"
            self.configs[definition["metadata"]["name"]] = copy.deepcopy(definition)
        return copy.deepcopy(definition), ()

    def delete(self, kind: str, namespace: str, name: str) -> bool:
        assert self.paused, "a MachineConfig was deleted while its pool could roll"
        return self.configs.pop(name, None) is not None

    def patch(self, kind: str, namespace: str, name: str, change: typing.Any) -> typing.Any:
        self.paused = change["spec"]["paused"]
        self.annotations = {key: value for key, value in change["metadata"]["annotations"].items() if value is not None}
        return {}


def roller(operator: typing.Any) -> Roller:
    return Roller(operator, operator.clock, operator.sleep, operator.log.append)


def test_all_machine_configs_come_in_one_roll_and_each_node_goes_away_once() -> None:
    operator = Operator()
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert (prepared.paused, prepared.error) == (("worker",), "")
    assert operator.paused and operator.annotations and set(operator.configs) == set(NAMES) and operator.away == []
    (rolled,) = roller(operator).release(prepared.paused, 600)
    assert (rolled.rolls, rolled.machines, rolled.updated, rolled.error) == (1, 3, 3, "")
    assert operator.away == [0, 1, 2] and not operator.paused and operator.annotations == {}
    assert [finding.status for finding in roll.findings((rolled,), "")] == ["pass"]
    assert any("3 of 3 machines" in line for line in operator.log)


def test_a_second_run_pauses_nothing_and_rolls_nothing() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    again = roller(operator).prepare(CONFIGS, check_mode=False)
    assert (again.paused, [item.applied.action for item in again.outcomes]) == ((), ["unchanged", "unchanged"])
    assert roller(operator).release(again.paused, 600) == () and operator.away == [0, 1, 2]


def test_check_mode_and_a_refusal_pause_nothing() -> None:
    operator = Operator()
    assert [item.applied.action for item in roller(operator).prepare(CONFIGS, check_mode=True).outcomes] == ["created", "created"]
    refused = roller(Operator(refuses=True)).prepare(CONFIGS, check_mode=False)
    assert (refused.paused, refused.outcomes[0].applied.refusal) == ((), "may not patch machineconfigs")
    assert not operator.paused and operator.configs == {}


def test_a_pool_that_a_stopped_run_left_paused_is_let_go() -> None:
    operator = Operator()
    roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release((), 600)
    assert (rolled.pool, rolled.rolls, operator.paused) == ("worker", 1, False)


def test_a_pool_with_nothing_new_counts_no_roll() -> None:
    operator = Operator()
    operator.paused, operator.annotations = True, {"linerate.rdma/paused": "true"}
    assert [item.rolls for item in roller(operator).release((), 600)] == [0]


def test_a_controller_that_does_not_render_is_an_error_and_the_pool_is_let_go() -> None:
    operator = Operator(renders=False)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert "was not rendered within" in prepared.error and operator.now >= RENDER
    roller(operator).release(prepared.paused, 60)
    assert not operator.paused
    assert next(iter(roll.findings((), prepared.error))).status == "fail"


@pytest.mark.parametrize(
    ("operator", "said"),
    [(Operator(breaks_at=1), "degraded: node 1 is out of sync"), (Operator(nodes=300), "after 60 s")],
    ids=["degraded", "too slow"],
)
def test_a_roll_that_hangs_says_where_it_stands(operator: Operator, said: str) -> None:
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 60)
    assert said in rolled.error
    assert [finding.status for finding in roll.findings((rolled,), "")] == ["fail"]


def test_a_second_roll_is_counted_and_fails() -> None:
    operator = Operator(restless=True)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 600)
    assert rolled.rolls == 2
    (finding,) = roll.findings((rolled,), "")
    assert finding.status == "fail" and "rebooted more often" in finding.why


def test_a_pool_that_vanishes_is_an_error() -> None:
    operator = Operator()
    operator.list = lambda kind: Listing((), "1")  # type: ignore[method-assign]
    assert roller(operator).release(("worker",), 60) == (Roll("worker", error="the MachineConfigPool is gone"),)


def test_the_way_back_is_one_roll_too() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    assert [item.applied.action for item in roller(operator).remove(CONFIGS, check_mode=True).outcomes] == ["deleted", "deleted"]
    assert set(operator.configs) == set(NAMES)
    removed = roller(operator).remove(CONFIGS, check_mode=False)
    assert (removed.paused, removed.error, operator.configs) == (("worker",), "", {})
    assert [item.rolls for item in roller(operator).release(removed.paused, 600)] == [1]
    assert operator.away == [0, 1, 2, 0, 1, 2]
    assert roller(operator).remove(CONFIGS, check_mode=False).paused == ()


def test_a_pool_that_somebody_else_has_paused_stays_so() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    operator.paused = True
    removed = roller(operator).remove(CONFIGS, check_mode=False)
    assert (removed.paused, operator.configs) == ((), {})
    assert roller(operator).release(removed.paused, 600) == () and operator.paused
