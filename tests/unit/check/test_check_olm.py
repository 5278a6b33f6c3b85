# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on operators of OLM: on each that was asked for, and on what a teardown leaves of them."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm import progress as olm
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm.state import OlmState
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.olm import check
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown import check as teardown
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown.facts import Facts as TeardownFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import ObservedText
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import LeftArguments
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import (
    Catalog,
    DesiredOperator,
    OlmFacts,
    OperatorGroup,
    OperatorStatus,
    RetainedObject,
    ServiceVersion,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorsSeen
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import judge
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.olm import (
    parse_subscription,
)

READY: dict[str, typing.Any] = {
    "package": "nfd",
    "namespace": "ops",
    "phase": "ready",
    "detail": "nfd.v1 Succeeded",
    "subscription": "ops/nfd",
    "ours": True,
    "wanted": "nfd.v1",
    "installed": "nfd.v1",
}


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({}, "pass", ""),
        ({"upgrade": "nfd.v2"}, "warn", "set version of nfd to nfd.v2"),
        ({"upgrade": "nfd.v2", "ours": False}, "warn", "Ask the owner of Subscription ops/nfd"),
        (
            {"phase": "failed", "detail": "no such package", "remedy": "Correct package"},
            "fail",
            "no such package. Correct package",
        ),
        (
            {"phase": "waiting", "detail": "OLM unpacks", "remedy": "See it"},
            "fail",
            "The installation did not finish within the time limit. Last state: OLM unpacks. See it",
        ),
        (
            {"phase": "planned", "detail": "it would be made"},
            "unknown",
            "In check mode, the run installs nothing. State of the operator: it would be made.",
        ),
        ({"installed": "nfd.v0"}, "unknown", "nfd.v0 is installed, and nfd.v1 is requested"),
        ({"installed": "", "wanted": ""}, "unknown", "no version is installed"),
        ({"phase": "failed", "detail": ""}, "fail", "OLM reports no cause"),
    ],
)
def test_a_package(change: dict[str, typing.Any], status: str, words: str) -> None:
    facts = OlmFacts((OperatorStatus(**{**READY, **change}),))
    assert load(OlmFacts, to_data(facts), "olm") == facts
    (finding,) = check(facts)
    assert (finding.check, finding.subject, finding.status) == ("operators.olm", "package nfd", status)
    assert words in f"{finding.why} {finding.remedy}"


CSV, SRIOV_SPACE = "sriov-network-operator.v4.18.0-202510010035", "openshift-sriov-network-operator"


def unreferenced(**changes: typing.Any) -> OperatorStatus:
    """How far the operator is whose Subscription was made anew on another catalog, as a public report has it."""
    text = (pathlib.Path(__file__).parent.parent / "fixtures/public/olm-unreferenced.yaml").read_text()
    subscription = dataclasses.replace(parse_subscription(yaml.safe_load(text)), **changes)
    catalog = Catalog("redhat-operator-index", "openshift-marketplace", "READY")
    seen = OlmState(
        {(catalog.namespace, catalog.name): catalog},
        subscriptions={(subscription.namespace, subscription.name): subscription},
        versions={(SRIOV_SPACE, CSV): ServiceVersion(CSV, SRIOV_SPACE, "Succeeded")},
    )
    (found,) = olm.judge([DesiredOperator("sriov-network-operator", SRIOV_SPACE)], seen)
    return found.stand


def test_a_subscription_on_another_catalog_is_there_and_does_not_take_the_operator_over() -> None:
    stand = unreferenced()
    assert stand.detail.startswith(
        f"An earlier Subscription installed ClusterServiceVersion {CSV} (Succeeded), from a different catalog"
    )
    assert (
        f"The new Subscription {SRIOV_SPACE}/sriov-network-operator on catalog"
        " openshift-marketplace/redhat-operator-index does not take it over" in stand.detail
    )
    assert "no longer exists" not in stand.detail
    assert (
        f"kubectl -n {SRIOV_SPACE} delete clusterserviceversions.operators.coreos.com {CSV} (the CRDs and"
        in stand.remedy
    )
    assert "kubectl get packagemanifests -l catalog=redhat-operator-index" in stand.remedy
    assert not re.search(r"\b(NAME|NAMESPACE|PACKAGE)\b", stand.remedy)


def test_a_service_version_of_another_operator_needs_a_subscription_of_its_own() -> None:
    said = {
        "ResolutionFailed": (
            "constraints not satisfiable: clusterserviceversion other-operator.v1.2.3 exists and is not referenced by a"
            " subscription"
        )
    }
    stand = unreferenced(troubles=said)
    assert stand.detail.startswith(
        f"ClusterServiceVersion other-operator.v1.2.3 of another operator in namespace {SRIOV_SPACE} has no"
        " Subscription"
    )
    assert (
        f"kubectl -n {SRIOV_SPACE} delete clusterserviceversions.operators.coreos.com other-operator.v1.2.3"
        in stand.remedy
    )


def test_of_several_operator_groups_the_one_that_fits_is_kept_by_name() -> None:
    groups = {
        (SRIOV_SPACE, name): OperatorGroup(name, SRIOV_SPACE, targets)
        for name, targets in (("all", ()), ("fits", (SRIOV_SPACE,)), ("third", ()))
    }
    found = olm.group_trouble(SRIOV_SPACE, (SRIOV_SPACE,), OlmState(groups=groups))
    assert (
        found is not None
        and found.remedy
        == f"Keep one of them, for example fits: kubectl -n {SRIOV_SPACE} delete operatorgroup all third"
    )


def test_where_olm_was_asked_for_nothing_nothing_is_found() -> None:
    assert check(None) == () == check(OlmFacts())


def test_what_a_teardown_leaves_is_told_and_closes_nothing() -> None:
    stay = RetainedObject(
        "CustomResourceDefinition nodes.nfd.io", "2 of its objects do not belong to this collection: a, b"
    )
    seen = {"drop_ins": {"worker-1": ObservedText("absent")}, "kernel_arguments": {"worker-1": LeftArguments(())}}
    facts: dict[str, typing.Any] = {"nodes": ("worker-1",), "removed": (), "left": OperatorsSeen(), "rolls": (), **seen}
    findings = teardown.check(Intent(()), TeardownFacts(stays=(stay,), **facts))
    (found,) = [finding for finding in findings if finding.check == "teardown.stays"]
    assert (
        (found.subject, found.status) == (stay.subject, "warn")
        and stay.why in found.why
        and "kubectl delete crd" in found.remedy
    )
    assert judge(findings).open
