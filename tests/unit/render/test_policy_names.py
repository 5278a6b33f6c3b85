# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabrics whose names differ, and whose policies would have one name."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network


def render(*names: str) -> network.Rendered:
    fabrics: list[dict[str, typing.Any]] = [
        {
            "name": name,
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 1, "netdev": [f"eth{index}"]},
            "virtual_functions": 4,
            "resource_name": f"r{index}",
            "network": {"name": f"n{index}", "namespace": "t"},
            "ipam": {"type": "whereabouts", "range": f"100.{index + 64}.0.0/24"},
        }
        for index, name in enumerate(names)
    ]
    intent = parse_intent(fabrics)
    return network.render(intent.fabrics, intent.cluster, {})


@pytest.mark.parametrize("names", [("rail_1", "rail-1"), ("Rail-1", "rail-1")])
def test_second_policy_of_a_name_is_refused(names: tuple[str, str]) -> None:
    made = render(*names)
    assert list(made.unmade) == ["rail-1"] and f"of fabric '{names[0]}'" in made.unmade["rail-1"]
    assert [name for name, item in made.objects if item["kind"] == "SriovNetworkNodePolicy"] == [names[0]]


def test_policies_of_other_names_are_rendered() -> None:
    assert not render("rail-1", "rail-2").unmade
