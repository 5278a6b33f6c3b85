# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what node_info saw as facts. The module itself is an ordinary one."""

from __future__ import annotations

import functools
import time
import typing

from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import find_missing_since
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import folded
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.date import COMMAND
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.closer_time import ask_closer
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.poll import LOOK_AGAIN_SECONDS, poll
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.modules.node_info import SUBSETS, chosen
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result, Variables

#: of what a node lacks, in one text
_NAMED = 5


class ActionModule(ObserverAction):
    """With ``moment`` the facts are of kinds of their own: what is seen after a change does not replace what was seen
    before it. With ``since`` the answer says what of the HCAs of that moment is missing, and with ``wait_seconds`` the
    node is asked until nothing is.
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
        """Keep the folder and the node: each answer is compared with facts of both."""
        self._folder, self._node = folder, node
        return given

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        """A subset that is not asked for leaves the fact of it as it is."""
        self._since, self._wait = given.pop("since", None), float(given.pop("wait_seconds", None) or 0)
        moment, words = given.pop("moment", None), given.get("gather_subset") or ["all"]
        subsets = chosen(words.split(",") if isinstance(words, str) else words)
        return {key: f"{kind}_{moment}" if moment else kind for key, kind in self.KINDS.items() if key in subsets}

    def compared(self, folder: FactFolder, node: str, answer: Result) -> Result:
        """With ``since`` what is missing."""
        lost = find_missing_since(folder, node, self._since, answer.get("hcas")) if self._since else None
        # a node may claim thousands; how many there are is said once
        return {} if lost is None else {"missing": [folded(lost, _NAMED)] if lost else []}

    def ask(self, arguments: Result, task_vars: Variables) -> Result:
        """Return the first answer in which nothing is missing, or the last one before the end of the wait. A driver and
        a link need a moment after a reset."""

        def lost(answer: Result) -> tuple[str, ...]:
            if self._folder is None or answer.get("failed"):
                return ()
            try:
                return tuple(self.compared(self._folder, self._node, answer).get("missing", ()))
            except RdmaError:
                # of another form: it is kept, and then refused by its name
                return ()

        def say(line: str) -> None:
            Display().display(f"  {escape.line(self._node)}: {escape.line(line)}")

        look = functools.partial(self._ask_once, arguments, task_vars)
        return poll(
            look, lost, "it has all that it had", self._wait, LOOK_AGAIN_SECONDS, time.monotonic, time.sleep, say
        )

    def _ask_once(self, arguments: Result, task_vars: Variables) -> Result:
        """Stamp the node's clock with the controller's: only between asking and answer is it known what it is compared
        with."""
        asked = time.time()
        answer = super().ask(arguments, task_vars)
        clock = answer.get("clock")
        if isinstance(clock, dict):
            answered = time.time()
            closer = ask_closer(asked, answered, self._date)
            clock.update(closer._asdict() if closer else {"asked": asked, "answered": answered})
        return answer

    def _date(self) -> str:
        told = self._low_level_execute_command(" ".join(COMMAND))
        return told["stdout"] if told["rc"] == 0 else ""
