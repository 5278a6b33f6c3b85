# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge the progress of operators that OLM v0 installs: the phase of each, the cause for which it waits, and the next
step.

Conditions and phases: github.com/operator-framework/api, pkg/operators/v1alpha1. Causes: causes.py.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.operators.olm import DesiredOperator, InstallPlan, OperatorStatus, ServiceVersion, Subscription
from .causes import (
    LASTING_SECONDS,
    PASSING_SECONDS,
    explain_catalog,
    explain_conditions,
    explain_missing_upgrade,
    explain_text,
    explain_version,
    name_newer_version,
    show_subscription,
)
from .state import Next, OlmState, Place, Trouble, find_wanted_version, list_wanted_versions, subscription_of


def group_trouble(
    namespace: str, targets: typing.Iterable[str], seen: OlmState, lasting: float = 0.0
) -> typing.Optional[Trouble]:
    """Return the reason why OLM can install nothing with the OperatorGroups of a namespace. Return None if there is
    exactly one with the required namespaces, or none at all.

    :param namespace: namespace of the operator
    :param targets: namespaces that the operator must watch; empty for all
    :param seen: objects of OLM in the cluster
    :param lasting: seconds after which the trouble counts as a failure
    """
    found = sorted((item for item in seen.groups.values() if item.namespace == namespace), key=lambda item: item.name)
    names = ", ".join(item.name for item in found)
    wished = tuple(sorted(targets))
    if len(found) > 1:
        why = (
            f"namespace {namespace} has {len(found)} OperatorGroups ({names}). OLM installs nothing in a namespace with"
            " more than one OperatorGroup, and the operators there fail"
        )
        kept = min(found, key=lambda item: (item.targets != wished, not item.ours, item.name))
        others = " ".join(item.name for item in found if item is not kept)
        return Trouble(
            "groups",
            why,
            f"Keep one of them, for example {kept.name}: kubectl -n {namespace} delete operatorgroup {others}",
            lasting,
        )
    if found and found[0].targets != wished:
        watched = _name_spaces(found[0].targets)
        why = f"OperatorGroup {namespace}/{names} watches {watched}, but {_name_spaces(wished)} is requested"
        remedy = (
            f"Set target_namespaces to [{', '.join(found[0].targets)}], use a different namespace, or change the"
            f" OperatorGroup: kubectl -n {namespace} edit operatorgroup {names}"
        )
        return Trouble("groups", why, remedy, lasting)
    return None


def _name_spaces(targets: typing.Sequence[str]) -> str:
    return ", ".join(targets) or "all namespaces"


def judge(wishes: typing.Sequence[DesiredOperator], seen: OlmState) -> tuple[Next, ...]:
    """Return for each requested operator, in the order of the requests, the status of its installation, the cause for
    which it waits, and the next step of the run.

    :param wishes: requested operators
    :param seen: objects of OLM in the cluster
    """
    return tuple(_judge_operator(wish, wishes, seen) for wish in wishes)


def _judge_operator(wish: DesiredOperator, wishes: typing.Sequence[DesiredOperator], seen: OlmState) -> Next:
    subscription = subscription_of(wish, seen)
    if subscription is None:
        trouble = Trouble(
            "subscription",
            "the Subscription of the operator no longer exists",
            f"Correct the cause in the events (kubectl -n {wish.namespace} get events), then run stage operators again",
            PASSING_SECONDS,
        )
        return _report_wait(OperatorStatus(wish.package, wish.namespace, "waiting", ""), trouble)
    name = find_wanted_version(wish, subscription, seen)
    stand = OperatorStatus(
        package=wish.package,
        namespace=subscription.namespace,
        phase="waiting",
        detail="",
        subscription=subscription.place,
        ours=subscription.ours,
        wanted=name,
        installed=subscription.installed,
        upgrade=_find_upgrade(wish, subscription, seen),
    )
    version = seen.versions.get((subscription.namespace, name))
    there = version is not None and version.phase == "Succeeded" and subscription.installed == name
    services = (
        tuple((subscription.namespace, service) for service in version.webhooks)
        if version is not None and there
        else ()
    )
    unserved = [service for service in services if seen.served.get(service) is False]
    if there and not unserved and all(service in seen.served for service in services):
        return Next(
            dataclasses.replace(stand, phase="ready", detail=f"{name} {version.phase if version else ''}"),
            services=services,
        )
    if services:
        space, service = (unserved or list(services))[0]
        why = (
            f"the webhook of the operator is not available: Service {space}/{service} has no ready address"
            if unserved
            else "the webhooks of the operator are being checked"
        )
        remedy = (
            f"Correct the pods of the Service that are not ready: kubectl -n {space} get endpointslices,pods. The"
            " Service needs a ready pod with the labels that it selects"
        )
        return _report_wait(
            stand,
            Trouble("webhook", why, remedy, PASSING_SECONDS if unserved else None),
            services=services,
            pods=(space,),
        )
    return _judge_unfinished(wish, wishes, seen, subscription, stand, version)


