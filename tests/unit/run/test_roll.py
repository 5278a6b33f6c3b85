# SPDX-License-Identifier: GPL-3.0-or-later

"""MachineConfigs and a KubeletConfig in one roll, against a small machine config operator: it renders a while after a
change, makes MachineConfigs of KubeletConfigs meanwhile, and rolls one node at each look."""

from __future__ import annotations

import copy
import dataclasses
import functools
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption import judge_kubelet, judge_rolls
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import KubeletStatus, Roll
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.machines import read_kubelet_status
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drain import NodeFailed
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import PoolGate
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    PoolRoller,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.render_waits import RENDER

CONFIGS = render_host_configs(
    HostNeeds(
        Memlock("machine_config", limit_gib=8), ("iommu=pt",), Kubelet("single-numa-node", cpu_manager_policy="static")
    )
)
OTHERS = render_host_configs(HostNeeds(Memlock("machine_config", limit_gib=9), ("iommu=pt",), Kubelet("restricted")))
GENERATED = "99-worker-generated-kubelet"
NAMES = [*(config["metadata"]["name"] for config in CONFIGS if config["kind"] == "MachineConfig"), GENERATED]


class Operator:
    """The API server and the machine config operator behind it; each sleep of the roller is a step of theirs.

    :ivar lag: steps from a change of the MachineConfigs to the configuration that is rendered of them
    :ivar slow: steps from a new KubeletConfig to its MachineConfig
    :ivar gone: the node that breaks is NotReady, rather than degraded
    :ivar drained: pods on the node that breaks, and budgets: it is drained for ever
    :ivar refusal: what it has against KubeletConfigs; None: it never says a word
    :ivar recounts: steps from a node that has its configuration to the pool that counts it
    """

    def __init__(
        self,
        nodes: int = 3,
        renders: bool = True,
        breaks_at: int = -1,
        refuses: bool = False,
        restless: bool = False,
        lag: int = 1,
        slow: int = 1,
        refusal: typing.Optional[str] = "",
    ) -> None:
        self.configs: dict[str, typing.Any] = {}
        self.kubelets: dict[str, typing.Any] = {}
        self.nodes, self.renders, self.breaks_at, self.refuses, self.restless = (
            ["rendered-0"] * nodes,
            renders,
            breaks_at,
            refuses,
            restless,
        )
        self.lag, self.slow, self.refusal, self.stale, self.asked, self.contents = lag, slow, refusal, 0, 0, "{}"
        self.wanted, self.paused, self.number, self.now, self.gone = "rendered-0", False, 0, 0.0, False
        self.sources: tuple[str, ...] = ()
        self.annotations: dict[str, typing.Any] = {}
        self.pauser = ""
        self.away: list[int] = []
        self.drained: tuple[typing.Any, ...] = ()
        self.turns: list[typing.Any] = []
        self.log: list[str] = []
        self.recounts = 0
        self.courses: list[list[str]] = []
        self.cordoned: set[int] = set()
        self.checks: dict[str, typing.Any] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.courses.append(list(self.nodes))
        self.stale += self.specs() != self.contents
        if self.renders and self.stale >= self.lag:
            self._render()
        self.asked += any(
            "deletionTimestamp" in item["metadata"] or not self._served(item) for item in self.kubelets.values()
        )
        for name in tuple(self.kubelets) if self.asked >= self.slow else ():
            self._serve(name)
        behind = [place for place, config in enumerate(self.nodes) if config != self.wanted]
        if behind and not self.paused and behind[0] != self.breaks_at:
            self.nodes[behind[0]] = self.wanted
            self.away.append(behind[0])
            if self.restless and len(behind) == 2:
                self.restless = False
                self._render()

    def specs(self) -> str:
        """What a configuration is rendered of: no labels."""
        return str({name: config.get("spec", config) for name, config in self.configs.items()})

    def _render(self) -> None:
        self.number += 1
        self.stale, self.contents = 0, self.specs()
        self.wanted, self.sources = f"rendered-{self.number}", tuple(self.configs)

    def _serve(self, name: str) -> None:
        """Make a MachineConfig of a KubeletConfig, or take it back. [machine-config-operator
        pkg/controller/kubelet-config syncKubeletConfig]"""
        self.asked, config = 0, self.kubelets[name]
        metadata, status = config["metadata"], config.setdefault("status", {"conditions": []})
        if "deletionTimestamp" in metadata:
            self.configs.pop(GENERATED, None)
            del self.kubelets[name]
        elif self.refusal is not None and not self._served(config):
            status["observedGeneration"] = metadata["generation"]
            status["conditions"].append(
                {"type": "Failure", "status": "False", "message": self.refusal}
                if self.refusal
                else {"type": "Success", "status": "True"}
            )
            if not self.refusal:
                self.configs[GENERATED] = copy.deepcopy(config["spec"]["kubeletConfig"])
                metadata.update(
                    finalizers=[GENERATED], annotations={"machineconfiguration.openshift.io/mc-name-suffix": ""}
                )

    @staticmethod
    def _served(config: typing.Any) -> bool:
        return bool(config.get("status", {}).get("observedGeneration") == config["metadata"]["generation"])

    def _objects(self, kind: str) -> dict[str, typing.Any]:
        return self.kubelets if kind == "KubeletConfig" else self.configs

    def pages(self, kind: str, fields: str = "", **_more: typing.Any) -> typing.Iterator[typing.Any]:
        return iter(self.list(kind, fields=fields).items)

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        if kind in ("Pod", "PodDisruptionBudget"):
            return Listing(tuple(item for item in self.drained if item["kind"] == kind), "1")
        if kind == "Node":
            return Listing(tuple(self._node(place, config) for place, config in enumerate(self.nodes)), "1")
        if kind == "KubeletConfig":
            return Listing(tuple(copy.deepcopy(list(self.kubelets.values()))), "1")
        if kind == "NodeHealthCheck":
            return Listing(tuple(copy.deepcopy(list(self.checks.values()))), "1")
        if kind in ("NicDevice", "SriovNetworkNodeState"):
            return Listing(tuple(item for item in self.turns if item["kind"] == kind), "1")
        assert kind == "MachineConfigPool"
        counted = self.courses[-self.recounts] if self.recounts and len(self.courses) >= self.recounts else self.nodes
        done = sum(config == self.wanted for config in counted)
        broken = (
            not self.gone
            and not self.drained
            and self.breaks_at >= 0
            and not self.paused
            and done == self.breaks_at
            and self.wanted != "rendered-0"
        )
        pool = {
            "kind": kind,
            "metadata": {
                "name": "worker",
                "labels": {"pools.operator.machineconfiguration.openshift.io/worker": ""},
                "annotations": dict(self.annotations),
                "managedFields": [
                    {"manager": self.pauser, "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "machine-config-controller", "fieldsV1": {"f:spec": {"f:configuration": {}}}},
                ],
            },
            "spec": {
                "paused": self.paused,
                "nodeSelector": {"matchLabels": {"role": "worker"}},
                "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}},
                "configuration": {"name": self.wanted, "source": [{"name": name} for name in self.sources]},
            },
            "status": {
                "configuration": {"name": self.wanted if done == len(self.nodes) else "rendered-0"},
                "machineCount": len(self.nodes),
                "updatedMachineCount": done,
                "conditions": [
                    {"type": "Degraded", "status": str(broken), "message": "node 1 is out of sync"},
                    {"type": "Updating", "status": str(self.gone)},
                ],
            },
        }
        return Listing((pool,), "1")

    def _node(self, place: int, config: str) -> typing.Any:
        """The node that breaks is away, and has what it had."""
        names = {"currentConfig": config, "desiredConfig": self.wanted, "state": "Done"}
        annotations = {f"machineconfiguration.openshift.io/{name}": value for name, value in names.items()}
        ready = [{"type": "Ready", "status": str(place != self.breaks_at or not self.gone)}]
        spec = {"unschedulable": True} if (place == self.breaks_at and self.drained) or place in self.cordoned else {}
        metadata = {"name": f"n{place}", "labels": {"role": "worker"}, "annotations": annotations}
        return {"metadata": metadata, "spec": spec, "status": {"conditions": ready}}

    def serves(self, group: str) -> bool:
        return group in ("remediation.medik8s.io", "machineconfiguration.openshift.io")

    def get(self, kind: str, namespace: str, name: str) -> typing.Any:
        if kind == "NodeHealthCheck":
            return copy.deepcopy(self.checks[name])
        if name not in self._objects(kind):
            raise ApiError(404, "NotFound", "not found", "GET")
        return copy.deepcopy(self._objects(kind)[name])

    def apply(self, definition: typing.Any, manager: str, dry_run: bool) -> tuple[typing.Any, tuple[str, ...]]:
        if self.refuses:
            raise ApiError(403, "Forbidden", "may not patch machineconfigs", "PATCH")
        objects, name = self._objects(definition["kind"]), definition["metadata"]["name"]
        live = objects.get(name, {"metadata": {"generation": 0}})
        changed = live.get("spec") != definition["spec"]
        metadata = {
            **live["metadata"],
            **definition["metadata"],
            "generation": live["metadata"]["generation"] + changed,
            "uid": f"uid-{name}",
        }
        result = copy.deepcopy({**live, **definition, "metadata": metadata})
        if not dry_run:
            assert self.paused or not changed, "a MachineConfig was applied while its pool could roll"
            objects[name] = result
        return copy.deepcopy(result), ()

    def delete(self, kind: str, namespace: str, name: str, only: typing.Mapping[str, str]) -> bool:
        assert only == {"uid": f"uid-{name}"}
        assert self.paused, "a MachineConfig was deleted while its pool could roll"
        if kind == "MachineConfig":
            return self.configs.pop(name, None) is not None
        self.kubelets[name]["metadata"]["deletionTimestamp"] = "now"
        return True

    def patch(self, kind: str, namespace: str, name: str, change: typing.Any, manager: str = "") -> typing.Any:
        if kind == "NodeHealthCheck":
            self.checks[name]["spec"]["pauseRequests"] = change["spec"]["pauseRequests"] or []
            self.log.append(
                f"{name}: {len(self.checks[name]['spec']['pauseRequests'])} pauses, {len(self.away)} nodes rolled"
            )
            return {}
        if kind != "MachineConfigPool":
            labels = self._objects(kind)[name]["metadata"]["labels"]
            labels.update(change["metadata"]["labels"])
            self._objects(kind)[name]["metadata"]["labels"] = {
                key: value for key, value in labels.items() if value is not None
            }
            return {}
        self.pause(change["spec"]["paused"], manager)
        self.annotations = {key: value for key, value in change["metadata"]["annotations"].items() if value is not None}
        return {}

    def pause(self, paused: bool, manager: str) -> None:
        """As the API server does, which records who has changed a field last."""
        self.pauser = manager if paused != self.paused else self.pauser
        self.paused = paused


def roller(operator: typing.Any, intent: typing.Optional[ClusterIntent] = None) -> PoolRoller:
    """:param intent: by which the gate is asked; None for who has asked it"""
    gate = (
        PoolGate(operator, intent, [f"n{place}" for place in range(len(operator.nodes))], operator.log.append)
        if intent is not None
        else None
    )
    return PoolRoller(operator, operator.clock, operator.sleep, operator.log.append, gate, intent)


def test_all_machine_configs_come_in_one_roll_and_each_node_goes_away_once() -> None:
    operator = Operator()
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert (prepared.paused, prepared.error) == (("worker",), "")
    assert operator.paused and operator.annotations and set(operator.configs) == set(NAMES) and operator.away == []
    (rolled,) = roller(operator).release(prepared.paused, 600)
    assert (rolled.rolls, rolled.machines, rolled.updated, rolled.error) == (1, 3, 3, "")
    assert operator.away == [0, 1, 2] and not operator.paused and operator.annotations == {}
    assert [finding.status for finding in judge_rolls.check_rolls((rolled,), "")] == ["pass"]
    assert any("3 of 3 machines" in line for line in operator.log)


def test_a_pool_that_counts_its_nodes_some_seconds_late_is_waited_for() -> None:
    """As the real controller does: with all nodes done by their own annotations, the pool has not counted the last one
    yet."""
    operator = Operator()
    operator.recounts = 2
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 600, ("n0", "n1", "n2"))
    assert (rolled.updated, rolled.others, rolled.error) == (3, (), "")
    assert [finding.status for finding in judge_rolls.check_rolls((rolled,), "")] == ["pass"]


