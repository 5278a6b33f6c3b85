# SPDX-License-Identifier: GPL-3.0-or-later

"""The progress of each node of each fabric in the wait for the network."""

from __future__ import annotations

import dataclasses
import typing

from ..base.text import both_ends

#: characters of a detail and of a remedy. Both may have texts of objects that tenants and kubelets write, and each node
#: has them, in the facts and in lines of progress
MOST_TEXT = 1500


@dataclasses.dataclass(frozen=True)
class SyncNode:
    """The state of one node of one fabric while a run waits for the network.

    :ivar fabric: name of the fabric
    :ivar node: name of the node
    :ivar phase: ready, waiting or failed
    :ivar detail: the awaited condition, the cause of the failure, or the final state
    :ivar remedy: remedy of the failure, or of a suspicious delay
    :ivar matched: PCI addresses of the physical functions that the policy selects
    :ivar allocatable: amount of the fabric's resource that the node offers; None if it does not offer the resource
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
    """The result of the wait for the network on all nodes (sriov_sync).

    :ivar finished: whether every node is ready or failed
    :ivar timed_out: whether the time limit was reached first
    :ivar waited_seconds: duration of the wait
    :ivar nodes: state of each node of each fabric at the end of the wait
    """

    finished: bool
    timed_out: bool
    waited_seconds: float
    nodes: tuple[SyncNode, ...]
