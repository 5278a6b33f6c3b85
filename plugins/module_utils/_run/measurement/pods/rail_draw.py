# SPDX-License-Identifier: GPL-3.0-or-later

"""Start pods on nodes until each rail of each node has a pod, because the device plugin chooses the rail of a pod."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import typing

from ...._check.bandwidth.addresses import find_announced_twice
from ...._model.intent.intent import Fabric
from ...._model.intent.profiles import list_rails as fabric_rails
from ...._model.measurement.bandwidth import RdmaPod
from ..measuring_plan import Plan
from .inspection import PodInspector
from .readiness import ReadinessWait


class RailDraw:
    """The start of the pods of a fabric that each measure one rail."""

    def __init__(
        self,
        plan: Plan,
        create: typing.Callable[[Fabric, str, int, float], RdmaPod],
        readiness: ReadinessWait,
        inspector: PodInspector,
        discard: typing.Callable[[concurrent.futures.Executor, typing.Iterable[RdmaPod]], None],
    ) -> None:
        """Prepare the start; no pod is created yet.

        :param create: function that creates a pod of a fabric. It gets the name of the node, the number of the pod on
            the node, and the maximum duration of the measurements in the pod in seconds
        :param discard: function that deletes pods that are not needed
        """
        self._plan = plan
        self._create = create
        self._readiness = readiness
        self._inspector = inspector
        self._discard = discard

    def draw(
        self, pool: concurrent.futures.Executor, fabric: Fabric, offered: typing.Mapping[str, int], seconds: float
    ) -> list[RdmaPod]:
        """Start pods until each rail of each node has a pod, and return one pod for each rail of each node.

        The device plugin chooses the virtual function of a pod, and thereby its rail. So as many pods are started on a
        node as it has HCAs, and this is repeated until each rail has a pod. With V functions on each of H HCAs, (H - 1)
        x V + 1 pods cover all HCAs. Surplus pods are deleted at once. A rail without a pod gets a placeholder with the
        reason as its error.

        :param pool: threads in which pods are started
        :param offered: number of allocatable functions, by node
        :param seconds: maximum duration of the measurements in the pods, in seconds
        """
        hcas = fabric_rails(fabric).stop
        most = {
            name: min(number, (hcas - 1) * max(1, fabric.virtual_functions) + 1) for name, number in offered.items()
        }
        held: dict[str, list[RdmaPod]] = {name: [] for name in offered}
        # each round waits for the slowest of its nodes: one that takes its time in each of them ends its own draw
        spent = dict.fromkeys(offered, 0.0)
        while True:
            tasks = [
                (name, len(pods) + number)
                for name, pods in held.items()
                # a pod that cannot be used ends the draw: more of them would fare no better
                if not any(item.error for item in pods) and len({item.rail for item in pods}) < hcas
                if spent[name] < self._plan.draw_seconds
                for number in range(min(hcas, most[name] - len(pods)))
            ]
            if not tasks:
                break
            made = list(pool.map(lambda task: self._create(fabric, task[0], task[1], seconds), tasks))
            ready = self._readiness.wait([item for item in made if not item.error], spent)
            looked = dict(zip(ready, pool.map(lambda entry: self._inspector.inspect(fabric, *entry), ready.values())))
            slowest: dict[str, float] = {}
            for item, took in looked.values():
                slowest[item.node] = max(took, slowest.get(item.node, 0.0))
            for name, took in slowest.items():
                spent[name] += took
            for item in made:
                held[item.node].append(looked[item.name][0] if item.name in looked else item)
        # it can't be known which pod has such an address, and a pair with it would be measured as one with the other
        twice = find_announced_twice(item for pods in held.values() for item in pods)
        for name, pods in held.items():
            held[name] = [
                dataclasses.replace(item, error=twice[item.name], cause="address") if item.name in twice else item
                for item in pods
            ]
        chosen = [
            self._choose(fabric, name, rail, pods, spent[name])
            for name, pods in held.items()
            for rail in fabric_rails(fabric)
        ]
        used = {item.name for item in chosen}
        surplus = [item for pods in held.values() for item in pods if item.name not in used]
        self._discard(pool, surplus)
        return chosen

    def _choose(self, fabric: Fabric, node: str, rail: int, pods: typing.Sequence[RdmaPod], spent: float) -> RdmaPod:
        """Return the pod of one rail of a node. Without a usable pod, return a pod that could not be used or a
        placeholder, with the reason as its error.

        :param node: name of the node
        :param rail: number of the rail
        :param pods: pods that were started on the node
        :param spent: seconds that the starts of these pods took
        """
        broken = next((item for item in pods if item.error), None)
        mine = next((item for item in pods if item.rail == rail and not item.error), None)
        if mine is not None:
            return mine
        if broken is not None:
            return dataclasses.replace(broken, rail=rail)
        of = ", ".join(
            address for address, number in self._plan.rails.get(fabric.name, {}).get(node, {}).items() if number == rail
        )
        error = (
            f"none of the {len(pods)} virtual functions of the pods on this node belongs to rail {rail}, HCA"
            f" {of or 'unknown'}"
        )
        if spent >= self._plan.draw_seconds:
            error += f"; no more pods were started because the pods took {spent:.0f} s"
        return RdmaPod(fabric.name, node, "", fabric.network.namespace, error=error, rail=rail, cause="rail")
