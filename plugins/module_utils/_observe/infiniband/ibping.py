# SPDX-License-Identifier: GPL-3.0-or-later

"""Run ibping servers with a limited lifetime, and ibping clients, on this node. This needs the package
infiniband-diags, and root or access to /dev/infiniband/umad*.

A server outlives the module that starts it, but must not run forever. It runs under ``timeout`` of coreutils in its own
session, so it ends even if no module stops it. A variable in its environment marks it, and only this mark identifies it
later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import tempfile
import time
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._model.measurement.reachability import Ping, PingServer, PingTask, PortName
from ..._parse.infiniband import ibping
from ..process import command
from .subnet import PACKAGE, build_arguments

MARK = "LINERATE_RDMA_IBPING_SERVER"
#: a value of the mark: RDMA device and port, as ``start_servers`` writes them. A tenant's process may carry any other
#: text
_MARKED = re.compile(r"(?P<device>[A-Za-z0-9_][A-Za-z0-9_.-]{0,62})/(?P<port>[1-9][0-9]{0,2})", re.ASCII)
#: bytes of the environment of a process that are read. A process may declare any range of its memory, of any size, as
#: its environment. The mark comes first in that of a server
_MOST_OF_ENVIRONMENT = 1 << 16
#: SIGKILL follows SIGTERM after this; ibping has nothing to put in order
_KILL_SECONDS = 2
#: a server counts as ready when it has used no CPU time for this long
_QUIET_SECONDS = 0.4
_READY_LIMIT_SECONDS = 20.0
_STOP_LIMIT_SECONDS = 10.0
#: packets that go first to a destination; each further run of the client has so many times more
_FIRST_PACKETS = 5
_MORE = 10


def start_servers(ports: typing.Sequence[PortName], live_seconds: int) -> tuple[PingServer, ...]:
    """Start an ibping server on each port, after stopping the servers that an interrupted run left running. Return one
    result for each port, in the same order, with the reason if its server has already ended. Without ports, nothing is
    started or stopped.

    The function returns when each server waits for requests or has ended. ibping does not report that it is ready, so
    its CPU time is observed, for at most 20 seconds.

    :param ports: local RDMA devices and port numbers
    :param live_seconds: lifetime of each server in seconds
    :raises ToolMissing: ibping or timeout is not installed
    """
    if not ports:
        return ()
    tool = command.require_tool("ibping", PACKAGE)
    guard = command.require_tool("timeout", "coreutils")
    stop_servers()
    with contextlib.ExitStack() as stack:
        running = []
        for name in ports:
            # a file without a name: it lives as long as the server, and nobody has to remove it
            words = stack.enter_context(tempfile.TemporaryFile())
            argv = (guard, "-k", str(_KILL_SECONDS), str(live_seconds), tool, "-S", *build_arguments(name))
            # the mark comes first, because only the first bytes of an environment are read
            environment = {MARK: f"{name.device}/{name.port}", **command.make_environment()}
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
    """Return the reason why an ibping server has ended. Return None while it runs.

    :param name: port of the server
    :param process: ``subprocess.Popen`` of the server
    :param words: file with the output of the server
    """
    if process.poll() is None:
        return None
    words.seek(0)
    said = "; ".join(
        line.strip() for line in words.read(4096).decode("utf-8", "backslashreplace").splitlines() if line.strip()
    )
    return (
        f"ibping -S {' '.join(build_arguments(name))} ended with exit code {process.returncode}:"
        f" {said or 'it printed nothing'}"
    )


def stop_servers() -> tuple[PingServer, ...]:
    """End all ibping servers on this node that the collection started, and wait until they are gone. A variable in the
    environment of a process marks it as such a server.

    :returns: the ports of the servers that were found, sorted and without duplicates
    :raises RdmaError: a server still runs after SIGTERM, SIGKILL and a wait of 10 seconds
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
            f"ibping servers could not be ended: processes {', '.join(str(pid) for pid in sorted(left))}",
            "End these processes with kill on the node",
        )
    return tuple(PingServer(name.device, name.port) for name in sorted(set(found.values()), key=dataclasses.astuple))


def ping_lids(
    tasks: typing.Sequence[PingTask], count: int, timeout_ms: int, parallel: int, limit_seconds: float
) -> tuple[Ping, ...]:
    """Ping each destination LID of each task, and return one result for each of them, in the same order. If a run of
    ibping fails, its result has the error and no packet counts.

    The first run of ibping sends a few packets to a destination, and each further run sends ten times more, until all
    packets are sent or one is lost. One loss is sufficient for a verdict, and each packet to a silent port costs three
    timeouts. If all packets were answered, but some only after a retry, the destination node may have been busy for a
    moment. Then ten times ``count`` packets follow, which reveal a link that loses packets.

    :param tasks: local ports, each with the destination LIDs to ping from it
    :param count: packets for each destination, sent without a pause (ibping -f)
    :param timeout_ms: milliseconds after which a packet is sent again. The library of ibping sends it up to three times
    :param parallel: number of clients that run at once on this node
    :param limit_seconds: time limit in seconds for one destination
    :raises ToolMissing: ibping is not installed
    """
    jobs = [(task, lid) for task in tasks for lid in task.lids]
    if not jobs:
        return ()
    tool = command.require_tool("ibping", PACKAGE)

    def ping_until_loss(task: PingTask, lid: int, count: int, deadline: float) -> Ping:
        result = Ping(task.device, task.port, lid, 0, 0)
        name, packets = PortName(task.device, task.port), _FIRST_PACKETS
        while result.error is None and not result.lost and result.transmitted < count:
            packets = min(packets, count - result.transmitted)
            argv = (tool, *build_arguments(name), "-e", "-f", "-c", str(packets), "-t", str(timeout_ms), "-L", str(lid))
            result = _add_ping_run(result, command.run(argv, max(0.0, deadline - time.monotonic())))
            packets *= _MORE
        return result

    def ping_destination(job: tuple[PingTask, int]) -> Ping:
        deadline = time.monotonic() + limit_seconds
        first = ping_until_loss(*job, count, deadline)
        if first.resent and first.received == first.transmitted > 0:
            return _combine_pings(first, ping_until_loss(*job, count * _MORE, deadline))
        return first

    return command.call_each(ping_destination, jobs, parallel)


