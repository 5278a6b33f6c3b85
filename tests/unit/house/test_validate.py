# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.action.stage_gate import list_power_lines
from ansible_collections.linerate.rdma.plugins.module_utils._check.frame import RawIntent, StageContext, judge_stage
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.controller import ControllerFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import Denied, RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS, judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import describe_record
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent

NODES = validate.Facts(nodes=("worker-1", "worker-2"), variables=("rdma_fabrics", "rdma_waivers"))


def problems(fabrics: typing.Any, waivers: typing.Any = None, cluster: typing.Any = None) -> list[str]:
    with pytest.raises(IntentError) as caught:
        parse_intent(fabrics, waivers, cluster)
    return [str(problem) for problem in caught.value.problems]


def closing(fabrics: typing.Any, facts: validate.Facts = NODES, **rest: typing.Any) -> dict[str, typing.Any]:
    """Findings that don't pass, by 'check on subject'."""
    findings = validate.check(parse_intent(fabrics, **rest), facts)
    return {f"{finding.check} on {finding.subject}": finding for finding in findings if finding.status != "pass"}


def test_right_intent_passes(fabrics: typing.Any) -> None:
    findings = validate.check(parse_intent(fabrics()), NODES)
    assert [finding for finding in findings if finding.status != "pass"] == []
    assert judge(findings).open
    assert "256 addresses" not in str(findings[0])
    addresses = next(finding for finding in findings if finding.check == "validate.addresses")
    # 1022 host addresses less the excluded gateway; 2 nodes x 4 HCAs x 8 VFs
    assert (addresses.measured, addresses.expected) == ("1021 addresses", "64 addresses: 2 nodes x 4 HCAs x 8 VFs")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"virtual_function": 8}, "rdma_fabrics[0].virtual_function: unknown key; expected one of: "),
        ({"virtual_function": 8}, "(did you mean 'virtual_functions'?)"),
        ({"virtual_functions": "8"}, "rdma_fabrics[0].virtual_functions: '8' (string); expected an integer"),
        ({"virtual_functions": True}, "rdma_fabrics[0].virtual_functions: True (boolean); expected an integer"),
        ({"select__hcas_per_node": None}, "rdma_fabrics[0].select.hcas_per_node: missing; expected an integer"),
        ({"select__vendor": 8086}, "rdma_fabrics[0].select.vendor: 8086 (integer); expected a string"),
        ({"profile": "sriov_infinband"}, "(did you mean 'sriov_infiniband'?)"),
        ({"ipam": "100.100.0.0/22"}, "rdma_fabrics[0].ipam: '100.100.0.0/22' (string); expected a mapping"),
        ({"ipam__range": None}, "rdma_fabrics[0].ipam.range: missing; expected a string"),
        ({"line_rate__fraction": float("nan")}, "rdma_fabrics[0].line_rate.fraction: nan (number); expected a number"),
        (
            {"line_rate__expected_gbps": float("inf")},
            "rdma_fabrics[0].line_rate.expected_gbps: inf (number); expected a number",
        ),
        (
            {"line_rate__floor_gbps": float("-inf")},
            "rdma_fabrics[0].line_rate.floor_gbps: -inf (number); expected a number",
        ),
    ],
)
def test_wrong_shape_is_refused_with_its_path(fabrics: typing.Any, change: dict[str, typing.Any], said: str) -> None:
    assert said in problems(fabrics(**change))[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"virtual_functions": "8\x1b[2J"}, "'8\\x1b[2J' (string)"),
        ({"virtual_functions": "\u202eevil"}, "'\\u202eevil' (string)"),
        ({"profile": "\u202eevil"}, "'\\u202eevil'"),
        ({"virtual_functions": "9" * 3_000_000}, "... (3000011 characters)"),
        ({"x" * 3_000_000: 1}, "... (3000016 characters): unknown key"),
        ({"\x00": 1}, "rdma_fabrics[0].\\x00: unknown key"),
    ],
    ids=["escape", "bidirectional", "of a choice", "long", "long key", "zero"],
)
def test_hostile_text_neither_moves_the_terminal_nor_fills_it(
    fabrics: typing.Any, change: dict[str, typing.Any], said: str
) -> None:
    (problem,) = problems(fabrics(**change))
    assert said in problem
    assert problem.isprintable() and len(problem) < 800


@pytest.mark.parametrize("value", ["\x1b[31m\x00", "\u202eevil", "a" * 3_000_000, "{{ lookup('pipe', 'id') }}"])
def test_hostile_names_are_shown_as_escapes(fabrics: typing.Any, value: str) -> None:
    """On the terminal, in the lines that stage_gate returns."""
    context = StageContext("validate", "r", "s", "f", False, {})
    record = judge_stage(context, RawIntent(fabrics(name=value)), to_data(NODES))
    assert record.gate == "closed"
    lines = describe_record(record)
    assert any("rdma_fabrics[0].name" in line for line in lines)
    assert all(line.isprintable() and len(line) < 2100 for line in lines)


def test_validate_with_v_lists_the_files_of_rights(fabrics: typing.Any) -> None:
    options = {"stage": "validate", "fabrics": fabrics(), "waivers": None, "cluster": None}
    lines = list_power_lines(options)
    assert any(
        line.startswith("rights: docs/rbac/look.yml - required by the current intent; less than root") for line in lines
    )
    assert any(line.startswith("rights: docs/rbac/operators-helm.yml - only for: ") for line in lines)
    assert list_power_lines({**options, "stage": "fabric"}) == []
    assert list_power_lines({**options, "fabrics": "compute"}) == [], "the stage says what is wrong with it"


def test_each_wrong_item_is_named(fabrics: typing.Any) -> None:
    wrong = fabrics(virtual_functions="8")
    wrong[1]["mtu"] = "9000"
    said = problems(wrong, [{"check": "fabric.x"}], {"operator_namespce": "x"})
    assert [text.partition(":")[0] for text in said] == [
        "rdma_fabrics[0].virtual_functions",
        "rdma_fabrics[1].mtu",
        "rdma_waivers[0].reason",
        "rdma_cluster.operator_namespce",
    ]
    assert "did you mean 'operator_namespace'?" in said[3]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "rdma_fabrics: missing; expected a list of mappings"),
        ("compute", "rdma_fabrics: a string; expected a list of mappings"),
        ({"name": "compute"}, "rdma_fabrics: a mapping; expected a list of mappings"),
        ([], "rdma_fabrics: an empty list; expected at least one fabric"),
        ([["compute"]], "rdma_fabrics[0]: a list; expected a mapping"),
    ],
)
def test_wrong_variable_is_refused(value: typing.Any, said: str) -> None:
    assert problems(value) == [said]


def test_a_refusal_is_a_finding_with_path_and_remedy(fabrics: typing.Any) -> None:
    with pytest.raises(IntentError) as caught:
        parse_intent(fabrics(virtual_functions="8"))
    (finding,) = validate.refuse(caught.value.problems)
    assert (finding.check, finding.subject, finding.status) == (
        "validate.intent",
        "rdma_fabrics[0].virtual_functions",
        "fail",
    )
    assert finding.measured == "'8' (string)" and finding.expected == "an integer"


