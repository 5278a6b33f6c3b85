# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the result of node_info as facts. The module of the same name does the actual work."""

from __future__ import annotations

import functools
import time
import typing

from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import find_missing_since
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.date import COMMAND
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.closer_time import ask_closer
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.poll import LOOK_AGAIN_SECONDS, poll
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.modules.node_info import SUBSETS, choose_subsets
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result, Variables

#: of what a node lacks, in one text
_NAMED = 5


class ActionModule(ObserverAction):
    """An action plugin that adds three options to the module node_info.

    With ``moment`` the facts are stored under separate kinds, so that an observation after a change does not replace
    the one before it. With ``since`` the result lists the HCAs and links that the node had at that moment and lacks
    now. With ``wait_seconds`` the node is observed again until it lacks none of them, or until this time is over.
    """

    MODULE = "linerate.rdma.node_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {name: name for name in SUBSETS}

    #: an earlier moment of the run
    _since: typing.Optional[str] = None
    #: seconds in which the node is asked again
    _wait = 0.0
    _folder: typing.Optional[FactFolder] = None
    _node = ""

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        """Store the fact folder and the name of the node, which are needed to compare each answer later. Return the
        arguments of the module unchanged.

        :param folder: fact folder of the run; None if the task names none
        :param given: options of the task
        """
        self._folder, self._node = folder, node
        return given

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        """Return the kind of fact for each requested subset, by the key of the module's answer. A subset that is not
        requested gets no kind, so its fact is not changed.

        ``moment``, ``since`` and ``wait_seconds`` are removed from ``given``, since the module does not have these
        options.

        :param given: options of the task
        """
        self._since, self._wait = given.pop("since", None), float(given.pop("wait_seconds", None) or 0)
        moment, words = given.pop("moment", None), given.get("gather_subset") or ["all"]
        subsets = choose_subsets(words.split(",") if isinstance(words, str) else words)
        return {key: f"{kind}_{moment}" if moment else kind for key, kind in self.KINDS.items() if key in subsets}

    def compared(self, folder: FactFolder, node: str, answer: Result) -> Result:
        """Compare the HCAs and links of a node with those that it had at the moment ``since``, if the task sets this
        option.

        :param answer: result of the module, with the present HCAs under ``hcas``
        :returns: a list with one text under the key ``missing``, which names the HCAs and links that the node lacks
            now. The list is empty if the node lacks none. The key is absent without ``since``, or if the HCAs of either
            moment are unknown
        """
        lost = find_missing_since(folder, node, self._since, answer.get("hcas")) if self._since else None
        # a node may claim thousands; how many there are is said once
        return {} if lost is None else {"missing": [join_first(lost, _NAMED)] if lost else []}

    def ask(self, arguments: Result, task_vars: Variables) -> Result:
        """Run the module repeatedly until the node has all HCAs and links again that it had at the moment ``since``, at
        most for ``wait_seconds``, and return the last result. After a reset, drivers and links need some time to become
        ready. Without ``since`` the module is run once.
        """

        def lost(answer: Result) -> tuple[str, ...]:
            if self._folder is None or answer.get("failed"):
                return ()
            try:
                return tuple(self.compared(self._folder, self._node, answer).get("missing", ()))
            except RdmaError:
                # of another form: it is kept, and then refused by its name
                return ()

        def say(line: str) -> None:
            Display().display(f"  {escape.escape_line(self._node)}: {escape.escape_line(line)}")

        look = functools.partial(self._ask_once, arguments, task_vars)
        return poll(
            look,
            lost,
            "it reports everything that it reported before",
            self._wait,
            LOOK_AGAIN_SECONDS,
            time.monotonic,
            time.sleep,
            say,
        )

    def _ask_once(self, arguments: Result, task_vars: Variables) -> Result:
        """Run the module once and return its result. Add to the fact ``clock`` when the controller asked and when the
        answer came, as seconds of the epoch (``asked``, ``answered``). If the answer took long, the clock of the node
        is read again, and the reading with the shorter round trip is used.
        """
        asked = time.time()
        answer = super().ask(arguments, task_vars)
        clock = answer.get("clock")
        if isinstance(clock, dict):
            answered = time.time()
            closer = ask_closer(asked, answered, self._read_node_date)
            clock.update(closer._asdict() if closer else {"asked": asked, "answered": answered})
        return answer

    def _read_node_date(self) -> str:
        told = self._low_level_execute_command(" ".join(COMMAND))
        return told["stdout"] if told["rc"] == 0 else ""
