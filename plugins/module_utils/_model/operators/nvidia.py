# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of NVIDIA's network operator, and their status."""

from __future__ import annotations

import dataclasses

from ..boundary.kubernetes import ObjectName
from ..boundary.words import Word


@dataclasses.dataclass(frozen=True)
class NicPolicy:
    """A NicClusterPolicy (mellanox.com/v1alpha1), which configures NVIDIA's network operator.

    :ivar state: ignore, notReady, ready or error; empty before the first report
    :ivar ours: whether the collection created it
    :ivar configs: configuration texts for the device plugins, by the key of ``spec`` that contains them
    :ivar owners: field manager of each of these keys, if it is not the collection
    """

    name: ObjectName
    state: Word = ""
    ours: bool = False
    configs: dict[str, str] = dataclasses.field(default_factory=dict)
    owners: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Reported:
    """The status of an object that reports its own progress: NicClusterPolicy, MacvlanNetwork, IPoIBNetwork,
    HostDeviceNetwork, or a pool of nv-ipam.

    :ivar kind: kind of the object
    :ivar name: name of the object, with its namespace if it has one
    :ivar state: status.state; empty before the first report
    :ivar reason: status.reason
    :ivar parts: components of the operator that are not ready (status.appliedStates): name and state, with the message
        if there is one
    :ivar nodes: names of the nodes that have a share of a pool of nv-ipam; empty for other kinds
    """

    kind: Word
    name: str
    state: Word = ""
    reason: str = ""
    parts: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
