# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that are applied, against golden files. LINERATE_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, DrainPool, Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Route
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.names import RenderError, object_name
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement import pods
from ansible_collections.linerate.rdma.plugins.module_utils._render.network import network, sriov
from ansible_collections.linerate.rdma.plugins.module_utils._render.network.ipam import render_ipam as ipam_of

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
CLUSTER = ClusterIntent(operator_namespace="sriov-network-operator")

# row S1.7 and S1.9, without the source's mistakes
COMPUTE: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": ["any"], "hcas_per_node": 4, "vendor": "15b3", "device": "1021"},
    "virtual_functions": 8,
    "resource_name": "mlx_test",
    "network": {"name": "sriov-network-ib-test", "namespace": "test", "link_state": "enable"},
    "ipam": {
        "type": "whereabouts",
        "range": "100.100.100.0/24",
        "range_start": "100.100.100.101",
        "range_end": "100.100.100.212",
        "gateway": "100.100.100.1",
    },
}
STORAGE: dict[str, typing.Any] = {
    "name": "storage",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 1, "vendor": "8086", "device": "10c9", "netdev": ["eth2"]},
    "virtual_functions": 4,
    "resource_name": "igbvf",
    "rdma": False,
    "mtu": 1500,
    "network": {
        "name": "storage",
        "namespace": "test",
        "meta_plugins": [{"type": "rdma"}, {"type": "tuning", "mtu": 1500}],
    },
    "ipam": {"type": "whereabouts", "range": "10.80.0.0/24"},
    "pods": {
        "image": "localhost/rdma-tools:1",
        "image_pull_policy": "Never",
        "runtime_class": "rdma",
        "mount_infiniband": True,
        "cpu": "500m",
        "memory": "64Mi",
    },
}
RAILS = ("0000:3c:00.0", "0000:4d:00.0", "0000:bc:00.0", "0000:dc:00.0")


def fabric(data: dict[str, typing.Any], **changes: typing.Union[dict[str, typing.Any], bool]) -> Fabric:
    found: Fabric = load(Fabric, {**data, **changes}, "rdma_fabrics[0]")
    return found


