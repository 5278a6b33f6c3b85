# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the lines of NCCL's log that name the transport of a channel, which is a connection between two ranks.

The transport is the text after the word ``via``. RCCL appends a communicator to it.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ...._model.job.nccl import MOST_CHANNELS

_CHANNEL = re.compile(
    r"Channel ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7})\[[0-9a-f]{1,16}\] -> ([0-9]{1,7})\[[0-9a-f]{1,16}\]"
    r" (?:\[(send|receive)\] )?via (.{1,200})"
)
#: what RCCL writes behind the way of a channel, after " comm 0x"
#: the text that RCCL writes behind the transport of a channel, after " comm 0x"
_RCCL_CHANNEL = re.compile(r"[0-9a-f]{1,16} nRanks [0-9]{1,7}")
_COLLNET = re.compile(
    r"Coll(?:Net)? ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7}) \[(send|receive)\] via (COLLNET/.{1,200})"
)
_NET = re.compile(
    r"(NET|COLLNET)/([^/]{1,64})/([0-9]{1,4})(?:\(([0-9]{1,7})\))?(/GDRDMA)?(?:\(PCI\))?"
    # 2.31 and later say how received data is flushed
    r"(?:/flush=\w{1,32})?(?:/Shared)?(?:/flush=\w{1,32})?"
)
_P2P = re.compile(r"P2P/(direct pointer|IPC|CUMEM|MNNVL|indirect)(?:/[0-9]+\[[0-9a-f]+\])?(?:/read)?(?:/CE)?")
_SHM = re.compile(r"SHM/(direct|CE)(?:/(?:direct|CE))?|direct shared memory")
_SIDES: dict[typing.Optional[str], typing.Literal["send", "receive", ""]] = {
    "send": "send",
    "receive": "receive",
    None: "",
}
#: different texts behind a channel that are remembered; hosts of a job write few
_MOST_KINDS = 1000


class Transport(typing.NamedTuple):
    """The transport of a channel, as NCCL writes it after the word ``via``.

    :ivar transport: ``NET`` for a network, ``COLLNET`` for in-network reductions, ``P2P`` or ``SHM`` within a host
    :ivar via: name of the network plugin (``IB``), or the kind of memory that P2P and SHM use
    :ivar device: index of the network device in the list of the process; None for P2P and SHM
    :ivar gpu_direct: whether the channel uses GPUDirect RDMA; None for P2P and SHM
    :ivar proxy: rank whose proxy moves the data; None if the line names no proxy
    """

    transport: typing.Literal["NET", "P2P", "SHM", "COLLNET"]
    via: str
    device: typing.Optional[int] = None
    gpu_direct: typing.Optional[bool] = None
    proxy: typing.Optional[int] = None


@dataclasses.dataclass(frozen=True, eq=False)
class ConnectionKind:
    """The transport, direction and connection index of a channel. ChannelReader returns the same object for equal
    kinds. Kinds are therefore compared by identity, which is fast.

    :ivar transport: transport of the channel
    :ivar direction: send or receive, as seen by the rank that wrote the line; empty if the line has no direction
    :ivar connection: index of the connection; None if the line has no index
    """

    transport: Transport
    direction: typing.Literal["send", "receive", ""]
    connection: typing.Optional[int]


class ChannelLine(typing.NamedTuple):
    """A line of NCCL's log about one channel.

    :ivar channel: number of the channel
    :ivar rank: rank that wrote the line
    :ivar peer: rank at the other end of the channel
    :ivar kind: transport, direction and index of the connection
    :ivar incoming: whether ``rank`` receives from ``peer``
    """

    channel: int
    rank: int
    peer: int
    kind: ConnectionKind
    incoming: bool


class ChannelReader:
    """A parser for the lines about channels in NCCL's log. Equal kinds of connection are returned as the same object,
    so that they can be compared by identity.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[typing.Optional[str], ...], typing.Optional[ConnectionKind]] = {}

    def parse_channel(self, message: str) -> typing.Optional[ChannelLine]:
        """Return a point-to-point channel from its line in the log. Return None for any other line, and for a line of a
        form that NCCL does not write.

        :param message: text of the line after the head that NCCL writes
        """
        found = _CHANNEL.fullmatch(message)
        if found is None:
            return None
        number, index, source, target, direction, tail = found.groups()
        tail, communicator, rest = tail.partition(" comm 0x")
        if communicator and not _RCCL_CHANNEL.fullmatch(rest):
            return None
        kind = self._find_kind(index, direction, tail)
        if kind is None or int(number) >= MOST_CHANNELS:
            return None
        if direction == "receive":
            source, target = target, source
        return ChannelLine(int(number), int(source), int(target), kind, direction == "receive")

    def parse_collnet(self, message: str) -> typing.Optional[ChannelLine]:
        """Return a CollNet channel from its line in the log. The peer of such a channel is the rank itself. Return None
        for any other line, and for a line of a form that NCCL does not write.

        :param message: text of the line after the head that NCCL writes
        """
        found = _COLLNET.fullmatch(message)
        kind = self._find_kind(found[2], found[4], found[5]) if found else None
        if found is None or kind is None or int(found[1]) >= MOST_CHANNELS:
            return None
        return ChannelLine(int(found[1]), int(found[3]), int(found[3]), kind, False)

    def _find_kind(
        self, index: typing.Optional[str], direction: typing.Optional[str], tail: str
    ) -> typing.Optional[ConnectionKind]:
        """Return the kind of a connection. Return None if the transport is unknown, or if NCCL does not write this
        combination of direction and transport. NCCL writes a direction only for a network transport. It writes lines
        about P2P and SHM only at the sender.

        :param index: index of the connection as text; None if the line has none
        :param direction: direction as NCCL writes it; None if the line has none
        :param tail: text after the word ``via``
        """
        key = index, direction, tail
        if key not in self._kinds:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            transport = _parse_transport(tail)
            fits = transport is not None and (direction is None) == (transport.transport in ("P2P", "SHM"))
            self._kinds[key] = (
                ConnectionKind(transport, _SIDES[direction], None if index is None else int(index))
                if transport and fits
                else None
            )
        return self._kinds[key]


def _parse_transport(tail: str) -> typing.Optional[Transport]:
    """Return the transport of a channel. Return None if the text has another form.

    :param tail: end of the line, from the transport on
    """
    net = _NET.fullmatch(tail)
    if net:
        transport: typing.Literal["NET", "COLLNET"] = "NET" if net[1] == "NET" else "COLLNET"
        return Transport(transport, net[2], int(net[3]), net[5] is not None, int(net[4]) if net[4] else None)
    p2p = _P2P.fullmatch(tail)
    if p2p:
        return Transport("P2P", p2p[1])
    shm = _SHM.fullmatch(tail)
    return Transport("SHM", shm[1] or "direct") if shm else None
