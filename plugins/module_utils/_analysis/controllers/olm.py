# SPDX-License-Identifier: GPL-3.0-or-later

"""What OLM v0 makes of a Subscription: how far an operator is, why it is not further, and what may be done for it.

Conditions and phases: github.com/operator-framework/api, pkg/operators/v1alpha1. Reasons and words: olm_words.py.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.operators.olm import (
    Catalog,
    InstallPlan,
    OperatorGroup,
    OperatorStatus,
    OperatorWish,
    Package,
    ServiceVersion,
    Subscription,
)
from ..._parse.kubernetes.pod_state import PodState
from .image_pull import Keys, explain
from .olm_words import GENERAL, REASONS, explain_resolution, explain_words

#: seconds for which a trouble must last that OLM, or the kubelet, may still come over by itself
PASSING_SECONDS, LASTING_SECONDS = 30.0, 60.0

Place = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What was seen of OLM; the keys are namespace and name.

    :ivar packages: what the catalogs offer, by the name of the package; None where the cluster has no PackageManifests
    :ivar pods: of the namespaces that were looked at, in their state
    :ivar served: whether a Service of a webhook has an address that is ready, as far as it was looked at
    """

    catalogs: typing.Mapping[Place, Catalog] = dataclasses.field(default_factory=dict)
    groups: typing.Mapping[Place, OperatorGroup] = dataclasses.field(default_factory=dict)
    subscriptions: typing.Mapping[Place, Subscription] = dataclasses.field(default_factory=dict)
    plans: typing.Mapping[Place, InstallPlan] = dataclasses.field(default_factory=dict)
    versions: typing.Mapping[Place, ServiceVersion] = dataclasses.field(default_factory=dict)
    packages: typing.Optional[typing.Mapping[str, tuple[Package, ...]]] = None
    pods: typing.Mapping[str, typing.Mapping[str, PodState]] = dataclasses.field(default_factory=dict)
    served: typing.Mapping[Place, bool] = dataclasses.field(default_factory=dict)


class Trouble(typing.NamedTuple):
    """Why an operator is not further.

    :ivar kind: stays the same while its words may change
    :ivar patience: seconds after which it counts as a failure; None: it is only waited for
    """

    kind: str
    why: str
    remedy: str
    patience: typing.Optional[float] = None


class Next(typing.NamedTuple):
    """How far an operator is, and what to do.

    :ivar stand: ``waiting`` where there is a trouble
    :ivar approve: name of the InstallPlan in its namespace that makes what was asked for and no more
    :ivar again: OLM does not look at the Subscription again by itself
    :ivar pods: namespaces whose pods may tell the cause
    :ivar services: of webhooks, without which the operator's objects are refused
    """

    stand: OperatorStatus
    trouble: typing.Optional[Trouble] = None
    approve: str = ""
    again: bool = False
    pods: tuple[str, ...] = ()
    services: tuple[Place, ...] = ()


def subscriptions_of(wish: OperatorWish, seen: Seen) -> tuple[Subscription, ...]:
    """All of a package that count: those in its namespace, and those that have installed it elsewhere.

    Whoever may edit a namespace can make a Subscription there, with any label. OLM installs nothing by it without an
    OperatorGroup, which only an admin of the cluster makes; and what OLM says of it, in its status and by a
    ClusterServiceVersion, no editor can write.
    """
    found = (item for _place, item in sorted(seen.subscriptions.items()) if item.package == wish.package)
    return tuple(
        item
        for item in found
        if item.namespace == wish.namespace or (item.installed and (item.namespace, item.installed) in seen.versions)
    )


def uncounted(wish: OperatorWish, seen: Seen) -> tuple[str, ...]:
    """Namespace and name of each Subscription of the package that does not count."""
    counted = subscriptions_of(wish, seen)
    return tuple(
        item.place
        for _place, item in sorted(seen.subscriptions.items())
        if item.package == wish.package and item not in counted
    )


