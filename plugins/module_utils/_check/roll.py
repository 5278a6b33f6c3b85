# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""What new MachineConfigs do to the nodes: which MachineConfigPool drains and reboots which, in how many waves, and what keeps it from that.

The rules are those of OpenShift's machine config operator, named with each of them. Part of the plan of stage network, see plan.py.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.cluster import ClusterNode
from .._model.disruption import Budget, ClusterPod, DisruptionPlan, MachinePool, NodePlan, PoolPlan
from .._model.findings import FAIL, Finding, ok
from .._model.host_needs import MachineConfig, Roll
from .operator_rules import held_pods, leaves, machine_pool_of, matches, stand_of


@dataclasses.dataclass(frozen=True)
class Machines:
    """What decides it. ``configs`` are those that are to be applied."""

    configs: typing.Tuple[MachineConfig, ...]
    pools: typing.Tuple[MachinePool, ...]
    nodes: typing.Tuple[ClusterNode, ...]
    pods: typing.Tuple[ClusterPod, ...]
    budgets: typing.Tuple[Budget, ...]


def merge(planned: DisruptionPlan, machines: Machines) -> DisruptionPlan:
    """The plan with what the MachineConfigs add to it: one roll of each pool that takes some of them, however many they are."""
    new = [config for config in machines.configs if not config.there]
    nodes = {node.node: node for node in planned.nodes}
    pools = []
    reached = set()
    for pool in machines.pools if machines.configs else ():
        reasons = tuple(f"MachineConfig {config.name} ({config.what})" for config in new if matches(pool.config_selector, config.labels))
        reasons += (f"a run that was stopped has left MachineConfigPool {pool.name} paused before {pool.wanted_config}",) if left_paused(pool) else ()
        members = tuple(node for node in machines.nodes if reasons and machine_pool_of(node, machines.pools) == pool)
        for node in members:
            nodes[node.name] = _rolled(nodes.get(node.name, NodePlan(node.name, "nothing", listed=False)), pool, reasons, machines)
        reached |= {node.name for node in members}
        pools += [_pool(pool, tuple(node.name for node in members))] if members else []
    if new and machines.pools:
        nodes.update({name: _missed(node, new) for name, node in nodes.items() if node.listed and name not in reached})
    return dataclasses.replace(planned, nodes=tuple(nodes.values()), pools=(*pools, *planned.pools))


def left_paused(pool: MachinePool) -> bool:
    """Whether a run of ours was stopped before it let the pool go: the next one does that, and the pool rolls then."""
    return pool.paused_by_us and pool.wanted_config != pool.current_config


def _rolled(node: NodePlan, pool: MachinePool, reasons: typing.Tuple[str, ...], machines: Machines) -> NodePlan:
    if node.action == "unknown":
        return node
    here = [pod for pod in machines.pods if pod.node == node.node and leaves(pod, True, "")]
    # the SR-IOV operator waits for the pool before it touches the node [sriov-network-operator pkg/platforms/openshift/openshift.go]
    later = tuple(f"after that, by the SR-IOV operator: {reason}" for reason in node.reasons) if node.action in ("drain", "reboot") else ()
    names = {f"{pod.namespace}/{pod.name}": pod for pod in here}
    return dataclasses.replace(
        node,
        action="reboot",
        reasons=(*reasons, *later),
        pods=tuple(names),
        lost=tuple(name for name, pod in names.items() if not pod.owner and not pod.ended),
        blockers=tuple(dict.fromkeys((*held_pods(here, True, "", machines.budgets), *node.blockers))),
        rolled_by=pool.name,
    )


def _missed(node: NodePlan, new: typing.Sequence[MachineConfig]) -> NodePlan:
    """A need that does not reach a node would show as a failure much later."""
    names = ", ".join(config.name for config in new)
    return dataclasses.replace(
        node, action="unknown", reasons=(f"no MachineConfigPool takes both the node and MachineConfig {names}; see rdma_cluster.host.machine_role",)
    )


def _pool(pool: MachinePool, nodes: typing.Tuple[str, ...]) -> PoolPlan:
    limit = f"maxUnavailable is {pool.max_unavailable or 'not set, which is 1'}"
    at_once = at_once_of(pool.max_unavailable, len(nodes))
    if at_once is None:
        blocked = (f"maxUnavailable is '{pool.max_unavailable}', which is neither a number nor a percentage",)
        return PoolPlan(pool.name, nodes, 0, None, limit, blocked, machines=True)
    blockers = tuple(_blockers(pool))
    return PoolPlan(pool.name, nodes, at_once, None if blockers else -(-len(nodes) // at_once), limit, blockers, machines=True)


def _blockers(pool: MachinePool) -> typing.Iterator[str]:
    if pool.conditions.get("Degraded") == "True":
        yield f"{stand_of(pool)} and is degraded ({pool.degraded} machines): {pool.message or 'it gives no reason'}"
    if pool.paused and not pool.paused_by_us:
        yield f"MachineConfigPool {pool.name} is paused by somebody else, who has to let it go on"


def at_once_of(text: typing.Optional[str], size: int) -> typing.Optional[int]:
    """Nodes that may be away at the same time, 1 at least; None for a text that is none. Percentages are rounded down.

    [machine-config-operator pkg/controller/node/node_controller.go maxUnavailable]
    """
    if text is None:
        return 1
    number = text[:-1] if text.endswith("%") else text
    if not number.isascii() or not number.isdigit():
        return None
    return max(1, int(number) * size // 100 if text.endswith("%") else int(number))


def findings(rolls: typing.Iterable[Roll], error: str, check: str = "network.roll") -> typing.Iterator[Finding]:
    """How the MachineConfigPools took it.

    :param error: why the new configuration did not get ready
    """
    expected = "all machines on the new configuration, after 1 roll"
    if error:
        why = f"The pools were let go all the same, so that none stays paused: {error}."
        yield Finding(check, "MachineConfigPools", FAIL, "not ready", expected, why, "See the log of the machine-config-controller, then run the stage again.")
    for roll in rolls:
        subject, measured = f"MachineConfigPool {roll.pool}", f"{roll.updated} of {roll.machines} machines on {roll.config or 'nothing'}, rolls: {roll.rolls}"
        if roll.error:
            why = f"Its nodes did not all come to the new configuration: {roll.error}."
            remedy = "oc describe machineconfigpool, and the log of the machine-config-daemon on the node that hangs; then run the stage again."
            yield Finding(check, subject, FAIL, measured, expected, why, remedy)
        elif roll.rolls > 1:
            why = "Something else gave the pool another configuration while it rolled, so nodes rebooted more often than was planned."
            yield Finding(check, subject, FAIL, measured, expected, why, "See who else changes MachineConfigs (oc get machineconfig), before the next change.")
        else:
            yield ok(check, subject, measured, expected)
