# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what node_info saw as facts. The module itself is an ordinary one."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.modules.node_info import chosen
from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import Observer, Result


class ActionModule(Observer):
    """With ``moment`` the facts are of kinds of their own: what is seen after a change does not replace what was seen before it."""

    MODULE = "linerate.rdma.node_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"hcas": "hcas", "platform": "platform"}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        """A subset that is not asked for leaves the fact of it as it is."""
        moment, words = given.pop("moment", None), given.get("gather_subset") or ["all"]
        subsets = chosen(words.split(",") if isinstance(words, str) else words)
        return {key: f"{kind}_{moment}" if moment else kind for key, kind in self.KINDS.items() if key in subsets}
