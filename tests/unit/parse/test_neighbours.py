# SPDX-License-Identifier: GPL-3.0-or-later

"""What tells to which network an Ethernet NIC is cabled: frames of LLDP, neighbours, routes."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.neighbours import SwitchPort
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.lldp import parse_switch_port
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.neighbours import (
    parse_default_routes,
    parse_default_routes_6,
    parse_neighbours,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "lldp"
HEADER = bytes.fromhex("0180c200000e9c0591000001" + "88cc")
ROUTES = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"


def captured(name: str) -> bytes:
    return bytes.fromhex((FIXTURES / f"{name}.hex").read_text())


def part(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def frame(*parts: bytes) -> bytes:
    return b"".join((HEADER, *parts, part(0, b"")))


@pytest.mark.parametrize(
    ("name", "port"),
    [
        ("summit300-48", SwitchPort("00:01:30:f9:ad:a0", "1/1", "Summit300-48", 488)),
        ("lldpd-1.0.16", SwitchPort("9c:05:91:00:00:01", "9c:05:91:00:00:01", "leaf1", None)),
    ],
)
def test_captured_frames(name: str, port: SwitchPort) -> None:
    assert parse_switch_port(captured(name)) == port
    # a frame is filled to 60 bytes
    assert parse_switch_port(captured(name) + bytes(20)) == port


@pytest.mark.parametrize(
    ("chassis", "text"),
    [
        (b"\x07leaf1", "leaf1"),
        (b"\x05\x01\x0a\x00\x00\x01", "10.0.0.1"),
        (b"\x05\x02\xfd" + bytes(14) + b"\x01", "fd00::1"),
        # what is said to be an address, and is none
        (b"\x04abc", "abc"),
        (b"\x07\x00\x00", "0000"),
        # what is no UTF-8
        (b"\x07\xffleaf", "ff6c656166"),
        (b"\x07L\xc3\xb6we & Co (B\xc3\xbcro)", "L\xf6we & Co (B\xfcro)"),
    ],
)
def test_ids_in_other_forms(chassis: bytes, text: str) -> None:
    assert parse_switch_port(frame(part(1, chassis), part(2, b"\x05swp3"))) == SwitchPort(text, "swp3")


def test_the_vlan_of_untagged_frames_may_be_none() -> None:
    parts = (part(1, b"\x07a"), part(2, b"\x07b"))
    assert parse_switch_port(frame(*parts, part(127, b"\x00\x80\xc2\x01\x00\x00"))).vlan is None
    assert parse_switch_port(frame(*parts, part(127, b"\x00\x80\xc2\x01\x00\x64"))).vlan == 100
    assert parse_switch_port(frame(*parts, part(127, b"\x00\x80\xc2\x03\x00\x64"))).vlan is None


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (b"", "type 0x88cc"),
        (HEADER[:12] + b"\x08\x00" + bytes(50), "type 0x88cc"),
        (frame(part(1, b"\x07a")), "a port ID"),
        (frame(part(1, b"\x07"), part(2, b"\x07b")), "not empty"),
        (frame(part(1, b"\x07a"), part(2, b"\x07b"))[:-2], "an end"),
        (HEADER + (1 << 9 | 200).to_bytes(2, "big") + b"\x07a", "200 bytes"),
    ],
)
def test_a_broken_frame_is_said(broken: bytes, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        parse_switch_port(broken)


@pytest.mark.parametrize(
    "name", [b"\x1b[2Jleaf", b"{{ 1 }}", b"$(id)", b"leaf\n1", "leaf\u202e1".encode(), b"-leaf", b"x" * 256]
)
def test_a_name_that_no_switch_has_is_refused_by_what_it_is_of(name: bytes) -> None:
    fine = part(1, b"\x07leaf-1"), part(2, b"\x05swp3"), part(5, b"leaf-1")
    assert parse_switch_port(frame(*fine)) == SwitchPort("leaf-1", "swp3", "leaf-1")
    wrong = {
        "the ID of the chassis": part(1, b"\x07" + name),
        "the ID of the port": part(2, b"\x05" + name),
        "the name of the switch": part(5, name),
    }
    for number, (what, broken) in enumerate(wrong.items()):
        with pytest.raises(
            ParseError,
            match=f"^LLDP, {what}: .* is not the name of a switch: letters, digits and common punctuation, up to 255",
        ) as error:
            parse_switch_port(frame(*fine[:number], broken, *fine[number + 1 :]))
        assert str(error.value).isprintable() and len(str(error.value)) < 400


@given(st.sampled_from(["summit300-48", "lldpd-1.0.16"]), st.integers(0, 300))
def test_a_frame_that_is_cut_says_so(name: str, length: int) -> None:
    whole = captured(name)
    cut = whole[:length]
    if len(cut) >= len(whole):
        assert parse_switch_port(cut) == parse_switch_port(whole)
    else:
        with pytest.raises(ParseError):
            parse_switch_port(cut)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_port_or_an_error(body: bytes) -> None:
    try:
        port = parse_switch_port(HEADER + body)
    except ParseError:
        return
    assert port.chassis and port.port and (port.vlan is None or 0 < port.vlan < 65536)


def test_neighbours_that_were_seen() -> None:
    entries: list[dict[str, typing.Any]] = [
        {"dst": "192.0.2.1", "dev": "ens1", "lladdr": "B8:3F:D2:00:00:10", "state": ["STALE"]},
        {"dst": "fe80::1", "dev": "ens1", "lladdr": "b8:3f:d2:00:00:10", "router": None, "state": ["REACHABLE"]},
        {"dst": "192.0.2.2", "dev": "ens1", "lladdr": "b8:3f:d2:00:00:0f", "state": ["DELAY"]},
        {"dst": "fd00::1", "dev": "ens1", "state": ["FAILED"]},
        # set by a network plugin
        {"dst": "10.244.1.0", "dev": "flannel.1", "lladdr": "ce:47:82:f5:0e:fb", "state": ["PERMANENT"]},
        {
            "dst": "10.0.0.2",
            "dev": "ibp60s0",
            "lladdr": "00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:e0:00:01",
            "state": ["STALE"],
        },
    ]
    assert parse_neighbours(json.dumps(entries)) == {"ens1": ("b8:3f:d2:00:00:0f", "b8:3f:d2:00:00:10")}
    assert parse_neighbours("[]") == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"dev": 3}]',
        '[{"lladdr": "b8:3f:d2:00:00:10"}]',
        '[{"dev": "a", "lladdr": 7}]',
        "[" * 100_000,
    ],
)
def test_other_forms_of_neighbours_are_said(text: str) -> None:
    with pytest.raises(ParseError):
        parse_neighbours(text)


def test_default_routes() -> None:
    lines = (
        "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    )
    assert parse_default_routes(ROUTES + lines) == ("eth0",)
    assert parse_default_routes(ROUTES) == ()
    for broken in ("", "eth0 00000000", ROUTES + "eth0\t00000000\n"):
        with pytest.raises(ParseError):
            parse_default_routes(broken)


ROUTES_6 = """\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000003 00000000 80200001       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
"""  # noqa: E501


def test_default_routes_of_ipv6() -> None:
    """As a host shows them: the route on lo refuses what has no other."""
    assert parse_default_routes_6(ROUTES_6) == ("eth0",)
    assert parse_default_routes_6("") == parse_default_routes_6(ROUTES_6.partition("\n")[0]) == ()
    for broken in (
        "x",
        ROUTES_6.replace("00000003     eth0", "0000000g     eth0"),
        ROUTES_6[:380],
        ROUTES_6.replace(" eth0", " e/1"),
    ):
        with pytest.raises(ParseError):
            parse_default_routes_6(broken)
