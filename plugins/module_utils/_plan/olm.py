# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects by which OLM installs the requested operators, and the operators that cannot be installed."""

from __future__ import annotations

import dataclasses
import types
import typing

from .._analysis.controllers.installation import name_way_to_trust
from .._analysis.controllers.olm.progress import group_trouble
from .._analysis.controllers.olm.state import (
    OlmState,
    find_pinned_version,
    list_packages,
    subscription_of,
    subscriptions_of,
)
from .._model.base.text import join_first
from .._model.operators.drivers import OperatorUpgrade, UpgradeEffect
from .._model.operators.olm import OPENSHIFT_CATALOGS, DesiredOperator, OperatorStatus, Package, Subscription
from .._model.operators.operators import CHANGES_NODES, SRIOV
from .._render.cluster.olm import GROUP_NAME, Resource, render_namespace, render_operator_group, render_subscription


@dataclasses.dataclass(frozen=True)
class Arranged:
    """The plan of an installation by OLM: the objects to create, the requests to wait for, and the refused requests.

    :ivar objects: objects in the order of creation, each with its package
    :ivar waited_for: requests that OLM can fulfill, completed with channel and catalog. A request for an operator that
        the collection does not manage is unchanged
    :ivar refused: status of each refused request, for which no object is created
    """

    objects: tuple[tuple[str, Resource], ...]
    waited_for: tuple[DesiredOperator, ...]
    refused: tuple[OperatorStatus, ...]


class _Refusal(Exception):
    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


def plan_operator_objects(
    wishes: typing.Sequence[DesiredOperator],
    seen: OlmState,
    untrusted: typing.Mapping[str, str],
    held: typing.Mapping[str, tuple[str, str]] = types.MappingProxyType({}),
) -> Arranged:
    """Return the objects of all requested operators that OLM can install. An operator that it cannot install gets no
    objects and does not delay the other operators.

    :param wishes: requested operators
    :param seen: objects of OLM in the cluster, as last read
    :param untrusted: namespaces in which no object may be created, each with the reason
    :param held: packages that must not be upgraded now, each with the reason and the remedy
    """
    objects: list[tuple[str, Resource]] = []
    waited_for: list[DesiredOperator] = []
    refused: list[OperatorStatus] = []
    for wish in wishes:
        there = subscription_of(wish, seen)
        try:
            _examine(wish, wishes, seen)
            if there is not None and not there.ours:
                # it is used as it is, and whoever made it answers for it
                waited_for.append(wish)
                continue
            if wish.namespace in untrusted:
                raise _Refusal(
                    f"namespace {wish.namespace} is not used: {untrusted[wish.namespace]}",
                    name_way_to_trust(wish.namespace),
                )
            whole = _whole(wish, there, seen)
            _refuse_upgrade(whole, there, seen)
            if wish.package in held:
                raise _Refusal(*held[wish.package])
            objects += [(wish.package, item) for item in _objects(whole, there, seen)]
            waited_for.append(whole)
        except _Refusal as refusal:
            refused.append(
                OperatorStatus(
                    wish.package, wish.namespace, "failed", refusal.why, refusal.remedy, ours=bool(there and there.ours)
                )
            )
    made: dict[str, tuple[str, Resource]] = {}
    for package, item in objects:
        # operators that share a namespace share what is in it
        made.setdefault(
            f"{item['kind']} {item['metadata'].get('namespace', '')}/{item['metadata']['name']}", (package, item)
        )
    return Arranged(tuple(made.values()), tuple(waited_for), tuple(refused))


def _examine(wish: DesiredOperator, wishes: typing.Sequence[DesiredOperator], seen: OlmState) -> None:
    """Check that a request is consistent with the other requests and with the state of OLM.

    :param wish: request that is checked
    :param wishes: requests for all operators, including this one
    :param seen: objects of OLM in the cluster, as last read
    :raises _Refusal: the request contradicts another request, an existing Subscription or an OperatorGroup
    """
    if sum(other.package == wish.package for other in wishes) > 1:
        raise _Refusal(f"package {wish.package} is requested more than once", "Request the package only once")
    beside = [
        other
        for other in wishes
        if other.namespace == wish.namespace and set(other.target_namespaces) != set(wish.target_namespaces)
    ]
    if beside:
        why = (
            f"{wish.package} and {beside[0].package} share namespace {wish.namespace} but must watch different"
            " namespaces, and a namespace can have only one OperatorGroup"
        )
        raise _Refusal(
            why, "Set the same target_namespaces for both packages, or a separate namespace for each package"
        )
    found = subscriptions_of(wish, seen)
    if len(found) > 1:
        places = ", ".join(item.place for item in found)
        remedy = (
            "Keep one of the Subscriptions. Delete each other Subscription, then its ClusterServiceVersion: kubectl"
            " -n NAMESPACE delete subscriptions.operators.coreos.com NAME"
        )
        raise _Refusal(f"there are {len(found)} Subscriptions of package {wish.package}: {places}", remedy)
    if found and found[0].ours and found[0].namespace != wish.namespace:
        why = (
            f"this collection installed the operator in namespace {found[0].namespace}, but namespace"
            f" {wish.namespace} is requested. OLM cannot move an operator"
        )
        raise _Refusal(why, f"Set namespace to {found[0].namespace}, or remove the operator first with the teardown")
    if not found or found[0].ours:
        trouble = group_trouble(wish.namespace, wish.target_namespaces, seen)
        if trouble is not None and not _only_ours(wish.namespace, seen):
            raise _Refusal(trouble.why, trouble.remedy)


