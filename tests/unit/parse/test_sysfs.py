# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of sysfs files: the forms of old and new kernels, and nothing made up from any other."""

from __future__ import annotations

import contextlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node import sysfs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400 Gb/sec (4X NDR)", (400.0, 4, "NDR")),
        ("200 Gb/sec (2X NDR)", (200.0, 2, "NDR")),
        ("800 Gb/sec (4X XDR)", (800.0, 4, "XDR")),
        ("40 Gb/sec (4X FDR10)", (40.0, 4, "FDR10")),
        ("2.5 Gb/sec (1X SDR)", (2.5, 1, "SDR")),
        # a 4.x kernel
        ("10 Gb/sec (4X)", (10.0, 4, None)),
        # ibsim
        ("104 Gb/sec (4X NDR)", (104.0, 4, "NDR")),
    ],
)
def test_rate(text: str, expected: tuple[typing.Any, ...]) -> None:
    assert sysfs.parse_rate(text) == expected


@pytest.mark.parametrize(
    "text", ["4: ACTIVE", "1: DOWN", "5: LinkUp", "3: Disabled", "6: LinkErrorRecovery", "7: Phy Test"]
)
def test_enumeration(text: str) -> None:
    assert sysfs.parse_enumeration_name(text) == text.partition(": ")[2]


def test_a_state_that_the_kernel_does_not_know_is_unread() -> None:
    with pytest.raises(ParseError):
        sysfs.parse_enumeration_name("9: <unknown>")


def test_guids() -> None:
    assert sysfs.parse_guid("b83f:d203:00e0:0000") == "0xb83fd20300e00000"
    assert sysfs.port_guid_of_gid("fe80:0000:0000:0000:b83f:d203:00e0:0001") == "0xb83fd20300e00001"
    # row S1.1, and the sample of the SR-IOV operator's documentation
    assert sysfs.parse_ipoib_address("00:00:05:a9:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:f9:8f:86") == (
        0x05A9,
        "0xfe80000000000000",
        "0xb8599f0300f98f86",
    )
    assert sysfs.guid_of_bytes("00:11:22:33:44:55:66:77") == "0x0011223344556677"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("32.0 GT/s PCIe", 32.0), ("8 GT/s", 8.0), ("2.5 GT/s PCIe", 2.5), ("Unknown", None), ("Unknown speed", None)],
)
def test_pcie_speed(text: str, expected: float) -> None:
    assert sysfs.parse_pcie_speed(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("16", 16), ("0", None), ("255", None)])
def test_pcie_width(text: str, expected: int) -> None:
    assert sysfs.parse_pcie_width(text) == expected


@pytest.mark.parametrize(
    ("parser", "text"),
    [
        (sysfs.parse_pcie_speed, "0.0 GT/s"),
        (sysfs.parse_pcie_speed, "0.000001 GT/s PCIe"),
        (sysfs.parse_pcie_speed, "2000 GT/s PCIe"),
        (sysfs.parse_pcie_width, "63"),
        (sysfs.parse_pcie_width, "-1"),
        (sysfs.parse_rate, "0 Gb/sec (4X)"),
        (sysfs.parse_rate, "0.001 Gb/sec (4X NDR)"),
    ],
)
def test_what_no_link_can_have_is_unread(parser: typing.Callable[[str], object], text: str) -> None:
    with pytest.raises(ParseError):
        parser(text)


def test_numa_node_minus_one_is_not_known() -> None:
    assert sysfs.parse_numa_node("-1") is None
    assert sysfs.parse_numa_node("1") == 1


@pytest.mark.parametrize("name", ["0000:3c:00.0", "10000:01:00.0"])
def test_pci_addresses(name: str) -> None:
    assert sysfs.is_pci_address(name)
    assert (
        not sysfs.is_pci_address(name + "\n")
        and not sysfs.is_pci_address("virtio0")
        and not sysfs.is_pci_address("../0000:3c:00.0")
    )


PARSERS = (
    sysfs.parse_number,
    sysfs.parse_hexadecimal,
    sysfs.parse_enumeration_name,
    sysfs.parse_rate,
    sysfs.parse_guid,
    sysfs.port_guid_of_gid,
    sysfs.parse_ipoib_address,
    sysfs.guid_of_bytes,
    sysfs.link_policy,
    sysfs.parse_pcie_speed,
    sysfs.parse_pcie_width,
    sysfs.parse_numa_node,
)


@given(
    st.one_of(
        st.text(max_size=40),
        st.from_regex(r"[0-9a-fx:. ]{0,60}"),
        st.sampled_from(["", " ", "N/A (no PMA)", "4:ACTIVE", "400 Gb/sec", "0x", "-", "٣", "1_000"]),
    )
)
@pytest.mark.parametrize("parser", PARSERS)
def test_parsers_raise_nothing_but_their_error(parser: typing.Callable[..., typing.Any], text: str) -> None:
    with contextlib.suppress(ParseError):
        parser(text)


@pytest.mark.parametrize("text", ["", "N/A (no PMA)", "٣", "1_000", "0x10 ", " 5", "5\n5"])
def test_a_number_is_not_guessed(text: str) -> None:
    with pytest.raises(ParseError):
        sysfs.parse_number(text)
