# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the error counters of the HCAs of a pair on RoCE before and after its measurement: those of the devices in both
pods, through the connections that the measurement uses, and those of the physical functions, through the observers of
the nodes. Without an observer, errors of the cable are not read. Results are not evaluated here.

An end has ``READING_LIMIT`` seconds for its readings before the measurement, and again after it. The plan counts these.
A node that needs longer is not asked again.
"""

from __future__ import annotations

import dataclasses
import threading
import typing

from ..._analysis.measurement.hca_errors import Readings, compare_readings
from ..._analysis.schedule.measurements import READING_LIMIT
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import carries_roce
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.hca_counters import HcaErrors
from ..._model.measurement.pairs import PairResult
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.pods.rdma_counters import parse_counters
from ..._render.measurement.hca_counters import read_counters
from .observer_of import has_observer, observer_of, open_observer

#: seconds that a reading takes at most on a node that answers at once, and seconds that all readings of a node may take
#: beyond these in one run
_AT_ONCE, _MOST_DELAY = 1.0, 60.0
#: characters of the reason why counters are unknown
_MOST_REASON = 300


class PairCounters:
    """A reader of the error counters of the HCAs of pairs, in pods and in observers. Several threads may call it at the
    same time for different pairs.
    """

    def __init__(
        self,
        cluster: Cluster,
        observers: typing.Optional[ObserversFacts],
        clock: Clock,
        open_pod: typing.Callable[[RdmaPod], Shell],
        physical: typing.Mapping[str, typing.Mapping[str, str]],
    ) -> None:
        """Create a reader; no connection is opened yet.

        :param observers: observers of the run; None if the run has no observers
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param open_pod: function that returns a shell in a pod
        :param physical: RDMA device of each physical function, by node and PCI address
        """
        self._cluster, self._observers, self._clock = cluster, observers, clock
        self._open_pod, self._physical = open_pod, physical
        self._observer_shells: dict[str, Shell] = {}
        # an observer has one connection, which several rails of its node use
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        #: why a pod, an observer or a node is not asked again, so that no later pair waits for it
        self._mute: dict[tuple[str, str], str] = {}
        #: seconds that the readings of a node took beyond the usual ones
        self._delay: dict[str, float] = {}

    def measure(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, measure: typing.Callable[[], PairResult]
    ) -> PairResult:
        """Measure a pair, and return its result with the increase of the error counters of both HCAs during the
        measurement, or the reason why the counters are unknown. On InfiniBand, without RDMA, and after a measurement
        that failed, the result is returned without counters.

        :param client: pod that sends
        :param server: pod that receives
        :param measure: function without arguments that measures the pair and returns its result
        """
        if not carries_roce(fabric) or client.device is None or server.device is None:
            return measure()
        ends = (client, server)
        before, started = [self._read(end) for end in ends], self._clock()
        result = measure()
        if result.average_gbps is None:
            return result
        seconds = round(self._clock() - started, 1)
        errors: list[HcaErrors] = []
        for end, first in zip(ends, before):
            for place, (now, then) in enumerate(zip(self._read(end), first)):
                device = end.device if not place else self._find_physical(end)
                if isinstance(then, str) or isinstance(now, str):
                    why = then if isinstance(then, str) else str(now)
                    errors.append(HcaErrors(end.node, device or "", seconds, why=why[:_MOST_REASON]))
                else:
                    errors.append(compare_readings(end.node, device or "", then, now, seconds))
        return dataclasses.replace(result, errors=tuple({(item.node, item.device): item for item in errors}.values()))

    def close(self) -> None:
        """Close the connections to the observers."""
        for shell in self._observer_shells.values():
            shell.close()

    def _find_physical(self, end: RdmaPod) -> str:
        """Return the RDMA device of the physical function of a pod's virtual function. Return an empty text if the pod
        has no virtual function, if the device is unknown, or if the node has no observer.

        :param end: pod of one end of the pair
        """
        function = end.physical_function
        if function is None or function == end.pci or not has_observer(self._observers, end.node):
            return ""
        return self._physical.get(end.node, {}).get(function, "")

    def _read(self, end: RdmaPod) -> list[typing.Union[Readings, str]]:
        """Return the counters of the device of a pod and, as a second item, those of its physical function if an
        observer can read them. Counters that could not be read are replaced by the reason as text.

        :param end: pod of one end of the pair
        """
        until = self._clock() + READING_LIMIT
        found = [
            self._ask(
                end.node, ("pod", end.name), lambda: self._open_pod(end), read_counters((end.device or "",)), until
            )
        ]
        device = self._find_physical(end)
        if not device:
            return found
        whom = ("observer", end.node)
        with self._lock:
            lock = self._locks.setdefault(end.node, threading.Lock())
        if lock.acquire(timeout=max(0.0, until - self._clock())):
            try:
                command = read_counters((device,), netdevs=True)
                found.append(self._ask(end.node, whom, lambda: self._open_observer(end.node, until), command, until))
            finally:
                lock.release()
        else:
            found.append(self._mute_node(end.node, f"{_name_of(whom)} was busy for {READING_LIMIT} s"))
        return found

    def _mute_node(self, node: str, why: str) -> str:
        """Record that no more counters of a node are read in this run, and return the reason as text. A reason that was
        recorded before is kept.

        :param node: name of the node
        :param why: reason as text
        """
        return self._mute.setdefault(("node", node), f"{why}, so the counters of this node are not read any more")

    def _ask(
        self,
        node: str,
        whom: tuple[str, str],
        connect: typing.Callable[[], Shell],
        command: typing.Sequence[str],
        until: float,
    ) -> typing.Union[Readings, str]:
        """Return the counters that a command prints, or the reason as text why there are none. After a failure, the
        same pod or observer is not asked again.

        :param node: node of the pod or observer
        :param whom: kind of the source (``pod`` or ``observer``), and the name of the pod or of the node
        :param connect: function without arguments that returns a shell in the pod or observer
        :param command: words of the command that prints the counters
        :param until: monotonic time in seconds at which the time of the reading is over
        """
        for key in (("node", node), whom):
            if key in self._mute:
                return self._mute[key]
        since = self._clock()
        found: typing.Union[Readings, str]
        try:
            shell = connect()
            shell.start(command)
            ended = shell.wait(max(0.0, until - self._clock()))
            if ended.exit_code == 0:
                found = parse_counters(ended.output)
            else:
                found = f"{_name_of(whom)} did not report its counters within {READING_LIMIT} s"
        except ApiError as error:
            found = f"{_name_of(whom)} did not respond: {error}"
        except RdmaError as error:
            found = str(error)
        now = self._clock()
        with self._lock:
            self._delay[node] = self._delay.get(node, 0.0) + max(0.0, now - since - _AT_ONCE)
            delayed = self._delay[node] > _MOST_DELAY
        if isinstance(found, str):
            self._mute[whom] = found
            return self._mute_node(node, found) if now >= until else found
        if delayed:
            self._mute_node(node, f"the readings of counters on {node} took {_MOST_DELAY:.0f} s longer than usual")
        return found

    def _open_observer(self, node: str, until: float) -> Shell:
        """Return the connection to the observer of a node. It is opened by the first call and kept.

        :param node: name of the node
        :param until: monotonic time in seconds at which the time of the reading is over
        :raises RdmaError: the node has no ready observer
        :raises ApiError: the API server refuses the connection
        """
        shell = self._observer_shells.get(node)
        if shell is None or not shell.open:
            shell = open_observer(self._cluster, observer_of(self._observers, node), self._clock)
            self._observer_shells[node] = shell
            shell.wait(max(0.0, until - self._clock()))
        return shell


def _name_of(whom: tuple[str, str]) -> str:
    return f"the pod {whom[1]}" if whom[0] == "pod" else f"the observer of {whom[1]}"