def same_as_golden(name: str, objects: list[dict[str, typing.Any]]) -> None:
    text = "---\n" + yaml.safe_dump_all(objects, sort_keys=False, default_flow_style=False, width=150)
    path = GOLDEN / name
    if os.environ.get("LINERATE_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_network_of_both_profiles() -> None:
    members: dict[str, dict[str, tuple[str, ...]]] = {
        "compute": {"worker-1": RAILS, "worker-2": RAILS},
        "storage": {"worker-1": ("0000:01:00.0",), "worker-2": ("0000:01:00.0",)},
    }
    rendered = network.render((fabric(COMPUTE), fabric(STORAGE)), CLUSTER, members)
    assert rendered.unmade == {}
    assert [name for name, _object in rendered.objects] == ["", "compute", "storage", "compute", "storage"]
    same_as_golden("network.golden", [item for _name, item in rendered.objects])


def test_openshift_settings() -> None:
    cluster = ClusterIntent(
        {"node-role.kubernetes.io/worker": ""},
        operator_namespace="openshift-sriov-network-operator",
        resource_prefix="openshift.io",
    )
    rendered = network.render((fabric(COMPUTE),), cluster, {"compute": {"worker-1": RAILS}})
    same_as_golden("network-openshift.golden", [item for _name, item in rendered.objects])


def test_a_pool_of_nodes_where_the_intent_asks_for_one() -> None:
    cluster = dataclasses.replace(CLUSTER, node_pool=DrainPool(2, "exclusive"))
    rendered = network.render((fabric(STORAGE),), cluster, {"storage": {"worker-1": ("0000:01:00.0",)}})
    (pool,) = [item for _name, item in rendered.objects if item["kind"] == "SriovNetworkPoolConfig"]
    # before the policies, which the operator acts on at once
    assert [item["kind"] for _name, item in rendered.objects][:3] == [
        "Namespace",
        "SriovNetworkPoolConfig",
        "SriovNetworkNodePolicy",
    ]
    same_as_golden("node-pool.golden", [pool])
    read = sriov_operator.node_pool(pool)
    assert (read.max_unavailable, read.rdma_mode, read.selector.labels) == ("2", "exclusive", cluster.node_selector)
    assert "rdmaMode" not in sriov.render_node_pools(dataclasses.replace(CLUSTER, node_pool=DrainPool(1)))[0]["spec"]


def test_nodes_with_other_addresses_get_policies_of_their_own() -> None:
    members = {"worker-1": RAILS, "worker-2": ("0000:1a:00.0", "0000:3c:00.0")}
    first, second = sriov.render_policies(fabric(COMPUTE), CLUSTER, members)
    assert first["metadata"]["name"] == "linerate-compute-worker-1"
    assert second["spec"]["nodeSelector"]["kubernetes.io/hostname"] == "worker-2"
    assert second["spec"]["nicSelector"]["rootDevices"] == ["0000:1a:00.0", "0000:3c:00.0"]


def test_addresses_of_the_intent_come_first() -> None:
    select = {**COMPUTE["select"], "pci": ["0000:3c:00.0"]}
    (policy,) = sriov.render_policies(fabric(COMPUTE, select=select), CLUSTER, {"worker-1": RAILS, "worker-2": ()})
    assert policy["spec"]["nicSelector"]["rootDevices"] == ["0000:3c:00.0"]


def test_infiniband_is_always_rdma() -> None:
    (policy,) = sriov.render_policies(fabric(COMPUTE, rdma=False), CLUSTER, {"worker-1": RAILS})
    assert policy["spec"]["isRdma"] is True
    assert policy["spec"]["linkType"] == "IB"


def test_nothing_to_select_by_is_refused() -> None:
    with pytest.raises(RenderError, match="rdma_fabrics 'storage': no physical function is selected"):
        sriov.render_policies(fabric(STORAGE, select={"hcas_per_node": 1}), CLUSTER, {"worker-1": ()})


def test_vendor_and_device_alone_do_not_make_an_infiniband_fabric() -> None:
    # they would turn the HCAs of the other fabric into virtual functions as well
    rendered = network.render((fabric(COMPUTE), fabric(STORAGE)), CLUSTER, {"compute": {"worker-1": ()}})
    assert (
        "': the HCAs of this fabric are unknown, and vendor and device alone would also"
        " select those of other fabrics; see the stages discover and fabric, or list the"
        " addresses in select.pci"
    ) in rendered.unmade["compute"]
    assert [(name, item["kind"]) for name, item in rendered.objects] == [
        ("", "Namespace"),
        ("storage", "SriovNetworkNodePolicy"),
        ("compute", "SriovIBNetwork"),
        ("storage", "SriovNetwork"),
    ]


@pytest.mark.parametrize(
    ("ipam", "exclude"),
    [
        (Ipam("whereabouts", "10.0.0.0/24", gateway="10.0.0.1"), ["10.0.0.1/32"]),
        (Ipam("whereabouts", "fd00::/64", gateway="fd00::1"), ["fd00::1/128"]),
        (
            Ipam("whereabouts", "10.0.0.0/24", gateway="10.0.0.1", exclude=("10.0.0.1/32", "10.0.0.9/32")),
            ["10.0.0.1/32", "10.0.0.9/32"],
        ),
        (Ipam("whereabouts", "10.0.0.0/24"), []),
    ],
)
def test_the_gateway_is_no_pod_s_address(ipam: Ipam, exclude: list[str]) -> None:
    assert ipam_of(ipam).get("exclude", []) == exclude


def test_routes_lead_over_the_gateway_unless_they_name_another() -> None:
    routes = (Route("10.1.0.0/16"), Route("10.2.0.0/16", "10.0.0.9"))
    written = ipam_of(Ipam("whereabouts", "10.0.0.0/24", gateway="10.0.0.1", routes=routes))
    assert written["routes"] == [{"dst": "10.1.0.0/16", "gw": "10.0.0.1"}, {"dst": "10.2.0.0/16", "gw": "10.0.0.9"}]


BLOCKS = {
    "type": "nv-ipam",
    "range": "10.81.0.0/22",
    "gateway": "10.81.0.1",
    "exclude": ["10.81.0.16/30", "10.81.0.9"],
    "routes": [{"dst": "10.82.0.0/16"}],
    "pool": {"name": "compute", "per_node_block_size": 64},
}
NETWORKS: dict[str, typing.Any] = {
    "type": "nv-ipam",
    "range": "10.84.0.0/16",
    "pool": {
        "name": "rails",
        "kind": "CIDRPool",
        "namespace": "kube-system",
        "per_node_network_prefix": 26,
        "gateway_index": 1,
    },
}


def test_pools_of_nv_ipam() -> None:
    fabrics = fabric(COMPUTE, ipam=BLOCKS), fabric(STORAGE, ipam=NETWORKS)
    rendered = network.render(fabrics, CLUSTER, {"compute": {"worker-1": RAILS}})
    made = [item for _fabric, item in rendered.objects if item["apiVersion"].startswith("nv-ipam")]
    texts = [item["spec"]["ipam"] for _fabric, item in rendered.objects if "ipam" in item.get("spec", {})]
    assert texts == [
        '{"type": "nv-ipam", "poolName": "compute", "poolType": "ippool"}',
        '{"type": "nv-ipam", "poolName": "rails", "poolType": "cidrpool"}',
    ]
    same_as_golden("pools.golden", made)


def test_a_pool_that_somebody_else_made_is_left_alone() -> None:
    rendered = network.render(
        (fabric(STORAGE, ipam={**NETWORKS, "pool": {**NETWORKS["pool"], "create": False}}),), CLUSTER, {}
    )
    assert [item["kind"] for _fabric, item in rendered.objects] == [
        "Namespace",
        "SriovNetworkNodePolicy",
        "SriovNetwork",
    ]


def test_pods() -> None:
    same_as_golden(
        "pods.golden",
        [
            pods.render_measuring_pod(fabric(COMPUTE), CLUSTER, "worker-1"),
            pods.render_measuring_pod(fabric(STORAGE), CLUSTER, "worker-2.example.org"),
        ],
    )


def test_a_pod_is_guaranteed_and_not_privileged() -> None:
    (container,) = pods.render_measuring_pod(fabric(COMPUTE), CLUSTER, "worker-1")["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_pods_of_a_tainted_and_closed_cluster() -> None:
    wanted = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "service_account": "rdma",
        "image_pull_secrets": ["registry"],
    }
    made = pods.render_measuring_pod(fabric(COMPUTE, pods=wanted), CLUSTER, "worker-1", 3)
    assert made["metadata"]["name"] == "linerate-compute-worker-1-3"
    assert made["spec"]["tolerations"] == wanted["tolerations"]
    assert made["spec"]["serviceAccountName"] == "rdma"
    assert made["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_the_rendered_policy_is_read_back() -> None:
    (policy,) = sriov.render_policies(fabric(COMPUTE), CLUSTER, {"worker-1": RAILS})
    parsed = sriov_operator.parse_policy(policy)
    assert (parsed.vfs_count, parsed.root_devices, parsed.vendor, parsed.device) == (8, RAILS, "15b3", "1021")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (("Linerate", "Compute_1", "worker.example"), "linerate-compute-1-worker.example"),
        (("a", "", "b"), "a-b"),
        (("x" * 300,), "x" * 253),
    ],
)
def test_object_name(parts: tuple[str, ...], name: str) -> None:
    assert object_name(*parts) == name


def test_object_name_of_nothing() -> None:
    with pytest.raises(RenderError, match="cannot be used in the name of an object; use letters, digits and hyphens"):
        object_name("___")
