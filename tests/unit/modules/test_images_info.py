# SPDX-License-Identifier: GPL-3.0-or-later

"""images_info with a Helm that answers as the real one does: its arguments, its files, and what it says where a chart
is not to be had."""

from __future__ import annotations

import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import FABRIC, run_module

HELM = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in
*broken*) echo "Error: failed to download: no such host" >&2; exit 1 ;;
*picky*)
  echo "Error: chart requires kubeVersion: >= 1.24.0-0 which is incompatible with Kubernetes v1.20.0" >&2; exit 1 ;;
*/srv/*) echo "Error: path not found" >&2; exit 1 ;;
*garbage*) printf 'a: [' ; exit 0 ;;
*hangs*) sleep 60 ;;
esac
cat <<END
---
# Source: chart/templates/operator.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {{name: operator}}
spec:
  template:
    spec:
      containers:
        - name: operator
          image: "registry.example/$2:1"
END
"""


@pytest.fixture(name="helm")
def _helm(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "helm"
    path.write_text(HELM.format(folder=tmp_path), encoding="utf-8")
    path.chmod(0o755)
    return path


def look(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], **options: typing.Any
) -> tuple[int, dict[str, typing.Any]]:
    return run_module("images_info", {"fabrics": [FABRIC], "by": "helm", "helm_binary": str(helm), **options}, capsys)


def test_the_list_and_its_files_without_a_cluster(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    code, result = look(
        helm, capsys, images={"rdma_observers_image": "registry.example/observer:1"}, kubernetes_version="v1.33.2"
    )
    assert (code, result["changed"], result["unlisted"]) == (0, False, [])
    names = [image["name"] for image in result["images"]]
    assert {"registry.example/sriov-network-operator:1", "registry.example/nfd:1", "registry.example/observer:1"} < set(
        names
    )
    imageset = yaml.safe_load(result["files"]["imageset-config.yml"])
    assert imageset["apiVersion"] == "mirror.openshift.io/v2alpha1"
    assert [item["name"] for item in imageset["mirror"]["additionalImages"]] == names
    assert yaml.safe_load(result["files"]["skopeo-sync.yml"])["registry.example"]["images"]["observer"] == ["1"]
    calls = (tmp_path / "calls").read_text(encoding="utf-8")
    assert (
        "template nfd oci://registry.k8s.io/nfd/charts/node-feature-discovery --namespace node-feature-discovery"
        " --values" in calls
    )
    assert "--kube-version v1.33.2 --version 0.18.3" in calls
    again = look(
        helm, capsys, images={"rdma_observers_image": "registry.example/observer:1"}, kubernetes_version="v1.33.2"
    )[1]
    assert again["files"] == result["files"]


@pytest.mark.parametrize(
    ("chart", "why"),
    [
        ("oci://broken.example/chart", "Make oci://broken.example/chart reachable from this machine"),
        ("oci://garbage.example/chart", "the output of helm template for oci://garbage.example/chart is not valid"),
        ("oci://picky.example/chart", "-e operators_kubernetes_version="),
        ("/srv/chart", "Correct the error that Helm reports for chart /srv/chart"),
    ],
)
def test_a_chart_that_is_not_to_be_had_leaves_the_others(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], chart: str, why: str
) -> None:
    code, result = look(helm, capsys, charts={"sriov-network-operator": {"chart": chart, "version": "1"}})
    assert code == 0
    (problem,) = result["unlisted"]
    assert why in problem and "sriov-network-operator" in problem
    assert "registry.example/nfd:1" in [image["name"] for image in result["images"]]


def test_a_chart_that_never_comes_ends_at_its_limit(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.helm.LIMIT", 0.3)
    _code, result = look(helm, capsys, charts={"sriov-network-operator": {"chart": "oci://hangs.example/chart"}})
    assert "did not end within 0.3 s" in result["unlisted"][0]


def test_without_helm_the_list_says_so(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    for binary in ("no-such-helm", tmp_path / "helm"):
        _code, result = look(typing.cast(pathlib.Path, binary), capsys)
        assert len(result["unlisted"]) == 2
        assert "operators_helm_binary" in result["unlisted"][0]


def test_olm_needs_the_version_of_its_catalogs(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    code, result = look(helm, capsys, by="olm")
    assert code == 1 and "operators_openshift_version" in result["msg"]
    code, result = look(helm, capsys, by="olm", openshift_version="4.20")
    assert code == 0 and [item["package"] for item in result["packages"]] == ["nfd", "sriov-network-operator"]
    assert not (tmp_path / "calls").exists()


def test_a_job_is_listed_with_its_operators(helm: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = {
        "name": "j",
        "kind": "TrainJob",
        "fabric": "storage",
        "nodes": 2,
        "gpus_per_node": 1,
        "image": "registry.example/train:1",
    }
    job.update(command=["train"], cpu="1", memory="1Gi")
    _code, result = look(helm, capsys, job=job)
    users = {image["name"]: image["needed_by"] for image in result["images"]}
    assert users["registry.example/train:1"] == ["rdma_job.image"]
    assert "registry.example/jobset:1" in users


def test_an_operator_that_is_none_is_refused(helm: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = look(helm, capsys, leave=["nfd"])
    assert code == 1 and "this collection does not support the operator nfd" in result["msg"]


def test_who_installs_is_asked_of_the_cluster(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    code, result = look(helm, capsys, by="auto", kubeconfig=str(tmp_path / "none"))
    assert code == 1 and "kubeconfig" in result["msg"]
