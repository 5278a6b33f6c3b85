# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole way of what waits for a reboot, with a real one: seen, planned, set, drained, reset by the BMC, back, and
never again for the same."""

from __future__ import annotations

import json
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import NAME, NAMESPACE
from lab.processes import wait_until

from .conftest import SETTINGS, Lab
from .unavailable_api import kubeconfig_of

PLATFORM, NODE = "playbooks/platform.yml", "worker-2"


def asked(disruption: str, key: str = "iommu") -> dict[str, typing.Any]:
    return {
        "platform_settle": True,
        "rdma_cluster": {**SETTINGS["rdma_cluster"], "bios": {key: True}, "disruption": disruption},
    }


def node_of(lab: Lab, name: str = NODE) -> tuple[str, bool]:
    """Id of the node's boot, and whether it takes pods."""
    (node,) = (item for item in lab.objects("v1/Node") if item["metadata"]["name"] == name)
    return node["status"]["nodeInfo"]["bootID"], not node["spec"].get("unschedulable")


def boots_of(lab: Lab, name: str) -> set[str]:
    """What its kubelet has said of its boots, each with its id."""
    return {
        item["message"]
        for item in lab.objects("v1/Event")
        if item["reason"] == "Rebooted" and item["involvedObject"]["name"] == name
    }


@pytest.mark.thorough
def test_what_differs_in_the_bios_is_brought_about_by_one_reboot(lab: Lab) -> None:
    with lab.fault("iommu-off", worker=NODE):
        before = node_of(lab)
        refused = lab.playbook(PLATFORM, variables=asked("drain"))
        assert refused.code != 0 and node_of(lab) == before, refused.end
        shown = lab.playbook(PLATFORM, "--check", "--diff", variables=asked("reboot"))
        assert "iommu" in shown.output and node_of(lab) == before, shown.end

        done = lab.playbook(PLATFORM, variables=asked("reboot"))
        assert done.code == 0, done.end
        after = node_of(lab)
        assert after[0] != before[0] and after[1]
        # another boot, of which the node itself tells
        assert done.finding("platform", "platform.iommu", NODE)["status"] == "pass"
        assert done.finding("platform", "platform.roll", NODE)["status"] == "pass"
        # its simulated HCAs come a moment after the node is Ready
        assert done.finding("platform", "platform.returned", NODE)["status"] == "pass"
        assert json.loads((lab.folder / "facts/platform" / f"{NODE}.json").read_text())["value"]["iommu_devices"] == [
            "dmar0"
        ]

        again = lab.playbook(PLATFORM, variables=asked("reboot"))
        assert again.code == 0 and node_of(lab) == after, again.end


@pytest.mark.thorough
def test_an_api_server_that_answers_503_in_the_middle_of_a_roll_is_waited_for(lab: Lab) -> None:
    port, closed, kubeconfig = 18643, lab.folder / "closed", lab.folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(kubeconfig_of(port)))
    way = (sys.executable, "-m", "tests.lab.unavailable_api", ".lab/pki/admin.kubeconfig", str(port), str(closed))
    with lab.fault("iommu-off", worker=NODE), lab.background(*way, said="ready"):
        before = node_of(lab)
        with lab.running(PLATFORM, variables=asked("reboot"), kubeconfig=str(kubeconfig)) as playbook:
            # it was reset, and is waited for
            playbook.await_text(f"{NODE}: still up")
            closed.touch()
            playbook.await_text("the API server does not respond")
            closed.unlink()
            done = playbook.wait()
        assert done.code == 0, done.end
        assert "the API server responds again" in done.output
        assert done.finding("platform", "platform.roll", NODE)["status"] == "pass"
        after = node_of(lab)
        assert after[0] != before[0] and after[1]


@pytest.mark.thorough
def test_a_setting_that_does_not_take_is_told_and_not_tried_again(lab: Lab) -> None:
    with lab.fault("sriov-off", worker=NODE), lab.fault("bios-stubborn", worker=NODE):
        before = node_of(lab)
        done = lab.playbook(PLATFORM, variables=asked("reboot", "sriov"))
        after = node_of(lab)
        assert done.code != 0 and after[0] != before[0] and after[1], done.end
        assert "did not take" in str(done.finding("platform", "platform.roll", NODE))

        again = lab.playbook(PLATFORM, variables=asked("reboot", "sriov"))
        assert again.code != 0 and node_of(lab) == after, again.end
        assert "not reset again" in str(again.finding("platform", "platform.roll", NODE))


