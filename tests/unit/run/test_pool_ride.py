# SPDX-License-Identifier: GPL-3.0-or-later

"""BIOS and MachineConfigs with one reboot of each node, by the machine config operator: real BMCs, a real client of an
API server, and an operator that renders, drains and reboots one node after the other. Killed at each point, held by
others, degraded: no BMC ever resets a node beside it.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import threading
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.roll import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
    NodeRoll,
    prove_outcomes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import (
    KernelArguments,
    ObservedKernelArguments,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import path_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.machine_config import PAUSED_ANNOTATION
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_sources import look_at_kernel
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan, describe_step
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.turns import choose_turn
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.host import render_host_configs
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import node_roll
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    Killed,
    Server,
    Site,
    World,
    kill_at_once,
    merged,
    of,
    only,
    ready,
    states,
)
from lab.bmc.server import Fault

WANTED = ("iommu=pt",)
HOSTS = render_host_configs(HostNeeds(kernel_arguments=WANTED))
CONFIG = "99-worker-linerate-kernel-arguments"
ANNOTATIONS = "machineconfiguration.openshift.io/"
POOLS, CONFIGS = path_of("MachineConfigPool"), path_of("MachineConfig")
FIRST = "rendered-0"
BY_OPERATOR = "reset by the machine config operator (MachineConfigPool worker)"


class Operated(World):
    """A cluster with a machine config operator, whose pool ``worker`` has all nodes but those of no pool. Each pause is
    a step of its.

    :ivar servers: BMCs of the nodes, whose BIOS takes at any reboot what waits in it
    :ivar reboots: how often the operator rebooted each node
    :ivar sticks: nodes that it does not get any further with
    :ivar soft: it brings MachineConfigs to its nodes without a reboot
    """

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, Server] = {}
        self.reboots: dict[str, int] = {}
        self.sticks: tuple[str, ...] = ()
        self.soft = False
        self.serve("MachineConfig", [])
        self.serve("MachineConfigPool", [pool()])
        for name in NODES:
            self.join(name)

    def join(self, name: str, config: str = FIRST) -> None:
        self.at(name, config, config, "Done")

    def at(self, name: str, has: str, wanted: str, state: str) -> None:
        told = {
            f"{ANNOTATIONS}{key}": value
            for key, value in (("currentConfig", has), ("desiredConfig", wanted), ("state", state))
        }
        self.put("Node", merged(self.seen(name), {"metadata": {"labels": {"role": "worker"}, "annotations": told}}))

    @property
    def pool(self) -> Resource:
        found = self.object(f"{POOLS}/worker")
        assert found is not None
        return found

    def change(self, change: Resource) -> None:
        """Somebody changes the pool."""
        self.put("MachineConfigPool", merged(self.pool, change))

    def write(self, method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path.startswith(POOLS):
            self.change(body)
            self.do("pause" if body["spec"]["paused"] else "release")
            return 200, self.pool
        done = super().write(method, path, body, dry_run)
        if path.startswith(CONFIGS) and not dry_run:
            assert self.pool["spec"]["paused"], "a MachineConfig was applied while its pool could roll"
            self.do("apply")
        return done

    def boot(self, name: str) -> None:
        """By a BMC."""
        found, wanted = self.seen(name)["metadata"]["annotations"], self.pool["spec"]["configuration"]["name"]
        idle = found.get(f"{ANNOTATIONS}state") == "Done" and (
            self.pool["spec"]["paused"] or found[f"{ANNOTATIONS}currentConfig"] == wanted
        )
        assert idle or f"{ANNOTATIONS}state" not in found, f"a BMC has reset {name} beside the machine config operator"
        super().boot(name)

    def pause(self, seconds: float) -> None:
        self.operate()
        super().pause(seconds)

    def operate(self) -> None:
        names = sorted(self._objects[CONFIGS])
        wanted = f"rendered-{len(names)}"
        if self.pool["spec"]["configuration"]["name"] != wanted:
            source = [{"name": name} for name in names]
            self.change(
                {"spec": {"configuration": {"name": wanted, "source": source}}, "status": {"updatedMachineCount": 0}}
            )
            return
        has = {name: self.seen(name)["metadata"]["annotations"].get(f"{ANNOTATIONS}currentConfig") for name in NODES}
        going = [
            name for name in NODES if self.seen(name)["metadata"]["annotations"].get(f"{ANNOTATIONS}state") == "Working"
        ]
        if going:
            name = going[0]
            if name not in self.away and name not in self.sticks:
                self.at(name, wanted, wanted, "Done")
                self.put("Node", merged(self.seen(name), {"spec": {"unschedulable": None}}))
        elif not self.pool["spec"]["paused"]:
            behind = [name for name in NODES if has[name] not in (None, wanted) and name not in self.sticks]
            if behind:
                self.go(behind[0], wanted)
        done = sum(config == wanted for config in has.values())
        members = sum(config is not None for config in has.values())
        current = wanted if done == members else self.pool["status"]["configuration"]["name"]
        self.change(
            {"status": {"updatedMachineCount": done, "machineCount": members, "configuration": {"name": current}}}
        )

    def go(self, name: str, wanted: str) -> None:
        """A node's turn: cordoned, and rebooted."""
        self.at(name, self.seen(name)["metadata"]["annotations"][f"{ANNOTATIONS}currentConfig"], wanted, "Working")
        self.put("Node", merged(self.seen(name), {"spec": {"unschedulable": True}}))
        self.do(f"operator takes {name}")
        if not self.soft:
            self.put("Node", ready(self.seen(name), False))
            self.away[name] = 2
            self.reboots[name] = self.reboots.get(name, 0) + 1
            if name in self.servers:
                self.servers[name].reset()

    def through(self) -> None:
        """Time goes by, with nobody of ours there."""
        for _look in range(60):
            self.pause(5)