def subscription_of(wish: OperatorWish, seen: Seen) -> typing.Optional[Subscription]:
    """The Subscription that stands for a wish: the one where it belongs, else the one that has installed it
    elsewhere."""
    found = subscriptions_of(wish, seen)
    return next((item for item in found if item.namespace == wish.namespace), found[0] if found else None)


def offers(wish: OperatorWish, seen: Seen) -> tuple[Package, ...]:
    """What the catalogs have of a package, as far as the wish leaves them open."""
    found = (seen.packages or {}).get(wish.package, ())
    return tuple(
        item
        for item in found
        if wish.source in ("", item.catalog) and wish.source_namespace in ("", item.catalog_namespace)
    )


def pinned(wish: OperatorWish, seen: Seen) -> str:
    """Name of the ClusterServiceVersion that the wish asks for by its version; empty when it names none."""
    if not wish.version:
        return ""
    for package in offers(wish, seen):
        for channel in package.channels:
            if wish.channel in ("", channel.name):
                found = [name for name, version in channel.versions.items() if wish.version in (name, version)]
                if found:
                    return found[0]
    installed = (
        item
        for (_space, _name), item in seen.versions.items()
        if item.version == wish.version and item.name.startswith(wish.package)
    )
    return next(
        (item.name for item in installed),
        wish.version if wish.version.startswith(wish.package) else f"{wish.package}.v{wish.version.lstrip('v')}",
    )


def wanted(wish: OperatorWish, subscription: typing.Optional[Subscription], seen: Seen) -> str:
    """Name of the ClusterServiceVersion that is asked for; empty while OLM has not said which one that is. What is
    there is not upgraded unasked."""
    return pinned(wish, seen) or (subscription.installed or subscription.current if subscription else "")


def asked_for(namespace: str, wishes: typing.Iterable[OperatorWish], seen: Seen) -> set[str]:
    """Names of the ClusterServiceVersions that an InstallPlan of a namespace may make."""
    names = set()
    for wish in wishes:
        subscription = subscription_of(wish, seen)
        if subscription is not None and subscription.ours and subscription.namespace == namespace:
            names.add(wanted(wish, subscription, seen))
    return names - {""}


def group_trouble(
    namespace: str, targets: typing.Iterable[str], seen: Seen, lasting: float = 0.0
) -> typing.Optional[Trouble]:
    """Return why the OperatorGroups of a namespace do not fit; None where there is one that does, or none yet."""
    found = sorted((item for item in seen.groups.values() if item.namespace == namespace), key=lambda item: item.name)
    names = ", ".join(item.name for item in found)
    wished = tuple(sorted(targets))
    if len(found) > 1:
        why = (
            f"namespace {namespace} has {len(found)} OperatorGroups ({names}); with two OLM installs nothing there, and"
            " fails what is there"
        )
        kept = min(found, key=lambda item: (item.targets != wished, not item.ours, item.name))
        others = " ".join(item.name for item in found if item is not kept)
        return Trouble(
            "groups",
            why,
            f"Keep one of them, such as {kept.name}: kubectl -n {namespace} delete operatorgroup {others}",
            lasting,
        )
    if found and found[0].targets != wished:
        why = (
            f"OperatorGroup {namespace}/{names} watches {_spaces(found[0].targets)}, and {_spaces(wished)} is asked for"
        )
        remedy = (
            f"Set target_namespaces to [{', '.join(found[0].targets)}], name another namespace, or change it: kubectl"
            f" -n {namespace} edit operatorgroup {names}"
        )
        return Trouble("groups", why, remedy, lasting)
    return None


def _spaces(targets: typing.Sequence[str]) -> str:
    return ", ".join(targets) or "all namespaces"


def judge(wishes: typing.Sequence[OperatorWish], seen: Seen) -> tuple[Next, ...]:
    """How far each operator is."""
    return tuple(_judge(wish, wishes, seen) for wish in wishes)


