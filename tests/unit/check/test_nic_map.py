# SPDX-License-Identifier: GPL-3.0-or-later

"""NIC maps: what we write is right, and each way in which one can be wrong is named."""

from __future__ import annotations

import ipaddress
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import (
    NicMapInputs,
    collect_inputs,
    lint,
    list_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    SeenSubnet,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nic_map import NicLine, NicMap
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import BESIDE
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nic_map import parse_nic_map, text_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import parse_range
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import RenderError
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.nic_map import (
    iterate_reserved,
    list_nic_lines,
    render_config_map,
)
from ansible_collections.linerate.rdma.tests.unit.check.job_world import ROCE

NETDEVS = {"worker-1": ("ens13", "ens14"), "worker-2": ("ens13", "ens14")}
IPAM = {"type": "whereabouts", "range": "10.249.65.0/24", "gateway": "10.249.65.1", "exclude": ["10.249.65.0/28"]}
GROUND = NicMapInputs(
    {**NETDEVS, "worker-1": ("eno1", "ens13", "ens14")},
    {},
    NETDEVS,
    parse_range("10.249.65.0/24", exclude=["10.249.65.0/28", "10.249.65.1"]),
    "10.249.65.1",
)
TEXT = """\
worker-1:ens13:net1:10.249.65.2
worker-1:ens14:net2:10.249.65.3
worker-2:ens13:net1:10.249.65.4
worker-2:ens14:net2:10.249.65.5
"""


def fabric(**ipam: typing.Union[list[str], str]) -> Fabric:
    answer: Fabric = load(Fabric, {**ROCE, "ipam": {**IPAM, **ipam}}, "rdma_fabrics[0]")
    return answer


def bad(text: str, ground: NicMapInputs = GROUND) -> list[tuple[str, ...]]:
    return [
        (item.check, item.status, item.subject)
        for item in lint("map", parse_nic_map(text), ground)
        if item.status != "pass"
    ]


def test_what_we_write_passes_and_is_read_back() -> None:
    made = list_nic_lines(fabric(), NETDEVS)
    resource = render_config_map(fabric(), "roce-nic-map", made)
    assert text_of(resource) == TEXT
    assert (resource["metadata"]["name"], resource["metadata"]["namespace"]) == ("roce-nic-map", "training")
    assert parse_nic_map(TEXT) == NicMap(made)
    assert bad(TEXT) == []
    assert {item.check for item in lint("map", parse_nic_map(TEXT), GROUND)} == {
        f"nic_map.{what}" for what in BESIDE["nic_map"]
    }


def test_interfaces_keep_their_addresses_when_nodes_come_and_go() -> None:
    before = parse_nic_map(TEXT).lines
    after = list_nic_lines(fabric(), {"worker-0": ("ens13",), "worker-2": ("ens14", "ens13")}, before)
    assert [line.text for line in after] == [
        "worker-0:ens13:net1:10.249.65.6",
        "worker-2:ens14:net1:10.249.65.5",
        "worker-2:ens13:net2:10.249.65.4",
    ]


def test_an_address_that_pods_get_by_now_is_not_kept() -> None:
    (line,) = list_nic_lines(fabric(), {"worker-1": ("ens13",)}, [NicLine("worker-1", "ens13", "net1", "10.249.65.99")])
    assert line.address == "10.249.65.2"


def test_addresses_around_the_range_that_pods_get() -> None:
    made = list_nic_lines(fabric(range_start="10.249.65.4", range_end="10.249.65.252", exclude=[]), NETDEVS)
    assert [line.address for line in made] == ["10.249.65.2", "10.249.65.3", "10.249.65.253", "10.249.65.254"]


@pytest.mark.parametrize(
    ("ipam", "text"),
    [
        ({"exclude": ["10.249.65.8/30"]}, "requires 8 addresses of 10.249.65.0/24 that no pod gets"),
        ({"range": "x"}, "ipam.range"),
    ],
)
def test_too_few_addresses_are_refused(ipam: dict[str, typing.Any], text: str) -> None:
    with pytest.raises(RenderError, match=text):
        list_nic_lines(fabric(**ipam), dict.fromkeys(("w1", "w2"), ("a", "b", "c", "d")))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            "worker-2:ens14:net2:10.249.65.5",
            "worker-2:ens14:net2:",
            [("nic_map.read", "fail"), ("nic_map.complete", "fail"), ("nic_map.peers", "fail")],
        ),
        ("worker-2:ens14:net2:10.249.65.5\n", "", [("nic_map.complete", "fail"), ("nic_map.peers", "fail")]),
        (
            "worker-2:ens14",
            "worker-3:ens14",
            [
                ("nic_map.netdevs", "fail"),
                ("nic_map.complete", "fail"),
                ("nic_map.peers", "fail"),
                ("nic_map.peers", "fail"),
            ],
        ),
        ("worker-2:ens14", "worker-2:ens15", [("nic_map.netdevs", "fail"), ("nic_map.complete", "fail")]),
        ("10.249.65.5", "10.249.65.4", [("nic_map.unique", "fail")]),
        ("worker-2:ens14:net2", "worker-2:ens14:net1", [("nic_map.unique", "fail"), ("nic_map.peers", "fail")]),
        ("worker-2:ens14:net2", "worker-2:ens13:net2", [("nic_map.complete", "fail"), ("nic_map.unique", "fail")]),
        ("10.249.65.5", "10.249.66.5", [("nic_map.range", "fail")]),
        ("10.249.65.5", "10.249.65.255", [("nic_map.range", "fail")]),
        ("10.249.65.5", "fd00::5", [("nic_map.range", "fail")]),
        ("10.249.65.5", "10.249.65.1", [("nic_map.range", "fail")]),
        ("10.249.65.5", "10.249.65.50", [("nic_map.range", "warn")]),
    ],
)
def test_each_way_to_be_wrong(old: str, new: str, found: list[tuple[str, str]]) -> None:
    assert old in TEXT
    assert [(check, status) for check, status, _subject in bad(TEXT.replace(old, new))] == found


