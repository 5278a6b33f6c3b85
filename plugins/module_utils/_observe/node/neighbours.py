# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the neighbors of the Ethernet NICs of a node: the switch ports that send LLDP, and the neighbor table of the
kernel. Nothing is sent.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import time
import typing

from ..._model.base.errors import RdmaError
from ..._model.node.hca import Netdev, NodeHcas
from ..._model.node.neighbours import MOST_ADDRESSES, MOST_PORTS, NetdevNeighbours, NodeNeighbours, SwitchPort
from ..._parse.node import lldp
from ..._parse.node.neighbours import parse_neighbours
from ..infiniband.uplinks import read_uplinks
from ..process import command
from . import sysfs_reader

#: switches speak every 30 s (IEEE 802.1AB-2016, 9.2.5.7 msgTxInterval)
LISTEN_SECONDS = 32.0
_IP_SECONDS = 30.0
#: of packet(7), which the module socket does not name
_SOL_PACKET, _ADD_MEMBERSHIP, _MULTICAST = 263, 1, 0
#: where LLDP is sent to: the nearest bridge, the nearest that is no relay, the nearest that serves customers (IEEE
#: 802.1AB-2016, 7.1)
_GROUPS = tuple(bytes.fromhex(f"0180c20000{last}") for last in ("0e", "03", "00"))
_LARGEST_FRAME = 65536
#: of one interface while it listens: MOST_PORTS switch ports that send at their fastest, once a second (IEEE
#: 802.1AB-2016, 9.2.5.7), with frames of 1,500 bytes
MOST_FRAMES, MOST_BYTES = 4096, 6 << 20
#: errors of one interface: each frame may be wrong in its own way
_MOST_ERRORS = 8


def read_neighbours(
    roots: typing.Sequence[str],
    node: NodeHcas,
    seconds: float = LISTEN_SECONDS,
    routes: str = "/proc/net",
    beside_infiniband: bool = False,
) -> NodeNeighbours:
    """Return the neighbors of the Ethernet NICs of a node, from LLDP frames and the kernel's neighbor table. An error
    is stored in ``errors`` of the result.

    By default, the NICs of a node with InfiniBand are left out, because subnet managers report the fabrics of that
    node.

    :param roots: folders in which sysfs is mounted, usually only /sys
    :param node: HCAs of the node
    :param seconds: duration of listening in seconds. A NIC that has received a frame listens on, because any device on
        its link can send the first one
    :param routes: folder with the routing tables of the kernel
    :param beside_infiniband: whether the Ethernet NICs of a node with InfiniBand are included
    """
    errors: list[str] = []
    netdevs = _find_ethernet(node, beside_infiniband)
    known: dict[str, tuple[str, ...]] = {}
    heard: dict[str, tuple[SwitchPort, ...]] = {}
    uplinks: tuple[str, ...] = ()
    if netdevs:
        heard = _listen_for_lldp([netdev.name for netdev in netdevs], seconds, errors)
        try:
            known = _limit_neighbours(_read_neighbours(), errors)
        except RdmaError as error:
            errors.append(f"neighbours: {error}")
        tables, readers = sysfs_reader.SysfsReader(routes), [sysfs_reader.SysfsReader(root) for root in roots]
        uplinks = read_uplinks(tables, readers) or ()
        errors += [error for one in (tables, *readers) for error in one.errors]
    found = [
        NetdevNeighbours(item.name, item.hardware_address, heard.get(item.name, ()), known.get(item.name, ()))
        for item in netdevs
    ]
    return NodeNeighbours(tuple(found), uplinks, tuple(errors))


def _find_ethernet(node: NodeHcas, beside_infiniband: bool) -> list[Netdev]:
    """Return the network interfaces of PFs that have an RDMA device and an active Ethernet port. Return an empty list
    for a node with InfiniBand, unless ``beside_infiniband`` is set.
    """
    functions = [hca for hca in node.hcas if not hca.is_virtual and hca.rdma_device]
    infiniband = [hca for hca in functions if any(port.link_layer == "InfiniBand" for port in hca.ports)]
    if infiniband and not beside_infiniband:
        return []
    rest = [hca for hca in functions if hca not in infiniband]
    return [netdev for hca in rest if any(port.state == "ACTIVE" for port in hca.ports) for netdev in hca.netdevs]


def _read_neighbours() -> dict[str, tuple[str, ...]]:
    finished = command.run(
        [command.require_tool("ip", "iproute2 (Debian) or iproute (RHEL)"), "-json", "neigh", "show"], _IP_SECONDS
    )
    if finished.failure:
        raise RdmaError(finished.failure)
    return parse_neighbours(finished.stdout)


