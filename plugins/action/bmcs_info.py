# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks the BMCs of all nodes. Documented in the module of the same name."""

from __future__ import annotations

import time
import typing

from ansible.errors import AnsibleError

from ansible_collections.linerate.rdma.plugins.module_utils._bmc_modules import OF_NODE, bmc_of_node, trust_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc, BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._run.read_bios import PARALLEL, SECONDS, Asked, read
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """Takes addresses and credentials from the inventory itself: they are no arguments, so that no log, callback or result ever has them."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "validate_certs": {"type": "bool", "default": True},
        "ca_path": {"type": "path"},
        "seconds": {"type": "float", "default": SECONDS},
        "parallel": {"type": "int", "default": PARALLEL},
    }

    def work(self, options: Result, variables: Result) -> Result:
        start, folder = time.monotonic(), FactFolder(options["facts_dir"], options["run"])
        bmcs: typing.List[Bmc] = []
        errors: typing.Dict[str, RdmaError] = {}
        for node in folder.start().nodes:
            try:
                told = _told(node, variables.get("hostvars", {}).get(node, {}))
                bmcs += [bmc_of_node(node, told)] if told.get("address") else []
            except RdmaError as error:
                errors[node] = error
        # what can't be trusted is no BMC's fault; without a BMC nobody has to be trusted
        outcomes = read(bmcs, trust_of(options), Asked(seconds=options["seconds"]), options["parallel"]) if bmcs else ()
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


def _told(node: str, variables: typing.Mapping[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    """What the inventory says of the BMC of a node. Without an address nothing else is read: a secret that nobody needs stays in its vault.

    :raises RdmaError: a variable that can't be read, as one of a vault without its password
    """
    found: typing.Dict[str, typing.Any] = {}
    for name in OF_NODE:
        variable = f"rdma_bmc_{name}"
        try:
            # text at once: an undefined value says so only when it is used
            value = variables.get(variable)
            found[name] = None if value is None else str(value)
        except AnsibleError as error:
            seen = f"{node}: the variable {variable} can't be read ({type(error).__name__})"
            raise RdmaError(seen, f"Look at it: ansible-inventory --host {node}; give the password of its vault") from None
        if name == "address" and not found["address"]:
            break
    return found
