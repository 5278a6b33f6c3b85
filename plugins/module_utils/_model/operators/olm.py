# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators that the Operator Lifecycle Manager (OLM v0, operators.coreos.com) installs: what is asked for, what OLM
shows, and what became of it."""

from __future__ import annotations

import dataclasses
import typing

#: API group of OLM; a cluster that does not serve it has none
GROUP = "operators.coreos.com"
#: selects ClusterServiceVersions: OLM copies one of an operator of all namespaces into each of them
ORIGINALS = "!olm.copiedFrom"
#: where OpenShift has its catalogs
OPENSHIFT_CATALOGS = "openshift-marketplace"


@dataclasses.dataclass(frozen=True)
class OperatorWish:
    """An operator that is asked for.

    :ivar package: its name in the catalog
    :ivar namespace: where it belongs
    :ivar channel: empty: that of the Subscription that is there, else the catalog's default
    :ivar version: name of the ClusterServiceVersion, or its version, that is wanted and no other; empty: what is there,
        else the newest of the channel
    :ivar source: name of the CatalogSource; empty: the one that offers the package
    :ivar source_namespace: of the CatalogSource; empty: where one of this name is
    :ivar target_namespaces: that the operator watches; none means all of them
    """

    package: str
    namespace: str
    channel: str = ""
    version: str = ""
    source: str = ""
    source_namespace: str = ""
    target_namespaces: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Catalog:
    """A CatalogSource.

    :ivar state: of the connection to it, READY when it answers; empty before OLM has tried
    :ivar address: of a server that somebody else runs (spec.address); empty where OLM makes a pod of an image
    """

    name: str
    namespace: str
    state: str = ""
    message: str = ""
    address: str = ""

    @property
    def ready(self) -> bool:
        return self.state == "READY"


@dataclasses.dataclass(frozen=True)
class Channel:
    """:ivar newest: name of the ClusterServiceVersion at its head
    :ivar versions: of each ClusterServiceVersion in it, by its name; empty where this version of OLM does not list them
    """

    name: str
    newest: str = ""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Package:
    """A package as one catalog offers it."""

    name: str
    catalog: str
    catalog_namespace: str
    default_channel: str = ""
    channels: tuple[Channel, ...] = ()


@dataclasses.dataclass(frozen=True)
class OperatorGroup:
    """:ivar targets: namespaces that its operators watch; none means all of them
    :ivar selects: it names them by a label selector, and ``targets`` are those that OLM has found
    """

    name: str
    namespace: str
    targets: tuple[str, ...] = ()
    selects: bool = False
    ours: bool = False


@dataclasses.dataclass(frozen=True)
class Subscription:
    """:ivar state: AtLatestKnown, UpgradePending, UpgradeAvailable, UpgradeFailed; empty before OLM has looked
    :ivar current: name of the ClusterServiceVersion that OLM goes to
    :ivar installed: name of the one that is there
    :ivar plan: name of its newest InstallPlan
    :ivar troubles: of each condition that holds, its reason and message; each of the types names a trouble
    """

    name: str
    namespace: str
    package: str
    channel: str = ""
    source: str = ""
    source_namespace: str = ""
    approval: str = ""
    state: str = ""
    current: str = ""
    installed: str = ""
    plan: str = ""
    troubles: dict[str, str] = dataclasses.field(default_factory=dict)
    ours: bool = False

    @property
    def place(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True)
class InstallPlan:
    """:ivar versions: names of the ClusterServiceVersions that it makes
    :ivar message: why it is not further
    """

    name: str
    namespace: str
    phase: str = ""
    approved: bool = False
    versions: tuple[str, ...] = ()
    message: str = ""


@dataclasses.dataclass(frozen=True)
class ServiceVersion:
    """A ClusterServiceVersion, an operator in one version.

    :ivar requirements: that are not met, each with its kind, name and state
    :ivar definitions: names of the custom resource definitions that it owns
    :ivar deployments: names
    :ivar webhooks: names of the Services of its webhooks
    """

    name: str
    namespace: str
    phase: str = ""
    reason: str = ""
    message: str = ""
    version: str = ""
    replaces: str = ""
    requirements: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    deployments: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class OperatorStatus:
    """The progress of one operator.

    :ivar phase: ready, waiting (at the end of the time), failed, or what a dry run finds
    :ivar detail: what is there, or the cause
    :ivar remedy: next step, for all but ready
    :ivar subscription: ``namespace/name`` of its Subscription
    :ivar ours: whether the collection made the Subscription, and may change it
    :ivar wanted: name of the ClusterServiceVersion that is asked for; empty while OLM has not said which one that is
    :ivar installed: name of the one that is there
    :ivar upgrade: name of a newer one; it is shown and not taken
    """

    package: str
    namespace: str
    phase: typing.Literal["ready", "waiting", "failed", "planned"]
    detail: str
    remedy: str = ""
    subscription: str = ""
    ours: bool = False
    wanted: str = ""
    installed: str = ""
    upgrade: str = ""


@dataclasses.dataclass(frozen=True)
class OlmFacts:
    """Answer of the module olm.

    :ivar operators: one for each that was asked for
    """

    operators: tuple[OperatorStatus, ...] = ()


@dataclasses.dataclass(frozen=True)
class RetainedObject:
    """An object that a removal leaves, and why.

    :ivar remedy: how it goes; empty: as all that is left of operators
    """

    subject: str
    why: str
    remedy: str = ""
