# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute how the SR-IOV network operator drains nodes: the pool that limits the drain of a node, the pods that a drain
evicts, and what prevents it. Pure. The rules are those of the operator's source, release 1.6.0. Each function cites its
rule.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ...._model.base.phrases import count_of
from ...._model.base.text import parse_number
from ...._model.kubernetes.disruption import ClusterPod, MachinePool, NodePool
from ...._model.kubernetes.objects import ClusterNode
from ...._model.operators.sriov_operator import NodeState
from ..label_selectors import labels_match
from ..machine_configs.pools import describe_pool

#: parts of the reasons for which the operator must not drain a node: the cordon and the pause of a user, which it would
#: end, and a drain by another operator
_CORDONED = "the node is cordoned by a user or another program"
_PAUSED = "is paused by a user or another program"
_PAUSED_POOL = re.compile(rf"MachineConfigPool \S+ {_PAUSED}")
_EXTERNAL = "NVIDIA's maintenance operator drains this node"
#: a reason of ``explain_what_holds_back``
_HELD_POOL = re.compile(r"MachineConfigPool (\S+) has \d+ of \d+ machines on .+? and is (degraded|paused)")


@dataclasses.dataclass(frozen=True)
class Turn:
    """The limits on the number of nodes that the operator drains at the same time, for one node.

    :ivar pool: name of its SriovNetworkPoolConfig; empty for the operator's default
    :ivar size: number of nodes in the pool
    :ivar at_once: maximum number of nodes that are drained at the same time; None for no limit
    :ivar limit: source of ``at_once``, as text
    :ivar blocked: why the node is never drained; empty if it will be
    """

    pool: str
    size: int
    at_once: typing.Optional[int]
    limit: str
    blocked: str = ""


def find_pools(node: ClusterNode, pools: typing.Iterable[NodePool]) -> tuple[NodePool, ...]:
    """Return the SriovNetworkPoolConfigs that select a node. The operator treats more than one as an error.

    :param pools: SriovNetworkPoolConfigs of the cluster
    """
    return tuple(pool for pool in pools if not pool.offload and labels_match(pool.selector, node.labels))


def turn_of(node: ClusterNode, pools: typing.Sequence[NodePool], nodes: typing.Iterable[ClusterNode]) -> Turn:
    """Return the limits on the drain of a node, from its SriovNetworkPoolConfig or the operator's default.
    [controllers/drain_controller_helper.go findNodePoolConfig, tryDrainNode; api/v1/helper.go MaxUnavailable]

    :param pools: SriovNetworkPoolConfigs of the cluster
    :param nodes: nodes of the cluster
    """
    mine = find_pools(node, pools)
    if len(mine) > 1:
        names = ", ".join(pool.name for pool in mine)
        return Turn(
            mine[0].name,
            0,
            0,
            "",
            f"the node matches more than one SriovNetworkPoolConfig ({names}), and the operator rejects that",
        )
    if not mine:
        size = sum(not find_pools(other, pools) for other in nodes)
        return Turn(
            "", size, 1, "the default of the operator for nodes without a SriovNetworkPoolConfig is 1 node at a time"
        )
    (pool,) = mine
    size = sum(labels_match(pool.selector, other.labels) for other in nodes)
    at_once, error = _count_at_once(pool.max_unavailable, size)
    limit = (
        f"maxUnavailable of SriovNetworkPoolConfig {pool.name} is"
        f" {pool.max_unavailable or 'not set, so there is no limit'}"
    )
    if error or at_once == 0:
        blocked = error or (
            f"{limit}, which allows 0 of {count_of(size, 'node')}: the operator rounds percentages down, so it never"
            " drains a node"
        )
        return Turn(pool.name, size, 0, limit, blocked)
    return Turn(pool.name, size, at_once, limit)


