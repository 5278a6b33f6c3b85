# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks without virtual functions: what the linter says before, what the wait asks for, what stage network makes of
it, and what fabrics may not share."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.grace import GRACE, SuspectTimer
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.sriov import judge
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import ClusterState, Target
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth import check as bandwidth
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth import facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.discover import check as discover
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import check as fabric
from ansible_collections.linerate.rdma.plugins.module_utils._check.network import check as network
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.facts import Facts, LintFacts
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.check import lint_all, read_held
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.plain_network import lint
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.policy_context import ClusterBefore
from ansible_collections.linerate.rdma.plugins.module_utils._check.network.lint.policy_context import (
    ClusterBefore as Surroundings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators import check as operators
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform import check as platform
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import conflicts
from ansible_collections.linerate.rdma.plugins.module_utils._check.virtual_functions import check as virtual_functions
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Attachment, ClusterNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.wait import SyncFacts, SyncNode
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts, RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    HeldParts,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Port,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.nvidia import NicPolicy, Reported
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import NIC_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OperatorFacts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_state import PodState

NIC = Hca(
    "mlx5_0",
    "mlx5_0",
    (Netdev("ens1", "aa:bb", 1500, "up"),),
    PciFunction("0000:3c:00.0", "15b3", "1021", "0200", "mlx5_core"),
    ports=(Port(1, link_layer="Ethernet"),),
)
RANGES = iter(range(256))


def made(profile: str, **changes: typing.Any) -> dict[str, typing.Any]:
    data = {
        "name": profile.replace("_", "-"),
        "profile": profile,
        "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
        "network": {"name": profile.replace("_", "-"), "namespace": "training"},
        "ipam": {"type": "whereabouts", "range": f"10.{next(RANGES)}.0.0/24"},
        **({"resource_name": "shared"} if profile == "rdma_shared" else {}),
        **({"virtual_functions": 4, "resource_name": "vfs"} if profile.startswith("sriov") else {}),
        **changes,
    }
    return {key: value for key, value in data.items() if value is not None}


def intent_of(*fabrics: dict[str, typing.Any], cluster: typing.Optional[dict[str, typing.Any]] = None) -> Intent:
    return parse_intent(list(fabrics), None, cluster)


def one(profile: str, **changes: typing.Any) -> Fabric:
    return intent_of(made(profile, **changes)).fabrics[0]


def around(hca: Hca = NIC, **changes: typing.Any) -> ClusterBefore:
    return Surroundings(hcas={"a": NodeHcas((hca,))}, **changes)


def judged(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    return {(finding.check, finding.status) for finding in findings}


# The linter


@pytest.mark.parametrize("profile", ["macvlan", "rdma_shared", "host_device"])
def test_a_good_network_has_nothing_against_it(profile: str) -> None:
    found = lint(one(profile), around(), ["a"])
    assert found and {finding.status for finding in found} == {"pass"}


ROUTE, ADDRESS = "the default route of the node", "the address of the node 10.0.0.5"
TAKING = {
    "host_device by name": ("host_device", {}),
    "host_device from a pool": (
        "host_device",
        {"resource_name": "pf", "select": {"hcas_per_node": 1, "pci": ["0000:3c:00.0"]}},
    ),
    "macvlan passthru": ("macvlan", {"network": {"name": "n", "namespace": "t", "mode": "passthru"}}),
    "rdma_shared passthru": ("rdma_shared", {"network": {"name": "n", "namespace": "t", "mode": "passthru"}}),
}


def uses(found: typing.Iterable[Finding]) -> list[Finding]:
    return [one for one in found if one.check == "network.lint_uplink"]


@pytest.mark.parametrize(("profile", "changes"), TAKING.values(), ids=TAKING)
@pytest.mark.parametrize(
    ("use", "status"),
    [(ROUTE, "fail"), (ADDRESS, "fail"), ("the bond bond0", "fail"), ("the network 10.1.0.0/24", "warn")],
)
@pytest.mark.parametrize("key", ["ens1", "0000:3c:00.0"])
def test_pods_do_not_take_an_interface_that_the_node_uses_itself(
    profile: str, changes: dict[str, typing.Any], use: str, status: str, key: str
) -> None:
    findings = lint(one(profile, **changes), around(in_use={"a": {key: use}}), ["a"])
    (found,) = uses(findings)
    assert (found.subject, found.status) == (f"{profile.replace('_', '-')} a ens1", status)
    assert use in found.measured and "on all nodes of the fabric at the same time" in found.why
    assert ("the pod on a, because the node would be unreachable" in found.why) == (use in (ROUTE, ADDRESS))
    assert f"If ip addr and ip route on a do not show {use} on this interface, remove a from" in found.remedy
    held = read_held({"f": findings}, ())
    assert bool(held) == (status == "fail")
    assert not read_held({"f": findings}, (Waiver("network.lint_uplink", "console", found.subject),))


@pytest.mark.parametrize(("profile", "changes"), TAKING.values(), ids=TAKING)
def test_an_interface_of_a_node_whose_default_route_is_unknown_is_a_warning(
    profile: str, changes: dict[str, typing.Any]
) -> None:
    (found,) = uses(lint(one(profile, **changes), around(in_use={}), ["a"]))
    assert found.status == "warn" and "ip route show default" in found.remedy
    assert not uses(lint(one(profile, **changes), around(in_use=None), ["a"]))
    assert not uses(lint(one(profile, **changes), Surroundings(in_use={}), ["a"]))


@pytest.mark.parametrize(("profile", "changes"), TAKING.values(), ids=TAKING)
def test_pods_may_take_a_free_interface_also_while_a_pod_has_it(profile: str, changes: dict[str, typing.Any]) -> None:
    in_use = {"a": {"ens2": ROUTE, "0000:5e:00.0": ROUTE}}
    assert not uses(lint(one(profile, **changes), around(in_use=in_use), ["a"]))
    held = dataclasses.replace(NIC, netdevs=(), held=HeldParts(names=("ens1",)))
    assert not uses(lint(one(profile, **changes), around(held, in_use=in_use), ["a"]))


@pytest.mark.parametrize("profile", ["macvlan", "rdma_shared"])
def test_pods_may_share_the_interface_of_the_default_route(profile: str) -> None:
    assert not uses(lint(one(profile), around(in_use={"a": {"ens1": ROUTE, "0000:3c:00.0": ROUTE}}), ["a"]))


def test_one_interface_of_an_hca_may_be_taken_beside_another_with_the_default_route() -> None:
    both = dataclasses.replace(NIC, netdevs=(*NIC.netdevs, Netdev("ens2", "aa:bc", 1500, "up")))
    in_use = {"a": {"ens2": ROUTE, "0000:3c:00.0": ROUTE}}
    assert not uses(lint(one("host_device"), around(both, in_use=in_use), ["a"]))


def test_a_macvlan_passes_the_packets_of_a_bond_unless_the_node_needs_it() -> None:
    part = dataclasses.replace(NIC, netdevs=(Netdev("ens1", "aa:bb", 1500, "up", bond="bond0"),))
    select, network = {"hcas_per_node": 1, "netdev": ["bond0"]}, {"name": "n", "namespace": "t", "mode": "passthru"}
    taking = one("macvlan", select=select, network=network)
    in_bond = {"ens1": "the bond bond0", "0000:3c:00.0": "the bond bond0"}
    assert not uses(lint(taking, around(part, in_use={"a": in_bond}), ["a"]))
    (found,) = uses(lint(taking, around(part, in_use={"a": {**in_bond, "bond0": ROUTE}}), ["a"]))
    assert (found.subject, found.status) == ("macvlan a bond0", "fail")


def test_the_pod_network_needs_nothing() -> None:
    assert (
        lint(
            intent_of({"name": "pods", "profile": "pod_network", "network": {"namespace": "training"}}).fabrics[0],
            around(),
            ["a"],
        )
        == ()
    )


@pytest.mark.parametrize(
    ("profile", "changes", "world", "check", "status", "said"),
    [
        (
            "macvlan",
            {},
            around(dataclasses.replace(NIC, netdevs=(Netdev("ens2", "aa:bb", 1500, "up"),))),
            "network.lint_select",
            "fail",
            "ens2",
        ),
        (
            "macvlan",
            {},
            Surroundings(),
            "network.lint_select",
            "unknown",
            "The HCAs of the node were not read",
        ),
        ("macvlan", {}, Surroundings(), "network.lint_link", "unknown", "state and MTU were not checked"),
        ("macvlan", {"mtu": 9000}, around(), "network.lint_link", "fail", "must be [0, master MTU(1500)]"),
        (
            "macvlan",
            {},
            around(dataclasses.replace(NIC, netdevs=(Netdev("ens1", "aa:bb", 1500, "down"),))),
            "network.lint_link",
            "warn",
            "it carries no packets",
        ),
        (
            "rdma_shared",
            {},
            around(dataclasses.replace(NIC, rdma_device=None)),
            "network.lint_rdma",
            "fail",
            "no RDMA device for the interface",
        ),
        (
            "rdma_shared",
            {},
            around(states={"a": NodeState("a", rdma_mode="exclusive")}),
            "network.lint_rdma",
            "fail",
            "incorrect RDMA subsystem",
        ),
        ("rdma_shared", {}, around(rdma_mode="exclusive"), "network.lint_rdma", "fail", "incorrect RDMA subsystem"),
        ("rdma_shared", {}, Surroundings(), "network.lint_rdma", "unknown", "so its RDMA device is unknown"),
        (
            "rdma_shared",
            {},
            around(nic_policies=(NicPolicy("other", "ignore"),)),
            "network.lint_operator",
            "warn",
            "uses only the NicClusterPolicy of this name",
        ),
        (
            "rdma_shared",
            {},
            around(
                nic_policies=(
                    NicPolicy(
                        "nic-cluster-policy",
                        "ready",
                        False,
                        {"rdmaSharedDevicePlugin": '{"configList": []}'},
                        {"rdmaSharedDevicePlugin": "helm"},
                    ),
                )
            ),
            "network.lint_operator",
            "fail",
            "The owner of this configuration is helm",
        ),
    ],
)
def test_each_rule(
    profile: str, changes: dict[str, int], world: ClusterBefore, check: str, status: str, said: str
) -> None:
    found = [finding for finding in lint(one(profile, **changes), world, ["a"]) if finding.check == check]
    assert [finding.status for finding in found] == [status]
    assert said in found[0].why


def bonded(*states: str) -> NodeHcas:
    """A node whose two HCAs are parts of bond0, the second one with the RDMA device of both, and one HCA beside
    them."""
    parts = (Netdev(f"ens1f{number}", "aa:bb", 9000, state, bond="bond0") for number, state in enumerate(states))
    pci = (PciFunction(f"0000:3c:00.{number}", "15b3", "1021", "0200", "mlx5_core") for number in range(2))
    first, second = (Hca(part.name, None, (part,), function) for part, function in zip(parts, pci))
    carrier = dataclasses.replace(
        second, name="mlx5_bond_0", rdma_device="mlx5_bond_0", ports=(Port(1, link_layer="Ethernet"),)
    )
    other = dataclasses.replace(NIC, pci=PciFunction("0000:4d:00.0", "15b3", "1021", "0200", "mlx5_core"))
    return NodeHcas((first, carrier, other))


def on_bond(profile: str, netdev: str, *states: str, mtu: int = 9000) -> tuple[dict[str, Finding], Finding]:
    """What the linter says by its checks, and what stage discover says of the NICs."""
    intent = intent_of(made(profile, mtu=mtu, select={"hcas_per_node": 1, "netdev": [netdev]}))
    found = lint(intent.fabrics[0], Surroundings(hcas={"a": bonded(*states)}), ["a"])
    seen = discover.check(intent, discover.Facts({"a": ObservedHcas(bonded(*states))}))
    return {item.check: item for item in found}, next(item for item in seen if item.check == "discover.hcas")


@pytest.mark.parametrize("states", [("up", "up"), ("down", "up")])
def test_a_bond_is_a_nic_that_is_up_where_one_of_its_parts_is(states: tuple[str, str]) -> None:
    found, seen = on_bond("macvlan", "bond0", *states)
    assert (
        {item.status for item in found.values()} == {"pass"}
        and seen.status == "pass"
        and seen.measured.startswith("1 NIC: mlx5_bond_0")
    )
    assert found["network.lint_select"].measured == "mlx5_bond_0 at 0000:3c:00.1"
    assert {item.status for item in on_bond("macvlan", "ens1", *states)[0].values()} == {
        "fail",
        "pass",
    }, "the NIC beside it has an MTU of 1500 bytes"


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({}, "pass", "ens1f0 up, ens1f1 up"),
        ({"state": "down"}, "unknown", "ens1f1 down"),
        ({"state": None}, "unknown", "ens1f1 state not read"),
        ({"speed_gbps": 10.0}, "warn", "10 Gb/s and 400 Gb/s"),
        ({"mtu": 1500}, "warn", "MTU 1500 and 9000"),
    ],
)
def test_each_part_of_a_bond_is_up_and_like_the_others(changes: dict[str, typing.Any], status: str, said: str) -> None:
    """One part speaks for the bond elsewhere, and TCP has no floor that half of a bond would miss."""
    intent = intent_of(made("macvlan", select={"hcas_per_node": 1, "netdev": ["bond0"]}))
    node = bonded("up", "up")
    fast = [
        dataclasses.replace(hca, netdevs=tuple(dataclasses.replace(item, speed_gbps=400.0) for item in hca.netdevs))
        for hca in node.hcas
    ]
    *_others, (place, last) = [
        (place, hca) for place, hca in enumerate(fast) if any(item.bond == "bond0" for item in hca.netdevs)
    ]
    fast[place] = dataclasses.replace(
        last, netdevs=(*last.netdevs[:-1], dataclasses.replace(last.netdevs[-1], **changes))
    )
    seen = discover.check(intent, discover.Facts({"a": ObservedHcas(dataclasses.replace(node, hcas=tuple(fast)))}))
    (found,) = [item for item in seen if item.check == "discover.port" and item.subject.endswith("bond0")]
    assert (found.status, found.subject) == (status, "a macvlan bond0") and said in found.measured
    assert status == "pass" or "/proc/net/bonding/bond0" in found.remedy


