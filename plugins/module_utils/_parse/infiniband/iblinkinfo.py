# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``iblinkinfo --line`` (infiniband-diags/iblinkinfo.c): one line for each port. If a link is
narrower or slower than possible, its line also has the width or speed that it could have.
"""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError
from ..._model.infiniband.fabric import SeenCapabilities, SlowPort

_TOOL = "iblinkinfo"
# bounded, since each part may end at each place of a line; a node description has 64 bytes.
# A node description is free text: the line is taken from both ends. Speeds have brackets of their own: "10.0 Gbps
# (FDR10)", "undefined (8)"
_LINE = re.compile(
    r'\A0x([0-9a-f]{1,16}) ".{0,400}" {1,16}[0-9]{1,6} {1,16}([0-9]{1,3})\[ {0,16}[0-9]{0,6}\] ==\(.{0,100}?\)==>'
    r" {1,16}"
    r'(?:(0x[0-9a-f]{1,16} .{0,100})?\[ {0,16}[0-9]{0,6}\] ".{0,400}" \( ?([^"]{0,400})\) {0,16}|"Port not'
    r' available")\Z',
    re.ASCII,
)
_COULD = "Could be "
#: of a line that can't be read, and of such lines: enough to see what they are
_MOST_CHARACTERS, _MOST_UNREAD = 300, 20


def parse(text: str) -> SeenCapabilities:
    """Return the ports whose link is narrower or slower than both of its ends support, and the number of links. The
    line of a port that has an unexpected form is returned as unread text, of at most 20 lines, and the other ports are
    still parsed.

    :raises ParseError: the text is empty, no line could be read, a line does not begin like that of a port, or the last
        line is incomplete
    """
    if not text or not text.endswith("\n"):
        raise ParseError(_TOOL, text[-200:].strip(), "one line for each port, with a complete last line")
    slow, links, unread = [], 0, []
    lines = text.split("\n")[:-1]
    for count, line in enumerate(lines, 1):
        match = _LINE.match(line)
        if not match and not line.startswith("0x"):
            raise ParseError(f"{_TOOL}, line {count}", line, "the line of a port")
        if not match:
            unread.append(line[:_MOST_CHARACTERS])
            continue
        # the far end of a port without a link has no GUID; that of one whose neighbour just went away is 'not
        # available'
        links += match.group(3) is not None
        could_be = (match.group(4) or "").strip()
        if could_be:
            words = tuple(word.strip() for word in could_be.split(_COULD) if word.strip())
            slow.append(SlowPort(f"0x{int(match.group(1), 16):016x}", int(match.group(2)), ", ".join(words)))
    if len(unread) == len(lines):
        raise ParseError(f"{_TOOL}, line 1", lines[0], "the line of a port")
    return SeenCapabilities(tuple(slow), links, tuple(unread[:_MOST_UNREAD]))
