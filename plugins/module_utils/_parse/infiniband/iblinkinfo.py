# SPDX-License-Identifier: GPL-3.0-or-later

"""Output of ``iblinkinfo --line`` (infiniband-diags/iblinkinfo.c): one line a port, with what its link could be where it is less."""

from __future__ import annotations

import re

from ..._model.errors import ParseError
from ..._model.fabric import SeenCapabilities, SlowPort

_TOOL = "iblinkinfo"
# a node description is free text: the line is taken from both ends
_LINE = re.compile(
    r'\A0x([0-9a-f]{1,16}) ".*" +[0-9]{1,6} +([0-9]{1,3})\[ *[0-9]*\] ==\([^()]*\)==> +'
    r'(?:(0x[0-9a-f]{1,16} .*)?\[ *[0-9]*\] ".*" \( ?([^()"]*)\) *|"Port not available")\Z',
    re.ASCII,
)
_COULD = "Could be "


def parse(text: str) -> SeenCapabilities:
    """The ports whose link is narrower or slower than both of its ends support.

    :raises ParseError: no line at all, a line of another form, or a last line without an end
    """
    if not text or not text.endswith("\n"):
        raise ParseError(_TOOL, text[-200:].strip(), "one line a port, the last one complete")
    slow, links = [], 0
    for count, line in enumerate(text.split("\n")[:-1], 1):
        match = _LINE.match(line)
        if not match:
            raise ParseError(f"{_TOOL}, line {count}", line, "the line of a port")
        # the far end of a port without a link has no GUID; that of one whose neighbour just went away is 'not available'
        links += match.group(3) is not None
        could_be = (match.group(4) or "").strip()
        if could_be:
            words = tuple(word.strip() for word in could_be.split(_COULD) if word.strip())
            slow.append(SlowPort(f"0x{int(match.group(1), 16):016x}", int(match.group(2)), ", ".join(words)))
    return SeenCapabilities(tuple(slow), links)
