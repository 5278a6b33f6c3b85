# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage reachability on more than two nodes: what failing pairs have in common is named with the cable or the links to
look at."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import resolve_members
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.suspects import (
    find_suspects as every_suspect,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.pings import Endpoint, plan
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability import check as reachability
from ansible_collections.linerate.rdma.plugins.module_utils._check.reachability import (
    common_causes,
    pairs,
    ping_results,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.phrases import count_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ObservedSubnets,
    ObservedTopologies,
    Place,
    SeenTopology,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import (
    ObservedPings,
    ObservedServers,
    Ping,
    PingServer,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Judged
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.finding_groups import make_groups
from ansible_collections.linerate.rdma.plugins.module_utils._report.content.listing import list_steps
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import plain_guid

ROLE = pathlib.Path(__file__).parents[3] / "roles/reachability"
NODES = {f"worker-{number}": number for number in range(1, 7)}
NODES_A_LEAF = 2
#: index of row S1.6 to rail of the fabric compute
RAILS = {0: 0, 1: 1, 4: 2, 5: 3}

#: of (client, server, rail): packets lost of 500
Lost = typing.Callable[[int, int, int], int]


def topology() -> Topology:
    """Each two nodes share a leaf for each rail; two spines."""
    leaves = {(rail, group): f"0x{0x100 + rail * 16 + group:016x}" for rail in RAILS.values() for group in range(3)}
    spines = [f"0x{0x200 + number:016x}" for number in (1, 2)]
    nodes = [FabricNode("Switch", guid, f"leaf-{rail}-{group}", 65) for (rail, group), guid in leaves.items()]
    nodes += [FabricNode("Switch", guid, f"spine-{number}", 65) for number, guid in enumerate(spines, 1)]
    links = [
        Link(LinkEnd("Switch", leaf, 33 + place), LinkEnd("Switch", spine, 1 + number), 4, "NDR")
        for number, leaf in enumerate(leaves.values())
        for place, spine in enumerate(spines)
    ]
    for name, number in NODES.items():
        for index, rail in RAILS.items():
            nodes.append(FabricNode("Ca", plain_guid(number, index), f"{name} mlx5_{index}", 1))
            end = LinkEnd("Ca", plain_guid(number, index), 1, 16 * number + index, plain_guid(number, index, 1))
            links.append(
                Link(
                    LinkEnd("Switch", leaves[rail, (number - 1) // NODES_A_LEAF], 1 + (number - 1) % NODES_A_LEAF),
                    end,
                    4,
                    "NDR",
                )
            )
    return Topology(tuple(nodes), tuple(links))


def facts(
    lost: Lost,
    seen: typing.Optional[Topology] = None,
    dead: typing.Sequence[str] = (),
    pkeys: typing.Optional[dict[str, typing.Any]] = None,
) -> reachability.Facts:
    """Every pair of a rail, both ways. ``dead`` nodes gave no answer to ibping; ``pkeys`` are partition keys of all
    ports of a node."""
    hcas = {
        name: world.node(
            number,
            **{
                f"mlx5_{index}": world.hca(number, index, pkeys=(pkeys or {}).get(name, ("0xffff",))) for index in RAILS
            },
        )
        for name, number in NODES.items()
    }
    subnets = {name: world.subnets() for name in NODES}
    rails: dict[int, dict[str, Endpoint]] = {}
    for name, members in resolve_members(world.fabric(), hcas, subnets).members.items():
        for member in members:
            assert member.port and member.port.lid and member.hca.rdma_device
            rails.setdefault(member.rail, {})[name] = Endpoint(member.hca.rdma_device, 1, member.port.lid)
    planned = plan(rails.values())
    pings = {}
    for name, part in planned.items():
        results = []
        for task in part.clients:
            rail = RAILS[int(task.device[-1])]
            for lid in task.lids:
                results.append(Ping(task.device, 1, lid, 500, 500 - lost(NODES[name], lid // 16, rail)))
        pings[name] = ObservedPings(error="unreachable") if name in dead else ObservedPings(tuple(results))
    serving = {
        name: ObservedServers(tuple(PingServer(port.device, port.port) for port in part.servers))
        for name, part in planned.items()
    }
    return reachability.Facts(
        nodes={name: ObservedHcas(node) for name, node in hcas.items()},
        subnets={name: ObservedSubnets(seen_by) for name, seen_by in subnets.items()},
        topologies={"worker-1": ObservedTopologies((SeenTopology("mlx5_0", 1, seen or topology()),))},
        plan=planned,
        servers=serving,
        pings=pings,
        stopped=serving,
    )


def checked(what: reachability.Facts) -> list[Finding]:
    return list(reachability.check(world.intent(world.fabric()), what))


def suspects(findings: typing.Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.check == "reachability.suspect"]


def leaf(node: int) -> int:
    return (node - 1) // NODES_A_LEAF


def test_when_no_pair_fails_nothing_is_suspected() -> None:
    findings = checked(facts(lambda *_pair: 0))
    assert {finding.status for finding in findings} == {"pass"}
    (suspect,) = suspects(findings)
    assert suspect.measured == "0 of 120 pairs fail"


def test_an_hca_is_named_with_both_ends_of_its_cable() -> None:
    (suspect,) = suspects(
        checked(facts(lambda client, server, rail: 500 if rail == 1 and 3 in (client, server) else 0))
    )
    assert (suspect.status, suspect.subject, suspect.measured) == (
        "fail",
        "compute HCA worker-3 mlx5_1",
        "10 of 10 pairs fail",
    )
    assert "worker-3 mlx5_1 to port 1 of leaf-1-1" in suspect.remedy
    assert "and 7 more" in suspect.why


LIMITED = ("0x7fff",)


def test_limited_members_of_a_partition_are_told_and_no_cable_is_accused() -> None:
    """Two nodes are limited: they reach the full members, and not each other."""
    limited = {"worker-1": LIMITED, "worker-2": LIMITED}
    findings = checked(facts(lambda client, server, _rail: 500 if {client, server} == {1, 2} else 0, pkeys=limited))
    bad = [finding for finding in findings if finding.check == "reachability.pair" and finding.status != "pass"]
    assert len(bad) == 8 and {finding.status for finding in bad} == {"fail"}
    assert all(
        "limited members of partition 0x7fff" in finding.why and "partitions.conf" in finding.remedy for finding in bad
    )
    assert all(
        "only if the fabric has no other tenants" in item.remedy and "restart opensm" not in item.remedy for item in bad
    )
    (suspect,) = suspects(findings)
    assert suspect.subject == "compute partition keys" and "Cables and HCAs are not the cause" in suspect.why
    ports = [finding for finding in findings if finding.check == "reachability.port" and finding.status == "fail"]
    assert len(ports) == 8 and all(
        "Partition keys separate this port from 1 partner. The keys of this port are 0x7fff" in finding.why
        for finding in ports
    )


def test_a_true_suspect_is_named_beside_a_partition() -> None:
    def lost(client: int, server: int, rail: int) -> int:
        return 500 if {client, server} == {1, 2} or (3 in (client, server) and rail == 0) else 0

    findings = checked(facts(lost, pkeys={"worker-1": LIMITED, "worker-2": LIMITED}))
    assert [finding.subject for finding in suspects(findings)] == ["compute HCA worker-3 mlx5_0"]


def test_a_partition_that_ibping_does_not_use_is_not_proven() -> None:
    keys = dict.fromkeys(NODES, ("0x7fff", "0x8001"))
    findings = checked(facts(lambda *_pair: 500, pkeys=keys))
    told = [finding for finding in findings if finding.check == "reachability.pair"]
    assert {finding.status for finding in told} == {"unknown"} and all(
        "They share 0x8001" in finding.why for finding in told
    )
    rest = [finding for finding in findings if finding.check in ("reachability.port", "reachability.suspect")]
    assert {finding.status for finding in rest} == {"unknown"}


def test_one_pair_without_another_partition_is_a_failure_among_those_that_have_one() -> None:
    both, one = ("0x7fff", "0x8001"), ("0x7fff",)
    what = facts(
        lambda client, server, _rail: 500 if client < 4 and server < 4 else 0,
        pkeys={"worker-1": both, "worker-2": both, "worker-3": one},
    )
    findings = checked(what)
    pairs_of = {
        finding.subject: finding.status
        for finding in findings
        if finding.check == "reachability.pair" and "rail 0" in finding.subject
    }
    assert pairs_of["compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0"] == "unknown"
    assert pairs_of["compute rail 0 worker-1 mlx5_0 -> worker-3 mlx5_0"] == "fail"
    assert port_of(findings, "rail 0 worker-1").status == "fail"
    (suspect,) = suspects(findings)
    assert (suspect.subject, suspect.status) == ("compute partition keys", "fail")


def port_of(findings: typing.Sequence[Finding], subject: str) -> Finding:
    (port,) = [finding for finding in findings if finding.check == "reachability.port" and subject in finding.subject]
    return port


def replanned(
    what: reachability.Facts, lids: typing.Callable[[str, tuple[int, ...]], tuple[int, ...]]
) -> reachability.Facts:
    """The same with other LIDs to ping, by node."""
    plans = {
        name: dataclasses.replace(
            part, clients=tuple(dataclasses.replace(task, lids=lids(name, tuple(task.lids))) for task in part.clients)
        )
        for name, part in what.plan.items()
    }
    return dataclasses.replace(what, plan=plans)


def test_a_port_that_nobody_was_to_ping_is_not_proven_as_a_server() -> None:
    findings = checked(replanned(facts(lambda *_pair: 0), lambda _node, lids: tuple(lid for lid in lids if lid != 16)))
    assert port_of(findings, "rail 0 worker-1").status == "unknown"
    assert port_of(findings, "rail 1 worker-1").status == port_of(findings, "rail 0 worker-2").status == "pass"


def test_a_planned_lid_that_no_port_has_leaves_the_client_unknown() -> None:
    findings = checked(
        replanned(facts(lambda *_pair: 0), lambda node, lids: (999, *lids) if node == "worker-1" else lids)
    )
    port = port_of(findings, "rail 0 worker-1")
    assert (port.status, "999" in port.why) == ("unknown", True)
    # the others are judged all the same
    assert port.measured == (
        "pings from this port: 5 of 5 without loss; pings to this port: 5 of 5 without loss;"
        " 1 ping to a LID that no port of the rail has"
    )
    assert port_of(findings, "rail 0 worker-2").status == "pass"


def answered(what: reachability.Facts, node: str, **changes: typing.Any) -> reachability.Facts:
    """The same with another answer of ibping, mode ping, of a node."""
    return dataclasses.replace(what, pings={**what.pings, node: dataclasses.replace(what.pings[node], **changes)})


def pair_of(what: reachability.Facts, subject: str) -> Finding:
    (pair,) = [
        finding for finding in checked(what) if finding.check == "reachability.pair" and finding.subject == subject
    ]
    return pair


def test_a_ping_that_sent_nothing_lost_nothing_and_proves_nothing() -> None:
    what = facts(lambda *_pair: 0)
    silent = tuple(dataclasses.replace(ping, transmitted=0, received=0) for ping in what.pings["worker-1"].value or ())
    assert (
        pair_of(answered(what, "worker-1", value=silent), "compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0").status
        == "fail"
    )


@pytest.mark.parametrize("changes", [{"error": "torn"}, {"value": None}])
def test_an_answer_with_an_error_measures_nothing(changes: typing.Any) -> None:
    pair = pair_of(
        answered(facts(lambda *_pair: 0), "worker-1", **changes), "compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0"
    )
    assert pair.status == "unknown"


@pytest.mark.parametrize("kind", ["nodes", "subnets", "servers", "pings", "stopped"])
@pytest.mark.parametrize("changes", [{"error": "torn"}, {"value": None}])
def test_each_answer_of_a_node_that_is_torn_or_empty_leaves_it_unknown(kind: str, changes: typing.Any) -> None:
    what = facts(lambda *_pair: 0)
    of_kind = getattr(what, kind)
    left: dict[str, typing.Any] = {kind: {**of_kind, "worker-2": dataclasses.replace(of_kind["worker-2"], **changes)}}
    findings = checked(dataclasses.replace(what, **left))
    statuses = {finding.subject: finding.status for finding in findings if finding.check == "reachability.node"}
    assert statuses == {name: "unknown" if name == "worker-2" else "pass" for name in NODES}
    if kind in ("nodes", "subnets"):
        assert not [
            finding for finding in findings if finding.check == "reachability.port" and "worker-2" in finding.subject
        ]


def test_each_answer_that_nobody_asked_for_leaves_the_node_unknown() -> None:
    what = facts(lambda *_pair: 0)
    for kind in ("subnets", "servers", "pings", "stopped"):
        left: dict[str, typing.Any] = {
            kind: {name: answer for name, answer in getattr(what, kind).items() if name != "worker-2"}
        }
        findings = checked(dataclasses.replace(what, **left))
        (node,) = [finding for finding in findings if finding.check == "reachability.node" and finding.status != "pass"]
        assert (node.subject, node.status) == ("worker-2", "unknown"), kind


def test_a_fabric_without_a_port_is_unknown_and_an_ethernet_one_is_out_of_scope() -> None:
    what = facts(lambda *_pair: 0)
    silent = {
        name: ObservedSubnets(tuple(dataclasses.replace(seen, master=None) for seen in world.subnets()))
        for name in NODES
    }
    for subnets, status in ((silent, "unknown"), (what.subnets, "pass")):
        findings = reachability.check(
            world.intent(world.storage(), world.fabric()), dataclasses.replace(what, subnets=subnets)
        )
        scopes = {finding.subject: finding.status for finding in findings if finding.check == "reachability.scope"}
        assert scopes == {"storage": "pass", "compute": status}
    assert [finding.check for finding in reachability.check(world.intent(world.storage()), what)] == [
        "reachability.scope"
    ]


def test_servers_that_gave_an_empty_answer_are_the_cause() -> None:
    what = facts(lambda _client, server, _rail: 500 * (server == 2))
    pair = pair_of(
        dataclasses.replace(what, servers={**what.servers, "worker-2": ObservedServers()}),
        "compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0",
    )
    assert (pair.status, "the node returned an empty result" in pair.why) == ("fail", True)


def test_as_many_pairs_as_can_be_read_are_all_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(what: reachability.Facts) -> int:
        return len(
            [
                finding
                for finding in checked(what)
                if finding.check == "reachability.pair" and "further" not in finding.subject
            ]
        )

    monkeypatch.setattr(pairs, "_MOST_PAIRS", 120)
    assert listed(facts(lambda *_pair: 0)) == 120
    monkeypatch.setattr(pairs, "_MOST_PAIRS", 10)
    assert listed(facts(lambda client, server, rail: 500 * (rail == 1 and 3 in (client, server)))) == 10


def test_a_loss_fails_the_ports_at_both_ends() -> None:
    findings = checked(facts(lambda client, server, rail: 3 * ((client, server, rail) == (1, 2, 0))))
    failed = {
        finding.subject for finding in findings if finding.check == "reachability.port" and finding.status == "fail"
    }
    assert failed == {"compute rail 0 worker-1 mlx5_0 port 1", "compute rail 0 worker-2 mlx5_0 port 1"}


def test_partition_keys_explain_nothing_where_packets_come_back_or_members_are_full() -> None:
    for keys, lost in ((("0x7fff",), 7), (("0xffff",), 500), (("0x7fff", "0xffff"), 500), ((), 500)):

        def lose(client: int, server: int, _rail: int, lost: int = lost) -> int:
            return lost if {client, server} == {1, 2} else 0

        findings = checked(facts(lose, pkeys={"worker-1": keys, "worker-2": keys}))
        assert not any("partition" in finding.why.lower() for finding in findings), keys


def test_a_partial_loss_names_it_too() -> None:
    (suspect,) = suspects(
        checked(
            facts(lambda client, server, rail: 7 if rail == 1 and 3 in (client, server) and client + server != 7 else 0)
        )
    )
    assert (suspect.subject, suspect.measured) == ("compute HCA worker-3 mlx5_1", "8 of 10 pairs fail")


@pytest.mark.parametrize(
    ("lost", "subject", "said"),
    [
        (
            lambda client, server, _rail: 500 * (3 in (client, server)),
            "compute node worker-3",
            "on worker-3, and follow their remedies: the node must be up",
        ),
        (
            lambda client, server, rail: 500 * (rail == 2 and 1 in (leaf(client), leaf(server))),
            "compute leaf leaf-2-1",
            "find the ports of the switch leaf-2-1",
        ),
        (
            lambda client, server, rail: (
                500 * (rail == 2 and leaf(client) != leaf(server) and 1 in (leaf(client), leaf(server)))
            ),
            "compute uplinks of leaf-2-1",
            "leaf-2-1 port 33 - spine-1 port 8, leaf-2-1 port 34 - spine-2 port 8",
        ),
        (
            lambda client, server, rail: 500 * (rail == 2 and {leaf(client), leaf(server)} == {0, 1}),
            "compute links between leaf-2-0 <-> leaf-2-1",
            "leaf-2-0 port 33 - spine-1 port 7",
        ),
        (
            lambda client, server, rail: 500 * (rail == 0 and server == 4),
            "compute server worker-4 mlx5_0",
            "On worker-4, run ibping -S -C mlx5_0 as root",
        ),
        (
            lambda client, server, rail: 500 * (rail == 0 and client == 4),
            "compute client worker-4 mlx5_0",
            "On worker-4, run ibping -C mlx5_0 -L LID as root",
        ),
        (
            lambda client, server, rail: 500 * (rail == 0 and {client, server} == {4, 5}),
            "compute path worker-4 mlx5_0 <-> worker-5 mlx5_0",
            "ibtracert",
        ),
        (lambda *_pair: 500, "compute all of compute", "subnet manager"),
    ],
)
def test_each_fault_is_named_with_the_next_step(lost: Lost, subject: str, said: str) -> None:
    (suspect,) = suspects(checked(facts(lost)))
    assert (suspect.status, suspect.subject) == ("fail", subject) and said in suspect.remedy


def test_a_partial_loss_of_all_pairs_leads_to_the_time_that_an_answer_has() -> None:
    """Busy nodes answer late, and a late answer counts as lost; no cable explains that all pairs lose some."""
    findings = checked(facts(lambda *_pair: 7))
    of_all = [item for item in findings if item.check == "reachability.pair"]
    assert len(of_all) > 20 and len({(item.status, item.why, item.remedy) for item in of_all}) == 1
    (suspect,) = suspects(findings)
    assert "too busy to answer in time" in suspect.why and "reachability_timeout_ms" in suspect.remedy
    assert "subnet manager" in suspect.remedy, "if it was not that"
    # a reader has one entry for all pairs, and one way on
    groups = make_groups(Judged(item) for item in findings if item.status == "fail")
    of_pairs = [group for group in groups if group.check == "reachability.pair"]
    assert [len(group.findings) for group in of_pairs] == [len(of_all)]
    ((step,),) = list_steps({"reachability": groups})[0]
    assert step.group.check == "reachability.suspect"


@pytest.mark.parametrize(
    "lost",
    [
        lambda client, server, rail: 7 if (client, server) != (1, 2) else 500,
        lambda client, server, rail: 7 if (client, server) != (1, 2) else 0,
        lambda client, server, rail: 7 if rail == 0 and 1 in (client, server) else 0,
    ],
)
def test_a_loss_that_not_each_pair_has_is_told_at_each_pair(lost: Lost) -> None:
    findings = checked(facts(lost))
    failed = [item for item in findings if item.check == "reachability.pair" and item.status == "fail"]
    assert len({item.measured for item in failed}) == len(failed)
    assert all("ibtracert" in item.remedy for item in failed)
    assert all("reachability_timeout_ms" not in item.remedy for item in suspects(findings))


@pytest.mark.parametrize(
    ("lost", "count"),
    [
        # no answer from a port, in either direction; answers in one direction only; a part of the messages
        (lambda client, server, rail: 500 * (rail == 0 and 3 in (client, server)), 10),
        (lambda client, server, rail: 500 * (rail == 0 and server == 3), 5),
        (lambda client, server, rail: 7 * (rail == 0 and 3 in (client, server)), 10),
    ],
)
def test_pairs_of_one_cause_have_one_entry_and_their_lids_are_measured(lost: Lost, count: int) -> None:
    findings = checked(facts(lost))
    groups = make_groups(Judged(item) for item in findings if item.check == "reachability.pair")
    (group,) = groups
    assert len(group.findings) == count
    assert "LID" not in group.why and not re.search("LID [0-9]", group.remedy)
    assert len({item.measured for item in group.findings}) == count
    assert all(re.search(r"\(LID [0-9]+ -> LID [0-9]+\)$", item.measured) for item in group.findings)


def test_pairs_that_were_not_measured_for_one_cause_have_one_entry() -> None:
    what = facts(lambda *_pair: 0)
    silent = dataclasses.replace(what, pings={**what.pings, "worker-3": ObservedPings(error="ibping is not installed")})
    groups = make_groups(Judged(item) for item in checked(silent) if item.check == "reachability.pair")
    (group,) = groups
    assert len(group.findings) > 5 and "ibping is not installed" in group.why
    assert all(item.measured.startswith("no result of ibping (LID ") for item in group.findings)


def test_a_cable_that_all_pairs_share_is_not_taken_for_busy_nodes() -> None:
    """Two nodes with one HCA each."""
    first, second, third, fourth = (
        ping_results.PingPort(f"worker-{number}", "mlx5_0", 1, 0, number, Place(f"worker-{number}", "mlx5_0", 0), ())
        for number in range(1, 5)
    )
    some = Ping("mlx5_0", 1, 1, 500, 493)
    one = [ping_results.Pair(first, second, some), ping_results.Pair(second, first, some)]
    assert not pairs.lose_some_each(one) and not pairs.lose_some_each([])
    assert pairs.lose_some_each([*one, ping_results.Pair(third, fourth, some)])
    assert not pairs.lose_some_each([*one, ping_results.Pair(second, third, some)]), "one HCA is on the way of all"
    assert not pairs.lose_some_each([*one, ping_results.Pair(third, fourth, None, "not measured")])


def test_one_direction_that_fails_accuses_the_server_and_not_the_link() -> None:
    findings = checked(facts(lambda client, server, rail: 500 * ((client, server, rail) == (1, 2, 0))))
    (pair,) = [finding for finding in findings if finding.check == "reachability.pair" and finding.status == "fail"]
    assert pair.subject == "compute rail 0 worker-1 mlx5_0 -> worker-2 mlx5_0"
    assert (
        pair.measured.startswith("500 of 500 messages lost, 100 % (LID ") and "The other direction passes" in pair.why
    )


def test_a_packet_that_was_sent_again_is_a_loss() -> None:
    what = facts(lambda *_pair: 0)
    first, *others = what.pings["worker-1"].value or ()
    again = Ping(first.rdma_device, 1, first.destination_lid, 55, 55, resent=1)
    (pair,) = [
        finding
        for finding in checked(
            reachability.Facts(**{**vars(what), "pings": {**what.pings, "worker-1": ObservedPings((again, *others))}})
        )
        if finding.check == "reachability.pair" and finding.status == "fail"
    ]
    assert pair.measured.startswith("1 of 56 messages lost, 1.79 % (LID ")


def test_packets_that_were_late_once_are_a_warning_and_prove_their_ports() -> None:
    what = facts(lambda *_pair: 0)
    first, *others = what.pings["worker-1"].value or ()
    late = Ping(first.rdma_device, 1, first.destination_lid, 1000, 1000, late=1)
    findings = checked(
        reachability.Facts(**{**vars(what), "pings": {**what.pings, "worker-1": ObservedPings((late, *others))}})
    )
    assert not [finding for finding in findings if finding.status in ("fail", "unknown")]
    (pair,) = [finding for finding in findings if finding.check == "reachability.pair" and finding.status == "warn"]
    assert pair.measured.startswith("0 of 1000 messages lost, 0 %; 1 packet repeated in a shorter run before (LID ")


@pytest.mark.parametrize(
    ("transmitted", "received", "resent", "measured"),
    [
        (5, 10, 5, "10 answers to 5 messages"),
        (5, 6, 0, "6 answers to 5 messages"),
        (0, 5, 0, "5 answers to 0 messages"),
        (0, 0, 0, "0 answers to 0 messages"),
    ],
)
def test_more_answers_than_packets_are_no_proof(transmitted: int, received: int, resent: int, measured: str) -> None:
    what = facts(lambda *_pair: 0)
    first, *others = what.pings["worker-1"].value or ()
    odd = Ping(first.rdma_device, 1, first.destination_lid, transmitted, received, resent=resent)
    findings = checked(
        reachability.Facts(**{**vars(what), "pings": {**what.pings, "worker-1": ObservedPings((odd, *others))}})
    )
    (pair,) = [finding for finding in findings if finding.check == "reachability.pair" and finding.status == "fail"]
    assert pair.subject.startswith("compute rail 0 worker-1 mlx5_0 -> ")
    assert pair.measured.startswith(f"{measured} (LID ") and "the stored result was damaged" in pair.why


@pytest.mark.parametrize("counts", [{"transmitted": -1_000_000}, {"received": -1}, {"resent": 10**10}])
def test_a_number_of_packets_that_can_not_be_true_is_refused(counts: dict[str, int]) -> None:
    ping = {"rdma_device": "mlx5_0", "port": 1, "destination_lid": 7, "transmitted": 5, "received": 5, **counts}
    with pytest.raises(LoadError, match="a number of packets from 0 to"):
        load(Ping, ping)
    assert "a number of packets from 0 to" in (load(ObservedPings, {"value": [ping]}).error or "")


def test_a_node_has_as_many_servers_as_functions() -> None:
    loaded = load(ObservedServers, {"value": [{"rdma_device": "mlx5_0", "port": 1}] * 4097})
    assert "at most 4096 servers of a node" in (loaded.error or "")


def test_without_a_topology_no_switch_is_named_and_that_is_said() -> None:
    what = facts(lambda client, server, rail: 500 * (rail == 1 and 3 in (client, server)))
    (suspect,) = suspects(checked(reachability.Facts(**{**vars(what), "topologies": {}})))
    assert (
        suspect.subject == "compute HCA worker-3 mlx5_1"
        and "The switches were not searched for a cause: No topology was read" in suspect.why
    )


def test_nodes_that_gave_no_answer_are_no_evidence() -> None:
    findings = checked(facts(lambda *_pair: 0, dead=list(NODES)))
    (suspect,) = suspects(findings)
    assert suspect.status == "unknown" and suspect.measured == "no pair with a result"


def test_of_pairs_that_were_not_measured_nobody_is_suspected() -> None:
    """Worker-3 pinged nobody, as its answer broke; the others reach it."""
    (suspect,) = suspects(checked(facts(lambda *_pair: 0, dead=["worker-3"])))
    assert (suspect.status, suspect.measured) == ("pass", "0 of 100 pairs fail")


@pytest.mark.parametrize(("packets", "status"), [(1, "unknown"), (19, "unknown"), (20, "pass")])
def test_so_few_packets_that_they_show_no_loss_prove_nothing(packets: int, status: str) -> None:
    sent = facts(lambda *_pair: 0)
    pings = {
        name: ObservedPings(
            tuple(dataclasses.replace(ping, transmitted=packets, received=packets) for ping in seen.value or ())
        )
        for name, seen in sent.pings.items()
    }
    (scope,) = [item for item in checked(dataclasses.replace(sent, pings=pings)) if item.check == "reachability.scope"]
    assert scope.status == status and f"{count_of(packets, 'packet')} to each" in scope.measured
    assert status == "pass" or "reachability_count" in scope.remedy


def test_a_fabric_that_is_not_known_hides_none_behind_it() -> None:
    unknown = dataclasses.replace(world.fabric(subnet_manager=("0xdead",)), name="other")
    findings = reachability.check(world.intent(unknown, world.fabric()), facts(lambda *_pair: 0))
    scopes = {finding.subject: finding.status for finding in findings if finding.check == "reachability.scope"}
    assert scopes == {"other": "unknown", "compute": "pass"}


def test_too_many_failing_pairs_are_counted_and_some_of_each_suspect_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "_MOST_PAIRS", 10)
    findings = checked(
        facts(
            lambda client, server, rail: (
                500 * ((rail == 1 and 3 in (client, server)) or (rail == 2 and 5 in (client, server)))
            )
        )
    )
    listed = [finding for finding in findings if finding.check == "reachability.pair"]
    assert (
        sum("worker-3 mlx5_1" in finding.subject for finding in listed)
        == sum("worker-5 mlx5_4" in finding.subject for finding in listed)
        > 0
    )
    (further,) = [finding for finding in listed if finding.subject == "compute further pairs"]
    assert further.status == "fail" and int(further.measured.split()[0]) + len(listed) - 1 == 20


def test_what_is_left_after_the_strongest_suspects_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_causes, "MOST_SUSPECTS", 1)
    monkeypatch.setattr(reachability, "find_suspects", lambda trials: every_suspect(trials, most=1))
    named, rest = suspects(
        checked(facts(lambda client, server, rail: 500 * (rail in (1, 2) and 3 in (client, server))))
    )
    assert named.subject == "compute HCA worker-3 mlx5_1" and rest.subject == "compute"
    assert (
        rest.measured == "10 pairs fail"
        and "The components in the other findings reachability.suspect do not explain" in rest.why
    )


def test_a_loss_here_and_there_has_no_suspect_and_that_is_said() -> None:
    (suspect,) = suspects(checked(facts(lambda client, server, rail: int((client * 7 + server * 3 + rail) % 11 == 0))))[
        -1:
    ]
    assert (
        (suspect.status, suspect.subject) == ("fail", "compute")
        and "have no common cause" in suspect.why
        and "reachability_count" in suspect.remedy
    )


def test_a_small_loss_in_one_direction_accuses_no_server() -> None:
    findings = checked(facts(lambda client, server, rail: int((client, server, rail) == (1, 2, 0))))
    (pair,) = [finding for finding in findings if finding.check == "reachability.pair" and finding.status == "fail"]
    assert "lost on the path" in pair.why
    (port,) = [
        finding
        for finding in findings
        if finding.check == "reachability.port" and finding.subject.endswith("worker-2 mlx5_0 port 1")
    ]
    assert port.why.startswith("The partners answer some messages")


def test_servers_that_could_not_be_ended_are_told() -> None:
    what = facts(lambda *_pair: 0)
    findings = checked(
        reachability.Facts(
            **{**vars(what), "stopped": {**what.stopped, "worker-2": ObservedServers(error="can't be ended")}}
        )
    )
    (node,) = [
        finding for finding in findings if finding.check == "reachability.node" and finding.subject == "worker-2"
    ]
    assert node.status == "unknown" and "can't be ended" in node.why


@pytest.mark.parametrize(
    ("loss", "packets", "chance"),
    [(0.3, 5, 0.832), (0.3, 20, 0.999), (0.01, 20, 0.182), (0.01, 500, 0.993), (0.0, 500, 0.0), (1.0, 1, 1.0)],
)
def test_chance_to_see_a_loss(loss: float, packets: int, chance: float) -> None:
    assert reachability.compute_chance_to_see(loss, packets) == pytest.approx(chance, abs=0.0005)


def test_the_chances_in_the_readme_are_right() -> None:
    rows = [
        re.findall(r"[0-9.]+", line)
        for line in (ROLE / "README.md").read_text().splitlines()
        if re.match(r"\| (packets|[0-9]+) ", line)
    ]
    losses, *chances = rows
    assert len(losses) > 2 and len(chances) > 2
    for packets, *told in chances:
        assert told == [
            f"{reachability.compute_chance_to_see(float(loss) / 100, int(packets)):.1%}".rstrip("%") for loss in losses
        ]
    assert yaml.safe_load((ROLE / "defaults/main.yml").read_text())["reachability_count"] in [
        int(packets) for packets, *_told in chances
    ]


def test_a_server_that_ended_before_its_time_proves_nothing_and_accuses_nobody() -> None:
    """As in a lab under load: the nodes started so late that the servers' time ran out while they were pinged."""
    found = facts(lambda _client, server, _rail: 500 if server == 1 else 0)
    gone = dataclasses.replace(found, stopped={**found.stopped, "worker-1": ObservedServers(())})
    findings = checked(gone)
    pairs = [item for item in findings if item.check == "reachability.pair" and item.status != "pass"]
    assert {item.status for item in pairs} == {"unknown"} and {
        "had stopped before the pings were finished" in item.why for item in pairs
    } == {True}
    assert {item.remedy[:28] for item in pairs} == {"Run journalctl -k on the nod"}
    assert not [item for item in findings if item.check == "reachability.suspect" and item.status == "fail"]
    # what came through came through
    assert {item.status for item in checked(dataclasses.replace(facts(lambda *_any: 0), stopped=gone.stopped))} == {
        "pass"
    }