@pytest.mark.parametrize(
    ("change", "key", "measured"),
    [
        ({"profile": "ipoib"}, "validate.profile on rdma_fabrics[0].virtual_functions", "8 virtual functions"),
        ({"network__vlan": 5}, "validate.profile on rdma_fabrics[0].network.vlan", "5"),
        ({"resource_name": ""}, "validate.profile on rdma_fabrics[0].resource_name", "no resource_name"),
        ({"resource_name": "mlx-compute"}, "validate.names on rdma_fabrics[0].resource_name", "'mlx-compute'"),
        ({"resource_name": "_mlx"}, "validate.names on rdma_fabrics[0].resource_name", "'_mlx'"),
        ({"resource_name": "mlx\n"}, "validate.names on rdma_fabrics[0].resource_name", "'mlx\n'"),
        ({"network__name": "IB_net"}, "validate.names on rdma_fabrics[0].network.name", "'IB_net'"),
        ({"select__subnet_manager": "0x1"}, "validate.select on rdma_fabrics[0].select.subnet_manager", "'0x1'"),
        (
            {"select__subnet_manager": ["0xb83fd20300e00000", "any"]},
            "validate.select on rdma_fabrics[0].select.subnet_manager[1]",
            "'any'",
        ),
        ({"profile": "sriov_ethernet"}, "validate.select on rdma_fabrics[0].select.subnet_manager", "any"),
        ({"select__subnet_manager": None}, "validate.select on rdma_fabrics[0].select", "only hcas_per_node"),
        ({"select__pci": ["3c:00.0"]}, "validate.select on rdma_fabrics[0].select.pci[0]", "'3c:00.0'"),
        ({"select__pci": ["0000:3c:00.0"]}, "validate.select on rdma_fabrics[0].select.pci", "1 HCA listed"),
        ({"select__vendor": "0x15b3"}, "validate.select on rdma_fabrics[0].select.vendor", "'0x15b3'"),
        ({"virtual_functions": 0}, "validate.profile on rdma_fabrics[0].virtual_functions", "0 virtual functions"),
        (
            {"virtual_functions": -1},
            "validate.numbers on rdma_fabrics[0].virtual_functions",
            "-1 VFs per physical function",
        ),
        (
            {"virtual_functions": 129},
            "validate.numbers on rdma_fabrics[0].virtual_functions",
            "129 VFs per physical function",
        ),
        ({"select__hcas_per_node": 0}, "validate.numbers on rdma_fabrics[0].select.hcas_per_node", "0 HCAs"),
        ({"mtu": 9}, "validate.numbers on rdma_fabrics[0].mtu", "9 bytes"),
        ({"line_rate__fraction": 1.1}, "validate.line_rate on rdma_fabrics[0].line_rate.fraction", "1.1"),
        ({"line_rate__expected_gbps": 0}, "validate.line_rate on rdma_fabrics[0].line_rate.expected_gbps", "0.0 Gb/s"),
        (
            {"line_rate__expected_gbps": 0.001},
            "validate.line_rate on rdma_fabrics[0].line_rate.expected_gbps",
            "0.001 Gb/s",
        ),
        (
            {"line_rate__expected_gbps": 20_000},
            "validate.line_rate on rdma_fabrics[0].line_rate.expected_gbps",
            "20000.0 Gb/s",
        ),
        ({"line_rate__fraction": 1e-9}, "validate.line_rate on rdma_fabrics[0].line_rate.fraction", "1e-09"),
        ({"line_rate__fleet_fraction": 0.04}, "validate.line_rate on rdma_fabrics[0].line_rate.fleet_fraction", "0.04"),
        ({"line_rate": {"expected_gbps": 9}}, "validate.line_rate on rdma_fabrics[0].line_rate.reason", "no reason"),
        (
            {"line_rate": {"fraction": 0.79, "reason": " "}},
            "validate.line_rate on rdma_fabrics[0].line_rate.reason",
            "no reason",
        ),
        ({"line_rate": {"fleet_fraction": 0.5}}, "validate.line_rate on rdma_fabrics[0].line_rate.reason", "no reason"),
        ({"line_rate__floor_gbps": 370}, "validate.line_rate on rdma_fabrics[0].line_rate.reason", "no reason"),
        (
            {"line_rate": {"floor_gbps": 0, "reason": "because I say so"}},
            "validate.line_rate on rdma_fabrics[0].line_rate.floor_gbps",
            "0.0 Gb/s",
        ),
        ({"pods__limit_seconds": 10}, "validate.pods on rdma_fabrics[0].pods.limit_seconds", "10 s"),
        ({"pods__iterations": 0}, "validate.pods on rdma_fabrics[0].pods.iterations", "0"),
        # the source document's own mistake
        ({"ipam__range": "100.100.100.0/1"}, "validate.ipam on rdma_fabrics[0].ipam.range", "'100.100.100.0/1'"),
        ({"ipam__range": "100.100.0.1/22"}, "validate.ipam on rdma_fabrics[0].ipam.range", "'100.100.0.1/22'"),
        ({"ipam__range_start": "10.0.0.1"}, "validate.ipam on rdma_fabrics[0].ipam.range_start", "'10.0.0.1'"),
        ({"ipam__gateway": "10.0.0.1"}, "validate.gateway on rdma_fabrics[0].ipam.gateway", "'10.0.0.1'"),
        ({"ipam__gateway": "no address"}, "validate.gateway on rdma_fabrics[0].ipam.gateway", "'no address'"),
        ({"ipam__range": "100.100.0.0/27"}, "validate.addresses on rdma_fabrics[0].ipam.range", "29 addresses"),
        (
            {"ipam__range": "10.56.0.128/25", "ipam__gateway": None},
            "validate.disjoint_ranges on rdma_fabrics[1].ipam.range",
            "10.56.0.0/24",
        ),
    ],
)
def test_wrong_meaning_is_found(fabrics: typing.Any, change: dict[str, typing.Any], key: str, measured: str) -> None:
    found = closing(fabrics(**change))
    assert found[key].status == "fail"
    assert found[key].measured == measured
    assert found[key].why and found[key].remedy


def test_a_gateway_is_left_out_of_the_count(fabrics: typing.Any) -> None:
    """whereabouts would hand it out, so the renderer excludes it."""
    findings = validate.check(parse_intent(fabrics(ipam__exclude=None)), NODES)
    measured = {
        finding.check: finding.measured for finding in findings if finding.subject.startswith("rdma_fabrics[0].ipam")
    }
    assert (measured["validate.gateway"], measured["validate.addresses"]) == ("100.100.0.1", "1021 addresses")


def test_addresses_are_counted_for_each_node(fabrics: typing.Any) -> None:
    # 4 HCAs x 8 VFs = 32: row S1.9's range of 112 addresses serves three nodes, not four
    change = {
        "ipam": {
            "type": "whereabouts",
            "range": "100.100.100.0/24",
            "range_start": "100.100.100.101",
            "range_end": "100.100.100.212",
        }
    }
    three, four = (validate.Facts(nodes=tuple(f"n{number}" for number in range(count))) for count in (3, 4))
    (finding,) = closing(fabrics(**change), three).values()
    assert (
        finding.status == "warn"
        and "reconciler" in finding.why
        and "32 spare addresses for the pods of one node" in finding.expected
    )
    (finding,) = closing(fabrics(**change), four).values()
    assert (
        finding.status == "fail"
        and finding.measured == "112 addresses"
        and finding.expected.startswith("128 addresses: 4 nodes")
    )


