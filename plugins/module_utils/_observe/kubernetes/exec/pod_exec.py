# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command with bytes for its stdin in one pod or in many pods. _parse/pods/framing.py detects whether the answer
is complete.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
import typing

from ...._model.base.errors import ParseError, RdmaError, wrap_unforeseen
from ...._model.kubernetes.objects import Answer, Container
from ...._parse.kubernetes.core import parse_status
from ...._parse.limits import MOST_ANSWER
from ...._parse.pods.framing import ERROR, SHELL, STDERR, STDOUT, Exchange
from ...process import many
from ..client import Cluster
from ..errors import ApiError, call_again
from .channels import Channels

Result = typing.TypeVar("Result")
#: connections at once. Each of them is a stream through one konnectivity agent, whose queue is short
PARALLEL = 64
#: seconds for the shell to end by itself once the answer is there; nothing depends on it
_FAREWELL = 1.0
_LOST = (
    "The container or its kubelet is gone, or a proxy before the API server closed the stream. Check 'kubectl -n"
    " {0.namespace} get pod {0.pod}', then rerun"
)
_NOT_BEGUN = (
    "The container must run, and its image must contain sh, head and cat. Check 'kubectl -n {0.namespace} describe"
    " pod {0.pod}'"
)
_SILENT = (
    "The API server does not reach the kubelet of the node, or the kubelet is overloaded. Check 'kubectl -n"
    " {0.namespace} get pod -o wide {0.pod}' and the node of the pod"
)
_LONG = "Set a longer limit for the command, or find out why the command waits; it may still run"


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of a command in a pod.

    :ivar connect: seconds for each step of the connection, and for the start of the shell in the pod
    :ivar run: seconds from the start of the shell until the answer is complete
    :ivar output: bytes of stdout and stderr together, which are kept in memory
    """

    connect: float = 30.0
    run: float = 3600.0
    output: int = MOST_ANSWER


class NoAnswer(RdmaError):
    """Raised if the command began, but its answer is not complete. The command may have done all or part of its work.

    :ivar stdout_bytes: number of bytes received from stdout
    :ivar stderr_bytes: number of bytes received from stderr
    """

    def __init__(self, seen: str, remedy: str, came: tuple[int, int] = (0, 0)) -> None:
        super().__init__(seen, remedy)
        self.stdout_bytes, self.stderr_bytes = came


def run(
    cluster: Cluster,
    container: Container,
    command: typing.Sequence[str],
    stdin: bytes = b"",
    limits: typing.Optional[Limits] = None,
    over: typing.Optional[threading.Event] = None,
) -> Answer:
    """Run a command in a container and return its answer. If the command certainly did not begin, it is started again a
    few times.

    :param stdin: all bytes of stdin, which is closed after them
    :param limits: limits of the command; None for the defaults of ``Limits``
    :param over: event that another thread sets if the answer is no longer needed; None if no other thread can set it
    :raises ApiError: the command did not begin
    :raises NoAnswer: the command began, and its result is unknown
    """
    return call_again(
        lambda: _run_in_container(
            cluster, container, (*SHELL, *command), stdin, limits or Limits(), over or threading.Event()
        )
    )


def run_on_many(
    cluster: Cluster,
    containers: typing.Iterable[Container],
    command: typing.Sequence[str],
    stdin: bytes = b"",
    limits: typing.Optional[Limits] = None,
    parallel: int = PARALLEL,
) -> typing.Iterator[tuple[Container, typing.Union[Answer, RdmaError]]]:
    """Run one command in many containers, several at a time. Yield each container with its answer or its error, in the
    order of completion.

    :param containers: containers in which the command runs
    :param command: words of the command
    :param stdin: all bytes of stdin for each container
    :param limits: limits of each command; None for the defaults
    :param parallel: number of containers at once
    """
    return on_many(lambda container, over: run(cluster, container, command, stdin, limits, over), containers, parallel)


def on_many(
    work: typing.Callable[[Container, threading.Event], Result],
    containers: typing.Iterable[Container],
    parallel: int = PARALLEL,
) -> typing.Iterator[tuple[Container, typing.Union[Result, RdmaError]]]:
    """Call ``work`` for many containers in parallel. Yield each container with its result, or with the error that
    ``work`` raised, in the order of completion.

    A caller that leaves the iterator early does not wait: no further container is started, and running ones are
    abandoned.

    :param work: function that gets a container and an event, and returns the result. The event is set if the result is
        no longer needed
    :param parallel: number of containers at once
    """
    over = threading.Event()
    try:
        yield from many.iterate_outcomes(
            lambda container: work(container, over), containers, parallel, RdmaError, _wrap_exec_error
        )
    finally:
        over.set()


def _wrap_exec_error(container: Container, error: Exception) -> RdmaError:
    return wrap_unforeseen(error, f"exec in {container}")


def _run_in_container(
    cluster: Cluster,
    container: Container,
    wrapped: typing.Sequence[str],
    stdin: bytes,
    limits: Limits,
    over: threading.Event,
) -> Answer:
    exchange = Exchange(secrets.token_hex(16), stdin)
    channels = cluster.exec(container, wrapped, seconds=limits.connect)
    try:
        return _wait_for_answer(channels, exchange, container, limits, over)
    finally:
        channels.close()


def _wait_for_answer(
    channels: Channels, exchange: Exchange, container: Container, limits: Limits, over: threading.Event
) -> Answer:
    end, began = time.monotonic() + limits.connect, False
    while exchange.answer is None:
        channels.update(min(1.0, max(0.0, end - time.monotonic())))
        try:
            for stream in (STDERR, STDOUT):
                exchange.feed(stream, channels.take(stream))
        except ParseError as error:
            remedy = (
                "Another program in the container writes to the streams of the command. Check what the image prints"
                " when a shell starts"
            )
            raise NoAnswer(f"exec in {container}: {error}", remedy, exchange.came) from error
        if exchange.began and not began:
            end, began = time.monotonic() + limits.run, True
        for piece in exchange.due():
            channels.write(piece)
        if exchange.size > limits.output:
            seen = f"exec in {container}: the output has more than {limits.output} bytes and does not end"
            raise NoAnswer(seen, "Reduce the output of the command, or write it to a file", exchange.came)
        if exchange.answer is None and (not channels.open or over.is_set() or time.monotonic() >= end):
            raise _make_exec_failure(channels, exchange, container, limits)
    _end_shell(channels)
    return exchange.answer


def _end_shell(channels: Channels) -> None:
    """Wait up to a second for the shell to end by itself. If the connection were closed earlier, the shell could remain
    in the pod, or the kubelet could log an error.
    """
    end = time.monotonic() + _FAREWELL
    while channels.open and time.monotonic() < end:
        channels.update(end - time.monotonic())
        # nothing of it belongs to the answer
        for stream in (STDERR, STDOUT):
            channels.take(stream)


def _make_exec_failure(channels: Channels, exchange: Exchange, container: Container, limits: Limits) -> RdmaError:
    """Return the error that explains why the answer of a command is missing or incomplete: an ApiError if the command
    did not begin, otherwise a NoAnswer.

    :param channels: connection to the container
    :param exchange: client side of the protocol, with the data received so far
    :param container: container of the command, for the message
    :param limits: limits of the command
    """
    said, where = parse_status(channels.take(ERROR).decode(errors="replace")), f"exec in {container}"
    server = (
        f"the API server reports: {said.message or said.status}"
        if said.message or said.status
        else "the API server reports no reason"
    )
    if not exchange.began and channels.open:
        return ApiError(
            0,
            "Timeout",
            f"the shell in the pod did not start within {limits.connect:g} s",
            where,
            _SILENT.format(container),
        )
    if not exchange.began:
        words = "; ".join(part for part in (exchange.said[:300], channels.lost or server) if part)
        return ApiError(
            said.code, said.reason, f"the shell in the pod did not start: {words}", where, _NOT_BEGUN.format(container)
        )
    came = f"{exchange.came[0]} bytes of stdout and {exchange.came[1]} bytes of stderr arrived"
    if channels.open:
        return NoAnswer(
            (
                f"{where}: the command did not end within {limits.run:g} s: {came}, but {exchange.missing} did not"
                " arrive"
            ),
            _LONG,
            exchange.came,
        )
    how = f"the connection broke ({channels.lost})" if channels.lost else f"the stream ended, and {server}"
    return NoAnswer(
        f"{where}: {how}. But {exchange.missing} did not arrive; {came}", _LOST.format(container), exchange.came
    )
