# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage operators: each way in which an operator does not serve has its own finding."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.mended import may_resolve
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.node_label import check_label
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.sriov_operator import list_missing
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.stack import Controller
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import ImageFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import ClusterNode, Workload
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import RightsFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    Netdev,
    NodeHcas,
    ObservedHcas,
    PciFunction,
    Sriov,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.feature_discovery import (
    FeatureDiscovery,
    WorkerConfig,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.sriov_operator import (
    NodeState,
    OlmObject,
    OperatorFacts,
    OperatorInstallation,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
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
HELM = OperatorInstallation(
    Workload("sriov-network-operator", "sriov-network-operator", 1, 1, ("op:v1.6.0",)), "v1.6.0", "helm", "openshift.io"
)
GOOD = OperatorFacts(
    crds=(
        "ippools.whereabouts.cni.cncf.io",
        "network-attachment-definitions.k8s.cni.cncf.io",
        *(
            f"{name}.{GROUP}"
            for name in (
                "sriovibnetworks",
                "sriovnetworknodepolicies",
                "sriovnetworknodestates",
                "sriovoperatorconfigs",
            )
        ),
    ),
    installations=(HELM,),
    configs=("sriov-network-operator",),
    nodes=(ClusterNode("worker-1", LABEL, True),),
    daemon=Workload("sriov-network-config-daemon", "sriov-network-operator", 1, 1, (), ("worker-1",)),
    states=(NodeState("worker-1", sync_status="Succeeded"),),
    multus=(Workload("kube-multus-ds", "kube-system", 1, 1, (), ("worker-1",)),),
    namespace="sriov-network-operator",
)


ALL = OperatorsSeen(
    controllers=(
        Controller("node-feature-discovery", "node-feature-discovery/nfd-master", "v0.18.3", 1, 1, "helm", "nfd"),
        Controller(
            "sriov-network-operator",
            "sriov-network-operator/sriov-network-operator",
            "v1.6.0",
            1,
            1,
            "helm",
            "sriov-network-operator",
        ),
    )
)


def look(
    seen: typing.Optional[OperatorFacts] = GOOD, nodes: tuple[str, ...] = ("worker-1",), **facts: typing.Any
) -> tuple[Finding, ...]:
    return check(
        INTENT, Facts(nodes, seen, **{"rights": RightsFacts(40), "images": ImageFacts(), "needed": ALL, **facts})
    )


def only(findings: tuple[Finding, ...], name: str) -> Finding:
    (found,) = [finding for finding in findings if finding.check == name]
    return found


def bad(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {finding.check: finding.status for finding in findings if finding.status != "pass"}


def test_all_in_place() -> None:
    findings = look()
    assert bad(findings) == {}
    assert {finding.check.split(".")[1] for finding in findings} == {
        "rights",
        "read",
        "needed",
        "definition",
        "image",
        "single",
        "version",
        "ready",
        "resource_prefix",
        "config",
        "multus",
        "pods",
        "node",
        "label",
        "daemon",
        "rollout",
    }


def test_facts_survive_the_way_through_ansible() -> None:
    facts = Facts(("worker-1",), GOOD)
    assert load(Facts, to_data(facts), "facts") == facts


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"installations": ()}, {"operators.single": "fail"}),
        (
            {"installations": (HELM, dataclasses.replace(HELM, origin="nvidia-network-operator"))},
            {"operators.single": "fail"},
        ),
        (
            {"installations": (dataclasses.replace(HELM, deployment=Workload("op", "elsewhere", 1, 1)),)},
            {"operators.single": "fail"},
        ),
        ({"installations": (dataclasses.replace(HELM, version=""),)}, {"operators.version": "warn"}),
        (
            {"installations": (dataclasses.replace(HELM, resource_prefix="nvidia.com"),)},
            {"operators.resource_prefix": "fail"},
        ),
        ({"installations": (dataclasses.replace(HELM, resource_prefix=""),)}, {"operators.resource_prefix": "warn"}),
        (
            {"installations": (dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0)),)},
            {"operators.ready": "fail"},
        ),
        # scaled to 0 is 0 of 0 pods, and no operator
        (
            {
                "installations": (
                    dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0, wanted=0)),
                )
            },
            {"operators.ready": "fail"},
        ),
        ({"configs": ("default",)}, {"operators.config": "fail"}),
        ({"daemon": None}, {"operators.daemon": "fail"}),
        ({"daemon": dataclasses.replace(typing.cast(Workload, GOOD.daemon), nodes=())}, {"operators.daemon": "fail"}),
        # the daemon runs before it has looked at its node, and until then the webhook knows no NIC there
        ({"states": ()}, {"operators.daemon": "fail"}),
        ({"states": (NodeState("worker-1"),)}, {"operators.daemon": "fail"}),
        (
            {"installations": (dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, wanted=2)),)},
            {"operators.ready": "warn"},
        ),
        # what its own numbers say takes in nodes of others: the node counts
        ({"multus": (Workload("kube-multus-ds", "kube-system", 9, 1, (), ("worker-1",)),)}, {}),
        (
            {"multus": (Workload("kube-multus-ds", "kube-system", 9, 9, (), ("theirs-1",)),)},
            {"operators.multus": "fail"},
        ),
        ({"multus": (Workload("kube-multus-ds", "kube-system", 0, 0),)}, {"operators.multus": "fail"}),
        ({"multus": (Workload("amd64", "m", 1, 0), Workload("arm64", "m", 1, 1, (), ("worker-1",)))}, {}),
        (
            {"multus": (Workload("kube-multus-ds", "kube-system", 2, 2),), "errors": ("GET pods: forbidden",)},
            {"operators.multus": "unknown", "operators.read": "unknown"},
        ),
        ({"multus": ()}, {"operators.multus": "warn"}),
        ({"multus": (), "multus_pods": 3}, {}),
        ({"errors": ("GET /apis/apps/v1/deployments: forbidden",)}, {"operators.read": "unknown"}),
        ({"crds": GOOD.crds[2:]}, {"operators.definition": "fail"}),
        ({"nodes": ()}, {"operators.node": "fail"}),
        ({"nodes": (ClusterNode("worker-1", LABEL, False),)}, {"operators.node": "fail"}),
        ({"nodes": (ClusterNode("worker-1", LABEL, True, True),)}, {"operators.node": "fail"}),
    ],
)
def test_each_fault_is_one_finding(changes: dict[str, typing.Any], expected: dict[str, str]) -> None:
    assert bad(look(dataclasses.replace(GOOD, **changes))) == expected


