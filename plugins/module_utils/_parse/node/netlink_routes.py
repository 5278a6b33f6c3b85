# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the messages of rtnetlink about routes. The table ``/proc/net/route`` shows the first next hop of a
route only, so a default route over several NICs (ECMP) is read from here.

[src Linux include/uapi/linux/netlink.h, include/uapi/linux/rtnetlink.h; rtnetlink(7); net/ipv4/fib_trie.c
fib_route_seq_show: ``fib_info_nhc(fi, 0)``]
"""

from __future__ import annotations

import struct
import typing

from ..._model.base.errors import ParseError

#: name of the source, for messages
WHAT = "the routes of the kernel (rtnetlink)"
#: nlmsghdr: length, type, flags, sequence number, port
_HEADER = struct.Struct("=IHHII")
#: rtmsg: family, lengths of destination and source, TOS, table, protocol, scope, type; flags
_ROUTE = struct.Struct("=BBBBBBBBI")
#: rtattr: length, type; rtnexthop: length, flags, hops, index of the interface
_ATTRIBUTE, _NEXT_HOP, _NUMBER = struct.Struct("=HH"), struct.Struct("=HBBi"), struct.Struct("=I")
_ERROR, _DONE, _NEW_ROUTE = 2, 3, 24
#: RTM_F_CLONED, a route that the kernel derived from another one
_CLONED = 0x200
_MAIN, _UNICAST = 254, 1
_INTERFACE, _SEVERAL, _TABLE, _OBJECT = 4, 9, 15, 30


def parse_answer(data: bytes) -> tuple[tuple[int, ...], bool]:
    """Return two values: the indexes of the interfaces of all next hops of default routes of the main table, each once,
    and whether the answer of the kernel ends with these messages.

    :param data: what one read of the socket returned
    :raises ParseError: the messages have an unexpected form, are an error, or name a next hop that they do not contain
    """
    found: dict[int, None] = {}
    while data:
        if len(data) < _HEADER.size:
            raise ParseError(WHAT, data.hex()[:80], "a header of 16 bytes")
        length, kind, _flags, _number, _port = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            raise ParseError(WHAT, f"a length of {length}", f"{_HEADER.size} to {len(data)} bytes")
        body, data = data[_HEADER.size : length], data[_align(length) :]
        if kind == _DONE:
            return tuple(found), True
        if kind == _ERROR:
            raise ParseError(WHAT, body.hex()[:80], "routes, and no error")
        if kind == _NEW_ROUTE:
            found.update(dict.fromkeys(_parse_route(body)))
    return tuple(found), False


def _parse_route(body: bytes) -> typing.Iterator[int]:
    """Yield the indexes of the interfaces of a default route of the main table; nothing for other routes."""
    if len(body) < _ROUTE.size:
        raise ParseError(WHAT, body.hex(), "a route of 12 bytes")
    _family, length, _source, _tos, table, _by, _scope, kind, flags = _ROUTE.unpack_from(body)
    if length or kind != _UNICAST or flags & _CLONED:
        return
    attributes = dict(_split(body[_ROUTE.size :], _ATTRIBUTE))
    if (_number(attributes[_TABLE]) if _TABLE in attributes else table) != _MAIN:
        return
    if _SEVERAL in attributes:
        yield from _parse_next_hops(attributes[_SEVERAL])
    elif _INTERFACE in attributes:
        yield _number(attributes[_INTERFACE])
    elif _OBJECT in attributes:
        raise ParseError(WHAT, "a next hop object", "next hops (sysctl net.ipv4.nexthop_compat_mode=1 shows them)")


def _parse_next_hops(data: bytes) -> typing.Iterator[int]:
    while data:
        if len(data) < _NEXT_HOP.size:
            raise ParseError(WHAT, data.hex()[:80], "a next hop of 8 bytes")
        length, _flags, _hops, index = _NEXT_HOP.unpack_from(data)
        if not _NEXT_HOP.size <= length <= len(data) or index <= 0:
            raise ParseError(WHAT, f"a next hop of {length} bytes with interface {index}", "a next hop")
        yield index
        data = data[_align(length) :]


def _split(data: bytes, header: struct.Struct) -> typing.Iterator[tuple[int, bytes]]:
    """Yield type and content of each attribute."""
    while data:
        if len(data) < header.size:
            raise ParseError(WHAT, data.hex()[:80], "an attribute of 4 bytes")
        length, kind = header.unpack_from(data)
        if not header.size <= length <= len(data):
            raise ParseError(WHAT, f"a length of {length}", f"{header.size} to {len(data)} bytes")
        yield kind, data[header.size : length]
        data = data[_align(length) :]


def _number(content: bytes) -> int:
    if len(content) != _NUMBER.size:
        raise ParseError(WHAT, content.hex()[:80], "a number of 4 bytes")
    return int(_NUMBER.unpack(content)[0])


def _align(length: int) -> int:
    return (length + 3) & ~3
