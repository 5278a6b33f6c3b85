# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of OLM v0 as it was read, and the Subscriptions, packages and versions of it that count for an operator."""

from __future__ import annotations

import dataclasses
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

Place = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class OlmState:
    """The objects of OLM that were read; the keys are namespace and name.

    :ivar packages: the packages of the catalogs, by name; None where the cluster has no PackageManifests
    :ivar pods: the states of pods, by namespace and name, in the namespaces that were read
    :ivar served: whether a Service of a webhook has a ready address, for the Services that were read
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

    :ivar kind: remains the same while the words of the cause may change
    :ivar patience: seconds after which it counts as a failure; None: the run waits to its limit
    """

    kind: str
    why: str
    remedy: str
    patience: typing.Optional[float] = None


class Next(typing.NamedTuple):
    """The status of an operator, and the next step.

    :ivar stand: ``waiting`` where there is a trouble
    :ivar approve: name of the InstallPlan in its namespace that installs only what was wanted
    :ivar again: OLM does not read the Subscription again by itself
    :ivar pods: namespaces whose pods may show the cause
    :ivar services: Services of webhooks, without which the operator's objects are refused
    """

    stand: OperatorStatus
    trouble: typing.Optional[Trouble] = None
    approve: str = ""
    again: bool = False
    pods: tuple[str, ...] = ()
    services: tuple[Place, ...] = ()


def subscriptions_of(wish: OperatorWish, seen: OlmState) -> tuple[Subscription, ...]:
    """Return the Subscriptions of a package that count: those in its namespace, and those that have installed it
    elsewhere.

    Any editor of a namespace can make a Subscription there, with any label. OLM installs nothing for it without an
    OperatorGroup, which only an admin of the cluster makes. An editor cannot write the status of a Subscription, nor a
    ClusterServiceVersion.
    """
    found = (item for _place, item in sorted(seen.subscriptions.items()) if item.package == wish.package)
    return tuple(
        item
        for item in found
        if item.namespace == wish.namespace or (item.installed and (item.namespace, item.installed) in seen.versions)
    )


def list_uncounted(wish: OperatorWish, seen: OlmState) -> tuple[str, ...]:
    """Namespace and name of each Subscription of the package that does not count."""
    counted = subscriptions_of(wish, seen)
    return tuple(
        item.place
        for _place, item in sorted(seen.subscriptions.items())
        if item.package == wish.package and item not in counted
    )


def subscription_of(wish: OperatorWish, seen: OlmState) -> typing.Optional[Subscription]:
    """Return the Subscription of a wish: the one in its namespace, else the one that has installed the package
    elsewhere."""
    found = subscriptions_of(wish, seen)
    return next((item for item in found if item.namespace == wish.namespace), found[0] if found else None)


def list_packages(wish: OperatorWish, seen: OlmState) -> tuple[Package, ...]:
    """Return the offers of a package in the catalogs that the wish allows."""
    found = (seen.packages or {}).get(wish.package, ())
    return tuple(
        item
        for item in found
        if wish.source in ("", item.catalog) and wish.source_namespace in ("", item.catalog_namespace)
    )


def find_pinned_version(wish: OperatorWish, seen: OlmState) -> str:
    """Return the name of the ClusterServiceVersion that the wish names by its version; empty when it names none."""
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


def find_wanted_version(wish: OperatorWish, subscription: typing.Optional[Subscription], seen: OlmState) -> str:
    """Return the name of the ClusterServiceVersion that is wanted; empty while OLM has not chosen it. An installed
    version is not upgraded unless the wish names another one."""
    return find_pinned_version(wish, seen) or (subscription.installed or subscription.current if subscription else "")


def list_wanted_versions(namespace: str, wishes: typing.Iterable[OperatorWish], seen: OlmState) -> set[str]:
    """Return the names of the ClusterServiceVersions that an InstallPlan of a namespace may install."""
    names = set()
    for wish in wishes:
        subscription = subscription_of(wish, seen)
        if subscription is not None and subscription.ours and subscription.namespace == namespace:
            names.add(find_wanted_version(wish, subscription, seen))
    return names - {""}
