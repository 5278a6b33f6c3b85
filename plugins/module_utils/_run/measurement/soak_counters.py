# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the error counters of the HCAs before and after a soak: those of the devices in the pods, and those of the
physical functions of which these are virtual functions. A virtual function counts no errors of the cable.

A physical function is read by the observer of its node. Without one, it is read in the pod, which shows it only in the
shared mode of RDMA namespaces.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.measurement.hca_errors import Readings, compare_readings
from ..._model.base.errors import RdmaError
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.hca_counters import HcaErrors
from ..._model.node.hca import ObservedHcas
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.pods.rdma_counters import parse_counters
from ..._render.measurement.hca_counters import read_counters
from .collective_pods import LOOK, CollectivePlace, compute_left, run_short
from .measuring_plan import start_workers
from .observer_of import has_observer, observer_of, open_observer

#: pods of one group that are read at the same time
AT_ONCE = 16
#: seconds in which the counters of all pods of a soak are to be read
COUNTERS = 120.0
#: characters of the reason for which an observer does not read them
_MOST_REASON = 300


@dataclasses.dataclass(frozen=True)
class NodeCounters:
    """The counters of the HCAs of a node at one moment.

    :ivar own: counters of the devices in its pod, by device and counter; None if the pod did not respond
    :ivar physical: counters of the physical functions that could be read, by device and counter
    :ivar why: reason why the physical functions could not be read; empty if they were read, or if the node has no
        observer
    """

    own: typing.Optional[Readings]
    physical: Readings = dataclasses.field(default_factory=dict)
    why: str = ""


class SoakCounters:
    """A client that reads the error counters of the HCAs of all nodes in a group, before and after a test of long
    duration (a soak).
    """

    def __init__(
        self,
        cluster: Cluster,
        observers: typing.Optional[ObserversFacts],
        clock: Clock,
        open_pod: typing.Callable[[RdmaPod], Shell],
    ) -> None:
        """Create a reader; no connection is opened yet.

        :param observers: observers of the run; None if the run has no observers
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param open_pod: function that returns a shell in a pod
        """
        self._cluster, self._observers, self._clock, self._open_pod = cluster, observers, clock, open_pod

    def read(self, places: typing.Sequence[CollectivePlace]) -> dict[str, NodeCounters]:
        """Return the counters of the HCAs of each pod, by node. A pod or observer that does not respond is recorded in
        the counters of its node.

        :param places: pods of the group
        """
        end = self._clock() + COUNTERS
        with start_workers(min(AT_ONCE, len(places))) as pool:
            found = pool.map(lambda place: self._read_node(place, end), places)
            return {place.pod.node: item for place, item in zip(places, found)}

    def _read_node(self, place: CollectivePlace, end: float) -> NodeCounters:
        everything = (*place.devices, *place.physical)
        seen = self._read_by(lambda: self._open_pod(place.pod), read_counters(everything), end)
        in_pod = {name: counters for name, counters in (seen or {}).items() if name in place.physical}
        own = None if seen is None else {name: value for name, value in seen.items() if name not in place.physical}
        if not place.physical or not has_observer(self._observers, place.pod.node):
            return NodeCounters(own, in_pod)
        try:
            observer = observer_of(self._observers, place.pod.node)
        except RdmaError as error:
            return NodeCounters(own, in_pod, "" if in_pod else str(error)[:_MOST_REASON])
        found = self._read_by(
            lambda: open_observer(self._cluster, observer, self._clock),
            read_counters(place.physical, netdevs=True),
            end,
        )
        if found is None:
            return NodeCounters(own, in_pod, "" if in_pod else "the pod that inspects the node did not respond")
        return NodeCounters(own, {**in_pod, **found})

    def _read_by(
        self, connect: typing.Callable[[], Shell], command: typing.Sequence[str], end: float
    ) -> typing.Optional[dict[str, dict[str, int]]]:
        """Return the counters that a command prints, by RDMA device and by name of the counter. Return None if the
        shell did not respond or the command failed.

        :param connect: function without arguments that opens the shell
        :param command: words of the command that prints the counters
        :param end: monotonic time in seconds at which the time of all readings is over
        """
        try:
            shell = connect()
        except ApiError:
            return None
        try:
            shell.wait(compute_left(self._clock, end, LOOK))
            found = run_short(shell, command, self._clock, end)
        except ApiError:
            return None
        finally:
            shell.close()
        return parse_counters(found.output) if found.exit_code == 0 else None


def compare_nodes(
    places: typing.Sequence[CollectivePlace],
    before: typing.Mapping[str, NodeCounters],
    after: typing.Mapping[str, NodeCounters],
    seconds: float,
) -> tuple[HcaErrors, ...]:
    """Return the increase of the error counters of each HCA between two readings, or the reason why it is unknown. A
    physical function that could not be read, because its node has no observer and the pod does not show it, is left
    out.

    :param places: pods of the group
    :param before: counters at the first reading, by node
    :param after: counters at the second reading, by node
    :param seconds: time between the two readings, in seconds
    """
    found: list[HcaErrors] = []
    for place in places:
        node = place.pod.node
        first, second = before[node], after[node]
        found += (compare_readings(node, device, first.own, second.own, seconds) for device in place.devices)
        for device in place.physical:
            why = first.why or second.why
            if why:
                found.append(HcaErrors(node, device, seconds, why=why))
            elif device in first.physical or device in second.physical:
                found.append(compare_readings(node, device, first.physical, second.physical, seconds))
    return tuple(found)


def list_physical(hcas: typing.Mapping[str, ObservedHcas]) -> dict[str, dict[str, str]]:
    """Return the RDMA device of each physical function, by node and PCI address. A node whose HCAs could not be read is
    left out.

    :param hcas: HCAs that node_info read, or its error, by node
    """
    return {
        node: {hca.pci.address: hca.rdma_device for hca in observed.value.hcas if hca.pci and hca.rdma_device}
        for node, observed in hcas.items()
        if observed.value is not None
    }