@pytest.mark.parametrize("profile", ["macvlan", "host_device"])
def test_a_node_whose_interface_has_another_mtu_is_unknown_where_the_intent_names_none(profile: str) -> None:
    def look(*mtus: int, **changes: typing.Any) -> list[tuple[str, str, str]]:
        nodes = {
            f"n{number}": ObservedHcas(
                NodeHcas((dataclasses.replace(NIC, netdevs=(dataclasses.replace(NIC.netdevs[0], mtu=mtu),)),))
            )
            for number, mtu in enumerate(mtus)
        }
        seen = discover.check(intent_of(made(profile, **changes)), discover.Facts(nodes))
        return [(item.subject, item.status, item.measured) for item in seen if item.subject.endswith(" MTU")]

    name = profile.replace("_", "-")
    assert look(9000, 9000) == []
    assert look(9000, 1500, 9000) == [(f"n1 {name} MTU", "unknown", "MTU 1500")]
    assert look(1500, 9000) == [(f"n0 {name} MTU", "unknown", "MTU 1500")]
    if profile == "macvlan":
        assert look(9000, 1500, mtu=1500) == [], "the attachment sets it"


@pytest.mark.parametrize(
    ("profile", "wrong"),
    [
        # both interfaces go into pods
        ("host_device", "MTU 1500 and 9000"),
        # pods share the first one, and the second one belongs to others
        ("macvlan", ""),
        ("ipoib", ""),
    ],
)
def test_each_interface_of_a_node_has_an_mtu_of_its_own(profile: str, wrong: str) -> None:
    infiniband = profile == "ipoib"

    def nic(number: int, mtu: int) -> Hca:
        pci = dataclasses.replace(NIC.pci or PciFunction("", "", "", ""), address=f"0000:3{number}:00.0")
        port = Port(1, "ACTIVE", "LinkUp", "InfiniBand" if infiniband else "Ethernet", 400.0, 4, "NDR", 7, 1)
        netdev = Netdev(f"ens{number}", "aa:bb", mtu, "up")
        return dataclasses.replace(
            NIC, name=f"mlx5_{number}", rdma_device=f"mlx5_{number}", netdevs=(netdev,), pci=pci, ports=(port,)
        )

    def look(*nodes: tuple[int, ...]) -> list[tuple[str, str, str, str]]:
        several = profile == "host_device"
        names = ["ens1", "ens2"] if several else ["ens1"]
        select: dict[str, typing.Any] = {"hcas_per_node": len(names), "netdev": names}
        select.update({"subnet_manager": "any"} if infiniband else {})
        intent = intent_of(made(profile, select=select))
        observed = {
            f"n{place}": ObservedHcas(NodeHcas(tuple(nic(number, mtu) for number, mtu in enumerate(mtus, 1))))
            for place, mtus in enumerate(nodes)
        }
        seen = discover.check(intent, discover.Facts(observed))
        return [
            (item.subject[:2], item.status, item.measured, item.expected)
            for item in seen
            if item.subject.endswith(" MTU")
        ]

    assert look((9000, 9000), (9000, 9000)) == look((9000, 1500), (9000, 1500)) == look((9000,), (9000, 9000)) == []
    second = look((9000, 9000), (9000, 1500), (9000, 9000))
    assert second == ([("n1", "unknown", wrong, "MTU 9000, as on most nodes")] if wrong else [])
    first = look((9000, 9000), (1500, 9000), (9000, 9000))
    assert [item[:2] for item in first] == [("n1", "unknown")]
    # of two nodes, that with the larger MTUs is the usual one
    assert [item[:2] for item in look((1500, 9000), (9000, 9000))] == [("n0", "unknown")]


