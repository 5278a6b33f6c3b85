# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures a pair again, and reads the counters of the ports on its path before and after. The ports are read with
perfquery by the observer of the node from which the fabric was discovered. If the counters cannot be read, the result
contains the reason. Results are not evaluated here.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.measurements import SLACK
from ..._analysis.schedule.port_counters import Port
from ..._check.bandwidth.results import VantagePort
from ..._model.base.errors import RdmaError, wrap_unforeseen
from ..._model.infiniband.counters import PortCounters, PortGrowth, compute_growth
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.bandwidth import CountedPair
from ..._model.measurement.pairs import PairResult
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.infiniband import perfquery
from ..._render.measurement import counters
from .client_server import find_failure
from .observer_of import observer_of, open_observer
from .pods.inspection import PROBE_LIMIT

#: of a fabric that no node saw by tools that read counters
NO_COUNTERS = "no node can read the counters of the switches of this fabric; Ethernet switches cannot be queried"
#: of what keeps counters from being read
_MOST_CHARACTERS = 300
#: by LID of the switch or the port of an HCA, and number of the port
_Readings = dict[tuple[int, int], PortCounters]


class Counters:
    """A client that reads the counters of switch ports and HCA ports of one fabric with perfquery, from the port
    through which the fabric was discovered.
    """

    def __init__(
        self, cluster: Cluster, seat: VantagePort, observers: typing.Optional[ObserversFacts], clock: Clock
    ) -> None:
        """Create a client; no connection is opened yet.

        :param seat: node and port through which the fabric was discovered, and the LIDs of the fabric
        :param observers: observers of the run, one of which runs perfquery; None if the run has no observers
        """
        self._cluster, self._seat, self._observers, self._clock = cluster, seat, observers, clock
        self._shell: typing.Optional[Shell] = None

    def close(self) -> None:
        """Close the connection to the observer."""
        if self._shell is not None:
            self._shell.close()

    def measure(
        self, pair: PairResult, ports: typing.Sequence[Port], measure: typing.Callable[[], PairResult]
    ) -> CountedPair:
        """Read the counters, measure the pair, and read the counters again. Return the figure with the increase of the
        counters. If the counters cannot be read, the result has the reason instead; if the first reading fails, the
        pair is not measured.

        :param pair: earlier result of the pair
        :param ports: ports to read, each as GUID of the switch or HCA and port number. A port without a known LID is
            reported as unread
        :param measure: function without arguments that measures the pair again and returns its result
        """
        result = CountedPair(
            pair.fabric, pair.client, pair.server, pair.rail, self._seat.node, server_rail=pair.server_rail
        )
        asked: dict[int, list[int]] = {}
        for guid, number in ports:
            lid = self._seat.lids.get(guid)
            if lid:
                asked.setdefault(lid, []).append(number)
        try:
            started = self._clock()
            before, _words = self._read_counters(asked)
            again = measure()
            after, words = self._read_counters(asked)
        except RdmaError as error:
            return dataclasses.replace(result, why=str(error)[:_MOST_CHARACTERS])
        except Exception as error:
            # nobody foresaw what the pods or the observer printed: the other tests are still to be measured
            return dataclasses.replace(
                result, why=str(wrap_unforeseen(error, "the test with counters"))[:_MOST_CHARACTERS]
            )
        read = [self._compute_port_growth(port, before, after, words) for port in ports]
        why = (
            f"the measurement between the two readings failed: {again.failure}"
            if again.average_gbps is None or again.failure
            else ""
        )
        return dataclasses.replace(
            result,
            average_gbps=again.average_gbps,
            seconds=round(self._clock() - started, 1),
            ports=tuple(read),
            why=why,
        )

    def _compute_port_growth(
        self, port: Port, before: _Readings, after: _Readings, words: typing.Mapping[int, str]
    ) -> PortGrowth:
        guid, number = port
        lid = self._seat.lids.get(guid)
        if not lid:
            return compute_growth(guid, number, None, None, "the topology has no LID for this port")
        return compute_growth(guid, number, before.get((lid, number)), after.get((lid, number)), words.get(lid, ""))

    def _read_counters(self, asked: typing.Mapping[int, typing.Sequence[int]]) -> tuple[_Readings, dict[int, str]]:
        """Read the port counters. Return the counters of the ports that answered, by LID and port number, and the
        messages of the tool, by LID.

        :param asked: numbers of the ports to read, by LID
        :raises RdmaError: the observer cannot be used
        """
        shell = self._open()
        shell.start(counters.render_read(self._seat.device, self._seat.port, asked))
        answers = perfquery.list_answers(shell.wait(counters.LIMIT + SLACK).output)
        return {(lid, port.port): port for lid, (ports, _words) in answers.items() for port in ports}, {
            lid: words for lid, (_ports, words) in answers.items()
        }

    def _open(self) -> Shell:
        if self._shell is not None and self._shell.open:
            return self._shell
        self._shell = open_observer(self._cluster, observer_of(self._observers, self._seat.node), self._clock)
        failure = find_failure(self._shell.wait(PROBE_LIMIT))
        if failure is not None:
            raise RdmaError(f"the pod that inspects the node {self._seat.node} did not respond: {failure.evidence}")
        return self._shell
