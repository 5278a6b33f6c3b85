# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute how much CPU and memory the measuring pods of a node request at the same time, and which request fits."""

from __future__ import annotations

import typing

from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import list_rails
from ..._model.kubernetes.controller import NodeRoom
from ..._model.kubernetes.observers import RESOURCES
from ..._parse.kubernetes.pod_requests import Amounts, parse_cpu, parse_memory
from ..._parse.kubernetes.resource import ResourceError

Kind = typing.Literal["cpu", "memory"]

MIB = 1 << 20
#: steps of a proposed request: tenths of a CPU, and memory in MiB
_CPU_STEP, _MEMORY_STEP = 100, 64 * MIB


class Request(typing.NamedTuple):
    """The pods of a stage that run on a node at the same time, with the request of each of them.

    :ivar path: key of the intent with the request, without ``cpu`` or ``memory``
    :ivar stage: stage that creates the pods
    :ivar pods: number of pods
    :ivar each: request of each pod
    """

    path: str
    stage: str
    pods: int
    each: Amounts


def parse_request(cpu: str, memory: str, path: str) -> Amounts:
    """Return the request of a pod.

    :param cpu: CPU as in the intent, such as ``500m``
    :param memory: memory as in the intent, such as ``1Gi``
    :param path: key of the intent with both, for messages
    :raises ResourceError: a value is not a quantity. The message starts with its key
    """
    return Amounts(parse_cpu(cpu, f"{path}.cpu"), parse_memory(memory, f"{path}.memory"))


def list_requests(intent: Intent) -> tuple[list[Request], list[str]]:
    """Return two lists: the requests of the stages bandwidth and collectives on each node, and the errors of requests
    that are not quantities. Fabrics are measured one after the other, so each has a request of its own.
    """
    found, errors = [], []
    asked = [
        (f"rdma_fabrics[{number}].pods", "bandwidth", count_pods(fabric), fabric.pods.cpu, fabric.pods.memory)
        for number, fabric in enumerate(intent.fabrics)
    ]
    if intent.cluster.collectives is not None:
        wanted = intent.cluster.collectives
        asked.append(("rdma_cluster.collectives", "collectives", 1, wanted.cpu, wanted.memory))
    for path, stage, pods, cpu, memory in asked:
        try:
            found.append(Request(path, stage, pods, parse_request(cpu, memory, path)))
        except ResourceError as error:
            errors.append(str(error))
    return found, errors


def count_pods(fabric: Fabric) -> int:
    """Return the number of pods of a fabric that run on a node at the same time: one for each rail."""
    return len(list_rails(fabric))


def amount_of(amounts: Amounts, kind: Kind) -> int:
    """Return the CPU in thousandths or the memory in bytes."""
    return amounts.cpu if kind == "cpu" else amounts.memory


def free_of(room: NodeRoom, kind: Kind, observed: bool, moving: bool = True) -> typing.Optional[int]:
    """Return how much of a resource a node has free for measuring pods: CPU in thousandths, or memory in bytes. It is
    negative if pods request more than the node offers. Return None if the node does not report the resource.

    :param room: room of the node
    :param kind: resource
    :param observed: whether an observer will run on the node
    :param moving: whether pods count that may end or move; otherwise only pods that stay
    """
    offered, kept, other = (
        (room.cpu, room.cpu_kept, room.cpu_moving)
        if kind == "cpu"
        else (room.memory, room.memory_kept, room.memory_moving)
    )
    if offered is None:
        return None
    asked = RESOURCES["requests"]
    observer = Amounts(parse_cpu(asked["cpu"], "cpu"), parse_memory(asked["memory"], "memory"))
    return offered - kept - (other if moving else 0) - (amount_of(observer, kind) if observed else 0)


def format_amount(amount: int, kind: Kind) -> str:
    """Return an amount as Kubernetes writes it: ``2`` or ``1500m`` of CPU, ``1Gi`` or ``512Mi`` of memory. Memory that
    is not a multiple of 1 MiB is rounded down.

    :param amount: CPU in thousandths, or memory in bytes
    """
    if kind == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    whole = amount // MIB
    return f"{whole // 1024}Gi" if whole and whole % 1024 == 0 else f"{whole}Mi"


def fit_request(free: int, pods: int, kind: Kind) -> str:
    """Return the largest request of a pod with which that many pods fit, as Kubernetes writes it. CPU is a whole number
    where one fits, otherwise in tenths, and memory a multiple of 64 MiB. The text is empty if none of these fits.

    :param free: free amount of the node: CPU in thousandths, or memory in bytes
    :param pods: number of pods on the node
    """
    each = max(0, free) // max(1, pods)
    step = _MEMORY_STEP if kind == "memory" else 1000 if each >= 1000 else _CPU_STEP
    amount = each // step * step
    return format_amount(amount, kind) if amount else ""
