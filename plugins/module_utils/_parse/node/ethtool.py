# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the response of the kernel to ETHTOOL_GLINKSETTINGS: the link modes that an Ethernet port supports, and those
that the port at the other end offers.

Layout: struct ethtool_link_settings of Linux 6.12, include/uapi/linux/ethtool.h: 48 bytes, then three sets of link
modes (supported, advertised, offered by the partner). The signed byte at offset 15 is the number of 32-bit words in
each set. Modes: enum ethtool_link_mode_bit_indices of the same file. Modes from 102 on were added later.
"""

from __future__ import annotations

import struct
import typing

HEADER = 48
#: offset of the number of words
WORDS = 15

#: bits of the link modes by their speed in Gb/s
_MODES: dict[float, tuple[int, ...]] = {
    0.01: (0, 1, 92, 99, 100, 101, 102),
    0.1: (2, 3, 67, 90, 91),
    1: (4, 5, 17, 41, 68),
    2.5: (15, 47),
    5: (48,),
    10: (12, 18, 19, 20, *range(42, 47)),
    20: (21, 22),
    25: (31, 32, 33),
    40: (23, 24, 25, 26),
    50: (34, 35, 40, *range(52, 57)),
    56: (27, 28, 29, 30),
    100: (36, 37, 38, 39, *range(57, 62), *range(75, 80)),
    200: (*range(62, 67), *range(80, 85), *range(103, 109)),
    400: (*range(69, 74), *range(85, 90), *range(109, 115)),
    800: (*range(93, 99), *range(115, 121)),
    1600: tuple(range(121, 125)),
}
_SPEEDS = {bit: speed for speed, bits in _MODES.items() for bit in bits}


class LinkModes(typing.NamedTuple):
    """The fastest speed that an Ethernet port supports, and the fastest that the port at the other end offers. A speed
    is None if there is no link mode, or only unknown ones.

    :ivar supported: fastest speed of the port in Gb/s
    :ivar partner: fastest speed of the port at the other end in Gb/s
    """

    supported: typing.Optional[float]
    partner: typing.Optional[float]


def parse(answer: bytes) -> LinkModes:
    """Parse the response of the kernel to ETHTOOL_GLINKSETTINGS. It must be the response to the second request, because
    the first one only tells the number of words, as a negative number. This function never raises an error. Both speeds
    are None if the response is too short, or if it is the first one.
    """
    words = struct.unpack_from("b", answer, WORDS)[0] if len(answer) > WORDS else 0
    size = 4 * words
    if size <= 0 or len(answer) < HEADER + 3 * size:
        return LinkModes(None, None)
    return LinkModes(
        _find_fastest_speed(answer[HEADER : HEADER + size]),
        _find_fastest_speed(answer[HEADER + 2 * size : HEADER + 3 * size]),
    )


def _find_fastest_speed(mask: bytes) -> typing.Optional[float]:
    # words in the order of the machine; all that runs RDMA is little-endian
    bits = int.from_bytes(mask, "little")
    known = [speed for bit, speed in _SPEEDS.items() if bits >> bit & 1]
    return max(known, default=None)
