# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Show the lines that a long-running module writes to a file, while it runs. A module itself cannot print."""

from __future__ import annotations

import os
import tempfile
import threading
import typing

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

#: seconds between two looks into the file
LOOK_SECONDS = 0.5


def run_with_progress(
    action: ActionBase,
    module: str,
    task_vars: typing.Optional[dict[str, typing.Any]],
    options: typing.Optional[typing.Mapping[str, typing.Any]] = None,
) -> dict[str, typing.Any]:
    """Run the module of an action plugin with the option ``progress_file``, show each line that the module writes to
    that file, and return the result of the module. No line is shown if the task sets the option itself, or if the
    module runs on another machine.

    :param action: action plugin of the task
    :param module: full name of the module
    :param task_vars: variables of the task; None if there are none
    :param options: options of the module; None for the options of the task
    """
    arguments = dict(action._task.args if options is None else options)
    # a file of this machine is of no use to a module on another one
    if arguments.get("progress_file") or getattr(action._connection, "transport", "") != "local":
        return action._execute_module(module_name=module, module_args=arguments, task_vars=task_vars)
    # below Ansible's own folder, which goes when ansible-playbook ends, also when this process was killed before it
    handle, path = tempfile.mkstemp(prefix="linerate-progress-", dir=constants.DEFAULT_LOCAL_TMP)
    os.close(handle)
    done = threading.Event()
    follower = threading.Thread(target=follow, args=(path, done, Display().display), daemon=True)
    follower.start()
    try:
        return action._execute_module(
            module_name=module, module_args={**arguments, "progress_file": path}, task_vars=task_vars
        )
    finally:
        done.set()
        follower.join(5)
        os.unlink(path)


class ProgressAction(ActionBase):
    """The base class of the action plugin of a module with a progress file. The plugin creates the file and shows its
    lines while the module runs, unless the task sets the option ``progress_file``.
    """

    TRANSFERS_FILES = False
    _supports_async = True
    #: full name of the module
    MODULE = ""

    @guard_action
    def run(
        self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[dict[str, typing.Any]] = None
    ) -> dict[str, typing.Any]:
        options = self.make_options(task_vars or {})
        return {**super().run(tmp, task_vars), **run_with_progress(self, self.MODULE, task_vars, options)}

    def make_options(self, variables: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
        """Return the options of the module. The base class returns those of the task, and a subclass may add some.

        :param variables: variables of the task
        """
        return dict(self._task.args)


def follow(path: str, done: threading.Event, show: typing.Callable[[str], typing.Any]) -> None:
    """Show each complete line of a file that another process writes. Return once ``done`` is set and all complete lines
    are shown.

    :param path: path of the file
    :param done: set when the other process has ended
    :param show: function that shows a line
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        rest = ""
        while True:
            last = done.is_set()
            rest += file.read()
            *lines, rest = rest.split("\n")
            for line in lines:
                show(f"  {escape.escape_line(line)}")
            if last:
                return
            done.wait(LOOK_SECONDS)
