# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why the installation of an operator by OLM waits, by its catalog, its conditions and its
ClusterServiceVersion.

Conditions and phases: github.com/operator-framework/api, pkg/operators/v1alpha1. Messages: messages.py. Reasons:
reasons.py.
"""

from __future__ import annotations

import re
import typing

from ...._model.base.phrases import format_clause
from ...._model.operators.olm import Catalog, DesiredOperator, ServiceVersion, Subscription
from ...._parse.kubernetes.pod_state import PodState
from ..image_pull import Keys, explain
from .messages import explain_resolution, explain_words
from .reasons import GENERAL, REASONS
from .state import OlmState, Trouble

#: seconds after which a trouble counts that OLM, or the kubelet, may still overcome by itself
PASSING_SECONDS, LASTING_SECONDS = 30.0, 60.0


def show_subscription(subscription: Subscription) -> str:
    """Return the kubectl command that shows a Subscription."""
    return f"kubectl -n {subscription.namespace} describe subscriptions.operators.coreos.com {subscription.name}"


def explain_catalog(subscription: Subscription, catalog: typing.Optional[Catalog], seen: OlmState) -> Trouble:
    """Return the reason, with its remedy, why the catalog of a Subscription cannot be used: it does not exist, or it
    does not answer.

    :param catalog: CatalogSource of the Subscription; None if it does not exist
    :param seen: objects of OLM in the cluster
    """
    name = f"{subscription.source_namespace}/{subscription.source}"
    if catalog is None:
        why = f"CatalogSource {name} does not exist"
        return Trouble(
            "catalog",
            why,
            "Name an existing CatalogSource, or create this CatalogSource: kubectl get catalogsources -A",
            PASSING_SECONDS,
        )
    remedy = (
        f"Correct the pod of the catalog if it is not ready: kubectl -n {catalog.namespace} get pods -l"
        f" olm.catalogSource={catalog.name}"
    )
    if catalog.address:
        show = f"kubectl -n {catalog.namespace} get catalogsource {catalog.name} -o yaml"
        remedy = (
            f"OLM runs no pod for this catalog. Start the server at {catalog.address} again, or correct spec.address;"
            f" {show} shows the state that OLM reports"
        )
    image = _explain_image(
        seen.pods.get(catalog.namespace, {}),
        (catalog.name,),
        catalog.namespace,
        f"spec.image of CatalogSource {catalog.name}",
    )
    why = (
        f"catalog {name} does not respond:"
        f" {catalog.state or 'no connection yet'}{f', {catalog.message}' if catalog.message else ''}"
    )
    if image is not None:
        return Trouble("catalog", f"{why}; {image.why}", image.remedy, LASTING_SECONDS)
    known = explain_words(catalog.message) if not catalog.address else None
    if known is not None:
        return Trouble("catalog", f"{why}; {known[0]}", known[1], LASTING_SECONDS)
    return Trouble("catalog", why, remedy, LASTING_SECONDS)


def _explain_image(
    pods: typing.Mapping[str, PodState], prefixes: tuple[str, ...], space: str, key: str
) -> typing.Optional[Trouble]:
    """Return the reason, with its remedy, why the image of the first pod in trouble cannot be pulled. Return None if
    each image can be pulled.

    :param pods: states of the pods of a namespace, by name
    :param prefixes: prefixes of the names of the pods that count
    :param space: namespace of the pods, for the remedy
    :param key: setting that names the image, for the remedy
    """
    for name, state in sorted(pods.items()):
        if state.suspect == "image" and name.startswith(prefixes):
            show = f"kubectl -n {space} describe pod {name}"
            cause, remedy = explain(
                state.detail,
                Keys(key, f"imagePullPolicy of {key}", "imagePullSecrets of its service account", space, show),
            )
            return Trouble("image", f"pod {name}: {format_clause(state.detail)}. {cause}", remedy, LASTING_SECONDS)
    return None


_UNREFERENCED = re.compile(r"(?<!\S)(\S{1,500}) exists and is not referenced by a subscription")


def _explain_unreferenced(subscription: Subscription, seen: OlmState, said: str) -> typing.Optional[Trouble]:
    """Explain a ClusterServiceVersion without a Subscription, which blocks the resolution: the new Subscription does
    not take it over. Return None if the message of OLM names no such ClusterServiceVersion.

    :param seen: objects of OLM in the cluster
    :param said: message of OLM
    """
    found = _UNREFERENCED.search(said)
    if found is None:
        return None
    name, catalog = found[1], f"{subscription.source_namespace}/{subscription.source}"
    delete = f"kubectl -n {subscription.namespace} delete clusterserviceversions.operators.coreos.com {name}"
    kept = "the CRDs and their objects remain; the pods end until OLM has installed the operator again"
    if not name.startswith(f"{subscription.package}."):
        space = subscription.namespace
        why = (
            f"ClusterServiceVersion {name} of another operator in namespace {space} has no Subscription, so OLM"
            f" installs nothing there: {said}"
        )
        return Trouble(
            "resolution",
            why,
            f"Create a Subscription for this ClusterServiceVersion, or delete it: {delete} ({kept})",
            PASSING_SECONDS,
        )
    version = seen.versions.get((subscription.namespace, name))
    phase = f" ({version.phase})" if version and version.phase else ""
    why = (
        f"An earlier Subscription installed ClusterServiceVersion {name}{phase}, from a different catalog or before"
        f" that Subscription was deleted. The new Subscription {subscription.place} on catalog {catalog} does not take"
        f" it over: {said}"
    )
    remedy = (
        f"Check that this catalog offers {subscription.package}: kubectl get packagemanifests -l"
        f" catalog={subscription.source}. Then delete the old ClusterServiceVersion: {delete} ({kept})"
    )
    return Trouble("resolution", why, remedy, PASSING_SECONDS)


def explain_conditions(subscription: Subscription, seen: OlmState) -> typing.Optional[Trouble]:
    """Explain the first condition of a Subscription that reports a problem. Return None if no condition reports one.

    :param seen: objects of OLM in the cluster
    """
    troubles, show = subscription.troubles, show_subscription(subscription)
    if "BundleUnpackFailed" in troubles:
        image = _explain_image(
            seen.pods.get(subscription.source_namespace, {}),
            ("",),
            subscription.source_namespace,
            "the image of the bundle",
        )
        why = f"OLM could not unpack the bundle: {troubles['BundleUnpackFailed']}{f'; {image.why}' if image else ''}"
        remedy = (
            f"Delete the failed job, so that OLM tries again: kubectl -n {subscription.source_namespace} get jobs -l"
            " operatorframework.io/bundle-unpack-ref"
        )
        return Trouble("unpack", why, image.remedy if image else remedy, PASSING_SECONDS)
    if "ResolutionFailed" in troubles:
        said = troubles["ResolutionFailed"]
        unreferenced = _explain_unreferenced(subscription, seen, said)
        if unreferenced is not None:
            return unreferenced
        cause, remedy = explain_resolution(said, subscription.package)
        why = f"OLM cannot resolve the installation: {f'{cause}. ' if cause else ''}{said}"
        return Trouble(
            "resolution", why, remedy or (f"Correct the cause that the message names; {show}"), PASSING_SECONDS
        )
    if "BundleUnpacking" in troubles:
        image = _explain_image(
            seen.pods.get(subscription.source_namespace, {}),
            ("",),
            subscription.source_namespace,
            "the image of the bundle",
        )
        return image or Trouble("unpacking", "OLM is unpacking the bundle of the operator", show)
    if "InstallPlanFailed" in troubles:
        said = f"the InstallPlan failed: {troubles['InstallPlanFailed']}"
        return Trouble("plan", *(explain_text(said) or (said, show)), PASSING_SECONDS)
    if "CatalogSourcesUnhealthy" in troubles and not subscription.installed:
        return Trouble(
            "catalogs",
            f"a catalog is unhealthy: {troubles['CatalogSourcesUnhealthy']}",
            "Correct the catalog that is not READY: kubectl get catalogsources -A",
            LASTING_SECONDS,
        )
    return None


def explain_text(said: str) -> typing.Optional[tuple[str, str]]:
    """Return the cause, followed by the message, and the next step for a message of OLM. Return None if the message is
    unknown.

    :param said: message of OLM
    """
    found = explain_words(said)
    return (f"{found[0]}. {said}", found[1]) if found else None


def explain_missing_upgrade(subscription: Subscription, name: str) -> Trouble:
    """Return the reason, with its remedy, why another version is installed than the requested one: OLM offers no
    upgrade to it, or another user manages the Subscription.

    :param name: name of the requested ClusterServiceVersion
    """
    why = (
        f"{subscription.installed} is installed, but {name} is requested, and OLM offers no upgrade to it in channel"
        f" {subscription.channel or '(default)'}"
    )
    if not subscription.ours:
        why = (
            f"{subscription.installed} is installed by Subscription {subscription.place}, which linerate.rdma does"
            f" not manage, but {name} is requested"
        )
    remedy = (
        f"Set version to {subscription.installed}. OLM does not downgrade: for an older version, remove the operator"
        " first with the teardown"
    )
    return Trouble("version", why, remedy, PASSING_SECONDS)


def name_newer_version(wish: DesiredOperator, newer: typing.Sequence[str], subscription: Subscription) -> str:
    if newer:
        return f"Set version of {wish.package} to {newer[0]}, which is installed now. OLM does not downgrade"
    return (
        f"Delete the Subscription (kubectl -n {subscription.namespace} delete subscriptions.operators.coreos.com"
        f" {subscription.name}), then run stage operators again"
    )


def explain_version(version: ServiceVersion, seen: OlmState) -> Trouble:
    """Return the reason, with its remedy, why a ClusterServiceVersion is not installed yet.

    :param version: ClusterServiceVersion whose phase is not Succeeded
    :param seen: objects of OLM in the cluster
    """
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
            f"Set version to {newer or 'the new one'}, or find the user who approved the InstallPlan: kubectl -n"
            f" {space} get installplans"
        )
        return Trouble("replaced", why, remedy, PASSING_SECONDS)
    image = _explain_image(
        seen.pods.get(space, {}), version.deployments or (version.name,), space, f"the image in {name}"
    )
    if image is not None:
        return image._replace(why=f"{name} is {said}; {image.why}")
    if version.requirements:
        why = f"{name} waits for its requirements: {'; '.join(version.requirements[:5])}"
        known = explain_words("; ".join(version.requirements))
        if known is not None:
            return Trouble("requirements", f"{why}; {known[0]}", f"{known[1]}; {show}", LASTING_SECONDS)
        return Trouble(
            "requirements",
            why,
            f"Install the missing requirements, or correct the requirements that the message names; {show}",
            LASTING_SECONDS,
        )
    known = explain_words(f"{said}{_describe_pods(version, seen)}") if version.reason in GENERAL else None
    if version.reason in REASONS and version.phase != "Succeeded" and known is None:
        reason, remedy = REASONS[version.reason]
        return Trouble(
            "version",
            f"{name} is {said}; {reason}{_describe_pods(version, seen)}",
            remedy.format(space),
            LASTING_SECONDS,
        )
    text = f"{name} is {said}{_describe_pods(version, seen)}"
    cause = explain_text(text)
    why, remedy = cause or (text, show)
    return Trouble("version", why, remedy, LASTING_SECONDS if cause or version.phase == "Failed" else None)


def _describe_pods(version: ServiceVersion, seen: OlmState) -> str:
    """Return a text on the pods of an operator version that are not ready.

    :param seen: objects of OLM in the cluster
    """
    found = [
        f"pod {name}: {state.detail}"
        for name, state in sorted(seen.pods.get(version.namespace, {}).items())
        if state.phase != "ready" and name.startswith(version.deployments or (version.name,))
    ]
    return f"; {'; '.join(found[:3])}" if found else ""
