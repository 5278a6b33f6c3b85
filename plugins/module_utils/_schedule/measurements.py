# SPDX-License-Identifier: GPL-3.0-or-later

"""Who measures with whom in stage bandwidth: steps of pairs that share no end, and then the suspects with partners that passed."""

from __future__ import annotations

import dataclasses
import itertools
import typing

from .._model.intent import Bandwidth
from .rounds import rounds

#: of a node: its rail and its name
End = typing.Tuple[int, str]
Pair = typing.FrozenSet[End]
#: a suspect that fails with so many partners that pass with others is at fault itself
ENOUGH = 2


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