@pytest.mark.thorough
def test_bios_and_kernel_arguments_take_one_reboot(lab: Lab) -> None:
    # worker-2 is reached by an observer, which sets nothing
    node, argument = "worker-1", "transparent_hugepage=madvise"
    asked_for = asked("reboot", "sriov")
    asked_for["rdma_cluster"]["host"] = {"kernel_arguments": [argument]}
    try:
        with lab.fault("sriov-off", worker=node):
            before, boots = node_of(lab, node), boots_of(lab, node)
            shown = lab.playbook(PLATFORM, "--check", "--diff", variables=asked_for)
            assert argument in shown.output and "BIOS sriov" in shown.output and node_of(lab, node) == before, shown.end

            done = lab.playbook(PLATFORM, variables=asked_for)
            assert done.finding("platform", "platform.roll", node)["status"] == "pass", done.end
            assert done.finding("platform", "platform.returned", node)["status"] == "pass"
            assert argument in lab.command("on", node, "cat /proc/cmdline").stdout
            # what the argument sets in the kernel
            assert "[madvise]" in lab.command("on", node, "cat /sys/kernel/mm/transparent_hugepage/enabled").stdout
            after = node_of(lab, node)
            assert after[0] != before[0] and after[1] and len(boots_of(lab, node) - boots) == 1

            again = lab.playbook(PLATFORM, variables=asked_for)
            assert (
                again.finding("platform", "platform.roll", node)["status"] == "pass" and node_of(lab, node) == after
            ), again.end
            # the other one is told, and left as it is
            assert "observer" in str(again.finding("platform", "platform.roll", NODE))
    finally:
        lab.command("on", node, f"grubby --update-kernel=ALL --remove-args={argument}; rm -rf /etc/linerate-rdma")


@pytest.mark.thorough
def test_two_exchanged_bmcs_are_refused_and_nobody_is_reset(lab: Lab) -> None:
    """Both answer, with certificates that are right for their addresses."""
    names = ("worker-1", NODE)
    with lab.fault("sriov-off", worker=NODE):
        before = {name: node_of(lab, name) for name in names}
        own = {"worker-1": "10.78.0.111", NODE: "10.78.0.112"}
        exchanged = {"lab_bmcs": {"worker-1": own[NODE], NODE: own["worker-1"]}}
        done = lab.playbook(PLATFORM, variables={**asked("reboot", "sriov"), **exchanged})
        assert done.code != 0 and {name: node_of(lab, name) for name in names} == before, done.end
        for name in names:
            found = done.finding("platform", "platform.bmc_identity", f"{name} BMC")
            assert found["status"] == "fail" and "a different machine" in found["why"]
            assert done.finding("platform", "platform.roll", name)["status"] == "unknown"
        # the BIOS is as it was: with the right addresses it still differs
        shown = lab.playbook(PLATFORM, "--check", variables=asked("reboot", "sriov"))
        assert (
            "sriov" in shown.output
            and shown.finding("platform", "platform.bmc_identity", f"{NODE} BMC")["status"] == "pass"
        ), shown.end


@pytest.mark.thorough
def test_a_roll_whose_lease_is_deleted_resets_nobody(lab: Lab) -> None:
    """While the node is drained of a pod that takes its time to end."""
    labels = {"app": "slow-to-end"}
    command = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    container = {"name": "slow", "image": "localhost/rdma-tools:1", "imagePullPolicy": "Never", "command": command}
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "terminationGracePeriodSeconds": 90,
        "containers": [container],
    }
    slow = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "slow-to-end", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }

    def runs() -> bool:
        return any(item["status"].get("phase") == "Running" for item in lab.objects("v1/Pod", "app=slow-to-end"))

    with lab.fault("sriov-off", worker=NODE), lab.present(slow):
        assert wait_until(runs, 120)
        before = node_of(lab)
        with lab.running(PLATFORM, variables=asked("reboot", "sriov")) as playbook:
            assert wait_until(lambda: not node_of(lab)[1], 600), "it is cordoned"
            lab.delete(
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": NAME, "namespace": NAMESPACE},
                }
            )
            done = playbook.wait()
        assert done.code != 0 and "lost its Lease on this cluster" in done.output, done.end
        # nothing was undone either: the next run takes it up
        assert node_of(lab) == (before[0], False)
        again = lab.playbook(PLATFORM, variables=asked("reboot", "sriov"))
        assert again.finding("platform", "platform.roll", NODE)["status"] == "pass" and node_of(lab)[1], again.end
        assert node_of(lab)[0] != before[0]
