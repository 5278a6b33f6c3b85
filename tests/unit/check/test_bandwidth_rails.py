# SPDX-License-Identifier: GPL-3.0-or-later

"""The rails of an Ethernet fabric, as LLDP shows them: a NIC on the leaf of another rail is named."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas, ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import (
    NetdevNeighbours,
    NodeNeighbours,
    ObservedNeighbours,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from tests.unit import roce_fabric as world
from tests.unit.check.test_ethernet_routes import ROCE

RAILS = 4


def nics() -> ObservedHcas:
    """A node with a NIC on each rail."""
    (first,) = (world.node().value or NodeHcas(())).hcas
    return ObservedHcas(NodeHcas(tuple(_nic(first, rail) for rail in range(RAILS))))


def _nic(first: Hca, rail: int) -> Hca:
    assert first.pci is not None
    netdev = dataclasses.replace(first.all_netdevs[0], name=f"ens{rail}", hardware_address=f"02:00:00:00:00:0{rail}")
    pci = dataclasses.replace(first.pci, address=f"0000:{rail + 1}c:00.0")
    return dataclasses.replace(first, name=f"mlx5_{rail}", rdma_device=f"mlx5_{rail}", netdevs=(netdev,), pci=pci)


def heard(host: int, leaves: typing.Sequence[typing.Optional[int]]) -> ObservedNeighbours:
    """The leaf of each rail of a host; None where LLDP is not heard."""
    return ObservedNeighbours(
        NodeNeighbours(
            tuple(
                NetdevNeighbours(
                    f"ens{rail}",
                    f"02:00:00:00:00:0{rail}",
                    () if leaf is None else (world.leaf_port(leaf, RAILS * host + rail),),
                )
                for rail, leaf in enumerate(leaves)
            ),
            (),
            (),
        )
    )


def rails(
    cabled: typing.Sequence[typing.Sequence[typing.Optional[int]]], names: typing.Optional[str] = None
) -> list[Finding]:
    """The findings on the rails of a fabric whose nodes are on these leaves."""
    wanted = {**ROCE, "select": {"hcas_per_node": RAILS}, **({"rails": names} if names else {})}
    nodes = [f"node-{number}" for number in range(len(cabled))]
    facts = Facts(
        nodes=tuple(nodes),
        hcas={node: nics() for node in nodes},
        neighbours={node: heard(number, leaves) for number, (node, leaves) in enumerate(zip(nodes, cabled))},
    )
    return [finding for finding in check(parse_intent([wanted]), facts) if finding.check == "bandwidth.rails"]


RIGHT, SWAPPED, DARK = (0, 1, 2, 3), (0, 2, 1, 3), (0, None, 2, 3)


@pytest.mark.parametrize(("names", "status"), [("leaf", "fail"), (None, "warn")])
def test_a_node_with_swapped_cables_is_named(names: typing.Optional[str], status: str) -> None:
    (finding,) = rails([RIGHT, RIGHT, SWAPPED, RIGHT, RIGHT], names)
    assert (finding.status, finding.subject) == (status, "storage node-2")
    assert finding.measured == "node-2: rail 1 (ens1) on leaf-2, rail 2 (ens2) on leaf-1"
    assert finding.why.startswith("The cables of rail 1 and rail 2 are swapped. 4 neighboring nodes have")
    assert ("set rails: none" in finding.remedy) == (names is None)


@pytest.mark.parametrize("names", ["leaf", None])
def test_two_nodes_that_contradict_each_other_accuse_none(names: typing.Optional[str]) -> None:
    (finding,) = rails([RIGHT, SWAPPED], names)
    assert (finding.status, finding.subject) == ("fail" if names else "warn", "storage")
    assert "Only the cabling plan" in finding.why


def test_a_fabric_without_rails_is_not_named_node_by_node() -> None:
    mixed = [RIGHT] * 4 + [SWAPPED, (3, 1, 2, 0), (1, 0, 2, 3)]
    (finding,) = rails(mixed)
    assert (finding.status, finding.subject) == ("warn", "storage") and "More than a quarter" in finding.why
    assert [finding.status for finding in rails(mixed, "leaf")] == ["fail"] * 3
    assert [finding.status for finding in rails(mixed, "none")] == ["pass"]


@pytest.mark.parametrize("names", ["leaf", "none", None])
def test_right_cables_pass(names: typing.Optional[str]) -> None:
    racks = [RIGHT] * 3 + [(4, 4, 4, 4)] * 2
    assert [finding.status for finding in rails(racks, names)] == ["pass"]


def test_rails_that_the_intent_names_and_lldp_does_not_show_are_unknown() -> None:
    (finding,) = rails([RIGHT, DARK, RIGHT], "leaf")
    assert (finding.status, finding.measured) == ("unknown", "leaf unknown for 1 of 12 ports")
    assert "node-1 rail 1 (ens1 received LLDP from no switch)" in finding.why
    assert [finding.status for finding in rails([(None,) * RAILS] * 2, "leaf")] == ["unknown"]
    assert rails([(None,) * RAILS] * 2) == []
    assert [finding.status for finding in rails([RIGHT, DARK, RIGHT])] == ["pass"]
