# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse single lines of a log: versions, routes and devices."""

from __future__ import annotations

import typing

from ..._model.nccl import (
    NcclDevice,
)
from .nccl_log_patterns import DEVICE, MERGED, NET, NETDEV, P2P, PART, RCCL_VERSION, SHM, VERSION
from .nccl_log_state import RankState, RouteOfRank


def match_ends(ranks: typing.Mapping[int, RankState]) -> None:
    """Both ends of a connection over the network write a line: of which there is but one, the other end's channel is
    not known."""
    for number, rank in ranks.items():
        for mine, theirs in ((rank.sent, "received"), (rank.received, "sent")):
            for link in mine:
                other = ranks.get(link & 0xFFFFFFFF)
                if other is not None and (link >> 32 << 32 | number) not in getattr(other, theirs):
                    other.unanswered.add(link >> 32)


def parse_version(text: str) -> str:
    """Return the version that a line is about, with the name RCCL where it is RCCL's; empty of any other line."""
    found = VERSION.fullmatch(text)
    if found:
        return found[1]
    found = RCCL_VERSION.fullmatch(text)
    return f"RCCL {found[1]}" if found else ""


def parse_route(tail: str) -> typing.Optional[RouteOfRank]:
    net = NET.fullmatch(tail)
    if net:
        transport: typing.Literal["NET", "COLLNET"] = "NET" if net[1] == "NET" else "COLLNET"
        return RouteOfRank(transport, net[2], int(net[3]), net[5] is not None, int(net[4]) if net[4] else None)
    p2p = P2P.fullmatch(tail)
    if p2p:
        return RouteOfRank("P2P", p2p[1])
    shm = SHM.fullmatch(tail)
    return RouteOfRank("SHM", shm[1] or "direct") if shm else None


def parse_devices(text: str) -> typing.Iterator[NcclDevice]:
    """Behind the word Using: ``[0]mlx5_0:1/IB``, of NCCL 2.21 to 2.23 also merged ones, of Socket
    ``[0]eth0:10.0.0.1<0>``."""
    for found in DEVICE.finditer(text):
        rail = int(found[4]) if found[4] else None
        yield NcclDevice(int(found[1]), found[2], int(found[3]), found[5], rail)
    for found in MERGED.finditer(text):
        parts = PART.findall(found[2])
        yield NcclDevice(int(found[1]), "+".join(name for name, _link in parts), None, parts[0][1] if parts else "")
    for found in NETDEV.finditer(text):
        yield NcclDevice(int(found[1]), found[2])