BLOCKS = {"type": "nv-ipam", "range": "100.100.0.0/22", "gateway": "100.100.0.1", "pool": {"name": "compute"}}
NETWORKS = {
    "type": "nv-ipam",
    "range": "100.100.0.0/16",
    "pool": {"name": "compute", "kind": "CIDRPool", "per_node_network_prefix": 26, "gateway_index": 1},
}


@pytest.mark.parametrize(
    ("ipam", "measured"),
    [(BLOCKS, "2 shares, 99 addresses in the smallest"), (NETWORKS, "2 shares, 61 addresses in the smallest")],
    ids=["blocks", "networks"],
)
def test_pools_of_nv_ipam(fabrics: typing.Any, ipam: typing.Any, measured: str) -> None:
    findings = validate.check(parse_intent(fabrics(ipam=ipam)), NODES)
    assert judge(findings).open
    assert measured in [finding.measured for finding in findings if finding.check == "validate.addresses"]


@pytest.mark.parametrize(
    ("base", "change", "key", "said"),
    [
        (
            BLOCKS,
            {"pool": {"name": "compute", "per_node_block_size": 31}},
            "validate.addresses on rdma_fabrics[0].ipam.pool.per_node_block_size",
            "32 addresses",
        ),
        (
            BLOCKS,
            {"pool": {"name": "compute", "per_node_block_size": 600}},
            "validate.addresses on rdma_fabrics[0].ipam.range",
            "2 shares",
        ),
        (BLOCKS, {"pool": None}, "validate.ipam on rdma_fabrics[0].ipam.pool", "a pool with a name (pool.name)"),
        (BLOCKS, {"range_start": "100.100.0.9"}, "validate.ipam on rdma_fabrics[0].ipam.range_start", "no range_start"),
        (BLOCKS, {"range_end": "100.100.0.9"}, "validate.ipam on rdma_fabrics[0].ipam.range_end", "no range_end"),
        (BLOCKS, {"type": "whereabouts"}, "validate.ipam on rdma_fabrics[0].ipam.pool", "no pool"),
        (BLOCKS, {"range": "100.100.100.0/1"}, "validate.ipam on rdma_fabrics[0].ipam.range", "/8 or longer"),
        (BLOCKS, {"pool": {"name": "Compute_1"}}, "validate.names on rdma_fabrics[0].ipam.pool.name", "lower-case"),
        (
            BLOCKS,
            {"pool": {"name": "a", "gateway_index": 1}},
            "validate.ipam on rdma_fabrics[0].ipam.pool.gateway_index",
            "gateway",
        ),
        (
            BLOCKS,
            {"pool": {"name": "a", "per_node_network_prefix": 26}},
            "validate.ipam on rdma_fabrics[0].ipam.pool.per_node_network_prefix",
            "block_size",
        ),
        (
            BLOCKS,
            {"gateway": None, "routes": [{"dst": "10.1.0.0/16"}]},
            "validate.routes on rdma_fabrics[0].ipam.routes[0]",
            "no gw, and a value for gateway (IPPool)",
        ),
        (
            BLOCKS,
            {"routes": [{"dst": "10.1.0.0/16", "gw": "100.100.0.1"}]},
            "validate.routes on rdma_fabrics[0].ipam.routes[0]",
            "no gw",
        ),
        (
            BLOCKS,
            {"pool": {"name": "a", "create": False}, "routes": [{"dst": "10.1.0.0/16"}]},
            "validate.ipam on rdma_fabrics[0].ipam.routes",
            "no routes with a pool that stage network does not create",
        ),
        (NETWORKS, {"gateway": "100.100.0.1"}, "validate.ipam on rdma_fabrics[0].ipam.gateway", "gateway_index"),
        (
            NETWORKS,
            {"pool": {"name": "a", "kind": "CIDRPool"}},
            "validate.ipam on rdma_fabrics[0].ipam.pool.per_node_network_prefix",
            "a prefix",
        ),
        (
            NETWORKS,
            {"pool": {"name": "a", "kind": "CIDRPool", "per_node_network_prefix": 28}},
            "validate.addresses on rdma_fabrics[0].ipam.pool.per_node_network_prefix",
            "4 HCAs x 8 VFs",
        ),
    ],
)
def test_wrong_pools_of_nv_ipam_are_found(
    fabrics: typing.Any, base: typing.Any, change: typing.Any, key: str, said: str
) -> None:
    ipam = {name: value for name, value in {**base, **change}.items() if value is not None}
    found = closing(fabrics(ipam=ipam))
    assert found[key].status == "fail", found
    assert said in found[key].expected


@pytest.mark.parametrize(
    ("route", "key", "status"),
    [
        ({"dst": "10.1.0.0/16"}, "", "pass"),
        ({"dst": "10.1.0.0/16", "gw": "100.100.0.7"}, "", "pass"),
        # the source document's own default route
        ({"dst": "0.0.0.0/0"}, ".dst", "warn"),
        ({"dst": "0.0.0.0/0", "gw": "100.100.0.1"}, ".dst", "warn"),
        ({"dst": "anywhere"}, ".dst", "fail"),
        ({"dst": "fd00::/64"}, ".dst", "fail"),
        ({"dst": "10.1.0.0/16", "gw": "10.1.0.1"}, ".gw", "fail"),
    ],
)
def test_routes(fabrics: typing.Any, route: typing.Any, key: str, status: str) -> None:
    findings = validate.check(parse_intent(fabrics(ipam__routes=[route])), NODES)
    (finding,) = [finding for finding in findings if finding.check == "validate.routes"]
    assert (finding.subject, finding.status) == (f"rdma_fabrics[0].ipam.routes[0]{key}", status)


@pytest.mark.parametrize(
    ("mine", "theirs", "measured"),
    [
        ({"pci": ["0000:3c:00.0", "0000:4d:00.0"]}, {"pci": ["0000:4d:00.0"]}, "0000:4d:00.0"),
        ({"pci": ["0000:3c:00.0"]}, {"pci": ["0000:4d:00.0"]}, ""),
        ({"netdev": ["ibp60s0"]}, {"netdev": ["ibp60s0"]}, "ibp60s0"),
        ({"subnet_manager": "any"}, {"subnet_manager": "any"}, "the same HCAs"),
        ({"subnet_manager": "any"}, {"pci": ["0000:4d:00.0"]}, "the same HCAs"),
        ({"subnet_manager": "0xb83fd20300e00000"}, {"subnet_manager": "0xb83fd20300e00001"}, ""),
        ({"subnet_manager": "0xb83fd20300e00000"}, {"subnet_manager": "any"}, "the same HCAs"),
        (
            {"subnet_manager": ["0xb83fd20300e00000", "0xb83fd20300e00002"]},
            {"subnet_manager": ["0xb83fd20300e00002"]},
            "the same HCAs",
        ),
        (
            {"subnet_manager": ["0xb83fd20300e00000", "0xb83fd20300e00002"]},
            {"subnet_manager": "0xb83fd20300e00001"},
            "",
        ),
        ({"subnet_manager": "any", "device": "1021"}, {"subnet_manager": "any", "device": "101b"}, ""),
        ({"subnet_manager": "any", "device": "1021"}, {"subnet_manager": "any", "device": "1021"}, "the same HCAs"),
        # an address and a name: whether they meet, only a node can say
        ({"pci": ["0000:3c:00.0"]}, {"netdev": ["ibp60s0"]}, ""),
        (
            {"vendor": "15b3", "pci": ["0000:3c:00.0"]},
            {"vendor": "15b3", "device": "1021", "subnet_manager": "any"},
            "",
        ),
    ],
)
def test_no_hca_belongs_to_two_fabrics(
    fabrics: typing.Any, mine: typing.Any, theirs: typing.Any, measured: str
) -> None:
    both = fabrics(select={"hcas_per_node": 1, **mine})
    both[1].update(profile="sriov_infiniband", select={"hcas_per_node": 1, **theirs})
    found = {finding.check: finding for finding in closing(both).values()}
    assert bool(measured) == ("validate.claims" in found)
    if measured:
        assert found["validate.claims"].measured == f"{measured}, which rdma_fabrics[0].select also selects"
        assert (
            found["validate.claims"].subject == "rdma_fabrics[1].select"
            and "rdma_fabrics[0].select" in found["validate.claims"].expected
        )