def test_nobody_waits_for_a_foreign_node_that_is_away_and_none_of_ours_is_forgotten() -> None:
    for inventory, gone, others, error in (
        (("n0", "n1"), True, ("n2",), ""),
        (("n0", "n1"), False, ("n2",), ""),
        (("n0", "n2"), True, (), "has 2 of 3 machines on rendered-"),
        ((), True, (), "has 2 of 3 machines on rendered-"),
        (("elsewhere",), True, (), "has 2 of 3 machines on rendered-"),
        (("n0", "n2"), False, (), "is degraded: node 1 is out of sync"),
    ):
        operator = Operator(breaks_at=2)
        prepared = roller(operator).prepare(CONFIGS, check_mode=False)
        operator.gone = gone
        (rolled,) = roller(operator).release(prepared.paused, 600, inventory)
        assert (rolled.others, rolled.updated) == (others, 2)
        assert error in rolled.error and bool(rolled.error) == bool(error)
        (finding,) = judge_rolls.check_rolls((rolled,), "")
        assert finding.status == ("warn" if others else "fail")
        assert not others or "These other nodes of the pool do not have it: n2" in finding.why
        (stand,) = judge_kubelet.check_kubelet(roller(operator).kubelet(CONFIGS, inventory), False)
        assert stand.status == ("pass" if others else "unknown")


