# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the module fabric_info through the ports that fabric_ports has chosen on the node, and store its result as
facts.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MOST_FABRIC_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result


class ActionModule(ObserverAction):
    """An action plugin that runs the module fabric_info with the ports of a node. If the task does not set ``ports``,
    they are read from the fact that fabric_ports has stored. On a node without chosen ports, the module is not run.
    """

    MODULE = "linerate.rdma.fabric_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"topology": "topologies"}
    MOST_BYTES = MOST_FABRIC_ANSWER

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        if folder is None or "ports" in given:
            return given
        return {**given, "ports": (folder.value("vantage_points") or {}).get(node, [])}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        return self.KINDS if given.get("ports") else {}
