# SPDX-License-Identifier: GPL-3.0-or-later

"""What the SR-IOV operator wants of functions is judged, whether one node differs or all nodes agree on it."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import SOURCES
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import judge

from .fleet import PAIR, ROCE, Shape, healthy
from .judge import findings

#: settings of a function, and of the VFs of one policy, that no fabric here asks for
OF_FUNCTION: tuple[dict[str, typing.Any], ...] = (
    {"link_type": "other"},
    {"eswitch_mode": "switchdev"},
    {"external": True},
    {"vfs_count": 1},
    {"mtu": 1500},
    {"groups": ()},
)
OF_GROUP: tuple[dict[str, typing.Any], ...] = (
    {"device_type": "vfio-pci"},
    {"rdma": False},
    {"resource": "other"},
    {"mtu": 1500},
    {"last": 0},
)
OF_NODE: tuple[dict[str, typing.Any], ...] = ({"wanted_rdma_mode": "exclusive"}, {"wanted": ()})


def changed(
    state: NodeState,
    node: typing.Mapping[str, typing.Any],
    function: typing.Mapping[str, typing.Any],
    group: typing.Mapping[str, typing.Any],
) -> NodeState:
    wanted = tuple(
        dataclasses.replace(
            item, **{"groups": tuple(dataclasses.replace(part, **group) for part in item.groups), **function}
        )
        for item in state.wanted
    )
    return dataclasses.replace(state, **{"wanted": wanted, **node})


@pytest.mark.parametrize("shape", [PAIR, ROCE], ids=["InfiniBand", "RoCE"])
@pytest.mark.parametrize("every", [False, True], ids=["one node", "all nodes"])
def test_no_setting_that_the_operator_wants_is_green_against_the_intent(shape: Shape, every: bool) -> None:
    fleet, silent = healthy(shape), []
    source = SOURCES["virtual_functions"]["operators"]
    for part, changes in (("node", OF_NODE), ("function", OF_FUNCTION), ("group", OF_GROUP)):
        for change in changes:
            parts: dict[str, typing.Mapping[str, typing.Any]] = {"node": {}, "function": {}, "group": {}, part: change}
            seen: OperatorFacts = fleet.facts[source]
            states = tuple(
                changed(state, **parts) if every or not number else state for number, state in enumerate(seen.states)
            )
            facts = {**fleet.facts, source: dataclasses.replace(seen, states=states)}
            if judge(findings(fleet, "virtual_functions", facts)).open:
                silent.append(change)
    assert silent == []
