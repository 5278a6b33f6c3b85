# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of smpquery (infiniband-diags/smpquery.c): attributes of one port or node, as ``Name:....value``
lines.
"""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError

# CapabilityMask, InfiniBand Architecture 1, 14.2.5.6: a subnet manager runs on this port
_IS_SM = 0x2

_MASK = re.compile(r"^CapMask:\.+0x([0-9a-f]{1,8})$", re.MULTILINE | re.ASCII)
_DESCRIPTION = re.compile(r"^Node Description:\.+(.*)$", re.MULTILINE)


def parse_is_manager(text: str) -> bool:
    """Return whether the port in the output of ``smpquery portinfo`` has the IsSM bit, which a running subnet manager
    sets.

    :raises ParseError: there is not exactly one capability mask, as when the port did not answer
    """
    masks = _MASK.findall(text)
    if len(masks) != 1:
        raise ParseError("smpquery portinfo", text.strip(), "one line 'CapMask:....0x...'")
    return bool(int(masks[0], 16) & _IS_SM)


def parse_description(text: str) -> str:
    """Return the node description from the output of ``smpquery nodedesc``. Dots at the beginning of the description
    are lost, because the tool fills the line with dots.

    :raises ParseError: there is not exactly one node description, as when the node did not answer
    """
    found = _DESCRIPTION.findall(text)
    if len(found) != 1:
        raise ParseError("smpquery nodedesc", text.strip(), "one line 'Node Description:....'")
    return str(found[0])
