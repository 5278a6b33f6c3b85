# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time: who may take the Lease, who waits, who is refused, and that nothing is written without it. The API
server is played over HTTP."""

from __future__ import annotations

import datetime
import functools
import json
import os
import subprocess
import sys
import threading
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import (
    BETWEEN,
    NAME,
    NAMESPACE,
    RENEWAL,
    SKEW,
    WAIT,
    WORKING,
    Holder,
    Lease,
    LeaseHeld,
    LeaseLost,
    decide_taking,
    describe_holder,
    take_lease,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import process
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes import lease as parse
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster import lease as render
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.lease import Keeper
from ansible_collections.linerate.rdma.tests.unit.fake_api import FakeApi

NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, tzinfo=datetime.timezone.utc)
PATH = path_of("Lease", NAMESPACE, NAME)
ONE = Holder("run-1", "control-1", "boot/ns/42/100")
TWO = Holder("run-2", "control-2", "boot2/ns/77/100")


def at(seconds: float) -> datetime.datetime:
    return NOON + datetime.timedelta(seconds=seconds)


def held(seconds: int = WORKING, renewed: int = 0, holder: Holder = ONE) -> Lease:
    return Lease(holder, at(-600), at(renewed), seconds, 3, "rdma_bandwidth", "uid-1", "7")


@pytest.mark.parametrize(
    ("lease", "me", "unchanged", "alive", "verdict"),
    [
        (None, TWO, 0, None, "free"),
        (held(holder=Holder("")), TWO, 0, None, "free"),
        (held(), ONE, 10000, None, "mine"),
        (held(), TWO, WORKING, None, "held"),
        (held(), TWO, WORKING + SKEW, None, "held"),
        (held(), TWO, WORKING + SKEW + 1, None, "expired"),
        (held(BETWEEN), TWO, WORKING + SKEW + 1, None, "held"),
        # a process that lives does not make a silent holder speak, and one that is gone needs no waiting
        (held(), TWO, WORKING + SKEW + 1, True, "expired"),
        (held(), TWO, 1, False, "dead"),
        (held(), TWO, 1, True, "held"),
        # the same run goes on by another ansible-playbook: at once, but not beside one that still lives
        (held(), Holder("run-1", "control-1", "boot/ns/43/200"), 1, None, "resumed"),
        (held(), Holder("run-1", "control-1", "boot/ns/43/200"), 1, False, "dead"),
        (held(), Holder("run-1", "control-1", "boot/ns/43/200"), 1, True, "held"),
    ],
)
def test_who_may_take_it(
    lease: typing.Optional[Lease], me: Holder, unchanged: float, alive: typing.Optional[bool], verdict: str
) -> None:
    assert decide_taking(lease, me, unchanged, alive) == verdict


def test_a_new_holder_begins_and_the_same_one_renews() -> None:
    new = take_lease(held(), TWO, NOON, WORKING, "vf_pods")
    assert (new.holder, new.since, new.renewed, new.transitions, new.version) == (TWO, NOON, NOON, 4, "7")
    again = take_lease(new, TWO, at(15), BETWEEN, "custom_resources")
    assert (again.since, again.renewed, again.transitions, again.seconds, again.doing) == (
        NOON,
        at(15),
        4,
        BETWEEN,
        "custom_resources",
    )


def test_it_reads_back_as_it_was_written() -> None:
    for lease in (
        held(),
        take_lease(None, TWO, at(0.25), BETWEEN, "vf_pods"),
        held(holder=Holder("custom_resources-a1b2c3")),
    ):
        assert parse.parse_lease(json.loads(json.dumps(render.render_lease(lease)))) == lease
    assert render.render_lease(held())["spec"] == {
        "holderIdentity": "run-1@control-1",
        "leaseDurationSeconds": 60,
        "leaseTransitions": 3,
        "acquireTime": "2026-01-02T11:50:00.000000Z",
        "renewTime": "2026-01-02T12:00:00.000000Z",
    }


def test_what_nobody_of_us_wrote_is_never_taken_for_free() -> None:
    # as client-go's leader election writes it, and with what no field of it may be
    spec = {
        "holderIdentity": "host_6f1d",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-01-02T12:00:00Z",
        "acquireTime": "soon",
        "leaseTransitions": "x",
    }
    lease = parse.parse_lease({"metadata": {"uid": "u"}, "spec": spec})
    assert (lease.holder, lease.seconds, lease.renewed, lease.since, lease.transitions) == (
        Holder("host_6f1d"),
        15,
        NOON,
        None,
        0,
    )
    assert parse.parse_lease({"spec": {"holderIdentity": "x", "leaseDurationSeconds": -1}}).seconds == BETWEEN
    # as client-go gives it back
    assert (
        parse.parse_lease(
            {"metadata": {"annotations": {parse.RUN: "run-1"}}, "spec": {"holderIdentity": ""}}
        ).holder.run
        == ""
    )
    assert parse.parse_lease({}).holder.run == ""


def test_long_names_in_a_lease_are_cut() -> None:
    annotations = dict.fromkeys((parse.RUN, parse.HOST, parse.PROCESS, parse.DOING), f"x\x1b[2J{'A' * 200000}")
    for metadata in ({"annotations": annotations}, {}):
        lease = parse.parse_lease({"metadata": metadata, "spec": {"holderIdentity": "B" * 200_000}})
        said = str(LeaseHeld(lease, NOON))
        assert len(said) < 3000 and "\x1b" not in said and "200" in said


def test_dates_of_answers() -> None:
    assert parse.http_date("Fri, 02 Jan 2026 12:00:00 GMT") == NOON
    assert [parse.http_date(text) for text in ("", "yesterday", "Fri, 99 Foo 2026")] == [None] * 3


def test_a_refusal_names_the_holder_and_the_way_out() -> None:
    text = str(LeaseHeld(held(), at(12)))
    assert text == (
        "run run-1 on host control-1 (process 42), since 2026-01-02 11:50:00 UTC, last seen 12 s"
        " ago in rdma_bandwidth, holds this cluster, so this run did not change the cluster. Wait until that"
        " run ends, or end that run on its host. If that run is dead, its Lease expires within"
        " 58 s, and the next run takes it over once it has seen it unchanged for 70 s. To"
        " release the Lease immediately, run: kubectl delete lease linerate-rdma -n"
        " default"
    )
    assert "60 s after its last renewal" in str(LeaseHeld(held(), None))
    assert describe_holder(Lease(Holder("x")), NOON) == "run x"
    lost = str(LeaseLost(TWO, held(), at(12)))
    assert (
        "run run-2 lost its Lease on this cluster" in lost
        and "run run-1 on host control-1" in lost
        and "Rerun all stages" in lost
    )
    assert "no run holds the Lease now" in str(LeaseLost(TWO, None))


class Clock:
    """Of this machine, and with it that of the API server: ``pause`` lets both go on."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.now = 0.0
        self.pauses: list[float] = []
        self.set()

    def __call__(self) -> float:
        return self.now

    def set(self) -> None:
        if not isinstance(self.api.date, str):
            self.api.date = at(self.now).timestamp()

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        self.set()


