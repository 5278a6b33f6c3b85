# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the objects of OLM v0. Their forms: github.com/operator-framework/api, pkg/operators/v1alpha1 and v1, and
packages.operators.coreos.com/v1.
"""

from __future__ import annotations

import typing

from ..._model.base.marks import is_ours
from ..._model.kubernetes.owner_marks import find_owner_mark
from ..._model.operators.olm import Catalog, Channel, InstallPlan, OperatorGroup, Package, ServiceVersion, Subscription
from ..kubernetes.foreign import is_copied
from ..kubernetes.resource import Resource, ResourceError, items_of, labels_of, mapping_at, name_of, texts_of

#: states of a requirement that is met
_MET = ("Present", "Satisfied")


def _read_text(parent: Resource, key: str) -> str:
    value = parent.get(key)
    return "" if value is None else str(value)


def _read_namespace(resource: Resource) -> str:
    return _read_text(mapping_at(resource, "metadata"), "namespace")


def _has_own_labels(resource: Resource) -> bool:
    return is_ours(labels_of(resource)) and not is_copied(resource) and not find_owner_mark(resource)


def _describe_condition(parent: Resource) -> str:
    """Return the reason and the message of a condition, joined by a colon. Return only one of them if the other is
    missing, and an empty string if both are.
    """
    return ": ".join(_read_text(parent, key) for key in ("reason", "message") if parent.get(key))


def parse_catalog(resource: Resource) -> Catalog:
    """Return the name, the connection state, the message and the address of a CatalogSource. A missing value is empty.

    :raises ResourceError: the object is not a valid CatalogSource
    """
    status = mapping_at(resource, "status")
    state = _read_text(mapping_at(status, "connectionState"), "lastObservedState")
    return Catalog(
        name_of(resource),
        _read_namespace(resource),
        state,
        _read_text(status, "message"),
        _read_text(mapping_at(resource, "spec"), "address"),
    )


def parse_package(resource: Resource) -> Package:
    """Return the channels and versions of a PackageManifest, which describes a package of one catalog, with its default
    channel. The default channel is empty if the package has several and names none.

    :raises ResourceError: the object is not a valid PackageManifest, or does not name its catalog
    """
    name, status = name_of(resource), mapping_at(resource, "status")
    if not status.get("catalogSource"):
        raise ResourceError(f"PackageManifest {name}: status.catalogSource is missing")
    channels = tuple(
        Channel(
            _read_text(item, "name"),
            _read_text(item, "currentCSV"),
            {_read_text(entry, "name"): _read_text(entry, "version") for entry in items_of(item, "entries", name)},
        )
        for item in items_of(status, "channels", name)
    )
    # a package with one channel need not say that it is the default
    default = _read_text(status, "defaultChannel") or (channels[0].name if len(channels) == 1 else "")
    return Package(
        name, _read_text(status, "catalogSource"), _read_text(status, "catalogSourceNamespace"), default, channels
    )


def operator_group(resource: Resource) -> OperatorGroup:
    """Return the namespaces that the operators of an OperatorGroup watch, sorted. An empty result means all namespaces.

    :raises ResourceError: the object is not a valid OperatorGroup
    """
    name, spec = name_of(resource), mapping_at(resource, "spec")
    selector = mapping_at(spec, "selector")
    selects = bool(mapping_at(selector, "matchLabels") or items_of(selector, "matchExpressions", name))
    named = (
        texts_of(mapping_at(resource, "status"), "namespaces", name)
        if selects
        else texts_of(spec, "targetNamespaces", name)
    )
    # OLM writes all namespaces as one without a name
    return OperatorGroup(
        name, _read_namespace(resource), tuple(sorted(filter(None, named))), selects, _has_own_labels(resource)
    )


def parse_subscription(resource: Resource) -> Subscription:
    """Parse a Subscription. A missing value is empty. Any tenant can create a Subscription, so even its package may be
    empty.

    :raises ResourceError: the object is not a valid Subscription
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    conditions = [item for item in items_of(status, "conditions", name) if item.get("status") == "True"]
    return Subscription(
        name=name,
        namespace=_read_namespace(resource),
        package=_read_text(spec, "name"),
        channel=_read_text(spec, "channel"),
        source=_read_text(spec, "source"),
        source_namespace=_read_text(spec, "sourceNamespace"),
        approval=_read_text(spec, "installPlanApproval"),
        state=_read_text(status, "state"),
        current=_read_text(status, "currentCSV"),
        installed=_read_text(status, "installedCSV"),
        plan=_read_text(mapping_at(status, "installPlanRef"), "name"),
        troubles={_read_text(item, "type"): _describe_condition(item) or "no reason given" for item in conditions},
        ours=_has_own_labels(resource),
    )