def test_a_second_run_pauses_nothing_and_rolls_nothing() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    again = roller(operator).prepare(CONFIGS, check_mode=False)
    assert (again.paused, [item.applied.action for item in again.outcomes]) == ((), ["unchanged"] * 3)
    assert roller(operator).release(again.paused, 600) == () and operator.away == [0, 1, 2]


def test_check_mode_and_a_refusal_pause_nothing() -> None:
    operator = Operator()
    assert [item.applied.action for item in roller(operator).prepare(CONFIGS, check_mode=True).outcomes] == [
        "created"
    ] * 3
    refused = roller(Operator(refuses=True)).prepare(CONFIGS, check_mode=False)
    assert (refused.paused, refused.outcomes[0].applied.refusal) == ((), "may not patch machineconfigs")
    assert not operator.paused and operator.configs == {}


def test_a_pool_that_a_stopped_run_left_paused_is_let_go() -> None:
    operator = Operator()
    roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release((), 600)
    assert (rolled.pool, rolled.rolls, operator.paused) == ("worker", 1, False)


@pytest.mark.parametrize("changed", [False, True], ids=["new", "changed"])
def test_what_a_run_has_applied_that_was_killed_then_is_rendered_before_its_pool_is_let_go(changed: bool) -> None:
    operator = Operator(lag=2)
    if changed:
        roller(operator).release(roller(operator).prepare(OTHERS, check_mode=False).paused, 600)
        operator.away.clear()
    operator.paused, operator.annotations = True, {"linerate.rdma/paused": "true"}
    for config in CONFIGS:
        operator.apply(config, "", False)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert (prepared.paused, prepared.error, operator.away) == (("worker",), "", [])
    (rolled,) = roller(operator).release(prepared.paused, 600)
    assert (rolled.rolls, rolled.error, operator.away) == (1, "", [0, 1, 2])


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
    assert next(iter(judge_rolls.check_rolls((), prepared.error))).status == "fail"


