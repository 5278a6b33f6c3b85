# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of BIOS attributes that boards and BIOS releases write differently, from public reports."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted, list_states
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import KEYS, BiosState, NodeBios
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.keys import is_name
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.registry import parse
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.resources import parse_bios as bios_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.settings import list_settings

REPORTED = json.loads((pathlib.Path(__file__).parent.parent / "fixtures/public/bios-names.json").read_text())


def judged(
    key: str, attributes: dict[str, typing.Any], registry: typing.Optional[typing.Sequence[dict[str, typing.Any]]]
) -> tuple[BiosState, tuple[str, ...]]:
    """The state of a key that is wanted to be on, and the attributes that are behind it."""
    body = parse({"RegistryEntries": {"Attributes": list(registry)}}, "/registry") if registry is not None else None
    bios = bios_of({"Attributes": attributes, "@Redfish.Settings": {"SettingsObject": {"@odata.id": "/settings"}}})
    found = list_settings(bios, {}, body, "", KEYS)
    (state,) = list_states(NodeBios("", "", "", found), find_wanted({key: True}))
    return state, tuple(attribute.name for setting in found if setting.key == key for attribute in setting.attributes)


@pytest.mark.parametrize(("key", "name", "state"), [("iommu", "ProcVirtualization", "wrong"), ("sriov", "Sriov", "ok")])
def test_hpe_gen12_with_intel_switches_io_by_the_processor_s_virtualization(key: str, name: str, state: str) -> None:
    given = REPORTED["hpe_gen12_intel"]
    found, names = judged(key, given["attributes"], given["registry"])
    assert (found.state, names) == (state, (name,))


def test_an_older_hpe_that_has_both_is_judged_by_vt_d_alone() -> None:
    given = REPORTED["hpe_gen12_intel"]
    vt_d = {**given["registry"][0], "AttributeName": "IntelProcVtd", "DisplayName": "Intel(R) VT-d"}
    found, names = judged("iommu", {**given["attributes"], "IntelProcVtd": "Enabled"}, [*given["registry"], vt_d])
    assert (found.state, names) == ("ok", ("IntelProcVtd",))


def test_supermicro_names_with_signs_and_without_a_suffix() -> None:
    given = REPORTED["supermicro_mgx"]
    found, names = judged("sriov", given["attributes"], None)
    assert (found.state, set(names)) == ("wrong", {"SR_IOVSupport", "SR-IOVSupport"})
    found, names = judged("iommu", given["attributes"], None)
    assert (found.state, names) == ("wrong", ("IntelVTforDirectedI/O(VT-d)",))
    assert found.why == "IntelVTforDirectedI/O(VT-d): the value is Disable, not on"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("sriov", "SR-IOVSupport#0048"),
        ("sriov", "SR_IOVSupport_0047"),
        ("sriov", "SRIOVSupport_00A1"),
        ("iommu", "IntelVTforDirectedI/O(VT-d)#1E12"),
        ("iommu", "IntelVTforDirectedI_O_VT_d__1E32"),
        ("iommu", "IOMMU_0123"),
        ("acs", "Socket0Pcie1AdvertiseACS"),
        ("smt", "Hyper-Threading[ALL]#0B12"),
        ("c_states", "EnhancedHaltState(C1E)#3D02"),
    ],
)
def test_spellings_of_names(key: typing.Any, name: str) -> None:
    assert [other for other in KEYS if is_name(other, name)] == [key]


@pytest.mark.parametrize(
    "name",
    [
        "Slot3SRIOVSupport",
        "SR-IOVSupportHelp",
        "SRIOVSupport_00470048",
        "IntelVirtualizationTechnology",
        "Sriov_0047",
        "",
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not any(is_name(key, name) for key in KEYS)


def of_registry(attributes: int, rules: int, name: str = "Sriov", conditions: int = 1) -> dict[str, typing.Any]:
    """A registry of so many attributes with one name, or with names of their own, and of so many rules about the first,
    each of so many conditions."""
    condition = {
        "MapFromProperty": "CurrentValue",
        "MapFromCondition": "EQU",
        "MapFromAttribute": "Other",
        "MapFromValue": "On",
    }
    rule = {
        "MapToValue": "true",
        "MapToProperty": "Hidden",
        "MapToAttribute": "Sriov",
        "MapFrom": [condition] * conditions,
    }
    rows = [{"AttributeName": name.format(number), "DisplayName": "SR-IOV Support"} for number in range(attributes)]
    return {"RegistryEntries": {"Attributes": rows, "Dependencies": [{"Dependency": rule}] * rules}}


def test_a_registry_has_each_attribute_once() -> None:
    (entry,) = parse(of_registry(30_000, 1), "/registry").entries
    assert (entry.name, len(entry.dependencies)) == ("Sriov", 1)


@pytest.mark.parametrize(
    ("attributes", "rules", "name", "conditions"), [(1, 65, "Sriov", 1), (301, 1, "Sriov{}", 1), (1, 1, "Sriov", 65)]
)
def test_a_registry_with_more_than_any_is_refused(attributes: int, rules: int, name: str, conditions: int) -> None:
    """One read of it would take most of an hour."""
    with pytest.raises(ParseError, match="at most"):
        parse(of_registry(attributes, rules, name, conditions), "/registry")
    parse(of_registry(attributes - (attributes > 1), min(rules, 64), name, min(conditions, 64)), "/registry")


def test_a_long_value_is_not_repeated_for_each_attribute() -> None:
    """One value of 4 MB that 290 attributes depend on made 1.1 GiB of reasons."""
    read = bios_of({"Attributes": {"Other": "x" * 257, "Short": "x" * 256, "Sriov": "On"}})
    assert sorted(read.attributes) == ["Short", "Sriov"]
    (entry,) = parse(of_registry(1, 1), "/registry").entries
    assert not entry.is_hidden(read.attributes)
