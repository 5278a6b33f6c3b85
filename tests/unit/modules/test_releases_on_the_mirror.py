# SPDX-License-Identifier: GPL-3.0-or-later

"""operators_info with a mirror: releases that Helm can install without the internet. And the image of the observers."""

from __future__ import annotations

import pathlib
import types
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.modules import observers, operators_info
from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import FABRIC, run_module

HELM = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in *ghcr.io*) ;; *) echo "Error: $3: not found" >&2; exit 1 ;; esac
cat <<END
images:
  operator: ghcr.io/k8snetworkplumbingwg/sriov-network-operator
  sriovCni: ghcr.io/k8snetworkplumbingwg/sriov-cni
sriovOperatorConfig: {{deploy: false}}
END
"""
MIRROR = "mirror.example/m"
CLUSTER = {"mirror": MIRROR, "node_selector": {"role": "gpu"}}


class Empty:
    """A cluster in which nothing is."""

    def pages(self, _kind: str, _namespace: str = "", selector: str = "") -> typing.Iterator[dict[str, typing.Any]]:
        return iter(())


@pytest.fixture(name="helm")
def _helm(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setattr(operators_info, "connect", lambda module: Empty())
    path = tmp_path / "helm"
    path.write_text(HELM.format(folder=tmp_path), encoding="utf-8")
    path.chmod(0o755)
    return path


def look(capsys: pytest.CaptureFixture[str], **options: typing.Any) -> tuple[int, dict[str, typing.Any]]:
    return run_module("operators_info", {"fabrics": [FABRIC], "cluster": CLUSTER, "by": "helm", **options}, capsys)


def test_a_release_takes_chart_and_images_from_the_mirror(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    code, result = look(capsys, helm_binary=str(helm))
    assert code == 0
    (release,) = result["releases"]
    assert release["chart"] == f"oci://{MIRROR}/ghcr.io/k8snetworkplumbingwg/sriov-network-operator-chart"
    assert release["values"] == {
        "images": {
            "operator": f"{MIRROR}/ghcr.io/k8snetworkplumbingwg/sriov-network-operator",
            "sriovCni": f"{MIRROR}/ghcr.io/k8snetworkplumbingwg/sriov-cni",
        },
        "sriovOperatorConfig": {"deploy": True},
    }
    assert f"show values {release['chart']} --version 1.6.0" in (tmp_path / "calls").read_text(encoding="utf-8")
    # a second run finds the same values, and so changes no release
    assert look(capsys, helm_binary=str(helm))[1]["releases"] == result["releases"]


def test_values_of_the_user_stay(helm: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    wish = {"sriov-network-operator": {"values": {"images": {"operator": "other.example/operator:1"}}}}
    (release,) = look(capsys, helm_binary=str(helm), charts=wish)[1]["releases"]
    assert release["values"]["images"]["operator"] == "other.example/operator:1"
    assert release["values"]["images"]["sriovCni"].startswith(MIRROR)


def test_a_chart_that_is_not_on_the_mirror_is_told_before_anything_is_made(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, result = look(
        capsys,
        helm_binary=str(helm),
        charts={"sriov-network-operator": {"chart": "oci://quay.io/none/chart", "version": "1"}},
    )
    assert code == 1
    assert f"{MIRROR}/quay.io/none/chart: not found" in result["msg"] and "operators_charts" in result["msg"]


def test_who_only_looks_needs_no_helm_and_gets_no_release_of_the_internet(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    assert helm.exists()
    code, result = look(capsys)
    assert (code, result["releases"]) == (0, [])
    assert not (tmp_path / "calls").exists()


def test_without_a_mirror_all_is_as_before(
    helm: pathlib.Path, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    _code, result = look(capsys, cluster={**CLUSTER, "mirror": ""}, helm_binary=str(helm))
    (release,) = result["releases"]
    assert release["chart"].startswith("oci://ghcr.io/") and release["values"] == {
        "sriovOperatorConfig": {"deploy": True}
    }
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("image", "mirror", "found"),
    [("quay.io/a/b:1", MIRROR, f"{MIRROR}/quay.io/a/b:1"), ("quay.io/a/b:1", None, "quay.io/a/b:1")],
)
def test_the_image_of_the_observers(image: str, mirror: typing.Optional[str], found: str) -> None:
    defaults = {
        "node_selector": {},
        "nodes": [],
        "image_pull_secrets": [],
        "image_pull_policy": "Always",
        "priority_class": "",
        "lifetime": 60,
    }
    params = {
        **defaults,
        "image": image,
        "mirror": mirror,
        "keep": True,
        "resources": None,
        "run": "",
        "namespace": "n",
    }
    module = types.SimpleNamespace(params=params, warn=lambda text: None)
    cluster = types.SimpleNamespace(serves=lambda group: False, version=lambda: "v1.34.0")
    assert observers.wanted_of(typing.cast(typing.Any, module), typing.cast(typing.Any, cluster)).image == found
