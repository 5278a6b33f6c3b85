# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of nccl-tests in pods that take whole nodes: started round by round as the course of each collective says, read,
and removed.

mpirun runs in the pod of the first node of a group, and this starts its daemons in the other pods (see
_render/measurement/collectives.py). Each group of a round has connections of its own, since trials of two rails may use
the same pods at the same time.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import io
import math
import time
import typing

from ..._analysis.schedule.collectives import Repeat, Test, announce
from ..._analysis.schedule.halving import RailTrial
from ..._check.collectives.check import Facts, list_courses
from ..._check.collectives.course import LATENCY, Course
from ..._check.collectives.repeats import MOST_CHANGES
from ..._check.collectives.soak import Readings, compare_readings
from ..._model.base.errors import ParseError, RdmaError, wrap_unforeseen
from ..._model.base.text import both_ends, folded
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.job.kept_log import KeptLog, keep_log
from ..._model.kubernetes.measuring import NAMESPACE, POLICY
from ..._model.kubernetes.objects import CommandResult
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.collectives import (
    MOST_HCAS,
    CollectiveHca,
    CollectivePod,
    CollectiveRun,
    Collectives,
    CollectivesFacts,
    RanTest,
)
from ..._model.run.lease import LeaseLost
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.job import nccl_log, nccl_tests
from ..._parse.kubernetes.multus import training_pod
from ..._parse.kubernetes.resource import ResourceError
from ..._parse.pods import probe as pod_probe
from ..._parse.pods.agent import Request, parse_requests
from ..._parse.pods.rdma_counters import parse_counters
from ..._render.measurement import collectives as render
from ..._render.measurement import commands
from .client_server import find_failure, line_of
from .measuring_plan import Plan, PodOfNode, Say, workers
from .pods import Pods

#: seconds of a short command in a pod, of the look into it, and between two looks at the requests of mpirun
SHORT, LOOK, PAUSE = 30.0, 60.0, 1.0
#: seconds after which a run that takes its time is told of, that mpirun may take longer than its limit, and that all
#: logs of a run may take
TOLD, SLACK, LOGS = 60.0, 30.0, 120.0
#: seconds of the CPU that the log of one pod may take: 8 MiB as NCCL writes them take 0.3. Seconds after the reading in
#: which all logs of a run are to be parsed: those of 1,000 pods take 100
PARSE_CPU, PARSING = 5.0, 300.0
#: of the ranks of a pod, how many times as many its log may name: more are made up
_MOST_RANKS = 32
#: rows of a table: its sizes are doubled, and have 64 bits
_MOST_ROWS = 64
#: once a group hung, a test of a rail that looks for who hangs takes so many times the slowest sound one, and no fewer
#: seconds
TIMES_SLOWEST, LEAST_SECONDS = 5, 120
#: times the limit of a test that tests of one collective may hang together: a node that is sound in each pair can let
#: all larger groups hang
MOST_HUNG = 3
#: seconds before the end of the pods in which no test is begun
RESERVE = 900.0
#: pods of one group that are worked in at the same time
AT_ONCE = 16
#: what protects mpirun, and what does not
_OPEN = (
    f"mpirun takes commands from any pod that reaches its pod. The NetworkPolicy {NAMESPACE}/{POLICY} admits pods of"
    " this run only, on the pods' own network and where the CNI enforces it: docs/security.md"
)
#: text that no command prints
_NEVER = "\0"
_LINES = 6


@dataclasses.dataclass(frozen=True)
class _Place:
    """A pod that can be used."""

    pod: RdmaPod
    host: str
    devices: tuple[str, ...]


