# SPDX-License-Identifier: GPL-3.0-or-later

"""A registry or a BIOS with more values than any has: an error of its BMC, before anything is made of the values."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import KEYS
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish import registry
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.registry import Registry, parse
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.resources import parse_bios
from ansible_collections.linerate.rdma.plugins.module_utils._parse.redfish.settings import list_settings

#: a display name that fits most keys
ALL = "SR-IOV VT-d ACS Above 4G Sub-NUMA Hyper-Thread SMT C1E Relaxed Order Max Read Req System Profile"


def attribute(name: str, display: str, values: typing.Iterable[str]) -> dict[str, typing.Any]:
    return {"AttributeName": name, "DisplayName": display, "Value": [{"ValueName": value} for value in values]}


def registry_of(*attributes: dict[str, typing.Any]) -> Registry:
    return parse({"RegistryEntries": {"Attributes": list(attributes)}}, "/registry")


@pytest.mark.parametrize(
    ("attributes", "display", "values"),
    [(1, "SR-IOV", 110_000), (1, ALL, 1000), (100, "SR-IOV", 100)],
    ids=["values", "keys", "attributes"],
)
def test_a_registry_of_too_many_values_is_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch, attributes: int, display: str, values: int
) -> None:
    made: list[object] = []
    monkeypatch.setattr(registry, "_parse_registry_entry", lambda *given: made.append(given))
    with pytest.raises(ParseError, match="at most 8192"):
        registry_of(*(attribute(f"A{number}", display, map(str, range(values))) for number in range(attributes)))
    assert not made


def test_an_attribute_of_several_keys_is_made_once() -> None:
    body = registry_of(attribute("A", ALL, ("Enabled", "Disabled")))
    bios = parse_bios({"Attributes": {"A": "Enabled"}})
    found = [item for setting in list_settings(bios, {}, body, "", KEYS) for item in setting.attributes]
    assert len(found) > 8 and len(set(map(id, found))) == 1
    assert [value.value for value in found[0].allowed] == ["Enabled", "Disabled"]


def test_a_value_of_any_length_is_left_out() -> None:
    body = registry_of(attribute("A", "SR-IOV", ("Enabled", "x" * 257, "Disabled", "y" * 4_000_000)))
    assert body.entries[0].values == (("Enabled", "Enabled"), ("Disabled", "Disabled"))


def test_a_bios_of_too_many_attributes_is_refused() -> None:
    most = {f"Socket1Pcie{number}AdvertiseACS": "Enabled" for number in range(16_384)}
    assert len(parse_bios({"Attributes": most}).attributes) == 16_384
    with pytest.raises(ParseError, match="16385 attributes"):
        parse_bios({"Attributes": {**most, "one": "more"}})