def test_a_bond_takes_no_more_than_its_parts_and_is_down_with_the_last_of_them() -> None:
    found, _seen = on_bond("macvlan", "bond0", "down", "down", mtu=9500)
    assert found["network.lint_link"].subject == "macvlan a bond0" and found["network.lint_link"].status == "warn"
    found, _seen = on_bond("macvlan", "bond0", "up", "up", mtu=9500)
    assert (
        found["network.lint_link"].status == "fail"
        and "must be [0, master MTU(9000)]" in found["network.lint_link"].why
    )


@pytest.mark.parametrize("profile", ["macvlan", "rdma_shared"])
@pytest.mark.parametrize("part", ["ens1f0", "ens1f1"])
def test_a_part_of_a_bond_is_no_nic_for_pods_that_share_it(profile: str, part: str) -> None:
    found, seen = on_bond(profile, part, "up", "up")
    for item in (found["network.lint_select"], seen):
        assert (
            item.status == "fail"
            and item.why.startswith(f"{part} is part of the bond bond0")
            and "to the bond: bond0. Then run stage" in item.remedy
        )


def test_the_plugin_that_shares_devices_finds_no_bond() -> None:
    found, seen = on_bond("rdma_shared", "bond0", "up", "up")
    assert seen.status == "pass" and (found["network.lint_rdma"].status, found["network.lint_rdma"].measured) == (
        "fail",
        "bond0 is a bond",
    )
    assert (
        "the device plugin offers no resource" in found["network.lint_rdma"].why
        and "sriov_ethernet" in found["network.lint_rdma"].remedy
    )