def test_ethernet_and_infiniband_do_not_meet(fabrics: typing.Any) -> None:
    assert "validate.claims on rdma_fabrics[1].select" not in closing(
        fabrics(select={"hcas_per_node": 1, "vendor": "8086", "device": "10c9"})
    )


def test_names_must_differ(fabrics: typing.Any) -> None:
    same = fabrics(name="storage", resource_name="igb_storage", network__name="sriov-storage")
    assert set(closing(same)) == {
        "validate.unique_names on name storage",
        "validate.unique_names on resource_name igb_storage",
        "validate.unique_names on network.name sriov-storage",
    }


def test_empty_inventory_never_passes(fabrics: typing.Any) -> None:
    assert "validate.nodes on inventory" in closing(fabrics(), validate.Facts())


def test_an_empty_inventory_says_why_it_is_empty(fabrics: typing.Any) -> None:
    said = "linerate.rdma.yml: the API server did not respond: connection refused by https://127.0.0.1:1. Check it."
    (finding,) = closing(fabrics(), validate.Facts(inventory_error=said)).values()
    assert (finding.check, finding.measured, finding.why) == (
        "validate.nodes",
        "0 hosts",
        f"The inventory plugin could not read the nodes: {said}",
    )
    assert finding.remedy == "Correct this error, then run stage validate again."


def test_an_inventory_of_which_a_source_is_unread_never_passes(fabrics: typing.Any) -> None:
    said = "the inventory file other.yml does not exist. Give the file that contains the group rdma_nodes (-i FILE)"
    (finding,) = closing(fabrics(), validate.Facts(nodes=("worker-1",), inventory_error=said)).values()
    assert (finding.check, finding.measured) == (
        "validate.nodes",
        "1 host, without the hosts of a source that was not read",
    )
    assert f"because this source could not be read: {said}." in finding.why and "-i" in finding.remedy
    assert closing(fabrics(), validate.Facts(nodes=("worker-1",))) == {}


@pytest.mark.parametrize(
    ("name", "status", "hint"),
    [
        ("rdma_waiver", "fail", "the variable rdma_waivers"),
        ("rdma_fabric", "fail", "the variable rdma_fabrics"),
        ("rdma_context", "fail", "the environment variable K8S_AUTH_CONTEXT"),
        ("rdma_core_version", "warn", ""),
    ],
)
def test_misspelt_variable_is_refused(fabrics: typing.Any, name: str, status: str, hint: str) -> None:
    (finding,) = closing(fabrics(), validate.Facts(nodes=("worker-1",), variables=("rdma_fabrics", name))).values()
    assert (finding.subject, finding.status) == (name, status)
    assert hint in finding.expected
    assert name != "rdma_context" or "run export K8S_AUTH_CONTEXT=NAME before the playbook." in finding.remedy


@pytest.mark.parametrize(
    ("waiver", "subject", "hint"),
    [
        ({"check": "platfrom.bios", "reason": "no BMC here"}, "rdma_waivers[0].check", "did you mean 'platform.bios'?"),
        ({"check": "platform.bois", "reason": "no BMC here"}, "rdma_waivers[0].check", "did you mean 'platform.bios'?"),
        ({"check": "bios", "reason": "no BMC here"}, "rdma_waivers[0].check", "such as platform.bios"),
        ({"check": "*", "reason": "I want green"}, "rdma_waivers[0].check", "checks of one stage"),
        ({"check": "*.error", "reason": "I want green"}, "rdma_waivers[0].check", "checks of one stage"),
        ({"check": "validate.ipam", "reason": "I want green"}, "rdma_waivers[0].check", "a stage other than validate"),
        (
            {"check": "platform.error", "reason": "I want green"},
            "rdma_waivers[0].check",
            "a check of a property of the cluster, and not of the stage itself",
        ),
        (
            {"check": "platform.run", "reason": "I want green"},
            "rdma_waivers[0].check",
            "a check of a property of the cluster, and not of the stage itself",
        ),
        ({"check": "platform.bios", "reason": " "}, "rdma_waivers[0].reason", "a reason of at least 2 words"),
    ],
)
def test_useless_waiver_is_refused(fabrics: typing.Any, waiver: dict[str, str], subject: str, hint: str) -> None:
    (finding,) = closing(fabrics(), waivers=[waiver]).values()
    assert (finding.check, finding.subject, finding.status) == ("validate.waivers", subject, "fail")
    assert hint in finding.expected


def test_good_waiver_passes(fabrics: typing.Any) -> None:
    assert (
        closing(fabrics(), waivers=[{"check": "platform.b*", "reason": "the lab has no BMC", "subject": "worker-*"}])
        == {}
    )


COLLECTIVES = {
    "image": "registry.example/nccl-tests:1",
    "cpu": "64",
    "memory": "512Gi",
    "gpus_per_node": 8,
    "fabric": "compute",
}


@pytest.mark.parametrize(
    ("wish", "key"),
    [
        ({"fabric": "computer"}, "fabric"),
        ({"gpus_per_node": 0}, "gpus_per_node"),
        ({"tests": []}, "tests"),
        ({"share": 0.2}, "share"),
        ({"most_bytes": 1 << 20}, "most_bytes"),
        (
            {"expected_busbw": [{"test": "all_gather", "gbs": 300.0, "reason": "the vendor's word"}]},
            "expected_busbw[0].test",
        ),
        ({"expected_busbw": [{"test": "all_reduce", "gbs": 300.0, "reason": "x"}]}, "expected_busbw[0].reason"),
    ],
)
def test_collectives_that_cannot_be_meant_are_found(fabrics: typing.Any, wish: dict[str, typing.Any], key: str) -> None:
    assert set(closing(fabrics(), cluster={"collectives": {**COLLECTIVES, **wish}})) == {
        f"validate.collectives on rdma_cluster.collectives.{key}"
    }


