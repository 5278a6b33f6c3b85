# SPDX-License-Identifier: GPL-3.0-or-later

"""Helm releases of operators: none of another owner is upgraded or uninstalled, and no newer chart is replaced."""

from __future__ import annotations

import pathlib
import typing

import jinja2
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.stack import parse_controller
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import kept_release
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operators import list_releases
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.operators import render_worker_sources

from ..plan.test_helm_release import FABRIC, OLDER, THERE, plan
from .situations import (
    EARLIER,
    GITOPS,
    HAND,
    HELM,
    KEEP,
    NEEDED,
    NEWER,
    OWN,
    REFUSE,
    TAKE,
    TEARDOWN,
    UPGRADE_NONE,
    cells,
)

INTENT = parse_intent([FABRIC], None, {})
SPACE = RELEASE = "sriov-network-operator"
OF_HELM = {"app.kubernetes.io/managed-by": "Helm"}
#: labels and release of the Deployment of each owner
DEPLOYMENT: dict[str, tuple[dict[str, str], str]] = {
    OWN: (OF_HELM, RELEASE),
    HELM: (OF_HELM, "platform"),
    GITOPS: ({**OF_HELM, "helm.toolkit.fluxcd.io/name": "sriov"}, RELEASE),
    HAND: ({}, ""),
}


def deployment(owner: str) -> dict[str, typing.Any]:
    labels, release = DEPLOYMENT[owner]
    notes = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": SPACE} if release else {}
    container = {"image": "sriov-network-operator:1", "command": ["sriov-network-operator"]}
    template = {"spec": {"containers": [container]}}
    metadata = {"name": RELEASE, "namespace": SPACE, "uid": "d", "labels": labels, "annotations": notes}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 1, "template": template}}


def is_planned(owner: str) -> bool:
    controller = parse_controller(deployment(owner))
    assert controller is not None
    seen = OperatorsSeen(controllers=(controller,), made=(RELEASE,))
    releases = list_releases(INTENT, seen, collect_requests({}, {}, ()))
    return RELEASE in {item.operator for item in releases}


@pytest.mark.parametrize(("owner", "action", "result"), cells("Helm release"))
def test_cell(owner: str, action: str, result: str) -> None:
    if action == TEARDOWN:
        kept = kept_release(SPACE, RELEASE, True, [deployment(owner)], True)
        assert (kept is None) is (result == TAKE) and (kept is None or (kept.why and kept.remedy))
        assert owner != GITOPS or (kept is not None and "helm.toolkit.fluxcd.io/name=sriov" in kept.why)
        return
    if owner in (EARLIER, NEWER):
        there = OLDER if owner == EARLIER else {**THERE, "chart": "gpu-operator-v26.4.0"}
        try:
            assert plan(there, "none" if action == UPGRADE_NONE else "drain").needed and result == TAKE
        except RdmaError as refused:
            assert result == REFUSE and "gpu-operator/gpu" in refused.seen and "operators_charts" in refused.remedy
        return
    assert is_planned(owner) is (result == TAKE)


def test_a_newer_chart_is_named_with_both_settings() -> None:
    with pytest.raises(RdmaError) as refused:
        plan({**THERE, "chart": "gpu-operator-v26.10.0"})
    assert "set version v26.10.0 in operators_charts.gpu-operator" in refused.value.remedy
    assert "set version v26.3.3 in operators_charts.gpu-operator" in refused.value.remedy


@pytest.mark.parametrize("changes", [{"pinned": True}, {"version": "main"}])
def test_a_version_of_the_user_replaces_a_newer_chart(changes: dict[str, typing.Any]) -> None:
    assert plan({**THERE, "chart": "gpu-operator-v26.4.0"}, **changes).needed


@pytest.mark.parametrize(
    ("charts", "pinned"),
    [
        ({}, False),
        ({RELEASE: {"version": "1.5.0"}}, True),
        ({RELEASE: {"chart": "/srv/chart"}}, True),
        ({RELEASE: {"chart": "oci://ghcr.io/k8snetworkplumbingwg/sriov-network-operator-chart"}}, False),
    ],
    ids=["default", "version", "chart", "the same chart"],
)
def test_the_user_chose_a_version_or_a_chart(charts: dict[str, typing.Any], pinned: bool) -> None:
    releases = list_releases(INTENT, OperatorsSeen(), collect_requests(charts, {}, ()))
    assert [item.pinned for item in releases if item.operator == RELEASE] == [pinned]


