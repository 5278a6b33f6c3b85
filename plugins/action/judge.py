# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a run again from the facts in its folder. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible.release import __version__ as ansible_version

from ansible_collections.linerate.rdma.plugins.module_utils._app.again import rejudge_run
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that judges the run in a folder on the controller, without a connection to any host."""

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "report_dir": {"type": "path", "required": True},
        "judged_dir": {"type": "path", "default": ""},
        "fabrics": {"type": "raw"},
        "waivers": {"type": "raw"},
        "cluster": {"type": "raw"},
        "applied": {"type": "bool", "default": True},
    }

    def work(self, options: Result, variables: Result) -> Result:
        return rejudge_run(options["report_dir"], options["judged_dir"], options, ansible_version)