def pool(**status: typing.Any) -> Resource:
    spec = {
        "paused": False,
        "nodeSelector": {"matchLabels": {"role": "worker"}},
        "machineConfigSelector": {"matchLabels": {f"{ANNOTATIONS}role": "worker"}},
        "configuration": {"name": FIRST, "source": []},
    }
    told = {"configuration": {"name": FIRST}, "machineCount": 3, "updatedMachineCount": 3, "conditions": [], **status}
    return {"metadata": {"name": "worker", "annotations": {}}, "spec": spec, "status": told}


class Pooled(Site):
    """With MachineConfigs that are wanted."""

    world: Operated

    def __init__(self, *of: typing.Any) -> None:
        super().__init__(*of)
        self.hosts = HOSTS

    def look(self, *missing: str) -> None:
        """The look at all nodes: those named run without the arguments, and can't set them."""
        for name in NODES:
            boot = self.world.seen(name)["status"]["nodeInfo"]["bootID"]
            seen = KernelArguments(
                WANTED if name in missing else (), "the operating system of the node is an image (ostree).", boot
            )
            self.facts[name] = look_at_kernel(ObservedKernelArguments(seen), WANTED)

    def settle(self, *missing: str) -> NodeRoll:
        """As the stage does: look, roll, look again, prove.

        :param missing: nodes that run without the arguments after it
        """
        done = self.run()
        assert not self.world.pool["spec"]["paused"], "it stays paused"
        self.look(*missing)
        return prove_outcomes(done, self.prove()) if "unproven" in states(done).values() else done


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Pooled]:
    world = Operated()
    world.start()
    with contextlib.ExitStack() as stack:
        stack.callback(world.stop)
        file = certificates.of()
        world.servers = {name: stack.enter_context(Server(world, name, file)) for name in NODES}
        found = Pooled(certificates, world.servers, world)
        found.look(*NODES)
        yield found


def clean(site: Pooled) -> None:
    """Nothing of ours is left at the nodes and the pool."""
    assert all(site.world.note(name) is None and not site.world.cordoned(name) for name in NODES)
    assert not site.world.pool["spec"]["paused"] and PAUSED_ANNOTATION not in site.world.pool["metadata"]["annotations"]


