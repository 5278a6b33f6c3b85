# SPDX-License-Identifier: GPL-3.0-or-later

"""Connect to the hosts of a pair through the observers of their nodes, and find what a measurement between the hosts
needs: HCAs, free virtual functions, and addresses.
"""

from __future__ import annotations

import dataclasses
import functools
import typing

from ..._model.base.errors import RdmaError
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import LayerEnd, RdmaPod
from ..._observe.kubernetes.shell import Shell
from ..._parse.kubernetes.core import internal_address
from ..._parse.kubernetes.resource import Resource, name_of
from ..._parse.pods.host import PodHost, parse_host
from ..._render.measurement import commands
from .client_server import find_failure
from .measuring_plan import Measurement
from .observer_of import observer_of
from .pods.inspection import PROBE_LIMIT


@dataclasses.dataclass(frozen=True)
class HostEnd:
    """One end of a pair, as the observer of its node sees it.

    :ivar node: name of the node
    :ivar pf: PCI address of the physical function
    :ivar seen: functions, devices and addresses of the HCA on the host
    """

    node: str
    pf: str
    seen: PodHost


class NoStep(RdmaError):
    """Raised if a layer cannot be measured. Its message is the reason.

    :ivar absent: whether the pods do not have this layer at all, such as pods without virtual functions
    :ivar why: the reason as text
    """

    def __init__(self, why: str, absent: bool = False) -> None:
        super().__init__(why)
        self.why, self.absent = why, absent


class HostEnds:
    """The hosts of the pairs of one fabric. A connection to an observer is opened by the first call and stays open."""

    def __init__(self, measurement: Measurement, fabric: Fabric, observers: typing.Optional[ObserversFacts]) -> None:
        """Prepare the connections; none is opened yet.

        :param observers: observers of the run; None if the run has no observers
        """
        self._measurement, self._fabric, self._observers = measurement, fabric, observers
        #: by node and physical function
        self._shells: dict[tuple[str, str], Shell] = {}
        self._hosts: dict[tuple[str, str], HostEnd] = {}

    @functools.cached_property
    def _nodes(self) -> typing.Mapping[str, Resource]:
        """Return the nodes of the cluster by name. They are listed, because the user may have the right to list nodes
        but not to get a single one.
        """
        return {name_of(item): item for item in self._measurement.cluster.list("Node").items}

    def close(self) -> None:
        """Close the connections to the observers. Commands that still run there end with their connection or by their
        own time limit.
        """
        for shell in self._shells.values():
            shell.close()

    def shell(self, end: HostEnd) -> Shell:
        """Return the connection to the observer of a host that ``connect`` has opened."""
        return self._shells[end.node, end.pf]

    def _find_hca_address(self, pod: RdmaPod) -> str:
        """Return the PCI address of the HCA of a pod: the physical function of its virtual function, or the HCA of its
        rail on its node.

        :raises NoStep: the HCA of the pod is not known
        """
        if pod.physical_function:
            return pod.physical_function
        rails = self._measurement.plan.rails.get(self._fabric.name, {}).get(pod.node, {})
        found = next((address for address, rail in rails.items() if rail == pod.rail), pod.pci)
        if not found:
            raise NoStep(f"the HCA of {pod.node} on the fabric is unknown")
        return found

    def connect(self, pod: RdmaPod) -> HostEnd:
        """Return the state of the pod's HCA on its node, as the observer of the node reads it. The connection to the
        observer stays open for further calls.

        :raises NoStep: the HCA is not known, the observer does not respond, or its image lacks a tool
        :raises RdmaError: the node has no ready observer
        """
        pf = self._find_hca_address(pod)
        key = (pod.node, pf)
        if key in self._hosts and self._shells[key].open:
            return self._hosts[key]
        namespace, observer = observer_of(self._observers, pod.node)
        shell = self._measurement.cluster.shell(
            namespace, observer.pod, observer.container, commands.render_host_shell(pf), self._measurement.clock
        )
        self._shells[key] = shell
        greeting = shell.wait(PROBE_LIMIT)
        failure = find_failure(greeting)
        if failure is not None:
            raise NoStep(f"the pod that inspects the node {pod.node} did not respond: {failure.evidence}")
        seen = parse_host(greeting.output, pf)
        lacks = [tool for tool in ("timeout", "stdbuf", "ib_write_bw") if tool in seen.probe.missing]
        if lacks:
            raise NoStep(
                "the image of the pods that inspect the nodes (rdma_observers_image) does not contain"
                f" {', '.join(lacks)}"
            )
        self._hosts[key] = HostEnd(pod.node, pf, seen)
        return self._hosts[key]

    def find_server_address(self, ends: tuple[HostEnd, HostEnd], functions: tuple[str, str], connection: str) -> str:
        """Return the address at which the client connects to the server.

        If the connection is set up over TCP, it is the InternalIP of the server's node. The measured data does not use
        the network of this address, because both ends name their RDMA devices. If the connection is set up by rdma_cm
        (iWARP), it is an address of the server's function. rdma_cm chooses the device by the route, so the client must
        reach this address over the device under test.

        :param ends: client and server
        :param functions: PCI addresses of the measured functions of client and server
        :param connection: ``tcp`` or ``rdma_cm``
        :raises NoStep: there is no such address or route
        """
        node = ends[1].node
        if connection == "tcp":
            # what is no address is the error of this node's steps alone
            address = internal_address(self._nodes.get(node, {}))
            if address is None:
                raise NoStep(f"the node {node} reports no InternalIP")
            return address
        address = ends[1].seen.address(functions[1])
        if address is None:
            raise NoStep(
                f"iWARP connects over rdma_cm, which requires an address on the interface of {functions[1]} on {node},"
                " but the interface has none"
            )
        if not ends[0].seen.leads(functions[0], address):
            raise NoStep(
                f"iWARP connects over rdma_cm, which requires that only {functions[0]} on {ends[0].node} has a route"
                f" to {address}, but this is not the case"
            )
        return address


def find_free_vf(end: HostEnd, pods: typing.Iterable[RdmaPod]) -> str:
    """Return the PCI address of a virtual function of an HCA that no pod has, and that has an interface and an RDMA
    device on the host.

    :param pods: pods of the fabric
    :raises NoStep: there is no such function
    """
    taken = {pod.pci or "" for pod in pods if pod.node == end.node}
    found = next(iter(end.seen.free(taken)), None)
    if found is None:
        number = len(end.seen.functions)
        raise NoStep(
            f"none of the {number} virtual functions of {end.pf} on {end.node} is free and has an interface and an"
            " RDMA device on the host"
        )
    return found


def build_host_end(end: HostEnd, function: str, device: str) -> LayerEnd:
    """Return the data of one end of a measurement on hosts, for the result.

    :param function: PCI address of the measured function
    :param device: RDMA device of the function
    """
    own = end.seen.administration(function)
    probe = end.seen.probe
    return LayerEnd(
        end.node, device, function, probe.binding(function)[1], probe.near(function), own.max_tx_rate, own.vlan_qos
    )
