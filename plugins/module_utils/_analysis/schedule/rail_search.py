# SPDX-License-Identifier: GPL-3.0-or-later

"""The search on one rail: which port, leaf or uplink of it makes a collective slow.

A collective is as fast as the slowest of its members and of the links between them. So a group that is slow has a slow
port, or its leaves are slow to each other, and a group that is fast clears all of its members and the way between its
leaves. Nobody is accused without somebody beside it who is known to be fast, and nobody by one test alone: noise slows
a test down, and nothing makes one faster than its links. At the end the group without what was named is tested again.
"""

from __future__ import annotations

import dataclasses
import typing

from .rounds import rounds

#: part: members of a slow group; single: one node beside a fast one of its leaf; abroad: beside a fast one of another
#: leaf, which accuses nobody; pair: two of a leaf, where nobody is known to be fast; leaf: a leaf beside a node of
#: another one; leaves: two leaves, to find some that are fast to each other
Kind = typing.Literal["part", "single", "abroad", "pair", "leaf", "leaves"]
#: slow parts without a fast one, in a leaf and on a rail, from which on pairs are tried instead of smaller and smaller
#: parts
OF_LEAF, OF_RAIL = 4, 8
#: pairs, all of them slow, after which the leaf or the rail is named
PAIRS = 16
#: slow tests by which one is named
TWICE = 2
#: rounds in which leaves are tried with each other
MEETINGS = 3


@dataclasses.dataclass(frozen=True)
class RailTrial:
    """One collective over one rail.

    :ivar nodes: that take part, two at least
    :ivar suspects: those of them that it is about; the others are known to be fast
    """

    rail: int
    kind: Kind
    nodes: tuple[str, ...]
    suspects: tuple[str, ...]


@dataclasses.dataclass(eq=False)
class _Part:
    """Members of a slow group that are tested together.

    :ivar fast: None as long as that is not known
    :ivar again: it was slow although both of its halves are fast, so that it is tested once more
    """

    nodes: tuple[str, ...]
    parent: typing.Optional[_Part] = None
    halves: tuple[_Part, ...] = ()
    fast: typing.Optional[bool] = None
    again: bool = False


@dataclasses.dataclass(eq=False)
class _Job:
    """A test that waits: for its turn, or for somebody to be tested with.

    :ivar leaf: that all of its suspects are in; empty where they are in several
    :ivar slow: how often it was slow
    :ivar silent: once it gave no figure
    :ivar used: nodes and leaves that stood beside it
    """

    kind: Kind
    suspects: tuple[str, ...]
    leaf: str = ""
    part: typing.Optional[_Part] = None
    slow: int = 0
    silent: bool = False
    used: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(eq=False)
class _Sample:
    """Pairs that are tried.

    :ivar pending: of which there is no result
    :ivar open: nobody was fast so far
    """

    members: tuple[str, ...]
    pending: int
    open: bool = True