def test_virtual_functions_of_a_part_of_a_bond_are_its_own() -> None:
    intent = intent_of(made("sriov_ethernet", select={"hcas_per_node": 1, "netdev": ["ens1f1"]}))
    seen = discover.check(intent, discover.Facts({"a": ObservedHcas(bonded("up", "up"))}))
    assert [(item.status, item.measured[:6]) for item in seen if item.check == "discover.hcas"] == [("pass", "1 NIC:")]


def test_a_policy_that_is_ours_or_has_other_parts_is_joined() -> None:
    for policy in (
        NicPolicy("nic-cluster-policy", "ready", True, {"rdmaSharedDevicePlugin": "{}"}),
        NicPolicy("nic-cluster-policy", "ready", False, {"sriovDevicePlugin": "{}"}),
    ):
        found = lint(one("rdma_shared"), around(nic_policies=(policy,)), ["a"])
        assert ("network.lint_operator", "pass") in judged(found)


def test_both_kinds_of_fabrics_are_linted_together() -> None:
    intent = intent_of(made("macvlan"), made("sriov_ethernet"))
    found = lint_all(intent.fabrics, [], around(), ["a"])
    assert found["sriov-ethernet"] == () and found["macvlan"]


# The wait

OBJECTS = ("NicClusterPolicy nic-cluster-policy", "MacvlanNetwork net")
POOL = "IPPool.nv-ipam.nvidia.com nvidia-network-operator/pool"
PREDICATES = ("objects", "attachment", "pool", "resource", "ready")
TARGET = Target(
    "roce", (), "rdma/shared", "training/net", ("a",), 1, PREDICATES, OBJECTS, {"master": "ens1"}, POOL, 63, True
)
REPORTS = {
    "NicClusterPolicy": {"nic-cluster-policy": Reported("NicClusterPolicy", "nic-cluster-policy", "ready")},
    "MacvlanNetwork": {"net": Reported("MacvlanNetwork", "net", "ready")},
    "IPPool.nv-ipam.nvidia.com": {"nvidia-network-operator/pool": Reported("IPPool", "pool", nodes=("a",))},
}
READY = ClusterState(
    {"a": ClusterNode("a", {NIC_LABEL: "true"}, ready=True, allocatable={"rdma/shared": 63})},
    attachments={"training/net": Attachment("net", {"type": "macvlan", "master": "ens1"})},
    reports=REPORTS,
)


def reports(kind: str, **changes: typing.Any) -> ClusterState:
    (name, seen), *_rest = REPORTS[kind].items()
    return dataclasses.replace(
        READY, reports={**REPORTS, kind: {name: dataclasses.replace(seen, **changes)} if changes else {}}
    )


def attached(*seen: Attachment) -> ClusterState:
    return dataclasses.replace(READY, attachments=dict.fromkeys(["training/net"], seen[0]) if seen else {})


def test_all_that_is_there_is_ready() -> None:
    (found,) = judge((TARGET,), READY)
    assert (found.node.phase, found.node.allocatable) == ("ready", 63)
    assert "MacvlanNetwork net" in found.node.detail


