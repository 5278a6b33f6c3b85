# SPDX-License-Identifier: GPL-3.0-or-later

"""Run another module on a node, and remove the keys from its result that would change the run, such as facts. The
options are documented in the module of the same name.
"""

from __future__ import annotations

import json
import pathlib
import typing

from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MOST_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import read_json, write_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._confirmed import (
    CONFIRM_SPEC,
    confirm_machine_and_lease,
    connect_confirmed,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._containerd import ContainerdRestart
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import cleaning_up, limit_answers, marked_loss
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import Unreachable, remove_effects
from ansible_collections.linerate.rdma.plugins.plugin_utils._own_files import path_of
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

Result = dict[str, typing.Any]

#: bytes of an answer, on both streams of a command. Roles register it, a failed one is shown as a whole, and before
#: ansible-core 2.19 a text that stands alone in a template is parsed as Python, which takes 500 times its length.
#: Modules with long answers have action plugins of their own, which write facts
MOST_BYTES = 128 * 1024
#: modules that roles run on the controller, which is never lost, and that answer with what others wrote into the
#: cluster: a release has its values, its notes and its objects
_OF_CONTROLLER = frozenset({"kubernetes.core.helm_info"})


class ActionModule(ActionBase):
    """An action plugin that runs the module named by the option ``module`` with the arguments in ``options``. It uses
    the action plugin of that module, as ansible.builtin.template uses the one of ansible.builtin.copy.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "module": {"type": "str", "required": True},
        "options": {"type": "dict", "default": {}},
        "writes": {"type": "bool", "default": False},
        "in_turn": {"type": "str"},
        "restarts_containerd": {"type": "bool", "default": False},
        "reloads_systemd": {"type": "bool", "default": False},
        **CONFIRM_SPEC,
    }
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "required_if": [
            ("writes", True, ("facts_dir", "run")),
            ("restarts_containerd", True, ("facts_dir", "run", "in_turn")),
            ("reloads_systemd", True, ("facts_dir", "run")),
        ],
        "required_by": {"in_turn": ("run",)},
    }
    #: the node, as soon as it is asked
    _asked = ""

    @guard_action
    def run(self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[Result] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        _checked, given = self.validate_argument_spec(argument_spec=dict(self.SPEC), **self.RULES)
        task = self._task.copy()
        # the plugin for modules without one of their own takes the name from here
        task.action, task.args = given["module"], given["options"]
        loader = self._shared_loader_obj.action_loader
        action = loader.get(
            given["module"] if loader.has_plugin(given["module"]) else "ansible.legacy.normal",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        node = str((task_vars or {}).get("inventory_hostname") or "the node")
        self._asked = node
        if given["module"] in _OF_CONTROLLER:
            try:
                with marked_loss(), limit_answers(action, given["module"], MOST_ANSWER):
                    return remove_effects(action.run(task_vars=task_vars))
            except Unreachable as error:
                return {**result, "failed": True, "msg": str(error)}
        with marked_loss(), limit_answers(action, node, MOST_BYTES):
            if given["writes"]:
                try:
                    confirm_machine_and_lease(
                        "on_node", given, bool(self._task.check_mode), task_vars, self._low_level_execute_command
                    )
                    if given["reloads_systemd"] and not self._task.check_mode:
                        self._begin_restart(given, node).check_reload()
                except RdmaError as error:
                    return {**result, "failed": True, "msg": str(error)}
            if not given["in_turn"] or self._task.check_mode:
                return remove_effects(action.run(task_vars=task_vars))
            path = path_of(given["in_turn"], str(given["run"]))
            return self._run_in_turn(path, given, action, node, task_vars)

    def _run_in_turn(
        self, path: str, given: Result, action: ActionBase, node: str, task_vars: typing.Optional[Result]
    ) -> Result:
        """Run the module, unless it has failed on an earlier node of a sequence of tasks that share a file. The file
        contains the name of the node until the module has succeeded there. So the module also counts as failed if its
        process was killed or the node was lost.

        :param path: the shared file on the controller
        :param given: options of the task
        :param action: action plugin that runs the module on the node
        :returns: the result of the module, or a failure that names the earlier node
        """
        before = read_json(path)
        if isinstance(before, dict):
            stopped = (
                f"not run on this node, because it failed on {before['node']} before. Correct the cause there, then run"
                " the stage again"
            )
            return {"failed": True, "msg": stopped}
        answer: Result = {}
        try:
            restart = self._check_restart(given, node) if given["restarts_containerd"] else None
            write_text(path, json.dumps({"node": node}))
            answer = remove_effects(action.run(task_vars=task_vars))
            if answer.get("failed") or answer.get("unreachable"):
                return answer
            if restart is not None:
                restart.wait()
        except RdmaError as error:
            return {**answer, "failed": True, "msg": str(error)}
        pathlib.Path(path).unlink()
        return answer

    def _check_restart(self, given: Result, node: str) -> ContainerdRestart:
        """Verify that containerd may be restarted on a node, and return the object that waits until the restart is
        complete.

        :raises RdmaError: containerd must not be restarted there, or the API server does not answer
        """
        restart = self._begin_restart(given, node)
        restart.check()
        return restart

    def _begin_restart(self, given: Result, node: str) -> ContainerdRestart:
        return ContainerdRestart(node, self._low_level_execute_command, connect_confirmed("on_node", given))

    def cleanup(self, force: bool = False) -> None:
        """Remove the temporary folder on the node if the task has reached a node. ansible-core calls this after
        ``run``.

        :param force: whether the folder is removed even if the task runs asynchronously
        """
        if self._asked:
            with cleaning_up(self, self._asked, MOST_BYTES):
                super().cleanup(force)