def test_collectives_that_can_be_meant_pass_and_none_are_not_judged(fabrics: typing.Any) -> None:
    assert closing(fabrics(), cluster={"collectives": COLLECTIVES}) == {}
    for cluster, number in (({"collectives": COLLECTIVES}, 1), ({}, 0)):
        found = validate.check(parse_intent(fabrics(), [], cluster), NODES)
        assert sum(item.check == "validate.collectives" for item in found) == number


@pytest.mark.parametrize(
    ("key", "value"), [("resource_prefix", "other.io"), ("operator_namespace", "other"), ("resource_prefix", None)]
)
def test_words_of_sr_iov_that_no_fabric_reads_are_told(
    fabrics: typing.Any, key: str, value: typing.Optional[str]
) -> None:
    cluster = {} if value is None else {key: value}
    pods = {**fabrics()[0], "name": "pods", "profile": "ipoib"}
    found = validate.check(parse_intent([pods], cluster=cluster), NODES)
    told = [item for item in found if item.check == "validate.cluster" and item.status != "pass"]
    assert [(item.subject, item.status, item.measured) for item in told] == [
        (f"rdma_cluster.{key}", "warn", value) for _once in cluster
    ]
    assert not [item for item in closing(fabrics(), cluster=cluster) if item.startswith("validate.cluster on")]


@pytest.mark.parametrize(
    ("cluster", "subject"),
    [
        ({"node_selector": {}}, "rdma_cluster.node_selector"),
        ({"nodes_expected": 0}, "rdma_cluster.nodes_expected"),
        ({"wait_seconds": 0}, "rdma_cluster.wait_seconds"),
        ({"firmware": {"num_of_vfs": 0}}, "rdma_cluster.firmware.num_of_vfs"),
        # the SR-IOV operator sets it to the virtual_functions of the fabric
        ({"firmware": {"num_of_vfs": 64}}, "rdma_cluster.firmware.num_of_vfs"),
        ({"firmware": {"max_acc_out_read": -1}}, "rdma_cluster.firmware.max_acc_out_read"),
        ({"node_pool": {"max_unavailable": 0}}, "rdma_cluster.node_pool.max_unavailable"),
        ({"operator_namespace": "My Operator"}, "rdma_cluster.operator_namespace"),
        ({"network_operator": {"version": "26.4.1"}}, "rdma_cluster.network_operator.version"),
        ({"training": {"fabric": "computer"}}, "rdma_cluster.training.fabric"),
        ({"training": {"ranks": 1}}, "rdma_cluster.training.ranks"),
        # no fabric needs a NicClusterPolicy
        ({"network_operator": {"nv_ipam": True}}, "rdma_cluster.network_operator.nv_ipam"),
        ({"network_operator": {"nic_feature_discovery": True}}, "rdma_cluster.network_operator.nic_feature_discovery"),
        # each VF needs it
        ({"bios": {"sriov": False}}, "rdma_cluster.bios.sriov"),
        ({"bios": {"above_4g": False}}, "rdma_cluster.bios.above_4g"),
    ],
)
def test_wrong_cluster_is_found(fabrics: typing.Any, cluster: dict[str, typing.Any], subject: str) -> None:
    assert set(closing(fabrics(), cluster=cluster)) == {f"validate.cluster on {subject}"}


def test_intent_survives_the_way_to_data_and_back(fabrics: typing.Any) -> None:
    intent = parse_intent(fabrics(), [{"check": "platform.bios", "reason": "no BMC"}])
    data = to_data(intent)
    assert parse_intent(data["fabrics"], data["waivers"], data["cluster"]) == intent


DATA = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=12),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=12), inner, max_size=3),
    max_leaves=10,
)


@hypothesis.given(fabrics=DATA, waivers=DATA, cluster=DATA)
def test_any_data_is_loaded_or_refused(fabrics: typing.Any, waivers: typing.Any, cluster: typing.Any) -> None:
    try:
        parse_intent(fabrics, waivers, cluster)
    except IntentError as error:
        assert error.problems and all(problem.path.startswith("rdma_") for problem in error.problems)


@hypothesis.given(
    change=some.dictionaries(
        some.sampled_from(
            [
                "name",
                "resource_name",
                "ipam__range",
                "ipam__gateway",
                "ipam__range_end",
                "network__name",
                "select__subnet_manager",
            ]
        ),
        some.text(max_size=20),
        max_size=4,
    ),
    numbers=some.dictionaries(
        some.sampled_from(["virtual_functions", "mtu", "select__hcas_per_node", "pods__seconds"]),
        some.integers(),
        max_size=3,
    ),
)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_any_well_typed_intent_is_judged(fabrics: typing.Any, change: dict[str, str], numbers: dict[str, int]) -> None:
    findings = validate.check(parse_intent(fabrics(**change, **numbers)), NODES)
    assert findings and all(finding.check.startswith("validate.") for finding in findings)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"select__hcas_per_node": 64}, "numbers"),
        ({"virtual_functions": 1}, "numbers"),
        ({"virtual_functions": 128}, "numbers"),
        ({"mtu": 576}, "numbers"),
        ({"mtu": 65520}, "numbers"),
        ({"uplinks": 254}, "numbers"),
        ({"line_rate__fraction": 1.0}, "line_rate"),
        ({"line_rate__fleet_fraction": 1.0}, "line_rate"),
        ({"line_rate__expected_gbps": 10}, "line_rate"),
        (
            {"line_rate": {"expected_gbps": 1, "fraction": 0.05, "fleet_fraction": 0.05, "reason": "software RDMA"}},
            "line_rate",
        ),
        ({"pods__iterations": 1}, "pods"),
        ({"resource_name": "a" * 63}, "names"),
        ({"name": "a" * 63}, "names"),
    ],
)
def test_the_last_value_that_is_right_passes(fabrics: typing.Any, change: dict[str, typing.Any], key: str) -> None:
    assert [name for name in closing(fabrics(**change)) if name.startswith(f"validate.{key} ")] == []


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"select__hcas_per_node": 65}, "numbers on rdma_fabrics[0].select.hcas_per_node"),
        ({"uplinks": 0}, "numbers on rdma_fabrics[0].uplinks"),
        ({"uplinks": 255}, "numbers on rdma_fabrics[0].uplinks"),
        ({"mtu": 575}, "numbers on rdma_fabrics[0].mtu"),
        ({"mtu": 65521}, "numbers on rdma_fabrics[0].mtu"),
        ({"line_rate__fraction": 0}, "line_rate on rdma_fabrics[0].line_rate.fraction"),
        ({"resource_name": "a" * 64}, "names on rdma_fabrics[0].resource_name"),
        ({"name": "a" * 64}, "names on rdma_fabrics[0].name"),
        (
            {"select__subnet_manager": ["0xe89e491ff5d50001", "0xE89E491FF5D50002"]},
            "select on rdma_fabrics[0].select.subnet_manager[1]",
        ),
    ],
)
def test_the_first_value_that_is_wrong_is_named_and_no_other(
    fabrics: typing.Any, change: dict[str, typing.Any], key: str
) -> None:
    name = key.partition(" ")[0]
    assert [subject for subject in closing(fabrics(**change)) if subject.startswith(f"validate.{name} ")] == [
        f"validate.{key}"
    ]


