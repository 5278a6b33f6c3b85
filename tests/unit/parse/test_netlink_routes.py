# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes as the kernel sends them by rtnetlink: bytes of Linux 6.1 for a default route over two NICs, and torn ones."""

from __future__ import annotations

import pathlib
import socket
import struct
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError, RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import uplinks
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import routes
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.sysfs_reader import SysfsReader
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.netlink_routes import parse_answer

MAIN = 254
DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def number(value: int) -> bytes:
    return struct.pack("=I", value)


def hops(*indexes: int) -> bytes:
    gateway = attribute(5, bytes((10, 0, 0, 1)))
    return b"".join(struct.pack("=HBBi", 8 + len(gateway), 0, 0, index) + gateway for index in indexes)


def route(*attributes: bytes, length: int = 0, table: int = MAIN, kind: int = 1, flags: int = 0) -> bytes:
    body = struct.pack("=BBBBBBBBI", 2, length, 0, 0, table, 3, 0, kind, flags) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), 24, 2, 1, 0) + body


def test_each_next_hop_of_a_default_route_is_an_uplink() -> None:
    several = route(attribute(15, number(MAIN)), attribute(9, hops(2, 3)))
    assert parse_answer(several + DONE) == ((2, 3), True)
    one = route(attribute(15, number(MAIN)), attribute(5, bytes(4)), attribute(4, number(7)))
    assert parse_answer(one + several) == ((7, 2, 3), False), "the answer goes on"
    assert parse_answer(one + one + DONE) == ((7,), True)


@pytest.mark.parametrize(
    "other",
    [
        route(attribute(4, number(9)), length=24),
        route(attribute(4, number(9)), table=255),
        # of another table, whose number needs more than a byte
        route(attribute(15, number(1000)), attribute(4, number(9)), table=252),
        # unreachable
        route(attribute(4, number(9)), kind=7),
        # derived from another route
        route(attribute(4, number(9)), flags=0x200),
        # a message of another type
        struct.pack("=IHHII", 16, 16, 0, 1, 0),
    ],
)
def test_other_routes_name_no_uplink(other: bytes) -> None:
    assert parse_answer(other + DONE) == ((), True)


@pytest.mark.parametrize(
    "data",
    [
        b"\x10",
        struct.pack("=IHHII", 15, 24, 0, 1, 0),
        struct.pack("=IHHII", 400, 24, 0, 1, 0),
        struct.pack("=IHHII", 20, 24, 0, 1, 0) + bytes(4),
        struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1),
        route(b"\x01"),
        route(struct.pack("=HH", 3, 4)),
        route(attribute(4, b"\x01")),
        route(attribute(9, b"\x01\x00\x00\x00")),
        route(attribute(9, struct.pack("=HBBi", 7, 0, 0, 2))),
        route(attribute(9, struct.pack("=HBBi", 8, 0, 0, -2))),
        # by number only: next hop objects with nexthop_compat_mode=0
        route(attribute(30, number(12))),
    ],
)
def test_torn_answers_are_refused(data: bytes) -> None:
    with pytest.raises(ParseError, match="rtnetlink"):
        parse_answer(data + (b"" if len(data) < 16 else DONE))


@given(st.binary(max_size=200))
def test_any_bytes_are_routes_or_are_refused(data: bytes) -> None:
    try:
        indexes, _done = parse_answer(data)
    except ParseError:
        return
    assert all(isinstance(index, int) for index in indexes)


def test_kernel_of_this_machine_answers() -> None:
    known = {name for _index, name in socket.if_nameindex()}
    assert set(routes.read_default_interfaces()) <= known


def test_uplinks_are_those_of_the_tables_and_of_the_kernel(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / "class/net" / name / "device").mkdir(parents=True)
    (tmp_path / "route").write_text(
        "Iface\tDestination\tx\nfirst\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    )
    readers, tables = [SysfsReader(str(tmp_path))], SysfsReader(str(tmp_path))
    answers: list[typing.Any] = [("first", "second"), RdmaError("no answer")]

    def ask() -> tuple[str, ...]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return typing.cast(tuple[str, ...], answer)

    monkeypatch.setattr(uplinks, "read_default_interfaces", ask)
    assert uplinks.read_uplinks(tables, readers) == ("first",), "tables of another namespace"
    monkeypatch.setattr(uplinks, "OWN_TABLES", str(tmp_path))
    assert uplinks.read_uplinks(tables, readers) == ("first", "second")
    assert uplinks.read_uplinks(tables, readers) is None and "no answer" in tables.errors[-1]


def test_kernel_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: typing.Any) -> typing.Any:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(RdmaError, match="Operation not permitted"):
        routes.read_default_interfaces()
