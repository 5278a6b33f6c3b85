# SPDX-License-Identifier: GPL-3.0-or-later

"""Search one rail for the port, leaf or uplink that makes a collective slow.

A collective is as fast as the slowest of its members and of the links between them. Therefore a slow group has a slow
port, or slow links between its leaves. A fast group clears all of its members and the links between its leaves. A node
is accused only in a test with a node that is known to be fast, and only by more than one test: noise slows a test down,
and a test is never faster than its links. At the end the group is tested again without the ports, leaves and uplinks
that were found to be slow.
"""

from __future__ import annotations

import typing

from .rail_trials import Kind, PairSample, RailTrial, SuspectPart, WaitingTrial
from .rounds import iterate_rounds

#: slow parts without a fast one, in a leaf and on a rail, from which on pairs are tried instead of smaller and smaller
#: parts
OF_LEAF, OF_RAIL = 4, 8
#: pairs, all of them slow, after which the leaf or the rail is named
PAIRS = 16
#: slow tests by which one is named
TWICE = 2
#: rounds in which leaves are tried with each other
MEETINGS = 3


class RailSearch:
    """The search for the slow port, leaf or uplink of one rail. ``next`` returns the tests of a round, which have no
    node in common, and ``take`` evaluates their results.

    :ivar ports: whether each slow port gave no figure at all instead of a slow one, by name of its node
    :ivar leaves: leaves that are slow between any two of their nodes
    :ivar uplinks: leaves that are fast inside, but slow to other leaves
    :ivar whole: whether the rail is slow between any two nodes
    :ivar undecided: groups of nodes for which the cause remains unknown
    """

    def __init__(
        self, rail: int, leaf_of: typing.Mapping[str, str], group: typing.Sequence[str], fast: typing.Iterable[str] = ()
    ) -> None:
        """Begin the search for slow nodes of a group on one rail.

        :param rail: number of the rail
        :param leaf_of: name of the leaf of each node, including nodes outside of the group
        :param group: names of the nodes of a group that is slow, or whose result is unknown
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
        self._samples: dict[str, PairSample] = {}
        self._met = 0
        self._group = SuspectPart(())
        self._named_before = -1
        self._waiting: list[WaitingTrial] = []
        self._asked: dict[RailTrial, WaitingTrial] = {}

    def next(self) -> list[RailTrial]:
        """Return the tests of the next round, which have no node in common; empty if the search is done."""
        self._asked = {}
        while not self._asked and (self._waiting or self._begin_group_test()):
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
                self._unlock_waiting_tests()
        return list(self._asked)

    def take(self, results: typing.Mapping[RailTrial, typing.Optional[bool]]) -> None:
        """Evaluate the results of the tests that ``next`` returned last, and plan the following tests.

        :param results: True if the test was fast enough, False if not; None, or missing, if it gave no figure
        """
        for trial, job in self._asked.items():
            result = results.get(trial)
            job.silent = job.silent or result is None
            if result:
                self._record_fast_nodes(trial.nodes)
            getattr(self, f"_take_{job.kind}")(job, bool(result))
        for key, sample in self._samples.items():
            if sample.open:
                # pairs stand for all that waits there
                self._waiting = [job for job in self._waiting if job.kind == "pair" or (key and job.leaf != key)]

    # rounds

    def _begin_group_test(self) -> bool:
        """Schedule a test of the group: first of the complete group, later without the ports, leaves and uplinks that
        were found to be slow. Return False if the search is done, because nothing new was found to be slow since the
        last such test.
        """
        named = len(self.ports) + len(self.leaves) + len(self.uplinks)
        if self.whole or named == self._named_before or len(self._active) < 2:
            if self._group.fast is False and named == self._named_before and not self.undecided:
                self.undecided.append(self._group.nodes)
            return False
        self._named_before, self._slow_parts = named, {}
        self._group = part = SuspectPart(tuple(self._active))
        self._waiting = [WaitingTrial("part", part.nodes, self._find_common_leaf(part.nodes), part)]
        return True

    def _find_common_leaf(self, nodes: typing.Iterable[str]) -> str:
        leaves = {self._leaf_of[node] for node in nodes}
        return leaves.pop() if len(leaves) == 1 else ""

    def _members(self, job: WaitingTrial, taken: set[str]) -> typing.Optional[tuple[str, ...]]:
        """Return the nodes of a test in this round, with a fast node added if the test needs one. Return None if one of
        its suspects is busy, or if no suitable fast node is available.

        :param job: test that is due
        :param taken: nodes that other tests of this round use
        """
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

    def _unlock_waiting_tests(self) -> None:
        """Find a fast partner for each test that waits for one, by tests with other leaves or by further pairs. Give up
        a test for which there is no partner.
        """
        singles = [job for job in self._waiting if job.kind == "single"]
        lost = [job for job in self._waiting if job.kind == "abroad"]
        self._waiting = [job for job in self._waiting if job.kind != "abroad"]
        for job in singles:
            # the first to be asked are nodes of other leaves, once
            if "abroad" not in job.used and not lost:
                job.used.add("abroad")
                self._waiting.append(WaitingTrial("abroad", job.suspects, job.leaf))
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
            self._schedule_leaf_pairs()
        elif waiting and not singles:
            self._give_up("leaf")

    def _give_up(self, kind: Kind, leaf: str = "") -> None:
        """Drop the waiting trials of one kind. Their suspects become undecided, and take part in no further trial.

        :param leaf: name of the leaf whose trials are dropped; empty for all leaves
        """
        lost = [job for job in self._waiting if job.kind == kind and leaf in ("", job.leaf)]
        self._waiting = [job for job in self._waiting if job not in lost]
        self.undecided += [job.suspects for job in lost]
        gone = {node for job in lost for node in job.suspects}
        self._active = [node for node in self._active if node not in gone]

    def _try_pairs(self, key: str, members: typing.Sequence[str]) -> None:
        """Schedule tests of pairs of nodes, to find nodes that are fast.

        :param key: name of the leaf of the members; empty for the whole rail, whose pairs are within one leaf each
        :param members: names of the nodes from which pairs are formed
        """
        by_leaf: dict[str, list[str]] = {}
        for node in members:
            by_leaf.setdefault(self._leaf_of[node], []).append(node)
        turns = [[pair for turn in iterate_rounds(nodes) for pair in turn] for nodes in by_leaf.values()]
        longest = max(map(len, turns))
        pairs = [turn[place] for place in range(longest) for turn in turns if place < len(turn)][:PAIRS]
        self._samples[key] = PairSample(tuple(members), len(pairs), bool(pairs))
        self._waiting += [WaitingTrial("pair", pair, key) for pair in pairs]

    def _schedule_leaf_pairs(self) -> None:
        """Schedule tests of pairs of leaves, with all nodes of both leaves, to find leaves whose uplinks are fast."""
        leaves = list(dict.fromkeys(self._leaf_of[node] for node in self._active))
        turns = list(iterate_rounds(leaves))
        for pair in turns[self._met] if self._met < len(turns) else ():
            self._waiting.append(
                WaitingTrial("leaves", tuple(node for node in self._active if self._leaf_of[node] in pair))
            )
        self._met += 1

    # results

    def _record_fast_nodes(self, nodes: typing.Sequence[str]) -> None:
        self._fast.update(dict.fromkeys(nodes))
        leaves = dict.fromkeys(self._leaf_of[node] for node in nodes)
        if len(leaves) > 1:
            self._outside.update(leaves)

    def _take_part(self, job: WaitingTrial, fast: bool) -> None:
        """Take the result of a trial of a part of the suspects: resolve its parent if it was fast, otherwise split it.
        A part that was slow in a second trial stays undecided, and a part is not split if pairs of nodes are tried in
        its place.

        :param fast: whether the trial was fast
        """
        part = job.part or SuspectPart(job.suspects)
        part.fast = fast
        if fast:
            self._resolve_parent_part(part)
        elif part.again:
            self.undecided.append(part.nodes)
        elif not self._note_slow_part(job.leaf):
            self._split_part(part, job.leaf)

    def _note_slow_part(self, leaf: str) -> bool:
        """Count a slow subset. If too many subsets of the leaf or of the rail were slow and no node is known to be
        fast, schedule tests of pairs of nodes and return True.

        :param leaf: name of the leaf of all nodes of the subset; empty if they are on several leaves
        """
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

    def _split_part(self, part: SuspectPart, leaf: str) -> None:
        """Split a slow part into halves, by leaves if it has several, and schedule their trials. A half that is known
        to be fast gets no trial.

        :param leaf: name of the leaf of all nodes of the part; empty if it has several
        """
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
        part.halves = tuple(SuspectPart(nodes, part) for nodes in split)
        for half in part.halves:
            own = self._find_common_leaf(half.nodes)
            if own and (all(node in self._fast for node in half.nodes) or (not leaf and len(half.nodes) == 1)):
                # known already; or nobody else of its leaf is here, so that nothing can be slow within
                half.fast = True
            else:
                self._waiting.append(WaitingTrial("part" if len(half.nodes) > 1 else "single", half.nodes, own, half))
        self._test_links_between_halves(part)

    def _resolve_parent_part(self, part: SuspectPart) -> None:
        if part.parent is not None:
            self._test_links_between_halves(part.parent)

    def _test_links_between_halves(self, part: SuspectPart) -> None:
        """Schedule tests of the links between the halves of a slow part if both halves are fast. A part on one leaf is
        tested once more as a whole. Otherwise the uplinks of its leaves are tested.
        """
        if not part.halves or not all(half.fast for half in part.halves):
            return
        leaf = self._find_common_leaf(part.nodes)
        suspects = dict.fromkeys(self._leaf_of[node] for node in part.nodes) if not leaf else {}
        waiting = {job.leaf for job in (*self._waiting, *self._asked.values()) if job.kind == "leaf"}
        if leaf:
            part.again = True
            self._waiting.append(WaitingTrial("part", part.nodes, leaf, part))
        elif not waiting.isdisjoint(suspects) or not suspects.keys().isdisjoint(self.uplinks):
            return
        else:
            suspects = {one: None for one in suspects if one not in self._outside}
            for one in suspects:
                self._waiting.append(
                    WaitingTrial("leaf", tuple(node for node in part.nodes if self._leaf_of[node] == one), one)
                )
            if not suspects:
                self.undecided.append(part.nodes)

    def _take_single(self, job: WaitingTrial, fast: bool) -> None:
        """Take the result of a trial of a single suspect. The port of a suspect that was slow ``TWICE`` times is named,
        and the suspect takes part in no further trial.

        :param fast: whether the trial was fast
        """
        part = job.part or SuspectPart(job.suspects)
        job.slow += not fast
        if fast:
            part.fast = True
            self._resolve_parent_part(part)
        elif job.slow < TWICE:
            self._waiting.append(job)
        else:
            part.fast = False
            self.ports[job.suspects[0]] = job.silent
            self._active = [node for node in self._active if node not in job.suspects]

    def _take_abroad(self, job: WaitingTrial, fast: bool) -> None:
        """Evaluate a test of a suspect with a fast node of another leaf. A fast result clears the suspect. A slow
        result proves nothing, because the uplinks may be the cause.

        :param job: test of one suspect and one fast node of another leaf
        :param fast: whether the test was fast enough
        """
        for single in [
            waiting
            for waiting in self._waiting
            if fast and waiting.kind == "single" and waiting.suspects == job.suspects
        ]:
            self._waiting.remove(single)
            self._take_single(single, True)

    def _take_pair(self, job: WaitingTrial, fast: bool) -> None:
        """Take the result of a trial of two nodes of a sample. A fast pair ends the sample, and its members are
        searched. If all pairs are slow, the leaf or the whole fabric is named.

        :param fast: whether the trial was fast
        """
        sample = self._samples[job.leaf]
        sample.pending -= 1
        if fast and sample.open:
            # somebody is fast: halve what was put off, beside it
            sample.open = False
            self._waiting = [waiting for waiting in self._waiting if waiting.kind != "pair" or waiting.leaf != job.leaf]
            self._split_part(SuspectPart(sample.members, fast=False), self._find_common_leaf(sample.members))
        elif sample.open and not sample.pending:
            sample.open = False
            if job.leaf:
                self.leaves.append(job.leaf)
            else:
                self.whole = True
            self._active = [node for node in self._active if node not in sample.members]

    def _take_leaf(self, job: WaitingTrial, fast: bool) -> None:
        """Take the result of a trial between leaves. The uplinks of a leaf that was slow ``TWICE`` times are named, and
        its nodes take part in no further trial.

        :param fast: whether the trial was fast
        """
        job.slow += not fast
        if fast:
            return
        if job.slow < TWICE:
            self._waiting.append(job)
        else:
            self.uplinks.append(job.leaf)
            self._active = [node for node in self._active if self._leaf_of[node] != job.leaf]

    def _take_leaves(self, job: WaitingTrial, fast: bool) -> None:
        """Evaluate a test of two leaves. No further test follows from it: a fast result has already cleared the nodes,
        and a slow result proves nothing.

        :param job: test of nodes of two leaves
        :param fast: whether the test was fast enough
        """