def _judge_unfinished(
    wish: DesiredOperator,
    wishes: typing.Sequence[DesiredOperator],
    seen: OlmState,
    subscription: Subscription,
    stand: OperatorStatus,
    version: typing.Optional[ServiceVersion],
) -> Next:
    """Return the status of an operator that is not installed yet, together with the first cause that explains the wait.
    The status is ``stand``, with the text of the cause and its remedy added.

    :param wish: requested operator
    :param wishes: all requested operators
    :param seen: objects of OLM in the cluster
    :param subscription: Subscription of the operator
    :param stand: status of the operator without a cause, in the phase ``waiting``
    :param version: ClusterServiceVersion to install; None if it does not exist yet
    """
    space = subscription.namespace
    # the OperatorGroup of a Subscription that is not managed here is not judged
    targets = wish.target_namespaces if space == wish.namespace and subscription.ours else None
    trouble = group_trouble(space, targets, seen, PASSING_SECONDS) if targets is not None else None
    if trouble is not None:
        return _report_wait(stand, trouble)
    if version is not None:
        return _report_wait(stand, explain_version(version, seen), pods=(space,))
    plan = seen.plans.get((space, subscription.plan))
    catalog = seen.catalogs.get((subscription.source_namespace, subscription.source))
    pods = (space, subscription.source_namespace)
    if (
        plan is not None
        and plan.phase not in ("", "Complete")
        and (plan.phase != "Failed" or stand.wanted in plan.versions)
    ):
        return _judge_plan(plan, subscription, stand, list_wanted_versions(space, wishes, seen), seen)
    if catalog is None or not catalog.ready:
        return _report_wait(stand, explain_catalog(subscription, catalog, seen), pods=pods)
    found = explain_conditions(subscription, seen)
    if found is not None:
        return _report_wait(stand, found, pods=pods)._replace(again=subscription.ours and found.kind == "resolution")
    if subscription.installed and subscription.installed != stand.wanted:
        return _report_wait(stand, explain_missing_upgrade(subscription, stand.wanted))
    if plan is not None and plan.phase == "Complete":
        newer = [
            item.name for item in seen.versions.values() if item.namespace == space and item.replaces == stand.wanted
        ]
        why = (
            f"ClusterServiceVersion {stand.wanted} does not exist, although its InstallPlan {plan.name} is"
            f" complete{f'; {newer[0]} has replaced it' if newer else ''}"
        )
        return _report_wait(
            stand, Trouble("replaced", why, name_newer_version(wish, newer, subscription), PASSING_SECONDS)
        )
    return _report_wait(
        stand, Trouble("olm", "OLM has not processed the Subscription yet", show_subscription(subscription))
    )


def _report_wait(
    stand: OperatorStatus, trouble: Trouble, services: tuple[Place, ...] = (), pods: tuple[str, ...] = ()
) -> Next:
    stand = dataclasses.replace(stand, detail=trouble.why, remedy=trouble.remedy)
    return Next(stand, trouble, pods=tuple(dict.fromkeys(filter(None, pods))), services=services)


def _find_upgrade(wish: DesiredOperator, subscription: Subscription, seen: OlmState) -> str:
    """Return the name of a newer version than the installed one: the version that OLM would install next, otherwise the
    newest version of the channel. Return an empty string if there is no newer version, or if no version is installed.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    if not subscription.installed:
        return ""
    heads = [
        channel.newest
        for package in (seen.packages or {}).get(wish.package, ())
        if (package.catalog, package.catalog_namespace) == (subscription.source, subscription.source_namespace)
        for channel in package.channels
        if channel.name == subscription.channel
    ]
    newer = [name for name in (subscription.current, *heads) if name and name != subscription.installed]
    return newer[0] if newer else ""


def _judge_plan(
    plan: InstallPlan, subscription: Subscription, stand: OperatorStatus, allowed: typing.Container[str], seen: OlmState
) -> Next:
    place, show = f"{plan.namespace}/{plan.name}", f"kubectl -n {plan.namespace} describe installplan {plan.name}"
    approve = (
        f'kubectl -n {plan.namespace} patch installplan {plan.name} --type merge -p \'{{"spec":{{"approved":true}}}}\''
    )
    if plan.phase != "RequiresApproval" or plan.approved:
        said = f"InstallPlan {place} is {plan.phase}{f': {plan.message}' if plan.message else ''}"
        why, remedy = explain_text(said) or (said, show)
        patience = 0.0 if plan.phase == "Failed" else LASTING_SECONDS if plan.message else None
        return _report_wait(
            stand, Trouble("plan", why, remedy, patience), pods=(plan.namespace, subscription.source_namespace)
        )
    names = ", ".join(plan.versions) or "nothing"
    if not subscription.ours:
        why = (
            f"InstallPlan {place} ({names}) waits for approval, and linerate.rdma does not manage Subscription"
            f" {subscription.place}"
        )
        return _report_wait(
            stand,
            Trouble(
                "approval",
                why,
                f"Ask the owner of the Subscription to approve the InstallPlan: {approve}",
                PASSING_SECONDS,
            ),
        )
    more = [name for name in plan.versions if name not in allowed]
    if stand.wanted in plan.versions and not more:
        return _report_wait(
            stand, Trouble("approval", f"InstallPlan {place} is approved: it installs {names}", show)
        )._replace(approve=plan.name)
    if stand.wanted in plan.versions:
        why = (
            f"InstallPlan {place} installs {', '.join(more)} in addition to {stand.wanted}. These versions are not"
            " requested, so this run does not approve the InstallPlan"
        )
        remedy = (
            "Request these versions as well (package and version), give the operator its own namespace, or approve the"
            f" complete InstallPlan: {approve}"
        )
        return _report_wait(stand, Trouble("approval", why, remedy, PASSING_SECONDS))
    if not subscription.installed:
        why = f"InstallPlan {place} installs {names}, but {stand.wanted} is requested"
        return _report_wait(
            stand, Trouble("approval", why, f"Correct version, or see the InstallPlan: {show}", PASSING_SECONDS)
        )
    why = (
        f"OLM upgrades from {subscription.installed} to {names} first, but {stand.wanted} is requested, so this run"
        f" does not approve InstallPlan {place}"
    )
    return _report_wait(
        stand,
        Trouble(
            "approval",
            why,
            f"Set version to {names} and run stage operators, then set it to {stand.wanted} and run stage"
            " operators again",
            PASSING_SECONDS,
        ),
    )
