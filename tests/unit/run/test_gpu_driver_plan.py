# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of the GPU operator in the plan of stage network and before the change of stage host: nvidia-peermem
restarts it on all nodes with GPUs, in the inventory or not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import list_refusals
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import DisruptionPlan
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.plans import render_figure
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.plugins.modules import cluster_policy, sriov_plan
from ansible_collections.linerate.rdma.tests.unit.run.test_driver_plan import FABRIC, Cluster, Data, node, pod

GPU = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.deploy.driver": "true"}
NODES = (
    node("a0", GPU),
    node("a1", GPU),
    node("other-team", GPU),
    node("plain", {}),
    node("own-driver", {**GPU, "nvidia.com/gpu.deploy.driver": "false"}),
)
USES = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
MIG = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/mig-1g.5gb": "1"}}}]}
SERIAL = {"autoUpgrade": True, "maxParallelUpgrades": 1}
BUDGET = {
    "metadata": {"name": "all", "namespace": "shop"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}


def policy(**driver: typing.Any) -> Data:
    return {
        "kind": "ClusterPolicy",
        "metadata": {"name": "gpu"},
        "spec": {"driver": driver},
        "status": {"state": "ready"},
    }


def world(*policies: Data, **changes: typing.Any) -> Cluster:
    return Cluster(Node=NODES, ClusterPolicy=policies, **changes)


def intent_of(disruption: str = "drain") -> ClusterIntent:
    return parse_intent([FABRIC], None, {"disruption": disruption, "host": {"gpudirect": "peermem"}}).cluster


def read(cluster: Cluster, intent: typing.Optional[ClusterIntent] = None) -> DisruptionPlan:
    rendered = RenderedObjects(peermem=True)
    return read_plan(typing.cast(Api, cluster), "", rendered, ("a0", "a1"), intent or intent_of())


def changed(planned: DisruptionPlan) -> list[str]:
    return [item.node for item in planned.nodes if item.action != "nothing"]


def test_peermem_is_a_restart_of_the_driver_on_all_nodes_with_gpus() -> None:
    pods = (pod("train", "other-team", **USES), pod("slice", "other-team", **MIG), pod("web", "other-team"))
    planned = read(world(policy(upgradePolicy=SERIAL), Pod=pods))
    assert [(item.node, item.action, item.listed, item.pods) for item in planned.nodes] == [
        ("a0", "drain", True, ()),
        ("a1", "drain", True, ()),
        ("other-team", "drain", False, ("shop/train", "shop/slice")),
    ]
    (turns,) = planned.pools
    assert (turns.nodes, turns.at_once, turns.waves) == (("a0", "a1", "other-team"), 1, 3)
    lines = describe_plan(planned)
    assert lines[2].startswith("other-team (not in the inventory) is drained: the GPU operator restarts its driver")
    assert lines[3].startswith("driver of ClusterPolicy gpu: 3 nodes, 1 at a time")
    assert list_refusals(intent_of(), planned, ("a0", "a1")) == ()
    figure = str(render_figure(planned))
    assert "other-team (not in the inventory)" in figure and "driver of ClusterPolicy gpu" in figure


def test_peermem_is_refused_without_permission_for_drains() -> None:
    refused = list_refusals(intent_of("none"), read(world(policy(upgradePolicy=SERIAL))), ("a0", "a1"))
    assert [text.partition(":")[0] for text in refused] == ["a0", "a1", "other-team (not in the inventory)"]


def test_without_automatic_upgrades_all_nodes_may_change_at_once_and_a_drain_takes_all_pods() -> None:
    web = pod("web", "a0")
    planned = read(world(policy(upgradePolicy={"drain": {"enable": True}}), Pod=(web,)))
    assert (planned.pools[0].at_once, planned.nodes[0].pods) == (None, ("shop/web",))
    assert "can restart its driver on all nodes at the same time" in planned.pools[0].limit
    (why,) = list_refusals(intent_of(), planned, ("a0", "a1"))
    assert "1 node at a time, because rdma_cluster.node_pool is not set" in why
    assert "Set autoUpgrade in spec.driver.upgradePolicy of ClusterPolicy gpu to true" in why


def test_pod_with_gpus_that_no_controller_recreates_refuses_the_change_unless_the_intent_permits_it() -> None:
    bare = pod("train", "other-team", **USES)
    del bare["metadata"]["ownerReferences"]
    cluster = world(policy(upgradePolicy=SERIAL), Pod=(bare, pod("web", "a0")))
    (why,) = list_refusals(intent_of(), read(cluster), ("a0", "a1"))
    assert why.startswith("other-team: no controller recreates these pods: shop/train")
    permitted = dataclasses.replace(intent_of(), drain=DrainOptions(force=True))
    assert list_refusals(permitted, read(cluster, permitted), ("a0", "a1")) == ()


OWNED = policy(rdma={"enabled": False})
OWNED["metadata"]["managedFields"] = [
    {"manager": "helm", "fieldsV1": {"f:spec": {"f:driver": {"f:rdma": {"f:enabled": {}}}}}}
]


@pytest.mark.parametrize(
    "policies",
    [
        (),
        (policy(rdma={"enabled": True}),),
        (policy(enabled=False),),
        (policy(), policy()),
        (OWNED,),
    ],
)
def test_policy_that_stage_host_does_not_change_restarts_nothing(policies: tuple[Data, ...]) -> None:
    assert changed(read(world(*policies))) == []


def test_budget_that_holds_a_pod_with_gpus_refuses_the_change_and_one_of_others_does_not() -> None:
    there = policy(upgradePolicy=SERIAL)
    held = read(world(there, Pod=(pod("train", "other-team", **USES),), PodDisruptionBudget=(BUDGET,)))
    assert "shop/train" in " ".join(list_refusals(intent_of(), held, ("a0", "a1")))
    free = read(world(there, Pod=(pod("web", "other-team"),), PodDisruptionBudget=(BUDGET,)))
    assert list_refusals(intent_of(), free, ("a0", "a1")) == ()


def test_policy_that_cannot_be_read_is_unknown_and_an_absent_kind_is_not() -> None:
    forbidden = ApiError(403, "Forbidden", "cannot list", "GET")
    missing = ApiError(404, "NotFound", "no such kind", "GET")
    refused = list_refusals(intent_of(), read(Cluster(Node=NODES, ClusterPolicy=forbidden)), ("a0", "a1"))
    assert "ClusterPolicy" in refused[0]
    assert list_refusals(intent_of(), read(Cluster(Node=NODES, ClusterPolicy=missing)), ("a0", "a1")) == ()


def call(module: typing.Any, **params: typing.Any) -> typing.Any:
    given = {"cluster": {"host": {"gpudirect": "peermem"}}, "facts_dir": None, "run": None, "waivers": None, **params}
    return module.work(types.SimpleNamespace(params=given, check_mode=False))


class Applying(Cluster):
    applied: typing.ClassVar[list[bool]] = []

    def apply(self, definition: Data, manager: str, dry_run: bool) -> tuple[Data, tuple[str, ...]]:
        self.applied.append(dry_run)
        return definition, ()


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> typing.Callable[..., list[bool]]:
    def use(**objects: typing.Any) -> list[bool]:
        cluster = Applying(Node=NODES, ClusterPolicy=(policy(upgradePolicy=SERIAL),), **objects)
        cluster.applied.clear()

        @contextlib.contextmanager
        def hold(module: typing.Any, given: typing.Any) -> typing.Iterator[typing.Any]:
            yield types.SimpleNamespace(cluster=cluster)

        for module in (cluster_policy, sriov_plan):
            monkeypatch.setattr(module, "connect", lambda given: cluster)
        monkeypatch.setattr(cluster_policy, "hold_lease", hold)
        return cluster.applied

    return use


def test_stage_network_plans_it(applied: typing.Callable[..., list[bool]]) -> None:
    applied()
    planned = call(sriov_plan, nodes=["a0", "a1"], objects=[], objects_from=None)
    assert planned["allowed"] and "other-team (not in the inventory) is drained" in planned["lines"][2]


def test_stage_host_names_the_nodes_and_changes_nothing_while_a_budget_holds_a_pod(
    applied: typing.Callable[..., list[bool]],
) -> None:
    done = applied()
    (change,) = call(cluster_policy)["changes"]
    assert "restarts the driver of 3 nodes: a0 (not in the inventory)" in change and done == [False]
    done = applied(Pod=(pod("train", "other-team", **USES),), PodDisruptionBudget=(BUDGET,))
    held = call(cluster_policy)
    assert (held["changed"], held["changes"], done) == (False, [], [True])
    assert "shop/train" in held["policies"]["error"]


def test_stage_host_names_the_nodes_that_may_not_be_disturbed(applied: typing.Callable[..., list[bool]]) -> None:
    done = applied()
    held = call(cluster_policy, cluster={"disruption": "none", "host": {"gpudirect": "peermem"}})
    assert "other-team" in held["policies"]["error"] and done == [True]
