# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses from which ports to look at the fabrics. Documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.schedule.vantage import choose_vantage_points
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_subnets
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """From what the ports see to one port of each fabric."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = FOLDER_SPEC

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        chosen = {node: ports for node, ports in choose_vantage_points(read_subnets(folder)).items() if ports}
        folder.write("vantage_points", value=chosen)
        return {"nodes": len(chosen), "ports": sum(map(len, chosen.values()))}
