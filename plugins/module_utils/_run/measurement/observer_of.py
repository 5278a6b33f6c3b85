# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds and opens the observer of a node, in which a stage runs commands on the host."""

from __future__ import annotations

import typing

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.observers import Observer, ObserversFacts
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.shell import Clock, Shell
from ..._render.measurement import commands


def observer_of(observers: typing.Optional[ObserversFacts], node: str) -> tuple[str, Observer]:
    """Return the namespace of the observers, and the ready observer of a node.

    :param observers: observers of the run; None if the run has no observers
    :param node: name of the node
    :raises RdmaError: the run has no observers, or the node has no ready observer
    """
    if observers is None:
        raise RdmaError("no pod inspects the nodes in this run (rdma_observers), so a host cannot be measured")
    found = next((item for item in observers.nodes if item.node == node), None)
    if found is None or found.phase != "ready":
        raise RdmaError(f"{node} has no pod that inspects it (rdma_observers): {_explain_absence(found)}")
    return observers.namespace, found


def has_observer(observers: typing.Optional[ObserversFacts], node: str) -> bool:
    """Return whether the run has an observer for a node, ready or not.

    :param observers: observers of the run; None if the run has no observers
    :param node: name of the node
    """
    return observers is not None and any(item.node == node for item in observers.nodes)


def open_observer(cluster: Cluster, place: tuple[str, Observer], clock: Clock) -> Shell:
    """Open a shell in an observer. The caller must wait once for the shell before its first command.

    :param place: namespace and observer, as ``observer_of`` returns them
    :param clock: function that returns the time of a monotonic clock, in seconds
    :raises ApiError: the API server refuses the connection
    """
    namespace, observer = place
    return cluster.shell(namespace, observer.pod, observer.container, commands.render_shell(), clock)


def _explain_absence(observer: typing.Optional[Observer]) -> str:
    if observer is None:
        return "the node is accessed through SSH"
    return f"{observer.reason}: {observer.detail}" if observer.detail else observer.reason or observer.phase
