# SPDX-License-Identifier: GPL-3.0-or-later

"""An end that fails late, again and again: a pair takes no longer than the plan counts for it, and one that fails at
once is still tried again."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.measurements import (
    Task,
    compute_most_seconds_of_a_pair,
    compute_seconds_of_wider,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.wider import widen_amount
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import RdmaPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.pairs import PairResult
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pair import PairMeasurement

FABRIC = Fabric(
    "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
)
PINGS = CommandResult("rping", 0, "".join(f"ping data: rdma-ping-{number}: x\n" for number in range(5)))
LOST = CommandResult("ib_write_bw", None, "", error="the connection to the pod broke: gone")
REJECTED = CommandResult("rping", 1, "RDMA_CM_EVENT_REJECTED")
REFUSED = CommandResult("ib_write_bw", 1, "Couldn't connect to 10.0.0.1:18601")
#: of two ends that settle after the last failure, at most
SETTLE = 5.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Server:
    """It runs as long as it likes."""

    open = running = True

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def start(self, command: typing.Sequence[str]) -> None:
        self.command = command

    def wait_for(self, text: str, seconds: float) -> bool:
        # what it never prints is awaited to the end
        self.clock.now += seconds if text == "\0" else 0
        return text != "\0"

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        return CommandResult("server", 0, "")


class Client(Server):
    """:ivar takes: seconds until it fails; None: as many as it is given"""

    def __init__(
        self, clock: Clock, ping: CommandResult, write: CommandResult, takes: typing.Optional[float] = None
    ) -> None:
        super().__init__(clock)
        self.ping, self.write, self.takes, self.started = ping, write, takes, 0

    def start(self, command: typing.Sequence[str]) -> None:
        super().start(command)
        self.started += 1

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        self.clock.now += seconds if self.takes is None else min(seconds, self.takes)
        return self.ping if "rping" in self.command else self.write


class Pods:
    def __init__(self, client: Client, server: Server, away: float = 0.0) -> None:
        self.shells, self.away, self.clock = {"c": client, "s": server}, away, client.clock

    def shell(self, item: RdmaPod) -> Server:
        return self.shells[item.name]

    def gone(self, *_pods: RdmaPod) -> None:
        return None

    def fate(self, *_pods: RdmaPod) -> None:
        return None

    def await_api(self) -> None:
        self.clock.now += self.away


CLIENT, SERVER = (
    RdmaPod(FABRIC.name, node, name, "n", device="mlx5_0", address=f"10.0.0.{place}")
    for place, (node, name) in enumerate((("a", "c"), ("b", "s")), 1)
)


def measurement_of(client: Client, away: float) -> PairMeasurement:
    clock = client.clock
    return PairMeasurement(typing.cast("typing.Any", Pods(client, Server(clock), away)), clock, lambda _line: None)


def measure(client: Client, away: float = 0.0) -> PairResult:
    return measurement_of(client, away).measure(FABRIC, Task.between((0, "a"), (0, "b")), CLIENT, SERVER, 0)


def measure_once_more(client: Client, away: float = 0.0) -> PairResult:
    amount = widen_amount(FABRIC, 1)
    assert amount is not None
    pair = PairResult(
        FABRIC.name, "a", "b", average_gbps=1.0, transport="RDMA", queue_pairs=1, message_bytes=65536, iterations=1000
    )
    return measurement_of(client, away).measure_wider(FABRIC, pair, CLIENT, SERVER, amount)


@pytest.mark.parametrize(
    ("ping", "write", "kinds"),
    [
        (PINGS, LOST, ("", "exec_lost")),
        (REJECTED, REFUSED, ("not_listening", "ping")),
        (PINGS, REFUSED, ("", "not_listening")),
    ],
    ids=["a client that drops its connection late", "a server that rejects late", "a server that refuses late"],
)
def test_a_pair_takes_no_longer_than_the_plan_counts(
    ping: CommandResult, write: CommandResult, kinds: tuple[str, str]
) -> None:
    clock = Clock()
    result = measure(Client(clock, ping, write))
    assert clock.now <= compute_most_seconds_of_a_pair(FABRIC) + SETTLE
    assert (result.ping_failure or "", result.failure) == kinds
    assert result.average_gbps is None


@pytest.mark.parametrize(
    ("pods", "directions", "rate", "kind"),
    [
        ({}, "one", None, "no_measurement"),
        # of both directions, the messages are those of one and the average is that of both
        ({}, "at_once", 200.0, "no_measurement"),
        ({}, "at_once", 400.0, ""),
        ({}, "at_once", None, ""),
        ({"iterations": 5}, "one", None, ""),
    ],
)
def test_few_messages_are_no_measurement_of_ten_seconds(
    pods: dict[str, typing.Any],
    directions: typing.Literal["one", "at_once"],
    rate: typing.Optional[float],
    kind: str,
) -> None:
    table = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        " 1048576     5      0.00      390.00      0.05\n"
    )
    fabric = dataclasses.replace(
        FABRIC,
        pods=dataclasses.replace(FABRIC.pods, **pods),
        bandwidth=dataclasses.replace(FABRIC.bandwidth, directions=directions),
    )
    client = Client(Clock(), PINGS, CommandResult("ib_write_bw", 0, table), takes=2.0)
    task = Task.between((0, "a"), (0, "b"))
    ends = [dataclasses.replace(end, rate_gbps=rate) for end in (CLIENT, SERVER)]
    result = measurement_of(client, 0.0).measure(fabric, task, ends[0], ends[1], 0)
    assert (result.failure, result.average_gbps) == (kind, None if kind else 390.0)
    assert not kind or f"take {'0.00022' if rate else '0.00011'} s" in result.evidence


def test_a_connection_that_breaks_at_once_is_tried_again() -> None:
    client = Client(Clock(), PINGS, LOST, takes=2.0)
    assert measure(client).failure == "exec_lost"
    assert client.started == 6, "rping and ib_write_bw, three times"


def test_an_api_server_that_is_away_costs_the_pair_none_of_its_time() -> None:
    client = Client(Clock(), PINGS, LOST, takes=2.0)
    assert measure(client, away=290.0).failure == "exec_lost"
    assert client.started == 6


@pytest.mark.parametrize(("write", "kind"), [(LOST, "exec_lost"), (REFUSED, "not_listening")])
def test_a_second_measurement_takes_no_longer_than_the_plan_counts(write: CommandResult, kind: str) -> None:
    clock = Clock()
    found = measure_once_more(Client(clock, PINGS, write)).wider
    assert clock.now <= compute_seconds_of_wider(FABRIC)[1] + SETTLE
    assert found is not None and found.average_gbps is None and found.why.startswith(kind)


def test_a_second_measurement_that_breaks_at_once_is_tried_again() -> None:
    client = Client(Clock(), PINGS, LOST, takes=2.0)
    found = measure_once_more(client, away=290.0).wider
    assert found is not None and found.why.startswith("exec_lost")
    assert client.started == 3