NFD = "node-feature-discovery"
CLASSES = ["02", "03", "0b40", "12"]


def sources(classes: list[str], fields: list[str]) -> dict[str, typing.Any]:
    pci = {"deviceClassWhitelist": classes, "deviceLabelFields": fields}
    return {"worker": {"config": {"sources": {"pci": pci}, "core": {"sleepInterval": "10s"}}}}


def plan_labels(before: typing.Any, disruption: str, **changes: typing.Any) -> typing.Any:
    there = {**THERE, "chart": "node-feature-discovery-0.18.3", "values": before}
    wanted = {"worker": {"config": {"sources": render_worker_sources()}}}
    mine = {"operator": NFD, "release": "nfd", "namespace": NFD, "version": "0.18.3", "values": wanted, "drains": False}
    return plan(there, disruption, **{**mine, **changes})


@pytest.mark.parametrize(("owner", "action", "result"), cells("Helm values"))
def test_values_of_node_feature_discovery(owner: str, action: str, result: str) -> None:
    disruption = "none" if action == UPGRADE_NONE else "drain"
    if owner == HAND:
        assert result == KEEP
        # an admin added a class, and removed one that the run needs
        for classes in ([*CLASSES, "0106"], ["0106", "02", "03", "12"]):
            planned = plan_labels(sources(classes, ["vendor"]), disruption)
            config = planned.values["worker"]["config"]
            kept = config["sources"]["pci"]["deviceClassWhitelist"]
            assert kept[: len(classes)] == classes and set(kept) == {*CLASSES, "0106"}
            assert config["core"] == {"sleepInterval": "10s"} and planned.needed is ("0b40" not in classes)
        return
    # the labels have other names with other fields, so both cannot be kept
    changed = sources(CLASSES, ["class", "vendor"])
    if result == REFUSE:
        for values in (changed, None):
            with pytest.raises(RdmaError, match="can remove labels of nodes") as refused:
                plan_labels(values, disruption)
            assert f"operators_charts.{NFD}.values" in refused.value.remedy
        return
    planned = plan_labels(changed, disruption)
    assert planned.values["worker"]["config"]["sources"]["pci"]["deviceLabelFields"] == ["vendor"]
    assert "deviceLabelFields" in planned.summary and "can remove labels of nodes" in planned.summary
    assert result == TAKE and owner == NEEDED


def test_values_that_the_user_chose_replace_those_of_the_release() -> None:
    there = sources([*CLASSES, "0106"], ["vendor"])
    planned = plan_labels(there, "drain", chosen=True)
    assert planned.values["worker"]["config"]["sources"]["pci"]["deviceClassWhitelist"] == CLASSES
    assert "can remove labels of nodes" in planned.summary
    with pytest.raises(RdmaError, match="can remove labels of nodes"):
        plan_labels(there, "none", chosen=True)
    assert not plan_labels({**there, "master": {"replicas": 2}}, "none", chosen=True, values=there).needed


@pytest.mark.parametrize(("charts", "chosen"), [({}, False), ({NFD: {"values": {}}}, True)])
def test_the_user_chose_the_values(charts: dict[str, typing.Any], chosen: bool) -> None:
    label = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
    intent = parse_intent([FABRIC], None, {"node_selector": label})
    releases = list_releases(intent, OperatorsSeen(), collect_requests(charts, {}, ()))
    assert [item.chosen for item in releases if item.operator == NFD] == [chosen]


@pytest.mark.parametrize(
    ("variables", "release"),
    [
        ({}, RELEASE),
        ({"operators_sriov_release": "sriov"}, "sriov"),
        ({"operators_charts": {RELEASE: {"release": "mine"}}, "operators_sriov_release": "sriov"}, "mine"),
        ({"operators_charts": {RELEASE: {"version": "1.5.0"}}, "operators_sriov_release": "sriov"}, "sriov"),
    ],
    ids=["default", "setting", "chart", "chart of the setting"],
)
def test_a_teardown_looks_for_the_release_that_stage_operators_installs(
    variables: dict[str, typing.Any], release: str
) -> None:
    role = pathlib.Path(__file__).resolve().parents[3] / "roles/teardown/defaults/main.yml"
    template = yaml.safe_load(role.read_text(encoding="utf-8"))["teardown_sriov_release"]
    assert jinja2.Environment(autoescape=True).from_string(template).render(variables) == release
