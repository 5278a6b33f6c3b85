# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll of nodes must not do to a cluster that does not keep still: real BMCs, a real client of a played API
server, a clock of the test's own."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.control_plane import (
    ETCD,
    LABELS,
    MICROK8S,
    describe_shape,
    explain_why_kept,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.drains.health_checks import (
    CAPI_MACHINE,
    explain_remediation_risk,
    find_machines_elsewhere,
    of_machines,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    DrainOptions,
    DrainPool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.control_plane import (
    EtcdMember,
    HealthCheck,
    Machine,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import (
    LabelSelector,
    MachinePool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
    NodeStep,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import RetainedObject
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import answers
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.patience import (
    PatientCluster,
    may_retry,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import core
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_node as node_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.health_check import PAUSE_REQUEST, PAUSED
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import ANNOTATION, PROOF
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.blockers import _explain_too_many
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.roll_cluster import RollCluster as PlanCluster
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import node_roll
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.drain import Drain
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.health_checks import HealthChecks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.resume_checks import resume_own_checks
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.turns.roll_limits import RollLimits
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    REBOOT,
    Killed,
    Server,
    Site,
    World,
    kill_at_once,
    merged,
    node,
    of,
    only,
    playing,
    ready,
    states,
)

SCRATCH = [{"name": "scratch", "emptyDir": {}}]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def world() -> typing.Iterator[World]:
    world = World()
    world.start()
    yield world
    world.stop()


@pytest.fixture
def site(certificates: Certificates, world: World) -> typing.Iterator[Site]:
    with contextlib.ExitStack() as stack:
        file = certificates.of()
        yield Site(certificates, {name: stack.enter_context(Server(world, name, file)) for name in NODES}, world)


# Evictions


def test_a_pod_that_was_made_again_elsewhere_is_not_evicted_there(world: World) -> None:
    """The pod of a StatefulSet has the same name again."""
    cluster = FakeApi.client(world.url)
    world.add("db-0", "worker-1", owner="StatefulSet", uid="old")
    original = cluster.pages

    def reborn(kind: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        found = list(original(kind, *arguments, **more))
        world.add("db-0", "worker-2", owner="StatefulSet", uid="new")
        return iter(found)

    cluster.pages = reborn  # type: ignore[method-assign]
    did: list[str] = []
    Drain(cluster, lambda: world.now, lambda: world.pause(5), lambda _line: None, 60, DrainOptions()).work(
        "worker-1", did
    )
    left = world.pod("db-0")
    assert left is not None and left["metadata"]["uid"] == "new" and did == [], "it runs on worker-2"


def test_each_eviction_names_the_uid_that_was_looked_at(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1", uid="of-this-pod")
    original, asked = site.world.write, []

    def write(method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path.endswith("/eviction"):
            asked.append(body["deleteOptions"]["preconditions"])
        return original(method, path, body, dry_run)

    monkeypatch.setattr(site.world, "write", write)
    assert of(site.run(), "worker-1").state == "done" and asked == [{"uid": "of-this-pod"}]


# What stops a drain


@pytest.mark.parametrize(
    ("name", "more", "options", "words"),
    [
        (
            "cache",
            {"volumes": SCRATCH},
            DrainOptions(delete_empty_dir_data=True),
            "rdma_cluster.drain.delete_empty_dir_data",
        ),
        ("pet", {"owner": ""}, DrainOptions(force=True), "rdma_cluster.drain.force"),
    ],
)
def test_a_pod_that_stops_kubectl_drain_stops_ours_in_the_plan(
    site: Site, name: str, more: dict[str, typing.Any], options: DrainOptions, words: str
) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    site.world.add(name, "worker-1", **more)
    done = site.run()
    first = of(done, "worker-1")
    assert first.state == "blocked" and f"jobs/{name}" in first.why and words in first.why
    assert site.world.did == [] and site.resets() == {}, "nothing is half done"
    site.drain = options
    assert of(site.run(), "worker-1").state == "done" and f"evict {name}" in site.world.did


def test_what_comes_after_the_plan_stops_the_drain_before_the_first_eviction(site: Site) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    roller = site.roller()
    planned = roller.plan(NODES, REBOOT)
    site.world.add("cache", "worker-1", volumes=SCRATCH)
    first = of(roller.roll(planned), "worker-1")
    assert first.state == "blocked" and "jobs/cache" in first.why and "delete_empty_dir_data" in first.remedy
    assert not any(what.startswith(("evict", "reset")) for what in site.world.did) and not site.world.cordoned(
        "worker-1"
    )


# What a BMC answers to a reset


@pytest.mark.parametrize(
    ("status", "taken", "state"), [(503, True, "done"), (503, False, "failed"), (429, False, "failed")]
)
def test_a_reset_that_is_answered_with_busy_is_sent_once(site: Site, status: int, taken: bool, state: str) -> None:
    """Only the node tells whether it was taken."""
    only(site, "worker-1")
    server, posts = site.servers["worker-1"], typing.cast(list[str], [])
    original = server.post

    def post(path: str, body: typing.Any) -> typing.Any:
        posts.append(path)
        answer = original(path, body) if taken else server.message(status, "GeneralError")
        return answer._replace(status=status)

    server.post = post  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert first.state == state and len(posts) == 1 and "reset (unknown whether accepted)" in first.did
    assert taken or (
        not site.world.cordoned("worker-1") and "the BMC did not accept the reset: the node is still up" in first.why
    )


# A roll that is taken up


def killed_before_its_reset(site: Site, intent: ClusterIntent = REBOOT) -> None:
    """A run that has noted the reset of worker-1, and does not order it."""
    only(site, "worker-1")
    site.world.kill = "note worker-1 reset"
    kill_at_once(site)
    with pytest.raises(Killed):
        site.run(intent)
    site.world.kill = ""
    assert site.resets() == {} and site.world.cordoned("worker-1")


def test_a_control_plane_node_that_is_taken_up_is_not_reset_while_another_is_down(site: Site) -> None:
    control_plane(site.world, "worker-1", "control-8", "control-9")
    killed_before_its_reset(site)
    site.world.put("Node", ready(site.world.seen("control-9"), False))
    first = of(site.run(), "worker-1")
    assert (
        first.state == "failed"
        and "these control-plane nodes are NotReady or cordoned too: control-9" in first.why
        and site.resets() == {}
    )
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None, "it is as before"


def test_a_node_that_is_taken_up_is_not_reset_beyond_the_budget(site: Site) -> None:
    killed_before_its_reset(site)
    original = site.world.pause

    def pause(seconds: float) -> None:
        original(seconds)
        site.world.put("Node", ready(site.world.seen("worker-2"), False))

    site.world.pause = pause  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert first.state == "failed" and "no further node may be reset" in first.why and site.resets() == {}


def test_a_node_that_is_taken_up_is_not_reset_with_what_a_drain_may_not_take(site: Site) -> None:
    killed_before_its_reset(site)
    site.world.add("job-0", "worker-1", owner="", volumes=SCRATCH)
    first = of(site.run(), "worker-1")
    assert first.state == "failed" and "jobs/job-0" in first.why and site.resets() == {} and site.world.pod("job-0")


def test_a_node_that_was_uncordoned_since_is_drained_again_when_it_is_taken_up(site: Site) -> None:
    killed_before_its_reset(site)
    uncordoned(site.world, "worker-1")
    site.world.add("job-0", "worker-1")
    found = empty_at_its_reset(site.world)
    assert states(site.run())["worker-1"] == "done" and found == ["worker-1"] and not site.world.cordoned("worker-1")


@pytest.mark.parametrize("point", ["cordon worker-1", "evict web-1", "note worker-1 reset", "reset worker-1"])
def test_a_node_of_which_nothing_is_asked_any_more_takes_pods_again(site: Site, point: str) -> None:
    """The run is killed, and the next intent has no ``bios``."""
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    site.world.kill = point
    kill_at_once(site)
    with pytest.raises(Killed):
        site.run()
    site.world.kill, before = "", site.resets()
    assert site.world.cordoned("worker-1")
    site.wanted = {}
    done = site.run()
    assert of(done, "worker-1").state == "done" and "uncordoned" in of(done, "worker-1").did
    assert site.resets() == before and not site.world.cordoned("worker-1") and site.world.note("worker-1") is None


# Between the drain and the reset


def uncordoned(world: World, name: str) -> None:
    """By somebody else."""
    world.put("Node", merged(world.seen(name), {"spec": {"unschedulable": None}}))


def empty_at_its_reset(world: World) -> list[str]:
    """Has each reset find a node that is cordoned and has no pod but those of DaemonSets; names of the nodes."""
    boot, found = world.boot, typing.cast(list[str], [])

    def check(name: str) -> None:
        assert world.cordoned(name) and not world.pod("job-0"), f"{name} is reset with a pod, or while it takes some"
        found.append(name)
        boot(name)

    world.boot = check  # type: ignore[method-assign]
    return found


def test_a_node_that_takes_pods_again_is_drained_once_more_before_its_reset(site: Site) -> None:
    world = site.world
    only(site, "worker-1")
    world.add("web-1", "worker-1")
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what == "evict web-1":
            uncordoned(world, "worker-1")
        if what == "note worker-1 reset" and "job" not in done:
            # the scheduler, after the last look of the drain
            done.append("job")
            world.add("job-0", "worker-1")

    done: list[str] = []
    world.do = do  # type: ignore[method-assign]
    found = empty_at_its_reset(world)
    assert states(site.run())["worker-1"] == "done" and found == ["worker-1"]
    assert world.did.count("cordon worker-1") == 2 and "evict job-0" in world.did and not world.cordoned("worker-1")


def test_a_node_that_takes_pods_again_and_again_is_not_reset(site: Site) -> None:
    world = site.world
    only(site, "worker-1")
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what in ("cordon worker-1", "note worker-1 reset"):
            uncordoned(world, "worker-1")

    world.do = do  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert (
        first.state == "blocked"
        and "the node was not reset: it still accepts pods after" in first.why
        and site.resets() == {}
        and world.note("worker-1") is None
    )


def test_a_cordon_of_others_that_is_lifted_is_ours_from_then_on(site: Site) -> None:
    world = site.world
    only(site, "worker-1")
    original = world.pause

    def pause(seconds: float) -> None:
        original(seconds)
        if world.now > 60 and world.cordoned("worker-1") and world.did == []:
            world.cordon_by_admin("worker-1", False)

    world.pause = pause  # type: ignore[method-assign]
    found, roller = empty_at_its_reset(world), site.roller()
    planned = roller.plan(NODES, REBOOT)
    world.cordon_by_admin("worker-1", True)
    done = roller.roll(planned)
    assert states(done)["worker-1"] == "done" and found == ["worker-1"] and not world.cordoned("worker-1")
    assert any(line.startswith("the next nodes wait") and "kubectl uncordon worker-1" in line for line in site.said)


EVERYTHING = [{"operator": "Exists"}]


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [(EVERYTHING, True), ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], False)],
)
def test_a_pod_that_is_made_anew_on_the_cordoned_node_stays_where_it_tolerates_that(
    site: Site, tolerations: list[dict[str, str]], stays: bool
) -> None:
    """cilium-operator, tigera-operator: their ReplicaSet has the next pod there as soon as one is evicted."""
    world, count = site.world, itertools.count(1)
    only(site, "worker-1")
    world.add("operator-0", "worker-1", tolerations=tolerations)
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what.startswith("evict operator"):
            # after the old one is gone
            made.append(f"operator-{next(count)}")

    made: list[str] = []
    pause = world.pause

    def make(seconds: float) -> None:
        pause(seconds)
        while made:
            world.add(made.pop(), "worker-1", tolerations=tolerations)

    world.do, world.pause = do, make  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    evicted = [what for what in world.did if what.startswith("evict")]
    assert (first.state, len(evicted) == 1) == (("done", True) if stays else ("blocked", False)), first.why


def test_what_tolerates_everything_is_evicted_all_the_same(site: Site) -> None:
    """What was there before, and what no controller that lost a pod here has made."""
    world = site.world
    only(site, "worker-1")
    world.add("a", "worker-1", tolerations=EVERYTHING)
    world.add("b", "worker-1", tolerations=EVERYTHING)
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what == "evict a":
            world.add("late", "worker-1", owner="StatefulSet", tolerations=EVERYTHING)

    world.do = do  # type: ignore[method-assign]
    assert states(site.run())["worker-1"] == "done" and [what for what in world.did if what.startswith("evict")] == [
        "evict a",
        "evict b",
        "evict late",
    ]


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "node.kubernetes.io/unschedulable"}, True),
        ({"key": "node.kubernetes.io/unschedulable", "value": "x"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_what_tolerates_a_cordon(toleration: dict[str, str], tolerates: bool) -> None:
    pod = {"metadata": {"name": "a", "namespace": "b"}, "spec": {"nodeName": "c", "tolerations": [toleration]}}
    assert core.parse_pod(pod).tolerates_cordon is tolerates


class Twins(World):
    """Answers as the API server to the eviction of a pod that two budgets select."""

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path.endswith("/twin/eviction"):
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return 500, {"kind": "Status", "code": 500, "reason": "InternalError", "message": message}
        return super().write(method, path, body, dry_run)


def twin_budgets() -> list[Resource]:
    return [
        {
            "metadata": {"name": name, "namespace": "jobs"},
            "spec": {"selector": {"matchLabels": {"app": "twin"}}},
            "status": {"disruptionsAllowed": 1},
        }
        for name in ("a", "b")
    ]


@pytest.mark.parametrize("planned", [True, False])
def test_a_pod_of_two_budgets_keeps_its_own_node_out_alone(certificates: Certificates, planned: bool) -> None:
    """It was planned as free, its node failed, and the roll of all nodes ended there."""
    with playing(certificates, Twins()) as site:
        site.world.add("twin", "worker-1", labels={"app": "twin"})
        for budget in twin_budgets() if planned else ():
            site.world.put("PodDisruptionBudget", budget)
        done = site.run()
        assert states(done) == {"worker-1": "blocked", "worker-2": "done", "worker-3": "done"}
        first = of(done, "worker-1")
        assert "more than one PodDisruptionBudget" in first.why
        assert first.did == () if planned else first.did[-1] == "uncordoned"
        assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None
        assert "worker-1" not in site.resets()


@pytest.mark.parametrize(("node", "blocked"), [("", []), ("worker-2", ["worker-2"])])
def test_a_pod_of_a_tenant_that_is_too_large_keeps_its_own_node_out_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch, node: str, blocked: list[str]
) -> None:
    """Empty terms of an affinity are two bytes each in etcd, and two values each in an answer."""
    monkeypatch.setattr(answers, "MOST_PAGE_VALUES", 2_000)
    monkeypatch.setattr(answers, "MOST_OBJECT", 2_000)
    terms: Resource = {"nodeSelectorTerms": [{}] * 4_000}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    site.world.add("huge", node, affinity=affinity)
    found = states(site.run())
    assert {name for name, state in found.items() if state == "done"} == set(found) - set(blocked) and found
    if blocked:
        (why,) = [step.blockers for step in site.plan().steps if step.node == "worker-2"]
        assert "too large to be read: " in why[0] and "/huge" in why[0]


def test_nodes_whose_pods_do_not_go_take_a_bounded_time(site: Site) -> None:
    for name in NODES:
        site.world.add(f"web-{name}", name)
        site.world.held[f"web-{name}"] = 10**9
    site.limits = RollLimits(drain=100.0)
    done = site.run()
    assert states(done) == {"worker-1": "blocked", "worker-2": "blocked", "worker-3": "left"}
    assert "s because nodes could not be drained," in of(done, "worker-3").why


def test_pods_that_stay_and_those_of_a_run_stop_nothing(site: Site) -> None:
    only(site, "worker-1")
    ours = {"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/run": "x"}
    site.world.add("daemon", "worker-1", owner="DaemonSet", volumes=SCRATCH)
    site.world.add("measures", "worker-1", owner="", labels=ours, volumes=SCRATCH)
    assert (
        of(site.run(), "worker-1").state == "done"
        and "evict measures" in site.world.did
        and "evict daemon" not in site.world.did
    )


# An API server that is away


class Away:
    """Refuses requests for a while.

    :ivar where: part of the method and path that it does not serve
    :ivar answers: what it says in place of an answer, one after the other
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.answers, self.met = world, typing.cast(list[tuple[int, str]], []), 0
        original, self.where = world.write, ""

        def write(method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
            if self.answers and self.where in f"{method} {path}":
                self.met += 1
                code, reason = self.answers.pop(0)
                return code, {
                    "kind": "Status",
                    "code": code,
                    "reason": reason,
                    "message": "the server is currently unable to handle the request",
                }
            return original(method, path, body, dry_run)

        monkeypatch.setattr(world, "write", write)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("where", ["PATCH /api/v1/nodes/worker-1", "POST"])
def test_one_passing_failure_at_a_step_ends_no_roll(
    site: Site, monkeypatch: pytest.MonkeyPatch, code: int, where: str
) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    away = Away(site.world, monkeypatch)
    away.where, away.answers = where, [(code, "ServiceUnavailable")] * 3
    done = site.run()
    assert away.met == 3 and of(done, "worker-1").state == "done", done
    assert site.resets() == {"worker-1": 1} and site.world.did.count("evict web-1") == 1
    assert any("the API server does not respond: " in line for line in site.said) and any(
        "the API server responds again" in line for line in site.said
    )


def test_a_connection_that_breaks_while_a_node_boots_ends_no_roll(site: Site) -> None:
    only(site, "worker-1", "worker-2")
    original, gone = site.world.pause, [4]

    def pause(seconds: float) -> None:
        if "reset worker-1" in site.world.did and gone[0] == 4:
            site.world.stop()
        original(seconds)
        if "reset worker-1" in site.world.did and gone[0] >= 0:
            gone[0] -= 1
            if gone[0] == 0:
                site.world.start()

    site.world.pause = pause  # type: ignore[method-assign]
    done = site.run()
    assert states(done) == {"worker-1": "done", "worker-2": "done", "worker-3": "nothing"} and site.resets() == {
        "worker-1": 1,
        "worker-2": 1,
    }


def test_one_that_stays_away_is_an_error_with_its_cause_after_the_limit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(site, "worker-1")
    site.limits = RollLimits(drain=60, back=300, settle=10, grace=30, api=90)
    away = Away(site.world, monkeypatch)
    away.where, away.answers = "PATCH", [(503, "ServiceUnavailable")] * 10_000
    begin = site.world.now
    done = site.run()
    first = of(done, "worker-1")
    assert (
        first.state == "failed"
        and "unable to handle the request" in first.why
        and "for 90 s" in first.why
        and site.resets() == {}
    )
    # the step itself, and the way back
    assert 90 <= site.world.now - begin <= 200


def test_a_pause_is_as_long_as_the_server_asks_for_and_ends_with_the_limit() -> None:
    now, pauses = [0.0], typing.cast(list[float], [])

    class Busy(Cluster):
        def __init__(self) -> None:
            super().__init__(None)

        def _json(self, *_arguments: typing.Any, **_more: typing.Any) -> Resource:
            raise ApiError(429, "TooManyRequests", "too many requests", "GET /", retry_after=9.0)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    with pytest.raises(ApiError, match=r"too many requests \(the same error for 20 s\)"):
        PatientCluster(Busy(), 20.0, lambda: now[0], pause).get("Node", "", "worker-1")
    assert pauses == [9.0, 9.0, 2.0]


@pytest.mark.parametrize(
    ("error", "method", "path", "again"),
    [
        (ApiError(503, "ServiceUnavailable", "x", ""), "get", "/api/v1/nodes", True),
        (ApiError(0, "Unreachable", "Connection reset by peer", ""), "patch", "/api/v1/nodes/a", True),
        (ApiError(503, "ServiceUnavailable", "x", ""), "post", "/api/v1/namespaces/a/pods/b/eviction", True),
        # it may have been taken
        (ApiError(503, "ServiceUnavailable", "x", ""), "post", "/api/v1/namespaces/a/pods", False),
        (ApiError(0, "Unreachable", "read timed out", ""), "post", "/api/v1/namespaces/a/pods", False),
        (ApiError(0, "Unreachable", "[Errno 111] Connection refused", ""), "post", "/api/v1/namespaces/a/pods", True),
        (ApiError(429, "TooManyRequests", "x", ""), "post", "/api/v1/namespaces/a/pods", True),
        # a budget is waited for by the drain, which says so
        (
            ApiError(429, "TooManyRequests", "x", "", causes=("DisruptionBudget",)),
            "post",
            "/api/v1/namespaces/a/pods/b/eviction",
            False,
        ),
        (
            ApiError(500, "InternalError", "This pod has more than one PodDisruptionBudget", ""),
            "post",
            "/api/v1/namespaces/a/pods/b/eviction",
            False,
        ),
        (
            ApiError(0, "Unreachable", "certificate verify failed: CERTIFICATE_VERIFY_FAILED", ""),
            "get",
            "/api/v1/nodes",
            False,
        ),
        (ApiError(403, "Forbidden", "x", ""), "get", "/api/v1/nodes", False),
        (ApiError(409, "Conflict", "x", ""), "patch", "/api/v1/nodes/a", False),
    ],
)
def test_what_is_asked_again(error: ApiError, method: str, path: str, again: bool) -> None:
    assert may_retry(error, method, path) is again


# Who may be away


CONTROL = "node-role.kubernetes.io/control-plane"


def control_plane(world: World, *names: str, members: typing.Optional[typing.Sequence[str]] = None) -> None:
    """These are control-plane nodes, each with a member of etcd that is Ready, or those alone that are named."""
    world.serve("Pod", [], "kube-system")
    for name in names:
        found = world.object(f"/api/v1/nodes/{name}") or node(name)
        world.put("Node", {**found, "metadata": {**found["metadata"], "labels": {CONTROL: ""}}})
        is_ready = "True" if members is None or name in members else "False"
        pod = {"metadata": {"name": f"etcd-{name}", "namespace": "kube-system"}, "spec": {"nodeName": name}}
        world.put("Pod", {**pod, "status": {"conditions": [{"type": "Ready", "status": is_ready}]}}, "kube-system")


TWO = ClusterIntent(disruption="reboot", node_pool=DrainPool(2))


def test_control_plane_nodes_go_one_at_a_time_whatever_the_budget_is(site: Site) -> None:
    control_plane(site.world, *NODES)
    planned = site.plan(TWO)
    assert [len(wave) for wave in planned.waves] == [1, 1, 1] and any(
        "compact cluster of 3 nodes" in line for line in describe_plan(planned)
    )
    assert describe_plan(planned)[-1] == (
        "the roll ends at the first node that fails; a node whose pods cannot be evicted is skipped"
    )
    down: set[str] = set()
    original = site.world.do

    def do(what: str) -> None:
        verb, _space, name = what.partition(" ")
        if verb == "cordon":
            assert not down, f"{name} goes while {down} is away"
            down.add(name)
        elif verb == "uncordon":
            down.discard(name)
        original(what)

    site.world.do = do  # type: ignore[method-assign]
    assert states(site.run(TWO)) == dict.fromkeys(NODES, "done")


def test_the_next_control_plane_node_waits_until_etcd_is_whole(site: Site) -> None:
    """A member of etcd of OpenShift takes 120 s and more after its node is back."""
    world = site.world
    control_plane(world, *NODES)
    only(site, "worker-1", "worker-2")
    back: list[float] = []
    do, pause = world.do, world.pause

    def done(what: str) -> None:
        do(what)
        if what == "uncordon worker-1":
            control_plane(world, *NODES, members=NODES[1:])
            back.append(world.now)

    def waits(seconds: float) -> None:
        pause(seconds)
        if back and world.now > back[0] + 240:
            control_plane(world, *NODES)

    world.do, world.pause = done, waits  # type: ignore[method-assign]
    assert states(site.run()) == {"worker-1": "done", "worker-2": "done", "worker-3": "nothing"} and world.now > 240
    assert any(
        "the next nodes wait at most 600 s: " in line and "etcd has no Ready member on worker-1" in line
        for line in site.said
    )


@pytest.mark.parametrize(
    "change", [{"spec": {"unschedulable": True}}, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}]
)
def test_no_control_plane_node_goes_while_one_outside_of_the_inventory_is_down(site: Site, change: Resource) -> None:
    control_plane(site.world, "worker-1", "control-9", "control-8")
    only(site, "worker-1", "worker-2")
    site.world.put("Node", merged(site.world.seen("control-9"), change))
    done = site.run(TWO)
    assert (
        states(done) == {"worker-1": "blocked", "worker-2": "done", "worker-3": "nothing"}
        and "control-9" in of(done, "worker-1").why
    )


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (("worker-1", "control-9"), "no Ready member on control-8"),
        (None, "has a pod of etcd, so it is unknown whether etcd would keep its quorum"),
    ],
)
def test_no_control_plane_node_goes_unless_all_members_of_etcd_are_there(
    site: Site, members: typing.Optional[typing.Sequence[str]], words: str
) -> None:
    control_plane(site.world, "worker-1", "control-8", "control-9", members=members)
    if members is None:
        site.world.serve("Pod", [], "kube-system")
    only(site, "worker-1")
    done = site.run()
    assert states(done)["worker-1"] == "blocked" and words in of(done, "worker-1").why and site.world.did == []


def test_a_control_plane_node_that_goes_down_during_a_drain_keeps_the_next_from_its_reset(site: Site) -> None:
    world = site.world
    control_plane(world, "worker-1", "control-8", "control-9")
    only(site, "worker-1")
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what == "cordon worker-1":
            world.put("Node", ready(world.seen("control-9"), False))

    world.do = do  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert (
        first.state == "failed"
        and "these control-plane nodes are NotReady or cordoned too: control-9" in first.why
        and site.resets() == {}
    )
    assert not world.cordoned("worker-1") and world.note("worker-1") is None, "it is as before"


def labelled(world: World, labels: dict[str, str], *names: str) -> None:
    """These nodes have these labels, and no other."""
    for name in names:
        found = world.seen(name)
        world.put("Node", {**found, "metadata": {**found["metadata"], "labels": labels}})


@pytest.mark.parametrize("label", [*LABELS, MICROK8S])
def test_nodes_with_a_label_of_the_control_plane_go_one_at_a_time(site: Site, label: str) -> None:
    control_plane(site.world, "control-9", *NODES)
    labelled(site.world, {label: ""}, "control-9", *NODES)
    assert [len(wave) for wave in site.plan(TWO).waves] == [1, 1, 1]
    site.world.put("Node", ready(site.world.seen("control-9"), False))
    assert all(
        "these control-plane nodes are NotReady or cordoned too: control-9" in step.blockers[0]
        for step in site.plan(TWO).steps
    )


def test_a_worker_is_no_control_plane_node_by_what_its_kubelet_writes(site: Site) -> None:
    """It may write the label of MicroK8s and a static pod of etcd, and would keep each control-plane node, or its own
    pool, by them."""
    control_plane(site.world, "control-8", "control-9", *NODES, members=("control-8", "control-9"))
    labelled(site.world, {MICROK8S: ""}, *NODES)
    assert [len(wave) for wave in site.plan(TWO).waves] == [2, 1]
    members = [EtcdMember("c1", True), EtcdMember("c2", True), EtcdMember("w1", False)]
    for away in (
        ClusterNode("w1", {}),
        ClusterNode("w1", {MICROK8S: ""}),
        ClusterNode("w1", {MICROK8S: ""}, ready=True),
    ):
        nodes = [*(ClusterNode(name, {CONTROL: ""}, ready=True) for name in ("c1", "c2")), away]
        assert [explain_why_kept(node, nodes, members, "") for node in nodes] == [""] * 3
        assert "has a pod of etcd, so it is unknown whether etcd would keep its quorum" in explain_why_kept(
            nodes[0], nodes, members[2:], ""
        ), "its member stands for none of theirs"


@pytest.mark.parametrize("label", [*LABELS, MICROK8S])
def test_a_single_node_goes_with_its_member_of_etcd_alone(label: str) -> None:
    one = ClusterNode("a", {label: ""}, ready=True)
    assert explain_why_kept(one, [one], [EtcdMember("a", True)], "") == ""
    assert "has a pod of etcd, so it is unknown whether etcd would keep its quorum" in explain_why_kept(
        one, [one], [], ""
    ) and "no Ready member on a" in explain_why_kept(one, [one], [EtcdMember("a", False)], "")
    assert describe_shape([one], ["a"]) == (
        ("single-node cluster: a is its only node. While the node is reset, there is no API server, and no pod runs."),
    )


def test_where_roles_are_split_members_are_wanted_on_the_nodes_of_etcd_alone() -> None:
    both, control, etcd = {CONTROL: "true", ETCD: "true"}, {CONTROL: "true"}, {ETCD: "true"}
    nodes = [
        ClusterNode(name, labels, ready=True)
        for name, labels in (("c1", control), ("c2", control), ("e1", etcd), ("e2", both))
    ]
    members = [EtcdMember("e1", True), EtcdMember("e2", True)]
    assert [explain_why_kept(node, nodes, members, "") for node in nodes] == [""] * 4
    assert all("no Ready member on e2" in explain_why_kept(node, nodes, members[:1], "") for node in nodes), (
        "its pod is gone"
    )
    assert all(
        "no Ready member on e1" in explain_why_kept(node, nodes, [EtcdMember("e1", False), members[1]], "")
        for node in nodes
    )
    assert "no Ready member on c2" in explain_why_kept(nodes[0], nodes[:2], [EtcdMember("c1", True)], ""), (
        "no role tells that it has none"
    )


def test_pods_of_etcd_that_may_not_be_read_keep_control_plane_nodes() -> None:
    one = ClusterNode("c1", {CONTROL: ""}, ready=True)
    assert "right to list pods" in explain_why_kept(one, (one,), (), "pods is forbidden")
    assert explain_why_kept(ClusterNode("w1", ready=True), (one,), (), "pods is forbidden") == ""


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([("a", True)], "single-node cluster: a is its only node"),
        ([("a", True), ("b", False)], "a is the only control-plane node"),
        ([("a", True), ("b", True), ("c", True)], "compact cluster of 3 nodes"),
    ],
)
def test_a_cluster_without_a_control_plane_node_to_spare_is_named_for_what_it_is(nodes: typing.Any, words: str) -> None:
    every = [ClusterNode(name, {CONTROL: ""} if control else {}, ready=True) for name, control in nodes]
    (told,) = describe_shape(every, ["a"])
    assert words in told
    assert (
        describe_shape([*every, ClusterNode("w", ready=True), ClusterNode("x", {CONTROL: ""}, ready=True)], ["w"]) == ()
    )


def test_a_node_that_dies_after_the_first_wave_counts_in_the_second(site: Site) -> None:
    world = site.world
    world.put("Node", node("worker-9"))
    world.put(
        "Node",
        merged(
            world.seen("worker-9"),
            {"metadata": {"labels": {"feature.node.kubernetes.io/network-sriov.capable": "true"}}},
        ),
    )
    original = world.do

    def do(what: str) -> None:
        original(what)
        if what == "uncordon worker-1":
            world.put("Node", ready(world.seen("worker-9"), False))

    world.do = do  # type: ignore[method-assign]
    done = site.run()
    assert states(done) == {"worker-1": "done", "worker-2": "left", "worker-3": "left"} and site.resets() == {
        "worker-1": 1
    }
    assert "worker-9 is not Ready" in of(done, "worker-2").why


def test_a_wave_of_two_is_one_where_another_node_has_gone_since(site: Site) -> None:
    world, site.limits = site.world, RollLimits(drain=60, back=300, settle=10, grace=0)
    only(site, "worker-1", "worker-2")
    roller = site.roller()
    planned = roller.plan(NODES, TWO)
    assert [len(wave) for wave in planned.waves] == [2]
    world.put("Node", ready(world.seen("worker-3"), False))
    done = roller.roll(planned)
    assert world.did.index("uncordon worker-1") < world.did.index("note worker-2 begun")
    assert {name: states(done)[name] for name in NODES[:2]} == {"worker-1": "done", "worker-2": "done"}


def test_a_pool_that_reboots_two_control_plane_nodes_at_once_is_not_let_go() -> None:
    pool = MachinePool("master", LabelSelector({CONTROL: ""}), max_unavailable="2")
    one = ClusterNode("c1", {CONTROL: ""}, ready=True, boot_id="b")
    found = _explain_too_many(
        NodeStep("c1", "reboot", pool="master"), one, PlanCluster(nodes=(one,), machine_pools=(pool,))
    )
    assert "reboots 2 control-plane nodes at the same time" in found
    assert _explain_too_many(NodeStep("c1", "reboot"), one, PlanCluster(nodes=(one,), machine_pools=(pool,))) == ""


# Health checks that would remediate a node that is away


MHC, MACHINE = "MachineHealthCheck.machine.openshift.io", "Machine.machine.openshift.io"
PAUSE = dataclasses.replace(REBOOT, pause_health_checks=True)


class Checked(World):
    """With a MachineHealthCheck and a NodeHealthCheck; asserts that a node is reset only while each that watches it is
    paused.

    :ivar watched: nodes of the MachineHealthCheck; that of the other is worker-1 alone
    """

    paths: typing.ClassVar[dict[str, str]] = {
        "MHC": "/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machinehealthchecks/workers",
        "NHC": "/apis/remediation.medik8s.io/v1alpha1/nodehealthchecks/nhc",
    }

    def __init__(self, watched: typing.Sequence[str] = NODES) -> None:
        super().__init__()
        for group in ("config.openshift.io", "machine.openshift.io", "remediation.medik8s.io"):
            self._objects[f"/apis/{group}"] = {}
            self._events[f"/apis/{group}"] = []
        place, role = {"namespace": "openshift-machine-api"}, {"role": "worker"}
        machines = [
            {"metadata": {**place, "name": f"m-{name}", "labels": role}, "status": {"nodeRef": {"name": name}}}
            for name in watched
        ]
        self.serve("ClusterVersion", [])
        self.serve(MACHINE, machines)
        check = {
            "metadata": {**place, "name": "workers", "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": role}},
        }
        other = {
            "metadata": {"name": "nhc", "resourceVersion": "1"},
            "spec": {"selector": {"matchLabels": {"watched": "yes"}}, "pauseRequests": None},
        }
        # as the API server, which has one object in a list of all namespaces and in its own
        self.serve(MHC, [check])
        self.serve("NodeHealthCheck", [other])
        self.put("Node", merged(self.seen("worker-1"), {"metadata": {"labels": {"watched": "yes"}}}))

    def check(self, which: str) -> Resource:
        listed = {"MHC": "/apis/machine.openshift.io/v1beta1/machinehealthchecks/workers"}.get(which, self.paths["NHC"])
        found = self.object(listed)
        assert found is not None
        return found

    def paused(self, which: str) -> bool:
        found = self.check(which)
        return PAUSED in found["metadata"].get("annotations", {}) or bool(found["spec"].get("pauseRequests"))

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        for which, own in self.paths.items():
            if path == own:
                found = self.check(which)
                version = body.get("metadata", {}).get("resourceVersion")
                if version not in (None, found["metadata"]["resourceVersion"]):
                    return 409, {
                        "kind": "Status",
                        "code": 409,
                        "reason": "Conflict",
                        "message": "the object has been modified",
                    }
                self.put(MHC if which == "MHC" else "NodeHealthCheck", merged(found, body))
                self.do(f"{'pause' if self.paused(which) else 'unpause'} {which}")
                return 200, self.check(which)
        return super().write(method, path, body, dry_run)

    def boot(self, name: str) -> None:
        assert self.paused("MHC") and (self.paused("NHC") or name != "worker-1"), "it would be remediated"
        super().boot(name)


@pytest.fixture
def checked(certificates: Certificates) -> typing.Iterator[Site]:
    with playing(certificates, Checked()) as found:
        yield found


def test_a_health_check_that_watches_a_node_keeps_it_unless_it_may_be_paused(checked: Site) -> None:
    done = checked.run()
    assert set(states(done).values()) == {"blocked"} and checked.world.did == [] and checked.resets() == {}
    assert (
        "MachineHealthCheck openshift-machine-api/workers" in of(done, "worker-2").why
        and "NodeHealthCheck nhc" in of(done, "worker-1").why
    )
    assert (
        "NodeHealthCheck" not in of(done, "worker-2").why
        and "rdma_cluster.pause_health_checks" in of(done, "worker-2").why
    )


def test_health_checks_are_paused_for_the_roll_and_go_on_after_it(checked: Site) -> None:
    planned = checked.plan(PAUSE)
    assert (
        "MachineHealthCheck openshift-machine-api/workers: paused until worker-1, worker-2, worker-3 is back"
        in describe_plan(planned)
    )
    done = checked.run(PAUSE)
    world = typing.cast(Checked, checked.world)
    assert states(done) == dict.fromkeys(NODES, "done") and not world.paused("MHC") and not world.paused("NHC")
    assert set(world.did[:2]) == {"pause MHC", "pause NHC"} and set(world.did[-2:]) == {"unpause MHC", "unpause NHC"}


def test_check_mode_pauses_nothing(checked: Site) -> None:
    checked.run(PAUSE, check_mode=True)
    assert checked.world.did == []


def test_the_pause_of_a_run_that_was_killed_is_taken_back_by_the_next(checked: Site) -> None:
    world = typing.cast(Checked, checked.world)
    world.kill = "reset worker-1"
    kill_at_once(checked)
    with pytest.raises(Killed):
        checked.run(PAUSE)
    world.kill = ""
    assert world.paused("MHC") and world.paused("NHC")
    assert (
        states(checked.run(PAUSE)) == dict.fromkeys(NODES, "done")
        and not world.paused("MHC")
        and not world.paused("NHC")
    )


def test_health_checks_go_on_after_a_setting_that_did_not_take(checked: Site) -> None:
    """The node is Ready and takes pods. Its mark only keeps it from another reset."""
    world = typing.cast(Checked, checked.world)
    only(checked, "worker-2")
    checked.servers["worker-2"].bios.stubborn = frozenset({ATTRIBUTE})
    for _run in range(2):
        assert of(checked.run(PAUSE), "worker-2").state == "failed"
        assert not world.paused("MHC") and not world.cordoned("worker-2")
        assert world.note("worker-2")["reset"] and checked.resets() == {"worker-2": 1}
    checked.servers["worker-2"].bios.stubborn = frozenset()
    world.put("Node", merged(world.seen("worker-2"), {"metadata": {"annotations": {ANNOTATION: None}}}))
    assert of(checked.run(PAUSE), "worker-2").state == "done" and checked.resets() == {"worker-2": 2}
    assert "pause MHC" in world.did and not world.paused("MHC")


def test_health_checks_go_on_after_a_reset_whose_settings_could_not_be_verified(checked: Site) -> None:
    world = typing.cast(Checked, checked.world)
    only(checked)
    checked.facts = {"worker-2": NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),))}
    assert of(checked.run(PAUSE), "worker-2").state == "unproven"
    assert not world.paused("MHC") and world.note("worker-2")["reset"] and not world.cordoned("worker-2")


def test_health_checks_go_on_after_a_roll_that_ends_by_an_answer_that_nobody_can_read(
    checked: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_given: typing.Any) -> typing.NoReturn:
        raise ParseError("the note of a node", "{", "JSON")

    monkeypatch.setattr(node_roll, "choose_turn", unread)
    with pytest.raises(ParseError):
        checked.run(PAUSE)
    world = typing.cast(Checked, checked.world)
    assert not world.paused("MHC") and not world.paused("NHC") and "pause MHC" in world.did


def test_a_teardown_takes_the_pause_back(checked: Site) -> None:
    world = typing.cast(Checked, checked.world)
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "")
    assert world.paused("MHC") and world.paused("NHC")
    assert sorted(map(str, checks.release_all())) == [
        "MachineHealthCheck openshift-machine-api/workers",
        "NodeHealthCheck nhc",
    ]
    assert not world.paused("MHC") and not world.paused("NHC") and checks.release_all() == []


def _resume(checked: Site, intent: ClusterIntent) -> tuple[list[str], dict[str, RetainedObject]]:
    """What the teardown of an intent resumes, and what stays."""
    checks = HealthChecks(checked.cluster, checked.said.append)
    done, stays = resume_own_checks(checks, build_scope((), intent), False)
    return sorted(map(str, done)), {one.subject: one for one in stays}


BOTH = ["MachineHealthCheck openshift-machine-api/workers", "NodeHealthCheck nhc"]


def test_a_teardown_resumes_no_health_check_of_a_node_that_is_away(checked: Site) -> None:
    """The roll of the intent, or of another one, has reset worker-1, which did not come back."""
    world = typing.cast(Checked, checked.world)
    world.boot_pauses = None
    mine = dataclasses.replace(PAUSE, intent_name="compute")
    assert states(checked.run(mine))["worker-1"] == "failed"
    assert world.check("MHC")["metadata"]["annotations"][PAUSED] == "linerate.rdma/compute"
    assert world.check("NHC")["spec"]["pauseRequests"] == [f"{PAUSE_REQUEST}, intent compute"]
    done, stays = _resume(checked, mine)
    assert done == [] and sorted(stays) == BOTH and world.paused("MHC") and world.paused("NHC")
    assert all("worker-1" in one.why for one in stays.values())
    assert "kubectl annotate machinehealthcheck.machine.openshift.io -n openshift-machine-api workers" in (
        stays[BOTH[0]].remedy
    )
    # Ready again, but the roll has not finished with it
    world.put("Node", ready(world.seen("worker-1"), True))
    assert _resume(checked, mine)[0] == [] and world.paused("MHC") and world.paused("NHC")


@pytest.mark.parametrize(
    ("cordon", "label", "resumed"),
    [
        ("linerate.rdma", True, []),
        ("kubectl-cordon", True, BOTH),
        # a kubelet may cordon its Node, and every client chooses the name of its field manager
        ("linerate.rdma", False, BOTH),
    ],
)
def test_a_teardown_resumes_no_health_check_of_a_node_that_the_collection_cordoned(
    checked: Site, cordon: str, label: bool, resumed: list[str]
) -> None:
    world = typing.cast(Checked, checked.world)
    mine = dataclasses.replace(PAUSE, intent_name="compute")
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "compute")
    fields: Resource = {"f:spec": {"f:unschedulable": {}}}
    metadata = {
        "managedFields": [{"manager": cordon, "fieldsV1": fields}],
        "labels": {PROOF: "marked"} if label else {},
    }
    world.put("Node", merged(world.seen("worker-1"), {"metadata": metadata, "spec": {"unschedulable": True}}))
    assert _resume(checked, mine)[0] == resumed


@pytest.mark.parametrize(
    ("paused_by", "torn_down", "selects", "resumed"),
    [
        ("compute", "compute", False, True),
        ("compute", "storage", True, False),
        ("compute", "default", True, False),
        ("default", "storage", True, False),
        ("default", "default", True, True),
        ("default", "default", False, False),
        # an earlier release named none
        ("", "storage", True, True),
        ("", "storage", False, False),
    ],
)
def test_a_teardown_resumes_only_the_health_checks_that_its_own_intent_paused(
    checked: Site, paused_by: str, torn_down: str, selects: bool, resumed: bool
) -> None:
    world = typing.cast(Checked, checked.world)
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], paused_by)
    if not paused_by:
        world.put(MHC, merged(world.check("MHC"), {"metadata": {"annotations": {PAUSED: "linerate.rdma"}}}))
        world.put("NodeHealthCheck", merged(world.check("NHC"), {"spec": {"pauseRequests": [PAUSE_REQUEST]}}))
    selector = {"watched": "yes"} if selects else {"nowhere": ""}
    done, stays = _resume(checked, ClusterIntent(intent_name=torn_down, node_selector=selector))
    assert (done, sorted(stays)) == ((BOTH, []) if resumed else ([], BOTH))
    assert world.paused("MHC") is world.paused("NHC") is not resumed


def test_a_pause_of_others_stays(checked: Site) -> None:
    world = typing.cast(Checked, checked.world)
    world.put(MHC, merged(world.check("MHC"), {"metadata": {"annotations": {PAUSED: ""}}}))
    world.put("NodeHealthCheck", merged(world.check("NHC"), {"spec": {"pauseRequests": ["an upgrade"]}}))
    assert states(checked.run()) == dict.fromkeys(NODES, "done"), "nobody would remediate them"
    assert world.paused("MHC") and world.check("NHC")["spec"]["pauseRequests"] == ["an upgrade"]
    assert not any("pause" in what for what in world.did)


def test_what_watches_a_node_that_did_not_come_back_stays_paused(checked: Site) -> None:
    world = typing.cast(Checked, checked.world)
    world.boot_pauses = None
    assert states(checked.run(PAUSE))["worker-1"] == "failed"
    assert (
        world.paused("MHC")
        and world.paused("NHC")
        and any("stays paused because nodes are not back: worker-1;" in line for line in checked.said)
    )
    world.away["worker-1"], world.boot_pauses = 2, 3
    assert (
        states(checked.run(PAUSE)) == dict.fromkeys(NODES, "done")
        and not world.paused("MHC")
        and not world.paused("NHC")
    )


def test_a_node_that_cordons_itself_as_the_collection_keeps_no_health_check_paused(checked: Site) -> None:
    """NodeRestriction lets a kubelet write spec.unschedulable of its Node, under any field manager."""
    world = typing.cast(Checked, checked.world)
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "")
    fields: Resource = {"f:spec": {"f:unschedulable": {}}}
    metadata = {"managedFields": [{"manager": "linerate.rdma", "fieldsV1": fields}]}
    world.put("Node", merged(world.seen("worker-3"), {"metadata": metadata, "spec": {"unschedulable": True}}))
    checks.release_all()
    assert not world.paused("MHC") and not world.paused("NHC")


def test_a_node_that_marks_itself_and_stays_away_keeps_no_health_check_paused(checked: Site) -> None:
    """Its kubelet may write the annotation, and no label of node-restriction.kubernetes.io."""
    world = typing.cast(Checked, checked.world)
    world.put(
        "Node",
        merged(
            ready(world.seen("worker-3"), False),
            {"metadata": {"annotations": {ANNOTATION: json.dumps({"reset": True, "boot": "b"})}}},
        ),
    )
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "")
    assert len(checks.release_all()) == 2 and not world.paused("MHC") and not world.paused("NHC")


def test_health_checks_of_a_node_that_is_still_ready_after_its_reset_stay_paused(checked: Site) -> None:
    """The Node stays Ready for about 40 s after its kubelet stopped, and a killed roll has left its mark."""
    world = typing.cast(Checked, checked.world)
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "")
    mark = {"annotations": {ANNOTATION: json.dumps({"reset": True, "boot": "b"})}, "labels": {PROOF: "true"}}
    world.put("Node", merged(ready(world.seen("worker-1"), True), {"metadata": mark}))
    assert checks.release_all() == [] and world.paused("MHC") and world.paused("NHC")


@pytest.mark.parametrize(
    ("pool", "stays"),
    [
        (None, False),
        # it says that it is updating while a node is NotReady
        ({"wanted": "rendered-a", "has": "rendered-a", "Updating": "True"}, False),
        ({"wanted": "rendered-b", "has": "rendered-a", "Updating": "True"}, True),
        ({"wanted": "rendered-b", "has": "rendered-a", "paused": True}, False),
    ],
)
def test_only_the_status_of_its_pool_says_that_a_pool_rolls_a_node(
    checked: Site, pool: typing.Optional[dict[str, typing.Any]], stays: bool
) -> None:
    """The annotations of the machine config operator are in the Node, which its kubelet may write."""
    world = typing.cast(Checked, checked.world)
    notes = {f"machineconfiguration.openshift.io/{name}Config": f"rendered-{name}" for name in ("current", "desired")}
    world.put("Node", merged(ready(world.seen("worker-1"), False), {"metadata": {"annotations": notes}}))
    if pool is not None:
        world._objects["/apis/machineconfiguration.openshift.io"] = {}
        world._events["/apis/machineconfiguration.openshift.io"] = []
        conditions = [{"type": "Updating", "status": pool.get("Updating", "False")}]
        spec = {"nodeSelector": {}, "configuration": {"name": pool["wanted"]}, "paused": pool.get("paused", False)}
        status = {"configuration": {"name": pool["has"]}, "conditions": conditions}
        world.serve("MachineConfigPool", [{"metadata": {"name": "worker"}, "spec": spec, "status": status}])
    checks = HealthChecks(checked.cluster, checked.said.append)
    checks.pause(checks.read([node_of(world.seen(name)) for name in NODES])[0], "")
    assert len(checks.release_all()) == (0 if stays else 2)
    assert world.paused("NHC") is world.paused("MHC") is stays


def test_health_checks_that_may_not_be_read_keep_the_nodes() -> None:
    one = ClusterNode("w1", ready=True)
    (why,) = explain_remediation_risk(one, (), {MHC: "machinehealthchecks is forbidden"}, True)
    assert "is forbidden" in why and "right to list" in why
    assert explain_remediation_risk(one, (), {"MachineConfigPool": "forbidden"}, False) == ()


def test_a_health_check_whose_machines_are_not_known_is_about_each_node() -> None:
    check, one = HealthCheck(MHC, "x", "y"), ClusterNode("w1", ready=True)
    assert explain_remediation_risk(one, (of_machines(check, None),), {}, False) and explain_remediation_risk(
        one, (of_machines(check, [Machine("x", "m")]),), {}, False
    )
    assert not explain_remediation_risk(
        one, (of_machines(check, [Machine("x", "m", node="w2"), Machine("z", "m", node="w1")]),), {}, False
    )


def manage_elsewhere(world: World) -> World:
    """Give each node the annotation of Cluster API that names its Machine."""
    for name in NODES:
        note = {"cluster.x-k8s.io/machine": f"md-0-{name}", "cluster.x-k8s.io/cluster-namespace": "fleet"}
        world.put("Node", merged(world.seen(name), {"metadata": {"annotations": note}}))
    return world


def test_nodes_with_machines_in_a_management_cluster_are_not_reset(certificates: Certificates) -> None:
    with playing(certificates, manage_elsewhere(World())) as site:
        done = site.run()
        assert set(states(done).values()) == {"blocked"} and site.resets() == {}
        why = of(done, "worker-1").why
        assert "Machine md-0-worker-1 of Cluster API" in why and "rdma_cluster.management_cluster_paused: true" in why


def test_nodes_are_reset_if_the_intent_says_that_the_management_cluster_is_paused(certificates: Certificates) -> None:
    with playing(certificates, manage_elsewhere(World())) as site:
        done = site.run(dataclasses.replace(REBOOT, management_cluster_paused=True))
        assert states(done) == dict.fromkeys(NODES, "done")


@pytest.mark.parametrize("named", [NODES, NODES[:2]])
def test_nodes_with_machines_in_this_cluster_are_reset(certificates: Certificates, named: tuple[str, ...]) -> None:
    world = World()
    for group in ("config.openshift.io", "cluster.x-k8s.io"):
        world._objects[f"/apis/{group}"], world._events[f"/apis/{group}"] = {}, []
    world.serve("ClusterVersion", [])
    world.serve("MachineHealthCheck.cluster.x-k8s.io", [])
    machines = [
        {"metadata": {"namespace": "fleet", "name": f"md-0-{name}"}, "status": {"nodeRef": {"name": name}}}
        for name in named
    ]
    world.serve(CAPI_MACHINE, machines)
    with playing(certificates, manage_elsewhere(world)) as site:
        done = states(site.run())
        assert done == {name: "done" if name in named else "blocked" for name in NODES}


def test_machines_that_may_not_be_read_count_as_elsewhere() -> None:
    nodes = [ClusterNode("w1", machine="m1"), ClusterNode("w2")]
    assert find_machines_elsewhere(nodes, None) == {"w1"} == find_machines_elsewhere(nodes, [Machine("x", "m")])
    assert find_machines_elsewhere(nodes, [Machine("x", "m1", node="w1")]) == frozenset()