@pytest.mark.parametrize(
    ("world", "said", "suspect"),
    [
        (reports("NicClusterPolicy"), "NicClusterPolicy nic-cluster-policy does not exist", "not_reported"),
        (reports("NicClusterPolicy", state=""), "has not reported the state of NicClusterPolicy", "not_reported"),
        (
            reports("NicClusterPolicy", state="notReady", parts=("state-OFED notReady",)),
            "not ready: state-OFED notReady",
            "part",
        ),
        (
            dataclasses.replace(
                reports("NicClusterPolicy", state="notReady"),
                nodes={"a": ClusterNode("a", {NIC_LABEL: "false"}, ready=True)},
            ),
            f"the node has no label {NIC_LABEL}=true",
            "no_nic_label",
        ),
        (
            dataclasses.replace(
                reports("NicClusterPolicy", state="notReady"),
                parts={"a": (("ds-1", PodState("waiting", "x: no such image", "image")),)},
            ),
            "pod ds-1 of the operator on the node: x: no such image",
            "part_image",
        ),
        (
            dataclasses.replace(
                reports("NicClusterPolicy", state="notReady"),
                parts={"a": (("ds-1", PodState("waiting", "being created")),)},
            ),
            "pod ds-1 of the operator on the node: being created",
            "part",
        ),
        (
            dataclasses.replace(
                reports("NicClusterPolicy", state="notReady"), parts={"a": (("ds-1", PodState("ready", "Ready")),)}
            ),
            "is not ready: no reason reported",
            "part",
        ),
        (reports("MacvlanNetwork", state="notReady"), "MacvlanNetwork net is not ready: no reason reported", ""),
        (
            reports("NicClusterPolicy", state="ignore", reason="unsupported instance name"),
            "ignores NicClusterPolicy nic-cluster-policy: unsupported",
            "state_error",
        ),
        (
            reports("MacvlanNetwork", state="error", reason="namespace not found"),
            "in state error: namespace not found",
            "state_error",
        ),
        (reports("MacvlanNetwork", state="error"), "no reason reported", "state_error"),
        (
            dataclasses.replace(READY, blind={"MacvlanNetwork": "HTTP 403"}),
            "MacvlanNetwork could not be read: HTTP 403",
            "unread",
        ),
        (attached(), "NetworkAttachmentDefinition training/net does not exist", "no_attachment"),
        (attached(Attachment("net", fault="spec.config is no JSON")), "multus cannot read", "bad_attachment"),
        (attached(Attachment("net", {"master": "ens2"})), "master is 'ens2' instead of 'ens1'", "bad_attachment"),
        (
            reports("IPPool.nv-ipam.nvidia.com"),
            "IPPool.nv-ipam.nvidia.com nvidia-network-operator/pool does not exist",
            "no_share",
        ),
        (
            reports("IPPool.nv-ipam.nvidia.com", nodes=("b",)),
            "no share for the node; nodes with a share: b",
            "no_share",
        ),
        (
            dataclasses.replace(READY, blind={"IPPool.nv-ipam.nvidia.com": "HTTP 403"}),
            "IPPool.nv-ipam.nvidia.com could not be read",
            "unread",
        ),
        (
            dataclasses.replace(READY, nodes={"a": ClusterNode("a", ready=True)}),
            "the node offers no rdma/shared",
            "not_shared",
        ),
        *(
            (
                dataclasses.replace(
                    READY, nodes={"a": ClusterNode("a", ready=True, allocatable={"rdma/shared": number})}
                ),
                f"the node offers {number} rdma/shared instead of 63",
                "other_share",
            )
            for number in (1, 64)
        ),
        (
            dataclasses.replace(
                READY, nodes={"a": ClusterNode("a", allocatable={"rdma/shared": 63}, not_ready="no report")}
            ),
            "NotReady: no report",
            "node_lost",
        ),
        (dataclasses.replace(READY, unread={"Node": "HTTP 500"}), "Node not read yet", ""),
    ],
)
def test_what_is_missing_is_named(world: ClusterState, said: str, suspect: str) -> None:
    (found,) = judge((TARGET,), world)
    assert (found.node.phase, found.suspect) == ("waiting", suspect)
    assert said in found.node.detail
    assert not suspect or suspect in GRACE


def test_what_an_operator_waits_for_may_be_a_node_of_somebody_else() -> None:
    waits = reports("NicClusterPolicy", state="notReady", parts=("state-OFED notReady",))
    for theirs, said in (
        (ClusterNode("b"), "and these nodes outside this run are NotReady: b"),
        (ClusterNode("b", ready=True), "state-OFED notReady"),
    ):
        (found,) = judge((TARGET,), dataclasses.replace(waits, nodes={**READY.nodes, "b": theirs}))
        assert found.node.detail.endswith(said)


def test_a_node_that_the_cluster_does_not_know_fails_at_once() -> None:
    (found,) = judge((TARGET,), dataclasses.replace(READY, nodes={}))
    assert found.node.phase == "failed"


def test_an_error_that_stays_is_the_end_with_its_cause() -> None:
    world, patience = reports("MacvlanNetwork", state="error", reason="namespace not found"), SuspectTimer()
    assert [node.phase for node in patience.apply(judge((TARGET,), world), 0.0)] == ["waiting"]
    (node,) = patience.apply(judge((TARGET,), world), GRACE["state_error"][0])
    assert node.phase == "failed" and "namespace not found" in node.detail and node.remedy


# Stage network


APPLIED = (AppliedObject("NetworkAttachmentDefinition", "macvlan", "training", "macvlan", "created"),)


def synced(world: ClusterState = READY, **changes: typing.Any) -> SyncFacts:
    target = dataclasses.replace(TARGET, fabric="macvlan", objects=(), pool="", resource="", **changes)
    nodes = tuple(item.node for item in judge((target,), world))
    return SyncFacts(all(node.phase != "waiting" for node in nodes), False, 3.0, nodes)


