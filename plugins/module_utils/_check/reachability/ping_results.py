# SPDX-License-Identifier: GPL-3.0-or-later

"""The ping results from one port to another, and the pairs of ports that were measured."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.paths.lids import Key
from ..._analysis.fleet.paths.partitions import Apart, explain_separation
from ..._model.base.phrases import format_clause
from ..._model.infiniband.fabric import Place
from ..._model.measurement.reachability import ObservedPings, Ping, PingPlan

#: whoever ends servers that are ours, or a node that is so slow, can be seen there
_AGAIN = (
    "Run journalctl -k on the node of the server. If it shows a program that ended ibping, stop that program. Then"
    " run stage reachability again."
)


class PingPort(typing.NamedTuple):
    """A port that takes part in the pings.

    :ivar node: name of the node
    :ivar device: RDMA device
    :ivar number: port number of the device
    :ivar rail: rail of the port
    :ivar lid: LID of the port; None if it has none
    :ivar place: position of the HCA in the topology
    :ivar pkeys: partition keys of the port
    """

    node: str
    device: str
    number: int
    rail: int
    lid: typing.Optional[int]
    place: Place
    pkeys: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.node, self.device, self.number

    def __str__(self) -> str:
        return f"{self.node} {self.device} port {self.number}"


@dataclasses.dataclass(frozen=True)
class Pair:
    """A ping from a client port to a server port, and its result.

    :ivar client: port that sends
    :ivar server: port that answers
    :ivar ping: result; None if the pair was planned and not measured, or the measurement proves nothing
    :ivar why: reason why ``ping`` is None
    :ivar remedy: remedy if ``ping`` is None; empty for the default, a ping by hand
    """

    client: PingPort
    server: PingPort
    ping: typing.Optional[Ping]
    why: str = ""
    remedy: str = ""

    @property
    def passed(self) -> bool:
        return self.ping is not None and self.ping.lost == 0 < self.ping.received <= self.ping.transmitted

    @property
    def apart(self) -> typing.Optional[Apart]:
        """Return how partition keys separate the two ports.

        Return None if the keys allow the connection, or if a packet came back, which proves the connection.
        """
        return (
            explain_separation(self.client.pkeys, self.server.pkeys)
            if self.ping is not None and self.ping.received == 0
            else None
        )


def find_pairs(
    ports: typing.Sequence[PingPort],
    plan: typing.Mapping[str, PingPlan],
    pings: typing.Mapping[str, ObservedPings],
    gone: typing.Collection[PingPort],
    strays: dict[PingPort, list[int]],
    claims: typing.Collection[Key] = (),
) -> list[Pair]:
    """Return the planned pairs of these ports, each with its measurement.

    :param ports: ports of the fabric that take part
    :param plan: planned servers and pings, by node
    :param pings: results of ibping, mode ping, or the error, by node
    :param gone: ports whose server ended too early, so that a loss does not indicate a bad cable
    :param strays: output: planned destination LIDs that no port of its rail has, by client port
    :param claims: ports that are not proven to have the LID that their nodes report, so that another port may have
        answered
    """
    # a port that is proven goes before one that tells the same LID
    servers = {
        (port.rail, port.lid): port
        for port in sorted(ports, key=lambda port: port.key in claims, reverse=True)
        if port.lid is not None
    }
    measured = {
        (name, ping.rdma_device, ping.port, ping.destination_lid): ping
        for name, observed in pings.items()
        if observed.value is not None and observed.error is None
        for ping in observed.value
    }
    result = []
    for client in ports:
        for task in plan.get(client.node, PingPlan()).clients:
            if (task.device, task.port) != (client.device, client.number):
                continue
            for lid in task.lids:
                server = servers.get((client.rail, lid))
                if server is None:
                    # the plan was made when another port had this LID, or the port was there
                    strays.setdefault(client, []).append(lid)
                    continue
                ping = measured.get((client.node, client.device, client.number, lid))
                if server.key in claims:
                    why = "the LID of the server is not verified, so a different port may have answered"
                    result.append(
                        Pair(
                            client,
                            server,
                            None,
                            why,
                            "Follow the remedy of the finding fabric.lids of the LID of the server, then run stages"
                            " fabric and reachability again.",
                        )
                    )
                elif ping is None:
                    observed = pings.get(client.node)
                    why = (
                        f"the node of the client returned no result: {format_clause(observed.error)}"
                        if observed and observed.error
                        else "the node of the client pinged other LIDs, so the LIDs changed after the pings were"
                        " planned"
                    )
                    remedy = (
                        "Follow the remedy of the finding reachability.node of the client's node, then run stage"
                        " reachability again."
                        if observed is None or observed.error
                        else "Run stages fabric and reachability again, so that the current LIDs are pinged."
                    )
                    result.append(Pair(client, server, None, why, remedy))
                elif ping.error is not None:
                    result.append(Pair(client, server, None, ping.error))
                else:
                    pair = Pair(client, server, ping)
                    ended = not pair.passed and server in gone
                    result.append(
                        Pair(
                            client,
                            server,
                            None,
                            "the ibping server had stopped before the pings were finished",
                            _AGAIN,
                        )
                        if ended
                        else pair
                    )
    return result
