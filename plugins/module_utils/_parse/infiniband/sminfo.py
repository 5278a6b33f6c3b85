# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of sminfo (infiniband-diags/sminfo.c): one line, the same in all versions from 44 to 56."""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError
from ..._model.boundary.fabric import LID
from ..._model.infiniband.fabric import SubnetManager

#: SMInfo.SMState, InfiniBand Architecture 1, 14.4
STATES = {0: "NOTACT", 1: "DISCOVER", 2: "STANDBY", 3: "MASTER"}

_LINE = re.compile(
    r"^sminfo: sm lid ([0-9]{1,6}) sm guid 0x([0-9a-f]{1,16}), activity count ([0-9]{1,20}) priority ([0-9]{1,3}) state"
    r" ([0-9]{1,3}) \S+$",
    re.MULTILINE | re.ASCII,
)


def parse(text: str) -> SubnetManager:
    """Return the subnet manager that answered, from the line that sminfo prints.

    :raises ParseError: the text does not contain exactly one such line, as when no subnet manager answered (``sminfo:
        iberror: failed: query``), or the state or LID is outside of the range that the specification allows
    """
    lines = _LINE.findall(text)
    if len(lines) != 1:
        raise ParseError("sminfo", text.strip(), "one line 'sminfo: sm lid ... state 3 SMINFO_MASTER'")
    lid, guid, activity, priority, state = lines[0]
    if int(state) not in STATES:
        raise ParseError("sminfo", text.strip(), "a state from 0 to 3")
    if not LID.fits(int(lid)):
        raise ParseError("sminfo", text.strip(), LID.expected)
    return SubnetManager(
        lid=int(lid),
        guid=f"0x{int(guid, 16):016x}",
        state=STATES[int(state)],
        priority=int(priority),
        activity=int(activity),
    )