@pytest.fixture
def api() -> typing.Iterator[FakeApi]:
    server = FakeApi()
    server.serve("Lease", [], NAMESPACE)
    server.serve("Pod", [], "test")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def clock(api: FakeApi) -> Clock:
    return Clock(api)


def keeper(
    api: FakeApi,
    clock: Clock,
    me: Holder = ONE,
    alive: typing.Callable[..., typing.Any] = lambda identity: None,
    **rest: typing.Callable[..., typing.Any],
) -> Keeper:
    return Keeper(api.client(api.url), me, "rdma_bandwidth", clock, alive, **rest)


def take(kept: Keeper, clock: Clock, continues: bool = False, said: typing.Optional[list[str]] = None) -> None:
    kept.take(continues, clock.pause, (said if said is not None else []).append, WAIT)


def seen(api: FakeApi) -> typing.Optional[tuple[str, int, int]]:
    found = api.object(PATH)
    return (
        (found["spec"]["holderIdentity"], found["spec"]["leaseDurationSeconds"], found["spec"]["leaseTransitions"])
        if found
        else None
    )


def spec(api: FakeApi) -> tuple[str, int, int]:
    found = seen(api)
    assert found is not None
    return found


def test_a_run_takes_it_keeps_it_and_gives_it_back(api: FakeApi, clock: Clock) -> None:
    mine = keeper(api, clock)
    take(mine, clock)
    assert seen(api) == ("run-1@control-1", WORKING, 0)
    with mine.working(stays=True):
        mine.ask()
    assert seen(api) == ("run-1@control-1", BETWEEN, 0)
    # the next module of the run
    clock.pause(BETWEEN - 1)
    take(keeper(api, clock), clock, continues=True)
    assert seen(api) == ("run-1@control-1", WORKING, 0)
    assert keeper(api, clock, TWO).release() is False
    assert keeper(api, clock).release() is True
    assert (seen(api), keeper(api, clock).release()) == (None, False)


