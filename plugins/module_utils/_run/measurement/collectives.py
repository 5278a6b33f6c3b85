# SPDX-License-Identifier: GPL-3.0-or-later

"""Run nccl-tests in pods that use whole nodes, collective by collective and round by round.

mpirun runs in the pod of the first node of a group, and mpirun_daemons.py starts the daemons that it requests in the
other pods. Each group of nodes in a round has its own connections to the pods, because tests of two rails may use the
same pods at the same time.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import typing

from ..._analysis.schedule.collectives import Repeat, Test, count_planned_tests
from ..._analysis.schedule.halving import RailTrial
from ..._check.collectives.check import Facts, list_courses
from ..._check.collectives.course import LATENCY, Course
from ..._check.collectives.repeats import MOST_CHANGES
from ..._model.base.errors import RdmaError, wrap_unforeseen
from ..._model.base.text import both_ends, join_first
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.kubernetes.measuring import BY_LIMIT, EXCLUDED, NAMESPACE, POLICY
from ..._model.kubernetes.objects import CommandResult
from ..._model.kubernetes.observers import ObserversFacts
from ..._model.measurement.collectives import CollectivePod, CollectiveRun, Collectives, CollectivesFacts, RanTest
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.job.nccl import tests as nccl_tests
from ..._render.measurement import collectives as render
from ..._render.measurement import mpirun_agent
from .client_server import find_failure, line_of
from .collective_logs import LogReader
from .collective_pods import LOOK, SHORT, CollectivePlace, CollectivePods, compute_left, run_short
from .measuring_plan import Plan, Say, start_workers
from .mpirun_daemons import NEVER, MpirunDaemons
from .pods.measuring_pods import MeasuringPods
from .soak_counters import SoakCounters, compare_nodes, list_physical

#: seconds after which a long run is reported, and by which mpirun may exceed its limit
TOLD, SLACK = 60.0, 30.0
#: rows of a table: its sizes are doubled, and have 64 bits
_MOST_ROWS = 64
#: once a group hung, a test of a rail takes at most so many times the slowest sound test, and at least so many seconds
TIMES_SLOWEST, LEAST_SECONDS = 5, 120
#: times the limit of a test that all tests of one collective may hang together: a node that is sound in each pair can
#: make all larger groups hang
MOST_HUNG = 3
#: seconds before the end of the pods in which no test begins
RESERVE = 900.0
#: the message about the protection of mpirun
_OPEN = (
    f"mpirun accepts commands from every pod that can reach its pod. The NetworkPolicy {NAMESPACE}/{POLICY} admits"
    " only pods of this run, but only on the pod network, and only if the CNI enforces it: see docs/security.md"
)
_LINES = 6
#: characters of the reason for which a course ends
_MOST_REASON = 600


class CollectivesRun:
    """A run of stage collectives: it starts the pods, runs the tests, and removes the pods in all cases."""

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        wanted: Collectives,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        seen: Facts,
        observers: typing.Optional[ObserversFacts] = None,
    ) -> None:
        """Create a run of the collectives; no pod is created yet.

        :param plan: nodes and settings of the run, with exactly one fabric, over which the collectives run
        :param wanted: settings of the collectives, from the intent
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param pause: function that sleeps for a number of seconds
        :param say: function that shows a line of progress to the user
        :param seen: facts with the rates of the rails and the topology of the nodes, from which floors and groups are
            computed
        :param observers: observers of the run, which read the counters of the physical functions for a soak (a long
            test); None if the run has no observers
        """
        (self._fabric,) = plan.fabrics
        self._cluster, self._plan, self._wanted, self._clock, self._pause, self._say, self._seen = (
            cluster,
            plan,
            wanted,
            clock,
            pause,
            say,
            seen,
        )
        self._pods = MeasuringPods(cluster, plan, clock, pause, say)
        self._whole_pods = CollectivePods(cluster, plan, wanted, clock, say, self._pods, list_physical(seen.hcas))
        self._soak_counters = SoakCounters(cluster, observers, clock, self._whole_pods.open_shell)
        self._log_reader = LogReader(self._whole_pods.open_shell, wanted.gpus_per_node, clock, say)
        self._daemons = MpirunDaemons(clock, say)
        self._end = math.inf
        #: seconds of the slowest sound test of this collective before a test hung, and seconds for which its tests hung
        self._slowest = self._hung = 0.0

    def run(self) -> CollectivesFacts:
        """Start the pods, run the tests of each collective, and remove the pods. Return the pods and the completed
        tests.

        :raises ApiError: the API server cannot be reached before a pod was created
        """
        fabric = self._fabric
        leftovers = self._pods.remove()
        if leftovers:
            self._say(f"removed the pods of an interrupted earlier run: {', '.join(leftovers)}")
        if len(self._plan.nodes) > 1:
            self._say(_OPEN)
        pods: tuple[CollectivePod, ...] = ()
        runs: list[RanTest] = []
        announced, ended = 0, ""
        try:
            with start_workers(min(self._plan.parallel, 4 * len(self._plan.nodes))) as pool:
                pods = self._whole_pods.start(pool)
                self._end = self._clock() + render.compute_lifetime_seconds(self._wanted) - RESERVE
                for course in list_courses(self._wanted, fabric, self._seen, pods):
                    counted = count_planned_tests(course.leaves, len(fabric_rails(fabric)), self._wanted.gpus_per_node)
                    small = counted.tests.get("two nodes", 0) if self._wanted.latency and course.name == LATENCY else 0
                    announced += sum(counted.tests.values()) + small + course.soaks
                    steps = ", ".join(f"{number} of {kind}" for kind, number in counted.tests.items())
                    steps += f", {small} of small messages" if small else ""
                    steps += f", a soak of {self._wanted.soak_minutes} minutes" if course.soaks else ""
                    self._say(
                        f"{course.name}: {steps}; at most {counted.for_a_fault} more for a slow port,"
                        f" {MOST_CHANGES + 1} more to distinguish the causes; at most {self._wanted.seconds} s each"
                    )
                    ended = self._run_course(pool, course, runs)
                    if ended:
                        self._say(f"{course.name}: {ended}")
                        break
        finally:
            # also when the run is interrupted: a pod that stays holds the GPUs of its node
            remaining = self._pods.end()
        image = self._wanted.image
        return CollectivesFacts(fabric.name, pods, tuple(runs), announced, ended, leftovers, remaining, image)

    def _run_course(self, pool: concurrent.futures.Executor, course: Course, runs: list[RanTest]) -> str:
        """Run all tests of one collective. Return the reason if they ended early. Return an empty text otherwise.

        :param pool: threads that run the tests of one step at the same time
        :param course: planner of the tests of the collective
        :param runs: list to which the results are appended
        """
        self._slowest = self._hung = 0.0
        hung: tuple[str, ...] = ()
        while True:
            try:
                tests = course.next()
            except Exception as error:
                return _tell_unforeseen(course, error)
            if not tests:
                return ""
            if self._clock() >= self._end:
                limit = render.compute_lifetime_seconds(self._wanted)
                return f"the pods end after {limit} s, and at least {len(tests)} tests remain"
            if self._hung >= MOST_HUNG * (self._wanted.seconds + SLACK):
                return (
                    f"groups hung for {self._hung:.0f} s in total; at least one of the nodes {join_first(hung, 8)}"
                    " makes a group hang, but the node could not be determined"
                )
            ran = list(pool.map(lambda item: self._run_test(course, *item), tests))
            runs += ran
            late = [result for result in ran if result.failure == "hang"]
            self._hung += max((result.seconds for result in late), default=0.0)
            if not self._hung:
                self._slowest = max([self._slowest, *(result.seconds for result in ran if not result.failure)])
            hung = min([nodes for nodes in (hung, *(result.nodes for result in late)) if nodes], key=len, default=())
            try:
                told = course.take(tests, {test: result for (test, _run), result in zip(tests, ran)})
            except Exception as error:
                return _tell_unforeseen(course, error)
            for (test, _run), result in zip(tests, ran):
                self._say(
                    f"{course.subject(test)}: {told[test]}{f' ({result.failure})' if result.failure else ''},"
                    f" {result.seconds:.0f} s"
                )

    def _run_test(self, course: Course, test: Test, run: CollectiveRun) -> RanTest:
        """Run a test, and return its result. If the connection to the API server or to a pod was lost, run it once
        more, because this is not a fault of the fabric. A test that runs for a long time (a soak) is not repeated,
        because its pods do not live long enough.

        :param course: planner of the tests of the collective
        :param test: group of nodes, single-rail test or repetition that is due
        :param run: nodes and settings of the test
        """
        start = self._clock()
        result = self._try_test(course, test, run)
        # a soak is not made again, for which the pods do not live long enough
        if (
            result.failure == "exec_lost"
            and run.iterations is None
            and self._pods.gone(*(self._whole_pods.places[node].pod for node in run.nodes)) is None
        ):
            self._say(f"{course.subject(test)}: {result.evidence}; the test is repeated")
            self._pods.await_api()
            # a log of the first attempt would be read as a part of the second one
            self._log_reader.read_logs(run, [self._whole_pods.places[node] for node in run.nodes])
            result = self._try_test(course, test, run)
        return dataclasses.replace(result, seconds=round(self._clock() - start, 1))

    def _try_test(self, course: Course, test: Test, run: CollectiveRun) -> RanTest:
        """Run a test once, and return its result. An error of the API server, or an unexpected error in the output,
        becomes the failure of this test, so that the other tests still run.

        :param course: planner of the tests of the collective
        :param test: group of nodes, single-rail test or repetition that is due
        :param run: nodes and settings of the test
        :raises LeaseLost: the run has lost the Lease of the cluster
        """
        wanted = self._wanted
        if self._hung and isinstance(test, RailTrial):
            seconds = max(LEAST_SECONDS, math.ceil(TIMES_SLOWEST * self._slowest))
            wanted = dataclasses.replace(wanted, seconds=min(wanted.seconds, seconds))
        rail = test.rail if isinstance(test, RailTrial) else None
        result = RanTest(run.test, test.kind, run.nodes, rail, test.change if isinstance(test, Repeat) else "")
        try:
            if run.iterations is not None:
                return self._run_soak_test(course.subject(test), run, result)
            return self._run_mpirun(course.subject(test), run, result, wanted)
        except LeaseLost:
            raise
        except ApiError as error:
            return dataclasses.replace(result, failure="exec_lost", evidence=str(error)[:300])
        except RdmaError as error:
            return dataclasses.replace(result, failure="not_run", evidence=str(error)[:300])
        except Exception as error:
            return dataclasses.replace(
                result, failure="no_measurement", evidence=str(wrap_unforeseen(error, run.name))[:300]
            )

    def _run_soak_test(self, subject: str, run: CollectiveRun, result: RanTest) -> RanTest:
        """Run a test for a long time (a soak), and return its result with the growth of the error counters of all HCAs
        in it.

        :param subject: name of the test, for messages
        :param run: nodes and settings of the test
        :param result: result without figures, which is completed
        """
        places = [self._whole_pods.places[node] for node in run.nodes]
        before, start = self._soak_counters.read(places), self._clock()
        wanted = dataclasses.replace(self._wanted, seconds=render.compute_soak_seconds(self._wanted))
        result = self._run_mpirun(subject, run, result, wanted)
        after, seconds = self._soak_counters.read(places), round(self._clock() - start, 1)
        return dataclasses.replace(result, errors=compare_nodes(places, before, after, seconds))

    def _run_mpirun(self, subject: str, run: CollectiveRun, result: RanTest, wanted: Collectives) -> RanTest:
        places = [self._whole_pods.places[node] for node in run.nodes]
        gone = self._pods.gone(*(place.pod for place in places))
        if gone is not None:
            return dataclasses.replace(result, failure=gone.kind, evidence=gone.evidence)
        command = render.render_mpirun(run, wanted, self._fabric, self._plan.cluster, [place.host for place in places])
        opened: list[Shell] = []

        def shell(place: CollectivePlace) -> Shell:
            found = self._whole_pods.open_shell(place.pod)
            opened.append(found)
            # the first output of a connection has the HCAs of the pod, which were read at the start
            found.wait(compute_left(self._clock, end, LOOK))
            return found

        # a pod that answers slowly delays the test until this moment at most, for all requests together
        end = self._clock() + mpirun_agent.AGENT_LIMIT + 2 * SHORT

        try:
            first = shell(places[0])
            if len(places) > 1:
                asks = shell(places[0])
                run_short(asks, mpirun_agent.place_agent(run), self._clock, end)
                first.start(command)
                others = {place.host: place for place in places}
                self._daemons.start(subject, run, first, asks, others, shell, end, wanted.seconds)
            else:
                first.start(command)
            ended = self._await_mpirun(subject, first, places, wanted.seconds)
        finally:
            for item in opened:
                item.close()
        text, failure = ended.output, find_failure(ended)
        result = dataclasses.replace(result, command=_describe_run(run, ended))
        if failure is not None:
            kind = self._pods.gone(*(place.pod for place in places)) or failure
            result = dataclasses.replace(result, failure=kind.kind, evidence=both_ends(kind.evidence)[:300])
        found = nccl_tests.parse_text(text if text.endswith("\n") else f"{text}\n")
        log = self._log_reader.read_logs(run, places)
        if len(found) != 1:
            why = _describe_output(text, len(found), result.evidence)
            before = f"{result.evidence}; " if result.evidence else ""
            return dataclasses.replace(
                result, log=log, failure=result.failure or "no_measurement", evidence=f"{before}{why}"[:500]
            )
        excess = max(
            len(found[0].ranks) - len(run.nodes) * self._wanted.gpus_per_node,
            len(found[0].rows) + len(found[0].unfinished) - _MOST_ROWS,
        )
        if excess > 0:
            # one pod must not fill the fact of all pods
            why = (
                f"the output has a table of {len(found[0].ranks)} ranks and {len(found[0].rows)} rows;"
                f" {len(run.nodes) * self._wanted.gpus_per_node} ranks were started"
            )
            return dataclasses.replace(result, log=log, failure=result.failure or "no_measurement", evidence=why)
        return dataclasses.replace(result, figures=found[0], log=log)

    def _await_mpirun(
        self, subject: str, shell: Shell, places: typing.Sequence[CollectivePlace], seconds: int
    ) -> CommandResult:
        """Wait for mpirun, report its progress each minute, and return its exit code and output.

        :param subject: subject of the test, for the progress
        :param shell: shell in which mpirun runs
        :param places: pods of the test. If one of them is gone, the wait ends
        :param seconds: time limit of mpirun in seconds
        """
        pods = [place.pod for place in places]
        start = self._clock()
        limit = seconds + SLACK

        def lost() -> str:
            gone = self._pods.gone(*pods)
            return gone.evidence if gone is not None else ""

        while shell.running and not lost() and self._clock() < start + limit:
            since = self._clock()
            shell.wait_for(NEVER, min(TOLD, max(0.0, start + limit - since)))
            if shell.running and self._clock() - since >= TOLD:
                self._say(f"{subject}: running for {self._clock() - start:.0f} s, at most {seconds} s")
        return shell.wait(0.0 if shell.running else SHORT, lost)


def make_unstarted_facts(plan: Plan, reason: str) -> CollectivesFacts:
    """Return the facts of a run of collectives that starts no pod. Each node of the plan has a pod with the reason as
    its error.

    :param plan: nodes and settings of the run, with exactly one fabric
    """
    (fabric,) = plan.fabrics
    return CollectivesFacts(fabric.name, tuple(CollectivePod(node, error=reason) for node in plan.nodes))


def list_excluded(nodes: typing.Iterable[str]) -> tuple[CollectivePod, ...]:
    """Return placeholders for the pods of nodes that ``--limit`` excludes. The error of each placeholder says that its
    node is excluded.

    :param nodes: names of the excluded nodes
    """
    return tuple(CollectivePod(node, error=EXCLUDED, cause=BY_LIMIT) for node in nodes)


def _tell_unforeseen(course: Course, error: Exception) -> str:
    """Return the message for an unexpected error that ends the tests of a collective. Their results so far are kept by
    the caller.

    :param course: planner of the tests of the collective
    :param error: the unexpected error
    """
    return f"the output of the tests could not be evaluated: {wrap_unforeseen(error, course.name)}"[:_MOST_REASON]


def _describe_run(run: CollectiveRun, ended: CommandResult) -> str:
    """Return a line of text about a test that ran: its program and nodes instead of the whole command, its exit code
    and its duration.

    :param run: nodes and settings of the test
    :param ended: result of mpirun
    """
    words = f"{run.test}_perf on {join_first(run.nodes, 4)}"
    return line_of(dataclasses.replace(ended, command=words))


def _describe_output(text: str, runs: int, known: str) -> str:
    """Return an output that is not that of one run of nccl-tests, in words, with its last lines.

    :param text: output of mpirun
    :param runs: number of runs of nccl-tests in the output
    :param known: text that the reader sees already; last lines that it contains are left out
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = both_ends(" | ".join(line for line in lines[-_LINES:] if line.rstrip(".") not in known))
    what = f"the results of {runs} runs of nccl-tests instead of 1" if runs else "no results of nccl-tests"
    if not lines:
        return "the output is empty"
    return f"the output contains {what}" + (f". Its last lines: {last}" if last else "")