@pytest.mark.parametrize(
    ("operator", "said"),
    [(Operator(breaks_at=1), "degraded: node 1 is out of sync"), (Operator(nodes=300), "after 60 s")],
    ids=["degraded", "too slow"],
)
def test_a_roll_that_hangs_says_where_it_stands(operator: Operator, said: str) -> None:
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 60)
    assert said in rolled.error
    assert [finding.status for finding in judge_rolls.check_rolls((rolled,), "")] == ["fail"]


def test_a_node_that_does_not_come_back_is_named() -> None:
    operator = Operator(breaks_at=1)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    operator.gone = True
    (rolled,) = roller(operator).release(prepared.paused, 60)
    (finding,) = judge_rolls.check_rolls((rolled,), "")
    assert (
        finding.status == "fail"
        and "node n1 is NotReady and does not recover" in finding.why
        and "check its console" in finding.why
    )
    assert "n2" not in finding.why, "it waits for its turn"


def test_a_drain_that_a_budget_blocks_names_pod_and_budget() -> None:
    labels = {"app": "db"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "prod", "labels": labels},
        "spec": {"nodeName": "n1"},
    }
    budget = {
        "metadata": {"name": "db", "namespace": "prod"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": 0},
    }
    operator = Operator(breaks_at=1)
    operator.drained = (pod, {"kind": "PodDisruptionBudget", **budget})
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 60)
    (finding,) = judge_rolls.check_rolls((rolled,), "")
    assert finding.status == "fail"
    assert (
        "node n1 is not drained: pod prod/db-0 cannot be evicted because PodDisruptionBudget"
        " prod/db currently allows no eviction: let the PodDisruptionBudget allow an eviction"
    ) in finding.why


def test_a_second_roll_is_counted_and_fails() -> None:
    operator = Operator(restless=True)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release(prepared.paused, 600)
    assert rolled.rolls == 2
    (finding,) = judge_rolls.check_rolls((rolled,), "")
    assert finding.status == "fail" and "rebooted more than once" in finding.why


def test_a_pool_that_vanishes_is_an_error() -> None:
    operator = Operator()
    operator.list = lambda *_asked, **_more: Listing((), "1")  # type: ignore[method-assign]
    assert roller(operator).release(("worker",), 60) == (
        Roll("worker", error="the MachineConfigPool no longer exists"),
    )


