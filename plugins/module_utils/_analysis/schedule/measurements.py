# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the pairs that stage bandwidth measures: first steps of pairs that have no end in common, then the suspects with
partners that passed.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ..._model.intent.intent import Bandwidth, Fabric
from ..._model.intent.profiles import carries_rdma, carries_roce
from ..._model.intent.profiles import list_rails as rails_of
from ..._model.measurement.bandwidth import CoverPlan, RoundPlan
from ..._model.measurement.pairs import QUEUE_PAIRS, End, OrderedPair
from .coverage import compute_coverage
from .link_coverage_rounds import Cover, Turn, has_separate_rails
from .paths import PathTable
from .rounds import iterate_rounds, order_by_rate, turn_pairs
from .suspect_rounds import MOST_ROUNDS, MOST_TURNS
from .wider import widen_amount

Pair = frozenset[End]
#: a suspect that fails with so many partners that pass with others is at fault itself
ENOUGH = 2
#: looks at the suspects after the rounds, at most
LOOKS = 3
#: nodes of which everybody meets everybody, unless the intent says otherwise
FEW_NODES = 16
#: of a pair beside its measurement: rping, connecting, warming up
_BESIDE_SECONDS = 5
#: of a ping, of a server's start, and by how much the limit outside a pod is longer than the one inside
PING_LIMIT, SERVER_LIMIT, SLACK = 30, 20, 20
#: seconds in which one end of a pair on RoCE reports the error counters of its HCAs, before the measurement and again
#: after it: the limit, and the usual duration of both ends together
READING_LIMIT, _USUAL_READINGS = 10, 1
#: in which the rounds of a fabric should be done, unless the intent says how many there are
STAGE_SECONDS = 4 * 3600


@dataclasses.dataclass(frozen=True)
class Task(OrderedPair):
    """A pair to measure, in which the client writes to the server.

    :ivar rail: rail of the client
    :ivar client: name of the client's node
    :ivar server: name of the server's node
    :ivar server_rail: rail of the server if it differs from the client's, else None
    """

    rail: int
    client: str
    server: str
    server_rail: typing.Optional[int] = None

    @classmethod
    def between(cls, client: End, server: End) -> Task:
        """Return the task of two ends. Its ``server_rail`` is None if both ends are on the same rail."""
        return cls(*client, server[1], None if server[0] == client[0] else server[0])


Step = tuple[Task, ...]


def by_links(fabric: Fabric, nodes: int) -> bool:
    """Return whether the rounds are planned so that they use each link in both directions. Otherwise the rounds pair
    all nodes with each other.

    :param nodes: number of nodes that take part
    """
    wanted = fabric.bandwidth
    # both directions at once tell nothing of one of them
    return wanted.rounds == "auto" or (wanted.rounds is None and nodes > FEW_NODES and wanted.directions != "at_once")


def count_queue_pairs(fabric: Fabric, rates: typing.Iterable[typing.Optional[float]]) -> int:
    """Return the number of queue pairs for ib_write_bw: the value of the intent, else the number that the slower port
    needs. It is 1 if the rate of a port is unknown.

    :param rates: rates of the ports of both ends, in Gb/s
    """
    if fabric.pods.queue_pairs is not None:
        return fabric.pods.queue_pairs
    slowest = min((rate or 0.0 for rate in rates), default=0.0)
    return next((count for least, count in QUEUE_PAIRS if slowest >= least), 1)


def turn_steps(ways: PathTable, turn: Turn, wanted: Bandwidth) -> typing.Iterator[Step]:
    """Yield the steps of a turn. A step consists of tests that run at the same time, each in one direction: all tests
    of the turn if the rails are measured in parallel, else the tests of one rail.

    :param ways: paths between the ports
    :param turn: tests of the turn
    :param wanted: bandwidth settings of the intent
    """
    ends = [(end.rail, end.node) for end in ways.ends]
    tasks = [Task.between(ends[source], ends[target]) for source, target in turn]
    if wanted.rails == "parallel":
        yield tuple(tasks)
        return
    for rail in sorted({task.rail for task in tasks}):
        yield tuple(task for task in tasks if task.rail == rail)


