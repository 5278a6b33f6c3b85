# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks the kernel for the interfaces of its default routes, with all next hops of each."""

from __future__ import annotations

import socket
import struct
import typing

from ..._model.base.errors import ParseError, RdmaError
from ..._parse.limits import MIB
from ..._parse.node.netlink_routes import WHAT, parse_answer

#: seconds without an answer, bytes of one read, and bytes of all: a node that speaks BGP may have all routes of the
#: internet, 100 bytes each
_SECONDS, _ONE_READ, _MOST = 10.0, 1 * MIB, 256 * MIB
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
#: nlmsghdr with RTM_GETROUTE, NLM_F_REQUEST and NLM_F_DUMP, then rtmsg with the family [rtnetlink(7)]
_REQUEST = struct.Struct("=IHHIIB11x")
_GET_ROUTE, _ASK = 26, 0x301


def read_default_interfaces() -> tuple[str, ...]:
    """Return the interfaces of all next hops of the default routes in the main table of this network namespace, sorted.
    An interface that disappears meanwhile is left out.

    :raises RdmaError: the kernel does not answer, or its answer has an unexpected form
    """
    found: set[str] = set()
    try:
        for number, family in enumerate(_FAMILIES, 1):
            for index in _read_indexes(family, number):
                try:
                    found.add(socket.if_indextoname(index))
                except OSError:
                    continue
    except (OSError, ParseError) as error:
        raise RdmaError(
            f"{WHAT} were not read: {error}", "Run ip route show default on the node as root, then rerun"
        ) from error
    return tuple(sorted(found))


def _read_indexes(family: int, number: int) -> typing.Iterator[int]:
    left, done = _MOST, False
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.sendto(_REQUEST.pack(_REQUEST.size, _GET_ROUTE, _ASK, number, 0, family), (0, 0))
        while not done:
            data = kernel.recv(_ONE_READ)
            left -= len(data)
            if left < 0:
                raise ParseError(WHAT, f"more than {_MOST // MIB} MiB", "fewer routes")
            indexes, done = parse_answer(data)
            yield from indexes
