# SPDX-License-Identifier: GPL-3.0-or-later

"""An upgrade of an operator of NVIDIA, by Helm or by OLM, restarts its driver on all nodes that have it. The run names
these nodes, and asks for them as stage network does, before it changes the release or the Subscription.
"""

from __future__ import annotations

import pathlib
import time
import types
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    OperatorUpgrade,
    UpgradeEffect,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator, OperatorStatus
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.olm import Installer
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect
from ansible_collections.linerate.rdma.plugins.modules import helm_release_plan
from ansible_collections.linerate.rdma.tests.unit.olm_world import SPACE, OlmWorld, package
from ansible_collections.linerate.rdma.tests.unit.run.test_driver_plan import MISSING, NIC, Cluster, Data, node, pod
from ansible_collections.linerate.rdma.tests.unit.run.test_gpu_driver_plan import (
    BUDGET,
    NODES,
    OWNED,
    SERIAL,
    USES,
    policy,
    world,
)

TASKS = pathlib.Path(__file__).resolve().parents[3] / "roles" / "operators" / "tasks"
INVENTORY = ("a0", "a1")
OTHER = "other-team (not in the inventory)"
RELEASE: Data = {
    "status": "deployed",
    "chart": "gpu-operator-v26.3.0",
    "revision": 1,
    "values": {"nfd": {"enabled": False}},
    "updated": "2026-01-01 00:00:00 +0000 UTC",
}
WANTED: Data = {
    "operator": "gpu-operator",
    "release": "gpu-operator",
    "namespace": "gpu-operator",
    "version": "v26.3.3",
    "values": {"nfd": {"enabled": False}},
    "drains": True,
    "serves": True,
    "pinned": False,
    "chosen": False,
    "timeout": 300,
    "may_wait": False,
    "waited_for": {},
    "nodes": list(INVENTORY),
    "waivers": None,
}


def owned(**driver: typing.Any) -> Data:
    """A ClusterPolicy of the chart: Helm wrote its fields, so stage network plans no change of it."""
    there = policy(**driver)
    there["metadata"]["managedFields"] = OWNED["metadata"]["managedFields"]
    return there


def with_gpus(there: Data) -> Data:
    return {**there, "status": {**there["status"], "allocatable": {"nvidia.com/gpu": "8"}}}


def bare_pod(place: str) -> Data:
    found = pod("train", place, **USES)
    del found["metadata"]["ownerReferences"]
    return found


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> typing.Callable[..., Data]:
    def call(cluster: typing.Any, intent: typing.Optional[Data] = None, **changes: typing.Any) -> Data:
        monkeypatch.setattr(helm_release_plan, "connect", lambda module: cluster)
        params = {**WANTED, "status": RELEASE, "cluster": intent, **changes}
        return helm_release_plan.work(typing.cast(typing.Any, types.SimpleNamespace(params=params)))

    return call


Plan = typing.Callable[..., Data]


def test_upgrade_by_helm_names_the_nodes_whose_driver_restarts(plan: Plan) -> None:
    found = plan(world(owned(upgradePolicy=SERIAL)))
    assert found["needed"] and found["summary"].endswith(f"restarts the driver of 3 nodes: a0, a1, {OTHER}")
    assert "upgrade" not in found


def test_peermem_of_a_release_of_helm_is_asked_like_an_upgrade(plan: Plan) -> None:
    values = {"driver": {"rdma": {"enabled": True}}}
    cluster = world(owned(upgradePolicy=SERIAL), Pod=(pod("job", "a0", **USES),), PodDisruptionBudget=(BUDGET,))
    same = {**RELEASE, "chart": "gpu-operator-v26.3.3"}
    with pytest.raises(RdmaError, match=r"values driver.*restarts the driver of 3 nodes.*shop/job") as refused:
        plan(cluster, status=same, values=values)
    assert "The release was not changed" in str(refused.value)
    assert "add gpu-operator to operators_leave" in refused.value.remedy
    assert "stage network" not in str(refused.value)


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (world(owned(upgradePolicy=SERIAL), Pod=(bare_pod("other-team"),)), "no controller recreates these pods"),
        (world(owned(upgradePolicy={**SERIAL, "maxParallelUpgrades": 3})), "1 node at a time"),
        (world(owned(upgradePolicy={"autoUpgrade": False})), "on all nodes at the same time"),
        (world(owned(useNvidiaDriverCRD=True, upgradePolicy={**SERIAL, "maxParallelUpgrades": 3})), "1 node at a time"),
        (Cluster(Node=NODES, ClusterPolicy=ApiError(403, "Forbidden", "cannot list", "GET")), "ClusterPolicy"),
    ],
    ids=["pod that nothing recreates", "more nodes than the intent permits", "all at once", "NVIDIADriver", "unread"],
)
def test_upgrade_that_the_gate_refuses_changes_nothing(plan: Plan, cluster: typing.Any, why: str) -> None:
    with pytest.raises(RdmaError, match=why):
        plan(cluster)


