# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows the progress of machine_config_roll while it waits. The module itself is an ordinary one."""

from __future__ import annotations

import typing

from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import run_with_progress


class ActionModule(ActionBase):
    """Runs the module with a progress file of its own, unless the task names one."""

    TRANSFERS_FILES = False
    _supports_async = True

    def run(self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[typing.Dict[str, typing.Any]] = None) -> typing.Dict[str, typing.Any]:
        result = super().run(tmp, task_vars)
        result.update(run_with_progress(self, "linerate.rdma.machine_config_roll", task_vars))
        return result
