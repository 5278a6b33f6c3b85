# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole way of a setting of the BIOS, with a real reboot: seen, planned, set, drained, reset by the BMC, back, and never again for the same."""

from __future__ import annotations

import json
import typing

import pytest

from .conftest import SETTINGS, Lab

PLATFORM, NODE = "playbooks/platform.yml", "worker-2"


def asked(disruption: str, key: str = "iommu") -> typing.Dict[str, typing.Any]:
    return {"platform_settle": True, "rdma_cluster": {**SETTINGS["rdma_cluster"], "bios": {key: True}, "disruption": disruption}}


def node_of(lab: Lab) -> typing.Tuple[str, bool]:
    """Id of the node's boot, and whether it takes pods."""
    (node,) = (item for item in lab.objects("v1/Node") if item["metadata"]["name"] == NODE)
    return node["status"]["nodeInfo"]["bootID"], not node["spec"].get("unschedulable")


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
        assert json.loads((lab.folder / "facts/platform" / f"{NODE}.json").read_text())["value"]["iommu_devices"] == ["dmar0"]

        again = lab.playbook(PLATFORM, variables=asked("reboot"))
        assert again.code == 0 and node_of(lab) == after, again.end


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
