# SPDX-License-Identifier: GPL-3.0-or-later

"""What the plan reads of the cluster, and what it makes of a server that does not tell everything."""

from __future__ import annotations

import dataclasses
import pathlib
import typing
import urllib.parse

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import list_refusals
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    DisruptionPlan,
    LabelSelector,
    NodePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import Policy
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"


def resources(name: str) -> tuple[dict[str, typing.Any], ...]:
    data = yaml.safe_load((FIXTURES / name).read_text())
    return tuple(data.get("items", [data]))


POLICIES = tuple(item for item in resources("sriov-crs.yaml") if item["kind"] == "SriovNetworkNodePolicy")
CONFIG: dict[str, typing.Any] = {"kind": "SriovOperatorConfig", "metadata": {"name": "default"}, "spec": {}}
OBJECTS: dict[str, typing.Any] = {
    "Node": resources("node-worker-sriov.yaml"),
    "SriovNetworkNodeState": resources("sriovnetworknodestates-igb-succeeded.yaml"),
    "SriovNetworkNodePolicy": POLICIES,
    "SriovNetworkPoolConfig": (),
    "SriovOperatorConfig": (CONFIG,),
    "MachineConfigPool": ApiError(404, "NotFound", "the server could not find the requested resource", "GET"),
    "PodDisruptionBudget": (),
    "Pod": resources("pod-with-vf.yaml"),
    "NetworkAttachmentDefinition": (),
}
NOW = sriov_operator.parse_policy(POLICIES[0])
MORE = dataclasses.replace(NOW, vfs_count=5)


#: kinds of operators that the cluster need not have
OPTIONAL = ("MaintenanceOperatorConfig", "NicDevice", "SriovNetworkNodeState", "SriovNetworkPoolConfig")
MISSING = ApiError(404, "NotFound", "the server could not find the requested resource", "GET")


class Cluster(Paged):
    def __init__(self, **changes: typing.Union[ApiError, tuple[dict[str, typing.Any], ...]]) -> None:
        self.objects = {**OBJECTS, **changes}
        self.asked: list[tuple[str, str]] = []

    def list(self, kind: str, namespace: str = "", selector: str = "") -> Listing:
        self.asked.append((kind, namespace))
        answer = self.objects.get(kind, MISSING) if kind in OPTIONAL else self.objects[kind]
        if isinstance(answer, Exception):
            raise answer
        return Listing(answer, "1")

    def serves(self, group: str) -> bool:
        return False


def read(cluster: Cluster, policy: Policy, *pools: NodePool) -> DisruptionPlan:
    return read_plan(typing.cast(Api, cluster), "ops", RenderedObjects((policy,), pools), ("kl-a",), ClusterIntent())


def test_pods_are_read_only_when_a_node_loses_something() -> None:
    cluster = Cluster()
    assert read(cluster, NOW).nodes[0].action == "nothing"
    assert [kind for kind, _namespace in cluster.asked] == list(OBJECTS)[:5]


def test_a_pool_that_is_to_be_applied_counts_like_one_that_is_there() -> None:
    pool = NodePool("linerate", LabelSelector({"kl/sriov": "yes"}), "2", "exclusive")
    (node,) = read(Cluster(), NOW, pool).nodes
    assert (node.action, node.pool) == ("reboot", "linerate")
    assert "RDMA mode not set -> exclusive (a kernel argument)" in node.reasons
    there = {"kind": "SriovNetworkPoolConfig", "metadata": {"name": "linerate"}, "spec": {"rdmaMode": "shared"}}
    assert read(Cluster(SriovNetworkPoolConfig=(there,)), NOW, pool).nodes[0].reasons == node.reasons


