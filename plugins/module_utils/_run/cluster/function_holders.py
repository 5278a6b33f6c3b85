# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the running pods that may use virtual or physical functions of their nodes: by a resource, by a ResourceClaim,
by a network on an interface of the node, by the network of the node itself, or by a device plugin of another operator.
"""

from __future__ import annotations

import collections
import typing

from ..._model.kubernetes.disruption import FunctionHolder
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._model.operators.operators import GPU_RESOURCES
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core
from ..._parse.kubernetes.resource import items_of, mapping_at, why_not_read
from .claimed_devices import ClaimedDevices
from .pod_networks import PodNetworks
from .shared_devices import SharedDevices

#: folder of the host with the device files of RDMA
_RDMA_FILES = "/dev/infiniband"


class FunctionHolders:
    """A collector of the running pods that may use virtual or physical functions of some nodes.

    :param nodes: names of the nodes whose pods count
    :param prefix: prefix of the names of resources that are virtual functions
    """

    def __init__(self, cluster: Cluster, nodes: typing.Container[str], prefix: str) -> None:
        self._claims, self._nodes, self._prefix = ClaimedDevices(cluster), nodes, prefix
        self._networks, self._shared = PodNetworks(cluster), SharedDevices(cluster)
        #: pods that may use virtual functions, by node
        self.found: dict[str, list[FunctionHolder]] = collections.defaultdict(list)

    def collect(
        self, pods: typing.Iterable[Resource], keep: typing.Callable[[Resource], bool]
    ) -> typing.Iterator[Resource]:
        """Yield those pods that another reader keeps, and add each pod that may use virtual or physical functions to
        ``found``. A pod that is too large to be read is not added.

        :param pods: pods of the API server
        :param keep: function that gets a pod and returns whether to yield it
        :raises ApiError: the API server cannot be reached
        :raises ResourceError: a pod is malformed
        """
        for pod in pods:
            if not why_not_read(pod):
                self._add(pod)
            if keep(pod):
                yield pod

    def _add(self, resource: Resource) -> None:
        spec = mapping_at(resource, "spec")
        if spec.get("nodeName") not in self._nodes:
            return
        pod = core.parse_pod(resource)
        if pod.ended or pod.mirror or pod.namespace == MEASURING:
            return
        claims = bool(spec.get("resourceClaims")) and self._claims.may_be_network(spec, pod.namespace)
        devices = tuple(filter(_is_device, pod.requests))
        networks = self._networks.read(resource, claims or any(map(_may_be_nic, devices)))
        on_host = (*devices, *_list_host_files(resource)) if spec.get("hostNetwork") is True else ()
        holder = FunctionHolder(
            f"{pod.namespace}/{pod.name}",
            networks.addresses,
            tuple(name for name in pod.requests if name.startswith(self._prefix)),
            claims,
            pod.owner == "DaemonSet",
            networks.claimed,
            networks.interfaces,
            self._shared.find(name for name in devices if not name.startswith(f"{self._prefix}/")),
            on_host,
        )
        if holder != FunctionHolder(holder.pod, stays=holder.stays):
            self.found[pod.node].append(holder)


def _is_device(resource: str) -> bool:
    """Return whether the name of a resource is that of an extended resource, such as ``nvidia.com/gpu``: it has a
    domain, and the domain is not kubernetes.io or below it.
    """
    domain, slash, _name = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")


def _may_be_nic(resource: str) -> bool:
    return not resource.startswith(GPU_RESOURCES)


def _list_host_files(pod: Resource) -> tuple[str, ...]:
    volumes = items_of(mapping_at(pod, "spec"), "volumes", "pod")
    paths = (mapping_at(volume, "hostPath").get("path") for volume in volumes)
    return (_RDMA_FILES,) if any(isinstance(path, str) and path.startswith(_RDMA_FILES) for path in paths) else ()