def test_a_node_without_multus_is_named() -> None:
    seen = dataclasses.replace(GOOD, nodes=(*GOOD.nodes, ClusterNode("worker-2", LABEL, True)))
    found = only(look(seen, nodes=("worker-1", "worker-2")), "operators.multus")
    assert (found.status, found.measured) == (
        "fail",
        "kube-system/kube-multus-ds: ready on 1 of 2 nodes, not on: worker-2",
    )


def test_nothing_read_and_no_node_are_unknown() -> None:
    assert bad(look(None)) == {"operators.read": "unknown"}
    assert bad(look(nodes=())) == {"operators.node": "unknown"}
    absent = only(look(dataclasses.replace(GOOD, nodes=(ClusterNode(""), ClusterNode("worker-9")))), "operators.node")
    assert absent.measured == f"no Node {absent.subject} in the cluster; its Nodes: worker-9"


def test_what_the_pods_wait_for_is_named() -> None:
    work = dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, ready=0))
    seen = dataclasses.replace(
        GOOD, installations=(work,), troubles=("sriov-network-operator-7f49: ErrImagePull: no such host",)
    )
    assert "ErrImagePull: no such host" in only(look(seen), "operators.ready").why


def test_pods_of_the_operator_that_are_not_ready_are_told_and_close_nothing() -> None:
    seen = dataclasses.replace(
        GOOD, troubles=("operator-webhook-x7: CrashLoopBackOff: exit code 2", "sriov-device-plugin-9: Pending")
    )
    told = [finding for finding in look(seen) if finding.check == "operators.pods"]
    assert [(finding.subject, finding.status, finding.measured) for finding in told] == [
        ("Pod operator-webhook-x7", "warn", "CrashLoopBackOff: exit code 2"),
        ("Pod sriov-device-plugin-9", "warn", "Pending"),
    ]
    many = [
        finding
        for finding in look(dataclasses.replace(GOOD, troubles=tuple(f"pod-{n}: Pending" for n in range(25))))
        if finding.check == "operators.pods"
    ]
    assert len(many) == 21 and many[-1].measured == "25 pods not ready, 5 without a finding of their own"


