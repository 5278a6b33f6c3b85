# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of saquery (infiniband-diags/saquery.c): ``saquery SMIR`` and ``saquery -s``, blocks of ``Name....value`` lines."""

from __future__ import annotations

import re
import typing

from ..._model.errors import ParseError
from ..._model.fabric import SubnetManager
from .sminfo import STATES

_HEADER = "SMInfoRecord dump:"
_PORT_HEADER = "PortInfoRecord dump:"
_MANAGERS, _DISABLED = "IsSM ports", "IsSMdisabled ports"
_FIELD = re.compile(r"^\s*(\w+)\.{2,}(\S+)\s*$", re.ASCII)


def parse_sm_records(text: str) -> typing.Tuple[SubnetManager, ...]:
    """All subnet managers that the subnet administration knows, the master among them.

    :raises ParseError: no record, or one without LID, GUID, ActCount, Priority or SMState. An administration that answers has at least its own record
    """
    blocks = text.split(_HEADER)[1:]
    if not blocks:
        raise ParseError("saquery SMIR", text.strip(), f"one or more blocks '{_HEADER}'")
    return tuple(_record(block) for block in blocks)


def parse_manager_ports(text: str) -> typing.Tuple[int, ...]:
    """LIDs of the ports that have the IsSM bit (``saquery -s``), each once, in the order of the text.

    :raises ParseError: not both headings, the second of which comes last; or no port: an administration that answers has at least its own
    """
    begin, end = text.find(_MANAGERS), text.rfind(_DISABLED)
    lids = [_number(_fields(block), "EndPortLid") for block in text[begin:end].split(_PORT_HEADER)[1:]] if 0 <= begin < end else []
    if not lids:
        raise ParseError("saquery -s", text.strip(), f"'{_MANAGERS}', one or more blocks '{_PORT_HEADER}', '{_DISABLED}'")
    return tuple(dict.fromkeys(lids))


def _fields(block: str) -> typing.Dict[str, str]:
    return {match.group(1): match.group(2) for match in map(_FIELD.match, block.splitlines()) if match}


def _record(block: str) -> SubnetManager:
    fields = _fields(block)
    state = _number(fields, "SMState")
    if state not in STATES:
        raise ParseError("saquery SMIR", f"SMState {state}", "a state from 0 to 3")
    return SubnetManager(
        lid=_number(fields, "LID"),
        guid=f"0x{_number(fields, 'GUID', 16):016x}",
        state=STATES[state],
        priority=_number(fields, "Priority"),
        activity=_number(fields, "ActCount"),
    )


def _number(fields: typing.Dict[str, str], name: str, base: int = 10) -> int:
    text = fields.get(name, "")
    form = r"0x[0-9a-f]{1,16}" if base == 16 else r"[0-9]{1,20}"
    if not re.fullmatch(form, text, re.ASCII):
        raise ParseError("saquery", f"{name} {text}", f"a record with {name} as {'a GUID' if base == 16 else 'a number'}")
    return int(text, base)