@pytest.mark.parametrize(
    "select",
    [
        {"vendor": "15b3"},
        {"device": "1021"},
        {"netdev": ["ib0"], "hcas_per_node": 1},
        {"pci": ["0000:3c:00.0"], "hcas_per_node": 1},
    ],
)
def test_one_selector_is_enough(fabrics: typing.Any, select: dict[str, typing.Any]) -> None:
    first, _second = fabrics(select={"hcas_per_node": 4, **select})
    assert [name for name in closing([first]) if name.startswith("validate.select ")] == []
    assert "validate.select on rdma_fabrics[0].select" in closing([{**first, "select": {"hcas_per_node": 4}}])


@pytest.mark.parametrize(
    ("cluster", "wrong"),
    [
        ({"wait_seconds": 1}, []),
        ({"node_pool": {"max_unavailable": 1}}, []),
        ({"training": {"ranks": 2}}, []),
        ({"host": {"memlock": {"limit_gib": 1, "proof_mib": 1024}}}, []),
        ({"host": {"memlock": {"limit_gib": 1, "proof_mib": 1025}}}, ["rdma_cluster.host.memlock.proof_mib"]),
        ({"host": {"memlock": {"limit_gib": 4, "proof_mib": 2047}}}, []),
        ({"host": {"memlock": {"limit_gib": 4, "proof_mib": 2048}}}, ["rdma_cluster.host.memlock.proof_mib"]),
        ({"host": {"memlock": {"unlimited": True, "proof_mib": 2047}}}, []),
        ({"host": {"memlock": {"unlimited": True, "proof_mib": 1}}}, []),
        ({"host": {"memlock": {"unlimited": True, "proof_mib": 0}}}, ["rdma_cluster.host.memlock.proof_mib"]),
        ({"host": {"memlock": {"limit_gib": 1 << 20, "proof_mib": 64}}}, []),
        ({"host": {"memlock": {"limit_gib": (1 << 20) + 1, "proof_mib": 64}}}, ["rdma_cluster.host.memlock.limit_gib"]),
        ({"host": {"kernel_arguments": ["iommu=pt", "quiet"]}}, []),
        (
            {"host": {"kernel_arguments": ["iommu=pt", "a b", ""]}},
            ["rdma_cluster.host.kernel_arguments[1]", "rdma_cluster.host.kernel_arguments[2]"],
        ),
    ],
)
def test_limits_of_the_cluster_s_numbers(fabrics: typing.Any, cluster: dict[str, typing.Any], wrong: list[str]) -> None:
    if "memlock" in cluster.get("host", {}):
        cluster["host"]["memlock"].setdefault("by", "containerd")
    assert [finding.subject for finding in closing(fabrics(), cluster=cluster).values()] == wrong


@pytest.mark.parametrize(
    ("memlock", "expected", "why"),
    [
        ({"limit_gib": 1, "proof_mib": 1025}, "1 to 1024 MiB", "rdma_cluster.host.memlock.limit_gib: 1 (1024 MiB)"),
        ({"limit_gib": 4, "proof_mib": 2048}, "1 to 2047 MiB", "ibv_rc_pingpong supports less than 2 GiB"),
        ({"unlimited": True, "proof_mib": 0}, "1 to 2047 MiB", "It must have at least 1 MiB"),
        # the limit itself is wrong
        ({"limit_gib": -1, "proof_mib": 64}, "1 to 2047 MiB", "ibv_rc_pingpong supports less than 2 GiB"),
    ],
)
def test_the_range_of_the_memlock_test_is_written_as_numbers(
    fabrics: typing.Any, memlock: dict[str, typing.Any], expected: str, why: str
) -> None:
    found = closing(fabrics(), cluster={"host": {"memlock": {"by": "containerd", **memlock}}})
    (finding,) = (item for item in found.values() if item.subject.endswith("proof_mib"))
    assert finding.expected == expected and why in finding.why


def test_each_waiver_is_judged_and_two_words_are_a_reason(fabrics: typing.Any) -> None:
    good, bad = {"check": "platform.bios", "reason": "no BMC"}, {"check": "platform.bios", "reason": "because"}
    assert list(closing(fabrics(), waivers=[bad, good])) == ["validate.waivers on rdma_waivers[0].reason"]
    findings = validate.check(parse_intent(fabrics(), [good, bad, good]), NODES)
    assert [(finding.subject, finding.status) for finding in findings if finding.check == "validate.waivers"] == [
        ("rdma_waivers[0]", "pass"),
        ("rdma_waivers[1].reason", "fail"),
        ("rdma_waivers[2]", "pass"),
    ]


def test_a_waiver_over_two_stages_is_refused(fabrics: typing.Any) -> None:
    """The first one covers checks of platform alone, the second one those of fabric as well."""
    assert closing(fabrics(), waivers=[{"check": "p*", "reason": "no BMC"}]) == {}
    assert list(closing(fabrics(), waivers=[{"check": "[pf][la][ab]*", "reason": "no BMC"}])) == [
        "validate.waivers on rdma_waivers[0].check"
    ]


def test_an_empty_inventory_hides_no_other_mistake(fabrics: typing.Any) -> None:
    found = closing(fabrics(mtu=9), validate.Facts(nodes=(), variables=("rdma_fabrics",)))
    assert {"validate.numbers on rdma_fabrics[0].mtu", "validate.nodes on inventory"} <= set(found)


def test_a_release_is_written_in_plain_digits(fabrics: typing.Any) -> None:
    subject = "validate.cluster on rdma_cluster.network_operator.version"
    assert set(closing(fabrics(), cluster={"network_operator": {"version": "v26.4.\u0661"}})) == {subject}


@pytest.mark.parametrize(
    ("network", "wrong"),
    [
        ({"vlan": 0}, []),
        ({"vlan": 4094}, []),
        ({"vlan": 4095}, ["vlan"]),
        ({"vlan": 5, "vlan_qos": 0}, []),
        ({"vlan": 5, "vlan_qos": 7}, []),
        ({"vlan": 5, "vlan_qos": 8}, ["vlan_qos"]),
        ({"max_tx_rate": 0}, []),
        ({"min_tx_rate": 0}, []),
        ({"max_tx_rate": -1}, ["max_tx_rate"]),
        ({"min_tx_rate": 100, "max_tx_rate": 100}, []),
        ({"min_tx_rate": 101, "max_tx_rate": 100}, ["min_tx_rate"]),
        ({"min_tx_rate": 100}, []),
        ({"min_tx_rate": 2, "max_tx_rate": 1}, ["min_tx_rate"]),
        ({"max_tx_rate": 1}, []),
    ],
)
def test_limits_of_a_network_s_numbers(fabrics: typing.Any, network: dict[str, int], wrong: list[str]) -> None:
    _compute, storage = fabrics()
    # a low limit needs a reason, which test_a_low_rate_limit_needs_a_reason tests
    line_rate = {"reason": "shaped by the provider"}
    found = closing([{**storage, "line_rate": line_rate, "network": {**storage["network"], **network}}])
    assert [finding.subject.rpartition(".")[2] for finding in found.values()] == wrong