def test_a_module_outside_of_a_run_holds_it_while_it_works(api: FakeApi, clock: Clock) -> None:
    mine = keeper(api, clock)
    take(mine, clock)
    with mine.working(stays=False):
        assert seen(api)
    assert seen(api) is None


def test_a_second_run_is_refused_by_name_while_the_first_one_renews(api: FakeApi, clock: Clock) -> None:
    first = keeper(api, clock)
    take(first, clock)

    def pause(seconds: float) -> None:
        clock.pause(seconds)
        first.renew(WORKING)

    said: list[str] = []
    with pytest.raises(LeaseHeld, match="run run-1 on host control-1"):
        keeper(api, clock, TWO).take(False, pause, said.append, WAIT)
    assert WAIT <= clock.now < WAIT + 10
    assert len(said) == 1 and "waiting at most 90 s: run run-1" in said[0]
    assert spec(api)[0] == "run-1@control-1"


def test_a_second_run_gets_it_as_soon_as_the_first_one_ends(api: FakeApi, clock: Clock) -> None:
    first = keeper(api, clock)
    take(first, clock)

    def pause(seconds: float) -> None:
        clock.pause(seconds)
        if clock.now >= 20:
            first.release()

    keeper(api, clock, TWO).take(False, pause, lambda line: None, WAIT)
    assert (clock.now, spec(api)[0]) == (20, "run-2@control-2")


@pytest.mark.parametrize("date", [None, ""])
def test_a_dead_run_is_taken_over_after_its_time(api: FakeApi, clock: Clock, date: typing.Optional[str]) -> None:
    """Also where no answer has a date: by how long it was seen unchanged."""
    take(keeper(api, clock), clock)
    api.date = date if date is not None else api.date
    take(keeper(api, clock, TWO), clock)
    assert WORKING < clock.now <= WAIT
    assert seen(api) == ("run-2@control-2", WORKING, 1)


def test_a_run_that_died_between_two_modules_is_watched_for_its_whole_time_with_progress(
    api: FakeApi, clock: Clock
) -> None:
    mine = keeper(api, clock)
    take(mine, clock)
    with mine.working(stays=True):
        pass
    clock.pause(BETWEEN + SKEW + 1)
    said: list[str] = []
    begin = clock.now
    take(keeper(api, clock, TWO), clock, said=said)
    assert BETWEEN + SKEW < clock.now - begin <= BETWEEN + SKEW + 10
    assert spec(api)[0] == "run-2@control-2"
    assert len(said) == 16 and "has expired; it is taken over in 910 s" in said[0]
    assert "in 850 s" in said[1] and "kubectl delete lease linerate-rdma -n default" in said[1]