def iterate_steps(
    rails: typing.Mapping[int, typing.Sequence[str]],
    wanted: Bandwidth,
    most_rounds: typing.Optional[int] = None,
    rates: typing.Optional[typing.Mapping[End, float]] = None,
) -> typing.Iterator[Step]:
    """Yield all pairs, in steps of pairs that are measured at the same time. The first round of a rail pairs nodes of
    equal rate, as far as there are such pairs.

    :param rails: names of the nodes that have a pod, by rail
    :param wanted: bandwidth settings of the intent
    :param most_rounds: maximum number of rounds; None for all
    :param rates: rates in Gb/s that the ends support, by rail and node; None if they do not count
    """
    each = [
        iterate_rounds(
            order_by_rate(
                sorted(rails[rail]), {node: rate for (at, node), rate in (rates or {}).items() if at == rail}
            ),
            most_rounds,
        )
        for rail in sorted(rails)
    ]
    if wanted.directions == "one":
        # an end that is always the client, or always the server, would never be measured in its other direction
        each = [turn_pairs(its) for its in each]
    numbers = sorted(rails)
    if wanted.rails == "serial":
        for rail, its in zip(numbers, each):
            for pairs in its:
                yield tuple(Task(rail, *pair) for pair in pairs)
    else:
        for together in itertools.zip_longest(*each, fillvalue=()):
            yield tuple(Task(rail, *pair) for rail, pairs in zip(numbers, together) for pair in pairs)