def list_upgrades(wishes: typing.Sequence[DesiredOperator], seen: OlmState) -> dict[tuple[str, str], OperatorUpgrade]:
    """Return the installations and upgrades of operators that can change nodes, by namespace and package. A
    Subscription that the collection did not create is not upgraded.

    :param wishes: requested operators
    :param seen: objects of OLM in the cluster, as last read
    """
    found = {}
    for wish in wishes:
        there = subscription_of(wish, seen)
        if there is None and wish.operator in CHANGES_NODES:
            place = wish.namespace if wish.operator == SRIOV else ""
            found[wish.namespace, wish.package] = OperatorUpgrade(
                wish.operator, wish.package, namespace=place, installs=True
            )
        if wish.operator and wish.upgrade and there is not None and there.ours and there.installed:
            version = find_pinned_version(dataclasses.replace(wish, channel=wish.channel or there.channel), seen)
            if version not in ("", there.installed):
                text = f"{there.installed} -> {version}"
                place = there.namespace if wish.operator == SRIOV else ""
                found[there.namespace, wish.package] = OperatorUpgrade(wish.operator, text, namespace=place)
    return found


def refuse_effect(upgrade: OperatorUpgrade, effect: UpgradeEffect) -> typing.Optional[tuple[str, str]]:
    """Return why an upgrade or an installation must not begin now, and the remedy. Return None if it may begin.

    :param effect: nodes of the upgrade, and the reasons against it
    """
    if not effect.refused:
        return None
    reasons = join_first(effect.refused, between=" ")
    if upgrade.installs:
        leave = f"Correct this, or add {upgrade.operator} to operators_leave. Then run stage operators again"
        return f"{upgrade.title} must not begin now: {reasons} Nothing was installed", leave
    why = f"{upgrade.title} {effect.text}, and must not begin now: {reasons} The operator was not changed"
    return why, "Correct this, or remove version from operators_packages. Then run stage operators again"


def _refuse_upgrade(wish: DesiredOperator, there: typing.Optional[Subscription], seen: OlmState) -> None:
    """Verify that a request does not replace an installed version without permission. An upgrade is permitted if the
    intent allows drains, or if the operator restarts no drivers.

    :param wish: the request, with its channel and catalog
    :param there: existing Subscription of the operator; None if it does not exist
    :param seen: state of OLM
    :raises _Refusal: the request names another version than the installed one, and must not upgrade it
    """
    version = find_pinned_version(wish, seen)
    if wish.upgrade or there is None or not there.installed or version in ("", there.installed):
        return
    why = (
        f"rdma_cluster.disruption is none, but the upgrade {there.installed} -> {version} can restart drivers and drain"
        " nodes. The operator was not changed"
    )
    remedy = (
        "When the nodes may be drained, set rdma_cluster.disruption to drain. Otherwise remove version from"
        " operators_packages. Then run stage operators again"
    )
    raise _Refusal(why, remedy)


def _only_ours(space: str, seen: OlmState) -> bool:
    """Return whether a namespace has exactly one OperatorGroup, which the collection created. Only then may the
    collection change it.

    :param space: name of the namespace
    :param seen: objects of OLM in the cluster, as last read
    """
    found = [item for item in seen.groups.values() if item.namespace == space]
    return len(found) == 1 and found[0].ours


def _whole(wish: DesiredOperator, there: typing.Optional[Subscription], seen: OlmState) -> DesiredOperator:
    """Return the request for an operator completed with its channel and catalog. An installed operator keeps its
    channel and catalog unless the request names different ones, even if the catalog's default changes. A Subscription
    that has not installed anything is ignored, because its channel may be a mistake that the request corrects.

    :param wish: request as the user made it
    :param there: existing Subscription of the operator; None if it does not exist
    :param seen: objects of OLM in the cluster, as last read
    :raises _Refusal: no catalog matches, or the catalog has no such package, channel or version
    """
    if there is not None and there.installed:
        channel = wish.channel or there.channel
        source, space = (wish.source, wish.source_namespace) if wish.source else (there.source, there.source_namespace)
        # once it is installed it runs without its catalog
        return dataclasses.replace(
            wish, channel=channel, source=source, source_namespace=space or _space_of(source, seen)
        )
    found = list_packages(wish, seen)
    if len(found) > 1:
        names = ", ".join(f"{item.catalog_namespace}/{item.catalog}" for item in found)
        raise _Refusal(
            f"package {wish.package} is in {len(found)} catalogs: {names}",
            "Select one of the catalogs with source and source_namespace",
        )
    if found:
        wish = dataclasses.replace(wish, source=found[0].catalog, source_namespace=found[0].catalog_namespace)
    elif wish.source:
        wish = dataclasses.replace(wish, source_namespace=wish.source_namespace or _space_of(wish.source, seen))
    else:
        wish = _only_catalog(wish, seen)
    wish = _examine_catalog_package(wish, seen)
    default = next((item.default_channel for item in list_packages(wish, seen)), "")
    return dataclasses.replace(wish, channel=wish.channel or default)


