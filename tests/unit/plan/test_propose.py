# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is becomes an intent: the stages take it, each value says why, and what nothing shows is refused until it
is filled in."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import re
import typing

import jinja2
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import OfCluster, OfNodes
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.kubernetes import LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    ObservedTopologies,
    SeenSubnet,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.disruption_override import (
    DISRUPTION,
    check_override,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.proposal import (
    PLACEHOLDER,
    Blank,
    Entry,
    LeftOut,
    Proposal,
    Section,
    Sections,
    Value,
    iterate_leaves,
    make_data,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import AddressFacts, UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import NodeRoom
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    Port,
    Sriov,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import (
    NetdevNeighbours,
    NodeNeighbours,
    ObservedNeighbours,
    SwitchPort,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import OperatorFacts, Policy
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.difference import list_differences
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.inputs import ProposalInputs
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.propose import MOST_FABRICS, propose
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.proposal import render
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.truth.fleet import FEW, MIXED, PAIR, ROCE, Shape, healthy

Data = dict[str, typing.Any]

#: small enough for each test, and of several kinds: one fabric, two models, Ethernet, two fabrics
TWO = Shape("2 nodes of 4 and 2 HCAs", 2, 4, 2)
SHAPES = (PAIR, FEW, ROCE, MIXED, TWO)
FILLED = {"namespace": "training"}


def seen_of(shape: Shape) -> ProposalInputs:
    """What a run on a healthy fleet saw."""
    by_kind: Data = {}
    for source, value in healthy(shape).facts.items():
        if isinstance(source, OfNodes) or (isinstance(source, OfCluster) and source.key == source.kind):
            by_kind[source.kind] = value
    return ProposalInputs(
        by_kind["hcas"], by_kind["subnets"], by_kind["topologies"], by_kind["addresses"], by_kind["operators"]
    )


def read(proposal: Proposal, **asked: str) -> Data:
    """The file as Ansible has it.

    :param asked: variables of the run
    """
    data: Data = yaml.safe_load(jinja2.Template(render(proposal)).render(asked))
    return data


def filled(proposal: Proposal) -> Data:
    """The file as a user completes it."""

    def fill(value: typing.Any, key: str = "") -> typing.Any:
        if isinstance(value, dict):
            return {name: fill(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return FILLED[key] if isinstance(value, str) and value.startswith(PLACEHOLDER) else value

    data: Data = fill(read(proposal))
    return data


def changed(
    seen: ProposalInputs, node: str, name: str, change: typing.Callable[[Hca], typing.Optional[Hca]]
) -> ProposalInputs:
    """The same with one HCA that is another one, or none."""
    value = seen.hcas[node].value
    assert value is not None
    hcas = [change(hca) if hca.name == name else hca for hca in value.hcas]
    assert tuple(hcas) != value.hcas
    answer = ObservedHcas(dataclasses.replace(value, hcas=tuple(hca for hca in hcas if hca)))
    return dataclasses.replace(seen, hcas={**seen.hcas, node: answer})


def everywhere(seen: ProposalInputs, name: str, change: typing.Callable[[Hca], typing.Optional[Hca]]) -> ProposalInputs:
    for node in seen.hcas:
        seen = changed(seen, node, name, change)
    return seen


def of_model(vendor: str, device: str) -> typing.Callable[[Hca], Hca]:
    def change(hca: Hca) -> Hca:
        assert hca.pci is not None
        return dataclasses.replace(hca, pci=dataclasses.replace(hca.pci, vendor=vendor, device=device))

    return change


def out(proposal: Proposal) -> str:
    return "\n".join(f"{item.what}: {item.why}" for item in proposal.left_out)


def values(proposal: Proposal) -> dict[str, typing.Union[Value, Blank]]:
    return dict(iterate_leaves(proposal.variables))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_stages_take_it_when_it_is_filled_in(shape: Shape) -> None:
    data = filled(propose(seen_of(shape)))
    intent = parse_intent(data["rdma_fabrics"], None, data["rdma_cluster"])
    for stage in ("validate", "discover", "fabric"):
        found = TABLE[stage][1](intent, healthy(shape).of(stage))
        assert judge(found, intent.waivers).open, [item for item in found if item.status not in ("pass", "warn")]
        assert stage != "validate" or {item.status for item in found} == {"pass"}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_validate_refuses_it_until_then_and_names_each_line(shape: Shape) -> None:
    proposal = propose(seen_of(shape))
    data = read(proposal)
    blanks = {place: entry for place, entry in iterate_leaves(proposal.variables) if isinstance(entry, Blank)}
    assert {place.rpartition(".")[2] for place in blanks} == {"namespace"}
    with pytest.raises(IntentError) as caught:
        parse_intent(data["rdma_fabrics"], None, data["rdma_cluster"])
    assert {problem.path: problem.expected for problem in caught.value.problems} == {
        place: entry.hint for place, entry in blanks.items()
    }
    context = StageContext("validate", "run", "then", "now", False, {})
    facts = to_data(validate.Facts(nodes=shape.names))
    record = judge_stage(context, RawIntent(data["rdma_fabrics"], None, data["rdma_cluster"]), facts)
    assert record.gate == "closed"
    assert [item.finding.subject for item in record.judged] == list(blanks)


def test_fabrics_are_told_apart_by_their_subnet_managers_and_list_the_standby() -> None:
    proposal = propose(seen_of(TWO))
    first, second = make_data(proposal.fabrics)
    assert (first["select"]["hcas_per_node"], second["select"]["hcas_per_node"]) == (4, 2)
    assert not set(first["select"]["subnet_manager"]) & set(second["select"]["subnet_manager"])
    assert len(first["select"]["subnet_manager"]) == len(second["select"]["subnet_manager"]) == 2
    assert not ipaddress.ip_network(first["ipam"]["range"]).overlaps(ipaddress.ip_network(second["ipam"]["range"]))


def test_a_node_whose_ports_tell_a_fabric_each_is_left_out_beyond_those_that_a_site_has() -> None:
    """3,000 of them took a minute, and proposed 3,000 fabrics."""
    seen = seen_of(PAIR)
    node, other = seen.hcas
    value, subnets = seen.hcas[node].value, seen.subnets[node].value
    assert value is not None and subnets is not None
    names = [f"mlx5_{number}" for number in range(100, 100 + 2 * MOST_FABRICS)]
    made = tuple(dataclasses.replace(value.hcas[0], name=name, rdma_device=name) for name in names)
    told = tuple(
        dataclasses.replace(subnets[0], rdma_device=name, master=SubnetManager(1, f"0x{at:016x}", "MASTER", 1, 1))
        for at, name in enumerate(names, 1)
    )
    hostile = dataclasses.replace(
        seen,
        hcas={node: ObservedHcas(dataclasses.replace(value, hcas=made)), other: seen.hcas[other]},
        subnets={**seen.subnets, node: ObservedSubnets(told)},
    )
    proposal = propose(hostile)
    fabrics = make_data(proposal.fabrics)
    assert len(fabrics) == MOST_FABRICS
    (true,) = [row for row in fabrics if row["select"]["hcas_per_node"] > 1]
    assert subnets[0].master is not None and subnets[0].master.guid in true["select"]["subnet_manager"]
    assert (
        f"it belongs to one of {2 * MOST_FABRICS + 1} fabrics, but at most {MOST_FABRICS} fabrics are proposed."
        " Add a fabric to the intent manually."
    ) in out(proposal)


def test_ports_that_see_the_two_managers_of_one_fabric_are_on_one_fabric() -> None:
    seen = seen_of(TWO)
    master, standby = (make_data(propose(seen).fabrics)[0]["select"]["subnet_manager"])[:2]

    def after(subnet: SeenSubnet) -> SeenSubnet:
        if subnet.master is None or subnet.master.guid != master:
            return subnet
        return dataclasses.replace(subnet, master=SubnetManager(2, standby, "MASTER", 3, 1))

    node, *_rest = seen.subnets
    failed_over = ObservedSubnets(tuple(map(after, seen.subnets[node].value or ())))
    assert failed_over != seen.subnets[node]
    assert len(propose(dataclasses.replace(seen, subnets={**seen.subnets, node: failed_over})).fabrics.items) == 2


def test_without_a_topology_rails_are_to_be_filled_in() -> None:
    seen = dataclasses.replace(seen_of(PAIR), topologies={"node-1": ObservedTopologies(None, "no ibnetdiscover")})
    assert isinstance(values(propose(seen))["rdma_fabrics[0].rails"], Blank)


def test_hcas_that_share_their_leaves_have_no_rails() -> None:
    shape = dataclasses.replace(PAIR, name="all on one leaf")
    seen = seen_of(shape)
    ((node, observed),) = ((node, item) for node, item in seen.topologies.items() if item.value)
    (topology,) = observed.value or ()
    assert topology.topology is not None
    leaf = next(item for item in topology.topology.nodes if item.description == "leaf-0-1")
    leaves_of = {item.guid for item in topology.topology.nodes if item.description.startswith("leaf-")}
    links = tuple(
        (
            dataclasses.replace(link, a=dataclasses.replace(link.a, guid=leaf.guid, port=number))
            if link.a.guid in leaves_of
            else link
        )
        for number, link in enumerate(topology.topology.links, 1)
    )
    one = dataclasses.replace(topology, topology=dataclasses.replace(topology.topology, links=links))
    proposal = propose(dataclasses.replace(seen, topologies={**seen.topologies, node: ObservedTopologies((one,))}))
    assert make_data(proposal.fabrics)[0]["rails"] == "none"


@pytest.mark.parametrize(
    ("vendor", "device", "words"),
    [
        ("8086", "1592", "its vendor is Intel. Whether its virtual functions support RDMA"),
        ("14e4", "1760", "driver (bnxt_re), and no node reports a virtual function with RDMA"),
        ("1dd8", "1003", "driver (ionic_rdma)"),
        ("1af4", "1000", "this collection does not know its PCI vendor"),
        ("15b3", "a2dc", "it is a BlueField"),
    ],
)
@pytest.mark.parametrize("shape", [PAIR, ROCE], ids=lambda shape: shape.name)
def test_other_hardware_is_named_and_left_out(shape: Shape, vendor: str, device: str, words: str) -> None:
    proposal = propose(everywhere(seen_of(shape), "mlx5_1", of_model(vendor, device)))
    assert words in out(proposal) and f"mlx5_1 ({vendor}:{device}) of all {shape.nodes} nodes" in out(proposal)
    select = make_data(proposal.fabrics)[0]["select"]
    assert select["hcas_per_node"] == shape.rails - 1
    assert "0000:11:00.0" not in select.get("pci", ())
    assert "pci" in select or select["device"] != device


@pytest.mark.parametrize(("vendor", "device", "name"), [("14e4", "1760", "Broadcom"), ("1dd8", "1003", "AMD")])
def test_nics_of_other_vendors_are_proposed_where_a_virtual_function_has_rdma(
    vendor: str, device: str, name: str
) -> None:
    seen = seen_of(ROCE)
    for number in range(ROCE.rails):
        seen = everywhere(seen, f"mlx5_{number}", of_model(vendor, device))
    assert not propose(seen).fabrics.items
    # on one node, of one of them
    (node, *_others) = seen.hcas
    value = seen.hcas[node].value
    assert value is not None
    parent = value.hcas[0]
    assert parent.pci is not None
    function = dataclasses.replace(
        parent,
        name="v0",
        rdma_device="v0",
        pci=dataclasses.replace(parent.pci, address="0000:10:00.1"),
        physical_function=parent.pci.address,
        sriov=None,
    )
    for device_name, status in ((None, 0), ("v0", 1)):
        more = dataclasses.replace(function, rdma_device=device_name)
        observed = dataclasses.replace(seen.hcas[node], value=dataclasses.replace(value, hcas=(*value.hcas, more)))
        proposal = propose(dataclasses.replace(seen, hcas={**seen.hcas, node: observed}))
        assert len(proposal.fabrics.items) == status, out(proposal)
    (fabric,) = make_data(proposal.fabrics)
    assert fabric["profile"] == "sriov_ethernet"
    assert fabric["select"] == {"vendor": vendor, "device": device, "hcas_per_node": ROCE.rails}
    (said,) = [leaf for path, leaf in iterate_leaves(proposal.variables) if path == "rdma_fabrics[0].select.vendor"]
    assert isinstance(said, Value) and said.why.endswith(name)


def test_ethernet_beside_infiniband_is_left_out() -> None:
    def ethernet(hca: Hca) -> Hca:
        return dataclasses.replace(hca, ports=(Port(1, "ACTIVE", "LinkUp", "Ethernet", 25.0),))

    proposal = propose(everywhere(seen_of(PAIR), "mlx5_3", ethernet))
    assert (
        "mlx5_3 (15b3:1021) of all 2 nodes: its link is not InfiniBand, but the nodes also have InfiniBand HCAs"
        in out(proposal)
    )
    assert [item["profile"] for item in make_data(proposal.fabrics)] == ["sriov_infiniband"]


def test_a_slower_nic_a_part_of_a_bond_and_one_without_a_link_are_left_out() -> None:
    def slower(hca: Hca) -> Hca:
        return dataclasses.replace(hca, ports=tuple(dataclasses.replace(port, rate_gbps=25.0) for port in hca.ports))

    def bonded(hca: Hca) -> Hca:
        return dataclasses.replace(
            hca, netdevs=tuple(dataclasses.replace(netdev, bond="bond0") for netdev in hca.netdevs)
        )

    def down(hca: Hca) -> Hca:
        return dataclasses.replace(hca, ports=tuple(dataclasses.replace(port, state="DOWN") for port in hca.ports))

    for change, words in (
        (slower, "its link runs at 25 Gb/s"),
        (bonded, "part of the bond bond0"),
        (down, "its port has no link"),
    ):
        proposal = propose(everywhere(seen_of(ROCE), "mlx5_1", change))
        assert words in out(proposal)
        # others of its model are left out, so that the model does not select them
        assert make_data(proposal.fabrics)[0]["select"] == {
            "vendor": "15b3",
            "pci": ["0000:10:00.0"],
            "hcas_per_node": 1,
        }


def at_rate(seen: ProposalInputs, node: str, rate: float, *names: str) -> ProposalInputs:
    """The same with the links of a node at another rate."""

    def change(hca: Hca) -> Hca:
        return dataclasses.replace(hca, ports=tuple(dataclasses.replace(port, rate_gbps=rate) for port in hca.ports))

    return functools.reduce(lambda made, name: changed(made, node, name, change), names, seen)


def test_one_node_that_claims_a_faster_link_empties_the_fabric_of_no_other() -> None:
    usual = propose(seen_of(ROCE))
    proposal = propose(at_rate(seen_of(ROCE), "node-3", 401.0, "mlx5_0"))
    (fabric,) = proposal.fabrics.items
    assert "Ethernet links of 400 Gb/s with RDMA" in fabric.why and len(usual.fabrics.items) == 1
    told = (
        "its link runs at 401 Gb/s, but the links of most nodes run at 400 Gb/s, which is the highest"
        " rate on 2 of 3 nodes. Check the link, or add a fabric to the intent manually."
    )
    assert f"node-3 mlx5_0 (15b3:101d): {told}" in out(proposal)
    assert not [item.what for item in proposal.left_out if "node-1" in item.what or "node-2" in item.what]


def test_of_two_rates_that_as_many_nodes_have_the_faster_one_is_proposed() -> None:
    seen = dataclasses.replace(
        seen_of(ROCE), hcas={name: item for name, item in seen_of(ROCE).hcas.items() if name != "node-3"}
    )
    proposal = propose(at_rate(seen, "node-2", 800.0, "mlx5_0", "mlx5_1"))
    assert "Ethernet links of 800 Gb/s with RDMA" in proposal.fabrics.items[0].why
    assert "node-1 mlx5_0, mlx5_1" in out(
        proposal
    ) and "its link runs at 400 Gb/s, but the links of most nodes run at 800 Gb/s" in out(proposal)


def test_a_nic_for_storage_that_each_node_has_beside_faster_ones_is_none_of_the_fabric() -> None:
    """Each node has one voice, for its fastest: two speeds of servers with the same slower NIC make no fabric of
    that."""
    seen = at_rate(seen_of(ROCE), "node-1", 800.0, "mlx5_0")
    for node in ("node-1", "node-2", "node-3"):
        seen = at_rate(seen, node, 100.0, "mlx5_1")
    proposal = propose(seen)
    assert "Ethernet links of 400 Gb/s with RDMA" in proposal.fabrics.items[0].why
    assert (
        "mlx5_1 (15b3:101d) of all 3 nodes: its link runs at 100 Gb/s, but the links of most"
        " nodes run at 400 Gb/s: such a NIC usually serves storage or the node itself"
    ) in out(proposal)
    assert ("node-1 mlx5_0 (15b3:101d): its link runs at 800 Gb/s, but the links of most nodes run at 400 Gb/s") in out(
        proposal
    )


def test_a_node_that_differs_and_one_without_an_answer_are_named() -> None:
    seen = changed(seen_of(MIXED), "node-03", "mlx5_2", lambda hca: None)
    seen = dataclasses.replace(seen, hcas={**seen.hcas, "node-05": ObservedHcas(None, "unreachable: no route")})
    proposal = propose(seen)
    assert "node node-03: 7 HCAs on fabric-1 (" in out(proposal)
    assert "), but most nodes have 8. Repair the node, or remove the node from the group rdma_nodes." in out(proposal)
    assert "node node-05: no data could be read: unreachable: no route. Correct the cause" in out(proposal)
    assert make_data(proposal.fabrics)[0]["select"]["hcas_per_node"] == 8


def test_nodes_that_are_left_out_for_one_reason_are_one_line_with_their_number() -> None:
    seen = seen_of(MIXED)
    for number in range(3, 6):
        seen = changed(seen, f"node-{number:02d}", "mlx5_2", lambda hca: None)
    lost = {f"node-{number:02d}": ObservedHcas(None, "unreachable: no route") for number in range(10, 20)}
    lost["node-20"] = ObservedHcas(None, "permission denied.")
    proposal = propose(dataclasses.replace(seen, hcas={**seen.hcas, **lost}))
    lines = [line for line in out(proposal).splitlines() if "node" in line.partition(":")[0]]
    assert [line.partition(":")[0] for line in lines] == [
        "10 nodes (node-10, node-11, node-12, node-13, node-14, node-15, node-16, node-17 and 2 more)",
        "node node-20",
        "3 nodes (node-03, node-04, node-05)",
    ]
    assert lines[0].endswith(
        ": no data could be read: unreachable: no route. Correct the cause, or remove these nodes from the group"
        " rdma_nodes."
    )
    assert "permission denied. Correct" in lines[1] and "7 HCAs on fabric-1" in lines[2]


def test_a_port_without_a_subnet_manager_is_named() -> None:
    seen = seen_of(PAIR)
    blind = tuple(
        dataclasses.replace(item, master=None, error="timeout") if item.rdma_device == "mlx5_2" else item
        for item in seen.subnets["node-1"].value or ()
    )
    proposal = propose(dataclasses.replace(seen, subnets={**seen.subnets, "node-1": ObservedSubnets(blind)}))
    assert "node-1 mlx5_2 (15b3:1021): no subnet manager responds on its ports, which are ACTIVE and LinkUp" in out(
        proposal
    )


def test_requests_of_measuring_pods_fit_the_smallest_node() -> None:
    seen = seen_of(PAIR)
    names = tuple(seen.hcas)
    rails = read(propose(seen))["rdma_fabrics"][0]["select"]["hcas_per_node"]
    large = tuple(NodeRoom(name, 256_000, 1 << 40) for name in names)
    assert "pods" not in read(propose(dataclasses.replace(seen, room=large)))["rdma_fabrics"][0]
    assert "pods" not in read(propose(dataclasses.replace(seen, room=())))["rdma_fabrics"][0]
    small = NodeRoom(names[-1], 1000 * rails + 500, 1 << 40, 100, cpu_moving=200_000)
    proposal = propose(dataclasses.replace(seen, room=(*large[:-1], small)))
    assert read(proposal)["rdma_fabrics"][0]["pods"] == {"cpu": "1"}, "jobs that run now end before a run measures"
    (why,) = [entry.why for place, entry in values(proposal).items() if place.endswith("pods.cpu")]
    assert names[-1] in why
    fabric = parse_intent(filled(proposal)["rdma_fabrics"]).fabrics[0]
    assert fabric.pods.cpu == "1", "a text, as the intent takes it"
    full = dataclasses.replace(small, cpu_kept=small.cpu or 0)
    assert "pods" not in read(propose(dataclasses.replace(seen, room=(full,))))["rdma_fabrics"][0], "nothing fits"


def test_nothing_to_propose_is_an_empty_list_with_the_reasons() -> None:
    proposal = propose(ProposalInputs({"node-1": ObservedHcas(NodeHcas(()))}, {}))
    assert not proposal.fabrics.items
    assert propose(ProposalInputs({}, {})).fabrics.items == ()


@pytest.mark.parametrize(
    ("sriov", "functions", "disruption"),
    [(Sriov(16, 4), 4, "drain"), (Sriov(16, 0), 8, "reboot"), (Sriov(4, 0), 4, "reboot"), (None, None, "reboot")],
)
def test_functions_fit_the_firmware_and_disruption_what_is_to_be_made(
    sriov: typing.Optional[Sriov], functions: typing.Optional[int], disruption: str
) -> None:
    seen = seen_of(PAIR)
    for number in range(4):
        seen = everywhere(seen, f"mlx5_{number}", lambda hca: dataclasses.replace(hca, sriov=sriov))
    found = values(propose(seen))
    proposed = found["rdma_fabrics[0].virtual_functions"]
    assert (
        isinstance(proposed, Blank)
        if functions is None
        else proposed.value == functions
        if isinstance(proposed, Value)
        else False
    )
    assert make_data(found["rdma_cluster.disruption"]) == disruption


@pytest.mark.parametrize("asked", ["none", "drain"])
def test_a_run_may_be_asked_what_may_happen_to_a_node(asked: str) -> None:
    proposal = propose(seen_of(PAIR))
    usual = make_data(values(proposal)["rdma_cluster.disruption"])
    for answers, expected in (({DISRUPTION: asked}, asked), ({DISRUPTION: ""}, usual), ({}, usual)):
        cluster = read(proposal, **answers)["rdma_cluster"]
        assert cluster["disruption"] == expected
        check_override(answers.get(DISRUPTION), cluster)


def test_without_the_cluster_what_it_would_show_is_to_be_filled_in() -> None:
    proposal = propose(
        dataclasses.replace(
            seen_of(PAIR), addresses=None, operators=None, unread=("addresses in use could not be queried",)
        )
    )
    blanks = {place for place, entry in iterate_leaves(proposal.variables) if isinstance(entry, Blank)}
    of_fabric = {f"rdma_fabrics[0].{key}" for key in ("network.namespace", "ipam.type", "ipam.range")}
    assert blanks == of_fabric | {f"rdma_cluster.{key}" for key in ("node_selector", "resource_prefix")}
    data = read(proposal)
    with pytest.raises(IntentError) as caught:
        parse_intent(data["rdma_fabrics"], None, data["rdma_cluster"])
    assert {problem.path for problem in caught.value.problems} == blanks
    assert all(problem.seen == "not filled in yet" for problem in caught.value.problems)


def test_what_could_not_be_read_is_no_sign_that_nothing_is_there() -> None:
    refused = OperatorFacts((), (), (), (), errors=("Deployment: forbidden",))
    proposal = propose(
        dataclasses.replace(seen_of(PAIR), addresses=AddressFacts(errors=("Node: forbidden",)), operators=refused)
    )
    found = values(proposal)
    for place in (
        "rdma_cluster.resource_prefix",
        "rdma_cluster.node_selector",
        "rdma_fabrics[0].ipam.range",
        "rdma_fabrics[0].ipam.type",
    ):
        assert isinstance(found[place], Blank), place
    assert any("Deployment: forbidden" in note for note in proposal.notes)


def test_a_policy_of_another_intent_is_named_with_its_owner() -> None:
    seen = seen_of(PAIR)
    assert seen.operators and seen.operators.policies
    (policy,) = {item.name: item for item in seen.operators.policies}.values()
    for name in ("linerate-compute", "linerate-storage"):
        there = dataclasses.replace(seen.operators, policies=(dataclasses.replace(policy, name=name),))
        (note,) = (
            note
            for note in propose(dataclasses.replace(seen, operators=there)).notes
            if f"Policy {name} creates" in note
        )
        assert "an intent of this collection applied it" in note and "ask its owner first" in note
    there = dataclasses.replace(seen.operators, policies=(dataclasses.replace(policy, name="team-a"),))
    (note,) = (
        note for note in propose(dataclasses.replace(seen, operators=there)).notes if "Policy team-a creates" in note
    )
    assert "overwrite each other" in note and "intent of this collection" not in note


def test_on_ethernet_the_nodes_own_nic_is_to_be_looked_for() -> None:
    assert any(
        "it is unknown which NIC has the IP addresses of any node" in note for note in propose(seen_of(ROCE)).notes
    )
    assert not any("it is unknown which NIC has the IP addresses" in note for note in propose(seen_of(PAIR)).notes)
    known = dataclasses.replace(seen_of(ROCE), neighbours={"node-1": ObservedNeighbours(NodeNeighbours((), ("eno1",)))})
    assert any(
        "it is unknown which NIC has the IP addresses of node-2, node-3" in note for note in propose(known).notes
    )


def cabled(**places: typing.Optional[str]) -> ProposalInputs:
    """The RoCE fleet with what its NICs have seen: ``node_1_mlx5_0="leaf1"`` is a switch by LLDP,
    ``node_2_mlx5_0="node-1 mlx5_0"`` a neighbour."""
    seen = seen_of(ROCE)

    def address(node: str, name: str) -> str:
        return f"02:00:00:00:{int(node[-1]):02x}:{int(name[-1]):02x}"

    hcas, neighbours = {}, {}
    for node, observed in seen.hcas.items():
        assert observed.value is not None
        found, items = [], []
        for hca in observed.value.hcas:
            found.append(
                hca
                if hca.is_virtual
                else dataclasses.replace(hca, netdevs=(Netdev(f"net_{hca.name}", address(node, hca.name)),))
            )
            place = places.get(f"{node}_{hca.name}".replace("-", "_"))
            who = (address(*place.split()),) if place and " " in place else ()
            ports = (SwitchPort(f"chassis-of-{place}", "swp1", place, 7),) if place and not who else ()
            items += (
                [] if hca.is_virtual else [NetdevNeighbours(f"net_{hca.name}", address(node, hca.name), ports, who)]
            )
        hcas[node] = ObservedHcas(NodeHcas(tuple(found)))
        neighbours[node] = ObservedNeighbours(NodeNeighbours(tuple(items), ("eno1",)))
    return dataclasses.replace(seen, hcas=hcas, neighbours=neighbours)


def everywhere_on(*switches: str) -> dict[str, str]:
    """HCA k of each node on the k-th switch."""
    return {f"node_{node}_mlx5_{number}": switch for node in (1, 2, 3) for number, switch in enumerate(switches)}


def whys(proposal: Proposal) -> list[str]:
    return [item.why for item in proposal.fabrics.items]


def test_ethernet_nics_on_one_switch_are_one_fabric() -> None:
    (why,) = whys(propose(cabled(**everywhere_on("leaf1", "leaf1"))))
    assert "one network according to LLDP of leaf1" in why and "show no neighbor" not in why


def test_neighbours_show_one_network_as_well_and_who_has_seen_nobody_is_counted() -> None:
    (why,) = whys(propose(cabled(node_2_mlx5_0="node-1 mlx5_0", node_3_mlx5_1="node-1 mlx5_0")))
    assert "one network according to the neighbor tables of the nodes; 3 of 6 NICs show no neighbor" in why


def test_a_switch_for_each_rail_is_a_fabric_each() -> None:
    proposal = propose(cabled(**everywhere_on("leaf1", "leaf2")))
    assert [why.partition(":")[0].rpartition(", ")[2] for why in whys(proposal)] == [
        "on one network according to LLDP of leaf1",
        "on one network according to LLDP of leaf2",
    ]
    assert [item["select"] for item in make_data(proposal.fabrics)] == [
        {"vendor": "15b3", "pci": [address], "hcas_per_node": 1} for address in ("0000:10:00.0", "0000:11:00.0")
    ]


def test_who_has_seen_nobody_where_there_are_several_networks_is_left_out() -> None:
    places = {**everywhere_on("leaf1", "leaf2"), "node_3_mlx5_1": None}
    proposal = propose(cabled(**places))
    assert (
        "node-3 mlx5_1 (15b3:101d): neither LLDP nor the neighbor tables show the network to which this NIC is"
        " connected" in out(proposal)
    )
    assert len(proposal.fabrics.items) == 2


def test_racks_without_a_node_in_common_are_one_fabric_to_look_at() -> None:
    places = {f"node_{node}_mlx5_{number}": f"rack{node}" for node in (1, 2, 3) for number in (0, 1)}
    (why,) = whys(propose(cabled(**places)))
    assert (
        "3 networks without a node in common, according to LLDP of rack1, rack2, rack3: they are"
        " racks of one fabric if the site routes between these networks, so verify this"
    ) in why


def test_cables_that_no_slot_tells_apart_are_said() -> None:
    crossed = {**everywhere_on("leaf1", "leaf2"), "node_3_mlx5_0": "leaf2", "node_3_mlx5_1": "leaf1"}
    (why,) = whys(propose(cabled(**crossed)))
    assert "the NICs are on 2 networks (leaf1, leaf2) that do not match their PCI slots" in why


def test_a_hardware_address_that_two_nics_have_tells_nothing() -> None:
    seen = cabled(node_2_mlx5_0="node-1 mlx5_0")
    twin = seen.neighbours["node-3"].value
    assert twin is not None
    same = dataclasses.replace(twin.netdevs[0], hardware_address="02:00:00:00:01:00")
    twins = ObservedNeighbours(dataclasses.replace(twin, netdevs=(same, *twin.netdevs[1:])))
    (why,) = whys(propose(dataclasses.replace(seen, neighbours={**seen.neighbours, "node-3": twins})))
    assert "the network to which the NICs are connected is unknown" in why


def test_why_nobody_was_heard_is_said() -> None:
    mute = dict.fromkeys(
        seen_of(ROCE).hcas,
        ObservedNeighbours(NodeNeighbours((), ("eno1",), ("LLDP on net0: Operation not permitted",))),
    )
    (why,) = whys(propose(dataclasses.replace(seen_of(ROCE), neighbours=mute)))
    assert (
        "the network to which the NICs are connected is unknown (LLDP on net0: Operation not permitted); verify" in why
    )


def test_the_nic_of_a_nodes_default_route_is_left_out() -> None:
    seen = cabled(**everywhere_on("leaf1", "leaf1"))
    own = {
        name: ObservedNeighbours(dataclasses.replace(item.value, uplinks=("net_mlx5_0",)))
        for name, item in seen.neighbours.items()
        if item.value
    }
    proposal = propose(dataclasses.replace(seen, neighbours=own))
    assert "mlx5_0 (15b3:101d) of all 3 nodes: the default route of the node uses net_mlx5_0" in out(proposal)
    assert make_data(proposal.fabrics)[0]["select"]["pci"] == ["0000:11:00.0"]


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (["NVIDIA-H100-80GB-HBM3"] * 2, "with GPUs such as NVIDIA-H100-80GB-HBM3 require them"),
        (["NVIDIA-GB200", "NVIDIA-L40S"], "with GPUs such as NVIDIA-GB200 require them, because"),
        (["NVIDIA-L40S"] * 2, "with GPUs such as NVIDIA-L40S, a network without RDMA may be sufficient"),
        (
            ["NVIDIA-A10", "Tesla-T4"],
            "with GPUs such as NVIDIA-A10, Tesla-T4, a network without RDMA may be sufficient",
        ),
    ],
)
def test_the_profile_says_what_the_gpus_ask_of_a_network(models: list[str], words: str) -> None:
    seen = seen_of(PAIR)
    assert seen.operators is not None and len(seen.operators.nodes) == 2
    nodes = tuple(
        dataclasses.replace(node, labels={**node.labels, "nvidia.com/gpu.product": model})
        for node, model in zip(seen.operators.nodes, models, strict=True)
    )
    said = values(propose(dataclasses.replace(seen, operators=dataclasses.replace(seen.operators, nodes=nodes))))[
        "rdma_fabrics[0].profile"
    ]
    assert words in said.why
    assert "GPUs" not in values(propose(seen))["rdma_fabrics[0].profile"].why


networks = st.builds(
    lambda number, prefix: str(ipaddress.IPv4Network((number >> (32 - prefix) << (32 - prefix), prefix))),
    st.one_of(
        st.integers(0x0A000000, 0x0AFFFFFF), st.integers(0xAC100000, 0xAC1FFFFF), st.integers(0xC0A80000, 0xC0A8FFFF)
    ),
    st.integers(9, 32),
)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(["pods", "services", "node", "attachment"]), networks), max_size=12))
def test_the_range_overlaps_nothing_and_is_large_enough(taken: list[tuple[typing.Any, str]]) -> None:
    addresses = AddressFacts(tuple(UsedNetwork(kind, network, "somebody") for kind, network in taken), 1)
    proposal = propose(dataclasses.replace(seen_of(TWO), addresses=addresses))
    proposed: list[typing.Any] = []
    for number, needed in ((0, 2 * 4 * 2), (1, 2 * 2 * 2)):
        entry = values(proposal)[f"rdma_fabrics[{number}].ipam.range"]
        if isinstance(entry, Blank):
            # only where next to nothing is left
            assert sum(ipaddress.ip_network(network).num_addresses for _kind, network in taken) > 1 << 16
            continue
        network = ipaddress.ip_network(str(entry.value))
        assert network.is_private and network.num_addresses - 2 >= needed
        assert not any(network.overlaps(ipaddress.ip_network(text)) for _kind, text in taken)
        assert not any(network.overlaps(other) for other in proposed)
        proposed.append(network)