def test_the_way_back_is_one_roll_too() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    assert [item.applied.action for item in roller(operator).remove(CONFIGS, check_mode=True).outcomes] == [
        "deleted"
    ] * 3
    assert set(operator.configs) == set(NAMES)
    removed = roller(operator).remove(CONFIGS, check_mode=False)
    assert (removed.paused, removed.error, operator.configs, operator.kubelets) == (("worker",), "", {}, {})
    assert [item.rolls for item in roller(operator).release(removed.paused, 600)] == [1]
    assert operator.away == [0, 1, 2, 0, 1, 2]
    assert roller(operator).remove(CONFIGS, check_mode=False).paused == ()


def test_those_of_an_earlier_intent_go_in_the_same_roll() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    older = [*(operator.configs[name] for name in NAMES[1:2]), *operator.kubelets.values()]
    removed = roller(operator).remove(CONFIGS[:1], False, copy.deepcopy(older))
    assert (len(removed.outcomes), removed.paused, operator.configs, operator.kubelets) == (3, ("worker",), {}, {})
    assert [item.rolls for item in roller(operator).release(removed.paused, 600)] == [1]


def test_what_others_made_under_these_names_stays_without_a_roll() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    for name in NAMES[:2]:
        operator.configs[name]["metadata"]["labels"].pop(LABEL)
    config = next(iter(operator.kubelets.values()))
    config["metadata"]["labels"][LABEL] = "argocd"
    before = copy.deepcopy((operator.configs, operator.kubelets))
    for check_mode in (True, False):
        removed = roller(operator).remove(CONFIGS, check_mode=check_mode)
        assert (removed.outcomes, removed.paused, removed.error) == ((), (), "")
        assert [item.subject for item in removed.stays] == [
            f"{config['kind']} {config['metadata']['name']}" for config in CONFIGS
        ]
        assert "has no label app.kubernetes.io/managed-by=linerate.rdma" in removed.stays[0].why
        assert removed.stays[0].remedy.endswith("kubectl delete machineconfig 99-worker-linerate-memlock")
    assert (operator.configs, operator.kubelets) == before and operator.away == [0, 1, 2] and not operator.paused


def test_a_machine_config_that_a_user_copied_stays_without_a_roll() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    copied = {**copy.deepcopy(operator.configs[NAMES[0]]), "kind": "MachineConfig"}
    copied["metadata"].update(name="99-gpu-memlock", managedFields=[{"manager": "kubectl"}])
    removed = roller(operator).remove([], False, [copied])
    assert (removed.outcomes, removed.paused) == ((), ()) and "no run wrote it" in removed.stays[0].why


def test_beside_what_others_made_only_what_is_ours_goes() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    operator.configs[NAMES[0]]["metadata"]["labels"].pop(LABEL)
    removed = roller(operator).remove(CONFIGS, check_mode=False)
    assert [item.applied.name for item in removed.outcomes] == [NAMES[1], "linerate-worker"]
    assert set(operator.configs) == {NAMES[0]} and not operator.kubelets
    assert (removed.paused, removed.error, len(removed.stays)) == (("worker",), "", 1)


@pytest.mark.parametrize("same", [True, False])
def test_an_object_of_others_is_not_taken_over(same: bool) -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS[:1], check_mode=False).paused, 600)
    live = operator.configs[NAMES[0]]
    live["metadata"]["labels"].pop(LABEL)
    before = copy.deepcopy(live)
    prepared = roller(operator).prepare((CONFIGS if same else OTHERS)[:1], check_mode=False)
    assert [item.applied.action for item in prepared.outcomes] == ["unchanged" if same else "refused"]
    assert operator.configs[NAMES[0]] == before and prepared.paused == () and not operator.paused


def test_a_pool_that_somebody_else_has_paused_stays_so() -> None:
    operator = Operator()
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    operator.paused = True
    removed = roller(operator).remove(CONFIGS, check_mode=False)
    assert removed.paused == () and set(operator.configs) <= {GENERATED}
    assert roller(operator).release(removed.paused, 600) == () and operator.paused


def test_another_wish_for_both_is_one_roll_although_the_kubelet_comes_later() -> None:
    operator = Operator(lag=2, slow=2)
    roller(operator).release(roller(operator).prepare(CONFIGS, check_mode=False).paused, 600)
    prepared = roller(operator).prepare(OTHERS, check_mode=False)
    assert (prepared.error, [item.applied.action for item in prepared.outcomes]) == (
        "",
        ["changed", "unchanged", "changed"],
    )
    assert (
        operator.configs[GENERATED] == {"topologyManagerPolicy": "restricted"} and operator.contents == operator.specs()
    )
    assert [item.rolls for item in roller(operator).release(prepared.paused, 600)] == [1]