def test_a_pod_of_the_operator_without_its_image_is_told_by_the_kubelet_s_words() -> None:
    seen = dataclasses.replace(GOOD, troubles=("operator-webhook-x7: ErrImagePull: lookup quay.io: no such host",))
    found = only(look(seen), "operators.pods")
    assert found.status == "warn" and "cannot reach the registry" in found.why
    assert (
        "spec.noProxy" in found.remedy
        and "kubectl -n sriov-network-operator describe pod operator-webhook-x7" in found.remedy
    )


SUCCEEDED = OlmObject(
    "ClusterServiceVersion", "sriov-network-operator.v4.18", "sriov-network-operator", "Succeeded", "", "4.18.0"
)
SUBSCRIBED = OlmObject(
    "Subscription", "sub", "sriov-network-operator", "AtLatestKnown", "", "sriov-network-operator.v4.18"
)


@pytest.mark.parametrize(
    ("objects", "status", "why"),
    [
        ((SUCCEEDED, SUBSCRIBED), None, ""),
        (
            (dataclasses.replace(SUCCEEDED, phase="Failed", message="TooManyOperatorGroups"),),
            "fail",
            "TooManyOperatorGroups",
        ),
        ((dataclasses.replace(SUCCEEDED, phase="Installing"),), "fail", "OLM has reported no progress"),
        (
            (dataclasses.replace(SUBSCRIBED, version="", message="ResolutionFailed: no operators found"),),
            "fail",
            "no operators found",
        ),
        (
            (SUCCEEDED, dataclasses.replace(SUBSCRIBED, message="InstallPlanPending: RequiresApproval")),
            "warn",
            "RequiresApproval",
        ),
        ((), "unknown", "no ClusterServiceVersion of the operator was found"),
    ],
)
def test_how_far_olm_is(objects: tuple[OlmObject, ...], status: typing.Optional[str], why: str) -> None:
    found = look(
        dataclasses.replace(GOOD, installations=(dataclasses.replace(HELM, origin="olm", version=""),), olm=objects)
    )
    bads = [finding for finding in found if finding.check == "operators.olm" and finding.status != "pass"]
    assert [finding.status for finding in bads] == ([status] if status else [])
    assert all(why in finding.why for finding in bads)
    assert only(found, "operators.version").status == ("pass" if SUCCEEDED in objects else "warn")


def test_a_plan_waits_for_an_operator_that_would_be_installed_and_not_until_a_second_one_goes() -> None:
    """A plan of a cluster without the operator goes on to what the operator would make."""
    none = only(look(dataclasses.replace(GOOD, installations=())), "operators.single")
    assert none.remedy.startswith("Install the operator as the finding operators.needed describes"), (
        "which knows whether operators_install is set"
    )
    nowhere = dataclasses.replace(HELM, deployment=dataclasses.replace(HELM.deployment, namespace=""))
    unnamed = only(look(dataclasses.replace(GOOD, installations=(nowhere,))), "operators.single")
    assert (unnamed.status, unnamed.measured.partition("/")[0]) == ("fail", "no namespace")
    assert "without its namespace, so they are damaged" in unnamed.why and "operator_namespace" not in unnamed.remedy
    two = only(look(dataclasses.replace(GOOD, installations=(HELM, HELM))), "operators.single")
    elsewhere = dataclasses.replace(HELM, deployment=Workload("op", "elsewhere", 1, 1))
    there = only(look(dataclasses.replace(GOOD, installations=(elsewhere,))), "operators.single")
    assert [may_resolve(finding, {"operators"}) for finding in (none, two, there)] == [True, False, False]
    assert not may_resolve(none, {"tuning"})


