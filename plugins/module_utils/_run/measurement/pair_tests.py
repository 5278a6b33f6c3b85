# SPDX-License-Identifier: GPL-3.0-or-later

"""Run one test between two pods: ib_write_bw, or iperf3 if they have no RDMA device. Results are not evaluated here."""

from __future__ import annotations

import dataclasses
import functools
import math
import typing

from ..._analysis.schedule.measurements import (
    count_queue_pairs,
)
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.objects import CommandResult
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.pairs import PairResult
from ..._observe.kubernetes.shell import Clock
from ..._parse.pods import iperf3, perftest
from ..._parse.pods.failure import Failure, classify
from ..._render.measurement import commands
from .client_server import Judge, Note, find_failure, ignore_failure, line_of, run_pair
from .pods.measuring_pods import MeasuringPods

#: messages of each size that ib_write_bw sends without -n [perftest 4.4 to 26.04 perftest_parameters.h DEF_ITERS_WB]
DEFAULT_MESSAGES = 5000


class PairTests:
    """A client that runs single tests between two pods, each with a server and a client. Several threads may call it at
    the same time for different pairs.
    """

    def __init__(self, pods: MeasuringPods, clock: Clock) -> None:
        self._pods = pods
        self._clock = clock

    def measure_tcp(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult, end: float
    ) -> PairResult:
        """Run iperf3, and return the result of the pair with its figure, or with the failure.

        :param client: pod that sends
        :param server: pod that receives
        :param port: first of the TCP ports that are reserved for the pair
        :param result: result of the pair so far
        :param end: monotonic time in seconds at which the time of the pair is over
        """
        there = (server, commands.render_tcp_bandwidth(fabric, server.address or "", server.cpus, port))
        here = (
            client,
            commands.render_tcp_bandwidth(fabric, client.address or "", client.cpus, port, server.address or ""),
        )
        retried: list[Failure] = []
        ran, failure = self.run_both(
            there, here, commands.TCP_SERVER_UP, fabric.pods.limit_seconds, True, end, _find_tcp_failure, retried.append
        )
        result = note_retries(dataclasses.replace(result, commands=(line_of(ran),) if ran else ()), retried)
        if ran is None or failure is not None:
            return dataclasses.replace(
                result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else ""
            )
        try:
            report = iperf3.parse(ran.output)
        except iperf3.Iperf3Error as error:
            return dataclasses.replace(result, failure="no_measurement", evidence=str(error))
        if report.streams != commands.STREAMS:
            evidence = f"{report.streams} streams ran; {commands.STREAMS} streams were requested"
            return dataclasses.replace(result, failure="no_measurement", evidence=evidence)
        return dataclasses.replace(result, average_gbps=report.average_gbps, streams=report.streams)

    def measure_bandwidth(
        self, fabric: Fabric, client: RdmaPod, server: RdmaPod, port: int, result: PairResult, sweep: bool, until: float
    ) -> tuple[typing.Optional[perftest.PerftestReport], PairResult, typing.Optional[Failure]]:
        """Run ib_write_bw. Return three values: its report (None without a result), the result of the pair with the
        command line, and the failure (None if it succeeded).

        :param client: pod that sends
        :param server: pod that receives
        :param port: TCP port of the server
        :param result: result of the pair so far, whose flow label is used
        :param sweep: whether to measure all message sizes instead of one
        :param until: monotonic time in seconds at which the time of the pair is over
        """
        result = dataclasses.replace(
            result, queue_pairs=count_queue_pairs(fabric, (client.rate_gbps, server.rate_gbps))
        )
        how: dict[str, typing.Any] = {"flow_label": result.flow_label, "pairs": result.queue_pairs}
        how["traffic_class"] = result.traffic_class
        there, here = (
            (
                end,
                commands.write_bandwidth(
                    fabric, end.device or "", end.cpus, port, server.address or "", end is server, sweep, **how
                ),
            )
            for end in (server, client)
        )
        retried: list[Failure] = []
        ran, failure = self.run_both(
            there,
            here,
            commands.BANDWIDTH_SERVER_UP,
            fabric.pods.limit_seconds,
            True,
            until,
            note=retried.append,
        )
        result = note_retries(result, retried)
        if ran is None:
            return None, result, failure
        result = dataclasses.replace(result, commands=(*result.commands, line_of(ran)))
        if failure is not None:
            return None, result, failure
        try:
            report = perftest.parse(ran.output)
        except perftest.PerftestError as error:
            return None, result, Failure("no_measurement", str(error))
        other = report.contradict(client.device or "", result.queue_pairs or 1)
        if other:
            return None, result, Failure("other_run", other)
        wrong = find_contradiction(report, fabric, (client.rate_gbps, server.rate_gbps), sweep)
        return (None, result, Failure("no_measurement", wrong)) if wrong else (report, result, None)

    def run_both(
        self,
        there: tuple[RdmaPod, commands.Command],
        here: tuple[RdmaPod, commands.Command],
        up: str,
        limit: int,
        judge_server: bool,
        until: float,
        judge: typing.Optional[Judge] = None,
        note: Note = ignore_failure,
    ) -> tuple[typing.Optional[CommandResult], typing.Optional[Failure]]:
        """Run a server and its client in their pods. Return the client's result (None if it did not run), and the
        failure of either command or pod (None if both succeeded).

        :param there: pod and command of the server
        :param here: pod and command of the client
        :param up: text in the output of the server after which it listens
        :param limit: time limit of the client, in seconds
        :param judge_server: whether a nonzero exit code of the server is a failure
        :param until: monotonic time in seconds at which the time of the pair is over
        :param judge: function that gets the result of the client and returns its failure or None; None: the exit code
            decides
        :param note: is called with the failure of each client that is tried again
        """
        ends = (there[0], here[0])
        server, client = (functools.partial(self._pods.shell, end) for end in ends)

        def lost() -> str:
            gone = self._pods.gone(*ends)
            return gone.evidence if gone is not None else ""

        ran, failure = run_pair(
            (server, there[1]),
            (client, here[1]),
            up,
            limit,
            judge_server,
            judge or find_failure,
            lost,
            lambda: until - self._clock(),
            note,
        )
        if failure is not None:
            failure = self._pods.gone(*ends) or self._pods.fate(*ends) or failure
        return ran, failure