def test_node_that_is_down_counts_against_the_limit(plan: Plan) -> None:
    down = node("a1", NODES[1]["metadata"]["labels"])
    down["status"]["conditions"][0]["status"] = "False"
    with pytest.raises(RdmaError, match=r"not Ready|NotReady|not ready|is not available"):
        plan(Cluster(Node=(NODES[0], down, *NODES[2:]), ClusterPolicy=(owned(upgradePolicy=SERIAL),)))


def test_limit_of_the_intent_and_of_the_new_values_decides(plan: Plan) -> None:
    wide = world(owned(upgradePolicy={**SERIAL, "maxParallelUpgrades": 3}))
    assert plan(wide, {"node_pool": {"max_unavailable": 3}})["needed"]
    one = {"driver": {"upgradePolicy": {"maxParallelUpgrades": 1}}}
    assert plan(wide, values=one)["needed"]
    many = {"driver": {"upgradePolicy": {"maxParallelUpgrades": 3}}}
    with pytest.raises(RdmaError, match="1 node at a time"):
        plan(world(owned(upgradePolicy=SERIAL)), values=many)


def test_driver_that_the_values_disable_goes_from_all_nodes_at_once(plan: Plan) -> None:
    with pytest.raises(RdmaError, match="on all nodes at the same time"):
        plan(world(owned(upgradePolicy=SERIAL)), values={"driver": {"enabled": False}})


#: before the first installation: no definition of the operator, and no node whose GPUs pods can request
FRESH = Cluster(ClusterPolicy=MISSING, NVIDIADriver=MISSING)


def test_first_installation_asks_for_nodes_with_the_driver_of_another_installation(plan: Plan) -> None:
    served = {"ClusterPolicy": MISSING, "NVIDIADriver": MISSING, "Node": tuple(map(with_gpus, NODES[:2]))}
    with pytest.raises(RdmaError, match=r"restarts the driver of 2 nodes: a0, a1, and must not begin now") as refused:
        plan(Cluster(**served, Pod=(bare_pod("a0"),)), status={})
    assert "Nothing was installed" in str(refused.value) and "operators_leave" in refused.value.remedy
    off = {"driver": {"enabled": False}}
    assert plan(Cluster(**served, Pod=(bare_pod("a0"),)), status={}, values=off)["needed"]


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("gpu-operator", "ClusterPolicy"),
        ("gpu-operator", "NVIDIADriver"),
        ("network-operator", "NicClusterPolicy"),
        ("network-operator", "NicNodePolicy"),
    ],
)
def test_first_installation_is_refused_where_objects_of_an_earlier_one_are_left(
    plan: Plan, operator: str, kind: str
) -> None:
    kinds = dict.fromkeys(("ClusterPolicy", "NVIDIADriver", "NicClusterPolicy", "NicNodePolicy"), MISSING)
    wanted = {"operator": operator, "status": {}}
    assert plan(Cluster(**kinds), **wanted)["needed"]
    left = Cluster(**{**kinds, kind: ({"metadata": {"name": "old"}},)})
    with pytest.raises(RdmaError, match=f"1 {kind} object of an earlier installation: old.*Nothing was installed"):
        plan(left, **wanted)


@pytest.mark.parametrize(
    ("cluster", "changes"),
    [
        (world(owned(enabled=False)), {}),
        (world(), {}),
        (FRESH, {"status": {}}),
        (None, {"status": {**RELEASE, "chart": "gpu-operator-v26.3.3"}}),
        (FRESH, {"status": {**RELEASE, "status": "failed"}, "serves": False}),
        (None, {"operator": "kueue", "drains": False}),
    ],
    ids=["driver of the host", "no policy", "first installation", "equal", "never served", "no driver"],
)
def test_what_restarts_no_driver_asks_for_no_node(plan: Plan, cluster: typing.Any, changes: Data) -> None:
    assert "restarts the driver of" not in plan(cluster, **changes)["summary"]


def nic_policy(**upgrade: typing.Any) -> Data:
    spec = {"ofedDriver": {"version": "doca3", "upgradePolicy": upgrade}}
    return {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}, "spec": spec}


