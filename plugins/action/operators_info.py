# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Display the progress of the module operators_info, which does the actual work. Refuse ``--limit`` before operators of
drivers are installed, because these drain nodes that the limit excludes.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import find_limit
from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import ProgressAction
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action


class ActionModule(ProgressAction):
    """An action plugin that runs the module operators_info, and meanwhile displays each line that the module appends to
    its progress file. If the operators to install drain nodes and the option ``check_limit`` is set, the task fails if
    ``--limit`` excludes nodes of the run.
    """

    MODULE = "linerate.rdma.operators_info"

    @guard_action
    def run(
        self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[dict[str, typing.Any]] = None
    ) -> dict[str, typing.Any]:
        result = super().run(tmp, task_vars)
        if not result.get("drains") or not self._task.args.get("check_limit"):
            return result
        refusal: typing.Optional[RdmaError] = find_limit(self, task_vars or {}, "stage operators")
        return result if refusal is None else {"failed": True, "msg": str(refusal), "failure": refusal.describe()}