def test_a_machine_config_with_other_contents_is_waited_for_however_long_it_takes() -> None:
    operator = Operator(lag=4)
    roller(operator).release(roller(operator).prepare(CONFIGS[:1], check_mode=False).paused, 600)
    assert roller(operator).prepare(OTHERS[:1], check_mode=False).error == "" and operator.contents == operator.specs()


def test_a_kubelet_config_that_is_refused_is_an_error_in_the_operator_s_words_and_is_not_waited_out() -> None:
    operator = Operator(refusal="Error: max number of supported kubelet config (10) has been reached")
    prepared = roller(operator).prepare(CONFIGS[-1:], check_mode=False)
    assert (
        prepared.error
        == "KubeletConfig linerate-worker was not accepted: Error: max number of supported kubelet config (10) has been"
        " reached"
    )
    assert operator.now < RENDER
    assert [item.rolls for item in roller(operator).release(prepared.paused, 600)] == [0]


def test_beside_a_kubelet_config_that_is_refused_the_rest_is_one_roll() -> None:
    operator = Operator(refusal="Error: no")
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert "was not accepted" in prepared.error
    assert [(item.rolls, item.error) for item in roller(operator).release(prepared.paused, 600)] == [(1, "")]
    assert operator.away == [0, 1, 2]


def test_an_operator_without_a_word_is_an_error() -> None:
    operator = Operator(refusal=None)
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    assert "did not report within 300 s whether it accepts the KubeletConfig" in prepared.error
    assert prepared.paused == ("worker",)


def test_a_kubelet_config_that_was_never_accepted_goes_without_a_roll() -> None:
    operator = Operator(refusal="Error: no")
    roller(operator).release(roller(operator).prepare(CONFIGS[-1:], check_mode=False).paused, 600)
    removed = roller(operator).remove(CONFIGS[-1:], check_mode=False)
    assert (removed.error, operator.kubelets) == ("", {})
    assert [item.rolls for item in roller(operator).release(removed.paused, 600)] == [0]


def judged(operator: typing.Any, check_mode: bool = False) -> tuple[str, str]:
    (finding,) = judge_kubelet.check_kubelet(read_kubelet_status(typing.cast(Cluster, operator), CONFIGS), check_mode)
    return finding.status, f"{finding.measured} {finding.why}"


def test_how_a_kubelet_config_stands_is_told_on_each_run() -> None:
    operator = Operator()
    assert judged(operator, check_mode=True) == (
        "unknown",
        "the cluster has no KubeletConfig of this name with the settings of the intent The run had --check, so it"
        " applied no KubeletConfig.",
    )
    prepared = roller(operator).prepare(CONFIGS, check_mode=False)
    status, said = judged(operator)
    assert status == "unknown" and "MachineConfigPool worker has 0 of 3 machines on rendered-" in said
    roller(operator).release(prepared.paused, 600)
    assert judged(operator) == (
        "pass",
        "topology manager single-numa-node, CPU manager static: on all machines of worker ",
    )
    config = next(iter(operator.kubelets.values()))
    other = {"kind": "KubeletConfig", "metadata": {"name": "performance-gpu", "generation": 1}, "spec": config["spec"]}
    operator.kubelets["performance-gpu"] = other
    assert judged(operator)[0] == "fail" and "also selects KubeletConfig performance-gpu" in judged(operator)[1]
    del operator.kubelets["performance-gpu"]
    config["status"]["conditions"].append({"type": "Failure", "status": "False", "message": "Error: no template"})
    assert judged(operator)[0] == "fail" and judged(operator)[1].startswith("Failure: Error: no template")
    config["metadata"]["generation"] += 1
    assert judged(operator)[0] == "unknown" and "no condition for its current generation" in judged(operator)[1]


def test_a_kubelet_config_without_a_pool_has_no_effect() -> None:
    stand = read_kubelet_status(typing.cast(Cluster, Operator()), CONFIGS)
    (config,) = stand.wanted
    (finding,) = judge_kubelet.check_kubelet(
        KubeletStatus((dataclasses.replace(config, there=True, refusal=""),)), False
    )
    assert (finding.status, finding.measured) == ("fail", "accepted, but no pool selected")


def forbidden(kind: str, namespace: str, name: str) -> typing.Any:
    raise ApiError(403, "Forbidden", "may not", "GET")


