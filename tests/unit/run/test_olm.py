# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators by OLM against an API server over HTTP behind which OLM is played: what is asked for is installed and no
more, and each fault has its cause."""

from __future__ import annotations

import dataclasses
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator, OperatorStatus
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.olm import AGAIN, Installer

from ..fake_api import Resource
from ..olm_world import (
    CATALOGS,
    OURS,
    SPACE,
    OlmWorld,
    catalog,
    condition,
    group,
    named,
    package,
    plan,
    subscription,
    version,
)

WISH = DesiredOperator("nfd", SPACE)
#: far more than any step takes; a wait that gets there has failed
LIMIT = 60.0
#: a minute of patience is half a second here
HASTE = 120.0


@pytest.fixture
def served() -> typing.Iterator[typing.Callable[..., OlmWorld]]:
    worlds: list[OlmWorld] = []

    def start(*packages: Resource, **given: typing.Any) -> OlmWorld:
        worlds.append(OlmWorld(*packages, **given))
        worlds[-1].start()
        return worlds[-1]

    yield start
    for world in worlds:
        world.stop()


Served = typing.Callable[..., OlmWorld]


class Answer(typing.NamedTuple):
    stands: tuple[OperatorStatus, ...]
    outcomes: tuple[Outcome, ...]
    said: list[str]

    @property
    def only(self) -> OperatorStatus:
        (stand,) = self.stands
        return stand

    @property
    def changed(self) -> list[str]:
        return [
            f"{item.applied.action} {item.applied.kind} {item.applied.name}" for item in self.outcomes if item.changed
        ]


def run(world: OlmWorld, *wishes: DesiredOperator, check_mode: bool = False, limit: float = LIMIT) -> Answer:
    said: list[str] = []
    stamps = iter(range(1000))
    installer = Installer(
        world.client(world.url), time.monotonic, lambda seconds: None, said.append, lambda: str(next(stamps)), HASTE
    )
    facts, outcomes = installer.run(wishes or (WISH,), check_mode, limit)
    return Answer(facts.operators, outcomes, said)


def failed(answer: Answer, *words: str) -> OperatorStatus:
    """The one operator, which has failed with these words; the remedy is one."""
    stand = answer.only
    assert stand.phase == "failed", stand
    assert all(word in stand.detail for word in words), stand.detail
    assert stand.remedy and "?" not in stand.remedy
    assert any(f"{stand.package} failed: {stand.detail}" in line for line in answer.said)
    return stand


def test_it_is_installed_and_a_second_run_changes_nothing(served: Served) -> None:
    world = served()
    answer = run(world)
    assert answer.only.phase == "ready", answer.said
    assert (answer.only.wanted, answer.only.installed, answer.only.upgrade, answer.only.ours) == (
        "nfd.v1.0.0",
        "nfd.v1.0.0",
        "",
        True,
    )
    (made,) = world.names("InstallPlan")
    assert answer.changed == [
        f"created Namespace {SPACE}",
        "created OperatorGroup linerate-rdma",
        "created Subscription nfd",
        f"changed InstallPlan {made}",
    ]
    spec = world.at("Subscription", "nfd")["spec"]
    assert spec == {
        "name": "nfd",
        "source": "lab",
        "sourceNamespace": CATALOGS,
        "installPlanApproval": "Manual",
        "channel": "stable",
    }
    assert answer.said[-1].endswith("nfd ready: nfd.v1.0.0 Succeeded")
    again = run(world)
    assert again.only == answer.only and again.changed == []


def test_check_mode_tells_it_and_writes_nothing(served: Served) -> None:
    world = served()
    answer = run(world, check_mode=True)
    assert answer.only.phase == "planned" and "created Subscription nfd" in answer.changed
    assert not world.names("Subscription") and not world.names("Namespace")
    # an approval is foreseen as well
    world.have(group("linerate-rdma", labels=OURS), subscription(labels=OURS))
    title = world.plans({"nfd": "nfd.v1.0.0"})
    answer = run(world, check_mode=True)
    assert answer.only.phase == "planned" and f"InstallPlan {SPACE}/{title} would be approved" in answer.only.detail
    assert (
        f"changed InstallPlan {title}" in answer.changed and world.at("InstallPlan", title)["spec"]["approved"] is False
    )


def test_check_mode_on_what_is_there_finds_what_a_run_finds(served: Served) -> None:
    world = served()
    done = run(world)
    dry = run(world, check_mode=True)
    assert dry.only == done.only and dry.changed == []


def test_an_interrupted_run_goes_on(served: Served) -> None:
    world = served()
    world.approved = lambda item: None
    assert run(world, limit=0.5).only.phase == "waiting"
    (title,) = world.names("InstallPlan")
    assert world.at("InstallPlan", title)["spec"]["approved"] is True
    world.install(world.at("InstallPlan", title))
    answer = run(world)
    assert answer.only.phase == "ready" and answer.changed == []


def test_the_version_that_is_asked_for_and_no_later_one(served: Served) -> None:
    world = served(package(channels={"stable": ["1.1.0", "1.0.0"]}))
    answer = run(world, DesiredOperator("nfd", SPACE, version="1.0.0"))
    assert answer.only.phase == "ready" and answer.only.installed == "nfd.v1.0.0"
    assert answer.only.upgrade == "nfd.v1.1.0"
    assert world.at("Subscription", "nfd")["spec"]["startingCSV"] == "nfd.v1.0.0"
    # OLM plans the next one at once, and it is left alone
    title = world.plans({"nfd": "nfd.v1.1.0"})
    answer = run(world, DesiredOperator("nfd", SPACE, version="1.0.0"))
    assert answer.only.phase == "ready" and answer.only.upgrade == "nfd.v1.1.0" and answer.changed == []
    assert world.at("InstallPlan", title)["spec"]["approved"] is False
    # without a version what is there stays
    assert run(world).only.installed == "nfd.v1.0.0"
    answer = run(world, DesiredOperator("nfd", SPACE, version="nfd.v1.1.0"))
    assert (
        answer.only.phase == "ready"
        and answer.only.installed == "nfd.v1.1.0"
        and f"changed InstallPlan {title}" in answer.changed
    )


def test_an_upgrade_by_another_version_is_named(served: Served) -> None:
    world = served(package(channels={"stable": ["1.2.0", "1.1.0", "1.0.0"]}))
    run(world, DesiredOperator("nfd", SPACE, version="1.0.0"))
    title = world.plans({"nfd": "nfd.v1.1.0"})
    stand = failed(
        run(world, DesiredOperator("nfd", SPACE, version="1.2.0")), "OLM upgrades from nfd.v1.0.0 to nfd.v1.1.0 first"
    )
    assert "Set version to nfd.v1.1.0" in stand.remedy and world.at("InstallPlan", title)["spec"]["approved"] is False


def test_installed_version_is_not_replaced_where_nothing_may_be_disturbed(served: Served) -> None:
    world = served(package(channels={"stable": ["1.1.0", "1.0.0"]}))
    first = DesiredOperator("nfd", SPACE, version="1.0.0", upgrade=False)
    assert run(world, first).only.installed == "nfd.v1.0.0" and run(world, first).only.phase == "ready"
    title = world.plans({"nfd": "nfd.v1.1.0"})
    stand = failed(
        run(world, dataclasses.replace(first, version="1.1.0")),
        "rdma_cluster.disruption is none",
        "nfd.v1.0.0 -> nfd.v1.1.0",
    )
    assert "rdma_cluster.disruption to drain" in stand.remedy
    assert world.at("InstallPlan", title)["spec"]["approved"] is False
    assert run(world, dataclasses.replace(first, version="")).only.phase == "ready"


def test_an_older_version_is_not_gone_back_to(served: Served) -> None:
    world = served(package(channels={"stable": ["1.1.0", "1.0.0"]}))
    run(world)
    stand = failed(
        run(world, DesiredOperator("nfd", SPACE, version="1.0.0")), "nfd.v1.1.0 is installed", "nfd.v1.0.0 is requested"
    )
    assert "OLM does not downgrade" in stand.remedy


def test_a_default_channel_that_changes_is_no_wish(served: Served) -> None:
    world = served()
    run(world)
    world.packages = [package(channels={"v2": ["2.0.0"], "stable": ["1.0.0"]})]
    answer = run(world)
    assert answer.changed == [] and world.at("Subscription", "nfd")["spec"]["channel"] == "stable"


# what is there


def test_a_subscription_of_somebody_else_is_used_and_not_touched(served: Served) -> None:
    world = served()
    world.have(
        subscription("theirs", spec={"name": "nfd"}, currentCSV="nfd.v1.0.0", installedCSV="nfd.v1.0.0"),
        version("nfd.v1.0.0"),
    )
    answer = run(world, DesiredOperator("nfd", "elsewhere"))
    assert (answer.only.phase, answer.only.ours, answer.only.subscription) == ("ready", False, f"{SPACE}/theirs")
    assert world.writes() == []


@pytest.mark.parametrize("marks", [{}, OURS])
@pytest.mark.parametrize("before", [False, True])
def test_a_subscription_of_a_tenant_that_installed_nothing_does_not_count(
    served: Served, marks: typing.Mapping[str, str], before: bool
) -> None:
    """The role edit lets make one in any namespace, with any label; without an OperatorGroup OLM does nothing by it."""
    world = served()
    if before:
        run(world)
    world.serve("Subscription", [], "mallory")
    theirs = subscription("x", spec={"name": "nfd"})
    world.have({**theirs, "metadata": {**theirs["metadata"], "namespace": "mallory", "labels": dict(marks)}})
    answer = run(world)
    assert (answer.only.phase, answer.only.subscription, bool(answer.changed)) == ("ready", f"{SPACE}/nfd", not before)
    assert not any("mallory" in line for line in answer.said)


def test_a_subscription_that_installed_nothing_where_olm_may_install_is_named(served: Served) -> None:
    world = served()
    for kind in ("Subscription", "OperatorGroup"):
        world.serve(kind, [], "mallory")
    for item in (subscription("x", spec={"name": "nfd"}), group("all", [])):
        world.have({**item, "metadata": {**item["metadata"], "namespace": "mallory"}})
    assert any("Subscription mallory/x is ignored because it has installed nothing" in line for line in run(world).said)


def test_a_plan_of_somebody_else_is_not_approved(served: Served) -> None:
    world = served()
    world.have(subscription())
    world.plans({"nfd": "nfd.v1.0.0"})
    stand = failed(run(world), "linerate.rdma does not manage Subscription ops/nfd", "waits for approval")
    assert "patch installplan" in stand.remedy and world.writes() == []


def test_another_version_of_somebody_else_is_named(served: Served) -> None:
    world = served(package(channels={"stable": ["1.1.0", "1.0.0"]}))
    world.have(subscription(currentCSV="nfd.v1.0.0", installedCSV="nfd.v1.0.0"), version("nfd.v1.0.0"))
    failed(
        run(world, DesiredOperator("nfd", SPACE, version="1.1.0")),
        "nfd.v1.0.0 is installed by Subscription ops/nfd, which linerate.rdma does not manage",
    )


def test_an_operator_group_that_fits_is_used(served: Served) -> None:
    world = served()
    world.have(group("theirs", [SPACE]))
    answer = run(world, DesiredOperator("nfd", SPACE, target_namespaces=(SPACE,)))
    assert answer.only.phase == "ready" and world.names("OperatorGroup") == {"theirs"}


def test_an_operator_group_that_does_not_fit_is_refused_by_name(served: Served) -> None:
    world = served()
    world.have(group("theirs", [SPACE]))
    failed(run(world), "OperatorGroup ops/theirs watches ops", "all namespaces is requested")
    assert world.writes() == []


def test_an_operator_of_ours_is_not_moved(served: Served) -> None:
    world = served()
    run(world)
    failed(run(world, DesiredOperator("nfd", "elsewhere")), "this collection installed the operator in namespace ops")


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ((WISH, WISH), "is requested more than once"),
        (
            (WISH, DesiredOperator("gpu", SPACE, target_namespaces=("a",))),
            "a namespace can have only one OperatorGroup",
        ),
    ],
)
def test_wishes_that_contradict_each_other_are_refused(
    wishes: typing.Sequence[DesiredOperator], words: str, served: Served
) -> None:
    world = served()
    assert all(stand.phase == "failed" and words in stand.detail for stand in run(world, *wishes).stands)
    assert world.writes() == []


def test_one_that_cannot_be_had_keeps_no_other_back(served: Served) -> None:
    world = served()
    answer = run(world, DesiredOperator("absent", "x"), WISH)
    assert [stand.phase for stand in answer.stands] == ["failed", "ready"]


# catalogs


def test_a_catalog_that_is_gone(served: Served) -> None:
    world = served()
    stand = failed(
        run(world, DesiredOperator("nfd", SPACE, source="gone", source_namespace=CATALOGS)),
        "CatalogSource olm/gone does not exist; the cluster has",
        "olm/lab",
    )
    assert "source" in stand.remedy and world.writes() == []


def test_a_catalog_that_goes_while_it_is_waited_for(served: Served) -> None:
    world = served()
    world.subscribed = lambda item: world.lose(catalog())
    failed(run(world), "CatalogSource olm/lab does not exist")


def test_a_catalog_that_does_not_answer(served: Served) -> None:
    world = served(tells=False)
    world.have(catalog("TRANSIENT_FAILURE"))
    world.subscribed = lambda item: None
    words = 'ImagePullBackOff: Back-off pulling image "quay.io/x": manifest unknown'
    world.have(_pod("lab-x7", words, CATALOGS))
    stand = failed(
        run(world),
        "catalog olm/lab does not respond: TRANSIENT_FAILURE",
        "pod lab-x7: ImagePullBackOff",
        "The registry has no image with this name",
    )
    assert "spec.image of CatalogSource lab" in stand.remedy


def test_a_catalog_that_somebody_else_serves(served: Served) -> None:
    """OLM makes no pod of it, so that there is none to look at."""
    world = served(tells=False)
    item = catalog("TRANSIENT_FAILURE")
    world.have({**item, "spec": {**item["spec"], "address": "192.0.2.1:50051"}})
    world.subscribed = lambda item: None
    stand = failed(run(world), "catalog olm/lab does not respond: TRANSIENT_FAILURE")
    assert "Start the server at 192.0.2.1:50051" in stand.remedy and "get pods" not in stand.remedy


def test_the_package_s_absence_is_told_before_anything_is_made(served: Served) -> None:
    world = served()
    failed(
        run(world, DesiredOperator("absent", SPACE, source="lab", source_namespace=CATALOGS)),
        "catalog olm/lab has no package absent",
    )
    failed(
        run(world, DesiredOperator("absent", SPACE)),
        "no catalog of the cluster offers package absent",
        "olm/lab (READY)",
    )
    assert world.writes() == []


def test_the_channel_s_absence_is_told_before_anything_is_made(served: Served) -> None:
    world = served()
    failed(run(world, DesiredOperator("nfd", SPACE, channel="beta")), "package nfd has no channel beta; it has: stable")
    failed(
        run(world, DesiredOperator("nfd", SPACE, version="9.9.9")),
        "channel stable of package nfd has no nfd.v9.9.9; it has: nfd.v1.0.0",
    )
    assert world.writes() == []


def test_several_catalogs_offer_it(served: Served) -> None:
    world = served(package(), package(source="other"))
    world.have(catalog(name="other"))
    failed(run(world), "package nfd is in 2 catalogs: olm/lab, olm/other")
    assert run(world, DesiredOperator("nfd", SPACE, source="lab")).only.phase == "ready"


def test_a_cluster_that_does_not_tell_what_catalogs_offer(served: Served) -> None:
    world = served(tells=False)
    answer = run(world)
    assert answer.only.phase == "ready"
    # OLM chooses the default channel
    assert "channel" not in world.at("Subscription", "nfd")["spec"]


def test_a_channel_that_was_wrong_is_forgotten_with_the_wish_for_it(served: Served) -> None:
    """Nothing was installed from it, and OLM alone told that it is not there."""
    world = served(tells=False)
    said = (
        "constraints not satisfiable: no operators found in channel nightly of package nfd in the catalog referenced by"
        " subscription nfd"
    )

    def look(item: Resource) -> None:
        if item["spec"].get("channel") != "nightly":
            world.have({**item, "status": {}})
            world.resolve(world.at("Subscription", "nfd"))
        else:
            world.have(
                {**item, "status": {"conditions": [condition("ResolutionFailed", "ConstraintsNotSatisfiable", said)]}}
            )

    world.subscribed = look
    failed(run(world, DesiredOperator("nfd", SPACE, channel="nightly")), "no operators found in channel nightly")
    assert run(world).only.phase == "ready" and "channel" not in world.at("Subscription", "nfd")["spec"]


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("no operators found in package nfd in the catalog referenced by subscription nfd", "Correct package"),
        (
            "no operators found in channel beta of package nfd in the catalog referenced by subscription nfd",
            "packagemanifest nfd",
        ),
        (
            (
                "no operators found with name nfd.v9 in channel stable of package nfd in the catalog referenced by"
                " subscription nfd"
            ),
            "Correct version",
        ),
        (
            "clusterserviceversion nfd.v0 exists and is not referenced by a subscription",
            "kubectl -n ops delete clusterserviceversions.operators.coreos.com nfd.v0",
        ),
    ],
)
def test_a_resolution_that_fails(said: str, remedy: str, served: Served) -> None:
    world = served(tells=False)

    def refuse(item: Resource) -> None:
        world.have(
            {
                **item,
                "status": {
                    "conditions": [
                        condition(
                            "ResolutionFailed", "ConstraintsNotSatisfiable", f"constraints not satisfiable: {said}"
                        )
                    ]
                },
            }
        )

    world.subscribed = refuse
    stand = failed(run(world), said)
    assert remedy in stand.remedy
    assert world.names("InstallPlan") == set()


def test_a_resolution_that_failed_before_the_catalog_answered_is_looked_at_again(served: Served) -> None:
    world = served(tells=False)

    def olm(item: Resource) -> None:
        if AGAIN in item["metadata"].get("annotations", {}):
            world.resolve(item)
        else:
            said = (
                "constraints not satisfiable: no operators found from catalog lab in namespace olm referenced by"
                " subscription nfd"
            )
            world.have(
                {**item, "status": {"conditions": [condition("ResolutionFailed", "ConstraintsNotSatisfiable", said)]}}
            )

    world.subscribed = olm
    answer = run(world)
    assert answer.only.phase == "ready" and any("no operators found from catalog lab" in line for line in answer.said)
    # what made OLM look is no change of what was asked for
    assert run(world).changed == []


def test_a_subscription_of_somebody_else_is_not_looked_at_again(served: Served) -> None:
    world = served()
    world.have(
        subscription(
            conditions=[
                condition("ResolutionFailed", "ConstraintsNotSatisfiable", "no operators found from catalog lab in x")
            ]
        )
    )
    failed(run(world), "no operators found from catalog lab")
    assert world.writes() == []


# operators


def _pod(name: str, words: str, namespace: str = SPACE) -> Resource:
    reason, _colon, message = words.partition(": ")
    waiting = [{"state": {"waiting": {"reason": reason, "message": message}}}]
    status = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": waiting,
    }
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "status": status}


def _approved_into(world: OlmWorld, *made: Resource) -> None:
    """OLM makes this of an approval."""

    def olm(item: Resource) -> None:
        world.have({**item, "status": {"phase": "Complete"}}, *made)
        for one in made:
            world.installed(one["metadata"]["name"])

    world.approved = olm


def test_a_version_that_waits_for_a_requirement(served: Served) -> None:
    world = served()
    requirement = {
        "kind": "CustomResourceDefinition",
        "name": "widgets.example.org",
        "status": "NotPresent",
        "message": "CRD is not present",
    }
    present = {"kind": "ServiceAccount", "name": "nfd", "status": "Present", "message": ""}
    _approved_into(
        world,
        version(
            "nfd.v1.0.0",
            "Pending",
            "RequirementsNotMet",
            "one or more requirements",
            requirementStatus=[requirement, present],
        ),
    )
    stand = failed(run(world), "CustomResourceDefinition widgets.example.org: NotPresent, CRD is not present")
    assert "ServiceAccount" not in stand.detail


def test_two_operator_groups(served: Served) -> None:
    world = served()
    world.have(group("one"), group("two"))
    stand = failed(run(world), "namespace ops has 2 OperatorGroups (one, two)")
    assert "kubectl -n ops delete operatorgroup" in stand.remedy and world.writes() == []


def test_a_second_operator_group_that_comes_later(served: Served) -> None:
    world = served()

    def olm(item: Resource) -> None:
        world.have(
            group("second"),
            {**item, "status": {"phase": "Complete"}},
            version("nfd.v1.0.0", "Failed", "TooManyOperatorGroups", "can't pick one"),
        )

    world.approved = olm
    failed(run(world), "2 OperatorGroups (linerate-rdma, second)")


def test_a_plan_that_holds_more_than_was_asked_for(served: Served) -> None:
    world = served()

    def olm(item: Resource) -> None:
        world.plans({"nfd": "nfd.v1.0.0"}, "theirs.v2.0.0")

    world.subscribed = olm
    stand = failed(
        run(world),
        "installs theirs.v2.0.0 in addition to nfd.v1.0.0. These versions are not requested, so this run does not"
        " approve the InstallPlan",
    )
    assert "give the operator its own namespace" in stand.remedy
    (title,) = world.names("InstallPlan")
    assert world.at("InstallPlan", title)["spec"]["approved"] is False and not world.names("ClusterServiceVersion")


def test_a_plan_that_would_upgrade_another_operator_of_ours_is_not_approved(served: Served) -> None:
    world = served(package(), package("gpu"))
    run(world)

    def olm(item: Resource) -> None:
        world.plans({"gpu": "gpu.v1.0.0", "nfd": "nfd.v1.1.0"})

    world.subscribed = olm
    answer = run(world, WISH, DesiredOperator("gpu", SPACE))
    assert [(stand.package, stand.phase) for stand in answer.stands] == [("nfd", "ready"), ("gpu", "failed")]
    assert (
        answer.stands[0].upgrade == "nfd.v1.1.0"
        and "installs nfd.v1.1.0 in addition to gpu.v1.0.0" in answer.stands[1].detail
    )


def test_a_plan_of_two_operators_that_were_both_asked_for_is_approved(served: Served) -> None:
    world = served(package(), package("gpu"))

    def olm(item: Resource) -> None:
        if item["metadata"]["name"] == "gpu":
            world.plans({"gpu": "gpu.v1.0.0", "nfd": "nfd.v1.0.0"})

    world.subscribed = olm
    answer = run(world, WISH, DesiredOperator("gpu", SPACE))
    assert {stand.phase for stand in answer.stands} == {"ready"} and len(
        [line for line in answer.changed if "InstallPlan" in line]
    ) == 1


def test_an_image_that_cannot_be_pulled(served: Served) -> None:
    world = served()
    world.have(_pod("nfd-operator-7f", "ErrImagePull: lookup quay.io: no such host"))
    _approved_into(world, version("nfd.v1.0.0", "Installing", "InstallWaiting", "waiting for deployment nfd-operator"))
    stand = failed(
        run(world),
        "pod nfd-operator-7f: ErrImagePull: lookup quay.io: no such host",
        "The node cannot reach the registry",
    )
    assert "spec.noProxy" in stand.remedy


def test_a_bundle_that_cannot_be_unpacked(served: Served) -> None:
    world = served()

    def olm(item: Resource) -> None:
        said = "Bundle unpacking failed - DeadlineExceeded: Job was active longer than specified deadline"
        world.have({**item, "status": {"conditions": [condition("BundleUnpackFailed", "BundleUnpackFailed", said)]}})

    world.subscribed = olm
    assert "kubectl -n olm get jobs" in failed(run(world), "OLM could not unpack the bundle", "DeadlineExceeded").remedy


WEBHOOK = {
    "webhookdefinitions": [
        {"type": "ValidatingAdmissionWebhook", "generateName": "v.example.org", "deploymentName": "nfd.operator"}
    ]
}


def _slice(ready: bool) -> Resource:
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": "s", "namespace": SPACE},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
    }


@pytest.mark.parametrize("slices", [[], [_slice(False)]])
def test_a_webhook_without_endpoints(slices: typing.Sequence[Resource], served: Served) -> None:
    world = served()
    world.have(*slices)
    _approved_into(world, version("nfd.v1.0.0", spec=WEBHOOK))
    stand = failed(
        run(world),
        ("the webhook of the operator is not available: Service ops/nfd-operator-service has no ready address"),
    )
    assert "endpointslices" in stand.remedy
    # and it is proven once it does
    world.have(_slice(True))
    assert run(world).only.phase == "ready"


def test_a_webhook_of_another_operator_in_the_way_of_a_plan(served: Served) -> None:
    world = served()

    def olm(item: Resource) -> None:
        said = (
            'retrying execution due to error: failed calling webhook "v.kb.io": no endpoints available for service'
            ' "old-webhook"'
        )
        world.have({**item, "status": {"phase": "Installing", "message": said}})

    world.approved = olm
    assert (
        "Service old-webhook"
        in failed(
            run(world), "a webhook is not available: Service old-webhook", 'failed calling webhook "v.kb.io"'
        ).remedy
    )


def test_a_version_that_is_replaced(served: Served) -> None:
    world = served(package(channels={"stable": ["1.1.0", "1.0.0"]}))
    _approved_into(
        world,
        version("nfd.v1.0.0", "Replacing", "BeingReplaced"),
        version("nfd.v1.1.0", "Installing", spec={"replaces": "nfd.v1.0.0"}),
    )
    stand = failed(
        run(world, DesiredOperator("nfd", SPACE, version="1.0.0")), "nfd.v1.0.0 is being replaced by nfd.v1.1.0"
    )
    assert "Set version to nfd.v1.1.0" in stand.remedy


def test_a_version_that_is_gone_from_under_its_subscription(served: Served) -> None:
    world = served()
    run(world)
    world.lose(version("nfd.v1.0.0"))
    stand = failed(run(world), "ClusterServiceVersion nfd.v1.0.0 does not exist")
    assert "delete subscriptions.operators.coreos.com nfd" in stand.remedy


@pytest.mark.parametrize(
    ("said", "words", "remedy"),
    [
        (
            'risk of data loss updating "widgets.example.org": new CRD removes version v1alpha1',
            "older version",
            "status.storedVersions",
        ),
        (
            'error validating existing CRs against new CRD\'s schema for "widgets.example.org": spec.x is required',
            "some of its objects do not match",
            "widgets.example.org",
        ),
        (
            'error updating CRD "widgets.example.org": is invalid',
            "already exists",
            "helm uninstall keeps CRDs",
        ),
    ],
)
def test_a_definition_of_an_older_version_in_the_way(said: str, words: str, remedy: str, served: Served) -> None:
    world = served()
    failure = {"type": "Installed", "status": "False", "reason": "InstallComponentFailed", "message": said}
    world.approved = lambda item: world.have(
        {**item, "status": {"phase": "Failed", "message": said, "conditions": [failure]}}
    )
    assert remedy in failed(run(world), "CRD widgets.example.org", words).remedy


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("UnsupportedOperatorGroup", "cannot watch the namespaces of its OperatorGroup"),
        ("NoOperatorGroup", "has no OperatorGroup"),
        ("InstallCheckFailed", "were not ready in time"),
        ("ComponentUnhealthy", "and are not ready now"),
        ("APIServiceResourceIssue", "the API of the operator is not available"),
        ("OwnerConflict", "another operator owns"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_a_version_that_failed(reason: str, words: str, served: Served) -> None:
    world = served()
    _approved_into(world, version("nfd.v1.0.0", "Failed", reason, "as OLM says"))
    failed(run(world), "Failed", "as OLM says", words)


def test_a_failure_that_passes_is_none(served: Served) -> None:
    world = served()

    def olm(item: Resource) -> None:
        world.have(
            {**item, "status": {"phase": "Complete"}},
            version("nfd.v1.0.0", "Failed", "InstallCheckFailed", "deployment not ready before timeout"),
        )
        world.installed("nfd.v1.0.0")

    world.approved = olm
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "InstallCheckFailed" in line:
            world.have(version("nfd.v1.0.0"))

    installer = Installer(world.client(world.url), time.monotonic, lambda seconds: None, say, lambda: "1", HASTE)
    assert installer.run((WISH,), False, LIMIT)[0].operators[0].phase == "ready", said


# the API server


def test_without_olm_it_is_said(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    world = served()
    monkeypatch.setattr(world, "object", lambda path: None)
    monkeypatch.setattr(world, "listing", lambda path: None)
    with pytest.raises(RdmaError, match="has no OLM"):
        run(world)


def test_a_server_that_goes_away_is_waited_for(served: Served) -> None:
    world = served()
    world.approved = lambda item: None
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "is approved" in line and len(world.names("ClusterServiceVersion")) == 0:
            (title,) = world.names("InstallPlan")
            world.stop()
            world.install(world.at("InstallPlan", title))
            world.start()

    installer = Installer(world.client(world.url), time.monotonic, lambda seconds: None, say, lambda: "1", HASTE)
    assert installer.run((WISH,), False, LIMIT)[0].operators[0].phase == "ready", said


def test_a_server_that_is_away_is_an_error(served: Served) -> None:
    world = served()
    world.stop()
    with pytest.raises(ApiError):
        run(world)


def test_an_approval_that_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    world = served()
    real = world.write

    def write(method: str, path: str, body: Resource, **more: typing.Any) -> tuple[int, Resource]:
        if method == "PATCH" and "/installplans/" in path:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "installplans is forbidden"}
        return real(method, path, body, **more)

    monkeypatch.setattr(world, "write", write)
    assert "docs/rbac/operators-olm.yml" in failed(run(world), "cannot be approved: installplans is forbidden").remedy


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "TooManyRequests"), (409, "Conflict"), (503, "ServiceUnavailable")]
)
def test_approval_is_sent_again_after_a_temporary_error(
    served: Served, monkeypatch: pytest.MonkeyPatch, status: int, reason: str
) -> None:
    world = served()
    real = world.write
    refused: list[str] = []

    def write(method: str, path: str, body: Resource, **more: typing.Any) -> tuple[int, Resource]:
        if method == "PATCH" and "/installplans/" in path and len(refused) < 2:
            refused.append(path)
            return status, {"kind": "Status", "code": status, "reason": reason, "message": "not now"}
        return real(method, path, body, **more)

    monkeypatch.setattr(world, "write", write)
    answer = run(world)
    assert answer.only.phase == "ready" and len(refused) == 2
    assert any("could not be approved yet" in line and "not now" in line for line in answer.said)


def test_an_object_that_is_refused_names_its_operator(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    world = served()
    real = world.write

    def write(method: str, path: str, body: Resource, **more: typing.Any) -> tuple[int, Resource]:
        if method == "PATCH" and "/operatorgroups/" in path:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not allowed"}
        return real(method, path, body, **more)

    monkeypatch.setattr(world, "write", write)
    failed(run(world), "the API server rejected OperatorGroup linerate-rdma: not allowed")


def test_what_cannot_be_read_is_no_absent_one(served: Served) -> None:
    world = served()
    world.have(named("Subscription", "x", spec=["is not a mapping"]))
    with pytest.raises(RdmaError, match="is not a mapping"):
        run(world)
    assert world.writes() == [] and plan("p", [])["spec"]["approved"] is False
