# SPDX-License-Identifier: GPL-3.0-or-later

"""Helm releases of operators: none of another owner is upgraded or uninstalled, and no newer chart is replaced."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.stack import parse_controller
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import kept_release
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operators import list_releases

from ..plan.test_helm_release import FABRIC, OLDER, THERE, plan
from .situations import (
    EARLIER,
    GITOPS,
    HAND,
    HELM,
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
