# SPDX-License-Identifier: GPL-3.0-or-later

"""Start the daemons that mpirun requests in the other pods of a group."""

from __future__ import annotations

import typing

from ..._model.measurement.collectives import CollectiveRun
from ..._observe.kubernetes.shell import Clock, Shell
from ..._parse.pods.agent import Request, parse_requests
from ..._render.measurement import mpirun_agent
from .collective_pods import CollectivePlace, run_short
from .measuring_plan import Say, start_workers
from .soak_counters import AT_ONCE

#: seconds between two reads of the requests of mpirun
PAUSE = 1.0
#: text that no command prints
NEVER = "\0"


class MpirunDaemons:
    """A client that starts the daemons of mpirun in the pods of a group of nodes."""

    def __init__(self, clock: Clock, say: Say) -> None:
        self._clock = clock
        self._say = say

    def start(
        self,
        subject: str,
        run: CollectiveRun,
        first: Shell,
        asks: Shell,
        places: typing.Mapping[str, CollectivePlace],
        shell: typing.Callable[[CollectivePlace], Shell],
        end: float,
        seconds: int,
    ) -> None:
        """Answer the requests of mpirun until each other pod has its daemon, mpirun has ended, or the time is over.

        A daemon runs in the background of its pod: either it detaches by itself, or its command leaves it in the
        background and ends after some seconds.

        :param subject: name of the test, for messages
        :param run: nodes and settings of the test
        :param first: connection to the first pod, in which mpirun runs
        :param asks: further connection to the first pod, through which the requests are read
        :param places: pods of the group, by host name, including the first pod
        :param shell: function that opens a shell in a pod
        :param end: monotonic time in seconds at which the time is over
        :param seconds: time limit of the test in seconds, after which the daemons end
        """
        left, told = len(places) - 1, False
        while left > 0 and self._clock() < end:
            first.wait_for(NEVER, PAUSE)
            running = first.running
            # a pod may request any number of daemons
            requests = parse_requests(run_short(asks, mpirun_agent.take_requests(run), self._clock, end).output)[:left]
            with start_workers(min(AT_ONCE, len(requests))) as pool:
                codes = list(
                    pool.map(lambda request: self._start_daemon(request, places, shell, end, seconds), requests)
                )
            for request, code in zip(requests, codes):
                left -= 1
                run_short(asks, mpirun_agent.answer_request(run, request.number, code), self._clock, end)
            if not running:
                return
            if not told and self._clock() >= end - mpirun_agent.AGENT_LIMIT / 2:
                told = True
                self._say(
                    f"{subject}: mpirun requested {len(places) - 1 - left} of {len(places) - 1} daemons within"
                    f" {mpirun_agent.AGENT_LIMIT / 2:.0f} s"
                )

    def _start_daemon(
        self,
        request: Request,
        places: typing.Mapping[str, CollectivePlace],
        shell: typing.Callable[[CollectivePlace], Shell],
        end: float,
        seconds: int,
    ) -> int:
        """Start a daemon in the pod of the requested host, and return the exit code of its command; 1 without an exit
        code. A host that is not a pod of the group is refused with 1, because the request comes from inside a pod.

        :param request: request of mpirun, with the host and the command line
        :param places: pods of the group, by host name
        :param shell: function that opens a shell in a pod
        :param end: monotonic time in seconds at which the time is over
        :param seconds: time limit of the test in seconds, after which the daemon ends
        :raises ApiError: the pod of the host cannot be reached
        """
        place = places.get(request.host)
        if place is None or self._clock() >= end:
            return 1
        command = mpirun_agent.start_daemon(request.words, seconds)
        ended = run_short(shell(place), command, self._clock, end, mpirun_agent.AGENT_LIMIT)
        return ended.exit_code if ended.exit_code is not None else 1
