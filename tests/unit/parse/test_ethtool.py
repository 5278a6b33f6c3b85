# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers to ETHTOOL_GLINKSETTINGS, put together as Linux 6.12 lays them out."""

from __future__ import annotations

import struct
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.ethtool import link_modes
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.ethtool import LinkModes, parse


def answer(supported: tuple[int, ...], partner: tuple[int, ...], words: int = 4, speed: int = 100000) -> bytes:
    """What a driver answers that supports and is offered modes of these bits."""
    header = struct.pack("<IIBBBBBBBb", 0x4C, speed, 1, 3, 0, 1, 0, 0, 0, words).ljust(48, b"\0")
    masks = [sum(1 << bit for bit in bits) for bits in (supported, supported, partner)]
    return header + b"".join(mask.to_bytes(4 * words, "little") for mask in masks)


# autonegotiation, fibre, pause and the forward error corrections are modes as well, and no speeds
OTHERS = (6, 10, 13, 14, 49, 50, 51)


@pytest.mark.parametrize(
    ("supported", "partner", "modes"),
    [
        # an igb: 1000baseT; a ConnectX-6 Dx beside a switch of 100 Gb/s; a ConnectX-7 over an optical cable, whose
        # partner offers nothing
        ((0, 1, 2, 3, 5, 7), (), (1.0, None)),
        ((17, 19, 24, 31, 34, 36, 38, 57, 59, 62, 66), (31, 36, 38), (200.0, 100.0)),
        ((36, 62, 70, 72, 85, 89), (), (400.0, None)),
        ((89, 115), (89,), (800.0, 400.0)),
        ((), (), (None, None)),
    ],
)
def test_the_fastest_mode_of_each_end(
    supported: tuple[int, ...], partner: tuple[int, ...], modes: tuple[typing.Optional[float], typing.Optional[float]]
) -> None:
    assert parse(answer((*supported, *OTHERS), (*partner, *OTHERS))) == LinkModes(*modes)


def test_an_answer_that_is_cut_says_nothing() -> None:
    whole = answer((62,), (36,))
    assert {parse(whole[:length]) for length in range(len(whole))} == {LinkModes(None, None)}
    # the first question: the number of words, negative
    assert parse(answer((62,), (), words=4)[:15] + b"\xfc" + bytes(32)) == LinkModes(None, None)


def test_interfaces_that_have_no_modes() -> None:
    assert link_modes("lo") == link_modes("no-such-interface") == link_modes("nosuch0") == LinkModes(None, None)
