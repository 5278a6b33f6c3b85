# SPDX-License-Identifier: GPL-3.0-or-later

"""Forwarding tables with holes: the planner of stage bandwidth goes around them, so stage fabric must tell them."""

from __future__ import annotations

import dataclasses
import functools
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import Member, Membership
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.routes import check_routes
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.forwarding import (
    UNTOLD,
    ForwardingTable,
    SeenForwarding,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.tests.unit.check.fabric_world import fabric
from ansible_collections.linerate.rdma.tests.unit.fat_tree import Parts, guid, parts, rail_parts

LEAF = guid(1, 0)
Tables = list[ForwardingTable]


def tree() -> Parts:
    """Eight leaves with 16 hosts each, and eight spines."""
    return parts([16] * 8, 8)


def with_ports(tables: Tables, switch: str, ports: typing.Mapping[int, int]) -> Tables:
    """The tables with other ports for some LIDs on one switch."""
    return [
        dataclasses.replace(table, ports=bytes(ports.get(lid, port) for lid, port in enumerate(table.ports)))
        if table.guid == switch
        else table
        for table in tables
    ]


def checked(
    made: Parts, change: typing.Callable[[Tables], Tables] = list, routing: typing.Optional[str] = None
) -> list[Finding]:
    topology, tables, ends = made
    members: dict[str, tuple[Member, ...]] = {}
    for end in ends:
        port = Port(1, "ACTIVE", "LinkUp", "InfiniBand", 400.0, 4, "NDR", end.lid, 1, end.guid)
        hca = Hca(f"mlx5_{end.rail}", f"mlx5_{end.rail}", ports=(port,))
        members[end.node] = (*members.get(end.node, ()), Member(end.rail, hca, port))
    its = dataclasses.replace(fabric(), routing=typing.cast(typing.Any, routing))
    membership = Membership(its.name, ("0x1",), members)
    return check_routes(its, membership, topology, SeenForwarding(tuple(change(tables))))


def test_whole_tables_pass() -> None:
    (finding,) = checked(tree())
    assert (finding.status, finding.measured) == ("pass", "paths to 128 LIDs of HCAs")


@pytest.mark.parametrize("routing", [None, "static", "adaptive"])
@pytest.mark.parametrize("holes", [(40,), range(65, 81), range(17, 33), range(64, 128)])
def test_lids_without_a_port_are_told_whatever_the_routing(
    holes: typing.Sequence[int], routing: typing.Optional[str]
) -> None:
    (finding,) = checked(tree(), lambda tables: with_ports(tables, LEAF, dict.fromkeys(holes, UNTOLD)), routing)
    assert (finding.check, finding.subject, finding.status) == ("fabric.routes", "leaf-0 no port", "unknown")
    lids = f"{len(holes)} LID{'s' if len(holes) > 1 else ''}"
    assert finding.measured == f"no port for {lids} in the forwarding table"
    assert f"LID {holes[0]} of node-{holes[0]}" in finding.why


def test_a_spine_without_a_port_is_named_once_for_all_leaves() -> None:
    # host 16 of leaf 7 is reached through spine 7
    (finding,) = checked(tree(), lambda tables: with_ports(tables, guid(2, 7), {112: UNTOLD}))
    assert (finding.subject, finding.measured) == ("spine-7 no port", "no port for 1 LID in the forwarding table")


def test_tables_that_were_not_read_are_unknown() -> None:
    findings = checked(tree(), lambda tables: [table for table in tables if table.guid != LEAF])
    assert [(item.subject, item.status) for item in findings] == [("leaf-0 unread", "unknown")]
    findings = checked(
        tree(),
        lambda tables: [
            dataclasses.replace(table, unread=(1,)) if table.guid == LEAF else table
            for table in with_ports(tables, LEAF, dict.fromkeys(range(64, 128), UNTOLD))
        ],
    )
    assert [(item.subject, item.measured) for item in findings] == [
        ("leaf-0 unread", "forwarding table not read for 64 LIDs")
    ]


@pytest.mark.parametrize(("routing", "status"), [("static", "fail"), ("adaptive", "warn"), (None, "warn")])
def test_packets_that_go_astray_fail_where_the_tables_are_all(routing: typing.Optional[str], status: str) -> None:
    # spine 0 sends what is for node 113 on leaf 7 back down to leaf 0, which sends it up again
    (loop,) = checked(tree(), lambda tables: with_ports(tables, guid(2, 0), {113: 1}), routing)
    assert (loop.subject, loop.status) == ("leaf-0 loop", status)
    for port in (0, 60, 2):
        change = functools.partial(with_ports, switch=LEAF, ports={1: port})
        (stray,) = checked(tree(), change, routing)
        assert (stray.subject, stray.status) == ("leaf-0 no link", status)


def test_what_the_tool_leaves_out_closes_nothing() -> None:
    # the last LID is a multiple of 64
    (finding,) = checked(tree(), lambda tables: with_ports(tables, LEAF, {128: UNTOLD}))
    assert (finding.status, finding.measured) == ("pass", "paths to 128 LIDs of HCAs, 1 port not told by dump_fts")
    topology, tables, ends = tree()
    nodes = tuple(dataclasses.replace(node, ports=144) if node.guid == LEAF else node for node in topology.nodes)
    large = (dataclasses.replace(topology, nodes=nodes), with_ports(tables, LEAF, {40: UNTOLD}), ends)
    assert [item.status for item in checked(large)] == ["pass"]


def test_rails_without_paths_between_them_pass() -> None:
    assert [item.status for item in checked(rail_parts(4, 4, 2, 2, apart=True))] == ["pass"]


def test_tables_that_were_not_requested_or_failed() -> None:
    topology, _tables, _ends = tree()
    membership = Membership("compute", ("0x1",), {})
    assert check_routes(fabric(), membership, topology, None) == []
    (finding,) = check_routes(fabric(), membership, topology, SeenForwarding(error="timed out after 60 s"))
    assert finding.status == "warn" and "timed out after 60 s" in finding.why
