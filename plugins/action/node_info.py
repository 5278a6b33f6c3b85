# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what node_info saw as facts. The module itself is an ordinary one."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import Observer, Result


class ActionModule(Observer):
    """With ``moment`` the facts are of kinds of their own: what is seen after a change does not replace what was seen before it."""

    MODULE = "linerate.rdma.node_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"hcas": "hcas", "platform": "platform"}

    def kinds(self, given: Result) -> typing.Mapping[str, str]:
        moment = given.pop("moment", None)
        if moment:
            return {"hcas": f"hcas_{moment}"}
        return self.KINDS
