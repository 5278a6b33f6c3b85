# SPDX-License-Identifier: GPL-3.0-or-later

"""The arithmetic of addresses without a cluster: the limits of each verdict, and that no finding hides another."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses.arithmetic import check
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

#: two HCAs with eight VFs each: 16 addresses a node
FABRIC: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 2, "vendor": "8086"},
    "virtual_functions": 8,
    "resource_name": "igb",
    "network": {"name": "net", "namespace": "test"},
}
RANGE = {"type": "whereabouts", "range": "10.0.0.0/24"}
BLOCKS = {"type": "nv-ipam", "range": "10.0.0.0/24", "pool": {"name": "storage", "per_node_block_size": 32}}
NETWORKS = {
    "type": "nv-ipam",
    "range": "10.0.0.0/16",
    "pool": {"name": "storage", "kind": "CIDRPool", "per_node_network_prefix": 24},
}
NODES = ("worker-1", "worker-2")
ROUTE = {"dst": "10.1.0.0/16"}


def judged(
    *ipams: typing.Optional[dict[str, typing.Any]], nodes: typing.Sequence[str] = NODES
) -> list[tuple[str, str]]:
    """Check with its subject below the fabric, and status, of each finding on fabrics with these addresses; none where
    there is nothing."""
    fabrics = [
        {**FABRIC, "name": f"fabric-{number}", **({} if ipam is None else {"ipam": ipam})}
        for number, ipam in enumerate(ipams)
    ]
    findings = check(parse_intent(fabrics), nodes)
    return [
        (f"{item.check.partition('.')[2]} {item.subject.replace('rdma_fabrics', '')}", item.status) for item in findings
    ]


def test_each_fabric_has_each_of_its_findings() -> None:
    first = {**RANGE, "gateway": "10.0.0.1", "routes": [ROUTE]}
    assert judged(first, {**BLOCKS, "range": "10.2.0.0/24"}) == [
        ("ipam [0].ipam", "pass"),
        ("addresses [0].ipam.range", "pass"),
        ("gateway [0].ipam.gateway", "pass"),
        ("routes [0].ipam.routes[0]", "pass"),
        ("ipam [1].ipam", "pass"),
        ("addresses [1].ipam.range", "pass"),
        ("disjoint_ranges ", "pass"),
    ]


@pytest.mark.parametrize(
    ("count", "nodes", "status"),
    [
        (31, 2, "fail"),
        (32, 2, "warn"),
        (47, 2, "warn"),
        (48, 2, "pass"),
        (15, 1, "fail"),
        (16, 1, "warn"),
        (32, 1, "pass"),
        # an empty inventory is told elsewhere; one node is the least
        (15, 0, "fail"),
        (16, 0, "warn"),
    ],
)
def test_limits_of_a_range(count: int, nodes: int, status: str) -> None:
    ipam = {**RANGE, "range_start": "10.0.0.1", "range_end": f"10.0.0.{count}"}
    assert dict(judged(ipam, nodes=NODES[:nodes]))["addresses [0].ipam.range"] == status


@pytest.mark.parametrize(
    ("size", "nodes", "key", "status"),
    [
        (16, 2, "range", "pass"),
        (15, 2, "pool.per_node_block_size", "fail"),
        (127, 2, "range", "pass"),
        (128, 2, "range", "fail"),
        # one node needs one share
        (254, 1, "range", "pass"),
        (15, 0, "pool.per_node_block_size", "fail"),
    ],
)
def test_limits_of_a_share(size: int, nodes: int, key: str, status: str) -> None:
    ipam = {**BLOCKS, "pool": {"name": "storage", "per_node_block_size": size}}
    assert dict(judged(ipam, nodes=NODES[:nodes])).get(f"addresses [0].ipam.{key}") == status


def of_routes(ipam: dict[str, typing.Any], *routes: dict[str, str]) -> list[tuple[str, str]]:
    return [item for item in judged({**ipam, "routes": list(routes)}) if item[0].startswith("routes ")]


@pytest.mark.parametrize(
    ("ipam", "route", "expected"),
    [
        ({**BLOCKS, "gateway": "10.0.0.1"}, ROUTE, ("routes [0].ipam.routes[0]", "pass")),
        ({**NETWORKS, "pool": {**NETWORKS["pool"], "gateway_index": 1}}, ROUTE, ("routes [0].ipam.routes[0]", "pass")),  # type: ignore[dict-item]
        (BLOCKS, ROUTE, ("routes [0].ipam.routes[0]", "fail")),
        (NETWORKS, ROUTE, ("routes [0].ipam.routes[0]", "fail")),
        ({**BLOCKS, "gateway": "10.0.0.1"}, {**ROUTE, "gw": "10.0.0.1"}, ("routes [0].ipam.routes[0]", "fail")),
        (RANGE, ROUTE, ("routes [0].ipam.routes[0].gw", "fail")),
        (RANGE, {**ROUTE, "gw": "10.0.0.1"}, ("routes [0].ipam.routes[0]", "pass")),
        # half of everything is no default route
        ({**RANGE, "gateway": "10.0.0.1"}, {"dst": "0.0.0.0/1"}, ("routes [0].ipam.routes[0]", "pass")),
    ],
)
def test_which_way_a_route_goes(ipam: dict[str, typing.Any], route: dict[str, str], expected: tuple[str, str]) -> None:
    assert of_routes(ipam, route) == [expected]


def test_a_wrong_route_does_not_hide_the_next() -> None:
    found = of_routes({**RANGE, "gateway": "10.0.0.1"}, {"dst": "anywhere"}, {"dst": "fd00::/64"}, ROUTE)
    assert found == [
        ("routes [0].ipam.routes[0].dst", "fail"),
        ("routes [0].ipam.routes[1].dst", "fail"),
        ("routes [0].ipam.routes[2]", "pass"),
    ]


@pytest.mark.parametrize(
    ("ipam", "expected"),
    [
        ({**RANGE, "exclude": ["nonsense"]}, ["ipam [0].ipam.exclude[0]"]),
        ({**NETWORKS, "gateway": "nonsense"}, ["ipam [0].ipam.gateway"]),
        # without a gateway nothing is told of it
        ({**RANGE, "range": "nonsense/24"}, ["ipam [0].ipam.range"]),
        ({**RANGE, "range": "nonsense/24", "gateway": "10.0.0.1"}, ["ipam [0].ipam.range"]),
    ],
)
def test_one_mistake_is_told_once(ipam: dict[str, typing.Any], expected: list[str]) -> None:
    assert [name for name, status in judged(ipam) if status != "pass"] == expected


@pytest.mark.parametrize("between", [None, {**RANGE, "range": "nonsense/24"}])
def test_ranges_are_compared_past_a_fabric_that_has_none(between: typing.Optional[dict[str, typing.Any]]) -> None:
    found = judged(between, RANGE, {**RANGE, "range": "10.0.0.128/25"})
    assert ("disjoint_ranges [2].ipam.range", "fail") in found
