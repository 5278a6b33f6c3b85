# SPDX-License-Identifier: GPL-3.0-or-later

"""A Deployment that a tenant made in the name of an operator is none: what it says would stand for the operator, and
its namespace for that of the operator."""

from __future__ import annotations

import builtins
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import jobs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import operators, sriov_operator
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.stack import account_of, list_accounts


class Api:
    """What has been asked for, and nothing of all other kinds."""

    def __init__(self, **kinds: typing.Union[builtins.list[Resource], ApiError]) -> None:
        self.kinds = kinds

    def pages(
        self, kind: str, namespace: str = "", selector: str = "", *, only: typing.Any = None
    ) -> typing.Iterator[Resource]:
        found = self.kinds.get(kind, [])
        if isinstance(found, ApiError):
            raise found
        yield from filter(only, found)

    def list(self, kind: str, *arguments: str, **_more: str) -> Listing:
        return Listing(tuple(self.pages(kind)), "1")

    def serves(self, _group: str) -> bool:
        return False

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        for item in self.pages(kind):
            if (item["metadata"].get("namespace", ""), item["metadata"]["name"]) == (namespace, name):
                return item
        raise ApiError(404, "NotFound", "not found", f"GET {name}")


def kueue(namespace: str, account: str = "kueue-controller-manager", **more: typing.Any) -> Resource:
    metadata = {
        "name": "kueue-controller-manager",
        "namespace": namespace,
        "labels": {"app.kubernetes.io/version": f"of {namespace}"},
    }
    spec = {
        "serviceAccountName": account,
        "containers": [{"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.19.2"}],
        **more,
    }
    return {"metadata": metadata, "spec": {"replicas": 1, "template": {"spec": spec}}, "status": {"readyReplicas": 1}}


def binding(*accounts: tuple[str, str], kind: str = "ServiceAccount") -> Resource:
    subjects = [{"kind": kind, "namespace": namespace, "name": name} for namespace, name in accounts]
    return {
        "metadata": {"name": "kueue-manager-rolebinding"},
        "subjects": subjects,
        "roleRef": {"kind": "ClusterRole", "name": "kueue-manager-role"},
    }


def config(namespace: str, frameworks: str) -> Resource:
    data = {"controller_manager_config.yaml": f"integrations: {{frameworks: [{frameworks}]}}"}
    return {"metadata": {"name": "kueue-manager-config", "namespace": namespace}, "data": data}


OURS = binding(("kueue-system", "kueue-controller-manager"))
ELSE = binding(("kube-system", "coredns"))
NO_SUBJECTS = {"metadata": {"name": "nobody"}, "roleRef": {}}


def homes(api: Api) -> list[list[str]]:
    """Namespaces of Kueue, by each way that looks for it."""
    cluster = typing.cast(Cluster, api)
    found = (
        jobs.observe_stack(cluster, []).controllers,
        operators.observe(cluster, Intent(()), None, [], False).controllers,
    )
    return [[item.name.partition("/")[0] for item in seen] for seen in found]


def test_a_tenants_deployment_is_no_operator() -> None:
    tenant = kueue("a-tenant")
    assert homes(Api(Deployment=[tenant], ClusterRoleBinding=[ELSE, NO_SUBJECTS])) == [[], []]
    # the tenant comes first in the list, and would be asked for its configuration
    world = {"ConfigMap": [config("a-tenant", "batch/job"), config("kueue-system", "kubeflow.org/pytorchjob")]}
    api = Api(Deployment=[tenant, kueue("kueue-system")], ClusterRoleBinding=[ELSE, OURS], **world)
    assert homes(api) == [["kueue-system"], ["kueue-system"]]
    assert jobs.observe_stack(typing.cast(Cluster, api), []).frameworks == ("kubeflow.org/pytorchjob",)


