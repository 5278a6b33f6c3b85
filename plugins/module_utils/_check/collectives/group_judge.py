# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge one test of a collective: the proof that its figure is of the network, and the comparison with its floor."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.collectives import (
    CollectiveGroup,
    Test,
)
from ..._analysis.schedule.halving import RailTrial
from ..._model.base.phrases import format_clause
from ..._model.job.nccl import NcclLog
from ..._model.measurement.collectives import (
    CollectiveRun,
    Collectives,
    ExpectedBusbw,
    RanTest,
)
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, build_pass
from ..job.log.nccl_run import cut_to_run, group_by_process
from .floor import NodeFigure, spell_gbs
from .group_verdict import GroupVerdict
from .hardware import NodesHardware, learn_gpus, pick_expected, plan_floor, plan_proof
from .judge import CollectiveFigure, find_algorithm, judge_figure, judge_inside, pick_figure
from .proof import EACH_TO_EACH, prove_run
from .repeats import find_changes
from .surroundings import Surroundings

#: kinds of failures whose name alone is unclear, in words
_FAILURES = {"exit_code": "exit code other than 0", "no_measurement": "output not that of one test"}
_RAILS = (
    "Measure the rails in the same run: ansible-playbook linerate.rdma.site --tags bandwidth,collectives. Or set the"
    " expected bandwidth and its reason in rdma_cluster.collectives.expected_busbw."
)