@pytest.mark.parametrize("seconds", [WORKING, BETWEEN])
def test_a_live_lease_is_not_taken_by_an_api_server_whose_clock_is_ahead(
    api: FakeApi, clock: Clock, seconds: int
) -> None:
    """The second run reads from an API server whose clock is two hours ahead of the one that the first run uses."""
    first = keeper(api, clock)
    take(first, clock)
    first.renew(seconds)
    begin = clock.now

    def pause(wait: float) -> None:
        clock.pause(wait)
        if (clock.now - begin) % (RENEWAL if seconds == WORKING else 600) == 0:
            first.renew(seconds)
        api.date = at(clock.now + 7200).timestamp()

    api.date = at(clock.now + 7200).timestamp()
    with pytest.raises(LeaseHeld, match="run run-1"):
        keeper(api, clock, TWO).take(False, pause, lambda line: None, WAIT)
    assert spec(api)[0] == "run-1@control-1" and clock.now - begin <= 700
    first.ask()


def test_expired_lease_of_another_program_is_refused_if_it_is_longer_than_those_of_runs(
    api: FakeApi, clock: Clock
) -> None:
    first = keeper(api, clock)
    take(first, clock)
    first.renew(10**6)
    clock.pause(2 * 10**6)
    begin = clock.now
    with pytest.raises(LeaseHeld, match="kubectl delete lease"):
        take(keeper(api, clock, TWO), clock)
    assert clock.now - begin <= WAIT


def test_hold_for_a_write_counts_by_the_clock_of_the_holder(api: FakeApi, clock: Clock) -> None:
    """An API server whose clock is behind would say that the Lease lasts for long."""
    mine = keeper(api, clock)
    take(mine, clock)
    mine.renew(BETWEEN)
    clock.now += 600
    api.date = at(30).timestamp()
    mine.assure(True, 240)
    assert api.requests[f"put {PATH}"] == 1
    mine.assure(True, 720)
    assert api.requests[f"put {PATH}"] == 2
    mine.assure(True, 720)
    assert api.requests[f"put {PATH}"] == 2


def test_run_that_lost_its_lease_to_a_dead_run_does_not_wait(api: FakeApi, clock: Clock) -> None:
    take(keeper(api, clock, TWO), clock)
    clock.pause(1000)
    clock.pauses.clear()
    with pytest.raises(LeaseLost):
        take(keeper(api, clock), clock, continues=True)
    assert clock.pauses == []


def test_clocks_of_the_hosts_do_not_matter(api: FakeApi, clock: Clock) -> None:
    """The first host's clock is a day behind, the second one's a day ahead: neither is read."""
    take(keeper(api, clock), clock)
    other = Clock(api)
    other.now, other.set = 86400.0, lambda: None  # type: ignore[method-assign]
    with pytest.raises(LeaseHeld):
        keeper(api, other, TWO).take(
            False, lambda seconds: setattr(other, "now", other.now + 50), lambda line: None, wait=50
        )


def test_a_run_of_this_machine_that_was_killed_is_taken_over_at_once(api: FakeApi, clock: Clock) -> None:
    take(keeper(api, clock), clock)
    take(keeper(api, clock, TWO, alive=lambda identity: False if identity == ONE.process else None), clock)
    assert (clock.pauses, spec(api)[0]) == ([], "run-2@control-2")


def test_the_run_that_lost_it_writes_nothing_more(api: FakeApi, clock: Clock) -> None:
    first = keeper(api, clock)
    take(first, clock)
    cluster = api.client(api.url).guarded(lambda: typing.cast(None, first.ask()))
    cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "test"}})
    # it hangs, and another run takes over
    clock.pause(WORKING + SKEW + 1)
    take(keeper(api, clock, TWO), clock)
    writes: list[typing.Callable[[], typing.Any]] = [
        lambda: cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "test"}}),
        lambda: cluster.delete("Pod", "test", "a", only={"uid": "1"}),
        lambda: cluster.patch("Pod", "test", "a", {}),
        lambda: cluster.replace({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "test"}}),
        lambda: cluster.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "test"}}, "us", dry_run=False
        ),
    ]
    for write in writes:
        with pytest.raises(LeaseLost, match="run run-2 on host control-2"):
            write()
    # it may still look
    assert [item["metadata"]["name"] for item in cluster.list("Pod", "test").items] == ["a"]
    assert not any(name.startswith(("delete", "put /api/v1", "patch")) for name in api.requests)
    # and it takes nothing back that is not its own any more
    assert first.release() is False and spec(api)[0] == "run-2@control-2"


