# SPDX-License-Identifier: GPL-3.0-or-later

"""Each message and each reason in OLM's source has a cause and a remedy, or a reason here why it has none: OLM's own
words are shown then."""

from __future__ import annotations

import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm.messages import (
    ANYWHERE,
    RESOLUTION,
    explain_resolution,
    explain_words,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm.progress import judge
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm.reasons import (
    GENERAL,
    ON_THE_WAY,
    REASONS,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.olm.state import OlmState
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import (
    Catalog,
    DesiredOperator,
    ServiceVersion,
    Subscription,
)

MESSAGES = pathlib.Path(__file__).parent.parent / "fixtures" / "messages" / "olm.txt"

#: why messages have no cause: parts of them, as they stand in the source
UNKNOWN: typing.Mapping[str, tuple[str, ...]] = {
    "A name or a part of a text.": (
        "%s/",
        "/%s",
        "%s-%s",
        "%s.%s",
        "%s...%s",
        "%s. %s",
        "%s: %s",
        "!%s",
        "%x",
        "rule:%s",
        "%s[%s",
        "status.plan",
        "subscription:%s",
        "with channel",
        "with constraint",
        "with label",
        "with name",
        "with package",
        "with version in range",
        "from catalog",
        "providing an API",
        "replaces: ",
        "skip range",
        "at least one of %s or",
        "errors encountered",
    ),
    "OLM is on its way, or says that all is well.": (
        "all requirements found",
        "catalogsources are healthy",
        "being replaced by",
        "calculated deployment install is bad",
        "cert refresh",
        "Cluster resources changed",
        "cleanup must wait",
        "waiting for",
        "is up-to-date",
        "CRD is present and",
        "Native API exists",
        "less than server version",
        "requirements not yet checked",
        "replacing",
        "has been replaced",
        "completed with no errors",
        "InstallModes now support",
        "no longer intersecting",
        "now support providedAPIs",
        "spec hash",
        "deployment changed",
        "no annotations found on deployment",
        "annotations on deployment",
        "unexpected annotation",
        "Copied",
        "installed alongside",
        "subscription %s exists",
        "subscription %s requires",
        "InProgress",
        "UpgradeSucceeded",
        "Present",
        "Satisfied",
        "BundleNotUnpacked",
        "JobIncomplete",
        "JobNotStarted",
        "warning(s) generated",
        "is deprecated",
        "olm.bundle/",
        "olm.channel/",
        "olm.package/",
        "Fail Forward",
    ),
    "What failed stands behind it, or beside it in another field.": (
        "ConstraintsNotSatisfiable",
        "ErrorPrevented",
        "EnsureInstallPlanFailed",
        "JobFailed",
        "BundleUnpackFailed",
        "CatalogSourceMissing",
        "InvalidCatalog",
        "SpecInvalidError",
        "ConfigMapError",
        "RegistryServerError",
        "InvalidIntervalError",
        "DependenciesConflict",
        "PlanUnknown",
        "NotPresent",
        "NotSatisfied",
        "ProgressDeadlineExceeded",
        "exceeded its progress deadline",
        "install failed: ",
        "install strategy failed: ",
        "installing: ",
        "nstallplan failed",
        "nstallPlan failed",
        "nstallPlan: %s",
        "status: ",
        "retrying execution",
        "Bundle unpacking failed",
        "undle unpacking failed",
        "APIService install failed",
        "APIServices not installed",
        "Webhook install failed",
        "operator is not upgradeable",
        "requirements not met",
        "requirements were not met",
        "requirements no longer met",
        "requirements couldn't be found",
        "not available: %s",
        "missing deployment",
        "multiple operatorgroups",
        "no operatorgroups",
        "no targetNamespaces",
        "missing olm.targetNamespaces",
        "static provided api",
        "intersecting operatorgroups",
        "exists and is not referenced",
    ),
    "Of a state or a call inside OLM; nothing more is known of it.": (
        "casting",
        "is nil",
        "tombstone",
        "ombstone",
        "wrong type",
        "hash",
        "syncer",
        "plugin",
        "identifier",
        "ncoherent",
        "installable",
        "no constraint",
        "no variable",
        "variable %q",
        "no predicate",
        "no opm image",
        "no util image",
        "properties",
        "property",
        "legacy",
        "annotation(",
        "annotation:",
        "configmap",
        "installplan bundle lookups",
        "pods for job",
        "ist subscription",
        "listing operatorgroups",
        "list catalogsources",
        "OperatorGroup info",
        "No subscriptions",
        "stepper",
        "rule checker",
        "input",
        "owner",
        "Owner",
        "CA Resource",
        "strategy with deployment",
        "strategy implementation",
        "metadata",
        "missing condition",
        "origin of operator",
        "source of bundle",
        "csv cannot be nil",
        "already been seen",
        "in phase %s instead",
        "one operator, got",
        "operator(s), got",
        "cancelled before",
        "internal error",
        "at least one namespace",
        "operatorGroup for csv",
        "operatorgroups %s annotation",
        "updating ClusterServiceVersion",
        "updating InstallPlan",
        "updating Subscription",
        "transitioning",
        "validator for schema",
        "listing resources",
        "against new schema",
        "potential data loss",
        "querying existing deployments",
        "parsing crd name",
        "CatalogSource %s not found",
        "Server version",
    ),
}


def said(message: str) -> str:
    """A text of a format, with values in it."""
    text = re.sub(r"%[dv]", "3", message.replace('\\"', '"').replace("%q", '"x"'))
    return re.sub(r"%[-0-9.#+]*[a-zA-Z]", "x", text)


def test_each_message_of_the_source_has_a_cause_or_a_reason_why_it_has_none() -> None:
    head, *messages = MESSAGES.read_text(encoding="utf-8").splitlines()
    assert head.startswith("# operator-lifecycle-manager v0.18.3, ") and len(messages) > 300
    parts = [part for texts in UNKNOWN.values() for part in texts]
    without = {
        message
        for message in messages
        if message not in REASONS and message not in ON_THE_WAY and not any(explain_resolution(said(message), "p"))
    }
    assert [message for message in without if message and not any(part in message for part in parts)] == []
    assert [part for part in parts if not any(part in message for message in without)] == []


def test_each_reason_of_a_version_is_one_of_the_source() -> None:
    messages = set(MESSAGES.read_text(encoding="utf-8").splitlines())
    assert {*REASONS, *ON_THE_WAY} <= messages and not ON_THE_WAY & set(REASONS) and set(REASONS) > GENERAL


def test_each_text_fills_its_places() -> None:
    for words in (*RESOLUTION, *ANYWHERE):
        assert "{0}" not in words.cause + words.remedy or words.pattern.groups
        assert words.remedy.format("x") and words.cause.format("x") is not None
    assert all(cause and remedy.format("ops") for cause, remedy in REASONS.values())


@pytest.mark.parametrize(
    ("words", "cause", "remedy"),
    [
        (
            "failed to populate resolver cache from source certified-operators/openshift-marketplace: failed to list"
            " bundles: rpc error: code = Unavailable",
            "catalog certified-operators/openshift-marketplace does not respond",
            "oc patch operatorhub cluster",
        ),
        (
            "constraints not satisfiable: bundle gpu.v25 requires an operator providing an API with group:"
            " nfd.openshift.io, version: v1, kind: NodeFeatureDiscovery",
            "gpu.v25 requires another operator",
            "Add a catalog",
        ),
        (
            "constraints not satisfiable: @existing/ops//sriov.v4 and redhat/openshift-marketplace/stable/sriov.v5"
            " originate from package sriov",
            "two operators of one namespace",
            "its own namespace",
        ),
        (
            "constraints not satisfiable: no operators found in channel 9.9 of package sriov in the catalog",
            "",
            "packagemanifest sriov -o jsonpath='{.status.channels[*].name}'",
        ),
    ],
)
def test_what_the_resolver_says(words: str, cause: str, remedy: str) -> None:
    trouble = judged(
        Subscription("a", "ops", "sriov", source="c", source_namespace="m", troubles={"ResolutionFailed": words})
    )
    assert cause in trouble.why and words in trouble.why and remedy in trouble.remedy


@pytest.mark.parametrize(
    ("version", "cause", "remedy"),
    [
        (
            ServiceVersion("a.v1", "ops", "Failed", "InstallComponentFailed", "exceeded quota: compute, requested: 1"),
            "quota compute of the namespace",
            "Raise the quota",
        ),
        (
            ServiceVersion("a.v1", "ops", "Failed", "InstallComponentFailed", "deployments.apps: conflict"),
            "OLM could not create the objects of the operator",
            "kubectl -n ops get events",
        ),
        (
            ServiceVersion(
                "a.v1",
                "ops",
                "Pending",
                "RequirementsNotMet",
                "one or more requirements couldn't be found",
                requirements=(
                    "ClusterServiceVersion a.v1: NotPresent, minKubeVersion (1.99.0) > server version (1.34.1)",
                ),
            ),
            "the operator requires Kubernetes 1.99.0 or later",
            "Upgrade the cluster",
        ),
    ],
)
def test_what_a_version_says(version: ServiceVersion, cause: str, remedy: str) -> None:
    trouble = judged(Subscription("a", "ops", "sriov", source="c", source_namespace="m", current="a.v1"), version)
    assert cause in trouble.why and remedy in trouble.remedy


def test_catalog_without_an_image_is_told_what_it_lacks() -> None:
    message = "image and address unset: at least one must be set for sourcetype: grpc"
    catalog = Catalog("c", "m", "", message)
    trouble = judged(Subscription("a", "ops", "sriov", source="c", source_namespace="m"), catalog=catalog)
    assert "the CatalogSource is incomplete" in trouble.why and "Correct its spec" in trouble.remedy
    assert explain_words("all is well") is None


def judged(
    subscription: Subscription,
    version: typing.Optional[ServiceVersion] = None,
    catalog: typing.Optional[Catalog] = None,
) -> typing.Any:
    seen = OlmState(
        catalogs={("m", "c"): catalog or Catalog("c", "m", "READY")},
        subscriptions={("ops", "a"): subscription},
        versions={} if version is None else {("ops", version.name): version},
    )
    (found,) = judge([DesiredOperator("sriov", "ops")], seen)
    assert found.trouble is not None
    return found.trouble
