# SPDX-License-Identifier: GPL-3.0-or-later

"""The Tuned is applied before a played operator, or refused before anything is written; the wait names what is in the
way of each node, and ends for it."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import (
    NAMESPACE,
    TUNED,
    NodeSetting,
    TuningSet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import collect_settings
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_tuning import TuningSetter

from ..fake_api import FakeApi
from ..plan.test_tuning_settings import intent_of

LABELS = {"feature.node.kubernetes.io/network-sriov.capable": "true", "node-role.kubernetes.io/worker": ""}
NODES = ("worker-1", "worker-2")
Resource = dict[str, typing.Any]


def node(name: str, **labels: str) -> Resource:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": {"name": name, "uid": name, "labels": {**LABELS, **labels}}, "status": status}


def pod(name: str) -> Resource:
    metadata = {"name": f"tuned-{name}", "namespace": NAMESPACE, "labels": {"openshift-app": "tuned"}}
    return {"metadata": metadata, "spec": {"nodeName": name, "containers": []}, "status": {"phase": "Running"}}


def profile(name: str, wanted: str, active: str, data: str = "", degraded: str = "", applied: bool = True) -> Resource:
    conditions = [
        {
            "type": "Applied",
            "status": str(applied),
            "message": "TuneD profile applied." if applied else "not yet applied, or application failed.",
        },
        {"type": "Degraded", "status": str(bool(degraded)), "message": degraded},
    ]
    spec = {"config": {"tunedProfile": wanted}, "profile": [{"name": wanted, "data": data}]}
    return {
        "metadata": {"name": name, "generation": 2},
        "spec": spec,
        "status": {"tunedProfile": active, "observedGeneration": 2, "conditions": conditions},
    }


class World(FakeApi):
    """An OpenShift whose operator hands the Tuned to the nodes when somebody waits for it.

    :ivar slow: how long it takes, in seconds
    :ivar bends: what the operator makes of a node instead
    """

    def __init__(
        self, slow: float = 4.0, bends: typing.Optional[typing.Mapping[str, typing.Callable[[str], Resource]]] = None
    ) -> None:
        super().__init__()
        self.now, self.slow, self.bends = 0.0, slow, bends or {}
        self.serve("Node", [node(name) for name in NODES])
        self.serve("Tuned", [], NAMESPACE)
        self.serve("Profile", [profile(name, "openshift-node", "openshift-node") for name in NODES], NAMESPACE)
        self.serve("Pod", [pod(name) for name in NODES], NAMESPACE)
        self.serve("PerformanceProfile", [])
        self.known = True

    def object(self, path: str) -> typing.Optional[Resource]:
        if path == "/apis/tuned.openshift.io":
            return {"kind": "APIGroup"} if self.known else None
        return super().object(path)

    def tuned(self) -> typing.Optional[Resource]:
        return super().object(f"{path_of('Tuned', NAMESPACE)}/{TUNED}")

    def pause(self, seconds: float) -> None:
        self.now += seconds
        made = self.tuned()
        if made is None or self.now < self.slow:
            return
        text = made["spec"]["profile"][0]["data"]
        for name in NODES:
            self.put(
                "Profile",
                self.bends[name](text) if name in self.bends else profile(name, TUNED, TUNED, text),
                NAMESPACE,
            )


@pytest.fixture
def served(request: pytest.FixtureRequest) -> typing.Iterator[typing.Callable[..., World]]:
    worlds: list[World] = []

    def start(**given: typing.Any) -> World:
        worlds.append(World(**given))
        worlds[-1].start()
        return worlds[-1]

    yield start
    for world in worlds:
        world.stop()


Answer = tuple[TuningSet, tuple[Outcome, ...], tuple[str, ...], list[str]]


def run(
    world: World,
    check_mode: bool = False,
    limit: float = 300.0,
    nodes: typing.Sequence[str] = NODES,
    **tuning: typing.Any,
) -> Answer:
    said: list[str] = []
    intent = intent_of(**tuning)
    setter = TuningSetter(world.client(world.url), intent, nodes, lambda: world.now, world.pause, said.append)
    return (*setter.run(collect_settings(intent), check_mode, limit), said)


def writes(world: World) -> list[str]:
    return [name for name in world.requests if name.partition(" ")[0] in ("patch", "post", "put", "delete")]


def test_it_is_set_and_waited_for_and_a_second_run_changes_nothing(served: typing.Callable[..., World]) -> None:
    world = served()
    found, (outcome,), look, said = run(world)
    assert found == TuningSet("tuned", dict.fromkeys(NODES, NodeSetting("set")))
    assert outcome.applied.action == "created" and look == NODES
    assert ("0 of 2 nodes have the settings; worker-1: the operator has selected profile openshift-node") in said[
        0
    ] and said[-1].endswith("2 of 2 nodes have the settings")
    made = copy.deepcopy(world.tuned())
    again, (outcome,), look, _said = run(world)
    assert again == found and outcome.applied.action == "unchanged" and look == ()
    assert world.tuned() == made


def test_a_change_is_waited_for_by_its_lines(served: typing.Callable[..., World]) -> None:
    world = served()
    run(world)
    world.slow = world.now + 6.0
    found, (outcome,), look, said = run(world, expected={"thp": "always"})
    assert outcome.applied.action == "changed" and look == NODES
    assert {item.state for item in found.nodes.values()} == {"set"}
    # the profile is named as before, so that its name does not tell
    assert ("the operator has not yet copied the settings to the Profile of the node") in said[0]


def test_check_mode_writes_nothing(served: typing.Callable[..., World]) -> None:
    world = served()
    found, (outcome,), look, _said = run(world, check_mode=True)
    assert (
        found.nodes == dict.fromkeys(NODES, NodeSetting("planned"))
        and outcome.applied.action == "created"
        and look == ()
    )
    assert outcome.before is None and outcome.after is not None and "force_latency" in str(outcome.after)
    assert world.tuned() is None


def test_a_run_that_was_interrupted_looks_again_at_who_was_late(served: typing.Callable[..., World]) -> None:
    world = served(slow=400.0)
    run(world, limit=2.0)
    world.slow = 0.0
    found, (outcome,), look, _said = run(world)
    assert outcome.applied.action == "unchanged" and look == NODES
    assert {item.state for item in found.nodes.values()} == {"set"}


def test_nothing_to_set_asks_no_server(served: typing.Callable[..., World]) -> None:
    world = served()
    assert run(world, profile="none")[0] == TuningSet("nothing")
    assert not world.requests


def test_without_the_operator_it_is_the_role_s(served: typing.Callable[..., World]) -> None:
    world = served()
    world.known = False
    assert run(world)[0] == TuningSet("kernel_settings")
    assert not writes(world)


def test_a_performance_profile_is_named_before_anything_is_written(served: typing.Callable[..., World]) -> None:
    world = served()
    world.put(
        "PerformanceProfile",
        {"metadata": {"name": "gpu"}, "spec": {"nodeSelector": {"node-role.kubernetes.io/worker": ""}}},
    )
    found = run(world)[0]
    assert "PerformanceProfile gpu tunes worker-1 and 1 more" in found.refusal
    assert "include=openshift-node-performance-gpu" in found.remedy
    assert not writes(world)


def test_a_performance_profile_of_other_nodes_is_none_of_ours(served: typing.Callable[..., World]) -> None:
    world = served()
    world.put(
        "PerformanceProfile",
        {"metadata": {"name": "cnf"}, "spec": {"nodeSelector": {"node-role.kubernetes.io/worker-cnf": ""}}},
    )
    assert run(world)[0].refusal == ""


WORKER = {"label": "node-role.kubernetes.io/worker", "value": ""}


def other_tuned(priority: int, **recommend: typing.Any) -> Resource:
    """Return a Tuned of an administrator that tunes databases."""
    entry = {"profile": "database", "priority": priority, "match": [WORKER], **recommend}
    text = "[main]\ninclude=openshift-node\n[sysctl]\nvm.nr_hugepages=4096\n"
    spec = {"profile": [{"name": "database", "data": text}], "recommend": [entry]}
    return {"metadata": {"name": "database", "uid": "7"}, "spec": spec}


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("priority", [20, 25])
def test_profile_of_another_tuned_is_not_replaced(
    served: typing.Callable[..., World], priority: int, check_mode: bool
) -> None:
    world = served()
    world.put("Tuned", other_tuned(priority), NAMESPACE)
    for name in NODES:
        world.put("Profile", profile(name, "database", "database"), NAMESPACE)
    found = run(world, check_mode)[0]
    assert f"Tuned database (priority {priority}) tunes worker-1, worker-2 with profile database" in found.refusal
    assert "not in the inventory" not in found.refusal and "rdma_cluster.tuning.set: false" in found.remedy
    assert not writes(world)


def test_profile_of_another_tuned_on_a_node_outside_of_the_inventory_is_not_replaced(
    served: typing.Callable[..., World],
) -> None:
    world = served()
    world.put("Node", node("db-1"))
    world.put("Profile", profile("db-1", "database", "database"), NAMESPACE)
    world.put("Tuned", other_tuned(25), NAMESPACE)
    found = run(world)[0]
    assert "tunes db-1" in found.refusal and "not in the inventory: db-1" in found.refusal
    assert "rdma_cluster.node_selector" in found.remedy and not writes(world)


def test_performance_profile_of_a_node_outside_of_the_inventory_is_named(served: typing.Callable[..., World]) -> None:
    world, label = served(), "node-role.kubernetes.io/worker-cnf"
    world.put("Node", node("ran-1", **{label: ""}))
    world.put("PerformanceProfile", {"metadata": {"name": "ran"}, "spec": {"nodeSelector": {label: ""}}})
    found = run(world)[0]
    assert "PerformanceProfile ran tunes ran-1" in found.refusal and "rdma_cluster.node_selector" in found.remedy
    assert not writes(world)


@pytest.mark.parametrize(
    "other",
    [
        # it does not select the nodes, or only together with a label that they lack, or wins over the collection's
        other_tuned(25, match=[{"label": "db"}]),
        other_tuned(25, match=[{**WORKER, "match": [{"label": "db"}]}]),
        other_tuned(25, match=[{**WORKER, "value": "x"}]),
        other_tuned(25, match=[], machineConfigLabels={"machineconfiguration.openshift.io/role": "db"}),
        other_tuned(25, match=[{"label": "app", "value": "db", "type": "pod"}]),
    ],
)
def test_tuned_of_other_nodes_is_no_obstacle(served: typing.Callable[..., World], other: Resource) -> None:
    world = served()
    world.put("Tuned", other, NAMESPACE)
    found = run(world)[0]
    assert (found.refusal, {item.state for item in found.nodes.values()}) == ("", {"set"})


def test_tuned_that_wins_keeps_its_node_and_is_named(served: typing.Callable[..., World]) -> None:
    world = served(bends={name: lambda text, name=name: profile(name, "database", "database") for name in NODES})
    world.put("Tuned", other_tuned(10), NAMESPACE)
    for name in NODES:
        world.put("Profile", profile(name, "database", "database"), NAMESPACE)
    found = run(world)[0]
    assert found.refusal == "" and "of Tuned database, priority 10" in found.nodes["worker-1"].why


@pytest.mark.parametrize(
    ("twin", "named"),
    [
        # the second recommends the same profile for nodes that these are not
        (other_tuned(5, match=[{"label": "db"}]), "Tuned database, priority 10"),
        (other_tuned(15), "Tuned database, priority 10"),
        (other_tuned(5), "Tuned twin, priority 5"),
        (other_tuned(10), "Tuned database, priority 10 or Tuned twin, priority 10"),
    ],
)
def test_of_two_tuneds_with_one_profile_that_of_the_node_is_named(
    served: typing.Callable[..., World], twin: Resource, named: str
) -> None:
    world = served(bends={name: lambda text, name=name: profile(name, "database", "database") for name in NODES})
    world.put("Tuned", other_tuned(10), NAMESPACE)
    world.put("Tuned", {**twin, "metadata": {"name": "twin", "uid": "8"}}, NAMESPACE)
    for name in NODES:
        world.put("Profile", profile(name, "database", "database"), NAMESPACE)
    assert f"of {named}" in run(world)[0].nodes["worker-1"].why


@pytest.mark.parametrize(
    "match", [{}, {"match": []}, {"match": [{**WORKER, "match": [{"label": next(iter(LABELS)), "value": "true"}]}]}]
)
def test_profile_that_the_tuned_has_replaced_before_is_named(
    served: typing.Callable[..., World], match: Resource
) -> None:
    world = served()
    run(world)
    world.put("Tuned", other_tuned(25, **match), NAMESPACE)
    assert "Tuned database (priority 25) tunes worker-1" in run(world)[0].refusal


def test_empty_selector_selects_the_nodes_of_the_pool(served: typing.Callable[..., World]) -> None:
    world, role = served(), "machineconfiguration.openshift.io/role"
    spec = {"machineConfigSelector": {"matchLabels": {role: "worker"}}, "nodeSelector": {"matchLabels": LABELS}}
    world.serve("MachineConfigPool", [{"metadata": {"name": "worker"}, "spec": spec}])
    other = other_tuned(25, match=[], machineConfigLabels={role: "worker"})
    world.put("Tuned", other, NAMESPACE)
    world.put("Profile", profile("worker-1", "database", "database"), NAMESPACE)
    intent = intent_of()
    intent = dataclasses.replace(intent, cluster=dataclasses.replace(intent.cluster, node_selector={}))
    setter = TuningSetter(world.client(world.url), intent, NODES, lambda: world.now, world.pause, lambda _line: None)
    found = setter.run(collect_settings(intent), True, 1.0)[0]
    assert "Tuned database (priority 25) tunes worker-1 with profile database" in found.refusal


def test_a_tuned_of_somebody_else_is_left_alone(served: typing.Callable[..., World]) -> None:
    world = served()
    theirs = {"metadata": {"name": TUNED, "uid": "1"}, "spec": {"profile": []}}
    world.put("Tuned", theirs, NAMESPACE)
    assert "does not belong to this collection: it does not have the label of this collection" in run(world)[0].refusal
    assert not writes(world)


def test_what_cannot_be_read_is_no_absent_one(served: typing.Callable[..., World]) -> None:
    world = served()
    world.put("PerformanceProfile", {"metadata": {"name": "gpu"}, "spec": ["x"]})
    with pytest.raises(Exception, match="is not a mapping"):
        run(world)
    assert not writes(world)


def test_a_server_that_goes_away_ends_it(served: typing.Callable[..., World]) -> None:
    world = served()
    world.stop()
    with pytest.raises(ApiError):
        run(world)


def test_a_control_plane_that_works_keeps_its_profile(served: typing.Callable[..., World]) -> None:
    world = served()
    world.put("Node", node("worker-1", **{"node-role.kubernetes.io/control-plane": ""}))
    run(world)
    made = world.tuned()
    assert made is not None and "include=openshift-control-plane\n" in made["spec"]["profile"][0]["data"]


@pytest.mark.parametrize(
    ("made", "state", "why"),
    [
        (
            lambda text: profile("worker-2", TUNED, TUNED, text, degraded="Failed to set sysctl vm.x"),
            "stuck",
            "degraded: Failed to set sysctl vm.x",
        ),
        (
            lambda text: profile("worker-2", "theirs", "theirs"),
            "stuck",
            "the operator has selected profile theirs of Tuned theirs, priority 5",
        ),
        (
            lambda text: profile("worker-2", TUNED, "openshift-node", text),
            "coming",
            ("TuneD on the node has not activated the profile yet; its active profile is openshift-node"),
        ),
        (
            lambda text: profile("worker-2", TUNED, TUNED, text, applied=False),
            "coming",
            "TuneD has not applied the profile: not yet applied, or application failed.",
        ),
        (
            lambda text: profile("worker-2", TUNED, TUNED, "[main]\n"),
            "stuck",
            "has not yet copied the settings to the Profile of the node",
        ),
    ],
)
def test_a_node_that_does_not_get_it_has_a_cause(
    made: typing.Callable[[str], Resource], state: str, why: str, served: typing.Callable[..., World]
) -> None:
    world = served(bends={"worker-2": made})
    recommend = [{"profile": "theirs", "priority": 5}]
    world.put("Tuned", {"metadata": {"name": "theirs"}, "spec": {"profile": [], "recommend": recommend}}, NAMESPACE)
    found = run(world)[0]
    assert found.nodes["worker-1"].state == "set"
    assert (
        found.nodes["worker-2"].state == state and why in found.nodes["worker-2"].why and found.nodes["worker-2"].remedy
    )
    # what does not come by itself is not waited for
    assert (world.now < 70) == (state == "stuck")


def test_a_node_without_the_label_is_not_waited_for(served: typing.Callable[..., World]) -> None:
    world = served()
    world.put("Node", {**node("worker-2"), "metadata": {"name": "worker-2", "labels": {}}})
    found = run(world)[0]
    assert (
        found.nodes["worker-2"].state == "stuck"
        and "the node lacks the label feature.node.kubernetes.io/network-sriov.capable=true"
        in found.nodes["worker-2"].why
    )
    assert world.now < 10


def test_a_node_without_a_pod_of_tuned_is_named(served: typing.Callable[..., World]) -> None:
    world = served()
    world.drop("Pod", pod("worker-2"), NAMESPACE)
    found = run(world)[0]
    assert (
        "no pod of DaemonSet tuned runs on the node" in found.nodes["worker-2"].why
        and found.nodes["worker-2"].state == "stuck"
    )


def test_a_mirror_pod_that_a_kubelet_shows_is_no_pod_of_tuned(served: typing.Callable[..., World]) -> None:
    world, shown = served(), pod("worker-2")
    shown["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    world.put("Pod", shown, NAMESPACE)
    assert "no pod of DaemonSet tuned runs on the node" in run(world)[0].nodes["worker-2"].why


def test_a_node_of_another_name_is_named(served: typing.Callable[..., World]) -> None:
    found = run(served(), nodes=(*NODES, "worker-9"))[0]
    assert "the cluster has no node with this name" in found.nodes["worker-9"].why
    assert found.nodes["worker-1"].state == "set"


def test_a_tuned_that_the_operator_does_not_take(served: typing.Callable[..., World]) -> None:
    world = served(slow=1000.0)
    run(world, limit=0.0)
    made = world.tuned()
    assert made is not None
    status = {"conditions": [{"type": "Valid", "status": "False", "message": "duplicate profile linerate-rdma"}]}
    world.put("Tuned", {**made, "status": status}, NAMESPACE)
    found = run(world)[0]
    assert {item.state for item in found.nodes.values()} == {"stuck"}
    assert "duplicate profile linerate-rdma" in found.nodes["worker-1"].why
