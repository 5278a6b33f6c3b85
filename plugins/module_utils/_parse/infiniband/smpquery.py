# SPDX-License-Identifier: GPL-3.0-or-later

"""Output of smpquery (infiniband-diags/smpquery.c): what a port says of itself, ``Name:....value``."""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError

# CapabilityMask, InfiniBand Architecture 1, 14.2.5.6: a subnet manager runs on this port
_IS_SM = 0x2

_MASK = re.compile(r"^CapMask:\.+0x([0-9a-f]{1,8})$", re.MULTILINE | re.ASCII)
_DESCRIPTION = re.compile(r"^Node Description:\.+(.*)$", re.MULTILINE)


def parse_is_manager(text: str) -> bool:
    """Return whether the port of ``smpquery portinfo`` has the IsSM bit.

    :raises ParseError: no capability mask, as when nobody answered
    """
    masks = _MASK.findall(text)
    if len(masks) != 1:
        raise ParseError("smpquery portinfo", text.strip(), "one line 'CapMask:....0x...'")
    return bool(int(masks[0], 16) & _IS_SM)


def parse_description(text: str) -> str:
    """Parse the node description of ``smpquery nodedesc``; dots at its begin can't be told from the tool's own.

    :raises ParseError: there is none, as when nobody answered
    """
    found = _DESCRIPTION.findall(text)
    if len(found) != 1:
        raise ParseError("smpquery nodedesc", text.strip(), "one line 'Node Description:....'")
    return str(found[0])
