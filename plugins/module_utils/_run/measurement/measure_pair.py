# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures one pair of pods: rping, then ib_write_bw, then its sweep over all message sizes; or iperf3 if the pods have
no RDMA device.

A failure is stored with its kind and the line of output that shows it. Results are not evaluated here.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ..._analysis.schedule.flows import compute_flow_label
from ..._analysis.schedule.measurements import (
    PING_LIMIT,
    SERVER_LIMIT,
    SLACK,
    Task,
    compute_most_seconds_of_a_pair,
    compute_seconds_of_wider,
)
from ..._analysis.schedule.wider import Amount, widen_fabric
from ..._model.base.errors import wrap_unforeseen
from ..._model.base.operand import OperandError
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.objects import CommandResult
from ..._model.measurement.bandwidth import PairLatency, RdmaPod
from ..._model.measurement.pairs import PairResult, SweepRow, Wider
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock
from ..._parse.pods import perftest, rping
from ..._parse.pods.failure import LOST, Failure
from ..._render.measurement import commands
from .client_server import find_failure, line_of
from .measuring_plan import Say
from .packet_options import PacketOptions
from .pair_tests import PairTests, note_retries
from .pods.measuring_pods import MeasuringPods

#: how often a pair is tried whose measurement got lost on the way although its pods live
ATTEMPTS = 3
#: each measurement takes the next ones: ping, bandwidth, sweep. Pods have ports of their own, so that few are enough
#: for all
FIRST_PORT, PORTS, PORT_BLOCKS = 18600, 3, 3000