def ready_of(**facts: typing.Any) -> Finding:
    intent = intent_of(made("macvlan"))
    found = network.check(intent, Facts(("a",), **facts))
    assert "network.policy_accepted" not in {finding.check for finding in found}
    return next(finding for finding in found if finding.check == "network.ready")


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        ({"applied": APPLIED, "sync": synced()}, "pass", ""),
        (
            {"applied": APPLIED, "sync": synced(attached())},
            "fail",
            "NetworkAttachmentDefinition training/net does not exist",
        ),
        ({"applied": APPLIED, "sync": synced(dataclasses.replace(READY, nodes={}))}, "fail", "the cluster has no node"),
        (
            {"applied": APPLIED, "sync": synced(attached()), "check_mode": True},
            "unknown",
            "This run applied no objects",
        ),
        ({"applied": APPLIED}, "unknown", "ended before it waited"),
        ({"applied": (dataclasses.replace(APPLIED[0], action="refused"),)}, "unknown", "was refused"),
        (
            {"applied": (dataclasses.replace(APPLIED[0], action="refused"),), "sync": synced()},
            "fail",
            "are from an earlier run",
        ),
        ({"unmade": {"macvlan": "addresses are in use"}}, "unknown", "addresses are in use"),
        (
            {"lint": LintFacts(held={"macvlan": "1 finding"})},
            "unknown",
            "The fabric has findings network.lint_*",
        ),
    ],
)
def test_whether_pods_can_be_attached(facts: dict[str, typing.Any], status: str, said: str) -> None:
    finding = ready_of(**facts)
    assert finding.status == status
    assert said in finding.why


def test_a_node_offers_as_many_pieces_as_the_intent_asks_for() -> None:
    """A device plugin that runs with an earlier configuration offers some, and each test pod needs one alone."""

    def look(profile: str, offered: typing.Optional[int], **changes: typing.Any) -> Finding:
        fabric = made(profile, resource_name="shared", **changes)
        applied = (AppliedObject("MacvlanNetwork", fabric["name"], "training", fabric["name"], "created"),)
        sync = SyncFacts(True, False, 3.0, (SyncNode(fabric["name"], "a", "ready", "", allocatable=offered),))
        found = network.check(intent_of(fabric), Facts(("a",), applied=applied, sync=sync))
        return next(item for item in found if item.check == "network.ready")

    four = {"select": {"hcas_per_node": 4, "vendor": "15b3"}}
    assert look("rdma_shared", 63).status == "pass" and look("rdma_shared", 8, pods_per_node=8).status == "pass"
    assert look("host_device", 4, **four).status == "pass" and look("host_device", 5, **four).status == "pass"
    for offered in (1, 64):
        finding = look("rdma_shared", offered)
        assert (finding.status, finding.measured) == ("fail", f"{offered} shared allocatable")
        assert finding.expected == "63 shared allocatable" and "delete pod" in finding.remedy
    assert look("rdma_shared", None).status == "unknown"
    assert look("host_device", 3, **four).status == "fail"


def test_whole_interfaces_may_be_more_than_the_pods_need() -> None:
    target = dataclasses.replace(TARGET, offers=4, exact=False)
    assert [item.node.phase for item in judge((target,), READY)] == ["ready"]


# What several fabrics take from each other


@pytest.mark.parametrize(
    ("fabrics", "cluster", "check", "places"),
    [
        (
            (made("sriov_ethernet"), made("host_device")),
            None,
            "claims",
            ("rdma_fabrics[0].select", "rdma_fabrics[1].select"),
        ),
        ((made("macvlan"), made("host_device")), None, "claims", ("rdma_fabrics[0].select", "rdma_fabrics[1].select")),
        (
            (made("rdma_shared"), made("rdma_shared", name="b", resource_name="b")),
            None,
            "claims",
            ("rdma_fabrics[0].select", "rdma_fabrics[1].select"),
        ),
        (
            (
                made("macvlan", pods_per_node=1, network={"name": "m", "namespace": "t", "mode": "passthru"}),
                made("sriov_ethernet"),
            ),
            None,
            "claims",
            ("rdma_fabrics[0].select", "rdma_fabrics[1].select"),
        ),
        ((made("macvlan"), made("macvlan")), None, "unique_names", ("rdma_fabrics[0]", "rdma_fabrics[1]")),
        (
            (
                made("rdma_shared"),
                made("sriov_ethernet", network={"name": "s", "namespace": "t", "meta_plugins": [{"type": "rdma"}]}),
            ),
            None,
            "rdma_mode",
            ("rdma_fabrics[0].profile", "rdma_fabrics[1].network.meta_plugins"),
        ),
        (
            (made("rdma_shared"),),
            {"node_pool": {"max_unavailable": 1, "rdma_mode": "exclusive"}},
            "rdma_mode",
            ("rdma_fabrics[0].profile", "rdma_cluster.node_pool.rdma_mode"),
        ),
    ],
)
def test_a_conflict_names_both_places(
    fabrics: tuple[dict[str, typing.Any], ...],
    cluster: typing.Optional[dict[str, typing.Any]],
    check: str,
    places: tuple[str, str],
) -> None:
    found = [
        finding
        for finding in conflicts.check(intent_of(*fabrics, cluster=cluster))
        if finding.check == f"validate.{check}" and finding.status == "fail"
    ]
    assert found
    text = " ".join(f"{finding.subject} {finding.measured} {finding.expected}" for finding in found)
    assert all(place in text for place in places)


@pytest.mark.parametrize(
    "fabrics",
    [
        (made("macvlan"), made("sriov_ethernet")),
        (made("macvlan"), made("rdma_shared")),
        (made("rdma_shared"), made("sriov_ethernet")),
        (made("host_device"), made("macvlan", select={"hcas_per_node": 1, "netdev": ["ens2"]})),
        (made("host_device"), {"name": "pods", "profile": "pod_network", "network": {"namespace": "training"}}),
        # a software device of the plugin needs no mode
        (
            made("rdma_shared"),
            made(
                "sriov_ethernet",
                rdma=False,
                network={"name": "s", "namespace": "t", "meta_plugins": [{"type": "rdma"}]},
            ),
        ),
    ],
)
def test_fabrics_that_can_live_beside_each_other(fabrics: tuple[dict[str, typing.Any], ...]) -> None:
    assert {finding.status for finding in conflicts.check(intent_of(*fabrics))} == {"pass"}


# The other stages


