# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan which nodes ping each other over InfiniBand. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_answers
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import is_infiniband
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.pings import make_ping_schedule
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import list_excluded


class ActionModule(ControllerAction):
    """An action plugin that stores each node's part of the ping plan as a fact of the node. It stores nothing if no
    fabric is InfiniBand.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "fabrics": {"type": "raw", "required": True},
        "most_rounds": {"type": "int"},
        "parallel": {"type": "int", "default": 8},
        "limit": {"type": "int", "default": 10},
        "forks": {"type": "int", "default": 5},
    }

    def work(self, options: Result, variables: Result) -> Result:
        folder, intent = FactFolder(options["facts_dir"], options["run"]), parse_intent(options["fabrics"])
        applies = any(is_infiniband(fabric) for fabric in intent.fabrics)
        # an excluded node starts no server and pings no other one
        groups = variables.get("groups", {})
        answers = read_answers(folder).without(list_excluded(self._loader, groups, folder.start().nodes))
        planned = make_ping_schedule(
            intent, answers, options["most_rounds"], options["parallel"], options["limit"], options["forks"]
        )
        for node, part in planned.nodes.items() if applies else ():
            folder.write("ping_plan", node, part)
        return {
            "applies": applies,
            "nodes": len(planned.nodes),
            "pairs": planned.pairs,
            "seconds": planned.seconds,
            "most_seconds": planned.most_seconds,
            "lifetime": planned.lifetime,
        }
