# SPDX-License-Identifier: GPL-3.0-or-later

"""The definitions of a chart that Helm does not upgrade, from what a program that stands for Helm prints."""

from __future__ import annotations

import json
import pathlib
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import MOST_CHART
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import helm
from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import run_module
from ansible_collections.linerate.rdma.tests.unit.parse.test_charts import PRINTED

Run = typing.Callable[..., tuple[int, dict[str, typing.Any]]]
SECRET = "hunter2-of-a-repository"


@pytest.fixture(name="run")
def fixture_run(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(script: str, **options: typing.Any) -> tuple[int, dict[str, typing.Any]]:
        binary = tmp_path / "helm"
        binary.write_text(f"#!/bin/sh\n{script}\n")
        binary.chmod(0o755)
        chart = {"chart": "oci://registry.example/c", "version": "1.6.0", "release": "x", "namespace": "ops"}
        return run_module("chart_definitions", {"helm_binary": str(binary), **chart, **options}, capsys)

    return run


@pytest.mark.parametrize("check_mode", [False, True])
def test_definitions_of_the_folders_of_a_chart(run: Run, tmp_path: pathlib.Path, check_mode: bool) -> None:
    (tmp_path / "printed").write_text(PRINTED)
    script = (
        f'echo "$@" >{tmp_path}/told; while [ "$1" != --values ]; do shift; done; cat "$2" >{tmp_path}/values; cat'
        f" {tmp_path}/printed"
    )
    values = {"password": SECRET, "replicas": 1}
    options = {
        "values": values,
        "kubernetes_version": "v1.33.2",
        "repository": "https://charts.example",
        "_ansible_check_mode": check_mode,
    }
    code, result = run(script, **options)
    assert (code, result["changed"]) == (0, False)
    assert [item["metadata"]["name"] for item in result["definitions"]] == [
        "nicclusterpolicies.mellanox.com",
        "second.mellanox.com",
        "a.sub.example",
    ]
    told = (tmp_path / "told").read_text().split()
    assert told[:3] == ["template", "x", "oci://registry.example/c"] and "--include-crds" in told
    assert [told[told.index(name) + 1] for name in ("--namespace", "--version", "--repo", "--kube-version")] == [
        *("ops", "1.6.0", "https://charts.example", "v1.33.2")
    ]
    # values go by a file, which is gone
    assert json.loads((tmp_path / "values").read_text()) == values and SECRET not in str(told)
    assert not pathlib.Path(told[told.index("--values") + 1]).exists()


def test_a_chart_that_prints_without_end_ends_the_task_and_not_the_controller(run: Run) -> None:
    code, result = run('exec yes "#"')
    assert code == 1 and f"printed more than {MOST_CHART} bytes" in result["msg"] and len(str(result)) < 10_000


def test_a_repository_that_never_ends_its_answer_has_a_limit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm, "LIMIT", 0.5)
    began = time.monotonic()
    code, result = run("exec sleep 600")
    assert code == 1 and "did not end within 0.5 s" in result["msg"] and time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("script", "options", "seen"),
    [
        ("echo refused >&2; exit 1", {}, "refused"),
        ("exit 0", {"release": "--post-renderer=/bin/sh"}, "the release of a chart"),
        ("exit 0", {"kubernetes_version": "-x"}, "the version of Kubernetes"),
        (
            (
                "printf -- '---\n# Source: c/crds/a.yaml\nkind: CustomResourceDefinition\nmetadata: []\n---\n# Source:"
                " c/crds/b.yaml\n[1]\n'"
            ),
            {},
            "not a Kubernetes",
        ),
        (
            "printf -- '---\n# Source: c/crds/a.yaml\nkind: CustomResourceDefinition\nmetadata: [1]\n'",
            {},
            "metadata is not a mapping",
        ),
        ("exit 1", {"helm_binary": "/nowhere/helm"}, "could not be started"),
    ],
)
def test_what_is_no_answer_is_an_error(run: Run, script: str, options: dict[str, str], seen: str) -> None:
    code, result = run(script, **options)
    assert code == 1 and seen in result["msg"]


def test_a_password_in_an_address_is_in_no_error(run: Run) -> None:
    code, result = run("exit 1", repository=f"https://user:{SECRET}@charts.example")
    assert code == 1 and "charts.example" in result["msg"] and SECRET not in result["msg"] + str(result["failure"])
