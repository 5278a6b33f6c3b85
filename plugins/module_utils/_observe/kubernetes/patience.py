# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for an API server that is temporarily unavailable. The steps of a roll use this.

A roll resets the machines on which the API server runs, so status 5xx and 429 and broken connections are expected. The
Retry of urllib3 is not sufficient: it counts attempts and has no deadline, reports nothing while it waits, and does not
check the Lease before it writes again. Here the guard of the Lease is called before each attempt.
"""

from __future__ import annotations

import typing

from ..._parse.kubernetes.no_answer import UNTRUSTED
from .client import Cluster
from .errors import ApiError
from .kinds import Resource
from .shell import Clock

T = typing.TypeVar("T")
#: seconds that an API server may be away at one step: as long as a machine of its control plane takes to boot
AWAY = 600.0
#: seconds between two attempts: the first pause, and the longest
FIRST, LONGEST = 1.0, 15.0
#: of refusals with a status of 5xx, what stays so: the eviction API names two PodDisruptionBudgets in this way
_FINAL = ("more than one PodDisruptionBudget", *UNTRUSTED)


def may_retry(error: ApiError, method: str, path: str) -> bool:
    """Return whether a failed request should be sent again: the failure is temporary, and it does no harm if the API
    server receives the request twice.

    GET, PUT, PATCH and DELETE have the same result if they are sent twice, and so does an eviction with the uid of its
    pod. Any other POST is sent again only if the API server has certainly not accepted it.

    :param method: HTTP method in lower case
    :param path: path of the request
    """
    if error.held or any(words in error.text for words in _FINAL):
        return False
    taken_at_most_once = method != "post" or path.endswith("/eviction")
    if error.status == 0:
        return error.reason == "Unreachable" and (taken_at_most_once or "refused" in error.text.lower())
    return error.status == 429 or (error.status >= 500 and taken_at_most_once and error.passing)


def _make_lasting_error(error: ApiError, seconds: float) -> ApiError:
    text = f"{error.text.rstrip('.')} (the same error for {seconds:.0f} s)"
    return ApiError(error.status, error.reason, text, error.where, error.remedy, error.causes)


class PatientCluster(Cluster):
    """A client for one API server that waits and sends a request again while the API server is temporarily unavailable.

    :param cluster: client whose requests are repeated
    :param seconds: limit in seconds for one request with all its attempts
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds. An exception that it raises ends the wait
    :param say: function that gets a message as text when a wait begins and when it ends
    """

    def __init__(
        self,
        cluster: Cluster,
        seconds: float,
        clock: Clock,
        pause: typing.Callable[[float], None],
        say: typing.Callable[[str], None] = lambda _line: None,
    ) -> None:
        super().__init__(cluster._dynamic, cluster._guard)
        self._inner, self._seconds, self._clock, self._sleep, self._say = cluster, seconds, clock, pause, say

    def _call(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> typing.Any:
        return self._wait_out(lambda: self._inner._call(method, path, query, body, **more), method, path)

    def _json(
        self,
        method: str,
        path: str,
        query: typing.Sequence[tuple[str, str]] = (),
        body: typing.Any = None,
        **more: typing.Any,
    ) -> Resource:
        # an answer that breaks off is read here
        return self._wait_out(lambda: self._inner._json(method, path, query, body, **more), method, path)

    def _wait_out(self, attempt: typing.Callable[[], T], method: str, path: str) -> T:
        """Call ``attempt`` until it succeeds or the limit is reached, and return its result.

        :param attempt: function that sends the request
        :param method: HTTP method in lower case
        :param path: path of the request
        :raises ApiError: the failure is not temporary, or lasted until the limit
        """
        begin, wait, waited = self._clock(), FIRST, False
        while True:
            try:
                answer = attempt()
            except ApiError as error:
                if not may_retry(error, method, path):
                    raise
                failed = error
            else:
                if waited:
                    self._say(f"the API server responds again, after {self._clock() - begin:.0f} s")
                return answer
            left = begin + self._seconds - self._clock()
            if left <= 0:
                raise _make_lasting_error(failed, self._seconds)
            if not waited:
                self._say(f"the API server does not respond: {failed.seen}; retrying for at most {self._seconds:.0f} s")
            waited = True
            self._sleep(min(left, max(wait, min(failed.retry_after, LONGEST))))
            wait = min(2 * wait, LONGEST)
