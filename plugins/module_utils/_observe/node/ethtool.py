# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the link modes of an Ethernet port from the kernel, without the program ethtool."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

from ..._parse.node import ethtool

_SIOCETHTOOL = 0x8946
_GLINKSETTINGS = 0x4C
#: of a name with the zero behind it
_MOST_NAME = 16


def link_modes(name: str) -> ethtool.LinkModes:
    """Return the fastest link mode that the port of an interface supports, and the fastest that the port at the other
    end advertises. Both are None if the driver does not report them, or if the interface does not exist.

    :param name: name of the interface
    """
    nothing = ethtool.LinkModes(None, None)
    if len(name.encode()) >= _MOST_NAME:
        return nothing
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            # the first answer is how many words a set of modes has, negative; with that number asked again, the sets
            # come
            words = -struct.unpack_from("b", _read_link_settings(asked, name, 0), ethtool.WORDS)[0]
            return ethtool.parse(_read_link_settings(asked, name, words)) if words > 0 else nothing
    except OSError:
        return nothing


def _read_link_settings(asked: socket.socket, name: str, words: int) -> bytes:
    command = bytearray(ethtool.HEADER + 3 * 4 * words)
    struct.pack_into("I", command, 0, _GLINKSETTINGS)
    struct.pack_into("b", command, ethtool.WORDS, words)
    place = array.array("B", command)
    request = struct.pack("16sP", name.encode(), place.buffer_info()[0]).ljust(40, b"\0")
    fcntl.ioctl(asked.fileno(), _SIOCETHTOOL, request)
    return place.tobytes()
