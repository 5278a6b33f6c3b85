# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that one kubelet claims, and pools that a tenant makes: they are named, and refuse no fabric of the other
nodes. What several nodes report, and what no kubelet writes, refuses the fabric that it overlaps."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.addresses import in_use
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.addresses import observe
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import parse_network
from ansible_collections.linerate.rdma.tests.unit.observe.test_addresses import Api

NODES = [f"n{number}" for number in range(8)]
COMPUTE, STORAGE = "10.56.0.0/16", "10.57.8.0/24"
Objects = dict[str, list[dict[str, typing.Any]]]


def intent(**ipam: typing.Any) -> Intent:
    return parse_intent(
        [
            {
                "name": name,
                "profile": "sriov_ethernet",
                "network": {"namespace": "training", "name": name},
                "select": {"hcas_per_node": 1, "netdev": [f"{name}0"]},
                "virtual_functions": 4,
                "resource_name": name,
                "ipam": {"type": "whereabouts", "range": network, **ipam},
            }
            for name, network in (("compute", COMPUTE), ("storage", STORAGE))
        ]
    )


def judge(objects: Objects, **ipam: typing.Any) -> tuple[set[str], dict[str, Finding]]:
    """Return the refused fabrics, and the findings that are no pass, by subject."""
    networks = [parse_network(COMPUTE), parse_network(STORAGE)]
    findings = in_use.check(intent(**ipam), NODES, observe(typing.cast(Cluster, Api(**objects)), networks))
    refused = set(in_use.list_refused_fabrics(intent(**ipam), findings))
    return refused, {finding.subject: finding for finding in findings if finding.status != "pass"}


@pytest.fixture
def objects() -> Objects:
    nodes = [
        {
            "metadata": {"name": name},
            "spec": {"podCIDRs": [f"10.244.{number}.0/24"]},
            "status": {"addresses": [{"type": "InternalIP", "address": f"192.168.1.{number + 1}"}]},
        }
        for number, name in enumerate(NODES)
    ]
    pods = [pod(name, f"10.244.{number}.2") for number, name in enumerate(NODES)]
    return {"Node": nodes, "Pod": pods}


def pod(node: str, *addresses: str) -> dict[str, typing.Any]:
    name = f"p-{addresses[0].replace('.', '-')}"
    return {
        "metadata": {"name": name, "namespace": "jobs"},
        "spec": {"nodeName": node},
        "status": {"podIPs": [{"ip": address} for address in addresses]},
    }


def claim(objects: Objects, number: int, *addresses: str) -> None:
    shown = objects["Node"][number]["status"]["addresses"]
    shown += [{"type": "ExternalIP", "address": address} for address in addresses]


@pytest.mark.parametrize("spec", [{"range": "abc"}, {"range": COMPUTE, "allocations": {"x": {}}}, {"allocations": []}])
def test_invalid_pool_of_whereabouts_in_a_namespace_of_a_tenant_refuses_no_fabric(
    objects: Objects, spec: dict[str, typing.Any]
) -> None:
    pool = {"kind": "IPPool", "metadata": {"name": "bad", "namespace": "team-x"}, "spec": spec}
    refused, findings = judge({**objects, "IPPool.whereabouts.cni.cncf.io": [pool]})
    assert refused == set() and [*findings] == ["leases"]
    assert findings["leases"].status == "warn" and "team-x/bad" in findings["leases"].why


def test_addresses_of_one_node_are_named_and_refuse_no_fabric(objects: Objects) -> None:
    claim(objects, 7, "10.56.0.9", "10.57.8.9")
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n7"}
    finding = findings["node n7"]
    assert finding.status == "unknown" and "10.56.0.9/32" in finding.measured and "10.57.8.9/32" in finding.measured
    assert "fabric compute" in finding.measured and "kubectl get node n7" in finding.remedy


def test_pods_of_one_node_are_named_and_hide_no_pods_of_others(objects: Objects) -> None:
    objects["Pod"] += [pod("n7", f"10.56.0.{number}") for number in range(1, 60)]
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n7"}
    # the pods of another node are there behind those of the first
    objects["Pod"].append(pod("n6", "10.56.9.9"))
    refused, findings = judge(objects)
    assert refused == {"compute"} and set(findings) == {"compute"}


def test_pod_networks_of_one_node_are_named_and_refuse_no_fabric(objects: Objects) -> None:
    objects["Node"][7]["spec"]["podCIDRs"] = ["0.0.0.0/0"]
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n7"}
    refused, findings = judge(objects, gateway="10.56.0.1", routes=[{"dst": "10.99.0.0/24"}])
    assert refused == set() and "route to 10.99.0.0/24" in findings["node n7"].measured


