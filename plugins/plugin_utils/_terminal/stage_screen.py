# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Show the stages of a run on the terminal for the callback plugin ``stages``: headings, findings, the summary and the
verdict.
"""

from __future__ import annotations

import time
import typing

from ansible import constants

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.lines import (
    Stage,
    choose_tone,
    describe_changed,
    find_usual,
    format_span,
    in_short,
    lines_of,
)

Result = typing.Mapping[str, typing.Any]

# the last word of a run, by the role report
_VERDICT = "linerate.rdma: "
# of the role report: the lines at the end say the same
_TIMES = "Say where the time went"
_COLORS = {"bad": constants.COLOR_ERROR, "warn": constants.COLOR_WARN, "good": constants.COLOR_OK}


class StageScreen:
    """The lines of a run, and its stages.

    :ivar stages: stages of the run that had a task, in their order
    :ivar stage: the current stage; None in a play that belongs to no stage
    :ivar shown: lines that were shown last
    """

    def __init__(self, display: typing.Callable[[], typing.Any]) -> None:
        """Begin without a stage.

        :param display: function that returns Ansible's ``Display``
        """
        self._display = display
        self.stages: list[Stage] = []
        self.stage: typing.Optional[Stage] = None
        self.shown: list[str] = []
        self._heading = ""
        self._go = True
        self._verdict: typing.Optional[tuple[list[str], str]] = None

    def begin_play(self, name: typing.Optional[str], title: str) -> None:
        """Set the heading of a play. A further play of the same stage gets none.

        :param name: name of the stage of the play; None if it belongs to no stage
        :param title: name of the play
        """
        if name is None:
            self.stage, self._heading = None, f"== {title}"
        elif self.stage is None or self.stage.name != name:
            self.stage = Stage(name, time.monotonic())
            self._heading, self._go = self.stage.heading(), True

    def show_heading(self) -> None:
        """Show the pending heading, if there is one, above the first line that belongs to it."""
        if self._heading:
            heading, self._heading = self._heading, ""
            # no colour: with a log file, Ansible 2.16 refuses those that stand for no level of a log, and the line
            # below would be lost
            self.show_text(heading, gap=True)

    def show_text(self, text: str, color: typing.Optional[str] = None, gap: bool = False) -> None:
        """Show a text. Names and messages in it may come from a node or an API, so characters that control the terminal
        are escaped, and all lines but the first are indented.

        :param color: name of Ansible's color for the text; None for the default of the terminal
        :param gap: whether an empty line precedes the text
        """
        self._display().display(("\n" if gap else "") + escape.escape_lines(text), color=color)

    def show_line(self, line: str, color: typing.Optional[str] = None) -> None:
        """Show a line below the pending heading. A line that looks like the verdict is indented."""
        self.show_heading()
        # only the last line of a run is one
        self.show_text(f"  {line}" if line.startswith(_VERDICT) else line, color=color)

    def show_lines(self, lines: list[str]) -> None:
        """Show lines in the colors of their tones, in short if the stage has many."""
        self.shown = lines
        how = "good"
        for line in in_short(lines, self._go):
            how = choose_tone(line, how)
            self.show_line(line, _COLORS[how])

    def show_stage_start(self, found: Result) -> None:
        """Show the heading of a stage that starts, with its usual duration. For a stage that is not started, show the
        reason instead, without a heading if the reason is a single line.

        :param found: result of the task that begins the stage
        """
        self._go = bool(found.get("go", True))
        if self.stage is None:
            return
        if not self._go:
            if len(in_short(found.get("lines") or [], go=False)) < 2:
                self._heading = ""
            self.show_stage_result(found)
            return
        self.stage.usual = find_usual(found)
        if self._heading:
            self._heading = self.stage.heading()
            self.show_heading()

    def show_stage_result(self, found: Result) -> None:
        """Store the result of a stage and show it immediately, since a later task may fail.

        :param found: result of the task that judges the stage
        """
        lines = [str(line) for line in found.get("lines") or []]
        if self.stage is not None and lines:
            self.stage.end = lines[0].partition(": ")[2]
            self.stage.seconds = time.monotonic() - self.stage.began if self._go else None
            self.show_lines(lines)

    def show_task_message(self, name: str, found: Result) -> None:
        """Show the message of a task. A message equal to the text that was just shown is left out. So is the message
        with the durations of the stages if several stages ran, because the summary contains them.

        :param name: name of the task
        :param found: result of the task
        """
        lines = lines_of(found)
        # the last task of a stage says what its judgement has said
        if lines is not None and lines != self.shown and not (name == _TIMES and len(self.stages) > 1):
            self.show_lines(lines)

    def set_item_heading(self, label: typing.Any, found: Result) -> None:
        """Set the heading for one item of the loop that judges all stages again. A stage that was not run gets no
        heading, since its only line names the stage.

        :param label: label of the loop item, which is the name of a stage
        :param found: result of the loop item
        """
        lines = lines_of(found) or []
        if label in STAGES and (len(lines) > 1 or choose_tone("".join(lines), "good") == "good"):
            self._heading = f"== {label}"

    def keep_verdict(self, found: Result, how: str) -> bool:
        """Store the verdict of the run if the message of a task contains it. The verdict is shown as the last line of
        the run.

        :param found: result of the task
        :param how: tone of the verdict, ``good`` or ``bad``
        :returns: whether the message contains a verdict
        """
        lines = lines_of(found)
        if not lines or not lines[0].startswith(_VERDICT):
            return False
        self._verdict = (lines, how)
        return True

    def show_stages(self, stats: typing.Any) -> None:
        """Show the stages of the run with their durations and results, and the number of changes. A run of a single
        stage gets no summary.

        :param stats: Ansible's ``AggregateStats``, which counts the results of each host
        """
        if len(self.stages) < 2:
            return
        self.show_text("== stages", gap=True)
        for stage in self.stages:
            self.show_text(stage.row(), color=_COLORS[choose_tone(stage.end, "bad")] if stage.end else None)
        total = sum(stage.seconds or 0.0 for stage in self.stages)
        self.show_text(f"  {'total':<20}{total:9.1f} s{f'  {format_span(total)}' if total >= 120 else ''}")
        counts = {host: stats.summarize(host)["changed"] for host in stats.processed}
        self.show_text(describe_changed(counts), color=constants.COLOR_CHANGED if any(counts.values()) else None)

    def show_failed_hosts(self, stats: typing.Any) -> None:
        """Show the hosts that were unreachable or on which a task failed. The other hosts are not shown.

        :param stats: Ansible's ``AggregateStats``, which counts the results of each host
        """
        for host in sorted(stats.processed):
            counts = stats.summarize(host)
            trouble = [
                f"{counts[name]} {word}"
                for name, word in (("unreachable", "unreachable"), ("failures", "failed"))
                if counts[name]
            ]
            if trouble:
                self.show_text(f"{host}: {', '.join(trouble)}", color=constants.COLOR_ERROR)

    def show_end(self, stats: typing.Any, cause: str, cause_is_due: bool) -> None:
        """Show the last lines of the run: its verdict, or what stopped it.

        :param stats: Ansible's ``AggregateStats``, which counts the results of each host
        :param cause: where and why the run stopped; empty if no task ended it
        :param cause_is_due: whether the cause was not shown yet
        """
        if self._verdict:
            if cause_is_due:
                self.show_text(cause.removeprefix(_VERDICT), color=constants.COLOR_ERROR)
            said, how = self._verdict
            for line in said:
                self.show_text(line, color=_COLORS[how])
        elif cause and any(stats.summarize(host)["failures"] for host in stats.processed):
            self.show_text(cause, color=constants.COLOR_ERROR)