def test_kubelet_configs_that_cannot_be_read_are_unknown_and_none_is_no_question() -> None:
    operator = Operator()
    operator.get = forbidden  # type: ignore[method-assign]
    (finding,) = judge_kubelet.check_kubelet(read_kubelet_status(typing.cast(Cluster, operator), CONFIGS), False)
    assert finding.status == "unknown" and "may not" in finding.why
    assert read_kubelet_status(typing.cast(Cluster, operator), CONFIGS[:-1]) == KubeletStatus()
    assert [item.status for item in judge_kubelet.check_kubelet(None, False)] == ["unknown"]


# The gate


class Beside(Operator):
    """With a node beside its pool, which may be away, and a NodeHealthCheck of all nodes where one is wanted."""

    def __init__(self, checked: bool = False) -> None:
        super().__init__()
        self.lost = False
        self.checks = (
            {"workers": {"metadata": {"name": "workers", "resourceVersion": "1"}, "spec": {"selector": {}}}}
            if checked
            else {}
        )

    def list(self, kind: str, namespace: str = "", selector: str = "", fields: str = "") -> Listing:
        found = super().list(kind, namespace, selector, fields)
        if kind != "Node":
            return found
        status = {"conditions": [{"type": "Ready", "status": str(not self.lost)}]}
        return Listing(
            (
                *found.items,
                {"metadata": {"name": "beside", "labels": ClusterIntent().node_selector}, "spec": {}, "status": status},
            ),
            "1",
        )


def test_no_pool_is_touched_while_the_budget_has_no_room() -> None:
    operator = Beside()
    operator.lost = True
    with pytest.raises(NodeFailed, match="beside: NotReady or cordoned, so no other node may go down"):
        roller(operator, ClusterIntent()).prepare(CONFIGS, check_mode=False)
    assert (operator.paused, operator.configs, operator.away) == (False, {}, [])
    operator.configs = {"99-worker-linerate-memlock": CONFIGS[0]}
    with pytest.raises(NodeFailed, match="beside"):
        roller(Removing(operator), ClusterIntent()).remove(CONFIGS, check_mode=False)
    assert (operator.paused, operator.away) == (False, [])


class Removing:
    """The same, with a MachineConfig that is there."""

    def __init__(self, operator: Beside) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._operator, name)

    def get(self, kind: str, namespace: str, name: str) -> typing.Any:
        found = self._operator.get(kind, namespace, name)
        return {**found, "metadata": {**found["metadata"], "uid": f"uid-{name}"}}


def test_a_pool_stays_paused_where_a_node_has_gone_since_and_the_next_run_lets_it_go() -> None:
    operator = Beside()
    prepared = roller(operator, ClusterIntent()).prepare(CONFIGS, check_mode=False)
    operator.lost = True
    (rolled,) = roller(operator, ClusterIntent()).release(prepared.paused, 600)
    assert "beside: NotReady or cordoned" in rolled.error and "The pool stays paused." in rolled.error
    assert operator.paused and operator.away == []
    assert [finding.status for finding in judge_rolls.check_rolls((rolled,), "")] == ["fail"]
    operator.lost = False
    (rolled,) = roller(operator, ClusterIntent()).release((), 600)
    assert rolled.error == "" and operator.away == [0, 1, 2] and not operator.paused


def test_a_pool_that_lets_more_nodes_go_than_the_budget_is_not_rolled() -> None:
    operator = Operator()
    intent = ClusterIntent(node_pool=DrainPool(1))
    original = operator.list

    def list_(kind: str, *of: str, **more: str) -> Listing:
        found = original(kind, *of, **more)
        for item in found.items if kind == "MachineConfigPool" else ():
            item["spec"]["maxUnavailable"] = 3
        return found

    operator.list = list_  # type: ignore[method-assign]
    with pytest.raises(NodeFailed, match="MachineConfigPool worker allows 3 nodes to go down at the same time"):
        roller(operator, intent).prepare(CONFIGS, check_mode=False)
    assert not operator.paused


def test_a_health_check_keeps_a_pool_unless_it_may_be_paused_and_goes_on_after_the_roll() -> None:
    operator = Beside(checked=True)
    with pytest.raises(NodeFailed, match="NodeHealthCheck workers would remediate the node while it is down"):
        roller(operator, ClusterIntent()).prepare(CONFIGS, check_mode=False)
    assert not operator.paused
    intent = ClusterIntent(pause_health_checks=True)
    prepared = roller(operator, intent).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator, intent).release(prepared.paused, 600)
    assert rolled.error == "" and [line for line in operator.log if "pauses, " in line] == [
        "workers: 1 pauses, 0 nodes rolled",
        "workers: 0 pauses, 3 nodes rolled",
    ]