def test_stages_say_what_they_do_not_cover() -> None:
    pods = {"name": "pods", "profile": "pod_network", "network": {"namespace": "training"}}
    intent = intent_of(made("macvlan"), pods)
    nodes = {"a": ObservedHcas(NodeHcas((NIC,)))}
    found = [
        *(finding for finding in discover.check(intent, discover.Facts(nodes)) if finding.check != "discover.clock"),
        *fabric.check(intent, fabric.Facts(nodes)),
        *virtual_functions.check(intent, virtual_functions.Facts(nodes)),
        *(finding for finding in platform.check(intent, platform.Facts(nodes)) if finding.check == "platform.scope"),
    ]
    assert {finding.status for finding in found} <= {"pass", "warn"}
    said = {(finding.check, finding.subject): finding.measured for finding in found}
    assert "creates no VFs" in said["virtual_functions.members", "macvlan"]
    assert "creates no VFs" in said["platform.scope", "pods"]
    assert "the fabric has no HCAs of its own" in said["fabric.membership", "pods"]
    assert said["fabric.hcas", "a macvlan"] == "1 HCA: mlx5_0"


def test_without_virtual_functions_nobody_misses_the_sriov_operator() -> None:
    intent = intent_of(made("rdma_shared"))
    seen = OperatorFacts(("network-attachment-definitions.k8s.cni.cncf.io",), (), (), (ClusterNode("a", ready=True),))
    found = {
        finding.subject: finding
        for finding in operators.check(intent, operators.Facts(("a",), seen))
        if finding.check != "operators.rights"
    }
    assert "SR-IOV network operator" not in found
    assert found["a"].status == "pass"
    missing = found["macvlannetworks.mellanox.com"]
    assert (missing.status, missing.remedy) == (
        "fail",
        "Run kubectl get crd macvlannetworks.mellanox.com -o yaml. If it exists, correct the cause in its"
        " conditions. If"
        " it does not exist: install NVIDIA's network operator as the finding operators.needed describes. Then run"
        " stage"
        " operators again.",
    )


def test_a_network_without_rdma_is_measured_by_tcp_and_only_far_below_its_best_is_too_low() -> None:
    intent = intent_of(made("macvlan", ipam={"type": "whereabouts", "range": "10.0.0.0/24"}))
    pods = tuple(
        RdmaPod("macvlan", name, f"pod-{name}", "training", interface="net1", address=address)
        for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    )

    def judge(intent: Intent, low: float) -> tuple[Finding, ...]:
        pairs = (
            PairResult("macvlan", *ends, average_gbps=speed, transport="TCP", streams=4)
            for ends, speed in ((("a", "b"), 9.0), (("b", "a"), low))
        )
        return bandwidth.check(intent, facts.Facts(("a", "b"), BandwidthFacts(pods, tuple(pairs))))

    found = judge(intent, 5.5)
    assert {(finding.check, finding.status) for finding in found} == {
        *((f"bandwidth.{name}", "pass") for name in ("pod", "measured", "fleet", "suspect", "cleanup")),
        # no node was asked for its HCAs; no floor of TCP comes from them
        ("bandwidth.link", "warn"),
    }
    said = {finding.subject: finding.measured for finding in found if finding.check != "bandwidth.fleet"}
    assert said["macvlan a"] == "net1 10.0.0.1, no RDMA device: TCP is measured"
    assert said["macvlan b -> a"] == "5.50 Gb/s average, TCP, 4 parallel streams"
    assert ("bandwidth.fleet", "fail") in judged(judge(intent, 0.5))
    floored = intent_of(made("macvlan", line_rate={"floor_gbps": 6.0, "reason": "a 10 Gb/s link"}))
    assert ("bandwidth.floor", "fail") in judged(judge(floored, 5.5))


def test_a_network_that_promises_rdma_and_has_none_fails() -> None:
    pods = tuple(
        RdmaPod("macvlan", name, "pod", "training", error="no RDMA device on net1", cause="no_device")
        for name in ("a", "b")
    )
    shared = intent_of(made("rdma_shared", name="macvlan"))
    assert ("bandwidth.pod", "fail") in judged(
        bandwidth.check(shared, facts.Facts(("a", "b"), BandwidthFacts(pods, ())))
    )


# Whom a finding accuses


def told(
    fabric: Fabric, world: ClusterBefore, *checks: str, nodes: tuple[str, ...] = ("a", "b")
) -> list[tuple[str, ...]]:
    """Check, subject and status of each finding of the linter."""
    return [
        (item.check, item.subject, item.status)
        for item in lint(fabric, world, nodes)
        if not checks or item.check in checks
    ]


BOTH = Surroundings(hcas={"a": NodeHcas((NIC,)), "b": NodeHcas((NIC,))})


def with_a(*hcas: Hca, **changes: typing.Any) -> ClusterBefore:
    """Both nodes, with these HCAs on the first."""
    return dataclasses.replace(BOTH, hcas={**BOTH.hcas, "a": NodeHcas(hcas)}, **changes)


def interface(**changes: typing.Any) -> Hca:
    return dataclasses.replace(NIC, netdevs=(dataclasses.replace(NIC.netdevs[0], **changes),))


def test_a_good_network_is_told_of_node_by_node() -> None:
    assert told(one("rdma_shared"), BOTH) == [
        ("network.lint_select", "rdma-shared a", "pass"),
        ("network.lint_select", "rdma-shared b", "pass"),
        ("network.lint_link", "rdma-shared", "pass"),
        ("network.lint_rdma", "rdma-shared a", "pass"),
        ("network.lint_rdma", "rdma-shared b", "pass"),
        ("network.lint_operator", "rdma-shared", "pass"),
    ]


