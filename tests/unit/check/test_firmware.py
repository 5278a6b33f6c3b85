# SPDX-License-Identifier: GPL-3.0-or-later

"""platform.firmware by what mstconfig, devlink and NVIDIA's operator say: a reset that is due, a setting that is wrong,
the one that differs."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import Member, Membership
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform import firmware_fleet
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    DPU_MODE,
    FirmwareIntent,
    FirmwareSetting,
    HcaFirmware,
    NicDevice,
    NicDevices,
    NodeFirmware,
    ObservedFirmware,
    ReportedSetting,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import FEW, PAIR, Fleet, healthy

NODE, ADDRESS, SUBJECT = "node-1", "0000:10:00.0", "node-1 mlx5_0"
Change = typing.Callable[[HcaFirmware], HcaFirmware]


def of(fleet: Fleet, kind: str) -> typing.Any:
    return next(value for source, value in fleet.facts.items() if getattr(source, "kind", "") == kind)


def judged(fleet: Fleet, **facts: typing.Any) -> list[Finding]:
    """Findings about firmware that are no pass, with some facts of stage platform in place of those of the fleet."""
    return [finding for finding in everything(fleet, **facts) if finding.status != "pass"]


def everything(fleet: Fleet, **facts: typing.Any) -> list[Finding]:
    seen = dataclasses.replace(fleet.of("platform"), **facts)
    return [finding for finding in check(fleet.intent, seen) if finding.check == "platform.firmware"]


def with_first(fleet: Fleet, change: Change) -> dict[str, ObservedFirmware]:
    """The firmware of all nodes, that of the first HCA of the first one changed."""
    seen = dict(of(fleet, "firmware"))
    first, *rest = seen[NODE].value.hcas
    return {**seen, NODE: ObservedFirmware(NodeFirmware((change(first), *rest)))}


def settings(**values: tuple[typing.Optional[str], typing.Optional[str]]) -> Change:
    """Settings with the value in force and the next one; they replace those of their names."""

    def change(hca: HcaFirmware) -> HcaFirmware:
        new = tuple(FirmwareSetting(name, later, now) for name, (now, later) in values.items())
        return dataclasses.replace(hca, settings=(*(item for item in hca.settings if item.name not in values), *new))

    return change


def without_vfs(fleet: Fleet) -> dict[str, typing.Any]:
    """The first HCA offers no VF."""
    hcas = dict(of(fleet, "hcas"))
    first, *rest = hcas[NODE].value.hcas
    hcas[NODE] = ObservedHcas(
        dataclasses.replace(hcas[NODE].value, hcas=(dataclasses.replace(first, sriov=None, sriov_absence="off"), *rest))
    )
    platforms = dict(of(fleet, "platform"))
    function, *others = platforms[NODE].value.functions
    blind = dataclasses.replace(function, sriov_total=None, sriov_current=None, capability=None, memory=None)
    platforms[NODE] = dataclasses.replace(
        platforms[NODE], value=dataclasses.replace(platforms[NODE].value, functions=(blind, *others))
    )
    return {"nodes": hcas, "platforms": platforms}


def wishing(fleet: Fleet, **wishes: typing.Any) -> Fleet:
    cluster = dataclasses.replace(fleet.intent.cluster, firmware=FirmwareIntent(**wishes))
    return dataclasses.replace(fleet, intent=dataclasses.replace(fleet.intent, cluster=cluster))


def test_all_is_told_where_nothing_is_wrong() -> None:
    fleet = healthy(PAIR)
    first = everything(fleet)[0]
    assert (first.status, first.subject) == ("pass", SUBJECT)
    assert (
        "same as 8 of 8 of its model" in first.measured
        and "settings from mstconfig 4.21" in first.measured
        and "no setting is waiting for a reset" in first.expected
    )


def test_without_tools_what_runs_decides() -> None:
    fleet = healthy(PAIR)
    for seen in (
        {},
        {NODE: ObservedFirmware(error="failed: no python")},
        with_first(fleet, lambda hca: HcaFirmware(hca.address, not_asked=("no mstconfig",))),
    ):
        first = everything(fleet, firmware=seen)[0]
        assert first.status == "pass" and "any stored settings, because they are not reported" in first.expected


@pytest.mark.parametrize(
    ("vendor", "stored", "remedy"),
    [
        ("8086", "7.3.4", ""),
        ("8086", "7.3.5", "devlink dev info pci/0000:10:00.0"),
        ("14e4", "7.3.5", "Drain the node and power-cycle it."),
    ],
)
def test_version_of_a_nic_of_another_vendor_is_not_compared_with_sysfs_and_has_no_tool_of_nvidia(
    vendor: str, stored: str, remedy: str
) -> None:
    """sysfs shows 28.43.1014, which is the version of another part on these NICs."""
    fleet = healthy(PAIR)
    nodes = dict(of(fleet, "hcas"))
    first, *rest = nodes[NODE].value.hcas
    first = dataclasses.replace(first, pci=dataclasses.replace(first.pci, vendor=vendor))
    nodes[NODE] = ObservedHcas(dataclasses.replace(nodes[NODE].value, hcas=(first, *rest)))
    firmware = with_first(
        fleet,
        lambda hca: dataclasses.replace(
            hca, running=ReportedSetting("7.3.4", "devlink"), stored=ReportedSetting(stored, "devlink")
        ),
    )
    found = [item for item in judged(fleet, nodes=nodes, firmware=firmware) if "7.3.4" in item.measured]
    assert bool(found) == bool(remedy)
    assert all(remedy in item.remedy and "mst" not in item.remedy for item in found)


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        # what the next reset takes away is there now
        (settings(SRIOV_EN=("True(1)", "False(0)")), "warn", "SRIOV_EN changes to False(0) at the next reset"),
        (settings(NUM_OF_VFS=("16", "1")), "warn", "NUM_OF_VFS changes to 1 at the next reset"),
        # enough VFs are offered, whatever the tool says is in force; that it differs from the others is told all the
        # same
        (settings(NUM_OF_VFS=("4", "16")), "warn", "NUM_OF_VFS is 16 on 7 of 8 HCAs of its model"),
        (
            settings(LINK_TYPE_P1=("ETH(2)", "IB(1)")),
            "fail",
            "LINK_TYPE_P1 is ETH(2) until the HCA is reset (reset pending). The firmware has stored IB(1)",
        ),
        (settings(LINK_TYPE_P1=("IB(1)", "ETH(2)")), "warn", "LINK_TYPE_P1 changes to ETH(2)"),
        (
            settings(LINK_TYPE_P1=("ETH(2)", "ETH(2)")),
            "fail",
            "LINK_TYPE_P1 is ETH(2), but the fabric 'compute' requires IB",
        ),
        (
            settings(LINK_TYPE_P1=("ETH(2)", None)),
            "unknown",
            "LINK_TYPE_P1 is ETH(2) now. Its value after the next reset was not reported",
        ),
        (
            lambda hca: dataclasses.replace(
                hca,
                running=ReportedSetting("28.43.1014", "devlink"),
                stored=ReportedSetting("28.43.1014", "devlink"),
            ),
            "warn",
            "devlink and the driver report different versions",
        ),
        (settings(BOOT_VLAN=("1", "2")), "warn", "They take effect at the next reset (reset pending)"),
        (lambda hca: dataclasses.replace(hca, errors=("mstconfig ended with 3",)), "warn", "mstconfig ended with 3"),
        (
            lambda hca: dataclasses.replace(hca, stored=ReportedSetting("28.43.1014", "devlink")),
            "warn",
            "28.43.1014 is stored in the flash (devlink), but version 28.42.1000 is running",
        ),
    ],
)
def test_what_waits_and_what_is_wrong(change: Change, status: str, why: str) -> None:
    (finding,) = judged(healthy(PAIR), firmware=with_first(healthy(PAIR), change))
    assert (finding.subject, finding.status) == (SUBJECT, status) and why in finding.why and finding.remedy


@pytest.mark.parametrize("setting", ["VPI(3)", "IB(1)"])
def test_a_port_that_takes_both_links_is_right(setting: str) -> None:
    assert judged(healthy(PAIR), firmware=with_first(healthy(PAIR), settings(LINK_TYPE_P1=(setting, setting)))) == []


def test_of_two_ports_the_function_has_its_own() -> None:
    """Function 0 has the first one, and the other may have another link."""
    assert judged(healthy(PAIR), firmware=with_first(healthy(PAIR), settings(LINK_TYPE_P2=("ETH(2)", "ETH(2)")))) == []


@pytest.mark.parametrize(
    ("now", "later", "text", "remedy"),
    [
        (
            "False(0)",
            "False(0)",
            "In the firmware, SRIOV_EN is False(0)",
            "mstconfig -d 0000:10:00.0 -y set SRIOV_EN=True",
        ),
        (
            "False(0)",
            "True(1)",
            "SRIOV_EN is False(0) until the HCA is reset (reset pending). The firmware has stored True(1)",
            "mstfwreset -d 0000:10:00.0 -y reset",
        ),
        (None, "False(0)", "In the firmware, SRIOV_EN is False(0)", "power-cycle"),
    ],
)
def test_without_vfs_the_setting_is_named(now: typing.Optional[str], later: str, text: str, remedy: str) -> None:
    fleet = healthy(PAIR)
    (finding,) = judged(fleet, firmware=with_first(fleet, settings(SRIOV_EN=(now, later))), **without_vfs(fleet))
    assert finding.status == "fail" and text in finding.why and remedy in finding.remedy


def test_vfs_of_each_function_count_where_the_firmware_has_them() -> None:
    fleet = healthy(PAIR)
    each = settings(PF_NUM_OF_VF_VALID=("True(1)", "True(1)"), NUM_OF_VFS=("0", "0"), PF_NUM_OF_VF=("1", "1"))
    (finding,) = judged(fleet, firmware=with_first(fleet, each), **without_vfs(fleet))
    assert "PF_NUM_OF_VF is 1, but the fabric 'compute' requires 2" in finding.why


def test_a_wish_of_the_intent_that_is_not_met_fails() -> None:
    fleet = wishing(healthy(PAIR), ats_enabled=True, num_of_vfs=32)
    finding, *others = judged(fleet)
    assert (
        finding.status == "fail"
        and "ATS_ENABLED is False(0), but the intent requires True (rdma_cluster.firmware)" in finding.why
        and len(others) == 7
    )
    assert "NUM_OF_VFS is 16, but the intent requires 32" in finding.why
    assert judged(wishing(healthy(PAIR), ats_enabled=False, num_of_vfs=16)) == []


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({}, "no firmware tool was queried"),
        ({NODE: ObservedFirmware(error="failed: no python")}, "no firmware tool was queried"),
        ("not asked", "mstconfig is not installed"),
        ("no setting", "mstconfig 4.21 does not report the setting"),
        ("no value", "mstconfig 4.21 does not report the setting"),
    ],
)
def test_a_wish_that_no_tool_has_read_is_unknown(seen: typing.Any, why: str) -> None:
    fleet = wishing(healthy(PAIR), ats_enabled=False, num_of_vfs=16)
    if seen == "not asked":
        seen = with_first(fleet, lambda hca: HcaFirmware(hca.address, not_asked=("mstconfig is not installed",)))
    elif seen == "no setting":
        seen = with_first(
            fleet,
            lambda hca: dataclasses.replace(
                hca, settings=tuple(item for item in hca.settings if item.name != "ATS_ENABLED")
            ),
        )
    elif seen == "no value":
        seen = with_first(fleet, settings(ATS_ENABLED=(None, None)))
    finding = judged(fleet, firmware=seen)[0]
    assert (finding.subject, finding.status, finding.measured) == (SUBJECT, "unknown", "ATS_ENABLED not read")
    assert why in finding.why and "mstconfig -d 0000:10:00.0 -e query ATS_ENABLED" in finding.remedy


def test_a_wish_that_waits_for_a_reset_fails_and_more_vfs_than_are_read_are_unknown() -> None:
    fleet = wishing(healthy(PAIR), ats_enabled=False)
    (finding,) = judged(fleet, firmware=with_first(fleet, settings(ATS_ENABLED=("True(1)", "False(0)"))))
    assert finding.status == "fail" and "reset pending" in finding.why
    # 16 are offered, which no tool need say
    assert {finding.status for finding in everything(wishing(healthy(PAIR), num_of_vfs=16), firmware={})} == {"pass"}
    assert {finding.measured for finding in judged(wishing(healthy(PAIR), num_of_vfs=32), firmware={})} == {
        "NUM_OF_VFS not read"
    }


def test_a_stored_wish_whose_value_in_force_is_not_reported_is_unknown() -> None:
    """Losing a fact never makes a run green: with the value in force True(1) the same HCA fails."""
    fleet = wishing(healthy(PAIR), ats_enabled=False)
    (finding,) = judged(fleet, firmware=with_first(fleet, settings(ATS_ENABLED=(None, "False(0)"))))
    assert (finding.subject, finding.status) == (SUBJECT, "unknown")
    assert finding.measured == "ATS_ENABLED False(0) stored, value in force not reported"
    assert finding.expected == "ATS_ENABLED False in force"
    assert "mstconfig 4.21 does not report the value in force" in finding.why
    assert "mstfwreset -d 0000:10:00.0 -y reset" in finding.remedy and "waive this finding" in finding.remedy


def test_what_sysfs_shows_of_a_wish_needs_no_value_in_force() -> None:
    fleet = wishing(healthy(PAIR), num_of_vfs=16)
    seen = settings(
        SRIOV_EN=(None, "True(1)"),
        NUM_OF_VFS=(None, "16"),
        LINK_TYPE_P1=(None, "IB(1)"),
        ATS_ENABLED=(None, "False(0)"),
    )
    assert judged(fleet, firmware=with_first(fleet, seen)) == []
    (finding,) = judged(
        wishing(healthy(PAIR), num_of_vfs=32), firmware={**with_first(fleet, settings(NUM_OF_VFS=(None, "32")))}
    )[:1]
    assert (finding.subject, finding.status) == (SUBJECT, "unknown") and "NUM_OF_VFS 32 stored" in finding.measured


def test_the_odd_one_is_named_with_what_is_usual() -> None:
    fleet = healthy(FEW)
    (finding,) = judged(fleet, firmware=with_first(fleet, settings(ATS_ENABLED=("True(1)", "True(1)"))))
    assert finding.subject == SUBJECT and finding.status == "warn" and finding.measured == "ATS_ENABLED True(1)"
    # the other model is another matter
    assert "ATS_ENABLED is False(0) on 5 of 6 HCAs of its model" in finding.why and "ATS_ENABLED=0" in finding.remedy


def test_a_bluefield_in_dpu_mode_is_told_and_left_alone() -> None:
    fleet = healthy(PAIR)

    def bluefield(hca: HcaFirmware) -> HcaFirmware:
        mode = FirmwareSetting(DPU_MODE, "ENABLED(0)", "ENABLED(0)")
        return dataclasses.replace(
            hca, device="a2dc", settings=(*(item for item in hca.settings if item.name != "LINK_TYPE_P1"), mode)
        )

    def told(hca: HcaFirmware) -> HcaFirmware:
        return settings(LINK_TYPE_P1=("ETH(2)", "ETH(2)"))(bluefield(hca))

    assert "a BlueField in DPU mode" in everything(fleet, firmware=with_first(fleet, bluefield))[0].measured
    (finding,) = judged(fleet, firmware=with_first(fleet, told))
    assert (
        "on its Arm cores, never on the host" in finding.remedy
        and ("Drain the node and power-cycle it. Do not use mstfwreset, which may return a BlueField to DPU mode.")
        in finding.remedy
    )


def card(**more: typing.Any) -> NicDevices:
    return NicDevices((NicDevice("card", f"{NODE}.example.com", (ADDRESS,), "MT_0000000838", "28.42.1000", **more),))


def test_what_the_operator_of_nvidia_says() -> None:
    fleet = healthy(PAIR)
    assert "NicDevice card" in everything(fleet, nics=card())[0].measured
    (pending,) = judged(fleet, nics=card(configured=True, waits="PendingReboot", message="node must boot"))
    assert (
        pending.status == "warn"
        and "PendingReboot (node must boot)" in pending.why
        and "kubectl describe nicdevice" in pending.remedy
    )
    wrong = with_first(fleet, settings(LINK_TYPE_P1=("ETH(2)", "ETH(2)")))
    (finding,) = judged(fleet, nics=card(configured=True), firmware=wrong)
    assert (
        "Set LINK_TYPE_P1=IB in the NicConfigurationTemplate of NicDevice card" in finding.remedy
        and "mstconfig" not in finding.remedy
    )
    # its word on what is stored goes before devlink's
    (stored,) = judged(fleet, nics=NicDevices((dataclasses.replace(card().devices[0], firmware="28.43.1014"),)))
    assert "28.43.1014 is stored in the flash (NicDevice)" in stored.why
    (unread,) = judged(fleet, nics=NicDevices(errors=("GET nicdevices: forbidden",)))
    assert unread.subject == "NicDevice" and unread.status == "warn" and "docs/rbac/look.yml" in unread.remedy


def test_nodes_that_are_called_by_their_addresses_are_told_apart() -> None:
    seen = firmware_fleet.collect_fleet(
        healthy(PAIR).intent, (), {}, NicDevices((NicDevice("card", "10.0.0.2", (ADDRESS,)),))
    )
    assert seen.nic_of("10.0.0.1", ADDRESS) is None and seen.nic_of("10.0.0.2", ADDRESS) is not None


def test_all_that_is_wrong_with_an_hca_is_one_finding() -> None:
    fleet = healthy(PAIR)
    change = settings(LINK_TYPE_P1=("ETH(2)", "ETH(2)"), ATS_ENABLED=("False(0)", "True(1)"))
    (finding,) = judged(fleet, firmware=with_first(fleet, change))
    assert (
        finding.status == "fail"
        and finding.measured == "LINK_TYPE_P1 ETH(2); ATS_ENABLED False(0), after a reset True(1)"
    )


def test_the_usual_version_is_found_once_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node may tell as many versions as HCAs."""
    base = of(healthy(PAIR), "hcas")[NODE].value.hcas[0]
    hcas = [dataclasses.replace(base, name=f"mlx5_{number}", firmware=f"28.{number}.1") for number in range(50)]
    membership = Membership("compute", ("0x1",), {NODE: tuple(Member(rail, hca) for rail, hca in enumerate(hcas))})
    seen = firmware_fleet.collect_fleet(healthy(PAIR).intent, (membership,), {}, NicDevices(()))
    monkeypatch.setattr(firmware_fleet, "split_version", None)
    assert [firmware_fleet.find_usual(hca, seen)[1] for hca in hcas] == ["28.49.1"] * 50


def test_of_two_answers_about_one_hca_the_first_counts() -> None:
    two = tuple(HcaFirmware(ADDRESS, settings_from=tool) for tool in ("mstconfig", "devlink"))
    seen = firmware_fleet.collect_fleet(
        healthy(PAIR).intent, (), {NODE: ObservedFirmware(NodeFirmware(two))}, NicDevices(())
    )
    assert seen.firmware_of(NODE, ADDRESS) == two[0] and seen.firmware_of(NODE, "0000:99:00.0") is None