def _judge(wish: OperatorWish, wishes: typing.Sequence[OperatorWish], seen: Seen) -> Next:
    subscription = subscription_of(wish, seen)
    if subscription is None:
        trouble = Trouble(
            "subscription",
            "its Subscription is gone",
            f"See who deleted it, and run again: kubectl -n {wish.namespace} get events",
            PASSING_SECONDS,
        )
        return _waits(OperatorStatus(wish.package, wish.namespace, "waiting", ""), trouble)
    name = wanted(wish, subscription, seen)
    stand = OperatorStatus(
        package=wish.package,
        namespace=subscription.namespace,
        phase="waiting",
        detail="",
        subscription=subscription.place,
        ours=subscription.ours,
        wanted=name,
        installed=subscription.installed,
        upgrade=_upgrade(wish, subscription, seen),
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
            f"its webhook does not serve: Service {space}/{service} has no address that is ready"
            if unserved
            else "its webhooks are looked at"
        )
        remedy = (
            f"See its pods: kubectl -n {space} get endpointslices,pods; a pod that is ready, and whose labels the"
            " Service selects, serves it"
        )
        return _waits(
            stand,
            Trouble("webhook", why, remedy, PASSING_SECONDS if unserved else None),
            services=services,
            pods=(space,),
        )
    return _on_the_way(wish, wishes, seen, subscription, stand, version)


def _on_the_way(
    wish: OperatorWish,
    wishes: typing.Sequence[OperatorWish],
    seen: Seen,
    subscription: Subscription,
    stand: OperatorStatus,
    version: typing.Optional[ServiceVersion],
) -> Next:
    """An operator that is not there yet: the first that holds is what it waits for."""
    space = subscription.namespace
    # somebody else's Subscription stands where they put it
    targets = wish.target_namespaces if space == wish.namespace and subscription.ours else None
    trouble = group_trouble(space, targets, seen, PASSING_SECONDS) if targets is not None else None
    if trouble is not None:
        return _waits(stand, trouble)
    if version is not None:
        return _waits(stand, _of_version(version, seen), pods=(space,))
    plan = seen.plans.get((space, subscription.plan))
    catalog = seen.catalogs.get((subscription.source_namespace, subscription.source))
    pods = (space, subscription.source_namespace)
    if (
        plan is not None
        and plan.phase not in ("", "Complete")
        and (plan.phase != "Failed" or stand.wanted in plan.versions)
    ):
        return _of_plan(plan, subscription, stand, asked_for(space, wishes, seen), seen)
    if catalog is None or not catalog.ready:
        return _waits(stand, _of_catalog(subscription, catalog, seen), pods=pods)
    found = _of_conditions(subscription, seen)
    if found is not None:
        return _waits(stand, found, pods=pods)._replace(again=subscription.ours and found.kind == "resolution")
    if subscription.installed and subscription.installed != stand.wanted:
        return _waits(stand, _no_way(subscription, stand.wanted))
    if plan is not None and plan.phase == "Complete":
        newer = [
            item.name for item in seen.versions.values() if item.namespace == space and item.replaces == stand.wanted
        ]
        why = (
            f"ClusterServiceVersion {stand.wanted} is not there, and its InstallPlan {plan.name} is"
            f" complete{f'; {newer[0]} has replaced it' if newer else ''}"
        )
        return _waits(stand, Trouble("replaced", why, _newer_remedy(wish, newer, subscription), PASSING_SECONDS))
    return _waits(stand, Trouble("olm", "OLM has not looked at its Subscription yet", _look(subscription)))


def _waits(
    stand: OperatorStatus, trouble: Trouble, services: tuple[Place, ...] = (), pods: tuple[str, ...] = ()
) -> Next:
    stand = dataclasses.replace(stand, detail=trouble.why, remedy=trouble.remedy)
    return Next(stand, trouble, pods=tuple(dict.fromkeys(filter(None, pods))), services=services)


def _look(subscription: Subscription) -> str:
    return f"kubectl -n {subscription.namespace} describe subscriptions.operators.coreos.com {subscription.name}"


def _upgrade(wish: OperatorWish, subscription: Subscription, seen: Seen) -> str:
    """A newer version that OLM would go to, or that is at the head of the channel; empty where what is there is the
    newest, or nothing is there."""
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


