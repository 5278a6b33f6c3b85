# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the folders of two runs. Documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import compare_folders
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """Needs no host: all that it compares lies in the folders."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "report_dir": {"type": "path", "required": True},
        "before_dir": {"type": "path", "required": True},
    }

    def work(self, options: Result, variables: Result) -> Result:
        return compare_folders(options["before_dir"], options["report_dir"])
