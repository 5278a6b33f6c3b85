# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings on operators of OLM: on each that was asked for, and on what a teardown leaves of them."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check import teardown
from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.olm import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.olm import OlmFacts, OperatorStand, Stay

READY: typing.Dict[str, typing.Any] = {
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
        ({"upgrade": "nfd.v2", "ours": False}, "warn", "Whoever made Subscription ops/nfd"),
        ({"phase": "failed", "detail": "no such package", "remedy": "Correct package"}, "fail", "no such package. Correct package"),
        ({"phase": "waiting", "detail": "OLM unpacks", "remedy": "See it"}, "fail", "The time was over: OLM unpacks. See it"),
        ({"phase": "planned", "detail": "it would be made"}, "unknown", "This is a dry run: it would be made."),
        ({"installed": "nfd.v0"}, "unknown", "nfd.v0 is installed where nfd.v1 is asked for"),
        ({"installed": "", "wanted": ""}, "unknown", "nothing is installed"),
        ({"phase": "failed", "detail": ""}, "fail", "nothing was told of it"),
    ],
)
def test_a_package(change: typing.Dict[str, typing.Any], status: str, words: str) -> None:
    facts = OlmFacts((OperatorStand(**{**READY, **change}),))
    assert load(OlmFacts, to_data(facts), "olm") == facts
    (finding,) = check(facts)
    assert (finding.check, finding.subject, finding.status) == ("operators.olm", "package nfd", status)
    assert words in f"{finding.why} {finding.remedy}"


def test_where_olm_was_asked_for_nothing_nothing_is_found() -> None:
    assert check(None) == () == check(OlmFacts())


def test_what_a_teardown_leaves_is_told_and_closes_nothing() -> None:
    stay = Stay("CustomResourceDefinition nodes.nfd.io", "2 objects of it are not the collection's: a, b")
    findings = teardown.check(Intent(()), teardown.Facts(stays=(stay,)))
    (found,) = [finding for finding in findings if finding.check == "teardown.stays"]
    assert (found.subject, found.status) == (stay.subject, "warn") and stay.why in found.why and "kubectl delete crd" in found.remedy
    assert judge(findings).open