def _of_catalog(subscription: Subscription, catalog: typing.Optional[Catalog], seen: Seen) -> Trouble:
    name = f"{subscription.source_namespace}/{subscription.source}"
    if catalog is None:
        why = f"CatalogSource {name} is not there"
        return Trouble("catalog", why, "Name one that is, or create it: kubectl get catalogsources -A", PASSING_SECONDS)
    remedy = f"See its pod: kubectl -n {catalog.namespace} get pods -l olm.catalogSource={catalog.name}"
    if catalog.address:
        show = f"kubectl -n {catalog.namespace} get catalogsource {catalog.name} -o yaml"
        remedy = (
            f"OLM runs no pod for it: start the server at {catalog.address} again, or correct spec.address; {show}"
            " shows what OLM sees"
        )
    image = _image(
        seen.pods.get(catalog.namespace, {}),
        (catalog.name,),
        catalog.namespace,
        f"spec.image of CatalogSource {catalog.name}",
    )
    why = (
        f"catalog {name} does not answer:"
        f" {catalog.state or 'no connection yet'}{f', {catalog.message}' if catalog.message else ''}"
    )
    if image is not None:
        return Trouble("catalog", f"{why}; {image.why}", image.remedy, LASTING_SECONDS)
    known = explain_words(catalog.message) if not catalog.address else None
    if known is not None:
        return Trouble("catalog", f"{why}; {known[0]}", known[1], LASTING_SECONDS)
    return Trouble("catalog", why, remedy, LASTING_SECONDS)


def _image(
    pods: typing.Mapping[str, PodState], prefixes: tuple[str, ...], space: str, key: str
) -> typing.Optional[Trouble]:
    """The first pod of these names whose image cannot be pulled."""
    for name, state in sorted(pods.items()):
        if state.suspect == "image" and name.startswith(prefixes):
            show = f"kubectl -n {space} describe pod {name}"
            cause, remedy = explain(
                state.detail,
                Keys(key, f"imagePullPolicy of {key}", "imagePullSecrets of its service account", space, show),
            )
            return Trouble("image", f"pod {name}: {state.detail}. {cause}", remedy, LASTING_SECONDS)
    return None


_UNREFERENCED = re.compile(r"(?<!\S)(\S{1,500}) exists and is not referenced by a subscription")


def _unreferenced(subscription: Subscription, seen: Seen, said: str) -> typing.Optional[Trouble]:
    """The trouble of a ClusterServiceVersion that an earlier Subscription installed; None where OLM names none. A new
    Subscription does not take it over."""
    found = _UNREFERENCED.search(said)
    if found is None:
        return None
    name, catalog = found[1], f"{subscription.source_namespace}/{subscription.source}"
    delete = f"kubectl -n {subscription.namespace} delete clusterserviceversions.operators.coreos.com {name}"
    kept = "its definitions and their objects stay, its pods end until OLM has installed it anew"
    if not name.startswith(f"{subscription.package}."):
        space = subscription.namespace
        why = (
            f"ClusterServiceVersion {name} of another operator in namespace {space} has no Subscription, so OLM"
            f" installs nothing there: {said}"
        )
        return Trouble(
            "resolution", why, f"Make a Subscription for it, or delete it: {delete} ({kept})", PASSING_SECONDS
        )
    version = seen.versions.get((subscription.namespace, name))
    phase = f" ({version.phase})" if version and version.phase else ""
    why = (
        f"ClusterServiceVersion {name}{phase} was installed by an earlier Subscription, from another catalog or before"
        f" it was deleted. Subscription {subscription.place} on catalog {catalog} is new and does not take it over:"
        f" {said}"
    )
    remedy = (
        f"See that this catalog offers {subscription.package}: kubectl get packagemanifests -l"
        f" catalog={subscription.source}. Then delete the old ClusterServiceVersion: {delete} ({kept})"
    )
    return Trouble("resolution", why, remedy, PASSING_SECONDS)