def test_what_it_says_after_it_lost_the_lease_is_but_the_consequence(api: FakeApi, clock: Clock) -> None:
    first = keeper(api, clock)
    take(first, clock)

    def lose() -> None:
        api.write("DELETE", PATH, {})
        take(keeper(api, clock, TWO), clock)

    with pytest.raises(LeaseLost) as caught, first.working(stays=True):
        lose()
        raise ApiError(404, "NotFound", "the pod was evicted or deleted", "GET")
    assert isinstance(caught.value.__cause__, ApiError)
    # likewise of one that saw nothing amiss
    again = keeper(api, clock, Holder("run-3"))
    api.write("DELETE", PATH, {})
    take(again, clock)
    with pytest.raises(LeaseLost), again.working(stays=True):
        lose()
    assert spec(api)[0] == "run-2@control-2"


def test_a_run_whose_hold_was_another_one_s_in_between_does_not_go_on(api: FakeApi, clock: Clock) -> None:
    first = keeper(api, clock)
    take(first, clock)
    clock.pause(1000)
    second = keeper(api, clock, TWO)
    take(second, clock)
    second.release()
    with pytest.raises(
        LeaseLost, match="no run holds the Lease now: a different run acquired and released it, or a user ran"
    ):
        take(keeper(api, clock), clock, continues=True)
    # nobody had it: nothing is lost
    take(keeper(api, clock), clock)
    clock.pause(1000)
    take(keeper(api, clock), clock, continues=True)


Look = typing.Callable[[], tuple[typing.Optional[Lease], typing.Optional[datetime.datetime]]]


def late(look: Look, raced: list[bool], act: typing.Callable[[], None]) -> Look:
    """What looks, and is overtaken by another one, once."""

    def overtaken() -> tuple[typing.Optional[Lease], typing.Optional[datetime.datetime]]:
        found = look()
        if not raced:
            raced.append(True)
            act()
        return found

    return overtaken


def test_of_two_that_want_it_the_server_takes_one(api: FakeApi, clock: Clock) -> None:
    """Another one writes between the look and the write: first when there is none, then when the old one is dead."""
    for expected in ("post", "put"):
        mine, other = keeper(api, clock, TWO), keeper(api, clock, Holder("run-3", "control-3"))
        raced: list[bool] = []
        race = functools.partial(take, other, clock)
        mine._read_lease = late(mine._read_lease, raced, race)  # type: ignore[method-assign]
        with pytest.raises(LeaseHeld, match="run-3 on host control-3"):
            mine.take(False, clock.pause, lambda line: None, wait=0)
        assert raced and any(name.startswith(expected) for name in api.requests)
        clock.pause(WORKING + SKEW + 1)


def test_a_server_that_is_away_is_asked_again_and_nothing_is_written_meanwhile(api: FakeApi, clock: Clock) -> None:
    mine = keeper(api, clock, pause=clock.pause)
    take(mine, clock)
    mine.ask()
    api.stop()
    answers = iter([False, False, True])
    mine.keep(lambda seconds: next(answers))
    with pytest.raises(ApiError, match="the API server did not respond"):
        mine.ask()
    api.start()
    mine.ask()
    assert spec(api)[0] == "run-1@control-1"


def test_a_lease_that_another_run_has_taken_meanwhile_allows_no_write_any_more(api: FakeApi, clock: Clock) -> None:
    """Not even in the first seconds after a renewal: the other run may change the cluster now."""
    mine, other = keeper(api, clock), keeper(api, clock, TWO)
    take(mine, clock)
    mine.ask()
    api.write("DELETE", PATH, {})
    take(other, clock)
    with pytest.raises(LeaseLost, match="run-2"):
        mine.ask()
    other.ask()


