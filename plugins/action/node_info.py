# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what node_info saw as facts. The module itself is an ordinary one."""

from __future__ import annotations

import time
import typing

from ansible_collections.linerate.rdma.plugins.modules.node_info import chosen
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import Observer, Result, Variables

#: an answer that takes longer tells little about the clock of who gave it
_SLOW_SECONDS = 5.0


class ActionModule(Observer):
    """With ``moment`` the facts are of kinds of their own: what is seen after a change does not replace what was seen before it."""

    MODULE = "linerate.rdma.node_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"hcas": "hcas", "platform": "platform", "clock": "clock"}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        """A subset that is not asked for leaves the fact of it as it is."""
        moment, words = given.pop("moment", None), given.get("gather_subset") or ["all"]
        subsets = chosen(words.split(",") if isinstance(words, str) else words)
        return {key: f"{kind}_{moment}" if moment else kind for key, kind in self.KINDS.items() if key in subsets}

    def ask(self, arguments: Result, task_vars: Variables) -> Result:
        """Stamp the node's clock with the controller's: only between asking and answer is it known what it is compared with.

        The first answer of a node may take long, as ssh and the module have to get there. Then the clock is asked for once more, alone.
        """
        answer = self._stamped(arguments, task_vars)
        if _span(answer) > _SLOW_SECONDS:
            again = self._stamped({**arguments, "gather_subset": ["clock"]}, task_vars)
            if 0 <= _span(again) < _span(answer):
                answer["clock"] = again["clock"]
        return answer

    def _stamped(self, arguments: Result, task_vars: Variables) -> Result:
        asked = time.time()
        answer = super().ask(arguments, task_vars)
        if isinstance(answer.get("clock"), dict):
            answer["clock"].update(asked=asked, answered=time.time())
        return answer


def _span(answer: Result) -> float:
    """Seconds between asking and answer; -1 without a clock."""
    clock = answer.get("clock")
    return float(clock["answered"] - clock["asked"]) if isinstance(clock, dict) else -1.0
