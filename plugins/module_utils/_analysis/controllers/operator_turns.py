# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes that another operator drains, or will drain in its next turn: the SR-IOV network operator, the driver
upgrades of NVIDIA's operators, and NVIDIA's NIC configuration operator. Between two turns of such an operator no node
is cordoned. Pure.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.objects import ClusterNode
from ..._model.operators.sriov_operator import NodeState

_IDLE = ("", "Idle")
#: labels of a node, by driver [k8s-operator-libs pkg/upgrade/consts.go UpgradeStateLabelKeyFmt,
#: UpgradeSkipNodeLabelKeyFmt]
_DRIVERS = ("gpu", "ofed")
_UPGRADE, _SKIP = "nvidia.com/{}-driver-upgrade-state", "nvidia.com/{}-driver-upgrade.skip"
#: states in which the operator does not take the node down
_ENDED = ("", "upgrade-done", "upgrade-failed")


def find_taken_nodes(
    nodes: typing.Iterable[ClusterNode],
    states: typing.Iterable[NodeState],
    cards: typing.Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return the nodes that another operator drains, or will drain in its next turn, each with the reason as text.

    :param nodes: nodes of the cluster
    :param states: SriovNetworkNodeStates of the cluster
    :param cards: node of each NicDevice, and why NVIDIA's NIC configuration operator reboots it; empty if it does not
    """
    found = {
        node: f"NVIDIA's NIC configuration operator reboots it or waits for its turn ({why})"
        for node, why in cards
        if why
    }
    for node in nodes:
        for driver in _DRIVERS:
            state = node.labels.get(_UPGRADE.format(driver), "")
            skipped = state == "upgrade-required" and node.labels.get(_SKIP.format(driver)) == "true"
            if state not in _ENDED and not skipped:
                found[node.name] = f"NVIDIA's operator upgrades its driver (label {_UPGRADE.format(driver)}: {state})"
    for one in states:
        if one.desired_state not in _IDLE or one.current_state not in _IDLE:
            found[one.node] = (
                "the SR-IOV operator drains it or waits for its turn (SriovNetworkNodeState: desired-state"
                f" {one.desired_state or 'not set'}, current-state {one.current_state or 'not set'})"
            )
    return found
