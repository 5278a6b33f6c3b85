# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods measure in a namespace of their own: with multus's namespaces isolated as well, and a tenant of the jobs'
namespace gets nothing of it."""

from __future__ import annotations

import json
import sys
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import ENFORCE
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE
from lab.processes import wait_until

from .conftest import MANAGED, SETTINGS, Lab
from .scenarios import BANDWIDTH, NETWORK, PODS_READY, alone
from .test_access import identity

pytestmark = pytest.mark.thorough

WORKERS = ("worker-1", "worker-2")
MULTUS = "/etc/cni/net.d/00-multus.conf"
TENANTS = "tenants"
#: whoever may edit the namespace of the jobs
EDIT = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": TENANTS, "namespace": "training"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": TENANTS}],
}


def pod(namespace: str, **spec: typing.Any) -> dict[str, typing.Any]:
    """A pod of a tenant."""
    container = {
        "name": "mine",
        "image": "localhost/rdma-tools:1",
        "imagePullPolicy": "Never",
        "command": ["sleep", "600"],
        **spec.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "namespace": namespace, "annotations": spec.pop("annotations", {})},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def gone(lab: Lab) -> bool:
    """Whether the namespace is gone: its deletion is asked for, and awaited by whoever needs it next."""
    return wait_until(lambda: NAMESPACE not in lab.namespaces(), 300)


def refusal(lab: Lab, kubeconfig: str, definition: typing.Mapping[str, typing.Any]) -> str:
    """Why the API server does not let a user make an object; empty when it does. A dry run."""
    script = (
        "import json, sys, kubernetes.config, kubernetes.dynamic\n"
        "client = kubernetes.dynamic.DynamicClient(kubernetes.config.new_client_from_config(sys.argv[1]))\n"
        "wanted = json.loads(sys.argv[2])\n"
        "kind = client.resources.get(api_version=wanted['apiVersion'], kind=wanted['kind'])\n"
        "try:\n"
        "    kind.create(body=wanted, namespace=wanted['metadata'].get('namespace'), dry_run='All')\n"
        "except kubernetes.dynamic.exceptions.ForbiddenError as error:\n"
        "    print(json.loads(error.body)['message'])\n"
    )
    done = lab.command("exec", sys.executable, "-c", script, kubeconfig, json.dumps(definition))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def isolated(lab: Lab) -> typing.Iterator[None]:
    """Multus lets pods have networks of their own namespace only, as on OpenShift."""

    def edit(command: str) -> None:
        for worker in WORKERS:
            done = lab.command("on", worker, f"sed -i '{command}' {MULTUS} && cat {MULTUS}")
            assert done.returncode == 0, done.stderr

    edit('s/"type": "multus",/"type": "multus", "namespaceIsolation": true,/')
    try:
        yield
    finally:
        edit('s/ "namespaceIsolation": true,//')


def test_pods_measure_where_multus_isolates_namespaces(lab: Lab, isolated: None) -> None:
    # a pod of another namespace gets no network of the jobs': the setting is in force
    with lab.present(pod("default", annotations={"k8s.v1.cni.cncf.io/networks": "training/macvlan-fast"})):

        def refused() -> bool:
            events = [
                item for item in lab.objects("v1/Event") if (item.get("involvedObject") or {}).get("name") == "mine"
            ]
            return any("namespace isolation" in str(item.get("message")) for item in events)

        assert wait_until(refused, 300), "multus does not isolate namespaces"
    run = lab.playbook(BANDWIDTH, variables={"rdma_fabrics": alone()})
    assert [finding for finding in run.findings("bandwidth", "pass") if finding["check"] == "bandwidth.measured"], (
        run.end
    )
    assert lab.objects("v1/Pod", MANAGED) == [] and gone(lab)


def test_a_tenant_of_the_jobs_namespace_gets_no_privileged_pod(lab: Lab) -> None:
    """Neither after the network was made, nor while pods measure; the level of the namespace is the admin's, and
    stays."""
    tenant = identity(lab.folder / "pki", TENANTS)
    privileged = {"container": {"securityContext": {"privileged": True}}}
    level = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training", "labels": {ENFORCE: "baseline"}}}
    lab.apply(level)
    try:
        with lab.present(EDIT):
            made = lab.playbook(NETWORK)
            assert made.code == 0, made.end
            assert refusal(lab, tenant, pod("training")) == ""
            with lab.running(BANDWIDTH, variables={"rdma_fabrics": alone()}) as playbook:
                playbook.await_text(PODS_READY)
                (there,) = [item for item in lab.objects("v1/Namespace") if item["metadata"]["name"] == NAMESPACE]
                assert {item["metadata"]["namespace"] for item in lab.objects("v1/Pod", MANAGED)} == {NAMESPACE}
                for wanted in (
                    pod("training", **privileged),
                    pod("training", volumes=[{"name": "root", "hostPath": {"path": "/"}}]),
                ):
                    assert "violates PodSecurity" in refusal(lab, tenant, wanted)
                network = {
                    "apiVersion": "k8s.cni.cncf.io/v1",
                    "kind": "NetworkAttachmentDefinition",
                    "metadata": {"name": "mine", "namespace": NAMESPACE},
                }
                for wanted in (pod(NAMESPACE), network):
                    assert f'in the namespace "{NAMESPACE}"' in refusal(lab, tenant, wanted)
                run = playbook.wait()
            assert there["metadata"]["labels"]["linerate.rdma/run"]
            assert [
                item
                for item in lab.objects("rbac.authorization.k8s.io/v1/RoleBinding")
                if item["metadata"]["namespace"] == NAMESPACE
            ] == []
            # it admits nobody's pods with IPC_LOCK, and pods measure all the same
            assert [
                finding for finding in run.findings("bandwidth", "pass") if finding["check"] == "bandwidth.measured"
            ], run.end
            (jobs,) = [item for item in lab.objects("v1/Namespace") if item["metadata"]["name"] == "training"]
            assert jobs["metadata"]["labels"][ENFORCE] == "baseline"
    finally:
        # without the label, which nobody else's field manager has
        lab.apply({**level, "metadata": {"name": "training"}})
    assert gone(lab)


def test_a_network_that_a_tenant_has_changed_is_not_measured(lab: Lab) -> None:
    """The one without an operator behind it, which nobody makes anew before stage network comes."""
    (found,) = [
        item
        for item in lab.objects("k8s.cni.cncf.io/v1/NetworkAttachmentDefinition")
        if item["metadata"]["name"] == "macvlan-fast"
    ]
    config = json.loads(found["spec"]["config"])
    config["plugins"].append({"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}})
    place = {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "metadata": {"name": "macvlan-fast", "namespace": "training"},
    }
    lab.apply({**place, "spec": {"config": json.dumps(config)}})
    try:
        run = lab.playbook(
            BANDWIDTH,
            variables={
                "rdma_fabrics": [fabric for fabric in SETTINGS["rdma_fabrics"] if fabric["name"] in ("fast", "pods")]
            },
        )
    finally:
        lab.apply({**place, "spec": {"config": found["spec"]["config"]}})
    for worker in WORKERS:
        finding = run.finding("bandwidth", "bandwidth.pod", f"fast {worker}")
        assert finding["status"] == "unknown" and "training/macvlan-fast: the chained plugins is" in finding["why"], (
            finding
        )
    assert [finding for finding in run.findings("bandwidth", "pass") if finding["check"] == "bandwidth.measured"], (
        "the other fabric is measured all the same"
    )
    assert gone(lab)


def test_what_a_killed_measurement_has_left_goes_with_the_next(lab: Lab) -> None:
    with lab.running(BANDWIDTH, variables={"rdma_fabrics": alone()}) as playbook:
        playbook.await_text(PODS_READY, 2)
        lab.command("exec", "pkill", "-KILL", "-f", "rdma_bandwidth")
        playbook.process.kill()
        playbook.process.wait()
    assert NAMESPACE in lab.namespaces()
    before = [item["metadata"]["uid"] for item in lab.objects("v1/Namespace") if item["metadata"]["name"] == NAMESPACE]
    seen = lab.playbook(NETWORK)
    assert seen.finding("network", "network.leftover", "cluster")["status"] == "pass", seen.end
    with lab.running(BANDWIDTH, variables={"rdma_fabrics": alone()}) as playbook:
        playbook.await_text(PODS_READY)
        assert [
            item["metadata"]["uid"] for item in lab.objects("v1/Namespace") if item["metadata"]["name"] == NAMESPACE
        ] != before
        run = playbook.wait()
    assert run.code == 0, run.end
    assert gone(lab)
