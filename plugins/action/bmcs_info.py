# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the BIOS of all nodes from their BMCs. The options are documented in the module of the same name."""

from __future__ import annotations

import time
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import read_trust
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import (
    PARALLEL,
    SECONDS,
    BiosQuery,
    read,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._bmcs import list_bmcs_of_nodes, read_identities
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that reads the BIOS settings of all nodes from their BMCs, and stores them as facts. It takes
    the addresses and credentials of the BMCs from the inventory. They are not task arguments, so no log, callback or
    result contains them.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "validate_certs": {"type": "bool", "default": True},
        "ca_path": {"type": "path"},
        "seconds": {"type": "float", "default": SECONDS},
        "parallel": {"type": "int", "default": PARALLEL},
    }

    def work(self, options: Result, variables: Result) -> Result:
        start, folder = time.monotonic(), FactFolder(options["facts_dir"], options["run"])
        nodes = folder.start().nodes
        bmcs, errors = list_bmcs_of_nodes(nodes, variables)
        # what can't be trusted is no BMC's fault; without a BMC nobody has to be trusted
        outcomes = (
            read(
                bmcs,
                read_trust(options),
                BiosQuery(seconds=options["seconds"], claims=Claims(looked=read_identities(folder, nodes))),
                options["parallel"],
            )
            if bmcs
            else ()
        )
        for bmc, outcome in outcomes:
            if isinstance(outcome, BmcError):
                errors[bmc.node] = outcome
            else:
                folder.write("bios", bmc.node, outcome)
        for node, why in errors.items():
            folder.write("bios", node, error=f"failed: {why}")
        asked = sorted({*errors, *(bmc.node for bmc in bmcs)})
        # last: who is named here and has no fact was not asked to its end
        folder.write("bmcs", value=asked)
        return {"asked": len(asked), "unanswered": len(errors), "seconds": round(time.monotonic() - start, 1)}