def _count_at_once(text: typing.Optional[str], size: int) -> tuple[typing.Optional[int], str]:
    if text is None:
        return None, ""
    number = parse_number(text[:-1] if text.endswith("%") else text)
    if number is None or (text.endswith("%") and not 1 <= number <= 100):
        return 0, f"maxUnavailable is '{text}', but the operator accepts only a number or 1% to 100%"
    return (number * size // 100 if text.endswith("%") else number), ""


def is_evicted(pod: ClusterPod, full: bool, prefix: str) -> bool:
    """Return whether a drain evicts the pod from its node. A drain before a reboot evicts every pod. Any other drain
    evicts only pods that request virtual functions. Static pods and pods of DaemonSets always remain.
    [pkg/drain/drainer.go]

    :param full: whether the node is drained for a reboot
    :param prefix: prefix of the resources of virtual functions
    """
    if pod.mirror or pod.owner == "DaemonSet":
        return False
    return full or any(name.startswith(prefix) for name in pod.requests)


def explain_what_holds_back(pool: MachinePool) -> str:
    """Return why the operator drains no node of a MachineConfigPool and will not do so without help, as text: the pool
    is degraded or paused while its nodes wait for a new MachineConfig. Return an empty text if neither is the case. The
    operator waits until all nodes of the pool have the MachineConfig of the pool. [pkg/platforms/openshift/openshift.go
    OpenshiftBeforeDrainNode]
    """
    if pool.wanted_config == pool.current_config or (pool.paused and pool.paused_by_operator):
        return ""
    stand = describe_pool(pool)
    if pool.conditions.get("Degraded") == "True":
        return f"{stand} and is degraded ({count_of(pool.degraded, 'machine')}): {pool.message or 'no reason reported'}"
    if pool.paused:
        return f"{stand} and is paused, so it makes no progress"
    return ""


def list_drain_refusals(
    node: ClusterNode, pool: typing.Optional[MachinePool], state: typing.Optional[NodeState]
) -> tuple[str, ...]:
    """Return the reasons why the operator must not drain a node, each with the remedy.

    The operator ends the protections of other users after it has drained the node: it unpauses the MachineConfigPool
    and uncordons the node. [pkg/orchestrator/openshift/openshift.go BeforeDrainNode, AfterCompleteDrainNode;
    pkg/drain/drainer.go CompleteDrainNode]

    If NVIDIA's maintenance operator drains for it, no SriovNetworkPoolConfig limits the number of nodes, and all pods
    are evicted, those without a controller and with emptyDir data too. [Mellanox/network-operator
    controllers/drain_controller.go, pkg/drain/drain_requestor.go setDefaultNodeMaintenance]

    :param pool: MachineConfigPool of the node; None if it has none
    :param state: SriovNetworkNodeState of the node; None if it has none
    """
    found = []
    if state is not None and state.external_drainer:
        found.append(
            f"{_EXTERNAL} for the SR-IOV operator (annotation sriovnetwork.openshift.io/use-external-drainer of"
            f" SriovNetworkNodeState {node.name}), evicts all pods, also those without a controller, and no"
            " SriovNetworkPoolConfig limits it. Let the SR-IOV operator drain: install the Helm chart of NVIDIA's"
            " network operator with operator.maintenanceOperator.useDrainControllerRequestor=false"
        )
    if pool is not None and pool.paused and not pool.paused_by_operator and not pool.paused_by_us:
        found.append(
            f"MachineConfigPool {pool.name} {_PAUSED}, and the SR-IOV operator unpauses it after it has drained the"
            " node. When the reason of the pause is gone, unpause the pool: oc patch"
            f' machineconfigpool {pool.name} --type merge -p \'{{"spec":{{"paused":false}}}}\''
        )
    if node.unschedulable and (state is None or state.current_state in ("", "Idle")):
        found.append(
            f"{_CORDONED}, and the SR-IOV operator uncordons it after it has drained the node. When the reason of the"
            f" cordon is gone, uncordon it: kubectl uncordon {node.name}"
        )
    return tuple(found)


def split_refusal(blocker: str) -> tuple[str, str]:
    """Return the two parts of a reason that ``list_drain_refusals`` returned: the cause, and the instruction. Both are
    empty for any other reason.

    :param blocker: the reason, as text
    """
    if not blocker.startswith((_CORDONED, _EXTERNAL)) and not _PAUSED_POOL.match(blocker):
        return "", ""
    cause, _dot, instruction = blocker.partition(". ")
    return cause, instruction.rstrip(".")


def is_external_drain(blocker: str) -> bool:
    """Return whether a reason against a drain is that another operator than the SR-IOV operator drains the node.

    :param blocker: the reason, as text
    """
    return blocker.startswith(_EXTERNAL)


def read_held_pool(blocker: str) -> typing.Optional[tuple[str, bool]]:
    """Return the name of the MachineConfigPool that holds a drain back, and whether it is paused; a pool that is not
    paused is degraded. Return None if the reason is another one.

    :param blocker: the reason, as ``explain_what_holds_back`` returned it
    """
    found = _HELD_POOL.match(blocker)
    return (found.group(1), found.group(2) == "paused") if found else None
