# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose the ports through which the topology of each fabric is read. The options are documented in the module of the
same name.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.vantage import choose_vantage_points
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_subnets
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that chooses one port for each subnet manager, and a few ports that see no subnet manager, and
    stores the chosen ports of each node as a fact.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = FOLDER_SPEC

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        chosen = {node: ports for node, ports in choose_vantage_points(read_subnets(folder)).items() if ports}
        folder.write("vantage_points", value=chosen)
        return {"nodes": len(chosen), "ports": sum(map(len, chosen.values()))}
