# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults, injected for real: each ends its stage with a finding of its own and a non-zero exit, and is gone when it is taken back."""

from __future__ import annotations

import time
import typing

import pytest

from .conftest import MANAGED, SETTINGS, Lab

PODS_SECONDS = 180


def intent(**changes: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """The lab's fabrics with keys of ``storage`` replaced."""
    return [{**fabric, **changes} if fabric["name"] == "storage" else fabric for fabric in SETTINGS["rdma_fabrics"]]


def test_killed_subnet_managers_are_no_master(lab: Lab) -> None:
    with lab.fault("sm-killed", fabric="fabric-1"):
        run = lab.playbook("playbooks/fabric.yml")
    assert run.code != 0
    failed = run.findings("fabric", "fail", "unknown")
    assert any(finding["check"] == "fabric.one_master" for finding in failed), run.output
    assert all(finding["remedy"] for finding in failed)


def test_a_port_that_is_down_is_named_with_its_cause(lab: Lab) -> None:
    """Stage discover does not know yet which fabric the port belongs to, so it warns; stage fabric misses it."""
    with lab.fault("link-cut", worker="worker-1", device="mlx5_0"):
        discovered = lab.playbook("playbooks/discover.yml")
        run = lab.playbook("playbooks/fabric.yml")
    finding = discovered.finding("discover", "discover.port", "worker-1 mlx5_0 port 1")
    assert finding["status"] == "warn"
    assert "DOWN" in finding["measured"] and "Polling" in finding["measured"]
    assert run.code != 0
    (failed,) = [item for item in run.findings("fabric", "fail") if item["check"] == "fabric.hcas"]
    assert "worker-1" in failed["subject"] and "mlx5_0" in failed["measured"] + failed["why"]


def test_a_server_that_cannot_be_pinged_is_told_from_a_client_that_cannot_ping(lab: Lab) -> None:
    with lab.fault("ibping-unreachable", worker="worker-2", device="mlx5_1"):
        run = lab.playbook("playbooks/reachability.yml")
    assert run.code != 0
    subjects = {finding["subject"] for finding in run.findings("reachability", "fail", "unknown")}
    assert subjects and all("mlx5_1" in subject for subject in subjects), subjects
    assert any("worker-2" in subject for subject in subjects)


NO_SUCH_NIC = {"hcas_per_node": 1, "vendor": "8086", "device": "1583", "netdev": ["eth1"]}


def test_a_policy_that_selects_no_nic_is_held_back_with_the_nearest_match(lab: Lab) -> None:
    run = lab.playbook("playbooks/network.yml", variables={"rdma_fabrics": intent(select=NO_SUCH_NIC), "rdma_waivers": []})
    assert run.code != 0
    finding = run.finding("network", "network.lint_select", "storage worker-1")
    assert finding["status"] == "fail"
    assert "nearest is eth1" in finding["why"] and "deviceID is 10c9, the policy asks for 1583" in finding["why"]
    assert run.finding("network", "network.policy_accepted", "storage")["status"] == "skipped"
    assert not any("storage" in change for change in run.records["network"]["changes"])


def test_a_policy_that_selects_no_nic_is_refused_with_the_webhooks_words_when_the_linter_is_waived(lab: Lab) -> None:
    waiver = {"check": "network.lint_*", "subject": "storage*", "reason": "the webhook shall judge"}
    run = lab.playbook("playbooks/network.yml", variables={"rdma_fabrics": intent(select=NO_SUCH_NIC), "rdma_waivers": [waiver]})
    assert run.code != 0
    refused = run.finding("network", "network.policy_accepted", "storage SriovNetworkNodePolicy linerate-storage")
    assert refused["status"] == "fail"
    assert "no supported NIC is selected by the nicSelector" in refused["measured"]


def test_a_vf_that_loses_its_link_fails_the_measurement_and_leaves_no_pod(lab: Lab) -> None:
    process = lab.start_playbook("playbooks/bandwidth.yml")
    try:
        deadline = time.monotonic() + PODS_SECONDS
        while len(pods := [pod for pod in lab.objects("v1/Pod", MANAGED) if pod["status"]["phase"] == "Running"]) < 2:
            assert process.poll() is None, lab.wait(process).output
            assert time.monotonic() < deadline, f"no two pods after {PODS_SECONDS} s: {pods}"
            time.sleep(0.2)
        with lab.fault("vf-down", worker="worker-2"):
            run = lab.wait(process)
    finally:
        process.kill()
    assert run.code != 0
    assert any(finding["check"] in ("bandwidth.rping", "bandwidth.measured") for finding in run.findings("bandwidth", "fail", "unknown")), run.output
    assert lab.objects("v1/Pod", MANAGED) == []


@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/validate.yml"])
def test_a_wrong_type_is_refused_before_any_host_is_touched(lab: Lab, playbook: str) -> None:
    # every way to a host leads through this program, which leaves a mark
    mark = lab.folder / "touched"
    ssh = lab.folder / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {mark}\nexit 255\n")
    ssh.chmod(0o755)
    run = lab.playbook(playbook, variables={"rdma_fabrics": intent(virtual_functions="four"), "ansible_ssh_executable": str(ssh)})
    assert run.code != 0
    assert "rdma_fabrics[1].virtual_functions" in run.output
    assert "'four'" in run.output and "integer" in run.output
    assert not mark.exists()
    if playbook == "site.yml":
        assert (lab.folder / "report.html").is_file()
