# SPDX-License-Identifier: GPL-3.0-or-later

"""The course of one collective: its tests, from one node to all nodes, and the verdict on each.

Each test depends on the results of the tests before it. The module that runs the tests and the check that judges their
facts both use this class, so both follow the same course.
"""

from __future__ import annotations

import dataclasses
import math
import typing

from ..._analysis.schedule.collectives import (
    SMALL,
    SOAK,
    CollectiveGroup,
    CollectiveTests,
    Leaves,
    Repeat,
    Test,
    without_overlap,
)
from ..._analysis.schedule.halving import RailTrial
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
    RanTest,
    TestKey,
    TestName,
)
from ..._model.run.findings import FAIL, PASS, WARN, Finding
from .course_findings import (
    GroupRun,
    report_group,
    report_steps,
    report_suspects,
    report_unsteady,
    report_unused_floors,
)
from .floor import compute_bus_factor
from .group_judge import GroupJudge
from .group_verdict import GroupFigure, describe_run, describe_verdict
from .hardware import NodesHardware, plan_proof, plan_run
from .judge import CollectiveFigure, pick_figure
from .latency import GroupLatency, Latency, judge_latency, pick_latency
from .proof import count_rows, prove_run
from .repeats import GPU_DIRECT_OFF, Change, Repeats, SlowGroup
from .soak import DURATION, judge_duration, judge_soak_errors, report_none
from .surroundings import Surroundings

#: collective whose small messages measure the latency
LATENCY: TestName = "all_reduce"
#: nodes of a group that its subject names
_NAMED = 4
#: times that the largest message goes through in a soak. A day with messages that take 100 us each has so many
_MOST_ITERATIONS = 10**9


def key_of(name: TestName, test: Test) -> TestKey:
    """Return the key by which a test of a collective is found among the stored runs: collective, step, nodes, rail
    (None for a test over all rails), and change of a repetition (empty for any other test).

    :param name: name of the collective
    """
    rail = test.rail if isinstance(test, RailTrial) else None
    return name, test.kind, test.nodes, rail, test.change if isinstance(test, Repeat) else ""


