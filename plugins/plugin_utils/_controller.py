# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of action plugins that run only on the controller and have no module. They read and write the folder of the
report.
"""

from __future__ import annotations

import os
import typing

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import process
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process.folder_lock import lock_folder
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError
from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

Result = dict[str, typing.Any]
Spec = typing.Mapping[str, typing.Any]

#: where the facts of a run lie; the documentation is the fragment linerate.rdma._options.facts
FOLDER_SPEC: Spec = {"facts_dir": {"type": "path", "required": True}, "run": {"type": "str", "required": True}}


#: the connection plugin through which an observer is reached
POD_CONNECTION = "linerate.rdma.pod"


def by_pods(nodes: typing.Iterable[str], variables: Result) -> list[str]:
    """Return those nodes that Ansible reaches through observers. Call it only once in a run, since reading the
    variables of a thousand hosts takes seconds.

    :param variables: variables of the task, with ``hostvars``
    """
    hosts = variables.get("hostvars", {})
    return [name for name in nodes if hosts.get(name, {}).get("ansible_connection") == POD_CONNECTION]


def get_holder() -> str:
    """Return the identity of the ansible-playbook process, by which the Lease is held. It is the parent process of the
    process of each task.
    """
    return process.read_identity(os.getppid())


#: seconds in which a keeper of a lock ends after its process
_KEEPER_SECONDS = 5.0


class FolderInUse(RdmaError):
    """The error that another run still uses a folder of the report."""


def refuse_folder_in_use(report_dir: str) -> None:
    """Raise an error if a run of another ansible-playbook process still uses the folder of the report. Both runs would
    overwrite each other's facts. Otherwise, lock the folder for this ansible-playbook process until it ends.

    Another process on this machine is found by its identity in ``run.json``. A process in another container, or on
    another machine that shares the folder, is found by the lock of the folder. A folder that cannot be locked causes a
    warning.

    :raises FolderInUse: the other process still runs
    """
    try:
        start = read_start(report_dir)
    except FileError:
        # a damaged file is replaced by this run
        start = None
    holder, alive = get_holder(), None
    if start is not None and start.process not in ("", holder):
        alive = process.is_alive(start.process)
        if alive:
            number = start.process.split("/")[2]
            raise _make_in_use_error(f"run {start.run} (process {number})", report_dir)
    # of a process that has just ended, the keeper may not have ended yet
    lock = lock_folder(report_dir, os.getppid(), _KEEPER_SECONDS if alive is False else 0)
    if lock.held and (start is None or start.process != holder):
        other = f"run {start.run}" if start is not None and alive is None else "another run"
        raise _make_in_use_error(f"{other} in another container or on another machine", report_dir)
    if lock.error:
        Display().warning(
            f"The folder {report_dir} cannot be locked ({lock.error}), so a run in another container that uses it is"
            " not noticed. Give each run a folder of its own (-e rdma_report_dir=ANOTHER_FOLDER), or use a file system"
            " that has locks"
        )


def _make_in_use_error(run: str, report_dir: str) -> FolderInUse:
    return FolderInUse(
        f"{run} still runs and writes to {report_dir}",
        "Wait until it ends, or give this run a folder of its own: -e rdma_report_dir=ANOTHER_FOLDER",
    )


class Caller:
    """An adapter for functions that expect an AnsibleModule, such as those that connect to the cluster. An action
    plugin has no AnsibleModule, and passes this adapter instead.

    :param name: name of the action, without that of the collection
    :ivar params: validated options of the action
    :ivar check_mode: whether the task runs in check mode
    :ivar no_log_values: texts of secret options, which no message may contain
    """

    def __init__(self, name: str, params: Result, check_mode: bool) -> None:
        self._name = f"linerate.rdma.{name}"
        self.params = params
        self.check_mode = check_mode
        self.no_log_values: set[str] = set()

    def fail_json(self, msg: str) -> typing.NoReturn:
        raise RdmaError(msg)


class ControllerAction(ActionBase):
    """The base class of an action plugin without a module. It validates the options, and returns an error of the
    collection as a failed result.

    :ivar SPEC: argument spec, in the form that modules use
    :ivar RULES: rules between options, such as ``required_if``
    :ivar OF_STAGE: whether an error message begins with the name of the stage, because Ansible's own output does not
        show the stage
    """

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False
    SPEC: typing.ClassVar[Spec] = {}
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {}
    OF_STAGE: typing.ClassVar[bool] = False

    def work(self, options: Result, variables: Result) -> Result:
        """Do the work of the action, and return the result of the task. Each action plugin defines this method.

        :param options: options that were validated by SPEC, with defaults
        :param variables: variables of the host for which the task runs
        :raises RdmaError: the action failed. The user sees this message
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
            return {**result, "changed": False, **self._validate_and_work(task_vars or {})}
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

    def _validate_and_work(self, variables: Result) -> Result:
        """Validate the options of the task, and return the result of the action.

        :param variables: variables of the host for which the task runs
        :raises AnsibleActionFail: an option is invalid
        :raises RdmaError: the action failed
        """
        _checked, options = self.validate_argument_spec(argument_spec=dict(self.SPEC), **self.RULES)
        return self.work(options, variables)


def _list_secret_texts(value: typing.Any) -> typing.Iterator[str]:
    """Yield each text in the value of a secret option, which may be a text, or a list or a mapping with texts at any
    depth. Empty texts are left out.
    """
    if isinstance(value, dict):
        for item in value.values():
            yield from _list_secret_texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _list_secret_texts(item)
    elif isinstance(value, str) and value:
        yield str(value)
