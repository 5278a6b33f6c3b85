# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the InfiniBand pings between nodes: rounds of disjoint pairs of nodes on each rail, with each pair in both
directions.
"""

from __future__ import annotations

import typing

from ..._model.measurement.reachability import PingPlan, PingSchedule, PingTask, PortName
from .rounds import iterate_rounds

#: one destination when nothing is lost: a few runs of the client, each a fraction of a second
_USUAL_SECONDS = 1
#: until the servers of a node are ready, and the way to the node
_START_SECONDS = 30
#: that servers live on, since a start may take longer and they are ended when all is done; what must end by itself is
#: those of a run that was killed
_SPARE_SECONDS = 600


class Endpoint(typing.NamedTuple):
    """A port that takes part in the pings.

    :ivar device: RDMA device
    :ivar port: port number of the device
    :ivar lid: LID under which the other ports reach it
    """

    device: str
    port: int
    lid: int


#: rail of one fabric: node to its port there
Rail = typing.Mapping[str, Endpoint]


#: two nodes, in either order
Pair = tuple[str, str]


def plan(
    rails: typing.Iterable[Rail],
    most_rounds: typing.Optional[int] = None,
    more: typing.Callable[[int], typing.Iterable[Pair]] = lambda _number: (),
) -> dict[str, PingPlan]:
    """Return for each node the ports on which it runs a ping server, and the LIDs that it pings.

    Every port of a rail runs a server. A node pings its partners in the order of the rounds, so that about one other
    node pings it at any time.

    :param rails: rails of all fabrics. A rail with a single node has no pair
    :param most_rounds: maximum number of partners for each port; None for all
    :param more: function that returns additional pairs for a rail, by its position in ``rails``. It is called only if
        not every node is paired with every other one
    """
    ports: dict[str, list[PortName]] = {}
    tasks: dict[str, list[PingTask]] = {}
    partners: dict[int, list[list[int]]] = {}
    for number, rail in enumerate(rails):
        nodes = sorted(rail)
        # rails of one fabric mostly have the same nodes
        if len(nodes) not in partners:
            partners[len(nodes)] = _choose_partners(len(nodes), most_rounds)
        lids = [rail[node].lid for node in nodes]
        further = (
            {node: [] for node in nodes}
            if most_rounds is None or most_rounds >= len(nodes) - 1
            else _group_peers_by_node(nodes, more(number))
        )
        for node, others in zip(nodes, partners[len(nodes)]):
            end = rail[node]
            ports.setdefault(node, []).append(PortName(end.device, end.port))
            known = [lids[other] for other in others]
            known += [lid for lid in (rail[other].lid for other in further[node]) if lid not in known]
            if known:
                tasks.setdefault(node, []).append(PingTask(end.device, end.port, tuple(known)))
    return {node: PingPlan(tuple(names), tuple(tasks.get(node, ()))) for node, names in ports.items()}


def _group_peers_by_node(nodes: typing.Iterable[str], pairs: typing.Iterable[Pair]) -> dict[str, list[str]]:
    """Return the names of the partners of each node, by node.

    :param nodes: names of the nodes
    :param pairs: pairs of nodes, in either order
    """
    result: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other in dict.fromkeys((min(pair), max(pair)) for pair in pairs):
        result[one].append(other)
        result[other].append(one)
    return result


def _choose_partners(count: int, most_rounds: typing.Optional[int]) -> list[list[int]]:
    """Return for each port of a rail the numbers of its partners, in the order of the rounds. The ports are numbered
    from 0.

    :param count: number of ports
    :param most_rounds: maximum number of rounds; None for all
    """
    result: list[list[int]] = [[] for _end in range(count)]
    for pairs in iterate_rounds(range(count), most_rounds):
        for one, other in pairs:
            result[one].append(other)
            result[other].append(one)
    return result


def schedule(plans: typing.Mapping[str, PingPlan], parallel: int, limit_seconds: int, forks: int) -> PingSchedule:
    """Return the plans with the usual and the maximum duration of all pings in seconds, and with the time in seconds
    for which the servers must run.

    :param plans: ping servers and destinations of each node
    :param parallel: number of destinations that a node pings at the same time
    :param limit_seconds: time limit for one destination
    :param forks: number of nodes on which Ansible runs a task at the same time; the servers of the other nodes wait
        meanwhile
    """
    jobs = [sum(len(task.lids) for task in node.clients) for node in plans.values()]
    waves = -(-len(jobs) // forks)
    turns = -(-max(jobs, default=0) // parallel)
    most = waves * (_START_SECONDS + turns * limit_seconds)
    return PingSchedule(dict(plans), sum(jobs), waves * turns * _USUAL_SECONDS, most, most + _SPARE_SECONDS)
