# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses against what the cluster uses: each status, and what stops a fabric from being made."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses.in_use import (
    check,
    list_refused_fabrics,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import (
    LEASES,
    AddressFacts,
    AddressLease,
    SharedPool,
    UnreadNode,
    UnreadPool,
    UsedNetwork,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.ipam import parse_leases
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError

NODES = ("worker-1", "worker-2")
FREE = AddressFacts(
    taken=(
        UsedNetwork("node", "10.78.0.11/32", "node worker-1"),
        UsedNetwork("services", "10.96.0.0/16", "ServiceCIDR kubernetes"),
        UsedNetwork("pods", "10.244.0.0/24", "pods of node worker-1"),
        UsedNetwork("attachment", "10.81.0.0/24", "other/net", "whereabouts"),
        # the fabric's own, of an earlier run
        UsedNetwork("attachment", "10.0.0.0/24", "test/net", "whereabouts"),
    ),
    pods=3,
)
POOL: dict[str, typing.Any] = {"type": "nv-ipam", "range": "10.0.0.0/24", "pool": {"name": "storage"}}
SHARED = SharedPool("IPPool", "nvidia-network-operator", "storage", "10.0.0.0/24", 100, NODES)


def intent(waivers: typing.Optional[list[dict[str, str]]] = None, **changes: dict[str, typing.Any]) -> Intent:
    fabric = {
        "name": "storage",
        "profile": "sriov_ethernet",
        "select": {"hcas_per_node": 2},
        "virtual_functions": 8,
        "resource_name": "igb",
        "network": {"name": "net", "namespace": "test"},
        "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        **changes,
    }
    return parse_intent([fabric], waivers)


def found(seen: AddressFacts, name: str, subject: str = "storage", **changes: typing.Any) -> Finding:
    (finding,) = [
        finding
        for finding in check(intent(**changes), NODES, seen)
        if (finding.check, finding.subject) == (name, subject)
    ]
    return finding


def test_addresses_that_nobody_uses() -> None:
    assert [(finding.check, finding.status) for finding in check(intent(), NODES, FREE)] == [
        ("network.addresses", "pass"),
        ("network.address_overlap", "pass"),
    ]


def test_facts_survive_the_way_through_ansible() -> None:
    facts = dataclasses.replace(FREE, leaks=(AddressLease("10.0.0.1", "a/b"),), pools=(SHARED,))
    assert load(AddressFacts, to_data(facts), "facts") == facts


def test_a_cluster_that_was_not_asked_is_unknown() -> None:
    (finding,) = check(intent(), NODES, None)
    assert (finding.check, finding.status) == ("network.addresses", "unknown")


@pytest.mark.parametrize(
    ("taken", "status", "said"),
    [
        (
            UsedNetwork("services", "10.0.0.0/8", "ServiceCIDR kubernetes"),
            "fail",
            "ipam range 10.0.0.0/24 overlaps with 10.0.0.0/8 (ServiceCIDR kubernetes",
        ),
        (UsedNetwork("pods", "10.0.0.128/25", "pods of node worker-2"), "fail", "the pod network"),
        (UsedNetwork("pods", "10.0.0.9/32", "pod a/b"), "fail", "pod a/b"),
        (UsedNetwork("node", "10.0.0.7/32", "node worker-1"), "fail", "node worker-1"),
        (UsedNetwork("attachment", "10.0.0.0/24", "other/net", "host-local"), "warn", "other/net"),
        (UsedNetwork("attachment", "10.0.0.0/24", "other/net", "whereabouts"), "warn", "other/net"),
        (UsedNetwork("node", "fd00::1/128", "node worker-1"), "pass", "overlaps with none"),
    ],
)
def test_overlaps(taken: UsedNetwork, status: str, said: str) -> None:
    finding = found(dataclasses.replace(FREE, taken=(taken,)), "network.address_overlap")
    assert finding.status == status
    assert said in finding.measured


@pytest.mark.parametrize(
    ("target", "status"),
    [("10.96.0.0/12", "fail"), ("10.1.0.0/16", "pass"), ("0.0.0.0/0", "pass"), ("10.81.0.0/16", "pass")],
)
def test_a_route_must_not_lead_the_cluster_s_own_traffic_away(target: str, status: str) -> None:
    """A default route has its warning from stage validate; a route to another attachment's network may be meant."""
    ipam = {"type": "whereabouts", "range": "10.0.0.0/24", "gateway": "10.0.0.1", "routes": [{"dst": target}]}
    assert found(FREE, "network.address_overlap", ipam=ipam).status == status


def leaked(number: int) -> AddressFacts:
    return dataclasses.replace(
        FREE, leaks=tuple(AddressLease(f"10.0.0.{index}", f"old/pod-{index}") for index in range(1, number + 1))
    )


@pytest.mark.parametrize(("number", "status"), [(0, "pass"), (1, "warn"), (222, "warn"), (223, "fail")])
def test_leaked_addresses_are_taken_off(number: int, status: str) -> None:
    # 254 addresses, 2 nodes x 2 HCAs x 8 VFs = 32 are needed
    finding = found(leaked(number), "network.addresses")
    assert finding.status == status
    assert finding.measured.startswith(f"{254 - number} addresses")
    assert ("old/pod-1" in finding.measured) == (number > 0)
    assert (
        finding.expected.startswith("free: at least ") and "no address allocated to a pod that no" in finding.expected
    )
    assert ("--from=cronjob/ip-reconciler" in finding.remedy) == (number > 0)


def test_leaks_that_could_not_be_read_are_not_called_none() -> None:
    unread = dataclasses.replace(FREE, errors=("GET /api/v1/pods: pods is forbidden",))
    assert "none leaked" not in found(unread, "network.addresses").measured


def test_an_invalid_pool_is_named_with_the_field_that_is_wrong() -> None:
    with pytest.raises(ResourceError) as caught:
        parse_leases({"metadata": {"name": "bad", "namespace": "team-x"}, "spec": {"range": "abc"}})
    unread = UnreadPool(LEASES, "team-x", "bad", caught.value.seen)
    finding = found(dataclasses.replace(FREE, unread_pools=(unread,)), "network.addresses", "leases")
    assert finding.why.startswith("spec.range of IPPool bad of whereabouts 'abc' is rejected: it is not an IP address")
    assert "(team-x/bad). Without these pools, it is unknown which addresses whereabouts still holds" in finding.why


def test_leaks_of_other_ranges_are_not_ours() -> None:
    assert (
        found(dataclasses.replace(FREE, leaks=(AddressLease("10.0.1.1", "old/pod"),)), "network.addresses").status
        == "pass"
    )


@pytest.mark.parametrize(
    ("pool", "create", "status", "said"),
    [
        (None, True, "pass", "does not exist yet"),
        (None, False, "fail", "absent"),
        (SHARED, True, "pass", "address blocks for 2 nodes"),
        (SHARED, False, "pass", "address blocks for 2 nodes"),
        (dataclasses.replace(SHARED, namespace="kube-system"), False, "fail", "absent"),
        (dataclasses.replace(SHARED, kind="CIDRPool"), False, "fail", "absent"),
        (dataclasses.replace(SHARED, nodes=("worker-1",)), True, "fail", "1 node without an address block"),
        (dataclasses.replace(SHARED, nodes=()), False, "fail", "2 nodes without an address block"),
        (dataclasses.replace(SHARED, share=50), False, "fail", "50 addresses per node"),
        (dataclasses.replace(SHARED, share=50), True, "warn", "50 addresses per node"),
        (dataclasses.replace(SHARED, share=50, nodes=()), True, "pass", "will be changed"),
        (dataclasses.replace(SHARED, network="10.0.0.0/25"), False, "fail", "10.0.0.0/25"),
    ],
)
def test_pools_of_nv_ipam(pool: typing.Optional[SharedPool], create: bool, status: str, said: str) -> None:
    seen = dataclasses.replace(FREE, pools=(pool,) if pool else ())
    finding = found(seen, "network.address_pool", ipam={**POOL, "pool": {**POOL["pool"], "create": create}})
    assert finding.status == status
    assert said in finding.measured


THEIRS = UsedNetwork("attachment", "10.0.0.0/24", "team-x/net", "nv-ipam")


@pytest.mark.parametrize(
    ("pods", "taken", "status", "said"),
    [
        (("jobs/train",), (), "fail", "used by Pod jobs/train"),
        ((), (THEIRS,), "fail", "used by NetworkAttachmentDefinition team-x/net"),
        # a network of the intent without a running pod, and another pool
        ((), (dataclasses.replace(THEIRS, owner="test/net"),), "warn", "for 2 nodes"),
        ((), (dataclasses.replace(THEIRS, network="10.9.0.0/24"),), "warn", "for 2 nodes"),
    ],
)
def test_a_pool_in_use_is_not_changed_without_a_waiver(
    pods: tuple[str, ...], taken: tuple[UsedNetwork, ...], status: str, said: str
) -> None:
    there = dataclasses.replace(SHARED, share=50, pods=pods)
    seen = dataclasses.replace(FREE, pools=(there,), taken=(*FREE.taken, *taken))
    ipam = {**POOL, "pool": {**POOL["pool"], "create": True}}
    finding = found(seen, "network.address_pool", ipam=ipam)
    assert finding.status == status and said in finding.measured
    refused = list_refused_fabrics(intent(ipam=ipam), [finding])
    assert bool(refused) is (status == "fail")
    waiver = [{"check": "network.address_pool", "subject": "storage", "reason": "no job runs"}]
    assert list_refused_fabrics(intent(waiver, ipam=ipam), [finding]) == {}
    if pods:
        unused = dataclasses.replace(seen, pools=(dataclasses.replace(there, nodes=()),))
        assert found(unused, "network.address_pool", ipam=ipam).status == "pass"


def test_what_could_not_be_compared_is_said() -> None:
    blind = AddressFacts(errors=("GET /api/v1/pods: forbidden",), unclear=("a/b: its configuration is no JSON",))
    found_there = {finding.subject: finding.status for finding in check(intent(), NODES, blind)}
    assert found_there == {"storage": "pass", "cluster": "unknown", "pod network": "warn", "attachments": "warn"}
    (attachments,) = [finding for finding in check(intent(), NODES, blind) if finding.subject == "attachments"]
    assert attachments.expected == "the addresses of all attachments compared with ipam of the fabrics"
    assert "If they overlap, change ipam of the fabric or the addresses of the attachment" in attachments.remedy


def test_only_fabrics_that_are_proven_free_are_made() -> None:
    wishes = intent()
    assert list_refused_fabrics(wishes, check(wishes, NODES, FREE)) == {}
    blind = dataclasses.replace(FREE, errors=("GET /api/v1/pods: forbidden",))
    assert "forbidden" in list_refused_fabrics(wishes, check(wishes, NODES, blind))["storage"]
    waived = intent([{"check": "network.address_overlap", "reason": "looked at by hand"}])
    assert list_refused_fabrics(waived, check(waived, NODES, blind)) == {}


def test_an_attachment_of_a_tenant_refuses_no_fabric() -> None:
    wishes = intent()
    everything = dataclasses.replace(
        FREE, taken=(*FREE.taken, UsedNetwork("attachment", "0.0.0.0/0", "training/x", "host-local"))
    )
    assert list_refused_fabrics(wishes, check(wishes, NODES, everything)) == {}
    assert "training/x" in found(everything, "network.address_overlap").measured
    services = dataclasses.replace(
        everything, taken=(*everything.taken, UsedNetwork("services", "10.0.0.0/8", "ServiceCIDR kubernetes"))
    )
    assert found(services, "network.address_overlap").measured.startswith(
        "ipam range 10.0.0.0/24 overlaps with 10.0.0.0/8"
    )
    assert set(list_refused_fabrics(wishes, check(wishes, NODES, services))) == {"storage"}


def test_a_node_without_a_legible_address_is_named_and_refuses_no_fabric() -> None:
    wishes = intent()
    # nodes may be named as fabrics are
    seen = dataclasses.replace(
        FREE, unread=tuple(UnreadNode(name, "status.addresses: 'x'") for name in ("evil", "cluster", "storage"))
    )
    assert list_refused_fabrics(wishes, check(wishes, NODES, seen)) == {}
    assert [
        found(seen, "network.address_overlap", f"node {name}").status for name in ("evil", "cluster", "storage")
    ] == ["unknown"] * 3


# several fabrics, several networks


def two(first: typing.Optional[dict[str, typing.Any]], second: dict[str, typing.Any]) -> Intent:
    (shown,) = intent().fabrics
    fabrics = [
        {
            "name": name,
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 2},
            "virtual_functions": 8,
            "resource_name": "igb",
            "network": {"name": name, "namespace": shown.network.namespace},
            **({} if ipam is None else {"ipam": ipam}),
        }
        for name, ipam in (("first", first), ("second", second))
    ]
    return parse_intent(fabrics)