def test_upgrade_of_the_network_operator_asks_for_the_nodes_of_its_driver(plan: Plan) -> None:
    labelled = (node("a0"), node("a1"), node("other-team"), node("plain", {"feature.node.kubernetes.io/cpu": "x"}))
    assert NIC["feature.node.kubernetes.io/pci-15b3.present"] == "true"
    wanted = {"operator": "network-operator", "status": {**RELEASE, "chart": "network-operator-25.7.0"}}
    calm = Cluster(Node=labelled, NicClusterPolicy=(nic_policy(**SERIAL),))
    assert plan(calm, **wanted)["summary"].endswith(f"restarts the driver of 3 nodes: a0, a1, {OTHER}")
    held = Cluster(Node=labelled, NicClusterPolicy=(nic_policy(**SERIAL),), Pod=(bare_pod("other-team"),))
    with pytest.raises(RdmaError, match="no controller recreates these pods: shop/train"):
        plan(held, **wanted)
    # without autoUpgrade the operator replaces no pod of the driver
    still = Cluster(Node=labelled, NicClusterPolicy=(nic_policy(autoUpgrade=False),), Pod=(bare_pod("other-team"),))
    assert "restarts the driver of" not in plan(still, **wanted)["summary"]


def node_policy(name: str, place: str, **changes: typing.Any) -> Data:
    spec = {"ofedDriver": {"version": "doca3", "upgradePolicy": {**SERIAL, **changes}}, "nodeSelector": {"for": place}}
    return {"kind": "NicNodePolicy", "metadata": {"name": name}, "spec": spec}


def test_upgrade_of_the_network_operator_asks_for_the_nodes_of_each_nic_node_policy(plan: Plan) -> None:
    nodes = tuple(node(name, {**NIC, "for": name[:1]}) for name in ("a0", "a1", "other-team"))
    wanted = {"operator": "network-operator", "status": {**RELEASE, "chart": "network-operator-25.7.0"}}
    only = plan(Cluster(Node=nodes, NicNodePolicy=(node_policy("b", "o"),)), **wanted)
    assert only["summary"].endswith(f"restarts the driver of 1 node: {OTHER}")
    still = node_policy("c", "a", autoUpgrade=False)
    assert "a0" not in plan(Cluster(Node=nodes, NicNodePolicy=(still, node_policy("b", "o"))), **wanted)["summary"]
    with pytest.raises(RdmaError, match="no controller recreates these pods: shop/train"):
        plan(Cluster(Node=nodes, NicNodePolicy=(node_policy("b", "o"),), Pod=(bare_pod("other-team"),)), **wanted)
    # each policy takes its own turns
    both = (node_policy("b", "o"), node_policy("c", "a"))
    with pytest.raises(
        RdmaError, match=r"\(NicNodePolicy b\).*together they may take down 2 nodes.*max_unavailable to 2"
    ):
        plan(Cluster(Node=nodes, NicNodePolicy=both), **wanted)
    assert plan(Cluster(Node=nodes, NicNodePolicy=both), {"node_pool": {"max_unavailable": 2}}, **wanted)["needed"]
    wide = node_policy("c", "a", maxParallelUpgrades=2)
    with pytest.raises(RdmaError, match="of NicNodePolicy c to 1"):
        plan(Cluster(Node=nodes, NicNodePolicy=(wide,)), **wanted)
    with pytest.raises(RdmaError, match="NicNodePolicy objects not read"):
        plan(Cluster(Node=nodes, NicNodePolicy=ApiError(403, "Forbidden", "cannot list", "GET")), **wanted)


def test_role_asks_with_the_intent_right_before_helm() -> None:
    look = yaml.safe_load((TASKS / "release_look.yml").read_text(encoding="utf-8"))
    (asked,) = [task["linerate.rdma.helm_release_plan"] for task in look if "linerate.rdma.helm_release_plan" in task]
    assert "rdma_cluster" in asked["cluster"] and "rdma_waivers" in asked["waivers"]
    (by_olm,) = [
        task["linerate.rdma.olm"]
        for task in yaml.safe_load((TASKS / "olm.yml").read_text(encoding="utf-8"))
        if "linerate.rdma.olm" in task
    ]
    assert "rdma_cluster" in by_olm["cluster"] and "rdma_waivers" in by_olm["waivers"]


@pytest.fixture
def olm() -> typing.Iterator[OlmWorld]:
    made = OlmWorld(package("gpu", channels={"stable": ["1.1.0", "1.0.0"]}))
    made.start()
    yield made
    made.stop()