texts = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "yes",
            "No",
            "null",
            "1e3",
            "15b3",
            "0x1",
            "# no",
            "a: b",
            "{{ x }}",
            "'",
            '"',
            "\\",
            "\x85\u2028",
            "\U0001f600",
        ]
    ),
)
tellers = st.one_of(st.text(max_size=300), st.just("why\nnot: [\u2028# "))


class Loader(yaml.SafeLoader):
    """With Ansible's mark of a text that is no template."""


Loader.add_constructor("!unsafe", lambda loader, node: node.value)


# what YAML forbids in any form can't be in a file
legal = texts.filter(lambda text: not re.search("[\ud800-\udfff]", text))
scalars: st.SearchStrategy[typing.Any] = st.one_of(legal, st.integers(), st.booleans())
plain_values: st.SearchStrategy[Entry] = st.one_of(
    st.builds(Value, st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)), tellers),
    st.builds(Blank, legal, tellers),
)


def sections(entries: st.SearchStrategy[Entry]) -> st.SearchStrategy[Section]:
    return st.builds(
        Section,
        # a key has at most 1,024 characters in a file, where some are written as ten
        st.dictionaries(legal.filter(lambda text: len(text) < 100), entries, min_size=1, max_size=3).map(
            lambda found: tuple(found.items())
        ),
        tellers,
    )


