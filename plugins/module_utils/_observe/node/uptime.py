# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader of a node's uptime."""

from __future__ import annotations

import time

from ..._model.node.uptime import NodeUptime


def read_uptime() -> NodeUptime:
    """Read the kernel's monotonic clock [clock_gettime(2)]."""
    return NodeUptime(time.clock_gettime(time.CLOCK_MONOTONIC))