@pytest.mark.parametrize(
    ("limit", "more", "wrong"),
    [
        # meant in Gb/s
        (400, {}, ["reason"]),
        (400, {"line_rate": {"reason": " "}}, ["reason"]),
        (9999, {}, ["reason"]),
        (10_000, {}, []),
        (0, {}, []),
        (400, {"line_rate": {"reason": "tenants have 400 Mb/s"}}, []),
        (400, {"line_rate": {"floor_gbps": 0.3, "reason": "tenants have 400 Mb/s"}}, []),
        # TCP has no floor that comes from links
        (400, {"rdma": False}, []),
    ],
)
def test_a_low_rate_limit_needs_a_reason(
    fabrics: typing.Any, limit: int, more: dict[str, typing.Any], wrong: list[str]
) -> None:
    _compute, storage = fabrics()
    network = {**storage["network"], "max_tx_rate": limit}
    found = closing([{**storage, "line_rate": {}, "rdma": True, **more, "network": network}])
    assert [finding.subject.rpartition(".")[2] for finding in found.values()] == wrong
    if wrong:
        (finding,) = found.values()
        assert (
            f"to {limit / 1000:g} Gb/s" in finding.why
            and f"max_tx_rate of the fabric to {limit * 1000}." in finding.remedy
        )


@pytest.mark.parametrize(
    ("mode", "pods", "wrong"),
    [
        ("passthru", 1, []),
        ("passthru", 2, ["pods_per_node"]),
        ("passthru", None, ["pods_per_node"]),
        ("bridge", 1, []),
        ("bridge", 0, ["pods_per_node"]),
    ],
)
def test_how_many_pods_share_an_interface(
    fabrics: typing.Any, mode: str, pods: typing.Optional[int], wrong: list[str]
) -> None:
    compute, _storage = fabrics(
        profile="macvlan",
        select={"netdev": ["eth0"], "hcas_per_node": 1},
        network__mode=mode,
        virtual_functions=None,
        resource_name=None,
    )
    found = closing([{**compute, **({} if pods is None else {"pods_per_node": pods})}])
    assert [name.rpartition(".")[2] for name in found if name.endswith("pods_per_node")] == wrong


def test_the_first_finding_says_what_was_loaded(fabrics: typing.Any) -> None:
    first = validate.check(parse_intent(fabrics()), NODES)[0]
    assert (first.check, first.subject, first.status) == ("validate.intent", "intent", "pass")


def test_names_of_a_pool_are_looked_at_beside_the_others(fabrics: typing.Any) -> None:
    pool = {"type": "nv-ipam", "range": "10.0.0.0/16", "pool": {"name": "Pool", "kind": "IPPool", "namespace": "ops"}}
    found = closing(fabrics(ipam=pool, network__namespace="My Pods"))
    assert {
        "validate.names on rdma_fabrics[0].ipam.pool.name",
        "validate.names on rdma_fabrics[0].network.namespace",
    } <= set(found)


def test_the_controller_is_judged_with_the_waivers_of_the_intent(fabrics: typing.Any) -> None:
    denied = RightsFacts(90, (Denied("network", "patch x in y"),))
    controller = ControllerFacts(
        "/usr/bin/python3", ("network",), library="24.2.0", where="here", named=True, server="v1.34.4", rights=denied
    )
    waiver = {"check": "operators.rights", "reason": "another user applies it"}
    found = closing(fabrics(), dataclasses.replace(NODES, controller=controller), waivers=[waiver])
    assert [(name, finding.status) for name, finding in found.items()] == [("validate.rights on stage network", "warn")]


def said_at_once(
    fabrics: typing.Any,
    waivers: typing.Any = None,
    cluster: typing.Any = None,
    facts: validate.Facts = NODES,
    stage: str = "validate",
) -> list[str]:
    """What stage validate has against these variables, in its order: 'check on subject'."""
    record = judge_stage(
        StageContext(stage, "r", "s", "f", False, {}), RawIntent(fabrics, waivers, cluster), to_data(facts)
    )
    return [
        f"{judged.finding.check} on {judged.finding.subject}"
        for judged in record.judged
        if judged.finding.status != PASS
    ]


def test_no_mistake_hides_another(fabrics: typing.Any) -> None:
    """Types, unknown keys and meanings, of all fabrics and variables, in the order in which they were written."""
    line_rate = {"fraction": 3, "fleet_fraction": 4, "expected_gbps": 0, "floor_gbps": 0}
    ipam = {
        "ipam__range": "x",
        "ipam__gateway": "y",
        "ipam__exclude": ["z"],
        "ipam__routes": [{"dst": "far"}, {"dts": "10.0.0.0/8"}],
    }
    wrong = fabrics(
        virtual_functions="8", resource_name="mlx-compute", mtux=9, pods__seconds=0, line_rate=line_rate, **ipam
    )
    wrong[1].update(mtu=9, select={"vendor": "0x1", "hcas_per_node": "1", "device": "10C9"})
    waivers = [{"check": "nope", "reason": 5}, {"check": 5, "reason": "one"}, "no mapping"]
    cluster = {
        "wait_seconds": 0,
        "host": {"memlock": {"by": "x", "limit_gib": 0}, "machine_role": "A b"},
        "disruption": "rebot",
        "operator_namespace": "A",
    }
    assert said_at_once(wrong, waivers, cluster, validate.Facts(variables=("rdma_fabric",))) == [
        "validate.nodes on inventory",
        "validate.variables on rdma_fabric",
        "validate.intent on rdma_fabrics[0].virtual_functions",
        "validate.names on rdma_fabrics[0].resource_name",
        "validate.ipam on rdma_fabrics[0].ipam.range",
        "validate.gateway on rdma_fabrics[0].ipam.gateway",
        "validate.ipam on rdma_fabrics[0].ipam.exclude[0]",
        "validate.routes on rdma_fabrics[0].ipam.routes[0].dst",
        "validate.intent on rdma_fabrics[0].ipam.routes[1].dts",
        "validate.intent on rdma_fabrics[0].mtux",
        "validate.pods on rdma_fabrics[0].pods.seconds",
        "validate.line_rate on rdma_fabrics[0].line_rate.fraction",
        "validate.line_rate on rdma_fabrics[0].line_rate.fleet_fraction",
        "validate.line_rate on rdma_fabrics[0].line_rate.expected_gbps",
        "validate.line_rate on rdma_fabrics[0].line_rate.floor_gbps",
        "validate.line_rate on rdma_fabrics[0].line_rate.reason",
        "validate.select on rdma_fabrics[1].select.vendor",
        "validate.intent on rdma_fabrics[1].select.hcas_per_node",
        "validate.select on rdma_fabrics[1].select.device",
        "validate.numbers on rdma_fabrics[1].mtu",
        "validate.waivers on rdma_waivers[0].check",
        "validate.intent on rdma_waivers[0].reason",
        "validate.intent on rdma_waivers[1].check",
        "validate.waivers on rdma_waivers[1].reason",
        "validate.intent on rdma_waivers[2]",
        "validate.cluster on rdma_cluster.wait_seconds",
        "validate.intent on rdma_cluster.host.memlock.by",
        "validate.host on rdma_cluster.host.memlock.limit_gib",
        "validate.host on rdma_cluster.host.machine_role",
        "validate.intent on rdma_cluster.disruption",
        "validate.cluster on rdma_cluster.operator_namespace",
    ]


