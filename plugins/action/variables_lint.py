# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse misspelled variables and invalid values before a run begins. The options are documented in the module of the
same name.
"""

from __future__ import annotations

import typing

from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.variables import (
    describe_mistakes,
    list_unread_names,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._access import access_of, show
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import ControllerAction, Result, Spec
from ansible_collections.linerate.rdma.plugins.plugin_utils._variables import (
    find_misspelt_of_nodes,
    find_mistyped,
    find_origins,
    list_names,
    read_as_written,
)


class ActionModule(ControllerAction):
    """An action plugin that checks the variables of the inventory. It reads them from Ansible itself, since they are
    not task arguments.
    """

    SPEC: typing.ClassVar[Spec] = {"show_cluster": {"type": "bool", "default": False}}

    def work(self, options: Result, variables: Result) -> Result:
        """Return the names of the variables that have the prefix of the collection, under the key ``names``. Show a
        warning for those that the collection does not read.

        :raises RdmaError: a variable is misspelled, or has an invalid value
        """
        if options["show_cluster"]:
            show(access_of(variables, self._templar.template))
        names, values = list_names(variables), find_mistyped(variables, self._templar.template)
        nodes = variables.get("groups", {}).get("rdma_nodes", [])
        of_nodes = find_misspelt_of_nodes(read_as_written(nodes, variables), variables)
        found = describe_mistakes(
            (*names, *of_nodes), values, {**of_nodes, **find_origins(variables, (*names, *values))}
        )
        if found:
            raise RdmaError(f"{'; '.join(found)}. Nothing was started", "Correct these variables, then rerun")
        places = find_origins(variables, list_unread_names(names))
        for name in list_unread_names(names):
            place = f" ({places[name]})" if places.get(name) else ""
            Display().warning(
                escape.escape_line(
                    f"{name}{place} has no effect: it is not a variable of this collection. docs/intent.md lists them"
                )
            )
        return {"names": list(names)}
