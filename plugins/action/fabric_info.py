# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what fabric_info saw as facts, and asks the ports that were chosen for it. The module itself is an ordinary
one."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MOST_FABRIC_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction, Result


class ActionModule(ObserverAction):
    """Without ``ports`` a node looks from those that fabric_ports chose; most nodes have none, and are not even
    asked."""

    MODULE = "linerate.rdma.fabric_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"topology": "topologies"}
    MOST_BYTES = MOST_FABRIC_ANSWER

    def arguments(self, folder: typing.Optional[FactFolder], node: str, given: Result) -> Result:
        if folder is None or "ports" in given:
            return given
        return {**given, "ports": (folder.value("vantage_points") or {}).get(node, [])}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        return self.KINDS if given.get("ports") else {}
