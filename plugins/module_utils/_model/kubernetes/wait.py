# SPDX-License-Identifier: GPL-3.0-or-later

"""How far each node of each fabric is in the wait for the network."""

from __future__ import annotations

import dataclasses
import typing

from ..base.text import both_ends

#: characters of a detail and of a remedy. Both may have texts of objects that tenants and kubelets write, and each node
#: has them, in the facts and in lines of progress
MOST_TEXT = 1500


@dataclasses.dataclass(frozen=True)
class SyncNode:
    """The progress of one node of one fabric in the wait.

    :ivar phase: ready, waiting or failed
    :ivar detail: what it waits for, or the cause of the failure, or what is there
    :ivar remedy: of the failure, or of what is suspect about the waiting
    :ivar matched: PCI addresses of the physical functions that the policy selects
    :ivar allocatable: of the fabric's resource; None when the node does not offer it
    """

    ONCE = ("fabric", "node")

    fabric: str
    node: str
    phase: typing.Literal["ready", "waiting", "failed"]
    detail: str
    remedy: str = ""
    matched: tuple[str, ...] = ()
    allocatable: typing.Optional[int] = None

    def __post_init__(self) -> None:
        for name in ("detail", "remedy"):
            object.__setattr__(self, name, both_ends(getattr(self, name), MOST_TEXT))


@dataclasses.dataclass(frozen=True)
class SyncFacts:
    """Answer of sriov_sync.

    :ivar finished: every node is ready or failed
    :ivar timed_out: the limit was reached first
    :ivar waited_seconds: how long it took
    """

    finished: bool
    timed_out: bool
    waited_seconds: float
    nodes: tuple[SyncNode, ...]