def note_retries(result: PairResult, failures: typing.Iterable[Failure]) -> PairResult:
    """Return the result of a pair with the kinds of the failures of clients that were tried again.

    :param result: result of the pair so far
    :param failures: the failures, in order
    """
    return dataclasses.replace(result, retried=(*result.retried, *(failure.kind for failure in failures)))


def find_contradiction(
    report: perftest.PerftestReport,
    fabric: Fabric,
    rates: typing.Iterable[typing.Optional[float]],
    sweep: bool = False,
) -> str:
    """Return why the number of messages of a measurement contradicts its duration or the requested number of messages.
    Return an empty text if it does not. For a fixed number of messages of one size, the result is always empty, because
    the check of the stage compares this number.

    :param report: report of ib_write_bw
    :param rates: rates of the ports of both ends in Gb/s; None if unknown
    :param sweep: whether all message sizes were measured, for which perftest has a fixed number of messages
    """
    if sweep:
        return report.contradict_messages(fabric.pods.iterations or DEFAULT_MESSAGES)
    if fabric.pods.iterations is not None:
        return ""
    if fabric.bandwidth.directions != "at_once":
        return report.contradict_duration(fabric.pods.seconds)
    most = min((rate or math.inf for rate in rates), default=math.inf)
    return report.contradict_duration(fabric.pods.seconds, most)


def _find_tcp_failure(result: CommandResult) -> typing.Optional[Failure]:
    """Return the failure of iperf3, or None if it succeeded. The exit code is not sufficient, because iperf3 may exit
    with 0 although its JSON contains an error.

    :param result: result of the client
    """
    failure, error = find_failure(result), iperf3.find_error(result.output)
    return (
        classify(result.exit_code or 1, result.timed_out, error)
        if error and (failure is None or failure.kind == "exit_code")
        else failure
    )