GOOD = {"type": "whereabouts", "range": "10.3.0.0/24"}


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        # stage validate refuses it; a stage that is run alone must not make the fabric either
        ({"type": "whereabouts", "range": "10.9.0.1/24"}, {"first": {"network.addresses": "fail"}}),
        (None, {}),
    ],
)
def test_a_fabric_without_legible_addresses_does_not_hide_the_next(
    first: typing.Optional[dict[str, typing.Any]], expected: dict[str, dict[str, str]]
) -> None:
    statuses: dict[str, dict[str, str]] = {}
    wishes = two(first, GOOD)
    findings = check(wishes, NODES, FREE)
    for finding in findings:
        statuses.setdefault(finding.subject, {})[finding.check] = finding.status
    assert statuses == {**expected, "second": {"network.addresses": "pass", "network.address_overlap": "pass"}}
    assert set(list_refused_fabrics(wishes, findings)) == set(expected)


def test_only_fabrics_with_addresses_are_unknown_where_nobody_was_asked() -> None:
    assert [finding.subject for finding in check(two(None, GOOD), NODES, None)] == ["second"]


def test_a_network_that_is_none_counts_as_unread() -> None:
    wrong = dataclasses.replace(FREE, taken=(*FREE.taken, UsedNetwork("pods", "10.0.0.1/33", "pods of node worker-2")))
    assert found(wrong, "network.address_overlap").status == "pass"
    assert found(wrong, "network.address_overlap", "cluster").status == "unknown"