class PairMeasurement:
    """A client that measures pairs of running pods. Several threads may call it at the same time for different
    pairs.
    """

    def __init__(self, pods: MeasuringPods, clock: Clock, say: Say) -> None:
        self._pods = pods
        self._clock = clock
        self._say = say
        self._tests = PairTests(pods, clock)
        self._blocks = itertools.count()
        self.packets = PacketOptions(pods)

    def measure(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, flow: int) -> PairResult:
        """Measure a pair, and return the result, which may be a failure. If a connection is lost although the pods
        still run, repeat the measurement, at most ``ATTEMPTS`` times in total and within the time of the pair.

        :param task: nodes and rails of the pair
        :param client: pod that sends
        :param server: pod that receives
        :param flow: number from which the flow label of the pair's packets is computed, if both pods support flow
            labels
        :raises ApiError: the API server cannot be reached
        :raises LeaseLost: another run holds the Lease
        """
        start = self._clock()
        client_rail = f" rail {task.rail}" if task.between_rails else ""
        rail = f" rail {server.rail}" if fabric.select.hcas_per_node > 1 else ""
        ran: tuple[str, ...] = ()
        retried: tuple[str, ...] = ()
        # all attempts together have the time that the plan counts: no end takes more of it from the pairs after it
        end = start + compute_most_seconds_of_a_pair(fabric)
        earlier: typing.Optional[PairResult] = None
        for left in reversed(range(ATTEMPTS)):
            # an earlier attempt's port may not be free yet
            result = self._guard_attempt(fabric, task, client, server, flow, end)
            ran += result.commands
            retried += result.retried
            if earlier is not None and result.failure and self._clock() >= end:
                # that the time of the pair was over says less than what took it
                result = earlier
            figure = (
                f"{result.average_gbps:.4f} Gb/s"
                if result.average_gbps is not None
                else f"{result.failure}: {result.evidence}"
            )
            how = "TCP" if result.transport == "TCP" else f"{result.pings or 0} pings"
            again = (
                bool(left)
                and not LOST.isdisjoint((result.failure, result.ping_failure))
                and self._clock() + fabric.pods.seconds < end
            )
            self._say(
                f"{fabric.name} {client.node}{client_rail} -> {server.node}{rail}: {how},"
                f" {figure}{'; the test is repeated' if again else ''}"
            )
            if not again:
                break
            earlier = result
            retried += (result.ping_failure or result.failure,)
            if "exec_lost" in (result.failure, result.ping_failure):
                since = self._clock()
                self._pods.await_api()
                # an API server that is away is no fault of the pair
                end += self._clock() - since
        return dataclasses.replace(result, commands=ran, retried=retried, seconds=round(self._clock() - start, 1))

    def measure_wider(
        self, fabric: Fabric, pair: PairResult, client: RdmaPod, server: RdmaPod, amount: Amount
    ) -> PairResult:
        """Measure a pair a second time with more queue pairs, at most ``ATTEMPTS`` times if a connection is lost.
        Return the result of the first measurement, completed with the second figure, or with the reason why the second
        measurement has no figure.

        :param pair: result of the first measurement
        :param client: pod that sends
        :param server: pod that receives
        :param amount: number of queue pairs, and message size
        :raises ApiError: the API server cannot be reached
        :raises LeaseLost: another run holds the Lease
        """
        found, wide = Wider(amount.queue_pairs, amount.message_bytes), widen_fabric(fabric, amount)
        # all attempts together have the time that the plan counts for a second figure
        end = self._clock() + compute_seconds_of_wider(fabric)[1]
        for left in reversed(range(ATTEMPTS)):
            fresh = dataclasses.replace(pair, commands=())
            try:
                report, fresh, failure = self._tests.measure_bandwidth(
                    wide, client, server, self._take_ports() + 1, fresh, False, end
                )
                why = (
                    f"{failure.kind}: {failure.evidence}"
                    if failure is not None
                    else ""
                    if report is not None
                    else "the test did not run"
                )
            except (ApiError, LeaseLost):
                raise
            except Exception as error:
                # unforeseen: the other pairs are still to be measured
                report, failure, why = None, None, str(wrap_unforeseen(error, f"{client.node} -> {server.node}"))
            found = dataclasses.replace(found, commands=(*found.commands, *fresh.commands), why=why[:300])
            if failure is None or failure.kind not in LOST or not left or self._clock() + fabric.pods.seconds >= end:
                break
            if failure.kind == "exec_lost":
                since = self._clock()
                self._pods.await_api()
                # an API server that is away is no fault of the pair
                end += self._clock() - since
        if report is not None and not found.why:
            row = report.largest
            found = Wider(
                amount.queue_pairs,
                row.message_bytes,
                row.average_gbps,
                row.peak_gbps,
                row.iterations,
                commands=found.commands,
            )
        figure = f"{found.average_gbps:.4f} Gb/s" if found.average_gbps is not None else found.why
        self._say(
            f"{fabric.name} {client.node} -> {server.node}, repeated with {amount.queue_pairs} queue pairs: {figure}"
        )
        return dataclasses.replace(pair, wider=found)

    def measure_latency(self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod) -> PairLatency:
        """Run ib_write_lat once between two pods. Return the typical and the 99th percentile latency in microseconds,
        or the failure.

        :param task: nodes and rails of the pair
        :param client: pod that runs the client
        :param server: pod that runs the server
        :raises ApiError: the API server cannot be reached
        :raises LeaseLost: another run holds the Lease
        """
        result = PairLatency(fabric.name, client.node, server.node, task.rail, server_rail=task.server_rail)
        port, address = self._take_ports(), server.address or ""
        try:
            there, here = (
                (
                    end,
                    commands.write_latency(
                        fabric,
                        end.device or "",
                        end.cpus,
                        port,
                        address,
                        end is server,
                        self.packets.choose_class(fabric, client, server),
                    ),
                )
                for end in (server, client)
            )
            until = self._clock() + fabric.pods.limit_seconds + SERVER_LIMIT + SLACK
            ran, failure = self._tests.run_both(
                there, here, commands.BANDWIDTH_SERVER_UP, fabric.pods.limit_seconds, True, until
            )
            result = dataclasses.replace(result, commands=(line_of(ran),) if ran else ())
            if ran is None or failure is not None:
                kind, evidence = (failure.kind, failure.evidence) if failure else ("not_run", "")
                result = dataclasses.replace(result, failure=kind, evidence=evidence)
            else:
                row = perftest.parse_latency(ran.output)
                result = dataclasses.replace(result, typical_us=row.typical_us, p99_us=row.p99_us)
        except (ApiError, LeaseLost):
            raise
        except OperandError as error:
            result = dataclasses.replace(result, failure="not_run", evidence=str(error))
        except perftest.PerftestError as error:
            result = dataclasses.replace(result, failure="no_measurement", evidence=str(error))
        except Exception as error:
            evidence = str(wrap_unforeseen(error, f"{client.node} -> {server.node}"))
            result = dataclasses.replace(result, failure="no_measurement", evidence=evidence)
        found = f"{result.typical_us} us, p99 {result.p99_us} us" if not result.failure else result.evidence
        self._say(f"{fabric.name} {client.node} -> {server.node}, latency: {found}")
        return result

    def _take_ports(self) -> int:
        """Reserve the next ``PORTS`` TCP ports, and return the first of them."""
        return FIRST_PORT + PORTS * (next(self._blocks) % PORT_BLOCKS)

    def _guard_attempt(
        self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, flow: int, end: float
    ) -> PairResult:
        """Make one attempt to measure a pair, and return the result. An unexpected exception becomes the failure of
        this pair, so that the other pairs are still measured.

        :param task: nodes and rails of the pair
        :param client: pod that sends
        :param server: pod that receives
        :param flow: number from which the flow label of the pair's packets is computed
        :param end: monotonic time in seconds at which the time of the pair is over
        :raises ApiError: the API server cannot be reached
        :raises LeaseLost: another run holds the Lease
        """
        try:
            return self._attempt_pair(fabric, task, client, server, self._take_ports(), flow, end)
        except (ApiError, LeaseLost):
            # these are no fault of the pair
            raise
        except OperandError as error:
            failure, evidence = "not_run", str(error)
        except Exception as error:
            failure, evidence = "no_measurement", str(wrap_unforeseen(error, f"{client.node} -> {server.node}"))
        return fail_pair(fabric, task, failure, evidence)

    def _attempt_pair(
        self, fabric: Fabric, task: Task, client: RdmaPod, server: RdmaPod, port: int, flow: int, end: float
    ) -> PairResult:
        """Make one attempt to measure a pair, and return the result: rping, then ib_write_bw, then the sweep if the
        intent requests it. A failure ends the attempt. Without RDMA devices, run only iperf3.

        :param task: nodes and rails of the pair
        :param client: pod that sends
        :param server: pod that receives
        :param port: first of the ``PORTS`` TCP ports that are reserved for the pair
        :param flow: number from which the flow label of the pair's packets is computed
        :param end: monotonic time in seconds at which the time of the pair is over
        """
        result = PairResult(fabric.name, client.node, server.node, rail=task.rail, server_rail=task.server_rail)
        if client.device is None or server.device is None:
            return self._tests.measure_tcp(
                fabric,
                client,
                server,
                port,
                dataclasses.replace(result, transport="TCP", streams=commands.STREAMS),
                end,
            )
        if self.packets.are_labelled(client, server):
            result = dataclasses.replace(
                result, flow_label=compute_flow_label(task.rail, client.node, server.node, flow)
            )
        result = dataclasses.replace(result, traffic_class=self.packets.choose_class(fabric, client, server))
        gone = self._pods.gone(client, server)
        if gone is not None:
            return dataclasses.replace(
                result, ping_failure=gone.kind, ping_evidence=gone.evidence, failure="ping", evidence=gone.evidence
            )
        address = server.address or ""
        limit = min(PING_LIMIT, fabric.pods.limit_seconds)
        there, here = (
            (server, commands.render_ping_server(address, port, limit)),
            (client, commands.render_ping_client(address, port, limit)),
        )
        retried: list[Failure] = []
        ran, failure = self._tests.run_both(
            there, here, commands.PING_SERVER_UP, limit, False, end, _find_ping_failure, retried.append
        )
        result = note_retries(result, retried)
        result = dataclasses.replace(
            result, pings=rping.parse(ran.output).count if ran else None, commands=(line_of(ran),) if ran else ()
        )
        if failure is not None:
            return dataclasses.replace(
                result,
                ping_failure=failure.kind,
                ping_evidence=failure.evidence,
                failure="ping",
                evidence=failure.evidence,
            )
        report, result, failure = self._tests.measure_bandwidth(fabric, client, server, port + 1, result, False, end)
        if report is None or failure is not None:
            return dataclasses.replace(
                result, failure=failure.kind if failure else "not_run", evidence=failure.evidence if failure else ""
            )
        row = report.largest
        result = dataclasses.replace(
            result,
            average_gbps=row.average_gbps,
            peak_gbps=row.peak_gbps,
            message_bytes=row.message_bytes,
            iterations=row.iterations,
            packet_bytes=report.packet_bytes,
            gid_index=report.gid_index,
        )
        if not fabric.bandwidth.sweep:
            return result
        report, result, failure = self._tests.measure_bandwidth(fabric, client, server, port + 2, result, True, end)
        if report is None or failure is not None:
            return dataclasses.replace(
                result, sweep_failure=f"{failure.kind}: {failure.evidence}" if failure else "the test did not run"
            )
        return dataclasses.replace(
            result, sweep=tuple(SweepRow(row.message_bytes, row.average_gbps) for row in report.rows)
        )


def _find_ping_failure(result: CommandResult) -> typing.Optional[Failure]:
    """Return the failure of rping, or None if all round trips were made. The exit code is not sufficient, because the
    client of rping exits with 0 even if the server left before all round trips were made.

    :param result: result of the client
    """
    return find_failure(result) or rping.detect_shortfall(result.output, commands.PINGS)


def fail_pair(fabric: Fabric, task: Task, failure: str, evidence: str) -> PairResult:
    """Return the result of a pair that could not be measured.

    :param task: nodes and rails of the pair
    :param failure: kind of the failure, such as ``not_run``
    :param evidence: line of output or message that shows the failure
    """
    return PairResult(
        fabric.name,
        task.client,
        task.server,
        rail=task.rail,
        server_rail=task.server_rail,
        failure=failure,
        evidence=evidence,
    )