def _of_conditions(subscription: Subscription, seen: Seen) -> typing.Optional[Trouble]:
    troubles, show = subscription.troubles, _look(subscription)
    if "BundleUnpackFailed" in troubles:
        image = _image(
            seen.pods.get(subscription.source_namespace, {}), ("",), subscription.source_namespace, "the bundle's image"
        )
        why = f"OLM could not unpack the bundle: {troubles['BundleUnpackFailed']}{f'; {image.why}' if image else ''}"
        remedy = (
            f"Delete the job that failed, and OLM tries again: kubectl -n {subscription.source_namespace} get jobs -l"
            " operatorframework.io/bundle-unpack-ref"
        )
        return Trouble("unpack", why, image.remedy if image else remedy, PASSING_SECONDS)
    if "ResolutionFailed" in troubles:
        said = troubles["ResolutionFailed"]
        unreferenced = _unreferenced(subscription, seen, said)
        if unreferenced is not None:
            return unreferenced
        cause, remedy = explain_resolution(said, subscription.package)
        why = f"OLM finds no way to install it: {f'{cause}. ' if cause else ''}{said}"
        return Trouble("resolution", why, remedy or f"Correct what it names; {show}", PASSING_SECONDS)
    if "BundleUnpacking" in troubles:
        image = _image(
            seen.pods.get(subscription.source_namespace, {}), ("",), subscription.source_namespace, "the bundle's image"
        )
        return image or Trouble("unpacking", "OLM unpacks its bundle", show)
    if "InstallPlanFailed" in troubles:
        said = f"its InstallPlan failed: {troubles['InstallPlanFailed']}"
        return Trouble("plan", *(_cause(said) or (said, show)), PASSING_SECONDS)
    if "CatalogSourcesUnhealthy" in troubles and not subscription.installed:
        return Trouble(
            "catalogs",
            f"a catalog is in trouble: {troubles['CatalogSourcesUnhealthy']}",
            "kubectl get catalogsources -A",
            LASTING_SECONDS,
        )
    return None


def _cause(said: str) -> typing.Optional[tuple[str, str]]:
    """Cause and next step, where the words name one."""
    found = explain_words(said)
    return (f"{found[0]}. {said}", found[1]) if found else None


def _of_plan(
    plan: InstallPlan, subscription: Subscription, stand: OperatorStatus, allowed: typing.Container[str], seen: Seen
) -> Next:
    place, show = f"{plan.namespace}/{plan.name}", f"kubectl -n {plan.namespace} describe installplan {plan.name}"
    approve = (
        f'kubectl -n {plan.namespace} patch installplan {plan.name} --type merge -p \'{{"spec":{{"approved":true}}}}\''
    )
    if plan.phase != "RequiresApproval" or plan.approved:
        said = f"InstallPlan {place} is {plan.phase}{f': {plan.message}' if plan.message else ''}"
        why, remedy = _cause(said) or (said, show)
        patience = 0.0 if plan.phase == "Failed" else LASTING_SECONDS if plan.message else None
        return _waits(
            stand, Trouble("plan", why, remedy, patience), pods=(plan.namespace, subscription.source_namespace)
        )
    names = ", ".join(plan.versions) or "nothing"
    if not subscription.ours:
        why = (
            f"InstallPlan {place} ({names}) waits for approval, and Subscription {subscription.place} is somebody"
            " else's"
        )
        return _waits(stand, Trouble("approval", why, f"Have its owner approve it: {approve}", PASSING_SECONDS))
    more = [name for name in plan.versions if name not in allowed]
    if stand.wanted in plan.versions and not more:
        return _waits(stand, Trouble("approval", f"InstallPlan {place} is approved: it makes {names}", show))._replace(
            approve=plan.name
        )
    if stand.wanted in plan.versions:
        why = (
            f"InstallPlan {place} makes {', '.join(more)} beside {stand.wanted}, which nobody asked for; so it is not"
            " approved"
        )
        remedy = (
            "Ask for these as well (package and version), give the operator a namespace of its own, or approve all of"
            f" it: {approve}"
        )
        return _waits(stand, Trouble("approval", why, remedy, PASSING_SECONDS))
    if not subscription.installed:
        why = f"InstallPlan {place} makes {names}, and {stand.wanted} is asked for"
        return _waits(
            stand, Trouble("approval", why, f"Correct version, or see what OLM wants with it: {show}", PASSING_SECONDS)
        )
    why = (
        f"OLM goes from {subscription.installed} to {names} first, and {stand.wanted} is asked for; so InstallPlan"
        f" {place} is not approved"
    )
    return _waits(
        stand,
        Trouble("approval", why, f"Set version to {names} and run again, then to {stand.wanted}", PASSING_SECONDS),
    )


