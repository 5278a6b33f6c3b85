# SPDX-License-Identifier: GPL-3.0-or-later

"""Build the judgments of nodes for the fabrics of the SR-IOV network operator."""

from __future__ import annotations

import typing

from ..._model.kubernetes.objects import ClusterNode
from ..._model.kubernetes.wait import SyncNode
from .state import Judgement, Target


def describe_node_readiness(node: ClusterNode) -> str:
    return "" if node.ready else f"; the node is NotReady: {node.not_ready or 'no reason reported'}"


def make_waiting_judgement(
    target: Target,
    name: str,
    detail: str,
    suspect: str = "",
    matched: tuple[str, ...] = (),
    offered: typing.Optional[int] = None,
) -> Judgement:
    """Return the judgment of a node that is not ready yet.

    :param name: name of the node
    :param detail: the condition that is not met
    :param suspect: kind of the cause, which limits how long the state may last; empty for no limit but that of the wait
    :param matched: PCI addresses of the physical functions that the policy selects
    :param offered: number of allocatable functions; None if unknown
    """
    return Judgement(SyncNode(target.fabric, name, "waiting", detail, matched=matched, allocatable=offered), suspect)


def make_failed_judgement(target: Target, name: str, detail: str, remedy: str) -> Judgement:
    return Judgement(SyncNode(target.fabric, name, "failed", detail, remedy))
