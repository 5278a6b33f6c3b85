# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a measurement between pods, and placeholders for the pods of a run that starts none."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import typing

from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import list_rails as fabric_rails
from ..._model.kubernetes.measuring import BY_LIMIT, EXCLUDED, NAMESPACE, Refusal
from ..._model.kubernetes.objects import ClusterNode
from ..._model.measurement.bandwidth import RdmaPod
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock
from ..._plan.node_answers import Rails

Say = typing.Callable[[str], None]
#: pods by rail and node
Usable = typing.Mapping[tuple[int, str], RdmaPod]

#: a pod with its resource, which is empty where it is not known
PodOfNode = tuple[RdmaPod, Resource]
#: how many times ``pod_seconds`` the pods of one node may take, over all rounds in which its rails are looked for
_DRAWS = 2
#: seconds that pods have to go, at most: they get one second to end, and the rest is the work of their node
GONE_SECONDS = 120.0
#: why a run in check mode has no pods
NOT_CHECKED = "no pod is started in check mode"


@dataclasses.dataclass(frozen=True)
class Plan:
    """A plan of measurements between pods.

    :ivar fabrics: fabrics to measure
    :ivar cluster: settings of the cluster, from the intent
    :ivar nodes: names of the nodes
    :ivar rails: number of the rail of each HCA, by name of the fabric, by node, and by PCI address of the HCA. A node
        without an entry has one rail on any HCA
    :ivar parallel: maximum number of pairs that are measured at the same time
    :ivar pod_seconds: longest wait in seconds for the pods of a node. Their removal may take as long, but at most
        ``GONE_SECONDS``
    :ivar run: id of the run that owns the pods
    :ivar refused: refusals of fabrics on which no pod may be created, by the name of the fabric
    """

    fabrics: tuple[Fabric, ...]
    cluster: ClusterIntent
    nodes: tuple[str, ...]
    rails: Rails = dataclasses.field(default_factory=dict)
    parallel: int = 512
    pod_seconds: float = 300.0
    run: str = ""
    refused: typing.Mapping[str, Refusal] = dataclasses.field(default_factory=dict)

    @property
    def draw_seconds(self) -> float:
        """Return the time limit, in seconds, for all attempts together to start pods on a node until each rail of the
        node has a pod.
        """
        return _DRAWS * self.pod_seconds

    @property
    def removal_seconds(self) -> float:
        """Return the time limit, in seconds, for the removal of pods. It is at most ``GONE_SECONDS``, even after a long
        wait for images, so that a node that does not end its pod delays a run only for a limited time.
        """
        return min(self.pod_seconds, GONE_SECONDS)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The means of one measurement between pods: client, plan, clock and log.

    :ivar cluster: client of the API server
    :ivar plan: fabrics, nodes and settings of the measurement
    :ivar clock: function that returns the time of a monotonic clock, in seconds
    :ivar say: function that shows a line of progress to the user
    """

    cluster: Cluster
    plan: Plan
    clock: Clock
    say: Say


@contextlib.contextmanager
def start_workers(parallel: int) -> typing.Iterator[concurrent.futures.ThreadPoolExecutor]:
    """Return a context manager that provides a pool of threads. At its end, running tasks are awaited. If the body
    fails, they are not awaited, and tasks that have not begun are cancelled.

    :param parallel: number of threads; less than 1 counts as 1
    """
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=max(1, parallel))
    try:
        yield pool
    except BaseException:
        # an interrupt: do not wait for what runs, it ends with its pods
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def explain_lacking(resource: str, node: str, known: typing.Mapping[str, ClusterNode]) -> str:
    """Return the reason why a node cannot run a pod that requests a resource: the cluster has no such node, or the node
    does not offer the resource.

    :param resource: name of the extended resource
    :param node: name of the node
    :param known: nodes of the cluster, by name
    """
    if node not in known:
        return "the cluster has no node of this name"
    why = known[node].not_ready
    return f"the node does not offer {resource}{f'; the node is not ready: {why}' if why else ''}"


def list_all_unstarted(plan: Plan, reason: str) -> tuple[RdmaPod, ...]:
    """Return placeholders for all pods of a run that starts no pod, for each fabric, node and rail of the plan. Each
    placeholder has the reason as its error.

    :param plan: fabrics and nodes of the run
    """
    return tuple(item for fabric in plan.fabrics for item in list_unstarted(plan, fabric, reason))


def list_unstarted(plan: Plan, fabric: Fabric, reason: str, cause: str = "") -> typing.Iterator[RdmaPod]:
    """Yield a placeholder for each node of a plan and each rail of a fabric on which no pod is started. Each
    placeholder has the reason as its error.

    :param cause: kind of the error, for findings; empty if the error has no kind
    """
    for node in plan.nodes:
        for rail in fabric_rails(fabric):
            yield RdmaPod(fabric.name, node, "", NAMESPACE, error=reason, rail=rail, cause=cause)


def list_excluded(plan: Plan, nodes: typing.Sequence[str]) -> tuple[RdmaPod, ...]:
    """Return placeholders for the pods of nodes that ``--limit`` excludes, for each fabric and rail. The error of each
    placeholder says that its node is excluded.

    :param plan: plan of the measurement, whose fabrics are used
    :param nodes: names of the excluded nodes
    """
    there = dataclasses.replace(plan, nodes=tuple(nodes))
    return tuple(item for fabric in plan.fabrics for item in list_unstarted(there, fabric, EXCLUDED, BY_LIMIT))


def may_return(error: ApiError) -> bool:
    """Return whether an error of the API server may be temporary, so that a retry is useful."""
    return error.status == 0 or error.passing
