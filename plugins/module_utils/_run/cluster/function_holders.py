# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the running pods that may use virtual functions of their nodes: by a resource, by a ResourceClaim, or by a
device plugin of another operator.
"""

from __future__ import annotations

import collections
import typing

from ..._model.boundary.devices import PCI_ADDRESS
from ..._model.kubernetes.disruption import FunctionHolder
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes import core
from ..._parse.kubernetes.multus import MOST_INTERFACES, network_status
from ..._parse.kubernetes.resource import ResourceError, mapping_at, why_not_read
from .claimed_devices import ClaimedDevices


class FunctionHolders:
    """A collector of the running pods that may use virtual functions.

    :param nodes: names of the nodes whose pods count
    :param prefix: prefix of the resources of virtual functions
    """

    def __init__(self, cluster: Cluster, nodes: typing.Container[str], prefix: str) -> None:
        self._claims, self._nodes, self._prefix = ClaimedDevices(cluster), nodes, prefix
        #: pods that may use virtual functions, by node
        self.found: dict[str, list[FunctionHolder]] = collections.defaultdict(list)

    def collect(
        self, pods: typing.Iterable[Resource], keep: typing.Callable[[Resource], bool]
    ) -> typing.Iterator[Resource]:
        """Yield the pods that another reader keeps, and add each pod that may use virtual functions to ``found``.

        :param pods: pods of the API server
        :param keep: returns whether to yield a pod
        :raises ApiError: the API server cannot be reached
        :raises ResourceError: an object does not have the form of a pod
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
        holder = FunctionHolder(
            f"{pod.namespace}/{pod.name}",
            _list_addresses(resource),
            tuple(name for name in pod.requests if name.startswith(self._prefix)),
            bool(spec.get("resourceClaims")) and self._claims.may_be_network(spec, pod.namespace),
            pod.owner == "DaemonSet",
        )
        if holder.addresses or holder.resources or holder.claims:
            self.found[pod.node].append(holder)


def _list_addresses(pod: Resource) -> tuple[str, ...]:
    """Return the PCI addresses of the devices of a pod, as multus reports them. Any client that may write the pod can
    write them, so invalid ones are left out.
    """
    try:
        entries = network_status(pod)[:MOST_INTERFACES]
    except ResourceError:
        return ()
    found = []
    for entry in entries:
        try:
            found.append(mapping_at(entry, "device-info", "pci").get("pci-address"))
        except ResourceError:
            continue
    return tuple(address for address in found if isinstance(address, str) and PCI_ADDRESS.fits(address))
