# SPDX-License-Identifier: GPL-3.0-or-later

"""Who measures with whom in stage bandwidth: steps of pairs that share no end, and then the suspects with partners that passed."""

from __future__ import annotations

import dataclasses
import itertools
import typing

from .._model.bandwidth import RoundPlan
from .._model.intent import Bandwidth, Fabric
from .._model.profiles import rails as rails_of
from .rounds import rounds

#: of a node: its rail and its name
End = typing.Tuple[int, str]
Pair = typing.FrozenSet[End]
#: a suspect that fails with so many partners that pass with others is at fault itself
ENOUGH = 2
#: looks at the suspects after the rounds, at most
LOOKS = 3
#: of a pair beside its measurement: rping, connecting, warming up
_BESIDE_SECONDS = 5
#: of a ping, of a server's start, and by how much the limit outside a pod is longer than the one inside
PING_LIMIT, SERVER_LIMIT, SLACK = 30, 20, 20
#: in which the rounds of a fabric should be done, unless the intent says how many there are
STAGE_SECONDS = 4 * 3600


@dataclasses.dataclass(frozen=True)
class Task:
    """A pair of one rail: the client writes to the server."""

    rail: int
    client: str
    server: str

    @property
    def pair(self) -> Pair:
        return frozenset(((self.rail, self.client), (self.rail, self.server)))


Step = typing.Tuple[Task, ...]


def steps(rails: typing.Mapping[int, typing.Sequence[str]], wanted: Bandwidth) -> typing.Iterator[Step]:
    """All pairs, in steps of those that are measured at the same time.

    :param rails: names of the nodes that have a pod on each rail
    """
    each = [rounds(sorted(rails[rail]), wanted.rounds) for rail in sorted(rails)]
    numbers = sorted(rails)
    if wanted.rails == "serial":
        for rail, its in zip(numbers, each):
            for pairs in its:
                yield tuple(Task(rail, *pair) for pair in pairs)
    else:
        for together in itertools.zip_longest(*each, fillvalue=()):
            yield tuple(Task(rail, *pair) for rail, pairs in zip(numbers, together) for pair in pairs)


def round_plan(fabric: Fabric, nodes: int, parallel: int) -> RoundPlan:
    """How many rounds are measured on a fabric, and how long that takes; without a number in the intent as many as fit STAGE_SECONDS, one at least.

    :param nodes: that take part
    :param parallel: pairs that are measured at once, at most
    """
    wanted, pods, rails = fabric.bandwidth, fabric.pods, len(rails_of(fabric))
    together, after_each_other = (rails, 1) if wanted.rails == "parallel" else (1, rails)
    turns = after_each_other * -(-together * (nodes // 2) // parallel) * (2 if wanted.directions == "both" else 1)
    measurements = 2 if wanted.sweep else 1
    usual = turns * (_BESIDE_SECONDS + measurements * pods.seconds)
    most = turns * (min(PING_LIMIT, pods.limit_seconds) + measurements * pods.limit_seconds + (1 + measurements) * (SERVER_LIMIT + SLACK))
    everybody = max(0, nodes - 1 + nodes % 2) if nodes > 1 else 0
    chosen = wanted.rounds if wanted.rounds is not None else max(1, STAGE_SECONDS // usual) if usual else 0
    number = min(everybody, chosen)
    return RoundPlan(fabric.name, number, everybody, float(number * usual), float((number + LOOKS) * most))


def orders(task: Task, wanted: Bandwidth) -> typing.Tuple[Task, ...]:
    """The measurements of one pair, which run one after the other: both at once would share what each is asked to fill."""
    return (task, Task(task.rail, task.server, task.client)) if wanted.directions == "both" else (task,)


def again(passed: typing.AbstractSet[Pair], failed: typing.AbstractSet[Pair], wanted: Bandwidth) -> typing.Tuple[Step, ...]:
    """The next steps for the suspects: ends that failed and never passed. Each gets a partner of its rail that it has not met and that passed with
    another, until it passes with one or has failed with ``ENOUGH`` of them. Nothing, when no such partner is left: then no more can be told.
    """
    good = {end for pair in passed for end in pair}
    met: typing.Dict[End, typing.Set[End]] = {}
    for pair in passed | failed:
        for end in pair:
            met.setdefault(end, set()).update(pair - {end})
    suspects = sorted({end for pair in failed for end in pair} - good)
    tasks: typing.List[Task] = []
    taken: typing.Set[End] = set()
    for suspect in suspects:
        if len(met[suspect] & good) >= ENOUGH:
            continue
        partner = next((end for end in sorted(good - met[suspect] - taken) if end[0] == suspect[0]), None)
        if partner is not None:
            taken.add(partner)
            tasks.append(Task(suspect[0], suspect[1], partner[1]))
    if wanted.rails == "serial":
        return tuple(tuple(task for task in tasks if task.rail == rail) for rail in sorted({task.rail for task in tasks}))
    return (tuple(tasks),) if tasks else ()