def _space_of(source: str, seen: OlmState) -> str:
    """Return the namespace of a CatalogSource. If there are several of this name, the one in the namespace of
    OpenShift's catalogs is used.

    :param source: name of the CatalogSource
    :param seen: objects of OLM in the cluster, as last read
    :raises _Refusal: no CatalogSource has this name, or several have it in other namespaces
    """
    spaces = [item.namespace for item in seen.catalogs.values() if item.name == source]
    if OPENSHIFT_CATALOGS in spaces:
        return OPENSHIFT_CATALOGS
    if len(spaces) != 1:
        names = ", ".join(sorted(f"{item.namespace}/{item.name}" for item in seen.catalogs.values())) or "none"
        raise _Refusal(
            f"the cluster has {len(spaces)} CatalogSources with the name {source}; its CatalogSources are: {names}",
            "Correct source, or set source_namespace",
        )
    return spaces[0]


def _only_catalog(wish: DesiredOperator, seen: OlmState) -> DesiredOperator:
    """Return the request with the only catalog of the cluster. This is for a cluster that does not report the packages
    of its catalogs.

    :param wish: request that names no catalog
    :param seen: objects of OLM in the cluster, as last read
    :raises _Refusal: the cluster reports packages and none matches, or it does not have exactly one catalog
    """
    names = (
        ", ".join(
            sorted(
                f"{item.namespace}/{item.name} ({item.state or 'no connection yet'})" for item in seen.catalogs.values()
            )
        )
        or "none"
    )
    if seen.packages is not None:
        remedy = (
            "Correct package (kubectl get packagemanifests), or set source to the catalog that has the package. A"
            " catalog that is not READY offers no packages yet"
        )
        raise _Refusal(f"no catalog of the cluster offers package {wish.package}; its catalogs are: {names}", remedy)
    if len(seen.catalogs) != 1:
        raise _Refusal(
            f"the cluster has {len(seen.catalogs)} catalogs ({names}) and does not report their packages",
            "Select a catalog with source and source_namespace",
        )
    (catalog,) = seen.catalogs.values()
    return dataclasses.replace(wish, source=catalog.name, source_namespace=catalog.namespace)


def _examine_catalog_package(wish: DesiredOperator, seen: OlmState) -> DesiredOperator:
    """Return the request unchanged if its catalog can fulfill it. Otherwise no Subscription must be created, because a
    Subscription that OLM cannot resolve blocks all other Subscriptions of its namespace. Packages are not checked if
    the catalog is not ready or the cluster does not report them.

    :param wish: request with its channel and catalog
    :param seen: objects of OLM in the cluster, as last read
    :raises _Refusal: there is no such catalog, or it has no such package, channel or version
    """
    catalog = seen.catalogs.get((wish.source_namespace, wish.source))
    name = f"{wish.source_namespace}/{wish.source}"
    if catalog is None:
        there = ", ".join(sorted(f"{item.namespace}/{item.name}" for item in seen.catalogs.values())) or "none"
        raise _Refusal(
            f"CatalogSource {name} does not exist; the cluster has: {there}",
            "Correct source and source_namespace, or create the CatalogSource",
        )
    if seen.packages is None or not catalog.ready:
        return wish
    found = list_packages(wish, seen)
    if not found:
        raise _Refusal(
            f"catalog {name} has no package {wish.package}",
            f"Correct package: kubectl get packagemanifests -l catalog={wish.source}",
        )
    package = found[0]
    channels = [item for item in package.channels if wish.channel in ("", item.name)]
    if not channels:
        there = ", ".join(item.name for item in package.channels)
        raise _Refusal(
            f"package {wish.package} has no channel {wish.channel}; it has: {there}",
            "Correct channel, or remove channel to use the default of the catalog",
        )
    _examine_version(wish, package, seen)
    return wish


def _examine_version(wish: DesiredOperator, package: Package, seen: OlmState) -> None:
    channel = wish.channel or package.default_channel
    versions = [name for item in package.channels if item.name == channel for name in item.versions]
    name = find_pinned_version(dataclasses.replace(wish, channel=channel), seen)
    if name and versions and name not in versions:
        raise _Refusal(
            f"channel {channel} of package {wish.package} has no {name}; it has: {', '.join(versions[:20])}",
            "Correct version or channel",
        )


def _objects(wish: DesiredOperator, there: typing.Optional[Subscription], seen: OlmState) -> typing.Iterator[Resource]:
    yield render_namespace(wish.namespace)
    groups = [item for item in seen.groups.values() if item.namespace == wish.namespace]
    if not groups or groups[0].ours:
        yield render_operator_group(groups[0].name if groups else GROUP_NAME, wish.namespace, wish.target_namespaces)
    yield render_subscription(there.name if there else wish.package, wish, find_pinned_version(wish, seen))
