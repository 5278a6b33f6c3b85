# SPDX-License-Identifier: GPL-3.0-or-later

"""Read objects of OLM that are not watched: the packages of catalogs, the state of pods, the endpoints of a webhook,
and the API path of the objects of a CustomResourceDefinition.
"""

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
    """Return a function that gets an object and returns whether it is in one of the given namespaces.

    With this filter, other Subscriptions are not kept in memory. A tenant can create any number of them, of any size,
    in its own namespaces, and OLM installs nothing for them without an OperatorGroup, which a tenant cannot create.

    :param namespaces: names of the namespaces
    """
    return lambda item: str(mapping_at(item, "metadata").get("namespace", "")) in namespaces


def read_packages(cluster: Cluster, names: typing.Iterable[str]) -> typing.Optional[dict[str, tuple[Package, ...]]]:
    """Return the packages with the given names in all catalogs, by name. A name without a package has an empty tuple.
    Return None if the API packages.operators.coreos.com, which has a separate server, is not available.

    :param names: names of packages
    :raises ApiError: the server cannot be reached, or refuses
    """
    try:
        # all of them are some ten MB on OpenShift
        found = {
            name: map(olm.parse_package, cluster.list("PackageManifest", fields=f"metadata.name={name}").items)
            for name in names
        }
        return {name: tuple(item for item in items if item.name == name) for name, items in found.items()}
    except ApiError as error:
        if error.absent or error.status == 503:
            return None
        raise


def read_pods(cluster: Cluster, namespace: str) -> dict[str, PodState]:
    """Return the state of each pod in a namespace, by name of the pod. Return an empty dict if the pods cannot be read,
    because callers only explain a delay with the result.
    """
    try:
        return {name_of(item): state_of_pod(item) for item in cluster.list("Pod", namespace, only=is_made_pod).items}
    except ApiError:
        return {}


def is_served(cluster: Cluster, namespace: str, service: str) -> bool:
    """Return whether a Service has a ready address (EndpointSlice, discovery.k8s.io/v1). An address whose readiness is
    not known counts as ready.

    :param namespace: namespace of the Service
    :param service: name of the Service
    :raises ApiError: the server cannot be reached, or refuses
    """
    slices = cluster.list("EndpointSlice", namespace, f"kubernetes.io/service-name={service}").items
    # ready is left out where it is not known, which counts as ready
    return any(
        mapping_at(end, "conditions").get("ready") is not False
        for item in slices
        for end in items_of(item, "endpoints", name_of(item))
    )


def kind_of_definition(definition: Resource) -> Kind:
    """Return the API path, the plural and whether the objects are namespaced, for the objects of a custom resource
    definition. The version in the path is the served one that is stored, or else the first served one.
    """
    spec = mapping_at(definition, "spec")
    versions = [item for item in items_of(spec, "versions", name_of(definition)) if item.get("served")]
    version = next((item for item in versions if item.get("storage")), versions[0] if versions else {})
    return (
        f"/apis/{spec.get('group')}/{version.get('name')}",
        str(mapping_at(spec, "names").get("plural")),
        spec.get("scope") == "Namespaced",
    )
