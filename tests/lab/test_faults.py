# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults, injected for real: each ends its stage with a finding of its own and a non-zero exit, and is gone when it is
taken back."""

from __future__ import annotations

import contextlib

import pytest

from .conftest import MANAGED, Lab
from .named import assert_named
from .scenarios import BANDWIDTH, SCENARIOS, Scenario, alone, intent


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, id=each.name, marks=() if each.in_make_test else pytest.mark.thorough) for each in SCENARIOS],
)
def test_a_fault_is_named(lab: Lab, scenario: Scenario) -> None:
    with contextlib.ExitStack() as faults:
        for injection in scenario.injections:
            if not injection.after:
                faults.enter_context(lab.fault(injection.name, **injection.target))
        fabrics = alone() if scenario.playbook == BANDWIDTH else intent()
        with lab.running(scenario.playbook, variables={"rdma_fabrics": fabrics, **scenario.variables}) as playbook:
            for injection in scenario.injections:
                if injection.after:
                    playbook.await_text(injection.after, injection.times)
                    faults.enter_context(lab.fault(injection.name, **injection.target))
            run = playbook.wait()
    assert (run.code == 0) == scenario.playbook_succeeds, run.end
    for expected in scenario.expected:
        assert_named(run, expected)
    assert lab.objects("v1/Pod", MANAGED) == []
    if scenario.heals:
        healed = lab.playbook(scenario.heals)
        assert healed.code == 0, healed.end


@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/validate.yml"])
def test_a_wrong_type_is_refused_before_any_host_is_touched(lab: Lab, playbook: str) -> None:
    # every way to a host leads through this program, which leaves a mark
    mark = lab.folder / "touched"
    ssh = lab.folder / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {mark}\nexit 255\n")
    ssh.chmod(0o755)
    run = lab.playbook(
        playbook, variables={"rdma_fabrics": intent(virtual_functions="four"), "ansible_ssh_executable": str(ssh)}
    )
    assert run.code != 0
    assert "rdma_fabrics[1].virtual_functions" in run.output
    assert "'four'" in run.output and "integer" in run.output
    assert not mark.exists()
    if playbook == "site.yml":
        assert (lab.folder / "report.html").is_file()


@pytest.mark.thorough
def test_what_an_interrupted_measurement_left_is_removed_and_named(lab: Lab) -> None:
    variables = {"rdma_fabrics": alone()}
    with lab.running("playbooks/bandwidth.yml", variables=variables) as playbook:
        playbook.await_text("pod is ready", 2)
        # no chance to clean up: the playbook and the module that it runs
        lab.command("exec", "pkill", "-KILL", "-f", "rdma_bandwidth")
    assert lab.objects("v1/Pod", MANAGED)
    run = lab.playbook("playbooks/bandwidth.yml", variables=variables)
    assert run.code == 0, run.end
    assert any("removed leftover pod" in change for change in run.records["bandwidth"]["changes"]), run.records[
        "bandwidth"
    ]["changes"]
    assert lab.objects("v1/Pod", MANAGED) == []