def test_one_harmless_neighbour_does_not_excuse_the_others() -> None:
    taken = (
        UsedNetwork("attachment", "10.0.0.0/24", "other/net", "whereabouts"),
        UsedNetwork("node", "10.0.0.7/32", "node worker-1"),
    )
    assert found(dataclasses.replace(FREE, taken=taken), "network.address_overlap").status == "fail"


def test_a_route_that_is_none_does_not_hide_the_next() -> None:
    ipam = {**GOOD, "gateway": "10.3.0.1", "routes": [{"dst": "anywhere"}, {"dst": "10.96.0.0/12"}]}
    assert found(FREE, "network.address_overlap", ipam=ipam).status == "fail"


@pytest.mark.parametrize(("share", "status"), [(26, "pass"), (27, "fail"), (100, "fail")])
def test_shares_of_a_cidr_pool_are_prefixes(share: int, status: str) -> None:
    pool = {"name": "storage", "kind": "CIDRPool", "per_node_network_prefix": 26, "create": False}
    seen = dataclasses.replace(FREE, pools=(dataclasses.replace(SHARED, kind="CIDRPool", share=share),))
    assert found(seen, "network.address_pool", ipam={**POOL, "pool": pool}).status == status


@pytest.mark.parametrize(
    ("pods", "taken", "warned"),
    [
        (0, (UsedNetwork("node", "10.78.0.11/32", "node worker-1"),), True),
        (
            0,
            (
                UsedNetwork("node", "10.78.0.11/32", "node worker-1"),
                UsedNetwork("pods", "10.244.0.0/24", "pods of node worker-1"),
            ),
            False,
        ),
        (0, (UsedNetwork("pods", "10.244.0.0/24", "pods of node worker-1"),), False),
        (1, (), False),
    ],
)
def test_where_the_network_of_the_pods_is_not_known(pods: int, taken: tuple[UsedNetwork, ...], warned: bool) -> None:
    subjects = {
        finding.subject: finding.status for finding in check(intent(), NODES, AddressFacts(taken=taken, pods=pods))
    }
    assert subjects.get("pod network") == ("warn" if warned else None)


@pytest.mark.parametrize(
    ("pool", "status"),
    [
        (dataclasses.replace(SHARED, name="other"), "warn"),
        (SharedPool("CIDRPool", "elsewhere", "storage", "10.0.0.128/25", 28, ("worker-1",)), "warn"),
        (dataclasses.replace(SHARED, name="other", network="10.1.0.0/24"), "pass"),
        # that of the fabric itself
        (SHARED, "pass"),
    ],
)
def test_another_pool_of_nv_ipam_with_the_range_is_told(pool: SharedPool, status: str) -> None:
    seen = dataclasses.replace(FREE, pools=(SHARED, *(() if pool == SHARED else (pool,))))
    finding = found(seen, "network.address_overlap", ipam=POOL)
    assert finding.status == status
    assert status == "pass" or f"{pool.kind} {pool.namespace}/{pool.name}" in finding.measured


def test_a_range_of_whereabouts_is_held_against_pools_of_nv_ipam_as_well() -> None:
    assert found(dataclasses.replace(FREE, pools=(SHARED,)), "network.address_overlap").status == "warn"
