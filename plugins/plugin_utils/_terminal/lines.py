# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats the lines that the callback plugin ``stages`` shows during a run. Pure: the plugin decides when each line is
shown.
"""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import FAIL, SKIPPED, UNKNOWN
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.records import (
    CLOSED,
    NOT_PASSED,
    NOT_RUN,
    OUTCOMES,
)

#: seconds of silence after which a task says that it is still there; each time twice as long, up to the most
FIRST_SILENCE, MOST_SILENCE = 10.0, 160.0
#: hosts that are named where many are waited for
_MOST_HOSTS = 3
#: how the first line of a judgement ends where something is to be read
_NOT_WELL = tuple(f" - {word}" for word in (OUTCOMES[CLOSED], NOT_RUN, NOT_PASSED))

Result = typing.Mapping[str, typing.Any]


@dataclasses.dataclass
class Stage:
    """A stage of this run, with its times and its result for the terminal.

    :ivar name: name of the stage
    :ivar began: time of a monotonic clock at the start, in seconds
    :ivar usual: duration in earlier runs in seconds, and the number of these runs; None if no earlier run is stored
    :ivar seconds: duration in seconds; None if the stage did not run, or has no result yet
    :ivar end: result in one line; empty if there is no result yet
    """

    name: str
    began: float
    usual: typing.Optional[tuple[float, int]] = None
    seconds: typing.Optional[float] = None
    end: str = ""

    def heading(self) -> str:
        """Return the first line of the stage, such as ``== fabric (usually 42 s, based on 3 previous runs)``. The usual
        duration is left out if it is not known.
        """
        return f"== {self.name}{f' ({describe_usual(self.usual)})' if self.usual else ''}"

    def row(self) -> str:
        """Return the line of the stage in the summary at the end of the run: name, duration and result. A missing
        duration is ``-``, a missing result ``not judged``.
        """
        seconds = "         -  " if self.seconds is None else f"{self.seconds:9.1f} s"
        return f"  {self.name:<20}{seconds}  {self.end or 'not judged'}"


def find_usual(result: Result) -> typing.Optional[tuple[float, int]]:
    """Return the usual duration of a stage in seconds and the number of runs from which it is known, from the result of
    the task ``stage_begin``. Return None if the result does not contain them.
    """
    seconds, runs = result.get("usual_seconds"), result.get("usual_runs")
    return (float(seconds), int(runs)) if isinstance(seconds, (int, float)) and isinstance(runs, int) and runs else None


def describe_usual(known: tuple[float, int]) -> str:
    seconds, runs = known
    return f"usually {format_span(seconds)}, based on {runs} previous run{'' if runs == 1 else 's'}"


def format_span(seconds: float) -> str:
    """Return a duration as text: up to 119 seconds in seconds, longer ones in minutes and seconds. Example::

        >>> format_span(42.4), format_span(130)
        ('42 s', '2 min 10 s')

    :param seconds: duration in seconds
    """
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def describe_changed(by_host: typing.Mapping[str, int]) -> str:
    """Return a line with the number of tasks that changed something, counted as in Ansible's own recap, and the hosts
    with the most changes. For a second run the line shows whether the run changed nothing. Example::

        >>> describe_changed({"localhost": 3, "worker-1": 0})
        '  changed             3 tasks: localhost 3'

    :param by_host: number of tasks that changed something, by name of the host
    """
    some = sorted(((count, host) for host, count in by_host.items() if count), key=lambda item: (-item[0], item[1]))
    total = sum(count for count, _host in some)
    names = ", ".join(f"{host} {count}" for count, host in some[:_MOST_HOSTS])
    more = f" and {len(some) - _MOST_HOSTS} more hosts" if len(some) > _MOST_HOSTS else ""
    return f"  {'changed':<20}{total} task{'' if total == 1 else 's'}{f': {names}{more}' if some else ''}"


def describe_waiting(
    task: str, hosts: typing.Sequence[str], seconds: float, stage: typing.Optional[Stage], now: float
) -> str:
    """Return the line for a task that still runs: its duration, its hosts, and how long its stage has taken and usually
    takes.

    :param task: name of the task
    :param hosts: hosts that have not answered yet. Only the first three are named
    :param seconds: seconds since the task began
    :param stage: stage to which the task belongs; None if it belongs to none
    :param now: time of a monotonic clock, in seconds
    """
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    names = f", waiting for {', '.join(hosts[:_MOST_HOSTS])}{more}" if hosts else ""
    known = (
        (f"; {stage.name} has taken {format_span(now - stage.began)}, {describe_usual(stage.usual)}")
        if stage and stage.usual
        else ""
    )
    return f"{seconds:7.0f} s  {task}{names}{known}"


def lines_of(result: Result) -> typing.Optional[list[str]]:
    """Return the message of a result as lines. Return None if it has no message, or if its message is hidden
    (``no_log``).
    """
    said = result.get("msg")
    if isinstance(said, str):
        return said.rstrip("\n").split("\n")
    if isinstance(said, (list, tuple)):
        return [str(line) for line in said]
    return None


def describe_unreachable(result: Result) -> list[str]:
    """Return the reason why a host is unreachable, as lines. The prefix that ansible-core adds since version 2.19 is
    removed. Return a line that says so if Ansible gives no reason.

    :param result: result of the task on the host
    """
    said = "\n".join(lines_of(result) or ()).removeprefix("Task failed: ").strip()
    return said.split("\n") if said else ["Ansible gives no reason"]


def describe_stop(where: str, said: typing.Optional[typing.Sequence[str]]) -> str:
    """Return the last line of a run that ended without a verdict: the first line of the message, and a reference to the
    output above if the message has more lines. Example::

        >>> describe_stop("stage fabric", ["no kubeconfig. Name one"])
        'linerate.rdma: STOPPED - stage fabric: no kubeconfig. Name one'
        >>> describe_stop("stage fabric", ["stage fabric: no kubeconfig. Name one"])
        'linerate.rdma: STOPPED - stage fabric: no kubeconfig. Name one'

    :param where: stage or playbook
    :param said: message of the task that ended the run; None if it has no message, or a hidden one
    """
    lines = [line.strip() for line in said or () if line.strip()]
    if not lines:
        return f"linerate.rdma: STOPPED - {where}: see the output above"
    first = lines[0][len(where) + 2 :] if lines[0].startswith(f"{where}: ") else lines[0]
    shown = 1
    if first.endswith(":") and len(lines) > 1:
        # a heading, as of Ansible's check of the arguments of a role
        first, shown = f"{first} {lines[1]}", 2
    return f"linerate.rdma: STOPPED - {where}: {first}{'; see the output above' if len(lines) > shown else ''}"


def goes_on(task: typing.Any) -> bool:
    """Return whether the run continues if a task fails. The run continues if a block around the task has a rescue, and
    the task is not part of that rescue.

    :param task: Ansible's ``Task``
    """
    inner, outer = task, getattr(task, "_parent", None)
    while outer is not None:
        if getattr(outer, "rescue", None) and any(item._uuid == inner._uuid for item in outer.block):
            return True
        inner, outer = outer, getattr(outer, "_parent", None)
    return False


def in_short(lines: typing.Sequence[str], go: bool) -> typing.Sequence[str]:
    """Return those lines of a stage's message that are shown. If the stage did not start and all of its problems are
    skipped checks, only the first line is shown, because the cause was shown at an earlier stage.

    :param lines: lines of the message
    :param go: whether the stage started
    """
    statuses = [line[1:].partition("]")[0] for line in lines if line.startswith("[")]
    only_skipped = SKIPPED in statuses and not {FAIL, UNKNOWN} & set(statuses)
    return lines[:1] if not go and only_skipped else lines


def choose_tone(line: str, before: str) -> str:
    """Return the tone of a line in the result of a stage, by which the line is colored: ``bad``, ``warn`` or ``good``.
    A continuation line, which begins with a space, has the tone of the previous line.

    :param before: tone of the previous line
    """
    if line.startswith("["):
        return "bad" if line.startswith((f"[{FAIL}]", f"[{UNKNOWN}]")) else "warn"
    if line.startswith(" "):
        return before
    if f" {NOT_RUN}: the run stopped at stage " in line:
        return "warn"
    return "bad" if line.partition(" (check mode)")[0].endswith(_NOT_WELL) or ": NOT GREEN" in line else "good"
