# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of OLM: what each says of itself, what is left out, and what is none."""

from __future__ import annotations

import contextlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import (
    Catalog,
    Channel,
    InstallPlan,
    OperatorGroup,
    Package,
    Subscription,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators import olm

from ..fake_api import Resource
from ..olm_world import CATALOGS, OURS, SPACE, catalog, condition, group, named, package, plan, subscription, version

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
PARSERS: tuple[typing.Callable[[Resource], typing.Any], ...] = (
    olm.parse_catalog,
    olm.parse_package,
    olm.operator_group,
    olm.parse_subscription,
    olm.install_plan,
    olm.service_version,
)
SAMPLES = (catalog(), package(), group("one"), subscription(), plan("x", ["nfd.v1.0.0"]), version("nfd.v1.0.0"))


@pytest.mark.parametrize(("parse", "sample"), list(zip(PARSERS, SAMPLES)))
@given(
    part=st.sampled_from(["metadata", "spec", "status"]),
    key=st.sampled_from(["name", "conditions", "channels", "selector", "install", "plan"]),
    value=JSON,
)
def test_any_object_is_read_or_refused(
    parse: typing.Callable[[Resource], typing.Any],
    sample: Resource,
    part: str,
    key: str,
    value: typing.Union[bool, int, str, list[typing.Any], None],
) -> None:
    for broken in ({**sample, part: value}, {**sample, part: {**sample.get(part, {}), key: value}}):
        with contextlib.suppress(ResourceError):
            assert parse(broken).name == broken["metadata"]["name"]


@pytest.mark.parametrize(("parse", "sample"), list(zip(PARSERS, SAMPLES)))
def test_what_has_no_status_yet_says_nothing_good(
    parse: typing.Callable[[Resource], typing.Any], sample: Resource
) -> None:
    bare = {**sample, "status": {"catalogSource": "lab"} if sample["kind"] == "PackageManifest" else None}
    found = parse(bare)
    assert (
        not getattr(found, "ready", False)
        and getattr(found, "phase", "") == ""
        and getattr(found, "installed", "") == ""
    )


def test_a_catalog() -> None:
    assert olm.parse_catalog(catalog()) == Catalog("lab", CATALOGS, "READY") and olm.parse_catalog(catalog()).ready
    assert not olm.parse_catalog(catalog("CONNECTING")).ready
    assert olm.parse_catalog({**catalog(), "spec": {"address": "192.0.2.1:50051"}}).address == "192.0.2.1:50051"


def test_a_package() -> None:
    found = olm.parse_package(package(channels={"stable": ["1.1.0", "1.0.0"], "beta": ["2.0.0"]}))
    stable = Channel("stable", "nfd.v1.1.0", {"nfd.v1.1.0": "1.1.0", "nfd.v1.0.0": "1.0.0"})
    assert found == Package(
        "nfd", "lab", CATALOGS, "stable", (stable, Channel("beta", "nfd.v2.0.0", {"nfd.v2.0.0": "2.0.0"}))
    )
    # one channel is the default, and of two none is
    for channels, default in (({"only": ["1"]}, "only"), ({"a": ["1"], "b": ["1"]}, "")):
        item = package(channels=channels)
        assert (
            olm.parse_package({**item, "status": {**item["status"], "defaultChannel": None}}).default_channel == default
        )
    with pytest.raises(ResourceError, match="catalogSource is missing"):
        olm.parse_package({**package(), "status": {}})


def test_an_operator_group() -> None:
    assert olm.operator_group(group("g", ["b", "a"], OURS)) == OperatorGroup("g", SPACE, ("a", "b"), ours=True)
    assert olm.operator_group(group("g")).targets == ()
    selecting = named(
        "OperatorGroup", "g", spec={"selector": {"matchLabels": {"a": "b"}}}, status={"namespaces": ["x"]}
    )
    assert olm.operator_group(selecting) == OperatorGroup("g", SPACE, ("x",), selects=True)
    # all namespaces, as OLM writes them; an empty selector is none
    everything = named("OperatorGroup", "g", spec={"selector": {}}, status={"namespaces": [""]})
    assert olm.operator_group(everything) == OperatorGroup("g", SPACE)


def test_a_subscription() -> None:
    healthy = {"type": "CatalogSourcesUnhealthy", "status": "False", "reason": "AllCatalogSourcesHealthy"}
    failed = condition("ResolutionFailed", "ConstraintsNotSatisfiable", "no operators found")
    found = olm.parse_subscription(
        subscription(
            labels=OURS,
            state="UpgradePending",
            currentCSV="b",
            installedCSV="a",
            installPlanRef={"name": "p"},
            conditions=[healthy, failed],
        )
    )
    troubles = {"ResolutionFailed": "ConstraintsNotSatisfiable: no operators found"}
    assert found == Subscription(
        "nfd", SPACE, "nfd", "stable", "lab", CATALOGS, "Manual", "UpgradePending", "b", "a", "p", troubles, True
    )
    assert found.place == "ops/nfd"
    # any tenant can make one of no package
    assert olm.parse_subscription({**subscription(), "spec": {}}).package == ""


def test_an_install_plan() -> None:
    assert olm.install_plan(plan("p", ["a", "b"])) == InstallPlan("p", SPACE, "RequiresApproval", False, ("a", "b"))
    # what is no boolean is no approval
    assert not olm.install_plan(named("InstallPlan", "p", spec={"approved": "false"})).approved
    pending = condition("BundleLookupPending", "JobIncomplete", "unpack job not completed")
    lookup = {"conditions": [pending, condition("BundleLookupFailed", "Deadline", "late")]}
    failed = {"type": "Installed", "status": "False", "reason": "InstallComponentFailed", "message": "why"}
    found = olm.install_plan(plan("p", [], "Failed", True, message="said", conditions=[failed], bundleLookups=[lookup]))
    assert (found.approved, found.message) == (True, "said; InstallComponentFailed: why; Deadline: late")


def test_a_cluster_service_version() -> None:
    dependent = {"kind": "PolicyRule", "status": "NotSatisfied", "message": "cluster rule: get nodes"}
    requirements = [
        {"kind": "CustomResourceDefinition", "name": "a", "status": "Present"},
        {"kind": "CustomResourceDefinition", "name": "b", "status": "NotPresent", "message": "CRD is not present"},
        {
            "kind": "ServiceAccount",
            "name": "c",
            "status": "Present",
            "dependents": [dependent, {"kind": "PolicyRule", "status": "Satisfied"}],
        },
    ]
    spec = {
        "replaces": "nfd.v0",
        "customresourcedefinitions": {"owned": [{"name": "x.nfd.io"}]},
        "webhookdefinitions": [{"deploymentName": "a.b"}, {"deploymentName": "a.b"}],
    }
    found = olm.service_version(
        version("nfd.v1.0.0", "Pending", "RequirementsNotMet", "m", spec, requirementStatus=requirements)
    )
    assert (found.phase, found.reason, found.message, found.version, found.replaces) == (
        "Pending",
        "RequirementsNotMet",
        "m",
        "1.0.0",
        "nfd.v0",
    )
    assert found.requirements == (
        "CustomResourceDefinition b: NotPresent, CRD is not present",
        "ServiceAccount c: Present, cluster rule: get nodes",
    )
    assert (found.definitions, found.deployments, found.webhooks) == (
        ("x.nfd.io",),
        ("nfd-operator",),
        ("a-b-service",),
    )