def dies(site: Pooled, point: str) -> None:
    """A run that does not outlive that, and all of its threads."""
    site.world.kill = point
    kill_at_once(site)
    before = set(threading.enumerate())
    with pytest.raises(Killed):
        site.run()
        # the last one came before the end of the roll
        site.cluster.list("Node")
    for thread in set(threading.enumerate()) - before:
        if "ThreadPoolExecutor" in thread.name:
            thread.join(30)
            assert not thread.is_alive(), "Rerun: the roll continues where it ended"
    site.world.kill, site.world.killed = "", False


def test_the_plan_says_one_reboot_of_each_node_by_whom_and_why(site: Pooled) -> None:
    only(site, "worker-1", "worker-2")
    told = describe_plan(site.plan())
    assert len(told) == 4 and told[3].startswith("MachineConfigPool worker: rolled once, 1 at a time"), told
    for number, text in enumerate(told[:3], 1):
        assert (
            text.startswith(f"worker-{number}: ")
            and "one reboot by the machine config operator (MachineConfigPool worker)" in text
        )
        assert f"MachineConfig {CONFIG} (kernel arguments iommu=pt)" in text and ("BIOS sriov" in text) == (number < 3)
        assert "its BMC" not in text.partition(": BIOS")[0]
    assert site.world.did == []


def test_bios_and_machine_configs_take_one_reboot_of_the_operator_s(site: Pooled) -> None:
    only(site, "worker-1", "worker-2")
    site.world.add("web-1", "worker-1")
    done = site.settle()
    assert states(done) == dict.fromkeys(NODES, "done") and {
        one.status for one in check(done.plan, done.outcomes, done.error)
    } == {"pass"}
    assert site.resets() == {} and site.world.reboots == dict.fromkeys(NODES, 1)
    assert [server.value for server in site.servers.values()] == ["Enabled"] * 3
    assert all(BY_OPERATOR in outcome.did for outcome in done.outcomes) and any(
        "BIOS" in text for text in of(done, "worker-1").did
    )
    did = site.world.did
    assert (
        max(did.index(f"note {name} reset") for name in NODES)
        < did.index("pause")
        < did.index("apply")
        < did.index("release")
    )
    assert (
        did.index("release") < did.index("operator takes worker-1")
        and did.count("release") == 1
        and not any("evict" in what for what in did)
    )
    clean(site)
    before = list(did)
    again = site.settle()
    assert set(states(again).values()) == {"nothing"} and again.changes == () and site.world.did == before


def test_nothing_is_proven_before_somebody_has_looked(site: Pooled) -> None:
    done = site.run()
    assert set(states(done).values()) == {"unproven"} and all(site.world.note(name)["reset"] for name in NODES)
    site.look("worker-2")
    shown = prove_outcomes(done, site.prove())
    assert states(shown) == {"worker-1": "done", "worker-2": "failed", "worker-3": "done"}
    assert "the node did not apply these settings at the reset: kernel argument iommu=pt" in of(shown, "worker-2").why
    again = site.run()
    assert (
        of(again, "worker-2").state == "failed"
        and site.resets() == {}
        and site.world.reboots == dict.fromkeys(NODES, 1)
    )


