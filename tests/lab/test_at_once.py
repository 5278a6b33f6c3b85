# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster in use: two runs at once, and a run while pods of others have virtual functions."""

from __future__ import annotations

import datetime
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import NAME, NAMESPACE
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.pods import render_measuring_pod
from lab.processes import wait_until

from .conftest import MANAGED, Lab
from .scenarios import intent

LEASE = "coordination.k8s.io/v1/Lease"
VARIABLES = {"rdma_fabrics": intent()}


def held() -> list[dict[str, typing.Any]]:
    """The Lease of a run on another machine that is at work right now."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    told = {
        "linerate.rdma/run": "run-of-another",
        "linerate.rdma/host": "control-9",
        "linerate.rdma/module": "rdma_bandwidth",
    }
    spec = {
        "holderIdentity": "run-of-another@control-9",
        "leaseDurationSeconds": 600,
        "acquireTime": now,
        "renewTime": now,
    }
    return [
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "annotations": told},
            "spec": spec,
        }
    ]


def leases(lab: Lab) -> list[str]:
    return [item["spec"]["holderIdentity"] for item in lab.objects(LEASE) if item["metadata"]["name"] == NAME]


@pytest.mark.thorough
def test_two_runs_at_once_do_not_disturb_each_other(lab: Lab) -> None:
    second = Lab(lab.folder / "second")
    second.folder.mkdir()
    with lab.running("playbooks/bandwidth.yml", variables=VARIABLES) as playbook:
        playbook.await_text("pod is ready", 2)
        refused = second.playbook("playbooks/bandwidth.yml", variables=VARIABLES)
        first = playbook.wait()
    assert first.code == 0, first.end
    # one that is quick enough lets the second one in after its wait
    assert refused.code == 0 or "holds this cluster" in refused.output, refused.end
    assert (leases(lab), lab.objects("v1/Pod", MANAGED)) == ([], [])


@pytest.mark.thorough
def test_a_cluster_that_another_run_holds_is_left_alone(lab: Lab) -> None:
    before = lab.objects("sriovnetwork.openshift.io/v1/SriovNetworkNodePolicy")
    with lab.present(*held()):
        run = lab.playbook("playbooks/network.yml", variables=VARIABLES)
        assert leases(lab) == ["run-of-another@control-9"]
    measured = run.finding("network", "network.error", "stage network")["measured"]
    assert (
        run.code != 0 and "run run-of-another on host control-9" in measured and "kubectl delete lease" in measured
    ), run.end
    assert lab.objects("sriovnetwork.openshift.io/v1/SriovNetworkNodePolicy") == before


@pytest.mark.thorough
def test_a_run_while_pods_have_virtual_functions(lab: Lab) -> None:
    found = parse_intent(VARIABLES["rdma_fabrics"], None, {})
    (storage,) = [fabric for fabric in found.fabrics if fabric.name == "storage"]
    job = render_measuring_pod(storage, found.cluster, "worker-1")
    job["metadata"].update(name="somebody-s-job", labels={"app": "job"})
    with lab.present(job):
        running = ("v1/Pod", "app=job")
        assert wait_until(lambda: [item["status"]["phase"] for item in lab.objects(*running)] == ["Running"], 120, 2), (
            lab.objects(*running)
        )
        for stage in ("discover", "virtual_functions"):
            run = lab.playbook(f"playbooks/{stage}.yml", variables=VARIABLES)
            assert run.code == 0, run.end
        hcas = run.fact("hcas_after_network", "worker-1")["hcas"]
        assert [hca["held"]["netdevs"][0]["name"] for hca in hcas if hca["held"]] == ["net1"]
        # the simulated HCAs of the other fabric have no VFs
        assert [
            finding
            for finding in run.findings("virtual_functions", "unknown", "fail")
            if finding["subject"].startswith("storage")
        ] == []