def roll_until_an_error(operator: Operator, breaks: typing.Callable[[str, str], bool]) -> None:
    """Roll a pool with a paused health check, and let one request fail.

    :param breaks: whether a request fails, by its method and the kind
    """
    intent = ClusterIntent(pause_health_checks=True)
    prepared = roller(operator, intent).prepare(CONFIGS, check_mode=False)
    real: dict[str, typing.Callable[..., typing.Any]] = {"list": operator.list, "patch": operator.patch}

    def request(method: str, kind: str, *more: typing.Any, **options: typing.Any) -> typing.Any:
        if breaks(method, kind):
            raise ApiError(500, "InternalError", f"the {method} of {kind} failed", method)
        return real[method](kind, *more, **options)

    operator.list = functools.partial(request, "list")  # type: ignore[method-assign]
    operator.patch = functools.partial(request, "patch")  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="MachineConfigPool failed"):
        roller(operator, intent).release(prepared.paused, 600)


def test_a_health_check_goes_on_after_an_error_before_the_roll() -> None:
    operator = Beside(checked=True)
    roll_until_an_error(operator, lambda method, kind: (method, kind) == ("patch", "MachineConfigPool"))
    assert [line for line in operator.log if "pauses, " in line] == [
        "workers: 1 pauses, 0 nodes rolled",
        "workers: 0 pauses, 0 nodes rolled",
    ]


def test_a_health_check_stays_paused_after_an_error_until_its_pool_is_done() -> None:
    """The machine config operator goes on with the other nodes, whatever becomes of the run."""
    operator = Beside(checked=True)
    failed: list[str] = []

    def breaks(method: str, kind: str) -> bool:
        if kind == "MachineConfigPool" and method == "list" and operator.away and not failed:
            failed.append(kind)
            return True
        return False

    roll_until_an_error(operator, breaks)
    assert operator.checks["workers"]["spec"]["pauseRequests"] and 0 < len(operator.away) < 3
    assert any("stays paused" in line for line in operator.log)
    for _round in range(5):
        operator.sleep(5)
    (rolled,) = roller(operator, ClusterIntent(pause_health_checks=True)).release(("worker",), 600)
    assert rolled.error == "" and operator.checks["workers"]["spec"]["pauseRequests"] == []


def test_an_error_of_the_undo_does_not_replace_the_error_of_the_roll() -> None:
    operator = Beside(checked=True)

    def breaks(method: str, kind: str) -> bool:
        paused = bool(operator.checks["workers"]["spec"].get("pauseRequests"))
        return method == "patch" and (kind == "MachineConfigPool" or (kind == "NodeHealthCheck" and paused))

    roll_until_an_error(operator, breaks)
    assert any(
        "it is unknown whether every health check that this run paused was resumed" in line for line in operator.log
    )


def leave_paused_and_unpause_by_hand(operator: Operator) -> None:
    """A run that was killed while it paused the pool, and an administrator who unpaused it but left the annotation."""
    roller(operator).prepare(CONFIGS, check_mode=False)
    operator.pause(False, "kubectl-patch")
    while operator.nodes != [operator.wanted] * 3:
        operator.sleep(5)
    operator.away.clear()
    assert operator.annotations


def freeze(operator: Operator) -> None:
    """The administrator pauses the pool, and a configuration of the administrator waits for its end."""
    operator.pause(True, "kubectl-patch")
    operator.configs["99-own"] = {"spec": {}, "metadata": {"name": "99-own"}}
    operator.sleep(5)
    operator.sleep(5)
    assert operator.nodes != [operator.wanted] * 3


@pytest.mark.parametrize("intent", [None, ClusterIntent(disruption="reboot")], ids=["teardown", "network"])
def test_a_pause_of_an_administrator_holds_beside_an_annotation_that_an_interrupted_run_left(
    intent: typing.Optional[ClusterIntent],
) -> None:
    operator = Operator()
    leave_paused_and_unpause_by_hand(operator)
    freeze(operator)
    prepared = roller(operator, intent).prepare(CONFIGS, check_mode=False)
    rolled = roller(operator, intent).release(prepared.paused, 600, ("n0", "n1", "n2"))
    assert (prepared.paused, rolled, operator.paused, operator.away) == ((), (), True, [])


def test_a_pause_of_the_collection_is_resumed_after_an_administrator_has_paused_and_unpaused() -> None:
    operator = Operator()
    freeze(operator)
    operator.pause(False, "kubectl-patch")
    operator.sleep(5)
    roller(operator).prepare(CONFIGS, check_mode=False)
    (rolled,) = roller(operator).release((), 600)
    assert (rolled.updated, rolled.error, operator.paused) == (3, "", False)
