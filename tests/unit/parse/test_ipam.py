# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has which addresses: objects of real clusters, and objects that are none."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import (
    AddressLease,
    SharedPool,
    UsedNetwork,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks import ipam
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures/kubernetes"
POOL = SharedPool("IPPool", "kube-system", "pool1", "192.168.0.0/16", 24, ("host-a",))


def attachment(config: typing.Union[dict[str, typing.Any], str]) -> dict[str, typing.Any]:
    return {
        "metadata": {"name": "net", "namespace": "test"},
        "spec": {"config": config if isinstance(config, str) else json.dumps(config)},
    }


def networks(
    config: typing.Union[dict[str, typing.Any], str], pools: tuple[SharedPool, ...] = ()
) -> list[tuple[str, str]]:
    return [(taken.network, taken.ipam) for taken in ipam.attachment_networks(attachment(config), pools)]


def test_attachments_that_an_operator_made() -> None:
    first, second, third = yaml.safe_load((FIXTURES / "networkattachmentdefinitions.yaml").read_text())["items"]
    assert ipam.attachment_networks(first, ()) == (
        UsedNetwork("attachment", "10.80.0.0/24", "default/op-hl", "host-local"),
    )
    for item in (second, third):
        with pytest.raises(ResourceError, match="the pods set their addresses themselves"):
            ipam.attachment_networks(item, ())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"ipam": {"type": "whereabouts", "range": "10.0.0.0/24"}}, ["10.0.0.0/24"]),
        ({"ipam": {"type": "whereabouts", "range": "10.0.0.5-10.0.0.9/24"}}, ["10.0.0.0/24"]),
        (
            {"ipam": {"type": "whereabouts", "ipRanges": [{"range": "10.0.0.0/24"}, {"range": "fd00::/64"}]}},
            ["10.0.0.0/24", "fd00::/64"],
        ),
        # the source document's own range, as whereabouts takes it
        ({"ipam": {"type": "whereabouts", "range": "100.100.100.0/1"}}, ["0.0.0.0/1"]),
        ({"ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}}, ["10.0.0.0/24"]),
        (
            {"plugins": [{"ipam": {"type": "static", "addresses": [{"address": "10.0.0.7/24"}]}}, {"type": "rdma"}]},
            ["10.0.0.0/24"],
        ),
        ({"ipam": {"type": "nv-ipam", "poolName": "pool1"}}, ["192.168.0.0/16"]),
        ({"ipam": {}}, []),
        ({"ipam": []}, []),
        ({"type": "macvlan"}, []),
    ],
)
def test_ipam_plugins(config: dict[str, typing.Any], expected: list[str]) -> None:
    assert [network for network, _plugin in networks(config, (POOL,))] == expected


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", "in a file on the nodes"),
        ("{", "is not JSON"),
        ("[" * 100000, "is not JSON"),
        ("[]", "is not a mapping"),
        ({"ipam": ["x"]}, "is not a mapping"),
        ({"plugins": "x"}, "is not a list of mappings"),
        ({"ipam": {"type": "dhcp"}}, "stores them elsewhere"),
        ({"ipam": {"type": "whereabouts", "range": "ten"}}, "ten"),
        ({"ipam": {"type": "host-local", "ranges": ["x"]}}, "is not a list of lists"),
        ({"ipam": {"type": "nv-ipam", "poolName": "none"}}, "ippool none does not exist"),
        ({"ipam": {"type": "nv-ipam", "poolName": "pool1", "poolType": "cidrpool"}}, "cidrpool pool1 does not exist"),
    ],
)
def test_an_attachment_that_says_nothing_of_its_addresses_is_an_error(
    config: typing.Union[dict[str, typing.Any], str], said: str
) -> None:
    with pytest.raises(ResourceError, match=said):
        networks(config)


def test_networks_of_the_cluster() -> None:
    node = {
        "metadata": {"name": "a"},
        "spec": {"podCIDRs": ["10.244.0.0/24"]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.78.0.11"}, {"type": "Hostname", "address": "a"}]
        },
    }
    assert ipam.node_networks(node) == (
        UsedNetwork("node", "10.78.0.11/32", "node a", node="a"),
        UsedNetwork("pods", "10.244.0.0/24", "pods of node a", node="a"),
    )
    service = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}
    assert ipam.service_networks(service) == (UsedNetwork("services", "10.96.0.0/16", "ServiceCIDR kubernetes"),)
    headless = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"clusterIPs": ["None"]}}
    assert ipam.service_addresses(headless) == ()
    assert ipam.service_addresses({**headless, "spec": {"clusterIPs": ["10.96.0.1"]}}) == (
        UsedNetwork("services", "10.96.0.1/32", "Service default/s"),
    )
    # oc get network.config cluster -o yaml, shortened
    network = {
        "metadata": {"name": "cluster"},
        "status": {
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": ["172.30.0.0/16"],
        },
    }
    assert [(taken.kind, taken.network) for taken in ipam.openshift_networks(network)] == [
        ("pods", "10.128.0.0/14"),
        ("services", "172.30.0.0/16"),
    ]


def test_addresses_of_a_real_pod() -> None:
    pod = yaml.safe_load((FIXTURES / "pod-with-vf.yaml").read_text())
    name, _node, addresses = ipam.pod_networks(pod)
    assert (name.partition("/")[0], addresses) == (pod["metadata"]["namespace"], ("10.244.1.31/32",))
    assert ipam.pod_networks({**pod, "spec": {"hostNetwork": True}})[2] == ()


def test_leases_count_from_the_network_address() -> None:
    pool = {
        "metadata": {"name": "10.79.0.0-24"},
        "spec": {
            "range": "10.79.0.0/24",
            "allocations": {
                "2": {"id": "x", "podref": "training/a", "ifname": "net1"},
                "5": {"id": "y", "podref": "training/b"},
            },
        },
    }
    assert ipam.parse_leases(pool) == (AddressLease("10.79.0.2", "training/a"), AddressLease("10.79.0.5", "training/b"))


@pytest.mark.parametrize("allocations", [{"x": {}}, {"256": {}}, {"-1": {}}, {"1": "a"}, ["x"]])
def test_leases_outside_of_their_range_are_an_error(
    allocations: typing.Union[dict[str, typing.Any], list[str]],
) -> None:
    with pytest.raises(ResourceError):
        ipam.parse_leases({"metadata": {"name": "p"}, "spec": {"range": "10.79.0.0/24", "allocations": allocations}})


def test_pools_of_nv_ipam() -> None:
    blocks = {
        "kind": "IPPool",
        "metadata": {"name": "pool1", "namespace": "kube-system"},
        "spec": {"subnet": "192.168.0.0/16", "perNodeBlockSize": 24},
        "status": {"allocations": [{"nodeName": "host-a", "startIP": "192.168.0.1", "endIP": "192.168.0.24"}]},
    }
    assert ipam.shared_pool(blocks) == POOL
    cidr = {"kind": "CIDRPool", "metadata": {"name": "p"}, "spec": {"cidr": "10.0.0.0/16", "perNodeNetworkPrefix": 24}}
    assert ipam.shared_pool(cidr) == SharedPool("CIDRPool", "", "p", "10.0.0.0/16", 24)
    with pytest.raises(ResourceError):
        ipam.shared_pool({**cidr, "spec": {}})
