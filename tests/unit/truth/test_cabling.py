# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports and cards that are slower than their like, where all facts agree: the run must not be green."""

from __future__ import annotations

import dataclasses
import itertools
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import SeenSubnet
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, NodeHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, Finding

from .fleet import PAIR, ROCE, TWO, Fleet, Shape, healthy, identity
from .judge import findings

#: node and HCA of the fabric compute, from 0
Places = typing.Collection[tuple[int, int]]


def said(fleet: Fleet, *stages: str) -> list[Finding]:
    """What is no pass."""
    return [item for stage in stages for item in findings(fleet, stage) if item.status != PASS]


def with_hcas(fleet: Fleet, places: Places, change: typing.Callable[[Hca], Hca]) -> Fleet:
    """The fleet with other physical functions at some places, before and after the network is made."""
    addresses = {(fleet.shape.names[node], f"0000:{0x10 + place:02x}:00.0") for node, place in places}
    facts = dict(fleet.facts)
    for source, value in fleet.facts.items():
        if getattr(source, "kind", None) in ("hcas", "hcas_after_network"):
            facts[source] = {
                name: dataclasses.replace(
                    seen,
                    value=dataclasses.replace(
                        seen.value,
                        hcas=tuple(
                            change(hca) if hca.pci and (name, hca.pci.address) in addresses else hca
                            for hca in seen.value.hcas
                        ),
                    ),
                )
                for name, seen in value.items()
            }
    return dataclasses.replace(fleet, facts=facts)


def with_links(fleet: Fleet, places: Places, **values: typing.Any) -> Fleet:
    """The fleet with other links of some HCAs, as the topology shows them."""
    guids = {identity(2, node, place, 0) for node, place in places}
    facts = dict(fleet.facts)
    for source, value in fleet.facts.items():
        if getattr(source, "kind", None) == "topologies":
            facts[source] = {
                name: dataclasses.replace(
                    seen,
                    value=tuple(
                        dataclasses.replace(
                            view,
                            topology=dataclasses.replace(
                                view.topology,
                                links=tuple(
                                    dataclasses.replace(link, **values)
                                    if guids & {link.a.port_guid, link.b.port_guid}
                                    else link
                                    for link in view.topology.links
                                ),
                            ),
                        )
                        for view in seen.value
                    ),
                )
                for name, seen in value.items()
            }
    return dataclasses.replace(fleet, facts=facts)


def split(shape: Shape, places: Places) -> Fleet:
    """Some HCAs are cabled to ports of the leaf that have two lanes."""

    def halve(hca: Hca) -> Hca:
        ports = tuple(dataclasses.replace(port, rate_gbps=200.0, width=2) for port in hca.ports)
        return dataclasses.replace(hca, ports=ports)

    return with_links(with_hcas(healthy(shape), places, halve), places, width=2)


@pytest.mark.parametrize(
    ("nodes", "places", "status"),
    [
        (5, [(1, 1)], "unknown"),
        # all ports of a node: others have better ones
        (5, [(1, rail) for rail in range(4)], "unknown"),
        # its own node alone, beside one of the others, has better ones
        (2, [(1, 1)], "unknown"),
        # one node alone decides nothing of another
        (2, [(1, rail) for rail in range(4)], "warn"),
        (3, [(node, rail) for node in (1, 2) for rail in range(4)], "warn"),
    ],
)
def test_a_port_of_a_switch_with_half_of_the_lanes_is_noticed(
    nodes: int, places: list[tuple[int, int]], status: str
) -> None:
    shape = dataclasses.replace(PAIR, nodes=nodes)
    assert said(healthy(shape), "fabric") == []
    found = said(split(shape, places), "fabric")
    names = {f"{shape.names[node]} mlx5_{place}" for node, place in places}
    assert {(item.check, item.subject, item.status) for item in found} == {
        ("fabric.rate", name, status) for name in names
    }
    assert all("split port" in item.why and "end the split" in item.remedy for item in found)


def test_a_fabric_whose_ports_are_all_of_two_lanes_is_green() -> None:
    shape = dataclasses.replace(PAIR, nodes=3)
    assert said(split(shape, [(node, rail) for node in range(3) for rail in range(4)]), "fabric") == []


def swapped(fleet: Fleet, nodes: typing.Iterable[int], one: int, other: int) -> Fleet:
    """The cables of two HCAs of some nodes are swapped: LID, switch port and subnet manager go with the cable."""
    names = {fleet.shape.names[node] for node in nodes}
    guids: dict[str, str] = {}
    for node in nodes:
        for kind, more in itertools.product((1, 2), ((), (0,))):
            near, far = identity(kind, node, one, *more), identity(kind, node, other, *more)
            guids.update({near: far, far: near})
    devices = {f"mlx5_{one}": f"mlx5_{other}", f"mlx5_{other}": f"mlx5_{one}"}

    def with_lids(seen: NodeHcas) -> NodeHcas:
        lids = {hca.name: hca.ports[0].lid for hca in seen.hcas}
        hcas = tuple(
            dataclasses.replace(
                hca, ports=(dataclasses.replace(hca.ports[0], lid=lids[devices.get(hca.name, hca.name)]),)
            )
            for hca in seen.hcas
        )
        return dataclasses.replace(seen, hcas=hcas)

    def with_masters(seen: tuple[SeenSubnet, ...]) -> tuple[SeenSubnet, ...]:
        masters = {item.rdma_device: item.master for item in seen}
        return tuple(
            dataclasses.replace(item, master=masters[devices.get(item.rdma_device, item.rdma_device)]) for item in seen
        )

    changes: dict[str, typing.Callable[[typing.Any], typing.Any]] = {"hcas": with_lids, "subnets": with_masters}
    facts = dict(fleet.facts)
    for source, value in fleet.facts.items():
        change = changes.get(getattr(source, "kind", ""))
        if change is not None:
            facts[source] = {
                name: dataclasses.replace(seen, value=change(seen.value)) if name in names else seen
                for name, seen in value.items()
            }
        elif getattr(source, "kind", None) == "topologies":
            facts[source] = renamed(value, guids)
    return dataclasses.replace(fleet, facts=facts)


