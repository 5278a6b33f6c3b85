# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll of nodes must not do to a cluster that does not keep still: real BMCs, a real client of a played API server, a clock of the test's own."""

from __future__ import annotations

import contextlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import DrainOptions
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError, Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.patience import PatientCluster, passes
from ansible_collections.linerate.rdma.plugins.module_utils._run.drain import Drain
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_roll import Limits
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi, Resource
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, REBOOT, Server, Site, World, of, only, states

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
    original = cluster.list

    def reborn(kind: str, *arguments: typing.Any, **more: typing.Any) -> typing.Any:
        found = original(kind, *arguments, **more)
        world.add("db-0", "worker-2", owner="StatefulSet", uid="new")
        return found

    cluster.list = reborn  # type: ignore[method-assign, assignment]
    did: typing.List[str] = []
    Drain(cluster, lambda: world.now, lambda: world.pause(5), lambda _line: None, 60, DrainOptions()).work("worker-1", did)
    left = world.pod("db-0")
    assert left is not None and left["metadata"]["uid"] == "new" and did == [], "it runs on worker-2"


def test_each_eviction_names_the_uid_that_was_looked_at(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1", uid="of this pod")
    original, asked = site.world.write, []

    def write(method: str, path: str, body: Resource, dry_run: bool = False) -> typing.Tuple[int, Resource]:
        if path.endswith("/eviction"):
            asked.append(body["deleteOptions"]["preconditions"])
        return original(method, path, body, dry_run)

    monkeypatch.setattr(site.world, "write", write)
    assert of(site.run(), "worker-1").state == "done" and asked == [{"uid": "of this pod"}]


# What stops a drain


@pytest.mark.parametrize(
    ("name", "more", "options", "words"),
    [
        ("cache", {"volumes": SCRATCH}, DrainOptions(delete_empty_dir_data=True), "rdma_cluster.drain.delete_empty_dir_data"),
        ("pet", {"owner": ""}, DrainOptions(force=True), "rdma_cluster.drain.force"),
    ],
)
def test_a_pod_that_stops_kubectl_drain_stops_ours_in_the_plan(
    site: Site, name: str, more: typing.Dict[str, typing.Any], options: DrainOptions, words: str
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
    assert first.state == "failed" and "jobs/cache" in first.why and "delete_empty_dir_data" in first.remedy
    assert not any(what.startswith(("evict", "reset")) for what in site.world.did) and not site.world.cordoned("worker-1")


def test_pods_that_stay_and_those_of_a_run_stop_nothing(site: Site) -> None:
    only(site, "worker-1")
    ours = {"app.kubernetes.io/managed-by": "linerate.rdma", "linerate.rdma/run": "x"}
    site.world.add("daemon", "worker-1", owner="DaemonSet", volumes=SCRATCH)
    site.world.add("measures", "worker-1", owner="", labels=ours, volumes=SCRATCH)
    assert of(site.run(), "worker-1").state == "done" and "evict measures" in site.world.did and "evict daemon" not in site.world.did


# An API server that is away


class Away:
    """Refuses requests for a while.

    :ivar where: part of the method and path that it does not serve
    :ivar answers: what it says in place of an answer, one after the other
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.answers, self.met = world, typing.cast(typing.List[typing.Tuple[int, str]], []), 0
        original, self.where = world.write, ""

        def write(method: str, path: str, body: Resource, dry_run: bool = False) -> typing.Tuple[int, Resource]:
            if self.answers and self.where in f"{method} {path}":
                self.met += 1
                code, reason = self.answers.pop(0)
                return code, {"kind": "Status", "code": code, "reason": reason, "message": "the server is currently unable to handle the request"}
            return original(method, path, body, dry_run)

        monkeypatch.setattr(world, "write", write)


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
@pytest.mark.parametrize("where", ["PATCH /api/v1/nodes/worker-1", "POST"])
def test_one_passing_failure_at_a_step_ends_no_roll(site: Site, monkeypatch: pytest.MonkeyPatch, code: int, where: str) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    away = Away(site.world, monkeypatch)
    away.where, away.answers = where, [(code, "ServiceUnavailable")] * 3
    done = site.run()
    assert away.met == 3 and of(done, "worker-1").state == "done", done
    assert site.resets() == {"worker-1": 1} and site.world.did.count("evict web-1") == 1
    assert any("the API server is away" in line for line in site.said) and any("answers again" in line for line in site.said)


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
    assert states(done) == {"worker-1": "done", "worker-2": "done", "worker-3": "nothing"} and site.resets() == {"worker-1": 1, "worker-2": 1}


def test_one_that_stays_away_is_an_error_with_its_cause_after_the_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    only(site, "worker-1")
    site.limits = Limits(drain=60, back=300, settle=10, grace=30, api=90)
    away = Away(site.world, monkeypatch)
    away.where, away.answers = "PATCH", [(503, "ServiceUnavailable")] * 10_000
    begin = site.world.now
    done = site.run()
    first = of(done, "worker-1")
    assert first.state == "failed" and "unable to handle the request" in first.why and "for 90 s" in first.why and site.resets() == {}
    # the step itself, and the way back
    assert 90 <= site.world.now - begin <= 200


def test_a_pause_is_as_long_as_the_server_asks_for_and_ends_with_the_limit() -> None:
    now, pauses = [0.0], typing.cast(typing.List[float], [])

    class Busy(Cluster):
        def __init__(self) -> None:
            super().__init__(None)

        def _json(self, *_arguments: typing.Any, **_more: typing.Any) -> Resource:
            raise ApiError(429, "TooManyRequests", "too many requests", "GET /", retry_after=9.0)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    with pytest.raises(ApiError, match=r"too many requests \(the same for 20 s\)"):
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
        (ApiError(429, "TooManyRequests", "x", "", causes=("DisruptionBudget",)), "post", "/api/v1/namespaces/a/pods/b/eviction", False),
        (ApiError(500, "InternalError", "This pod has more than one PodDisruptionBudget", ""), "post", "/api/v1/namespaces/a/pods/b/eviction", False),
        (ApiError(0, "Unreachable", "certificate verify failed: CERTIFICATE_VERIFY_FAILED", ""), "get", "/api/v1/nodes", False),
        (ApiError(403, "Forbidden", "x", ""), "get", "/api/v1/nodes", False),
        (ApiError(409, "Conflict", "x", ""), "patch", "/api/v1/nodes/a", False),
    ],
)
def test_what_is_asked_again(error: ApiError, method: str, path: str, again: bool) -> None:
    assert passes(error, method, path) is again
