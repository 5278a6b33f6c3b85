# SPDX-License-Identifier: GPL-3.0-or-later

"""Definitions of a chart, which Helm does not upgrade: a run changes none of another owner."""

from __future__ import annotations

import copy
import pathlib
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._plan.chart_definitions import (
    find_owner,
    select_definitions,
)

from ..fake_api import FakeApi
from ..modules import test_chart_definitions as charts
from ..modules.test_chart_definitions import Run
from ..modules.test_olm_operands import define
from .situations import CATALOG, EARLIER, GITOPS, HELM, KEEP, OWN, REFUSE, TAKE, UPGRADE, cells

run = charts.fixture_run
ROOT = pathlib.Path(__file__).resolve().parents[3]
CHART = OperatorChart("network-operator", "26.4.1", "nvidia-network-operator", "network-operator", "https://c.example")
WANTED = define("mellanox.com", "nicclusterpolicies", "NicClusterPolicy")
Note = dict[str, typing.Any]


def manage(name: str, fields: typing.Optional[Note] = None, operation: str = "Update") -> Note:
    record = {"manager": name, "operation": operation, "fieldsV1": fields or {"f:spec": {"f:versions": {}}}}
    return {"managedFields": [record]}


def release(name: str, namespace: str) -> Note:
    return {"annotations": {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}}


#: metadata of a definition of each owner, and the words that name the owner
METADATA: dict[str, list[tuple[Note, str]]] = {
    OWN: [(manage("linerate.rdma", operation="Apply"), "")],
    # Helm wrote it when a run installed the release
    EARLIER: [
        (manage("helm"), ""),
        (release(CHART.release, CHART.namespace), ""),
        # a hook of the chart
        (manage("kubectl-client-side-apply"), ""),
        (manage("argocd-controller", {"f:metadata": {"f:labels": {}}}), ""),
    ],
    GITOPS: [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "crds:apiextensions"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "crds"}}, "Flux"),
        (manage("argocd-controller"), "Argo CD (field manager argocd-controller)"),
        (manage("kustomize-controller", operation="Apply"), "Flux (field manager kustomize-controller)"),
        (manage("helm-controller"), "Flux (field manager helm-controller)"),
    ],
    HELM: [
        (release("platform", "platform"), "Helm release platform/platform"),
        (release(CHART.release, "platform"), "Helm release platform/network-operator"),
    ],
    CATALOG: [
        ({"labels": {"olm.managed": "true"}}, "OLM (label olm.managed)"),
        ({"labels": {"operators.coreos.com/nvidia-network-operator.ops": ""}}, "OLM (label operators.coreos.com/"),
        (manage("catalog"), "OLM (field manager catalog)"),
    ],
}


def of_cluster(metadata: Note, differs: bool = True) -> Note:
    found = copy.deepcopy(WANTED)
    found["metadata"].update(metadata)
    # the API server adds fields
    found["spec"]["conversion"] = {"strategy": "None"}
    if differs:
        found["spec"]["versions"][0]["served"] = False
    return found


@pytest.mark.parametrize(
    ("owner", "action", "result", "metadata", "words"),
    [
        (owner, action, result, metadata, words)
        for owner, action, result in cells("CustomResourceDefinition of a chart")
        for metadata, words in METADATA[owner]
    ],
)
def test_cell(owner: str, action: str, result: str, metadata: Note, words: str) -> None:
    there = of_cluster(metadata, differs=result != KEEP)
    assert action == UPGRADE and (words in find_owner(there, CHART.release, CHART.namespace))
    if result == REFUSE:
        with pytest.raises(RdmaError) as refused:
            select_definitions("network-operator", CHART, [(WANTED, there)])
        assert f"nicclusterpolicies.mellanox.com belongs to {words}" in refused.value.seen
        assert "operators_leave" in refused.value.remedy and "stage operators again" in refused.value.remedy
        assert (
            "helm show crds --repo https://c.example --version 26.4.1 network-operator | kubectl apply --server-side"
            in refused.value.remedy
        )
        return
    assert select_definitions("network-operator", CHART, [(WANTED, there)]) == ((WANTED,) if result == TAKE else ())
    assert bool(words) is (owner not in (OWN, EARLIER))


def test_definition_that_does_not_exist_is_applied() -> None:
    assert select_definitions("network-operator", CHART, [(WANTED, None)]) == (WANTED,)


def test_a_definition_with_another_version_differs() -> None:
    there = of_cluster({"labels": {"olm.managed": "true"}}, differs=False)
    there["spec"]["versions"].append({"name": "v2"})
    with pytest.raises(RdmaError, match="it differs"):
        select_definitions("network-operator", CHART, [(WANTED, there)])


@pytest.mark.parametrize(
    ("field", "value", "equal"),
    [("preserveUnknownFields", False, True), ("conversion", None, True), ("group", "x", False)],
)
def test_fields_that_the_api_server_does_not_store_are_no_difference(
    field: str, value: typing.Any, equal: bool
) -> None:
    """The definition of another owner is equal to that of the chart, as the API server has it."""
    there = of_cluster(manage("argocd-controller"), differs=False)
    wanted = {**WANTED, "spec": {**WANTED["spec"], field: value}}
    if equal:
        assert select_definitions("network-operator", CHART, [(wanted, there)]) == ()
        return
    with pytest.raises(RdmaError, match="differs"):
        select_definitions("network-operator", CHART, [(wanted, there)])


def test_the_role_names_the_operator_and_judges_before_its_first_write() -> None:
    tasks = yaml.safe_load((ROOT / "roles/operators/tasks/release.yml").read_text(encoding="utf-8"))
    (judged,) = (at for at, task in enumerate(tasks) if "linerate.rdma.chart_definitions" in task)
    assert tasks[judged]["linerate.rdma.chart_definitions"]["operator"] == "{{ operators_wanted.operator }}"
    writes = [at for at, task in enumerate(tasks) if {"ansible.builtin.command", "kubernetes.core.k8s"} & task.keys()]
    assert judged + 1 < min(writes) and tasks[judged + 1]["ansible.builtin.fail"]


PRINTED = """---
# Source: network-operator/crds/policy.yaml
{}
"""


@pytest.mark.parametrize("operator", ["", "network-operator"])
def test_the_module_reads_the_cluster_only_for_an_operator(
    run: Run, operator: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ansible_collections.linerate.rdma.plugins.modules import chart_definitions

    (tmp_path / "printed").write_text(PRINTED.format(yaml.safe_dump(WANTED)))
    api = FakeApi()
    api.start()
    api.serve("CustomResourceDefinition", [])
    api.put("CustomResourceDefinition", of_cluster(manage("argocd-controller")))
    monkeypatch.setattr(chart_definitions, "connect", lambda _module: api.client(api.url))
    code, result = run(f"cat {tmp_path}/printed", operator=operator)
    api.stop()
    assert code == bool(operator)
    if operator:
        assert "belongs to Argo CD" in result["msg"]
    else:
        assert [item["metadata"]["name"] for item in result["definitions"]] == ["nicclusterpolicies.mellanox.com"]
