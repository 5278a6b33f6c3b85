# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the Kubernetes objects that a training job depends on: operators, queues and storage.

[src NVIDIA/gpu-operator v26.3.3, Mellanox/network-operator v26.4.1: status.state; kubernetes-sigs/kueue v0.19.2
apis/kueue/v1beta1 and v1beta2, whose cohort is named cohortName; kubeflow/trainer v1.9.4 and v2.3.0 manifests]
"""

from __future__ import annotations

import re
import typing

from ..._model.job.stack import ClusterQueue, Controller, LocalQueue, PolicyState, StorageClass
from ..._model.kubernetes.owner_marks import find_owner_mark
from ..._model.operators.operators import NETWORK, NFD, SRIOV, TABLE, Operator
from ..kubernetes.core import parse_workload
from ..kubernetes.quantity import parse_quantity
from ..kubernetes.resource import (
    Resource,
    ResourceError,
    full_name_of,
    items_of,
    mapping_at,
    name_of,
    selector_of,
    texts_of,
    title_of,
)
from ..operators.sriov_operator import origin_of, runs_operator

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def parse_controller(deployment: Resource) -> typing.Optional[Controller]:
    """Return the operator that a Deployment runs, with its version, its numbers of pods and its installer. Return None
    if the Deployment runs no known operator.

    :raises ResourceError: the object is not a valid Deployment
    """
    work = parse_workload(deployment)
    images = {re.split(r"[:@]", image.rsplit("/", 1)[-1])[0]: image for image in work.images}
    containers = items_of(mapping_at(deployment, "spec", "template", "spec"), "containers", title_of(deployment))
    for operator in TABLE:
        image = next((images[name] for name in operator.images if name in images), None)
        if image is not None or work.name in operator.deployments or _has_operator_command(operator, containers):
            labels, notes = (
                mapping_at(deployment, "metadata", "labels"),
                mapping_at(deployment, "metadata", "annotations"),
            )
            tag = (image or next(iter(work.images), "")).rsplit("/", 1)[-1].partition("@")[0].partition(":")[2]
            version = labels.get("app.kubernetes.io/version") or labels.get("olm.owner") or tag
            return Controller(
                operator.name,
                f"{work.namespace}/{work.name}",
                str(version or ""),
                work.wanted,
                work.ready,
                "gitops" if find_owner_mark(deployment) else _identify_origin(operator, labels, work.namespace),
                str(notes.get("meta.helm.sh/release-name") or ""),
            )
    return None


def account_of(deployment: Resource) -> str:
    """Return the ServiceAccount of a Deployment's pods as ``namespace/name``. The name is ``default`` if the Deployment
    sets none.

    :raises ResourceError: the object is not a valid Deployment
    """
    spec = mapping_at(deployment, "spec", "template", "spec")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    return f"{mapping_at(deployment, 'metadata').get('namespace') or ''}/{account}"


def list_accounts(binding: Resource) -> frozenset[str]:
    """Return the ServiceAccounts, as ``namespace/name``, to which a ClusterRoleBinding grants rights in the whole
    cluster. Only an administrator can create a ClusterRoleBinding.

    :raises ResourceError: the object is not a valid ClusterRoleBinding
    """
    subjects = items_of(mapping_at(binding), "subjects", title_of(binding))
    return frozenset(
        f"{item.get('namespace') or ''}/{item.get('name') or ''}"
        for item in subjects
        if item.get("kind") == "ServiceAccount"
    )


def _has_operator_command(operator: Operator, containers: typing.Iterable[Resource]) -> bool:
    """Return whether the command of a container is that of a given operator. This finds the operator even in a cluster
    that renames images and Deployments. Only the commands of the SR-IOV operator and of NFD are known.
    """
    if operator.name == SRIOV:
        return runs_operator(containers)
    words = [
        word
        for container in containers
        for key in ("command", "args")
        for word in texts_of(container, key, "Deployment")
    ]
    return operator.name == NFD and any(word.rsplit("/", 1)[-1] == "nfd-master" for word in words)


def _identify_origin(operator: Operator, labels: typing.Mapping[str, typing.Any], namespace: str) -> str:
    """Return the installer of an operator, such as ``helm`` or ``olm``, from the labels of its Deployment. NVIDIA's
    network operator installs other operators, but not itself. Its labels alone would say that it does, so the result
    for it is ``helm`` or ``unknown`` in that case.
    """
    found = origin_of(labels, namespace)
    if operator.name == NETWORK and found == "nvidia-network-operator":
        return "helm" if labels.get("app.kubernetes.io/managed-by") == "Helm" else "unknown"
    return found


def parse_policy_state(resource: Resource) -> PolicyState:
    """Return the kind, the name and the reported state of a ClusterPolicy or a NicClusterPolicy. The state is empty if
    the object reports none.

    :raises ResourceError: the object has an unexpected form
    """
    return PolicyState(
        str(mapping_at(resource).get("kind", "")),
        name_of(resource),
        str(mapping_at(resource, "status").get("state") or ""),
    )


def _explain_inactive(resource: Resource) -> str:
    """Return the reason why a queue of Kueue is not active: its stopPolicy, or the message of Kueue. Return an empty
    string if the queue is active.
    """
    if mapping_at(resource, "spec").get("stopPolicy") in ("Hold", "HoldAndDrain"):
        return f"its stopPolicy is {mapping_at(resource, 'spec')['stopPolicy']}"
    active = next(
        (
            item
            for item in items_of(mapping_at(resource, "status"), "conditions", title_of(resource))
            if item.get("type") == "Active"
        ),
        {},
    )
    return (
        ""
        if active.get("status") == "True"
        else str(active.get("message") or active.get("reason") or "Kueue has not processed it yet")
    )


def parse_local_queue(resource: Resource) -> LocalQueue:
    """Return the name, the ClusterQueue and, if it is not active, the reason for it of a LocalQueue of Kueue.

    :raises ResourceError: the object is not a valid LocalQueue
    """
    name = full_name_of(resource)
    return LocalQueue(name, str(mapping_at(resource, "spec").get("clusterQueue") or ""), _explain_inactive(resource))


def parse_cluster_queue(resource: Resource) -> ClusterQueue:
    """Return the name, the quotas, the cohort, the selected namespaces and, if it is not active, the reason for it of a
    ClusterQueue of Kueue.

    :raises ResourceError: the object is not a valid ClusterQueue, or a quota is not a valid quantity
    """
    name, spec, what = name_of(resource), mapping_at(resource, "spec"), title_of(resource)
    groups = tuple(
        {
            str(flavor.get("name")): _parse_quotas(flavor, f"{what} flavor {flavor.get('name')}")
            for flavor in items_of(group, "flavors", what)
        }
        for group in items_of(spec, "resourceGroups", what)
    )
    cohort = str(spec.get("cohortName") or spec.get("cohort") or "")
    return ClusterQueue(name, groups, cohort, selector_of(spec, "namespaceSelector", what), _explain_inactive(resource))


def _parse_quotas(flavor: Resource, what: str) -> dict[str, str]:
    found = {str(item.get("name")): str(item.get("nominalQuota", "0")) for item in items_of(flavor, "resources", what)}
    for name, value in found.items():
        parse_quantity(value, f"{what}: {name}")
    return found


def parse_frameworks(data: typing.Any) -> tuple[str, ...]:
    """Return the kinds of jobs that Kueue manages: ``integrations.frameworks`` of its configuration. The result is
    empty if the configuration does not set them.

    :param data: configuration of Kueue, loaded from YAML
    :raises ResourceError: the configuration has an unexpected form
    """
    if not isinstance(data, dict):
        raise ResourceError("the configuration of Kueue is not a mapping")
    return texts_of(mapping_at(data, "integrations"), "frameworks", "configuration of Kueue")


def parse_uncounted(data: typing.Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the resources for which a ClusterQueue needs no quota, in two tuples: the prefixes in
    ``excludeResourcePrefixes``, and the names that ``transformations`` replace. [src kueue v0.19.2 apis/config
    Resources]

    :param data: configuration of Kueue, loaded from YAML
    :raises ResourceError: the configuration has an unexpected form
    """
    if not isinstance(data, dict):
        raise ResourceError("the configuration of Kueue is not a mapping")
    what, resources = "configuration of Kueue", mapping_at(data, "resources")
    changed = items_of(resources, "transformations", what)
    return (
        tuple(item for item in texts_of(resources, "excludeResourcePrefixes", what) if item),
        tuple(str(item.get("input") or "") for item in changed if item.get("strategy") == "Replace"),
    )


def parse_storage_class(resource: Resource, shared: typing.Container[str]) -> StorageClass:
    """Return a StorageClass: its name, its provisioner, whether it is the default class, and whether its volumes are
    shared.

    :param shared: names of the classes whose volumes can be written from many nodes
    :raises ResourceError: the object is not a valid StorageClass
    """
    name = name_of(resource)
    default = str(mapping_at(resource, "metadata", "annotations").get(_DEFAULT_CLASS, "")) == "true"
    return StorageClass(name, str(mapping_at(resource).get("provisioner", "")), default, name in shared)


def shared_class(volume: Resource) -> str:
    """Return the name of the StorageClass of a PersistentVolume that many nodes can write to (ReadWriteMany). Return an
    empty string for any other volume, and for a volume without a class.

    :raises ResourceError: the object is not a valid PersistentVolume
    """
    spec, name = mapping_at(volume, "spec"), name_of(volume)
    return str(spec.get("storageClassName") or "") if "ReadWriteMany" in texts_of(spec, "accessModes", name) else ""