class RailSearch:
    """The search on one rail. Its tests of a round have no node in common."""

    def __init__(
        self, rail: int, leaf_of: typing.Mapping[str, str], group: typing.Sequence[str], fast: typing.Iterable[str] = ()
    ) -> None:
        """:param leaf_of: the leaf of each node, also of those that are not in the group
        :param group: that is slow, or of which nothing is known
        :param fast: nodes that are known to be fast on this rail, in the group or outside of it
        """
        self.rail, self._leaf_of = rail, leaf_of
        self._active = sorted(group, key=lambda node: leaf_of[node])
        self._fast: dict[str, None] = dict.fromkeys(fast)
        self.ports: dict[str, bool] = {}
        self.leaves: list[str] = []
        self.uplinks: list[str] = []
        self.whole = False
        self.undecided: list[tuple[str, ...]] = []
        #: leaves that are fast to another one
        self._outside: dict[str, None] = {}
        self._slow_parts: dict[str, int] = {}
        self._samples: dict[str, _Sample] = {}
        self._met = 0
        self._group = _Part(())
        self._named_before = -1
        self._waiting: list[_Job] = []
        self._asked: dict[RailTrial, _Job] = {}

    def next(self) -> list[RailTrial]:
        """Return the tests of the next round; none when all is told."""
        self._asked = {}
        while not self._asked and (self._waiting or self._begin()):
            taken: set[str] = set()
            left = []
            for job in self._waiting:
                members = self._members(job, taken)
                if members is None:
                    left.append(job)
                else:
                    taken.update(members)
                    self._asked[RailTrial(self.rail, job.kind, members, job.suspects)] = job
            self._waiting = left
            if not self._asked:
                self._unlock()
        return list(self._asked)

    def take(self, results: typing.Mapping[RailTrial, typing.Optional[bool]]) -> None:
        """Take what a round told: whether a test was as fast as it must be; None, or left out, where it gave no
        figure."""
        for trial, job in self._asked.items():
            result = results.get(trial)
            job.silent = job.silent or result is None
            if result:
                self._clear(trial.nodes)
            getattr(self, f"_take_{job.kind}")(job, bool(result))
        for key, sample in self._samples.items():
            if sample.open:
                # pairs stand for all that waits there
                self._waiting = [job for job in self._waiting if job.kind == "pair" or (key and job.leaf != key)]

    # rounds

    def _begin(self) -> bool:
        """Test the group, first as it is, then without what was named; end when nothing more was named."""
        named = len(self.ports) + len(self.leaves) + len(self.uplinks)
        if self.whole or named == self._named_before or len(self._active) < 2:
            if self._group.fast is False and named == self._named_before and not self.undecided:
                self.undecided.append(self._group.nodes)
            return False
        self._named_before, self._slow_parts = named, {}
        self._group = part = _Part(tuple(self._active))
        self._waiting = [_Job("part", part.nodes, self._leaf(part.nodes), part)]
        return True

    def _leaf(self, nodes: typing.Iterable[str]) -> str:
        leaves = {self._leaf_of[node] for node in nodes}
        return leaves.pop() if len(leaves) == 1 else ""

    def _members(self, job: _Job, taken: set[str]) -> typing.Optional[tuple[str, ...]]:
        """Return who takes part now; None where somebody is busy, or nobody is there who is known to be fast."""
        if not taken.isdisjoint(job.suspects):
            return None
        if job.kind in ("part", "pair", "leaves"):
            return job.suspects
        free = [node for node in self._fast if node not in taken and node not in job.suspects and node in self._leaf_of]
        if job.kind == "single":
            free = [node for node in free if self._leaf_of[node] == job.leaf]
        else:
            free = [
                node
                for node in free
                if self._leaf_of[node] != job.leaf and (job.kind == "abroad" or self._leaf_of[node] in self._outside)
            ]
        if not free:
            return None
        # another one than the time before, where there is one; for a leaf one of another leaf
        other = min(
            free, key=lambda node: ((self._leaf_of[node] in job.used) if job.kind == "leaf" else 0, node in job.used)
        )
        job.used |= {other, self._leaf_of[other]}
        return (*job.suspects, other)

    def _unlock(self) -> None:
        """Find somebody to be tested with for those that wait for that; give up where nobody is found."""
        singles = [job for job in self._waiting if job.kind == "single"]
        lost = [job for job in self._waiting if job.kind == "abroad"]
        self._waiting = [job for job in self._waiting if job.kind != "abroad"]
        for job in singles:
            # the first to be asked are nodes of other leaves, once
            if "abroad" not in job.used and not lost:
                job.used.add("abroad")
                self._waiting.append(_Job("abroad", job.suspects, job.leaf))
        if any(job.kind == "abroad" for job in self._waiting):
            return
        for leaf in dict.fromkeys(job.leaf for job in singles):
            members = [node for node in self._active if self._leaf_of[node] == leaf]
            if leaf in self._samples or len(members) < 3:
                self._give_up("single", leaf)
            else:
                self._try_pairs(leaf, members)
        waiting = any(job.kind == "leaf" for job in self._waiting)
        if waiting and not self._outside and self._met < MEETINGS:
            self._meet()
        elif waiting and not singles:
            self._give_up("leaf")

    def _give_up(self, kind: Kind, leaf: str = "") -> None:
        lost = [job for job in self._waiting if job.kind == kind and leaf in ("", job.leaf)]
        self._waiting = [job for job in self._waiting if job not in lost]
        self.undecided += [job.suspects for job in lost]
        gone = {node for job in lost for node in job.suspects}
        self._active = [node for node in self._active if node not in gone]

    def _try_pairs(self, key: str, members: typing.Sequence[str]) -> None:
        """Try pairs of a leaf, or with an empty key of the whole rail, each within its leaf, until one is fast."""
        by_leaf: dict[str, list[str]] = {}
        for node in members:
            by_leaf.setdefault(self._leaf_of[node], []).append(node)
        turns = [[pair for turn in rounds(nodes) for pair in turn] for nodes in by_leaf.values()]
        longest = max(map(len, turns))
        pairs = [turn[place] for place in range(longest) for turn in turns if place < len(turn)][:PAIRS]
        self._samples[key] = _Sample(tuple(members), len(pairs), bool(pairs))
        self._waiting += [_Job("pair", pair, key) for pair in pairs]

    def _meet(self) -> None:
        """Try leaves with each other."""
        leaves = list(dict.fromkeys(self._leaf_of[node] for node in self._active))
        turns = list(rounds(leaves))
        for pair in turns[self._met] if self._met < len(turns) else ():
            self._waiting.append(_Job("leaves", tuple(node for node in self._active if self._leaf_of[node] in pair)))
        self._met += 1

    # results

    def _clear(self, nodes: typing.Sequence[str]) -> None:
        self._fast.update(dict.fromkeys(nodes))
        leaves = dict.fromkeys(self._leaf_of[node] for node in nodes)
        if len(leaves) > 1:
            self._outside.update(leaves)

    def _take_part(self, job: _Job, fast: bool) -> None:
        part = job.part or _Part(job.suspects)
        part.fast = fast
        if fast:
            self._resolve(part)
        elif part.again:
            self.undecided.append(part.nodes)
        elif not self._is_hopeless(job.leaf):
            self._halve(part, job.leaf)

    def _is_hopeless(self, leaf: str) -> bool:
        """Return whether so many parts are slow, and none is fast, that pairs are tried from now on."""
        for key, most in {leaf: OF_LEAF, "": OF_RAIL}.items():
            self._slow_parts[key] = self._slow_parts.get(key, 0) + 1
            members = [node for node in self._active if key in ("", self._leaf_of[node])]
            if (
                self._slow_parts[key] >= most
                and key not in self._samples
                and not any(node in self._fast for node in members)
            ):
                self._try_pairs(key, members)
                return self._samples[key].open
        return False

    def _halve(self, part: _Part, leaf: str) -> None:
        if leaf:
            middle = (len(part.nodes) + 1) // 2
            split = part.nodes[:middle], part.nodes[middle:]
        else:
            leaves = list(dict.fromkeys(self._leaf_of[node] for node in part.nodes))
            first = set(leaves[: (len(leaves) + 1) // 2])
            split = (
                tuple(node for node in part.nodes if self._leaf_of[node] in first),
                tuple(node for node in part.nodes if self._leaf_of[node] not in first),
            )
        part.halves = tuple(_Part(nodes, part) for nodes in split)
        for half in part.halves:
            own = self._leaf(half.nodes)
            if own and (all(node in self._fast for node in half.nodes) or (not leaf and len(half.nodes) == 1)):
                # known already; or nobody else of its leaf is here, so that nothing can be slow within
                half.fast = True
            else:
                self._waiting.append(_Job("part" if len(half.nodes) > 1 else "single", half.nodes, own, half))
        self._between(part)

    def _resolve(self, part: _Part) -> None:
        if part.parent is not None:
            self._between(part.parent)

    def _between(self, part: _Part) -> None:
        """Look, where both halves of a slow part are fast, for what is slow between them."""
        if not part.halves or not all(half.fast for half in part.halves):
            return
        leaf = self._leaf(part.nodes)
        suspects = dict.fromkeys(self._leaf_of[node] for node in part.nodes) if not leaf else {}
        waiting = {job.leaf for job in (*self._waiting, *self._asked.values()) if job.kind == "leaf"}
        if leaf:
            part.again = True
            self._waiting.append(_Job("part", part.nodes, leaf, part))
        elif not waiting.isdisjoint(suspects) or not suspects.keys().isdisjoint(self.uplinks):
            return
        else:
            suspects = {one: None for one in suspects if one not in self._outside}
            for one in suspects:
                self._waiting.append(
                    _Job("leaf", tuple(node for node in part.nodes if self._leaf_of[node] == one), one)
                )
            if not suspects:
                self.undecided.append(part.nodes)

    def _take_single(self, job: _Job, fast: bool) -> None:
        part = job.part or _Part(job.suspects)
        job.slow += not fast
        if fast:
            part.fast = True
            self._resolve(part)
        elif job.slow < TWICE:
            self._waiting.append(job)
        else:
            part.fast = False
            self.ports[job.suspects[0]] = job.silent
            self._active = [node for node in self._active if node not in job.suspects]

    def _take_abroad(self, job: _Job, fast: bool) -> None:
        """Whom it clears is all that it tells."""
        for single in [
            waiting
            for waiting in self._waiting
            if fast and waiting.kind == "single" and waiting.suspects == job.suspects
        ]:
            self._waiting.remove(single)
            self._take_single(single, True)

    def _take_pair(self, job: _Job, fast: bool) -> None:
        sample = self._samples[job.leaf]
        sample.pending -= 1
        if fast and sample.open:
            # somebody is fast: halve what was put off, beside it
            sample.open = False
            self._waiting = [waiting for waiting in self._waiting if waiting.kind != "pair" or waiting.leaf != job.leaf]
            self._halve(_Part(sample.members, fast=False), self._leaf(sample.members))
        elif sample.open and not sample.pending:
            sample.open = False
            if job.leaf:
                self.leaves.append(job.leaf)
            else:
                self.whole = True
            self._active = [node for node in self._active if node not in sample.members]

    def _take_leaf(self, job: _Job, fast: bool) -> None:
        job.slow += not fast
        if fast:
            return
        if job.slow < TWICE:
            self._waiting.append(job)
        else:
            self.uplinks.append(job.leaf)
            self._active = [node for node in self._active if self._leaf_of[node] != job.leaf]

    def _take_leaves(self, job: _Job, fast: bool) -> None:
        """Whom it clears is all that it tells."""
