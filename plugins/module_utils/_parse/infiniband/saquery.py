# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse records of saquery (infiniband-diags/saquery.c). ``saquery SMIR`` and ``saquery -s`` print blocks of
``Name....value`` lines. ``saquery LFTR`` prints the forwarding tables that the subnet administration has.
"""

from __future__ import annotations

import re

from ..._model.base.errors import ParseError
from ..._model.boundary.fabric import LID
from ..._model.infiniband.fabric import SubnetManager
from ..._model.infiniband.forwarding import UNTOLD
from .sminfo import STATES

_HEADER = "SMInfoRecord dump:"
_PORT_HEADER = "PortInfoRecord dump:"
_MANAGERS, _DISABLED = "IsSM ports", "IsSMdisabled ports"
_TABLE = "LFT Record dump:\n"
_TABLE_HEAD = re.compile(
    r"\t\tLID\.+([0-9]{1,5})\n\t\tBlock\.+([0-9]{1,3})\n\t\tLFT:\n\t\tLID\tPort Number\n", re.ASCII
)
#: LIDs of a block; unicast LIDs end at 0xbfff
_BLOCK, _BLOCKS = 64, 0xC000 // 64
_FIELD = re.compile(r"^\s*(\w+)\.{2,}([^\s.]\S*)\s*$", re.ASCII)


def parse_sm_records(text: str) -> tuple[SubnetManager, ...]:
    """Parse all subnet managers that the subnet administration knows, including the master, from the output of
    ``saquery SMIR``.

    :raises ParseError: there is no record, although a subnet administration that answers always reports its own subnet
        manager; or a record has no valid LID, GUID, ActCount, Priority or SMState
    """
    blocks = text.split(_HEADER)[1:]
    if not blocks:
        raise ParseError("saquery SMIR", text.strip(), f"one or more blocks '{_HEADER}'")
    return tuple(_parse_record(block) for block in blocks)


def parse_manager_ports(text: str) -> tuple[int, ...]:
    """Return the LIDs of the ports that have the IsSM bit, each once, in the order of the text, which is the output of
    ``saquery -s``.

    :raises ParseError: one of the two headings is missing or they are in the wrong order; or there is no port, although
        a subnet administration that answers always reports its own port
    """
    begin, end = text.find(_MANAGERS), text.rfind(_DISABLED)
    lids = (
        [_parse_number(_parse_fields(block), "EndPortLid") for block in text[begin:end].split(_PORT_HEADER)[1:]]
        if 0 <= begin < end
        else []
    )
    if not lids:
        raise ParseError(
            "saquery -s", text.strip(), f"'{_MANAGERS}', one or more blocks '{_PORT_HEADER}', '{_DISABLED}'"
        )
    return tuple(dict.fromkeys(lids))


def parse_forwarding(text: str) -> dict[int, bytes]:
    """Parse forwarding tables as ``saquery LFTR`` prints them. Return the table of each switch, by the LID of the
    switch: one byte for each LID from 0 to the last LID of the last block, with the number of the output port. The
    bytes of a missing block of LIDs are UNTOLD (255).

    :raises ParseError: there is no record, a record has an unexpected form because the output was cut off, or a block
        is out of range or occurs twice
    """
    first, *records = text.split(_TABLE)
    if not records or first:
        raise ParseError("saquery LFTR", text.strip(), f"one or more blocks '{_TABLE.strip()}'")
    tables: dict[int, dict[int, bytes]] = {}
    for record in records:
        head = _TABLE_HEAD.match(record)
        if head is None:
            raise ParseError("saquery LFTR", record[:200], "a record with LID, Block and LFT")
        lid, block = int(head.group(1)), int(head.group(2))
        words = record[head.end() :].split()
        form = "".join(f"\t\t{one}\t{other}\n" for one, other in zip(words[0::2], words[1::2])) + "\n"
        lids = [str(number) for number in range(block * _BLOCK, (block + 1) * _BLOCK)]
        if (
            words[0::2] != lids
            or record[head.end() :] != form
            or not all(re.fullmatch(r"[0-9]{1,3}", word, re.ASCII) and int(word) < 256 for word in words[1::2])
        ):
            raise ParseError(
                "saquery LFTR", record[:200], f"a record with the ports to {_BLOCK} LIDs from {block * _BLOCK} on"
            )
        if block >= _BLOCKS or block in tables.setdefault(lid, {}):
            raise ParseError("saquery LFTR", f"LID {lid}, block {block}", f"a block below {_BLOCKS} that occurs once")
        tables[lid][block] = bytes(map(int, words[1::2]))
    untold = bytes([UNTOLD]) * _BLOCK
    return {
        lid: b"".join(blocks.get(block, untold) for block in range(max(blocks) + 1)) for lid, blocks in tables.items()
    }


def _parse_fields(block: str) -> dict[str, str]:
    return {match.group(1): match.group(2) for match in map(_FIELD.match, block.splitlines()) if match}


def _parse_record(block: str) -> SubnetManager:
    """Return the subnet manager in an SMInfo record.

    :param block: lines of the record
    :raises ParseError: a field is missing or has another form
    """
    fields = _parse_fields(block)
    state = _parse_number(fields, "SMState")
    if state not in STATES:
        raise ParseError("saquery SMIR", f"SMState {state}", "a state from 0 to 3")
    return SubnetManager(
        lid=_parse_number(fields, "LID"),
        guid=f"0x{_parse_number(fields, 'GUID', 16):016x}",
        state=STATES[state],
        priority=_parse_number(fields, "Priority"),
        activity=_parse_number(fields, "ActCount"),
    )


def _parse_number(fields: dict[str, str], name: str, base: int = 10) -> int:
    """Return the number in a field of a record.

    :param name: name of the field
    :param base: 10, or 16 for a GUID
    :raises ParseError: the field is missing or has another form, or a LID is out of range
    """
    text = fields.get(name, "")
    form = r"0x[0-9a-f]{1,16}" if base == 16 else r"[0-9]{1,20}"
    if not re.fullmatch(form, text, re.ASCII):
        raise ParseError(
            "saquery", f"{name} {text}", f"a record with {name} as {'a GUID' if base == 16 else 'a number'}"
        )
    if name in ("LID", "EndPortLid") and not LID.fits(int(text)):
        raise ParseError("saquery", f"{name} {text}", LID.expected)
    return int(text, base)