def _add_ping_run(before: Ping, finished: command.Finished) -> Ping:
    """Return the ping result of a destination, with the packet counts of one more run of ibping added. If this run
    failed, the result has its error and no packet counts. If it was ended at its time limit while it sent packets
    again, the result only records these retries.

    :param before: result of the earlier runs
    :param finished: the run that has ended
    """
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
            before, f"ibping was started for LID {before.destination_lid} but reports LID {counts.lid}"
        )
    return dataclasses.replace(
        before,
        transmitted=before.transmitted + counts.transmitted,
        received=before.received + counts.received,
        resent=resent,
    )


def _combine_pings(first: Ping, again: Ping) -> Ping:
    """Return the combined result of two ping runs to a destination: the first, in which some packets were answered only
    after a retry, and the longer run that followed. If the longer run lost no packet, its result is returned, with the
    retries of the first as late answers. If it lost packets, the counts of both runs are added.

    :param first: result of the first run
    :param again: result of the longer run. If it has an error, it did not end in time, and the first result is returned
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


def _list_marked_processes() -> dict[int, PortName]:
    """Return the port of each ibping server that the collection started, by process ID. The port is in a variable of
    the process's environment, which marks these servers. Processes of other users, processes whose environment cannot
    be read, and invalid marks are left out.
    """
    marks = {int(name): _read_mark(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: port for pid, port in marks.items() if port is not None}


def _read_mark(pid: int) -> typing.Optional[PortName]:
    """Return the port of an ibping server, from the variable by which ``start_servers`` marks the environment of its
    process. Return None if the process has no such mark, belongs to another user, or cannot be read.

    :param pid: process ID
    """
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return None
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return _find_mark(stream.read(_MOST_OF_ENVIRONMENT))
    except OSError:
        return None


def _find_mark(environment: bytes) -> typing.Optional[PortName]:
    """Return the port in the variable by which ``start_servers`` marks the environment of a process. Return None if the
    variable is missing or does not have the form that ``start_servers`` writes.

    :param environment: content of ``/proc/PID/environ``
    """
    prefix = f"{MARK}=".encode()
    for item in environment.split(b"\0"):
        if item.startswith(prefix):
            found = _MARKED.fullmatch(item[len(prefix) :].decode("utf-8", "backslashreplace"))
            return PortName(found["device"], int(found["port"])) if found and int(found["port"]) <= 254 else None
    return None


def _send_signal(pid: int, number: int) -> None:
    """Send a signal to a process if it has the mark of ``start_servers``. The process is opened before its mark is
    read, so that the signal cannot reach another process that gets its number in between.

    Linux before 5.3, or Python that was built for it, cannot open a process. There the signal is sent to the process ID
    right after the mark was read again, which leaves a short moment in which the ID may be reused.

    :param pid: process ID
    :param number: number of the signal
    """
    with contextlib.suppress(ProcessLookupError), contextlib.ExitStack() as stack:
        opened = _open_process(pid)
        if opened is not None:
            stack.callback(os.close, opened)
        if _read_mark(pid) is None:
            return
        if opened is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(opened, number)


def _open_process(pid: int) -> typing.Optional[int]:
    """Return a file descriptor of a process (pidfd_open(2)). Return None if Python or the kernel does not support this,
    or if a filter of system calls forbids it.

    :param pid: process ID
    :raises ProcessLookupError: the process has ended
    """
    if not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def _await_quiet(processes: typing.Sequence[typing.Any]) -> None:
    """Wait until each server has ended or has used no CPU time for 0.4 seconds, which means that it waits for requests.
    Return without an error after 20 seconds.

    :param processes: ``subprocess.Popen`` of each server
    """
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
    """Return the process IDs of all processes in the sessions of the given leaders.

    :param leaders: process IDs of the session leaders
    """
    result = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _read_process_stat(int(name))
            if len(fields) > 3 and int(fields[3]) in leaders:
                result.append(int(name))
    return result


def _cpu_times(pid: int) -> str:
    """Return the state, the user time and the system time of a process (proc(5), fields 3, 14 and 15), separated by
    spaces. Return an empty string if it has ended.

    :param pid: process ID
    """
    fields = _read_process_stat(pid)
    return " ".join((fields[0], *fields[11:13])) if fields else ""


def _read_process_stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on. The process name before them may contain any character, so
    the text is split at its last bracket. Return an empty list if the process has ended.

    :param pid: process ID
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()
    except OSError:
        return []
