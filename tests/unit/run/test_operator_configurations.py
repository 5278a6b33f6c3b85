# SPDX-License-Identifier: GPL-3.0-or-later

"""With operators_install, a run configures only the operators that it installed itself through OLM, and creates no
ClusterPolicy whose driver disturbs nodes that the intent protects.
"""

from __future__ import annotations

import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.needed import check, list_missing
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    OperatorUpgrade,
    UpgradeEffect,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster as Api
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.nfd_and_olm import olm_object
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import OperatorRequests
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.configurations import plan_configurations
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect
from ansible_collections.linerate.rdma.tests.unit.check.test_needed_operators import (
    NODES,
    PEERMEM,
    helm,
    installed_by_olm,
    intent_of,
    one,
    seen_of,
)
from ansible_collections.linerate.rdma.tests.unit.run.test_driver_plan import Cluster, Data, node, pod

INTENT = intent_of("pod_network", cluster=PEERMEM)
EXAMPLE = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "spec": {"driver": {"enabled": True}}}


class Examples:
    """A cluster whose ClusterServiceVersions have an example."""

    def get(self, _kind: str, _namespace: str, _name: str) -> Data:
        return {"metadata": {"annotations": {"alm-examples": json.dumps([EXAMPLE])}}}


def gpu_operator(ours: bool) -> OperatorsSeen:
    there = {"gpu-operator": installed_by_olm("gpu-operator", ours)}
    return seen_of(helm("gpu-operator", origin="olm", release=""), olm=True, packages=there, install=True)


def configure(seen: OperatorsSeen, *refused: str) -> tuple[tuple[Data, ...], OperatorsSeen, list[OperatorUpgrade]]:
    asked = []

    def ask(upgrade: OperatorUpgrade) -> UpgradeEffect:
        asked.append(upgrade)
        return UpgradeEffect(("a0",), refused)

    cluster = typing.cast(Api, Examples())
    made, left = plan_configurations(cluster, INTENT, seen, OperatorRequests(), ask)
    return made, OperatorsSeen(**{**vars(seen), "left": left}), asked


def test_operator_of_an_admin_is_left_to_the_admin_with_the_command() -> None:
    made, seen, asked = configure(gpu_operator(ours=False))
    assert (made, asked) == ((), [])
    finding = one(check(INTENT, seen, NODES), "gpu-operator")
    assert finding.status == "fail" and "the admin who installed the operator" in finding.why
    assert "kubectl create -f -" in finding.remedy and '"rdma":{"enabled":true}' in finding.remedy
    assert "managed-by" not in finding.remedy
    # no wait makes an admin decide
    assert not any("gpu-operator" in line for line in list_missing(INTENT, seen, NODES))


def test_operator_of_a_run_is_configured_if_the_gate_permits_its_driver() -> None:
    made, seen, asked = configure(gpu_operator(ours=True))
    assert [item["kind"] for item in made] == ["ClusterPolicy"] and seen.left == {}
    assert [(item.creates, item.driver["enabled"]) for item in asked] == [("gpu-cluster-policy", True)]
    made, seen, _asked = configure(gpu_operator(ours=True), "a0: no controller recreates these pods: shop/train.")
    assert made == ()
    finding = one(check(INTENT, seen, NODES), "gpu-operator")
    assert finding.status == "fail" and "shop/train" in finding.why and "restarts the driver of 1 node" in finding.why


@pytest.mark.parametrize(
    ("labels", "marks", "ours"),
    [
        ({"app.kubernetes.io/managed-by": "linerate.rdma"}, {}, True),
        ({}, {}, False),
        # a copy that a user made, and an object that Argo CD owns
        (
            {"app.kubernetes.io/managed-by": "linerate.rdma"},
            {"managedFields": [{"manager": "kubectl-create"}]},
            False,
        ),
        (
            {"app.kubernetes.io/managed-by": "linerate.rdma"},
            {"annotations": {"argocd.argoproj.io/tracking-id": "a"}},
            False,
        ),
    ],
)
def test_subscription_of_a_run_is_known_by_its_label(labels: Data, marks: Data, ours: bool) -> None:
    item = {
        "kind": "Subscription",
        "metadata": {"name": "gpu", "namespace": "nvidia-gpu-operator", "labels": labels, **marks},
        "spec": {"name": "gpu-operator-certified"},
        "status": {"installedCSV": "gpu-operator-certified.v26.3.3"},
    }
    found = olm_object(item, "gpu-operator")
    assert found is not None and found.ours is ours


def serving(name: str, labels: Data, **resources: str) -> Data:
    found = node(name, labels)
    found["status"] = {**found.get("status", {}), "allocatable": resources}
    return found


def test_new_driver_disturbs_the_nodes_whose_gpus_pods_can_already_request() -> None:
    nodes = (
        serving("a0", {}, **{"nvidia.com/gpu": "8"}),
        serving("other-team", {}, **{"nvidia.com/mig-1g.5gb": "2"}),
        serving("idle", {}, **{"nvidia.com/gpu": "0", "cpu": "8"}),
        serving("own-driver", {"nvidia.com/gpu.deploy.driver": "false"}, **{"nvidia.com/gpu": "8"}),
    )
    cluster = typing.cast(Api, Cluster(Node=nodes, ClusterPolicy=(), Pod=(pod("web", "idle"),)))
    create = OperatorUpgrade("gpu-operator", "ClusterPolicy gpu is created", {"enabled": True}, creates="gpu")
    effect = read_upgrade_effect(cluster, create, ("a0", "idle"), ClusterIntent(disruption="none"))
    assert effect.nodes == ("a0", "other-team (not in the inventory)")
    assert {"a0", "other-team (not in the inventory)"} <= {text.partition(":")[0] for text in effect.refused}
    without = OperatorUpgrade("gpu-operator", "ClusterPolicy gpu is created", {"enabled": False}, creates="gpu")
    assert read_upgrade_effect(cluster, without, ("a0",), ClusterIntent(disruption="none")) == UpgradeEffect()
