# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge what blocks the planned drains: pods and budgets, the pools that limit them, and the state of the cluster.
Check id: ``network.drain``.
"""

from __future__ import annotations

from ..._model.base.phrases import describe_read_remedy
from ..._model.kubernetes.disruption import NodePlan, PoolPlan
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..controllers.drains.drain import is_loss, takes_devices
from ..controllers.sriov.card_firmware import is_about_firmware
from .plan_text import describe_turns, name_pool


def report_unread_blocker(kind: str, reason: str) -> Finding:
    """Return the finding that objects which may block a drain could not be read.

    :param kind: kind of the objects
    :param reason: why they could not be read
    """
    why = (
        f"The objects of kind {kind} could not be read, so it is unknown whether they block a drain. Nothing was"
        " applied."
    )
    return Finding(
        "network.drain",
        f"cluster {kind}",
        UNKNOWN,
        reason,
        "nothing that blocks a drain",
        why,
        describe_read_remedy("Then run stage network again."),
    )


def report_blocked(node: NodePlan) -> Finding:
    """Return the failed finding on what blocks the drain of a node, with a remedy for each cause.

    :param node: plan of the node, with at least one blocker
    """
    firmware = [blocker for blocker in node.blockers if is_about_firmware(blocker)]
    lost = [blocker for blocker in node.blockers if is_loss(blocker) and blocker not in firmware]
    held = [blocker for blocker in node.blockers if blocker not in (*firmware, *lost)]
    why = (
        "The operator would cordon the node and wait forever, so nothing was applied."
        if held
        else "The pods would lose their network devices or share them, so nothing was applied."
        if any(map(takes_devices, lost))
        else "The firmware of a card has one number of virtual functions (NUM_OF_VFS) for all of its ports, and the"
        " SR-IOV operator would set another one than is needed, so nothing was applied."
        if firmware and not lost
        else "The operator would end these pods for good, or delete their data, so nothing was applied."
    )
    steps = []
    if any("MachineConfigPool" not in blocker for blocker in held):
        steps.append("let the PodDisruptionBudget allow an eviction (one more replica), or delete the pods")
    if any("MachineConfigPool" in blocker for blocker in held):
        steps.append("complete the update of the MachineConfigPool (unpause it, repair its degraded machines)")
    if firmware:
        steps.append("follow the instructions under 'measured' for the firmware of the cards")
    if lost:
        steps.append("follow the instructions under 'measured' for the pods that would be lost")
    text = "; ".join(steps)
    remedy = f"{text[:1].upper()}{text[1:]}. Then run stage network again."
    measured = "; ".join(blocker.rstrip(".") for blocker in node.blockers)
    return Finding("network.drain", node.node, FAIL, measured, "nothing that blocks a drain", why, remedy)


def report_closed(why: str) -> Finding:
    """Return the failed finding that no node of the cluster may go down now.

    :param why: reason of the gate, as text
    """
    text = (
        "A node that goes down now could take down the control plane, be reprovisioned, or exceed the permitted number"
        " of unavailable nodes. The policies, pool configs and drivers were not applied."
    )
    return Finding(
        "network.drain",
        "cluster",
        FAIL,
        why,
        "the cluster tolerates that nodes go down",
        text,
        "Follow the instructions under 'measured', then run stage network again.",
    )


def check_turns(pool: PoolPlan) -> Finding:
    """Return the finding on whether each node of a pool gets its turn.

    :param pool: plan of the pool
    """
    if pool.blockers:
        why = "The nodes would wait forever for their turn, so nothing was applied."
        remedy = (
            "Set maxUnavailable of the SriovNetworkPoolConfig to at least 1, and assign each node to only one"
            " pool. Then run stage network again."
        )
        remedy = (
            "Repair or unpause the MachineConfigPool, keep only one KubeletConfig for it, or add the limits of CRI-O"
            " under 'measured' to rdma_cluster.host.memlock.ulimits. Then run stage network again."
            if pool.machines
            else remedy
        )
        return Finding(
            "network.drain", name_pool(pool), FAIL, "; ".join(pool.blockers), "each node gets its turn", why, remedy
        )
    return build_pass("network.drain", name_pool(pool), describe_turns(pool), "each node gets its turn")
