# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the result of another module as a fact. The options are documented in the module of the same name."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result


class ActionModule(ControllerAction):
    """An action plugin that stores one fact, about a node or about the whole cluster. A fact has either a value or an
    error.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "kind": {"type": "str", "required": True},
        "node": {"type": "str"},
        "value": {"type": "raw"},
        "error": {"type": "str"},
    }
    RULES: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        "mutually_exclusive": [("value", "error")],
        "required_one_of": [("value", "error")],
    }

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        return {
            "path": folder.write(
                options["kind"],
                options["node"] or str(variables["inventory_hostname"]),
                options["value"],
                options["error"],
            )
        }
