# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps what subnet_manager_info saw as facts. The module itself is an ordinary one."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction


class ActionModule(ObserverAction):
    """An observer with one kind of facts."""

    MODULE = "linerate.rdma.subnet_manager_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"subnets": "subnets"}
