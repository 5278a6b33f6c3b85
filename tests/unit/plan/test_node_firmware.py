# SPDX-License-Identifier: GPL-3.0-or-later

"""What the host sets in the firmware of a node's HCAs: what is not stored yet, of its own HCAs, and nothing that did
not take before."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware_fleet import (
    collect_fleet as compared,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import LOOKS_ONLY
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    DPU_MODE,
    FirmwareIntent,
    FirmwareSetting,
    NicDevice,
    NicDevices,
    NodeFirmware,
    NodeFirmwarePlan,
    ObservedFirmware,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._plan.nic_templates import ByOperator
from ansible_collections.linerate.rdma.plugins.module_utils._plan.node_firmware import (
    Before,
    OfHost,
    collect_hosts,
    plan_host,
    plan_nodes,
    to_set,
)
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import PAIR, healthy

NODE, ADDRESS = "node-1", "0000:10:00.0"
NOBODY, NOTHING = NicDevices(), FirmwareIntent()
FLEET = healthy(PAIR)


def host(
    *settings: FirmwareSetting,
    wishes: FirmwareIntent = NOTHING,
    nics: NicDevices = NOBODY,
    total: typing.Optional[int] = None,
    **changes: typing.Any,
) -> OfHost:
    """The first node, with other settings of its first HCA, and no others that lack something."""
    fleet = FLEET
    intent = dataclasses.replace(fleet.intent, cluster=dataclasses.replace(fleet.intent.cluster, firmware=wishes))
    facts = fleet.of("platform")
    first = facts.firmware[NODE].value.hcas[0]
    kept = tuple(one for one in first.settings if one.name not in {setting.name for setting in settings})
    firmware = {
        NODE: ObservedFirmware(NodeFirmware((dataclasses.replace(first, settings=(*kept, *settings), **changes),)))
    }
    nodes = {name: observed.value for name, observed in facts.nodes.items()}
    subnets = {name: observed.value for name, observed in facts.subnets.items()}
    memberships = [resolve_members(fabric, nodes, subnets) for fabric in intent.fabrics]
    platform = facts.platforms[NODE].value
    if total is not None:
        functions = tuple(
            dataclasses.replace(one, sriov_total=total) if one.address == ADDRESS else one for one in platform.functions
        )
        platform = dataclasses.replace(platform, functions=functions)
    return plan_host(NODE, memberships, platform, compared(intent, memberships, firmware, nics))


def test_each_node_has_its_part_of_the_plan_and_one_with_nothing_to_do_has_none() -> None:
    lacks = host(FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"), wishes=FirmwareIntent(ats_enabled=False))
    hosts = dict.fromkeys(("free", "pod", "torn", "reset"), lacks)
    before = {
        "torn": Before(error="the mark can't be read"),
        "reset": Before(tuple(one.difference.identity for one in lacks.unmet)),
    }
    operator = ByOperator(cards={"carded": (("t", "c1"), ("t", "c2"))}, notes={"noted": ("left alone",)})
    found = plan_nodes(
        {**hosts, "idle": OfHost(), "carded": OfHost(), "noted": OfHost()}, before, operator, "", ("pod", "idle")
    )
    assert found == {
        "free": NodeFirmwarePlan({ADDRESS: {"ATS_ENABLED": "False"}}),
        "pod": NodeFirmwarePlan(refusal=LOOKS_ONLY),
        "torn": NodeFirmwarePlan(refusal="the mark can't be read"),
        "carded": NodeFirmwarePlan(templates=("t",), cards=("c1", "c2")),
        "noted": NodeFirmwarePlan(notes=("left alone",)),
    }
    assert plan_nodes({"free": lacks}, {}, ByOperator(), "nobody knows", ())["free"] == NodeFirmwarePlan(
        refusal="nobody knows"
    )


def test_of_a_node_that_was_not_looked_at_nothing_is_planned() -> None:
    assert collect_hosts((), {"a": ObservedPlatform(error="unreachable")}, compared(FLEET.intent, (), {}, NOBODY)) == {
        "a": OfHost()
    }


def test_what_is_in_force_is_not_set() -> None:
    found = host()
    assert found.unmet == () and found.asked and to_set(found, ()) == {}


def test_what_the_fabric_needs_and_the_intent_asks_for_is_set_at_once() -> None:
    lacks = (
        FirmwareSetting("SRIOV_EN", "False(0)", "False(0)"),
        FirmwareSetting("NUM_OF_VFS", "0", "0"),
        FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"),
    )
    found = host(*lacks, wishes=FirmwareIntent(num_of_vfs=64, ats_enabled=False), total=0)
    assert to_set(found, ()) == {ADDRESS: {"SRIOV_EN": "True", "NUM_OF_VFS": "64", "ATS_ENABLED": "False"}}, (
        "of two numbers of VFs the larger one"
    )


def test_what_is_stored_waits_and_is_not_set_again() -> None:
    found = host(FirmwareSetting("ATS_ENABLED", "False(0)", "True(1)"), wishes=FirmwareIntent(ats_enabled=False))
    assert [one.stored for one in found.unmet] == [True] and to_set(found, ()) == {}


def test_what_the_next_reset_would_take_away_is_set_back() -> None:
    found = host(FirmwareSetting("ATS_ENABLED", "True(1)", "False(0)"), wishes=FirmwareIntent(ats_enabled=False))
    assert to_set(found, ()) == {ADDRESS: {"ATS_ENABLED": "False"}}


def test_what_did_not_take_at_a_reset_is_not_set_again() -> None:
    found = host(FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"), wishes=FirmwareIntent(ats_enabled=False))
    assert to_set(found, [one.difference.identity for one in found.unmet]) == {}


def test_what_the_firmware_does_not_show_is_left() -> None:
    """MAX_ACC_OUT_READ shows after ADVANCED_PCI_SETTINGS is in force, and a later run sets it."""
    found = host(
        FirmwareSetting("ADVANCED_PCI_SETTINGS", "False(0)", "False(0)"),
        wishes=FirmwareIntent(advanced_pci_settings=True, max_acc_out_read=44),
    )
    assert to_set(found, ()) == {ADDRESS: {"ADVANCED_PCI_SETTINGS": "True"}}


@pytest.mark.parametrize("configured", [True, False])
def test_cards_of_the_operator_are_not_set_by_the_host(configured: bool) -> None:
    nics = NicDevices((NicDevice("card", NODE, (ADDRESS,), configured=configured),))
    assert (
        host(FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"), wishes=FirmwareIntent(ats_enabled=False), nics=nics)
        == OfHost()
    )


def test_a_bluefield_in_dpu_mode_is_not_set_and_one_in_nic_mode_is() -> None:
    lacks, asked = FirmwareSetting("ATS_ENABLED", "True(1)", "True(1)"), FirmwareIntent(ats_enabled=False)
    dpu = host(lacks, FirmwareSetting(DPU_MODE, "ENABLED(0)", "ENABLED(0)"), wishes=asked, device="a2dc")
    assert (
        dpu.unmet == ()
        and "its Arm cores manage ATS_ENABLED, so the host does not change these settings" in dpu.left[0]
    )
    assert to_set(
        host(lacks, FirmwareSetting(DPU_MODE, "DISABLED(1)", "DISABLED(1)"), wishes=asked, device="a2dc"), ()
    ) == {ADDRESS: {"ATS_ENABLED": "False"}}


@hypothesis.given(
    some.sampled_from(["True(1)", "False(0)", None, "?"]), some.sampled_from(["True(1)", "False(0)", None, "?"])
)
@hypothesis.settings(max_examples=examples(16), deadline=None)
def test_nothing_is_set_that_is_stored_or_not_known(
    stored: typing.Optional[str], current: typing.Optional[str]
) -> None:
    found = to_set(host(FirmwareSetting("ATS_ENABLED", stored, current), wishes=FirmwareIntent(ats_enabled=False)), ())
    assert bool(found) is (stored in ("True(1)", "?"))
