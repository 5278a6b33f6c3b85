# SPDX-License-Identifier: GPL-3.0-or-later

"""Evaluate a query over the facts of a run. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import start_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_plain
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import CLUSTER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result
from ansible_collections.linerate.rdma.plugins.plugin_utils._query import ask, compile_query, show


class ActionModule(ControllerAction):
    """An action plugin that evaluates a query over the facts in a run folder on the controller, without a connection to
    any host.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "report_dir": {"type": "path", "required": True},
        "query": {"type": "str", "required": True},
        "nodes": {"type": "list", "elements": "str"},
    }

    def work(self, options: Result, variables: Result) -> Result:
        question = compile_query(options["query"])
        start = start_of(options["report_dir"])
        folder = FactFolder(options["report_dir"], start.run)
        known = (*start.nodes, CLUSTER)
        unknown = sorted(set(options["nodes"] or ()) - set(known))
        if unknown:
            raise RdmaError(
                f"{', '.join(unknown)} did not take part in run {start.run}", f"Select from: {', '.join(known)}"
            )
        # one node at a time: the facts of all of them may not fit into memory
        asked = ((node, *folder.all_of(node)) for node in options["nodes"] or known)
        answers, unread = ask(question, asked)
        return {
            "run": start.run,
            "answers": answers,
            "unread": unread,
            "count": len(answers),
            "lines": [cut_plain(line) for line in show(answers, unread)],
        }
