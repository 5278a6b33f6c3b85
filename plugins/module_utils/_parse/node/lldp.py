# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse an LLDP frame into the switch port that sent it. Form: IEEE 802.1AB-2016, 8.4 and 8.5. The port's VLAN: IEEE
802.1Q-2018, D.2.1.
"""

from __future__ import annotations

import ipaddress
import struct
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.words import SWITCH_NAME
from ..._model.node.neighbours import SwitchPort

ETHERTYPE = 0x88CC
_HEADER = 14
_END, _CHASSIS, _PORT, _SYSTEM, _ORGANISATION = 0, 1, 2, 5, 127
#: subtypes whose value is a hardware address, and a network address, of a chassis and of a port
_HARDWARE, _NETWORK = {_CHASSIS: 4, _PORT: 3}, {_CHASSIS: 5, _PORT: 4}
#: for bytes that are no UTF-8
_NO_TEXT = "\ufffd"
#: OUI of IEEE 802.1, and its subtype 1
_PORT_VLAN = b"\x00\x80\xc2\x01"


def parse_switch_port(frame: bytes) -> SwitchPort:
    """Return the switch port that sent a frame. The name of the switch is empty, and the VLAN is None, if the frame
    does not contain it.

    :param frame: Ethernet frame, with its header
    :raises ParseError: the frame is not an LLDP frame, is incomplete, or has an invalid name
    """
    if len(frame) < _HEADER or struct.unpack_from("!H", frame, 12)[0] != ETHERTYPE:
        raise _make_parse_error(frame, "an Ethernet frame of type 0x88cc")
    parts: dict[int, bytes] = {}
    vlan: typing.Optional[int] = None
    for kind, value in _find_parts(frame):
        if kind == _ORGANISATION and value[:4] == _PORT_VLAN and len(value) == 6:
            # 0 is: none
            vlan = int.from_bytes(value[4:], "big") or None
        parts.setdefault(kind, value)
    if _CHASSIS not in parts or _PORT not in parts:
        raise _make_parse_error(frame, "a chassis ID and a port ID")
    system = _decode_text(parts.get(_SYSTEM, b""))
    system = SWITCH_NAME.of(system, "LLDP, the name of the switch") if system else ""
    return SwitchPort(
        _parse_lldp_id(frame, _CHASSIS, parts[_CHASSIS]), _parse_lldp_id(frame, _PORT, parts[_PORT]), system, vlan
    )


def _find_parts(frame: bytes) -> typing.Iterator[tuple[int, bytes]]:
    """Yield the type and the value of each TLV before the end TLV. The bytes after the end TLV are padding.

    :raises ParseError: the frame is incomplete
    """
    position = _HEADER
    while True:
        if position + 2 > len(frame):
            raise _make_parse_error(frame, "an end of the TLVs of the frame")
        (head,) = struct.unpack_from("!H", frame, position)
        kind, length = head >> 9, head & 0x1FF
        value = frame[position + 2 : position + 2 + length]
        if len(value) < length:
            raise _make_parse_error(frame, f"{length} bytes in the TLV of type {kind}")
        if kind == _END:
            return
        yield kind, value
        position += 2 + length


def _parse_lldp_id(frame: bytes, kind: int, value: bytes) -> str:
    """Return the ID of a chassis or a port as text: a MAC address, an IP address, or a name. Bytes that are no text
    become hexadecimal digits.

    :param frame: the whole frame, for error messages
    :param kind: type of the TLV
    :param value: subtype and ID
    :raises ParseError: the ID is empty
    """
    subtype, rest = (value[0], value[1:]) if value else (0, b"")
    if not rest:
        raise _make_parse_error(frame, "an ID that is not empty")
    if subtype == _HARDWARE[kind] and len(rest) == 6:
        return rest.hex(":")
    # first the family of the address: 1 is IPv4, 2 IPv6 (IANA address family numbers)
    if subtype == _NETWORK[kind] and (rest[0], len(rest)) in ((1, 5), (2, 17)):
        return str(ipaddress.ip_address(rest[1:]))
    text = _decode_text(rest)
    # of bytes that are no text the digits
    name = rest.hex() if not text or _NO_TEXT in text else text
    return SWITCH_NAME.of(name, f"LLDP, the ID of the {'chassis' if kind == _CHASSIS else 'port'}")


def _decode_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").strip("\x00 ")


def _make_parse_error(frame: bytes, expected: str) -> ParseError:
    return ParseError("LLDP", frame[:64].hex(), expected)
