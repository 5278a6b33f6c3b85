# SPDX-License-Identifier: GPL-3.0-or-later

"""The Lease of a roll is lost before each of its writes in turn, to the API server and to BMCs: nothing is written
afterwards. Played BMCs and API server."""

from __future__ import annotations

import contextlib
import pathlib
import time
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims
from ansible_collections.linerate.rdma.plugins.module_utils._model.run import guard as guards
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import (
    BETWEEN,
    NAME,
    NAMESPACE,
    WORKING,
    Holder,
    LeaseHeld,
    LeaseLost,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.lease import Keeper
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.registries import Registries
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import May, set_one
from ansible_collections.linerate.rdma.tests.unit.bmc_server import PASSWORD, USER, Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource
from ansible_collections.linerate.rdma.tests.unit.roll_world import NODES, Server, Site, World, of, only, uuid_of
from lab.bmc.server import Fault

ROOT = pathlib.Path(__file__).resolve().parents[3]
SETTINGS = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings"
LEASE = path_of("Lease", NAMESPACE, NAME)
ME, OTHER = Holder("run-1", "control-1", "boot/ns/42/100"), Holder("run-2", "control-2", "boot2/ns/77/100")
#: of the roll of one node: noted, set, cordoned, two pods gone, noted again, reset, uncordoned
WRITES = ("note", "BIOS", "cordon", "evict", "evict", "note", "reset", "uncordon")


class LosingWorld(World):
    """Takes the Lease away when so many writes have been made.

    :ivar writes: all but those of the Lease
    :ivar lose_at: None for never
    :ivar taken: whether another run has it then, or nobody
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.lose_at: typing.Optional[int] = None
        self.taken = True
        self.serve("Lease", [], NAMESPACE)

    def wrote(self, what: str) -> None:
        self.writes.append(what)
        if len(self.writes) == self.lose_at:
            self.lose()

    def lose(self) -> None:
        lease = self.object(LEASE)
        assert lease is not None
        self.drop("Lease", lease, NAMESPACE)
        if self.taken:
            Keeper(self.client(self.url), OTHER, "node_roll", now=lambda: self.now).take(
                False, lambda _seconds: None, lambda _line: None, 0
            )

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        answer = super().write(method, path, body, dry_run)
        if "/leases" not in path:
            self.wrote(f"{method} {path}")
        return answer


class CountingServer(Server):
    def post(self, path: str, body: typing.Any) -> typing.Any:
        answer = super().post(path, body)
        typing.cast(LosingWorld, self.world).wrote(f"POST {self.node}")
        return answer

    def patch(self, path: str, body: typing.Any, match: typing.Optional[str]) -> typing.Any:
        answer = super().patch(path, body, match)
        typing.cast(LosingWorld, self.world).wrote(f"PATCH {self.node}")
        return answer


class HeldLease(typing.NamedTuple):
    site: Site
    world: LosingWorld
    keeper: Keeper


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def held(certificates: Certificates) -> typing.Iterator[HeldLease]:
    """A roll of worker-1, by the run that holds the Lease."""
    world = LosingWorld()
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        site = Site(
            certificates, {name: stack.enter_context(CountingServer(world, name, file)) for name in NODES}, world
        )
        only(site, "worker-1")
        world.add("web-1", "worker-1")
        world.add("web-2", "worker-1")
        keeper = Keeper(site.cluster, ME, "node_roll", now=lambda: world.now, pause=world.pause)
        keeper.take(False, lambda _seconds: None, lambda _line: None, 0)
        site.guard = Guard(keeper.ask)
        site.cluster = site.cluster.guarded(site.guard.check)
        yield HeldLease(site, world, keeper)


def test_each_write_of_the_roll_is_there_when_nothing_is_lost(held: HeldLease) -> None:
    assert of(held.site.run(), "worker-1").state == "done"
    assert len(held.world.writes) == len(WRITES) and held.world.did[-2:] == ["uncordon worker-1", "unnote worker-1"]


@pytest.mark.parametrize("taken", [True, False], ids=["taken by another run", "deleted"])
@pytest.mark.parametrize("number", range(len(WRITES)), ids=[f"{number} {what}" for number, what in enumerate(WRITES)])
def test_nothing_is_written_after_the_lease_is_lost(held: HeldLease, number: int, taken: bool) -> None:
    held.world.taken, held.world.lose_at = taken, number
    if number == 0:
        held.world.lose()
    with pytest.raises(LeaseLost):
        held.site.run()
    assert len(held.world.writes) == number, held.world.writes[number:]
    assert bool(held.site.resets()) == (number > WRITES.index("reset"))
    assert bool(held.site.servers["worker-1"].written) == (number > WRITES.index("BIOS"))


def test_a_lease_whose_holder_cannot_be_read_forbids_the_write(held: HeldLease) -> None:
    held.world.serve("Lease", [], NAMESPACE)
    held.world.stop()
    with pytest.raises(ApiError):
        held.keeper.ask()


@pytest.mark.parametrize("code", [503, 500])
def test_a_server_that_is_away_for_a_moment_is_waited_for_while_the_lease_lasts(
    held: HeldLease, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, fails = held.keeper._read_lease, [3]

    def away() -> typing.Any:
        if fails[0]:
            fails[0] -= 1
            raise ApiError(
                code, "ServiceUnavailable", "the server is currently unable to handle the request", "GET lease"
            )
        return look()

    monkeypatch.setattr(held.keeper, "_read_lease", away)
    assert held.keeper.ask() == WORKING - 3 and held.world.now == 3
    fails[0] = 1000
    with pytest.raises(ApiError):
        held.keeper.ask()
    assert WORKING - 3 <= held.world.now < WORKING, "not longer than the Lease lasts"


def test_a_right_that_is_missing_is_not_waited_for(held: HeldLease, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> typing.Any:
        raise ApiError(403, "Forbidden", "leases is forbidden", "GET lease")

    monkeypatch.setattr(held.keeper, "_read_lease", forbidden)
    with pytest.raises(ApiError):
        held.keeper.ask()
    assert held.world.now == 0


def test_what_is_left_of_the_lease_is_what_a_write_may_take(held: HeldLease) -> None:
    assert held.keeper.ask() == WORKING
    held.world.now = 10.0
    assert held.keeper.ask() == WORKING - 10
    held.world.now = 39.0
    assert held.keeper.ask() == WORKING, "it is renewed"


def test_a_bmc_that_does_not_answer_is_given_up_before_the_lease_runs_out(
    held: HeldLease, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "LEAST", 0.0)
    server = held.site.servers["worker-1"]
    server.faults[SETTINGS] = Fault(drip=True, method="PATCH")
    may, begin = May(Claims({"worker-1": uuid_of("worker-1")}), Guard(lambda: 0.3)), time.monotonic()
    with pytest.raises(BmcError) as caught:
        set_one(
            Bmc("worker-1", "localhost", server.port, USER, PASSWORD),
            find_wanted({"sriov": True}),
            _trust(certificates),
            Registries(),
            may,
            seconds=30,
        )
    assert caught.value.cause == "timeout" and "Lease" in caught.value.what and time.monotonic() - begin < 30


def test_a_write_that_is_put_off_asks_again(held: HeldLease, certificates: Certificates) -> None:
    """A busy BMC says when to come again; the Lease may be gone by then."""
    server, asked = held.site.servers["worker-1"], typing.cast(list[float], [])
    server.faults[SETTINGS] = Fault(times=1, status=503, method="PATCH", headers=(("Retry-After", "0"),))

    def ask() -> float:
        asked.append(1.0)
        if len(asked) == 2:
            raise LeaseLost(ME, None)
        return 60.0

    may = May(Claims({"worker-1": uuid_of("worker-1")}), Guard(ask))
    with pytest.raises(LeaseLost):
        set_one(
            Bmc("worker-1", "localhost", server.port, USER, PASSWORD),
            find_wanted({"sriov": True}),
            _trust(certificates),
            Registries(),
            may,
            seconds=30,
        )
    assert len(asked) == 2 and server.written == []


def test_too_little_of_the_lease_begins_nothing() -> None:
    with pytest.raises(RdmaError, match="the Lease of this run is certain to last for only"):
        Guard(lambda: guards.LEAST - 0.5).seconds()


# What is written on nodes: their modules reach no API server, so that the controller asks right before


def test_a_lease_that_lasts_is_only_looked_at(held: HeldLease) -> None:
    held.keeper.renew(BETWEEN)
    before = held.world.object(LEASE)
    held.keeper.assure(True, 600)
    assert held.world.object(LEASE) == before
    held.keeper.renew(WORKING)
    held.keeper.assure(True, 600)
    after = held.world.object(LEASE)
    assert after is not None and after["spec"]["leaseDurationSeconds"] == BETWEEN, (
        "one that would run out meanwhile is renewed"
    )


@pytest.mark.parametrize(
    ("taken", "continues", "error"),
    [(True, True, LeaseLost), (True, False, LeaseHeld), (False, True, LeaseLost), (False, False, LeaseLost)],
)
def test_a_lease_that_is_not_this_run_s_forbids_what_is_written_on_nodes(
    held: HeldLease, taken: bool, continues: bool, error: type[RdmaError]
) -> None:
    held.world.taken = taken
    held.world.lose()
    with pytest.raises(error):
        held.keeper.assure(continues, 600)


def _tasks(found: typing.Any) -> typing.Iterator[list[dict[str, typing.Any]]]:
    """Each list of tasks, those in blocks as well."""
    if isinstance(found, list):
        yield found
        for task in found:
            for part in ("block", "rescue", "always"):
                yield from _tasks(task.get(part) if isinstance(task, dict) else None)


def test_each_task_that_writes_on_a_node_asks_for_the_lease() -> None:
    """In the process that runs the module. No task of another collection runs on a node: its answers would not be heard
    by on_node."""
    writers = {
        "linerate.rdma.kernel_arguments",
        "linerate.rdma.kernel_settings",
        "ansible.builtin.copy",
        "ansible.builtin.file",
        "ansible.builtin.systemd_service",
    }
    seen = set()
    for path in (
        path
        for name in ("platform", "host", "teardown", "tuning")
        for path in (ROOT / "roles" / name / "tasks").glob("*.yml")
    ):
        for tasks in _tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for task in tasks:
                given = task.get("linerate.rdma.on_node") or {}
                if task.get("delegate_to") != "localhost":
                    assert not writers & {*task}, (
                        f"{path.relative_to(ROOT)}: {task['name']}: give it to linerate.rdma.on_node"
                    )
                    assert given.get("module") not in writers or given.get("writes") is True, (
                        f"{path.relative_to(ROOT)}: {task['name']}"
                    )
                    seen |= writers & {given.get("module")}
                role = (task.get("ansible.builtin.include_role") or {}).get("name", "linerate.rdma.")
                assert role.startswith("linerate.rdma."), f"{path.relative_to(ROOT)}: {task['name']}"
    assert seen == writers


def test_helm_and_kubernetes_core_write_right_behind_a_look_at_the_lease() -> None:
    seen = 0
    for name in ("operators", "teardown"):
        for path in (ROOT / "roles" / name / "tasks").glob("*.yml"):
            for tasks in _tasks(yaml.safe_load(path.read_text(encoding="utf-8"))):
                looked = False
                for task in tasks:
                    looked = looked or (task.get("linerate.rdma.cluster_lease") or {}).get("state") == "confirmed"
                    argv = str((task.get("ansible.builtin.command") or {}).get("argv", ""))
                    if "kubernetes.core.k8s" in task or "kubernetes.core.helm" in task or "'rollback'" in argv:
                        seen += 1
                        assert looked, f"{path.relative_to(ROOT)}: {task['name']}"
                        # what takes back what was cut off deletes its records at once
                        looked = "'rollback'" in argv
    assert seen == 6


def _trust(certificates: Certificates) -> Trust:
    return Trust(True, str(certificates.authority))
