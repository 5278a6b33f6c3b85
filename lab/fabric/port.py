# SPDX-License-Identifier: GPL-3.0-or-later

"""What a simulated port is like, asked of ibsim itself: what firmware and driver of a real HCA would know of their own
port.

It is told even where the link is cut and no MAD comes through. ``python -m lab.fabric.port ADDRESS PORT NODE[@LID]...``
asks (run in the lab's network namespace) and prints hexadecimal data as JSON; :func:`parse_answer` reads them. With a
LID, the counters are those of that port, asked for over the fabric. ibsim's protocol is in its ``include/ibsim.h``:
datagrams, numbers in the machine's byte order.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
import sys
import typing

from dev.steps import StepError

_CONTROL = struct.Struct("=4I64s")
_CLIENT = struct.Struct("=3I32s")
# destination and source LID, destination and source queue pair, status, (padding), length
_PACKET = struct.Struct("=5I4xQ")
_MAGIC = 0xDEADBEEF
_ERROR, _CONNECT, _DISCONNECT, _PORT_INFO = 0, 1, 2, 8
_LIMIT = 3.0
_MAD_SIZE = 256
_MAD_DATA = 64
_PORT_COUNTERS = 0x12

WIDTHS = {1: "1X", 2: "4X", 4: "8X", 8: "12X", 16: "2X"}
# name, data rate of one lane in Gb/s as the kernel tells it (signalling rate up to QDR)
SPEEDS = {1: ("SDR", 2.5), 2: ("DDR", 5.0), 4: ("QDR", 10.0)}
EXTENDED_SPEEDS = {1: ("FDR", 14.0), 2: ("EDR", 25.0), 4: ("HDR", 50.0), 8: ("NDR", 100.0)}

# the kernel's names of the fields of PortCounters (IBA 16.1.3.5): first bit of the data, number of bits
COUNTERS = {
    "symbol_error": (32, 16),
    "link_error_recovery": (48, 8),
    "link_downed": (56, 8),
    "port_rcv_errors": (64, 16),
    "port_rcv_remote_physical_errors": (80, 16),
    "port_rcv_switch_relay_errors": (96, 16),
    "port_xmit_discards": (112, 16),
    "port_xmit_constraint_errors": (128, 8),
    "port_rcv_constraint_errors": (136, 8),
    "local_link_integrity_errors": (152, 4),
    "excessive_buffer_overrun_errors": (156, 4),
    "VL15_dropped": (176, 16),
    "port_xmit_data": (192, 32),
    "port_rcv_data": (224, 32),
    "port_xmit_packets": (256, 32),
    "port_rcv_packets": (288, 32),
    "port_xmit_wait": (320, 32),
}


@dataclasses.dataclass(frozen=True)
class PortState:
    """Port 1 of an HCA.

    :param lid: 0: none yet
    :param state: 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE
    :param phys_state: 2 Polling, 3 Disabled, 5 LinkUp
    :param rate: as sysfs says it, ``400 Gb/sec (4X NDR)``
    :param speed: ``NDR``
    :param width: ``4X``
    :param counters: by the kernel's names; empty when the port did not answer for them
    """

    lid: int
    sm_lid: int
    sm_sl: int
    lmc: int
    state: int
    phys_state: int
    capabilities: int
    rate: str
    speed: str
    width: str
    counters: typing.Mapping[str, int]

    @property
    def active(self) -> bool:
        return self.state == 4


def parse(port_info: bytes, counters: typing.Optional[bytes]) -> PortState:
    """From PortInfo (IBA 14.2.5.6) and PortCounters.

    :raises StepError: they are too short, or have a width or speed that no port has
    """
    if len(port_info) < 64 or (counters is not None and len(counters) < 44):
        raise StepError(
            f"ibsim answered {len(port_info)} bytes of PortInfo, expected 64",
            "'make lab-down', then start the lab again",
        )
    lid, sm_lid, capabilities = struct.unpack_from(">HHI", port_info, 16)
    width, slow, fast = port_info[31], port_info[35] >> 4, port_info[62] >> 4
    try:
        speed, lane = EXTENDED_SPEEDS[fast] if fast else SPEEDS[slow]
        lanes = WIDTHS[width]
    except KeyError as error:
        raise StepError(
            f"ibsim tells of a port with width {width}, speed {slow} and extended speed {fast}",
            "see lab/build/ibsim.patch",
        ) from error
    return PortState(
        lid=lid,
        sm_lid=sm_lid,
        sm_sl=port_info[36] & 0xF,
        lmc=port_info[34] & 0x7,
        state=port_info[32] & 0xF,
        phys_state=port_info[33] >> 4,
        capabilities=capabilities,
        rate=f"{lane * int(lanes[:-1]):g} Gb/sec ({lanes} {speed})",
        speed=speed,
        width=lanes,
        counters=(
            {}
            if counters is None
            else {name: _bits(counters, first, number) for name, (first, number) in COUNTERS.items()}
        ),
    )


def _bits(data: bytes, first: int, number: int) -> int:
    value = int.from_bytes(data, "big")
    return value >> (len(data) * 8 - first - number) & (1 << number) - 1


def parse_answer(text: str, expected: int) -> tuple[PortState, ...]:
    """What this module prints as a program: the states, in the order asked for.

    :param expected: how many were asked for
    :raises StepError: it is no such thing
    """
    try:
        answer: list[typing.Mapping[str, str]] = json.loads(text)
        rows = [
            (bytes.fromhex(row["port_info"]), bytes.fromhex(row["counters"]) if row["counters"] else None)
            for row in answer
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise StepError(f"no port states in '{text[:200]}'", "see the log of ibsim in .lab/log") from error
    if len(rows) != expected:
        raise StepError(f"{len(rows)} port states, expected {expected}", "see the log of ibsim in .lab/log")
    return tuple(parse(port_info, counters) for port_info, counters in rows)


class Client:
    """One client of an ibsim, attached to the first port of a node.

    :raises OSError: no answer within 3 s, or the node is unknown
    """

    def __init__(self, address: str, port: int, node: str) -> None:
        self._control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for end in (self._control, self._data):
            end.settimeout(_LIMIT)
        self._control.connect((address, port))
        self._data.bind(("", 0))
        self._id = 0
        # the number by which ibsim answers: here the port of the data socket
        answer = self._ask(_CONNECT, _CLIENT.pack(self._data.getsockname()[1], 0, 0, node.encode()))
        self._id = _CLIENT.unpack_from(answer)[0]
        self._data.connect((address, port + 1 + self._id))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ask(_DISCONNECT, b"")
        finally:
            self._control.close()
            self._data.close()

    def _ask(self, kind: int, data: bytes) -> bytes:
        self._control.send(_CONTROL.pack(_MAGIC, self._id, kind, len(data), data))
        _magic, _client, answered, _length, answer = _CONTROL.unpack(self._control.recv(_CONTROL.size))
        if answered == _ERROR:
            raise OSError("ibsim refuses: unknown node, or no client more")
        return bytes(answer)

    def port_info(self) -> bytes:
        return self._ask(_PORT_INFO, b"\0")

    def counters(self, lid: int) -> typing.Optional[bytes]:
        """PortCounters of a port, by a MAD to it; None when the MAD or its answer was lost."""
        mad = bytearray(_MAD_SIZE)
        # base version 1, class 4 (performance), class version 1, method Get; the attribute; the port selected
        mad[0:4] = bytes((1, 0x04, 1, 0x01))
        struct.pack_into(">H", mad, 16, _PORT_COUNTERS)
        mad[_MAD_DATA + 1] = 1
        destination = socket.htons(lid)
        self._data.send(_PACKET.pack(destination, 0, socket.htonl(1), socket.htonl(1), 0, _MAD_SIZE) + bytes(mad))
        packet = b""
        while len(packet) < _PACKET.size + _MAD_SIZE:
            # ibsim's empty packets ask whether the client lives
            packet = self._data.recv(_PACKET.size + _MAD_SIZE)
        lost = _PACKET.unpack_from(packet)[4] != 0
        return None if lost else packet[_PACKET.size + _MAD_DATA : _PACKET.size + _MAD_DATA + 64]


def main(arguments: typing.Sequence[str]) -> int:
    address, port, *nodes = arguments
    rows = []
    try:
        for item in nodes:
            node, _sign, other = item.partition("@")
            with Client(address, int(port), node) as client:
                port_info = client.port_info()
                lid = int(other) if other else int.from_bytes(port_info[16:18], "big")
                counters = client.counters(lid) if lid else None
                rows.append({"port_info": port_info.hex(), "counters": counters and counters.hex()})
    except OSError as error:
        print(
            f"no answer from ibsim at {address} port {port} for the nodes {' '.join(nodes)}: {error}", file=sys.stderr
        )
        return 1
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