class CollectivesBench:
    """One stage: no pod outlives it, whatever happens in between."""

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        wanted: Collectives,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: Say,
        seen: Facts,
    ) -> None:
        """:param plan: with the one fabric over which collectives run
        :param seen: rates of the rails and places of the nodes, from which floors and groups are made
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
        self._pods = Pods(cluster, plan, clock, pause, say)
        #: by node
        self._places: dict[str, _Place] = {}
        self._end = math.inf
        #: seconds of the slowest sound test of this collective before one hung, and those for which rounds of its tests
        #: hung
        self._slowest = self._hung = 0.0

    def run(self) -> CollectivesFacts:
        """Start the pods, go the course of each collective, and remove the pods.

        :raises ApiError: the server cannot be reached before anything was made
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
            with workers(min(self._plan.parallel, 4 * len(self._plan.nodes))) as pool:
                pods = self._start(pool)
                self._end = self._clock() + render.compute_lifetime_seconds(self._wanted) - RESERVE
                for course in list_courses(self._wanted, fabric, self._seen, pods):
                    counted = announce(course.leaves, len(fabric_rails(fabric)), self._wanted.gpus_per_node)
                    small = counted.tests.get("two nodes", 0) if self._wanted.latency and course.name == LATENCY else 0
                    announced += sum(counted.tests.values()) + small + course.soaks
                    steps = ", ".join(f"{number} of {kind}" for kind, number in counted.tests.items())
                    steps += f", {small} of small messages" if small else ""
                    steps += f", a soak of {self._wanted.soak_minutes} minutes" if course.soaks else ""
                    self._say(
                        f"{course.name}: {steps}; {counted.for_a_fault} more at most for a slow port,"
                        f" {MOST_CHANGES + 1} to tell causes apart; {self._wanted.seconds} s each at most"
                    )
                    ended = self._go(pool, course, runs)
                    if ended:
                        self._say(f"{course.name}: {ended}")
                        break
        finally:
            # also when the run is interrupted: a pod that stays holds the GPUs of its node
            remaining = self._pods.end()
        return CollectivesFacts(fabric.name, pods, tuple(runs), announced, ended, leftovers, remaining)

    def _start(self, pool: concurrent.futures.Executor) -> tuple[CollectivePod, ...]:
        """Start the pods, and look which HCAs each of them got."""
        fabric = self._fabric
        definitions = {
            node: render.render_pod(node, self._wanted, fabric, self._plan.cluster, self._plan.run)
            for node in self._plan.nodes
        }
        started = self._pods.start_whole(pool, fabric, definitions)
        looked = tuple(pool.map(self._look_or_not, started))
        for (item, _found), pod in zip(started, looked):
            if pod.error:
                self._say(f"{fabric.name} {pod.node}: {pod.error}")
            else:
                self._places[pod.node] = _Place(item, pod.host, tuple(hca.device for hca in pod.hcas))
        return looked

    def _look_or_not(self, started: PodOfNode) -> CollectivePod:
        """Look into a pod. What nobody foresaw in what it shows is an error of this pod."""
        item, found = started
        try:
            return self._look(item, found)
        except LeaseLost:
            raise
        except Exception as error:
            text = str(error) if isinstance(error, RdmaError) else str(wrap_unforeseen(error, "the look into the pod"))
            return CollectivePod(item.node, item.name, error=text, cause="look")

    def _look(self, item: RdmaPod, found: Resource) -> CollectivePod:
        if item.error:
            return CollectivePod(item.node, item.name, error=item.error, cause=item.cause)
        try:
            host = training_pod(found).host
        except ResourceError as error:
            return CollectivePod(item.node, item.name, error=str(error), cause="look")
        # a pod of a network that is shared has the HCAs themselves, and nothing names them in its environment
        shell = self._shell(item, " ".join(self._plan.rails.get(self._fabric.name, {}).get(item.node, {})))
        try:
            greeting = shell.wait(LOOK)
        finally:
            shell.close()
        failure = find_failure(greeting)
        if failure is not None:
            return CollectivePod(
                item.node, item.name, host, error=f"no look into the pod: {failure.evidence}", cause=failure.kind
            )
        hcas, wrong = self._hcas(item.node, pod_probe.parse(greeting.output))
        return CollectivePod(item.node, item.name, host, hcas, wrong, "rail" if wrong else "")

    def _hcas(self, node: str, probe: pod_probe.Probe) -> tuple[tuple[CollectiveHca, ...], str]:
        """Return the HCAs that a pod got, each with its rail, and why they are not those that a collective needs."""
        fabric, rails = self._fabric, self._plan.rails.get(self._fabric.name, {}).get(node, {})
        wanted = fabric_rails(fabric)
        found: list[CollectiveHca] = []
        if len(probe.addresses) > MOST_HCAS:
            return (), f"it shows {len(probe.addresses)} functions of this fabric; {MOST_HCAS} are the most"
        for address in probe.addresses or tuple(rails):
            function = probe.functions.get(address, address)
            rail = rails.get(function, 0 if wanted.stop == 1 and not rails else None)
            devices = probe.pci_devices.get(address, ())
            if rail is None:
                return (
                    tuple(found),
                    (
                        f"its function {address} is of {function}; HCAs of this fabric on the node:"
                        f" {', '.join(rails) or 'none known'}"
                    ),
                )
            if len(devices) != 1:
                return tuple(found), f"its function {address} has {len(devices)} RDMA devices; expected one"
            found.append(CollectiveHca(devices[0], rail, probe.numa_node(address)))
        missing = [rail for rail in wanted if rail not in {hca.rail for hca in found}]
        seen = ", ".join(f"{hca.device} of rail {hca.rail}" for hca in found) or "none"
        return tuple(found), f"it has no HCA of rail {', '.join(map(str, missing))}; it got: {seen}" if missing else ""

    def _shell(self, item: RdmaPod, addresses: str = "") -> Shell:
        """Open a connection to a pod.

        :param addresses: PCI addresses whose RDMA devices it shall name, with blanks between them
        :raises ApiError: the pod is not there or does not run
        """
        return self._cluster.shell(
            item.namespace, item.name, render.CONTAINER, commands.render_shell(addresses), self._clock
        )

    def _go(self, pool: concurrent.futures.Executor, course: Course, runs: list[RanTest]) -> str:
        """Run the tests of a course; return why it ended before its last one."""
        self._slowest = self._hung = 0.0
        hung: tuple[str, ...] = ()
        while True:
            tests = course.next()
            if not tests:
                return ""
            if self._clock() >= self._end:
                limit = render.compute_lifetime_seconds(self._wanted)
                return f"its pods end after {limit} s, and {len(tests)} tests at least are left"
            if self._hung >= MOST_HUNG * (self._wanted.seconds + SLACK):
                return (
                    f"groups hung for {self._hung:.0f} s together; at least one of {folded(hung, 8)} lets a group hang,"
                    " and which one is not decided"
                )
            ran = list(pool.map(lambda item: self._ran(course, *item), tests))
            runs += ran
            late = [result for result in ran if result.failure == "hang"]
            self._hung += max((result.seconds for result in late), default=0.0)
            if not self._hung:
                self._slowest = max([self._slowest, *(result.seconds for result in ran if not result.failure)])
            hung = min([nodes for nodes in (hung, *(result.nodes for result in late)) if nodes], key=len, default=())
            told = course.take(tests, {test: result for (test, _run), result in zip(tests, ran)})
            for (test, _run), result in zip(tests, ran):
                self._say(
                    f"{course.subject(test)}: {told[test]}{f' ({result.failure})' if result.failure else ''},"
                    f" {result.seconds:.0f} s"
                )

    def _ran(self, course: Course, test: Test, run: CollectiveRun) -> RanTest:
        """Run a test, and once more where the API server or a connection was lost meanwhile, which is no fault of the
        test."""
        start = self._clock()
        result = self._attempt(course, test, run)
        short = run.iterations is None
        lost = short and result.failure == "exec_lost"
        if lost and self._pods.gone(*(self._places[node].pod for node in run.nodes)) is None:
            self._say(f"{course.subject(test)}: {result.evidence}; once more")
            self._pods.await_api()
            # what is left of the first attempt would be read as a part of the second one
            self._logs(run, [self._places[node] for node in run.nodes])
            result = self._attempt(course, test, run)
        return dataclasses.replace(result, seconds=round(self._clock() - start, 1))

    def _attempt(self, course: Course, test: Test, run: CollectiveRun) -> RanTest:
        """Run a test. What nobody foresaw in what it printed is a failure of this test: the others are still to be
        made."""
        wanted = self._wanted
        if self._hung and isinstance(test, RailTrial):
            seconds = max(LEAST_SECONDS, math.ceil(TIMES_SLOWEST * self._slowest))
            wanted = dataclasses.replace(wanted, seconds=min(wanted.seconds, seconds))
        rail = test.rail if isinstance(test, RailTrial) else None
        result = RanTest(run.test, test.kind, run.nodes, rail, test.change if isinstance(test, Repeat) else "")
        try:
            if run.iterations is not None:
                return self._soak(course.subject(test), run, result)
            return self._run(course.subject(test), run, result, wanted)
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

    def _soak(self, subject: str, run: CollectiveRun, result: RanTest) -> RanTest:
        """Run a test for long, with the error counters of its HCAs before and after."""
        places = [self._places[node] for node in run.nodes]
        before, start = self._read_counters(places), self._clock()
        wanted = dataclasses.replace(self._wanted, seconds=render.compute_soak_seconds(self._wanted))
        result = self._run(subject, run, result, wanted)
        after, seconds = self._read_counters(places), round(self._clock() - start, 1)
        errors = (
            compare_readings(place.pod.node, device, before[place.pod.node], after[place.pod.node], seconds)
            for place in places
            for device in place.devices
        )
        return dataclasses.replace(result, errors=tuple(errors))

    def _read_counters(self, places: typing.Sequence[_Place]) -> dict[str, typing.Optional[Readings]]:
        """Return the counters of the RDMA devices in each pod, by node; None where it did not answer."""
        end = self._clock() + LOGS

        def read(place: _Place) -> typing.Optional[Readings]:
            try:
                shell = self._shell(place.pod)
            except ApiError:
                return None
            try:
                shell.wait(self._left(end, LOOK))
                found = self._at_once(shell, render.read_counters(place.devices), end)
            except ApiError:
                return None
            finally:
                shell.close()
            return parse_counters(found.output) if found.exit_code == 0 else None

        with workers(min(AT_ONCE, len(places))) as pool:
            return {place.pod.node: found for place, found in zip(places, pool.map(read, places))}

    def _run(self, subject: str, run: CollectiveRun, result: RanTest, wanted: Collectives) -> RanTest:
        places = [self._places[node] for node in run.nodes]
        gone = self._pods.gone(*(place.pod for place in places))
        if gone is not None:
            return dataclasses.replace(result, failure=gone.kind, evidence=gone.evidence)
        command = render.render_mpirun(run, wanted, self._fabric, self._plan.cluster, [place.host for place in places])
        opened: list[Shell] = []

        def shell(place: _Place) -> Shell:
            found = self._shell(place.pod)
            opened.append(found)
            # what it says at first is the look, which was taken
            found.wait(self._left(end, LOOK))
            return found

        # a pod that answers slowly holds the test for as long as it may take, however often it is asked
        end = self._clock() + render.AGENT_LIMIT + 2 * SHORT

        try:
            first = shell(places[0])
            if len(places) > 1:
                asks = shell(places[0])
                self._at_once(asks, render.place_agent(run), end)
                first.start(command)
                others = {place.host: place for place in places}
                self._start_daemons(subject, run, first, asks, others, shell, end, wanted.seconds)
            else:
                first.start(command)
            ended = self._await(subject, first, places, wanted.seconds)
        finally:
            for item in opened:
                item.close()
        text, failure = ended.output, find_failure(ended)
        result = dataclasses.replace(result, command=_line_of(run, ended))
        if failure is not None:
            kind = self._pods.gone(*(place.pod for place in places)) or failure
            result = dataclasses.replace(result, failure=kind.kind, evidence=both_ends(kind.evidence)[:300])
        found = nccl_tests.parse_text(text if text.endswith("\n") else f"{text}\n")
        log = self._logs(run, places)
        if len(found) != 1:
            why = f"{len(found)} runs of nccl-tests in what it printed: {_last_lines(text)}"
            before = f"{result.evidence}; " if result.evidence else ""
            return dataclasses.replace(
                result, log=log, failure=result.failure or "no_measurement", evidence=f"{before}{why}"[:500]
            )
        excess = max(
            len(found[0].ranks) - len(run.nodes) * self._wanted.gpus_per_node,
            len(found[0].rows) + len(found[0].unfinished) - _MOST_ROWS,
        )
        if excess > 0:
            # the pod that prints it would fill the fact of all
            why = (
                f"a table of {len(found[0].ranks)} ranks and {len(found[0].rows)} rows;"
                f" {len(run.nodes) * self._wanted.gpus_per_node} ranks run"
            )
            return dataclasses.replace(result, log=log, failure=result.failure or "no_measurement", evidence=why)
        return dataclasses.replace(result, figures=found[0], log=log)

    def _start_daemons(
        self,
        subject: str,
        run: CollectiveRun,
        first: Shell,
        asks: Shell,
        places: typing.Mapping[str, _Place],
        shell: typing.Callable[[_Place], Shell],
        end: float,
        seconds: int,
    ) -> None:
        """Answer the requests of mpirun until each other pod has its daemon, mpirun has ended, or its time is over.

        A daemon goes into the background, by itself or behind its command, which ends after some seconds.

        :param end: moment at which the time is over
        :param seconds: that the run takes at most
        """
        left, told = len(places) - 1, False
        while left > 0 and self._clock() < end:
            first.wait_for(_NEVER, PAUSE)
            running = first.running
            # a pod may ask for as many as it likes
            requests = parse_requests(self._at_once(asks, render.take_requests(run), end).output)[:left]
            with workers(min(AT_ONCE, len(requests))) as pool:
                codes = list(pool.map(lambda request: self._daemon(request, places, shell, end, seconds), requests))
            for request, code in zip(requests, codes):
                left -= 1
                self._at_once(asks, render.answer_request(run, request.number, code), end)
            if not running:
                return
            if not told and self._clock() >= end - render.AGENT_LIMIT / 2:
                told = True
                self._say(
                    f"{subject}: mpirun has asked for {len(places) - 1 - left} of {len(places) - 1} daemons after"
                    f" {render.AGENT_LIMIT / 2:.0f} s"
                )

    def _daemon(
        self,
        request: Request,
        places: typing.Mapping[str, _Place],
        shell: typing.Callable[[_Place], Shell],
        end: float,
        seconds: int,
    ) -> int:
        """Start a daemon in the pod of its host, and return its exit code. Only pods of the group get one: the words
        come from a pod."""
        place = places.get(request.host)
        if place is None or self._clock() >= end:
            return 1
        command = render.start_daemon(request.words, seconds)
        ended = self._at_once(shell(place), command, end, render.AGENT_LIMIT)
        return ended.exit_code if ended.exit_code is not None else 1

    def _at_once(self, shell: Shell, command: typing.Sequence[str], end: float, limit: float = SHORT) -> CommandResult:
        """Run a short command.

        :param end: moment at which its time is over
        """
        if not shell.open:
            return CommandResult("", None, error="the connection was closed before")
        shell.start(command)
        return shell.wait(self._left(end, limit))

    def _left(self, end: float, limit: float) -> float:
        """Return the seconds until a moment, at most ``limit``."""
        return min(limit, max(0.0, end - self._clock()))

    def _await(self, subject: str, shell: Shell, places: typing.Sequence[_Place], seconds: int) -> CommandResult:
        """Wait for mpirun, and tell of it now and then.

        :param seconds: that it may take
        """
        pods = [place.pod for place in places]
        start = self._clock()
        limit = seconds + SLACK

        def lost() -> str:
            gone = self._pods.gone(*pods)
            return gone.evidence if gone is not None else ""

        while shell.running and not lost() and self._clock() < start + limit:
            since = self._clock()
            shell.wait_for(_NEVER, min(TOLD, max(0.0, start + limit - since)))
            if shell.running and self._clock() - since >= TOLD:
                self._say(f"{subject}: runs for {self._clock() - start:.0f} s, {seconds} s at most")
        return shell.wait(0.0 if shell.running else SHORT, lost)

    def _logs(self, run: CollectiveRun, places: typing.Sequence[_Place]) -> KeptLog:
        """Read the logs of all ranks, and remove them. A pod whose log can't be read, names too much or takes too long
        has none: its ranks are then not proven."""
        end = self._clock() + LOGS
        with workers(min(AT_ONCE, len(places))) as pool:
            texts = pool.map(lambda place: self._log(run, place, end), places)
            try:
                log = nccl_log.parse_files(
                    (
                        (place.pod.name, self._own_log(run, place, text, end + PARSING))
                        for place, text in zip(places, texts)
                    ),
                    hosts={place.pod.name: place.host for place in places},
                )
            except ParseError:
                # more than a log of its length can be about: nothing of it is proven
                return KeptLog()
        return keep_log(log, self._wanted.gpus_per_node)

    def _own_log(self, run: CollectiveRun, place: _Place, text: str, end: float) -> typing.Iterable[str]:
        """Return the lines of a pod's log, or none where those about its own host name more ranks than its GPUs
        explain, or take more of the CPU than a log of NCCL's: the other pods of the run keep theirs.

        :param end: moment from which no log is parsed
        """
        most = _MOST_RANKS * self._wanted.gpus_per_node
        if self._clock() >= end:
            why = f"the logs before it took {PARSING:.0f} s"
        else:
            try:
                if nccl_log.names_at_most(most, limit_cpu(lines_of(text), PARSE_CPU), place.host):
                    return lines_of(text)
                why = f"it names more than {most} processes and ranks, or more about them than NCCL writes"
            except _TooSlow:
                why = f"{PARSE_CPU:g} s of CPU time did not suffice for its {len(text)} characters"
        self._say(f"{run.name}: the log of node {place.pod.node} is left out, and nothing of it is proven: {why}")
        return ()

    def _log(self, run: CollectiveRun, place: _Place, end: float) -> str:
        """Read the logs in a pod, as far as it gives them until ``end``."""
        pieces: list[str] = []
        try:
            shell = self._shell(place.pod)
        except ApiError:
            return ""
        try:
            shell.wait(self._left(end, LOOK))
            for piece in range(render.MOST_PIECES):
                read = self._at_once(shell, render.read_logs(run, piece), end)
                if read.exit_code != 0 or not read.output:
                    break
                pieces.append(read.output)
            self._at_once(shell, render.remove_logs(run), end)
        except ApiError:
            # what came so far is not all, and tells so
            pass
        finally:
            shell.close()
        return "".join(pieces)


