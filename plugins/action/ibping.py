# SPDX-License-Identifier: GPL-3.0-or-later

"""Pass its part of the ping plan to each node, and store the result of the module ibping as facts. The module of the
same name does the actual work.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result


class ActionModule(ObserverAction):
    """An action plugin that runs the module ibping with the node's part of the ping plan, and stores the result. The
    kind of fact depends on the option ``mode``: ``ping_servers`` (serve), ``pings`` (ping) or ``ping_servers_stopped``
    (stop).
    """

    MODULE = "linerate.rdma.ibping"

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        part = {"serve": "servers", "ping": "clients"}.get(str(given.get("mode")))
        if folder is None or part is None or part in given:
            return given
        fact = folder.read("ping_plan", node)
        plan = fact.value if fact is not None and fact.value is not None else {}
        return {**given, part: plan.get(part, [])}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        return {
            "serve": {"servers": "ping_servers"},
            "ping": {"pings": "pings"},
            "stop": {"servers": "ping_servers_stopped"},
        }.get(str(given.get("mode")), {})