def test_the_thread_renews_until_it_is_over_or_lost(api: FakeApi, clock: Clock) -> None:
    mine = keeper(api, clock)
    take(mine, clock)
    waits = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        clock.pause(seconds)
        if len(waits) == 3:
            api.write("DELETE", PATH, {})
        return False

    mine.keep(wait)
    assert waits == [RENEWAL] * 3
    assert api.requests[f"put {PATH}"] == 2
    with pytest.raises(
        LeaseLost, match="no run holds the Lease now: a different run acquired and released it, or a user ran"
    ):
        mine.ask()


def test_a_module_works_under_a_thread_that_renews(api: FakeApi, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.lease.RENEWAL", 0.001)
    mine = keeper(api, clock)
    take(mine, clock)
    renewed, put = threading.Event(), api.write

    def write(
        method: str, path: str, body: dict[str, typing.Any], dry_run: bool = False
    ) -> tuple[int, dict[str, typing.Any]]:
        renewed.set()
        return put(method, path, body, dry_run)

    api.write = write  # type: ignore[method-assign]
    with mine.working(stays=True):
        assert renewed.wait(10)
    assert spec(api)[1] == BETWEEN


@pytest.mark.parametrize(
    ("error", "left"), [(KeyboardInterrupt, None), (SystemExit, BETWEEN), (ApiError(500, "", "x", "y"), BETWEEN)]
)
def test_an_interrupted_module_frees_the_cluster_and_a_failed_one_does_not(
    api: FakeApi,
    clock: Clock,
    error: typing.Union[ApiError, type[KeyboardInterrupt], type[SystemExit]],
    left: typing.Optional[int],
) -> None:
    mine = keeper(api, clock)
    take(mine, clock)
    with pytest.raises(error if isinstance(error, type) else type(error)), mine.working(stays=True):
        raise error
    assert (seen(api) or (None, None))[1] == left


def test_a_module_whose_ansible_playbook_is_gone_ends(api: FakeApi, clock: Clock) -> None:
    ended = []
    mine = keeper(api, clock, alive=lambda identity: False, end=lambda: ended.append(True))
    take(mine, clock)
    mine.keep(lambda seconds: False)
    assert ended == [True] and api.requests[f"put {PATH}"] == 0


def test_a_refused_right_is_no_wait(api: FakeApi, clock: Clock) -> None:
    def refuse(
        method: str, path: str, body: dict[str, typing.Any], dry_run: bool = False
    ) -> tuple[int, dict[str, typing.Any]]:
        text = 'User "x" cannot create resource "leases" in API group "coordination.k8s.io"'
        return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": text}

    api.write = refuse  # type: ignore[method-assign]
    with pytest.raises(
        ApiError,
        match=r"As an admin of the cluster, run kubectl apply -f docs/rbac/change\.yml",
    ):
        take(keeper(api, clock), clock)
    assert clock.pauses == []


def test_processes_of_this_machine() -> None:
    mine = process.read_identity(os.getpid())
    assert process.is_alive(mine) is True
    boot, namespace, _pid, start = mine.split("/")
    assert process.is_alive("/".join((boot, namespace, str(os.getpid()), "1"))) is False, "its number was used again"
    assert process.is_alive("/".join(("other", namespace, str(os.getpid()), start))) is None, (
        "another machine, or another boot of it"
    )
    assert process.is_alive("/".join((boot, "1", str(os.getpid()), start))) is None, "another container"
    for number in ("²", "1" * 5000, "-1", ""):
        assert process.is_alive("/".join((boot, namespace, number, start))) is None, "no number"
    assert [
        process.is_alive(name)
        for name in ("", "///", "a/b", f"{boot}/{namespace}/x/1", f"{boot}/{namespace}/{10**30}/1")
    ] == [None] * 5
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other = process.read_identity(child.pid)
        assert process.is_alive(other) is True
        child.kill()
        # also before anybody has waited for it
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_alive(other) is False
    assert process.is_alive(other) is False
    assert process.read_identity(1, "/nowhere") == "//1/" and process.is_alive("//1/") is None