def test_the_nearest_name_is_told() -> None:
    finding, *_rest = (
        item
        for item in lint("map", parse_nic_map(TEXT.replace("worker-2:ens14", "worker-2:ens41")), GROUND)
        if item.status == "fail"
    )
    assert finding.expected == "an interface of the node (did you mean 'ens14'?)"


def test_a_node_that_was_not_read_is_unknown() -> None:
    ground = NicMapInputs(
        {"worker-1": GROUND.netdevs["worker-1"]},
        {"worker-2": "unreachable"},
        {"worker-1": NETDEVS["worker-1"]},
        GROUND.pool,
    )
    assert {(check, status) for check, status, _subject in bad(TEXT, ground)} == {
        ("nic_map.netdevs", "unknown"),
        ("nic_map.complete", "unknown"),
    }


def test_a_map_of_which_no_fabric_is_known() -> None:
    assert bad(TEXT, NicMapInputs(GROUND.netdevs)) == []
    assert {item.check for item in lint("map", parse_nic_map(TEXT), NicMapInputs(GROUND.netdevs))} == {
        f"nic_map.{what}" for what in ("read", "netdevs", "unique", "peers")
    }


def answer(*netdevs: str) -> ObservedHcas:
    """A node with an Ethernet HCA of the fabric for each name that begins with e, and one of another device for each
    other name."""
    return ObservedHcas(
        NodeHcas(
            tuple(
                Hca(
                    f"mlx5_{number}",
                    f"mlx5_{number}",
                    (Netdev(name, "00:00:00:00:00:01"),) if name else (),
                    PciFunction(f"0000:{number:02x}:00.0", "15b3", "1021" if name.startswith("e") else "101b", "0200"),
                )
                for number, name in enumerate(netdevs)
            )
        )
    )


def test_what_a_map_is_held_against() -> None:
    select = {"hcas_per_node": 2, "vendor": "15b3", "device": "1021"}
    two = load(Fabric, {**ROCE, "select": select, "ipam": IPAM}, "rdma_fabrics[0]")
    hcas = {
        "worker-1": answer("ens13", "ens14", "other0"),
        "worker-2": ObservedHcas(error="ssh: timed out"),
        "worker-3": ObservedHcas(),
    }
    ground = collect_inputs(two, hcas, {})
    assert ground.netdevs == {"worker-1": ("ens13", "ens14", "other0")}
    assert dict(ground.members or {}) == {"worker-1": ("ens13", "ens14")}
    assert ground.unread == {"worker-2": "ssh: timed out", "worker-3": "no result of node_info"}
    assert (ground.gateway, ground.pool) == ("10.249.65.1", GROUND.pool)
    assert [item[:2] for item in bad(TEXT, ground)] == [("nic_map.netdevs", "unknown")] * 2 + [
        ("nic_map.complete", "unknown")
    ] * 2


@pytest.mark.parametrize(
    "ipam",
    [
        {"range": "10.249.65.1/24"},
        {"type": "nv-ipam", "gateway": "10.249.65.1", "range": "10.249.65.0/24", "pool": {"name": "p"}},
    ],
    ids=["no range", "shares of nodes"],
)
def test_addresses_that_mean_no_range_are_compared_with_none(ipam: dict[str, typing.Any]) -> None:
    wanted = load(Fabric, {**ROCE, "ipam": {"type": "whereabouts", **ipam}}, "rdma_fabrics[0]")
    ground = collect_inputs(wanted, {"worker-1": answer("ens13")}, {})
    assert ground.pool is None and ground.members == {"worker-1": ("ens13",)}


