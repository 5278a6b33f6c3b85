# SPDX-License-Identifier: GPL-3.0-or-later

"""Operators that the Operator Lifecycle Manager (OLM v0, operators.coreos.com) installs: the requests, OLM's objects,
and the results.
"""

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
class DesiredOperator:
    """A request to install an operator with OLM.

    :ivar package: name of the operator's package in the catalog
    :ivar namespace: namespace for the installation
    :ivar channel: channel of the package; empty for that of the existing Subscription, or without one the default of
        the catalog
    :ivar version: name or version of the required ClusterServiceVersion; empty for the installed one, or without one
        the newest of the channel
    :ivar source: name of the CatalogSource; empty for the one that offers the package
    :ivar source_namespace: namespace of the CatalogSource; empty for the namespace in which one of this name exists
    :ivar target_namespaces: namespaces that the operator watches; empty for all
    :ivar upgrade: whether another version may replace the installed one
    :ivar operator: name of the operator, such as ``gpu-operator``; empty for one that restarts no driver of nodes
    """

    package: str
    namespace: str
    channel: str = ""
    version: str = ""
    source: str = ""
    source_namespace: str = ""
    target_namespaces: tuple[str, ...] = ()
    upgrade: bool = True
    operator: str = ""


@dataclasses.dataclass(frozen=True)
class Catalog:
    """A CatalogSource of OLM: a catalog of operator packages.

    :ivar state: state of the connection to it, READY if it answers; empty before the first attempt
    :ivar message: message of the connection; empty for none
    :ivar address: address of an external server (spec.address); empty if OLM runs a pod from an image
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
    """A channel of a package: a sequence of versions of an operator.

    :ivar name: name of the channel
    :ivar newest: name of the ClusterServiceVersion at its head
    :ivar versions: version of each ClusterServiceVersion in it, by name; empty if this version of OLM does not list
        them
    """

    name: str
    newest: str = ""
    versions: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Package:
    """An operator package of OLM as one catalog offers it, with its channels.

    :ivar name: name of the package
    :ivar catalog: name of the CatalogSource
    :ivar catalog_namespace: namespace of the CatalogSource
    :ivar default_channel: name of the channel that a Subscription without a channel gets
    :ivar channels: channels of the package
    """

    name: str
    catalog: str
    catalog_namespace: str
    default_channel: str = ""
    channels: tuple[Channel, ...] = ()


@dataclasses.dataclass(frozen=True)
class OperatorGroup:
    """An OperatorGroup of OLM: the namespaces that the operators of its namespace watch.

    :ivar targets: namespaces that its operators watch; empty for all
    :ivar selects: whether it uses a label selector, so that ``targets`` are the namespaces that OLM found
    :ivar ours: whether the collection created it
    """

    name: str
    namespace: str
    targets: tuple[str, ...] = ()
    selects: bool = False
    ours: bool = False


@dataclasses.dataclass(frozen=True)
class Subscription:
    """A Subscription of OLM, which keeps one operator installed.

    :ivar package: name of the package
    :ivar channel: name of the channel; empty for the default
    :ivar source: name of the CatalogSource
    :ivar source_namespace: namespace of the CatalogSource
    :ivar approval: Automatic or Manual approval of InstallPlans
    :ivar state: AtLatestKnown, UpgradePending, UpgradeAvailable, UpgradeFailed; empty before the first report
    :ivar current: name of the ClusterServiceVersion that OLM is installing
    :ivar installed: name of the installed ClusterServiceVersion
    :ivar plan: name of its newest InstallPlan
    :ivar troubles: reason and message of each active problem condition, by type
    :ivar ours: whether the collection created it
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
    """An InstallPlan of OLM: the versions of operators that OLM installs in one step.

    :ivar phase: phase as OLM names it: RequiresApproval, Installing, Complete, Failed ...
    :ivar approved: whether OLM may carry it out
    :ivar versions: names of the ClusterServiceVersions that it installs
    :ivar message: why it has not progressed
    """

    name: str
    namespace: str
    phase: str = ""
    approved: bool = False
    versions: tuple[str, ...] = ()
    message: str = ""


@dataclasses.dataclass(frozen=True)
class ServiceVersion:
    """A ClusterServiceVersion: an operator in one version.

    :ivar phase: phase as OLM names it: Pending, Installing, Succeeded, Failed ...
    :ivar reason: reason of the phase
    :ivar message: message of the phase
    :ivar version: version of the operator
    :ivar replaces: name of the ClusterServiceVersion that it replaces; empty for none
    :ivar requirements: unmet requirements, each with kind, name and state
    :ivar definitions: names of the custom resource definitions that it owns
    :ivar deployments: names of its Deployments
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
    """The progress of the installation of one operator by OLM.

    :ivar package: name of the package
    :ivar namespace: namespace of the installation
    :ivar phase: ready, waiting (at the end of the time limit), failed, or planned in a dry run
    :ivar detail: current state, or the cause
    :ivar remedy: next step, except for ready
    :ivar subscription: ``namespace/name`` of its Subscription
    :ivar ours: whether the collection created the Subscription, and may change it
    :ivar wanted: name of the requested ClusterServiceVersion; empty until OLM reports it
    :ivar installed: name of the installed ClusterServiceVersion
    :ivar upgrade: name of a newer one, which is reported and not installed
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
    """The progress of all operators that OLM was asked to install (module olm).

    :ivar operators: status of each requested operator
    """

    operators: tuple[OperatorStatus, ...] = ()


#: beginning of the reason of an operator that stays because of objects of others
IN_USE = "objects that this collection did not create use the operator"
#: the same of an operator that another intent or another operator may need
NEEDED = "other intents or operators may need the operator"
#: the same of the SR-IOV operator, whose drains would not end
BUSY = "the SR-IOV operator still drains or configures nodes"
#: the same of the GPU operator, whose removal takes the driver from running pods
DRIVER = "the driver of GPUs goes from all nodes"


@dataclasses.dataclass(frozen=True)
class RetainedObject:
    """An object that a removal of operators leaves in the cluster.

    :ivar subject: the object, for messages
    :ivar why: reason for which it remains
    :ivar remedy: instruction that deletes the object; empty if the general instruction for retained objects applies
    """

    subject: str
    why: str
    remedy: str = ""
