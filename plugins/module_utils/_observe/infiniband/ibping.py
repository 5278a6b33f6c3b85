# SPDX-License-Identifier: GPL-3.0-or-later

"""ibping on this node: servers that live for a bounded time, and clients (package infiniband-diags; root, or access to
/dev/infiniband/umad*).

A server must outlive the module that starts it and must never outlive its purpose: it runs under ``timeout`` of
coreutils in a session of its own, so it ends by itself when nobody stops it. It carries a mark in its environment; by
that mark, and by nothing else, it is found again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import tempfile
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.measurement.reachability import Ping, PingServer, PingTask, PortName
from ..._parse.infiniband import ibping
from ..process import command
from .subnet import PACKAGE, arguments

MARK = "LINERATE_RDMA_IBPING_SERVER"
#: SIGKILL follows SIGTERM after this; ibping has nothing to put in order
_KILL_SECONDS = 2
#: a server counts as ready when it has used no CPU time for this long
_QUIET_SECONDS = 0.4
_READY_LIMIT_SECONDS = 20.0
_STOP_LIMIT_SECONDS = 10.0
#: packets that go first to a destination; each further run of the client has so many times more
_FIRST_PACKETS = 5
_MORE = 10


def start(ports: typing.Sequence[PortName], live_seconds: int) -> tuple[PingServer, ...]:
    """Start a server on each port, each ended by itself after ``live_seconds``. Servers that an earlier, interrupted
    run left are stopped first.

    Returns when each of them waits for requests or has ended; ibping itself says nothing when it is ready.

    :raises ToolMissing: no ibping or no timeout
    """
    if not ports:
        return ()
    tool = command.require("ibping", PACKAGE)
    guard = command.require("timeout", "coreutils")
    stop()
    with contextlib.ExitStack() as stack:
        running = []
        for name in ports:
            # a file without a name: it lives as long as the server, and nobody has to remove it
            words = stack.enter_context(tempfile.TemporaryFile())
            argv = (guard, "-k", str(_KILL_SECONDS), str(live_seconds), tool, "-S", *arguments(name))
            environment = {**command.make_environment(), MARK: f"{name.device}/{name.port}"}
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            running.append((name, process, words))
        _await_quiet([process for _name, process, _words in running])
        return tuple(
            PingServer(name.device, name.port, _explain_server_end(name, process, words))
            for name, process, words in running
        )


def _explain_server_end(name: PortName, process: typing.Any, words: typing.Any) -> typing.Optional[str]:
    """Return why a server has ended; None while it runs."""
    if process.poll() is None:
        return None
    words.seek(0)
    said = "; ".join(
        line.strip() for line in words.read(4096).decode("utf-8", "backslashreplace").splitlines() if line.strip()
    )
    return f"ibping -S {' '.join(arguments(name))} ended with {process.returncode}: {said or 'it said nothing'}"


def stop() -> tuple[PingServer, ...]:
    """End all servers of this node that carry our mark, and wait until they are gone.

    :returns: those that were there
    :raises RdmaError: one of them can't be ended
    """
    found = _list_marked_processes()
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for pid in _list_marked_processes():
            _send_signal(pid, sent)
        deadline = time.monotonic() + _STOP_LIMIT_SECONDS / 2
        while _list_marked_processes() and time.monotonic() < deadline:
            time.sleep(0.05)
    left = _list_marked_processes()
    if left:
        raise RdmaError(
            f"ibping servers can't be ended: processes {', '.join(str(pid) for pid in sorted(left))}",
            "End them by hand",
        )
    names = sorted(set(found.values()))
    return tuple(PingServer(device, int(port)) for device, _slash, port in (name.rpartition("/") for name in names))


def ping(
    tasks: typing.Sequence[PingTask], count: int, timeout_ms: int, parallel: int, limit_seconds: float
) -> tuple[Ping, ...]:
    """Ping every destination of every task.

    A few packets go first, then more and more, until all are through or one is lost: that is the verdict, and a silent
    port costs three time-outs a packet. Where all were answered, but some only when they were sent again, a node may
    have been busy for a moment: ten times as many follow. A link that loses packets loses some of those too.

    :param count: packets a destination, one right after the other (ibping -f)
    :param timeout_ms: after which a packet is sent again; the library below the tool sends it three times
    :param parallel: clients at once on this node
    :param limit_seconds: for one destination
    :raises ToolMissing: no ibping
    """
    jobs = [(task, lid) for task in tasks for lid in task.lids]
    if not jobs:
        return ()
    tool = command.require("ibping", PACKAGE)

    def ping_until_loss(task: PingTask, lid: int, count: int, deadline: float) -> Ping:
        result = Ping(task.device, task.port, lid, 0, 0)
        name, packets = PortName(task.device, task.port), _FIRST_PACKETS
        while result.error is None and not result.lost and result.transmitted < count:
            packets = min(packets, count - result.transmitted)
            argv = (tool, *arguments(name), "-e", "-f", "-c", str(packets), "-t", str(timeout_ms), "-L", str(lid))
            result = _add_ping_run(result, command.run(argv, max(0.0, deadline - time.monotonic())))
            packets *= _MORE
        return result

    def ping_destination(job: tuple[PingTask, int]) -> Ping:
        deadline = time.monotonic() + limit_seconds
        first = ping_until_loss(*job, count, deadline)
        if first.resent and first.received == first.transmitted > 0:
            return _combine_pings(first, ping_until_loss(*job, count * _MORE, deadline))
        return first

    return command.each(ping_destination, jobs, parallel)


def _add_ping_run(before: Ping, finished: command.Finished) -> Ping:
    """Add one more run of the client to what was measured so far."""
    resent = ibping.count_resent(finished.stderr)
    if finished.rc is None and resent:
        # ended at its limit, since it waited for answers
        return dataclasses.replace(before, resent=resent)
    # its exit code is 0 even when all is lost: only another one says something
    if finished.failure:
        return _make_failed_ping(before, finished.failure)
    try:
        counts = ibping.parse(finished.stdout)
    except ParseError as error:
        return _make_failed_ping(before, str(error))
    if counts.lid != before.destination_lid:
        return _make_failed_ping(
            before, f"ibping was asked for LID {before.destination_lid} and answers for LID {counts.lid}"
        )
    return dataclasses.replace(
        before,
        transmitted=before.transmitted + counts.transmitted,
        received=before.received + counts.received,
        resent=resent,
    )


def _combine_pings(first: Ping, again: Ping) -> Ping:
    """Combine a run of which some packets were answered late with the longer one after it.

    :param again: with an error: it did not end in time, and says nothing
    """
    if again.error is not None:
        return first
    if not again.lost:
        return dataclasses.replace(again, late=first.resent)
    return dataclasses.replace(
        first,
        transmitted=first.transmitted + again.transmitted,
        received=first.received + again.received,
        resent=first.resent + again.resent,
    )


def _make_failed_ping(before: Ping, error: str) -> Ping:
    return dataclasses.replace(before, transmitted=0, received=0, resent=0, error=error)


def _list_marked_processes() -> dict[int, str]:
    """Process ids with our mark, and what it says. Processes of others, which we may not look into, are not ours."""
    result = {}
    prefix = f"{MARK}=".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as stream:
                environment = stream.read().split(b"\0")
        except OSError:
            continue
        for item in environment:
            if item.startswith(prefix):
                result[int(name)] = item[len(prefix) :].decode("utf-8", "backslashreplace")
    return result


def _send_signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _await_quiet(processes: typing.Sequence[typing.Any]) -> None:
    """Wait until every server has ended or sleeps without using CPU time: then it waits for requests."""
    deadline = time.monotonic() + _READY_LIMIT_SECONDS
    before: typing.Optional[dict[int, str]] = None
    while time.monotonic() < deadline:
        living = [process.pid for process in processes if process.poll() is None]
        now = {pid: _cpu_times(pid) for pid in _list_session_processes(living)}
        # timeout and ibping: the tool itself must have been started
        if now == before and len(now) >= 2 * len(living):
            return
        before = now
        time.sleep(_QUIET_SECONDS)


def _list_session_processes(leaders: typing.Sequence[int]) -> list[int]:
    """Return all processes of these sessions."""
    result = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _read_process_stat(int(name))
            if len(fields) > 3 and int(fields[3]) in leaders:
                result.append(int(name))
    return result


def _cpu_times(pid: int) -> str:
    """State, user time and system time (proc(5), fields 3, 14 and 15)."""
    fields = _read_process_stat(pid)
    return " ".join((fields[0], *fields[11:13])) if fields else ""


def _read_process_stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on; the name before them may hold anything, so it is cut off at its last
    bracket."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []
