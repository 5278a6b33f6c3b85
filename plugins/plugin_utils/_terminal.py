# SPDX-License-Identifier: GPL-3.0-or-later

"""The words in which a run reads as its stages, for the callback plugin of that name. Pure: what is shown when is for
the plugin to say."""

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
    """A stage as this run shows it.

    :ivar began: by a monotonic clock, in seconds
    :ivar usual: seconds that it took in the runs before, and how many runs these are; None where none is kept
    :ivar seconds: that it took; None until it is judged
    :ivar end: what came of it, in one line
    """

    name: str
    began: float
    usual: typing.Optional[tuple[float, int]] = None
    seconds: typing.Optional[float] = None
    end: str = ""

    def heading(self) -> str:
        """Return its first line."""
        return f"== {self.name}{f' ({usually(self.usual)})' if self.usual else ''}"

    def row(self) -> str:
        """Return its line at the end of the run."""
        seconds = "         -  " if self.seconds is None else f"{self.seconds:9.1f} s"
        return f"  {self.name:<20}{seconds}  {self.end or 'not judged'}"


def usual(result: Result) -> typing.Optional[tuple[float, int]]:
    """Return the usual time from the result of ``stage_begin``."""
    seconds, runs = result.get("usual_seconds"), result.get("usual_runs")
    return (float(seconds), int(runs)) if isinstance(seconds, (int, float)) and isinstance(runs, int) and runs else None


def usually(known: tuple[float, int]) -> str:
    seconds, runs = known
    return f"usually {span(seconds)}, by {runs} run{'' if runs == 1 else 's'} before"


def span(seconds: float) -> str:
    """Return the seconds as a reader wants them.

    >>> span(42.4), span(130)
    ('42 s', '2 min 10 s')
    """
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def changed(by_host: typing.Mapping[str, int]) -> str:
    """Return how many tasks changed something, as Ansible's own recap counts them: the line that shows whether a second
    run left all as it was.

    >>> changed({"localhost": 3, "worker-1": 0})
    '  changed             3 tasks: localhost 3'
    """
    some = sorted(((count, host) for host, count in by_host.items() if count), key=lambda item: (-item[0], item[1]))
    total = sum(count for count, _host in some)
    names = ", ".join(f"{host} {count}" for count, host in some[:_MOST_HOSTS])
    more = f" and {len(some) - _MOST_HOSTS} more hosts" if len(some) > _MOST_HOSTS else ""
    return f"  {'changed':<20}{total} task{'' if total == 1 else 's'}{f': {names}{more}' if some else ''}"


def waiting(task: str, hosts: typing.Sequence[str], seconds: float, stage: typing.Optional[Stage], now: float) -> str:
    """Report that a task is still at work: since when, on which hosts, and how long its stage usually takes.

    :param seconds: since the task began
    """
    more = f" and {len(hosts) - _MOST_HOSTS} more" if len(hosts) > _MOST_HOSTS else ""
    names = f", waits for {', '.join(hosts[:_MOST_HOSTS])}{more}" if hosts else ""
    known = f"; {stage.name} is at {span(now - stage.began)}, {usually(stage.usual)}" if stage and stage.usual else ""
    return f"{seconds:7.0f} s  {task}{names}{known}"


def lines_of(result: Result) -> typing.Optional[list[str]]:
    """Return the message of a result as lines; None where it has none, as one that is hidden."""
    said = result.get("msg")
    if isinstance(said, str):
        return said.rstrip("\n").split("\n")
    if isinstance(said, (list, tuple)):
        return [str(line) for line in said]
    return None


def stopped(where: str, said: typing.Optional[typing.Sequence[str]]) -> str:
    """Return the last line of a run that ended without a verdict.

    >>> stopped("stage fabric", ["no kubeconfig. Name one"])
    'linerate.rdma: STOPPED - stage fabric: no kubeconfig. Name one'
    >>> stopped("stage fabric", ["stage fabric: no kubeconfig. Name one"])
    'linerate.rdma: STOPPED - stage fabric: no kubeconfig. Name one'

    :param where: stage or playbook
    :param said: what the task said that ended it; None where it has no message, or a hidden one
    """
    lines = [line.strip() for line in said or () if line.strip()]
    if not lines:
        return f"linerate.rdma: STOPPED - {where}: see the output above"
    first = lines[0][len(where) + 2 :] if lines[0].startswith(f"{where}: ") else lines[0]
    return f"linerate.rdma: STOPPED - {where}: {first}{'; see the output above' if len(lines) > 1 else ''}"


def goes_on(task: typing.Any) -> bool:
    """Tell whether the run goes on where this task fails: a block around it has a rescue, and the task is not in that
    itself."""
    inner, outer = task, getattr(task, "_parent", None)
    while outer is not None:
        if getattr(outer, "rescue", None) and any(item._uuid == inner._uuid for item in outer.block):
            return True
        inner, outer = outer, getattr(outer, "_parent", None)
    return False


def in_short(lines: typing.Sequence[str], go: bool) -> typing.Sequence[str]:
    """The judgement over a stage that did not start because of one before it is a line; whatever else a stage says, it
    says in full."""
    statuses = [line[1:].partition("]")[0] for line in lines if line.startswith("[")]
    only_skipped = SKIPPED in statuses and not {FAIL, UNKNOWN} & set(statuses)
    return lines[:1] if not go and only_skipped else lines


def tone(line: str, before: str) -> str:
    """Return the tone of a line of a judgement: ``bad``, ``warn``, ``good``, or as the one before, which it belongs
    to."""
    if line.startswith("["):
        return "bad" if line.startswith((f"[{FAIL}]", f"[{UNKNOWN}]")) else "warn"
    if line.startswith(" "):
        return before
    if f" {NOT_RUN}: the run stopped at stage " in line:
        return "warn"
    return "bad" if line.partition(" (check mode)")[0].endswith(_NOT_WELL) or ": NOT GREEN" in line else "good"
