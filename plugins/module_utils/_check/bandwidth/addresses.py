# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the addresses that pods announce can be theirs. The kubelet of a node writes them: with that of another pod
it would have this one measured."""

from __future__ import annotations

import collections
import ipaddress
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.measurement.bandwidth import RdmaPod


def why_outside(fabric: Fabric, address: str) -> str:
    """Tell why an address cannot be of the fabric's own network; empty where it can, and where the intent does not
    decide its range."""
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
        else f"it announces the address {address}, which is outside of the range {wanted.range} of the fabric"
    )


def find_announced_twice(pods: typing.Iterable[RdmaPod]) -> dict[str, str]:
    """Tell of each pod whose address another one announces as well who that is, by the pod's name.

    :param pods: of one fabric, that live at the same time
    """
    of: dict[str, list[RdmaPod]] = collections.defaultdict(list)
    for pod in pods:
        if pod.address and not pod.error:
            of[pod.address].append(pod)
    told = {}
    for address, its in of.items():
        for pod in its if len(its) > 1 else ():
            others = [f"the pod {other.name} on {other.node}" for other in its if other is not pod]
            told[pod.name] = f"it announces the address {address}, and so does {folded(others, 2)}"
    return told
