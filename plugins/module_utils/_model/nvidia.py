# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Objects of NVIDIA's network operator, and how far they are."""

from __future__ import annotations

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class NicPolicy:
    """A NicClusterPolicy (mellanox.com/v1alpha1).

    :ivar state: ignore, notReady, ready or error; empty before the first report
    :ivar ours: the collection made it
    :ivar configs: texts for the device plugins, by the part of spec that holds them
    :ivar owners: field manager of each of these parts, where the API server names another one than the collection
    """

    name: str
    state: str = ""
    ours: bool = False
    configs: typing.Dict[str, str] = dataclasses.field(default_factory=dict)
    owners: typing.Dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Reported:
    """An object whose own status says how far it is: NicClusterPolicy, MacvlanNetwork, IPoIBNetwork, HostDeviceNetwork, or a pool of nv-ipam.

    :ivar state: status.state; empty before the first report
    :ivar reason: status.reason
    :ivar parts: of status.appliedStates, those that are not ready: name and state, with the message where there is one
    :ivar nodes: of a pool, those that have a share
    """

    kind: str
    name: str
    state: str = ""
    reason: str = ""
    parts: typing.Tuple[str, ...] = ()
    nodes: typing.Tuple[str, ...] = ()
