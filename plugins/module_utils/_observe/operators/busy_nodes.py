# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes on which the SR-IOV network operator is at work. Its removal would leave them drained and cordoned,
and on OpenShift their MachineConfigPool paused.
"""

from __future__ import annotations

import typing

from ..._model.base.text import join_first
from ..._model.operators.olm import BUSY, RetainedObject
from ..._parse.kubernetes.resource import name_of
from ..._parse.operators.sriov_operator import node_state
from ..kubernetes.client import Cluster
from ..kubernetes.errors import ApiError
from ..kubernetes.shell import Clock

_KIND, _PLURAL = "SriovNetworkNodeState", "sriovnetworknodestates.sriovnetwork.openshift.io"
_IDLE = ("", "Idle")
#: nodes that a finding names, and seconds between two looks
_NAMED, _PAUSE = 5, 5.0


def find_busy_nodes(cluster: Cluster, namespace: str) -> tuple[str, ...]:
    """Return the nodes on which the SR-IOV operator is at work, sorted, each as text with its state: nodes that the
    operator drains, that wait for their drain, or that its config daemon configures. A state of a node that has left
    the cluster does not count. On a cluster without the operator there are none.

    :param namespace: namespace of the operator
    :raises ApiError: the API server refuses, or cannot be reached
    """
    try:
        states = cluster.list(_KIND, namespace).items
    except ApiError as error:
        if error.absent:
            return ()
        raise
    found = {}
    for state in map(node_state, states):
        if state.desired_state not in _IDLE or state.current_state not in _IDLE:
            wanted, present = state.desired_state or "not set", state.current_state or "not set"
            found[state.node] = f"{state.node} (desired-state {wanted}, current-state {present})"
        elif state.sync_status == "InProgress":
            found[state.node] = f"{state.node} (syncStatus InProgress)"
    known = {name_of(node) for node in cluster.list("Node").items} if found else set()
    return tuple(text for node, text in sorted(found.items()) if node in known)


def wait_until_idle(
    cluster: Cluster, namespace: str, limit: float, clock: Clock, pause: typing.Callable[[float], None]
) -> tuple[str, ...]:
    """Wait until the SR-IOV operator is at work on no node. Return the nodes on which it is still at work after the
    limit, each as text with its state; empty if there are none.

    :param namespace: namespace of the operator
    :param limit: maximum time to wait, in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :raises ApiError: the API server refuses, or cannot be reached
    """
    end = clock() + limit
    busy = find_busy_nodes(cluster, namespace)
    while busy and clock() < end:
        pause(_PAUSE)
        busy = find_busy_nodes(cluster, namespace)
    return busy


def keep_busy_operator(subject: str, namespace: str, busy: typing.Sequence[str]) -> RetainedObject:
    """Return the entry by which the teardown retains the SR-IOV operator because the operator is at work on nodes.

    :param subject: name of the operator as subject of the finding
    :param namespace: namespace of the operator
    :param busy: nodes that :func:`find_busy_nodes` returned
    """
    remedy = (
        f"Wait until kubectl get -n {namespace} {_PLURAL} shows Idle and Succeeded for each of these nodes, then run"
        " the teardown again with teardown_operator: true. If a drain does not end, follow the findings"
        " teardown.virtual_functions, and move the pods that block it. If a node is lost for good, delete it: kubectl"
        " delete node NAME"
    )
    return RetainedObject(subject, f"{BUSY}: {join_first(busy, _NAMED)}", remedy)
