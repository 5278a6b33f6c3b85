# SPDX-License-Identifier: GPL-3.0-or-later

"""The time since a node started."""

from __future__ import annotations

import dataclasses

from ..base.observed import Observed
from ..boundary.numbers import Seconds


@dataclasses.dataclass(frozen=True)
class NodeUptime:
    """The uptime of a node.

    :ivar seconds: since the kernel started, without the time in which the node was suspended
    """

    seconds: Seconds


#: uptime of one node (module node_info)
ObservedUptime = Observed[NodeUptime]
