# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI configuration spaces and resources: what they say of SR-IOV, and nothing made up of what is cut short, broken or
leads in circles."""

from __future__ import annotations

import struct
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import Acs, SriovCapability, VfMemory
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node import pci_config, sysfs
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import PLACED, bridge, resource, space, sriov_body

AER, ARI = (0x0001, bytes(0x28)), (0x000E, bytes(4))
SRIOV, ACS = 0x0010, 0x000D
#: as lspci -vvv showed them of an emulated igb: two BARs of 64 bits, and the functions of a bus of its own number
IGB = space([AER, ARI, (SRIOV, sriov_body(8, 0, 128, 2, True, (0xFE80000C, 0, 0, 0xFE82000C, 0)))])


def test_a_whole_capability() -> None:
    assert pci_config.parse_sriov(IGB) == SriovCapability(8, 8, 0, 128, 2, True, (0, 3))
    assert pci_config.parse_sriov(space([(SRIOV, sriov_body(16, 8, 2, 1, False))])) == SriovCapability(
        16, 16, 8, 2, 1, False, (0,)
    )


@pytest.mark.parametrize(
    ("registers", "bars"),
    [
        ((), ()),
        # no address yet: the type is there all the same
        ((0x0C, 0, 0x0C), (0, 2)),
        # the second half of a BAR of 64 bits is an address, whatever it looks like
        ((0x0C, 0x381, 0x08), (0, 2)),
        ((0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000), (0, 1, 2, 3, 4, 5)),
        ((0, 0, 0, 0, 0, 0x0C), (5,)),
        ((0xD001,), None),  # ports
        ((0xFFFFFFFF,) * 6, None),  # it does not answer
    ],
)
def test_bars_of_vfs(registers: typing.Sequence[int], bars: typing.Optional[tuple[int, ...]]) -> None:
    seen = pci_config.parse_sriov(space([(SRIOV, sriov_body(8, bars=registers))]))
    assert (seen.bars if seen else None) == bars


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        bytes(64),
        bytes(256),
        bytes(4096),
        b"\xff" * 4096,
        space([AER]),
        space([AER])[:0x100] + struct.pack("<I", 0x10001 | 0x100 << 20) + bytes(3836),  # in a circle
        space([AER])[:0x100] + struct.pack("<I", 0x10001 | 0x40 << 20) + bytes(3836),  # out of the extended space
        space([AER])[:0x100]
        + struct.pack("<I", 0x10001 | 0xFFC << 20)
        + bytes(3836 - 4)
        + b"\xff" * 4,  # to where nothing answers
    ],
)
def test_nothing_is_made_up(raw: bytes) -> None:
    assert (
        pci_config.parse_sriov(raw) is None
        and pci_config.parse_acs(raw) is None
        and pci_config.parse_last_bus(raw) is None
    )


@given(
    total=st.integers(0, 0xFFFF),
    current=st.integers(0, 0xFFFF),
    offset=st.integers(0, 0xFFFF),
    stride=st.integers(0, 0xFFFF),
    ari=st.booleans(),
    before=st.lists(st.sampled_from([AER, ARI, (ACS, b"\x5f\x00\x1d\x00")]), max_size=4),
    end=st.integers(0, 4096),
)
def test_it_says_the_truth_or_nothing(
    total: int, current: int, offset: int, stride: int, ari: bool, before: list[tuple[int, bytes]], end: int
) -> None:
    whole = space([*before, (SRIOV, sriov_body(total, current, offset, stride, ari))])
    truth = SriovCapability(total, total, current, offset, stride, ari, (0,))
    assert pci_config.parse_sriov(whole) == truth
    assert pci_config.parse_sriov(whole[:end]) in (truth, None)
    assert pci_config.parse_acs(whole[:end]) in (Acs(0x5F, 0x1D), None)


@given(st.binary(max_size=4096))
def test_any_bytes_are_no_traceback(raw: bytes) -> None:
    for read in (
        pci_config.parse_sriov,
        pci_config.parse_acs,
        pci_config.parse_last_bus,
        pci_config.parse_sriov_absence,
        pci_config.parse_payload,
    ):
        read(raw)


def test_a_port_above() -> None:
    port = bridge(0x3C, 0x3D, [AER, (ACS, b"\x5f\x00\x1d\x00")])
    assert pci_config.parse_acs(port) == Acs(0x5F, 0x1D) and pci_config.parse_last_bus(port) == 0x3D
    assert pci_config.parse_last_bus(port[:64]) == 0x3D, "anybody may read as much"
    assert (
        pci_config.parse_last_bus(port[:63]) is None
        and pci_config.parse_last_bus(bridge(0x3D, 0x3C)) is None
        and pci_config.parse_last_bus(bridge(0, 0)) is None
    )


@pytest.mark.parametrize(
    ("of_vfs", "seen"),
    [
        ((), VfMemory()),
        ((PLACED,), VfMemory((0,))),
        # an igb: BAR 0 and 3
        ((PLACED, (0, 0, 0), (0, 0, 0), PLACED), VfMemory((0, 3))),
        # IORESOURCE_UNSET; a size without an address; an address that is marked as none; ports
        (((0, 0x1FFFFFF, 0x2014220C),), VfMemory((), (0,))),
        ((PLACED, (0, 0, 0), (0, 0x1FFFFFF, 0x14220C)), VfMemory((0,), (2,))),
        (((0xE002000000, 0xE003FFFFFF, 0x2014220C),), VfMemory((), (0,))),
        (((0xD000, 0xDFFF, 0x40101),), VfMemory((), (0,))),
    ],
)
def test_memory_of_vfs(of_vfs: typing.Sequence[tuple[int, int, int]], seen: VfMemory) -> None:
    text = resource(*of_vfs)
    assert sysfs.parse_vf_memory(text) == seen
    last = text.rsplit("\n", maxsplit=1)[-1]
    assert sysfs.parse_vf_memory("\n".join([text, *[last] * 4])) == seen, (
        "what a kernel shows behind them is of bridges"
    )


def test_a_kernel_without_sriov_has_no_lines_for_vfs() -> None:
    assert sysfs.parse_vf_memory("\n".join(resource(PLACED).split("\n")[:7])) is None


@given(st.integers(0, 12), st.integers(0, 18))
def test_a_resource_that_is_cut_short_is_refused(lines: int, characters: int) -> None:
    whole = resource(PLACED).split("\n")
    cut = "\n".join([*whole[:lines], whole[lines][:characters]])
    with pytest.raises(ParseError):
        sysfs.parse_vf_memory(cut)
