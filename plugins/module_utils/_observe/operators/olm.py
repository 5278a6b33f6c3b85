# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster shows of OLM, beside what is watched: what catalogs offer, why pods wait, who serves a webhook,
objects of a definition."""

from __future__ import annotations

import typing

from ..._model.operators.olm import Package
from ..._parse.kubernetes.foreign import is_made_pod
from ..._parse.kubernetes.pod_state import PodState, state_of_pod
from ..._parse.kubernetes.resource import items_of, mapping_at, name_of
from ..._parse.operators import olm
from ..kubernetes.answers import Choice
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.kinds import Kind, Resource


def of_namespaces(namespaces: typing.Container[str]) -> Choice:
    """Take the objects of these namespaces, by their metadata.

    A tenant makes Subscriptions of any number and size in its own namespaces. OLM installs nothing by them without an
    OperatorGroup, which no tenant can make.
    """
    return lambda item: str(mapping_at(item, "metadata").get("namespace", "")) in namespaces


def packages(cluster: Cluster, names: typing.Iterable[str]) -> typing.Optional[dict[str, tuple[Package, ...]]]:
    """What the catalogs offer under these names; None where the cluster does not tell: the API
    packages.operators.coreos.com is a server of its own.

    :raises ApiError: the server cannot be reached, or does not tell
    """
    try:
        # all of them are some ten MB on OpenShift
        found = {
            name: map(olm.package, cluster.list("PackageManifest", fields=f"metadata.name={name}").items)
            for name in names
        }
        return {name: tuple(item for item in items if item.name == name) for name, items in found.items()}
    except ApiError as error:
        if error.absent or error.status == 503:
            return None
        raise


def pods(cluster: Cluster, namespace: str) -> dict[str, PodState]:
    """State of each pod of a namespace, as far as it can be read: it only explains what takes long."""
    try:
        return {name_of(item): state_of_pod(item) for item in cluster.list("Pod", namespace, only=is_made_pod).items}
    except ApiError:
        return {}


def serves(cluster: Cluster, namespace: str, service: str) -> bool:
    """Whether a Service has an address that is ready (EndpointSlice, discovery.k8s.io/v1).

    :raises ApiError: the server cannot be reached, or does not tell
    """
    slices = cluster.list("EndpointSlice", namespace, f"kubernetes.io/service-name={service}").items
    # ready is left out where it is not known, which counts as ready
    return any(
        mapping_at(end, "conditions").get("ready") is not False
        for item in slices
        for end in items_of(item, "endpoints", name_of(item))
    )


def kind_of_definition(definition: Resource) -> Kind:
    """Where the API server has the objects of a custom resource definition; of its versions the one that is stored."""
    spec = mapping_at(definition, "spec")
    versions = [item for item in items_of(spec, "versions", name_of(definition)) if item.get("served")]
    version = next((item for item in versions if item.get("storage")), versions[0] if versions else {})
    return (
        f"/apis/{spec.get('group')}/{version.get('name')}",
        str(mapping_at(spec, "names").get("plural")),
        spec.get("scope") == "Namespaced",
    )