def bare_pod(node: str) -> Resource:
    """A pod that nothing starts again."""
    metadata = {"name": "train", "namespace": "ml", "uid": "u1", "resourceVersion": "1"}
    spec = {"nodeName": node, "containers": [{"name": "c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def test_pod_that_starts_after_the_plan_keeps_the_pool_paused_and_the_next_run_takes_it_up(site: Pooled) -> None:
    do, begun = site.world.do, typing.cast(list[str], [])

    def start(what: str) -> None:
        if what == "apply" and not begun:
            begun.append(what)
            site.world.put("Pod", bare_pod(NODES[1]))
        do(what)

    site.world.do = start  # type: ignore[method-assign]
    done = site.run()
    assert begun and site.world.reboots == {} and site.world.pool["spec"]["paused"]
    assert set(states(done).values()) == {"failed"}
    assert all(f"{NODES[1]}: no controller recreates these pods: ml/train" in one.why for one in done.outcomes)
    site.world.drop("Pod", bare_pod(NODES[1]))
    site.settle()
    assert site.world.reboots == dict.fromkeys(NODES, 1)
    clean(site)


def test_check_mode_changes_nothing(site: Pooled) -> None:
    done = site.run(check_mode=True)
    assert set(states(done).values()) == {"planned"} and len(done.changes) == 3 and site.world.did == []
    assert (
        not any(server.written for server in site.servers.values()) and site.world.object(f"{CONFIGS}/{CONFIG}") is None
    )


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_what_is_not_allowed_is_refused(site: Pooled, disruption: typing.Any) -> None:
    done = site.run(ClusterIntent(disruption=disruption))
    assert f"rdma_cluster.disruption is {disruption}" in done.plan.refusal and CONFIG in done.plan.refusal
    assert set(states(done).values()) == {"blocked"} and site.world.did == []


def test_a_bios_alone_is_reset_by_the_bmc_and_a_machine_config_alone_is_left_to_stage_network(site: Pooled) -> None:
    only(site)
    assert set(states(site.run()).values()) == {"nothing"} and site.world.did == []
    site.hosts = ()
    bios = site.servers["worker-1"].bios
    bios.answers[bios.path]["Attributes"][ATTRIBUTE] = "Disabled"
    assert of(site.run(), "worker-1").state == "done" and site.resets() == {"worker-1": 1} and site.world.reboots == {}


def test_a_setting_that_does_not_take_is_told_and_never_tried_by_a_second_reset(site: Pooled) -> None:
    site.servers["worker-1"].bios.stubborn = frozenset({ATTRIBUTE})
    done = site.settle()
    assert (
        states(done) == {"worker-1": "failed", "worker-2": "done", "worker-3": "done"}
        and "the node did not apply these settings at the reset" in of(done, "worker-1").why
    )
    for _run in range(2):
        again = site.run()
        assert (
            of(again, "worker-1").state == "failed"
            and "the node did not apply these settings at the reset" in of(again, "worker-1").why
        )
    assert site.resets() == {} and site.world.reboots == dict.fromkeys(NODES, 1) and not site.world.cordoned("worker-1")


POINTS = (
    "note worker-1 begun",
    "set worker-2",
    "note worker-3 reset",
    "pause",
    "apply",
    "release",
    "operator takes worker-1",
    "operator takes worker-3",
    "unnote worker-2",
)


@pytest.mark.parametrize("later", [False, True], ids=["at once", "when the pool is through"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_point_and_taken_up_again(site: Pooled, point: str, later: bool) -> None:
    site.facts.clear()
    site.hosts = render_host_configs(HostNeeds(kernel_arguments=WANTED))
    dies(site, point)
    for _thread in range(2 * later):
        site.world.through()
    done = site.run()
    assert set(states(done).values()) <= {"done", "nothing"}, done
    assert site.resets() == {} and site.world.reboots == dict.fromkeys(NODES, 1)
    assert [server.value for server in site.servers.values()] == ["Enabled"] * 3
    clean(site)


def test_a_pool_that_is_under_way_is_waited_for_and_its_nodes_are_never_reset_by_their_bmc(site: Pooled) -> None:
    dies(site, "operator takes worker-1")
    site.world.sticks = ("worker-2",)
    planned = site.plan()
    assert {(step.phase, step.pool, step.wave) for step in planned.steps} == {("wait", "worker", 0)}
    assert "wait until the node is back after its reboot by the machine config operator" in describe_step(
        planned.steps[0]
    )
    done = site.run()
    assert (
        of(done, "worker-2").state == "failed"
        and "MachineConfigPool worker did not reboot the node" in of(done, "worker-2").why
    )
    assert site.resets() == {} and site.world.note("worker-2")["reset"]
    site.world.sticks = ()
    site.look()
    assert (
        of(site.settle(), "worker-2").state == "done"
        and site.resets() == {}
        and site.world.reboots == dict.fromkeys(NODES, 1)
    )
    clean(site)


BEHIND = {"spec": {"configuration": {"name": "rendered-9"}}}
DEGRADED = {
    "status": {
        "conditions": [
            {"type": "Degraded", "status": "True"},
            {"type": "NodeDegraded", "status": "True", "message": "disk is full"},
        ]
    }
}


@pytest.mark.parametrize("new", [True, False], ids=["with MachineConfigs", "BIOS alone"])
@pytest.mark.parametrize("noted", [True, False], ids=["noted by a run that ended", "begun"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": {"paused": True}}, "is paused by a user or another program"),
        (
            {"spec": {"paused": True}, "metadata": {"annotations": {"sriovnetwork.openshift.io/state": "Paused"}}},
            "paused by the SR-IOV operator",
        ),
        (DEGRADED, "disk is full"),
        (BEHIND, "may reboot the node"),
    ],
    ids=["paused", "paused by an operator", "degraded", "rolling"],
)
def test_a_pool_that_others_hold_keeps_the_bmc_away(
    site: Pooled, change: Resource, words: str, noted: bool, new: bool
) -> None:
    only(site, "worker-1")
    site.hosts = HOSTS if new else ()
    if noted:
        # its reset was noted, and never came
        dies(site, "note worker-1 reset")
    site.world.operate = lambda: None  # type: ignore[method-assign]
    site.world.change(copy.deepcopy(change))
    done = site.run()
    first = of(done, "worker-1")
    assert (first.state in ("blocked", "failed") and words in first.why) or "did not reboot the node" in first.why, (
        first
    )
    assert (
        site.resets() == {}
        and site.world.reboots == {}
        and "release" not in site.world.did
        and "apply" not in site.world.did
    )
    assert not site.world.cordoned("worker-1")


def test_a_pool_that_begins_while_a_node_is_drained_keeps_the_bmc_away(site: Pooled) -> None:
    only(site, "worker-1")
    site.hosts = ()
    site.world.add("web-1", "worker-1")
    site.world.held["web-1"] = 2
    site.world.operate = lambda: site.world.change(BEHIND)  # type: ignore[method-assign]
    done = site.run()
    assert of(done, "worker-1").state == "failed" and "may reboot the node" in of(done, "worker-1").why
    assert site.resets() == {} and site.world.note("worker-1") is None and not site.world.cordoned("worker-1")


def test_a_node_of_no_pool_goes_the_usual_way(site: Pooled) -> None:
    plain = merged(site.world.seen("worker-3"), {"metadata": {"labels": None, "annotations": None}})
    site.world.put("Node", {**plain, "metadata": {**plain["metadata"], "labels": {}}})
    site.facts.clear()
    planned = site.plan()
    assert [(step.node, step.pool, step.wave) for step in planned.steps] == [
        ("worker-1", "worker", 0),
        ("worker-2", "worker", 0),
        ("worker-3", "", 1),
    ]
    assert any(
        text.startswith("worker-3 (wave 1): set, drain, reset by its BMC: BIOS sriov")
        for text in describe_plan(planned)
    )
    done = site.run()
    assert states(done) == dict.fromkeys(NODES, "done"), done
    assert site.resets() == {"worker-3": 1} and site.world.reboots == {"worker-1": 1, "worker-2": 1}


def test_pools_that_can_not_be_read_keep_the_bmc_from_the_nodes_of_the_operator(site: Pooled) -> None:
    only(site, "worker-1")
    original = site.world.listing
    site.world.listing = lambda path: b"{" if path == POOLS else original(path)  # type: ignore[method-assign]
    done = site.run()
    assert (
        of(done, "worker-1").state == "blocked"
        and "MachineConfigPool:" in of(done, "worker-1").why
        and site.world.did == []
    )


def test_a_power_cycle_is_the_bmc_s_once_before_the_roll(site: Pooled) -> None:
    only(site, "worker-1", "worker-2")
    system = site.servers["worker-2"].answers["/redfish/v1/Systems/System.Embedded.1"]
    system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["ForceRestart", "PowerCycle"]
    site.facts["worker-2"] += NodeDifferences()
    extra = NodeDifference("firmware", "NUM_OF_VFS", "8", "16", "power_cycle")
    firmware = dataclasses.replace(NodeDifferences(), differences=(extra,), boots=("boot-worker-2",))
    site.more = (_Shown({"worker-2": firmware}),)
    roller = site.roller()
    planned = roller.plan(NODES, ClusterIntent(disruption="reboot"))
    (text,) = (text for text in describe_plan(planned) if text.startswith("worker-2"))
    assert text.startswith("worker-2 (wave 1): set, drain, power cycle by its BMC: BIOS sriov")
    assert (
        "afterwards also rebooted by the machine config operator (MachineConfigPool worker)" in text
        and "(this reboot is not a power cycle)" in text
    )
    done = roller.roll(planned)
    assert states(done) == {"worker-1": "unproven", "worker-2": "unproven", "worker-3": "unproven"}
    assert (
        site.servers["worker-2"].resets == ["PowerCycle"]
        and site.resets() == {"worker-2": 1}
        and site.world.reboots == dict.fromkeys(NODES, 1)
    )
    assert BY_OPERATOR in of(done, "worker-2").did and site.world.did.index("reset worker-2") < site.world.did.index(
        "pause"
    )
    site.look()
    site.more = ()
    assert states(prove_outcomes(done, site.prove())) == dict.fromkeys(NODES, "done") and site.resets() == {
        "worker-2": 1
    }
    assert set(states(site.run()).values()) == {"nothing"}


class _Shown:
    """What somebody has seen."""

    live, of_pools = False, True

    def __init__(self, seen: typing.Mapping[str, NodeDifferences]) -> None:
        self._seen = seen

    def look(self, nodes: typing.Iterable[str]) -> dict[str, NodeDifferences]:
        return {node: self._seen[node] for node in nodes if node in self._seen}

    def set(self, node: str) -> str:
        return ""


def test_a_node_that_can_not_be_done_holds_its_pool_so_that_none_is_rebooted_twice(site: Pooled) -> None:
    site.servers["worker-2"].faults["/redfish/v1/Systems"] = Fault(status=500)
    done = site.run()
    assert (
        states(done) == {"worker-1": "blocked", "worker-2": "unknown", "worker-3": "blocked"} and site.world.did == []
    )
    assert "so that no node is rebooted twice: worker-2: " in of(done, "worker-1").why


def test_a_bios_that_is_not_set_ends_it_before_any_pool_is_touched(site: Pooled) -> None:
    site.servers["worker-2"].faults[site.servers["worker-2"].bios.path + "/Settings"] = Fault(status=403)
    done = site.run()
    assert (
        of(done, "worker-2").state == "failed"
        and of(done, "worker-1").state == "left"
        and "nodes failed: worker-2" in of(done, "worker-1").why
    )
    assert not {"pause", "apply", "release"} & set(site.world.did) and site.world.reboots == {}
    clean(site)
    site.servers["worker-2"].faults.clear()
    assert states(site.settle()) == dict.fromkeys(NODES, "done") and site.world.reboots == dict.fromkeys(NODES, 1)


def test_what_the_api_server_refuses_is_seen_before_a_bios_is_set(site: Pooled) -> None:
    original = site.world.write

    def write(method: str, path: str, body: Resource, dry_run: bool = False) -> tuple[int, Resource]:
        if path.startswith(CONFIGS):
            return 403, {
                "kind": "Status",
                "code": 403,
                "reason": "Forbidden",
                "message": "may not patch machineconfigs",
            }
        return original(method, path, body, dry_run)

    site.world.write = write  # type: ignore[method-assign]
    done = site.run()
    assert (
        set(states(done).values()) == {"failed"}
        and "may not patch machineconfigs" in of(done, "worker-1").why
        and site.world.did == []
    )


def test_a_roll_without_a_reboot_is_told_and_then_the_bmc_resets(site: Pooled) -> None:
    only(site, "worker-1")
    site.facts.clear()
    site.world.soft = True
    done = site.run()
    assert (
        states(done) == {"worker-1": "failed", "worker-2": "done", "worker-3": "done"}
        and "without a reboot" in of(done, "worker-1").why
    )
    assert of(site.run(), "worker-1").state == "done" and site.resets() == {"worker-1": 1} and site.world.reboots == {}


def test_told_to_stop_it_leaves_the_pool_to_the_operator_and_the_next_run_waits(site: Pooled) -> None:
    site.facts.clear()
    site.stop = lambda: "operator takes worker-2" in site.world.did
    done = site.run()
    assert (
        states(done) == {"worker-1": "done", "worker-2": "left", "worker-3": "left"}
        and not site.world.pool["spec"]["paused"]
    )
    site.stop = lambda: False
    assert (
        set(states(site.run()).values()) <= {"done", "nothing"}
        and site.world.reboots == dict.fromkeys(NODES, 1)
        and site.resets() == {}
    )
    clean(site)


def test_a_node_that_breaks_at_its_reboot_is_told_with_the_words_of_the_pool(site: Pooled) -> None:
    site.facts.clear()
    operate = site.world.operate

    def breaks() -> None:
        operate()
        if "operator takes worker-1" in site.world.did:
            site.world.sticks = ("worker-1",)
            site.world.change(DEGRADED)

    site.world.operate = breaks  # type: ignore[method-assign]
    done = site.run()
    assert (
        set(states(done).values()) == {"failed"}
        and "disk is full" in of(done, "worker-1").why
        and "oc describe machineconfigpool" in of(done, "worker-1").remedy
    )
    again = site.run()
    assert (
        set(states(again).values()) <= {"failed", "blocked"}
        and site.resets() == {}
        and site.world.reboots == {"worker-1": 1}
    )


def also_by_its_bmc(site: Pooled, name: str) -> None:
    """Have a node of the pool need a power cycle, which its BMC gives it beside the reboot of the pool."""
    only(site, "worker-1", name)
    system = site.servers[name].answers["/redfish/v1/Systems/System.Embedded.1"]
    system["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] = ["ForceRestart", "PowerCycle"]
    extra = NodeDifference("firmware", "NUM_OF_VFS", "8", "16", "power_cycle")
    site.more = (_Shown({name: dataclasses.replace(NodeDifferences(), differences=(extra,), boots=(f"boot-{name}",))}),)


def test_a_node_that_grows_too_large_amid_the_roll_keeps_the_outcomes_of_the_others(
    site: Pooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list takes its object, and a request of it alone does not."""
    also_by_its_bmc(site, "worker-2")
    world, operate = site.world, site.world.operate

    def grow() -> None:
        operate()
        if "release" in world.did:
            node = world.seen("worker-2")
            world.put("Node", {**node, "status": {**node["status"], "images": [{"names": [""] * 240_000}]}})

    monkeypatch.setattr(world, "operate", grow)
    done = site.run()
    assert world.reboots == dict.fromkeys(NODES, 1) and site.resets() == {"worker-2": 1}
    assert states(done) == dict.fromkeys(NODES, "unproven")
    told = of(done, "worker-2")
    assert told.was_reset and "it is unknown whether MachineConfigPool worker rebooted the node" in told.why
    assert "is not JSON of at most" in told.why and "not known" not in of(done, "worker-1").why


def test_an_answer_that_fails_between_two_waves_keeps_the_outcomes_before_it(
    site: Pooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    also_by_its_bmc(site, "worker-2")
    counted, turns = choose_turn, list[typing.Any]()

    def fail(*given: typing.Any) -> typing.Any:
        turns.append(given)
        if len(turns) > 1:
            raise ApiError(200, "InvalidAnswer", "no JSON", "GET /api/v1/nodes")
        return counted(*given)

    monkeypatch.setattr(node_roll, "choose_turn", fail)
    done = site.run()
    kept = {name: state for name, state in states(done).items() if state != "left"}
    assert kept == {"worker-2": "unproven"} and of(done, "worker-2").was_reset and site.resets() == {"worker-2": 1}
    assert all("no JSON" in of(done, name).why for name in NODES if name not in kept)