def test_addresses_of_two_nodes_refuse_their_fabric_alone(objects: Objects) -> None:
    claim(objects, 6, "10.56.3.1")
    claim(objects, 7, "10.56.200.9", "10.57.8.9")
    refused, findings = judge(objects)
    assert refused == {"compute"} and "10.56.3.1/32" in findings["compute"].measured
    assert findings["node n7"].status == "unknown" and "compute" not in findings["node n7"].measured


def test_pod_of_one_node_is_a_claim_though_nodes_have_addresses_in_the_same_network(objects: Objects) -> None:
    """Neither the addresses of other nodes confirm it, nor pods of other nodes near the range."""
    for number, item in enumerate(objects["Node"]):
        item["status"]["addresses"] = [{"type": "InternalIP", "address": f"10.57.1.{number + 1}"}]
    objects["Pod"] += [pod("n5", "10.57.8.77"), pod("n4", "10.57.200.1")]
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n5"}
    assert findings["node n5"].status == "unknown" and "10.57.8.77/32" in findings["node n5"].measured
    objects["Pod"].append(pod("n3", "10.57.8.78"))
    refused, findings = judge(objects)
    assert refused == {"storage"} and "10.57.8.77/32" in findings["storage"].measured


def test_address_of_one_node_is_a_claim_though_others_are_near(objects: Objects) -> None:
    claim(objects, 6, "10.57.8.129")
    claim(objects, 5, "10.57.9.1")
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n6"}
    claim(objects, 5, "10.57.8.1")
    assert judge(objects)[0] == {"storage"}


def test_pod_of_one_node_and_address_of_another_do_not_confirm_each_other(objects: Objects) -> None:
    claim(objects, 6, "10.57.8.129")
    objects["Pod"].append(pod("n5", "10.57.8.77"))
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n5", "node n6"}


def test_pod_of_one_node_is_a_claim_though_pod_networks_of_others_are_near(objects: Objects) -> None:
    for number, item in enumerate(objects["Node"]):
        item["spec"]["podCIDRs"] = [f"10.57.{number + 16}.0/24"]
    objects["Pod"] = [pod("n5", "10.57.8.77")]
    refused, findings = judge(objects)
    assert refused == set() and set(findings) == {"node n5"}
    objects["Node"][4]["spec"]["podCIDRs"] = ["10.57.8.0/25"]
    assert judge(objects)[0] == {"storage"}


def test_a_share_of_one_node_in_the_pod_network_is_real(objects: Objects) -> None:
    """The control plane gives each node its part of one network: a range in one part overlaps with one node alone."""
    for number, item in enumerate(objects["Node"]):
        item["spec"]["podCIDRs"] = [f"10.57.{number + 1}.0/24"]
    refused, findings = judge({"Node": objects["Node"]})
    assert refused == {"storage"} and "pods of node n7" in findings["storage"].measured


def test_services_and_the_only_node_are_believed(objects: Objects) -> None:
    services = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.57.0.0/16"]}}
    assert judge({**objects, "ServiceCIDR": [services]})[0] == {"storage"}
    claim(objects, 0, "10.56.0.9")
    assert judge({"Node": objects["Node"][:1]})[0] == {"compute"}


def pool(namespace: str, name: str, subnet: str) -> dict[str, typing.Any]:
    return {
        "kind": "IPPool",
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"subnet": subnet, "perNodeBlockSize": 4},
    }


def test_an_invalid_pool_of_a_tenant_is_a_warning_with_its_name(objects: Objects) -> None:
    broken = [pool("tenant", "p", "garbage")]
    refused, findings = judge({**objects, "IPPool.nv-ipam.nvidia.com": broken})
    assert refused == set() and set(findings) == {"pools"}
    assert (
        findings["pools"].status == "warn"
        and "IPPool p of nv-ipam" in findings["pools"].why
        and "(tenant/p)" in findings["pools"].why
    )


def test_an_invalid_pool_of_the_intent_refuses_its_fabrics(objects: Objects) -> None:
    own = {"type": "nv-ipam", "pool": {"name": "own", "create": True, "per_node_block_size": 8}}
    broken = [pool("nvidia-network-operator", "own", "garbage")]
    refused, findings = judge({**objects, "IPPool.nv-ipam.nvidia.com": broken}, **own)
    assert refused == {"compute", "storage"} and findings["compute"].check == "network.address_pool"
    assert findings["compute"].status == "unknown" and "pools" not in findings