def test_a_cluster_without_machine_config_pools_is_no_openshift() -> None:
    cluster = Cluster()
    planned = read(cluster, MORE)
    assert (planned.nodes[0].action, planned.unread) == ("drain", {})
    assert {kind for kind, _namespace in cluster.asked} == {*OBJECTS, "NicDevice"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ApiError(403, "Forbidden", "cannot list", "GET"), "cannot list"),
        (ApiError(404, "NotFound", "x", "GET"), "the API server does not serve the kind"),
    ],
)
def test_a_kind_that_cannot_be_read_is_kept_with_the_reason(answer: ApiError, reason: str) -> None:
    assert read(Cluster(SriovNetworkPoolConfig=answer), NOW).unread == {"SriovNetworkPoolConfig": reason}


def test_an_operator_without_its_config_is_not_known() -> None:
    assert (
        "has no SriovOperatorConfig named default"
        in read(Cluster(SriovOperatorConfig=()), NOW).unread["SriovOperatorConfig"]
    )


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ApiError):
        read(Cluster(Node=ApiError(0, "Unreachable", "refused", "GET")), NOW)


def pod(name: str, resource: str = "", owner: str = "ReplicaSet", **spec: typing.Any) -> dict[str, typing.Any]:
    requests = {resource: "1"} if resource else {}
    owners = [{"kind": owner, "name": "x", "uid": "x", "controller": True}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "team-x", "uid": name, "labels": {}, "ownerReferences": owners},
        "spec": {"nodeName": "kl-a", "containers": [{"name": "c", "resources": {"requests": requests}}], **spec},
        "status": {"phase": "Running"},
    }


VF = "openshift.io/sriov_igb"
EMPTY_DIR: dict[str, typing.Any] = {"volumes": [{"name": "scratch", "emptyDir": {}}]}


@pytest.mark.parametrize(
    ("item", "drained", "rebooted"),
    [
        (pod("train", VF, ""), "no controller recreates these pods: team-x/train", True),
        (pod("train", VF, **EMPTY_DIR), "emptyDir data of these pods: team-x/train", True),
        (pod("train", VF), "", False),
        # a drain for virtual functions evicts their users alone, and a reboot takes all pods
        (pod("train", "", ""), "", True),
        (pod("train", VF, "DaemonSet", **EMPTY_DIR), "", False),
        ({**pod("train", VF, ""), "status": {"phase": "Succeeded"}}, "", False),
    ],
)
def test_the_plan_of_stage_network_refuses_to_lose_pods_that_stage_platform_would_keep(
    item: dict[str, typing.Any], drained: str, rebooted: bool
) -> None:
    intent = ClusterIntent(disruption="reboot")
    permitted = dataclasses.replace(intent, drain=DrainOptions(True, True))
    by_operator, by_pool = read(Cluster(Pod=(item,)), MORE), read_config(OpenShift(Pod=(item,), KubeletConfig=()))
    allowed = read_plan(typing.cast(Api, Cluster(Pod=(item,))), "ops", RenderedObjects((MORE,)), ("kl-a",), permitted)
    assert by_operator.nodes[0].action == "drain" and by_pool.nodes[0].action == "reboot"
    told = [list_refusals(intent, planned, ("kl-a",)) for planned in (by_operator, allowed)]
    assert (bool(told[0]), told[1]) == (bool(drained), ())
    assert drained in " ".join(told[0])
    lost = [why for why in by_pool.nodes[0].blockers if "team-x/train" in why]
    assert bool(lost) is rebooted


def test_without_a_drain_no_pod_is_deleted() -> None:
    """The pods lose their virtual functions, which is a warning."""
    settings = {**OBJECTS["SriovOperatorConfig"][0], "spec": {"disableDrain": True}}
    planned = read(Cluster(Pod=(pod("train", VF, ""),), SriovOperatorConfig=(settings,)), MORE)
    assert planned.nodes[0].pods == ("team-x/train",) and planned.nodes[0].blockers == ()


