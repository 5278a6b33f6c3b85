# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes brought to what is wanted with one reset of each: real BMCs and a real client of an API server, a clock of the
test's own. Killed at each point and taken up again, held by a budget, a setting that does not take, a node that never
comes back, BMCs that do not answer.
"""

from __future__ import annotations

import threading
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    DrainOptions,
    DrainPool,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.roll_mark import ANNOTATION
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.turns.roll_limits import RollLimits
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    Killed,
    Site,
    World,
    kill_at_once,
    merged,
    of,
    only,
    playing,
    ready,
    states,
)
from lab.bmc.server import Fault

SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Site]:
    with playing(certificates, World()) as found:
        yield found


def test_each_node_is_reset_once_and_the_second_run_does_nothing(site: Site) -> None:
    site.world.add("web-1", "worker-1")
    site.world.add("daemon-1", "worker-1", owner="DaemonSet")
    done = site.run()
    assert states(done) == dict.fromkeys(NODES, "done") and site.resets() == dict.fromkeys(NODES, 1)
    assert [server.value for server in site.servers.values()] == ["Enabled"] * 3
    assert site.world.did[:8] == [
        "note worker-1 begun",
        "set worker-1",
        "cordon worker-1",
        "note worker-1 begun",
        "evict web-1",
        "note worker-1 reset",
        "reset worker-1",
        "uncordon worker-1",
    ]
    assert site.world.did.index("uncordon worker-1") < site.world.did.index("note worker-2 begun"), "one at a time"
    assert [server.resets for server in site.servers.values()] == [["ForceRestart"]] * 3
    assert len(done.changes) == 3 and "reset (ForceRestart)" in done.changes[0]
    before = list(site.world.did)
    again = site.run()
    assert states(again) == dict.fromkeys(NODES, "nothing") and again.changes == () and site.world.did == before
    assert all(site.world.note(name) is None and not site.world.cordoned(name) for name in NODES)


def test_check_mode_says_what_would_be_done_and_does_nothing(site: Site) -> None:
    only(site, "worker-2")
    done = site.run(check_mode=True)
    assert states(done) == {"worker-1": "nothing", "worker-2": "planned", "worker-3": "nothing"}
    assert (
        len(done.changes) == 1
        and "worker-2 (wave 1): set, drain, reset" in done.changes[0]
        and ATTRIBUTE in done.changes[0]
    )
    assert site.world.did == [] and site.resets() == {}


def test_a_setting_that_an_admin_has_saved_at_the_bmc_is_named_in_the_plan(site: Site) -> None:
    """It is applied by the reset of the roll, whoever saved it."""
    only(site, "worker-1")
    bios = site.servers["worker-1"].bios
    other = next(name for name, value in sorted(bios.attributes.items()) if name != ATTRIBUTE and value == "Enabled")
    assert "others saved" not in str(site.run(check_mode=True).plan)
    settings = bios.answers[bios.settings]
    settings["Attributes"] = {**(settings.get("Attributes") or {}), other: "Disabled"}
    step = next(step for step in site.run(check_mode=True).plan.steps if step.node == "worker-1")
    assert f"a reset also applies BIOS settings that others saved at the BMC: {other}" in step.notes


def test_settings_that_others_saved_are_named_also_where_the_intent_has_no_bios(site: Site) -> None:
    """Kernel arguments and firmware wait for the same reset."""
    site.wanted = {}
    site.facts = {
        name: NodeDifferences((NodeDifference("kernel argument", "iommu=pt", "absent", "set"),)) for name in NODES
    }
    bios = site.servers["worker-1"].bios
    other = next(name for name, value in sorted(bios.attributes.items()) if value == "Enabled")
    settings = bios.answers[bios.settings]
    settings["Attributes"] = {**(settings.get("Attributes") or {}), other: "Disabled"}
    site.servers["worker-2"].faults[bios.settings] = Fault(status=500)
    plan = site.run(check_mode=True).plan
    notes = {step.node: step.notes for step in plan.steps}
    assert notes["worker-1"] == (f"a reset also applies BIOS settings that others saved at the BMC: {other}",)
    assert "others saved at the BMC is unknown: " in notes["worker-2"][0] and notes["worker-3"] == ()
    assert all(step.is_due for step in plan.steps), "they are reset all the same"


@pytest.mark.parametrize("disruption", ["none", "drain"])
def test_what_is_not_allowed_is_refused_before_anything_is_touched(site: Site, disruption: typing.Any) -> None:
    done = site.run(ClusterIntent(disruption=disruption))
    assert f"rdma_cluster.disruption is {disruption}" in done.plan.refusal and set(states(done).values()) == {"blocked"}
    assert done.changes == () and site.world.did == [] and not any(server.written for server in site.servers.values())


def test_waves_of_the_pool(site: Site) -> None:
    done = site.run(ClusterIntent(disruption="reboot", node_pool=DrainPool(2)))
    assert [[step.node for step in wave] for wave in done.plan.waves] == [["worker-1", "worker-2"], ["worker-3"]]
    resets = [what for what in site.world.did if what.startswith("reset")]
    assert set(resets[:2]) == {"reset worker-1", "reset worker-2"} and resets[2:] == ["reset worker-3"]
    assert states(done) == dict.fromkeys(NODES, "done")


@pytest.mark.parametrize(
    "point",
    ["note worker-1 begun", "set worker-1", "cordon worker-1", "evict web-1", "note worker-1 reset", "reset worker-1"],
)
def test_killed_at_each_point_and_taken_up_again(site: Site, point: str) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    site.world.kill = point
    with pytest.raises(Killed):
        kill_at_once(site)
        site.run()
    site.world.kill = ""
    done = site.run()
    assert of(done, "worker-1").state == "done", done
    assert site.resets() == {"worker-1": 1} and site.servers["worker-1"].value == "Enabled"
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None


def test_a_budget_holds_a_pod_for_a_while(site: Site) -> None:
    only(site, "worker-1")
    site.world.add("web-1", "worker-1")
    site.world.held["web-1"] = 3
    done = site.run()
    assert of(done, "worker-1").state == "done" and any(
        "cannot be evicted now" in line and "disruption budget" in line for line in site.said
    )


def test_a_budget_that_never_lets_go_leaves_the_node_as_it_was(site: Site) -> None:
    only(site, "worker-1", "worker-2")
    site.world.add("web-1", "worker-1")
    site.world.held["web-1"] = 1000
    done = site.run()
    first = of(done, "worker-1")
    assert (
        first.state == "blocked"
        and "jobs/web-1 cannot be evicted now" in first.why
        and "PodDisruptionBudget" in first.remedy
    )
    # the pods of one node keep no other one out
    assert of(done, "worker-2").state == "done" and set(site.resets()) == {"worker-2"}
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None


def test_a_budget_that_allows_nothing_is_seen_before(site: Site) -> None:
    site.world.add("web-1", "worker-1", labels={"app": "web"})
    budget = {
        "metadata": {"name": "web", "namespace": "jobs"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    site.world.put("PodDisruptionBudget", budget)
    done = site.run()
    assert (
        states(done) == {"worker-1": "blocked", "worker-2": "done", "worker-3": "done"}
        and "jobs/web" in of(done, "worker-1").why
    )


def test_a_pod_that_nothing_makes_again_stays_unless_it_may_go(site: Site) -> None:
    only(site, "worker-1")
    site.world.add("pet", "worker-1", owner="")
    done = site.run()
    assert of(done, "worker-1").state == "blocked" and "jobs/pet" in of(done, "worker-1").why and site.world.did == []
    site.drain = DrainOptions(force=True)
    assert of(site.run(), "worker-1").state == "done" and "evict pet" in site.world.did


def test_what_did_not_take_is_a_finding_and_never_a_second_reset(site: Site) -> None:
    only(site, "worker-1", "worker-2")
    site.servers["worker-1"].bios.stubborn = frozenset({ATTRIBUTE})
    done = site.run()
    first = of(done, "worker-1")
    assert (
        first.state == "failed"
        and "the node did not apply these settings" in first.why
        and f"kubectl annotate node worker-1 {ANNOTATION}-" in first.remedy
    )
    assert of(done, "worker-2").state == "left" and site.resets() == {"worker-1": 1}
    assert not site.world.cordoned("worker-1"), "the node works"
    again = site.run()
    assert (
        of(again, "worker-1").state == "failed" and "the node did not apply these settings" in of(again, "worker-1").why
    )
    assert site.resets() == {"worker-1": 1, "worker-2": 1}, "the others go on; this one is not reset again"
    site.servers["worker-1"].bios.stubborn = frozenset()
    site.servers["worker-1"].bios.answers[site.servers["worker-1"].bios.path]["Attributes"][ATTRIBUTE] = "Enabled"
    assert of(site.run(), "worker-1").state == "done" and site.world.note("worker-1") is None, (
        "set on its setup screen: the note goes"
    )
    assert of(site.run(), "worker-1").state == "nothing"


def test_killed_while_it_booted_and_then_it_did_not_take(site: Site) -> None:
    only(site, "worker-1")
    site.servers["worker-1"].bios.stubborn = frozenset({ATTRIBUTE})
    site.world.kill = "reset worker-1"
    kill_at_once(site)
    with pytest.raises(Killed):
        site.run()
    site.world.kill = ""
    while site.world.away:
        site.world.pause(5)
    done = site.run()
    assert (
        of(done, "worker-1").state == "failed" and "the node did not apply these settings" in of(done, "worker-1").why
    )
    assert site.resets() == {"worker-1": 1} and not site.world.cordoned("worker-1")


def test_a_node_that_never_comes_back_ends_the_roll(site: Site) -> None:
    site.world.boot_pauses = None
    done = site.run()
    first = of(done, "worker-1")
    assert states(done) == {"worker-1": "failed", "worker-2": "left", "worker-3": "left"}
    assert (
        "not back 300 s after its reset" in first.why
        and "Kubelet stopped posting" in first.why
        and "kubectl uncordon worker-1" in first.remedy
    )
    assert site.world.cordoned("worker-1") and site.resets() == {"worker-1": 1}
    # it is back: it is taken up again, and not reset again
    site.world.away["worker-1"], site.world.boot_pauses = 2, 3
    assert states(site.run()) == dict.fromkeys(NODES, "done") and site.resets() == dict.fromkeys(NODES, 1)
    assert not site.world.cordoned("worker-1")


def test_interrupted_the_other_nodes_of_the_wave_go_no_further(site: Site) -> None:
    site.limits = RollLimits(drain=1e9)
    for name in NODES[:2]:
        site.world.add(f"web-{name}", name)
        site.world.held[f"web-{name}"] = 10**9
    site.world.kill = "cordon worker-1"
    before = set(threading.enumerate())
    with pytest.raises(Killed):
        site.run(ClusterIntent(disruption="reboot", node_pool=DrainPool(2)))
    for thread in set(threading.enumerate()) - before:
        if "ThreadPoolExecutor" in thread.name:
            thread.join(30)
            assert not thread.is_alive(), "it drains on"
    assert site.resets() == {} and not any(what.startswith("uncordon") for what in site.world.did)


def test_stopped_between_two_nodes(site: Site) -> None:
    site.stop = lambda: "reset worker-1" in site.world.did
    done = site.run()
    assert states(done) == {"worker-1": "done", "worker-2": "left", "worker-3": "left"} and not site.world.cordoned(
        "worker-1"
    )
    site.stop = lambda: False
    assert states(site.run()) == {
        "worker-1": "nothing",
        "worker-2": "done",
        "worker-3": "done",
    } and site.resets() == dict.fromkeys(NODES, 1)


def test_a_bmc_that_does_not_answer_is_unknown_and_the_others_go_on(site: Site) -> None:
    server = site.servers["worker-2"]
    server.faults["/redfish/v1/Systems"] = Fault(status=500)
    done = site.run()
    assert (
        states(done) == {"worker-1": "done", "worker-2": "unknown", "worker-3": "done"}
        and "BMC of worker-2" in of(done, "worker-2").why
    )


def test_a_bmc_that_refuses_the_reset_leaves_the_node_as_it_was(site: Site) -> None:
    only(site, "worker-1")
    site.servers["worker-1"].faults[RESET] = Fault(status=403)
    done = site.run()
    assert of(done, "worker-1").state == "failed" and "403" in of(done, "worker-1").why
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None
    # what was set waits for a reset, and is planned again
    del site.servers["worker-1"].faults[RESET]
    assert of(site.run(), "worker-1").state == "done" and site.resets() == {"worker-1": 1}


@pytest.mark.parametrize("late", [True, False])
def test_a_connection_that_breaks_as_the_reset_is_ordered(site: Site, late: bool) -> None:
    only(site, "worker-1")
    site.servers["worker-1"].faults[RESET] = Fault(times=1, drop=True, late=late)
    done = site.run()
    if late:
        assert of(done, "worker-1").state == "done" and site.resets() == {"worker-1": 1}
    else:
        assert (
            of(done, "worker-1").state == "failed"
            and "the BMC did not accept the reset: the node is still up" in of(done, "worker-1").why
            and site.resets() == {}
        )
        assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None


def test_a_node_that_another_client_cordoned_waits_for_its_uncordon_and_counts_as_unavailable(site: Site) -> None:
    only(site, "worker-1", "worker-2")
    site.world.cordon_by_admin("worker-1", True)
    done = site.run()
    assert "worker-1: NotReady or cordoned, so no other node may go down" in done.plan.refusal
    # with room for another node, only the cordoned one is left out
    done = site.run(ClusterIntent(disruption="reboot", node_pool=DrainPool(2)))
    assert states(done) == {"worker-1": "blocked", "worker-2": "done", "worker-3": "nothing"}
    assert "cordoned, but not by this roll" in of(done, "worker-1").why
    assert "kubectl uncordon worker-1" in of(done, "worker-1").why
    assert site.world.cordoned("worker-1") and not any(what.endswith("worker-1") for what in site.world.did)
    site.world.cordon_by_admin("worker-1", False)
    assert of(site.run(), "worker-1").state == "done" and site.resets() == {"worker-1": 1, "worker-2": 1}


@pytest.mark.parametrize("name", ["worker-1", "worker-2"])
def test_a_node_that_another_client_cordons_after_the_plan_ends_the_roll_while_it_is_cordoned(
    site: Site, name: str
) -> None:
    only(site, "worker-1", "worker-2")
    roller = site.roller()
    planned = roller.plan(NODES, ClusterIntent(disruption="reboot"))
    site.world.cordon_by_admin(name, True)
    done = roller.roll(planned)
    assert set(states(done).values()) == {"left", "nothing"} and site.resets() == {}
    assert name in of(done, "worker-1").why and "uncordon" in of(done, "worker-1").why
    assert site.world.cordoned(name) and site.world.did == []


@pytest.mark.parametrize("point", ["note worker-1 begun", "set worker-1"])
def test_a_node_that_another_client_cordons_in_its_turn_is_neither_reset_nor_uncordoned(site: Site, point: str) -> None:
    world, original = site.world, site.world.do
    only(site, "worker-1")

    def do(what: str) -> None:
        original(what)
        if what == point:
            world.cordon_by_admin("worker-1", True)

    world.do = do  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert first.state == "blocked" and "cordoned, but not by this roll" in first.why
    assert "kubectl uncordon worker-1" in first.remedy
    assert site.resets() == {} and world.cordoned("worker-1") and world.note("worker-1") is None
    assert [what for what in world.did if "note" not in what] == ["set worker-1"]


def test_a_node_that_another_client_cordons_anew_during_its_drain_is_neither_reset_nor_uncordoned(site: Site) -> None:
    world, original = site.world, site.world.do
    only(site, "worker-1")
    world.add("web-1", "worker-1")

    def do(what: str) -> None:
        original(what)
        if what == "evict web-1":
            world.cordon_by_admin("worker-1", False)
            world.cordon_by_admin("worker-1", True)

    world.do = do  # type: ignore[method-assign]
    first = of(site.run(), "worker-1")
    assert first.state == "blocked" and "cordoned, but not by this roll" in first.why
    assert site.resets() == {} and world.cordoned("worker-1") and "uncordon worker-1" not in world.did


def test_nodes_that_are_away_count(site: Site) -> None:
    only(site, "worker-1")
    site.world.put("Node", ready(site.world.seen("worker-3"), False))
    done = site.run()
    assert "worker-3" in done.plan.refusal and "Restore these nodes first" in done.plan.refusal and site.world.did == []


def test_a_node_that_is_not_ready_is_left_out(site: Site) -> None:
    only(site, "worker-1", "worker-2")
    site.world.put("Node", ready(site.world.seen("worker-2"), False))
    done = site.run(ClusterIntent(disruption="reboot", node_pool=DrainPool(2)))
    assert (
        states(done) == {"worker-1": "done", "worker-2": "blocked", "worker-3": "nothing"}
        and "not Ready" in of(done, "worker-2").why
    )


def test_what_the_bios_can_not_be_is_refused_before_anything_is_touched(site: Site) -> None:
    only(site, "worker-1")
    site.wanted = {"sriov": True, "numa_per_socket": 77}
    done = site.run()
    assert (
        set(states(done).values()) == {"blocked"}
        and "numa_per_socket" in of(done, "worker-1").why
        and site.world.did == []
    )


def test_a_note_that_can_not_be_read_is_not_guessed(site: Site) -> None:
    only(site, "worker-1")
    site.world.put("Node", merged(site.world.seen("worker-1"), {"metadata": {"annotations": {ANNOTATION: "{"}}}))
    done = site.run()
    assert of(done, "worker-1").state == "blocked" and "annotate" in of(done, "worker-1").why and site.world.did == []


@pytest.mark.parametrize(
    ("kinds", "info", "taken"),
    [
        (["On", "GracefulRestart", "ForceRestart"], None, "ForceRestart"),
        (["On", "PowerCycle"], None, "PowerCycle"),
        (["GracefulRestart"], None, "GracefulRestart"),
        (None, ["PowerCycle", "GracefulRestart"], "PowerCycle"),
        (None, None, "ForceRestart"),
    ],
)
def test_the_reset_that_a_bmc_offers(site: Site, kinds: typing.Any, info: typing.Any, taken: str) -> None:
    only(site, "worker-1")
    server = site.servers["worker-1"]
    reset = {
        "target": RESET,
        **({"ResetType@Redfish.AllowableValues": kinds} if kinds else {}),
        **({"@Redfish.ActionInfo": f"{SYSTEM}/Info"} if info else {}),
    }
    server.answers[SYSTEM]["Actions"] = {"#ComputerSystem.Reset": reset}
    server.answers[f"{SYSTEM}/Info"] = {"Parameters": [{"Name": "ResetType", "AllowableValues": info}]}
    assert of(site.run(), "worker-1").state == "done" and server.resets == [taken]


@pytest.mark.parametrize(
    "actions", [None, {"#ComputerSystem.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": ["On", "Nmi"]}}]
)
def test_a_bmc_without_a_reset_leaves_the_node_as_it_was(site: Site, actions: typing.Any) -> None:
    only(site, "worker-1")
    site.servers["worker-1"].answers[SYSTEM]["Actions"] = actions
    assert of(site.run(), "worker-1").state == "failed" and not site.world.cordoned("worker-1") and site.resets() == {}


@pytest.mark.parametrize("differs", [False, True])
def test_a_cordon_of_an_administrator_holds_beside_a_mark_that_a_killed_roll_left(site: Site, differs: bool) -> None:
    only(site, "worker-1")
    site.world.kill = "cordon worker-1"
    kill_at_once(site)
    with pytest.raises(Killed):
        site.run()
    site.world.kill = ""
    site.world.cordon_by_admin("worker-1", False)
    if not differs:
        only(site)
    site.world.cordon_by_admin("worker-1", True)
    site.run()
    assert site.world.cordoned("worker-1") and site.resets() == {}
    site.world.cordon_by_admin("worker-1", False)
    site.run()
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None
    assert site.resets() == ({"worker-1": 1} if differs else {})
