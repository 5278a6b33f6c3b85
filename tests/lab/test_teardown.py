# SPDX-License-Identifier: GPL-3.0-or-later

"""Teardown takes all of it back; on the bare cluster that it leaves, check mode shows what would be made and makes
nothing.

These run last: they leave the lab without an operator.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from lab.processes import wait_until

from .conftest import MANAGED, SETTINGS, Lab
from .scenarios import OPERATORS

OPERATOR = "sriov-network-operator"
#: a namespace with the label of the collection
STRANGE = "linerate-strange"
MADE = (
    "v1/Namespace",
    "apps/v1/Deployment",
    "apps/v1/DaemonSet",
    "v1/ConfigMap",
    "v1/Secret",
    "v1/ServiceAccount",
    "rbac.authorization.k8s.io/v1/ClusterRole",
)
CUSTOM = ("SriovNetworkNodePolicy", "SriovNetwork", "SriovIBNetwork", "SriovOperatorConfig", "SriovNetworkNodeState")


def everything(lab: Lab) -> set[tuple[str, str, str, str]]:
    """Kind, namespace, name and version of all that the stages could make."""
    kinds = (
        *MADE,
        *(f"sriovnetwork.openshift.io/v1/{kind}" for kind in CUSTOM),
        "k8s.cni.cncf.io/v1/NetworkAttachmentDefinition",
    )
    found = ((kind, item["metadata"]) for kind in kinds for item in lab.objects(kind))
    return {
        (kind, metadata.get("namespace", ""), metadata["name"], metadata["resourceVersion"]) for kind, metadata in found
    }


def test_teardown_takes_back_what_the_stages_made(lab: Lab) -> None:
    run = lab.playbook("teardown.yml", variables={"teardown_operator": True})
    assert run.code == 0, run.end
    left = everything(lab)
    assert not [item for item in left if item[0].startswith(("sriovnetwork", "k8s.cni"))], left
    assert not [item for item in left if OPERATOR in (item[1], item[2])], left
    assert lab.objects("v1/Namespace", MANAGED) == []
    for node in lab.objects("v1/Node"):
        assert node["status"]["allocatable"].get("openshift.io/igb_storage", "0") == "0"
    for worker in ("worker-1", "worker-2"):
        assert lab.command("on", worker, "cat", "/sys/class/net/eth1/device/sriov_numvfs").stdout.strip() == "0"


def test_a_second_teardown_changes_nothing(lab: Lab) -> None:
    run = lab.playbook("teardown.yml", variables={"teardown_operator": True})
    assert run.code == 0, run.end
    assert run.recap("localhost", "changed") == 0


@pytest.mark.thorough
def test_check_mode_on_a_bare_cluster_shows_what_would_be_made_and_touches_nothing(lab: Lab) -> None:
    before = everything(lab)
    run = lab.playbook("site.yml", "--check", "--diff")
    assert everything(lab) == before
    assert run.code == 0, run.end
    assert "nothing is verified" in run.output and "GREEN" not in run.output, run.end
    changes = [change for record in run.records.values() for change in record["changes"]]
    assert any("SriovNetworkNodePolicy sriov-network-operator/linerate-storage" in change for change in changes), (
        changes
    )
    assert any("Helm release" in change for change in changes), changes
    assert "+  resourceName: igb_storage" in run.output
    # not installed and not proven is not a pass, but it is no failure of the intent either
    assert run.records["network"]["gate"] != "open"


@pytest.mark.thorough
def test_a_namespace_with_a_stranger_s_volume_claim_stays_until_the_claim_is_gone(lab: Lab) -> None:
    label, _equals, value = MANAGED.partition("=")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRANGE, "labels": {label: value}}}
    lab.apply(space, manager="linerate.rdma")
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}
    with lab.present(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": STRANGE},
            "spec": spec,
        }
    ):
        run = lab.playbook("teardown.yml", variables={"teardown_operator": True})
        assert run.code != 0 and STRANGE in lab.namespaces(), run.end
        assert [
            item["metadata"]["name"]
            for item in lab.objects("v1/PersistentVolumeClaim")
            if item["metadata"]["namespace"] == STRANGE
        ] == ["data"]
        # the text is wrapped
        said = " ".join(run.output.split())
        assert f"teardown.object Namespace {STRANGE}: fail" in said and "(1): PersistentVolumeClaim data" in said, (
            run.end
        )
    again = lab.playbook("teardown.yml", variables={"teardown_operator": True})
    assert again.code == 0 and STRANGE not in lab.namespaces(), again.end


@pytest.mark.thorough
def test_a_namespace_that_a_tenant_made_first_gets_no_operator(lab: Lab, tmp_path: pathlib.Path) -> None:
    """The tenant has Helm make a release of the operator's name in it, and then gives up their rights: the release is
    theirs all the same."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(
        "apiVersion: v2\nname: sriov-network-operator-chart\nversion: 0.0.1\n", encoding="utf-8"
    )
    bait = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bait}\n"
    (chart / "templates" / "bait.yaml").write_text(bait, encoding="utf-8")
    label, _equals, value = MANAGED.partition("=")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR, "labels": {label: value}}}
    group = "rbac.authorization.k8s.io"
    subject, role = (
        {"apiGroup": group, "kind": "User", "name": "mallory"},
        {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
    )
    metadata = {"name": "mallory", "namespace": OPERATOR}
    with lab.present(namespace):
        with lab.present(
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            }
        ):
            where = ("--namespace", OPERATOR, "--kubeconfig", ".lab/pki/admin.kubeconfig", "--kube-as-user", "mallory")
            made = lab.command("exec", ".lab/helm", "install", OPERATOR, str(chart), *where)
            assert made.returncode == 0, made.stderr
            seen = lab.playbook(OPERATORS)
            finding = seen.finding("operators", "operators.needed", OPERATOR)
            assert (
                seen.code != 0 and finding["status"] == "fail" and "RoleBinding mallory: User mallory" in finding["why"]
            ), finding
        seen = lab.playbook(OPERATORS)
        finding = seen.finding("operators", "operators.needed", OPERATOR)
        assert (
            finding["status"] == "fail"
            and "may have forged the release" in finding["why"]
            and "operators_trusted_namespaces" in finding["remedy"]
        ), finding
        records = lab.objects("v1/Secret", f"owner=helm,name={OPERATOR}")
        assert [item["metadata"]["labels"]["version"] for item in records] == ["1"]
        labels = next(item for item in lab.objects("v1/Namespace", MANAGED) if item["metadata"]["name"] == OPERATOR)[
            "metadata"
        ]["labels"]
        assert "pod-security.kubernetes.io/enforce" not in labels
        assert not [
            item
            for item in lab.objects("rbac.authorization.k8s.io/v1/ClusterRole")
            if OPERATOR in item["metadata"]["name"]
        ]