CONFIG = render_host_configs(HostNeeds(kernel_arguments=("iommu=pt",)))[0]
KUBELET = render_host_configs(
    HostNeeds(kubelet=Kubelet("single-numa-node", cpu_manager_policy="static", reserved_system_cpus="0-1"))
)[0]
POOL: dict[str, typing.Any] = {
    "kind": "MachineConfigPool",
    "metadata": {"name": "worker", "labels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}},
    "spec": {
        "nodeSelector": {},
        "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}},
        "maxUnavailable": 2,
    },
}


class OpenShift(Cluster):
    def __init__(
        self,
        there: typing.Optional[typing.Union[dict[str, typing.Any], ApiError]] = None,
        **changes: typing.Union[ApiError, tuple[dict[str, typing.Any], ...]],
    ) -> None:
        super().__init__(MachineConfigPool=(POOL,), **changes)
        self.there = there

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        if isinstance(self.there, dict):
            return self.there
        raise self.there or ApiError(404, "NotFound", "x", "GET")


def read_config(cluster: OpenShift, *configs: dict[str, typing.Any]) -> DisruptionPlan:
    return read_plan(
        typing.cast(Api, cluster),
        "ops",
        RenderedObjects((NOW,), (), configs or (CONFIG,)),
        ("kl-a",),
        ClusterIntent(),
    )


def test_a_machine_config_that_is_new_or_other_rolls_its_pool_and_one_that_is_there_does_not() -> None:
    other = {**CONFIG, "spec": {**CONFIG["spec"], "kernelArguments": ["iommu=off"]}}
    for there in (None, other):
        planned = read_config(OpenShift(there))
        assert planned.nodes[0].reasons == (
            "MachineConfig 99-worker-linerate-kernel-arguments (kernel arguments iommu=pt)",
        )
        assert [(pool.name, pool.at_once) for pool in planned.pools] == [("worker", 2)]
    cluster = OpenShift({**CONFIG, "metadata": {"name": "x", "generation": 3}})
    assert read_config(cluster).nodes[0].action == "nothing"
    assert "Pod" not in [kind for kind, _namespace in cluster.asked]


def test_a_pool_that_was_left_paused_is_seen_although_nothing_is_new() -> None:
    cluster = OpenShift(CONFIG)
    left = {**POOL["spec"], "paused": True, "configuration": {"name": "rendered-2"}}
    cluster.objects["MachineConfigPool"] = (
        {**POOL, "metadata": {"name": "worker", "annotations": {"linerate.rdma/paused": "true"}}, "spec": left},
    )
    expected = "a run of linerate.rdma paused MachineConfigPool worker before rendered-2"
    assert read_config(cluster).nodes[0].reasons == (expected,)


@pytest.mark.parametrize("down", [False, True])
def test_the_plan_between_the_pools_and_the_objects_knows_the_paused_pool_and_a_node_that_went_down(down: bool) -> None:
    """Stage network has applied the MachineConfig, and asks again before it applies the policies."""
    cluster = OpenShift(CONFIG)
    left = {**POOL["spec"], "paused": True, "configuration": {"name": "rendered-2"}, "maxUnavailable": 1}
    cluster.objects["MachineConfigPool"] = (
        {**POOL, "metadata": {"name": "worker", "annotations": {"linerate.rdma/paused": "true"}}, "spec": left},
    )
    (first,) = cluster.objects["Node"]
    conditions = [{"type": "Ready", "status": "False" if down else "True"}]
    cluster.objects["Node"] = (
        first,
        {
            "metadata": {"name": "kl-b", "labels": dict(ClusterIntent().node_selector)},
            "spec": {},
            "status": {"conditions": conditions},
        },
    )
    intent = ClusterIntent(disruption="reboot")
    rendered = RenderedObjects((MORE,), (), (CONFIG,))
    planned = read_plan(typing.cast(Api, cluster), "ops", rendered, ("kl-a", "kl-b"), intent)
    refused = [text for text in planned.closed if "kl-b: NotReady or cordoned" in text]
    assert bool(refused) is down, planned.closed


def test_a_machine_config_that_cannot_be_read_or_that_nothing_would_take_is_unknown() -> None:
    assert read_config(OpenShift(ApiError(403, "Forbidden", "cannot get", "GET"))).unread == {
        "MachineConfig": "cannot get"
    }
    plain = OpenShift()
    plain.objects["MachineConfigPool"] = ApiError(404, "NotFound", "x", "GET")
    assert "no MachineConfigPool that would apply it could be read" in read_config(plain).unread["MachineConfig"]
    with pytest.raises(ApiError):
        read_config(OpenShift(ApiError(0, "Unreachable", "refused", "GET")))


def test_a_kubelet_config_is_in_the_same_roll_and_says_what_it_sets() -> None:
    planned = read_config(OpenShift(KubeletConfig=()), CONFIG, KUBELET)
    assert planned.nodes[0].reasons == (
        "MachineConfig 99-worker-linerate-kernel-arguments (kernel arguments iommu=pt)",
        "KubeletConfig linerate-worker (topology manager single-numa-node, CPU manager static, system CPUs 0-1)",
    )
    assert [(pool.name, pool.blockers) for pool in planned.pools] == [("worker", ())]
    there = OpenShift({**KUBELET, "metadata": {"name": "x"}})
    assert read_config(there, KUBELET).nodes[0].action == "nothing" and "KubeletConfig" not in [
        kind for kind, _namespace in there.asked
    ]


def test_another_kubelet_config_of_the_pool_is_in_the_way() -> None:
    other = {**KUBELET, "metadata": {"name": "performance-gpu"}}
    (pool,) = read_config(OpenShift(KubeletConfig=(KUBELET, other)), KUBELET).pools
    (blocker,) = pool.blockers
    assert "also selects KubeletConfig performance-gpu" in blocker
    elsewhere = {
        **other,
        "spec": {
            "machineConfigPoolSelector": {
                "matchLabels": {"pools.operator.machineconfiguration.openshift.io/master": ""}
            }
        },
    }
    assert read_config(OpenShift(KubeletConfig=(elsewhere,)), KUBELET).pools[0].blockers == ()


def test_kubelet_configs_that_cannot_be_read_close_the_gate() -> None:
    cluster = OpenShift(KubeletConfig=ApiError(403, "Forbidden", "cannot list", "GET"))
    assert read_config(cluster, KUBELET).unread == {"KubeletConfig": "cannot list"}
    assert read_config(
        OpenShift(ApiError(403, "Forbidden", "cannot get", "GET"), KubeletConfig=()), KUBELET
    ).unread == {"KubeletConfig": "cannot get"}


MEMLOCK = render_host_configs(HostNeeds(Memlock("machine_config", limit_gib=64)))[0]
LIMITS = '[crio.runtime]\ndefault_ulimits = [\n  "nofile=1048576:1048576", # of databases\n  "memlock=1:1",\n]\n'


class WithLimits(OpenShift):
    """An OpenShift on which another MachineConfig sets limits of CRI-O."""

    def __init__(self, rendered: typing.Union[dict[str, typing.Any], ApiError]) -> None:
        super().__init__()
        spec = {**POOL["spec"], "configuration": {"name": "rendered-worker-1"}}
        self.objects["MachineConfigPool"] = ({**POOL, "spec": spec},)
        self.rendered = rendered

    def get(self, kind: str, namespace: str, name: str) -> dict[str, typing.Any]:
        if name != "rendered-worker-1":
            return super().get(kind, namespace, name)
        if isinstance(self.rendered, ApiError):
            raise self.rendered
        return self.rendered


def rendered_config(files: typing.Mapping[str, str]) -> dict[str, typing.Any]:
    """Return the MachineConfig of a pool, with files of CRI-O's folder."""
    listed = [
        {
            "path": f"/etc/crio/crio.conf.d/{name}.conf",
            "contents": {"source": f"data:,{urllib.parse.quote(text)}"},
        }
        for name, text in files.items()
    ]
    return {"metadata": {"name": "rendered-worker-1"}, "spec": {"config": {"storage": {"files": listed}}}}


def test_limits_of_crio_that_a_machine_config_would_remove_block_its_pool() -> None:
    planned = read_config(WithLimits(rendered_config({"10-admin": LIMITS})), MEMLOCK)
    (pool,) = planned.pools
    assert pool.waves is None and len(pool.blockers) == 1, pool
    assert (
        "rendered-worker-1): nofile=1048576:1048576. Add them to rdma_cluster.host.memlock.ulimits" in pool.blockers[0]
    )
    (kept,) = render_host_configs(
        HostNeeds(Memlock("machine_config", limit_gib=64, ulimits=("nofile=1048576:1048576",)))
    )
    assert read_config(WithLimits(rendered_config({"10-admin": LIMITS})), kept).pools[0].blockers == ()


@pytest.mark.parametrize(
    "rendered",
    [
        rendered_config({}),
        rendered_config({"10-admin": '[crio.runtime]\ndefault_ulimits = ["memlock=-1:-1"]\n'}),
        rendered_config({"10-admin": "[crio.runtime]\n# default_ulimits = ['nofile=1:1']\n"}),
        rendered_config({"10-admin": LIMITS, "20-later": "[crio.runtime]\ndefault_ulimits = []\n"}),
        # it replaces the limit of the collection, and not the other way round
        rendered_config({"99-other": LIMITS}),
        ApiError(403, "Forbidden", "cannot get", "GET"),
        ApiError(404, "NotFound", "x", "GET"),
    ],
)
def test_nothing_that_is_lost_or_known_blocks_no_pool_and_is_named(rendered: typing.Any) -> None:
    planned = read_config(WithLimits(rendered), MEMLOCK)
    assert planned.pools[0].blockers == () and planned.unread == {}
    assert "which replaces the other default_ulimits of CRI-O as a whole" in planned.nodes[0].reasons[0]


def test_an_overloaded_api_server_is_not_described_as_missing_rights() -> None:
    busy = ApiError(429, "TooManyRequests", "the server has received too many requests", "GET")
    assert "overloaded" in busy.remedy and "rights" not in busy.remedy
    held = ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the disruption budget", "POST")
    assert "overloaded" not in held.remedy
    for kind in ("SriovNetworkPoolConfig", "PodDisruptionBudget"):
        (refused,) = [
            text
            for text in list_refusals(ClusterIntent(), read(Cluster(**{kind: busy}), MORE), ("kl-a",))
            if text.startswith(f"cluster {kind}: ")
        ]
        assert "too many requests, wait until the API server is less busy" in refused
        assert "the right" in refused


@pytest.mark.parametrize(("config", "closed"), [("rendered-2", True), ("", False)])
def test_a_machine_config_pool_under_way_closes_the_gate_for_nodes_of_other_pools(config: str, closed: bool) -> None:
    (node,) = OBJECTS["Node"]
    other = {
        **node,
        "metadata": {**node["metadata"], "name": "other", "labels": {"pool": "b"}},
    }
    pool = {
        "kind": "MachineConfigPool",
        "metadata": {"name": "gpu-b"},
        "spec": {"nodeSelector": {"matchLabels": {"pool": "b"}}, "configuration": {"name": config}},
        "status": {"machineCount": 2, "updatedMachineCount": 1},
    }
    cluster = typing.cast(Api, Cluster(Node=(node, other), MachineConfigPool=(pool,)))
    told = " ".join(read_plan(cluster, "ops", RenderedObjects((MORE,)), ("kl-a", "other"), ClusterIntent()).closed)
    assert ("other: the machine config operator may reboot the node" in told) is closed and bool(told) is closed