class _TooSlow(Exception):
    """Lines took more CPU time than they may."""


def limit_cpu(lines: typing.Iterable[str], seconds: float) -> typing.Iterator[str]:
    """Return the lines, as long as this thread has not used more CPU time for them.

    :param seconds: of the CPU, which other threads and programs take nothing of
    :raises _TooSlow: it has used more
    """
    end = time.thread_time() + seconds
    for line in lines:
        if time.thread_time() > end:
            raise _TooSlow
        yield line


def lines_of(text: str) -> typing.Iterator[str]:
    """Return the lines of a text one by one: a list of them would take many times the memory of the text."""
    return iter(io.StringIO(text))


def unstarted(plan: Plan, reason: str) -> CollectivesFacts:
    """Return the answer of a run that starts no pod."""
    (fabric,) = plan.fabrics
    return CollectivesFacts(fabric.name, tuple(CollectivePod(node, error=reason) for node in plan.nodes))


def _line_of(run: CollectiveRun, ended: CommandResult) -> str:
    """For the report: what ran, without the script before it, how it ended and how long it took."""
    words = f"{run.test}_perf on {folded(run.nodes, 4)}"
    return line_of(dataclasses.replace(ended, command=words))


def _last_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return both_ends(" | ".join(lines[-_LINES:])) or "nothing"
