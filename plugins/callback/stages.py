# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: stages
type: stdout
short_description: Show a run of this collection as its stages
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Shows a run of the playbooks of this collection as stages. Each stage has a heading, progress, its findings as they
    come, and one line at the end of the run.
  - A task that takes long says what it waits for and how long its stage usually takes, by the runs that the report has
    kept.
  - Shows what a task changes, and each task that fails with its full message, also if the stage goes on without it. If
    a task ends the run and its message is one line, only the last line has it.
  - Shows once that a host is unreachable, although each of its tasks fails, and again only if the reason changes.
  - The last line of a run that fails is its verdict, or names the stage or playbook in which it stopped, and the
    message of the task that stopped it.
  - Plain lines, one after the other, so that logs of CI systems and the output of AWX jobs read the same.
  - With C(-v), and for plays that are not of this collection, the output is that of the callback
    P(ansible.builtin.default#callback).
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - Set as stdout callback in the configuration, O(ignore:stdout_callback=linerate.rdma.stages) in C([defaults]) or
    E(ANSIBLE_STDOUT_CALLBACK).
seealso:
  - plugin: ansible.builtin.default
    plugin_type: callback
    description: What is shown with C(-v), and of other plays.
"""

import os
import threading
import time
import typing

from ansible import constants
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import quiet_ansible
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import escape_nonprinting
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal import (
    FIRST_SILENCE,
    MOST_SILENCE,
    Stage,
    choose_tone,
    describe_changed,
    describe_stop,
    describe_unreachable,
    describe_waiting,
    find_usual,
    format_span,
    goes_on,
    in_short,
    lines_of,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_callback

_OURS = "linerate.rdma."
_PLAYBOOKS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "playbooks"))
_BEGIN = "linerate.rdma.stage_begin"
_GATE = "linerate.rdma.stage_gate"
_SAY = ("debug", "ansible.builtin.debug")
_REFUSE = ("fail", "ansible.builtin.fail", "assert", "ansible.builtin.assert")
_TEARDOWN = "linerate.rdma.teardown_gate"
_ARGUMENTS = ("validate_argument_spec", "ansible.builtin.validate_argument_spec")
# the last word of a run, by the role report
_VERDICT = "linerate.rdma: "
# of the role report: the lines at the end say the same
_TIMES = "Say where the time went"
_COLORS = {"bad": constants.COLOR_ERROR, "warn": constants.COLOR_WARN, "good": constants.COLOR_OK}
_LOOK_SECONDS = 1.0


def _stage_of(play: typing.Any) -> typing.Optional[str]:
    """Return the name of the stage to which a play belongs, or None if it belongs to no stage. The name is that of the
    playbook file, or the play variable ``stage_name`` in a playbook that several stages share.

    :param play: Ansible's ``Play``
    """
    path = os.path.basename(play.get_path())
    for name in (play.vars.get("stage_name"), path.partition(".yml:")[0]):
        if name in STAGES:
            return str(name)
    return None


def _says_all(result: typing.Any) -> bool:
    """Return whether the message of a failed task is sufficient, so that its other result keys need not be shown. This
    is the case for an error of this collection in a single line, which contains cause and remedy.

    :param result: Ansible's ``TaskResult``
    """
    lines = lines_of(result._result) or []
    known = result._task.action.startswith(_OURS) and isinstance(result._result.get("failure"), dict)
    return known and not result._task.loop and len(lines) == 1


@guard_callback
class CallbackModule(Default):
    """A stdout callback. It shows the plays of this collection briefly, stage by stage. All other plays, and all plays
    with -v, are shown as by the default callback.
    """

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "linerate.rdma.stages"

    def __init__(self) -> None:
        super().__init__()
        self._quiet = False
        self._all_quiet = True
        self._starting = False
        self._go = True
        self._stages: list[Stage] = []
        self._stage: typing.Optional[Stage] = None
        self._heading = ""
        # stage or playbook
        self._where = ""
        self._shown: list[str] = []
        self._verdict: typing.Optional[tuple[list[str], str]] = None
        self._ours = False
        # the first that nothing goes on from: what fails after it, fails because of it
        self._cause = ""
        # whether it was not shown yet
        self._cause_is_due = False
        # by host: what was shown of it
        self._unreachable: dict[str, list[str]] = {}
        # what is waited for: its name, since when, on which hosts, and the silence after which that is said
        self._lock = threading.Lock()
        self._task = ""
        self._since = 0.0
        self._silence = FIRST_SILENCE
        self._hosts: dict[str, None] = {}
        self._done = threading.Event()
        self._watcher: typing.Optional[threading.Thread] = None

    # plays and tasks

    def v2_playbook_on_play_start(self, play: typing.Any) -> None:
        self._clear_current_task()
        self._ours = os.path.realpath(os.path.dirname(play.get_path())) == _PLAYBOOKS
        self._quiet = self._ours and self._display.verbosity == 0
        self._all_quiet = self._all_quiet and self._quiet
        name = _stage_of(play)
        self._where = f"stage {name}" if name else os.path.basename(play.get_path()).partition(".yml")[0]
        if not self._quiet:
            self._stage = None
            super().v2_playbook_on_play_start(play)
            return
        self._play = play
        if name is None:
            self._stage, self._heading = None, f"== {play.get_name().strip()}"
        elif self._stage is None or self._stage.name != name:
            self._stage = Stage(name, time.monotonic())
            self._heading, self._go = self._stage.heading(), True
        if self._watcher is None:
            # a daemon, and one that prints under the lock that a fork of Ansible waits for
            self._watcher = threading.Thread(target=self._watch_for_silence, daemon=True)
            self._watcher.start()

    def v2_playbook_on_task_start(self, task: typing.Any, is_conditional: bool) -> None:
        self._begin_task(task)
        self._starting = self._quiet
        super().v2_playbook_on_task_start(task, is_conditional)
        self._starting = False

    def v2_playbook_on_handler_task_start(self, task: typing.Any) -> None:
        self._begin_task(task)
        self._starting = self._quiet
        super().v2_playbook_on_handler_task_start(task)
        self._starting = False

    def v2_runner_on_start(self, host: typing.Any, task: typing.Any) -> None:
        with self._lock:
            self._hosts[host.get_name()] = None
        super().v2_runner_on_start(host, task)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if not self._quiet:
            super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_include(self, included_file: typing.Any) -> None:
        if not self._quiet:
            super().v2_playbook_on_include(included_file)

    def _print_task_banner(self, task: typing.Any) -> None:
        """Print the banner of a task. While Ansible starts the task, print nothing: the banner is printed later, above
        the first output of the task.

        :param task: Ansible's ``Task``
        """
        if self._starting:
            return
        self._show_heading()
        super()._print_task_banner(task)

    # results

    def v2_runner_on_ok(self, result: typing.Any) -> None:
        self._forget_answered_host(result)
        if not self._quiet:
            super().v2_runner_on_ok(result)
            return
        task, found = result._task, result._result
        if found.get("warnings") or found.get("deprecations"):
            self._show_heading()
        self._handle_warnings(found)
        if task.action == _BEGIN:
            self._show_stage_start(found)
        elif task.action == _GATE:
            self._show_stage_result(found)
        elif task.action in _SAY and not task.loop:
            self._show_task_message(task.name, found)
        elif task.action in (*_REFUSE, _TEARDOWN):
            self._keep_verdict(found, "good")
        elif found.get("changed") and not task.loop:
            self._show_line(f"changed: [{result._host.get_name()}] {self._task}", constants.COLOR_CHANGED)

    def v2_runner_item_on_ok(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_ok(result)
        elif result._task.action in _SAY:
            self._set_item_heading(self._get_item_label(result._result), result._result)
            self._show_task_message(result._task.name, result._result)
        elif result._result.get("changed"):
            item = self._get_item_label(result._result)
            self._show_line(f"changed: [{result._host.get_name()}] {self._task} (item={item})", constants.COLOR_CHANGED)

    def v2_runner_on_skipped(self, result: typing.Any) -> None:
        self._forget_answered_host(result)
        if not self._quiet:
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_skipped(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_skipped(result)

    def v2_runner_retry(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_retry(result)

    def v2_runner_on_failed(self, result: typing.Any, ignore_errors: bool = False) -> None:
        self._forget_answered_host(result)
        said_by_it = lines_of(result._result)
        ends = self._ours and not (self._cause or ignore_errors or goes_on(result._task))
        if ends:
            self._cause = describe_stop(self._where, said_by_it)
        if self._quiet and _says_all(result):
            self._cause_is_due = self._cause_is_due or ends
            self._failed_in_short(result, "" if ends else (said_by_it or [""])[0], ignore_errors)
            return
        lines = said_by_it if result._task.action in _REFUSE and not result._task.loop else None
        if not self._quiet or lines is None or ignore_errors:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        self._handle_warnings(result._result)
        if self._keep_verdict(result._result, "bad"):
            return
        # a stage that runs alone ends with what it has just said
        said = [self._task] if lines == self._shown else lines
        self._show_line(f"fatal: [{result._host.get_name()}]: {said[0]}", constants.COLOR_ERROR)
        for line in said[1:]:
            self._show_line(line, constants.COLOR_ERROR)

    def v2_runner_on_unreachable(self, result: typing.Any) -> None:
        self._forget_answered_host(result)
        if not self._quiet:
            super().v2_runner_on_unreachable(result)
            return
        self._handle_warnings(result._result)
        host, lines = result._host.get_name(), describe_unreachable(result._result)
        # a node that does not answer fails each task that asks it
        if self._unreachable.get(host) != lines:
            self._unreachable[host] = lines
            self._show_line("\n".join([f"unreachable: [{host}]: {lines[0]}", *lines[1:]]), constants.COLOR_UNREACHABLE)

    # the end

    def v2_playbook_on_stats(self, stats: typing.Any) -> None:
        self._clear_current_task()
        self._done.set()
        if len(self._stages) > 1:
            self._show_escaped_text("== stages", gap=True)
            for stage in self._stages:
                self._show_escaped_text(
                    stage.row(), color=_COLORS[choose_tone(stage.end, "bad")] if stage.end else None
                )
            total = sum(stage.seconds or 0.0 for stage in self._stages)
            self._show_escaped_text(f"  {'total':<20}{total:9.1f} s{f'  {format_span(total)}' if total >= 120 else ''}")
            counts = {host: stats.summarize(host)["changed"] for host in stats.processed}
            self._show_escaped_text(
                describe_changed(counts), color=constants.COLOR_CHANGED if any(counts.values()) else None
            )
        if not self._all_quiet:
            super().v2_playbook_on_stats(stats)
        else:
            self._show_failed_hosts(stats)
        if self._verdict:
            if self._cause_is_due:
                self._show_escaped_text(self._cause.removeprefix(_VERDICT), color=constants.COLOR_ERROR)
            said, how = self._verdict
            for line in said:
                self._show_escaped_text(line, color=_COLORS[how])
        elif self._cause and any(stats.summarize(host)["failures"] for host in stats.processed):
            self._show_escaped_text(self._cause, color=constants.COLOR_ERROR)

    def _show_failed_hosts(self, stats: typing.Any) -> None:
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
                self._show_escaped_text(f"{host}: {', '.join(trouble)}", color=constants.COLOR_ERROR)

    # what is shown

    def _failed_in_short(self, result: typing.Any, said: str, ignored: bool) -> None:
        """Show a failed task of the collection on one line: the host, the task and its message.

        :param result: Ansible's ``TaskResult`` of the failed task
        :param said: message of the task; empty if the last line of the run contains it
        :param ignored: whether the run ignores the failure
        """
        self._handle_warnings(result._result)
        words = [f"fatal: [{result._host.get_name()}]", self._task, *([said] if said else [])]
        self._show_line(f"{': '.join(words)}{' - ignored' if ignored else ''}", constants.COLOR_ERROR)
        # a rescue that says why is not needed for it
        self._shown = [said]

    def _show_heading(self) -> None:
        """Show the pending heading, if there is one, above the first line that belongs to it."""
        if self._heading:
            heading, self._heading = self._heading, ""
            # no colour: with a log file, Ansible 2.16 refuses those that stand for no level of a log, and the line
            # below would be lost
            self._show_escaped_text(heading, gap=True)

    def _show_escaped_text(self, text: str, color: typing.Optional[str] = None, gap: bool = False) -> None:
        """Show a text. Names and messages in it may come from a node or an API, so characters that control the terminal
        are escaped, and all lines but the first are indented.

        :param color: name of Ansible's color for the text; None for the default of the terminal
        :param gap: whether an empty line precedes the text
        """
        self._display.display(("\n" if gap else "") + escape.escape_lines(text), color=color)

    def _show_line(self, line: str, color: typing.Optional[str] = None) -> None:
        self._show_heading()
        # only the last line of a run is one
        self._show_escaped_text(f"  {line}" if line.startswith(_VERDICT) else line, color=color)

    def _show_stage_start(self, found: typing.Mapping[str, typing.Any]) -> None:
        """Show the heading of a stage that starts, with its usual duration. For a stage that is not started, show the
        reason instead, without a heading if the reason is a single line.

        :param found: result of the task that begins the stage
        """
        self._go = bool(found.get("go", True))
        if self._stage is None:
            return
        if not self._go:
            if len(in_short(found.get("lines") or [], go=False)) < 2:
                self._heading = ""
            self._show_stage_result(found)
            return
        self._stage.usual = find_usual(found)
        if self._heading:
            self._heading = self._stage.heading()
            self._show_heading()

    def _show_stage_result(self, found: typing.Mapping[str, typing.Any]) -> None:
        """Store the result of a stage and show it immediately, since a later task may fail.

        :param found: result of the task that judges the stage
        """
        lines = [str(line) for line in found.get("lines") or []]
        if self._stage is not None and lines:
            self._stage.end = lines[0].partition(": ")[2]
            self._stage.seconds = time.monotonic() - self._stage.began if self._go else None
            self._show_lines(lines)

    def _show_task_message(self, name: str, found: typing.Mapping[str, typing.Any]) -> None:
        """Show the message of a task. A message equal to the text that was just shown is left out. So is the message
        with the durations of the stages if several stages ran, because the summary contains them.

        :param name: name of the task
        :param found: result of the task
        """
        lines = lines_of(found)
        # the last task of a stage says what its judgement has said
        if lines is not None and lines != self._shown and not (name == _TIMES and len(self._stages) > 1):
            self._show_lines(lines)

    def _set_item_heading(self, label: typing.Any, found: typing.Mapping[str, typing.Any]) -> None:
        """Set the heading for one item of the loop that judges all stages again. A stage that was not run gets no
        heading, since its only line names the stage.

        :param label: label of the loop item, which is the name of a stage
        :param found: result of the loop item
        """
        lines = lines_of(found) or []
        if label in STAGES and (len(lines) > 1 or choose_tone("".join(lines), "good") == "good"):
            self._heading = f"== {label}"

    def _show_lines(self, lines: list[str]) -> None:
        self._shown = lines
        how = "good"
        for line in in_short(lines, self._go):
            how = choose_tone(line, how)
            self._show_line(line, _COLORS[how])

    def _keep_verdict(self, found: typing.Mapping[str, typing.Any], how: str) -> bool:
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

    # what is waited for

    def _begin_task(self, task: typing.Any) -> None:
        with self._lock:
            self._task = task.get_name().rpartition(" : ")[2].strip()
            self._since, self._silence = time.monotonic(), FIRST_SILENCE
            self._hosts.clear()
        # Ansible checks the arguments of a role whatever the tags are; of a stage that these leave out there is no
        # other task
        if task.action not in _ARGUMENTS and self._stage is not None and self._stage not in self._stages:
            self._stages.append(self._stage)

    def _handle_warnings(self, res: typing.Any) -> None:
        """Show warnings and deprecations with all non-printing characters escaped, since a node may have written
        them.

        :param res: result of a task; its ``warnings`` and ``deprecations`` are replaced by escaped texts
        """
        for name in ("warnings", "deprecations"):
            if res.get(name):
                res[name] = escape_nonprinting(res[name])
        # since 2.19 ansible-core shows its own copy of them
        with quiet_ansible("  " if self._ours else ""):
            super()._handle_warnings(res)

    def _handle_exception(self, *arguments: typing.Any, **options: typing.Any) -> None:
        """Show the error of a task with all non-printing characters escaped, since a program on the controller may
        quote any text in it.
        """
        with quiet_ansible("  " if self._ours else ""):
            super()._handle_exception(*arguments, **options)

    def _dump_results(self, *found: typing.Any, **how: typing.Any) -> typing.Any:
        """Return a whole result as text with all non-printing characters escaped. The text is shown for failed tasks,
        and with -v for all tasks.
        """
        dumped = super()._dump_results(*found, **how)
        return escape.escape_nonprinting(dumped, "\n\t") if isinstance(dumped, str) else dumped

    def _get_diff(self, difflist: typing.Any) -> typing.Any:
        # before it has the colours, which do not print either
        return super()._get_diff(escape_nonprinting(difflist))

    def _get_item_label(self, result: typing.Any) -> typing.Any:
        return escape_nonprinting(super()._get_item_label(result))

    def _forget_answered_host(self, result: typing.Any) -> None:
        with self._lock:
            self._hosts.pop(result._host.get_name(), None)

    def _clear_current_task(self) -> None:
        with self._lock:
            self._task = ""

    def _watch_for_silence(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            self._report_silence(time.monotonic())

    def _report_silence(self, now: float) -> None:
        """Show the current task and its hosts if the task has run for some time. The silence before the next such line
        doubles, but grows by at most ``MOST_SILENCE`` seconds each time.

        :param now: time of a monotonic clock, in seconds
        """
        # Ansible forks under the lock of the display: no child of it comes to be while this one prints
        with self._display._lock, self._lock:
            seconds = now - self._since
            if self._quiet and self._task and self._hosts and seconds >= self._silence:
                self._silence = min(self._silence * 2, self._silence + MOST_SILENCE)
                self._show_line(describe_waiting(self._task, list(self._hosts), seconds, self._stage, now))
