# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that each pod announces an address, a name and a function of its own. The kubelet of a node writes them, so a
node that announces the address of another pod would have that pod measured in its place.
"""

from __future__ import annotations

import collections
import ipaddress
import operator
import typing

from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import find_traits
from ..._model.measurement.bandwidth import RdmaPod
from ..._model.measurement.pairs import End


def why_outside(fabric: Fabric, address: str) -> str:
    """Return the reason why an address cannot belong to the fabric's own network; empty if the address is inside the
    range.

    The text is also empty if the address or the range cannot be parsed, and if the intent does not set the range: the
    fabric has no ipam, or its nv-ipam pool is not created by linerate.rdma.

    :param address: address that a pod announces
    """
    wanted = fabric.ipam
    # a pool of nv-ipam that somebody else has made has the range that they gave it
    if wanted is None or (wanted.pool is not None and not wanted.pool.create):
        return ""
    try:
        # whereabouts takes first-last/prefix, too
        network = ipaddress.ip_network(wanted.range.rpartition("-")[2].strip(), strict=False)
        inside = ipaddress.ip_address(address) in network
    except ValueError:
        return ""
    return (
        ""
        if inside
        else f"the pod announces the address {address}, which is outside the range {wanted.range} of the fabric"
    )


def find_announced_twice(pods: typing.Iterable[RdmaPod]) -> dict[str, str]:
    """Return a text for each pod whose address another pod announces too, by the name of the pod. The text names the
    other pods. Pods with an error or without an address are ignored.

    :param pods: pods of one fabric that exist at the same time
    """
    told = {}
    for pod, others in _find_shared(pods, lambda pod: _read_address(pod.address) if pod.address else None):
        told[pod.name] = f"the pod announces the address {pod.address}, which is also announced by {_name(others)}"
    return told


def find_held_twice(fabric: Fabric, pods: typing.Iterable[RdmaPod]) -> dict[End, str]:
    """Return a text for each pod that has the same name, virtual function or HCA as another pod, although only one pod
    may have it. The text names the other pod.

    The keys are the rail and the node of the pod. Pods with an error are ignored. If the profile of the fabric gives
    pods no functions, only the names are compared.

    :param pods: pods of the fabric that exist at the same time
    """
    seen, told = tuple(pods), {}
    for pod, others in _find_shared(seen, lambda pod: (pod.namespace, pod.name)):
        told[(pod.rail, pod.node)] = f"The pod {pod.name} is also listed as {_name(others)}"
    if not find_traits(fabric).functions:
        return told
    for pod, others in _find_shared(seen, lambda pod: (pod.node, pod.pci) if pod.pci else None):
        told[(pod.rail, pod.node)] = (
            f"The pod of this rail uses the virtual function {pod.pci}, which is also used by {_name(others)}"
        )
    hca = operator.attrgetter("node", "physical_function")
    for pod, others in _find_shared(seen, lambda pod: hca(pod) if pod.physical_function else None):
        told[(pod.rail, pod.node)] = (
            f"The pod of this rail uses the HCA {pod.physical_function}, which is also used by {_name(others)}"
        )
    return told


def _read_address(address: str) -> str:
    """Return an IP address in its normal form, so that two spellings of it are equal. Return any other text unchanged.

    :param address: address that a pod announces
    """
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _find_shared(
    pods: typing.Iterable[RdmaPod], key: typing.Callable[[RdmaPod], typing.Optional[typing.Hashable]]
) -> typing.Iterator[tuple[RdmaPod, list[RdmaPod]]]:
    """Yield each pod without an error that has the same key as other pods, with these other pods.

    :param key: function that returns the property to compare; pods for which it returns None are ignored
    """
    of: dict[typing.Hashable, list[RdmaPod]] = collections.defaultdict(list)
    for pod in pods:
        its = key(pod) if not pod.error else None
        if its is not None:
            of[its].append(pod)
    for alike in of.values():
        for pod in alike if len(alike) > 1 else ():
            yield pod, [other for other in alike if other is not pod]


def _name(pods: typing.Sequence[RdmaPod]) -> str:
    return join_first([f"the pod {pod.name} on {pod.node}" for pod in pods], 2)
