# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``dcb -j pfc show dev IF`` and ``dcb -j app show dev IF`` of iproute2. Forms: iproute2 6.1
dcb/dcb_pfc.c and dcb_app.c.

``{"pfc_cap":8,"macsec_bypass":false,"delay":0,"prio_pfc":[false,false,false,true,false,false,false,false]}`` and
``{"dscp_prio":[[26,3]]}``.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..limits import decode_json

_TOOL = "dcb"
_PRIORITIES = 8


def parse_lossless_priorities(text: str) -> str:
    """Return the priorities with PFC, such as ``3`` or ``3,4`` in ascending order. Return ``none`` if no priority has
    PFC.

    :param text: output of ``dcb -j pfc show dev IF``
    :raises ParseError: the output has an unexpected form
    """
    on = _parse_json_object(text).get("prio_pfc")
    if not isinstance(on, list) or len(on) != _PRIORITIES or not all(isinstance(item, bool) for item in on):
        raise ParseError(_TOOL, text, "prio_pfc with true or false for each of 8 priorities")
    return ",".join(str(priority) for priority, is_on in enumerate(on) if is_on) or "none"


def parse_priorities(text: str) -> dict[int, int]:
    """Return the priority of each DSCP, by DSCP. If the output lists a DSCP twice, the higher priority is used. Return
    an empty mapping if the port does not use DSCP.

    :param text: output of ``dcb -j app show dev IF``
    :raises ParseError: the output has an unexpected form
    """
    found: dict[int, int] = {}
    pairs = _parse_json_object(text).get("dscp_prio", [])
    if not isinstance(pairs, list):
        raise ParseError(_TOOL, text, "dscp_prio with pairs of numbers")
    for pair in pairs:
        numbers = (
            [item for item in pair if isinstance(item, int) and not isinstance(item, bool)]
            if isinstance(pair, list)
            else []
        )
        if len(numbers) != 2 or len(pair) != 2:
            raise ParseError(_TOOL, text, "dscp_prio with pairs of numbers")
        dscp, priority = numbers
        if not (0 <= dscp < 64 and 0 <= priority < _PRIORITIES):
            raise ParseError(_TOOL, text, "a DSCP of 0 to 63 and a priority of 0 to 7")
        found[dscp] = max(priority, found.get(dscp, 0))
    return found


def _parse_json_object(text: str) -> dict[str, typing.Any]:
    found = decode_json(text, _TOOL, unique=False)
    if not isinstance(found, dict):
        raise ParseError(_TOOL, text, "a JSON object")
    return found