def test_a_network_that_is_no_fabric_of_the_intent_has_no_members() -> None:
    without = load(Fabric, {key: value for key, value in ROCE.items() if key != "ipam"}, "rdma_fabrics[0]")
    for wanted in (None, without):
        assert collect_inputs(wanted, {"worker-1": answer("ens13")}, {}) == NicMapInputs({"worker-1": ("ens13",)})


def test_a_fabric_that_cannot_be_told_is_unknown() -> None:
    """No port of it sees a subnet manager, so nothing says which interfaces it has."""
    infiniband = load(
        Fabric,
        {
            **ROCE,
            "profile": "sriov_infiniband",
            "select": {"subnet_manager": ["any"], "hcas_per_node": 1},
            "ipam": IPAM,
        },
        "rdma_fabrics[0]",
    )
    ground = collect_inputs(
        infiniband, {"worker-1": answer("ens13", "ens14"), "worker-2": answer("ens13", "ens14")}, {}
    )
    assert list(ground.unread) == ["roce"]
    assert [item[:2] for item in bad(TEXT, ground)] == [("nic_map.complete", "unknown")]


def test_members_of_an_infiniband_fabric_are_those_that_its_manager_reaches() -> None:
    """A node whose subnets were not read, and an HCA without an interface, do not keep the others from being told."""
    infiniband = load(
        Fabric,
        {
            **ROCE,
            "profile": "sriov_infiniband",
            "select": {"subnet_manager": ["any"], "hcas_per_node": 2},
            "ipam": IPAM,
        },
        "rdma_fabrics[0]",
    )
    seats = tuple(
        Hca(
            f"mlx5_{number}",
            f"mlx5_{number}",
            netdevs,
            PciFunction(f"0000:{number:02x}:00.0", "15b3", "1021", "0207"),
            ports=(Port(1, link_layer="InfiniBand"),),
        )
        for number, netdevs in enumerate([(Netdev("ib0", "00:00:00:00:00:01"),), ()])
    )
    hcas = dict.fromkeys(("worker-1", "worker-2"), ObservedHcas(NodeHcas(seats)))
    master = SubnetManager(1, "0xaa", "MASTER", 1, 1)
    subnets = {
        "worker-1": ObservedSubnets(tuple(SeenSubnet(seat.name, 1, master) for seat in seats)),
        "worker-2": ObservedSubnets(error="sminfo: not found"),
    }
    members, why = list_members(infiniband, hcas, subnets)
    assert (members["worker-1"], why) == (("ib0",), "")


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("worker-2:ens14", "worker-2:ens15", "nic_map.netdevs"),
        ("worker-2:ens14:net2:10.249.65.5\n", "", "nic_map.complete"),
        ("10.249.65.5", "10.249.65.4", "nic_map.unique"),
        ("worker-2:ens14:net2:10.249.65.5\n", "", "nic_map.peers"),
        ("10.249.65.5", "10.249.66.5", "nic_map.range"),
        ("10.249.65.5", "x", "nic_map.read"),
    ],
)
def test_what_fails_does_not_pass_as_well(old: str, new: str, check: str) -> None:
    assert [
        item.status for item in lint("map", parse_nic_map(TEXT.replace(old, new)), GROUND) if item.check == check
    ] == ["fail"]


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_map_is_no_pass(text: str) -> None:
    assert bad(text) == [("nic_map.read", "unknown", "map")]


@pytest.mark.parametrize("data", [{}, {"a": "x", "b": "y"}, {"nic-map": None}, {"only": 1}])
def test_a_config_map_without_a_map(data: dict[str, typing.Any]) -> None:
    with pytest.raises(ResourceError, match=r"expected data\.nic-map, or exactly one key"):
        text_of({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})


def test_a_config_map_that_someone_else_made() -> None:
    assert text_of({"kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"nicmap.txt": TEXT}}) == TEXT


@given(st.text(alphabet="abw-1:.0\n #\t\x00é", max_size=80))
def test_every_line_is_read_or_told_of(text: str) -> None:
    found = parse_nic_map(text)
    wanted = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(found.lines) + len(found.broken) == len(wanted)
    assert all(parse_nic_map(line.text) == NicMap((line,)) for line in found.lines)
    assert lint("map", found, GROUND)


@given(st.integers(24, 29), st.lists(st.integers(0, 255), max_size=4), st.integers(1, 100), st.integers(100, 254))
def test_reserved_addresses_are_never_given_out(prefix: int, excluded: list[int], low: int, high: int) -> None:
    network = ipaddress.ip_network(f"10.0.0.0/{prefix}")
    first, last = (str(network[min(number, network.num_addresses - 2)]) for number in (low, high))
    pool = parse_range(str(network), first, last, [f"10.0.0.{number}" for number in excluded])
    found = list(iterate_reserved(pool))
    assert len(found) == len(set(found)) == network.num_addresses - 2 - pool.capacity
    assert all(pool.on_network(address) and not pool.hands_out(address) for address in found)
