# SPDX-License-Identifier: GPL-3.0-or-later

"""The range of a fabric against the networks and addresses of the hosts' own interfaces."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses.host_networks import Hosts
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses.in_use import (
    check,
    list_refused_fabrics,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import (
    AddressFacts,
    UsedNetwork,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca, Netdev, NodeHcas, PciFunction
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import (
    InterfaceNetwork,
    NodePlatform,
    ObservedPlatform,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

NODES = ("worker-1", "worker-2")
FREE = AddressFacts(
    taken=(
        UsedNetwork("pods", "10.244.0.0/16", "cluster"),
        UsedNetwork("node", "192.168.1.1/32", "node worker-1", node="worker-1"),
        UsedNetwork("node", "192.168.1.2/32", "node worker-2", node="worker-2"),
    ),
    pods=3,
)
RANGE: dict[str, typing.Any] = {"type": "whereabouts", "range": "10.0.0.0/24"}
SELECT: dict[str, typing.Any] = {"hcas_per_node": 1, "vendor": "15b3", "device": "101d"}


def intent(profile: str = "sriov_ethernet", **changes: typing.Any) -> Intent:
    functions = {"virtual_functions": 8} if profile == "sriov_ethernet" else {}
    fabric = {
        "name": "storage",
        "profile": profile,
        "select": SELECT,
        **functions,
        "resource_name": "storage",
        "network": {"name": "net", "namespace": "test"},
        "ipam": RANGE,
        **changes,
    }
    return parse_intent([fabric])


def hca(address: str, interface: str, device: str = "101d", of: typing.Optional[str] = None, bond: str = "") -> Hca:
    netdev = Netdev(interface, "94:6d:ae:00:00:01", 9000, "up", bond=bond or None)
    pci = PciFunction(address, "15b3", device, "0200", "mlx5_core")
    return Hca(interface, None if of else f"mlx5_{interface}", (netdev,), pci, physical_function=of)


HCAS = NodeHcas(
    (
        hca("0000:10:00.0", "own"),
        hca("0000:10:00.2", "vf", "101e", of="0000:10:00.0"),
        hca("0000:20:00.0", "other", "1017"),
        hca("0000:30:00.0", "part0", "1017", bond="bond0"),
        hca("0000:30:00.1", "part1", "1017", bond="bond0"),
    )
)


def hosts(
    interface: str,
    network: str,
    addresses: typing.Optional[typing.Sequence[str]],
    nodes: typing.Sequence[str] = NODES,
) -> Hosts:
    """Each of the given nodes has one network more, and the address of its own place in it."""
    seen = {}
    for place, name in enumerate(NODES):
        more = name in nodes
        networks = (InterfaceNetwork("eno1", "192.168.1.0/24"), *([InterfaceNetwork(interface, network)] * more))
        own = None if addresses is None else (f"192.168.1.{place + 1}", *addresses[place : place + more])
        seen[name] = ObservedPlatform(NodePlatform("6.12", "x86_64", networks=networks, addresses=own))
    return Hosts(seen, dict.fromkeys(NODES, HCAS))


def overlap(seen: Hosts, subject: str = "storage", wanted: typing.Optional[Intent] = None) -> typing.Optional[Finding]:
    found = [item for item in check(wanted or intent(), NODES, FREE, seen) if item.check == "network.address_overlap"]
    return next((item for item in found if item.subject == subject), None)


@pytest.mark.parametrize(
    ("interface", "network", "addresses", "status", "said"),
    [
        # on the fabric's own interface it counts what pods may get
        ("own", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"), "fail", "10.0.0.11/32 (own of worker-1"),
        ("vf", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"), "fail", "10.0.0.11/32 (vf of worker-1"),
        ("own", "10.0.0.0/16", ("10.0.7.1", "10.0.7.2"), "pass", "none"),
        ("own", "10.0.0.0/24", None, "warn", "10.0.0.0/24 (own of worker-1"),
        ("own", "10.0.0.0/24", ("172.16.0.1", "172.16.0.2"), "warn", "10.0.0.0/24 (own of worker-1"),
        # on another one the whole network does
        ("other", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"), "fail", "10.0.0.0/24 (other of worker-1"),
        ("other", "10.0.0.128/25", None, "fail", "10.0.0.128/25 (other of worker-1"),
        ("other", "10.0.0.0/16", ("10.0.0.11", "10.0.0.12"), "fail", "10.0.0.0/16 (other of worker-1"),
        ("other", "10.0.0.0/16", ("10.0.7.1", "10.0.7.2"), "warn", "10.0.0.0/16 (other of worker-1"),
        ("other", "10.0.1.0/24", ("10.0.1.1", "10.0.1.2"), "pass", "none"),
        ("other", "fd00::/64", ("fd00::1", "fd00::2"), "pass", "none"),
        ("other", "169.254.0.0/16", ("169.254.0.1", "169.254.0.2"), "pass", "none"),
    ],
)
def test_networks_of_hosts_in_the_range(
    interface: str, network: str, addresses: typing.Optional[tuple[str, str]], status: str, said: str
) -> None:
    finding = overlap(hosts(interface, network, addresses))
    assert finding is not None and (finding.status, said in finding.measured) == (status, True), finding
    assert bool(finding.remedy) == (status != "pass")


@pytest.mark.parametrize(
    ("ipam", "status"),
    [
        ({**RANGE, "exclude": ["10.0.0.0/28"]}, "pass"),
        ({**RANGE, "range_start": "10.0.0.16"}, "pass"),
        ({**RANGE, "range_end": "10.0.0.10"}, "pass"),
        ({**RANGE, "exclude": ["10.0.0.11/32"]}, "fail"),
        ({"type": "nv-ipam", "range": "10.0.0.0/24", "pool": {"name": "p"}}, "fail"),
        ({"type": "nv-ipam", "range": "10.0.0.0/24", "pool": {"name": "p"}, "exclude": ["10.0.0.0/28"]}, "pass"),
    ],
)
def test_addresses_of_hosts_that_no_pod_gets_are_no_overlap(ipam: dict[str, typing.Any], status: str) -> None:
    """One of two addresses that is not excluded rests on the word of one node."""
    seen = hosts("own", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"))
    found = [overlap(seen, subject, intent(ipam=ipam)) for subject in ("storage", "node worker-2")]
    assert any(item is not None and item.status in ("fail", "unknown") for item in found) == (status == "fail")


def test_what_is_below_the_bond_of_a_fabric_is_its_own() -> None:
    wanted = intent("rdma_shared", select={"netdev": ["bond0"], "hcas_per_node": 1})
    outside = {**RANGE, "range_start": "10.0.0.128"}
    for part in ("part0", "part1"):
        seen = hosts(part, "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"))
        found = [overlap(seen, wanted=one) for one in (wanted, intent("rdma_shared", select=SELECT))]
        assert [item and item.status for item in found] == ["fail", "fail"]
        shared = overlap(
            seen, wanted=intent("rdma_shared", select={"netdev": ["bond0"], "hcas_per_node": 1}, ipam=outside)
        )
        assert shared is not None and shared.status == "pass"


def test_a_fabric_in_the_network_of_hosts_is_not_made() -> None:
    findings = check(intent(), NODES, FREE, hosts("other", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12")))
    assert list(list_refused_fabrics(intent(), findings)) == ["storage"]


def test_the_word_of_one_node_refuses_no_fabric() -> None:
    """A node that is not to be trusted may name any network."""
    seen = hosts("other", "10.0.0.0/24", ("10.0.0.11", "10.0.0.12"), nodes=NODES[:1])
    claim, fabric = overlap(seen, "node worker-1"), overlap(seen)
    assert claim is not None and claim.status == "unknown" and "10.0.0.0/24 (other of worker-1" in claim.measured
    assert fabric is not None and fabric.status == "pass"
    assert list_refused_fabrics(intent(), check(intent(), NODES, FREE, seen)) == {}


def test_a_route_to_the_network_of_hosts_may_be_meant() -> None:
    ipam = {**RANGE, "gateway": "10.0.0.1", "routes": [{"dst": "10.5.0.0/16"}]}
    finding = overlap(hosts("other", "10.5.0.0/16", ("10.5.0.1", "10.5.0.2")), wanted=intent(ipam=ipam))
    assert finding is not None and finding.status == "pass"


@pytest.mark.parametrize("lost", ["networks", "node"])
def test_networks_of_hosts_that_were_not_read_are_unknown(lost: str) -> None:
    seen = hosts("other", "10.5.0.0/16", ("10.5.0.1", "10.5.0.2"))
    platform = seen.platforms["worker-2"].value
    assert platform is not None and overlap(seen, "hosts") is None
    unread = (
        ObservedPlatform(None, "no answer")
        if lost == "node"
        else ObservedPlatform(dataclasses.replace(platform, networks=None))
    )
    finding = overlap(Hosts({**seen.platforms, "worker-2": unread}, seen.hcas), "hosts")
    assert finding is not None and finding.status == "unknown"
    assert "worker-2" in finding.remedy and "worker-1" not in finding.remedy
