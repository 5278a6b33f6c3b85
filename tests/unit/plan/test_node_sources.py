# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the firmware of HCAs waits for a reset, for the roll of nodes: what is wanted and stored, and no more."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.hcas_of_fabric import resolve
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware import fleet as compared
from ansible_collections.linerate.rdma.plugins.module_utils._model.firmware import (
    DPU_MODE,
    FirmwareWishes,
    HcaFirmware,
    NicDevice,
    NicDevices,
    NodeFirmware,
    ObservedFirmware,
    Setting,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node_roll import Seen
from ansible_collections.linerate.rdma.plugins.module_utils._model.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_roll import action_of
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_sources import FIRMWARE, of_firmware
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

NODE, ADDRESS = "node-1", "0000:10:00.0"
ATS = Setting("ATS_ENABLED", "False(0)", "True(1)")
NOBODY = NicDevices()


def seen(setting: typing.Optional[Setting] = None, nics: NicDevices = NOBODY, **changes: typing.Any) -> typing.Optional[Seen]:
    """Of the first node, with a setting of its first HCA and other changes of that one, where the intent asks for ATS off."""
    fleet = healthy(PAIR)
    intent = dataclasses.replace(fleet.intent, cluster=dataclasses.replace(fleet.intent.cluster, firmware=FirmwareWishes(ats_enabled=False)))
    facts = fleet.of("platform")
    first, *rest = facts.firmware[NODE].value.hcas
    kept = tuple(one for one in first.settings if setting is None or one.name != setting.name)
    first = dataclasses.replace(first, **{"settings": (*kept, *([setting] if setting else [])), **changes})
    firmware = {**facts.firmware, NODE: ObservedFirmware(NodeFirmware((first, *rest)))}
    nodes = {name: observed.value for name, observed in facts.nodes.items()}
    memberships = [resolve(fabric, nodes, {name: observed.value for name, observed in facts.subnets.items()}) for fabric in intent.fabrics]
    return of_firmware(NODE, memberships, facts.platforms[NODE], compared(intent, memberships, firmware, nics))


def test_what_is_wanted_and_stored_waits_for_a_power_cycle() -> None:
    found = seen(ATS)
    assert found is not None and found.boots == ("7c4d2f1e",) and found.error == found.blind == ""
    (difference,) = found.differences
    assert (difference.source, difference.key) == (FIRMWARE, f"{ADDRESS} ATS_ENABLED") and action_of(found.differences) == "power_cycle"
    assert "False(0) (now True(1))" in str(difference)


@pytest.mark.parametrize(
    "setting",
    [
        # in force; not set at all; set to what nobody asked for; unknown what is in force
        Setting("ATS_ENABLED", "False(0)", "False(0)"),
        Setting("ATS_ENABLED", "True(1)", "True(1)"),
        Setting("UCTX_EN", "True(1)", "False(0)"),
        Setting("ATS_ENABLED", "False(0)", None),
        # the VFs that are offered prove it, whatever the tool says
        Setting("SRIOV_EN", "True(1)", "False(0)"),
    ],
)
def test_what_no_reset_is_needed_for(setting: Setting) -> None:
    found = seen(setting)
    assert found is not None and found.differences == () and found.error == ""


def test_hcas_on_which_others_decide_are_left_out() -> None:
    nic = NicDevice("nic-1", NODE, (ADDRESS,), configured=True)
    assert getattr(seen(ATS, NicDevices((nic,))), "differences", ()) == ()
    assert getattr(seen(ATS, NicDevices((dataclasses.replace(nic, configured=False),))), "differences", ()) != ()
    dpu = (ATS, Setting(DPU_MODE, "ENABLED(0)", "ENABLED(0)"))
    assert getattr(seen(None, device="a2dc", settings=dpu), "differences", ()) == ()
    assert getattr(seen(None, device="a2dc", settings=(ATS,)), "differences", ()) != ()


def test_a_tool_that_failed_is_no_proof() -> None:
    found = seen(None, settings=(), errors=("mstconfig ended with 3",))
    assert found is not None and "ended with 3" in found.blind and found.differences == ()


@pytest.mark.parametrize("platform", [ObservedPlatform(), ObservedPlatform(error="unreachable")])
def test_a_node_that_was_not_looked_at_is_not_known(platform: ObservedPlatform) -> None:
    fleet = healthy(PAIR)
    found = of_firmware(NODE, [], platform, compared(fleet.intent, [], {}, NicDevices()))
    assert found is not None and "not known" in found.blind


def test_without_a_tool_nothing_is_said() -> None:
    facts = healthy(PAIR).of("platform")
    hcas = NodeFirmware((HcaFirmware(ADDRESS, not_asked=("no mstconfig",)),))
    assert of_firmware(NODE, [], facts.platforms[NODE], compared(healthy(PAIR).intent, [], {NODE: ObservedFirmware(hcas)}, NicDevices())) is None