def renamed(value: typing.Any, names: typing.Mapping[str, str]) -> typing.Any:
    """The value with other texts in it."""
    if isinstance(value, str):
        return names.get(value, value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **{name: renamed(getattr(value, name), names) for name in fields})
    if isinstance(value, tuple):
        items = [renamed(item, names) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, dict):
        return {renamed(key, names): renamed(item, names) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    ("count", "nodes", "status"),
    [
        (6, (1,), "fail"),
        (6, (1, 3), "fail"),
        (3, (2,), "fail"),
        # three of six, and one of two: cabled in two ways, perhaps on purpose
        (6, (1, 3, 5), "warn"),
        (2, (1,), "warn"),
    ],
)
def test_cables_that_are_swapped_between_two_fabrics_are_noticed(
    count: int, nodes: tuple[int, ...], status: str
) -> None:
    shape = dataclasses.replace(TWO, nodes=count)
    assert said(healthy(shape), "fabric") == []
    found = said(swapped(healthy(shape), nodes, 1, 2), "fabric")
    assert {(item.check, item.status) for item in found} == {("fabric.hcas", status)}
    assert len(found) == len(nodes) and all(item.subject.endswith(" cables") for item in found)
    assert "mlx5_1 (0000:11:00.0) on " in found[0].measured and "exchange the cables of mlx5_1 and" in found[0].remedy


def test_nodes_that_are_all_cabled_alike_are_green() -> None:
    found = said(swapped(healthy(TWO), range(TWO.nodes), 1, 2), "fabric")
    assert [item for item in found if item.check == "fabric.hcas"] == []


def test_a_cable_in_another_fabric_alone_is_told_once_by_the_number_of_hcas() -> None:
    fleet = swapped(healthy(dataclasses.replace(TWO, nodes=6)), (1,), 1, 2)
    facts = dict(fleet.facts)
    for source, value in fleet.facts.items():
        if getattr(source, "kind", None) == "subnets":
            seen = value["node-2"]
            masters = tuple(
                dataclasses.replace(item, master=seen.value[0].master) if item.rdma_device == "mlx5_1" else item
                for item in seen.value
            )
            facts[source] = {**value, "node-2": dataclasses.replace(seen, value=masters)}
    found = said(dataclasses.replace(fleet, facts=facts), "fabric")
    assert [item.subject for item in found if item.check == "fabric.hcas"] != []
    assert not [item.subject for item in found if item.subject.endswith(" cables")]


def spare(shape: Shape, places: Places, gbps: float = 200.0) -> Fleet:
    """Some HCAs are of a slower model: on RoCE another board with the same PCI device."""

    def replace(hca: Hca) -> Hca:
        assert hca.pci is not None
        ports = tuple(dataclasses.replace(port, rate_gbps=gbps, speed="HDR") for port in hca.ports)
        netdevs = tuple(
            dataclasses.replace(
                netdev,
                speed_gbps=gbps if netdev.speed_gbps else None,
                supported_gbps=gbps if netdev.supported_gbps else None,
            )
            for netdev in hca.netdevs
        )
        pci = dataclasses.replace(hca.pci, device="101b" if hca.pci.device == "1021" else hca.pci.device)
        return dataclasses.replace(hca, ports=ports, netdevs=netdevs, pci=pci, board="MT_0000000223")

    return with_hcas(healthy(shape), places, replace)


@pytest.mark.parametrize("shape", [dataclasses.replace(PAIR, nodes=5), dataclasses.replace(ROCE, nodes=5)])
@pytest.mark.parametrize(
    ("nodes", "rails", "status"),
    [
        ((1,), (1,), "unknown"),
        ((1, 2), (1,), "unknown"),
        # all HCAs of a node: another delivery
        ((1,), range(4), "warn"),
    ],
)
def test_a_slower_model_among_faster_ones_is_noticed(
    shape: Shape, nodes: tuple[int, ...], rails: typing.Sequence[int], status: str
) -> None:
    assert said(healthy(shape), "discover") == []
    places = [(node, rail) for node in nodes for rail in rails if rail < shape.rails]
    found = said(spare(shape, places), "discover")
    assert {(item.check, item.subject, item.status) for item in found} == {
        ("discover.models", f"{shape.names[node]} mlx5_{rail}", status) for node, rail in places
    }
    assert all("200 Gb/s" in item.measured and "400 Gb/s, as on" in item.expected for item in found)


@pytest.mark.parametrize(
    ("count", "places", "gbps", "status"),
    [
        # of two nodes neither is the usual one
        (2, [(1, 1)], 200.0, {"warn"}),
        # the spare part is as fast
        (5, [(1, 1)], 400.0, set()),
        # one node alone has a faster model
        (5, [(node, 1) for node in range(1, 5)], 200.0, set()),
        # all nodes have a slower model at this address
        (5, [(node, 1) for node in range(5)], 200.0, set()),
    ],
)
def test_models_that_are_no_exception_close_nothing(
    count: int, places: list[tuple[int, int]], gbps: float, status: set[str]
) -> None:
    found = said(spare(dataclasses.replace(PAIR, nodes=count), places, gbps), "discover")
    assert {item.status for item in found} == status


def test_a_slower_link_of_the_same_model_is_no_other_model() -> None:
    assert said(split(dataclasses.replace(PAIR, nodes=5), [(1, 1)]), "discover") == []