def install_plan(resource: Resource) -> InstallPlan:
    """Return the phase, the ClusterServiceVersions, the approval and the failures of an InstallPlan. The failures are
    one text, which is empty if there are none.

    :raises ResourceError: the object is not a valid InstallPlan
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    bundles = [
        condition
        for item in items_of(status, "bundleLookups", name)
        for condition in items_of(item, "conditions", name)
    ]
    # an unpack that is under way is no trouble
    failed = [
        _describe_condition(item)
        for item in (*items_of(status, "conditions", name), *bundles)
        if _is_failed_condition(item)
    ]
    message = "; ".join(dict.fromkeys(filter(None, (_read_text(status, "message"), *failed))))
    versions = texts_of(spec, "clusterServiceVersionNames", name)
    return InstallPlan(
        name, _read_namespace(resource), _read_text(status, "phase"), spec.get("approved") is True, versions, message
    )


def _is_failed_condition(condition: Resource) -> bool:
    return (_read_text(condition, "type"), condition.get("status")) in (
        ("Installed", "False"),
        ("BundleLookupFailed", "True"),
    )


def service_version(resource: Resource) -> ServiceVersion:
    """Return the version, the phase, the unmet requirements, the definitions, the Deployments and the webhook Services
    of a ClusterServiceVersion. A missing value is empty.

    :raises ResourceError: the object is not a valid ClusterServiceVersion
    """
    name, spec, status = name_of(resource), mapping_at(resource, "spec"), mapping_at(resource, "status")
    deployments = items_of(mapping_at(spec, "install", "spec"), "deployments", name)
    return ServiceVersion(
        name=name,
        namespace=_read_namespace(resource),
        phase=_read_text(status, "phase"),
        reason=_read_text(status, "reason"),
        message=_read_text(status, "message"),
        version=_read_text(spec, "version"),
        replaces=_read_text(spec, "replaces"),
        requirements=tuple(_list_unmet_requirements(items_of(status, "requirementStatus", name), name)),
        definitions=tuple(
            _read_text(item, "name") for item in items_of(mapping_at(spec, "customresourcedefinitions"), "owned", name)
        ),
        deployments=tuple(_read_text(item, "name") for item in deployments),
        webhooks=tuple(
            dict.fromkeys(_compute_service_name(item) for item in items_of(spec, "webhookdefinitions", name))
        ),
    )


def _compute_service_name(webhook: Resource) -> str:
    """Return the name of the Service that OLM creates for a webhook (pkg/controller/install/webhook.go): the name of
    its deployment with each dot replaced by a dash, and the suffix ``-service``.
    """
    return f"{_read_text(webhook, 'deploymentName').replace('.', '-')}-service"


def _list_unmet_requirements(requirements: typing.Iterable[Resource], name: str) -> typing.Iterator[str]:
    """Yield the requirements of a ClusterServiceVersion that are not met, each with its message and its unmet
    dependents.

    :param name: name of the object, for messages
    """
    for item in requirements:
        dependents = [
            _read_text(part, "message") or _read_text(part, "kind")
            for part in items_of(item, "dependents", name)
            if part.get("status") not in _MET
        ]
        if item.get("status") not in _MET or dependents:
            text = f"{_read_text(item, 'kind')} {_read_text(item, 'name')}: {_read_text(item, 'status')}"
            yield ", ".join(filter(None, (text, _read_text(item, "message"), *dependents)))