@pytest.mark.thorough
def test_a_release_that_was_cut_off_is_named_and_taken_up(lab: Lab, tmp_path: pathlib.Path) -> None:
    """Helm is killed while it waits for pods that no node takes. What keeps them from nodes is of that revision alone,
    and must go with it."""
    values = tmp_path / "values.json"
    values.write_text(json.dumps(SETTINGS["operators_sriov_chart_values"]), encoding="utf-8")
    # of the lab's own inventory
    where = ("--namespace", OPERATOR, "--kubeconfig", ".lab/pki/admin.kubeconfig")
    nowhere = ("--values", str(values), "--set", "operator.nodeSelector.no-node=has-it")
    install = (".lab/helm", "install", OPERATOR, ".lab/chart", *where, "--wait", *nowhere)
    cut_off = f"owner=helm,name={OPERATOR},status=pending-install"
    label, _equals, value = MANAGED.partition("=")
    # a run makes the namespace before Helm does anything
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR, "labels": {label: value}}}
    lab.apply(space, manager="linerate.rdma")
    with lab.background(*install) as log:
        assert wait_until(
            lambda: bool(lab.objects("v1/Secret", cut_off)) and OPERATOR in str(lab.objects("apps/v1/Deployment")), 60
        ), log.read_text()
    seen = lab.playbook(OPERATORS, variables={"operators_install": False})
    finding = seen.finding("operators", "operators.needed", OPERATOR)
    assert seen.code != 0 and finding["status"] == "fail" and "pending-install" in finding["remedy"], finding
    taken_up = lab.playbook(OPERATORS)
    assert taken_up.code == 0, taken_up.end
    assert any(f"Helm release {OPERATOR}" in change for change in taken_up.records["operators"]["changes"])
    assert lab.objects("v1/Secret", cut_off) == []
