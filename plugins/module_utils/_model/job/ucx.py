# SPDX-License-Identifier: GPL-3.0-or-later

"""The endpoints of UCX in the log of a job. NIXL, MPI and inference servers use the network through UCX."""

from __future__ import annotations

import dataclasses
import re
import typing

from ..boundary.form import Bound, Form, make_pattern
from ..boundary.numbers import Counter
from ..boundary.words import Host

_LANE = re.compile(r"[a-z0-9_]{1,32}/[A-Za-z0-9_.:-]{1,64}", re.ASCII)
LANE = Form("a transport of UCX and its device", "rc_mlx5/mlx5_0:1", 97, make_pattern(_LANE))
Lane = typing.Annotated[str, LANE]
#: of an endpoint; UCP_MAX_LANES is 64 [src openucx/ucx src/ucp/core/ucp_types.h]
MOST_LANES = 64

#: transports of one machine, and between its memories [src openucx/ucx src/uct: sm, cuda, rocm, ze, base]
_LOCAL = ("self", "sysv", "posix", "cma", "knem", "xpmem", "mm", "sm", "cuda", "rocm", "gdr_copy", "ze")
#: TCP, also as older releases name it
_TCP = ("tcp", "sockcm", "tcpcm")
#: between GPUs, which on systems with NVLink between machines reaches those of other ones
#: [src openucx/ucx src/uct/cuda/cuda_ipc]
_NVLINK = ("cuda_ipc",)
#: unreliable datagrams, in packets of the MTU [src openucx/ucx src/uct/ib: ud_verbs, ud_mlx5; older ones ud, ud_x]
_DATAGRAMS = ("ud_verbs", "ud_mlx5", "ud", "ud_x")


@dataclasses.dataclass(frozen=True)
class UcxEndpoint:
    """Connections of a host that use the same transports.

    :ivar host: host that wrote the line
    :ivar scope: location of the peer; empty if not logged
    :ivar lanes: transports and their devices
    :ivar count: number of lines
    """

    host: Host
    scope: typing.Literal["self", "intra-node", "inter-node", ""]
    lanes: typing.Annotated[tuple[Lane, ...], Bound("transports of an endpoint", MOST_LANES)]
    count: Counter = 1

    @property
    def over_network(self) -> bool:
        """Return whether the peer is on another host, according to its scope or else its transports."""
        return self.scope == "inter-node" or (not self.scope and bool(self.rdma or self.tcp))

    @property
    def tcp(self) -> tuple[str, ...]:
        """Return the lanes (``transport/device``) that use TCP."""
        return tuple(lane for lane in self.lanes if lane.partition("/")[0] in _TCP)

    @property
    def rdma(self) -> tuple[str, ...]:
        """Return the lanes (``transport/device``) that use RDMA."""
        return tuple(lane for lane in self.lanes if lane not in self.tcp and not lane.startswith(_LOCAL))

    @property
    def nvlink(self) -> tuple[str, ...]:
        """Return the lanes that connect GPUs directly. Between hosts, such a lane is NVLink."""
        return tuple(lane for lane in self.lanes if lane.partition("/")[0] in _NVLINK)

    @property
    def sends_datagrams(self) -> bool:
        """Return whether all RDMA lanes use unreliable datagrams (UD). Return False without an RDMA lane."""
        return bool(self.rdma) and all(lane.partition("/")[0] in _DATAGRAMS for lane in self.rdma)

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the names of the RDMA devices that the lanes use, without port numbers."""
        return tuple(dict.fromkeys(lane.partition("/")[2].partition(":")[0] for lane in self.rdma))