class Course:
    """The course of one collective: it returns the tests of each round, judges their results, and collects the
    findings.

    :ivar name: name of the collective
    :ivar leaves: nodes by leaf
    :ivar figures: figures of the groups that are proven, by subject
    :ivar latencies: latencies of the pairs that are proven, by subject
    """

    def __init__(
        self,
        name: TestName,
        wanted: Collectives,
        ground: NodesHardware,
        leaves: Leaves,
        seen: Surroundings,
        ended: str = "",
    ) -> None:
        """Create the sequence of the tests of one collective, before its first test.

        :param name: name of the collective
        :param wanted: settings of the collectives in the intent
        :param ground: GPUs and HCAs of the nodes, with measured rates
        :param leaves: names of the nodes by leaf
        :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
        :param ended: reason why the stage ended before its last test; empty if it did not
        :raises ValueError: a node belongs to two leaves, or there is no rail
        """
        self.name, self._wanted, self.leaves = name, wanted, leaves
        self._climb = CollectiveTests(leaves, sorted(ground.gpu_of_rail), wanted.gpus_per_node)
        self._leaf_of = {node: leaf for leaf, nodes in leaves.items() for node in nodes}
        self._judge = GroupJudge(wanted, ground, seen, self._leaf_of, ended)
        self._number = 0
        #: findings of each group, and of the inside of each node; a group that ran again keeps the latest
        self._found: dict[str, tuple[Finding, ...]] = {}
        self.figures: dict[str, GroupFigure] = {}
        #: each run of a group, the first one first: those that were slow or failed run again
        self._runs_of: dict[CollectiveGroup, list[GroupRun]] = {}
        self._climbed = False
        #: pairs that are fast, and the rounds of their small messages, which follow all steps
        self._pairs: dict[CollectiveGroup, None] = {}
        self._small: typing.Optional[list[list[CollectiveGroup]]] = None
        self._latencies: dict[str, typing.Optional[Latency]] = {}
        self.latencies: dict[str, GroupLatency] = {}
        self._repeats = Repeats()
        self._change: typing.Optional[Change] = None
        #: the largest group that is proven and fast, and whether it has run for long by now
        self._largest: typing.Optional[CollectiveGroup] = None
        self._soaking = self._soaked = False

    def next(self) -> tuple[tuple[Test, CollectiveRun], ...]:
        """Return the tests of the next round, which run at the same time, each with its run. The tuple is empty when
        all tests are done.
        """
        tests: tuple[Test, ...] = () if self._climbed else self._climb.next()
        self._climbed = not tests
        if self._climbed and self._small is None:
            self._small = without_overlap(self._pairs)
        if self._small:
            tests = tuple(Repeat(group, SMALL) for group in self._small[0])
        again = self._repeats.next() if self._climbed and not self._small else None
        if again is not None:
            tests, self._change = again[:1], again[1]
        elif self._climbed and not self._small and self.soaks and not self._soaked and self._largest is not None:
            tests, self._change, self._soaking = (Repeat(self._largest, SOAK),), None, True
        variables = self._change.variables if self._change is not None else ()
        found = []
        for test in tests:
            self._number += 1
            run = plan_run(test, self._number, self.name, self._judge.ground, variables)
            found.append((test, dataclasses.replace(run, iterations=self._count_iterations(test))))
        return tuple(found)

    @property
    def soaks(self) -> bool:
        """Return whether the intent asks for a soak with this collective. Only the first collective of the intent runs
        it.
        """
        return bool(self._wanted.soak_minutes) and self.name == self._wanted.tests[0]

    def _count_iterations(self, test: Test) -> typing.Optional[int]:
        """Return the number of iterations of a soak, computed from the bandwidth that the group reached; None for any
        other test. The program measures each size twice, out of place and in place.
        """
        if not isinstance(test, Repeat) or test.change != SOAK:
            return None
        found = self.figures[self.subject(test.group)]
        sizes = [(size, bus_gbs) for size, bus_gbs in found.sizes if size and bus_gbs]
        size, bus_gbs = sizes[-1] if sizes else (self._wanted.most_bytes, found.bus_gbs)
        ranks = len(test.nodes) * (1 if test.kind == "two nodes" else self._wanted.gpus_per_node)
        seconds = size * compute_bus_factor(self.name, ranks) / (bus_gbs * 1e9) if bus_gbs else 1.0
        wanted = 60 * self._wanted.soak_minutes / (2 * seconds) if seconds else math.inf
        return max(1, round(min(wanted, _MOST_ITERATIONS)))

    def take(
        self, round_of: typing.Sequence[tuple[Test, CollectiveRun]], results: typing.Mapping[Test, RanTest]
    ) -> dict[Test, str]:
        """Evaluate the results of a round, and return the verdict on each test as text, by test.

        :param round_of: tests and runs that ``next`` returned
        :param results: results by test; a test without a result did not run
        """
        if self._small:
            self._small.pop(0)
            return {test: self._take_small(test, run, results.get(test)) for test, run in round_of}
        if self._soaking:
            self._soaking, self._soaked = False, True
            return {test: self._take_soak(test, run, results.get(test)) for test, run in round_of}
        if self._change is not None:
            return {test: self._take_repeat(test, run, results.get(test)) for test, run in round_of}
        verdicts = {test: self._judge.judge(self.subject(test), test, run, results.get(test)) for test, run in round_of}
        self._found.update(
            (self.subject(test), item.findings) for test, item in verdicts.items() if isinstance(test, CollectiveGroup)
        )
        alone = {
            test.nodes[0]: item.figure
            for test, item in verdicts.items()
            if test.kind == "one node" and item.figure is not None
        }
        slow = self._judge_inside(alone, results)
        passes = {
            test: False if item.passes and test.kind == "one node" and test.nodes[0] in slow else item.passes
            for test, item in verdicts.items()
        }
        self._climb.take(passes)
        for test, item in verdicts.items():
            if not isinstance(test, CollectiveGroup):
                continue
            self._runs_of.setdefault(test, []).append(describe_run(item, passes[test], results.get(test)))
            self._repeats.note(test, SlowGroup(item.figure.bus_gbs, item.changes) if item.figure is not None else None)
            if test.kind == "two nodes" and passes[test] and self._measures_latency:
                self._pairs[test] = None
            if passes[test] and item.figure is not None and len(test.nodes) > 1:
                self._largest = max((self._largest or test), test, key=_rank_for_soak)
            if item.figure is not None:
                self.figures[self.subject(test)] = GroupFigure(
                    self.name,
                    test.kind,
                    test.nodes,
                    item.figure.bus_gbs,
                    item.floor_gbs,
                    item.figure.sizes,
                    item.bound_gbs,
                )
        return {test: describe_verdict(item, passes[test]) for test, item in verdicts.items()}

    @property
    def _measures_latency(self) -> bool:
        return self._wanted.latency and self.name == LATENCY

    def _take_small(self, test: Test, run: CollectiveRun, ran: typing.Optional[RanTest]) -> str:
        """Evaluate the latency test of a pair with small messages, and return the latency as text, or that it is not
        valid.

        :param test: pair of nodes that was tested
        :param run: command and nodes that were planned for the test
        :param ran: result of the collective test; None if it did not run
        """
        found = None
        if ran is not None and ran.figures is not None and ran.log is not None and not ran.failure:
            proof = prove_run(ran.log.restore(), ran.figures, plan_proof(run, test, self._wanted, self._judge.ground))
            found = pick_latency(count_rows(ran.figures, proof))
        self._latencies[self.subject(test)] = found
        if found is not None:
            self.latencies[self.subject(test)] = GroupLatency(self.name, test.nodes, found)
        return found.words if found is not None else "no valid bandwidth"

    def _take_soak(self, test: Test, run: CollectiveRun, ran: typing.Optional[RanTest]) -> str:
        """Judge the soak of a group: its proof and figure as for any group, and the error counters of its HCAs. Return
        the description of the verdict.

        :param test: group of nodes that was tested
        :param run: command and nodes that were planned for the test
        :param ran: result of the collective test; None if it did not run
        """
        subject = self.subject(test)
        verdict = self._judge.judge(subject, test, run, ran)
        hcas = [(node, device) for node in run.nodes for device in self._judge.ground.hcas.get(node, {})]
        used = [(node, hca) for node in run.nodes for hca in self._judge.ground.hcas.get(node, {}).values()]
        physical = [(node, hca.physical) for node, hca in used if hca.physical]
        errors = tuple(judge_soak_errors(subject, hcas, ran.errors if ran is not None else (), physical))
        if ran is not None and not ran.failure:
            errors = (*judge_duration(subject, ran.seconds, self._wanted.soak_minutes), *errors)
        self._found[subject] = (*verdict.findings, *errors)
        if verdict.figure is not None and ran is not None and not ran.failure:
            self.figures[subject] = GroupFigure(
                self.name,
                "soak",
                test.nodes,
                verdict.figure.bus_gbs,
                verdict.floor_gbs,
                verdict.figure.sizes,
                verdict.bound_gbs,
            )
        bad = sum(item.status != PASS for item in errors if not item.subject.endswith(DURATION))
        words = describe_verdict(verdict, verdict.passes)
        return f"{words}; {count_of(bad, 'HCA')} with errors or unknown error counters" if bad else words

    def _take_repeat(self, test: Test, run: CollectiveRun, ran: typing.Optional[RanTest]) -> str:
        """Judge the repetition of a slow group with one change, and return the description of the verdict; empty if no
        repetition was due. If the change raised the figure, it is added to the bandwidth finding of the group.

        :param test: repetition that was due
        :param run: command and nodes that were planned for the test
        :param ran: result of the collective test; None if it did not run
        """
        change, group = self._change, test.group if isinstance(test, Repeat) else None
        if change is None or group is None:
            return ""
        subject = self.subject(group)
        figure, lacks = self._find_repeated_figure(test, run, ran, change)
        finding = self._repeats.take(subject, figure.bus_gbs if figure is not None else None, lacks)
        self._found[finding.subject] = (finding,)
        told = self._repeats.told.get(group)
        if told is not None and finding.status == WARN:
            self._found[subject] = tuple(
                dataclasses.replace(item, why=f"{item.why} {told}", remedy=finding.remedy)
                if item.check == "collectives.bandwidth"
                else item
                for item in self._found.get(subject, ())
            )
        return (
            f"{finding.measured},"
            f" {'faster' if finding.status == WARN else 'no valid result' if lacks else 'no cause found'}"
        )

    def _find_repeated_figure(
        self, test: Test, run: CollectiveRun, ran: typing.Optional[RanTest], change: Change
    ) -> tuple[typing.Optional[CollectiveFigure], str]:
        """Return the figure of the repetition of a slow group, and the reason why it proves nothing. The reason is
        empty if the figure counts. The figure is None if the test gave none.

        :param test: repetition that was due
        :param run: command and nodes that were planned for the test
        :param ran: result of the collective test; None if it did not run
        :param change: change that the repetition makes
        """
        if ran is None or ran.figures is None or ran.log is None or ran.failure:
            return None, "the test did not run" if ran is None else ran.evidence or "the test printed no results"
        if ran.figures.collective not in ("", run.test):
            return None, f"the program ran {ran.figures.collective}"
        log = ran.log.restore()
        wanted = plan_proof(run, test, self._wanted, self._judge.ground)
        if change.name == GPU_DIRECT_OFF:
            wanted = dataclasses.replace(wanted, gpu_direct=False)
        proof = prove_run(log, ran.figures, wanted)
        figure = pick_figure(log, ran.figures, proof, self._wanted.least_bytes)
        if not change.is_in(log):
            return None, f"NCCL's log does not show the change: {change.words}"
        return figure, "" if figure is not None else "the transport of its channels could not be verified"

    def _judge_inside(
        self, figures: typing.Mapping[str, CollectiveFigure], results: typing.Mapping[Test, RanTest]
    ) -> set[str]:
        """Compare the nodes that were tested alone, in this round and before, and return the slow nodes.

        :param figures: figures of this round by node
        :param results: results of this round by test
        """
        if not figures:
            return set()
        found = self._judge.compare_nodes(figures, results)
        for node, item in found.items():
            self._found[f"{self.name}, inside of {node}"] = (dataclasses.replace(item, subject=f"{self.name}, {node}"),)
        return {node for node, item in found.items() if item.status == FAIL}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of the tests so far, in their order. The single-rail tests that search for a slow port
        have no findings of their own.
        """
        return tuple(item for found in self._found.values() for item in found)

    def subject(self, test: Test) -> str:
        """Return the subject of the findings on a test: the collective, the step, the nodes, and the rail or the
        change."""
        more = f" rail {test.rail}" if isinstance(test, RailTrial) else ""
        more = f", {test.change.replace('_', ' ')}" if isinstance(test, Repeat) else more
        return f"{self.name}, {test.kind}: {join_first(test.nodes, _NAMED) or 'no node'}{more}"

    def _is_slow(self, group: CollectiveGroup) -> bool:
        """Return whether the last run of a group gave a verified figure.

        A suspected group with such a figure can only be slow.
        """
        runs = self._runs_of.get(group, [])
        return bool(runs) and runs[-1].bus_gbs is not None

    def end(self) -> tuple[Finding, ...]:
        """Return the findings that need all tests: on each step, the soak, the latency, and the nodes, ports, leaves,
        uplinks and rails that are slow.
        """
        climb = self._climb
        return (
            *report_steps(self.name, climb, len(self._leaf_of)),
            *report_unused_floors(self.name, self._wanted.expected_busbw, self._judge.used_floors),
            *((report_none(self.name),) if self.soaks and not self._soaked else ()),
            *judge_latency(self._latencies, self._wanted.most_latency_us, self._wanted.latency_ratio),
            *(item for kind, named in climb.named.items() for item in report_suspects(self.name, kind, named)),
            *(report_group(self.subject(group), group, self._is_slow(group)) for group in climb.together),
            *(item for group, runs in self._runs_of.items() for item in report_unsteady(self.subject(group), runs)),
        )


def _rank_for_soak(group: CollectiveGroup) -> tuple[bool, int]:
    """Return a sort key by which the group for the soak is chosen: groups with all rails rank above pairs of nodes,
    which are tested rail by rail, and larger groups above smaller groups.
    """
    return group.kind != "two nodes", len(group.nodes)
