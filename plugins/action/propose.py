# SPDX-License-Identifier: GPL-3.0-or-later

"""Propose an intent from the facts of a run. The options are documented in the module of the same name."""

from __future__ import annotations

import os
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._app.propose import (
    ProposalError,
    default_path,
    propose_intent,
)
from ansible_collections.linerate.rdma.plugins.module_utils._plan.propose.inputs import NamedImage
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import FOLDER_SPEC, ControllerAction, Result
from ansible_collections.linerate.rdma.plugins.plugin_utils._first_cause import find_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._variables import is_extra_variable


class ActionModule(ControllerAction):
    """An action plugin that proposes an intent. The file of the proposal is in the folder of the inventory, unless the
    option ``path`` is set.
    """

    SPEC: typing.ClassVar[typing.Mapping[str, typing.Any]] = {
        **FOLDER_SPEC,
        "path": {"type": "path"},
        "namespace": {"type": "str", "default": ""},
        # raw: it is compared, and stage validate alone says what is wrong with it
        "fabrics": {"type": "raw"},
        "cluster": {"type": "raw"},
        "cause": {"type": "str", "default": ""},
        "unclean": {"type": "bool", "default": False},
        "image": {"type": "str", "default": ""},
    }

    def work(self, options: Result, variables: Result) -> Result:
        folder = FactFolder(options["facts_dir"], options["run"])
        there = options["fabrics"] is not None or options["cluster"] is not None
        # where nothing is written, it does not matter whether there is a place for it
        path = (
            os.path.abspath(options["path"])
            if options["path"]
            else ""
            if there
            else default_path(_inventory_dir(variables))
        )
        nodes = variables.get("groups", {}).get("rdma_nodes")
        of_inventory = find_cause(variables.get("ansible_inventory_sources")).text
        try:
            return propose_intent(
                folder,
                path,
                options["namespace"],
                options["fabrics"],
                options["cluster"],
                bool(self._task.check_mode),
                options["cause"] if nodes else of_inventory,
                of_inventory if nodes else "",
                self._find_image(options["image"]),
            )
        except ProposalError as error:
            if not options["unclean"]:
                raise
            # the task that says so comes after this one, and so never
            raise ProposalError(error.seen, f"{error.remedy} - THE CLUSTER WAS NOT LEFT CLEAN, see above") from None

    def _find_image(self, name: str) -> typing.Optional[NamedImage]:
        """Return the image of the observers together with a flag that tells whether the inventory sets it. An image
        from an extra variable has the flag False. Return None if ``name`` is empty.
        """
        return NamedImage(name, not is_extra_variable("rdma_observers_image", self._loader)) if name else None


def _inventory_dir(variables: Result) -> str:
    """Return the folder of the inventory that defines the first node. Return an empty string if there are no nodes, or
    if the folder is unknown. Most inventories do not contain localhost, so its folder cannot be used.
    """
    nodes = variables.get("groups", {}).get("rdma_nodes", [])
    return str(variables.get("hostvars", {})[nodes[0]].get("inventory_dir") or "") if nodes else ""
