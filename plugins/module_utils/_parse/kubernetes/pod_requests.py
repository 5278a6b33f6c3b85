# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse how much CPU and memory a node offers and a pod requests, as the scheduler counts them. [kubernetes
staging/src/k8s.io/component-helpers/resource/helpers.go PodRequests]
"""

from __future__ import annotations

import decimal
import typing

from .quantity import parse_quantity
from .resource import Resource, ResourceError, items_of, mapping_at, name_of

#: largest amount that is stored: Kubernetes stores amounts as integers of 64 bits
_MOST = 2**63 - 1


class Amounts(typing.NamedTuple):
    """An amount of CPU and memory.

    :ivar cpu: CPU in thousandths of a CPU
    :ivar memory: memory in bytes
    """

    cpu: int = 0
    memory: int = 0

    def plus(self, other: Amounts) -> Amounts:
        """Return the sum of both amounts, at most 2**63 - 1 each."""
        return Amounts(min(_MOST, self.cpu + other.cpu), min(_MOST, self.memory + other.memory))


def parse_cpu(value: typing.Any, what: str) -> int:
    """Return an amount of CPU in thousandths of a CPU, rounded up: ``2`` is 2000 and ``500m`` is 500.

    :param what: name of the value in messages
    :raises ResourceError: the value is not a quantity, or is negative
    """
    return _round_up(parse_quantity(value, what) * 1000, value, what)


def parse_memory(value: typing.Any, what: str) -> int:
    """Return an amount of memory in bytes, rounded up: ``1Gi`` is 1073741824.

    :param what: name of the value in messages
    :raises ResourceError: the value is not a quantity, or is negative
    """
    return _round_up(parse_quantity(value, what), value, what)


def _round_up(number: decimal.Decimal, value: typing.Any, what: str) -> int:
    if number < 0:
        raise ResourceError(f"{what}: '{str(value)[:100]}' is negative")
    return min(_MOST, int(number.to_integral_value(decimal.ROUND_CEILING)))


def parse_allocatable(node: Resource) -> tuple[typing.Optional[int], typing.Optional[int]]:
    """Return the allocatable CPU of a v1 Node in thousandths of a CPU, and its memory in bytes. A value that is missing
    or invalid is None.
    """
    offered = mapping_at(node, "status", "allocatable")
    found: list[typing.Optional[int]] = []
    for name, parse in (("cpu", parse_cpu), ("memory", parse_memory)):
        try:
            found.append(parse(offered.get(name), name))
        except ResourceError:
            found.append(None)
    return found[0], found[1]


def parse_pod_amounts(pod: Resource) -> Amounts:
    """Return the CPU and the memory that the scheduler reserves for a v1 Pod: the sum of its containers and sidecars,
    or the largest init container if that is more, and its overhead. An invalid value counts as 0, since the API server
    admits none.
    """
    spec = mapping_at(pod, "spec")
    what = f"Pod {name_of(pod)}"
    running = beside = Amounts()
    first = Amounts()
    for item in items_of(spec, "initContainers", what):
        own = _parse_requests(mapping_at(item, "resources", "requests"))
        if item.get("restartPolicy") == "Always":
            beside = beside.plus(own)
            own = Amounts()
        before = beside.plus(own)
        first = Amounts(max(first.cpu, before.cpu), max(first.memory, before.memory))
    for item in items_of(spec, "containers", what):
        running = running.plus(_parse_requests(mapping_at(item, "resources", "requests")))
    running = running.plus(beside)
    whole = Amounts(max(first.cpu, running.cpu), max(first.memory, running.memory))
    return whole.plus(_parse_requests(mapping_at(spec, "overhead")))


def _parse_requests(requests: typing.Mapping[str, typing.Any]) -> Amounts:
    found = {}
    for name, parse in (("cpu", parse_cpu), ("memory", parse_memory)):
        try:
            found[name] = parse(requests[name], name) if name in requests else 0
        except ResourceError:
            found[name] = 0
    return Amounts(**found)