@pytest.mark.parametrize(
    ("world", "status"),
    [
        (Surroundings(hcas={"b": NodeHcas((NIC,))}), "unknown"),
        (with_a(), "fail"),
        (with_a(interface(name="ens2")), "fail"),
        (BOTH, "pass"),
    ],
)
def test_what_one_node_lacks_is_told_of_it_and_the_next_is_judged(world: ClusterBefore, status: str) -> None:
    assert told(one("macvlan"), world, "network.lint_select") == [
        ("network.lint_select", "macvlan a", status),
        ("network.lint_select", "macvlan b", "pass"),
    ]


@pytest.mark.parametrize(
    ("changes", "world", "expected"),
    [
        ({}, with_a(), [("macvlan", "pass")]),
        ({}, with_a(interface(state="down")), [("macvlan a ens1", "warn")]),
        ({}, with_a(interface(state=None)), [("macvlan a ens1", "warn")]),
        ({"mtu": 1500}, BOTH, [("macvlan", "pass")]),
        ({"mtu": 1501}, BOTH, [("macvlan a ens1", "fail"), ("macvlan b ens1", "fail")]),
        ({"mtu": 1501}, with_a(interface(mtu=1501)), [("macvlan b ens1", "fail")]),
        (
            {"mtu": 1501},
            with_a(interface(mtu=1501, state="down")),
            [("macvlan a ens1", "warn"), ("macvlan b ens1", "fail")],
        ),
        # a node without the interface does not hide the next
        ({"mtu": 1501}, with_a(), [("macvlan b ens1", "fail")]),
        ({}, Surroundings(), [("macvlan", "unknown")]),
    ],
)
def test_the_link_of_an_interface_is_told_of_by_its_name(
    changes: dict[str, int], world: ClusterBefore, expected: list[tuple[str, str]]
) -> None:
    assert told(one("macvlan", **changes), world, "network.lint_link") == [
        ("network.lint_link", subject, status) for subject, status in expected
    ]


def test_the_interface_that_is_named_counts_and_not_its_neighbour() -> None:
    """Two interfaces of one HCA: pods are put on the second."""
    two = dataclasses.replace(NIC, netdevs=(Netdev("ens1np1", "aa:bc", 1500, "down"), NIC.netdevs[0]))
    assert told(one("macvlan"), with_a(two), "network.lint_link", nodes=("a",)) == [
        ("network.lint_link", "macvlan", "pass")
    ]


@pytest.mark.parametrize(
    ("world", "status"),
    [
        (with_a(dataclasses.replace(NIC, rdma_device=None)), "fail"),
        (with_a(), "unknown"),
        (dataclasses.replace(BOTH, states={"a": NodeState("a", rdma_mode="exclusive")}), "fail"),
        (dataclasses.replace(BOTH, states={"a": NodeState("a", rdma_mode="shared")}), "pass"),
    ],
)
def test_the_rdma_device_is_told_of_its_node(world: ClusterBefore, status: str) -> None:
    assert told(one("rdma_shared"), world, "network.lint_rdma") == [
        ("network.lint_rdma", "rdma-shared a", status),
        ("network.lint_rdma", "rdma-shared b", "pass"),
    ]


PART = {"rdmaSharedDevicePlugin": "{}"}


@pytest.mark.parametrize(
    ("policies", "statuses"),
    [
        ((), ["pass"]),
        ((NicPolicy("nic-cluster-policy", "ready", False, PART),), ["fail"]),
        ((NicPolicy("nic-cluster-policy", "ready", True, PART),), ["pass"]),
        # one of another name is ignored by the operator, so that it takes nothing
        ((NicPolicy("other", "ignore", False, PART),), ["warn"]),
        ((NicPolicy("other", "ignore", False, PART), NicPolicy("nic-cluster-policy", "ready", True, PART)), ["warn"]),
        (
            (NicPolicy("other", "ignore", False), NicPolicy("nic-cluster-policy", "ready", False, PART)),
            ["fail", "warn"],
        ),
    ],
)
def test_the_policy_of_the_operator_is_told_of_the_fabric(policies: tuple[NicPolicy, ...], statuses: list[str]) -> None:
    world = dataclasses.replace(BOTH, nic_policies=policies)
    assert told(one("rdma_shared"), world, "network.lint_operator") == [
        ("network.lint_operator", "rdma-shared", status) for status in statuses
    ]


def test_an_interface_without_a_pool_needs_no_policy_of_the_operator() -> None:
    assert (
        told(one("host_device"), dataclasses.replace(BOTH, nic_policies=(NicPolicy("other"),)), "network.lint_operator")
        == []
    )
    assert told(one("host_device", resource_name="nic"), BOTH, "network.lint_operator") == [
        ("network.lint_operator", "host-device", "pass")
    ]


def test_where_each_node_stands_is_told_of_it() -> None:
    target = dataclasses.replace(TARGET, nodes=("a", "b"))
    world = dataclasses.replace(
        READY, nodes={**READY.nodes, "b": ClusterNode("b", ready=True, allocatable={"rdma/shared": 7})}
    )
    found = [item.node for item in judge((target,), world)]
    assert [(item.fabric, item.node, item.phase, item.allocatable) for item in found] == [
        ("roce", "a", "ready", 63),
        ("roce", "b", "waiting", 7),
    ]
    assert "has no share for the node" in found[1].detail


def test_kinds_of_which_nothing_was_reported_are_missing() -> None:
    for kind, suspect in (("NicClusterPolicy", "not_reported"), ("IPPool.nv-ipam.nvidia.com", "no_share")):
        (found,) = judge(
            (TARGET,),
            dataclasses.replace(READY, reports={name: seen for name, seen in REPORTS.items() if name != kind}),
        )
        assert (found.node.phase, found.suspect) == ("waiting", suspect)


def test_a_network_that_needs_neither_pool_nor_object_is_ready() -> None:
    bare = dataclasses.replace(TARGET, objects=(), pool="", resource="")
    (found,) = judge((bare,), dataclasses.replace(READY, reports={}))
    assert (found.node.fabric, found.node.node, found.node.phase) == ("roce", "a", "ready")