class GroupJudge:
    """The judgment of the tests of one collective, which depends on what earlier tests showed.

    :ivar ground: GPUs and HCAs of the nodes, with measured rates. Each log adds the GPU that NCCL uses with a rail
    :ivar inside: figure of the slowest node that was tested alone and is not slow; None before such a test
    :ivar used_floors: floors of the intent that a group was compared with
    """

    def __init__(
        self,
        wanted: Collectives,
        ground: NodesHardware,
        seen: Surroundings,
        leaf_of: typing.Mapping[str, str],
        ended: str,
    ) -> None:
        """Store what the tests are judged by. No test is judged yet.

        :param wanted: settings of the collectives in the intent
        :param ground: GPUs and HCAs of the nodes, with measured rates
        :param seen: facts besides NCCL's log: HCAs, tuning of the nodes, RoCE settings, rates of single rails
        :param leaf_of: name of the leaf, by node
        :param ended: why the stage ended before its last test; empty if it did not
        """
        self._wanted, self.ground, self._seen, self._leaf_of, self._ended = wanted, ground, seen, leaf_of, ended
        #: the figure of each node alone
        self._alone: dict[str, CollectiveFigure] = {}
        self.inside: typing.Optional[NodeFigure] = None
        self.used_floors: set[ExpectedBusbw] = set()

    def judge(self, subject: str, test: Test, run: CollectiveRun, ran: typing.Optional[RanTest]) -> GroupVerdict:
        """Return the verdict on one test.

        :param subject: subject of the findings
        :param run: command and nodes that were planned for the test
        :param ran: result of the test; None if it did not run
        """
        expected = "results and logs of all ranks, exit code 0"
        if ran is None or ran.figures is None or ran.log is None:
            what = _FAILURES.get(ran.failure, ran.failure.replace("_", " ")) if ran is not None else "not run"
            why, remedy = self._explain_no_results(ran)
            measured = f"no results{f' ({what})' if what else ''}"
            return self._make_verdict(
                test, (Finding("collectives.started", subject, UNKNOWN, measured, expected, why, remedy),)
            )
        if ran.figures.collective not in ("", run.test):
            why = f"The file {run.test}_perf in the image is another program, or a link to it."
            remedy = (
                f"In the image {self._wanted.image}, run ls -l {self._wanted.program_folder}: {run.test}_perf must be"
                " the program of nccl-tests with this name. Correct rdma_cluster.collectives.image, then run stage"
                " collectives again."
            )
            return self._make_verdict(
                test,
                (
                    Finding(
                        "collectives.figures",
                        subject,
                        FAIL,
                        f"results of {ran.figures.collective}",
                        f"results of {run.test}",
                        why,
                        remedy,
                    ),
                ),
            )
        log = ran.log.restore()
        self._learn_gpus(log)
        proof = prove_run(log, ran.figures, plan_proof(run, test, self._wanted, self.ground))
        found = [
            dataclasses.replace(item, subject=f"{subject}: {item.subject}")
            for item in proof.findings
            if item.status != PASS
        ]
        if proof.status == PASS:
            found.append(
                build_pass(
                    "collectives.way",
                    subject,
                    f"{proof.count} {'ranks' if run.test == EACH_TO_EACH else 'channels'} verified",
                    "each channel over the transport that the intent requires",
                )
            )
        if ran.failure:
            why = f"The test ended with an error: {format_clause(ran.evidence, 'it printed no error')}."
            remedy = (
                "Follow the remedies of the findings collectives.problem and collectives.transport of this test."
                " If there are none, run dmesg on its nodes, and kubectl -n linerate-measure describe pods while"
                " the stage runs, and correct the error that they show. Then run stage collectives again."
            )
            found.append(
                Finding("collectives.started", subject, FAIL, f"ended early ({ran.failure})", expected, why, remedy)
            )
        figure = pick_figure(log, ran.figures, proof, self._wanted.least_bytes)
        if len(run.nodes) < 2:
            # its figure is compared with those of the other nodes
            return self._make_verdict(
                test, tuple(found), True if figure is not None and not ran.failure else None, figure
            )
        algorithm = (find_algorithm(figure, log) if figure is not None else None) or "ring"
        own = pick_expected(run, self._wanted)
        if own is not None:
            self.used_floors.add(own)
        floor = plan_floor(run, test, self._wanted, self.ground, algorithm, self.inside, log.library)
        if floor is None and own is None and figure is not None:
            why = (
                "Stage bandwidth measured no rate of at least one rail of these nodes, so the minimum cannot be"
                " computed."
            )
            found.append(
                Finding(
                    "collectives.bandwidth",
                    subject,
                    UNKNOWN,
                    f"{spell_gbs(figure.bus_gbs)}, minimum unknown",
                    "at least a minimum from the measured rates of the rails",
                    why,
                    _RAILS,
                )
            )
            return self._make_verdict(test, tuple(found), None if ran.failure else True, figure)
        seen = dataclasses.replace(self._seen, several_leaves=len({self._leaf_of[node] for node in run.nodes}) > 1)
        judged = judge_figure(subject, log, ran.figures, proof, floor, seen, own, self._wanted.least_bytes)
        passes = {PASS: True, WARN: True, FAIL: False}.get(judged[0].status) if not ran.failure else None
        asked = own.gbs if own is not None else floor.floor_gbs if floor is not None else None
        verdict = self._make_verdict(test, (*found, *judged), passes, figure, asked)
        verdict = dataclasses.replace(verdict, bound_gbs=floor.bound_gbs if floor is not None else None)
        if passes is False and figure is not None and isinstance(test, CollectiveGroup):
            cut, _silent = cut_to_run(log, ran.figures, group_by_process(log))
            verdict = dataclasses.replace(verdict, changes=find_changes(cut, figure.choice, seen))
        return verdict

    def _explain_no_results(self, ran: typing.Optional[RanTest]) -> tuple[str, str]:
        """Return the reason why a test has no results, and the remedy.

        :param ran: facts of the run; None if the test did not run
        """
        if ran is not None:
            return (
                f"The test gave no results: {format_clause(ran.evidence, 'it printed none')}.",
                "Correct the error under 'why'. If it does not show the cause, run kubectl -n linerate-measure"
                f" describe pods while the stage runs: the events show whether the image {self._wanted.image} or"
                " a GPU is missing. Then run stage collectives again.",
            )
        if self._ended:
            return (
                f"The stage ended before this test: {format_clause(self._ended)}.",
                "Correct the error under 'why', then run stage collectives again.",
            )
        return (
            "The stage completed without this test, which the intent did not require when the stage ran.",
            "Run stage collectives again with the current intent.",
        )

    def _make_verdict(
        self,
        test: Test,
        findings: tuple[Finding, ...],
        passes: typing.Optional[bool] = None,
        figure: typing.Optional[CollectiveFigure] = None,
        floor_gbs: typing.Optional[float] = None,
    ) -> GroupVerdict:
        """Return the verdict on a test. The single-rail tests that search for a slow port get no findings, because some
        of them are expected to be slow or to give no figure.

        :param findings: findings on the test
        :param passes: whether the test is proven and fast enough; None if it is not proven or gave no figure
        :param figure: bus bandwidth of the test; None if it gave none
        :param floor_gbs: lowest bus bandwidth in GB/s that passes; None if it is unknown
        """
        return GroupVerdict(() if isinstance(test, RailTrial) else findings, passes, figure, floor_gbs)

    def _learn_gpus(self, log: NcclLog) -> None:
        """Store which GPU NCCL uses with the HCA of each rail according to a log, for later tests of one rail.

        The numbers of the GPUs do not show which GPU is beside which HCA.
        """
        seen = learn_gpus(log, self.ground, self._wanted.gpus_per_node)
        self.ground = dataclasses.replace(self.ground, gpu_of_rail={**self.ground.gpu_of_rail, **seen})

    def compare_nodes(
        self, figures: typing.Mapping[str, CollectiveFigure], results: typing.Mapping[Test, RanTest]
    ) -> dict[str, Finding]:
        """Compare the nodes that were tested alone, in this round and before, and return the finding on each node, by
        node.

        :param figures: figures of this round by node
        :param results: results of this round by test
        """
        self._alone.update(figures)
        found = {item.subject: item for item in judge_inside(self._alone)}
        slow = {node for node, item in found.items() if item.status == FAIL}
        fast = {node: figure for node, figure in self._alone.items() if node not in slow}
        if fast:
            self.inside = self._find_slowest(fast, results)
        return found

    def _find_slowest(
        self, figures: typing.Mapping[str, CollectiveFigure], results: typing.Mapping[Test, RanTest]
    ) -> NodeFigure:
        """Return the figure of the slowest of these nodes, with its algorithm.

        If the node did not run in this round, the algorithm is that of the previous figure.

        :param figures: figures of the nodes that continue to take part; at least one
        :param results: results of this round by test
        """
        node = min(figures, key=lambda name: figures[name].bus_gbs)
        log = next((ran.log for test, ran in results.items() if test.nodes == (node,)), None)
        before = self.inside.algorithm if self.inside is not None else None
        return NodeFigure(
            figures[node].bus_gbs, find_algorithm(figures[node], log.restore()) if log is not None else before
        )
