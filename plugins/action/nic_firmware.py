# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pass its part of the firmware plan to each node, and store the result of the module as a fact. The module of the same
name does the actual work.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import (
    FIRMWARE_SETTINGS,
    NodeFirmwarePlan,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._confirmed import CONFIRM_SPEC, confirm_machine_and_lease
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result, Variables

_OWN = ("settings", "by_device")
#: what leads to the Lease; the module never sees it
_LEASE = frozenset(CONFIRM_SPEC)


class ActionModule(ObserverAction):
    """An action plugin that runs the module nic_firmware only on nodes for which the firmware plan contains settings.
    Before that it verifies that the run holds the Lease, and that the node is the expected machine. If the plan refuses
    the settings of a node, the module is not run there and the stored fact contains the reason.
    """

    MODULE = "linerate.rdma.nic_firmware"

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        if folder is None or any(given.get(name) is not None for name in _OWN):
            return given
        fact = folder.read(FIRMWARE_SETTINGS, node)
        plan: NodeFirmwarePlan = load(
            NodeFirmwarePlan, fact.value if fact is not None and fact.value is not None else {}, FIRMWARE_SETTINGS
        )
        return {**given, "plan": plan}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        return {} if given.get("plan") == NodeFirmwarePlan() else {"made": "nic_firmware"}

    def ask(self, arguments: Result, task_vars: Variables) -> Result:
        options = {name: value for name, value in arguments.items() if name not in _LEASE}
        plan: typing.Optional[NodeFirmwarePlan] = options.pop("plan", None)
        if plan is not None and not plan.settings:
            return {"changed": False, "made": {"hcas": [], "refusal": plan.refusal}}
        if plan is not None:
            try:
                confirm_machine_and_lease(
                    "nic_firmware",
                    self._task.args,
                    bool(self._task.check_mode),
                    task_vars,
                    self._low_level_execute_command,
                )
            except RdmaError as error:
                return {"failed": True, "msg": str(error)}
        answer = super().ask({**options, "by_device": plan.settings} if plan is not None else options, task_vars)
        return {**answer, "made": {"hcas": answer["hcas"], "refusal": ""}} if "hcas" in answer else answer

    def compared(self, folder: FactFolder, node: str, answer: Result) -> Result:
        return {"diff": answer["diff"]} if "diff" in answer else {}
