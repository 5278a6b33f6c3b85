# SPDX-License-Identifier: GPL-3.0-or-later

"""Two intents with the default name and a fabric of the same name: neither overwrites the network of the other."""

from __future__ import annotations

import copy
import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from tests.unit.run.test_intents import Api, applied, objects_of


def _of_network(kind: str, addresses: str, resource: str = "shared", selector: str = "a", **select: str) -> Intent:
    """Return an intent without a name, whose fabric compute has a network of a kind."""
    wanted: dict[str, typing.Any] = {
        "name": "compute",
        "profile": kind,
        "select": {"hcas_per_node": 1, "netdev": ["ens1"], **select},
        "resource_name": resource,
        "network": {"name": "net", "namespace": "jobs"},
        "ipam": {"type": "whereabouts", "range": addresses},
    }
    if kind.startswith("sriov"):
        wanted["virtual_functions"] = 4
    if kind in ("macvlan", "ipoib"):
        del wanted["resource_name"]
    if kind == "macvlan":
        pool = {"name": "own", "create": True, "per_node_block_size": 8}
        wanted["ipam"] = {"type": "nv-ipam", "range": addresses, "pool": pool}
    return parse_intent([wanted], None, {"node_selector": {"kind": selector}, "operator_namespace": "sriov"})


@pytest.mark.parametrize("exists", [True, False])
def test_network_is_refused_where_the_policy_of_its_fabric_is_refused(exists: bool) -> None:
    """Both intents have the default name and the fabric compute, for other nodes."""
    theirs = _of_network("sriov_ethernet", "100.64.0.0/24", selector="b")
    api = Api(*(item for item in objects_of(theirs) if exists or item["kind"] != "SriovNetwork"))
    before = copy.deepcopy(api.items)
    done = applied(api, _of_network("sriov_ethernet", "100.64.0.0/24"))
    assert done["SriovNetworkNodePolicy"].action == "refused"
    if exists:
        # it equals the rendered one
        assert done["SriovNetwork"].action == "unchanged"
        done = applied(api, _of_network("sriov_ethernet", "100.65.0.0/24", "other"))
    assert (done["SriovNetwork"].action, done["SriovNetwork"].reason) == ("refused", "OtherIntent")
    assert api.items == before
    if not exists:
        assert "SriovNetworkNodePolicy sriov/linerate-compute of the same fabric" in done["SriovNetwork"].refusal


def test_network_of_the_intent_itself_may_change() -> None:
    """Its policy in the cluster selects the nodes of the intent."""
    api = Api(*objects_of(_of_network("sriov_ethernet", "100.64.0.0/24")))
    done = applied(api, _of_network("sriov_ethernet", "100.65.0.0/24", "other"))
    assert {item.action for kind, item in done.items() if kind != "Namespace"} == {"changed"}


@pytest.mark.parametrize(
    ("kind", "network"),
    [
        ("sriov_ethernet", "SriovNetwork"),
        ("rdma_shared", "MacvlanNetwork"),
        ("host_device", "HostDeviceNetwork"),
        ("ipoib", "IPoIBNetwork"),
        ("macvlan", "IPPool"),
    ],
)
def test_network_without_a_policy_in_the_cluster_keeps_its_range(kind: str, network: str) -> None:
    theirs = objects_of(_of_network(kind, "100.64.0.0/24", vendor="15b3"))
    api = Api(*(item for item in theirs if item["kind"] != "SriovNetworkNodePolicy"))
    before = copy.deepcopy([item for key, item in api.items.items() if key[0] == network])
    done = applied(api, _of_network(kind, "100.65.0.0/24"))[network]
    assert (done.action, done.reason) == ("refused", "OtherIntent")
    assert "it has the addresses 100.64.0.0/24 instead of 100.65.0.0/24" in done.refusal
    if kind.startswith("sriov"):
        assert "If it is of this intent, set rdma_cluster.intent_name: NAME, and label it" in done.refusal
    else:
        assert "If it is of this intent, label it" in done.refusal
    assert [item for key, item in api.items.items() if key[0] == network] == before
    assert applied(api, _of_network(kind, "100.64.0.0/24"))[network].action == "unchanged"


def test_attachment_of_the_default_name_keeps_its_range_and_a_named_one_does_not() -> None:
    def plain(addresses: str, name: str, netdev: str = "ens1") -> Intent:
        wanted = {
            "name": "fast",
            "profile": "macvlan",
            "select": {"hcas_per_node": 1, "netdev": [netdev]},
            "network": {"name": "fast", "namespace": "jobs"},
            "ipam": {"type": "whereabouts", "range": addresses},
        }
        return parse_intent([wanted], None, {"intent_name": name})

    kind = "NetworkAttachmentDefinition"
    api = Api(*objects_of(plain("100.64.0.0/24", "default")))
    # of the same nodes, another NIC
    assert applied(api, plain("100.65.0.0/24", "default", "ens2"))[kind].reason == "OtherIntent"
    api = Api(*objects_of(plain("100.64.0.0/24", "a")))
    assert applied(api, plain("100.65.0.0/24", "a"))[kind].action == "changed"


def test_network_of_another_resource_is_refused() -> None:
    theirs = objects_of(_of_network("host_device", "100.64.0.0/24", selector="b"))
    api = Api(*(item for item in theirs if "Network" in item["kind"]))
    done = applied(api, _of_network("host_device", "100.64.0.0/24", "other"))["HostDeviceNetwork"]
    assert "instead of other" in done.refusal and "it has the resource shared" in done.refusal


@pytest.mark.parametrize(("selector", "action"), [("a", "changed"), ("b", "refused")])
def test_policies_of_other_fabrics_prove_whose_a_network_without_a_policy_is(selector: str, action: str) -> None:
    """The fabric compute has a policy, and the fabric fast a network only."""

    def both(addresses: str, nodes: str) -> Intent:
        first = _of_network("sriov_ethernet", "100.64.0.0/24", selector=nodes)
        second = parse_intent(
            [
                {
                    "name": "fast",
                    "profile": "macvlan",
                    "select": {"hcas_per_node": 1, "netdev": ["ens1"]},
                    "network": {"name": "fast", "namespace": "jobs"},
                    "ipam": {"type": "whereabouts", "range": addresses},
                }
            ]
        )
        return dataclasses.replace(first, fabrics=(*first.fabrics, *second.fabrics))

    api = Api(*objects_of(both("100.66.0.0/24", selector)))
    assert applied(api, both("100.67.0.0/24", "a"))["NetworkAttachmentDefinition"].action == action
