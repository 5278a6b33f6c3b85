# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the nodes that can be down at the same time while operators carry out plans, in the worst case, against the
limit of the intent. Pure.

Each operator limits only the nodes that it takes down itself:

- The SR-IOV operator, NVIDIA's operators and the maintenance operator count their own nodes, and take down the next one
  beside a node that is down for another reason.
- The machine config operator counts all nodes of the pool that are down. [machine-config-operator
  pkg/controller/node/status.go getUnavailableMachines]
- The SR-IOV operator and the machine config operator wait for each other within a MachineConfigPool.
  [sriov-network-operator pkg/platforms/openshift/openshift.go]
"""

from __future__ import annotations

import dataclasses
import itertools
import typing

from ...._model.intent.intent import ClusterIntent
from ...._model.kubernetes.disruption import PoolPlan
from ..machine_configs.pools import find_machine_pool
from .operator_turns import Queue, count_down, find_queue
from .room import GateInputs, find_most, list_counted_nodes

#: MachineConfigPools whose combinations are counted; beyond it, no two operators count as waiting for each other
_MOST_POOLS = 10
#: nodes that a text names
_NAMED = 5


@dataclasses.dataclass(frozen=True)
class Share:
    """The nodes that one operator takes down within one queue, and how many of them at the same time.

    :ivar title: operator and pool, as text
    :ivar nodes: names of the nodes that count for the limit of the intent: those of a plan, and those that wait
    :ivar at_once: maximum number of nodes at the same time; None for no limit, or if it is not known
    :ivar begun: names of those that are down because of this operator
    :ivar operator: operator; empty for a change that waits for nothing
    :ivar pool: pool within which the nodes wait
    :ivar plan: the plan of the run; None if only others ask for it
    :ivar reasons: reason why the operator takes each node down, by node, without those of the plan
    """

    title: str
    nodes: frozenset[str]
    at_once: typing.Optional[int]
    begun: frozenset[str] = frozenset()
    operator: str = ""
    pool: str = ""
    plan: typing.Optional[PoolPlan] = None
    reasons: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Peak:
    """The most nodes that can be down at the same time.

    :ivar most: maximum number that the intent permits
    :ivar limit: source of the maximum, as text
    :ivar total: number of nodes that can be down at the same time
    :ivar down: names of the nodes that are NotReady or cordoned, and that no operator has taken down
    :ivar shares: each operator with nodes to take down, and the number of them that can be down at the same time
    """

    most: int
    limit: str
    total: int
    down: tuple[str, ...]
    shares: tuple[tuple[Share, int], ...]

    @property
    def refusal(self) -> str:
        """Return why the plans must not be carried out now, with the remedy. Return an empty text if they may be, or if
        a plan alone exceeds the limit, which ``list_pool_blockers`` explains.
        """
        own = [(share, number) for share, number in self.shares if share.plan is not None and number]
        others = [(share, number) for share, number in self.shares if share.plan is None and number]
        if self.total <= self.most or not own or any(number > self.most for _share, number in own):
            return ""
        away = len(self.down) + sum(number for _share, number in others)
        if others and away >= self.most:
            return self._explain_busy([share for share, _number in others])
        if self.down and not others:
            return self._explain_down(own)
        return self._explain_sum(own, others)

    def _explain_busy(self, others: typing.Sequence[Share]) -> str:
        told = [f"{name}: {share.reasons[name]}" for share in others for name in sorted(share.nodes)]
        down = [f"{', '.join(self.down[:_NAMED])}: NotReady or cordoned"] if self.down else []
        return (
            f"{'; '.join([*told[:_NAMED], *down])}. These nodes count as unavailable, so no other node may go down"
            f" ({self.limit}). Wait until the operators are done with them, or raise max_unavailable."
        )

    def _explain_down(self, own: typing.Sequence[tuple[Share, int]]) -> str:
        who, left = f"{', '.join(self.down[:_NAMED])}: NotReady or cordoned", self.most - len(self.down)
        if left <= 0:
            return (
                f"{who}, so no other node may go down ({self.limit}). Restore these nodes first, or raise"
                " max_unavailable."
            )
        told = " and ".join(f"{share.title} may take down {number}" for share, number in own)
        return (
            f"{who}. {told} beside them, so together {self.total} nodes may be down at the same time, and the intent"
            f" permits {self.most} ({self.limit}). Restore these nodes first, or raise max_unavailable."
        )

    def _explain_sum(self, own: typing.Sequence[tuple[Share, int]], others: typing.Sequence[tuple[Share, int]]) -> str:
        busy = [f"{name}: {share.reasons[name]}" for share, _number in others for name in sorted(share.nodes)]
        if busy:
            remedy = f"Wait until the operator is done ({'; '.join(busy[:_NAMED])}), then rerun"
        elif all(share.operator in ("machine_config", "nic_driver") for share, _number in own):
            remedy = f"Set rdma_cluster.node_pool.max_unavailable to {self.total}, then rerun"
        else:
            # a higher max_unavailable would become the limit of each of these operators
            remedy = (
                "Change only one of them in a run: restore the present settings of the others in the intent, run the"
                " stage, then change them one after the other"
            )
        titles = " and ".join(dict.fromkeys(share.title for share, _number in (*own, *others)))
        down = f" beside {', '.join(self.down[:_NAMED])}, which are NotReady or cordoned," if self.down else ""
        return (
            f"{titles} do not wait for each other, so{down} together they may take down"
            f" {self.total - len(self.down)} nodes at the same time, and the intent permits {self.most} ({self.limit})."
            f" {remedy}."
        )

    def count_plan(self, roll: PoolPlan) -> int:
        """Return how many nodes of a plan, and of those that wait for the same turns, can be down at the same time."""
        return max((number for share, number in self.shares if share.plan is roll), default=0)


def find_peak(
    rolls: typing.Sequence[PoolPlan],
    stand: GateInputs,
    intent: ClusterIntent,
    inventory: typing.Container[str],
    titles: typing.Callable[[PoolPlan], str],
) -> Peak:
    """Return the most nodes that can be down at the same time if these plans are carried out now.

    :param rolls: nodes that operators will drain or reboot, by pool
    :param stand: state of the cluster
    :param intent: settings of the intent that all fabrics share
    :param inventory: names of the nodes of the inventory
    :param titles: returns the operator and the pool of a plan as text
    """
    going = {name for roll in rolls for name in roll.nodes}
    limited = {node.name for node in list_counted_nodes(stand.nodes, inventory, intent)}
    counted = {node.name: node for node in stand.nodes if node.name in going or node.name in limited}
    shares = _list_shares(rolls, stand, going | limited, titles)
    begun = frozenset().union(*(share.begun for share in shares))
    down = tuple(name for name, node in counted.items() if (not node.ready or node.unschedulable) and name not in begun)
    pools = {node.name: pool.name for node in stand.nodes if (pool := find_machine_pool(node, stand.machine_pools))}
    pools |= {name: roll.name for roll in rolls if roll.machines for name in roll.nodes}
    numbers = [_count_share(share, frozenset(down), pools) for share in shares]
    most, limit = find_most(intent)
    together = frozenset(down).union(*(share.nodes for share in shares))
    total = min(len(together), len(down) + _count_together(shares, numbers, frozenset(down), pools))
    return Peak(most, limit, total, down, tuple(zip(shares, numbers)))


def _list_shares(
    rolls: typing.Sequence[PoolPlan],
    stand: GateInputs,
    counted: typing.AbstractSet[str],
    titles: typing.Callable[[PoolPlan], str],
) -> list[Share]:
    """Return the shares of the plans, each with the nodes that wait in its queue already, and of other operators."""
    waiting = {turn.queue: turn for turn in stand.all_turns}
    found: list[Share] = []
    taken: set[Queue] = set()
    for roll in rolls:
        queue = find_queue(roll)
        turn = waiting.get(queue) if queue else None
        names, begun, at_once = frozenset(roll.nodes) & counted, frozenset[str](), roll.at_once
        if turn is not None:
            names, begun = names | (turn.nodes.keys() & counted), turn.begun & counted
        if queue:
            taken.add(queue)
        operator, pool = queue or ("", "")
        found.append(Share(titles(roll), names, at_once, begun, operator, pool, roll))
    for turn in stand.all_turns:
        if turn.queue not in taken:
            names = frozenset(turn.nodes.keys() & counted)
            found.append(Share(str(turn), names, turn.at_once, turn.begun & counted, *turn.queue, reasons=turn.nodes))
    return [share for share in found if share.nodes]


def _count_share(share: Share, down: frozenset[str], pools: typing.Mapping[str, str]) -> int:
    """Return how many nodes an operator can have down at the same time, without those that are down for another reason.

    :param down: names of the nodes that are down for another reason
    :param pools: MachineConfigPool of each node
    """
    at_once = share.at_once
    if share.operator == "machine_config" and at_once is not None:
        at_once -= sum(pools.get(name) == share.pool for name in down)
    return max(len(share.begun), count_down(max(0, at_once) if at_once is not None else None, share.nodes - down))


def _count_together(
    shares: typing.Sequence[Share],
    numbers: typing.Sequence[int],
    down: frozenset[str],
    pools: typing.Mapping[str, str],
) -> int:
    """Return how many nodes the operators can have down at the same time, without those that are down for another
    reason: the worst of all choices whether the SR-IOV operator or the machine config operator acts in a pool.

    :param numbers: number of each share alone
    """
    pairs = list(zip(shares, numbers))
    machines = {share.pool: (share, number) for share, number in pairs if share.operator == "machine_config"}
    functions = [(share, number) for share, number in pairs if share.operator == "sriov"]
    rest = sum(number for share, number in pairs if share.operator not in ("sriov", "machine_config"))
    both = [
        name for name in machines if any(pools.get(node) == name for share, _n in functions for node in share.nodes)
    ]
    if len(both) > _MOST_POOLS:
        return sum(numbers)
    worst = 0
    for choice in itertools.product((True, False), repeat=len(both)):
        rebooting = {name for name, chosen in zip(both, choice) if chosen}
        number = rest
        for name, (share, most) in machines.items():
            number += most if name in rebooting or name not in both else len(share.begun)
        for share, most in functions:
            free = {node for node in share.nodes - down if pools.get(node) not in rebooting} | share.begun
            number += min(most, len(free))
        worst = max(worst, number)
    return worst
