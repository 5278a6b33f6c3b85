# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell the module cluster_policy, which does the actual work, whether ``--limit`` excludes nodes of the run. A module
does not know the option.
"""

from __future__ import annotations

import typing

from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import find_limit
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action


class ActionModule(ActionBase):
    """An action plugin that runs the module cluster_policy. If ``--limit`` excludes nodes of the run, the plugin passes
    the text of the refusal to the module as the option ``refusal``.
    """

    TRANSFERS_FILES = False
    _supports_async = True

    @guard_action
    def run(
        self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[dict[str, typing.Any]] = None
    ) -> dict[str, typing.Any]:
        result: dict[str, typing.Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        refusal = find_limit(self, task_vars or {}, "stage host")
        if refusal is not None:
            arguments["refusal"] = str(refusal)
        return {
            **result,
            **self._execute_module(
                module_name="linerate.rdma.cluster_policy", module_args=arguments, task_vars=task_vars
            ),
        }