def test_an_operator_that_olm_has_not_made_yet() -> None:
    found = only(
        look(dataclasses.replace(GOOD, installations=(), olm=(dataclasses.replace(SUCCEEDED, phase="Failed"),))),
        "operators.single",
    )
    assert "see the findings operators.olm" in found.why


NETDEVS = (Netdev("ib0", ""),)


def hca(total: typing.Optional[int], device_class: str = "0207", netdevs: tuple[Netdev, ...] = NETDEVS) -> ObservedHcas:
    function = PciFunction("0000:3c:00.0", "15b3", "1021", device_class)
    return ObservedHcas(
        NodeHcas((Hca("mlx5_0", netdevs=netdevs, pci=function, sriov=Sriov(total, 0) if total is not None else None),))
    )


NFD = {"feature.node.kubernetes.io/cpu-model.id": "143"}
WORKER = FeatureDiscovery(Workload("nfd-worker", "nfd", 1, 1, (), ("worker-1",)), config=WorkerConfig())
CAPABLE, PCI = "network-sriov.capable", "pci-15b3.sriov.capable"


def told(**config: tuple[str, ...]) -> tuple[FeatureDiscovery, ...]:
    return (dataclasses.replace(WORKER, config=WorkerConfig(**config)),)


@pytest.mark.parametrize(
    ("key", "labels", "hcas", "discovery", "why"),
    [
        # the metal
        (CAPABLE, NFD, ObservedHcas(NodeHcas(())), (WORKER,), "no network function on PCI"),
        (
            CAPABLE,
            NFD,
            hca(None),
            (WORKER,),
            "VFs offered (sriov_totalvfs): mlx5_0 absent",
        ),
        (CAPABLE, NFD, hca(0), (WORKER,), "VFs offered (sriov_totalvfs): mlx5_0 0"),
        # who looks
        (CAPABLE, NFD, hca(16), (), "the cluster has no DaemonSet of nfd-worker"),
        (CAPABLE, NFD, hca(16), None, "is unknown, because its workers could not be read"),
        (
            CAPABLE,
            NFD,
            hca(16),
            (dataclasses.replace(WORKER, worker=Workload("w", "nfd", 1, 1)),),
            "(nfd/w) runs on the node: the nodeSelector",
        ),
        (
            CAPABLE,
            NFD,
            hca(16),
            (
                dataclasses.replace(
                    WORKER, worker=Workload("w", "nfd", 1, 0), pods={"worker-1": "ErrImagePull: no such host"}
                ),
            ),
            "on the node is not ready: ErrImagePull: no such host",
        ),
        (CAPABLE, {}, hca(16), (WORKER,), "nfd-master does not write the labels"),
        # what it is told
        (
            CAPABLE,
            NFD,
            hca(16),
            told(sources=("pci",)),
            "creates no labels of its source network, because core.labelSources is pci",
        ),
        (CAPABLE, NFD, hca(16), told(sources=("all", "-network")), "creates no labels of its source network"),
        (CAPABLE, NFD, hca(16, netdevs=()), (WORKER,), "no function with SR-IOV has a network interface: mlx5_0"),
        (
            PCI,
            NFD,
            hca(16),
            told(classes=("0200", "03", "12")),
            "have PCI class 0207, but the worker creates labels only for the classes 0200, 03, 12",
        ),
        (
            PCI,
            NFD,
            hca(16),
            told(classes=("02",)),
            "With deviceLabelFields class, vendor, the worker names the label pci-0207_15b3",
        ),
        # nothing speaks against it
        (CAPABLE, NFD, hca(16), (WORKER,), "runs on the node, but has not set the label"),
        (PCI, NFD, hca(16), told(classes=("0207",), fields=("vendor",)), "runs on the node, but has not set the label"),
        (
            PCI,
            NFD,
            hca(16),
            (dataclasses.replace(WORKER, config=None, unread="configmaps is forbidden"),),
            "could not be read: configmaps is forbidden",
        ),
        # what the node did not say must not lead to a cause
        (
            PCI,
            NFD,
            ObservedHcas(error="unreachable"),
            (WORKER,),
            "has not set the label to this value. The HCAs of the node were not read, so they are not part of this"
            " explanation: unreachable",
        ),
        (
            CAPABLE,
            {},
            None,
            (),
            (
                "the cluster has no DaemonSet of nfd-worker. The HCAs of the node were not read, so they are not part"
                " of this explanation: the node was not queried"
            ),
        ),
        ("rail-group", {}, hca(16), (WORKER,), "has not set the label"),
    ],
)
def test_why_the_label_is_absent(
    key: str,
    labels: dict[str, str],
    hcas: typing.Optional[ObservedHcas],
    discovery: typing.Optional[tuple[FeatureDiscovery, ...]],
    why: str,
) -> None:
    node = ClusterNode("worker-1", labels if key != "rail-group" else NFD, True)
    found = check_label(
        ClusterIntent(node_selector={f"feature.node.kubernetes.io/{key}": "true"}), node, hcas, discovery
    )
    assert (found.check, found.subject, found.status) == ("operators.label", "worker-1", "fail")
    assert why in f"{found.why}"