def _limit_neighbours(known: typing.Mapping[str, tuple[str, ...]], errors: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the first neighbors of each interface, up to MOST_ADDRESSES. An interface with more is reported in
    ``errors``.

    :param known: hardware addresses of the neighbors, by interface
    :param errors: list to which messages are appended
    """
    many = {name: len(addresses) for name, addresses in known.items() if len(addresses) > MOST_ADDRESSES}
    errors += [
        f"neighbors: {name} has {count} hardware addresses, of which the first {MOST_ADDRESSES} are used"
        for name, count in many.items()
    ]
    return {name: addresses[:MOST_ADDRESSES] for name, addresses in known.items()}


class _Heard:
    """The LLDP frames that one interface has received.

    :ivar ports: switch ports that sent the frames, in the order of arrival; the values are None
    :ivar frames: number of the frames
    :ivar size: bytes of the frames
    """

    def __init__(self, name: str) -> None:
        self._begin = f"LLDP on {name}: "
        self.ports: dict[SwitchPort, None] = {}
        self.frames = 0
        self.size = 0

    def add_error(self, error: typing.Union[Exception, str], errors: list[str]) -> None:
        """Append an error of the interface to ``errors``, unless the same error is in the list, or ``_MOST_ERRORS`` of
        this interface.

        :param errors: errors of all interfaces
        """
        text = f"{self._begin}{error}"
        if text not in errors and sum(other.startswith(self._begin) for other in errors) < _MOST_ERRORS:
            errors.append(text)

    def discard(self, errors: list[str]) -> None:
        """Discard the switch ports and the errors of the interface, and append one error instead. Call this if the
        interface receives more frames than switches send: the frame of its switch may be one that was not read.

        :param errors: errors of all interfaces
        """
        self.ports = {}
        errors[:] = [error for error in errors if not error.startswith(self._begin)]
        errors.append(
            f"{self._begin}more than {MOST_FRAMES} frames or {MOST_BYTES >> 20} MiB arrived, so no frame is trusted"
        )


def _listen_for_lldp(
    names: typing.Sequence[str], seconds: float, errors: list[str]
) -> dict[str, tuple[SwitchPort, ...]]:
    """Return the switch ports whose LLDP frames each interface received during a period, by name of the interface, in
    the order of arrival. An interface on which listening failed is left out. An interface with several switch ports
    must not be assigned to the first of them, because any device on its link can send LLDP frames.

    :param names: names of the interfaces that listen
    :param seconds: duration of listening in seconds
    :param errors: list to which errors of the interfaces are appended, as text
    """
    heard: dict[str, _Heard] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as sockets:
        for name in names:
            try:
                selector.register(sockets.enter_context(_open_lldp_socket(name)), selectors.EVENT_READ, name)
                heard[name] = _Heard(name)
            except OSError as error:
                errors.append(f"LLDP on {name}: {error.strerror or error}")
        end = time.monotonic() + seconds
        while selector.get_map() and time.monotonic() < end:
            for key, _events in selector.select(max(0.0, end - time.monotonic())):
                one = heard[key.data]
                _read_lldp_frame(typing.cast(socket.socket, key.fileobj), one, errors)
                if one.frames > MOST_FRAMES or one.size > MOST_BYTES:
                    one.discard(errors)
                    selector.unregister(key.fileobj)
    return {name: tuple(one.ports) for name, one in heard.items()}


def _read_lldp_frame(listener: socket.socket, heard: _Heard, errors: list[str]) -> None:
    heard.frames += 1
    try:
        frame, source = listener.recvfrom(_LARGEST_FRAME)
        heard.size += len(frame)
        # what this node sends itself is seen as well
        if source[2] != socket.PACKET_OUTGOING:
            port = lldp.parse_switch_port(frame)
            if port not in heard.ports and len(heard.ports) >= MOST_PORTS:
                raise RdmaError(f"more than {MOST_PORTS} switch ports send LLDP there; the first {MOST_PORTS} are used")
            heard.ports[port] = None
    except (OSError, RdmaError) as error:
        heard.add_error(error, errors)


def _open_lldp_socket(name: str) -> socket.socket:
    """Return a socket that receives the LLDP frames of one interface, and make its NIC accept them.

    :raises OSError: the interface does not exist, or the user lacks the right (CAP_NET_RAW)
    """
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        for group in _GROUPS:
            # struct packet_mreq
            listener.setsockopt(
                _SOL_PACKET,
                _ADD_MEMBERSHIP,
                struct.pack("iHH8s", socket.if_nametoindex(name), _MULTICAST, len(group), group),
            )
        listener.bind((name, lldp.ETHERTYPE))
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