def _no_way(subscription: Subscription, name: str) -> Trouble:
    why = (
        f"{subscription.installed} is installed, {name} is asked for, and OLM offers no upgrade to it in channel"
        f" {subscription.channel or 'of its own'}"
    )
    if not subscription.ours:
        why = (
            f"{subscription.installed} is installed by Subscription {subscription.place} of somebody else, and {name}"
            " is asked for"
        )
    remedy = (
        f"Set version to {subscription.installed}. OLM never goes back: for an older version take the operator away"
        " first, by the teardown"
    )
    return Trouble("version", why, remedy, PASSING_SECONDS)


def _newer_remedy(wish: OperatorWish, newer: typing.Sequence[str], subscription: Subscription) -> str:
    if newer:
        return f"Set version of {wish.package} to {newer[0]}, which is there now; OLM never goes back"
    return (
        f"Delete the Subscription, and run again: kubectl -n {subscription.namespace} delete"
        f" subscriptions.operators.coreos.com {subscription.name}"
    )


def _of_version(version: ServiceVersion, seen: Seen) -> Trouble:
    name, space = f"ClusterServiceVersion {version.name}", version.namespace
    show = f"kubectl -n {space} describe clusterserviceversion {version.name}"
    reason, message = version.reason and f", {version.reason}", version.message and f": {version.message}"
    said = f"{version.phase or 'no phase yet'}{reason}{message}"
    if version.phase in ("Replacing", "Deleting"):
        newer = next(
            (item.name for item in seen.versions.values() if item.namespace == space and item.replaces == version.name),
            "",
        )
        why = f"{name} is being replaced{f' by {newer}' if newer else ''}"
        remedy = (
            f"Set version to {newer or 'the new one'}, or see who has approved its InstallPlan: kubectl -n {space} get"
            " installplans"
        )
        return Trouble("replaced", why, remedy, PASSING_SECONDS)
    image = _image(seen.pods.get(space, {}), version.deployments or (version.name,), space, f"the image in {name}")
    if image is not None:
        return image._replace(why=f"{name} is {said}; {image.why}")
    if version.requirements:
        why = f"{name} waits for what it requires: {'; '.join(version.requirements[:5])}"
        known = explain_words("; ".join(version.requirements))
        if known is not None:
            return Trouble("requirements", f"{why}; {known[0]}", f"{known[1]}; {show}", LASTING_SECONDS)
        return Trouble(
            "requirements", why, f"Install what is missing, or correct what it names; {show}", LASTING_SECONDS
        )
    known = explain_words(f"{said}{_pods(version, seen)}") if version.reason in GENERAL else None
    if version.reason in REASONS and version.phase != "Succeeded" and known is None:
        reason, remedy = REASONS[version.reason]
        return Trouble(
            "version", f"{name} is {said}; {reason}{_pods(version, seen)}", remedy.format(space), LASTING_SECONDS
        )
    text = f"{name} is {said}{_pods(version, seen)}"
    cause = _cause(text)
    why, remedy = cause or (text, show)
    return Trouble("version", why, remedy, LASTING_SECONDS if cause or version.phase == "Failed" else None)


def _pods(version: ServiceVersion, seen: Seen) -> str:
    """What its pods wait for."""
    found = [
        f"pod {name}: {state.detail}"
        for name, state in sorted(seen.pods.get(version.namespace, {}).items())
        if state.phase != "ready" and name.startswith(version.deployments or (version.name,))
    ]
    return f"; {'; '.join(found[:3])}" if found else ""
