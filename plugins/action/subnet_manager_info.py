# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the result of subnet_manager_info as facts. The module of the same name does the actual work."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._observer import ObserverAction


class ActionModule(ObserverAction):
    """An action plugin that stores the result of subnet_manager_info as the fact ``subnets`` of each node."""

    MODULE = "linerate.rdma.subnet_manager_info"
    KINDS: typing.ClassVar[typing.Mapping[str, str]] = {"subnets": "subnets"}
