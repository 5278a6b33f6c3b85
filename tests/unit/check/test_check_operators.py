# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage operators: each way in which an operator does not serve has its own finding."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators import Facts, check, serving
from ansible_collections.linerate.rdma.plugins.module_utils._model.cluster import ClusterNode, NodeState, OperatorFacts, OperatorInstallation, Workload
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import Hca, NodeHcas, ObservedHcas, PciFunction, Sriov
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.rights import RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent

INTENT = parse_intent(
    [
        {
            "name": "compute",
            "profile": "sriov_infiniband",
            "select": {"hcas_per_node": 4},
            "virtual_functions": 8,
            "resource_name": "mlx",
            "network": {"name": "ib", "namespace": "test"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        }
    ]
)
LABEL = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
GROUP = "sriovnetwork.openshift.io"
HELM = OperatorInstallation(Workload("sriov-network-operator", "sriov-network-operator", 1, 1, ("op:v1.6.0",)), "v1.6.0", "helm", "openshift.io")
GOOD = OperatorFacts(
    crds=(
        "ippools.whereabouts.cni.cncf.io",
        "network-attachment-definitions.k8s.cni.cncf.io",
        *(f"{name}.{GROUP}" for name in ("sriovibnetworks", "sriovnetworknodepolicies", "sriovnetworknodestates", "sriovoperatorconfigs")),
    ),
    installations=(HELM,),
    configs=("sriov-network-operator",),
    nodes=(ClusterNode("worker-1", LABEL, True),),
    daemon=Workload("sriov-network-config-daemon", "sriov-network-operator", 1, 1, (), ("worker-1",)),
    states=(NodeState("worker-1", sync_status="Succeeded"),),
    multus=(Workload("kube-multus-ds", "kube-system", 1, 1),),
)


def look(seen=GOOD, nodes=("worker-1",), **facts):
    return check(INTENT, Facts(nodes, seen, **{"rights": RightsFacts(40), **facts}))


def only(findings, name):
    (found,) = [finding for finding in findings if finding.check == name]
    return found


def bad(findings):
    return {finding.check: finding.status for finding in findings if finding.status != "pass"}


def test_all_in_place():
    findings = look()
    assert bad(findings) == {}
    assert {finding.check.split(".")[1] for finding in findings} == {
        "rights",
        "read",
        "definition",
        "single",
        "version",
        "ready",
        "resource_prefix",
        "config",
        "multus",
        "node",
        "label",
        "daemon",
    }


def test_facts_survive_the_way_through_ansible():
    facts = Facts(("worker-1",), GOOD)
    assert load(Facts, to_data(facts), "facts") == facts


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"installations": ()}, {"operators.single": "fail"}),
        ({"installations": (HELM, dataclasses.replace(HELM, origin="nvidia-network-operator"))}, {"operators.single": "fail"}),
        ({"installations": (dataclasses.replace(HELM, deployment=Workload("op", "elsewhere", 1, 1)),)}, {"operators.single": "fail"}),
        ({"installations": (dataclasses.replace(HELM, version=""),)}, {"operators.version": "warn"}),
        ({"installations": (dataclasses.replace(HELM, resource_prefix="nvidia.com"),)}, {"operators.resource_prefix": "fail"}),
        ({"installations": (dataclasses.replace(HELM, resource_prefix=""),)}, {"operators.resource_prefix": "warn"}),
        ({"installations": (dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0)),)}, {"operators.ready": "fail"}),
        # scaled to 0 is 0 of 0 pods, and no operator
        ({"installations": (dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0, wanted=0)),)}, {"operators.ready": "fail"}),
        ({"configs": ("default",)}, {"operators.config": "fail"}),
        ({"daemon": None}, {"operators.daemon": "fail"}),
        ({"daemon": dataclasses.replace(GOOD.daemon, nodes=())}, {"operators.daemon": "fail"}),
        # the daemon runs before it has looked at its node, and until then the webhook knows no NIC there
        ({"states": ()}, {"operators.daemon": "fail"}),
        ({"states": (NodeState("worker-1"),)}, {"operators.daemon": "fail"}),
        ({"multus": (Workload("kube-multus-ds", "kube-system", 2, 1),)}, {"operators.multus": "fail"}),
        ({"multus": ()}, {"operators.multus": "warn"}),
        ({"multus": (), "multus_pods": 3}, {}),
        ({"errors": ("GET /apis/apps/v1/deployments: forbidden",)}, {"operators.read": "unknown"}),
        ({"crds": GOOD.crds[2:]}, {"operators.definition": "fail"}),
        ({"nodes": ()}, {"operators.node": "fail"}),
        ({"nodes": (ClusterNode("worker-1", LABEL, False),)}, {"operators.node": "fail"}),
        ({"nodes": (ClusterNode("worker-1", LABEL, True, True),)}, {"operators.node": "fail"}),
    ],
)
def test_each_fault_is_one_finding(changes, expected):
    assert bad(look(dataclasses.replace(GOOD, **changes))) == expected


def test_nothing_read_and_no_node_are_unknown():
    assert bad(look(None)) == {"operators.read": "unknown"}
    assert bad(look(nodes=())) == {"operators.node": "unknown"}


def test_what_the_pods_wait_for_is_named():
    work = dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0))
    seen = dataclasses.replace(GOOD, installations=(work,), troubles=("sriov-network-operator-7f49: ErrImagePull: no such host",))
    assert "ErrImagePull: no such host" in only(look(seen), "operators.ready").why


def hca(total, device_class="0207"):
    function = PciFunction("0000:3c:00.0", "15b3", "1021", device_class)
    return ObservedHcas(NodeHcas((Hca("mlx5_0", pci=function, sriov=Sriov(total, 0) if total is not None else None),)))


NFD = {"feature.node.kubernetes.io/cpu-model.id": "143"}


@pytest.mark.parametrize(
    ("labels", "hcas", "why"),
    [
        (NFD, {"worker-1": ObservedHcas(NodeHcas(()))}, "no HCA on PCI"),
        (NFD, {"worker-1": hca(None)}, "has SR-IOV: sriov_totalvfs is absent or 0"),
        ({}, {"worker-1": hca(16)}, "does not run on it"),
        (NFD, {"worker-1": hca(16)}, "of PCI class 0207. Its worker looks only at the PCI classes of its whitelist"),
        # what the node did not say must not lead to a cause
        (NFD, {"worker-1": ObservedHcas(error="unreachable")}, "Its worker looks only at the PCI classes"),
        (NFD, {}, "Its worker looks only at the PCI classes"),
    ],
)
def test_why_the_label_is_absent(labels, hcas, why):
    found = only(look(dataclasses.replace(GOOD, nodes=(ClusterNode("worker-1", labels, True),)), hcas=hcas), "operators.label")
    assert found.status == "fail"
    assert why in found.why


def test_serving_leaves_out_nodes_without_the_label():
    seen = dataclasses.replace(GOOD, nodes=(*GOOD.nodes, ClusterNode("worker-2", {}, True)))
    assert serving(Cluster(), seen, ("worker-1", "worker-2")) == ()
    assert serving(Cluster(), dataclasses.replace(seen, daemon=None), ("worker-1", "worker-2")) == ("worker-1: no DaemonSet",)
    assert serving(Cluster(), dataclasses.replace(seen, installations=(), troubles=("a: waits",)), ()) == ("SR-IOV network operator: none", "a: waits")
