# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the folders of two runs. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import compare_folders
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that compares two run folders on the controller, without a connection to any host."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "report_dir": {"type": "path", "required": True},
        "before_dir": {"type": "path", "required": True},
    }

    def work(self, options: Result, variables: Result) -> Result:
        return compare_folders(options["before_dir"], options["report_dir"])
