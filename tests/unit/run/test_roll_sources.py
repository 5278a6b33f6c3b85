# SPDX-License-Identifier: GPL-3.0-or-later

"""What only a look at the nodes shows, beside the BIOS: one reset for all of it, and what came of it is known when
somebody has looked again, never before."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.roll import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import (
    NodeDifference,
    NodeDifferences,
    NodeRoll,
    prove_outcomes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import LOOKS_ONLY
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import (
    KernelArguments,
    ObservedKernelArguments,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.trust import Trust
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_sources import look_at_kernel
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import May
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.source import BiosSource
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.roll_world import (
    ATTRIBUTE,
    NODES,
    REBOOT,
    Killed,
    Site,
    World,
    kill_at_once,
    merged,
    of,
    only,
    playing,
    states,
)

MAY = May(Claims(), Guard(lambda: 60.0))
WANTED = ("intel_iommu=on", "iommu=pt")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def site(certificates: Certificates) -> typing.Iterator[Site]:
    with playing(certificates, World()) as found:
        only(found)
        look(found)
        yield found


def look(
    site: Site, missing: typing.Sequence[str] = (), *names: str, refusal: str = "", error: typing.Optional[str] = None
) -> None:
    """The look at all nodes: those named run without some arguments."""
    for name in NODES:
        boot = site.world.seen(name)["status"]["nodeInfo"]["bootID"]
        seen = ObservedKernelArguments(KernelArguments(tuple(missing) if name in names else (), refusal, boot))
        site.facts[name] = look_at_kernel(
            ObservedKernelArguments(error=error) if error and name in names else seen, WANTED
        )


def differ(site: Site) -> None:
    """The BIOS of worker-1 is not as wanted."""
    bios = site.servers["worker-1"].bios
    bios.answers[bios.path]["Attributes"][ATTRIBUTE] = "Disabled"


def power_cycle(site: Site, name: str) -> None:
    """Something of it needs that."""
    extra = NodeDifference("firmware", "NUM_OF_VFS", "8", "16", "power_cycle")
    site.facts[name] = dataclasses.replace(site.facts[name], differences=(*site.facts[name].differences, extra))


def findings(done: NodeRoll) -> dict[str, str]:
    return {finding.subject: finding.status for finding in check(done.plan, done.outcomes, done.error)}


def test_one_reset_for_three_differences_and_the_look_after_it_proves_them(site: Site) -> None:
    differ(site)
    look(site, WANTED, "worker-1")
    planned = site.plan()
    (step,) = (step for step in planned.steps if step.is_due)
    assert [one.source for one in step.differences] == [
        "BIOS",
        "kernel argument",
        "kernel argument",
    ] and step.action == "reboot"
    done = site.run()
    assert states(done) == {"worker-1": "unproven", "worker-2": "nothing", "worker-3": "nothing"} and site.resets() == {
        "worker-1": 1
    }
    assert findings(done)["worker-1"] == "unknown", "nobody has looked yet"
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1")["reset"]
    look(site)
    shown = site.prove()
    assert site.world.note("worker-1") is None and site.resets() == {"worker-1": 1}
    merged_roll = prove_outcomes(done, shown)
    assert (
        states(merged_roll) == {"worker-1": "done", "worker-2": "nothing", "worker-3": "nothing"}
        and findings(merged_roll)["worker-1"] == "pass"
    )
    assert "reset (ForceRestart)" in of(merged_roll, "worker-1").did
    before = list(site.world.did)
    assert set(states(site.run()).values()) == {"nothing"} and site.world.did == before


def test_what_did_not_take_is_a_finding_and_never_a_second_reset(site: Site) -> None:
    look(site, WANTED, "worker-1")
    done = site.run()
    look(site, WANTED[:1], "worker-1")
    shown = prove_outcomes(done, site.prove())
    assert (
        of(shown, "worker-1").state == "failed"
        and "the node did not apply these settings at the reset: kernel argument intel_iommu=on"
        in of(shown, "worker-1").why
    )
    assert (
        findings(shown)["worker-1"] == "fail"
        and "/proc/cmdline" in of(shown, "worker-1").remedy
        and "BMC" not in of(shown, "worker-1").remedy
    )
    again = site.run()
    assert (
        of(again, "worker-1").state == "failed"
        and site.resets() == {"worker-1": 1}
        and not site.world.cordoned("worker-1")
    )
    # set by hand and rebooted: the note goes
    look(site)
    assert of(site.run(), "worker-1").state == "done" and site.world.note("worker-1") is None


def test_nobody_looked_after_the_reset(site: Site) -> None:
    look(site, WANTED, "worker-1")
    done = site.run()
    # what is known is of the boot before
    late = site.prove()
    assert (
        of(late, "worker-1").state == "unknown"
        and (
            "the node has rebooted since this run read its settings, so the present"
            " differences are unknown. Start a new run, which reads the settings again"
        )
        in of(late, "worker-1").why
    )
    assert (
        findings(prove_outcomes(done, late))["worker-1"] == "unknown"
        and site.resets() == {"worker-1": 1}
        and site.world.note("worker-1") is not None
    )
    look(site, WANTED, "worker-1", error="unreachable")
    assert of(site.run(), "worker-1").state == "unknown" and site.resets() == {"worker-1": 1}
    look(site)
    assert of(site.run(), "worker-1").state == "done" and site.world.note("worker-1") is None


@pytest.mark.parametrize(
    "point",
    [
        "note worker-1 begun",
        "set worker-1",
        "cordon worker-1",
        "evict web-1",
        "note worker-1 reset",
        "reset worker-1",
        "uncordon worker-1",
    ],
)
def test_killed_at_each_point_and_taken_up_again(site: Site, point: str) -> None:
    differ(site)
    look(site, WANTED, "worker-1")
    site.world.add("web-1", "worker-1")
    site.world.kill = point
    with pytest.raises(Killed):
        kill_at_once(site)
        site.run()
        # the last one came before the end of the roll
        site.cluster.list("Node")
    site.world.kill = ""
    was_reset = bool(site.resets())
    if was_reset:
        # the next run looks while the node boots, or when it is back
        look(site, WANTED, "worker-1", error="unreachable")
    done = site.run()
    assert of(done, "worker-1").state == ("unknown" if point == "uncordon worker-1" else "unproven"), done
    look(site)
    shown = site.run() if point == "uncordon worker-1" else prove_outcomes(done, site.prove())
    assert of(shown, "worker-1").state == "done" and site.resets() == {"worker-1": 1}
    assert not site.world.cordoned("worker-1") and site.world.note("worker-1") is None


def test_a_proof_begins_nothing(site: Site) -> None:
    look(site, WANTED, "worker-1")
    done = site.run()
    differ(site)
    look(site)
    shown = site.prove()
    assert (
        of(shown, "worker-1").state == "blocked"
        and "other settings differ now. Rerun: the next run plans this change." in of(shown, "worker-1").why
    )
    assert site.resets() == {"worker-1": 1} and of(prove_outcomes(done, shown), "worker-2").state == "nothing"


def test_a_power_cycle_where_any_difference_needs_it(site: Site) -> None:
    for server in site.servers.values():
        server.answers["/redfish/v1/Systems/System.Embedded.1"]["Actions"]["#ComputerSystem.Reset"][
            "ResetType@Redfish.AllowableValues"
        ] = [
            "ForceRestart",
            "PowerCycle",
        ]
    differ(site)
    look(site, WANTED, "worker-1", "worker-2")
    power_cycle(site, "worker-1")
    assert [step.action for step in site.plan().steps] == ["power_cycle", "reboot", "nothing"]
    site.run()
    assert [server.resets for server in site.servers.values()] == [["PowerCycle"], ["ForceRestart"], []]


def test_a_power_cycle_that_was_noted_and_not_ordered(site: Site) -> None:
    resets = site.servers["worker-1"].answers["/redfish/v1/Systems/System.Embedded.1"]["Actions"][
        "#ComputerSystem.Reset"
    ]
    resets["ResetType@Redfish.AllowableValues"] = ["ForceRestart", "PowerCycle"]
    look(site, WANTED, "worker-1")
    power_cycle(site, "worker-1")
    site.world.kill = "note worker-1 reset"
    kill_at_once(site)
    with pytest.raises(Killed):
        site.run()
    site.world.kill = ""
    site.run()
    assert site.servers["worker-1"].resets == ["PowerCycle"]


def test_a_boot_loader_that_nobody_can_set_is_refused_and_nothing_reboots(site: Site) -> None:
    look(site, WANTED, "worker-1", refusal="an observer does not change its node.")
    done = site.run()
    assert (
        of(done, "worker-1").state == "blocked"
        and "an observer does not change its node" in of(done, "worker-1").why
        and site.world.did == []
    )


def test_a_node_without_a_bmc_is_told_before_it_is_drained(site: Site, certificates: Certificates) -> None:
    look(site, WANTED, "worker-1")
    roller = site.roller()
    roller._power = BiosSource([], {"worker-1": "no password for the BMC."}, {}, Trust(True, ""), MAY, 30)
    done = roller.roll(roller.plan(NODES, REBOOT))
    assert (
        of(done, "worker-1").state == "blocked" and "no password" in of(done, "worker-1").why and site.world.did == []
    )
    roller._power = BiosSource([], {}, {}, Trust(True, ""), MAY, 30)
    assert "rdma_bmc_address" in of(roller.roll(roller.plan(NODES, REBOOT)), "worker-1").why


def test_a_node_of_a_machine_config_pool_has_them_by_its_machine_config(site: Site) -> None:
    look(site, WANTED, "worker-1", refusal="the operating system of the node is an image")
    annotations = {
        f"machineconfiguration.openshift.io/{name}": value
        for name, value in (("currentConfig", "a"), ("desiredConfig", "a"), ("state", "Done"))
    }
    site.world.put("Node", merged(site.world.seen("worker-1"), {"metadata": {"annotations": annotations}}))
    assert set(states(site.run()).values()) == {"nothing"} and site.world.did == []


@pytest.mark.parametrize("observed", [ObservedKernelArguments(), ObservedKernelArguments(error="unreachable")])
def test_what_was_not_looked_at_is_unknown(observed: ObservedKernelArguments) -> None:
    assert "are unknown" in look_at_kernel(observed, WANTED).error and look_at_kernel(observed, ()) == NodeDifferences()


def test_a_node_that_an_observer_looks_at_says_that_nothing_is_written_there() -> None:
    seen = look_at_kernel(ObservedKernelArguments(KernelArguments(tuple(WANTED), boot="b", by_pod=True)), WANTED)
    assert len(seen.refusals) == 1 and f"{LOOKS_ONLY}." in seen.refusals[0]


def test_a_tool_that_fails_after_the_reset_is_no_proof(site: Site) -> None:
    power_cycle(site, "worker-1")
    done = site.run()
    assert of(done, "worker-1").state == "unproven"
    look(site)
    site.facts["worker-1"] += NodeDifferences(blind="mstconfig ended with 3")
    shown = site.prove()
    assert (
        of(shown, "worker-1").state == "unknown"
        and "ended with 3" in of(shown, "worker-1").why
        and site.world.note("worker-1") is not None
    )
    look(site)
    assert of(prove_outcomes(done, site.prove()), "worker-1").state == "done" and site.resets() == {"worker-1": 1}


def firmware(site: Site, name: str, stored: bool) -> None:
    """A setting of the firmware of its HCAs is not in force: it waits for a reset, or is not set."""
    one = NodeDifference("firmware", "0000:10:00.0 NUM_OF_VFS", "8", "16 or more", "power_cycle")
    site.facts[name] = NodeDifferences(
        (one,) if stored else (), unset=() if stored else (one,), boots=site.facts[name].boots
    )


def with_power_cycle(site: Site) -> None:
    for server in site.servers.values():
        reset = server.answers["/redfish/v1/Systems/System.Embedded.1"]["Actions"]["#ComputerSystem.Reset"]
        reset["ResetType@Redfish.AllowableValues"] = ["ForceRestart", "PowerCycle"]


def test_bios_kernel_and_firmware_are_one_power_cycle(site: Site) -> None:
    with_power_cycle(site)
    differ(site)
    look(site, WANTED[:1], "worker-1")
    power_cycle(site, "worker-1")
    (step,) = (step for step in site.plan().steps if step.is_due)
    assert [one.source for one in step.differences] == [
        "BIOS",
        "kernel argument",
        "firmware",
    ] and step.action == "power_cycle"
    done = site.run()
    look(site)
    assert of(prove_outcomes(done, site.prove()), "worker-1").state == "done" and site.servers["worker-1"].resets == [
        "PowerCycle"
    ]


def test_a_setting_that_the_firmware_dropped_at_the_reset_is_a_failure_and_never_a_second_reset(site: Site) -> None:
    with_power_cycle(site)
    firmware(site, "worker-1", stored=True)
    done = site.run()
    assert of(done, "worker-1").state == "unproven"
    # it is as before the reset, and nothing waits
    look(site)
    firmware(site, "worker-1", stored=False)
    shown = prove_outcomes(done, site.prove())
    assert (
        of(shown, "worker-1").state == "failed"
        and ("the node did not apply these settings at the reset: firmware 0000:10:00.0 NUM_OF_VFS 16 or more (now 8)")
        in of(shown, "worker-1").why
    )
    assert "mstconfig" in of(shown, "worker-1").remedy and findings(shown)["worker-1"] == "fail"
    again = site.run()
    assert (
        of(again, "worker-1").state == "failed"
        and site.servers["worker-1"].resets == ["PowerCycle"]
        and not site.world.cordoned("worker-1")
    )
    look(site)
    assert of(site.run(), "worker-1").state == "done" and site.world.note("worker-1") is None


def test_what_is_not_set_resets_nothing(site: Site) -> None:
    firmware(site, "worker-1", stored=False)
    assert set(states(site.run()).values()) == {"nothing"} and site.world.did == []


def test_what_else_happens_to_a_node_is_in_the_plan(site: Site) -> None:
    look(site, WANTED, "worker-1")
    for name in ("worker-1", "worker-2"):
        site.facts[name] += NodeDifferences(notes=("stage host restarts containerd",))
    first, second = describe_plan(site.plan())
    assert first.startswith("worker-1 (wave 1): set, drain, reset") and first.endswith(
        "; stage host restarts containerd"
    )
    assert second == "worker-2: no reset required; stage host restarts containerd"
    site.facts["worker-3"] = NodeDifferences(refusals=("The operator ended with IncorrectSpec.",))
    done = site.run()
    assert (
        of(done, "worker-2").state == "nothing"
        and of(done, "worker-3").state == "blocked"
        and findings(done)["worker-3"] == "fail"
    )
    assert "IncorrectSpec" in of(done, "worker-3").why and "worker-2" not in "".join(done.changes)