def test_a_label_of_one_s_own_is_nobody_s_to_set() -> None:
    found = check_label(ClusterIntent(node_selector={"rdma": "yes"}), ClusterNode("worker-1"), hca(None), ())
    assert "No operator sets this label automatically" in found.why
    assert (
        only(look(dataclasses.replace(GOOD, nodes=(ClusterNode("worker-1", {}, True),))), "operators.label").status
        == "fail"
    )


def test_serving_leaves_out_nodes_without_the_label() -> None:
    seen = dataclasses.replace(GOOD, nodes=(*GOOD.nodes, ClusterNode("worker-2", {}, True)))
    assert list_missing(ClusterIntent(), seen, ("worker-1", "worker-2")) == ()
    assert list_missing(ClusterIntent(), dataclasses.replace(seen, daemon=None), ("worker-1", "worker-2")) == (
        "worker-1: no DaemonSet",
    )
    says = dataclasses.replace(seen, daemon=None, says="secretName: Required value")
    assert list_missing(ClusterIntent(), says, ("worker-1",)) == (
        "worker-1: no DaemonSet; the operator reports: secretName: Required value",
    )
    assert list_missing(ClusterIntent(), dataclasses.replace(seen, installations=(), troubles=("a: waits",)), ()) == (
        "SR-IOV network operator: none",
        "a: waits",
    )


def judged(
    seen: OperatorFacts, *checks: str, nodes: tuple[str, ...] = ("worker-1",), intent: Intent = INTENT
) -> list[tuple[str, ...]]:
    """Check, subject and status of each finding of these checks."""
    findings = check(intent, Facts(nodes, seen, rights=RightsFacts(40), images=ImageFacts()))
    return [(item.check, item.subject, item.status) for item in findings if item.check in checks]