def cover_plan(fabric: Fabric, ways: PathTable, first: Cover, parallel: int) -> RoundPlan:
    """Return the plan of the rounds that use each link: their expected duration in seconds, and the number of links
    that they use.

    :param ways: paths between the ports
    :param first: rounds of tests that use each link in both directions
    :param parallel: maximum number of tests that run at the same time
    """
    turns = [step for item in first.rounds for turn in item.turns for step in turn_steps(ways, turn, fabric.bandwidth)]
    waves = sum(-(-len(step) // parallel) for step in turns)
    # of suspects there are no more than of ends
    after_each_other = 1 if fabric.bandwidth.rails == "parallel" else len(rails_of(fabric))
    later = MOST_TURNS * MOST_ROUNDS * after_each_other * max((-(-len(step) // parallel) for step in turns), default=1)
    usual, most = _compute_seconds_with_counters(fabric)
    most += compute_seconds_of_wider(fabric)[1]
    used = compute_coverage(ways, (test for item in first.rounds for test in item.tests))
    in_hosts = sum(
        ways.ends[source].node == ways.ends[target].node for item in first.rounds for source, target in item.tests
    )
    plan = CoverPlan(
        first.tests, used.usable, len(used.covered), len(used.unused), ways.spread, in_hosts, has_separate_rails(ways)
    )
    nodes = len({end.node for end in ways.ends})
    return RoundPlan(
        fabric.name,
        len(first.rounds),
        count_all_rounds(nodes),
        float(waves * usual),
        float((waves + later) * most),
        plan,
    )


def _compute_seconds(fabric: Fabric) -> tuple[int, int]:
    """Return the seconds of one measurement in one direction: the usual duration, and the maximum if each command
    reaches its time limit.
    """
    pods, measurements = fabric.pods, 2 if fabric.bandwidth.sweep else 1
    usual = _BESIDE_SECONDS + measurements * pods.seconds
    return usual, min(PING_LIMIT, pods.limit_seconds) + measurements * pods.limit_seconds + (1 + measurements) * (
        SERVER_LIMIT + SLACK
    )


def compute_seconds_of_counters(fabric: Fabric) -> tuple[int, int]:
    """Return the usual and the maximum duration in seconds of the readings of error counters around one measurement in
    one direction. Both are 0 on a fabric on which no counters are read around a pair.
    """
    if not carries_roce(fabric):
        return 0, 0
    return _USUAL_READINGS, 4 * READING_LIMIT


def _compute_seconds_with_counters(fabric: Fabric) -> tuple[int, int]:
    """Return the usual and the maximum seconds of one measurement in one direction with its readings of counters."""
    (usual, most), (usual_reading, most_reading) = _compute_seconds(fabric), compute_seconds_of_counters(fabric)
    return usual + usual_reading, most + most_reading


def compute_seconds_of_wider(fabric: Fabric) -> tuple[int, int]:
    """Return the usual and the maximum duration in seconds of the repetition of a measurement with more queue pairs.
    Both are 0 if the fabric has no RDMA, or if no larger measurement is possible.
    """
    pods = fabric.pods
    if not carries_rdma(fabric) or widen_amount(fabric, pods.queue_pairs) is None:
        return 0, 0
    return _BESIDE_SECONDS + pods.seconds, pods.limit_seconds + SERVER_LIMIT + SLACK


def compute_most_seconds_of_a_pair(fabric: Fabric) -> int:
    """Return the maximum seconds of one measurement in one direction, if each command reaches its time limit."""
    return _compute_seconds(fabric)[1]


def compute_usual_seconds_of_a_pair(fabric: Fabric) -> int:
    """Return the seconds that one measurement in one direction takes without failures."""
    return _compute_seconds(fabric)[0]


def count_all_rounds(nodes: int) -> int:
    """Return the number of rounds that are needed to pair each node with every other node once.

    :param nodes: number of nodes
    """
    return max(0, nodes - 1 + nodes % 2) if nodes > 1 else 0


def round_plan(fabric: Fabric, nodes: int, parallel: int, why: str = "") -> RoundPlan:
    """Return the number of rounds in which nodes are paired with each other on a fabric, and their duration in seconds.
    The intent sets the number, or requests all rounds. Otherwise it is the number that fits into STAGE_SECONDS, at
    least 1.

    :param nodes: number of nodes that take part
    :param parallel: maximum number of pairs that are measured at the same time
    :param why: why the rounds cannot use each link, if the intent requests that
    """
    wanted, rails = fabric.bandwidth, len(rails_of(fabric))
    together, after_each_other = (rails, 1) if wanted.rails == "parallel" else (1, rails)
    turns = after_each_other * -(-together * (nodes // 2) // parallel) * (2 if wanted.directions == "both" else 1)
    usual, most = _compute_seconds_with_counters(fabric)
    usual, most = turns * usual, turns * (most + compute_seconds_of_wider(fabric)[1])
    all_rounds = count_all_rounds(nodes)
    if wanted.rounds == "all":
        chosen = all_rounds
    elif isinstance(wanted.rounds, int):
        chosen = wanted.rounds
    else:
        chosen = max(1, STAGE_SECONDS // usual) if usual else 0
    number = min(all_rounds, chosen)
    return RoundPlan(fabric.name, number, all_rounds, float(number * usual), float((number + LOOKS) * most), None, why)


def list_orders(task: Task, wanted: Bandwidth) -> tuple[Task, ...]:
    """Return the measurements of one pair: in one direction, or in both if the intent requests that. The two directions
    are measured one after the other, because at the same time each would slow down the other.

    :param task: pair to be measured, with client and server
    :param wanted: bandwidth settings of the intent
    """
    return (task, Task.between(task.server_end, task.client_end)) if wanted.directions == "both" else (task,)


def plan_retests(
    passed: typing.AbstractSet[Pair], failed: typing.AbstractSet[Pair], wanted: Bandwidth
) -> tuple[Step, ...]:
    """Return the next steps for the suspects, which are ends that failed and never passed.

    Each suspect gets a partner of its rail with which it was not measured yet, and which passed with another end. It
    gets no more partners after it has passed, or after it has failed with ``ENOUGH`` such partners. The result is empty
    if there is no further partner.

    :param passed: pairs that passed
    :param failed: pairs that failed
    :param wanted: bandwidth settings of the intent
    """
    good = {end for pair in passed for end in pair}
    met: dict[End, set[End]] = {}
    for pair in passed | failed:
        for end in pair:
            met.setdefault(end, set()).update(pair - {end})
    suspects = sorted({end for pair in failed for end in pair} - good)
    tasks: list[Task] = []
    taken: set[End] = set()
    for suspect in suspects:
        if len(met[suspect] & good) >= ENOUGH:
            continue
        partner = next((end for end in sorted(good - met[suspect] - taken) if end[0] == suspect[0]), None)
        if partner is not None:
            taken.add(partner)
            tasks.append(Task(suspect[0], suspect[1], partner[1]))
    if wanted.rails == "serial":
        return tuple(
            tuple(task for task in tasks if task.rail == rail) for rail in sorted({task.rail for task in tasks})
        )
    return (tuple(tasks),) if tasks else ()
