# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and removes the logs that NCCL writes in the pods of a collective, within limits of size and CPU time."""

from __future__ import annotations

import io
import time
import typing

from ..._model.base.errors import ParseError
from ..._model.job.kept_log import KeptLog, keep_log
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.collectives import CollectiveRun
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.job.nccl import log as nccl_log
from ..._render.measurement import collectives as render
from .collective_pods import LOOK, CollectivePlace, compute_left, run_short
from .measuring_plan import Say, start_workers

#: seconds that all logs of a run may take
LOGS = 120.0
#: seconds of the CPU that the log of one pod may take: 8 MiB as NCCL writes them take 0.3. Seconds after the reading in
#: which all logs of a run are to be parsed: those of 1,000 pods take 100
PARSE_CPU, PARSING = 5.0, 300.0
#: times as many ranks as the pod has GPUs, that its log may name: a log with more is forged
_MOST_RANKS = 32
#: pods whose logs are read at the same time
_AT_ONCE = 16


class LogReader:
    """A client that reads, parses and removes the logs of NCCL in the pods of one test of a collective."""

    def __init__(
        self, open_shell: typing.Callable[[RdmaPod], Shell], gpus_per_node: int, clock: Clock, say: Say
    ) -> None:
        self._open_shell, self._gpus_per_node, self._clock, self._say = open_shell, gpus_per_node, clock, say

    def read_logs(self, run: CollectiveRun, places: typing.Sequence[CollectivePlace]) -> KeptLog:
        """Return the parsed logs of NCCL of all ranks, and remove the files in the pods. A log that cannot be read, is
        implausibly large or takes too long to parse is left out, and the devices and channels of the ranks in its pod
        are then unknown. If all logs together are implausibly large, the result is empty.

        :param run: nodes and settings of the test
        :param places: pods in which the test ran
        """
        end = self._clock() + LOGS
        with start_workers(min(_AT_ONCE, len(places))) as pool:
            texts = pool.map(lambda place: self._read_log(run, place, end), places)
            logs = nccl_log.PodLogs()
            try:
                for place, text in zip(places, texts):
                    self._add_log(logs, run, place, text, end + PARSING)
            except ParseError:
                # the logs name more than logs of their length can
                return KeptLog()
        return keep_log(logs.build_log(), self._gpus_per_node)

    def _add_log(
        self, logs: nccl_log.PodLogs, run: CollectiveRun, place: CollectivePlace, text: str, end: float
    ) -> None:
        """Parse the log of a pod, and add it to the logs of the run. A log that names too many ranks for the GPUs of
        the pod, or that needs too much CPU time, is left out and reported to the user. The logs of the other pods stay.

        :param logs: logs of the run
        :param run: nodes and settings of the test
        :param place: pod that wrote the log, with its host name
        :param text: text of the log
        :param end: monotonic time in seconds after which no log is parsed
        :raises ParseError: all logs together name more than logs of their length can
        """
        most = _MOST_RANKS * self._gpus_per_node
        if self._clock() >= end:
            why = f"parsing the logs before this log took {PARSING:.0f} s"
        else:
            try:
                if logs.add(place.pod.name, place.host, limit_cpu(lines_of(text), PARSE_CPU), most):
                    return
                why = (
                    f"the log names more than {most} processes and ranks, or has more data about them than NCCL writes"
                )
            except _TooSlow:
                why = f"parsing its {len(text)} characters takes more than {PARSE_CPU:g} s of CPU time"
        self._say(
            f"{run.name}: the log of node {place.pod.node} is ignored, so its contents could not be verified: {why}"
        )

    def _read_log(self, run: CollectiveRun, place: CollectivePlace, end: float) -> str:
        """Return the text of the logs in a pod, and remove the files. After an error, or at the time ``end``, return
        the text that was read by then, which may be empty.

        :param run: nodes and settings of the test
        :param place: pod that wrote the logs, with its host name
        :param end: monotonic time in seconds at which reading ends
        """
        pieces: list[str] = []
        try:
            shell = self._open_shell(place.pod)
        except ApiError:
            return ""
        try:
            shell.wait(compute_left(self._clock, end, LOOK))
            for piece in range(render.MOST_PIECES):
                read = run_short(shell, render.read_logs(run, piece), self._clock, end)
                if read.exit_code != 0 or not read.output:
                    break
                pieces.append(read.output)
            run_short(shell, render.remove_logs(run), self._clock, end)
        except ApiError:
            # the part that was read is parsed: its missing lines are noticed
            pass
        finally:
            shell.close()
        return "".join(pieces)


class _TooSlow(Exception):
    """Raised if parsing the lines of a log took too much CPU time."""


def limit_cpu(lines: typing.Iterable[str], seconds: float) -> typing.Iterator[str]:
    """Yield the lines until this thread has used more than ``seconds`` of CPU time since the first of them.

    :param lines: lines of a log
    :param seconds: limit of the CPU time of this thread, in seconds
    :raises _TooSlow: the thread has used more CPU time
    """
    end = time.thread_time() + seconds
    for line in lines:
        if time.thread_time() > end:
            raise _TooSlow
        yield line


def lines_of(text: str) -> typing.Iterator[str]:
    """Return an iterator over the lines of a text. A list of them would take many times the memory of the text."""
    return iter(io.StringIO(text))