@pytest.mark.parametrize(
    "given",
    [
        binding(("a-tenant", "kueue-controller-manager"), kind="Group"),
        binding(("kueue-system", "default")),
        binding(("", "kueue")),
    ],
)
def test_the_right_of_another_account_is_not_that_of_the_deployment(given: Resource) -> None:
    assert homes(Api(Deployment=[kueue("a-tenant")], ClusterRoleBinding=[given])) == [[], []]


def test_where_rights_are_not_known_it_is_said() -> None:
    refused = ApiError(403, "Forbidden", "cannot list clusterrolebindings", "GET")
    found = jobs.observe_stack(typing.cast(Cluster, Api(Deployment=[kueue("a")], ClusterRoleBinding=refused)), [])
    assert len(found.controllers) == 1 and "clusterrolebindings" in " ".join(found.errors)
    # who knows no RBAC gives each the same rights
    none: tuple[typing.Union[list[Resource], ApiError], ...] = ([], ApiError(404, "NotFound", "no such kind", "GET"))
    for without in none:
        found = jobs.observe_stack(typing.cast(Cluster, Api(Deployment=[kueue("a")], ClusterRoleBinding=without)), [])
        assert len(found.controllers) == 1 and found.errors == ()


def test_the_account_of_a_deployment() -> None:
    assert account_of(kueue("a")) == "a/kueue-controller-manager"
    assert [account_of(kueue("a", "")), account_of(kueue("a", "", serviceAccount="old"))] == ["a/default", "a/old"]
    assert list_accounts(binding(("a", "b"), ("c", "d"))) == {"a/b", "c/d"}


def workload(kind: str, namespace: str, name: str, **container: typing.Any) -> Resource:
    spec = {"serviceAccountName": name, "containers": [{"name": name, "image": "x", **container}]}
    metadata = {"name": name, "namespace": namespace, "uid": f"of {namespace}"}
    return {"kind": kind, "metadata": metadata, "spec": {"replicas": 1, "template": {"spec": spec}}, "status": {}}


def test_a_tenants_workloads_are_neither_multus_nor_the_operator_of_sriov() -> None:
    """A DaemonSet of a tenant would have multus on nodes that have none, and a second operator would close the gate."""
    ours, theirs = ("sriov", "kube-system"), ("a-tenant", "a-tenant")
    operator = {"env": [{"name": "SRIOV_NETWORK_CONFIG_DAEMON_IMAGE", "value": "x"}]}
    deployments = [
        workload("Deployment", namespace, "sriov-network-operator", **operator) for namespace in (ours[0], theirs[0])
    ]
    daemons = [workload("DaemonSet", namespace, "kube-multus") for namespace in (ours[1], theirs[1])]
    bindings = [binding((ours[0], "sriov-network-operator")), binding((ours[1], "kube-multus"))]
    api = Api(Deployment=deployments, DaemonSet=daemons, ClusterRoleBinding=bindings)
    found = sriov_operator.observe(typing.cast(Cluster, api))
    assert [item.deployment.namespace for item in found.installations] == ["sriov"] and [
        item.namespace for item in found.multus
    ] == ["kube-system"]
    # without RBAC each counts
    found = sriov_operator.observe(typing.cast(Cluster, Api(Deployment=deployments, DaemonSet=daemons)))
    assert len(found.installations) == len(found.multus) == 2


def test_a_deployment_that_is_not_of_its_form_hides_no_operator() -> None:
    odd = kueue("a-tenant")
    odd["spec"]["template"]["spec"]["containers"] = "none"
    world = Api(
        Deployment=[odd, kueue("kueue-system")],
        ClusterRoleBinding=[{"metadata": {"name": "odd"}, "subjects": "none"}, OURS],
    )
    assert homes(world) == [["kueue-system"], ["kueue-system"]]
    errors = jobs.observe_stack(typing.cast(Cluster, world), []).errors
    assert [text.partition(":")[0] for text in errors] == [
        "Deployment kueue-controller-manager in namespace a-tenant",
        "ClusterRoleBinding odd",
    ]
