# SPDX-License-Identifier: GPL-3.0-or-later

"""The seam between Ansible and the action plugins that run on the controller alone, without a module: they read and
write the report's folder."""

from __future__ import annotations

import os
import typing

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import process
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

Result = dict[str, typing.Any]
Spec = typing.Mapping[str, typing.Any]

#: where the facts of a run lie; the documentation is the fragment linerate.rdma._options.facts
FOLDER_SPEC: Spec = {"facts_dir": {"type": "path", "required": True}, "run": {"type": "str", "required": True}}


#: the connection plugin through which an observer is reached
POD_CONNECTION = "linerate.rdma.pod"


def by_pods(nodes: typing.Iterable[str], variables: Result) -> list[str]:
    """Return the nodes that are reached by observers: once a run, since the variables of a thousand hosts cost
    seconds."""
    hosts = variables.get("hostvars", {})
    return [name for name in nodes if hosts.get(name, {}).get("ansible_connection") == POD_CONNECTION]


def holder() -> str:
    """Identity of this ansible-playbook: each task is done by a child of it."""
    return process.identity(os.getppid())


class Caller:
    """An adapter: the interface of a module for an action plugin that connects to the cluster.

    :param name: of the action, without that of the collection
    """

    def __init__(self, name: str, params: Result, check_mode: bool) -> None:
        self._name = f"linerate.rdma.{name}"
        self.params = params
        self.check_mode = check_mode
        self.no_log_values: set[str] = set()

    def fail_json(self, msg: str) -> typing.NoReturn:
        raise RdmaError(msg)


class ControllerAction(ActionBase):
    """An action without a module: its options are checked, and an error of the collection becomes a message.

    :ivar SPEC: argument spec, as modules have it
    :ivar OF_STAGE: whether a message begins with the stage, which Ansible's own output names nowhere near
    """

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False
    SPEC: typing.ClassVar[Spec] = {}
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {}
    OF_STAGE: typing.ClassVar[bool] = False

    def work(self, options: Result, variables: Result) -> Result:
        """Do the work of the action.

        :param options: checked by SPEC, with its defaults
        :param variables: of the host that the task runs for
        :raises RdmaError: with what the user shall see
        """
        raise NotImplementedError

    @guard_action
    def run(self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[Result] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        secrets = {
            text
            for name, one in self.SPEC.items()
            if one.get("no_log")
            for text in _list_secret_texts(self._task.args.get(name))
        }
        try:
            return {**result, "changed": False, **self._worked(task_vars or {})}
        except LoadError as error:
            failed: Result = {
                "msg": str(error),
                "failure": {"kind": "LoadError", "path": error.path, "seen": error.seen, "expected": error.expected},
            }
        except RdmaError as error:
            failed = {
                "msg": str(error),
                "failure": error.describe(),
            }
        except AnsibleActionFail as error:
            # the message quotes the value that was refused, and ansible-core before 2.19 marks only what an action
            # returns
            failed = {"msg": error.message}
        if self.OF_STAGE:
            failed["msg"] = f"stage {self._task.args.get('stage')}: {failed['msg']}"
        return {**result, "failed": True, **remove_values(failed, secrets)}

    def _worked(self, variables: Result) -> Result:
        """:raises AnsibleActionFail: an option is wrong
        :raises RdmaError: of ``work``
        """
        _checked, options = self.validate_argument_spec(argument_spec=dict(self.SPEC), **self.RULES)
        return self.work(options, variables)


def _list_secret_texts(value: typing.Any) -> typing.Iterator[str]:
    """Yield the texts in the value of a secret option."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _list_secret_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _list_secret_texts(item)
    elif isinstance(value, str) and value:
        yield str(value)