def test_all_of_a_mapping_s_keys_are_looked_at(fabrics: typing.Any) -> None:
    said = problems(fabrics(mtu="9000", virtual_functions="8", rail="leaf", network={"nmae": "x"}))
    assert [text.partition(";")[0] for text in said] == [
        "rdma_fabrics[0].virtual_functions: '8' (string)",
        "rdma_fabrics[0].network.nmae: unknown key",
        "rdma_fabrics[0].network.namespace: missing",
        "rdma_fabrics[0].mtu: '9000' (string)",
        "rdma_fabrics[0].rail: unknown key",
    ]


@pytest.mark.parametrize(
    ("seen", "expected", "why", "remedy"),
    [
        (
            "unknown key",
            "one of: mtu, ipam (did you mean 'mtu'?)",
            "linerate.rdma has no key of this name",
            "Rename the key to 'mtu' if you meant this key. Otherwise remove it.",
        ),
        (
            "unknown key",
            "one of: mtu, ipam",
            "linerate.rdma has no key of this name",
            "Remove rdma_fabrics[0].x, or correct its name.",
        ),
        ("missing", "an integer", "the value depends on your site", "Add rdma_fabrics[0].x."),
        (
            "not filled in yet",
            "whereabouts or nv-ipam",
            "The proposal contains no value for this key",
            "Set rdma_fabrics[0].x.",
        ),
        (
            "'eight' (string)",
            "an integer",
            "does not have the type or the form under 'expected'",
            "Set rdma_fabrics[0].x to a value of the type and the form under 'expected'.",
        ),
    ],
)
def test_each_sort_of_mistake_has_a_cause_of_its_own(seen: str, expected: str, why: str, remedy: str) -> None:
    (finding,) = validate.refuse([LoadError("rdma_fabrics[0].x", seen, expected)])
    assert (finding.check, finding.measured, finding.expected) == ("validate.intent", seen, expected)
    assert (
        why in finding.why
        and finding.remedy.startswith(remedy)
        and finding.remedy.endswith("docs/intent.md lists all keys. Then run stage validate again.")
    )


def test_without_an_intent_it_is_said_how_to_get_one() -> None:
    with pytest.raises(IntentError) as error:
        parse_intent(None)
    (finding,) = validate.refuse(error.value.problems)
    assert (finding.subject, finding.measured) == ("rdma_fabrics", "missing") and finding.why.startswith(
        "The intent is missing: rdma_fabrics is set neither in the inventory nor with -e"
    )
    assert "ansible-playbook linerate.rdma.propose -i <inventory>" in finding.remedy
    with pytest.raises(IntentError) as error:
        parse_intent([{}])
    assert {finding.why for finding in validate.refuse(error.value.problems)} == {
        "This key is required and has no default, because the value depends on your site."
    }


def test_a_misspelt_key_is_not_missing_as_well(fabrics: typing.Any) -> None:
    assert said_at_once(fabrics(), [{"check": "platform.bios", "reson": "no BMC here"}]) == [
        "validate.intent on rdma_waivers[0].reson"
    ]
    # nor is its fabric told to be without virtual functions
    assert said_at_once(fabrics(virtual_functions=None, virtual_function=8)) == [
        "validate.intent on rdma_fabrics[0].virtual_function"
    ]


@pytest.mark.parametrize(
    ("change", "also"),
    [
        ({"profile": "sriov_infinband"}, {}),
        ({"name": 5}, {}),
        ({"network": "sriov-ib-compute"}, {}),
        ({"select": "any"}, {}),
        ({"select__hcas_per_node": "4"}, {}),
        ({"virtual_functions": "8"}, {"ipam__range": "100.100.0.0/27"}),
        ({"ipam": "100.100.0.0/22"}, {}),
        ({"ipam__range": 5}, {}),
        ({"line_rate": 0.9}, {}),
        ({"pods__seconds": "10"}, {"pods__limit_seconds": 1}),
    ],
)
def test_what_could_not_be_read_is_told_once_and_nothing_is_guessed_of_it(
    fabrics: typing.Any, change: dict[str, typing.Any], also: dict[str, typing.Any]
) -> None:
    """Nothing is said that would need the value: not even what would be wrong with each."""
    ((place, _value),) = change.items()
    assert said_at_once(fabrics(**change, **also)) == [f"validate.intent on rdma_fabrics[0].{place.replace('__', '.')}"]


def test_a_variable_that_is_none_at_all_hides_no_other(fabrics: typing.Any) -> None:
    cluster = {"training": {"fabric": "compute", "ranks": 1}}
    assert said_at_once("compute", "all", cluster) == [
        "validate.intent on rdma_fabrics",
        "validate.intent on rdma_waivers",
        "validate.cluster on rdma_cluster.training.ranks",
    ]
    assert said_at_once(fabrics(mtu=9), None, 5) == [
        "validate.numbers on rdma_fabrics[0].mtu",
        "validate.intent on rdma_cluster",
    ]


def test_fabrics_that_can_be_read_are_compared_beside_one_that_can_t(fabrics: typing.Any) -> None:
    _compute, storage = fabrics()
    assert {"validate.unique_names on name storage", "validate.claims on rdma_fabrics[2].select"} < set(
        said_at_once([*fabrics(name=5)[:1], storage, {**storage, "mtu": "9000"}])
    )


def test_a_stage_after_it_tells_the_shape_alone(fabrics: typing.Any) -> None:
    wrong = fabrics(virtual_functions="8", mtu=9)
    assert said_at_once(wrong, stage="discover") == ["discover.intent on rdma_fabrics[0].virtual_functions"]


WRONG = some.sampled_from([None, "x", "x-", -1, 0, 9, 1.5, True, [], ["x"], [5], {}, {"x": 1}])


@hypothesis.given(
    first=some.dictionaries(
        some.sampled_from(
            ["name", "profile", "mtu", "virtual_functions", "rails", "ipam", "select", "network", "pods"]
        ),
        WRONG,
        max_size=3,
    ),
    second=some.dictionaries(
        some.sampled_from(["name", "mtu", "virtual_functions", "rails", "ipam", "select", "network", "rail"]),
        WRONG,
        max_size=3,
    ),
    cluster=some.dictionaries(
        some.sampled_from(["wait_seconds", "host", "training", "measures", "node_selector", "network_operator"]),
        WRONG,
        max_size=3,
    ),
)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_each_mistake_of_a_fabric_is_told_whatever_is_wrong_in_the_others(
    fabrics: typing.Any, first: dict[str, typing.Any], second: dict[str, typing.Any], cluster: dict[str, typing.Any]
) -> None:
    """What is wrong in one place alone is told as well when other places are wrong."""
    _compute, storage = fabrics()
    one, other = [{**fabrics()[0], **first}, storage], [fabrics()[0], {**storage, **second}]
    both = said_at_once([one[0], other[1]], None, cluster)
    assert len(set(both)) == len(both)
    for alone in (said_at_once(one), said_at_once(other), said_at_once(fabrics(), None, cluster)):
        # two of one name, or of one network, is about more than one place
        of_one = {
            text
            for text in alone
            if "unique_names" not in text and "training" not in text and "claims" not in text and "disjoint" not in text
        }
        assert of_one <= set(both)
