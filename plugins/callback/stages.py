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
import typing

from ansible import constants
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import quiet_ansible
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import escape_nonprinting
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.lines import (
    describe_stop,
    describe_unreachable,
    describe_waiting,
    goes_on,
    lines_of,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.silence import SilenceWatch
from ansible_collections.linerate.rdma.plugins.plugin_utils._terminal.stage_screen import StageScreen
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_callback

_OURS = "linerate.rdma."
_PLAYBOOKS = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "playbooks"))
_BEGIN = "linerate.rdma.stage_begin"
_GATE = "linerate.rdma.stage_gate"
_SAY = ("debug", "ansible.builtin.debug")
_REFUSE = ("fail", "ansible.builtin.fail", "assert", "ansible.builtin.assert")
_TEARDOWN = "linerate.rdma.teardown_gate"
_ARGUMENTS = ("validate_argument_spec", "ansible.builtin.validate_argument_spec")


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
        # stage or playbook
        self._where = ""
        self._ours = False
        # the first that nothing goes on from: what fails after it, fails because of it
        self._cause = ""
        # whether it was not shown yet
        self._cause_is_due = False
        # by host: what was shown of it
        self._unreachable: dict[str, list[str]] = {}
        self._screen = StageScreen(lambda: self._display)
        self._silence = SilenceWatch(lambda: self._display._lock, self._show_silence)

    # plays and tasks

    def v2_playbook_on_play_start(self, play: typing.Any) -> None:
        self._silence.clear_task()
        self._ours = os.path.realpath(os.path.dirname(play.get_path())) == _PLAYBOOKS
        self._quiet = self._ours and self._display.verbosity == 0
        self._all_quiet = self._all_quiet and self._quiet
        name = _stage_of(play)
        self._where = f"stage {name}" if name else os.path.basename(play.get_path()).partition(".yml")[0]
        if not self._quiet:
            self._screen.stage = None
            super().v2_playbook_on_play_start(play)
            return
        self._play = play
        self._screen.begin_play(name, play.get_name().strip())
        self._silence.start()

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
        self._silence.add_host(host.get_name())
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
        self._screen.show_heading()
        super()._print_task_banner(task)

    # results

    def v2_runner_on_ok(self, result: typing.Any) -> None:
        self._silence.remove_host(result._host.get_name())
        if not self._quiet:
            super().v2_runner_on_ok(result)
            return
        task, found = result._task, result._result
        if found.get("warnings") or found.get("deprecations"):
            self._screen.show_heading()
        self._handle_warnings(found)
        if task.action == _BEGIN:
            self._screen.show_stage_start(found)
        elif task.action == _GATE:
            self._screen.show_stage_result(found)
        elif task.action in _SAY and not task.loop:
            self._screen.show_task_message(task.name, found)
        elif task.action in (*_REFUSE, _TEARDOWN):
            self._screen.keep_verdict(found, "good")
        elif found.get("changed") and not task.loop:
            self._screen.show_line(
                f"changed: [{result._host.get_name()}] {self._silence.task}", constants.COLOR_CHANGED
            )

    def v2_runner_item_on_ok(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_ok(result)
        elif result._task.action in _SAY:
            self._screen.set_item_heading(self._get_item_label(result._result), result._result)
            self._screen.show_task_message(result._task.name, result._result)
        elif result._result.get("changed"):
            item = self._get_item_label(result._result)
            self._screen.show_line(
                f"changed: [{result._host.get_name()}] {self._silence.task} (item={item})", constants.COLOR_CHANGED
            )

    def v2_runner_on_skipped(self, result: typing.Any) -> None:
        self._silence.remove_host(result._host.get_name())
        if not self._quiet:
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_skipped(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_item_on_skipped(result)

    def v2_runner_retry(self, result: typing.Any) -> None:
        if not self._quiet:
            super().v2_runner_retry(result)

    def v2_runner_on_failed(self, result: typing.Any, ignore_errors: bool = False) -> None:
        self._silence.remove_host(result._host.get_name())
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
        if self._screen.keep_verdict(result._result, "bad"):
            return
        # a stage that runs alone ends with what it has just said
        said = [self._silence.task] if lines == self._screen.shown else lines
        self._screen.show_line(f"fatal: [{result._host.get_name()}]: {said[0]}", constants.COLOR_ERROR)
        for line in said[1:]:
            self._screen.show_line(line, constants.COLOR_ERROR)

    def v2_runner_on_unreachable(self, result: typing.Any) -> None:
        self._silence.remove_host(result._host.get_name())
        if not self._quiet:
            super().v2_runner_on_unreachable(result)
            return
        self._handle_warnings(result._result)
        host, lines = result._host.get_name(), describe_unreachable(result._result)
        # a node that does not answer fails each task that asks it
        if self._unreachable.get(host) != lines:
            self._unreachable[host] = lines
            self._screen.show_line(
                "\n".join([f"unreachable: [{host}]: {lines[0]}", *lines[1:]]), constants.COLOR_UNREACHABLE
            )

    # the end

    def v2_playbook_on_stats(self, stats: typing.Any) -> None:
        self._silence.clear_task()
        self._silence.end()
        self._screen.show_stages(stats)
        if not self._all_quiet:
            super().v2_playbook_on_stats(stats)
        else:
            self._screen.show_failed_hosts(stats)
        self._screen.show_end(stats, self._cause, self._cause_is_due)

    # what is shown

    def _failed_in_short(self, result: typing.Any, said: str, ignored: bool) -> None:
        """Show a failed task of the collection on one line: the host, the task and its message.

        :param result: Ansible's ``TaskResult`` of the failed task
        :param said: message of the task; empty if the last line of the run contains it
        :param ignored: whether the run ignores the failure
        """
        self._handle_warnings(result._result)
        words = [f"fatal: [{result._host.get_name()}]", self._silence.task, *([said] if said else [])]
        self._screen.show_line(f"{': '.join(words)}{' - ignored' if ignored else ''}", constants.COLOR_ERROR)
        # a rescue that says why is not needed for it
        self._screen.shown = [said]

    # what is waited for

    def _begin_task(self, task: typing.Any) -> None:
        self._silence.begin_task(task.get_name().rpartition(" : ")[2].strip())
        # Ansible checks the arguments of a role whatever the tags are; of a stage that these leave out there is no
        # other task
        stage, stages = self._screen.stage, self._screen.stages
        if task.action not in _ARGUMENTS and stage is not None and stage not in stages:
            stages.append(stage)

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

    def _show_silence(self, task: str, hosts: list[str], seconds: float, now: float) -> bool:
        """Show a line about a task that takes long, and return whether it is shown: not in a play of another collection
        or with -v.

        :param task: name of the task
        :param hosts: names of the hosts for which it waits
        :param seconds: duration of the task so far
        :param now: time of a monotonic clock, in seconds
        """
        if self._quiet:
            self._screen.show_line(describe_waiting(task, hosts, seconds, self._screen.stage, now))
        return self._quiet
