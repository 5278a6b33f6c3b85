# SPDX-License-Identifier: GPL-3.0-or-later

"""Starts the pods of a collective, each of which takes a whole node, and reads the HCAs that each pod got."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import typing

from ..._model.base.errors import RdmaError, wrap_unforeseen
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.kubernetes.objects import CommandResult
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.collectives import MOST_HCAS, CollectiveHca, CollectivePod, Collectives
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.kubernetes.networks.multus import training_pod
from ..._parse.kubernetes.resource import ResourceError
from ..._parse.pods import probe as pod_probe
from ..._render.measurement import collectives as render
from ..._render.measurement import commands
from .client_server import find_failure
from .measuring_plan import Plan, PodOfNode, Say
from .pods.measuring_pods import MeasuringPods

#: seconds of a short command in a pod, and of the first command of a connection, which reads the pod's HCAs
SHORT, LOOK = 30.0, 60.0


@dataclasses.dataclass(frozen=True)
class CollectivePlace:
    """A pod in which ranks of a collective can run.

    :ivar pod: the pod, with its node and namespace
    :ivar host: host name of the pod in the format of NCCL
    :ivar devices: names of the RDMA devices of the pod
    :ivar physical: names of the RDMA devices of the physical functions to which these devices belong as virtual
        functions; empty if they are not virtual functions
    """

    pod: RdmaPod
    host: str
    devices: tuple[str, ...]
    physical: tuple[str, ...] = ()


class CollectivePods:
    """A client that starts the pods of a collective and opens connections to them.

    :ivar places: the usable pods, by node
    """

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        wanted: Collectives,
        clock: Clock,
        say: Say,
        pods: MeasuringPods,
        physical: typing.Mapping[str, typing.Mapping[str, str]],
    ) -> None:
        """Create a client for the pods of one run; no pod is created yet.

        :param plan: nodes and settings of the run, with exactly one fabric, over which the collectives run
        :param wanted: settings of the collectives, from the intent
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param say: function that shows a line of progress to the user
        :param pods: client that creates, inspects and removes the pods
        :param physical: RDMA device of each physical function, by node and PCI address
        """
        (self._fabric,) = plan.fabrics
        self._cluster, self._plan, self._wanted, self._clock, self._say = cluster, plan, wanted, clock, say
        self._pods, self._physical = pods, physical
        self.places: dict[str, CollectivePlace] = {}

    def start(self, pool: concurrent.futures.Executor) -> tuple[CollectivePod, ...]:
        """Start the pods, and read the HCAs that each of them got. Return all pods. A pod that cannot be used has the
        reason as its error; the others are added to ``places``.

        :param pool: threads that start and examine the pods
        """
        fabric = self._fabric
        definitions = {
            node: render.render_pod(node, self._wanted, fabric, self._plan.cluster, self._plan.run)
            for node in self._plan.nodes
        }
        started = self._pods.start_whole(pool, fabric, definitions)
        looked = tuple(pool.map(self._examine_or_fail, started))
        for (item, _found), pod in zip(started, looked):
            if pod.error:
                self._say(f"{fabric.name} {pod.node}: {pod.error}")
            else:
                physical = tuple(dict.fromkeys(hca.physical for hca in pod.hcas if hca.physical))
                devices = tuple(hca.device for hca in pod.hcas)
                self.places[pod.node] = CollectivePlace(item, pod.host, devices, physical)
        return looked

    def _examine_or_fail(self, started: PodOfNode) -> CollectivePod:
        """Return the HCAs and the host name of a pod. An unexpected exception becomes the error of this pod.

        :param started: pod, and the object that the API server returned for it
        :raises LeaseLost: the run has lost the Lease of the cluster
        """
        item, found = started
        try:
            return self._examine_pod(item, found)
        except LeaseLost:
            raise
        except Exception as error:
            text = (
                str(error) if isinstance(error, RdmaError) else str(wrap_unforeseen(error, "the inspection of the pod"))
            )
            return CollectivePod(item.node, item.name, error=text, cause="look")

    def _examine_pod(self, item: RdmaPod, found: Resource) -> CollectivePod:
        """Return the HCAs and the host name of a pod, read through a shell in it. A pod that did not start, or that
        cannot be read, gets the reason as its error.

        :param item: pod that was started, with its node
        :param found: object of the pod, as the API server returned it
        """
        if item.error:
            return CollectivePod(item.node, item.name, error=item.error, cause=item.cause)
        try:
            host = training_pod(found).host
        except ResourceError as error:
            return CollectivePod(item.node, item.name, error=str(error), cause="look")
        # in a network that is shared a pod has the HCAs themselves, which its environment does not name
        shell = self.open_shell(item, " ".join(self._plan.rails.get(self._fabric.name, {}).get(item.node, {})))
        try:
            greeting = shell.wait(LOOK)
        finally:
            shell.close()
        failure = find_failure(greeting)
        if failure is not None:
            return CollectivePod(
                item.node,
                item.name,
                host,
                error=f"the pod could not be inspected: {failure.evidence}",
                cause=failure.kind,
            )
        hcas, wrong = self._find_hcas(item.node, pod_probe.parse(greeting.output))
        return CollectivePod(item.node, item.name, host, hcas, wrong, "rail" if wrong else "")

    def _find_hcas(self, node: str, probe: pod_probe.Probe) -> tuple[tuple[CollectiveHca, ...], str]:
        """Return two values: the HCAs of a pod, each with its rail, and the reason why a collective cannot use these
        HCAs. The reason is empty if a collective can.

        :param node: name of the node of the pod
        :param probe: RDMA devices and PCI functions that the pod's shell reports
        """
        fabric, rails = self._fabric, self._plan.rails.get(self._fabric.name, {}).get(node, {})
        wanted = fabric_rails(fabric)
        found: list[CollectiveHca] = []
        if len(probe.addresses) > MOST_HCAS:
            return (), f"the pod has {len(probe.addresses)} functions of this fabric; expected at most {MOST_HCAS}"
        for address in probe.addresses or tuple(rails):
            function = probe.functions.get(address, address)
            rail = rails.get(function, 0 if wanted.stop == 1 and not rails else None)
            devices = probe.pci_devices.get(address, ())
            if rail is None:
                return (
                    tuple(found),
                    (
                        f"its function {address} belongs to {function}; HCAs of this fabric on the node:"
                        f" {', '.join(rails) or 'none known'}"
                    ),
                )
            if len(devices) != 1:
                return tuple(found), f"its function {address} has {len(devices)} RDMA devices; expected 1"
            physical = self._physical.get(node, {}).get(function, "") if function != address else ""
            found.append(CollectiveHca(devices[0], rail, probe.numa_node(address), physical))
        missing = [rail for rail in wanted if rail not in {hca.rail for hca in found}]
        seen = ", ".join(f"{hca.device} of rail {hca.rail}" for hca in found) or "none"
        return tuple(found), (
            f"the pod has no HCA of rail {', '.join(map(str, missing))}; HCAs of the pod: {seen}"
        ) if missing else ""

    def open_shell(self, item: RdmaPod, addresses: str = "") -> Shell:
        """Return a connection to a new shell in a pod.

        :param item: pod in which the shell runs
        :param addresses: PCI addresses whose RDMA devices the shell reports at its start, separated by spaces; empty:
            the pod's environment names them
        :raises ApiError: the pod does not exist or does not run
        """
        return self._cluster.shell(
            item.namespace, item.name, render.CONTAINER, commands.render_shell(addresses), self._clock
        )


def run_short(
    shell: Shell, command: typing.Sequence[str], clock: Clock, end: float, limit: float = SHORT
) -> CommandResult:
    """Run a command in a shell for at most ``limit`` seconds, and not beyond the time ``end``. Return its result. If
    the connection is closed, the result has this as its error.

    :param command: words of the command
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param end: time of ``clock`` in seconds
    :param limit: time limit in seconds
    """
    if not shell.open:
        return CommandResult("", None, error="the connection was closed before")
    shell.start(command)
    return shell.wait(compute_left(clock, end, limit))


def compute_left(clock: Clock, end: float, limit: float) -> float:
    """Return the seconds until the time ``end``: at least 0, and at most ``limit``.

    :param clock: function that returns the time of a monotonic clock, in seconds
    :param end: time of ``clock`` in seconds
    :param limit: maximum in seconds
    """
    return min(limit, max(0.0, end - clock()))
