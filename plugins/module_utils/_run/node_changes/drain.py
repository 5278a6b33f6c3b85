# SPDX-License-Identifier: GPL-3.0-or-later

"""Drains a node by evictions, which respect PodDisruptionBudgets, and waits until all pods that a drain takes are gone.

Some controllers create a pod again on the cordoned node, because the pod tolerates the cordon (the operators of Cilium
and Tigera). ``kubectl drain``, which lists pods once, leaves such a pod on the node, and so does this module: it is
treated like a pod of a DaemonSet.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.controllers.drains.drain import list_drain_blockers
from ..._analysis.controllers.sriov.drains import is_evicted
from ..._model.base.errors import RdmaError
from ..._model.intent.intent import DrainOptions
from ..._model.kubernetes.disruption import ClusterPod
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes import core
from .drained_pods import may_leave

#: pods that a drain takes from one node. Whoever may make a pod may name its node, and kubelets are tested with 2,500
MOST_PODS = 10_000


class NodeFailed(RdmaError):
    """Raised if the change of a node cannot continue."""


class NotDrained(NodeFailed):
    """Raised if pods do not leave a node during its drain. The node was not reset, and its cordon must be undone."""


class Drain:
    """A client that evicts the pods of nodes, as ``kubectl drain`` does.

    :param cluster: client of the API server
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function without arguments that waits until the next read. An exception that it raises ends the drain
    :param say: function that shows a line of progress to the user
    :param seconds: seconds within which all pods of a node must be gone
    :param allowed: kinds of pods that the intent allows the drain to evict, such as those with an emptyDir volume
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        pause: typing.Callable[[], None],
        say: typing.Callable[[str], None],
        seconds: float,
        allowed: DrainOptions,
    ) -> None:
        self._cluster, self._clock, self._pause, self._say, self._seconds = cluster, clock, pause, say, seconds
        self._allowed = allowed
        #: by node: uids of the pods that the first look found, and of the controllers that have lost a pod by an
        #: eviction
        self._first: dict[str, frozenset[str]] = {}
        self._lost: dict[str, set[str]] = {}

    def work(self, name: str, did: list[str]) -> None:
        """Evict all pods that must leave the node, and wait until they are gone. If a PodDisruptionBudget refuses an
        eviction, retry until the limit.

        All pods of the node are read before each round of evictions. If one of them must not be evicted, none of that
        round is.

        :param name: name of the node
        :param did: list to which the actions are appended as text
        :raises NodeFailed: a pod must not be evicted, or pods are left after the limit
        :raises ApiError: a request fails
        """
        end, asked, told = self._clock() + self._seconds, typing.cast(set[str], set()), ""
        while True:
            pods = self.left(name)
            if not pods:
                did += [f"{len(asked)} pods evicted"] if asked else []
                return
            # what was asked to go goes: only its end is awaited
            stopped = list_drain_blockers((pod for pod in pods if pod.uid not in asked), self._allowed)
            if stopped:
                why, _stop, remedy = stopped[0].partition(". ")
                raise NodeFailed(why, remedy)
            held = [why for pod in pods for why in [self._evict(pod, asked)] if why]
            words = "; ".join(held[:3]) or (
                f"{len(pods)} pods are terminating, such as {pods[0].namespace}/{pods[0].name}"
            )
            if self._clock() >= end:
                remedy = (
                    "Let the PodDisruptionBudget allow an eviction (for example with one more replica), or delete the"
                    " pods, then rerun; the node accepts pods again"
                )
                raise NodeFailed(f"the node was not drained within {self._seconds:.0f} s: {words}", remedy)
            if words != told:
                self._say(f"{name}: draining: {words}")
            told = words
            self._pause()

    def left(self, name: str) -> list[ClusterPod]:
        """Return the pods that a drain of a node evicts and that still run on the node. A pod that its controller
        created again on the cordoned node is left out, as pods of DaemonSets are.

        :param name: name of the node
        :raises ApiError: the pods cannot be listed, or such a pod is too large to be read
        :raises NodeFailed: there are more than ``MOST_PODS`` such pods
        """
        found: list[ClusterPod] = []
        for item in self._cluster.pages("Pod", fields=f"spec.nodeName={name}", only=may_leave):
            pod = core.parse_pod(item)
            if pod.node == name and is_evicted(pod, True, "") and not pod.ended:
                # a pod may have labels of a megabyte, and no drain asks for them
                found.append(dataclasses.replace(pod, labels={}, requests=()))
            if len(found) > MOST_PODS:
                remedy = (
                    f"Find the owner of the pods (kubectl get pods -A --field-selector spec.nodeName={name}), delete"
                    " the pods, then rerun"
                )
                raise NodeFailed(
                    f"the node was not drained: it has more than {MOST_PODS} pods that a drain evicts", remedy
                )
        first = self._first.setdefault(name, frozenset(pod.uid for pod in found))
        lost = self._lost.setdefault(name, set())
        return [pod for pod in found if pod.uid in first or not pod.tolerates_cordon or pod.controller not in lost]

    def _evict(self, pod: ClusterPod, asked: set[str]) -> str:
        """Request the eviction of a pod. Return the reason if a PodDisruptionBudget refuses it for now. Return an empty
        text if the eviction was accepted, now or before.

        :param asked: uids of the pods whose eviction was accepted; updated by this method
        :raises ApiError: the API server refuses the eviction for another reason
        """
        if pod.uid in asked:
            return ""
        try:
            # a pod of this name that was made again meanwhile, perhaps on another node, is not the one that was looked
            # at
            if self._cluster.evict(pod.namespace, pod.name, pod.uid):
                asked.add(pod.uid)
                self._lost[pod.node].update([pod.controller] if pod.controller else [])
        except ApiError as error:
            if not error.held:
                raise
            return f"{pod.namespace}/{pod.name} cannot be evicted now: {error.text}"
        return ""
