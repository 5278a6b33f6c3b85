# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the firmware of HCAs waits for a reset, for the roll of nodes: what is wanted and stored, and no more."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware_fleet import (
    collect_fleet as compared,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.node_roll import NodeDifferences
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    DPU_MODE,
    FirmwareChange,
    FirmwareIntent,
    FirmwareSet,
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    NicDevices,
    NodeFirmware,
    ObservedFirmware,
    ObservedFirmwareSet,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_firmware import FIRMWARE
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_sources import look_at_firmware
from ansible_collections.linerate.rdma.plugins.module_utils._plan.rolls.node_steps import choose_action
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

NODE, ADDRESS = "node-1", "0000:10:00.0"
ATS = FirmwareSetting("ATS_ENABLED", "False(0)", "True(1)")
NOBODY = NicDevices()


def seen(
    setting: typing.Optional[FirmwareSetting] = None,
    nics: NicDevices = NOBODY,
    told: typing.Optional[ObservedFirmwareSet] = None,
    **changes: typing.Any,
) -> typing.Optional[NodeDifferences]:
    """Of the first node, with a setting of its first HCA and other changes of that one, where the intent asks for ATS
    off."""
    fleet = healthy(PAIR)
    intent = dataclasses.replace(
        fleet.intent, cluster=dataclasses.replace(fleet.intent.cluster, firmware=FirmwareIntent(ats_enabled=False))
    )
    facts = fleet.of("platform")
    first, *rest = facts.firmware[NODE].value.hcas
    kept = tuple(one for one in first.settings if setting is None or one.name != setting.name)
    first = dataclasses.replace(first, **{"settings": (*kept, *([setting] if setting else [])), **changes})
    firmware = {**facts.firmware, NODE: ObservedFirmware(NodeFirmware((first, *rest)))}
    nodes = {name: observed.value for name, observed in facts.nodes.items()}
    memberships = [
        resolve_members(fabric, nodes, {name: observed.value for name, observed in facts.subnets.items()})
        for fabric in intent.fabrics
    ]
    return look_at_firmware(
        NODE, memberships, facts.platforms[NODE], compared(intent, memberships, firmware, nics), told
    )


def made(refusal: str = "", **after: str) -> ObservedFirmwareSet:
    """What nic_firmware made of the first HCA."""
    return ObservedFirmwareSet(FirmwareSet((FirmwareChange(ADDRESS, "1021", {}, after),), refusal))


def test_what_is_wanted_and_stored_waits_for_a_power_cycle() -> None:
    found = seen(ATS)
    assert found is not None and found.boots == ("boot-node-1",) and found.error == found.blind == ""
    (difference,) = found.differences
    assert (difference.source, difference.key) == (FIRMWARE, f"{ADDRESS} ATS_ENABLED") and choose_action(
        found.differences
    ) == "power_cycle"
    assert "False (now True(1)), waits for a reset" in f"{difference}, {difference.how}"


@pytest.mark.parametrize(
    "setting",
    [
        # in force; not set at all; set to what nobody asked for; unknown what is in force
        FirmwareSetting("ATS_ENABLED", "False(0)", "False(0)"),
        FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"),
        FirmwareSetting("UCTX_EN", "True(1)", "False(0)"),
        FirmwareSetting("ATS_ENABLED", "False(0)", None),
        # the VFs that are offered prove it, whatever the tool says
        FirmwareSetting("SRIOV_EN", "True(1)", "False(0)"),
    ],
)
def test_what_no_reset_is_needed_for(setting: FirmwareSetting) -> None:
    found = seen(setting)
    assert found is not None and found.differences == () and found.error == ""


def test_hcas_on_which_others_decide_are_left_out() -> None:
    nic = NicDevice("nic-1", NODE, (ADDRESS,), configured=True)
    assert getattr(seen(ATS, NicDevices((nic,))), "differences", ()) == ()
    # each one of which it has a NicDevice is the operator's own
    assert getattr(seen(ATS, NicDevices((dataclasses.replace(nic, configured=False),))), "differences", ()) == ()
    assert getattr(seen(ATS, NicDevices((dataclasses.replace(nic, ports=("0000:77:00.0",)),))), "differences", ()) != ()
    dpu = (ATS, FirmwareSetting(DPU_MODE, "ENABLED(0)", "ENABLED(0)"))
    assert getattr(seen(None, device="a2dc", settings=dpu), "differences", ()) == ()
    assert getattr(seen(None, device="a2dc", settings=(ATS,)), "differences", ()) != ()


