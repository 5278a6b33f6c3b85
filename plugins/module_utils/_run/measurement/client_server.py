# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a server in one container and its client in another, waits for both, and returns the result of the client and
the failure of either side. A server that is left behind ends by its own time limit, or when its container gets the next
command.
"""

from __future__ import annotations

import math
import typing

from ..._analysis.schedule.measurements import SERVER_LIMIT, SLACK
from ..._model.kubernetes.objects import CommandResult
from ..._model.measurement.completions import SIDES
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Shell
from ..._parse.pods import rping
from ..._parse.pods.failure import RETRIED, Failure, classify
from ..._render.measurement.commands import Command

#: how often a client is tried while its server is not reached yet
TRIES = 5
#: seconds that the server of a failed client has to end by itself; text that it never prints; exit codes of a process
#: that was killed
SETTLE, NEVER, KILLED = 2.0, "\0", (137, 143)

Judge = typing.Callable[[CommandResult], typing.Optional[Failure]]
Outcome = tuple[typing.Optional[CommandResult], typing.Optional[Failure]]
#: a connection to a container, opened where there is none
Opened = typing.Callable[[], Shell]
#: why the ends are awaited no longer; empty as long as they are
Lost = typing.Callable[[], str]
#: seconds that are left of the time that both ends have together
Left = typing.Callable[[], float]
#: is told each failure of a client that is tried again
Note = typing.Callable[[Failure], None]


def allow_forever() -> float:
    """Return infinity. This is the remaining time of commands that are limited by their own time limits only."""
    return math.inf


def ignore_failure(_failure: Failure) -> None:
    """Do nothing with the failure of a client that is tried again."""


def find_failure(result: CommandResult) -> typing.Optional[Failure]:
    """Return the failure of a command that ran in a pod, from its exit code and output. Return None if the command
    succeeded.
    """
    return classify(result.exit_code, result.timed_out, f"{result.output}\n{result.error}")


def line_of(result: CommandResult) -> str:
    """Return a line of text about a command that ran: the command, its exit code and its duration.

    :param result: result of the command
    """
    return (
        f"{result.command} -> {'no exit code' if result.exit_code is None else result.exit_code} in"
        f" {result.seconds:.1f} s"
    )


def run_pair(
    there: tuple[Opened, Command],
    here: tuple[Opened, Command],
    up: str,
    limit: int,
    judge_server: bool,
    judge: Judge = find_failure,
    lost: Lost = str,
    left: Left = allow_forever,
    note: Note = ignore_failure,
) -> Outcome:
    """Run a server, and its client as soon as the server listens. Return the result of the client (None if it did not
    run), and the failure of client or server (None if both succeeded). The client is tried again while it does not
    reach the server.

    :param there: server: function that returns a shell in its container, and the command
    :param here: client: function that returns a shell in its container, and the command
    :param up: text in the output of the server after which it listens
    :param limit: time limit of the client inside its container, in seconds
    :param judge_server: whether a nonzero exit code of the server is a failure. That of rping is not, because rping
        returns it on success too
    :param judge: function that gets the result of the client and returns its failure or None; by default from the exit
        code
    :param lost: function that returns the reason why a container is gone, which ends the wait; an empty text while both
        exist
    :param left: function that returns the remaining seconds of this pair of nodes. At 0, no wait continues and nothing
        is retried
    :param note: is called with the failure of each client that is tried again
    """
    if left() <= 0:
        return None, Failure("hang", "the time limit of this pair had already expired")
    try:
        server, client = there[0](), here[0]()
        server.start(there[1])
        return _run_client(server, client, here[1], up, limit, judge_server, judge, lost, left, note)
    except ApiError as error:
        return None, Failure("exec_lost", str(error)[:300])


def _run_client(
    server: Shell,
    client: Shell,
    command: Command,
    up: str,
    limit: int,
    judge_server: bool,
    judge: Judge,
    lost: Lost,
    left: Left,
    note: Note,
) -> Outcome:
    def most(seconds: float) -> float:
        return max(0.0, min(seconds, left()))

    if not server.wait_for(up, most(SERVER_LIMIT)) and not server.running:
        ended = server.wait(0)
        return None, find_failure(ended) or Failure("peer_gone", "the server ended immediately")
    for number in range(TRIES):
        client.start(command)
        ran = client.wait(most(limit + SLACK), lost)
        failure = judge(ran)
        # it said that it is about to listen: a client that came a moment too early tries again, as long as the server
        # runs
        if failure is None or failure.kind not in RETRIED or not server.running or left() <= 0:
            break
        if number < TRIES - 1:
            note(failure)
    if failure is None and judge_server:
        failure = find_failure(server.wait(most(SLACK), lost))
    elif failure is not None:
        failure = _find_server_failure(server, limit, failure) or failure
    return ran, failure


def _find_server_failure(server: Shell, limit: int, failure: Failure) -> typing.Optional[Failure]:
    """Return the failure of the server if it explains more than that of the client: the server was killed before its
    time limit, reported the cause of a remote error of the client, or disconnected the client. Return None otherwise,
    and if the server still runs.

    :param server: shell in which the server ran
    :param limit: time limit of the client, in seconds
    :param failure: failure of the client
    """
    server.wait_for(NEVER, SETTLE)
    if server.running:
        return None
    ended = server.wait(0)
    if ended.exit_code in KILLED and ended.seconds < limit:
        return Failure(
            "peer_gone",
            f"the server was killed (exit code {ended.exit_code}); the client reported: {failure.evidence}"[:300],
        )
    theirs = find_failure(ended)
    if theirs is not None and (SIDES.get(failure.kind), SIDES.get(theirs.kind)) == ("remote", "local"):
        return Failure(
            theirs.kind, (f"the server reported: {theirs.evidence}; the client reported: {failure.evidence}")[:500]
        )
    if failure.kind == "disconnected":
        how = (
            f"the server ended with exit code {ended.exit_code} after {ended.seconds:.0f} s:"
            f" {rping.join_tail(ended.output)}"
        )
        return Failure("disconnected", f"{failure.evidence}; {how}"[:500])
    return None
