# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the pods that lose network devices when a run or a removal takes the driver of NVIDIA's network operator. The
operator removes the driver from all nodes with NVIDIA's NICs at the same time, and drains no node.
"""

from __future__ import annotations

import pathlib
import typing

from ...._analysis.controllers.drains.operator_turns import list_begun_upgrades
from ...._analysis.disruption.driver_links import list_driver_uses
from ...._analysis.disruption.nic_driver import list_driver_nodes
from ...._model.base.text import join_first
from ...._model.kubernetes.scope import Scope
from ...._model.operators.operators import GPU_RESOURCES
from ...._observe.kubernetes.client import Cluster
from ...._observe.kubernetes.kinds import Resource
from ...._observe.operators.users import list_resource_names
from ...._parse.job.pod_template import NETWORKS_ANNOTATION
from ...._parse.kubernetes import core
from ...._parse.kubernetes.resource import items_of, mapping_at, read_namespace, why_not_read
from ...._parse.operators.nic_driver import parse_driver_removal
from ..claimed_devices import ClaimedDevices
from .known_uses import KnownUses, describe_waiver
from .pods import RunningPod, find_running_pods

#: interfaces that a message names
_NAMED = 10
#: folder of the RDMA devices
_DEVICES = pathlib.PurePosixPath("/dev/infiniband")
#: extended resources that are not devices of NICs: those of GPUs, and those of virtual machines
_NOT_OF_NICS = (*GPU_RESOURCES, "devices.kubevirt.io/")


def find_driver_users(cluster: Cluster, policies: typing.Sequence[Resource], scope: Scope) -> list[RunningPod]:
    """Return the running pods that use network devices on those nodes from which the removal of NicClusterPolicies
    takes the driver.

    :param policies: NicClusterPolicies that the removal takes
    :param scope: objects of the intent. Its own pods are left out, because the removal takes them as well
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    names = find_driver_nodes(cluster, policies, scope)
    return find_device_users(cluster, names, scope) if names else []


def find_driver_nodes(cluster: Cluster, policies: typing.Sequence[Resource], scope: Scope) -> set[str]:
    """Return the names of the nodes from which the removal of NicClusterPolicies takes the driver. Return an empty set
    if no policy installs the driver.

    :param policies: NicClusterPolicies that the removal takes
    :param scope: objects of the intent
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    changes = [change for change in map(parse_driver_removal, policies) if change is not None]
    if not changes:
        return set()
    nodes = tuple(map(core.parse_node, cluster.list("Node").items))
    own = [node.name for node in nodes if scope.selector.items() <= node.labels.items()]
    return {name for change in changes for name in list_driver_nodes(change, nodes, own)}


def list_driver_upgrades(cluster: Cluster, names: typing.Collection[str]) -> tuple[str, ...]:
    """Return the reasons why the driver must not be removed from nodes now, each with its node and the remedy: NVIDIA's
    network operator upgrades the driver of the node.

    :param names: names of the nodes that lose the driver
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object has an unexpected form
    """
    return list_begun_upgrades(map(core.parse_node, cluster.list("Node").items), names) if names else ()


def explain_driver_links(nodes: typing.Iterable[str], known: KnownUses) -> typing.Iterator[str]:
    """Yield the reasons why the driver must not be removed from nodes: their own network needs it. Add a warning to
    ``known`` about uses that a waiver covers, and about unknown uses.

    :param nodes: names of the nodes that lose the driver
    :param known: uses of NICs by the nodes themselves
    """
    for name in sorted(nodes):
        held, doubts = list_driver_uses(name, known.driven if known.driven is not None else {})
        subject, text = f"ofed_driver {name}", join_first(held, _NAMED)
        if held and not known.is_waived(subject, text):
            yield f"{name}: {text}. {describe_waiver(subject)}"
        elif held or doubts:
            known.warn(
                f"The removal of the driver may take the link of NICs of {name}: {join_first((*held, *doubts), _NAMED)}"
            )


def find_device_users(cluster: Cluster, nodes: typing.Container[str], scope: Scope) -> list[RunningPod]:
    """Return the running pods that use network devices on some nodes. Pods of all users count, and those of services
    too, because without a drain no pod is moved to another node.

    A pod uses network devices if it has a network of multus, an extended resource that is not of GPUs or virtual
    machines, or a ResourceClaim for network devices, if it has GPUs and the network of the host, or if it can open the
    RDMA devices of its node. A pod that is too large to be read counts.

    :param nodes: names of the nodes
    :param scope: objects of the intent, whose own pods are left out
    :raises ApiError: the API server refuses a list, or cannot be reached
    :raises ResourceError: an object is malformed
    """
    claims = ClaimedDevices(cluster)
    return find_running_pods(cluster, nodes, scope, lambda pod: bool(why_not_read(pod)) or _uses_network(pod, claims))


def _uses_network(pod: Resource, claims: ClaimedDevices) -> bool:
    spec = mapping_at(pod, "spec")
    if mapping_at(pod, "metadata", "annotations").get(NETWORKS_ANNOTATION):
        return True
    resources = {name for name in list_resource_names(spec) if "/" in name}
    if any(not name.startswith(_NOT_OF_NICS) for name in resources):
        return True
    if spec.get("hostNetwork") is True and any(name.startswith(GPU_RESOURCES) for name in resources):
        return True
    return claims.may_be_network(spec, read_namespace(pod)) or _opens_devices_of_host(pod)


def _opens_devices_of_host(pod: Resource) -> bool:
    """Return whether a pod can open the RDMA devices of its node without requesting a resource. It can if it mounts
    their folder, or if it mounts /dev or is privileged. Of pods of a DaemonSet, such as those of the driver or of a CNI
    plugin, only the mount of the folder counts.
    """
    spec = mapping_at(pod, "spec")
    paths = [
        pathlib.PurePosixPath(str(mapping_at(volume, "hostPath").get("path") or "."))
        for volume in items_of(spec, "volumes", "Pod")
    ]
    if any(_DEVICES in (path, *path.parents) for path in paths):
        return True
    owners = items_of(mapping_at(pod, "metadata"), "ownerReferences", "Pod")
    if any(owner.get("kind") == "DaemonSet" for owner in owners):
        return False
    return any(path in _DEVICES.parents for path in paths if path.is_absolute()) or any(
        mapping_at(container, "securityContext").get("privileged") is True
        for kind in ("initContainers", "containers")
        for container in items_of(spec, kind, "Pod")
    )