def test_a_tool_that_failed_is_no_proof() -> None:
    found = seen(None, settings=(), errors=("mstconfig ended with 3",))
    assert found is not None and "ended with 3" in found.blind and found.differences == ()


@pytest.mark.parametrize("platform", [ObservedPlatform(), ObservedPlatform(error="unreachable")])
def test_a_node_that_was_not_looked_at_is_not_known(platform: ObservedPlatform) -> None:
    fleet = healthy(PAIR)
    found = look_at_firmware(NODE, [], platform, compared(fleet.intent, [], {}, NicDevices()))
    assert found is not None and "the firmware of the HCAs is unknown" in found.blind


def test_without_a_tool_nothing_is_said() -> None:
    facts = healthy(PAIR).of("platform")
    hcas = NodeFirmware((HcaFirmware(ADDRESS, not_asked=("no mstconfig",)),))
    assert (
        look_at_firmware(
            NODE,
            [],
            facts.platforms[NODE],
            compared(healthy(PAIR).intent, [], {NODE: ObservedFirmware(hcas)}, NicDevices()),
        )
        is None
    )


NOT_SET = FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)")


def test_what_nobody_has_set_is_no_reason_for_a_reset() -> None:
    found = seen(NOT_SET)
    assert (
        found is not None and found.differences == () and [one.key for one in found.unset] == [f"{ADDRESS} ATS_ENABLED"]
    )


def test_what_would_be_set_in_check_mode_takes_the_reset() -> None:
    found = seen(NOT_SET, told=made(ATS_ENABLED="0"))
    assert found is not None and found.unset == () and found.refusals == ()
    assert [(one.key, one.needs, one.how) for one in found.differences] == [
        (f"{ADDRESS} ATS_ENABLED", "power_cycle", "set on the node")
    ]


def test_the_same_difference_before_and_after_it_was_set() -> None:
    before, stored, fell_back = seen(NOT_SET, told=made(ATS_ENABLED="0")), seen(ATS), seen(NOT_SET)
    assert before and stored and fell_back
    assert before.differences[0].identity == stored.differences[0].identity == fell_back.unset[0].identity


@pytest.mark.parametrize(
    "told",
    [
        made("an observer does not change its node"),
        ObservedFirmwareSet(error="failed: mstconfig ended with 3"),
        ObservedFirmwareSet(),
    ],
)
def test_what_can_not_be_set_keeps_its_node_out_with_the_reason(told: ObservedFirmwareSet) -> None:
    found = seen(NOT_SET, told=told)
    assert found is not None and found.unset == () and len(found.differences) == 1
    (refusal,) = found.refusals
    assert any(word in refusal for word in ("an observer does not change its node", "ended with 3", "no data"))


def test_firmware_that_does_not_say_what_is_in_force_needs_a_reset_once() -> None:
    silent = FirmwareSetting("ATS_ENABLED", "False(0)", None)
    found = seen(silent, told=made(ATS_ENABLED="0"))
    assert found is not None and "now unknown" in str(found.differences[0])
    assert getattr(seen(silent), "differences", None) == ()


def test_what_the_next_reset_takes_away_needs_none() -> None:
    found = seen(FirmwareSetting("ATS_ENABLED", "True(1)", "False(0)"), told=made(ATS_ENABLED="0"))
    assert found is not None and found.differences == found.unset == ()


def test_what_was_set_and_can_not_be_seen_is_unknown() -> None:
    facts = healthy(PAIR).of("platform")
    found = look_at_firmware(
        NODE, [], facts.platforms[NODE], compared(healthy(PAIR).intent, [], {}, NicDevices()), made(ATS_ENABLED="0")
    )
    assert found is not None and "the firmware of the HCAs is unknown" in found.error


def test_a_bluefield_in_dpu_mode_is_told_and_left() -> None:
    found = seen(None, device="a2dc", settings=(NOT_SET, FirmwareSetting(DPU_MODE, "ENABLED(0)", "ENABLED(0)")))
    assert found is not None and found.differences == found.unset == () and not found.refusals
    assert found.notes == (
        f"{ADDRESS} is a BlueField in DPU mode: its Arm cores manage ATS_ENABLED, so the host does not change these"
        " settings",
    )
