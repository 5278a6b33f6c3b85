# SPDX-License-Identifier: GPL-3.0-or-later

"""From the description to the fabric: what ibsim and opensm are given."""

from __future__ import annotations

import dataclasses
import re
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._parse.infiniband import ibnetdiscover
from dev.steps import StepError
from lab.fabric import topology
from lab.fabric.model import CLIENTS, Fabric, Fabrics, SimulatedHca
from lab.fabric.topology import Topology


def test_the_hcas_of_row_s1_6_are_on_their_fabrics(topologies: dict[str, Topology]) -> None:
    on = {name: [device for host, device in item.hosts if host == "worker-1"] for name, item in topologies.items()}
    assert on == {"fabric-1": ["mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"], "fabric-2": ["mlx5_2", "mlx5_3"]}


def test_hca_k_of_each_worker_is_on_leaf_k(topologies: dict[str, Topology]) -> None:
    item = topologies["fabric-1"]
    leaf_of = {link.peer.description: link.switch.description for link in item.links if link.peer.kind == "hca"}
    for rail, device in enumerate(("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5")):
        assert {leaf_of[f"worker-{worker} {device}"] for worker in (1, 2)} == {
            f"MF0;fabric-1-leaf-{rail + 1}:MQM9700/U1"
        }


def test_the_two_subnet_managers_are_on_servers_of_their_own(topologies: dict[str, Topology]) -> None:
    for item in topologies.values():
        assert [manager.description for manager in item.managers] == ["sm-1 mlx5_0", "sm-2 mlx5_0"]


def test_the_netfile_is_what_ibnetdiscover_would_print(topologies: dict[str, Topology]) -> None:
    item = topologies["fabric-1"]
    seen = ibnetdiscover.parse(topology.netfile(item))
    assert {node.description for node in seen.nodes} == {node.description for node in (*item.switches, *item.hcas)}
    assert len(seen.links) == len(item.links)
    assert {link.speed for link in seen.links} == {"NDR"}


def test_lids_are_given_once_and_named_for_each_port(topologies: dict[str, Topology]) -> None:
    for item in topologies.values():
        lines = [line.split() for line in topology.lid_file(item).splitlines() if line]
        assert [line[1] for line in lines] == [line[2] for line in lines]
        assert len({line[1] for line in lines}) == len(lines) == len(item.switches) + len(item.hcas)
        assert f"{item.hcas[0].guid + 1:#018x}" in {line[0] for line in lines}


def test_extra_hosts_leave_the_others_where_they_are(fabrics: Fabrics, topologies: dict[str, Topology]) -> None:
    larger = topology.build(_with(fabrics, leaves=8, extra_hosts=100), "fabric-1")
    before = topologies["fabric-1"].hosts
    assert {key: larger.hosts[key].guid for key in before} == {key: node.guid for key, node in before.items()}
    assert larger.hosts["host-0100", "mlx5_5"].description == "host-0100 mlx5_5"


def test_a_leaf_that_is_too_small_is_refused_with_the_remedy(fabrics: Fabrics) -> None:
    with pytest.raises(StepError, match=r"leaf-1.* more than 64 ports") as refused:
        topology.build(_with(fabrics, extra_hosts=100), "fabric-1")
    assert "more leaves" in refused.value.remedy


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spines": 0}, "would be 4 subnets"),
        ({"leaves": 0}, "at least one leaf"),
        ({"leaves": 6}, "no multiple of its 4 rails"),
        ({"speed": "XDR"}, "ibsim knows"),
        ({"port": 7300 - CLIENTS}, "needs the UDP ports"),
        ({"name": "fabric-2"}, "given twice"),
        ({"name": "other"}, "is not among other, fabric-2"),
    ],
)
def test_a_description_that_makes_no_fabric_is_refused(
    fabrics: Fabrics, changes: dict[str, typing.Any], why: str
) -> None:
    with pytest.raises(StepError, match=re.escape(why)):
        _with(fabrics, **changes)


def test_a_pci_address_is_checked(fabrics: Fabrics) -> None:
    with pytest.raises(StepError, match=r"3c:00\.0"):
        dataclasses.replace(fabrics, hcas=(dataclasses.replace(fabrics.hcas[0], pci="3c:00.0"), *fabrics.hcas[1:]))


def test_an_unknown_name_is_answered_with_the_known_ones(fabrics: Fabrics, topologies: dict[str, Topology]) -> None:
    with pytest.raises(StepError, match="no simulated HCA 'mlx5_9'") as refused:
        fabrics.hca("mlx5_9")
    assert "mlx5_0" in refused.value.remedy
    with pytest.raises(StepError, match="worker-1 has no HCA mlx5_2 on fabric-1"):
        topologies["fabric-1"].hca("worker-1", "mlx5_2")


@given(
    rails=st.integers(1, 6),
    units=st.integers(1, 4),
    spines=st.integers(1, 4),
    workers=st.integers(1, 4),
    extra=st.integers(0, 60),
)
def test_any_fabric_is_one_subnet_of_distinct_nodes(
    rails: int, units: int, spines: int, workers: int, extra: int
) -> None:
    hcas = tuple(
        SimulatedHca(f"mlx5_{rail}", f"ib{rail}", f"0000:{16 + rail:02x}:00.0", 0, "one") for rail in range(rails)
    )
    fabric = Fabric("one", 7070, rails * units, spines, extra)
    fabrics = Fabrics("10.0.0.1", tuple(f"w{worker}" for worker in range(workers)), hcas, (fabric,))
    try:
        item = topology.build(fabrics, "one")
    except StepError as refused:
        assert "more than 64 ports" in str(refused)
        return
    nodes = {node.guid: node for node in (*item.switches, *item.hcas)}
    assert len(nodes) == rails * units + spines + 2 + rails * (workers + extra)
    # no port is used twice, and from the first node all others are reached
    ends = [end for link in item.links for end in ((link.switch.guid, link.port), (link.peer.guid, link.peer_port))]
    assert len(set(ends)) == len(ends)
    reached, frontier = set(), {item.switches[0].guid}
    while frontier:
        reached |= frontier
        near = {(link.switch.guid, link.peer.guid) for link in item.links}
        frontier = {two for one, two in near | {(two, one) for one, two in near} if one in frontier} - reached
    assert reached == set(nodes)


def _with(fabrics: Fabrics, **changes: typing.Any) -> Fabrics:
    return dataclasses.replace(
        fabrics, fabrics=(dataclasses.replace(fabrics.fabrics[0], **changes), *fabrics.fabrics[1:])
    )
