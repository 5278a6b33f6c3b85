# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of OLM v0 as read from the cluster, and functions that select the Subscriptions, packages and versions of a
requested operator.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.operators.olm import (
    Catalog,
    DesiredOperator,
    InstallPlan,
    OperatorGroup,
    OperatorStatus,
    Package,
    ServiceVersion,
    Subscription,
)
from ...._parse.kubernetes.pod_state import PodState

Place = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class OlmState:
    """The objects of OLM that were read. The key of a mapping is the namespace and the name, unless stated otherwise.

    :ivar catalogs: CatalogSources of the cluster
    :ivar groups: OperatorGroups of the cluster
    :ivar subscriptions: Subscriptions of the cluster
    :ivar plans: InstallPlans of the cluster
    :ivar versions: ClusterServiceVersions of the cluster
    :ivar packages: packages of the catalogs, by name; None if the cluster has no PackageManifests
    :ivar pods: states of the pods of some namespaces, by namespace and then by name
    :ivar served: whether the Service of a webhook has a ready address, for the Services that were read
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
    """A cause for which an operator waits.

    :ivar kind: identifier that remains the same while the text of the cause may change
    :ivar why: the cause, as text
    :ivar remedy: instruction to the user that resolves the cause
    :ivar patience: seconds after which it counts as a failure; None if only the time limit of the run ends the wait
    """

    kind: str
    why: str
    remedy: str
    patience: typing.Optional[float] = None


class Next(typing.NamedTuple):
    """The status of an operator, and the next step.

    :ivar stand: status of the operator; its phase is ``waiting`` if there is a trouble
    :ivar trouble: cause for which the operator waits; None if it is ready or progresses normally
    :ivar approve: name of the InstallPlan to approve, which installs only requested versions; empty for none
    :ivar again: whether the Subscription must be touched, because OLM does not read it again by itself
    :ivar pods: namespaces whose pods may show the cause
    :ivar services: Services of webhooks, without which the API server rejects the operator's objects
    """

    stand: OperatorStatus
    trouble: typing.Optional[Trouble] = None
    approve: str = ""
    again: bool = False
    pods: tuple[str, ...] = ()
    services: tuple[Place, ...] = ()


def subscriptions_of(wish: DesiredOperator, seen: OlmState) -> tuple[Subscription, ...]:
    """Return the Subscriptions that count for a requested operator: those in the requested namespace, and those in
    another namespace that have installed the package.

    Any editor of a namespace can create a Subscription there, with any label. OLM installs nothing for it without an
    OperatorGroup, which only an admin of the cluster can create. An editor can write neither the status of a
    Subscription nor a ClusterServiceVersion.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    found = (item for _place, item in sorted(seen.subscriptions.items()) if item.package == wish.package)
    return tuple(
        item
        for item in found
        if item.namespace == wish.namespace or (item.installed and (item.namespace, item.installed) in seen.versions)
    )


def list_uncounted(wish: DesiredOperator, seen: OlmState) -> tuple[str, ...]:
    """Return ``namespace/name`` of each Subscription of the package that does not count for a requested operator,
    because it is in another namespace and has not installed the package.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    counted = subscriptions_of(wish, seen)
    return tuple(
        item.place
        for _place, item in sorted(seen.subscriptions.items())
        if item.package == wish.package and item not in counted
    )


def subscription_of(wish: DesiredOperator, seen: OlmState) -> typing.Optional[Subscription]:
    """Return the Subscription for a requested operator: the one in the requested namespace, else one that has installed
    the package elsewhere. Return None if no Subscription counts.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    found = subscriptions_of(wish, seen)
    return next((item for item in found if item.namespace == wish.namespace), found[0] if found else None)


def list_packages(wish: DesiredOperator, seen: OlmState) -> tuple[Package, ...]:
    """Return the entries of a package in all catalogs, or in the catalog that the request names.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    found = (seen.packages or {}).get(wish.package, ())
    return tuple(
        item
        for item in found
        if wish.source in ("", item.catalog) and wish.source_namespace in ("", item.catalog_namespace)
    )


def find_pinned_version(wish: DesiredOperator, seen: OlmState) -> str:
    """Return the name of the ClusterServiceVersion for the requested version; empty if the request names no version. A
    version that no catalog and no installation knows gets the usual name, ``package.vVERSION``.

    :param wish: requested operator
    :param seen: objects of OLM in the cluster
    """
    if not wish.version:
        return ""
    for package in list_packages(wish, seen):
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


def find_wanted_version(wish: DesiredOperator, subscription: typing.Optional[Subscription], seen: OlmState) -> str:
    """Return the name of the ClusterServiceVersion to install; empty until OLM has chosen it. An installed version is
    kept unless the request names another version.

    :param wish: requested operator
    :param subscription: Subscription of the operator; None if there is none yet
    :param seen: objects of OLM in the cluster
    """
    return find_pinned_version(wish, seen) or (subscription.installed or subscription.current if subscription else "")


def list_wanted_versions(namespace: str, wishes: typing.Iterable[DesiredOperator], seen: OlmState) -> set[str]:
    """Return the names of the ClusterServiceVersions that an InstallPlan of a namespace may install: those of the
    requested operators whose Subscriptions in the namespace are managed by the collection.

    :param namespace: namespace of the InstallPlan
    :param wishes: requested operators
    :param seen: objects of OLM in the cluster
    """
    names = set()
    for wish in wishes:
        subscription = subscription_of(wish, seen)
        if subscription is not None and subscription.ours and subscription.namespace == namespace:
            names.add(find_wanted_version(wish, subscription, seen))
    return names - {""}