def install(
    made: OlmWorld,
    version: str,
    effects: typing.Iterable[UpgradeEffect] = (),
    check_mode: bool = False,
    operator: str = "gpu-operator",
) -> tuple[OperatorStatus, list[OperatorUpgrade]]:
    """Request a version. ``effects`` are the answers about its upgrade, in turn."""
    asked: list[OperatorUpgrade] = []
    answers = iter(effects)

    def ask(upgrade: OperatorUpgrade) -> UpgradeEffect:
        asked.append(upgrade)
        return next(answers)

    installer = Installer(
        made.client(made.url), time.monotonic, lambda seconds: None, lambda line: None, lambda: "x", 120.0, ask=ask
    )
    wish = DesiredOperator("gpu", SPACE, version=version, operator=operator)
    facts, _outcomes = installer.run((wish,), check_mode, 60.0)
    return facts.operators[0], asked


FREE = UpgradeEffect(("a0", OTHER))
HELD = UpgradeEffect(("a0",), ("a0: no controller recreates these pods: shop/train.",))


def test_upgrade_by_olm_is_asked_before_the_first_write_and_before_the_approval(olm: OlmWorld) -> None:
    stand, asked = install(olm, "1.0.0", [UpgradeEffect(refused=("1 ClusterPolicy object is left.",))])
    assert (stand.phase, olm.names("Subscription")) == ("failed", set()), "nothing is written"
    assert "the installation of gpu must not begin now: 1 ClusterPolicy object is left." in stand.detail
    assert "add gpu-operator to operators_leave" in stand.remedy
    stand, asked = install(olm, "1.0.0", [UpgradeEffect(), UpgradeEffect()])
    assert stand.phase == "ready" and asked == [OperatorUpgrade("gpu-operator", "gpu", installs=True)] * 2
    title = olm.plans({"gpu": "gpu.v1.1.0"})
    before = olm.at("Subscription", "gpu")
    stand, asked = install(olm, "1.1.0", [HELD])
    assert (stand.phase, stand.installed) == ("failed", "") and "shop/train" in stand.detail
    assert "remove version from operators_packages" in stand.remedy
    assert olm.at("Subscription", "gpu") == before and olm.at("InstallPlan", title)["spec"]["approved"] is False
    stand, asked = install(olm, "1.1.0", [FREE, HELD])
    assert stand.phase == "failed" and "shop/train" in stand.detail
    assert olm.at("InstallPlan", title)["spec"]["approved"] is False
    stand, asked = install(olm, "1.1.0", [FREE], check_mode=True)
    assert stand.detail.endswith(f"the upgrade gpu.v1.0.0 -> gpu.v1.1.0 restarts the driver of 2 nodes: a0, {OTHER}")
    stand, asked = install(olm, "1.1.0", [FREE, FREE])
    assert (stand.phase, stand.installed) == ("ready", "gpu.v1.1.0")
    assert asked == [OperatorUpgrade("gpu-operator", "gpu.v1.0.0 -> gpu.v1.1.0")] * 2
    # what is installed asks for nothing
    assert install(olm, "1.1.0")[1] == []


def test_upgrade_of_the_sriov_operator_is_asked_in_its_namespace(olm: OlmWorld) -> None:
    new = OperatorUpgrade("sriov-network-operator", "gpu", namespace=SPACE, installs=True)
    assert install(olm, "1.0.0", [UpgradeEffect()] * 2, operator="sriov-network-operator")[1] == [new] * 2
    stand, asked = install(olm, "1.1.0", [HELD], operator="sriov-network-operator")
    assert stand.phase == "failed"
    assert asked == [OperatorUpgrade("sriov-network-operator", "gpu.v1.0.0 -> gpu.v1.1.0", namespace=SPACE)]


def test_effect_is_that_of_the_plan_of_stage_network() -> None:
    cluster = typing.cast(Api, world(owned(upgradePolicy=SERIAL)))
    upgrade = OperatorUpgrade("gpu-operator", "gpu.v1.0.0 -> gpu.v1.1.0")
    intent = ClusterIntent(disruption="drain")
    assert read_upgrade_effect(cluster, upgrade, INVENTORY, intent) == UpgradeEffect(("a0", "a1", OTHER))
    refused = read_upgrade_effect(cluster, upgrade, INVENTORY, ClusterIntent(disruption="none")).refused
    assert [text.partition(":")[0] for text in refused] == ["a0", "a1", OTHER]