@pytest.mark.parametrize(
    ("changes", "name", "subject", "status"),
    [
        ({}, "resource_prefix", "resource prefix", "pass"),
        (
            {"installations": (dataclasses.replace(HELM, resource_prefix=""),)},
            "resource_prefix",
            "resource prefix",
            "warn",
        ),
        (
            {"installations": (dataclasses.replace(HELM, resource_prefix="nvidia.com"),)},
            "resource_prefix",
            "resource prefix",
            "fail",
        ),
        ({}, "config", "SriovOperatorConfig default", "pass"),
        ({"configs": ()}, "config", "SriovOperatorConfig default", "fail"),
        ({}, "node", "worker-1", "pass"),
        ({"nodes": ()}, "node", "worker-1", "fail"),
        ({"nodes": (ClusterNode("worker-1", LABEL, False),)}, "node", "worker-1", "fail"),
        ({"nodes": (ClusterNode("worker-1", LABEL, True, unschedulable=True),)}, "node", "worker-1", "fail"),
        ({}, "label", "worker-1", "pass"),
        ({}, "daemon", "worker-1", "pass"),
        ({"states": ()}, "daemon", "worker-1", "fail"),
        ({"daemon": dataclasses.replace(typing.cast(Workload, GOOD.daemon), nodes=())}, "daemon", "worker-1", "fail"),
        ({"daemon": None}, "daemon", "worker-1", "fail"),
        (
            {"olm": (SUCCEEDED,)},
            "olm",
            "ClusterServiceVersion sriov-network-operator/sriov-network-operator.v4.18",
            "pass",
        ),
        (
            {"olm": (dataclasses.replace(SUBSCRIBED, version=""),)},
            "olm",
            "Subscription sriov-network-operator/sub",
            "fail",
        ),
        (
            {"olm": (dataclasses.replace(SUBSCRIBED, message="wait"),)},
            "olm",
            "Subscription sriov-network-operator/sub",
            "warn",
        ),
    ],
)
def test_each_finding_accuses_its_own_object(
    changes: dict[str, typing.Any], name: str, subject: str, status: str
) -> None:
    assert judged(dataclasses.replace(GOOD, **changes), f"operators.{name}") == [(f"operators.{name}", subject, status)]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({}, "pass", id="all replaced"),
        pytest.param({"ready": 0}, "fail", id="no pod is of the present template"),
        pytest.param({"wanted": 2}, "warn", id="on a node of others"),
    ],
)
def test_a_daemon_in_the_middle_of_a_rollout_is_no_pass(changes: dict[str, typing.Any], status: str) -> None:
    daemon = dataclasses.replace(typing.cast(Workload, GOOD.daemon), **changes)
    subject = f"DaemonSet {daemon.namespace}/{daemon.name}"
    seen = dataclasses.replace(GOOD, daemon=daemon)
    assert judged(seen, "operators.rollout") == [("operators.rollout", subject, status)]
    assert bool(list_missing(ClusterIntent(), seen, ("worker-1",))) == (status == "fail")


@pytest.mark.parametrize(
    ("image", "warned"),
    [
        pytest.param("r:5000/sriov-network-config-daemon:v1.2.0", True, id="of another release"),
        pytest.param("r:5000/sriov-network-config-daemon:v1.6.0", False, id="of its own"),
        pytest.param("r:5000/sriov-network-config-daemon@sha256:" + "a" * 64, False, id="a digest tells no release"),
        pytest.param("r:5000/sriov-network-config-daemon", False, id="no tag"),
    ],
)
def test_a_daemon_of_another_release_than_its_operator_is_told(image: str, warned: bool) -> None:
    daemon = dataclasses.replace(typing.cast(Workload, GOOD.daemon), images=(image,))
    deployment = dataclasses.replace(HELM.deployment, images=("r:5000/sriov-network-operator:v1.6.0",))
    seen = dataclasses.replace(GOOD, daemon=daemon, installations=(dataclasses.replace(HELM, deployment=deployment),))
    assert [status for _check, _subject, status in judged(seen, "operators.rollout")] == ["pass"] + ["warn"] * warned


def test_definitions_are_told_of_by_their_names() -> None:
    absent = f"sriovibnetworks.{GROUP}"
    found = judged(
        dataclasses.replace(GOOD, crds=tuple(name for name in GOOD.crds if name != absent)), "operators.definition"
    )
    assert ("operators.definition", absent, "fail") in found
    assert {subject for _check, subject, status in found if status == "pass"} == set(GOOD.crds) - {absent}


def test_pods_on_the_pod_network_need_no_multus() -> None:
    baseline = dataclasses.replace(
        INTENT,
        fabrics=(dataclasses.replace(INTENT.fabrics[0], profile="pod_network", virtual_functions=0, resource_name=""),),
    )
    assert judged(dataclasses.replace(GOOD, multus=()), "operators.multus", intent=baseline) == []
    assert judged(dataclasses.replace(GOOD, multus=()), "operators.multus") == [("operators.multus", "multus", "warn")]


def test_an_operator_that_serves_is_not_waited_for_though_a_pod_of_somebody_has_trouble() -> None:
    assert (
        list_missing(ClusterIntent(), dataclasses.replace(GOOD, troubles=("web-1: ErrImagePull",)), ("worker-1",)) == ()
    )
