# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module that observes a node, and writes its answer as facts on the controller.

Ansible's variables contain only counts. The answers of a thousand nodes in variables would slow the run down by hours.
"""

from __future__ import annotations

import typing

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError, wrap_unforeseen
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MOST_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import MOST_WORDS, FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._node_output import cleaning_up, limit_answers, marked_loss
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import escape_nonprinting, remove_effects
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

Result = dict[str, typing.Any]
Variables = typing.Optional[dict[str, typing.Any]]

#: options of an observer that its action plugin takes, and its module never sees
FOLDER_OPTIONS = ("facts_dir", "run")


class ObserverAction(ActionBase):
    """The base class of the action plugin of a module that observes a node.

    With the options ``facts_dir`` and ``run``, the values in the module's answer become facts of the node, and the
    result of the task contains only their sizes. Without these options, the result is the answer of the module.

    :ivar MODULE: full name of the module
    :ivar KINDS: kind of the fact, by the key in the module's answer
    :ivar MOST_BYTES: maximum number of bytes of the answer
    """

    TRANSFERS_FILES = False
    #: full name of the module
    MODULE = ""
    #: key of the module's answer: kind of the fact
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {}
    #: bytes of its answer
    MOST_BYTES = MOST_ANSWER
    #: the node, as soon as it is asked
    _asked = ""

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        """Return the arguments of the module. The base class returns the options of the task. A subclass may compute
        some of them from stored facts.

        :param folder: folder of the facts; None if the task does not set it
        :param given: options of the task
        """
        return given

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        """Return the kinds of facts that this call writes, by the key in the module's answer. If the result is empty,
        the module is not run. A subclass may choose the kinds by the options.

        :param given: options of the task, from which a subclass may remove those that the module does not have
        """
        return self.KINDS

    def ask(self, arguments: Result, task_vars: Variables) -> Result:
        """Run the module and return its result. A subclass may run the module repeatedly, or add data that only the
        controller has.
        """
        return remove_effects(self._execute_module(module_name=self.MODULE, module_args=arguments, task_vars=task_vars))

    def compared(self, folder: FactFolder, node: str, answer: Result) -> Result:
        """Return additional keys for the result of the task, which otherwise contains only counts. The base class
        returns none. A subclass may compare the answer with stored facts here.

        :param answer: answer of the module
        """
        return {}

    @guard_action
    def run(self, tmp: typing.Optional[str] = None, task_vars: Variables = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        given = dict(self._task.args)
        options = {name: given.pop(name, None) for name in FOLDER_OPTIONS}
        node = str((task_vars or {})["inventory_hostname"])
        try:
            folder = (
                FactFolder(str(options["facts_dir"]), str(options["run"]))
                if options["facts_dir"] and options["run"]
                else None
            )
            arguments = self.arguments(folder, node, given)
            kinds = self.kinds(arguments)
            self._asked = node
            # ssh shows what the node says before the login
            with marked_loss(), limit_answers(self, node, self.MOST_BYTES):
                return {
                    **result,
                    **(
                        self._collect_node_facts(folder, node, kinds, arguments, task_vars)
                        if folder
                        else self.ask(arguments, task_vars)
                    ),
                }
        except RdmaError as error:
            return {**result, "failed": True, "msg": str(error)}

    def cleanup(self, force: bool = False) -> None:
        """Remove the temporary folder on the node. ansible-core calls this after ``run``.

        :param force: whether the folder is removed even if the task runs asynchronously
        """
        if self._asked:
            with cleaning_up(self, self._asked, self.MOST_BYTES):
                super().cleanup(force)

    def _collect_node_facts(
        self, folder: FactFolder, node: str, kinds: typing.Mapping[str, str], arguments: Result, task_vars: Variables
    ) -> Result:
        """Run the module, and write its answer as facts. If the module fails, or the node cannot be reached, write the
        error as facts. If ``kinds`` is empty, do not run the module.

        :param kinds: kinds of facts to write, by the key in the module's answer
        :param arguments: arguments of the module
        :returns: the result of the task, with the size of each fact in ``counts``
        """
        if not kinds:
            return {"changed": False, "counts": {}}
        # whatever ends the look: what was seen at another moment must not stay in place of this answer
        _write_error_facts(
            folder,
            node,
            [kind for kind in kinds.values() if folder.holds(kind, node)],
            "failed: it was queried again and did not respond",
        )
        try:
            answer = self.ask(arguments, task_vars)
        except AnsibleConnectionFailure as error:
            _write_error_facts(folder, node, kinds.values(), f"unreachable: {error}")
            raise
        except RdmaError:
            raise
        except Exception as error:
            # such as an answer too deep for the JSON decoder of Ansible: the other nodes go on
            why = str(wrap_unforeseen(error, f"the module {self.MODULE}"))
            _write_error_facts(folder, node, kinds.values(), f"failed: {why}")
            return {"failed": True, "msg": why}
        for state in ("unreachable", "failed"):
            if answer.get(state):
                _write_error_facts(folder, node, kinds.values(), f"{state}: {_describe_failure(answer)}")
                # nothing else of it: ansible-core keeps the result
                return {
                    state: True,
                    "changed": bool(answer.get("changed")),
                    "msg": escape_nonprinting(cut_text(_describe_failure(answer), MOST_WORDS)),
                }
        for key, kind in kinds.items():
            if answer.get(key) is None:
                _write_error_facts(
                    folder,
                    node,
                    [kind],
                    f"the response of the module has no '{key}'; it has: {', '.join(sorted(map(str, answer)))}",
                )
            else:
                folder.write(kind, node, answer[key])
        counts = {kind: measure_size(answer.get(key)) for key, kind in kinds.items()}
        return {"changed": bool(answer.get("changed")), "counts": counts, **self.compared(folder, node, answer)}


def measure_size(value: typing.Any) -> int:
    """Return the count that a result shows for a value. For a dictionary this is the length of its longest list, or the
    number of its entries if it contains no lists. For a list it is the length, for None 0, and for any other value 1.
    """
    if isinstance(value, dict):
        return max((len(item) for item in value.values() if isinstance(item, (list, tuple))), default=len(value))
    return len(value) if isinstance(value, (list, tuple)) else int(value is not None)


def _write_error_facts(folder: FactFolder, node: str, kinds: typing.Iterable[str], error: str) -> None:
    for kind in kinds:
        folder.write(kind, node, error=error)


def _describe_failure(result: Result) -> str:
    """Return the message of a failed result, followed by its stderr if there is any. The stderr of the Python
    interpreter contains the cause if the module did not answer. Return ``no message`` if the result has neither.
    """
    parts = [str(result.get(name) or "").strip() for name in ("msg", "module_stderr", "stderr")]
    return "; ".join(part for part in parts if part) or "no message"
