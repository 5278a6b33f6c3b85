# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge what blocks the planned drains: pods and budgets, the pools that limit them, and the state of the cluster.
Check id: ``network.drain``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import describe_read_remedy
from ..._model.kubernetes.disruption import NodePlan, PoolPlan
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from ..controllers.drains.budgets import is_held_once, is_held_twice
from ..controllers.drains.drain import is_loss, is_unread_pod, takes_devices
from ..controllers.machine_configs.pools import describe_unpause
from ..controllers.sriov.card_firmware import is_about_firmware
from ..controllers.sriov.drains import is_external_drain, read_held_pool, split_refusal
from .plan_text import describe_turns, name_pool

_FOLLOW = "Follow the instructions under 'measured'"


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
        f"{kind} objects not read: {reason}",
        f"{kind} objects read, and nothing that blocks a drain",
        why,
        describe_read_remedy("Then run stage network again."),
    )


def report_blocked(node: NodePlan) -> Finding:
    """Return the failed finding on what blocks the drain of a node, with a remedy for each cause.

    :param node: plan of the node, with at least one blocker
    """
    firmware = [blocker for blocker in node.blockers if is_about_firmware(blocker)]
    lost = [blocker for blocker in node.blockers if is_loss(blocker) and blocker not in firmware]
    refusals = [blocker for blocker in node.blockers if split_refusal(blocker)[1]]
    held = [blocker for blocker in node.blockers if blocker not in (*firmware, *lost, *refusals)]
    measured = "; ".join((split_refusal(blocker)[0] or blocker).rstrip(".") for blocker in node.blockers)
    why = f"{'. '.join(_list_causes(held, refusals, lost, firmware))}, so nothing was applied."
    text = ". ".join(f"{step[:1].upper()}{step[1:]}" for step in _list_steps(node, held, refusals, lost, firmware))
    remedy = f"{text or _FOLLOW}. Then run stage network again."
    return Finding("network.drain", node.node, FAIL, measured, "nothing that blocks a drain", why, remedy)


def _list_causes(
    held: typing.Sequence[str],
    refusals: typing.Sequence[str],
    lost: typing.Sequence[str],
    firmware: typing.Sequence[str],
) -> list[str]:
    """Return why a node must not be drained, as sentences without a period, one for each cause.

    :param held: blockers that keep the operator from draining
    :param refusals: blockers because of which the operator must not drain
    :param lost: blockers that are pods or their data that would be lost
    :param firmware: blockers about the firmware of a card
    """
    causes = []
    if held:
        causes.append("The operator would cordon the node and wait forever")
    if any(not is_external_drain(blocker) for blocker in refusals):
        causes.append("The SR-IOV operator would end the cordon or the pause that another user or program has set")
    if any(map(is_external_drain, refusals)):
        causes.append("NVIDIA's maintenance operator would drain the node without a limit")
    if any(map(takes_devices, lost)):
        causes.append("The pods would lose their network devices or share them")
    if any(not takes_devices(blocker) for blocker in lost):
        causes.append("The operator would end these pods for good, or delete their data")
    if firmware:
        causes.append(
            "The firmware of a card has one number of virtual functions (NUM_OF_VFS) for all of its ports, and the"
            " SR-IOV operator would set another one than is needed"
        )
    return causes


def _list_steps(
    node: NodePlan,
    held: typing.Sequence[str],
    refusals: typing.Sequence[str],
    lost: typing.Sequence[str],
    firmware: typing.Sequence[str],
) -> typing.Iterator[str]:
    """Yield the instructions of the remedy, one for each cause, without a period.

    :param node: plan of the node
    :param held: blockers that keep the operator from draining
    :param refusals: blockers because of which the operator must not drain
    :param lost: blockers that are pods or their data that would be lost
    :param firmware: blockers about the firmware of a card
    """
    if any(is_held_once(blocker) for blocker in held):
        yield (
            "let the PodDisruptionBudget allow an eviction (one more replica), or delete the pods; kubectl get"
            " poddisruptionbudget -A shows ALLOWED DISRUPTIONS"
        )
    if any(is_held_twice(blocker) for blocker in held):
        yield (
            "change the selectors of the PodDisruptionBudgets, so that only one of them selects each pod (kubectl edit"
            " poddisruptionbudget -n NAMESPACE NAME)"
        )
    for name, is_paused in dict.fromkeys(filter(None, map(read_held_pool, held))):
        yield (
            f"when the reason of its pause is gone and its nodes may reboot, unpause MachineConfigPool {name} and wait"
            f" until it is updated: {describe_unpause(name)}"
            if is_paused
            else f"repair the degraded machines of MachineConfigPool {name}, which oc describe machineconfigpool {name}"
            " shows"
        )
    yield from dict.fromkeys(split_refusal(blocker)[1] for blocker in refusals)
    if firmware:
        yield "follow the instructions under 'measured' for the firmware of the cards"
    if lost:
        yield "follow the instructions under 'measured' for the pods that would be lost"
    if any(is_unread_pod(blocker) for blocker in held):
        yield f"delete the pods that are too large to be read, which run on {node.node}, or let their owner shrink them"


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