trees: st.SearchStrategy[Entry] = st.recursive(
    plain_values,
    lambda inner: st.one_of(
        sections(inner), st.builds(Sections, st.lists(sections(inner), max_size=2).map(tuple), tellers)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(sections(trees), st.lists(sections(trees), max_size=2), tellers)
def test_yaml_reads_what_the_tree_says(cluster: Section, fabrics: list[Section], words: str) -> None:
    proposal = Proposal(Sections(tuple(fabrics), words), cluster, (LeftOut(words, words),), (words,))
    assert yaml.load(render(proposal), Loader=Loader) == make_data(proposal.variables)


@pytest.mark.parametrize("shape", [PAIR, ROCE, TWO], ids=lambda shape: shape.name)
def test_each_line_says_why(shape: Shape) -> None:
    before = ""
    for line in render(propose(seen_of(shape))).splitlines():
        if line not in ("", "---") and not line.lstrip().startswith("#"):
            assert "  # " in line or before.lstrip().startswith("#"), line
        before = line


def test_an_intent_that_is_there_differs_in_what_it_says_otherwise() -> None:
    seen = seen_of(PAIR)
    there = filled(propose(seen))
    proposal = propose(seen)
    assert list_differences(proposal, there["rdma_fabrics"], there["rdma_cluster"]) == ()
    (fabric,) = there["rdma_fabrics"]
    other = {
        **fabric,
        "name": "mine",
        "virtual_functions": 7,
        "select": {**fabric["select"], "subnet_manager": ["any"]},
    }
    assert list_differences(proposal, [other], None) == (
        (
            "rdma_fabrics[0].virtual_functions: 7; proposed is 2: each HCA has this number of VFs"
            " now; the firmware supports 16"
        ),
    )
    # fabrics are compared by their profile, wherever they stand
    mine = {"name": "storage", "profile": "sriov_ethernet", "select": {"netdev": ["eth1"]}}
    assert list_differences(proposal, [mine, fabric], None) == (
        "rdma_fabrics[0]: profile sriov_ethernet; no such fabric is proposed",
    )
    assert list_differences(proposal, [mine], None) == (
        "rdma_fabrics[0]: profile sriov_ethernet; no such fabric is proposed",
        f"rdma_fabrics: lacks a fabric of profile {fabric['profile']}, which is proposed",
    )
    assert any(
        line.startswith("rdma_cluster.disruption: none; proposed is drain")
        for line in list_differences(proposal, None, {"disruption": "none"})
    )
    # the mistakes of the intent are findings of stage validate, but the intent does not match
    assert list_differences(proposal, {"name": "mine"}, ["no", "mapping"]) == (
        "rdma_fabrics: not a list; proposed is a list. Run linerate.rdma.validate, which checks the intent",
        "rdma_cluster: not a mapping; proposed is a mapping. Run linerate.rdma.validate, which checks the intent",
    )
    assert list_differences(proposal, [{**fabric, "network": ["x"]}], None) == (
        (
            "rdma_fabrics[0].network: not a mapping; proposed is a mapping. Run linerate.rdma.validate, which checks"
            " the intent"
        ),
    )
    # also of a fabric that no proposed one is compared with
    assert list_differences(proposal, [{**mine, "select": ["eth1"]}, fabric], None) == (
        "rdma_fabrics[0]: profile sriov_ethernet; no such fabric is proposed",
        (
            "rdma_fabrics[0].select: not a mapping; proposed is a mapping. Run linerate.rdma.validate, which checks"
            " the intent"
        ),
    )
    assert list_differences(proposal, ["x"], None)[0] == "rdma_fabrics[0]: profile not set; no such fabric is proposed"


def test_reason_of_the_name_names_a_policy_of_another_run_that_has_it() -> None:
    seen = seen_of(PAIR)
    name = str(make_data(values(propose(seen))["rdma_cluster.intent_name"]))
    for intent, taken in ((name, True), ("ada", False), ("", False)):
        policy = Policy("linerate-storage", "storage", 4, intent=intent)
        there = dataclasses.replace(seen, operators=OperatorFacts((), (), (), (), policies=(policy,)))
        why = values(propose(there))["rdma_cluster.intent_name"].why
        assert ("SriovNetworkNodePolicy linerate-storage has this name already" in why) is taken
        assert ("ask its owner" in why) is taken


def test_two_inventories_of_one_cluster_get_different_names_and_the_same_one_always_its_own() -> None:
    seen = seen_of(SHAPES[0])
    turned = dataclasses.replace(seen, hcas=dict(list(seen.hcas.items())[::-1]))
    fewer = dataclasses.replace(seen, hcas=dict(list(seen.hcas.items())[1:]))
    first, again, other = (
        str(make_data(values(propose(given))["rdma_cluster.intent_name"])) for given in (seen, turned, fewer)
    )
    assert first == again != other and LABEL.parse(first) == first
    named = {"rdma_fabrics": None, "rdma_cluster": {"intent_name": "mine"}}
    assert not list_differences(propose(seen), named["rdma_fabrics"], named["rdma_cluster"])
